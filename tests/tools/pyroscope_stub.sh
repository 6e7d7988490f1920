#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# pyroscope_stub.sh DIRECTORY   Builds DIRECTORY/pyroscope_stub, a server with Pyroscope's own API, from Go's modules (go.sum has
# their sums); half a minute of a CPU, and nothing where it is newer than its sources.
set -eu
here=$(dirname "$(realpath "$0")")
directory=$(realpath -m "$1")
command -v go > /dev/null || { echo 'no go'; exit 77; }
minor=$(go env GOVERSION | sed 's/^go1\.\([0-9]*\).*/\1/')
[ "$minor" -ge 25 ] || { echo "go 1.$minor is too old: Pyroscope's API needs 1.25"; exit 77; }
[ -z "$(find "$here/pyroscope_stub" -newer "$directory/pyroscope_stub" 2>&1)" ] && exit 0
work=$directory/pyroscope_stub.work
mkdir -p "$work"
export GOFLAGS=-modcacherw GOPATH="$work/go" GOCACHE="$work/cache" CGO_ENABLED=0 GOTOOLCHAIN=local
(cd "$here/pyroscope_stub" && nice -n 19 go build -p=1 -mod=readonly -buildvcs=false -ldflags '-s -w' -o "$directory/pyroscope_stub.new" .)
mv "$directory/pyroscope_stub.new" "$directory/pyroscope_stub"
rm -rf "$work"
