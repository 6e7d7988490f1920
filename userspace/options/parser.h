/* SPDX-License-Identifier: BSD-2-Clause */
/* What the files that parse options share; for this directory alone. */
#ifndef OPTIONS_PARSER_H
#define OPTIONS_PARSER_H

#include <argp.h>

#include "config/config.h"
#include "options/options.h"

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
	KEY_FRAMES,
	KEY_PROBE,
	KEY_LINES,
	KEY_PROBES,
	KEY_MAX_SLOWDOWN,
	KEY_LEAKS,
	KEY_STORE_MAX,
	KEY_STORE_AGE,
	KEY_TIMELINE,
	KEY_TIMELINE_MAX,
	KEY_LIVE,
	KEY_LIVE_USER,
	KEY_SERVE,
	KEY_MAX_MEMORY,
	KEY_CONFIG,
	KEY_SET,
	KEY_MAX_CPU,
	KEY_DOCTOR,
	KEY_HELP,
};

/* Ends with an entry of zeros. */
extern const struct argp_option option_table[];
/* What is set by the configuration file and --set alone; ends with an entry of zeros. */
struct option_setting {
	int key;
	const char *name; /* as in config/config.h */
};
extern const struct option_setting option_settings[];

/* Whether an option was given, where its value does not tell. */
struct option_given {
	bool offcpu_min, timeline_max, live;
	bool store_path; /* the output, as path= of [store]: a directory */
};

struct option_parser {
	const struct options_streams *streams;
	struct options options;
	struct option_given given;
	/* The setting that is being parsed; NULL: the command line is. */
	const struct config_value *setting;
	bool has_old_pids, has_old_uids; /* of the configuration: the command line's replace them */
	int last_next;			 /* state->next when an option was last parsed */
	bool is_failed;			 /* a line was printed */
	bool is_done;			 /* --help or --version */
};

/* Prints the one line about an error.  A format that begins with "--OPTION" gets the place of the
 * setting that is being parsed instead.  Always returns -EINVAL. */
__attribute__((format(printf, 2, 3))) int usage(struct option_parser *parser, const char *format,
						...);
/* Parses the value of an option, NULL where it takes none.  Returns 0; ARGP_ERR_UNKNOWN: the key is
 * none of these; -EINVAL: a line was printed; -ENOMEM. */
int option_set(struct option_parser *parser, int key, const char *arg);

/* ---- configured.c: options from the configuration file and --set ----
 *
 * They are parsed before the command line, by the options' own code.  Those that return something
 * return 0; -EINVAL: a line was printed; -ENOMEM. */

#define OPTION_WHY_BYTES 256U

/* Looks through the command line for --config and --set, reads the file, and parses what both say
 * about pyprofd's options.  A file at OPTIONS_CONFIG_DEFAULT need not exist. */
int configured_parse(struct option_parser *parser, int argc, char **argv);
/* Notes in the configuration what an option of the command line gave. */
int configured_note(struct option_parser *parser, int key, const char *arg);
/* Puts the place of a setting in front of a line that begins with its option. */
void configured_locate(const struct option_parser *parser, char why[OPTION_WHY_BYTES]);
/* Ends parsing: checks the sections of pyprofd-serve, and notes the defaults that depend on other
 * options. */
int configured_finish(struct option_parser *parser);

#endif
