/* SPDX-License-Identifier: BSD-2-Clause */
#include "reader/select_options.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/collectors.h"
#include "live/request.h"
#include "query/live_windows.h"
#include "reader/verb.h"
#include "store/store_query.h"

#define LIVE_SECONDS_DEFAULT 10UL
#define LIVE_SECONDS_MAX 3600UL
#define LIST_BYTES 160U /* of the names of all formats of a verb, or of what an option takes */

enum {
	OPTION_PID = 0x1000,
	OPTION_COMM,
	OPTION_THREAD,
	OPTION_SINCE,
	OPTION_UNTIL,
	OPTION_KIND,
	OPTION_FOCUS,
	OPTION_IGNORE,
	OPTION_GROUP_BY,
	OPTION_LABEL,
	OPTION_SAMPLE_TYPE,
	OPTION_PYTHON,
	OPTION_FORMAT,
	OPTION_CSV,
	OPTION_FOLDED,
	OPTION_JSON,
	OPTION_SVG,
	OPTION_FULL_PATHS,
	OPTION_STRICT,
	OPTION_LIVE,
	OPTION_FOR,
	OPTION_SOCKET,
	OPTION_FROM,
	OPTION_FROM_SET,
};

#define FIRST_KIND(id, number, name, ...) name " (default)"
#define NEXT_KIND(id, number, name, ...) ", " name

static const struct argp_option options[] = {
	{NULL, 0, NULL, 0, "From another machine:", 6},
	{"from", OPTION_FROM, "URL", 0,
	 "Read from URL as from a directory: http://NODE:4041 (its pyprofd-serve), "
	 "pyroscope+https://HOST/?service_name=X, parca+http://HOST/?node=X, or any URL that "
	 "answers with a profile",
	 6},
	{"from-set", OPTION_FROM_SET, "KEY=VALUE", 0,
	 "How to ask there: token-file, user, ca, cert, key, proxy, header or tenant, as in [push] "
	 "of pyprofd.conf; may be given several times",
	 6},
	{NULL, 0, NULL, 0, "Which samples:", 8},
	{"pid", OPTION_PID, "PID,...", 0, "Only these processes", 8},
	{"comm", OPTION_COMM, "REGEX", 0, "Only processes whose name matches", 8},
	{"thread", OPTION_THREAD, "REGEX", 0, "Only threads whose name or tid matches", 8},
	{"since", OPTION_SINCE, "TIME", 0,
	 "Only windows that end after TIME: 1h, 30m (ago), 2026-11-21T15:04, 15:04, @SECONDS", 8},
	{"until", OPTION_UNTIL, "TIME", 0, "Only windows that begin before TIME", 8},
	{"kind", OPTION_KIND, "KIND", 0,
	 "The kind to read, where a directory has several: " PP_PROFILES(FIRST_KIND, NEXT_KIND), 8},
	{"focus", OPTION_FOCUS, "REGEX", 0, "Only stacks with a function or file that matches", 8},
	{"ignore", OPTION_IGNORE, "REGEX", 0,
	 "Leave out stacks with a function or file that matches", 8},
	{"group-by", OPTION_GROUP_BY, "KEY,...", 0,
	 "A separate result for each process, thread, comm, thread-name, container, wait, or value "
	 "of another label: app, service_name, rank, ...; label:KEY for any",
	 8},
	{"label", OPTION_LABEL, "KEY=REGEX", 0,
	 "Only samples whose label matches, \"\" standing for one that is missing; may be given "
	 "several times",
	 8},
	{"sample-type", OPTION_SAMPLE_TYPE, "TYPE", 0,
	 "The values to show; info lists them.  Default: the file's own default", 8},
	{"python", OPTION_PYTHON, NULL, 0,
	 "Show only Python functions; time in C and in the kernel counts for the function that "
	 "called",
	 8},
	{"format", OPTION_FORMAT, "FORMAT", 0, "Write text (default)", 9},
	/* The names of formats that other readers have as options: --json is --format=json. */
	{"csv", OPTION_CSV, NULL, OPTION_HIDDEN, NULL, 9},
	{"folded", OPTION_FOLDED, NULL, OPTION_HIDDEN, NULL, 9},
	{"json", OPTION_JSON, NULL, OPTION_HIDDEN, NULL, 9},
	{"svg", OPTION_SVG, NULL, OPTION_HIDDEN, NULL, 9},
	{"full-paths", OPTION_FULL_PATHS, NULL, 0,
	 "Show whole paths of source files, not only the part that tells them apart", 9},
	{"strict", OPTION_STRICT, NULL, 0,
	 "A broken or foreign file in a directory is an error; default: it is passed over", 9},
	{0},
};

static const struct argp_option live_options[] = {
	{NULL, 0, NULL, 0, "What happens now:", 7},
	{"live", OPTION_LIVE, NULL, 0,
	 "Read no files, but ask the running pyprofd what happens from now on; root needs no "
	 "running pyprofd",
	 7},
	{"for", OPTION_FOR, "S", 0, "Watch for S seconds, 1 to 3600; default: 10", 7},
	{"socket", OPTION_SOCKET, "PATH", 0, "Where pyprofd answers; default: " LIVE_SOCKET_DEFAULT,
	 7},
	{0},
};

int select_refuse_groups(const struct select *select, const char *verb)
{
	return !select->group_by.keys
		       ? 0
		       : complain("%s has no groups: choose one with --pid, --comm or --thread",
				  verb);
}

void select_regex_option(const char *text, const char *option, regex_t **regex)
{
	char why[SELECT_WHY_BYTES];

	select_free_regex(TAKE(*regex));
	if (select_regex(text, why, regex))
		exit(complain("--%s=%s: %s", option, text, why));
}

static void parse_time(struct argp_state *state, const char *option, const char *text,
		       uint64_t *ret_ms)
{
	if (select_time(text, wall_ns() / NS_PER_MS, ret_ms))
		argp_error(state, "--%s=%s: not a time: 1h, 30m, 2026-11-21T15:04, 15:04", option,
			   text);
}

static void parse_pids(struct argp_state *state, struct select *select, const char *text)
{
	int err = select_add_pids(select, text);

	if (err == -E2BIG)
		argp_error(state, "--pid: more than %u", SELECT_MAX_PIDS);
	if (err)
		argp_error(state, "--pid=%s: not a process id", text);
}

static void parse_groups(struct argp_state *state, struct select *select, const char *text)
{
	char why[SELECT_WHY_BYTES];

	if (select_add_groups(&select->group_by, text, why))
		argp_error(state,
			   "--group-by=%s: not process, thread, comm, thread-name, container or "
			   "wait, and %s",
			   text, why);
}

static void parse_label(struct argp_state *state, struct select *select, const char *text)
{
	char why[SELECT_WHY_BYTES];

	if (select_add_label(select, text, why))
		argp_error(state, "--label=%s: %s", text, why);
}

const char *const select_table_formats[] = {SELECT_TABLE_FORMATS, NULL};

static const char *const text_alone[] = {"text", NULL};

static const char *const *formats_of(const struct select_options *shared)
{
	return shared && shared->formats ? shared->formats : text_alone;
}

/* Writes "text, csv LAST json" to a buffer. */
static void join_words(const char *const *words, const char *last, char *ret_list, size_t size)
{
	size_t used = 0;

	ret_list[0] = '\0';
	for (unsigned int i = 0; words[i] && used < size; i++)
		used += (size_t)snprintf(ret_list + used, size - used, "%s%s",
					 !i		? ""
					 : words[i + 1] ? ", "
							: last,
					 words[i]);
}

/* Returns the number of a word, or of the NULL behind all. */
static unsigned int find_word(const char *const *words, const char *text)
{
	unsigned int i = 0;

	while (words[i] && strcmp(words[i], text) != 0)
		i++;
	return i;
}

unsigned int select_word(struct argp_state *state, const char *option, const char *text,
			 const char *const *words)
{
	const unsigned int found = find_word(words, text);
	char list[LIST_BYTES];

	join_words(words, " or ", list, sizeof(list));
	if (!words[found])
		argp_error(state, "--%s=%s: not %s", option, text, list);
	return found;
}

static void parse_format(struct argp_state *state, struct select_options *shared, const char *text)
{
	const char *const *formats = formats_of(shared);
	const unsigned int found = find_word(formats, text);
	char list[LIST_BYTES];

	join_words(formats, ", ", list, sizeof(list));
	if (!formats[found])
		argp_error(state, "--format=%s: not one of %s", text, list);
	if (shared->has_format && shared->format != found)
		argp_error(state, "--format=%s and %s: one at a time", formats[shared->format],
			   text);
	shared->format = found;
	shared->has_format = true;
}

/* The help of --format names the formats of the verb; the first is the default. */
static char *filter_help(int key, const char *text, void *input)
{
	char list[LIST_BYTES], *help;

	if (key != OPTION_FORMAT)
		return (char *)text;
	join_words(formats_of(input), ", ", list, sizeof(list));
	return asprintf(&help, "Write %s: the first, where nothing else is said", list) < 0
		       ? (char *)text
		       : help;
}

static error_t add_path(struct select *select, char *path)
{
	char **grown = reallocarray(select->path, (size_t)select->path_count + 1, sizeof(*grown));

	if (!grown)
		return ENOMEM;
	select->path = grown;
	select->path[select->path_count++] = path;
	return 0;
}

static error_t add_argument(struct select_options *shared, char *text)
{
	if (shared->leading_count == shared->leading_wanted)
		return add_path(&shared->select, text);
	shared->leading[shared->leading_count++] = text;
	return 0;
}

static error_t add_url(struct select *select, char *url, struct argp_state *state)
{
	enum collector_id ignored;
	const char *plain;

	if (!remote_url_parse(url, &ignored, &plain))
		argp_error(state,
			   "--from=%s: not a URL: http://NODE:4041, pyroscope+https://HOST/, "
			   "parca+http://HOST/",
			   url);
	return add_path(select, url);
}

static error_t add_from_set(struct select *select, const char *text)
{
	const char **grown =
		reallocarray(select->from_set, select->from_set_count + 1U, sizeof(*grown));

	if (!grown)
		return ENOMEM;
	select->from_set = grown;
	select->from_set[select->from_set_count++] = text;
	return 0;
}

/* --json is --format=json. */
static const char *const own_options[] = {"csv", "folded", "json", "svg"};

static error_t parse_text(int key, char *text, struct select *select)
{
	switch (key) {
	case OPTION_COMM:
		select_regex_option(text, "comm", &select->comm);
		return 0;
	case OPTION_THREAD:
		select_regex_option(text, "thread", &select->thread);
		return 0;
	case OPTION_FOCUS:
		select_regex_option(text, "focus", &select->focus);
		return 0;
	case OPTION_IGNORE:
		select_regex_option(text, "ignore", &select->ignore);
		return 0;
	case OPTION_SAMPLE_TYPE:
		select->sample_type = text;
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static error_t parse(int key, char *text, struct argp_state *state)
{
	struct select_options *shared = state->input;
	struct select *select = &shared->select;

	switch (key) {
	case OPTION_PID:
		parse_pids(state, select, text);
		return 0;
	case OPTION_SINCE:
		parse_time(state, "since", text, &select->since_ms);
		return 0;
	case OPTION_UNTIL:
		parse_time(state, "until", text, &select->until_ms);
		return 0;
	case OPTION_KIND:
		if (!store_kind_is_valid(text))
			argp_error(state, "--kind=%s: not a kind: letters, digits, _", text);
		select->kind = text;
		return 0;
	case OPTION_GROUP_BY:
		parse_groups(state, select, text);
		return 0;
	case OPTION_LABEL:
		parse_label(state, select, text);
		return 0;
	case OPTION_PYTHON:
		select->python_only = true;
		return 0;
	case OPTION_FORMAT:
		parse_format(state, shared, text);
		return 0;
	case OPTION_CSV:
	case OPTION_FOLDED:
	case OPTION_JSON:
	case OPTION_SVG:
		parse_format(state, shared, own_options[key - OPTION_CSV]);
		return 0;
	case OPTION_FULL_PATHS:
		select->full_paths = true;
		return 0;
	case OPTION_STRICT:
		select->strict = true;
		return 0;
	case OPTION_FROM:
		return add_url(select, text, state);
	case OPTION_FROM_SET:
		return add_from_set(select, text);
	case ARGP_KEY_ARG:
		return add_argument(shared, text);
	default:
		return parse_text(key, text, select);
	}
}

static error_t parse_live(int key, char *text, struct argp_state *state)
{
	struct select *select = &((struct select_options *)state->input)->select;

	switch (key) {
	case OPTION_LIVE:
		select->live = true;
		return 0;
	case OPTION_FOR:
		select->live_seconds = select_number(state, "for", text);
		if (!select->live_seconds || select->live_seconds > LIVE_SECONDS_MAX)
			argp_error(state, "--for=%s: not from 1 to %lu", text, LIVE_SECONDS_MAX);
		return 0;
	case OPTION_SOCKET:
		select->socket = text;
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static const char *find_conflict_of_exact(const struct select *select)
{
	if (!select->pid_count)
		return "--exact slows programs down, so it needs chosen ones: give --pid";
	if (select->live || select->socket)
		return "--exact records by itself, without the running pyprofd: leave out --live "
		       "and --socket";
	if (select->path_count)
		return "--exact reads no profile: give either a profile or --exact";
	if (select->since_ms || select->until_ms)
		return "--exact begins now: --since and --until work only with directories";
	return NULL;
}

/* Returns what is wrong with the combination of options, or NULL. */
static const char *find_conflict(const struct select *select)
{
	if (select->records)
		return find_conflict_of_exact(select);
	if (!select->live && select->live_seconds)
		return "--for works only with --live";
	if (!select->live && select->socket)
		return "--socket works only with --live";
	if (!select->live)
		return NULL;
	if (select->path_count)
		return "--live reads no profile: give either a profile or --live; of another "
		       "machine, http://NODE:4041/debug/pprof/profile?seconds=10";
	if (select->since_ms || select->until_ms)
		return "--live begins now: --since and --until work only with directories";
	return NULL;
}

static error_t parse_with_live(int key, char *text, struct argp_state *state)
{
	struct select *select = &((struct select_options *)state->input)->select;
	const char *conflict;

	switch (key) {
	case ARGP_KEY_INIT:
		state->child_inputs[0] = state->input;
		return 0;
	case ARGP_KEY_END:
		conflict = find_conflict(select);
		if (!select->live_seconds)
			select->live_seconds = LIVE_SECONDS_DEFAULT;
		if (!conflict)
			return 0;
		exit(complain("%s", conflict));
	default:
		return parse(key, text, state);
	}
}

/* While a verb's options are parsed. */
struct parsing {
	argp_parser_t parser;
	void *input, *shared;
};

/* Calls a verb's parser, which knows nothing of the shared options. */
static error_t parse_own(int key, char *text, struct argp_state *state)
{
	const struct parsing *parsing = state->input;

	if (key == ARGP_KEY_INIT) {
		state->child_inputs[0] = parsing->shared;
		return 0;
	}
	state->input = parsing->input;
	return parsing->parser(key, text, state);
}

static error_t parse_verb(const struct argp *verb, const struct argp *shared,
			  struct parsing parsing, int argc, char **argv)
{
	const struct argp_child children[] = {{shared, 0, NULL, 8}, {0}};
	struct argp whole = *verb;

	parsing.parser = verb->parser;
	whole.parser = parse_own;
	whole.children = children;
	return argp_parse(&whole, argc, argv, 0, NULL, &parsing);
}

error_t select_parse(const struct argp *verb, int argc, char **argv, struct select_options *shared,
		     void *input)
{
	static const struct argp live = {.options = live_options, .parser = parse_live};
	static const struct argp_child live_child[] = {{&live, 0, NULL, 7}, {0}};
	static const struct argp files_or_live = {.options = options,
						  .parser = parse_with_live,
						  .children = live_child,
						  .help_filter = filter_help};
	static const struct argp files = {
		.options = options, .parser = parse, .help_filter = filter_help};

	shared->select.may_fetch = true;
	return parse_verb(verb, shared->files_alone ? &files : &files_or_live,
			  (struct parsing){.input = input, .shared = shared}, argc, argv);
}

double select_share(struct argp_state *state, const char *option, const char *text)
{
	char *end;
	double share = strtod(text, &end) / 100;

	if (end == text || *end || !(share >= 0) || share > 1)
		argp_error(state, "--%s=%s: not a percentage", option, text);
	return share;
}

unsigned long select_number(struct argp_state *state, const char *option, const char *text)
{
	char *end;
	unsigned long number = strtoul(text, &end, 10);

	if (end == text || *end)
		argp_error(state, "--%s=%s: not a number", option, text);
	return number;
}

/* ---- verbs that ask a running pyprofd ---- */

enum option_key { KEY_SOCKET = 0x1000 };

static const struct argp_option asking_options[] = {
	{"pid", 'p', "PID[,PID...]", 0, "Only these processes; may be repeated", 8},
	{"socket", KEY_SOCKET, "PATH", 0, "Where pyprofd answers.  Default: " LIVE_SOCKET_DEFAULT,
	 9},
	{0},
};

static void add_pids(struct live_request *request, const char *text, struct argp_state *state)
{
	for (;;) {
		char *end;
		unsigned long pid = strtoul(text, &end, 10);

		if (end == text || !pid || pid > INT32_MAX || (*end && *end != ','))
			argp_error(state, "--pid=%s: not a process", text);
		if (request->pid_count == LIVE_PIDS_MAX)
			argp_error(state, "--pid: more than %u", LIVE_PIDS_MAX);
		request->pid[request->pid_count++] = (uint32_t)pid;
		if (!*end)
			return;
		text = end + 1;
	}
}

static error_t parse_asking(int key, char *text, struct argp_state *state)
{
	struct live_options *live = state->input;

	switch (key) {
	case 'p':
		add_pids(&live->request, text, state);
		return 0;
	case KEY_SOCKET:
		live->socket = text;
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

error_t live_options_parse(const struct argp *verb, int argc, char **argv,
			   struct live_options *shared, void *input)
{
	static const struct argp live = {.options = asking_options, .parser = parse_asking};

	return parse_verb(verb, &live, (struct parsing){.input = input, .shared = shared}, argc,
			  argv);
}

int live_explain(const struct live_client *client, int err, const char *said)
{
	char text[WHY_BYTES];

	(void)live_why(client, err, said, text);
	return text[0] ? complain("%s", text) : READER_BAD_INPUT;
}
