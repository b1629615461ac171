// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/* The front of a job: agents, signals, input, output, and the end of the job. */

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "launch.h"
#include "tool.h"

/* bytes of unwritten output above which agents get no credit */
#define OUTPUT_QUEUE_MAX	(1u << 20)
/* ms for an agent to end after the grace time */
#define HOST_WAIT_MS		10000
/* ms for a shell to end after its descriptors are closed, for a message with its status */
#define SHELL_WAIT_MS		1000
/* variables of threads_environment() */
#define THREADS_ENVIRONMENT	4u
#define SSH			"ssh -o BatchMode=yes -o ServerAliveInterval=1 -o ServerAliveCountMax=5"

struct front {
	struct launch *l;
	struct boot_server *server;
	struct outlets out;
	struct proc_origin origin;
	int signals;			/* signalfd */
	sigset_t forwarded;		/* signals that signalfd reports */
	bool started, ending;
	bool gateways_ended;		/* the agents were asked to end their gateways */
	bool quiet;			/* the user's signal ends the job: print no reason */
	int status;
	bool input_open;
	size_t input_window;
	/* time in ns at which agents that have not ended count as failed; 0: never */
	uint64_t give_up_at;
	uint64_t tick_at;		/* time of the next keep-alive tick in ns */
};

static const char *host_name(const struct launch_host *h)
{
	return h->name ? h->name : "this machine";
}

/* ---- the end ---- */

static void host_send(struct front *f, struct launch_host *h, enum agent_type type,
		      uint32_t rank, int arg, const void *payload, size_t len)
{
	const struct boot_frame frame = { type, rank, arg, (uint32_t)len };

	(void)f;
	if (h->stream.out >= 0)
		boot_stream_send(&h->stream, &frame, payload);
}

static void hosts_send(struct front *f, enum agent_type type, uint32_t rank, int arg)
{
	for (unsigned int i = 0; i < f->l->nhosts; i++)
		host_send(f, &f->l->hosts[i], type, rank, arg, NULL, 0);
}

/* Return the time at which agents that have been asked to end count as failed. */
static uint64_t give_up_time(void)
{
	return tool_now_ns() + (uint64_t)(AGENT_GRACE_MS + HOST_WAIT_MS) * 1000000u;
}

/*
 * End the process group of a shell, which a shell script leads. SIGTERM, and not SIGKILL: if the
 * shell has executed the agent, the agent ends its ranks. hosts_wait() kills a shell that ignores
 * SIGTERM.
 */
static void shell_end(const struct launch_host *h)
{
	if (h->pid) {
		kill(-h->pid, SIGTERM);
		kill(-h->pid, SIGCONT);
	}
}

/*
 * End the shells of machines whose agent has not answered. They may not read the request to end, as
 * ssh does not before it is connected. No rank runs there.
 */
static void shells_end_unready(struct front *f)
{
	for (unsigned int i = 0; i < f->l->nhosts; i++)
		if (f->l->hosts[i].name && !f->l->hosts[i].ready)
			shell_end(&f->l->hosts[i]);
}

/* End the job. The first call sets the exit status. */
static void front_end(struct front *f, int status, int grace_ms)
{
	if (!f->status)
		f->status = status;
	if (!f->ending)
		f->give_up_at = give_up_time();
	f->ending = true;
	hosts_send(f, AGENT_END, BOOT_ALL, grace_ms);
	shells_end_unready(f);
}

static void host_close(struct launch_host *h)
{
	if (h->stream.in >= 0)
		close(h->stream.in);
	h->stream.in = h->stream.out = -1;
	boot_stream_free(&h->stream);
}

/* Report the ranks of a host as dead. Without --keep, and before the start, end the job. */
static void host_fail(struct front *f, struct launch_host *h)
{
	struct launch *l = f->l;

	h->done = true;
	h->running = 0;
	for (unsigned int i = 0; f->started && i < l->size; i++)
		if (&l->hosts[l->places[i].host] == h)
			boot_server_ended(f->server, i, true);
	if (!f->started || !l->keep)
		front_end(f, TOOL_FAILED, AGENT_GRACE_MS);
	else if (!f->status)
		f->status = TOOL_FAILED;
}

/* Wait for a shell that has closed its connection. Return false if it does not end. */
static bool shell_wait(struct launch_host *h, int *status)
{
	for (unsigned int ms = 0; ms < SHELL_WAIT_MS && h->pid; ms += 10) {
		if (waitpid(h->pid, status, WNOHANG) == h->pid) {
			h->pid = 0;
			return true;
		}
		poll(NULL, 0, 10);
	}
	return false;
}

static void shell_print_end(struct launch_host *h)
{
	const char *shell = getenv("SCI_RSH") ? getenv("SCI_RSH") : "ssh";
	int status;

	if (shell_wait(h, &status))
		tool_error("cannot start on %s: %s ended with status %d", h->name, shell,
			   WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
	else
		tool_error("cannot start on %s: %s has closed its output", h->name, shell);
	shell_end(h);
}

/* Handle the end of the connection to an agent, whether expected or early. */
static void host_handle_end(struct front *f, struct launch_host *h)
{
	host_close(h);
	if (h->done)
		return;
	if (f->ending)
		;
	else if (!h->ready && h->name)
		shell_print_end(h);
	else
		tool_error("the agent on %s has died", host_name(h));
	host_fail(f, h);
}

/* Handle a host that is silent. Its shell runs on. */
static void host_lose(struct front *f, struct launch_host *h)
{
	tool_error("%s is lost: its agent has been silent for %u s", h->name, h->silent);
	host_close(h);
	shell_end(h);
	host_fail(f, h);
}

/* Return whether keep-alive frames watch some host. */
static bool hosts_have_limit(const struct launch *l)
{
	for (unsigned int i = 0; i < l->nhosts; i++)
		if (l->hosts[i].name && l->hosts[i].stream.in >= 0)
			return l->timeout;
	return false;
}

/* Send a sign of life. @limit: seconds without a byte after which the agents end; 0: no limit */
static void host_ping(struct front *f, struct launch_host *h, unsigned int limit)
{
	if (h->name && h->ready)
		host_send(f, h, AGENT_PING, BOOT_ALL, (int)limit, NULL, 0);
}

static void hosts_ping(struct front *f, unsigned int limit)
{
	for (unsigned int i = 0; i < f->l->nhosts; i++)
		host_ping(f, &f->l->hosts[i], limit);
}

/* Send a sign of life every second, and find lost hosts. */
static void hosts_tick(struct front *f)
{
	uint64_t now = tool_now_ns();
	struct launch *l = f->l;

	if (now < f->tick_at || !hosts_have_limit(l))
		return;
	f->tick_at = now + KEEPALIVE_NS;
	for (unsigned int i = 0; i < l->nhosts; i++) {
		struct launch_host *h = &l->hosts[i];
		unsigned int limit = h->starting ? AGENT_PATIENCE * l->timeout : l->timeout;

		if (!h->name || !h->ready || h->stream.in < 0)
			continue;
		if (h->silent >= limit)
			host_lose(f, h);
		h->silent++;
	}
	hosts_ping(f, AGENT_PATIENCE * l->timeout);
}

/* ---- start ---- */

/* Return @s for the command line of a remote shell: in quotes, if it has special characters. */
static char *shell_word(const char *s)
{
	static const char plain[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./+-~";
	char *word, *p;

	if (!s[strspn(s, plain)])
		return strdup(s);
	word = malloc(4 * strlen(s) + 3);
	if (!word)
		return NULL;
	p = word;
	*p++ = '\'';
	for (; *s; s++)
		if (*s == '\'')
			p = stpcpy(p, "'\\''");
		else
			*p++ = *s;
	strcpy(p, "'");
	return word;
}

/* Execute the guard, or the remote shell that starts it. Spaces separate the words of SCI_RSH. */
static void host_exec(const struct launch_host *h)
{
	const char *rsh = getenv("SCI_RSH"), *agent = getenv("SCI_AGENT");
	char self[PATH_MAX], *words, *path, *argv[32], *rest;
	unsigned int n = 0;
	ssize_t len;

	len = readlink("/proc/self/exe", self, sizeof(self) - 1);
	self[len < 0 ? 0 : len] = '\0';
	if (!h->name) {
		execl("/proc/self/exe", "sci", "run", "--agent", NULL);
		return;
	}
	words = strdup(rsh && *rsh ? rsh : SSH);
	path = shell_word(agent && *agent ? agent : self);
	if (!words || !path) {
		tool_error("out of memory");
		return;
	}
	for (rest = words; n < 24 && (argv[n] = strsep(&rest, " "));)
		n += *argv[n] != '\0';
	argv[n++] = (char *)(uintptr_t)h->name;
	argv[n++] = path;
	argv[n++] = (char *)(uintptr_t)"run";
	argv[n++] = (char *)(uintptr_t)"--agent";
	argv[n] = NULL;
	execvp(argv[0], argv);
	tool_error("cannot run %s: %s", argv[0], strerror(errno));
}

static int host_start(struct front *f, struct launch_host *h)
{
	int fds[2];

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds))
		return -errno;
	h->pid = fork();
	if (!h->pid) {
		setpgid(0, 0);		/* the front handles signals of the terminal */
		proc_origin_restore(&f->origin);
		dup2(fds[1], 0);
		dup2(fds[1], 1);
		host_exec(h);
		_exit(EXIT_CANNOT_RUN);
	}
	close(fds[1]);
	if (h->pid < 0) {
		h->pid = 0;
		close(fds[0]);
		return -errno;
	}
	setpgid(h->pid, h->pid);	/* the child also calls setpgid() */
	h->stream.in = h->stream.out = fds[0];
	return 0;
}

/* Return whether a variable belongs to this machine or to this login. */
static bool env_is_local(const char *e)
{
	static const char *const local[] = {
		"HOME=", "USER=", "LOGNAME=", "SHELL=", "PWD=", "OLDPWD=", "SHLVL=", "_=",
		"HOSTNAME=", "TMPDIR=", "DISPLAY=", "XAUTHORITY=", "SSH_", "XDG_", "DBUS_",
		"SCI_BOOT=", "SCI_RSH=", "SCI_AGENT=",
	};

	for (size_t i = 0; i < sizeof(local) / sizeof(local[0]); i++)
		if (!strncmp(e, local[i], strlen(local[i])))
			return true;
	return false;
}

/* Append the variables of nodes of libsci_threads(7). Return true if there is no memory. */
static bool threads_environment(const struct launch *l, char **env, unsigned int *n)
{
	bool failed = asprintf(&env[(*n)++], "LD_PRELOAD=%s", l->preload) < 0;

	failed |= asprintf(&env[(*n)++], "SCI_THREADS_NODES=%u", l->size) < 0;
	failed |= !(env[(*n)++] = strdup("SCI_THREADS_HOSTS=1"));
	/* functions are bound when the program is loaded: at the same time on all nodes */
	failed |= !(env[(*n)++] = strdup("LD_BIND_NOW=1"));
	return failed;
}

static int job_environment(const struct launch *l, const struct launch_host *h, char **env)
{
	unsigned int n = 0;
	int ret = 0;

	for (char **e = environ; h->name && *e; e++)
		if (!env_is_local(*e))
			ret |= !(env[n++] = strdup(*e));
	if (*l->own_cluster && (l->net || l->gateways))
		ret |= asprintf(&env[n++], "SCI_FABRIC=shm:%s-%u", l->own_cluster,
				(unsigned int)(h - l->hosts)) < 0;
	else if (*l->own_cluster)
		ret |= asprintf(&env[n++], "SCI_FABRIC=shm:%s", l->own_cluster) < 0;
	if (l->net || l->gateways)
		ret |= net_environment(l, h, env, &n);
	/* the memory of other nodes is behind a stream, even in a virtual cluster */
	if (l->failover && !getenv("SCI_TEAM_MEMORY"))
		ret |= !(env[n++] = strdup("SCI_TEAM_MEMORY=node"));
	if (l->preload)
		ret |= threads_environment(l, env, &n);
	if (l->cluster_nodes)
		ret |= asprintf(&env[n++], "SCI_NODES=%u", l->cluster_nodes) < 0;
	return ret ? -ENOMEM : 0;
}

static char **argv_copy(char *const *words)
{
	unsigned int n = 0;
	char **copy;

	while (words[n])
		n++;
	copy = calloc(n + 1, sizeof(*copy));
	for (unsigned int i = 0; copy && i < n; i++)
		copy[i] = strdup(words[i]);
	return copy;
}

static int host_job(struct front *f, struct launch_host *h, struct agent_job *job)
{
	struct launch *l = f->l;
	unsigned int n = 0;
	int ret;

	while (environ[n])
		n++;
	*job = (struct agent_job){
		.size = l->size,
		.nranks = h->nranks,
		.bind = l->bind,
		.keep = l->keep,
		.pmix = l->pmix,
		.interactive = (uint32_t)isatty(0),
		.ranks = calloc(h->nranks + 1, sizeof(*job->ranks)),
		.env = calloc(n + 4 + NET_ENVIRONMENT + THREADS_ENVIRONMENT, sizeof(*job->env)),
		.gateways = net_gateways(l, h),
		.argv = argv_copy(l->argv),
	};
	job->cwd = h->name ? getcwd(NULL, 0) : strdup("");
	if (!job->cwd) {
		ret = -errno;
		tool_error("cannot get the working directory: %s", strerror(-ret));
		return ret;
	}
	if (!job->ranks || !job->env || !job->gateways || !job->argv)
		return -ENOMEM;
	n = 0;
	for (unsigned int i = 0; i < l->size; i++)
		if (&l->hosts[l->places[i].host] == h)
			job->ranks[n++] = (struct agent_rank){ i, l->places[i].node };
	return job_environment(l, h, job->env);
}

static int host_send_job(struct front *f, struct launch_host *h)
{
	struct agent_job job;
	char *data = NULL;
	size_t len;
	int ret;

	ret = host_job(f, h, &job);
	ret = ret ? ret : job_pack(&job, &data, &len);
	if (!ret)
		host_send(f, h, AGENT_START, BOOT_ALL, 0, data, len);
	h->starting = true;
	h->running = h->nranks;
	free(data);
	job_free(&job);
	return ret;
}

static void server_send(void *arg, const struct boot_frame *frame, const void *payload)
{
	struct front *f = arg;
	struct launch *l = f->l;

	for (unsigned int i = 0; i < l->nhosts; i++) {
		struct launch_host *h = &l->hosts[i];

		if (frame->rank != BOOT_ALL && l->places[frame->rank].host != i)
			continue;
		if (h->stream.out >= 0)
			boot_stream_send(&h->stream, frame, payload);
	}
}

/*
 * Start the ranks when all agents are ready: then the machines of all ranks are known. Start none if
 * the job ends already: nothing would end these ranks before the grace time is over.
 */
static void front_start(struct front *f)
{
	struct launch *l = f->l;
	int ret = 0;

	if (f->ending)
		return;
	for (unsigned int i = 0; i < l->nhosts; i++)
		if (!l->hosts[i].ready)
			return;
	if (launch_place(l)) {
		front_end(f, TOOL_FAILED, 0);
		return;
	}
	ret = boot_server_create(&f->server, l->places, l->size, server_send, f);
	for (unsigned int i = 0; !ret && i < l->nhosts; i++)
		ret = host_send_job(f, &l->hosts[i]);
	if (ret) {
		tool_error("cannot start the job: %s", strerror(-ret));
		front_end(f, TOOL_FAILED, 0);
		return;
	}
	f->started = true;
	f->input_open = true;
	f->input_window = AGENT_INPUT_WINDOW;
}

/* ---- frames of agents ---- */

static void host_ready(struct front *f, struct launch_host *h, const struct boot_frame *frame,
		       const void *payload)
{
	if (frame->arg != AGENT_VERSION) {
		tool_error("%s has another version of sci", host_name(h));
		front_end(f, TOOL_FAILED, 0);
		return;
	}
	h->nnodes = frame->len / sizeof(h->nodes[0]);
	h->nodes = malloc(frame->len + 1);
	if (h->nodes)
		memcpy(h->nodes, payload, frame->len);
	h->ready = h->nodes != NULL;
	if (!f->ending)
		host_ping(f, h, AGENT_PATIENCE * f->l->timeout);
	front_start(f);
}

/* Print the reason why the job ends, if it is the first. */
__attribute__((format(printf, 3, 4)))
static void rank_print(const struct front *f, uint32_t rank, const char *fmt, ...)
{
	const struct launch_host *h = &f->l->hosts[f->l->places[rank].host];
	char text[128];
	va_list ap;

	if (f->ending || f->quiet)
		return;
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	/* the user of --threads knows nodes, not ranks */
	tool_error("%s %u%s%s %s", f->l->preload ? "node" : "rank",
		   f->l->preload ? f->l->places[rank].node : rank, h->name ? " on " : "",
		   h->name ? h->name : "", text);
}

static void rank_ended(struct front *f, uint32_t rank, int status)
{
	f->l->hosts[f->l->places[rank].host].running--;
	boot_server_ended(f->server, rank, status != 0);
	if (WIFSIGNALED(status))
		rank_print(f, rank, "was ended by signal %d (%s)", WTERMSIG(status),
			   strsignal(WTERMSIG(status)));
	else if (status && !f->l->preload)
		rank_print(f, rank, "ended with status %d", WEXITSTATUS(status));
	if (!status)
		return;
	status = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
	if (!f->l->keep)
		front_end(f, status, AGENT_GRACE_MS);
	else if (!f->status)
		f->status = status;
}

/* Handle a frame of boot_wire.h that a rank sent. */
static void rank_frame(struct front *f, const struct boot_frame *frame, const void *payload)
{
	int ret;

	ret = boot_server_frame(f->server, frame, payload);
	if (ret > 0) {
		rank_print(f, frame->rank, "aborts the job with status %d", ret & 0xff);
		front_end(f, ret, AGENT_GRACE_MS);
	} else if (ret) {
		rank_print(f, frame->rank, "breaks the start-up protocol");
		for (unsigned int i = 0; i < f->l->nhosts; i++)
			host_send(f, &f->l->hosts[i], AGENT_SIGNAL, frame->rank, SIGKILL,
				  NULL, 0);
	}
}

/* Report an error of output that is lost. The job goes on without it. */
static void output_check(struct front *f, int error)
{
	if (!error)
		return;
	tool_error("cannot write the output: %s", strerror(-error));
	if (!f->status)
		f->status = TOOL_FAILED;
}

static void host_frame(struct front *f, struct launch_host *h, const struct boot_frame *frame,
		       const void *payload)
{
	bool of_rank = f->started && frame->rank < f->l->size &&
		       &f->l->hosts[f->l->places[frame->rank].host] == h;

	switch (frame->type) {
	case AGENT_READY:
		if (!h->ready)
			host_ready(f, h, frame, payload);
		return;
	case AGENT_ERROR:
		if (!f->ending)
			tool_error("%s%s%.*s", h->name ? h->name : "", h->name ? ": " : "",
				   (int)frame->len, (const char *)payload);
		front_end(f, frame->arg, AGENT_GRACE_MS);
		return;
	case AGENT_ALIVE:
		h->starting = h->starting && !frame->arg;
		return;
	case AGENT_DONE:
		h->done = true;
		return;
	}
	if (!of_rank)
		return;
	switch (frame->type) {
	case AGENT_OUTPUT:
		output_check(f, outlet_add(f->out.of[frame->arg == 2 ? 2 : 1], frame->rank,
					   payload, frame->len));
		h->owed += frame->len;
		return;
	case AGENT_TOOK:
		f->input_window += (size_t)frame->arg;
		return;
	case AGENT_EXIT:
		rank_ended(f, frame->rank, frame->arg);
		return;
	default:
		rank_frame(f, frame, payload);
	}
}

static void host_input(struct front *f, struct launch_host *h)
{
	const void *payload;
	struct boot_frame frame;
	int ret;

	ret = boot_stream_fill(&h->stream);
	if (ret && ret != -EAGAIN) {
		host_handle_end(f, h);
		return;
	}
	h->silent = ret ? h->silent : 0;
	while (!(ret = boot_stream_next(&h->stream, &frame, &payload)))
		host_frame(f, h, &frame, payload);
	if (ret == -EPROTO && !h->done) {
		tool_error("%s does not speak sci's protocol (does its shell print something at the start?)",
			   host_name(h));
		front_end(f, TOOL_FAILED, 0);
		host_handle_end(f, h);
	} else if (h->done) {
		host_close(h);		/* the agent ends when its connection does */
	}
}

/* ---- standard input ---- */

/* Return whether to read standard input: in the background, reads of a terminal stop the job. */
static bool input_is_wanted(const struct front *f)
{
	return f->input_open && f->input_window &&
	       (!isatty(0) || tcgetpgrp(0) == getpgrp());
}

static void input_read(struct front *f)
{
	struct launch_host *h = &f->l->hosts[f->l->places[0].host];
	char data[16384];
	size_t room = f->input_window < sizeof(data) ? f->input_window : sizeof(data);
	ssize_t n;

	n = read(0, data, room);
	if (n < 0 && (errno == EINTR || errno == EAGAIN || (errno == EIO && isatty(0))))
		return;
	if (n <= 0)
		f->input_open = false;
	else
		f->input_window -= (size_t)n;
	host_send(f, h, AGENT_INPUT, 0, 0, data, n > 0 ? (size_t)n : 0);
}

/* ---- signals ---- */

static void signals_open(struct front *f)
{
	static const int list[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2,
				    SIGTSTP, SIGCONT };
	struct sigaction sa;

	sigemptyset(&f->forwarded);
	/* keep ignoring the signals that nohup(1) or a shell has set to SIG_IGN */
	for (size_t i = 0; i < sizeof(list) / sizeof(list[0]); i++)
		if (!sigaction(list[i], NULL, &sa) && sa.sa_handler != SIG_IGN)
			sigaddset(&f->forwarded, list[i]);
	sigaddset(&f->forwarded, SIGTTIN);
	sigaddset(&f->forwarded, SIGCHLD);
	sigprocmask(SIG_BLOCK, &f->forwarded, NULL);
	sigdelset(&f->forwarded, SIGTTIN);	/* blocked only, so that terminal reads fail */
	f->signals = signalfd(-1, &f->forwarded, SFD_CLOEXEC | SFD_NONBLOCK);
}

static void signal_take(struct front *f, int sig)
{
	switch (sig) {
	case SIGCHLD:
		return;
	case SIGTERM:
	case SIGHUP:
		hosts_send(f, AGENT_SIGNAL, BOOT_ALL, sig);
		f->quiet = true;
		front_end(f, 128 + sig, AGENT_GRACE_MS);
		return;
	case SIGINT:
	case SIGQUIT:
		if (f->quiet)		/* the second signal */
			front_end(f, 128 + sig, AGENT_GRACE_MS);
		f->quiet = true;
		if (!f->started)
			front_end(f, 128 + sig, 0);
		break;
	case SIGTSTP:
		hosts_send(f, AGENT_SIGNAL, BOOT_ALL, sig);
		hosts_ping(f, 0);	/* the next tick sets the limit again */
		raise(SIGSTOP);
		return;
	}
	hosts_send(f, AGENT_SIGNAL, BOOT_ALL, sig);
}

static void signals_read(struct front *f)
{
	struct signalfd_siginfo s;

	while (read(f->signals, &s, sizeof(s)) == sizeof(s))
		signal_take(f, (int)s.ssi_signo);
}

/* ---- the loop ---- */

static void credits_send(struct front *f)
{
	for (unsigned int i = 0; i < f->l->nhosts; i++) {
		struct launch_host *h = &f->l->hosts[i];

		if (h->owed && outlets_queued(&f->out) < OUTPUT_QUEUE_MAX) {
			host_send(f, h, AGENT_CREDIT, BOOT_ALL, (int)h->owed, NULL, 0);
			h->owed = 0;
		}
	}
}

/* Ask the agents to end their gateways when all ranks have ended. */
static void gateways_end(struct front *f)
{
	if (!f->l->gateways || !f->started || f->gateways_ended)
		return;
	for (unsigned int i = 0; i < f->l->nhosts; i++)
		if (f->l->hosts[i].running)
			return;
	f->gateways_ended = true;
	hosts_send(f, AGENT_END, BOOT_ALL, AGENT_GRACE_MS);
}

static bool front_is_finished(const struct front *f)
{
	for (unsigned int i = 0; i < f->l->nhosts; i++)
		if (f->l->hosts[i].stream.in >= 0)
			return false;
	return !outlets_queued(&f->out);
}

static void front_polls(struct front *f, struct pollfd *p)
{
	p[0] = (struct pollfd){ .fd = f->signals, .events = POLLIN };
	p[1] = (struct pollfd){ .fd = input_is_wanted(f) ? 0 : -1, .events = POLLIN };
	for (unsigned int i = 0; i < 2; i++) {
		struct outlet *o = &f->out.outlet[i];
		bool queued = o->bytes.to > o->bytes.from;

		p[2 + i] = (struct pollfd){ .fd = queued ? o->fd : -1, .events = POLLOUT };
	}
	for (unsigned int i = 0; i < f->l->nhosts; i++) {
		struct boot_stream *s = &f->l->hosts[i].stream;

		p[4 + i] = (struct pollfd){ .fd = s->in, .events = POLLIN };
		if (boot_stream_queued(s))
			p[4 + i].events |= POLLOUT;
	}
}

/* Return whether an agent may have to wait for credit until the output has been written. */
static bool credit_is_withheld(const struct front *f)
{
	for (unsigned int i = 0; i < f->l->nhosts; i++)
		if (f->l->hosts[i].stream.in >= 0 && f->l->hosts[i].owed)
			return true;
	return false;
}

/* Disconnect agents that have not ended in time. An agent that waits for credit cannot end. */
static void hosts_give_up(struct front *f)
{
	if (f->give_up_at && credit_is_withheld(f))
		f->give_up_at = give_up_time();
	if (!f->give_up_at || tool_now_ns() < f->give_up_at)
		return;
	for (unsigned int i = 0; i < f->l->nhosts; i++) {
		struct launch_host *h = &f->l->hosts[i];

		if (h->stream.in < 0)
			continue;
		tool_error("the agent on %s does not answer", host_name(h));
		host_close(h);
		shell_end(h);
	}
	f->give_up_at = 0;
}

/* Return the timeout of poll(), in ms. */
static int front_timeout(const struct front *f)
{
	uint64_t now = tool_now_ns(), at = f->give_up_at ? f->give_up_at : UINT64_MAX;

	if (f->tick_at < at && hosts_have_limit(f->l))
		at = f->tick_at;
	if (at == UINT64_MAX)
		return -1;
	return at > now ? (int)((at - now) / 1000000 + 1) : 0;
}

static void front_loop(struct front *f, struct pollfd *p)
{
	while (!front_is_finished(f)) {
		front_polls(f, p);
		if (poll(p, 4 + f->l->nhosts, front_timeout(f)) < 0 && errno != EINTR) {
			f->status = tool_error("poll: %s", strerror(errno));
			return;
		}
		if (p[0].revents)
			signals_read(f);
		if (p[1].revents)
			input_read(f);
		for (unsigned int i = 0; i < 2; i++)
			if (p[2 + i].revents)
				output_check(f, outlet_write(&f->out.outlet[i]));
		for (unsigned int i = 0; i < f->l->nhosts; i++) {
			struct launch_host *h = &f->l->hosts[i];

			if (p[4 + i].revents & POLLOUT)
				boot_stream_flush(&h->stream);
			if (p[4 + i].revents & ~POLLOUT && h->stream.in >= 0)
				host_input(f, h);
		}
		credits_send(f);
		gateways_end(f);
		hosts_tick(f);
		hosts_give_up(f);
	}
}

/*
 * Wait for guards and remote shells, which end with their agents. Kill them after HOST_WAIT_MS. If
 * the agent has not answered, kill also the processes that the shell has started. A guard that has
 * answered dies alone: its agent then ends the ranks.
 */
static void hosts_wait(struct front *f)
{
	uint64_t until = tool_now_ns() + (uint64_t)HOST_WAIT_MS * 1000000u;

	for (unsigned int i = 0; i < f->l->nhosts; i++) {
		struct launch_host *h = &f->l->hosts[i];

		while (h->pid && !waitpid(h->pid, NULL, WNOHANG)) {
			struct pollfd p = { .fd = f->signals, .events = POLLIN };

			if (tool_now_ns() > until)
				kill(h->ready ? h->pid : -h->pid, SIGKILL);
			/* wait for SIGCHLD, or for 100 ms */
			poll(&p, 1, 100);
			while (read(f->signals, &(struct signalfd_siginfo){ 0 },
				    sizeof(struct signalfd_siginfo)) > 0)
				;
		}
		free(h->nodes);
	}
}

int launch_front(struct launch *l)
{
	struct front f = { .l = l };
	struct pollfd *p = calloc(4 + l->nhosts, sizeof(*p));
	int ret;

	if (!p)
		return tool_error("out of memory");
	/* open descriptors 0 to 2: sockets and pipes of the job must have higher numbers */
	for (int fd = 0; fd < 3; fd++)
		if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", O_RDWR) != fd)
			return tool_error("cannot open /dev/null: %s", strerror(errno));
	proc_origin_save(&f.origin);
	signals_open(&f);
	outlets_init(&f.out, l->tag);
	for (unsigned int i = 0; i < l->nhosts; i++)
		l->hosts[i].stream = (struct boot_stream){ .in = -1, .out = -1 };
	for (unsigned int i = 0; i < l->nhosts; i++) {
		ret = host_start(&f, &l->hosts[i]);
		if (ret) {
			tool_error("cannot start an agent: %s", strerror(-ret));
			front_end(&f, TOOL_FAILED, 0);
			break;
		}
	}
	front_loop(&f, p);
	hosts_wait(&f);
	outlets_free(&f.out);
	boot_server_destroy(f.server);
	free(l->places);
	free(p);
	return f.status;
}
