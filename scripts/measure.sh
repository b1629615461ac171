# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# shellcheck shell=bash disable=SC2154,SC2034
#
# For scripts that compare systems in interleaved runs of the programs in
# selftests/bench/peers.  Such a script sets
#
#	stem		of its files in $out, and its name: bench-$stem
#	rounds metrics time_s
#	groups		names for several metrics: "NAME=METRIC,METRIC ..."
#	msg		libsci's program
#	unprobed	metrics whose programs print no probes: each run is probed from outside
#
# and defines settings(), which prints a line per setting:
#
#	KIND SYSTEM/SETTING METRICS PROGRAM...
#
# where METRICS may be a group's name and variables may come before the program;
# sizes_of METRIC, which prints a size per line; and programs(), which compiles into
# $bin.  measure_all writes every sample to $out/$stem-raw.tsv, and the medians of the
# samples that count, by class of placement, to $out/$stem-all.tsv.
#
# The CPUs of a virtual machine move: they may be two hardware threads of a core, and
# later two cores far apart.  So a probe, the ping-pong of a word, runs before and after
# each sample (see measure.h).  Its time in us and the two limits in PLACES give the
# class: smt, l3 (two cores of one cache) or far.  Samples whose two probes differ in
# class do not count.  A core may also be shared with another virtual machine: then the
# probe's sums, the pace, take longer.  Samples whose pace is more than a seventh above
# the lower quartile of their class do not count.  A setting has a value in a class if it
# has at least $enough samples there; values are compared within a class only.  Settings
# without a value in the most frequent class of their point get more rounds, until time_s.
build=${1:?usage: bench-$stem BUILD_DIR}
limit_s=60		# time limit of a run
slow_s=10		# a run that takes longer is not repeated
enough=5		# samples of a value
PLACES=${PLACES:-0.035 0.12}
out=$build/bench
bin=$out/peers
src=selftests/bench/peers

# The programs bind themselves to CPUs, so mpirun does not.
ompi="mpirun.openmpi --allow-run-as-root --oversubscribe --bind-to none"
vader="--mca pml ob1 --mca btl self,vader"
nocopy="--mca btl_vader_single_copy_mechanism none"
bigfrag="--mca btl_vader_eager_limit 16384 --mca btl_vader_max_send_size 131072"
bigseg="UCX_PROTO_ENABLE=y UCX_POSIX_SEG_SIZE=32768 UCX_POSIX_FIFO_SIZE=128"

die()
{
	echo "bench-$stem: $*" >&2
	exit 1
}

# shellcheck disable=SC2016	# awk's variables
awk_median='
function sort(v, n,   i, j, t)
{
	for (i = 2; i <= n; i++)
		for (j = i; j > 1 && v[j - 1] > v[j]; j--) {
			t = v[j]; v[j] = v[j - 1]; v[j - 1] = t
		}
}
function median(v, n)
{
	sort(v, n)
	return (v[int((n + 1) / 2)] + v[int(n / 2) + 1]) / 2
}'

# shellcheck disable=SC2016	# awk's variables
awk_class='
function class_of(us)
{
	return us == "-" ? "-" : us < place[1] ? "smt" : us < place[2] ? "l3" : "far"
}
# Return the class of the sample in $0, a line of the raw file; "" if the class changed.
function class_here(   c)
{
	c = class_of($7)
	return c == class_of($8) ? c : ""
}
BEGIN { split(places, place, " ") }'

# ---- settings ----

# METRIC: prints kind, name and command of the settings that measure it.
settings_of()
{
	settings | awk -v m="$1" -v groups="$groups" '
	BEGIN {
		n = split(groups, g, " ")
		for (i = 1; i <= n; i++) {
			split(g[i], f, "=")
			all[f[1]] = f[2]
		}
	}
	index("," ($3 in all ? all[$3] : $3) ",", "," m ",") {
		$3 = ""
		print
	}'
}

# FIRST LAST: prints the powers of two from FIRST to LAST that SIZES selects.
seq_sizes()
{
	local s

	for ((s = $1; s <= $2; s *= 2)); do
		wanted_sizes "$s"
	done
}

wanted_sizes()
{
	local s

	for s in "$@"; do
		[[ -n ${SIZES:-} && " $SIZES " != *" $s "* ]] || echo "$s"
	done
}

# ---- building ----

compile()		# OUTPUT COMPILER SOURCE [LIBRARY...]
{
	"$2" -std=gnu11 -O2 -g -Wall -Wextra -Wno-stringop-overflow -I. \
		-o "$bin/$1" "$src/$3" "${@:4}" || die "$3 does not compile"
}

# ---- running ----

probe()
{
	"$bin/raw" probe
}

declare -A skip=()
bad_ours=
bad_peers=

# Appends the run's samples to the raw file. A slow or failed run is not repeated.
run()			# ROUND METRIC KIND NAME COMMAND...
{
	local round=$1 metric=$2 kind=$3 name=$4 own="" before=- after=- rc=0 begin sizes
	shift 4
	[[ -z ${skip[$name $metric]:-} ]] || return 0
	mapfile -t sizes < <(sizes_of "$metric")
	((${#sizes[@]})) || return 0
	[[ " ${unprobed:-} " != *" $metric "* ]] || own=yes
	[[ -z $own ]] || before=$(probe)
	begin=$SECONDS
	timeout -k 2 "$limit_s" env "$@" "$metric" "${sizes[@]}" \
		>"$tmp/values" 2>"$tmp/errors" </dev/null || rc=$?
	[[ -z $own ]] || after=$(probe)
	if ((SECONDS - begin > slow_s)); then
		skip[$name $metric]=slow
		echo "$metric $name" >>"$tmp/skip"
	fi
	if ((rc == 124 || rc == 137)) && [[ $metric == alltoall16_s ]]; then
		timed_out "$metric" "${sizes[@]}"
		rc=0
	fi
	awk -v r="$round" -v s="${name%%/*}" -v t="${name#*/}" -v before="$before" \
		-v after="$after" -v OFS='\t' '
	NF == 6 { print r, s, t, $1, $2, $3, $4, $5, $6 }
	NF == 3 { print r, s, t, $1, $2, $3, before, after, "-" }' \
		"$tmp/values" >>"$out/$stem-raw.tsv"
	((rc)) || return 0
	skip[$name $metric]=failed
	echo "$metric $name" >>"$tmp/skip"
	echo "bench-$stem: $name, $metric: exit code $rc" >&2
	sed "s/^/bench-$stem:   /" "$tmp/errors" | head -5 >&2
	if [[ $kind == peer || $kind == info ]]; then
		bad_peers+=" $name"
	else
		bad_ours+=" $name"
	fi
}

# Sizes that a run did not reach before its time limit get the limit as their value.
timed_out()		# METRIC SIZE...
{
	local metric=$1 s

	shift
	for s in "$@"; do
		grep -q "^$metric $s " "$tmp/values" ||
			echo "$metric $s $limit_s" >>"$tmp/values"
	done
}

one_round()		# ROUND METRIC [FILE]: only settings named there
{
	local i j n words
	local -a list

	mapfile -t list < <(settings_of "$2")
	n=${#list[@]}
	for ((i = 0; i < n; i++)); do
		j=$(((i + ($1 - 1) * 5) % n))
		read -ra words <<<"${list[j]}"
		[[ -z ${3:-} ]] || grep -qxF "$2 ${words[1]}" "$3" || continue
		run "$1" "$2" "${words[@]}"
	done
}

# ---- results ----

# Prints metrics and settings without a value in the most frequent class of their point.
lacking()
{
	awk -F '\t' -v enough="$enough" -v places="$PLACES" "$awk_class"'
	FNR == 1 { next }
	{
		point = $4 " " $5
		setting = $2 "/" $3
		at[point, setting] = point
		c = class_here()
		if (c == "")
			next
		n[point, setting, c]++
		if (++all[point, c] > all[point, most[point]])
			most[point] = c
	}
	END {
		for (key in at) {
			split(key, f, SUBSEP)
			if (n[key, most[at[key]]] < enough) {
				split(f[1], g, " ")
				print g[1], f[2]
			}
		}
	}' "$out/$stem-raw.tsv" | sort -u
}

make_up()
{
	local metric round=$rounds

	while lacking | { grep -vxF -f "$tmp/skip" || :; } >"$tmp/lacking" &&
	      [[ -s $tmp/lacking ]] &&
	      ((SECONDS < time_s && round < 3 * rounds)); do
		round=$((round + 1))
		printf 'once more, %d settings, %d s\n' \
			"$(wc -l <"$tmp/lacking")" "$SECONDS"
		for metric in $metrics; do
			one_round "$round" "$metric" "$tmp/lacking"
		done
	done
}

kinds()			# system/setting KIND
{
	settings | awk '{ print $2 "\t" $1 }'
}

# Prints the largest pace that counts, in ns, by class.
paces()
{
	awk -F '\t' -v OFS='\t' -v places="$PLACES" "$awk_class"'
	FNR > 1 && $9 != "-" && (c = class_here()) != "" { print c, $9 }' \
		"$out/$stem-raw.tsv" | sort -k 1,1 -k 2,2g |
	awk -v OFS='\t' -v pace="${PACE:-}" '
	{ v[$1, ++n[$1]] = $2 }
	END {
		for (c in n)
			print c, pace != "" ? pace : v[c, int(n[c] / 4) + 1] * 8 / 7
	}'
}

# Writes the medians of all settings by class to $out/$stem-all.tsv.
medians()
{
	paces >"$tmp/paces"
	awk -F '\t' -v OFS='\t' -v enough="$enough" -v places="$PLACES" \
		-v paces="$tmp/paces" -v counts="$tmp/counts" "$awk_median$awk_class"'
	BEGIN {
		while ((getline <paces) > 0)
			most[$1] = $2
	}
	NR == FNR { kind[$1] = $2; next }
	FNR == 1 { next }
	{
		all++
		c = class_here()
		if (c == "") {
			moved++
			next
		}
		if ($9 != "-" && $9 > most[c]) {
			shared++
			next
		}
		key = $4 OFS $5 OFS c OFS $2 "/" $3 OFS kind[$2 "/" $3]
		if (!(key in n))
			order[++keys] = key
		value[key, ++n[key]] = $6
	}
	END {
		print "metric", "size", "class", "setting", "kind", "median", "min", "max", "samples"
		for (i = 1; i <= keys; i++) {
			key = order[i]
			c = n[key]
			if (c < enough) {
				few += c
				continue
			}
			delete v
			for (j = 1; j <= c; j++)
				v[j] = value[key, j]
			m = median(v, c)
			print key, sprintf("%.5g", m), v[1], v[c], c
		}
		printf "%d samples; not counted: %d whose class changed, %d on shared " \
			"cores, %d of values with fewer than %d\n", all, moved,
			shared, few, enough >counts
	}' <(kinds) "$out/$stem-raw.tsv" >"$out/$stem-all.tsv"
}

# ---- main ----

# A script that has more to clean up redefines this.
measure_end()
{
	rm -rf "$tmp"
}

prepare()
{
	programs
	tmp=$(mktemp -d)
	trap measure_end EXIT
	: >"$tmp/skip"
	: >"$tmp/probe"
	export PEER_PROBE=$tmp/probe
	# The first usable CPUs: each process of a program takes one.
	cpus=$(taskset -cp $$ | sed 's/.*: //' | tr , '\n' |
		awk -F - -v most="${CPUS:-2}" '{
			for (i = $1; i <= ($2 == "" ? $1 : $2) && n < most; i++)
			    printf "%s%d", n++ ? "," : "", i }')
	[[ $cpus == *,* ]] || die "needs two CPUs"
	taskset -cp "$cpus" $$ >/dev/null
}

# Prints the machine and the versions of the systems.
machine()
{
	printf 'CPU: %s, %s used of %s online, load %s\n' \
		"$(sed -n 's/^model name.*: //p' /proc/cpuinfo | head -1)" "$cpus" \
		"$(nproc --all)" "$(cut -d ' ' -f 1 /proc/loadavg)"
	printf '%s; ' "$(mpirun.openmpi --version | head -1)" \
		"MPICH $(mpichversion 2>/dev/null | awk '/Version/ { print $3; exit }')" \
		"UCX $(ucx_info -v | awk '/Version/ { print $3; exit }')" \
		"$(fi_info --version | head -1)"
	printf '\nplaces: smt below %s us, l3 below %s us\n' "${PLACES% *}" "${PLACES#* }"
}

measure_all()
{
	local round metric

	prepare
	machine
	printf 'round\tsystem\tsetting\tmetric\tsize\tvalue\tbefore\tafter\tpace\n' >"$out/$stem-raw.tsv"
	for ((round = 1; round <= rounds && (round == 1 || SECONDS < time_s); round++)); do
		printf 'round %d of %d, %d s\n' "$round" "$rounds" "$SECONDS"
		for metric in $metrics; do
			one_round "$round" "$metric"
		done
	done
	((round > rounds)) || echo "bench-$stem: only $((round - 1)) rounds in $SECONDS s"
	make_up
	medians
}

# Prints the counts of samples, the FILEs and the time, and fails if our programs failed.
conclude()		# FILE...
{
	printf '\n%s' "$(cat "$tmp/counts")"
	awk -F '\t' -v places="$PLACES" "$awk_class"'
	FNR > 1 && (c = class_here()) != "" { n[c]++ }
	END { for (c in n) printf "; %s: %d", c, n[c]; print "" }' "$out/$stem-raw.tsv"
	printf '%s; %d s\n' "$*" "$SECONDS"
	[[ -z $bad_peers ]] || echo "bench-$stem: peers that failed:$bad_peers" >&2
	[[ -z $bad_ours ]] || die "failed:$bad_ours"
}
