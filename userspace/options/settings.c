/* SPDX-License-Identifier: BSD-2-Clause */
/* The value of each option: from the command line and from the configuration by the same code. */
#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <string.h>

#include "live/request.h"
#include "options/parser.h"
#include "options/values.h"

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

static int set_probes(struct option_parser *parser, const char *text)
{
	parser->options.no_probes = !strcmp(text, "no");
	return parser->options.no_probes || !strcmp(text, "yes")
		       ? 0
		       : usage(parser, "--probes '%s': give yes or no", text);
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

/* The range of a time option; both ends are allowed. */
struct time_range {
	const char *name, *text;
	uint64_t min_ns, max_ns;
};

static int set_time(struct option_parser *parser, const struct time_range *range, const char *text,
		    uint64_t *ret_ns)
{
	uint64_t ns;
	int err;

	err = options_parse_duration(text, &ns);
	if (err == -EINVAL)
		return usage(parser, "--%s '%s' is not a time: give seconds, or 500ms, 10s, 2m, 1h",
			     range->name, text);
	if (err || ns < range->min_ns || ns > range->max_ns)
		return usage(parser, "--%s '%s' is out of range: give %s", range->name, text,
			     range->text);
	*ret_ns = ns;
	return 0;
}

static int set_duration(struct option_parser *parser, const char *text)
{
	static const struct time_range range = {"duration", "more than 0, up to 366 days", 1,
						OPTIONS_TIME_MAX_NS};

	return set_time(parser, &range, text, &parser->options.duration_ns);
}

static int set_delay(struct option_parser *parser, const char *text)
{
	static const struct time_range range = {"delay", "0 up to 366 days", 0,
						OPTIONS_TIME_MAX_NS};

	return set_time(parser, &range, text, &parser->options.delay_ns);
}

static int set_interval(struct option_parser *parser, const char *text)
{
	static const struct time_range range = {"interval", "100ms to 10m", OPTIONS_INTERVAL_MIN_NS,
						OPTIONS_INTERVAL_MAX_NS};

	return set_time(parser, &range, text, &parser->options.interval_ns);
}

static int set_store_age(struct option_parser *parser, const char *text)
{
	static const struct time_range range = {"store-age", "1m up to 366 days",
						OPTIONS_STORE_AGE_MIN_NS, OPTIONS_TIME_MAX_NS};

	return set_time(parser, &range, text, &parser->options.store_max_age_ns);
}

static int set_size(struct option_parser *parser, const char *name, uint64_t min_bytes,
		    const char *text, uint64_t *ret_bytes)
{
	uint64_t bytes;
	int err;

	err = options_parse_size(text, &bytes);
	if (err == -EINVAL)
		return usage(parser, "--%s '%s' is not a size: give bytes, or 64K, 200M, 2G", name,
			     text);
	if (err || bytes < min_bytes)
		return usage(parser, "--%s '%s' is out of range: give %lluM or more, up to 1024T",
			     name, text, (unsigned long long)(min_bytes >> 20));
	*ret_bytes = bytes;
	return 0;
}

static int set_max_memory(struct option_parser *parser, const char *text)
{
	if (!strcmp(text, "0")) {
		parser->options.budget_bytes = 0;
		return 0;
	}
	return set_size(parser, "max-memory", OPTIONS_BUDGET_MIN_BYTES, text,
			&parser->options.budget_bytes);
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

static int set_timeline_max(struct option_parser *parser, const char *text)
{
	parser->given.timeline_max = true;
	return set_size(parser, "timeline-max", OPTIONS_TIMELINE_MIN_BYTES, text,
			&parser->options.timeline_max_bytes);
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

static int set_serve(struct option_parser *parser, const char *text)
{
	parser->options.no_serve = !strcmp(text, "no");
	return parser->options.no_serve || !strcmp(text, "yes")
		       ? 0
		       : usage(parser, "--serve '%s': give yes or no", text);
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

static void set_loudness(struct options *options, bool verbose)
{
	options->verbose = verbose;
	options->quiet = !verbose;
}

static int parse_selection(struct option_parser *parser, int key, const char *arg)
{
	switch (key) {
	case 'F':
		return set_hz(parser, arg);
	case KEY_CLOCK:
		return set_clock(parser, arg);
	case KEY_EVENTS:
		return set_events(parser, arg);
	case KEY_OFFCPU_MIN:
		return set_offcpu_min(parser, arg);
	case KEY_PROBE:
		return add_probe(parser, arg);
	case KEY_LINES:
		return set_lines(parser, arg);
	case KEY_PROBES:
		return set_probes(parser, arg);
	case KEY_FRAMES:
		return set_frames(parser, arg);
	case KEY_MAX_SLOWDOWN:
		return set_max_slowdown(parser, arg);
	case 'p':
		return add_pids(parser, arg);
	case KEY_COMM:
		return set_comm(parser, arg);
	case KEY_CGROUP:
		return set_cgroup(parser, arg);
	case KEY_UID:
		return add_uids(parser, arg);
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static int parse_course(struct option_parser *parser, int key, const char *arg)
{
	switch (key) {
	case 'd':
		return set_duration(parser, arg);
	case KEY_DELAY:
		return set_delay(parser, arg);
	case KEY_INTERVAL:
		return set_interval(parser, arg);
	case 'o':
		return set_output(parser, arg);
	case KEY_STORE_MAX:
		return set_size(parser, "store-max", OPTIONS_STORE_MIN_BYTES, arg,
				&parser->options.store_max_bytes);
	case KEY_STORE_AGE:
		return set_store_age(parser, arg);
	case KEY_TIMELINE:
		return set_timeline(parser, arg);
	case KEY_TIMELINE_MAX:
		return set_timeline_max(parser, arg);
	case KEY_LIVE:
		return set_live(parser, arg);
	case KEY_LIVE_USER:
		return set_live_user(parser, arg);
	case KEY_SERVE:
		return set_serve(parser, arg);
	case KEY_MAX_MEMORY:
		return set_max_memory(parser, arg);
	case KEY_MAX_CPU:
		return set_max_cpu(parser, arg);
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static int parse_switch(struct option_parser *parser, int key)
{
	struct options *options = &parser->options;

	switch (key) {
	case KEY_LEAKS:
		options->leaks = true;
		return 0;
	case KEY_AS_ROOT:
		options->as_root = true;
		return 0;
	case KEY_DOCTOR:
		options->doctor = true;
		return 0;
	case 'v':
	case 'q':
		set_loudness(options, key == 'v');
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

int option_set(struct option_parser *parser, int key, const char *arg)
{
	int err = parse_selection(parser, key, arg);

	if (err == ARGP_ERR_UNKNOWN)
		err = parse_course(parser, key, arg);
	if (err == ARGP_ERR_UNKNOWN)
		err = parse_switch(parser, key);
	return err;
}
