/* SPDX-License-Identifier: BSD-2-Clause */
/* Parses what --lines names: FILE or FILE:FUNC, as pyprof lines takes them. */
#ifndef OPTIONS_LINE_SPEC_H
#define OPTIONS_LINE_SPEC_H

#include <pyprofd/lines.h>

#define LINE_SPEC_WHY_BYTES 160U

/* Of FUNC the last part counts, as the interpreter names a function: "step" of "Model.step".
 * Returns 0; -EINVAL: `why` goes on from "--lines 'TEXT' ". */
int line_spec_parse(const char *text, struct pp_line_target *ret_target,
		    char why[LINE_SPEC_WHY_BYTES]);

#endif
