/* SPDX-License-Identifier: BSD-2-Clause */
/* What one process has had the GPU do by one function, exactly: a row of kind cuda_calls, and
 * further ones, with the label `below`, that say how long its calls took on the host. */
#ifndef PROFILE_CUDA_SUMS_H
#define PROFILE_CUDA_SUMS_H

#include <stdint.h>

#include <pyprofd/cuda.h>

#include "profile/record.h"

/* Label kernel of a row that sums up kernels. */
#define CUDA_OTHER_KERNELS "[other kernels]"

/* All saturate. */
struct cuda_sums {
	/* Spread tells how unevenly the calls were walked: the sum of w (w - 1) over the walks,
	 * where each stands for w calls.  The number of calls of a line with a share p of them has
	 * the variance p (1 - p) spread.  0: every call was walked. */
	int64_t value[PP_EXACT_TIMED];
	int64_t histogram[PP_CUDA_HISTOGRAM]; /* calls by ns from call to return */
};

void cuda_sums_add(struct cuda_sums *sums, const struct cuda_sums *more);

/* Puts rows under the labels and the frame that the record has: one of the sums, if any is not 0,
 * and one of each time that calls took.  put() gets the record, and may change whose it is; an
 * error ends it and is returned. */
int cuda_sums_put(const struct cuda_sums *sums, struct record *record,
		  int (*put)(const void *context, struct record *record), const void *context);
/* Adds a row of a profile that has values of the kind from `at` on: record_values_at(). */
void cuda_sums_add_row(struct cuda_sums *sums, const struct profile *profile, uint32_t row, int at);

/* Returns a quantile, from 0 to 1, of the times in a histogram, in ns; NAN: it is empty.  Within a
 * bucket, which ends at twice where it begins, times are taken as even on a scale of logarithms;
 * below 512 ns, as even.  The last bucket is taken as if it ended at twice where it begins, too.
 * None exceeds the sum of all times. */
double cuda_sums_quantile(const struct cuda_sums *sums, double quantile);
/* Returns where a bucket begins, in ns. */
int64_t cuda_sums_bucket_ns(unsigned int bucket);
/* Returns the mean square of the times over the square of their mean, from the histogram: 1 for
 * times that are alike. */
double cuda_sums_unevenness(const struct cuda_sums *sums);

#endif
