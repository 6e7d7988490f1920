/* SPDX-License-Identifier: BSD-2-Clause */
/* Options from the configuration file and --set, for options.c: they are parsed before the command
 * line, by the options' own code. */
#ifndef OPTIONS_CONFIGURED_H
#define OPTIONS_CONFIGURED_H

#include "options/parser.h"

/* Looks through the command line for --config and --set, reads the file, and parses what both say
 * about pyprofd's options.  A file at OPTIONS_CONFIG_DEFAULT need not exist.  Returns 0; -EINVAL: a
 * line was printed; -ENOMEM. */
int configured_parse(struct option_parser *parser, int argc, char **argv);
/* Notes in the configuration what an option of the command line gave.  Returns likewise. */
int configured_note(struct option_parser *parser, int key, const char *arg);
/* Puts the place of a setting in front of a line that begins with its option. */
void configured_locate(const struct option_parser *parser, char why[OPTION_WHY_BYTES]);
/* Ends parsing: checks the sections of pyprofd-serve, notes the defaults that depend on other
 * options and, for --check-config, looks at the files with secrets and prints all.  Returns
 * likewise. */
int configured_finish(struct option_parser *parser);

#endif
