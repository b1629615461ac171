// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/*
 * Peers that break the protocol of libsci/fabric/shm/shm.h: clients that send garbage to the
 * library's sockets, and servers at a name that the library calls. Calls return a code in time
 * and leak nothing.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <sisci_api.h>

#include "libsci/fabric/shm/shm.h"
#include "selftests/harness.h"
#include "selftests/random.h"

#ifndef SO_PASSRIGHTS
#define SO_PASSRIGHTS	83
#endif

#define SIZE		8192u
#define ID		10u
#define MANY_FDS	100
#define ALL_SEALS	(F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)

/* ---- descriptors ---- */

static _Atomic unsigned int bad_closes;	/* calls for a descriptor that is closed already */

/* Replace close() in this program and in the library. */
int close(int fd)
{
	static int (*_Atomic real)(int);
	int (*fn)(int) = atomic_load(&real), ret;

	if (!fn) {
		*(void **)&fn = dlsym(RTLD_NEXT, "close");
		atomic_store(&real, fn);
	}
	ret = fn(fd);
	if (ret && fd >= 0 && errno == EBADF)
		atomic_fetch_add(&bad_closes, 1);
	return ret;
}

static bool passes_rights;		/* the kernel is older than Linux 6.16 */

/* Replace setsockopt() in this program and in the library. */
int setsockopt(int fd, int level, int name, const void *value, socklen_t len)
{
	if (passes_rights && level == SOL_SOCKET && name == SO_PASSRIGHTS) {
		errno = ENOPROTOOPT;
		return -1;
	}
	return (int)syscall(SYS_setsockopt, fd, level, name, value, len);
}

/* ---- raw messages ---- */

static socklen_t address_of(struct sockaddr_un *sa, char kind,
			    unsigned int node, unsigned int id)
{
	int n;

	memset(sa, 0, sizeof(*sa));
	sa->sun_family = AF_UNIX;
	if (kind == SHM_GROUP || kind == SHM_GROUP_OPEN)
		n = snprintf(sa->sun_path + 1, SHM_NAME_MAX, "sci.%s.%c.%08x",
			     test_cluster(), kind, id);
	else
		n = snprintf(sa->sun_path + 1, SHM_NAME_MAX,
			     "sci.%s.%c.%u.%08x", test_cluster(), kind, node,
			     id);
	return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + n);
}

/* Return -1 if the connection is refused. */
static int dial(char kind, unsigned int node, unsigned int id)
{
	struct sockaddr_un sa;
	socklen_t len = address_of(&sa, kind, node, id);
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	CHECK(fd >= 0);
	if (!connect(fd, (struct sockaddr *)&sa, len))
		return fd;
	close(fd);
	return -1;
}

static int must_dial(char kind, unsigned int node, unsigned int id)
{
	int fd = dial(kind, node, id);

	CHECK(fd >= 0);
	return fd;
}

/* Return false if the kernel refuses the message. */
static bool say(int sock, const void *data, size_t len, const int *fds, int n)
{
	union {
		struct cmsghdr align;
		char buf[CMSG_SPACE(MANY_FDS * sizeof(int))];
	} control;
	struct iovec iov = { (void *)(uintptr_t)data, len };
	struct msghdr mh = { .msg_iov = &iov, .msg_iovlen = 1 };
	struct cmsghdr *cm;

	if (n) {
		memset(&control, 0, sizeof(control));
		mh.msg_control = control.buf;
		mh.msg_controllen = CMSG_SPACE(n * sizeof(int));
		cm = CMSG_FIRSTHDR(&mh);
		cm->cmsg_level = SOL_SOCKET;
		cm->cmsg_type = SCM_RIGHTS;
		cm->cmsg_len = CMSG_LEN(n * sizeof(int));
		memcpy(CMSG_DATA(cm), fds, n * sizeof(int));
	}
	/* the other side may have closed the connection already */
	return sendmsg(sock, &mh, MSG_NOSIGNAL) >= 0;
}

static struct shm_msg message(unsigned int type)
{
	return (struct shm_msg) {
		.magic = SHM_MAGIC, .type = (uint16_t)type, .node = 8,
	};
}

static void say_type(int sock, unsigned int type)
{
	struct shm_msg m = message(type);

	say(sock, &m, sizeof(m), NULL, 0);
}

/* ---- clients ---- */

struct owned {
	sci_desc_t sd;
	sci_local_segment_t s;
	sci_local_interrupt_t i;
	sci_local_data_interrupt_t d;
	volatile unsigned char *mem;
};

static void own_everything(struct owned *o)
{
	unsigned int len = 1;
	char c = 0;

	test_needs_shm();
	o->sd = test_open();
	o->s = test_segment(o->sd, ID, SIZE, 0);
	o->i = test_interrupt(o->sd, ID);
	o->d = test_data_interrupt(o->sd, ID);
	test_segment(o->sd, ID + 1, SIZE, SCI_FLAG_BROADCAST);
	o->mem = test_map_local(o->s, NULL);
	/* the first connection of each kind starts threads, which stay */
	test_connect(o->sd, 4, ID);
	CHECK_OK(SCITriggerDataInterrupt(test_connect_data_interrupt(o->sd, 4,
								     ID),
					 &c, 1, 0, &err));
	CHECK_OK(SCIWaitForDataInterrupt(o->d, &c, &len, TEST_WAIT_MS, 0,
					 &err));
}

/* Check that a correct client is served. */
static void check_served(struct owned *o)
{
	sci_remote_data_interrupt_t rd;
	sci_remote_interrupt_t ri;
	sci_remote_segment_t r;
	unsigned int len = 64;
	char data[64] = "hello";
	sci_map_t map;

	r = test_connect(o->sd, 4, ID);
	test_fill(test_map_remote(r, &map), SIZE, 9);
	CHECK(test_filled(o->mem, SIZE, 9));
	CHECK_OK(SCIUnmapSegment(map, 0, &err));
	CHECK_OK(SCIDisconnectSegment(r, 0, &err));
	ri = test_connect_interrupt(o->sd, 4, ID);
	CHECK_OK(SCITriggerInterrupt(ri, 0, &err));
	CHECK_OK(SCIWaitForInterrupt(o->i, TEST_WAIT_MS, 0, &err));
	CHECK_OK(SCIDisconnectInterrupt(ri, 0, &err));
	rd = test_connect_data_interrupt(o->sd, 4, ID);
	CHECK_OK(SCITriggerDataInterrupt(rd, data, 6, 0, &err));
	CHECK_OK(SCIWaitForDataInterrupt(o->d, data, &len, TEST_WAIT_MS, 0,
					 &err));
	CHECK_EQ(len, 6);
	CHECK(!memcmp(data, "hello", 6));
	CHECK_OK(SCIDisconnectDataInterrupt(rd, 0, &err));
	r = NULL;
	CHECK_OK(SCIConnectSegment(o->sd, &r, DIS_BROADCAST_NODEID_GROUP_ALL,
				   ID + 1, 0, NULL, NULL, 0,
				   SCI_FLAG_BROADCAST, &err));
	CHECK_OK(SCIDisconnectSegment(r, 0, &err));
}

static const struct {
	char kind;
	unsigned int id;
} doors[] = {
	{ SHM_SEGMENT, ID }, { SHM_INTR, ID }, { SHM_DATA_INTR, ID },
	{ SHM_GROUP, ID + 1 }, { SHM_GROUP_OPEN, ID + 1 }
};

/* Run an attack on each name, and check afterwards that nothing has changed. */
static void attack(void (*fn)(char kind, unsigned int id))
{
	struct owned o;

	own_everything(&o);
	check_served(&o);
	for (size_t i = 0; i < ARRAY_LEN(doors); i++) {
		leak_check_begin();
		fn(doors[i].kind, doors[i].id);
		check_served(&o);
		leak_check_end();
	}
}

/* Send one message, and close the connection without a read. */
static void once(char kind, unsigned int id, const void *data, size_t len,
		 const int *fds, int n)
{
	int fd = must_dial(kind, 4, id);

	say(fd, data, len, fds, n);
	close(fd);
}

static void wrong_lengths(char kind, unsigned int id)
{
	static unsigned char big[100000];
	static const size_t lengths[] = {
		0, 1, 4, 8, 31, 33, 64, 4096, 65536 + 32, 65536 + 33,
		sizeof(big)
	};
	struct shm_msg m = message(SHM_CONNECT);

	memcpy(big, &m, sizeof(m));
	for (size_t i = 0; i < ARRAY_LEN(lengths); i++)
		once(kind, id, big, lengths[i], NULL, 0);
}

TEST(clients_with_wrong_lengths)
{
	attack(wrong_lengths);
}

static void wrong_words(char kind, unsigned int id)
{
	unsigned char raw[sizeof(struct shm_msg)];

	for (unsigned int type = 0; type < 20; type++) {
		struct shm_msg m = message(type);

		once(kind, id, &m, sizeof(m), NULL, 0);
		m.magic ^= 1;
		once(kind, id, &m, sizeof(m), NULL, 0);
	}
	for (unsigned int i = 0; i < 300; i++) {
		struct shm_msg m;

		for (size_t k = 0; k < sizeof(raw); k++)
			raw[k] = (unsigned char)(rand() >> 7);
		memcpy(&m, raw, sizeof(m));
		if (i & 1)
			m.magic = SHM_MAGIC;
		if (i & 2)
			m.type %= 10;
		once(kind, id, &m, sizeof(m), NULL, 0);
	}
}

TEST(clients_with_wrong_words)
{
	attack(wrong_words);
}

/* Send each message again after a successful connect. */
static void wrong_after_connect(char kind, unsigned int id)
{
	static unsigned char big[70000];
	char answer[256];

	for (unsigned int type = 0; type < SHM_MERGE + 2; type++) {
		int fd = must_dial(kind, 4, id);

		say_type(fd, SHM_CONNECT);
		CHECK(recv(fd, answer, sizeof(answer), 0) >= 0);
		say_type(fd, type);
		say_type(fd, type);
		say(fd, big, sizeof(big), NULL, 0);
		close(fd);
	}
}

TEST(clients_that_turn_bad)
{
	struct owned o;
	char c[64];
	unsigned int len = sizeof(c);

	own_everything(&o);
	for (size_t i = 0; i < ARRAY_LEN(doors); i++)
		wrong_after_connect(doors[i].kind, doors[i].id);
	/* one of these messages is correct for a data interrupt, without data */
	do {
		len = sizeof(c);
	} while (!ERR_OF(SCIWaitForDataInterrupt(o.d, c, &len, 100, 0, &err)));
	check_served(&o);
}

static void with_descriptors(char kind, unsigned int id)
{
	struct shm_msg m = message(SHM_CONNECT);
	int fds[MANY_FDS];

	for (int i = 0; i < MANY_FDS; i++) {
		fds[i] = eventfd(0, EFD_CLOEXEC);
		CHECK(fds[i] >= 0);
	}
	for (int n = 1; n <= MANY_FDS; n += n < 4 ? 1 : 32)
		for (unsigned int type = 0; type < 10; type++) {
			m.type = (uint16_t)type;
			once(kind, id, &m, sizeof(m), fds, n);
			once(kind, id, &m, 7, fds, n);
		}
	for (int i = 0; i < MANY_FDS; i++)
		close(fds[i]);
}

TEST(clients_that_send_descriptors)
{
	attack(with_descriptors);
}

TEST(clients_that_send_descriptors_before_linux_6_16)
{
	passes_rights = true;
	attack(with_descriptors);
}

/* Make a TCP socket whose close() waits a day for @other, which does not read. */
static int lingering_socket(int *other)
{
	struct sockaddr_in sin = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	const struct linger day = { 1, 24 * 60 * 60 };
	socklen_t len = sizeof(sin);
	int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	static char data[65536];

	CHECK_EQ(bind(listener, (struct sockaddr *)&sin, len), 0);
	CHECK_EQ(listen(listener, 1), 0);
	CHECK_EQ(getsockname(listener, (struct sockaddr *)&sin, &len), 0);
	CHECK_EQ(connect(fd, (struct sockaddr *)&sin, len), 0);
	*other = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
	CHECK(*other >= 0);
	close(listener);
	while (send(fd, data, sizeof(data), MSG_DONTWAIT) > 0)
		;
	CHECK_EQ(setsockopt(fd, SOL_SOCKET, SO_LINGER, &day, sizeof(day)), 0);
	return fd;
}

static void send_lingering(struct peer *self, void *arg)
{
	struct shm_msg m = message(SHM_CONNECT);
	int sock, fd, other;

	if (arg)
		peer_become(65534, 65534);
	peer_expect(self, "attack");
	fd = lingering_socket(&other);
	sock = must_dial(SHM_SEGMENT, 4, ID);
	/* the end of the other side ends the wait of the close */
	if (!say(sock, &m, sizeof(m), &fd, 1))
		close(other);
	close(fd);
	peer_send(self, "sent");
	peer_expect(self, "leave");
}

static void lingered_on(struct peer *self, void *arg)
{
	sci_desc_t sd = test_open();

	(void)arg;
	test_segment(sd, ID, SIZE, 0);
	peer_send(self, "ready");
	peer_expect(self, "call");
	/* the service thread answers this call after it has handled the attack */
	test_connect(sd, 4, ID);
	peer_send(self, "called");
}

/* The service thread finds the connection and the message at the same time. */
static void check_lingering(bool *stranger)
{
	struct peer *p = peer_spawn(4, lingered_on, NULL);
	struct peer *attacker = peer_spawn(8, send_lingering, stranger);

	test_needs_shm();
	peer_expect(p, "ready");
	peer_stop(p);
	peer_send(attacker, "attack");
	peer_expect(attacker, "sent");
	peer_continue(p);
	peer_send(p, "call");
	peer_expect(p, "called");
	peer_send(attacker, "leave");
}

static void needs_linux_6_16(void)
{
	int one = 1, fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	int ret = setsockopt(fd, SOL_SOCKET, SO_PASSRIGHTS, &one, sizeof(one));

	close(fd);
	if (ret)
		SKIP("the kernel has no SO_PASSRIGHTS");
}

TEST(a_client_that_sends_a_descriptor_whose_close_blocks)
{
	needs_linux_6_16();
	check_lingering(NULL);
}

TEST(a_stranger_that_sends_a_descriptor_whose_close_blocks)
{
	bool stranger = true;

	if (geteuid())
		SKIP("only root can be another user");
	needs_linux_6_16();
	check_lingering(&stranger);
}

static void half_closed(char kind, unsigned int id)
{
	for (int how = SHUT_RD; how <= SHUT_RDWR; how++) {
		int fd = must_dial(kind, 4, id);

		CHECK_EQ(shutdown(fd, how), 0);
		say_type(fd, SHM_CONNECT);
		close(fd);
		fd = must_dial(kind, 4, id);
		say_type(fd, SHM_CONNECT);
		shutdown(fd, how);
		close(fd);
	}
}

TEST(clients_that_shut_down)
{
	attack(half_closed);
}

/* Very many connections that send nothing. */
static void idle_crowd(char kind, unsigned int id)
{
	const int n = TEST_TSAN || TEST_ASAN ? 200 : 1000;
	int *fds = calloc(n, sizeof(*fds));

	for (int i = 0; i < n; i++)
		fds[i] = must_dial(kind, 4, id);
	for (int i = 0; i < n; i++)
		close(fds[i]);
	free(fds);
}

static void room_for_a_crowd(void)
{
	struct rlimit rl;

	CHECK_EQ(getrlimit(RLIMIT_NOFILE, &rl), 0);
	if (rl.rlim_max < 6000)
		SKIP("the hard limit of descriptors is %lu",
		     (unsigned long)rl.rlim_max);
	rl.rlim_cur = rl.rlim_max;
	CHECK_EQ(setrlimit(RLIMIT_NOFILE, &rl), 0);
}

TEST(crowds_of_idle_clients)
{
	room_for_a_crowd();
	attack(idle_crowd);
}

static void crowd(struct peer *self, void *arg)
{
	int *n = arg;

	room_for_a_crowd();
	peer_expect(self, "come");
	for (int i = 0; i < *n; i++)
		must_dial(doors[i % 5].kind, 4, doors[i % 5].id);
	peer_send(self, "here");
	peer_expect(self, "leave");
}

/* A correct client is served at the same time. */
TEST(an_honest_client_in_a_crowd)
{
	static int n = TEST_TSAN || TEST_ASAN ? 500 : 4000;
	struct peer *p = peer_spawn(8, crowd, &n);
	unsigned int fds;
	struct owned o;

	own_everything(&o);
	check_served(&o);
	fds = count_fds();
	peer_send(p, "come");
	peer_expect(p, "here");
	for (int i = 0; i < 10; i++)
		check_served(&o);
	peer_kill(p, SIGKILL);
	WAIT_UNTIL(count_fds() <= fds, TEST_WAIT_MS);
	check_served(&o);
}

/* A client that never reads, while the segment sends it very many notices. */
TEST(a_client_that_never_reads)
{
	struct owned o;
	int fd[4];

	own_everything(&o);
	for (int i = 0; i < 4; i++) {
		fd[i] = must_dial(SHM_SEGMENT, 4, ID);
		say_type(fd[i], SHM_CONNECT);
	}
	WAIT_UNTIL(ERR_OF(SCIRemoveSegment(o.s, 0, &err)) == SCI_ERR_BUSY,
		   TEST_WAIT_MS);
	for (int i = 0; i < 2000; i++) {
		CHECK_OK(SCISetSegmentUnavailable(o.s, 0, SCI_FLAG_NOTIFY,
						  &err));
		CHECK_OK(SCISetSegmentAvailable(o.s, 0, 0, &err));
	}
	check_served(&o);
	CHECK_OK(SCISetSegmentUnavailable(o.s, 0, SCI_FLAG_FORCE_DISCONNECT,
					  &err));
	CHECK_OK(SCISetSegmentAvailable(o.s, 0, 0, &err));
	check_served(&o);
	for (int i = 0; i < 4; i++)
		close(fd[i]);
}

/* A client fills the queue of a data interrupt and never stops. */
static void flood(struct peer *self, void *arg)
{
	static struct {
		struct shm_msg head;
		char data[65536];
	} m;
	int fd;

	(void)arg;
	peer_expect(self, "go");
	m.head = message(SHM_DATA);
	fd = must_dial(SHM_DATA_INTR, 4, ID);
	say_type(fd, SHM_CONNECT);
	peer_send(self, "flooding");
	for (;;)
		say(fd, &m, sizeof(m), NULL, 0);
}

TEST(a_client_that_floods)
{
	struct peer *p = peer_spawn(8, flood, NULL);
	static char data[65536];
	sci_local_interrupt_t i;
	struct owned o;

	own_everything(&o);
	peer_send(p, "go");
	peer_expect(p, "flooding");
	/* all other calls still work */
	for (int k = 0; k < 200; k++) {
		i = test_interrupt(o.sd, 1000 + k);
		CHECK_OK(SCITriggerInterrupt(test_connect_interrupt(o.sd, 4,
								    1000 + k),
					     0, &err));
		CHECK_OK(SCIWaitForInterrupt(i, TEST_WAIT_MS, 0, &err));
	}
	for (int k = 0; k < 500; k++) {
		unsigned int len = sizeof(data);

		CHECK_OK(SCIWaitForDataInterrupt(o.d, data, &len, TEST_WAIT_MS,
						 0, &err));
		CHECK_EQ(len, sizeof(data));
	}
	CHECK_OK(SCIRemoveDataInterrupt(o.d, 0, &err));
	peer_kill(p, SIGKILL);
	SCITerminate();
}

/* Datagrams to the socket that marks a process as present have no effect. */
TEST(datagrams_to_a_node)
{
	struct sockaddr_un sa = { .sun_family = AF_UNIX };
	int sock = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC |
			  SOCK_NONBLOCK, 0);
	FILE *f = fopen("/proc/net/unix", "re");
	char line[512], prefix[64];
	struct owned o;
	unsigned int n = 0;

	fclose(f);
	own_everything(&o);
	snprintf(prefix, sizeof(prefix), "@sci.%s.n.4.", test_cluster());
	f = fopen("/proc/net/unix", "re");
	while (fgets(line, sizeof(line), f)) {
		char *name = strstr(line, prefix);
		size_t len;

		if (!name)
			continue;
		name[strcspn(name, "\n")] = '\0';
		len = strlen(name + 1);
		memcpy(sa.sun_path + 1, name + 1, len);
		for (int i = 0; i < 1000; i++)
			sendto(sock, line, sizeof(line), MSG_NOSIGNAL,
			       (struct sockaddr *)&sa,
			       (socklen_t)(offsetof(struct sockaddr_un,
						    sun_path) + 1 + len));
		n++;
	}
	fclose(f);
	CHECK_EQ(n, 1);
	CHECK_EQ(SCIProbeNode(o.sd, 0, 4, 0, NULL), 1);
	check_served(&o);
	close(sock);
}

/* ---- servers ---- */

/* A way in which a server answers a request. */
struct act {
	const char *name;
	void (*answer)(int sock);
	bool vanishes;			/* looks as if the server did not exist */
};

static int squat(char kind, unsigned int node, unsigned int id)
{
	struct sockaddr_un sa;
	socklen_t len = address_of(&sa, kind, node, id);
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	CHECK_EQ(bind(fd, (struct sockaddr *)&sa, len), 0);
	CHECK_EQ(listen(fd, 100), 0);
	return fd;
}

static int memory(size_t size, unsigned int seals)
{
	int fd = memfd_create("hostile", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	CHECK(fd >= 0);
	CHECK_EQ(ftruncate(fd, (off_t)size), 0);
	if (seals)
		CHECK_EQ(fcntl(fd, F_ADD_SEALS, seals), 0);
	return fd;
}

static void reply(int sock, uint64_t size, unsigned int flags, int status,
		  const int *fds, int n)
{
	struct shm_msg m = message(SHM_REPLY);

	m.size = size;
	m.flags = (uint16_t)flags;
	m.status = status;
	say(sock, &m, sizeof(m), fds, n);
}

static void with_memory(int sock, size_t real, uint64_t told,
			unsigned int seals, unsigned int flags)
{
	int fd = memory(real, seals);

	reply(sock, told, flags, 0, &fd, 1);
	close(fd);
}

static void unsealed(int sock)
{
	with_memory(sock, SIZE, SIZE, 0, 0);
}

static void grow_sealed(int sock)
{
	with_memory(sock, SIZE, SIZE, F_SEAL_GROW, 0);
}

static void too_small(int sock)
{
	with_memory(sock, 4096, SIZE, ALL_SEALS, 0);
}

static void far_too_small(int sock)
{
	with_memory(sock, 4096, UINT64_MAX, ALL_SEALS, 0);
}

static void huge_lie(int sock)
{
	with_memory(sock, 4096, UINT64_MAX - 4095, ALL_SEALS, SHM_F_HUGE);
}

static void empty(int sock)
{
	with_memory(sock, 0, 0, ALL_SEALS, 0);
}

static void odd_size(int sock)
{
	with_memory(sock, 5000, 5000, ALL_SEALS, 0);
}

static void write_sealed(int sock)
{
	with_memory(sock, SIZE, SIZE, ALL_SEALS | F_SEAL_WRITE, 0);
}

static void not_memory(int sock)
{
	int fds[2];

	CHECK_EQ(pipe2(fds, O_CLOEXEC), 0);
	reply(sock, SIZE, 0, 0, fds, 1);
	close(fds[0]);
	close(fds[1]);
}

static void a_file(int sock)
{
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);

	reply(sock, SIZE, 0, 0, &fd, 1);
	close(fd);
}

static void readonly_memory(int sock)
{
	int fd = memory(SIZE, ALL_SEALS), ro;
	char path[64];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	ro = open(path, O_RDONLY | O_CLOEXEC);
	reply(sock, SIZE, 0, 0, &ro, 1);
	close(ro);
	close(fd);
}

static void no_descriptor(int sock)
{
	reply(sock, SIZE, 0, 0, NULL, 0);
}

static void many_descriptors(int sock)
{
	int fds[MANY_FDS];

	for (int i = 0; i < MANY_FDS; i++)
		fds[i] = memory(SIZE, ALL_SEALS);
	reply(sock, SIZE, 0, 0, fds, MANY_FDS);
	for (int i = 0; i < MANY_FDS; i++)
		close(fds[i]);
}

static void status_positive(int sock)
{
	reply(sock, SIZE, 0, 1, NULL, 0);
}

static void status_absurd(int sock)
{
	reply(sock, SIZE, 0, -1000000, NULL, 0);
}

static void status_min(int sock)
{
	reply(sock, SIZE, 0, INT32_MIN, NULL, 0);
}

static void status_pipe(int sock)
{
	reply(sock, SIZE, 0, -EPIPE, NULL, 0);
}

static void status_with_memory(int sock)
{
	int fd = memory(SIZE, ALL_SEALS);

	reply(sock, SIZE, 0, -EIO, &fd, 1);
	close(fd);
}

static void short_answer(int sock)
{
	struct shm_msg m = message(SHM_REPLY);
	int fd = memory(SIZE, ALL_SEALS);

	say(sock, &m, 20, &fd, 1);
	close(fd);
}

static void long_answer(int sock)
{
	char data[4096] = { 0 };
	struct shm_msg m = message(SHM_REPLY);
	int fd = memory(SIZE, ALL_SEALS);

	m.size = SIZE;
	memcpy(data, &m, sizeof(m));
	say(sock, data, sizeof(data), &fd, 1);
	close(fd);
}

static void wrong_magic(int sock)
{
	struct shm_msg m = message(SHM_REPLY);
	int fd = memory(SIZE, ALL_SEALS);

	m.magic = 0;
	m.size = SIZE;
	say(sock, &m, sizeof(m), &fd, 1);
	close(fd);
}

static void wrong_type(int sock)
{
	for (unsigned int type = 0; type < 12; type++)
		if (type != SHM_REPLY)
			say_type(sock, type);
}

static void just_data(int sock)
{
	say_type(sock, SHM_DATA);
}

static void nothing(int sock)
{
	say(sock, "", 0, NULL, 0);
}

static void nothing_with_memory(int sock)
{
	int fd = memory(SIZE, ALL_SEALS);

	say(sock, "", 0, &fd, 1);
	close(fd);
}

static void hang_up(int sock)
{
	(void)sock;
}

static const struct act acts[] = {
	{ "unsealed memory", unsealed, false },
	{ "memory that may shrink", grow_sealed, false },
	{ "memory smaller than told", too_small, false },
	{ "memory far smaller than told", far_too_small, false },
	{ "small memory of huge pages", huge_lie, false },
	{ "no memory at all", empty, false },
	{ "memory of half a page", odd_size, false },
	{ "memory nobody may write", write_sealed, false },
	{ "a pipe", not_memory, false },
	{ "a file", a_file, false },
	{ "memory opened for reading", readonly_memory, false },
	{ "no descriptor", no_descriptor, false },
	{ "many descriptors", many_descriptors, false },
	{ "a positive status", status_positive, false },
	{ "an absurd status", status_absurd, false },
	{ "the smallest status", status_min, false },
	{ "a broken pipe", status_pipe, true },
	{ "a refusal with memory", status_with_memory, false },
	{ "a short answer", short_answer, false },
	{ "a long answer", long_answer, false },
	{ "a wrong magic", wrong_magic, false },
	{ "answers of other types", wrong_type, false },
	{ "data", just_data, false },
	{ "an empty message", nothing, true },
	{ "an empty message with memory", nothing_with_memory, true },
	{ "nothing", hang_up, true },
};

struct stage {
	_Atomic unsigned int act;	/* index in acts[] */
	_Atomic unsigned int served;
};

/* Serve all names with the current act. */
static void bad_server(struct peer *self, void *arg)
{
	static const struct {
		char kind;
		unsigned int node, id;
	} names[] = {
		{ SHM_SEGMENT, 8, ID }, { SHM_INTR, 8, ID }, { SHM_DATA_INTR, 8, ID },
		{ SHM_GROUP, 8, ID }, { SHM_GROUP_OPEN, 8, ID }, { SHM_SEGMENT, 4, ID + 1 }
	};
	struct pollfd pfd[ARRAY_LEN(names)];
	struct stage *stage = arg;

	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		pfd[i] = (struct pollfd) {
			.fd = squat(names[i].kind, names[i].node, names[i].id), .events = POLLIN,
		};
	peer_send(self, "ready");
	for (;;) {
		poll(pfd, ARRAY_LEN(names), -1);
		for (size_t i = 0; i < ARRAY_LEN(names); i++) {
			struct pollfd one = { .events = POLLIN };
			char request[256];

			if (!(pfd[i].revents & POLLIN))
				continue;
			one.fd = accept4(pfd[i].fd, NULL, NULL, SOCK_CLOEXEC);
			if (one.fd < 0)
				continue;
			poll(&one, 1, TEST_WAIT_MS);
			recv(one.fd, request, sizeof(request), 0);
			acts[atomic_load(&stage->act)].answer(one.fd);
			close(one.fd);
			atomic_fetch_add(&stage->served, 1);
		}
	}
}

static void check_connects_fail(sci_desc_t sd, const struct act *act)
{
	sci_remote_data_interrupt_t rd = NULL;
	sci_remote_interrupt_t ri = NULL;
	sci_remote_segment_t r = NULL;
	sci_local_segment_t s = NULL;
	sci_error_t e;

	SCIConnectSegment(sd, &r, 8, ID, 0, NULL, NULL, 2000, 0, &e);
	if (!e || r)
		FAIL("a segment with %s was connected", act->name);
	SCIConnectSegment(sd, &r, DIS_BROADCAST_NODEID_GROUP_ALL, ID, 0, NULL,
			  NULL, 2000, SCI_FLAG_BROADCAST, &e);
	if (!e || r)
		FAIL("a group with %s was connected", act->name);
	SCICreateSegment(sd, &s, ID, SIZE, NULL, NULL, SCI_FLAG_BROADCAST,
			 &e);
	if (!e || s)
		FAIL("a group with %s was joined", act->name);
	SCIAttachLocalSegment(sd, &s, ID + 1, NULL, NULL, NULL, 0, &e);
	if (!e)		/* a later map of the segment may fail */
		SCIRemoveSegment(s, 0, NULL);
	SCIConnectInterrupt(sd, &ri, 8, 0, ID, 2000, 0, &e);
	if (!e)		/* any descriptor is accepted */
		SCIDisconnectInterrupt(ri, 0, NULL);
	SCIConnectDataInterrupt(sd, &rd, 8, 0, ID, 2000, 0, &e);
	if (!e)
		SCIDisconnectDataInterrupt(rd, 0, NULL);
}

static void check_acts(bool vanishing)
{
	struct stage *stage = test_shared(sizeof(*stage));
	struct peer *p = peer_spawn(8, bad_server, stage);
	unsigned int n = 0;
	sci_desc_t sd;

	test_needs_shm();
	peer_expect(p, "ready");
	sd = test_open();
	check_connects_fail(sd, &acts[0]);
	for (unsigned int i = 0; i < ARRAY_LEN(acts); i++) {
		if (acts[i].vanishes != vanishing)
			continue;
		atomic_store(&stage->act, i);
		leak_check_begin();
		check_connects_fail(sd, &acts[i]);
		leak_check_end();
		if (atomic_load(&bad_closes))
			FAIL("a descriptor of %s was closed twice", acts[i].name);
		n++;
	}
	CHECK(atomic_load(&stage->served) >= 6 * n);
	peer_kill(p, SIGKILL);
	/* a correct process can take the names */
	test_segment(sd, ID, SIZE, SCI_FLAG_BROADCAST);
}

TEST(servers_that_answer_garbage)
{
	check_acts(false);
}

TEST(servers_that_hang_up)
{
	check_acts(true);
}

/* Grant a connection, and send garbage on it. */
static void turncoat(struct peer *self, void *arg)
{
	int listener = squat(SHM_SEGMENT, 8, ID), sock, fd;
	char request[64];

	(void)arg;
	peer_send(self, "ready");
	for (unsigned int type = 0; type < 12; type++) {
		sock = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
		recv(sock, request, sizeof(request), 0);
		fd = memory(SIZE, ALL_SEALS);
		reply(sock, SIZE, 0, 0, &fd, 1);
		close(fd);
		peer_expect(self, "connected");
		for (int i = 0; i < 3; i++) {
			fd = memory(SIZE, 0);
			say_type(sock, type);
			say(sock, request, 5, &fd, 1);
			close(fd);
		}
		peer_expect(self, "next");
		close(sock);
	}
}

TEST(an_owner_that_turns_bad)
{
	static struct recorder rec;
	struct peer *p = peer_spawn(8, turncoat, NULL);
	sci_desc_t sd;

	test_needs_shm();
	peer_expect(p, "ready");
	sd = test_open();
	recorder_init(&rec);
	for (unsigned int type = 0; type < 12; type++) {
		sci_remote_segment_t r = test_connect_cb(sd, 8, ID, &rec);
		volatile unsigned char *mem;
		sci_map_t map;

		mem = test_map_remote(r, &map);
		peer_send(p, "connected");
		recorder_get(&rec, 0);
		test_fill(mem, SIZE, type);
		CHECK(test_filled(mem, SIZE, type));
		CHECK_OK(SCIUnmapSegment(map, 0, &err));
		CHECK_OK(SCIDisconnectSegment(r, 0, &err));
		recorder_clear(&rec);
		peer_send(p, "next");
	}
	peer_join(p);
}

/* ---- servers that never answer ---- */

static void silent(struct peer *self, void *arg)
{
	bool accepts = *(bool *)arg;
	int seg = squat(SHM_SEGMENT, 8, ID), intr = squat(SHM_INTR, 8, ID);
	int data = squat(SHM_DATA_INTR, 8, ID);
	int same = squat(SHM_SEGMENT, 4, ID);

	peer_send(self, "ready");
	for (int i = 0; accepts && i < 4; i++)
		accept4(i == 0 ? seg : i == 1 ? intr : i == 2 ? data : same,
			NULL, NULL, SOCK_CLOEXEC);
	peer_expect(self, "leave");
}

/* Check that @call times out, and not before @ms. */
#define CHECK_TIMES_OUT(call, ms)					\
	do {								\
		uint64_t began_ = test_now_ms();			\
									\
		CHECK_ERR(call, SCI_ERR_TIMEOUT);			\
		CHECK(test_now_ms() - began_ + 1 >= (ms));		\
	} while (0)

static void check_silence(bool accepts)
{
	struct peer *p = peer_spawn(8, silent, &accepts);
	unsigned int fds;
	sci_remote_data_interrupt_t rd;
	sci_remote_interrupt_t ri;
	sci_remote_segment_t r;
	sci_local_segment_t s;
	sci_desc_t sd;

	test_needs_shm();
	peer_expect(p, "ready");
	sd = test_open();
	fds = count_fds();
	CHECK_TIMES_OUT(SCIConnectSegment(sd, &r, 8, ID, 0, NULL, NULL, 1500,
					  0, &err), 1500);
	CHECK_TIMES_OUT(SCIConnectInterrupt(sd, &ri, 8, 0, ID, 1, 0, &err), 1000);
	CHECK_TIMES_OUT(SCIConnectDataInterrupt(sd, &rd, 8, 0, ID, 1, 0, &err), 1000);
	CHECK_TIMES_OUT(SCIAttachLocalSegment(sd, &s, ID, NULL, NULL, NULL, 0, &err), 1000);
	CHECK_EQ(count_fds(), fds);
	/* other calls work during an infinite wait, and SCITerminate() ends the wait */
	CHECK_OK(SCIConnectSegment(sd, &r, 8, ID, 0, NULL, NULL,
				   SCI_INFINITE_TIMEOUT,
				   SCI_FLAG_ASYNCHRONOUS_CONNECT, &err));
	CHECK_OK(SCIDisconnectSegment(r, 0, &err));
	CHECK_OK(SCIConnectSegment(sd, &r, 8, ID, 0, NULL, NULL,
				   SCI_INFINITE_TIMEOUT,
				   SCI_FLAG_ASYNCHRONOUS_CONNECT, &err));
	test_connect(sd, 4, SCIGetLocalSegmentId(test_segment(sd, ID + 1, SIZE,
							      0)));
	SCITerminate();
	peer_send(p, "leave");
	peer_join(p);
}

TEST(servers_that_take_the_call_and_are_silent)
{
	check_silence(true);
}

TEST(servers_that_do_not_take_the_call)
{
	check_silence(false);
}

/* ---- descriptors that are no interrupts ---- */

enum trap { FULL_PIPE, BROKEN_PIPE, FULL_EVENTFD, A_FILE, TRAPS };

static void trap_server(struct peer *self, void *arg)
{
	int listener = squat(SHM_INTR, 8, ID), sock, fd[2] = { -1, -1 };
	enum trap trap = *(enum trap *)arg;
	static char page[65536];
	uint64_t most = UINT64_MAX - 1;
	char request[64];

	peer_send(self, "ready");
	switch (trap) {
	case FULL_PIPE:
		CHECK_EQ(pipe2(fd, O_CLOEXEC), 0);
		fcntl(fd[1], F_SETFL, O_NONBLOCK);
		while (write(fd[1], page, sizeof(page)) > 0)
			;
		fcntl(fd[1], F_SETFL, 0);
		break;
	case BROKEN_PIPE:
		CHECK_EQ(pipe2(fd, O_CLOEXEC), 0);
		close(fd[0]);
		break;
	case FULL_EVENTFD:
		fd[1] = eventfd(0, EFD_CLOEXEC);
		CHECK_EQ(write(fd[1], &most, sizeof(most)), sizeof(most));
		break;
	default:
		fd[1] = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
		break;
	}
	sock = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
	recv(sock, request, sizeof(request), 0);
	reply(sock, 0, 0, 0, &fd[1], 1);
	peer_expect(self, "block");
	fcntl(fd[1], F_SETFL, 0);
	peer_send(self, "blocks");
	peer_expect(self, "leave");
}

/* The trigger returns a code and does not end the program. */
static void trapped(struct peer *self, void *arg)
{
	sci_desc_t sd = test_open();
	sci_remote_interrupt_t i;
	sci_error_t e;

	(void)arg;
	signal(SIGPIPE, SIG_DFL);
	peer_expect(self, "go");
	e = ERR_OF(SCIConnectInterrupt(sd, &i, 8, 0, ID, 0, 0, &err));
	peer_send(self, "called");
	peer_expect(self, "trigger");
	if (!e) {
		SCITriggerInterrupt(i, 0, NULL);
		SCIDisconnectInterrupt(i, 0, NULL);
	}
	SCITerminate();
	peer_send(self, "done");
}

static void check_trap(enum trap trap)
{
	struct peer *server = peer_spawn(8, trap_server, &trap);
	struct peer *client = peer_spawn(12, trapped, NULL);

	test_needs_shm();
	peer_expect(server, "ready");
	peer_send(client, "go");
	peer_expect(client, "called");
	peer_send(server, "block");
	peer_expect(server, "blocks");
	peer_send(client, "trigger");
	peer_expect(client, "done");
	peer_join(client);
	peer_send(server, "leave");
	peer_join(server);
}

TEST(a_trigger_of_a_full_pipe)
{
	check_trap(FULL_PIPE);
}

TEST(a_trigger_of_a_broken_pipe)
{
	check_trap(BROKEN_PIPE);
}

TEST(a_trigger_of_a_full_eventfd)
{
	check_trap(FULL_EVENTFD);
}

TEST(a_trigger_of_a_file)
{
	check_trap(A_FILE);
}

/* ---- importers that share an interrupt ---- */

/* Connect, and return the descriptor of the answer; -1: none. */
static int import_interrupt(int *sock)
{
	union {
		struct cmsghdr align;
		char buf[CMSG_SPACE(sizeof(int))];
	} control;
	struct shm_msg m;
	struct iovec iov = { &m, sizeof(m) };
	struct msghdr mh = { .msg_iov = &iov, .msg_iovlen = 1,
			     .msg_control = control.buf,
			     .msg_controllen = sizeof(control.buf) };
	struct cmsghdr *cm;
	int fd = -1;

	*sock = must_dial(SHM_INTR, 4, ID);
	say_type(*sock, SHM_CONNECT);
	CHECK_EQ(recvmsg(*sock, &mh, MSG_CMSG_CLOEXEC), sizeof(m));
	CHECK_EQ(m.status, 0);
	cm = CMSG_FIRSTHDR(&mh);
	if (cm)
		memcpy(&fd, CMSG_DATA(cm), sizeof(fd));
	return fd;
}

static void thief(struct peer *self, void *arg)
{
	uint64_t count, most = UINT64_MAX - 1;
	int fd, sock;

	(void)arg;
	peer_expect(self, "connect");
	fd = import_interrupt(&sock);
	peer_send(self, "connected");
	peer_expect(self, "steal");
	(void)!read(fd, &count, sizeof(count));
	(void)!recv(sock, &count, sizeof(count), MSG_DONTWAIT);
	peer_send(self, "stolen");
	peer_expect(self, "fill");
	fcntl(fd, F_SETFL, O_NONBLOCK);
	(void)!write(fd, &most, sizeof(most));
	for (int i = 0; i < 100000; i++) {
		struct shm_msg m = message(SHM_TRIGGER);

		if (send(sock, &m, sizeof(m), MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
			break;
	}
	fcntl(fd, F_SETFL, 0);
	peer_send(self, "full");
	peer_expect(self, "leave");
}

TEST(importers_cannot_take_or_stop_triggers_of_others)
{
	struct peer *p = peer_spawn(8, thief, NULL);
	sci_remote_interrupt_t ri;
	struct owned o;

	own_everything(&o);
	ri = test_connect_interrupt(o.sd, 4, ID);
	peer_send(p, "connect");
	peer_expect(p, "connected");
	CHECK_OK(SCITriggerInterrupt(ri, 0, &err));
	peer_send(p, "steal");
	peer_expect(p, "stolen");
	CHECK_OK(SCIWaitForInterrupt(o.i, TEST_WAIT_MS, 0, &err));
	peer_send(p, "fill");
	peer_expect(p, "full");
	CHECK_OK(SCITriggerInterrupt(ri, 0, &err));
	CHECK_OK(SCIWaitForInterrupt(o.i, TEST_WAIT_MS, 0, &err));
	/* a full socket already contains triggers */
	for (int i = 0; i < 10000; i++)
		CHECK_OK(SCITriggerInterrupt(ri, 0, &err));
	CHECK_OK(SCIWaitForInterrupt(o.i, TEST_WAIT_MS, 0, &err));
	CHECK_OK(SCIDisconnectInterrupt(ri, 0, &err));
	check_served(&o);
	peer_send(p, "leave");
	peer_join(p);
}

/* ---- memory that the owner changes ---- */

static void shrinker(struct peer *self, void *arg)
{
	int listener = squat(SHM_SEGMENT, 8, ID), sock, fd;
	char request[64];

	(void)arg;
	peer_send(self, "ready");
	sock = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
	recv(sock, request, sizeof(request), 0);
	fd = memory(SIZE, F_SEAL_SHRINK);
	reply(sock, SIZE, 0, 0, &fd, 1);
	peer_expect(self, "connected");
	CHECK(ftruncate(fd, 0) < 0);
	CHECK_EQ(fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0,
			   SIZE), 0);
	peer_send(self, "punched");
	peer_expect(self, "leave");
}

TEST(memory_with_holes)
{
	struct peer *p = peer_spawn(8, shrinker, NULL);
	volatile unsigned char *mem;

	test_needs_shm();
	peer_expect(p, "ready");
	mem = test_map_remote(test_connect(test_open(), 8, ID), NULL);
	test_fill(mem, SIZE, 1);
	peer_send(p, "connected");
	peer_expect(p, "punched");
	CHECK_EQ(mem[SIZE - 1], 0);
	test_fill(mem, SIZE, 2);
	CHECK(test_filled(mem, SIZE, 2));
	peer_send(p, "leave");
	peer_join(p);
}

/* ---- pairs ---- */

#define PAIRS	(TEST_TSAN || TEST_ASAN ? 300u : 2000u)

/* A peer that imports our segment, exports its own, and sends what fits no step of pair.c. */
static void pair_liar(struct peer *self, void *arg)
{
	int listener = squat(SHM_SEGMENT, 8, ID);
	unsigned char request[256];

	(void)arg;
	peer_send(self, "ready");
	for (unsigned int k = 0; k < PAIRS; k++) {
		uint32_t half;
		int fd[2];

		random_seed(k);
		peer_expect(self, "begin");
		fd[0] = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
		CHECK(read(fd[0], request, sizeof(request)) > 0);
		with_memory(fd[0], SIZE, SIZE, ALL_SEALS, 0);
		/* the segment may have ended already */
		fd[1] = dial(SHM_SEGMENT, k & 1 ? 4 : 12, ID);
		say_type(fd[1], SHM_CONNECT);
		if (k & 2)
			peer_expect(self, "paired");
		for (uint32_t n = random_below(8); n; n--) {
			half = random_below(2);
			switch (random_below(8)) {
			case 0:
				shutdown(fd[half], random_below(2) ? SHUT_WR : SHUT_RDWR);
				break;
			case 1:
				say_type(fd[half], random_below(SHM_MERGE + 2));
				break;
			default:
				say_type(fd[half], random_below(2) ? SHM_PAIR : SHM_MERGE);
				break;
			}
		}
		half = random_below(2);
		close(fd[half]);
		peer_send(self, "lied");
		peer_expect(self, "end");
		close(fd[!half]);
	}
}

static void ignore_event(void *owner, const struct sci_event *ev)
{
	(void)owner;
	(void)ev;
}

static void pair_with_liar(struct sci_fabric *f, struct peer *p, bool paired)
{
	const struct sci_rseg_param theirs = {
		.node = 8, .id = ID, .timeout = TEST_WAIT_MS, .event = ignore_event,
	};
	struct sci_lintr_param ring = { .number = ID, .flags = SCI_INTR_FIXED };
	struct sci_lseg_param ours = {
		.id = ID, .size = SIZE, .flags = SCI_LSEG_ONCE, .event = ignore_event,
	};
	struct sci_lintr *bell;
	struct sci_lseg *s;
	struct sci_rseg *r;
	bool early = random_below(2);
	size_t len = 0;

	CHECK_EQ(f->ops->lintr.create(f, &ring, &bell), 0);
	ours.bell = bell;
	CHECK_EQ(f->ops->lseg.create(f, &ours, &s), 0);
	CHECK_EQ(f->ops->lseg.export(s, 0), 0);
	peer_send(p, "begin");
	CHECK_EQ(f->ops->rseg.connect(f, &theirs, &r), 0);
	if (paired) {
		WAIT_UNTIL(!sci_pair(f, s, r), TEST_WAIT_MS);
		peer_send(p, "paired");
	} else {
		sci_pair(f, s, r);
	}
	for (uint32_t n = random_below(4); n; n--) {
		f->ops->ring(r);
		f->ops->lintr.wait(bell, NULL, &len, 0);
	}
	if (!early)
		peer_expect(p, "lied");
	f->ops->lintr.wait(bell, NULL, &len, 0);
	f->ops->ring(r);
	f->ops->rseg.disconnect(r);
	f->ops->lseg.destroy(s);
	f->ops->lintr.destroy(bell);
	if (early)
		peer_expect(p, "lied");
	peer_send(p, "end");
}

TEST(peers_that_lie_about_a_pair)
{
	const struct sci_fabric_place at[] = { { .node = 12 }, { .node = 4 } };
	struct sci_fabric *f[ARRAY_LEN(at)];
	unsigned int fds = 0;
	struct peer *p;

	test_needs_shm();
	p = peer_spawn(8, pair_liar, NULL);
	peer_expect(p, "ready");
	for (unsigned int i = 0; i < ARRAY_LEN(at); i++)
		CHECK_EQ(sci_fabric_open_at(&f[i], &at[i]), 0);
	for (unsigned int k = 0; k < PAIRS; k++) {
		random_seed(k);
		pair_with_liar(f[k & 1], p, k & 2);
		if (k == 1)
			fds = count_fds();
	}
	WAIT_UNTIL(count_fds() <= fds, TEST_WAIT_MS);
	peer_join(p);
	for (unsigned int i = 0; i < ARRAY_LEN(at); i++)
		sci_fabric_close(f[i]);
}
