# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# shellcheck shell=bash disable=SC2154,SC2016,SC2317
# Cases with Debian's Open MPI. Part of scripts/cluster-check. mpirun starts ranks over TCP
# (cluster-rsh). Messages must go over SCI: all other transports of Open MPI are disabled,
# and the cards count bytes.

mpi_options=(-x FI_PROVIDER_PATH --oversubscribe --mca plm_rsh_agent "$PWD/scripts/cluster-rsh"
	--mca oob_tcp_if_include 10.1.0.0/16 --mca pml cm --mca mtl ofi
	--mca mtl_ofi_provider_include sci)
mpi_windows=(--mca osc pt2pt --mca btl self)

# RANKS NODES PROGRAM...: print the command for node 4, with RANKS ranks on each node
mpirun() {
	local ranks=$1 i hosts=() n=0
	for i in $2; do
		hosts+=("10.1.$((i / 256)).$((i % 256))")
		n=$((n + ranks))
	done
	printf '%q ' timeout -k 5 "$((400 * slow))" mpirun.openmpi "${mpi_options[@]}" \
		"${mpi_windows[@]}" -H "$(IFS=,; echo "${hosts[*]}")" -np "$n" --map-by "ppr:$ranks:node" "${@:3}"
}

# NODE: print bytes sent and received and packets sent by the card, bytes sent by Ethernet
traffic_of() {
	[[ $kind == pci ]] || { on "$1" 'echo 0 0 0 $(($(cat /sys/class/net/eth*/statistics/tx_bytes | paste -sd +)))'; return; }
	on "$1" 'cd /sys/class/sci/sci0/adapter
		echo $(($(cat store_bytes dma_bytes | paste -sd +))) $(cat received_bytes) \
			$(($(cat writes_16 writes_64 writes_128 dma_writes | paste -sd +))) \
			$(($(cat /sys/class/net/eth*/statistics/tx_bytes | paste -sd +)))'
}

# RANKS BYTES PROGRAM [PATTERN...]: all tests of PROGRAM pass on all nodes, each card sends
# and receives at least BYTES bytes, and Ethernet sends little
mpi_passes() {
	local ranks=$1 bytes=$2 i before=() now sent received packets ether status=0
	shift 2
	for i in $(ids); do
		before[i]=$(traffic_of "$i") || return
	done
	SCI_EXEC_LIMIT=$((420 * slow)) on 4 "$(mpirun "$ranks" "$(ids | xargs)" \
		"$build/selftests/mpi/$1" "${@:2}")" >"$tmp/case/mpi" 2>&1 || {
		echo "exit status $?"
		return 1
	}
	awk '/^1\.\./ { planned = substr($0, 4) + 0 }
		/^ok / { n++ }
		# "needs 2 ranks": mpirun has started single processes
		/^not ok / || /SKIP needs 2 ranks/ { print; bad++ }
		END { print "= " n + 0 " tests of " planned + 0; exit bad || !n || n != planned }
	' "$tmp/case/mpi" || return
	for i in $(ids); do
		now=$(traffic_of "$i") || return
		read -r sent received packets ether < <(paste -d ' ' \
			<(tr ' ' '\n' <<<"$now") <(tr ' ' '\n' <<<"${before[i]}") |
			awk '{ print $1 - $2 }' | xargs)
		echo "= node $i: $sent bytes in $packets packets; $received received; $ether by Ethernet"
		((ether < 200000)) || status=1
		# the direct data path has no packets
		[[ $path == packet ]] || continue
		((sent >= bytes && received >= bytes && packets * 128 >= bytes)) || status=1
	done
	within 20 mpi_is_gone "$(ids | xargs)" || return
	return "$status"
}

# NODES: no process of Open MPI or of a rank runs there
mpi_is_gone() {
	local i
	for i in $1; do
		! on "$i" 'ls -l /proc/[0-9]*/exe 2>/dev/null | grep -E "openmpi|orted|selftests/mpi/"' ||
			return
	done
}

no_rank() { ! on "$1" pidof NPopenmpi; }

# These cases spend most of their time on bytes, which QEMU moves one at a time.
needs_two_nodes() {
	((nodes == 2 && slow == 1)) || skip "on two nodes, of the kernel that is fast"
}

case_mpi_communicators() { mpi_passes 1 100000 communicators; }

# 16 MiB, 1 MiB and less, in both directions
case_mpi_messages() {
	needs_two_nodes && mpi_passes 1 $(((16 + 1) << 20)) point_to_point standard_send
}

# With packets, skip tests that only send the same data in other ways.
case_mpi_more_messages() {
	local choice=()
	[[ $path != packet ]] || choice=(synchronous_isend '[!bimprs]*' 'p[ei]*' 'many*')
	needs_two_nodes && mpi_passes 1 $(((16 + 1) << 20)) point_to_point "${choice[@]}"
}

case_mpi_datatypes() { needs_two_nodes && mpi_passes 1 1000000 datatypes; }

case_mpi_collectives() { needs_two_nodes && mpi_passes 1 1000000 collectives; }

# as messages; the next case uses transfers of the provider
case_mpi_one_sided() { needs_two_nodes && mpi_passes 1 $((2 << 20)) one_sided; }

# Without flush_local: with osc/rdma of Open MPI 4.1, a flush of all ranks ignores locks of
# single ranks.
case_mpi_one_sided_by_transfers() {
	local mpi_windows=(--mca osc rdma --mca btl "ofi,self" --mca btl_ofi_provider_include sci)
	needs_two_nodes && mpi_passes 1 $((2 << 20)) one_sided '[!f]*' 'fetch*'
}

case_mpi_threads() { needs_two_nodes && mpi_passes 1 1000000 threads; }

case_mpi_two_ranks_on_each() {
	needs_two_nodes && mpi_passes 2 100000 point_to_point 'any*' receive_after_arrival \
		'*_to_one' 'one_to_*' && mpi_passes 2 10000 communicators 'split*' 'create*' \
		group_operations 'cartesian*'
}

# The surviving rank ends by the error of its receive. Open MPI's runtime notices nothing,
# because TCP waits for a quarter of an hour. Then a short TCP timeout makes mpirun or orted
# notice, too.
mpi_outlives() {
	local left=$1 dead=$2 status=0
	begin mpirun 4 "$(mpirun 1 "4 8" NPopenmpi -o /tmp/np.out -n 1000000000 -l 64 -u 64)"
	within 60 grep -q "main loop" "$tmp/case/mpirun" || return
	no_rank "$left" && return 1
	cluster kill "$dead" || return
	injected 1
	within 30 no_rank "$left" || return
	on "$left" 'echo 4 >/proc/sys/net/ipv4/tcp_retries2' || return
	within 60 mpi_is_gone "$left" || return
	on "$left" 'echo 15 >/proc/sys/net/ipv4/tcp_retries2' || return
	within 30 unused "$left" || return
	wait "${job[mpirun]}" || status=$?
	unset "job[mpirun]"
	# 125: the node is gone. 124: the command did not end.
	echo "mpirun: exit status $status"
	case $left in
	4)	((status && status != 124 && status != 125)) || return ;;
	esac
	cluster start "$dead" && within 30 link_is "$dead" up
}

case_mpi_the_machine_of_a_rank_dies() { mpi_outlives 4 8; }

case_mpi_the_machine_of_mpirun_dies() { mpi_outlives 8 4; }
