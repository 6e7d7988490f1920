#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# soak.sh SECONDS   In the guest: 64 threads launch for so long with probes at their calls, beside samples of all and
# waits.  Nothing is missing, no stack has another thread's functions, and the kernel has nothing to say.
. ./functions.sh
at soak
cuda /tmp/soak/ "$1" --events cpu,offcpu,cuda --max-slowdown 100% --interval 60
tail -n 3 /tmp/cuda.log | sed 's/^/guest: pyprofd: /'
mkdir -p /py/tmp/soak && find /tmp/soak -name '*-c*.pb.gz' -exec cp {} /py/tmp/soak/ \;
# shellcheck disable=SC2046
$python /t/check_cuda.py soak "$(cat /tmp/cuda-done)" $(cd /py && find tmp/soak -name '*.pb.gz' | sed 's|^|/|') || fail "soak: wrong numbers"
complaints

exit $failed
