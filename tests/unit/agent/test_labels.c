/* SPDX-License-Identifier: BSD-2-Clause */
/* Names of threads, who processes are and what is known of interpreters are stand-ins. */
#include "agent/samples.h"

#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <pyprofd/wait.h>

#include "attach/context_table.h"
#include "attach/file_table.h"
#include "base/intern.h"
#include "discover/process_table.h"
#include "processes/identities.h"
#include "processes/thread_names.h"
#include "processes/who.h"
#include "profile/profile.h"
#include "python/python_info.h"
#include "windows/label.h"
#include "windows/source.h"

static struct intern *strings;
static struct process_python *interpreter;
static const char *thread_name;
static struct value_table *values;
static const struct sources none, *sources;
static struct identity identity;
static bool has_no_identity;

const char *thread_names_get(struct thread_names *names, const struct process *process,
			     uint32_t tid, const char *comm)
{
	(void)names, (void)process;
	assert_true(tid == 71 || tid == 710);
	if (comm[0])
		return comm;
	return thread_name;
}

/* In its pid namespace the thread is 5, for the host it is 710. */
uint32_t thread_names_host_tid(const struct thread_names *names, const struct process *process,
			       uint32_t inner)
{
	(void)names, (void)process;
	return inner == 5 ? 710 : 0;
}

struct process *process_table_find(const struct process_table *table, struct pp_process_id id)
{
	(void)table, (void)id;
	return NULL;
}

const struct identity *identities_get(struct identities *identities, struct process *process)
{
	(void)identities, (void)process;
	return has_no_identity ? NULL : &identity;
}

struct process_python *context_table_python(struct process *process)
{
	(void)process;
	return interpreter;
}

static int setup(void **state)
{
	(void)state;
	interpreter = NULL;
	thread_name = "worker";
	identity = (struct identity){};
	has_no_identity = false;
	sources = &none;
	return value_table_new(&values) || intern_new(&strings);
}

static int teardown(void **state)
{
	(void)state;
	value_table_free(values);
	intern_free(strings);
	return 0;
}

/* All labels as "key=value key=value". */
static const char *labels_of(const struct pp_count_key *key, const struct who *who)
{
	static char text[1024];
	const struct services services = {.sources = sources};
	const struct samples samples = {.services = &services, .strings = strings};
	struct profile_sample sample = {};
	size_t used = 0;

	memset(sample.label, 0xff, sizeof(sample.label));
	assert_int_equal(labels_add(&samples, &sample, key, who), 0);
	text[0] = '\0';
	for (size_t i = 0; i < sample.label_count; i++) {
		const struct profile_label *label = &sample.label[i];

		used += (size_t)snprintf(text + used, sizeof(text) - used, "%s%s=", i ? " " : "",
					 label->key);
		assert_in_range(label->is_number, 0, 1);
		if (label->is_number)
			used += (size_t)snprintf(text + used, sizeof(text) - used, "%lld",
						 (long long)label->number);
		else
			used += (size_t)snprintf(text + used, sizeof(text) - used, "%s",
						 intern_get(strings, label->string, NULL));
	}
	return text;
}

static struct process process = {.id = {.tgid = 70, .generation = 2},
				 .ppid = 1,
				 .container_id = "c0ffee",
				 .cgroup = "/a.slice"};

static struct pp_count_key key_of(enum pp_count_kind kind, uint32_t tid, uint32_t flags)
{
	return (struct pp_count_key){
		.id = {.tgid = 70, .generation = 2}, .tid = tid, .kind = kind, .flags = flags};
}

static void process__is_named_in_full(void **state)
{
	const struct who who = {.process = &process, .comm = "python3"};
	const struct pp_count_key key = key_of(PP_KIND_CPU, 71, 0);

	(void)state;
	assert_string_equal(labels_of(&key, &who),
			    "pid=70 tid=71 ppid=1 comm=python3 thread_name=worker "
			    "container_id=c0ffee cgroup=/a.slice");
}

static void process__that_nobody_knows_has_its_numbers(void **state)
{
	const struct who who = {.comm = "kworker/0:1"}, nobody = {};
	const struct pp_count_key key = key_of(PP_KIND_CPU, 71, PP_COUNT_GIL_HELD);

	(void)state;
	assert_string_equal(labels_of(&key, &who), "pid=70 tid=71 comm=kworker/0:1");
	assert_string_equal(labels_of(&key, &nobody), "pid=70 tid=71");
}

static void labels__without_a_value_are_left_out(void **state)
{
	struct process bare = {.id = process.id};
	const struct who who = {.process = &bare};
	const struct pp_count_key key = key_of(PP_KIND_CPU, 71, 0);

	(void)state;
	thread_name = "";
	assert_string_equal(labels_of(&key, &who), "pid=70 tid=71 ppid=0");
}

static void thread__of_all_stacks_together_has_no_number(void **state)
{
	const struct who who = {.process = &process};
	const struct pp_count_key key = key_of(PP_KIND_CPU, 0, 0);

	(void)state;
	assert_string_equal(labels_of(&key, &who),
			    "pid=70 ppid=1 container_id=c0ffee cgroup=/a.slice");
}

static void python__has_its_version_the_gil_and_collections(void **state)
{
	static struct python_info info = {.bpf = {.major = 3, .minor = 12}};
	static struct file file = {.python = &info};
	static struct process_python python = {.file = &file};
	static struct process_python unknown;
	struct process bare = {.id = process.id};
	const struct who who = {.process = &bare};
	struct pp_count_key key = key_of(PP_KIND_CPU, 71, PP_COUNT_GIL_HELD | PP_COUNT_GC);

	(void)state;
	interpreter = &python;
	assert_string_equal(labels_of(&key, &who), "pid=70 tid=71 ppid=0 thread_name=worker "
						   "python_version=3.12 gil=held gc=collecting");
	key.flags = PP_COUNT_GIL_HELD;
	interpreter = &unknown; /* its interpreter could not be read */
	assert_string_equal(labels_of(&key, &who),
			    "pid=70 tid=71 ppid=0 thread_name=worker gil=held");
	key.flags = PP_COUNT_GC;
	assert_string_equal(labels_of(&key, &who),
			    "pid=70 tid=71 ppid=0 thread_name=worker gc=collecting");
}

static void gpu__is_what_the_process_has_queued(void **state)
{
	static const char *const expected[] = {"pid=70 tid=71", "gpu=queued pid=70 tid=71",
					       "gpu=drained pid=70 tid=71",
					       "gpu=wait pid=70 tid=71"};
	const struct who nobody = {};

	(void)state;
	for (uint32_t gpu = PP_GPU_UNKNOWN; gpu < PP_GPU_COUNT; gpu++) {
		struct pp_count_key key = key_of(PP_KIND_CPU, 71, gpu << PP_COUNT_GPU_SHIFT);

		assert_string_equal(labels_of(&key, &nobody), expected[gpu]);
	}
}

static void blame__is_of_the_thread_that_the_host_knows(void **state)
{
	const struct who who = {.process = &process}, nobody = {};
	struct pp_count_key key = key_of(PP_KIND_BLAME, 5, 0);

	(void)state;
	assert_string_equal(labels_of(&key, &who), "pid=70 tid=710 ppid=1 thread_name=worker "
						   "container_id=c0ffee cgroup=/a.slice");
	key.tid = 6;
	assert_string_equal(labels_of(&key, &who),
			    "pid=70 ppid=1 container_id=c0ffee cgroup=/a.slice");
	assert_string_equal(labels_of(&key, &nobody), "pid=70 tid=6");
}

static void process__has_the_labels_of_its_identity(void **state)
{
#define KEY_OF(id, key) key,
	static const char *const expected[] = {IDENTITY_LABELS(KEY_OF)};
	const struct who who = {.process = &process};
	const struct pp_count_key key = key_of(PP_KIND_CPU, 0, 0);
	char text[512] = "pid=70 ppid=1 container_id=c0ffee cgroup=/a.slice";

	(void)state;
	for (size_t i = 0; i < IDENTITY_COUNT; i++) {
		char value[8];

		snprintf(value, sizeof(value), "v%zu", i);
		assert_int_equal(value_table_take(values, 0, value, &identity.value[i]), 0);
	}
	for (size_t i = 0; i < IDENTITY_LABEL_COUNT; i++)
		snprintf(text + strlen(text), sizeof(text) - strlen(text), " %s=v%zu", expected[i],
			 i);
	assert_string_equal(labels_of(&key, &who), text);
	has_no_identity = true;
	assert_string_equal(labels_of(&key, &who),
			    "pid=70 ppid=1 container_id=c0ffee cgroup=/a.slice");
}

static void labels__beyond_the_most_are_left_out(void **state)
{
	const struct services services = {.sources = sources};
	const struct samples samples = {.services = &services, .strings = strings};
	const struct who who = {.process = &process, .comm = "python3"};
	const struct pp_count_key key = key_of(PP_KIND_CPU, 71, 0);

	(void)state;
	for (size_t used = PROFILE_MAX_LABELS - 3; used <= PROFILE_MAX_LABELS; used++) {
		struct profile_sample sample = {.label_count = used};

		assert_int_equal(labels_add(&samples, &sample, &key, &who), 0);
		assert_int_equal(sample.label_count, PROFILE_MAX_LABELS);
	}
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

/* ---- kinds that have labels of their own ---- */

static int label_twice(void *state, const struct pp_count_key *key, struct intern *of,
		       struct profile_sample *sample)
{
	assert_ptr_equal(state, &identity);
	label_number(sample, "generation", (int64_t)key->detail);
	return label_string(of, sample, "empty", "") || label_string(of, sample, "gc", "full");
}

static int label_fails(void *state, const struct pp_count_key *key, struct intern *of,
		       struct profile_sample *sample)
{
	(void)state, (void)key, (void)of, (void)sample;
	return -ENOMEM;
}

/* Each source labels what it counts, and nothing else. */
static void kind__has_the_labels_of_its_source(void **state)
{
	static const struct source source = {.labelled_kinds = 1U << PP_KIND_GC,
					     .label = label_twice};
	static struct source failing = {.labelled_kinds = 1U << PP_KIND_CUDA_SEEN,
					.label = label_fails};
	static const struct source *const table[PP_SOURCE_COUNT] = {NULL, &source, &failing};
	const struct sources open = {.table = table, .state = {NULL, &identity, &failing}};
	const struct services services = {.sources = &open};
	const struct samples samples = {.services = &services, .strings = strings};
	const struct who nobody = {};
	struct pp_count_key key = key_of(PP_KIND_GC, 71, 0);
	struct profile_sample sample = {};

	(void)state;
	key.detail = 2;
	sources = &open;
	assert_string_equal(labels_of(&key, &nobody), "generation=2 gc=full pid=70 tid=71");
	key.kind = PP_KIND_IMPORT;
	assert_string_equal(labels_of(&key, &nobody), "pid=70 tid=71");
	key.kind = PP_KIND_COUNT;
	assert_string_equal(labels_of(&key, &nobody), "pid=70 tid=71");
	key.kind = PP_KIND_CUDA_SEEN;
	assert_int_equal(labels_add(&samples, &sample, &key, &nobody), -ENOMEM);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(process__is_named_in_full),
		TEST(process__that_nobody_knows_has_its_numbers),
		TEST(labels__without_a_value_are_left_out),
		TEST(thread__of_all_stacks_together_has_no_number),
		TEST(python__has_its_version_the_gil_and_collections),
		TEST(gpu__is_what_the_process_has_queued),
		TEST(blame__is_of_the_thread_that_the_host_knows),
		TEST(process__has_the_labels_of_its_identity),
		TEST(labels__beyond_the_most_are_left_out),
		TEST(kind__has_the_labels_of_its_source),
	};

	return cmocka_run_group_tests_name("agent/labels", tests, NULL, NULL);
}
