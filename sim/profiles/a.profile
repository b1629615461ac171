# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# The cluster of "MPICH for SCI-connected Clusters" (Worringen, Bemmerl), here
# "M".  Its table 1 has these raw figures, and nothing else of it is used:
#
#   B_cr  copy of private to remote memory    76.3 MB/s
#   B_cl  copy of shared to private memory    334.0 MB/s, at 8 kB (IV.B.2)
#   B_lr  sequential reads of local memory    142.9 MB/s
#   L_rw  remote write                        2.7 us, of 64 bytes "about 4" (III.B.1)
#   L_rr  remote read                         4.4 us
#   L_lr  local read                          31 ns
#
# A remote write is taken for the way from the program that stores to the one
# that polls, as M's equation 1 does.  With T = adapter_out + link_hop +
# adapter_in, of which only the sum matters between two nodes:
#
#   write, 4 bytes: store and flush 2 * bus_word, T, link (16 + 16 bytes) 64,
#     memory 182 + 121, mem_latency, poll 31                      = 2700
#   read, 4 bytes: bus_word, T, link (16) 32, memory 182 + 485 for the 64 bytes
#     that a speculative read fetches (M II.A), mem_latency, T,
#     link (16 + 64) 160                                          = 4400
#
# So T = 1320, mem_latency = 821.  Left over: 64 bytes take 3.84 us, 4 % below
# "about 4".
name A
title D310, Pentium II 450 MHz, BX, 32 bit 33 MHz PCI (SCI-MPICH)

streams 8		# DECK II.D, of the same chips: LC2, PSB revision D
stream_size 64		# DECK II.D
outstanding 8		# each of the 8 buffers is held until it is answered
gather 10000		# the data sheet's (section 5); the papers say only that there is one
load_local 31		# M table 1, L_lr
copy_setup 31		# the first load: L_lr; no source
copy_rate 334.0		# M table 1, B_cl
line_put 71		# no source: 64 bytes in the cache, 8 in 4 cycles of 450 MHz
line_take 84		# M equation 1: 12 bytes of header at B_lr
check 31		# a load from main memory: L_lr
atomic 56		# no source: a locked instruction, 25 cycles of 450 MHz
bus_line 838.8		# M table 1, B_cr: 64 bytes at 76.3 MB/s
bus_fpu 838.8		# that is what B_cr was measured with (M IV.B)
bus_word 80.1		# DECK II.E, same bus: 64 bytes in 16 words at 49.94 MB/s
bus_read 400		# no source: 10 cycles of PCI, and as much as a third for the CPU's bus
mem_setup 182		# PCI 2.1: arbitration, address, first data: 6 cycles of 33 MHz
mem_rate 132		# PCI 2.1: 4 bytes in each cycle of 33 MHz
mem_latency 821		# above
adapter_out 610		# above; halves
adapter_in 610		# above
link_header 16		# IEEE 1596: ids, command, address, CRC
link_rate 500		# no source: half of the standard's 1 GB/s; a fifth of a line's time
link_hop 100		# no source: a bypass FIFO, and a cable; part of the sum above
interrupt 20000		# no source: handler, wake-up and context switch of such a CPU
control 100000		# no source: two of these each way, and system calls
#
# TCP over Fast Ethernet: the cluster of MPICH/Madeleine, here "N", has the same hosts, with
# DEC's 21140 and Linux 2.2.13 on two CPUs.  No paper has the parts of its 121 us.  So the
# host's times are between two published runs of lmbench, on an older and on a later system
# with a CPU of the same kind.  Scaled by the clock to 450 MHz, they are:
#
#				doc/*.tbl of	2.5.67 on	geometric
#				lmbench (1996)	LKML, 2003-04-08	mean
#   CPU				167 MHz		790 MHz
#   call (write to /dev/null)	4 -> 1.48	0.77 -> 1.35	1.42
#   context switch		6 -> 2.23	0.94 -> 1.65	1.92
#   TCP, half a local round trip	131.5 -> 48.8	15 -> 26.3	35.8
#
# The latter has two calls, a context switch, and a segment out and in: 31.1 us, taken as
# halves.  An interrupt and the driver: four accesses to the card (4 * bus_read), entry and
# exit (2 calls, of which each is both), and 2.6 us for the buffer; no source for their number.
#
# tcp_path is fitted to one figure, N's 121 us for 4 bytes: it is what the parts above do not
# explain (the interrupt's way, a hub or switch, the kernel's lock, Marcel's scheduler).
# Nothing else is fitted: N's other figures of TCP check the model.
ether_rate 12.5		# IEEE 802.3u; N 5.2: Fast Ethernet
tcp_buffer 65536	# Linux 2.2: 64 KiB
tcp_call 1420		# above
tcp_output 15550	# above
tcp_input 15550		# above
tcp_interrupt 7000	# above
tcp_switch 1920		# above
tcp_path 67100		# above
