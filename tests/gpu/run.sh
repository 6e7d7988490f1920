#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# run.sh --make DIR|FILE.tar.gz    Packs what a machine with a GPU is asked with; on the machine where pyprofd is built.
# run.sh [--tier N] [--out DIR]    Asks this machine, out of the unpacked bundle: no compiler, no network, 10 minutes at most.
#
# Tiers: 1 the driver alone, 2 with BPF, as root, 3 with torch; --tier 2 leaves out the third.  Where one cannot run, a line
# says why, and the next one goes on.  The table comes last, and stands in DIR (./pyprofd-gpu-DATE) as table.md and
# results.json, beside all that programs printed.
# Exit status: 0 all that was asked is as it should be; 1 something differs; 77 there is no CUDA driver; 2 wrong usage.
# Environment: PYTHON (python3), with torch.
set -u
here=$(dirname "$(realpath "$0")")
bin=$here/bin
scripts='run.sh tiers.sh questions.tsv table.awk answers.awk static.awk probed.awk torch.awk torch_load.py'

die() { echo "run.sh: $*" >&2; exit 2; }

# ---------------------------------------------------------------- packing

# The C library's own files, for machines where it is too old for our programs.
pack_libraries() { # DIR
	local loader libc name
	loader=$(ldd "$1/bin/gpu_check" | awk '$1 ~ /\/ld-linux/ { print $1 }')
	libc=$(dirname "$(ldd "$1/bin/gpu_check" | awk '$1 == "libc.so.6" { print $3 }')")
	mkdir "$1/lib" && cp -L "$loader" "$1/lib/" || return
	for name in libc.so.6 libm.so.6 libdl.so.2 libpthread.so.0 librt.so.1; do
		[ ! -e "$libc/$name" ] || cp -L "$libc/$name" "$1/lib/" || return
	done
}

pack() { # DIR: an empty one
	local build=${BUILD:-build} name
	mkdir "$1/bin" || return
	for name in gpu_check nvml_check library_check profile_sums pyprofd pyprofd-static pyprof; do
		cp "$build/tests/gpu/$name" "$1/bin/" || return
	done
	for name in $scripts; do cp "$here/$name" "$1/" || return; done
	pack_libraries "$1" || return
	{
		echo "pyprofd $("$1/bin/pyprofd" --version | awk '{ print $2 }'), $(uname -m), packed $(date -u +%F)"
		(cd "$1" && sha256sum run.sh $(find . -mindepth 2 -type f | sort))
	} > "$1/MANIFEST"
}

make_bundle() { # DIR|FILE.tar.gz
	local work=$1 top
	case $1 in
	*.tar.gz)
		work=$(mktemp -d) && mkdir "$work/pyprofd-gpu" || exit 1
		top=$work/pyprofd-gpu
		;;
	*)
		[ ! -e "$1" ] || [ -z "$(ls -A "$1")" ] || die "'$1' is not empty"
		mkdir -p "$1" && top=$(realpath "$1") || exit 1
		;;
	esac
	pack "$top" || die 'cannot pack it: make gpu-bundle builds what goes in'
	case $1 in *.tar.gz)
		tar -C "$work" --owner=0 --group=0 -czf "$1" pyprofd-gpu || exit 1
		;;
	esac
	head -n 1 "$top/MANIFEST"
	(cd "$top" && find . -type f -printf '  %10s %P\n' | sort -k 2)
	[ "$top" = "$(realpath "$work")" ] || rm -r "$work"
	echo "$1: unpack it on the machine with the GPU, and there, as root: pyprofd-gpu/run.sh"
}

# ---------------------------------------------------------------- asking

last_tier=3 out=
while [ $# -gt 0 ]; do
	case $1 in
	--make) [ $# = 2 ] || die 'usage: run.sh --make DIR|FILE.tar.gz'; make_bundle "$2"; exit ;;
	--tier) last_tier=${2:-}; [[ $last_tier == [123] ]] || die '--tier 1, 2 or 3'; shift 2 ;;
	--out) out=${2:-}; [ -n "$out" ] || die '--out DIR'; shift 2 ;;
	*) die 'usage: run.sh [--tier N] [--out DIR], or run.sh --make DIR|FILE.tar.gz' ;;
	esac
done
[ -x "$bin/gpu_check" ] || die 'this is no bundle: make one with --make'
out=$(realpath -m "${out:-pyprofd-gpu-$(date -u +%Y%m%dT%H%M%SZ)}")
mkdir -p "$out" || exit 2
head=$out/head.tsv answers=$out/answers.tsv
: > "$head"
: > "$answers"
. "$here/tiers.sh"
ask_all
awk -v head="$head" -v json="$out/results.json" -f "$here/table.awk" "$here/questions.tsv" "$answers" > "$out/table.md"
cat "$out/table.md"
[ -n "$has_driver" ] || exit 77
! awk -F'\t' '!($1 in seen) && $2 == "differs" { found = 1 } { seen[$1] } END { exit !found }' "$answers"
