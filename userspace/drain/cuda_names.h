/* SPDX-License-Identifier: BSD-2-Clause */
/* Keeps the names of kernels by their handles: the texts are sent once an epoch, when a handle is
 * made, and are needed for as long as its process lives.  Users have shares of the room
 * (base/user_quota.h).  One thread. */
#ifndef DRAIN_CUDA_NAMES_H
#define DRAIN_CUDA_NAMES_H

#include <stdbool.h>
#include <stdint.h>

#include <pyprofd/cuda.h>

#include "base/cleanup.h"

struct cuda_names;
struct text_table;

/* Returns who answers for a process. */
typedef uint32_t cuda_names_user_of(void *context, struct pp_process_id id);
/* Returns 0 or -ENOMEM. */
int cuda_names_new(cuda_names_user_of *user_of, void *context, struct cuda_names **ret_names);
void cuda_names_free(struct cuda_names *names);
DEFINE_OWNED(struct cuda_names, cuda_names)

/* Takes what is new in the kernel side's table, whose texts have come; the last name counts.  What
 * finds no room has no name.  Returns 0; -ENOMEM; -errno. */
int cuda_names_collect(struct cuda_names *names, int map_fd, const struct text_table *texts);
/* Forgets the names of processes that have ended. */
void cuda_names_tidy(struct cuda_names *names,
		     bool (*is_alive)(void *context, struct pp_process_id id), void *context);
/* Returns what a handle is called as the program gave it to CUDA's driver, mangled where it is: its
 * own name, or that of the handle it stands for; NULL: it has none, or has it since another life of
 * handles (struct pp_cuda_what), in which it may be another kernel's.  Valid until the next
 * cuda_names_collect().  *ret_text: the id of that text. */
const char *cuda_names_find(const struct cuda_names *names, const struct pp_cuda_handle *handle,
			    uint32_t life, uint64_t *ret_text);
/* Returns the handle that a handle stands for in this life; itself where it stands for none. */
struct pp_cuda_handle cuda_names_origin(const struct cuda_names *names,
					const struct pp_cuda_handle *handle, uint32_t life);

/* Keeps the text that a row of totals says its kernel is called by, if it is known: the handle may
 * have another name by now.  Returns 0; -ENOMEM. */
int cuda_names_note_text(struct cuda_names *names, const struct pp_cuda_handle *handle,
			 uint64_t text, const struct text_table *texts);
/* Returns NULL when it is not known. */
const char *cuda_names_find_text(const struct cuda_names *names, struct pp_process_id id,
				 uint64_t text);

#endif
