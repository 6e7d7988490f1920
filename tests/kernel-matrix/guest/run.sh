#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# In the guest: a live Python program is profiled by pid and system-wide, and check.py compares names
# and lines with what the interpreter itself says.  Then the waits of another, off the CPU, and the memory that a third touches.
. ./functions.sh
# From 6.13 on the kernel gives programs private stacks.  That the one of samples has some shows that they are found.
see_private_stacks() {
	case $(uname -r) in 5.* | 6.[0-9].* | 6.1[0-2].*) return ;; esac
	/t/programs | awk '$1 == "on_cpu_sample" { n += $3 }
		END { print "guest: places with private stacks: on_cpu_sample " n + 0; exit !n }' ||
		fail "no private stacks are seen"
}

profile() { # NAME TARGET_PID OPTION...
	name=$1
	pid=$2
	shift 2
	# It has no CPU while pyprofd starts, and while what it did is checked.
	kill -STOP "$pid"
	begin "$name" $pyprofd --hz 99 --duration 3 -o "/tmp/$name.folded" "$@"
	kill -CONT "$pid"
	see_private_stacks
	wait $profiler
	rc=$?
	kill -STOP "$pid"
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

at samples
$python /t/target.py &
target=$!
await 60 [ -e /py/tmp/ready ]
profile pid "$target" --pid "$target"
profile all "$target"
kill -9 $target

waits() {
	$pyprofd --events offcpu --pid "$1" --duration 5 -o /tmp/waits.folded > /tmp/waits.log 2>&1 ||
		fail "waits: pyprofd ended with $?"
	sed 's/^/guest: pyprofd: /' /tmp/waits.log | tail -n 8
	cp /tmp/waits.folded /py/tmp/ && $python /t/check_waits.py /tmp/waits.folded "$1" 5 || {
		fail "waits: wrong times"
		head -n 12 /tmp/waits.folded | cut -c1-700
	}
}
at waits
$python /t/waits.py &
target=$!
await 60 [ -e /py/tmp/waits-ready ]
waits $target

# --timeline and wakers load and write: what is in them the end-to-end tests look at.
traces() {
	$pyprofd --events wakers --timeline /tmp/run.json --pid "$1" --duration 3 -o /tmp/waker.folded > /tmp/traces.log 2>&1 ||
		fail "traces: pyprofd ended with $?"
	sed 's/^/guest: pyprofd: /' /tmp/traces.log | tail -n 8
	grep -q '"name":"sleep",' /tmp/run.json || fail "traces: nobody sleeps in the timeline"
	grep -q '"ph":"i","cat":"sample"\|"name":"on CPU"' /tmp/run.json || fail "traces: nobody runs in the timeline"
	grep -q 'nap .*;--waker--;.*;\[interrupt\] ' /tmp/waker.folded || fail "traces: no timer ends a nap"
	grep -q 'reader .*;--waker--;.*<module> ' /tmp/waker.folded || fail "traces: no write ends a read"
}
at traces
traces $target
kill -9 $target

# Every call or line of a program, by probes of their own object.
exact() { # calls|lines, PROGRAMS of it, OPTIONS
	name=$1 programs=$2
	shift 2
	rm -f /py/tmp/calls-*
	$python /t/counted.py &
	target=$!
	await 60 [ -e /py/tmp/calls-ready ]
	begin $name $prober "$@" --max-slowdown 1000x --pid $target --duration 300 -o /tmp/$name.pb.gz
	attached $profiler
	no_private_stacks $programs
	touch /py/tmp/calls-go
	await 60 [ -e /py/tmp/calls-done ]
	kill -INT $profiler
	wait $profiler || fail "$name: pyprofd ended with $?"
	sed 's/^/guest: pyprofd: /' /tmp/$name.log | tail -n 8
	cp /tmp/$name.pb.gz /py/tmp/ && $python /t/check_$name.py /tmp/$name.pb.gz || fail "$name: wrong numbers"
	kill -9 $target
}
at calls
exact calls 'on_call_entry on_call_return' --events calls
at lines
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
	# Of a process that ends before the first window nothing can be kept.
	begin oom $pyprofd --interval 2 --duration 300 -o /tmp/oom/
	touch /py/tmp/eats-go
	wait $eater
	await 60 grep -q 'want of memory' /tmp/oom.log || fail "oom: not told"
	kill -TERM $profiler
	wait $profiler || fail "oom: pyprofd ended with $?"
	sed 's/^/guest: pyprofd: /' /tmp/oom.log | tail -n 8
	kept=$(echo /tmp/oom/kept/*-oom-*-python3.11)
	zcat "$kept"/*-cpu.pb.gz | grep -q fill_memory || fail "oom: not kept: $(cat /tmp/oom.log)"
	# By default all events go into a directory.  The guest could have 240 CPUs, each of which has a part of some maps.
	mib=$(sed -n 's/.*memory .* + \([0-9]*\)\.[0-9]* MiB of maps.*/\1/p' /tmp/oom.log)
	[ "${mib:-99}" -lt 40 ] || fail "oom: ${mib:-unknown} MiB of maps, possible CPUs $(cat /sys/devices/system/cpu/possible)"
}
at oom
out_of_memory

# A walk takes an emulator ten times as long: with the usual budget few are left.
# What is not there before pyprofd counts is not its own to tell: the program waits for `go`.
memory() { # MIB
	$python /t/memory.py "$1" &
	target=$!
	begin memory $pyprofd --events mem --max-cpu 400 --duration 300 --pid $target -o /tmp/memory.pb.gz
	touch /py/tmp/go
	wait $target || fail "memory: the program ended with $?"
	missed=$(/t/programs | awk '/^on_page / { print $4 }')
	kill -INT $profiler
	wait $profiler || fail "memory: pyprofd ended with $?"
	sed 's/^/guest: pyprofd: /' /tmp/memory.log | tail -n 8
	cp /tmp/memory.pb.gz /py/tmp/ && $python /t/check_memory.py /tmp/memory.pb.gz "$1" "${missed:-0}" || fail "memory: wrong amounts"
	! grep -q pages_unknown /tmp/memory.log || fail "memory: mappings were not found"
}
at memory
memory 32
# Probes: counts of a library that knows, by one link or a perf event each; 64 threads at once.
probes() { # NAME COUNT_FUNCTION NUMBER PID GO OPTION...
	name=$1 function=$2 number=$3 pid=$4 go=$5
	shift 5
	rm -f "$go"
	begin "$name" $prober --pid "$pid" -o "/tmp/$name.folded" "$@"
	attached $profiler
	no_private_stacks on_probe on_tracepoint
	touch "$go"
	await 60 [ -s /tmp/probed.txt ] # when it has made its calls
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
at hits
/t/probed 20 0 > /tmp/probed.txt &
target=$!
probes hits probed_call 3840 $target /tmp/go --max-slowdown 1000x \
	--probe uprobe:/t/probed:probed_call+ret
kill $target
threads() {
	/t/probed 1 1000 > /dev/null &
	target=$!
	# Waits inside of five return probes each.
	begin threads $prober --pid $target -o /tmp/threads.folded --max-slowdown 500x \
		--probe uprobe:/t/probed:probed_again+ret
	attached $profiler
	$pyprofd --pid $target --duration 4 --events offcpu -o /tmp/inside.folded > /tmp/inside.log 2>&1 ||
		fail "inside: pyprofd ended with $?"
	kill -INT $profiler
	wait $profiler || fail "threads: pyprofd ended with $?"
	sed 's/^/guest: pyprofd: /' /tmp/inside.log /tmp/threads.log | grep -v 'nice -10' | tail -n 6
	cp /tmp/inside.folded /py/tmp/ && $python /t/check_probes.py stacks /tmp/inside.folded $target ||
		fail "inside: wrong stacks"
	kill $target
}
if later threads; then threads; fi
# Events of a program that knows how many it has, once /tmp/go is there.  The interpreter in its own root is found by its name.
known() { # NAME TARGET PROGRAM ARGUMENT...
	name=$1 target_py=$2 program=$3
	shift 3
	rm -f /py/tmp/go
	$python "/t/$target_py.py" "$@" &
	target=$!
	await 60 [ -e "/py/tmp/$target_py-ready" ]
	begin "$name" $prober --events "$name" --max-slowdown 1000x --pid $target -o "/tmp/$name.pb.gz"
	attached $profiler
	no_private_stacks on_probe on_tracepoint "$program"
	touch /py/tmp/go
	await 60 [ -e "/py/tmp/$target_py-done" ]
	kill -INT $profiler
	wait $profiler || fail "$name: pyprofd ended with $?"
	sed 's/^/guest: pyprofd: /' "/tmp/$name.log" | tail -n 4
	cp "/tmp/$name.pb.gz" /py/tmp/ && $python "/t/check_$name.py" "/tmp/$name.pb.gz" "$@" || fail "$name: wrong numbers"
	kill $target
}
if later gc; then known gc collects on_probe 7; fi
at alloc
known alloc allocates on_alloc
at cuda
# All at once: an emulator whose machine has other work takes longer for their probes than the usual budget allows.
cuda /tmp/cuda.pb.gz 0 --events cuda --max-slowdown 100%
cp /tmp/cuda.pb.gz /py/tmp/ && $python /t/check_cuda.py calls /tmp/cuda.pb.gz || fail "cuda: wrong numbers"
complaints

exit $failed
