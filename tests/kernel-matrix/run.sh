#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# run.sh [--few | --soak SECONDS] [SERIES...]   Boots the kernels of kernels.tsv with the built pyprofd and checks the names
# and lines of a live Python stack in each.  One line a kernel and a closing line.  --few is for `make check`: those with a
# third column, and of their stages those that `later` (guest/functions.sh) does not leave to check-long.  --soak: instead, 64
# threads launch GPU kernels for so long beside samples.
# PYPROFD, KERNEL_CACHE, INTERPRETERS and VM_TIMEOUT (s) are read from the environment.
set -u
here=$(dirname "$(realpath "$0")")
top=$(dirname "$(dirname "$here")")
cd "$top" || exit 1
build=${BUILD:-build}
pyprofd=$(realpath "${PYPROFD:-$build/pyprofd}")
cache=$(realpath -m "${KERNEL_CACHE:-$build/kernels}")
interpreters=$(realpath -m "${INTERPRETERS:-$build/interpreters}")
logs=$(realpath -m "${KERNEL_LOGS:-$build/kernel-matrix}")
mkdir -p "$cache" "$logs"
chosen='!/^#/'
parameters=
if [ "${1:-}" = --few ]; then
	shift
	parameters=pyprofd.few
	echo '# left to check-long: 2 (threads and gc of the guest)'
	chosen='!/^#/ && $3 == "check"'
	left=$(awk -F'\t' '!/^#/ && $3 != "check" { print $1 }' "$here/kernels.tsv" | tr '\n' ' ')
	# shellcheck disable=SC2086
	[ -z "$left" ] || echo "# left to check-long: $(echo $left | wc -w) (${left% })"
fi
if [ "${1:-}" = --soak ]; then
	parameters=pyprofd.soak=$2
	: "${VM_TIMEOUT:=$(($2 + 900))}"
	export VM_TIMEOUT
	shift 2
fi
series=${*:-$(awk -F'\t' "$chosen { print \$1 }" "$here/kernels.tsv")}

skip_all() {
	for s in $series; do echo "skip $s $1"; done
	# shellcheck disable=SC2086
	set -- $series
	echo "0 passed, 0 failed, $# skipped"
	exit 0
}
[ "$(uname -m)" = x86_64 ] || skip_all 'the guests are x86-64'
for tool in qemu-system-x86_64 busybox; do
	command -v $tool > /dev/null || skip_all "no $tool"
done
[ -x "$pyprofd" ] || {
	echo "no $pyprofd: build it first" >&2
	exit 1
}
[ -e "$(dirname "$pyprofd")/tests/fakes/libcuda.so.1" ] || {
	echo "no stand-in of libcuda beside $pyprofd: make fakes" >&2
	exit 1
}
[ -f "$interpreters/debian-3.11/.complete" ] || "$here/../interpreters/fetch.sh" "$interpreters" 1 ||
	skip_all 'no interpreter to put into the guest'
# shellcheck disable=SC2086
"$here/fetch_kernels.sh" "$cache" $series || skip_all 'no kernel could be fetched'
initramfs=$logs/initramfs.gz
"$here/mkinitramfs.sh" "$initramfs" "$pyprofd" "$interpreters/debian-3.11" || exit 1

# The emulator's vCPUs run each other's half-patched code now and then: the kernel patches the switch's tracepoint
# in by int3 (text_poke_bp), finds nothing behind the trap any more and panics.  No real CPU does.
is_emulators_fault() { # LOG
	! grep -q '^guest: booted' "$1" || grep -q 'Oops: int3' "$1"
}

one() { # SERIES: boots it; the second time when it did not come up, or the emulator failed
	if [ ! -s "$cache/vmlinuz-$1" ]; then
		echo "skip $1 no kernel of this series could be fetched"
		return
	fi
	release=$(cat "$cache/vmlinuz-$1.release")
	begin=$(date +%s)
	VM_APPEND=$(awk -F'\t' -v series="$1" '!/^#/ && $1 == series { print $4 }' "$here/kernels.tsv")
	VM_APPEND="$VM_APPEND $parameters"
	export VM_APPEND
	for attempt in 1 2; do
		# The second time without KVM, which may be the reason.
		[ $attempt = 1 ] || export VM_ACCEL=tcg
		"$here/vm.sh" "$cache/vmlinuz-$1" "$initramfs" "$logs/$1.log"
		rc=$?
		[ $rc = 99 ] && [ $attempt = 1 ] && is_emulators_fault "$logs/$1.log" || break
		echo "# $release once more: $(grep -m 1 'Oops: int3' "$logs/$1.log" || echo 'it did not boot')" >&2
	done
	took="$(($(date +%s) - begin)) s"
	case $rc in
	0) echo "ok $release ($took) $(sed -n 's/^guest: pid.folded: //p; s/^guest: waits.folded:/;/p' "$logs/$1.log" | tr -d '\n')" ;;
	99)
		echo "not ok $release ($took) the guest did not finish; its console ends with:"
		tail -n 8 "$logs/$1.log" | sed 's/^/    /'
		;;
	*)
		echo "not ok $release ($took)"
		sed -n 's/^guest: /    /p' "$logs/$1.log"
		;;
	esac
}

# Two guests at a time: each has two emulated CPUs that idle most of the time.
results=$(mktemp)
trap 'rm -f "$results"' EXIT
# shellcheck disable=SC2086
set -- $series
while [ $# -gt 0 ]; do
	one "$1" > "$results.1" &
	first=$!
	if [ $# -gt 1 ]; then
		one "$2" > "$results.2"
	fi
	wait $first
	cat "$results.1" "$results.2" 2> /dev/null | tee -a "$results"
	rm -f "$results.1" "$results.2"
	shift
	[ $# = 0 ] || shift
done
failed=$(grep -c '^not ok ' "$results")
echo "$(grep -c '^ok ' "$results") passed, $failed failed, $(grep -c '^skip ' "$results") skipped"
[ "$failed" = 0 ]
