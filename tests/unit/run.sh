#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# run.sh PROGRAM...   Runs cmocka programs, one on each CPU; prints failures, skips with their reasons, and a sum.
set -u
passed=0 failed=0 skipped=0
logs=$(mktemp -d)
export logs
trap 'rm -rf "$logs"' EXIT
printf '%s\n' "$@" | xargs -P "$(nproc)" -I PROGRAM sh -c '
	log=$logs/$1
	mkdir -p "${log%/*}"
	CMOCKA_MESSAGE_OUTPUT=TAP timeout -k 5 300 "$1" > "$log" 2>&1
	echo $? > "$log.rc"' run PROGRAM
for program; do
	log=$logs/$program
	rc=$(cat "$log.rc") || rc='not there'
	s=$(grep -cE '^(not )?ok [0-9]+.*# SKIP' "$log")
	p=$(grep -E '^ok [0-9]+' "$log" | grep -cv '# SKIP')
	f=$(grep -E '^not ok [0-9]+' "$log" | grep -cv '# SKIP')
	if [ "$rc" != 0 ] && [ "$f" = 0 ]; then
		f=1
		echo "not ok ${program##*/tests/unit/}: exit status $rc"
		tail -n 20 "$log" | sed 's/^/    /'
	elif [ "$f" != 0 ]; then
		echo "not ok ${program##*/tests/unit/}"
		grep -vE '^ok [0-9]+' "$log" | sed 's/^/    /'
	fi
	sed -n "s|^skipped: |skip ${program##*/tests/unit/}: |p" "$log"
	passed=$((passed + p)) failed=$((failed + f)) skipped=$((skipped + s))
done
echo "$passed passed, $failed failed, $skipped skipped"
[ $failed = 0 ]
