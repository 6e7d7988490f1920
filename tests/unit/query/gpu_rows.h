/* SPDX-License-Identifier: BSD-2-Clause */
/* A profile of kind gpu with rows that a test adds.  Needs profile/record.c. */
#ifndef TEST_GPU_ROWS_H
#define TEST_GPU_ROWS_H

#include <cmocka.h>
#include <stdio.h>

#include "base/kinds.h"
#include "profile/gpu_gauges.h"
#include "profile/profile_data.h"
#include "profile/record.h"

static struct intern *strings;
static struct profile *profile;

static void gpu_rows_open(void)
{
	struct profile_options options = {.kind = "gpu"};

	for (const struct kind_value *value = kind_get(PP_PROFILE_GPU)->value; value->type; value++)
		options.value_type[options.value_count++] =
			(struct profile_value_type){value->type, value->unit};
	assert_int_equal(intern_new(&strings), 0);
	assert_int_equal(profile_new(&options, strings, &profile), 0);
}

static void gpu_rows_close(void)
{
	profile_free(profile);
	intern_free(strings);
}

struct gpu_row {
	uint32_t pid;
	const char *comm; /* NULL: of a GPU */
	const char *name; /* of it; its uuid is "GPU-NUMBER" */
	unsigned int device;
	const char *gauge, *reason;
	int64_t sum, readings, max;
};

static void gpu_rows_add(const struct gpu_row *row)
{
	char device[32], uuid[32];
	struct record record;
	int err =
		record_begin(&record, strings, PP_PROFILE_GPU,
			     (struct pp_process_id){.tgid = row->pid}, row->comm ? row->comm : "");

	snprintf(device, sizeof(device), GPU_DEVICE_PREFIX "%u", row->device);
	snprintf(uuid, sizeof(uuid), "GPU-%u", row->device);
	err |= record_label(&record, strings, "device", device);
	if (!row->comm)
		err |= record_label(&record, strings, "uuid", uuid);
	err |= record_label(&record, strings, "name", row->name ? row->name : "");
	err |= record_label(&record, strings, "gauge", row->gauge);
	err |= record_label(&record, strings, "reason", row->reason ? row->reason : "");
	assert_int_equal(err, 0);
	record.sample.value[PP_GPU_GAUGE_SUM] = row->sum;
	record.sample.value[PP_GPU_GAUGE_READINGS] = row->readings;
	record.sample.value[PP_GPU_GAUGE_MAX] = row->max;
	assert_int_equal(profile_add_record(profile, &record), 0);
}

#define GPU_ROW(...) gpu_rows_add(&(struct gpu_row){__VA_ARGS__})

#endif
