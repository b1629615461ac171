# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# The cluster of "Low-latency and zero-copy message passing protocols for
# SCI-based clusters" (de Oliveira and others), here "DECK".  Its raw figures:
#
#   MMX stores to remote memory               87.71 Mbyte/s, from 512 bytes on (II.E)
#   memcpy() to remote memory                 49.94 Mbyte/s (II.E)
#
# Bus, bridge and link chips are those of profile a (M II.A, DECK II.A): so what
# adapter, links and memory take is the same, and derived there.
name B
title D312, Pentium III 500 MHz, BX, 32 bit 33 MHz PCI (DECK/SCI)

streams 8		# DECK II.D
stream_size 64		# DECK II.D
outstanding 8		# each of the 8 buffers is held until it is answered
gather 10000		# as a.profile
load_local 31		# as a.profile: the same memory
copy_setup 31		# as a.profile
copy_rate 334.0		# as a.profile: the same memory, nothing newer
line_put 64		# no source: 64 bytes in the cache, 8 in 4 cycles of 500 MHz
line_take 84		# as a.profile
check 31		# as a.profile
atomic 50		# no source: a locked instruction, 25 cycles of 500 MHz
bus_line 729.7		# DECK II.E: 64 bytes at 87.71 MB/s, by MMX
bus_fpu 838.8		# as a.profile: the same bus and chips; only the loop differs
bus_word 80.1		# DECK II.E: 64 bytes in 16 words at 49.94 MB/s
bus_read 400		# as a.profile
mem_setup 182		# as a.profile; with the data 667 ns, less than bus_line
mem_rate 132		# as a.profile
mem_latency 821		# as a.profile
adapter_out 610		# as a.profile
adapter_in 610		# as a.profile
link_header 16		# as a.profile
link_rate 500		# as a.profile
link_hop 100		# as a.profile
interrupt 20000		# as a.profile
control 100000		# as a.profile
