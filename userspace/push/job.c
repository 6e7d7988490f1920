/* SPDX-License-Identifier: BSD-2-Clause */
#include "push/job.h"

#include <stdio.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/kinds.h"

void push_job_release(struct push_job *job)
{
	push_requests_release(&job->requests);
	push_content_free(job->content);
	*job = (struct push_job){0};
}

void push_job_begin(struct push_job *job, enum pp_profile kind, struct push_content *content)
{
	push_job_release(job);
	job->kind = kind;
	job->content = content;
}

bool push_job_window(struct push_job *job, struct push_content_window *ret_window)
{
	if (!job->content)
		return false;
	if (job->window >= push_content_window_count(job->content)) {
		push_job_release(job);
		return false;
	}
	*ret_window = push_content_window(job->content, job->window);
	return true;
}

static uint64_t hash_next(const struct push_job *job)
{
	const struct push_request *request = &job->requests.request[job->next];

	return XXH3_64bits_withSeed(request->body, request->size, job->hash);
}

/* Leaves behind what was sent before a restart; from the beginning, where that were other bytes.
 * Returns how many requests the collector gets again. */
static uint64_t resume(struct push_job *job, const struct push_cursor *cursor, uint64_t start_ms)
{
	if (!cursor->open.is_open || cursor->open.kind != job->kind ||
	    cursor->open.start_ms != start_ms)
		return 0;
	while (job->next < cursor->open.requests && job->next < job->requests.count)
		push_job_pass_request(job);
	if (job->next == cursor->open.requests && job->hash == cursor->open.hash)
		return 0;
	job->next = 0;
	job->hash = 0;
	return cursor->open.requests;
}

int push_job_encode(struct push_job *job, const struct push_encoding *encoding,
		    const struct push_cursor *cursor, struct push_known_series *known,
		    char why[PUSH_WHY_BYTES], struct push_job_counts *ret_counts)
{
	CLEANUP(push_division_release) struct push_division division = {0};
	struct push_content_window window = push_content_window(job->content, job->window);
	const struct push_window facts = {.kind = kind_get(job->kind)->name,
					  .start_wall_ns = window.start_wall_ns,
					  .duration_ns = window.duration_ns};
	struct profile *profile;
	int err = push_content_load(job->content, job->window, why);

	if (err)
		return err;
	profile = push_content_profile(job->content);
	err = push_divide(profile, &encoding->labels, window.start_ms, known, &division);
	if (!err)
		err = push_encode(encoding, profile, &division, &facts, &job->requests);
	if (err) {
		snprintf(why, PUSH_WHY_BYTES, "it cannot be encoded: %s", strerror(-err));
		return err;
	}
	job->is_encoded = true;
	ret_counts->repeated = resume(job, cursor, window.start_ms);
	ret_counts->folded = division.folded_count;
	return 0;
}

const struct push_request *push_job_request(const struct push_job *job)
{
	return job->next < job->requests.count ? &job->requests.request[job->next] : NULL;
}

void push_job_pass_request(struct push_job *job)
{
	job->hash = hash_next(job);
	job->next++;
	job->tries = 0;
}

void push_job_pass_window(struct push_job *job)
{
	push_requests_release(&job->requests);
	job->is_encoded = false;
	job->next = 0;
	job->tries = 0;
	job->hash = 0;
	job->window++;
}

void push_job_note(const struct push_job *job, bool is_in_flight, struct push_cursor *cursor)
{
	cursor->open.is_open = true;
	cursor->open.kind = job->kind;
	cursor->open.start_ms = push_content_window(job->content, job->window).start_ms;
	cursor->open.requests = job->next;
	cursor->open.hash = job->hash;
	cursor->open.is_in_flight = is_in_flight;
}
