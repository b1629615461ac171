// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/* Starting tasks, and their output. */

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "libsci/pvm/daemon/daemon.h"
#include "libsci/pvm/daemon/text.h"

#define OUTPUT_SIZE	4096
#define WORDS_MAX	65536		/* limit of arguments, and of variables */

/* A request to start tasks. The strings are in the received frame. */
struct order {
	const char *file;
	const char *dir;
	int flag;
	int count;
	char **argv;			/* [0]: the path; NULL at the end */
	const char **env;		/* name, value, ... NULL */
	int ptid, ctx;
	int opt[OPTS];
	int manager;
	bool out_silent, trace_silent;	/* the sink is the tracer, which gets no event of the spawn */
};

#define TRACE_VARIABLES	3		/* number of variables that order_trace() adds */

/* ---- output ---- */

void output_event(struct task *t, int event)
{
	uint8_t body[12];

	if (!tid_is_task(t->opt[OPT_OUT_TID]) || !t->shown_tid)
		return;
	put_word(body, (uint32_t)t->shown_tid);
	put_word(body + 4, (uint32_t)event);
	put_word(body + 8, (uint32_t)t->ptid);
	message_send(t->opt[OPT_OUT_TID], (int)(TID_DAEMON | TID_OF_HOST(own_host)),
		     t->opt[OPT_OUT_CTX], t->opt[OPT_OUT_TAG], body,
		     event == TO_EOF ? 8 : 12);
}

void output_host_gone(int host)
{
	for (struct list *l = tasks.next; l != &tasks; l = l->next) {
		struct task *t = container_of(l, struct task, link);
		struct frame f = { 0 };
		struct frame_head *h;

		if (!t->enrolled)
			continue;
		frame_begin(&f, OP_EXITED, (uint32_t)t->tid);
		frame_i32(&f, (int32_t)TID_OF_HOST(host));
		h = frame_head(&f);
		if (h)
			task_send(t, h, h + 1);
		frame_free(&f);
	}
}

static void output_bytes(struct task *t, const char *data, size_t len)
{
	uint8_t body[8 + OUTPUT_SIZE + 3] = { 0 };

	if (!tid_is_task(t->opt[OPT_OUT_TID])) {
		say("[t%x] %.*s", (unsigned int)t->shown_tid,
		    (int)(len && data[len - 1] == '\n' ? len - 1 : len), data);
		return;
	}
	put_word(body, (uint32_t)t->shown_tid);
	put_word(body + 4, (uint32_t)len);
	memcpy(body + 8, data, len);
	message_send(t->opt[OPT_OUT_TID], (int)(TID_DAEMON | TID_OF_HOST(own_host)),
		     t->opt[OPT_OUT_CTX], t->opt[OPT_OUT_TAG], body,
		     8 + ((len + 3) & ~(size_t)3));
}

static void output_ready(struct watch *w, uint32_t events)
{
	struct task *t = container_of(w, struct task, output);
	char data[OUTPUT_SIZE];
	ssize_t n = read(w->fd, data, sizeof(data));

	(void)events;
	if (n > 0)
		output_bytes(t, data, (size_t)n);
	if (n > 0 || (n < 0 && (errno == EAGAIN || errno == EINTR)))
		return;
	watch_del(w);
	output_event(t, TO_EOF);
	/* the entry of an ended task was kept only for the end of its output */
	if (!t->tid)
		task_end(t);
}

/* ---- the program ---- */

static bool file_is_executable(const char *path)
{
	struct stat st;

	return !stat(path, &st) && S_ISREG(st.st_mode) && !access(path, X_OK);
}

/* Find @file in the search path. @path: PATH_MAX bytes for the result. Return: false: not found. */
static bool program_find(const char *file, char *path)
{
	const char *home = getenv("HOME"), *root = getenv("PVM_ROOT"), *more;
	const char *s, *end;
	char list[4 * PATH_MAX];

	if (strchr(file, '/')) {
		snprintf(path, PATH_MAX, "%s", file);
		return file[0] != '/' || file_is_executable(path);
	}
	more = getenv("PVM_PATH");
	snprintf(list, sizeof(list), "%s%s%s/pvm3/bin/" ARCH_NAME ":%s/bin/" ARCH_NAME,
		 more ? more : "", more ? ":" : "", home ? home : "",
		 root && *root ? root : "/usr/lib/pvm3");
	for (s = list; *s; s = *end ? end + 1 : end) {
		end = strchrnul(s, ':');
		snprintf(path, PATH_MAX, "%.*s/%s", (int)(end - s), s, file);
		if (end > s && file_is_executable(path))
			return true;
	}
	return false;
}

/* Run the program. Context: in the child. */
static __attribute__((noreturn)) void
program_run(const struct order *o, int out, const char *node, pid_t daemon)
{
	sigset_t none;
	char pid[16];
	int null = open("/dev/null", O_RDONLY);

	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	signal(SIGPIPE, SIG_DFL);
	signal(SIGHUP, SIG_DFL);
	/* end the task when the daemon dies, or if the daemon has died */
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	if (getppid() != daemon)
		_exit(127);
	setpgid(0, 0);
	dup2(null, 0);
	dup2(out, 1);
	dup2(out, 2);
	for (int i = 0; o->env[i]; i += 2)
		setenv(o->env[i], o->env[i + 1], 1);
	snprintf(pid, sizeof(pid), "%d", (int)getpid());
	setenv("PVMEPID", pid, 1);
	if (node)
		setenv("SCI_NODE", node, 1);
	if (o->dir[0] && chdir(o->dir))
		_exit(126);
	execv(o->argv[0], o->argv);
	_exit(127);
}

static struct task *task_make(const struct order *o)
{
	struct task *t = task_new();

	if (!t)
		return NULL;
	t->tid = t->shown_tid = tid_new();
	t->name = strdup(o->file);
	t->ptid = o->ptid;
	t->ctx = o->ctx;
	t->manager = o->manager ? o->manager : manager;
	memcpy(t->opt, o->opt, sizeof(t->opt));
	return t;
}

/* Let the tasker start one task. Return: its tid or a PVM error. */
static int task_start_by_tasker(const struct order *o)
{
	struct task *t = task_make(o);

	if (t && t->tid) {
		tasker_start(t, o->argv, o->env, o->flag);
		trace_task_new(t, o->flag, !o->trace_silent);
		return t->tid;
	}
	if (t)
		task_end(t);
	return PvmOutOfRes;
}

/* Start one task. Return: its tid or a PVM error. */
static int task_start(const struct order *o)
{
	pid_t daemon = getpid();
	struct task *t;
	int p[2];

	if (tasker)
		return task_start_by_tasker(o);
	if (pipe2(p, O_CLOEXEC))
		return PvmOutOfRes;
	fcntl(p[0], F_SETFL, O_NONBLOCK);
	t = task_make(o);
	if (!t)
		goto no_task;
	if (!t->tid || watch_add(&t->output, p[0], EPOLLIN, output_ready))
		goto no_room;
	fflush(NULL);
	t->pid = fork();
	if (t->pid < 0)
		goto no_process;
	if (!t->pid)
		program_run(o, p[1], getenv("SCI_NODE"), daemon);
	t->child = true;
	close(p[1]);
	if (!o->out_silent)
		output_event(t, TO_SPAWN);
	trace_task_new(t, o->flag, !o->trace_silent);
	return t->tid;
no_process:
	watch_del(&t->output);
	p[0] = -1;
no_room:
	t->tid = 0;
	t->output.fd = -1;
	task_end(t);
no_task:
	if (p[0] >= 0)
		close(p[0]);
	close(p[1]);
	return PvmOutOfRes;
}

/* ---- requests ---- */

/* Allocate an array of pointers: @n entries of @each pointers, and @more pointers. */
static void *words_alloc(struct body *b, int n, size_t each, size_t more)
{
	if (n < 0 || n > WORDS_MAX) {
		b->bad = true;
		n = 0;
	}
	return calloc((size_t)n * each + more, sizeof(char *));
}

static bool order_read(struct order *o, struct body *b)
{
	int n;

	o->file = body_str(b);
	o->flag = body_i32(b);
	o->dir = body_str(b);
	o->count = body_i32(b);
	n = body_i32(b);
	o->argv = words_alloc(b, n, 1, 2);
	for (int i = 0; i < n && o->argv && !b->bad; i++)
		o->argv[i + 1] = (char *)body_str(b);
	n = body_i32(b);
	o->env = words_alloc(b, n, 2, 2 * TRACE_VARIABLES + 1);
	for (int i = 0; i < n && o->env && !b->bad; i++) {
		o->env[2 * i] = body_str(b);
		o->env[2 * i + 1] = body_str(b);
	}
	o->ptid = body_i32(b);
	o->ctx = body_i32(b);
	for (int i = 0; i < OPTS; i++)
		o->opt[i] = body_i32(b);
	return o->argv && o->env && !b->bad && o->count > 0 && *o->file;
}

static void order_free(struct order *o)
{
	free(o->argv);
	free(o->env);
}

static void env_set(struct order *o, const char *name, const char *value)
{
	int i = 0;

	while (o->env[i] && strcmp(o->env[i], name))
		i += 2;
	o->env[i] = name;
	o->env[i + 1] = value;
}

/* Make the tracer the sink of the new tasks' traces and output, if they have no sink. */
static void order_trace(struct order *o)
{
	static char bytes[16], how[16];

	o->out_silent = tracer_sink(o->opt, OPT_OUT_TID);
	o->trace_silent = tracer_sink(o->opt, OPT_TRACE_TID);
	if (!o->trace_silent)
		return;
	snprintf(bytes, sizeof(bytes), "%d", tracer.bytes);
	snprintf(how, sizeof(how), "%d", tracer.how);
	env_set(o, "PVMTMASK", tracer.mask);
	env_set(o, "PVMTRCBUF", bytes);
	env_set(o, "PVMTRCOPT", how);
}

/* Start the tasks. *@tids: an array that the caller frees. Return: 0 or a PVM error. */
static int order_run(struct order *o, int **tids)
{
	char path[PATH_MAX];
	bool found;

	if (o->count > (int)TID_LOCAL_MASK)
		return PvmBadParam;
	if (halting)
		return PvmOutOfRes;
	*tids = calloc((size_t)o->count, sizeof(int));
	if (!*tids)
		return PvmNoMem;
	found = program_find(o->file, path);
	o->argv[0] = path;
	order_trace(o);
	for (int i = 0; i < o->count; i++)
		(*tids)[i] = found ? task_start(o) : PvmNoFile;
	return 0;
}

void spawn_serve(const struct frame_head *head, struct body *b)
{
	struct order o = { 0 };
	struct frame f = { 0 };
	int *tids = NULL, error = order_read(&o, b) ? order_run(&o, &tids) : PvmBadParam;

	if (!error) {
		frame_begin(&f, OP_REPLY, 0);
		frame_ints(&f, tids, o.count);
	}
	answer(head, error, error ? NULL : &f);
	free(tids);
	order_free(&o);
}

/* Read the variables of SM_EXEC, each NAME=VALUE. PVMCTX and PVMSPAWNWD also set @o. */
static void managed_env(struct order *o, struct body *b, int n)
{
	int at = 0;

	for (int i = 0; i < n && o->env && !b->bad; i++) {
		char *s = (char *)text_read_str(b), *value = strchr(s, '=');

		if (!value || value == s)
			continue;
		if (!strncmp(s, "PVMCTX=", 7))
			o->ctx = (int)strtol(value + 1, NULL, 0);
		if (!strncmp(s, "PVMSPAWNWD=", 11))
			o->dir = value + 1;
		/* the message is a copy, so the string may be modified */
		*value = 0;
		o->env[at++] = s;
		o->env[at++] = value + 1;
	}
}

static bool managed_read(struct order *o, struct body *b)
{
	int n;

	o->dir = "";
	o->ptid = text_read_word(b);
	o->file = text_read_str(b);
	o->flag = text_read_word(b);
	o->count = text_read_word(b);
	n = text_read_word(b);
	o->argv = words_alloc(b, n, 1, 2);
	for (int i = 0; i < n && o->argv && !b->bad; i++)
		o->argv[i + 1] = (char *)text_read_str(b);
	for (int i = 0; i < OPTS; i++)
		o->opt[i] = text_read_word(b);
	n = text_read_word(b);
	o->env = words_alloc(b, n, 2, 2 * TRACE_VARIABLES + 1);
	managed_env(o, b, n);
	return o->argv && o->env && !b->bad && o->count > 0 && *o->file;
}

void exec_serve(int from, int ctx, int wid, struct body *b)
{
	struct order o = { .manager = from };
	struct text x = { 0 };
	int *tids = NULL, error = managed_read(&o, b) ? order_run(&o, &tids) : PvmBadParam;

	text_word(&x, error ? (uint32_t)error : (uint32_t)o.count);
	for (int i = 0; !error && i < o.count; i++)
		text_word(&x, (uint32_t)tids[i]);
	text_send(&x, from, ctx, SM_EXECACK, wid);
	free(tids);
	order_free(&o);
}

static bool host_fits(const struct host *h, int flag, const char *where, int src_host)
{
	bool fits = true;

	if (flag & PvmTaskHost)
		fits = !strcmp(where, ".") ? h->index == src_host :
			!strcmp(where, h->name);
	else if (flag & PvmTaskArch)
		fits = !strcmp(where, h->arch);
	return flag & PvmHostCompl ? !fits : fits;
}

/* Choose hosts for n tasks round robin, beginning after the last host of the previous request. */
void pick_serve(const struct frame_head *head, struct body *b)
{
	static int last;
	int flag = body_i32(b), from = (int)TID_HOST(head->src), n, fit = 0, at;
	const char *where = body_str(b);
	struct frame f = { 0 };
	int *picked;

	n = body_i32(b);
	picked = n > 0 && n <= (int)TID_LOCAL_MASK ? calloc((size_t)n, sizeof(int)) : NULL;
	for (int i = 1; i <= (int)HOST_MAX; i++)
		fit += host_up(hosts[i]) &&
			host_fits(hosts[i], flag, where, from);
	if (!picked || b->bad || !fit) {
		answer(head, picked && !b->bad ? PvmNoHost : PvmBadParam, NULL);
		free(picked);
		return;
	}
	at = last;
	for (int i = 0; i < n; i++) {
		do {
			at = at % (int)HOST_MAX + 1;
		} while (!host_up(hosts[at]) ||
			 !host_fits(hosts[at], flag, where, from));
		picked[i] = (int)TID_OF_HOST(at);
	}
	last = at;
	frame_begin(&f, OP_REPLY, 0);
	frame_ints(&f, picked, n);
	answer(head, 0, &f);
	free(picked);
}
