// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/*
 * Calls each function of <pthread.h>, <semaphore.h> and <threads.h> that threads of several nodes
 * may use, and provokes its errors. The output is the same on one node and on several.
 * With an argument it leaves out vfork(), which threads on other machines cannot call.
 */
#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <threads.h>
#include <time.h>
#include <unistd.h>

#define THREADS	6

#define SHOW(expression) printf("%-60s %ld\n", #expression, (long)(expression))

typedef void *(*body)(void *arg);

static pthread_t start(body fn, void *arg)
{
	pthread_t t;
	int ret = pthread_create(&t, NULL, fn, arg);

	if (ret) {
		printf("pthread_create: %s\n", strerror(ret));
		exit(1);
	}
	return t;
}

static long join(pthread_t t)
{
	void *result = NULL;
	int ret = pthread_join(t, &result);

	return ret ? -ret : (long)result;
}

/* Run @fn in THREADS threads. Return the sum of their results. */
static long all(body fn)
{
	pthread_t t[THREADS];
	long sum = 0;

	for (long i = 0; i < THREADS; i++)
		t[i] = start(fn, (void *)i);
	for (int i = 0; i < THREADS; i++)
		sum += join(t[i]);
	return sum;
}

static struct timespec in_ms(clockid_t clock, long ms)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	ts.tv_nsec += ms * 1000000;
	ts.tv_sec += ts.tv_nsec / 1000000000;
	ts.tv_nsec %= 1000000000;
	return ts;
}

/* ---- memory ---- */

static _Thread_local int local = 5;
static int global;
static int initialised = 42;

static void *memory_body(void *arg)
{
	int *stack = arg;

	local++;
	(*stack)++;
	global = initialised++;
	return strdup("made by a thread");
}

static void *local_address(void *arg)
{
	*(int **)arg = &local;
	local = 77;
	pthread_exit((void *)7L);
}

static void memory(void)
{
	int stack = 1, *address;
	char *text, *longer;

	for (int i = 0; i < 3; i++) {
		text = (char *)join(start(memory_body, &stack));
		puts(text);
		longer = realloc(text, 100000);
		puts(longer);
		free(longer);
	}
	SHOW(stack);
	SHOW(local);
	SHOW(global);
	SHOW(initialised);
	SHOW(join(start(local_address, &address)));
}

static void *mapping_body(void *arg)
{
	memset(arg, 3, 8192);
	return (void *)(long)((char *)arg)[8192];
}

static void mapping(void)
{
	void *aligned = aligned_alloc(4096, 8192);
	char *p = mmap(NULL, 65536, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char *q = malloc(10), *r;

	p[8192] = 9;
	SHOW(join(start(mapping_body, p)));
	SHOW(join(start(mapping_body, p)));
	SHOW(p[8191]);
	SHOW(p[8193]);
	SHOW(munmap(p, 65536));
	memset(aligned, 1, 8192);
	SHOW((uintptr_t)aligned % 4096);
	free(aligned);
	SHOW(posix_memalign((void **)&r, 3, 10) == EINVAL);
	free(q);
	{
		volatile size_t huge = SIZE_MAX / 2;
		void *volatile none = calloc(huge, 4);

		SHOW(none == NULL);
		free(none);
	}
}

#define BLOCKS	64

static void *_Atomic blocks[BLOCKS];

/* Put blocks into the table, and free those that other threads have put there. */
static void *exchange_body(void *arg)
{
	unsigned int seed = (unsigned int)(long)arg;
	long bad = 0;

	for (int i = 0; i < 20000; i++) {
		unsigned int n, kind;
		unsigned char *p, *larger, *old;

		seed = seed * 1664525u + 1013904223u;
		n = 8 + (seed >> 8) % 700;
		kind = seed >> 28;
		p = kind == 0 ? aligned_alloc(64, n / 64 * 64 + 64) :
		    kind == 1 ? calloc(1, n) : malloc(n);
		bad += malloc_usable_size(p) < n || (kind == 0 && (uintptr_t)p % 64) ||
		       (kind == 1 && (p[0] || p[n / 2] || p[n - 1]));
		memcpy(p, &n, sizeof(n));
		memset(p + sizeof(n), (int)n, n - sizeof(n));
		larger = kind == 2 ? realloc(p, 2 * n) : NULL;
		p = larger ? larger : p;
		old = atomic_exchange(&blocks[(seed >> 16) % BLOCKS], p);
		if (!old)
			continue;
		memcpy(&n, old, sizeof(n));
		bad += n > 708 || old[sizeof(n)] != (unsigned char)n ||
		       old[n - 1] != (unsigned char)n;
		free(old);
	}
	return (void *)bad;
}

static void exchange(void)
{
	SHOW(all(exchange_body));
	SHOW(all(exchange_body));
	for (int i = 0; i < BLOCKS; i++)
		free(blocks[i]);
}

/* Before the first thread: a child frees its copies of the parent's blocks. */
static void forks(void)
{
	char *p[40];
	int status = -1;
	pid_t pid;

	for (int i = 0; i < 40; i++) {
		p[i] = malloc(40);
		memset(p[i], i, 40);
	}
	for (int i = 0; i < 20; i++)
		free(p[i]);
	fflush(stdout);
	pid = fork();
	if (!pid) {
		int bad = 0;

		for (int i = 0; i < 20; i++) {
			p[i] = malloc(40);
			memset(p[i], 99, 40);
		}
		for (int i = 20; i < 40; i++) {
			bad += p[i][0] != i || p[i][39] != i;
			free(p[i]);
		}
		_exit(bad);
	}
	SHOW(waitpid(pid, &status, 0) == pid);
	SHOW(status);
	for (int i = 20; i < 40; i++) {
		SHOW(p[i][0] == i && p[i][39] == i);
		free(p[i]);
	}
}

/* A child that cannot execute a program ends alone. */
static void *vfork_body(void *arg)
{
	pid_t pid = vfork();

	if (!pid) {
		execl("/does/not/exist", "none", NULL);
		_exit(3);
	}
	return (void *)(long)(waitpid(pid, arg, 0) == pid);
}

static void vforks(void)
{
	int status;

	for (int i = 0; i < 3; i++) {
		status = -1;
		SHOW(join(start(vfork_body, &status)));
		SHOW(WEXITSTATUS(status));
	}
	SHOW((long)vfork_body(&status));
}

/* ---- create, join, detach ---- */

static sem_t gate;

static void *wait_gate(void *arg)
{
	while (sem_wait(&gate))
		;
	return arg;
}

static void *join_self(void *arg)
{
	(void)arg;
	return (void *)(long)pthread_join(pthread_self(), NULL);
}

static void *is_equal(void *arg)
{
	return (void *)(long)pthread_equal(pthread_self(), *(pthread_t *)arg);
}

static void lives(void)
{
	struct timespec at = in_ms(CLOCK_REALTIME, 20);
	pthread_attr_t attr;
	pthread_t t, self = pthread_self();
	void *result;
	int state;

	sem_init(&gate, 0, 0);
	SHOW(join(start(join_self, NULL)) == EDEADLK);
	SHOW(join(start(is_equal, &self)));
	t = start(wait_gate, (void *)11L);
	SHOW(pthread_tryjoin_np(t, &result) == EBUSY);
	SHOW(pthread_timedjoin_np(t, &result, &at) == ETIMEDOUT);
	sem_post(&gate);
	SHOW(pthread_join(t, &result));
	SHOW(result);

	pthread_attr_init(&attr);
	SHOW(pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED));
	SHOW(pthread_create(&t, &attr, wait_gate, NULL));
	SHOW(pthread_join(t, NULL) == EINVAL);
	SHOW(pthread_detach(t) == EINVAL);
	sem_post(&gate);
	pthread_attr_destroy(&attr);
	t = start(wait_gate, NULL);
	SHOW(pthread_detach(t));
	sem_post(&gate);
	pthread_attr_init(&attr);
	SHOW(pthread_attr_setstacksize(&attr, 20 << 20));
	SHOW(pthread_create(&t, &attr, is_equal, &self));
	SHOW(join(t));
	SHOW(pthread_getattr_np(self, &attr));
	SHOW(pthread_attr_getdetachstate(&attr, &state));
	SHOW(state == PTHREAD_CREATE_JOINABLE);
}

static void *own_stack_body(void *arg)
{
	char here;

	return (void *)(long)(&here > (char *)arg && &here < (char *)arg + 262144);
}

static void stacks(void)
{
	char *stack = aligned_alloc(4096, 262144);
	pthread_attr_t attr;
	pthread_t t;

	pthread_attr_init(&attr);
	SHOW(pthread_attr_setstack(&attr, stack, 262144));
	for (int i = 0; i < 3; i++) {
		SHOW(pthread_create(&t, &attr, own_stack_body, stack));
		SHOW(join(t));
	}
	free(stack);
}

static void *churn_body(void *arg)
{
	return arg;
}

static void churn(void)
{
	long sum = 0;

	for (int i = 0; i < 300; i++)
		sum += join(start(churn_body, (void *)(long)i));
	SHOW(sum);
}

/* ---- mutexes ---- */

static pthread_mutex_t m = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t recursive = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;
static pthread_mutex_t checking = PTHREAD_ERRORCHECK_MUTEX_INITIALIZER_NP;
static pthread_mutex_t robust;
static long count;

static void *count_body(void *arg)
{
	(void)arg;
	for (int i = 0; i < 5000; i++) {
		pthread_mutex_lock(&m);
		count++;
		pthread_mutex_unlock(&m);
		pthread_mutex_lock(&recursive);
		pthread_mutex_lock(&recursive);
		count++;
		pthread_mutex_unlock(&recursive);
		pthread_mutex_unlock(&recursive);
	}
	return NULL;
}

static void *try_body(void *arg)
{
	return (void *)(long)pthread_mutex_trylock(arg);
}

static void *unlock_body(void *arg)
{
	return (void *)(long)pthread_mutex_unlock(arg);
}

static void *timed_body(void *arg)
{
	struct timespec at = in_ms(CLOCK_REALTIME, 20);
	struct timespec at2 = in_ms(CLOCK_MONOTONIC, 40);
	int ret = pthread_mutex_timedlock(arg, &at);

	return (void *)(long)(ret == ETIMEDOUT &&
			      pthread_mutex_clocklock(arg, CLOCK_MONOTONIC, &at2) == ETIMEDOUT);
}

static void *die_with_lock(void *arg)
{
	return (void *)(long)pthread_mutex_lock(arg);
}

static pthread_mutex_t separate = PTHREAD_MUTEX_INITIALIZER;

static void *hold_and_post(void *arg)
{
	(void)arg;
	pthread_mutex_lock(&separate);
	sem_post(&gate);
	usleep(20000);
	pthread_mutex_unlock(&separate);
	return NULL;
}

static void mutexes(void)
{
	pthread_mutexattr_t attr;
	pthread_mutex_t inherit;
	pthread_t t;

	all(count_body);
	SHOW(count > 0);
	pthread_mutex_lock(&m);
	SHOW(join(start(try_body, &m)) == EBUSY);
	SHOW(join(start(timed_body, &m)));
	pthread_mutex_unlock(&m);
	pthread_mutex_lock(&checking);
	SHOW(pthread_mutex_lock(&checking) == EDEADLK);
	SHOW(join(start(unlock_body, &checking)) == EPERM);
	SHOW(join(start(try_body, &checking)) == EBUSY);
	pthread_mutex_unlock(&checking);
	SHOW(pthread_mutex_unlock(&checking) == EPERM);
	pthread_mutexattr_init(&attr);
	pthread_mutexattr_setrobust(&attr, PTHREAD_MUTEX_ROBUST);
	SHOW(pthread_mutex_init(&robust, &attr));
	SHOW(join(start(die_with_lock, &robust)));
	SHOW(pthread_mutex_lock(&robust) == EOWNERDEAD);
	SHOW(pthread_mutex_consistent(&robust));
	SHOW(pthread_mutex_unlock(&robust));
	SHOW(join(start(die_with_lock, &robust)));
	SHOW(pthread_mutex_lock(&robust) == EOWNERDEAD);
	SHOW(pthread_mutex_unlock(&robust));
	SHOW(pthread_mutex_lock(&robust) == ENOTRECOVERABLE);
	pthread_mutexattr_init(&attr);
	pthread_mutexattr_setprotocol(&attr, PTHREAD_PRIO_INHERIT);
	SHOW(pthread_mutex_init(&inherit, &attr));
	SHOW(pthread_mutex_lock(&inherit));
	SHOW(join(start(try_body, &inherit)) == EBUSY);
	SHOW(pthread_mutex_unlock(&inherit));
	SHOW(pthread_mutex_destroy(&inherit));
	t = start(hold_and_post, NULL);
	sem_wait(&gate);
	SHOW(pthread_mutex_lock(&separate));
	SHOW(pthread_mutex_unlock(&separate));
	join(t);
}

/* ---- condition variables, barriers, read-write locks, semaphores, spin locks ---- */

static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static int turn;

/* Threads take turns: 0, 1, ... 5, 0, ... */
static void *turns_body(void *arg)
{
	int me = (int)(long)arg;

	for (int i = 0; i < 20; i++) {
		pthread_mutex_lock(&m);
		while (turn % THREADS != me)
			pthread_cond_wait(&cond, &m);
		turn++;
		pthread_cond_broadcast(&cond);
		pthread_mutex_unlock(&m);
	}
	return NULL;
}

static pthread_barrier_t barrier;

static void *barrier_body(void *arg)
{
	long serial = 0;

	(void)arg;
	for (int i = 0; i < 50; i++)
		/* NOLINTNEXTLINE(bugprone-posix-return): the constant is -1 */
		serial += pthread_barrier_wait(&barrier) == PTHREAD_BARRIER_SERIAL_THREAD;
	return (void *)serial;
}

static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static long written[2];

static void *rwlock_body(void *arg)
{
	long differ = 0;

	for (int i = 0; i < 500; i++) {
		if ((long)arg % 3 == 0) {
			pthread_rwlock_wrlock(&rwlock);
			written[0]++;
			written[1]++;
		} else {
			pthread_rwlock_rdlock(&rwlock);
			differ += written[0] != written[1];
		}
		pthread_rwlock_unlock(&rwlock);
	}
	return (void *)differ;
}

static void *rwlock_try(void *arg)
{
	struct timespec at = in_ms(CLOCK_REALTIME, 10);

	return (void *)(long)((pthread_rwlock_trywrlock(arg) == EBUSY) +
			      2 * (pthread_rwlock_tryrdlock(arg) == EBUSY) +
			      4 * (pthread_rwlock_timedwrlock(arg, &at) == ETIMEDOUT) +
			      8 * (pthread_rwlock_timedrdlock(arg, &at) == ETIMEDOUT));
}

static pthread_spinlock_t spin;

static void *spin_body(void *arg)
{
	(void)arg;
	for (int i = 0; i < 2000; i++) {
		pthread_spin_lock(&spin);
		count++;
		pthread_spin_unlock(&spin);
	}
	return NULL;
}

static _Atomic long atomic;

static void *atomic_body(void *arg)
{
	(void)arg;
	for (int i = 0; i < 20000; i++)
		atomic++;
	return NULL;
}

static void others(void)
{
	struct timespec at = in_ms(CLOCK_REALTIME, 20);
	pthread_condattr_t attr;
	pthread_cond_t monotonic;
	int value;

	all(turns_body);
	SHOW(turn);
	pthread_mutex_lock(&m);
	SHOW(pthread_cond_timedwait(&cond, &m, &at) == ETIMEDOUT);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	SHOW(pthread_cond_init(&monotonic, &attr));
	at = in_ms(CLOCK_MONOTONIC, 20);
	SHOW(pthread_cond_timedwait(&monotonic, &m, &at) == ETIMEDOUT);
	SHOW(pthread_cond_destroy(&monotonic));
	pthread_mutex_unlock(&m);
	SHOW(pthread_barrier_init(&barrier, NULL, THREADS));
	SHOW(all(barrier_body));
	SHOW(pthread_barrier_destroy(&barrier));
	SHOW(pthread_barrier_init(&barrier, NULL, 0) == EINVAL);
	SHOW(all(rwlock_body));
	SHOW(written[0]);
	pthread_rwlock_wrlock(&rwlock);
	SHOW(join(start(rwlock_try, &rwlock)));
	SHOW(pthread_rwlock_unlock(&rwlock));
	count = 0;
	pthread_spin_init(&spin, PTHREAD_PROCESS_PRIVATE);
	all(spin_body);
	SHOW(count);
	all(atomic_body);
	SHOW(atomic);
	at = in_ms(CLOCK_REALTIME, 10);
	SHOW(sem_timedwait(&gate, &at));
	SHOW(errno == ETIMEDOUT);
	SHOW(sem_trywait(&gate));
	SHOW(errno == EAGAIN);
	sem_post(&gate);
	SHOW(sem_getvalue(&gate, &value));
	SHOW(value);
	sem_wait(&gate);
}

/* ---- once, keys ---- */

static pthread_once_t once = PTHREAD_ONCE_INIT, cancelled_once = PTHREAD_ONCE_INIT;
static _Atomic int once_calls, destroyed;
static pthread_key_t key;

static void once_fn(void)
{
	usleep(10000);
	once_calls++;
}

static void *once_body(void *arg)
{
	(void)arg;
	pthread_once(&once, once_fn);
	return (void *)(long)once_calls;
}

static void once_sleep(void)
{
	if (once_calls++ == 1) {
		sem_post(&gate);
		pause();
	}
}

static void *once_cancelled(void *arg)
{
	(void)arg;
	pthread_once(&cancelled_once, once_sleep);
	return NULL;
}

static void key_destructor(void *value)
{
	destroyed += (int)(long)value;
	if ((long)value == 1)
		pthread_setspecific(key, (void *)100L);
}

static void *key_body(void *arg)
{
	(void)arg;
	if (pthread_getspecific(key))
		return (void *)-1L;
	pthread_setspecific(key, (void *)1L);
	return (void *)(long)(pthread_getspecific(key) == (void *)1L);
}

static void once_and_keys(void)
{
	pthread_t t;

	SHOW(all(once_body));
	SHOW(once_calls);
	t = start(once_cancelled, NULL);
	sem_wait(&gate);
	SHOW(pthread_cancel(t));
	SHOW(join(t) == (long)PTHREAD_CANCELED);
	SHOW(join(start(once_cancelled, NULL)));
	SHOW(once_calls);
	SHOW(pthread_key_create(&key, key_destructor));
	SHOW(all(key_body));
	SHOW(destroyed);
	SHOW(pthread_setspecific(key, &destroyed));
	SHOW(pthread_key_delete(key));
	SHOW(pthread_key_delete(key) == EINVAL);
	SHOW(pthread_setspecific(key, &destroyed) == EINVAL);
}

/* ---- cancellation, signals, names ---- */

static _Atomic int cleaned;

static void cleanup(void *arg)
{
	cleaned += (int)(long)arg;
}

static void *cancel_body(void *arg)
{
	pthread_cleanup_push(cleanup, (void *)1L);
	pthread_cleanup_push(cleanup, (void *)10L);
	sem_post(&gate);
	if (arg)
		pause();
	else
		pthread_cond_wait(&cond, &m);
	pthread_cleanup_pop(0);
	pthread_cleanup_pop(0);
	return NULL;
}

static void *cond_cancel_body(void *arg)
{
	(void)arg;
	pthread_mutex_lock(&m);
	pthread_cleanup_push((void (*)(void *))(void (*)(void))pthread_mutex_unlock, &m);
	sem_post(&gate);
	for (;;)
		pthread_cond_wait(&cond, &m);
	pthread_cleanup_pop(1);
	return NULL;
}

static void *disabled_body(void *arg)
{
	int old;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &old);
	sem_post(&gate);
	usleep(20000);
	cleaned += 1000;
	pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, &old);
	pthread_testcancel();
	return arg;
}

static void *async_body(void *arg)
{
	int old;

	(void)arg;
	pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, &old);
	sem_post(&gate);
	for (;;)
		;
	return NULL;
}

static _Atomic long signalled;

static void handler(int sig)
{
	(void)sig;
	signalled = (long)pthread_self();
}

static void *signal_body(void *arg)
{
	(void)arg;
	sem_post(&gate);
	pause();
	return (void *)(long)(signalled == (long)pthread_self());
}

static void *sigwait_body(void *arg)
{
	sigset_t set;
	int sig = 0;

	(void)arg;
	sigemptyset(&set);
	sigaddset(&set, SIGUSR2);
	sem_post(&gate);
	sigwait(&set, &sig);
	return (void *)(long)(sig == SIGUSR2);
}

static void *pid_body(void *arg)
{
	return (void *)(long)(getpid() == (pid_t)(long)arg);
}

static void cancels_and_signals(void)
{
	struct sigaction sa = { .sa_handler = handler };
	sigset_t set;
	char name[20];
	pthread_t t[THREADS];

	for (long i = 0; i < THREADS; i++) {
		t[i] = start(i % 2 ? cancel_body : cond_cancel_body, (void *)i);
		sem_wait(&gate);
		SHOW(pthread_cancel(t[i]));
		SHOW(join(t[i]) == (long)PTHREAD_CANCELED);
	}
	SHOW(cleaned);
	SHOW(pthread_mutex_trylock(&m));
	pthread_mutex_unlock(&m);
	for (int i = 0; i < 2; i++) {
		t[0] = start(disabled_body, NULL);
		sem_wait(&gate);
		SHOW(pthread_cancel(t[0]));
		SHOW(join(t[0]) == (long)PTHREAD_CANCELED);
		t[0] = start(async_body, NULL);
		sem_wait(&gate);
		SHOW(pthread_cancel(t[0]));
		SHOW(join(t[0]) == (long)PTHREAD_CANCELED);
	}
	SHOW(cleaned);
	sigaction(SIGUSR1, &sa, NULL);
	sigemptyset(&set);
	sigaddset(&set, SIGUSR2);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	for (int i = 0; i < 3; i++) {
		t[0] = start(signal_body, NULL);
		sem_wait(&gate);
		SHOW(pthread_kill(t[0], 0));
		usleep(20000);
		SHOW(pthread_kill(t[0], SIGUSR1));
		SHOW(join(t[0]));
		t[0] = start(sigwait_body, NULL);
		sem_wait(&gate);
		SHOW(pthread_kill(t[0], SIGUSR2));
		SHOW(join(t[0]));
		SHOW(join(start(pid_body, (void *)(long)getpid())));
	}
	t[0] = start(wait_gate, NULL);
	SHOW(pthread_setname_np(t[0], "a-name"));
	SHOW(pthread_getname_np(t[0], name, sizeof(name)));
	puts(name);
	SHOW(pthread_setname_np(t[0], "a name that is far too long") == ERANGE);
	sem_post(&gate);
	join(t[0]);
}

/* ---- C11 ---- */

static mtx_t c_mutex;
static cnd_t c_cond;
static once_flag c_once = ONCE_FLAG_INIT;
static tss_t c_key;
static int c_count;

static void c_once_fn(void)
{
	c_count += 100;
}

static int c_body(void *arg)
{
	call_once(&c_once, c_once_fn);
	tss_set(c_key, arg);
	mtx_lock(&c_mutex);
	c_count++;
	cnd_broadcast(&c_cond);
	while (c_count < 100 + THREADS)
		cnd_wait(&c_cond, &c_mutex);
	mtx_unlock(&c_mutex);
	if (tss_get(c_key) != arg)
		return 1000;
	if ((long)arg == 2)
		thrd_exit(20);
	return (int)(long)arg;
}

static void c11(void)
{
	thrd_t t[THREADS];
	int result, sum = 0;

	SHOW(mtx_init(&c_mutex, mtx_plain) == thrd_success);
	SHOW(cnd_init(&c_cond) == thrd_success);
	SHOW(tss_create(&c_key, NULL) == thrd_success);
	for (long i = 0; i < THREADS; i++)
		SHOW(thrd_create(&t[i], c_body, (void *)i) == thrd_success);
	for (int i = 0; i < THREADS; i++) {
		SHOW(thrd_join(t[i], &result) == thrd_success);
		sum += result;
	}
	SHOW(sum);
	SHOW(c_count);
}

int main(int argc, char **argv)
{
	(void)argv;
	forks();
	memory();
	exchange();
	mapping();
	if (argc == 1)
		vforks();
	lives();
	stacks();
	churn();
	mutexes();
	others();
	once_and_keys();
	cancels_and_signals();
	c11();
	return 0;
}
