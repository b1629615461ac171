// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/*
 * The check sum, eight bytes at a time. A CRC is linear: the contribution of a byte is the
 * exclusive or of its bits' contributions. So eight numbers make a table of 256.
 */
#include <string.h>

#include "sim/adapter/packet.h"

#define BIT(i, bit, what)	((i) >> (bit) & 1 ? (what) : 0)
#define ONE(i, a, b, c, d, e, f, g, h)					\
	(BIT(i, 0, a) ^ BIT(i, 1, b) ^ BIT(i, 2, c) ^ BIT(i, 3, d) ^	\
	 BIT(i, 4, e) ^ BIT(i, 5, f) ^ BIT(i, 6, g) ^ BIT(i, 7, h))
#define FOUR(i, ...)							\
	ONE(i, __VA_ARGS__), ONE(i + 1, __VA_ARGS__),			\
	ONE(i + 2, __VA_ARGS__), ONE(i + 3, __VA_ARGS__)
#define SIXTEEN(i, ...)							\
	FOUR(i, __VA_ARGS__), FOUR(i + 4, __VA_ARGS__),			\
	FOUR(i + 8, __VA_ARGS__), FOUR(i + 12, __VA_ARGS__)
#define SIXTY_FOUR(i, ...)						\
	SIXTEEN(i, __VA_ARGS__), SIXTEEN(i + 16, __VA_ARGS__),		\
	SIXTEEN(i + 32, __VA_ARGS__), SIXTEEN(i + 48, __VA_ARGS__)
#define TABLE(...)							\
	{ SIXTY_FOUR(0u, __VA_ARGS__), SIXTY_FOUR(64u, __VA_ARGS__),	\
	  SIXTY_FOUR(128u, __VA_ARGS__), SIXTY_FOUR(192u, __VA_ARGS__) }

/* table[n]: the contribution of a byte that is followed by n bytes */
static const uint32_t table[8][256] = {
	TABLE(0x77073096u, 0xee0e612cu, 0x076dc419u, 0x0edb8832u,
	      0x1db71064u, 0x3b6e20c8u, 0x76dc4190u, 0xedb88320u),
	TABLE(0x191b3141u, 0x32366282u, 0x646cc504u, 0xc8d98a08u,
	      0x4ac21251u, 0x958424a2u, 0xf0794f05u, 0x3b83984bu),
	TABLE(0x01c26a37u, 0x0384d46eu, 0x0709a8dcu, 0x0e1351b8u,
	      0x1c26a370u, 0x384d46e0u, 0x709a8dc0u, 0xe1351b80u),
	TABLE(0xb8bc6765u, 0xaa09c88bu, 0x8f629757u, 0xc5b428efu,
	      0x5019579fu, 0xa032af3eu, 0x9b14583du, 0xed59b63bu),
	TABLE(0x3d6029b0u, 0x7ac05360u, 0xf580a6c0u, 0x30704bc1u,
	      0x60e09782u, 0xc1c12f04u, 0x58f35849u, 0xb1e6b092u),
	TABLE(0xcb5cd3a5u, 0x4dc8a10bu, 0x9b914216u, 0xec53826du,
	      0x03d6029bu, 0x07ac0536u, 0x0f580a6cu, 0x1eb014d8u),
	TABLE(0xa6770bb4u, 0x979f1129u, 0xf44f2413u, 0x33ef4e67u,
	      0x67de9cceu, 0xcfbd399cu, 0x440b7579u, 0x8816eaf2u),
	TABLE(0xccaa009eu, 0x4225077du, 0x844a0efau, 0xd3e51bb5u,
	      0x7cbb312bu, 0xf9766256u, 0x299dc2edu, 0x533b85dau),
};

static uint32_t crc_bytes(uint32_t crc, const uint8_t *p, size_t len)
{
	while (len--)
		crc = crc >> 8 ^ table[0][(crc ^ *p++) & 0xff];
	return crc;
}

static uint32_t crc_eight(uint32_t crc, const uint8_t *p)
{
	uint64_t v;

	memcpy(&v, p, sizeof(v));
	v ^= crc;
	return table[7][v & 0xff] ^ table[6][v >> 8 & 0xff] ^
	       table[5][v >> 16 & 0xff] ^ table[4][v >> 24 & 0xff] ^
	       table[3][v >> 32 & 0xff] ^ table[2][v >> 40 & 0xff] ^
	       table[1][v >> 48 & 0xff] ^ table[0][v >> 56];
}

uint32_t packet_crc(const struct sim_packet *p)
{
	const uint8_t *at = (const uint8_t *)p + sizeof(p->crc);
	size_t len = p->size;
	uint32_t crc = UINT32_MAX;

	if (len > sizeof(*p))
		len = sizeof(*p);
	if (len < sizeof(p->crc))
		len = sizeof(p->crc);
	len -= sizeof(p->crc);
	for (; len >= 8; len -= 8, at += 8)
		crc = crc_eight(crc, at);
	return ~crc_bytes(crc, at, len);
}
