/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Copyright (C) 2026 The libsci authors */
/*
 * DOC: tests of the fabric daemon sci-switch
 *
 *	TEST(something)
 *	{
 *		int a, b;
 *
 *		daemon_start(NULL);		start a daemon for this test
 *		a = adapter(4);			attach node 4; its link is up
 *		b = adapter(8);
 *		send_request(a, 4, 8, 1);
 *		expect_packet(b, 1);
 *		control("counters 4");		the answer is in `said`
 *		daemon_stop();
 *	}
 *
 * Tests do not sleep: fence() returns when the daemon has handled all frames sent
 * before it.  Packets that it has forwarded can then be read.
 */
#ifndef SELFTESTS_SIM_SWITCH_H
#define SELFTESTS_SIM_SWITCH_H

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "selftests/harness.h"
#include "sim/switch/protocol.h"

#define SAID_MAX	(1 << 20)
#define DATA_SIZE	64u		/* of a mailbox packet */

static char dir[64];			/* folder of the test's files */
static pid_t daemon_pid;
static int control_fd = -1;
static char said[SAID_MAX];		/* last answer */

/* ---- files ---- */

static inline const char *in_dir(const char *name)
{
	static char path[8][128];
	static unsigned int n;
	char *p = path[n++ % 8];

	if (!dir[0]) {
		const char *tmp = getenv("TMPDIR");

		snprintf(dir, sizeof(dir), "%.40s/sci-switch.XXXXXX",
			 tmp ? tmp : "/tmp");
		CHECK(mkdtemp(dir));
	}
	snprintf(p, sizeof(path[0]), "%s/%s", dir, name);
	return p;
}

static inline void write_file(const char *name, const char *text)
{
	FILE *f = fopen(in_dir(name), "w");

	CHECK(f);
	CHECK(fputs(text, f) >= 0);
	CHECK_EQ(fclose(f), 0);
}

static inline void read_file(const char *name, char *text, size_t room)
{
	FILE *f = fopen(in_dir(name), "r");

	CHECK(f);
	text[fread(text, 1, room - 1, f)] = '\0';
	fclose(f);
}

static inline unsigned int count_files(void)
{
	DIR *d = opendir(in_dir("."));
	const struct dirent *e;
	unsigned int n = 0;

	CHECK(d);
	while ((e = readdir(d)))
		n += e->d_name[0] != '.';
	closedir(d);
	return n;
}

static inline void remove_dir(void)
{
	char cmd[128];

	snprintf(cmd, sizeof(cmd), "rm -rf '%s'", dir);
	/* NOLINTNEXTLINE(cert-env33-c,concurrency-mt-unsafe): our own name */
	CHECK_EQ(system(cmd), 0);
	dir[0] = '\0';
}

/* ---- the daemon ---- */

/* Programs of this folder are in build/selftests/sim; sci-switch is in build. */
static inline void program_path(char path[PATH_MAX])
{
	const char *build = getenv("SCI_BUILD");
	ssize_t n;
	int i;

	if (build) {
		snprintf(path, PATH_MAX, "%s/sci-switch", build);
		return;
	}
	n = readlink("/proc/self/exe", path, PATH_MAX - 1);
	CHECK(n > 0);
	path[n] = '\0';
	for (i = 0; i < 3; i++)
		*strrchr(path, '/') = '\0';
	n = (ssize_t)strlen(path);
	snprintf(path + n, (size_t)(PATH_MAX - n), "/sci-switch");
}

/* Start sci-switch with standard output to @out. */
static inline pid_t program_start_on(const char *const *argv, int out)
{
	const char *errors = in_dir("errors");
	char path[PATH_MAX];
	pid_t pid;

	program_path(path);
	pid = fork();
	CHECK(pid >= 0);
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		dup2(out, STDOUT_FILENO);
		if (!freopen(errors, "w", stderr))
			_exit(99);
		execv(path, (char *const *)argv);
		_exit(98);
	}
	close(out);
	return pid;
}

/* Start sci-switch. Return its pid, and its standard output in @out. */
static inline pid_t program_start(const char *const *argv, int *out)
{
	int fds[2];
	pid_t pid;

	CHECK_EQ(pipe2(fds, O_CLOEXEC), 0);
	pid = program_start_on(argv, fds[1]);
	*out = fds[0];
	return pid;
}

/* Wait for the program's exit and return its status, or -signal. */
static inline int program_status(pid_t pid)
{
	int status;

	CHECK_EQ(waitpid(pid, &status, 0), pid);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

/* Read until the end of the file and close it. */
static inline void read_all(int fd, char *text, size_t room)
{
	size_t used = 0;
	ssize_t n;

	while (used < room - 1 &&
	       (n = read(fd, text + used, room - 1 - used)) > 0)
		used += (size_t)n;
	text[used] = '\0';
	close(fd);
}

/* Run sci-switch with these arguments until it exits. Its output is in `said`. */
static inline int program(const char *words)
{
	const char *argv[32] = { "sci-switch" };
	char text[1024], *rest = text;
	unsigned int n = 1;
	pid_t pid;
	int out;

	snprintf(text, sizeof(text), "%s", words);
	while (n < 31 && (argv[n] = strsep(&rest, " ")))
		n++;
	pid = program_start(argv, &out);
	read_all(out, said, sizeof(said));
	return program_status(pid);
}

/* Return whether the program's standard error contains @text. */
static inline bool errors_have(const char *text)
{
	static char errors[65536];

	read_file("errors", errors, sizeof(errors));
	return strstr(errors, text);
}

static inline void check_errors(const char *text)
{
	test_note("expecting: %s", text);
	CHECK(errors_have(text));
}

static inline int unix_socket(const char *name, int type)
{
	struct sockaddr_un sa = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, type | SOCK_CLOEXEC, 0);

	CHECK(fd >= 0);
	snprintf(sa.sun_path, sizeof(sa.sun_path), "%s", in_dir(name));
	CHECK_EQ(connect(fd, (struct sockaddr *)&sa, sizeof(sa)), 0);
	return fd;
}

/* Start a daemon with a topology file of these lines, or without for NULL. */
static inline void daemon_start_seed(const char *topology, const char *seed)
{
	char sock[128], ctl[128], file[128], ready[16] = "";
	const char *argv[] = { "sci-switch", "-v", "-s", seed, "-c", ctl, sock,
			       NULL, NULL, NULL };
	int out;

	snprintf(sock, sizeof(sock), "%s", in_dir("fabric"));
	snprintf(ctl, sizeof(ctl), "%s", in_dir("control"));
	snprintf(file, sizeof(file), "%s", in_dir("topology"));
	if (topology) {
		write_file("topology", topology);
		argv[6] = "-t";
		argv[7] = file;
		argv[8] = sock;
	}
	daemon_pid = program_start(argv, &out);
	CHECK_EQ(read(out, ready, sizeof(ready) - 1), 6);
	CHECK(!strcmp(ready, "ready\n"));
	close(out);
	control_fd = unix_socket("control", SOCK_STREAM);
}

static inline void daemon_start(const char *topology)
{
	daemon_start_seed(topology, "1");
}

/* Stop the daemon. It must exit with 0 and leave no files. */
static inline void daemon_stop(void)
{
	CHECK_EQ(kill(daemon_pid, SIGTERM), 0);
	CHECK_EQ(program_status(daemon_pid), 0);
	close(control_fd);
	unlink(in_dir("errors"));
	unlink(in_dir("topology"));
	unlink(in_dir("script"));
	CHECK_EQ(count_files(), 0);
	remove_dir();
}

/* ---- the control socket ---- */

static inline void wait_readable(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	CHECK_EQ(poll(&p, 1, TEST_WAIT_MS), 1);
}

/* Return whether the last line received ends an answer. */
static inline bool answer_ends(const char *text, size_t n)
{
	const char *last;

	if (!n || text[n - 1] != '\n')
		return false;
	for (last = text + n - 1; last > text && last[-1] != '\n'; last--)
		;
	return !strcmp(last, "ok\n") || !strncmp(last, "error: ", 7);
}

/* Read an answer, including its last line, into `said`. */
static inline void read_answer(int fd)
{
	size_t used = 0;

	said[0] = '\0';
	while (!answer_ends(said, used)) {
		ssize_t n;

		wait_readable(fd);
		n = recv(fd, said + used, sizeof(said) - 1 - used, 0);
		CHECK(n > 0);
		used += (size_t)n;
		said[used] = '\0';
	}
}

static inline void ask(const char *command)
{
	char line[512];
	int n = snprintf(line, sizeof(line), "%s\n", command);

	CHECK_EQ(send(control_fd, line, (size_t)n, MSG_NOSIGNAL), n);
	read_answer(control_fd);
}

/* Send a command that must succeed. */
static inline void control(const char *command)
{
	const char *end;

	ask(command);
	end = said + strlen(said) - 3;
	if (strcmp(end, "ok\n"))
		test_note("%s: %s", command, said);
	CHECK(!strcmp(end, "ok\n"));
}

/* Send a command that must fail with @why in its error message. */
static inline void control_fails(const char *command, const char *why)
{
	ask(command);
	if (strncmp(said, "error: ", 7) || !strstr(said, why))
		test_note("%s: %s", command, said);
	CHECK(!strncmp(said, "error: ", 7));
	CHECK(strstr(said, why));
}

#define SAID(text)							\
	do {								\
		if (!strstr(said, text))				\
			test_note("%s", said);				\
		CHECK(strstr(said, text));				\
	} while (0)

/* Return a counter of a node or link. */
static inline uint64_t counter(const char *point, const char *name)
{
	char text[128];
	const char *at;

	snprintf(text, sizeof(text), "counters %s", point);
	control(text);
	snprintf(text, sizeof(text), " %s ", name);
	at = strstr(said, text);
	CHECK(at);
	return strtoull(at + strlen(text), NULL, 10);
}

/* ---- adapters ---- */

static inline struct frame_attach attach_frame(uint32_t node)
{
	return (struct frame_attach){
		.head = { .kind = FRAME_ATTACH, .node = node },
		.version = FABRIC_VERSION,
	};
}

static inline void send_frame(int fd, const void *frame, size_t size)
{
	CHECK_EQ(send(fd, frame, size, MSG_NOSIGNAL), size);
}

/* Send a frame with @n descriptors. */
static inline void send_with(int fd, const void *frame, size_t size,
			     const int *fds, unsigned int n)
{
	struct iovec iov = { .iov_base = (void *)frame, .iov_len = size };
	union {
		struct cmsghdr head;
		char room[CMSG_SPACE(16 * sizeof(int))];
	} control_room;
	struct msghdr msg = {
		.msg_iov = &iov, .msg_iovlen = 1, .msg_control = &control_room,
		.msg_controllen = CMSG_SPACE(n * sizeof(int)),
	};

	memset(&control_room, 0, sizeof(control_room));
	control_room.head.cmsg_level = SOL_SOCKET;
	control_room.head.cmsg_type = SCM_RIGHTS;
	control_room.head.cmsg_len = CMSG_LEN(n * sizeof(int));
	memcpy(CMSG_DATA(&control_room.head), fds, n * sizeof(int));
	CHECK_EQ(sendmsg(fd, &msg, MSG_NOSIGNAL), size);
}

/* Receive a frame and return its size, or 0 at the end of the connection. */
static inline size_t recv_frame(int fd, void *frame, size_t room)
{
	ssize_t n;

	wait_readable(fd);
	n = recv(fd, frame, room, 0);
	if (n < 0 && errno == ECONNRESET)
		return 0;
	CHECK(n >= 0);
	return (size_t)n;
}

/* Receive a frame that is only a head, and check it. */
static inline void expect_frame(int fd, uint32_t kind, uint32_t node,
				uint32_t value)
{
	struct frame_attach f;

	CHECK_EQ(recv_frame(fd, &f, sizeof(f)), sizeof(f.head));
	CHECK_EQ(f.head.kind, kind);
	CHECK_EQ(f.head.node, node);
	CHECK_EQ(f.head.value, value);
	CHECK_EQ(f.head.reserved, 0);
}

static inline void expect_end(int fd)
{
	char byte;

	CHECK_EQ(recv_frame(fd, &byte, 1), 0);
	close(fd);
}

static inline int adapter(uint16_t node)
{
	struct frame_attach f = attach_frame(node);
	int fd = unix_socket("fabric", SOCK_SEQPACKET);

	send_frame(fd, &f, sizeof(f));
	expect_frame(fd, FRAME_ATTACHED, node, 0);
	expect_frame(fd, FRAME_LINK, node, 1);
	return fd;
}

static inline void refused(const void *frame, size_t size, int error)
{
	int fd = unix_socket("fabric", SOCK_SEQPACKET);
	struct frame_attach f;

	send_frame(fd, frame, size);
	CHECK_EQ(recv_frame(fd, &f, sizeof(f)), sizeof(f.head));
	CHECK_EQ(f.head.kind, FRAME_REFUSED);
	CHECK_EQ(f.head.value, error);
	expect_end(fd);
}

/*
 * Wait until the daemon has handled all earlier frames of @fd: send an
 * invalidation, which the daemon acknowledges at once if no direct node exists.
 */
static inline void fence(int fd, uint16_t node)
{
	struct frame f = { .kind = FRAME_INVALIDATE, .node = node,
			   .value = 0xfe9ce };

	send_frame(fd, &f, sizeof(f));
	expect_frame(fd, FRAME_INVALIDATED, node, 0xfe9ce);
}

/* ---- packets ---- */

static inline struct frame_packet packet(uint16_t from, uint16_t to,
					 uint8_t kind, uint32_t number)
{
	struct frame_packet f = {
		.head = { .kind = FRAME_PACKET, .node = from },
		.packet = {
			.kind = kind, .size = PACKET_HEADER + DATA_SIZE,
			.source = from, .target = to, .number = number,
		},
	};

	test_fill(f.packet.data, DATA_SIZE, number);
	f.packet.crc = packet_crc(&f.packet);
	return f;
}

static inline size_t frame_size(const struct frame_packet *f)
{
	return sizeof(f->head) + f->packet.size;
}

static inline void send_kind(int fd, uint16_t from, uint16_t to, uint8_t kind,
			     uint32_t number)
{
	struct frame_packet f = packet(from, to, kind, number);

	send_frame(fd, &f, frame_size(&f));
}

static inline void send_request(int fd, uint16_t from, uint16_t to,
				uint32_t number)
{
	send_kind(fd, from, to, PACKET_MAILBOX, number);
}

static inline void send_response(int fd, uint16_t from, uint16_t to,
				 uint32_t number)
{
	send_kind(fd, from, to, PACKET_MAILBOX | PACKET_RESPONSE, number);
}

static inline bool packet_good(const struct sim_packet *p)
{
	return p->crc == packet_crc(p);
}

/* Receive packet @number and check that it is unchanged. */
static inline void expect_packet(int fd, uint32_t number)
{
	struct frame_packet f;
	size_t n = recv_frame(fd, &f, sizeof(f));

	CHECK_EQ(f.head.kind, FRAME_PACKET);
	CHECK_EQ(n, frame_size(&f));
	CHECK_EQ(f.head.node, f.packet.target);
	CHECK(packet_good(&f.packet));
	CHECK_EQ(f.packet.number, number);
	CHECK(test_filled(f.packet.data, DATA_SIZE, number));
}

/* Return whether no frame can be read. */
static inline bool nothing(int fd)
{
	char byte;

	return recv(fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) < 0 &&
	       errno == EAGAIN;
}

/* Read all waiting packets and store their numbers, 0 for a corrupted packet. */
static inline unsigned int read_numbers(int fd, uint32_t *number,
					unsigned int room)
{
	struct frame_packet f;
	unsigned int n = 0;

	while (n < room && !nothing(fd)) {
		CHECK(recv_frame(fd, &f, sizeof(f)) > sizeof(f.head));
		CHECK_EQ(f.head.kind, FRAME_PACKET);
		number[n++] = packet_good(&f.packet) ? f.packet.number : 0;
	}
	return n;
}

#endif
