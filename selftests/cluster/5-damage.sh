# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# shellcheck shell=bash disable=SC2154,SC2016,SC2317
# A case in which kernels send damaged messages in valid packets. Part of
# scripts/cluster-check.

# Make and end connections for a while.
come_and_go() {
	local i round end=$((SECONDS + seconds * slow))
	traffic_env="CLUSTER_MAY_LOSE=1 CLUSTER_SECONDS=$seconds"
	for ((round = 0; round < 3 || SECONDS < end; round++)); do
		for i in $(ids); do
			begin "pinged-$i" "$i" 'timeout 20 sci ping --serve'
			begin "pings-$i" "$i" "for n in 1 2 3 4 5 6; do
				for k in $(ids | xargs); do timeout 1 sci ping \$k; done; done"
		done
		serve 8 4
		begin writer 4 "SCI_TEST_FABRIC=dev SCI_TEST_NODE=4 CLUSTER_PEER=8 \
			$traffic_env timeout 20 $build/$tests/stores writer"
		begin talker 4 "SCI_TEST_FABRIC=dev SCI_TEST_NODE=4 CLUSTER_PEER=8 \
			$traffic_env timeout 20 $build/$tests/messages talker"
		for i in $(ids); do wait "${job[pings-$i]}"; done
		abandon
		for i in $(ids); do
			on "$i" 'killall -9 stores messages sci 2>/dev/null; true'
		done
	done
	echo "= $round rounds"
}

count_of() {
	cluster ctl counters | awk -v what="$1" '
		{ for (i = 1; i < NF; i++) if ($i == what) n += $(i + 1) }
		END { print n + 0 }'
}

# The results of programs are not checked, because a damaged reply may even direct stores to
# a wrong place. The kernels must survive, release all objects, and work with newly loaded
# modules.
case_messages_between_kernels_are_damaged() {
	local i damaged
	[[ $kind == pci ]] || skip "without a switch" || return
	set_fault damage 300000 || return
	come_and_go
	damaged=$(count_of damaged)
	count_faults
	cluster ctl reset || return
	echo "= $damaged messages damaged"
	((damaged >= 20)) || return
	for i in $(ids); do
		within 30 modules_unload "$i" || return
	done
	for i in $(ids); do
		modules_load "$i" || return
	done
	amid_traffic 0 true
}
