# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# Plots the bandwidth of Madeleine through a gateway, by length of messages and blocks.
# gnuplot -e "data='madeleine.tsv'; out='madeleine'; columns=5" bench-mad.gp

set datafile separator "\t"
set title "Madeleine through a gateway, by bytes of a block"
set xlabel "Bytes of a message"
set ylabel "Bandwidth, MB/s"
set logscale x 2
set xtics ("16 KiB" 16384, "64 KiB" 65536, "256 KiB" 262144, "1 MiB" 1048576, \
	"4 MiB" 4194304, "16 MiB" 16777216)
set yrange [0:*]
set grid xtics ytics linetype 1 linecolor "#dddddd"
set border 3 linecolor "#555555"
set tics nomirror out
set key autotitle columnheader top left

set terminal svg size 960,600 dynamic font "sans-serif,15" background "#ffffff"
set output out . ".svg"
plot for [i = 2:columns] data using 1:i with linespoints linewidth 2
