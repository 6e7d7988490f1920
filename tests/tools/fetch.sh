#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# fetch.sh FOLDER   A Python with the tools that open what pyprof exports; FOLDER/bin/python is it.  Tests that
# lack one skip.
set -u
folder=$1
[ -x "$folder/bin/python" ] || python3 -m venv "$folder" > /dev/null || exit 1
for package in gprof2dot==2025.4.14 snakeviz==2.2.2 opentelemetry-proto==1.45.2 perfetto==0.59.1 line_profiler==5.0.0; do
	"$folder/bin/python" -m pip install -q --disable-pip-version-check "$package" || echo "# no $package"
done
