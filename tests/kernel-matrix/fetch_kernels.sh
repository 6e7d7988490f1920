#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# fetch_kernels.sh CACHE [SERIES...]   Puts the kernels of kernels.tsv into CACHE as vmlinuz-SERIES
# (with the full release in vmlinuz-SERIES.release).  What is there is kept.  Prints a line for each
# that cannot be had; the exit status is 0 when at least one kernel is there.
set -u
here=$(dirname "$(realpath "$0")")
. "$here/../interpreters/apt_root.sh"
cache=$(realpath -m "${1:?usage: fetch_kernels.sh CACHE [SERIES...]}")
shift
only=" $* "
mkdir -p "$cache"
work=$(mktemp -d "$cache/.fetch.XXXXXX") || exit 1
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM
machine=$(dpkg --print-architecture)

# From 6.19 on the image is in linux-binary-VERSION, before in linux-image-VERSION.
candidates() { # ROOT SERIES: newest first
	apt-cache -c "$1/conf" pkgnames linux- |
		grep -E "^linux-(image|binary)-$(echo "$2" | sed 's/\./\\./g')\.[^-]*(-[0-9]+)?(-bpo[0-9.]*)?-cloud-$machine\$" |
		sed 's/^linux-\(image\|binary\)-\(.*\)$/\2 &/' | sort -rV | cut -d' ' -f2 | head -n 4
}

extract() { # DEB SERIES
	member=$(dpkg-deb --fsys-tarfile "$1" | tar -t | grep -E '/vmlinuz[^/]*$' | head -n 1)
	[ -n "$member" ] || return 1
	dpkg-deb --fsys-tarfile "$1" | tar -xO "$member" > "$work/image" || return 1
	dpkg-deb -f "$1" Package | sed 's/^linux-\(image\|binary\)-//' > "$cache/vmlinuz-$2.release"
	mv "$work/image" "$cache/vmlinuz-$2"
}

fetch() { # SERIES SUITES
	for from in $(echo "$2" | tr ',' ' '); do
		[ -d "$work/$from" ] || apt_root_new "$work/$from" "$from" || continue
		for package in $(candidates "$work/$from" "$1"); do
			rm -rf "$work/$from/deb"
			apt_root_get "$work/$from" "$package" || continue
			extract "$work/$from"/deb/*.deb "$1" && return 0
		done
	done
	return 1
}

count=0
while read -r series suites _; do
	case $series in '#'* | '') continue ;; esac
	case $only in '  ') ;; *" $series "*) ;; *) continue ;; esac
	if [ -s "$cache/vmlinuz-$series" ] || fetch "$series" "$suites"; then
		count=$((count + 1))
	else
		echo "# no kernel $series in $suites"
	fi
done < "$here/kernels.tsv"
[ "$count" -gt 0 ]
