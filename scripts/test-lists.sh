# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# shellcheck shell=bash disable=SC2034
#
# Sets the lists of test programs: tests (all), and those that run under the sanitizers, address
# and threaded. With $short, a sanitizer leaves out what it hardly adds to: see each list.

lower=(selftests/{unit,sim,fabric,msg,net,team,ofi}/*.c)
tests=("${lower[@]}")
for f in libsci/*/front-end.mk; do
	folder=$(sed -n 's/^[a-z]*_TESTS := //p' "$f")
	f=${f#libsci/}
	tests+=(selftests/"${folder:-${f%/*}}"/*.c)
done
# the longest first, so that none runs alone at the end of a step
longest=(selftests/{msg/tools,team/launch,team/deaths,scivm/cached,team/colls,msg/protocols}.c)
mapfile -t tests < <(printf '%s\n' "${longest[@]}" "${tests[@]}" | awk '!seen[$0]++')
tests=("${tests[@]%.c}")
lower=("${lower[@]%.c}")

address=("${tests[@]}")
# other tests run the same code with sanitizers: of virtual time, of all schedules, of programs, and
# of many processes
[[ ! $short ]] || mapfile -t address < <(printf '%s\n' "${tests[@]}" |
	grep -Ev '^selftests/(sim/vtime_.*|unit/pool_schedules|fabric/rundir|msg/tools|ofi/onesided|team/(deaths|launch))$' |
	grep -xFf <(printf '%s\n' "${lower[@]}"; grep -v '^#' selftests/asan.list))
# without threads of its own, a program tests little more with the thread sanitizer than without;
# other tests run the threads of fabric/ and msg/
no_threads=none
[[ ! $short ]] ||
	no_threads='selftests/(team/colls|msg/(protocols|connections|dials)|fabric/rundir|unit/.*)'
mapfile -t threaded < <(grep -v '^#' selftests/tsan.list | grep -Evx "$no_threads")
