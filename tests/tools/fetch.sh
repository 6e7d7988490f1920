#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# fetch.sh DIRECTORY   A Python with the tools that open what pyprof exports; DIRECTORY/bin/python is it.  speedscope (npm)
# goes to DIRECTORY/speedscope-1.25.0.  What is fetched has the sums that are written down here.  Tests that lack one skip.
set -u
here=$(dirname "$(realpath "$0")")
directory=$(realpath -m "${1:?usage: fetch.sh DIRECTORY}") || exit 2
# 3.12 and later: before, cProfile slows each bytecode and not only calls, and its shares are no measure.
for python in python3.13 python3.12 "$HOME"/.pyenv/versions/3.1[23].*/bin/python3 python3; do
	[ ! -x "$directory/bin/python" ] || break
	"$python" -m venv "$directory" > /dev/null 2>&1
done
[ -x "$directory/bin/python" ] || exit 1
for name in gprof2dot snakeviz opentelemetry-proto perfetto line_profiler numpy websocket-client prometheus-client; do
	"$here/pip.sh" "$directory/bin/python" $name || echo "# no $name"
done
"$here/speedscope.sh" "$directory/speedscope-1.25.0" || echo '# no speedscope'
