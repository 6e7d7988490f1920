/* SPDX-License-Identifier: BSD-2-Clause */
/* Applies the rules between options once all are parsed.  Defaults that depend on other options are
 * set here, and nowhere else. */
#ifndef OPTIONS_RULES_H
#define OPTIONS_RULES_H

#include <stdbool.h>

#include "options/options.h"

#define OPTION_WHY_BYTES 256U

/* Whether an option was given, where its value does not tell. */
struct option_given {
	bool offcpu_min, timeline_max, live;
	bool store_path; /* the output, as path= of [store]: a directory */
};

/* Sets output_kind, and events when none were given (0).  Returns 0, or -EINVAL with one line in
 * `why` that names the options that exclude each other and the fix. */
int option_rules_apply(const struct option_given *given, struct options *options,
		       char why[OPTION_WHY_BYTES]);

#endif
