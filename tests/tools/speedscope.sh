#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# speedscope.sh DIRECTORY   speedscope's npm package, unpacked to DIRECTORY/package, if it is the one whose sum is known here.
set -u
version=1.25.0
# Of the archive; npm's own `integrity` is the same number in base64.
sum=7297fd1d64d97f58a32d7049ae4f3b55eff9e2d9d8c7aae57f48144e1be7de8a24ea1eb784b5d539088c7f8e0f4fe5e8579d3770f7ef7e24f980fe6fa23a7a02
[ ! -d "$1/package" ] || exit 0
new=$1.new
rm -rf "$new"
mkdir -p "$new" && cd "$new" || exit 1
npm pack --silent "speedscope@$version" > /dev/null || {
	echo "no speedscope@$version" >&2
	exit 1
}
echo "$sum  speedscope-$version.tgz" | sha512sum --status -c || {
	echo "speedscope-$version.tgz is not the one that is known here: its sum differs" >&2
	exit 1
}
tar -xzf "speedscope-$version.tgz" && rm -rf "$1" && mv "$new" "$1"
