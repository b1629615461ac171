// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/* Starting daemons on other hosts. */

#include "libsci/pvm/daemon/start.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <unistd.h>

struct add {
	struct frame_head head;
	int left;			/* hosts without a result, and the request itself */
	int n;
	int results[];
};

struct add *add_new(const struct frame_head *head, int n)
{
	struct add *a = calloc(1, sizeof(*a) + (size_t)n * sizeof(int));

	if (!a)
		return NULL;
	a->head = *head;
	a->left = n + 1;
	a->n = n;
	return a;
}

void add_done(struct add *a, int slot, int result)
{
	struct frame f = { 0 };

	if (slot >= 0)
		a->results[slot] = result;
	if (--a->left)
		return;
	frame_begin(&f, OP_REPLY, 0);
	frame_ints(&f, a->results, a->n);
	answer(&a->head, 0, &f);
	free(a);
}

bool host_name_good(const char *name)
{
	if (!isalnum((unsigned char)*name))
		return false;
	for (; *name; name++)
		if (!isalnum((unsigned char)*name) && !strchr(".-_@", *name))
			return false;
	return true;
}

/* The number of a virtual node, whose name is nodeN; 0: it is none. */
static unsigned int node_number(const char *name)
{
	char *end;
	unsigned long n;

	if (strcmp(sci_ep_fabric(endpoint), "shm") || strncmp(name, "node", 4) ||
	    !isdigit((unsigned char)name[4]))
		return 0;
	n = strtoul(name + 4, &end, 10);
	return *end || n > 65535 ? 0 : (unsigned int)n;
}

int secret_read(char secret[33])
{
	size_t got = 0;
	ssize_t n;

	while (got < 32 && (n = read(0, secret + got, 32 - got)) > 0)
		got += (size_t)n;
	secret[got] = 0;
	return got == 32 ? 0 : -EINVAL;
}

static int secret_make(char secret[33])
{
	unsigned char r[16];

	if (getrandom(r, sizeof(r), 0) != sizeof(r))
		return -EAGAIN;
	for (int i = 0; i < 16; i++)
		sprintf(secret + 2 * i, "%02x", r[i]);
	return 0;
}

/* What the daemons of one machine have in common, as words for env(1). */
static int common_words(const char **argv, char words[][256])
{
	static const char *const names[] = {
		"SCI_FABRIC", "SCI_RUNDIR", "PVM_VMID", "PVM_TMP", "PVM_ROOT", "PVM_PATH",
	};
	int n = 0;

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		const char *value = getenv(names[i]);

		/* the remote shell parses these words again */
		if (!value || strpbrk(value, " '\"$`\\;&|<>()*?[]#~\n"))
			continue;
		snprintf(words[n], sizeof(words[n]), "%s=%s", names[i], value);
		argv[n] = words[n];
		n++;
	}
	return n;
}

static __attribute__((noreturn)) void
starter_run(const struct host *h, unsigned int node, int in)
{
	const char *rsh = getenv("PVM_RSH"), *path = getenv("PVM_DPATH");
	const char *argv[24];
	char where[32], number[16], words[8][256];
	sigset_t none;
	int null = open("/dev/null", O_WRONLY), n = 0;

	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	setsid();
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	dup2(in, 0);
	dup2(null, 1);
	dup2(null, 2);
	snprintf(where, sizeof(where), "%u:%u", hosts[1]->addr.node, hosts[1]->addr.id);
	if (node) {
		snprintf(number, sizeof(number), "%u", node);
		setenv("SCI_NODE", number, 1);
		execl("/proc/self/exe", "pvmd3", "-n", h->name, "-S", where, (char *)NULL);
		_exit(127);
	}
	argv[n++] = rsh && *rsh ? rsh : "ssh";
	argv[n++] = h->name;
	argv[n++] = "env";
	n += common_words(argv + n, words);
	argv[n++] = path && *path ? path : "pvmd3";
	argv[n++] = "-n";
	argv[n++] = h->name;
	argv[n++] = "-S";
	argv[n++] = where;
	argv[n] = NULL;
	execvp(argv[0], (char **)argv);
	_exit(127);
}

int host_start(struct host *h)
{
	unsigned int node = node_number(h->name);
	int p[2];
	ssize_t n;

	if (secret_make(h->secret) || pipe2(p, O_CLOEXEC))
		return PvmOutOfRes;
	fflush(NULL);
	h->pid = fork();
	if (!h->pid)
		starter_run(h, node, p[0]);
	close(p[0]);
	n = h->pid > 0 ? write(p[1], h->secret, 32) : -1;
	close(p[1]);
	if (n == 32)
		return 0;
	h->pid = 0;
	return PvmCantStart;
}
