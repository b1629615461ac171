// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/*
 * Barriers, mutexes and progress counters.
 *
 * A mutex is a lock of the team between processes and a semaphore between the threads of this
 * process.  A progress counter is a row of cells in each process's symmetric memory: a process
 * stores its value into its own column in all processes, and reads its own memory.
 */
#include "libsci/smi/internal.h"

#include <errno.h>
#include <limits.h>
#include <semaphore.h>
#include <string.h>

#define BARRIERS_MAX	64

struct smi_shared *smi_shared;

struct mutex {
	sem_t threads;
	bool used;
	bool listed;			/* made by SMI_MUTEX_INIT() */
	int proc;
};

static struct mutex mutexes[SMI_LOCKS_MAX];
static bool barriers[BARRIERS_MAX];
static int counters;
/* serializes this process's stores of counters */
static pthread_mutex_t counters_store = PTHREAD_MUTEX_INITIALIZER;

/* ---- symmetric memory ---- */

int smi_sync_start(void)
{
	size_t cells = (size_t)smi.size * (SMI_PCS_MAX + 1);
	size_t len = sizeof(*smi_shared) + cells * sizeof(smi_shared->cells[0]);
	void *p;
	int ret = sci_team_alloc(smi.all, len, 64, &p);

	if (ret)
		return smi_error_of_team(ret);
	memset(p, 0, len);
	smi_shared = p;
	barriers[0] = true;
	/* other processes may store counters and beats only after the memset() */
	return smi_agree(smi.team, SMI_SUCCESS);
}

_Atomic uint32_t *smi_cell(unsigned int row, int proc)
{
	return &smi_shared->cells[row * (unsigned int)smi.size + (unsigned int)proc];
}

int smi_cell_put(unsigned int row, uint32_t value, int proc)
{
	_Atomic uint32_t *mine = smi_cell(row, smi.rank);
	_Atomic uint32_t *there = sci_team_ptr(smi.team, mine, proc);
	int ret;

	if (there) {
		atomic_store_explicit(there, value, memory_order_release);
		return 0;
	}
	ret = sci_team_put(smi.team, (void *)mine, &value, sizeof(value), proc);
	return ret ? ret : 1;
}

/* Store a value into this process's column in all processes. */
static int counter_store(unsigned int row, uint32_t value)
{
	int i, ret = 0, puts = 0;

	for (i = 0; ret >= 0 && i < smi.size; i++) {
		ret = smi_cell_put(row, value, i);
		puts |= ret;
	}
	if (puts > 0)
		ret = sci_team_quiet(smi.team);
	return ret < 0 ? smi_error_of_team(ret) : SMI_SUCCESS;
}

/* ---- locks ---- */

/* Mutexes have the lowest numbers, which are their ids. Other locks have the highest numbers. */
int smi_lock_new(int proc, bool mutex)
{
	int step = mutex ? 1 : -1, i = mutex ? 0 : SMI_LOCKS_MAX - 1;

	while (i >= 0 && i < SMI_LOCKS_MAX && mutexes[i].used)
		i += step;
	if (i < 0 || i == SMI_LOCKS_MAX)
		return -1;
	sem_init(&mutexes[i].threads, 0, 1);
	mutexes[i].used = true;
	mutexes[i].listed = mutex;
	mutexes[i].proc = proc;
	return i;
}

void smi_lock_free(int lock)
{
	if (lock < 0 || !mutexes[lock].used)
		return;
	sem_destroy(&mutexes[lock].threads);
	mutexes[lock].used = mutexes[lock].listed = false;
}

int smi_lock_take(int lock, int timeout)
{
	sem_t *threads = &mutexes[lock].threads;
	int ret;

	if (smi.size == 1 && mutexes[lock].listed)
		return SMI_SUCCESS;
	while (timeout ? sem_wait(threads) : sem_trywait(threads))
		if (errno != EINTR)
			return SMI_ERR_PENDING;
	if (smi.size == 1)
		return SMI_SUCCESS;
	ret = sci_team_lock(smi.team, &smi_shared->lock[lock].word, timeout);
	if (!ret)
		return SMI_SUCCESS;
	/* the holder has died: the data that the lock protects may be inconsistent */
	if (ret == -EOWNERDEAD)
		sci_team_unlock(smi.team, &smi_shared->lock[lock].word);
	sem_post(threads);
	return ret == -EAGAIN ? SMI_ERR_PENDING : SMI_ERR_OTHER;
}

int smi_lock_give(int lock)
{
	int ret = 0;

	if (smi.size == 1 && mutexes[lock].listed)
		return SMI_SUCCESS;
	if (smi.size > 1)
		ret = sci_team_unlock(smi.team, &smi_shared->lock[lock].word);
	if (ret == -EPERM)
		return SMI_ERR_PARAM;
	sem_post(&mutexes[lock].threads);
	return smi_error_of_team(ret);
}

static int mutex_get_lock(int id)
{
	id &= ~NOCONSISTENCY;
	return id >= 0 && id < SMI_LOCKS_MAX && mutexes[id].listed ? id : -1;
}

SMI_API smi_error_t SMI_MUTEX_INIT(int *id, int algorithm, int proc)
{
	int lock, err;

	SMI_REFUSE(!id || algorithm < L_MUTEX || algorithm > SCH_MUTEX || proc < -1 ||
		   proc >= smi.size);
	lock = smi_lock_new(proc, true);
	err = smi_agree(smi.team, lock < 0 ? SMI_ERR_NOMEM : SMI_SUCCESS);
	if (err) {
		smi_lock_free(lock);
		return err;
	}
	*id = lock;
	return SMI_SUCCESS;
}

SMI_API smi_error_t SMI_Mutex_destroy(int id)
{
	int lock = mutex_get_lock(id), err;

	SMI_REFUSE(lock < 0);
	err = smi_agree(smi.team, SMI_SUCCESS);
	smi_lock_free(lock);
	return err;
}

static int mutex_take(int id, int lock, int timeout)
{
	int err = smi_lock_take(lock, timeout);

	if (!err && !(id & NOCONSISTENCY))
		smi_load_barrier();
	return err;
}

SMI_API smi_error_t SMI_Mutex_lock(int id)
{
	int lock = mutex_get_lock(id);

	SMI_REFUSE(lock < 0);
	return mutex_take(id, lock, -1);
}

SMI_API smi_error_t SMI_Mutex_trylock(int id, int *got)
{
	int lock = mutex_get_lock(id), err;

	SMI_REFUSE(lock < 0 || !got);
	err = mutex_take(id, lock, 0);
	*got = !err;
	return err == SMI_ERR_PENDING ? SMI_SUCCESS : err;
}

SMI_API smi_error_t SMI_Mutex_unlock(int id)
{
	int lock = mutex_get_lock(id);

	SMI_REFUSE(lock < 0);
	if (!(id & NOCONSISTENCY))
		smi_store_barrier();
	return smi_lock_give(lock);
}

SMI_API smi_error_t SMI_Location_of_mutex(int id, int *proc)
{
	int lock = mutex_get_lock(id);

	SMI_REFUSE(lock < 0 || !proc);
	*proc = mutexes[lock].proc;
	return SMI_SUCCESS;
}

/* ---- barriers ---- */

SMI_API smi_error_t SMI_BARRIER(int id)
{
	int ret;

	SMI_REFUSE(id < 0 || id >= BARRIERS_MAX || !barriers[id]);
	smi_loops_pause();
	/* on coherent memory without remote maps the team's barrier orders all stores */
	if (smi.seq || smi.stale)
		smi_store_barrier();
	ret = sci_team_barrier(smi.team);
	if (smi.seq || smi.stale)
		smi_load_barrier();
	return smi_error_of_team(ret);
}

SMI_API smi_error_t SMI_BARRIER_INIT(int *id, int algorithm, int active)
{
	int i;

	(void)active;
	SMI_REFUSE(!id || (algorithm != PROGRESS_COUNTER_BARRIER && algorithm != SCHULZ_BARRIER));
	for (i = 0; i < BARRIERS_MAX && barriers[i]; i++)
		;
	if (i == BARRIERS_MAX)
		return SMI_ERR_NOMEM;
	barriers[i] = true;
	*id = i;
	return smi_agree(smi.team, SMI_SUCCESS);
}

SMI_API smi_error_t SMI_BARRIER_DESTROY(int id)
{
	int err;

	SMI_REFUSE(id < 1 || id >= BARRIERS_MAX || !barriers[id]);
	err = smi_agree(smi.team, SMI_SUCCESS);
	barriers[id] = false;
	return err;
}

/* ---- progress counters: row 0 of the cells holds the watchdog's beats ---- */

/* Return the row of a counter; 0: there is no such counter. */
static unsigned int counter_row(int id)
{
	id &= ~NOCONSISTENCY;
	return id >= 0 && id < counters ? (unsigned int)id + 1 : 0;
}

static int counter_value(int id, int proc)
{
	return (int)atomic_load_explicit(smi_cell(counter_row(id), proc),
					 memory_order_acquire);
}

SMI_API smi_error_t SMI_Init_PC(int *id)
{
	int err;

	SMI_REFUSE(!id);
	if (counters == SMI_PCS_MAX)
		return SMI_ERR_NOMEM;
	err = smi_agree(smi.team, SMI_SUCCESS);
	if (!err)
		*id = counters++;
	return err;
}

SMI_API smi_error_t SMI_Reset_PC(int id)
{
	int i, err;

	SMI_REFUSE(!counter_row(id));
	err = smi_agree(smi.team, SMI_SUCCESS);
	if (err)
		return err;
	for (i = 0; i < smi.size; i++)
		atomic_store(smi_cell(counter_row(id), i), 0);
	return smi_agree(smi.team, SMI_SUCCESS);
}

SMI_API smi_error_t SMI_Increment_PC(int id, int val)
{
	int value, err;

	SMI_REFUSE(!counter_row(id) || val < 0);
	if (!(id & NOCONSISTENCY))
		smi_store_barrier();
	pthread_mutex_lock(&counters_store);
	value = counter_value(id, smi.rank);
	err = val > INT_MAX - value ? SMI_ERR_PARAM :
				      counter_store(counter_row(id), (uint32_t)(value + val));
	pthread_mutex_unlock(&counters_store);
	return err;
}

SMI_API smi_error_t SMI_Get_PC(int id, int proc, int *val)
{
	if (proc == SMI_OWNPC)
		proc = smi.rank;
	SMI_REFUSE(!counter_row(id) || !smi_rank_ok(proc) || !val);
	/* where caches are not coherent, this process copies the values that arrive */
	if (smi.stale)
		sci_team_progress(smi.team);
	*val = counter_value(id, proc);
	if (!(id & NOCONSISTENCY))
		smi_load_barrier();
	return SMI_SUCCESS;
}

static int counter_wait(int id, int first, int n, int val)
{
	const struct sci_words w = {
		.words = (const void *)smi_cell(counter_row(id), first), .n = (size_t)n,
		.value = (uint64_t)(int64_t)val, .size = 4, .cmp = SCI_CMP_GE,
	};
	int ret;

	smi_loops_pause();
	ret = sci_team_wait_all(smi.team, &w, -1);
	if (!ret && !(id & NOCONSISTENCY))
		smi_load_barrier();
	return smi_error_of_team(ret);
}

SMI_API smi_error_t SMI_Wait_individual_PC(int id, int proc, int val)
{
	SMI_REFUSE(!counter_row(id) || !smi_rank_ok(proc) || proc == smi.rank);
	if (val == SMI_OWNPC)
		val = counter_value(id, smi.rank);
	return counter_wait(id, proc, 1, val);
}

SMI_API smi_error_t SMI_Wait_individual_set_PC(int id, int *ranks, int count, int val)
{
	int i, err = SMI_SUCCESS;

	SMI_REFUSE(!ranks || count < 0);
	for (i = 0; !err && i < count; i++)
		if (ranks[i] != smi.rank)
			err = SMI_Wait_individual_PC(id, ranks[i], val);
	return err;
}

SMI_API smi_error_t SMI_Wait_collective_PC(int id, int val)
{
	SMI_REFUSE(!counter_row(id));
	if (val == SMI_OWNPC)
		val = counter_value(id, smi.rank);
	if (val > counter_value(id, smi.rank))
		return SMI_ERR_PARAM;
	return counter_wait(id, 0, smi.size, val);
}
