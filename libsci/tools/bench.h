/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Copyright (C) 2026 The libsci authors */
/*
 * DOC: measuring messages
 *
 * Two processes: a client that measures, and a server that does what the
 * client's orders say. The server is forked, or was started by hand as
 * `sci bench --serve`. Orders and answers are tagged messages of one line, in a
 * context of their own, so that they leave alone what is measured.
 *
 * A run is so many messages of one kind and size. The server answers an order
 * to run when it is ready, and again when it is done.
 */
#ifndef LIBSCI_TOOLS_BENCH_H
#define LIBSCI_TOOLS_BENCH_H

#include <sys/types.h>

#include <sci/msg.h>

#include "tool.h"

#define BENCH_ID		0x5c1be9u	/* unless --id says otherwise */
#define BENCH_SIZE_MAX		(1ull << 30)
#define BENCH_SIZES		64u
#define BENCH_ROUNDS		99u
#define BENCH_PEERS_MAX		16384u

enum bench_kind {
	BENCH_PING,			/* there and back */
	BENCH_STREAM,			/* there, answered once */
	BENCH_BOTH,			/* streams in both directions */
};

/* ---- the two processes ---- */

struct bench_link {
	/* as asked for */
	bool single_thread, crc;	/* the endpoint */
	bool tagged, zcopy;		/* the messages */
	uint32_t id;			/* of a server's endpoint */
	const char *to;			/* "NODE:ID"; NULL: fork a server */

	struct sci_ep *ep;
	struct sci_peer *peer;
	struct sci_addr addr;		/* of the server */
	pid_t child;			/* 0: none */
	int cpu[2];			/* they are pinned to; -1: not */
	char *out, *in;			/* buffers, of @room bytes */
	size_t room;
	bool exported;			/* ... of sci_buf_alloc() */
};

/*
 * These say what is wrong and return TOOL_FAILED, but for bench_set(), which
 * also returns it: then the link is of no more use.
 */
int bench_link_open(struct bench_link *l);
int bench_link_again(struct bench_link *l);	/* a new connection */
void bench_link_close(struct bench_link *l);

/* Serves clients until a signal comes. */
int bench_serve(struct bench_link *l, bool verbose);

/* A message: what failed, and why; TOOL_FAILED. */
int bench_error(int err, const char *what);

/* Room for messages of @size on both sides, as l->zcopy says. */
int bench_room(struct bench_link *l, size_t size);

/* A parameter on both sides. */
int bench_set(struct bench_link *l, enum sci_param param, uint64_t value);

/* How many messages of each protocol either side has sent or taken. */
int bench_count(struct bench_link *l, struct sci_ep_stats *stats);

/* Seconds that @count messages of @size take. */
int bench_run(struct bench_link *l, enum bench_kind kind, size_t size,
	      uint64_t count, double *seconds);

/* How many of them take about @seconds, at least @min. */
int bench_calibrate(struct bench_link *l, enum bench_kind kind, size_t size,
		    double seconds, uint64_t min, uint64_t *count);

/* Round trips, half of each one's time in ns. */
int bench_run_each(struct bench_link *l, size_t size, uint64_t count,
		   double *ns, bool *tsc);

/* ---- memory ---- */

/* Of one peer: connected, after one line, after long messages. */
struct bench_memory {
	unsigned int peers;
	double bytes[3];		/* what the library counts */
	double resident[3];		/* what the kernel counts */
	double connect_us;
};

int bench_memory(struct bench_link *l, struct bench_memory *m);

/* ---- what orders are made of ---- */

enum bench_op {
	BENCH_HELLO,
	BENCH_BYE,			/* a forked server ends */
	BENCH_ROOM,			/* size */
	BENCH_SET,			/* param, count: its value */
	BENCH_STATS,
	BENCH_RUN,			/* param: kind, size, count */
	BENCH_OPEN,			/* count endpoints */
	BENCH_WHERE,			/* count: which; answers with its id */
	BENCH_ECHO,			/* count: which, size */
	BENCH_CLOSE,
};

enum { BENCH_TAGGED = 1, BENCH_ZCOPY = 2 };

struct bench_order {
	uint32_t magic;
	uint8_t op;
	uint8_t flags;
	uint16_t param;
	uint64_t size, count;
};

struct bench_answer {
	uint32_t magic;
	int32_t error;
	uint64_t value[2];
};

/* 0 or -errno, the server's too. */
int bench_ask(struct bench_link *l, struct bench_order o,
	      struct bench_answer *a);
int bench_answer(struct bench_link *l, int error, uint64_t a, uint64_t b);
int bench_await_order(struct bench_link *l, struct bench_order *o);
int bench_await_answer(struct bench_link *l, int timeout,
		       struct bench_answer *a);
struct sci_req *bench_listen(struct bench_link *l, struct bench_order *o);

int bench_set_room(struct bench_link *l, size_t size);
void bench_free_room(struct bench_link *l);
int bench_serve_run(struct bench_link *l, const struct bench_order *o);
int bench_serve_memory(struct bench_link *l, uint64_t n);

/* ---- results ---- */

enum bench_mode {
	MODE_PING, MODE_STREAM, MODE_BOTH, MODE_RATE, MODE_HISTOGRAM,
	MODE_MEMORY,
};

struct bench_point {
	size_t size;
	uint64_t count;			/* messages of a run */
	double t[BENCH_ROUNDS];		/* seconds per message, sorted at last */
	double median, min, max;
	const char *how;		/* protocol */
};

struct bench_samples {			/* of one size */
	size_t size;
	uint64_t n;
	double *ns;			/* sorted */
	uint64_t step;			/* ns, of the histogram */
};

struct bench_result {
	enum bench_mode mode;
	const struct bench_link *link;
	unsigned int rounds;
	bool tsc;
	unsigned int n;
	struct bench_point *point;
	struct bench_samples *samples;	/* MODE_HISTOGRAM */
	struct bench_memory memory;	/* MODE_MEMORY */
};

/* The histogram's step that @ns is in; how many from @i on are below @end. */
uint64_t bench_bin(const struct bench_samples *s, double ns);
uint64_t bench_count_below(const struct bench_samples *s, uint64_t i,
			   uint64_t end);

/* Median, min and max of seconds, or of what is made of them. */
struct bench_value {
	double median, min, max;
};

struct bench_value bench_us(const struct bench_result *r,
			    const struct bench_point *p);
struct bench_value bench_rate(const struct bench_result *r,
			      const struct bench_point *p);
const char *bench_mode_name(enum bench_mode mode);
const char *bench_rate_unit(enum bench_mode mode);

void bench_sort(double *v, size_t n);
double bench_quantile(const double *sorted, size_t n, double q);

/* A file of that name gets what @write prints; "-": standard output. */
int bench_file(const char *path, void (*write)(FILE *out, const void *arg),
	       const void *arg);
/* Could it be written? */
int bench_file_check(const char *path);

void bench_print(FILE *out, const struct bench_result *r);
void bench_write_tsv(FILE *out, const void *result);
void bench_write_json(FILE *out, const void *result);

/* Draws by gnuplot; the name ends in .svg or .png. */
int bench_picture_check(const char *path);
int bench_picture(const char *path, const struct bench_result *r);

#endif
