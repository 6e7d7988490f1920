/* SPDX-License-Identifier: BSD-2-Clause */
/* pyprof mem: memory by line, and what is resident by process. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/json_writer.h"
#include "base/kinds.h"
#include "query/folder.h"
#include "query/machine.h"
#include "query/select.h"
#include "reader/mem_view.h"
#include "reader/read_input.h"
#include "reader/select_options.h"
#include "reader/text.h"
#include "reader/verb.h"
#include "render/format.h"
#include "store/kept.h"

/* What `pyprof mem --oom` lists, and which kept profile it shows. */

#define STORE_DEFAULT "/var/lib/pyprofd" /* where pyprofd writes without -o */
#define MOMENT_CHARS 24U
#define MS_PER_SEC 1000U

/* ---- the list ---- */

/* One that is kept. */
struct kept_view {
	const char *name;
	const struct kept_name *is;
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
	OWNED_MEM char *path = path_of(store, entry->name);
	struct extent extent;

	*ret_view = (struct kept_view){.name = entry->name, .is = &entry->is};
	if (!path || extent_read(path, false, &extent) || !extent.files)
		return;
	ret_view->from_ms = extent.from_ms;
	ret_view->to_ms = extent.until_ms;
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
	}
	if (!is_json)
		return READER_OK;
	json_close(&json, ']');
	printf("\n");
	return json_finish(&json) ? complain_of("standard output", -EIO) : READER_OK;
}

/* ---- one ---- */

/* Takes the paths of a selection: the name of what is kept (store/kept.h), the store, both, or
 * none, which is the default store.  Without a name prints the list, and *ret_path is NULL; else
 * *ret_path is the directory's path, on the heap, and of a process that ended the selection takes
 * its pid alone, unless it has pids.  Returns READER_OK, or READER_BAD_INPUT after one line. */
static int mem_kept_choose(struct select *select, bool json, char **ret_path)
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

#define DEFAULT_ROWS 30U
#define OLDER_DEFAULT_NS (5 * 60 * NS_PER_SEC)

struct mem {
	struct select_options shared;
	unsigned long rows;
	uint64_t older_ns;
	bool leaks, oom;
	struct held held;
	struct process_memories processes;
};

static const char doc[] =
	"Shows which lines touch memory for the first time, which copy it on write, and how much "
	"memory each process has; of kind alloc, which lines allocate and hold it."
	"\vExamples:\n"
	"  pyprof mem mem.pb.gz\n"
	"  pyprof mem /var/lib/pyprofd --since 1h --pid 1234\n"
	"  sudo pyprof mem --live --pid 1234 --for 30\n"
	"  pyprof mem --leaks=10m alloc/\n"
	"  pyprof flame --sample-type inuse_space alloc.pb.gz > held.html\n"
	"  sudo pyprof mem --oom\n";

/* ---- options ---- */

/* Takes "30s", "5m": a time by the words of --since, but no moment. */
static void parse_leaks(const struct given *given)
{
	const uint64_t now_ms = wall_ns() / NS_PER_MS;
	const size_t size = given->text ? strlen(given->text) : 0;
	struct mem *mem = given->at;
	uint64_t then_ms;

	mem->leaks = true;
	if (!given->text)
		return;
	if (!size || !strchr("smhd", given->text[size - 1]) ||
	    select_time(given->text, now_ms, &then_ms) || then_ms >= now_ms)
		option_refuse(given, "not a time: 30s, 5m, 1h");
	mem->older_ns = (now_ms - then_ms) * NS_PER_MS;
}

static const struct verb_option options[] = {
	{"leaks", 0, "OLDER",
	 "What is still held, how it grows, and what of it is held for longer than OLDER: 30s, 5m "
	 "(default), 1h; lines that grow come first",
	 1, OPTION_CALL, .parse = parse_leaks, .may_be_bare = true},
	{"top", 'n', "N", "Show N lines; 0: all.  Default: 30", 1, OPTION_NUMBER,
	 .at = offsetof(struct mem, rows)},
	{"oom", 0, NULL,
	 "List what pyprofd kept of processes that ran out of memory, or show the one that is "
	 "named",
	 1, OPTION_FLAG, .at = offsetof(struct mem, oom)},
	{}};

/* ---- which kind ---- */

static struct wanted_kinds wanted_of(const struct mem *mem)
{
	return (struct wanted_kinds){
		.kind = {mem->leaks ? PP_PROFILE_ALLOC : PP_PROFILE_MEM,
			 mem->leaks ? PP_PROFILE_MEM : PP_PROFILE_ALLOC},
		.count = 2,
		.nothing = "no memory",
		.how_to_record = "record with `pyprofd --events mem`, or allocations with "
				 "`pyprofd --events alloc --pid PID`"};
}

static int check_kind(const struct mem *mem)
{
	const char *kind = mem->shared.select.kind;

	if (!kind_is(kind, PP_PROFILE_MEM) && !kind_is(kind, PP_PROFILE_ALLOC))
		return complain("mem shows the kinds mem and alloc, not %.60s", kind);
	if (mem->leaks && kind_is(kind, PP_PROFILE_MEM))
		return complain("--leaks needs allocations, and this is a profile of what was "
				"touched: record with `pyprofd --events alloc --pid PID`");
	return 0;
}

/* ---- the table ---- */

static int window_done(void *context, struct profile *profile, const struct profile_window *window)
{
	struct mem *mem = context;

	(void)profile;
	return window->is_level ? held_add_window(&mem->held, window) : 0;
}

/* Reads the same windows of kind resident.  *ret_input has the texts of the processes; NULL: there
 * are none. */
static int read_processes(struct mem *mem, const struct input *from, struct input **ret_input)
{
	int err = read_records(process_memories_input(&mem->processes, &mem->shared.select), from,
			       ret_input);

	if (!err && *ret_input && process_memories_fill(&mem->processes, input_profile(*ret_input)))
		return complain_of(input_title(*ret_input), -ENOMEM);
	return err;
}

static int show(struct mem *mem, const struct input *input)
{
	CLEANUP(mem_table_release) struct mem_table rows = {0};
	const struct mem_view view = {.table = &rows,
				      .held = &mem->held,
				      .processes = &mem->processes,
				      .rows = (uint32_t)mem->rows,
				      .leaks = mem->leaks};
	const struct wanted_kinds wanted = wanted_of(mem);
	struct table table;
	int err = mem_table_fill(&rows, input_profile(input), &mem->held);

	if (err == -EPROTO)
		return input_has_none(&wanted, input_title(input));
	if (!err) {
		rows.code.short_paths = input_short_paths(input);
		mem_table_sort(&rows, mem->leaks);
		table_open(&table, stdout, (enum table_format)mem->shared.format,
			   text_wants_color());
		text_table_head(&table, input);
		mem_view_put(&view, &table);
		err = table_close(&table, 0);
	}
	if (!err && fflush(stdout))
		err = -errno;
	return err ? complain_of(input_title(input), err) : READER_OK;
}

static int show_table(struct mem *mem)
{
	/* One program's blocks are not another's with the same stack. */
	static const char *const kept_labels[] = {"pid", NULL};
	struct select *select = &mem->shared.select;
	const bool is_alloc = kind_is(select->kind, PP_PROFILE_ALLOC);
	const struct input_options input_options = {.select = select,
						    .keep_labels = is_alloc ? kept_labels
									    : input_no_labels,
						    .drop_addresses = true,
						    .python_only = true,
						    .window_done = window_done,
						    .live_more = 1U << PP_PROFILE_RESIDENT,
						    .context = mem};
	OWNED(input) struct input *input = NULL, *processes = NULL;
	int err;

	/* Of alloc, the held bytes of each window. */
	select->sample_type = is_alloc ? "inuse_space" : "first_touch";
	err = read_input(input_options, &input);
	if (!err)
		err = read_processes(mem, input, &processes);
	return err ? err : show(mem, input);
}

/* ---- the verb ---- */

static int run(struct mem *mem)
{
	const struct wanted_kinds wanted = wanted_of(mem);
	char *kept = NULL;
	int status = READER_OK;

	mem->held.older_ns = mem->older_ns;
	if (mem->oom) {
		status = mem_kept_choose(&mem->shared.select, mem->shared.format == TABLE_JSON,
					 &kept);
		if (status || !kept)
			return status;
		mem->shared.select.path[0] = kept;
		mem->shared.select.path_count = 1;
	}
	if (!mem->shared.select.kind)
		status = choose_kind(&mem->shared.select, &wanted);
	if (!status)
		status = check_kind(mem);
	if (!status)
		status = show_table(mem);
	free(kept);
	return status;
}

int verb_mem(int argc, char **argv)
{
	static const struct verb_args args = {options, SELECT_ARGUMENTS "\n--oom [NAME] [DIR]",
					      .doc = doc};
	struct mem mem = {.rows = DEFAULT_ROWS,
			  .older_ns = OLDER_DEFAULT_NS,
			  .shared.formats = select_table_formats};
	int status = select_parse(&args, argc, argv, &mem.shared)
			     ?: select_refuse_groups(&mem.shared.select, "mem")
			     ?: run(&mem);

	held_release(&mem.held);
	process_memories_release(&mem.processes);
	select_release(&mem.shared.select);
	return status;
}
