/* SPDX-License-Identifier: BSD-2-Clause */
/* Who names, labels and counts are stand-ins that write down what they get. */
#include "agent/samples.h"

#include <stdio.h>

#include "stacks.h"

#include "agent/tables.h"
#include "discover/proc_scan.h"
#include "discover/process_table.h"
#include "drain/counts.h"
#include "processes/who.h"
#include "windows/profiles.h"
#include "windows/source.h"

#define SCHEDULE "tracepoint", "__schedule", "schedule", "futex_wait"
#define WAKE "bpf", "trace_sched_waking", "try_to_wake_up", "futex_wake"

static char chain[2000], labels_text[400];
static size_t added;
static unsigned int relieved;
static struct pp_count_key counted;
static struct process living = {.id = {.tgid = 7}, .comm = "waker"};
static struct process short_named = {.id = {.tgid = 6}, .comm = "w"};

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

void who_find(struct process_table *processes, struct pp_process_id id, uint32_t tid,
	      struct who *ret_who)
{
	(void)processes;
	assert_int_equal(id.tgid, 5);
	assert_int_equal(tid, 55);
	*ret_who = (struct who){.comm = "waiter"};
}

int labels_add(const struct samples *samples, struct profile_sample *sample,
	       const struct pp_count_key *key, const struct who *who)
{
	(void)key;
	assert_ptr_equal(samples->strings, strings);
	assert_string_equal(who->comm, "waiter");
	sample->label[sample->label_count++] =
		(struct profile_label){.key = "pid", .number = 5, .is_number = 1};
	return 0;
}

struct process *process_table_find_or_tgid(const struct process_table *table,
					   struct pp_process_id id)
{
	(void)table;
	return id.tgid == 7 ? &living : id.tgid == 6 ? &short_named : NULL;
}

int thread_comm_read(uint32_t tgid, uint32_t tid, char comm[PP_COMM_BYTES])
{
	if (tgid != 8)
		return -ESRCH;
	assert_int_equal(tid, 88);
	memcpy(comm, "gone", 5);
	return 0;
}

int samples_put(const struct samples *samples, const struct pp_count_key *key,
		const struct who *who, const struct pp_count *count, struct profile_sample *sample)
{
	size_t used = 0;

	(void)samples;
	assert_string_equal(who->comm, "waiter");
	assert_int_equal(count->weight, 900);
	counted = *key;
	for (size_t i = 0; i < sample->frame_count; i++)
		used += (size_t)snprintf(chain + used, sizeof(chain) - used, "%s%s", i ? " " : "",
					 intern_get(strings, sample->frame[i].name, NULL));
	used = 0;
	for (size_t i = 0; i < sample->label_count; i++) {
		const struct profile_label *label = &sample->label[i];

		assert_in_range(label->is_number, 0, 1);
		used += (size_t)snprintf(labels_text + used, sizeof(labels_text) - used,
					 "%s%s=", i ? " " : "", label->key);
		if (label->is_number)
			used += (size_t)snprintf(labels_text + used, sizeof(labels_text) - used,
						 "%d", (int)label->number);
		else
			used += (size_t)snprintf(labels_text + used, sizeof(labels_text) - used,
						 "%s", intern_get(strings, label->string, NULL));
	}
	added++;
	return 0;
}

int tables_relieve(struct tables *tables)
{
	(void)tables;
	relieved++;
	return 0;
}

static const struct known_stack stacks[] = {
	{.hash = 1, .kinds = "pn", .name = {"get", "main"}},
	{.hash = 2, .kinds = "kkkk", .name = {SCHEDULE}},
	{.hash = 3, .kinds = "pn", .name = {"put", "start"}},
	{.hash = 4, .kinds = "kkkk", .name = {WAKE}},
	{.hash = 6, .kinds = "kkkkk", .name = {WAKE, "asm_sysvec_apic_timer_interrupt"}},
	{.hash = 8, .kinds = "kkkkk", .name = {WAKE, "el1h_64_irq"}},
	{.hash = 9, .kinds = "kkkkk", .name = {WAKE, "el0t_64_irq"}},
	{.hash = 10,
	 .kinds = "kkkkkkkkkkkkk",
	 .name = {"1", "2", "3", "4", "5", "6", "7", "8", "9", "10", "11", "12", "try_to_wake_up"}},
	{.hash = 11, .kinds = "kkn", .name = {"1", "2", "try_to_wake_up"}},
	{.hash = 12,
	 .kinds = "kkkkkkkkkkkk",
	 .name = {"1", "2", "3", "4", "5", "6", "7", "8", "9", "10", "11", "try_to_wake_up"}},
};

/* The frames of the tracepoint are not always there. */
static const struct known_stack bare[] = {
	{.hash = 1, .kinds = "pn", .name = {"get", "main"}},
	{.hash = 4, .kinds = "kk", .name = {"try_to_wake_up", "futex_wake"}},
	{.hash = 6, .kinds = "kk", .name = {"asm_exc_nmi", "what_it_came_upon"}},
};

static int setup(void **state)
{
	(void)state;
	known_stacks = stacks;
	known_stack_count = sizeof(stacks) / sizeof(stacks[0]);
	added = 0;
	relieved = 0;
	chain[0] = labels_text[0] = '\0';
	return intern_new(&strings);
}

static int teardown(void **state)
{
	(void)state;
	intern_free(strings);
	return (int)symbolizers;
}

static const struct pp_waker by_thread = {
	.id = {.tgid = 7}, .tid = 77, .user_stack = 3, .kernel_stack = 4};

static const struct services services;

static void add_wakes(const struct samples *samples, const struct wakes *wakes)
{
	OWNED(wakers_adding) struct wakers_adding *adding = NULL;

	assert_int_equal(wakers_add(samples, wakes, &adding, NULL), 0);
}

static void wake_by(const struct pp_waker *waker)
{
	struct woken woken = {.key = {.id = {.tgid = 5},
				      .tid = 55,
				      .user_stack = 1,
				      .kernel_stack = 2,
				      .flags = (uint32_t)PP_COUNT_GC,
				      .waker = *waker},
			      .count = {.samples = 1, .weight = 900}};
	const struct wakes wakes = {.entry = &woken, .count = 1};
	const struct samples samples = {.services = &services, .strings = strings};

	add_wakes(&samples, &wakes);
	assert_int_equal(added, 1);
	added = 0;
}

static void nothing__was_woken(void **state)
{
	const struct wakes wakes = {};
	const struct samples samples = {.services = &services, .strings = strings};

	(void)state;
	add_wakes(&samples, &wakes);
	assert_int_equal(added, 0);
}

/* Leaf first: both stacks meet at the wake-up, of which the frames of the tracepoints are left
 * out. */
static void chain__has_the_wakers_stack_upside_down(void **state)
{
	(void)state;
	wake_by(&by_thread);
	assert_string_equal(chain, "start put futex_wake try_to_wake_up --waker-- __schedule "
				   "schedule futex_wait get main");
	assert_true(is_noted(1));
	assert_true(is_noted(3));
	assert_int_equal(counted.kind, PP_KIND_WAKE);
	assert_int_equal(counted.tid, 55);
	assert_int_equal(counted.id.tgid, 5);
	assert_int_equal(counted.flags, PP_COUNT_GC);
	assert_int_equal(relieved, 1);
}

static void chain__of_an_interrupt_ends_at_its_entry(void **state)
{
	struct pp_waker waker = by_thread;

	(void)state;
	waker.flags = PP_WAKE_INTERRUPT;
	waker.kernel_stack = 6;
	wake_by(&waker);
	assert_string_equal(chain, "[interrupt] asm_sysvec_apic_timer_interrupt futex_wake "
				   "try_to_wake_up --waker-- __schedule schedule futex_wait get "
				   "main");
	waker.kernel_stack = 8;
	wake_by(&waker);
	assert_non_null(strstr(chain, "[interrupt] el1h_64_irq futex_wake"));
	waker.kernel_stack = 9;
	wake_by(&waker);
	assert_non_null(strstr(chain, "[interrupt] el0t_64_irq futex_wake"));
	/* Where the entry is not known, all of it is shown. */
	waker.kernel_stack = 4;
	wake_by(&waker);
	assert_non_null(strstr(chain, "[interrupt] start put futex_wake try_to_wake_up"));
}

static void chain__keeps_frames_where_the_wake_up_is_not_near(void **state)
{
	struct pp_waker waker = by_thread;

	(void)state;
	waker.user_stack = 0;
	waker.kernel_stack = 12; /* the twelfth frame */
	wake_by(&waker);
	assert_memory_equal(chain, "try_to_wake_up --waker-- ", 25);
	waker.kernel_stack = 10; /* the thirteenth */
	wake_by(&waker);
	assert_memory_equal(chain, "try_to_wake_up 12 11 10 9 8 7 6 5 4 3 2 1 --waker-- ", 52);
	waker.kernel_stack = 11; /* a function of a program that is called so */
	wake_by(&waker);
	assert_memory_equal(chain, "try_to_wake_up 2 1 --waker-- ", 29);
}

static void chain__of_frames_without_a_tracepoint(void **state)
{
	struct pp_waker waker = {.id = {.tgid = 7}, .kernel_stack = 4};

	(void)state;
	known_stacks = bare;
	known_stack_count = sizeof(bare) / sizeof(bare[0]);
	wake_by(&waker);
	assert_string_equal(chain, "futex_wake try_to_wake_up --waker-- get main");
	waker.kernel_stack = 6;
	waker.flags = PP_WAKE_INTERRUPT;
	wake_by(&waker);
	assert_string_equal(chain, "[interrupt] asm_exc_nmi --waker-- get main");
}

static void label__names_the_waker(void **state)
{
	struct pp_waker waker = by_thread;

	(void)state;
	wake_by(&waker);
	assert_string_equal(labels_text, "pid=5 waker_pid=7 waker_tid=77 waker_comm=waker");
	waker.id.tgid = 8;
	waker.tid = 88;
	wake_by(&waker);
	assert_string_equal(labels_text, "pid=5 waker_pid=8 waker_tid=88 waker_comm=gone");
	waker.id.tgid = 6;
	wake_by(&waker);
	assert_string_equal(labels_text, "pid=5 waker_pid=6 waker_tid=88 waker_comm=w");
	waker.id.tgid = 9;
	wake_by(&waker);
	assert_string_equal(labels_text, "pid=5 waker_pid=9 waker_tid=88");
	waker.id.tgid = 7; /* what ran when the interrupt came has no part in it */
	waker.flags = PP_WAKE_INTERRUPT;
	wake_by(&waker);
	assert_string_equal(labels_text, "pid=5 waker_comm=[interrupt]");
}

static void many__look_at_the_tables_in_between(void **state)
{
	static struct woken woken[NAMED_AT_ONCE + 2];
	const struct wakes wakes = {.entry = woken, .count = NAMED_AT_ONCE + 2};
	const struct samples samples = {.services = &services, .strings = strings};

	(void)state;
	for (size_t i = 0; i < wakes.count; i++)
		woken[i] = (struct woken){.key = {.id = {.tgid = 5}, .tid = 55, .waker = by_thread},
					  .count = {.weight = 900}};
	add_wakes(&samples, &wakes);
	assert_int_equal(added, wakes.count);
	assert_int_equal(noted_count, 2 * wakes.count);
	assert_int_equal(relieved, 2);
}

/* A slice that is over makes one step a call. */
static void many__go_on_where_the_slice_ended(void **state)
{
	static const struct slice over = {.ends_ns = 1};
	const struct woken one = {.key = {.id = {.tgid = 5}, .tid = 55, .waker = by_thread},
				  .count = {.weight = 900}};
	struct woken woken[2] = {one, one};
	const struct wakes wakes = {.entry = woken, .count = 2};
	const struct samples samples = {.services = &services, .strings = strings};
	OWNED(wakers_adding) struct wakers_adding *adding = NULL;
	static const unsigned int added_after[] = {0, 0, 1, 2};

	(void)state;
	late_files = 1;
	for (size_t i = 0; i < sizeof(added_after) / sizeof(added_after[0]); i++) {
		const int wanted = added_after[i] < 2;

		assert_int_equal(wakers_add(&samples, &wakes, &adding, &over), wanted);
		assert_int_equal(added, added_after[i]);
	}
	assert_int_equal(noted_count, 4);
	assert_int_equal(symbolizers, 1);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(nothing__was_woken),
		TEST(chain__has_the_wakers_stack_upside_down),
		TEST(chain__of_an_interrupt_ends_at_its_entry),
		TEST(chain__keeps_frames_where_the_wake_up_is_not_near),
		TEST(chain__of_frames_without_a_tracepoint),
		TEST(label__names_the_waker),
		TEST(many__look_at_the_tables_in_between),
		TEST(many__go_on_where_the_slice_ended),
	};

	return cmocka_run_group_tests_name("agent/wakers", tests, NULL, NULL);
}
