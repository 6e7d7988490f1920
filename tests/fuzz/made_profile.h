/* SPDX-License-Identifier: BSD-2-Clause */
/* Profiles whose names and stacks are made from any bytes, for fuzz targets. */
#ifndef TEST_FUZZ_MADE_PROFILE_H
#define TEST_FUZZ_MADE_PROFILE_H

#include <assert.h>
#include <string.h>

#include "base/utf8.h"
#include "profile/profile.h"

#define MADE_FRAMES_MAX 64U

struct made_input {
	const uint8_t *at;
	size_t left;
	bool is_clean;
};

static inline uint8_t next(struct made_input *input)
{
	if (!input->left)
		return 0;
	input->left--;
	return *input->at++;
}

/* One of the last few strings, or the next bytes. */
static inline uint32_t next_string(struct made_input *input, struct intern *strings)
{
	uint8_t head = next(input);
	char clean[16 * UTF8_CLEAN_MAX_GROWTH];
	size_t size = head & 15, clean_size = 0;
	uint32_t id;

	if (head & 128)
		return head % intern_count(strings);
	if (size > input->left)
		size = input->left;
	if (input->is_clean)
		clean_size = utf8_clean((const char *)input->at, size, clean);
	assert(!intern_bytes(strings, input->is_clean ? clean : (const char *)input->at,
			     input->is_clean ? clean_size : size, &id));
	input->at += size;
	input->left -= size;
	return id;
}

static inline struct frame next_frame(struct made_input *input, struct intern *strings)
{
	return (struct frame){.kind = next(input) % 6, /* one kind too many */
			      .name = next_string(input, strings),
			      .system_name = next_string(input, strings),
			      .file = next_string(input, strings),
			      .line = next(input),
			      .module = next(input) % 8, /* most are not there */
			      .address = next(input)};
}

static inline int64_t add_samples(struct made_input *input, struct intern *strings,
				  struct profile *profile)
{
	struct frame frame[MADE_FRAMES_MAX];
	int64_t total = 0;

	while (input->left) {
		struct profile_sample sample = {.frame = frame, .value = {next(input)}};
		uint8_t labels = next(input);

		sample.frame_count = 1 + next(input) % MADE_FRAMES_MAX;
		for (size_t i = 0; i < sample.frame_count; i++)
			frame[i] = next_frame(input, strings);
		if (labels & 1)
			sample.label[sample.label_count++] = (struct profile_label){
				.key = "pid", .number = labels, .is_number = 1};
		if (labels & 2)
			sample.label[sample.label_count++] = (struct profile_label){
				.key = "comm", .string = next_string(input, strings)};
		assert(!profile_add(profile, &sample));
		total += sample.value[0];
	}
	return total;
}

/* Makes a profile of one value, "samples", which takes all bytes; returns the sum of its values.
 * is_clean: the names have passed utf8_clean(), as those that a reader has read. */
static inline int64_t made_profile(const uint8_t *data, size_t size, bool is_clean,
				   struct intern **ret_strings, struct profile **ret_profile)
{
	const struct profile_options options = {.kind = "cpu",
						.value_type = {{"samples", "count"}},
						.value_count = 1,
						.default_value_type = "samples",
						.period_type = {"cpu", "nanoseconds"},
						.period = 1};
	struct made_input input = {.at = data, .left = size, .is_clean = is_clean};

	assert(!intern_new(ret_strings) && !profile_new(&options, *ret_strings, ret_profile));
	for (int i = 0; i < 3; i++) {
		const struct module module = {.path = next_string(&input, *ret_strings)};
		uint32_t index;

		assert(!profile_add_module(*ret_profile, &module, &index));
	}
	return add_samples(&input, *ret_strings, *ret_profile);
}

#endif
