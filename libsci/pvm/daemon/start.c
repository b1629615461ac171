// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/* Starting daemons on other hosts. */

#include "libsci/pvm/daemon/start.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <unistd.h>

#include "libsci/pvm/daemon/text.h"

#define LEAVE_MS	3000	/* ms from the removal of a host to SIGTERM; more than a daemon's halt */

struct add {
	struct frame_head head;
	bool managed;			/* the request was SM_ADD, with @ctx and @wid */
	int ctx, wid;
	int left;			/* hosts without a result, plus 1 until all have begun */
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

struct add *add_new_managed(const struct frame_head *head, int n, int ctx, int wid)
{
	struct add *a = add_new(head, n);

	if (a) {
		a->managed = true;
		a->ctx = ctx;
		a->wid = wid;
	}
	return a;
}

/* Send SM_ADDACK to the resource manager. A host that has failed has empty names. */
static void add_answer_manager(const struct add *a)
{
	struct text x = { 0 };

	text_word(&x, (uint32_t)a->n);
	text_word(&x, 1);
	for (int i = 0; i < a->n; i++) {
		int tid = a->results[i];
		const struct host *h = tid > 0 ? hosts[TID_HOST(tid)] : NULL;

		text_word(&x, (uint32_t)tid);
		text_str(&x, h ? h->name : "", NULL);
		text_str(&x, h ? h->arch : "", NULL);
		text_word(&x, h ? HOST_SPEED : 0);
		text_word(&x, h ? DATA_SIGNATURE : 0);
	}
	text_send(&x, (int)a->head.src, a->ctx, SM_ADDACK, a->wid);
}

void add_done(struct add *a, int slot, int result)
{
	struct frame f = { 0 };

	if (slot >= 0)
		a->results[slot] = result;
	if (--a->left)
		return;
	if (a->managed) {
		add_answer_manager(a);
	} else {
		frame_begin(&f, OP_REPLY, 0);
		frame_ints(&f, a->results, a->n);
		answer(&a->head, 0, &f);
	}
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

/* Return the number of the virtual node "nodeN"; 0: @name is not a virtual node. */
static unsigned int node_number(const char *name)
{
	char *end;
	unsigned long n;

	if (!(sci_ep_traits(endpoint) & SCI_TRAIT_VIRTUAL_NODES) || strncmp(name, "node", 4) ||
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

int secret_make(char secret[33])
{
	unsigned char r[16];

	if (getrandom(r, sizeof(r), 0) != sizeof(r))
		return -EAGAIN;
	for (int i = 0; i < 16; i++)
		sprintf(secret + 2 * i, "%02x", r[i]);
	return 0;
}

/* Compose words for env(1) with the variables that all daemons of a machine share. */
static int words_add_common(const char **argv, char words[][256])
{
	static const char *const names[] = {
		"SCI_FABRIC", "SCI_RUNDIR", "PVM_VMID", "PVM_TMP", "PVM_ROOT", "PVM_PATH",
	};
	int n = 0;

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		const char *value = getenv(names[i]);

		/* skip values with special characters: the remote shell parses the words again */
		if (!value || strpbrk(value, " '\"$`\\;&|<>()*?[]#~\n"))
			continue;
		snprintf(words[n], sizeof(words[n]), "%s=%s", names[i], value);
		argv[n] = words[n];
		n++;
	}
	return n;
}

/* Join words to a line, which the caller frees. */
static char *words_join(const char *const *argv)
{
	size_t len = 1;
	char *line;

	for (int i = 0; argv[i]; i++)
		len += strlen(argv[i]) + 1;
	line = calloc(1, len);
	for (int i = 0; line && argv[i]; i++) {
		strcat(line, i ? " " : "");
		strcat(line, argv[i]);
	}
	return line;
}

char *host_command(const struct host *h)
{
	const char *path = getenv("PVM_DPATH"), *argv[24];
	unsigned int node = node_number(h->name);
	char where[32], number[32], words[8][256], self[PATH_MAX] = "pvmd3";
	int n = 0;
	ssize_t len;

	/* the daemon of a virtual node is this program on this machine */
	len = node ? readlink("/proc/self/exe", self, sizeof(self) - 1) : -1;
	if (len > 0)
		self[len] = 0;
	argv[n++] = "env";
	n += words_add_common(argv + n, words);
	if (node) {
		snprintf(number, sizeof(number), "SCI_NODE=%u", node);
		argv[n++] = number;
	}
	argv[n++] = path && *path ? path : self;
	snprintf(where, sizeof(where), "%u:%u", hosts[1]->addr.node, hosts[1]->addr.id);
	argv[n++] = "-n";
	argv[n++] = h->name;
	argv[n++] = "-H";
	argv[n++] = where;
	argv[n] = NULL;
	return words_join(argv);
}

static __attribute__((noreturn)) void
starter_run(const struct host *h, unsigned int node, int in, pid_t daemon)
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
	if (getppid() != daemon)
		_exit(127);
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
	n += words_add_common(argv + n, words);
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
	pid_t daemon = getpid();
	int p[2];
	ssize_t n;

	if (secret_make(h->secret) || pipe2(p, O_CLOEXEC))
		return PvmOutOfRes;
	fflush(NULL);
	h->pid = fork();
	if (!h->pid)
		starter_run(h, node, p[0], daemon);
	close(p[0]);
	n = h->pid > 0 ? write(p[1], h->secret, 32) : -1;
	close(p[1]);
	if (n == 32)
		return 0;
	h->pid = 0;
	return PvmCantStart;
}

/* ---- processes of removed hosts ---- */

struct starter {
	struct list link;
	pid_t pid;
	int64_t deadline;		/* clock_ms() of SIGTERM; INT64_MAX: sent */
};

static struct list starters = { &starters, &starters };

void starter_keep(pid_t pid)
{
	struct starter *s = calloc(1, sizeof(*s));

	if (!s)
		return;
	s->pid = pid;
	s->deadline = clock_ms() + LEAVE_MS;
	list_add_tail(&s->link, &starters);
}

bool starter_ended(pid_t pid)
{
	for (struct list *l = starters.next; l != &starters; l = l->next) {
		struct starter *s = container_of(l, struct starter, link);

		if (s->pid != pid)
			continue;
		list_del(l);
		free(s);
		return true;
	}
	return false;
}

bool starters_left(void)
{
	return !list_empty(&starters);
}

int64_t starters_expire(int64_t now)
{
	int64_t next = INT64_MAX;

	for (struct list *l = starters.next; l != &starters; l = l->next) {
		struct starter *s = container_of(l, struct starter, link);

		if (s->deadline <= now) {
			kill(-s->pid, SIGTERM);
			s->deadline = INT64_MAX;
		}
		next = s->deadline < next ? s->deadline : next;
	}
	return next;
}

void starters_kill(int sig)
{
	for (struct list *l = starters.next; l != &starters; l = l->next)
		kill(-container_of(l, struct starter, link)->pid, sig);
}
