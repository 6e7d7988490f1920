/* SPDX-License-Identifier: BSD-2-Clause */
/* Finds another program of ours. */
#ifndef BASE_PROGRAM_H
#define BASE_PROGRAM_H

#define PROGRAM_PATH_BYTES 4096U

/* Writes the path of the program beside this one; where there is none, its name alone, for PATH. */
void program_find(const char *name, char ret_path[PROGRAM_PATH_BYTES]);

#endif
