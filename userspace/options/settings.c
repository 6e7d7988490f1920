/* SPDX-License-Identifier: BSD-2-Clause */
/* All options, and the value of each: from the command line and from the configuration by the same
 * code. */
#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include "base/kinds.h"
#include "live/request.h"
#include "options/parser.h"

/* ---- as --help prints them ---- */

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

/* ---- values ---- */

#define OPTION_LINE_BYTES 1024U

int usage(struct option_parser *parser, const char *format, ...)
{
	char line[OPTION_LINE_BYTES], place[CONFIG_WHY_BYTES];
	const char *rest = line;
	va_list args;

	if (parser->is_failed)
		return -EINVAL;
	parser->is_failed = true;
	va_start(args, format);
	vsnprintf(line, sizeof(line), format, args);
	va_end(args);
	fputs("pyprofd: ", parser->streams->err);
	if (parser->setting && !strncmp(line, "--", 2)) {
		config_place(parser->setting, place);
		fputs(place, parser->streams->err);
		rest = line + strcspn(line, " ");
	}
	fprintf(parser->streams->err, "%s\n", rest);
	return -EINVAL;
}

static int set_hz(struct option_parser *parser, const char *text)
{
	uint64_t hz;

	if (option_number(text, strlen(text), &hz) || hz < 1 || hz > OPTIONS_HZ_MAX)
		return usage(parser, "--hz '%s' is out of range: give a whole number from 1 to %u",
			     text, OPTIONS_HZ_MAX);
	parser->options.hz = (uint32_t)hz;
	return 0;
}

static int set_clock(struct option_parser *parser, const char *text)
{
	if (!strcmp(text, "cpu"))
		parser->options.clock = OPTIONS_CLOCK_CPU;
	else if (!strcmp(text, "cycles"))
		parser->options.clock = OPTIONS_CLOCK_CYCLES;
	else
		return usage(parser, "--clock '%s' is not known: give cpu or cycles", text);
	return 0;
}

static int set_events(struct option_parser *parser, const char *text)
{
	char names[CAPTURE_NAMES_CHARS];
	uint32_t events = 0, event;
	const char *item;
	size_t size;

	for (;;) {
		size = option_list_item(&text, &item);
		if (!capture_find(item, size, &event)) {
			capture_names(PP_CAPTURES_ALL, ", ", names);
			return usage(parser,
				     "--events '%.*s' is not known: the known events are: %s",
				     (int)size, item, names);
		}
		events |= event;
		if (!*text++)
			break;
	}
	parser->options.events = events;
	return 0;
}

static int set_offcpu_min(struct option_parser *parser, const char *text)
{
	uint64_t us;

	if (option_number(text, strlen(text), &us) || us > OPTIONS_OFFCPU_MIN_MAX_US)
		return usage(parser,
			     "--offcpu-min '%s' is out of range: give whole microseconds, 0 to %u",
			     text, OPTIONS_OFFCPU_MIN_MAX_US);
	parser->options.offcpu_min_ns = us * 1000;
	parser->given.offcpu_min = true;
	return 0;
}

static int add_pids(struct option_parser *parser, const char *text)
{
	struct options *options = &parser->options;
	const char *item;
	uint64_t number;
	size_t size;
	pid_t *pids;

	if (parser->has_old_pids) {
		parser->has_old_pids = false;
		options->pid_count = 0;
	}
	for (;;) {
		size = option_list_item(&text, &item);
		if (option_number(item, size, &number) || number < 1 || number > INT_MAX)
			return usage(parser,
				     "--pid '%.*s' is not a process id: give numbers, as in "
				     "--pid 12,34",
				     (int)size, item);
		if (options->pid_count == OPTIONS_MAX_PIDS)
			return usage(parser,
				     "--pid names more than %u processes: select by --comm, "
				     "--cgroup or --uid",
				     OPTIONS_MAX_PIDS);
		pids = reallocarray(options->pid, options->pid_count + 1, sizeof(*pids));
		if (!pids)
			return -ENOMEM;
		options->pid = pids;
		pids[options->pid_count++] = (pid_t)number;
		if (!*text++)
			break;
	}
	return 0;
}

static int add_uids(struct option_parser *parser, const char *text)
{
	struct options *options = &parser->options;
	const char *item;
	uid_t *uids, uid;
	size_t size;

	if (parser->has_old_uids) {
		parser->has_old_uids = false;
		options->uid_count = 0;
	}
	for (;;) {
		size = option_list_item(&text, &item);
		if (option_uid(item, size, &uid))
			return usage(parser,
				     "--uid '%.*s' is not a user of this machine: give a number or "
				     "a name",
				     (int)size, item);
		if (options->uid_count == OPTIONS_MAX_UIDS)
			return usage(parser, "--uid names more than %u users", OPTIONS_MAX_UIDS);
		uids = reallocarray(options->uid, options->uid_count + 1, sizeof(*uids));
		if (!uids)
			return -ENOMEM;
		options->uid = uids;
		uids[options->uid_count++] = uid;
		if (!*text++)
			break;
	}
	return 0;
}

static int add_probe(struct option_parser *parser, const char *text)
{
	struct options *options = &parser->options;
	char why[PROBE_SPEC_WHY_BYTES];
	struct probe_spec *probes, spec;
	int err;

	if (options->probe_count == OPTIONS_MAX_PROBES)
		return usage(parser, "--probe is given more than %u times: run pyprofd twice",
			     OPTIONS_MAX_PROBES);
	err = probe_spec_parse(text, &spec, why);
	if (err == -EINVAL)
		return usage(parser, "--probe '%s' %s", text, why);
	if (err)
		return err;
	probes = reallocarray(options->probe, options->probe_count + 1, sizeof(*probes));
	if (!probes) {
		probe_spec_release(&spec);
		return -ENOMEM;
	}
	options->probe = probes;
	probes[options->probe_count++] = spec;
	return 0;
}

static int set_lines(struct option_parser *parser, const char *text)
{
	char why[LINE_SPEC_WHY_BYTES];

	if (parser->options.lines.file_bytes)
		return usage(parser, "--lines is given twice: leave :FUNC out to count all "
				     "functions of a file");
	return line_spec_parse(text, &parser->options.lines, why)
		       ? usage(parser, "--lines '%s' %s", text, why)
		       : 0;
}

static int set_frames(struct option_parser *parser, const char *text)
{
	static const char *const names[] = {"python", "native", "kernel", "interpreter"};
	bool is_kept[ARRAY_SIZE(names)] = {};
	const char *item;
	size_t size, i;

	for (;;) {
		size = option_list_item(&text, &item);
		for (i = 0; i < ARRAY_SIZE(names); i++)
			if (size == strlen(names[i]) && !memcmp(item, names[i], size))
				break;
		if (i == ARRAY_SIZE(names))
			return usage(parser,
				     "--frames '%.*s' is not known: give python, native, kernel or "
				     "interpreter",
				     (int)size, item);
		is_kept[i] = true;
		if (!*text++)
			break;
	}
	parser->options.no_native = !is_kept[1];
	parser->options.no_kernel = !is_kept[2];
	parser->options.raw = is_kept[3];
	return 0;
}

static int set_max_slowdown(struct option_parser *parser, const char *text)
{
	if (option_slowdown(text, &parser->options.slowdown_ppm))
		return usage(parser,
			     "--max-slowdown '%s' is out of range: give percent of the program's "
			     "time, as 10%%, or how many times as long, as 5x",
			     text);
	return 0;
}

static int set_comm(struct option_parser *parser, const char *text)
{
	struct options *options = &parser->options;
	char reason[128];
	int code;

	if (!*text)
		return usage(parser, "--comm is empty: give an extended regular expression");
	if (options->comm) {
		regfree(&options->comm_regex);
		options->comm = NULL;
	}
	code = regcomp(&options->comm_regex, text, REG_EXTENDED | REG_NOSUB);
	if (code) {
		regerror(code, &options->comm_regex, reason, sizeof(reason));
		return usage(parser, "--comm '%s' is not a regular expression: %s", text, reason);
	}
	options->comm = text;
	return 0;
}

static void *field_at(struct option_parser *parser, size_t at)
{
	return (char *)&parser->options + at;
}

#define FIELD(name) offsetof(struct options, name)

/* Both ends of the range are allowed. */
static const struct time_option {
	int key;
	const char *name, *range;
	uint64_t min_ns, max_ns;
	size_t at;
} times[] = {
	{'d', "duration", "more than 0, up to 366 days", 1, OPTIONS_TIME_MAX_NS,
	 FIELD(duration_ns)},
	{KEY_DELAY, "delay", "0 up to 366 days", 0, OPTIONS_TIME_MAX_NS, FIELD(delay_ns)},
	{KEY_INTERVAL, "interval", "100ms to 10m", OPTIONS_INTERVAL_MIN_NS, OPTIONS_INTERVAL_MAX_NS,
	 FIELD(interval_ns)},
	{KEY_STORE_AGE, "store-age", "1m up to 366 days", OPTIONS_STORE_AGE_MIN_NS,
	 OPTIONS_TIME_MAX_NS, FIELD(store_max_age_ns)},
};

static int set_time(struct option_parser *parser, const struct time_option *option,
		    const char *text)
{
	uint64_t ns;
	int err = options_parse_duration(text, &ns);

	if (err == -EINVAL)
		return usage(parser, "--%s '%s' is not a time: give seconds, or 500ms, 10s, 2m, 1h",
			     option->name, text);
	if (err || ns < option->min_ns || ns > option->max_ns)
		return usage(parser, "--%s '%s' is out of range: give %s", option->name, text,
			     option->range);
	*(uint64_t *)field_at(parser, option->at) = ns;
	return 0;
}

static const struct size_option {
	int key;
	const char *name;
	uint64_t min_bytes;
	size_t at;
	bool takes_zero;
} sizes[] = {
	{KEY_STORE_MAX, "store-max", OPTIONS_STORE_MIN_BYTES, FIELD(store_max_bytes), false},
	{KEY_TIMELINE_MAX, "timeline-max", OPTIONS_TIMELINE_MIN_BYTES, FIELD(timeline_max_bytes),
	 false},
	{KEY_MAX_MEMORY, "max-memory", OPTIONS_BUDGET_MIN_BYTES, FIELD(budget_bytes), true},
};

static int set_size(struct option_parser *parser, const struct size_option *option,
		    const char *text)
{
	const bool is_zero = option->takes_zero && !strcmp(text, "0");
	uint64_t bytes;
	int err = options_parse_size(text, &bytes);

	if (err == -EINVAL)
		return usage(parser, "--%s '%s' is not a size: give bytes, or 64K, 200M, 2G",
			     option->name, text);
	if (err || (bytes < option->min_bytes && !is_zero))
		return usage(parser, "--%s '%s' is out of range: give %lluM or more, up to 1024T",
			     option->name, text, (unsigned long long)(option->min_bytes >> 20));
	parser->given.timeline_max |= option->key == KEY_TIMELINE_MAX;
	*(uint64_t *)field_at(parser, option->at) = bytes;
	return 0;
}

/* What is true when it is given, or when it is given as "no". */
static const struct switch_option {
	int key;
	size_t at;
	const char *name; /* of one that is yes or no */
} switches[] = {
	{KEY_LEAKS, FIELD(leaks), NULL},       {KEY_AS_ROOT, FIELD(as_root), NULL},
	{KEY_DOCTOR, FIELD(doctor), NULL},     {KEY_PROBES, FIELD(no_probes), "probes"},
	{KEY_SERVE, FIELD(no_serve), "serve"},
};

static int set_switch(struct option_parser *parser, const struct switch_option *option,
		      const char *text)
{
	bool *on = field_at(parser, option->at);

	*on = !option->name || !strcmp(text, "no");
	return *on || !strcmp(text, "yes")
		       ? 0
		       : usage(parser, "--%s '%s': give yes or no", option->name, text);
}

static int set_max_cpu(struct option_parser *parser, const char *text)
{
	uint32_t ppm;

	if (option_percent(text, &ppm) || ppm < OPTIONS_MAX_CPU_MIN_PPM)
		return usage(parser,
			     "--max-cpu '%s' is out of range: give percent of one core, 0.1 to %u",
			     text, OPTIONS_PERCENT_MAX);
	parser->options.max_cpu_ppm = ppm;
	return 0;
}

static int set_output(struct option_parser *parser, const char *text)
{
	if (!*text)
		return usage(parser, "--output is empty: give a file, a directory or -");
	parser->options.output = text;
	parser->options.output_is_default = false;
	parser->given.store_path = parser->setting;
	return 0;
}

static int set_timeline(struct option_parser *parser, const char *text)
{
	if (option_timeline(text, &parser->options.timeline_kind))
		return usage(parser,
			     "--timeline '%s': the ending tells the format: .pftrace, "
			     ".perfetto-trace, .pb, .json or .json.gz",
			     text);
	parser->options.timeline = text;
	return 0;
}

static int set_live(struct option_parser *parser, const char *text)
{
	if (!*text || strlen(text) >= LIVE_PATH_BYTES)
		return usage(parser, "--live '%s': give a path of 1 to %u bytes, or no", text,
			     LIVE_PATH_BYTES - 1);
	parser->given.live = true;
	parser->options.live = strcmp(text, "no") ? text : NULL;
	return 0;
}

static int set_live_user(struct option_parser *parser, const char *text)
{
	if (!*text)
		return usage(parser, "--live-user is empty: give a number or a name");
	parser->options.live_user = text;
	return 0;
}

static int set_cgroup(struct option_parser *parser, const char *text)
{
	if (!*text)
		return usage(parser, "--cgroup is empty: give a path");
	parser->options.cgroup = text;
	return 0;
}

static int set_loudness(struct option_parser *parser, bool verbose)
{
	parser->options.verbose = verbose;
	parser->options.quiet = !verbose;
	return 0;
}

static const struct {
	int key;
	int (*set)(struct option_parser *parser, const char *text);
} setters[] = {
	{'F', set_hz},
	{KEY_CLOCK, set_clock},
	{KEY_EVENTS, set_events},
	{KEY_OFFCPU_MIN, set_offcpu_min},
	{KEY_PROBE, add_probe},
	{KEY_LINES, set_lines},
	{KEY_FRAMES, set_frames},
	{KEY_MAX_SLOWDOWN, set_max_slowdown},
	{'p', add_pids},
	{KEY_COMM, set_comm},
	{KEY_CGROUP, set_cgroup},
	{KEY_UID, add_uids},
	{'o', set_output},
	{KEY_TIMELINE, set_timeline},
	{KEY_LIVE, set_live},
	{KEY_LIVE_USER, set_live_user},
	{KEY_MAX_CPU, set_max_cpu},
};

int option_set(struct option_parser *parser, int key, const char *arg)
{
	if (key == 'v' || key == 'q')
		return set_loudness(parser, key == 'v');
	for (size_t i = 0; i < ARRAY_SIZE(switches); i++)
		if (switches[i].key == key)
			return set_switch(parser, &switches[i], arg);
	for (size_t i = 0; i < ARRAY_SIZE(times); i++)
		if (times[i].key == key)
			return set_time(parser, &times[i], arg);
	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++)
		if (sizes[i].key == key)
			return set_size(parser, &sizes[i], arg);
	for (size_t i = 0; i < ARRAY_SIZE(setters); i++)
		if (setters[i].key == key)
			return setters[i].set(parser, arg);
	return ARGP_ERR_UNKNOWN;
}
