# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# No machine that anyone measured for this, but what is publicly known of such
# bridges put together, to see what the protocols are worth today.
#
# The link: PCIe generation 3, 8 lanes of 8 GT/s, 128 of 130 bits: 7877 MB/s.  A
# packet has 4 bytes of framing and sequence number, 16 of header with a 64-bit
# address, 4 of CRC (PCIe base specification 3.0): 64 bytes take 11.2 ns.
#
# One way of a 4-byte store between programs: Dolphin gives 0.74 us for adapters of
# generation 2, and below 0.3 for a bridge within the CPU, which needs no adapter.
# 0.54 is assumed.  With T as in a.profile:
#
#   store and flush 7, T, link (24 + 16 bytes) 5, memory 3 + 2, mem_latency 150,
#     poll 25                                                     = 540
#
# So T = 348.
name C
title PCIe generation 3 x8, non-transparent bridges, a CPU of today

streams 16		# a CPU has 10 to 16 buffers that combine writes
stream_size 64		# ... of a cache line
outstanding 64		# as many posted packets as credits typically allow
gather 1000		# no source: such buffers leave when others are needed
load_local 25		# no source: last-level cache, where inbound data land: 75 cycles of 3 GHz
copy_setup 10		# no source: a call, the first line
copy_rate 10000		# no source: one core, memory to memory: 8 to 12 GB/s
line_put 5		# no source: 15 cycles
line_take 25		# a load from the last-level cache
check 2			# no source: a word in the first-level cache
atomic 6		# no source: a locked instruction, 18 cycles
bus_line 11.2		# above
bus_fpu 11.2		# the CPU combines both
bus_word 3.6		# above: (24 + 4) bytes at 7877 MB/s
bus_read 800		# no source: a load from a device: 0.6 to 1 us
mem_setup 3		# above: 24 bytes at 7877 MB/s
mem_rate 7877		# above: the target's slot has the same width
mem_latency 150		# no source: root complex and last-level cache
adapter_out 154		# above; halves
adapter_in 154		# above
link_header 24		# above
link_rate 7877		# above
link_hop 40		# no source: a cable of 3 m, and both ends; part of the sum above
interrupt 5000		# no source: handler, wake-up and context switch
control 20000		# no source: two of these each way, and system calls
