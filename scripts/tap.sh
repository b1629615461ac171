# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# shellcheck shell=bash
# Functions for scripts that print TAP: `try NAME COMMAND...` per point, then `plan`.

tap_n=0
tap_bad=0

# NAME COMMAND...: a test point that passes if the command succeeds; else shows its output
try() {
	local name=$1 out rc
	shift
	tap_n=$((tap_n + 1))
	set +e			# in an `||` list, set -e would not hold inside
	out=$(set -e; "$@" 2>&1 </dev/null)
	rc=$?
	set -e
	if ((rc == 0)); then
		echo "ok $tap_n - $name"
	else
		echo "not ok $tap_n - $name"
		tap_bad=1
		[[ -z $out ]] || printf '%s\n' "$out" | sed 's/^/# /'
	fi
}

# TOOL NAME COMMAND...: as `try`, but skips the point if the tool is not installed
try_with() {
	if command -v "$1" >/dev/null; then
		try "${@:2}"
	else
		tap_n=$((tap_n + 1))
		echo "ok $tap_n - $2 # SKIP no $1"
	fi
}

# Shows its input and succeeds if there is none.
nothing() {
	awk '{ print } END { exit NR > 0 }'
}

# Succeeds if the command does and prints nothing.
silent() {
	local out
	out=$("$@" 2>&1) || { echo "$out"; echo "exit code not 0"; return 1; }
	[[ -z $out ]] || { echo "$out"; return 1; }
}

plan() {
	echo "1..$tap_n"
	exit "$tap_bad"
}
