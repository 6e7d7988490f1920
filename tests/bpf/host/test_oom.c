/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* bpf/watch_process.bpf.c: whom the kernel ends for want of memory, by each of the two arguments
 * that it tells; and execve told from a new name. */
#define HOST_WHOLE_PROGRAM
#include "host.h"

static void know(uint32_t tgid, uint32_t generation)
{
	assert_int_equal(bpf_map_update_elem(&processes, &tgid, &generation, BPF_ANY), 0);
}

/* Asserts that the only event is of this process. */
static void assert_told(uint32_t tgid, uint32_t generation)
{
	const struct pp_event *event = host->record[0].data;

	assert_int_equal(host->record_count, 1);
	assert_ptr_equal(host->record[0].ring, &events);
	assert_int_equal(host->record[0].size, sizeof(*event));
	assert_int_equal(event->type, PP_EVENT_OOM);
	assert_int_equal(event->id.tgid, tgid);
	assert_int_equal(event->id.generation, generation);
}

static void victim__is_the_task_s_process(void **state)
{
	struct task_struct task = {.pid = 72, .tgid = 70};
	__u64 ctx[2] = {(__u64)&task, 1000};

	(void)state;
	victim_is_task = true;
	know(70, 5);
	assert_int_equal(on_mark_victim(ctx), 0);
	assert_told(70, 5);
}

static void victim__is_a_main_thread_s_id_before_6_9(void **state)
{
	__u64 ctx[1] = {70};

	(void)state;
	victim_is_task = false;
	host->task.pid = host->task.tgid = 90;
	know(70, 5);
	know(90, 6);
	assert_int_equal(on_mark_victim(ctx), 0);
	assert_told(70, 5);
}

static void victim__may_be_the_calling_thread_before_6_9(void **state)
{
	__u64 ctx[1] = {72};

	(void)state;
	victim_is_task = false;
	host->task.pid = 72;
	host->task.tgid = 70;
	know(70, 5);
	assert_int_equal(on_mark_victim(ctx), 0);
	assert_told(70, 5);
}

static void victim__that_nobody_knows_is_not_told(void **state)
{
	__u64 ctx[1] = {70};

	(void)state;
	victim_is_task = false;
	assert_int_equal(on_mark_victim(ctx), 0);
	assert_int_equal(host->record_count, 0);
	assert_int_equal(host->losses[PP_LOSS_KEEP_FAILED], 0);
}

static void victim__without_room_in_the_ring_is_counted(void **state)
{
	__u64 ctx[1] = {70};

	(void)state;
	victim_is_task = false;
	know(70, 5);
	host->ring_is_full = true;
	assert_int_equal(on_mark_victim(ctx), 0);
	assert_int_equal(host->losses[PP_LOSS_KEEP_FAILED], 1);
}

/* What is named has a stack, but between two programs. */
static void new_space__is_told_of_execve_alone(void **state)
{
	struct mm_struct space = {.start_stack = 0x7ffc0000};
	struct task_struct task = {.pid = 72, .tgid = 70, .mm = &space, .comm = "renamed"};
	const struct pp_event *event;

	(void)state;
	assert_int_equal(on_rename(NULL, &task), 0);
	task.mm = NULL; /* a thread of the kernel */
	assert_int_equal(on_rename(NULL, &task), 0);
	assert_int_equal(host->record_count, 0);
	task.mm = &space;
	space.start_stack = 0;
	assert_int_equal(on_rename(NULL, &task), 0);
	assert_int_equal(host->record_count, 1);
	event = host->record[0].data;
	assert_int_equal(event->type, PP_EVENT_NEW_SPACE);
	assert_int_equal(event->id.tgid, 70);
	assert_int_equal(event->tid, 72);
	assert_int_equal(event->time_ns, host->now_ns);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		host_test(victim__is_the_task_s_process),
		host_test(victim__is_a_main_thread_s_id_before_6_9),
		host_test(victim__may_be_the_calling_thread_before_6_9),
		host_test(victim__that_nobody_knows_is_not_told),
		host_test(victim__without_room_in_the_ring_is_counted),
		host_test(new_space__is_told_of_execve_alone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
