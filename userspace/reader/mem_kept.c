/* SPDX-License-Identifier: BSD-2-Clause */
#include "reader/mem_kept.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/json_writer.h"
#include "base/kinds.h"
#include "query/process_memory.h"
#include "reader/complain.h"
#include "reader/read_input.h"
#include "reader/verb.h"
#include "render/format.h"
#include "store/kept.h"
#include "store/store_query.h"

#define STORE_DEFAULT "/var/lib/pyprofd" /* where pyprofd writes without -o */
#define MOMENT_CHARS 24U
#define MS_PER_SEC 1000U

/* ---- the list ---- */

/* One that is kept. */
struct kept_view {
	const char *name;
	const struct kept_name *is;
	struct store_listing files;
	uint64_t from_ms, to_ms; /* when the first window begins, and the last one ends; 0: none */
	int64_t peak_bytes;	 /* of the process, or of the largest one; 0: not known */
};

static void find_peak(char *path, struct kept_view *view)
{
	struct select select = {.path = &path,
				.path_count = 1,
				.pid = {view->is->pid},
				.pid_count = view->is->reason == KEPT_OOM};
	CLEANUP(process_memories_release) struct process_memories processes = {0};
	OWNED(input) struct input *input = NULL;

	/* Without memory the peak stays unknown. */
	if (read_input(process_memories_input(&processes, &select), &input) || !input ||
	    process_memories_fill(&processes, input_profile(input)))
		return;
	for (uint32_t i = 0; i < processes.count; i++)
		if (processes.process[i].peak_bytes > view->peak_bytes)
			view->peak_bytes = processes.process[i].peak_bytes;
}

static char *path_of(const char *store, const char *name)
{
	char *path;

	return asprintf(&path, "%s/" KEPT_DIRECTORY "/%s", store, name) < 0 ? NULL : path;
}

/* What cannot be read stays unknown. */
static void look_at(const char *store, const struct kept_entry *entry, struct kept_view *ret_view)
{
	static const struct store_range all = {.until_ms = UINT64_MAX};
	OWNED_MEM char *path = path_of(store, entry->name);

	*ret_view = (struct kept_view){.name = entry->name, .is = &entry->is};
	if (!path || store_list(path, &all, &ret_view->files) || !ret_view->files.count)
		return;
	ret_view->from_ms = ret_view->files.entry[0].file.start_ms;
	for (size_t i = 0; i < ret_view->files.count; i++) {
		const struct store_file *file = &ret_view->files.entry[i].file;
		const uint64_t end_ms = file->start_ms + file->duration_ms;

		if (end_ms > ret_view->to_ms)
			ret_view->to_ms = end_ms;
	}
	find_peak(path, ret_view);
}

static void format_time(uint64_t time_ms, char text[MOMENT_CHARS])
{
	const time_t seconds = (time_t)(time_ms / MS_PER_SEC);
	struct tm parts;

	text[0] = '\0';
	if (time_ms && gmtime_r(&seconds, &parts))
		strftime(text, MOMENT_CHARS, "%Y-%m-%dT%H:%M:%SZ", &parts);
}

static const char *reason_of(const struct kept_view *view)
{
	return view->is->reason == KEPT_OOM ? "oom" : "signal";
}

static void print_one(const struct kept_view *view)
{
	char moment[MOMENT_CHARS] = "", text[FORMAT_BYTES];

	format_time(view->is->time_ms, moment);
	moment[strcspn(moment, "T")] = ' ';
	printf("%-22s%-8s%11s  ", moment, reason_of(view),
	       view->peak_bytes ? format_value(view->peak_bytes, "bytes", text) : "-");
	if (view->is->reason == KEPT_OOM)
		printf("%" PRIu32 " %s", view->is->pid, view->is->comm);
	else
		printf("everything");
	printf("\n    %s\n", view->name);
}

static void put_time(struct json_writer *json, const char *key, uint64_t time_ms)
{
	char text[MOMENT_CHARS];

	format_time(time_ms, text);
	json_put_string(json, key, text);
}

static void put_one(struct json_writer *json, const struct kept_view *view)
{
	char pid[16] = "";

	if (view->is->reason == KEPT_OOM)
		snprintf(pid, sizeof(pid), "%" PRIu32, view->is->pid);
	json_newline(json);
	json_open(json, '{');
	json_put_string(json, "name", view->name);
	json_put_string(json, "reason", reason_of(view));
	json_put_string(json, "pid", pid);
	json_put_string(json, "comm", view->is->comm);
	put_time(json, "time", view->is->time_ms);
	put_time(json, "from", view->from_ms);
	put_time(json, "to", view->to_ms);
	json_put_int(json, "peak", view->peak_bytes);
	json_close(json, '}');
}

/* Lists what a store has kept, the oldest first.  Returns 0, also when that is nothing; -errno. */
static int list_store(const char *store, struct kept_list *ret_list)
{
	OWNED_FD int store_fd = open(store, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	return store_fd < 0 ? -errno : kept_list(store_fd, ret_list);
}

static int print_list(const char *store, bool is_json)
{
	struct json_writer json = json_writer_to(stdout);
	CLEANUP(kept_list_release) struct kept_list list = {0};
	int err = list_store(store, &list);

	if (err)
		return complain_of(store, err);
	if (!list.count && !is_json) {
		printf("Nothing was kept: no process that was profiled has run out of memory, and "
		       "pyprofd has got no SIGUSR1.\n");
		return READER_OK;
	}
	if (is_json)
		json_open(&json, '[');
	else
		printf("%-22s%-8s%11s  %s\n", "TIME", "REASON", "PEAK", "PROCESS");
	for (size_t i = list.count; i-- > 0;) {
		struct kept_view view;

		look_at(store, &list.entry[i], &view);
		if (is_json)
			put_one(&json, &view);
		else
			print_one(&view);
		store_listing_release(&view.files);
	}
	if (!is_json)
		return READER_OK;
	json_close(&json, ']');
	printf("\n");
	return json_finish(&json) ? complain_of("standard output", -EIO) : READER_OK;
}

/* ---- one ---- */

int mem_kept_choose(struct select *select, bool json, char **ret_path)
{
	const char *store = STORE_DEFAULT, *name = NULL;
	struct kept_name is;

	*ret_path = NULL;
	for (int i = 0; i < select->path_count; i++) {
		if (kept_name_parse(select->path[i], &is))
			name = select->path[i];
		else
			store = select->path[i];
	}
	if (select->live || select->path_count > 2 || (select->path_count == 2 && !name))
		return complain("--oom takes the name of one kept profile, and a store");
	if (!name)
		return print_list(store, json);
	if (kept_name_parse(name, &is) && is.reason == KEPT_OOM && !select->pid_count)
		select->pid[select->pid_count++] = is.pid;
	*ret_path = path_of(store, name);
	return *ret_path ? READER_OK : complain_of(name, -ENOMEM);
}
