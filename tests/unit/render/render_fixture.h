/* SPDX-License-Identifier: BSD-2-Clause */
/* Profiles whose stacks are written as "main;work;leaf". */
#ifndef TESTS_RENDER_FIXTURE_H
#define TESTS_RENDER_FIXTURE_H

#include <cmocka.h>
#include <string.h>

#include "pprof/profile_read.h"
#include "profile/profile_data.h"

#define PERIOD 10

struct fixture {
	struct intern *strings;
	struct profile *profile;
	struct profile_delta delta[512];
	size_t delta_count;
	bool counts_effective; /* of each window */
};

static inline void fixture_init(struct fixture *f)
{
	const struct profile_options options = {
		.kind = "cpu",
		.value_type = {{"samples", "count"}, {"cpu", "nanoseconds"}},
		.value_count = 2,
		.default_value_type = "cpu",
		.period_type = {"cpu", "nanoseconds"},
		.period = PERIOD,
	};

	assert_int_equal(intern_new(&f->strings), 0);
	assert_int_equal(profile_new(&options, f->strings, &f->profile), 0);
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

/* Python functions of /a.py; a name "f:12" has line 12. */
static inline void add(struct fixture *f, const char *folded, int64_t samples, int64_t pid)
{
	struct profile_label label = {.key = "pid", .number = pid, .is_number = 1};
	int64_t value[] = {samples, samples * PERIOD};
	uint32_t location[32], stack, set, row;
	size_t count = 0;
	char text[256];

	snprintf(text, sizeof(text), "%s", folded);
	for (char *save, *name = strtok_r(text, ";", &save); name;
	     name = strtok_r(NULL, ";", &save)) {
		char *line = strchr(name, ':');
		struct frame frame = {.kind = FRAME_PYTHON, .file = id(f, "/a.py")};

		if (line) {
			*line = '\0';
			frame.line = (uint32_t)strtoul(line + 1, NULL, 10);
		}
		frame.name = id(f, name);
		memmove(location + 1, location, count * sizeof(location[0]));
		assert_int_equal(profile_add_location(f->profile, &frame, &location[0]), 0);
		count++;
	}
	assert_int_equal(profile_add_stack(f->profile, location, count, &stack), 0);
	assert_int_equal(profile_add_label_set(f->profile, &label, pid ? 1 : 0, &set), 0);
	assert_int_equal(profile_add_row(f->profile, stack, set, value, &row), 0);
	f->delta[f->delta_count++] =
		(struct profile_delta){.row = row, .value = value[1], .count = value[0]};
}

#endif
