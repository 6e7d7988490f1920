/* SPDX-License-Identifier: BSD-2-Clause */
/* All options of the command line, as --help prints them. */
#include "base/kinds.h"
#include "live/request.h"
#include "options/parser.h"

#define FIRST_EVENT(id, name, text, ...) name text
#define NEXT_EVENT(id, name, text, ...) ", " name text

const struct argp_option option_table[] = {
	{.doc = "What is sampled:", .group = 1},
	{"hz", 'F', "N", 0, "Samples per second on every CPU: 1 to 10000, default 99", 1},
	{"clock", KEY_CLOCK, "cpu|cycles", 0,
	 "What the samples are spaced by: CPU time (default), or the processor's cycle counter", 1},
	{"events", KEY_EVENTS, "LIST", 0,
	 "What is captured, by commas: " PP_CAPTURES(
		 FIRST_EVENT,
		 NEXT_EVENT) "; default: the first six into a directory, cpu into one file",
	 1},
	{"offcpu-min", KEY_OFFCPU_MIN, "USEC", 0,
	 "Waits of fewer microseconds stay out of the profiles of waits: 0 (default) to 1000000",
	 1},
	{"wakers", KEY_WAKERS, NULL, 0,
	 "Also who ended each wait: a profile of its own, instead of offcpu where one file is "
	 "written",
	 1},
	{"probe", KEY_PROBE, "PROBE", 0,
	 "Also count and take the stack where this is hit: usdt:BINARY:PROVIDER:NAME, "
	 "uprobe:BINARY:SYMBOL, with +ret how long calls take, tracepoint:GROUP:NAME; may be "
	 "repeated",
	 1},
	{"lines", KEY_LINES, "FILE[:FUNC]", 0,
	 "Count how often each line of a Python function, or of a whole file, runs, and time it, "
	 "in "
	 "the processes of --pid: train.py:Model.step",
	 1},
	{"probes", KEY_PROBES, "yes|no", 0,
	 "no: put no breakpoint into any program's memory, which leaves out gc, import, cuda "
	 "and all other probes",
	 1},
	{"gpu-budget", KEY_GPU_BUDGET, "PCT", 0,
	 "Percent of a CPU that probes of CUDA may take of each process, 0.1 to 100; 1 by default. "
	 "Beyond it launches are probed for a part of the time, and counts are scaled",
	 1},
	{"max-slowdown", KEY_MAX_SLOWDOWN, "PCT|Nx", 0,
	 "How much longer probed programs may take: 10% (default), or 5x for --events calls "
	 "and --lines; beyond it probes are on for a part of the time, and calls and lines end "
	 "early",
	 1},
	{"leaks", KEY_LEAKS, NULL, 0,
	 "With --events alloc: see every free, whatever that costs, so that what is held is exact "
	 "where allocations are sampled for a part of the time",
	 1},
	{.doc = "Who is profiled (default: every process of the machine):", .group = 2},
	{"pid", 'p', "PID[,PID...]", 0, "These processes and their children; may be repeated", 2},
	{"comm", KEY_COMM, "REGEX", 0, "Processes whose name (/proc/PID/comm) matches", 2},
	{"cgroup", KEY_CGROUP, "PATH", 0,
	 "Processes in this cgroup and below: a directory, or a name as in /proc/PID/cgroup", 2},
	{"uid", KEY_UID, "USER[,USER...]", 0, "Processes of these users, by number or name", 2},
	{"as-root", KEY_AS_ROOT, NULL, 0,
	 "Run COMMAND as root; default under sudo: as the user who called it", 2},
	{.doc = "When:", .group = 3},
	{"duration", 'd', "TIME", 0, "Stop after this time: 5, 0.5, 500ms, 10s, 2m, 1h", 3},
	{"delay", KEY_DELAY, "TIME", 0, "Wait this long before the first sample", 3},
	{"interval", KEY_INTERVAL, "TIME", 0,
	 "Length of a window, which is one file in a directory: 100ms to 10m, default 10s", 3},
	{.doc = "Where the profiles go:", .group = 4},
	{"output", 'o', "FILE|DIR|-|no", 0,
	 "A directory gets one file a window and kind (default " OPTIONS_OUTPUT_DEFAULT
	 "); a name in .folded "
	 "or .txt gets folded text, any other name gzip pprof, - is standard output; no: none is "
	 "written",
	 4},
	{"store-max", KEY_STORE_MAX, "SIZE", 0,
	 "The oldest files of the directory are deleted above this size: default 200M", 4},
	{"store-age", KEY_STORE_AGE, "TIME", 0,
	 "Files of the directory are deleted when they are older: 12h, 7d; default: only the size "
	 "counts",
	 4},
	{"timeline", KEY_TIMELINE, "FILE", 0,
	 "Besides: what each thread does and waits for, and who has the GIL, moment by moment; for "
	 "Perfetto (.pftrace, .perfetto-trace, .pb) or as Chrome's JSON (.json, .json.gz)",
	 4},
	{"timeline-max", KEY_TIMELINE_MAX, "SIZE", 0,
	 "The timeline ends at this size, before compression: default 256M", 4},
	{"live", KEY_LIVE, "PATH|no", 0,
	 "The socket that pyprof dump and top ask: default " LIVE_SOCKET_DEFAULT
	 " when profiles go into a "
	 "directory, else none",
	 4},
	{"live-user", KEY_LIVE_USER, "USER", 0,
	 "This user sees on the socket what root sees: the one that pyprofd-serve runs as", 4},
	{"serve", KEY_SERVE, "yes|no", 0,
	 "Start pyprofd-serve where the configuration has [http] or [push]; no: it runs already",
	 4},
	{.doc = "What is kept of a stack:", .group = 5},
	{"no-kernel", KEY_NO_KERNEL, NULL, 0, "Leave kernel frames out", 5},
	{"no-native", KEY_NO_NATIVE, NULL, 0, "Leave native frames out of Python stacks", 5},
	{"raw", KEY_RAW, NULL, 0,
	 "Keep the interpreter's own frames, such as _PyEval_EvalFrameDefault", 5},
	{.doc = "The program itself:", .group = 6},
	{"budget-mem", KEY_BUDGET_MEM, "SIZE", 0,
	 "Memory to aim at: unwind rows take half of it; default by number of CPUs", 6},
	{"budget-cpu", KEY_BUDGET_CPU, "PCT", 0,
	 "Percent of each CPU that walks of stacks may take, 0.1 to 50; only where --duration or a "
	 "command bounds the run",
	 6},
	{"max-cpu", KEY_MAX_CPU, "PCT", 0,
	 "Percent of one core that pyprofd and its walks in the kernel may take, 0.1 to 100: "
	 "beyond it the rate goes down in steps; only into a directory",
	 6},
	{"config", KEY_CONFIG, "FILE", 0,
	 "Read the settings of this file; the command line goes before it", 6},
	{"set", KEY_SET, "SECTION.KEY=VALUE", 0, "One setting, as if it stood in the file", 6},
	{"check-config", KEY_CHECK_CONFIG, NULL, 0,
	 "Print the settings that count, and where each comes from, and end", 6},
	{"doctor", KEY_DOCTOR, NULL, 0,
	 "Look at the host, the configuration and the interpreters that run, say what to do about "
	 "what is missing, and end",
	 6},
	{"verbose", 'v', NULL, 0, "Say more", 6},
	{"quiet", 'q', NULL, 0, "Say nothing but warnings and errors", 6},
	{"version", 'V', NULL, 0, "Print the version", 6},
	{"help", KEY_HELP, NULL, 0, "Print this text", 6},
	{0},
};
