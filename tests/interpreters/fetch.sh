#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# fetch.sh OUT [MINIMUM]   Debian's own CPythons of several suites as trees to chroot into:
#     chroot OUT/debian-3.14 /usr/bin/python3.14
# A tree that is there already is kept.  A suite that fails is reported and skipped; the exit status
# is 0 when at least MINIMUM (3) of the trees run.
set -u
# version  suites that carry it, in order of preference; names of packages are resolved by apt
wanted='3.9 bullseye
3.11 bookworm
3.13 trixie
3.14 sid,forky
3.15 sid,experimental'

here=$(dirname "$(realpath "$0")")
. "$here/apt_root.sh"
out=$(realpath -m "${1:?usage: fetch.sh OUT [MINIMUM]}")
minimum=${2:-3}
begin=$(date +%s)
mkdir -p "$out"
work=$(mktemp -d "$out/.fetch.XXXXXX") || exit 1
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM

runs() { # TREE VERSION
	[ "$(chroot "$1" "/usr/bin/python$2" -c 'import threading, json, zlib; print(1)' 2>&1)" = 1 ]
}

# Of the closure only what a python needs: the rest (debconf, perl, ...) comes by maintainer scripts
# that are never run here.
unpack() { # ROOT VERSION TREE
	packages=$(apt_root_closure "$1" "python$2" "libpython$2" |
		grep -E '^(lib|python|zlib|gcc-[0-9]*-base|media-types|netbase|readline-common)')
	[ -n "$packages" ] || {
		tail -n 2 "$1/closure.log"
		return 1
	}
	# shellcheck disable=SC2086 # a list of words
	apt_root_get "$1" $packages 2>&1 || return 1
	mkdir -p "$3/tmp" "$3/dev" "$3/proc" "$3/sys"
	# A merged /usr has to be there before the first package is laid out.
	for name in bin sbin lib lib64; do
		mkdir -p "$3/usr/$name"
		ln -s "usr/$name" "$3/$name"
	done
	chmod 1777 "$3/tmp"
	for name in null:3 zero:5 urandom:9; do
		mknod -m 666 "$3/dev/${name%:*}" c 1 "${name#*:}" 2> /dev/null
	done
	for deb in "$1"/deb/*.deb; do
		# Not dpkg-deb -x: it would replace the links above by directories.
		dpkg-deb --fsys-tarfile "$deb" | tar -x --keep-directory-symlink -C "$3" \
			--exclude='./usr/share/doc' --exclude='./usr/share/man' --exclude='./usr/share/locale' || return 1
	done
	rm -rf "$1/deb"
}

root_of() { # SUITE: the suite's private root, made once
	[ -d "$work/$1" ] || case $1 in
	sid | forky) apt_root_new "$work/$1" "$1" ;;
	experimental) apt_root_new "$work/$1" sid experimental ;;
	*) apt_root_new "$work/$1" "$1" "$1-security" ;;
	esac
}

fetch() { # VERSION SUITES
	tree=$out/debian-$1
	if [ -f "$tree/.complete" ]; then
		echo "ok $1 $(cat "$tree/.complete") (kept)"
		return 0
	fi
	for suite in $(echo "$2" | tr ',' ' '); do
		rm -rf "$work/tree-$1"
		reason=$(root_of "$suite" 2>&1 && unpack "$work/$suite" "$1" "$work/tree-$1" 2>&1) || {
			echo "# $1 from $suite: ${reason:-does not unpack}" | tr '\n' ' '
			echo
			continue
		}
		runs "$work/tree-$1" "$1" || {
			echo "# $1 from $suite: unpacked, but does not run"
			continue
		}
		version=$(chroot "$work/tree-$1" "/usr/bin/python$1" -c 'import platform; print(platform.python_version())')
		echo "$version $suite" > "$work/tree-$1/.complete"
		rm -rf "$tree"
		mv "$work/tree-$1" "$tree"
		echo "ok $1 $version $suite"
		return 0
	done
	echo "skip $1: no suite of $2 gave it"
	return 1
}

count=0
while read -r version suites; do
	# The lists of a suite are read by one fetch at a time: sid's serve two versions.
	fetch "$version" "$suites" && count=$((count + 1))
done <<WANTED
$wanted
WANTED
echo "$count interpreters in $out, $(($(date +%s) - begin)) s"
[ "$count" -ge "$minimum" ]
