#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# fetch.sh FOLDER   A Python with the tools that open what pyprof exports; FOLDER/bin/python is it.  speedscope (npm)
# goes to FOLDER/speedscope-VERSION.  Tests that lack one skip.
set -u
folder=$1
speedscope=1.25.0
# 3.12 and later: before, cProfile slows each bytecode and not only calls, and its shares are no measure.
for python in python3.13 python3.12 "$HOME"/.pyenv/versions/3.1[23].*/bin/python3 python3; do
	[ ! -x "$folder/bin/python" ] || break
	"$python" -m venv "$folder" > /dev/null 2>&1
done
[ -x "$folder/bin/python" ] || exit 1
for package in gprof2dot==2025.4.14 snakeviz==2.2.2 opentelemetry-proto==1.45.2 perfetto==0.59.1 \
	line_profiler==5.0.0 numpy==2.2.6 websocket-client==1.9.2; do
	"$folder/bin/python" -m pip install -q --disable-pip-version-check "$package" || echo "# no $package"
done
if [ ! -d "$folder/speedscope-$speedscope/package" ]; then
	new=$folder/speedscope.new
	rm -rf "$new"
	mkdir -p "$new"
	(cd "$new" && npm pack --silent "speedscope@$speedscope" > /dev/null && tar -xzf speedscope-*.tgz) &&
		mv "$new" "$folder/speedscope-$speedscope" || echo "# no speedscope@$speedscope"
	rm -rf "$new"
fi
