/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef PROBES_COMMAND_FILE_H
#define PROBES_COMMAND_FILE_H

#include <stddef.h>

/* Finds the file that a command executes, as execvp(3) does, and opens it.  Returns its descriptor,
 * and its path; below 0: there is none. */
int command_file_open(const char *command, char *ret_path, size_t path_size);

#endif
