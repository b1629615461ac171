# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# shellcheck shell=bash
# What is big and made once stays in $SCI_CACHE.

cache=${SCI_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/libsci}

# NAME COMMAND...: prints the folder NAME of the cache.  If it is not there, the
# command fills $tmp, which becomes it; two who ask at once wait for each other,
# and one who is killed leaves nothing that looks complete.
cached() {
	local dir=$cache/$1 name=$1 start
	shift
	if [[ ! -e $dir ]]; then
		mkdir -p "$cache"
		exec 9>"$cache/.$name.lock"
		flock -n 9 || { echo "$name: another makes it; waiting" >&2; flock 9; }
	fi
	if [[ ! -e $dir ]]; then
		tmp=$dir.tmp start=$SECONDS
		rm -rf "$tmp"
		trap 'rm -rf "$tmp"' EXIT
		mkdir "$tmp"
		echo "making $dir, once" >&2
		"$@"
		mv "$tmp" "$dir"
		echo "made in $((SECONDS - start)) s" >&2
	fi
	exec 9>&-
	echo "$dir"
}
