/* SPDX-License-Identifier: BSD-2-Clause */
/* A profile of literals, and a decoder of what the encoder writes: into arrays, without a bound. */
#ifndef TESTS_PROFILE_FIXTURE_H
#define TESTS_PROFILE_FIXTURE_H

#include "pprof/pprof.h"
#include "profile/profile.h"

#include <cmocka.h>
#include <string.h>
#include <zlib.h>

#include "base/proto.h"
#include "pprof/pprof_tables.h"

#define FIXTURE_START_NS 1767225600123456789ULL /* 2026-01-01T00:00:00Z and a bit */
#define FIXTURE_DURATION_NS 10000000000ULL

/* Messages by their fields' names in profile.proto; all numbers are texts, ids or values. */
struct m_value_type {
	uint64_t type, unit;
};
struct m_label {
	uint64_t key, str, num, num_unit;
};
struct m_sample {
	uint64_t *location_id, *value;
	struct m_label label[PROFILE_MAX_LABELS];
	size_t n_location_id, n_value, n_label;
};
struct m_mapping {
	uint64_t id, memory_start, memory_limit, file_offset, filename, build_id;
	uint64_t has_functions, has_filenames, has_line_numbers, has_inline_frames;
};
struct m_location {
	uint64_t id, mapping_id, address, function_id, line;
	size_t n_line;
};
struct m_function {
	uint64_t id, name, system_name, filename, start_line;
};
typedef struct pprof {
	struct m_value_type *sample_type, period_type;
	struct m_sample *sample;
	struct m_mapping *mapping;
	struct m_location *location;
	struct m_function *function;
	char **string_table;
	uint64_t *comment;
	size_t n_sample_type, n_sample, n_mapping, n_location, n_function, n_string_table,
		n_comment;
	uint64_t time_nanos, duration_nanos, period, default_sample_type;
} pprof;

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

/* Returns a zeroed element behind the last one; the array grows by one. */
#define APPEND(array, count)                                                                       \
	({                                                                                         \
		(array) = realloc((array), ((count) + 1) * sizeof(*(array)));                      \
		assert_non_null(array);                                                            \
		memset(&(array)[count], 0, sizeof(*(array)));                                      \
		&(array)[(count)++];                                                               \
	})

/* The fields of a message are numbers from 1 on, in the order of the struct. */
static inline void decode_numbers(struct wire message, uint64_t *first, size_t count)
{
	uint64_t *place[16] = {NULL};

	for (size_t i = 0; i < count; i++)
		place[1 + i] = &first[i];
	assert_int_equal(wire_numbers(message, place, 1 + count), 0);
}

static inline void decode_list(struct wire packed, uint64_t **list, size_t *count)
{
	while (packed.at < packed.end)
		assert_true(wire_varint(&packed, APPEND(*list, *count)));
}

static inline void decode_sample(struct wire message, struct m_sample *sample)
{
	struct wire_field field;
	int more;

	while ((more = wire_next(&message, &field)) > 0) {
		assert_true(field.is_bytes);
		if (field.number == PPROF_SAMPLE_LOCATION_ID)
			decode_list(field.bytes, &sample->location_id, &sample->n_location_id);
		if (field.number == PPROF_SAMPLE_VALUE)
			decode_list(field.bytes, &sample->value, &sample->n_value);
		if (field.number == PPROF_SAMPLE_LABEL)
			decode_numbers(field.bytes, &sample->label[sample->n_label++].key, 4);
	}
	assert_int_equal(more, 0);
}

static inline void decode_location(struct wire message, struct m_location *location)
{
	struct wire_field field;

	decode_numbers(message, &location->id, 3);
	while (wire_next(&message, &field) > 0)
		if (field.number == PPROF_LOCATION_LINE) {
			decode_numbers(field.bytes, &location->function_id, 2);
			location->n_line++;
		}
}

static inline void decode_bytes(pprof *p, const struct wire_field *field)
{
	switch (field->number) {
	case PPROF_PROFILE_SAMPLE_TYPE:
		decode_numbers(field->bytes, &APPEND(p->sample_type, p->n_sample_type)->type, 2);
		break;
	case PPROF_PROFILE_SAMPLE:
		decode_sample(field->bytes, APPEND(p->sample, p->n_sample));
		break;
	case PPROF_PROFILE_MAPPING:
		decode_numbers(field->bytes, &APPEND(p->mapping, p->n_mapping)->id, 10);
		break;
	case PPROF_PROFILE_LOCATION:
		decode_location(field->bytes, APPEND(p->location, p->n_location));
		break;
	case PPROF_PROFILE_FUNCTION:
		decode_numbers(field->bytes, &APPEND(p->function, p->n_function)->id, 5);
		break;
	case PPROF_PROFILE_STRING_TABLE:
		*APPEND(p->string_table, p->n_string_table) =
			strndup((const char *)field->bytes.at,
				(size_t)(field->bytes.end - field->bytes.at));
		break;
	case PPROF_PROFILE_PERIOD_TYPE:
		decode_numbers(field->bytes, &p->period_type.type, 2);
		break;
	case PPROF_PROFILE_COMMENT:
		decode_list(field->bytes, &p->comment, &p->n_comment);
		break;
	default:
		fail();
	}
}

static inline pprof *decode(struct wire message)
{
	pprof *p = calloc(1, sizeof(*p));
	uint64_t *const number[] = {[PPROF_PROFILE_TIME_NANOS] = &p->time_nanos,
				    [PPROF_PROFILE_DURATION_NANOS] = &p->duration_nanos,
				    [PPROF_PROFILE_PERIOD] = &p->period,
				    [PPROF_PROFILE_DEFAULT_SAMPLE_TYPE] = &p->default_sample_type};
	struct wire_field field;
	struct wire rest = message;

	assert_int_equal(wire_numbers(message, number, ARRAY_SIZE(number)), 0);
	while (wire_next(&rest, &field) > 0)
		if (field.is_bytes)
			decode_bytes(p, &field);
	return p;
}

static inline void pprof_free(pprof *p)
{
	for (size_t i = 0; i < p->n_sample; i++) {
		free(p->sample[i].location_id);
		free(p->sample[i].value);
	}
	for (size_t i = 0; i < p->n_string_table; i++)
		free(p->string_table[i]);
	free(p->sample_type);
	free(p->sample);
	free(p->mapping);
	free(p->location);
	free(p->function);
	free(p->string_table);
	free(p->comment);
	free(p);
}

static inline pprof *encode_and_decode(const struct profile *profile)
{
	OWNED_MEM void *bytes = NULL;
	OWNED_MEM uint8_t *raw = NULL;
	size_t size, raw_size;
	pprof *decoded;

	assert_int_equal(profile_encode_pprof(profile, &bytes, &size), 0);
	raw = inflate_all(bytes, size, &raw_size);
	decoded = decode((struct wire){raw, raw + raw_size});
	assert_true(decoded->n_string_table > 0);
	assert_string_equal(decoded->string_table[0], "");
	return decoded;
}

static inline const char *text(const pprof *p, uint64_t index)
{
	assert_true(index < p->n_string_table);
	return p->string_table[index];
}

/* Ids are 1, 2, ... in file order: checked by the tests that use these. */
static inline const struct m_location *location(const pprof *p, uint64_t location_id)
{
	assert_in_range(location_id, 1, p->n_location);
	assert_int_equal(p->location[location_id - 1].id, location_id);
	return &p->location[location_id - 1];
}

static inline const struct m_function *function_of(const pprof *p, uint64_t location_id)
{
	const struct m_location *l = location(p, location_id);

	assert_int_equal(l->n_line, 1);
	assert_in_range(l->function_id, 1, p->n_function);
	assert_int_equal(p->function[l->function_id - 1].id, l->function_id);
	return &p->function[l->function_id - 1];
}

#endif
