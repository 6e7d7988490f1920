/* SPDX-License-Identifier: BSD-2-Clause */
/* A profile of literals, and a decoder that shares only the generated message code with the
 * encoder. */
#ifndef TESTS_PROFILE_FIXTURE_H
#define TESTS_PROFILE_FIXTURE_H

#include "profile/profile.h"
#include "pprof/pprof.h"

#include <cmocka.h>
#include <string.h>
#include <zlib.h>

#include "profile.pb-c.h"

#define FIXTURE_START_NS 1767225600123456789ULL /* 2026-01-01T00:00:00Z and a bit */
#define FIXTURE_DURATION_NS 10000000000ULL

typedef Perftools__Profiles__Profile pprof;

struct fixture {
	struct intern *strings;
	struct profile *profile;
};

static inline uint32_t id(struct fixture *f, const char *text)
{
	uint32_t ret;

	assert_int_equal(intern_string(f->strings, text, &ret), 0);
	return ret;
}

static inline void fixture_init(struct fixture *f)
{
	const struct profile_options options = {
		.kind = "cpu",
		.value_type = {{"samples", "count"}, {"cpu", "nanoseconds"}},
		.value_count = 2,
		.default_value_type = "cpu",
		.period_type = {"cpu", "nanoseconds"},
		.period = 10101010,
		.start_wall_ns = FIXTURE_START_NS,
		.duration_ns = FIXTURE_DURATION_NS,
	};

	assert_int_equal(intern_new(&f->strings), 0);
	assert_int_equal(profile_new(&options, f->strings, &f->profile), 0);
}

static inline void fixture_release(struct fixture *f)
{
	profile_free(f->profile);
	intern_free(f->strings);
}

static inline struct frame python_frame(struct fixture *f, const char *name, const char *file,
					uint32_t line, uint32_t start_line)
{
	return (struct frame){.kind = FRAME_PYTHON,
			      .name = id(f, name),
			      .file = id(f, file),
			      .line = line,
			      .start_line = start_line};
}

static inline struct frame code_frame(struct fixture *f, enum frame_kind kind, const char *name,
				      uint32_t module, uint64_t address)
{
	return (struct frame){
		.kind = kind, .name = id(f, name), .module = module, .address = address};
}

static inline uint32_t add_module(struct fixture *f, const char *path, const char *build_id,
				  uint64_t start, uint64_t limit, uint64_t offset)
{
	const struct module module = {.path = id(f, path),
				      .build_id = id(f, build_id),
				      .start = start,
				      .limit = limit,
				      .offset = offset};
	uint32_t index;

	assert_int_equal(profile_add_module(f->profile, &module, &index), 0);
	return index;
}

static inline void add_sample(struct fixture *f, const struct frame *frame, size_t count,
			      int64_t value, int64_t pid, const char *thread)
{
	struct profile_sample sample = {
		.frame = frame, .frame_count = count, .value = {value, value * 10101010}};

	if (pid)
		sample.label[sample.label_count++] =
			(struct profile_label){.key = "pid", .number = pid, .is_number = 1};
	if (thread)
		sample.label[sample.label_count++] =
			(struct profile_label){.key = "thread_name", .string = id(f, thread)};
	assert_int_equal(profile_add(f->profile, &sample), 0);
}

/* gunzip; the caller frees. */
static inline uint8_t *inflate_all(const void *bytes, size_t size, size_t *ret_size)
{
	size_t capacity = 1 << 16, used = 0;
	uint8_t *out = malloc(capacity);
	z_stream stream = {.next_in = (z_const Bytef *)bytes, .avail_in = (uInt)size};
	int result = Z_OK;

	assert_int_equal(inflateInit2(&stream, 15 + 16), Z_OK);
	while (result == Z_OK) {
		if (used == capacity)
			out = realloc(out, capacity *= 2);
		assert_non_null(out);
		stream.next_out = out + used;
		stream.avail_out = (uInt)(capacity - used);
		result = inflate(&stream, Z_NO_FLUSH);
		used = capacity - stream.avail_out;
	}
	assert_int_equal(result, Z_STREAM_END);
	assert_int_equal(stream.avail_in, 0);
	inflateEnd(&stream);
	*ret_size = used;
	return out;
}

static inline pprof *encode_and_decode(const struct profile *profile)
{
	OWNED_MEM void *bytes = NULL;
	OWNED_MEM uint8_t *raw = NULL;
	size_t size, raw_size;
	pprof *decoded;

	assert_int_equal(profile_encode_pprof(profile, &bytes, &size), 0);
	raw = inflate_all(bytes, size, &raw_size);
	decoded = perftools__profiles__profile__unpack(NULL, raw_size, raw);
	assert_non_null(decoded);
	assert_true(decoded->n_string_table > 0);
	assert_string_equal(decoded->string_table[0], "");
	return decoded;
}

static inline const char *text(const pprof *p, int64_t index)
{
	assert_true(index >= 0 && (size_t)index < p->n_string_table);
	return p->string_table[index];
}

/* Ids are 1, 2, ... in file order: checked by the tests that use these. */
static inline const Perftools__Profiles__Location *location(const pprof *p, uint64_t location_id)
{
	assert_in_range(location_id, 1, p->n_location);
	assert_int_equal(p->location[location_id - 1]->id, location_id);
	return p->location[location_id - 1];
}

static inline const Perftools__Profiles__Function *function_of(const pprof *p, uint64_t location_id)
{
	const Perftools__Profiles__Location *l = location(p, location_id);
	uint64_t function_id;

	assert_int_equal(l->n_line, 1);
	function_id = l->line[0]->function_id;
	assert_in_range(function_id, 1, p->n_function);
	assert_int_equal(p->function[function_id - 1]->id, function_id);
	return p->function[function_id - 1];
}

#endif
