// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/*
 * DOC: processes of a test program
 *
 * runner			main(); independent of the tested interface
 *   test			leads a process group
 *     peer ...			in the same group
 *
 * The runner is the reaper of all descendants, so that it gets the exit status of
 * each one and notices when the last one has ended.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define SELFTESTS_KERNEL_KSFT_C
#include "ksft.h"

#define MAX_PROCESSES	512
#define LINE_LENGTH	2048
#define DEFAULT_LIMIT_S	60

/* ---- state of the test's processes, shared with the runner ---- */

struct process_state {
	_Atomic(const char *) file;
	_Atomic(const char *) text;
	_Atomic int line;
	_Atomic pid_t pid;
};

struct run_state {
	_Atomic bool failed;
	_Atomic unsigned int limit_s;
	_Atomic unsigned int processes;
	char skip_reason[256];
	struct process_state process[MAX_PROCESSES];
};

static struct run_state *run;
static struct process_state runner, *self = &runner;

static struct ksft_test *tests, **tests_end = &tests;

static char **options;
static int noptions;

void ksft_register(struct ksft_test *t)
{
	*tests_end = t;
	tests_end = &t->next;
}

/* Print with one write(), so that lines of different processes don't mix. */
__attribute__((format(printf, 1, 2)))
static void print_line(const char *fmt, ...)
{
	char line[LINE_LENGTH];
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

static void process_enter(void)
{
	unsigned int i = atomic_fetch_add(&run->processes, 1);

	self = &run->process[i % MAX_PROCESSES];
	atomic_store(&self->file, NULL);
	atomic_store(&self->pid, getpid());
}

void ksft_at(struct ksft_site site)
{
	atomic_store_explicit(&self->line, site.line, memory_order_relaxed);
	atomic_store_explicit(&self->text, site.text, memory_order_relaxed);
	atomic_store_explicit(&self->file, site.file, memory_order_relaxed);
}

static _Thread_local struct ksft_site from;

void ksft_from(struct ksft_site site)
{
	from = site;
}

void ksft_note(const char *fmt, ...)
{
	char text[LINE_LENGTH - 16];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	print_line("# %s", text);
}

void ksft_fail(struct ksft_site site, const char *fmt, ...)
{
	char text[LINE_LENGTH - 256];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	print_line("# %s:%d: %s", site.file, site.line, text);
	if (from.file && strcmp(site.file, from.file) != 0)
		print_line("# %s:%d: last call of a helper: %s", from.file,
			   from.line, from.text);
	atomic_store(&run->failed, true);
	_exit(KSFT_FAIL);
}

void ksft_skip(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(run->skip_reason, sizeof(run->skip_reason), fmt, ap);
	va_end(ap);
	exit(KSFT_SKIP);
}

const char *ksft_errname(int error)
{
	static const struct {
		int error;
		const char *name;
	} names[] = {
#define NAME(e)	{ e, #e }
		{ 0, "ok" }, NAME(EPERM), NAME(ENOENT), NAME(EINTR),
		NAME(EIO), NAME(ENXIO), NAME(E2BIG), NAME(EBADF),
		NAME(EAGAIN), NAME(ENOMEM), NAME(EACCES), NAME(EFAULT),
		NAME(EBUSY), NAME(EEXIST), NAME(ENODEV), NAME(EINVAL),
		NAME(ENFILE), NAME(EMFILE), NAME(ENOTTY), NAME(EFBIG),
		NAME(ENOSPC), NAME(ESPIPE), NAME(ENOSYS), NAME(EOVERFLOW),
		NAME(EUSERS), NAME(EMSGSIZE), NAME(EOPNOTSUPP),
		NAME(ENETDOWN), NAME(ENOBUFS), NAME(ENOTCONN),
		NAME(ETIMEDOUT), NAME(EHOSTUNREACH), NAME(ECANCELED),
		NAME(ECONNRESET),
#undef NAME
	};
	static char number[32];

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (names[i].error == error)
			return names[i].name;
	snprintf(number, sizeof(number), "errno %d", error);
	return number;
}

void ksft_check(struct ksft_site site, bool cond)
{
	if (!cond)
		ksft_fail(site, "expected %s", site.text);
}

void ksft_eq(struct ksft_site site, long long got, long long want)
{
	if (got != want)
		ksft_fail(site, "%s: expected %lld (%#llx), got %lld (%#llx)",
			  site.text, want, (unsigned long long)want, got,
			  (unsigned long long)got);
}

long long ksft_ok(struct ksft_site site, long long result)
{
	if (result < 0)
		ksft_fail(site, "%s: %s", site.text, ksft_errname(-result));
	return result;
}

void ksft_fails(struct ksft_site site, long long result, int one, int other)
{
	if (result < 0 && (result == -one || result == -other || !one))
		return;
	if (result >= 0)
		ksft_fail(site, "%s: expected %s, but it succeeded (%lld)",
			  site.text, one ? ksft_errname(one) : "an error",
			  result);
	ksft_fail(site, "%s: expected errno %d (%s), got %lld (%s)",
		  site.text, one, strerror(one), -result, strerror(-result));
}

/* ---- options ---- */

/* Return "5" for @arg "--word=5" if @word is "word", else NULL. */
static const char *option_value(const char *arg, const char *word)
{
	size_t len = strlen(word);

	if (strncmp(arg, "--", 2) != 0 || strncmp(arg + 2, word, len) != 0)
		return NULL;
	return arg[2 + len] == '=' ? arg + 3 + len : NULL;
}

unsigned long long ksft_option(const char *word, unsigned long long otherwise)
{
	char name[64];
	const char *value;

	for (int i = 0; i < noptions; i++) {
		value = option_value(options[i], word);
		if (value)
			return strtoull(value, NULL, 0);
	}
	snprintf(name, sizeof(name), "SCI_%s", word);
	for (char *c = name; *c; c++)
		*c = (char)toupper((unsigned char)*c);
	value = getenv(name);
	return value && *value ? strtoull(value, NULL, 0) : otherwise;
}

void ksft_set_limit(unsigned int seconds)
{
	atomic_store(&run->limit_s, seconds);
}

/* ---- helpers ---- */

uint64_t ksft_now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

void ksft_pause(void)
{
	struct timespec ts = { 0, 500000 };

	nanosleep(&ts, NULL);
}

/* splitmix64 */
uint64_t ksft_random(uint64_t *state)
{
	uint64_t z = *state += 0x9e3779b97f4a7c15u;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
	return z ^ (z >> 31);
}

unsigned int ksft_below(uint64_t *state, unsigned int n)
{
	return (unsigned int)((ksft_random(state) >> 16) % n);
}

void *ksft_shared(size_t size)
{
	void *p = mmap(NULL, size, PROT_READ | PROT_WRITE,
		       MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	CHECK(p != MAP_FAILED);
	return p;
}

unsigned int ksft_count_lines(const char *path,
			      bool (*match)(const char *line))
{
	FILE *f = fopen(path, "re");
	unsigned int n = 0;
	char *line = NULL;
	size_t room = 0;

	CHECK(f);
	while (getline(&line, &room, f) > 0)
		n += !match || match(line);
	free(line);
	fclose(f);
	return n;
}

unsigned int ksft_count_maps(void)
{
	return ksft_count_lines("/proc/self/maps", NULL);
}

unsigned int ksft_count_fds(void)
{
	DIR *dir = opendir("/proc/self/fd");
	unsigned int n = 0;

	CHECK(dir);
	while (readdir(dir))
		n++;
	closedir(dir);
	return n - 3;			/* ".", ".." and the directory's own */
}

/* ---- processes ---- */

static void die_with(pid_t parent)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(KSFT_FAIL);
}

pid_t ksft_fork(void)
{
	pid_t parent = getpid(), pid = fork();

	CHECK(pid >= 0);
	if (pid == 0) {
		die_with(parent);
		process_enter();
	}
	return pid;
}

static void print_file(const char *path)
{
	char line[256];
	FILE *f = fopen(path, "re");

	if (!f)
		return;
	while (fgets(line, sizeof(line), f)) {
		line[strcspn(line, "\n")] = '\0';
		ksft_note("%s: %s", path, line);
	}
	fclose(f);
}

/* Print the system call and the kernel stack of each thread of a process that hangs. */
static void print_threads(pid_t pid)
{
	char path[384];
	struct dirent *e;
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/task", pid);
	dir = opendir(path);
	while (dir && (e = readdir(dir))) {
		if (e->d_name[0] == '.')
			continue;
		snprintf(path, sizeof(path), "/proc/%d/task/%s/syscall", pid,
			 e->d_name);
		print_file(path);
		snprintf(path, sizeof(path), "/proc/%d/task/%s/stack", pid,
			 e->d_name);
		print_file(path);
	}
	if (dir)
		closedir(dir);
}

bool ksft_waits_in_ioctl(pid_t thread, int fd)
{
	unsigned long long first = 0;
	char path[64];
	bool sleeps;
	int nr = -1;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/syscall", thread);
	f = fopen(path, "re");
	if (!f)
		return false;
	/* the file has no numbers while the thread runs */
	sleeps = fscanf(f, "%d %llx", &nr, &first) == 2;
	fclose(f);
	return sleeps && nr == SYS_ioctl && (int)first == fd;
}

int ksft_wait(pid_t pid)
{
	int fd = syscall(SYS_pidfd_open, pid, 0);
	struct pollfd pfd = { .fd = fd, .events = POLLIN };
	int status = 0;

	CHECK(fd >= 0);
	/* the child may itself wait for TEST_WAIT_MS */
	if (poll(&pfd, 1, 2 * TEST_WAIT_MS) != 1) {
		print_threads(pid);
		FAIL("pid %d does not end", pid);
	}
	close(fd);
	CHECK(waitpid(pid, &status, 0) == pid);
	return status;
}

/* ---- the runner ---- */

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

static void print_sites(void)
{
	unsigned int n = atomic_load(&run->processes);

	for (unsigned int i = 0; i < n && i < MAX_PROCESSES; i++) {
		struct process_state *p = &run->process[i];
		const char *file = atomic_load(&p->file);

		if (file)
			ksft_note("pid %d was at %s:%d: %s",
				  atomic_load(&p->pid), file,
				  atomic_load(&p->line),
				  atomic_load(&p->text));
	}
}

static void print_hang(void)
{
	unsigned int n = atomic_load(&run->processes);

	print_sites();
	for (unsigned int i = 0; i < n && i < MAX_PROCESSES; i++)
		print_threads(atomic_load(&run->process[i].pid));
}

static bool reap_all(void)
{
	bool clean = true;
	pid_t pid;
	int status;

	while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
		if (!WIFSIGNALED(status) || WTERMSIG(status) == SIGKILL)
			continue;
		ksft_note("pid %d: %s", pid, status_words(status));
		clean = false;
	}
	return clean;
}

static bool no_child_left(bool *clean)
{
	*clean &= reap_all();
	return waitpid(-1, NULL, WNOHANG) < 0 && errno == ECHILD;
}

/* Return the time limit of the running test in milliseconds, after scaling. */
static uint64_t limit_ms(void)
{
	uint64_t ms = (uint64_t)atomic_load(&run->limit_s) * 1000;

	return ms * ksft_option("test_timeout", DEFAULT_LIMIT_S) /
	       DEFAULT_LIMIT_S;
}

int ksft_wait_ms(void)
{
	unsigned long long limit = ksft_option("test_timeout", DEFAULT_LIMIT_S);

	if (limit < DEFAULT_LIMIT_S)
		limit = DEFAULT_LIMIT_S;
	return limit < 3600 ? (int)limit * 500 : 1800000;
}

/* Return whether the process ended in time. */
static bool wait_end(pid_t pid, int *status)
{
	struct pollfd pfd = { .events = POLLIN };
	uint64_t begin = ksft_now_ms();
	bool ended = false;

	pfd.fd = syscall(SYS_pidfd_open, pid, 0);
	while (!ended && ksft_now_ms() - begin < limit_ms())
		ended = poll(&pfd, 1, 200) == 1;
	close(pfd.fd);
	if (!ended) {
		print_hang();
		kill(-pid, SIGKILL);
		/* a process that can't be killed must not hold up the other tests */
		(void)HAPPENS(waitpid(pid, status, WNOHANG) == pid, 10000);
		return false;
	}
	waitpid(pid, status, 0);
	return true;
}

/* Write the test's name to the kernel log, before the messages that it causes. */
static void mark_log(const char *program, const char *name)
{
	char line[256];
	int fd = open("/dev/kmsg", O_WRONLY | O_CLOEXEC);
	int len;

	if (fd < 0)
		return;
	len = snprintf(line, sizeof(line), "selftest: %s: %s\n", program, name);
	if (write(fd, line, len) != len)
		ksft_note("no mark in the kernel's log");
	close(fd);
}

__attribute__((noreturn))
static void test_main(const struct ksft_test *t, pid_t parent)
{
	setpgid(0, 0);
	die_with(parent);
	process_enter();
	t->fn();
	exit(KSFT_PASS);
}

enum verdict { PASSED, SKIPPED, FAILED, TIMED_OUT, VERDICTS };

static enum verdict judge(bool in_time, bool clean, int status)
{
	if (!in_time)
		return TIMED_OUT;
	if (WIFSIGNALED(status)) {
		ksft_note("%s", status_words(status));
		print_sites();
		return FAILED;
	}
	if (!clean || atomic_load(&run->failed))
		return FAILED;
	if (WEXITSTATUS(status) == KSFT_SKIP)
		return SKIPPED;
	if (status && WEXITSTATUS(status) != KSFT_FAIL)
		ksft_note("%s", status_words(status));
	return status ? FAILED : PASSED;
}

static enum verdict run_test(const struct ksft_test *t)
{
	bool in_time, clean = true;
	pid_t parent = getpid();
	int status = 0;
	pid_t pid;

	memset(run, 0, sizeof(*run));
	atomic_store(&run->limit_s, t->limit_s);
	ksft_hooks.before();

	pid = fork();
	if (pid == 0)
		test_main(t, parent);
	if (pid < 0) {
		ksft_note("fork: %s", strerror(errno));
		return FAILED;
	}
	setpgid(pid, pid);
	in_time = wait_end(pid, &status);
	kill(-pid, SIGKILL);
	if (!HAPPENS(no_child_left(&clean), TEST_WAIT_MS)) {
		ksft_note("a process of the test survives SIGKILL");
		clean = false;
	}
	clean &= ksft_hooks.after();
	return judge(in_time, clean, status);
}

static void report(enum verdict verdict, unsigned int n, const char *name)
{
	switch (verdict) {
	case PASSED:
		print_line("ok %u %s", n, name);
		break;
	case SKIPPED:
		print_line("ok %u %s # SKIP %s", n, name, run->skip_reason);
		break;
	case TIMED_OUT:
		ksft_note("no end after %llu ms",
			  (unsigned long long)limit_ms());
		/* fall through */
	default:
		print_line("not ok %u %s", n, name);
		break;
	}
}

static bool wanted(const struct ksft_test *t, char **patterns, int n)
{
	for (int i = 0; i < n; i++)
		if (!fnmatch(patterns[i], t->name, FNM_EXTMATCH))
			return true;
	return n == 0;
}

/* Move arguments that begin with "--" to the front and store them as options. */
static void take_options(int *argc, char ***argv)
{
	char **args = *argv + 1;
	int n = *argc - 1, found = 0;

	for (int i = 0; i < n; i++) {
		char *arg = args[i];

		if (strncmp(arg, "--", 2) != 0)
			continue;
		memmove(&args[found + 1], &args[found],
			(i - found) * sizeof(*args));
		args[found++] = arg;
	}
	options = args;
	noptions = found;
	*argv = args + found;
	*argc = n - found;
}

static int run_tests(const char *program, char **patterns, int n)
{
	unsigned int count[VERDICTS] = { 0 }, number = 0;

	for (struct ksft_test *t = tests; t; t = t->next) {
		enum verdict verdict;

		if (!wanted(t, patterns, n))
			continue;
		mark_log(program, t->name);
		verdict = run_test(t);
		report(verdict, ++number, t->name);
		count[verdict]++;
	}
	mark_log(program, "end");
	print_line("# Totals: pass:%u fail:%u xfail:0 xpass:0 skip:%u error:0",
		   count[PASSED], count[FAILED] + count[TIMED_OUT],
		   count[SKIPPED]);
	if (count[FAILED] || count[TIMED_OUT])
		return KSFT_FAIL;
	return count[PASSED] ? KSFT_PASS : KSFT_SKIP;
}

int main(int argc, char **argv)
{
	const char *program = strrchr(argv[0], '/');
	unsigned int count = 0;
	const char *missing;

	program = program ? program + 1 : argv[0];
	if (peer_exec_main(argc, argv))
		return KSFT_PASS;
	if (argc > 1 && !strcmp(argv[1], "-l")) {
		for (struct ksft_test *t = tests; t; t = t->next)
			print_line("%s", t->name);
		return KSFT_PASS;
	}
	take_options(&argc, &argv);
	for (struct ksft_test *t = tests; t; t = t->next)
		count += wanted(t, argv, argc);
	if (!count) {
		fprintf(stderr, "%s: no such test\n", program);
		return 2;
	}

	prctl(PR_SET_CHILD_SUBREAPER, 1);
	signal(SIGPIPE, SIG_IGN);
	run = mmap(NULL, sizeof(*run), PROT_READ | PROT_WRITE,
		   MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (run == MAP_FAILED) {
		perror("mmap");
		return 2;
	}
	if (!getenv("KSFT_TAP_LEVEL"))
		print_line("TAP version 13");
	missing = ksft_hooks.missing();
	if (missing) {
		print_line("1..0 # SKIP %s", missing);
		return KSFT_SKIP;
	}
	print_line("1..%u", count);
	return run_tests(program, argv, argc);
}
