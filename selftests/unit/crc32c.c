// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/* CRC-32C: known answers; the table and the CPU's instruction give the same results. */
#include <string.h>

#include "libsci/pio/pio.h"
#include "selftests/harness.h"

TEST(known_answers)
{
	char zeros[32] = "";

	/* the check value of the CRC catalogue, and RFC 3720 B.4 */
	CHECK_EQ(sci_pio_crc32c(0, "123456789", 9), 0xe3069283u);
	CHECK_EQ(sci_pio_crc32c_table(0, "123456789", 9), 0xe3069283u);
	CHECK_EQ(sci_pio_crc32c(0, zeros, 32), 0x8a9136aau);
	CHECK_EQ(sci_pio_crc32c(0, NULL, 0), 0);
}

TEST(both_ways_agree_in_parts)
{
	static unsigned char data[300];

	test_fill(data, sizeof(data), 7);
	for (size_t at = 0; at < 16; at++)
		for (size_t len = 0; len + at < sizeof(data); len++) {
			uint32_t whole = sci_pio_crc32c(0, data + at, len);
			uint32_t part = sci_pio_crc32c(0, data + at, len / 3);

			CHECK_EQ(whole,
				 sci_pio_crc32c_table(0, data + at, len));
			CHECK_EQ(whole,
				 sci_pio_crc32c(part, data + at + len / 3,
						len - len / 3));
		}
}
