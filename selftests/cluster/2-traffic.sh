# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# shellcheck shell=bash disable=SC2154,SC2016,SC2317
# Cases in which checked traffic meets faults. Part of scripts/cluster-check.

tests=selftests/cluster
# seconds to boot and, in a pool, to be expelled
boot_seconds=20
[[ $kind != ivshmem ]] || boot_seconds=40
injected() { faults=$((faults + $1)); }

# NODE PEER [NO_LISTENER]: start the processes on NODE that PEER stores and talks to
serve() {
	local env="SCI_TEST_FABRIC=dev SCI_TEST_NODE=$1 CLUSTER_PEER=$2 $traffic_env"
	begin "owner-$1-$2" "$1" "$env $build/$tests/stores owner"
	((${3:-0})) || begin "listener-$1-$2" "$1" "$env $build/$tests/messages listener"
}

stop_servers() { on 8 'killall -9 stores messages; true'; }

# MAY_LOSE COMMAND...: run COMMAND while node 4, and node 12 of three, store into node 8,
# and node 4 sends messages to it
amid_traffic() {
	local i jobs=()
	traffic_env="CLUSTER_MAY_LOSE=$1 CLUSTER_SECONDS=$seconds CLUSTER_SLOW=$slow"
	shift
	for i in $(ids); do
		((i != 8)) || continue
		serve 8 "$i" "$((i != 4))"
		begin "writer-$i" "$i" "SCI_TEST_FABRIC=dev SCI_TEST_NODE=$i CLUSTER_PEER=8 \
			$traffic_env $build/$tests/stores writer"
		jobs+=("writer-$i" "owner-8-$i")
	done
	begin talker 4 "SCI_TEST_FABRIC=dev SCI_TEST_NODE=4 CLUSTER_PEER=8 $traffic_env \
		$build/$tests/messages talker"
	jobs+=(talker listener-8-4)
	for i in $(ids); do
		((i == 8)) || within 60 imports "$i" || return
	done
	"$@" || return
	end "${jobs[@]}" || return
	grep -h '^# \(verified\|stored\)' "$tmp/case"/* | sed 's/^#/=/'
}

# SECONDS COMMAND: repeats the command, at least once, for the time
repeated() {
	local end=$((SECONDS + $1)) n=0
	while ((!n || SECONDS < end)); do
		"$2" || { echo "$2 failed the time $((n + 1))"; return 1; }
		n=$((n + 1))
	done
	echo "= $2: $n times"
}

# NODE: its writer has a map, or has already ended, as it may on a busy machine
imports() {
	on "$1" '[ "$(cat /sys/class/sci/sci0/att/used)" != 0 ]' ||
		! kill -0 "${job[writer-$1]}"
}

# FAULT VALUE: set a fault of all nodes. With MAY_LOSE 0 no connection may end.
set_fault() { cluster ctl set all "$@"; }

case_traffic_without_faults() { amid_traffic 0 true; }

case_one_percent_of_packets_lost() { amid_traffic 0 set_fault loss 10000; }

case_ten_percent_of_packets_lost() { amid_traffic 0 set_fault loss 100000; }

case_packets_reordered() {
	cluster ctl set all distance 4 || return
	amid_traffic 0 set_fault reorder 50000
}

case_packets_duplicated() { amid_traffic 0 set_fault duplicate 50000; }

case_packets_corrupted() { amid_traffic 0 set_fault corrupt 20000; }

case_all_of_that_at_once() {
	several() {
		set_fault loss 10000 && set_fault reorder 20000 &&
			set_fault duplicate 20000 && set_fault corrupt 10000 &&
			set_fault jitter 200us
	}
	amid_traffic 0 several
}

case_stuck_transactions() { amid_traffic 1 cluster ctl set 8 stuck 1 for 3s; }

# ten times node 8 loses all packets for 150 ms
case_error_storms() {
	storm() {
		local i
		for i in 1 2 3 4 5 6 7 8 9 10; do
			cluster ctl set 8 loss 1000000 for 150ms || return
			sleep 0.3
		done
	}
	amid_traffic 1 storm
}

case_link_down_for_5_s() {
	down() {
		cluster ctl link down 8 for 5s || return
		injected 1
		within 3 link_is 8 down || return
		within 10 link_is 8 up
	}
	seconds=$((9 * slow)) amid_traffic 1 down
}

link_is() { [[ $(on "$1" cat /sys/class/sci/sci0/link/state) == "$2" ]]; }

# start node 8, whose processes have died with it, and the processes on it
node_8_returns() {
	local i
	for i in $(ids); do
		((i != 8)) || continue
		wait "${job[owner-8-$i]}"
	done
	wait "${job[listener-8-4]}"
	cluster start 8 || return
	# in a pool the node waits until it is expelled, if it boots within its old lease
	within 60 link_is 8 up || return
	serve_all
}

serve_all() {
	local i
	for i in $(ids); do
		((i == 8)) || serve 8 "$i" "$((i != 4))"
	done
}

case_a_machine_is_killed_and_returns() {
	local more=$seconds
	kill_it() {
		cluster kill 8 || return
		injected 1
		node_8_returns
	}
	seconds=$((boot_seconds * slow + more)) amid_traffic 1 repeated "$more" kill_it
}

# the rebooting kernel stops a card into which other nodes store
case_a_machine_reboots_and_returns() {
	reboot_it() {
		SCI_EXEC_LIMIT=60 on 8 'reboot -f'
		injected 1
		within 60 has_ended 8 || return
		grep 'reboot: Restarting system' "$D/8/console.log" || return
		node_8_returns
	}
	seconds=$((boot_seconds * slow)) amid_traffic 1 reboot_it
}

has_ended() { ! kill -0 "$(<"$D/$1/qemu.pid")"; }

case_the_switch_is_restarted() {
	restart() {
		count_faults
		cluster switch kill || return
		injected 1
		sleep 1
		cluster switch start || return
		within 20 link_is 8 up
	}
	seconds=$((8 * slow)) amid_traffic 1 restart
}

case_garbage_from_strangers() {
	garbage() {
		local i
		for i in $(ids); do
			cluster ctl garbage "$i" 2000 || return
			injected 2000
		done
	}
	amid_traffic 0 garbage
}

# node 8's kernel drops garbage of node 4's kernel, and serves other nodes
case_garbage_from_a_peers_kernel() {
	garble() {
		cluster ctl set 4 garble 500000 for 3s
	}
	seconds=$((8 * slow)) amid_traffic 1 garble
}

modules_unload() { on "$1" "rmmod sci_${kind/ivshmem/pool} && rmmod sci"; }

# NODE [OPTION]: OPTION is one of the driver
modules_load() {
	on "$1" "option=${2-}"' && while read -r m o; do
			[[ $m != *_* ]] || o="$o $option"
			insmod $m $o || exit
		done </vm/modules
		chmod 666 /dev/sci*' || return
	within 20 link_is "$1" up
}

case_modules_are_loaded_anew() {
	anew() {
		local i
		# an open device keeps the module loaded
		stop_servers
		for i in $(ids); do
			((i == 8)) || wait "${job[owner-8-$i]}"
		done
		wait "${job[listener-8-4]}"
		modules_unload 8 && sleep 1 && modules_load 8 || return
		injected 1
		serve_all
	}
	seconds=$((8 * slow)) amid_traffic 1 anew
}

case_the_card_is_pulled_and_put_in() {
	pull() {
		local i
		cluster monitor 8 device_del sci || return
		injected 1
		within 20 card_is 8 gone || return
		stop_servers
		for i in $(ids); do
			((i == 8)) || wait "${job[owner-8-$i]}"
		done
		wait "${job[listener-8-4]}"
		cluster monitor 8 device_add "$(cat "$D/8/adapter")" || return
		within 20 card_is 8 there || return
		on 8 chmod 666 /dev/sci0
		within 20 link_is 8 up || return
		serve_all
	}
	seconds=$((15 * slow)) amid_traffic 1 pull
}

card_is() {
	if [[ $2 == gone ]]; then on "$1" '[ ! -e /dev/sci0 ]'; else on "$1" '[ -e /dev/sci0 ]'; fi
}
