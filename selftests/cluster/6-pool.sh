# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# shellcheck shell=bash disable=SC2034,SC2154,SC2016,SC2317
# Cases with memory shared by all machines. Part of scripts/cluster-check.

lease=${SCI_POOL_LEASE:-12}
pool_lease=(--lease "$lease" --quarantine $((2 * lease)))

needs_pool() { [[ $kind == ivshmem ]] || skip "without adapters"; }

# NODE: it has another adapter, while programs still hold the removed one open
joined_again() { on "$1" 'dmesg | grep -q "has been expelled" && ls /dev/sci[0-9]*' && ! left "$1"; }

# Root moves the namespace to nd_pmem, the driver of a block device, and back.
case_pool_namespace_of_an_nvdimm() {
	needs_pool || return
	[[ $dax ]] || skip "without an NVDIMM" || return
	local drivers=/sys/bus/nd/drivers
	on 8 "echo namespace0.0 >$drivers/sci_pool/unbind && [ ! -e /dev/sci0 ]" || return
	within 20 left 8 || return
	on 8 'for m in nd_btt nd_pmem; do insmod "$(find / -xdev -name "$m.ko")" || exit; done'
	on 8 "[ -e $drivers/nd_pmem/namespace0.0 ] ||
		echo namespace0.0 >$drivers/nd_pmem/bind" || return
	on 8 "$build/sci pool show /dev/pmem0" | tee "$tmp/case/show" || return
	grep -q '^8 .*left' "$tmp/case/show" || return
	on 8 "! $build/sci pool format /dev/pmem0" || return
	on 8 "echo namespace0.0 >$drivers/nd_pmem/unbind && rmmod nd_pmem nd_btt &&
		echo namespace0.0 >$drivers/sci_pool/bind && chmod 666 /dev/sci0" || return
	within 30 link_up 8
}

# NODE: prints how often its adapter was interrupted
doorbell_count() { on "$1" 'awk "/sci_pool/ { n += \$2 } END { print n + 0 }" /proc/interrupts'; }

case_pool_machines_interrupt_each_other() {
	needs_pool || return
	[[ $doorbells ]] || skip "without doorbells" || return
	local i before=()
	for i in 4 8; do before[i]=$(doorbell_count "$i"); done
	seconds=$((2 * slow)) amid_traffic 0 true || return
	for i in 4 8; do
		echo "= node $i: $(($(doorbell_count "$i") - before[i])) interrupts"
		(($(doorbell_count "$i") > before[i])) || return
	done
}

# The machine hangs for longer than its lease, but less than the quarantine.
case_pool_a_machine_hangs_and_finds_itself_expelled() {
	needs_pool || return
	local more=$seconds
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
	seconds=$((20 * slow + more)) amid_traffic 1 repeated "$more" hang
}

# ARGUMENT...: unloads all modules, and formats the pool
format_again() {
	local i
	for i in $(ids); do
		on "$i" '[ ! -e /sys/module/sci_pool ]' || within 60 modules_unload "$i" || return
	done
	"$build/sci" pool format --force ${SCI_POOL_INCOHERENT:+--incoherent} "$@" "$D/pool"
}

# Formats the pool as at the start, and loads the modules.
pool_anew() {
	local i
	format_again "${pool_lease[@]}" || return
	for i in $(ids); do modules_load "$i" || return; done
}

# Marks node 8 as expelled, every 5 ms for a minute.
expel_often() {
	perl -e '
	open my $f, "+<", $ARGV[0] or die "$ARGV[0]: $!";
	for (1 .. 12000) {
		sysseek $f, 4096 + 128 + 4, 0;	# the flag POOL_SLOT_ACTIVE of the slot
		syswrite $f, pack "L<", 0 or die $!;
		select undef, undef, undef, 0.005;
	}' "$D/pool"
}

# The last heartbeats of a node that leaves find that it has been expelled.
case_pool_a_machine_is_expelled_while_it_leaves() {
	needs_pool || return
	[[ ! ${SCI_POOL_INCOHERENT-} ]] || skip "others expel in tables of their own" || return
	local i
	# heartbeats every 10 ms
	format_again --lease 0.04 --quarantine 1 || return
	expel_often &
	for i in {1..10}; do
		if ! on 8 'while read -r m o; do insmod $m $o || exit; done </vm/modules' ||
			! within 20 modules_unload 8; then
			kill $!
			return 1
		fi
	done
	kill $!
	injected 10
	pool_anew
}

# The machine hangs while the pool is formatted, with other tables, and then has a new adapter.
case_pool_is_formatted_while_a_machine_hangs() {
	needs_pool || return
	kill -STOP "$(<"$D/8/qemu.pid")" || return
	local i ok=y
	for i in $(ids); do
		((i == 8)) || within 60 modules_unload "$i" || ok=
	done
	"$build/sci" pool format --force ${SCI_POOL_INCOHERENT:+--incoherent} "${pool_lease[@]}" \
		--chunk 16K "$D/pool" || ok=
	for i in $(ids); do
		((i == 8)) || modules_load "$i" || ok=
	done
	kill -CONT "$(<"$D/8/qemu.pid")"
	[[ $ok ]] || return
	injected 1
	within 60 is_member 8 && within 20 on 8 'chmod 666 /dev/sci*' || return
	begin serve-4 4 timeout 120 sci ping --serve
	within 30 on 8 timeout 20 sci ping -c 10 4 || return
	abandon
	pool_anew
}

# The pool is formatted for fewer machines, and then for all of them.
case_pool_a_machine_waits_for_a_pool_with_its_slot() {
	needs_pool || return
	local i
	for i in $(ids); do
		((i == 8)) || within 60 modules_unload "$i" || return
	done
	"$build/sci" pool format --force ${SCI_POOL_INCOHERENT:+--incoherent} "${pool_lease[@]}" \
		--nodes 1 "$D/pool" || return
	injected 1
	within 60 on 8 'dmesg | grep "node 8: cannot join: -EINVAL"' || return
	"$build/sci" pool format --force ${SCI_POOL_INCOHERENT:+--incoherent} "${pool_lease[@]}" \
		"$D/pool" || return
	within 60 is_member 8 || return
	pool_anew
}

# NODE: it has joined the pool, and soon has an adapter
is_member() { "$build/sci" pool show "$D/pool" | grep "^$1 .*active"; }

# NODE: it has left the pool
left() { "$build/sci" pool show "$D/pool" | grep "^$1 .*left"; }

# FILE OPTION...: runs NetPIPE between nodes 4 and 8, and writes its table into FILE
netpipe_between_machines() {
	local mpi_options=(--oversubscribe --mca plm_rsh_agent "$PWD/scripts/cluster-rsh"
		--mca oob_tcp_if_include 10.1.0.0/16 "${@:2}") mpi_windows=()
	on 4 "$(mpirun 1 "4 8" NPopenmpi -p 0 -u 1048576 -o /tmp/np.out)" >"$tmp/case/netpipe" 2>&1 &&
		on 4 'cat /tmp/np.out; rm /tmp/np.out' >"$1"
}

# MPI over the pool beside MPI over TCP between virtio network cards of the same machines.
# Columns of NetPIPE's table: bytes, Mbit/s, seconds for one way.
case_pool_mpi_beside_tcp() {
	needs_pool && needs_two_nodes || return
	type -P NPopenmpi >/dev/null || skip "no package netpipe-openmpi" || return
	netpipe_between_machines "$tmp/case/pool" -x FI_PROVIDER_PATH --mca pml cm --mca mtl ofi \
		--mca mtl_ofi_provider_include sci || return
	netpipe_between_machines "$tmp/case/tcp" --mca pml ob1 --mca btl tcp,self \
		--mca btl_tcp_if_include 10.1.0.0/16 || return
	awk -v shown=" 8 64 512 4096 32768 262144 1048576 " '
	NR == FNR { pool[$1] = $3; next }
	!($1 in pool) || !pool[$1] { print "no figure of the pool for " $1 " bytes"; exit bad = 1 }
	index(shown, " " $1 " ") {
		printf "= %d bytes: %.1f us over the pool, %.1f us over TCP (%.1f times)\n", $1,
			pool[$1] * 1e6, $3 * 1e6, $3 / pool[$1]
		n++
	}
	END { exit bad || n != 7 }' "$tmp/case/pool" "$tmp/case/tcp"
}

# FILE N: stores N random words into the tables of a pool, in 20 s, every other one into the
# slots and bells
random_words() {
	perl -e '
	my ($file, $n) = @ARGV;
	open my $f, "+<", $file or die "$file: $!";
	sysread $f, my $header, 64;
	my $end = unpack "Q<", substr $header, 56;
	srand 1;
	for my $i (1 .. $n) {
		my $at = 4096 + 8 * int rand(($i % 2 ? 8192 : $end - 4096) / 8);
		my @values = (0, ~0, int rand 2**32, int(rand 2**32) << 32 | int rand 2**32);
		my $value = $values[rand 5];
		sysseek $f, $at, 0;
		if (!defined $value) {		# change one bit
			sysread $f, my $old, 8;
			sysseek $f, $at, 0;
			$value = unpack("Q<", $old) ^ 1 << int rand 64;
		}
		syswrite $f, pack "Q<", $value or die $!;
		select undef, undef, undef, 0.02 if !($i % 1000);
	}' "$@"
}

# A machine stores a million random words: kernels report nothing, modules can be unloaded, and
# a pool that is formatted again works.
case_pool_random_words_of_a_third_party() {
	needs_pool || return
	local i
	for i in $(ids); do
		begin "ping-$i" "$i" "$build/sci ping --serve & for n in {1..40}; do
			timeout 2 $build/sci ping 4; timeout 2 $build/sci ping 8; done; kill \$!"
	done
	random_words "$D/pool" 1000000 || return
	injected 1000000
	abandon
	for i in $(ids); do
		on "$i" 'killall sci; echo "= node '"$i"': expelled $(dmesg | grep -c "been expelled") times"'
	done
	pool_anew
}
