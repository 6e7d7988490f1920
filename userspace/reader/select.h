/* SPDX-License-Identifier: BSD-2-Clause */
/* The options that all verbs share, as an argp child: which profiles, and which of their
 * samples. */
#ifndef READER_SELECT_H
#define READER_SELECT_H

#include <argp.h>
#include <regex.h>
#include <stdbool.h>
#include <stdint.h>

#include "render/groups.h"

#define SELECT_MAX_PIDS 64U

/* Release with select_release().  A zeroed one selects everything of every kind. */
struct select {
	char **path; /* borrowed from argv: files and directories of profiles */
	int path_count;
	int64_t pid[SELECT_MAX_PIDS];
	unsigned int pid_count;
	regex_t *comm, *thread, *focus, *ignore; /* owned; NULL: not given */
	uint64_t since_ms, until_ms;		 /* since 1970; 0: not given */
	const char *kind, *sample_type;		 /* NULL: not given */
	uint32_t group_by;			 /* enum group_by, ored */
	bool python_only, no_color, no_progress, full_paths;
	bool live; /* no paths: read what pyprofd sends from now on, for live_seconds */
	unsigned long live_seconds;
	const char *socket; /* NULL: the default */
	/* A verb's own first arguments (the FILE of `lines`), which are not paths of profiles. */
	char *leading[2];
	int leading_wanted, leading_count;
};

/* Runs argp_parse() for a verb, with its own options and these.  At ARGP_KEY_INIT the verb's parser
 * passes the struct select as child_inputs[0].  doc: static, with the examples. */
error_t select_parse(const struct argp_option *options, argp_parser_t parser, const char *doc,
		     const char *arguments, int argc, char **argv, void *input);
/* select_parse() without --live. */
error_t select_parse_files(const struct argp_option *options, argp_parser_t parser, const char *doc,
			   const char *arguments, int argc, char **argv, void *input);
void select_release(struct select *select);
/* Parse the value of a verb's own option, or call argp_error(): "12.5" percent as a share from 0 to
 * 1; a number. */
double select_share(struct argp_state *state, const char *option, const char *text);
unsigned long select_number(struct argp_state *state, const char *option, const char *text);
/* For verbs whose view has no groups: when the user asked for groups, prints what to do instead and
 * returns -EINVAL. */
int select_refuse_groups(const struct select *select, const char *verb);
/* Parses a time.  "1h", "30m", "10s", "2d": that long before now; "2026-11-21",
 * "2026-11-21T15:04[:05][Z]", "15:04" (today): local time; "@1795273360": seconds since 1970.
 * Returns 0 and milliseconds since 1970; -EINVAL. */
int select_time(const char *text, uint64_t now_ms, uint64_t *ret_ms);
/* Compiles an extended regular expression that is searched for.  Prints an error and returns
 * -EINVAL. */
int select_regex(const char *text, const char *option, regex_t **ret_regex);
void select_free_regex(regex_t *regex); /* NULL is allowed */

#endif
