#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# deps.sh check|install PACKAGE... [--optional PACKAGE...]
# PACKAGE is A or A|B: the first that there is.  `check` prints what is missing (exit 1); `install`
# asks apt for it, and is fast when nothing is missing.  Tests that lack an optional one skip.  npm is there when the
# program is: a nodejs from elsewhere brings its own, and conflicts with Debian's package.
set -u
mode=$1
shift

# Where packages have other names, headers and programs tell.
have_by_hand() {
	for tool in gcc clang bpftool; do
		command -v $tool > /dev/null || return 1
	done
	for header in bpf/libbpf.h dwarf.h zlib.h lzma.h \
		uthash.h xxhash.h libiberty/demangle.h; do
		echo "#include <$header>"
	done | gcc -E -o /dev/null - 2> /dev/null
}

names=$(for item; do [ "$item" = --optional ] || echo "$item"; done | tr '|' ' ')
if ! command -v apt-get > /dev/null || ! command -v dpkg-query > /dev/null; then
	have_by_hand && exit 0
	echo "pyprofd: no apt-get here; install what these Debian packages hold (A|B: one of them):" >&2
	for item; do [ "$item" = --optional ] && break; echo "  $item" >&2; done
	exit 1
fi

# shellcheck disable=SC2086 # a list of words
installed=" $(dpkg-query -W -f='${db:Status-Status} ${Package}\n' $names 2> /dev/null |
	sed -n 's/^installed //p' | tr '\n' ' ') "
missing='' optional='' group=needed
for item; do
	if [ "$item" = --optional ]; then
		group=optional
		continue
	fi
	there=
	for name in $(echo "$item" | tr '|' ' '); do
		case $installed in *" $name "*) there=1 ;; esac
		[ "$name" != npm ] || ! command -v npm > /dev/null || there=1
	done
	[ -z "$there" ] || continue
	if [ $group = needed ]; then missing="$missing $item"; else optional="$optional $item"; fi
done
[ -n "$missing$optional" ] || exit 0
if [ "$mode" = check ]; then
	echo "missing:$missing$optional"
	exit 1
fi
if [ "$(id -u)" != 0 ]; then
	echo "pyprofd: these packages are missing:$missing$optional" >&2
	echo "pyprofd: run this as root: sudo make deps" >&2
	[ -z "$missing" ] && exit 0
	exit 1
fi

export DEBIAN_FRONTEND=noninteractive
apt="apt-get -o DPkg::Lock::Timeout=300 -q"
log=$(mktemp)
trap 'rm -f "$log"' EXIT
echo "pyprofd: installing$missing$optional"
$apt update > "$log" 2>&1 || tail -n 3 "$log" >&2

# The first alternative that apt can give.
choose() {
	for name in $(echo "$1" | tr '|' ' '); do
		if apt-cache policy "$name" 2> /dev/null | grep -q '^ *Candidate: [^(]'; then
			echo "$name"
			return
		fi
	done
	return 1
}
# choose_all ITEM...: their names into `chosen`; fails when apt knows none for some of them.
choose_all() {
	chosen='' lacking=''
	for item; do
		if name=$(choose "$item"); then chosen="$chosen $name"; else lacking="$lacking $item"; fi
	done
	[ -z "$lacking" ] && return 0
	echo "pyprofd: apt knows no package$lacking" >&2
	return 1
}
install() { # NAME...
	$apt install -y --no-install-recommends "$@" > "$log" 2>&1 && return
	tail -n 15 "$log" >&2
	return 1
}
# Installs what can be had.  One conflict fails all names of a call, and apt needs seconds for each: so by halves.
install_most() ( # NAME...
	[ $# -gt 0 ] || exit 0
	install "$@" && exit
	if [ $# = 1 ]; then
		echo "pyprofd: tests that need $1 will be skipped" >&2
		exit
	fi
	half=$(($# / 2))
	first=
	while [ $half -gt 0 ]; do
		first="$first $1" half=$((half - 1))
		shift
	done
	# shellcheck disable=SC2086
	install_most $first
	install_most "$@"
)
# shellcheck disable=SC2086
{
	choose_all $missing && { [ -z "$chosen" ] || install $chosen; } || exit 1
	choose_all $optional || echo 'pyprofd: tests that need them will be skipped' >&2
	install_most $chosen
}
exit 0
