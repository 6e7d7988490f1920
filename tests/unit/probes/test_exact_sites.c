/* SPDX-License-Identifier: BSD-2-Clause */
/* The parser's child, the links and the kernel side are stand-ins. */
#include "probes/exact_sites.h"

#include <cmocka.h>
#include <errno.h>
#include <string.h>

#include "attach/calls_side.h"
#include "attach/file_table.h"

#define PROGRAM_ENTRY 50
#define PROGRAM_RETURN 51
#define PROGRAM_LINE 52
#define LOCKS 60
enum { ENTRY, RETURN, LINE, SELDOM }; /* in the order in which they are wanted */

static struct {
	struct probe_site site[8];
	size_t count;
	int err;
} in_file;

static struct {
	struct probe_link_site site[PP_CALL_EVENTS][8]; /* by event */
	size_t count[PP_CALL_EVENTS];
	unsigned int attached, released;
	unsigned int wanted; /* programs, before a hit may count */
	int err_of_program, err;
	pid_t pid;
	bool is_used[PP_CALL_EVENTS][PP_CALL_SITES_MAX];
} done;

int file_table_probes(struct file_table *table, struct file *file,
		      const struct probe_wanted *wanted, size_t count,
		      struct probe_sites *ret_sites)
{
	(void)table, (void)file;
	assert_int_equal(count, 4);
	assert_string_equal(wanted[ENTRY].name, "function__entry");
	assert_string_equal(wanted[RETURN].name, "function__return");
	assert_string_equal(wanted[LINE].name, "line");
	for (size_t i = 0; i < count; i++)
		assert_true(probe_wanted_is_sound(&wanted[i]));
	if (in_file.err)
		return in_file.err;
	ret_sites->site = malloc(sizeof(in_file.site));
	assert_non_null(ret_sites->site);
	memcpy(ret_sites->site, in_file.site, sizeof(in_file.site));
	ret_sites->site_count = in_file.count;
	return 0;
}

bool probe_links_can_share(void)
{
	return true;
}

int probe_links_attach(const struct probe_links_options *options, struct probe_links *ret_links)
{
	const int event = options->program - PROGRAM_ENTRY;

	assert_in_range(options->program, PROGRAM_ENTRY, PROGRAM_LINE);
	assert_false(options->is_return);
	/* One look at who keeps a lock goes for all. */
	assert_int_equal(options->locks, done.attached ? -1 : LOCKS);
	if (options->program == done.err_of_program)
		return done.err;
	/* No hit counts before all are attached. */
	for (unsigned int i = 0; i < PP_CALL_SITES_MAX; i++)
		assert_false(done.is_used[event][i]);
	assert_true(options->count <= 8);
	memcpy(done.site[event], options->site, options->count * sizeof(*options->site));
	done.count[event] = options->count;
	done.pid = options->pid;
	done.attached++;
	ret_links->count = 1;
	return 0;
}

void probe_links_release(struct probe_links *links)
{
	done.released += (unsigned int)links->count;
	links->count = 0;
}

static struct calls_side side;

int calls_side_set_site(struct calls_side *of, uint32_t number, enum pp_call_event event,
			const struct pp_call_site *site)
{
	assert_ptr_equal(of, &side);
	assert_int_equal(done.attached, done.wanted);
	assert_int_equal(site->is_used, 1);
	assert_int_equal(site->is_ours, 0);
	assert_true(number < PP_CALL_SITES_MAX);
	done.is_used[event][number] = true;
	return 0;
}

static void put(uint32_t wanted, uint64_t offset, uint64_t semaphore)
{
	in_file.site[in_file.count++] = (struct probe_site){
		.wanted = wanted, .offset = offset, .semaphore_offset = semaphore};
}

static void debian(void)
{
	memset(&in_file, 0, sizeof(in_file));
	memset(&done, 0, sizeof(done));
	side = (struct calls_side){.program = {PROGRAM_ENTRY, PROGRAM_RETURN, PROGRAM_LINE},
				   .locks = LOCKS,
				   .has_cookies = true};
	done.wanted = 2;
	put(ENTRY, 0x100, 0x9000);
	put(RETURN, 0x200, 0x9002);
	put(LINE, 0x300, 0x9004);
	put(SELDOM, 0x400, 0);
}

static int find_what(unsigned int minor, enum exact_what what, uint32_t next[PP_CALL_EVENTS],
		     struct exact_sites **ret_sites)
{
	struct python_info python = {.bpf.minor = (uint8_t)minor};
	struct file file = {.id = 77, .python = &python};

	return exact_sites_find(NULL, &file, what, next, ret_sites);
}

static int find(unsigned int minor, uint32_t next[PP_CALL_EVENTS], struct exact_sites **ret_sites)
{
	return find_what(minor, EXACT_CALLS, next, ret_sites);
}

/* Nothing is hit at a line, and the semaphore of `line` is raised all the same. */
static void attach__of_311_raises_lines_semaphore_where_nothing_runs(void **state)
{
	OWNED(exact_sites) struct exact_sites *sites = NULL;
	struct exact_links links = {};
	uint32_t next[PP_CALL_EVENTS] = {0};

	(void)state;
	debian();
	assert_int_equal(find(11, next, &sites), 0);
	assert_int_equal(sites->file, 77);
	assert_int_equal(exact_sites_attach(sites, &side, 9, 1234, &links), 0);
	assert_int_equal(done.pid, 1234);
	assert_int_equal(done.count[PP_CALL_ENTRY], 1);
	assert_int_equal(done.site[PP_CALL_ENTRY][0].offset, 0x100);
	assert_int_equal(done.site[PP_CALL_ENTRY][0].semaphore, 0x9000);
	assert_int_equal(done.count[PP_CALL_RETURN], 2);
	assert_int_equal(done.site[PP_CALL_RETURN][0].offset, 0x200);
	assert_int_equal(done.site[PP_CALL_RETURN][1].offset, 0x400);
	assert_int_equal(done.site[PP_CALL_RETURN][1].semaphore, 0x9004);
	assert_true(done.is_used[PP_CALL_ENTRY][0] && done.is_used[PP_CALL_RETURN][0]);
	assert_false(done.is_used[PP_CALL_RETURN][done.site[PP_CALL_RETURN][1].cookie]);
	exact_links_release(&links);
	assert_int_equal(done.released, 2);
}

static void attach__without_such_a_function_is_at_the_line(void **state)
{
	OWNED(exact_sites) struct exact_sites *sites = NULL;
	struct exact_links links = {};
	uint32_t next[PP_CALL_EVENTS] = {0};

	(void)state;
	debian();
	in_file.count--;
	assert_int_equal(find(11, next, &sites), 0);
	assert_int_equal(exact_sites_attach(sites, &side, 9, 1234, &links), 0);
	assert_int_equal(done.site[PP_CALL_RETURN][1].offset, 0x300);
	assert_int_equal(done.site[PP_CALL_RETURN][1].semaphore, 0x9004);
}

static void attach__of_39_leaves_line_alone(void **state)
{
	OWNED(exact_sites) struct exact_sites *sites = NULL;
	struct exact_links links = {};
	uint32_t next[PP_CALL_EVENTS] = {0};

	(void)state;
	debian();
	assert_int_equal(find(9, next, &sites), 0);
	assert_int_equal(exact_sites_attach(sites, &side, 9, 1234, &links), 0);
	assert_int_equal(done.count[PP_CALL_RETURN], 1);
}

static void find__says_why_calls_cannot_be_counted(void **state)
{
	struct exact_sites *sites = NULL;
	uint32_t next[PP_CALL_EVENTS] = {0};

	(void)state;
	debian();
	assert_int_equal(find(15, next, &sites), -EOPNOTSUPP);
	in_file.site[RETURN].wanted = LINE;
	assert_int_equal(find(11, next, &sites), -ENOENT);
	in_file.count = 0;
	assert_int_equal(find(15, next, &sites), -ENOENT);
	in_file.err = -ETIMEDOUT;
	assert_int_equal(find(11, next, &sites), -EAGAIN);
	in_file.err = -EIO;
	assert_int_equal(find(11, next, &sites), -EIO);
	assert_null(sites);
}

/* Two files have numbers of their own; each of them may have several sites. */
static void find__numbers_go_on_from_file_to_file(void **state)
{
	OWNED(exact_sites) struct exact_sites *first = NULL;
	OWNED(exact_sites) struct exact_sites *second = NULL;
	struct exact_sites *third = NULL;
	struct exact_links links = {};
	uint32_t next[PP_CALL_EVENTS] = {0};

	(void)state;
	debian();
	put(ENTRY, 0x500, 0x9000);
	assert_int_equal(find(9, next, &first), 0);
	assert_int_equal(find(9, next, &second), 0);
	assert_int_equal(first->event[PP_CALL_ENTRY].site[1].cookie, 1);
	assert_int_equal(second->event[PP_CALL_ENTRY].site[0].cookie, 2);
	assert_int_equal(second->event[PP_CALL_RETURN].site[0].cookie, 1);
	/* Without cookies hits of the second site would be taken for the first one's. */
	side.has_cookies = false;
	assert_int_equal(exact_sites_attach(second, &side, 9, 1234, &links), -ENOTSUP);
	assert_int_equal(done.attached, 0);
	next[PP_CALL_ENTRY] = PP_CALL_SITES_MAX - 2;
	assert_int_equal(find(9, next, &third), -ENOSPC);
}

static void attach__takes_off_what_is_half_attached(void **state)
{
	OWNED(exact_sites) struct exact_sites *sites = NULL;
	struct exact_links links = {};
	uint32_t next[PP_CALL_EVENTS] = {0};

	(void)state;
	debian();
	assert_int_equal(find(11, next, &sites), 0);
	done.err_of_program = PROGRAM_ENTRY;
	done.err = -ESRCH;
	assert_int_equal(exact_sites_attach(sites, &side, 9, 1234, &links), -ESRCH);
	assert_int_equal(done.attached, 1);
	assert_int_equal(done.released, 1);
	assert_int_equal(links.event[PP_CALL_RETURN].count, 0);
}

static void attach__of_lines_is_at_the_line(void **state)
{
	OWNED(exact_sites) struct exact_sites *sites = NULL;
	struct exact_links links = {};
	uint32_t next[PP_CALL_EVENTS] = {0};

	(void)state;
	debian();
	done.wanted = 3;
	assert_int_equal(find_what(11, EXACT_LINES, next, &sites), 0);
	assert_int_equal(exact_sites_attach(sites, &side, 9, 1234, &links), 0);
	assert_int_equal(done.count[PP_CALL_LINE], 1);
	assert_int_equal(done.site[PP_CALL_LINE][0].offset, 0x300);
	assert_int_equal(done.site[PP_CALL_LINE][0].semaphore, 0x9004);
	/* That raises the semaphore. */
	assert_int_equal(done.count[PP_CALL_RETURN], 1);
	assert_true(done.is_used[PP_CALL_LINE][0] && done.is_used[PP_CALL_ENTRY][0]);
	exact_links_release(&links);
	assert_int_equal(done.released, 3);
}

static void find__of_lines_needs_the_probe_of_lines(void **state)
{
	struct exact_sites *sites = NULL;
	uint32_t next[PP_CALL_EVENTS] = {0};

	(void)state;
	debian();
	in_file.site[LINE].wanted = SELDOM;
	assert_int_equal(find_what(11, EXACT_LINES, next, &sites), -ENOENT);
	assert_int_equal(find_what(15, EXACT_LINES, next, &sites), -ENOENT);
	assert_null(sites);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(attach__of_311_raises_lines_semaphore_where_nothing_runs),
		cmocka_unit_test(attach__without_such_a_function_is_at_the_line),
		cmocka_unit_test(attach__of_39_leaves_line_alone),
		cmocka_unit_test(find__says_why_calls_cannot_be_counted),
		cmocka_unit_test(find__numbers_go_on_from_file_to_file),
		cmocka_unit_test(attach__takes_off_what_is_half_attached),
		cmocka_unit_test(attach__of_lines_is_at_the_line),
		cmocka_unit_test(find__of_lines_needs_the_probe_of_lines),
	};

	return cmocka_run_group_tests_name("agent/exact_sites", tests, NULL, NULL);
}
