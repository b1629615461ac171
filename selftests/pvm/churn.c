// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/*
 * Tests that hosts and tasks can come and go while other tasks work.
 *
 * Hosts are virtual nodes.  With SCI_TEST_PVM_HOSTS=NAME,NAME they are machines with these
 * names.  To end a host, the test makes the file SCI_TEST_PVM_KILL, and the caller of the
 * test kills the machine.  SCI_TEST_PROCESSES=N is the number of tasks that talk.
 */

#include <dirent.h>
#include <fcntl.h>
#include <sys/wait.h>

#include "selftests/pvm/machine.h"

#if TEST_ASAN || TEST_TSAN
#define TALKERS	40u
#define TASKS	100
#else
#define TALKERS	100u
#define TASKS	1000
#endif
#define TOKENS	10
#define BATCH	10
#define HOSTS	3

enum { ALL = 5, TOKEN, PING, PONG, END, TASK_GONE, HOST_GONE, NO_TAG };

/* Tasks that pass tokens. */
struct talkers {
	int n, tids[TALKERS];
};

/* Send a token to a random task that has not ended. */
static void token_pass(const struct talkers *t, unsigned int *seed)
{
	int tid, ret;

	do {
		tid = t->tids[rand_r(seed) % (unsigned int)t->n];
		ret = pvm_pstat(tid);
	} while (ret != PvmOk && ret != PvmSysErr);
	pvm_initsend(PvmDataDefault);
	pvm_send(tid, TOKEN);
}

/* Tell @n of @tids, which may be all of @t, whom to pass tokens to. */
static void talk(int *tids, int n, struct talkers *t)
{
	pvm_initsend(PvmDataDefault);
	pvm_pkint(&t->n, 1, 1);
	pvm_pkint(t->tids, t->n, 1);
	CHECK_EQ(pvm_mcast(tids, n, ALL), 0);
}

/* Pass tokens on. Answer each ping with the number of tokens so far. */
static int child_main(int argc, char **argv)
{
	unsigned int seed = (unsigned int)getpid();
	struct talkers t;
	int tag, tokens = 0;

	(void)argc;
	(void)argv;
	pvm_setopt(PvmAutoErr, 0);
	pvm_recv(pvm_parent(), ALL);
	pvm_upkint(&t.n, 1, 1);
	pvm_upkint(t.tids, t.n, 1);
	while (pvm_recv(-1, -1) > 0) {
		pvm_bufinfo(pvm_getrbuf(), NULL, &tag, NULL);
		if (tag == END)
			break;
		if (tag == PING) {
			pvm_initsend(PvmDataDefault);
			pvm_pkint(&tokens, 1, 1);
			pvm_send(pvm_parent(), PONG);
		} else if (tag == TOKEN) {
			tokens++;
			token_pass(&t, &seed);
		}
	}
	return pvm_exit();
}

/* Return the number of tokens that @tid has passed on. */
static int ping(int tid)
{
	pvm_initsend(PvmDataDefault);
	CHECK_EQ(pvm_send(tid, PING), 0);
	return reply_int(tid, PONG);
}

/*
 * Check that tokens pass through a task that is on none of the @n @hosts. The tokens are new: a host
 * that has ended may have had all others.
 */
static void talk_check(const struct talkers *t, const int *hosts, int n)
{
	int tid = 0, before;

	for (int i = 0; !tid; i++) {
		CHECK(i < t->n);
		tid = t->tids[i];
		for (int j = 0; j < n; j++)
			if (pvm_tidtohost(tid) == hosts[j])
				tid = 0;
	}
	before = ping(tid);
	pvm_initsend(PvmDataDefault);
	for (int i = 0; i < TOKENS; i++)
		CHECK_EQ(pvm_send(tid, TOKEN), 0);
	WAIT_UNTIL(ping(tid) > before + TOKENS, TEST_WAIT_MS);
}

/* Get the names of a test's hosts, except the first one. Return: their number. */
static int hosts_name(char **names)
{
	static char text[] = "node8,node12,node16";
	char *machines = getenv("SCI_TEST_PVM_HOSTS"), *save;
	int n = 0;

	if (!machines)
		test_needs_shm();
	for (char *p = strtok_r(machines ? machines : text, ",", &save); p && n < HOSTS;
	     p = strtok_r(NULL, ",", &save))
		names[n++] = p;
	return n;
}

/* Kill the host of task @tid. */
static void host_kill(int tid)
{
	const char *file = getenv("SCI_TEST_PVM_KILL");

	if (file)
		close(open(file, O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
	else
		CHECK_EQ(kill(machine_daemon(tid), SIGKILL), 0);
}

/* Kill the host of task @tid, and ping the task until PvmHostDelete is notified. */
static void host_kill_noticed(int tid)
{
	double last = machine_now_ms(), most = last + 5 * TEST_WAIT_MS;
	int host;

	message_empty(tid, PING);
	host_kill(tid);
	while (pvm_nrecv(-1, HOST_GONE) <= 0) {
		if (pvm_nrecv(tid, PONG) > 0) {
			last = machine_now_ms();
			message_empty(tid, PING);
		}
		CHECK(machine_now_ms() < most);
		test_pause();
	}
	pvm_upkint(&host, 1, 1);
	CHECK_EQ(host, pvm_tidtohost(tid));
	test_note("HostDelete comes %.1f ms after the last answer of the host", machine_now_ms() - last);
}

static int task_of(const struct talkers *t, int host)
{
	int i = 0;

	while (i < t->n && pvm_tidtohost(t->tids[i]) != host)
		i++;
	CHECK(i < t->n);
	return t->tids[i];
}

static unsigned int talkers_number(void)
{
	const char *text = getenv("SCI_TEST_PROCESSES");
	unsigned int n = text ? (unsigned int)atoi(text) : TALKERS;

	CHECK(n && n <= TALKERS);
	return n;
}

/* One host is deleted and one is killed. Then the hosts whose machines run are added again. */
TEST(hosts_come_and_go_while_tasks_talk)
{
	char *names[HOSTS];
	int hosts[HOSTS], again[2], tid, gone = 0, left = 0, result;
	int n = hosts_name(names), back = getenv("SCI_TEST_PVM_KILL") ? 1 : 2;
	struct talkers t = { .n = (int)talkers_number() };

	machine_begin();
	CHECK_EQ(pvm_addhosts(names, n, hosts), n);
	machine_spawn("talk", t.n, t.tids);
	CHECK_EQ(pvm_notify(PvmTaskExit, TASK_GONE, t.n, t.tids), 0);
	talk(t.tids, t.n, &t);
	talk_check(&t, hosts, 0);
	CHECK_EQ(pvm_notify(PvmHostDelete, HOST_GONE, 2, hosts), 0);
	CHECK_EQ(pvm_delhosts(names, 1, &result), 1);
	CHECK(pvm_recv(-1, HOST_GONE) > 0);
	talk_check(&t, hosts, 1);
	host_kill_noticed(task_of(&t, hosts[1]));
	for (int i = 0; i < t.n; i++)
		gone += pvm_tidtohost(t.tids[i]) == hosts[0] || pvm_tidtohost(t.tids[i]) == hosts[1];
	CHECK(gone > 0 && gone < t.n);
	for (int i = 0; i < gone; i++) {
		CHECK(pvm_recv(-1, TASK_GONE) > 0);
		pvm_upkint(&tid, 1, 1);
		CHECK(pvm_tidtohost(tid) == hosts[0] || pvm_tidtohost(tid) == hosts[1]);
	}
	talk_check(&t, hosts, 2);
	CHECK_EQ(pvm_addhosts(names, back, again), back);
	talk_check(&t, hosts, 2);
	for (int i = 0; i < t.n; i++)
		if (pvm_pstat(t.tids[i]) == PvmOk) {
			ping(t.tids[i]);
			left++;
		}
	CHECK_EQ(left, t.n - gone);
	machine_end();
}

/* Return whether daemon @master has started another daemon than @old, which sleeps. */
static bool new_daemon_sleeps(pid_t master, pid_t old)
{
	char path[64], line[4096];
	bool found = false;
	FILE *f, *command;
	int pid;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/children", (int)master, (int)master);
	f = fopen(path, "r");
	CHECK(f);
	while (fscanf(f, "%d", &pid) == 1) {
		snprintf(path, sizeof(path), "/proc/%d/cmdline", pid);
		command = pid != old && test_process(pid).state == 'S' ? fopen(path, "r") : NULL;
		if (!command)
			continue;
		found |= memmem(line, fread(line, 1, sizeof(line), command), "\0-S", 4) != NULL;
		fclose(command);
	}
	fclose(f);
	return found;
}

/*
 * The old daemon is stopped, so it cannot read that its host is deleted. It goes on when the new
 * daemon waits for the name of the old daemon's socket.
 */
TEST(a_host_is_added_again_before_its_old_daemon_has_ended)
{
	char *names[] = { (char *)"node8" };
	int host, task, result, again, status;
	pid_t daemon, master, child;

	machine_begin_hosts();
	CHECK_EQ(pvm_addhosts(names, 1, &host), 1);
	CHECK_EQ(pvm_spawn(machine_self, NULL, PvmTaskHost, names[0], 1, &task), 1);
	daemon = machine_daemon(task);
	master = test_process(daemon).parent;
	CHECK_EQ(kill(daemon, SIGSTOP), 0);
	CHECK_EQ(pvm_delhosts(names, 1, &result), 1);
	child = test_fork();
	if (!child) {
		WAIT_UNTIL(new_daemon_sleeps(master, daemon), TEST_WAIT_MS);
		_exit(kill(daemon, SIGCONT) ? 1 : 0);
	}
	CHECK_EQ(pvm_addhosts(names, 1, &again), 1);
	CHECK_EQ(waitpid(child, &status, 0), child);
	CHECK_EQ(status, 0);
	machine_end();
}

static unsigned int entries(pid_t pid, const char *what)
{
	char path[64];
	unsigned int n = 0;
	DIR *d;

	snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, what);
	d = opendir(path);
	CHECK(d);
	while (readdir(d))
		n++;
	closedir(d);
	return n - 2;	/* "." and ".." */
}

static long resident_kb(pid_t pid)
{
	char path[64], line[128];
	long kb = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/status", (int)pid);
	f = fopen(path, "r");
	CHECK(f);
	while (fgets(line, sizeof(line), f))
		sscanf(line, "VmRSS: %ld", &kb);
	fclose(f);
	return kb;
}

/* Resources of a process. */
struct holds {
	unsigned int fds, threads;
	long kb;
};

static struct holds process_holds(pid_t pid)
{
	return (struct holds){ entries(pid, "fd"), entries(pid, "task"), resident_kb(pid) };
}

/*
 * Check that the process has no more descriptors, threads and memory than @before. pvm_probe()
 * lets this process close its connections to tasks that have ended.
 */
static void flat_check(const char *what, pid_t pid, const struct holds *before, unsigned int n)
{
	struct holds now;

	WAIT_UNTIL((pvm_probe(-1, NO_TAG), entries(pid, "fd")) <= before->fds, TEST_WAIT_MS);
	now = process_holds(pid);
	test_note("%u tasks: %s has %u descriptors, %u threads, %ld KiB, before %u, %u, %ld", n,
		  what, now.fds, now.threads, now.kb, before->fds, before->threads, before->kb);
	CHECK(now.threads <= before->threads);
#if !TEST_ASAN && !TEST_TSAN
	CHECK(now.kb < before->kb + 512);
#endif
}

/* Count the children of @pid, with zombies. */
static int children(pid_t pid)
{
	char path[64];
	int n = 0, c;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/task/%d/children", (int)pid, (int)pid);
	f = fopen(path, "r");
	CHECK(f);
	while ((c = fgetc(f)) != EOF)
		n += c == ' ';
	fclose(f);
	return n;
}

/* Half of the tasks exit, and half are killed. During the first fifth of them, caches fill. */
TEST(tasks_that_end_leave_the_daemon_and_their_parent_as_they_were)
{
	struct holds daemon = { 0 }, parent = { 0 };
	unsigned int n = test_calls(TASKS / BATCH);
	int batch[BATCH], n_tasks, n_hosts = 0, hosts[HOSTS];
	struct talkers none = { 0 };
	char *names[HOSTS];
	pid_t master = 0;

	machine_begin();
	if (getenv("SCI_TEST_PVM_HOSTS")) {
		n_hosts = hosts_name(names);
		CHECK_EQ(pvm_addhosts(names, n_hosts, hosts), n_hosts);
	}
	for (unsigned int i = 0; i < n; i++) {
		machine_spawn("talk", BATCH, batch);
		CHECK_EQ(pvm_notify(PvmTaskExit, TASK_GONE, BATCH, batch), 0);
		talk(batch, BATCH, &none);
		for (int j = 0; j < BATCH; j++)
			ping(batch[j]);
		for (int j = 0; j < BATCH; j++)
			if (pvm_tidtohost(batch[j]) == pvm_tidtohost(pvm_mytid()))
				master = machine_daemon(batch[j]);
		for (int j = 0; j < BATCH; j++)
			if (j % 2)
				CHECK_EQ(pvm_kill(batch[j]), 0);
			else
				message_empty(batch[j], END);
		for (int j = 0; j < BATCH; j++)
			CHECK(pvm_recv(-1, TASK_GONE) > 0);
		if (i == n / 5) {
			daemon = process_holds(master);
			parent = process_holds(getpid());
		}
	}
	flat_check("the daemon", master, &daemon, n * BATCH);
	flat_check("the parent", getpid(), &parent, n * BATCH);
	/* the remote shells of the hosts are left */
	WAIT_UNTIL(children(master) <= n_hosts, TEST_WAIT_MS);
	CHECK_EQ(pvm_tasks(0, &n_tasks, NULL), 0);
	CHECK_EQ(n_tasks, 1);
	machine_end();
}
