/* SPDX-License-Identifier: BSD-2-Clause */
/* sources: profile/profile.c pprof/pprof.c pprof/pprof_code.c pprof/pprof_mappings.c pprof/pprof_strings.c pprof/gzip_sink.c pprof/folded.c profile/stack_table.c base/index_table.c base/utf8.c base/intern.c gen/profile.pb-c.c */
/* Names and stacks as a hostile process would choose them: the output must be complete and clean,
 * and its sums must be right. */
#include <assert.h>
#include <string.h>
#include <zlib.h>

#include "base/utf8.h"
#include "pprof/folded.h"
#include "pprof/pprof.h"
#include "profile/profile.h"

#define MAX_FRAMES 64U
#define MAX_RAW_BYTES (4U << 20)
#define FIELD_SAMPLE 2U
#define FIELD_STRING_TABLE 6U

struct input {
	const uint8_t *at;
	size_t left;
};

static uint8_t next(struct input *input)
{
	if (!input->left)
		return 0;
	input->left--;
	return *input->at++;
}

/* One of the last few strings, or the next bytes. */
static uint32_t next_string(struct input *input, struct intern *strings)
{
	uint8_t head = next(input);
	size_t size = head & 15;
	uint32_t id;

	if (head & 128)
		return head % intern_count(strings);
	if (size > input->left)
		size = input->left;
	assert(!intern_bytes(strings, (const char *)input->at, size, &id));
	input->at += size;
	input->left -= size;
	return id;
}

static struct frame next_frame(struct input *input, struct intern *strings)
{
	return (struct frame){.kind = next(input) % 6, /* one kind too many */
			      .name = next_string(input, strings),
			      .system_name = next_string(input, strings),
			      .file = next_string(input, strings),
			      .line = next(input),
			      .module = next(input) % 8, /* most are not there */
			      .address = next(input)};
}

static int64_t add_samples(struct input *input, struct intern *strings, struct profile *profile)
{
	struct frame frame[MAX_FRAMES];
	int64_t total = 0;

	while (input->left) {
		struct profile_sample sample = {.frame = frame, .value = {next(input)}};
		uint8_t labels = next(input);

		sample.frame_count = 1 + next(input) % MAX_FRAMES;
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

static uint64_t varint(const uint8_t **at, const uint8_t *end)
{
	uint64_t value = 0;

	for (unsigned int shift = 0;; shift += 7) {
		assert(*at < end && shift < 64);
		value |= (uint64_t)(**at & 127) << shift;
		if (*(*at)++ < 128)
			return value;
	}
}

/* A sample's field 2 is its packed values. */
static int64_t sample_value(const uint8_t *at, const uint8_t *end)
{
	while (at < end) {
		uint64_t tag = varint(&at, end), size = varint(&at, end);

		assert((tag & 7) == 2 && size <= (uint64_t)(end - at));
		if (tag >> 3 == 2)
			return (int64_t)varint(&at, end);
		at += size;
	}
	return 0;
}

static void check_pprof(const struct profile *profile, int64_t total)
{
	OWNED_MEM uint8_t *raw = malloc(MAX_RAW_BYTES);
	OWNED_MEM void *bytes = NULL;
	const uint8_t *at = raw, *end;
	z_stream stream = {.next_out = raw, .avail_out = MAX_RAW_BYTES};
	int64_t sum = 0;
	size_t size;

	assert(raw && !profile_encode_pprof(profile, &bytes, &size));
	stream.next_in = bytes;
	stream.avail_in = (uInt)size;
	assert(inflateInit2(&stream, 15 + 16) == Z_OK);
	assert(inflate(&stream, Z_FINISH) == Z_STREAM_END && !stream.avail_in);
	inflateEnd(&stream);
	end = raw + stream.total_out;
	while (at < end) {
		uint64_t tag = varint(&at, end), length = varint(&at, end);

		if ((tag & 7) == 0)
			continue;
		assert((tag & 7) == 2 && length <= (uint64_t)(end - at));
		if (tag >> 3 == FIELD_SAMPLE)
			sum += sample_value(at, at + length);
		if (tag >> 3 == FIELD_STRING_TABLE)
			assert(utf8_is_clean((const char *)at, length));
		at += length;
	}
	assert(sum == total);
}

static void check_folded(const struct profile *profile, int64_t total)
{
	OWNED_MEM char *text = NULL;
	char *line, *rest;
	int64_t sum = 0;
	size_t size;

	assert(!profile_encode_folded(profile, &text, &size) && strlen(text) == size);
	rest = text;
	while ((line = strsep(&rest, "\n")) && *line) {
		char *count = strrchr(line, ' ');

		assert(count && utf8_is_clean(line, strlen(line)));
		sum += strtoll(count + 1, NULL, 10);
	}
	assert(sum == total);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct profile_options options = {.kind = "cpu",
						.value_type = {{"samples", "count"}},
						.value_count = 1,
						.default_value_type = "samples",
						.period_type = {"cpu", "nanoseconds"},
						.period = 1};
	struct input input = {.at = data, .left = size};
	OWNED(intern) struct intern *strings = NULL;
	OWNED(profile) struct profile *profile = NULL;
	int64_t total;

	assert(!intern_new(&strings) && !profile_new(&options, strings, &profile));
	for (int i = 0; i < 3; i++) {
		const struct module module = {.path = next_string(&input, strings)};
		uint32_t index;

		assert(!profile_add_module(profile, &module, &index));
	}
	total = add_samples(&input, strings, profile);
	check_pprof(profile, total);
	check_folded(profile, total);
	return 0;
}
