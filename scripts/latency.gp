# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# Plots a histogram of the latency of remote stores.
# gnuplot -e "data='latency.tsv'; out='latency'; low=80; high=200;
#	median=100; p99=130; step=5" latency.gp

set datafile separator "\t"
stats data using 2 nooutput name "N"
total = N_sum

set title "A 64-byte line reaches the other node's polling loop"
set xlabel "One-way time, ns (half a round trip)"
set ylabel "Share of round trips, %"
set xrange [(floor(low / step) - 1) * step:high]
set yrange [0:*]
set offsets 0, 0, graph 0.15, 0
set boxwidth step * 0.92
set style fill solid 0.85 noborder
set grid ytics linetype 1 linecolor "#dddddd"
set border 3 linecolor "#555555"
set tics nomirror out
set key top right samplen 2 spacing 1.2

bucket(x) = (floor(x / step) + 0.5) * step
set arrow 1 from median, graph 0 to median, graph 0.97 nohead \
	linecolor "#d55e00" linewidth 2 front
if (p99 < high) {
	set arrow 2 from p99, graph 0 to p99, graph 0.8 nohead \
		linecolor "#555555" linewidth 2 dashtype 2 front
	set label 2 sprintf(" p99 %.0f ns", p99) at p99, graph 0.78 left \
		textcolor "#555555" front
} else {
	set label 2 sprintf("p99 %.0f ns, beyond ", p99) at high, graph 0.78 \
		right textcolor "#555555" front
}
set label 1 sprintf(" median %.0f ns", median) at median, graph 0.95 left \
	textcolor "#d55e00" front

do for [kind in "svg png"] {
	if (kind eq "svg") {
		set terminal svg size 960,600 dynamic font "sans-serif,15" \
			background "#ffffff"
	} else {
		set terminal pngcairo size 1440,900 font "DejaVu Sans,15" \
			background "#ffffff" fontscale 1.25 linewidth 1.5
	}
	set output out . "." . kind
	plot data using (bucket($1)):(100.0 * $2 / total) smooth frequency \
		with boxes linecolor "#0072b2" \
		title sprintf("%.0f round trips", total)
}
