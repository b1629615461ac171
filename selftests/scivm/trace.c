// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/* SCI_VM_TRACE and SCI_VM_REPORT: the trace and the report name pages and their events. */

#include "selftests/scivm/scivm.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>

static unsigned int count_words(const char *text, const char *word)
{
	unsigned int n = 0;

	while ((text = strstr(text, word))) {
		text++;
		n++;
	}
	return n;
}

_Alignas(PAGE) uint32_t a_shared_variable[PAGE / 4];

static void write_traces(void)
{
	struct sci_vm_attr attr = { .size = sizeof(attr), .mode = SCI_VM_CACHE };
	struct sci_vm_range r = { .size = sizeof(r), .policy = SCI_VM_HOME, .page = PAGE };
	struct member m;
	char path[PATH_MAX];
	const char *text;
	int fd, saved, err;
	uint32_t *p;

	snprintf(path, sizeof(path), "%s/trace", test_dir());
	setenv("SCI_VM_TRACE", path, 1);
	setenv("SCI_VM_REPORT", "3", 1);
	member_open(&m, &attr);
	p = alloc_for_all(&m, 8 * PAGE, &r);
	CHECK_EQ(sci_vm_adopt(m.vm, a_shared_variable, PAGE, 0, &r), 0);
	for (uint32_t i = 0; i < 5; i++) {
		a_shared_variable[(uint32_t)m.rank] += 1;
		/* a copy that is made after a release is not invalidated for it */
		CHECK_EQ(sci_team_barrier(m.team), 0);
		sync_all(&m);
	}
	if (m.rank == 1)
		p[PAGE / 4] = 1;
	snprintf(path, sizeof(path), "%s/trace.%d", test_dir(), m.rank);
	fd = open(path, O_RDONLY);
	CHECK(fd >= 0);
	err = errors_begin(&saved);
	member_close(&m);
	errors_end(saved);
	text = text_of(fd);
	CHECK_EQ(count_words(text, " diff "), m.rank ? 5 : 0);
	CHECK_EQ(count_words(text, " fetch "), m.rank ? m.rank == 1 ? 7 : 6 : 0);
	CHECK_EQ(count_words(text, " invalidate "), m.rank ? 5 : 0);
	text = text_of(err);
	CHECK_EQ(count_words(text, "a_shared_variable"), m.rank != 0);
	/* two lines of header, and a line per page */
	CHECK_EQ(count_words(text, "\n"), m.rank ? m.rank == 1 ? 4 : 3 : 0);
}

TEST(a_trace_and_a_report)
{
	ranks_run(3, 3, write_traces);
}

static void bad_report(void)
{
	struct sci_team *team;
	struct sci_vm *vm;

	CHECK_EQ(sci_team_open(&team, NULL), 0);
	setenv("SCI_VM_REPORT", "many", 1);
	CHECK_EQ(sci_vm_open(&vm, team, NULL), -EINVAL);
	unsetenv("SCI_VM_REPORT");
	setenv("SCI_VM_TRACE", "/nowhere/trace", 1);
	CHECK_EQ(sci_vm_open(&vm, team, NULL), -ENOENT);
	unsetenv("SCI_VM_TRACE");
	setenv("SCI_VM", "magic", 1);
	CHECK_EQ(sci_vm_open(&vm, team, NULL), -EINVAL);
	CHECK_EQ(sci_team_close(team), 0);
}

TEST(the_environment_is_checked)
{
	ranks_run(2, 2, bad_report);
}
