/* SPDX-License-Identifier: BSD-2-Clause */
/* Every mapped file, once: identity, unwind rows, interpreter.  A file stays open from its discovery
 * on, so that a deleted one can still be named and its inode is not given to another.  One thread. */
#ifndef ATTACH_FILE_TABLE_H
#define ATTACH_FILE_TABLE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "discover/process.h"
#include "elf/elf_image.h"
#include "python/python_info.h"
#include "unwind/row_store.h"

#define FILE_MAX_SEGMENTS 8U /* executable ones; more are left out and counted */
/* Above this many FDEs a file is compiled in 1 MiB units on demand (facts: libtorch, triton, ...). */
#define FILE_GIANT_FDES 100000U
#define FILE_UNIT_BYTES (1ULL << 20)

struct file {
	uint32_t id; /* as in struct pp_range */
	struct file_key key;
	char *path; /* as the first process that mapped it saw it */
	int fd;	    /* owned; -1: could not be opened */
	int error;  /* why it has no rows: 0 or -errno */
	struct elf_segment segment[FILE_MAX_SEGMENTS];
	size_t segment_count;
	uint64_t min_vaddr, max_vaddr;
	uint32_t page0;
	bool has_pages;
	bool is_giant;
	bool is_whole; /* all rows were published */
	bool is_musl;
	uint8_t machine_ok;
	struct python_info *python; /* owned; NULL: no interpreter */
	uint32_t python_index;	    /* 1 + index in pythons[]; 0: none */
	struct pp_resync resync;    /* of an interpreter, as the agent found it */
	const char *python_reason;  /* why an interpreter is not read; static */
	uint32_t references;	    /* live processes' mappings */
	uint64_t unused_since_ns;   /* when references fell to 0 */
	/* Kept open for giants and while a missed stack is finished. */
	struct elf_image *image;
	struct cfi *cfi;
};

struct file_table_stats {
	uint64_t created; /* ids given out so far */
	uint64_t files, interpreters, compiled_bytes_of_text, open_failures, bad_fdes;
	uint64_t no_space; /* loads that found no room for rows */
};

struct file_table;
int file_table_new(struct row_store *rows, struct file_table **ret_table);
void file_table_free(struct file_table *table);
DEFINE_OWNED(struct file_table, file_table)

/* The file of a mapping of `process`; opened, examined and (unless a giant) compiled when it is new.
 * Anonymous memory and the vDSO have files too: PP_FILE_ANONYMOUS without a struct file (then
 * *ret_file is NULL), and one file for all vDSOs.  Returns 0; -ENOMEM; a file that cannot be opened
 * or read is a file without rows and gives 0. */
int file_table_get(struct file_table *table, const struct process *process,
		   const struct mapping *mapping, struct file **ret_file);
struct file *file_table_find(const struct file_table *table, uint32_t id);
/* Load bias of a mapping of this file. */
uint64_t file_bias(const struct file *file, const struct mapping *mapping);

/* Publishes the rows around an address that a walk missed.  0; -ENODATA: none to be had; -ENOSPC. */
int file_table_load_at(struct file_table *table, struct file *file, uint64_t vaddr);
/* The rule at an address, for a walk in user space.  0; -ENODATA. */
int file_rule_at(struct file_table *table, struct file *file, uint64_t vaddr,
		 struct pp_rule *ret_rule);
/* An image to read symbols from; kept until file_table_tidy(). */
int file_image(struct file *file, struct elf_image **ret_image);
/* Closes images, and forgets files that no live process has mapped since before_ns. */
void file_table_tidy(struct file_table *table, uint64_t before_ns);
/* Called when a file is forgotten, before it is freed. */
void file_table_on_forget(struct file_table *table, void (*forget)(void *context, uint32_t file),
			  void *context);
void file_table_get_stats(const struct file_table *table, struct file_table_stats *ret_stats);

#endif
