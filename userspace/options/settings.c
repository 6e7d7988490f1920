/* SPDX-License-Identifier: BSD-2-Clause */
/* All options, and the value of each: from the command line and from the configuration by the same
 * code. */
#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include "base/kinds.h"
#include "base/text.h"
#include "live/request.h"
#include "options/parser.h"

#define FIELD(name) offsetof(struct options, name)

/* ---- values of single options ---- */

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

	if (decimal_parse(text, strlen(text), &hz) || hz < 1 || hz > OPTIONS_HZ_MAX)
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

	if (decimal_parse(text, strlen(text), &us) || us > OPTIONS_OFFCPU_MIN_MAX_US)
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
		if (decimal_parse(item, size, &number) || number < 1 || number > INT_MAX)
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

/* ---- values of several options: the row says of which ---- */

static void *field_of(struct option_parser *parser)
{
	return (char *)&parser->options + parser->row->at;
}

static int set_time(struct option_parser *parser, const char *text)
{
	const struct option_row *row = parser->row;
	uint64_t ns;
	int err = options_parse_duration(text, &ns);

	if (err == -EINVAL)
		return usage(parser, "--%s '%s' is not a time: give seconds, or 500ms, 10s, 2m, 1h",
			     row->name, text);
	if (err || ns < row->min || ns > row->max)
		return usage(parser, "--%s '%s' is out of range: give %s", row->name, text,
			     row->hint);
	*(uint64_t *)field_of(parser) = ns;
	return 0;
}

static int set_size(struct option_parser *parser, const char *text)
{
	const struct option_row *row = parser->row;
	const bool is_zero = row->takes_zero && !strcmp(text, "0");
	uint64_t bytes;
	int err = options_parse_size(text, &bytes);

	if (err == -EINVAL)
		return usage(parser, "--%s '%s' is not a size: give bytes, or 64K, 200M, 2G",
			     row->name, text);
	if (err || (bytes < row->min && !is_zero))
		return usage(parser, "--%s '%s' is out of range: give %lluM or more, up to 1024T",
			     row->name, text, (unsigned long long)(row->min >> 20));
	parser->given.timeline_max |= row->at == FIELD(timeline_max_bytes);
	*(uint64_t *)field_of(parser) = bytes;
	return 0;
}

static int set_true(struct option_parser *parser, const char *text)
{
	(void)text;
	*(bool *)field_of(parser) = true;
	return 0;
}

/* The field is true for "no". */
static int set_no(struct option_parser *parser, const char *text)
{
	bool *is_no = field_of(parser);

	*is_no = !strcmp(text, "no");
	return *is_no || !strcmp(text, "yes")
		       ? 0
		       : usage(parser, "--%s '%s': give yes or no", parser->row->name, text);
}

static int set_text(struct option_parser *parser, const char *text)
{
	if (!*text)
		return usage(parser, "--%s is empty: give %s", parser->row->name,
			     parser->row->hint);
	*(const char **)field_of(parser) = text;
	return 0;
}

/* The last one counts. */
static int set_loudness(struct option_parser *parser, const char *text)
{
	parser->options.verbose = parser->options.quiet = false;
	return set_true(parser, text);
}

/* ---- the table; what --help prints ---- */

#define FIRST_EVENT(id, name, text, ...) name text
#define NEXT_EVENT(id, name, text, ...) ", " name text
#define IF_DEFAULT_0(name) ""
#define IF_DEFAULT_1(name) ", " name
#define FIRST_DEFAULT(id, name, ...) name
#define NEXT_DEFAULT(id, name, text, waits, is_default) IF_DEFAULT_##is_default(name)

#define TO(function, field) .set = (function), .at = FIELD(field)
#define TIME(field, least, most, range)                                                            \
	TO(set_time, field), .min = (least), .max = (most), .hint = (range)
#define SIZE(field, least) TO(set_size, field), .min = (least)

const struct option_row option_rows[] = {
	{.text = "What is sampled:"},
	{"hz", 'F', "N", "Samples per second on every CPU: 1 to 10000, default 99", .set = set_hz},
	{"events", 0, "LIST",
	 "What is captured, by commas: " PP_CAPTURES(
		 FIRST_EVENT,
		 NEXT_EVENT) "; default: " PP_CAPTURES(FIRST_DEFAULT,
						       NEXT_DEFAULT) " into a directory, cpu into "
								     "one file",
	 .set = set_events},
	{"probe", 0, "PROBE",
	 "Also count and take the stack where this is hit: usdt:BINARY:PROVIDER:NAME, "
	 "uprobe:BINARY:SYMBOL, with +ret how long calls take, tracepoint:GROUP:NAME; may be "
	 "repeated",
	 .set = add_probe},
	{"lines", 0, "FILE[:FUNC]",
	 "Count how often each line of a Python function, or of a whole file, runs, and time it, "
	 "in the processes of --pid: train.py:Model.step",
	 .set = set_lines},
	{"probes", 0, "yes|no",
	 "no: put no breakpoint into any program's memory, which leaves out gc, import, cuda "
	 "and all other probes",
	 TO(set_no, no_probes)},
	{"frames", 0, "LIST",
	 "Which frames of a stack are kept, by commas: python, native, kernel (these three by "
	 "default), interpreter (its own, such as _PyEval_EvalFrameDefault)",
	 .set = set_frames},
	{.text = "Who is profiled (default: every process of the machine):"},
	{"pid", 'p', "PID[,PID...]", "These processes and their children; may be repeated",
	 .set = add_pids},
	{"comm", 0, "REGEX", "Processes whose name (/proc/PID/comm) matches", .set = set_comm},
	{"cgroup", 0, "PATH",
	 "Processes in this cgroup and below: a directory, or a name as in /proc/PID/cgroup",
	 TO(set_text, cgroup), .hint = "a path"},
	{"uid", 0, "USER[,USER...]", "Processes of these users, by number or name",
	 .set = add_uids},
	{.text = "When:"},
	{"duration", 'd', "TIME", "Stop after this time: 5, 0.5, 500ms, 10s, 2m, 1h",
	 TIME(duration_ns, 1, OPTIONS_TIME_MAX_NS, "more than 0, up to 366 days")},
	{"delay", 0, "TIME", "Wait this long before the first sample",
	 TIME(delay_ns, 0, OPTIONS_TIME_MAX_NS, "0 up to 366 days")},
	{"interval", 0, "TIME",
	 "Length of a window, which is one file in a directory: 100ms to 10m, default 10s",
	 TIME(interval_ns, OPTIONS_INTERVAL_MIN_NS, OPTIONS_INTERVAL_MAX_NS, "100ms to 10m")},
	{.text = "Where the profiles go:"},
	{"output", 'o', "FILE|DIR|-|no",
	 "A directory gets one file a window and kind (default " OPTIONS_OUTPUT_DEFAULT "); a name "
	 "in .folded or .txt gets folded text, any other name gzip pprof, - is standard output; "
	 "no: none is written",
	 .set = set_output},
	{"store-max", 0, "SIZE",
	 "The oldest files of the directory are deleted above this size: default 200M",
	 SIZE(store_max_bytes, OPTIONS_STORE_MIN_BYTES)},
	{"timeline", 0, "FILE",
	 "Besides: what each thread does and waits for, and who has the GIL, moment by moment; for "
	 "Perfetto (.pftrace, .perfetto-trace, .pb) or as Chrome's JSON (.json, .json.gz)",
	 .set = set_timeline},
	{"live", 0, "PATH|no",
	 "The socket that pyprof dump and top ask: default " LIVE_SOCKET_DEFAULT " when profiles "
	 "go into a directory, else none",
	 .set = set_live},
	{.text = "What it may take:"},
	{"max-cpu", 0, "PCT",
	 "Percent of one core that pyprofd and its walks in the kernel may take: beyond it the "
	 "rate goes down in steps; where the run has an end, walks may take as much. By default "
	 "walks alone are bounded, to 1 or 2% of each CPU at usual rates",
	 .set = set_max_cpu},
	{"max-memory", 0, "SIZE",
	 "Memory to aim at: unwind rows take half of it; default by number of CPUs",
	 SIZE(budget_bytes, OPTIONS_BUDGET_MIN_BYTES), .takes_zero = true},
	{"max-slowdown", 0, "PCT|Nx",
	 "How much longer probed programs may take: 10% by default, 1% of a CPU for launches of "
	 "CUDA, 5x for --events calls and --lines; beyond it probes are on for a part of the "
	 "time, and calls and lines end early",
	 .set = set_max_slowdown},
	{.text = "The program itself:"},
	{"config", KEY_CONFIG, "FILE",
	 "Read the settings of this file; the command line goes before it", .set = NULL},
	{"set", KEY_SET, "SECTION.KEY=VALUE",
	 "One setting, as if it stood in the file: pyprofd(1) lists all", .set = NULL},
	{"doctor", 0, NULL,
	 "Print the settings that count, and where each comes from; look at the host, the "
	 "configuration and the interpreters that run, say what to do about what is missing, and "
	 "end",
	 TO(set_true, doctor)},
	{"verbose", 'v', NULL, "Say more", TO(set_loudness, verbose)},
	{"quiet", 'q', NULL, "Say nothing but warnings and errors", TO(set_loudness, quiet)},
	{"version", 'V', NULL, "Print the version", .set = NULL},
	{"help", KEY_HELP, NULL, "Print this text", .set = NULL},
	/* Those of the configuration and --set alone. */
	{.name = "clock", .set = set_clock},
	{.name = "offcpu-min", .set = set_offcpu_min},
	{.name = "leaks", TO(set_true, leaks)},
	{.name = "as-root", TO(set_true, as_root)},
	{.name = "store-age",
	 TIME(store_max_age_ns, OPTIONS_STORE_AGE_MIN_NS, OPTIONS_TIME_MAX_NS,
	      "1m up to 366 days")},
	{.name = "timeline-max", SIZE(timeline_max_bytes, OPTIONS_TIMELINE_MIN_BYTES)},
	{.name = "live-user", TO(set_text, live_user), .hint = "a number or a name"},
	{.name = "serve", TO(set_no, no_serve)},
};
const size_t option_row_count = ARRAY_SIZE(option_rows);

/* ---- finding rows ---- */

/* Of a row without a letter or a key of its own. */
static int key_of(const struct option_row *row)
{
	return row->key ?: KEY_ROWS + (int)(row - option_rows);
}

const struct argp_option *option_table(void)
{
	static struct argp_option table[ARRAY_SIZE(option_rows) + 1]; /* ends with zeros */
	size_t count = 0;

	for (size_t i = 0; i < ARRAY_SIZE(option_rows); i++) {
		const struct option_row *row = &option_rows[i];

		if (row->text)
			table[count++] = (struct argp_option){.name = row->name,
							      .key = row->name ? key_of(row) : 0,
							      .arg = row->argument,
							      .doc = row->text};
	}
	return table;
}

const struct option_row *option_row_of_key(int key)
{
	for (size_t i = 0; i < option_row_count; i++)
		if (option_rows[i].name && key_of(&option_rows[i]) == key)
			return &option_rows[i];
	return NULL;
}

const struct option_row *option_row_named(const char *name, size_t size)
{
	for (size_t i = 0; i < option_row_count; i++) {
		const char *known = option_rows[i].name;

		if (known && strlen(known) == size && !memcmp(known, name, size))
			return &option_rows[i];
	}
	return NULL;
}

int option_set(struct option_parser *parser, const struct option_row *row, const char *text)
{
	parser->row = row;
	return row->set(parser, text);
}
