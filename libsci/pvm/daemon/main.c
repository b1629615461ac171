// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/* pvmd3: start-up, the loop, and the end. */

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "libsci/pvm/daemon/daemon.h"

#define EVENTS		64
#define GRACE_MS	1000	/* ms from SIGTERM to SIGKILL for tasks */
#define LINGER_MS	2000	/* ms until a halting daemon ends in any case */
#define PATIENCE_MS	10000	/* ms to wait for the end of a previous daemon */

bool halting;
const char *search_path;
static int epoll_fd = -1;
static int64_t halt_ms;		/* clock_ms() at the beginning of the halt */
static bool killed;
static FILE *log_file;
static struct watch signals, sci_watch, owner = { .fd = -1 };

/* ---- the log ---- */

void say(const char *fmt, ...)
{
	FILE *to = log_file ? log_file : stderr;
	char when[32];
	time_t now = time(NULL);
	struct tm tm;
	va_list ap;

	localtime_r(&now, &tm);
	strftime(when, sizeof(when), "%m/%d %H:%M:%S", &tm);
	fprintf(to, "[t8%07x] %s ", TID_OF_HOST(own_host), when);
	va_start(ap, fmt);
	vfprintf(to, fmt, ap);
	va_end(ap);
	fputc('\n', to);
	fflush(to);
}

/* Open the log, pvml.UID[.VMID][-NODE] in PVM_TMP, with mode 0600. */
static void log_open(void)
{
	const char *tmp = getenv("PVM_TMP"), *node = getenv("SCI_NODE");
	const char *vmid = getenv("PVM_VMID");
	char path[4096];
	int fd;

	snprintf(path, sizeof(path), "%s/pvml.%u%s%s%s%s", tmp && *tmp ? tmp : "/tmp",
		 (unsigned int)getuid(), vmid ? "." : "", vmid ? vmid : "",
		 node ? "-" : "", node ? node : "");
	fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK,
		  0600);
	log_file = fd < 0 ? NULL : fdopen(fd, "a");
}

/* ---- descriptors ---- */

int watch_add(struct watch *w, int fd, uint32_t events,
	      void (*ready)(struct watch *w, uint32_t events))
{
	struct epoll_event e = { .events = events, .data.ptr = w };

	w->fd = fd;
	w->ready = ready;
	return epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd, &e) ? -errno : 0;
}

void watch_mod(struct watch *w, uint32_t events)
{
	struct epoll_event e = { .events = events, .data.ptr = w };

	epoll_ctl(epoll_fd, EPOLL_CTL_MOD, w->fd, &e);
}

void watch_del(struct watch *w)
{
	/* epoll would keep a descriptor that a child before its exec has open, too */
	if (w->fd >= 0) {
		epoll_ctl(epoll_fd, EPOLL_CTL_DEL, w->fd, NULL);
		close(w->fd);
	}
	w->fd = -1;
}

/* ---- signals ---- */

static void signals_ready(struct watch *w, uint32_t events)
{
	struct signalfd_siginfo si;
	struct rusage usage;
	pid_t pid;
	int status;

	(void)events;
	while (read(w->fd, &si, sizeof(si)) == sizeof(si)) {
		if (si.ssi_signo != SIGCHLD) {
			daemon_halt();
			continue;
		}
		while ((pid = wait4(-1, &status, WNOHANG, &usage)) > 0)
			if (!host_starter_ended(pid))
				task_reaped(pid, status, &usage);
	}
}

static int signals_init(void)
{
	sigset_t set;
	int fd;

	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigprocmask(SIG_BLOCK, &set, NULL);
	/* signalfd does not receive a signal whose inherited action is SIG_IGN */
	signal(SIGCHLD, SIG_DFL);
	signal(SIGTERM, SIG_DFL);
	signal(SIGINT, SIG_DFL);
	signal(SIGPIPE, SIG_IGN);
	signal(SIGHUP, SIG_IGN);
	fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	return fd < 0 ? -errno : watch_add(&signals, fd, EPOLLIN, signals_ready);
}

/* ---- the owner ---- */

static void owner_ready(struct watch *w, uint32_t events)
{
	(void)events;
	say("the process that owns this machine has ended");
	watch_del(w);
	daemon_halt();
}

/*
 * Watch the process that SCI_PVM_OWNER names. The machine halts when that process ends. The daemon
 * is not a child of that process, so a parent-death signal does not work.
 */
static int owner_watch(void)
{
	const char *pid = getenv("SCI_PVM_OWNER");
	int fd;

	if (!pid || !*pid)
		return 0;
	fd = (int)syscall(SYS_pidfd_open, (pid_t)atoi(pid), 0);
	if (fd < 0)
		return -errno;
	fcntl(fd, F_SETFD, FD_CLOEXEC);
	return watch_add(&owner, fd, EPOLLIN, owner_ready);
}

/* ---- the loop ---- */

int64_t clock_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static void sci_ready(struct watch *w, uint32_t events)
{
	/* daemon_loop() makes progress before it sleeps */
	(void)w;
	(void)events;
}

void daemon_halt(void)
{
	if (halting)
		return;
	halting = true;
	halt_ms = clock_ms();
	say("halting");
	hosts_halt(false);
	tasks_halt();
}

/* Return whether the daemon may end. Kill tasks and remote shells that ignore SIGTERM. */
static bool halt_done(void)
{
	if (!tasks_left() && !hosts_left())
		return true;
	if (!killed && clock_ms() - halt_ms > GRACE_MS) {
		killed = true;
		hosts_halt(true);
		tasks_halt();
	}
	return clock_ms() - halt_ms > LINGER_MS;
}

static void daemon_loop(void)
{
	struct epoll_event e[EVENTS];
	int n, timeout;

	while (!halting || !halt_done()) {
		tasks_free_ended();
		hosts_progress();
		timeout = hosts_expire();
		if (halting)
			timeout = 50;
		/* once armed, the endpoint's descriptor becomes readable for each new message */
		if (sci_ep_arm(endpoint) || arrivals_any())
			timeout = 0;
		n = epoll_wait(epoll_fd, e, EVENTS, timeout);
		for (int i = 0; i < n; i++) {
			struct watch *w = e[i].data.ptr;

			if (w->fd >= 0)
				w->ready(w, e[i].events);
		}
	}
}

/* ---- start-up ---- */

/* Send the result of the start to the process that has started this daemon. */
static void report_start(int status)
{
	const char *s = getenv("SCI_PVMD_REPORT");
	ssize_t n;

	if (!s)
		return;
	n = write(atoi(s), &status, sizeof(status));
	(void)n;
	close(atoi(s));
	unsetenv("SCI_PVMD_REPORT");
}

static int listen_once(void)
{
	struct sockaddr_un un;
	socklen_t len = pvm_sock_addr(&un);
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0)
		return -errno;
	if (bind(fd, (struct sockaddr *)&un, len) || listen(fd, 128)) {
		int err = -errno;

		close(fd);
		return err;
	}
	return fd;
}

/*
 * Listen for tasks of this host. Wait up to @patience ms for the socket's name: a previous daemon
 * of this host that was deleted or killed a moment ago releases the name soon.
 */
static int listen_open(int patience)
{
	int64_t end = clock_ms() + patience;
	struct timespec pause = { 0, 10 * 1000000 };
	int fd;

	while ((fd = listen_once()) == -EADDRINUSE && clock_ms() < end)
		nanosleep(&pause, NULL);
	return fd;
}

static void daemon_usage(void)
{
	fputs("Usage: pvmd3 [-n NAME]\n"
	      "Start the daemon of a PVM virtual machine on this host. See pvm_sci(7).\n",
	      stderr);
	exit(2);
}

static void start_fail(const char *what, int err)
{
	fprintf(stderr, "pvmd3: %s: %s\n", what, strerror(-err));
	say("%s: %s", what, strerror(-err));
	report_start(err == -EADDRINUSE ? PvmDupHost : PvmCantStart);
	exit(1);
}

int main(int argc, char **argv)
{
	const char *name = NULL, *master = NULL;
	bool by_hoster = false;
	int c, fd, ret;

	while ((c = getopt(argc, argv, "n:d:s:S:H:x:")) != -1) {
		if (c == 'n')
			name = optarg;
		else if (c == 'S')
			master = optarg;	/* from a master */
		else if (c == 'H')
			by_hoster = (master = optarg);
		else if (c != 'd' && c != 's' && c != 'x')
			daemon_usage();
	}
	/* the hoster's shell waits for this process, so continue in a child */
	if (by_hoster) {
		pid_t child = fork();

		if (child < 0)
			start_fail("cannot fork", -errno);
		if (child)
			_exit(0);
		setsid();
	}
	fd = listen_open(master ? PATIENCE_MS : 0);
	if (fd < 0)
		start_fail("cannot listen for tasks", fd);
	log_open();
	epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	ret = epoll_fd < 0 ? -errno : signals_init();
	if (!ret)
		ret = tasks_init(fd);
	if (ret)
		start_fail("cannot start", ret);
	ret = master ? 0 : owner_watch();
	if (ret)
		start_fail("cannot watch the process SCI_PVM_OWNER", ret);
	ret = sci_ep_open(&endpoint, 0, SCI_EP_SINGLE_THREAD);
	if (ret)
		start_fail("cannot open an endpoint", ret);
	arrivals_init();
	watch_add(&sci_watch, dup(sci_ep_fd(endpoint)), EPOLLIN, sci_ready);
	ret = hosts_init(name, master, by_hoster);
	if (ret)
		start_fail("cannot reach the master", ret);
	report_start(0);
	say("ready");
	daemon_loop();
	hosts_fini();
	sci_ep_close(endpoint);
	say("ended");
	return 0;
}
