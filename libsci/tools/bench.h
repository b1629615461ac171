/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Copyright (C) 2026 The libsci authors */
/*
 * DOC: measuring messages
 *
 * A client measures, and a server follows the client's orders. The client forks the server, or
 * the user has started it as `sci bench --serve`. Orders and answers are tagged messages of one
 * line, in a context of their own, so they do not disturb the measurement.
 *
 * A run is a number of messages of one kind and size. The server answers an order
 * for a run twice: when the server is ready, and at the end of the run.
 */
#ifndef LIBSCI_TOOLS_BENCH_H
#define LIBSCI_TOOLS_BENCH_H

#include <sys/types.h>

#include <sci/msg.h>

#include "tool.h"

/* default id of the server's endpoint (--id) */
#define BENCH_ID		0x5c1be9u
#define BENCH_SIZE_MAX		(1ull << 30)
#define BENCH_SIZES		64u
#define BENCH_ROUNDS		99u
#define BENCH_PEERS_MAX		16384u

enum bench_kind {
	BENCH_PING,			/* ping-pong: one message there and back */
	BENCH_STREAM,			/* a stream of messages, answered once */
	BENCH_BOTH,			/* streams in both directions */
};

/* ---- the two processes ---- */

struct bench_link {
	/* the program's options set these members */
	bool single_thread, crc;	/* attributes of the endpoint */
	bool tagged, zcopy;		/* attributes of the messages */
	uint32_t id;			/* id of a server's endpoint */
	const char *to;			/* "NODE:ID"; NULL: fork a server */

	struct sci_ep *ep;
	struct sci_peer *peer;
	struct sci_addr addr;		/* address of the server */
	pid_t child;			/* forked server; 0: none */
	int cpu[2];			/* pinned CPUs of client and server; -1: not pinned */
	char *out, *in;			/* buffers, of @room bytes */
	size_t room;
	bool exported;			/* buffers of sci_buf_alloc() */
};

/*
 * The functions from bench_link_open() to bench_run_each() print an error and return TOOL_FAILED.
 * After another error of bench_set(), the link cannot be used any more.
 */
int bench_link_open(struct bench_link *l);
int bench_link_again(struct bench_link *l);	/* make a new connection */
void bench_link_close(struct bench_link *l);

/* Serve clients until a signal arrives. */
int bench_serve(struct bench_link *l, bool verbose);

/* Print which call failed, and why. Return: TOOL_FAILED. */
int bench_error(int err, const char *what);

/* Allocate buffers for messages of @size on both sides, exported ones with l->zcopy. */
int bench_room(struct bench_link *l, size_t size);

int bench_set(struct bench_link *l, enum sci_param param, uint64_t value);

/* Count the messages of each protocol that either side has sent or received. */
int bench_count(struct bench_link *l, struct sci_ep_stats *stats);

int bench_run(struct bench_link *l, enum bench_kind kind, size_t size,
	      uint64_t count, double *seconds);

/* Get in @count how many messages take about @seconds, at least @min. */
int bench_calibrate(struct bench_link *l, enum bench_kind kind, size_t size,
		    double seconds, uint64_t min, uint64_t *count);

/* Make @count round trips, and store half of the time of each round trip in @ns. */
int bench_run_each(struct bench_link *l, size_t size, uint64_t count,
		   double *ns, bool *tsc);

/* ---- memory ---- */

/* Memory of one peer: when connected, after one line, after long messages. */
struct bench_memory {
	unsigned int peers;
	double bytes[3];		/* as the library counts it */
	double resident[3];		/* as the kernel counts it */
	double descriptors[3];		/* open descriptors of this process */
	double connect_us;
};

int bench_memory(struct bench_link *l, struct bench_memory *m);

/* ---- orders ---- */

enum bench_op {
	BENCH_HELLO,
	BENCH_BYE,			/* end a forked server */
	BENCH_ROOM,			/* allocate buffers of size */
	BENCH_SET,			/* set param to count */
	BENCH_STATS,
	BENCH_RUN,			/* run: param is the kind, with size and count */
	BENCH_OPEN,			/* open count endpoints */
	BENCH_WHERE,			/* return the id of endpoint number count */
	BENCH_ECHO,			/* echo a message of size to endpoint number count */
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

/* Send an order. Return: 0, or -errno of the client or the server. */
int bench_ask(struct bench_link *l, struct bench_order o,
	      struct bench_answer *a);
int bench_answer(struct bench_link *l, int error, uint64_t a, uint64_t b);
int bench_await_answer(struct bench_link *l, int timeout,
		       struct bench_answer *a);
struct sci_req *bench_listen(struct bench_link *l, struct bench_order *o);

int bench_serve_run(struct bench_link *l, const struct bench_order *o);
int bench_serve_memory(struct bench_link *l, uint64_t n);

/* ---- results ---- */

enum bench_mode {
	MODE_PING, MODE_STREAM, MODE_BOTH, MODE_RATE, MODE_HISTOGRAM,
	MODE_MEMORY,
};

struct bench_point {
	size_t size;
	uint64_t count;			/* number of messages in a run */
	double t[BENCH_ROUNDS];		/* seconds per message; sorted at the end */
	double median, min, max;
	const char *how;		/* protocol */
};

struct bench_samples {			/* of one size */
	size_t size;
	uint64_t n;
	double *ns;			/* sorted */
	uint64_t step;			/* width of a bin of the histogram, ns */
};

struct bench_result {
	enum bench_mode mode;
	const struct bench_link *link;
	unsigned int rounds;
	bool tsc;
	unsigned int n;
	struct bench_point *point;
	struct bench_samples *samples;	/* of MODE_HISTOGRAM */
	struct bench_memory memory;	/* MODE_MEMORY */
};

/*
 * bench_bin() returns the lower end of the bin that contains @ns. bench_count_below() returns how
 * many samples from @i on are below @end.
 */
uint64_t bench_bin(const struct bench_samples *s, double ns);
uint64_t bench_count_below(const struct bench_samples *s, uint64_t i,
			   uint64_t end);

/* Median, minimum and maximum of seconds, or of a figure computed from them. */
struct bench_value {
	double median, min, max;
};

struct bench_value bench_us(const struct bench_result *r,
			    const struct bench_point *p);
struct bench_value bench_rate(const struct bench_result *r,
			      const struct bench_point *p);

void bench_sort(double *v, size_t n);
double bench_quantile(const double *sorted, size_t n, double q);

/* Create the file @path with the output of @write; "-" is standard output. */
int bench_file(const char *path, void (*write)(FILE *out, const void *arg),
	       const void *arg);
/* Check that the file @path can be written. */
int bench_file_check(const char *path);

void bench_print(FILE *out, const struct bench_result *r);
void bench_write_tsv(FILE *out, const void *result);
void bench_write_json(FILE *out, const void *result);

/* Draw a picture with gnuplot. Its name must end in .svg or .png. */
int bench_picture_check(const char *path);
int bench_picture(const char *path, const struct bench_result *r);

#endif
