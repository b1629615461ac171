// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/*
 * DOC: the hoster
 *
 * A hoster is a task that starts the daemons of other hosts in place of the master. The master
 * sends the hoster a command for each host. The new daemon generates a secret and prints it in its
 * first line, which the hoster sends to the master. So the secret is in no command line, which
 * other users could read. At the same time the daemon sends OP_HELLO to the master. The master
 * keeps this hello until the line has arrived.
 */

#include <stdlib.h>
#include <string.h>

#include "libsci/pvm/daemon/daemon.h"
#include "libsci/pvm/daemon/start.h"
#include "libsci/pvm/daemon/text.h"

#define HELLOS_MAX	HOST_MAX

/* A hello of a daemon whose secret the hoster has not sent yet. */
struct hello {
	struct list link;
	struct sci_peer *from;
	char secret[33];
	char arch[32];
};

int hoster;
static struct list hellos = { &hellos, &hellos };
static unsigned int nhellos;
static int request;			/* number and wait id of the last request */

int hoster_set(int tid)
{
	if (TID_HOST(tid) != 1)
		return PvmHostrNMstr;
	if (hoster && hoster != tid)
		return PvmAlready;
	hoster = hoster ? 0 : tid;
	return 0;
}

static bool host_is_awaited(const struct host *h)
{
	return h && h->state == HOST_STARTING && h->hosted && !h->secret[0];
}

static bool hosts_any_awaited(void)
{
	for (int i = 2; i <= (int)HOST_MAX; i++)
		if (host_is_awaited(hosts[i]))
			return true;
	return false;
}

static void hello_free(struct hello *h)
{
	list_del(&h->link);
	nhellos--;
	free(h);
}

/* Free all hellos: no secret can match them any more. Their daemons end after a timeout. */
static void hellos_drop(void)
{
	while (!list_empty(&hellos))
		hello_free(container_of(hellos.next, struct hello, link));
}

void hoster_start(struct host *const *list, int n)
{
	const char *vmid = getenv("PVM_VMID");
	struct text x = { 0 };

	request = request % 0xffffff + 1;
	text_word(&x, (uint32_t)n);
	for (int i = 0; i < n; i++) {
		char *command = host_command(list[i]);

		list[i]->wid = request;
		text_word(&x, TID_OF_HOST(list[i]->index));
		text_str(&x, "", NULL);
		text_str(&x, list[i]->name, NULL);
		text_str(&x, command ? command : "false", NULL);
		text_str(&x, "", NULL);
		text_str(&x, vmid ? vmid : "", NULL);
		free(command);
	}
	text_send(&x, hoster, 0, SM_STHOST, request);
}

void hoster_ended(int tid)
{
	if (!hoster || !tid_matches(hoster, tid))
		return;
	hoster = 0;
	for (int i = 2; i <= (int)HOST_MAX; i++)
		if (host_is_awaited(hosts[i]))
			host_failed(hosts[i], PvmCantStart);
	hellos_drop();
}

/* Accept the daemon of @h, whose secret has arrived, if the daemon's hello has arrived before. */
static void hello_match(struct host *h)
{
	struct list *l, *next;

	list_for_each_safe(l, next, &hellos) {
		struct hello *k = container_of(l, struct hello, link);

		if (strcmp(k->secret, h->secret))
			continue;
		host_joined(h, k->arch, k->from);
		hello_free(k);
		return;
	}
}

/* Handle the hoster's answer for @h: the line of the daemon, or the name of an error. */
static void hoster_handle_answer(struct host *h, const char *line)
{
	static const struct {
		const char *name;
		int error;
	} errors[] = {
		{ "PvmDSysErr", PvmDSysErr }, { "PvmDupHost", PvmDupHost },
		{ "PvmNoHost", PvmNoHost }, { "PvmNotImpl", PvmNotImpl },
		{ "PvmOutOfRes", PvmOutOfRes }, { "PvmBadVersion", PvmBadVersion },
		{ "PvmNoFile", PvmNoFile }, { "PvmDenied", PvmDenied },
	};
	const char *key = strstr(line, "key<");
	int error = PvmCantStart;

	if (!strncmp(line, "ddpro<", 6) && key && strlen(key) >= 37 && key[36] == '>') {
		memcpy(h->secret, key + 4, 32);
		h->deadline = clock_ms() + start_ms();
		hello_match(h);
		return;
	}
	for (size_t i = 0; i < sizeof(errors) / sizeof(errors[0]); i++)
		if (!strcmp(line, errors[i].name))
			error = errors[i].error;
	say("the hoster cannot start host %s: %s", h->name, line);
	host_failed(h, error);
}

void hoster_told(int wid, struct body *b)
{
	int n = text_read_word(b);

	for (int i = 0; i < n && !b->bad; i++) {
		unsigned int tid = (unsigned int)text_read_word(b);
		const char *line = text_read_str(b);
		struct host *h = hosts[TID_HOST(tid)];

		if (!b->bad && host_is_awaited(h) && h->wid == wid)
			hoster_handle_answer(h, line);
	}
	/* fail the hosts that are missing in the hoster's answer */
	for (int i = 2; i <= (int)HOST_MAX; i++)
		if (host_is_awaited(hosts[i]) && hosts[i]->wid == wid)
			host_failed(hosts[i], PvmCantStart);
	if (!hosts_any_awaited())
		hellos_drop();
}

bool hoster_hello(const char *secret, const char *arch, struct sci_peer *from)
{
	struct hello *k;

	if (!hosts_any_awaited() || nhellos == HELLOS_MAX || strlen(secret) != 32)
		return false;
	k = calloc(1, sizeof(*k));
	if (!k)
		return false;
	k->from = from;
	memcpy(k->secret, secret, 32);
	strncpy(k->arch, arch, sizeof(k->arch) - 1);
	list_add_tail(&k->link, &hellos);
	nhellos++;
	return true;
}

void hoster_peer_gone(struct sci_peer *peer)
{
	struct list *l, *next;

	list_for_each_safe(l, next, &hellos) {
		struct hello *k = container_of(l, struct hello, link);

		if (k->from == peer)
			hello_free(k);
	}
}
