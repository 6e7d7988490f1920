/* SPDX-License-Identifier: BSD-2-Clause */
/* NAME.cursor:
 *     pyprofd push cursor 1
 *     sent cpu 1795200000000
 *     open offcpu 1795200000000 2 00f3a1b2c4d5e6f7 flying|resting
 *     end                        without which the file is cut off
 */
#include "collectors/queue.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/io.h"
#include "base/kinds.h"
#include "collectors/series.h"
#include "profile/profile_data.h"

/* ---- the cursor ---- */

#define FIRST_LINE "pyprofd push cursor 1"
#define LAST_LINE "end"
#define LINES_MAX 32U
#define FILE_MODE 0640

void push_cursor_pass(struct push_cursor *cursor, enum pp_profile kind, uint64_t start_ms)
{
	if (cursor->sent_ms[kind] < start_ms)
		cursor->sent_ms[kind] = start_ms;
	memset(&cursor->open, 0, sizeof(cursor->open));
}

void push_cursor_format(const struct push_cursor *cursor, char ret_text[PUSH_CURSOR_BYTES])
{
	size_t at = (size_t)snprintf(ret_text, PUSH_CURSOR_BYTES, FIRST_LINE "\n");

	for (unsigned int i = 0; i < PP_PROFILE_COUNT; i++)
		if (cursor->sent_ms[i])
			at += (size_t)snprintf(ret_text + at, PUSH_CURSOR_BYTES - at,
					       "sent %s %" PRIu64 "\n",
					       kind_get((enum pp_profile)i)->name,
					       cursor->sent_ms[i]);
	if (cursor->open.is_open)
		at += (size_t)snprintf(ret_text + at, PUSH_CURSOR_BYTES - at,
				       "open %s %" PRIu64 " %" PRIu32 " %016" PRIx64 " %s\n",
				       kind_get(cursor->open.kind)->name, cursor->open.start_ms,
				       cursor->open.requests, cursor->open.hash,
				       cursor->open.is_in_flight ? "flying" : "resting");
	snprintf(ret_text + at, PUSH_CURSOR_BYTES - at, LAST_LINE "\n");
}

static int parse_line(const char *line, struct push_cursor *cursor)
{
	char name[STORE_KIND_CHARS], start[20], requests[11] = "0", hash[17], word[8] = "resting";
	const bool is_open = !strncmp(line, "open ", strlen("open "));
	enum pp_profile kind;
	uint64_t start_ms;
	int end = 0;

	_Static_assert(STORE_KIND_CHARS == 33, "the width of a kind");
	if (is_open)
		(void)sscanf(line, "open %32s %19[0-9] %10[0-9] %16[0-9a-f] %7s%n", name, start,
			     requests, hash, word, &end);
	else
		(void)sscanf(line, "sent %32s %19[0-9]%n", name, start, &end);
	if (!end || line[end])
		return -EBADMSG;
	start_ms = strtoull(start, NULL, 10);
	if (start_ms > INT64_MAX || strtoull(requests, NULL, 10) > UINT32_MAX ||
	    (strcmp(word, "resting") && strcmp(word, "flying")))
		return -EBADMSG;
	if (!kind_find(name, strlen(name), &kind))
		return 0;
	if (is_open) {
		cursor->open.is_open = true;
		cursor->open.kind = kind;
		cursor->open.start_ms = start_ms;
		cursor->open.requests = (uint32_t)strtoul(requests, NULL, 10);
		cursor->open.hash = strtoull(hash, NULL, 16);
		cursor->open.is_in_flight = word[0] == 'f';
	} else {
		cursor->sent_ms[kind] = start_ms;
	}
	return 0;
}

int push_cursor_parse(const char *text, size_t size, struct push_cursor *ret_cursor)
{
	struct push_cursor cursor = {0};
	char copy[PUSH_CURSOR_BYTES];
	char *line, *rest = copy;
	unsigned int lines = 0;

	if (size >= sizeof(copy) || memchr(text, '\0', size))
		return -EBADMSG;
	if (size)
		memcpy(copy, text, size);
	copy[size] = '\0';
	line = strsep(&rest, "\n");
	if (!rest || strcmp(line, FIRST_LINE) != 0)
		return -EBADMSG;
	while ((line = strsep(&rest, "\n")) && rest && lines++ < LINES_MAX) {
		if (!strcmp(line, LAST_LINE)) {
			if (*rest)
				return -EBADMSG;
			*ret_cursor = cursor;
			return 0;
		}
		if (parse_line(line, &cursor))
			return -EBADMSG;
	}
	return -EBADMSG;
}

struct file_names {
	char file[PUSH_SINK_NAME_CHARS + sizeof(".cursor")];
	char temporary[PUSH_SINK_NAME_CHARS + sizeof("..cursor.tmp")];
};

static struct file_names names_of(const char *name)
{
	struct file_names names;

	snprintf(names.file, sizeof(names.file), "%.32s.cursor", name);
	snprintf(names.temporary, sizeof(names.temporary), ".%.32s.cursor.tmp", name);
	return names;
}

int push_cursor_load(int dir_fd, const char *name, struct push_cursor *ret_cursor)
{
	struct file_names names = names_of(name);
	OWNED_MEM char *text = NULL;
	size_t size;
	int err = read_file_at(dir_fd, names.file, PUSH_CURSOR_BYTES, &text, &size);

	if (err)
		return err == -EFBIG ? -EBADMSG : err;
	return push_cursor_parse(text, size, ret_cursor);
}

int push_cursor_save(int dir_fd, const char *name, const struct push_cursor *cursor)
{
	struct file_names names = names_of(name);
	char text[PUSH_CURSOR_BYTES];
	int err;

	push_cursor_format(cursor, text);
	err = write_file_at(dir_fd, names.temporary, FILE_MODE, text, strlen(text));
	if (!err && renameat(dir_fd, names.temporary, dir_fd, names.file))
		err = -errno;
	if (err) {
		unlinkat(dir_fd, names.temporary, 0);
		return err;
	}
	return fsync(dir_fd) ? -errno : 0;
}

/* ---- files that wait ---- */

void push_queue_release(struct push_queue *queue)
{
	store_listing_release(&queue->listing);
}

static bool kind_of(const struct push_queue *queue, const struct store_entry *entry,
		    enum pp_profile *ret_kind)
{
	return kind_find(entry->file.kind, strlen(entry->file.kind), ret_kind) &&
	       queue->kind_bits >> *ret_kind & 1;
}

/* Returns whether a file has, or may have, windows behind the cursor's: a merged one that begins
 * before may, unless it was read. */
static bool is_wanted(const struct push_queue *queue, const struct store_entry *entry,
		      const struct push_cursor *cursor, enum pp_profile *ret_kind)
{
	const struct store_file *file = &entry->file;
	uint64_t sent_ms;

	if (!kind_of(queue, entry, ret_kind))
		return false;
	sent_ms = cursor->sent_ms[*ret_kind];
	if (file->start_ms > sent_ms)
		return true;
	if (!file->is_merged)
		return false;
	if (file->start_ms == queue->read_ms[*ret_kind] &&
	    file->duration_ms == queue->read_duration_ms[*ret_kind])
		return false;
	return sent_ms - file->start_ms < file->duration_ms;
}

static uint64_t oldest_mark(const struct push_queue *queue, const struct push_cursor *cursor)
{
	uint64_t oldest = UINT64_MAX;

	for (unsigned int i = 0; i < PP_PROFILE_COUNT; i++)
		if (queue->kind_bits >> i & 1 && cursor->sent_ms[i] < oldest)
			oldest = cursor->sent_ms[i];
	return oldest == UINT64_MAX ? 0 : oldest;
}

/* Returns whether a list has a file of this kind that begins when this one does.  *at: both lists
 * go up. */
static bool has_start(const struct store_listing *listing, size_t *at,
		      const struct store_file *file, bool also_merged)
{
	while (*at < listing->count && listing->entry[*at].file.start_ms < file->start_ms)
		(*at)++;
	for (size_t i = *at;
	     i < listing->count && listing->entry[i].file.start_ms == file->start_ms; i++)
		if ((also_merged || !listing->entry[i].file.is_merged) &&
		    !strcmp(listing->entry[i].file.kind, file->kind))
			return true;
	return false;
}

/* Returns whether the new list has a file's time: the file itself, or one that took it in, which
 * begins no later. */
static bool is_covered(const struct store_listing *listing, size_t *at,
		       const struct store_file *file)
{
	if (has_start(listing, at, file, true))
		return true;
	for (size_t i = *at; i--;) {
		const struct store_file *other = &listing->entry[i].file;

		if (!strcmp(other->kind, file->kind))
			return file->start_ms - other->start_ms < other->duration_ms;
	}
	return false;
}

/* The cursor passes only what was listed, so what is new and in front of it will not be sent. */
static uint64_t count_late(const struct push_queue *queue, const struct push_cursor *cursor,
			   const struct store_listing *listing)
{
	enum pp_profile kind;
	uint64_t late = 0;
	size_t at = 0;

	for (size_t i = 0; queue->has_listed && i < listing->count; i++) {
		const struct store_file *file = &listing->entry[i].file;

		if (kind_of(queue, &listing->entry[i], &kind) && !file->is_merged &&
		    file->start_ms >= queue->since_ms && file->start_ms <= cursor->sent_ms[kind] &&
		    !has_start(&queue->listing, &at, file, false))
			late++;
	}
	return late;
}

int push_queue_list(struct push_queue *queue, const struct push_cursor *cursor, uint64_t *ret_gone,
		    uint64_t *ret_late)
{
	const uint64_t mark_ms = oldest_mark(queue, cursor);
	const struct store_range range = {
		.since_ms = mark_ms > PUSH_AHEAD_MAX_MS ? mark_ms - PUSH_AHEAD_MAX_MS : 0,
		.until_ms = UINT64_MAX};
	struct store_listing listing = {0};
	enum pp_profile kind;
	uint64_t gone = 0;
	size_t at = 0;
	int err = store_list(queue->directory, &range, &listing);

	if (err)
		return err;
	for (size_t i = queue->next; i < queue->listing.count; i++) {
		const struct store_entry *entry = &queue->listing.entry[i];

		if (is_wanted(queue, entry, cursor, &kind) &&
		    !is_covered(&listing, &at, &entry->file))
			gone++;
	}
	*ret_late = count_late(queue, cursor, &listing);
	store_listing_release(&queue->listing);
	queue->listing = listing;
	queue->next = 0;
	queue->since_ms = range.since_ms;
	queue->has_listed = true;
	*ret_gone = gone;
	return 0;
}

const struct store_entry *push_queue_first(struct push_queue *queue,
					   const struct push_cursor *cursor,
					   enum pp_profile *ret_kind)
{
	for (; queue->next < queue->listing.count; queue->next++)
		if (is_wanted(queue, &queue->listing.entry[queue->next], cursor, ret_kind))
			return &queue->listing.entry[queue->next];
	return NULL;
}

void push_queue_pass(struct push_queue *queue)
{
	const struct store_entry *entry = &queue->listing.entry[queue->next++];
	enum pp_profile kind;

	if (!kind_of(queue, entry, &kind))
		return;
	queue->read_ms[kind] = entry->file.start_ms;
	queue->read_duration_ms[kind] = entry->file.duration_ms;
}

size_t push_queue_count(const struct push_queue *queue, const struct push_cursor *cursor)
{
	enum pp_profile kind;
	size_t count = 0;

	for (size_t i = queue->next; i < queue->listing.count; i++)
		count += is_wanted(queue, &queue->listing.entry[i], cursor, &kind);
	return count;
}

size_t push_queue_left(const struct push_queue *queue)
{
	return queue->listing.count - queue->next;
}

int push_queue_begin(const struct push_queue *queue, struct push_cursor *ret_cursor)
{
	const struct store_range all = {.until_ms = UINT64_MAX};
	struct store_listing listing = {0};
	enum pp_profile kind;
	int err = store_list(queue->directory, &all, &listing);

	if (err)
		return err;
	memset(ret_cursor, 0, sizeof(*ret_cursor));
	for (size_t i = 0; i < listing.count; i++) {
		const struct store_file *file = &listing.entry[i].file;

		/* With all that a merged file has inside; the next window begins at its end. */
		if (kind_of(queue, &listing.entry[i], &kind))
			push_cursor_pass(ret_cursor, kind,
					 file->start_ms +
						 (file->duration_ms ? file->duration_ms - 1 : 0));
	}
	store_listing_release(&listing);
	return 0;
}

/* ---- a file and its windows ---- */

#define LABELS_KEPT_MAX (PUSH_LABELS_MAX + 8U)

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

struct profile *push_content_profile(struct push_content *content)
{
	return content->is_loaded ? profile_reader_profile(content->reader) : NULL;
}

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
	if (!mark->start_wall_ns)
		content->mark[at].start_wall_ns = mark->start_ms * NS_PER_MS;
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

const struct window_mark *push_job_window(struct push_job *job)
{
	if (job->content && job->window < job->content->count)
		return &job->content->mark[job->window];
	push_job_release(job);
	return NULL;
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
	const struct window_mark *window = &job->content->mark[job->window];
	const struct push_window facts = {.kind = kind_get(job->kind)->name,
					  .start_wall_ns = window->start_wall_ns,
					  .duration_ns = window->duration_ns};
	struct profile *profile;
	int err = push_content_load(job->content, job->window, why);

	if (err)
		return err;
	profile = push_content_profile(job->content);
	err = push_divide(profile, &encoding->labels, window->start_ms, known, &division);
	if (!err)
		err = push_encode(encoding, profile, &division, &facts, &job->requests);
	if (err) {
		snprintf(why, PUSH_WHY_BYTES, "it cannot be encoded: %s", strerror(-err));
		return err;
	}
	job->is_encoded = true;
	ret_counts->repeated = resume(job, cursor, window->start_ms);
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
	cursor->open.start_ms = job->content->mark[job->window].start_ms;
	cursor->open.requests = job->next;
	cursor->open.hash = job->hash;
	cursor->open.is_in_flight = is_in_flight;
}
