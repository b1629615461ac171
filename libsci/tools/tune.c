// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/*
 * `sci tune` finds parameters of the message layer for this machine. It chooses one parameter after
 * the other, each with the values that are already chosen. A search finds the best value. A second
 * measurement compares this value with the present value. A threshold between two protocols comes
 * from the times of both protocols at every size: the sum of the saved times is largest at the
 * crossover.
 */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>

#include "bench_file.h"
#include "tune.h"

#define KIB		((size_t)1024)
#define MIB		(1024 * KIB)
/* a value replaces the default only if it takes less than this part of the time */
#define ENOUGH		0.97
#define RING_PARTS	4u		/* a ring has room for at least this many blocks */

enum axis_kind { AXIS_UP_TO, AXIS_FROM, AXIS_VALUE };

struct axis {
	enum sci_param param;
	enum axis_kind kind;
	bool zcopy;
	uint64_t from, to;		/* AXIS_VALUE: values of the parameter */
	size_t size_from, size_to, step;	/* sizes of messages to measure with */
};

/* size_from 0: just above the eager limit; size_to 0: the eager limit */
static const struct axis axes[] = {
	{ .param = SCI_PARAM_LINES_MAX, .kind = AXIS_UP_TO,
	  .size_from = 64, .size_to = 2 * KIB, .step = 2 },
	{ .param = SCI_PARAM_EAGER_MAX, .kind = AXIS_UP_TO,
	  .size_from = KIB, .size_to = 256 * KIB, .step = 2 },
	{ .param = SCI_PARAM_EAGER_BLOCK, .kind = AXIS_VALUE,
	  .from = KIB, .to = 32 * KIB,
	  .size_from = 4 * KIB, .size_to = 64 * KIB, .step = 2 },
	{ .param = SCI_PARAM_EAGER_RING, .kind = AXIS_VALUE,
	  .from = 16 * KIB, .to = MIB,
	  .size_from = 256, .size_to = 0, .step = 4 },
	{ .param = SCI_PARAM_XFER_RING, .kind = AXIS_VALUE,
	  .from = 32 * KIB, .to = 2 * MIB,
	  .size_from = 0, .size_to = 4 * MIB, .step = 4 },
	{ .param = SCI_PARAM_BLOCK, .kind = AXIS_VALUE,
	  .from = 2 * KIB, .to = 256 * KIB,
	  .size_from = 64 * KIB, .size_to = 4 * MIB, .step = 4 },
	{ .param = SCI_PARAM_ZCOPY_MIN, .kind = AXIS_FROM, .zcopy = true,
	  .size_from = 0, .size_to = 4 * MIB, .step = 2 },
	/* the last one: the others are about messages with two copies */
	{ .param = SCI_PARAM_SINGLE_COPY_MIN, .kind = AXIS_FROM,
	  .size_from = 4 * KIB, .size_to = MIB, .step = 2 },
};

struct command {
	struct tune t;
	struct setup defaults;
	uint64_t rounds, id;
	unsigned int time_ms;
	const char *output;
	FILE *notes;			/* text for the file's comments */
	char *notes_text;
	size_t notes_len;
};

/* ---- words ---- */

#define VALUE_STR	24

static const char *value_print(char buf[VALUE_STR], uint64_t v)
{
	if (v == UINT64_MAX)
		return "never";
	snprintf(buf, VALUE_STR, "%" PRIu64, v);
	return buf;
}

/* Print to standard output now, and later into the file's comments. */
__attribute__((format(printf, 2, 3)))
static void tune_print(struct command *c, const char *fmt, ...)
{
	char line[200];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(line, sizeof(line), fmt, ap);
	va_end(ap);
	fprintf(c->notes, "# %s\n", line);
	if (c->output)
		printf("%s\n", line);
	fflush(stdout);
}

static double tune_percent(double ratio)
{
	return 100 * (1 - ratio);
}

/* ---- one parameter ---- */

static size_t size_above_eager(const struct command *c)
{
	size_t n = 1;

	while (n <= c->t.chosen.value[SCI_PARAM_EAGER_MAX])
		n *= 2;
	return n;
}

/* Return the chosen setup with @param changed, and with the parameters that depend on @param. */
static struct setup setup_change(const struct command *c, enum sci_param param,
				 uint64_t value)
{
	struct setup s = c->t.chosen;

	s.value[param] = value;
	if (param == SCI_PARAM_EAGER_BLOCK &&
	    s.value[SCI_PARAM_EAGER_RING] < RING_PARTS * value)
		s.value[SCI_PARAM_EAGER_RING] = RING_PARTS * value;
	return s;
}

static void axis_make_works(struct command *c, const struct axis *a)
{
	size_t from = a->size_from ? a->size_from : size_above_eager(c);
	size_t to = a->size_to ? a->size_to :
		    c->t.chosen.value[SCI_PARAM_EAGER_MAX];

	c->t.link.zcopy = a->zcopy;
	tune_works(&c->t, from, to, a->step);
}

/*
 * Measure both protocols at every size. Each size has a pair of works. @gain is the sum over the
 * sizes of one protocol; its minimum is at the threshold.
 */
static int threshold_search(struct command *c, const struct axis *a,
			    uint64_t *best)
{
	bool up_to = a->kind == AXIS_UP_TO;
	struct tune *t = &c->t;
	size_t last = t->work[t->n_works - 1].size;
	uint64_t none = !up_to ? UINT64_MAX :
			a->param == SCI_PARAM_LINES_MAX ? 0 :
			t->work[0].size / 2;
	struct setup s[2] = {
		setup_change(c, a->param, up_to ? last : 1),
		setup_change(c, a->param, none),
	};
	double gain = 0, most = 0;
	unsigned int i, w;

	if (up_to)	/* both setups get the same ring */
		s[1].value[SCI_PARAM_EAGER_RING] =
			s[0].value[SCI_PARAM_EAGER_RING];
	if (tune_compare(t, s, 2))
		return TOOL_FAILED;
	*best = s[1].value[a->param];
	for (i = 0; i < t->n_works; i += 2) {
		w = up_to ? i : t->n_works - 2 - i;
		gain += tune_work_ratio(t, 0, 1, w) +
			tune_work_ratio(t, 0, 1, w + 1);
		if (gain >= most)
			continue;
		most = gain;
		*best = t->work[w].size;
	}
	return TOOL_OK;
}

static int value_search(struct command *c, const struct axis *a,
			uint64_t *best)
{
	struct setup s[TUNE_SETUPS] = { c->t.chosen };
	uint64_t from = a->from, v;
	unsigned int n = 1, i;
	double least = 1, ratio;

	if (a->param == SCI_PARAM_EAGER_RING)
		from = RING_PARTS * c->t.chosen.value[SCI_PARAM_EAGER_BLOCK];
	for (v = from < a->from ? a->from : from;
	     v <= a->to && n < TUNE_SETUPS; v *= 2) {
		if (a->param == SCI_PARAM_BLOCK &&
		    v > c->t.chosen.value[SCI_PARAM_XFER_RING] / RING_PARTS)
			break;
		if (v != s[0].value[a->param])
			s[n++] = setup_change(c, a->param, v);
	}
	if (tune_compare(&c->t, s, n))
		return TOOL_FAILED;
	*best = s[0].value[a->param];
	for (i = 1; i < n; i++) {
		ratio = tune_ratio(&c->t, i, 0).median;
		if (ratio >= least)
			continue;
		least = ratio;
		*best = s[i].value[a->param];
	}
	return TOOL_OK;
}

/* Keep only the works of a threshold whose protocol differs between values @x and @y. */
static void works_drop(struct command *c, const struct axis *a, uint64_t x,
		       uint64_t y)
{
	uint64_t low = x < y ? x : y, high = x < y ? y : x, size;
	unsigned int i, n = 0;

	for (i = 0; a->kind != AXIS_VALUE && i < c->t.n_works; i++) {
		size = c->t.work[i].size;
		if (a->kind == AXIS_UP_TO ? size > low && size <= high :
					    size >= low && size < high)
			c->t.work[n++] = c->t.work[i];
	}
	if (a->kind != AXIS_VALUE)
		c->t.n_works = n;
}

static void axis_keep(struct command *c, const struct axis *a, const char *why)
{
	char buf[VALUE_STR];

	tune_print(c, "%s: %s stays: %s", sci_param_name(a->param),
		   value_print(buf, c->t.chosen.value[a->param]), why);
}

/* Measure @best and the present setup again, and choose @best if it takes less time. */
static int tune_confirm(struct command *c, const struct axis *a, uint64_t best)
{
	uint64_t was = c->t.chosen.value[a->param];
	char old_buf[VALUE_STR], new_buf[VALUE_STR], why[100];
	const char *old = value_print(old_buf, was);
	const char *new = value_print(new_buf, best);
	struct setup s[2] = { c->t.chosen, setup_change(c, a->param, best) };
	struct tune_ratio r;

	works_drop(c, a, best, was);
	if (!c->t.n_works) {
		axis_keep(c, a, "no size would go another way");
		return TOOL_OK;
	}
	if (tune_compare(&c->t, s, 2))
		return TOOL_FAILED;
	r = tune_ratio(&c->t, 1, 0);
	if (r.median >= ENOUGH || r.upper >= 1) {
		snprintf(why, sizeof(why), "%s takes %.1f %% %s time%s", new,
			 fabs(tune_percent(r.median)),
			 r.median < 1 ? "less" : "more",
			 r.median < ENOUGH ? ", but not reliably" : "");
		axis_keep(c, a, why);
		return TOOL_OK;
	}
	tune_print(c, "%s: %s instead of %s: %.1f %% less time (%zu .. %zu bytes)",
		   sci_param_name(a->param), new, old, tune_percent(r.median),
		   c->t.work[0].size, c->t.work[c->t.n_works - 1].size);
	c->t.chosen = s[1];
	return TOOL_OK;
}

static int tune_axis(struct command *c, const struct axis *a)
{
	uint64_t best = 0;
	bool possible = true;

	c->t.link.zcopy = false;
	if (a->param == SCI_PARAM_SINGLE_COPY_MIN &&
	    tune_single_copy_works(&c->t, &possible))
		return TOOL_FAILED;
	if (!possible) {
		axis_keep(c, a, "a process cannot read the other's memory here");
		return TOOL_OK;
	}
	axis_make_works(c, a);
	if (a->kind == AXIS_VALUE ? value_search(c, a, &best) :
				    threshold_search(c, a, &best))
		return TOOL_FAILED;
	if (best == c->t.chosen.value[a->param]) {
		axis_keep(c, a, "the best there is");
		return TOOL_OK;
	}
	return tune_confirm(c, a, best);
}

/* ---- all of them ---- */

static bool tune_changed(const struct command *c)
{
	return memcmp(&c->t.chosen, &c->defaults, sizeof(c->defaults)) != 0;
}

static int works_compare(struct command *c)
{
	struct setup s[2] = { c->defaults, c->t.chosen };
	struct tune_ratio r;

	c->t.link.zcopy = false;
	tune_works(&c->t, 64, 4 * MIB, 4);
	if (tune_compare(&c->t, s, 2))
		return TOOL_FAILED;
	r = tune_ratio(&c->t, 1, 0);
	tune_print(c, "all together: %.1f %% %s time than with the defaults (64 .. 4194304 bytes)",
		   fabs(tune_percent(r.median)), r.median < 1 ? "less" : "more");
	return TOOL_OK;
}

static void tune_describe(struct command *c)
{
	time_t now = time(NULL);
	struct utsname u;
	char when[40];
	struct tm tm;

	strftime(when, sizeof(when), "%Y-%m-%d %H:%M:%S UTC",
		 gmtime_r(&now, &tm));
	uname(&u);
	tune_print(c, "messages over %s, measured by `sci tune` on %s",
		   sci_peer_network(c->t.link.peer), when);
	tune_print(c, "on %s (%s %s, %s), medians of %u rounds of %.1f ms",
		   u.nodename, u.sysname, u.release, u.machine, c->t.rounds,
		   c->t.seconds * 1e3);
	if (c->t.link.cpu[0] >= 0)
		tune_print(c, "between two processes on CPUs %d and %d",
			   c->t.link.cpu[0], c->t.link.cpu[1]);
}

static int tune_all(struct command *c)
{
	size_t i;

	if (bench_link_open(&c->t.link))
		return TOOL_FAILED;
	for (i = 0; i < SCI_PARAMS; i++)
		sci_peer_get(c->t.link.peer, i, &c->defaults.value[i]);
	/* the library must not choose another protocol than that of the parameters */
	c->defaults.value[SCI_PARAM_FAR_EAGER_MAX] = 0;
	c->t.chosen = c->defaults;
	c->t.chosen.value[SCI_PARAM_SINGLE_COPY_MIN] = UINT64_MAX;
	tune_describe(c);
	for (i = 0; i < sizeof(axes) / sizeof(axes[0]); i++) {
		if (axes[i].param == SCI_PARAM_SINGLE_COPY_MIN)
			c->t.chosen.value[axes[i].param] = c->defaults.value[axes[i].param];
		if (tune_axis(c, &axes[i]))
			return TOOL_FAILED;
	}
	if (!tune_changed(c)) {
		tune_print(c, "the defaults are best here");
		return TOOL_OK;
	}
	return works_compare(c);
}

static void table_write(FILE *out, const void *arg)
{
	const struct command *c = arg;
	char buf[VALUE_STR];
	int i;

	fputs(c->notes_text, out);
	fputs("# for SCI_MSG_TABLE: FABRIC NAME VALUE\n", out);
	for (i = 0; i < SCI_PARAMS; i++)
		if (c->t.chosen.value[i] != c->defaults.value[i])
			fprintf(out, "%s %s %s\n", sci_peer_network(c->t.link.peer),
				sci_param_name(i),
				value_print(buf, c->t.chosen.value[i]));
}

/* Unset the parameters in the environment, so that the defaults are those of the library. */
static void environment_forget(void)
{
	char name[64];
	int i, k;

	unsetenv("SCI_MSG_TABLE");
	for (i = 0; i < SCI_PARAMS; i++) {
		snprintf(name, sizeof(name), "SCI_MSG_%s", sci_param_name(i));
		for (k = 0; name[k]; k++)
			if (name[k] >= 'a' && name[k] <= 'z')
				name[k] = (char)(name[k] - 'a' + 'A');
		unsetenv(name);
	}
}

static void tune_parse(struct command *c, const struct tool_command *self, int argc,
		       char **argv)
{
	const struct tool_option options[] = {
		{ .letter = 'o', .name = "output", .kind = TOOL_STRING,
		  .value = &c->output, .arg = "FILE",
		  .help = "write the table, for SCI_MSG_TABLE (standard output)" },
		{ .letter = 'R', .name = "rounds", .kind = TOOL_NUMBER,
		  .value = &c->rounds, .min = 1, .max = BENCH_ROUNDS,
		  .arg = "N", .help = "number of rounds (11)" },
		{ .letter = 't', .name = "time", .kind = TOOL_SECONDS,
		  .value = &c->time_ms, .arg = "S",
		  .help = "time of each size in each round (0.002)" },
		{ .name = "peer", .kind = TOOL_STRING, .value = &c->t.link.to,
		  .arg = "NODE[:ID]",
		  .help = "node where `sci bench --serve` runs" },
		{ .letter = 'i', .name = "id", .kind = TOOL_NUMBER,
		  .value = &c->id, .min = 1, .max = SCI_EP_ID_MAX, .arg = "N",
		  .help = "id of the server's endpoint" },
		{ 0 },
	};

	if (tool_parse(self, argc, argv, options, true) != argc)
		tool_usage(self, "it takes options only");
	if (c->output && !strcmp(c->output, "-"))
		c->output = NULL;
	c->t.rounds = (unsigned int)c->rounds;
	c->t.seconds = c->time_ms * 1e-3;
	c->t.link.id = (uint32_t)c->id;
}

static int tune_run(struct command *c)
{
	if (c->output && bench_file_check(c->output))
		return TOOL_FAILED;
	c->notes = open_memstream(&c->notes_text, &c->notes_len);
	if (!c->notes)
		return tool_error("out of memory");
	environment_forget();
	if (tune_all(c))
		return TOOL_FAILED;
	fflush(c->notes);
	if (bench_file(c->output ? c->output : "-", table_write, c))
		return TOOL_FAILED;
	return tool_finish();
}

int tool_tune(const struct tool_command *self, int argc, char **argv)
{
	struct command c = { .rounds = 11, .time_ms = 2, .id = BENCH_ID };
	int ret;

	tune_parse(&c, self, argc, argv);
	ret = tune_run(&c);
	bench_link_close(&c.t.link);
	if (c.notes)
		fclose(c.notes);
	free(c.notes_text);
	free(c.t.log_t);
	return ret;
}
