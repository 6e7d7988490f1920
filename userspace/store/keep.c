/* SPDX-License-Identifier: BSD-2-Clause */
#include "store/keep.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "base/memory_file.h"
#include "profile/cuda_line.h"
#include "store/keep_plan.h"
#include "store/keep_room.h"
#include "store/merge_file.h"

#define DIRECTORY_MODE 0750
#define FILE_MODE 0640
#define DIRECTORY_FLAGS (O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
/* A name that is taken moves on by at most so many seconds. */
#define NAME_TRIES 60U
#define MS_PER_SEC 1000U
/* Of a process' resident memory in one window, as the window's comment has it. */
#define MEMORY_COMMENT "memory "
#define MEMORY_TEXT_CHARS 256U

/* One that is being kept. */
struct keeping {
	const struct keep_request *request;
	struct keep_result *result;
	const struct keep_plan *plan;
	size_t kind;	  /* of the plan: which is merged now */
	uint8_t *has_rss; /* owned; by window: `rss` has its line */
	FILE *rss;	  /* lines for `about` */
	int fd;		  /* owned; the directory under its temporary name; -1: not made yet */
	char temporary[KEPT_TEMPORARY_CHARS];
	struct kept_name name;
};

static void keeping_release(struct keeping *keeping)
{
	free(keeping->has_rss);
	close_owned_fd(&keeping->fd);
}

static void format_time(uint64_t time_ms, char text[32])
{
	const time_t seconds = (time_t)(time_ms / MS_PER_SEC);
	struct tm parts;

	gmtime_r(&seconds, &parts);
	strftime(text, 32, "%Y-%m-%dT%H:%M:%SZ", &parts);
}

/* ---- what of a window is kept ---- */

static bool wants_labels(void *context, const struct intern *strings,
			 const struct profile_label *label, size_t label_count)
{
	const struct keeping *keeping = context;

	(void)strings;
	for (size_t i = 0; i < label_count; i++)
		if (label[i].is_number && !strcmp(label[i].key, "pid"))
			return label[i].number == (int64_t)keeping->request->name.pid;
	return false;
}

/* Returns what follows "pid=PID " in a comment about one process; NULL: it is not about this
 * one. */
static const char *find_process(const char *text, uint32_t pid)
{
	const char *at = strstr(text, "pid=");
	char *end;

	if (!at || (at != text && at[-1] != ' '))
		return NULL;
	at += strlen("pid=");
	if (*at < '0' || *at > '9' || strtoull(at, &end, 10) != pid || *end != ' ')
		return NULL;
	return end + 1;
}

/* Notes the resident memory of a window once: each kind's file has the comment. */
static void note_rss(struct keeping *keeping, size_t window, const char *values)
{
	char time[32], text[MEMORY_TEXT_CHARS];

	if (keeping->has_rss[window])
		return;
	keeping->has_rss[window] = true;
	format_time(keeping->plan->window[window].start_ms, time);
	snprintf(text, sizeof(text), "%s", values);
	for (char *at = text; *at; at++)
		if ((unsigned char)*at < ' ')
			*at = ' ';
	fprintf(keeping->rss, "rss=%s %s\n", time, text);
}

/* Comments about other processes are left out. */
static bool wants_comment(void *context, size_t window, const char *text)
{
	struct keeping *keeping = context;
	const char *values = find_process(text, keeping->request->name.pid);

	if (!values) /* a line that sums up what others had the GPU do has no pid */
		return !strstr(text, "pid=") && !cuda_line_is(text);
	if (!strncmp(text, MEMORY_COMMENT, strlen(MEMORY_COMMENT)))
		note_rss(keeping, window, values);
	return true;
}

static int open_window(void *context, size_t window, int *ret_fd)
{
	const struct keeping *keeping = context;
	const char *path = keep_plan_path(keeping->plan, keeping->kind, window);
	OWNED_FD int hour_fd = -1;
	const char *name;
	int fd, err = open_directory_of(path, O_NOFOLLOW, &name, &hour_fd);

	if (err)
		return err;
	fd = openat(hour_fd, name, MERGE_OPEN_FLAGS);
	if (fd < 0)
		return -errno;
	*ret_fd = fd;
	return 0;
}

static void unreadable(void *context, size_t window, int err)
{
	struct keeping *keeping = context;

	(void)window;
	if (err != -ENOENT) /* the store has deleted it meanwhile */
		keeping->result->unreadable++;
}

/* ---- writing ---- */

/* Makes the directory, under a temporary name. */
static int make_directory(struct keeping *keeping, int kept_fd)
{
	if (keeping->fd >= 0)
		return 0;
	kept_temporary_name(keeping->result->name, keeping->temporary);
	if (mkdirat(kept_fd, keeping->temporary, DIRECTORY_MODE))
		return -errno;
	keeping->fd = openat(kept_fd, keeping->temporary, DIRECTORY_FLAGS);
	return keeping->fd < 0 || fchmod(keeping->fd, DIRECTORY_MODE) ? -errno : 0;
}

static int write_kind(struct keeping *keeping, int kept_fd, const struct merged_file *file)
{
	char name[STORE_KIND_CHARS + sizeof(KEPT_FILE_SUFFIX)];
	int err;

	if (keeping->result->bytes + file->size + KEPT_ABOUT_MAX_BYTES / 64 >
	    keeping->request->max_bytes) {
		keeping->result->too_big++;
		return 0;
	}
	err = make_directory(keeping, kept_fd);
	if (err)
		return err;
	snprintf(name, sizeof(name), "%s" KEPT_FILE_SUFFIX, file->name.kind);
	err = write_file_at(keeping->fd, name, FILE_MODE, file->bytes, file->size);
	if (err)
		return err;
	keeping->result->bytes += file->size;
	keeping->result->kinds++;
	return 0;
}

/* Merges and writes one kind.  One of which there is nothing, or that cannot be merged, is left
 * out. */
static int keep_kind(struct keeping *keeping, int kept_fd)
{
	const bool is_of_process = keeping->request->name.reason == KEPT_OOM;
	OWNED_MEM struct merge_window *window = keep_plan_windows(keeping->plan, keeping->kind);
	const struct merge_input input = {.kind = keeping->plan->kind[keeping->kind],
					  .window = window,
					  .window_count = keeping->plan->window_count,
					  .open = open_window,
					  .wants_labels = is_of_process ? wants_labels : NULL,
					  .wants_comment = is_of_process ? wants_comment : NULL,
					  .unreadable = unreadable,
					  .context = keeping};
	CLEANUP(merged_file_release) struct merged_file file = {0};
	int err = window ? merge_input_files(&input, &file) : -ENOMEM;

	if (!err)
		return write_kind(keeping, kept_fd, &file);
	if (err == -EFBIG || err == -E2BIG)
		keeping->result->too_big++;
	return err == -ENODATA || err == -EFBIG || err == -E2BIG ? 0 : err;
}

static void put_about(const struct keeping *keeping, FILE *out, const char *rss)
{
	const struct keep_request *request = keeping->request;
	char time[32], from[32], to[32];

	format_time(request->name.time_ms, time);
	format_time(keep_plan_from_ms(keeping->plan), from);
	format_time(keep_plan_to_ms(keeping->plan), to);
	if (request->name.reason == KEPT_OOM)
		fprintf(out, "reason=oom\npid=%" PRIu32 "\ncomm=%s\nuid=%" PRIu32 "\n",
			request->name.pid, keeping->name.comm, request->uid);
	else
		fputs("reason=signal\n", out);
	fprintf(out, "time=%s\nfrom=%s\nto=%s\nwindows=%" PRIu32 "\nkinds=%" PRIu32 "\n", time,
		from, to, keeping->result->windows, keeping->result->kinds);
	if (keeping->result->too_big)
		fprintf(out, "too_big=%" PRIu32 "\n", keeping->result->too_big);
	if (keeping->result->unreadable)
		fprintf(out, "unreadable=%" PRIu32 "\n", keeping->result->unreadable);
	fputs(rss, out);
}

static int write_about(struct keeping *keeping, const char *rss)
{
	OWNED_MEM char *text = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);
	int err;

	if (!out)
		return -ENOMEM;
	put_about(keeping, out, rss);
	err = close_memory_file(out, &text);
	if (err)
		return err;
	if (size > KEPT_ABOUT_MAX_BYTES)
		size = KEPT_ABOUT_MAX_BYTES;
	keeping->result->bytes += size;
	return write_file_at(keeping->fd, KEPT_ABOUT, FILE_MODE, text, size);
}

/* Gives the directory its name, which readers may see. */
static int publish(const struct keeping *keeping, int kept_fd)
{
	if (fsync(keeping->fd))
		return -errno;
	if (renameat(kept_fd, keeping->temporary, kept_fd, keeping->result->name))
		return -errno;
	return fsync(kept_fd) ? -errno : 0;
}

static int write_all(struct keeping *keeping, int kept_fd)
{
	OWNED_MEM char *rss = NULL;
	size_t rss_size = 0;
	int err = 0;

	keeping->rss = open_memstream(&rss, &rss_size);
	if (!keeping->rss)
		return -ENOMEM;
	while (!err && keeping->kind < keeping->plan->kind_count) {
		err = keep_kind(keeping, kept_fd);
		keeping->kind++;
	}
	if (close_memory_file(keeping->rss, &rss) && !err)
		err = -ENOMEM;
	if (!err && keeping->fd < 0)
		err = keeping->result->too_big ? -EFBIG : -ENODATA;
	if (!err)
		err = write_about(keeping, rss);
	return err ? err : publish(keeping, kept_fd);
}

/* Chooses a free name: an end in the same second may be there. */
static int choose_name(struct keeping *keeping, int kept_fd)
{
	struct kept_name name = keeping->request->name;

	kept_comm(keeping->request->name.comm, name.comm);
	for (unsigned int i = 0; i < NAME_TRIES; i++, name.time_ms += MS_PER_SEC) {
		keeping->name = name;
		kept_name_format(&name, keeping->result->name);
		if (faccessat(kept_fd, keeping->result->name, F_OK, AT_SYMLINK_NOFOLLOW))
			return errno == ENOENT ? 0 : -errno;
	}
	return -EEXIST;
}

/* ---- the whole ---- */

static int make_kept(int store_fd, int *ret_fd)
{
	int err = 0;

	if (!mkdirat(store_fd, KEPT_DIRECTORY, DIRECTORY_MODE))
		err = fsync(store_fd) ? -errno : 0;
	else if (errno != EEXIST)
		err = -errno;
	if (!err)
		err = kept_open(store_fd, ret_fd);
	return !err && fchmod(*ret_fd, DIRECTORY_MODE) ? -errno : err;
}

static int keep_planned(int kept_fd, const struct keep_request *request,
			const struct keep_plan *plan, struct keep_result *result)
{
	CLEANUP(keeping_release) struct keeping keeping = {
		.request = request, .result = result, .plan = plan, .fd = -1};
	int err = choose_name(&keeping, kept_fd);

	if (err)
		return err;
	result->windows = (uint32_t)plan->window_count;
	result->span_ms = keep_plan_to_ms(plan) - keep_plan_from_ms(plan);
	keeping.has_rss = calloc(plan->window_count, sizeof(*keeping.has_rss));
	if (!keeping.has_rss)
		return -ENOMEM;
	err = write_all(&keeping, kept_fd);
	if (err)
		kept_remove_temporary(kept_fd);
	return err;
}

static int tidy(int store_fd, const struct keep_request *request, struct keep_result *result)
{
	OWNED_FD int kept_fd = -1;
	int err = kept_open(store_fd, &kept_fd);

	if (err)
		return err == -ENOENT ? 0 : err;
	kept_remove_temporary(kept_fd);
	return keep_room_make(kept_fd, request->max_bytes, NULL, &result->removed);
}

int keep(int store_fd, const struct keep_request *request, struct keep_result *ret_result)
{
	CLEANUP(keep_plan_release) struct keep_plan plan = {0};
	OWNED_FD int kept_fd = -1;
	int err;

	*ret_result = (struct keep_result){0};
	if (request->is_tidying)
		return tidy(store_fd, request, ret_result);
	err = keep_plan_make(".", request->from_ms, request->until_ms, &plan);
	if (!err && !plan.kind_count)
		err = -ENODATA;
	if (!err)
		err = make_kept(store_fd, &kept_fd);
	if (err)
		return err;
	kept_remove_temporary(kept_fd);
	err = keep_planned(kept_fd, request, &plan, ret_result);
	if (!err)
		err = keep_room_make(kept_fd, request->max_bytes, ret_result->name,
				     &ret_result->removed);
	return err;
}
