// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/* The start of a rank, and the end of all processes that it has started. */

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "launch.h"
#include "tool.h"

#define KILL_LIMIT_NS	5000000000u

void proc_origin_save(struct proc_origin *o)
{
	struct sigaction ignore = { .sa_handler = SIG_IGN }, normal = { .sa_handler = SIG_DFL };
	struct rlimit rl;

	sigprocmask(SIG_SETMASK, NULL, &o->mask);
	sigaction(SIGPIPE, &ignore, &o->pipe);
	sigaction(SIGCHLD, &normal, &o->child);
	getrlimit(RLIMIT_NOFILE, &rl);
	o->nofile = rl.rlim_cur;
	o->parent = getpid();
	rl.rlim_cur = rl.rlim_max;
	setrlimit(RLIMIT_NOFILE, &rl);
}

void proc_origin_restore(const struct proc_origin *o)
{
	struct rlimit rl;

	getrlimit(RLIMIT_NOFILE, &rl);
	rl.rlim_cur = o->nofile;
	setrlimit(RLIMIT_NOFILE, &rl);
	sigaction(SIGPIPE, &o->pipe, NULL);
	sigaction(SIGCHLD, &o->child, NULL);
	sigprocmask(SIG_SETMASK, &o->mask, NULL);
}

/* ---- start ---- */

/* Pairs of descriptors: [0] in this process, [1] in the child. */
struct proc_fds {
	int in[2], out[2], err[2], boot[2], failed[2];
};

static void pair_close(int fds[2])
{
	for (unsigned int i = 0; i < 2; i++)
		if (fds[i] >= 0)
			close(fds[i]);
	fds[0] = fds[1] = -1;
}

static void proc_fds_close(struct proc_fds *f)
{
	pair_close(f->in);
	pair_close(f->out);
	pair_close(f->err);
	pair_close(f->boot);
	pair_close(f->failed);
}

/* Make a pipe from the child. */
static int pair_from(int fds[2])
{
	return pipe2(fds, O_CLOEXEC) ? -errno : 0;
}

static int pair_to(int fds[2])
{
	int p[2];

	if (pipe2(p, O_CLOEXEC))
		return -errno;
	fds[0] = p[1];
	fds[1] = p[0];
	return 0;
}

static int proc_fds_open(struct proc_fds *f, bool input)
{
	int ret;

	*f = (struct proc_fds){ { -1, -1 }, { -1, -1 }, { -1, -1 }, { -1, -1 }, { -1, -1 } };
	ret = pair_from(f->out);
	ret = ret ? ret : pair_from(f->err);
	ret = ret ? ret : pair_from(f->failed);
	if (!ret && input)
		ret = pair_to(f->in);
	else if (!ret && (f->in[1] = open("/dev/null", O_RDONLY | O_CLOEXEC)) < 0)
		ret = -errno;
	if (!ret && socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, f->boot))
		ret = -errno;
	if (ret)
		proc_fds_close(f);
	return ret;
}

static void env_set_number(const char *name, unsigned long n)
{
	char value[24];

	snprintf(value, sizeof(value), "%lu", n);
	setenv(name, value, 1);
}

static void proc_environment(const struct proc *p, const struct agent_job *job,
			     unsigned int local, char *const *env, int boot)
{
	char value[48];
	struct stat st;

	for (char **e = job->env; *e; e++)
		putenv(*e);
	for (; env && *env; env++)
		putenv(*env);
	if (!fstat(boot, &st)) {
		snprintf(value, sizeof(value), "%d:%llu", boot,
			 (unsigned long long)st.st_ino);
		setenv("SCI_BOOT", value, 1);
	}
	if (p->who.node)
		env_set_number("SCI_NODE", p->who.node);
	env_set_number("SCI_RANK", p->who.rank);
	env_set_number("SCI_SIZE", job->size);
	env_set_number("SCI_LOCAL_RANK", local);
	env_set_number("SCI_LOCAL_SIZE", job->nranks);
}

static noreturn void proc_child(const struct proc *p, const struct agent_job *job,
				unsigned int local, char *const *env,
				const struct proc_origin *origin, const struct proc_fds *f)
{
	int err;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != origin->parent)
		_exit(EXIT_CANNOT_RUN);
	setpgid(0, 0);
	dup2(f->in[1], 0);
	dup2(f->out[1], 1);
	dup2(f->err[1], 2);
	fcntl(f->boot[1], F_SETFD, 0);
	proc_environment(p, job, local, env, f->boot[1]);
	if (job->bind)
		cpu_bind(local);
	if (getenv("SCI_THREADS_HOSTS"))
		personality(ADDR_NO_RANDOMIZE);	/* the nodes need the same addresses */
	proc_origin_restore(origin);
	execvp(job->argv[0], job->argv);
	err = errno;
	if (write(f->failed[1], &err, sizeof(err)) != sizeof(err))
		_exit(EXIT_CANNOT_RUN);
	_exit(err == ENOENT ? EXIT_NOT_FOUND : EXIT_CANNOT_RUN);
}

/* Return the errno of execve(), or 0 if execve() has closed the descriptor. */
static int proc_exec_result(int fd)
{
	int err = 0;
	ssize_t n;

	do {
		n = read(fd, &err, sizeof(err));
	} while (n < 0 && errno == EINTR);
	return n == sizeof(err) ? -err : 0;
}

static void proc_adopt(struct proc *p, struct proc_fds *f)
{
	p->boot.in = p->boot.out = f->boot[0];
	p->input = f->in[0];
	p->output[0].fd = f->out[0];
	p->output[1].fd = f->err[0];
	f->boot[0] = f->in[0] = f->out[0] = f->err[0] = -1;
	fcntl(p->output[0].fd, F_SETFL, O_NONBLOCK);
	fcntl(p->output[1].fd, F_SETFL, O_NONBLOCK);
	if (p->input >= 0)
		fcntl(p->input, F_SETFL, O_NONBLOCK);
}

int proc_start(struct proc *p, const struct agent_job *job, unsigned int local,
	       char *const *env, const struct proc_origin *origin)
{
	struct proc_fds f;
	int ret;

	p->output[0].line = malloc(AGENT_LINE_MAX);
	p->output[1].line = malloc(AGENT_LINE_MAX);
	if (!p->output[0].line || !p->output[1].line)
		return -ENOMEM;
	ret = proc_fds_open(&f, p->who.rank == 0);
	if (ret)
		return ret;
	p->pid = fork();
	if (!p->pid)
		proc_child(p, job, local, env, origin, &f);
	ret = p->pid < 0 ? -errno : 0;
	if (ret) {
		p->pid = 0;
		proc_fds_close(&f);
		return ret;
	}
	setpgid(p->pid, p->pid);	/* the child also calls setpgid() */
	close(f.failed[1]);
	f.failed[1] = -1;
	ret = proc_exec_result(f.failed[0]);
	if (!ret)
		proc_adopt(p, &f);
	proc_fds_close(&f);
	return ret;
}

/* ---- end ---- */

/* Send SIGKILL to each remaining child of this process. */
static void children_kill(void)
{
	char path[64];
	pid_t pid;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/self/task/%d/children", getpid());
	f = fopen(path, "re");
	while (f && fscanf(f, "%d", &pid) == 1)
		kill(pid, SIGKILL);
	if (f)
		fclose(f);
}

void descendants_kill(void)
{
	uint64_t until = tool_now_ns() + KILL_LIMIT_NS;
	pid_t pid;

	/*
	 * children of killed processes become children of this process: kill them in the next round
	 */
	for (;;) {
		children_kill();
		do {
			pid = waitpid(-1, NULL, WNOHANG);
		} while (pid > 0);
		if (pid < 0 || tool_now_ns() > until)
			return;
		poll(NULL, 0, 1);
	}
}
