# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# shellcheck shell=bash disable=SC2154,SC2016,SC2317
# Cases with threads of one program on all machines, libsci_threads(7). Part of
# scripts/cluster-check. Pages and wake-ups are messages over SCI.

# PROGRAM...: print the command for node 4 that runs the program with threads on all machines
threads_command() {
	local i hosts=()
	for i in $(ids); do
		hosts+=("10.1.$((i / 256)).$((i % 256))")
	done
	echo "SCI_RSH=$PWD/scripts/cluster-stream SCI_HOSTS_TIMEOUT=$((10 * slow)) SCI_FABRIC=dev
		SCI_THREADS_REPORT=1 timeout -k 5 $((580 * slow)) $build/sci run --threads -n $nodes
		--hosts $(IFS=,; echo "${hosts[*]}") $*" | xargs
}

# NAME FILE PROGRAM...: FILE, or standard output for out, is that of one machine, and all
# machines have used CPU time
threads_same() {
	local name=$1 file=$2 status=0
	shift 2
	SCI_EXEC_LIMIT=$((600 * slow)) on 4 "cd /tmp || exit
		$* >out; one=\$?; mv $file one
		$(threads_command "$@") >out 2>report; several=\$?; mv $file several
		cat report; echo status \$one \$several
		[ \$one = \$several ] && cmp one several" >"$tmp/case/$name" 2>&1 || status=1
	sed -n "s/^sci: node/= $name: node/p" "$tmp/case/$name"
	awk -v nodes="$nodes" '/^sci: node .* threads created, / { n += $4 > 0 && $7 > 0.05 }
		END { exit n != nodes }' "$tmp/case/$name" || { echo "$name: not all nodes have worked"; status=1; }
	return "$status"
}

case_threads_pigz() {
	type -P pigz >/dev/null || skip "no package pigz" || return
	on 4 "head -c 130000 $build/sci >/tmp/input" || return
	threads_same pigz out pigz -p 4 -b 32 -c /tmp/input || return
	on 4 'cd /tmp && pigz -d -c <several | cmp - input'
}

case_threads_tachyon() {
	type -P tachyon >/dev/null || skip "no package tachyon-bin-nox" || return
	scripts/threads-scene 32 24 30 | on -i 4 'cat >/tmp/scene' || return
	threads_same tachyon picture tachyon scene -numthreads 4 -o picture -format TARGA
}

case_threads_pbzip2() {
	type -P pbzip2 >/dev/null || skip "no package pbzip2" || return
	on 4 "head -c 420000 $build/sci >/tmp/input" || return
	threads_same pbzip2 out pbzip2 -p4 -b1 -c /tmp/input || return
	on 4 'cd /tmp && pbzip2 -d -c <several | cmp - input'
}

case_threads_lbzip2() {
	type -P lbzip2 >/dev/null || skip "no package lbzip2" || return
	on 4 "head -c 420000 $build/sci >/tmp/input" || return
	threads_same lbzip2 out lbzip2 -n 4 -1 -c /tmp/input || return
	on 4 'cd /tmp && lbzip2 -d -c <several | cmp - input'
}

# MIB: leave about so much memory on each machine, and set $left to the most that one has left, in
# MiB. Reserved huge pages take the rest, as far as the kernel finds them.
machines_fill() {
	local i has
	left=0
	for i in $(ids); do
		has=$(on "$i" "awk '/^MemAvailable:/ { print int((\$2 / 1024 - $1) / 2) }' /proc/meminfo \
				>/proc/sys/vm/nr_hugepages
			awk '/^MemAvailable:/ { print int(\$2 / 1024) }' /proc/meminfo") || return
		echo "= node $i has $has MiB left"
		((has <= left)) || left=$has
	done
	((left < 2 * $1))
}

machines_empty() {
	local i status=0
	for i in $(ids); do
		on "$i" 'echo 0 >/proc/sys/vm/nr_hugepages' || status=1
	done
	return "$status"
}

# Threads share more memory than any machine has left. All of it is checked.
case_threads_share_more_memory_than_a_machine_has() {
	local program=$build/selftests/threads/programs/large left mib status=0
	machines_fill 80 || status=1
	mib=$((left + 8))
	"$program" $((2 * nodes)) "$mib" >"$tmp/case/expected" || status=1
	((status)) ||
		SCI_EXEC_LIMIT=$((600 * slow)) on 4 "$(threads_command "$program" $((2 * nodes)) "$mib")" \
			>"$tmp/case/large" 2>&1 || status=1
	machines_empty || status=1
	((status)) || grep -qFf "$tmp/case/expected" "$tmp/case/large" ||
		{ echo "another sum"; status=1; }
	sed 's/^/= /' "$tmp/case/large"
	return "$status"
}

# Loads and stores of threads on all machines have an order that the memory model allows.
case_threads_litmus() {
	local program=$build/selftests/threads/programs/litmus kind status=0
	for kind in atomics locks barriers; do
		SCI_EXEC_LIMIT=$((600 * slow)) on 4 \
			"SCI_TEST_ROUNDS=1024 $(threads_command "$program" "$kind")" \
			>"$tmp/case/$kind" 2>&1 || status=1
		grep -c ': 0 forbidden outcomes in ' "$tmp/case/$kind" | grep -q '^4$' || status=1
		sed 's/^/= /' "$tmp/case/$kind"
	done
	return "$status"
}

# mutexes, conditions, barriers, files, children and so on
case_threads_that_use_all_calls() {
	threads_same machines out "$build/selftests/threads/programs/machines"
}

# KILL...: the command ends node 8 while threads run. The program ends and names the node.
threads_node_dies() {
	local status=0 victim="$build/selftests/threads/programs/machines"
	SCI_EXEC_LIMIT=$((600 * slow)) begin victim 4 "$(threads_command "$victim" forever)"
	within 400 grep -q '^all nodes run' "$tmp/case/victim" && "$@"
	status=$?
	! end victim || { echo "the program has ended by itself"; status=1; }
	grep '^sci: node 8' "$tmp/case/victim" | sed 's/^/= /' | grep . || status=1
	return "$status"
}

case_threads_a_node_is_killed() {
	threads_node_dies on 8 'killall -9 machines'
}

case_threads_a_machine_dies() {
	local status=0
	threads_node_dies cluster kill 8 || status=1
	cluster start 8 || status=1
	return "$status"
}
