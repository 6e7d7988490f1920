/* SPDX-License-Identifier: BSD-2-Clause */
#include "reader/mem_kept.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/json_writer.h"
#include "base/kinds.h"
#include "query/process_memory.h"
#include "reader/complain.h"
#include "reader/kept_about.h"
#include "reader/read_input.h"
#include "reader/verb.h"
#include "render/format.h"
#include "store/kept.h"

#define STORE_DEFAULT "/var/lib/pyprofd" /* where pyprofd writes without -o */
#define MOMENT_CHARS 24U

static char *memory_profile(const char *store, const char *name, const char *kind)
{
	char *path = kept_profile(store, name, kind ? kind : kind_get(PP_PROFILE_MEM)->name);

	return path || kind ? path : kept_profile(store, name, kind_get(PP_PROFILE_ALLOC)->name);
}

/* ---- the list ---- */

static void on_comment(void *context, const char *text)
{
	/* Without memory the peak stays unknown. */
	(void)process_memories_add(context, text);
}

/* Returns the peak of a process, or of the largest one when it is not named; 0: not known. */
static uint64_t find_peak(const char *store, const char *name, const struct kept_about *about)
{
	OWNED_MEM char *path = memory_profile(store, name, NULL);
	struct select select = {.path = &path, .path_count = 1};
	CLEANUP(process_memories_release) struct process_memories processes = {.select = &select};
	const struct input_options input_options = {.select = &select,
						    .comments_only = true,
						    .comment = on_comment,
						    .context = &processes};
	OWNED(input) struct input *input = NULL;
	uint64_t peak_bytes = 0;

	if (!path)
		return 0;
	if (about->pid[0] && select_add_pids(&select, about->pid))
		return 0;
	if (read_input(input_options, true, &input))
		return 0;
	for (uint32_t i = 0; i < processes.count; i++)
		if (processes.process[i].peak_bytes > peak_bytes)
			peak_bytes = processes.process[i].peak_bytes;
	return peak_bytes < INT64_MAX ? peak_bytes : INT64_MAX;
}

/* Writes "2026-11-27 22:46:37Z" of a name. */
static void format_moment(const char *name, char moment[MOMENT_CHARS])
{
	snprintf(moment, MOMENT_CHARS, "%.10s %.2s:%.2s:%.2sZ", name, name + 11, name + 13,
		 name + 15);
}

static void print_one(const char *name, const struct kept_about *about, uint64_t peak_bytes)
{
	char moment[MOMENT_CHARS], text[FORMAT_BYTES];

	format_moment(name, moment);
	printf("%-22s%-8s%11s  %s%s%s\n    %s\n", moment, about->reason[0] ? about->reason : "-",
	       peak_bytes ? format_value((int64_t)peak_bytes, "bytes", text) : "-", about->pid,
	       about->pid[0] ? " " : "", about->comm[0] ? about->comm : "everything", name);
}

static void put_one(struct json_writer *json, const char *name, const struct kept_about *about,
		    uint64_t peak_bytes)
{
	json_newline(json);
	json_open(json, '{');
	json_put_string(json, "name", name);
	json_put_string(json, "reason", about->reason);
	json_put_string(json, "pid", about->pid);
	json_put_string(json, "comm", about->comm);
	json_put_string(json, "time", about->time);
	json_put_string(json, "from", about->from);
	json_put_string(json, "to", about->to);
	json_put_int(json, "peak", (int64_t)peak_bytes);
	json_close(json, '}');
}

/* Lists what a store has kept, the oldest first.  Returns 0, also when that is nothing; -errno. */
static int list_store(const char *store, struct kept_list *ret_list)
{
	OWNED_FD int store_fd = open(store, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	OWNED_FD int kept_fd = -1;
	int err;

	if (store_fd < 0)
		return -errno;
	err = kept_open(store_fd, &kept_fd);
	if (err)
		return err == -ENOENT ? 0 : err;
	return kept_list(kept_fd, ret_list);
}

static int print_list(const char *store, bool is_json)
{
	struct json_writer json = json_writer_to(stdout);
	CLEANUP(kept_list_release) struct kept_list list = {0};
	struct kept_about about;
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
		const char *name = list.entry[i].name;
		uint64_t peak_bytes;

		kept_about_read(store, name, &about);
		peak_bytes = find_peak(store, name, &about);
		if (is_json)
			put_one(&json, name, &about, peak_bytes);
		else
			print_one(name, &about, peak_bytes);
	}
	if (!is_json)
		return READER_OK;
	json_close(&json, ']');
	printf("\n");
	return json_finish(&json) ? complain_of("standard output", -EIO) : READER_OK;
}

/* ---- one ---- */

int mem_kept_choose(const struct select *select, bool json, char **ret_path)
{
	const char *store = STORE_DEFAULT, *name = NULL;
	struct kept_name ignored;

	*ret_path = NULL;
	for (int i = 0; i < select->path_count; i++) {
		if (kept_name_parse(select->path[i], &ignored))
			name = select->path[i];
		else
			store = select->path[i];
	}
	if (select->live || select->path_count > 2 || (select->path_count == 2 && !name))
		return complain("--oom takes the name of one kept profile, and a store");
	if (!name)
		return print_list(store, json);
	*ret_path = memory_profile(store, name, select->kind);
	if (*ret_path)
		return READER_OK;
	return complain("%s/" KEPT_DIRECTORY "/%s: no memory is in it; `pyprof report` shows what "
			"is, for instance cpu.pb.gz",
			store, name);
}
