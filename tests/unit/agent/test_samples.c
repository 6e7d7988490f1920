/* SPDX-License-Identifier: BSD-2-Clause */
/* Counters become samples; who names, labels, counts and watches are stand-ins that write down what
 * they get. */
#include "agent/samples.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "stacks.h"

#include "agent/progress.h"
#include "agent/tables.h"
#include "agent/waits.h"
#include "discover/process.h"
#include "gpu/cuda.h"
#include "processes/who.h"
#include "windows/profile_shares.h"
#include "windows/profiles.h"
#include "windows/source.h"
#include "windows/top.h"

#define WRITTEN_MAX 600U

struct written {
	char stack[400]; /* "leaf<caller<..." */
	uint64_t samples, weight;
	uint32_t kind;
};
static struct written profiled[WRITTEN_MAX];
static size_t profiled_count, watched_count, labelled_count;
static uint64_t part_weight[LEDGER_PART_COUNT];
static unsigned int relieved;
static uint64_t refused_hash;
static struct process process;
static struct summary summary;
static int profile_err, share_err;
static bool has_row;
static struct pp_count_key labelled; /* last */

static void write_stack(const struct profile_sample *sample, struct written *ret)
{
	size_t used = 0;

	for (size_t i = 0; i < sample->frame_count; i++)
		used += (size_t)snprintf(ret->stack + used, sizeof(ret->stack) - used, "%s%s",
					 i ? "<" : "",
					 intern_get(strings, sample->frame[i].name, NULL));
}

const struct dict_stack *dictionary_use_stack(struct dictionary *dictionary, uint64_t hash)
{
	(void)dictionary;
	return hash ? dict_user(hash) : NULL;
}

const struct dict_kernel *dictionary_use_kernel(struct dictionary *dictionary, uint64_t hash)
{
	(void)dictionary;
	return hash ? dict_kernel(hash) : NULL;
}

bool dictionary_was_refused(const struct dictionary *dictionary, uint64_t hash)
{
	(void)dictionary;
	return hash && hash == refused_hash;
}

void who_find(struct process_table *processes, struct pp_process_id id, uint32_t tid,
	      struct who *ret_who)
{
	(void)processes, (void)tid;
	*ret_who = (struct who){.process = id.tgid == 7 ? &process : NULL};
}

int labels_add(const struct samples *samples, struct profile_sample *sample,
	       const struct pp_count_key *key, const struct who *who)
{
	(void)sample, (void)who;
	assert_ptr_equal(samples->strings, strings);
	labelled = *key;
	labelled_count++;
	return 0;
}

static uint64_t kernel_of; /* the detail that was asked about */
int cuda_add_kernel(struct cuda *cuda, uint64_t detail, struct intern *of, struct modules *modules,
		    struct profile_sample *sample)
{
	static struct frame frame[4];

	(void)cuda, (void)modules;
	kernel_of = detail;
	assert_true(sample->frame_count < 4);
	frame[0] = (struct frame){.kind = FRAME_NATIVE};
	assert_int_equal(intern_string(of, "axpy", &frame[0].name), 0);
	memcpy(frame + 1, sample->frame, sample->frame_count * sizeof(*frame));
	sample->frame = frame;
	sample->frame_count++;
	return 0;
}

int waits_add_sample(struct waits *waits, struct pp_process_id id, enum ledger_part part,
		     uint64_t weight)
{
	(void)waits, (void)id;
	part_weight[part] += weight;
	return 0;
}

void top_add(struct top *top, const struct pp_count_key *key, const struct pp_count *count,
	     struct profile_sample *sample)
{
	(void)top, (void)key, (void)count, (void)sample;
	watched_count++;
}

int profiles_add(struct profiles *profiles, const struct pp_count_key *key,
		 const struct pp_count *count, struct profile_sample *sample)
{
	(void)profiles;
	assert_true(profiled_count < WRITTEN_MAX);
	write_stack(sample, &profiled[profiled_count]);
	profiled[profiled_count].samples = count->samples;
	profiled[profiled_count].weight = count->weight;
	profiled[profiled_count++].kind = key->kind;
	return profile_err;
}

int profile_shares_take(struct profile_shares *shares, const struct intern *taken_strings,
			struct process *whose, const struct profile_sample *sample)
{
	(void)shares, (void)whose;
	assert_ptr_equal(taken_strings, strings);
	assert_true(sample->frame_count);
	return share_err;
}

bool profile_shares_has_row(struct profile_shares *shares, const struct process *whose)
{
	(void)shares, (void)whose;
	return has_row;
}

int tables_relieve(struct tables *tables)
{
	(void)tables;
	relieved++;
	return 0;
}

static const struct known_stack stacks[] = {
	{.hash = 11, .kinds = "pnn", .name = {"work", "eval", "main"}},
	{.hash = 13, .kinds = "nn", .name = {"memcpy", "main"}},
	{.hash = 15, .kinds = ""},
	{.hash = 17, .kinds = "nnp", .name = {"gc_collect", "call", "work"}},
	{.hash = 21, .kinds = "kk", .name = {"do_syscall", "entry"}},
	{.hash = 23, .kinds = "kkkk", .name = {"tracepoint", "__schedule", "schedule", "futex"}},
};

static int setup(void **state)
{
	(void)state;
	known_stacks = stacks;
	known_stack_count = ARRAY_SIZE(stacks);
	memset(profiled, 0, sizeof(profiled));
	profiled_count = watched_count = labelled_count = 0;
	memset(part_weight, 0, sizeof(part_weight));
	relieved = 0;
	refused_hash = 0;
	profile_err = share_err = 0;
	has_row = false;
	process = (struct process){.id = {.tgid = 7, .generation = 1}};
	summary = (struct summary){};
	return intern_new(&strings);
}

static int teardown(void **state)
{
	(void)state;
	intern_free(strings);
	return (int)symbolizers;
}

static const struct sources sources;
static const struct services services = {.summary = &summary, .sources = &sources};

static int add(struct counted *counted, size_t count)
{
	const struct counts counts = {.entry = counted, .count = count};
	const struct samples samples = {.services = &services, .strings = strings};

	CLEANUP(samples_adding_release) struct samples_adding adding = {};

	return samples_add(&samples, &counts, &adding, NULL);
}

static void add_one(struct pp_count_key key)
{
	struct counted counted = {.key = key, .count = {.samples = 3, .weight = 30}};

	if (!key.id.tgid)
		counted.key.id = (struct pp_process_id){.tgid = 7, .generation = 1};
	assert_int_equal(add(&counted, 1), 0);
}

static void sample__goes_to_the_profiles_and_to_who_watches(void **state)
{
	(void)state;
	add_one((struct pp_count_key){.user_stack = 11, .kernel_stack = 21, .kind = PP_KIND_CPU});
	assert_int_equal(profiled_count, 1);
	assert_int_equal(watched_count, 1);
	assert_int_equal(labelled_count, 1);
	assert_string_equal(profiled[0].stack, "do_syscall<entry<work<eval<main");
	assert_int_equal(profiled[0].samples, 3);
	assert_int_equal(profiled[0].weight, 30);
	assert_true(is_noted(11));
}

static void sample__on_the_cpu_is_divided_by_its_leaf(void **state)
{
	(void)state;
	add_one((struct pp_count_key){.user_stack = 11, .kind = PP_KIND_CPU});
	add_one((struct pp_count_key){.user_stack = 13, .kind = PP_KIND_CPU});
	add_one((struct pp_count_key){.user_stack = 13, .kind = PP_KIND_CPU});
	add_one((struct pp_count_key){.user_stack = 11, .kernel_stack = 21, .kind = PP_KIND_CPU});
	add_one((struct pp_count_key){.user_stack = 11, .kernel_stack = 23, .kind = PP_KIND_WAIT});
	assert_int_equal(part_weight[LEDGER_PYTHON], 30);
	assert_int_equal(part_weight[LEDGER_NATIVE], 60);
	assert_int_equal(part_weight[LEDGER_KERNEL], 30);
}

static void wait__begins_at_schedule(void **state)
{
	(void)state;
	add_one((struct pp_count_key){.user_stack = 13, .kernel_stack = 23, .kind = PP_KIND_WAIT});
	assert_string_equal(profiled[0].stack, "__schedule<schedule<futex<memcpy<main");
	/* A sample that hit the scheduler shows what it hit. */
	add_one((struct pp_count_key){.user_stack = 13, .kernel_stack = 23, .kind = PP_KIND_CPU});
	assert_string_equal(profiled[1].stack, "tracepoint<__schedule<schedule<futex<memcpy<main");
}

/* The interpreter's own functions say nothing: collections and imports begin at Python's frames.
 * Others show what they hit. */
static void python_probe__begins_at_the_frame_of_python(void **state)
{
	static const struct {
		uint32_t kind;
		const char *stack;
	} row[] = {{PP_KIND_GC, "work"},
		   {PP_KIND_IMPORT, "work"},
		   {PP_KIND_PROBE, "gc_collect<call<work"},
		   {PP_KIND_HELD, "gc_collect<call<work"},
		   {PP_KIND_CPU, "gc_collect<call<work"}};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(row); i++) {
		add_one((struct pp_count_key){.user_stack = 17, .kind = row[i].kind});
		assert_string_equal(profiled[i].stack, row[i].stack);
	}
}

static void summary__counts_samples_on_the_cpu_by_how_they_ended(void **state)
{
	const uint32_t whole = (uint32_t)PP_STOP_ROOT << PP_COUNT_STOP_SHIFT |
			       (uint32_t)PP_PY_STOP_ROOT << PP_COUNT_PY_STOP_SHIFT;
	const uint32_t cut = (uint32_t)PP_STOP_NO_INFO << PP_COUNT_STOP_SHIFT |
			     (uint32_t)PP_PY_STOP_BAD_CODE << PP_COUNT_PY_STOP_SHIFT;

	(void)state;
	add_one((struct pp_count_key){
		.user_stack = 11, .kind = PP_KIND_CPU, .flags = whole | PP_COUNT_PYTHON});
	add_one((struct pp_count_key){.user_stack = 11, .kind = PP_KIND_CPU, .flags = cut});
	add_one((struct pp_count_key){
		.user_stack = 11, .kind = PP_KIND_CPU, .flags = cut | PP_COUNT_PYTHON});
	add_one((struct pp_count_key){
		.user_stack = 11, .kind = PP_KIND_WAIT, .flags = cut | PP_COUNT_PYTHON});
	assert_int_equal(summary.samples, 9);
	assert_int_equal(summary.cpu_ns, 90);
	assert_int_equal(summary.wait_ns, 30);
	assert_int_equal(summary.stop[PP_STOP_ROOT], 3);
	assert_int_equal(summary.stop[PP_STOP_NO_INFO], 6);
	/* Without PP_COUNT_PYTHON there was no Python walk. */
	assert_int_equal(summary.py_stop[PP_PY_STOP_ROOT], 3);
	assert_int_equal(summary.py_stop[PP_PY_STOP_BAD_CODE], 3);
}

static void summary__ignores_reasons_that_it_does_not_know(void **state)
{
	(void)state;
	add_one((struct pp_count_key){
		.user_stack = 11,
		.kind = PP_KIND_CPU,
		.flags = (uint32_t)PP_STOP_COUNT << PP_COUNT_STOP_SHIFT |
			 (uint32_t)PP_PY_STOP_COUNT << PP_COUNT_PY_STOP_SHIFT | PP_COUNT_PYTHON});
	for (unsigned int i = 0; i < PP_STOP_COUNT; i++)
		assert_int_equal(summary.stop[i], 0);
	for (unsigned int i = 0; i < PP_PY_STOP_COUNT; i++)
		assert_int_equal(summary.py_stop[i], 0);
	assert_int_equal(summary.samples, 3);
	assert_int_equal(summary.loss[0], 0);
}

static void summary__counts_a_process_at_its_first_sample(void **state)
{
	(void)state;
	add_one((struct pp_count_key){.user_stack = 11, .kind = PP_KIND_WAIT});
	assert_int_equal(summary.processes, 0);
	add_one((struct pp_count_key){.user_stack = 11, .kind = PP_KIND_CPU});
	add_one((struct pp_count_key){.user_stack = 13, .kind = PP_KIND_CPU});
	/* A kernel thread is no process that anybody knows. */
	add_one((struct pp_count_key){.kernel_stack = 21, .kind = PP_KIND_CPU, .id = {.tgid = 8}});
	assert_int_equal(summary.processes, 1);
	assert_true(process.is_sampled);
}

static void summary__says_what_was_counted_without_its_stack(void **state)
{
	(void)state;
	add_one((struct pp_count_key){.user_stack = PP_STACK_OTHERS, .kind = PP_KIND_CPU});
	add_one((struct pp_count_key){.user_stack = PP_STACK_OTHERS, .kind = PP_KIND_WAIT});
	add_one((struct pp_count_key){.user_stack = PP_STACK_OTHERS, .kind = PP_KIND_WAIT});
	add_one((struct pp_count_key){.user_stack = 11, .kind = PP_KIND_WAIT});
	add_one((struct pp_count_key){.user_stack = 11, .kind = PP_KIND_CPU});
	add_one((struct pp_count_key){.user_stack = 13, .kind = PP_KIND_CPU});
	for (unsigned int i = 0; i < 4; i++)
		add_one((struct pp_count_key){.user_stack = PP_STACK_OTHERS,
					      .kind = PP_KIND_BLAME});
	assert_int_equal(summary.coarse_cpu_ns, 30);
	assert_int_equal(summary.coarse_wait_ns, 60);
	assert_int_equal(summary.wait_ns, 90);
}

/* ---- samples of users who have too many stacks ---- */

static void sample__beyond_its_users_share_counts_without_its_stack(void **state)
{
	(void)state;
	share_err = -EDQUOT;
	has_row = true;
	add_one((struct pp_count_key){.user_stack = 11,
				      .kernel_stack = 21,
				      .kind = PP_KIND_WAIT,
				      .tid = 9,
				      .flags = PP_COUNT_SWEPT});
	assert_int_equal(profiled_count, 1);
	assert_string_equal(profiled[0].stack, "[stack left out: its user has too many]");
	assert_int_equal(profiled[0].weight, 30);
	assert_int_equal(profiled[0].kind, PP_KIND_WAIT);
	/* A row for its process, not for each thread. */
	assert_int_equal(labelled.id.tgid, 7);
	assert_int_equal(labelled.tid, 0);
	assert_int_equal(labelled.flags, PP_COUNT_SWEPT);
	assert_int_equal(summary.wait_ns, 30);
}

static void sample__of_one_of_too_many_processes_has_no_labels(void **state)
{
	(void)state;
	share_err = -EDQUOT;
	add_one((struct pp_count_key){.user_stack = 11, .kind = PP_KIND_CPU});
	/* Those of the whole sample, which clients of the live socket have got. */
	assert_int_equal(labelled_count, 1);
	assert_int_equal(watched_count, 1);
	assert_string_equal(profiled[0].stack, "[stack left out: its user has too many]");
}

static void sample__without_memory_for_shares_is_an_error(void **state)
{
	struct counted counted = {.key = {.user_stack = 11, .kind = PP_KIND_CPU}};

	(void)state;
	share_err = -ENOMEM;
	assert_int_equal(add(&counted, 1), -ENOMEM);
	assert_int_equal(profiled_count, 0);
}

/* ---- samples without a frame ---- */

static void check_reason(struct pp_count_key key, const char *reason)
{
	const size_t at = profiled_count;

	add_one(key);
	assert_string_equal(profiled[at].stack, reason);
}

static void no_frame__says_why(void **state)
{
	const uint32_t fault = (uint32_t)PP_STOP_READ_FAULT << PP_COUNT_STOP_SHIFT;
	char text[80];

	(void)state;
#define TEXT_OF(id, name, text) [PP_STOP_##id] = text,
	static const char *const reason[] = {PP_STOPS(TEXT_OF)};
	snprintf(text, sizeof(text), "[%s]", reason[PP_STOP_READ_FAULT]);
	/* The walk found nothing: the stack is known, but empty, or there is none at all. */
	check_reason((struct pp_count_key){.user_stack = 15, .kind = PP_KIND_CPU, .flags = fault},
		     text);
	check_reason((struct pp_count_key){.kind = PP_KIND_CPU, .flags = fault}, text);
	/* The stack was sent and did not come. */
	check_reason((struct pp_count_key){.user_stack = 99, .kind = PP_KIND_CPU, .flags = fault},
		     "[stack lost: the ring was full]");
	check_reason((struct pp_count_key){.user_stack = PP_STACK_OTHERS, .kind = PP_KIND_CPU},
		     "[other stacks]");
	check_reason((struct pp_count_key){.kind = PP_KIND_BLAME, .flags = fault},
		     "[holder of the GIL not seen]");
	check_reason((struct pp_count_key){.user_stack = 99, .kind = PP_KIND_BLAME},
		     "[stack lost: the ring was full]");
	/* The number of a reason that nobody knows. */
	check_reason((struct pp_count_key){.kind = PP_KIND_CPU,
					   .flags = (uint32_t)PP_STOP_COUNT << PP_COUNT_STOP_SHIFT},
		     "[stack lost: the ring was full]");
}

static void no_frame__of_a_refused_stack_blames_its_process(void **state)
{
	(void)state;
	refused_hash = 99;
	check_reason(
		(struct pp_count_key){.user_stack = 99, .kernel_stack = 97, .kind = PP_KIND_CPU},
		"[stack left out: its process has too many]");
	refused_hash = 97;
	check_reason(
		(struct pp_count_key){.user_stack = 99, .kernel_stack = 97, .kind = PP_KIND_CPU},
		"[stack lost: the ring was full]");
	/* Without a user stack it is the kernel's that counts; the reason of the walk says more. */
	check_reason((struct pp_count_key){.kernel_stack = 97,
					   .kind = PP_KIND_CPU,
					   .flags = (uint32_t)PP_STOP_COUNT << PP_COUNT_STOP_SHIFT},
		     "[stack left out: its process has too many]");
}

static void no_frame__is_native_time(void **state)
{
	(void)state;
	add_one((struct pp_count_key){.user_stack = 99, .kind = PP_KIND_CPU});
	assert_int_equal(part_weight[LEDGER_NATIVE], 30);
}

/* ---- many ---- */

static void cuda__has_its_kernel_below_the_call(void **state)
{
	struct counted counted[] = {
		{.key = {.user_stack = 13, .kind = PP_KIND_CUDA, .detail = 77}},
		{.key = {.user_stack = 13, .kind = PP_KIND_PROBE, .detail = 78}}};

	(void)state;
	kernel_of = 0;
	assert_int_equal(add(counted, 2), 0);
	assert_string_equal(profiled[0].stack, "axpy<memcpy<main");
	assert_string_equal(profiled[1].stack, "memcpy<main");
	assert_int_equal(kernel_of, 77);
}

static void many__look_at_the_tables_in_between(void **state)
{
	static struct counted counted[NAMED_AT_ONCE + 2];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(counted); i++)
		counted[i] = (struct counted){.key = {.kind = PP_KIND_CPU, .tid = (uint32_t)i},
					      .count = {.samples = 1}};
	known_stack_count = 0;
	assert_int_equal(add(counted, ARRAY_SIZE(counted)), 0);
	assert_int_equal(profiled_count, NAMED_AT_ONCE + 2);
	assert_int_equal(noted_count, NAMED_AT_ONCE + 2);
	assert_int_equal(relieved, 2); /* after the first, and after 256 more */
}

/* A slice that is over makes one step a call; what comes of it is the same. */
static void many__go_on_where_the_slice_ended(void **state)
{
	static const struct slice over = {.ends_ns = 1};
	struct counted counted[3] = {{.key = {.user_stack = 11, .kind = PP_KIND_CPU}},
				     {.key = {.user_stack = 13, .kind = PP_KIND_CPU}},
				     {.key = {.user_stack = 11, .kind = PP_KIND_WAIT}}};
	const struct counts counts = {.entry = counted, .count = 3};
	const struct samples samples = {.services = &services, .strings = strings};
	CLEANUP(samples_adding_release) struct samples_adding adding = {};
	/* Stacks are noted, two files are named before the last one, counters are added. */
	static const size_t profiled_after[] = {0, 0, 0, 0, 1, 2, 3};

	(void)state;
	late_files = 2;
	for (size_t i = 0; i < ARRAY_SIZE(profiled_after); i++) {
		const int wanted = i + 1 < ARRAY_SIZE(profiled_after);

		assert_int_equal(samples_add(&samples, &counts, &adding, &over), wanted);
		assert_int_equal(profiled_count, profiled_after[i]);
		assert_int_equal(symbolizers, 1);
	}
	assert_int_equal(noted_count, 3);
	assert_int_equal(relieved, 1);
	assert_string_equal(profiled[1].stack, "memcpy<main");
}

static void many__of_none_is_nothing(void **state)
{
	(void)state;
	assert_int_equal(add(NULL, 0), 0);
	assert_int_equal(profiled_count, 0);
}

static void error__ends_it(void **state)
{
	struct counted counted[2] = {{.key = {.user_stack = 11, .kind = PP_KIND_CPU}},
				     {.key = {.user_stack = 13, .kind = PP_KIND_CPU}}};

	(void)state;
	profile_err = -ENOMEM;
	assert_int_equal(add(counted, 2), -ENOMEM);
	assert_int_equal(profiled_count, 1);
	assert_int_equal(relieved, 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(sample__goes_to_the_profiles_and_to_who_watches),
		TEST(sample__on_the_cpu_is_divided_by_its_leaf),
		TEST(wait__begins_at_schedule),
		TEST(python_probe__begins_at_the_frame_of_python),
		TEST(summary__counts_samples_on_the_cpu_by_how_they_ended),
		TEST(summary__ignores_reasons_that_it_does_not_know),
		TEST(summary__counts_a_process_at_its_first_sample),
		TEST(summary__says_what_was_counted_without_its_stack),
		TEST(sample__beyond_its_users_share_counts_without_its_stack),
		TEST(sample__of_one_of_too_many_processes_has_no_labels),
		TEST(sample__without_memory_for_shares_is_an_error),
		TEST(no_frame__says_why),
		TEST(no_frame__of_a_refused_stack_blames_its_process),
		TEST(no_frame__is_native_time),
		TEST(cuda__has_its_kernel_below_the_call),
		TEST(many__look_at_the_tables_in_between),
		TEST(many__go_on_where_the_slice_ended),
		TEST(many__of_none_is_nothing),
		TEST(error__ends_it),
	};

	return cmocka_run_group_tests_name("agent/samples", tests, NULL, NULL);
}
