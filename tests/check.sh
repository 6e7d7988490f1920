#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# check.sh [STEP...]   Builds with -Werror, runs the steps (default: all), each into $BUILD/check/STEP.log,
# and sums them up.  A step whose tests are fewer than tests/floors.tsv says has failed.  The closing line is
# `N passed, N failed, N skipped`, after one that tells how many were tried twice; exit 1 when any failed.
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
passed=0 failed=0 skipped=0 retried=0 failures=

make_() { make --no-print-directory -j"$jobs" BUILD="$build" "$@"; }
sum() { echo "$1 passed, $2 failed, $3 skipped"; }
skip() { # REASON
	echo "skip $*"
	sum 0 0 1
}
# one NAME COMMAND...: a single test out of a command; what it prints is shown when it fails.  Exit status 77: skipped,
# for the reason in its last line.
one() {
	local name=$1 said rc
	shift
	said=$("$@" 2>&1)
	rc=$?
	case $rc in
	0)
		[ -z "$said" ] || echo "$said"
		echo "ok $name"
		ok=$((ok + 1))
		;;
	77)
		echo "skip $name: $(echo "$said" | tail -n 1)"
		missed=$((missed + 1))
		;;
	*)
		echo "$said"
		echo "not ok $name: exit status $rc"
		bad=$((bad + 1))
		;;
	esac
}
# The closing line of a step's output.
closing_line() { grep -E '^[0-9]+ passed, [0-9]+ failed, [0-9]+ skipped' "$1" | tail -n 1; }
# part LOG COMMAND...: a part of a step, added to its ok, bad and missed.  One that ends with an error and tells of no
# failed test, or without a closing line, is a failed test.
part() {
	local log=$1 rc p f s
	shift
	"$@" 2>&1 | tee "$log" | grep -vE '^[0-9]+ passed, '
	rc=${PIPESTATUS[0]}
	p=0 f=0 s=0
	[ -z "$(closing_line "$log")" ] || read -r p f s <<< "$(closing_line "$log" | tr -dc '0-9 ' | awk '{print $1 + 0, $2 + 0, $3 + 0}')"
	if [ "$f" = 0 ] && { [ "$rc" != 0 ] || [ "$p" = 0 ]; }; then
		echo "not ok $*: exit status $rc, $p tests passed"
		f=1
	fi
	ok=$((ok + p)) bad=$((bad + f)) missed=$((missed + s))
}

fetch_interpreters() {
	tests/interpreters/fetch.sh "$INTERPRETERS" 1 || echo '# some interpreters could not be fetched'
}

step_build() {
	local ok=0 bad=0 missed=0
	one 'build with -Werror' make_ all
	sum $ok $bad $missed
}
step_layers() {
	local ok=0 bad=0 missed=0
	one 'layers' awk -f tests/lint/check_layers.awk userspace/*/*.[ch]
	one 'no circle of calls' tests/lint/check_circles.py "$build"
	sum $ok $bad $missed
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
# Some of them look at the interpreters that are fetched.
step_unit() {
	fetch_interpreters
	make_ unit-programs && tests/unit/run.sh $(unit_programs "$build")
}
unit_programs() { make --no-print-directory BUILD="$1" print-unit-programs; }
# The unit tests again, then the whole agent on every interpreter; a finding or a leak ends it with an
# error.  Nothing is tried again, and the test of keeping up in time is left out: this agent is several times slower.
step_asan() {
	local ok=0 bad=0 missed=0
	export UBSAN_OPTIONS=print_stacktrace=1
	make_ unit-asan-programs asan || return
	fetch_interpreters
	part "$logs/asan-units.log" tests/unit/run.sh $(unit_programs "$build-asan")
	PYPROFD=$PYPROFD_ASAN part "$logs/asan-agent.log" tests/e2e/run.py --no-retry \
		-k '^cli(?!.the_unit_keeps_up)|^interpreters.frames|command.only_the'
	sum $ok $bad $missed
	[ $bad = 0 ]
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
	local ok=0 bad=0 missed=0
	one 'compiles for aarch64' make_ cross
	sum $ok $bad $missed
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

# The least number of tests of a step; a step that is skipped as a whole (`skip STEP: REASON`) has none.
floor_of() { awk -F'\t' -v step="$1" '!/^#/ && $1 == step { print $2; exit }' tests/floors.tsv; }

run_step() {
	local step=$1 log=$logs/$1.log begin=$SECONDS rc line floor p f s r
	echo "== $step"
	set -o pipefail
	"step_$step" 2>&1 | tee "$log"
	rc=$?
	line=$(closing_line "$log")
	# A step that broke off counts as a failed test.
	[ -n "$line" ] || line='0 passed, 1 failed, 0 skipped'
	read -r p f s r <<< "$(echo "$line" | tr -dc '0-9 ' | awk '{print $1 + 0, $2 + 0, $3 + 0, $4 + 0}')"
	[ $rc = 0 ] || [ "$f" != 0 ] || f=1
	floor=$(floor_of "$step")
	if { [ $((p + f + s)) -lt "${floor:-1}" ] || [ $((p + f)) = 0 ]; } && ! { [ "$p$f$s" = 001 ] && grep -q "^skip $step" "$log"; }; then
		echo "not ok $step: $((p + f + s)) tests were found, $((p + f)) ran, and there are ${floor:-1} at least (tests/floors.tsv)"
		f=$((f + 1))
	fi
	passed=$((passed + p)) failed=$((failed + f)) skipped=$((skipped + s)) retried=$((retried + r))
	[ "$f" = 0 ] || failures="$failures $step($f)"
	[ "$r" = 0 ] || again="$again$(sed -n "s/^# once more, one at a time:/retried, $step:/p" "$log")"$'\n'
	took="$took$(printf '  %-8s %4d s  %4d passed, %d failed, %d skipped, %d retried' "$step" \
		$((SECONDS - begin)) "$p" "$f" "$s" "$r")"$'\n'
}

took='' again=''
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
printf '%s' "$took$again"
[ -z "$failures" ] || echo "failed:$failures; see $logs/"
[ $retried = 0 ] || echo "retried: $retried"
sum $passed $failed $skipped
[ $failed = 0 ]
