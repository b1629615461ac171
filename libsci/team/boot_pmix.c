// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/*
 * DOC: start-up by a PMIx server
 *
 * The key of a value is "sci.", the number of the join, and the number of the gather or the name of
 * the published value: a later join uses other keys. Events of the server arrive on a thread of
 * libpmix, which writes to an eventfd.
 */
#include <dlfcn.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include "libsci/team/boot_private.h"

static bool pmix_is_launcher(void)
{
	return getenv("PMIX_NAMESPACE") && getenv("PMIX_RANK");
}

#if __has_include(<pmix.h>)
#include <pmix.h>

#define KEY_SIZE	(SCI_BOOT_NAME_MAX + 32)
#define RETRY_NS	1000000		/* interval between attempts to get a value */

/* The functions of libpmix that this file uses. */
static struct {
	void *handle;
	__typeof__(PMIx_Init) *init;
	__typeof__(PMIx_Finalize) *finalize;
	__typeof__(PMIx_Put) *put;
	__typeof__(PMIx_Commit) *commit;
	__typeof__(PMIx_Fence_nb) *fence_nb;
	__typeof__(PMIx_Get) *get;
	__typeof__(PMIx_Abort) *abort;
	__typeof__(PMIx_Register_event_handler) *on_event;
	__typeof__(PMIx_Deregister_event_handler) *off_event;
	__typeof__(PMIx_Error_string) *error;
} pmix;

/* The job's events, in a global variable: event handlers have no argument for a struct sci_boot. */
static struct {
	pthread_mutex_t lock;
	int fd;				/* -1: not joined */
	bool gone;			/* the server has ended */
	bool incomplete;		/* a rank has died */
	unsigned int *dead, ndead, first_dead;
	unsigned int size;
	char nspace[PMIX_MAX_NSLEN + 1];
} events = { .lock = PTHREAD_MUTEX_INITIALIZER, .fd = -1 };

static unsigned int joins;		/* number of joins of this process, for keys */
static pid_t pmix_pid;			/* the process that has initialized libpmix; 0: none */

struct boot_pmix {
	struct sci_boot boot;
	pmix_proc_t proc;
	size_t handler;
	unsigned int join, gathers;
};

/* A fence, which libpmix completes on its thread, maybe after pmix_fence() has returned. */
struct fence {
	bool done, left;
	pmix_status_t status;
};

static struct boot_pmix *to_pmix(const struct sci_boot *boot)
{
	return (struct boot_pmix *)boot;
}

static int pmix_load(void)
{
	static const struct {
		const char *name;
		void **fn;
	} symbols[] = {
		{ "PMIx_Init", (void **)&pmix.init },
		{ "PMIx_Finalize", (void **)&pmix.finalize },
		{ "PMIx_Put", (void **)&pmix.put },
		{ "PMIx_Commit", (void **)&pmix.commit },
		{ "PMIx_Fence_nb", (void **)&pmix.fence_nb },
		{ "PMIx_Get", (void **)&pmix.get },
		{ "PMIx_Abort", (void **)&pmix.abort },
		{ "PMIx_Register_event_handler", (void **)&pmix.on_event },
		{ "PMIx_Deregister_event_handler", (void **)&pmix.off_event },
		{ "PMIx_Error_string", (void **)&pmix.error },
	};

	if (pmix.handle)
		return 0;
	/* RTLD_GLOBAL: components of libpmix need its symbols */
	pmix.handle = dlopen("libpmix.so.2", RTLD_NOW | RTLD_GLOBAL);
	for (size_t i = 0; pmix.handle && i < sizeof(symbols) / sizeof(symbols[0]); i++) {
		*symbols[i].fn = dlsym(pmix.handle, symbols[i].name);
		if (!*symbols[i].fn) {
			dlclose(pmix.handle);
			pmix.handle = NULL;
		}
	}
	if (pmix.handle)
		return 0;
	fprintf(stderr, "libsci: a PMIx server has started this process, but libpmix cannot be loaded: %s (install libpmix2)\n",
		dlerror());
	return -ENOSYS;
}

static int pmix_errno(pmix_status_t status)
{
	switch (status) {
	case PMIX_SUCCESS:
		return 0;
	case PMIX_ERR_NOMEM:
		return -ENOMEM;
	default:
		return -ECONNRESET;
	}
}

/* ---- events ---- */

static bool event_is_death(pmix_status_t status)
{
	return status == PMIX_ERR_PROC_TERM_WO_SYNC || status == PMIX_ERR_JOB_ABORTED ||
	       status == PMIX_ERR_PROC_ABORTED || status == PMIX_ERR_PROC_ABORTING ||
	       status == PMIX_ERR_PROC_REQUESTED_ABORT;
}

static const pmix_proc_t *event_proc(const pmix_info_t *info, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (!strcmp(info[i].key, PMIX_EVENT_AFFECTED_PROC) &&
		    info[i].value.type == PMIX_PROC)
			return info[i].value.data.proc;
	return NULL;
}

/* Record a death or the end of the server. Context: called with events.lock held. */
static void event_add(pmix_status_t status, const pmix_proc_t *p)
{
	if (events.fd < 0)
		return;
	if (status == PMIX_ERR_LOST_CONNECTION)
		events.gone = true;
	else if (!event_is_death(status))
		return;
	events.incomplete = true;
	if (p && !strcmp(p->nspace, events.nspace) && p->rank < events.size &&
	    events.ndead < events.size)
		events.dead[events.ndead++] = p->rank;
	eventfd_write(events.fd, 1);
}

static void event_take(size_t id, pmix_status_t status, const pmix_proc_t *source,
		       pmix_info_t info[], size_t ninfo, pmix_info_t *results,
		       size_t nresults, pmix_event_notification_cbfunc_fn_t done, void *arg)
{
	(void)id;
	(void)results;
	(void)nresults;
	pthread_mutex_lock(&events.lock);
	event_add(status, ninfo ? event_proc(info, ninfo) : source);
	pthread_mutex_unlock(&events.lock);
	if (done)
		done(PMIX_EVENT_ACTION_COMPLETE, NULL, 0, NULL, NULL, arg);
}

/* ---- struct boot_ops ---- */

static void fence_done(pmix_status_t status, void *arg)
{
	struct fence *f = arg;
	bool left;

	pthread_mutex_lock(&events.lock);
	f->status = status;
	f->done = true;
	left = f->left;
	if (!left)
		eventfd_write(events.fd, 1);
	pthread_mutex_unlock(&events.lock);
	if (left)
		free(f);
}

/* Wait until all ranks have called pmix_fence(), or a rank has died. */
static int pmix_fence(struct boot_pmix *b)
{
	pmix_proc_t all = b->proc;
	struct fence *f = calloc(1, sizeof(*f));
	pmix_info_t collect = { .value.type = PMIX_BOOL, .value.data.flag = true };
	pmix_status_t status;
	eventfd_t count;

	if (!f)
		return -ENOMEM;
	all.rank = PMIX_RANK_WILDCARD;
	strcpy(collect.key, PMIX_COLLECT_DATA);
	status = pmix.fence_nb(&all, 1, &collect, 1, fence_done, f);
	if (status == PMIX_OPERATION_SUCCEEDED || status != PMIX_SUCCESS) {
		free(f);
		return status == PMIX_OPERATION_SUCCEEDED ? 0 : pmix_errno(status);
	}
	pthread_mutex_lock(&events.lock);
	while (!f->done && !events.incomplete) {
		pthread_mutex_unlock(&events.lock);
		boot_wait(&b->boot, events.fd, POLLIN);
		pthread_mutex_lock(&events.lock);
		eventfd_read(events.fd, &count);
	}
	status = f->done ? f->status : PMIX_ERR_LOST_CONNECTION;
	f->left = !f->done;
	if (f->done)
		free(f);
	pthread_mutex_unlock(&events.lock);
	return pmix_errno(status);
}

static int pmix_store(const char *key, const void *value, size_t len)
{
	pmix_value_t v = { .type = PMIX_BYTE_OBJECT };
	pmix_status_t status;
	/* PMIx refuses empty values: append one byte to each value */
	char *copy = malloc(len + 1);

	if (!copy)
		return -ENOMEM;
	if (len)
		memcpy(copy, value, len);
	copy[len] = 0;
	v.data.bo.bytes = copy;
	v.data.bo.size = len + 1;
	status = pmix.put(PMIX_GLOBAL, key, &v);
	free(copy);
	return pmix_errno(status ? status : pmix.commit());
}

/* Try once to get a value. Return -ENOENT if it is not published yet. Set *@len to its length. */
static int pmix_fetch(struct boot_pmix *b, unsigned int rank, const char *key, void *value,
		      size_t room, size_t *len)
{
	pmix_proc_t p = b->proc;
	pmix_value_t *v = NULL;
	pmix_status_t status;
	int ret = 0;

	p.rank = rank;
	status = pmix.get(&p, key, NULL, 0, &v);
	if (status == PMIX_ERR_NOT_FOUND || status == PMIX_ERR_TIMEOUT)
		return -ENOENT;
	if (status)
		return pmix_errno(status);
	if (v->type != PMIX_BYTE_OBJECT || !v->data.bo.size)
		ret = -EPROTO;
	*len = ret ? 0 : v->data.bo.size - 1;
	if (*len > room)
		ret = -EMSGSIZE;
	else if (*len)
		memcpy(value, v->data.bo.bytes, *len);
	if (v->type == PMIX_BYTE_OBJECT)
		free(v->data.bo.bytes);
	free(v);
	return ret;
}

static int pmix_gather(struct sci_boot *boot, const void *mine, void *all, size_t len)
{
	struct boot_pmix *b = to_pmix(boot);
	char key[KEY_SIZE];
	size_t got;
	int ret;

	snprintf(key, sizeof(key), "sci.%u.%u", b->join, b->gathers++);
	ret = len ? pmix_store(key, mine, len) : 0;
	ret = ret ? ret : pmix_fence(b);
	for (unsigned int i = 0; !ret && len && i < boot->info.size; i++) {
		ret = pmix_fetch(b, i, key, (char *)all + i * len, len, &got);
		if (ret == -EMSGSIZE || (!ret && got != len))
			ret = -EINVAL;
		else if (ret == -ENOENT)
			ret = -EPROTO;
	}
	return ret;
}

static int pmix_publish(struct sci_boot *boot, const char *name, const void *value,
			size_t len)
{
	char key[KEY_SIZE];

	snprintf(key, sizeof(key), "sci.%u-%s", to_pmix(boot)->join, name);
	return pmix_store(key, value, len);
}

static bool rank_is_dead(unsigned int rank)
{
	bool dead = false;

	pthread_mutex_lock(&events.lock);
	for (unsigned int i = 0; i < events.ndead; i++)
		dead |= events.dead[i] == rank;
	dead |= events.gone;
	pthread_mutex_unlock(&events.lock);
	return dead;
}

/* Get a value. Some servers block until it is published; other servers report it as missing. */
static int pmix_get(struct sci_boot *boot, unsigned int rank, const char *name, void *value,
		    size_t *len)
{
	const struct timespec pause = { 0, RETRY_NS };
	char key[KEY_SIZE];
	size_t room = *len;
	int ret;

	snprintf(key, sizeof(key), "sci.%u-%s", to_pmix(boot)->join, name);
	while ((ret = pmix_fetch(to_pmix(boot), rank, key, value, room, len)) == -ENOENT) {
		if (rank_is_dead(rank))
			return -ECONNRESET;
		if (boot->idle)
			boot->idle(boot->idle_arg);
		nanosleep(&pause, NULL);
	}
	return ret;
}

static int pmix_fd(const struct sci_boot *boot)
{
	(void)boot;
	return events.fd;
}

static int pmix_died(struct sci_boot *boot, unsigned int *rank)
{
	eventfd_t count;
	int ret = -EAGAIN;

	(void)boot;
	pthread_mutex_lock(&events.lock);
	if (events.first_dead < events.ndead) {
		*rank = events.dead[events.first_dead++];
		ret = 0;
	} else if (events.gone) {
		ret = -ECONNRESET;
	} else {
		eventfd_read(events.fd, &count);
	}
	pthread_mutex_unlock(&events.lock);
	return ret;
}

static bool pmix_complete(const struct sci_boot *boot)
{
	bool incomplete;

	(void)boot;
	pthread_mutex_lock(&events.lock);
	incomplete = events.incomplete;
	pthread_mutex_unlock(&events.lock);
	return !incomplete;
}

static void pmix_abort(struct sci_boot *boot, int status)
{
	(void)boot;
	pmix.abort(status, "the program aborts the job", NULL, 0);
}

static void events_close(void)
{
	pthread_mutex_lock(&events.lock);
	if (events.fd >= 0)
		close(events.fd);
	events.fd = -1;
	free(events.dead);
	events.dead = NULL;
	events.ndead = events.first_dead = 0;
	events.gone = events.incomplete = false;
	pthread_mutex_unlock(&events.lock);
}

static void pmix_close(struct sci_boot *boot, bool forked)
{
	if (!forked) {
		pmix.off_event(to_pmix(boot)->handler, NULL, NULL);
		events_close();
	}
	free(boot->nodes);
	free(boot);
}

static const struct boot_ops pmix_ops = {
	.gather = pmix_gather,
	.publish = pmix_publish,
	.get = pmix_get,
	.fd = pmix_fd,
	.died = pmix_died,
	.complete = pmix_complete,
	.abort = pmix_abort,
	.close = pmix_close,
};

/* ---- open ---- */

/* Return the number that the server has for @key of @rank, or @otherwise. */
static unsigned int pmix_number(struct boot_pmix *b, pmix_rank_t rank, const char *key,
				unsigned int otherwise)
{
	unsigned int n = otherwise;
	pmix_proc_t p = b->proc;
	pmix_value_t *v = NULL;

	p.rank = rank;
	if (pmix.get(&p, key, NULL, 0, &v))
		return n;
	if (v->type == PMIX_UINT32)
		n = v->data.uint32;
	else if (v->type == PMIX_UINT16)
		n = v->data.uint16;
	free(v);
	return n;
}

static int events_open(struct boot_pmix *b)
{
	int ret = 0;

	pthread_mutex_lock(&events.lock);
	events.fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	events.size = b->boot.info.size;
	events.dead = calloc(events.size, sizeof(*events.dead));
	memcpy(events.nspace, b->proc.nspace, sizeof(events.nspace));
	if (events.fd < 0 || !events.dead)
		ret = -ENOMEM;
	pthread_mutex_unlock(&events.lock);
	if (ret) {
		events_close();
		return ret;
	}
	/* without a callback, libpmix returns the number of the handler */
	ret = pmix.on_event(NULL, 0, NULL, 0, event_take, NULL, NULL);
	b->handler = ret >= 0 ? (size_t)ret : 0;
	return 0;
}

/* Let rank 0 choose the secret and the number of the job. */
static int pmix_share_secret(struct boot_pmix *b)
{
	struct {
		uint64_t job;
		uint8_t key[SCI_BOOT_KEY_SIZE];
	} mine, *all = calloc(b->boot.info.size, sizeof(mine));
	int ret;

	if (!all || getrandom(&mine, sizeof(mine), 0) != sizeof(mine)) {
		free(all);
		return -ENOMEM;
	}
	ret = pmix_gather(&b->boot, &mine, all, sizeof(mine));
	if (!ret) {
		b->boot.info.job = all[0].job | 1;
		memcpy(b->boot.info.key, all[0].key, sizeof(all[0].key));
	}
	free(all);
	return ret;
}

/* Finalize libpmix at exit. A child after fork() has the exit handler but not the connection. */
static void pmix_leave(void)
{
	if (pmix_pid == getpid())
		pmix.finalize(NULL, 0);
}

/*
 * Initialize libpmix once. Many versions cannot be initialized again after PMIx_Finalize(), so it
 * stays initialized until the process exits.
 */
static int pmix_join(struct boot_pmix *b)
{
	static pmix_proc_t self;
	pmix_status_t status;

	if (pmix_pid != getpid()) {
		status = pmix.init(&self, NULL, 0);
		if (status) {
			fprintf(stderr, "libsci: cannot join the PMIx server: %s\n",
				pmix.error(status));
			return -ECONNRESET;
		}
		pmix_pid = getpid();
		atexit(pmix_leave);
	}
	b->proc = self;
	return 0;
}

int boot_pmix_open(struct sci_boot **boot)
{
	struct boot_pmix *b;
	int ret;

	if (!pmix_is_launcher())
		return -ENOENT;
	ret = pmix_load();
	if (ret)
		return ret;
	b = calloc(1, sizeof(*b));
	if (!b)
		return -ENOMEM;
	b->boot.ops = &pmix_ops;
	b->join = joins++;
	ret = pmix_join(b);
	if (ret) {
		free(b);
		return ret;
	}
	b->boot.info.rank = b->proc.rank;
	b->boot.info.size = pmix_number(b, PMIX_RANK_WILDCARD, PMIX_JOB_SIZE, 1);
	b->boot.info.local_rank = pmix_number(b, b->proc.rank, PMIX_LOCAL_RANK, 0);
	b->boot.info.local_size = pmix_number(b, PMIX_RANK_WILDCARD, PMIX_LOCAL_SIZE, 1);
	b->boot.nodes = calloc(b->boot.info.size, sizeof(*b->boot.nodes));
	ret = b->boot.nodes ? events_open(b) : -ENOMEM;
	ret = ret ? ret : pmix_share_secret(b);
	if (ret)
		pmix_close(&b->boot, false);
	else
		*boot = &b->boot;
	return ret;
}

#else

int boot_pmix_open(struct sci_boot **boot)
{
	(void)boot;
	if (!pmix_is_launcher())
		return -ENOENT;
	fprintf(stderr, "libsci: a PMIx server has started this process, but libsci was built without pmix.h (install libpmix-dev, build again)\n");
	return -ENOSYS;
}

#endif
