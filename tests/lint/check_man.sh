#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# check_man.sh   The man page formats without a warning and names every option of the program.
set -u
cd "$(dirname "$(realpath "$0")")/../.." || exit 1
page=docs/man/pyprofd.1
failed=0
if command -v groff > /dev/null; then
	said=$(groff -man -Tutf8 -ww -z -rLL=100n $page 2>&1)
	[ -z "$said" ] || {
		echo "$said"
		failed=1
	}
fi
for option in $(sed -n 's/^\t{"\([a-z-]*\)", .*/\1/p' userspace/agent/options.c); do
	sed 's/\\-/-/g' $page | grep -q -e "--$option" || {
		echo "$page: --$option is missing"
		failed=1
	}
done
exit $failed
