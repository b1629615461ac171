/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Copyright (C) 2026 The libsci authors */
/*
 * What sysfs and debugfs say of adapters, and what the loop driver and the
 * kernel can be made to do wrong.  Adapters are told by their place in the list
 * of sci_test.h.
 */
#ifndef SELFTESTS_KERNEL_SCI_STATE_H
#define SELFTESTS_KERNEL_SCI_STATE_H

#include <stdbool.h>

#include "ksft.h"

#define SYSFS_DIR	"/sys/class/sci"
#define DEBUG_DIR	"/sys/kernel/debug/sci"
/* Of the loop driver, DEBUG_DIR/sciN/fault/: numbers. */
#define KNOB_LINK	"link"		/* 0 or 1 */
#define KNOB_LOSS	"loss"		/* of a million control packets */
#define KNOB_DUPLICATE	"duplicate"	/* ... */
#define KNOB_REORDER	"reorder"	/* ... */
#define KNOB_DMA_ERRORS	"dma_errors"	/* of a million copies */
#define KNOB_DAMAGE	"damage"	/* of a million messages */
#define KNOB_DAMAGED	"damaged"	/* how many were; to be read */
#define KNOB_PATCH	"patch"		/* of the next message of a type: text */
#define KNOB_WITHHOLD	"withhold"	/* messages of that type */
#define KNOB_HOLD_UNMAP	"hold_unmap"	/* 0 or 1 */
#define KNOB_UNMAPS_HELD "unmaps_held"	/* how many wait; to be read */
#define KNOB_RETRIABLE	"retriable"	/* so many lost transfers */
#define KNOB_FATAL	"fatal"
/* Of all its adapters: a node. */
#define LOOP_DIR	"/sys/kernel/debug/sci_loop"
#define KNOB_REMOVE	"remove"
#define KNOB_ADD	"add"
/* Of nodes that are added from now on: Y or N. */
#define DOORBELLS	"/sys/module/sci_loop/parameters/doorbells"

/* For KNOB_WITHHOLD: enum sci_message_type of kmod/core/proto.h. */
#define MESSAGE_CUT_ACK		6u
#define MESSAGE_DATA_REPLY	10u
#define MESSAGE_LEFT		13u

/* ---- what the kernel holds ---- */

struct counts {
	long long segments, importers, att_used, users;
	/* of debugfs, 0 without it */
	long long objects, connections, mappings;
};

struct counts counts_of(unsigned int i);
bool counts_equal(const struct counts *a, const struct counts *b);

/* Checks, after some time, that adapter @i is as it was. */
void COUNTS_BACK(unsigned int i, const struct counts *was);

/* A number in sysfs below sciN, or -errno. */
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

/* No loss, links up: as each test begins. */
void faults_end(void);

/* Whether all that are there answer each other. */
bool nodes_answer(void);

/*
 * The kernel's fault injection: the Nth thing that can fail in a system call of
 * this thread does.  -errno: it has none.
 */
struct fault_injector {
	int fd;
};

int injector_open(struct fault_injector *f);
void injector_arm(const struct fault_injector *f, unsigned int nth);
/* Nothing fails any more; whether the Nth was reached. */
bool injector_disarm(const struct fault_injector *f);

/* Takes adapter @i out, and brings a node: each test begins with all there. */
int adapter_remove(unsigned int i);
int node_add(unsigned int node);

#ifndef SELFTESTS_KERNEL_SCI_TEST_C
#define COUNTS_BACK(i, was) KSFT_FROM(COUNTS_BACK(i, was))
#endif

#endif
