/* SPDX-License-Identifier: BSD-2-Clause */
#include "files/serve.h"

#include <errno.h>
#include <string.h>

#include "elf/debug_file.h"
#include "elf/demangle.h"
#include "elf/elf_symbol_table.h"
#include "elf/elf_symbols.h"
#include "files/decode.h"
#include "files/kernel_names.h"
#include "files/stack_starts.h"
#include "python/python_info.h"

#define PAGE_BYTES (1ULL << PP_PAGE_SHIFT)
#define NOT_TRIED 1
#define NARROW_MAX_BYTES 65536U /* of a function whose rows are looked at for a name */

static void slot_release(struct foreign_slot *slot)
{
	kernel_stubs_free(slot->stubs);
	cfi_free(slot->cfi);
	elf_image_free(slot->image);
	*slot = (struct foreign_slot){.cfi_error = NOT_TRIED};
}

static int slot_open(struct foreign_server *server, const struct foreign_request *request, int fd,
		     struct foreign_slot **ret_slot)
{
	struct foreign_slot *slot = &server->slot[request->slot];
	int err;

	if (slot->number != request->number || !slot->image || fd >= 0) {
		slot_release(slot);
		if (fd < 0)
			return -ESTALE;
		err = elf_image_open(fd, &slot->image);
		if (err)
			return err;
		slot->number = request->number;
	}
	*ret_slot = slot;
	return 0;
}

/* Returns 0; -ENODATA, -EBADMSG: it has no unwind information; -E2BIG; -ENOMEM. */
static int slot_cfi(struct foreign_slot *slot)
{
	if (slot->cfi_error != NOT_TRIED)
		return slot->cfi_error;
	slot->cfi_error = cfi_open(slot->image, &slot->cfi);
	if (slot->cfi_error)
		return slot->cfi_error;
	cfi_set_outermost(slot->cfi, greenlet_first_function(slot->image));
	coroutine_roots_add(slot->image, slot->cfi);
	return 0;
}

/* ---- what the file is ---- */

static void tell_image(const struct elf_image *image, struct foreign_facts *facts)
{
	struct elf_symbol_table symbols;

	for (size_t i = 0; i < image->segment_count; i++) {
		const struct elf_segment *segment = &image->segment[i];

		if (!segment->executable || facts->segment_count == FOREIGN_MAX_SEGMENTS)
			continue;
		facts->segment[facts->segment_count++] =
			(struct foreign_segment){.vaddr = segment->vaddr,
						 .offset = segment->offset,
						 .file_size = segment->file_size,
						 .memory_size = segment->memory_size,
						 .align = segment->align};
	}
	debug_names_read(image, &facts->debug);
	facts->has_symbols = !elf_image_symbol_table(image, SHT_SYMTAB, &symbols);
}

static void tell_python(const struct elf_image *image, struct foreign_facts *facts)
{
	OWNED(python_info) struct python_info *info = NULL;
	const char *reason = NULL;

	facts->python_error = python_info_read(image, &info, &reason);
	if (info)
		facts->python = *info;
	if (reason)
		strncpy(facts->reason, reason, sizeof(facts->reason) - 1);
}

/* Returns how many rows there are below `high`. */
static size_t count_below(const struct cfi_rows *rows, uint64_t high)
{
	size_t count = rows->count;

	while (count && rows->row[count - 1].vaddr >= high)
		count--;
	return count;
}

/* Writes the rows of [low, high), as far as they fit into the shared memory from `at` on. */
static int put_rows(struct foreign_server *server, struct foreign_slot *slot, uint64_t low,
		    uint64_t high, size_t at, uint32_t *ret_size)
{
	const size_t room =
		(FOREIGN_MEMORY_BYTES - at - sizeof(struct foreign_rows)) / sizeof(struct cfi_row);
	struct foreign_rows head = {.high = high};
	struct cfi_rows *rows = &server->rows;
	int err = slot_cfi(slot);

	rows->count = 0;
	if (!err)
		err = cfi_compile(slot->cfi, low, high, rows, NULL);
	if (err)
		return err;
	/* A page's rows fit: the protocol's assertions. */
	if (rows->count > room)
		head.high = rows->row[room].vaddr & ~(PAGE_BYTES - 1);
	head.count = count_below(rows, head.high);
	memcpy(server->memory + at, &head, sizeof(head));
	memcpy(server->memory + at + sizeof(head), rows->row, head.count * sizeof(*rows->row));
	*ret_size = (uint32_t)(at + sizeof(head) + head.count * sizeof(*rows->row));
	return 0;
}

static int examine(struct foreign_server *server, struct foreign_slot *slot, uint32_t *ret_size)
{
	/* Without code it is no interpreter. */
	struct foreign_facts facts = {.python_error = -ENOENT};
	uint64_t low, high;

	tell_image(slot->image, &facts);
	if (facts.segment_count) {
		tell_python(slot->image, &facts);
		facts.rows_error = slot_cfi(slot);
		if (slot->cfi)
			facts.fde_count = cfi_fde_count(slot->cfi);
	}
	if (facts.rows_error == -ENOMEM || facts.python_error == -ENOMEM)
		return -ENOMEM;
	memcpy(server->memory, &facts, sizeof(facts));
	*ret_size = sizeof(facts);
	/* If there are none, the question about them says why. */
	if (foreign_has_first_rows(&facts, &low, &high))
		(void)put_rows(server, slot, low, high, FOREIGN_FIRST_ROWS_AT, ret_size);
	return 0;
}

/* ---- names ---- */

/* Answers that are being written. */
struct writing {
	uint8_t *memory; /* as in struct foreign_server */
	size_t text_at;
	struct foreign_slot *slot;
	struct cfi_rows *rows; /* scratch */
	const uint64_t *vaddr;
	struct foreign_names head;
	struct foreign_name last;
	bool is_full;
};

static bool add_text(struct writing *writing, const char *text, size_t size, uint32_t *ret_at,
		     uint32_t *ret_bytes)
{
	if (size > FOREIGN_NAME_MAX_BYTES)
		size = FOREIGN_NAME_MAX_BYTES;
	if (size > FOREIGN_MEMORY_BYTES - writing->text_at - writing->head.text_bytes)
		return false;
	memcpy(writing->memory + writing->text_at + writing->head.text_bytes, text, size);
	*ret_at = writing->head.text_bytes;
	*ret_bytes = (uint32_t)size;
	writing->head.text_bytes += (uint32_t)size;
	return true;
}

static bool add_name(struct writing *writing, const struct elf_function *found,
		     struct foreign_name *name)
{
	char demangled[DEMANGLE_MAX_BYTES];

	if (!demangle(found->name, found->name_size, demangled))
		return add_text(writing, found->name, found->name_size, &name->name_at,
				&name->name_bytes);
	return add_text(writing, demangled, strlen(demangled), &name->name_at, &name->name_bytes) &&
	       add_text(writing, found->name, found->name_size, &name->system_at,
			&name->system_bytes);
}

/* Narrows the range of an answer "none" so that no start of a thread is in it: to the function, by
 * its unwind information, or else to the address alone. */
static void narrow(struct writing *writing, uint64_t vaddr, struct foreign_name *name)
{
	struct cfi_range range = {.low = vaddr, .high = vaddr + 1};
	struct cfi *cfi = writing->slot->cfi;
	struct cfi_rows *rows = writing->rows;

	rows->count = 0;
	if (!cfi_fde_find(cfi, vaddr, &range) && range.high - range.low <= NARROW_MAX_BYTES &&
	    cfi_compile(cfi, range.low, range.high, rows, NULL))
		rows->count = 0;
	for (size_t i = 0; i < rows->count; i++)
		if (rows->row[i].rule.kind == PP_RULE_STOP)
			rows->count = 0;
	if (!rows->count || vaddr < range.low || vaddr >= range.high)
		range = (struct cfi_range){.low = vaddr, .high = vaddr + 1};
	name->low = range.low > name->low ? range.low : name->low;
	name->high = range.high < name->high ? range.high : name->high;
}

/* Stripping removes the names of the functions at which stacks begin: for each address alone. */
static bool add_start(struct writing *writing, uint64_t vaddr, struct foreign_name *name)
{
	struct foreign_slot *slot = writing->slot;
	const char *start;

	if (slot_cfi(slot))
		return true;
	start = thread_start_name(slot->image, slot->cfi, vaddr);
	if (!start) {
		narrow(writing, vaddr, name);
		return true;
	}
	name->low = vaddr;
	name->high = vaddr + 1;
	return add_text(writing, start, strlen(start), &name->name_at, &name->name_bytes);
}

static void on_function(void *context, size_t index, const struct elf_function *found)
{
	struct writing *writing = context;
	struct foreign_name name = {.start = found->start, .low = found->low, .high = found->high};

	if (writing->is_full)
		return;
	/* Several addresses may be in one range. */
	if (index && found->name && found->high == writing->last.high &&
	    found->start == writing->last.start)
		name = writing->last;
	else if (found->name && found->name_size)
		writing->is_full = !add_name(writing, found, &name);
	else
		writing->is_full = !add_start(writing, writing->vaddr[index], &name);
	if (writing->is_full)
		return;
	writing->last = name;
	memcpy(writing->memory + sizeof(writing->head) + index * sizeof(name), &name, sizeof(name));
	writing->head.count++;
}

static int tell_names(struct foreign_server *server, struct foreign_slot *slot,
		      const struct foreign_request *request, const struct debug_files *debug,
		      uint32_t *ret_size)
{
	struct writing writing = {.memory = server->memory,
				  .text_at = foreign_text_at(request->vaddr_count),
				  .slot = slot,
				  .rows = &server->rows,
				  .vaddr = request->vaddr};
	int err = elf_symbols_find_many(slot->image, debug, request->vaddr, request->vaddr_count,
					on_function, &writing);

	if (err)
		return err;
	memcpy(server->memory, &writing.head, sizeof(writing.head));
	*ret_size = (uint32_t)writing.text_at + writing.head.text_bytes;
	return 0;
}

/* ---- probes ---- */

static int tell_probes(struct foreign_server *server, struct foreign_slot *slot,
		       const struct foreign_request *request, uint32_t *ret_size)
{
	CLEANUP(probe_sites_release) struct probe_sites sites = {0};
	struct foreign_probes head = {0};
	uint32_t count;
	const struct probe_wanted *wanted = foreign_wanted(request, &count);
	int err = probe_sites_find(slot->image, wanted, count, &sites);

	if (err)
		return err;
	head.wanted_count = count;
	head.site_count = sites.site_count;
	head.unread_args = sites.unread_args;
	memcpy(head.refused, sites.refused, sizeof(head.refused));
	memcpy(server->memory, &head, sizeof(head));
	memcpy(server->memory + sizeof(head), sites.found, count * sizeof(*sites.found));
	memcpy(server->memory + foreign_sites_at(count), sites.site,
	       sites.site_count * sizeof(*sites.site));
	*ret_size = (uint32_t)(foreign_sites_at(count) + sites.site_count * sizeof(*sites.site));
	return 0;
}

/* ---- kernels ---- */

static int tell_kernels(struct foreign_server *server, struct foreign_slot *slot,
			const struct foreign_request *request, const struct debug_files *debug,
			uint32_t *ret_size)
{
	struct kernel_names_source source = {
		.image = slot->image, .debug = debug, .stubs = &slot->stubs};
	int err = slot_cfi(slot);

	if (err == -ENOMEM)
		return err;
	source.cfi = slot->cfi;
	return kernel_names_of_code(&source, request, server->memory, ret_size);
}

bool foreign_files_sort(const struct foreign_request *request, const int *fd, size_t count,
			struct foreign_files *ret_files)
{
	size_t at = 0;

	if (count != (size_t)__builtin_popcount(request->files))
		return false;
	*ret_files = (struct foreign_files){.file = -1, .debug = DEBUG_FILES_NONE};
	if (request->files & FOREIGN_FILE_BIT)
		ret_files->file = fd[at++];
	for (size_t i = 0; i < DEBUG_FILES_MAX; i++)
		if (request->files >> (1 + i) & 1)
			ret_files->debug.fd[i] = fd[at++];
	return true;
}

void foreign_serve(struct foreign_server *server, const struct foreign_request *request,
		   const struct foreign_files *files, struct child_reply *ret_reply)
{
	struct foreign_slot *slot = NULL;
	uint32_t size = 0;
	int err = 0;

	if (request->kind == FOREIGN_CLOSE)
		slot_release(&server->slot[request->slot]);
	else if (request->kind == FOREIGN_LINES)
		err = perf_lines_read(files->file, request->low, request->high, server->memory,
				      FOREIGN_MEMORY_BYTES, &size);
	else if (request->kind == FOREIGN_CODES)
		err = code_objects_decode(files->file, request->low, request->high, server->memory,
					  FOREIGN_MEMORY_BYTES, &size);
	else if (request->kind == FOREIGN_TEXTS)
		kernel_names_of_texts(request, server->memory, &size);
	else
		err = slot_open(server, request, files->file, &slot);
	if (!err && request->kind == FOREIGN_EXAMINE)
		err = examine(server, slot, &size);
	else if (!err && request->kind == FOREIGN_ROWS)
		err = put_rows(server, slot, request->low, request->high, 0, &size);
	else if (!err && request->kind == FOREIGN_NAMES)
		err = tell_names(server, slot, request, &files->debug, &size);
	else if (!err && request->kind == FOREIGN_PROBES)
		err = tell_probes(server, slot, request, &size);
	else if (!err && request->kind == FOREIGN_KERNELS)
		err = tell_kernels(server, slot, request, &files->debug, &size);
	*ret_reply = (struct child_reply){.serial = request->serial, .error = err, .size = size};
}
