#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# check.sh [STEP...]   Builds with -Werror, runs the steps (default: all), each into $BUILD/check/STEP.log,
# and sums them up.  The closing line is `N passed, N failed, N skipped`; exit 1 when any failed.
set -u
cd "$(dirname "$(realpath "$0")")/.." || exit 1
build=${BUILD:-build}
logs=$build/check
mkdir -p "$logs"
steps=${*:-layers lint unit asan fuzz cross web e2e cases kernels}
export CI=1 PYTHONDONTWRITEBYTECODE=1 PYPROFD=$(realpath -m "$build/pyprofd")
export INTERPRETERS=${INTERPRETERS:-$(realpath -m "$build/interpreters")}
PYPROFD_ASAN=$(realpath -m "$build-asan/pyprofd")
jobs=$(nproc)
passed=0 failed=0 skipped=0 failures=

make_() { make --no-print-directory -j"$jobs" BUILD="$build" "$@"; }
sum() { echo "$1 passed, $2 failed, $3 skipped"; }
skip() { # REASON
	echo "skip $*"
	sum 0 0 1
}
# one NAME COMMAND...: a single test out of a command; what it prints is shown when it fails.
one() {
	local name=$1 said
	shift
	if said=$("$@" 2>&1); then
		[ -z "$said" ] || echo "$said"
		echo "ok $name"
		ok=$((ok + 1))
	else
		echo "$said"
		echo "not ok $name"
		bad=$((bad + 1))
	fi
}

fetch_interpreters() {
	tests/interpreters/fetch.sh "$INTERPRETERS" 1 || echo '# some interpreters could not be fetched'
}

step_build() {
	local ok=0 bad=0
	one 'build with -Werror' make_ all
	sum $ok $bad 0
}
step_layers() {
	local ok=0 bad=0
	one 'layers' awk -f tests/lint/check_layers.awk userspace/*/*.[ch]
	sum $ok $bad 0
}
step_lint() {
	local ok=0 bad=0 missed=0
	one 'sizes' tests/lint/check_size.sh
	one 'banned' tests/lint/check_banned.sh
	one 'systemd unit' tests/lint/check_unit.sh
	one 'man page' tests/lint/check_man.sh
	one 'kinds' tests/lint/check_kinds.sh
	sum $ok $bad $missed
}
step_unit() { make_ unit-programs && tests/unit/run.sh $(unit_programs "$build"); }
unit_programs() { make --no-print-directory BUILD="$1" print-unit-programs; }
# The unit tests again, then the whole agent on every interpreter; a finding or a leak ends it with an
# error.  Its timing is not what is looked at here.
step_asan() {
	local units agent
	export UBSAN_OPTIONS=print_stacktrace=1
	make_ unit-asan-programs asan || return
	tests/unit/run.sh $(unit_programs "$build-asan") | tee "$logs/asan-units.log"
	fetch_interpreters
	PYPROFD=$PYPROFD_ASAN tests/e2e/run.py -k '^cli|^interpreters.frames|command.only_the' |
		tee "$logs/asan-agent.log"
	units=$(tail -n 1 "$logs/asan-units.log")
	agent=$(tail -n 1 "$logs/asan-agent.log")
	echo "$units, $agent" | awk '{ print $1 + $7 " passed, " $3 + $9 " failed, " $5 + $11 " skipped" }'
}
step_fuzz() {
	compgen -G 'tests/fuzz/fuzz_*.c' > /dev/null || { skip 'fuzz: no targets'; return; }
	echo 'int LLVMFuzzerTestOneInput(const char *d, long n); int LLVMFuzzerTestOneInput(const char *d, long n) { return d && n < 0; }' \
		> "$logs/fuzzer.c"
	clang=$(make --no-print-directory print-clang)
	"$clang" -fsanitize=fuzzer,address "$logs/fuzzer.c" -o "$logs/fuzzer" 2> /dev/null ||
		{ skip "fuzz: $clang has no libFuzzer (libclang-rt-*-dev)"; return; }
	make_ fuzz-programs && make_ fuzz
}
step_cross() {
	command -v aarch64-linux-gnu-gcc > /dev/null || { skip 'cross: no aarch64-linux-gnu-gcc'; return; }
	local ok=0 bad=0
	one 'compiles for aarch64' make_ cross
	sum $ok $bad 0
}
# The flame graph's page in Chromium.
step_web() { make_ web; }
step_e2e() {
	fetch_interpreters
	tests/tools/fetch.sh "$build/tools" || echo '# no tools from PyPI'
	PYPROF_PYTHON=$(realpath -ms "$build/tools/bin/python")
	export PYPROF_PYTHON
	tests/e2e/run.py
}
step_cases() { tests/e2e/cases.py; }
step_kernels() { tests/kernel-matrix/run.sh; }

run_step() {
	local step=$1 log=$logs/$1.log begin=$SECONDS rc line
	echo "== $step"
	set -o pipefail
	"step_$step" 2>&1 | tee "$log"
	rc=$?
	line=$(grep -E '^[0-9]+ passed, [0-9]+ failed' "$log" | tail -n 1)
	# A step that broke off counts as a failed test.
	[ -n "$line" ] || line='0 passed, 1 failed, 0 skipped'
	read -r p f s <<< "$(echo "$line" | tr -dc '0-9 ' | awk '{print $1 + 0, $2 + 0, $3 + 0}')"
	[ $rc = 0 ] || [ "$f" != 0 ] || f=1
	passed=$((passed + p)) failed=$((failed + f)) skipped=$((skipped + s))
	[ "$f" = 0 ] || failures="$failures $step($f)"
	took="$took$(printf '  %-8s %4d s  %4d passed, %d failed, %d skipped' "$step" $((SECONDS - begin)) "$p" "$f" "$s")"$'\n'
}

took=
run_step build
if [ "$failed" = 0 ]; then
	for step in $steps; do
		if [ "$(type -t "step_$step")" != function ]; then
			echo "check.sh: no step '$step'" >&2
			exit 2
		fi
		run_step "$step"
	done
fi
echo '== all'
printf '%s' "$took"
[ -z "$failures" ] || echo "failed:$failures; see $logs/"
sum $passed $failed $skipped
[ $failed = 0 ]
