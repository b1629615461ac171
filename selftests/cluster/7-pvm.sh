# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# shellcheck shell=bash disable=SC2154,SC2016,SC2317
# A case with unmodified programs of Debian's PVM. Part of scripts/cluster-check. The nodes
# are hosts of a PVM machine. Daemons and tasks communicate over SCI; cluster-rsh adds the
# hosts.

pvm_console=/usr/lib/pvm3/lib/pvm
pvm_env="export HOME=/root PVM_ROOT=/usr/lib/pvm3 PVM_RSH=/tmp/pvm-rsh PVM_TMP=/tmp SCI_FABRIC=dev
	LD_LIBRARY_PATH=$build PVM_DPATH='env HOME=/root LD_LIBRARY_PATH=$build $build/pvmd3'"
pvm_env=${pvm_env//$'\n'/}

# COMMANDS: run commands of the PVM console on node 4
pvm() {
	on 4 "$pvm_env; printf %b $(printf %q "$1") | timeout $((120 * slow)) $pvm_console -n10.1.0.4"
}

# Install a remote shell that passes on the secret of a new daemon.
pvm_prepare() {
	local i
	on -i 4 'cat >/tmp/pvm-rsh && chmod +x /tmp/pvm-rsh' <<-END || return
		#!/bin/bash
		host=\$1 secret=\$(cat)
		shift
		exec $PWD/scripts/cluster-rsh "\$host" "printf %s \$secret | \$*"
		END
	for i in $(ids); do
		on "$i" 'mkdir -p /root/pvm3/bin && ln -sfn /usr/bin /root/pvm3/bin/LINUX64' || return
	done
}

pvm_gone() { on "$1" '! grep -l pvmd3 /proc/[0-9]*/comm'; }

# SEPARATOR: prints the addresses of the other nodes
pvm_others() {
	local i names=
	for i in $(ids | tail -n +2); do
		names+="$1"10.1.$((i / 256)).$((i % 256))
	done
	echo "${names#"$1"}"
}

# PATTERN [NAME=VALUE...]: begins tests of selftests/pvm/churn, whose hosts are the machines
pvm_churn() {
	local env="SCI_TEST_FABRIC=dev SCI_TEST_TIMEOUT=$((600 * slow)) ${*:2}"

	env+=" SCI_TEST_PVM_HOSTS=$(pvm_others ,)"
	SCI_EXEC_LIMIT=$((900 * slow)) begin churn 4 \
		"$pvm_env; export $env; $build/selftests/pvm/churn '$1'"
}

# NODES: waits for the tests that pvm_churn() has begun, and for the end of all daemons there
pvm_churn_end() {
	local i
	end churn || return
	sed -n 's/^# \(.*\(HostDelete\|descriptors\).*\)/= \1/p' "$tmp/case/churn"
	for i in $1; do
		within 10 pvm_gone "$i" || return
	done
}

# Hosts can be added. Programs print the same output as under Debian's PVM on as many hosts
# in a network namespace. `halt` leaves no process.
case_pvm_programs_of_debian() {
	local i picture='' files elsewhere="$PWD/scripts/cluster-rsh 10.1.0.8 $pvm_env;"
	[[ -x $pvm_console && -x /usr/bin/hello.pvm ]] || skip "no packages pvm, pvm-examples" || return
	unshare -rn true 2>/dev/null || skip "no network namespaces for users" || return
	mkdir -p "$tmp/pvm/debian" "$tmp/pvm/ours"
	scripts/check-pvm "${pvm_all[@]}" --record "$tmp/pvm/debian" "$nodes" "$build" || return
	[[ ! -e $tmp/pvm/debian/xep ]] || picture=$(<"$tmp/pvm/debian/xep")
	pvm_prepare || return
	pvm "add $(pvm_others ' ')\nconf\nquit\n" >"$tmp/case/conf"
	[[ $(grep -c LINUX64 "$tmp/case/conf") == "$nodes" ]] || return
	SCI_EXEC_LIMIT=$((1800 * slow)) on 4 "$pvm_env PROGRAM_LIMIT=$((120 * slow))
		export PROGRAM_PICTURE=$(printf %q "$picture") PROGRAM_ELSEWHERE=$(printf %q "$elsewhere")
		scripts/pvm-programs ${pvm_all[*]} /tmp/pvm" || return
	on 4 'cd /tmp/pvm && tar c . && rm -r /tmp/pvm' | tar x -C "$tmp/pvm/ours" || return
	pvm 'ps -a\nhalt\n' >"$tmp/case/halt"
	for i in $(ids); do
		within 10 pvm_gone "$i" || return
	done
	files=("$tmp/pvm/ours"/*)
	echo "= ${#files[@]} programs on $nodes machines"
	scripts/check-pvm --compare "$tmp/pvm/debian" "$tmp/pvm/ours"
}

# TASKS: QEMU is killed by SIGKILL while so many tasks talk. The daemons notice it because the
# link of the dead machine goes down.
pvm_machine_dies() {
	local dead
	((nodes > 2)) || skip "needs three machines" || return
	dead=$(ids | sed -n 3p)
	pvm_prepare || return
	on 4 'rm -f /tmp/pvm-kill' || return
	pvm_churn 'hosts_come_and_go_*' SCI_TEST_PVM_KILL=/tmp/pvm-kill SCI_TEST_PROCESSES="$1"
	within 300 on 4 'test -e /tmp/pvm-kill' || return
	cluster kill "$dead" || return
	pvm_churn_end "$(ids | grep -vx "$dead")" || return
	cluster start "$dead"
}

case_pvm_the_machine_of_a_host_dies() { pvm_machine_dies 100; }

# Shows the time of the notification itself: 100 tasks keep the daemons from the processors.
case_pvm_the_machine_of_a_host_with_few_tasks_dies() { pvm_machine_dies 12; }

# 1,000 tasks begin on all machines, and exit or are killed.
case_pvm_tasks_come_and_go() {
	pvm_prepare || return
	pvm_churn 'tasks_that_end_*'
	pvm_churn_end "$(ids)"
}
