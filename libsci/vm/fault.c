// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/*
 * DOC: faults
 *
 * A fault can happen anywhere: in malloc(), or in a call of another endpoint that copies
 * from a page. So the handler of SIGSEGV takes no lock and calls no other part of libsci: it
 * pushes a job onto a stack, wakes the worker, and sleeps until the worker has done the job.
 */
#include "libsci/vm/internal.h"

#include <linux/futex.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "libsci/base/thread.h"

static _Atomic(struct sci_vm *) memories[VM_MAX];
static pthread_mutex_t install_lock = PTHREAD_MUTEX_INITIALIZER;
static bool installed;
static struct sigaction before;

static long fault_futex(_Atomic uint32_t *word, int op, uint32_t value)
{
	return syscall(SYS_futex, word, op | FUTEX_PRIVATE_FLAG, value, NULL, NULL, 0);
}

/* Give the worker a job. Safe in a signal handler. */
void vm_job_push(struct sci_vm *vm, struct vm_job *job)
{
	struct vm_job *head = atomic_load(&vm->jobs);

	do {
		job->next = head;
	} while (!atomic_compare_exchange_weak(&vm->jobs, &head, job));
	atomic_fetch_add(&vm->bell, 1);
	fault_futex(&vm->bell, FUTEX_WAKE, 1);
}

/* ---- the handler ---- */

static bool fault_is_ours(struct sci_vm *vm, uintptr_t addr)
{
	uint32_t n = atomic_load(&vm->adopted_n);

	if (atomic_load(&vm->forked))
		return false;
	if (addr - (uintptr_t)vm->base < vm->length)
		return true;
	for (uint32_t i = 0; i < n; i++)
		if (addr >= atomic_load(&vm->adopted[i][0]) &&
		    addr < atomic_load(&vm->adopted[i][1]))
			return true;
	return false;
}

/*
 * Resolve a fault. Return true if the thread may repeat the access. After -ECONNRESET the page
 * is private memory of zeroes.
 */
static bool fault_resolve(void *addr, enum vm_access access)
{
	for (unsigned int i = 0; i < VM_MAX; i++) {
		struct sci_vm *vm = atomic_load(&memories[i]);
		struct vm_job job = { .kind = VM_JOB_FAULT, .addr = addr, .access = access };

		if (!vm || !fault_is_ours(vm, (uintptr_t)addr))
			continue;
		vm_job_push(vm, &job);
		while (!atomic_load(&job.done))
			fault_futex(&job.done, FUTEX_WAIT, 0);
		return !job.error || job.error == -ECONNRESET;
	}
	return false;
}

/* Pass a fault that is not in a memory to the program's handler, or to the kernel. */
static void fault_pass_on(int sig, siginfo_t *info, void *context)
{
	if (before.sa_flags & SA_SIGINFO) {
		before.sa_sigaction(sig, info, context);
	} else if (before.sa_handler != SIG_DFL && before.sa_handler != SIG_IGN) {
		before.sa_handler(sig);
	} else {
		struct sigaction dfl = { .sa_handler = SIG_DFL };

		/*
		 * the instruction faults again and ends the program; a signal of kill() does
		 * not repeat
		 */
		sigaction(sig, &dfl, NULL);
		if (info->si_code <= 0)
			raise(sig);
	}
}

static void fault_handle(int sig, siginfo_t *info, void *context)
{
	enum vm_access access = vm_access_of(context);
	int saved = errno;

	if (info->si_code <= 0 || access == VM_ACCESS_FETCH ||
	    !fault_resolve(info->si_addr, access))
		fault_pass_on(sig, info, context);
	errno = saved;
}

static int handler_install(void)
{
	struct sigaction sa = { .sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER | SA_RESTART };

	if (installed)
		return 0;
	sa.sa_sigaction = fault_handle;
	sigemptyset(&sa.sa_mask);
	if (sigaction(SIGSEGV, &sa, &before))
		return -errno;
	installed = true;
	return 0;
}

static void fault_fork_child(void)
{
	for (unsigned int i = 0; i < VM_MAX; i++) {
		struct sci_vm *vm = atomic_load(&memories[i]);

		if (vm)
			atomic_store(&vm->forked, true);
	}
}

static void fork_handler_install(void)
{
	pthread_atfork(NULL, NULL, fault_fork_child);
}

/* ---- the worker ---- */

/*
 * Return true if the access of a fault is a store. An unknown access to a page that is not
 * readable counts as a load. If it is a store, the thread faults again, on a readable page.
 */
static bool access_is_store(enum vm_access access, const struct vm_page *p)
{
	return access == VM_ACCESS_STORE ||
	       (access == VM_ACCESS_UNKNOWN && p->state == VM_READABLE && !p->armed);
}

static int job_fault(struct sci_vm *vm, const struct vm_job *job)
{
	struct vm_range *r = vm_range_lookup(vm, job->addr);
	size_t i;

	if (!r)
		return -EFAULT;
	i = vm_page_index(r, job->addr);
	VM_COUNT(vm, faults, 1);
	return vm_view(vm, r, i, access_is_store(job->access, &r->pages[i]));
}

/* Do a job for another member, which may name only a range that a member has allocated. */
static void job_remote(struct sci_vm *vm, const struct vm_job *job)
{
	struct vm_range *r = vm_range_lookup(vm, job->addr);
	struct vm_wire w = { .value = -EFAULT };

	if (!r || r->addr != job->addr || r->adopted) {
		vm_answer(vm, job->rank, job->id, &w);
		return;
	}
	w.value = 0;
	if (job->kind == VM_JOB_FREE)
		vm_range_remove(vm, r);
	else if (r->flags & SCI_VM_EAGER)
		w.value = vm_views_eager(vm, r);
	vm_answer(vm, job->rank, job->id, &w);
}

/* Do jobs in the order of arrival. Return false after the job that stops the worker. */
static bool jobs_run(struct sci_vm *vm)
{
	struct vm_job *job = atomic_exchange(&vm->jobs, NULL), *list = NULL;
	bool go_on = true;

	while (job) {
		struct vm_job *next = job->next;

		job->next = list;
		list = job;
		job = next;
	}
	while ((job = list)) {
		list = job->next;
		if (job->kind == VM_JOB_STOP) {
			go_on = false;
			continue;
		}
		pthread_mutex_lock(&vm->lock);
		if (job->kind == VM_JOB_FAULT)
			job->error = job_fault(vm, job);
		else
			job_remote(vm, job);
		pthread_mutex_unlock(&vm->lock);
		if (job->kind != VM_JOB_FAULT) {
			free(job);
			continue;
		}
		/* the waiting thread may return, and reuse its stack, before the wake-up */
		atomic_store(&job->done, 1);
		fault_futex(&job->done, FUTEX_WAKE, 1);
	}
	return go_on;
}

static void *fault_worker(void *arg)
{
	struct sci_vm *vm = arg;

	for (;;) {
		uint32_t bell = atomic_load(&vm->bell);

		if (!jobs_run(vm))
			return NULL;
		if (!atomic_load(&vm->jobs))
			fault_futex(&vm->bell, FUTEX_WAIT, bell);
	}
}

/*
 * Drop the requests of other members that arrived after the worker's end. After a death, another
 * member may free a range while this member closes.
 */
void vm_jobs_drop(struct sci_vm *vm)
{
	struct vm_job *job = atomic_exchange(&vm->jobs, NULL);

	while (job) {
		struct vm_job *next = job->next;

		/* a fault's job is on the stack of its thread */
		if (job->kind != VM_JOB_FAULT)
			free(job);
		job = next;
	}
}

/*
 * Start to resolve faults. Return: 0; -ENOSPC: the process has too many memories; -errno. Call
 * vm_fault_stop() also after an error.
 */
int vm_fault_start(struct sci_vm *vm)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	unsigned int i = 0;
	int ret;

	pthread_once(&once, fork_handler_install);
	ret = sci_thread_start(&vm->worker, fault_worker, vm, "sci-vm-faults");
	if (ret)
		return ret;
	vm->worker_runs = true;
	pthread_mutex_lock(&install_lock);
	while (i < VM_MAX && atomic_load(&memories[i]))
		i++;
	ret = i == VM_MAX ? -ENOSPC : handler_install();
	if (!ret)
		atomic_store(&memories[i], vm);
	pthread_mutex_unlock(&install_lock);
	return ret;
}

void vm_fault_stop(struct sci_vm *vm)
{
	struct vm_job stop = { .kind = VM_JOB_STOP };
	struct sigaction now;
	bool last = true;

	if (!vm->worker_runs)
		return;
	vm_job_push(vm, &stop);
	pthread_join(vm->worker, NULL);
	pthread_mutex_lock(&install_lock);
	for (unsigned int i = 0; i < VM_MAX; i++) {
		if (atomic_load(&memories[i]) == vm)
			atomic_store(&memories[i], NULL);
		last = last && !atomic_load(&memories[i]);
	}
	/* a handler that the program has set later stays, and may still call fault_handle() */
	if (last && installed && !sigaction(SIGSEGV, NULL, &now) &&
	    now.sa_flags & SA_SIGINFO && now.sa_sigaction == fault_handle) {
		sigaction(SIGSEGV, &before, NULL);
		installed = false;
	}
	pthread_mutex_unlock(&install_lock);
}

/* ---- touching ---- */

int sci_vm_touch(struct sci_vm *vm, const void *addr, size_t len, enum sci_vm_access access)
{
	const uint8_t *at = addr, *end = at + len;
	size_t remote = 0;
	int ret = 0;

	if (!vm || access > SCI_VM_WRITE || end < at)
		return -EINVAL;
	ret = vm_usable(vm);
	while (!ret && at < end) {
		struct vm_range *r;
		size_t i;

		pthread_mutex_lock(&vm->lock);
		r = vm_range_lookup(vm, at);
		if (!r) {
			/* go to the next page: ranges begin at page boundaries */
			at = (const uint8_t *)(((uintptr_t)at | (VM_PAGE_MIN - 1)) + 1);
		} else {
			i = vm_page_index(r, at);
			if (r->pages[i].state == VM_NONE)
				VM_COUNT(vm, touches, 1);
			ret = vm_view(vm, r, i, access == SCI_VM_WRITE);
			remote += r->pages[i].window != 0;
			at = vm_page_addr(r, i) + vm_page_size(r);
		}
		pthread_mutex_unlock(&vm->lock);
		if (!at)
			break;
	}
	return ret ? ret : remote > vm->windows_max ? -ENOSPC : 0;
}
