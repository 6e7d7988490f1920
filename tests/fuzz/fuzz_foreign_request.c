/* SPDX-License-Identifier: BSD-2-Clause */
/* sources: files/decode.c files/serve.c files/kernel_names.c elf/kernel_stubs.c elf/call_constants_x86.c elf/call_constants_arm.c files/check.c elf/elf_image.c elf/elf_symbol_table.c unwind/cfi.c unwind/cfi_program.c unwind/cfi_go.c unwind/cfi_rule.c files/stack_starts.c python/python_accessor.c python/python_debug_offsets.c python/python_info.c python/python_offsets.c python/python_tls.c base/io.c elf/debug_file.c base/safe_file.c elf/demangle.c elf/elf_symbols.c python/python_text.c python/python_code.c python/python_objects.c elf/probe_sites.c elf/usdt_notes.c base/nearest.c elf/x86_decode.c elf/go_table.c */
/* What the child does with requests about a file: the input is two requests and the file.  What it
 * answers must pass the agent's checks, whatever the file is.
 * runs: 6000 at most in `make check`: each writes a file. */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../unit/files/server_release.h"
#include "base/cleanup.h"
#include "base/io.h"
#include "files/check.h"
#include "files/serve.h"

#define REQUESTS 2U
#define ADDRESSES 4U
#define WANTED 2U /* of bytes that follow the two requests */
#define REQUEST_BYTES (sizeof(struct foreign_request) + ADDRESSES * sizeof(uint64_t))

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_facts(const uint8_t *memory, uint32_t size)
{
	const struct foreign_rows *rows =
		(const struct foreign_rows *)(memory + FOREIGN_FIRST_ROWS_AT);
	uint64_t low, high;
	struct foreign_facts facts;
	struct python_info *python = NULL;

	memcpy(&facts, memory, sizeof(facts));
	assert(foreign_facts_are_sound(&facts));
	assert(facts.python_error || !python_told_check(&facts.python, &python));
	python_info_free(python);
	if (size == sizeof(facts))
		return;
	assert(foreign_has_first_rows(&facts, &low, &high));
	assert(rows->high > low && rows->high <= high);
	assert(size == FOREIGN_FIRST_ROWS_AT + sizeof(*rows) + rows->count * sizeof(*rows->row));
	assert(foreign_rows_are_sound(rows->row, rows->count, low, rows->high));
}

static void check_rows(const uint8_t *memory, const struct foreign_request *request, uint32_t size)
{
	const struct foreign_rows *rows = (const struct foreign_rows *)memory;

	assert(rows->high > request->low && rows->high <= request->high);
	assert(size == sizeof(*rows) + rows->count * sizeof(*rows->row));
	assert(foreign_rows_are_sound(rows->row, rows->count, request->low, rows->high));
}

/* The code objects that were in the file, for as far as the answer goes, are those that the agent
 * asked about. */
static void check_codes(const uint8_t *memory, const struct foreign_request *request, uint32_t size,
			int fd)
{
	OWNED_MEM struct python_code_raw **raw = NULL;
	struct foreign_codes codes;
	uint64_t at = request->low;

	memcpy(&codes, memory, sizeof(codes));
	raw = calloc(codes.count, sizeof(*raw));
	assert(raw);
	for (uint32_t i = 0; i < codes.count; i++) {
		struct python_code_raw head;

		assert(pread(fd, &head, sizeof(head), (off_t)at) == sizeof(head));
		raw[i] = malloc(head.size);
		assert(raw[i] && pread(fd, raw[i], head.size, (off_t)at) == (ssize_t)head.size);
		at += head.size;
	}
	assert(at == codes.next && at <= request->high);
	/* The agent asks about a file of its own, from the beginning on. */
	if (!request->low)
		assert(foreign_codes_are_sound((const struct foreign_codes *)memory, size,
					       (const struct python_code_raw *const *)raw,
					       codes.count));
	for (uint32_t i = 0; i < codes.count; i++)
		free(raw[i]);
}

static void ask(struct foreign_server *server, const uint8_t *data, int fd)
{
	const struct foreign_files files = {.file = fd, .debug = {.fd = {fd, fd, -1, -1}}};
	union {
		struct foreign_request request;
		uint8_t bytes[REQUEST_BYTES];
	} room;
	struct foreign_request *request = &room.request;
	struct child_reply reply;

	memcpy(&room, data, sizeof(room));
	request->kind %= FOREIGN_KINDS;
	request->slot %= 2;
	request->vaddr_count = request->kind == FOREIGN_NAMES || request->kind == FOREIGN_KERNELS ||
					       request->kind == FOREIGN_TEXTS
				       ? ADDRESSES
				       : 0;
	if (request->kind == FOREIGN_TEXTS)
		request->files = 0;
	if (!foreign_request_is_sound(request, sizeof(*request) + request->vaddr_count * 8))
		return;
	/* As the agent asks: a unit of a file, and what there is no room for. */
	if (request->high - request->low > 1 << 20)
		request->high = request->low + (1 << 20);
	foreign_serve(server, request, &files, &reply);
	assert(child_reply_is_sound(&reply, sizeof(reply), request->serial, FOREIGN_MEMORY_BYTES));
	if (!reply.error && request->kind == FOREIGN_EXAMINE)
		check_facts(server->memory, reply.size);
	if (!reply.error && request->kind == FOREIGN_ROWS)
		check_rows(server->memory, request, reply.size);
	if (!reply.error && request->kind == FOREIGN_TEXTS)
		assert(((const struct foreign_names *)server->memory)->count == request->low);
	if (!reply.error && (request->kind == FOREIGN_NAMES || request->kind == FOREIGN_KERNELS))
		assert(foreign_names_are_sound((const struct foreign_names *)server->memory,
					       reply.size, request->vaddr, ADDRESSES));
	if (!reply.error && request->kind == FOREIGN_CODES)
		check_codes(server->memory, request, reply.size, fd);
	if (!reply.error && request->kind == FOREIGN_LINES)
		assert(foreign_lines_are_sound((const struct foreign_lines *)server->memory,
					       reply.size, request->low, request->high));
}

/* Asks for probes with names out of the input, which are symbols and notes of the file, too. */
static void ask_probes(struct foreign_server *server, const uint8_t *data, size_t size, int fd)
{
	const struct foreign_files files = {.file = fd, .debug = DEBUG_FILES_NONE};
	union {
		struct foreign_request request;
		uint8_t bytes[sizeof(struct foreign_request) +
			      WANTED * sizeof(struct probe_wanted)];
	} room = {.request = {.kind = FOREIGN_PROBES,
			      .number = 1,
			      .files = FOREIGN_FILE_BIT,
			      .vaddr_count = WANTED * FOREIGN_WANTED_WORDS}};
	struct probe_wanted *wanted = (struct probe_wanted *)room.request.vaddr;
	struct child_reply reply;

	if (size < WANTED * sizeof(*wanted))
		return;
	memcpy(wanted, data, WANTED * sizeof(*wanted));
	for (size_t i = 0; i < WANTED; i++) {
		wanted[i].kind %= PROBE_WANTED_KINDS;
		wanted[i].wants_nearest &= 1;
		wanted[i].provider[sizeof(wanted[i].provider) - 1] = '\0';
		wanted[i].name[sizeof(wanted[i].name) - 1] = '\0';
		if (wanted[i].kind != PROBE_WANTED_USDT)
			wanted[i].provider[0] = '\0';
	}
	if (!foreign_request_is_sound(&room.request, sizeof(room)))
		return;
	foreign_serve(server, &room.request, &files, &reply);
	assert(child_reply_is_sound(&reply, sizeof(reply), 0, FOREIGN_MEMORY_BYTES));
	if (!reply.error)
		assert(foreign_probes_are_sound((const struct foreign_probes *)server->memory,
						reply.size, wanted, WANTED));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const size_t head = REQUESTS * REQUEST_BYTES;
	OWNED_MEM uint8_t *memory = malloc(FOREIGN_MEMORY_BYTES);
	struct foreign_server server = {.memory = memory};
	OWNED_FD int fd = -1;

	if (size < head)
		return 0;
	fd = memfd_create("fuzz", MFD_CLOEXEC);
	assert(fd >= 0 && memory && !write_full(fd, data + head, size - head));
	for (size_t i = 0; i < REQUESTS; i++)
		ask(&server, data + i * REQUEST_BYTES, data[0] & 1 && i ? -1 : fd);
	ask_probes(&server, data + head, size - head, fd);
	server_release(&server);
	return 0;
}
