/* SPDX-License-Identifier: BSD-2-Clause */
/* What a sink is about to send: a file of the store, taken apart into its windows (a file as it was
 * written has one, a merged one several: docs/design/profiles.md), the requests of one of them, and
 * which comes next.  One thread an object. */
#ifndef COLLECTORS_JOB_H
#define COLLECTORS_JOB_H

#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "collectors/queue.h"
#include "collectors/requests.h"
#include "collectors/series.h"
#include "store/store_query.h"

/* ---- a file and its windows ---- */

#define PUSH_WINDOWS_MAX 4096U	     /* of one file */
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

/* ---- what is sent of it ---- */

struct push_job {
	struct push_content *content; /* owned; NULL: no file */
	enum pp_profile kind;
	size_t window; /* of the content */
	struct push_requests requests;
	bool is_encoded; /* the requests are the window's */
	uint32_t next;	 /* of the requests */
	unsigned int tries;
	uint64_t hash; /* of the requests before the next one */
};

void push_job_release(struct push_job *job);
/* Begins with a file.  content: taken over. */
void push_job_begin(struct push_job *job, enum pp_profile kind, struct push_content *content);
/* Returns the window, or false behind the last one, and then the job has no file any more. */
bool push_job_window(struct push_job *job, struct push_content_window *ret_window);
struct push_job_counts {
	uint64_t folded;   /* series that became one */
	uint64_t repeated; /* requests that were sent before a restart, as other bytes */
};
/* Reads and encodes the window, and goes on behind the requests that the cursor notes, when they
 * are the same.  Returns 0, or as push_content_read() and push_encode() with the fault in `why`. */
int push_job_encode(struct push_job *job, const struct push_encoding *encoding,
		    const struct push_cursor *cursor, struct push_known_series *known,
		    char why[PUSH_WHY_BYTES], struct push_job_counts *ret_counts);
/* Returns the next request; NULL: the window is done. */
const struct push_request *push_job_request(const struct push_job *job);
/* Leaves the next request behind. */
void push_job_pass_request(struct push_job *job);
void push_job_pass_window(struct push_job *job);
/* Notes in a cursor where the job is. */
void push_job_note(const struct push_job *job, bool is_in_flight, struct push_cursor *cursor);

#endif
