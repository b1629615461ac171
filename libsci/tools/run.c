// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/* `sci run`: start a program as another node. */
#define _GNU_SOURCE

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "libsci/fabric/core/fabric.h"
#include "launch.h"
#include "run.h"

#define THREADS_NODES_MAX	64u

static int file_write(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	ssize_t n;

	if (fd < 0)
		return -errno;
	n = write(fd, text, strlen(text));
	close(fd);
	return n == (ssize_t)strlen(text) ? 0 : -EIO;
}

/* Map the user to itself inside the namespace: peers see the same user. */
static int user_map_self(uid_t uid, gid_t gid)
{
	char line[40];
	int ret;

	snprintf(line, sizeof(line), "%u %u 1", uid, uid);
	ret = file_write("/proc/self/uid_map", line);
	if (ret)
		return ret;
	ret = file_write("/proc/self/setgroups", "deny");
	if (ret && ret != -ENOENT)
		return ret;
	snprintf(line, sizeof(line), "%u %u 1", gid, gid);
	return file_write("/proc/self/gid_map", line);
}

static int namespace_enter(const char *name)
{
	uid_t uid = geteuid();
	gid_t gid = getegid();
	int ret;

	if (!uid) {
		if (unshare(CLONE_NEWUTS))
			return -errno;
	} else {
		if (unshare(CLONE_NEWUSER | CLONE_NEWUTS))
			return -errno;
		ret = user_map_self(uid, gid);
		if (ret)
			return ret;
	}
	return sethostname(name, strlen(name)) ? -errno : 0;
}

/*
 * Enter a namespace in which the host has the name @name. A child tries this first, because a
 * partial failure cannot be undone: in a user namespace without a map, this process is user nobody.
 * If the system forbids namespaces, the program keeps the machine's name.
 */
static void host_name_take(const char *name)
{
	struct sigaction normal = { .sa_handler = SIG_DFL }, old;
	pid_t pid;
	int status;

	/* while SIGCHLD is ignored, waitpid() does not report children */
	sigaction(SIGCHLD, &normal, &old);
	pid = fork();
	if (!pid)
		_exit(namespace_enter(name) ? 1 : 0);
	if (pid > 0 && waitpid(pid, &status, 0) == pid && !status)
		namespace_enter(name);
	sigaction(SIGCHLD, &old, NULL);
}

static bool cluster_is_valid(const char *name)
{
	static const char allowed[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-";
	size_t n = strlen(name);

	return n && n <= TOOL_CLUSTER_MAX && strspn(name, allowed) == n;
}

static void environment_set(unsigned int node, const char *cluster)
{
	char value[64];

	snprintf(value, sizeof(value), "%u", node);
	setenv("SCI_NODE", value, 1);
	if (!cluster)
		return;
	snprintf(value, sizeof(value), "shm:%s", cluster);
	setenv("SCI_FABRIC", value, 1);
}

/* Execute @argv as a program of a node. Return only after an error. */
static int node_run(unsigned int node, const struct run_options *o, char **argv)
{
	char host[16];
	int err;

	environment_set(node, o->cluster);
	snprintf(host, sizeof(host), "node%u", node);
	if (!o->keep_name)
		host_name_take(host);
	execvp(argv[0], argv);
	err = errno;
	tool_error("cannot run %s: %s", argv[0], strerror(err));
	return err == ENOENT ? EXIT_NOT_FOUND : EXIT_CANNOT_RUN;
}

/* Find libsci-threads beside this command, as in a build directory, or in the library directory. */
static void threads_library(char path[PATH_MAX])
{
	static const char *const places[] = { "", "../lib/", "../lib64/" };
	static const char name[] = "libsci-threads.so.0";
	char self[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
	char *slash;

	self[n < 0 ? 0 : n] = '\0';
	slash = strrchr(self, '/');
	for (size_t i = 0; slash && i < sizeof(places) / sizeof(places[0]); i++) {
		if (snprintf(path, PATH_MAX, "%.*s%s%s", (int)(slash + 1 - self), self,
			     places[i], name) < PATH_MAX && !access(path, R_OK))
			return;
	}
	strcpy(path, name);		/* let the dynamic linker search */
}

/* Return a value of LD_PRELOAD with libsci-threads, or NULL. */
static char *threads_preload(void)
{
	const char *other = getenv("LD_PRELOAD");
	char path[PATH_MAX], *preload;

	threads_library(path);
	return asprintf(&preload, "%s%s%s", path, other && *other ? ":" : "",
			other ? other : "") < 0 ? NULL : preload;
}

/* Execute @argv with threads on several virtual nodes: libsci_threads(7). */
static int threads_run(uint64_t nodes, char **argv)
{
	char *preload = threads_preload(), value[24];
	int err;

	if (!preload)
		return tool_error("out of memory");
	snprintf(value, sizeof(value), "%llu", (unsigned long long)nodes);
	setenv("SCI_THREADS_NODES", value, 1);
	setenv("SCI_NODE", "4", 1);
	setenv("LD_PRELOAD", preload, 1);
	free(preload);
	execvp(argv[0], argv);
	err = errno;
	tool_error("cannot run %s: %s", argv[0], strerror(err));
	return err == ENOENT ? EXIT_NOT_FOUND : EXIT_CANNOT_RUN;
}

/* Return the name of a given option that only a job has; NULL: there is none. */
static const char *job_option(const struct run_options *o)
{
	return o->hosts ? "hosts" : o->net ? "net" : o->failover ? "failover" :
	       o->clusters ? "clusters" : o->gateways ? "gateways" : o->nodes != 1 ? "nodes" :
	       o->bind ? "bind" : o->tag ? "tag-output" : o->keep ? "keep" :
	       o->pmix ? "pmix" : NULL;
}

/* Refuse options that would have no effect. @node: the user has given a node id */
static void options_check(const struct tool_command *self, const struct run_options *o, bool node)
{
	if (o->cluster && !cluster_is_valid(o->cluster))
		tool_usage(self, "'%s' is no name of a cluster (1 to %u letters, digits, '_', '-')",
			   o->cluster, TOOL_CLUSTER_MAX);
	if (o->threads && (!o->ranks || o->ranks > THREADS_NODES_MAX || o->bind || o->tag ||
			   o->keep || o->pmix))
		tool_usage(self, "--threads wants -n, 1 to %u, and none of --bind, --keep, --pmix, --tag-output",
			   THREADS_NODES_MAX);
	if (o->ranks && node)
		tool_usage(self, "want a node id or -n, not both");
	if (!o->ranks && job_option(o))
		tool_usage(self, "--%s is for a job: it wants -n", job_option(o));
	if (o->threads && !o->hosts && !o->clusters && (o->cluster || job_option(o)))
		tool_usage(self, "--threads wants --hosts or --clusters with --%s",
			   o->cluster ? "cluster" : job_option(o));
}

int tool_run(const struct tool_command *self, int argc, char **argv)
{
	struct run_options o = { .nodes = 1 };
	const struct tool_option options[] = {
		{ .letter = 'n', .name = "ranks", .kind = TOOL_NUMBER, .value = &o.ranks,
		  .min = 1, .max = SCI_BOOT_RANKS_MAX, .arg = "N",
		  .help = "start N ranks of a job instead of one program" },
		{ .letter = 'N', .name = "nodes", .kind = TOOL_NUMBER, .value = &o.nodes,
		  .min = 1, .max = SCI_BOOT_RANKS_MAX, .arg = "M",
		  .help = "... on M nodes of each machine (1)" },
		{ .letter = 'H', .name = "hosts", .kind = TOOL_STRING, .value = &o.hosts,
		  .arg = "LIST", .help = "... on machines: HOST[:SLOTS],..." },
		{ .name = "net", .kind = TOOL_STRING, .value = &o.net, .arg = "SCI_NET",
		  .help = "... that reach each other by sockets (tcp, tcp:eth0, tcp:192.0.2.0/24)" },
		{ .name = "failover", .kind = TOOL_FLAG, .value = &o.failover,
		  .help = "... by the adapters, and by sockets while these have no link" },
		{ .name = "clusters", .kind = TOOL_NUMBER, .value = &o.clusters,
		  .min = 2, .max = SCI_GATEWAY_FABRICS, .arg = "N",
		  .help = "... in N virtual clusters of this machine" },
		{ .name = "gateways", .kind = TOOL_NUMBER, .value = &o.gateways,
		  .min = 1, .max = 16, .arg = "N",
		  .help = "... that reach other clusters through N gateways" },
		{ .letter = 'b', .name = "bind", .kind = TOOL_STRING, .value = &o.bind,
		  .arg = "core|none", .help = "bind each rank to a core (none)" },
		{ .letter = 't', .name = "tag-output", .kind = TOOL_FLAG, .value = &o.tag,
		  .help = "begin each line of output with \"[RANK] \"" },
		{ .name = "keep", .kind = TOOL_FLAG, .value = &o.keep,
		  .help = "when a rank dies, do not end the others" },
		{ .name = "pmix", .kind = TOOL_FLAG, .value = &o.pmix,
		  .help = "be a PMIx server: the ranks are MPI programs of one machine" },
		{ .letter = 'c', .name = "cluster", .kind = TOOL_STRING,
		  .value = &o.cluster, .arg = "NAME",
		  .help = "of this virtual cluster (SCI_FABRIC=shm:NAME)" },
		{ .letter = 'k', .name = "keep-hostname", .kind = TOOL_FLAG,
		  .value = &o.keep_name,
		  .help = "no host name of its own" },
		{ .name = "threads", .kind = TOOL_FLAG, .value = &o.threads,
		  .help = "run the threads of one program on N nodes" },
		{ .name = "agent", .kind = TOOL_FLAG, .value = &o.agent,
		  .help = "what `sci run --hosts` starts on other machines" },
		{ 0 },
	};
	unsigned int node;
	bool one_node;
	int i;

	i = tool_parse(self, argc, argv, options, false);
	one_node = !o.ranks;
	if (o.agent)
		return launch_agent();
	if (one_node && i == argc)
		tool_usage(self, "which node?");
	if (one_node && !tool_parse_node(argv[i], &node))
		tool_usage(self, "'%s' is no node id (4, 8, 12, ... %u)",
			   argv[i], SCI_NODE_MAX);
	if (one_node) {
		argc -= i;
		argv += i;
		i = tool_parse(self, argc, argv, options, false);
	}
	if (i == argc)
		tool_usage(self, "which command?");
	options_check(self, &o, one_node);
	if (o.threads && !o.hosts && !o.clusters)
		return threads_run(o.ranks, argv + i);
	if (o.threads) {
		o.preload = threads_preload();
		if (!o.preload)
			return tool_error("out of memory");
	}
	return o.ranks ? tool_launch(self, &o, argv + i) : node_run(node, &o, argv + i);
}
