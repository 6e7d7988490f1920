/* SPDX-License-Identifier: BSD-2-Clause */
/* The probes are stand-ins that write down what they are asked for. */
#include "probes/probes.h"

#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <pyprofd/sample.h>

#include "base/intern.h"
#include "drain/text_table.h"
#include "profile/profile.h"
#include "windows/source.h"
#include "windows/summary.h"

extern const struct source probes_source;

static const char *called;
static bool has_texts;
static const char *const names[] = {"gc", "uprobe:/lib/x.so:f+ret"};

int probes_new(const struct services *services, struct probes **ret_probes)
{
	(void)services;
	*ret_probes = (struct probes *)&called;
	return 0;
}

bool probes_free(struct probes *probes)
{
	assert_ptr_equal(probes, &called);
	return false; /* a thread goes on */
}

struct probe_plan probes_plan(const struct probes *probes)
{
	(void)probes;
	return (struct probe_plan){.name = (const char **)names, .count = 2};
}

const struct text_table *probes_texts(const struct probes *probes)
{
	(void)probes;
	return NULL;
}

const char *text_table_find(const struct text_table *table, uint64_t id)
{
	(void)table;
	return has_texts && id == 77 ? "os.path" : NULL;
}

void probes_prepare(struct probes *probes, pid_t pid, const char *command)
{
	(void)probes, (void)pid;
	called = command;
}

int probes_check(struct probes *probes)
{
	(void)probes;
	return -ENXIO;
}

bool probes_are_ready(struct probes *probes)
{
	(void)probes;
	return has_texts;
}

void probes_start(struct probes *probes, uint64_t now_ns)
{
	(void)probes;
	called = now_ns == 5 ? "start" : "";
}

void probes_see(struct probes *probes, const struct process *process)
{
	(void)probes, (void)process;
	called = "see";
}

void probes_forget(struct probes *probes, struct pp_process_id id)
{
	(void)probes;
	called = id.tgid == 70 ? "forget" : "";
}

void probes_tick(struct probes *probes)
{
	(void)probes;
	called = "tick";
}

int probes_describe(struct probes *probes, struct profiles *profiles)
{
	(void)probes, (void)profiles;
	return -ENOMEM;
}

void probes_get_now(const struct probes *probes, struct probe_bounds_now *ret_now)
{
	(void)probes;
	*ret_now = (struct probe_bounds_now){.cost_ppm = 3, .least_ppm = 4};
}

static void source__passes_on_what_it_is_asked(void **state)
{
	struct summary summary = {};
	void *probes = NULL;

	(void)state;
	assert_int_equal(probes_source.open(NULL, &probes), 0);
	probes_source.prepare(probes, 70, "python3");
	assert_string_equal(called, "python3");
	assert_int_equal(probes_source.check(probes), -ENXIO);
	has_texts = false;
	assert_int_equal(probes_source.is_ready(probes), 0);
	has_texts = true;
	assert_int_equal(probes_source.is_ready(probes), 1);
	assert_int_equal(probes_source.begin(probes, 5), 0);
	assert_string_equal(called, "start");
	probes_source.see_process(probes, NULL, false);
	assert_string_equal(called, "see");
	probes_source.forget_process(probes, (struct pp_process_id){.tgid = 70});
	assert_string_equal(called, "forget");
	assert_false(probes_source.tick(probes, 0));
	assert_string_equal(called, "tick");
	assert_int_equal(probes_source.describe(probes, NULL), -ENOMEM);
	probes_source.summarize(probes, &summary);
	assert_int_equal(summary.probes_cost_ppm, 3);
	assert_int_equal(summary.probes_on_ppm, 4);
	assert_false(probes_source.close(probes));
}

/* The label as "key=value"; "": there is none. */
static const char *label_of(enum pp_count_kind kind, uint64_t detail)
{
	static char text[128];
	OWNED(intern) struct intern *strings = NULL;
	const struct pp_count_key key = {.kind = kind, .detail = detail};
	struct profile_sample sample = {};
	const struct profile_label *label = sample.label;

	assert_true(probes_source.labelled_kinds & 1U << kind);
	assert_int_equal(intern_new(&strings), 0);
	assert_int_equal(probes_source.label(NULL, &key, strings, &sample), 0);
	if (!sample.label_count)
		return "";
	assert_int_equal(sample.label_count, 1);
	if (label->is_number)
		snprintf(text, sizeof(text), "%s=%lld", label->key, (long long)label->number);
	else
		snprintf(text, sizeof(text), "%s=%s", label->key,
			 intern_get(strings, label->string, NULL));
	return text;
}

static void label__of_a_collection_is_its_generation(void **state)
{
	(void)state;
	assert_string_equal(label_of(PP_KIND_GC, 0), "generation=0");
	assert_string_equal(label_of(PP_KIND_GC, 2), "generation=2");
}

static void label__of_an_import_is_the_module(void **state)
{
	(void)state;
	has_texts = false;
	assert_string_equal(label_of(PP_KIND_IMPORT, 77), "module=[unknown]");
	has_texts = true;
	assert_string_equal(label_of(PP_KIND_IMPORT, 77), "module=os.path");
	assert_string_equal(label_of(PP_KIND_IMPORT, 78), "module=[unknown]");
}

static void label__of_a_probe_is_its_name(void **state)
{
	(void)state;
	assert_string_equal(label_of(PP_KIND_PROBE, 1), "probe=uprobe:/lib/x.so:f+ret");
	assert_string_equal(label_of(PP_KIND_PROBE, 2), "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(source__passes_on_what_it_is_asked),
		cmocka_unit_test(label__of_a_collection_is_its_generation),
		cmocka_unit_test(label__of_an_import_is_the_module),
		cmocka_unit_test(label__of_a_probe_is_its_name),
	};

	return cmocka_run_group_tests_name("probes/source", tests, NULL, NULL);
}
