/* SPDX-License-Identifier: BSD-2-Clause */
/* CPython's own call machinery: functions that only say "Python calls".  They are hidden unless the
 * user asks for --raw.  What does work (list_sort, dict_subscript, gc_collect_main) stays. */
#ifndef SYMBOLIZE_INTERPRETER_FRAMES_H
#define SYMBOLIZE_INTERPRETER_FRAMES_H

#include <stdbool.h>

/* name: of a function in the interpreter's file. */
bool interpreter_frame_is_machinery(const char *name);

#endif
