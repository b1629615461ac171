// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/*
 * Test what all ioctls have in common: size of the structure, flags, reserved
 * fields, pointers, kinds of descriptors, and that a failed call changes nothing.
 * Each test runs over the table of ioctls in ioctls.c.
 */
#include <fcntl.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "ioctls.h"

#define GARBAGE		0xa5
#define ROOM		(2 * PAGE)

/* The objects that one ioctl is called with. @room holds a valid argument. */
struct setting {
	const struct sci_call *call;
	struct world world;
	__u32 shared_id;		/* ID of the local segment, which is shared */
	__u32 number;			/* number of interrupt @numbered */
	unsigned char *room;		/* ROOM bytes, then an unmapped page */
	unsigned char *copy;		/* copy of @room from before a call */
	void *memory;
	size_t length;
	int empty;			/* descriptor of a segment without memory, or -1 */
	int dmabuf;			/* descriptor of a dma-buf, or -errno */
	int numbered;			/* descriptor of an interrupt */
};

static __u64 valid_value(const struct setting *s, enum sci_value value)
{
	const struct world *w = &s->world;

	switch (value) {
	case V_SIZE:
		return s->call->size;
	case V_OUT:
	case V_OUT_FD:
		return GARBAGE * 0x0101010101010101u;
	case V_ID:
		if (s->call->cmd == SCI_IOC_CONNECT)
			return w->pair.id;
		return s->call->cmd == SCI_IOC_SEGMENT_ATTACH ? s->shared_id :
								0xabcd;
	case V_NODE:
		return w->pair.node;
	case V_TIMEOUT:
		return TEST_WAIT_MS;
	case V_MODE:
		return 0600;
	case V_NUMA:
		return (__u64)-1;
	case V_LENGTH:
		/* the memory is not of a segment */
		return s->call->cmd == SCI_IOC_CACHE ? 0 : s->length;
	case V_ADDR:
		return (uintptr_t)s->memory;
	case V_NUMBER:
		return s->number;
	case V_PIECES:
		return 16;
	case V_LOCAL_FD:
		return w->fd[KIND_LOCAL];
	case V_REMOTE_FD:
		return w->fd[KIND_REMOTE];
	case V_VECS:
		return (uintptr_t)&w->vec;
	case V_NR_VECS:
		return 1;
	case V_DMABUF:
		return (__u32)s->dmabuf;
	default:
		return 0;
	}
}

static void write_valid(const struct setting *s, void *arg)
{
	const struct sci_field *f = s->call->field;

	for (; f->value != V_END; f++)
		field_set(arg, f, valid_value(s, f->value));
	/* SCI_DMA_WAIT: a transfer that is waited for leaves no event in the queue */
	if (s->call->cmd == SCI_IOC_DMA_SUBMIT)
		((struct sci_ioc_dma_submit *)arg)->flags = SCI_DMA_WAIT;
}

static void setting_open(struct setting *s, const struct sci_call *call)
{
	struct sci_ioc_segment_info info;

	memset(s, 0, sizeof(*s));
	s->call = call;
	s->world = WORLD();
	s->length = 2 * PAGE;
	s->memory = user_memory(s->length);
	s->room = user_memory(ROOM + PAGE);
	OK(sci_unmap(s->room + ROOM, PAGE));
	s->copy = user_memory(ROOM);

	OK(segment_share(s->world.fd[KIND_LOCAL]));
	OK(segment_info(s->world.fd[KIND_LOCAL], &info));
	s->shared_id = info.out_id;
	s->empty = -1;
	if (adapter_can(s->world.pair.near, SCI_CAP_REGISTER))
		s->empty = OK(segment_create_as(s->world.fd[KIND_ADAPTER], 1, s->length,
						0600, SCI_SEGMENT_AUTO_ID |
						SCI_SEGMENT_EMPTY));
	s->dmabuf = segment_get_dmabuf(s->world.fd[KIND_LOCAL]);
	s->numbered = OK(intr_create(s->world.pair.exporter, 0, &s->number));
	write_valid(s, s->room);
}

static void setting_close(struct setting *s)
{
	OK(SYS(close(s->numbered)));
	if (s->dmabuf >= 0)
		OK(SYS(close(s->dmabuf)));
	if (s->empty >= 0)
		OK(SYS(close(s->empty)));
	world_close(&s->world);
	OK(sci_unmap(s->room, ROOM));
	OK(sci_unmap(s->copy, ROOM));
	OK(sci_unmap(s->memory, s->length));
}

/* Return whether the call gives memory to a segment. */
static bool gives_memory(const struct setting *s)
{
	return s->call->cmd == SCI_IOC_SEGMENT_REGISTER ||
	       s->call->cmd == SCI_IOC_SEGMENT_REGISTER_DMABUF;
}

/* Replace @s->empty: a segment takes memory once. */
static void another_empty(struct setting *s)
{
	int fd = OK(segment_create_as(s->world.fd[KIND_ADAPTER], 1, s->length,
				      0600, SCI_SEGMENT_AUTO_ID |
				      SCI_SEGMENT_EMPTY));

	OK(SYS(dup3(fd, s->empty, O_CLOEXEC)));
	OK(SYS(close(fd)));
}

/* Return a descriptor that the call works on, or -1 if the adapter has none. */
static int target(const struct setting *s)
{
	if (gives_memory(s))
		return s->empty;
	for (unsigned int kind = 0; kind < KINDS; kind++)
		if (s->call->kinds & (1u << kind))
			return s->world.fd[kind];
	return -1;
}

static bool can_call(const struct setting *s)
{
	if (s->call->cmd == SCI_IOC_DMA_CREATE)
		return s->world.fd[KIND_DMA] >= 0;
	if (s->call->cmd == SCI_IOC_SEGMENT_GET_DMABUF)
		return s->dmabuf >= 0;
	if (s->call->cmd == SCI_IOC_SEGMENT_REGISTER_DMABUF && s->dmabuf < 0)
		return false;
	if (s->call->cmd == SCI_IOC_CACHE)
		return adapter_can(s->world.pair.near, SCI_CAP_CHECKED);
	if (gives_memory(s))
		return adapter_can(s->world.pair.near, SCI_CAP_REGISTER);
	return target(s) >= 0;
}

/* Make the call. Then close the descriptor that it returned, or renew @s->empty. */
static int attempt(struct setting *s, void *arg)
{
	const struct sci_field *out = call_field(s->call, V_OUT_FD);
	int ret = xioctl(target(s), s->call->cmd, arg);

	if (ret < 0)
		return ret;
	if (out) {
		int fd = (int)field_get(arg, out);

		if (fcntl(fd, F_GETFD) != FD_CLOEXEC)
			FAIL("%s: no descriptor, or one that survives exec",
			     s->call->name);
		OK(SYS(close(fd)));
	}
	if (gives_memory(s))
		another_empty(s);
	return ret;
}

static void must(struct setting *s, void *arg, int want, const char *when)
{
	int ret;

	memcpy(s->copy, s->room, ROOM);
	ret = attempt(s, arg);
	if (ret != -want)
		FAIL("%s, %s: expected %s, got %s", s->call->name, when,
		     ksft_errname(want), ksft_errname(-ret));
	if (ret < 0 && memcmp(s->copy, s->room, ROOM) != 0)
		FAIL("%s, %s: failed, but wrote", s->call->name, when);
}

/* Run @fn for each ioctl that the adapter supports. */
static void each_call(void (*fn)(struct setting *s))
{
	for (unsigned int i = 0; i < sci_ncalls; i++) {
		struct counts was = counts_of(0);
		unsigned int fds = ksft_count_fds();
		struct setting s;

		setting_open(&s, &sci_calls[i]);
		if (can_call(&s))
			fn(&s);
		else
			ksft_note("%s: not here", s.call->name);
		setting_close(&s);
		EQ(ksft_count_fds(), fds);
		COUNTS_BACK(0, &was);
	}
}

/* ---- structures ---- */

TEST(no_hole_in_a_structure)
{
	for (unsigned int i = 0; i < sci_ncalls; i++) {
		const struct sci_call *c = &sci_calls[i];
		unsigned int end = 0;

		for (const struct sci_field *f = c->field; f->value; f++) {
			if (f->offset != end)
				FAIL("%s: a hole at %u", c->name, end);
			end += f->size;
		}
		EQ(end, c->size);
		CHECK(c->size <= CALL_SIZE_MAX);
	}
}

static void exact(struct setting *s)
{
	must(s, s->room, 0, "exact size");
}

TEST(the_exact_size)
{
	each_call(exact);
}

static void shorter(struct setting *s)
{
	unsigned int size = s->call->size;
	const unsigned int sizes[] = { 0, 1, 4, 7, size - 8, size - 4, size - 1 };

	for (unsigned int i = 0; i < ARRAY_SIZE(sizes); i++) {
		*(__u32 *)s->room = sizes[i];
		must(s, s->room, EINVAL, "too short");
	}
}

TEST(a_shorter_structure_is_EINVAL)
{
	each_call(shorter);
}

static void longer_zero(struct setting *s)
{
	const unsigned int sizes[] = {
		s->call->size + 1, s->call->size + 8, 512, PAGE,
	};

	for (unsigned int i = 0; i < ARRAY_SIZE(sizes); i++) {
		write_valid(s, s->room);
		*(__u32 *)s->room = sizes[i];
		must(s, s->room, 0, "longer and zero");
		if (!all_zero(s->room + s->call->size, PAGE))
			FAIL("%s wrote behind its structure", s->call->name);
	}
}

TEST(a_longer_structure_of_zeros_is_accepted)
{
	each_call(longer_zero);
}

static void longer_nonzero(struct setting *s)
{
	unsigned int size = s->call->size;
	const unsigned int places[] = { size, size + 1, size + 7, size + 99 };

	for (unsigned int i = 0; i < ARRAY_SIZE(places); i++) {
		*(__u32 *)s->room = size + 100;
		s->room[places[i]] = 1;
		must(s, s->room, E2BIG, "longer and not zero");
		s->room[places[i]] = 0;
	}
	/* the kernel does not read beyond the size that the structure states */
	*(__u32 *)s->room = size;
	s->room[size] = 1;
	must(s, s->room, 0, "exact size, with something behind it");
}

TEST(a_longer_structure_of_more_is_E2BIG)
{
	each_call(longer_nonzero);
}

static void huge(struct setting *s)
{
	const __u32 sizes[] = { 1u << 20, 0x7fffffffu, 0xffffffffu };

	/* a size above one page is refused even if all bytes are zero */
	*(__u32 *)s->room = PAGE + 1;
	must(s, s->room, E2BIG, "more than a page");
	for (unsigned int i = 0; i < ARRAY_SIZE(sizes); i++) {
		int ret;

		*(__u32 *)s->room = sizes[i];
		ret = attempt(s, s->room);
		if (ret != -E2BIG && ret != -EFAULT)
			FAIL("%s of %u bytes: %s", s->call->name, sizes[i],
			     ksft_errname(-ret));
	}
}

TEST(a_huge_structure_is_refused)
{
	each_call(huge);
}

/* ---- fields ---- */

static void unknown_flags(struct setting *s)
{
	struct sci_ioc_flush *head = (void *)s->room;
	__u32 usual = head->flags;

	for (unsigned int bit = 0; bit < 32; bit++) {
		if (s->call->flags & (1u << bit))
			continue;
		head->flags = usual | 1u << bit;
		must(s, s->room, EOPNOTSUPP, "a flag that does not exist");
	}
}

TEST(unknown_flags_are_EOPNOTSUPP)
{
	each_call(unknown_flags);
}

static void reserved_fields(struct setting *s)
{
	const struct sci_field *f = call_field(s->call, V_RESERVED);

	if (!f)
		return;
	for (unsigned int bit = 0; bit < 8u * f->size; bit += 5) {
		field_set(s->room, f, 1ull << bit);
		must(s, s->room, EINVAL, "a reserved field");
	}
}

TEST(reserved_fields_are_EINVAL)
{
	each_call(reserved_fields);
}

/* ---- pointers ---- */

static void bad_pointers(struct setting *s)
{
	unsigned char *end = s->room + ROOM;
	void *closed = user_memory(PAGE);

	OK(SYS(mprotect(closed, PAGE, PROT_NONE)));
	must(s, NULL, EFAULT, "NULL");
	must(s, (void *)-1L, EFAULT, "-1");
	must(s, KERNEL_ADDRESS, EFAULT, "a kernel's address");
	must(s, closed, EFAULT, "memory that can't be read");
	/* the size field is readable, the rest of the structure is not */
	memcpy(end - 4, &s->call->size, 4);
	must(s, end - 4, EFAULT, "half a structure");
	must(s, end, EFAULT, "no structure");
	/* a structure that ends at the end of the map, then one that is longer */
	write_valid(s, end - s->call->size);
	must(s, end - s->call->size, 0, "up to the end of memory");
	write_valid(s, end - s->call->size);
	*(__u32 *)(end - s->call->size) = s->call->size + 8;
	must(s, end - s->call->size, EFAULT, "beyond the end of memory");
	OK(sci_unmap(closed, PAGE));
}

TEST(bad_pointers_are_EFAULT)
{
	each_call(bad_pointers);
}

static void no_results(struct setting *s)
{
	bool has_results = call_field(s->call, V_OUT) ||
			   call_field(s->call, V_OUT_FD);
	unsigned int fds = ksft_count_fds();
	struct counts was = counts_of(0);

	/* a call without results does not write to the structure */
	OK(SYS(mprotect(s->room, ROOM, PROT_READ)));
	must(s, s->room, has_results ? EFAULT : 0,
	     "in memory that can't be written");
	OK(SYS(mprotect(s->room, ROOM, RW)));
	EQ(ksft_count_fds(), fds);
	if (has_results)
		COUNTS_BACK(0, &was);
	must(s, s->room, 0, "once it can");
}

TEST(results_that_can_not_be_written)
{
	each_call(no_results);
}

/* ---- descriptors ---- */

static void wrong_kinds(struct setting *s)
{
	for (unsigned int kind = 0; kind < KINDS; kind++) {
		int fd = s->world.fd[kind], ret;

		if (fd < 0 || s->call->kinds & (1u << kind))
			continue;
		ret = xioctl(fd, s->call->cmd, s->room);
		if (ret != -ENOTTY)
			FAIL("%s on a descriptor of kind %u: %s",
			     s->call->name, kind, ksft_errname(-ret));
	}
}

TEST(ioctls_of_other_objects_are_ENOTTY)
{
	each_call(wrong_kinds);
}

static bool is_a_call(unsigned int nr, unsigned int kind)
{
	for (unsigned int i = 0; i < sci_ncalls; i++)
		if (_IOC_NR(sci_calls[i].cmd) == nr &&
		    sci_calls[i].kinds & (1u << kind))
			return true;
	return false;
}

static void unknown_numbers(int fd, unsigned int kind, void *arg)
{
	for (unsigned int nr = 0; nr < 256; nr++) {
		if (!is_a_call(nr, kind))
			FAILS(xioctl(fd, _IO(SCI_IOC_MAGIC, nr), arg), ENOTTY);
		FAILS(xioctl(fd, _IO(SCI_IOC_MAGIC + 1, nr), arg), ENOTTY);
		FAILS(xioctl(fd, _IOWR(SCI_IOC_MAGIC, nr, __u64), arg), ENOTTY);
	}
}

TEST(other_numbers_are_ENOTTY)
{
	struct world w = WORLD();
	void *arg = user_memory(PAGE);

	*(__u32 *)arg = 8;
	for (unsigned int kind = 0; kind < KINDS; kind++)
		if (w.fd[kind] >= 0)
			unknown_numbers(w.fd[kind], kind, arg);
}

static void no_descriptor(struct setting *s)
{
	struct rlimit limit, usual;
	unsigned int fds;

	if (!call_field(s->call, V_OUT_FD))
		return;
	OK(SYS(getrlimit(RLIMIT_NOFILE, &usual)));
	fds = ksft_count_fds();
	limit = usual;
	limit.rlim_cur = 3;
	OK(SYS(setrlimit(RLIMIT_NOFILE, &limit)));
	must(s, s->room, EMFILE, "no descriptor is free");
	OK(SYS(setrlimit(RLIMIT_NOFILE, &usual)));
	EQ(ksft_count_fds(), fds);
	must(s, s->room, 0, "once one is");
}

TEST(no_free_descriptor_is_EMFILE)
{
	each_call(no_descriptor);
}

static void nothing_to_read(int fd)
{
	char byte;

	OK(SYS(fcntl(fd, F_SETFL, O_NONBLOCK)));
	FAILS_SOMEHOW(SYS(write(fd, "", 1)));
	FAILS_SOMEHOW(SYS(pread(fd, &byte, 1, 0)));
	FAILS_SOMEHOW(SYS(ftruncate(fd, 0)));
}

/* A descriptor has no bytes: write(), pread() and ftruncate() fail. */
TEST(objects_are_not_files_of_bytes)
{
	struct world w = WORLD();

	for (unsigned int kind = 0; kind < KINDS; kind++)
		if (w.fd[kind] >= 0)
			nothing_to_read(w.fd[kind]);
}
