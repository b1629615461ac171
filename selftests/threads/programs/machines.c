// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/*
 * usage: machines [die|exit|exits|errs|leave|map|priorities|robust|protect|crowd|signals|suspend|
 *		    blocked|exec|execs|format|replace|stacks|err|errx|error|line|
 *		    environment|variables|close|local|vfork|forever]
 *
 * Threads of two machines use everything that has to work between them, each thing a few times: a
 * page of memory takes long to move. The output is the same as on one machine.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <err.h>
#include <errno.h>
#include <error.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <setjmp.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/select.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define THREADS	4
#define ROUNDS	5
#define WORDS	30000
#define SIGNALS	300
#define WRITERS	6
#define STACKS	100
#define HANDLERS 40
#define CROWD	2300		/* more than SCI_DETACHED_MAX */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t turned = PTHREAD_COND_INITIALIZER;
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_barrier_t barrier;
static pthread_key_t key;
static sem_t sem;
static int counter, written, once_runs, ended;
static atomic_int atomic, started;
static int *block[THREADS];
static int pipes[2];
static long words[WORDS];
static __thread int own = 7;

static void once_body(void)
{
	once_runs++;
}

static void key_end(void *value)
{
	pthread_mutex_lock(&lock);
	ended += *(int *)value;
	pthread_mutex_unlock(&lock);
	free(value);
}

static void turn_take(int me)
{
	pthread_mutex_lock(&lock);
	while (counter % THREADS != me)
		pthread_cond_wait(&turned, &lock);
	counter++;
	pthread_cond_broadcast(&turned);
	pthread_mutex_unlock(&lock);
}

static void locks_use(int me)
{
	for (int i = 0; i < ROUNDS; i++) {
		turn_take(me);
		atomic_fetch_add(&atomic, 1);
		pthread_rwlock_wrlock(&rwlock);
		written++;
		pthread_rwlock_unlock(&rwlock);
		pthread_barrier_wait(&barrier);
	}
	sem_wait(&sem);
	sem_post(&sem);
	pthread_once(&once, once_body);
}

/* Use memory that another thread has allocated, and the memory of main()'s stack. */
static void memory_use(int me, int *stack)
{
	int *k = malloc(sizeof(*k));

	*k = me + 1;
	pthread_setspecific(key, k);
	block[me] = malloc(5000 * sizeof(int));
	for (int i = 0; i < 5000; i++)
		block[me][i] = me;
	stack[me] = me * me;
	own += me;
	for (int i = me; i < WORDS; i += THREADS)
		words[i] = i;
	pthread_barrier_wait(&barrier);
	if (block[(me + 1) % THREADS][4999] != (me + 1) % THREADS)
		printf("thread %d: a wrong block\n", me);
	pthread_barrier_wait(&barrier);
	free(block[(me + 1) % THREADS]);
	if (own != 7 + me)
		printf("thread %d: a wrong thread-local variable\n", me);
}

/* The files, streams and children of a thread are those of all. Context: thread @me's turn. */
static void files_use(int me)
{
	char text[32], line[32] = "";
	FILE *f = tmpfile();
	long n;

	snprintf(text, sizeof(text), "thread %d", me);
	if (f && fputs(text, f) >= 0 && !fseek(f, 0, SEEK_SET) && fgets(line, sizeof(line), f))
		printf("a file of %s\n", line);
	if (f)
		fclose(f);
	n = write(pipes[1], text, 9);
	/* NOLINTBEGIN(cert-env33-c): our own commands */
	printf("write %ld, system %d\n", n, system("exit 3") >> 8);
	printf("signal %d\n", system("kill $$; exit 3"));
	f = popen("echo a child; kill $$", "r");
	/* NOLINTEND(cert-env33-c) */
	if (f && fgets(line, sizeof(line), f))
		printf("%s", line);
	printf("pclose %d\n", f ? pclose(f) : -1);
	printf("open %d, errno %d\n", open("/does/not/exist", 0), errno);
	printf("variable %s, %d\n", getenv("MACHINES"), setenv("MACHINES", text, 1));
}

static void *body(void *arg)
{
	int *stack = arg, me = atomic_fetch_add(&started, 1);

	locks_use(me);
	memory_use(me, stack);
	for (int i = 0; i < THREADS; i++) {
		if (i == me)
			files_use(me);
		pthread_barrier_wait(&barrier);
	}
	return (void *)(long)(me + 100);
}

static long thread_result(void *(*fn)(void *), void *arg)
{
	pthread_t t;
	void *result;

	if (pthread_create(&t, NULL, fn, arg) || pthread_join(t, &result))
		exit(1);
	return (long)result;
}

/* ---- signals that interrupt calls which node 4 makes ---- */

static int sink;

static void signal_take(int sig)
{
	(void)sig;
	if (write(sink, "s", 1) == 1)
		sem_post(&sem);
}

static void *bytes_write(void *arg)
{
	while (write(sink, "x", 1) == 1 && atomic_load(&started))
		;
	return arg;
}

static int signals_use(void)
{
	pthread_t t[WRITERS];

	sink = open("/dev/null", O_WRONLY);
	signal(SIGUSR1, signal_take);
	atomic_store(&started, 1);
	for (int i = 0; i < WRITERS; i++)
		if (pthread_create(&t[i], NULL, bytes_write, NULL))
			return 1;
	for (int i = 0; i < SIGNALS; i++)
		pthread_kill(t[i % WRITERS], SIGUSR1);
	sem_wait(&sem);
	atomic_store(&started, 0);
	for (int i = 0; i < WRITERS; i++)
		pthread_join(t[i], NULL);
	printf("%d signals\n", SIGNALS);
	return 0;
}

/* ---- calls that wait for a signal with a mask of their own ---- */

/* Make two calls that raise SIGSYS on some nodes. */
static void signal_count(int sig)
{
	(void)sig;
	if (write(sink, "s", 1) == 1 && !syscall(SYS_futex, &written, FUTEX_WAKE_PRIVATE, 1, NULL, NULL,
						 0))
		counter++;
}

/* Send a signal to this thread, which blocks it. Return a mask that lets only this signal pass. */
static const sigset_t *signal_send(void)
{
	static sigset_t mask;

	sigfillset(&mask);
	sigdelset(&mask, SIGUSR1);
	pthread_kill(pthread_self(), SIGUSR1);
	return &mask;
}

static void *signal_suspend(void *arg)
{
	for (int i = 0; i < ROUNDS; i++)
		if (sigsuspend(signal_send()) != -1 || errno != EINTR)
			printf("sigsuspend: %s\n", strerror(errno));
	return arg;
}

static int suspend_use(void)
{
	struct epoll_event event;
	int fd = epoll_create1(0);
	sigset_t mask;

	sink = open("/dev/null", O_WRONLY);
	signal(SIGUSR1, signal_count);
	sigemptyset(&mask);
	sigaddset(&mask, SIGUSR1);
	pthread_sigmask(SIG_BLOCK, &mask, NULL);
	/* the 1st thread is on node 8 */
	thread_result(signal_suspend, NULL);
	signal_suspend(NULL);
	printf("ppoll %d\n", ppoll(NULL, 0, NULL, signal_send()));
	printf("pselect %d\n", pselect(0, NULL, NULL, NULL, NULL, signal_send()));
	printf("epoll_pwait %d\n", epoll_pwait(fd, &event, 1, -1, signal_send()));
	printf("%d signals\n", counter);
	return 0;
}

/* ---- signals that are blocked since before the first thread ---- */

static void *signal_raise(void *arg)
{
	sigset_t set;

	signal_count(0);
	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	pthread_sigmask(SIG_UNBLOCK, &set, NULL);
	pthread_kill(pthread_self(), SIGUSR1);
	return arg;
}

static int blocked_use(void)
{
	struct sigaction sa = { .sa_handler = signal_count };

	sink = open("/dev/null", O_WRONLY);
	sigfillset(&sa.sa_mask);
	sigaction(SIGUSR1, &sa, NULL);
	pthread_sigmask(SIG_BLOCK, &sa.sa_mask, NULL);
	/* the 1st thread is on node 8 */
	thread_result(signal_raise, NULL);
	signal_raise(NULL);
	printf("%d signals\n", counter);
	return 0;
}

/* ---- messages that end the program ---- */

static bool elsewhere(void)
{
	return syscall(SYS_getpid) != getpid();
}

static void end_show(void)
{
	printf(" and a handler%s\n", elsewhere() ? " on another node" : "");
}

static void end_skip(void)
{
	counter++;
}

/* Return true if a function comes from the same library as strcoll(). */
static bool function_is_of_libc(const char *name)
{
	Dl_info a, b;

	return dladdr(dlsym(RTLD_DEFAULT, name), &a) &&
	       dladdr(dlsym(RTLD_DEFAULT, "strcoll"), &b) && a.dli_fbase == b.dli_fbase;
}

static void *message_end(void *arg)
{
	const char *how = arg;
	volatile int status = 6;	/* the compiler assumes that constants end the program */

	printf("the buffer");
	if (!strcmp(how, "err"))
		err(3, "%s", how);
	if (!strcmp(how, "errx"))
		errx(4, "%s", how);
	errno = 0;
	error(0, EINVAL, "%s", how);
	if (!strcmp(how, "error"))
		error(5, ENOENT, "%s", how);
	error_one_per_line = 1;
	error_at_line(0, 0, __FILE__, 1, "%s", how);
	error_at_line(status, 0, __FILE__, 1, "%s", how);
	error_at_line(status, 0, __FILE__, 2, "%s", how);
	return arg;
}

static void *result_return(void *arg)
{
	return arg;
}

/* The 1st thread is on node 8, and so is the 3rd one. */
static int message_use(char *how)
{
	dup2(1, 2);			/* `sci run` does not keep the order of two streams */
	/* libraries may have functions of this name */
	printf("error() is of libc: %d\n", function_is_of_libc("error"));
	/* libc allocates memory for the 33rd handler */
	for (int i = 0; i < HANDLERS; i++)
		atexit(end_skip);
	atexit(end_show);
	thread_result(result_return, NULL);
	thread_result(result_return, NULL);
	atexit(end_show);
	return (int)thread_result(message_end, how);
}

/* ---- a child that has the memory of this process ---- */

static void *vfork_end(void *arg)
{
	int status = -1;
	pid_t pid = vfork();

	if (!pid) {
		if (arg)
			exit(3);
		errx(4, "child");
	}
	printf("wait %d", waitpid(pid, &status, 0) == pid);
	printf(", status %d\n", WIFEXITED(status) ? WEXITSTATUS(status) : -1);
	return arg;
}

/* The 1st thread is on node 8. */
static int vfork_use(void)
{
	dup2(1, 2);
	for (long i = 0; i < 4; i++)
		thread_result(vfork_end, (void *)(i / 2));
	return 2;
}

/* ---- environment ---- */

#define NAMES	8
#define VARIABLES	300
#define SIZES	64
#define BLOCKS	70

/* Show how many blocks were allocated twice: memory that was freed twice. */
static void blocks_take(void)
{
	static int *taken[SIZES][BLOCKS];
	long bad = 0;

	for (int i = 0; i < SIZES; i++)
		for (int k = 0; k < BLOCKS; k++) {
			taken[i][k] = malloc(16 * (size_t)(i + 1));
			*taken[i][k] = k;
		}
	for (int i = 0; i < SIZES; i++)
		for (int k = 0; k < BLOCKS; k++)
			bad += *taken[i][k] != k;
	printf("%ld blocks were allocated twice\n", bad);
}

static void *names_read(void *arg)
{
	char name[16];

	for (int i = 0; i < NAMES; i++) {
		snprintf(name, sizeof(name), "NAME%d", i);
		printf("%s is %s\n", name, getenv(name));
	}
	return arg;
}

/* Threads of both nodes set variables. The variable MACHINES was set before the first thread. */
static void *name_write(void *arg)
{
	char name[16], value[16];
	int i = counter++;

	snprintf(name, sizeof(name), "NAME%d", i);
	snprintf(value, sizeof(value), "value %d", i);
	setenv(name, value, 1);
	blocks_take();
	return arg;
}

static void *node_name(void *arg)
{
	(void)arg;
	return getenv("SCI_NODE");
}

/* The 1st thread is on node 8. main() reads the variable that the thread has found. */
static int environment_use(void)
{
	const char *name = (const char *)thread_result(node_name, NULL);

	printf("no name or a name: %d\n", !name || *name);
	for (int i = 0; i < NAMES / 2; i++) {
		name_write(NULL);
		thread_result(name_write, NULL);
		unsetenv("MACHINES");
	}
	unsetenv("NAME3");
	for (int i = 0; i < 2; i++)
		thread_result(names_read, NULL);
	errno = 0;
	printf("setenv of no name %d", setenv("", "", 1));
	printf(", %s\n", strerror(errno));
	return 0;
}

/* Threads of both nodes set variables at the same time. Return the number of different environments. */
static void *variables_write(void *arg)
{
	static char **seen[2];
	int me = atomic_fetch_add(&started, 1);
	char name[32];
	long bad = 0;

	for (int i = 0; i < VARIABLES; i++) {
		snprintf(name, sizeof(name), "VARIABLE%d_%d", me, i);
		setenv(name, name, 1);
		pthread_barrier_wait(arg);
		seen[me] = environ;
		snprintf(name, sizeof(name), "VARIABLE%d_%d", !me, i);
		bad += !getenv(name) || strcmp(getenv(name), name);
		pthread_barrier_wait(arg);
		bad += seen[0] != seen[1];
	}
	return (void *)bad;
}

static int variables_use(void)
{
	pthread_barrier_t both;
	pthread_t t[2];
	void *bad[2];

	pthread_barrier_init(&both, NULL, 2);
	for (int i = 0; i < 2; i++)
		if (pthread_create(&t[i], NULL, variables_write, &both))
			return 1;
	for (int i = 0; i < 2; i++)
		pthread_join(t[i], &bad[i]);
	printf("wrong environments: %ld, %ld\n", (long)bad[0], (long)bad[1]);
	return 0;
}

/* ---- libraries that the program opens and closes ---- */

static void *library_close(void *library)
{
	printf("dlclose %d\n", dlclose(library));
	blocks_take();
	return NULL;
}

/* A thread of node 8 closes a library that main() has opened before. */
static int close_use(void)
{
	void *library = dlopen("libBrokenLocale.so.1", RTLD_NOW);

	if (!library)
		return 1;
	thread_result(library_close, library);
	library = dlopen("libBrokenLocale.so.1", RTLD_NOW);
	printf("open %d\n", library != NULL);
	library_close(library);
	return 0;
}

/* ---- a futex in a thread-local variable ---- */

static __thread int local_word;

static void *word_wait(void *arg)
{
	int *_Atomic *at = arg;

	*at = &local_word;
	if (syscall(SYS_futex, &local_word, FUTEX_WAIT_PRIVATE, 0, NULL, NULL, 0))
		printf("wait: %s\n", strerror(errno));
	atomic_store(&started, 1);
	return arg;
}

/* Wake a thread of node 8. The first calls may come before it sleeps. */
static int local_use(void)
{
	static int *_Atomic at;
	pthread_t t;

	if (pthread_create(&t, NULL, word_wait, &at))
		return 1;
	while (!atomic_load(&started))
		if (!at || !syscall(SYS_futex, at, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0))
			sched_yield();
	pthread_join(t, NULL);
	printf("the thread woke up\n");
	return 0;
}

/* ---- stacks of the program, in a page that another thread reads ---- */

static void *stack_read(void *arg)
{
	volatile char *last = arg;
	long sum = 0;

	while (atomic_load(&started))
		sum += *last;
	return (void *)(sum & 1);
}

static int stacks_use(void)
{
	static char area[1 << 16] __attribute__((aligned(4096)));
	pthread_attr_t attr;
	pthread_t reader, t;

	pthread_attr_init(&attr);
	pthread_attr_setstack(&attr, area, sizeof(area));
	atomic_store(&started, 1);
	/* the 1st thread is on node 8, the 2nd one on node 4, and so on */
	if (pthread_create(&reader, NULL, stack_read, area + sizeof(area) - 4096))
		return 1;
	for (int i = 0; i < STACKS; i++)
		if (pthread_create(&t, &attr, result_return, NULL) || pthread_join(t, NULL))
			return 1;
	atomic_store(&started, 0);
	pthread_join(reader, NULL);
	printf("%d threads on one stack\n", STACKS);
	return 0;
}

/* ---- robust mutexes ---- */

static pthread_mutex_t robust, other;

/* Lock two robust mutexes and end with them. Return the sum of the results. */
static void *locks_keep(void *arg)
{
	int ret = pthread_mutex_lock(&robust);

	if (ret == EOWNERDEAD)
		ret += pthread_mutex_consistent(&robust);
	if (pthread_mutex_lock(&other) == EOWNERDEAD)
		ret += EOWNERDEAD + pthread_mutex_consistent(&other);
	sem_post(&sem);
	if (arg)
		sem_wait(arg);
	return (void *)(long)ret;
}

static void *lock_take(void *arg)
{
	struct timespec at;
	int ret;

	clock_gettime(CLOCK_REALTIME, &at);
	at.tv_sec += 3600;
	ret = arg ? pthread_mutex_timedlock(&robust, &at) : pthread_mutex_lock(&robust);
	if (ret == EOWNERDEAD)
		pthread_mutex_consistent(&robust);
	pthread_mutex_unlock(&robust);
	return (void *)(long)ret;
}

static void *lock_spoil(void *arg)
{
	int ret = pthread_mutex_lock(&robust);

	(void)arg;
	pthread_mutex_unlock(&robust);
	return (void *)(long)ret;
}

/* Threads of both machines end with mutexes while threads of both wait for these. */
static void robust_waits(void)
{
	pthread_t owner, t[THREADS];
	int died = 0, taken = 0;
	void *result;
	sem_t end;

	sem_init(&end, 0, 0);
	while (!sem_trywait(&sem))
		;
	if (pthread_create(&owner, NULL, locks_keep, &end))
		exit(1);
	sem_wait(&sem);
	for (int i = 0; i < THREADS; i++)
		if (pthread_create(&t[i], NULL, lock_take, i < 2 ? NULL : &end))
			exit(1);
	sem_post(&end);
	pthread_join(owner, &result);
	for (int i = 0; i < THREADS; i++) {
		pthread_join(t[i], &result);
		died += (long)result == EOWNERDEAD;
		taken += !result;
	}
	printf("the owner has died for %d, not for %d\n", died, taken);
}

static int robust_use(int type)
{
	pthread_mutexattr_t attr;

	pthread_mutexattr_init(&attr);
	pthread_mutexattr_settype(&attr, type);
	pthread_mutexattr_setrobust(&attr, PTHREAD_MUTEX_ROBUST);
	pthread_mutex_init(&robust, &attr);
	pthread_mutex_init(&other, &attr);
	for (int i = 0; i < 5; i++)
		printf("thread %d: %ld\n", i, thread_result(locks_keep, NULL));
	for (int i = 0; i < ROUNDS; i++)
		robust_waits();
	pthread_mutex_lock(&robust);
	printf("again: %d\n", type == PTHREAD_MUTEX_NORMAL ? 0 : pthread_mutex_lock(&robust));
	pthread_mutex_unlock(&robust);
	if (type == PTHREAD_MUTEX_RECURSIVE)
		pthread_mutex_unlock(&robust);
	printf("taken: %ld\n", thread_result(locks_keep, NULL));
	printf("spoilt: %ld\n", thread_result(lock_spoil, NULL));
	printf("lost: %ld\n", thread_result(lock_take, NULL));
	printf("lost: %ld\n", thread_result(lock_take, &sem));
	return 0;
}

/* ---- pages that one node protects ---- */

static __thread sigjmp_buf fault_exit;

static void fault_take(int sig)
{
	siglongjmp(fault_exit, sig);
}

/* Return the value of a byte, or -1 if reading it raises SIGSEGV. */
static void *byte_read(void *p)
{
	return (void *)(long)(sigsetjmp(fault_exit, 1) ? -1 : *(volatile char *)p);
}

static void *byte_write(void *p)
{
	if (sigsetjmp(fault_exit, 1))
		return (void *)-1L;
	*(volatile char *)p = 5;
	return NULL;
}

/* Threads of node 8 use a page that node 4 protects by a system call of its own. */
static void page_protect(char *p)
{
	p[0] = 1;
	syscall(SYS_mprotect, p, 4096, PROT_NONE);
	for (int i = 0; i < 4; i++)
		printf("a byte without rights: %ld, %ld, %ld\n", thread_result(byte_read, p),
		       thread_result(byte_write, p + 1), thread_result(byte_read, p + 2));
	syscall(SYS_mprotect, p, 4096, PROT_READ | PROT_WRITE);
	p[0]++;
	for (int i = 0; i < 4; i++)
		printf("the byte: %ld\n", thread_result(byte_read, p));
	printf("write %ld\n", thread_result(byte_write, p));
}

static int protect_use(void)
{
	char *p = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	signal(SIGSEGV, fault_take);
	for (int i = 0; i < 2; i++)
		page_protect(p);
	return 0;
}

/* ---- more sleeping threads than messages that fit into the queue of a connection ---- */

static void *crowd_wait(void *arg)
{
	pthread_mutex_lock(&lock);
	counter++;
	while (!written)
		pthread_cond_wait(&turned, &lock);
	pthread_mutex_unlock(&lock);
	return arg;
}

static int crowd_use(void)
{
	static pthread_t t[CROWD];

	for (int i = 0; i < CROWD; i++)
		if (pthread_create(&t[i], NULL, crowd_wait, NULL))
			return 1;
	for (bool all = false; !all;) {
		pthread_mutex_lock(&lock);
		all = counter == CROWD;
		pthread_mutex_unlock(&lock);
	}
	pthread_mutex_lock(&lock);
	written = 1;
	pthread_cond_broadcast(&turned);
	pthread_mutex_unlock(&lock);
	for (int i = 0; i < CROWD; i++)
		pthread_join(t[i], NULL);
	printf("%d threads woke up\n", CROWD);
	return 0;
}

/* ---- programs that cannot be executed ---- */

static char *no_arguments[] = { NULL, NULL };

static void exec_show(const char *name, int ret)
{
	int err = errno;

	printf("%s: %d, %s\n", name, ret, strerror(err));
}

static void execs_fail(void)
{
	exec_show("execvp", execvp("no-such-program-of-libsci", no_arguments));
	exec_show("execlp", execlp("", "", NULL));
	exec_show("execv", execv("/does/not/exist", no_arguments));
	exec_show("execvp", execvp("/etc/passwd", no_arguments));
	exec_show("execv", execv("/", no_arguments));
}

static void *result_show(void *arg)
{
	printf("a thread runs\n");
	return arg;
}

/* Make a file that execv(3) refuses with ENOEXEC. */
static bool format_make(char *path)
{
	int fd = mkstemp(path);

	no_arguments[0] = path;
	return fd >= 0 && write(fd, "\177", 1) == 1 && !fchmod(fd, 0700) && !close(fd);
}

/* Before the first thread, and while threads run, the program goes on. */
static int execs_use(bool format)
{
	static char path[] = "/tmp/sci-format-XXXXXX";

	if (!format_make(path))
		return 1;
	for (int i = 0; i < 3; i++) {
		execs_fail();
		if (format)
			exec_show("execv", execv(path, no_arguments));
		thread_result(result_show, NULL);
	}
	unlink(path);
	fflush(stdout);
	return execlp("echo", "echo", "another program", NULL);
}

/* Only threads of node 4 can replace the program. */
static void *program_replace(void *arg)
{
	exec_show("execv", execv("/bin/false", no_arguments));
	return arg;
}

/* A thread runs on node 8, and execv(3) fails. */
static void exec_fails(void)
{
	static char path[] = "/tmp/sci-format-XXXXXX";

	if (thread_result(result_return, NULL) || !format_make(path) ||
	    execv(path, no_arguments) != -1 || errno != ENOEXEC)
		exit(1);
	unlink(path);
}

/* ---- until a test kills a node ---- */

static void *count_forever(void *arg)
{
	/* NOLINTNEXTLINE(bugprone-posix-return): -1 is no error */
	if (pthread_barrier_wait(&barrier) == PTHREAD_BARRIER_SERIAL_THREAD)
		printf("all nodes run until a node is killed\n");
	fflush(stdout);
	for (;;) {
		pthread_mutex_lock(&lock);
		counter++;
		pthread_mutex_unlock(&lock);
	}
	return arg;
}

/* ---- the end ---- */

/* All threads of the program end it at once. */
static void all_exit(const char *how)
{
	static atomic_int turn;

	pthread_barrier_wait(&barrier);
	if (!strcmp(how, "errs"))
		errx(5, "the end");
	if (atomic_fetch_add(&turn, 1) % 2)
		exit(5);
	_exit(5);
}

static void *die(void *arg)
{
	const char *how = arg;
	pthread_mutexattr_t attr;

	if (!strcmp(how, "exits") || !strcmp(how, "errs"))
		all_exit(how);
	if (!elsewhere())
		pthread_barrier_wait(&barrier);
	if (!strcmp(how, "die"))
		syscall(SYS_tgkill, syscall(SYS_getpid), syscall(SYS_gettid), 9);
	if (!strcmp(how, "leave"))
		syscall(SYS_exit_group, 0);
	if (!strcmp(how, "exit"))
		exit(5);
	if (!strcmp(how, "map")) {
		void *p = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, 0, 0);

		exit(p == MAP_FAILED && errno == ENODEV ? 6 : 1);
	}
	pthread_mutexattr_init(&attr);
	exit(pthread_mutexattr_setprotocol(&attr, PTHREAD_PRIO_INHERIT) == ENOTSUP &&
	     pthread_mutexattr_setprotocol(&attr, PTHREAD_PRIO_PROTECT) == ENOTSUP &&
	     pthread_mutexattr_setprotocol(&attr, -1) == EINVAL &&
	     !pthread_mutexattr_setprotocol(&attr, PTHREAD_PRIO_NONE) ? 7 : 1);
}

static void threads_run(void *(*fn)(void *), void *arg)
{
	pthread_t t[THREADS];
	void *result;
	long sum = 0;

	for (int i = 0; i < THREADS; i++)
		if (pthread_create(&t[i], NULL, fn, arg))
			exit(1);
	sem_post(&sem);
	for (int i = 0; i < THREADS; i++) {
		if (pthread_join(t[i], &result))
			exit(1);
		sum += (long)result;
	}
	printf("results %ld\n", sum);
}

int main(int argc, char **argv)
{
	int stack[THREADS] = { 0 };
	long sum = 0;
	char text[37] = "";

	setenv("MACHINES", "first", 1);
	if (pipe(pipes) || pthread_barrier_init(&barrier, NULL, THREADS) ||
	    sem_init(&sem, 0, 0) || pthread_key_create(&key, key_end))
		return 1;
	if (argc > 1 && !strcmp(argv[1], "signals"))
		return signals_use();
	if (argc > 1 && !strcmp(argv[1], "suspend"))
		return suspend_use();
	if (argc > 1 && !strcmp(argv[1], "blocked"))
		return blocked_use();
	if (argc > 1 && !strcmp(argv[1], "vfork"))
		return vfork_use();
	if (argc > 1 && strcmp(argv[1], "errs") &&
	    (!strncmp(argv[1], "err", 3) || !strcmp(argv[1], "line")))
		return message_use(argv[1]);
	if (argc > 1 && !strcmp(argv[1], "close"))
		return close_use();
	if (argc > 1 && !strcmp(argv[1], "local"))
		return local_use();
	if (argc > 1 && !strcmp(argv[1], "environment"))
		return environment_use();
	if (argc > 1 && !strcmp(argv[1], "variables"))
		return variables_use();
	if (argc > 1 && !strcmp(argv[1], "stacks"))
		return stacks_use();
	if (argc > 1 && !strcmp(argv[1], "exec"))
		return execl("/bin/echo", "echo", "another program", NULL);
	if (argc > 1 && !strcmp(argv[1], "robust"))
		return robust_use(PTHREAD_MUTEX_NORMAL) | robust_use(PTHREAD_MUTEX_ERRORCHECK) |
		       robust_use(PTHREAD_MUTEX_RECURSIVE);
	if (argc > 1 && !strcmp(argv[1], "protect"))
		return protect_use();
	if (argc > 1 && !strcmp(argv[1], "crowd"))
		return crowd_use();
	if (argc > 1 && (!strcmp(argv[1], "execs") || !strcmp(argv[1], "format")))
		return execs_use(!strcmp(argv[1], "format"));
	if (argc > 1 && !strcmp(argv[1], "forever"))
		threads_run(count_forever, NULL);
	if (argc > 1 && !strcmp(argv[1], "replace"))
		return (int)thread_result(program_replace, NULL);
	if (argc > 1 && !strcmp(argv[1], "leave"))
		exec_fails();
	if (argc > 1)
		threads_run(die, argv[1]);
	threads_run(body, stack);
	for (int i = 0; i < WORDS; i++)
		sum += words[i];
	printf("counter %d atomic %d written %d once %d ended %d\n", counter, atomic, written,
	       once_runs, ended);
	printf("stack %d %d %d %d, words %ld\n", stack[0], stack[1], stack[2], stack[3], sum);
	printf("read %ld: %s, variable %s\n", (long)read(pipes[0], text, 36), text,
	       getenv("MACHINES"));
	return 4;
}
