/* SPDX-License-Identifier: BSD-2-Clause */
/* What a sink is about to send: a file of the store, the requests of one of its windows, and which
 * of them comes next.  One thread an object. */
#ifndef PUSH_JOB_H
#define PUSH_JOB_H

#include "push/content.h"
#include "push/cursor.h"
#include "push/requests.h"

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
