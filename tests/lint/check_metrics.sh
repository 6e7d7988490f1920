#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# check_metrics.sh [write]   docs/metrics.md is what the lists of metrics say; with `write` it is made so.
set -u
cd "$(dirname "$(realpath "$0")")/../.." || exit 1
page=docs/metrics.md
rows() { # HEADER: X("name", KIND, "label", values, "what it says")
	tr -d '\n\\' < "$1" | sed 's/[\t ][\t ]*/ /g; s/ X("/\nX("/g; s/")/")\n/g' |
		sed -n 's/^X("\([a-z_]*\)", \([A-Z]*\)[A-Z_]*, "\([a-z, ]*\)", .*"\(.*\)")$/| `\1` | \L\2\E | \3 | \4 |/p'
}
make_page() {
	echo '<!-- Made by tests/lint/check_metrics.sh write. -->'
	echo '# Metrics'
	echo
	echo '`pyprofd-serve` shows these at `/metrics`, in the text format of Prometheus. Counters begin with 0 when the program'
	echo 'starts; times are in seconds, memory in bytes.'
	echo
	echo '## Of pyprofd'
	echo
	echo '| name | type | label | what it says |'
	echo '|---|---|---|---|'
	rows userspace/agent/progress.h
	echo
	echo '## Of GPUs'
	echo
	echo 'Where a program with CUDA was seen: [gpu.md](gpu.md#gauges). A value that the GPU or its driver does not give is missing.'
	echo
	echo '| name | type | label | what it says |'
	echo '|---|---|---|---|'
	rows userspace/gpu/gpu_metrics.h
	echo
	echo '## Of pyprofd-serve'
	echo
	echo '| name | type | label | what it says |'
	echo '|---|---|---|---|'
	rows userspace/serve/metrics.h
	echo
	echo '## Of each `[push NAME]`'
	echo
	echo '| name | type | label | what it says |'
	echo '|---|---|---|---|'
	rows userspace/collectors/metrics.h
}
if [ "${1:-}" = write ]; then
	make_page > $page
	exit
fi
make_page | diff -u $page - || {
	echo "$page: not what the lists of metrics say: tests/lint/check_metrics.sh write"
	exit 1
}
[ "$(make_page | grep -c '^| `')" -ge 20 ] || {
	echo 'check_metrics.sh: it does not find the metrics any more'
	exit 1
}
