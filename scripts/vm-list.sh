# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# shellcheck shell=bash
# The host's side of a list of tests; the guest's is vm-tests.  Part of vm,
# whose variables it uses.
# shellcheck disable=SC2154

# PATH: it is a test.  A build folder may also have programs whose source was removed
# or became a part of other tests.
is_test() {
	[[ $1 != selftests/* ]] ||
		[[ -e $here/../$1.c && ! -e $here/../$1.h ]]
}

# LIST: prints one line per program, with its path in the build folder
list_expand() {
	local line words more i f found
	while read -ra words; do
		line=
		for ((i = 0; i < ${#words[@]}; i++)); do
			[[ ${words[i]} == *=* ]] || break
			line+="${words[i]} "
		done
		((i < ${#words[@]})) || continue
		found=
		for f in "$build"/${words[i]}; do
			[[ -x $f && ! -d $f ]] || continue
			is_test "${f#"$build"/}" || continue
			more=("${words[@]:i+1}")
			echo "$line$f${more[*]:+ ${more[*]}}"
			found=y
		done
		# a missing program fails in the machine, as a test point
		[[ -n $found || ${words[i]} == *[*?[]* ]] ||
			echo "$line$build/${words[*]:i}"
	done < <(sed 's/#.*//' "$1")
}

list_wants_mpi() {
	sed 's/#.*//' "$1" | grep -Eq '(^| )(ranks|nodes)='
}

# FOLDER in selftests: prints the programs and libraries that its tests execute
tests_execute() {
	case $1 in
	pvm)	ls "$build/pvmd3" ;;
	smi)	ls "$build/smirun" ;;
	team)	ls "$build/sci" ;;
	net)	type -P ip tc || : ;;
	esac
}

list_prepare() {
	local f folder
	list_expand "$1" >"$stage/vm/list"
	# empty, too, if LIST is a pipe: list_wants_mpi() has read it
	[[ -s $stage/vm/list ]] || die "no tests in $1"
	cp "$stage/vm/list" "$log/list"
	while read -r f; do
		[[ ! -e $f ]] || files+=("$f")
	done < <(grep -oE "(^| )$build/[^ ]+" "$log/list" | tr -d ' ' | sort -u)
	while read -r folder; do
		mapfile -t -O ${#files[@]} files < <(tests_execute "$folder")
	done < <(grep -oE "$build/selftests/[^/ ]+" "$log/list" | sed 's#.*/##' | sort -u)
}

# TAP.LOG: prints the machine's points with numbers, and a failure for what did not run
list_results() {
	awk -v build="$build/" -v vm="vm $flavour" '
	FILENAME ~ /list$/ {
		gsub(build, "")
		owed[FNR] = $0
		next
	}
	{ sub(/\r$/, "") }
	/^# done / { done[$3] = 1; print "# took " $4 " s: " vm ": " owed[$3]; next }
	/^# end$/ { end = 1; next }
	/^(not )?ok - / { sub(/ok/, "ok " ++n); bad += /^not/ && !/# TODO/ }
	{ print }
	END {
		for (i = 1; i in owed; i++)
			if (!(i in done)) {
				print "not ok " ++n " - " owed[i] ": was not run to its end"
				bad++
			}
		if (!end) {
			print "not ok " ++n " - the machine ran to its end"
			bad++
		}
		print "1.." n
		exit bad > 0
	}' "$log/list" "$1"
}
