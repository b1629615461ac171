# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# shellcheck shell=bash disable=SC2154,SC2034
#
# For scripts that measure systems beside each other, interleaved, with the
# programs of selftests/bench/peers.  Such a script sets
#
#	stem		of its files in $out, and its name: bench-$stem
#	rounds metrics time_s
#	groups		names for several metrics: "NAME=METRIC,METRIC ..."
#	msg		libsci's program
#	outside=yes	programs do not probe: the script does it after each run
#
# and defines settings(), a line per setting:
#
#	KIND SYSTEM/SETTING METRICS PROGRAM...
#
# where METRICS may be a group's name and variables may come before the program;
# sizes_of METRIC, a size per line; and programs(), which compiles into $bin.  Then
# measure_all leaves every value in $out/$stem-raw.tsv, and the medians of those
# that count in $out/$stem-all.tsv.
#
# A virtual machine's CPUs move: two hardware threads of a core now, two cores
# far apart then, which changes everything fourfold.  So a probe, the ping-pong
# of a word, runs between all measurements (see measure.h), and only those count
# that it finds within a factor of 1.4 of PROBE us: what is usual in the nearer
# places of this machine, if PROBE is not given.  And a core may be shared with a
# stranger: programs leave out the runs in which it was, if there are others, as sums
# that they do in between take more than PACE ns, if given, or a seventh more than is
# usual at the better times of this machine.  Settings with less than half
# of their rounds among these get more, while time lasts; where one has none,
# all of its runs count and the table says so by a ~.
build=${1:?usage: bench-$stem BUILD_DIR}
limit_s=60		# a run that takes longer counts as that long, or not
slow_s=10		# one that takes longer is not repeated
tries=3			# of a run whose probe is outside
outside=
out=$build/bench
bin=$out/peers
src=selftests/bench/peers

# The programs divide the CPUs, so mpirun binds nobody.
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

# ---- settings ----

# Kind, name and command of the settings that measure METRIC.
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

# Powers of two from $1 to $2, and of those the ones that are to be measured.
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

# The usual ones, of the nearer places, and of the better times.
quartile()		# COLUMN
{
	awk -v c="$1" '{ print $c }' "$tmp/probes" | sort -g |
		awk '{ v[NR] = $1 } END { print v[int(NR / 4) + 1] }'
}

in_place()		# PROBE
{
	awk -v p="$1" -v place="$PEER_PLACE" '
	BEGIN { split(place, f, " "); exit !(p > f[1] && p < f[2]) }'
}

quick_probe()
{
	PEER_MS=3 "$bin/raw" push latency_us 64 | awk '{ print $4 }'
}

declare -A skip=()
bad_ours=
bad_peers=

# Appends the run's values to the raw file; later runs may be skipped.
run()			# ROUND METRIC KIND NAME COMMAND...
{
	local round=$1 metric=$2 kind=$3 name=$4 at="" rc try begin sizes
	shift 4
	[[ -z ${skip[$name $metric]:-} ]] || return 0
	mapfile -t sizes < <(sizes_of "$metric")
	((${#sizes[@]})) || return 0
	for ((try = 1; try <= tries; try++)); do
		begin=$SECONDS
		rc=0
		timeout -k 2 "$limit_s" env "$@" "$metric" "${sizes[@]}" \
			>"$tmp/values" 2>"$tmp/errors" </dev/null || rc=$?
		[[ -z $outside && $metric != alltoall16_s ]] || at=$(quick_probe)
		if ((SECONDS - begin > slow_s)); then
			skip[$name $metric]=slow
			echo "$metric $name" >>"$tmp/skip"
			break
		fi
		[[ -n $at ]] || break
		! in_place "$at" || break
	done
	if ((rc == 124 || rc == 137)) && [[ $metric == alltoall16_s ]]; then
		timed_out "$metric" "${sizes[@]}"
		rc=0
	fi
	awk -v r="$round" -v s="${name%%/*}" -v t="${name#*/}" -v at="$at" \
		-v OFS='\t' \
		'NF >= 3 { print r, s, t, $1, $2, $3, (NF > 3 ? $4 : at) }' \
		"$tmp/values" >>"$out/$stem-raw.tsv"
	((rc)) || return 0
	if [[ $kind == limit ]] && ((rc == 124)); then
		# it waits for the processes to be placed well: next time
		return 0
	fi
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

# Sizes that it did not come to count as the time it was given.
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

# Metrics and settings with too few runs at the placement of most.
lacking()
{
	awk -F '\t' -v want=$(((rounds + 1) / 2)) \
		-v place="$PEER_PLACE" '
	BEGIN { split(place, f, " ") }
	FNR == 1 { next }
	{
		point = $4 " " $2 "/" $3 " " $5
		good[point] += $7 > f[1] && $7 < f[2]
	}
	END {
		for (point in good)
			if (good[point] < want) {
				split(point, g, " ")
				print g[1], g[2]
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

# Medians of all settings: metric size system/setting kind median min max runs
# and whether they are of other placements than the rest.
medians()
{
	awk -F '\t' -v OFS='\t' -v place="$PEER_PLACE" "$awk_median"'
	BEGIN { split(place, f, " ") }
	NR == FNR { kind[$1] = $2; next }
	FNR == 1 { next }
	{
		key = $4 OFS $5 OFS $2 "/" $3 OFS kind[$2 "/" $3]
		if (!(key in n))
			order[++keys] = key
		value[key, ++n[key]] = $6
		at[key, n[key]] = $7
	}
	END {
		print "metric", "size", "setting", "kind", "median", "min", "max", "runs", "odd"
		for (i = 1; i <= keys; i++) {
			key = order[i]
			delete v
			c = 0
			for (j = 1; j <= n[key]; j++)
				if (at[key, j] > f[1] && at[key, j] < f[2])
					v[++c] = value[key, j]
			if (odd = !c)
				for (j = 1; j <= n[key]; j++)
					v[++c] = value[key, j]
			m = median(v, c)
			print key, sprintf("%.5g", m), v[1], v[c], c, odd ? "~" : "-"
		}
	}' <(kinds) "$out/$stem-raw.tsv" >"$out/$stem-all.tsv"
}

# ---- all of it ----

prepare()
{
	programs
	tmp=$(mktemp -d)
	trap 'rm -rf "$tmp"' EXIT
	: >"$tmp/skip"
	: >"$tmp/probe"
	export PEER_PROBE=$tmp/probe
	# The first two CPUs we may use; the programs divide them.
	cpus=$(taskset -cp $$ | sed 's/.*: //' | tr , '\n' |
		awk -F - '{ for (i = $1; i <= ($2 == "" ? $1 : $2) && n < 2; i++)
			    printf "%s%d", n++ ? "," : "", i }')
	[[ $cpus == *,* ]] || die "needs two CPUs"
	taskset -cp "$cpus" $$ >/dev/null
	"$bin/raw" probe >"$tmp/probes"
	PEER_PLACE=$(awk -v p="${PROBE:-$(quartile 1)}" 'BEGIN { print p / 1.4, p * 1.4 }')
	PEER_PACE=$(awk -v p="${PACE:-}" -v usual="$(quartile 2)" \
		'BEGIN { print p == "" ? usual * 8 / 7 : p }')
	export PEER_PLACE PEER_PACE
}

# Of what this was measured.
machine()
{
	printf 'CPU: %s, %s used of %s online, load %s\n' \
		"$(sed -n 's/^model name.*: //p' /proc/cpuinfo | head -1)" "$cpus" \
		"$(nproc --all)" "$(cut -d ' ' -f 1 /proc/loadavg)"
	printf '%s; ' "$(mpirun.openmpi --version | head -1)" \
		"MPICH $(mpichversion 2>/dev/null | awk '/Version/ { print $3; exit }')" \
		"UCX $(ucx_info -v | awk '/Version/ { print $3; exit }')" \
		"$(fi_info --version | head -1)"
	printf '\nprobe: %s us, at most %s ns\n' "${PEER_PLACE/ / .. }" "$PEER_PACE"
}

measure_all()
{
	local round metric

	prepare
	machine
	printf 'round\tsystem\tsetting\tmetric\tsize\tvalue\tprobe\n' >"$out/$stem-raw.tsv"
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

# What the probes found, the FILEs there are now, and what failed.
conclude()		# FILE...
{
	printf '\nprobe, us: %s; %s; %d s\n' \
		"$(cut -f 7 "$out/$stem-raw.tsv" | tail -n +2 | sort -g | awk '
			{ v[NR] = $1 }
			END { printf "median %.3g, from %.3g to %.3g", v[int((NR + 1) / 2)], v[1], v[NR] }')" \
		"$*" "$SECONDS"
	[[ -z $bad_peers ]] || echo "bench-$stem: peers that failed:$bad_peers" >&2
	[[ -z $bad_ours ]] || die "failed:$bad_ours"
}
