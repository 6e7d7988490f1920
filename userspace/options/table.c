/* SPDX-License-Identifier: BSD-2-Clause */
/* All options of the command line, as --help prints them. */
#include "base/kinds.h"
#include "live/request.h"
#include "options/parser.h"

#define FIRST_EVENT(id, name, text, ...) name text
#define NEXT_EVENT(id, name, text, ...) ", " name text
#define IF_DEFAULT_0(name) ""
#define IF_DEFAULT_1(name) ", " name
#define FIRST_DEFAULT(id, name, ...) name
#define NEXT_DEFAULT(id, name, text, waits, is_default) IF_DEFAULT_##is_default(name)

const struct option_setting option_settings[] = {
	{KEY_CLOCK, "clock"},
	{KEY_OFFCPU_MIN, "offcpu-min"},
	{KEY_LEAKS, "leaks"},
	{KEY_AS_ROOT, "as-root"},
	{KEY_STORE_AGE, "store-age"},
	{KEY_TIMELINE_MAX, "timeline-max"},
	{KEY_LIVE_USER, "live-user"},
	{KEY_SERVE, "serve"},
	{0},
};

const struct argp_option option_table[] = {
	{.doc = "What is sampled:", .group = 1},
	{"hz", 'F', "N", 0, "Samples per second on every CPU: 1 to 10000, default 99", 1},
	{"events", KEY_EVENTS, "LIST", 0,
	 "What is captured, by commas: " PP_CAPTURES(
		 FIRST_EVENT,
		 NEXT_EVENT) "; default: " PP_CAPTURES(FIRST_DEFAULT,
						       NEXT_DEFAULT) " into a directory, cpu into "
								     "one file",
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
	{"frames", KEY_FRAMES, "LIST", 0,
	 "Which frames of a stack are kept, by commas: python, native, kernel (these three by "
	 "default), interpreter (its own, such as _PyEval_EvalFrameDefault)",
	 1},
	{.doc = "Who is profiled (default: every process of the machine):", .group = 2},
	{"pid", 'p', "PID[,PID...]", 0, "These processes and their children; may be repeated", 2},
	{"comm", KEY_COMM, "REGEX", 0, "Processes whose name (/proc/PID/comm) matches", 2},
	{"cgroup", KEY_CGROUP, "PATH", 0,
	 "Processes in this cgroup and below: a directory, or a name as in /proc/PID/cgroup", 2},
	{"uid", KEY_UID, "USER[,USER...]", 0, "Processes of these users, by number or name", 2},
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
	{"timeline", KEY_TIMELINE, "FILE", 0,
	 "Besides: what each thread does and waits for, and who has the GIL, moment by moment; for "
	 "Perfetto (.pftrace, .perfetto-trace, .pb) or as Chrome's JSON (.json, .json.gz)",
	 4},
	{"live", KEY_LIVE, "PATH|no", 0,
	 "The socket that pyprof dump and top ask: default " LIVE_SOCKET_DEFAULT
	 " when profiles go into a "
	 "directory, else none",
	 4},
	{.doc = "What it may take:", .group = 5},
	{"max-cpu", KEY_MAX_CPU, "PCT", 0,
	 "Percent of one core that pyprofd and its walks in the kernel may take: beyond it the "
	 "rate goes down in steps; where the run has an end, walks may take as much. By default "
	 "walks alone are bounded, to 1 or 2% of each CPU at usual rates",
	 5},
	{"max-memory", KEY_MAX_MEMORY, "SIZE", 0,
	 "Memory to aim at: unwind rows take half of it; default by number of CPUs", 5},
	{"max-slowdown", KEY_MAX_SLOWDOWN, "PCT|Nx", 0,
	 "How much longer probed programs may take: 10% by default, 1% of a CPU for launches of "
	 "CUDA, 5x for --events calls and --lines; beyond it probes are on for a part of the "
	 "time, and calls and lines end early",
	 5},
	{.doc = "The program itself:", .group = 6},
	{"config", KEY_CONFIG, "FILE", 0,
	 "Read the settings of this file; the command line goes before it", 6},
	{"set", KEY_SET, "SECTION.KEY=VALUE", 0,
	 "One setting, as if it stood in the file: pyprofd(1) lists all", 6},
	{"doctor", KEY_DOCTOR, NULL, 0,
	 "Print the settings that count, and where each comes from; look at the host, the "
	 "configuration and the interpreters that run, say what to do about what is missing, and "
	 "end",
	 6},
	{"verbose", 'v', NULL, 0, "Say more", 6},
	{"quiet", 'q', NULL, 0, "Say nothing but warnings and errors", 6},
	{"version", 'V', NULL, 0, "Print the version", 6},
	{"help", KEY_HELP, NULL, 0, "Print this text", 6},
	{0},
};
