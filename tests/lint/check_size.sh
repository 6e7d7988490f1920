#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# check_size.sh   No line over 100 columns, no file over 800 lines, no function over 80 lines or a complexity over 15.
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
# Tabs stop at every eighth column.
for file in $files; do
	expand -t 8 "$file" | awk -v file="$file" '
		length($0) > 100 { printf "%s:%d: %d columns, more than 100\n", file, NR, length($0); failed = 1 }
		END { exit failed }' || failed=1
done
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
