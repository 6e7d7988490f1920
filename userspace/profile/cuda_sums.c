/* SPDX-License-Identifier: BSD-2-Clause */
#include "profile/cuda_sums.h"

#include <math.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/saturating.h"
#include "profile/profile_data.h"

#define BELOW "below" /* label: where a bucket ends */

void cuda_sums_add(struct cuda_sums *sums, const struct cuda_sums *more)
{
	for (size_t i = 0; i < ARRAY_SIZE(sums->value); i++)
		sums->value[i] = add_saturating(sums->value[i], more->value[i]);
	for (size_t i = 0; i < PP_CUDA_HISTOGRAM; i++)
		sums->histogram[i] = add_saturating(sums->histogram[i], more->histogram[i]);
}

/* ---- rows ---- */

int cuda_sums_put(const struct cuda_sums *sums, struct record *record,
		  int (*put)(const void *context, struct record *record), const void *context)
{
	struct profile_sample *sample = &record->sample;
	const struct cuda_sums none = {0};
	int err = 0;

	memcpy(sample->value, sums->value, sizeof(sums->value));
	if (memcmp(sums->value, none.value, sizeof(none.value)) != 0)
		err = put(context, record);
	memset(sample->value, 0, sizeof(sums->value));
	if (sample->label_count == PROFILE_MAX_LABELS)
		return err;
	sample->label_count++;
	for (unsigned int i = 0; i < PP_CUDA_HISTOGRAM && !err; i++) {
		sample->label[sample->label_count - 1] =
			(struct profile_label){.key = BELOW,
					       .number = cuda_sums_bucket_ns(i + 1),
					       .is_number = 1,
					       .unit = "nanoseconds"};
		sample->value[PP_EXACT_TIMED] = sums->histogram[i];
		if (sums->histogram[i])
			err = put(context, record);
	}
	return err;
}

void cuda_sums_add_row(struct cuda_sums *sums, const struct profile *profile, uint32_t row, int at)
{
	const int64_t *value = profile_row_values(profile, row) + at;
	const int64_t below = record_number(profile, row, BELOW);

	for (size_t i = 0; i < ARRAY_SIZE(sums->value); i++)
		if (value[i] > 0)
			sums->value[i] = add_saturating(sums->value[i], value[i]);
	for (unsigned int i = 0; i < PP_CUDA_HISTOGRAM && value[PP_EXACT_TIMED] > 0; i++)
		if (below == cuda_sums_bucket_ns(i + 1))
			sums->histogram[i] =
				add_saturating(sums->histogram[i], value[PP_EXACT_TIMED]);
}

/* ---- times ---- */

int64_t cuda_sums_bucket_ns(unsigned int bucket)
{
	return bucket ? 1LL << (bucket + PP_CUDA_HISTOGRAM_SHIFT) : 0;
}

static double bucket_end(unsigned int bucket)
{
	return bucket ? 2.0 * (double)cuda_sums_bucket_ns(bucket) : (double)cuda_sums_bucket_ns(1);
}

double cuda_sums_quantile(const struct cuda_sums *sums, double quantile)
{
	double all = 0, below = 0, rank;

	for (unsigned int i = 0; i < PP_CUDA_HISTOGRAM; i++)
		all += (double)sums->histogram[i];
	rank = quantile * all;
	for (unsigned int i = 0; i < PP_CUDA_HISTOGRAM; i++) {
		const double in = (double)sums->histogram[i];
		const double begin = (double)cuda_sums_bucket_ns(i), end = bucket_end(i);
		double part, ns;

		below += in;
		if (in <= 0 || below < rank)
			continue;
		part = 1 - (below - rank) / in;
		ns = i ? begin * pow(end / begin, part) : end * part;
		return fmin(ns, fmax((double)sums->value[PP_EXACT_HOST], begin));
	}
	return NAN;
}

double cuda_sums_unevenness(const struct cuda_sums *sums)
{
	double all = 0, mean = 0, square = 0;

	for (unsigned int i = 0; i < PP_CUDA_HISTOGRAM; i++) {
		const double begin = (double)cuda_sums_bucket_ns(i), end = bucket_end(i);
		const double count = (double)sums->histogram[i], middle = (begin + end) / 2;

		all += count;
		mean += count * middle;
		square += count * middle * middle;
	}
	return mean > 0 ? fmax(square * all / (mean * mean), 1) : 1;
}
