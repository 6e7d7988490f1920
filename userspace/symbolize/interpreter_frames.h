/* SPDX-License-Identifier: BSD-2-Clause */
/* Names CPython's own call machinery: functions that only say "Python calls Python".  They are
 * hidden unless the user asks for them.  Functions that do work (list_sort, dict_subscript,
 * gc_collect_main) stay. */
#ifndef SYMBOLIZE_INTERPRETER_FRAMES_H
#define SYMBOLIZE_INTERPRETER_FRAMES_H

#include <stdbool.h>

/* Returns whether a function of the interpreter's file, by its name, is call machinery. */
bool interpreter_frame_is_machinery(const char *name);

#endif
