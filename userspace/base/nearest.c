/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/nearest.h"

#include <string.h>

/* A name is near when no more than every third character differs. */
#define NEAR_SHARE 3U

static size_t least(size_t a, size_t b)
{
	return a < b ? a : b;
}

/* Returns how many characters must be put in, left out or changed to make `b` of `a`. */
static size_t distance_of(const char *a, size_t a_size, const char *b)
{
	size_t row[NEAREST_MAX_CHARS + 1], b_size = strlen(b);

	if (a_size > NEAREST_MAX_CHARS || b_size > NEAREST_MAX_CHARS)
		return SIZE_MAX;
	for (size_t j = 0; j <= b_size; j++)
		row[j] = j;
	for (size_t i = 1; i <= a_size; i++) {
		size_t diagonal = row[0];

		row[0] = i;
		for (size_t j = 1; j <= b_size; j++) {
			const size_t changed = diagonal + (a[i - 1] != b[j - 1]);

			diagonal = row[j];
			row[j] = least(changed, least(row[j], row[j - 1]) + 1);
		}
	}
	return row[b_size];
}

void nearest_compare(struct nearest *nearest, const char *name, size_t size, const char *known)
{
	const size_t distance = distance_of(name, size, known);

	if (distance <= 1 + strlen(known) / NEAR_SHARE && distance < nearest->distance)
		*nearest = (struct nearest){.name = known, .distance = distance};
}
