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

#define FIRST_KIND(id, number, name, ...) name " (default)"
#define NEXT_KIND(id, number, name, ...) ", " name
#define AT(member) offsetof(struct select_options, member)

/* ---- the values of options ---- */

void option_refuse(const struct given *given, const char *why)
{
	argp_error(given->argp, "--%s=%s: %s", given->option, given->text, why);
}

unsigned long option_number(const struct given *given)
{
	char *end;
	unsigned long number = strtoul(given->text, &end, 10);

	if (end == given->text || *end)
		option_refuse(given, "not a number");
	return number;
}

unsigned long option_number_within(const struct given *given, unsigned long max)
{
	const unsigned long number = option_number(given);
	char why[48];

	snprintf(why, sizeof(why), "not from 1 to %lu", max);
	if (!number || number > max)
		option_refuse(given, why);
	return number;
}

double option_share(const struct given *given)
{
	char *end;
	double share = strtod(given->text, &end) / 100;

	if (end == given->text || *end || !(share >= 0) || share > 1)
		option_refuse(given, "not a percentage");
	return share;
}

/* Writes "text, csv LAST json" to a buffer. */
static void join_words(const char *const *words, const char *last, char ret_list[LIST_BYTES])
{
	size_t used = 0;

	ret_list[0] = '\0';
	for (unsigned int i = 0; words[i] && used < LIST_BYTES; i++)
		used += (size_t)snprintf(ret_list + used, LIST_BYTES - used, "%s%s",
					 !i		? ""
					 : words[i + 1] ? ", "
							: last,
					 words[i]);
}

unsigned int option_word(const struct given *given, const char *const *words)
{
	char list[LIST_BYTES], why[LIST_BYTES + 8];
	unsigned int i = 0;

	while (words[i] && strcmp(words[i], given->text) != 0)
		i++;
	join_words(words, " or ", list);
	snprintf(why, sizeof(why), "not %s", list);
	if (!words[i])
		option_refuse(given, why);
	return i;
}

void option_regex(const struct given *given, regex_t **regex)
{
	char why[SELECT_WHY_BYTES];

	select_free_regex(TAKE(*regex));
	if (select_regex(given->text, why, regex))
		exit(complain("--%s=%s: %s", given->option, given->text, why));
}

static void parse_time(const struct given *given)
{
	if (select_time(given->text, wall_ns() / NS_PER_MS, given->at))
		option_refuse(given, "not a time: 1h, 30m, 2026-11-21T15:04, 15:04");
}

static void parse_pids(const struct given *given)
{
	int err = select_add_pids(given->at, given->text);

	if (err == -E2BIG)
		argp_error(given->argp, "--pid: more than %u", SELECT_MAX_PIDS);
	if (err)
		option_refuse(given, "not a process id");
}

static void parse_kind(const struct given *given)
{
	if (!store_kind_is_valid(given->text))
		option_refuse(given, "not a kind: letters, digits, _");
	*(const char **)given->at = given->text;
}

static void parse_groups(const struct given *given)
{
	char why[SELECT_WHY_BYTES];

	if (select_add_groups(given->at, given->text, why))
		argp_error(given->argp,
			   "--group-by=%s: not process, thread, comm, thread-name, container or "
			   "wait, and %s",
			   given->text, why);
}

static void parse_label(const struct given *given)
{
	char why[SELECT_WHY_BYTES];

	if (select_add_label(given->at, given->text, why))
		option_refuse(given, why);
}

static void parse_seconds(const struct given *given)
{
	*(unsigned long *)given->at = option_number_within(given, LIVE_SECONDS_MAX);
}

static void add_path(struct argp_state *argp, struct select *select, char *path)
{
	char **grown = reallocarray(select->path, (size_t)select->path_count + 1, sizeof(*grown));

	if (!grown)
		argp_failure(argp, READER_BAD_INPUT, ENOMEM, "%s", path);
	select->path = grown;
	select->path[select->path_count++] = path;
}

static void parse_from(const struct given *given)
{
	enum collector_id ignored;
	const char *plain;

	if (!remote_url_parse(given->text, &ignored, &plain))
		option_refuse(given, "not a URL: http://NODE:4041, pyroscope+https://HOST/, "
				     "parca+http://HOST/");
	add_path(given->argp, given->at, given->text);
}

static void parse_from_set(const struct given *given)
{
	struct select *select = given->at;
	const char **grown =
		reallocarray(select->from_set, select->from_set_count + 1U, sizeof(*grown));

	if (!grown)
		argp_failure(given->argp, READER_BAD_INPUT, ENOMEM, "--from-set");
	select->from_set = grown;
	select->from_set[select->from_set_count++] = given->text;
}

const char *const select_table_formats[] = {SELECT_TABLE_FORMATS, NULL};

static const char *const *formats_of(const struct select_options *shared)
{
	static const char *const text_alone[] = {"text", NULL};

	return shared->formats ?: text_alone;
}

/* --json is --format=json. */
static void parse_format(const struct given *given)
{
	struct select_options *shared = given->at;
	const char *const *formats = formats_of(shared);
	const char *text = given->text ?: given->option;
	unsigned int found = 0;
	char list[LIST_BYTES];

	while (formats[found] && strcmp(formats[found], text) != 0)
		found++;
	join_words(formats, ", ", list);
	if (!formats[found])
		argp_error(given->argp, "--format=%s: not one of %s", text, list);
	if (shared->has_format && shared->format != found)
		argp_error(given->argp, "--format=%s and %s: one at a time",
			   formats[shared->format], text);
	shared->format = found;
	shared->has_format = true;
}

static void parse_asked_pids(const struct given *given)
{
	struct live_request *request = given->at;
	const char *text = given->text;

	for (;;) {
		char *end;
		unsigned long pid = strtoul(text, &end, 10);

		if (end == text || !pid || pid > INT32_MAX || (*end && *end != ','))
			argp_error(given->argp, "--pid=%s: not a process", text);
		if (request->pid_count == LIVE_PIDS_MAX)
			argp_error(given->argp, "--pid: more than %u", LIVE_PIDS_MAX);
		request->pid[request->pid_count++] = (uint32_t)pid;
		if (!*end)
			return;
		text = end + 1;
	}
}

/* ---- the shared options ---- */

static const struct verb_option options[] = {
	{.help = "From another machine:", .group = 6},
	{"from", 0, "URL",
	 "Read from URL as from a directory: http://NODE:4041 (its pyprofd-serve), "
	 "pyroscope+https://HOST/?service_name=X, parca+http://HOST/?node=X, or any URL that "
	 "answers with a profile",
	 6, OPTION_CALL, .at = AT(select), .parse = parse_from},
	{"from-set", 0, "KEY=VALUE",
	 "How to ask there: token-file, user, ca, cert, key, proxy, header or tenant, as in [push] "
	 "of pyprofd.conf; may be given several times",
	 6, OPTION_CALL, .at = AT(select), .parse = parse_from_set},
	{.help = "Which samples:", .group = 8},
	{"pid", 0, "PID,...", "Only these processes", 8, OPTION_CALL, .at = AT(select),
	 .parse = parse_pids},
	{"comm", 0, "REGEX", "Only processes whose name matches", 8, OPTION_REGEX,
	 .at = AT(select.comm)},
	{"thread", 0, "REGEX", "Only threads whose name or tid matches", 8, OPTION_REGEX,
	 .at = AT(select.thread)},
	{"since", 0, "TIME",
	 "Only windows that end after TIME: 1h, 30m (ago), 2026-11-21T15:04, 15:04, @SECONDS", 8,
	 OPTION_CALL, .at = AT(select.since_ms), .parse = parse_time},
	{"until", 0, "TIME", "Only windows that begin before TIME", 8, OPTION_CALL,
	 .at = AT(select.until_ms), .parse = parse_time},
	{"kind", 0, "KIND",
	 "The kind to read, where a directory has several: " PP_PROFILES(FIRST_KIND, NEXT_KIND), 8,
	 OPTION_CALL, .at = AT(select.kind), .parse = parse_kind},
	{"focus", 0, "REGEX", "Only stacks with a function or file that matches", 8, OPTION_REGEX,
	 .at = AT(select.focus)},
	{"ignore", 0, "REGEX", "Leave out stacks with a function or file that matches", 8,
	 OPTION_REGEX, .at = AT(select.ignore)},
	{"group-by", 0, "KEY,...",
	 "A separate result for each process, thread, comm, thread-name, container, wait, or value "
	 "of another label: app, service_name, rank, ...; label:KEY for any",
	 8, OPTION_CALL, .at = AT(select.group_by), .parse = parse_groups},
	{"label", 0, "KEY=REGEX",
	 "Only samples whose label matches, \"\" standing for one that is missing; may be given "
	 "several times",
	 8, OPTION_CALL, .at = AT(select), .parse = parse_label},
	{"sample-type", 0, "TYPE",
	 "The values to show; info lists them.  Default: the file's own default", 8, OPTION_TEXT,
	 .at = AT(select.sample_type)},
	{"python", 0, NULL,
	 "Show only Python functions; time in C and in the kernel counts for the function that "
	 "called",
	 8, OPTION_FLAG, .at = AT(select.python_only)},
	{"format", 0, "FORMAT", "Write text (default)", 9, OPTION_CALL, .parse = parse_format},
	/* The names of formats that other readers have as options: --json is --format=json. */
	{"csv", 0, NULL, NULL, 9, OPTION_CALL, .parse = parse_format},
	{"folded", 0, NULL, NULL, 9, OPTION_CALL, .parse = parse_format},
	{"json", 0, NULL, NULL, 9, OPTION_CALL, .parse = parse_format},
	{"svg", 0, NULL, NULL, 9, OPTION_CALL, .parse = parse_format},
	{"full-paths", 0, NULL,
	 "Show whole paths of source files, not only the part that tells them apart", 9,
	 OPTION_FLAG, .at = AT(select.full_paths)},
	{"strict", 0, NULL,
	 "A broken or foreign file in a directory is an error; default: it is passed over", 9,
	 OPTION_FLAG, .at = AT(select.strict)},
	{}};

static const struct verb_option live_options[] = {
	{.help = "What happens now:", .group = 10},
	{"live", 0, NULL,
	 "Read no files, but ask the running pyprofd what happens from now on; root needs no "
	 "running pyprofd",
	 10, OPTION_FLAG, .at = AT(select.live)},
	{"for", 0, "S", "Watch for S seconds, 1 to 3600; default: 10", 10, OPTION_CALL,
	 .at = AT(select.live_seconds), .parse = parse_seconds},
	{"socket", 0, "PATH", "Where pyprofd answers; default: " LIVE_SOCKET_DEFAULT, 10,
	 OPTION_TEXT, .at = AT(select.socket)},
	{}};

static const struct verb_option asking_options[] = {
	{"pid", 'p', "PID[,PID...]", "Only these processes; may be repeated", 8, OPTION_CALL,
	 .at = offsetof(struct live_options, request), .parse = parse_asked_pids},
	{"socket", 0, "PATH", "Where pyprofd answers.  Default: " LIVE_SOCKET_DEFAULT, 9,
	 OPTION_TEXT, .at = offsetof(struct live_options, socket)},
	{}};

int select_refuse_groups(const struct select *select, const char *verb)
{
	return !select->group_by.keys
		       ? 0
		       : complain("%s has no groups: choose one with --pid, --comm or --thread",
				  verb);
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

static void check_shared(struct select *select)
{
	const char *conflict = find_conflict(select);

	if (!select->live_seconds)
		select->live_seconds = LIVE_SECONDS_DEFAULT;
	if (conflict)
		exit(complain("%s", conflict));
}

/* ---- all options of a verb ---- */

#define OPTIONS_MAX 48U
#define KEY_FIRST 0x1000 /* of options without a letter */

/* While a verb's options are parsed. */
struct parsing {
	const struct verb_args *verb;
	void *into;
	struct select_options *shared; /* the same; NULL: the verb asks a running pyprofd */
	const struct verb_option *row[OPTIONS_MAX];
	struct argp_option option[OPTIONS_MAX + 1];
	unsigned int count;
	char *help_of_format; /* owned */
};

static error_t take_argument(const struct parsing *parsing, char *text, struct argp_state *argp)
{
	struct select_options *shared = parsing->shared;

	if (!shared && parsing->verb->refused)
		argp_error(argp, "'%s': %s", text, parsing->verb->refused);
	if (!shared)
		return ARGP_ERR_UNKNOWN;
	if (shared->leading_count < shared->leading_wanted)
		shared->leading[shared->leading_count++] = text;
	else
		add_path(argp, &shared->select, text);
	return 0;
}

static void take_option(const struct verb_option *option, const struct given *given)
{
	switch (option->does) {
	case OPTION_FLAG:
		*(bool *)given->at = true;
		break;
	case OPTION_TEXT:
		*(const char **)given->at = given->text;
		break;
	case OPTION_NUMBER:
		*(unsigned long *)given->at = option_number(given);
		break;
	case OPTION_SHARE:
		*(double *)given->at = option_share(given);
		break;
	case OPTION_WORD:
		*(unsigned int *)given->at = option_word(given, option->words);
		break;
	case OPTION_REGEX:
		option_regex(given, given->at);
		break;
	case OPTION_CALL:
		option->parse(given);
	}
}

static error_t parse(int key, char *text, struct argp_state *argp)
{
	const struct parsing *parsing = argp->input;

	if (key == ARGP_KEY_ARG)
		return take_argument(parsing, text, argp);
	if (key == ARGP_KEY_END && parsing->shared && !parsing->shared->files_alone)
		check_shared(&parsing->shared->select);
	if (key == ARGP_KEY_END && parsing->verb->check)
		parsing->verb->check(argp, parsing->into);
	for (unsigned int i = 0; i < parsing->count; i++) {
		const struct verb_option *option = parsing->row[i];

		if (!option->name || parsing->option[i].key != key)
			continue;
		take_option(option, &(struct given){.argp = argp,
						    .option = option->name,
						    .at = (char *)parsing->into + option->at,
						    .text = text});
		return 0;
	}
	return key == ARGP_KEY_END ? 0 : ARGP_ERR_UNKNOWN;
}

/* The help of --format names the formats of the verb; the first is the default. */
static const char *help_of(struct parsing *parsing, const struct verb_option *option)
{
	char list[LIST_BYTES];

	if (!option->name || strcmp(option->name, "format") != 0 || parsing->help_of_format)
		return option->help;
	join_words(formats_of(parsing->shared), ", ", list);
	return asprintf(&parsing->help_of_format, "Write %s: the first, where nothing else is said",
			list) < 0
		       ? option->help
		       : parsing->help_of_format;
}

static void add_options(struct parsing *parsing, const struct verb_option *option)
{
	for (; (option->name || option->help) && parsing->count < OPTIONS_MAX; option++) {
		const unsigned int at = parsing->count++;
		const int key = option->letter ?: (int)(KEY_FIRST + at);

		parsing->row[at] = option;
		parsing->option[at] = (struct argp_option){
			.name = option->name,
			.key = option->name ? key : 0,
			.arg = option->argument,
			.flags = (option->help ? 0 : OPTION_HIDDEN) |
				 (option->may_be_bare ? OPTION_ARG_OPTIONAL : 0),
			.doc = help_of(parsing, option),
			.group = option->group};
	}
}

static int parse_all(struct parsing *parsing, int argc, char **argv)
{
	const struct argp argp = {.options = parsing->option,
				  .parser = parse,
				  .args_doc = parsing->verb->arguments,
				  .doc = parsing->verb->doc};
	const error_t err = argp_parse(&argp, argc, argv, 0, NULL, parsing);

	free(parsing->help_of_format);
	return err ? READER_BAD_INPUT : READER_OK;
}

int select_parse(const struct verb_args *verb, int argc, char **argv, struct select_options *shared)
{
	struct parsing parsing = {.verb = verb, .into = shared, .shared = shared};

	shared->select.may_fetch = true;
	add_options(&parsing, verb->options);
	if (!shared->files_alone)
		add_options(&parsing, live_options);
	add_options(&parsing, options);
	return parse_all(&parsing, argc, argv);
}

/* ---- verbs that ask a running pyprofd ---- */

int live_options_parse(const struct verb_args *verb, int argc, char **argv,
		       struct live_options *shared)
{
	struct parsing parsing = {.verb = verb, .into = shared};

	add_options(&parsing, verb->options);
	add_options(&parsing, asking_options);
	return parse_all(&parsing, argc, argv);
}

int live_explain(const struct live_client *client, int err, const char *said)
{
	char text[WHY_BYTES];

	(void)live_why(client, err, said, text);
	return text[0] ? complain("%s", text) : READER_BAD_INPUT;
}
