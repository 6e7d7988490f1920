/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef BASE_ARRAY_H
#define BASE_ARRAY_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define ARRAY_FIRST_CAPACITY 64U

/* Small arrays have no room to spare under the address sanitizer, which sees what is read behind
 * the last item then. */
#ifdef __SANITIZE_ADDRESS__
#define ARRAY_IS_TIGHT(capacity) ((capacity) < ARRAY_FIRST_CAPACITY)
#else
#define ARRAY_IS_TIGHT(capacity) false
#endif

/* Returns the array with room for one more item, or NULL, and then the old array stays valid.  max:
 * the largest number that the count's type holds. */
static inline void *array_grown(void *array, size_t count, size_t *capacity, size_t max,
				size_t item_bytes)
{
	size_t wanted = ARRAY_IS_TIGHT(*capacity) ? *capacity + 1
			: *capacity		  ? *capacity + *capacity / 2
						  : ARRAY_FIRST_CAPACITY;
	void *grown;

	if (count < *capacity)
		return array;
	if (wanted <= *capacity || wanted > max)
		return NULL;
	grown = reallocarray(array, wanted, item_bytes);
	if (grown)
		*capacity = wanted;
	return grown;
}

/* Makes room for one more item; count and capacity are unsigned, of any size.  Returns 0 or
 * -ENOMEM. */
#define ARRAY_RESERVE(array, count, capacity)                                                      \
	({                                                                                         \
		size_t capacity_ = (capacity);                                                     \
		void *grown_ = array_grown(array, count, &capacity_, (typeof(capacity))-1,         \
					   sizeof(*(array)));                                      \
                                                                                                   \
		if (grown_) {                                                                      \
			(array) = grown_;                                                          \
			(capacity) = (typeof(capacity))capacity_;                                  \
		}                                                                                  \
		grown_ ? 0 : -ENOMEM;                                                              \
	})

/* Returns the array with `count` items at least, of which new ones are zero; NULL: no memory. */
static inline void *array_extended(void *array, size_t capacity, size_t count, size_t item_bytes)
{
	char *grown = reallocarray(array, count, item_bytes);

	if (grown)
		memset(grown + capacity * item_bytes, 0, (count - capacity) * item_bytes);
	return grown;
}

/* Makes the array have `count` items, if it has fewer; new ones are zero.  Returns 0 or -ENOMEM. */
#define ARRAY_EXTEND(array, count, capacity)                                                       \
	({                                                                                         \
		const size_t count_ = (count);                                                     \
		void *extended_ = NULL;                                                            \
                                                                                                   \
		if (count_ > (capacity)) {                                                         \
			extended_ = array_extended(array, capacity, count_, sizeof(*(array)));     \
			if (extended_) {                                                           \
				(array) = extended_;                                               \
				(capacity) = (typeof(capacity))count_;                             \
			}                                                                          \
		}                                                                                  \
		count_ > (capacity) ? -ENOMEM : 0;                                                 \
	})

/* Returns the number of items at the beginning of a sorted array for which the condition holds; it
 * holds for no item behind them: a binary search.  `at`: names the index in the condition. */
#define ARRAY_LEADING(count, at, condition)                                                        \
	({                                                                                         \
		size_t low_ = 0, high_ = (count);                                                  \
                                                                                                   \
		while (low_ < high_) {                                                             \
			const size_t at = low_ + (high_ - low_) / 2;                               \
                                                                                                   \
			if (condition)                                                             \
				low_ = at + 1;                                                     \
			else                                                                       \
				high_ = at;                                                        \
		}                                                                                  \
		low_;                                                                              \
	})

/* Returns -1, 0 or 1, as a comparison for qsort() does; of equal ones, ?: goes on to the next. */
#define ORDER(a, b)                                                                                \
	({                                                                                         \
		__auto_type a_ = (a);                                                              \
		__auto_type b_ = (b);                                                              \
                                                                                                   \
		(a_ > b_) - (a_ < b_);                                                             \
	})

/* The comparison of uint64_t for qsort(). */
static inline int order_u64(const void *a, const void *b)
{
	return ORDER(*(const uint64_t *)a, *(const uint64_t *)b);
}

/* Sorts measurements, of which there is at least one and some had an interrupt in them, and returns
 * the one in the middle. */
static inline uint64_t median_take(uint64_t *value, size_t count)
{
	qsort(value, count, sizeof(*value), order_u64);
	return value[count / 2];
}

#endif
