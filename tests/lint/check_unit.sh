#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# check_unit.sh   The systemd units parse; pyprofd's gives the agent its priority, its bounds and its watchdog, and stays as closed as it is
# (exposure, 10 is worst).
set -u
cd "$(dirname "$(realpath "$0")")/../.." || exit 1
# Without CAP_SYS_NICE it cannot give itself more than the unit does.
wanted=$(sed -n 's/^#define AGENT_NICE (\(-[0-9]*\)).*/\1/p' userspace/agent/main.c)
given=$(sed -n 's/^Nice=//p' deploy/systemd/pyprofd.service)
if [ -z "$wanted" ] || [ "$wanted" != "$given" ]; then
	echo "deploy/systemd/pyprofd.service: Nice=$given, but the agent runs at '$wanted' (AGENT_NICE)"
	exit 1
fi
unit=deploy/systemd/pyprofd.service
grep -qxe "LimitNICE=$wanted" $unit || {
	echo "$unit: no LimitNICE=$wanted: a thread could not get the agent's priority back"
	exit 1
}
for setting in User=pyprofd Type=notify WatchdogSec= TimeoutStopSec= MemoryMax= LimitNOFILE= CapabilityBoundingSet= NoNewPrivileges=yes; do
	grep -q "^$setting" $unit || {
		echo "$unit: no $setting"
		exit 1
	}
done
# Each capability is explained, and given as well as allowed.
for capability in $(sed -n 's/^CapabilityBoundingSet=//p' $unit); do
	grep -q "^| $capability |" docs/security.md || {
		echo "docs/security.md: what is $capability for?"
		exit 1
	}
	grep '^AmbientCapabilities=' $unit | grep -qw "$capability" || {
		echo "$unit: $capability is allowed, but not given"
		exit 1
	}
done
# A list that begins with ~ takes away from the one before it.  @debug has ptrace, @system-service writing to other memory.
for call in ptrace process_vm_writev; do
	grep '^SystemCallFilter=~' $unit | grep -qw "$call" && ! grep '^SystemCallFilter=[^~]' $unit | grep -qwe "$call" -e @debug || {
		echo "$unit: the system call filter allows $call"
		exit 1
	}
done
serve=deploy/systemd/pyprofd-serve.service
for setting in User=pyprofd-serve SupplementaryGroups=pyprofd NoNewPrivileges=yes MemoryMax=; do
	grep -q "^$setting" $serve || {
		echo "$serve: no $setting"
		exit 1
	}
done
# The program refuses what is beyond its own bound; the unit's kills.
mib() { sed -n "s/^#define $1 (\([0-9]*\)[UL]* << 20).*/\1/p" "userspace/serve/$2"; }
data=$(mib MEMORY_DATA_MAX_BYTES main.c) windows=$(mib ANSWER_LIVE_FILE_MAX_BYTES answer.h)
watches=$(sed -n 's/^#define HTTP_WATCHES_MAX \([0-9]*\)U.*/\1/p' userspace/serve/http.h)
given=$(sed -n 's/^MemoryMax=\([0-9]*\)M$/\1/p' $serve)
if [ -z "$data" ] || [ -z "$windows" ] || [ -z "$watches" ] || [ "${given:-0}" -lt $((data + watches * windows + 64)) ]; then
	echo "$serve: MemoryMax=${given}M is below what the program may take: $data MiB, $watches files of $windows MiB and 64 MiB"
	exit 1
fi
grep -qx 'CapabilityBoundingSet=' $serve || {
	echo "$serve: it needs no capability"
	exit 1
}
grep -q -- 'capture.live-user=pyprofd-serve' $unit || {
	echo "$unit: pyprofd is not told of pyprofd-serve's user"
	exit 1
}
command -v systemd-analyze > /dev/null || {
	echo 'no systemd-analyze'
	exit 77
}
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
# The program that ExecStart names must exist.
sed 's|^ExecStart=[^ ]*|ExecStart=/bin/true|' $unit > "$root/pyprofd.service"
said=$(systemd-analyze verify --man=no "$root/pyprofd.service" 2>&1 | grep pyprofd.service)
if [ -n "$said" ]; then
	echo "$said"
	exit 1
fi
# The drop-in for GPUs parses, and opens their devices alone.
mkdir "$root/pyprofd.service.d"
cp deploy/systemd/pyprofd-gpu.conf "$root/pyprofd.service.d/gpu.conf"
said=$(systemd-analyze verify --man=no "$root/pyprofd.service" 2>&1 | grep -e pyprofd.service -e gpu.conf)
rm -r "$root/pyprofd.service.d"
if [ -n "$said" ]; then
	echo "$said"
	exit 1
fi
grep -qx 'DevicePolicy=closed' deploy/systemd/pyprofd-gpu.conf || {
	echo 'deploy/systemd/pyprofd-gpu.conf: it opens all devices'
	exit 1
}
# Exposure of a unit, times ten, and the most that it may have.
closed() { # UNIT MOST
	systemd-analyze security --offline=true --threshold="$2" --no-pager "$root/$1" > "$root/said" 2>&1 && return
	tail -n 1 "$root/said"
	return 1
}
sed 's|^ExecStart=[^ ]*|ExecStart=/bin/true|' deploy/systemd/pyprofd-serve.service > "$root/pyprofd-serve.service"
said=$(systemd-analyze verify --man=no "$root/pyprofd-serve.service" 2>&1 | grep pyprofd-serve.service:)
if [ -n "$said" ]; then
	echo "$said"
	exit 1
fi
closed pyprofd.service 35 && closed pyprofd-serve.service 25
