// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors

#include "libsci/fabric/core/fault.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define LINE		64u		/* bytes in a full packet */
#define MAX_OUTAGES	16
#define MAX_HELD	64u

struct outage {
	uint64_t begin_ms;
	uint64_t end_ms;
};

static struct {
	double loss;
	double reorder;
	double dup;
	double retriable;
	double fatal;
	struct outage outages[MAX_OUTAGES];
	unsigned int n_outages;
} fault;

struct packet {
	volatile unsigned char *dst;
	struct sci_link_status *link;
	size_t len;
	bool line;			/* written by sci_remote_line() */
	unsigned char data[LINE];
};

/* Packets that are held back: late packets, and copies of packets. */
static struct {
	pthread_mutex_t lock;
	unsigned int n;
	struct packet packets[MAX_HELD];	/* oldest first */
} held = { .lock = PTHREAD_MUTEX_INITIALIZER };

/*
 * Number of random decisions of all threads. The n-th decision of a run depends on the
 * seed and n only, so two runs with the same order of calls have the same faults.
 */
static _Atomic uint64_t draws;

_Atomic bool sci_fault_enabled;
struct sci_fault_counts sci_fault_counts;

static uint64_t random_mix(uint64_t n)
{
	uint64_t z = n * 0x9e3779b97f4a7c15u;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
	return z ^ (z >> 31);
}

static void fault_count(_Atomic uint64_t *count)
{
	atomic_fetch_add_explicit(count, 1, memory_order_relaxed);
}

static bool fault_happens(double probability)
{
	return probability > 0 &&
	       (double)(random_mix(atomic_fetch_add(&draws, 1)) >> 11) * 0x1p-53 <
	       probability;
}

static int probability_parse(const char *s, double *p)
{
	char *end;

	*p = strtod(s, &end);
	return end == s || *end || !(*p >= 0 && *p <= 1) ? -EINVAL : 0;
}

static int fault_parse_u64(const char *s, char **end, uint64_t *v)
{
	if (*s < '0' || *s > '9')
		return -EINVAL;
	errno = 0;
	*v = strtoull(s, end, 0);
	return errno ? -EINVAL : 0;
}

static int outage_parse(const char *s)
{
	struct outage *o = &fault.outages[fault.n_outages];
	uint64_t len;
	char *end;

	if (fault.n_outages == MAX_OUTAGES ||
	    fault_parse_u64(s, &end, &o->begin_ms))
		return -EINVAL;
	o->end_ms = UINT64_MAX;
	if (*end == ':') {
		if (fault_parse_u64(end + 1, &end, &len) ||
		    __builtin_add_overflow(o->begin_ms, len, &o->end_ms))
			return -EINVAL;
	}
	if (*end)
		return -EINVAL;
	fault.n_outages++;
	return 0;
}

static int word_parse(char *word)
{
	char *value = strchr(word, '=');
	uint64_t seed;
	char *end;

	if (!value)
		return -EINVAL;
	*value++ = '\0';
	if (!strcmp(word, "loss"))
		return probability_parse(value, &fault.loss);
	if (!strcmp(word, "reorder"))
		return probability_parse(value, &fault.reorder);
	if (!strcmp(word, "dup"))
		return probability_parse(value, &fault.dup);
	if (!strcmp(word, "retriable"))
		return probability_parse(value, &fault.retriable);
	if (!strcmp(word, "fatal"))
		return probability_parse(value, &fault.fatal);
	if (!strcmp(word, "linkdown"))
		return outage_parse(value);
	if (!strcmp(word, "seed")) {
		if (fault_parse_u64(value, &end, &seed) || *end)
			return -EINVAL;
		/* the sequences of different seeds begin far apart, and do not overlap */
		atomic_store(&draws, random_mix(seed));
		return 0;
	}
	return -EINVAL;
}

int sci_fault_init(const char *spec)
{
	char *copy, *word, *next = NULL;
	int ret = 0;

	memset(&fault, 0, sizeof(fault));
	memset(&sci_fault_counts, 0, sizeof(sci_fault_counts));
	atomic_store(&draws, random_mix(1));
	atomic_store(&sci_fault_enabled, false);
	pthread_mutex_lock(&held.lock);
	held.n = 0;
	pthread_mutex_unlock(&held.lock);
	if (!spec || !*spec)
		return 0;

	copy = strdup(spec);
	if (!copy)
		return -ENOMEM;
	for (word = strtok_r(copy, ",", &next); word && !ret;
	     word = strtok_r(NULL, ",", &next))
		ret = word_parse(word);
	free(copy);
	if (!ret)
		atomic_store(&sci_fault_enabled, true);
	else
		memset(&fault, 0, sizeof(fault));
	return ret;
}

bool sci_fault_link(uint64_t elapsed_ms, uint64_t *next_ms)
{
	bool down = false;
	unsigned int i;

	*next_ms = UINT64_MAX;
	for (i = 0; i < fault.n_outages; i++) {
		const struct outage *o = &fault.outages[i];

		if (elapsed_ms >= o->begin_ms && elapsed_ms < o->end_ms)
			down = true;
		if (elapsed_ms < o->begin_ms && o->begin_ms < *next_ms)
			*next_ms = o->begin_ms;
		if (elapsed_ms < o->end_ms && o->end_ms < *next_ms)
			*next_ms = o->end_ms;
	}
	return down;
}

/* ---- packets ---- */

static void packet_arrive(const struct packet *p)
{
	if (p->line)
		sci_link_line(p->link, p->dst, p->data);
	else
		sci_link_write(p->link, p->dst, p->data, p->len);
}

/*
 * Deliver each packet that is held back for [@addr, @end) with @probability. Context: held.lock
 * is held.
 */
static void packet_deliver(uintptr_t addr, uintptr_t end, double probability)
{
	unsigned int i, kept = 0;

	for (i = 0; i < held.n; i++) {
		const struct packet *p = &held.packets[i];
		uintptr_t at = (uintptr_t)p->dst;

		if (at < end && at + p->len > addr && fault_happens(probability))
			packet_arrive(p);
		else if (kept++ != i)
			held.packets[kept - 1] = *p;
	}
	/* another thread's barrier does not cover stores of this thread */
	if (kept < held.n)
		sci_pio_barrier();
	held.n = kept;
}

static void packet_hold(const struct packet *p)
{
	if (held.n == MAX_HELD) {
		packet_arrive(&held.packets[0]);
		sci_pio_barrier();
		held.n--;
		memmove(&held.packets[0], &held.packets[1],
			held.n * sizeof(held.packets[0]));
	}
	held.packets[held.n++] = *p;
}

static void packet_pass(const struct packet *p)
{
	bool late, again;

	pthread_mutex_lock(&held.lock);
	/* an adapter keeps the order of stores to a line */
	packet_deliver((uintptr_t)p->dst, (uintptr_t)p->dst + p->len, 1);
	late = fault_happens(fault.reorder);
	again = fault_happens(fault.dup);
	if (late)
		fault_count(&sci_fault_counts.late);
	else
		packet_arrive(p);
	if (again)
		fault_count(&sci_fault_counts.copies);
	/* this packet has overtaken the held packets: deliver each with probability 1/2 */
	packet_deliver(0, UINTPTR_MAX, 0.5);
	if (late)
		packet_hold(p);
	if (again)
		packet_hold(p);
	pthread_mutex_unlock(&held.lock);
}

static void packet_transmit(const struct packet *p, struct sci_link_status *link)
{
	bool lost = fault_happens(fault.loss);

	if (lost || sci_link_down(link)) {
		fault_count(lost ? &sci_fault_counts.lost : &sci_fault_counts.cut);
		atomic_fetch_add(&link->errors, 1);
	} else if (fault.reorder > 0 || fault.dup > 0) {
		packet_pass(p);
	} else {
		packet_arrive(p);
	}
}

void sci_fault_write(volatile void *dst, const void *src, size_t len,
		     struct sci_link_status *link)
{
	struct packet p = { .link = link };
	volatile unsigned char *d = dst;
	const unsigned char *s = src;

	while (len) {
		/* a packet ends at the next multiple of LINE of the destination address */
		size_t n = LINE - ((uintptr_t)d & (LINE - 1));

		if (n > len)
			n = len;
		p.dst = d;
		p.len = n;
		memcpy(p.data, s, n);
		packet_transmit(&p, link);
		d += n;
		s += n;
		len -= n;
	}
}

void sci_fault_line(volatile void *dst, const void *src,
		    struct sci_link_status *link)
{
	struct packet p = { .dst = dst, .link = link, .len = LINE,
			    .line = true };

	memcpy(p.data, src, LINE);
	packet_transmit(&p, link);
}

void sci_fault_later(void)
{
	pthread_mutex_lock(&held.lock);
	packet_deliver(0, UINTPTR_MAX, 0.5);
	pthread_mutex_unlock(&held.lock);
}

void sci_fault_deliver(void)
{
	pthread_mutex_lock(&held.lock);
	packet_deliver(0, UINTPTR_MAX, 1);
	pthread_mutex_unlock(&held.lock);
}

void sci_fault_forget(volatile void *addr, size_t len)
{
	if (!atomic_load_explicit(&sci_fault_enabled, memory_order_relaxed))
		return;
	pthread_mutex_lock(&held.lock);
	packet_deliver((uintptr_t)addr, (uintptr_t)addr + len, 1);
	pthread_mutex_unlock(&held.lock);
}

void sci_fault_fork(void)
{
	pthread_mutex_init(&held.lock, NULL);
	held.n = 0;
}

void sci_fault_check(struct sci_rseg_status *st)
{
	if (fault_happens(fault.fatal))
		atomic_store(&st->gone, 1);
	if (fault_happens(fault.retriable))
		atomic_fetch_add(&st->link->errors, 1);
}
