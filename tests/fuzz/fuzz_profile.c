/* SPDX-License-Identifier: BSD-2-Clause */
/* sources: profile/profile.c pprof/pprof.c pprof/gzip.c pprof/folded.c profile/stack_table.c base/index_table.c base/utf8.c base/intern.c base/proto.c */
/* Names and stacks as a hostile process would choose them: the output must be complete and clean,
 * and its sums must be right.
 * runs: 3000 at most in `make check`. */
#include <assert.h>
#include <string.h>
#include <zlib.h>

#include "base/utf8.h"
#include "made_profile.h"
#include "pprof/pprof.h"

#define MAX_RAW_BYTES (4U << 20)
#define FIELD_SAMPLE 2U
#define FIELD_STRING_TABLE 6U

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
	OWNED(intern) struct intern *strings = NULL;
	OWNED(profile) struct profile *profile = NULL;
	int64_t total = made_profile(data, size, false, &strings, &profile);

	check_pprof(profile, total);
	check_folded(profile, total);
	return 0;
}
