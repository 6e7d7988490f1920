/* SPDX-License-Identifier: BSD-2-Clause */
/* What the files that parse options share; for this directory alone. */
#ifndef OPTIONS_PARSER_H
#define OPTIONS_PARSER_H

#include <argp.h>

#include "config/config.h"
#include "options/options.h"

/* What argp calls an option, where it is not a letter. */
enum option_key { KEY_CONFIG = 256, KEY_SET, KEY_HELP, KEY_ROWS };

struct option_parser;
/* An option with the way to its value. */
struct option_row {
	const char *name;     /* NULL: `text` is the headline of those that follow */
	int key;	      /* a letter, or enum option_key; 0: it has none */
	const char *argument; /* NULL: it takes none */
	const char *text;     /* of --help; NULL: of the configuration file and --set alone */
	int (*set)(struct option_parser *parser, const char *text); /* text NULL: it takes none */
	size_t at; /* of the field in struct options, where set() is that of several options */
	uint64_t min, max; /* both are allowed */
	bool takes_zero;   /* besides */
	const char *hint;  /* what is to be given */
};
extern const struct option_row option_rows[];
extern const size_t option_row_count;
/* Returns those of the command line as argp wants them. */
const struct argp_option *option_table(void);
/* Return NULL where there is none. */
const struct option_row *option_row_of_key(int key);
const struct option_row *option_row_named(const char *name, size_t size);

/* Whether an option was given, where its value does not tell. */
struct option_given {
	bool offcpu_min, timeline_max, live;
	bool store_path; /* the output, as path= of [store]: a directory */
};

struct option_parser {
	const struct options_streams *streams;
	struct options options;
	struct option_given given;
	const struct option_row *row; /* which is being parsed */
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
/* Parses the value of an option, NULL where it takes none.  Returns 0; -EINVAL: a line was printed;
 * -ENOMEM. */
int option_set(struct option_parser *parser, const struct option_row *row, const char *text);

/* ---- configured.c: options from the configuration file and --set ----
 *
 * They are parsed before the command line, by the options' own code.  Those that return something
 * return 0; -EINVAL: a line was printed; -ENOMEM. */

/* Looks through the command line for --config and --set, reads the file, and parses what both say
 * about pyprofd's options.  A file at OPTIONS_CONFIG_DEFAULT need not exist. */
int configured_parse(struct option_parser *parser, int argc, char **argv);
/* Notes in the configuration what an option of the command line gave. */
int configured_note(struct option_parser *parser, const char *option, const char *arg);
/* usage() for options that exclude each other: the line begins with the first one, of which a
 * setting's place takes the place. */
__attribute__((format(printf, 2, 3))) int refuse(struct option_parser *parser, const char *format,
						 ...);
/* Ends parsing: checks the sections of pyprofd-serve, and notes the defaults that depend on other
 * options. */
int configured_finish(struct option_parser *parser);

#endif
