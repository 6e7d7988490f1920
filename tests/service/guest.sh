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

# What a program gets that has the unit's filter of system calls.
calls_under_filter() {
	{
		printf '%s\n' '[Service]' Type=oneshot 'ExecStart=/usr/bin/python3 /root/calls.py' StandardOutput=file:/root/calls
		grep '^SystemCall' /usr/local/lib/systemd/system/pyprofd.service
	} > /etc/systemd/system/calls.service
	systemctl daemon-reload && systemctl start calls && cat /root/calls
}
drop_in() { # LINE...: the only lines that change the unit
	mkdir -p /etc/systemd/system/pyprofd.service.d
	printf '%s\n' '[Service]' "$@" > /etc/systemd/system/pyprofd.service.d/test.conf
	systemctl daemon-reload
}
status_of() { grep "^$1:" "/proc/$(systemctl show -p MainPID --value pyprofd)/status"; }

systemd-sysusers
as_joe python3 work.py &
for _ in $(seq 100); do [ ! -s /home/joe/pid ] || break; sleep 0.2; done
pid=$(cat /home/joe/pid)
check 'the unit says that it is ready' systemctl start pyprofd
check 'and samples by then' has perf_event ls -l "/proc/$(systemctl show -p MainPID --value pyprofd)/fd"
sleep "$seconds"
check 'the unit runs' systemctl is-active pyprofd
check 'it has the priority that it asks for' has '^-10$' cut -d ' ' -f 19 "/proc/$(systemctl show -p MainPID --value pyprofd)/stat"
check 'it was not started twice' has 'NRestarts=0' systemctl show -p NRestarts pyprofd
check 'its memory is bounded' grep -q '^[0-9]' /sys/fs/cgroup/system.slice/pyprofd.service/memory.max
check 'it is not root' has "[[:space:]]$(id -u pyprofd)$" status_of Uid
# The kernel's own kernel.perf_event_paranoid is Debian's, which gives perf events to CAP_SYS_ADMIN alone.
check 'its child has CAP_SYS_ADMIN, not the agent' has '000001c400080004$' status_of CapPrm
check 'its system calls are filtered' has '2' status_of Seccomp
check 'it cannot write to others, nor stop them' has 'ptrace EPERM, writev EPERM, readv ok' calls_under_filter
check 'it warns of nothing' lacks 'not available\|have no names\|cannot' journalctl -u pyprofd --no-pager -o cat
check 'the program is in the windows' has 'inner  .*work\.py' pyprof report /var/lib/pyprofd --by function
check 'the kernel has names' has 'schedule .*kernel' pyprof report /var/lib/pyprofd --kind offcpu --by function
check 'profiles are nobody else'\''s' lacks 'inner' as_joe pyprof report /var/lib/pyprofd
check 'a user sees his program' has 'inner' as_joe pyprof dump --pid "$pid"
check 'a user sees no other'\''s' lacks 'process 1 ' as_joe pyprof dump --pid 1
check 'root sees them' has 'process 1 ' pyprof dump --pid 1
check 'root sees it live' has 'inner' pyprof top --pid "$pid" --count 1
agent=$(systemctl show -p MainPID --value pyprofd)
check 'it could write its profiles' nsenter -t "$agent" -m sh -c 'touch /var/lib/pyprofd/x && rm /var/lib/pyprofd/x'
for file in /usr/x /etc/x /home/joe/x /proc/sys/kernel/perf_event_paranoid; do
	check "but not $file" has 'Read-only' nsenter -t "$agent" -m sh -c "echo 2 > $file"
done
# The unit that serves what pyprofd has.
url=http://127.0.0.1:4041
get() { python3 /home/joe/get.py "$@"; }
serve_status() { grep "^$1:" "/proc/$(systemctl show -p MainPID --value pyprofd-serve)/status"; }
users_profile() {
	as_joe "python3 get.py '$url/debug/pprof/profile?seconds=5&pid=$pid' served.pb.gz" && pyprof report /home/joe/served.pb.gz
}
check 'pyprofd-serve starts' systemctl start pyprofd-serve
for _ in $(seq 100); do ! get $url/healthz > /dev/null 2>&1 || break; sleep 0.2; done
check 'it answers anyone' has 'status 200' as_joe python3 get.py $url/healthz
check 'it is not root' has "[[:space:]]$(id -u pyprofd-serve)$" serve_status Uid
check 'it has no capability' has '0000000000000000$' serve_status CapPrm
check 'root gets metrics' has 'pyprofd_build_info{' get $url/metrics
check 'a user gets none' has 'status 403' as_joe python3 get.py $url/metrics
check 'a user gets a profile of his program' has 'inner' users_profile
# A program of root's, which is busy.  A process of others and one that is not there look the same: an empty profile.
sh -c 'while :; do :; done' &
busy=$!
all_that_joe_sees() {
	as_joe "python3 get.py '$url/debug/pprof/profile?seconds=5' all.pb.gz" && pyprof report --by process /home/joe/all.pb.gz
}
all_that_root_sees() { get "$url/debug/pprof/profile?seconds=5" /root/all.pb.gz && pyprof report --by process /root/all.pb.gz; }
check 'and of no other' lacks "pid $busy " all_that_joe_sees
check 'of his own he sees all' has "pid $pid " all_that_joe_sees
check 'root sees the others' has "pid $busy " all_that_root_sees
kill "$busy"
check 'root gets the store' has 'inner' get "$url/api/v1/profile?from=2m&format=folded"
check 'a user does not' has 'status 403' as_joe "python3 get.py '$url/api/v1/profile?from=2m&format=folded'"
check 'and another machine reads it' has 'inner' pyprof export --format folded --from $url --since 2m
check 'with its windows' has 'windows' pyprof info --from $url
check 'a user does not, either' has 'status 403' as_joe "pyprof report --from $url"
check 'the page is there for all' has 'status 200' as_joe "python3 get.py $url/"
check 'it ends well' systemctl stop pyprofd-serve
check 'and complains about nothing' lacks 'cannot\|rror' journalctl -u pyprofd-serve --no-pager -o cat
# The configuration, read again.
conf=/etc/pyprofd/pyprofd.conf
cp $conf /root/shipped.conf
printf '[capture]\nhz = 49\n' > $conf
check 'a reload' systemctl reload pyprofd
check 'says what has changed' has 'read again; changed: .*hz' journalctl -u pyprofd --no-pager -o cat
printf '[capture]\nhz = 49\nhertz = 1\n' > $conf
systemctl reload pyprofd
check 'a wrong file is told by its line' has 'pyprofd.conf:3' journalctl -u pyprofd --no-pager -o cat
check 'and changes nothing' has 'NRestarts=0' systemctl show -p NRestarts pyprofd
cp /root/shipped.conf $conf
check 'pyprofd --doctor finds nothing that fails' pyprofd --config $conf --doctor
check 'the unit ends well' systemctl stop pyprofd
check 'and says what it counted' has ' complete' journalctl -u pyprofd --no-pager -o cat
# Root's windows in the same place: the service has to go on there.
check 'sudo pyprofd beside it' as_joe sudo pyprofd --hz 99 -d 3
check 'leaves all to the service' lacks . find /var/lib/pyprofd ! -user pyprofd
check 'sudo pyprofd' as_joe sudo pyprofd --hz 99 -d 3 -o prof.pb.gz
check 'its file is the user'\''s' has '^joe$' stat -c %U /home/joe/prof.pb.gz
check 'and has the program' has 'inner' as_joe pyprof report prof.pb.gz
check 'without sudo it says what lacks' has 'run it with sudo' as_joe pyprofd -d 1 -o x.pb.gz
check 'the command of sudo pyprofd is the user'\''s' has '^joe /home/joe joe$' as_joe 'sudo pyprofd -q -o c.pb.gz -- sh -c "echo \$(id -un) \$HOME \$USER"'
check 'or root'\''s, when asked for' has '^root$' as_joe 'sudo pyprofd -q -o c.pb.gz --set capture.as-root=yes -- id -un'
# One that hangs is ended and started again.
drop_in WatchdogSec=10 RestartSec=1
systemctl start pyprofd
systemctl kill -s STOP --kill-who=main pyprofd
sleep 30
check 'one that hangs is started again' has 'NRestarts=[1-9]' systemctl show -p NRestarts pyprofd
check 'by the watchdog' has 'atchdog' journalctl -u pyprofd --no-pager -o cat
systemctl stop pyprofd
drop_in
# The clock goes a year on and two back, and a CPU goes and comes.
year=31536000
set_clock() { date -s "@$(($(date +%s) + $1))" > /dev/null; } # SECONDS
cpu_1() { echo "$1" > /sys/devices/system/cpu/cpu1/online; } # 0 or 1
jump() {
	local agent rc
	pyprofd --events cpu --interval 2 -o /root/times/ > /root/times.log 2>&1 &
	agent=$!
	for _ in $(seq 100); do ! ls /root/times/*/*/*.pb.gz > /dev/null 2>&1 || break; sleep 0.2; done
	set_clock $year
	sleep 6
	cpu_1 0 || return 1
	sleep 6
	cpu_1 1 || return 1
	sleep 6
	set_clock -$((2 * year))
	sleep 12
	kill $agent
	wait $agent
	rc=$?
	set_clock $year
	cat /root/times.log
	return $rc
}
check 'the clock is set and a CPU goes and comes: it ends well' jump
check 'its windows follow each other' python3 /root/times.py /root/times 30
check 'that is told' grep -q 'the clock has gone [0-9]* s back' /root/times.log
check 'and are read' has 'inner' pyprof report /root/times --by function
# Where CAP_SYS_ADMIN is not needed and not given, and as root.
profiles_as() { # NAME USER
	local since
	since=$(date '+%F %T')
	systemctl daemon-reload
	check "$1: the unit starts" systemctl start pyprofd
	sleep "$seconds"
	check "$1: it is $2" has "[[:space:]]$(id -u "$2")$" status_of Uid
	check "$1: its capabilities" has '000001c400080004$' status_of CapEff
	check "$1: it warns of nothing" lacks 'not available\|have no names\|cannot' journalctl -u pyprofd --no-pager -o cat --since "$since"
	check "$1: it profiles the program" has 'inner  .*work\.py' pyprof report /var/lib/pyprofd --since 30s --by function
	check "$1: a user sees his program" has 'inner' as_joe pyprof dump --pid "$pid"
	check "$1: and no other's" lacks 'process 1 ' as_joe pyprof dump --pid 1
	check "$1: it ends well" systemctl stop pyprofd
	check "$1: and says what it counted" has ' complete' journalctl -u pyprofd --no-pager -o cat --since "$since"
}
echo 2 > /proc/sys/kernel/perf_event_paranoid
sed '/=CAP_SYS_ADMIN$/d' /usr/local/lib/systemd/system/pyprofd.service > /etc/systemd/system/pyprofd.service
profiles_as 'paranoid 2' pyprofd
rm /etc/systemd/system/pyprofd.service
# No driver of GPUs is there: what they need opens nothing, and all else works.
mkdir -p /etc/systemd/system/pyprofd.service.d
cp /usr/local/share/doc/pyprofd/examples/pyprofd-gpu.conf /etc/systemd/system/pyprofd.service.d/gpu.conf
profiles_as 'with the drop-in for GPUs' pyprofd
rm /etc/systemd/system/pyprofd.service.d/gpu.conf
drop_in User=root
profiles_as 'as root' root
echo 'guest: rc=0 end'
systemctl poweroff -ff
