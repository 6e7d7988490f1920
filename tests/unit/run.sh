#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# run.sh PROGRAM...   Runs cmocka programs, one on each CPU; prints failures, skips with their reasons, and a sum.
# Programs that fail are run once more, alone, when they are no more than a fiftieth: some look at threads that must have
# come to rest, on a machine that is shared.  The closing line tells how many, `..., N retried`.
set -u
passed=0 failed=0 skipped=0 retried=0
logs=$(mktemp -d)
export logs
trap 'rm -rf "$logs"' EXIT

run_each() { # AT_ONCE PROGRAM...
	at_once=$1
	shift
	printf '%s\n' "$@" | xargs -P "$at_once" -I PROGRAM sh -c '
		log=$logs/$1
		mkdir -p "${log%/*}"
		CMOCKA_MESSAGE_OUTPUT=TAP timeout -k 5 300 "$1" > "$log" 2>&1
		echo $? > "$log.rc"' run PROGRAM
}
has_failed() { # PROGRAM
	[ "$(cat "$logs/$1.rc" 2> /dev/null)" != 0 ] || grep -E '^not ok [0-9]+' "$logs/$1" | grep -qv '# SKIP'
}
tell_failure() { # PROGRAM
	echo "not ok ${1##*/tests/unit/}: exit status $(cat "$logs/$1.rc" 2> /dev/null || echo 'not there')"
	grep -vE '^ok [0-9]+' "$logs/$1" | tail -n 40 | sed 's/^/    /'
}
retry() { # PROGRAM...
	again=
	for program; do
		has_failed "$program" || continue
		tell_failure "$program"
		again="$again $program"
		retried=$((retried + 1))
	done
	[ $retried != 0 ] || return
	if [ $retried -gt $(($# / 50 + 1)) ]; then
		echo "# $retried of $# failed: all of these failures stand"
		retried=0
		return
	fi
	echo "# once more, one at a time:$(for program in $again; do printf ' %s' "${program##*/tests/unit/}"; done)"
	run_each 1 $again
}

run_each "$(nproc)" "$@"
retry "$@"
for program; do
	log=$logs/$program
	s=$(grep -cE '^(not )?ok [0-9]+.*# SKIP' "$log")
	p=$(grep -E '^ok [0-9]+' "$log" | grep -cv '# SKIP')
	f=$(grep -E '^not ok [0-9]+' "$log" | grep -cv '# SKIP')
	if has_failed "$program"; then
		[ "$f" != 0 ] || f=1
		[ $retried = 0 ] || tell_failure "$program"
	fi
	sed -n "s|^skipped: |skip ${program##*/tests/unit/}: |p" "$log"
	passed=$((passed + p)) failed=$((failed + f)) skipped=$((skipped + s))
done
told=
[ $retried = 0 ] || told=", $retried retried"
echo "$passed passed, $failed failed, $skipped skipped$told"
[ $failed = 0 ]
