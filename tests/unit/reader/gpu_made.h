/* SPDX-License-Identifier: BSD-2-Clause */
/* A profile of kind cuda out of samples, and one of kind cuda_calls, for tests of `pyprof gpu`. */
#ifndef TESTS_UNIT_READER_GPU_MADE_H
#define TESTS_UNIT_READER_GPU_MADE_H

#include <cmocka.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/kinds.h"
#include "profile/cuda_sums.h"
#include "profile/profile_data.h"

struct made {
	struct intern *strings;
	struct profile *profile;
	struct profile *totals; /* NULL: there are none */
};

/* What has a total; "" or 0: it has no such label. */
struct made_total {
	const char *api, *kernel;
	int64_t calls, host_ns, bytes, spread;
	unsigned int bucket; /* of the times of `timed` calls */
	int64_t timed, pid;
	const char *comm; /* NULL: as samples have it */
};

/* What a sample is of; "" or 0: it has no such label. */
struct made_sample {
	const char *api, *kernel, *direction;
	uint32_t line;	  /* of the Python function that called; 0: a native one did */
	int64_t value[6]; /* calls, ns on the host, ns that wait, bytes; bytes and blocks live */
	int64_t pid;
};

static inline struct profile *made_profile(struct made *made, enum pp_profile of)
{
	const struct kind *kind = kind_get(of);
	struct profile_options options = {.kind = kind->name, .value_count = kind_value_count(of)};
	struct profile *profile;

	for (size_t i = 0; i < options.value_count; i++)
		options.value_type[i] =
			(struct profile_value_type){kind->value[i].type, kind->value[i].unit};
	assert_int_equal(profile_new(&options, made->strings, &profile), 0);
	return profile;
}

static inline void made_begin(struct made *made)
{
	*made = (struct made){0};
	assert_int_equal(intern_new(&made->strings), 0);
	made->profile = made_profile(made, PP_PROFILE_CUDA);
}

static inline void made_release(struct made *made)
{
	profile_free(made->profile);
	profile_free(made->totals);
	intern_free(made->strings);
}

static inline uint32_t made_string(struct made *made, const char *text)
{
	uint32_t string;

	assert_int_equal(intern_string(made->strings, text, &string), 0);
	return string;
}

/* Frames, leaf first: the kernel, the function, C code, and main() that called a function. */
static inline size_t made_frames(struct made *made, const struct made_sample *of,
				 struct frame frame[5])
{
	struct module module = {.path = made_string(made, "[gpu]")};
	size_t count = 0;

	if (of->kernel[0]) {
		frame[count] =
			(struct frame){.kind = FRAME_NATIVE, .name = made_string(made, of->kernel)};
		assert_int_equal(profile_add_module(made->profile, &module, &frame[count++].module),
				 0);
	}
	if (of->api[0])
		frame[count++] =
			(struct frame){.kind = FRAME_NATIVE, .name = made_string(made, of->api)};
	frame[count++] = (struct frame){.kind = FRAME_NATIVE, .name = made_string(made, "run_it")};
	if (of->line)
		frame[count++] = (struct frame){.kind = FRAME_PYTHON,
						.name = made_string(made, "step"),
						.file = made_string(made, "/a.py"),
						.line = of->line};
	frame[count++] = (struct frame){.kind = of->line ? FRAME_PYTHON : FRAME_NATIVE,
					.name = made_string(made, "main"),
					.file = made_string(made, of->line ? "/a.py" : ""),
					.line = of->line ? 90 : 0};
	return count;
}

static inline void made_label(struct made *made, struct profile_sample *sample, const char *key,
			      const char *text)
{
	if (text[0])
		sample->label[sample->label_count++] =
			(struct profile_label){.key = key, .string = made_string(made, text)};
}

static inline void made_add(struct made *made, const struct made_sample *of)
{
	struct frame frame[5];
	struct profile_sample sample = {.frame = frame,
					.frame_count = made_frames(made, of, frame)};

	memcpy(sample.value, of->value, sizeof(of->value));
	made_label(made, &sample, "api", of->api);
	made_label(made, &sample, "kernel", of->kernel);
	made_label(made, &sample, "direction", of->direction);
	made_label(made, &sample, "device", of->api[0] ? "0" : "");
	made_label(made, &sample, "comm", "my python");
	sample.label[sample.label_count++] = (struct profile_label){
		.key = "pid", .is_number = 1, .number = of->pid ? of->pid : 7};
	assert_int_equal(profile_add(made->profile, &sample), 0);
}

static inline int made_put(const void *context, struct record *record)
{
	return profile_add_record(((const struct made *)context)->totals, record);
}

static inline void made_total(struct made *made, const struct made_total *of)
{
	const struct pp_process_id id = {.tgid = of->pid ? (uint32_t)of->pid : 7};
	struct cuda_sums sums = {.value = {[PP_EXACT_CALLS] = of->calls,
					   [PP_EXACT_HOST] = of->host_ns,
					   [PP_EXACT_WAIT] = of->host_ns,
					   [PP_EXACT_BYTES] = of->bytes,
					   [PP_EXACT_SPREAD] = of->spread}};
	struct record record;

	sums.histogram[of->bucket] = of->timed;
	if (!made->totals)
		made->totals = made_profile(made, PP_PROFILE_CUDA_CALLS);
	assert_int_equal(record_begin(&record, made->strings, PP_PROFILE_CUDA_CALLS, id,
				      of->comm ? of->comm : "my python"),
			 0);
	assert_int_equal(record_label(&record, made->strings, "device", "0"), 0);
	assert_int_equal(record_label(&record, made->strings, "api", of->api), 0);
	assert_int_equal(record_label(&record, made->strings, "kernel", of->kernel), 0);
	assert_int_equal(cuda_sums_put(&sums, &record, made_put, made), 0);
}

#endif
