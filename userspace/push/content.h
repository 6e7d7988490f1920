/* SPDX-License-Identifier: BSD-2-Clause */
/* One file of the store, taken apart into its windows: a file as it was written has one, a merged
 * one several (docs/design/profiles.md).  One thread an object. */
#ifndef PUSH_CONTENT_H
#define PUSH_CONTENT_H

#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "push/series.h"
#include "store/store_query.h"

#define PUSH_WINDOWS_MAX 4096U /* of one file */
#define PUSH_MEMORY_MAX (192U << 20) /* while it is read */
#define PUSH_WHY_BYTES 256U

struct push_content;

/* Opens a file and lists its windows.  choice: the labels that are kept, with those that make a
 * service's name; borrowed.  Returns 0; -ENOENT: the file is gone; -EBADMSG, -EFBIG, -ENODATA,
 * -errno with its fault in `why`; -ENOMEM. */
int push_content_read(const struct store_entry *entry, const struct push_label_choice *choice,
		      char why[PUSH_WHY_BYTES], struct push_content **ret_content);
void push_content_free(struct push_content *content);
DEFINE_OWNED(struct push_content, push_content)

struct push_content_window {
	uint64_t start_ms; /* as in the name of the file that the window had for itself */
	uint64_t start_wall_ns, duration_ns;
};
/* In the order of time. */
size_t push_content_window_count(const struct push_content *content);
struct push_content_window push_content_window(const struct push_content *content, size_t index);

/* Reads one window; the one before is gone.  The file was unpacked with the list, and its bytes are
 * kept, PUSH_MEMORY_MAX at most with what is read of them.  Returns as push_content_read(). */
int push_content_load(struct push_content *content, size_t index, char why[PUSH_WHY_BYTES]);
/* Returns what was loaded last, or NULL. */
struct profile *push_content_profile(struct push_content *content);

#endif
