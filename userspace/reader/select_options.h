/* SPDX-License-Identifier: BSD-2-Clause */
/* Options of verbs, as tables of where their values go; and those that all verbs share: what to
 * read, and how to show it. */
#ifndef READER_SELECT_OPTIONS_H
#define READER_SELECT_OPTIONS_H

#include <argp.h>
#include <regex.h>
#include <stdbool.h>

#include "live/client.h"
#include "live/request.h"
#include "query/select.h"
#include "render/table.h"

/* ---- a verb's own options ---- */

/* An option as it was given. */
struct given {
	struct argp_state *argp;
	const char *option; /* its name */
	void *at;	    /* in the verb's struct */
	char *text;	    /* its value; NULL: none */
};

/* What is at an option's place in the verb's struct. */
enum option_does {
	OPTION_FLAG,   /* bool, which becomes true */
	OPTION_TEXT,   /* const char * */
	OPTION_NUMBER, /* unsigned long */
	OPTION_SHARE,  /* double from 0 to 1, of "12.5" percent */
	OPTION_WORD,   /* unsigned int or an enum: the number of the word */
	OPTION_REGEX,  /* regex_t *, owned; one that is wrong ends the program */
	OPTION_CALL,   /* what parse() needs */
};

/* One without a name is the title of a group; one without both ends the list. */
struct verb_option {
	const char *name;
	int letter;	      /* 0: it has none */
	const char *argument; /* as help calls it; NULL: none */
	const char *help;     /* NULL: it is hidden */
	int group;
	enum option_does does;
	size_t at;		  /* in the verb's struct, which begins with the shared ones */
	const char *const *words; /* behind which NULL stands */
	void (*parse)(const struct given *given);
	bool may_be_bare; /* its argument may be missing */
};

struct verb_args {
	const struct verb_option *options;
	const char *arguments, *doc;
	void (*check)(struct argp_state *argp, void *verb); /* of all options; NULL: nothing */
	const char *refused; /* of a verb that reads no profile: why it takes none; NULL: argp's */
};

/* Ends the program: "--NAME=TEXT: why". */
void option_refuse(const struct given *given, const char *why);
/* Return what was given, as enum option_does has it, or refuse it. */
unsigned long option_number(const struct given *given);
double option_share(const struct given *given);
unsigned int option_word(const struct given *given, const char *const *words);
void option_regex(const struct given *given, regex_t **regex);
/* Returns a number from 1 to max, or refuses it. */
unsigned long option_number_within(const struct given *given, unsigned long max);

/* ---- the shared ones ---- */

/* Release with select_release(&options->select). */
struct select_options {
	struct select select;
	/* What --format takes, with NULL behind; set by the verb.  NULL: text alone. */
	const char *const *formats;
	unsigned int format; /* in formats; 0 when not given */
	bool has_format;     /* it was given */
	bool files_alone;    /* set by the verb: there is no --live */
	/* A verb's own first arguments (the FILE of `lines`), which are not paths of profiles. */
	char *leading[2];
	int leading_wanted, leading_count;
};

/* The formats of a table, by enum table_format; a verb may have more after them. */
#define SELECT_TABLE_FORMATS                                                                       \
	[TABLE_TEXT] = "text", [TABLE_CSV] = "csv", [TABLE_JSON] = "json",                         \
	[TABLE_MARKDOWN] = "markdown", [TABLE_SQL] = "sql"
extern const char *const select_table_formats[];

#define SELECT_SLOWDOWN_HELP                                                                       \
	"With --exact: end early when a program would take longer than this, 5x or 400%. "         \
	"Default: 5x"
#define SELECT_ARGUMENTS "PROFILE|DIR...\n--live"
/* Parses a verb's own options and these.  shared: the first member of the verb's struct.  Returns
 * READER_OK, READER_BAD_INPUT, or ends the program. */
int select_parse(const struct verb_args *verb, int argc, char **argv,
		 struct select_options *shared);
/* For verbs whose view has no groups: when the user asked for groups, prints what to do instead and
 * returns READER_BAD_INPUT. */
int select_refuse_groups(const struct select *select, const char *verb);

/* The options of the verbs that ask a running pyprofd. */
struct live_options {
	struct live_request request;
	const char *socket; /* NULL: the default */
};

/* As select_parse(). */
int live_options_parse(const struct verb_args *verb, int argc, char **argv,
		       struct live_options *shared);

/* Prints why the answer is incomplete: the error of the module that read it, and for -EREMOTEIO
 * what the server said.  Returns the exit code. */
int live_explain(const struct live_client *client, int err, const char *said);

#endif
