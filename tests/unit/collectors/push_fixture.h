/* SPDX-License-Identifier: BSD-2-Clause */
/* Profiles of off-CPU time whose rows have labels, and a look at protobuf messages. */
#ifndef TESTS_PUSH_FIXTURE_H
#define TESTS_PUSH_FIXTURE_H

#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#include "base/proto.h"
#include "profile/profile_data.h"

#define START_MS 1795200000000ULL
#define START_NS (START_MS * 1000000)
#define DURATION_NS 10000000000ULL

struct fixture {
	struct intern *strings;
	struct profile *profile;
};

static inline void fixture_init(struct fixture *f)
{
	const struct profile_options options = {
		.kind = "offcpu",
		.value_type = {{"off_cpu", "nanoseconds"},
			       {"events", "count"},
			       {"effective", "count"}},
		.value_count = 3,
		.default_value_type = "off_cpu",
		.start_wall_ns = START_NS,
		.duration_ns = DURATION_NS,
	};

	assert_int_equal(intern_new(&f->strings), 0);
	assert_int_equal(profile_new(&options, f->strings, &f->profile), 0);
	assert_int_equal(profile_add_comment(f->profile, "secret-program=1"), 0);
}

static inline void fixture_release(struct fixture *f)
{
	profile_free(f->profile);
	intern_free(f->strings);
}

static inline uint32_t id(struct fixture *f, const char *text)
{
	uint32_t ret;

	assert_int_equal(intern_string(f->strings, text, &ret), 0);
	return ret;
}

/* Adds a row of one function; labels: "key=text", "key#number". */
static inline void add(struct fixture *f, const char *function, int64_t value,
		       const char *const *labels)
{
	const struct frame frame = {.kind = FRAME_PYTHON,
				    .name = id(f, function),
				    .file = id(f, "/srv/app.py"),
				    .line = 7,
				    .start_line = 3};
	struct profile_sample sample = {.frame = &frame, .frame_count = 1, .value = {value, 2, 1}};
	char text[2048];
	char key[PROFILE_MAX_LABELS][64];

	for (; labels && *labels; labels++) {
		struct profile_label *label = &sample.label[sample.label_count];
		size_t size = strcspn(*labels, "=#");

		snprintf(text, sizeof(text), "%s", *labels + size + 1);
		snprintf(key[sample.label_count], sizeof(key[0]), "%.*s", (int)size, *labels);
		label->key = intern_get(f->strings, id(f, key[sample.label_count]), NULL);
		if ((*labels)[size] == '#') {
			label->is_number = 1;
			label->number = strtoll(text, NULL, 10);
		} else {
			label->string = id(f, text);
		}
		sample.label_count++;
	}
	assert_int_equal(profile_add(f->profile, &sample), 0);
}
#define LABELS(...) ((const char *const[]){__VA_ARGS__, NULL})

/* ---- messages ---- */

static inline struct wire message_of(const void *bytes, size_t size)
{
	return (struct wire){bytes, (const uint8_t *)bytes + size};
}

/* Finds the index-th field with this number; false: there is none. */
static inline bool find_field(struct wire message, uint32_t number, unsigned int index,
			      struct wire_field *ret_field)
{
	int more;

	while ((more = wire_next(&message, ret_field)) > 0)
		if (ret_field->number == number && !index--)
			return true;
	assert_int_equal(more, 0);
	return false;
}

static inline struct wire bytes_of(struct wire message, uint32_t number, unsigned int index)
{
	struct wire_field field = {0};

	assert_true(find_field(message, number, index, &field));
	assert_true(field.is_bytes);
	return field.bytes;
}

static inline unsigned int count_fields(struct wire message, uint32_t number)
{
	struct wire_field field;
	unsigned int count = 0;

	while (find_field(message, number, count, &field))
		count++;
	return count;
}

static inline const char *text_of(struct wire bytes, char text[2048])
{
	snprintf(text, 2048, "%.*s", (int)(bytes.end - bytes.at), (const char *)bytes.at);
	return text;
}

#endif
