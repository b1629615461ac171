# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# shellcheck shell=bash
# Keeps folders that take long to make in $SCI_CACHE (~/.cache/libsci).

cache=${SCI_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/libsci}

# NAME COMMAND...: prints the folder NAME of the cache.  If it does not exist, the
# command fills $tmp, which is then renamed.  A lock makes a second caller wait.  A
# caller that is killed leaves only $tmp.
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
