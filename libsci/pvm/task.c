// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/* Join and leave the virtual machine. */

#include "libsci/pvm/lib.h"
#include "libsci/pvm/trace.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

PVM_API int pvmmytid = -1;
PVM_API int pvmmyptid;
PVM_API int pvmmyctx;
PVM_API int pvmtoplvl = 1;

struct task pv_me = {
	.sock = -1,
	.watch = -1,
	.inbox = { &pv_me.inbox, &pv_me.inbox },
	.late = { &pv_me.late, &pv_me.late },
};

/* ---- the daemon ---- */

static int daemon_connect(void)
{
	struct sockaddr_un un;
	socklen_t len = pvm_sock_addr(&un);
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return -1;
	if (connect(fd, (struct sockaddr *)&un, len) || !pvm_same_user(fd, NULL)) {
		close(fd);
		return -1;
	}
	return fd;
}

static bool program_is_executable(const char *path)
{
	return !access(path, X_OK);
}

/*
 * Find the daemon's program: SCI_PVMD, or a file beside this library, or in the bin directory of
 * the same prefix. The library is in lib/sci-pvm or lib/ARCHITECTURE/sci-pvm. Return: a static
 * buffer, or "pvmd3" for a search in PATH.
 */
static const char *daemon_path(void)
{
	static const char *const places[] = { "", "../../bin/", "../../../bin/" };
	static char path[PATH_MAX + 32];
	char file[PATH_MAX];
	const char *env = getenv("SCI_PVMD");
	Dl_info info;
	char *slash;

	if (env && *env)
		return env;
	if (dladdr(&pvmmytid, &info) && realpath(info.dli_fname, file)) {
		slash = strrchr(file, '/');
		*slash = 0;
		for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
			snprintf(path, sizeof(path), "%s/%spvmd3", file, places[i]);
			if (program_is_executable(path))
				return path;
		}
	}
	return "pvmd3";
}

PVM_API char *pvmgetpvmd(void);

PVM_API char *pvmgetpvmd(void)
{
	return (char *)daemon_path();
}

/* Start the daemon as a grandchild, so that the program does not have to reap it. */
static void daemon_exec(char **argv, int report_fd)
{
	int null;

	if (fork())
		_exit(0);
	setsid();
	dup2(report_fd, 3);
	fcntl(3, F_SETFD, 0);
	null = open("/dev/null", O_RDWR);
	dup2(null, 0);
	dup2(null, 1);
	/* close the program's stderr: the daemon would keep a pipe open */
	dup2(null, 2);
	/* the daemon and its tasks would keep the program's pipes, locks and ports */
	close_range(4, ~0U, 0);
	setenv("SCI_PVMD_REPORT", "3", 1);
	execvp(argv[0], argv);
	_exit(127);
}

/*
 * Start a daemon and wait until it listens. Return: 0; PvmDupHost: a daemon is already running;
 * PvmCantStart.
 */
static int daemon_start(int argc, char **argv)
{
	char **args = calloc((size_t)argc + 2, sizeof(*args));
	int p[2], ret = 0;
	pid_t pid;
	ssize_t n;

	if (!args || pipe2(p, O_CLOEXEC)) {
		free(args);
		return PvmOutOfRes;
	}
	args[0] = (char *)daemon_path();
	for (int i = 0; i < argc; i++)
		args[i + 1] = argv[i];
	pid = fork();
	if (!pid)
		daemon_exec(args, p[1]);
	close(p[1]);
	if (pid > 0)
		while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
			;
	do {
		n = read(p[0], &ret, sizeof(ret));
	} while (n < 0 && errno == EINTR);
	if (n != sizeof(ret))
		ret = PvmCantStart;
	close(p[0]);
	free(args);
	return ret;
}

PVM_API int pvm_start_pvmd(int argc, char **argv, int block)
{
	int fd = daemon_connect(), ret;

	(void)block;	/* both values wait until the daemon listens */
	if (argc < 0 || (argc && !argv))
		return lpvmerr("pvm_start_pvmd", PvmBadParam);
	if (fd >= 0) {
		close(fd);
		return PvmDupHost;
	}
	ret = daemon_start(argc, argv);
	return ret == PvmDupHost ? ret : pv_report("pvm_start_pvmd", ret);
}

/* ---- enrolling ---- */

static int endpoint_open(void)
{
	struct sci_ep *ep;
	int ret = sci_ep_open(&ep, 0, SCI_EP_SINGLE_THREAD);

	if (!ret)
		ret = sci_ep_addr(ep, &pv_me.addr);
	if (ret) {
		fprintf(stderr, "libpvm: cannot open an endpoint: %s\n", strerror(-ret));
		return PvmSysErr;
	}
	/* as in PVM, unexpected messages have no limit */
	sci_ep_set(ep, SCI_PARAM_UNEXPECTED_MAX, UINT64_MAX);
	pv_me.ep = ep;
	return 0;
}

static int enrol_request(struct answer *a)
{
	const char *pid = getenv("PVMEPID");
	struct frame f = { 0 };

	frame_begin(&f, OP_ENROL, TO_OWN);
	frame_i32(&f, FRAME_VERSION);
	frame_i32(&f, pid ? atoi(pid) : 0);
	frame_i32(&f, (int32_t)pv_me.addr.node);
	frame_i32(&f, (int32_t)pv_me.addr.id);
	return pv_request(&f, a);
}

static void enrol_read(struct body *b)
{
	pvmmytid = body_i32(b);
	pvmmyptid = body_i32(b);
	pv_me.host = body_i32(b);
	pvmmyctx = body_i32(b);
	for (int i = 0; i < OPTS; i++) {
		int value = body_i32(b);

		/* 0: the parent has not set this option: keep this task's value */
		if (value)
			pv_opts.self[i] = value;
	}
	pv_me.manager = body_i32(b);
	pv_opts.out_tid = pv_opts.self[OPT_OUT_TID];
	pv_opts.out_ctx = pv_opts.self[OPT_OUT_CTX];
	pv_opts.out_tag = pv_opts.self[OPT_OUT_TAG];
	pv_opts.trace_tid = pv_opts.self[OPT_TRACE_TID];
	pv_opts.trace_ctx = pv_opts.self[OPT_TRACE_CTX];
	pv_opts.trace_tag = pv_opts.self[OPT_TRACE_TAG];
}

int pv_task_enrol(void)
{
	struct answer a;
	int ret = 0;

	/* a child of fork() cannot use its parent's endpoint */
	if (pv_me.pid && pv_me.pid != getpid())
		return PvmSysErr;
	pv_me.sock = daemon_connect();
	if (pv_me.sock < 0 && !getenv("PVMEPID"))
		ret = daemon_start(0, NULL);
	if (pv_me.sock < 0 && (!ret || ret == PvmDupHost))
		pv_me.sock = daemon_connect();
	if (pv_me.sock < 0)
		return PvmSysErr;
	pv_me.pid = getpid();
	ret = endpoint_open();
	if (!ret)
		ret = enrol_request(&a);
	if (!ret) {
		enrol_read(&a.body);
		pv_trace_begin(&a.body);
	}
	if (pv_me.ep)
		pv_answer_free(&a);
	if (ret)
		pv_task_leave();
	return ret;
}

void pv_task_leave(void)
{
	pv_peers_free();
	pv_bufs_free();
	pv_output_host_gone(0);
	if (pv_me.ep)
		sci_ep_close(pv_me.ep);
	pv_me.ep = NULL;
	pv_watch_end();
	if (pv_me.sock >= 0)
		close(pv_me.sock);
	pv_me.sock = -1;
	pv_me.in_len = pv_me.in_at = 0;
	pv_me.pid = 0;
	free(pv_me.siblings);
	pv_me.siblings = NULL;
	pv_me.nsiblings = 0;
	pv_me.manager = 0;
	pvmmytid = -1;
	/* a process that enrols again is a new task */
	unsetenv("PVMEPID");
	pv_trace_state = TRACE_UNKNOWN;
}

static bool peers_are_settled(void *arg)
{
	(void)arg;
	pv_peers_push();
	return !pv_peers_unsettled();
}

static bool output_ended(void *arg)
{
	(void)arg;
	return !pv_output_pending();
}

PVM_API int pvm_exit(void)
{
	struct frame f = { 0 };

	if (pv_me.sock < 0)
		return PvmOk;
	pv_wait_for(output_ended, NULL, -1);
	pv_wait_for(peers_are_settled, NULL, -1);
	frame_begin(&f, OP_EXIT, TO_OWN);
	pv_request(&f, NULL);
	pv_task_leave();
	return PvmOk;
}

PVM_API int pvm_mytid(void)
{
	int ret = pv_task_ready();

	return ret < 0 ? lpvmerr("pvm_mytid", ret) : pvmmytid;
}

PVM_API int pvmbeatask(void);

PVM_API int pvmbeatask(void)
{
	return pv_task_ready();
}

PVM_API int pvmendtask(void);

PVM_API int pvmendtask(void)
{
	if (pv_me.sock >= 0)
		pv_task_leave();
	return PvmOk;
}

PVM_API int pvm_parent(void)
{
	int ret = pv_task_ready();

	if (ret < 0)
		return lpvmerr("pvm_parent", ret);
	return pvmmyptid ? pvmmyptid : PvmNoParent;
}

PVM_API int pvm_siblings(int **tids)
{
	struct frame f = { 0 };
	struct answer a;
	const void *v;
	int ret = pv_task_ready();

	if (ret < 0)
		return lpvmerr("pvm_siblings", ret);
	if (!tids)
		return lpvmerr("pvm_siblings", PvmBadParam);
	if (!pv_me.siblings) {
		frame_begin(&f, OP_GET_SIBLINGS, TO_OWN);
		ret = pv_request(&f, &a);
		pv_me.nsiblings = ret < 0 ? 0 : body_ints(&a.body, &v);
		pv_me.siblings = malloc(((size_t)pv_me.nsiblings + 1) * sizeof(int));
		if (pv_me.siblings && pv_me.nsiblings)
			memcpy(pv_me.siblings, v, (size_t)pv_me.nsiblings * sizeof(int));
		pv_answer_free(&a);
	}
	if (ret >= 0 && !pv_me.siblings)
		ret = PvmNoMem;
	*tids = pv_me.siblings;
	return ret < 0 ? lpvmerr("pvm_siblings", ret) : pv_me.nsiblings;
}

PVM_API int pvm_tidtohost(int tid)
{
	return (int)((uint32_t)tid & TID_HOST_MASK);
}

PVM_API int pvm_getfds(int **fds)
{
	int ret = pv_task_ready();

	if (ret < 0)
		return lpvmerr("pvm_getfds", ret);
	if (!fds)
		return lpvmerr("pvm_getfds", PvmBadParam);
	if (pv_watch_begin())
		return lpvmerr("pvm_getfds", PvmOutOfRes);
	*fds = &pv_me.watch;
	return 1;
}
