/* SPDX-License-Identifier: BSD-2-Clause */
/* What the child that parses files tells of them: what a file is, and its unwind rows, which pages
 * of unwind/row_store.h hold for the kernel.  Private to file_table.c, which knows how a file is
 * opened: `asked`, in each call, is the file as the child is asked about it. */
#ifndef ATTACH_FILE_ROWS_H
#define ATTACH_FILE_ROWS_H

#include <stdbool.h>
#include <stdint.h>

#include "attach/file_table.h"
#include "base/clock.h"
#include "unwind/row_store.h"

/* ---- what a file is ---- */

/* Asks what a file is, and notes the answer in *file; its error tells why there is none. */
void file_facts_ask(struct foreign *foreign, const struct foreign_file *asked, struct file *file);
/* Makes of a child that was late or ended at a file (-ETIME) one that was not there (-ETIMEDOUT),
 * the first times: a machine that stood still, or had no memory for the child, is no fault of the
 * file.  Returns that, or err. */
int file_facts_soften(struct file *file, int err);
/* Returns whether an answer says that the file is not to be asked about again. */
bool file_facts_are_refused(int err);
/* Copies our own vDSO into a file in memory, which the caller closes.  Returns 0 or -errno. */
int file_facts_vdso(int *ret_fd);

/* ---- rows of pages for which unwind/row_store.h had no room ----
 * A deep stack would ask the child about each of its frames. */

#define RULE_CACHE_PAGES 16U
/* Of a page; one with more is asked for again each time.  libLLVM's have 2,000 to 4,000. */
#define RULE_CACHE_MAX_ROWS 16384U

struct rule_page {
	uint32_t file; /* id; 0: none */
	uint64_t low;
	struct cfi_rows rows; /* none: the file has none there */
	uint64_t used_at;
};
struct rule_cache {
	struct rule_page page[RULE_CACHE_PAGES];
	uint64_t lookups;
};
void rule_cache_release(struct rule_cache *cache);

/* Finds the rule at an address of a file.  Returns 0, also when the source says that there is none
 * (PP_RULE_NO_INFO); -ENOMEM, -ENOSPC, -ETIMEDOUT, -EAGAIN: a later try may find one. */
int rule_cache_find(struct rule_cache *cache, uint32_t file, const struct row_source *source,
		    uint64_t vaddr, struct pp_rule *ret_rule);
/* Returns whether rows may come with a later try. */
bool rows_may_come(int err);

/* ---- rows ---- */

/* How soon a file whose user had no share left is tried again for that user, one for which there
 * was no child to parse it, and one for whose rows there was no room. */
#define FILE_RETRY_NS NS_PER_SEC

struct file_rows {
	struct row_store *store;	/* borrowed */
	struct foreign *foreign;	/* borrowed */
	struct file_table_stats *stats; /* borrowed: where loads and refusals are counted */
	struct rule_cache cache;
};
void file_rows_init(struct file_rows *rows, struct row_store *store, struct foreign *foreign,
		    struct file_table_stats *stats);
void file_rows_release(struct file_rows *rows);

/* Gives a file its pages and, unless it is a giant, compiles all of its rows into them.  Returns 0;
 * -EDQUOT, -ENOSPC: its user, or nobody, has room for pages (file->refused_ns tells when); -EFBIG:
 * its code is mostly holes; -ENOMEM. */
int file_rows_load(struct file_rows *rows, struct file *file, const struct foreign_file *asked);
/* Gives a file the pages of file->rows_of.  Returns that file's error. */
int file_rows_share(struct file *file);
/* Gives the pages of a file with rows of its own back. */
void file_rows_drop(struct file_rows *rows, const struct file *file);
/* As file_table_load_at() and file_rule_at(), of a file with rows of its own. */
int file_rows_load_at(struct file_rows *rows, struct file *file, const struct foreign_file *asked,
		      uint64_t vaddr);
int file_rows_rule_at(struct file_rows *rows, const struct file *file,
		      const struct foreign_file *asked, uint64_t vaddr, struct pp_rule *ret_rule);

#endif
