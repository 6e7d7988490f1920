#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# run.sh FOLDER SECONDS PROGRAM...   Each libFuzzer program for a bounded time, two at once; what it
# finds stays in FOLDER/NAME.found, what it learns in FOLDER/NAME.corpus.
set -u
here=$(dirname "$(realpath "$0")")
folder=$1 seconds=$2
shift 2

one() { # PROGRAM
	name=${1##*/fuzz_}
	mkdir -p "$folder/$name.corpus" "$folder/$name.found"
	seeds=$here/corpus/$name
	[ -d "$seeds" ] || seeds=
	# shellcheck disable=SC2086
	timeout -k 5 $((seconds * 2 + 60)) "$1" -max_total_time="$seconds" -timeout=5 -rss_limit_mb=1024 \
		-print_final_stats=1 -artifact_prefix="$folder/$name.found/" "$folder/$name.corpus" $seeds \
		> "$folder/$name.log" 2>&1
	rc=$?
	runs=$(sed -n 's/^stat::number_of_executed_units: *//p' "$folder/$name.log")
	if [ $rc = 0 ]; then
		echo "ok fuzz $name (${runs:-?} inputs)"
	else
		echo "not ok fuzz $name: exit status $rc; $folder/$name.log ends with:"
		tail -n 25 "$folder/$name.log" | sed 's/^/    /'
	fi
}

results=$(mktemp)
trap 'rm -f "$results"' EXIT
while [ $# -gt 0 ]; do
	one "$1" > "$results.1" &
	first=$!
	[ $# -gt 1 ] && one "$2" > "$results.2"
	wait $first
	cat "$results.1" "$results.2" 2> /dev/null | tee -a "$results"
	rm -f "$results.1" "$results.2"
	shift
	[ $# = 0 ] || shift
done
failed=$(grep -c '^not ok' "$results")
echo "$(grep -c '^ok' "$results") passed, $failed failed, 0 skipped"
[ "$failed" = 0 ]
