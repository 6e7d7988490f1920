#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# In the guest: a live Python program is profiled by pid and system-wide, and check.py compares names
# and lines with what the interpreter itself says.  Then the waits of another, off the CPU, and the memory that a third touches.
fail() {
	echo "guest: FAILED $*"
	failed=1
}
failed=0
# By the clock: how long a turn takes an emulator whose machine has other work, nobody knows.
await() { # SECONDS COMMAND...: until it succeeds.  Returns nonzero when it has not
	read -r await_now await_rest < /proc/uptime
	await_end=$((${await_now%.*} + $1))
	shift
	until "$@"; do
		read -r await_now await_rest < /proc/uptime
		[ "${await_now%.*}" -lt "$await_end" ] || return 1
		sleep 0.2
	done
}
# As a service would: the capabilities that it needs and no others.  Beyond 2 Debian's kernels have perf
# events for CAP_SYS_ADMIN only.
echo 2 > /proc/sys/kernel/perf_event_paranoid
pyprofd="/t/service_caps /opt/pyprofd"
python="chroot /py /usr/bin/python3.11 -S -E"

# From 6.13 on the kernel gives programs private stacks.  That the one of samples has some shows that they are found.
see_private_stacks() {
	case $(uname -r) in 5.* | 6.[0-9].* | 6.1[0-2].*) return ;; esac
	tries=0
	until /t/programs | grep -q '^on_cpu_sample ' || [ $tries -ge 100 ]; do
		tries=$((tries + 1))
		sleep 0.1
	done
	/t/programs | awk '$1 == "on_cpu_sample" { n += $3 }
		END { print "guest: places with private stacks: on_cpu_sample " n + 0; exit !n }' ||
		fail "no private stacks are seen"
}

profile() { # NAME TARGET_PID OPTION...
	name=$1
	pid=$2
	shift 2
	timeout 60 $pyprofd --hz 99 --duration 3 -o "/tmp/$name.folded" "$@" > "/tmp/$name.log" 2>&1 &
	profiler=$!
	see_private_stacks
	wait $profiler
	rc=$?
	sed 's/^/guest: pyprofd: /' "/tmp/$name.log" | tail -n 8
	[ "$rc" = 0 ] || fail "$name: pyprofd ended with $rc"
	[ -f "/tmp/$name.folded" ] || {
		fail "$name: nothing written"
		return
	}
	cp "/tmp/$name.folded" /py/tmp/
	$python /t/check.py "/tmp/$name.folded" "$pid" || {
		fail "$name: wrong stacks"
		head -n 5 "/tmp/$name.folded" | cut -c1-700
	}
	grep -q 'complete' "/tmp/$name.log" || fail "$name: no closing line"
}

$python /t/target.py &
target=$!
while [ ! -e /py/tmp/ready ] && kill -0 $target 2> /dev/null; do sleep 0.1; done
profile pid "$target" --pid "$target"
profile all "$target"
kill $target

waits() {
	timeout 60 $pyprofd --events offcpu --pid "$1" --duration 5 -o /tmp/waits.folded > /tmp/waits.log 2>&1 ||
		fail "waits: pyprofd ended with $?"
	sed 's/^/guest: pyprofd: /' /tmp/waits.log | tail -n 8
	cp /tmp/waits.folded /py/tmp/ && $python /t/check_waits.py /tmp/waits.folded "$1" 5 || {
		fail "waits: wrong times"
		head -n 12 /tmp/waits.folded | cut -c1-700
	}
}
$python /t/waits.py &
target=$!
while [ ! -e /py/tmp/waits-ready ] && kill -0 $target 2> /dev/null; do sleep 0.1; done
waits $target

# --timeline and --wakers load and write: what is in them the end-to-end tests look at.
traces() {
	timeout 60 $pyprofd --wakers --timeline /tmp/run.json --pid "$1" --duration 3 -o /tmp/waker.folded > /tmp/traces.log 2>&1 ||
		fail "traces: pyprofd ended with $?"
	sed 's/^/guest: pyprofd: /' /tmp/traces.log | tail -n 8
	grep -q '"name":"sleep","dur"' /tmp/run.json || fail "traces: nobody sleeps in the timeline"
	grep -q '"ph":"i","cat":"sample"\|"name":"on CPU"' /tmp/run.json || fail "traces: nobody runs in the timeline"
	grep -q 'nap .*;--waker--;.*;\[interrupt\] ' /tmp/waker.folded || fail "traces: no timer ends a nap"
	grep -q 'reader .*;--waker--;.*<module> ' /tmp/waker.folded || fail "traces: no write ends a read"
}
traces $target
kill -9 $target

# Before uprobe_multi each place of code is a perf event of its own, for which these kernels want CAP_SYS_ADMIN.
case $(uname -r) in
5.* | 6.[0-5].*) prober=/opt/pyprofd is_shared= settled=4 ;;
*) prober=$pyprofd is_shared=1 settled=2 ;;
esac
# What of a pyprofd's grows with its probes: links of many places, or perf events.
links() { # PID
	if [ -n "$is_shared" ]; then
		cat /proc/"$1"/fdinfo/* 2> /dev/null | grep -c uprobe_multi
	else
		ls -l /proc/"$1"/fd 2> /dev/null | grep -c perf_event
	fi
}
# Waits for programs that need the kernel's verifier, which takes an emulator tens of seconds, and then for their links,
# until these stay as many: where they are perf events, each takes the kernel 0.1 s.
attached() { # PID PROGRAM
	tries=0 same=0 before=
	until /t/programs | grep -q "^$2 " || [ $tries -ge 60 ] || ! kill -0 "$1" 2> /dev/null; do
		tries=$((tries + 1))
		sleep 1
	done
	until [ $same -ge $settled ] || [ $tries -ge 90 ] || ! kill -0 "$1" 2> /dev/null; do
		tries=$((tries + 1))
		now=$(links "$1")
		[ "$now" = "$before" ] && [ "$now" != 0 ] && same=$((same + 1)) || same=0
		before=$now
		sleep 1
	done
}
# Programs that can be preempted must not have a private stack, of which there is one a CPU (6.13): all those of user
# probes (type 2, BPF_PROG_TYPE_KPROBE) and those of tracepoints by name (17).
no_private_stacks() { # PROGRAM...
	/t/programs > /tmp/programs.txt || fail "programs: their machine code cannot be read"
	for program; do
		grep -q "^$program " /tmp/programs.txt || fail "$program is not loaded"
	done
	awk '$2 == 2 || $2 == 17 { if (!($1 in of)) names = names " " $1; of[$1] += $3; bad += $3 }
		END {
			for (i = split(names, name, " "); i; i--)
				text = name[i] " " of[name[i]] (text ? ", " text : "")
			print "guest: places with private stacks: " text
			exit bad > 0
		}' /tmp/programs.txt || fail "a program that can be preempted has a private stack"
}

# Every call or line of a program, by probes of their own object.
exact() { # calls|lines, PROGRAMS of it, OPTIONS
	name=$1 programs=$2
	shift 2
	rm -f /py/tmp/calls-*
	$python /t/counted.py &
	target=$!
	while [ ! -e /py/tmp/calls-ready ] && kill -0 $target 2> /dev/null; do sleep 0.1; done
	$prober "$@" --max-slowdown 1000x --pid $target --duration 150 -o /tmp/$name.pb.gz > /tmp/$name.log 2>&1 &
	profiler=$!
	attached $profiler "${programs%% *}"
	no_private_stacks $programs
	touch /py/tmp/calls-go
	for _ in $(seq 200); do
		[ -e /py/tmp/calls-done ] && break
		sleep 0.1
	done
	kill -INT $profiler
	wait $profiler || fail "$name: pyprofd ended with $?"
	sed 's/^/guest: pyprofd: /' /tmp/$name.log | tail -n 8
	cp /tmp/$name.pb.gz /py/tmp/ && $python /t/check_$name.py /tmp/$name.pb.gz || fail "$name: wrong numbers"
	kill -9 $target
}
exact calls 'on_call_entry on_call_return' --events calls
exact lines 'on_line_entry on_line_return on_line' --lines counted.py

# The kernel ends a program for want of memory in its cgroup: its last minutes are kept.
out_of_memory() {
	group=/sys/fs/cgroup/oom
	echo +memory > /sys/fs/cgroup/cgroup.subtree_control && mkdir $group && echo 48M > $group/memory.max || {
		fail "oom: no memory controller"
		return
	}
	sh -c "echo \$\$ > $group/cgroup.procs && exec $python /t/eats.py" 2> /dev/null &
	eater=$!
	await 30 [ -e /py/tmp/eats-ready ]
	$pyprofd --hz 99 --interval 2 --duration 300 -o /tmp/oom/ > /tmp/oom.log 2>&1 &
	profiler=$!
	# Of a process that ends before the first window nothing can be kept, and the verifier takes an emulator tens of seconds.
	await 120 grep -q 'profiles go to' /tmp/oom.log || fail "oom: pyprofd does not begin"
	touch /py/tmp/eats-go
	wait $eater
	await 60 grep -q 'want of memory' /tmp/oom.log || fail "oom: not told"
	kill -TERM $profiler
	wait $profiler || fail "oom: pyprofd ended with $?"
	sed -n 's/^\(pyprofd: process .* want of memory.*\)/guest: \1/p' /tmp/oom.log
	kept=$(echo /tmp/oom/kept/*-oom-*-python3.11/cpu.pb.gz)
	zcat "$kept" | grep -q fill_memory || fail "oom: not kept: $(cat /tmp/oom.log)"
}
out_of_memory

# A walk takes an emulator ten times as long: with the usual budget few are left.
# What is not there before pyprofd counts is not its own to tell: the program waits for `go`.
memory() { # MIB
	$python /t/memory.py "$1" &
	target=$!
	$pyprofd --events mem --budget-cpu 50 --duration 60 --pid $target -o /tmp/memory.pb.gz > /tmp/memory.log 2>&1 &
	profiler=$!
	cpus=$(nproc)
	tries=0
	while [ "$(ls -l /proc/$profiler/fd 2> /dev/null | grep -c perf_event)" -lt $((2 * cpus)) ] && [ $tries -lt 200 ]; do
		tries=$((tries + 1))
		sleep 0.1
	done
	sleep 1
	touch /py/tmp/go
	wait $target || fail "memory: the program ended with $?"
	missed=$(/t/programs | awk '/^on_page / { print $4 }')
	kill -INT $profiler
	wait $profiler || fail "memory: pyprofd ended with $?"
	sed 's/^/guest: pyprofd: /' /tmp/memory.log | tail -n 8
	cp /tmp/memory.pb.gz /py/tmp/ && $python /t/check_memory.py /tmp/memory.pb.gz "$1" "${missed:-0}" || fail "memory: wrong amounts"
	! grep -q pages_unknown /tmp/memory.log || fail "memory: mappings were not found"
}
memory 32
# Probes: counts of a library that knows, by one link or a perf event each; 64 threads at once.
probes() { # NAME COUNT_FUNCTION NUMBER PID GO OPTION...
	name=$1 function=$2 number=$3 pid=$4 go=$5
	shift 5
	rm -f "$go"
	$prober --pid "$pid" -o "/tmp/$name.folded" "$@" > "/tmp/$name.log" 2>&1 &
	profiler=$!
	attached $profiler on_probe
	no_private_stacks on_probe on_tracepoint
	touch "$go"
	sleep 6
	kill -INT $profiler
	wait $profiler || fail "$name: pyprofd ended with $?"
	sed 's/^/guest: pyprofd: /' "/tmp/$name.log" | tail -n 4
	cp "/tmp/$name.folded" /py/tmp/
	[ -z "$function" ] ||
		$python /t/check_probes.py counts "/tmp/$name.folded" "$pid" "$function" "$number" || {
		fail "$name: wrong count"
		head -n 5 "/tmp/$name.folded" | cut -c1-500
	}
}
/t/probed 20 0 > /tmp/probed.txt &
target=$!
probes hits probed_call 3840 $target /tmp/go --max-slowdown 1000x \
	--probe uprobe:/t/probed:probed_call+ret
kill $target
/t/probed 1 1000 > /dev/null &
target=$!
# Waits inside of five return probes each.
timeout 240 $prober --pid $target -o /tmp/threads.folded --max-slowdown 500x \
	--probe uprobe:/t/probed:probed_again+ret > /tmp/threads.log 2>&1 &
profiler=$!
attached $profiler on_probe
timeout 120 $pyprofd --pid $target --duration 4 --events offcpu -o /tmp/inside.folded > /tmp/inside.log 2>&1 ||
	fail "inside: pyprofd ended with $?"
kill -INT $profiler
wait $profiler || fail "threads: pyprofd ended with $?"
sed 's/^/guest: pyprofd: /' /tmp/inside.log /tmp/threads.log | grep -v 'nice -10' | tail -n 6
cp /tmp/inside.folded /py/tmp/ && $python /t/check_probes.py stacks /tmp/inside.folded $target ||
	fail "inside: wrong stacks"
kill $target
# Events of a program that knows how many it has, once /tmp/go is there.  The interpreter in its own root is found by its name.
known() { # NAME TARGET PROGRAM ARGUMENT...
	name=$1 target_py=$2 program=$3
	shift 3
	rm -f /py/tmp/go
	$python "/t/$target_py.py" "$@" &
	target=$!
	while [ ! -e "/py/tmp/$target_py-ready" ] && kill -0 $target 2> /dev/null; do sleep 0.1; done
	$prober --events "$name" --max-slowdown 1000x --pid $target -o "/tmp/$name.pb.gz" > "/tmp/$name.log" 2>&1 &
	profiler=$!
	attached $profiler "$program"
	no_private_stacks on_probe on_tracepoint "$program"
	touch /py/tmp/go
	for _ in $(seq 200); do
		[ -e "/py/tmp/$target_py-done" ] && break
		sleep 0.1
	done
	kill -INT $profiler
	wait $profiler || fail "$name: pyprofd ended with $?"
	sed 's/^/guest: pyprofd: /' "/tmp/$name.log" | tail -n 4
	cp "/tmp/$name.pb.gz" /py/tmp/ && $python "/t/check_$name.py" "/tmp/$name.pb.gz" "$@" || fail "$name: wrong numbers"
	kill $target
}
known gc collects on_probe 7
known alloc allocates on_alloc
dmesg 2> /dev/null | grep -E 'WARNING|BUG:|Oops|uprobe' | head -n 5 | sed 's/^/guest: kernel: /' > /tmp/dmesg.txt
cat /tmp/dmesg.txt
[ ! -s /tmp/dmesg.txt ] || fail "the kernel complains"

# By default all events go into a directory.  The guest could have 240 CPUs, each of which has a part of some maps.
timeout 60 $pyprofd --duration 3 -o /tmp/all/ > /tmp/all.log 2>&1 || fail "all: pyprofd ended with $?"
sed -n 's/^\(pyprofd: .* MiB of maps\).*/guest: \1/p' /tmp/all.log
mib=$(sed -n 's/.*memory .* + \([0-9]*\)\.[0-9]* MiB of maps.*/\1/p' /tmp/all.log)
[ "${mib:-99}" -lt 40 ] || fail "all: ${mib:-unknown} MiB of maps, possible CPUs $(cat /sys/devices/system/cpu/possible)"
exit $failed
