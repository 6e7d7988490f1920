/* SPDX-License-Identifier: BSD-2-Clause */
#include "attach/file_rows.h"

#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>

#include "attach/file_table.h"
#include "base/array.h"
#include "base/clock.h"
#include "base/io.h"
#include "files/client.h"

bool file_facts_are_refused(int err)
{
	return err == -E2BIG || err == -ENOTSUP || err == -ETIME;
}

int file_facts_soften(struct file *file, int err)
{
	if (err != -ETIME || file->lates == FILE_LATES_MAX)
		return err;
	file->lates++;
	return -ETIMEDOUT;
}

static void take_segments(struct file *file, const struct foreign_facts *facts)
{
	memcpy(file->segment, facts->segment, sizeof(file->segment));
	file->segment_count = facts->segment_count;
	file->min_vaddr = UINT64_MAX;
	file->max_vaddr = 0;
	for (size_t i = 0; i < file->segment_count; i++) {
		const struct foreign_segment *segment = &file->segment[i];

		if (segment->vaddr < file->min_vaddr)
			file->min_vaddr = segment->vaddr;
		/* What is in memory alone is a mapping without a file. */
		if (segment->vaddr + segment->file_size > file->max_vaddr)
			file->max_vaddr = segment->vaddr + segment->file_size;
	}
}

static void take_names(struct file *file, const struct foreign_facts *facts)
{
	const struct debug_names *names = &facts->debug;

	if (!facts->has_symbols && (names->build_id_bytes || names->link[0]))
		file->debug = malloc(sizeof(*names)); /* without it, it has its own names alone */
	if (file->debug)
		*file->debug = *names;
	if (names->build_id_bytes > BUILD_ID_MAX_BYTES)
		return;
	memcpy(file->build_id, names->build_id, names->build_id_bytes);
	file->build_id_size = (uint8_t)names->build_id_bytes;
}

void file_facts_ask(struct foreign *foreign, const struct foreign_file *asked, struct file *file)
{
	struct foreign_facts facts;

	file->error = file_facts_soften(file, foreign_examine(foreign, asked, &facts, &file->python,
							      &file->python_reason));
	file->is_refused = file_facts_are_refused(file->error);
	file->unread_ns = file->error == -ETIMEDOUT || file->error == -EAGAIN ? mono_ns() : 0;
	if (file->error)
		return;
	take_segments(file, &facts);
	file->has_rows = !facts.rows_error;
	file->is_refused = file_facts_are_refused(facts.rows_error);
	file->is_giant = facts.fde_count > FILE_GIANT_FDES;
	take_names(file, &facts);
}

uint64_t file_bias(const struct file *file, const struct mapping *mapping)
{
	const struct foreign_segment *found = NULL;
	uint64_t page = mapping->offset & ~4095ULL;

	for (size_t i = 0; i < file->segment_count; i++) {
		const struct foreign_segment *segment = &file->segment[i];

		/* mmap rounds a segment's ends to pages.  A page that two segments share is mapped
		 * for each of them; a mapping that starts with that page belongs to the second. */
		if (page + 4096 > segment->offset && page < segment->offset + segment->file_size &&
		    (!found || segment->offset >= page))
			found = segment;
	}
	if (!found)
		return mapping->start - mapping->offset;
	return mapping->start - (found->vaddr + (mapping->offset - found->offset));
}

/* It ends with its section headers (vdso2c). */
int file_facts_vdso(int *ret_fd)
{
	const uint8_t *vdso = (const uint8_t *)getauxval(AT_SYSINFO_EHDR);
	const Elf64_Ehdr *header = (const Elf64_Ehdr *)vdso;
	OWNED_FD int fd = -1;
	int err;

	if (!vdso)
		return -ENODATA;
	fd = memfd_create("vdso", MFD_CLOEXEC);
	if (fd < 0)
		return -errno;
	err = write_full(fd, vdso, header->e_shoff + (size_t)header->e_shnum * header->e_shentsize);
	if (!err)
		*ret_fd = TAKE_FD(fd);
	return err;
}

#define PAGE_BYTES (1ULL << PP_PAGE_SHIFT)

void rule_cache_release(struct rule_cache *cache)
{
	for (size_t i = 0; i < RULE_CACHE_PAGES; i++)
		free(cache->page[i].rows.row);
}

bool rows_may_come(int err)
{
	return err == -ENOSPC || err == -ENOMEM || err == -ETIMEDOUT || err == -EAGAIN;
}

/* Returns the page, or the one that was not used for longest. */
static struct rule_page *find_page(struct rule_cache *cache, uint32_t file, uint64_t low)
{
	struct rule_page *oldest = &cache->page[0];

	for (size_t i = 0; i < RULE_CACHE_PAGES; i++) {
		struct rule_page *page = &cache->page[i];

		if (page->file == file && page->low == low)
			return page;
		if (page->used_at < oldest->used_at)
			oldest = page;
	}
	return oldest;
}

static int read_page(struct rule_page *page, uint32_t file, const struct row_source *source,
		     uint64_t low)
{
	int err;

	page->file = 0;
	page->rows.count = 0;
	err = source->rows(source->context, low, low + PAGE_BYTES, &page->rows);
	if (rows_may_come(err) || err == -ETIME)
		return err;
	if (err)
		page->rows.count = 0;
	page->low = low;
	page->file = file;
	return 0;
}

/* Rows ascend, and the first one begins with the page. */
static void find_rule(const struct cfi_rows *rows, uint64_t vaddr, struct pp_rule *ret_rule)
{
	const size_t begun = ARRAY_LEADING(rows->count, at, rows->row[at].vaddr <= vaddr);

	*ret_rule = begun ? rows->row[begun - 1].rule : (struct pp_rule){.kind = PP_RULE_NO_INFO};
}

/* Rows that are too many to keep are dropped as soon as one of them was found. */
static void drop_large(struct rule_page *page)
{
	if (page->rows.capacity <= RULE_CACHE_MAX_ROWS)
		return;
	free(page->rows.row);
	*page = (struct rule_page){0};
}

int rule_cache_find(struct rule_cache *cache, uint32_t file, const struct row_source *source,
		    uint64_t vaddr, struct pp_rule *ret_rule)
{
	const uint64_t low = vaddr & ~(PAGE_BYTES - 1);
	struct rule_page *page = find_page(cache, file, low);
	int err = 0;

	if (page->file != file || page->low != low)
		err = read_page(page, file, source, low);
	if (err)
		return err;
	page->used_at = ++cache->lookups;
	find_rule(&page->rows, vaddr, ret_rule);
	drop_large(page);
	return 0;
}

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

	if (file_is_open(file))
		err = opener_check_text(foreign_opener(rows->foreign), &file->opened,
					&file->identity, file->segment, file->segment_count);
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
