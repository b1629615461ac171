/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Copyright (C) 2026 The libsci authors */
/*
 * The cost of a message; instructions.c says how to renew it. Columns, each per message:
 * point and store engine; instructions of the sender and of the receiver; lines that the
 * sender's and the receiver's core fetch from the other core; stores to a line that
 * the other core also has.
 */
ROW(untagged_8_avx512, 144, 203, 0.08, 1.00, 1.08)
ROW(untagged_8_sse2, 301, 324, 0.08, 1.00, 1.08)
ROW(untagged_62_avx512, 154, 206, 0.08, 1.00, 1.08)
ROW(untagged_62_sse2, 314, 327, 0.08, 1.00, 1.08)
ROW(tagged_8_avx512, 193, 207, 0.08, 1.00, 1.08)
ROW(tagged_8_sse2, 324, 328, 0.08, 1.00, 1.08)
ROW(untagged_8_single_thread_avx512, 138, 197, 0.08, 1.00, 1.08)
ROW(tagged_8_single_thread_avx512, 187, 201, 0.08, 1.00, 1.08)
ROW(tagged_62_avx512, 360, 349, 0.17, 2.00, 2.17)
ROW(tagged_8_any_source_avx512, 193, 261, 0.08, 1.00, 1.08)
ROW(requests_8_avx512, 477, 462, 0.08, 1.00, 1.08)
ROW(requests_8_sse2, 634, 583, 0.08, 1.00, 1.08)
ROW(handler_8_avx512, 279, 408, 0.08, 1.00, 1.08)
ROW(handler_8_sse2, 410, 529, 0.08, 1.00, 1.08)
ROW(untagged_320_avx512, 485, 299, 0.08, 6.00, 6.08)
ROW(untagged_4096_avx512, 674, 513, 0.08, 65.00, 65.08)
ROW(untagged_65536_avx512, 4031, 3965, 1.00, 1025.00, 1026.00)
ROW(rendezvous_65536_avx512, 5254, 5396, 2.00, 1026.25, 1028.25)
ROW(zero_copy_65536_avx512, 5327, 1570, 1.25, 2.25, 3.50)
ROW(put_8_sse2, 820, 0, 0.00, 1.00, 1.00)
ROW(put_8_beside_sends_sse2, 875, 0, 0.00, 1.00, 1.00)
ROW(atomic_8_sse2, 311, 0, 0.00, 1.00, 1.00)
