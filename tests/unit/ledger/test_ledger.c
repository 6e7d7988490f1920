/* SPDX-License-Identifier: BSD-2-Clause */
/* The map of exited threads is a fake in this file. */
#include "ledger/ledger.h"

#include <bpf/bpf.h>
#include <cmocka.h>
#include <errno.h>
#include <string.h>

#include "drain/counts.h"

#define MS 1000000ULL
#define S (1000 * MS)
#define MAP_FD 5
#define MAP_ENTRIES 4
#define IMPOSSIBLE_FD 6

struct exited {
	struct pp_process_id id;
	struct pp_ledger_sum sum;
};
static struct exited exited[MAP_ENTRIES];
static size_t exited_count;

int bpf_map_get_next_key(int fd, const void *key, void *next_key)
{
	assert_null(key);
	if (fd == IMPOSSIBLE_FD)
		return -EBADF;
	if (!exited_count)
		return -ENOENT;
	memcpy(next_key, &exited[exited_count - 1].id, sizeof(exited[0].id));
	return 0;
}

int bpf_map_lookup_elem(int fd, const void *key, void *value)
{
	(void)fd;
	assert_memory_equal(key, &exited[exited_count - 1].id, sizeof(exited[0].id));
	memcpy(value, &exited[exited_count - 1].sum, sizeof(exited[0].sum));
	return 0;
}

int bpf_map_delete_elem(int fd, const void *key)
{
	(void)fd;
	(void)key;
	exited_count--;
	return 0;
}

/* thread_slots.c's other half is not used. */
int counts_add(struct counts *counts, const struct pp_count_key *key, const struct pp_count *count)
{
	(void)counts;
	(void)key;
	(void)count;
	return -ENOMEM;
}

static int setup(void **state)
{
	struct ledger *ledger;

	exited_count = 0;
	assert_int_equal(ledger_new(&ledger), 0);
	*state = ledger;
	return 0;
}

static int teardown(void **state)
{
	ledger_free(*state);
	return 0;
}

/* A thread of process `tgid` that runs since since_ns. */
static struct pp_thread running(uint32_t tgid, uint64_t created_ns, uint64_t since_ns)
{
	return (struct pp_thread){
		.tid = tgid + 1,
		.id = {.tgid = tgid, .generation = 3},
		.flags = PP_THREAD_MATCHES,
		.created_ns = created_ns,
		.since_ns = since_ns,
		.total_ns = {[PP_LEDGER_CPU] = since_ns - created_ns},
	};
}

/* The same, and waits since since_ns. */
static struct pp_thread waiting(uint32_t tgid, uint64_t created_ns, uint64_t since_ns,
				enum pp_wait wait)
{
	struct pp_thread thread = running(tgid, created_ns, since_ns);

	thread.flags |= PP_THREAD_WAITING;
	thread.wait = (uint8_t)wait;
	return thread;
}

static void add_exited(uint32_t tgid, uint64_t cpu_ns, uint64_t sleep_ns)
{
	exited[exited_count++] = (struct exited){
		.id = {.tgid = tgid, .generation = 3},
		.sum = {.total_ns = {[PP_LEDGER_CPU] = cpu_ns, [PP_LEDGER_SLEEP] = sleep_ns},
			.life_ns = cpu_ns + sleep_ns,
			.threads = 1},
	};
}

/* One reading at end_ns; thread may be NULL. */
static struct ledger_line *read_one(struct ledger *ledger, const struct pp_thread *thread,
				    size_t threads, uint64_t end_ns, size_t *ret_count)
{
	struct ledger_line *line;

	ledger_begin(ledger);
	assert_int_equal(ledger_add_exited(ledger, MAP_FD), 0);
	for (size_t i = 0; i < threads; i++)
		assert_int_equal(ledger_add_thread(ledger, &thread[i], end_ns), 0);
	assert_int_equal(ledger_end(ledger, &line, ret_count), 0);
	return line;
}

static uint64_t total(struct ledger_line *line)
{
	uint64_t total_ns = 0;

	for (unsigned int i = 0; i < PP_LEDGER_COUNT; i++)
		total_ns += line->total_ns[i];
	return total_ns;
}

/* ---- readings ---- */

static void ledger__sums_are_threads_times_wall(void **state)
{
	struct pp_thread thread[3] = {
		running(70, 0, 4 * S),
		waiting(70, 0, 7 * S, PP_WAIT_GIL),
		waiting(70, 0, 1 * S, PP_WAIT_TCP),
	};
	struct ledger_line *line;
	size_t count;

	(void)state;
	line = read_one(*state, thread, 3, 10 * S, &count);
	assert_int_equal(count, 1);
	assert_int_equal(line->id.tgid, 70);
	assert_int_equal(line->processes, 0); /* it is a process's own */
	assert_int_equal(line->threads, 3);
	assert_int_equal(line->life_ns, 30 * S);
	assert_int_equal(line->total_ns[PP_LEDGER_CPU], 10 * S + 7 * S + 1 * S);
	assert_int_equal(line->total_ns[PP_LEDGER_GIL], 3 * S);
	assert_int_equal(line->total_ns[PP_LEDGER_NET], 9 * S);
	/* The next window has what is new. */
	line = read_one(*state, thread, 3, 20 * S, &count);
	assert_int_equal(line->life_ns, 30 * S);
	assert_int_equal(total(line), 30 * S);
	assert_int_equal(line->total_ns[PP_LEDGER_CPU], 10 * S);
	assert_int_equal(line->total_ns[PP_LEDGER_GIL], 10 * S);
	assert_int_equal(line->total_ns[PP_LEDGER_NET], 10 * S);
	thread[0] = waiting(70, 0, 25 * S, PP_WAIT_SLEEP);
	line = read_one(*state, thread, 3, 30 * S, &count);
	assert_int_equal(total(line), 30 * S);
	assert_int_equal(line->total_ns[PP_LEDGER_CPU], 5 * S);
	assert_int_equal(line->total_ns[PP_LEDGER_SLEEP], 5 * S);
}

static void ledger__every_reason_has_its_group(void **state)
{
	static const enum pp_ledger group[PP_WAIT_COUNT] = {
		[PP_WAIT_NONE] = PP_LEDGER_CPU,	       [PP_WAIT_OTHER] = PP_LEDGER_UNKNOWN,
		[PP_WAIT_SLEEP] = PP_LEDGER_SLEEP,     [PP_WAIT_LOCK] = PP_LEDGER_LOCK,
		[PP_WAIT_GIL] = PP_LEDGER_GIL,	       [PP_WAIT_DISK] = PP_LEDGER_DISK,
		[PP_WAIT_FILE] = PP_LEDGER_DISK,       [PP_WAIT_PIPE] = PP_LEDGER_NET,
		[PP_WAIT_UNIX] = PP_LEDGER_NET,	       [PP_WAIT_TCP] = PP_LEDGER_NET,
		[PP_WAIT_UDP] = PP_LEDGER_NET,	       [PP_WAIT_SOCKET] = PP_LEDGER_NET,
		[PP_WAIT_EVENTFD] = PP_LEDGER_NET,     [PP_WAIT_TERMINAL] = PP_LEDGER_NET,
		[PP_WAIT_POLL] = PP_LEDGER_NET,	       [PP_WAIT_IO_URING] = PP_LEDGER_NET,
		[PP_WAIT_GPU] = PP_LEDGER_GPU,	       [PP_WAIT_CHILD] = PP_LEDGER_CHILD,
		[PP_WAIT_FAULT] = PP_LEDGER_FAULT,     [PP_WAIT_RUN_QUEUE] = PP_LEDGER_RUN_QUEUE,
		[PP_WAIT_STOPPED] = PP_LEDGER_STOPPED, [PP_WAIT_KERNEL] = PP_LEDGER_UNKNOWN,
	};
	uint64_t end_ns = 0;

	(void)state;
	for (unsigned int wait = 0; wait < PP_WAIT_COUNT; wait++) {
		const struct pp_thread thread =
			waiting(100 + wait, end_ns, end_ns, (enum pp_wait)wait);
		struct ledger_line *line;
		size_t count;

		end_ns += 1 * S;
		line = read_one(*state, &thread, 1, end_ns, &count);
		while (line->id.tgid != 100 + wait)
			line++;
		assert_int_equal(line->total_ns[group[wait]], 1 * S);
		assert_int_equal(total(line), 1 * S);
	}
}

static void ledger__filtered_and_later_threads_are_not_in_it(void **state)
{
	struct pp_thread thread[2] = {running(70, 0, 1 * S), running(71, 10 * S, 10 * S)};
	size_t count;

	thread[0].flags = 0;
	read_one(*state, thread, 2, 10 * S, &count);
	assert_int_equal(count, 0);
}

static void ledger__thread_that_exits_goes_on_where_it_was(void **state)
{
	const struct pp_thread thread[2] = {waiting(70, 0, 1 * S, PP_WAIT_SLEEP),
					    running(70, 0, 0)};
	struct ledger_line *line;
	size_t count;

	(void)state;
	read_one(*state, thread, 2, 10 * S, &count);
	add_exited(70, 2 * S, 13 * S); /* at 15 s */
	line = read_one(*state, &thread[1], 1, 20 * S, &count);
	assert_int_equal(exited_count, 0);
	assert_int_equal(line->threads, 2);
	assert_int_equal(line->life_ns, 10 * S + 5 * S);
	assert_int_equal(line->total_ns[PP_LEDGER_CPU], 10 * S + 1 * S);
	assert_int_equal(line->total_ns[PP_LEDGER_SLEEP], 4 * S);
	assert_int_equal(total(line), line->life_ns);
	line = read_one(*state, &thread[1], 1, 30 * S, &count);
	assert_int_equal(line->threads, 1);
	assert_int_equal(total(line), 10 * S);
}

static void ledger__thread_whose_end_was_not_seen_keeps_its_times(void **state)
{
	const struct pp_thread thread[2] = {waiting(70, 0, 1 * S, PP_WAIT_OTHER),
					    running(70, 0, 0)};
	const struct pp_thread later = waiting(71, 15 * S, 16 * S, PP_WAIT_SLEEP);
	struct ledger_line *line;
	size_t count;

	(void)state;
	read_one(*state, thread, 2, 10 * S, &count);
	ledger_begin(*state);
	assert_int_equal(ledger_add_gone(*state, &thread[0], 20 * S), 0);
	assert_int_equal(ledger_add_gone(*state, &later, 20 * S), 0);
	assert_int_equal(ledger_add_thread(*state, &thread[1], 20 * S), 0);
	assert_int_equal(ledger_end(*state, &line, &count), 0);
	assert_int_equal(line[1].id.tgid, 71);
	assert_int_equal(line[1].life_ns, 5 * S);
	assert_int_equal(total(&line[1]), 5 * S);
	assert_int_equal(line->life_ns, 20 * S);
	assert_int_equal(line->exits, 1);
	assert_int_equal(line->total_ns[PP_LEDGER_UNKNOWN], 10 * S);
	assert_int_equal(total(line), 20 * S);
	line = read_one(*state, &thread[1], 1, 30 * S, &count);
	assert_int_equal(line->total_ns[PP_LEDGER_CPU], 10 * S);
	assert_int_equal(total(line), line->life_ns);
	assert_int_equal(line->life_ns, 10 * S);
}

static void ledger__gone_thread_that_is_not_asked_for_or_came_later_is_left_out(void **state)
{
	const struct pp_thread unwanted = {.id = {.tgid = 70, .generation = 3},
					   .flags = PP_THREAD_WAITING};
	const struct pp_thread later = waiting(71, 20 * S, 20 * S, PP_WAIT_SLEEP);
	const struct pp_thread filtered_later = {.id = {.tgid = 72, .generation = 3},
						 .created_ns = 30 * S};
	const struct pp_thread *const none[] = {&unwanted, &later, &filtered_later};
	struct ledger_line *line;
	size_t count;

	read_one(*state, NULL, 0, 10 * S, &count);
	ledger_begin(*state);
	for (size_t i = 0; i < 3; i++) {
		assert_int_equal(ledger_add_gone(*state, none[i], 20 * S), 0);
		assert_int_equal(ledger_add_thread(*state, none[i], 20 * S), 0);
	}
	assert_int_equal(ledger_end(*state, &line, &count), 0);
	assert_int_equal(count, 0);
}

/* Between the reading of the map and that of its slot: it is in neither. */
static void ledger__process_that_exits_within_the_reading_is_counted_once(void **state)
{
	const struct pp_thread thread = waiting(70, 0, 1 * S, PP_WAIT_SLEEP);
	struct ledger_line *line;
	size_t count;

	(void)state;
	line = read_one(*state, &thread, 1, 3600 * S, &count);
	assert_int_equal(total(line), 3600 * S);
	line = read_one(*state, NULL, 0, 3610 * S, &count);
	assert_true(count == 0 || total(line) == 0);
	add_exited(70, 1 * S, 3610 * S);
	line = read_one(*state, NULL, 0, 3620 * S, &count);
	assert_int_equal(count, 1);
	assert_int_equal(total(line), 11 * S);
	assert_int_equal(line->life_ns, 11 * S);
}

/* As above: nobody can tell a torn slot from one that is gone. */
static void ledger__torn_slot_is_made_up_for_in_the_next_reading(void **state)
{
	const struct pp_thread thread[2] = {waiting(70, 0, 1 * S, PP_WAIT_SLEEP),
					    running(70, 0, 0)};
	struct ledger_line *line;
	size_t count;

	(void)state;
	read_one(*state, thread, 2, 3600 * S, &count);
	line = read_one(*state, thread, 1, 3610 * S, &count); /* the second was torn */
	assert_true(total(line) <= 20 * S);
	line = read_one(*state, NULL, 0, 3620 * S, &count); /* both */
	assert_true(count == 0 || total(line) == 0);
	line = read_one(*state, thread, 2, 3630 * S, &count);
	assert_true(total(line) <= 60 * S);
	line = read_one(*state, thread, 2, 3640 * S, &count);
	assert_int_equal(total(line), 20 * S);
}

static void ledger__process_that_is_gone_is_forgotten(void **state)
{
	const struct pp_thread thread = running(70, 0, 0);
	size_t count = 1;

	(void)state;
	read_one(*state, &thread, 1, 1 * S, &count);
	for (uint64_t i = 0; i < 3; i++) {
		read_one(*state, NULL, 0, (2 + i) * S, &count);
		assert_int_equal(count, 1);
	}
	read_one(*state, NULL, 0, 5 * S, &count);
	assert_int_equal(count, 0);
}

/* Whenever it is seen, three readings without it begin again: its life is not counted a second
 * time. */
static void ledger__process_that_comes_back_is_remembered(void **state)
{
	const struct pp_thread thread = running(70, 0, 0);
	struct ledger_line *line;
	size_t count;

	(void)state;
	read_one(*state, &thread, 1, 100 * S, &count);
	for (uint64_t i = 1; i < 6; i++) {
		read_one(*state, NULL, 0, 100 * S + (30 * i + 10) * S, &count);
		read_one(*state, NULL, 0, 100 * S + (30 * i + 20) * S, &count);
		line = read_one(*state, &thread, 1, 100 * S + (30 * i + 30) * S, &count);
		assert_int_equal(count, 1);
		assert_int_equal(total(line), i == 1 ? 60 * S : 30 * S);
	}
}

static void ledger__all_exited_threads_of_the_map_are_read(void **state)
{
	struct ledger_line *line;
	size_t count;

	(void)state;
	add_exited(70, 2 * S, 1 * S);
	add_exited(71, 3 * S, 1 * S);
	add_exited(70, 4 * S, 5 * S);
	line = read_one(*state, NULL, 0, 10 * S, &count);
	assert_int_equal(exited_count, 0);
	assert_int_equal(count, 2);
	assert_int_equal(line[0].id.tgid, 70);
	assert_int_equal(line[0].exits, 2);
	assert_int_equal(line[0].threads, 2);
	assert_int_equal(line[0].life_ns, 12 * S);
	assert_int_equal(line[0].total_ns[PP_LEDGER_CPU], 6 * S);
	assert_int_equal(line[1].total_ns[PP_LEDGER_SLEEP], 1 * S);
}

/* ---- while a reading is complete, and not yet ended ---- */

static uint32_t busy_tgids[8];
static size_t busy_count;

static void note_busy(void *context, uint32_t tgid)
{
	assert_ptr_equal(context, busy_tgids);
	busy_tgids[busy_count++] = tgid;
}

static void ledger_busy__is_called_for_what_has_used_the_cpu_since_the_last_reading(void **state)
{
	const struct pp_thread thread[2] = {running(70, 0, 0), running(71, 4 * S, 4 * S)};
	struct ledger_line *line;
	size_t count;

	(void)state;
	busy_count = 0;
	read_one(*state, thread, 1, 10 * S, &count);
	ledger_begin(*state);
	assert_int_equal(ledger_add_thread(*state, &thread[0], 12 * S), 0);
	assert_int_equal(ledger_add_thread(*state, &thread[1], 12 * S), 0);
	add_exited(70, 1 * S, 0);
	assert_int_equal(ledger_add_exited(*state, MAP_FD), 0);
	/* 3 s and 8 s of it are new. */
	ledger_busy(*state, 8 * S + 1, note_busy, busy_tgids);
	assert_int_equal(busy_count, 0);
	ledger_busy(*state, 8 * S, note_busy, busy_tgids);
	assert_int_equal(busy_count, 1);
	assert_int_equal(busy_tgids[0], 71);
	ledger_busy(*state, 3 * S + 1, note_busy, busy_tgids);
	assert_int_equal(busy_count, 2);
	ledger_busy(*state, 3 * S, note_busy, busy_tgids);
	assert_int_equal(busy_count, 4);
	assert_int_equal(ledger_end(*state, &line, &count), 0);
}

static void ledger_find__is_what_a_process_has_used_since_the_last_reading(void **state)
{
	const struct pp_thread thread[2] = {waiting(70, 0, 1 * S, PP_WAIT_SLEEP),
					    running(70, 0, 0)};
	struct ledger_line *line;
	uint64_t ns = 77;
	size_t count;

	(void)state;
	assert_false(ledger_find(*state, thread[0].id, PP_LEDGER_CPU, &ns));
	assert_int_equal(ns, 77);
	read_one(*state, thread, 2, 10 * S, &count);
	ledger_begin(*state);
	assert_int_equal(ledger_add_thread(*state, &thread[0], 13 * S), 0);
	/* The second one is torn: what is known is less than before. */
	assert_true(ledger_find(*state, thread[0].id, PP_LEDGER_CPU, &ns));
	assert_int_equal(ns, 0);
	assert_int_equal(ledger_add_thread(*state, &thread[1], 13 * S), 0);
	add_exited(70, 2 * S, 5 * S);
	assert_int_equal(ledger_add_exited(*state, MAP_FD), 0);
	assert_true(ledger_find(*state, thread[0].id, PP_LEDGER_CPU, &ns));
	assert_int_equal(ns, 5 * S);
	assert_true(ledger_find(*state, thread[0].id, PP_LEDGER_SLEEP, &ns));
	assert_int_equal(ns, 8 * S);
	assert_true(ledger_find(*state, thread[0].id, PP_LEDGER_GIL, &ns));
	assert_int_equal(ns, 0);
	assert_false(ledger_find(*state, (struct pp_process_id){.tgid = 70, .generation = 4},
				 PP_LEDGER_CPU, &ns));
	assert_int_equal(ledger_end(*state, &line, &count), 0);
}

static void ledger__map_that_cannot_be_read_is_an_error(void **state)
{
	ledger_begin(*state);
	assert_int_equal(ledger_add_exited(*state, IMPOSSIBLE_FD), -EBADF);
}

static void ledger__lines_have_their_user(void **state)
{
	const struct pp_process_id other = {.tgid = 72};
	struct pp_thread thread = running(70, 0, 0);
	struct ledger_line *line;
	size_t count;

	thread.user = 1000;
	add_exited(71, 2 * S, 4 * S);
	exited[0].sum.user = 1001;
	ledger_begin(*state);
	assert_int_equal(ledger_add_exited(*state, MAP_FD), 0);
	assert_int_equal(ledger_add_thread(*state, &thread, 10 * S), 0);
	assert_int_equal(ledger_add_sleep(*state, other, PP_WAIT_SLEEP, 1 * S, true), 0);
	assert_int_equal(ledger_end(*state, &line, &count), 0);
	assert_int_equal(count, 3);
	for (size_t i = 0; i < count; i++)
		assert_int_equal(line[i].user, line[i].id.tgid == 70   ? 1000
					       : line[i].id.tgid == 71 ? 1001
								       : LEDGER_USER_UNKNOWN);
}

static void ledger__ended_threads_without_a_row_are_in_one_line(void **state)
{
	const struct pp_ledger_sum sum = {
		.total_ns = {3 * S}, .life_ns = 3 * S, .threads = 7, .leaders = 5};
	struct ledger_line *line;
	size_t count;

	for (int window = 0; window < 2; window++) {
		ledger_begin(*state);
		assert_int_equal(ledger_add_rest(*state, &sum), 0);
		assert_int_equal(ledger_add_rest(*state, &sum), 0);
		assert_int_equal(ledger_end(*state, &line, &count), 0);
		assert_int_equal(count, 1);
		assert_int_equal(line->id.tgid, 0);
		assert_int_equal(line->processes, 10);
		assert_int_equal(line->threads, 14);
		assert_int_equal(line->total_ns[PP_LEDGER_CPU], 6 * S);
		assert_int_equal(line->life_ns, 6 * S);
	}
}

static void ledger__samples_are_of_the_window(void **state)
{
	const struct pp_thread thread = running(70, 0, 0);
	struct ledger_line *line;
	size_t count;

	ledger_begin(*state);
	assert_int_equal(ledger_add_thread(*state, &thread, 1 * S), 0);
	assert_int_equal(ledger_add_sample(*state, thread.id, LEDGER_PYTHON, 30), 0);
	assert_int_equal(ledger_add_sample(*state, thread.id, LEDGER_PYTHON, 10), 0);
	assert_int_equal(ledger_add_sample(*state, thread.id, LEDGER_KERNEL, 5), 0);
	assert_int_equal(ledger_end(*state, &line, &count), 0);
	assert_int_equal(line->part[LEDGER_PYTHON], 40);
	assert_int_equal(line->part[LEDGER_NATIVE], 0);
	assert_int_equal(line->part[LEDGER_KERNEL], 5);
	line = read_one(*state, &thread, 1, 2 * S, &count);
	assert_int_equal(line->part[LEDGER_PYTHON], 0);
}

/* ---- text ---- */

static void state__samples_divide_the_cpu_time(void **state)
{
	struct ledger_line line = {.part = {1, 2, 1}};
	uint64_t ns;

	(void)state;
	for (unsigned int i = 0; i < PP_LEDGER_COUNT; i++)
		line.total_ns[i] = i ? i : 2 * S;
	for (unsigned int i = 0; i < LEDGER_STATE_COUNT; i++) {
		ns = ledger_state_ns(&line, i);
		assert_int_equal(ns, i == LEDGER_NATIVE	     ? S
				     : i < LEDGER_PART_COUNT ? S / 2
				     : i == LEDGER_UNSAMPLED ? 0
							     : i - LEDGER_PART_COUNT);
	}
	memset(line.part, 0, sizeof(line.part));
	assert_int_equal(ledger_state_ns(&line, LEDGER_PYTHON), 0);
	assert_int_equal(ledger_state_ns(&line, LEDGER_UNSAMPLED), 2 * S);
	assert_int_equal(ledger_state_ns(&line, LEDGER_WAIT(PP_LEDGER_GIL)), 1);
	assert_string_equal(ledger_state_name(LEDGER_KERNEL), "kernel");
	assert_string_equal(ledger_state_name(LEDGER_UNSAMPLED), "unsampled");
	assert_string_equal(ledger_state_name(LEDGER_WAIT(PP_LEDGER_RUN_QUEUE)), "run_queue");
	assert_string_equal(ledger_state_name(LEDGER_STATE_COUNT - 1), "unknown");
}

#define ledger_test(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		ledger_test(ledger__sums_are_threads_times_wall),
		ledger_test(ledger__every_reason_has_its_group),
		ledger_test(ledger__filtered_and_later_threads_are_not_in_it),
		ledger_test(ledger__thread_that_exits_goes_on_where_it_was),
		ledger_test(ledger__thread_whose_end_was_not_seen_keeps_its_times),
		ledger_test(ledger__gone_thread_that_is_not_asked_for_or_came_later_is_left_out),
		ledger_test(ledger__process_that_exits_within_the_reading_is_counted_once),
		ledger_test(ledger__torn_slot_is_made_up_for_in_the_next_reading),
		ledger_test(ledger__process_that_is_gone_is_forgotten),
		ledger_test(ledger__process_that_comes_back_is_remembered),
		ledger_test(ledger__all_exited_threads_of_the_map_are_read),
		ledger_test(
			ledger_busy__is_called_for_what_has_used_the_cpu_since_the_last_reading),
		ledger_test(ledger_find__is_what_a_process_has_used_since_the_last_reading),
		ledger_test(ledger__map_that_cannot_be_read_is_an_error),
		ledger_test(ledger__lines_have_their_user),
		ledger_test(ledger__ended_threads_without_a_row_are_in_one_line),
		ledger_test(ledger__samples_are_of_the_window),
		cmocka_unit_test(state__samples_divide_the_cpu_time),
	};

	return cmocka_run_group_tests_name("agent/ledger", tests, NULL, NULL);
}
