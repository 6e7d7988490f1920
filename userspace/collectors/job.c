/* SPDX-License-Identifier: BSD-2-Clause */
#include "collectors/job.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/kinds.h"
#include "collectors/series.h"
#include "pprof/profile_read.h"
#include "profile/profile_data.h"

/* ---- a file and its windows ---- */

#define LABELS_KEPT_MAX (PUSH_LABELS_MAX + 8U)

struct push_content {
	const struct push_label_choice *choice; /* borrowed */
	struct store_file file;
	int fd;			  /* stays open, so that retention takes nothing away half-way */
	struct window_mark *mark; /* owned; by start */
	size_t count, capacity;
	int error; /* of listing the windows */
	/* Has the file's bytes, and the window that is loaded; owned; NULL: not read yet. */
	struct profile_reader *reader;
	bool is_loaded;
	size_t loaded; /* with is_loaded */
};

void push_content_free(struct push_content *content)
{
	if (!content)
		return;
	profile_reader_free(content->reader);
	free(content->mark);
	if (content->fd >= 0)
		close(content->fd);
	free(content);
}

size_t push_content_window_count(const struct push_content *content)
{
	return content->count;
}

struct push_content_window push_content_window(const struct push_content *content, size_t index)
{
	const struct window_mark *mark = &content->mark[index];

	return (struct push_content_window){.start_ms = mark->start_ms,
					    .start_wall_ns = mark->start_wall_ns
								     ? mark->start_wall_ns
								     : mark->start_ms * NS_PER_MS,
					    .duration_ns = mark->duration_ns};
}

struct profile *push_content_profile(struct push_content *content)
{
	return content->is_loaded ? profile_reader_profile(content->reader) : NULL;
}

/* ---- reading ---- */

static void choose_labels(const struct push_label_choice *choice, const char *kept[LABELS_KEPT_MAX])
{
	static const char *const always[] = {PUSH_SERVICE_LABELS, PUSH_USER_LABEL};
	size_t count = 0;

	for (size_t i = 0; i < ARRAY_SIZE(always); i++)
		kept[count++] = always[i];
	for (size_t i = 0; i < choice->count; i++)
		kept[count++] = choice->key[i];
	kept[count] = NULL;
}

/* Reads the windows that are wanted; the file itself only where nothing has its bytes yet. */
static int read_file_with(struct push_content *content,
			  bool (*wants_window)(void *context, const struct window_mark *mark),
			  char why[PUSH_WHY_BYTES])
{
	const char *kept[LABELS_KEPT_MAX];
	const struct profile_read_options options = {.keep_labels =
							     content->choice->rules ? NULL : kept,
						     .memory_max = PUSH_MEMORY_MAX,
						     .wants_window = wants_window,
						     .context = content};
	int err;

	choose_labels(content->choice, kept);
	if (content->reader) {
		err = profile_reader_again(&content->reader, &options, content->file.kind);
	} else {
		if (lseek(content->fd, 0, SEEK_SET) < 0)
			return -errno;
		err = profile_reader_new(&options, &content->reader);
		if (!err)
			err = profile_reader_add(content->reader, content->fd, content->file.kind);
	}
	if (err && content->reader)
		snprintf(why, PUSH_WHY_BYTES, "%s", profile_reader_error(content->reader));
	return err;
}

/* ---- windows ---- */

static int add_window(struct push_content *content, const struct window_mark *mark)
{
	size_t at = content->count;

	if (content->count >= PUSH_WINDOWS_MAX)
		return -EFBIG;
	if (ARRAY_RESERVE(content->mark, content->count, content->capacity))
		return -ENOMEM;
	for (; at && content->mark[at - 1].start_ms > mark->start_ms; at--)
		content->mark[at] = content->mark[at - 1];
	content->mark[at] = *mark;
	content->count++;
	return 0;
}

static bool note_window(void *context, const struct window_mark *mark)
{
	struct push_content *content = context;

	if (!content->error)
		content->error = add_window(content, mark);
	return false;
}

static bool is_loaded_window(void *context, const struct window_mark *mark)
{
	const struct push_content *content = context;

	return mark->offset_ms == content->mark[content->loaded].offset_ms;
}

/* Lists the windows of a merged file by its comments; another one has itself. */
static int list_windows(struct push_content *content, char why[PUSH_WHY_BYTES])
{
	struct window_mark own = {.start_ms = content->file.start_ms};
	int err = read_file_with(content, note_window, why);

	if (err)
		return err;
	if (content->error == -EFBIG)
		snprintf(why, PUSH_WHY_BYTES, "it has more than %u windows", PUSH_WINDOWS_MAX);
	if (content->error)
		return content->error;
	if (content->count)
		return 0;
	/* The only one was read with the list. */
	content->is_loaded = true;
	own.start_wall_ns = push_content_profile(content)->options.start_wall_ns;
	own.duration_ns = push_content_profile(content)->options.duration_ns;
	return add_window(content, &own);
}

static int check_regular(int fd)
{
	struct stat stat;

	if (fstat(fd, &stat))
		return -errno;
	return S_ISREG(stat.st_mode) ? 0 : -EINVAL;
}

int push_content_read(const struct store_entry *entry, const struct push_label_choice *choice,
		      char why[PUSH_WHY_BYTES], struct push_content **ret_content)
{
	OWNED(push_content) struct push_content *content = calloc(1, sizeof(*content));
	int err;

	if (!content)
		return -ENOMEM;
	content->choice = choice;
	content->file = entry->file;
	/* A FIFO in the store would hold up the sink until somebody writes into it. */
	content->fd = open(entry->path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
	err = content->fd < 0 ? -errno : check_regular(content->fd);
	if (err) {
		snprintf(why, PUSH_WHY_BYTES, "%s", strerror(-err));
		return err;
	}
	err = list_windows(content, why);
	if (err)
		return err;
	*ret_content = TAKE(content);
	return 0;
}

int push_content_load(struct push_content *content, size_t index, char why[PUSH_WHY_BYTES])
{
	int err;

	if (content->is_loaded && content->loaded == index)
		return 0;
	content->is_loaded = false;
	content->loaded = index;
	err = read_file_with(content, is_loaded_window, why);
	content->is_loaded = !err;
	return err;
}

/* ---- what is sent of it ---- */

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
