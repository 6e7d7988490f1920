/* SPDX-License-Identifier: BSD-2-Clause */
/* Keeps the descriptors of mapped files.  At most half of the descriptors that the agent may have
 * are files; where there are more files, those used least are closed, and opened again by a mapping
 * of theirs.  An open file also keeps its file system from being unmounted, so those of ended
 * programs are closed too.  Private to file_table.c. */
#ifndef ATTACH_FILE_DESCRIPTORS_H
#define ATTACH_FILE_DESCRIPTORS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct file;
struct foreign;
struct mapping;
struct process;

struct file_descriptors {
	struct file *least_used; /* of the open ones, a list by use */
	size_t open, max;
	struct foreign *foreign; /* borrowed; it closes the files too */
	uint64_t lost;		 /* times that a file was not there to be opened again */
};
/* Sets the bound by RLIMIT_NOFILE, as it is now. */
void file_descriptors_init(struct file_descriptors *descriptors, struct foreign *foreign);

/* Gives a file its open descriptor, which belongs to it from now on; may close others. */
void file_descriptors_put(struct file_descriptors *descriptors, struct file *file, int fd);
/* Finds a file's descriptor, which is valid until the next call, and opens the file again if it was
 * closed.  Returns 0; -ENODATA: it was never opened; -ESTALE: it is gone, or another one. */
int file_descriptors_get(struct file_descriptors *descriptors, struct file *file, int *ret_fd);
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
