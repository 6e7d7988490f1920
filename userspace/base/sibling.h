/* SPDX-License-Identifier: BSD-2-Clause */
/* Finds another program of this project. */
#ifndef BASE_SIBLING_H
#define BASE_SIBLING_H

#define SIBLING_BYTES 4096U

/* Finds the program beside this one, or else in PATH: then *ret_program is its name alone. */
void sibling_find(const char *name, char ret_program[SIBLING_BYTES]);

#endif
