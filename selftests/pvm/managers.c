// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/*
 * Tests tasks that start daemons (hosters), place tasks (resource managers), and collect
 * traces and output (tracers). selftests/pvm/both/tracer.c compares the messages of a tracer
 * with those of Debian's PVM.
 */

#include "selftests/pvm/machine.h"

#include "selftests/pvm/events.h"

#define READY	70
#define STATUS	90	/* tid, status: the manager's notification of a task's end */
#define LOST	91	/* tid: the manager's notification of a host's end */
#define NEW	92	/* tid: the manager knows this task */
#define TRACE	93
#define OUTPUT	94
#define SPEED	1234	/* of all hosts, in the manager's replies */
#define NAMES	8

/* ---- the hoster ---- */

/* Start one daemon. @line gets the daemon's first line, or the name of an error. */
static void host_run(const char *login, const char *command, char *line)
{
	FILE *f;

	strcpy(line, "PvmNoFile");
	if (!strcmp(login, "bad"))
		return;
	/* NOLINTNEXTLINE(cert-env33-c): our own command */
	f = popen(command, "r");
	if (!f || !fgets(line, 256, f))
		strcpy(line, "PvmDSysErr");
	if (f)
		pclose(f);
	line[strcspn(line, "\n")] = 0;
}

/* Start daemons. With @how "mortal", end on a request; with "mute", send no results. */
static int child_hoster(const char *how)
{
	char options[64], login[64], command[4096], windows[64], vmid[64];
	static char lines[NAMES][256];
	int n, m, from, tids[NAMES];
	struct pvmminfo info, reply;

	pvm_setopt(PvmResvTids, 1);
	if (pvm_reg_hoster())
		return 1;
	message_empty(pvm_parent(), READY);
	while (pvm_recv(-1, SM_STHOST) > 0) {
		if (!strcmp(how, "mortal"))
			return 1;
		pvm_bufinfo(pvm_getrbuf(), NULL, NULL, &from);
		pvm_getminfo(pvm_getrbuf(), &info);
		pvm_upkint(&n, 1, 1);
		m = 0;
		for (int i = 0; i < n && i < NAMES; i++) {
			if (pvm_unpackf("%d %64s %64s %4096s %64s %64s", &tids[m], options,
					login, command, windows, vmid))
				return 1;
			if (strcmp(login, "left-out"))
				host_run(login, command, lines[m++]);
		}
		pvm_initsend(PvmDataDefault);
		pvm_packf("%d", m);
		for (int i = 0; i < m; i++)
			pvm_packf("%d %s", tids[i], lines[i]);
		pvm_getminfo(pvm_getsbuf(), &reply);
		reply.wid = info.wid;
		pvm_setminfo(pvm_getsbuf(), &reply);
		if (strcmp(how, "mute"))
			pvm_send(from, SM_STHOSTACK);
		else
			pvm_send(pvm_parent(), READY);
	}
	return 0;
}

/* ---- the manager ---- */

/* Begin the reply to @info. */
static void reply_begin(struct pvmminfo *info)
{
	struct pvmminfo reply;

	pvm_initsend(PvmDataDefault);
	pvm_getminfo(pvm_getsbuf(), &reply);
	reply.wid = info->wid;
	pvm_setminfo(pvm_getsbuf(), &reply);
}

static void hosts_reply(struct pvmminfo *info)
{
	struct pvmhostinfo *h;
	int n, archs;

	pvm_config(&n, &archs, &h);
	reply_begin(info);
	pvm_packf("%d %d", n, archs);
	for (int i = 0; i < n; i++)
		pvm_packf("%d %s %s %d %d", h[i].hi_tid, h[i].hi_name, h[i].hi_arch, SPEED,
			  h[i].hi_dsig);
	pvm_send(info->src, SM_CONFIG);
}

static void tasks_reply(struct pvmminfo *info)
{
	struct pvmtaskinfo *t;
	int where, n;

	pvm_upkint(&where, 1, 1);
	pvm_tasks(where, &n, &t);
	reply_begin(info);
	pvm_packf("%d", 0);
	for (int i = 0; i < n; i++)
		pvm_packf("%d %d %d %d %s %d", t[i].ti_tid, t[i].ti_ptid, t[i].ti_host,
			  t[i].ti_flag, t[i].ti_a_out, t[i].ti_pid);
	pvm_send(info->src, SM_TASK);
}

static int names_read(char names[][64], char **list)
{
	int sent = 0, n;

	pvm_upkint(&sent, 1, 1);
	n = sent < NAMES ? sent : NAMES;
	for (int i = 0; i < n; i++) {
		pvm_upkstr(names[i]);
		list[i] = names[i];
	}
	return n;
}

static void hosts_add(struct pvmminfo *info, int master)
{
	char names[NAMES][64], *list[NAMES], name[64], arch[64];
	int asked = names_read(names, list), n, archs, tid, speed, sig;

	pvm_initsend(PvmDataDefault);
	pvm_packf("%d", asked);
	for (int i = 0; i < asked; i++)
		pvm_pkstr(list[i]);
	pvm_send((int)(TID_DAEMON | (unsigned int)master), SM_ADD);
	pvm_recv(-1, SM_ADDACK);
	pvm_unpackf("%d %d", &n, &archs);
	reply_begin(info);
	pvm_packf("%d %d", n, archs);
	for (int i = 0; i < n; i++) {
		pvm_unpackf("%d %64s %64s %d %d", &tid, name, arch, &speed, &sig);
		pvm_packf("%d %s %s %d %d", tid, name, arch, speed, sig);
	}
	pvm_send(info->src, SM_ADDHOST);
}

static void hosts_delete(struct pvmminfo *info)
{
	char names[NAMES][64], *list[NAMES];
	int n = names_read(names, list), results[NAMES];

	pvm_delhosts(list, n, results);
	reply_begin(info);
	pvm_pkint(&n, 1, 1);
	pvm_pkint(results, n, 1);
	pvm_send(info->src, SM_DELHOST);
}

/* Start all tasks on the last host. */
static void tasks_start(struct pvmminfo *info)
{
	char file[PATH_MAX], where[64], args[4][64], env[512];
	int flag, n, nargs, opts[6], nenv, host, hosts, tids[NAMES];
	struct pvmhostinfo *h;

	pvm_config(&hosts, NULL, &h);
	host = h[hosts - 1].hi_tid;
	pvm_unpackf("%4096s %d %64s %d %d", file, &flag, where, &n, &nargs);
	if (!strcmp(file, "die") || nargs > 4)
		_exit(1);
	pvm_initsend(PvmDataDefault);
	pvm_packf("%d %s %d %d %d", info->src, file, flag, n, nargs);
	for (int i = 0; i < nargs; i++) {
		pvm_upkstr(args[i]);
		pvm_pkstr(args[i]);
	}
	pvm_upkint(opts, 6, 1);
	pvm_pkint(opts, 6, 1);
	pvm_upkint(&nenv, 1, 1);
	pvm_pkint(&nenv, 1, 1);
	for (int i = 0; i < nenv; i++) {
		pvm_unpackf("%512s", env);
		pvm_pkstr(env);
	}
	pvm_send((int)(TID_DAEMON | (unsigned int)host), SM_EXEC);
	pvm_recv(-1, SM_EXECACK);
	pvm_upkint(&n, 1, 1);
	pvm_upkint(tids, n, 1);
	reply_begin(info);
	pvm_pkint(&n, 1, 1);
	pvm_pkint(tids, n, 1);
	pvm_send(info->src, SM_SPAWN);
}

static int child_manager(void)
{
	struct pvmhostinfo *host;
	struct pvmminfo info;
	int numbers[6] = { 0 }, client = 0;

	pvm_setopt(PvmResvTids, 1);
	if (pvm_reg_rm(&host) || strcmp(host->hi_name, "node4"))
		return 1;
	message_empty(pvm_parent(), READY);
	while (pvm_recv(-1, -1) > 0) {
		pvm_getminfo(pvm_getrbuf(), &info);
		switch (info.tag) {
		case SM_SPAWN: tasks_start(&info); break;
		case SM_CONFIG: hosts_reply(&info); break;
		case SM_TASK: tasks_reply(&info); break;
		case SM_ADDHOST: hosts_add(&info, host->hi_tid); break;
		case SM_DELHOST: hosts_delete(&info); break;
		case SM_EXECACK:
			pvm_upkint(numbers, 2, 1);
			message_int(numbers[1], NEW, numbers[1]);
			break;
		case SM_NOTIFY: client = info.src; break;
		case SM_TASKX:
		case SM_HOSTX:
			pvm_upkint(numbers, info.tag == SM_TASKX ? 2 : 1, 1);
			pvm_initsend(PvmDataDefault);
			pvm_pkint(numbers, 2, 1);
			pvm_send(client, info.tag == SM_TASKX ? STATUS : LOST);
			break;
		}
	}
	return 0;
}

/* ---- other children ---- */

/* Send each message back, until a message with tag 99 has the exit status. */
static int child_echo(void)
{
	int tag, src, v = 0;

	while (pvm_recv(-1, -1) > 0) {
		pvm_bufinfo(pvm_getrbuf(), NULL, &tag, &src);
		pvm_upkint(&v, 1, 1);
		if (tag == 99)
			break;
		pvm_initsend(PvmDataDefault);
		pvm_pkint(&v, 1, 1);
		pvm_send(src, tag);
	}
	return v;
}

static int child_add(void)
{
	char *names[] = { (char *)"node8", (char *)"node12" };

	return pvm_addhosts(names, 2, NULL) > 0;
}

/* ---- the tracer ---- */

/* Register, then forward all messages of traces and output, until another message arrives. */
static int child_tracer(void)
{
	char mask[MASK_SIZE];
	int tag;

	mask_make(mask, (const int[]){ SEND, -1 });
	message_int(pvm_parent(), READY,
		    pvm_reg_tracer(0, TRACE, 0, OUTPUT, mask, 0, PvmTraceFull));
	while (pvm_recv(-1, -1) > 0) {
		pvm_bufinfo(pvm_getrbuf(), NULL, &tag, NULL);
		if (tag != TRACE && tag != OUTPUT)
			break;
		pvm_setsbuf(pvm_getrbuf());
		pvm_send(pvm_parent(), tag);
	}
	return 0;
}

static int child_main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";

	if (!strcmp(what, "tracer"))
		return child_tracer();

	if (!strcmp(what, "hoster") || !strcmp(what, "mortal") || !strcmp(what, "mute"))
		return child_hoster(what);
	if (!strcmp(what, "add"))
		return child_add();
	if (!strcmp(what, "manager"))
		return child_manager();
	return child_echo();
}

TEST(a_hoster_starts_the_daemons_of_hosts)
{
	char *names[] = { (char *)"node8", (char *)"bad", (char *)"node12", (char *)"left-out" };
	int hoster, results[4], tids[3], n;
	struct pvmmboxinfo *box;

	machine_begin_hosts();
	machine_spawn("hoster", 1, &hoster);
	CHECK(pvm_recv(hoster, READY) > 0);
	CHECK_EQ(pvm_reg_hoster(), PvmAlready);
	CHECK_EQ(pvm_getmboxinfo((char *)PVMHOSTERCLASS, &n, &box), 0);
	CHECK_EQ(n, 1);
	CHECK_EQ(box->mi_owners[0], hoster);
	CHECK_EQ(pvm_addhosts(names, 4, results), 2);
	CHECK(results[0] > 0 && results[2] > 0);
	CHECK_EQ(results[1], PvmNoFile);
	CHECK_EQ(results[3], PvmCantStart);
	machine_spawn("echo", 3, tids);
	for (int i = 0; i < 3; i++) {
		message_int(tids[i], 5, i);
		CHECK_EQ(reply_int(tids[i], 5), i);
	}
	/* without a hoster the daemon starts hosts */
	CHECK_EQ(pvm_notify(PvmTaskExit, 6, 1, &hoster), 0);
	CHECK_EQ(pvm_kill(hoster), 0);
	CHECK_EQ(reply_int(-1, 6), hoster);
	names[0] = (char *)"node16";
	CHECK_EQ(pvm_addhosts(names, 1, results), 1);
	CHECK_EQ(pvm_delhosts(names, 1, results), 1);
	machine_end();
}

TEST(hosts_fail_whose_hoster_ends)
{
	char *names[] = { (char *)"node8", (char *)"node12" };
	int hoster, results[2];

	machine_begin_hosts();
	machine_spawn("mortal", 1, &hoster);
	CHECK(pvm_recv(hoster, READY) > 0);
	CHECK_EQ(pvm_addhosts(names, 2, results), 0);
	CHECK_EQ(results[0], PvmCantStart);
	CHECK_EQ(results[1], PvmCantStart);
	/* the same task may register, and unregister */
	CHECK_EQ(pvm_reg_hoster(), 0);
	CHECK_EQ(pvm_reg_hoster(), 0);
	CHECK_EQ(pvm_addhosts(names, 2, results), 2);
	machine_end();
}

/* The harness fails the test if a daemon is left. */
TEST(daemons_whose_hoster_does_not_answer_end_with_the_machine)
{
	int hoster, adder;

	machine_begin();
	machine_spawn("mute", 1, &hoster);
	CHECK(pvm_recv(hoster, READY) > 0);
	machine_spawn("add", 1, &adder);
	CHECK(pvm_recv(hoster, READY) > 0);
	machine_end();
}

static int first_speed(void)
{
	struct pvmhostinfo *h;

	CHECK_EQ(pvm_config(NULL, NULL, &h), 0);
	return h->hi_speed;
}

/* Start a manager, and enrol this process again, since older tasks have no manager. */
static int manager_begin(void)
{
	int tid;

	machine_begin();
	machine_spawn("manager", 1, &tid);
	CHECK(pvm_recv(tid, READY) > 0);
	CHECK_EQ(first_speed(), 1000);
	CHECK_EQ(pvm_exit(), 0);
	CHECK(pvm_mytid() > 0);
	CHECK_EQ(reply_int(tid, NEW), pvm_mytid());
	return tid;
}

TEST(a_manager_places_tasks_and_hosts)
{
	char *names[] = { (char *)"node8", (char *)"node12" };
	struct pvmtaskinfo *info;
	int manager = manager_begin(), results[2], tids[3], *sibling, n;

	test_needs_shm();
	CHECK_EQ(first_speed(), SPEED);
	CHECK_EQ(pvm_addhosts(names, 2, results), 2);
	CHECK(results[0] > 0 && results[1] > 0);
	CHECK_EQ(pvm_config(&n, NULL, NULL), 0);
	CHECK_EQ(n, 3);
	machine_spawn("echo", 3, tids);
	for (int i = 0; i < 3; i++) {
		CHECK_EQ(pvm_tidtohost(tids[i]), results[1]);
		message_int(tids[i], 5, i);
		CHECK_EQ(reply_int(tids[i], 5), i);
	}
	CHECK_EQ(pvm_tasks(tids[1], &n, &info), 0);
	CHECK_EQ(n, 1);
	CHECK_EQ(info->ti_tid, tids[1]);
	CHECK_EQ(info->ti_ptid, pvm_mytid());
	CHECK(!strcmp(info->ti_a_out, machine_self));
	CHECK_EQ(pvm_siblings(&sibling), 1);
	/* the manager is notified of a task's exit status, and of a host's end */
	CHECK_EQ(pvm_notify(PvmTaskExit, 6, 3, tids), 0);
	message_int(tids[1], 99, 7);
	CHECK_EQ(reply_int(manager, STATUS), tids[1]);
	CHECK_EQ(pvm_upkint(&n, 1, 1), 0);
	CHECK_EQ(n, 7 << 8);
	CHECK_EQ(pvm_delhosts(names, 1, results), 1);
	CHECK_EQ(results[0], 0);
	CHECK_EQ(reply_int(manager, LOST) & (int)TID_HOST_MASK, TID_OF_HOST(2));
	CHECK_EQ(pvm_config(&n, NULL, NULL), 0);
	CHECK_EQ(n, 2);
	machine_end();
}

TEST(tasks_go_back_to_the_daemon_when_their_manager_ends)
{
	struct pvmhostinfo *h;
	int tid;

	manager_begin();
	CHECK_EQ(first_speed(), SPEED);
	/* the manager ends in place of an answer, so the daemon answers */
	CHECK_EQ(pvm_spawn((char *)"die", NULL, 0, NULL, 1, &tid), 0);
	CHECK_EQ(tid, PvmNoFile);
	CHECK_EQ(first_speed(), 1000);
	machine_spawn("echo", 1, &tid);
	message_int(tid, 5, 3);
	CHECK_EQ(reply_int(tid, 5), 3);
	CHECK_EQ(pvm_reg_rm(&h), 0);
	CHECK(!strcmp(h->hi_name, "node4"));
	machine_end();
}

/* Receive from the tracer until the trace of task @tid ends. Return: the number of its events. */
static int trace_receive(int tracer, int tid)
{
	int mark, event, n = 0;
	char name[32];

	for (;;) {
		CHECK(pvm_recv(tracer, TRACE) > 0);
		mark = unpack_int();
		if (mark == IDS)
			continue;
		event = unpack_int();
		if (mark == DESC)
			CHECK_EQ(pvm_upkstr(name), 0);
		CHECK_EQ(unpack_origin(mark), tid);
		n++;
		if (event == ENDTASK)
			return n;
	}
}

TEST(a_tracer_gets_traces_of_tasks_on_all_hosts)
{
	char *names[] = { (char *)"node8", (char *)"node12" };
	char *argv[] = { (char *)"echo", NULL }, mask[36] = "";
	int tracer, tid, hosts[2], bytes, n, ret;

	machine_begin_hosts();
	/* one host joins before the tracer registers, and one joins after it */
	CHECK_EQ(pvm_addhosts(names, 1, hosts), 1);
	machine_spawn("tracer", 1, &tracer);
	CHECK_EQ(reply_int(tracer, READY), 0);
	CHECK_EQ(pvm_addhosts(names + 1, 1, hosts), 1);
	CHECK_EQ(pvm_reg_tracer(0, TRACE, 0, OUTPUT, mask, 0, 0), PvmAlready);
	CHECK_EQ(pvm_reg_tracer(0, TRACE, 0, OUTPUT, NULL, 0, 0), PvmBadParam);
	for (int i = 0; i < 2; i++) {
		CHECK_EQ(pvm_spawn(machine_self, argv, PvmTaskHost, names[i], 1, &tid), 1);
		message_int(tid, 5, 1);
		CHECK_EQ(reply_int(tid, 5), 1);
		message_int(tid, 99, 0);
		/* newtask, entry and exit of a send, endtask */
		CHECK_EQ(trace_receive(tracer, tid), 4);
		do {
			CHECK(pvm_recv(tracer, OUTPUT) > 0);
			CHECK_EQ(pvm_upkint(&n, 1, 1), 0);
			CHECK_EQ(n, tid);
			CHECK_EQ(pvm_upkint(&bytes, 1, 1), 0);
		} while (bytes);
	}
	/* this task enrolled before the tracer: enrol again as another task */
	CHECK_EQ(pvm_exit(), 0);
	CHECK(pvm_mytid() > 0);
	CHECK_EQ(pvm_getopt(PvmSelfTraceTid), tracer);
	/* when the tracer has ended, another task may register */
	CHECK_EQ(pvm_notify(PvmTaskExit, 6, 1, &tracer), 0);
	CHECK_EQ(pvm_kill(tracer), 0);
	CHECK_EQ(reply_int(-1, 6), tracer);
	ret = pvm_reg_tracer(0, TRACE, 0, OUTPUT, mask, 0, 0);
	CHECK_EQ(ret, 0);
	CHECK_EQ(pvm_getmboxinfo((char *)PVMTRACERCLASS, &n, &(struct pvmmboxinfo *){ 0 }), 0);
	CHECK_EQ(n, 1);
	CHECK_EQ(pvm_reg_tracer(0, 0, 0, 0, mask, 0, 0), 0);
	CHECK_EQ(pvm_getmboxinfo((char *)PVMTRACERCLASS, &n, &(struct pvmmboxinfo *){ 0 }), 0);
	CHECK_EQ(n, 0);
	machine_end();
}
