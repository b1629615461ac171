// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/*
 * Random frames to the launcher's server, from ranks that break the protocol. The server
 * answers or refuses a frame, reads no byte beyond it, and sends ranks nothing that they did
 * not ask for.
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "libsci/team/boot_server.h"
#include "selftests/harness.h"

#define RANKS	5u
#define FRAMES	400

static struct boot_server *server;
static unsigned int size;
static bool joined[RANKS], asks[RANKS], gave[RANKS];
static uint64_t state;

static uint32_t draw(uint32_t below)
{
	state = state * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(state >> 33) % below;
}

/* Compare the server's frames with the questions of the ranks. */
static void sent(void *arg, const struct boot_frame *f, const void *payload)
{
	uint8_t sum = 0;

	(void)arg;
	CHECK(f->rank < size || f->rank == BOOT_ALL);
	for (size_t i = 0; i < f->len; i++)
		sum ^= ((const uint8_t *)payload)[i];
	state += sum;
	switch (f->type) {
	case BOOT_VALUE:
		CHECK(f->rank < size);
		CHECK(asks[f->rank]);
		asks[f->rank] = false;
		break;
	case BOOT_GATHERED:
		for (unsigned int i = 0; i < size; i++) {
			CHECK(gave[i]);
			gave[i] = false;
		}
		break;
	case BOOT_DIED:
	case BOOT_LEFT:
		CHECK((unsigned int)f->arg < size);
		break;
	default:
		CHECK_EQ(f->type, BOOT_WELCOME);
	}
}

/* Make a name, or an invalid name. */
static size_t name_fill(char *p, size_t room)
{
	static const char *const names[] = { "a", "b", "", "a name of some length" };
	const char *name = names[draw(ARRAY_LEN(names))];
	size_t len = strlen(name) + draw(8) % 7 % 2;	/* sometimes without a final 0 */

	if (!draw(10))
		len = draw(200);
	len = len < room ? len : room;
	memset(p, 'x', len);
	memcpy(p, name, len < strlen(name) + 1 ? len : strlen(name) + 1);
	return len;
}

static void frame_make(struct boot_frame *f, char *payload)
{
	static const uint32_t types[] = {
		BOOT_HELLO, BOOT_GATHER, BOOT_GATHER, BOOT_PUBLISH, BOOT_GET, BOOT_GET,
		BOOT_BYE, BOOT_ABORT, BOOT_WELCOME, BOOT_VALUE
	};

	f->type = draw(20) ? types[draw(ARRAY_LEN(types))] : draw(1000);
	f->rank = draw(50) ? draw(size) : size + draw(3);
	f->arg = f->type == BOOT_HELLO && draw(10) ? BOOT_VERSION : (int)draw(size + 2) - 1;
	f->len = draw(3) ? 8 : draw(5000);
	memset(payload, 1, f->len);
	if (f->type == BOOT_GET || f->type == BOOT_PUBLISH)
		f->len = (uint32_t)name_fill(payload, 300);
	if (f->type == BOOT_PUBLISH && draw(2)) {
		uint32_t more = draw(100);

		memset(payload + f->len, 0, more);
		f->len += more;
	}
}

static void frame_send(const struct boot_frame *f, const char *bytes)
{
	char *payload = f->len ? malloc(f->len) : NULL;	/* ASan sees reads beyond the frame */
	unsigned int r = f->rank;
	int ret;

	if (f->len)
		memcpy(payload, bytes, f->len);
	if (r < size && f->type == BOOT_HELLO && f->arg == BOOT_VERSION)
		asks[r] = gave[r] = false;
	if (r < size && joined[r]) {
		asks[r] |= f->type == BOOT_GET;
		gave[r] |= f->type == BOOT_GATHER;
	}
	ret = boot_server_frame(server, f, payload);
	free(payload);
	CHECK(ret >= -ENOMEM || ret == -EPROTO);
	CHECK(ret <= 256);
	if (r >= size) {
		CHECK_EQ(ret, -EPROTO);
		return;
	}
	if (ret == -EPROTO || f->type == BOOT_BYE)
		asks[r] = false;
	if (ret == -EPROTO)
		boot_server_ended(server, r, true);
	if (f->type == BOOT_HELLO)
		joined[r] |= f->arg == BOOT_VERSION;
	else if (ret == -EPROTO || f->type == BOOT_BYE)
		joined[r] = false;
}

TEST(hostile_frames)
{
	const struct boot_place places[RANKS] = { { 0, 4 }, { 0, 8 }, { 1, 4 } };
	char payload[6000];

	for (unsigned int round = 0; round < test_calls(400); round++) {
		state = round * 77 + 1;
		size = 1 + draw(RANKS);
		memset(joined, 0, sizeof(joined));
		memset(asks, 0, sizeof(asks));
		memset(gave, 0, sizeof(gave));
		CHECK_EQ(boot_server_create(&server, places, size, sent, NULL), 0);
		for (int i = 0; i < FRAMES; i++) {
			struct boot_frame f;

			frame_make(&f, payload);
			frame_send(&f, payload);
		}
		boot_server_destroy(server);
	}
}

/* A name without bytes, and a second question before the answer to the first. */
TEST(bad_requests_for_values_are_refused)
{
	const struct boot_place places[2] = { { 0, 4 }, { 0, 4 } };
	struct boot_frame f = { BOOT_HELLO, 0, BOOT_VERSION, 0 };

	size = 2;
	memset(asks, 0, sizeof(asks));
	CHECK_EQ(boot_server_create(&server, places, size, sent, NULL), 0);
	CHECK_EQ(boot_server_frame(server, &f, NULL), 0);
	f = (struct boot_frame){ BOOT_GET, 0, 1, 0 };
	CHECK_EQ(boot_server_frame(server, &f, NULL), -EPROTO);
	f.len = 2;
	CHECK_EQ(boot_server_frame(server, &f, "a"), 0);
	CHECK_EQ(boot_server_frame(server, &f, "a"), -EPROTO);
	boot_server_destroy(server);
}
