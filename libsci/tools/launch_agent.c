// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/* The agent starts the ranks of one machine, relays their frames, and ends all their processes. */

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "libsci/fabric/core/fabric.h"
#include "launch.h"
#include "tool.h"

#define ADAPTERS_MAX	64u
#define BASE_POLLS	3u		/* descriptors besides those of ranks */

struct agent {
	struct boot_stream front;
	struct agent_job job;
	struct proc *procs;
	unsigned int nprocs;		/* number of processes that were started */
	unsigned int running;
	int signals;			/* signalfd */
	struct proc_origin origin;
	/* bytes of output that may be sent; below 0 after a line that was longer */
	int64_t window;
	uint64_t kill_at;		/* time of SIGKILL in ns; 0: no end is requested */
	unsigned int limit;		/* seconds without a byte from the front; 0: no limit */
	unsigned int silent;		/* keep-alive ticks since the last byte */
	uint64_t tick_at;		/* time of the next tick in ns */
	bool started, done;
	struct pollfd *polls;
	char *pmix_dir;			/* PATH_MAX bytes, shared with the guard */
};

/* Kill all ranks and exit: the connection has ended, or a signal asks this process to end. */
static noreturn void agent_quit(int status)
{
	descendants_kill();
	pmix_stop();
	_exit(status);
}

static void agent_send(struct agent *a, enum agent_type type, uint32_t rank, int arg,
		       const void *payload, size_t len)
{
	const struct boot_frame f = { type, rank, arg, (uint32_t)len };

	if (boot_stream_send(&a->front, &f, payload))
		agent_quit(TOOL_FAILED);
}

/* Send a sign of life. Queued bytes are one, too. */
static void agent_send_alive(struct agent *a)
{
	if (a->limit && !boot_stream_queued(&a->front))
		agent_send(a, AGENT_ALIVE, BOOT_ALL, a->started, NULL, 0);
}

/* ---- the machine ---- */

/* Find the nodes of the adapters that the user may open, in sysfs. */
static unsigned int agent_adapters(uint32_t nodes[ADAPTERS_MAX])
{
	const struct sci_fabric_ops *fabric = sci_fabric_find(getenv("SCI_FABRIC"));
	const char *sysfs = getenv("SCI_SYSFS");
	unsigned int n = 0;
	char path[PATH_MAX];

	if (fabric && fabric->virtual_nodes)
		return 0;
	for (unsigned int i = 0; i < ADAPTERS_MAX; i++) {
		FILE *f;

		snprintf(path, sizeof(path), "/dev/sci%u", i);
		if (access(path, R_OK | W_OK))
			continue;
		snprintf(path, sizeof(path), "%s/sci%u/node_id",
			 sysfs && *sysfs ? sysfs : "/sys/class/sci", i);
		f = fopen(path, "re");
		if (f && fscanf(f, "%u", &nodes[n]) == 1)
			n++;
		if (f)
			fclose(f);
	}
	return n;
}

/* ---- start ---- */

static void agent_error_text(struct agent *a, int status, const char *what, const char *why)
{
	char text[PATH_MAX + 128];
	int n = snprintf(text, sizeof(text), "%s: %s", what, why);

	agent_send(a, AGENT_ERROR, BOOT_ALL, status, text,
		   (size_t)n < sizeof(text) ? (size_t)n : sizeof(text) - 1);
}

static void agent_error(struct agent *a, int status, const char *what, int err)
{
	agent_error_text(a, status, what, strerror(-err));
}

static void agent_cannot_run(struct agent *a, int err)
{
	char what[PATH_MAX + 32];

	snprintf(what, sizeof(what), "cannot run %s", a->job.argv[0]);
	agent_error(a, err == -ENOENT ? EXIT_NOT_FOUND : EXIT_CANNOT_RUN, what, err);
}

static void agent_start(struct agent *a, const void *payload, size_t len)
{
	const char *error;
	int ret;

	if (a->procs || job_unpack(&a->job, payload, len))
		agent_quit(TOOL_FAILED);
	a->procs = calloc(a->job.nranks + 1, sizeof(*a->procs));
	a->polls = calloc(BASE_POLLS + 4 * a->job.nranks, sizeof(*a->polls));
	if (!a->procs || !a->polls)
		agent_quit(TOOL_FAILED);
	if (*a->job.cwd && chdir(a->job.cwd)) {
		char what[PATH_MAX + 32];

		ret = -errno;
		snprintf(what, sizeof(what), "cannot change to %s", a->job.cwd);
		agent_error(a, EXIT_CANNOT_RUN, what, ret);
		return;
	}
	ret = gateways_start(&a->job, &a->origin);
	if (ret) {
		agent_error(a, EXIT_CANNOT_RUN, "cannot start a gateway", ret);
		return;
	}
	error = a->job.pmix ? pmix_start(&a->job, a->pmix_dir) : NULL;
	if (error) {
		agent_error_text(a, EXIT_CANNOT_RUN, "cannot start a PMIx server", error);
		return;
	}
	for (unsigned int i = 0; i < a->job.nranks; i++) {
		struct proc *p = &a->procs[i];
		char **env = NULL;

		*p = (struct proc){ .who = a->job.ranks[i], .input = -1,
				    .boot = { .in = -1, .out = -1 },
				    .output = { { .fd = -1 }, { .fd = -1 } } };
		a->nprocs++;
		agent_send_alive(a);
		ret = a->job.pmix ? pmix_rank_environment(p->who.rank, &env) : 0;
		ret = ret ? ret : proc_start(p, &a->job, i, env, &a->origin);
		strings_free(env);
		a->running += p->pid != 0;
		if (ret) {
			agent_cannot_run(a, ret);
			return;
		}
	}
}

/* ---- output and input of ranks ---- */

static void output_send(struct agent *a, struct proc *p, unsigned int which, size_t len)
{
	struct proc_output *o = &p->output[which];

	if (!len)
		return;
	agent_send(a, AGENT_OUTPUT, p->who.rank, (int)which + 1, o->line, len);
	a->window -= (int64_t)len;
	memmove(o->line, o->line + len, o->len - len);
	o->len -= len;
}

/* Send whole lines; send all bytes at the end, of a long line, and of an interactive rank 0. */
static void output_read(struct agent *a, struct proc *p, unsigned int which)
{
	struct proc_output *o = &p->output[which];
	const char *end;
	ssize_t n;

	n = read(o->fd, o->line + o->len, AGENT_LINE_MAX - o->len);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0) {
		close(o->fd);
		o->fd = -1;
		output_send(a, p, which, o->len);
		return;
	}
	o->len += (size_t)n;
	end = memrchr(o->line, '\n', o->len);
	if (o->len == AGENT_LINE_MAX || (a->job.interactive && !p->who.rank))
		output_send(a, p, which, o->len);
	else if (end)
		output_send(a, p, which, (size_t)(end - o->line) + 1);
}

static void input_close(struct proc *p)
{
	if (p->input >= 0)
		close(p->input);
	p->input = -1;
	p->in.from = p->in.to = 0;
}

static void input_write(struct agent *a, struct proc *p)
{
	ssize_t n;

	while (p->input >= 0 && p->in.to > p->in.from) {
		n = write(p->input, p->in.data + p->in.from, p->in.to - p->in.from);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN)
			return;
		if (n < 0)		/* the rank has closed its input */
			n = (ssize_t)(p->in.to - p->in.from);
		boot_bytes_take(&p->in, (size_t)n);
		agent_send(a, AGENT_TOOK, p->who.rank, (int)n, NULL, 0);
	}
	if (p->input_end)
		input_close(p);
}

static void input_add(struct agent *a, struct proc *p, const void *data, size_t len)
{
	if (p->input < 0)
		return;
	if (!len) {
		p->input_end = true;
	} else {
		if (boot_bytes_reserve(&p->in, len))
			agent_quit(TOOL_FAILED);
		memcpy(p->in.data + p->in.to, data, len);
		p->in.to += len;
	}
	input_write(a, p);
}

/* ---- frames ---- */

static struct proc *agent_proc(struct agent *a, uint32_t rank)
{
	for (unsigned int i = 0; i < a->nprocs; i++)
		if (a->procs[i].who.rank == rank)
			return &a->procs[i];
	return NULL;
}

static void rank_signal(struct agent *a, uint32_t rank, int sig)
{
	assert(a->procs || !a->nprocs);
	for (unsigned int i = 0; i < a->nprocs; i++)
		if (a->procs[i].pid && (rank == BOOT_ALL || a->procs[i].who.rank == rank))
			if (kill(-a->procs[i].pid, sig))
				kill(a->procs[i].pid, sig);
}

static void agent_end(struct agent *a, int grace_ms)
{
	uint64_t at = tool_now_ns() + (uint64_t)grace_ms * 1000000u;

	if (!a->kill_at || at < a->kill_at)
		a->kill_at = at;
	rank_signal(a, BOOT_ALL, SIGTERM);
	rank_signal(a, BOOT_ALL, SIGCONT);
}

static void ranks_frame(struct agent *a, const struct boot_frame *f, const void *payload)
{
	for (unsigned int i = 0; i < a->nprocs; i++) {
		struct proc *p = &a->procs[i];

		if (p->boot.out >= 0 && (f->rank == BOOT_ALL || f->rank == p->who.rank))
			boot_stream_send(&p->boot, f, payload);
	}
}

static void front_frame(struct agent *a, const struct boot_frame *f, const void *payload)
{
	struct proc *p;

	switch (f->type) {
	case AGENT_START:
		agent_start(a, payload, f->len);
		a->started = true;
		agent_send_alive(a);
		break;
	case AGENT_SIGNAL:
		rank_signal(a, f->rank, f->arg);
		break;
	case AGENT_INPUT:
		p = agent_proc(a, f->rank);
		if (p)
			input_add(a, p, payload, f->len);
		break;
	case AGENT_END:
		agent_end(a, f->arg);
		break;
	case AGENT_CREDIT:
		a->window += f->arg;
		break;
	case AGENT_PING:
		a->limit = (unsigned int)f->arg;
		break;
	default:
		ranks_frame(a, f, payload);
	}
}

static void front_input(struct agent *a)
{
	const void *payload;
	struct boot_frame f;
	int ret;

	ret = boot_stream_fill(&a->front);
	if (ret && ret != -EAGAIN)
		agent_quit(a->done ? TOOL_OK : TOOL_FAILED);
	if (!ret)
		a->silent = 0;
	while (!(ret = boot_stream_next(&a->front, &f, &payload)))
		front_frame(a, &f, payload);
	if (ret != -EAGAIN)
		agent_quit(TOOL_FAILED);
}

/* Send a sign of life every second. End the ranks when the front has been silent too long. */
static void agent_tick(struct agent *a)
{
	uint64_t now = tool_now_ns();

	if (!a->limit || now < a->tick_at)
		return;
	a->tick_at = now + KEEPALIVE_NS;
	if (a->silent++ >= a->limit)
		agent_quit(TOOL_FAILED);
	agent_send_alive(a);
}

/* Forward frames of a rank to the front, with the rank's number. */
static void rank_input(struct agent *a, struct proc *p)
{
	const void *payload;
	struct boot_frame f;
	int ret, next;

	ret = boot_stream_fill(&p->boot);
	while (!(next = boot_stream_next(&p->boot, &f, &payload)))
		agent_send(a, f.type < BOOT_AGENT ? f.type : 0, p->who.rank, f.arg, payload,
			   f.len);
	if (next == -EPROTO)		/* the front refuses frames without a type */
		agent_send(a, 0, p->who.rank, 0, NULL, 0);
	if ((ret && ret != -EAGAIN) || next == -EPROTO) {
		close(p->boot.in);
		p->boot.in = p->boot.out = -1;
	}
}

/* ---- the end of processes ---- */

static void proc_ended(struct agent *a, struct proc *p, int status)
{
	p->pid = 0;
	a->running--;
	/* first forward the frames that the rank sent before its end */
	while (p->boot.in >= 0 && poll(&(struct pollfd){ p->boot.in, POLLIN, 0 }, 1, 0) > 0)
		rank_input(a, p);
	input_close(p);
	agent_send(a, AGENT_EXIT, p->who.rank, status, NULL, 0);
}

static struct proc *proc_of_pid(struct agent *a, pid_t pid)
{
	for (unsigned int i = 0; i < a->nprocs; i++)
		if (a->procs[i].pid == pid)
			return &a->procs[i];
	return NULL;
}

/* Reap children. Kill the process group of a failed rank before its id can be reused. */
static void agent_reap(struct agent *a)
{
	siginfo_t info = { 0 };
	struct proc *p;
	int status;

	while (!waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) && info.si_pid) {
		p = proc_of_pid(a, info.si_pid);
		if (p && (info.si_code != CLD_EXITED || info.si_status))
			kill(-info.si_pid, SIGKILL);
		if (waitpid(info.si_pid, &status, 0) == info.si_pid && p)
			proc_ended(a, p, status);
		info.si_pid = 0;
	}
}

static void agent_signal(struct agent *a)
{
	struct signalfd_siginfo s;

	while (read(a->signals, &s, sizeof(s)) == sizeof(s))
		if (s.ssi_signo != SIGCHLD)
			agent_quit(TOOL_FAILED);
	agent_reap(a);
}

/* Return whether all output was read and no process can write more. */
static bool agent_is_drained(const struct agent *a)
{
	for (unsigned int i = 0; i < a->nprocs; i++)
		if (a->procs[i].output[0].fd >= 0 || a->procs[i].output[1].fd >= 0)
			return false;
	return true;
}

/* Return whether ranks of other hosts may still need the gateways of this agent. */
static bool agent_keeps_gateways(const struct agent *a)
{
	return a->job.gateways && *a->job.gateways && !a->kill_at;
}

static void agent_check_end(struct agent *a)
{
	if (a->done || (!a->procs && !a->kill_at))
		return;
	if (a->running && a->kill_at && tool_now_ns() >= a->kill_at)
		rank_signal(a, BOOT_ALL, SIGKILL);
	if (a->running || agent_keeps_gateways(a))
		return;
	/* processes that ranks left behind keep the output pipes open */
	descendants_kill();
	if (!agent_is_drained(a))
		return;
	pmix_stop();
	agent_send(a, AGENT_DONE, BOOT_ALL, 0, NULL, 0);
	a->done = true;
}

/* ---- the loop ---- */

static void poll_add(struct pollfd **p, int fd, short events)
{
	*(*p)++ = (struct pollfd){ .fd = events ? fd : -1, .events = events };
}

/* Return the timeout of poll(), in ms. */
static int agent_timeout(const struct agent *a)
{
	uint64_t now = tool_now_ns(), at = UINT64_MAX;

	if (a->kill_at && a->running)
		at = now >= a->kill_at ? now + 100000000u : a->kill_at;
	if (a->limit && a->tick_at < at)
		at = a->tick_at;
	if (at == UINT64_MAX)
		return -1;
	return at > now ? (int)((at - now) / 1000000 + 1) : 0;
}

static struct pollfd *agent_polls(struct agent *a, struct pollfd base[BASE_POLLS])
{
	struct pollfd *polls = a->polls ? a->polls : base, *p = polls;

	poll_add(&p, a->front.in, POLLIN);
	poll_add(&p, a->signals, POLLIN);
	poll_add(&p, a->front.out, boot_stream_queued(&a->front) ? POLLOUT : 0);
	for (unsigned int i = 0; i < a->nprocs; i++) {
		struct proc *r = &a->procs[i];
		short queued = boot_stream_queued(&r->boot) ? POLLOUT : 0;

		poll_add(&p, r->boot.in, POLLIN | queued);
		poll_add(&p, r->output[0].fd, a->window > 0 ? POLLIN : 0);
		poll_add(&p, r->output[1].fd, a->window > 0 ? POLLIN : 0);
		poll_add(&p, r->input, r->in.to > r->in.from ? POLLOUT : 0);
	}
	return polls;
}

static void procs_events(struct agent *a, const struct pollfd *p)
{
	for (unsigned int i = 0, n = a->nprocs; i < n; i++, p += 4) {
		struct proc *r = &a->procs[i];

		if (p[0].revents & POLLOUT)
			boot_stream_flush(&r->boot);
		if (p[0].revents & ~POLLOUT && r->boot.in >= 0)
			rank_input(a, r);
		for (unsigned int k = 0; k < 2; k++)
			if (p[1 + k].revents && r->output[k].fd >= 0 && a->window > 0)
				output_read(a, r, k);
		if (p[3].revents)
			input_write(a, r);
	}
}

static void agent_loop(struct agent *a)
{
	struct pollfd base[BASE_POLLS];

	for (;;) {
		struct pollfd *p = agent_polls(a, base);
		unsigned int procs = a->nprocs;

		if (poll(p, BASE_POLLS + 4 * procs, agent_timeout(a)) < 0 && errno != EINTR)
			agent_quit(TOOL_FAILED);
		if (procs)
			procs_events(a, p + BASE_POLLS);
		if (p[0].revents)
			front_input(a);
		agent_tick(a);
		agent_signal(a);
		agent_check_end(a);
		if (boot_stream_flush(&a->front))
			agent_quit(TOOL_FAILED);
		/* exit now: some remote shells do not forward the front's end of file */
		if (a->done && !boot_stream_queued(&a->front))
			agent_quit(TOOL_OK);
	}
}

static void agent_init(struct agent *a)
{
	sigset_t set;
	int null;

	sigprocmask(SIG_BLOCK, NULL, &set);	/* the guard has blocked these signals */
	a->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	/* move the connection from descriptors 0 and 1, which ranks would inherit */
	a->front.in = fcntl(0, F_DUPFD_CLOEXEC, 3);
	a->front.out = fcntl(1, F_DUPFD_CLOEXEC, 3);
	fcntl(a->front.in, F_SETFL, O_NONBLOCK);
	fcntl(a->front.out, F_SETFL, O_NONBLOCK);
	null = open("/dev/null", O_RDWR | O_CLOEXEC);
	if (a->signals < 0 || a->front.out < 0 || null < 0)
		_exit(TOOL_FAILED);
	dup2(null, 0);
	dup2(null, 1);
	a->window = AGENT_OUTPUT_WINDOW;
}

static noreturn void agent_main(pid_t guard, const struct proc_origin *origin, char *pmix_dir)
{
	uint32_t nodes[ADAPTERS_MAX];
	struct agent a = { .origin = *origin, .pmix_dir = pmix_dir };
	unsigned int n;

	prctl(PR_SET_PDEATHSIG, SIGTERM);
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	a.origin.parent = getpid();
	agent_init(&a);
	if (getppid() != guard)
		_exit(TOOL_FAILED);
	n = agent_adapters(nodes);
	agent_send(&a, AGENT_READY, BOOT_ALL, AGENT_VERSION, nodes, n * sizeof(nodes[0]));
	agent_loop(&a);
	_exit(TOOL_FAILED);
}

/*
 * Run the guard, which ends the remaining processes when the agent has died. Block signals before
 * the agent starts: the agent must read a signal, and not die from it.
 */
int launch_agent(void)
{
	char *pmix_dir = mmap(NULL, PATH_MAX, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
			      -1, 0);
	pid_t pid, self = getpid();
	struct proc_origin origin;
	int status = 0;
	sigset_t set;

	if (pmix_dir == MAP_FAILED)
		return tool_error("out of memory");
	setpgid(0, 0);			/* the front handles signals of the terminal */
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	proc_origin_save(&origin);
	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGHUP);
	sigaddset(&set, SIGQUIT);
	sigprocmask(SIG_SETMASK, &set, NULL);
	pid = fork();
	if (!pid)
		agent_main(self, &origin, pmix_dir);
	sigprocmask(SIG_SETMASK, &origin.mask, NULL);
	if (pid < 0)
		return tool_error("cannot start an agent: %s", strerror(errno));
	for (int fd = 0; fd < 2; fd++)
		close(fd);		/* only the agent uses descriptors 0 and 1 */
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	descendants_kill();
	pmix_directory_remove(pmix_dir);
	return WIFEXITED(status) ? WEXITSTATUS(status) : TOOL_FAILED;
}
