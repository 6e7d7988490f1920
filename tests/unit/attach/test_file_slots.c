/* SPDX-License-Identifier: BSD-2-Clause */
/* Ids of very many files, when no file can be opened. */
#include "attach/file_table.h"

#include <cmocka.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "discover/proc_scan.h"
#include "drain/dictionary.h"
#include "files/client.h"
#include "files/opener.h"
#include "files/opening.h"

#define ROUND_FILES 1000U
#define ROUNDS 600U /* of which each begins with slots that are free again */

struct opener *foreign_opener(const struct foreign *foreign)
{
	(void)foreign;
	return NULL;
}

int opener_open_mapped(struct opener *opener, uint32_t tgid, uid_t owner,
		       const struct mapping *mapping, struct opened_file *ret_opened)
{
	(void)opener, (void)tgid, (void)owner, (void)mapping, (void)ret_opened;
	return -ESRCH;
}

uint64_t opener_child(const struct opener *opener)
{
	(void)opener;
	return 2;
}

uint64_t opener_place(const struct file_key *key)
{
	return key->inode;
}

int opener_give(struct opener *opener, const struct opener_file *file, pid_t tid, int *ret_fd)
{
	(void)opener, (void)file, (void)tid, (void)ret_fd;
	return -ESTALE;
}

bool opener_is_equal(struct opener *opener, const struct opener_file *a,
		     const struct opener_file *b, uint64_t bytes)
{
	(void)opener, (void)a, (void)b, (void)bytes;
	return false;
}

int opener_check_text(struct opener *opener, const struct opener_file *file,
		      const struct file_identity *identity, const struct foreign_segment *segment,
		      size_t count)
{
	(void)opener, (void)file, (void)identity, (void)segment, (void)count;
	return 0;
}

void opener_close(struct opener *opener, struct opener_file *file)
{
	(void)opener, (void)file;
}

void opener_close_many(struct opener *opener, struct opener_file *const *file, size_t count)
{
	(void)opener, (void)file, (void)count;
}

uint32_t process_user(const struct process *process)
{
	(void)process;
	return 0;
}

void python_info_free(struct python_info *info)
{
	free(info);
}

/* No file can be opened, so none is asked about. */
int foreign_examine(struct foreign *foreign, const struct foreign_file *file,
		    struct foreign_facts *ret_facts, struct python_info **ret_python,
		    const char **ret_reason)
{
	(void)foreign, (void)file, (void)ret_facts, (void)ret_python, (void)ret_reason;
	return -ETIMEDOUT;
}

int foreign_rows(struct foreign *foreign, const struct foreign_file *file, uint64_t low,
		 uint64_t high, struct cfi_rows *rows)
{
	(void)foreign, (void)file, (void)low, (void)high, (void)rows;
	return -ETIMEDOUT;
}

int foreign_kernels(struct foreign *foreign, const struct foreign_file *file, const uint64_t *vaddr,
		    size_t count, bool are_functions, foreign_function_handler *found,
		    void *context)
{
	(void)foreign, (void)file, (void)vaddr, (void)count, (void)are_functions;
	(void)found, (void)context;
	return -ENOTSUP;
}

int foreign_names(struct foreign *foreign, const struct foreign_file *file, const uint64_t *vaddr,
		  size_t count, foreign_function_handler *found, void *context)
{
	(void)foreign, (void)file, (void)vaddr, (void)count, (void)found, (void)context;
	return -ETIMEDOUT;
}

int foreign_probes(struct foreign *foreign, const struct foreign_file *file,
		   const struct probe_wanted *wanted, size_t count, struct probe_sites *ret_sites)
{
	(void)foreign, (void)file, (void)wanted, (void)count, (void)ret_sites;
	return -ETIMEDOUT;
}

void foreign_done(struct foreign *foreign, uint32_t number)
{
	(void)foreign, (void)number;
}

void foreign_close(struct foreign *foreign, uint32_t number)
{
	(void)foreign, (void)number;
}

void foreign_close_all(struct foreign *foreign)
{
	(void)foreign;
}

static struct row_store *new_rows(struct row_store_memory *memory)
{
	struct row_store *rows = NULL;

	*memory = (struct row_store_memory){.page_count = 64, .shard_count = 1, .rule_count = 64};
	memory->pages = calloc(64, sizeof(uint64_t));
	memory->shard = calloc(1, sizeof(*memory->shard));
	memory->shard[0] = calloc(PP_ROW_SHARD_ROWS, sizeof(uint32_t));
	memory->rules = calloc(64, sizeof(*memory->rules));
	assert_int_equal(row_store_new(memory, &rows), 0);
	return rows;
}

static struct file *new_file(struct file_table *table, uint64_t number)
{
	char path[64];
	const struct process process = {.id = {.tgid = 1}};
	const struct mapping mapping = {
		.start = 0x1000, .end = 0x2000, .path = path, .key = {.major = 8, .inode = number}};
	struct file *file = NULL;

	snprintf(path, sizeof(path), "/lib/%llu", (unsigned long long)number);
	assert_int_equal(file_table_get(table, &process, &mapping, &file), 0);
	return file;
}

/* The file that a stack's frame is named by. */
static const char *path_of_frame(const struct file_table *table, uint32_t id)
{
	const packed_frame frame = packed_native(PP_FRAME_NATIVE, id, 0x123456789);
	const struct file *file = file_table_in_slot(table, packed_file(frame));

	return file ? file->path : "";
}

static void ids__six_hundred_thousand_files_and_no_wrong_name(void **state)
{
	OWNED(file_table) struct file_table *table = NULL;
	OWNED_MEM uint64_t *named = calloc(FILE_SLOTS / 64, sizeof(*named));
	struct row_store_memory memory;
	struct row_store *rows = new_rows(&memory);
	struct file *kept;
	uint32_t stale_id, named_slot, highest = 0;
	char path[64];

	(void)state;
	assert_int_equal(file_table_new(rows, NULL, &table), 0);
	kept = new_file(table, 1);
	kept->references = 1;
	stale_id = new_file(table, 2)->id;
	named_slot = file_slot(new_file(table, 3)->id);
	/* A stack that is kept names it for ever. */
	named[named_slot / 64] |= 1ULL << named_slot % 64;
	for (uint64_t round = 0; round < ROUNDS; round++) {
		for (uint64_t i = 0; i < ROUND_FILES; i++) {
			const uint64_t number = 100 + round * ROUND_FILES + i;
			const struct file *file = new_file(table, number);

			snprintf(path, sizeof(path), "/lib/%llu", (unsigned long long)number);
			assert_string_equal(path_of_frame(table, file->id), path);
			assert_ptr_equal(file_table_find(table, file->id), file);
			assert_true(!round || file_slot(file->id) != named_slot);
			highest = file_slot(file->id) > highest ? file_slot(file->id) : highest;
		}
		file_table_tidy(table, UINT64_MAX);
		file_table_end_epoch(table, named);
		assert_string_equal(path_of_frame(table, kept->id), "/lib/1");
		assert_ptr_equal(file_table_find(table, kept->id), kept);
		/* Who still has an id of long ago gets nothing, and no other file. */
		assert_null(file_table_find(table, stale_id));
	}
	/* The tables do not grow with what came and went. */
	assert_true(highest < 5 * ROUND_FILES);
	file_table_free(TAKE(table));
	row_store_free(rows);
	free(memory.pages);
	free(memory.shard[0]);
	free(memory.shard);
	free(memory.rules);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ids__six_hundred_thousand_files_and_no_wrong_name),
	};

	return cmocka_run_group_tests_name("attach/file_slots", tests, NULL, NULL);
}
