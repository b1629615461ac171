// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/*
 * `sci counters`, with adapters that are files in a folder of this test, and with adapters of
 * the loop driver, which can inject errors.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <sisci_api.h>

#include "selftests/harness.h"

#define SYSFS		"/sys/class/sci"
#define DEBUGFS		"/sys/kernel/debug"
#define ARGS_MAX	16
#define TEXT_MAX	8192
#define WATCH		"counters -w -i 0.01 "

/* ---- files ---- */

static bool read_number(const char *path, long long *value)
{
	FILE *f = fopen(path, "re");
	int n;

	if (!f)
		return false;
	n = fscanf(f, "%lld", value);
	fclose(f);
	return n == 1;
}

/* Return 0 or -errno: a file of the kernel may refuse a write. */
static int write_text(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	ssize_t n;

	if (fd < 0)
		return -errno;
	n = write(fd, text, strlen(text));
	n = n < 0 ? -errno : 0;
	close(fd);
	return (int)n;
}

/* ---- the command ---- */

/* A running command. The test reads its output line by line. */
struct tool {
	pid_t pid;
	int out, err;
	size_t have;
	char text[TEXT_MAX];		/* output that has been read and is still to be checked */
};

/* build/selftests/fabric/counters stands beside build/sci. */
static void sci_path(char path[PATH_MAX])
{
	ssize_t n = readlink("/proc/self/exe", path, PATH_MAX - 1);

	CHECK(n > 0);
	path[n] = '\0';
	for (int i = 0; i < 3; i++)
		*strrchr(path, '/') = '\0';
	n = (ssize_t)strlen(path);
	snprintf(path + n, (size_t)(PATH_MAX - n), "/sci");
}

static struct tool *start(const char *args)
{
	char path[PATH_MAX], words[256], *argv[ARGS_MAX] = { path }, *rest;
	struct tool *t = calloc(1, sizeof(*t));
	int out[2], err[2], n = 1;

	CHECK(t != NULL);
	sci_path(path);
	snprintf(words, sizeof(words), "%s", args);
	for (rest = words; n < ARGS_MAX - 1 && (argv[n] = strsep(&rest, " "));)
		n += *argv[n] != '\0';
	argv[n] = NULL;
	CHECK(!pipe2(out, O_CLOEXEC) && !pipe2(err, O_CLOEXEC));
	t->pid = fork();
	CHECK(t->pid >= 0);
	if (!t->pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		dup2(out[1], STDOUT_FILENO);
		dup2(err[1], STDERR_FILENO);
		execv(path, argv);
		_exit(98);
	}
	close(out[1]);
	close(err[1]);
	t->out = out[0];
	t->err = err[0];
	return t;
}

/* Read more output. Return false at its end. */
static bool more(struct tool *t)
{
	struct pollfd pfd = { .fd = t->out, .events = POLLIN };
	ssize_t n;

	CHECK(t->have < sizeof(t->text) - 1);
	if (poll(&pfd, 1, TEST_WAIT_MS) != 1)
		FAIL("`sci counters` is silent after \"%s\"", t->text);
	n = read(t->out, t->text + t->have, sizeof(t->text) - 1 - t->have);
	CHECK(n >= 0);
	t->have += (size_t)n;
	t->text[t->have] = '\0';
	return n > 0;
}

/* Get the next line. Return false if there is none. */
static bool next_line(struct tool *t, char line[TEXT_MAX])
{
	char *end;
	size_t n;

	while (!(end = strchr(t->text, '\n')))
		if (!more(t))
			return false;
	n = (size_t)(end - t->text);
	memcpy(line, t->text, n);
	line[n] = '\0';
	t->have -= n + 1;
	memmove(t->text, end + 1, t->have + 1);
	return true;
}

/* Wait for the end of the command. Return its status; @err: its standard error. */
static int finish(struct tool *t, char err[TEXT_MAX])
{
	ssize_t n;
	int status;

	while (more(t))
		;
	n = read(t->err, err, TEXT_MAX - 1);
	CHECK(n >= 0);
	err[n] = '\0';
	CHECK_EQ(waitpid(t->pid, &status, 0), t->pid);
	close(t->out);
	close(t->err);
	CHECK(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static void ends_with(struct tool *t, int status, const char *complaint)
{
	char err[TEXT_MAX];
	int got = finish(t, err);

	if (got != status || strcmp(err, complaint))
		FAIL("status %d, said \"%s\"", got, err);
	free(t);
}

/* Run a command that prints @text and ends. */
static void prints(const char *args, const char *text)
{
	struct tool *t = start(args);
	char err[TEXT_MAX];

	CHECK_EQ(finish(t, err), 0);
	if (strcmp(t->text, text))
		FAIL("sci %s: \"%s\"", args, t->text);
	CHECK_EQ(err[0], 0);
	free(t);
}

/* ---- `sci counters -w` ---- */

/* The last values that a watching command has printed. */
static struct seen {
	unsigned int adapter;
	char counter[32];
	long long value;
} seen[64];
static unsigned int n_seen;

static struct seen *seen_of(unsigned int adapter, const char *counter)
{
	for (unsigned int i = 0; i < n_seen; i++)
		if (seen[i].adapter == adapter &&
		    !strcmp(seen[i].counter, counter))
			return &seen[i];
	return NULL;
}

static void take_line(const char *line)
{
	struct seen now = { 0 }, *s;
	unsigned int time[3];
	long long change;
	int end = 0;

	if (sscanf(line, "%2u:%2u:%2u sci%u %31s %lld %lld%n", &time[0],
		   &time[1], &time[2], &now.adapter, now.counter, &change,
		   &now.value, &end) != 7 || line[end])
		FAIL("a line is \"%s\"", line);
	CHECK(change != 0);
	s = seen_of(now.adapter, now.counter);
	if (s) {
		/* a watching command misses no change between two polls */
		CHECK_EQ(s->value + change, now.value);
	} else {
		CHECK(n_seen < ARRAY_LEN(seen));
		s = &seen[n_seen++];
	}
	*s = now;
}

/* Read lines until the counter has this value. */
static void tells(struct tool *t, unsigned int adapter, const char *counter,
		  long long value)
{
	char line[TEXT_MAX];

	for (;;) {
		const struct seen *s = seen_of(adapter, counter);

		if (s && s->value == value)
			return;
		if (!next_line(t, line))
			FAIL("it ended before %s was %lld", counter, value);
		take_line(line);
	}
}

/* Start a watching command. When this returns, it has read the counters once. */
static struct tool *watch(const char *args)
{
	struct tool *t = start(args);
	char line[TEXT_MAX];

	n_seen = 0;
	CHECK(next_line(t, line));
	CHECK(!strncmp(line, "TIME ", 5));
	return t;
}

static void stops_at(struct tool *t, int sig)
{
	CHECK_EQ(kill(t->pid, sig), 0);
	ends_with(t, 0, "");
}

/* The command reports each adapter's end, and ends with the last adapter. */
static void ends_when_gone(struct tool *t, unsigned int a, unsigned int b)
{
	char text[128];

	snprintf(text, sizeof(text), "sci: sci%u has gone\n"
		 "sci: sci%u has gone\nsci: the adapters have gone\n", a, b);
	ends_with(t, 1, text);
}

/* ---- adapters that are files ---- */

static char folder[64];

static void remove_folder(const char *name)
{
	char cmd[256];

	snprintf(cmd, sizeof(cmd), "rm -r '%s%s'", folder, name);
	/* NOLINTNEXTLINE(bugprone-command-processor,cert-env33-c): our own */
	CHECK_EQ(system(cmd), 0);
}

/* Replace a file by rename(), so that a reader never sees a part of it. */
static void put(const char *name, const char *text)
{
	char path[128], draft[128];

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	snprintf(draft, sizeof(draft), "%s/draft", folder);
	CHECK_EQ(write_text(draft, text), 0);
	CHECK_EQ(rename(draft, path), 0);
}

static void make_adapter(const char *name, const char *node)
{
	char path[128];

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	CHECK_EQ(mkdir(path, 0700), 0);
	snprintf(path, sizeof(path), "%s/%s/counters", folder, name);
	CHECK_EQ(mkdir(path, 0700), 0);
	snprintf(path, sizeof(path), "%s/node_id", name);
	put(path, node);
	snprintf(path, sizeof(path), "%s/counters/errors", name);
	put(path, "7\n");
	snprintf(path, sizeof(path), "%s/counters/fatal", name);
	put(path, "0\n");
}

static void make_adapters(void)
{
	const char *tmp = getenv("TMPDIR");

	snprintf(folder, sizeof(folder), "%.40s/sci-counters.XXXXXX",
		 tmp ? tmp : "/tmp");
	CHECK(mkdtemp(folder) != NULL);
	setenv("SCI_SYSFS", folder, 1);
	make_adapter("sci10", "8\n");
	make_adapter("sci2", "4\n");
}

#define ERRORS	"  errors                                7\n"
#define FATAL	"  fatal                                 0\n"

TEST(what_is_counted)
{
	make_adapters();
	prints("counters", "sci2, node 4\n" ERRORS
	       "\nsci10, node 8\n" ERRORS);
	prints("counters -a sci10", "sci10, node 8\n" ERRORS FATAL);
	prints("counters /dev/sci2", "sci2, node 4\n" ERRORS);
	ends_with(start("counters sci3"), 1, "sci: no such adapter: sci3\n");
	ends_with(start("counters sci2 sci3"), 1,
		  "sci: no such adapter: sci3\n");
	remove_folder("");
	ends_with(start("counters"), 1,
		  "sci: no adapters: are sci.ko and a driver loaded?\n");
}

TEST(changes_are_lines)
{
	struct tool *t;

	make_adapters();
	t = watch(WATCH);
	put("sci2/counters/errors", "9\n");
	tells(t, 2, "errors", 9);
	put("sci10/counters/fatal", "18446744073709551\n");
	tells(t, 10, "fatal", 18446744073709551);
	/* a new driver starts at 0 */
	put("sci2/counters/errors", "0\n");
	tells(t, 2, "errors", 0);
	stops_at(t, SIGINT);
	CHECK_EQ(n_seen, 2);
	remove_folder("");
}

TEST(only_what_was_asked_for_is_watched)
{
	struct tool *t;

	make_adapters();
	t = watch(WATCH "sci10");
	put("sci2/counters/errors", "9\n");
	put("sci10/counters/errors", "8\n");
	tells(t, 10, "errors", 8);
	CHECK(!seen_of(2, "errors"));
	stops_at(t, SIGTERM);
	remove_folder("");
}

/* A signal ends even a long sleep. */
TEST(a_signal_ends_a_long_wait)
{
	make_adapters();
	stops_at(watch("counters -w -i 1000000"), SIGINT);
	remove_folder("");
}

TEST(the_last_adapter_ends_it)
{
	struct tool *t;

	make_adapters();
	t = watch(WATCH);
	remove_folder("/sci10");
	put("sci2/counters/errors", "9\n");
	tells(t, 2, "errors", 9);
	remove_folder("/sci2");
	ends_when_gone(t, 10, 2);
	remove_folder("");
}

/* ---- adapters of the loop driver ---- */

/* Nodes that no other test uses. */
#define NODE		65528u
#define OTHER_NODE	65532u

/* Return 0 or -errno. */
static int write_loop(const char *file, unsigned int node)
{
	char path[128], text[16];

	snprintf(path, sizeof(path), DEBUGFS "/sci_loop/%s", file);
	snprintf(text, sizeof(text), "%u\n", node);
	return write_text(path, text);
}

static void fault(unsigned int adapter, const char *file, const char *text)
{
	char path[128];

	snprintf(path, sizeof(path), DEBUGFS "/sci/sci%u/fault/%s", adapter,
		 file);
	CHECK_EQ(write_text(path, text), 0);
}

static long long value_of(unsigned int adapter, const char *file)
{
	long long value = -1;
	char path[128];

	snprintf(path, sizeof(path), SYSFS "/sci%u/%s", adapter, file);
	return read_number(path, &value) ? value : -1;
}

static unsigned int adapter_of(unsigned int node)
{
	unsigned int i;

	for (i = 0; i < 256; i++)
		if (value_of(i, "node_id") == node)
			return i;
	FAIL("node %u has no adapter", node);
}

/* Add an adapter for this test. Its counters start at 0. */
static unsigned int add_node(unsigned int node)
{
	int ret;

	if (test_on_shm())
		SKIP("the shm fabric has no adapters");
	if (access(DEBUGFS "/sci_loop/add", W_OK))
		SKIP("no sci_loop.ko that can be told to make errors");
	/* a failed test may have left one */
	write_loop("remove", node);
	ret = write_loop("add", node);
	CHECK_EQ(ret, 0);
	return adapter_of(node);
}

static void remove_node(unsigned int node)
{
	CHECK_EQ(write_loop("remove", node), 0);
}

TEST(injected_errors_are_seen)
{
	unsigned int a = add_node(NODE);
	char args[64];
	struct tool *t;

	snprintf(args, sizeof(args), WATCH "sci%u", a);
	t = watch(args);
	fault(a, "retriable", "3");
	tells(t, a, "errors", 3);
	CHECK(!seen_of(a, "fatal"));
	/* more than the command can see one by one */
	fault(a, "retriable", "100000");
	tells(t, a, "errors", 100003);
	fault(a, "fatal", "2");
	tells(t, a, "fatal", 2);
	tells(t, a, "errors", 100005);
	fault(a, "link", "0");
	tells(t, a, "link_downs", 1);
	fault(a, "link", "1");
	stops_at(t, SIGINT);
	/* the last values agree with the kernel's */
	for (unsigned int i = 0; i < n_seen; i++) {
		char file[64];

		snprintf(file, sizeof(file), "counters/%s", seen[i].counter);
		CHECK_EQ(seen[i].adapter, a);
		CHECK(value_of(a, file) >= seen[i].value);
	}
	remove_node(NODE);
}

TEST(an_adapter_is_removed)
{
	unsigned int a = add_node(NODE), b = add_node(OTHER_NODE);
	char args[64];
	struct tool *t;

	snprintf(args, sizeof(args), WATCH "sci%u sci%u", a, b);
	t = watch(args);
	fault(a, "retriable", "5");
	tells(t, a, "errors", 5);
	remove_node(NODE);
	fault(b, "retriable", "6");
	tells(t, b, "errors", 6);
	remove_node(OTHER_NODE);
	ends_when_gone(t, a, b);
}

/* Adapters disappear and return at any point of the command's reads. */
TEST(adapters_come_and_go_while_it_looks)
{
	unsigned int a = add_node(NODE), b = add_node(OTHER_NODE);
	char args[64], err[TEXT_MAX];
	struct tool *t;

	snprintf(args, sizeof(args), "counters -w -i 0.001 sci%u sci%u", a, b);
	t = watch(args);
	for (unsigned int i = 1; i <= 30; i++) {
		remove_node(NODE);
		fault(b, "retriable", "1");
		tells(t, b, "errors", i);
		CHECK_EQ(add_node(NODE), a);
	}
	/* the report of the removed adapter may vary */
	CHECK_EQ(kill(t->pid, SIGINT), 0);
	CHECK_EQ(finish(t, err), 0);
	free(t);
	remove_node(NODE);
	remove_node(OTHER_NODE);
}

/* ---- counters of programs ---- */

static void owner(struct peer *self, void *arg)
{
	sci_desc_t sd = test_open();

	(void)arg;
	test_segment(sd, 1, 4096, 0);
	test_interrupt(sd, 1);
	peer_send(self, "ready");
	peer_expect(self, "leave");
}

TEST(what_programs_do_is_seen)
{
	unsigned int here, there;
	long long imports, sent, received;
	sci_remote_interrupt_t r;
	struct peer *p;
	struct tool *t;
	sci_desc_t sd;

	if (test_on_shm())
		SKIP("the shm fabric has no adapters");
	p = peer_spawn(8, owner, NULL);
	here = adapter_of(4);
	there = adapter_of(8);
	peer_expect(p, "ready");
	imports = value_of(here, "counters/imports");
	sent = value_of(here, "counters/triggers_sent");
	received = value_of(there, "counters/triggers_received");
	t = watch(WATCH);
	sd = test_open();
	test_connect(sd, 8, 1);
	r = test_connect_interrupt(sd, 8, 1);
	for (int i = 0; i < 10; i++)
		CHECK_OK(SCITriggerInterrupt(r, 0, &err));
	tells(t, here, "imports", imports + 2);
	tells(t, here, "triggers_sent", sent + 10);
	tells(t, there, "triggers_received", received + 10);
	stops_at(t, SIGINT);
	SCITerminate();
	peer_send(p, "leave");
	peer_join(p);
}
