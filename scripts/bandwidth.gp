# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# Plots the bandwidth of remote stores by block size.
# gnuplot -e "data='bandwidth.tsv'; out='bandwidth'" bandwidth.gp

set datafile separator "\t"
set title "Bandwidth of stores into another node's memory"
set xlabel "Block size"
set ylabel "Bandwidth, GB/s (10^9 bytes per second)"
set logscale x 2
set xrange [48:90000000]
set yrange [0:*]
set xtics ("64 B" 64, "256 B" 256, "1 KiB" 1024, "4 KiB" 4096, \
	"16 KiB" 16384, "64 KiB" 65536, "256 KiB" 262144, "1 MiB" 1048576, \
	"4 MiB" 4194304, "16 MiB" 16777216, "64 MiB" 67108864)
set grid xtics ytics linetype 1 linecolor "#dddddd"
set border 3 linecolor "#555555"
set tics nomirror out
set key bottom center horizontal samplen 2 spacing 1.2 width 1
set rmargin 4

set style line 1 linecolor "#888888" linewidth 6
set style line 2 linecolor "#0072b2" linewidth 2 pointtype 7 pointsize 0.9
set style line 3 linecolor "#d55e00" linewidth 2 pointtype 5 pointsize 0.8
set style line 4 linecolor "#009e73" linewidth 2 pointtype 9 pointsize 0.9

do for [kind in "svg png"] {
	if (kind eq "svg") {
		set terminal svg size 960,600 dynamic font "sans-serif,15" \
			background "#ffffff"
	} else {
		set terminal pngcairo size 1440,900 font "DejaVu Sans,15" \
			background "#ffffff" fontscale 1.2 linewidth 1.5
	}
	set output out . "." . kind
	plot data using 1:2 with lines linestyle 1 \
			title "memcpy, local memory", \
		data using 1:3 with linespoints linestyle 2 title "SCIMemWrite", \
		data using 1:5 with linespoints linestyle 3 title "SCIMemCpy", \
		data using 1:7 with linespoints linestyle 4 title "map + memcpy"
}
