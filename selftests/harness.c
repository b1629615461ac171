// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/*
 * DOC: processes of a test run
 *
 *	runner			main(); does not use the library
 *	  test			group leader; node 4
 *	    peer ...		same group; other nodes
 *
 * The runner is the subreaper of all of them. It sees the status of each process, and knows when
 * the last process has ended.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <ftw.h>
#include <grp.h>
#include <limits.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define SELFTESTS_HARNESS_C
#include "selftests/harness.h"
#include "selftests/remote.h"

#define EXIT_SKIP	4
#define MAX_PROCESSES	256
#define MAX_PEERS	2048
#define MESSAGE_MAX	4096
#define LINE_MAX_	2048

/* ---- state that the processes of a test share with the runner ---- */

struct process_state {
	_Atomic(const struct test_site *) at;
	_Atomic unsigned int node;
	_Atomic pid_t pid;
};

struct run_state {
	_Atomic bool failed, skipped;
	_Atomic unsigned int processes;
	char skip_reason[256];
	struct process_state process[MAX_PROCESSES];
};

static struct run_state *run;
static struct process_state runner, *self = &runner;
static char cluster[32];
static char folder[PATH_MAX];		/* see test_dir() */
static bool own_cluster;

static struct test *tests, **tests_end = &tests;

void test_register(struct test *t)
{
	*tests_end = t;
	tests_end = &t->next;
}

/* A single write() keeps lines of different processes apart. */
__attribute__((format(printf, 1, 2)))
static void print_line(const char *fmt, ...)
{
	char line[LINE_MAX_];
	ssize_t done;
	va_list ap;
	int len;

	va_start(ap, fmt);
	len = vsnprintf(line, sizeof(line) - 1, fmt, ap);
	va_end(ap);
	if (len > (int)sizeof(line) - 2)
		len = sizeof(line) - 2;
	line[len++] = '\n';
	do {
		done = write(STDOUT_FILENO, line, len);
	} while (done < 0 && errno == EINTR);
}

static void process_enter(unsigned int node)
{
	unsigned int i = atomic_fetch_add(&run->processes, 1);

	self = &run->process[i < MAX_PROCESSES ? i : MAX_PROCESSES - 1];
	atomic_store(&self->at, NULL);
	atomic_store(&self->node, node);
	atomic_store(&self->pid, getpid());
}

void test_at(const struct test_site *site)
{
	atomic_store_explicit(&self->at, site, memory_order_relaxed);
}

static _Thread_local struct test_site from;

void test_from(const char *file, int line, const char *text)
{
	from = (struct test_site){ file, line, text };
}

void test_note(const char *fmt, ...)
{
	char text[LINE_MAX_ - 16];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	print_line("# %s", text);
}

void test_fail(const struct test_site *site, const char *fmt, ...)
{
	char text[LINE_MAX_ - 256];
	int saved = errno;
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	print_line("# %s:%d: %s [node %u, errno %d]", site->file, site->line,
		   text, atomic_load(&self->node), saved);
	if (from.file && !strcmp(site->file, __FILE__))
		print_line("# %s:%d: called from here: %s", from.file,
			   from.line, from.text);
	atomic_store(&run->failed, true);
	_exit(1);
}

void test_skip(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(run->skip_reason, sizeof(run->skip_reason), fmt, ap);
	va_end(ap);
	atomic_store(&run->skipped, true);
	exit(EXIT_SKIP);
}

void test_check_err(const struct test_site *site, sci_error_t got,
		    sci_error_t want)
{
	if (got == want)
		return;
	if (got == TEST_ERR_UNSET)
		test_fail(site, "%s: expected %s, got no code at all",
			  site->text, SCIGetErrorString(want));
	test_fail(site, "%s: expected %s, got %s (%#x)", site->text,
		  SCIGetErrorString(want), SCIGetErrorString(got),
		  (unsigned int)got);
}

uint64_t test_now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

void test_pause(void)
{
	struct timespec ts = { 0, 100000 };

	nanosleep(&ts, NULL);
}

/* ---- environment ---- */

const char *test_cluster(void)
{
	return own_cluster ? cluster : "";
}

void test_use_cluster(const char *suffix)
{
	char value[128];

	if (!own_cluster)
		SKIP("SCI_TEST_FABRIC has only one cluster");
	snprintf(value, sizeof(value), "shm:%s%s", cluster, suffix);
	setenv("SCI_FABRIC", value, 1);
}

const char *test_dir(void)
{
	CHECK(!mkdir(folder, 0700) || errno == EEXIST);
	return folder;
}

void test_env_file(const char *variable, const char *text)
{
	char path[PATH_MAX + 32];
	FILE *file;

	snprintf(path, sizeof(path), "%s/%s", test_dir(), variable);
	file = fopen(path, "we");
	CHECK(file && fputs(text, file) >= 0);
	CHECK_EQ(fclose(file), 0);
	setenv(variable, path, 1);
}

bool test_on_shm(void)
{
	return !strncmp(getenv("SCI_FABRIC"), "shm", 3);
}

void test_needs_shm(void)
{
	if (!test_on_shm())
		SKIP("only on the shm fabric");
}

static bool shares_memory;

void *test_shared(size_t size)
{
	void *p = mmap(NULL, size, PROT_READ | PROT_WRITE,
		       MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	CHECK(p != MAP_FAILED);
	shares_memory = true;
	return p;
}

void test_needs_one_machine(void)
{
	if (remote_machines())
		SKIP("only where all nodes are on one machine");
}

/* ---- SCI_TEST_NET: each node in a cluster of its own ---- */

#define NET_NODES	16u

static char net_key[32];

/* The key is a memfd of the runner: it disappears with the runner. */
static void net_key_make(void)
{
	int fd = memfd_create("key", MFD_CLOEXEC);

	if (fd < 0 || write(fd, cluster, sizeof(cluster)) < 0 || fchmod(fd, 0600))
		exit(1);
	snprintf(net_key, sizeof(net_key), "/proc/%d/fd/%d", getpid(), fd);
}

/*
 * Tests that run at the same time use different addresses with high probability. Each node has 64
 * sockets, but 16 over TCP on IPv6.
 */
static void net_address(const char *kind, unsigned int node, char *text, size_t size)
{
	unsigned int hash = 0;

	for (const char *c = cluster; *c; c++)
		hash = hash * 31 + (unsigned char)*c;
	if (!strcmp(kind, "unix"))
		snprintf(text, size, "unix:@sci%s-%u+64", cluster, node);
	else if (!strcmp(kind, "tcp"))
		snprintf(text, size, "tcp:127.%u.%u.%u:17764+64", hash >> 8 & 255, hash & 255, node);
	else if (!strcmp(kind, "vsock"))
		snprintf(text, size, "vsock:1:%u+64", 10000 + hash % 40 * 1024 + node * 16);
	else
		snprintf(text, size, "tcp:[::1]:%u", 10000 + hash % 700 * 64 + node * 4);
}

void test_use_net(const char *kind, unsigned int node)
{
	char peers_text[NET_NODES * 80] = "", text[64];
	size_t len = 0;

	for (unsigned int i = 1; i <= NET_NODES; i++) {
		net_address(kind, 4 * i, text, sizeof(text));
		len += (size_t)snprintf(peers_text + len, sizeof(peers_text) - len,
					"%u=%s,", 4 * i, text);
	}
	snprintf(text, sizeof(text), "n%u", node);
	test_use_cluster(text);
	net_address(kind, node, text, sizeof(text));
	setenv("SCI_NET", text, 1);
	setenv("SCI_NET_PEERS", peers_text, 1);
	setenv("SCI_NET_KEY", net_key, 1);
}

static void net_environment(unsigned int node)
{
	const char *kind = getenv("SCI_TEST_NET");

	if (kind && *kind)
		test_use_net(kind, node);
}

void test_be_node(unsigned int node)
{
	char text[16];

	snprintf(text, sizeof(text), "%u", node);
	setenv("SCI_NODE", text, 1);
	net_environment(node);
}

static void set_environment(void)
{
	static const char *const ours[] = {
		"SCI_FAULT", "SCI_MODE", "SCI_DISHOSTS", "SCI_NODES",
		"SCI_MEMBARRIER", "SCI_MSG_TABLE", "SCI_NET", "SCI_NET_PEERS",
		"SCI_NET_KEY", "SCI_NET_RETRY", "SCI_RAIL", "SCI_RAIL_NODE",
	};
	const char *fabric = getenv("SCI_TEST_FABRIC");
	const char *node = getenv("SCI_TEST_NODE");

	for (size_t i = 0; i < ARRAY_LEN(ours); i++)
		unsetenv(ours[i]);
	setenv("SCI_NODE", node ? node : "4", 1);
	own_cluster = !fabric;
	if (own_cluster)
		test_use_cluster("");
	else
		setenv("SCI_FABRIC", fabric, 1);
	net_environment(node ? (unsigned int)atoi(node) : 4);
}

/* ---- peers ---- */

struct peer {
	unsigned int node;
	pid_t pid;			/* 0: this process is the peer */
	int fd;
	int orders;			/* takes signals to the stub of a remote peer; or -1 */
	bool reaped;
	int status;
};

static struct peer peers[MAX_PEERS];
static unsigned int npeers;

static void die_with(pid_t parent)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(1);
}

__attribute__((noreturn))
static void peer_main(struct peer *p, pid_t parent,
		      void (*fn)(struct peer *self, void *arg), void *arg)
{
	die_with(parent);
	process_enter(p->node);
	test_be_node(p->node);
	fn(p, arg);
	exit(0);
}

static void peer_hang_up(struct peer *p)
{
	if (p->fd >= 0)
		close(p->fd);
	if (p->orders >= 0)
		close(p->orders);
	p->fd = p->orders = -1;
}

void harness_peer(unsigned int node, pid_t parent, int fd, peer_fn *fn,
		  void *arg)
{
	struct peer *p;

	for (unsigned int i = 0; i < npeers; i++)
		peer_hang_up(&peers[i]);
	npeers = 0;
	p = &peers[npeers++];
	*p = (struct peer){ .node = node, .fd = fd, .orders = -1 };
	own_cluster = !getenv("SCI_TEST_FABRIC");
	peer_main(p, parent, fn, arg);
}

bool harness_is_remote(unsigned int node)
{
	if (!remote_machines() || atomic_load(&self->node) == node)
		return false;
	if (!remote_address(node))
		SKIP("there is no machine for node %u", node);
	if (shares_memory)
		SKIP("its processes share memory of one machine");
	return true;
}

struct peer *peer_spawn(unsigned int node,
			void (*fn)(struct peer *self, void *arg), void *arg)
{
	bool remote = harness_is_remote(node);
	int fds[2], orders[2] = { -1, -1 };
	pid_t parent = getpid();
	struct peer *p;

	CHECK(npeers < MAX_PEERS);
	if (remote)
		CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0,
				    orders), 0);
	CHECK_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds), 0);
	p = &peers[npeers++];
	*p = (struct peer){ .node = node, .fd = fds[0], .orders = orders[0] };
	p->pid = test_fork();
	CHECK(p->pid >= 0);
	if (p->pid == 0 && remote) {
		die_with(parent);
		for (unsigned int i = 0; i < npeers; i++)
			peer_hang_up(&peers[i]);
		remote_stub(node, fn, arg, fds[1], orders[1]);
	}
	if (p->pid == 0)
		harness_peer(node, parent, fds[1], fn, arg);
	close(fds[1]);
	if (remote)
		close(orders[1]);
	return p;
}

pid_t peer_pid(struct peer *p)
{
	if (p->orders >= 0)
		test_needs_one_machine();
	return p->pid;
}

pid_t harness_pid(const struct peer *p)
{
	return p->pid;
}

/* Return false if the process does not end in time. */
static bool peer_reap(struct peer *p)
{
	pid_t pid = -1;

	if (p->reaped)
		return true;
	if (!HAPPENS((pid = waitpid(p->pid, &p->status, WNOHANG)) != 0,
		     TEST_WAIT_MS))
		return false;
	CHECK_EQ(pid, p->pid);
	p->reaped = true;
	return true;
}

static const char *status_words(int status)
{
	static char words[64];

	if (WIFSIGNALED(status))
		snprintf(words, sizeof(words), "killed by %s",
			 strsignal(WTERMSIG(status)));
	else
		snprintf(words, sizeof(words), "exit status %d",
			 WEXITSTATUS(status));
	return words;
}

__attribute__((noreturn))
static void peer_gone(const struct test_site *site, struct peer *p,
		      const char *what)
{
	if (!p->pid)
		_exit(1);	/* the failed test has printed the reason */
	if (peer_reap(p) && atomic_load(&run->skipped))
		exit(EXIT_SKIP);
	if (!p->reaped)
		test_fail(site, "node %u hung up: no %s", p->node, what);
	test_fail(site, "node %u ended (%s): no %s", p->node,
		  status_words(p->status), what);
}

static void peer_write(struct peer *p, const char *what, const void *data,
		       size_t len)
{
	ssize_t done;

	TEST_SITE(site, "peer_send");
	do {
		done = send(p->fd, data, len, MSG_NOSIGNAL);
	} while (done < 0 && errno == EINTR);
	if (done < 0 && (errno == EPIPE || errno == ECONNRESET))
		peer_gone(&site, p, what);
	CHECK_EQ(done, len);
}

static size_t peer_read(struct peer *p, const char *what, void *data,
			size_t len)
{
	uint64_t until = test_now_ms() + TEST_WAIT_MS;
	struct pollfd pfd = { .fd = p->fd, .events = POLLIN };
	ssize_t done;
	int n;

	TEST_SITE(site, "peer_expect");
	do {
		uint64_t now = test_now_ms();

		n = poll(&pfd, 1, now < until ? (int)(until - now) : 0);
	} while (n < 0 && errno == EINTR);
	if (n == 0)
		test_fail(&site, "node %u is silent: no %s", p->node, what);
	do {
		done = recv(p->fd, data, len, 0);
	} while (done < 0 && errno == EINTR);
	if (done == 0 || (done < 0 && errno == ECONNRESET))
		peer_gone(&site, p, what);
	CHECK(done > 0);
	return done;
}

void peer_send(struct peer *p, const char *token)
{
	peer_write(p, token, token, strlen(token) + 1);
}

void peer_expect(struct peer *p, const char *token)
{
	char got[MESSAGE_MAX];
	size_t len = peer_read(p, token, got, sizeof(got));

	TEST_SITE(site, "peer_expect");
	if (len != strlen(token) + 1 || memcmp(got, token, len))
		test_fail(&site, "node %u: expected \"%s\", got \"%.*s\"",
			  p->node, token, (int)len, got);
}

void peer_put(struct peer *p, const void *data, size_t len)
{
	CHECK(len > 0 && len <= MESSAGE_MAX);
	peer_write(p, "data", data, len);
}

void peer_get(struct peer *p, void *data, size_t len)
{
	char got[MESSAGE_MAX];

	CHECK_EQ(peer_read(p, "data", got, sizeof(got)), len);
	memcpy(data, got, len);
}

/* Send a signal to a local peer, or through the stub to a remote peer. */
static void peer_signal(struct peer *p, int sig)
{
	unsigned char order = (unsigned char)sig;

	if (p->orders < 0)
		CHECK_EQ(kill(p->pid, sig), 0);
	else
		CHECK_EQ(write(p->orders, &order, 1), 1);
	if (p->orders >= 0 && (sig == SIGSTOP || sig == SIGCONT))
		CHECK_EQ(read(p->orders, &order, 1), 1);
}

/* A sanitizer may turn any other signal than SIGKILL into SIGABRT or an exit status. */
static bool ended_by(int status, int sig)
{
	if (sig == SIGKILL)
		return WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
	return status != 0;
}

void peer_kill(struct peer *p, int sig)
{
	TEST_SITE(site, "peer_kill");

	peer_signal(p, sig);
	CHECK(peer_reap(p));
	if (p->status && atomic_load(&run->skipped))
		exit(EXIT_SKIP);
	if (!ended_by(p->status, sig))
		test_fail(&site, "node %u has ended before the signal (%s)", p->node,
			  status_words(p->status));
	peer_hang_up(p);
}

void peer_stop(struct peer *p)
{
	int status;

	peer_signal(p, SIGSTOP);
	if (p->orders >= 0)
		return;
	CHECK_EQ(waitpid(p->pid, &status, WUNTRACED), p->pid);
	CHECK(WIFSTOPPED(status));
}

void peer_continue(struct peer *p)
{
	peer_signal(p, SIGCONT);
}

void peer_join(struct peer *p)
{
	TEST_SITE(site, "peer_join");

	if (!peer_reap(p))
		test_fail(&site, "node %u does not exit", p->node);
	if (p->status && atomic_load(&run->skipped))
		exit(EXIT_SKIP);
	if (p->status)
		test_fail(&site, "node %u: %s", p->node,
			  status_words(p->status));
	peer_hang_up(p);
}

void peer_become(uid_t uid, gid_t gid)
{
	pid_t parent = getppid();

	CHECK_EQ(setgroups(0, NULL), 0);
	CHECK_EQ(setresgid(gid, gid, gid), 0);
	CHECK_EQ(setresuid(uid, uid, uid), 0);
	/* setresgid() and setresuid() reset both the dumpable flag and the death signal */
	CHECK_EQ(prctl(PR_SET_DUMPABLE, 1), 0);
	die_with(parent);
}

/* ---- resources of a process ---- */

static unsigned int count_entries(const char *path)
{
	DIR *dir = opendir(path);
	unsigned int n = 0;
	struct dirent *e;

	CHECK(dir != NULL);
	while ((e = readdir(dir)))
		n += e->d_name[0] != '.';
	closedir(dir);
	return n;
}

/* Count the lines for which @match returns true. */
static unsigned int count_lines(const char *path,
				bool (*match)(const char *line))
{
	FILE *file = fopen(path, "re");
	size_t room = 0;
	unsigned int n = 0;
	char *line = NULL;

	CHECK(file != NULL);
	while (getline(&line, &room, file) >= 0)
		n += match(line);
	free(line);
	fclose(file);
	return n;
}

static bool any_line(const char *line)
{
	(void)line;
	return true;
}

/* "FROM-TO rw-s OFFSET DEVICE INODE NAME"; test_shared() maps /dev/zero. */
static bool shared_map_line(const char *line)
{
	const char *perms = strchr(line, ' ');

	return perms && perms[4] == 's' && !strstr(line, "/dev/zero");
}

static bool socket_line(const char *line)
{
	const char *name = strstr(line, " @sci");

	return name && strstr(name, cluster);
}

unsigned int count_tasks(void)
{
	return count_entries("/proc/self/task");
}

unsigned int count_fds(void)
{
	return count_entries("/proc/self/fd") - 1;
}

unsigned int count_maps(void)
{
	return count_lines("/proc/self/maps", any_line);
}

unsigned int count_shared_maps(void)
{
	return count_lines("/proc/self/maps", shared_map_line);
}

unsigned int count_sockets(void)
{
	return own_cluster ? count_lines("/proc/net/unix", socket_line) : 0;
}

static bool task_asleep(const char *tid)
{
	char path[384], text[512] = "";
	const char *state;
	ssize_t n = 0;
	int fd;

	snprintf(path, sizeof(path), "/proc/self/task/%s/stat", tid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return true;	/* the thread has ended */
	n = read(fd, text, sizeof(text) - 1);
	close(fd);
	state = strrchr(text, ')');	/* the thread's name may contain brackets */
	return n <= 0 || !state || state[2] != 'R';
}

bool others_asleep(void)
{
	DIR *dir = opendir("/proc/self/task");
	bool asleep = true;
	struct dirent *e;

	while ((e = readdir(dir)))
		if (e->d_name[0] != '.' && atoi(e->d_name) != gettid())
			asleep &= task_asleep(e->d_name);
	closedir(dir);
	return asleep;
}

pid_t test_fork(void)
{
	if (TEST_ASAN)
		WAIT_UNTIL(others_asleep() && others_asleep(), TEST_WAIT_MS);
	return fork();
}

struct holdings {
	unsigned int tasks;
	unsigned int fds;
	unsigned int maps;
	unsigned int shared_maps;
	unsigned int sockets;
};

static struct holdings before;

static struct holdings holdings_now(void)
{
	return (struct holdings){
		.tasks = count_tasks(),
		.fds = count_fds(),
		.maps = count_maps(),
		.shared_maps = count_shared_maps(),
		.sockets = count_sockets(),
	};
}

/*
 * The C library keeps stacks and arenas of ended threads, and the sanitizers map memory
 * of their own. A leak in a loop exceeds this margin for the number of maps.
 */
#define MAPS_MARGIN	(TEST_ASAN || TEST_TSAN ? 4096 : 24)

/* The thread sanitizer starts its own thread with the program's first one. */
#define TASKS_MARGIN	(TEST_TSAN ? 1 : 0)

static bool holds_no_more(const struct holdings *now)
{
	return now->tasks <= before.tasks + TASKS_MARGIN &&
	       now->fds <= before.fds &&
	       now->maps <= before.maps + MAPS_MARGIN &&
	       now->shared_maps <= before.shared_maps &&
	       now->sockets <= before.sockets;
}

static void print_fds(void)
{
	DIR *dir = opendir("/proc/self/fd");
	struct dirent *e;

	while ((e = readdir(dir))) {
		char target[128];
		ssize_t n = readlinkat(dirfd(dir), e->d_name, target,
				       sizeof(target) - 1);

		if (n > 0)
			test_note("fd %s: %.*s", e->d_name, (int)n, target);
	}
	closedir(dir);
}

void leak_check_begin(void)
{
	before = holdings_now();
}

void leak_check_end(void)
{
	struct holdings now;

	TEST_SITE(site, "leak_check_end");
	/* a joined thread stays in /proc for a moment */
	if (HAPPENS((now = holdings_now(), holds_no_more(&now)), TEST_WAIT_MS))
		return;
	if (now.fds > before.fds)
		print_fds();
	test_fail(&site, "leak: %u -> %u tasks, %u -> %u descriptors, "
		  "%u -> %u maps, %u -> %u shared maps, %u -> %u sockets",
		  before.tasks, now.tasks, before.fds, now.fds, before.maps, now.maps,
		  before.shared_maps, now.shared_maps, before.sockets, now.sockets);
}

/* ---- callbacks ---- */

void recorder_init(struct recorder *r)
{
	pthread_condattr_t attr;

	memset(r, 0, sizeof(*r));
	r->action = SCI_CALLBACK_CONTINUE;
	pthread_mutex_init(&r->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&r->more, &attr);
	pthread_condattr_destroy(&attr);
}

void recorder_clear(struct recorder *r)
{
	pthread_mutex_lock(&r->lock);
	for (unsigned int i = 0; i < r->count; i++)
		free(r->records[i].data);
	r->count = 0;
	pthread_mutex_unlock(&r->lock);
}

unsigned int recorder_count(struct recorder *r)
{
	unsigned int n;

	pthread_mutex_lock(&r->lock);
	n = r->count;
	pthread_mutex_unlock(&r->lock);
	return n;
}

bool recorder_wait(struct recorder *r, unsigned int n, unsigned int ms)
{
	struct timespec until;
	bool there;
	int ret = 0;

	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec += ms / 1000;
	until.tv_nsec += ms % 1000 * 1000000;
	if (until.tv_nsec >= 1000000000) {
		until.tv_sec++;
		until.tv_nsec -= 1000000000;
	}
	pthread_mutex_lock(&r->lock);
	while (r->count < n && ret == 0)
		ret = pthread_cond_timedwait(&r->more, &r->lock, &until);
	there = r->count >= n;
	pthread_mutex_unlock(&r->lock);
	return there;
}

struct record recorder_get(struct recorder *r, unsigned int i)
{
	struct record record;

	TEST_SITE(site, "recorder_get");
	if (!recorder_wait(r, i + 1, TEST_WAIT_MS))
		test_fail(&site, "expected %u callbacks, got %u", i + 1,
			  recorder_count(r));
	pthread_mutex_lock(&r->lock);
	record = r->records[i];
	pthread_mutex_unlock(&r->lock);
	return record;
}

static sci_callback_action_t recorder_add(struct recorder *r,
					  struct record *record)
{
	sci_callback_action_t action;

	record->thread = pthread_self();
	record->when_ms = test_now_ms();
	pthread_mutex_lock(&r->lock);
	r->overlaps += r->inside;
	r->inside = true;
	pthread_mutex_unlock(&r->lock);
	sched_yield();		/* gives another callback time to overlap */
	pthread_mutex_lock(&r->lock);
	if (r->count < RECORDER_MAX)
		r->records[r->count++] = *record;
	r->inside = false;
	action = r->action;
	pthread_cond_broadcast(&r->more);
	pthread_mutex_unlock(&r->lock);
	return action;
}

sci_callback_action_t record_local_segment(void *arg, sci_local_segment_t s,
					   sci_segment_cb_reason_t reason,
					   unsigned int node,
					   unsigned int adapter,
					   sci_error_t error)
{
	struct record record = {
		.handle = s, .reason = reason, .node = node,
		.adapter = adapter, .status = error,
	};

	return recorder_add(arg, &record);
}

sci_callback_action_t record_remote_segment(void *arg, sci_remote_segment_t s,
					    sci_segment_cb_reason_t reason,
					    sci_error_t status)
{
	struct record record = {
		.handle = s, .reason = reason, .status = status,
	};

	return recorder_add(arg, &record);
}

sci_callback_action_t record_dma(void *arg, sci_dma_queue_t q,
				 sci_error_t status)
{
	struct record record = { .handle = q, .status = status };

	return recorder_add(arg, &record);
}

sci_callback_action_t record_interrupt(void *arg, sci_local_interrupt_t i,
				       sci_error_t status)
{
	struct record record = { .handle = i, .status = status };

	return recorder_add(arg, &record);
}

sci_callback_action_t record_data_interrupt(void *arg,
					    sci_local_data_interrupt_t i,
					    void *data, unsigned int length,
					    sci_error_t status)
{
	struct record record = {
		.handle = i, .length = length, .status = status,
		.data = calloc(1, (size_t)length + 1),
	};

	if (length)
		memcpy(record.data, data, length);
	return recorder_add(arg, &record);
}

int record_block_transfer(void *arg, sci_block_transfer_t b,
			  sci_error_t status)
{
	struct record record = { .handle = b, .status = status };

	return recorder_add(arg, &record);
}

/* ---- first steps ---- */

sci_desc_t test_open(void)
{
	sci_desc_t sd;

	CHECK_OK(SCIInitialize(0, &err));
	CHECK_OK(SCIOpen(&sd, 0, &err));
	return sd;
}

static void segment_ready(sci_local_segment_t s)
{
	CHECK_OK(SCIPrepareSegment(s, 0, 0, &err));
	CHECK_OK(SCISetSegmentAvailable(s, 0, 0, &err));
}

bool test_has_broadcast(void)
{
	unsigned int groups = 0;
	sci_query_adapter_t q = {
		.subcommand = SCI_Q_ADAPTER_MCAST_MAX_GROUPS, .data = &groups,
	};

	CHECK_OK(SCIQuery(SCI_Q_ADAPTER, &q, 0, &err));
	return groups;
}

sci_local_segment_t test_segment(sci_desc_t sd, unsigned int id, size_t size,
				 unsigned int flags)
{
	sci_local_segment_t s;

	if (flags & SCI_FLAG_BROADCAST && !test_has_broadcast())
		SKIP("these adapters have no broadcast");
	CHECK_OK(SCICreateSegment(sd, &s, id, size, NULL, NULL, flags, &err));
	segment_ready(s);
	return s;
}

sci_local_segment_t test_segment_cb(sci_desc_t sd, unsigned int id,
				    size_t size, struct recorder *r)
{
	sci_local_segment_t s;

	CHECK_OK(SCICreateSegment(sd, &s, id, size, record_local_segment, r,
				  SCI_FLAG_USE_CALLBACK, &err));
	segment_ready(s);
	return s;
}

/* Repeat @call while its error code is @code. */
#define RETRY(call, code)						\
	do {								\
		uint64_t until_ = test_now_ms() + TEST_WAIT_MS;		\
		sci_error_t e_;						\
									\
		while ((e_ = ERR_OF(call)) == (code) &&			\
		       test_now_ms() < until_)				\
			test_pause();					\
		TEST_SITE(site, #call);					\
		test_check_err(&site, e_, SCI_ERR_OK);			\
	} while (0)

sci_remote_segment_t test_connect(sci_desc_t sd, unsigned int node,
				  unsigned int id)
{
	sci_remote_segment_t s;

	RETRY(SCIConnectSegment(sd, &s, node, id, 0, NULL, NULL,
				SCI_INFINITE_TIMEOUT, 0, &err),
	      SCI_ERR_NO_SUCH_SEGMENT);
	return s;
}

sci_remote_segment_t test_connect_cb(sci_desc_t sd, unsigned int node,
				     unsigned int id, struct recorder *r)
{
	sci_remote_segment_t s;

	RETRY(SCIConnectSegment(sd, &s, node, id, 0, record_remote_segment, r,
				SCI_INFINITE_TIMEOUT, SCI_FLAG_USE_CALLBACK,
				&err),
	      SCI_ERR_NO_SUCH_SEGMENT);
	return s;
}

void *test_map_local(sci_local_segment_t s, sci_map_t *map)
{
	size_t size = SCIGetLocalSegmentSize(s);
	sci_map_t own;
	void *p;

	CHECK_OK(p = SCIMapLocalSegment(s, map ? map : &own, 0, size, NULL, 0,
					&err));
	CHECK(p != NULL);
	return p;
}

volatile void *test_map_remote(sci_remote_segment_t s, sci_map_t *map)
{
	size_t size = SCIGetRemoteSegmentSize(s);
	volatile void *p;
	sci_map_t own;

	CHECK_OK(p = SCIMapRemoteSegment(s, map ? map : &own, 0, size, NULL, 0,
					 &err));
	CHECK(p != NULL);
	return p;
}

sci_local_interrupt_t test_interrupt(sci_desc_t sd, unsigned int number)
{
	sci_local_interrupt_t i;

	CHECK_OK(SCICreateInterrupt(sd, &i, 0, &number, NULL, NULL,
				    SCI_FLAG_FIXED_INTNO, &err));
	return i;
}

sci_local_data_interrupt_t test_data_interrupt(sci_desc_t sd,
					       unsigned int number)
{
	sci_local_data_interrupt_t i;

	CHECK_OK(SCICreateDataInterrupt(sd, &i, 0, &number, NULL, NULL,
					SCI_FLAG_FIXED_INTNO, &err));
	return i;
}

sci_remote_interrupt_t test_connect_interrupt(sci_desc_t sd, unsigned int node,
					      unsigned int number)
{
	sci_remote_interrupt_t i;

	RETRY(SCIConnectInterrupt(sd, &i, node, 0, number,
				  SCI_INFINITE_TIMEOUT, 0, &err),
	      SCI_ERR_NO_SUCH_INTNO);
	return i;
}

sci_remote_data_interrupt_t
test_connect_data_interrupt(sci_desc_t sd, unsigned int node,
			    unsigned int number)
{
	sci_remote_data_interrupt_t i;

	RETRY(SCIConnectDataInterrupt(sd, &i, node, 0, number,
				      SCI_INFINITE_TIMEOUT, 0, &err),
	      SCI_ERR_NO_SUCH_INTNO);
	return i;
}

__attribute__((no_sanitize("thread")))
void test_poke(volatile void *p, unsigned char value)
{
	*(volatile unsigned char *)p = value;
}

static unsigned char pattern(size_t i, unsigned int seed)
{
	return (i * 131) ^ (i >> 8) * 29 ^ (i >> 16) * 7 ^ seed * 57;
}

void test_fill(volatile void *p, size_t size, unsigned int seed)
{
	volatile unsigned char *c = p;

	for (size_t i = 0; i < size; i++)
		c[i] = pattern(i, seed);
}

/* Each load from memory of another node takes as long as a packet and its answer: load words. */
bool test_filled(const volatile void *p, size_t size, unsigned int seed)
{
	const volatile unsigned char *c = p;
	union {
		unsigned char byte[8];
		uint64_t word;
	} got;

	for (size_t i = 0, n; i < size; i += n) {
		n = (uintptr_t)&c[i] % sizeof(got) || size - i < sizeof(got) ? 1 : sizeof(got);
		if (n == 1)
			got.byte[0] = c[i];
		else
			got.word = *(const volatile uint64_t *)&c[i];
		for (size_t k = 0; k < n; k++)
			if (got.byte[k] != pattern(i + k, seed))
				return false;
	}
	return true;
}

#if TEST_TSAN
/* Hundreds of processes exit, and by default each sleeps for a second. */
const char *__tsan_default_options(void);

const char *__tsan_default_options(void)
{
	return "atexit_sleep_ms=50";
}
#endif

/* ---- the runner ---- */

struct names {
	size_t count;
	char **name;
};

static struct names list_files(const char *path)
{
	struct names list = { 0, NULL };
	DIR *dir = opendir(path);
	struct dirent *e;

	while (dir && (e = readdir(dir))) {
		list.name = realloc(list.name,
				    (list.count + 1) * sizeof(*list.name));
		list.name[list.count++] = strdup(e->d_name);
	}
	if (dir)
		closedir(dir);
	return list;
}

static void free_names(struct names *list)
{
	for (size_t i = 0; i < list->count; i++)
		free(list->name[i]);
	free(list->name);
}

static bool has_name(const struct names *list, const char *name)
{
	for (size_t i = 0; i < list->count; i++)
		if (!strcmp(list->name[i], name))
			return true;
	return false;
}

/*
 * Look for new files in /dev/shm. Other programs use the folder, too: a file whose name
 * does not contain "sci" or the cluster's name is no leftover.
 */
static bool files_left(const struct names *old, bool tell)
{
	struct names now = list_files("/dev/shm");
	bool left = false;

	for (size_t i = 0; i < now.count; i++) {
		const char *name = now.name[i];

		if (has_name(old, name))
			continue;
		left |= strstr(name, "sci") || strstr(name, cluster);
		if (tell)
			test_note("new file /dev/shm/%s", name);
	}
	free_names(&now);
	return left;
}

/*
 * Count the kernel modules' objects: segments, imports, and descriptors of adapters.
 * Objects of other programs count, too.
 */
unsigned int harness_objects(void)
{
	static const char *const folders[] = { "segments", "imports" };
	struct names devices = list_files("/sys/class/sci");
	unsigned int n = 0, users;
	char path[512];

	for (size_t i = 0; i < devices.count; i++) {
		FILE *file;

		if (devices.name[i][0] == '.')
			continue;
		for (size_t k = 0; k < ARRAY_LEN(folders); k++) {
			struct names objects;

			snprintf(path, sizeof(path), "/sys/class/sci/%s/%s",
				 devices.name[i], folders[k]);
			objects = list_files(path);
			n += objects.count > 2 ? objects.count - 2 : 0;
			free_names(&objects);
		}
		snprintf(path, sizeof(path), "/sys/class/sci/%s/users",
			 devices.name[i]);
		file = fopen(path, "re");
		if (file && fscanf(file, "%u", &users) == 1)
			n += users;
		if (file)
			fclose(file);
	}
	free_names(&devices);
	return n;
}

static unsigned int device_objects(void)
{
	return harness_objects() + (remote_machines() ? remote_objects() : 0);
}

static bool print_socket(const char *line)
{
	if (socket_line(line))
		test_note("left: %.*s", (int)strcspn(line, "\n"), line);
	return true;
}

static bool check_leftovers(const struct names *old_files,
			    unsigned int old_objects)
{
	unsigned int objects = old_objects;

	if (!HAPPENS(!count_sockets() && !files_left(old_files, false) &&
		     (own_cluster || getenv("SCI_TEST_NODE") ||
		      (objects = device_objects()) <= old_objects), TEST_WAIT_MS)) {
		count_lines("/proc/net/unix", print_socket);
		files_left(old_files, true);
		if (objects > old_objects)
			test_note("%u -> %u objects in /sys/class/sci",
				  old_objects, objects);
		test_note("the test left something behind");
		return false;
	}
	return true;
}

static void print_sites(void)
{
	unsigned int n = atomic_load(&run->processes);

	for (unsigned int i = 0; i < n && i < MAX_PROCESSES; i++) {
		struct process_state *s = &run->process[i];
		const struct test_site *at = atomic_load(&s->at);

		if (at)
			test_note("node %u, pid %d: last check %s:%d: %s",
				  atomic_load(&s->node), atomic_load(&s->pid),
				  at->file, at->line, at->text);
	}
}

/* After a time-out: print the system call in which each thread of the test waits. */
static void print_threads(pid_t pid)
{
	char path[64];
	struct names tasks;

	snprintf(path, sizeof(path), "/proc/%d/task", pid);
	tasks = list_files(path);
	for (size_t i = 0; i < tasks.count; i++) {
		char file[384], text[128] = "";
		ssize_t n = -1;
		int fd;

		if (tasks.name[i][0] == '.')
			continue;
		snprintf(file, sizeof(file), "%s/%s/syscall", path,
			 tasks.name[i]);
		fd = open(file, O_RDONLY | O_CLOEXEC);
		if (fd >= 0) {
			n = read(fd, text, sizeof(text) - 1);
			close(fd);
		}
		if (n > 0)
			test_note("pid %d task %s: system call %.*s", pid,
				  tasks.name[i], (int)strcspn(text, "\n"),
				  text);
	}
	free_names(&tasks);
}

/* Read up to @size - 1 bytes of a file of process @pid. Return false if there are none. */
static bool process_text(pid_t pid, const char *name, char *text, size_t size)
{
	char path[64];
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/%s", pid, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	n = fd < 0 ? -1 : read(fd, text, size - 1);
	if (fd >= 0)
		close(fd);
	text[n > 0 ? n : 0] = 0;
	/* a 0 ends each argument */
	for (ssize_t i = 0; i + 1 < n; i++)
		if (!text[i])
			text[i] = ' ';
	return n > 0;
}

struct test_process test_process(pid_t pid)
{
	struct test_process p = { .state = '?' };
	char text[512], *name, *end;

	if (!process_text(pid, "stat", text, sizeof(text)))
		return p;
	/* the name may contain spaces and brackets */
	name = strchr(text, '(');
	end = strrchr(text, ')');
	if (name && end && sscanf(end + 1, " %c %d %d", &p.state, &p.parent, &p.group) == 3)
		snprintf(p.name, sizeof(p.name), "%.*s", (int)(end - name - 1), name + 1);
	return p;
}

/*
 * List the children of this process that still run. kill(-pid) has reached only the
 * test's process group.
 */
static void print_children(pid_t group)
{
	struct names processes = list_files("/proc");
	char text[512], wait[64];

	for (size_t i = 0; i < processes.count; i++) {
		pid_t pid = atoi(processes.name[i]);
		struct test_process p = test_process(pid);

		if (p.parent != getpid())
			continue;
		process_text(pid, "wchan", wait, sizeof(wait));
		test_note("left: pid %d (%s), state %c, %s process group, waits in %s", pid,
			  p.name, p.state, p.group == group ? "the test's" : "another", wait);
		if (process_text(pid, "cmdline", text, sizeof(text)))
			test_note("left: pid %d: %s", pid, text);
	}
	free_names(&processes);
}

static bool reap_all(void)
{
	bool clean = true;
	pid_t pid;
	int status;

	while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
		if (!WIFSIGNALED(status) || WTERMSIG(status) == SIGKILL)
			continue;
		test_note("pid %d: %s", pid, status_words(status));
		clean = false;
	}
	return clean;
}

static bool no_child_left(bool *clean)
{
	*clean &= reap_all();
	return waitpid(-1, NULL, WNOHANG) < 0 && errno == ECHILD;
}

/* Return the time limit of a test, in milliseconds. */
static int limit_ms(void)
{
	const char *limit = getenv("SCI_TEST_TIMEOUT");
	int s = limit ? atoi(limit) : 60;

	return (s > 0 && s < 86400 ? s : 60) * 1000;
}

int test_wait_ms(void)
{
	return limit_ms() > 60000 ? limit_ms() / 3 : 20000;
}

unsigned int test_calls(unsigned int n)
{
	const char *calls = getenv("SCI_CALLS");
	unsigned long limit = calls ? strtoul(calls, NULL, 10) : 0;

	return limit && limit < n ? (unsigned int)limit : n;
}

/* Return whether the process ended in time. */
static bool wait_end(pid_t pid, int *status)
{
	int ms = limit_ms();
	int fd = syscall(SYS_pidfd_open, pid, 0);
	struct pollfd pfd = { .fd = fd, .events = POLLIN };
	bool ended;

	ended = poll(&pfd, 1, ms) == 1;
	close(fd);
	if (!ended) {
		unsigned int n = atomic_load(&run->processes);

		for (unsigned int i = 0; i < n && i < MAX_PROCESSES; i++)
			print_threads(atomic_load(&run->process[i].pid));
		kill(pid, SIGKILL);
	}
	waitpid(pid, status, 0);
	return ended;
}

__attribute__((noreturn))
static void test_main(const struct test *t, pid_t parent)
{
	setpgid(0, 0);
	die_with(parent);
	remote_forget();
	set_environment();
	process_enter((unsigned int)atoi(getenv("SCI_NODE")));
	t->fn();
	exit(0);
}

/* On real adapters: mark the kernel's log, so that its messages can be assigned to tests. */
static void mark_log(const char *name)
{
	char line[256];
	int fd, len;

	if (own_cluster)
		return;
	fd = open("/dev/kmsg", O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return;
	len = snprintf(line, sizeof(line), "selftest: %s: %s\n",
		       program_invocation_short_name, name);
	if (write(fd, line, len) != len)
		test_note("no mark in the kernel's log");
	close(fd);
}

/* Name the folder of test_dir(). The cluster's name is unique. */
static void folder_name(void)
{
	const char *tmp = getenv("TMPDIR");

	snprintf(folder, sizeof(folder), "%.1000s/sci-%s", tmp && *tmp ? tmp : "/tmp", cluster);
}

static int remove_entry(const char *path, const struct stat *st, int kind, struct FTW *place)
{
	(void)st;
	(void)kind;
	(void)place;
	return remove(path);
}

enum verdict { PASSED, SKIPPED, FAILED, TIMED_OUT };

static enum verdict run_test(const struct test *t)
{
	struct names files = list_files("/dev/shm");
	const char *mark = getenv("SCI_TEST_MARK");
	bool in_time, clean = true;
	pid_t parent = getpid();
	unsigned int objects;
	uint32_t number;
	int status;
	pid_t pid;

	memset(run, 0, sizeof(*run));
	objects = device_objects();
	if (getrandom(&number, sizeof(number), 0) != sizeof(number))
		number = getpid() * 2654435761u + (uint32_t)test_now_ms();
	snprintf(cluster, sizeof(cluster), "t%.8s%08x", mark ? mark : "",
		 number);
	net_key_make();
	folder_name();
	own_cluster = !getenv("SCI_TEST_FABRIC");
	mark_log(t->name);

	pid = fork();
	if (pid == 0)
		test_main(t, parent);
	if (pid < 0) {
		test_note("fork: %s", strerror(errno));
		return FAILED;
	}
	setpgid(pid, pid);
	in_time = wait_end(pid, &status);
	kill(-pid, SIGKILL);
	if (!HAPPENS(no_child_left(&clean), TEST_WAIT_MS)) {
		test_note("a process of the test does not end");
		print_children(pid);
		clean = false;
	}
	clean &= check_leftovers(&files, objects);
	nftw(folder, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
	free_names(&files);

	if (!in_time) {
		print_sites();
		return TIMED_OUT;
	}
	if (WIFSIGNALED(status)) {
		test_note("%s", status_words(status));
		print_sites();
		return FAILED;
	}
	if (!clean || atomic_load(&run->failed))
		return FAILED;
	/* after a peer's SKIP the test may have seen only the end of the peer */
	if (atomic_load(&run->skipped))
		return SKIPPED;
	if (WEXITSTATUS(status) == EXIT_SKIP)
		return SKIPPED;
	if (status && WEXITSTATUS(status) != 1)
		test_note("%s", status_words(status));
	return status ? FAILED : PASSED;
}

static bool wanted(const struct test *t, char **patterns, int n)
{
	for (int i = 0; i < n; i++)
		if (!fnmatch(patterns[i], t->name, FNM_EXTMATCH))
			return true;
	return n == 0;
}

void harness_begin(void)
{
	run = mmap(NULL, sizeof(*run), PROT_READ | PROT_WRITE,
		   MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (run == MAP_FAILED) {
		perror("mmap");
		exit(2);
	}
}

void harness_fail(void)
{
	atomic_store(&run->failed, true);
}

bool harness_failed(void)
{
	return atomic_load(&run->failed);
}

void harness_skip(const char *reason)
{
	snprintf(run->skip_reason, sizeof(run->skip_reason), "%s", reason);
	atomic_store(&run->skipped, true);
}

const char *harness_skipped(void)
{
	return atomic_load(&run->skipped) ? run->skip_reason : "";
}

int main(int argc, char **argv)
{
	bool list = argc > 1 && !strcmp(argv[1], "-l");
	unsigned int count = 0, n = 0, failed = 0, skipped = 0;

	if (remote_main(argv))
		return remote_serve(argv[1] + strlen("--serve-"));
	for (struct test *t = tests; t; t = t->next) {
		if (list)
			print_line("%s", t->name);
		else
			count += wanted(t, argv + 1, argc - 1);
	}
	if (list)
		return 0;
	if (!count) {
		fprintf(stderr, "%s: no such test\n", argv[0]);
		return 2;
	}

	prctl(PR_SET_CHILD_SUBREAPER, 1);
	signal(SIGPIPE, SIG_IGN);
	harness_begin();
	print_line("TAP version 13");
	print_line("1..%u", count);
	for (struct test *t = tests; t; t = t->next) {
		if (!wanted(t, argv + 1, argc - 1))
			continue;
		switch (run_test(t)) {
		case PASSED:
			print_line("ok %u - %s", ++n, t->name);
			break;
		case SKIPPED:
			skipped++;
			print_line("ok %u - %s # SKIP %s", ++n, t->name,
				   run->skip_reason);
			break;
		case FAILED:
			failed++;
			print_line("not ok %u - %s", ++n, t->name);
			break;
		case TIMED_OUT:
			failed++;
			print_line("not ok %u - %s (timed out)", ++n, t->name);
			break;
		}
	}
	if (failed)
		return 1;
	return skipped == count ? EXIT_SKIP : 0;
}
