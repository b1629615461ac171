// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
#include "sim/vtime/fiber.h"

#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>

#if defined(__SANITIZE_ADDRESS__)
#define FIBER_ASAN	1
#elif defined(__SANITIZE_THREAD__)
#define FIBER_TSAN	1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define FIBER_ASAN	1
#elif __has_feature(thread_sanitizer)
#define FIBER_TSAN	1
#endif
#endif

/* ---- reports to the thread sanitizer: each fiber holds locks of its own ---- */

#ifdef FIBER_TSAN
#include <sanitizer/tsan_interface.h>

static void tsan_begin(struct fiber *f)
{
	f->tsan = __tsan_create_fiber(0);
}

static void tsan_end(struct fiber *f)
{
	__tsan_destroy_fiber(f->tsan);
}

static void tsan_switch(struct fiber *from, struct fiber *to)
{
	from->tsan = __tsan_get_current_fiber();
	__tsan_switch_to_fiber(to->tsan, 0);
}
#else
static void tsan_begin(struct fiber *f)
{
	(void)f;
}

static void tsan_end(struct fiber *f)
{
	(void)f;
}

static void tsan_switch(struct fiber *from, struct fiber *to)
{
	(void)from;
	(void)to;
}
#endif

/* ---- reports to the address sanitizer ---- */

#ifdef FIBER_ASAN
#include <sanitizer/asan_interface.h>

/*
 * Report a switch to the sanitizer. @frames: receives the frames until another fiber switches
 * back; NULL: the fiber ends
 */
static void fiber_departs(void **frames, const struct fiber *to)
{
	__sanitizer_start_switch_fiber(frames, to->stack, to->size);
}

static void fiber_arrives(struct fiber *f)
{
	/* the sanitizer stores the stack of @f->before, also if @f->before is the thread itself */
	__sanitizer_finish_switch_fiber(f->frames, &f->before->stack,
					&f->before->size);
}

/* Clear the sanitizer's marks of functions that have not returned. */
static void stack_wipe(struct fiber *f)
{
	__asan_unpoison_memory_region(f->stack, f->size);
}
#else
static void fiber_departs(void **frames, const struct fiber *to)
{
	(void)frames;
	(void)to;
}

static void fiber_arrives(struct fiber *f)
{
	(void)f;
}

static void stack_wipe(struct fiber *f)
{
	(void)f;
}
#endif

/* ---- fibers ---- */

/* Begin a fiber, whose address is in two ints, because makecontext() passes only ints. */
static void fiber_begin(unsigned int low, unsigned int high)
{
	struct fiber *f = (struct fiber *)((uintptr_t)high << 32 | low);

	fiber_arrives(f);
	f->fn(f->arg);
	abort();
}

bool fiber_new(struct fiber *f, size_t size, void (*fn)(void *arg), void *arg)
{
	uintptr_t p = (uintptr_t)f;
	void *stack = mmap(NULL, size, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (stack == MAP_FAILED)
		return false;
	*f = (struct fiber){ .fn = fn, .arg = arg, .stack = stack,
			     .size = size };
	getcontext(&f->context);
	f->context.uc_stack.ss_sp = stack;
	f->context.uc_stack.ss_size = size;
	tsan_begin(f);
	makecontext(&f->context, (void (*)(void))fiber_begin, 2, (unsigned int)p,
		    (unsigned int)(p >> 32));
	return true;
}

void fiber_switch(struct fiber *from, struct fiber *to)
{
	to->before = from;
	fiber_departs(&from->frames, to);
	tsan_switch(from, to);
	swapcontext(&from->context, &to->context);
	fiber_arrives(from);
}

void fiber_end(struct fiber *from, struct fiber *to)
{
	to->before = from;
	fiber_departs(NULL, to);
	tsan_switch(from, to);
	setcontext(&to->context);
	abort();
}

void fiber_free(struct fiber *f)
{
	if (!f->fn)
		return;
	stack_wipe(f);
	tsan_end(f);
	munmap((void *)(uintptr_t)f->stack, f->size);
}
