/* SPDX-License-Identifier: BSD-2-Clause */
/* Keeps mapped files open, in the child that has them (files/opener.h).  At most half of the
 * descriptors that it may have are files; where there are more files, those used least are closed,
 * and opened again by a mapping of theirs, as all are when there is another child.  An open file
 * also keeps its file system from being unmounted, so those of ended programs are closed too.
 * Private to file_table.c. */
#ifndef ATTACH_FILE_DESCRIPTORS_H
#define ATTACH_FILE_DESCRIPTORS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct file;
struct foreign;
struct mapping;
struct opener_file;
struct process;

struct file_descriptors {
	struct file *least_used; /* of the open ones, a list by use */
	struct file *torn;	 /* those that were open in a child that is no more */
	size_t open, max;
	uint64_t child;		 /* opener_child(), when the open ones were */
	struct foreign *foreign; /* borrowed; it closes the files too */
	uint64_t lost;		 /* times that a file was not there to be opened again */
};
/* Sets the bound by RLIMIT_NOFILE, as it is now. */
void file_descriptors_init(struct file_descriptors *descriptors, struct foreign *foreign);

/* Notes that the files of a child that is no more are closed.  To be called before it is asked
 * whether one is open, with which this and the next calls begin. */
void file_descriptors_update(struct file_descriptors *descriptors);
/* Opens files again that were open in such a child, the last used ones first, until a time
 * (CLOCK_MONOTONIC) is over: who maps them may end, and then nobody can. */
void file_descriptors_reopen(struct file_descriptors *descriptors, uint64_t until_ns);
/* Gives a file what was opened, which belongs to it from now on; may close others. */
void file_descriptors_put(struct file_descriptors *descriptors, struct file *file,
			  const struct opener_file *opened);
/* Makes sure that a file is open until the next call: it is opened again if it was closed.
 * Returns 0; -ENODATA: it was never opened; -ESTALE: it is gone, or another one. */
int file_descriptors_get(struct file_descriptors *descriptors, struct file *file);
/* Closes a file, in the child that parses it too. */
void file_descriptors_close(struct file_descriptors *descriptors, struct file *file);

/* As file_table_find_unused() and file_table_close(). */
bool file_descriptors_find_unused(const struct file_descriptors *descriptors, uint64_t before_ns,
				  uint64_t *ret_slots);
void file_descriptors_close_all(struct file_descriptors *descriptors, const uint64_t *slots);

/* Notes a mapping by which the file can be opened again. */
void file_descriptors_note(struct file *file, const struct process *process,
			   const struct mapping *mapping);

#endif
