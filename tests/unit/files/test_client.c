/* SPDX-License-Identifier: BSD-2-Clause */
/* The client with real children: this program is its own child, good or bad as TEST_CHILD says. */
#include "files/client.h"
#include "files/stack_starts.h"

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/io.h"
#include "child/worker.h"
#include "elf/elf_symbols.h"
#include "files/opening.h"
#include "files/protocol.h"
#include "files/serve.h"
#include "peek/child.h"
#include "peek/client.h"

#define NUMBER 16U
/* one that computes is given its time of a busy CPU */
#define STALL_NS (6ULL * FOREIGN_DEADLINE_MS * NS_PER_MS)

/* ---- children ---- */

static const char *lie; /* what the child that lies says */

struct rows_of {
	uint64_t low, high;
};

static void put_rows(uint8_t *memory, struct rows_of request)
{
	struct foreign_rows *rows = (struct foreign_rows *)memory;

	rows->high = request.high;
	rows->count = 2;
	rows->row[0] = (struct cfi_row){.vaddr = request.low};
	rows->row[1] = (struct cfi_row){.vaddr = request.low + 1};
	if (!strcmp(lie, "unsorted"))
		rows->row[1].vaddr = request.low;
	if (!strcmp(lie, "outside"))
		rows->row[1].vaddr = request.high;
	if (!strcmp(lie, "rule"))
		rows->row[1].rule.kind = PP_RULE_SIGNAL + 1;
	if (!strcmp(lie, "huge"))
		rows->count = UINT64_MAX / sizeof(struct cfi_row) + 2;
	if (!strcmp(lie, "backwards"))
		rows->high = request.low;
}

static void put_names(uint8_t *memory, const struct foreign_request *request)
{
	struct foreign_names *names = (struct foreign_names *)memory;

	names->count = 1;
	names->text_bytes = 4096 - (uint32_t)foreign_text_at(request->vaddr_count);
	names->name[0] = (struct foreign_name){.low = request->vaddr[0],
					       .high = request->vaddr[0] + 1,
					       .name_bytes = names->text_bytes};
	if (!strcmp(lie, "none"))
		names->count = 0;
	if (!strcmp(lie, "many"))
		names->count = FOREIGN_MAX_NAMES + 1;
	if (!strcmp(lie, "beside"))
		names->name[0].high--;
	if (!strcmp(lie, "beyond"))
		names->name[0].name_at = 1;
	if (!strcmp(lie, "behind"))
		names->name[0].system_at = UINT32_MAX;
	if (!strcmp(lie, "long"))
		names->text_bytes = UINT32_MAX;
}

static void put_facts(uint8_t *memory)
{
	struct foreign_facts *facts = (struct foreign_facts *)memory;

	facts->python_error = -ENOENT;
	facts->segment_count = 1;
	facts->segment[0] = (struct foreign_segment){.memory_size = 10, .file_size = 10};
	put_rows(memory + FOREIGN_FIRST_ROWS_AT, (struct rows_of){0, 1 << PP_PAGE_SHIFT});
	if (!strcmp(lie, "segments"))
		facts->segment_count = FOREIGN_MAX_SEGMENTS + 1;
	if (!strcmp(lie, "wraps"))
		facts->segment[0].vaddr = UINT64_MAX - 5;
	if (!strcmp(lie, "build-id"))
		facts->debug.build_id_bytes = DEBUG_BUILD_ID_MAX_BYTES + 1;
	if (!strcmp(lie, "link"))
		strcpy(facts->debug.link, "../x");
	if (!strcmp(lie, "text"))
		memset(facts->reason, 'a', sizeof(facts->reason));
	if (!strcmp(lie, "python"))
		facts->python_error = 0;
}

/* Two lines, in a reply of that size. */
static uint32_t put_lines(uint8_t *memory, const struct foreign_request *request)
{
	struct foreign_lines *lines = (struct foreign_lines *)memory;
	struct foreign_line line = {.start = 4096, .code_bytes = 16, .name_bytes = 3};
	char name[] = "abc";

	*lines = (struct foreign_lines){.next = request->low + 10, .count = 2};
	if (!strcmp(lie, "count"))
		lines->count = 3;
	if (!strcmp(lie, "rest"))
		lines->count = 1;
	if (!strcmp(lie, "back"))
		lines->next = request->low - 1;
	if (!strcmp(lie, "ahead"))
		lines->next = request->high + 1;
	if (!strcmp(lie, "no code"))
		line.code_bytes = 0;
	if (!strcmp(lie, "wrap"))
		line.start = UINT64_MAX - 15;
	if (!strcmp(lie, "nameless"))
		line.name_bytes = 0;
	if (!strcmp(lie, "escape"))
		name[1] = '\x1b';
	for (int i = 0; i < 2; i++) {
		memcpy(lines->line + lines->bytes, &line, sizeof(line));
		memcpy(lines->line + lines->bytes + sizeof(line), name, line.name_bytes);
		lines->bytes += (uint32_t)sizeof(line) + line.name_bytes;
	}
	if (!strcmp(lie, "cut")) { /* the last name goes beyond the end */
		line.name_bytes++;
		memcpy(lines->line + lines->bytes - line.name_bytes + 1 - sizeof(line), &line,
		       sizeof(line));
	}
	return (uint32_t)sizeof(*lines) + lines->bytes;
}

/* Answers as the protocol wants it, with what cannot be. */
static void answer_lies(void)
{
	uint8_t *memory = mmap(NULL, FOREIGN_MEMORY_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED,
			       CHILD_MEMORY_FD, 0);
	static union {
		struct foreign_request request;
		uint8_t bytes[FOREIGN_REQUEST_MAX_BYTES];
	} room;

	while (recv(CHILD_SOCKET_FD, &room, sizeof(room), 0) > 0) {
		const struct foreign_request *request = &room.request;
		struct child_reply reply = {.serial = request->serial, .size = 4096};

		if (request->kind == FOREIGN_ROWS)
			put_rows(memory, (struct rows_of){request->low, request->high});
		else if (request->kind == FOREIGN_NAMES)
			put_names(memory, request);
		else if (request->kind == FOREIGN_LINES)
			reply.size = put_lines(memory, request);
		else
			put_facts(memory);
		reply.serial += !strcmp(lie, "serial");
		if (!strcmp(lie, "size"))
			reply.size = 8;
		send(CHILD_SOCKET_FD, &reply, sizeof(reply), 0);
	}
}

/* One request, and no end to the work for it. */
static void work_for_ever(void)
{
	struct foreign_request request;
	volatile bool goes_on = recv(CHILD_SOCKET_FD, &request, sizeof(request), 0) > 0;

	while (goes_on)
		;
}

static void be_child(void)
{
	const struct child_reply hello = {.serial = CHILD_HELLO};
	const char *how = getenv("TEST_CHILD");
	struct foreign_request request;

	if (!how)
		foreign_child_main();
	if (!strcmp(how, "ends"))
		_exit(0);
	send(CHILD_SOCKET_FD, &hello, sizeof(hello), 0);
	if (!strcmp(how, "silent"))
		pause();
	if (!strcmp(how, "busy"))
		work_for_ever();
	if (!strcmp(how, "dies"))
		(void)!recv(CHILD_SOCKET_FD, &request, sizeof(request), 0);
	lie = how;
	if (strcmp(how, "dies"))
		answer_lies();
	_exit(0);
}

static struct foreign *with_child(const char *how)
{
	struct foreign *foreign = NULL;

	if (how)
		setenv("TEST_CHILD", how, 1);
	else
		unsetenv("TEST_CHILD");
	assert_int_equal(foreign_new("/proc/self/exe", &foreign), 0);
	(void)foreign_await(foreign);
	return foreign;
}

static struct foreign_stats stats_of(const struct foreign *foreign)
{
	struct foreign_stats stats = {0};

	foreign_get_stats(foreign, &stats);
	return stats;
}

/* ---- files ---- */

static int given; /* how often the descriptor was asked for */

static int open_libc(void *context, struct foreign_source *ret_source)
{
	given++;
	ret_source->fd = *(int *)context;
	return ret_source->fd < 0 ? -ESTALE : 0;
}

static int find_libc(struct dl_phdr_info *info, size_t size, void *fd)
{
	(void)size;
	if (!strstr(info->dlpi_name, "libc.so"))
		return 0;
	*(int *)fd = open(info->dlpi_name, O_RDONLY | O_CLOEXEC);
	return 1;
}

static int libc = -1;

static struct foreign_file file_of(int *fd, uint32_t number, uid_t user)
{
	return (struct foreign_file){
		.number = number, .user = user, .find = open_libc, .context = fd};
}

static int examine(struct foreign *foreign, const struct foreign_file *file,
		   struct foreign_facts *facts)
{
	struct python_info *python = NULL;
	const char *reason;
	int err = foreign_examine(foreign, file, facts, &python, &reason);

	python_info_free(python);
	return err;
}

/* The last child of this process: the one that opens files began before. */
static pid_t find_child(void)
{
	OWNED_MEM char *text = NULL;
	char path[64];

	snprintf(path, sizeof(path), "/proc/self/task/%d/children", getpid());
	assert_int_equal(read_file(path, 4096, &text, NULL), 0);
	for (char *end = text + strlen(text); end > text && end[-1] == ' ';)
		*--end = '\0';
	return (pid_t)atoi(strrchr(text, ' ') ? strrchr(text, ' ') + 1 : text);
}

/* ---- what is true ---- */

/* Anybody maps a file as code in which nothing is.  Its facts are an answer like any other: one
 * that is refused ends the child. */
static void foreign_examine__file_without_code_is_no_interpreter(void **state)
{
	OWNED(foreign) struct foreign *foreign = with_child(NULL);
	const struct {
		Elf64_Ehdr head;
		Elf64_Phdr data;
	} image = {
		.head = {.e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB,
				     EV_CURRENT},
			 .e_type = ET_DYN,
			 .e_machine = EM_X86_64,
			 .e_version = EV_CURRENT,
			 .e_phoff = sizeof(Elf64_Ehdr),
			 .e_ehsize = sizeof(Elf64_Ehdr),
			 .e_phentsize = sizeof(Elf64_Phdr),
			 .e_phnum = 1},
		.data = {.p_type = PT_LOAD,
			 .p_flags = PF_R,
			 .p_filesz = sizeof(image),
			 .p_memsz = sizeof(image)},
	};
	OWNED_FD int own = memfd_create("data", MFD_CLOEXEC);
	const struct foreign_file file = file_of(&own, NUMBER, 0);
	struct foreign_facts facts;

	(void)state;
	assert_true(own >= 0);
	assert_int_equal(write_full(own, &image, sizeof(image)), 0);
	assert_int_equal(examine(foreign, &file, &facts), 0);
	assert_int_equal(facts.segment_count, 0);
	assert_int_equal(facts.python_error, -ENOENT);
	assert_int_equal(stats_of(foreign).starts, 1);
}

static void foreign_rows__are_those_of_the_file(void **state)
{
	OWNED(foreign) struct foreign *foreign = with_child(NULL);
	const struct foreign_file file = file_of(&libc, NUMBER, 0);
	OWNED(elf_image) struct elf_image *image = NULL;
	OWNED(cfi) struct cfi *cfi = NULL;
	struct cfi_rows rows = {0}, expected = {0};
	struct foreign_facts facts;
	uint64_t low, high;

	(void)state;
	assert_int_equal(examine(foreign, &file, &facts), 0);
	assert_int_equal(elf_image_open(libc, &image), 0);
	assert_int_equal(cfi_open(image, &cfi), 0);
	coroutine_roots_add(image, cfi);
	assert_int_equal(facts.debug.build_id_bytes, image->build_id_size);
	assert_memory_equal(facts.debug.build_id, image->build_id, image->build_id_size);
	assert_int_equal(facts.fde_count, cfi_fde_count(cfi));
	assert_int_equal(facts.segment_count, 1);
	assert_int_equal(facts.python_error, -ENOENT);
	low = facts.segment[0].vaddr;
	high = low + facts.segment[0].file_size;
	given = 0;
	assert_int_equal(foreign_rows(foreign, &file, low, high, &rows), 0);
	assert_int_equal(given, 0); /* the child has it */
	assert_int_equal(cfi_compile(cfi, low, high, &expected, NULL), 0);
	assert_true(rows.count >= expected.count);
	for (size_t i = 0, at = 0; i < rows.count; i++) {
		while (at + 1 < expected.count && expected.row[at + 1].vaddr <= rows.row[i].vaddr)
			at++;
		assert_memory_equal(&rows.row[i].rule, &expected.row[at].rule,
				    sizeof(struct pp_rule));
	}
	free(rows.row);
	free(expected.row);
	assert_int_equal(stats_of(foreign).starts, 1);
	assert_int_equal(stats_of(foreign).late + stats_of(foreign).ended, 0);
}

/* What was asked, and what came. */
struct named {
	const uint64_t *vaddr;
	size_t count, found;
	char name[64][256];
};

static void on_name(void *context, const struct foreign_function *function)
{
	struct named *named = context;
	const uint64_t vaddr = named->vaddr[named->count];

	assert_true(function->low <= vaddr && vaddr < function->high);
	snprintf(named->name[named->count % 64], sizeof(named->name[0]), "%s",
		 function->name ? function->name : "");
	named->found += function->name != NULL;
	named->count++;
}

static void on_expected(void *context, size_t index, const struct elf_function *function)
{
	struct named *named = context;

	if (index < 64)
		snprintf(named->name[index], sizeof(named->name[0]), "%.*s",
			 (int)function->name_size, function->name ? function->name : "");
	named->found += function->name != NULL;
}

/* The whole of its code; the rows of a small one come with what it is. */
static void foreign_rows__of_a_small_file_cost_no_question(void **state)
{
	OWNED(foreign) struct foreign *foreign = with_child(NULL);
	OWNED_FD int own = open("/bin/true", O_RDONLY | O_CLOEXEC);
	const struct foreign_file file = file_of(&own, NUMBER, 0);
	const struct foreign_file again = file_of(&own, NUMBER + 1, 0);
	struct cfi_rows rows = {0}, asked = {0};
	struct foreign_facts facts;
	uint64_t low = 0, high = 0;

	(void)state;
	assert_int_equal(examine(foreign, &file, &facts), 0);
	if (!foreign_has_first_rows(&facts, &low, &high))
		skip();
	assert_int_equal(foreign_rows(foreign, &file, low, high, &rows), 0);
	assert_int_equal(stats_of(foreign).count[FOREIGN_ROWS], 0);
	/* They are given once, and to that file alone. */
	assert_int_equal(examine(foreign, &again, &facts), 0);
	assert_int_equal(foreign_rows(foreign, &file, low, high, &asked), 0);
	assert_int_equal(stats_of(foreign).count[FOREIGN_ROWS], 1);
	assert_int_equal(rows.count, asked.count);
	assert_memory_equal(rows.row, asked.row, rows.count * sizeof(*rows.row));
	assert_int_equal(foreign_rows(foreign, &again, low, high - (1 << PP_PAGE_SHIFT) / 2, &rows),
			 0);
	assert_int_equal(stats_of(foreign).count[FOREIGN_ROWS], 2);
	assert_true(stats_of(foreign).count[FOREIGN_COST_BYTES] > 0);
	assert_true(stats_of(foreign).count[FOREIGN_COST_CPU_NS] > 0);
	assert_int_equal(stats_of(foreign).count[FOREIGN_COST_FILES], 2);
	free(rows.row);
	free(asked.row);
}

/* One name does not bring the room for 4,096. */
static void foreign_names__answer_is_as_long_as_the_question(void **state)
{
	OWNED(foreign) struct foreign *foreign = with_child(NULL);
	const struct foreign_file file = file_of(&libc, NUMBER, 0);
	static struct named named;
	struct foreign_facts facts;
	uint64_t before;

	(void)state;
	assert_int_equal(examine(foreign, &file, &facts), 0);
	before = stats_of(foreign).count[FOREIGN_COST_BYTES];
	named = (struct named){.vaddr = &facts.segment[0].vaddr};
	assert_int_equal(foreign_names(foreign, &file, named.vaddr, 1, on_name, &named), 0);
	assert_in_range(stats_of(foreign).count[FOREIGN_COST_BYTES] - before, 1, 1024);
	assert_int_equal(stats_of(foreign).count[FOREIGN_NAMES], 1);
}

static void foreign_names__are_those_of_the_file(void **state)
{
	OWNED(foreign) struct foreign *foreign = with_child(NULL);
	const struct foreign_file file = file_of(&libc, NUMBER, 0);
	static uint64_t vaddr[2 * FOREIGN_MAX_NAMES + 10];
	static struct named named, expected;
	OWNED(elf_image) struct elf_image *image = NULL;
	struct foreign_facts facts;

	(void)state;
	named = (struct named){.vaddr = vaddr};
	assert_int_equal(examine(foreign, &file, &facts), 0);
	for (size_t i = 0; i < ARRAY_SIZE(vaddr); i++)
		vaddr[i] = facts.segment[0].vaddr + 100 * i;
	assert_int_equal(foreign_names(foreign, &file, vaddr, ARRAY_SIZE(vaddr), on_name, &named),
			 0);
	assert_int_equal(named.count, ARRAY_SIZE(vaddr));
	assert_int_equal(elf_image_open(libc, &image), 0);
	named = (struct named){.vaddr = vaddr};
	assert_int_equal(foreign_names(foreign, &file, vaddr, 64, on_name, &named), 0);
	assert_int_equal(elf_symbols_find_many(image, NULL, vaddr, 64, on_expected, &expected), 0);
	assert_true(named.found >= expected.found && expected.found > 0);
	for (size_t i = 0; i < 64; i++)
		if (expected.name[i][0])
			assert_string_equal(named.name[i], expected.name[i]);
}

/* As many as go into a request; the first is there, the others are not. */
static void foreign_probes__are_found_by_the_real_child(void **state)
{
	OWNED(foreign) struct foreign *foreign = with_child(NULL);
	const struct foreign_file file = file_of(&libc, NUMBER, 0);
	CLEANUP(probe_sites_release) struct probe_sites sites = {0};
	struct probe_wanted wanted[PROBE_WANTED_MAX];

	(void)state;
	for (size_t i = 0; i < PROBE_WANTED_MAX; i++)
		wanted[i] = (struct probe_wanted){
			.kind = PROBE_WANTED_FUNCTION, .wants_nearest = 1, .name = "reallocarra"};
	strcpy(wanted[0].name, "reallocarray");
	assert_int_equal(foreign_probes(foreign, &file, wanted, PROBE_WANTED_MAX, &sites), 0);
	assert_int_equal(sites.site_count, 1);
	assert_int_equal(sites.site[0].is_entry, 1);
	for (size_t i = 1; i < PROBE_WANTED_MAX; i++)
		assert_string_equal(sites.found[i].nearest[0], "reallocarray");
	assert_int_equal(stats_of(foreign).count[FOREIGN_PROBES], 1);
	assert_int_equal(stats_of(foreign).late, 0);
}

/* No range ends behind it, so there is no sound answer, which ends the child. */
static void foreign_names__last_address_is_not_asked_about(void **state)
{
	OWNED(foreign) struct foreign *foreign = with_child(NULL);
	const struct foreign_file file = file_of(&libc, NUMBER, 0);
	static const uint64_t vaddr[] = {4096, UINT64_MAX, UINT64_MAX};
	static struct named named = {.vaddr = vaddr};

	(void)state;
	assert_int_equal(foreign_names(foreign, &file, vaddr + 1, 2, on_name, &named), 0);
	assert_int_equal(stats_of(foreign).count[FOREIGN_NAMES], 0);
	assert_int_equal(foreign_names(foreign, &file, vaddr, 3, on_name, &named), 0);
	assert_int_equal(named.count, 1);
	assert_int_equal(stats_of(foreign).starts, 1);
}

static void foreign_names__what_cannot_be_is_not_believed(void **state)
{
	static const char *const how[] = {"none",   "many", "beside", "beyond",
					  "behind", "long", "size"};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(how); i++) {
		OWNED(foreign) struct foreign *foreign = with_child(how[i]);
		const struct foreign_file file = file_of(&libc, NUMBER, 1000);
		static const uint64_t vaddr[] = {4096};
		struct named named = {.vaddr = vaddr};

		assert_int_equal(foreign_names(foreign, &file, vaddr, 1, on_name, &named), -ETIME);
		assert_int_equal(named.count, 0);
		assert_int_equal(stats_of(foreign).ended, 1);
	}
}

static int lines_of(struct foreign *foreign, int fd, uint64_t low, struct foreign_lines **ret)
{
	const struct foreign_file file = file_of(&fd, NUMBER, 1000);

	return foreign_lines(foreign, &file, low, low + 1000, ret);
}

static void foreign_lines__are_those_of_the_file(void **state)
{
	static const char text[] = "1000 10 one\n2000 20 py::two\n3000 30 three\n4000 40 fo";
	OWNED(foreign) struct foreign *foreign = with_child(NULL);
	OWNED_FD int map = memfd_create("map", MFD_CLOEXEC);
	OWNED_MEM struct foreign_lines *lines = NULL, *rest = NULL;
	struct foreign_line line;

	(void)state;
	assert_int_equal(write_full(map, text, sizeof(text) - 1), 0);
	assert_int_equal(lines_of(foreign, map, 0, &lines), 0);
	assert_int_equal(lines->count, 2);
	memcpy(&line, lines->line, sizeof(line));
	assert_int_equal(line.start, 0x1000);
	assert_int_equal(line.code_bytes, 0x10);
	assert_memory_equal(lines->line + sizeof(line), "one", line.name_bytes);
	/* The last one is not complete. */
	assert_int_equal(lines->next, strlen(text) - strlen("4000 40 fo"));
	assert_int_equal(lines_of(foreign, map, lines->next, &rest), 0);
	assert_int_equal(rest->count, 0);
	assert_int_equal(rest->next, lines->next);
	assert_int_equal(stats_of(foreign).count[FOREIGN_LINES], 2);
	/* What is no file at all. */
	free(rest);
	rest = NULL;
	assert_int_equal(lines_of(foreign, open("/", O_RDONLY | O_CLOEXEC), 0, &rest), -EISDIR);
	assert_int_equal(stats_of(foreign).starts, 1);
}

static void foreign_lines__what_cannot_be_is_not_believed(void **state)
{
	static const char *const how[] = {"count", "rest",     "back",	 "ahead", "no code",
					  "wrap",  "nameless", "escape", "cut",	  "size"};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(how); i++) {
		OWNED(foreign) struct foreign *foreign = with_child(how[i]);
		OWNED_MEM struct foreign_lines *lines = NULL;

		assert_int_equal(lines_of(foreign, libc, 4096, &lines), -ETIME);
		assert_null(lines);
		assert_int_equal(stats_of(foreign).ended, 1);
		assert_int_equal(lines_of(foreign, libc, 4096, &lines), -ETIMEDOUT);
	}
}

static void foreign_lines__child_that_dies_or_is_silent_costs_the_file(void **state)
{
	static const char *const how[] = {"dies", "silent"};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(how); i++) {
		OWNED(foreign) struct foreign *foreign = with_child(how[i]);
		OWNED_MEM struct foreign_lines *lines = NULL;
		const uint64_t start_ns = mono_ns();
		int err = lines_of(foreign, libc, 0, &lines);

		assert_true(err == -ETIME || (err == -ETIMEDOUT && !i));
		assert_true(mono_ns() - start_ns < STALL_NS);
		assert_null(lines);
	}
}

struct decoded {
	size_t count;
	char text[256];
};

static void on_decoded(void *context, size_t index, struct python_code_text *text)
{
	struct decoded *decoded = context;

	assert_int_equal(index, decoded->count++);
	snprintf(decoded->text, sizeof(decoded->text), "%s %s %u@%u", text->filename, text->name,
		 text->row[text->row_count - 1].line, text->row[text->row_count - 1].start);
	python_code_text_release(text);
}

/* A function of 3.10 on line 7, named f, and as many instructions without a line. */
static struct python_code_raw *raw_of(uint32_t table_bytes)
{
	const size_t size = sizeof(struct python_code_raw) + 5 + table_bytes;
	struct python_code_raw *raw = calloc(1, size);

	assert_non_null(raw);
	*raw = (struct python_code_raw){.size = (uint32_t)size,
					.first_line = 7,
					.line_table_bytes = table_bytes,
					.name_bytes = 1,
					.filename_bytes = 4,
					.name_kind = 1,
					.filename_kind = 1,
					.format = LINE_TABLE_310};
	memcpy(raw->part, "fa.py", 5);
	memset(raw->part + 5, 2, table_bytes);
	return raw;
}

static void foreign_codes__are_decoded_as_many_as_go_into_a_request(void **state)
{
	OWNED(foreign) struct foreign *foreign = with_child(NULL);
	OWNED_MEM struct python_code_raw *small = raw_of(4), *large = raw_of(FOREIGN_CODES_BYTES);
	const struct python_code_raw *const raw[] = {small, small, large, small};
	const struct foreign_file file = {.number = NUMBER, .user = 1000, .payer = 1000};
	struct decoded decoded = {.count = 0};

	(void)state;
	assert_int_equal(foreign_codes(foreign, &file, raw, 4, on_decoded, &decoded), 2);
	assert_string_equal(decoded.text, "a.py f 11@2");
	decoded.count = 0;
	assert_int_equal(foreign_codes(foreign, &file, raw + 2, 2, on_decoded, &decoded), 1);
	assert_int_equal(decoded.count, 1);
	assert_int_equal(stats_of(foreign).count[FOREIGN_CODES], 2);
	assert_int_equal(stats_of(foreign).starts, 1);
}

static void foreign_codes__what_cannot_be_is_not_believed(void **state)
{
	static const char *const how[] = {"size", "dies"};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(how); i++) {
		OWNED(foreign) struct foreign *foreign = with_child(how[i]);
		OWNED_MEM struct python_code_raw *small = raw_of(4);
		const struct python_code_raw *const raw[] = {small};
		const struct foreign_file file = {.number = NUMBER, .user = 1000};
		struct decoded decoded = {.count = 0};
		const int err = foreign_codes(foreign, &file, raw, 1, on_decoded, &decoded);

		assert_true(err == -ETIME || (err == -ETIMEDOUT && i));
		assert_int_equal(decoded.count, 0);
	}
}

/* Files and code objects of a user are left alone each for themselves. */
static void foreign_codes__files_that_were_late_do_not_cost_them(void **state)
{
	OWNED(foreign) struct foreign *foreign = with_child("size");
	OWNED_MEM struct python_code_raw *small = raw_of(4);
	const struct python_code_raw *const raw[] = {small};
	const struct foreign_file other = file_of(&libc, NUMBER + 30, 1000);
	struct foreign_file code = {.number = NUMBER, .user = 1000};
	struct decoded decoded = {.count = 0};
	struct foreign_facts facts;

	(void)state;
	for (uint32_t i = 0; i < LATE_USER_MAX; i++) {
		const struct foreign_file file = file_of(&libc, NUMBER + i, 1000);

		assert_int_equal(examine(foreign, &file, &facts), -ETIME);
	}
	assert_int_equal(examine(foreign, &other, &facts), -ETIMEDOUT);
	for (uint32_t i = 0; i < LATE_USER_MAX; i++, code.number++)
		assert_int_equal(foreign_codes(foreign, &code, raw, 1, on_decoded, &decoded),
				 -ETIME);
	assert_int_equal(foreign_codes(foreign, &code, raw, 1, on_decoded, &decoded), -ETIMEDOUT);
	code.user = 1001;
	assert_int_equal(foreign_codes(foreign, &code, raw, 1, on_decoded, &decoded), -ETIME);
	assert_int_equal(foreign_codes(foreign, &code, raw, 1, on_decoded, &decoded), -ETIMEDOUT);
}

static void foreign_examine__what_is_no_elf_file_says_so(void **state)
{
	OWNED(foreign) struct foreign *foreign = with_child(NULL);
	OWNED_FD int text = memfd_create("text", MFD_CLOEXEC);
	const struct foreign_file file = file_of(&text, NUMBER, 0);
	struct foreign_facts facts;

	(void)state;
	assert_int_equal(write_full(text,
				    "#!/bin/sh\necho this is a script, and no more than that: "
				    "it is as long as a header\n",
				    70),
			 0);
	assert_int_equal(examine(foreign, &file, &facts), -ENOEXEC);
	assert_int_equal(stats_of(foreign).ended, 0);
}

static void foreign_close__file_is_brought_again(void **state)
{
	OWNED(foreign) struct foreign *foreign = with_child(NULL);
	struct foreign_file file = file_of(&libc, NUMBER, 0);
	struct foreign_facts facts;

	(void)state;
	given = 0;
	assert_int_equal(examine(foreign, &file, &facts), 0);
	assert_int_equal(examine(foreign, &file, &facts), 0);
	assert_int_equal(given, 1);
	foreign_close(foreign, NUMBER);
	assert_int_equal(examine(foreign, &file, &facts), 0);
	assert_int_equal(given, 2);
	foreign_close_all(foreign);
	assert_int_equal(examine(foreign, &file, &facts), 0);
	assert_int_equal(given, 3);
	/* The one that was not used for longest makes room. */
	for (uint32_t i = 1; i < FOREIGN_SLOTS; i++) {
		file.number = NUMBER + i;
		assert_int_equal(examine(foreign, &file, &facts), 0);
	}
	given = 0;
	file.number = NUMBER;
	assert_int_equal(examine(foreign, &file, &facts), 0);
	assert_int_equal(given, 0);
	file.number = 100;
	assert_int_equal(examine(foreign, &file, &facts), 0);
	file.number = NUMBER + 1;
	assert_int_equal(examine(foreign, &file, &facts), 0);
	assert_int_equal(given, 2);
}

static void foreign_examine__file_that_is_gone_says_so(void **state)
{
	OWNED(foreign) struct foreign *foreign = with_child(NULL);
	int none = -1;
	const struct foreign_file file = file_of(&none, NUMBER, 0);
	struct foreign_facts facts;

	(void)state;
	assert_int_equal(examine(foreign, &file, &facts), -ESTALE);
	assert_int_equal(stats_of(foreign).count[FOREIGN_EXAMINE], 0); /* nobody was asked */
}

/* ---- a child that fails ---- */

static void foreign_rows__child_that_is_killed_is_replaced(void **state)
{
	OWNED(foreign) struct foreign *foreign = NULL;
	const struct foreign_file file = file_of(&libc, NUMBER, 0);
	struct cfi_rows rows = {0};
	struct foreign_facts facts;

	(void)state;
	while (waitpid(-1, NULL, 0) > 0)
		; /* of earlier tests */
	foreign = with_child(NULL);
	assert_int_equal(examine(foreign, &file, &facts), 0);
	/* An end right after the start counts as a bad start. */
	usleep(NS_PER_SEC / NS_PER_US);
	assert_int_equal(kill(find_child(), SIGKILL), 0);
	assert_int_equal(foreign_rows(foreign, &file, facts.segment[0].vaddr,
				      facts.segment[0].vaddr + 1000, &rows),
			 0);
	free(rows.row);
	assert_int_equal(stats_of(foreign).starts, 2);
	assert_int_equal(stats_of(foreign).ended, 0);
}

static void bad_child(const char *how, uint64_t *ret_late, uint64_t *ret_ended)
{
	OWNED(foreign) struct foreign *foreign = with_child(how);
	const struct foreign_file file = file_of(&libc, NUMBER, 1000);
	const struct foreign_file other = file_of(&libc, NUMBER + 1, 0);
	const uint64_t start_ns = mono_ns();
	struct foreign_facts facts;

	assert_int_equal(examine(foreign, &file, &facts), -ETIME);
	assert_true(mono_ns() - start_ns < STALL_NS);
	*ret_late = stats_of(foreign).late;
	*ret_ended = stats_of(foreign).ended;
	/* It is not asked about again; others are, by the next child. */
	assert_int_equal(examine(foreign, &file, &facts), -ETIMEDOUT);
	unsetenv("TEST_CHILD");
	(void)foreign_await(foreign);
	if (!strcmp(how, "silent") || !strcmp(how, "busy"))
		assert_int_equal(examine(foreign, &other, &facts), 0);
}

static void foreign_examine__child_that_is_late_costs_the_file(void **state)
{
	uint64_t late, ended;

	(void)state;
	bad_child("silent", &late, &ended);
	assert_int_equal(late, 1);
	assert_int_equal(ended, 0);
	bad_child("busy", &late, &ended);
	assert_int_equal(late, 1);
	assert_int_equal(ended, 0);
}

static void foreign_examine__child_that_dies_twice_costs_the_file(void **state)
{
	static const char *const how[] = {"dies",     "serial", "size", "segments", "wraps",
					  "build-id", "link",	"text", "python",   "unsorted",
					  "outside",  "rule",	"huge", "backwards"};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(how); i++) {
		OWNED(foreign) struct foreign *foreign = with_child(how[i]);
		const struct foreign_file file = file_of(&libc, NUMBER, 1000);
		struct foreign_facts facts;
		int err = examine(foreign, &file, &facts);

		/* A child that ends at once is not started again at once. */
		if (i < 2)
			assert_true(err == -ETIME || err == -ETIMEDOUT);
		else
			assert_int_equal(err, -ETIME);
		assert_int_equal(stats_of(foreign).late, 0);
	}
}

static void foreign_rows__what_cannot_be_is_not_believed(void **state)
{
	static const char *const how[] = {"unsorted", "outside",   "rule",
					  "huge",     "backwards", "size"};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(how); i++) {
		OWNED(foreign) struct foreign *foreign = with_child(how[i]);
		const struct foreign_file file = file_of(&libc, NUMBER, 1000);
		struct cfi_rows rows = {0};

		assert_int_equal(foreign_rows(foreign, &file, 4096, 8192, &rows), -ETIME);
		assert_int_equal(rows.count, 0);
		assert_int_equal(stats_of(foreign).ended, 1);
		free(rows.row);
	}
}

static void foreign_examine__without_a_child_there_is_no_answer(void **state)
{
	OWNED(foreign) struct foreign *foreign = NULL;
	const struct foreign_file file = file_of(&libc, NUMBER, 1000);
	struct foreign_facts facts;

	(void)state;
	assert_int_equal(foreign_new("/nonexistent/program", &foreign), 0);
	assert_false(foreign_await(foreign));
	assert_int_equal(examine(foreign, &file, &facts), -ETIMEDOUT);
	assert_int_equal(stats_of(foreign).none, 1);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(foreign_examine__file_without_code_is_no_interpreter),
		cmocka_unit_test(foreign_rows__are_those_of_the_file),
		cmocka_unit_test(foreign_rows__of_a_small_file_cost_no_question),
		cmocka_unit_test(foreign_names__answer_is_as_long_as_the_question),
		cmocka_unit_test(foreign_probes__are_found_by_the_real_child),
		cmocka_unit_test(foreign_names__last_address_is_not_asked_about),
		cmocka_unit_test(foreign_names__are_those_of_the_file),
		cmocka_unit_test(foreign_names__what_cannot_be_is_not_believed),
		cmocka_unit_test(foreign_codes__are_decoded_as_many_as_go_into_a_request),
		cmocka_unit_test(foreign_codes__what_cannot_be_is_not_believed),
		cmocka_unit_test(foreign_codes__files_that_were_late_do_not_cost_them),
		cmocka_unit_test(foreign_lines__are_those_of_the_file),
		cmocka_unit_test(foreign_lines__what_cannot_be_is_not_believed),
		cmocka_unit_test(foreign_lines__child_that_dies_or_is_silent_costs_the_file),
		cmocka_unit_test(foreign_examine__what_is_no_elf_file_says_so),
		cmocka_unit_test(foreign_close__file_is_brought_again),
		cmocka_unit_test(foreign_examine__file_that_is_gone_says_so),
		cmocka_unit_test(foreign_rows__child_that_is_killed_is_replaced),
		cmocka_unit_test(foreign_examine__child_that_is_late_costs_the_file),
		cmocka_unit_test(foreign_examine__child_that_dies_twice_costs_the_file),
		cmocka_unit_test(foreign_rows__what_cannot_be_is_not_believed),
		cmocka_unit_test(foreign_examine__without_a_child_there_is_no_answer),
	};

	(void)argc;
	if (child_named(argv[0]) == CHILD_OPENER)
		opening_child_main();
	if (child_named(argv[0]) == CHILD_FILES)
		be_child();
	dl_iterate_phdr(find_libc, &libc);
	if (libc < 0) {
		print_message("skipped: libc is linked in\n");
		return 0;
	}
	return cmocka_run_group_tests_name("files/client", tests, NULL, NULL);
}
