// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/*
 * Messages of nodes that only sockets connect, over each kind of socket, and of
 * an endpoint with peers inside and outside of its cluster.  All tests of
 * selftests/msg run over the net, too, with SCI_TEST_NET: see scripts/check.
 */
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <linux/vm_sockets.h>
#include <unistd.h>

#include "libsci/fabric/net/net.h"
#include "libsci/msg/endpoint.h"
#include "selftests/msg/crowd.h"
#include "selftests/net/exchange.h"

static const char *kind;

static void far_side(struct peer *proc, void *arg)
{
	struct pair l;

	(void)arg;
	test_use_net(kind, 8);
	l = pair_open(proc, 4, 0);
	exchange(l.ep, l.to, 1);
	exchange_memory(&l);
	pair_close(&l);
}

static void run_pair(const char *with)
{
	struct peer *p;
	struct pair l;

	kind = with;
	p = peer_spawn(8, far_side, NULL);
	test_use_net(kind, 4);
	l = pair_open(p, 8, 0);
	exchange(l.ep, l.to, 1);
	exchange_memory(&l);
	pair_close(&l);
	peer_join(p);
}

TEST(over_unix_sockets)
{
	run_pair("unix");
}

TEST(over_tcp)
{
	run_pair("tcp");
}

TEST(over_tcp6)
{
	run_pair("tcp6");
}

/* The kernel needs the module vsock_loopback. */
static bool has_vsock(void)
{
	struct sockaddr_vm sa = {
		.svm_family = AF_VSOCK, .svm_cid = VMADDR_CID_LOCAL, .svm_port = VMADDR_PORT_ANY,
	};
	int fd = socket(AF_VSOCK, SOCK_STREAM | SOCK_CLOEXEC, 0);
	bool has = fd >= 0 && !bind(fd, (struct sockaddr *)&sa, sizeof(sa));

	if (fd >= 0)
		close(fd);
	return has;
}

TEST(over_vsock)
{
	if (!has_vsock())
		SKIP("no vsock between processes of this machine");
	run_pair("vsock");
}

/* ---- one endpoint with peers on both ---- */

static void beyond(struct peer *proc, void *arg)
{
	struct pair l;

	(void)arg;
	test_use_net("unix", 12);
	l = pair_open(proc, 4, 0);
	exchange(l.ep, l.to, 3);
	pair_close(&l);
}

static void beside(struct peer *proc, void *arg)
{
	struct pair l;

	(void)arg;
	l = pair_open(proc, 4, 0);
	exchange(l.ep, l.to, 2);
	pair_close(&l);
}

TEST(an_endpoint_with_peers_on_both)
{
	struct peer *b = peer_spawn(8, beside, NULL);
	struct peer *c = peer_spawn(12, beyond, NULL);
	struct pair near = { .proc = b }, far = { .proc = c };

	test_use_net("unix", 4);
	test_use_cluster("");
	near.ep = far.ep = test_ep_open(TEST_ID, 0);
	/* SCI_NET_PEERS names node 8, too, but node 8 is in this cluster */
	WAIT_UNTIL(!near.ep->ops->query.probe(near.ep->fabric, 0, 8), TEST_WAIT_MS);
	near.to = test_ep_connect(near.ep, 8, TEST_ID);
	far.to = test_ep_connect(far.ep, 12, TEST_ID);
	CHECK(!near.to->stream);
	CHECK(far.to->stream);
	exchange(near.ep, near.to, 2);
	exchange(far.ep, far.to, 3);
	pair_meet(&near);
	pair_meet(&far);
	CHECK_EQ(sci_ep_close(near.ep), 0);
	peer_join(b);
	peer_join(c);
}

/* Node 8 joins the cluster after node 4 has begun to connect to it by the net. */
static void latecomer(struct peer *proc, void *arg)
{
	struct pair l = { .proc = proc };

	(void)arg;
	peer_expect(proc, "begun");
	test_use_net("unix", 8);
	test_use_cluster("");
	l.ep = test_ep_open(TEST_ID, 0);
	l.to = test_ep_connect(l.ep, 4, TEST_ID);
	CHECK(!l.to->stream);
	exchange(l.ep, l.to, 1);
	pair_close(&l);
}

TEST(a_node_joins_the_cluster_late)
{
	struct peer *p = peer_spawn(8, latecomer, NULL);
	const struct sci_addr addr = { 8, TEST_ID };
	struct pair l = { .proc = p };

	test_use_net("unix", 4);
	test_use_cluster("");
	l.ep = test_ep_open(TEST_ID, 0);
	CHECK_EQ(sci_peer_open(l.ep, &addr, TEST_WAIT_MS, &l.to), 0);
	CHECK(l.to->stream);
	peer_send(p, "begun");
	exchange(l.ep, l.to, 1);
	CHECK(!l.to->stream);
	pair_close(&l);
	peer_join(p);
}

#define LONG		4000u		/* in bytes */

static void taker(struct peer *proc, void *net)
{
	unsigned char buf[LONG];
	struct pair l;

	if (net)
		test_use_net(net, 12);
	l = pair_open(proc, 4, 0);
	for (int i = 0; i < 2; i++)
		CHECK_EQ(sci_recv(l.ep, l.to, buf, LONG, NULL), 0);
	pair_close(&l);
}

static uint64_t handshakes_all(struct sci_ep *ep)
{
	struct sci_ep_stats st = { .size = sizeof(st) };

	CHECK_EQ(sci_ep_stats(ep, &st), 0);
	return st.sent_rendezvous + st.sent_zcopy;
}

/* Send a message. Return 1 if it begins with a handshake, else 0. */
static uint64_t handshakes(struct pair *l)
{
	static const unsigned char buf[LONG];
	uint64_t before = handshakes_all(l->ep);

	CHECK_EQ(sci_send(l->to, buf, LONG), 0);
	return handshakes_all(l->ep) - before;
}

static uint64_t param_get(struct sci_peer *p, enum sci_param param)
{
	uint64_t value;

	CHECK_EQ(sci_peer_get(p, param, &value), 0);
	return value;
}

static void use_table(const char *text)
{
	test_env_file("SCI_MSG_TABLE", text);
	test_use_net("unix", 4);
	test_use_cluster("");
}

TEST(parameters_of_the_endpoint_are_not_of_a_network)
{
	struct sci_ep *ep;

	use_table("net spin_us 5\n");
	CHECK_EQ(sci_ep_open(&ep, TEST_ID, 0), -EINVAL);
}

TEST(each_network_has_parameters)
{
	static char net[] = "unix";
	struct peer *b = peer_spawn(8, taker, NULL);
	struct peer *c = peer_spawn(12, taker, net);
	struct pair near = { .proc = b }, far = { .proc = c };

	use_table("net eager_max 3000\nshm lines_max 5000\n");
	near.ep = far.ep = test_ep_open(TEST_ID, 0);
	WAIT_UNTIL(!near.ep->ops->query.probe(near.ep->fabric, 0, 8), TEST_WAIT_MS);
	near.to = test_ep_connect(near.ep, 8, TEST_ID);
	far.to = test_ep_connect(far.ep, 12, TEST_ID);
	CHECK_EQ(handshakes(&near), 0);
	CHECK_EQ(handshakes(&far), 1);
	CHECK(!strcmp(sci_peer_network(near.to), sci_ep_fabric(near.ep)));
	CHECK(!strcmp(sci_peer_network(far.to), "net"));
	CHECK_EQ(param_get(near.to, SCI_PARAM_LINES_MAX), 5000);
	CHECK_EQ(param_get(far.to, SCI_PARAM_LINES_MAX), 64);
	CHECK_EQ(sci_peer_set(far.to, SCI_PARAM_EAGER_MAX, 3500), 0);
	CHECK_EQ(param_get(far.to, SCI_PARAM_EAGER_MAX), 3500);
	CHECK(param_get(near.to, SCI_PARAM_EAGER_MAX) != 3500);
	CHECK_EQ(sci_peer_set(far.to, SCI_PARAM_SPIN_US, 77), 0);
	CHECK_EQ(param_get(near.to, SCI_PARAM_SPIN_US), 77);
	CHECK_EQ(sci_peer_set(far.to, SCI_PARAMS, 0), -EINVAL);
	CHECK_EQ(sci_ep_set(near.ep, SCI_PARAM_LINES_MAX, 0), 0);
	CHECK_EQ(sci_ep_set(near.ep, SCI_PARAM_EAGER_MAX, 3000), 0);
	CHECK_EQ(handshakes(&near), 1);
	CHECK_EQ(sci_ep_set(near.ep, SCI_PARAM_EAGER_MAX, 5000), 0);
	CHECK_EQ(handshakes(&far), 0);
	/* sockets have no single copies, which would need a handshake */
	CHECK_EQ(sci_ep_set(near.ep, SCI_PARAM_SINGLE_COPY_MIN, 100), 0);
	CHECK_EQ(handshakes(&far), 0);
	pair_meet(&near);
	pair_meet(&far);
	CHECK_EQ(sci_ep_close(near.ep), 0);
	peer_join(b);
	peer_join(c);
}

/* Endpoints of one node are different processes to the net: each has its own segments. */
static void several(struct peer *proc, void *arg)
{
	struct sci_ep *ep[3];
	struct pair l = { .proc = proc };

	(void)arg;
	test_use_net("unix", 8);
	for (uint32_t i = 0; i < ARRAY_LEN(ep); i++)
		ep[i] = test_ep_open(10 + i, 0);
	for (uint32_t i = 0; i < ARRAY_LEN(ep); i++) {
		l.ep = ep[i];
		l.to = test_ep_connect(ep[i], 4, TEST_ID);
		exchange(l.ep, l.to, i);
	}
	for (uint32_t i = 0; i < ARRAY_LEN(ep); i++)
		CHECK_EQ(sci_ep_close(ep[i]), 0);
}

TEST(endpoints_of_one_node)
{
	struct peer *p = peer_spawn(8, several, NULL);
	struct sci_ep *ep;

	test_use_net("unix", 4);
	ep = test_ep_open(TEST_ID, 0);
	for (uint32_t i = 0; i < 3; i++) {
		struct sci_peer *from = test_ep_accept(ep);
		struct sci_addr addr;

		CHECK_EQ(sci_peer_addr(from, &addr), 0);
		CHECK_EQ(addr.id, 10 + i);
		exchange(ep, from, i);
	}
	CHECK_EQ(sci_ep_close(ep), 0);
	peer_join(p);
}

/* ---- parked peers ---- */

#define CALLS		(4 * CROWD)

static void crowd(struct peer *proc, void *arg)
{
	test_use_net("unix", 8);
	crowd_call(proc, arg, CALLS);
}

/*
 * With many peers on the net, silent ones are not polled. Each of them is heard, both by a thread
 * that polls the net and by one that sleeps.
 */
TEST(a_parked_peer_is_heard)
{
	struct crowd *shared = test_shared(sizeof(*shared));
	struct peer *p = peer_spawn(8, crowd, shared);
	struct sci_peer *from[CROWD];
	unsigned int parked = 0;
	struct sci_ep *ep;

	test_use_net("unix", 4);
	ep = test_ep_open(TEST_ID, 0);
	crowd_accept(ep, from);
	for (unsigned int n = 0; n < CALLS; n++) {
		unsigned int got;

		WAIT_UNTIL(sci_progress(ep) >= 0 && ep->n_hot < CROWD / 2, TEST_WAIT_MS);
		CHECK_EQ(sci_ep_set(ep, SCI_PARAM_SPIN_US, n & 1 ? 1000000 : 0), 0);
		parked += list_empty(&from[n % CROWD]->hot);
		atomic_store(&shared->asked, n + 1);
		CHECK_EQ(sci_recv(ep, NULL, &got, sizeof(got), NULL), 0);
		CHECK_EQ(got, n);
	}
	test_note("%u of %u messages came from a parked peer", parked, CALLS);
	CHECK(parked > CALLS / 4);
	peer_send(p, "leave");
	peer_join(p);
	CHECK_EQ(sci_ep_close(ep), 0);
}

/* ---- the limit of descriptors ---- */

#define FAR_PEERS	5u		/* that connect, and as many to connect to */

static void ignore_event(void *owner, const struct sci_event *ev)
{
	(void)owner;
	(void)ev;
}

/* Open the net alone: no other fabric raises the limit. */
static struct sci_fabric *net_open_alone(unsigned int node, struct sci_lintr **i)
{
	const struct sci_fabric_place at = { .node = node };
	struct sci_lintr_param intr = {
		.number = TEST_ID, .flags = SCI_INTR_DATA | SCI_INTR_FIXED, .event = ignore_event,
	};
	struct sci_fabric *f;

	test_use_net("unix", node);
	CHECK_EQ(sci_net_fabric.open(&f, &at, getenv("SCI_NET")), 0);
	CHECK_EQ(f->ops->lintr.create(f, &intr, i), 0);
	return f;
}

static int net_connect(struct sci_fabric *f, unsigned int node)
{
	const struct sci_rintr_param param = {
		.node = node, .number = TEST_ID, .timeout = TEST_WAIT_MS, .data = true,
	};
	struct sci_rintr *i;
	int ret = f->ops->rintr.connect(f, &param, &i);

	if (!ret)
		f->ops->rintr.disconnect(i);
	return ret;
}

static void far_peer(struct peer *proc, void *arg)
{
	unsigned int node = 8 + 4 * *(unsigned int *)arg;
	struct sci_lintr *i;
	struct sci_fabric *f = net_open_alone(node, &i);

	peer_send(proc, "open");
	peer_expect(proc, "go");
	if (*(unsigned int *)arg < FAR_PEERS)
		CHECK_EQ(net_connect(f, 4), 0);
	peer_send(proc, "connected");
	peer_expect(proc, "close");
	f->ops->lintr.destroy(i);
	f->ops->close(f);
}

/* Leave @n descriptors below the soft limit. @hard: also below the hard limit */
static void leave_descriptors(unsigned int n, bool hard)
{
	int fd = dup(STDIN_FILENO);
	struct rlimit rl;

	CHECK(fd >= 0);
	close(fd);
	CHECK_EQ(getrlimit(RLIMIT_NOFILE, &rl), 0);
	rl.rlim_cur = (rlim_t)fd + n;
	if (hard)
		rl.rlim_max = rl.rlim_cur;
	CHECK_EQ(setrlimit(RLIMIT_NOFILE, &rl), 0);
}

TEST(more_peers_than_the_soft_limit_of_descriptors)
{
	static unsigned int numbers[2 * FAR_PEERS];
	struct peer *p[2 * FAR_PEERS];
	struct sci_fabric *f;
	struct sci_lintr *i;

	for (unsigned int k = 0; k < 2 * FAR_PEERS; k++) {
		numbers[k] = k;
		p[k] = peer_spawn(8 + 4 * k, far_peer, &numbers[k]);
		peer_expect(p[k], "open");
	}
	f = net_open_alone(4, &i);
	for (unsigned int k = 0; k < 2 * FAR_PEERS; k++) {
		if (k % FAR_PEERS == 0)
			leave_descriptors(3, false);
		peer_send(p[k], "go");
		peer_expect(p[k], "connected");
		if (k >= FAR_PEERS)
			CHECK_EQ(net_connect(f, 8 + 4 * k), 0);
	}
	for (unsigned int k = 0; k < 2 * FAR_PEERS; k++)
		peer_send(p[k], "close");
	f->ops->lintr.destroy(i);
	f->ops->close(f);
}

TEST(no_descriptor_for_a_peer)
{
	static unsigned int number = FAR_PEERS;
	struct peer *p = peer_spawn(8 + 4 * number, far_peer, &number);
	struct sci_fabric *f;
	struct sci_lintr *i;

	peer_expect(p, "open");
	f = net_open_alone(4, &i);
	leave_descriptors(0, true);
	CHECK_EQ(net_connect(f, 8 + 4 * number), -EMFILE);
	f->ops->lintr.destroy(i);
	f->ops->close(f);
	peer_kill(p, SIGKILL);
}

/* ---- connects that end before the answer ---- */

struct connect {
	struct sci_fabric *f;
	_Atomic bool done;
};

static void count_event(void *owner, const struct sci_event *ev)
{
	_Atomic unsigned int *counts = owner;

	atomic_fetch_add(&counts[ev->type], 1);
}

/* Connect to the segment of node 8. */
static int segment_connect(struct sci_fabric *f, uint32_t timeout)
{
	const struct sci_rseg_param param = {
		.node = 8, .id = 1, .port = TEST_ID, .timeout = timeout, .event = ignore_event,
		.owner = f,
	};
	struct sci_rseg *r;
	int ret = f->ops->rseg.connect(f, &param, &r);

	if (!ret)
		f->ops->rseg.disconnect(r);
	return ret;
}

static void *connect_until_cancel(void *arg)
{
	struct connect *c = arg;
	int ret = segment_connect(c->f, SCI_TIMEOUT_NONE);

	atomic_store(&c->done, true);
	return (void *)(intptr_t)ret;
}

/* Call net_ask() while the exporter, which has the lock of its service, cannot answer. */
static void connects_end_early(struct sci_fabric *f, struct sci_fabric *exporter)
{
	struct connect c = { .f = f };
	pthread_t t;
	void *ret;

	pthread_mutex_lock(&net_of(exporter)->svc.lock);
	CHECK_EQ(segment_connect(f, 1), -ETIMEDOUT);
	CHECK(!pthread_create(&t, NULL, connect_until_cancel, &c));
	WAIT_UNTIL((f->ops->rseg.cancel_connect(f, f), atomic_load(&c.done)), TEST_WAIT_MS);
	pthread_join(t, &ret);
	CHECK_EQ((intptr_t)ret, -ECANCELED);
	pthread_mutex_unlock(&net_of(exporter)->svc.lock);
}

TEST(a_connect_that_ends_early_leaves_no_importer)
{
	static _Atomic unsigned int counts[32];
	struct sci_lseg_param param = {
		.id = 1, .size = 4096, .event = count_event, .owner = (void *)counts,
	};
	struct sci_fabric *f[2];
	struct sci_lintr *i[2];
	struct sci_lseg *s;

	f[1] = net_open_alone(8, &i[1]);
	CHECK_EQ(f[1]->ops->lseg.create(f[1], &param, &s), 0);
	CHECK_EQ(f[1]->ops->lseg.export(s, 0), 0);
	f[0] = net_open_alone(4, &i[0]);
	CHECK_EQ(net_connect(f[0], 8), 0);
	connects_end_early(f[0], f[1]);
	WAIT_UNTIL(atomic_load(&counts[SCI_EVENT_CONNECT]) == 2, TEST_WAIT_MS);
	WAIT_UNTIL(!f[1]->ops->lseg.importers(s), TEST_WAIT_MS);
	CHECK_EQ(atomic_load(&counts[SCI_EVENT_DISCONNECT]), 2);
	/* a later connect works */
	CHECK_EQ(segment_connect(f[0], TEST_WAIT_MS), 0);
	WAIT_UNTIL(atomic_load(&counts[SCI_EVENT_DISCONNECT]) == 3, TEST_WAIT_MS);
	f[1]->ops->lseg.destroy(s);
	for (unsigned int k = 0; k < 2; k++) {
		f[k]->ops->lintr.destroy(i[k]);
		f[k]->ops->close(f[k]);
	}
}

/* ---- nodes with one address ---- */

/* Be @node. All nodes have the address of node 4, as virtual nodes of one host may have. */
static void share_address(unsigned int node)
{
	char peers[320], address[96];

	test_use_net("unix", 4);
	snprintf(address, sizeof(address), "%s", getenv("SCI_NET"));
	test_be_node(node);
	test_use_net("unix", node);
	setenv("SCI_NET", address, 1);
	snprintf(peers, sizeof(peers), "4=%s,8=%s,12=%s", address, address, address);
	setenv("SCI_NET_PEERS", peers, 1);
}

static void sharer(struct peer *proc, void *arg)
{
	const unsigned int *node = arg;
	struct pair l = { .proc = proc };

	share_address(*node);
	l.ep = test_ep_open(TEST_ID, 0);
	peer_send(proc, "open");
	l.to = test_ep_accept(l.ep);
	exchange(l.ep, l.to, *node);
	pair_close(&l);
}

TEST(nodes_that_share_an_address)
{
	static const unsigned int nodes[] = { 4, 8 };
	struct peer *p[2];
	struct pair l[2];

	for (unsigned int i = 0; i < 2; i++) {
		p[i] = peer_spawn(nodes[i], sharer, (void *)(uintptr_t)&nodes[i]);
		peer_expect(p[i], "open");
	}
	share_address(12);
	l[0].ep = l[1].ep = test_ep_open(TEST_ID, 0);
	for (unsigned int i = 2; i-- > 0;) {
		const struct sci_addr addr = { nodes[i], TEST_ID };

		/* the limit ends only searches that have failed */
		CHECK_EQ(sci_peer_open(l[i].ep, &addr, 0, &l[i].to), 0);
		exchange(l[i].ep, l[i].to, nodes[i]);
		pair_meet(&l[i]);
	}
	CHECK_EQ(sci_ep_close(l[0].ep), 0);
	for (unsigned int i = 0; i < 2; i++)
		peer_join(p[i]);
}

/* ---- processes that start at the same time ---- */

#define STARTERS	4u

static struct start {
	pthread_barrier_t barrier;
	_Atomic unsigned int slots[STARTERS];
} *starts;

/* Open the net at the same time as the other processes. Check that no other process has its slot. */
static void start_once(unsigned int me, const char *spec)
{
	const struct sci_fabric_place at = { .node = 4 };
	struct sci_fabric *f;

	pthread_barrier_wait(&starts->barrier);
	CHECK_EQ(sci_net_fabric.open(&f, &at, spec), 0);
	atomic_store(&starts->slots[me], net_of(f)->slot);
	pthread_barrier_wait(&starts->barrier);
	for (unsigned int i = 0; i < STARTERS; i++)
		CHECK(i == me || atomic_load(&starts->slots[i]) != net_of(f)->slot);
	pthread_barrier_wait(&starts->barrier);
	f->ops->close(f);
}

static void starter(struct peer *proc, void *arg)
{
	unsigned int me = 0;

	(void)proc;
	while (me < STARTERS - 1 && atomic_exchange(&starts->slots[me], 1))
		me++;
	for (unsigned int i = 0; i < test_calls(500); i++)
		start_once(me, arg);
}

TEST(processes_of_one_path_start_at_the_same_time)
{
	char dir[] = "/tmp/sci-net-XXXXXX", spec[64];
	struct peer *p[STARTERS];
	pthread_barrierattr_t attr;

	CHECK(mkdtemp(dir));
	snprintf(spec, sizeof(spec), "unix:%s/socket", dir);
	test_use_net("unix", 4);
	starts = test_shared(sizeof(*starts));
	pthread_barrierattr_init(&attr);
	pthread_barrierattr_setpshared(&attr, PTHREAD_PROCESS_SHARED);
	pthread_barrier_init(&starts->barrier, &attr, STARTERS);
	for (unsigned int i = 0; i < STARTERS; i++)
		p[i] = peer_spawn(4, starter, spec);
	for (unsigned int i = 0; i < STARTERS; i++)
		peer_join(p[i]);
	/* no process has left a file */
	CHECK_EQ(rmdir(dir), 0);
}

static void path_user(struct peer *proc, void *arg)
{
	const struct sci_fabric_place at = { .node = 4 };
	struct sci_fabric *f;

	CHECK_EQ(sci_net_fabric.open(&f, &at, arg), 0);
	CHECK_EQ(net_of(f)->slot, 0);
	peer_send(proc, "open");
	/* until it is killed */
	peer_expect(proc, "end");
}

TEST(a_path_of_a_dead_process_is_used_again)
{
	const struct sci_fabric_place at = { .node = 4 };
	char dir[] = "/tmp/sci-net-XXXXXX", spec[64];
	struct sci_fabric *f;
	struct peer *p;

	CHECK(mkdtemp(dir));
	snprintf(spec, sizeof(spec), "unix:%s/socket", dir);
	test_use_net("unix", 4);
	for (unsigned int i = 0; i < 2; i++) {
		p = peer_spawn(4, path_user, spec);
		peer_expect(p, "open");
		/* the path is in use */
		CHECK_EQ(sci_net_fabric.open(&f, &at, spec), 0);
		CHECK_EQ(net_of(f)->slot, 1);
		f->ops->close(f);
		peer_kill(p, SIGKILL);
	}
	CHECK_EQ(sci_net_fabric.open(&f, &at, spec), 0);
	CHECK_EQ(net_of(f)->slot, 0);
	f->ops->close(f);
	CHECK_EQ(rmdir(dir), 0);
}

static int connect_error;		/* the next connect to a path fails with this error; 0: none */

/* Replace connect() in this program and in the library. For ENOENT, remove the path first. */
int connect(int fd, const struct sockaddr *sa, socklen_t len)
{
	const struct sockaddr_un *un = (const struct sockaddr_un *)sa;
	int error = connect_error;

	if (!error || sa->sa_family != AF_UNIX || !un->sun_path[0])
		return (int)syscall(SYS_connect, fd, sa, len);
	connect_error = 0;
	if (error == ENOENT)
		unlink(un->sun_path);
	errno = error;
	return -1;
}

/* The process of the path may end meanwhile, belong to another user, or be slow. */
TEST(a_path_whose_process_cannot_be_reached)
{
	static const int errors[] = { ENOENT, EACCES, EAGAIN };
	const struct sci_fabric_place at = { .node = 4 };
	char dir[] = "/tmp/sci-net-XXXXXX", spec[64];
	struct sci_fabric *f[2];

	CHECK(mkdtemp(dir));
	snprintf(spec, sizeof(spec), "unix:%s/socket", dir);
	test_use_net("unix", 4);
	for (unsigned int i = 0; i < ARRAY_LEN(errors); i++) {
		CHECK_EQ(sci_net_fabric.open(&f[0], &at, spec), 0);
		CHECK_EQ(net_of(f[0])->slot, 0);
		connect_error = errors[i];
		CHECK_EQ(sci_net_fabric.open(&f[1], &at, spec), 0);
		CHECK_EQ(connect_error, 0);
		CHECK_EQ(net_of(f[1])->slot, errors[i] == ENOENT ? 0 : 1);
		f[1]->ops->close(f[1]);
		f[0]->ops->close(f[0]);
	}
	CHECK_EQ(rmdir(dir), 0);
}

/* Make a value of SCI_NET with a path of @len bytes. */
static void spec_make(char spec[128], size_t len)
{
	int n = snprintf(spec, 128, "unix:/tmp/sci-net-%d-", getpid());

	memset(spec + n, 'x', 5 + len - (size_t)n);
	strcpy(spec + 5 + len, "+1024");
}

/* A path has room for the number of the last slot, ".1023", and for the final zero. */
TEST(a_path_that_is_too_long_is_refused)
{
	const struct sci_fabric_place at = { .node = 4 };
	struct sci_fabric *f;
	char spec[128];

	test_use_net("unix", 4);
	spec_make(spec, 103);
	CHECK_EQ(sci_net_fabric.open(&f, &at, spec), -EINVAL);
	spec_make(spec, 102);
	CHECK_EQ(sci_net_fabric.open(&f, &at, spec), 0);
	f->ops->close(f);
}
