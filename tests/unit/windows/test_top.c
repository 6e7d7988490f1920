/* SPDX-License-Identifier: BSD-2-Clause */
/* Clients, processes and access rights are fakes in this file. */
#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "base/clock.h"
#include "base/io.h"
#include "live/record.h"
#include "live/server.h"
#include "pprof/profile_read.h"
#include "profile/profile_data.h"
#include "store/output.h"
#include "windows/top.h"

#define KERNEL_ADDRESS 0xffffffff81234567ULL

static struct live_job jobs[4];
static size_t jobs_waiting;
static int refused;
static char *pushed; /* the last one */
static size_t pushed_size;
static unsigned int pushes;
static bool has_gone;
static unsigned int questions; /* who may see what */

bool live_server_next(struct live_server *server, struct live_choice choice,
		      struct live_job *ret_job)
{
	(void)server;
	assert_int_equal(choice.verb, LIVE_TOP);
	if (!jobs_waiting)
		return false;
	*ret_job = jobs[--jobs_waiting];
	return true;
}

bool live_server_waits(const struct live_server *server, uint64_t number)
{
	(void)server;
	return number && !has_gone;
}

void live_server_push(struct live_server *server, uint64_t number, char *text, size_t size,
		      uint64_t now_ns)
{
	(void)server, (void)number, (void)now_ns;
	free(pushed);
	pushed = text;
	pushed_size = size;
	pushes++;
}

void live_server_refuse(struct live_server *server, uint64_t number, int err, const char *why,
			uint64_t now_ns)
{
	(void)server, (void)number, (void)why, (void)now_ns;
	refused = err;
}

int output_write(struct output *output, struct writer_window *window)
{
	(void)output, (void)window;
	fail_msg("a window for clients is no file");
	return -EIO;
}

static struct process living[] = {
	{.id = {.tgid = 7, .generation = 2}},
	{.id = {.tgid = 8, .generation = 1}},
	{.id = {.tgid = 9, .generation = 1}, .exit_ns = 5},
};

struct process *process_table_find_tgid(const struct process_table *table, uint32_t tgid)
{
	(void)table;
	for (size_t i = 0; i < ARRAY_SIZE(living); i++)
		if (living[i].id.tgid == tgid)
			return &living[i];
	return NULL;
}

struct process *process_table_find(const struct process_table *table, struct pp_process_id id)
{
	struct process *process = process_table_find_tgid(table, id.tgid);

	return process && process->id.generation == id.generation ? process : NULL;
}

bool live_may_see(uid_t uid, uint32_t tgid)
{
	assert_int_equal(uid, 1000);
	questions++;
	return tgid != 8;
}

/* ---- */

static struct top *watched(const struct live_request *request, uid_t uid, enum options_clock clock)
{
	static struct options options;
	struct top *top;

	options = (struct options){.events = clock == OPTIONS_CLOCK_CYCLES
						     ? PP_CAPTURE_CPU
						     : PP_CAPTURE_CPU | PP_CAPTURE_OFFCPU,
				   .hz = 100,
				   .clock = clock};
	has_gone = false;
	refused = 0;
	jobs[0] = (struct live_job){.number = 1, .uid = uid, .request = *request};
	jobs_waiting = 1;
	assert_int_equal(top_new(&options, NULL, NULL, &top), 0);
	assert_true(top_due_ns(top, 1000) == UINT64_MAX);
	top_serve(top, 1);
	assert_int_equal(jobs_waiting, 0);
	return top;
}

static struct top *watched_events(const struct live_request *request, uid_t uid, uint32_t events)
{
	static struct options options;
	struct top *top;

	options = (struct options){.events = events, .hz = 100};
	has_gone = false;
	refused = 0;
	jobs[0] = (struct live_job){.number = 1, .uid = uid, .request = *request};
	jobs_waiting = 1;
	assert_int_equal(top_new(&options, NULL, NULL, &top), 0);
	top_serve(top, 1);
	assert_int_equal(refused, 0);
	return top;
}

static struct top *watched_by(uid_t uid, uint32_t pid, enum options_clock clock)
{
	struct live_request request = {.verb = LIVE_TOP};

	if (pid)
		request.pid[request.pid_count++] = pid;
	return watched(&request, uid, clock);
}

static void add(struct top *top, struct intern *strings, struct pp_process_id id, uint32_t kind,
		uint64_t weight)
{
	struct profile_sample sample = {
		.frame_count = 2,
		.label = {{.key = "pid", .is_number = 1, .number = id.tgid}, {.key = "cgroup"}},
		.label_count = 2,
	};
	const struct pp_count_key key = {.id = id, .kind = kind};
	const struct pp_count count = {.samples = 1, .weight = weight};
	struct frame frame[] = {{.kind = FRAME_KERNEL, .address = KERNEL_ADDRESS},
				{.kind = FRAME_PYTHON}};
	char name[32];

	snprintf(name, sizeof(name), "f%u_%u", id.tgid, id.generation);
	assert_int_equal(intern_string(strings, "do_syscall_64", &frame[0].name), 0);
	assert_int_equal(intern_string(strings, name, &frame[1].name), 0);
	assert_int_equal(intern_string(strings, "secret", &sample.label[1].string), 0);
	sample.frame = frame;
	top_add(top, &key, &count, &sample);
	/* What others get of it, the files included. */
	assert_ptr_equal(sample.frame, frame);
	assert_int_equal(frame[0].address, KERNEL_ADDRESS);
}

/* One window of samples, each worth another power of ten. */
static void fill_window(struct top *top)
{
	OWNED(intern) struct intern *strings = NULL;

	assert_int_equal(intern_new(&strings), 0);
	top_begin(top, strings, 5);
	add(top, strings, (struct pp_process_id){7, 1}, PP_KIND_CPU, 1);
	add(top, strings, (struct pp_process_id){7, 2}, PP_KIND_CPU, 10);
	add(top, strings, (struct pp_process_id){7, 2}, PP_KIND_WAIT, 100);
	add(top, strings, (struct pp_process_id){7, 2}, PP_KIND_BLAME, 1000);
	add(top, strings, (struct pp_process_id){8, 1}, PP_KIND_CPU, 10000);
	add(top, strings, (struct pp_process_id){9, 1}, PP_KIND_CPU, 100000);
	add(top, strings, (struct pp_process_id){10, 1}, PP_KIND_CPU, 1000000);
	top_end(top, &(struct top_facts){.duration_ns = 77, .comment = "samples=5"}, NULL);
}

static size_t count_addresses(const struct profile *profile)
{
	size_t count = 0;

	for (uint32_t i = 0; i < profile->stacks.location_count; i++)
		count += profile->stacks.location[i].address != 0;
	return count;
}

static size_t pushed_addresses; /* of the kernel, in what pushed_sum() read */

/* The sum of what was sent; no label but those that are shown. */
static int64_t pushed_sum(void)
{
	const struct profile_read_options options = {};
	OWNED(profile_reader) struct profile_reader *reader = NULL;
	OWNED_FD int fd = memfd_create("window", 0);
	const struct profile *profile;
	char *file = memchr(pushed, '\n', pushed_size);
	size_t size;
	int64_t sum = 0;

	assert_int_equal(sscanf(pushed, "window\t%zu\t1\n", &size), 1);
	assert_int_equal(pushed + pushed_size - (file + 1), size);
	assert_int_equal(write_full(fd, file + 1, size), 0);
	assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
	assert_int_equal(profile_reader_new(&options, &reader), 0);
	assert_int_equal(profile_reader_add(reader, fd, "wall"), 0);
	profile = profile_reader_profile(reader);
	pushed_addresses = count_addresses(profile);
	for (uint32_t i = 0; i < profile->row_count; i++) {
		sum += profile_row_values(profile, i)[0];
		assert_null(profile_find_label(profile, profile->row[i].label_set, "cgroup"));
	}
	return sum;
}

static void top__users_see_the_programs_that_run_now(void **state)
{
	OWNED(top) struct top *top = watched_by(1000, 0, OPTIONS_CLOCK_CPU);

	(void)state;
	fill_window(top);
	assert_int_equal(pushed_sum(), 110);
	assert_int_equal(pushed_addresses, 0);
}

/* Rows of many processes come in any order, and each answer takes several reads of /proc. */
static void top__rights_are_asked_for_once_a_window(void **state)
{
	OWNED(top) struct top *top = watched_by(1000, 0, OPTIONS_CLOCK_CPU);
	OWNED(intern) struct intern *strings = NULL;

	(void)state;
	assert_int_equal(intern_new(&strings), 0);
	for (unsigned int window = 1; window <= 2; window++) {
		questions = 0;
		top_begin(top, strings, 5);
		for (unsigned int i = 0; i < 100; i++) {
			add(top, strings, (struct pp_process_id){7, 2}, PP_KIND_CPU, 1);
			add(top, strings, (struct pp_process_id){8, 1}, PP_KIND_CPU, 1000);
			add(top, strings, (struct pp_process_id){7, 1}, PP_KIND_CPU, 1000);
		}
		top_end(top, &(struct top_facts){.duration_ns = 77}, NULL);
		assert_int_equal(questions, 2);
		assert_int_equal(pushed_sum(), 100);
	}
}

static void top__root_sees_all(void **state)
{
	OWNED(top) struct top *top = watched_by(0, 0, OPTIONS_CLOCK_CPU);

	(void)state;
	fill_window(top);
	assert_int_equal(pushed_sum(), 1110111);
	assert_int_equal(pushed_addresses, 1);
}

static void top__those_that_were_named(void **state)
{
	OWNED(top) struct top *top = watched_by(0, 8, OPTIONS_CLOCK_CPU);

	(void)state;
	fill_window(top);
	assert_int_equal(pushed_sum(), 10000);
}

static void top__first_at_once_then_each_second(void **state)
{
	OWNED(top) struct top *top = watched_by(0, 0, OPTIONS_CLOCK_CPU);
	uint64_t now_ns = mono_ns();

	(void)state;
	assert_true(top_due_ns(top, now_ns) == now_ns);
	fill_window(top);
	assert_true(top_due_ns(top, now_ns) == now_ns + NS_PER_SEC);
	/* It has cost something: not before that is paid for. */
	assert_true(top_due_ns(top, 0) > now_ns);
	pushes = 0;
	has_gone = true;
	fill_window(top);
	assert_int_equal(pushes, 0);
	assert_true(top_due_ns(top, now_ns) == UINT64_MAX);
}

/* A client that has gone in the middle of a window misses the rest; one that comes waits for the
 * next. */
static void top__clients_come_and_go_in_the_middle_of_a_window(void **state)
{
	OWNED(top) struct top *top = watched_by(0, 0, OPTIONS_CLOCK_CPU);
	OWNED(intern) struct intern *strings = NULL;

	(void)state;
	pushes = 0;
	assert_int_equal(intern_new(&strings), 0);
	top_begin(top, strings, 5);
	add(top, strings, (struct pp_process_id){7, 1}, PP_KIND_CPU, 1);
	has_gone = true;
	top_serve(top, 1);
	has_gone = false;
	jobs[0].number = 2;
	jobs_waiting = 1;
	top_serve(top, 1);
	add(top, strings, (struct pp_process_id){7, 1}, PP_KIND_CPU, 1);
	assert_false(top_end(top, &(struct top_facts){.duration_ns = 77}, NULL));
	assert_int_equal(pushes, 0);
	fill_window(top);
	assert_int_equal(pushes, 1);
}

static void top__one_client_is_served_in_each_slice_that_is_over(void **state)
{
	static const struct slice over = {.ends_ns = 1};
	const struct top_facts facts = {.duration_ns = 77, .spent_ns = NS_PER_SEC};
	OWNED(top) struct top *top = watched_by(0, 0, OPTIONS_CLOCK_CPU);
	OWNED(intern) struct intern *strings = NULL;

	(void)state;
	pushes = 0;
	jobs[0].number = 2;
	jobs_waiting = 1;
	top_serve(top, 1);
	assert_int_equal(intern_new(&strings), 0);
	top_begin(top, strings, 5);
	add(top, strings, (struct pp_process_id){7, 1}, PP_KIND_CPU, 1);
	assert_true(top_end(top, &facts, &over));
	assert_int_equal(pushes, 1);
	assert_false(top_end(top, &facts, &over));
	assert_int_equal(pushes, 2);
	/* Clients pay for all that the window has cost. */
	assert_true(top_due_ns(top, 0) > mono_ns() + 8 * NS_PER_SEC);
}

static void top__cycles_are_no_time(void **state)
{
	OWNED(top) struct top *top = watched_by(0, 0, OPTIONS_CLOCK_CYCLES);

	(void)state;
	assert_int_equal(refused, -ENOTSUP);
	assert_true(top_due_ns(top, 1) == UINT64_MAX);
	top_serve(NULL, 1);
	top_begin(NULL, NULL, 1);
	assert_false(top_end(NULL, &(struct top_facts){.duration_ns = 1}, NULL));
	assert_false(top_wants_comment(NULL));
	assert_true(top_due_ns(NULL, 1) == UINT64_MAX);
}

/* ---- those who ask for kinds ---- */

struct kind_sums {
	int64_t value[3];
	size_t rows, cgroups, facts, addresses;
};

static void read_profile(const char *file, size_t size, const char *kind,
			 struct kind_sums *ret_sums)
{
	const struct profile_read_options options = {};
	OWNED(profile_reader) struct profile_reader *reader = NULL;
	OWNED_FD int fd = memfd_create("window", 0);
	const struct profile *profile;

	assert_int_equal(write_full(fd, file, size), 0);
	assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
	assert_int_equal(profile_reader_new(&options, &reader), 0);
	assert_int_equal(profile_reader_add(reader, fd, kind), 0);
	profile = profile_reader_profile(reader);
	*ret_sums = (struct kind_sums){.rows = profile->row_count,
				       .addresses = count_addresses(profile)};
	for (uint32_t i = 0; i < profile->row_count; i++) {
		for (size_t v = 0; v < profile->options.value_count; v++)
			ret_sums->value[v] += profile_row_values(profile, i)[v];
		ret_sums->cgroups +=
			!!profile_find_label(profile, profile->row[i].label_set, "cgroup");
	}
	for (uint32_t i = 0; i < profile->comment_count; i++)
		ret_sums->facts += facts_are_of_window(
			intern_get(profile->strings, profile->comment[i], NULL));
}

/* The windows of one part: their kinds in the order in which they came, and what they hold. */
static size_t pushed_kinds(struct kind_sums ret_sums[PP_PROFILE_COUNT],
			   enum pp_profile ret_kind[PP_PROFILE_COUNT])
{
	const char *at = pushed, *end = pushed + pushed_size;
	size_t count = 0;

	while (at < end) {
		unsigned long long size, flags;
		const char *file = memchr(at, '\n', (size_t)(end - at));

		assert_non_null(file++);
		assert_int_equal(sscanf(at, "window\t%llu\t%llu\n", &size, &flags), 2);
		assert_true(count < PP_PROFILE_COUNT && size <= (size_t)(end - file));
		assert_true(flags & LIVE_WINDOW_WAITS);
		ret_kind[count] = (enum pp_profile)((flags >> LIVE_WINDOW_KIND_SHIFT) - 1);
		read_profile(file, size, kind_get(ret_kind[count])->name, &ret_sums[count]);
		at = file + size;
		count++;
	}
	return count;
}

static void kinds__are_sent_in_one_part_with_all_labels(void **state)
{
	/* No counters of the GIL are recorded. */
	const struct live_request request = {
		.verb = LIVE_TOP,
		.kinds = 1U << PP_PROFILE_GIL | 1U << PP_PROFILE_OFFCPU | 1U << PP_PROFILE_CPU};
	OWNED(top) struct top *top = watched(&request, 0, OPTIONS_CLOCK_CPU);
	struct kind_sums sums[PP_PROFILE_COUNT];
	enum pp_profile kind[PP_PROFILE_COUNT];

	(void)state;
	assert_true(top_wants_comment(top));
	pushes = 0;
	fill_window(top);
	assert_int_equal(pushes, 1);
	assert_int_equal(pushed_kinds(sums, kind), 2);
	assert_int_equal(kind[0], PP_PROFILE_CPU);
	assert_int_equal(kind[1], PP_PROFILE_OFFCPU);
	/* samples and ns; ns and events. */
	assert_int_equal(sums[0].value[0], 5);
	assert_int_equal(sums[0].value[1], 1110011);
	assert_int_equal(sums[1].value[0], 100);
	assert_int_equal(sums[1].value[1], 1);
	assert_int_equal(sums[0].cgroups, sums[0].rows);
	assert_int_equal(sums[1].cgroups, sums[1].rows);
	/* The first is of a time before it was asked. */
	assert_int_equal(sums[0].facts, 0);
	fill_window(top);
	assert_int_equal(pushed_kinds(sums, kind), 2);
	assert_int_equal(sums[0].facts, 1);
	assert_int_equal(sums[0].addresses, 1);
}

static void kinds__of_users_are_of_their_programs_that_run_now(void **state)
{
	const struct live_request request = {.verb = LIVE_TOP,
					     .kinds = 1U << PP_PROFILE_CPU | 1U << PP_PROFILE_WALL};
	OWNED(top) struct top *top = watched(&request, 1000, OPTIONS_CLOCK_CPU);
	struct kind_sums sums[PP_PROFILE_COUNT];
	enum pp_profile kind[PP_PROFILE_COUNT];

	(void)state;
	assert_false(top_wants_comment(top));
	fill_window(top);
	fill_window(top);
	assert_int_equal(pushed_kinds(sums, kind), 2);
	assert_int_equal(sums[0].value[1], 10);
	assert_int_equal(kind[1], PP_PROFILE_WALL);
	assert_int_equal(sums[1].value[0], 110);
	assert_int_equal(sums[0].facts, 0);
	assert_int_equal(sums[0].addresses + sums[1].addresses, 0);
}

/* Reads the window's file of records: how many rows there are, with one pid or all (0), and the sum
 * of their first values. */
static uint32_t count_records(uint32_t pid, int64_t *ret_sum)
{
	const struct profile_read_options options = {};
	OWNED(profile_reader) struct profile_reader *reader = NULL;
	OWNED_FD int fd = memfd_create("window", 0);
	const char *at = pushed, *end = pushed + pushed_size;
	const struct profile *profile;
	uint32_t found = 0;

	*ret_sum = 0;
	assert_int_equal(profile_reader_new(&options, &reader), 0);
	/* It is the last file of a window. */
	for (const char *next; (next = memmem(at + 1, (size_t)(end - at - 1), "\x1f\x8b", 2));)
		at = next;
	assert_int_equal(write_full(fd, at, (size_t)(end - at)), 0);
	assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
	if (profile_reader_add(reader, fd, NULL))
		return 0;
	profile = profile_reader_profile(reader);
	for (uint32_t i = 0; i < profile->row_count; i++)
		if (!pid || record_number(profile, i, "pid") == pid) {
			found++;
			*ret_sum += profile_row_values(profile, i)[0];
		}
	return found;
}

/* Sends a window with the memory of three processes, of which 8 is another user's, and of many. */
static void fill_memory(struct top *top, uint32_t more)
{
	const struct pp_process_id id[] = {{7, 2}, {8, 1}, {10, 1}};
	OWNED(intern) struct intern *strings = NULL;
	struct record record;

	assert_int_equal(intern_new(&strings), 0);
	top_begin(top, strings, 5);
	for (uint32_t i = 0; i < ARRAY_SIZE(id) + more; i++) {
		const struct pp_process_id of =
			i < ARRAY_SIZE(id) ? id[i] : (struct pp_process_id){1000 + i, 1};

		assert_int_equal(record_begin(&record, strings, PP_PROFILE_RESIDENT, of, "a"), 0);
		for (unsigned int j = 0; j < 2; j++) {
			record_next(&record);
			record.sample.value[0] = 3;
			assert_int_equal(record_about(&record, strings, "memory", j ? "b" : "a"),
					 0);
			top_add_record(top, &record);
		}
	}
	top_end(top, &(struct top_facts){.duration_ns = 77}, NULL);
}

static void records__users_get_those_of_their_own_processes_only(void **state)
{
	const struct live_request request = {.verb = LIVE_TOP, .kinds = 1U << PP_PROFILE_RESIDENT};
	OWNED(top) struct top *top = watched_events(&request, 1000, PP_CAPTURE_MEM);
	int64_t sum;

	(void)state;
	assert_true(top_wants(top, 1U << PP_PROFILE_RESIDENT));
	fill_memory(top, 0);
	assert_int_equal(count_records(0, &sum), 2);
	assert_int_equal(count_records(7, &sum), 2);
	assert_int_equal(sum, 6);
}

/* A GPU is the machine's; which processes are on it is not told. */
static void records__of_a_device_are_for_everybody(void **state)
{
	const struct live_request request = {
		.verb = LIVE_TOP, .kinds = 1U << PP_PROFILE_GPU, .pid_count = 1, .pid = {7}};
	OWNED(top) struct top *top = watched_events(&request, 1000, PP_CAPTURE_CUDA);
	OWNED(intern) struct intern *strings = NULL;
	struct record record;
	int64_t sum;

	(void)state;
	assert_int_equal(intern_new(&strings), 0);
	top_begin(top, strings, 5);
	for (uint32_t pid = 0; pid < 9; pid++) {
		const struct pp_process_id id = {pid, pid ? 2 : 0};

		assert_int_equal(record_begin(&record, strings, PP_PROFILE_GPU, id, pid ? "a" : ""),
				 0);
		record.sample.value[0] = pid + 1;
		top_add_record(top, &record);
	}
	top_end(top, &(struct top_facts){.duration_ns = 77}, NULL);
	assert_int_equal(count_records(0, &sum), 2);
	assert_int_equal(sum, 1 + 8);
	assert_int_equal(count_records(7, &sum), 1);
}

/* Of processes that have no rows it is not known whose they are. */
static void records__of_several_processes_are_for_root(void **state)
{
	const struct live_request all = {.verb = LIVE_TOP, .kinds = 1U << PP_PROFILE_LEDGER};
	const struct live_request one = {
		.verb = LIVE_TOP, .kinds = 1U << PP_PROFILE_LEDGER, .pid_count = 1, .pid = {7}};
	const struct {
		const struct live_request *request;
		uid_t uid;
		uint32_t rows;
	} who[] = {{&all, 0, 1}, {&all, 1000, 0}, {&one, 0, 0}};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(who); i++) {
		OWNED(top) struct top *top =
			watched_events(who[i].request, who[i].uid, PP_CAPTURE_OFFCPU);
		OWNED(intern) struct intern *strings = NULL;
		struct record record;
		int64_t sum;

		assert_int_equal(intern_new(&strings), 0);
		top_begin(top, strings, 5);
		assert_int_equal(record_begin(&record, strings, PP_PROFILE_LEDGER,
					      (struct pp_process_id){}, RECORD_OTHERS),
				 0);
		record.sample.value[0] = 5;
		top_add_record(top, &record);
		top_end(top, &(struct top_facts){.duration_ns = 77}, NULL);
		assert_int_equal(count_records(0, &sum), who[i].rows);
	}
}

static void records__processes_beyond_256_share_rows(void **state)
{
	const struct live_request request = {.verb = LIVE_TOP, .kinds = 1U << PP_PROFILE_RESIDENT};
	OWNED(top) struct top *top = watched_events(&request, 0, PP_CAPTURE_MEM);
	int64_t sum;

	(void)state;
	for (unsigned int i = 0; i < 2; i++) {
		fill_memory(top, 0);
		assert_int_equal(count_records(0, &sum), 6);
		fill_memory(top, 300);
		assert_int_equal(count_records(0, &sum), 2 * (RECORD_PROCESSES_MAX + 1));
		assert_int_equal(sum, 2 * 3 * 303);
	}
}

static void records__only_who_asks_for_their_kind(void **state)
{
	const struct live_request request = {.verb = LIVE_TOP, .kinds = 1U << PP_PROFILE_MEM};
	OWNED(top) struct top *top = watched_events(&request, 0, PP_CAPTURE_MEM);
	int64_t sum;

	(void)state;
	assert_false(top_wants(top, 1U << PP_PROFILE_RESIDENT));
	assert_false(top_wants(NULL, UINT32_MAX));
	fill_memory(top, 0);
	assert_int_equal(count_records(0, &sum), 0);
}

static void kinds__that_are_not_recorded_are_refused(void **state)
{
	const struct live_request gil = {.verb = LIVE_TOP, .kinds = 1U << PP_PROFILE_GIL};
	const struct live_request cpu = {.verb = LIVE_TOP, .kinds = 1U << PP_PROFILE_CPU};

	(void)state;
	top_free(watched(&gil, 0, OPTIONS_CLOCK_CPU));
	assert_int_equal(refused, -ENOTSUP);
	/* Cycles are fine for who asks for kind cpu: the profile says what it counts. */
	top_free(watched(&cpu, 0, OPTIONS_CLOCK_CYCLES));
	assert_int_equal(refused, 0);
}

static int end_group(void **state)
{
	(void)state;
	free(pushed);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(top__users_see_the_programs_that_run_now),
		cmocka_unit_test(top__rights_are_asked_for_once_a_window),
		cmocka_unit_test(top__root_sees_all),
		cmocka_unit_test(top__those_that_were_named),
		cmocka_unit_test(top__first_at_once_then_each_second),
		cmocka_unit_test(top__clients_come_and_go_in_the_middle_of_a_window),
		cmocka_unit_test(top__one_client_is_served_in_each_slice_that_is_over),
		cmocka_unit_test(top__cycles_are_no_time),
		cmocka_unit_test(kinds__are_sent_in_one_part_with_all_labels),
		cmocka_unit_test(kinds__of_users_are_of_their_programs_that_run_now),
		cmocka_unit_test(records__users_get_those_of_their_own_processes_only),
		cmocka_unit_test(records__processes_beyond_256_share_rows),
		cmocka_unit_test(records__of_a_device_are_for_everybody),
		cmocka_unit_test(records__of_several_processes_are_for_root),
		cmocka_unit_test(records__only_who_asks_for_their_kind),
		cmocka_unit_test(kinds__that_are_not_recorded_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, end_group);
}
