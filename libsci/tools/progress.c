// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors

#include <inttypes.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "transfer.h"

#define REDRAW_NS	100000000u
#define LINE_MAX_COLS	200
#define NAME_COLS	18
#define BAR_MIN		8

static int terminal_columns(void)
{
	struct winsize w;

	if (ioctl(STDERR_FILENO, TIOCGWINSZ, &w) || w.ws_col < 20)
		return 80;
	return w.ws_col < LINE_MAX_COLS ? w.ws_col : LINE_MAX_COLS;
}

void progress_begin(struct progress *p, const char *name, uint64_t total)
{
	memset(p, 0, sizeof(*p));
	tool_printable(p->name, sizeof(p->name), name);
	p->total = total;
	p->begin = tool_now_ns();
	p->terminal = isatty(STDERR_FILENO);
}

/* Write numbers such as " 51.2 MiB  812 MiB/s  ETA 0:03" to @text. */
static int progress_numbers(const struct progress *p, uint64_t done, uint64_t now,
			    char *text, size_t room)
{
	double rate = (double)done * 1e9 / (double)(now - p->begin + 1);
	char size[TOOL_SIZE_STR], speed[TOOL_SIZE_STR];
	uint64_t left;
	int n;

	n = snprintf(text, room, " %9s  %9s/s", tool_size_str(size, (double)done),
		     tool_size_str(speed, rate));
	if (p->total == TRANSFER_UNKNOWN || rate < 1)
		return n;
	left = (uint64_t)((double)(p->total - done) / rate);
	return n + snprintf(text + n, room - (size_t)n,
			    "  ETA %" PRIu64 ":%02u", left / 60,
			    (unsigned int)(left % 60));
}

static void progress_draw(const struct progress *p, uint64_t done, uint64_t now)
{
	char tail[96], bar[LINE_MAX_COLS + 1];
	int cols = terminal_columns() - 1;
	int room, filled;

	room = cols - progress_numbers(p, done, now, tail, sizeof(tail));
	if (room >= NAME_COLS + 2)
		room -= fprintf(stderr, "\r%-*.*s", NAME_COLS, NAME_COLS,
				p->name) - 1;
	else
		fputc('\r', stderr);
	if (p->total != TRANSFER_UNKNOWN && p->total && room >= BAR_MIN + 8) {
		room -= 8;		/* " 100% []" */
		filled = (int)((double)room * (double)done / (double)p->total);
		memset(bar, ' ', (size_t)room);
		memset(bar, '=', (size_t)filled);
		if (filled < room)
			bar[filled] = '>';
		bar[room] = '\0';
		fprintf(stderr, " %3u%% [%s]",
			(unsigned int)(100 * (double)done / (double)p->total),
			bar);
	}
	fprintf(stderr, "%s\033[K", tail);
	fflush(stderr);
}

void progress_step(struct progress *p, uint64_t done)
{
	uint64_t now;

	if (!p->terminal)
		return;
	now = tool_now_ns();
	if (p->drawn && now - p->drawn < REDRAW_NS)
		return;
	p->drawn = now;
	progress_draw(p, done, now);
}

void progress_end(struct progress *p)
{
	if (p->terminal && p->drawn)
		fputs("\r\033[K", stderr);
	p->drawn = 0;
}

void progress_report(const struct progress *p, const char *verb, uint64_t done,
		     const uint8_t digest[SHA256_DIGEST_SIZE], uint64_t resent)
{
	double s = (double)(tool_now_ns() - p->begin) * 1e-9;
	char speed[TOOL_SIZE_STR], hex[TRANSFER_HEX];
	size_t i;

	for (i = 0; i < SHA256_DIGEST_SIZE; i++)
		snprintf(hex + 2 * i, 3, "%02x", digest[i]);
	printf("%s %s: %" PRIu64 " bytes in %.3f s, %s/s, %" PRIu64
	       " sent again, sha256 %s\n", verb, p->name, done, s,
	       tool_size_str(speed, (double)done / s), resent, hex);
}
