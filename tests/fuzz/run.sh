#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# run.sh DIRECTORY RUNS SECONDS PROGRAM...   Each libFuzzer program for a number of inputs (fewer where its source says
# "runs: N at most"), or for a time (SECONDS not 0), as many at once as there are CPUs; what it finds stays in DIRECTORY/NAME.found, what it learns in DIRECTORY/NAME.corpus.
set -u
here=$(dirname "$(realpath "$0")")
directory=$1 inputs=$2 seconds=$3
shift 3

LIMIT_S=300
EDGES_MIN=10 # a thousand inputs that reach fewer fail the first check of their shape
one() { # PROGRAM
	name=${1##*/fuzz_}
	at_most=$(sed -n 's/.*runs: \([0-9]*\) at most.*/\1/p' "$here/fuzz_$name.c" 2> /dev/null)
	[ "${at_most:-$inputs}" -ge "$inputs" ] || inputs=$at_most
	mkdir -p "$directory/$name.corpus" "$directory/$name.found"
	seeds=$here/corpus/$name
	[ -d "$seeds" ] || seeds=
	bound=-max_total_time=$seconds
	[ "$seconds" != 0 ] || bound=-runs=$inputs
	# shellcheck disable=SC2086
	timeout -k 5 $((seconds * 2 + LIMIT_S)) "$1" $bound -timeout=5 -rss_limit_mb=1024 \
		-print_final_stats=1 -artifact_prefix="$directory/$name.found/" "$directory/$name.corpus" $seeds \
		> "$directory/$name.log" 2>&1
	rc=$?
	runs=$(sed -n 's/^stat::number_of_executed_units: *//p' "$directory/$name.log")
	# "#10000 DONE cov: 512 ft: 1400 corp: 210/31Kb ...": edges of the program, inputs that are worth keeping.
	reached=$(sed -n 's/^#[0-9]*.* cov: \([0-9]*\) .* corp: \([0-9]*\)\/.*/\1 edges, \2 in the corpus/p' "$directory/$name.log" | tail -n 1)
	edges=${reached%% *}
	if [ $rc = 0 ] && [ "$seconds" = 0 ] && [ "${runs:-0}" -lt "$inputs" ]; then
		echo "not ok fuzz $name: ${runs:-0} of $inputs inputs"
	elif [ $rc = 0 ] && [ "${runs:-0}" -ge 1000 ] && [ "${edges:-0}" -lt "$EDGES_MIN" ]; then
		echo "not ok fuzz $name: ${reached:-nothing} of the program reached: it needs seeds, in $here/corpus/$name"
	elif [ $rc = 0 ]; then
		echo "ok fuzz $name (${runs:-?} inputs, ${reached:-no coverage told})"
	else
		echo "not ok fuzz $name: exit status $rc; $directory/$name.log ends with:"
		tail -n 25 "$directory/$name.log" | sed 's/^/    /'
	fi
}

results=$(mktemp -d)
trap 'rm -rf "$results"' EXIT
at_once=$(nproc)
count=0
for program; do
	one "$program" > "$results/$count" &
	count=$((count + 1))
	# The next one begins when any has ended.
	[ "$count" -lt "$at_once" ] || wait -n
done
wait
cat "$results"/*
passed=$(cat "$results"/* | grep -c '^ok')
failed=$(cat "$results"/* | grep -c '^not ok')
[ $((passed + failed)) = "$count" ] || failed=$((count - passed))
echo "$passed passed, $failed failed, 0 skipped"
[ "$failed" = 0 ]
