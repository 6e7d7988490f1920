#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# pip.sh PYTHON NAME [OPTION...]   Installs what requirements/NAME.txt names into PYTHON's environment: these versions, as
# wheels with these sums, and nothing else.
set -u
python=$1 name=$2
shift 2
exec "$python" -m pip install -q --disable-pip-version-check --only-binary=:all: --require-hashes "$@" \
	-r "$(dirname "$(realpath "$0")")/requirements/$name.txt"
