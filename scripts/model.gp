# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# Plots the files of `sci model tables`.  gnuplot -e "dir='build/model'; p='B'" model.gp

set terminal svg size 960,600 dynamic font "sans-serif,15" background "#ffffff"
set grid linetype 1 linecolor "#dddddd"
set border 3 linecolor "#555555"
set tics nomirror out
set key top left samplen 2 spacing 1.2

set output dir . "/sawtooth-" . p . ".svg"
set title "A remote write on profile " . p . ": packets make the time"
set xlabel "Bytes"
set ylabel "One way, us"
set y2label "Packets"
set y2tics
set yrange [0:*]
set y2range [0:12]
set xtics 64
plot dir . "/sawtooth-" . p . ".dat" using 1:2 with lines linewidth 2 \
	linecolor "#0072b2" title "time", \
	"" using 1:3 axes x1y2 with steps linecolor "#d55e00" title "packets"
unset y2label
unset y2tics
data = dir . "/sizes-" . p . ".dat"
set logscale x 2
set xtics 1,4
set xlabel "Bytes"

set output dir . "/latency-" . p . ".svg"
set title "Half a round trip on profile " . p
set ylabel "us"
set xrange [1:2048]
set yrange [0:50]
plot data index 0 using 1:2 with linespoints linecolor "#d55e00" title "DECK/SCI", \
	data index 1 using 1:2 with linespoints linecolor "#009e73" title "SCI-MPICH", \
	data index 0 using 1:3 with linespoints linewidth 2 linecolor "#0072b2" title "libsci", \
	data index 0 using 1:4 with lines linecolor "#555555" dashtype 2 title "bound"

set output dir . "/bandwidth-" . p . ".svg"
set title "Bandwidth on profile " . p
set ylabel "MB/s"
set xrange [64:1048576]
set yrange [0:*]
plot data index 0 using 1:($1/$2) with linespoints linecolor "#d55e00" title "DECK/SCI", \
	data index 1 using 1:($1/$2) with linespoints linecolor "#009e73" title "SCI-MPICH", \
	data index 0 using 1:($1/$3) with linespoints linewidth 2 linecolor "#0072b2" title "libsci, exported buffers", \
	data index 1 using 1:($1/$3) with linespoints linecolor "#56b4e9" title "libsci, tagged", \
	data index 0 using 1:($1/$4) with lines linecolor "#555555" dashtype 2 title "bound"
