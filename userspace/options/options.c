/* SPDX-License-Identifier: BSD-2-Clause */
#include "options/options.h"

#include <argp.h>
#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <string.h>

#include "live/request.h"
#include "options/rules.h"
#include "options/values.h"
#include "version.h"

/* Long options without a letter: larger than every character. */
enum option_key {
	KEY_CLOCK = 256,
	KEY_COMM,
	KEY_CGROUP,
	KEY_UID,
	KEY_AS_ROOT,
	KEY_DELAY,
	KEY_INTERVAL,
	KEY_EVENTS,
	KEY_OFFCPU_MIN,
	KEY_WAKERS,
	KEY_STORE_MAX,
	KEY_STORE_AGE,
	KEY_TIMELINE,
	KEY_TIMELINE_MAX,
	KEY_LIVE,
	KEY_NO_KERNEL,
	KEY_NO_NATIVE,
	KEY_RAW,
	KEY_BUDGET_MEM,
	KEY_BUDGET_CPU,
	KEY_HELP,
};

#define FIRST_EVENT(id, name, text, ...) name text
#define NEXT_EVENT(id, name, text, ...) ", " name text

static const struct argp_option option_table[] = {
	{.doc = "What is sampled:", .group = 1},
	{"hz", 'F', "N", 0, "Samples per second on every CPU: 1 to 10000, default 99", 1},
	{"clock", KEY_CLOCK, "cpu|cycles", 0,
	 "What the samples are spaced by: CPU time (default), or the processor's cycle counter", 1},
	{"events", KEY_EVENTS, "LIST", 0,
	 "What is captured, by commas: " PP_CAPTURES(
		 FIRST_EVENT, NEXT_EVENT) "; default: all into a directory, cpu into one file",
	 1},
	{"offcpu-min", KEY_OFFCPU_MIN, "USEC", 0,
	 "Waits of fewer microseconds stay out of the profiles of waits: 0 (default) to 1000000",
	 1},
	{"wakers", KEY_WAKERS, NULL, 0,
	 "Also who ended each wait: a profile of its own, instead of offcpu where one file is "
	 "written",
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
	{"verbose", 'v', NULL, 0, "Say more", 6},
	{"quiet", 'q', NULL, 0, "Say nothing but warnings and errors", 6},
	{"version", 'V', NULL, 0, "Print the version", 6},
	{"help", KEY_HELP, NULL, 0, "Print this text", 6},
	{0},
};

static const char help_text[] =
	"Profiles what runs on the CPUs, and what threads wait for: Python, native and kernel "
	"frames "
	"in one stack, of every process, with nothing restarted and nothing prepared."
	"\v"
	"Examples:\n"
	"  pyprofd                              the whole machine, until Ctrl-C\n"
	"  pyprofd -p 1234 -d 10 -o cpu.pb.gz   a process and its children, 10 s\n"
	"  pyprofd -d 30 -o cpu.folded          the machine as folded text\n"
	"  pyprofd -o cpu.pb.gz -- python3 train.py   a command, from its start\n"
	"  pyprofd --events offcpu -p 1234 -d 10 -o wait.pb.gz   where it waits\n"
	"  pyprofd --events gil -p 1234 -d 10 -o gil.pb.gz   who waits for the GIL\n"
	"  pyprofd --timeline run.pftrace -d 5 -p 1234 -o cpu.pb.gz   for Perfetto\n"
	"  pyprofd --comm '^gunicorn' --interval 1m -o profiles/   a file a minute\n"
	"  pyprof report cpu.pb.gz              what takes the time\n"
	"  pyprof flame cpu.pb.gz > cpu.html    a flame graph, as one page\n"
	"\n"
	"Sizes take K, M, G (powers of 1024).  Exit status: 0; 1 the run failed; 2 the command "
	"line "
	"is wrong; with -- COMMAND the command's own.";

/* Without this, argp's help would explain that -d takes what --duration takes. */
static char *filter_help(int key, const char *text, void *input)
{
	(void)input;
	return key == ARGP_KEY_HELP_DUP_ARGS_NOTE ? NULL : (char *)text;
}

struct option_parser {
	const struct options_streams *streams;
	struct options options;
	struct option_given given;
	int last_next;	/* state->next when an option was last parsed */
	bool is_failed; /* a line was printed */
	bool is_done;	/* --help or --version */
};

/* Prints the one line about an error.  Always returns -EINVAL. */
__attribute__((format(printf, 2, 3))) static int usage(struct option_parser *parser,
						       const char *format, ...)
{
	va_list args;

	if (parser->is_failed)
		return -EINVAL;
	parser->is_failed = true;
	fputs("pyprofd: ", parser->streams->err);
	va_start(args, format);
	vfprintf(parser->streams->err, format, args);
	va_end(args);
	fputc('\n', parser->streams->err);
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

static int set_budget(struct option_parser *parser, const char *text)
{
	if (!strcmp(text, "0")) {
		parser->options.budget_bytes = 0;
		return 0;
	}
	return set_size(parser, "budget-mem", OPTIONS_BUDGET_MIN_BYTES, text,
			&parser->options.budget_bytes);
}

static int set_budget_cpu(struct option_parser *parser, const char *text)
{
	uint32_t ppm;

	if (option_percent(text, &ppm) || ppm < OPTIONS_BUDGET_CPU_MIN_PPM ||
	    ppm > OPTIONS_BUDGET_CPU_MAX_PPM)
		return usage(parser,
			     "--budget-cpu '%s' is out of range: give percent of a CPU, 0.1 to 50",
			     text);
	parser->options.budget_cpu_ppm = ppm;
	return 0;
}

static int set_output(struct option_parser *parser, const char *text)
{
	if (!*text)
		return usage(parser, "--output is empty: give a file, a directory or -");
	parser->options.output = text;
	parser->options.output_is_default = false;
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
	case KEY_BUDGET_MEM:
		return set_budget(parser, arg);
	case KEY_BUDGET_CPU:
		return set_budget_cpu(parser, arg);
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static int parse_switch(struct option_parser *parser, int key)
{
	struct options *options = &parser->options;

	switch (key) {
	case KEY_WAKERS:
		options->wakers = true;
		return 0;
	case KEY_AS_ROOT:
		options->as_root = true;
		return 0;
	case KEY_NO_KERNEL:
		options->no_kernel = true;
		return 0;
	case KEY_NO_NATIVE:
		options->no_native = true;
		return 0;
	case KEY_RAW:
		options->raw = true;
		return 0;
	case 'v':
	case 'q':
		set_loudness(options, key == 'v');
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

/* Finds out which option `word` ("--dur=5", "-xF") gets wrong, and how: glibc only says that there
 * is an error. */
static int explain_long(struct option_parser *parser, const char *word)
{
	const struct argp_option *found = NULL;
	size_t size = strcspn(word + 2, "=");

	for (const struct argp_option *option = option_table; option->name || option->doc;
	     option++) {
		if (!option->name || strncmp(option->name, word + 2, size))
			continue;
		if (found && strlen(option->name) != size)
			return usage(parser, "'%.*s' may mean --%s or --%s", (int)size + 2, word,
				     found->name, option->name);
		found = option;
	}
	if (!found)
		return usage(parser, "unknown option '%.*s'; pyprofd --help lists all",
			     (int)size + 2, word);
	if (found->arg)
		return usage(parser, "--%s needs a value: --%s %s", found->name, found->name,
			     found->arg);
	return usage(parser, "--%s takes no value", found->name);
}

static int explain_short(struct option_parser *parser, const char *word)
{
	const struct argp_option *option;

	for (const char *letter = word + 1; *letter; letter++) {
		for (option = option_table; option->name || option->doc; option++) {
			if (option->key == *letter)
				break;
		}
		if (option->key != *letter)
			return usage(parser, "unknown option '-%c'; pyprofd --help lists all",
				     *letter);
		if (option->arg)
			return usage(parser, "-%c needs a value: -%c %s", *letter, *letter,
				     option->arg);
	}
	return usage(parser, "cannot understand '%s'; pyprofd --help lists all options", word);
}

static int explain_error(struct option_parser *parser, const struct argp_state *state)
{
	/* A letter inside "-qx" does not change `next`. */
	int index = state->next == parser->last_next ? state->next : state->next - 1;
	const char *word;

	if (parser->is_failed || index < 1 || index >= state->argc)
		return usage(parser, "cannot understand the command line; see pyprofd --help");
	word = state->argv[index];
	if (word[0] == '-' && word[1] == '-')
		return explain_long(parser, word);
	return explain_short(parser, word);
}

static int take_argument(struct option_parser *parser, const char *arg, struct argp_state *state)
{
	if (!state->quoted)
		return usage(parser,
			     "'%s' is not an option; to profile a command write: "
			     "pyprofd [OPTION...] -- %s",
			     arg, arg);
	parser->options.command = &state->argv[state->next - 1];
	state->next = state->argc;
	return 0;
}

static int check_whole(struct option_parser *parser, const struct argp_state *state)
{
	struct options *options = &parser->options;
	char why[OPTION_WHY_BYTES];

	if (state->quoted && !options->command)
		return usage(parser,
			     "no command after --: write pyprofd [OPTION...] -- COMMAND [ARG...]");
	if (options->command && !*options->command[0])
		return usage(parser, "the command after -- is empty");
	if (options->command && options->pid_count)
		return usage(parser, "--pid and -- COMMAND exclude each other: leave one out");
	if (options->as_root && !options->command)
		return usage(parser, "--as-root needs a command to run: give -- COMMAND");
	if (option_rules_apply(&parser->given, options, why))
		return usage(parser, "%s", why);
	return 0;
}

static int show_and_stop(struct option_parser *parser, const struct argp_state *state, int key)
{
	parser->is_done = true;
	if (key == 'V')
		fputs("pyprofd " PYPROFD_VERSION "\n", parser->streams->out);
	else
		argp_help(state->root_argp, parser->streams->out,
			  ARGP_HELP_SHORT_USAGE | ARGP_HELP_LONG | ARGP_HELP_DOC,
			  (char *)"pyprofd");
	return ECANCELED;
}

/* argp's own results are positive. */
static error_t parse_option(int key, char *arg, struct argp_state *state)
{
	struct option_parser *parser = state->input;
	int err;

	switch (key) {
	case ARGP_KEY_INIT:
		parser->last_next = state->next;
		return 0;
	case KEY_HELP:
	case 'V':
		return show_and_stop(parser, state, key);
	case ARGP_KEY_ARG:
		return -take_argument(parser, arg, state);
	case ARGP_KEY_END:
		return -check_whole(parser, state);
	case ARGP_KEY_ERROR:
		if (!parser->is_done && !parser->is_failed)
			explain_error(parser, state);
		return 0;
	}
	err = parse_selection(parser, key, arg);
	if (err == ARGP_ERR_UNKNOWN)
		err = parse_course(parser, key, arg);
	if (err == ARGP_ERR_UNKNOWN)
		err = parse_switch(parser, key);
	if (err == ARGP_ERR_UNKNOWN)
		return err;
	parser->last_next = state->next;
	return -err;
}

int options_parse_to(const struct options_streams *streams, int argc, char **argv,
		     struct options *ret_options)
{
	static const struct argp argp = {
		.options = option_table,
		.parser = parse_option,
		.args_doc = "[-- COMMAND [ARG...]]",
		.doc = help_text,
		.help_filter = filter_help,
	};
	struct option_parser parser = {
		.streams = streams,
		.options =
			{
				.hz = OPTIONS_HZ_DEFAULT,
				.interval_ns = OPTIONS_INTERVAL_DEFAULT_NS,
				.output = OPTIONS_OUTPUT_DEFAULT,
				.output_is_default = true,
				.store_max_bytes = OPTIONS_STORE_DEFAULT_BYTES,
				.timeline_max_bytes = OPTIONS_TIMELINE_DEFAULT_BYTES,
			},
	};
	int err;

	/* We print our own line instead of argp's two, exit ourselves, and leave the words after a
	 * command alone. */
	err = argp_parse(&argp, argc, argv,
			 ARGP_NO_ERRS | ARGP_NO_EXIT | ARGP_NO_HELP | ARGP_IN_ORDER, NULL, &parser);
	if (err) {
		options_release(&parser.options);
		if (parser.is_done)
			return 1;
		return err == ENOMEM || err == -ENOMEM ? -ENOMEM : -EINVAL;
	}
	*ret_options = parser.options;
	return 0;
}

int options_parse(int argc, char **argv, struct options *ret_options)
{
	const struct options_streams streams = {.out = stdout, .err = stderr};

	return options_parse_to(&streams, argc, argv, ret_options);
}

void options_release(struct options *options)
{
	free(options->pid);
	free(options->uid);
	if (options->comm)
		regfree(&options->comm_regex);
	*options = (struct options){0};
}
