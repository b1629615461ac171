// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors

#include "libsci/fabric/core/fabric.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "libsci/base/host.h"
#include "libsci/fabric/core/common.h"
#include "libsci/fabric/core/fault.h"

/* The fabrics, in the order in which "auto" tries them. */
static const struct sci_fabric_ops *const fabrics[] = {
	&sci_dev_fabric,
	&sci_shm_fabric,
};

#define N_FABRICS (sizeof(fabrics) / sizeof(fabrics[0]))

/* Number of open fabrics. Each open and each close holds open_lock. */
static unsigned int n_open;
static pthread_mutex_t open_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t fork_once = PTHREAD_ONCE_INIT;
static struct list shared = { &shared, &shared };	/* under open_lock */
static unsigned int forks;		/* that led to this process */

/* Drop the parent's fabrics and held packets in the child of a fork. */
static void fabric_fork_child(void)
{
	n_open = 0;
	forks++;
	list_init(&shared);
	pthread_mutex_init(&open_lock, NULL);
	sci_fault_fork();
}

static void fabric_fork_init(void)
{
	pthread_atfork(NULL, NULL, fabric_fork_child);
}

/* Check SCI_NUMA. It is a preference: any number is allowed, also of a node that does not exist. */
static int environment_check_numa(void)
{
	const char *s = getenv("SCI_NUMA");

	if (!s || !s[strspn(s, "0123456789")] || !strcmp(s, "local") || !strcmp(s, "interleave"))
		return 0;
	return sci_env_bad("SCI_NUMA", s, "want the number of a NUMA node, local or interleave");
}

static int environment_read(void)
{
	int ret = environment_check_numa();

	if (ret)
		return ret;
	if (sci_pio_init(getenv("SCI_PIO")))
		fprintf(stderr, "libsci: SCI_PIO=%s: no engine of this CPU, using %s\n",
			getenv("SCI_PIO"), sci_pio_name());
	ret = sci_fault_init(getenv("SCI_FAULT"));
	if (ret == -EINVAL)
		sci_env_bad("SCI_FAULT", getenv("SCI_FAULT"),
			    "want loss=P, reorder=P, dup=P, retriable=P, fatal=P with P from 0 to 1, linkdown=MS[:MS] or seed=N, separated by commas");
	return ret;
}

const struct sci_fabric_ops *sci_fabric_find(const char *spec)
{
	size_t n = spec ? strcspn(spec, ":") : 0;

	for (size_t i = 0; i < N_FABRICS; i++)
		if (strlen(fabrics[i]->name) == n && !strncmp(spec, fabrics[i]->name, n))
			return fabrics[i];
	return NULL;
}

static int fabric_open(struct sci_fabric **out, const struct sci_fabric_place *at)
{
	const char *spec = at->spec ? at->spec : getenv("SCI_FABRIC");
	const struct sci_fabric_ops *ops;
	size_t i;

	/* after an error try no other fabric: processes on different fabrics cannot connect */
	if (!spec || !*spec || !strcmp(spec, "auto")) {
		for (i = 0; i < N_FABRICS; i++)
			if (fabrics[i]->present())
				return fabrics[i]->open(out, at, NULL);
		return -ENODEV;
	}

	ops = sci_fabric_find(spec);
	if (!ops)
		return sci_place_bad(at,
				     "want auto, dev, dev:DEVICE,..., shm or shm:CLUSTER");
	spec = strchr(spec, ':');
	return ops->open(out, at, spec ? spec + 1 : NULL);
}

/* Open a fabric. Context: open_lock is held. */
static int fabric_open_first(struct sci_fabric **out, const struct sci_fabric_place *at)
{
	int ret = n_open ? 0 : environment_read();

	ret = ret ? ret : fabric_open(out, at);
	if (ret)
		return ret;
	assert(*out);		/* else the fabric has returned an error */
	(*out)->forks = forks;
	n_open++;
	return 0;
}

int sci_fabric_open_at(struct sci_fabric **out, const struct sci_fabric_place *at)
{
	int ret;

	pthread_once(&fork_once, fabric_fork_init);
	pthread_mutex_lock(&open_lock);
	ret = fabric_open_first(out, at);
	pthread_mutex_unlock(&open_lock);
	return ret;
}

int sci_fabric_open(struct sci_fabric **out)
{
	return sci_fabric_open_at(out, &(struct sci_fabric_place){ 0 });
}

/* ---- fabrics that a process shares ---- */

/* Return all that an open depends on, as text to compare; NULL: no memory. */
static char *settings_text(const struct sci_fabric_place *at)
{
	size_t len = 0;
	char *text = NULL;
	FILE *f = open_memstream(&text, &len);

	if (!f)
		return NULL;
	fprintf(f, "%u %u %s\n", geteuid(), at->node, at->spec ? at->spec : "");
	for (char **e = environ; e && *e; e++)
		if (!strncmp(*e, "SCI_", 4))
			fprintf(f, "%s\n", *e);
	if (!fclose(f))
		return text;
	free(text);
	return NULL;
}

static struct sci_fabric *shared_find(const char *settings)
{
	for (struct list *l = shared.next; l != &shared; l = l->next) {
		struct sci_fabric *f = container_of(l, struct sci_fabric, shared);

		if (!strcmp(f->settings, settings))
			return f;
	}
	return NULL;
}

int sci_fabric_share(struct sci_fabric **out, const struct sci_fabric_place *at)
{
	char *settings = settings_text(at);
	struct sci_fabric *f;
	int ret = 0;

	if (!settings)
		return -ENOMEM;
	pthread_once(&fork_once, fabric_fork_init);
	pthread_mutex_lock(&open_lock);
	f = shared_find(settings);
	if (!f)
		ret = fabric_open_first(&f, at);
	if (!ret && !f->users++) {
		f->settings = settings;
		list_add_tail(&f->shared, &shared);
		settings = NULL;
	}
	pthread_mutex_unlock(&open_lock);
	free(settings);
	if (!ret)
		*out = f;
	return ret;
}

void sci_fabric_close(struct sci_fabric *f)
{
	char *settings = f->settings;
	bool inherited;

	pthread_mutex_lock(&open_lock);
	if (f->users > 1) {
		f->users--;
		pthread_mutex_unlock(&open_lock);
		return;
	}
	inherited = f->forks != forks;
	if (f->users && !inherited)
		list_del(&f->shared);
	f->ops->close(f);
	/* only now: the fabric's threads read what SCI_FAULT sets */
	if (!inherited)
		n_open--;
	pthread_mutex_unlock(&open_lock);
	free(settings);
}
