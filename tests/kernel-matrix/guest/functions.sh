# SPDX-License-Identifier: BSD-2-Clause
# shellcheck shell=sh
# What the scripts that run in a guest share.  failed: 1 when something did.
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
at() { # STAGE: when it begins
	read -r at_now at_rest < /proc/uptime
	echo "guest: at $at_now s: $*"
}
# The same for a stage that `make check` leaves to check-long.  Returns nonzero when it is left out.
later() { # STAGE
	! grep -q pyprofd.few /proc/cmdline && at "$1"
}
# Starts it, and returns when it samples, or why not: profiler is its pid.  Nothing polls meanwhile, for what the verifier
# takes an emulator tens of seconds.
begin() { # NAME COMMAND...: its log is /tmp/NAME.log
	begin_name=$1
	shift
	rm -f /tmp/begun && mkfifo /tmp/begun
	/t/ready /tmp/begun 150 "$@" > "/tmp/$begin_name.log" 2>&1 &
	profiler=$!
	begun=$(cat /tmp/begun) # by another process: the shell's own read ends at the signal of a child
	[ "$begun" = ready ] || fail "$begin_name: pyprofd does not begin: $begun"
}
# As a service would: the capabilities that it needs and no others.  Beyond 2 Debian's kernels have perf
# events for CAP_SYS_ADMIN only.
echo 2 > /proc/sys/kernel/perf_event_paranoid
pyprofd="/t/service_caps /opt/pyprofd"
python="chroot /py /usr/bin/python3.11 -S -E"

# Before uprobe_multi each place of code is a perf event of its own, for which these kernels want CAP_SYS_ADMIN.
case $(uname -r) in
5.* | 6.[0-5].*) prober=/opt/pyprofd is_shared= settled=5 none=$((2 * $(nproc))) ;; # samples have two a CPU
*) prober=$pyprofd is_shared=1 settled=2 none=0 ;;
esac
# What of a pyprofd's grows with its probes: links of many places, or perf events.
links() { # PID
	if [ -n "$is_shared" ]; then
		cat /proc/"$1"/fdinfo/* 2> /dev/null | grep -c uprobe_multi
	else
		ls -l /proc/"$1"/fd 2> /dev/null | grep -c perf_event
	fi
}
# pyprofd samples when what was asked for by name is attached, but waits for ten seconds at most, and not for what it finds
# by itself: until its links stay as many.  Where they are perf events, each takes the kernel 0.1 s.
attached() { # PID
	tries=0 same=0 before=
	until [ $same -ge $settled ] || [ $tries -ge 180 ] || ! kill -0 "$1" 2> /dev/null; do
		tries=$((tries + 1))
		now=$(links "$1")
		[ "$now" = "$before" ] && [ "$now" -gt "$none" ] && same=$((same + 1)) || same=0
		before=$now
		sleep 0.5
	done
	[ $same -ge $settled ] || fail "the probes are not attached"
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

# CUDA: counts of a stand-in of its library, 64 threads at once.
cuda() { # OUTPUT SECONDS OPTION...: they launch for so long
	output=$1 seconds=$2
	shift 2
	rm -f /tmp/go /tmp/cuda-done
	/t/cuda "$seconds" &
	target=$!
	$prober --pid $target -o "$output" "$@" > /tmp/cuda.log 2>&1 &
	profiler=$!
	attached $profiler on_cuda
	no_private_stacks on_cuda
	touch /tmp/go
	await $((seconds + 60)) [ -s /tmp/cuda-done ] || fail "cuda: the program has not ended"
	kill -INT $profiler
	wait $profiler || fail "cuda: pyprofd ended with $?"
	sed 's/^/guest: pyprofd: /' /tmp/cuda.log | tail -n 4
	kill $target
}
complaints() {
	dmesg 2> /dev/null | grep -E 'WARNING|BUG:|Oops|uprobe' | head -n 5 | sed 's/^/guest: kernel: /' > /tmp/dmesg.txt
	cat /tmp/dmesg.txt
	[ ! -s /tmp/dmesg.txt ] || fail "the kernel complains"
}
