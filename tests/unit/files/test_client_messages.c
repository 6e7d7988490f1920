/* SPDX-License-Identifier: BSD-2-Clause */
/* What the client sends to the child, and what it takes of the answers: the child, its CPU time and
 * the clock are fakes in this file. */
#include "files/client.h"

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/clock.h"
#include "child/worker.h"
#include "files/protocol.h"
#include "files/user_time.h"
#include "peek/client.h"

#define NUMBER 1U
#define USER 1000U
#define PEER 70
#define LOCAL_PLACE 5
#define FILE_FD 90 /* and the debug files' from there on */
#define PAGE (1ULL << PP_PAGE_SHIFT)
#define FIRST (2 * PAGE) /* from there on are the rows that come with the facts */
#define REQUESTS 64U

static uint64_t now_ns;

int clock_gettime(clockid_t clock, struct timespec *time)
{
	(void)clock;
	*time = (struct timespec){.tv_sec = (time_t)(now_ns / NS_PER_SEC),
				  .tv_nsec = (long)(now_ns % NS_PER_SEC)};
	return 0;
}

/* ---- the child that opens files ---- */

static struct {
	const struct opener_debug *debug; /* of the last request */
	unsigned int asked;
	int fd;
} hand;

int opener_new(const char *program, struct opener **ret_opener)
{
	(void)program;
	*ret_opener = (struct opener *)&hand;
	return 0;
}

bool opener_await(struct opener *opener)
{
	return opener == (struct opener *)&hand;
}

void opener_free(struct opener *opener)
{
	(void)opener;
}

int opener_peer(const struct opener *opener)
{
	(void)opener;
	return PEER;
}

void opener_get_stats(const struct opener *opener, struct opener_stats *ret_stats)
{
	(void)opener;
	*ret_stats = (struct opener_stats){0};
}

bool opener_is_local(struct opener *opener, uint64_t place)
{
	(void)opener;
	return place == LOCAL_PLACE;
}

int opener_hand(struct opener *opener, const struct opener_file *file,
		const struct opener_debug *debug, uint32_t *ret_number, uint32_t *ret_files)
{
	(void)opener;
	hand.debug = debug;
	hand.fd = file->fd;
	*ret_number = ++hand.asked;
	*ret_files = (file->fd >= 0 ? FOREIGN_FILE_BIT : 0) | (debug ? FOREIGN_FILE_BIT << 2 : 0);
	return 0;
}

/* ---- the child ---- */

static uint8_t shared[FOREIGN_MEMORY_BYTES];
static struct {
	struct foreign_request request[REQUESTS];
	uint64_t vaddr[FOREIGN_MAX_NAMES]; /* of the last request */
	int fd[REQUESTS][1 + DEBUG_FILES_MAX];
	size_t fd_count[REQUESTS];
	unsigned int limit_ms[REQUESTS];
	unsigned int asked;
	int result; /* of asking */
	struct child_reply reply;
	/* What it says; NULL: `reply` alone. */
	void (*answer)(const struct foreign_request *request, struct child_reply *reply);
	int stale; /* so many requests get -ESTALE */
	uint64_t starts, cpu_ns, cpu_a_request_ns;
	unsigned int freed;
	bool is_held_up; /* for whatever is to blame */
	struct worker_blame blame;
} child;
static struct worker *const the_worker = (struct worker *)&child;

static int write_error; /* ENOSPC: no byte is written */

/* Some bytes at a time. */
ssize_t pwrite(int fd, const void *buffer, size_t size, off_t offset)
{
	if (write_error) {
		errno = write_error;
		return write_error == ENOSPC ? 0 : -1;
	}
	return syscall(SYS_pwrite64, fd, buffer, size < 1000 ? size : 1000, offset);
}

int worker_new(const struct worker_kind *kind, const char *program, int peer,
	       struct worker **ret_worker)
{
	assert_int_equal(kind->kind, CHILD_FILES);
	assert_int_equal(peer, PEER);
	assert_int_equal(kind->memory_bytes, FOREIGN_MEMORY_BYTES);
	assert_true(kind->is_computing);
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
	return worker == the_worker && child.starts;
}

void worker_answer_release(struct worker_answer *answer)
{
	assert_int_equal(answer->fd, -1);
}

const uint8_t *worker_memory(const struct worker *worker)
{
	assert_ptr_equal(worker, the_worker);
	return shared;
}

bool worker_is_held_up(struct worker *worker, const struct worker_blame *blame)
{
	assert_ptr_equal(worker, the_worker);
	return blame->what && child.is_held_up;
}

uint64_t worker_child(const struct worker *worker)
{
	assert_ptr_equal(worker, the_worker);
	return child.starts;
}

void worker_get_stats(struct worker *worker, struct worker_stats *ret_stats)
{
	assert_ptr_equal(worker, the_worker);
	*ret_stats = (struct worker_stats){.starts = child.starts, .cpu_ns = child.cpu_ns};
}

int worker_ask(struct worker *worker, const struct worker_request *asked,
	       struct worker_answer *ret_answer)
{
	const struct foreign_request *request = asked->message;
	const unsigned int at = child.asked++;

	assert_ptr_equal(worker, the_worker);
	assert_true(at < REQUESTS);
	assert_true(foreign_request_is_sound(request, asked->bytes));
	assert_int_equal(asked->fd_count, request->handed ? 0 : __builtin_popcount(request->files));
	child.request[at] = *request;
	memcpy(child.vaddr, request->vaddr, request->vaddr_count * sizeof(child.vaddr[0]));
	if (asked->fd_count)
		memcpy(child.fd[at], asked->fd, asked->fd_count * sizeof(int));
	child.fd_count[at] = asked->fd_count;
	child.limit_ms[at] = asked->limit_ms;
	child.blame = asked->blame;
	child.cpu_ns += child.cpu_a_request_ns;
	if (child.result)
		return child.result;
	*ret_answer = (struct worker_answer){.reply = child.reply, .fd = -1};
	if (child.stale) {
		child.stale--;
		ret_answer->reply.error = -ESTALE;
	} else if (child.answer && !child.reply.error) {
		child.answer(request, &ret_answer->reply);
	}
	return 0;
}

/* ---- instead of python/ ---- */

static int told_result;

int python_told_check(const struct python_info *told, struct python_info **ret_info)
{
	(void)told;
	if (told_result)
		return told_result;
	*ret_info = (struct python_info *)shared;
	return 0;
}

uint32_t python_code_rows_max(const struct python_code_raw *raw)
{
	(void)raw;
	return 4;
}

void python_code_text_release(struct python_code_text *text)
{
	free(text->name);
	free(text->filename);
	free(text->row);
}

/* ---- files ---- */

static struct foreign *foreign;
static int descriptor_result;

static int find(void *context, struct foreign_source *ret_source)
{
	assert_ptr_equal(context, &child);
	ret_source->fd = FILE_FD;
	return descriptor_result;
}

static int find_opened(void *context, struct foreign_source *ret_source)
{
	assert_ptr_equal(context, &child);
	ret_source->opened.fd = 33;
	return 0;
}

static struct foreign_file file_of(uint32_t number)
{
	return (struct foreign_file){.number = number, .find = find, .context = &child};
}

static int setup(void **state)
{
	(void)state;
	now_ns = 1000 * NS_PER_SEC;
	memset(&child, 0, sizeof(child));
	memset(shared, 0, 4096);
	child.starts = 1;
	told_result = descriptor_result = write_error = 0;
	return foreign_new("/a/program", &foreign);
}

static int teardown(void **state)
{
	(void)state;
	foreign_free(foreign);
	assert_int_equal(child.freed, 1);
	if (child.request[0].kind == FOREIGN_CODES)
		assert_int_equal(fcntl(child.fd[0][0], F_GETFD), -1);
	return 0;
}

static struct foreign_stats stats(void)
{
	struct foreign_stats found;

	foreign_get_stats(foreign, &found);
	return found;
}

/* ---- rows: the simplest question ---- */

/* A row every 16 bytes, up to `rows_high` at most. */
static uint64_t rows_high;

static void put_rows_at(size_t at, uint64_t low, uint64_t high, struct child_reply *reply)
{
	struct foreign_rows head = {.high = high < rows_high ? high : rows_high};

	for (uint64_t vaddr = low; vaddr < head.high; vaddr += 16, head.count++) {
		const struct cfi_row row = {.vaddr = vaddr,
					    .rule = {.kind = PP_RULE_CFA_SP,
						     .cfa_offset = (int32_t)(vaddr / 16)}};

		memcpy(shared + at + sizeof(head) + head.count * sizeof(row), &row, sizeof(row));
	}
	memcpy(shared + at, &head, sizeof(head));
	reply->size = (uint32_t)(at + sizeof(head) + head.count * sizeof(struct cfi_row));
}

static void put_rows(const struct foreign_request *request, struct child_reply *reply)
{
	assert_int_equal(request->kind, FOREIGN_ROWS);
	put_rows_at(0, request->low, request->high, reply);
	rows_high += 64;
}

static int ask_rows_of(const struct foreign_file *file, uint64_t low, uint64_t high)
{
	struct cfi_rows rows = {0};
	int err;

	child.answer = put_rows;
	rows_high = UINT64_MAX - 1000;
	err = foreign_rows(foreign, file, low, high, &rows);
	if (!err) {
		assert_int_equal(rows.count, (high - low) / 16);
		for (size_t i = 0; i < rows.count; i++) {
			assert_int_equal(rows.row[i].vaddr, low + 16 * i);
			assert_int_equal(rows.row[i].rule.cfa_offset, low / 16 + i);
		}
	}
	free(rows.row);
	return err;
}

static int ask(uint32_t number)
{
	const struct foreign_file file = file_of(number);

	return ask_rows_of(&file, 0x1000, 0x1100);
}

static int ask_of(uint32_t number, uid_t user, uid_t payer)
{
	struct foreign_file file = file_of(number);

	file.user = user;
	file.payer = payer;
	return ask_rows_of(&file, 0x1000, 0x1100);
}

/* ---- which file ---- */

static void request__brings_a_file_once(void **state)
{
	(void)state;
	assert_int_equal(ask(NUMBER), 0);
	assert_int_equal(ask(NUMBER), 0);
	assert_int_equal(ask(NUMBER + 1), 0);
	assert_int_equal(ask(NUMBER), 0);
	assert_int_equal(child.asked, 4);
	for (unsigned int i = 0; i < 4; i++) {
		const bool is_new = i == 0 || i == 2;

		assert_int_equal(child.request[i].number, i == 2 ? NUMBER + 1 : NUMBER);
		assert_int_equal(child.request[i].files, is_new ? FOREIGN_FILE_BIT : 0);
		if (is_new)
			assert_int_equal(child.fd[i][0], FILE_FD);
		assert_int_equal(child.limit_ms[i], FOREIGN_DEADLINE_MS);
		assert_int_equal(child.request[i].low, 0x1000);
		assert_int_equal(child.request[i].high, 0x1100);
	}
	assert_int_equal(child.request[0].slot, child.request[1].slot);
	assert_int_equal(child.request[0].slot, child.request[3].slot);
	assert_int_not_equal(child.request[0].slot, child.request[2].slot);
	assert_int_equal(stats().count[FOREIGN_ROWS], 4);
	assert_int_equal(stats().count[FOREIGN_COST_FILES], 2);
	assert_int_equal(stats().count[FOREIGN_COST_BYTES],
			 4 * (sizeof(struct foreign_rows) + 16 * sizeof(struct cfi_row)));
	assert_int_equal(stats().starts, 1);
}

static bool is_held(uint32_t number)
{
	const unsigned int at = child.asked;

	assert_int_equal(ask(number), 0);
	return !child.request[at].files;
}

static void slots__file_that_was_not_used_for_longest_goes(void **state)
{
	(void)state;
	for (uint32_t i = 0; i < FOREIGN_SLOTS; i++)
		assert_false(is_held(NUMBER + i));
	for (uint32_t i = 0; i < FOREIGN_SLOTS; i++)
		if (i != 5)
			assert_true(is_held(NUMBER + i));
	assert_false(is_held(NUMBER + 99));
	assert_false(is_held(NUMBER + 5)); /* in place of the first */
	assert_false(is_held(NUMBER));
	assert_true(is_held(NUMBER + 15));
}

static void slots__file_that_is_done_goes_first(void **state)
{
	(void)state;
	for (uint32_t i = 0; i < FOREIGN_SLOTS; i++)
		assert_false(is_held(NUMBER + i));
	foreign_done(foreign, NUMBER + 7);
	foreign_done(foreign, NUMBER + 1000); /* of which nothing is held */
	assert_false(is_held(NUMBER + 99));
	for (uint32_t i = 0; i < FOREIGN_SLOTS; i++)
		if (i != 7)
			assert_true(is_held(NUMBER + i));
}

static void slots__new_child_has_none(void **state)
{
	(void)state;
	assert_false(is_held(NUMBER));
	assert_true(is_held(NUMBER));
	child.starts++;
	assert_false(is_held(NUMBER));
	assert_true(is_held(NUMBER));
}

/* It was replaced within the request. */
static void slots__child_that_does_not_have_it_is_asked_again(void **state)
{
	(void)state;
	assert_false(is_held(NUMBER));
	child.stale = 1;
	assert_int_equal(ask(NUMBER), 0);
	assert_int_equal(child.asked, 3);
	assert_int_equal(child.request[1].files, 0);
	assert_int_equal(child.request[2].files, FOREIGN_FILE_BIT);
	/* One that says so of a file that it has got lies. */
	child.stale = 2;
	assert_int_equal(ask(NUMBER + 1), -ESTALE);
	assert_int_equal(child.asked, 4);
	child.stale = 0;
	assert_false(is_held(NUMBER + 1));
}

static void request__without_a_descriptor_is_not_made(void **state)
{
	(void)state;
	descriptor_result = -ESRCH;
	assert_int_equal(ask(NUMBER), -ESRCH);
	assert_int_equal(child.asked, 0);
	assert_int_equal(stats().count[FOREIGN_ROWS], 0);
}

static void close__is_told_of_what_the_child_has(void **state)
{
	(void)state;
	foreign_close(foreign, NUMBER);
	assert_int_equal(child.asked, 0);
	for (uint32_t i = 0; i < 3; i++)
		assert_int_equal(ask(NUMBER + i), 0);
	child.answer = NULL;
	foreign_close(foreign, NUMBER + 1);
	assert_int_equal(child.asked, 4);
	assert_int_equal(child.request[3].kind, FOREIGN_CLOSE);
	assert_int_equal(child.request[3].number, NUMBER + 1);
	assert_int_equal(child.request[3].slot, child.request[1].slot);
	assert_int_equal(child.limit_ms[3], FOREIGN_DEADLINE_MS);
	foreign_close_all(foreign);
	assert_int_equal(child.asked, 6);
	assert_int_equal(child.request[4].number + child.request[5].number, 2 * NUMBER + 2);
	foreign_close_all(foreign);
	assert_int_equal(child.asked, 6);
	assert_int_equal(stats().count[FOREIGN_CLOSE], 3);
	/* A new child has nothing to forget. */
	assert_int_equal(ask(NUMBER), 0);
	assert_int_equal(ask(NUMBER + 1), 0);
	child.starts++;
	foreign_close(foreign, NUMBER);
	child.starts++;
	foreign_close_all(foreign);
	assert_int_equal(child.asked, 8);
}

/* ---- errors ---- */

static void errors__of_parsing_are_passed_on(void **state)
{
	static const int error[][2] = {{-ENODATA, -ENODATA}, {-EBADMSG, -EBADMSG},
				       {-E2BIG, -E2BIG},     {-ENOMEM, -E2BIG},
				       {-ETIME, -EBADMSG},   {-ETIMEDOUT, -EBADMSG}};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(error); i++) {
		child.reply.error = error[i][0];
		assert_int_equal(ask(NUMBER), error[i][1]);
		/* Whether the child has the file is not known. */
		assert_int_equal(child.request[i].files, FOREIGN_FILE_BIT);
	}
	assert_int_equal(stats().late + stats().ended + stats().none, 0);
}

static void errors__of_the_child_are_the_files(void **state)
{
	(void)state;
	child.result = -ETIME;
	assert_int_equal(ask(NUMBER), -ETIME);
	assert_int_equal(stats().late, 1);
	child.result = -EPIPE;
	assert_int_equal(ask(NUMBER + 1), -ETIME);
	assert_int_equal(stats().ended, 1);
	child.result = 0;
	for (uint32_t i = 0; i < 2; i++)
		assert_int_equal(ask(NUMBER + i), -ETIMEDOUT);
	assert_int_equal(stats().none, 2);
	assert_int_equal(child.asked, 2);
	assert_int_equal(ask(NUMBER + 2), 0);
	now_ns += LATE_ALONE_NS;
	assert_int_equal(ask(NUMBER), 0);
	/* No child is to be had: that is nobody's fault. */
	child.result = -ETIMEDOUT;
	assert_int_equal(ask(NUMBER), -ETIMEDOUT);
	assert_int_equal(stats().none, 3);
	child.result = 0;
	assert_int_equal(ask(NUMBER), 0);
	assert_int_equal(stats().late + stats().ended, 2);
}

static void errors__of_a_users_files_are_the_users(void **state)
{
	(void)state;
	for (uint32_t i = 0; i < LATE_USER_MAX; i++) {
		child.result = -ETIME;
		assert_int_equal(ask_of(NUMBER + i, USER, 0), -ETIME);
		assert_int_equal(child.limit_ms[child.asked - 1],
				 i ? FOREIGN_SUSPECT_MS : FOREIGN_DEADLINE_MS);
		child.result = 0;
		assert_int_equal(ask_of(NUMBER + 100, USER + 1, 0), 0);
		assert_int_equal(child.limit_ms[child.asked - 1], FOREIGN_DEADLINE_MS);
	}
	now_ns += LATE_ALONE_NS;
	assert_int_equal(ask_of(NUMBER + 50, USER, 0), -ETIMEDOUT);
	assert_int_equal(stats().none, 1);
	assert_int_equal(ask_of(NUMBER + 51, USER + 1, 0), 0);
	now_ns += LATE_USER_ALONE_NS - LATE_ALONE_NS;
	assert_int_equal(ask_of(NUMBER + 50, USER, 0), 0);
	assert_int_equal(child.limit_ms[child.asked - 1], FOREIGN_DEADLINE_MS);
}

static void time__that_a_payer_took_is_the_payers(void **state)
{
	unsigned int asked = 0;

	(void)state;
	child.cpu_a_request_ns = USER_TIME_BURST_NS / 4;
	while (!ask_of(NUMBER + asked, 0, USER))
		asked++;
	assert_int_equal(asked, 4);
	assert_int_equal(stats().put_off, 1);
	assert_int_equal(stats().none, 0);
	assert_int_equal(ask_of(NUMBER, 0, USER + 1), 0);
	assert_int_equal(ask_of(NUMBER, 0, 0), 0);
	assert_int_equal(child.asked, 6);
	assert_int_equal(stats().count[FOREIGN_COST_CPU_NS], 6 * (USER_TIME_BURST_NS / 4));
	/* Who is left alone is not put off as well. */
	child.result = -ETIME;
	assert_int_equal(ask_of(NUMBER + 9, 0, 0), -ETIME);
	assert_int_equal(ask_of(NUMBER + 9, 0, USER), -ETIMEDOUT);
	assert_int_equal(stats().put_off, 1);
	assert_int_equal(stats().none, 1);
}

/* ---- what a file is ---- */

static struct foreign_facts facts;

static void put_facts(const struct foreign_request *request, struct child_reply *reply)
{
	uint64_t low, high;

	assert_int_equal(request->kind, FOREIGN_EXAMINE);
	memcpy(shared, &facts, sizeof(facts));
	if (!reply->size)
		reply->size = sizeof(facts);
	if (rows_high && foreign_has_first_rows(&facts, &low, &high))
		put_rows_at(FOREIGN_FIRST_ROWS_AT, low, high, reply);
}

static const char *reason;
static struct python_info *python;

static int examine(uint32_t number)
{
	const struct foreign_file file = file_of(number);
	struct foreign_facts got;
	int err;

	child.answer = put_facts;
	reason = "?";
	python = NULL;
	err = foreign_examine(foreign, &file, &got, &python, &reason);
	if (!err)
		assert_memory_equal(&got, &facts, sizeof(facts));
	else
		assert_string_equal(reason, "?");
	return err;
}

static void set_facts(void)
{
	memset(&facts, 0, sizeof(facts));
	facts.python_error = -ENOENT;
	facts.segment_count = 1;
	facts.segment[0] = (struct foreign_segment){
		.vaddr = FIRST + 0x1000, .file_size = 0x800, .memory_size = 0x800};
	rows_high = 0;
}

static void examine__facts_are_the_childs(void **state)
{
	(void)state;
	set_facts();
	assert_int_equal(examine(NUMBER), 0);
	assert_null(reason);
	assert_null(python);
	facts.python_error = 0;
	assert_int_equal(examine(NUMBER), 0);
	assert_ptr_equal(python, shared);
	assert_null(reason);
	child.reply.error = -ENOEXEC;
	assert_int_equal(examine(NUMBER), -ENOEXEC);
	assert_int_equal(stats().count[FOREIGN_EXAMINE], 3);
}

static void examine__reasons_are_kept(void **state)
{
	const char *first;

	(void)state;
	set_facts();
	facts.python_error = -ENOTSUP;
	strcpy(facts.reason, "reason 00");
	assert_int_equal(examine(NUMBER), 0);
	first = reason;
	assert_string_equal(first, "reason 00");
	/* Sixteen different ones. */
	for (unsigned int i = 1; i < 20; i++) {
		facts.reason[7] = (char)('0' + i / 10);
		facts.reason[8] = (char)('0' + i % 10);
		assert_int_equal(examine(NUMBER), 0);
		assert_string_equal(reason, i < 16 ? facts.reason : "it cannot be read");
	}
	strcpy(facts.reason, "reason 00");
	assert_int_equal(examine(NUMBER), 0);
	assert_ptr_equal(reason, first);
	assert_string_equal(first, "reason 00");
}

static void examine__lie_ends_the_question(void **state)
{
	uint32_t number = NUMBER;

	(void)state;
	set_facts();
	child.reply.size = sizeof(facts) - 1;
	assert_int_equal(examine(number++), -ETIME);
	child.reply.size = 0;
	facts.segment_count = FOREIGN_MAX_SEGMENTS + 1;
	assert_int_equal(examine(number++), -ETIME);
	set_facts();
	facts.python_error = 0;
	told_result = -EBADMSG;
	assert_int_equal(examine(number++), -ETIME);
	assert_int_equal(stats().ended, 3);
	told_result = -ENOMEM;
	assert_int_equal(examine(number), -ENOMEM);
	assert_int_equal(stats().ended, 3);
	/* Rows that are not those of the file. */
	set_facts();
	rows_high = FIRST + 0x10; /* fewer than there are */
	assert_int_equal(examine(number), 0);
	set_facts();
	child.reply.size = FOREIGN_FIRST_ROWS_AT + 1;
	memset(shared + FOREIGN_FIRST_ROWS_AT, 0, 64);
	assert_int_equal(examine(number), -ETIME);
	assert_int_equal(stats().ended, 4);
}

/* ---- rows that came with the facts ---- */

static void examine_with_rows(uint32_t number)
{
	set_facts();
	rows_high = UINT64_MAX - 1000;
	assert_int_equal(examine(number), 0);
}

static void rows__that_came_with_the_facts_are_given_once(void **state)
{
	const struct foreign_file file = file_of(NUMBER), other = file_of(NUMBER + 1);

	(void)state;
	examine_with_rows(NUMBER);
	assert_int_equal(ask_rows_of(&file, FIRST, FIRST + PAGE), 0);
	assert_int_equal(child.asked, 1);
	assert_int_equal(ask_rows_of(&file, FIRST, FIRST + PAGE), 0);
	assert_int_equal(child.asked, 2);
	/* To who asks for those, and of the last file alone. */
	examine_with_rows(NUMBER);
	assert_int_equal(ask_rows_of(&file, FIRST + 16, FIRST + PAGE), 0);
	assert_int_equal(ask_rows_of(&file, FIRST, FIRST + PAGE - 16), 0);
	assert_int_equal(ask_rows_of(&other, FIRST, FIRST + PAGE), 0);
	assert_int_equal(child.asked, 6);
	assert_int_equal(ask_rows_of(&file, FIRST, FIRST + PAGE), 0);
	assert_int_equal(child.asked, 6);
	examine_with_rows(NUMBER);
	examine_with_rows(NUMBER + 1);
	assert_int_equal(ask_rows_of(&other, FIRST, FIRST + PAGE), 0);
	assert_int_equal(child.asked, 8);
	assert_int_equal(ask_rows_of(&file, FIRST, FIRST + PAGE), 0);
	assert_int_equal(child.asked, 9);
	/* A file that has come without them. */
	examine_with_rows(NUMBER);
	set_facts();
	assert_int_equal(examine(NUMBER + 2), 0);
	assert_int_equal(ask_rows_of(&file, FIRST, FIRST + PAGE), 0);
	assert_int_equal(child.asked, 12);
	/* Some of them are none. */
	set_facts();
	rows_high = FIRST + PAGE - 16;
	assert_int_equal(examine(NUMBER), 0);
	assert_int_equal(ask_rows_of(&file, FIRST, FIRST + PAGE), 0);
	assert_int_equal(child.asked, 14);
}

/* They are added to what the caller has. */
static void rows__are_appended(void **state)
{
	const struct foreign_file file = file_of(NUMBER);
	struct cfi_rows rows = {0};

	(void)state;
	examine_with_rows(NUMBER);
	child.answer = put_rows;
	assert_int_equal(foreign_rows(foreign, &file, 8 * PAGE, 8 * PAGE + 64, &rows), 0);
	assert_int_equal(rows.count, 4);
	assert_int_equal(foreign_rows(foreign, &file, FIRST, FIRST + PAGE, &rows), 0);
	assert_int_equal(rows.count, 4 + PAGE / 16);
	assert_int_equal(rows.row[3].vaddr, 8 * PAGE + 48);
	assert_int_equal(rows.row[4].vaddr, FIRST);
	assert_int_equal(rows.row[3 + PAGE / 16].vaddr, FIRST + PAGE - 16);
	/* There is room for more of them by now. */
	rows.count = 4;
	assert_int_equal(foreign_rows(foreign, &file, 9 * PAGE, 9 * PAGE + 64, &rows), 0);
	assert_int_equal(rows.count, 8);
	assert_int_equal(rows.row[4].vaddr, 9 * PAGE);
	free(rows.row);
}

static void rows__are_asked_for_until_all_are_there(void **state)
{
	const struct foreign_file file = file_of(NUMBER);
	struct cfi_rows rows = {0};

	(void)state;
	child.answer = put_rows;
	rows_high = 0x1040;
	assert_int_equal(foreign_rows(foreign, &file, 0x1000, 0x1100, &rows), 0);
	assert_int_equal(child.asked, 4);
	for (unsigned int i = 0; i < 4; i++) {
		assert_int_equal(child.request[i].low, 0x1000 + 64 * i);
		assert_int_equal(child.request[i].high, 0x1100);
	}
	assert_int_equal(rows.count, 16);
	for (size_t i = 0; i < rows.count; i++)
		assert_int_equal(rows.row[i].vaddr, 0x1000 + 16 * i);
	free(rows.row);
}

static struct foreign_rows lie;
static uint32_t lie_size;

static void put_lie(const struct foreign_request *request, struct child_reply *reply)
{
	struct cfi_row row[4];

	for (size_t i = 0; i < 4; i++)
		row[i] = (struct cfi_row){.vaddr = request->low + i};
	memcpy(shared, &lie, sizeof(lie));
	memcpy(shared + sizeof(lie), row, sizeof(row));
	reply->size = lie_size;
}

static int ask_liar(void)
{
	static uint32_t number = 1000;
	const struct foreign_file file = file_of(++number);
	struct cfi_rows rows = {0};
	int err;

	child.answer = put_lie;
	err = foreign_rows(foreign, &file, 0x1000, 0x1010, &rows);
	free(rows.row);
	return err;
}

static void rows__lie_ends_the_question(void **state)
{
	const uint32_t size = sizeof(lie) + 4 * sizeof(struct cfi_row);

	(void)state;
	lie = (struct foreign_rows){.high = 0x1010, .count = 4};
	lie_size = size;
	assert_int_equal(ask_liar(), 0);
	assert_int_equal(stats().ended, 0);
	lie_size = size - 1;
	assert_int_equal(ask_liar(), -ETIME);
	lie_size = sizeof(lie) - 1;
	assert_int_equal(ask_liar(), -ETIME);
	lie_size = size;
	lie.count = 0;
	assert_int_equal(ask_liar(), -ETIME);
	lie.count = 5;
	assert_int_equal(ask_liar(), -ETIME);
	lie.count = FOREIGN_MAX_ROWS + 1;
	assert_int_equal(ask_liar(), -ETIME);
	lie.count = 4;
	lie.high = 0x1011;
	assert_int_equal(ask_liar(), -ETIME);
	lie.high = 0x1000;
	assert_int_equal(ask_liar(), -ETIME);
	lie.high = 0x1003; /* below the last one */
	assert_int_equal(ask_liar(), -ETIME);
	assert_int_equal(stats().ended, 8);
}

/* ---- names ---- */

static size_t named;
static uint32_t names_max; /* answers at a time */
static uint64_t asked_vaddr[3 * FOREIGN_MAX_NAMES];

/* Every second address has no name, every third another one for the linker. */
static void put_names(const struct foreign_request *request, struct child_reply *reply)
{
	struct foreign_names *names = (struct foreign_names *)shared;
	char *text = (char *)shared + foreign_text_at(request->vaddr_count);

	assert_int_equal(request->kind, FOREIGN_NAMES);
	*names = (struct foreign_names){.count = request->vaddr_count};
	if (names->count > names_max)
		names->count = names_max;
	for (uint32_t i = 0; i < names->count; i++) {
		struct foreign_name *name = &names->name[i];

		*name = (struct foreign_name){.start = child.vaddr[i] - 1,
					      .low = child.vaddr[i],
					      .high = child.vaddr[i] + 1};
		name->name_at = names->text_bytes;
		name->name_bytes = child.vaddr[i] % 2 ? 3 : 0;
		memcpy(text + names->text_bytes, "abc", 3);
		names->text_bytes += name->name_bytes;
		name->system_at = names->text_bytes;
		name->system_bytes = child.vaddr[i] % 3 ? 0 : 5;
		memcpy(text + names->text_bytes, "_Zxyz", 5);
		names->text_bytes += name->system_bytes;
	}
	reply->size = (uint32_t)foreign_text_at(request->vaddr_count) + names->text_bytes;
}

static void on_function(void *context, const struct foreign_function *function)
{
	const uint64_t vaddr = asked_vaddr[named++];

	assert_ptr_equal(context, &named);
	assert_int_equal(function->start, vaddr - 1);
	assert_int_equal(function->low, vaddr);
	assert_int_equal(function->high, vaddr + 1);
	if (vaddr % 2)
		assert_string_equal(function->name, "abc");
	else
		assert_null(function->name);
	assert_string_equal(function->system_name, vaddr % 3 ? "" : "_Zxyz");
}

static void expect_names(size_t count, uint32_t max, unsigned int requests)
{
	const struct foreign_file file = file_of(NUMBER);

	child.answer = put_names;
	child.asked = 0;
	names_max = max;
	named = 0;
	for (size_t i = 0; i < count; i++)
		asked_vaddr[i] = 1000 + 7 * i;
	assert_int_equal(foreign_names(foreign, &file, asked_vaddr, count, on_function, &named), 0);
	assert_int_equal(named, count);
	assert_int_equal(child.asked, requests);
}

static void names__come_for_each_address_in_turn(void **state)
{
	(void)state;
	expect_names(0, 100, 0);
	expect_names(1, 100, 1);
	expect_names(10, 100, 1);
	expect_names(10, 3, 4);
	expect_names(FOREIGN_MAX_NAMES, UINT32_MAX, 1);
	expect_names(FOREIGN_MAX_NAMES + 1, UINT32_MAX, 2);
	expect_names(2 * FOREIGN_MAX_NAMES + 5, UINT32_MAX, 3);
}

static void put_long_name(const struct foreign_request *request, struct child_reply *reply)
{
	struct foreign_names *names = (struct foreign_names *)shared;

	put_names(request, reply);
	names->text_bytes = names->name[0].name_bytes = FOREIGN_NAME_MAX_BYTES;
	names->name[0].name_at = names->name[0].system_at = 0;
	names->name[0].system_bytes = FOREIGN_NAME_MAX_BYTES;
	memset(shared + foreign_text_at(1), 'n', FOREIGN_NAME_MAX_BYTES);
	reply->size = (uint32_t)foreign_text_at(1) + FOREIGN_NAME_MAX_BYTES;
}

static void on_long_function(void *context, const struct foreign_function *function)
{
	(void)context;
	named++;
	assert_int_equal(strlen(function->name), FOREIGN_NAME_MAX_BYTES);
	assert_int_equal(strlen(function->system_name), FOREIGN_NAME_MAX_BYTES);
}

static void names__may_be_as_long_as_the_child_leaves_them(void **state)
{
	const struct foreign_file file = file_of(NUMBER);

	(void)state;
	child.answer = put_long_name;
	names_max = 1;
	named = 0;
	asked_vaddr[0] = 5;
	assert_int_equal(foreign_names(foreign, &file, asked_vaddr, 1, on_long_function, &named),
			 0);
	assert_int_equal(named, 1);
}

static void names__last_address_is_not_asked_about(void **state)
{
	const struct foreign_file file = file_of(NUMBER);

	(void)state;
	child.answer = put_names;
	names_max = 100;
	named = 0;
	asked_vaddr[0] = 5;
	asked_vaddr[1] = asked_vaddr[2] = UINT64_MAX;
	assert_int_equal(foreign_names(foreign, &file, asked_vaddr, 3, on_function, &named), 0);
	assert_int_equal(named, 1);
	assert_int_equal(child.request[0].vaddr_count, 1);
	assert_int_equal(foreign_names(foreign, &file, asked_vaddr + 1, 2, on_function, &named), 0);
	assert_int_equal(child.asked, 1);
}

/* A child that waits at one file must not keep others from being parsed. */
static void rows__what_lies_on_a_disk_is_asked_when_others_hold_up(void **state)
{
	struct foreign_file file = file_of(NUMBER);

	(void)state;
	file.user = USER;
	file.place = LOCAL_PLACE + 1;
	for (unsigned int i = 0; i < 2; i++) {
		child.is_held_up = i;
		assert_int_equal(ask_rows_of(&file, 0x1000, 0x1100), 0);
		assert_int_equal(child.blame.what, NUMBER);
		assert_int_equal(child.blame.place, LOCAL_PLACE + 1);
		assert_int_equal(child.blame.user, USER);
	}
	file.place = LOCAL_PLACE;
	assert_int_equal(ask_rows_of(&file, 0x1000, 0x1100), 0);
	assert_int_equal(child.blame.what | child.blame.place | child.blame.user, 0);
}

static void names__files_are_handed_over_with_their_debug_files(void **state)
{
	const struct debug_names names = {.link = "a"};
	const struct opener_debug debug = {.names = &names};
	struct foreign_file file = file_of(NUMBER);

	(void)state;
	hand.asked = 0;
	file.find = find_opened;
	file.debug = &debug;
	child.answer = put_names;
	names_max = 100;
	asked_vaddr[0] = 5;
	for (unsigned int i = 0; i < 2; i++) {
		named = 0;
		assert_int_equal(foreign_names(foreign, &file, asked_vaddr, 1, on_function, &named),
				 0);
	}
	assert_int_equal(child.request[0].files, FOREIGN_FILE_BIT | 1U << 2);
	assert_int_equal(child.request[0].handed, 1);
	/* The file is there, they are not kept. */
	assert_int_equal(child.request[1].files, 1U << 2);
	assert_int_equal(child.request[1].handed, 2);
	assert_int_equal(hand.asked, 2);
	assert_int_equal(hand.fd, -1);
	assert_ptr_equal(hand.debug, &debug);
	assert_int_equal(stats().count[FOREIGN_COST_FILES], 3);
}

static void put_no_names(const struct foreign_request *request, struct child_reply *reply)
{
	put_names(request, reply);
	((struct foreign_names *)shared)->count = 0;
}

static void names__errors_end_the_question(void **state)
{
	const struct foreign_file file = file_of(NUMBER);

	(void)state;
	asked_vaddr[0] = 5;
	child.reply.error = -EBADMSG;
	assert_int_equal(foreign_names(foreign, &file, asked_vaddr, 1, on_function, &named),
			 -EBADMSG);
	child.reply.error = 0;
	child.answer = put_no_names;
	assert_int_equal(foreign_names(foreign, &file, asked_vaddr, 1, on_function, &named),
			 -ETIME);
	assert_int_equal(stats().ended, 1);
}

/* ---- lines ---- */

static void put_lines(const struct foreign_request *request, struct child_reply *reply)
{
	const struct foreign_line line = {.start = 0x1000, .code_bytes = 16, .name_bytes = 3};
	struct foreign_lines *lines = (struct foreign_lines *)shared;

	assert_int_equal(request->kind, FOREIGN_LINES);
	*lines = (struct foreign_lines){
		.next = request->low + 20, .count = 1, .bytes = sizeof(line) + 3};
	memcpy(lines->line, &line, sizeof(line));
	memcpy(lines->line + sizeof(line), "abc", 3);
	if (!reply->size)
		reply->size = (uint32_t)sizeof(*lines) + lines->bytes;
}

static void lines__are_read_from_a_file_that_is_not_kept(void **state)
{
	const struct foreign_file file = file_of(NUMBER);
	struct foreign_lines *lines = NULL;

	(void)state;
	child.answer = put_lines;
	for (unsigned int i = 0; i < 2; i++) {
		assert_int_equal(foreign_lines(foreign, &file, 100, 200, &lines), 0);
		assert_int_equal(lines->next, 120);
		assert_int_equal(lines->count, 1);
		assert_memory_equal(lines->line + sizeof(struct foreign_line), "abc", 3);
		free(lines);
		assert_int_equal(child.request[i].files, FOREIGN_FILE_BIT);
		assert_int_equal(child.request[i].number, NUMBER);
		assert_int_equal(child.request[i].low, 100);
		assert_int_equal(child.request[i].high, 200);
	}
	foreign_close(foreign, NUMBER);
	assert_int_equal(child.asked, 2);
	child.reply.size = sizeof(struct foreign_lines);
	assert_int_equal(foreign_lines(foreign, &file, 100, 200, &lines), -ETIME);
	assert_int_equal(stats().ended, 1);
	assert_int_equal(foreign_lines(foreign, &file, 100, 200, &lines), -ETIMEDOUT);
	assert_int_equal(child.asked, 3);
}

/* ---- code objects ---- */

static size_t decoded;

/* One answer for each, with a row and two names. */
static void put_codes(const struct foreign_request *request, struct child_reply *reply)
{
	struct foreign_codes *codes = (struct foreign_codes *)shared;
	const struct foreign_code code = {.row_count = 1, .name_bytes = 2, .filename_bytes = 3};
	const struct line_row row = {.line = 7};
	struct python_code_raw raw;

	assert_int_equal(request->kind, FOREIGN_CODES);
	assert_int_equal(request->low, 0);
	*codes = (struct foreign_codes){0};
	while (codes->next < request->high) {
		uint8_t *at = codes->code + codes->bytes;

		uint8_t last = 0;

		assert_int_equal(pread(child.fd[child.asked - 1][0], &raw, sizeof(raw),
				       (off_t)codes->next),
				 sizeof(raw));
		assert_int_equal(pread(child.fd[child.asked - 1][0], &last, 1,
				       (off_t)(codes->next + raw.size - 1)),
				 1);
		assert_int_equal(last, 0x77);
		memset(at, 0, foreign_code_bytes(&code));
		memcpy(at, &code, sizeof(code));
		memcpy(at + sizeof(code), &row, sizeof(row));
		memcpy(at + sizeof(code) + sizeof(row), codes->count % 2 ? "g1a.y" : "f1a.y", 5);
		codes->bytes += (uint32_t)foreign_code_bytes(&code);
		codes->next += raw.size;
		codes->count++;
	}
	assert_int_equal(codes->next, request->high);
	reply->size = (uint32_t)sizeof(*codes) + codes->bytes;
}

static void on_code(void *context, size_t index, struct python_code_text *text)
{
	assert_ptr_equal(context, &decoded);
	assert_int_equal(index, decoded++);
	assert_string_equal(text->name, index % 2 ? "g1" : "f1");
	assert_string_equal(text->filename, "a.y");
	assert_int_equal(text->row_count, 1);
	assert_int_equal(text->row[0].line, 7);
	python_code_text_release(text);
}

/* Asks about code objects of so many bytes each; returns as foreign_codes(). */
static int ask_codes(uint32_t bytes, size_t count)
{
	const struct foreign_file file = {.number = NUMBER};
	const struct python_code_raw *list[64];
	struct python_code_raw *raw = calloc(1, bytes);
	int result;

	assert_non_null(raw);
	memset(raw, 0x77, bytes);
	raw->size = bytes;
	raw->name_bytes = raw->filename_bytes = 10;
	for (size_t i = 0; i < count; i++)
		list[i] = raw;
	decoded = 0;
	result = foreign_codes(foreign, &file, list, count, on_code, &decoded);
	free(raw);
	return result;
}

static void codes__as_many_as_go_into_a_request_are_decoded(void **state)
{
	(void)state;
	child.answer = put_codes;
	assert_int_equal(ask_codes(4096, 1), 1);
	assert_int_equal(child.request[0].files, FOREIGN_FILE_BIT);
	assert_int_equal(child.request[0].number, NUMBER);
	assert_int_equal(child.request[0].high, 4096);
	assert_int_equal(ask_codes(4096, 3), 3);
	assert_int_equal(decoded, 3);
	assert_int_equal(ask_codes(FOREIGN_CODES_BYTES / 2, 2), 2);
	assert_int_equal(ask_codes(FOREIGN_CODES_BYTES / 2, 3), 2);
	assert_int_equal(ask_codes(FOREIGN_CODES_BYTES / 2 + 8, 3), 1);
	/* One goes alone, whatever its size. */
	assert_int_equal(ask_codes(FOREIGN_CODES_BYTES + 8, 2), 1);
	assert_int_equal(stats().count[FOREIGN_CODES], 6);
}

static void codes__errors_are_told(void **state)
{
	(void)state;
	write_error = EIO;
	assert_int_equal(ask_codes(4096, 1), -EIO);
	write_error = ENOSPC;
	assert_int_equal(ask_codes(4096, 1), -EIO);
	assert_int_equal(child.asked, 0);
	write_error = 0;
	child.reply.error = -E2BIG;
	assert_int_equal(ask_codes(4096, 1), -E2BIG);
	assert_int_equal(stats().ended, 0);
	/* What was sent is sound. */
	child.reply.error = -EBADMSG;
	assert_int_equal(ask_codes(4096, 1), -ETIME);
	assert_int_equal(stats().ended, 1);
	now_ns += LATE_ALONE_NS;
	child.reply.error = 0;
	child.reply.size = sizeof(struct foreign_codes);
	assert_int_equal(ask_codes(4096, 1), -ETIME);
	assert_int_equal(stats().ended, 2);
	assert_int_equal(ask_codes(4096, 1), -ETIMEDOUT);
}

/* ---- the rest ---- */

/* ---- kernels ---- */

static void put_kernels(const struct foreign_request *request, struct child_reply *reply)
{
	struct foreign_request names = *request;

	assert_int_equal(request->kind, FOREIGN_KERNELS);
	assert_true(request->vaddr_count <= FOREIGN_MAX_KERNELS);
	names.kind = FOREIGN_NAMES;
	put_names(&names, reply);
}

static void kernels__are_asked_about_some_at_a_time(void **state)
{
	const struct foreign_file file = file_of(NUMBER);

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(asked_vaddr); i++)
		asked_vaddr[i] = 0x1000 + i;
	names_max = UINT32_MAX;
	child.answer = put_kernels;
	named = 0;
	assert_int_equal(foreign_kernels(foreign, &file, asked_vaddr, FOREIGN_MAX_KERNELS + 1, true,
					 on_function, &named),
			 0);
	assert_int_equal(named, FOREIGN_MAX_KERNELS + 1);
	assert_int_equal(child.asked, 2);
	assert_int_equal(child.request[1].low, 1);
	assert_int_equal(child.request[1].files, 0);
	named = 0;
	assert_int_equal(
		foreign_kernels(foreign, &file, asked_vaddr, 1, false, on_function, &named), 0);
	assert_int_equal(child.request[2].low, 0);
	assert_int_equal(stats().count[FOREIGN_KERNELS], 3);
}

/* ---- texts ---- */

static uint32_t texts_left_out; /* answers that do not come */

/* Text i is called by its number. */
static void put_texts(const struct foreign_request *request, struct child_reply *reply)
{
	struct foreign_names *names = (struct foreign_names *)shared;
	char *text = (char *)shared + foreign_text_at((uint32_t)request->low);

	assert_int_equal(request->kind, FOREIGN_TEXTS);
	*names = (struct foreign_names){.count = (uint32_t)request->low - texts_left_out};
	for (uint32_t i = 0; i < names->count; i++) {
		names->name[i] = (struct foreign_name){
			.low = i, .high = i + 1, .name_at = names->text_bytes, .name_bytes = 1};
		text[names->text_bytes++] = (char)('a' + i % 26);
	}
	reply->size = (uint32_t)foreign_text_at((uint32_t)request->low) + names->text_bytes;
}

static void on_text(void *context, const struct foreign_function *function)
{
	assert_ptr_equal(context, &child);
	assert_int_equal(function->name[0], 'a' + (int)(named++ % 26));
}

static int ask_texts(const char *const *text, size_t count)
{
	const struct foreign_file whose = {.number = 7, .user = USER, .payer = USER};

	child.answer = put_texts;
	named = 0;
	return foreign_texts(foreign, &whose, text, count, on_text, &child);
}

static void texts__go_as_many_as_fit(void **state)
{
	static char longest[FOREIGN_NAME_MAX_BYTES];
	const char *text[2 * FOREIGN_MAX_KERNELS];

	(void)state;
	texts_left_out = 0;
	memset(longest, 'x', sizeof(longest) - 1);
	for (size_t i = 0; i < ARRAY_SIZE(text); i++)
		text[i] = "_Z4axpyfPf";
	assert_int_equal(ask_texts(text, 1), 1);
	assert_memory_equal(child.vaddr, "_Z4axpyfPf\0\0\0\0\0", 16);
	assert_int_equal(child.request[0].vaddr_count, 2);
	assert_int_equal(child.fd_count[0], 0);
	assert_int_equal(ask_texts(text, ARRAY_SIZE(text)), FOREIGN_MAX_KERNELS);
	assert_int_equal(named, FOREIGN_MAX_KERNELS);
	for (size_t i = 0; i < ARRAY_SIZE(text); i++)
		text[i] = longest;
	assert_int_equal(ask_texts(text, ARRAY_SIZE(text)), 8);
	assert_int_equal(child.request[2].vaddr_count, FOREIGN_MAX_NAMES);
}

/* What a user's texts cost does not keep the user's files from being read. */
static void texts__errors_are_not_the_users_files(void **state)
{
	static const char *const text[] = {"_Z4axpyfPf", "_Z4gemmv"};

	(void)state;
	child.result = -ETIME;
	assert_int_equal(ask_texts(text, 1), -ETIME);
	child.result = 0;
	texts_left_out = 0;
	assert_int_equal(ask_texts(text, 1), -ETIMEDOUT);
	assert_int_equal(ask_of(NUMBER, USER, USER), 0);
	now_ns += 1000 * NS_PER_SEC;
	texts_left_out = 1;
	assert_int_equal(ask_texts(text, 2), -ETIME);
}

static void foreign_new__lack_of_memory_is_told(void **state)
{
	struct foreign *other = NULL;

	(void)state;
	assert_int_equal(foreign_new("/another", &other), -ENOMEM);
	assert_null(other);
	assert_true(foreign_await(foreign));
	child.starts = 0;
	assert_false(foreign_await(foreign));
	foreign_free(NULL);
	assert_int_equal(child.freed, 0);
}

static void foreign_get_stats__of_none_changes_nothing(void **state)
{
	struct foreign_stats untouched = {.late = 77};

	(void)state;
	foreign_get_stats(NULL, &untouched);
	assert_int_equal(untouched.late, 77);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(request__brings_a_file_once),
		TEST(slots__file_that_was_not_used_for_longest_goes),
		TEST(slots__file_that_is_done_goes_first),
		TEST(slots__new_child_has_none),
		TEST(slots__child_that_does_not_have_it_is_asked_again),
		TEST(request__without_a_descriptor_is_not_made),
		TEST(close__is_told_of_what_the_child_has),
		TEST(errors__of_parsing_are_passed_on),
		TEST(errors__of_the_child_are_the_files),
		TEST(errors__of_a_users_files_are_the_users),
		TEST(time__that_a_payer_took_is_the_payers),
		TEST(examine__facts_are_the_childs),
		TEST(examine__reasons_are_kept),
		TEST(examine__lie_ends_the_question),
		TEST(rows__that_came_with_the_facts_are_given_once),
		TEST(rows__are_appended),
		TEST(rows__are_asked_for_until_all_are_there),
		TEST(rows__lie_ends_the_question),
		TEST(names__come_for_each_address_in_turn),
		TEST(names__may_be_as_long_as_the_child_leaves_them),
		TEST(names__last_address_is_not_asked_about),
		TEST(names__files_are_handed_over_with_their_debug_files),
		TEST(rows__what_lies_on_a_disk_is_asked_when_others_hold_up),
		TEST(names__errors_end_the_question),
		TEST(lines__are_read_from_a_file_that_is_not_kept),
		TEST(codes__as_many_as_go_into_a_request_are_decoded),
		TEST(codes__errors_are_told),
		TEST(kernels__are_asked_about_some_at_a_time),
		TEST(texts__go_as_many_as_fit),
		TEST(texts__errors_are_not_the_users_files),
		TEST(foreign_new__lack_of_memory_is_told),
		TEST(foreign_get_stats__of_none_changes_nothing),
	};

	return cmocka_run_group_tests_name("files/client_messages", tests, NULL, NULL);
}
