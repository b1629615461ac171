# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# shellcheck shell=bash disable=SC2154,SC2016,SC2317
# Cases without faults. Part of scripts/cluster-check.

case_each_node_knows_itself_and_its_link() {
	local i info
	for i in $(ids); do
		info=$(on "$i" sci info) || return
		echo "$info"
		grep -Eq "^adapter 0 +${kind/ivshmem/pool}, /dev/sci0, node $i, link up" <<<"$info" || return
	done
}

case_each_node_sees_all_others() {
	local i k
	for i in $(ids); do
		begin "serve-$i" "$i" timeout 120 sci ping --serve
	done
	for i in $(ids); do
		for k in $(ids); do
			within 10 on "$i" timeout 20 sci ping -c 100 "$k" || return
		done
		[[ $(on "$i" sci nodes | awk 'NR > 1 { print $1 }' | xargs) == "$(ids | xargs)" ]] || {
			on "$i" sci nodes
			return 1
		}
	done
	abandon
}

case_sysfs_of_all_nodes_is_readable() {
	local i
	for i in $(ids); do
		on "$i" 'cd /sys/class/sci/sci0/ && find . -type f -perm -400 ! -path "*/device/*" |
			while read -r f; do cat "$f" >/dev/null || echo "$f"; done' >"$tmp/case/sysfs-$i" ||
			return
		[[ ! -s $tmp/case/sysfs-$i ]] || return
		on "$i" 'cat /sys/kernel/debug/sci/sci0/*' >/dev/null || return
	done
}

case_a_file_is_sent() {
	local sum got
	sum=$(on 4 'head -c 5000001 /dev/urandom >/tmp/file; md5sum </tmp/file') || return
	begin recv 8 'mkdir -p /tmp/got; cd /tmp/got; timeout 60 sci recv'
	on 4 'timeout 60 sci send -v /tmp/file 8' || return
	end recv || return
	got=$(on 8 'md5sum </tmp/got/file; rm -r /tmp/got') || return
	echo "$sum, $got"
	echo "# verified 1 files 5000001"
	[[ $sum == "$got" ]]
}

# scripts/cluster-check compares both data paths at the end, if both have been measured.
case_messages_are_measured() {
	begin serve 8 'timeout 200 sci bench --serve'
	measured '' 8,64,1024,16384,131072 && measured --stream 64,4096,131072 || return
	abandon
}

# OPTION SIZES: measure as soon as the server of `sci bench` answers
measured() {
	SCI_EXEC_LIMIT=200 within 60 on 4 "sci bench $1 --peer 8 -R 1 -t 0.2 -S $2" || return
	sed 's/^/= /' "$tmp/within"
	awk -v what="${1:-ping-pong}" '$1 ~ /^[0-9]+$/ { print what, $1, $2, $5 }' "$tmp/within" |
		sed 's/^--//' >>"$speeds.$path.new"
}
