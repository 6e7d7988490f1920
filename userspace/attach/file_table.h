/* SPDX-License-Identifier: BSD-2-Clause */
/* Every mapped file, once: identity, unwind rows, interpreter.  A file is identified by its inode
 * and path; what it claims itself (its build-id) never makes it another one.  Files that are proven
 * equal share: their rows, or, under the same path, everything.
 * docs/design/files.md.
 * A file stays open while processes map it, as far as the limit of descriptors allows: a deleted
 * one can be named, and its inode number is not reused.  One thread. */
#ifndef ATTACH_FILE_TABLE_H
#define ATTACH_FILE_TABLE_H

#include <stdbool.h>
#include <stdint.h>

#include "attach/file_descriptors.h"
#include "attach/file_names.h"
#include "base/cleanup.h"
#include "discover/process.h"
#include "files/client.h"
#include "files/identity.h"
#include "files/opener.h"
#include "files/protocol.h"
#include "python/python_info.h"
#include "unwind/row_store.h"

/* Files with more FDEs than this are compiled on demand, in units of 1 MiB (libtorch, triton,
 * ...). */
#define FILE_GIANT_FDES 100000U
#define FILE_UNIT_BYTES (1ULL << 20)
/* An id is a slot and, above it, how often the slot was reused.  Stacks store the slot alone. */
#define FILE_SLOT_BITS 21U
#define FILE_SLOTS (1U << FILE_SLOT_BITS)
#define FILE_GENERATIONS (1U << (32 - FILE_SLOT_BITS))
/* How long a slot is not reused; the dictionary keeps a stack for one epoch after it was last
 * seen. */
#define FILE_SLOT_REST_EPOCHS 3U

/* A mapping by which a file can be opened. */
struct file_place {
	uint32_t tgid; /* 0: none */
	struct file_key key;
	uint64_t start, end;
};

struct file {
	struct file_table *table;      /* borrowed */
	uint32_t id;		       /* as in struct pp_range */
	struct file_identity identity; /* set once it was opened */
	uint8_t build_id[BUILD_ID_MAX_BYTES];
	uint8_t build_id_size;	   /* bytes, 0: none */
	struct file_link *names;   /* owned by the table */
	struct debug_names *debug; /* owned; NULL: it has symbols of its own, or none was asked */
	char *path;		   /* as its processes see it */
	struct opener_file opened; /* fd -1: it is closed, or could never be opened */
	bool was_opened;	   /* it has an identity, and can be opened again */
	struct file_place first_place, last_place;
	uint64_t lost_ns; /* when it was not there to be opened again; 0: it was */
	struct file *less_used, *more_used; /* of the open ones; file_descriptors.c */
	bool is_torn;			    /* it was open in a child that is no more */
	int error;			    /* why it has no rows: 0 or -errno */
	struct foreign_segment segment[FOREIGN_MAX_SEGMENTS]; /* executable ones */
	size_t segment_count;
	uint64_t min_vaddr, max_vaddr;
	uint32_t uid; /* whose share of pages and rows it takes: the user who mapped it first */
	uint64_t refused_ns; /* when that share was found used up; 0: it was not */
	/* the file whose pages it uses, with a reference; NULL: it has its own */
	struct file *rows_of;
	uint32_t page0;
	bool has_pages;
	bool is_giant;
	bool is_whole; /* all rows are published */
	bool is_musl;
	bool has_rows; /* unwind information */
	/* it is not parsed again: it takes more work than elf/elf_image.h allows, lies in huge
	 * pages, or the child that parses it was late or ended too often */
	bool is_refused;
	uint64_t no_room_ns; /* when rows of it last found no room; 0: they did */
	/* when the child did not examine it: there was none, or it was late; 0: it did */
	uint64_t unread_ns;
	uint8_t lates; /* how often it was late, or ended, FILE_LATES_MAX at most */
	struct python_info *python; /* owned; NULL: no interpreter */
	uint32_t python_index;	    /* 1 + index in pythons[]; 0: none */
	/* processes whose interpreter it is; ended ones count until they are forgotten */
	uint32_t interpreted;
	struct pp_resync resync;   /* of an interpreter, as far as the agent found it */
	const char *python_reason; /* why an interpreter is not read; static */
	uint32_t references;	   /* mappings of live processes */
	uint32_t sharers;	   /* files whose rows_of it is */
	uint64_t unused_since_ns;  /* when references, or then sharers, fell to 0 */
};

/* Returns whether a file is open, as far as file_descriptors_update() knows. */
static inline bool file_is_open(const struct file *file)
{
	return file->opened.fd >= 0;
}

/* How often the child may be late, or end, at a file before it is refused.  It is left alone for
 * LATE_ALONE_NS each time. */
#define FILE_LATES_MAX 3U

struct file_table_stats {
	uint64_t created; /* since the start */
	uint64_t files, interpreters, compiled_bytes_of_text, open_failures, bad_fdes;
	uint64_t no_space;     /* loads that found no room for rows, files without a free id */
	uint64_t text_refused; /* files without rows: mostly holes, or no room in a user's share */
	uint64_t refused;      /* files that are not parsed: see struct file */
	uint64_t lost;	       /* closed files that were gone when they were needed again */
};

struct foreign;
struct file_table;
/* foreign: what parses files. */
int file_table_new(struct row_store *rows, struct foreign *foreign, struct file_table **ret_table);
void file_table_free(struct file_table *table);
DEFINE_OWNED(struct file_table, file_table)

/* Finds the file of a mapping of `process`.  A new file is opened, examined and (unless a giant)
 * compiled. The vDSO is one file for all processes; anonymous memory is PP_FILE_ANONYMOUS without a
 * struct file (*ret_file is NULL).  Returns 0; -ENOMEM.  A file that cannot be opened or read
 * becomes a file without rows and gives 0; one for which no id is free is treated like anonymous
 * memory. */
int file_table_get(struct file_table *table, const struct process *process,
		   const struct mapping *mapping, struct file **ret_file);
/* Returns NULL when the file was forgotten. */
struct file *file_table_find(const struct file_table *table, uint32_t id);
static inline uint32_t file_slot(uint32_t id)
{
	return id & (FILE_SLOTS - 1);
}
/* Returns the file that has the slot now. */
struct file *file_table_in_slot(const struct file_table *table, uint32_t slot);
/* Returns the load bias of a mapping of this file. */
uint64_t file_bias(const struct file *file, const struct mapping *mapping);

/* Opens files again that are in use and were open in a child that is no more, for 20 ms at most.
 * Returns true once a second from the first file on that the child has not examined: who maps them
 * is to ask for them again, as file_table_get() does. */
bool file_table_is_due(struct file_table *table, uint64_t now_ns);

/* Publishes the rows around an address where a walk found none.  Returns 0; -ENODATA: there are
 * none; -ENOSPC. */
int file_table_load_at(struct file_table *table, struct file *file, uint64_t vaddr);
/* Finds the rule at an address, for a walk in user space.  Returns 0; -ENODATA. */
int file_rule_at(struct file_table *table, struct file *file, uint64_t vaddr,
		 struct pp_rule *ret_rule);
/* As foreign_names(), with the debug files that are installed. */
int file_table_functions(struct file_table *table, struct file *file, const uint64_t *vaddr,
			 size_t count, foreign_function_handler *found, void *context);
/* As foreign_kernels(), with the same debug files. */
int file_table_kernels(struct file_table *table, struct file *file, const uint64_t *vaddr,
		       size_t count, bool are_functions, foreign_function_handler *found,
		       void *context);
/* As foreign_probes(). */
int file_table_probes(struct file_table *table, struct file *file,
		      const struct probe_wanted *wanted, size_t count,
		      struct probe_sites *ret_sites);
/* Gets a descriptor of a file, the caller's, for breakpoints that the kernel puts there.  Returns
 * 0; -ENODATA: it could never be opened; -ESTALE: it is gone; -EREMOTE: a program or a network
 * answers for its file system, and may never do so; -ETIMEDOUT: it did not now. */
int file_table_descriptor(struct file_table *table, struct file *file, int *ret_fd);
/* Sets the bit of its slot in `ret_slots`, FILE_SLOTS bits, for each open file that no live process
 * has mapped since before_ns.  Returns whether there is one. */
bool file_table_find_unused(const struct file_table *table, uint64_t before_ns,
			    uint64_t *ret_slots);
/* Closes these files.  What they are stays known; names that are asked for later need the file
 * again. */
void file_table_close(struct file_table *table, const uint64_t *slots);
/* Closes the files that the child has mapped, and forgets files that no live process has mapped
 * since before_ns. */
void file_table_tidy(struct file_table *table, uint64_t before_ns);
/* Makes the slots of forgotten files reusable after FILE_SLOT_REST_EPOCHS of these calls, unless a
 * stack in the dictionary refers to them: bit `slot` of `named`, FILE_SLOTS bits. */
void file_table_end_epoch(struct file_table *table, const uint64_t *named);
bool file_table_has_resting(const struct file_table *table);
/* A file that cannot be opened, although it is there. */
struct file_unopened {
	int error; /* -errno; -ETIMEDOUT: its file system does not answer */
	uint32_t tgid;
	char path[256];
};
/* Returns whether there is one whose error was not told before. */
bool file_table_tell_unopened(struct file_table *table, struct file_unopened *ret_unopened);
void file_table_get_stats(const struct file_table *table, struct file_table_stats *ret_stats);

#endif
