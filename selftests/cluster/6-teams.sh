# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# shellcheck shell=bash disable=SC2119,SC2120,SC2154,SC2317
# Cases with programs that `sci run` starts on several machines. Part of
# scripts/cluster-check. Programs of selftests/shmem do puts, atomics, locks and collective
# calls over SCI. SMI's sort and Poisson solver and DECK's pipeline compare with a serial
# result.

# more options of `sci run`
team_options=()

# PES PROGRAM ARGUMENT...: run PES processes on each machine; output goes to case/team
team_run() {
	local i n=$1 hosts=()
	shift
	for i in $(ids); do
		hosts+=("10.1.$((i / 256)).$((i % 256))")
	done
	SCI_EXEC_LIMIT=$((600 * slow)) on 4 "SCI_RSH=$PWD/scripts/cluster-stream \
		SCI_HOSTS_TIMEOUT=$((10 * slow)) \
		${SHMEM_SYMMETRIC_SIZE:+SHMEM_SYMMETRIC_SIZE=$SHMEM_SYMMETRIC_SIZE} \
		${SHMEM_TEST_LONGS:+SHMEM_TEST_LONGS=$SHMEM_TEST_LONGS} \
		timeout -k 5 $((580 * slow)) $build/sci run -n $((n * nodes)) \
		--hosts $(IFS=,; echo "${hosts[*]}") ${team_options[*]} \
		$build/selftests/$*" >"$tmp/case/team" 2>&1 || {
		echo "$1: exit status $?"
		tail -5 "$tmp/case/team"
		return 1
	}
}

# PES PROGRAM ARGUMENT...: all tests of PROGRAM pass
team_passes() {
	team_run "$@" || return
	awk -v name="$2" '/^1\.\./ { planned = substr($0, 4) + 0 }
		/^ok / { n++ }
		END { print "= " name ": " n + 0 " tests of " planned + 0; exit !n || n != planned }
	' "$tmp/case/team"
}

# NUMBERS POINTS STEPS [PROCESSES]: sort and the Poisson solver pass, with so many processes
# on each machine (2)
smi_passes() {
	team_passes "${4:-2}" smi/sort "$1" && team_passes "${4:-2}" smi/poisson "$2" "$3"
}

# [PROCESSES]: in all; four are a pipeline
deck_passes() {
	local all=${1:-4} same
	((all % nodes == 0)) || skip "$all processes do not fit $nodes machines" || return
	team_run $((all / nodes)) cluster/deck_pipeline 320 200 || return
	same=$(grep -c '^the results are the same' "$tmp/case/team")
	echo "= deck_pipeline: the results of $same pipelines are the same"
	((same == all / 4))
}

case_team_one_pe_on_each() {
	team_passes 1 cluster/shmem_rma && team_passes 1 cluster/shmem_atomics
}

# node 8 loses its link when the program has begun, and gets it back when the program has ended
case_team_sockets_take_over() {
	local team_options=(--net tcp:10.1.0.0/16 --failover) status
	rm -f "$tmp/case/team"
	team_passes 1 cluster/shmem_atomics &
	within 120 grep -qs '^ok' "$tmp/case/team" && cluster ctl link down 8 && injected 1 &&
		within 3 link_is 8 down
	status=$?
	if ((!status)); then
		kill -0 $! || { echo "the program has ended before the link"; status=1; }
	fi
	wait $! || status=1
	cluster ctl link up 8 && within 10 link_is 8 up || status=1
	return $status
}

# two PEs of a machine access four heaps on two others, in 2,048 entries of 64 KiB
case_team_two_pes_on_each() {
	SHMEM_SYMMETRIC_SIZE=8M team_passes 2 cluster/shmem_collectives
}

# PES: all programs pass with more PEs than processors
many_pes_pass() {
	local p
	needs_two_nodes || return
	for p in atomics rma collectives; do
		SHMEM_SYMMETRIC_SIZE=2M SHMEM_TEST_LONGS=2048 \
			team_passes "$1" "cluster/shmem_$p" || return
	done
}

case_team_four_pes_on_each() { many_pes_pass 4; }

case_team_eight_pes_on_each() { many_pes_pass 8; }

case_team_smi() { smi_passes 50000 80 20; }

case_team_deck() { deck_passes; }

# PERCENT COMMAND...: run COMMAND with loss
with_loss() {
	local status
	set_fault loss $(($1 * 10000)) && "${@:2}"
	status=$?
	set_fault loss 0 && return "$status"
}

case_team_ten_percent_of_packets_lost() {
	with_loss 10 team_passes 1 cluster/shmem_atomics &&
		SHMEM_TEST_LONGS=2048 with_loss 10 team_passes 1 cluster/shmem_rma
}

case_team_two_pes_on_each_ten_percent_of_packets_lost() {
	SHMEM_SYMMETRIC_SIZE=8M with_loss 10 team_passes 2 cluster/shmem_collectives
}

case_team_smi_one_percent_of_packets_lost() { with_loss 1 smi_passes 50000 80 20; }

case_team_smi_ten_percent_of_packets_lost() { with_loss 10 smi_passes 2000 24 4; }

# OPTION: load the modules of all nodes anew with it
modules_anew() {
	local i
	for i in $(ids); do
		modules_unload "$i" && modules_load "$i" "$@" || return
	done
}

# some loads and stores fail, and the programs repeat them
case_team_smi_transfers_fail() {
	local status
	modules_anew retries=2 && with_loss 3 smi_passes 2000 24 4
	status=$?
	modules_anew && return "$status"
}

# 2, 8 and 16 processes; the other cases have 4
case_team_smi_of_many_processes_one_percent_of_packets_lost() {
	local n
	needs_two_nodes || return
	for n in 1 4 8; do
		with_loss 1 smi_passes 5000 48 8 "$n" || return
	done
}

case_team_deck_of_many_processes_one_percent_of_packets_lost() {
	local n
	needs_two_nodes || return
	for n in 8 16; do
		with_loss 1 deck_passes "$n" || return
	done
}

case_team_deck_one_percent_of_packets_lost() { with_loss 1 deck_passes; }

case_team_deck_ten_percent_of_packets_lost() { with_loss 10 deck_passes; }
