/* SPDX-License-Identifier: BSD-2-Clause */
/* pyprof mem: memory by line, and what is resident by process. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/kinds.h"
#include "base/collectors.h"
#include "query/extent.h"
#include "reader/complain.h"
#include "reader/mem_kept.h"
#include "reader/mem_view.h"
#include "reader/read_input.h"
#include "reader/select_options.h"
#include "reader/text.h"
#include "reader/verb.h"

#define DEFAULT_ROWS 30U
#define OLDER_DEFAULT_NS (5 * 60 * NS_PER_SEC)
#define HOW_TO_RECORD                                                                              \
	"record with `pyprofd --events mem`, or allocations with `pyprofd --events alloc --pid "   \
	"PID`"

struct mem {
	struct select_options shared;
	unsigned long rows;
	uint64_t older_ns;
	bool leaks, oom;
	struct held held;
	struct process_memories processes;
};

enum { OPTION_LEAKS = 1, OPTION_OOM };

static const struct argp_option options[] = {
	{"leaks", OPTION_LEAKS, "OLDER", OPTION_ARG_OPTIONAL,
	 "What is still held, how it grows, and what of it is held for longer than OLDER: 30s, 5m "
	 "(default), 1h; lines that grow come first",
	 1},
	{"top", 'n', "N", 0, "Show N lines; 0: all.  Default: 30", 1},
	{"oom", OPTION_OOM, NULL, 0,
	 "List what pyprofd kept of processes that ran out of memory, or show the one that is "
	 "named",
	 1},
	{0},
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
static void parse_older(struct argp_state *state, struct mem *mem, const char *text)
{
	const uint64_t now_ms = wall_ns() / NS_PER_MS;
	const size_t size = strlen(text);
	uint64_t then_ms;

	if (!size || !strchr("smhd", text[size - 1]) || select_time(text, now_ms, &then_ms) ||
	    then_ms >= now_ms)
		argp_error(state, "--leaks=%s: not a time: 30s, 5m, 1h", text);
	mem->older_ns = (now_ms - then_ms) * NS_PER_MS;
}

static error_t parse(int key, char *text, struct argp_state *state)
{
	struct mem *mem = state->input;

	switch (key) {
	case ARGP_KEY_INIT:
		state->child_inputs[0] = &mem->shared;
		return 0;
	case OPTION_LEAKS:
		mem->leaks = true;
		if (text)
			parse_older(state, mem, text);
		return 0;
	case OPTION_OOM:
		mem->oom = true;
		return 0;
	case 'n':
		mem->rows = select_number(state, "top", text);
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

/* ---- which kind ---- */

static int say_none(const char *title)
{
	return complain("%s: no memory was recorded: " HOW_TO_RECORD, title);
}

/* Finds the kind that a directory has.  Returns 0 and a kind, or READER_BAD_INPUT. */
static int kind_of_directory(const char *path, enum pp_profile preferred, const char **ret_kind)
{
	const enum pp_profile other =
		preferred == PP_PROFILE_MEM ? PP_PROFILE_ALLOC : PP_PROFILE_MEM;
	struct extent extent;
	int err = extent_read(path, false, &extent);

	if (err) {
		complain_of(path, err);
		return READER_BAD_INPUT;
	}
	if (!(extent.kinds & (1U << preferred | 1U << other)))
		return say_none(path);
	*ret_kind = kind_get(extent.kinds & 1U << preferred ? preferred : other)->name;
	return 0;
}

/* Reads a file's comments alone, to find out what kind it is. */
static int kind_of_file(char *path, const char **ret_kind)
{
	struct select select = {.path = &path, .path_count = 1};
	const struct input_options input_options = {.select = &select, .comments_only = true};
	OWNED(input) struct input *input = NULL;
	int err = read_input(input_options, &input);
	const char *name;
	enum pp_profile kind;

	if (err)
		return err;
	name = profile_kind(input_profile(input));
	if (!kind_find(name, strlen(name), &kind) ||
	    (kind != PP_PROFILE_MEM && kind != PP_PROFILE_ALLOC))
		return complain("%s: a profile of kind %s, which has no memory: " HOW_TO_RECORD,
				input_title(input), name);
	*ret_kind = kind_get(kind)->name;
	return 0;
}

/* Chooses the kind by the first path: --kind, else mem, else alloc.  --leaks asks for alloc. */
static int choose_kind(struct mem *mem)
{
	const enum pp_profile preferred = mem->leaks ? PP_PROFILE_ALLOC : PP_PROFILE_MEM;
	struct select *select = &mem->shared.select;
	enum collector_id ignored;
	const char *plain;
	struct stat status;

	if (select->kind)
		return 0;
	select->kind = kind_get(preferred)->name;
	if (!select->path_count || remote_url_parse(select->path[0], &ignored, &plain) ||
	    stat(select->path[0], &status))
		return 0;
	if (S_ISDIR(status.st_mode))
		return kind_of_directory(select->path[0], preferred, &select->kind);
	return S_ISREG(status.st_mode) ? kind_of_file(select->path[0], &select->kind) : 0;
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
	struct select select = mem->shared.select; /* a copy, whose parts are borrowed */
	struct input_options input_options = process_memories_input(&mem->processes, &select);
	int err;

	input_options.live_from = select.live ? from : NULL;
	err = read_input(input_options, ret_input);
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
	struct table table;
	int err = mem_table_fill(&rows, input_profile(input), &mem->held);

	if (err == -EPROTO)
		return say_none(input_title(input));
	if (!err) {
		rows.code.short_paths = input_short_paths(input);
		mem_table_sort(&rows, mem->leaks);
		table_open(&table, stdout, (enum table_format)mem->shared.format,
			   text_wants_color());
		text_table_head(&table, input);
		mem_view_put(&view, &table);
		err = table_close(&table);
	}
	if (!err && fflush(stdout))
		err = -errno;
	if (err)
		complain_of(input_title(input), err);
	return err ? READER_BAD_INPUT : READER_OK;
}

static int show_table(struct mem *mem)
{
	/* One program's blocks are not another's with the same stack. */
	static const char *const kept_labels[] = {"pid", NULL};
	static const char *const none[] = {NULL};
	struct select *select = &mem->shared.select;
	const bool is_alloc = kind_is(select->kind, PP_PROFILE_ALLOC);
	const struct input_options input_options = {.select = select,
						    .keep_labels = is_alloc ? kept_labels : none,
						    .drop_addresses = true,
						    .python_only = true,
						    .window_done = window_done,
						    .live_more =
							    kind_get(PP_PROFILE_RESIDENT)->name,
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
	char *kept = NULL;
	int status = READER_OK;

	if (mem->oom) {
		status = mem_kept_choose(&mem->shared.select, mem->shared.format == TABLE_JSON,
					 &kept);
		if (status || !kept)
			return status;
		mem->shared.select.path[0] = kept;
		mem->shared.select.path_count = 1;
	}
	status = choose_kind(mem);
	if (!status)
		status = check_kind(mem);
	if (!status)
		status = show_table(mem);
	free(kept);
	return status;
}

int verb_mem(int argc, char **argv)
{
	struct mem mem = {.rows = DEFAULT_ROWS,
			  .older_ns = OLDER_DEFAULT_NS,
			  .shared.formats = select_table_formats};
	int status = READER_BAD_INPUT;

	if (!select_parse(options, parse, doc, "PROFILE|DIR...\n--live\n--oom [NAME] [DIR]", argc,
			  argv, &mem) &&
	    !select_refuse_groups(&mem.shared.select, "mem")) {
		mem.held.older_ns = mem.older_ns;
		status = run(&mem);
	}
	held_release(&mem.held);
	process_memories_release(&mem.processes);
	select_release(&mem.shared.select);
	return status;
}
