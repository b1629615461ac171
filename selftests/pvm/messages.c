// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/* Tests messages of a task to itself: buffers, data types, matching, wrong arguments. */

#include "selftests/pvm/machine.h"

static int child_main(int argc, char **argv)
{
	(void)argc;
	(void)argv;
	return 0;
}

/* Send the send buffer to this task and receive it. */
static void loop_message(int tag)
{
	CHECK_EQ(pvm_send(pvm_mytid(), tag), 0);
	CHECK(pvm_recv(pvm_mytid(), tag) > 0);
}

#define ROUND_TRIP(name, ctype, ...)						\
	do {									\
		ctype in_[] = { __VA_ARGS__ }, out_[ARRAY_LEN(in_)];		\
		int n_ = (int)ARRAY_LEN(in_);					\
										\
		memset(out_, 0x55, sizeof(out_));				\
		pvm_initsend(enc);						\
		CHECK_EQ(pvm_pk##name(in_, n_, 1), 0);				\
		loop_message(7);						\
		CHECK_EQ(pvm_upk##name(out_, n_, 1), 0);			\
		CHECK(!memcmp(in_, out_, sizeof(in_)));				\
		CHECK_EQ(pvm_upk##name(out_, 1, 1), PvmNoData);			\
	} while (0)

TEST(all_types_in_all_encodings)
{
	machine_begin();
	for (int enc = PvmDataDefault; enc <= PvmDataInPlace; enc++) {
		ROUND_TRIP(int, int, 1, -2, 0x7fffffff, -0x7fffffff - 1);
		ROUND_TRIP(uint, unsigned int, 1, 0xffffffff, 0x80000000);
		ROUND_TRIP(short, short, 1, -2, 32767, -32768);
		ROUND_TRIP(ushort, unsigned short, 1, 65535);
		ROUND_TRIP(long, long, 1, -2, 0x7fffffff, -0x7fffffff - 1);
		ROUND_TRIP(ulong, unsigned long, 1, 0xffffffff);
		ROUND_TRIP(float, float, 1.5f, -2.25f);
		ROUND_TRIP(double, double, 1e300, -2.25);
	}
	for (int enc = PvmDataDefault; enc <= PvmDataRaw; enc++) {
		float c[] = { 1, 2, 3, 4 }, cc[4];
		double d[] = { 1, 2, 3, 4 }, dd[4];
		char s[16], bytes[3];

		pvm_initsend(enc);
		CHECK_EQ(pvm_pkcplx(c, 2, 1), 0);
		CHECK_EQ(pvm_pkbyte((char *)"abc", 3, 1), 0);
		CHECK_EQ(pvm_pkdcplx(d, 2, 1), 0);
		CHECK_EQ(pvm_pkstr((char *)"hello"), 0);
		loop_message(1);
		CHECK_EQ(pvm_upkcplx(cc, 2, 1), 0);
		CHECK_EQ(pvm_upkbyte(bytes, 3, 1), 0);
		CHECK_EQ(pvm_upkdcplx(dd, 2, 1), 0);
		CHECK_EQ(pvm_upkstr(s), 0);
		CHECK(!memcmp(c, cc, sizeof(c)) && !memcmp(d, dd, sizeof(d)));
		CHECK(!memcmp(bytes, "abc", 3) && !strcmp(s, "hello"));
	}
	machine_end();
}

TEST(xdr_has_the_lengths_of_the_standard)
{
	int i = 1, n, tag, src;
	short h = -1;
	long l = 5, big = 1L << 40;
	double d = 0;

	machine_begin();
	pvm_initsend(PvmDataDefault);
	CHECK_EQ(pvm_pkint(&i, 1, 1) | pvm_pkshort(&h, 1, 1) | pvm_pklong(&l, 1, 1), 0);
	CHECK_EQ(pvm_pkdouble(&d, 1, 1) | pvm_pkbyte((char *)"abcde", 5, 1), 0);
	CHECK_EQ(pvm_pkstr((char *)"hello"), 0);
	CHECK_EQ(pvm_bufinfo(pvm_getsbuf(), &n, &tag, &src), 0);
	CHECK_EQ(n, 4 + 4 + 4 + 8 + 8 + 12);
	CHECK_EQ(pvm_pklong(&big, 1, 1), PvmOverflow);
	CHECK_EQ(pvm_bufinfo(pvm_getsbuf(), &n, NULL, NULL), 0);
	CHECK_EQ(n, 40);
	machine_end();
}

TEST(strides_pick_items)
{
	int in[] = { 1, 2, 3, 4, 5, 6 }, out[6] = { 0 };

	machine_begin();
	for (int enc = PvmDataDefault; enc <= PvmDataInPlace; enc++) {
		memset(out, 0, sizeof(out));
		pvm_initsend(enc);
		CHECK_EQ(pvm_pkint(in, 3, 2), 0);
		loop_message(1);
		CHECK_EQ(pvm_upkint(out, 3, 2), 0);
		CHECK(out[0] == 1 && out[1] == 0 && out[2] == 3 && out[4] == 5);
	}
	machine_end();
}

TEST(formats_pack_values_and_arrays)
{
	int ints[3] = { 4, 5, 6 }, i, got[3];
	double d[2] = { 1.5, 2.5 }, dd[2];
	char s[8], c;
	short h;
	long l;
	float f;

	machine_begin();
	CHECK_EQ(pvm_packf("%+ %d %3d %c %s %hd %ld %f %*.*lf", PvmDataRaw, 3, ints, 'x',
			   "str", 9, 10L, 0.5, 2, 1, d), 0);
	loop_message(2);
	CHECK_EQ(pvm_unpackf("%d %3d %c %s %hd %ld %f %2lf", &i, got, &c, s, &h, &l, &f,
			     dd), 0);
	CHECK_EQ(i, 3);
	CHECK(!memcmp(ints, got, sizeof(ints)) && c == 'x' && !strcmp(s, "str"));
	CHECK(h == 9 && l == 10 && f == 0.5f && dd[1] == 2.5);
	CHECK_EQ(pvm_packf("%q", 1), PvmBadParam);
	CHECK_EQ(pvm_packf("%", 1), PvmBadParam);
	CHECK_EQ(pvm_packf(NULL), PvmBadParam);
	CHECK_EQ(pvm_unpackf("%+", &i), PvmBadParam);
	machine_end();
}

TEST(in_place_data_is_read_when_it_is_sent)
{
	int v = 1, got;

	machine_begin();
	pvm_initsend(PvmDataInPlace);
	CHECK_EQ(pvm_pkint(&v, 1, 1), 0);
	CHECK_EQ(pvm_pkstr((char *)"no"), PvmNotImpl);
	for (v = 2; v < 5; v++) {
		loop_message(1);
		CHECK_EQ(pvm_upkint(&got, 1, 1), 0);
		CHECK_EQ(got, v);
	}
	machine_end();
}

TEST(in_place_data_is_read_when_it_is_put_into_a_message_or_the_mail_box)
{
	int v, got, in_place, outer;

	machine_begin();
	in_place = pvm_initsend(PvmDataInPlace);
	CHECK_EQ(pvm_pkint(&v, 1, 1), 0);
	CHECK_EQ(pvm_setsbuf(0), in_place);
	for (v = 1; v < 4; v++) {
		CHECK(pvm_putinfo((char *)"box", in_place, PvmMboxOverWritable) >= 0);
		CHECK(pvm_recvinfo((char *)"box", 0, 0) > 0);
		CHECK_EQ(pvm_upkint(&got, 1, 1), 0);
		CHECK_EQ(got, v);
		outer = pvm_initsend(PvmDataRaw);
		CHECK_EQ(pvm_pkmesgbody(in_place), 0);
		loop_message(1);
		CHECK_EQ(pvm_upkint(&got, 1, 1), 0);
		CHECK_EQ(got, v);
		CHECK_EQ(pvm_getsbuf(), outer);
	}
	machine_end();
}

TEST(a_receive_takes_the_first_that_matches)
{
	struct timeval soon = { 0, 1000 };
	int v, me;

	machine_begin();
	me = pvm_mytid();
	for (v = 1; v <= 3; v++) {
		pvm_initsend(PvmDataDefault);
		pvm_pkint(&v, 1, 1);
		CHECK_EQ(pvm_send(me, v == 2 ? 20 : 10), 0);
	}
	CHECK(pvm_probe(-1, 20) > 0);
	CHECK(pvm_recv(-1, 20) > 0);
	pvm_upkint(&v, 1, 1);
	CHECK_EQ(v, 2);
	CHECK_EQ(pvm_probe(-1, 20), 0);
	CHECK(pvm_nrecv(me, -1) > 0);
	pvm_upkint(&v, 1, 1);
	CHECK_EQ(v, 1);
	CHECK(pvm_trecv(-1, -1, &soon) > 0);
	pvm_upkint(&v, 1, 1);
	CHECK_EQ(v, 3);
	CHECK_EQ(pvm_nrecv(-1, -1), 0);
	CHECK_EQ(pvm_trecv(-1, -1, &soon), 0);
	machine_end();
}

TEST(a_probed_message_can_be_the_receive_buffer)
{
	static const int counts[] = { 1, 4096 };	/* the library reuses only small buffers */
	int v[4096] = { 5 }, other = 6, got, mid, len;

	machine_begin();
	for (size_t i = 0; i < ARRAY_LEN(counts); i++) {
		pvm_initsend(PvmDataRaw);
		CHECK_EQ(pvm_pkint(v, counts[i], 1), 0);
		CHECK_EQ(pvm_send(pvm_mytid(), 1), 0);
		mid = pvm_probe(-1, 1);
		CHECK(mid > 0);
		CHECK(pvm_setrbuf(mid) >= 0);
		CHECK_EQ(pvm_recv(-1, 1), mid);
		/* a new message takes no memory of the received one */
		pvm_initsend(PvmDataRaw);
		CHECK_EQ(pvm_pkint(&other, 1, 1), 0);
		CHECK_EQ(pvm_upkint(&got, 1, 1), 0);
		CHECK_EQ(got, 5);
		CHECK_EQ(pvm_bufinfo(mid, &len, NULL, NULL), 0);
		CHECK_EQ(len, 4 * counts[i]);
	}
	machine_end();
}

TEST(contexts_are_apart)
{
	int ctx, me;

	machine_begin();
	me = pvm_mytid();
	ctx = pvm_newcontext();
	CHECK(ctx > 0);
	pvm_initsend(PvmDataDefault);
	CHECK_EQ(pvm_send(me, 1), 0);
	CHECK_EQ(pvm_setcontext(ctx), 0);
	CHECK_EQ(pvm_nrecv(-1, -1), 0);
	CHECK_EQ(pvm_send(me, 2), 0);
	CHECK_EQ(pvm_nrecv(-1, 1), 0);
	CHECK(pvm_recv(-1, 2) > 0);
	CHECK_EQ(pvm_setcontext(0), ctx);
	CHECK(pvm_recv(-1, 1) > 0);
	CHECK_EQ(pvm_freecontext(ctx), 0);
	CHECK_EQ(pvm_freecontext(ctx), PvmNotFound);
	machine_end();
}

static int handled;

static int handler(int mid)
{
	int v;

	CHECK_EQ(mid, pvm_getrbuf());
	CHECK_EQ(pvm_upkint(&v, 1, 1), 0);
	handled += v;
	return 0;
}

TEST(handlers_get_messages_before_receives)
{
	int v = 5, id, sbuf;

	machine_begin();
	id = pvm_addmhf(-1, 3, -1, handler);
	CHECK(id >= 0);
	CHECK_EQ(pvm_addmhf(-1, 3, -1, handler), PvmExists);
	sbuf = pvm_initsend(PvmDataDefault);
	pvm_pkint(&v, 1, 1);
	CHECK_EQ(pvm_send(pvm_mytid(), 3), 0);
	CHECK_EQ(pvm_nrecv(-1, 3), 0);
	CHECK_EQ(handled, 5);
	CHECK_EQ(pvm_getsbuf(), sbuf);
	CHECK_EQ(pvm_delmhf(id), 0);
	CHECK_EQ(pvm_delmhf(id), PvmNotFound);
	CHECK_EQ(pvm_delmhf(-1), PvmBadParam);
	CHECK_EQ(pvm_send(pvm_mytid(), 3), 0);
	CHECK(pvm_recv(-1, 3) > 0);
	machine_end();
}

static int library_ctx;

/* Send the number on in the library's context. */
static int handler_forward(int mid)
{
	int own = pvm_setcontext(library_ctx), v = -1;

	CHECK_EQ(mid, pvm_getrbuf());
	CHECK_EQ(pvm_upkint(&v, 1, 1), 0);
	message_int(pvm_mytid(), 4, v);
	CHECK_EQ(pvm_setcontext(own), library_ctx);
	return 0;
}

/* Answer with the number, and leave the send and the receive buffer. */
static int handler_answer(int mid)
{
	int v = -1;

	CHECK_EQ(mid, pvm_getrbuf());
	CHECK_EQ(pvm_getcontext(), library_ctx);
	CHECK_EQ(pvm_upkint(&v, 1, 1), 0);
	message_int(pvm_mytid(), 5, v);
	/* message ids are low only if buffers of earlier calls have been freed */
	CHECK(pvm_getsbuf() < 100);
	handled++;
	return 0;
}

/* A library adds a handler for messages in its own context. */
TEST(handlers_run_in_the_context_of_the_message)
{
	int own, me, sbuf;

	machine_begin();
	me = pvm_mytid();
	own = pvm_getcontext();
	library_ctx = pvm_newcontext();
	CHECK(pvm_addmhf(-1, 3, own, handler_forward) >= 0);
	CHECK(pvm_addmhf(-1, 4, library_ctx, handler_answer) >= 0);
	for (int i = 0; i < 1000; i++) {
		message_int(me, 3, i);
		sbuf = pvm_getsbuf();
		CHECK_EQ(pvm_nrecv(-1, -1), 0);
		CHECK_EQ(handled, i + 1);
		CHECK_EQ(pvm_getsbuf(), sbuf);
		CHECK_EQ(pvm_setcontext(library_ctx), own);
		CHECK_EQ(reply_int(me, 5), i);
		CHECK_EQ(pvm_setcontext(own), library_ctx);
	}
	machine_end();
}

static int longest(int mid, int tid, int tag)
{
	int n;

	(void)tid;
	(void)tag;
	CHECK_EQ(pvm_bufinfo(mid, &n, NULL, NULL), 0);
	return n + 2;
}

TEST(a_function_of_the_program_matches)
{
	int v[3] = { 1, 2, 3 }, n;

	machine_begin();
	for (int i = 1; i <= 3; i++) {
		pvm_initsend(PvmDataDefault);
		pvm_pkint(v, i == 2 ? 3 : 1, 1);
		pvm_send(pvm_mytid(), i);
	}
	CHECK(!pvm_recvf(longest));
	CHECK(pvm_recv(-1, -1) > 0);
	pvm_bufinfo(pvm_getrbuf(), &n, NULL, NULL);
	CHECK_EQ(n, 12);
	CHECK(pvm_recvf(NULL) == longest);
	CHECK(pvm_recv(-1, 1) > 0);
	CHECK(pvm_recv(-1, 3) > 0);
	machine_end();
}

TEST(psend_and_precv_carry_one_array)
{
	int v[4] = { 1, 2, 3, 4 }, got[4] = { 0 }, tid, tag, len;

	machine_begin();
	CHECK_EQ(pvm_psend(pvm_mytid(), 9, v, 4, PVM_INT), 0);
	CHECK_EQ(pvm_precv(-1, -1, got, 4, PVM_INT, &tid, &tag, &len), 0);
	CHECK(!memcmp(v, got, sizeof(v)));
	CHECK(tid == pvm_mytid() && tag == 9 && len == 16);
	/* a buffer that is too short gets the first items, and memory behind it does not change */
	memset(got, 0, sizeof(got));
	CHECK_EQ(pvm_psend(pvm_mytid(), 9, v, 4, PVM_INT), 0);
	CHECK_EQ(pvm_precv(-1, 9, got, 2, PVM_INT, NULL, NULL, &len), 0);
	CHECK(got[1] == 2 && got[2] == 0 && len == 16);
	CHECK_EQ(pvm_psend(pvm_mytid(), 9, v, -1, PVM_INT), PvmBadParam);
	CHECK_EQ(pvm_psend(pvm_mytid(), 9, v, 1, 99), PvmBadParam);
	CHECK_EQ(pvm_psend(pvm_mytid(), 9, NULL, 1, PVM_INT), PvmBadParam);
	CHECK_EQ(pvm_precv(-1, 9, got, 1, -1, NULL, NULL, NULL), PvmBadParam);
	machine_end();
}

TEST(a_received_message_can_be_sent_on)
{
	int v = 8, got, old;

	machine_begin();
	pvm_initsend(PvmDataRaw);
	pvm_pkint(&v, 1, 1);
	loop_message(1);
	CHECK_EQ(pvm_upkint(&got, 1, 1), 0);
	old = pvm_setsbuf(pvm_getrbuf());
	CHECK(old > 0);
	CHECK_EQ(pvm_getrbuf(), 0);
	loop_message(2);
	CHECK_EQ(pvm_upkint(&got, 1, 1), 0);
	CHECK_EQ(got, 8);
	machine_end();
}

TEST(messages_in_messages)
{
	int v = 3, inner, got;

	machine_begin();
	inner = pvm_mkbuf(PvmDataDefault);
	pvm_setsbuf(inner);
	pvm_pkint(&v, 1, 1);
	pvm_initsend(PvmDataRaw);
	CHECK_EQ(pvm_pkmesg(pvm_getsbuf()), PvmBadParam);
	inner = pvm_mkbuf(PvmDataDefault);
	got = pvm_setsbuf(inner);
	pvm_pkint(&v, 1, 1);
	pvm_setsbuf(got);
	CHECK_EQ(pvm_pkmesg(inner), 0);
	loop_message(4);
	inner = pvm_upkmesg();
	CHECK(inner > 0);
	pvm_setrbuf(inner);
	CHECK_EQ(pvm_upkint(&got, 1, 1), 0);
	CHECK_EQ(got, 3);
	machine_end();
}

TEST(hostile_arguments_get_errors)
{
	int me, v = 1;

	machine_begin();
	me = pvm_mytid();
	CHECK_EQ(pvm_send(me, 1), PvmNoBuf);
	CHECK_EQ(pvm_upkint(&v, 1, 1), PvmNoBuf);
	pvm_initsend(PvmDataDefault);
	CHECK_EQ(pvm_send(0, 1), PvmBadParam);
	CHECK_EQ(pvm_send(-1, 1), PvmBadParam);
	CHECK_EQ(pvm_send((int)0x80040000, 1), PvmBadParam);
	CHECK_EQ(pvm_send(0x40000, 1), PvmBadParam);
	CHECK_EQ(pvm_send(me, -1), PvmBadParam);
	CHECK_EQ(pvm_send(0x4ffff, 1), 0);	/* dropped: there is no such task */
	CHECK_EQ(pvm_send(0x7fc0001, 1), 0);	/* dropped: there is no such host */
	CHECK_EQ(pvm_mcast(NULL, 1, 1), PvmBadParam);
	CHECK_EQ(pvm_mcast(&me, -1, 1), PvmBadParam);
	CHECK_EQ(pvm_pkint(&v, -1, 1), PvmBadParam);
	CHECK_EQ(pvm_pkint(&v, 1, -1), PvmBadParam);
	CHECK_EQ(pvm_pkint(NULL, 1, 1), PvmBadParam);
	CHECK_EQ(pvm_pkstr(NULL), PvmBadParam);
	CHECK_EQ(pvm_pkint(&v, 0x7fffffff, 0) < 0, 1);
	CHECK_EQ(pvm_recv(-2, 1), PvmBadParam);
	CHECK_EQ(pvm_recv(-1, -2), PvmBadParam);
	CHECK_EQ(pvm_mkbuf(77), PvmBadParam);
	CHECK_EQ(pvm_freebuf(0), PvmOk);
	CHECK_EQ(pvm_freebuf(1 << 30), PvmNoSuchBuf);
	CHECK_EQ(pvm_setrbuf(-5), PvmBadParam);
	CHECK_EQ(pvm_setsbuf(999), PvmNoSuchBuf);
	CHECK_EQ(pvm_bufinfo(-1, NULL, NULL, NULL), PvmBadParam);
	CHECK_EQ(pvm_getminfo(999, NULL), PvmBadParam);
	CHECK_EQ(pvm_kill(0), PvmBadParam);
	CHECK_EQ(pvm_sendsig(me, -1), PvmBadParam);
	CHECK_EQ(pvm_sendsig(me, 1000), PvmBadParam);
	CHECK_EQ(pvm_setopt(99, 1), PvmBadParam);
	CHECK_EQ(pvm_setopt(PvmRoute, 9), PvmBadParam);
	CHECK_EQ(pvm_notify(9, 1, 1, &me), PvmBadParam);
	CHECK_EQ(pvm_notify(PvmTaskExit, 1, -1, &me), PvmBadParam);
	CHECK_EQ(pvm_notify(PvmTaskExit, 1, 1, NULL), PvmBadParam);
	CHECK_EQ(pvm_spawn(NULL, NULL, 0, NULL, 1, &v), PvmBadParam);
	CHECK_EQ(pvm_spawn((char *)"x", NULL, 0, NULL, 0, &v), PvmBadParam);
	CHECK_EQ(pvm_tasks(5, NULL, NULL), PvmNoHost);
	machine_end();
}

#define RANDOM_BYTES	64

/* Unpack values of a random type to @out. *@most: the number of bytes there that may change. */
static int unpack_random(unsigned int *seed, void *out, size_t *most)
{
	int count = rand_r(seed) % 9 - 1;
	size_t n = count > 0 ? (size_t)count : 0;

	switch (rand_r(seed) % 7) {
	case 0: *most = 4 * n; return pvm_upkint(out, count, 1);
	case 1: *most = 4 * n; return pvm_upkshort(out, count, 2);
	case 2: *most = 8 * n; return pvm_upkdouble(out, count, 1);
	case 3: *most = RANDOM_BYTES; return pvm_upkstr(out);
	case 4: *most = 20; return pvm_unpackf("%20s", out);
	case 5: *most = 0; return pvm_upkmesg();
	default: *most = 16 * n; return pvm_upkdcplx(out, count, 1);
	}
}

/* Messages are random bytes: each unpack returns an error or stays inside the message. */
TEST(random_bytes_are_unpacked_safely)
{
	unsigned int seed = 1, n = test_calls(100000);

	machine_begin();
	for (unsigned int i = 0; i < n; i++) {
		char bytes[RANDOM_BYTES];
		int len = rand_r(&seed) % RANDOM_BYTES, ret = 0;

		for (int j = 0; j < len; j++)
			bytes[j] = (char)(rand_r(&seed) % 4 ? rand_r(&seed) % 3 : rand_r(&seed));
		CHECK(pvm_initsend(rand_r(&seed) % 2 ? PvmDataRaw : PvmDataDefault) > 0);
		CHECK_EQ(pvm_pkbyte(bytes, len, 1), 0);
		loop_message(1);
		while (!ret) {
			double room[32];
			uint8_t *out = (uint8_t *)room;
			size_t most;

			memset(room, 0xa5, sizeof(room));
			ret = unpack_random(&seed, room, &most);
			/* from PvmBadParam to PvmBadMsg are errors of unpacking; PvmNoBuf is below */
			CHECK(ret >= PvmBadMsg);
			for (size_t j = most; j < sizeof(room); j++)
				CHECK_EQ(out[j], 0xa5);
			if (ret > 0)
				CHECK_EQ(pvm_freebuf(ret), 0);
		}
	}
	machine_end();
}

/* Connect to the daemon, and send random frames. */
static void frames_send(unsigned int *seed)
{
	struct { struct frame_head head; int32_t body[16]; } f = { 0 };
	const int32_t enrol[4] = { FRAME_VERSION, 0, 4, 1 };
	int fd = machine_connect();

	CHECK(fd >= 0);
	f.head.op = OP_ENROL;
	f.head.len = sizeof(enrol);
	memcpy(f.body, enrol, sizeof(enrol));
	if (rand_r(seed) % 4)
		CHECK(send(fd, &f, sizeof(f.head) + f.head.len, MSG_NOSIGNAL) > 0);
	for (int i = rand_r(seed) % 16; i > 0; i--) {
		static const uint32_t to[] = { TO_OWN, TO_MASTER, 1u << TID_HOST_SHIFT,
			7u << TID_HOST_SHIFT, TID_HOST_MASK, 0x40001 };

		f.head = (struct frame_head){
			.len = (uint32_t)(rand_r(seed) % 17) * 4, .op = (uint16_t)(rand_r(seed) % 34),
			.status = rand_r(seed) % 3 - 1, .seq = (uint32_t)rand_r(seed) % 3,
			.src = (uint32_t)rand_r(seed), .dst = to[rand_r(seed) % 6],
		};
		if (f.head.op == OP_HALT)
			continue;
		for (int j = 0; j < 16; j++)
			f.body[j] = rand_r(seed) % 4 ? rand_r(seed) % 8 - 1 : rand_r(seed);
		if (rand_r(seed) % 64 == 0)
			f.head.len = (uint32_t)rand_r(seed) << 1;	/* longer than its bytes */
		if (send(fd, &f, sizeof(f.head) + (f.head.len & 63), MSG_NOSIGNAL) < 0)
			break;
	}
	close(fd);
}

TEST(random_frames_leave_the_daemon_at_work)
{
	unsigned int seed = 3, n = test_calls(400);
	int count;

	machine_begin();
	for (unsigned int i = 0; i < n; i++)
		frames_send(&seed);
	CHECK(pvm_newcontext() > 0);
	WAIT_UNTIL((pvm_tasks(0, &count, NULL), count == 1), TEST_WAIT_MS);
	CHECK_EQ(pvm_config(&count, NULL, NULL), 0);
	CHECK_EQ(count, 1);
	machine_end();
}
