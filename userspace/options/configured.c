/* SPDX-License-Identifier: BSD-2-Clause */
/* Options from the configuration file and --set. */
#include <errno.h>
#include <stdarg.h>
#include <string.h>

#include "options/parser.h"

/* What the first look at the command line finds. */
struct found {
	struct option_parser *parser;
	const char *path;   /* NULL: no --config */
	bool asks_for_text; /* --help or --version: the rest does not count */
	char why[CONFIG_WHY_BYTES];
};

/* argp's own results are positive. */
static error_t find_config(int key, char *arg, struct argp_state *state)
{
	struct found *found = state->input;

	switch (key) {
	case KEY_CONFIG:
		found->path = arg;
		return 0;
	case KEY_SET:
		return -config_set(found->parser->options.config, arg, found->why);
	case KEY_HELP:
	case 'V':
		found->asks_for_text = true;
		return 0;
	case ARGP_KEY_ARG:
		/* The words of a command are not ours. */
		state->next = state->argc;
		return 0;
	default:
		return 0;
	}
}

/* Errors of other options wait for the second look. */
static void look(struct found *found, int argc, char **argv)
{
	const struct argp argp = {.options = option_table(), .parser = find_config};

	(void)argp_parse(&argp, argc, argv,
			 ARGP_NO_ERRS | ARGP_NO_EXIT | ARGP_NO_HELP | ARGP_IN_ORDER, NULL, found);
}

/* For an option without a value. */
static int parse_yes(struct option_parser *parser, const char *text, bool *ret_yes)
{
	static const char *const words[] = {"no", "yes", "false", "true", "off", "on", "0", "1"};

	for (size_t i = 0; i < ARRAY_SIZE(words); i++) {
		if (strcmp(text, words[i]))
			continue;
		*ret_yes = i % 2;
		return 0;
	}
	return usage(parser, "--%s '%s' is not known: give yes or no", parser->setting->key->option,
		     text);
}

/* Parses one setting by its option's code. */
static int take_setting(void *context, const struct config_value *value)
{
	struct option_parser *parser = context;
	const char *option = value->key->option;
	const struct option_row *row = option_row_named(option, strlen(option));
	bool is_wanted = true;
	int err = 0;

	parser->setting = value;
	if (value->key->takes_no_value) {
		err = parse_yes(parser, value->text, &is_wanted);
		if (!err && is_wanted)
			err = option_set(parser, row, NULL);
	} else {
		err = option_set(parser, row, value->text);
	}
	parser->setting = NULL;
	return err;
}

/* The service starts before anybody has written a configuration. */
static int read_config(struct option_parser *parser, const char *path, char why[CONFIG_WHY_BYTES])
{
	int err = config_read(parser->options.config, path, why);

	if (err != -ENOENT || strcmp(path, OPTIONS_CONFIG_DEFAULT))
		return err;
	why[0] = '\0';
	parser->options.config_is_missing = true;
	return 0;
}

int configured_parse(struct option_parser *parser, int argc, char **argv)
{
	struct found found = {.parser = parser};
	int err = config_new(&parser->options.config);

	if (err)
		return err;
	look(&found, argc, argv);
	if (found.asks_for_text)
		return 0;
	if (found.path && !found.why[0])
		err = read_config(parser, found.path, found.why);
	if (err == -ENOMEM)
		return err;
	if (found.why[0])
		return usage(parser, "%s", found.why);
	err = config_each(parser->options.config, take_setting, parser);
	parser->has_old_pids = parser->has_old_uids = true;
	return err;
}

int configured_note(struct option_parser *parser, const char *option, const char *arg)
{
	struct config_value given = {.text = arg ?: "yes", .source = CONFIG_FROM_OPTION};
	char why[CONFIG_WHY_BYTES];
	enum config_kind kind;
	size_t index;
	int err;

	if (!config_key_of_option(option, &kind, &index))
		return 0;
	err = config_note(parser->options.config, kind, index, &given, why);
	return err && err != -ENOMEM ? usage(parser, "%s", why) : err;
}

int refuse(struct option_parser *parser, const char *format, ...)
{
	char line[CONFIG_WHY_BYTES], option[CONFIG_WHY_BYTES], place[CONFIG_WHY_BYTES];
	struct config_value value = {0};
	enum config_kind kind;
	size_t index, size;
	va_list args;

	va_start(args, format);
	vsnprintf(line, sizeof(line), format, args);
	va_end(args);
	size = strcspn(line, " ");
	snprintf(option, sizeof(option), "%.*s", (int)size - 2, line + 2);
	if (config_key_of_option(option, &kind, &index))
		value = config_get(parser->options.config, kind, index);
	if (value.source != CONFIG_FROM_FILE && value.source != CONFIG_FROM_SET)
		return usage(parser, "%s", line);
	config_place(&value, place);
	return usage(parser, "%s%s", place, line + size);
}

static int check_http(const struct option_parser *parser, char why[CONFIG_WHY_BYTES])
{
	struct config_http http;
	int err = config_http(parser->options.config, &http, why);

	return err == -ENOENT ? 0 : err;
}

static int check_push(const struct option_parser *parser, char why[CONFIG_WHY_BYTES])
{
	struct config_push push;
	int err = 0;

	for (size_t i = 0; !err; i++)
		err = config_push(parser->options.config, i, &push, why);
	return err == -ENOENT ? 0 : err;
}

/* Notes what the rules made of options that were not given. */
static int note_defaults(struct option_parser *parser, char why[CONFIG_WHY_BYTES])
{
	const struct options *options = &parser->options;
	struct config_value events = {.source = CONFIG_FROM_DEFAULT},
			    live = {.text = options->live ?: "no"};
	char names[CAPTURE_NAMES_CHARS];
	int err;

	capture_names(options->events, ",", names);
	events.text = names;
	err = config_note(options->config, CONFIG_CAPTURE, CONFIG_CAPTURE_EVENTS, &events, why);
	if (err)
		return err;
	return config_note(options->config, CONFIG_CAPTURE, CONFIG_CAPTURE_LIVE, &live, why);
}

int configured_finish(struct option_parser *parser)
{
	char why[CONFIG_WHY_BYTES];
	int err = check_http(parser, why);

	if (!err)
		err = check_push(parser, why);
	if (!err)
		err = note_defaults(parser, why);
	if (err == -ENOMEM)
		return err;
	return err ? usage(parser, "%s", why) : 0;
}
