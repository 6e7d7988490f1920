#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# otelcol.sh DIRECTORY   Builds DIRECTORY/otelcol-prof: the OpenTelemetry collector with a receiver of OTLP and an exporter
# into a file, from Go's modules; five minutes of a CPU.  0.155.0 is the last version whose modules are all there.
set -eu
version=v0.155.0
directory=$(realpath -m "$1")
command -v go > /dev/null || { echo 'no go'; exit 77; }
minor=$(go env GOVERSION | sed 's/^go1\.\([0-9]*\).*/\1/')
[ "$minor" -ge 25 ] || { echo "go 1.$minor is too old: the collector needs 1.25"; exit 77; }
[ ! -x "$directory/otelcol-prof" ] || exit 0
work=$directory/otelcol.work
mkdir -p "$work"
export GOFLAGS=-modcacherw GOPATH="$work/go" GOCACHE="$work/cache" GOBIN="$work/bin" CGO_ENABLED=0
cat > "$work/builder.yaml" << END
dist: {name: otelcol-prof, output_path: $work/source, version: ${version#v}}
receivers: [{gomod: go.opentelemetry.io/collector/receiver/otlpreceiver $version}]
exporters: [{gomod: github.com/open-telemetry/opentelemetry-collector-contrib/exporter/fileexporter $version}]
END
nice -n 19 go install -p=1 -ldflags '-s -w' "go.opentelemetry.io/collector/cmd/builder@$version"
# It ends with an error, as its `go mod tidy` wants modules of tests that are nowhere; go.mod is written before.
"$work/bin/builder" --skip-compilation --config "$work/builder.yaml" || [ -e "$work/source/go.mod" ]
(cd "$work/source" && GOFLAGS="$GOFLAGS -mod=mod" nice -n 19 go build -p=1 -ldflags '-s -w' -o "$directory/otelcol-prof.new" .)
mv "$directory/otelcol-prof.new" "$directory/otelcol-prof"
rm -rf "$work"
