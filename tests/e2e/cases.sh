#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# cases.sh [ID-REGEX,...]   Runs the acceptance cases of modes cpu, offcpu and gil in $CASES (default:
# ../shared/devcases beside the checkout) with --pid,
# system-wide, and as pyprofd runs by default: system-wide with all events into a folder.  A case that fails is run once
# more, alone; both results are printed and the second one counts.  What was not true of the program by its own
# clocks is skipped with both figures (case_truth.py, gil_truth.py).  Work folder: $CASES_WORK (default: build/cases).
set -u
here=$(dirname "$(realpath "$0")")
top=$(dirname "$(dirname "$here")")
cd "$top" || exit 1
build=${BUILD:-build}
cases=${CASES:-../shared/devcases}
pyprof=$(realpath -m "${PYPROF:-$build/pyprof}")
pyprofd=$(realpath -m "${PYPROFD:-$build/pyprofd}")
work=$(realpath -m "${CASES_WORK:-$build/cases}")
python=$(command -v /usr/bin/python3 || command -v python3)
export PYTHONDONTWRITEBYTECODE=1

[ -f "$cases/run_cases.py" ] || {
	echo "skip cases: no $cases"
	echo "0 passed, 0 failed, 1 skipped"
	exit 0
}
mkdir -p "$work"

# Prints the ids of these modes (cpu is the default) that fit the expressions, with commas.
ids=$("$python" - "$cases" "${1:-.}" <<'PYTHON'
import glob, json, re, sys
found = [json.load(open(p)) for p in sorted(glob.glob(sys.argv[1] + "/*/case.json"))]
print(",".join("^%s$" % c["id"] for c in found if c.get("mode", "cpu") in ("cpu", "offcpu", "gil")
               and any(re.search(e, c["id"]) for e in sys.argv[2].split(","))))
PYTHON
)
[ -n "$ids" ] || {
	echo "skip cases: none of these modes"
	echo "0 passed, 0 failed, 1 skipped"
	exit 0
}

# What one case lacks (no network, no such Python) is reported and fails that case only.
# A marker saves the second run of the set-up: it is tied to the cases as they stand.
stamp=$({ cat "$cases"/*/case.json; echo "$ids"; } | cksum | tr -d " ")
if [ ! -f "$work/.setup-$stamp" ]; then
	"$python" "$cases/run_cases.py" "$cases" --setup --work "$work" --only "$ids" > "$work/setup.log" 2>&1 &&
		touch "$work/.setup-$stamp" || grep -v ' ok$' "$work/setup.log" | tail -n 20
fi

# EVENTS alone: what each kind needs, into one file.  EVENTS all: the default, all of them into a folder, of which
# a case gets its kind.
run_cases() { # IDS EVENTS OPTIONS JSON
	case $2 in
	all)
		all="$python $here/case_all_events.py $pyprofd $pyprof"
		set -- "$1" "$all cpu {out} $3" "$all offcpu {out} $3" "$all gil {out} $3" "$4"
		;;
	*)
		options="$3 -o {out}"
		set -- "$1" "$pyprofd $options" "$pyprofd --events offcpu $options" \
			"$pyprofd --events gil $options" "$4"
		;;
	esac
	"$python" "$cases/run_cases.py" "$cases" --work "$work" --only "$1" --profiler "$2" \
		--mode-profiler "offcpu=$3" --mode-profiler "gil=$4" --json "$5"
}
# Prints a line SKIP with its reason for each failed case that asked for more than was true of its program.
find_untrue() { # JSON
	"$python" "$here/case_truth.py" "$cases" "$1" "$work/run"
	truth_python=$work/venvs/d312/bin/python
	[ -x "$truth_python" ] && grep -q '"d06_gil_wait"' "$1" || return
	mkdir -p "$work/run/gil_truth"
	rm -f "$work/run/gil_truth/stop"
	CASE_TMP="$work/run/gil_truth" CASE_SECONDS=7 PYTHONPATH="$cases/_kit" \
		"$truth_python" "$here/gil_truth.py" "$cases/d06_gil_wait" "$1"
}
run() { # NAME EVENTS OPTIONS
	echo "# cases, $1: $2 events, $3"
	run_cases "$ids" "$2" "$3" "$work/$1.json" | tee "$work/$1.log" | grep -v -E '^[0-9]+ passed'
	again=$(sed -n 's/^\(FAIL\|ERROR\) *\([^ ]*\) .*/^\2$/p' "$work/$1.log" | paste -sd, -)
	passed=$((passed + $(grep -c '^PASS ' "$work/$1.log")))
	skipped=$((skipped + $(grep -c '^SKIP ' "$work/$1.log")))
	[ -n "$again" ] || return
	echo "# once more:"
	run_cases "$again" "$2" "$3" "$work/$1-again.json" | tee "$work/$1-again.log" | grep -v -E '^[0-9]+ passed'
	passed=$((passed + $(grep -c '^PASS ' "$work/$1-again.log")))
	failed=$((failed + $(grep -c -E '^(FAIL|ERROR) ' "$work/$1-again.log")))
	find_untrue "$work/$1-again.json" | tee "$work/$1-untrue.log"
	untrue=$(grep -c '^SKIP ' "$work/$1-untrue.log")
	failed=$((failed - untrue))
	skipped=$((skipped + untrue))
}

passed=0
failed=0
skipped=0
run pid alone "--hz {hz} --pid {pid} --duration {duration}"
run system-wide alone "--hz {hz} --duration {duration}"
run all-events all "--hz {hz} --duration {duration}"
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" = 0 ]
