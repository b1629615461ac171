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

# Hosts can be added. Programs print the same output as under Debian's PVM on as many hosts
# in a network namespace. `halt` leaves no process.
case_pvm_programs_of_debian() {
	local i add='' files
	[[ -x $pvm_console && -x /usr/bin/hello.pvm ]] || skip "no packages pvm, pvm-examples" || return
	unshare -rn true 2>/dev/null || skip "no network namespaces for users" || return
	mkdir -p "$tmp/pvm/debian" "$tmp/pvm/ours"
	scripts/check-pvm --record "$tmp/pvm/debian" "$nodes" "$build" || return
	pvm_prepare || return
	for i in $(ids); do
		((i == 4)) || add+=" 10.1.$((i / 256)).$((i % 256))"
	done
	pvm "add$add\nconf\nquit\n" >"$tmp/case/conf"
	[[ $(grep -c LINUX64 "$tmp/case/conf") == "$nodes" ]] || return
	SCI_EXEC_LIMIT=$((1800 * slow)) on 4 "$pvm_env PROGRAM_LIMIT=$((120 * slow))
		scripts/pvm-programs /tmp/pvm" || return
	on 4 'cd /tmp/pvm && tar c . && rm -r /tmp/pvm' | tar x -C "$tmp/pvm/ours" || return
	pvm 'ps -a\nhalt\n' >"$tmp/case/halt"
	for i in $(ids); do
		within 10 pvm_gone "$i" || return
	done
	files=("$tmp/pvm/ours"/*)
	echo "= ${#files[@]} programs on $nodes machines"
	scripts/check-pvm --compare "$tmp/pvm/debian" "$tmp/pvm/ours"
}
