# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# shellcheck shell=bash disable=SC2154,SC2016,SC2317
# Cases with memory shared by all machines. Part of scripts/cluster-check.

needs_pool() { [[ $kind == ivshmem ]] || skip "without adapters"; }

# NODE: it has another adapter, while programs still hold the removed one open
joined_again() { on "$1" 'dmesg | grep -q "has been expelled" && ls /dev/sci[0-9]*' && ! left "$1"; }

# The machine hangs for longer than its lease, but less than the quarantine.
case_pool_a_machine_hangs_and_finds_itself_expelled() {
	needs_pool || return
	hang() {
		kill -STOP "$(<"$D/8/qemu.pid")" || return
		injected 1
		within 20 left 8 || { kill -CONT "$(<"$D/8/qemu.pid")"; return 1; }
		kill -CONT "$(<"$D/8/qemu.pid")"
		within 60 joined_again 8 || return
		stop_servers
		local i
		for i in $(ids); do
			((i == 8)) || wait "${job[owner-8-$i]}"
		done
		wait "${job[listener-8-4]}"
		# the tests need the adapter to be sci0
		within 20 modules_unload 8 && modules_load 8 && serve_all
	}
	seconds=$((20 * slow)) amid_traffic 1 hang
}

# NODE: it has left the pool
left() { "$build/sci" pool show "$D/pool" | grep "^$1 .*left"; }
