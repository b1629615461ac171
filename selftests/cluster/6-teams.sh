# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# shellcheck shell=bash disable=SC2154,SC2317
# Programs that `sci run` starts on several machines: part of scripts/cluster-check.  The
# programs of selftests/shmem, whose puts, atomics, locks and collective calls go over SCI.

# PES PROGRAM: as many on each machine; all tests pass
shmem_passes() {
	local i hosts=()
	for i in $(ids); do
		hosts+=("10.1.$((i / 256)).$((i % 256))")
	done
	SCI_EXEC_LIMIT=$((600 * slow)) on 4 "SCI_RSH=$PWD/scripts/cluster-stream \
		timeout -k 5 $((580 * slow)) $build/sci run -n $(($1 * nodes)) \
		--hosts $(IFS=,; echo "${hosts[*]}") $build/selftests/cluster/shmem_$2" >"$tmp/case/shmem" 2>&1 || {
		echo "exit status $?"
		tail -5 "$tmp/case/shmem"
		return 1
	}
	awk '/^1\.\./ { planned = substr($0, 4) + 0 }
		/^ok / { n++ }
		END { print "= " n + 0 " tests of " planned + 0; exit !n || n != planned }
	' "$tmp/case/shmem"
}

case_team_one_pe_on_each() { shmem_passes 1 rma && shmem_passes 1 atomics; }

case_team_two_pes_on_each() { shmem_passes 2 collectives; }

case_team_ten_percent_of_packets_lost() {
	set_fault loss 100000 && shmem_passes 1 atomics
	local status=$?
	set_fault loss 0 && return "$status"
}
