#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# check_size.sh   No line of C and Python over 100 columns, tests included; in the product no file over 800 lines, no
# function over 80 lines or a complexity over 15.
set -u
cd "$(dirname "$(realpath "$0")")/../.." || exit 1
files=$(find bpf include userspace -name '*.[ch]')
failed=0
for file in $files; do
	lines=$(wc -l < "$file")
	[ "$lines" -le 800 ] || {
		echo "$file: $lines lines, more than 800: split it by topic"
		failed=1
	}
done
# Tabs stop at every eighth column.  What a fuzz target is linked with is one line of its source.
find bpf include userspace tests deploy docs -name '*.[ch]' -o -name '*.py' | python3 -c '
import sys
wide = 0
for path in sys.stdin.read().split("\n"):
    for number, line in enumerate(open(path, encoding="utf-8") if path else (), 1):
        columns = len(line.rstrip("\n").expandtabs(8))
        if columns > 100 and not line.startswith("/* sources: "):
            print("%s:%d: %d columns, more than 100" % (path, number, columns))
            wide += 1
sys.exit(wide != 0)' || failed=1
if ! command -v pmccabe > /dev/null; then
	echo 'no pmccabe: functions are not looked at'
	[ $failed = 0 ] && exit 77
	exit 1
fi
# Columns: complexity with a switch as 1, classic complexity, statements, first line, lines, file, name.
# shellcheck disable=SC2086
pmccabe $files 2> /dev/null | awk '
	$1 > 15 { printf "%s %s: complexity %d, more than 15\n", $6, $7, $1; failed = 1 }
	$5 > 80 { printf "%s %s: %d lines, more than 80\n", $6, $7, $5; failed = 1 }
	END { exit failed }' || failed=1
exit $failed
