#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# check_man.sh   The man pages format without a warning and name every option of the programs.
set -u
cd "$(dirname "$(realpath "$0")")/../.." || exit 1
failed=0
formats() { # PAGE
	command -v groff > /dev/null || return
	said=$(groff -man -Tutf8 -ww -z -rLL=100n "$1" 2>&1)
	[ -z "$said" ] || {
		echo "$said"
		failed=1
	}
}
formats docs/man/pyprofd.1
formats docs/man/pyprof.1
formats docs/man/pyprofd-serve.1
for option in $(sed -nE "s/^\\t\{\"([a-z0-9-]*)\", ([A-Z]+_[A-Z]|'.').*/\\1/p" userspace/reader/*.c); do
	sed 's/\\-/-/g' docs/man/pyprof.1 | grep -q -e "--$option" || {
		echo "docs/man/pyprof.1: --$option is missing"
		failed=1
	}
done
for verb in $(sed -n 's/^\t{"\([a-z]*\)", .*/\1/p' userspace/reader/main.c); do
	grep -q "^\.SS $verb" docs/man/pyprof.1 || {
		echo "docs/man/pyprof.1: the verb $verb is missing"
		failed=1
	}
done
for option in $(sed -n '/OPTION_HIDDEN/d; s/^\t{"\([a-z-]*\)", .*/\1/p' userspace/serve/main.c); do
	sed 's/\\-/-/g' docs/man/pyprofd-serve.1 | grep -q -e "--$option" || {
		echo "docs/man/pyprofd-serve.1: --$option is missing"
		failed=1
	}
done
page=docs/man/pyprofd.1
for option in $(sed -n 's/^\t{"\([a-z-]*\)", .*/\1/p' userspace/options/settings.c); do
	sed 's/\\-/-/g' $page | grep -q -e "--$option" || {
		echo "$page: --$option is missing"
		failed=1
	}
done
# The keys of the configuration file.
for key in $(sed -n 's/^\tX([A-Z_]*, "\([a-z-]*\)", .*/\1/p' userspace/config/config.h); do
	sed 's/\\-/-/g' $page | awk '/^\.SH/ { inside = $2 == "CONFIGURATION" } inside' | grep -qw -e "$key" || {
		echo "$page: the key $key of the configuration is missing"
		failed=1
	}
done
[ $failed = 0 ] || exit 1
command -v groff > /dev/null || {
	echo 'no groff: whether they format is not looked at'
	exit 77
}
