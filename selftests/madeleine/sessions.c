// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/* Tests the parser of session files: their meaning, and errors. */
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "libsci/madeleine/internal.h"
#include "selftests/harness.h"
#include "selftests/madeleine/files.h"

static const char nets_text[] =
	"// networks of three places\n"
	"networks : ({ name : west;  dev : sisci;  hosts : (w1, w2, gate); },\n"
	"            { name : east;  dev : tcp;    hosts : (gate, { name : e1; }); },\n"
	"            { name : east;  dev : tcp;    hosts : e2; });	# merged\n";

static struct session *read_text(const char *text, const char *nets)
{
	char file[64], net[64];

	test_file(text, file);
	test_file(nets, net);
	return mad_session_read(file, net);
}

static int rank_in(struct session *s, const char *name, const char *host, int number)
{
	const struct def *d = tbx_htable_get(s->defs, name);
	int i = 0;

	CHECK(d);
	for (p_tbx_slist_element_t e = d->members->head; e; e = e->next, i++) {
		const ntbx_process_t *p = e->object;

		if (p->number == number && !strcmp(p->host, host))
			return i;
	}
	return -1;
}

static int global_rank(struct session *s, const char *host, int number)
{
	for (p_tbx_slist_element_t e = s->processes->head; e; e = e->next) {
		p_ntbx_process_t p = e->object;

		if (p->number == number && !strcmp(p->host, host))
			return p->global_rank;
	}
	return -1;
}

TEST(ranks_follow_the_file)
{
	struct session *s = read_text(
		"application : { name : ring;  flavor : sci;\n"
		"  networks : {\n"
		"    channels : ({ name : left;   net : west;  hosts : (w1, w2, gate); },\n"
		"                { name : right;  net : east;\n"
		"                  hosts : (gate, e1[0..1], e2); });\n"
		"    vchannels : { name : all;  channels : (left, right); }; }; };\n",
		nets_text);
	const struct def *left = tbx_htable_get(s->defs, "left");
	const struct def *all = tbx_htable_get(s->defs, "all");

	CHECK(!strcmp(s->program, "ring"));
	CHECK_EQ(s->processes->length, 6);
	CHECK_EQ(global_rank(s, "w1", 0), 0);
	CHECK_EQ(global_rank(s, "gate", 0), 2);
	CHECK_EQ(global_rank(s, "e1", 1), 4);
	CHECK_EQ(global_rank(s, "e2", 0), 5);
	CHECK_EQ(rank_in(s, "right", "gate", 0), 0);
	CHECK_EQ(rank_in(s, "right", "e2", 0), 3);
	CHECK_EQ(rank_in(s, "right", "w1", 0), -1);
	CHECK_EQ(rank_in(s, "all", "gate", 0), 2);
	CHECK_EQ(rank_in(s, "all", "e1", 0), 3);
	CHECK(left->user == all && !all->user);
	CHECK(mad_session_connected(all, all->members->head->object,
				    tbx_slist_index_get(all->members, 1)));
	CHECK(!mad_session_connected(all, all->members->head->object,
				     tbx_slist_index_get(all->members, 3)));
	mad_session_free(s);
}

/* West and east, and east and north, are joined by two gateways: each gets a share of the pairs. */
TEST(gateways_share_the_pairs)
{
	struct session *s = read_text(
		"application : { networks : { channels : (\n"
		" { name : west; net : a; hosts : (w[0..7], g[0..1]); },\n"
		" { name : east; net : b; hosts : (g[0..1], h[0..1]); },\n"
		" { name : north; net : c; hosts : (h[0..1], n[0..7]); });\n"
		" vchannels : { name : all;  channels : (west, east, north); }; }; };\n",
		"networks : ({ name : a; dev : sisci; }, { name : b; dev : tcp; },"
		" { name : c; dev : sisci; });");
	const struct def *all = tbx_htable_get(s->defs, "all");
	unsigned int used[20] = { 0 };
	p_ntbx_process_t way[20];

	for (int w = 0; w < 8; w++)
		for (int n = 12; n < 20; n++) {
			p_ntbx_process_t from = tbx_slist_index_get(s->processes, w);
			p_ntbx_process_t to = tbx_slist_index_get(s->processes, n);

			CHECK_EQ(mad_session_way(all, from, to, way), 3);
			CHECK(way[2] == to);
			used[way[0]->global_rank]++;
			used[way[1]->global_rank]++;
			CHECK_EQ(mad_session_way(all, to, from, way), 3);
			CHECK(way[2] == from);
		}
	CHECK_EQ(used[8] + used[9], 64);
	CHECK_EQ(used[10] + used[11], 64);
	for (int g = 8; g < 12; g++) {
		test_note("gateway %d: %u of 64 pairs", g, used[g]);
		CHECK(used[g] >= 24);
	}
	mad_session_free(s);
}

TEST(processes_without_a_channel_and_numbers)
{
	struct session *s = read_text(
		"application : { networks : { hosts : (e2, w2[3, 5..6]);\n"
		" channels : { name : c; net : west; hosts : (w2[5], w1, w2[0]); }; }; };",
		nets_text);

	CHECK(!s->program);
	CHECK_EQ(s->processes->length, 6);
	CHECK_EQ(global_rank(s, "e2", 0), 0);
	CHECK_EQ(global_rank(s, "w2", 3), 1);
	CHECK_EQ(global_rank(s, "w2", 6), 3);
	CHECK_EQ(global_rank(s, "w1", 0), 4);
	CHECK_EQ(global_rank(s, "w2", 0), 5);
	CHECK_EQ(rank_in(s, "c", "w2", 5), 0);
	mad_session_free(s);
}

TEST(names_and_comments)
{
	struct session *s = read_text(
		"application : { name : /a/b-c_d.e/f; // a program\n"
		" networks : { hosts : (e2//a comment\n, w1#another\n); }; };//", nets_text);

	CHECK(!strcmp(s->program, "/a/b-c_d.e/f"));
	CHECK_EQ(s->processes->length, 2);
	CHECK_EQ(global_rank(s, "e2", 0), 0);
	mad_session_free(s);
}

/* Return whether reading the text ends by abort(), in a process of its own. */
static bool refused(const char *text, const char *nets)
{
	pid_t pid = fork();
	int status;

	CHECK(pid >= 0);
	if (!pid) {
		signal(SIGABRT, SIG_DFL);
		if (!freopen("/dev/null", "w", stderr))
			_exit(1);
		read_text(text, nets);
		_exit(0);
	}
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	return WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT;
}

#define NETWORKS(text)	"application : { networks : { " text " }; };"
#define CHANNEL(text)	NETWORKS("channels : { name : c; " text " };")
#define TWO								\
	"channels : ({ name : a; net : west; hosts : (w1, w2); },"	\
	" { name : b; net : east; hosts : (e1, e2); });"

TEST(errors_in_files_are_fatal)
{
	static const char *const bad[] = {
		"", "application", "application : ", "application : {};", "application : 5;",
		"application : { networks : 5; };", NETWORKS("hosts : w1"), "{ a : b; };",
		NETWORKS("hosts : ();"), NETWORKS("hosts : (w1,);"), NETWORKS("hosts : \"w"),
		NETWORKS("hosts : w1[];"), NETWORKS("hosts : w1[2..1];"),
		NETWORKS("hosts : w1[0.1];"), NETWORKS("hosts : w1[99999999999];"),
		NETWORKS("hosts : w1[0..99999];"), NETWORKS("hosts : w1.2;"),
		NETWORKS("hosts : w1; hosts : w2;"), NETWORKS("/ hosts : w1;"),
		CHANNEL("net : west;"), CHANNEL("hosts : w1;"),
		CHANNEL("net : north; hosts : w1;"), CHANNEL("net : west; hosts : e1;"),
		CHANNEL("net : west; hosts : (w1, w2, w1);"),
		CHANNEL("net : west; hosts : w1[0, 0..3];"), CHANNEL("net : west; hosts : 5;"),
		NETWORKS("channels : { net : west; hosts : w1; };"),
		NETWORKS("channels : ({ name : a; net : west; hosts : w1; },"
			 " { name : a; net : west; hosts : w1; });"),
		/* no path between members; a channel that does not exist, or is used twice */
		NETWORKS(TWO "vchannels : { name : v; channels : (a, b); };"),
		NETWORKS(TWO "vchannels : { name : v; channels : (a, c); };"),
		NETWORKS(TWO "vchannels : { name : v; channels : (a, a); };"),
		NETWORKS(TWO "vchannels : { name : v; };"),
		/* a channel that is part of itself */
		NETWORKS(TWO "vchannels : { name : v; channels : (a, v); };"),
		NETWORKS(TWO "vchannels : ({ name : v; channels : a; },"
			 " { name : w; channels : a; });"),
		NETWORKS(TWO "xchannels : { name : x; channels : a; sub_channels : b; };"),
	};

	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		test_note("%s", bad[i]);
		CHECK(refused(bad[i], nets_text));
	}
	CHECK(!refused(NETWORKS(TWO), nets_text));
	CHECK(refused(NETWORKS(TWO), "networks : { name : west; };"));
	CHECK(refused(NETWORKS(TWO), "networks : { name : west; dev : tcp;"
				     " topology : { type : star; }; };"));
	CHECK(refused(NETWORKS(TWO), "nets : west;"));
}

/* The ranges of hosts overlap: each process is in the session once. */
TEST(a_session_of_many_processes)
{
	struct session *s = read_text(
		"application : { networks : { hosts : (w1[0..30000], w2[0..30000], w1[0..30000]); }; };",
		nets_text);

	CHECK_EQ(s->processes->length, 60002);
	CHECK_EQ(global_rank(s, "w1", 30000), 30000);
	CHECK_EQ(global_rank(s, "w2", 0), 30001);
	mad_session_free(s);
}

/* Objects are nested more deeply than the parser allows. */
TEST(deep_files_are_fatal)
{
	char text[2000];

	memset(text, '(', sizeof(text) - 1);
	memcpy(text, "a : ", 4);
	text[sizeof(text) - 1] = '\0';
	CHECK(refused(text, nets_text));
}
