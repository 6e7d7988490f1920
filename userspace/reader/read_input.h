/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads a verb's input with a person at the terminal: progress, messages, Ctrl-C. */
#ifndef READER_READ_INPUT_H
#define READER_READ_INPUT_H

#include "query/input.h"

/* input_read() with options.watcher set: shows progress on a terminal, and prints errors.  SIGINT
 * ends only the wait for live windows.  Returns 0, or the exit code for the verb. */
int read_input(struct input_options options, struct input **ret_input);

#endif
