// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/*
 * Draw pictures: gnuplot reads a script with data from one file, and writes the picture to another.
 */
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench_file.h"

static const char look[] =
	"set border 3 linecolor '#555555'\n"
	"set grid xtics ytics linetype 1 linecolor '#dddddd'\n"
	"set tics nomirror out\n"
	"set key off\n"
	"set style line 1 linecolor '#0072b2' linewidth 2 pointtype 7 pointsize 0.7\n"
	"set style line 2 linecolor '#9ecae1'\n"
	"set style fill solid 0.6 noborder\n";

static const char size_axis[] =
	"set logscale x 2\n"
	"set xlabel 'Message size'\n"
	"set xtics ('1 B' 1, '8 B' 8, '64 B' 64, '512 B' 512, '4 KiB' 4096, "
	"'32 KiB' 32768, '256 KiB' 262144, '2 MiB' 2097152, '16 MiB' 16777216, "
	"'128 MiB' 134217728, '1 GiB' 1073741824)\n";

/* ---- checks ---- */

static bool program_find(const char *name)
{
	const char *path = getenv("PATH");
	char file[4096];
	size_t len;

	for (path = path ? path : "/usr/bin:/bin"; *path; path += len) {
		len = strcspn(path, ":");
		snprintf(file, sizeof(file), "%.*s/%s", (int)len, path, name);
		if (!access(file, X_OK))
			return true;
		len += path[len] == ':';
	}
	return false;
}

static const char *file_suffix(const char *path)
{
	const char *dot = strrchr(path, '.');

	return dot ? dot : "";
}

int bench_picture_check(const char *path)
{
	if (strcmp(file_suffix(path), ".svg") && strcmp(file_suffix(path), ".png"))
		return tool_error("--picture wants a name that ends in .svg or .png, not '%s'",
				  path);
	if (!program_find("gnuplot"))
		return tool_error("--picture needs gnuplot, which is not in PATH (Debian: gnuplot-nox)");
	return bench_file_check(path);
}

/* ---- the script ---- */

static void picture_terminal(FILE *f, const char *path, unsigned int panels)
{
	unsigned int width = panels > 1 ? 1280 : 960;

	if (!strcmp(file_suffix(path), ".svg"))
		fprintf(f, "set terminal svg size %u,600 dynamic font 'sans-serif,15' background '#ffffff'\n",
			width);
	else
		fprintf(f, "set terminal pngcairo size %u,900 font 'DejaVu Sans,15' background '#ffffff' fontscale 1.2 linewidth 1.5\n",
			width * 3 / 2);
	fputs(look, f);
}

/* Print points, without values that a logarithmic axis cannot show. */
static void point_data(FILE *f, const struct bench_result *r)
{
	size_t low = SIZE_MAX, high = 0;
	unsigned int i;

	fputs("$data << END\n", f);
	for (i = 0; i < r->n; i++) {
		const struct bench_point *p = &r->point[i];
		struct bench_value us = bench_us(r, p);
		struct bench_value rate = bench_rate(r, p);

		if (!p->size)
			continue;
		low = p->size < low ? p->size : low;
		high = p->size > high ? p->size : high;
		fprintf(f, "%zu %g %g %g %g %g %g\n", p->size, us.median,
			us.min, us.max, rate.median, rate.min, rate.max);
	}
	fprintf(f, "END\nset xrange [%g:%g]\n", (double)low * 0.8,
		(double)high * 1.25);
}

static void picture_panel(FILE *f, const char *title, const char *unit,
			  unsigned int column)
{
	fprintf(f, "set title '%s'\nset ylabel '%s'\n", title, unit);
	fprintf(f, "plot $data using 1:%u:%u with filledcurves linestyle 2, $data using 1:%u with linespoints linestyle 1\n",
		column + 1, column + 2, column);
}

static void points_draw(FILE *f, const char *path, const struct bench_result *r)
{
	static const char *const titles[] = {
		[MODE_PING] = "Bandwidth of the ping-pong",
		[MODE_STREAM] = "Bandwidth of a stream",
		[MODE_BOTH] = "Bandwidth in both directions together",
		[MODE_RATE] = "Messages per second",
	};

	picture_terminal(f, path, r->mode == MODE_PING ? 2 : 1);
	fputs(size_axis, f);
	point_data(f, r);
	if (r->mode == MODE_PING) {
		fputs("set multiplot layout 1,2\nset logscale y\n", f);
		picture_panel(f, "Latency (median, minimum, maximum)",
			      "Half a round trip, us", 2);
		fputs("unset logscale y\nset yrange [0:*]\n", f);
	}
	fputs("set yrange [0:*]\n", f);
	picture_panel(f, titles[r->mode], r->mode == MODE_RATE ?
		      "Million messages per second" :
		      "MB/s (10^6 bytes per second)", 5);
	if (r->mode == MODE_PING)
		fputs("unset multiplot\n", f);
}

static void sample_data(FILE *f, const struct bench_samples *s, unsigned int i)
{
	uint64_t done = 0, n, at;

	fprintf(f, "$data%u << END\n", i);
	for (; done < s->n; done += n) {
		at = bench_bin(s, s->ns[done]);
		n = bench_count_below(s, done, at + s->step);
		fprintf(f, "%g %g\n", (double)at + (double)s->step / 2,
			100.0 * (double)n / (double)s->n);
	}
	fputs("END\n", f);
}

static void histograms_draw(FILE *f, const char *path,
			    const struct bench_result *r)
{
	double high = 0, low = r->samples[0].ns[0];
	unsigned int i;

	picture_terminal(f, path, 1);
	for (i = 0; i < r->n; i++) {
		const struct bench_samples *s = &r->samples[i];
		double p99 = bench_quantile(s->ns, s->n, 0.99);

		high = p99 > high ? p99 : high;
		low = s->ns[0] < low ? s->ns[0] : low;
		sample_data(f, s, i);
	}
	fputs("set title 'Latency of each message'\n"
	      "set xlabel 'Half a round trip, ns'\n"
	      "set ylabel 'Share of round trips, %'\n"
	      "set key top right\nset yrange [0:*]\n", f);
	fprintf(f, "set xrange [%g:%g]\nplot ", low * 0.9,
		high + (high - low) * 0.25);
	for (i = 0; i < r->n; i++) {
		const struct bench_samples *s = &r->samples[i];

		fprintf(f, "%s$data%u with histeps linetype %u linewidth 2 title '%zu bytes: median %.0f, p99 %.0f ns'",
			i ? ", " : "", i, i + 1, s->size,
			bench_quantile(s->ns, s->n, 0.5),
			bench_quantile(s->ns, s->n, 0.99));
	}
	fputc('\n', f);
}

/* ---- gnuplot ---- */

static noreturn void gnuplot_exec(int in, int out)
{
	if (dup2(in, STDIN_FILENO) >= 0 && dup2(out, STDOUT_FILENO) >= 0)
		execlp("gnuplot", "gnuplot", "-", (char *)NULL);
	tool_error("cannot run gnuplot: %s", strerror(errno));
	_exit(127);
}

static int gnuplot_run(int in, int out)
{
	int status = -1;
	pid_t pid;

	fflush(NULL);
	/* while SIGCHLD is ignored, waitpid() does not report children */
	signal(SIGCHLD, SIG_DFL);
	pid = fork();
	if (!pid)
		gnuplot_exec(in, out);
	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		return tool_error("cannot run gnuplot: %s", strerror(errno));
	return status ? tool_error("gnuplot has failed") : TOOL_OK;
}

int bench_picture(const char *path, const struct bench_result *r)
{
	FILE *script = tmpfile();
	struct outfile o;
	int ret = TOOL_FAILED;

	if (!script)
		return tool_error("no temporary file: %s", strerror(errno));
	if (r->mode == MODE_HISTOGRAM)
		histograms_draw(script, path, r);
	else
		points_draw(script, path, r);
	if (fflush(script) || lseek(fileno(script), 0, SEEK_SET)) {
		fclose(script);
		return tool_error("cannot write a temporary file: %s",
				  strerror(errno));
	}
	if (!bench_file_open(&o, path)) {
		ret = gnuplot_run(fileno(script), o.fd);
		ret = ret ? ret : bench_file_commit(&o, path);
		outfile_close(&o);
	}
	fclose(script);
	return ret;
}
