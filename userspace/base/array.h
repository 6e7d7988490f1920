/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef BASE_ARRAY_H
#define BASE_ARRAY_H

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>

#define ARRAY_FIRST_CAPACITY 64U

/* The array with room for one more item, or NULL: then it is as it was. */
static inline void *array_grown(void *array, uint32_t count, uint32_t *capacity, size_t item_bytes)
{
	uint32_t wanted = *capacity ? *capacity + *capacity / 2 : ARRAY_FIRST_CAPACITY;
	void *grown;

	if (count < *capacity)
		return array;
	if (wanted <= *capacity)
		return NULL;
	grown = reallocarray(array, wanted, item_bytes);
	if (grown)
		*capacity = wanted;
	return grown;
}

/* 0 or -ENOMEM. */
#define ARRAY_RESERVE(array, count, capacity)                                                      \
	({                                                                                         \
		void *grown_ = array_grown(array, count, &(capacity), sizeof(*(array)));           \
                                                                                                   \
		if (grown_)                                                                        \
			(array) = grown_;                                                          \
		grown_ ? 0 : -ENOMEM;                                                              \
	})

#endif
