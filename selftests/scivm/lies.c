// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/* Member 1 sends false answers and requests to member 0: calls fail, and change no memory. */

#include "selftests/scivm/scivm.h"

#include "libsci/msg/endpoint.h"
#include "libsci/vm/internal.h"

#define PAGES	16u

struct lie {
	enum vm_op asked;		/* the request that gets the false answer */
	enum vm_op answer;
	int32_t value;
	size_t len;			/* bytes behind the answer */
};

/* ---- member 1 ---- */

static const struct lie *lie;
static struct msg_handler honest;	/* the handler of the library */
static struct vm_wire wire;		/* the false answer, except for its value */

static void lie_handle(void *arg, const struct sci_handled *m)
{
	static const uint8_t bytes[64];

	if ((enum vm_op)(m->tag >> 56) != lie->asked) {
		honest.fn(arg, m);
		return;
	}
	wire.value = lie->value;
	vm_send(arg, 0, lie->answer, m->tag & ((1ull << 56) - 1), &wire, bytes, lie->len);
}

static void lie_begin(const struct member *m, const struct lie *with)
{
	if (m->rank) {
		lie = with;
		honest = m->vm->ep->handlers[VM_HANDLER];
		CHECK_EQ(sci_handler_set(m->vm->ep, VM_HANDLER, lie_handle, m->vm), 0);
	}
	meet(m);
}

static void lie_end(const struct member *m)
{
	meet(m);
	if (m->rank)
		CHECK_EQ(sci_handler_set(m->vm->ep, VM_HANDLER, honest.fn, honest.arg), 0);
	meet(m);
}

/* ---- calls of member 0 ---- */

static int touch(const struct member *m, const uint8_t *at)
{
	return m->rank ? 0 : sci_vm_touch(m->vm, at, 1, SCI_VM_READ);
}

static void ask_for_page(void *arg)
{
	const struct sci_vm_attr cached = { .size = sizeof(cached), .mode = SCI_VM_CACHE };
	struct sci_vm_range r = kind(SCI_VM_HOME, 0);
	struct member m;
	uint8_t *p;

	r.home = 1;
	member_open(&m, &cached);
	p = alloc_for_all(&m, PAGES * PAGE, &r);
	if (m.rank)
		p[0] = 7;
	lie_begin(&m, arg);
	CHECK_EQ(touch(&m, p), m.rank ? 0 : -EPROTO);
	lie_end(&m);
	CHECK_EQ(touch(&m, p), 0);
	CHECK_EQ(p[0], 7);
	member_close(&m);
}

TEST(notices_instead_of_a_page)
{
	ranks_run_arg(2, 2, ask_for_page, &(struct lie){ VM_OP_PAGE, VM_OP_NOTICES, 1, 16 }, false);
}

TEST(an_answer_without_the_page)
{
	ranks_run_arg(2, 2, ask_for_page, &(struct lie){ VM_OP_PAGE, VM_OP_ANSWER, 0, 0 }, false);
}

/* Fill the stack below the caller: variables that the library does not initialise are no zeroes. */
__attribute__((noinline)) static void stack_fill(void)
{
	volatile uint8_t bytes[8192];

	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = 0x41;
}

static void ask_for_home(void *arg)
{
	struct sci_vm_range r = kind(SCI_VM_FIRST_TOUCH, 0);
	struct member m;
	size_t i = 0;
	uint8_t *p;

	member_open(&m, NULL);
	p = alloc_for_all(&m, PAGES * PAGE, &r);
	while (vm_page_directory(m.vm, i) != 1)
		i++;
	CHECK(i < PAGES);
	lie_begin(&m, arg);
	stack_fill();
	if (!m.rank)
		CHECK_EQ(sci_vm_home(m.vm, p + i * PAGE), -EPROTO);
	lie_end(&m);
	CHECK_EQ(sci_vm_home(m.vm, p + i * PAGE), -ENOENT);
	member_close(&m);
}

TEST(notices_instead_of_a_home)
{
	ranks_run_arg(2, 2, ask_for_home, &(struct lie){ VM_OP_HOME, VM_OP_NOTICES, 1, 0 }, false);
}

TEST(bytes_instead_of_a_home)
{
	ranks_run_arg(2, 2, ask_for_home, &(struct lie){ VM_OP_HOME, VM_OP_DATA, 1, 64 }, false);
}

static void ask_for_changes(void *arg)
{
	const struct sci_vm_attr cached = { .size = sizeof(cached), .mode = SCI_VM_CACHE };
	struct sci_vm_range r = kind(SCI_VM_HOME, 0);
	struct member m;

	member_open(&m, &cached);
	alloc_for_all(&m, PAGES * PAGE, &r);
	lie_begin(&m, arg);
	if (!m.rank)
		CHECK_EQ(sci_vm_acquire(m.vm, NULL), -EPROTO);
	lie_end(&m);
	CHECK_EQ(sci_vm_acquire(m.vm, NULL), 0);
	member_close(&m);
}

TEST(an_answer_without_the_changes)
{
	ranks_run_arg(2, 2, ask_for_changes, &(struct lie){ VM_OP_CHANGES, VM_OP_ANSWER, 0, 0 },
		      false);
}

/* The second key of a segment is longer than the first one: the frame is behind the mapping. */
static void ask_for_frame(void *arg)
{
	const struct sci_vm_attr mapped = { .size = sizeof(mapped), .mode = SCI_VM_MAP };
	struct sci_vm_range r = kind(SCI_VM_HOME, 0);
	struct member m;
	void *frame;
	uint8_t *p;

	r.home = 1;
	member_open(&m, &mapped);
	p = alloc_for_all(&m, PAGES * PAGE, &r);
	if (m.rank) {
		p[PAGE] = 7;
		CHECK_EQ(vm_serve_frame(m.vm, p + PAGE, &frame), 0);
		CHECK(vm_frame_key(m.vm, frame, &wire.key, &wire.addr));
		wire.addr = wire.key.len;
		wire.len = PAGE;
		wire.key.len += PAGE;
	}
	meet(&m);			/* the frames of both pages are in one segment */
	CHECK_EQ(touch(&m, p), 0);
	meet(&m);
	lie_begin(&m, arg);
	CHECK_EQ(touch(&m, p + PAGE), m.rank ? 0 : -EPROTO);
	lie_end(&m);
	CHECK_EQ(touch(&m, p + PAGE), 0);
	CHECK_EQ(p[PAGE], 7);
	member_close(&m);
}

TEST(a_frame_behind_its_segment)
{
	needs_mode(SCI_VM_MAP);
	ranks_run_arg(2, 2, ask_for_frame, &(struct lie){ VM_OP_FRAME, VM_OP_ANSWER, 0, 0 }, false);
}

/* ---- requests of member 1 ---- */

/* Let member 0 do @op with a range. Return the answer. */
static int request(const struct member *m, enum vm_op op, const struct vm_range_wire *r)
{
	struct vm_wire w = { .addr = r->addr };
	size_t len = op == VM_OP_ALLOC ? sizeof(*r) : 0;
	struct vm_call c;
	int ret = vm_call_start(m->vm, &c, 0, op, &w, r, len);

	return ret ? ret : vm_call_wait(m->vm, &c);
}

/* Let member 0 add the range, map it and free it. */
static void range_refused(const struct member *m, const struct vm_range_wire *r)
{
	CHECK_EQ(request(m, VM_OP_ALLOC, r), -EINVAL);
	CHECK_EQ(request(m, VM_OP_EAGER, r), -EFAULT);
	CHECK_EQ(request(m, VM_OP_FREE, r), -EFAULT);
}

static void ask_for_memory(void *arg)
{
	static uint8_t bytes[2 * PAGE] __attribute__((aligned(PAGE)));
	const struct sci_vm_attr attr = { .size = sizeof(attr), .mode = *(uint32_t *)arg };
	const struct sci_vm_range shape = kind(SCI_VM_HOME, 0);
	struct vm_range_wire r = {
		.len = sizeof(bytes), .shift = 12, .policy = SCI_VM_HOME, .mode = *(uint32_t *)arg,
		.home = 1, .creator = 1,
	};
	uint64_t part;
	struct member m;
	uint8_t *p;

	member_open(&m, &attr);
	p = alloc_for_all(&m, 2 * PAGE, &shape);
	part = m.vm->length / 2;
	memset(bytes, 7, sizeof(bytes));
	if (!m.rank)
		memset(p, 7, 2 * PAGE);
	meet(&m);
	if (m.rank) {
		r.addr = (uintptr_t)bytes;
		range_refused(&m, &r);
		r.addr = (uintptr_t)m.vm->base + part - PAGE;	/* begins in the part of member 0 */
		range_refused(&m, &r);
		r.addr = (uintptr_t)m.vm->base + 2 * part - PAGE;	/* ends behind the memory */
		range_refused(&m, &r);
		r.addr = (uintptr_t)m.vm->base + part;
		r.creator = 0;
		range_refused(&m, &r);
		r.addr = (uintptr_t)p + PAGE;	/* the middle of a range */
		CHECK_EQ(request(&m, VM_OP_FREE, &r), -EFAULT);
	}
	meet(&m);
	for (size_t i = 0; i < sizeof(bytes); i++)
		CHECK_EQ(bytes[i], 7);
	for (size_t i = 0; !m.rank && i < 2 * PAGE; i++)
		CHECK_EQ(p[i], 7);
	member_close(&m);
}

TEST(a_cached_range_in_memory_of_the_program)
{
	ranks_run_arg(2, 2, ask_for_memory, &(uint32_t){ SCI_VM_CACHE }, false);
}

TEST(a_mapped_range_in_memory_of_the_program)
{
	needs_mode(SCI_VM_MAP);
	ranks_run_arg(2, 2, ask_for_memory, &(uint32_t){ SCI_VM_MAP }, false);
}
