/* SPDX-License-Identifier: BSD-2-Clause */
#include "attach/context_table.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "attach/file_table.h"
#include "base/array.h"
#include "base/clock.h"
#include "base/user_quota.h"
#include "discover/proc_scan.h"
#include "python/python_process.h"
#include "unwind/row_space.h"

/* Consecutive chunks in map_sets[], numbered from 1 on. */
struct map_set {
	uint32_t first, count;
	uint32_t references;
};

/* process->tables */
struct process_tables {
	struct map_set *set; /* NULL: none */
	bool is_set_refused; /* there was no room for one at the last try */
	/* mappings of files that the child had not examined when this was published */
	uint32_t unread;
	struct pp_process_context context;
	struct process_python python;
	uint32_t *file; /* ids that this process refers to; owned */
	size_t file_count;
};

struct context_table {
	struct kernel_side *side;
	struct file_table *files;
	struct pp_map_chunk *chunk;
	struct index_ranges chunks;
	/* Numbers of interpreter files, 1 + the index in pythons[].  Records and stacks hold them
	 * in a byte, so one that was given back rests for epochs, as ids of files do. */
	struct index_ranges pythons;
	struct file *interpreter[PYTHON_SLOTS + 1]; /* borrowed; NULL: free, or resting */
	uint32_t next_code_space, next_map_version;
	struct context_table_stats stats;
};

int context_table_new(struct kernel_side *side, struct file_table *files,
		      struct context_table **ret_table)
{
	struct context_table *table = calloc(1, sizeof(*table));
	uint32_t chunks;

	if (!table)
		return -ENOMEM;
	table->side = side;
	table->files = files;
	table->chunk = kernel_side_map_chunks(side, &chunks);
	index_ranges_init(&table->chunks, chunks + 1, WALK_REST_TICKS);
	index_ranges_init(&table->pythons, PYTHON_SLOTS + 1, FILE_SLOT_REST_EPOCHS);
	*ret_table = table;
	return 0;
}

void context_table_free(struct context_table *table)
{
	if (!table)
		return;
	index_ranges_release(&table->pythons);
	index_ranges_release(&table->chunks);
	free(table);
}

void context_table_tick(struct context_table *table)
{
	index_ranges_tick(&table->chunks);
}

static void set_unref(struct context_table *table, struct map_set *set)
{
	if (!set || --set->references)
		return;
	index_ranges_give(&table->chunks, set->first);
	free(set);
}

/* ---- ranges of one process ---- */

struct range_list {
	uint64_t *start;
	struct pp_range *range;
	size_t count;
};

static void range_list_release(struct range_list *list)
{
	free(list->start);
	free(list->range);
}

static void range_add(struct range_list *list, uint64_t start, struct pp_range range)
{
	list->start[list->count] = start;
	list->range[list->count++] = range;
}

/* Returns whether a mapping continues the last range: as the same file at the next offset, or as
 * anonymous memory. */
static bool continues(const struct range_list *list, uint64_t end, const struct mapping *mapping,
		      const struct pp_range *range)
{
	const struct pp_range *last = &list->range[list->count - 1];

	return end == mapping->start && last->file == range->file && last->bias == range->bias &&
	       last->page0 == range->page0;
}

static int list_ranges(struct context_table *table, struct process *process,
		       struct range_list *list)
{
	uint64_t end = 0;

	list->start = malloc((process->mapping_count * 2 + 2) * sizeof(*list->start));
	list->range = malloc((process->mapping_count * 2 + 2) * sizeof(*list->range));
	if (!list->start || !list->range)
		return -ENOMEM;
	range_add(list, 0, (struct pp_range){.file = PP_FILE_NONE});
	for (size_t i = 0; i < process->mapping_count; i++) {
		struct mapping *mapping = &process->mapping[i];
		struct file *file = file_table_find(table->files, mapping->file);
		struct pp_range range = {.file = mapping->file,
					 .page0 = file ? file->page0 : 0,
					 .bias = mapping->bias};

		/* A file without pages (not ELF, or no room) counts as code without rows. */
		if (!file || !file->has_pages)
			range = (struct pp_range){.file = PP_FILE_ANONYMOUS};
		if (continues(list, end, mapping, &range)) {
			end = mapping->end;
			continue;
		}
		if (i && end < mapping->start)
			range_add(list, end, (struct pp_range){.file = PP_FILE_NONE});
		range_add(list, mapping->start, range);
		end = mapping->end;
	}
	if (end)
		range_add(list, end, (struct pp_range){.file = PP_FILE_NONE});
	return 0;
}

static int write_set(struct context_table *table, uint32_t user, const struct range_list *list,
		     struct map_set **ret_set)
{
	size_t ranges = list->count;
	uint32_t chunks;
	OWNED_MEM struct map_set *set = calloc(1, sizeof(*set));
	int err;

	if (!set)
		return -ENOMEM;
	if (ranges > (size_t)PP_MAP_CHUNK_RANGES * PP_MAX_MAP_CHUNKS)
		ranges = (size_t)PP_MAP_CHUNK_RANGES * PP_MAX_MAP_CHUNKS;
	chunks = (uint32_t)((ranges + PP_MAP_CHUNK_RANGES - 1) / PP_MAP_CHUNK_RANGES);
	err = index_ranges_take(&table->chunks, user, chunks, &set->first);
	if (err)
		return err;
	set->count = chunks;
	set->references = 1;
	for (size_t i = 0; i < (size_t)chunks * PP_MAP_CHUNK_RANGES; i++) {
		struct pp_map_chunk *chunk =
			&table->chunk[set->first - 1 + i / PP_MAP_CHUNK_RANGES];
		size_t at = i % PP_MAP_CHUNK_RANGES;

		chunk->start[at] = i < ranges ? list->start[i] : UINT64_MAX;
		/* When ranges were cut off, the last one that is left becomes a gap, because it
		 * would cover them. */
		chunk->range[at] = i < ranges && (i + 1 < ranges || ranges == list->count)
					   ? list->range[i]
					   : (struct pp_range){};
	}
	*ret_set = TAKE(set);
	return 0;
}

/* ---- the interpreter ---- */

static void refuse_python(struct context_table *table, struct file *file)
{
	/* Counted once a file: a process may be published often. */
	if (!file->python_reason)
		table->stats.pythons_refused++;
	file->python_reason = "its user's programs, or all together, have more interpreter files "
			      "than the table holds";
}

static int python_slot(struct context_table *table, const struct process *process,
		       struct file *file)
{
	static const struct pp_resync unknown;
	uint32_t number;
	int err;

	if (file->python_index)
		return 0;
	err = index_ranges_take(&table->pythons, process_user(process), 1, &number);
	if (err) {
		refuse_python(table, file);
		return err;
	}
	file->python->bpf.file = file->id;
	err = kernel_side_set_python(table->side, number - 1, &file->python->bpf);
	/* What was learnt of the interpreter that had the number before. */
	if (!err)
		err = kernel_side_set_resync(table->side, number - 1, &unknown);
	if (err) {
		index_ranges_undo(&table->pythons, number);
		return err;
	}
	table->interpreter[number] = file;
	file->python_index = number;
	file->python_reason = NULL;
	return 0;
}

void context_table_tidy(struct context_table *table, uint64_t before_ns)
{
	for (uint32_t number = 1; number <= PYTHON_SLOTS; number++) {
		struct file *file = table->interpreter[number];

		if (!file || file->references || file->interpreted ||
		    file->unused_since_ns >= before_ns)
			continue;
		file->python_index = 0;
		table->interpreter[number] = NULL;
		index_ranges_give(&table->pythons, number);
	}
}

void context_table_end_epoch(struct context_table *table)
{
	index_ranges_tick(&table->pythons);
}

struct user_quota *context_table_python_quota(struct context_table *table)
{
	return &table->pythons.quota;
}

struct user_quota *context_table_sets_quota(struct context_table *table)
{
	return &table->chunks.quota;
}

struct file *context_table_interpreter(const struct context_table *table, uint32_t python)
{
	return python && python <= PYTHON_SLOTS ? table->interpreter[python] : NULL;
}

const struct python_info *context_table_python_info(const struct context_table *table,
						    uint32_t python)
{
	const struct file *file = context_table_interpreter(table, python);

	return file ? file->python : NULL;
}

/* The file of a process' interpreter is not forgotten before the process. */
static void set_interpreter(struct process_python *python, struct file *file)
{
	if (file)
		file->interpreted++;
	if (python->file)
		python->file->interpreted--;
	python->file = file;
}

/* Finds the first mapped file that is an interpreter we can read. */
static void find_python(struct context_table *table, struct process *process,
			struct process_tables *tables)
{
	struct process_python *python = &tables->python, before = *python;

	*python = (struct process_python){.is_refused = before.is_refused};
	if (before.file)
		before.file->interpreted--;
	for (size_t i = 0; i < process->mapping_count; i++) {
		const struct mapping *mapping = &process->mapping[i];
		struct file *file = file_table_find(table->files, mapping->file);

		if (!file)
			continue;
		python->is_musl |= file->is_musl;
		if (file->python && !python->file && !python_slot(table, process, file)) {
			set_interpreter(python, file);
			python->bias = mapping->bias;
			python->reason = NULL;
		} else if (!python->file && file->python_reason) {
			python->reason = file->python_reason;
		}
	}
	/* Earlier findings hold only for the same interpreter: another may be loaded later. */
	if (python->is_refused || (python->file && python->file == before.file))
		python->reason = before.reason;
	if (python->is_refused ||
	    (python->file == before.file && python->reason == before.reason)) {
		python->is_checked = before.is_checked;
		python->failed_tests = before.failed_tests;
	}
}

static void fill_python(struct context_table *table, struct process *process,
			struct process_tables *tables)
{
	struct process_python *python = &tables->python;
	struct pp_process_context *context = &tables->context;

	find_python(table, process, tables);
	context->python = 0;
	if (!python->file || python->is_refused)
		return;
	context->python = python->file->python_index;
	context->python_bias = python->bias;
	/* Before the loader has relocated the process only plain sources are known; when the
	 * self-test is retried, it publishes again. */
	if (python_process_tls_read(python->file->python, (pid_t)process->id.tgid, python->bias,
				    python->is_musl, context->tls))
		python_process_tls(python->file->python, python->bias, python->is_musl,
				   context->tls);
	if (!context->code_space)
		context->code_space = ++table->next_code_space;
}

/* ---- processes ---- */

static int tables_get(struct process *process, struct process_tables **ret_tables)
{
	if (!process->tables)
		process->tables = calloc(1, sizeof(struct process_tables));
	*ret_tables = process->tables;
	return process->tables ? 0 : -ENOMEM;
}

/* A forked child may outlive all that looked the file up. */
static void refer_files(struct context_table *table, const struct process_tables *tables,
			uint32_t tgid)
{
	for (size_t i = 0; i < tables->file_count; i++) {
		struct file *file = file_table_find(table->files, tables->file[i]);

		if (!file)
			continue;
		file->references++;
		file->last_place.tgid = tgid;
	}
}

static void release_files(struct context_table *table, const struct process_tables *tables)
{
	const uint64_t now_ns = mono_ns();

	for (size_t i = 0; i < tables->file_count; i++) {
		struct file *file = file_table_find(table->files, tables->file[i]);

		if (file && !--file->references)
			file->unused_since_ns = now_ns;
	}
}

/* Takes the new references before it drops the old ones, so that a file in both never falls to
 * 0. */
static int take_file_references(struct context_table *table, const struct process *process,
				struct process_tables *tables)
{
	struct process_tables old = {.file = tables->file, .file_count = tables->file_count};
	/* malloc(0) may give NULL. */
	uint32_t *file = malloc(process->mapping_count * sizeof(*file) + 1);

	if (!file)
		return -ENOMEM;
	tables->file = file;
	tables->file_count = 0;
	for (size_t i = 0; i < process->mapping_count; i++)
		if (process->mapping[i].file >= PP_FILE_FIRST)
			tables->file[tables->file_count++] = process->mapping[i].file;
	refer_files(table, tables, process->id.tgid);
	release_files(table, &old);
	free(old.file);
	return 0;
}

static bool is_file_known(const struct context_table *table, const struct mapping *mapping)
{
	if (mapping->file < PP_FILE_FIRST)
		return mapping->file != PP_FILE_NONE;
	return file_table_find(table->files, mapping->file) != NULL;
}

bool context_table_is_due(struct context_table *table, uint64_t now_ns)
{
	return file_table_is_due(table->files, now_ns);
}

static struct file *unread_file(const struct context_table *table, const struct mapping *mapping)
{
	struct file *file = file_table_find(table->files, mapping->file);

	return file && file->unread_ns ? file : NULL;
}

bool context_table_ask_again(struct context_table *table, const struct process *process,
			     const struct slice *slice)
{
	const struct process_tables *tables = process->tables;
	uint32_t unread = 0;

	if (!tables || !tables->unread)
		return false;
	for (size_t i = 0; i < process->mapping_count; i++) {
		struct file *file = unread_file(table, &process->mapping[i]);

		/* Asked about once a second, whoever maps it. */
		if (file && !slice_is_over(slice))
			(void)file_table_get(table->files, process, &process->mapping[i], &file);
		unread += file && file->unread_ns;
	}
	return unread < tables->unread;
}

/* Notes how many of its files are still to be examined.  Of those that have been since the process
 * was published last the segments are known now, and with them the bias. */
static void note_unread(const struct context_table *table, struct process *process,
			struct process_tables *tables)
{
	const bool had_unread = tables->unread;

	tables->unread = 0;
	for (size_t i = 0; i < process->mapping_count; i++) {
		struct mapping *mapping = &process->mapping[i];
		const struct file *file = file_table_find(table->files, mapping->file);

		if (file && had_unread)
			mapping->bias = file_bias(file, mapping);
		tables->unread += file && file->unread_ns;
	}
}

int context_table_find_files(struct context_table *table, struct process *process,
			     const struct slice *slice)
{
	bool has_found = false;

	for (size_t i = 0; i < process->mapping_count; i++) {
		struct mapping *mapping = &process->mapping[i];
		struct file *file;
		int err;

		if (is_file_known(table, mapping))
			continue;
		if (has_found && slice_is_over(slice))
			return -EAGAIN;
		err = file_table_get(table->files, process, mapping, &file);
		if (err)
			return err;
		has_found = true;
		mapping->file = file ? file->id : PP_FILE_ANONYMOUS;
		mapping->bias = file ? file_bias(file, mapping) : 0;
	}
	return 0;
}

int context_table_publish(struct context_table *table, struct process *process, uint16_t flags)
{
	CLEANUP(range_list_release) struct range_list list = {};
	struct process_tables *tables;
	struct map_set *set = NULL;
	int err = tables_get(process, &tables), full;

	if (err)
		return err;
	err = context_table_find_files(table, process, NULL);
	if (err)
		return err;
	note_unread(table, process, tables);
	err = take_file_references(table, process, tables);
	if (err)
		return err;
	err = list_ranges(table, process, &list);
	if (err)
		return err;
	full = write_set(table, process_user_kept(process), &list, &set);
	/* Counted once a process: it may be published often. */
	table->stats.sets_refused += full && !tables->is_set_refused;
	tables->is_set_refused = full != 0;
	fill_python(table, process, tables);
	tables->context.map_set = set ? set->first : 0;
	tables->context.map_chunks = set ? (uint16_t)set->count : 0;
	if (!++table->next_map_version)
		table->next_map_version = 1;
	tables->context.map_version = table->next_map_version;
	tables->context.flags = flags;
	err = kernel_side_set_context(table->side, process->id, &tables->context);
	set_unref(table, tables->set);
	tables->set = set;
	process->mappings_changed = full != 0; /* no room: retried later */
	return full ? full : err;
}

int context_table_fork(struct context_table *table, const struct process *parent,
		       struct process *child)
{
	const struct process_tables *from = parent->tables;
	struct process_tables *to;
	int err;

	if (!from || child->tables)
		return 0;
	err = tables_get(child, &to);
	if (err)
		return err;
	to->context = from->context;
	to->python = from->python;
	to->unread = from->unread;
	if (to->python.file)
		to->python.file->interpreted++;
	to->set = from->set;
	if (to->set)
		to->set->references++;
	err = take_file_references(table, child, to);
	if (err)
		return err;
	/* Parent and child share the array of mappings until one of them changes it: nothing to
	 * publish. */
	child->mappings_changed =
		parent->mappings_changed || child->mapping != parent->mapping || !to->set;
	/* The kernel side copied the process context at fork; the parent's may have changed
	 * since. */
	return kernel_side_set_context(table->side, child->id, &to->context);
}

void context_table_retire(struct context_table *table, struct process *process)
{
	struct process_tables *tables = process->tables;

	if (!tables)
		return;
	kernel_side_delete_context(table->side, process->id);
	release_files(table, tables);
	set_unref(table, tables->set);
	free(tables->file);
	tables->set = NULL;
	tables->file = NULL;
	tables->file_count = 0;
}

void context_table_release(struct context_table *table, struct process *process)
{
	struct process_tables *tables = process->tables;

	context_table_retire(table, process);
	if (tables)
		set_interpreter(&tables->python, NULL);
	free(process->tables);
	process->tables = NULL;
}

struct process_python *context_table_python(struct process *process)
{
	struct process_tables *tables = process->tables;

	return tables ? &tables->python : NULL;
}

uint16_t context_table_flags(const struct process *process)
{
	const struct process_tables *tables = process->tables;

	return tables ? tables->context.flags : 0;
}

void context_table_get_stats(const struct context_table *table,
			     struct context_table_stats *ret_stats)
{
	*ret_stats = table->stats;
	ret_stats->chunks_used = table->chunks.quota.used;
	ret_stats->chunks_total = table->chunks.quota.total;
}

int process_find_mapping(const struct process *process, uint64_t address,
			 const struct mapping **ret_mapping)
{
	const size_t begun =
		ARRAY_LEADING(process->mapping_count, at, process->mapping[at].start <= address);

	if (!begun || address >= process->mapping[begun - 1].end)
		return -ENOENT;
	*ret_mapping = &process->mapping[begun - 1];
	return 0;
}
