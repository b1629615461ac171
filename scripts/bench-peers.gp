# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# Plots libsci's messages, the best peer and the limit, by size.
# gnuplot -e "data='peers.tsv'; out='peers'; class='l3'" bench-peers.gp

set datafile separator "\t"
set datafile missing "-"
set logscale xy
set logscale x 2
set xrange [48:6000000]
set xtics ("64 B" 64, "512 B" 512, "4 KiB" 4096, "32 KiB" 32768, \
	"256 KiB" 262144, "4 MiB" 4194304)
set xlabel "Message size"
set grid xtics ytics linetype 1 linecolor "#dddddd"
set border 3 linecolor "#555555"
set tics nomirror out
set key samplen 2 spacing 1.2
set rmargin 5

set style line 1 linecolor "#bbbbbb" linewidth 6
set style line 2 linecolor "#0072b2" linewidth 2 pointtype 7 pointsize 0.8
set style line 3 linecolor "#d55e00" linewidth 2 pointtype 5 pointsize 0.7
set style line 4 linecolor "#009e73" linewidth 2 pointtype 9 pointsize 0.8
set style line 5 linecolor "#000000" linewidth 2 dashtype 2 pointtype 6 \
	pointsize 0.8

of(metric, column) = stringcolumn(1) eq metric && stringcolumn(3) eq class && \
	strcol(column) ne "-" ? \
	column(column) : NaN

do for [kind in "svg png"] {
	if (kind eq "svg") {
		set terminal svg size 1280,600 dynamic font "sans-serif,15" \
			background "#ffffff"
	} else {
		set terminal pngcairo size 1920,900 font "DejaVu Sans,15" \
			background "#ffffff" fontscale 1.2 linewidth 1.5
	}
	set output out . "." . kind
	set multiplot layout 1,2 title "Messages between two processes of one machine, placement: " . class
	do for [metric in "latency_us bandwidth_MBps"] {
		if (metric eq "latency_us") {
			set title "Latency"
			set ylabel "Half a round trip, us"
			set key top left
		} else {
			set title "Bandwidth"
			set ylabel "MB/s (10^6 bytes per second)"
			set key bottom right
		}
		plot data using (column(2)):(of(metric, 4)) with lines \
				linestyle 1 title "limit", \
			data using (column(2)):(of(metric, 9)) with linespoints \
				linestyle 5 title "best peer", \
			data using (column(2)):(of(metric, 5)) with linespoints \
				linestyle 2 title "libsci", \
			data using (column(2)):(of(metric, 7)) with linespoints \
				linestyle 3 title "libsci, tagged", \
			data using (column(2)):(of(metric, 8)) with linespoints \
				linestyle 4 title "libsci, zero-copy"
	}
	unset multiplot
}
