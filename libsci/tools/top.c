// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/*
 * `sci top` shows what the processes of each node do. A process belongs to a node in two cases:
 *
 * - The process has joined the fabric shm: it holds the socket sci.CLUSTER.n.NODE.UNIQUE
 *   (libsci/fabric/shm/shm.h), which /proc/net/unix lists by its inode.
 * - The process is a node of a program with libsci-threads: its service thread has the name
 *   sci-node-NODE (libsci/threads/world.c).
 */

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <time.h>
#include <unistd.h>

#include "tool.h"

#define CLUSTER_ROOM	33
#define COMMAND_ROOM	32

/* A socket of the fabric shm. Its name has the node of the process that owns it. */
struct presence {
	uint64_t inode;
	unsigned int node;
	char cluster[CLUSTER_ROOM];
};

struct process {
	pid_t pid;
	uint64_t start;			/* identifies the process, with @pid */
	unsigned int node;
	char cluster[CLUSTER_ROOM];	/* "-": none */
	char command[COMMAND_ROOM];
	uint64_t threads;
	uint64_t mapped;		/* touched bytes of shared memory */
	uint64_t ticks;			/* CPU time since the start, in clock ticks */
	uint64_t faults;		/* page faults since the start */
};

/* A snapshot of the processes of all nodes. */
struct look {
	uint64_t ns;
	struct process *processes;
	size_t n, room;
};

struct top {
	bool as_json;
	unsigned int interval;		/* ms */
	uint64_t count;			/* number of tables; 0: no limit */
	struct look before, now;
};

/* ---- finding ---- */

static int presences_compare(const void *a, const void *b)
{
	const struct presence *x = a, *y = b;

	return x->inode < y->inode ? -1 : x->inode > y->inode;
}

/* Return the sockets of the fabric shm, sorted by inode; NULL: out of memory. */
static struct presence *presences_read(size_t *n)
{
	FILE *f = fopen("/proc/net/unix", "re");
	struct presence *all = malloc(sizeof(*all)), p;
	size_t room = 1;
	char line[512];

	*n = 0;
	if (!all || !f) {
		if (f)
			fclose(f);
		return all;
	}
	while (fgets(line, sizeof(line), f)) {
		const char *name = strstr(line, "sci.");

		if (sscanf(line, "%*s %*s %*s %*s %*s %*s %" SCNu64, &p.inode) != 1 || !name ||
		    sscanf(name, "sci.%32[^.].n.%u.", p.cluster, &p.node) != 2)
			continue;
		if (*n == room) {
			struct presence *more = realloc(all, 2 * room * sizeof(*all));

			if (!more) {
				free(all);
				all = NULL;
				break;
			}
			all = more;
			room *= 2;
		}
		all[(*n)++] = p;
	}
	fclose(f);
	if (all)
		qsort(all, *n, sizeof(*all), presences_compare);
	return all;
}

/* Find the node of a process by the sockets that the process has open. */
static bool process_has_fabric_socket(struct process *p, DIR *dir, const struct presence *all,
				      size_t n)
{
	char target[64];
	struct dirent *d;
	bool found = false;

	while (!found && (d = readdir(dir))) {
		ssize_t len = readlinkat(dirfd(dir), d->d_name, target, sizeof(target) - 1);
		const struct presence *hit;
		struct presence key = { 0 };

		target[len < 0 ? 0 : len] = '\0';
		if (sscanf(target, "socket:[%" SCNu64, &key.inode) != 1)
			continue;
		hit = bsearch(&key, all, n, sizeof(*all), presences_compare);
		if (!hit)
			continue;
		p->node = hit->node;
		memcpy(p->cluster, hit->cluster, sizeof(p->cluster));
		found = true;
	}
	return found;
}

/* Find the node of a process by the names of its threads. */
static bool process_has_service_thread(struct process *p)
{
	char path[PATH_MAX], name[32];
	struct dirent *d;
	bool found = false;
	DIR *dir;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/task", (int)p->pid);
	dir = opendir(path);
	while (dir && !found && (d = readdir(dir))) {
		snprintf(path, sizeof(path), "/proc/%d/task/%s/comm", (int)p->pid, d->d_name);
		f = d->d_name[0] == '.' ? NULL : fopen(path, "re");
		if (!f)
			continue;
		found = fgets(name, sizeof(name), f) && sscanf(name, "sci-node-%u", &p->node) == 1;
		fclose(f);
	}
	if (dir)
		closedir(dir);
	strcpy(p->cluster, "-");
	return found;
}

/* Find the node of a process. Only the process's user and root can read its descriptors. */
static bool process_find(struct process *p, const struct presence *all, size_t n)
{
	char path[64];
	DIR *dir;
	bool found;

	snprintf(path, sizeof(path), "/proc/%d/fd", (int)p->pid);
	dir = opendir(path);
	if (!dir)
		return false;
	found = process_has_fabric_socket(p, dir, all, n) || process_has_service_thread(p);
	closedir(dir);
	return found;
}

/* Read the figures of a process. Return false if it has ended. */
static bool process_read(struct process *p)
{
	char path[64], line[1024], *end;
	uint64_t minor, major, user, kernel, kib;
	FILE *f;
	bool ok;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)p->pid);
	f = fopen(path, "re");
	if (!f)
		return false;
	/* the command is in brackets and may have any characters */
	ok = fgets(line, sizeof(line), f) && (end = strrchr(line, ')')) &&
	     sscanf(end + 1, " %*c %*d %*d %*d %*d %*d %*u %" SCNu64 " %*u %" SCNu64
			     " %*u %" SCNu64 " %" SCNu64 " %*d %*d %*d %*d %" SCNu64
			     " %*d %" SCNu64, &minor, &major, &user, &kernel, &p->threads,
		    &p->start) == 6;
	fclose(f);
	if (!ok)
		return false;
	*end = '\0';
	end = strchr(line, '(');
	tool_printable(p->command, sizeof(p->command), end ? end + 1 : "?");
	p->faults = minor + major;
	p->ticks = user + kernel;
	snprintf(path, sizeof(path), "/proc/%d/status", (int)p->pid);
	f = fopen(path, "re");
	while (f && fgets(line, sizeof(line), f))
		if (sscanf(line, "RssShmem: %" SCNu64, &kib) == 1)
			p->mapped = kib << 10;
	if (f)
		fclose(f);
	return true;
}

static bool process_add(struct look *l, const struct process *p)
{
	size_t room = l->room ? 2 * l->room : 16;
	struct process *more;

	if (l->n == l->room) {
		more = realloc(l->processes, room * sizeof(*more));
		if (!more)
			return false;
		l->processes = more;
		l->room = room;
	}
	l->processes[l->n++] = *p;
	return true;
}

static int processes_compare(const void *a, const void *b)
{
	const struct process *x = a, *y = b;
	int ret = strcmp(x->cluster, y->cluster);

	if (ret)
		return ret;
	if (x->node != y->node)
		return x->node < y->node ? -1 : 1;
	return x->pid < y->pid ? -1 : x->pid > y->pid;
}

/* Find the processes of all nodes. Return: 0, -ENOMEM or an error of /proc. */
static int snapshot_take(struct look *l)
{
	size_t n;
	struct presence *all = presences_read(&n);
	DIR *dir = opendir("/proc");
	struct dirent *d;
	int ret = !all ? -ENOMEM : !dir ? -errno : 0;

	l->n = 0;
	l->ns = tool_now_ns();
	while (dir && !ret && (d = readdir(dir))) {
		struct process p = { .pid = (pid_t)strtol(d->d_name, NULL, 10) };

		if (p.pid <= 0 || !process_find(&p, all, n))
			continue;
		if (process_read(&p) && !process_add(l, &p))
			ret = -ENOMEM;
	}
	if (dir)
		closedir(dir);
	free(all);
	if (!ret && l->n)
		qsort(l->processes, l->n, sizeof(*l->processes), processes_compare);
	return ret;
}

/* ---- printing ---- */

/* Return the seconds since the start of a process. */
static double process_age(const struct process *p)
{
	struct timespec ts;

	clock_gettime(CLOCK_BOOTTIME, &ts);
	return (double)ts.tv_sec + 1e-9 * (double)ts.tv_nsec -
	       (double)p->start / (double)sysconf(_SC_CLK_TCK);
}

/* Compute the rates of a process between the two snapshots, or since the start of a new process. */
static void process_rates(const struct top *t, const struct process *p, double *cpu,
			  double *faults)
{
	double s = process_age(p);
	uint64_t ticks = 0, before = 0;

	for (size_t i = 0; i < t->before.n; i++) {
		const struct process *b = &t->before.processes[i];

		if (b->pid == p->pid && b->start == p->start) {
			ticks = b->ticks;
			before = b->faults;
			s = (double)(t->now.ns - t->before.ns) * 1e-9;
		}
	}
	/* the start has the precision of a clock tick */
	s = s > 0.01 ? s : 0.01;
	*cpu = 100 * (double)(p->ticks - ticks) / (double)sysconf(_SC_CLK_TCK) / s;
	*faults = (double)(p->faults - before) / s;
}

static void table_print(const struct top *t)
{
	if (isatty(STDOUT_FILENO))
		fputs("\033[H\033[J", stdout);
	printf("%-16s %5s %8s %8s %6s %10s %10s  %s\n", "CLUSTER", "NODE", "PID", "THREADS",
	       "CPU%", "FAULTS/S", "MAPPED", "COMMAND");
	for (size_t i = 0; i < t->now.n; i++) {
		const struct process *p = &t->now.processes[i];
		char cluster[CLUSTER_ROOM], mapped[TOOL_SIZE_STR];
		double cpu, faults;

		process_rates(t, p, &cpu, &faults);
		printf("%-16s %5u %8d %8" PRIu64 " %6.0f %10.0f %10s  %s\n",
		       tool_printable(cluster, sizeof(cluster), p->cluster), p->node,
		       (int)p->pid, p->threads, cpu, faults,
		       tool_size_str(mapped, (double)p->mapped), p->command);
	}
	if (!isatty(STDOUT_FILENO))
		putchar('\n');
}

static void top_print_json(const struct top *t)
{
	struct tool_json j = { .out = stdout, .first = true };

	json_open(&j, NULL, '[');
	for (size_t i = 0; i < t->now.n; i++) {
		const struct process *p = &t->now.processes[i];
		double cpu, faults;

		process_rates(t, p, &cpu, &faults);
		json_open(&j, NULL, '{');
		json_string(&j, "cluster", p->cluster);
		json_number(&j, "node", p->node);
		json_number(&j, "pid", (uint64_t)p->pid);
		json_number(&j, "threads", p->threads);
		json_real(&j, "cpu_percent", cpu);
		json_real(&j, "faults_per_second", faults);
		json_number(&j, "mapped_bytes", p->mapped);
		json_string(&j, "command", p->command);
		json_close(&j, '}');
	}
	json_close(&j, ']');
}

/* ---- the command ---- */

/* Wait until the next snapshot is due. Return false if a signal ends the command. */
static bool top_wait(const struct top *t, int quit)
{
	struct pollfd p = { .fd = quit, .events = POLLIN };

	fflush(stdout);
	return !poll(&p, 1, t->interval > INT_MAX ? INT_MAX : (int)t->interval) &&
	       !ferror(stdout);
}

static int top_run(struct top *t, int quit)
{
	int ret = snapshot_take(&t->before);

	for (uint64_t i = 0; !ret && (!t->count || i < t->count) && top_wait(t, quit); i++) {
		struct look last = t->before;

		ret = snapshot_take(&t->now);
		if (ret)
			break;
		if (t->as_json)
			top_print_json(t);
		else
			table_print(t);
		t->before = t->now;
		t->now = last;
	}
	return ret;
}

int tool_top(const struct tool_command *self, int argc, char **argv)
{
	struct top t = { .interval = 1000 };
	const struct tool_option options[] = {
		{ .letter = 'i', .name = "interval", .kind = TOOL_SECONDS,
		  .value = &t.interval, .arg = "SECONDS", .help = "time between two tables (1)" },
		{ .letter = 'n', .name = "count", .kind = TOOL_NUMBER, .value = &t.count,
		  .min = 1, .max = UINT32_MAX, .arg = "N",
		  .help = "number of tables (no end)" },
		{ .letter = 'j', .name = "json", .kind = TOOL_FLAG, .value = &t.as_json,
		  .help = "print JSON, once" },
		{ 0 },
	};
	int first = tool_parse(self, argc, argv, options, false), quit, ret;
	sigset_t set;

	if (argv[first])
		tool_usage(self, "no argument is allowed: %s", argv[first]);
	if (t.as_json)
		t.count = 1;
	t.interval += !t.interval;
	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigprocmask(SIG_BLOCK, &set, NULL);
	quit = signalfd(-1, &set, SFD_CLOEXEC);
	if (quit < 0)
		return tool_error("cannot wait for signals: %s", strerror(errno));
	ret = top_run(&t, quit);
	close(quit);
	free(t.before.processes);
	free(t.now.processes);
	if (ret)
		return tool_error("cannot read /proc: %s", strerror(-ret));
	return tool_finish();
}
