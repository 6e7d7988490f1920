/* SPDX-License-Identifier: BSD-2-Clause */
#include "drain/thread_slots.h"

#include <cmocka.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"

#define MS 1000000ULL
#define WINDOW 7U

static const struct slots_window window = {
	.number = WINDOW, .start_ns = 100 * MS, .end_ns = 200 * MS};

static uint32_t wait_flags(enum pp_wait wait)
{
	return (uint32_t)wait << PP_COUNT_WAIT_SHIFT | PP_STOP_ROOT << PP_COUNT_STOP_SHIFT;
}

/* A thread that began to wait at since_ns, at its site 0x11. */
static struct pp_thread waiting(enum pp_wait wait, uint64_t since_ns)
{
	return (struct pp_thread){
		.tid = 71,
		.id = {.tgid = 70, .generation = 3},
		.flags = PP_THREAD_MATCHES | PP_THREAD_WAITING,
		.read_window = WINDOW - 1,
		.wait = (uint8_t)wait,
		.since_ns = since_ns,
		.site = {{.key = 1,
			  .user_stack = 0x11,
			  .kernel_stack = 0x22,
			  .flags = wait_flags(wait),
			  .sum = {{.window = ~0U}, {.window = ~0U}}}},
	};
}

/* What its site has got in the window. */
static struct pp_wait_site_sum *sum_of(struct pp_thread *thread)
{
	struct pp_wait_site_sum *sum = &thread->site[0].sum[WINDOW & 1];

	sum->window = WINDOW;
	return sum;
}

static void count(const struct pp_thread *thread, struct counts *counts)
{
	*counts = (struct counts){};
	assert_int_equal(thread_slot_count(thread, &window, counts), 0);
}

#define assert_counted(entry_at, stack, wait, kind_, events, ns)                                   \
	do {                                                                                       \
		const struct counted *counted_ = (entry_at);                                       \
                                                                                                   \
		assert_int_equal(counted_->key.user_stack, stack);                                 \
		assert_int_equal(counted_->key.flags >> PP_COUNT_WAIT_SHIFT & 0x1f, wait);         \
		assert_int_equal(counted_->key.kind, kind_);                                       \
		assert_int_equal(counted_->count.samples, events);                                 \
		assert_int_equal(counted_->count.weight, ns);                                      \
	} while (0)

/* ---- copies ---- */

static void thread_slot_take__free_slot_is_none(void **state)
{
	struct pp_thread slot = {.sequence = 8}, copy;
	uint64_t torn = 0;

	(void)state;
	assert_false(thread_slot_take(&slot, WINDOW, &copy, &torn));
	assert_int_equal(torn, 0);
}

static void thread_slot_take__copies_all_and_marks_the_window(void **state)
{
	struct pp_thread slot = waiting(PP_WAIT_SLEEP, 5), before, copy;
	uint64_t torn = 0;

	(void)state;
	slot.sequence = 8;
	before = slot;
	assert_true(thread_slot_take(&slot, WINDOW, &copy, &torn));
	assert_memory_equal(&copy, &before, sizeof(copy)); /* its mark is the one before */
	assert_int_equal(slot.read_window, WINDOW);
	slot.read_window = before.read_window;
	assert_memory_equal(&slot, &before, sizeof(slot));
	assert_int_equal(torn, 0);
}

/* The mark would make the kernel side believe that the window has been taken. */
static void thread_slot_take__torn_slot_is_not_marked(void **state)
{
	struct pp_thread slot = waiting(PP_WAIT_SLEEP, 5), copy;
	uint64_t torn = 4;

	(void)state;
	slot.sequence = 9;
	assert_false(thread_slot_take(&slot, WINDOW, &copy, &torn));
	assert_int_equal(torn, 5);
	assert_int_equal(slot.read_window, WINDOW - 1);
}

#if defined(__x86_64__)
/* The processor traps after each instruction, and each time the slot has been written once more. */
static struct pp_thread written;

static void write_once(int number)
{
	(void)number;
	written.sequence += 2;
}

static void thread_slot_take__slot_written_at_each_look_is_not_marked(void **state)
{
	const struct sigaction trap = {.sa_handler = write_once};
	struct pp_thread copy;
	uint64_t torn = 0;
	bool is_taken;

	(void)state;
	written = waiting(PP_WAIT_SLEEP, 5);
	assert_int_equal(sigaction(SIGTRAP, &trap, NULL), 0);
	asm volatile("pushfq; orq $0x100, (%%rsp); popfq" ::: "memory", "cc");
	is_taken = thread_slot_take(&written, WINDOW, &copy, &torn);
	asm volatile("pushfq; andq $~0x100, (%%rsp); popfq" ::: "memory", "cc");
	assert_false(is_taken);
	assert_int_equal(torn, 1);
	assert_int_equal(written.read_window, WINDOW - 1);
}
#endif

struct writer {
	struct pp_thread slot;
	_Atomic bool stop;
	long pause_ns; /* within each write, as a walk is */
};

/* All words of the totals are the same between two writes. */
static void *write_all_the_time(void *context)
{
	struct writer *writer = context;
	_Atomic uint32_t *sequence = (_Atomic uint32_t *)&writer->slot.sequence;
	volatile __u64 *total = writer->slot.total_ns;

	for (uint64_t turn = 1; !atomic_load(&writer->stop); turn++) {
		const struct timespec pause = {.tv_nsec = writer->pause_ns};

		atomic_fetch_add(sequence, 1);
		for (unsigned int i = 0; i < PP_LEDGER_COUNT / 2; i++)
			total[i] = turn;
		if (pause.tv_nsec)
			nanosleep(&pause, NULL);
		else
			for (volatile int i = 0; i < 50; i++)
				continue;
		for (unsigned int i = PP_LEDGER_COUNT / 2; i < PP_LEDGER_COUNT; i++)
			total[i] = turn;
		atomic_fetch_add(sequence, 1);
		if (pause.tv_nsec)
			nanosleep(&pause, NULL);
		else
			for (volatile int i = 0; i < 100; i++)
				continue;
	}
	return NULL;
}

static void writer_start(struct writer *writer, pthread_t *ret_thread)
{
	assert_int_equal(pthread_create(ret_thread, NULL, write_all_the_time, writer), 0);
	while (!atomic_load((_Atomic uint32_t *)&writer->slot.sequence))
		sched_yield();
}

static void thread_slot_take__copy_is_whole_while_another_writes(void **state)
{
	struct writer writer = {.slot = {.tid = 71}};
	const uint64_t until_ns = mono_ns() + 300 * MS;
	struct pp_thread copy;
	uint64_t torn = 0, whole = 0;
	pthread_t thread;

	(void)state;
	writer_start(&writer, &thread);
	while (mono_ns() < until_ns) {
		if (!thread_slot_take(&writer.slot, WINDOW, &copy, &torn))
			continue;
		whole++;
		assert_int_equal(copy.sequence & 1, 0);
		for (unsigned int k = 1; k < PP_LEDGER_COUNT; k++)
			assert_int_equal(copy.total_ns[k], copy.total_ns[0]);
	}
	atomic_store(&writer.stop, true);
	pthread_join(thread, NULL);
	assert_true(whole > 0);
}

/* A write lasts as long as the walk within it: up to 1.5 ms. */
static void thread_slot_take__waits_for_a_walk(void **state)
{
	struct writer writer = {.slot = {.tid = 71}, .pause_ns = 500000};
	const struct timespec between = {.tv_nsec = 370000}; /* in no step with the writer */
	struct pp_thread copy;
	uint64_t torn = 0;
	pthread_t thread;

	(void)state;
	writer_start(&writer, &thread);
	for (int i = 0; i < 100; i++) {
		nanosleep(&between, NULL);
		if (thread_slot_take(&writer.slot, WINDOW, &copy, &torn))
			assert_int_equal(copy.total_ns[0], copy.total_ns[PP_LEDGER_COUNT - 1]);
	}
	atomic_store(&writer.stop, true);
	pthread_join(thread, NULL);
	/* A busy machine may let the writer sleep within its write. */
	assert_true(torn < 20);
}

/* ---- what is counted ---- */

static void thread_slot_count__sum_of_the_window(void **state)
{
	struct pp_thread thread = waiting(PP_WAIT_SLEEP, 50);
	struct counts counts;

	(void)state;
	thread.flags = PP_THREAD_MATCHES; /* it runs */
	sum_of(&thread)->events = 3;
	sum_of(&thread)->ns = 30 * MS;
	count(&thread, &counts);
	assert_int_equal(counts.count, 1);
	assert_counted(&counts.entry[0], 0x11, PP_WAIT_SLEEP, PP_KIND_WAIT, 3, 30 * MS);
	assert_int_equal(counts.entry[0].key.kernel_stack, 0x22);
	assert_int_equal(counts.entry[0].key.tid, 71);
	assert_int_equal(counts.entry[0].key.id.tgid, 70);
	assert_int_equal(counts.entry[0].key.id.generation, 3);
	assert_int_equal(counts.entry[0].key.flags >> PP_COUNT_STOP_SHIFT & 0xff, PP_STOP_ROOT);
	counts_release(&counts);
}

static void thread_slot_count__each_site(void **state)
{
	struct pp_thread thread = waiting(PP_WAIT_SLEEP, 190 * MS);
	struct counts counts;

	(void)state;
	for (unsigned int i = 0; i < PP_THREAD_WAIT_SITES; i++) {
		thread.site[i] = thread.site[0];
		thread.site[i].user_stack = 0x11 + i;
		thread.site[i].sum[WINDOW & 1] = (struct pp_wait_site_sum){
			.window = WINDOW, .events = 1, .ns = (i + 1) * MS};
	}
	thread.at = 1;
	count(&thread, &counts);
	assert_int_equal(counts.count, PP_THREAD_WAIT_SITES);
	assert_counted(&counts.entry[0], 0x11, PP_WAIT_SLEEP, PP_KIND_WAIT, 1, 1 * MS);
	assert_counted(&counts.entry[1], 0x12, PP_WAIT_SLEEP, PP_KIND_WAIT, 1, 12 * MS);
	assert_counted(&counts.entry[2], 0x13, PP_WAIT_SLEEP, PP_KIND_WAIT, 1, 3 * MS);
	assert_counted(&counts.entry[3], 0x14, PP_WAIT_SLEEP, PP_KIND_WAIT, 1, 4 * MS);
	counts_release(&counts);
	thread.site[1].key = 0; /* a walk that failed */
	count(&thread, &counts);
	assert_int_equal(counts.count, PP_THREAD_WAIT_SITES - 1);
	counts_release(&counts);
}

static void thread_slot_count__sums_of_other_windows_are_left(void **state)
{
	struct pp_thread thread = waiting(PP_WAIT_SLEEP, 50);
	struct pp_wait_site_sum *sum = thread.site[0].sum;
	struct counts counts;

	(void)state;
	thread.flags = PP_THREAD_MATCHES;
	sum[0] = (struct pp_wait_site_sum){.window = WINDOW + 1, .events = 1, .ns = 1};
	sum[1] = (struct pp_wait_site_sum){.window = WINDOW - 2, .events = 1, .ns = 1};
	count(&thread, &counts);
	assert_int_equal(counts.count, 0);
	sum[0].window = WINDOW - 1; /* taken then */
	count(&thread, &counts);
	assert_int_equal(counts.count, 0);
	counts_release(&counts);
}

static void thread_slot_count__window_in_which_it_was_torn_is_made_up_for(void **state)
{
	struct pp_thread thread = waiting(PP_WAIT_SLEEP, 50);
	struct counts counts;

	(void)state;
	thread.flags = PP_THREAD_MATCHES;
	thread.read_window = WINDOW - 2;
	*sum_of(&thread) = (struct pp_wait_site_sum){.window = WINDOW, .events = 1, .ns = MS};
	thread.site[0].sum[(WINDOW - 1) & 1] = (struct pp_wait_site_sum){
		.window = WINDOW - 1, .events = 2, .ns = 5 * MS, .queue_ns = 7 * MS};
	count(&thread, &counts);
	assert_int_equal(counts.count, 2);
	assert_counted(&counts.entry[0], 0x11, PP_WAIT_SLEEP, PP_KIND_WAIT, 3, 6 * MS);
	assert_counted(&counts.entry[1], 0x11, PP_WAIT_RUN_QUEUE, PP_KIND_WAIT, 0, 7 * MS);
	counts_release(&counts);
}

static void thread_slot_count__open_wait_is_cut_at_both_edges(void **state)
{
	static const struct {
		uint64_t since_ns, ns;
	} row[] = {
		{0, 100 * MS},	{100 * MS, 100 * MS}, {150 * MS, 50 * MS},
		{199999999, 1}, {200 * MS, 0},	      {250 * MS, 0},
	};
	struct counts counts;

	(void)state;
	for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
		const struct pp_thread thread = waiting(PP_WAIT_POLL, row[i].since_ns);

		count(&thread, &counts);
		assert_int_equal(counts.count, row[i].ns != 0);
		if (row[i].ns)
			assert_counted(&counts.entry[0], 0x11, PP_WAIT_POLL, PP_KIND_WAIT, 0,
				       row[i].ns);
		counts_release(&counts);
	}
}

/* As the kernel side cuts it when it ends: bpf/lib/threads.bpf.h. */
static void thread_slot_count__open_wait_that_is_too_short_so_far(void **state)
{
	static const struct {
		uint64_t since_ns, ns;
	} row[] = {
		{180 * MS + 1, 0},	     {180 * MS, 20 * MS}, {100 * MS, 100 * MS},
		{80 * MS + 1, 120 * MS - 1}, {80 * MS, 100 * MS}, {10 * MS, 100 * MS},
	};
	const struct slots_window with_min = {
		.number = WINDOW, .start_ns = 100 * MS, .end_ns = 200 * MS, .wait_min_ns = 20 * MS};

	(void)state;
	for (size_t i = 0; i < sizeof(row) / sizeof(row[0]); i++) {
		const struct pp_thread thread = waiting(PP_WAIT_POLL, row[i].since_ns);
		struct counts counts = {};

		assert_int_equal(thread_slot_count(&thread, &with_min, &counts), 0);
		assert_int_equal(counts.count, row[i].ns != 0);
		if (row[i].ns)
			assert_int_equal(counts.entry[0].count.weight, row[i].ns);
		counts_release(&counts);
	}
}

static void thread_slot_count__open_wait_that_was_walked_tells_of_its_site(void **state)
{
	struct pp_thread thread = waiting(PP_WAIT_SLEEP, 190 * MS);
	struct counts counts;

	(void)state;
	thread.walk_weight = 8;
	thread.site[0].is_mixed[WINDOW & 1] = 1;
	sum_of(&thread)->events = 9;
	sum_of(&thread)->ns = 7 * MS;
	count(&thread, &counts);
	assert_int_equal(counts.count, 2);
	assert_counted(&counts.entry[0], 0x11, PP_WAIT_SLEEP, PP_KIND_WALKED, 0, 80 * MS);
	assert_counted(&counts.entry[1], 0x11, PP_WAIT_SLEEP, PP_KIND_WAIT_SITE, 9, 17 * MS);
	assert_int_equal(counts.entry[0].key.detail, thread.site[0].key);
	assert_int_equal(counts.entry[1].key.detail, thread.site[0].key);
	assert_int_equal(counts.entry[0].count.squares, pp_wait_square(80 * MS));
	counts_release(&counts);
	thread.site[0].is_mixed[WINDOW & 1] = 0;
	count(&thread, &counts);
	assert_int_equal(counts.count, 1);
	assert_counted(&counts.entry[0], 0x11, PP_WAIT_SLEEP, PP_KIND_WAIT, 9, 17 * MS);
	counts_release(&counts);
}

static void thread_slot_count__open_wait_that_stands_for_others_is_apart(void **state)
{
	struct pp_thread thread = waiting(PP_WAIT_SLEEP, 190 * MS);
	struct counts counts;

	(void)state;
	thread.weight_shift = 3;
	thread.walk_weight = 8;
	sum_of(&thread)->events = 9;
	sum_of(&thread)->ns = 7 * MS;
	count(&thread, &counts);
	assert_int_equal(counts.count, 2);
	assert_counted(&counts.entry[0], 0x11, PP_WAIT_SLEEP, PP_KIND_WEIGHTED, 0, 80 * MS);
	assert_counted(&counts.entry[1], 0x11, PP_WAIT_SLEEP, PP_KIND_WAIT, 9, 7 * MS);
	counts_release(&counts);
}

static void thread_slot_count__skipped_and_filtered(void **state)
{
	struct pp_thread thread = waiting(PP_WAIT_SLEEP, 150 * MS);
	struct counts counts;

	(void)state;
	thread.flags |= PP_THREAD_SKIPPED;
	count(&thread, &counts);
	assert_int_equal(counts.count, 0);
	sum_of(&thread)->ns = 7 * MS; /* of waits before it */
	count(&thread, &counts);
	assert_int_equal(counts.count, 1);
	assert_counted(&counts.entry[0], 0x11, PP_WAIT_SLEEP, PP_KIND_WAIT, 0, 7 * MS);
	counts_release(&counts);
	thread.flags = PP_THREAD_WAITING;
	count(&thread, &counts);
	assert_int_equal(counts.count, 0);
}

static void thread_slot_count__run_queue_has_an_entry_of_its_own(void **state)
{
	struct pp_thread thread = waiting(PP_WAIT_RUN_QUEUE, 180 * MS);
	struct counts counts;

	(void)state;
	count(&thread, &counts);
	assert_int_equal(counts.count, 1);
	assert_counted(&counts.entry[0], 0x11, PP_WAIT_RUN_QUEUE, PP_KIND_WAIT, 0, 20 * MS);
	counts_release(&counts);
	thread = waiting(PP_WAIT_TCP, 180 * MS);
	*sum_of(&thread) = (struct pp_wait_site_sum){
		.window = WINDOW, .events = 2, .ns = MS, .queue_ns = 3 * MS};
	count(&thread, &counts);
	assert_int_equal(counts.count, 2);
	assert_counted(&counts.entry[0], 0x11, PP_WAIT_TCP, PP_KIND_WAIT, 2, 21 * MS);
	assert_counted(&counts.entry[1], 0x11, PP_WAIT_RUN_QUEUE, PP_KIND_WAIT, 0, 3 * MS);
	assert_int_equal(counts.entry[1].key.kernel_stack, 0x22);
	counts_release(&counts);
}

static void thread_slot_count__gil_wait_blames_its_holder(void **state)
{
	struct pp_thread thread = waiting(PP_WAIT_GIL, 195 * MS);
	struct counts counts;

	(void)state;
	thread.site[0].blame_stack = 0xb1;
	thread.site[0].blame_tid = 1072;
	count(&thread, &counts);
	assert_int_equal(counts.count, 2);
	assert_counted(&counts.entry[0], 0x11, PP_WAIT_GIL, PP_KIND_WAIT, 0, 5 * MS);
	assert_counted(&counts.entry[1], 0xb1, PP_WAIT_GIL, PP_KIND_BLAME, 0, 5 * MS);
	assert_int_equal(counts.entry[1].key.kernel_stack, 0);
	assert_int_equal(counts.entry[1].key.tid, 1072);
	assert_int_equal(counts.entry[1].key.id.tgid, 70);
	assert_true(counts.entry[1].key.flags & PP_COUNT_PYTHON);
	counts_release(&counts);
	/* The run queue is nobody's fault. */
	thread.flags = PP_THREAD_MATCHES;
	sum_of(&thread)->queue_ns = 3 * MS;
	count(&thread, &counts);
	assert_int_equal(counts.count, 1);
	assert_counted(&counts.entry[0], 0x11, PP_WAIT_RUN_QUEUE, PP_KIND_WAIT, 0, 3 * MS);
	counts_release(&counts);
}

/* ---- totals ---- */

static void thread_slot_totals__what_goes_on_is_cut_at_the_end(void **state)
{
	struct pp_thread thread = waiting(PP_WAIT_PIPE, 150 * MS);
	uint64_t total_ns[PP_LEDGER_COUNT];

	(void)state;
	thread.total_ns[PP_LEDGER_CPU] = 4 * MS;
	thread.total_ns[PP_LEDGER_NET] = 6 * MS;
	thread_slot_totals(&thread, 200 * MS, total_ns);
	assert_int_equal(total_ns[PP_LEDGER_CPU], 4 * MS);
	assert_int_equal(total_ns[PP_LEDGER_NET], 56 * MS);
	thread.flags |= PP_THREAD_SKIPPED; /* left out of the counters only */
	thread_slot_totals(&thread, 200 * MS, total_ns);
	assert_int_equal(total_ns[PP_LEDGER_NET], 56 * MS);
	thread.flags = PP_THREAD_MATCHES;
	thread_slot_totals(&thread, 200 * MS, total_ns);
	assert_int_equal(total_ns[PP_LEDGER_CPU], 54 * MS);
	assert_int_equal(total_ns[PP_LEDGER_NET], 6 * MS);
	thread = waiting(PP_WAIT_PIPE, 201 * MS);
	thread_slot_totals(&thread, 200 * MS, total_ns);
	assert_int_equal(total_ns[PP_LEDGER_NET], 0);
}

static void wait_names__all_have_one_and_what_is_unknown_too(void **state)
{
	(void)state;
	for (unsigned int i = 0; i < PP_WAIT_COUNT; i++) {
		assert_true(strlen(wait_label((enum pp_wait)i)) > 0);
		assert_true(wait_ledger((enum pp_wait)i) < PP_LEDGER_COUNT);
	}
	assert_string_equal(wait_label(PP_WAIT_GIL), "gil");
	assert_int_equal(wait_ledger(PP_WAIT_NONE), PP_LEDGER_CPU);
	assert_int_equal(wait_ledger(PP_WAIT_FILE), PP_LEDGER_DISK);
	assert_string_equal(wait_label((enum pp_wait)31), "other");
	assert_int_equal(wait_ledger((enum pp_wait)31), PP_LEDGER_UNKNOWN);
}

static void thread_slot_stray__waits_for_nobody_knows_what_at_no_site(void **state)
{
	struct pp_thread thread = waiting(PP_WAIT_NONE, 120 * MS);
	uint64_t total_ns[PP_LEDGER_COUNT];
	struct counts counts;

	(void)state;
	thread.flags = PP_THREAD_MATCHES;
	thread_slot_stray(&thread);
	thread_slot_totals(&thread, 200 * MS, total_ns);
	assert_int_equal(total_ns[PP_LEDGER_UNKNOWN], 80 * MS);
	assert_int_equal(total_ns[PP_LEDGER_CPU], 0);
	count(&thread, &counts);
	assert_int_equal(counts.count, 0);
	counts_release(&counts);
}

static void thread_slot_free__only_one_that_was_not_written_since(void **state)
{
	struct pp_thread slot = waiting(PP_WAIT_LOCK, 0), copy = slot;

	(void)state;
	slot.sequence += 2;
	assert_false(thread_slot_free(&slot, &copy));
	assert_int_equal(slot.tid, 71);
	copy = slot;
	assert_true(thread_slot_free(&slot, &copy));
	assert_int_equal(slot.tid, 0);
	assert_int_equal(slot.was_tid, 71);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(thread_slot_take__free_slot_is_none),
		cmocka_unit_test(thread_slot_take__copies_all_and_marks_the_window),
		cmocka_unit_test(thread_slot_take__torn_slot_is_not_marked),
#if defined(__x86_64__)
		cmocka_unit_test(thread_slot_take__slot_written_at_each_look_is_not_marked),
#endif
		cmocka_unit_test(thread_slot_take__copy_is_whole_while_another_writes),
		cmocka_unit_test(thread_slot_take__waits_for_a_walk),
		cmocka_unit_test(thread_slot_count__sum_of_the_window),
		cmocka_unit_test(thread_slot_count__each_site),
		cmocka_unit_test(thread_slot_count__sums_of_other_windows_are_left),
		cmocka_unit_test(thread_slot_count__window_in_which_it_was_torn_is_made_up_for),
		cmocka_unit_test(thread_slot_count__open_wait_is_cut_at_both_edges),
		cmocka_unit_test(thread_slot_count__open_wait_that_is_too_short_so_far),
		cmocka_unit_test(thread_slot_count__open_wait_that_was_walked_tells_of_its_site),
		cmocka_unit_test(thread_slot_count__open_wait_that_stands_for_others_is_apart),
		cmocka_unit_test(thread_slot_count__skipped_and_filtered),
		cmocka_unit_test(thread_slot_count__run_queue_has_an_entry_of_its_own),
		cmocka_unit_test(thread_slot_count__gil_wait_blames_its_holder),
		cmocka_unit_test(thread_slot_totals__what_goes_on_is_cut_at_the_end),
		cmocka_unit_test(thread_slot_stray__waits_for_nobody_knows_what_at_no_site),
		cmocka_unit_test(thread_slot_free__only_one_that_was_not_written_since),
		cmocka_unit_test(wait_names__all_have_one_and_what_is_unknown_too),
	};

	return cmocka_run_group_tests_name("drain/thread_slot_take", tests, NULL, NULL);
}
