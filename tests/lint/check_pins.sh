#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# check_pins.sh   What tests fetch from PyPI and npm comes by one script each, in versions and with sums that are written down.
set -u
cd "$(dirname "$(realpath "$0")")/../.." || exit 1
failed=0
only() { # WHAT REGEX FILE: nobody else has it
	found=$(grep -rnE --exclude-dir=__pycache__ --exclude="${0##*/}" -e "$2" Makefile tests deploy | grep -v "^$3:")
	[ -z "$found" ] || {
		echo "$1 only by $3:"
		echo "$found"
		failed=1
	}
}
only 'PyPI' 'pip"?,? *"?(install|download)' tests/tools/pip.sh
only 'npm' 'npm"?,? +"?(pack|install|ci|exec)\b|\bnpx\b' tests/tools/speedscope.sh
grep -q -e --require-hashes tests/tools/pip.sh && grep -q 'sha512sum --status -c' tests/tools/speedscope.sh || {
	echo 'tests/tools: sums are not compared'
	failed=1
}
for file in tests/tools/requirements/*.txt; do
	# A requirement and its sums are one line that goes on.
	sed -e '/^#/d' -e ':more' -e '/\\$/{N;b more' -e '}' -e 's/\\\n//g' "$file" |
		grep -vE '^[A-Za-z0-9_.-]+==[0-9a-z.]+( +--hash=sha256:[0-9a-f]{64})+$' && {
		echo "$file: a line without a version or sums"
		failed=1
	}
done
# Where it comes from is the machine's setting.
hosts=$(grep -rnE --exclude-dir=__pycache__ --exclude="${0##*/}" -e 'pypi\.org|pythonhosted\.org|npmjs\.(org|com)' Makefile README.md docs tests deploy)
[ -z "$hosts" ] || {
	echo 'the name of a registry:'
	echo "$hosts"
	failed=1
}
exit $failed
