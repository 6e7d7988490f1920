/* SPDX-License-Identifier: BSD-2-Clause */
/* What the child answers: files, their unwind information and their symbols are fakes in this
 * file. */
#include "files/serve.h"

#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "elf/debug_file.h"
#include "elf/demangle.h"
#include "elf/elf_symbol_table.h"
#include "elf/elf_symbols.h"
#include "files/decode.h"
#include "files/kernel_names.h"
#include "files/stack_starts.h"
#include "python/python_info.h"
#include "server_release.h"

#define NUMBER 70U
#define SLOT 0U
#define FD 55
#define PAGE (1ULL << PP_PAGE_SHIFT)
#define GREENLET 0x4440ULL

/* ---- files ---- */

static struct {
	struct elf_image image;
	int open_error, cfi_error, compile_error;
	unsigned int opened, freed, cfi_opened, cfi_freed, compiled;
	size_t fde_count;
	int symtab_error;
	uint64_t outermost;
	uint64_t row_bytes; /* from one row to the next */
	uint64_t stop_row;  /* address of the one that ends stacks */
	struct {
		uint64_t low, high;
	} fde; /* low == high: there is none */
} file;

struct cfi {
	int unused;
};

int elf_image_open(int fd, struct elf_image **ret_image)
{
	assert_int_equal(fd, FD);
	file.opened++;
	if (file.open_error)
		return file.open_error;
	*ret_image = malloc(sizeof(**ret_image));
	assert_non_null(*ret_image);
	**ret_image = file.image;
	return 0;
}

void elf_image_free(struct elf_image *image)
{
	file.freed += image != NULL;
	free(image);
}

int elf_image_symbol_table(const struct elf_image *image, uint32_t type,
			   struct elf_symbol_table *ret_table)
{
	(void)image, (void)ret_table;
	assert_int_equal(type, SHT_SYMTAB);
	return file.symtab_error;
}

void debug_names_read(const struct elf_image *image, struct debug_names *ret_names)
{
	(void)image;
	strcpy(ret_names->link, "a.debug");
}

int cfi_open(const struct elf_image *image, struct cfi **ret_cfi)
{
	assert_non_null(image);
	file.cfi_opened++;
	if (file.cfi_error)
		return file.cfi_error;
	*ret_cfi = calloc(1, sizeof(**ret_cfi));
	assert_non_null(*ret_cfi);
	return 0;
}

void cfi_free(struct cfi *cfi)
{
	file.cfi_freed += cfi != NULL;
	free(cfi);
}

size_t cfi_fde_count(const struct cfi *cfi)
{
	assert_non_null(cfi);
	return file.fde_count;
}

void cfi_set_outermost(struct cfi *cfi, uint64_t vaddr)
{
	assert_non_null(cfi);
	file.outermost = vaddr;
}

int cfi_fde_find(struct cfi *cfi, uint64_t vaddr, struct cfi_range *ret_range)
{
	assert_non_null(cfi);
	(void)vaddr;
	if (file.fde.low == file.fde.high)
		return -ENOENT;
	*ret_range = (struct cfi_range){.low = file.fde.low, .high = file.fde.high};
	return 0;
}

int cfi_compile(struct cfi *cfi, uint64_t low, uint64_t high, struct cfi_rows *rows,
		size_t *ret_bad_fdes)
{
	assert_non_null(cfi);
	assert_null(ret_bad_fdes);
	assert_int_equal(rows->count, 0);
	file.compiled++;
	rows->count = (high - low + file.row_bytes - 1) / file.row_bytes;
	if (rows->count > rows->capacity) {
		rows->row = realloc(rows->row, rows->count * sizeof(*rows->row));
		assert_non_null(rows->row);
		rows->capacity = rows->count;
	}
	for (size_t i = 0; i < rows->count; i++) {
		const uint64_t vaddr = low + i * file.row_bytes;

		rows->row[i] = (struct cfi_row){
			.vaddr = vaddr,
			.rule = {.kind = vaddr == file.stop_row ? PP_RULE_STOP : PP_RULE_CFA_SP}};
	}
	return file.compile_error;
}

uint64_t greenlet_first_function(const struct elf_image *image)
{
	(void)image;
	return GREENLET;
}

/* ---- Python ---- */

static int python_error;
static const char *python_reason;
static struct python_info python;
static unsigned int pythons_freed;

int python_info_read(const struct elf_image *image, struct python_info **ret_info,
		     const char **ret_reason)
{
	(void)image;
	if (!python_error)
		*ret_info = memset(&python, 0x5a, sizeof(python));
	if (python_reason)
		*ret_reason = python_reason;
	return python_error;
}

void python_info_free(struct python_info *info)
{
	pythons_freed += info != NULL;
}

/* ---- names ---- */

#define FUNCTIONS 8U

static struct {
	struct elf_function function[FUNCTIONS];
	int error;
	const struct debug_files *debug;
	const char *start; /* what the address is the start of */
	unsigned int starts_asked;
} symbols;

int elf_symbols_find_many(const struct elf_image *image, const struct debug_files *files,
			  const uint64_t *vaddr, size_t count, elf_function_handler *found,
			  void *context)
{
	assert_non_null(image);
	symbols.debug = files;
	for (size_t i = 0; i < count && !symbols.error; i++) {
		assert_int_equal(vaddr[i], 0x1000 + i);
		found(context, i, &symbols.function[i % FUNCTIONS]);
	}
	return symbols.error;
}

/* Names that begin with '_' are demangled. */
bool demangle(const char *name, size_t size, char ret_text[DEMANGLE_MAX_BYTES])
{
	if (!size || name[0] != '_')
		return false;
	strcpy(ret_text, "demangled");
	return true;
}

const char *thread_start_name(const struct elf_image *image, struct cfi *cfi, uint64_t vaddr)
{
	assert_non_null(image);
	assert_non_null(cfi);
	symbols.starts_asked++;
	return vaddr == 0x1001 ? symbols.start : NULL;
}

/* ---- probes ---- */

static struct {
	uint32_t sites;
	int error;
} probes;

int probe_sites_find(const struct elf_image *image, const struct probe_wanted *wanted, size_t count,
		     struct probe_sites *ret_sites)
{
	assert_non_null(image);
	assert_string_equal(wanted[count - 1].name, "last");
	if (probes.error)
		return probes.error;
	*ret_sites = (struct probe_sites){.site_count = probes.sites,
					  .wanted_count = (uint32_t)count,
					  .unread_args = 7,
					  .refused = {[PROBE_REFUSED_FULL] = 8}};
	ret_sites->site = calloc(probes.sites + 1U, sizeof(*ret_sites->site));
	assert_non_null(ret_sites->site);
	for (uint32_t i = 0; i < probes.sites; i++)
		ret_sites->site[i].offset = i;
	ret_sites->found[count - 1].sites = probes.sites;
	return 0;
}

/* ---- what else is read ---- */

static int read_error;

int perf_lines_read(int fd, uint64_t from, uint64_t to, uint8_t *memory, size_t room,
		    uint32_t *ret_size)
{
	assert_int_equal(fd, FD);
	assert_int_equal(from, 100);
	assert_int_equal(to, 200);
	assert_int_equal(room, FOREIGN_MEMORY_BYTES);
	memory[0] = 'l';
	*ret_size = 77;
	return read_error;
}

int code_objects_decode(int fd, uint64_t from, uint64_t to, uint8_t *memory, size_t room,
			uint32_t *ret_size)
{
	assert_int_equal(fd, FD);
	assert_int_equal(from, 100);
	assert_int_equal(to, 200);
	assert_int_equal(room, FOREIGN_MEMORY_BYTES);
	memory[0] = 'c';
	*ret_size = 78;
	return read_error;
}

/* ---- fixture ---- */

static uint8_t memory[FOREIGN_MEMORY_BYTES + 4096]; /* more than the server has */
static struct foreign_server server;
static union {
	struct foreign_request request;
	uint8_t bytes[FOREIGN_REQUEST_MAX_BYTES];
} asked;
static struct child_reply reply;
static struct debug_files debug;

static int setup(void **state)
{
	(void)state;
	memset(&file, 0, sizeof(file));
	file.image.segment_count = 2;
	file.image.segment[0].executable = false;
	file.image.segment[1] = (struct elf_segment){.vaddr = 0x1000,
						     .offset = 0x2000,
						     .file_size = 0x300,
						     .memory_size = 0x400,
						     .align = 16,
						     .executable = true};
	file.row_bytes = 64;
	file.stop_row = UINT64_MAX;
	file.fde_count = 5;
	memset(&symbols, 0, sizeof(symbols));
	memset(&probes, 0, sizeof(probes));
	python_error = -ENOENT;
	python_reason = NULL;
	pythons_freed = 0;
	read_error = 0;
	memset(memory, 0xee, sizeof(memory));
	memset(&asked, 0, sizeof(asked));
	memset(&server, 0, sizeof(server));
	server.memory = memory;
	/* As foreign_child_main() leaves it: nothing was tried in any slot. */
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	server_release(&server);
	assert_int_equal(file.freed, file.opened - (file.open_error != 0));
	assert_int_equal(file.cfi_freed, file.cfi_opened - (file.cfi_error ? file.cfi_opened : 0));
	for (size_t i = 0; i < 4096; i++)
		assert_int_equal(memory[FOREIGN_MEMORY_BYTES + i], 0xee);
	return 0;
}

/* Serves a request, with the file or without; returns the error. */
static int serve(enum foreign_kind kind, bool has_file)
{
	const struct foreign_files files = {.file = has_file ? FD : -1, .debug = debug};

	asked.request.kind = (uint32_t)kind;
	asked.request.serial = 4711;
	asked.request.slot = SLOT;
	asked.request.number = NUMBER;
	memset(&reply, 0xee, sizeof(reply));
	foreign_serve(&server, &asked.request, &files, &reply);
	assert_int_equal(reply.serial, 4711);
	if (reply.error)
		assert_int_equal(reply.size, 0);
	return reply.error;
}

/* ---- slots ---- */

static void slot__file_is_kept_until_another_comes(void **state)
{
	(void)state;
	assert_int_equal(serve(FOREIGN_EXAMINE, false), -ESTALE);
	assert_int_equal(serve(FOREIGN_EXAMINE, true), 0);
	assert_int_equal(serve(FOREIGN_EXAMINE, false), 0);
	assert_int_equal(file.opened, 1);
	assert_int_equal(file.cfi_opened, 1);
	/* It comes again: it may have become another one. */
	assert_int_equal(serve(FOREIGN_EXAMINE, true), 0);
	assert_int_equal(file.opened, 2);
	assert_int_equal(file.freed, 1);
	assert_int_equal(file.cfi_opened, 2);
	server.slot[SLOT].number++;
	assert_int_equal(serve(FOREIGN_EXAMINE, false), -ESTALE);
	assert_int_equal(file.freed, 2);
	assert_int_equal(server.slot[SLOT].number, 0);
	server.slot[SLOT].number = NUMBER;
	assert_int_equal(serve(FOREIGN_EXAMINE, false), -ESTALE);
}

static void slot__file_that_does_not_open_is_not_there(void **state)
{
	(void)state;
	file.open_error = -ENOEXEC;
	assert_int_equal(serve(FOREIGN_EXAMINE, true), -ENOEXEC);
	assert_int_equal(serve(FOREIGN_EXAMINE, false), -ESTALE);
	assert_int_equal(file.opened, 1);
}

static void slot__close_forgets_the_file(void **state)
{
	(void)state;
	assert_int_equal(serve(FOREIGN_EXAMINE, true), 0);
	assert_int_equal(serve(FOREIGN_CLOSE, false), 0);
	assert_int_equal(reply.size, 0);
	assert_int_equal(file.freed, 1);
	assert_int_equal(file.cfi_freed, 1);
	assert_int_equal(serve(FOREIGN_EXAMINE, false), -ESTALE);
	assert_int_equal(serve(FOREIGN_CLOSE, false), 0);
}

/* ---- what a file is ---- */

static struct foreign_facts facts_of(bool has_file)
{
	struct foreign_facts facts;

	assert_int_equal(serve(FOREIGN_EXAMINE, has_file), 0);
	assert_true(reply.size >= sizeof(facts));
	memcpy(&facts, memory, sizeof(facts));
	return facts;
}

static void examine__tells_of_executable_segments(void **state)
{
	struct foreign_facts facts = facts_of(true);

	(void)state;
	assert_int_equal(facts.segment_count, 1);
	assert_int_equal(facts.segment[0].vaddr, 0x1000);
	assert_int_equal(facts.segment[0].offset, 0x2000);
	assert_int_equal(facts.segment[0].file_size, 0x300);
	assert_int_equal(facts.segment[0].memory_size, 0x400);
	assert_int_equal(facts.segment[0].align, 16);
	assert_int_equal(facts.has_symbols, 1);
	assert_string_equal(facts.debug.link, "a.debug");
	assert_int_equal(facts.fde_count, 5);
	assert_int_equal(facts.rows_error, 0);
	assert_int_equal(facts.python_error, -ENOENT);
	assert_string_equal(facts.reason, "");
	assert_int_equal(file.outermost, GREENLET);
	file.symtab_error = -ENOENT;
	assert_int_equal(facts_of(false).has_symbols, 0);
	/* As many as the answer has room for. */
	file.image.segment_count = FOREIGN_MAX_SEGMENTS + 3;
	for (size_t i = 0; i < file.image.segment_count; i++) {
		file.image.segment[i] = file.image.segment[1];
		file.image.segment[i].vaddr = i;
	}
	facts = facts_of(true);
	assert_int_equal(facts.segment_count, FOREIGN_MAX_SEGMENTS);
	assert_int_equal(facts.segment[FOREIGN_MAX_SEGMENTS - 1].vaddr, FOREIGN_MAX_SEGMENTS - 1);
}

static void examine__file_without_code_is_not_parsed(void **state)
{
	struct foreign_facts facts;

	(void)state;
	file.image.segment_count = 1;
	facts = facts_of(true);
	assert_int_equal(facts.segment_count, 0);
	assert_int_equal(facts.python_error, -ENOENT);
	assert_int_equal(facts.rows_error, 0);
	assert_int_equal(reply.size, sizeof(facts));
	assert_int_equal(file.cfi_opened, 0);
}

static void examine__errors_are_facts(void **state)
{
	struct foreign_facts facts;

	(void)state;
	file.cfi_error = -EBADMSG;
	facts = facts_of(true);
	assert_int_equal(facts.rows_error, -EBADMSG);
	assert_int_equal(facts.fde_count, 0);
	assert_int_equal(reply.size, sizeof(facts));
	/* Opened once, whatever came of it. */
	facts_of(false);
	assert_int_equal(file.cfi_opened, 1);
	python_error = -ENOTSUP;
	python_reason = "too old";
	facts = facts_of(false);
	assert_int_equal(facts.python_error, -ENOTSUP);
	assert_string_equal(facts.reason, "too old");
	python_error = -ENOMEM;
	assert_int_equal(serve(FOREIGN_EXAMINE, false), -ENOMEM);
	python_error = 0;
	python_reason = NULL;
	file.cfi_error = -ENOMEM;
	assert_int_equal(serve(FOREIGN_EXAMINE, true), -ENOMEM);
}

static void examine__interpreter_is_told_of(void **state)
{
	static char long_reason[2 * FOREIGN_REASON_BYTES];
	struct foreign_facts facts;

	(void)state;
	python_error = 0;
	facts = facts_of(true);
	assert_int_equal(facts.python_error, 0);
	assert_int_equal(((uint8_t *)&facts.python)[0], 0x5a);
	assert_int_equal(pythons_freed, 1);
	memset(long_reason, 'r', sizeof(long_reason) - 1);
	python_error = -ENOTSUP;
	python_reason = long_reason;
	assert_int_equal(strlen(facts_of(false).reason), FOREIGN_REASON_BYTES - 1);
}

/* ---- rows ---- */

struct rows_head {
	uint64_t high, count;
};

static struct rows_head rows_at(size_t at)
{
	struct rows_head head;
	struct cfi_row row;

	memcpy(&head, memory + at, sizeof(head));
	assert_int_equal(reply.size, at + sizeof(head) + head.count * sizeof(row));
	for (uint64_t i = 0; i < head.count; i++) {
		memcpy(&row, memory + at + sizeof(head) + i * sizeof(row), sizeof(row));
		assert_int_equal(row.rule.kind, PP_RULE_CFA_SP);
		assert_true(row.vaddr < head.high);
	}
	return head;
}

/* Rows of [low, high), so many bytes each. */
static struct rows_head rows_of(uint64_t low, uint64_t high, uint64_t bytes)
{
	struct rows_head head;
	struct cfi_row row;

	asked.request.low = low;
	asked.request.high = high;
	file.row_bytes = bytes;
	assert_int_equal(serve(FOREIGN_ROWS, !file.opened), 0);
	head = rows_at(0);
	memcpy(&row, memory + sizeof(head), sizeof(row));
	assert_int_equal(row.vaddr, low);
	return head;
}

static void rows__of_small_files_come_with_the_facts(void **state)
{
	struct rows_head head;

	(void)state;
	facts_of(true);
	head = rows_at(FOREIGN_FIRST_ROWS_AT);
	assert_int_equal(head.high, PAGE);
	assert_int_equal(head.count, PAGE / 64);
	/* When there are none, the facts are the answer. */
	file.compile_error = -E2BIG;
	facts_of(false);
	assert_int_equal(reply.size, sizeof(struct foreign_facts));
}

static void rows__that_fit_are_all_there(void **state)
{
	struct rows_head head = rows_of(0x1000, 0x1100, 64);

	(void)state;
	assert_int_equal(head.high, 0x1100);
	assert_int_equal(head.count, 4);
	/* To the last byte of the memory: as many rows as there is room for. */
	head = rows_of(0, FOREIGN_MAX_ROWS * 16, 16);
	assert_int_equal(head.high, FOREIGN_MAX_ROWS * 16);
	assert_int_equal(head.count, FOREIGN_MAX_ROWS);
}

static void rows__that_do_not_fit_are_those_of_whole_pages(void **state)
{
	struct rows_head head = rows_of(0, (FOREIGN_MAX_ROWS + 1) * 16, 16);

	(void)state;
	assert_int_equal(head.high, FOREIGN_MAX_ROWS * 16 & ~(PAGE - 1));
	assert_int_equal(head.count, head.high / 16);
	/* One for each byte, as in a forged file. */
	for (uint64_t at = 0; at < 2; at++) {
		head = rows_of(PAGE + at, 3 * PAGE, 1);
		assert_int_equal(head.high, 2 * PAGE);
		assert_int_equal(head.count, PAGE - at);
	}
}

static void rows__errors_are_told(void **state)
{
	(void)state;
	asked.request.high = 0x1000;
	file.compile_error = -E2BIG;
	assert_int_equal(serve(FOREIGN_ROWS, true), -E2BIG);
	assert_int_equal(serve(FOREIGN_CLOSE, false), 0);
	file.compile_error = 0;
	file.cfi_error = -ENODATA;
	assert_int_equal(serve(FOREIGN_ROWS, true), -ENODATA);
	assert_int_equal(serve(FOREIGN_ROWS, false), -ENODATA);
	assert_int_equal(file.compiled, 1);
	file.cfi_freed--; /* of before: teardown counts those that failed only */
}

/* ---- names ---- */

static struct foreign_names names_head;

static struct foreign_name name_at(uint32_t at)
{
	struct foreign_name name;

	memcpy(&name, memory + sizeof(names_head) + at * sizeof(name), sizeof(name));
	return name;
}

static void ask_names(uint32_t count)
{
	asked.request.vaddr_count = count;
	for (uint32_t i = 0; i < count; i++)
		asked.request.vaddr[i] = 0x1000 + i;
	assert_int_equal(serve(FOREIGN_NAMES, !file.opened), 0);
	memcpy(&names_head, memory, sizeof(names_head));
	assert_int_equal(reply.size, foreign_text_at(count) + names_head.text_bytes);
}

static void expect_text(uint32_t at, uint32_t bytes, const char *text)
{
	assert_int_equal(bytes, strlen(text));
	assert_true(at + bytes <= names_head.text_bytes);
	assert_memory_equal(memory + foreign_text_at(asked.request.vaddr_count) + at, text, bytes);
}

static struct elf_function function(const char *name, uint64_t start, uint64_t high)
{
	return (struct elf_function){.name = name,
				     .name_size = strlen(name),
				     .start = start,
				     .low = start,
				     .high = high};
}

static void names__are_those_of_the_functions(void **state)
{
	struct foreign_name name;

	(void)state;
	debug.fd[1] = 99;
	symbols.function[0] = function("first", 0x900, 0x1001);
	symbols.function[1] = function("_Zmangled", 0x1001, 0x1003);
	symbols.function[2] = function("_Zmangled", 0x1001, 0x1003);
	symbols.function[3] = function("last", 0x1003, 0x2000);
	ask_names(4);
	assert_int_equal(symbols.debug->fd[1], 99);
	assert_int_equal(names_head.count, 4);
	assert_int_equal(names_head.text_bytes, 5 + 9 + 9 + 4);
	name = name_at(0);
	expect_text(name.name_at, name.name_bytes, "first");
	assert_int_equal(name.system_bytes, 0);
	assert_int_equal(name.start, 0x900);
	assert_int_equal(name.low, 0x900);
	assert_int_equal(name.high, 0x1001);
	for (uint32_t i = 1; i < 3; i++) {
		name = name_at(i);
		expect_text(name.name_at, name.name_bytes, "demangled");
		expect_text(name.system_at, name.system_bytes, "_Zmangled");
		assert_int_equal(name.start, 0x1001);
		assert_int_equal(name.high, 0x1003);
	}
	name = name_at(3);
	expect_text(name.name_at, name.name_bytes, "last");
}

/* Of two functions only the whole range says that they are one. */
static void names__of_other_ranges_are_other_ones(void **state)
{
	(void)state;
	symbols.function[0] = function("a", 0x1000, 0x1010);
	symbols.function[1] = function("b", 0x1000, 0x1020);
	symbols.function[2] = function("c", 0x0fff, 0x1020);
	ask_names(3);
	expect_text(name_at(0).name_at, name_at(0).name_bytes, "a");
	expect_text(name_at(1).name_at, name_at(1).name_bytes, "b");
	expect_text(name_at(2).name_at, name_at(2).name_bytes, "c");
}

static void names__long_ones_are_cut(void **state)
{
	static char text[FOREIGN_NAME_MAX_BYTES + 100];

	(void)state;
	memset(text, 'n', sizeof(text) - 1);
	symbols.function[0] = function(text, 0x900, 0x1001);
	ask_names(1);
	assert_int_equal(name_at(0).name_bytes, FOREIGN_NAME_MAX_BYTES);
	symbols.function[0].name_size = FOREIGN_NAME_MAX_BYTES;
	ask_names(1);
	assert_int_equal(name_at(0).name_bytes, FOREIGN_NAME_MAX_BYTES);
}

/* Each address is in a function of its own, with a long name. */
static void names__as_many_as_there_is_room_for(void **state)
{
	static char text[FOREIGN_NAME_MAX_BYTES + 1];
	const uint32_t room = FOREIGN_MEMORY_BYTES - (uint32_t)foreign_text_at(1000);

	(void)state;
	memset(text, 'n', sizeof(text) - 1);
	for (uint32_t i = 0; i < FUNCTIONS; i++)
		symbols.function[i] = function(text, 0x900 + i, 0x1001 + i);
	ask_names(1000);
	assert_int_equal(names_head.count, room / FOREIGN_NAME_MAX_BYTES);
	assert_int_equal(names_head.text_bytes,
			 room / FOREIGN_NAME_MAX_BYTES * FOREIGN_NAME_MAX_BYTES);
	/* The last byte is room, too: one name fills what is left of the others. */
	for (uint32_t i = 0; i < FUNCTIONS; i++)
		symbols.function[i].name_size = 1;
	symbols.function[0].name_size = room % 4096;
	asked.request.vaddr_count = 0;
	ask_names(1000);
	assert_int_equal(names_head.count, 1000);
}

static void names__errors_are_told(void **state)
{
	(void)state;
	asked.request.vaddr_count = 1;
	asked.request.vaddr[0] = 0x1000;
	symbols.error = -EBADMSG;
	assert_int_equal(serve(FOREIGN_NAMES, true), -EBADMSG);
}

/* ---- addresses without a function ---- */

static void none__start_of_a_thread_has_its_name(void **state)
{
	(void)state;
	for (uint32_t i = 0; i < 3; i++)
		symbols.function[i] = (struct elf_function){.low = 0x500, .high = 0x5000};
	symbols.function[2].name = ""; /* a name of no bytes is none */
	symbols.start = "clone3";
	ask_names(3);
	assert_int_equal(names_head.count, 3);
	assert_int_equal(symbols.starts_asked, 3);
	assert_int_equal(name_at(0).name_bytes, 0);
	expect_text(name_at(1).name_at, name_at(1).name_bytes, "clone3");
	assert_int_equal(name_at(1).low, 0x1001);
	assert_int_equal(name_at(1).high, 0x1002);
	assert_int_equal(name_at(2).name_bytes, 0);
}

/* Expects the range of the answer about 0x1000, which the symbols give as [0x500, 0x5000). */
static void expect_none(uint64_t low, uint64_t high)
{
	symbols.function[0] = (struct elf_function){.low = 0x500, .high = 0x5000};
	ask_names(1);
	assert_int_equal(name_at(0).name_bytes, 0);
	assert_int_equal(name_at(0).low, low);
	assert_int_equal(name_at(0).high, high);
}

static void none__is_so_for_the_function_around(void **state)
{
	(void)state;
	/* By its unwind information, within what the symbols say. */
	file.fde.low = 0x0f00;
	file.fde.high = 0x1100;
	expect_none(0x0f00, 0x1100);
	file.fde.low = 0x0400;
	expect_none(0x0500, 0x1100);
	file.fde.high = 0x6000;
	expect_none(0x0500, 0x5000);
	file.fde.low = 0x1000;
	file.fde.high = 0x1100;
	expect_none(0x1000, 0x1100);
	file.fde.high = 0x1001;
	expect_none(0x1000, 0x1001);
	/* Up to 64 KiB. */
	file.fde.low = 0;
	file.fde.high = 65536;
	expect_none(0x0500, 0x5000);
	file.fde.high++;
	expect_none(0x1000, 0x1001);
}

static void none__is_so_for_the_address_alone_where_stacks_may_begin(void **state)
{
	(void)state;
	expect_none(0x1000, 0x1001);
	/* A function that ends stacks somewhere, at its first row or later. */
	file.fde.low = 0x0f00;
	file.fde.high = 0x1100;
	file.stop_row = 0x0f00;
	expect_none(0x1000, 0x1001);
	file.stop_row = 0x10c0;
	expect_none(0x1000, 0x1001);
	file.stop_row = UINT64_MAX;
	file.compile_error = -EBADMSG;
	expect_none(0x1000, 0x1001);
	file.compile_error = 0;
	/* One that is not around it. */
	file.fde.low = 0x1001;
	expect_none(0x1000, 0x1001);
	file.fde.low = 0x0f00;
	file.fde.high = 0x1000;
	expect_none(0x1000, 0x1001);
}

static void none__without_unwind_information_is_what_symbols_say(void **state)
{
	(void)state;
	file.cfi_error = -ENODATA;
	expect_none(0x0500, 0x5000);
	assert_int_equal(symbols.starts_asked, 0);
}

/* ---- kernels ---- */

static struct {
	unsigned int stubs_freed;
	bool has_cfi;
	int error;
} kernels;

void kernel_stubs_free(struct kernel_stubs *stubs)
{
	kernels.stubs_freed += stubs != NULL;
}

int kernel_names_of_code(const struct kernel_names_source *source,
			 const struct foreign_request *request, uint8_t *to, uint32_t *ret_size)
{
	assert_non_null(source->image);
	assert_non_null(source->debug);
	assert_int_equal(request->low, 1);
	kernels.has_cfi = source->cfi;
	*source->stubs = (struct kernel_stubs *)&kernels;
	to[0] = 'k';
	if (!kernels.error)
		*ret_size = 79;
	return kernels.error;
}

void kernel_names_of_texts(const struct foreign_request *request, uint8_t *to, uint32_t *ret_size)
{
	assert_int_equal(request->low, 1);
	to[0] = 't';
	*ret_size = 80;
}

static void kernels__are_told_of_a_file_that_stays(void **state)
{
	(void)state;
	memset(&kernels, 0, sizeof(kernels));
	asked.request.low = 1;
	assert_int_equal(serve(FOREIGN_KERNELS, true), 0);
	assert_int_equal(memory[0], 'k');
	assert_int_equal(reply.size, 79);
	assert_true(kernels.has_cfi);
	asked.request.low = 1;
	assert_int_equal(serve(FOREIGN_KERNELS, false), 0);
	assert_int_equal(file.opened, 1);
	kernels.error = -E2BIG;
	assert_int_equal(serve(FOREIGN_KERNELS, false), -E2BIG);
	assert_int_equal(kernels.stubs_freed, 0);
	assert_int_equal(serve(FOREIGN_CLOSE, false), 0);
	assert_int_equal(kernels.stubs_freed, 1);
}

static void kernels__are_told_without_unwind_information(void **state)
{
	(void)state;
	memset(&kernels, 0, sizeof(kernels));
	asked.request.low = 1;
	file.cfi_error = -ENODATA;
	assert_int_equal(serve(FOREIGN_KERNELS, true), 0);
	assert_false(kernels.has_cfi);
}

static void texts__need_no_file(void **state)
{
	(void)state;
	asked.request.low = 1;
	asked.request.vaddr_count = 1;
	memcpy(asked.request.vaddr, "a", 2);
	assert_int_equal(serve(FOREIGN_TEXTS, false), 0);
	assert_int_equal(memory[0], 't');
	assert_int_equal(reply.size, 80);
	assert_int_equal(file.opened, 0);
}

/* ---- the rest ---- */

static void serve__lines_and_code_objects_are_read_from_what_came(void **state)
{
	(void)state;
	asked.request.low = 100;
	asked.request.high = 200;
	assert_int_equal(serve(FOREIGN_LINES, true), 0);
	assert_int_equal(memory[0], 'l');
	assert_int_equal(reply.size, 77);
	assert_int_equal(serve(FOREIGN_CODES, true), 0);
	assert_int_equal(memory[0], 'c');
	assert_int_equal(reply.size, 78);
	assert_int_equal(file.opened, 0);
}

static int serve_probes(uint32_t count)
{
	struct probe_wanted last = {.kind = PROBE_WANTED_FUNCTION, .name = "last"};

	asked.request.vaddr_count = (uint32_t)(count * FOREIGN_WANTED_WORDS);
	memcpy(asked.request.vaddr + (count - 1) * FOREIGN_WANTED_WORDS, &last, sizeof(last));
	return serve(FOREIGN_PROBES, true);
}

static void probes__are_told_with_their_sites(void **state)
{
	const struct foreign_probes *told = (const struct foreign_probes *)memory;
	const struct probe_found *found = (const struct probe_found *)(told + 1);
	const struct probe_site *site = (const struct probe_site *)(found + PROBE_WANTED_MAX);

	(void)state;
	probes.sites = PROBE_SITES_PER_FILE;
	assert_int_equal(serve_probes(PROBE_WANTED_MAX), 0);
	assert_int_equal(reply.size,
			 foreign_sites_at(PROBE_WANTED_MAX) + PROBE_SITES_PER_FILE * sizeof(*site));
	assert_int_equal(told->wanted_count, PROBE_WANTED_MAX);
	assert_int_equal(told->site_count, PROBE_SITES_PER_FILE);
	assert_int_equal(told->unread_args, 7);
	assert_int_equal(told->refused[PROBE_REFUSED_FULL], 8);
	assert_int_equal(found[PROBE_WANTED_MAX - 1].sites, PROBE_SITES_PER_FILE);
	assert_int_equal(found[0].sites, 0);
	assert_int_equal(site[0].offset, 0);
	assert_int_equal(site[PROBE_SITES_PER_FILE - 1].offset, PROBE_SITES_PER_FILE - 1);
}

static void probes__errors_are_told(void **state)
{
	(void)state;
	assert_int_equal(serve_probes(1), 0);
	assert_int_equal(reply.size, foreign_sites_at(1));
	probes.error = -E2BIG;
	assert_int_equal(serve_probes(1), -E2BIG);
}

static void files__are_those_that_the_request_names(void **state)
{
	const int fd[] = {11, 12, 13, 14, 15};
	struct foreign_files files;
	struct foreign_request request = {0};

	(void)state;
	assert_true(foreign_files_sort(&request, fd, 0, &files));
	assert_int_equal(files.file, -1);
	for (size_t i = 0; i < DEBUG_FILES_MAX; i++)
		assert_int_equal(files.debug.fd[i], -1);
	assert_false(foreign_files_sort(&request, fd, 1, &files));
	request.files = FOREIGN_FILE_BIT | 1U << 2 | 1U << 4;
	assert_false(foreign_files_sort(&request, fd, 2, &files));
	assert_true(foreign_files_sort(&request, fd, 3, &files));
	assert_int_equal(files.file, 11);
	assert_int_equal(files.debug.fd[0], -1);
	assert_int_equal(files.debug.fd[1], 12);
	assert_int_equal(files.debug.fd[2], -1);
	assert_int_equal(files.debug.fd[3], 13);
	request.files = 1U << 1;
	assert_true(foreign_files_sort(&request, fd, 1, &files));
	assert_int_equal(files.file, -1);
	assert_int_equal(files.debug.fd[0], 11);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(slot__file_is_kept_until_another_comes),
		TEST(slot__file_that_does_not_open_is_not_there),
		TEST(slot__close_forgets_the_file),
		TEST(examine__tells_of_executable_segments),
		TEST(examine__file_without_code_is_not_parsed),
		TEST(examine__errors_are_facts),
		TEST(examine__interpreter_is_told_of),
		TEST(rows__of_small_files_come_with_the_facts),
		TEST(rows__that_fit_are_all_there),
		TEST(rows__that_do_not_fit_are_those_of_whole_pages),
		TEST(rows__errors_are_told),
		TEST(names__are_those_of_the_functions),
		TEST(names__of_other_ranges_are_other_ones),
		TEST(names__long_ones_are_cut),
		TEST(names__as_many_as_there_is_room_for),
		TEST(names__errors_are_told),
		TEST(none__start_of_a_thread_has_its_name),
		TEST(none__is_so_for_the_function_around),
		TEST(none__is_so_for_the_address_alone_where_stacks_may_begin),
		TEST(none__without_unwind_information_is_what_symbols_say),
		TEST(serve__lines_and_code_objects_are_read_from_what_came),
		TEST(probes__are_told_with_their_sites),
		TEST(probes__errors_are_told),
		TEST(kernels__are_told_of_a_file_that_stays),
		TEST(kernels__are_told_without_unwind_information),
		TEST(texts__need_no_file),
		TEST(files__are_those_that_the_request_names),
	};

	return cmocka_run_group_tests_name("files/serve", tests, NULL, NULL);
}
