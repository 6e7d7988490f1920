/* SPDX-License-Identifier: BSD-2-Clause */
/* The options that all verbs share, as an argp child: what to read, and how to show it. */
#ifndef READER_SELECT_OPTIONS_H
#define READER_SELECT_OPTIONS_H

#include <argp.h>
#include <regex.h>
#include <stdbool.h>

#include "live/client.h"
#include "live/request.h"
#include "query/select.h"
#include "render/table.h"

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

#define SELECT_ARGUMENTS "PROFILE|DIR...\n--live"
/* Runs argp_parse() for a verb, with its own options and these, which go to *shared.  input: for
 * the verb's parser. */
error_t select_parse(const struct argp *verb, int argc, char **argv, struct select_options *shared,
		     void *input);
/* Parse the value of a verb's own option, or call argp_error(): "12.5" percent as a share from 0 to
 * 1; a number; the number of one of the words, behind which NULL stands. */
double select_share(struct argp_state *state, const char *option, const char *text);
unsigned long select_number(struct argp_state *state, const char *option, const char *text);
unsigned int select_word(struct argp_state *state, const char *option, const char *text,
			 const char *const *words);
/* select_regex() for an option, in place of *regex (owned).  One that is wrong ends the program. */
void select_regex_option(const char *text, const char *option, regex_t **regex);
/* For verbs whose view has no groups: when the user asked for groups, prints what to do instead and
 * returns READER_BAD_INPUT. */
int select_refuse_groups(const struct select *select, const char *verb);

/* The options of the verbs that ask a running pyprofd, as an argp child. */

struct live_options {
	struct live_request request;
	const char *socket; /* NULL: the default */
};

/* As select_parse(). */
error_t live_options_parse(const struct argp *verb, int argc, char **argv,
			   struct live_options *shared, void *input);

/* Prints why the answer is incomplete: the error of the module that read it, and for -EREMOTEIO
 * what the server said.  Returns the exit code. */
int live_explain(const struct live_client *client, int err, const char *said);

#endif
