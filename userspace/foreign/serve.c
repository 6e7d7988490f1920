/* SPDX-License-Identifier: BSD-2-Clause */
#include "foreign/serve.h"

#include <errno.h>
#include <string.h>

#include "python/greenlet.h"
#include "python/python_info.h"

#define PAGE_BYTES (1ULL << PP_PAGE_SHIFT)
#define NOT_TRIED 1

static void slot_release(struct foreign_slot *slot)
{
	cfi_free(slot->cfi);
	elf_image_free(slot->image);
	*slot = (struct foreign_slot){.cfi_error = NOT_TRIED};
}

void foreign_server_release(struct foreign_server *server)
{
	for (size_t i = 0; i < FOREIGN_SLOTS; i++)
		slot_release(&server->slot[i]);
	free(server->rows.row);
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
	if (!slot->cfi_error)
		cfi_set_outermost(slot->cfi, greenlet_first_function(slot->image));
	return slot->cfi_error;
}

/* ---- what the file is ---- */

static void tell_image(const struct elf_image *image, struct foreign_facts *facts)
{
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
	if (!image->build_id || image->build_id_size > FOREIGN_BUILD_ID_BYTES)
		return;
	memcpy(facts->build_id, image->build_id, image->build_id_size);
	facts->build_id_bytes = (uint32_t)image->build_id_size;
}

static void tell_python(const struct elf_image *image, struct foreign_facts *facts)
{
	OWNED(python_info) struct python_info *info = NULL;
	const char *reason = NULL;

	facts->python_error = python_info_read(image, &info, &reason);
	if (info)
		python_told_from(info, &facts->python);
	if (reason)
		strncpy(facts->reason, reason, sizeof(facts->reason) - 1);
}

static int examine(struct foreign_server *server, struct foreign_slot *slot, uint32_t *ret_size)
{
	struct foreign_facts facts = {0};

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
	return 0;
}

/* ---- rows ---- */

/* Returns how many rows there are below `high`. */
static size_t count_below(const struct cfi_rows *rows, uint64_t high)
{
	size_t count = rows->count;

	while (count && rows->row[count - 1].vaddr >= high)
		count--;
	return count;
}

static int tell_rows(struct foreign_server *server, struct foreign_slot *slot,
		     const struct foreign_request *request, uint32_t *ret_size)
{
	struct foreign_rows head = {.high = request->high};
	struct cfi_rows *rows = &server->rows;
	int err = slot_cfi(slot);

	rows->count = 0;
	if (!err)
		err = cfi_compile(slot->cfi, request->low, request->high, rows, NULL);
	if (err)
		return err;
	if (rows->count > FOREIGN_MAX_ROWS) {
		head.high = rows->row[FOREIGN_MAX_ROWS].vaddr & ~(PAGE_BYTES - 1);
		if (head.high <= request->low)
			return -E2BIG; /* it is asked for from a page's beginning on */
	}
	head.count = count_below(rows, head.high);
	memcpy(server->memory, &head, sizeof(head));
	memcpy(server->memory + sizeof(head), rows->row, head.count * sizeof(*rows->row));
	*ret_size = (uint32_t)(sizeof(head) + head.count * sizeof(*rows->row));
	return 0;
}

void foreign_serve(struct foreign_server *server, const struct foreign_request *request, int fd,
		   struct parser_reply *ret_reply)
{
	struct foreign_slot *slot = NULL;
	uint32_t size = 0;
	int err = 0;

	if (request->kind == FOREIGN_CLOSE)
		slot_release(&server->slot[request->slot]);
	else
		err = slot_open(server, request, fd, &slot);
	if (!err && request->kind == FOREIGN_EXAMINE)
		err = examine(server, slot, &size);
	else if (!err && request->kind == FOREIGN_ROWS)
		err = tell_rows(server, slot, request, &size);
	*ret_reply = (struct parser_reply){.serial = request->serial, .error = err, .size = size};
}
