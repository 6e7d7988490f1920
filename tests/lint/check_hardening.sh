#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# check_hardening.sh [BUILD]   The built programs have what the Makefile's HARDENING asks of compiler and linker.
set -u
cd "$(dirname "$(realpath "$0")")/../.." || exit 1
build=${1:-build}
export LC_ALL=C
command -v readelf > /dev/null || {
	echo 'no readelf'
	exit 77
}
failed=0
lacks() { # FILE WHAT
	echo "$1: $2"
	failed=1
}
# Control-flow protection holds where each object of a program is marked; some C libraries' own are not (Debian 12).
case $(readelf -hW "$build/pyprofd" | sed -n 's/^ *Machine: *//p') in
*X86-64*) marks='IBT, SHSTK' probe='or[a-z]* *\$0x0,\(0x0\)\{0,1\}(%rsp)' ;;
AArch64) marks='BTI, PAC' probe= ;;
*) marks='' probe= ;;
esac
marked() { # FILE: each object in it
	[ "$(readelf -nW "$1" 2> /dev/null | grep -c "feature.*: $marks")" = "$({ ar t "$1" 2> /dev/null || echo "$1"; } | wc -l)" ]
}
startup_is_marked() {
	for file in Scrt1.o crti.o crtbeginS.o crtendS.o crtn.o libc_nonshared.a libiberty.a; do
		marked "$(${CC:-gcc} -print-file-name=$file)" || return 1
	done
}

for program in "$build/pyprofd" "$build/pyprof" "$build/pyprofd-serve" "$build/pyprof-fetch"; do
	readelf --dyn-syms -W "$program" > "$build/hardening.symbols" || exit 1
	! grep -q ' __asan_init' "$build/hardening.symbols" || {
		echo 'built with sanitizers'
		exit 77
	}
	readelf -hW "$program" | grep -q 'Type: *DYN' || lacks "$program" 'not position-independent (-pie)'
	readelf -lW "$program" > "$build/hardening.segments"
	grep -q ' GNU_RELRO ' "$build/hardening.segments" || lacks "$program" 'no GNU_RELRO (-z relro)'
	grep ' GNU_STACK ' "$build/hardening.segments" | grep -q ' RW  ' || lacks "$program" 'an executable stack (-z noexecstack)'
	! grep -q ' RWE ' "$build/hardening.segments" || lacks "$program" 'a segment that is writable and executable'
	readelf -dW "$program" > "$build/hardening.dynamic"
	grep -q 'FLAGS.*NOW' "$build/hardening.dynamic" || lacks "$program" 'symbols are bound late (-z now)'
	! grep -q 'TEXTREL\|RPATH\|RUNPATH' "$build/hardening.dynamic" || lacks "$program" 'text relocations or a path of libraries of its own'
	grep -q ' __stack_chk_fail' "$build/hardening.symbols" || lacks "$program" 'no __stack_chk_fail (-fstack-protector-strong)'
	grep -q ' __[a-z]*_chk\(@\|$\)' "$build/hardening.symbols" || lacks "$program" 'no checked functions of the C library (_FORTIFY_SOURCE)'
	[ -z "$probe" ] || ! command -v objdump > /dev/null || objdump -d --no-show-raw-insn "$program" | grep -q "$probe" ||
		lacks "$program" 'large frames are not probed (-fstack-clash-protection)'
	[ -z "$marks" ] || ! startup_is_marked || marked "$program" || lacks "$program" "not marked $marks (-fcf-protection, -mbranch-protection)"
done
[ -z "$marks" ] || marked "$build/libpyprofd.a" || lacks "$build/libpyprofd.a" "objects that are not marked $marks (-fcf-protection, -mbranch-protection)"
rm -f "$build"/hardening.*
exit $failed
