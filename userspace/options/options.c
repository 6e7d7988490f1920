/* SPDX-License-Identifier: BSD-2-Clause */
#include "options/options.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "base/io.h"
#include "live/request.h"
#include "options/parser.h"
#include "version.h"

/* ---- rules between options ---- */

/* Defaults that depend on other options are set here, and nowhere else. */

static bool ends_with(const char *text, const char *end)
{
	size_t text_size = strlen(text), end_size = strlen(end);

	return text_size >= end_size && !strcmp(text + text_size - end_size, end);
}

static enum options_output_kind kind_of_output(const struct option_given *given,
					       const struct options *options)
{
	struct stat status;

	if (!strcmp(options->output, "-"))
		return OPTIONS_OUTPUT_PPROF;
	if (!strcmp(options->output, "no"))
		return OPTIONS_OUTPUT_NONE;
	if (options->output_is_default || given->store_path || ends_with(options->output, "/"))
		return OPTIONS_OUTPUT_DIRECTORY;
	if (!stat(options->output, &status) && S_ISDIR(status.st_mode))
		return OPTIONS_OUTPUT_DIRECTORY;
	if (ends_with(options->output, ".folded") || ends_with(options->output, ".txt"))
		return OPTIONS_OUTPUT_FOLDED;
	return OPTIONS_OUTPUT_PPROF;
}

static bool is_one_file(const struct options *options)
{
	return options->output_kind == OPTIONS_OUTPUT_PPROF ||
	       options->output_kind == OPTIONS_OUTPUT_FOLDED;
}

/* Returns the default: a file holds one kind of profile, a directory all.  Cycles pass only on a
 * CPU. */
static uint32_t default_events(const struct options *options)
{
	if (options->lines.file_bytes && is_one_file(options))
		return PP_CAPTURE_LINES;
	if (options->probe_count && is_one_file(options))
		return PP_CAPTURE_PROBE;
	if (is_one_file(options) || options->clock == OPTIONS_CLOCK_CYCLES)
		return PP_CAPTURE_CPU;
	return options->no_probes ? PP_CAPTURES_DEFAULT & ~PP_CAPTURES_OF_PROBES
				  : PP_CAPTURES_DEFAULT;
}

static const char *list(uint32_t events, char names[CAPTURE_NAMES_CHARS])
{
	capture_names(events, ",", names);
	return names;
}

static int check_events(struct option_parser *parser)
{
	const struct options *options = &parser->options;
	const uint32_t waits = options->events & PP_CAPTURES_OF_WAITS;
	/* Wakers' profile takes the place of that of waits. */
	const uint32_t apart = options->events & PP_CAPTURE_WAKERS
				       ? options->events & ~PP_CAPTURE_OFFCPU
				       : options->events;
	char names[CAPTURE_NAMES_CHARS];

	if (waits && options->clock == OPTIONS_CLOCK_CYCLES)
		return refuse(parser,
			      "--clock cycles and --events %s exclude each other: waits are "
			      "measured in time",
			      list(waits, names));
	/* The counter's interrupt cannot be masked.  If it comes while a switch updates a map, it
	 * waits for the map's lock, which its own CPU holds. */
	if (options->timeline && options->clock == OPTIONS_CLOCK_CYCLES)
		return refuse(parser,
			      "--clock cycles and --timeline exclude each other: a cycle counter's "
			      "interrupt in a context switch could lock the CPU up");
	if (is_one_file(options) && __builtin_popcount(apart) > 1)
		return refuse(parser,
			      "--events %s makes several profiles: give a directory with --output, "
			      "as in -o profiles/",
			      list(options->events, names));
	if (parser->given.offcpu_min && !waits)
		return refuse(parser,
			      "--offcpu-min needs waits to leave out: give --events offcpu or "
			      "--events gil");
	return 0;
}

/* Breakpoints in code that runs often slow a program down: somebody has to choose which. */
static int check_chosen(struct option_parser *parser)
{
	const struct options *options = &parser->options;
	const uint32_t chosen = options->events & PP_CAPTURES_OF_CHOSEN;
	const uint32_t exact = options->events & PP_CAPTURES_EXACT;
	char names[CAPTURE_NAMES_CHARS];

	if (chosen && !options->pid_count && !options->command)
		return refuse(parser,
			      "--events %s slows programs down, so it needs chosen ones: give "
			      "--pid or -- COMMAND",
			      list(chosen, names));
	if (exact == PP_CAPTURES_EXACT)
		return refuse(parser,
			      "--events %s: one would be in the other's times: run pyprofd twice, "
			      "one after the other",
			      list(exact, names));
	if (exact && !options->duration_ns)
		return refuse(parser,
			      "--events %s slows programs down, so it needs an end: give "
			      "--duration, as in -d 10",
			      list(exact, names));
	return 0;
}

static int check_probes(struct option_parser *parser)
{
	const struct options *options = &parser->options;
	const uint32_t by_probes = options->events & PP_CAPTURES_OF_PROBES;
	char names[CAPTURE_NAMES_CHARS];

	if (options->events & PP_CAPTURE_PROBE && !options->probe_count)
		return refuse(parser,
			      "--events probe does not say what is probed: give --probe, as in "
			      "--probe usdt:/usr/bin/python3.11:python:gc__start");
	if (options->no_probes && by_probes)
		return refuse(parser,
			      "--probes no and --events %s exclude each other: leave one out",
			      list(by_probes, names));
	if (options->leaks && !(options->events & PP_CAPTURE_ALLOC))
		return refuse(parser,
			      "--leaks is about allocations: give --events alloc, or leave it out");
	if (options->events & PP_CAPTURE_LINES && !options->lines.file_bytes)
		return refuse(parser,
			      "--events lines does not say of what: give --lines FILE[:FUNC], as "
			      "in --lines train.py:Model.step");
	return check_chosen(parser);
}

/* --probe and --lines say by themselves what is captured. */
static void choose_events(struct options *options)
{
	const uint32_t named = (options->probe_count ? PP_CAPTURE_PROBE : 0U) |
			       (options->lines.file_bytes ? PP_CAPTURE_LINES : 0U);

	options->events_are_default = !options->events && !named;
	if (!options->events)
		options->events = default_events(options);
	options->events |= named;
	if (options->events & PP_CAPTURE_WAKERS)
		options->events |= PP_CAPTURE_OFFCPU;
}

/* Applies the rules once all options are parsed: sets output_kind, and events when none were given
 * (0).  Returns 0; -EINVAL: a line was printed. */
static int apply_rules(struct option_parser *parser)
{
	struct options *options = &parser->options;
	int err;

	options->output_kind = kind_of_output(&parser->given, options);
	options->live_is_default = !parser->given.live && !is_one_file(options);
	if (options->live_is_default)
		options->live = LIVE_SOCKET_DEFAULT;
	if (options->output_kind == OPTIONS_OUTPUT_NONE && !options->live && !options->timeline)
		return refuse(parser,
			      "--output no leaves nothing to do: it needs --live or --timeline");
	choose_events(options);
	err = check_events(parser);
	if (!err)
		err = check_probes(parser);
	if (err)
		return err;
	if (options->as_root && !options->command)
		return refuse(parser, "--as-root needs a command to run: give -- COMMAND");
	if (parser->given.timeline_max && !options->timeline)
		return refuse(parser, "--timeline-max needs a timeline: give --timeline FILE");
	return 0;
}

/* ---- the command line ---- */

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

/* Finds out which option `word` ("--dur=5", "-xF") gets wrong, and how: glibc only says that there
 * is an error. */
static int explain_long(struct option_parser *parser, const char *word)
{
	const struct option_row *found = NULL;
	size_t size = strcspn(word + 2, "=");

	for (size_t i = 0; i < option_row_count; i++) {
		const struct option_row *row = &option_rows[i];

		if (!row->text || !row->name || strncmp(row->name, word + 2, size))
			continue;
		if (found && strlen(row->name) != size)
			return usage(parser, "'%.*s' may mean --%s or --%s", (int)size + 2, word,
				     found->name, row->name);
		found = row;
	}
	if (!found && option_row_named(word + 2, size))
		return usage(parser,
			     "'%.*s' is no option: it is a setting of the configuration, for "
			     "--set too",
			     (int)size + 2, word);
	if (!found)
		return usage(parser, "unknown option '%.*s'; pyprofd --help lists all",
			     (int)size + 2, word);
	if (found->argument)
		return usage(parser, "--%s needs a value: --%s %s", found->name, found->name,
			     found->argument);
	return usage(parser, "--%s takes no value", found->name);
}

static int explain_short(struct option_parser *parser, const char *word)
{
	for (const char *letter = word + 1; *letter; letter++) {
		const struct option_row *row = option_row_of_key(*letter);

		if (!row)
			return usage(parser, "unknown option '-%c'; pyprofd --help lists all",
				     *letter);
		if (row->argument)
			return usage(parser, "-%c needs a value: -%c %s", *letter, *letter,
				     row->argument);
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
	const struct options *options = &parser->options;

	if (state->quoted && !options->command)
		return usage(parser,
			     "no command after --: write pyprofd [OPTION...] -- COMMAND [ARG...]");
	if (options->command && !*options->command[0])
		return usage(parser, "the command after -- is empty");
	if (options->command && options->pid_count)
		return usage(parser, "--pid and -- COMMAND exclude each other: leave one out");
	return apply_rules(parser) ?: configured_finish(parser);
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
	const struct option_row *row;
	int err;

	switch (key) {
	case ARGP_KEY_INIT:
		parser->last_next = state->next;
		return 0;
	case KEY_CONFIG:
	case KEY_SET:
		/* configured_parse() has them already. */
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
	row = option_row_of_key(key);
	if (!row)
		return ARGP_ERR_UNKNOWN;
	err = option_set(parser, row, arg);
	if (!err)
		err = configured_note(parser, row->name, arg);
	parser->last_next = state->next;
	return -err;
}

static int parse(struct option_parser *parser, int argc, char **argv)
{
	const struct argp argp = {
		.options = option_table(),
		.parser = parse_option,
		.args_doc = "[-- COMMAND [ARG...]]",
		.doc = help_text,
		.help_filter = filter_help,
	};
	int err = configured_parse(parser, argc, argv);

	if (err)
		return err;
	/* We print our own line instead of argp's two, exit ourselves, and leave the words after a
	 * command alone. */
	err = argp_parse(&argp, argc, argv,
			 ARGP_NO_ERRS | ARGP_NO_EXIT | ARGP_NO_HELP | ARGP_IN_ORDER, NULL, parser);
	if (parser->is_done && !parser->is_failed)
		return 1;
	if (err)
		return err == ENOMEM || err == -ENOMEM ? -ENOMEM : -EINVAL;
	return 0;
}

int options_parse_to(const struct options_streams *streams, int argc, char **argv,
		     struct options *ret_options)
{
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
	int err = parse(&parser, argc, argv);

	if (err) {
		options_release(&parser.options);
		return err;
	}
	*ret_options = parser.options;
	ret_options->argc = argc;
	ret_options->argv = argv;
	return 0;
}

int options_parse(int argc, char **argv, struct options *ret_options)
{
	const struct options_streams streams = {.out = stdout, .err = stderr};

	return options_parse_to(&streams, argc, argv, ret_options);
}

int options_parse_again(const struct options *options, struct options *ret_options, char **ret_why)
{
	static const char prefix[] = "pyprofd: ";
	OWNED_MEM char *line = NULL;
	struct options fresh;
	struct options_streams streams = {0};
	size_t size;
	int err = 0;

	streams.out = streams.err = open_memstream(&line, &size);
	if (!streams.err)
		return -ENOMEM;
	err = options_parse_to(&streams, options->argc, options->argv, &fresh);
	if (!err && fresh.config_is_missing && !options->config_is_missing) {
		fputs("pyprofd: " OPTIONS_CONFIG_DEFAULT " does not exist any more\n", streams.err);
		options_release(&fresh);
		err = -EINVAL;
	}
	if (close_memory_file(streams.err, &line))
		return -ENOMEM;
	if (err) {
		line[strcspn(line, "\n")] = '\0';
		*ret_why = strdup(strncmp(line, prefix, strlen(prefix)) ? line
									: line + strlen(prefix));
		return err < 0 ? err : -EINVAL;
	}
	*ret_options = fresh;
	return 0;
}

enum log_level options_log_level(const struct options *options)
{
	return options->verbose ? LOG_LEVEL_DEBUG
	       : options->quiet ? LOG_LEVEL_WARN
				: LOG_LEVEL_INFO;
}

void options_release(struct options *options)
{
	free(options->pid);
	free(options->uid);
	for (size_t i = 0; i < options->probe_count; i++)
		probe_spec_release(&options->probe[i]);
	free(options->probe);
	if (options->comm)
		regfree(&options->comm_regex);
	config_free(options->config);
	*options = (struct options){0};
}
