#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# targets.sh [--lint | TARGET...]   Runs each target of `make help` as tests/targets.tsv says, in a clone of what is
# committed.  Before each, what the others have built is removed, but for the programs of `make all`: a target that lacks a
# prerequisite fails, as it does for who calls it first.  --lint: only whether the table has each target.
# What is fetched (interpreters, kernels, tools) is taken from the checkout.  Prints ok or not ok for each, and sums up.
set -u
cd "$(dirname "$(realpath "$0")")/.." || exit 1
table=tests/targets.tsv
named=$(make -s help | sed -n 's/^make \([a-zA-Z][a-zA-Z-]*\)  .*/\1/p; s/^make   .*/make/p' | sort)
known=$(awk -F'\t' '!/^#/ && NF > 1 { print $1 }' $table | sort)
[ -n "$named" ] && [ "$named" = "$known" ] || {
	echo "$table and \`make help\` name different targets:"
	diff <(echo "$known") <(echo "$named")
	exit 1
}
[ "${1:-}" != --lint ] || exit 0
[ "$(id -u)" = 0 ] || { echo 'targets.sh: as root' >&2; exit 1; }

top=$PWD
build=$(realpath -m "${BUILD:-build}")
clone=$build/targets
rm -rf "$clone"
git clone -q "$top" "$clone" || exit 1
export INTERPRETERS=${INTERPRETERS:-$build/interpreters} KERNEL_CACHE=${KERNEL_CACHE:-$build/kernels}
export PYTHONDONTWRITEBYTECODE=1
unset BUILD MAKEFLAGS MAKELEVEL CHECK_LONG CHANGED
passed=0 failed=0 left=0
# What `make all` has made stays.
sweep() { (cd "$clone" && rm -rf build-* build/tests build/fuzz build/check build/mutants build/targets build/installed); }
while IFS=$'\t' read -r target command; do
	case $target in '#'* | '') continue ;; esac
	[ $# = 0 ] || [[ " $* " == *" $target "* ]] || continue
	case $command in -*)
		left=$((left + 1))
		continue
		;;
	esac
	sweep
	begin=$SECONDS
	if (cd "$clone" && timeout -k 30 1200 bash -c "$command") > "$build/check/target-$target.log" 2>&1 < /dev/null; then
		echo "ok make help: $target ($((SECONDS - begin)) s)"
		passed=$((passed + 1))
	else
		echo "not ok make help: $target ($((SECONDS - begin)) s): $command"
		tail -n 8 "$build/check/target-$target.log" | sed 's/^/    /'
		failed=$((failed + 1))
	fi
done < $table
rm -rf "$clone"
echo "# not run here: $left"
echo "$passed passed, $failed failed, 0 skipped"
[ $failed = 0 ]
