/* SPDX-License-Identifier: BSD-2-Clause */
/* The unwind rows of files: the child that parses files tells them, pages of unwind/row_store.h
 * hold them for the kernel.  Private to file_table.c, which knows how a file is opened: `asked`, in
 * each call, is the file as the child is asked about it. */
#ifndef ATTACH_FILE_ROWS_H
#define ATTACH_FILE_ROWS_H

#include <stdint.h>

#include "attach/file_table.h"
#include "attach/rule_cache.h"
#include "base/clock.h"

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
