/* SPDX-License-Identifier: BSD-2-Clause */
#include "push/content.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/array.h"
#include "base/clock.h"
#include "pprof/profile_read.h"
#include "profile/profile_data.h"
#include "push/service_name.h"

#define LABELS_KEPT_MAX (PUSH_LABELS_MAX + 8U)

struct push_content {
	const struct push_label_choice *choice; /* borrowed */
	struct store_file file;
	int fd; /* stays open, so that retention takes nothing away half-way */
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

	return (struct push_content_window){
		.start_ms = mark->start_ms,
		.start_wall_ns = mark->start_wall_ns ? mark->start_wall_ns
						     : mark->start_ms * NS_PER_MS,
		.duration_ns = mark->duration_ns};
}

struct profile *push_content_profile(struct push_content *content)
{
	return content->is_loaded ? profile_reader_profile(content->reader) : NULL;
}

/* ---- reading ---- */

static void choose_labels(const struct push_label_choice *choice,
			  const char *kept[LABELS_KEPT_MAX])
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
	const struct profile_read_options options = {
		.keep_labels = content->choice->rules ? NULL : kept,
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
	content->fd = open(entry->path,
			   O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
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
