// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/* Test profiles, the hardware that they describe, and the papers' protocols on it. */
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "selftests/harness.h"
#include "sim/vtime/papers.h"
#include "sim/vtime/raw.h"

#define TEXT_MAX	16384u
#define CHECK_NEAR(got, want, part) CHECK(near_to(#got, got, want, part))

static bool near_to(const char *what, double got, double want, double part)
{
	if (fabs(got - want) <= fabs(want) * part)
		return true;
	test_note("%s: %.9g, not %.9g within %g %%", what, got, want,
		  part * 100);
	return false;
}

static struct vt_profile profile(const char *name)
{
	struct vt_profile p;
	char path[64];

	snprintf(path, sizeof(path), "sim/profiles/%s.profile", name);
	CHECK(vt_profile_read(&p, path));
	return p;
}

/* Return the profile of a figure. */
static struct vt_profile profile_of(const char *name)
{
	const char lower[] = { (char)(name[0] - 'A' + 'a'), '\0' };

	return profile(lower);
}

/* ---- files ---- */

TEST(profiles_are_read)
{
	struct vt_profile a = profile("a"), b = profile("b"), c = profile("c");

	CHECK(!strcmp(a.name, "A") && !strcmp(b.name, "B") &&
	      !strcmp(c.name, "C"));
	CHECK(strstr(b.title, "D312") != NULL);
	CHECK_EQ(b.bus_line, 729700);
	CHECK_EQ(b.copy_rate, 334000000);
	CHECK_EQ(b.outstanding, 8);
	CHECK_EQ(c.bus_word, 3600);
	/* profiles A and B have the same cards; only CPU and store loop differ */
	CHECK_EQ(a.adapter_out, b.adapter_out);
	CHECK_EQ(a.mem_latency, b.mem_latency);
	CHECK_EQ(a.bus_fpu, b.bus_fpu);
}

static bool reads(const char *text)
{
	int fd = memfd_create("profile", 0);
	ssize_t len = (ssize_t)strlen(text);
	struct vt_profile p;
	char path[32];
	bool good;

	CHECK_EQ(write(fd, text, (size_t)len), len);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	good = vt_profile_read(&p, path);
	close(fd);
	return good;
}

static void read_text(char *text)
{
	FILE *f = fopen("sim/profiles/b.profile", "re");
	size_t len;

	CHECK(f != NULL);
	len = fread(text, 1, TEXT_MAX - 1, f);
	fclose(f);
	CHECK(len > 0 && len < TEXT_MAX - 256);
	text[len] = '\0';
}

/* Return whether @text with @line appended is a valid profile. */
static bool reads_with(const char *text, const char *line)
{
	char more[TEXT_MAX + 64];

	snprintf(more, sizeof(more), "%s%s\n", text, line);
	return reads(more);
}

TEST(a_profile_lacks_nothing)
{
	char text[TEXT_MAX], without[TEXT_MAX];
	unsigned int lines = 0;

	read_text(text);
	CHECK(reads(text));
	for (char *line = text; *line; line = strchr(line, '\n') + 1) {
		const char *next = strchr(line, '\n') + 1;

		if (*line == '#' || *line == '\n')
			continue;
		snprintf(without, sizeof(without), "%.*s%s",
			 (int)(line - text), text, next);
		CHECK(!reads(without));
		lines++;
	}
	CHECK(lines > 20);
}

TEST(a_profile_says_nothing_twice_or_wrong)
{
	char text[TEXT_MAX];

	read_text(text);
	CHECK(reads_with(text, "# a comment"));
	CHECK(!reads_with(text, "streams 8"));
	CHECK(!reads_with(text, "name B"));
	CHECK(!reads_with(text, "speed 5"));
	CHECK(!reads_with(text, "streams"));
	CHECK(!reads_with(text, "streams 8 8"));
	CHECK(!reads(""));
	CHECK(!reads("streams 7\n"));
	CHECK(!vt_profile_read(&(struct vt_profile){ 0 }, "sim/profiles/none"));
}

/* Return whether @text with another value of figure @name is a valid profile. */
static bool reads_as(const char *text, const char *name, const char *value)
{
	char other[TEXT_MAX + 64], key[32];
	const char *at, *end;

	snprintf(key, sizeof(key), "\n%s ", name);
	at = strstr(text, key);
	CHECK(at != NULL);
	end = strchr(at + 1, '\n');
	snprintf(other, sizeof(other), "%.*s\n%s %s%s", (int)(at - text), text,
		 name, value, end);
	return reads(other);
}

TEST(a_profiles_figures_have_a_range)
{
	char text[TEXT_MAX];

	read_text(text);
	CHECK(reads_as(text, "streams", "16"));
	CHECK(!reads_as(text, "streams", "4"));
	CHECK(!reads_as(text, "streams", "17"));
	CHECK(!reads_as(text, "outstanding", "65"));
	CHECK(!reads_as(text, "link_rate", "0"));
	CHECK(reads_as(text, "link_hop", "0"));
	CHECK(!reads_as(text, "link_hop", "-1"));
	CHECK(!reads_as(text, "link_hop", "nan"));
	CHECK(!reads_as(text, "link_hop", "80ns"));
	CHECK(!reads_as(text, "link_hop", "1e30"));
}

/* ---- hardware ---- */

TEST(the_model_has_the_raw_figures)
{
	for (size_t i = 0; i < raw_published_count; i++) {
		const struct raw_figure *f = &raw_published[i];
		struct vt_profile p = profile_of(f->profile);

		test_note("%s: %s", f->profile, f->source);
		CHECK_NEAR(raw_modelled(&p, f), f->value, f->tolerance);
	}
}

/* DECK, figure 1: the time rises with each byte, and falls where a line is full. */
TEST(stores_cost_what_a_saw_tooth_shows)
{
	struct vt_profile p = profile("b");
	double before = 0;

	for (size_t bytes = 1; bytes <= 256; bytes++) {
		struct raw_write w = raw_write(&p, bytes);
		size_t rest = bytes % 64;

		CHECK(w.latency > 0);
		CHECK_EQ(w.packets64, bytes / 64);
		CHECK_EQ(w.packets16, (rest + 15) / 16);
		if (rest)
			CHECK(w.latency >= before || rest == 1);
		else
			CHECK(w.latency < before);
		before = w.latency;
	}
}

TEST(sixty_bytes_take_longer_than_a_line)
{
	struct vt_profile p = profile("a");
	struct raw_write w60 = raw_write(&p, 60), w64 = raw_write(&p, 64);

	CHECK_EQ(w60.packets16, 4);
	CHECK_EQ(w64.packets16, 0);
	CHECK(w60.latency > w64.latency * 1.1);
}

/* DECK, figure 2: a block that fills all stream buffers has full bandwidth. */
TEST(a_block_of_all_buffers_has_full_speed)
{
	struct vt_profile p = profile("b");
	double peak = raw_write_rate(&p, 65536, true);

	CHECK_NEAR(raw_write_rate(&p, 512, true), peak, 0.01);
	CHECK(raw_write_rate(&p, 256, true) < peak * 0.98);
	CHECK(raw_write_rate(&p, 64, true) < peak / 2);
	CHECK(raw_write_rate(&p, 65536, false) < peak * 0.6);
}

/* The paper says "approximately ten times slower"; profile.h has the cost of a load. */
TEST(reads_are_several_times_slower)
{
	struct vt_profile p = profile("b");

	CHECK(raw_read_rate(&p, 4096) * 5 < raw_write_rate(&p, 4096, true));
}

/* ---- papers ---- */

TEST(the_papers_figures_are_reproduced)
{
	for (size_t i = 0; i < papers_published_count; i++) {
		const struct paper_figure *f = &papers_published[i];
		struct vt_profile p = profile_of(f->profile);
		double v = papers_modelled(&p, f);

		if (f->within) {
			test_note("%s: %s", papers_name(f->system), f->source);
			CHECK_NEAR(v, f->value, f->within);
		} else {
			CHECK(v == 0);
		}
	}
}

TEST(one_packet_takes_the_same_time_whatever_is_in_it)
{
	struct vt_profile p = profile("b");
	double empty = papers_latency(&p, DECK_1, 0);

	for (size_t bytes = 1; bytes <= 62; bytes++)
		CHECK_NEAR(papers_latency(&p, DECK_1, bytes), empty, 0.001);
	CHECK(papers_latency(&p, DECK_1, 63) == 0);
	CHECK(papers_latency(&p, MPICH_SHORT, 48) == 0);
	CHECK(papers_latency(&p, MPICH_SHORT, 47) >
	      papers_latency(&p, MPICH_SHORT, 0));
}

TEST(systems_choose_their_protocols)
{
	static const struct {
		enum paper_system system, protocol;
		size_t bytes;
	} cases[] = {
		{ DECK, DECK_1, 62 },
		{ DECK, DECK_2, 63 },
		{ DECK, DECK_2, 1024 },
		{ DECK, DECK_3, 1025 },
		{ MPICH, MPICH_SHORT, 47 },
		{ MPICH, MPICH_EAGER, 48 },
		{ MPICH, MPICH_EAGER, 32768 },
		{ MPICH, MPICH_RENDEZVOUS, 32769 },
	};
	struct vt_profile p = profile("b");

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		double v = papers_latency(&p, cases[i].system, cases[i].bytes);

		CHECK(v > 0);
		CHECK(v == papers_latency(&p, cases[i].protocol,
					  cases[i].bytes));
	}
}

/* Odd sizes, messages of several parts, and profile C. */
TEST(protocols_carry_any_size)
{
	static const size_t sizes[] = { 0, 1, 55, 57, 8191, 8193, 524289 };
	struct vt_profile c = profile("c");

	for (size_t i = 0; i < ARRAY_LEN(sizes); i++)
		for (int s = DECK_2; s <= MPICH_EQUATIONS; s++)
			if (s != MPICH_SHORT)
				CHECK(papers_latency(&c, (enum paper_system)s,
						     sizes[i]) > 0);
}

/* Compare with values computed by hand from table 1. */
TEST(the_equations_are_the_papers)
{
	const struct mpich_parameters m = {
		.l_packet = 4e-6, .b_cr = 76.3e6, .b_cl = 334e6,
		.l_header = 12 / 142.9e6, .l_lr = 31e-9, .l_rw = 2.7e-6,
		.s_buf = 65536, .s_block = 8192,
	};

	CHECK_NEAR(mpich_equation_short(&m, 0), 4.114975e-6, 1e-6);
	CHECK_NEAR(mpich_equation_short(&m, 16), 4.162879e-6, 1e-6);
	CHECK_NEAR(mpich_equation_short_rate(&m, 16), 3.843494e6, 1e-6);
	CHECK_NEAR(mpich_equation_eager(&m, 1024), 26.474733e-6, 1e-6);
	CHECK_NEAR(mpich_equation_eager_rate(&m, 1024), 38.678389e6, 1e-6);
	/* 2 parts, 10 blocks, and a rest of 18080 bytes */
	CHECK_NEAR(mpich_equation_rendezvous(&m, 100000), 1455.257540e-6, 1e-6);
	CHECK_NEAR(mpich_equation_rendezvous_rate(&m, 100000), 68.716359e6,
		   1e-6);
	/* no block, only a rest */
	CHECK_NEAR(mpich_equation_rendezvous(&m, 4096), 93.859620e-6, 1e-6);
}

TEST(parameters_are_the_profiles)
{
	struct vt_profile a = profile("a");
	struct mpich_parameters m = mpich_parameters(&a);

	CHECK_NEAR(m.l_rw, 2.7e-6, 0.01);
	CHECK_NEAR(m.l_packet + m.l_lr, raw_write(&a, 64).latency * 1e-12,
		   0.001);
	CHECK_NEAR(m.b_cr, 76.3e6, 0.001);
	CHECK_NEAR(m.b_cl, 334e6, 0.001);
	CHECK_NEAR(m.l_header, 12 / 142.9e6, 0.001);
}

/* The simulated time exceeds that of the equations, for long messages by up to 2 %. */
TEST(the_equations_bound_what_runs)
{
	struct vt_profile a = profile("a");

	for (size_t bytes = 16; bytes <= 32768; bytes *= 2)
		CHECK(papers_latency(&a, MPICH, bytes) >
		      papers_latency(&a, MPICH_EQUATIONS, bytes));
	/* equation (5) counts the latency of a packet twice for each block */
	for (size_t bytes = 65536; bytes <= 1 << 20; bytes *= 2)
		CHECK_NEAR(papers_latency(&a, MPICH, bytes),
			   papers_latency(&a, MPICH_EQUATIONS, bytes), 0.02);
}
