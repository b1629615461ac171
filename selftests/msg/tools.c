// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/* The `sci` command: bench, tune and error messages; and scripts/check-leftovers. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "libsci/base/host.h"
#include "selftests/harness.h"

#define TEXT_MAX	65536
#define ARGS_MAX	32

/* The result of one command. */
struct ran {
	int status;
	char out[TEXT_MAX];
	char err[TEXT_MAX];
};

static char dir[64];		/* folder of this test's files */

static void remove_dir(void)
{
	char cmd[128];

	snprintf(cmd, sizeof(cmd), "rm -rf '%s'", dir);
	/* NOLINTNEXTLINE(cert-env33-c,concurrency-mt-unsafe): our own name */
	CHECK_EQ(system(cmd), 0);
}

static void make_dir(void)
{
	const char *tmp = getenv("TMPDIR");

	snprintf(dir, sizeof(dir), "%.40s/sci-tools.XXXXXX",
		 tmp ? tmp : "/tmp");
	CHECK(mkdtemp(dir));
}

static const char *in_dir(const char *name)
{
	static char path[4][128];
	static unsigned int n;
	char *p = path[n++ % 4];

	snprintf(p, sizeof(path[0]), "%s/%s", dir, name);
	return p;
}

static void read_file(const char *path, char *text)
{
	FILE *f = fopen(path, "r");

	CHECK(f);
	text[fread(text, 1, TEXT_MAX - 1, f)] = '\0';
	fclose(f);
}

/* build/selftests/msg/tools stands beside build/sci. */
static void sci_path(char path[PATH_MAX])
{
	ssize_t n = readlink("/proc/self/exe", path, PATH_MAX - 1);
	int i;

	CHECK(n > 0);
	path[n] = '\0';
	for (i = 0; i < 3; i++)
		*strrchr(path, '/') = '\0';
	n = (ssize_t)strlen(path);
	snprintf(path + n, (size_t)(PATH_MAX - n), "/sci");
}

static bool ignore_children;		/* start `sci` with SIGCHLD ignored */

/* Start `sci @args`. The files of its output are out and err, with @prefix. */
static pid_t start_as(const char *prefix, const char *args)
{
	char name[2][32];
	char path[PATH_MAX], words[1024], *argv[ARGS_MAX] = { path }, *rest;
	unsigned int n = 1;
	pid_t pid;

	snprintf(name[0], sizeof(name[0]), "%sout", prefix);
	snprintf(name[1], sizeof(name[1]), "%serr", prefix);
	sci_path(path);
	snprintf(words, sizeof(words), "%s", args);
	for (rest = words; n < ARGS_MAX - 1 && (argv[n] = strsep(&rest, " "));)
		n++;
	pid = fork();
	CHECK(pid >= 0);
	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	signal(SIGCHLD, ignore_children ? SIG_IGN : SIG_DFL);
	if (!freopen(in_dir(name[0]), "w", stdout) ||
	    !freopen(in_dir(name[1]), "w", stderr))
		_exit(99);
	execv(path, argv);
	_exit(98);
}

static pid_t start(const char *args)
{
	return start_as("", args);
}

static void finish(struct ran *r, pid_t pid)
{
	int status;

	CHECK_EQ(waitpid(pid, &status, 0), pid);
	r->status = WIFEXITED(status) ? WEXITSTATUS(status) :
					-WTERMSIG(status);
	read_file(in_dir("out"), r->out);
	read_file(in_dir("err"), r->err);
	test_note("status %d, %s", r->status, r->err);
}

static void run(struct ran *r, const char *args)
{
	test_note("sci %s", args);
	finish(r, start(args));
}

static struct ran ran;

#define OUT_HAS(text)	CHECK(strstr(ran.out, text))
#define ERR_HAS(text)	CHECK(strstr(ran.err, text))

static void works(const char *args)
{
	run(&ran, args);
	CHECK_EQ(ran.status, 0);
	CHECK_EQ(ran.err[0], 0);
}

/* ---- bench ---- */

TEST(every_size_goes_by_its_protocol)
{
	make_dir();
	setenv("SCI_MSG_LINES_MAX", "256", 1);
	setenv("SCI_MSG_EAGER_MAX", "16384", 1);
	setenv("SCI_MSG_SINGLE_COPY_MIN", "never", 1);
	works("bench -S 0,8,100,8K,100K -R 2 -t 0.001");
	OUT_HAS("ping-pong");
	OUT_HAS("latency us");
	OUT_HAS(" short\n");
	OUT_HAS(" lines\n");
	OUT_HAS(" eager\n");
	OUT_HAS(" rendezvous\n");
	works("bench -S 100K -R 1 -t 0.001 --zero-copy");
	OUT_HAS(" zero-copy\n");
	unsetenv("SCI_MSG_SINGLE_COPY_MIN");
	if (test_on_shm() && sci_processes_are_readable()) {
		works("bench -S 100K,300K -R 1 -t 0.001");
		OUT_HAS(" rendezvous\n");
		OUT_HAS(" single copy\n");
	}
	unsetenv("SCI_MSG_LINES_MAX");
	unsetenv("SCI_MSG_EAGER_MAX");
	remove_dir();
}

TEST(all_modes_print_a_table)
{
	static const char *const modes[] = {
		"--stream", "--bi-directional", "--rate", "--stream --tagged",
		"-2 -z", "--rate --single-thread", "--crc --stream",
		"--tagged --zero-copy",
	};
	char args[128];

	make_dir();
	for (size_t i = 0; i < ARRAY_LEN(modes); i++) {
		snprintf(args, sizeof(args),
			 "bench -S 8..64,40K -R 1 -t 0.001 %s", modes[i]);
		works(args);
		OUT_HAS("protocol\n");
		OUT_HAS("\n     40960 ");
		OUT_HAS("\n        16 ");
	}
	remove_dir();
}

TEST(a_histogram_counts_every_round_trip)
{
	unsigned long bytes, from, to, n, sum = 0, last = 0;
	char *line;

	make_dir();
	works("bench -H -c 2000 --tsv -");
	CHECK_EQ(strncmp(ran.out, "# bytes 8 min ", 14), 0);
	line = strstr(ran.out, "bytes\tns\tto_ns\tround_trips\n");
	CHECK(line);
	while ((line = strchr(line, '\n') + 1) && *line) {
		CHECK_EQ(sscanf(line, "%lu %lu %lu %lu", &bytes, &from, &to,
				&n), 4);
		CHECK_EQ(bytes, 8);
		CHECK(from < to && from >= last);
		last = to;
		sum += n;
	}
	CHECK_EQ(sum, 2000);
	works("bench -H -c 1 -S 0,64,10K");
	OUT_HAS("p99.9");
	remove_dir();
}

TEST(memory_per_peer)
{
	make_dir();
	works("bench --memory --peers 9");
	OUT_HAS("9 peers");
	works("bench -m -n 3 --tsv -");
	OUT_HAS("3\tconnected\t");
	OUT_HAS("3\tafter_long\t");
	remove_dir();
}

/* Braces match, outside of strings, which contain no quotes. */
static void check_json(const char *s)
{
	int depth = 0;
	bool in_string = false;

	for (; *s; s++) {
		in_string ^= *s == '"';
		if (in_string)
			continue;
		depth += *s == '{' || *s == '[';
		depth -= *s == '}' || *s == ']';
		CHECK(depth >= 0);
	}
	CHECK_EQ(depth, 0);
	CHECK(!in_string);
}

TEST(values_are_ordered_in_the_files)
{
	double us[3], rate[3];
	unsigned long bytes;
	char args[512], *line;

	make_dir();
	snprintf(args, sizeof(args),
		 "bench -S 8,8K -R 4 -t 0.001 --tsv %s --json %s",
		 in_dir("a.tsv"), in_dir("a.json"));
	works(args);
	read_file(in_dir("a.tsv"), ran.out);
	line = strchr(ran.out, '\n') + 1;
	for (int i = 0; i < 2; i++, line = strchr(line, '\n') + 1) {
		CHECK_EQ(sscanf(line, "%lu %lf %lf %lf %lf %lf %lf", &bytes,
				&us[0], &us[1], &us[2], &rate[0], &rate[1],
				&rate[2]), 7);
		CHECK_EQ(bytes, i ? 8192 : 8);
		CHECK(us[1] > 0 && us[1] <= us[0] && us[0] <= us[2]);
		CHECK(rate[1] > 0 && rate[1] <= rate[0] && rate[0] <= rate[2]);
	}
	CHECK_EQ(*line, 0);
	read_file(in_dir("a.json"), ran.out);
	check_json(ran.out);
	OUT_HAS("\"mode\": \"ping-pong\"");
	OUT_HAS("\"protocol\": \"eager\"");
	remove_dir();
}

/* ---- pictures ---- */

TEST(without_gnuplot_it_says_so_at_once)
{
	char args[256];

	make_dir();
	setenv("PATH", dir, 1);
	snprintf(args, sizeof(args), "bench --picture %s", in_dir("a.svg"));
	run(&ran, args);
	CHECK_EQ(ran.status, 1);
	ERR_HAS("needs gnuplot");
	CHECK_EQ(ran.out[0], 0);
	CHECK(access(in_dir("a.svg"), F_OK));
	setenv("PATH", "/usr/bin:/bin", 1);
	remove_dir();
}

/* The program in the place of gnuplot draws nothing. */
TEST(a_picture_with_SIGCHLD_ignored)
{
	char args[256];

	make_dir();
	CHECK_EQ(symlink("/bin/true", in_dir("gnuplot")), 0);
	setenv("PATH", dir, 1);
	ignore_children = true;
	snprintf(args, sizeof(args), "bench -R 1 -t 0.001 -S 8 --picture %s", in_dir("a.svg"));
	works(args);
	CHECK(!access(in_dir("a.svg"), F_OK));
	setenv("PATH", "/usr/bin:/bin", 1);
	remove_dir();
}

TEST(pictures)
{
	static const char *const modes[] = { "", "-s", "-r -S 8,64",
					     "-H -c 500 -S 8,64" };
	char args[256];

	if (access("/usr/bin/gnuplot", X_OK))
		SKIP("no gnuplot here");
	make_dir();
	for (size_t i = 0; i < ARRAY_LEN(modes); i++) {
		snprintf(args, sizeof(args),
			 "bench -R 1 -t 0.001 %s --picture %s",
			 modes[i][0] ? modes[i] : "-S 1..1K", in_dir("a.svg"));
		run(&ran, args);
		CHECK_EQ(ran.status, 0);
		read_file(in_dir("a.svg"), ran.out);
		OUT_HAS("<svg");
		OUT_HAS("</svg>");
	}
	remove_dir();
}

/* ---- what is refused ---- */

static void refused(const char *args, int status, const char *why)
{
	run(&ran, args);
	CHECK_EQ(ran.status, status);
	CHECK_EQ(ran.out[0], 0);
	ERR_HAS(why);
	CHECK_EQ(strncmp(ran.err, "sci: ", 5), 0);
}

TEST(wrong_usage)
{
	make_dir();
	refused("bench -s -r", 2, "one of --stream");
	refused("bench 8", 2, "options only");
	refused("bench --size 4..2", 2, "--size wants");
	refused("bench --size 8,,9", 2, "--size wants");
	refused("bench --size 2G", 2, "--size wants");
	refused("bench --rounds 0", 2, "--rounds wants");
	refused("bench --serve --peer 8", 2, "--serve or --peer");
	refused("bench --memory --picture a.svg", 2, "no picture");
	refused("bench --picture a.jpg", 1, ".svg or .png");
	refused("bench --peer 8:0", 1, "NODE or NODE:ID");
	refused("bench --tsv - --json -", 2, "standard output");
	refused("bench --size 0 --picture a.svg", 2, "above 0");
	refused("tune now", 2, "options only");
	remove_dir();
}

TEST(files_that_cannot_be_written)
{
	make_dir();
	refused("bench --tsv /nowhere/a.tsv", 1,
		"/nowhere/a.tsv: No such file or directory");
	refused("bench --json /dev/null", 1, "something that is no file");
	refused("bench --tsv /tmp/", 1, "no name of a file");
	refused("tune -o /nowhere/table", 1, "/nowhere/table: ");
	remove_dir();
}

TEST(wrong_environment)
{
	make_dir();
	setenv("SCI_MSG_BLOCK", "much", 1);
	run(&ran, "bench -S 8");
	CHECK_EQ(ran.status, 1);
	ERR_HAS("SCI_MSG_BLOCK: much: not understood");
	ERR_HAS("cannot join the fabric");
	unsetenv("SCI_MSG_BLOCK");
	remove_dir();
}

/* Each error names the variable and its value, and what it may be instead. */
TEST(wrong_variables_are_explained)
{
	static const struct {
		const char *var, *value, *want;
	} bad[] = {
		{ "SCI_FABRIC", "foo", "want auto, dev, dev:DEVICE,..., shm" },
		{ "SCI_FABRIC", "shm:a.b", "want shm:CLUSTER, at most 32 let" },
		{ "SCI_FABRIC", "shm:0123456789abcdef0123456789abcdef0",
		  "want shm:CLUSTER, at most 32 let" },
		{ "SCI_NODE", "6", "a multiple of 4 from 4 to 65532" },
		{ "SCI_NODE", "0", "a multiple of 4 from 4 to 65532" },
		{ "SCI_NODE", "65536", "a multiple of 4 from 4 to 65532" },
		{ "SCI_NODE", "four", "a multiple of 4 from 4 to 65532" },
		{ "SCI_NODES", "0", "from 1 to 16383" },
		{ "SCI_NODES", "16384", "from 1 to 16383" },
		{ "SCI_MODE", "0777", "as 0600, 0640 or 0666" },
		{ "SCI_MODE", "rw", "as 0600, 0640 or 0666" },
		{ "SCI_HUGEPAGES", "4M", "want 0, 2M or 1G" },
		{ "SCI_MEMBARRIER", "2", "want 0 or 1" },
		{ "SCI_NUMA", "0,1", "want the number of a NUMA node" },
		{ "SCI_NUMA", "-1", "want the number of a NUMA node" },
		{ "SCI_FAULT", "los=1", "want loss=P, reorder=P" },
		{ "SCI_RUNDIR", "/nowhere", "No such file or directory: want" },
		{ "SCI_RUNDIR", "/proc/self", "want a directory that this us" },
	};
	static const char *const tools[] = { "info", "nodes" };
	char text[128];

	test_needs_shm();
	make_dir();
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		char *was = getenv(bad[i].var);

		was = was ? strdup(was) : NULL;
		setenv(bad[i].var, bad[i].value, 1);
		run(&ran, tools[i % 2]);
		CHECK_EQ(ran.status, 1);
		snprintf(text, sizeof(text), "libsci: %s=%s: ", bad[i].var,
			 bad[i].value);
		ERR_HAS(text);
		ERR_HAS(bad[i].want);
		ERR_HAS("\nsci: cannot join the fabric\n");
		if (was)
			setenv(bad[i].var, was, 1);
		else
			unsetenv(bad[i].var);
		free(was);
	}
	remove_dir();
}

TEST(missing_adapters_are_explained)
{
	test_needs_shm();
	make_dir();
	setenv("SCI_FABRIC", "dev:/dev/null", 1);
	run(&ran, "info");
	CHECK_EQ(ran.status, 1);
	ERR_HAS("libsci: cannot open /dev/null: no SCI adapter: name one of /dev/sci*, or set SCI_FABRIC=shm");
	ERR_HAS("\nsci: cannot join the fabric\n");
	if (access("/dev/sci0", F_OK)) {
		setenv("SCI_FABRIC", "dev", 1);
		run(&ran, "info");
		CHECK_EQ(ran.status, 1);
		ERR_HAS("SCI_FABRIC=dev: no /dev/sci*: modprobe sci_loop, or");
	}
	remove_dir();
}

/* ---- the check for leftovers ---- */

/* Send away a socket of cluster @of, so that no process holds it. */
static int socket_on_its_way(const char *of)
{
	struct sockaddr_un sa = { .sun_family = AF_UNIX };
	union {
		struct cmsghdr head;
		char room[CMSG_SPACE(sizeof(int))];
	} control = { .head = { .cmsg_level = SOL_SOCKET,
				.cmsg_type = SCM_RIGHTS,
				.cmsg_len = CMSG_LEN(sizeof(int)) } };
	char byte = 0;
	struct iovec iov = { &byte, 1 };
	struct msghdr mh = { .msg_iov = &iov, .msg_iovlen = 1,
			     .msg_control = &control,
			     .msg_controllen = sizeof(control) };
	int s = socket(AF_UNIX, SOCK_DGRAM, 0), pair[2], n;

	n = snprintf(sa.sun_path + 1, sizeof(sa.sun_path) - 1, "sci.%s.n.4.1",
		     of);
	CHECK_EQ(bind(s, (struct sockaddr *)&sa,
		      (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 +
				  (size_t)n)), 0);
	CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
	memcpy(CMSG_DATA(&control.head), &s, sizeof(s));
	CHECK_EQ(sendmsg(pair[0], &mh, 0), 1);
	close(s);
	close(pair[0]);
	return pair[1];
}

static bool finds_socket(const char *mark)
{
	static char text[TEXT_MAX];
	char cmd[512];

	setenv("SCI_TEST_MARK", mark, 1);
	snprintf(cmd, sizeof(cmd),
		 "mkdir -p '%s/tmp' && scripts/check-leftovers save '%s' && "
		 "scripts/check-leftovers check '%s' '%s' > '%s'", dir, dir,
		 dir, in_dir("O"), in_dir("out"));
	/* NOLINTNEXTLINE(cert-env33-c,concurrency-mt-unsafe): our own names */
	CHECK(system(cmd) != -1);
	read_file(in_dir("out"), text);
	CHECK(strstr(text, " - no abstract socket"));
	return strstr(text, "not ok 3 - no abstract socket");
}

TEST(leftovers_are_of_the_clusters_of_the_run)
{
	int on_its_way[2];
	char ours[64];

	/* a virtual machine has the programs, but no scripts */
	if (access("scripts/check-leftovers", X_OK))
		SKIP("no scripts/check-leftovers in the working folder");
	make_dir();
	snprintf(ours, sizeof(ours), "tmark%s", test_cluster());
	on_its_way[0] = socket_on_its_way(ours);
	CHECK(finds_socket("mark"));
	close(on_its_way[0]);
	snprintf(ours, sizeof(ours), "tother%s", test_cluster());
	on_its_way[0] = socket_on_its_way(ours);
	on_its_way[1] = socket_on_its_way("foreign");
	CHECK(!finds_socket("mark"));
	close(on_its_way[0]);
	close(on_its_way[1]);
	remove_dir();
}

/* ---- two programs ---- */

static pid_t start_server(const char *args)
{
	pid_t pid;

	setenv("SCI_NODE", "8", 1);
	pid = start_as("server-", args);
	setenv("SCI_NODE", "4", 1);
	return pid;
}

/* Count the clients that a server has accepted. It runs with --verbose: each client is a line. */
static unsigned int accepted(void)
{
	static char text[TEXT_MAX];
	unsigned int n = 0;

	if (access(in_dir("server-err"), R_OK))
		return 0;
	read_file(in_dir("server-err"), text);
	for (const char *c = text; (c = strchr(c, '\n')); c++)
		n++;
	return n;
}

static void stop(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

TEST(a_server_serves_one_client_after_the_other)
{
	pid_t server, client;
	unsigned int before;

	make_dir();
	server = start_server("bench --serve --verbose --id 77");
	works("bench --peer node8:77 -S 8,100K -R 1 -t 0.001");
	works("bench --peer 8 --id 77 -s -z -S 100K -R 1 -t 0.001");
	works("bench --peer 8:77 -m -n 2");
	/* a client that dies in the middle of its run */
	before = accepted();
	client = start("bench --peer 8:77 -S 1M -R 99 -t 10");
	WAIT_UNTIL(accepted() > before, TEST_WAIT_MS);
	stop(client);
	works("bench --peer 8:77 -r -R 1 -t 0.001");
	stop(server);
	remove_dir();
}

TEST(a_server_that_dies)
{
	pid_t server, client;

	make_dir();
	do {
		server = start_server("bench --serve --verbose");
		client = start("bench --peer 8 -S 8 -R 99 -t 10");
		WAIT_UNTIL(accepted() > 0, TEST_WAIT_MS);
		stop(server);
		CHECK_EQ(unlink(in_dir("server-err")), 0);
		finish(&ran, client);
		CHECK_EQ(ran.status, 1);
		/* the server may die before the client's connect has ended */
	} while (strstr(ran.err, "cannot connect to endpoint") || strstr(ran.err, "no endpoint"));
	ERR_HAS("the other process has died");
	remove_dir();
}

TEST(nobody_serves)
{
	make_dir();
	refused("bench --peer 8:5", 1, "does `sci bench --serve` run there?");
	remove_dir();
}

TEST(two_servers_of_one_number)
{
	pid_t server;

	make_dir();
	server = start_server("bench --serve");
	works("bench --peer 8 -S 8 -R 1 -t 0.001");
	setenv("SCI_NODE", "8", 1);
	refused("bench --serve", 1, "is taken");
	stop(server);
	remove_dir();
}

/* ---- tune ---- */

TEST(a_table_that_the_library_reads)
{
	char args[256], text[TEXT_MAX];

	make_dir();
	snprintf(args, sizeof(args), "tune -R 1 -t 0.001 --output %s",
		 in_dir("table"));
	works(args);
	OUT_HAS("lines_max: ");
	OUT_HAS("eager_max: ");
	OUT_HAS("single_copy_min: ");
	read_file(in_dir("table"), text);
	CHECK(strstr(text, test_on_shm() ?
		     "# messages over shm, measured by `sci tune` on" :
		     "# messages over dev, measured by `sci tune` on"));
	CHECK(strstr(text, "# zcopy_min: "));
	setenv("SCI_MSG_TABLE", in_dir("table"), 1);
	works("bench -S 8,1M -R 1 -t 0.001");
	unsetenv("SCI_MSG_TABLE");
	remove_dir();
}

TEST(a_value_from_the_environment_is_no_default)
{
	setenv("SCI_MSG_EAGER_MAX", "123", 1);
	works("tune -R 1 -t 0.001");
	CHECK(!strstr(ran.out, "eager_max: 123 "));
	CHECK(!strstr(ran.out, "eager_max 123\n"));
	OUT_HAS("# for SCI_MSG_TABLE: FABRIC NAME VALUE\n");
	unsetenv("SCI_MSG_EAGER_MAX");
}

TEST(tune_with_a_server)
{
	pid_t server;

	make_dir();
	server = start_server("bench --serve");
	works("tune -R 1 -t 0.001 --peer 8");
	OUT_HAS("# block: ");
	stop(server);
	remove_dir();
}

/*
 * The parameters that tune finds are those for the network that reaches the server: it compares with
 * their defaults. Which value is the best one is a measurement, and no test can know it.
 */
TEST(tune_over_sockets)
{
	pid_t server;

	make_dir();
	test_use_net("unix", 8);
	server = start_server("bench --serve");
	test_use_net("unix", 4);
	works("tune -R 1 -t 0.001 --peer 8");
	OUT_HAS("# messages over net,");
	CHECK(strstr(ran.out, "# eager_max: 65536 stays: ") ||
	      strstr(ran.out, " instead of 65536: "));
	works("bench -R 1 -t 0.001 -S 8 --peer 8");
	OUT_HAS("fabric net,");
	stop(server);
	remove_dir();
}
