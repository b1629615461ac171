// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <dirent.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SELFTESTS_KERNEL_SCI_TEST_C
#include "sci_test.h"

/* ---- files with a number ---- */

long long read_number(const char *path)
{
	FILE *f = fopen(path, "re");
	long long value;

	if (!f)
		return -errno;
	if (fscanf(f, "%lli", &value) != 1)
		value = -EINVAL;
	fclose(f);
	return value;
}

int write_text(const char *path, const char *text)
{
	int fd = SYS(open(path, O_WRONLY | O_CLOEXEC));
	ssize_t len = (ssize_t)strlen(text);
	long n;

	if (fd < 0)
		return fd;
	n = SYS(write(fd, text, len));
	close(fd);
	if (n < 0)
		return n;
	return n == len ? 0 : -EIO;
}

__attribute__((format(printf, 3, 0)))
static void sysfs_path(char path[256], unsigned int i, const char *fmt,
		       va_list ap)
{
	int n = snprintf(path, 256, SYSFS_DIR "/sci%u/", adapter_index(i));

	vsnprintf(path + n, 256 - n, fmt, ap);
}

long long sysfs_number(unsigned int i, const char *fmt, ...)
{
	char path[256];
	va_list ap;

	va_start(ap, fmt);
	sysfs_path(path, i, fmt, ap);
	va_end(ap);
	return read_number(path);
}

bool sysfs_exists(unsigned int i, const char *fmt, ...)
{
	char path[256];
	va_list ap;

	va_start(ap, fmt);
	sysfs_path(path, i, fmt, ap);
	va_end(ap);
	return !access(path, F_OK);
}

/* ---- counts of objects ---- */

/* Return the number of lines of a debugfs file, or 0 without the file. */
static unsigned int debug_lines(unsigned int i, const char *name)
{
	char path[128], line[256];
	unsigned int n = 0;
	FILE *f;

	snprintf(path, sizeof(path), DEBUG_DIR "/sci%u/%s", adapter_index(i),
		 name);
	f = fopen(path, "re");
	while (f && fgets(line, sizeof(line), f))
		n++;
	if (f)
		fclose(f);
	return n;
}

static void count_segments(unsigned int i, struct counts *c)
{
	char path[64];
	struct dirent *e;
	DIR *dir;

	snprintf(path, sizeof(path), SYSFS_DIR "/sci%u", adapter_index(i));
	dir = opendir(path);
	while (dir && (e = readdir(dir))) {
		long long n;

		if (strncmp(e->d_name, "segment", 7))
			continue;
		n = sysfs_number(i, "%s/importers", e->d_name);
		c->segments++;
		c->importers += n > 0 ? n : 0;
	}
	if (dir)
		closedir(dir);
}

struct counts counts_of(unsigned int i)
{
	struct counts c = { 0 };

	count_segments(i, &c);
	c.att_used = sysfs_number(i, "att/used");
	c.users = sysfs_number(i, "users");
	c.objects = debug_lines(i, "objects");
	c.connections = debug_lines(i, "connections");
	c.mappings = debug_lines(i, "mappings");
	return c;
}

bool counts_equal(const struct counts *a, const struct counts *b)
{
	return !memcmp(a, b, sizeof(*a));
}

static void print_counts(unsigned int i, const char *when,
			 const struct counts *c)
{
	ksft_note("sci%u %s: %lld segments, %lld importers, %lld entries of the ATT, %lld users",
		  adapter_index(i), when, c->segments, c->importers, c->att_used,
		  c->users);
	ksft_note("... in debugfs %lld objects, %lld connections, %lld mappings",
		  c->objects, c->connections, c->mappings);
}

static bool counts_return(unsigned int i, const struct counts *was)
{
	struct counts now;

	if (HAPPENS((now = counts_of(i), counts_equal(was, &now)),
		    TEST_WAIT_MS))
		return true;
	print_counts(i, "before", was);
	print_counts(i, "after", &now);
	return false;
}

void COUNTS_BACK(unsigned int i, const struct counts *was)
{
	CHECK(counts_return(i, was));
}

/* ---- faults ---- */

static void knob_path(char path[128], unsigned int i, const char *knob)
{
	snprintf(path, 128, DEBUG_DIR "/sci%u/fault/%s", adapter_index(i), knob);
}

bool has_knob(unsigned int i, const char *knob)
{
	char path[128];

	knob_path(path, i, knob);
	return !access(path, W_OK);
}

void NEED_KNOB(const char *knob)
{
	NEED_ROOT();
	if (!has_knob(0, knob))
		SKIP("no %s/sciN/fault/%s", DEBUG_DIR, knob);
}

static int write_number(const char *path, unsigned long value)
{
	char text[32];

	snprintf(text, sizeof(text), "%lu", value);
	return write_text(path, text);
}

int knob_set(unsigned int i, const char *knob, unsigned long value)
{
	char path[128];

	knob_path(path, i, knob);
	return write_number(path, value);
}

int knob_write(unsigned int i, const char *knob, const char *text)
{
	char path[128];

	knob_path(path, i, knob);
	return write_text(path, text);
}

long long knob_get(unsigned int i, const char *knob)
{
	char path[128];

	knob_path(path, i, knob);
	return read_number(path);
}

int adapter_remove(unsigned int i)
{
	return write_number(LOOP_DIR "/" KNOB_REMOVE, adapter_node(i));
}

int node_add(unsigned int node)
{
	return write_number(LOOP_DIR "/" KNOB_ADD, node);
}

/* ---- fault injection of the kernel ---- */

/* Allow all kinds of failures, without messages in the kernel log. */
static void allow_failures(void)
{
	static const char *const settings[][2] = {
		{ "failslab/ignore-gfp-wait", "N" },
		{ "failslab/verbose", "0" },
		{ "fail_page_alloc/ignore-gfp-wait", "N" },
		{ "fail_page_alloc/ignore-gfp-highmem", "N" },
		{ "fail_page_alloc/min-order", "0" },
		{ "fail_page_alloc/verbose", "0" },
		{ "fail_usercopy/verbose", "0" },
	};

	for (unsigned int i = 0; i < ARRAY_SIZE(settings); i++) {
		char path[128];

		snprintf(path, sizeof(path), "/sys/kernel/debug/%s",
			 settings[i][0]);
		write_text(path, settings[i][1]);
	}
}

int injector_open(struct fault_injector *f)
{
	f->fd = SYS(open("/proc/thread-self/fail-nth", O_RDWR | O_CLOEXEC));
	if (f->fd >= 0)
		allow_failures();
	return f->fd;
}

void injector_arm(const struct fault_injector *f, unsigned int nth)
{
	char text[16];
	int len = snprintf(text, sizeof(text), "%u", nth);

	EQ(SYS(pwrite(f->fd, text, len, 0)), len);
}

bool injector_disarm(const struct fault_injector *f)
{
	char text[16] = "";
	ssize_t n = pread(f->fd, text, sizeof(text) - 1, 0);

	/* the write itself may fail while the injector is armed */
	while (pwrite(f->fd, "0", 1, 0) != 1)
		;
	return n <= 0 || atoi(text) == 0;
}

/* ---- around each test ---- */

static struct counts before[ADAPTERS_MAX];

static bool is_there(unsigned int i)
{
	int fd = adapter_open(i);

	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

/*
 * Each node probes itself and ASKED nodes behind it. A probe tests both directions,
 * so all pairs of the first four nodes are probed; most tests use only these.
 */
#define ASKED	3u

static bool next_answer(unsigned int i, const bool *there)
{
	int fd = adapter_open(i);
	bool all = true;

	for (unsigned int k = 0; k <= ASKED && fd >= 0 && all; k++) {
		unsigned int j = (i + k) % adapters();

		all = !there[j] || !adapter_probe(fd, adapter_node(j));
	}
	if (fd >= 0)
		close(fd);
	return all;
}

bool nodes_answer(void)
{
	bool there[ADAPTERS_MAX] = { false }, all = true;

	for (unsigned int i = 0; i < adapters(); i++)
		there[i] = is_there(i);
	for (unsigned int i = 0; i < adapters() && all; i++)
		all = next_answer(i, there);
	return all;
}

/* Knobs that do not exist are ignored. */
void faults_end(void)
{
	static const char *const faults[] = {
		KNOB_LOSS, KNOB_DUPLICATE, KNOB_REORDER, KNOB_DMA_ERRORS,
		KNOB_DAMAGE,
		KNOB_WITHHOLD, KNOB_HOLD_UNMAP,
	};

	write_text("/sys/kernel/debug/failslab/probability", "0");
	for (unsigned int i = 0; i < adapters(); i++) {
		for (unsigned int k = 0; k < ARRAY_SIZE(faults); k++)
			knob_set(i, faults[k], 0);
		knob_write(i, KNOB_PATCH, "0 0 0 0");
		knob_set(i, KNOB_LINK, 1);
	}
}

/* Bring back all nodes that a failed test has removed, and end its faults. */
static void calm(void)
{
	faults_end();
	for (unsigned int i = 0; i < adapters(); i++)
		if (!is_there(i))
			node_add(adapter_node(i));
	if (!HAPPENS(nodes_answer(), TEST_WAIT_MS))
		ksft_note("nodes that are there do not answer");
}

static const char *missing(void)
{
	adapters_find();
	return adapters() ? NULL : "no " DEV_DIR "/sciN, or no right to open it";
}

static void before_test(void)
{
	adapters_find();
	calm();
	for (unsigned int i = 0; i < adapters(); i++)
		before[i] = counts_of(i);
}

static bool after_test(void)
{
	bool clean = true;

	calm();
	for (unsigned int i = 0; i < adapters(); i++) {
		if (!is_there(i))
			continue;	/* removed, or at another place */
		if (!counts_return(i, &before[i]))
			clean = false;
	}
	return clean;
}

const struct ksft_hooks ksft_hooks = {
	.missing = missing,
	.before = before_test,
	.after = after_test,
};
