#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# check_unit.sh   The systemd unit parses, gives the agent its priority, and stays as closed as it is (exposure, 10 is worst).
set -u
cd "$(dirname "$(realpath "$0")")/../.." || exit 1
# Without CAP_SYS_NICE it cannot give itself more than the unit does.
wanted=$(sed -n 's/^#define AGENT_NICE (\(-[0-9]*\)).*/\1/p' userspace/agent/agent.c)
given=$(sed -n 's/^Nice=//p' deploy/systemd/pyprofd.service)
if [ -z "$wanted" ] || [ "$wanted" != "$given" ]; then
	echo "deploy/systemd/pyprofd.service: Nice=$given, but the agent runs at '$wanted' (AGENT_NICE)"
	exit 1
fi
command -v systemd-analyze > /dev/null || {
	echo 'no systemd-analyze'
	exit 77
}
unit=deploy/systemd/pyprofd.service
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
# The program that ExecStart names must exist.
sed 's|^ExecStart=[^ ]*|ExecStart=/bin/true|' $unit > "$root/pyprofd.service"
said=$(systemd-analyze verify --man=no "$root/pyprofd.service" 2>&1 | grep pyprofd.service)
if [ -n "$said" ]; then
	echo "$said"
	exit 1
fi
systemd-analyze security --offline=true --threshold=45 --no-pager "$root/pyprofd.service" > "$root/said" 2>&1 && exit 0
tail -n 1 "$root/said"
exit 1
