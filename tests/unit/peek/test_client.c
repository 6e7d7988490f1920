/* SPDX-License-Identifier: BSD-2-Clause */
/* Reading through a child that is a fake in this file, as are time and whose process is whose. */
#include "peek/client.h"

#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "child/worker.h"
#include "peek/child.h"

#define TASK 70
#define USER 1000U
#define START 0x10000ULL /* of the memory that each process has */

static uint64_t now_ns;

int clock_gettime(clockid_t clock, struct timespec *time)
{
	(void)clock;
	*time = (struct timespec){.tv_sec = (time_t)(now_ns / NS_PER_SEC),
				  .tv_nsec = (long)(now_ns % NS_PER_SEC)};
	return 0;
}

/* Tasks up to 99 are root's, above 199 there are none. */
int stat(const char *restrict path, struct stat *restrict status)
{
	int tid = 0;

	memset(status, 0xee, sizeof(*status));
	if (sscanf(path, "/proc/%d", &tid) != 1 || tid >= 200)
		return -1;
	status->st_uid = tid < 100 ? 0 : USER;
	return 0;
}

/* ---- the child ---- */

#define REQUESTS 64U

static struct {
	struct peek_request request[REQUESTS];
	unsigned int limit_ms[REQUESTS];
	unsigned int asked;
	int result, error; /* worker_ask()'s, the child's */
	const char *text;  /* of the maps */
	uint32_t size;	   /* of an answer about something else */
	int fd;
	unsigned int awaited, freed;
} child;
static uint8_t shared[PEEK_MEMORY_BYTES];
static struct worker *const the_worker = (struct worker *)&child;

int worker_new(const struct worker_kind *kind, const char *program, int peer,
	       struct worker **ret_worker)
{
	assert_int_equal(kind->kind, CHILD_MEMORY);
	assert_int_equal(kind->memory_bytes, PEEK_MEMORY_BYTES);
	/* What it reads may come late; its own time says nothing. */
	assert_false(kind->is_computing);
	assert_int_equal(peer, -1);
	if (strcmp(program, "/a/program") != 0)
		return -ENOMEM;
	*ret_worker = the_worker;
	return 0;
}

void worker_free(struct worker *worker)
{
	child.freed += worker == the_worker;
}

bool worker_await(struct worker *worker)
{
	assert_ptr_equal(worker, the_worker);
	child.awaited++;
	return true;
}

void worker_answer_release(struct worker_answer *answer)
{
	if (answer->fd >= 0)
		close(answer->fd);
}

const uint8_t *worker_memory(const struct worker *worker)
{
	assert_ptr_equal(worker, the_worker);
	return shared;
}

void worker_wipe(struct worker *worker, size_t bytes)
{
	assert_ptr_equal(worker, the_worker);
	memset(shared, 0, bytes);
}

void worker_get_stats(struct worker *worker, struct worker_stats *ret_stats)
{
	assert_ptr_equal(worker, the_worker);
	*ret_stats = (struct worker_stats){.starts = 3, .cpu_ns = 4000};
}

static uint8_t byte_at(uint64_t address)
{
	return (uint8_t)(address * 0x9e3779b97f4a7c15ULL >> 56);
}

static uint32_t answer_text(const struct peek_request *request)
{
	const size_t length = strlen(child.text), at = request->piece[0].address;
	size_t size = length - at;

	assert_int_equal(request->piece[0].size, PEEK_MEMORY_BYTES);
	assert_true(at <= length);
	if (size > PEEK_MEMORY_BYTES)
		size = PEEK_MEMORY_BYTES;
	memcpy(shared, child.text + at, size);
	return (uint32_t)size;
}

int worker_ask(struct worker *worker, const struct worker_request *asked,
	       struct worker_answer *ret_answer)
{
	struct peek_request *request = &child.request[child.asked];
	struct worker_answer answer = {.fd = child.fd,
				       .reply = {.error = child.error, .size = child.size}};
	uint8_t *to = shared;

	assert_ptr_equal(worker, the_worker);
	assert_true(child.asked < REQUESTS);
	assert_null(asked->fd);
	memset(request, 0, sizeof(*request));
	memcpy(request, asked->message, asked->bytes);
	assert_true(peek_request_is_sound(request, asked->bytes));
	child.limit_ms[child.asked++] = asked->limit_ms;
	if (child.result)
		return child.result;
	if (request->kind == PEEK_MAPS && !child.error)
		answer.reply.size = answer_text(request);
	for (uint32_t i = 0; request->kind == PEEK_READ && i < request->count; i++)
		for (uint32_t k = 0; k < request->piece[i].size; k++)
			*to++ = byte_at(request->piece[i].address + k);
	*ret_answer = answer;
	return 0;
}

/* ---- */

static struct peek *peek;

static int setup(void **state)
{
	(void)state;
	now_ns = 1000 * NS_PER_SEC;
	memset(&child, 0, sizeof(child));
	child.fd = -1;
	memset(shared, 0, sizeof(shared));
	return peek_new("/a/program", &peek);
}

static int teardown(void **state)
{
	(void)state;
	peek_free(peek);
	assert_int_equal(child.freed, 1);
	peek_free(NULL);
	assert_int_equal(child.freed, 1);
	return 0;
}

static struct peek_stats stats(void)
{
	struct peek_stats found;

	peek_get_stats(peek, &found);
	return found;
}

static int read_of(pid_t tid)
{
	uint64_t word = 0;
	const struct process_piece piece = {START, &word, sizeof(word)};

	return peek_read(peek, tid, &piece, 1);
}

/* Makes a read of a task late. */
static void be_late(pid_t tid)
{
	child.result = -ETIME;
	assert_int_equal(read_of(tid), -ETIMEDOUT);
	child.result = 0;
}

static void peek_new__lack_of_memory_is_told(void **state)
{
	struct peek *other = NULL;

	(void)state;
	assert_int_equal(peek_new("/another", &other), -ENOMEM);
	assert_null(other);
	peek_await(peek);
	assert_int_equal(child.awaited, 1);
}

/* ---- memory ---- */

/* Reads pieces of these sizes, each at another address; expects so many requests. */
static void expect_read(const size_t *size, size_t count, unsigned int requests)
{
	struct process_piece piece[4 * PROCESS_PIECES_MAX];
	uint8_t *bytes[4 * PROCESS_PIECES_MAX];

	for (size_t i = 0; i < count; i++) {
		bytes[i] = malloc(size[i] + 1);
		assert_non_null(bytes[i]);
		piece[i] = (struct process_piece){START + (i << 24), bytes[i], size[i]};
	}
	child.asked = 0;
	assert_int_equal(peek_read(peek, TASK, piece, count), 0);
	assert_int_equal(child.asked, requests);
	for (size_t i = 0; i < count; i++) {
		for (size_t k = 0; k < size[i]; k++)
			if (bytes[i][k] != byte_at(piece[i].address + k))
				fail_msg("piece %zu of %zu: byte %zu", i, count, k);
		free(bytes[i]);
	}
	for (unsigned int i = 0; i < requests; i++) {
		assert_int_equal(child.request[i].kind, PEEK_READ);
		assert_int_equal(child.request[i].tid, TASK);
		assert_int_equal(child.limit_ms[i], PEEK_DEADLINE_NS / NS_PER_MS);
	}
}

static void peek_read__pieces_go_into_as_few_requests_as_fit(void **state)
{
	size_t many[4 * PROCESS_PIECES_MAX];

	(void)state;
	expect_read((size_t[]){8}, 1, 1);
	expect_read((size_t[]){8, 100, 1}, 3, 1);
	expect_read((size_t[]){PEEK_MEMORY_BYTES}, 1, 1);
	expect_read((size_t[]){PEEK_MEMORY_BYTES - 8, 8}, 2, 1);
	expect_read((size_t[]){PEEK_MEMORY_BYTES, 8}, 2, 2);
	expect_read((size_t[]){PEEK_MEMORY_BYTES + 1}, 1, 2);
	expect_read((size_t[]){PEEK_MEMORY_BYTES - 1, 8}, 2, 2);
	expect_read((size_t[]){10, 3 * PEEK_MEMORY_BYTES, 10}, 3, 4);
	expect_read((size_t[]){10, 2 * PEEK_MEMORY_BYTES - 20, 10, 1}, 4, 3);
	for (size_t i = 0; i < ARRAY_SIZE(many); i++)
		many[i] = i % 7 + 1;
	expect_read(many, PROCESS_PIECES_MAX, 1);
	expect_read(many, PROCESS_PIECES_MAX + 1, 2);
	expect_read(many, ARRAY_SIZE(many), 4);
	assert_int_equal(stats().reads, 12);
	assert_int_equal(stats().left_alone, 0);
}

static void peek_read__error_ends_it(void **state)
{
	static uint8_t bytes[2 * PEEK_MEMORY_BYTES];
	const struct process_piece piece = {START, bytes, sizeof(bytes)};

	(void)state;
	child.error = -EFAULT;
	assert_int_equal(peek_read(peek, TASK, &piece, 1), -EFAULT);
	assert_int_equal(child.asked, 1);
	assert_int_equal(bytes[0], 0);
	child.error = 0;
	child.result = -EPIPE;
	assert_int_equal(peek_read(peek, TASK, &piece, 1), -ETIMEDOUT);
	assert_int_equal(stats().left_alone, 1);
	assert_int_equal(stats().late, 0);
	/* The child was to blame, not the process. */
	child.result = 0;
	assert_int_equal(peek_read(peek, TASK, &piece, 1), 0);
	assert_int_equal(stats().reads, 3);
}

/* ---- who was late ---- */

static void peek_read__late_process_is_left_alone_for_a_time(void **state)
{
	(void)state;
	be_late(TASK);
	assert_int_equal(stats().late, 1);
	assert_int_equal(stats().left_alone, 0);
	assert_int_equal(read_of(TASK), -ETIMEDOUT);
	now_ns += LATE_ALONE_NS - 1;
	assert_int_equal(read_of(TASK), -ETIMEDOUT);
	assert_int_equal(child.asked, 1);
	assert_int_equal(stats().left_alone, 2);
	assert_int_equal(read_of(TASK + 1), 0);
	now_ns++;
	assert_int_equal(read_of(TASK), 0);
	/* Root's others are as before. */
	assert_int_equal(child.limit_ms[2], PEEK_DEADLINE_NS / NS_PER_MS);
}

static void peek_read__users_others_have_less_time(void **state)
{
	(void)state;
	be_late(100);
	assert_int_equal(read_of(101), 0);
	assert_int_equal(child.limit_ms[1], PEEK_SUSPECT_MS);
	assert_int_equal(read_of(TASK), 0);
	assert_int_equal(child.limit_ms[2], PEEK_DEADLINE_NS / NS_PER_MS);
	/* Whose process is not there is nobody's. */
	assert_int_equal(read_of(200), 0);
	assert_int_equal(child.limit_ms[3], PEEK_DEADLINE_NS / NS_PER_MS);
	now_ns += LATE_USER_ALONE_NS - 1;
	assert_int_equal(read_of(101), 0);
	assert_int_equal(child.limit_ms[4], PEEK_SUSPECT_MS);
	now_ns++;
	assert_int_equal(read_of(101), 0);
	assert_int_equal(child.limit_ms[5], PEEK_DEADLINE_NS / NS_PER_MS);
}

static void peek_read__user_of_several_late_ones_is_left_alone(void **state)
{
	char *text = NULL;
	size_t size;

	(void)state;
	for (unsigned int i = 0; i < LATE_USER_MAX; i++)
		be_late(100 + (pid_t)i);
	now_ns += LATE_ALONE_NS;
	assert_int_equal(read_of(120), -ETIMEDOUT);
	assert_int_equal(peek_read_maps(peek, 120, 100, &text, &size), -ETIMEDOUT);
	assert_int_equal(child.asked, LATE_USER_MAX);
	assert_int_equal(stats().left_alone, 2);
	assert_int_equal(read_of(TASK), 0);
	assert_int_equal(read_of(200), 0);
	now_ns += LATE_USER_ALONE_NS - LATE_ALONE_NS - 1;
	assert_int_equal(read_of(120), -ETIMEDOUT);
	now_ns++;
	assert_int_equal(read_of(120), 0);
}

/* ---- mappings ---- */

static void expect_text(size_t length, size_t max, int expected, unsigned int requests)
{
	char *text = malloc(length + 1), *got = NULL;
	size_t size = 4711;

	assert_non_null(text);
	for (size_t i = 0; i < length; i++)
		text[i] = (char)('a' + byte_at(i) % 26);
	text[length] = '\0';
	child.text = text;
	child.asked = 0;
	assert_int_equal(peek_read_maps(peek, TASK, max, &got, &size), expected);
	assert_int_equal(child.asked, requests);
	if (expected) {
		assert_null(got);
		assert_int_equal(size, 4711);
	} else {
		assert_int_equal(size, length);
		assert_memory_equal(got, text, length + 1);
	}
	free(text);
	free(got);
}

static void peek_read_maps__text_comes_in_parts(void **state)
{
	(void)state;
	expect_text(0, 100, 0, 1);
	expect_text(100, 100, 0, 1);
	expect_text(101, 100, -EFBIG, 1);
	expect_text(PEEK_MEMORY_BYTES - 1, 1 << 20, 0, 1);
	expect_text(PEEK_MEMORY_BYTES, 1 << 20, 0, 2);
	expect_text(PEEK_MEMORY_BYTES + 100, PEEK_MEMORY_BYTES + 100, 0, 2);
	expect_text(PEEK_MEMORY_BYTES + 100, PEEK_MEMORY_BYTES + 99, -EFBIG, 2);
	expect_text(3 * PEEK_MEMORY_BYTES + 5, 1 << 20, 0, 4);
	assert_int_equal(stats().reads, 8);
	child.error = -ESRCH;
	expect_text(100, 100, -ESRCH, 1);
	child.result = -ETIME;
	expect_text(100, 100, -ETIMEDOUT, 1);
	assert_int_equal(stats().late, 1);
	/* It is left alone from now on. */
	child.result = child.error = 0;
	expect_text(100, 100, -ETIMEDOUT, 0);
	assert_int_equal(stats().left_alone, 1);
}

static void peek_get_stats__childs_figures_are_in_it(void **state)
{
	struct peek_stats untouched = {.reads = 77};

	(void)state;
	assert_int_equal(stats().starts, 3);
	assert_int_equal(stats().cpu_ns, 4000);
	peek_get_stats(NULL, &untouched);
	assert_int_equal(untouched.reads, 77);
	assert_ptr_equal(peek_access.read, peek_read);
	assert_ptr_equal(peek_access.read_maps, peek_read_maps);
}

/* ---- late_table ---- */

/* Lates count from the first one on, for as long as a user is left alone. */
static void late_table__lates_of_a_period_add_up(void **state)
{
	struct late_table table = {0};
	uint64_t now = NS_PER_SEC;

	(void)state;
	/* Three of the first period, and from the end of it on three more. */
	for (pid_t tid = 1; tid < (pid_t)LATE_USER_MAX; tid++)
		late_table_add(&table, tid, USER, now);
	assert_false(late_table_has_user(&table, USER, now));
	for (pid_t tid = 1; tid < (pid_t)LATE_USER_MAX; tid++)
		late_table_add(&table, tid, USER, now + LATE_USER_ALONE_NS + 1);
	now += LATE_USER_ALONE_NS + 1;
	assert_false(late_table_has_user(&table, USER, now));
	assert_int_equal(table.users_until_ns, 0);
	/* The second period lasts as long. */
	late_table_add(&table, 9, USER, now + LATE_USER_ALONE_NS);
	assert_true(late_table_has_user(&table, USER, now + LATE_USER_ALONE_NS));
	assert_int_equal(table.users_until_ns, now + 2 * LATE_USER_ALONE_NS);
	assert_int_equal(table.suspects_until_ns, now + 2 * LATE_USER_ALONE_NS);
}

/* ---- texts and directories ---- */

static void peek_read_text__leaves_nothing_behind(void **state)
{
	static const char secret[] = "TOKEN=canary";
	char *text;
	size_t size;

	(void)state;
	memcpy(shared, secret, sizeof(secret));
	child.size = sizeof(secret);
	assert_int_equal(
		peek_read_text(peek, TASK, PROCESS_ENVIRONMENT, sizeof(secret), &text, &size), 0);
	assert_int_equal(size, sizeof(secret));
	assert_string_equal(text, secret);
	free(text);
	assert_null(memmem(shared, sizeof(shared), "canary", 6));
}

static int list(void)
{
	char *entries;
	size_t size;
	int err = peek_list_logs(peek, PROCESS_LOGS_PODS, &entries, &size);

	if (!err)
		free(entries);
	return err;
}

static void peek_list_logs__is_given_up_before_all_children_are_stuck(void **state)
{
	(void)state;
	for (unsigned int i = 0; i < PEEK_HOST_LATE_MAX; i++) {
		child.result = -ETIME;
		assert_int_equal(list(), -ETIMEDOUT);
		child.result = 0;
		now_ns += PEEK_HOST_AGAIN_NS - 1;
		assert_int_equal(list(), -ETIMEDOUT);
		assert_int_equal(child.asked, i + 1);
		now_ns++;
	}
	now_ns += 1000 * PEEK_HOST_AGAIN_NS;
	assert_int_equal(list(), -ETIMEDOUT);
	assert_int_equal(child.asked, PEEK_HOST_LATE_MAX);
	assert_int_equal(read_of(TASK), 0);
}

static int read_users(void)
{
	char *text;
	size_t size;
	int err = peek_read_text(peek, getpid(), PROCESS_USERS, 4096, &text, &size);

	if (!err)
		free(text);
	return err;
}

/* The users' file lies where the directories lie: on a disk that may not answer. */
static void peek_read_text__users_and_directories_are_given_up_together(void **state)
{
	(void)state;
	child.result = -ETIME;
	assert_int_equal(read_users(), -ETIMEDOUT);
	child.result = 0;
	assert_int_equal(list(), -ETIMEDOUT);
	assert_int_equal(read_users(), -ETIMEDOUT);
	assert_int_equal(child.asked, 1);
	assert_int_equal(read_of(TASK), 0);
	now_ns += PEEK_HOST_AGAIN_NS;
	assert_int_equal(read_users(), 0);
	assert_int_equal(list(), 0);
}

static void peek_list_logs__answers_between_late_ones_count(void **state)
{
	(void)state;
	for (unsigned int i = 0; i < 2 * PEEK_HOST_LATE_MAX; i++) {
		child.result = -ETIME;
		assert_int_equal(list(), -ETIMEDOUT);
		child.result = 0;
		now_ns += PEEK_HOST_AGAIN_NS;
		assert_int_equal(list(), 0);
	}
}

static void late_table__entry_that_began_first_makes_room(void **state)
{
	struct late_table table = {0};

	(void)state;
	for (uint32_t i = 0; i < LATE_ENTRIES; i++)
		late_table_add(&table, (pid_t)(10 + i), 0, NS_PER_SEC + (i == 7 ? 0 : 1 + i));
	late_table_add(&table, 500, 0, 2 * NS_PER_SEC);
	for (uint32_t i = 0; i < LATE_ENTRIES; i++)
		assert_int_equal(late_table_has_task(&table, (pid_t)(10 + i), 2 * NS_PER_SEC),
				 i != 7);
	assert_true(late_table_has_task(&table, 500, 2 * NS_PER_SEC));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(peek_new__lack_of_memory_is_told),
		TEST(peek_read__pieces_go_into_as_few_requests_as_fit),
		TEST(peek_read__error_ends_it),
		TEST(peek_read__late_process_is_left_alone_for_a_time),
		TEST(peek_read__users_others_have_less_time),
		TEST(peek_read__user_of_several_late_ones_is_left_alone),
		TEST(peek_read_maps__text_comes_in_parts),
		TEST(peek_get_stats__childs_figures_are_in_it),
		TEST(peek_read_text__leaves_nothing_behind),
		TEST(peek_list_logs__is_given_up_before_all_children_are_stuck),
		TEST(peek_read_text__users_and_directories_are_given_up_together),
		TEST(peek_list_logs__answers_between_late_ones_count),
		TEST(late_table__lates_of_a_period_add_up),
		TEST(late_table__entry_that_began_first_makes_room),
	};

	return cmocka_run_group_tests_name("peek/client", tests, NULL, NULL);
}
