/* SPDX-License-Identifier: BSD-2-Clause */
/* What is read: which profiles, and which of their samples. */
#ifndef QUERY_SELECT_H
#define QUERY_SELECT_H

#include <regex.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "profile/profile.h"
#include "render/code_table.h"

#define SELECT_MAX_PIDS 64U
#define SELECT_MAX_LABELS 16U
#define SELECT_WHY_BYTES 128U

/* A label whose value is to match; one that is missing is "". */
struct select_label {
	char *key;	/* owned */
	regex_t *regex; /* owned */
};

/* Times of one path alone, instead of those of all. */
struct select_range {
	uint64_t since_ms, until_ms; /* since 1970; 0: open */
	const char *text;	     /* as it was given, behind the path's name; NULL: not given */
};

/* Release with select_release().  A zeroed one selects everything of every kind. */
struct select {
	char **path; /* owned; its texts are borrowed: files and directories of profiles, URLs */
	int path_count;
	int64_t pid[SELECT_MAX_PIDS];
	unsigned int pid_count;
	regex_t *comm, *thread, *focus, *ignore;      /* owned; NULL: not given */
	struct select_label label[SELECT_MAX_LABELS]; /* all of them are to match */
	unsigned int label_count;
	uint64_t since_ms, until_ms;	  /* since 1970; 0: not given */
	const struct select_range *range; /* of each path; NULL: none has its own */
	const char *kind, *sample_type;	  /* NULL: not given */
	struct grouping group_by;
	bool python_only, full_paths;
	bool may_fetch;	       /* a path may be a URL (base/collectors.h) */
	const char **from_set; /* owned; its texts are borrowed: "KEY=VALUE" for remote_fetch() */
	unsigned int from_set_count;
	bool strict; /* a broken file of a directory is an error */
	bool live;   /* no paths: read what pyprofd sends from now on, for live_seconds */
	/* no paths: the verb itself has the processes recorded for live_seconds */
	bool records;
	unsigned long live_seconds;
	const char *socket; /* NULL: the default */
	/* With live: only what this user may see; for who sees everything. */
	bool as_user;
	uint32_t uid;
};

void select_release(struct select *select);
/* Adds the processes of "12,34".  Returns 0; -EINVAL: not process ids; -E2BIG: more than
 * SELECT_MAX_PIDS in all. */
int select_add_pids(struct select *select, const char *text);
/* Adds the label of "KEY=REGEX".  Returns 0; -EINVAL, -E2BIG, -ENOMEM, and in why what is wrong. */
int select_add_label(struct select *select, const char *text, char why[SELECT_WHY_BYTES]);
/* Adds "KEY,...", the keys of --group-by: process, thread, comm, thread-name, container, wait, the
 * labels of base/kinds.h and some others that pyprofd writes, and label:KEY for any.  Returns
 * 0; -EINVAL, -E2BIG, and in why what is wrong. */
int select_add_groups(struct grouping *grouping, const char *text, char why[SELECT_WHY_BYTES]);
/* Parses a time.  "1h", "30m", "10s", "2d": that long before now; "2026-11-21",
 * "2026-11-21T15:04[:05][Z]", "15:04" (today): local time; "@1795273360": seconds since 1970.
 * Returns 0 and milliseconds since 1970; -EINVAL. */
int select_time(const char *text, uint64_t now_ms, uint64_t *ret_ms);
/* Parses "FROM..UNTIL", both as select_time() has them; one may be "".  Returns 0; -EINVAL: not
 * that, or FROM is not before UNTIL. */
int select_range(const char *text, uint64_t now_ms, struct select_range *ret_range);
/* Compiles an extended regular expression that is searched for.  Returns 0; -EINVAL, -ENOMEM, and
 * in why what is wrong with it. */
int select_regex(const char *text, char why[SELECT_WHY_BYTES], regex_t **ret_regex);
void select_free_regex(regex_t *regex); /* NULL is allowed */

/* Decides which samples of one profile a selection takes.  Release with match_release().  Begin
 * with {.select = ...}. */
struct match {
	const struct select *select; /* borrowed */
	uint8_t *focus, *ignore;     /* by string of the profile: whether it matches */
	size_t focus_count, ignore_count;
};

void match_release(struct match *match);
/* Return whether a selection looks at labels; at stacks. */
bool match_asks_labels(const struct select *select);
bool match_asks_stacks(const struct select *select);
/* Returns whether it takes all samples of a process, or none. */
bool match_takes_processes(const struct select *select);
/* Returns whether a sample's labels are selected.  context: the struct match; for
 * profile_read_options.wants_labels. */
bool match_labels(void *context, const struct intern *strings, const struct profile_label *label,
		  size_t label_count);
/* Returns whether a stack is selected; for profile_read_options.wants_stack.  Without memory to
 * remember by, it is not. */
bool match_stack(void *context, const struct profile *profile, uint32_t stack);

#endif
