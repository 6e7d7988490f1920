#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# check.sh [STEP...]   Builds with -Werror, runs the steps (default: all), each into $BUILD/check/STEP.log,
# and sums them up.  A step whose tests are fewer than tests/floors.tsv says has failed.  The closing line is
# `N passed, N failed, N skipped`, after lines that tell how many were tried twice and how many are left to check-long;
# exit 1 when any failed.  CHECK_LONG=1 leaves none.
# Of all steps those of the page and of guests, and the tests with stand-ins of CUDA, run only when something has changed
# (tests/changed.tsv) since the last run of all that was green, whose commit is in $BUILD/check/green.  CHANGED=1: nothing
# but what looks at the changes since then; CHANGED=COMMIT: since that commit.
#  docs/design/tests.md says what is where and why.
set -u
cd "$(dirname "$(realpath "$0")")/.." || exit 1
build=${BUILD:-build}
logs=$build/check
mkdir -p "$logs"
all_steps=${*:+no}
steps=${*:-layers lint unit asan fuzz cross web hostile e2e cases kernels}
export CI=1 PYTHONDONTWRITEBYTECODE=1 PYPROFD=$(realpath -m "$build/pyprofd")
export INTERPRETERS=${INTERPRETERS:-$(realpath -m "$build/interpreters")}
PYPROFD_ASAN=$(realpath -m "$build-asan/pyprofd")
jobs=$(nproc)
few=--few
[ -z "${CHECK_LONG:-}" ] || few=
passed=0 failed=0 skipped=0 retried=0 left=0 failures=

make_() { make --no-print-directory -j"$jobs" BUILD="$build" "$@"; }
sum() { echo "$1 passed, $2 failed, $3 skipped${4:+, $4 retried}"; } # ... [RETRIED]
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
numbers() { echo "$1" | tr -dc '0-9 ' | awk '{print $1 + 0, $2 + 0, $3 + 0, $4 + 0}'; } # CLOSING_LINE
# part LOG COMMAND...: a part of a step, added to its ok, bad, missed and tried.  One that ends with an error and tells of no
# failed test, or without a closing line, is a failed test.
part() {
	local log=$1 rc p f s r
	shift
	"$@" 2>&1 | tee "$log" | grep -vE '^[0-9]+ passed, '
	rc=${PIPESTATUS[0]}
	p=0 f=0 s=0 r=0
	[ -z "$(closing_line "$log")" ] || read -r p f s r <<< "$(numbers "$(closing_line "$log")")"
	if [ "$f" = 0 ] && { [ "$rc" != 0 ] || [ "$p" = 0 ]; }; then
		echo "not ok $*: exit status $rc, $p tests passed"
		f=1
	fi
	ok=$((ok + p)) bad=$((bad + f)) missed=$((missed + s)) tried=$((tried + r))
}

# Steps that run at the same time fetch one after the other; the second one finds what is there.
fetch_interpreters() {
	flock "$logs/fetching" tests/interpreters/fetch.sh "$INTERPRETERS" 1 || echo '# some interpreters could not be fetched'
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
	one 'metrics' tests/lint/check_metrics.sh
	one 'pins' tests/lint/check_pins.sh
	one 'names in data-flow.md' tests/lint/check_trips.py
	one 'no silent counter' tests/lint/check_counters.py
	one 'no dead function' tests/lint/check_dead.py "$build"
	one 'targets of make help' tests/lint/check_targets.sh
	one 'hardening' tests/lint/check_hardening.sh "$build"
	one 'BPF programs' tests/lint/check_bpf.py "$build"
	sum $ok $bad $missed
}
# Under address and undefined sanitizers, whose build sees all that another one sees; a finding or a leak ends a program
# with an error.  In the plain build those that do less under sanitizers.  Some look at the interpreters that are fetched.
step_unit() {
	local ok=0 bad=0 missed=0 tried=0 plain sanitized
	export UBSAN_OPTIONS=print_stacktrace=1
	[ -z "${ONLY_UNIT:-}" ] || export ONLY_UNIT
	make_ unit-asan-programs && make_ unit-plain-programs && plain=$(print_programs plain "$build") &&
		sanitized=$(print_programs unit "$build-asan") || return
	fetch_interpreters
	export PYPROFD_PYTHON_LIST=$(realpath "$logs")/pythons
	tests/interpreters/list.py $few > "$PYPROFD_PYTHON_LIST"
	# The plain ones first: one of them takes longest, on one CPU.
	part "$logs/unit-programs.log" tests/unit/run.sh $plain $sanitized
	sum $ok $bad $missed ${tried#0}
	[ $bad = 0 ]
}
print_programs() { make --no-print-directory BUILD="$2" "print-$1-programs"; } # KIND BUILD
# The whole agent under the same sanitizers, on every interpreter.  Nothing is tried again, and the test of keeping up in
# time is left out: this agent is several times slower.
step_asan() {
	export UBSAN_OPTIONS=print_stacktrace=1
	make_ asan || return
	fetch_interpreters
	PYPROFD=$PYPROFD_ASAN tests/e2e/run.py $few --no-retry -j "$jobs" \
		-k '^cli(?!.the_unit_keeps_up)|^interpreters.frames|command.only_the'
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
	one 'compiles for aarch64' make_ cross ${few:+CROSS_CFLAGS=-fsyntax-only}
	[ -z "$few" ] || echo '# left to check-long: 1 (the same, optimized)'
	sum $ok $bad $missed
}
# The flame graph's page in Chromium.
step_web() { make_ web; }
step_e2e() {
	make_ e2e-programs || return
	fetch_interpreters
	tests/tools/fetch.sh "$build/tools" || echo '# no tools from PyPI'
	PYPROF_PYTHON=$(realpath -ms "$build/tools/bin/python")
	export PYPROF_PYTHON
	# Half a minute of a CPU, once; and five beside the tests: the one that needs the collector waits for the lock.
	if [ -z "$few" ]; then
		tests/tools/pyroscope_stub.sh "$build/tools" > "$logs/pyroscope_stub.log" 2>&1 ||
			echo "# no stub of Pyroscope: $logs/pyroscope_stub.log"
		begin_otelcol
	fi
	tests/e2e/run.py --alone-after "$logs/computing" $few ${only_e2e:+-k "$only_e2e"} ${unchanged:+--unchanged "$unchanged"}
	rc=$?
	wait
	return $rc
}
begin_otelcol() {
	local lock
	mkdir -p "$build/tools"
	exec {lock}> "$build/tools/otelcol.lock"
	flock "$lock"
	tests/tools/otelcol.sh "$build/tools" > "$logs/otelcol.log" 2>&1 &
	exec {lock}>&-
}
# A minute of the attacks; check-long and `make hostile` run all.
step_hostile() { tests/hostile/run.py ${few:+--quick}; }
step_cases() { tests/e2e/cases.py $few; }
step_kernels() { make_ fakes && tests/kernel-matrix/run.sh $few; }

# The least number of tests of a step; a step that is skipped as a whole (`skip STEP: REASON`) has none.
floor_of() { awk -F'\t' -v step="$1" -v column="${few:+2}" '!/^#/ && $1 == step { print $(column ? column : NF); exit }' tests/floors.tsv; }

# What LOG says of each test that did not pass the last time it was tried: the end of its reasons, which stand behind its
# line and are indented, or before it.
tell_failed() { # STEP LOG
	awk -v step="$1" '
	/^(not )?ok / {
		name = $0
		sub(/^(not )?ok /, "", name)
		sub(/( \([0-9.]+ s, [0-9.]+ s of CPU\)|: exit status.*)$/, "", name)
		if (!(name in said))
			order[++count] = name
		failed[name] = /^not/
		said[name] = before
		before = ""
		next
	}
	/^ / && name != "" {
		said[name] = said[name] substr($0, 1, 300) "\n"
		next
	}
	!/^#/ {
		name = ""
		before = before "    " substr($0, 1, 300) "\n"
	}
	END {
		for (i = 1; i <= count; i++) {
			if (!failed[order[i]] || ++told > 20)
				continue
			print "failed, " step ": " order[i]
			lines = split(said[order[i]], line_of, "\n") - 1
			for (j = lines > 6 ? lines - 5 : 1; j <= lines; j++)
				print line_of[j]
		}
	}' "$2"
}

# What the shell's `times` said, of itself and of all that it waited for, in s: FILE has lines `0m1.25s 0m0.50s`.
cpu_seconds() { cat "$1" 2> /dev/null | tr 'ms' '  ' | awk '{ s += $1 * 60 + $2 + $3 * 60 + $4 } END { printf "%d", s + 0.5 }'; }
# A step's output goes to LOG; END has its exit status, how many seconds it took, and the CPU time of its processes.
do_step() { # STEP
	local begin=$SECONDS
	set -o pipefail
	rm -f "$logs/$1.times"
	{
		"step_$1"
		rc=$?
		times > "$logs/$1.times"
		exit $rc
	} 2>&1 | tee "$logs/$1.log"
	echo "$? $((SECONDS - begin)) $(cpu_seconds "$logs/$1.times")" > "$logs/$1.end"
}
count_step() { # STEP: adds what do_step left to the sums
	local step=$1 log=$logs/$1.log rc= seconds cpu line floor once p f s r l
	[ ! -f "$logs/$step.end" ] || read -r rc seconds cpu < "$logs/$step.end"
	line=$(closing_line "$log")
	# A step that broke off counts as a failed test.
	[ -n "$line" ] || line='0 passed, 1 failed, 0 skipped'
	read -r p f s r <<< "$(numbers "$line")"
	[ "$rc" = 0 ] || [ "$f" != 0 ] || f=1
	floor=$(floor_of "$step")
	[ -z "$changes" ] || floor=1
	# Those that look at what is as it was count as found.
	l=$(sed -n 's/^# unchanged since the last green run: \([0-9]*\).*/\1/p' "$log" | awk '{ n += $1 } END { print n + 0 }')
	[ -z "$floor" ] || floor=$((floor - l))
	if { [ $((p + f + s)) -lt "${floor:-1}" ] || [ $((p + f)) = 0 ]; } && ! { [ "$p$f$s" = 001 ] && grep -q "^skip $step" "$log"; }; then
		echo "not ok $step: $((p + f + s)) tests were found, $((p + f)) ran, and there are ${floor:-1} at least (tests/floors.tsv)"
		f=$((f + 1))
	fi
	passed=$((passed + p)) failed=$((failed + f)) skipped=$((skipped + s)) retried=$((retried + r))
	[ "$f" = 0 ] || failures="$failures $step($f)" reasons="$reasons$(tell_failed "$step" "$log")"$'\n'
	l=$(sed -n 's/^# left to check-long: \([0-9]*\).*/\1/p' "$log" | awk '{ n += $1 } END { print n + 0 }')
	left=$((left + l))
	[ "$l" = 0 ] || leaving="$leaving $step($l)"
	once=$(sed -n 's/^# PASSED ONLY AT/passed only at/p' "$log")
	[ -z "$once" ] || again="$again$once"$'\n'
	[ "$r" = 0 ] || again="$again$(sed -n "s/^# once more, one at a time:/retried, $step:/p" "$log")"$'\n'
	took="$took$(printf '  %-8s %4d s %5d s of CPU  %4d passed, %d failed, %d skipped, %d retried' "$step" \
		"${seconds:-0}" "${cpu:-0}" "$p" "$f" "$s" "$r")"$'\n'
}
run_step() { # STEP
	echo "== $1"
	rm -f "$logs/$1.end"
	do_step "$1"
	count_step "$1"
}

run_two() { # STEP STEP: beside each other
	rm -f "$logs/$1.end"
	do_step "$1" > /dev/null &
	local first=$!
	run_step "$2"
	echo "== $1, begun beside $2"
	wait "$first"
	cat "$logs/$1.log"
	count_step "$1"
}

# The end-to-end tests wait for profiles' ends more than they compute: they run beside the other steps, until it is the
# turn of those that need the machine, which begin when the lock is gone.  Attacks, which bound how long the agent lets
# others wait, and the acceptance cases come last, alone.
run_beside() { # STEP...
	local step e2e usual=$(nice)
	rm -f "$logs/e2e.end"
	exec {lock}> "$logs/computing"
	flock "$lock"
	do_step e2e > /dev/null {lock}>&- &
	e2e=$!
	# The CPU goes to the profiled programs of e2e first, of whose samples many tests want a number.
	renice -n "$((usual + 10))" -p $$ > /dev/null
	for step; do
		case " $*  / $step" in
		*' / hostile' | *' / cases') ;;
		# A browser and guests wait half of their time: beside each other.
		*' kernels '*' / web') ;;
		*' web '*' / kernels') run_two web kernels ;;
		*) run_step "$step" ;;
		esac
	done
	renice -n "$usual" -p $$ > /dev/null
	flock -u "$lock"
	echo '== e2e, begun beside the steps above'
	wait "$e2e"
	cat "$logs/e2e.log"
	count_step e2e
	for step; do [[ $step != hostile && $step != cases ]] || run_step "$step"; done
}

# What of the steps looks at files that have changed: sets steps, unchanged, ONLY_UNIT and only_e2e.
stand_ins='^(cuda|gpu_|gauges)'
changes='' unchanged='' only_e2e='' ONLY_UNIT=
choose() {
	local base=${CHANGED:-} all=1 e2e='' unit='' files='' asked='' chosen=$steps step
	[ "$base" != 1 ] && [ -n "$base" ] || base=$(cat "$logs/green" 2> /dev/null)
	if [ -z "$base" ]; then
		[ -n "${CHANGED:-}" ] || return
		base=$(git merge-base HEAD '@{u}' 2> /dev/null || git rev-parse -q --verify HEAD~1)
	fi
	eval "$(tests/changed.py "$base" | sed 's/ steps=/ asked=/')" 2> /dev/null
	[ -z "$all" ] || return
	if [ -z "${CHANGED:-}" ]; then
		for step in web kernels; do
			case " $asked " in *" $step "*) ;; *) chosen=${chosen/ $step/}; echo "# unchanged since ${base:0:12}, not run: $step" ;; esac
		done
		steps=$chosen
		[[ $e2e == *cuda* ]] || unchanged=$stand_ins
		return
	fi
	changes=1 only_e2e=$e2e ONLY_UNIT=$unit
	steps="layers lint${unit:+ unit}"
	# asan and kernels take a minute and more each: those are left to all of `make check`.
	for step in fuzz web hostile; do
		case " $asked " in *" $step "*) steps="$steps $step" ;; esac
	done
	steps="$steps${e2e:+ e2e}"
	echo "# $files files differ from ${base:0:12}: $steps${e2e:+ ($e2e)}"
}
[ -n "$all_steps" ] || [ -n "${CHECK_LONG:-}" ] || choose
for step in $steps; do
	[ "$(type -t "step_$step")" = function ] || {
		echo "check.sh: no step '$step'" >&2
		exit 2
	}
done
took='' again='' leaving= reasons=
started=$SECONDS
run_step build
if [ "$failed" = 0 ]; then
	case " $steps " in
	*' e2e '*' '* | *' '*' e2e '*) run_beside $(echo "$steps" | tr ' ' '\n' | grep -vx e2e) ;;
	*) for step in $steps; do run_step "$step"; done ;;
	esac
fi
echo '== all'
printf '%s' "$took$again$reasons"
times > "$logs/all.times"
printf '  in all %6d s %5d s of CPU\n' $((SECONDS - started)) "$(cpu_seconds "$logs/all.times")"
[ -z "$failures" ] || echo "failed:$failures; see $logs/"
[ $retried = 0 ] || echo "retried: $retried"
[ $left = 0 ] || echo "left to check-long: $left:$leaving; each log tells which"
sum $passed $failed $skipped
if [ $failed = 0 ] && [ -z "$all_steps$changes" ] && [ -z "$(git status --porcelain 2> /dev/null)" ]; then
	git rev-parse -q --verify HEAD > "$logs/green" 2> /dev/null || rm -f "$logs/green"
fi
[ $failed = 0 ]
