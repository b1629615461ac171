// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/* The table of hosts: hosts that join, leave or fail. */

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "libsci/pvm/daemon/daemon.h"
#include "libsci/pvm/daemon/start.h"
#include "libsci/pvm/daemon/text.h"

#define JOIN_MS		20000		/* ms for the master to answer */
#define HOSTER_MS	300000		/* ms for the master to answer, with a hoster */
#define LOOK_MS		100		/* ms between checks for the master's end */
#define START_MS	60000		/* default ms for a new host to join */

struct host *hosts[HOST_MAX + 1];
int own_host;
struct sci_ep *endpoint;
static struct sci_peer *master_peer;
static int table_version;		/* version of the master's latest table */

static bool addr_is_same(const struct sci_addr *a, const struct sci_addr *b)
{
	return a->node == b->node && a->id == b->id;
}

static struct host *host_new(int index, const char *name, const char *arch)
{
	struct host *h = calloc(1, sizeof(*h));

	if (!h)
		return NULL;
	list_init(&h->out);
	h->index = index;
	h->name = strdup(name);
	h->arch = strdup(arch);
	if (!h->name || !h->arch) {
		free(h->name);
		free(h->arch);
		free(h);
		return NULL;
	}
	hosts[index] = h;
	return h;
}

static void host_free(struct host *h)
{
	hosts[h->index] = NULL;
	host_frames_free(h);
	if (h->sci && h->sci != master_peer) {
		sci_disconnect(h->sci);
		/* drop frames after the disconnect, which makes progress and may receive frames */
		arrivals_drop(h->sci);
	}
	free(h->name);
	free(h->arch);
	free(h);
}

static struct host *host_get(struct sci_peer *peer)
{
	struct sci_addr addr;

	if (sci_peer_addr(peer, &addr))
		return NULL;
	for (int i = 1; i <= (int)HOST_MAX; i++)
		if (hosts[i] && hosts[i]->state != HOST_STARTING &&
		    addr_is_same(&hosts[i]->addr, &addr))
			return hosts[i];
	return NULL;
}

bool peer_known(struct sci_peer *peer)
{
	return peer == master_peer || host_get(peer);
}

void host_heard(struct sci_peer *peer)
{
	struct host *h = own_host == 1 || peer == master_peer ? NULL : host_get(peer);
	int tid;

	if (!h || host_up(h))
		return;
	h->state = HOST_JOINED;
	tid = (int)TID_OF_HOST(h->index);
	notify_hosts_new(&tid, 1);
}

/* ---- changes ---- */

/* Send the table: the index of @to, the version, and the hosts whose daemons have sent OP_HELLO. */
static void table_send(const struct host *to)
{
	struct frame f = { 0 };
	int n = 0;

	for (int i = 1; i <= (int)HOST_MAX; i++)
		n += hosts[i] && hosts[i]->state != HOST_STARTING;
	frame_begin(&f, OP_HOSTS, 0);
	frame_i32(&f, to->index);
	frame_i32(&f, table_version);
	frame_i32(&f, n);
	for (int i = 1; i <= (int)HOST_MAX; i++) {
		if (!hosts[i] || hosts[i]->state == HOST_STARTING)
			continue;
		frame_i32(&f, i);
		frame_i32(&f, host_up(hosts[i]) || hosts[i] == to);
		frame_str(&f, hosts[i]->name);
		frame_str(&f, hosts[i]->arch);
		frame_i32(&f, (int32_t)hosts[i]->addr.node);
		frame_i32(&f, (int32_t)hosts[i]->addr.id);
	}
	host_tell(to->index, &f);
}

/* Increase the version of the table, and send the table to all hosts that have one. */
static void table_send_all(void)
{
	table_version++;
	for (int i = 2; i <= (int)HOST_MAX; i++)
		if (hosts[i] && hosts[i]->state >= HOST_JOINING)
			table_send(hosts[i]);
}

/* Return whether all hosts except @h have version @h->awaited of the table. */
static bool table_is_known(const struct host *h)
{
	for (int i = 2; i <= (int)HOST_MAX; i++)
		if (hosts[i] && hosts[i] != h && hosts[i]->state >= HOST_JOINING &&
		    hosts[i]->version < h->awaited)
			return false;
	return true;
}

/* Set the result of @h in the request that has added it. */
static void result_add(struct host *h, int result)
{
	struct add *a = h->add;

	h->add = NULL;
	if (a)
		add_done(a, h->slot, result);
}

/* Make the new host @h a member: it has answered its table. */
static void host_enter(struct host *h)
{
	int tid = (int)TID_OF_HOST(h->index);

	h->state = HOST_JOINED;
	say("host %s has joined", h->name);
	table_send_all();
	h->awaited = table_version;
	manager_tell(h->index);
	tracer_tell(h->index);
	notify_hosts_new(&tid, 1);
}

/* Continue the joins of new hosts for which all awaited answers have arrived. */
static void joins_advance(void)
{
	for (int i = 2; own_host == 1 && i <= (int)HOST_MAX; i++) {
		struct host *h = hosts[i];

		if (h && h->state == HOST_SHOWN && table_is_known(h)) {
			h->state = HOST_JOINING;
			h->awaited = table_version;
			h->deadline = clock_ms() + start_ms();
			table_send(h);
		}
		if (h && h->state == HOST_JOINING && h->version >= h->awaited)
			host_enter(h);
		if (host_up(h) && h->add && table_is_known(h))
			result_add(h, (int)TID_OF_HOST(i));
	}
}

static void host_remove(struct host *h)
{
	int index = h->index;
	bool up = host_up(h), shown = h->state != HOST_STARTING;

	if (up)
		say("host %s has gone", h->name);
	result_add(h, PvmCantStart);
	if (h->pid)
		starter_keep(h->pid);
	host_free(h);
	if (up) {
		manager_host_gone(index);
		requests_fail(index);
		task_ended((int)TID_OF_HOST(index));
		output_host_gone(index);
		notify_host_gone(index);
	}
	if (own_host == 1 && shown) {
		table_send_all();
		joins_advance();
	} else if (index == 1) {
		daemon_halt();
	}
}

void hosts_table(struct body *b)
{
	int index = body_i32(b), version = body_i32(b), n = body_i32(b), fresh = 0;
	bool there[HOST_MAX + 1] = { false };
	int tids[HOST_MAX];
	bool joining = !own_host;
	struct frame f = { 0 };

	own_host = index > 0 && index <= (int)HOST_MAX ? index : own_host;
	for (int i = 0; i < n; i++) {
		int at = body_i32(b), up = body_i32(b);
		const char *name = body_str(b), *arch = body_str(b);
		struct sci_addr addr;

		addr.node = (uint32_t)body_i32(b);
		addr.id = (uint32_t)body_i32(b);
		if (b->bad || at < 1 || at > (int)HOST_MAX)
			return;
		there[at] = true;
		if (!hosts[at]) {
			if (!host_new(at, name, arch))
				continue;
			hosts[at]->addr = addr;
			hosts[at]->state = HOST_SHOWN;
			hosts[at]->deadline = INT64_MAX;
			if (at == 1)
				hosts[at]->sci = master_peer;
		}
		if (!up || host_up(hosts[at]))
			continue;
		hosts[at]->state = HOST_JOINED;
		tids[fresh++] = (int)TID_OF_HOST(at);
	}
	for (int i = 1; i <= (int)HOST_MAX; i++)
		if (hosts[i] && !there[i] && i != own_host)
			host_remove(hosts[i]);
	if (fresh && !joining)
		notify_hosts_new(tids, fresh);
	frame_begin(&f, OP_HOSTS_KNOWN, 0);
	frame_i32(&f, version);
	host_tell(1, &f);
}

void hosts_known(int index, struct body *b)
{
	if (own_host != 1 || !hosts[index])
		return;
	hosts[index]->version = body_i32(b);
	joins_advance();
}

void host_joined(struct host *h, const char *arch, struct sci_peer *from)
{
	char *copy;

	if (sci_peer_addr(from, &h->addr))
		return;
	copy = strdup(arch);
	if (copy) {
		free(h->arch);
		h->arch = copy;
	}
	h->sci = from;
	h->state = HOST_SHOWN;
	h->deadline = INT64_MAX;
	table_send_all();
	h->awaited = table_version;
	joins_advance();
}

void host_hello(const struct frame_head *head, struct body *b, struct sci_peer *from)
{
	const char *secret = body_str(b), *arch = body_str(b);

	(void)head;
	for (int i = 2; !b->bad && *secret && i <= (int)HOST_MAX; i++) {
		if (!hosts[i] || hosts[i]->state != HOST_STARTING || strcmp(hosts[i]->secret, secret))
			continue;
		host_joined(hosts[i], arch, from);
		return;
	}
	if (hoster_hello(secret, arch, from))
		return;
	say("a daemon without the right secret was refused");
	if (!peer_known(from))
		stranger_end(from);
}

static void bye_send(struct host *h)
{
	struct frame f = { 0 };

	frame_begin(&f, OP_BYE, 0);
	host_tell(h->index, &f);
}

/* Remove a host from the machine. Its daemon ends by itself, and is not waited for. */
static void host_dismiss(struct host *h)
{
	bye_send(h);
	host_push(h);
	host_remove(h);
}

void host_lost(struct body *b)
{
	struct sci_addr addr = { .node = (uint32_t)body_i32(b) };

	addr.id = (uint32_t)body_i32(b);
	for (int i = 2; own_host == 1 && i <= (int)HOST_MAX; i++)
		if (hosts[i] && hosts[i]->state != HOST_STARTING && addr_is_same(&hosts[i]->addr, &addr))
			host_dismiss(hosts[i]);
}

/*
 * Handle the end of the connection to the daemon of @h. Report it to the master, whose connection
 * to @h may be intact: all daemons must have the same table of hosts.
 */
static void host_disconnected(struct host *h)
{
	struct frame f = { 0 };

	if (own_host != 1 && !halting) {
		frame_begin(&f, OP_LOST, 0);
		frame_i32(&f, (int32_t)h->addr.node);
		frame_i32(&f, (int32_t)h->addr.id);
		host_tell(1, &f);
	}
	host_remove(h);
}

void hosts_progress(void)
{
	struct sci_peer *gone;

	sci_progress(endpoint);
	/* handle the frames of a disconnected peer first; calls in the loop may receive more */
	for (arrivals_serve(); !sci_peer_gone(endpoint, &gone); arrivals_serve()) {
		struct host *h = NULL;

		for (int i = 1; i <= (int)HOST_MAX; i++)
			if (hosts[i] && hosts[i]->sci == gone)
				h = hosts[i];
		if (gone == master_peer)
			daemon_halt();
		else if (h)
			host_disconnected(h);
		else
			stranger_end(gone);
	}
	for (int i = 1; i <= (int)HOST_MAX; i++)
		if (hosts[i])
			host_push(hosts[i]);
}

bool host_starter_ended(pid_t pid)
{
	for (int i = 2; i <= (int)HOST_MAX; i++) {
		if (!hosts[i] || hosts[i]->pid != pid)
			continue;
		hosts[i]->pid = 0;
		host_remove(hosts[i]);
		return true;
	}
	return starter_ended(pid);
}

int hosts_expire(void)
{
	int64_t now = clock_ms(), next = starters_expire(now);

	for (int i = 2; i <= (int)HOST_MAX; i++) {
		struct host *h = hosts[i];

		if (!h || host_up(h))
			continue;
		if (h->deadline > now) {
			next = h->deadline < next ? h->deadline : next;
			continue;
		}
		say("host %s does not answer", h->name);
		if (h->pid)
			kill(-h->pid, SIGKILL);
		host_remove(h);
	}
	return next == INT64_MAX ? -1 : (int)(next - now);
}

int start_ms(void)
{
	const char *s = getenv("SCI_PVM_START_MS");
	int ms = s ? atoi(s) : 0;

	return ms > 0 ? ms : START_MS;
}

/* ---- requests ---- */

static struct host *host_by_name(const char *name)
{
	for (int i = 1; i <= (int)HOST_MAX; i++)
		if (hosts[i] && !strcmp(hosts[i]->name, name))
			return hosts[i];
	return NULL;
}

void host_failed(struct host *h, int error)
{
	result_add(h, error);
	host_remove(h);
}

/*
 * Return a free index; 0: all are in use. Reuse the index of a former host as late as possible:
 * tasks may not know yet that the tasks of that host have ended, and new tasks would get the same
 * tids.
 */
static int index_new(void)
{
	static int last = 1;

	for (int i = 2; i <= (int)HOST_MAX; i++) {
		last = last < (int)HOST_MAX ? last + 1 : 2;
		if (!hosts[last])
			return last;
	}
	return 0;
}

/* Begin to start a host; a hoster starts it later. *@made: the host. Return: 0 or a PVM error. */
static int host_add(const char *name, struct add *a, int slot, struct host **made)
{
	struct host *h;
	int index, ret;

	if (!host_name_good(name))
		return PvmNoHost;
	if (host_by_name(name))
		return PvmDupHost;
	index = index_new();
	h = index ? host_new(index, name, ARCH_NAME) : NULL;
	if (!h)
		return PvmOutOfRes;
	h->hosted = hoster;
	/* no deadline with a hoster, which may ask a person for passwords */
	h->deadline = hoster ? INT64_MAX : clock_ms() + start_ms();
	ret = hoster ? 0 : host_start(h);
	if (ret) {
		host_free(h);
		return ret;
	}
	h->add = a;
	h->slot = slot;
	*made = h;
	return 0;
}

/* Begin to add @n hosts, whose names @read reads from @b. */
static void hosts_begin(struct add *a, int n, struct body *b,
			const char *(*read)(struct body *b))
{
	struct host *made[HOST_MAX];
	int nmade = 0;

	for (int i = 0; i < n; i++) {
		const char *name = read(b);
		int ret = b->bad || halting ? PvmBadParam :
			host_add(name, a, i, &made[nmade]);

		if (ret)
			add_done(a, i, ret);
		else
			nmade++;
	}
	if (hoster && nmade)
		hoster_start(made, nmade);
	add_done(a, -1, 0);
}

void hosts_add(const struct frame_head *head, struct body *b)
{
	int n = body_i32(b);
	struct add *a = n > 0 && n <= (int)HOST_MAX ? add_new(head, n) : NULL;

	if (a)
		hosts_begin(a, n, b, body_str);
	else
		answer(head, PvmBadParam, NULL);
}

void hosts_add_managed(const struct frame_head *head, int ctx, int wid, struct body *b)
{
	int n = text_read_word(b);
	struct add *a = n > 0 && n <= (int)HOST_MAX ?
		add_new_managed(head, n, ctx, wid) : NULL;
	struct text x = { 0 };

	if (a) {
		hosts_begin(a, n, b, text_read_str);
		return;
	}
	text_word(&x, (uint32_t)PvmBadParam);
	text_send(&x, (int)head->src, ctx, SM_ADDACK, wid);
}

void hosts_delete(const struct frame_head *head, struct body *b)
{
	int n = body_i32(b);
	struct frame f = { 0 };
	int *results = n > 0 && n <= (int)HOST_MAX ? calloc((size_t)n, sizeof(int)) : NULL;

	if (!results) {
		answer(head, PvmBadParam, NULL);
		return;
	}
	for (int i = 0; i < n; i++) {
		struct host *h = host_by_name(body_str(b));

		if (!host_up(h)) {
			results[i] = PvmNoHost;
		} else if (h->index == 1) {
			results[i] = PvmDenied;
		} else {
			host_dismiss(h);
		}
	}
	frame_begin(&f, OP_REPLY, 0);
	frame_ints(&f, results, n);
	answer(head, 0, &f);
	free(results);
}

void hosts_halt(bool hard)
{
	if (own_host != 1)
		return;
	for (int i = 2; i <= (int)HOST_MAX; i++) {
		struct host *h = hosts[i];

		if (!h)
			continue;
		/* fail a host that is starting */
		result_add(h, PvmCantStart);
		if (host_up(h))
			bye_send(h);
		else if (h->pid)
			kill(-h->pid, hard ? SIGKILL : SIGTERM);
	}
	if (hard)
		starters_kill(SIGTERM);
}

bool hosts_left(void)
{
	for (int i = 2; own_host == 1 && i <= (int)HOST_MAX; i++)
		if (hosts[i] && hosts[i]->pid)
			return true;
	return starters_left();
}

/* ---- start and end ---- */

/* Wait for the table of hosts, or for the end of the master. Return: 0 or -errno. */
static int table_wait(int ms)
{
	int64_t end = clock_ms() + ms;
	struct sci_peer *gone;

	while (!own_host) {
		if (!arrivals_wait(LOOK_MS) && clock_ms() >= end)
			return -ETIMEDOUT;
		if (!own_host && !sci_peer_gone(endpoint, &gone))
			return -ECONNRESET;
	}
	return 0;
}

/* Print the line for the hoster, and close its pipe: the hoster expects no further output. */
static int hoster_line(const char *secret)
{
	struct sci_addr own;
	int ret = sci_ep_addr(endpoint, &own), null = open("/dev/null", O_RDWR | O_CLOEXEC);

	if (ret || null < 0)
		return ret ? ret : -errno;
	printf("ddpro<2316> arch<%s> ip<%u:%u> mtu<4080> dsig<%d> key<%s>\n", ARCH_NAME,
	       own.node, own.id, DATA_SIGNATURE, secret);
	fflush(stdout);
	for (int fd = 0; fd < 3; fd++)
		dup2(null, fd);
	close(null);
	return 0;
}

/* Send OP_HELLO to the master, and wait until it has sent the table. */
static int master_join(const char *where, bool by_hoster)
{
	struct frame f = { 0 };
	struct sci_addr addr;
	char secret[33];
	int ret;

	if (sscanf(where, "%u:%u", &addr.node, &addr.id) != 2 ||
	    (by_hoster ? secret_make(secret) : secret_read(secret)))
		return -EINVAL;
	ret = sci_connect(endpoint, &addr, JOIN_MS, &master_peer);
	if (!ret && by_hoster)
		ret = hoster_line(secret);
	if (ret)
		return ret;
	frame_begin(&f, OP_HELLO, 0);
	frame_str(&f, secret);
	frame_str(&f, ARCH_NAME);
	ret = hello_push(master_peer, &f);
	return ret ? ret : table_wait(by_hoster ? HOSTER_MS : JOIN_MS);
}

int hosts_init(const char *name, const char *master, bool by_hoster)
{
	const char *node = getenv("SCI_NODE");
	char own[256];

	if (master)
		return master_join(master, by_hoster);
	if (name)
		snprintf(own, sizeof(own), "%s", name);
	else if (node && *node)
		snprintf(own, sizeof(own), "node%s", node);
	else if (gethostname(own, sizeof(own)))
		return -errno;
	own[sizeof(own) - 1] = 0;
	own_host = 1;
	if (!host_new(1, own, ARCH_NAME))
		return -ENOMEM;
	hosts[1]->state = HOST_JOINED;
	return sci_ep_addr(endpoint, &hosts[1]->addr);
}

void hosts_fini(void)
{
	for (int i = 1; i <= (int)HOST_MAX; i++)
		if (hosts[i])
			host_free(hosts[i]);
	starters_kill(SIGKILL);
}
