/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Copyright (C) 2026 The libsci authors */
/*
 * State of adapters in sysfs and debugfs, and faults that the loop driver and the
 * kernel can inject. Adapters are identified by their place in the list of
 * sci_test.h.
 */
#ifndef SELFTESTS_KERNEL_SCI_STATE_H
#define SELFTESTS_KERNEL_SCI_STATE_H

#include <stdbool.h>

#include "ksft.h"

#define SYSFS_DIR	"/sys/class/sci"
#define DEBUG_DIR	"/sys/kernel/debug/sci"
/* Files of the loop driver in DEBUG_DIR/sciN/fault/, most with a number. */
#define KNOB_LINK	"link"		/* 0: down, 1: up */
#define KNOB_LOSS	"loss"		/* lost control packets per million */
#define KNOB_DUPLICATE	"duplicate"	/* duplicated ones per million */
#define KNOB_REORDER	"reorder"	/* reordered ones per million */
#define KNOB_DMA_ERRORS	"dma_errors"	/* failed copies per million */
#define KNOB_DAMAGE	"damage"	/* damaged messages per million */
#define KNOB_DAMAGED	"damaged"	/* read only: number of damaged messages */
#define KNOB_PATCH	"patch"		/* text: change the next message of a type */
#define KNOB_WITHHOLD	"withhold"	/* type of messages to withhold */
#define KNOB_HOLD_UNMAP	"hold_unmap"	/* 1: unmaps wait */
#define KNOB_UNMAPS_HELD "unmaps_held"	/* read only: number of unmaps that wait */
#define KNOB_RETRIABLE	"retriable"	/* number of transfers to lose */
#define KNOB_FATAL	"fatal"
/* Files of the loop driver for all adapters. Each takes a node id. */
#define LOOP_DIR	"/sys/kernel/debug/sci_loop"
#define KNOB_REMOVE	"remove"
#define KNOB_ADD	"add"
/* Y: nodes that are added later have doorbells. N: they have none. */
#define DOORBELLS	"/sys/module/sci_loop/parameters/doorbells"

/* Types for KNOB_WITHHOLD: enum sci_message_type of kmod/core/proto.h. */
#define MESSAGE_CONNECT		1u
#define MESSAGE_CUT_ACK		6u
#define MESSAGE_DATA_REPLY	10u
#define MESSAGE_LEFT		13u

/* ---- counts of objects ---- */

struct counts {
	long long segments, importers, att_used, users;
	/* from debugfs; 0 without debugfs */
	long long objects, connections, mappings;
};

struct counts counts_of(unsigned int i);
bool counts_equal(const struct counts *a, const struct counts *b);

/* Wait until the counts of adapter @i are back at @was, else fail. */
void COUNTS_BACK(unsigned int i, const struct counts *was);

/* Read a number from a file in /sys/class/sci/sciN. Return it, or -errno. */
__attribute__((format(printf, 2, 3)))
long long sysfs_number(unsigned int i, const char *fmt, ...);
__attribute__((format(printf, 2, 3)))
bool sysfs_exists(unsigned int i, const char *fmt, ...);

long long read_number(const char *path);
int write_text(const char *path, const char *text);

/* ---- faults ---- */

bool has_knob(unsigned int i, const char *knob);
void NEED_KNOB(const char *knob);
int knob_set(unsigned int i, const char *knob, unsigned long value);
int knob_write(unsigned int i, const char *knob, const char *text);
long long knob_get(unsigned int i, const char *knob);

/* Set all knobs to their state at the begin of a test: no loss, links up. */
void faults_end(void);

/* Return whether all nodes that are there answer probes of each other. */
bool nodes_answer(void);

/*
 * Fault injection of the kernel: the Nth fault point of this thread's next system
 * call fails. injector_open() returns -errno if the kernel lacks it.
 */
struct fault_injector {
	int fd;
};

int injector_open(struct fault_injector *f);
void injector_arm(const struct fault_injector *f, unsigned int nth);
/* Stop the injection; return whether the Nth fault point was reached. */
bool injector_disarm(const struct fault_injector *f);

/* Remove adapter @i; add a node. Each test begins with all nodes there. */
int adapter_remove(unsigned int i);
int node_add(unsigned int node);

#ifndef SELFTESTS_KERNEL_SCI_TEST_C
#define COUNTS_BACK(i, was) KSFT_FROM(COUNTS_BACK(i, was))
#endif

#endif
