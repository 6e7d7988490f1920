#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# In the guest, by systemd, after multi-user.target: the unit profiles a user's program, users see what is theirs, and
# `sudo pyprofd` leaves its file to who asked.  Each line "ok ..." or "not ok ..." is a test.
exec > /dev/ttyS0 2>&1
seconds=${1:-45}

check() { # NAME COMMAND...
	local name=$1 said
	shift
	if said=$("$@" 2>&1); then
		echo "guest: ok $name"
	else
		echo "guest: not ok $name"
		echo "$said" | tail -n 12 | sed 's/^/guest:     /'
	fi
}
has() { # WORDS COMMAND...: its output has these words
	local words=$1 said
	shift
	said=$("$@" 2>&1)
	echo "$said"
	echo "$said" | grep -q -e "$words"
}
lacks() { ! has "$@"; }
as_joe() { su joe -c "cd; $*"; }

as_joe python3 work.py &
for _ in $(seq 100); do [ ! -s /home/joe/pid ] || break; sleep 0.2; done
pid=$(cat /home/joe/pid)
systemctl start pyprofd
sleep "$seconds"
check 'the unit runs' systemctl is-active pyprofd
check 'it has the priority that it asks for' has '^ *-10$' ps -o ni= -p "$(systemctl show -p MainPID --value pyprofd)"
check 'it was not started twice' has 'NRestarts=0' systemctl show -p NRestarts pyprofd
check 'it warns of nothing' lacks 'not available\|have no names\|cannot' journalctl -u pyprofd --no-pager -o cat
check 'the program is in the windows' has 'inner  /home/joe/work.py' pyprof report /var/lib/pyprofd --by function
check 'the kernel has names' has 'schedule .*kernel' pyprof report /var/lib/pyprofd --kind offcpu --by function
check 'profiles are root'\''s' lacks 'inner' as_joe pyprof report /var/lib/pyprofd
check 'a user sees his program' has 'inner' as_joe pyprof dump --pid "$pid"
check 'a user sees no other'\''s' lacks 'process 1 ' as_joe pyprof dump --pid 1
check 'root sees them' has 'process 1 ' pyprof dump --pid 1
check 'root sees it live' has 'inner' pyprof top --pid "$pid" --count 1
agent=$(systemctl show -p MainPID --value pyprofd)
check 'it could write its profiles' nsenter -t "$agent" -m touch /var/lib/pyprofd/x
for file in /usr/x /etc/x /home/joe/x /proc/sys/kernel/perf_event_paranoid; do
	check "but not $file" has 'Read-only' nsenter -t "$agent" -m sh -c "echo 2 > $file"
done
check 'the unit ends well' systemctl stop pyprofd
check 'and says what it counted' has ' complete' journalctl -u pyprofd --no-pager -o cat
check 'sudo pyprofd' as_joe sudo pyprofd --hz 99 -d 3 -o prof.pb.gz
check 'its file is the user'\''s' has '^joe$' stat -c %U /home/joe/prof.pb.gz
check 'and has the program' has 'inner' as_joe pyprof report prof.pb.gz
check 'without sudo it says what lacks' has 'run it with sudo' as_joe pyprofd -d 1 -o x.pb.gz
echo 'guest: rc=0 end'
systemctl poweroff -ff
