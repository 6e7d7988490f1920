/* SPDX-License-Identifier: BSD-2-Clause */
#include "attach/file_rows.h"

#include <errno.h>

#include "attach/file_facts.h"
#include "attach/file_identity.h"
#include "files/client.h"

void file_rows_init(struct file_rows *rows, struct row_store *store, struct foreign *foreign,
		    struct file_table_stats *stats)
{
	*rows = (struct file_rows){.store = store, .foreign = foreign, .stats = stats};
}

void file_rows_release(struct file_rows *rows)
{
	rule_cache_release(&rows->cache);
}

/* A file that the child is asked for rows of. */
struct question {
	struct foreign *foreign;
	const struct foreign_file *asked;
};

static int ask_rows(void *context, uint64_t low, uint64_t high, struct cfi_rows *cfi)
{
	const struct question *question = context;

	return foreign_rows(question->foreign, question->asked, low, high, cfi);
}

/* Compiles rows.  Code without any unwind information, and that of a refused file, gets pages too,
 * with NO_INFO everywhere: there a walk then uses the checked frame pointer instead of asking for
 * rows each time. */
static int compile(struct file_rows *rows, struct file *file, const struct foreign_file *asked,
		   uint64_t low, uint64_t high)
{
	struct question question = {.foreign = rows->foreign, .asked = asked};
	const struct row_source source = {.rows = ask_rows, .context = &question};
	const bool is_asked = file->has_rows && !file->is_refused;
	int err = row_store_load(rows->store, file->page0, is_asked ? &source : NULL, low, high);

	if (err == -ETIME) {
		rows->stats->refused += !file->lates;
		err = file_facts_soften(file, err);
	}
	if (err && !rows_may_come(err)) {
		if (file_facts_are_refused(err)) {
			/* take_in() counts the others */
			rows->stats->refused += file->is_giant && !file->is_refused;
			file->is_refused = true;
		}
		err = row_store_load(rows->store, file->page0, NULL, low, high);
	}
	file->no_room_ns = err == -ENOSPC ? mono_ns() : 0;
	if (err == -ENOSPC)
		rows->stats->no_space++;
	if (!err)
		rows->stats->compiled_bytes_of_text += high - low;
	return err;
}

int file_rows_share(struct file *file)
{
	const struct file *from = file->rows_of;

	file->page0 = from->page0;
	file->has_pages = from->has_pages;
	file->is_giant = from->is_giant;
	file->is_whole = from->is_whole;
	file->refused_ns = from->refused_ns;
	return from->error;
}

static int reserve_pages(struct file_rows *rows, struct file *file)
{
	int err = 0;

	if (file->fd >= 0)
		err = file_text_check(file->fd, &file->identity, file->segment,
				      file->segment_count);
	if (!err)
		err = row_store_add_file(rows->store, file->uid, file->min_vaddr, file->max_vaddr,
					 &file->page0);
	file->refused_ns = err == -EDQUOT || err == -ENOSPC ? mono_ns() : 0;
	if (err)
		rows->stats->text_refused++;
	return err;
}

int file_rows_load(struct file_rows *rows, struct file *file, const struct foreign_file *asked)
{
	int err = reserve_pages(rows, file);

	if (err)
		return err;
	file->has_pages = true;
	if (file->is_giant)
		return 0;
	for (size_t i = 0; i < file->segment_count; i++) {
		const struct foreign_segment *segment = &file->segment[i];

		err = compile(rows, file, asked, segment->vaddr,
			      segment->vaddr + segment->file_size);
		if (err)
			return err;
	}
	file->is_whole = true;
	return 0;
}

void file_rows_drop(struct file_rows *rows, const struct file *file)
{
	row_store_remove_file(rows->store, file->page0, file->min_vaddr, file->max_vaddr);
}

int file_rows_load_at(struct file_rows *rows, struct file *file, const struct foreign_file *asked,
		      uint64_t vaddr)
{
	uint64_t low = vaddr & ~(FILE_UNIT_BYTES - 1), high = low + FILE_UNIT_BYTES;

	if (!file->has_pages || vaddr < file->min_vaddr || vaddr >= file->max_vaddr)
		return -ENODATA;
	/* Each frame of a deep stack would bring rows that find no room. */
	if (file->no_room_ns && mono_ns() - file->no_room_ns < FILE_RETRY_NS)
		return -ENOSPC;
	if (low < file->min_vaddr)
		low = file->min_vaddr;
	if (high > file->max_vaddr)
		high = file->max_vaddr;
	return compile(rows, file, asked, low, high);
}

int file_rows_rule_at(struct file_rows *rows, const struct file *file,
		      const struct foreign_file *asked, uint64_t vaddr, struct pp_rule *ret_rule)
{
	struct question question = {.foreign = rows->foreign, .asked = asked};
	const struct row_source source = {.rows = ask_rows, .context = &question};

	*ret_rule = (struct pp_rule){.kind = PP_RULE_NO_INFO};
	if (!file->has_pages || vaddr < file->min_vaddr || vaddr >= file->max_vaddr)
		return 0;
	if (!row_store_rule_at(rows->store, file->page0, vaddr, ret_rule) || !file->has_rows ||
	    file->is_refused)
		return 0;
	/* There was no room for its page. */
	return rule_cache_find(&rows->cache, file->id, &source, vaddr, ret_rule);
}
