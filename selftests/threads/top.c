// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/* `sci top` lists processes of the shm fabric, and nodes of a program with threads. */
#include <sisci_api.h>

#include "selftests/threads/run.h"

/* Run `sci top` once, and return its output. */
static const char *top_run(const char *args)
{
	static char text[OUTPUT_MAX];
	char cmd[2 * PATH_MAX + 64];
	int status;
	FILE *f;

	snprintf(cmd, sizeof(cmd), "'%s' top %s 2>&1", build_path("sci"), args);
	/* NOLINTNEXTLINE(cert-env33-c): our own name */
	f = popen(cmd, "re");
	CHECK(f);
	text[fread(text, 1, sizeof(text) - 1, f)] = '\0';
	status = pclose(f);
	if (status)
		fprintf(stderr, "# %s\n", text);
	CHECK_EQ(status, 0);
	return text;
}

/*
 * Find the line of a process in a table, and set @cluster and @node. Return its number of
 * threads; 0: the process has no line.
 */
static unsigned int top_line(const char *text, pid_t pid, char cluster[64], unsigned int *node)
{
	for (const char *line = text; line; line = strchr(line, '\n')) {
		unsigned int threads;
		int p;

		line += *line == '\n';
		if (sscanf(line, "%63s %u %d %u", cluster, node, &p, &threads) == 4 && p == pid)
			return threads;
	}
	return 0;
}

static void joins(struct peer *self, void *arg)
{
	sci_error_t err;
	sci_desc_t sd;

	(void)arg;
	SCIInitialize(0, &err);
	CHECK_EQ(err, SCI_ERR_OK);
	SCIOpen(&sd, 0, &err);
	CHECK_EQ(err, SCI_ERR_OK);
	peer_send(self, "joined");
	peer_expect(self, "leave");
	SCIClose(sd, 0, &err);
	SCITerminate();
}

TEST(processes_of_the_fabric)
{
	struct peer *p[2];
	char cluster[64];
	const char *text;
	unsigned int node;

	if (!*test_cluster())
		SKIP("another fabric than shm");
	for (unsigned int i = 0; i < 2; i++)
		p[i] = peer_spawn(8 + 4 * i, joins, NULL);
	for (int i = 0; i < 2; i++)
		peer_expect(p[i], "joined");
	text = top_run("-n 1 -i 0.01");
	CHECK(!top_line(text, getpid(), cluster, &node));
	for (unsigned int i = 0; i < 2; i++) {
		CHECK(top_line(text, peer_pid(p[i]), cluster, &node));
		CHECK_EQ(node, 8 + 4 * i);
		CHECK(!strcmp(cluster, test_cluster()));
		peer_send(p[i], "leave");
	}
	for (int i = 0; i < 2; i++)
		peer_join(p[i]);
	text = top_run("-n 1 -i 0.01");
	CHECK(!top_line(text, peer_pid(p[0]), cluster, &node));
}

/* Return whether this process can become another user who can run `sci`. */
static bool nobody_runs_sci(void)
{
	int status;
	pid_t pid = fork();

	CHECK(pid >= 0);
	if (!pid)
		_exit(setgid(65534) || setuid(65534) || access(build_path("sci"), X_OK));
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	return !status;
}

static void top_run_as_nobody(struct peer *self, void *arg)
{
	char cluster[64];
	unsigned int node;
	const char *text;

	(void)self;
	peer_become(65534, 65534);
	text = top_run("-n 1 -i 0.01");
	CHECK(!strncmp(text, "CLUSTER ", 8));
	CHECK(!top_line(text, *(pid_t *)arg, cluster, &node));
}

/* The table of another user lacks a process that the owner's table has. */
TEST(no_process_of_another_user)
{
	struct peer *p;
	unsigned int node;
	char cluster[64];
	pid_t pid;

	if (!*test_cluster())
		SKIP("another fabric than shm");
	if (!nobody_runs_sci())
		SKIP("another user cannot run sci");
	p = peer_spawn(8, joins, NULL);
	pid = peer_pid(p);
	peer_expect(p, "joined");
	CHECK(top_line(top_run("-n 1 -i 0.01"), pid, cluster, &node));
	peer_join(peer_spawn(12, top_run_as_nobody, &pid));
	peer_send(p, "leave");
	peer_join(p);
}

/* Return the nodes that have a line for @leader or a child of it, as bits: node / 4. */
static unsigned int nodes_of(const char *text, pid_t leader)
{
	unsigned int found = 0, node;
	char cluster[64];

	for (const char *line = text; line; line = strchr(line, '\n')) {
		char path[64];
		int pid, parent;
		FILE *f;

		line += *line == '\n';
		if (sscanf(line, "%63s %u %d", cluster, &node, &pid) != 3)
			continue;
		snprintf(path, sizeof(path), "/proc/%d/stat", pid);
		f = fopen(path, "re");
		if (!f)
			continue;
		/* the name of the program has no brackets */
		if (fscanf(f, "%*d (%*[^)]) %*c %d", &parent) == 1 &&
		    (pid == leader || parent == leader)) {
			CHECK(!strcmp(cluster, "-"));
			CHECK(node >= 4 && node <= 12);
			found |= 1u << node / 4;
		}
		fclose(f);
	}
	return found;
}

/* Another user's table has none of the nodes. */
static void looks_as_nobody(struct peer *self, void *arg)
{
	(void)self;
	peer_become(65534, 65534);
	CHECK_EQ(nodes_of(top_run("-n 1 -i 0.01"), *(pid_t *)arg), 0);
}

TEST(nodes_of_a_program_with_threads)
{
	char program[2 * PATH_MAX], sci[2 * PATH_MAX];
	const char *text = "";
	int status;
	pid_t pid;

	skip_sanitizers();
	snprintf(program, sizeof(program), "%s", build_path(PROGRAMS "dies"));
	snprintf(sci, sizeof(sci), "%s", build_path("sci"));
	pid = fork();
	if (!pid) {
		/* no node has number 100: the threads run until they are killed */
		execl(sci, "sci", "run", "--threads", "-n", "3", program, "100", "kill", "0",
		      (char *)NULL);
		_exit(127);
	}
	WAIT_UNTIL(nodes_of(text = top_run("-n 1 -i 0.01"), pid) == (1 << 1 | 1 << 2 | 1 << 3),
		   TEST_WAIT_MS);
	CHECK(strstr(text, "  dies\n"));
	if (nobody_runs_sci())
		peer_join(peer_spawn(4, looks_as_nobody, &pid));
	kill(pid, SIGKILL);
	CHECK_EQ(waitpid(pid, &status, 0), pid);
}

TEST(wrong_usage_of_top)
{
	char cmd[2 * PATH_MAX + 64];
	const char *sci = build_path("sci");

	for (int i = 0; i < 3; i++) {
		static const char *const wrong[] = { "-n 0", "everything", "-i never" };

		snprintf(cmd, sizeof(cmd), "'%s' top %s >/dev/null 2>&1", sci, wrong[i]);
		/* NOLINTNEXTLINE(cert-env33-c): our own name */
		CHECK_EQ(WEXITSTATUS(system(cmd)), 2);
	}
}
