/* SPDX-License-Identifier: BSD-2-Clause */
/* The name that somebody may have meant by one that is not known.  No state. */
#ifndef BASE_NEAREST_H
#define BASE_NEAREST_H

#include <stddef.h>
#include <stdint.h>

#define NEAREST_MAX_CHARS 64U /* longer names are not compared */

struct nearest {
	const char *name; /* borrowed; NULL: none is near */
	size_t distance;  /* characters to be put in, left out or changed */
};
#define NEAREST_NONE {.distance = SIZE_MAX}

/* Takes a known name if it is nearer than what was compared before, and near at all. */
void nearest_compare(struct nearest *nearest, const char *name, size_t size, const char *known);

#endif
