#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# check_targets.sh   tests/targets.tsv has each target of `make help`: check-long runs them.
exec "$(dirname "$(realpath "$0")")/../targets.sh" --lint
