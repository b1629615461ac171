// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/*
 * Tests hostile input to a task: bodies of messages, arguments of calls, and forged messages
 * of other tasks. Calls must return errors, and the task must go on. strangers.c tests hostile
 * input to the daemon.
 */

#include <errno.h>

#include "selftests/pvm/hostile.h"

#include "libsci/pvm/groupop.h"
#define PV_CALLS_HERE			/* the names of calls are those of PVM */
#include "libsci/pvm/lib.h"

#define TAG		5
#define GO		6
#define BODY_MAX	4096
#define STRIDE_MAX	4
/* A long has four bytes in XDR and eight here. */
#define SCRATCH_SIZE	(2 * BODY_MAX * STRIDE_MAX)
#define LONG_SIZE	40000		/* longer than the messages that arrive in one piece */

/* ---- bodies ---- */

/* Send this body to this task, and receive it. */
static void body_receive(int enc, const void *body, size_t len)
{
	CHECK(pvm_initsend(enc) > 0);
	CHECK_EQ(pvm_pkbyte((char *)body, (int)len, 1), 0);
	CHECK_EQ(pvm_send(pvm_mytid(), TAG), 0);
	CHECK(pvm_recv(-1, TAG) > 0);
}

/* Make a body of random items of all types. Return: its length. */
static size_t body_pack(int enc, uint8_t *body)
{
	char text[] = "a string", bytes[] = { 1, 2, 3 };
	double d[2] = { 1.5, -2 };
	long l[2] = { 1, -1 };
	int v[3] = { 1, -2, 3 }, len;

	CHECK(pvm_initsend(enc) > 0);
	for (unsigned int i = random_below(12); i; i--) {
		switch (random_below(6)) {
		case 0: pvm_pkint(v, 3, 1); break;
		case 1: pvm_pkstr(text); break;
		case 2: pvm_pkdouble(d, 2, 1); break;
		case 3: pvm_pkbyte(bytes, 3, 1); break;
		case 4: pvm_pklong(l, 2, 1); break;
		default:
			/* a message in a message: its head, then its bytes */
			v[0] = 12;
			pvm_packf("%d %d %d %d %d", v[0], enc, 1, 2, 3);
			pvm_pkint(v, 3, 1);
			break;
		}
	}
	CHECK_EQ(pvm_send(pvm_mytid(), TAG), 0);
	CHECK(pvm_recv(-1, TAG) > 0);
	CHECK_EQ(pvm_bufinfo(pvm_getrbuf(), &len, NULL, NULL), 0);
	CHECK_EQ(pvm_upkbyte((char *)body, len, 1), 0);
	return (size_t)len;
}

/* Make a format that takes only addresses, with strides that stay in the scratch area. */
static void hostile_format(char *to, size_t size)
{
	static const char letters[] = "cdfxscdfxscdfxs+%z. \n";
	static const char *const lengths[] = { "", "h", "l", "u", "hu", "lu", "hlu", "ulhhh" };
	size_t n = 0;

	*to = 0;
	for (unsigned int i = random_below(5); i; i--) {
		n += (size_t)snprintf(to + n, size - n, one_in(8) ? "x" : "%%");
		if (one_in(2))
			n += (size_t)snprintf(to + n, size - n, "%u",
					      one_in(8) ? random_word() : random_below(20));
		if (one_in(3))
			n += (size_t)snprintf(to + n, size - n, ".%u",
					      random_below(STRIDE_MAX + 1));
		n += (size_t)snprintf(to + n, size - n, "%s%c", lengths[random_below(8)],
				      letters[random_below(sizeof(letters) - 1)]);
	}
}

/* Call a random function that unpacks. */
static int unpack_any(void *scratch)
{
	int n = hostile_int(), step = one_in(8) ? -1 : (int)random_below(STRIDE_MAX + 1);
	char format[256];
	int mid;

	switch (random_below(16)) {
	case 0: return pvm_upkbyte(scratch, n, step);
	case 1: return pvm_upkcplx(scratch, n, step);
	case 2: return pvm_upkdcplx(scratch, n, step);
	case 3: return pvm_upkdouble(scratch, n, step);
	case 4: return pvm_upkfloat(scratch, n, step);
	case 5: return pvm_upkint(scratch, n, step);
	case 6: return pvm_upklong(scratch, n, step);
	case 7: return pvm_upkshort(scratch, n, step);
	case 8: return pvm_upkuint(scratch, n, step);
	case 9: return pvm_upkulong(scratch, n, step);
	case 10: return pvm_upkushort(scratch, n, step);
	case 11: return pvm_upkstr(scratch);
	case 12: return pvm_unpackf("%*s", one_in(2) ? n : (int)random_below(16), scratch);
	case 13:
		mid = pvm_upkmesg();
		if (mid > 0 && one_in(2))
			pvm_freebuf(pvm_setrbuf(mid));
		else if (mid > 0)
			pvm_freebuf(mid);
		return mid > 0 ? 0 : mid;
	default:
		hostile_format(format, sizeof(format));
		return pvm_unpackf(format, scratch, scratch, scratch, scratch, scratch);
	}
}

static bool unpack_result_good(int ret)
{
	return ret == PvmOk || ret == PvmBadParam || ret == PvmNoData || ret == PvmBadMsg ||
	       ret == PvmOverflow || ret == PvmNoMem;
}

TEST(bodies_of_any_bytes_are_unpacked_or_refused)
{
	static const int encs[] = { PvmDataDefault, PvmDataRaw, PvmDataInPlace };
	uint8_t *body = malloc(BODY_MAX), *scratch = malloc(SCRATCH_SIZE);
	size_t len;

	machine_begin();
	random_seed(0);
	for (unsigned int i = rounds(20000); i; i--) {
		int enc = encs[random_below(3)];

		if (one_in(2)) {
			len = body_pack(enc == PvmDataInPlace ? PvmDataRaw : enc, body);
			body_mutate(body, len);
			len = one_in(4) ? random_below((uint32_t)len + 1) : len;
		} else {
			len = random_below(one_in(8) ? BODY_MAX : 64);
			random_bytes(body, len);
		}
		body_receive(enc, body, len);
		for (int j = 0; j < 12; j++)
			CHECK(unpack_result_good(unpack_any(scratch)));
	}
	alive_check();
	/* a negative size of the string's buffer is refused */
	body_receive(PvmDataRaw, "\4\0\0\0abc", 8);
	CHECK_EQ(pvm_unpackf("%*s", -1, scratch), PvmBadParam);
	CHECK_EQ(pvm_unpackf("%*s", 4, scratch), 0);
	free(body);
	free(scratch);
	machine_end();
}

/* ---- arguments ---- */

static int handler(int mid)
{
	return mid;
}

static int buffer_call(unsigned int which, int mid)
{
	struct pvmminfo info;
	int a, b, c;

	switch (which) {
	case 0: return pvm_bufinfo(mid, &a, &b, &c);
	case 1: return pvm_freebuf(mid);
	case 2: return pvm_setsbuf(mid);
	case 3: return pvm_setrbuf(mid);
	case 4: return pvm_getminfo(mid, one_in(8) ? NULL : &info);
	case 5:
		random_bytes(&info, sizeof(info));
		return pvm_setminfo(mid, &info);
	case 6: return pvm_pkmesg(mid);
	case 7: return pvm_pkmesgbody(mid);
	case 8: return pvm_mkbuf(mid);
	default: return pvm_initsend(mid);
	}
}

static int message_call(unsigned int which)
{
	struct timeval tv = { (int)random_below(3) - 2, (int)random_below(3) - 2 };
	int tids[4] = { hostile_int(), hostile_tid(), hostile_int(), pvm_mytid() };
	static int data[4];		/* static: messages packed in place keep its address */
	int n = (int)random_below(8) - 3;

	n = n > 4 ? 4 : n;
	switch (which) {
	case 0: return pvm_send(hostile_int(), hostile_int());
	case 1: return pvm_mcast(one_in(8) ? NULL : tids, n, hostile_int());
	case 2: return pvm_psend(hostile_int(), hostile_int(), data, n > 1 ? 1 : n,
				 (int)random_below(7) - 1);
	case 3: return pvm_psend(hostile_int(), TAG, NULL, 1, hostile_int());
	case 4: return pvm_nrecv(hostile_int(), hostile_int());
	case 5: return pvm_probe(hostile_int(), hostile_int());
	case 6: return pvm_trecv(hostile_int(), hostile_int(), &tv);
	case 7: return pvm_precv(-1, -1, data, -1 - (int)random_below(9), PVM_INT, NULL, NULL,
				 NULL);
	case 8: return pvm_precv(-1, -1, data, 1, hostile_int() | 16, NULL, NULL, NULL);
	case 9: return pvm_notify(hostile_int(), hostile_int(), n, one_in(8) ? NULL : tids);
	case 10: return pvm_notify(1 + (int)random_below(3) + (one_in(3) ? PvmNotifyCancel : 0),
				   (int)random_below(9), n, tids);
	case 11: return pvm_pkint(data, -1 - (int)random_below(9), 1);
	case 12: return pvm_pkdouble(NULL, 1, hostile_int());
	default: return pvm_pkstr(one_in(2) ? NULL : (char *)hostile_name());
	}
}

static int machine_call(unsigned int which)
{
	char *names[2] = { (char *)hostile_name(), (char *)"no-such-name" };
	int results[4], n, argp[10] = { hostile_int() };
	struct pvmtaskinfo *tasks;
	struct pvmhostinfo *hosts;
	struct timeval a, b;

	switch (which) {
	case 0: return pvm_pstat(hostile_int());
	case 1: return pvm_sendsig(hostile_tid(), hostile_int());
	case 2: return pvm_kill(hostile_tid());
	case 3: return pvm_tasks(hostile_int(), &n, &tasks);
	case 4: return pvm_config(&n, &n, one_in(2) ? NULL : &hosts);
	case 5: return pvm_mstat(one_in(8) ? NULL : names[0]);
	case 6: return pvm_hostsync(hostile_int(), &a, &b);
	case 7: return pvm_delhosts(one_in(8) ? NULL : names, (int)random_below(4) - 1, results);
	case 8: return pvm_spawn(names[0], NULL, hostile_int(), names[1], -(int)random_below(3),
				 results);
	case 9: return pvm_spawn((char *)"no-such-program", NULL, hostile_int(), names[0],
				 (int)random_below(5), results);
	case 10: return pvm_tickle(hostile_int(), argp, &n, results);
	case 11: return pvm_archcode(one_in(8) ? NULL : names[0]);
	case 12: return pvm_freecontext(hostile_int());
	case 13: return pvm_tidtohost(hostile_int()) & 0;
	case 14: return pvm_export(names[0]);
	default: return pvm_unexport(one_in(8) ? NULL : names[0]);
	}
}

static int other_call(unsigned int which)
{
	static const enum group_op ops[] = { GROUP_JOIN, GROUP_LEAVE, GROUP_INST, GROUP_TID,
		GROUP_SIZE, (enum group_op)-1, (enum group_op)99 };
	char *name = (char *)hostile_name();
	struct pvmmboxinfo *boxes;
	int n, what = hostile_int();

	switch (which) {
	case 0: return pvm_putinfo(name, hostile_int(), hostile_int());
	case 1: return pvm_putinfo(name, pvm_getsbuf(), hostile_int());
	case 2: return pvm_recvinfo(name, hostile_int(), hostile_int() & ~PvmMboxWaitForInfo);
	case 3: return pvm_delinfo(name, hostile_int(), hostile_int());
	case 4: return pvm_getmboxinfo(one_in(8) ? NULL : name, &n, &boxes);
	case 5: return pvm_insert(name, hostile_int(), 1);
	case 6: return pvm_lookup(name, hostile_int(), &n);
	case 7: return pvm_delete(name, hostile_int());
	case 8:
		what = one_in(2) ? (int)random_below(30) : what;
		/* PvmAutoErr may end the program; old values of options are no errors */
		return what == PvmAutoErr ? 0 : pvm_setopt(what, hostile_int()) & 0;
	case 9: return pvm_getopt(what) & 0;
	case 10: return pvm_delmhf(hostile_int());
	case 11: return pvm_addmhf(hostile_int() | INT_MIN, 77, 78, handler);
	case 12: return pvm_setcontext(hostile_int()) & 0;
	default: return pvmgroupop(ops[random_below(7)], name, hostile_int(), NULL);
	}
}

static int call_any(void)
{
	switch (random_below(4)) {
	case 0: return buffer_call(random_below(10), one_in(2) ? (int)random_below(20) - 2 :
				   hostile_int());
	case 1: return message_call(random_below(14));
	case 2: return machine_call(random_below(16));
	default: return other_call(random_below(14));
	}
}

TEST(arguments_of_any_value_are_used_or_refused)
{
	setenv("PVM_RSH", "/bin/false", 1);
	machine_begin();
	random_seed(1);
	for (unsigned int i = rounds(20000); i; i--) {
		CHECK(call_any() >= PvmIPLoopback);	/* PVM's error of the largest number */
		if (!(i % 64))
			alive_check();
	}
	alive_check();
	/* no message in place: it may be freed before the send */
	pvm_initsend(PvmDataInPlace);
	CHECK_EQ(pvm_pkmesg(pvm_getrbuf()), PvmNotImpl);
	machine_end();
}

/* ---- messages of other tasks ---- */

/* Forge the daemon's messages with the output of a task: a short and a long message. */
static int child_forger(void)
{
	static char text[LONG_SIZE] = "forged\n";
	int size[] = { 16, LONG_SIZE }, head[2] = { 0x40123, 7 };

	pvm_setcontext(OUTPUT_CTX);
	for (int i = 0; i < 2; i++) {
		pvm_initsend(PvmDataDefault);
		pvm_pkint(head, 2, 1);
		pvm_pkbyte(text, size[i], 1);
		pvm_send(pvm_parent(), OUTPUT_TAG);
	}
	pvm_setcontext(0);
	message_empty(pvm_parent(), GO);
	pvm_exit();
	return 0;
}

static int child_main(int argc, char **argv)
{
	(void)argv;
	if (argc > 1)
		return child_forger();
	pvm_recv(-1, -1);
	return 0;
}

TEST(only_the_daemon_sends_output)
{
	FILE *out = tmpfile();
	char line[64];
	int tid;

	machine_begin();
	CHECK_EQ(pvm_catchout(out), 0);
	machine_spawn("forger", 1, &tid);
	CHECK(pvm_recv(tid, GO) > 0);
	alive_check();
	machine_end();
	rewind(out);
	while (fgets(line, sizeof(line), out))
		CHECK(!strstr(line, "forged"));
	fclose(out);
}

static int match_all(int mid, int tid, int tag)
{
	(void)mid;
	(void)tid;
	(void)tag;
	return 1;
}

/* Receive messages, and let both endpoints make progress, until @req has completed. */
static void raw_finish(struct sci_req *req)
{
	struct timeval tv = { 0, 1000 };

	while (req && sci_test(req, NULL) == -EAGAIN)
		while (pvm_trecv(-1, -1, &tv) > 0)
			;
}

/* Sender, wait id and encoding of the messages are random. */
TEST(messages_of_any_kind_reach_a_task)
{
	static uint8_t body[LONG_SIZE], *scratch;
	struct sci_peer *peer;
	struct sci_ep *ep;

	machine_begin();
	random_seed(3);
	scratch = malloc(SCRATCH_SIZE + 16 * LONG_SIZE);
	CHECK_EQ(sci_ep_open(&ep, 0, SCI_EP_SINGLE_THREAD), 0);
	/* this thread is the receiver, too: it cannot help with a rendezvous while it receives */
	CHECK_EQ(sci_ep_set(ep, SCI_PARAM_EAGER_MAX, LONG_SIZE), 0);
	CHECK_EQ(sci_peer_open(ep, &pv_me.addr, -1, &peer), 0);
	for (unsigned int i = rounds(4000); i; i--) {
		size_t len = one_in(50) ? LONG_SIZE : random_below(200);
		struct iovec iov = { body, len };
		struct sci_send m = {
			.iov = &iov, .n = 1, .context = MSG_CONTEXT,
			.tag = (uint64_t)(one_in(2) ? 0 : (uint32_t)hostile_int()) << 32 |
				(uint32_t)hostile_int(),
			.imm = (uint64_t)(uint32_t)hostile_int() << 32 | random_word(),
			.flags = SCI_SEND_TAGGED | (one_in(8) ? 0 : SCI_SEND_IMM),
		};
		struct sci_req *req = NULL;

		random_bytes(body, one_in(4) ? len : 0);
		CHECK_EQ(sci_isendm(peer, &m, &req), 0);
		raw_finish(req);
		/* receive messages of all contexts */
		pvm_recvf(match_all);
		if (pvm_nrecv(-1, -1) > 0)
			for (int j = 0; j < 3; j++)
				CHECK(unpack_result_good(unpack_any(scratch)));
		pvm_recvf(NULL);
		if (!(i % 64))
			alive_check();
	}
	sci_ep_close(ep);
	free(scratch);
	alive_check();
	machine_end();
}
