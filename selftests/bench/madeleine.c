// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/*
 * Measure the bandwidth of a Madeleine channel.
 *
 * usage: mad-run --appli=madeleine SESSION_FILE [BYTES...]
 *
 * The first member of channel "c" sends messages of each length to the last member, which
 * answers after the last message.  Prints the length and the bytes per microsecond, which
 * are MB/s.
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <pm2_common.h>

#define TOTAL		(256u << 20)	/* largest number of bytes in a measurement */
#define MESSAGES	200u		/* largest number of messages in it */

static double now_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static void send_one(p_mad_channel_t c, int to, void *buf, size_t len)
{
	p_mad_connection_t k = mad_begin_packing(c, to);

	mad_pack(k, buf, len, mad_send_CHEAPER, mad_receive_CHEAPER);
	mad_end_packing(k);
}

static void receive_one(p_mad_channel_t c, void *buf, size_t len)
{
	p_mad_connection_t k = mad_begin_unpacking(c);

	mad_unpack(k, buf, len, mad_send_CHEAPER, mad_receive_CHEAPER);
	mad_end_unpacking(k);
}

/* Stream @n messages, then an answer. Return the time in microseconds. */
static double stream(p_mad_channel_t c, void *buf, size_t len, unsigned int n)
{
	int last = c->pc->count - 1;
	double begin = now_us();

	for (unsigned int i = 0; i < n; i++) {
		if (c->process_lrank == 0)
			send_one(c, last, buf, len);
		else
			receive_one(c, buf, len);
	}
	if (c->process_lrank == 0)
		receive_one(c, buf, 1);
	else
		send_one(c, 0, buf, 1);
	return now_us() - begin;
}

static void measure(p_mad_channel_t c, size_t len)
{
	unsigned int n = (unsigned int)tbx_min(TOTAL / len, MESSAGES);
	void *buf = calloc(1, len);

	if (!buf)
		TBX_FAILURE("no memory for a message");
	if (c->process_lrank == 0 || c->process_lrank == c->pc->count - 1) {
		double us;

		stream(c, buf, len, 4);
		us = stream(c, buf, len, n);
		if (c->process_lrank == 0)
			mad_leonie_print("%zu\t%.1f", len, (double)len * n / us);
	}
	free(buf);
	mad_leonie_barrier();
}

int main(int argc, char **argv)
{
	p_mad_madeleine_t m = mad_init(&argc, argv);
	p_mad_channel_t c = mad_get_channel(m, "c");

	for (int i = 1; i < argc; i++) {
		size_t len = strtoul(argv[i], NULL, 0);

		if (!len || len > TOTAL)
			TBX_FAILUREF("%s: want bytes from 1 to %u", argv[i], TOTAL);
		measure(c, len);
	}
	common_exit(NULL);
	return 0;
}
