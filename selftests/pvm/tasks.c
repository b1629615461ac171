// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/* Tests several tasks and hosts: spawning, long messages, notifications, and all kinds of ends. */

#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "selftests/pvm/machine.h"

#include "libsci/pvm/groupop.h"

#define LONG_SIZE	(3 << 20)
#define IN_PLACE	65	/* pieces of in-place data: too many to be sent without a copy */
#define LATE		20	/* tasks that enrol late */
#define KILLS		10	/* daemons that are killed one after another */

static size_t no_memory_for;		/* malloc() of this size fails */

#if !TEST_ASAN && !TEST_TSAN
void *__libc_malloc(size_t size);

/* Replace the function of libc. */
void *malloc(size_t size)
{
	return size && size == no_memory_for ? NULL : __libc_malloc(size);
}
#endif

/* Send each message back until a message with tag 99 arrives. */
static int child_echo(void)
{
	int n, tag, src;

	while (pvm_recv(-1, -1) > 0) {
		pvm_bufinfo(pvm_getrbuf(), &n, &tag, &src);
		if (tag == 99)
			break;
		pvm_setsbuf(pvm_getrbuf());
		pvm_send(src, tag);
	}
	pvm_exit();
	return 0;
}

/* Send a long message while the parent sends one: neither side receives before it has sent. */
static int child_cross(void)
{
	char *data = malloc(LONG_SIZE);

	test_fill(data, LONG_SIZE, 2);
	pvm_initsend(PvmDataRaw);
	pvm_pkbyte(data, LONG_SIZE, 1);
	pvm_send(pvm_parent(), 2);
	pvm_recv(pvm_parent(), 1);
	if (pvm_upkbyte(data, LONG_SIZE, 1) || !test_filled(data, LONG_SIZE, 1))
		return 1;
	pvm_exit();
	return 0;
}

/* Send a long message, then a short one. */
static int child_long_first(void)
{
	char *data = malloc(LONG_SIZE);

	test_fill(data, LONG_SIZE, 1);
	pvm_initsend(PvmDataRaw);
	pvm_pkbyte(data, LONG_SIZE, 1);
	pvm_send(pvm_parent(), 1);
	message_int(pvm_parent(), 2, 0);
	pvm_exit();
	return 0;
}

static int child_siblings(void)
{
	int *tids, n = pvm_siblings(&tids);

	pvm_initsend(PvmDataDefault);
	pvm_pkint(&n, 1, 1);
	pvm_pkint(tids, n, 1);
	pvm_send(pvm_parent(), 5);
	pvm_exit();
	return 0;
}

/* Start tasks for the daemon; report a task with the argument "fail" as ended. */
static int child_tasker(void)
{
	static char path[PATH_MAX], args[2][64], env[8][512], *argv[4], *envp[9];
	int tid, flags, argc, nenv, daemon, zeros[5] = { 0 };

	signal(SIGCHLD, SIG_IGN);
	pvm_setopt(PvmResvTids, 1);
	if (pvm_reg_tasker())
		return 1;
	message_empty(pvm_parent(), 70);
	while (pvm_recv(-1, SM_STTASK) > 0) {
		pvm_bufinfo(pvm_getrbuf(), NULL, NULL, &daemon);
		if (pvm_unpackf("%d %d %4096s %d", &tid, &flags, path, &argc) || argc > 2)
			return 1;
		argv[0] = path;
		for (int i = 0; i < argc; i++) {
			pvm_upkstr(args[i]);
			argv[i + 1] = args[i];
		}
		argv[argc + 1] = NULL;
		pvm_upkint(&nenv, 1, 1);
		if (nenv > 8)
			return 1;
		for (int i = 0; i < nenv; i++) {
			pvm_upkstr(env[i]);
			envp[i] = env[i];
		}
		envp[nenv] = NULL;
		if (argc && !strcmp(args[0], "fail")) {
			pvm_initsend(PvmDataDefault);
			pvm_pkint(&tid, 1, 1);
			pvm_pkint(zeros, 5, 1);
			pvm_send(daemon, SM_TASKX);
		} else if (!fork()) {
			for (int i = 0; i < nenv; i++)
				putenv(envp[i]);
			execv(path, argv);
			_exit(127);
		}
	}
	return 0;
}

/* Send a second message when the FIFO has a writer. */
static int child_knock(const char *path)
{
	message_empty(pvm_parent(), 1);
	if (open(path, O_RDONLY) < 0)
		return 1;
	message_empty(pvm_parent(), 12);
	pvm_exit();
	return 0;
}

static int child_main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";

	if (!strcmp(what, "echo"))
		return child_echo();
	if (!strcmp(what, "late"))	/* enrol when the FIFO has a writer */
		return open(argv[2], O_RDONLY) < 0 ? 1 : child_echo();
	if (!strcmp(what, "knock"))
		return child_knock(argv[2]);
	if (!strcmp(what, "tasker"))
		return child_tasker();
	if (!strcmp(what, "cross"))
		return child_cross();
	if (!strcmp(what, "long first"))
		return child_long_first();
	if (!strcmp(what, "siblings"))
		return child_siblings();
	if (!strcmp(what, "print")) {
		printf("one\ntwo\n");
		fflush(stdout);
		pvm_mytid();
		pvm_exit();
	}
	if (!strcmp(what, "sleep"))
		for (pvm_mytid();;)
			pause();
	if (!strcmp(what, "env")) {
		char *value = getenv("PVM_TEST_VALUE");

		pvm_packf("%+ %s", PvmDataDefault, value ? value : "unset");
		pvm_send(pvm_parent(), 1);
		pvm_exit();
	}
	return 0;
}

/* The variable that names the test's socket, to which the remote shell connects. */
#define SHELL	"TEST_SHELL_SOCKET"

/* Start the daemon of a host as virtual node 8. */
static void daemon_start(char **argv)
{
	if (fork())
		return;
	setsid();
	setenv("SCI_NODE", "8", 1);
	execvp(argv[0], argv);
	_exit(127);
}

/*
 * Run as PVM_RSH, and never end. The shell of host "silent" starts no daemon, and ignores SIGTERM.
 * The shell of host "dead" starts the daemon, and does not notice the daemon's end, like a remote
 * shell to a machine that dies.
 */
__attribute__((constructor)) static void remote_shell(int argc, char **argv)
{
	struct sockaddr_un un = { .sun_family = AF_UNIX };
	const char *name = getenv(SHELL);
	int fd;

	if (!name || argc < 3 || (strcmp(argv[1], "silent") && strcmp(argv[1], "dead")))
		return;
	if (!strcmp(argv[1], "dead"))
		daemon_start(argv + 2);
	else
		signal(SIGTERM, SIG_IGN);
	fd = socket(AF_UNIX, SOCK_STREAM, 0);
	memcpy(un.sun_path + 1, name, 5);
	if (connect(fd, (struct sockaddr *)&un, sizeof(sa_family_t) + 6))
		_exit(1);
	for (;;)
		pause();
}

TEST(messages_of_all_lengths_come_back)
{
	char *data = malloc(LONG_SIZE), *back = malloc(LONG_SIZE);
	int tid;

	machine_begin();
	machine_spawn("echo", 1, &tid);
	for (int len = 1; len <= LONG_SIZE; len = len * 3 + 1) {
		for (int enc = PvmDataDefault; enc <= PvmDataInPlace; enc++) {
			test_fill(data, (size_t)len, (unsigned int)len);
			pvm_initsend(enc);
			CHECK_EQ(pvm_pkbyte(data, len, 1), 0);
			CHECK_EQ(pvm_send(tid, enc), 0);
			CHECK(pvm_recv(tid, enc) > 0);
			CHECK_EQ(pvm_upkbyte(back, len, 1), 0);
			CHECK(test_filled(back, (size_t)len, (unsigned int)len));
		}
	}
	CHECK_EQ(pvm_psend(tid, 3, data, LONG_SIZE, PVM_BYTE), 0);
	CHECK_EQ(pvm_precv(tid, 3, back, LONG_SIZE, PVM_BYTE, NULL, NULL, NULL), 0);
	CHECK(!memcmp(data, back, LONG_SIZE));
	message_int(tid, 99, 0);
	machine_end();
	free(data);
	free(back);
}

/* Send the in-place data of the send buffer twice. @data: its @n items, each after @gap others. */
static void in_place_check(int tid, int *data, int n, int gap)
{
	int back[IN_PLACE];

	for (int round = 0; round < 2; round++) {
		for (int i = 0; i < n; i++)
			data[i * (gap + 1)] = round * 1000 + i;
		CHECK_EQ(pvm_send(tid, 4), 0);
		CHECK(pvm_recv(tid, 4) > 0);
		CHECK_EQ(pvm_upkint(back, n, 1), 0);
		for (int i = 0; i < n; i++)
			CHECK_EQ(back[i], round * 1000 + i);
	}
}

/* A message of many pieces, or with gaps, is sent as a copy. */
TEST(in_place_data_is_read_at_each_send)
{
	int data[2 * IN_PLACE], tid;

	machine_begin();
	machine_spawn("echo", 1, &tid);
	CHECK(pvm_initsend(PvmDataInPlace) > 0);
	for (int i = 0; i < IN_PLACE; i++)
		CHECK_EQ(pvm_pkint(&data[i], 1, 1), 0);
	in_place_check(tid, data, IN_PLACE, 0);
	CHECK(pvm_initsend(PvmDataInPlace) > 0);
	CHECK_EQ(pvm_pkint(data, IN_PLACE, 2), 0);
	in_place_check(tid, data, IN_PLACE, 1);
	machine_end();
}

/* Begin a machine with an echo. Return its tid, and the first descriptor in @p. */
static int echo_watched(struct pollfd *p)
{
	int tid, *fds;

	machine_begin();
	machine_spawn("echo", 1, &tid);
	CHECK(pvm_getfds(&fds) >= 1);
	*p = (struct pollfd){ .fd = fds[0], .events = POLLIN };
	return tid;
}

/* Programs like xep wait for the first descriptor, together with their own descriptors. */
TEST(a_message_makes_the_first_descriptor_readable)
{
	struct pollfd p;
	int tid = echo_watched(&p);

	for (int i = 0; i < 1000; i++) {
		message_int(tid, 5, i);
		do
			CHECK_EQ(poll(&p, 1, TEST_WAIT_MS), 1);
		while (pvm_nrecv(tid, 5) <= 0);
	}
	machine_end();
}

/* A receive of one message takes in the earlier messages, which the program must learn of, too. */
TEST(the_first_descriptor_is_readable_until_all_messages_are_seen)
{
	struct pollfd p;
	int tid = echo_watched(&p);

	message_int(tid, 5, 1);
	message_int(tid, 6, 2);
	CHECK(pvm_recv(tid, 6) > 0);
	CHECK_EQ(poll(&p, 1, 0), 1);
	CHECK(pvm_nrecv(tid, 5) > 0);
	while (pvm_nrecv(-1, -1))
		;
	CHECK_EQ(poll(&p, 1, 0), 0);
	machine_end();
}

/* Messages to tasks that have not enrolled wait, however many tasks there are. */
TEST(messages_wait_for_many_tasks_to_enrol)
{
	char fifo[PATH_MAX];
	char *argv[] = { (char *)"late", fifo, NULL };
	int tids[LATE], n, fd;

	snprintf(fifo, sizeof(fifo), "%s/fifo", test_dir());
	CHECK_EQ(mkfifo(fifo, 0600), 0);
	machine_begin();
	CHECK_EQ(pvm_spawn(machine_self, argv, 0, NULL, LATE, tids), LATE);
	pvm_initsend(PvmDataDefault);
	CHECK_EQ(pvm_pkint(tids, 1, 1), 0);
	CHECK_EQ(pvm_mcast(tids, LATE, 1), 0);
	CHECK_EQ(pvm_config(&n, NULL, NULL), 0);
	fd = open(fifo, O_WRONLY);
	CHECK(fd >= 0);
	for (int i = 0; i < LATE; i++)
		CHECK_EQ(reply_int(tids[i], 1), tids[0]);
	machine_end();
	close(fd);
	unlink(fifo);
}

#define PIECES	37		/* of a message; no other object has the size of their table */
#define PIECE	40000

TEST(a_send_without_memory_is_an_error)
{
	static char data[PIECES][PIECE + 1];
	int tid, len, tag;

	if (TEST_ASAN || TEST_TSAN)
		SKIP("the sanitizers have a malloc() of their own");
	machine_begin();
	machine_spawn("echo", 1, &tid);
	message_empty(tid, 1);
	CHECK(pvm_recv(tid, 1) > 0);
	CHECK(pvm_initsend(PvmDataInPlace) > 0);
	for (int i = 0; i < PIECES; i++)
		CHECK_EQ(pvm_pkbyte(data[i], PIECE, 1), 0);
	no_memory_for = PIECES * sizeof(struct iovec);
	CHECK_EQ(pvm_send(tid, 2), PvmNoMem);
	no_memory_for = 0;
	CHECK_EQ(pvm_send(tid, 3), 0);
	CHECK(pvm_recv(tid, -1) > 0);
	CHECK_EQ(pvm_bufinfo(pvm_getrbuf(), &len, &tag, NULL), 0);
	CHECK_EQ(tag, 3);
	CHECK_EQ(len, PIECES * PIECE);
	machine_end();
}

/* PVM counts the bytes of a message in an int. */
TEST(a_message_that_is_too_long_is_an_error)
{
	const size_t size = (size_t)3 << 30;
	int tid, *data;

	data = mmap(NULL, size, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	CHECK(data != MAP_FAILED);
	machine_begin();
	machine_spawn("echo", 1, &tid);
	message_empty(tid, 1);
	CHECK(pvm_recv(tid, 1) > 0);
	CHECK_EQ(pvm_psend(tid, 2, data, (int)(size / sizeof(int)), PVM_INT), PvmNoMem);
	CHECK(pvm_initsend(PvmDataInPlace) > 0);
	for (int i = 0; i < 3; i++)
		CHECK_EQ(pvm_pkint(data, (int)(size / sizeof(int) / 3), 1), 0);
	CHECK_EQ(pvm_send(tid, 2), PvmNoMem);
	CHECK_EQ(pvm_mcast(&tid, 1, 2), PvmNoMem);
	machine_end();
	munmap(data, size);
}

TEST(long_messages_cross)
{
	char *data = malloc(LONG_SIZE);
	int tids[3];

	machine_begin();
	machine_spawn("cross", 3, tids);
	test_fill(data, LONG_SIZE, 1);
	pvm_initsend(PvmDataRaw);
	pvm_pkbyte(data, LONG_SIZE, 1);
	CHECK_EQ(pvm_mcast(tids, 3, 1), 0);
	for (int i = 0; i < 3; i++) {
		CHECK(pvm_recv(tids[i], 2) > 0);
		CHECK_EQ(pvm_upkbyte(data, LONG_SIZE, 1), 0);
		CHECK(test_filled(data, LONG_SIZE, 2));
	}
	machine_end();
	free(data);
}

/* The child waits in its first send until the parent, which only polls, takes the long message. */
TEST(polls_for_a_message_receive_the_long_message_before_it)
{
	char *data = malloc(LONG_SIZE);
	int tid;

	machine_begin();
	for (int i = 0; i < 2; i++) {
		machine_spawn("long first", 1, &tid);
		WAIT_UNTIL((i ? pvm_probe(tid, 2) : pvm_nrecv(tid, 2)) > 0, TEST_WAIT_MS);
		CHECK(pvm_recv(tid, 1) > 0);
		CHECK_EQ(pvm_upkbyte(data, LONG_SIZE, 1), 0);
		CHECK(test_filled(data, LONG_SIZE, 1));
	}
	machine_end();
	free(data);
}

TEST(siblings_know_each_other)
{
	int tids[4], got[4], n;

	machine_begin();
	machine_spawn("siblings", 4, tids);
	for (int i = 0; i < 4; i++) {
		CHECK(pvm_recv(-1, 5) > 0);
		pvm_upkint(&n, 1, 1);
		CHECK_EQ(n, 4);
		pvm_upkint(got, 4, 1);
		CHECK(!memcmp(got, tids, sizeof(got)));
	}
	machine_end();
}

TEST(an_exit_is_notified_however_it_comes)
{
	struct pvmtaskinfo *info;
	int tids[3], tid, n, none = 0x4ffff;

	machine_begin();
	machine_spawn("sleep", 3, tids);
	CHECK_EQ(pvm_notify(PvmTaskExit, 11, 3, tids), 0);
	CHECK_EQ(pvm_notify(PvmTaskExit, 12, 1, &none), 0);
	CHECK(pvm_recv(-1, 12) > 0);
	CHECK_EQ(pvm_pstat(tids[0]), PvmOk);
	CHECK_EQ(pvm_tasks(tids[1], &n, &info), 0);
	CHECK_EQ(n, 1);
	CHECK_EQ(info->ti_ptid, pvm_mytid());
	CHECK_EQ(kill(info->ti_pid, SIGKILL), 0);
	CHECK(pvm_recv(-1, 11) > 0);
	pvm_upkint(&tid, 1, 1);
	CHECK_EQ(tid, tids[1]);
	CHECK_EQ(pvm_kill(tids[0]), 0);
	CHECK(pvm_recv(-1, 11) > 0);
	pvm_upkint(&tid, 1, 1);
	CHECK_EQ(tid, tids[0]);
	CHECK_EQ(pvm_pstat(tids[0]), PvmNoTask);
	/* a notification that is cancelled arrives at once */
	CHECK_EQ(pvm_notify(PvmTaskExit | PvmNotifyCancel, 11, 1, &tids[2]), 0);
	CHECK(pvm_recv(-1, 11) > 0);
	pvm_upkint(&tid, 1, 1);
	CHECK_EQ(tid, tids[2]);
	message_int(tids[0], 1, 1);		/* dropped: the task has ended */
	machine_end();
}

static int ends;			/* calls of end_handler() */

/* Make a request, whose answer arrives while the notification is handled. */
static int end_handler(int mid)
{
	CHECK(mid > 0);
	CHECK_EQ(pvm_config(NULL, NULL, NULL), 0);
	ends++;
	return 0;
}

TEST(a_handler_of_a_notification_makes_requests)
{
	int tids[8];

	machine_begin();
	machine_spawn("echo", 8, tids);
	CHECK(pvm_addmhf(-1, 11, -1, end_handler) >= 0);
	CHECK_EQ(pvm_notify(PvmTaskExit, 11, 8, tids), 0);
	for (int i = 0; i < 8; i++) {
		message_int(tids[i], 99, 0);
		WAIT_UNTIL((pvm_nrecv(-1, 11), ends > i), TEST_WAIT_MS);
	}
	CHECK_EQ(pvm_nrecv(-1, -1), 0);
	CHECK_EQ(ends, 8);
	machine_end();
}

static int friend;			/* a task to which a handler sends */
static char fifo[PATH_MAX];		/* the task enrols when this FIFO has a writer */

/* Leave after a peer has died. A message of a task to itself is handled inside the send. */
static int leaving_handler(int mid)
{
	unsigned int fds = count_fds();

	CHECK(mid > 0);
	message_int(friend, 99, 0);
	/* a receive closes the connection of the task that has ended */
	WAIT_UNTIL((pvm_nrecv(-1, 1), count_fds() < fds), TEST_WAIT_MS);
	CHECK_EQ(pvm_nrecv(-1, 1), 0);
	CHECK_EQ(pvm_exit(), 0);
	CHECK(pvm_mytid() > 0);
	machine_end();
	exit(0);
}

TEST(a_handler_inside_a_send_leaves_after_the_death_of_a_peer)
{
	machine_begin();
	machine_spawn("echo", 1, &friend);
	message_int(friend, 1, 1);
	CHECK_EQ(reply_int(friend, 1), 1);
	CHECK(pvm_addmhf(-1, 11, -1, leaving_handler) >= 0);
	message_int(pvm_mytid(), 11, 0);
	FAIL("the handler has returned");
}

/* Send to a task that has not enrolled, and wait for its reply. */
static int asking_handler(int mid)
{
	int fd;

	CHECK(mid > 0);
	message_int(friend, 1, 2);
	fd = open(fifo, O_WRONLY);
	CHECK(fd >= 0);
	ends = reply_int(friend, 1);
	close(fd);
	return 0;
}

TEST(a_handler_inside_a_send_gets_a_reply_of_a_late_task)
{
	char *argv[] = { (char *)"late", fifo, NULL };

	snprintf(fifo, sizeof(fifo), "%s/fifo", test_dir());
	CHECK_EQ(mkfifo(fifo, 0600), 0);
	machine_begin();
	CHECK_EQ(pvm_spawn(machine_self, argv, 0, NULL, 1, &friend), 1);
	CHECK(pvm_addmhf(-1, 11, -1, asking_handler) >= 0);
	message_int(pvm_mytid(), 11, 0);
	CHECK_EQ(ends, 2);
	machine_end();
	unlink(fifo);
}

/* Look for the message that the program receives. */
static int looking_handler(int mid)
{
	CHECK(mid > 0);
	CHECK_EQ(pvm_nrecv(-1, 5), 0);
	ends++;
	return 0;
}

/* The receive finds its message, then arms the descriptor again, which runs a handler. */
TEST(a_handler_takes_no_message_that_a_receive_has_found)
{
	char *argv[] = { (char *)"knock", fifo, NULL };
	struct pollfd p;
	int tid, fd, *fds;

	snprintf(fifo, sizeof(fifo), "%s/fifo", test_dir());
	CHECK_EQ(mkfifo(fifo, 0600), 0);
	machine_begin();
	CHECK(pvm_addmhf(-1, 12, -1, looking_handler) >= 0);
	CHECK_EQ(pvm_spawn(machine_self, argv, 0, NULL, 1, &tid), 1);
	CHECK(pvm_recv(tid, 1) > 0);
	CHECK(pvm_getfds(&fds) >= 1);
	message_int(pvm_mytid(), 5, 3);
	CHECK(pvm_probe(-1, 5) > 0);
	fd = open(fifo, O_WRONLY);
	CHECK(fd >= 0);
	p = (struct pollfd){ .fd = fds[0], .events = POLLIN };
	CHECK_EQ(poll(&p, 1, TEST_WAIT_MS), 1);
	CHECK_EQ(ends, 0);
	CHECK_EQ(reply_int(-1, 5), 3);
	WAIT_UNTIL((pvm_nrecv(-1, -1), ends == 1), TEST_WAIT_MS);
	machine_end();
	close(fd);
	unlink(fifo);
}

TEST(output_of_children_is_caught)
{
	char line[64], *text = NULL;
	size_t size;
	FILE *f = open_memstream(&text, &size);
	int tid;

	machine_begin();
	CHECK_EQ(pvm_catchout(f), 0);
	machine_spawn("print", 1, &tid);
	CHECK_EQ(pvm_exit(), 0);		/* waits for the child's output */
	fflush(f);
	snprintf(line, sizeof(line), "[t%x] one\n[t%x] two\n[t%x] EOF\n", tid, tid, tid);
	CHECK(strstr(text, line));
	CHECK(pvm_mytid() > 0);
	machine_end();
	fclose(f);
	free(text);
}

TEST(a_program_that_is_not_there)
{
	int tids[2];

	machine_begin();
	CHECK_EQ(pvm_spawn((char *)"no-such-program", NULL, 0, NULL, 2, tids), 0);
	CHECK_EQ(tids[0], PvmNoFile);
	CHECK_EQ(tids[1], PvmNoFile);
	CHECK_EQ(pvm_spawn(machine_self, NULL, PvmTaskHost, (char *)"nohost", 1, tids), 0);
	CHECK(tids[0] < 0);
	machine_end();
}

TEST(hosts_are_added_killed_and_deleted)
{
	char *names[] = { (char *)"node8", (char *)"node12", (char *)"-x" };
	struct pvmhostinfo *hosts;
	struct pvmtaskinfo *info;
	int results[3], n, host, tids[6], tid, on[3] = { 0 };
	pid_t daemon_pid;

	machine_begin_hosts();
	CHECK_EQ(pvm_notify(PvmHostAdd, 21, -1, NULL), 0);
	CHECK_EQ(pvm_addhosts(names, 3, results), 2);
	CHECK(results[0] > 0 && results[1] > 0);
	CHECK_EQ(results[2], PvmNoHost);
	CHECK(pvm_recv(-1, 21) > 0);
	CHECK_EQ(pvm_addhosts(names, 1, results + 2), 0);
	CHECK_EQ(results[2], PvmDupHost);
	CHECK_EQ(pvm_config(&n, NULL, &hosts), 0);
	CHECK_EQ(n, 3);
	CHECK_EQ(pvm_mstat((char *)"node8"), PvmOk);
	machine_spawn("echo", 6, tids);
	for (int i = 0; i < 6; i++) {
		on[0] += pvm_tidtohost(tids[i]) == results[0];
		on[1] += pvm_tidtohost(tids[i]) == results[1];
		message_int(tids[i], 5, i);
		CHECK(pvm_recv(tids[i], 5) > 0);
		pvm_upkint(&n, 1, 1);
		CHECK_EQ(n, i);
	}
	CHECK_EQ(on[0], 2);
	CHECK_EQ(on[1], 2);
	CHECK_EQ(pvm_notify(PvmHostDelete, 22, 2, results), 0);
	CHECK_EQ(pvm_notify(PvmTaskExit, 23, 6, tids), 0);
	/* find the daemon of node8 as the parent of a task there */
	CHECK_EQ(pvm_tasks(results[0], &n, &info), 0);
	CHECK_EQ(n, 2);
	daemon_pid = machine_daemon(info->ti_tid);
	CHECK_EQ(kill(daemon_pid, SIGKILL), 0);
	CHECK(pvm_recv(-1, 22) > 0);
	pvm_upkint(&host, 1, 1);
	CHECK_EQ(host, results[0]);
	for (int i = 0; i < 2; i++) {
		CHECK(pvm_recv(-1, 23) > 0);
		pvm_upkint(&tid, 1, 1);
		CHECK_EQ(pvm_tidtohost(tid), results[0]);
	}
	CHECK_EQ(pvm_delhosts(names + 1, 1, results + 2), 1);
	CHECK(pvm_recv(-1, 22) > 0);
	CHECK_EQ(pvm_config(&n, NULL, NULL), 0);
	CHECK_EQ(n, 1);
	CHECK_EQ(pvm_delhosts(names, 1, results), 0);
	CHECK_EQ(results[0], PvmNoHost);
	machine_end();
}

/* Make this program the remote shell. Return: the socket to which the remote shell connects. */
static int shell_begin(int flags)
{
	struct sockaddr_un un = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | flags, 0);
	socklen_t len = sizeof(un);
	char name[6] = "";

	CHECK_EQ(bind(fd, (struct sockaddr *)&un, sizeof(sa_family_t)), 0);
	CHECK_EQ(listen(fd, 1), 0);
	CHECK_EQ(getsockname(fd, (struct sockaddr *)&un, &len), 0);
	memcpy(name, un.sun_path + 1, 5);
	setenv(SHELL, name, 1);
	CHECK(realpath("/proc/self/exe", machine_self));
	setenv("PVM_RSH", machine_self, 1);
	return fd;
}

/* Add the silent host. Return: the connection of its remote shell; -1: the shell has not started. */
static int silent_add(int fd)
{
	char *names[] = { (char *)"silent" };
	int result;

	CHECK_EQ(pvm_addhosts(names, 1, &result), 0);
	CHECK_EQ(result, PvmCantStart);
	return accept4(fd, NULL, NULL, SOCK_CLOEXEC);
}

/* The remote shell of the silent host ignores SIGTERM. It must be killed all the same. */
TEST(a_host_that_does_not_answer_is_given_up)
{
	int fd = shell_begin(SOCK_NONBLOCK), shell, n;
	char byte;

	setenv("SCI_PVM_START_MS", "300", 1);
	machine_begin();
	/* a shell that starts too late has no effect: the name is free again */
	WAIT_UNTIL((shell = silent_add(fd)) >= 0, TEST_WAIT_MS);
	CHECK_EQ(read(shell, &byte, 1), 0);
	close(shell);
	CHECK_EQ(pvm_config(&n, NULL, NULL), 0);
	CHECK_EQ(n, 1);
	shell = silent_add(fd);
	if (shell >= 0)
		close(shell);
	machine_end();
	close(fd);
}

/* Start a machine with the host "dead". Return: the connection of the host's remote shell. */
static int dead_begin(int *host)
{
	char *names[] = { (char *)"dead" };
	int fd = shell_begin(0), shell;

	machine_prepare();
	setenv("PVM_DPATH", getenv("SCI_PVMD"), 1);
	machine_begin();
	CHECK_EQ(pvm_addhosts(names, 1, host), 1);
	shell = accept4(fd, NULL, NULL, SOCK_CLOEXEC);
	CHECK(shell >= 0);
	close(fd);
	return shell;
}

TEST(the_remote_shell_of_a_dead_host_is_ended)
{
	int host, shell = dead_begin(&host), tid;
	char byte;

	CHECK_EQ(pvm_spawn(machine_self, (char *[]){ (char *)"echo", NULL }, PvmTaskHost,
			   (char *)"dead", 1, &tid), 1);
	message_int(tid, 2, 1);
	CHECK_EQ(reply_int(tid, 2), 1);
	CHECK_EQ(pvm_notify(PvmHostDelete, 1, 1, &host), 0);
	CHECK_EQ(kill(machine_daemon(tid), SIGKILL), 0);
	CHECK_EQ(reply_int(-1, 1), host);
	CHECK_EQ(read(shell, &byte, 1), 0);
	close(shell);
	machine_end();
}

/* The harness fails the test if SIGTERM kills a remote shell that the first daemon has left. */
TEST(a_machine_that_halts_leaves_no_remote_shell)
{
	int host, shell = dead_begin(&host);

	machine_end();
	close(shell);
}

/* The peer halts the machine while the remote shell of the silent host runs. */
static void shell_peer(struct peer *self, void *arg)
{
	int shell = accept4(*(int *)arg, NULL, NULL, SOCK_CLOEXEC);
	char byte;

	(void)self;
	CHECK(shell >= 0);
	signal(SIGTERM, SIG_IGN);
	CHECK_EQ(pvm_halt(), 0);
	CHECK_EQ(read(shell, &byte, 1), 0);
}

TEST(a_machine_halts_while_a_host_is_added)
{
	char *names[] = { (char *)"silent" };
	int fd = shell_begin(0), result;
	struct peer *p = peer_spawn(4, shell_peer, &fd);

	machine_begin();
	CHECK_EQ(pvm_addhosts(names, 1, &result), 0);
	CHECK_EQ(result, PvmCantStart);
	pvm_exit();
	peer_join(p);
	WAIT_UNTIL(!machine_there(), TEST_WAIT_MS);
	close(fd);
}

/* The child starts a machine, and is killed. */
TEST(a_machine_ends_with_the_process_that_owns_it)
{
	int p[2], tid, status;
	char byte = 0;
	pid_t pid;

	CHECK_EQ(pipe(p), 0);
	signal(SIGTERM, SIG_IGN);	/* the end of a machine sends SIGTERM to tasks */
	pid = test_fork();
	if (!pid) {
		machine_begin();
		machine_spawn("sleep", 1, &tid);
		CHECK_EQ(write(p[1], &byte, 1), 1);
		for (;;)
			pause();
	}
	CHECK_EQ(read(p[0], &byte, 1), 1);
	CHECK(machine_there());
	CHECK_EQ(kill(pid, SIGKILL), 0);
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	WAIT_UNTIL(!machine_there(), TEST_WAIT_MS);
	/* the spawned task, which had the write end of the pipe, has ended, too */
	close(p[1]);
	CHECK_EQ(read(p[0], &byte, 1), 0);
	close(p[0]);
}

/* Sends the request of pvm_gstat(1). A group may have more places than members. */
TEST(groups_are_listed)
{
	int n, len, size, places, barrier, arrived, tid;
	char name[16];

	machine_begin();
	CHECK_EQ(pvmgroupop(GROUP_JOIN, "alpha", 0, NULL), 0);
	CHECK_EQ(pvm_setcontext(GROUP_CONTEXT), 0);
	pvm_initsend(PvmDataDefault);
	CHECK_EQ(pvm_send(TID_GROUPS, GROUP_STATUS), 0);
	CHECK_EQ(pvm_send(TID_GROUPS, 1), PvmNotImpl);
	CHECK(pvm_recv(TID_GROUPS, GROUP_STATUS) > 0);
	CHECK_EQ(pvm_unpackf("%d %d %16s %d %d %d %d %d", &n, &len, name, &size, &places,
			     &barrier, &arrived, &tid), 0);
	CHECK_EQ(n, 1);
	CHECK_EQ(len, 5);
	CHECK(!strcmp(name, "alpha"));
	CHECK_EQ(size, 1);
	CHECK(places >= 1);
	CHECK_EQ(barrier, -1);
	CHECK_EQ(arrived, 0);
	CHECK_EQ(tid, pvm_mytid());
	machine_end();
}

TEST(mail_box_entries_are_kept_and_found)
{
	struct pvmmboxinfo *box;
	int v = 4, got, mid, n;

	machine_begin();
	mid = pvm_initsend(PvmDataDefault);
	pvm_pkint(&v, 1, 1);
	CHECK_EQ(pvm_putinfo((char *)"a", mid, PvmMboxDefault), 0);
	CHECK_EQ(pvm_putinfo((char *)"b", mid, PvmMboxMultiInstance), 0);
	CHECK_EQ(pvm_putinfo((char *)"b", mid, PvmMboxMultiInstance), 1);
	CHECK_EQ(pvm_putinfo(NULL, mid, 0), PvmBadParam);
	CHECK_EQ(pvm_putinfo((char *)"c", 999, 0), PvmNoSuchBuf);
	CHECK_EQ(pvm_recvinfo((char *)"none", 0, 0), PvmNotFound);
	/* an entry is the new receive buffer, and the old one is freed */
	for (int i = 0, old = 0; i < 2; i++, old = mid) {
		mid = pvm_recvinfo((char *)"b", i, 0);
		CHECK(mid > 0);
		CHECK_EQ(pvm_getrbuf(), mid);
		CHECK_EQ(pvm_upkint(&got, 1, 1), 0);
		CHECK_EQ(got, 4);
		if (old)
			CHECK_EQ(pvm_bufinfo(old, NULL, NULL, NULL), PvmNoSuchBuf);
	}
	CHECK_EQ(pvm_getmboxinfo((char *)"*", &n, &box), 0);
	CHECK_EQ(n, 2);
	CHECK_EQ(box[1].mi_nentries, 2);
	CHECK_EQ(box[1].mi_owners[1], pvm_mytid());
	CHECK_EQ(pvm_delinfo((char *)"b", 0, 0), 0);
	CHECK(pvm_recvinfo((char *)"b", 0, PvmMboxFirstAvail) > 0);
	CHECK_EQ(pvm_recvinfo((char *)"b", 0, 0), PvmNotFound);
	CHECK(pvm_recvinfo((char *)"a", 0, PvmMboxReadAndDelete) > 0);
	CHECK_EQ(pvm_recvinfo((char *)"a", 0, 0), PvmNotFound);
	machine_end();
}

TEST(many_tasks_come_and_go_without_a_trace)
{
	int tids[8], n, tag_exit = 31, mine = 0;
	unsigned int rounds = test_calls(12), fds = 0;
	struct pvmtaskinfo *info;

	machine_begin();
	for (unsigned int i = 0; i < rounds; i++) {
		machine_spawn("echo", 8, tids);
		pvm_notify(PvmTaskExit, tag_exit, 8, tids);
		for (int j = 0; j < 8; j++) {
			message_int(tids[j], 1, j);
			CHECK(pvm_recv(tids[j], 1) > 0);
		}
		pvm_initsend(PvmDataDefault);
		CHECK_EQ(pvm_mcast(tids, 8, 99), 0);
		for (int j = 0; j < 8; j++)
			CHECK(pvm_recv(-1, tag_exit) > 0);
		/* a receive closes the connections of tasks that have ended */
		WAIT_UNTIL((pvm_nrecv(-1, -1), i < 2 || count_fds() <= fds), TEST_WAIT_MS);
		if (i == 1)
			fds = count_fds();
	}
	CHECK_EQ(pvm_tasks(0, &n, &info), 0);
	for (int i = 0; i < n; i++)
		mine += info[i].ti_tid == pvm_mytid();
	CHECK_EQ(mine, 1);
	CHECK_EQ(n, 1);
	machine_end();
}

TEST(exported_variables_reach_children)
{
	char value[16];
	int tid;

	machine_begin();
	setenv("PVM_TEST_VALUE", "v1", 1);
	CHECK_EQ(pvm_export((char *)"PVM_TEST_VALUE"), 0);
	CHECK_EQ(pvm_export((char *)"OTHER"), 0);
	CHECK(!strcmp(getenv("PVM_EXPORT"), "PVM_TEST_VALUE:OTHER"));
	CHECK_EQ(pvm_unexport((char *)"OTHER"), 0);
	CHECK(!strcmp(getenv("PVM_EXPORT"), "PVM_TEST_VALUE"));
	CHECK_EQ(pvm_export((char *)"A=B"), PvmBadParam);
	machine_spawn("env", 1, &tid);
	CHECK(pvm_recv(tid, 1) > 0);
	CHECK_EQ(pvm_unpackf("%16s", value), 0);
	CHECK(!strcmp(value, "v1"));
	machine_end();
}

TEST(a_killed_daemon_is_notified_each_time)
{
	char *names[] = { (char *)"node8", (char *)"node12" };
	double least = 1e9, most = 0;
	int hosts[2], tid, gone;

	machine_begin_hosts();
	CHECK_EQ(pvm_addhosts(names, 2, hosts), 2);
	for (int i = 0; i < KILLS; i++) {
		double t;

		CHECK_EQ(pvm_spawn(machine_self, (char *[]){ (char *)"echo", NULL }, PvmTaskHost,
				   names[0], 1, &tid), 1);
		message_int(tid, 2, i);
		CHECK_EQ(reply_int(tid, 2), i);
		CHECK_EQ(pvm_notify(PvmHostDelete, 1, 1, hosts), 0);
		t = machine_now_ms();
		CHECK_EQ(kill(machine_daemon(tid), SIGKILL), 0);
		CHECK(pvm_recv(-1, 1) > 0);
		t = machine_now_ms() - t;
		least = t < least ? t : least;
		most = t > most ? t : most;
		CHECK_EQ(pvm_upkint(&gone, 1, 1), 0);
		CHECK_EQ(gone, hosts[0]);
		CHECK_EQ(pvm_addhosts(names, 1, hosts), 1);
		/* a new id: this task may still have a connection to a task of the old host */
		CHECK(hosts[0] != gone);
	}
	test_note("HostDelete comes %.1f to %.1f ms after SIGKILL of a daemon, %d kills", least,
		  most, KILLS);
	machine_end();
}

/* A host has left, so its daemon does not report the end of the output of its tasks. */
TEST(an_exit_does_not_wait_for_output_of_hosts_that_have_left)
{
	char *names[] = { (char *)"node8", (char *)"node12" }, line[64], *text = NULL;
	int hosts[2], tids[2], result;
	size_t size;
	FILE *f = open_memstream(&text, &size);

	machine_begin_hosts();
	CHECK_EQ(pvm_addhosts(names, 2, hosts), 2);
	CHECK_EQ(pvm_catchout(f), 0);
	for (int i = 0; i < 2; i++) {
		CHECK_EQ(pvm_spawn(machine_self, (char *[]){ (char *)"echo", NULL }, PvmTaskHost,
				   names[i], 1, &tids[i]), 1);
		snprintf(line, sizeof(line), "[t%x] BEGIN\n", tids[i]);
		WAIT_UNTIL((pvm_nrecv(-1, -1), text && strstr(text, line)), TEST_WAIT_MS);
	}
	CHECK_EQ(pvm_delhosts(names, 1, &result), 1);
	CHECK_EQ(kill(machine_daemon(tids[1]), SIGKILL), 0);
	CHECK_EQ(pvm_exit(), 0);
	fflush(f);
	for (int i = 0; i < 2; i++) {
		snprintf(line, sizeof(line), "[t%x] EOF\n", tids[i]);
		CHECK(strstr(text, line));
	}
	CHECK(pvm_mytid() > 0);
	machine_end();
	fclose(f);
	free(text);
}

/* The daemon of the task itself dies. The task of the next machine does not wait for its output. */
TEST(an_exit_does_not_wait_for_output_of_an_earlier_machine)
{
	char line[64], *text = NULL;
	size_t size;
	FILE *f = open_memstream(&text, &size);
	int tid;

	machine_begin();
	CHECK_EQ(pvm_catchout(f), 0);
	machine_spawn("echo", 1, &tid);
	snprintf(line, sizeof(line), "[t%x] BEGIN\n", tid);
	WAIT_UNTIL((pvm_nrecv(-1, -1), text && strstr(text, line)), TEST_WAIT_MS);
	CHECK_EQ(kill(machine_daemon(tid), SIGKILL), 0);
	CHECK_EQ(pvm_recv(-1, -1), PvmSysErr);
	CHECK_EQ(pvm_exit(), 0);
	snprintf(line, sizeof(line), "[t%x] EOF\n", tid);
	CHECK(strstr(text, line));
	WAIT_UNTIL(!machine_there(), TEST_WAIT_MS);
	CHECK(pvm_mytid() > 0);
	CHECK_EQ(pvm_exit(), 0);
	CHECK(pvm_mytid() > 0);
	machine_end();
	fclose(f);
	free(text);
}

TEST(the_daemon_inherits_no_descriptor_of_the_first_task)
{
	struct pollfd p = { .events = POLLIN };
	int pipe_ends[2];

	CHECK_EQ(pipe(pipe_ends), 0);
	machine_begin();
	close(pipe_ends[1]);
	p.fd = pipe_ends[0];
	CHECK_EQ(poll(&p, 1, TEST_WAIT_MS), 1);
	CHECK_EQ(p.revents, POLLHUP);
	CHECK(machine_there());
	machine_end();
	close(pipe_ends[0]);
}

TEST(a_daemon_that_is_killed_is_an_error_not_a_hang)
{
	int tid;

	machine_begin();
	machine_spawn("echo", 1, &tid);
	message_int(tid, 1, 1);
	CHECK(pvm_recv(tid, 1) > 0);
	CHECK_EQ(kill(machine_daemon(tid), SIGKILL), 0);
	CHECK_EQ(pvm_recv(-1, -1), PvmSysErr);
	CHECK_EQ(pvm_newcontext(), PvmSysErr);
	WAIT_UNTIL(!machine_there(), TEST_WAIT_MS);
	CHECK_EQ(pvm_exit(), 0);
}

TEST(a_tasker_starts_tasks_in_place_of_the_daemon)
{
	struct pvmtaskinfo *info;
	int tasker, tids[2], n, v = 0, pid;

	machine_begin();
	machine_spawn("tasker", 1, &tasker);
	CHECK(pvm_recv(tasker, 70) > 0);
	CHECK_EQ(pvm_reg_tasker(), PvmAlready);
	CHECK_EQ(pvm_tasks(tasker, &n, &info), 0);
	pid = info->ti_pid;
	machine_spawn("echo", 2, tids);
	for (int i = 0; i < 2; i++) {
		message_int(tids[i], 5, i);
		CHECK(pvm_recv(tids[i], 5) > 0);
		pvm_upkint(&v, 1, 1);
		CHECK_EQ(v, i);
		CHECK_EQ(machine_daemon(tids[i]), pid);
	}
	CHECK_EQ(pvm_notify(PvmTaskExit, 71, 2, tids), 0);
	CHECK_EQ(pvm_kill(tids[0]), 0);
	CHECK(pvm_recv(-1, 71) > 0);
	message_int(tids[1], 99, 0);
	CHECK(pvm_recv(-1, 71) > 0);
	/* a task that the tasker cannot start has ended */
	machine_spawn("fail", 1, tids);
	CHECK_EQ(pvm_notify(PvmTaskExit, 72, 1, tids), 0);
	CHECK(pvm_recv(-1, 72) > 0);
	/* without a tasker the daemon starts tasks again */
	CHECK_EQ(pvm_notify(PvmTaskExit, 73, 1, &tasker), 0);
	CHECK_EQ(kill(pid, SIGKILL), 0);
	CHECK(pvm_recv(-1, 73) > 0);
	machine_spawn("echo", 1, tids);
	message_int(tids[0], 5, 7);
	CHECK(pvm_recv(tids[0], 5) > 0);
	machine_end();
}
