// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/* Test which users may connect and attach: modes have the meaning of file modes. */
#include <fcntl.h>
#include <grp.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ioctls.h"

#define OWNER		1000
#define OTHER		1001
#define OWNERS_GROUP	2000
#define OTHER_GROUP	3000
#define GROUPS_TOLD	7

static int importer, exporter;
static __u32 node;

static void begin(void)
{
	unsigned int far = adapters() > 1 ? 1 : 0;

	NEED_ROOT();
	importer = OK(adapter_open(0));
	exporter = OK(adapter_open(far));
	node = adapter_node(far);
}

/* Change the effective user; the real and saved user stay root. */
static void act_as(uid_t uid, gid_t gid, const gid_t *groups, size_t n)
{
	OK(SYS(seteuid(0)));
	OK(SYS(setgroups(n, groups)));
	OK(SYS(setegid(gid)));
	OK(SYS(seteuid(uid)));
}

static void act_as_root(void)
{
	act_as(0, 0, NULL, 0);
}

static int owners_segment(__u32 mode)
{
	int fd;

	act_as(OWNER, OWNERS_GROUP, NULL, 0);
	fd = OK(segment_create_as(exporter, 1, PAGE, mode, 0));
	OK(segment_export(fd));
	OK(segment_share(fd));
	act_as_root();
	return fd;
}

/* ---- the matrix ---- */

/* A caller, and the shift of the three mode bits that apply to it; -1: root. */
struct caller {
	const char *name;
	uid_t uid;
	gid_t gid;
	gid_t groups[GROUPS_TOLD];
	size_t ngroups;
	int shift;
};

static const struct caller callers[] = {
	{ "root", 0, 0, { 0 }, 0, -1 },
	{ "the owner", OWNER, OWNERS_GROUP, { 0 }, 0, 6 },
	{ "the owner, in another group", OWNER, OTHER_GROUP, { 0 }, 0, 6 },
	{ "the group", OTHER, OWNERS_GROUP, { 0 }, 0, 3 },
	{ "first supplementary group", OTHER, OTHER_GROUP,
	  { OWNERS_GROUP, 1, 2 }, 3, 3 },
	{ "last supplementary group", OTHER, OTHER_GROUP,
	  { 1, 2, 3, 4, 5, 6, OWNERS_GROUP }, GROUPS_TOLD, 3 },
	{ "others", OTHER, OTHER_GROUP, { 1, 2 }, 2, 0 },
};

static __u32 access_of(const struct caller *c, __u32 mode)
{
	return c->shift < 0 ? 6 : mode >> c->shift & 6;
}

static void try_connect(const struct caller *c, __u32 mode)
{
	__u32 access = access_of(c, mode);
	struct sci_ioc_remote_info info;
	int fd;

	act_as(c->uid, c->gid, c->groups, c->ngroups);
	fd = remote_connect(importer, node, 1);
	act_as_root();
	if (!(access & 4)) {
		if (fd != -EACCES)
			FAIL("mode %04o, %s: connected", mode, c->name);
		return;
	}
	if (fd < 0)
		FAIL("mode %04o, %s: %s", mode, c->name, ksft_errname(-fd));
	OK(remote_info(fd, &info));
	if (info.out_access != access)
		FAIL("mode %04o, %s: access is %u", mode, c->name,
		     info.out_access);
	close(fd);
}

static void try_attach(const struct caller *c, __u32 mode)
{
	bool may = access_of(c, mode) == 6;
	int fd;

	act_as(c->uid, c->gid, c->groups, c->ngroups);
	fd = segment_attach(exporter, 1);
	act_as_root();
	if (may != (fd >= 0))
		FAIL("mode %04o, %s: attach: %s", mode, c->name,
		     fd < 0 ? ksft_errname(-fd) : "allowed");
	if (!may)
		FAILS(fd, EACCES);
	else
		close(fd);
}

static void each_mode(void (*try)(const struct caller *c, __u32 mode))
{
	for (unsigned int i = 0; i < 64; i++) {
		__u32 mode = (i & 3) << 1 | (i >> 2 & 3) << 4 |
			     (i >> 4 & 3) << 7;
		int fd = owners_segment(mode);

		for (unsigned int c = 0; c < ARRAY_SIZE(callers); c++)
			try(&callers[c], mode);
		close(fd);
	}
}

TEST(connecting_follows_the_mode)
{
	begin();
	each_mode(try_connect);
}

TEST(attaching_needs_both_bits)
{
	begin();
	each_mode(try_attach);
}

/* ---- groups, users and namespaces ---- */

static const gid_t eight_groups[] = { 1, 2, 3, 4, 5, 6, 7, OWNERS_GROUP };

TEST(other_nodes_are_told_of_seven_groups)
{
	int local;

	NEED_ADAPTERS(2);
	begin();
	local = owners_segment(0060);
	act_as(OTHER, OTHER_GROUP, eight_groups, ARRAY_SIZE(eight_groups));
	FAILS(remote_connect(importer, node, 1), EACCES);
	act_as_root();
	close(local);
}

TEST(the_own_node_knows_all_groups)
{
	struct sci_ioc_remote_info info;
	int local, fd;
	__u32 line;

	begin();
	local = owners_segment(0060);
	act_as(OWNER, OWNERS_GROUP, NULL, 0);
	OK(intr_create_as(exporter, 0, &line, 0020));
	act_as(OTHER, OTHER_GROUP, eight_groups, ARRAY_SIZE(eight_groups));
	close(OK(segment_attach(exporter, 1)));
	fd = OK(remote_connect(exporter, node, 1));
	OK(remote_info(fd, &info));
	EQ(info.out_access, 6);
	close(OK(intr_connect(exporter, node, line, 0)));
	act_as_root();
	close(fd);
	close(local);
}

/* If the group's bits grant less than those of others, the group's bits apply. */
TEST(an_eighth_group_of_the_own_node_is_not_others)
{
	int local;

	begin();
	local = owners_segment(0606);
	act_as(OTHER, OTHER_GROUP, eight_groups, ARRAY_SIZE(eight_groups));
	FAILS(segment_attach(exporter, 1), EACCES);
	FAILS(remote_connect(exporter, node, 1), EACCES);
	act_as_root();
	close(local);
}

TEST(root_without_the_capability_is_a_user_like_others)
{
	struct sci_ioc_remote_info info;
	int local, fd;

	begin();
	local = owners_segment(0604);
	may_override(false);
	FAILS(segment_attach(exporter, 1), EACCES);
	for (unsigned int i = 0; i < 2; i++) {
		fd = OK(remote_connect(i ? importer : exporter, node, 1));
		OK(remote_info(fd, &info));
		EQ(info.out_access, 4);
		close(fd);
	}
	may_override(true);
	close(OK(segment_attach(exporter, 1)));
	close(local);
}

TEST(the_capability_is_enough_for_any_user)
{
	struct sci_ioc_remote_info info;
	int local, fd;

	begin();
	local = owners_segment(0);
	act_as(OTHER, OTHER_GROUP, NULL, 0);
	FAILS(segment_attach(exporter, 1), EACCES);
	may_override(true);
	close(OK(segment_attach(exporter, 1)));
	for (unsigned int i = 0; i < 2; i++) {
		fd = OK(remote_connect(i ? importer : exporter, node, 1));
		OK(remote_info(fd, &info));
		EQ(info.out_access, 6);
		close(fd);
	}
	act_as_root();
	close(local);
}

TEST(the_effective_user_counts)
{
	int local;

	begin();
	local = owners_segment(0600);
	OK(SYS(setresuid(0, OTHER, 0)));
	FAILS(remote_connect(importer, node, 1), EACCES);
	OK(SYS(seteuid(0)));
	OK(SYS(setresuid(OTHER, OWNER, 0)));
	close(OK(remote_connect(importer, node, 1)));
	OK(SYS(seteuid(0)));
	close(local);
}

/* User 0 of a user namespace has no rights outside it. */
TEST(root_of_a_namespace_is_not_root)
{
	pid_t pid;
	int local;

	begin();
	local = owners_segment(0600);
	pid = ksft_fork();
	if (pid == 0) {
		OK(SYS(setgroups(0, NULL)));
		OK(SYS(setresgid(OTHER_GROUP, OTHER_GROUP, OTHER_GROUP)));
		OK(SYS(setresuid(OTHER, OTHER, OTHER)));
		/* give the files in /proc of this process back to it */
		prctl(PR_SET_DUMPABLE, 1);
		if (unshare(CLONE_NEWUSER) ||
		    write_text("/proc/self/uid_map", "0 1001 1"))
			_exit(KSFT_SKIP);
		EQ(geteuid(), 0);
		FAILS(remote_connect(importer, node, 1), EACCES);
		exit(0);
	}
	if (WEXITSTATUS(ksft_wait(pid)) == KSFT_SKIP)
		SKIP("no user namespaces");
	close(local);
}

TEST(what_was_connected_may_be_handed_on)
{
	volatile uint32_t *p;
	int local, fd;

	begin();
	local = owners_segment(0600);
	fd = OK(remote_connect(importer, node, 1));
	peer_become(OTHER, OTHER_GROUP);
	FAILS(remote_connect(importer, node, 1), EACCES);
	p = MAP(fd, 0, PAGE, RW);
	p[0] = 1;
	close(local);
}

TEST(a_mode_is_judged_when_connecting)
{
	volatile uint32_t *p;
	int local, fd;

	begin();
	local = owners_segment(0666);
	act_as(OTHER, OTHER_GROUP, NULL, 0);
	fd = OK(remote_connect(importer, node, 1));
	act_as_root();
	OK(segment_unexport(local, SCI_UNEXPORT_HOW_QUIET));
	p = MAP(fd, 0, PAGE, RW);
	p[0] = 1;
	close(local);
}

/* ---- read-only imports ---- */

static int read_only(int *local)
{
	int fd;

	*local = owners_segment(0644);
	act_as(OTHER, OTHER_GROUP, NULL, 0);
	fd = OK(remote_connect(importer, node, 1));
	act_as_root();
	return fd;
}

TEST(a_read_only_import_is_mapped_for_reading)
{
	volatile uint32_t *p, *here;
	int fd, local;

	begin();
	fd = read_only(&local);
	FAILS(sci_map(fd, 0, PAGE, RW), EACCES);
	FAILS(sci_map(fd, 0, PAGE, PROT_WRITE), EACCES);
	p = MAP(fd, 0, PAGE, PROT_READ);
	FAILS(SYS(mprotect((void *)p, PAGE, RW)), EACCES);
	FAILS(SYS(mprotect((void *)p, PAGE, PROT_WRITE)), EACCES);
	here = MAP(local, 0, PAGE, RW);
	here[0] = 5;
	EQ(p[0], 5);
}

TEST(the_kernel_does_not_write_it_either)
{
	volatile uint32_t *p;
	int fd, local, mem, zero;

	begin();
	zero = OK(SYS(open("/dev/zero", O_RDONLY | O_CLOEXEC)));
	fd = read_only(&local);
	p = MAP(fd, 0, PAGE, PROT_READ);
	mem = OK(SYS(open("/proc/self/mem", O_RDWR | O_CLOEXEC)));
	FAILS_SOMEHOW(SYS(pwrite(mem, "x", 1, (off_t)(uintptr_t)p)));
	FAILS(SYS(read(zero, (void *)p, 4)), EFAULT);
	EQ(p[0], 0);
}

TEST(dma_does_not_write_it_either)
{
	int fd, local, mine, queue;
	volatile uint32_t *here;

	begin();
	NEED_CAP(SCI_CAP_DMA);
	fd = read_only(&local);
	here = MAP(local, 0, PAGE, RW);
	mine = OK(segment_private(importer, PAGE));
	fill(MAP(mine, 0, PAGE, RW), PAGE, 1);
	queue = OK(dma_create(importer, 4));
	FAILS(dma_move(queue, SCI_DMA_WAIT, mine, fd, PAGE), EACCES);
	CHECK(all_zero(here, PAGE));
	fill(here, PAGE, 2);
	OK(dma_move(queue, SCI_DMA_WAIT | SCI_DMA_PULL, mine, fd, PAGE));
	CHECK(filled(MAP(mine, 0, PAGE, RW), PAGE, 2));
}

/* ---- interrupts ---- */

static __u32 number;

static void try_intr(const struct caller *c, __u32 mode)
{
	int fd;

	act_as(c->uid, c->gid, c->groups, c->ngroups);
	fd = intr_connect(importer, node, number, 0);
	act_as_root();
	if ((fd >= 0) != !!(access_of(c, mode) & 2))
		FAIL("mode %04o, %s: %s", mode, c->name,
		     fd < 0 ? ksft_errname(-fd) : "connected");
	if (fd >= 0)
		close(fd);
	else
		FAILS(fd, EACCES);
}

TEST(connecting_to_interrupts_needs_the_w_bit)
{
	const __u32 modes[] = {
		0, 0200, 0020, 0002, 0222, 0400, 0444, 0420, 0624, 0660, 0666,
	};

	begin();
	for (unsigned int i = 0; i < ARRAY_SIZE(modes); i++) {
		int fd;

		act_as(OWNER, OWNERS_GROUP, NULL, 0);
		fd = OK(intr_create_as(exporter, 0, &number, modes[i]));
		act_as_root();
		for (unsigned int c = 0; c < ARRAY_SIZE(callers); c++)
			try_intr(&callers[c], modes[i]);
		close(fd);
	}
}

TEST(the_first_owners_mode_counts)
{
	const __u32 flags = SCI_INTR_FIXED_NUMBER | SCI_INTR_SHARE_NUMBER;

	begin();
	number = 40;
	act_as(OWNER, OWNERS_GROUP, NULL, 0);
	OK(intr_create_as(exporter, flags, &number, 0600));
	OK(intr_create_as(exporter, flags, &number, 0666));
	act_as(OTHER, OTHER_GROUP, NULL, 0);
	FAILS(intr_connect(importer, node, number, 0), EACCES);
	act_as_root();
}

/* ---- an adapter opened for reading only or writing only ---- */

static int importer_as(int flags)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", importer);
	return SYS(open(path, flags | O_CLOEXEC));
}

TEST(errors_are_read_by_who_may_only_read)
{
	volatile struct sci_status_page *status;
	int fd;

	begin();
	fd = OK(importer_as(O_RDONLY));
	status = MAP(fd, SCI_MMAP_STATUS, PAGE, PROT_READ);
	EQ(status->down, 0);
	FAILS(sci_map(fd, SCI_MMAP_STATUS, PAGE, PROT_READ | PROT_WRITE),
	      EACCES);
	FAILS(SYS(mprotect((void *)(uintptr_t)status, PAGE,
			   PROT_READ | PROT_WRITE)), EACCES);
}

TEST(an_adapter_is_looked_at_by_who_may_only_read)
{
	struct sci_ioc_check check = { 0 };
	struct sci_ioc_counters counters;
	struct sci_ioc_query query;
	int fd;

	begin();
	fd = OK(importer_as(O_RDONLY));
	OK(adapter_query(fd, &query));
	OK(adapter_counters(fd, &counters));
	OK(sci_check(fd, &check));
	OK(sci_flush(fd));
}

TEST(nothing_is_done_by_who_may_only_read)
{
	const unsigned long looks[] = {
		SCI_IOC_QUERY, SCI_IOC_COUNTERS, SCI_IOC_CHECK, SCI_IOC_FLUSH,
	};
	int fd;

	begin();
	fd = OK(importer_as(O_RDONLY));
	FAILS(segment_create(fd, 1, PAGE), EBADF);
	FAILS(adapter_probe(fd, node), EBADF);
	for (unsigned int i = 0; i < sci_ncalls; i++) {
		unsigned long cmd = sci_calls[i].cmd;
		bool look = false;

		for (unsigned int j = 0; j < ARRAY_SIZE(looks); j++)
			look = look || cmd == looks[j];
		if (!(sci_calls[i].kinds & 1u << KIND_ADAPTER))
			FAILS(xioctl(fd, cmd, NULL), ENOTTY);
		else
			FAILS(xioctl(fd, cmd, NULL), look ? EFAULT : EBADF);
	}
}

TEST(writing_is_enough_for_all_but_maps)
{
	int fd, local;

	begin();
	fd = OK(importer_as(O_WRONLY));
	local = OK(segment_create(fd, 1, PAGE));
	/* a segment created through it has all rights of its creator */
	WORD(MAP(local, 0, PAGE, RW), 0) = 1;
	FAILS(sci_map(fd, SCI_MMAP_STATUS, PAGE, PROT_READ), EACCES);
}
