/* SPDX-License-Identifier: BSD-2-Clause */
/* The kernel side, the files and the interpreter's TLS are fakes in this file. */
#include "attach/context_table.h"

#include <cmocka.h>
#include <errno.h>
#include <string.h>

#include "discover/proc_scan.h"
#include "python/python_process.h"

#define CHUNKS 128U
#define FILES 400U
#define CONTEXTS 8U
#define MAX_MAPPINGS 5000U
#define UNWRITTEN 0xeeeeeeeeeeeeeeeeULL /* in chunks */

/* ---- fakes ---- */

struct kernel_side {
	struct pp_map_chunk chunk[CHUNKS];
	struct {
		struct pp_process_id id;
		struct pp_process_context context;
		bool is_set;
	} context[CONTEXTS];
	uint32_t pythons;
	int python_error, resync_error;
	uint32_t file_of[PYTHON_SLOTS]; /* by number */
	bool has_resync[PYTHON_SLOTS];
	unsigned int deleted;
};

static uint64_t bias_of_all; /* 0: each has its own */

struct file_table {
	uint64_t due_ns;
	struct file file[FILES];
	bool is_forgotten; /* the first one */
	unsigned int asked;
};

struct pp_map_chunk *kernel_side_map_chunks(const struct kernel_side *side, uint32_t *ret_count)
{
	*ret_count = CHUNKS;
	return (struct pp_map_chunk *)side->chunk;
}

static struct pp_process_context *context_slot(struct kernel_side *side, struct pp_process_id id,
					       bool create)
{
	for (size_t i = 0; i < CONTEXTS; i++)
		if (side->context[i].is_set && !memcmp(&side->context[i].id, &id, sizeof(id)))
			return &side->context[i].context;
	for (size_t i = 0; create && i < CONTEXTS; i++)
		if (!side->context[i].is_set) {
			side->context[i].is_set = true;
			side->context[i].id = id;
			return &side->context[i].context;
		}
	return NULL;
}

int kernel_side_set_context(struct kernel_side *side, struct pp_process_id id,
			    const struct pp_process_context *context)
{
	*context_slot(side, id, true) = *context;
	return 0;
}

void kernel_side_delete_context(struct kernel_side *side, struct pp_process_id id)
{
	for (size_t i = 0; i < CONTEXTS; i++)
		if (side->context[i].is_set && !memcmp(&side->context[i].id, &id, sizeof(id)))
			side->context[i].is_set = false;
	side->deleted++;
}

int kernel_side_set_python(struct kernel_side *side, uint32_t index, const struct pp_python *python)
{
	assert_true(index < PYTHON_SLOTS);
	if (side->python_error)
		return side->python_error;
	side->file_of[index] = python->file;
	side->pythons++;
	return 0;
}

int kernel_side_set_resync(struct kernel_side *side, uint32_t index, const struct pp_resync *resync)
{
	side->has_resync[index] = resync->agreed;
	return side->resync_error;
}

static uint32_t fake_user;

uint32_t process_user(const struct process *process)
{
	(void)process;
	return fake_user;
}

uint32_t process_user_kept(struct process *process)
{
	return process->user;
}

struct file *file_table_find(const struct file_table *table, uint32_t id)
{
	uint32_t at = id - PP_FILE_FIRST;

	if (!at && table->is_forgotten)
		return NULL;
	return id >= PP_FILE_FIRST && at < FILES ? (struct file *)&table->file[at] : NULL;
}

/* A mapping's inode is its file's number. */
int file_table_get(struct file_table *table, const struct process *process,
		   const struct mapping *mapping, struct file **ret_file)
{
	(void)process;
	table->asked++;
	*ret_file = mapping->key.inode ? &table->file[mapping->key.inode - 1] : NULL;
	return 0;
}

bool file_table_is_due(struct file_table *table, uint64_t now_ns)
{
	return table->due_ns && now_ns >= table->due_ns;
}

uint64_t file_bias(const struct file *file, const struct mapping *mapping)
{
	(void)file;
	return bias_of_all ? bias_of_all : mapping->start - mapping->offset;
}

void python_process_tls(const struct python_info *info, uint64_t bias, bool is_musl,
			struct pp_tls ret_tls[2])
{
	(void)info;
	memset(ret_tls, 0, 2 * sizeof(*ret_tls));
	ret_tls[0] = (struct pp_tls){.mode = PP_TLS_GLOBAL, .address = bias + 0x10};
	ret_tls[1].offset = is_musl;
}

int python_process_tls_read(const struct python_info *info, pid_t pid, uint64_t bias, bool is_musl,
			    struct pp_tls ret_tls[2])
{
	(void)pid;
	python_process_tls(info, bias, is_musl, ret_tls);
	return 0;
}

/* ---- fixture ---- */

struct fixture {
	struct kernel_side side;
	struct file_table files;
	struct context_table *table;
	struct python_info python;
	struct process process, child;
	struct mapping mapping[MAX_MAPPINGS + 1]; /* and one that is none, behind the last */
	size_t mapping_count;
};

static int setup(void **state)
{
	struct fixture *fixture = calloc(1, sizeof(*fixture));

	assert_non_null(fixture);
	for (uint32_t i = 0; i < FILES; i++) {
		fixture->files.file[i].id = PP_FILE_FIRST + i;
		fixture->files.file[i].has_pages = true;
		fixture->files.file[i].page0 = 100 * (i + 1);
	}
	/* What is mapped behind the last mapping concerns nobody. */
	fixture->files.file[FILES - 1].python = &fixture->python;
	fixture->files.file[FILES - 1].is_musl = true;
	fixture->files.file[FILES - 1].unread_ns = 1;
	fixture->mapping[0] = (struct mapping){.file = PP_FILE_FIRST + FILES - 1};
	memset(fixture->side.chunk, 0xee, sizeof(fixture->side.chunk));
	fixture->process.id = (struct pp_process_id){.tgid = 70, .generation = 1};
	fixture->process.mapping = fixture->mapping;
	fixture->child.id = (struct pp_process_id){.tgid = 80, .generation = 2};
	fixture->child.mapping = fixture->mapping;
	assert_int_equal(context_table_new(&fixture->side, &fixture->files, &fixture->table), 0);
	fake_user = 0;
	bias_of_all = 0;
	*state = fixture;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *fixture = *state;

	assert_int_equal(fixture->files.file[FILES - 1].references, 0);
	assert_int_equal(fixture->files.file[FILES - 1].interpreted, 0);
	context_table_release(fixture->table, &fixture->process);
	context_table_release(fixture->table, &fixture->child);
	context_table_free(fixture->table);
	free(fixture);
	return 0;
}

/* file: 1.. as in FILES, 0: anonymous memory. */
static void map(struct fixture *fixture, uint64_t start, uint64_t end, uint64_t offset,
		uint32_t file)
{
	assert_true(fixture->mapping_count < MAX_MAPPINGS);
	fixture->mapping[fixture->mapping_count++] = (struct mapping){
		.start = start,
		.end = end,
		.offset = offset,
		.key = {.inode = file},
		.path = file ? "/lib/f.so" : "",
	};
	fixture->mapping[fixture->mapping_count].file = PP_FILE_FIRST + FILES - 1;
	fixture->process.mapping_count = fixture->child.mapping_count = fixture->mapping_count;
	fixture->process.mappings_changed = true;
}

static const struct pp_process_context *context_of(struct fixture *fixture,
						   const struct process *process)
{
	return context_slot(&fixture->side, process->id, false);
}

/* The range that holds an address, by a linear search: what a walk must find. */
static struct pp_range range_at(struct fixture *fixture, uint64_t address)
{
	const struct pp_process_context *context = context_of(fixture, &fixture->process);
	struct pp_range found = {.file = UINT32_MAX};

	assert_non_null(context);
	assert_int_not_equal(context->map_set, 0);
	for (uint32_t i = 0; i < context->map_chunks * PP_MAP_CHUNK_RANGES; i++) {
		const struct pp_map_chunk *chunk =
			&fixture->side.chunk[context->map_set - 1 + i / PP_MAP_CHUNK_RANGES];

		if (chunk->start[i % PP_MAP_CHUNK_RANGES] <= address)
			found = chunk->range[i % PP_MAP_CHUNK_RANGES];
	}
	return found;
}

static uint32_t file_at(struct fixture *fixture, uint64_t address)
{
	return range_at(fixture, address).file;
}

/* Ranges in use: those whose start is not ~0. */
static uint32_t count_ranges(struct fixture *fixture)
{
	const struct pp_process_context *context = context_of(fixture, &fixture->process);
	uint32_t count = 0;

	for (uint32_t i = 0; i < context->map_chunks * PP_MAP_CHUNK_RANGES; i++)
		count += fixture->side.chunk[context->map_set - 1 + i / PP_MAP_CHUNK_RANGES]
				 .start[i % PP_MAP_CHUNK_RANGES] != UINT64_MAX;
	return count;
}

static uint64_t chunks_used(struct fixture *fixture)
{
	struct context_table_stats stats;

	context_table_get_stats(fixture->table, &stats);
	return stats.chunks_used;
}

#define FILE(number) (PP_FILE_FIRST + (number) - 1)

/* ---- ranges ---- */

/* Each call finds one new file at least, and the next one goes on there. */
static void find_files__goes_on_where_its_slice_ended(void **state)
{
	struct fixture *fixture = *state;
	const struct slice over = {.ends_ns = 0};

	for (uint32_t i = 1; i <= 3; i++)
		map(fixture, i * 0x10000, i * 0x10000 + 0x1000, 0, i);
	for (uint32_t i = 1; i <= 3; i++) {
		assert_int_equal(context_table_find_files(fixture->table, &fixture->process, &over),
				 i < 3 ? -EAGAIN : 0);
		for (uint32_t j = 1; j <= 3; j++)
			assert_int_equal(fixture->process.mapping[j - 1].file,
					 j <= i ? FILE(j) : PP_FILE_NONE);
	}
	assert_int_equal(context_table_find_files(fixture->table, &fixture->process, &over), 0);
}

static void find_files__without_a_slice_finds_all(void **state)
{
	struct fixture *fixture = *state;

	for (uint32_t i = 1; i <= 3; i++)
		map(fixture, i * 0x10000, i * 0x10000 + 0x1000, 0, i);
	assert_int_equal(context_table_find_files(fixture->table, &fixture->process, NULL), 0);
	assert_int_equal(fixture->process.mapping[2].file, FILE(3));
}

static void publish__mappings_and_gaps_become_ranges(void **state)
{
	struct fixture *fixture = *state;

	map(fixture, 0x1000, 0x3000, 0x1000, 1);
	map(fixture, 0x8000, 0x9000, 0x2000, 2);
	assert_int_equal(
		context_table_publish(fixture->table, &fixture->process, PP_CONTEXT_MATCHES), 0);
	assert_false(fixture->process.mappings_changed);
	assert_int_equal(file_at(fixture, 0), PP_FILE_NONE);
	assert_int_equal(file_at(fixture, 0xfff), PP_FILE_NONE);
	assert_int_equal(file_at(fixture, 0x1000), FILE(1));
	assert_int_equal(file_at(fixture, 0x2fff), FILE(1));
	assert_int_equal(file_at(fixture, 0x3000), PP_FILE_NONE);
	assert_int_equal(file_at(fixture, 0x7fff), PP_FILE_NONE);
	assert_int_equal(file_at(fixture, 0x8000), FILE(2));
	assert_int_equal(file_at(fixture, 0x9000), PP_FILE_NONE);
	assert_int_equal(file_at(fixture, UINT64_MAX - 1), PP_FILE_NONE);
	assert_int_equal(range_at(fixture, 0x8000).bias, 0x8000 - 0x2000);
	assert_int_equal(range_at(fixture, 0x8000).page0, 200);
	assert_int_equal(context_of(fixture, &fixture->process)->flags, PP_CONTEXT_MATCHES);
	assert_int_not_equal(context_of(fixture, &fixture->process)->map_version, 0);
}

static void publish__neighbours_that_go_on_are_one_range(void **state)
{
	struct fixture *fixture = *state;

	map(fixture, 0x1000, 0x2000, 0x1000, 1);
	map(fixture, 0x2000, 0x3000, 0x2000, 1); /* the same bias */
	map(fixture, 0x3000, 0x4000, 0x9000, 1); /* another one */
	map(fixture, 0x4000, 0x5000, 0, 0);
	map(fixture, 0x5000, 0x6000, 0, 0);
	assert_int_equal(context_table_publish(fixture->table, &fixture->process, 0), 0);
	/* gap, 1, 1 again, anonymous, gap */
	assert_int_equal(count_ranges(fixture), 5);
	assert_int_equal(range_at(fixture, 0x2fff).bias, 0);
	assert_int_equal(range_at(fixture, 0x3000).bias, 0x3000 - 0x9000);
	assert_int_equal(file_at(fixture, 0x5fff), PP_FILE_ANONYMOUS);
	assert_int_equal(file_at(fixture, 0x6000), PP_FILE_NONE);
}

static void publish__equal_neighbours_with_a_gap_stay_apart(void **state)
{
	struct fixture *fixture = *state;

	map(fixture, 0x1000, 0x2000, 0, 0);
	map(fixture, 0x3000, 0x4000, 0, 0);
	assert_int_equal(context_table_publish(fixture->table, &fixture->process, 0), 0);
	assert_int_equal(file_at(fixture, 0x1fff), PP_FILE_ANONYMOUS);
	assert_int_equal(file_at(fixture, 0x2000), PP_FILE_NONE);
	assert_int_equal(file_at(fixture, 0x3000), PP_FILE_ANONYMOUS);
}

static void publish__file_without_pages_is_anonymous_code(void **state)
{
	struct fixture *fixture = *state;

	fixture->files.file[0].has_pages = false;
	map(fixture, 0x1000, 0x2000, 0, 1);
	assert_int_equal(context_table_publish(fixture->table, &fixture->process, 0), 0);
	assert_int_equal(file_at(fixture, 0x1000), PP_FILE_ANONYMOUS);
}

static void publish__process_without_mappings_is_one_gap(void **state)
{
	struct fixture *fixture = *state;

	assert_int_equal(context_table_publish(fixture->table, &fixture->process, 0), 0);
	assert_int_equal(file_at(fixture, 0x400000), PP_FILE_NONE);
	assert_int_equal(context_of(fixture, &fixture->process)->map_chunks, 1);
	assert_int_equal(count_ranges(fixture), 1);
}

/* Ranges fill a chunk; one more takes another, and nothing is written behind the last. */
static void publish__chunks_are_as_many_as_the_ranges_need(void **state)
{
	struct fixture *fixture = *state;

	/* A gap in front, and one behind each. */
	for (uint32_t i = 1; i <= 3 * PP_MAP_CHUNK_RANGES; i++) {
		const uint32_t ranges = 1 + 2 * i;
		const struct pp_process_context *context;

		map(fixture, 0x2000ULL * i, 0x2000ULL * i + 0x1000, 0, 1);
		assert_int_equal(context_table_publish(fixture->table, &fixture->process, 0), 0);
		context = context_of(fixture, &fixture->process);
		assert_int_equal(context->map_chunks,
				 (ranges + PP_MAP_CHUNK_RANGES - 1) / PP_MAP_CHUNK_RANGES);
		assert_int_equal(count_ranges(fixture), ranges);
		assert_int_equal(fixture->side.chunk[context->map_set - 1].start[0], 0);
		if (i == 1)
			assert_int_equal(fixture->side.chunk[1].start[0], UNWRITTEN);
		context_table_tick(fixture->table);
		context_table_tick(fixture->table);
	}
}

static void publish__many_mappings_take_several_chunks(void **state)
{
	struct fixture *fixture = *state;

	for (uint64_t i = 0; i < 500; i++)
		map(fixture, 0x10000 + i * 0x2000, 0x11000 + i * 0x2000, 0, 1 + (uint32_t)(i & 3));
	assert_int_equal(context_table_publish(fixture->table, &fixture->process, 0), 0);
	/* A gap in front and one behind each: 1,001 ranges. */
	assert_int_equal(context_of(fixture, &fixture->process)->map_chunks, 16);
	assert_int_equal(count_ranges(fixture), 1001);
	for (uint64_t i = 0; i < 500; i++) {
		assert_int_equal(file_at(fixture, 0x10fff + i * 0x2000), FILE(1 + (i & 3)));
		assert_int_equal(file_at(fixture, 0x11000 + i * 0x2000), PP_FILE_NONE);
	}
}

static void publish__what_is_beyond_the_bound_is_a_gap(void **state)
{
	const uint32_t most = PP_MAP_CHUNK_RANGES * PP_MAX_MAP_CHUNKS;
	struct fixture *fixture = *state;

	/* No gaps but the first: range 4,095 would be the last one kept. */
	for (uint64_t i = 0; i < most + 100; i++)
		map(fixture, 0x10000 + i * 0x1000, 0x11000 + i * 0x1000, 0, 1 + (uint32_t)(i & 1));
	assert_int_equal(context_table_publish(fixture->table, &fixture->process, 0), 0);
	assert_int_equal(context_of(fixture, &fixture->process)->map_chunks, PP_MAX_MAP_CHUNKS);
	assert_int_equal(file_at(fixture, 0x10000), FILE(1));
	assert_int_equal(file_at(fixture, 0x10000 + (most - 3) * 0x1000ULL), FILE(2));
	assert_int_equal(file_at(fixture, 0x10000 + (most - 2) * 0x1000ULL), PP_FILE_NONE);
	assert_int_equal(file_at(fixture, 0x10000 + (most + 50) * 0x1000ULL), PP_FILE_NONE);
	assert_int_equal(file_at(fixture, UINT64_MAX - 1), PP_FILE_NONE);
}

static void publish__known_files_are_not_asked_again(void **state)
{
	struct fixture *fixture = *state;

	map(fixture, 0x1000, 0x2000, 0, 1);
	map(fixture, 0x3000, 0x4000, 0, 0);
	assert_int_equal(context_table_publish(fixture->table, &fixture->process, 0), 0);
	assert_int_equal(fixture->files.asked, 2);
	map(fixture, 0x8000, 0x9000, 0, 2);
	assert_int_equal(context_table_publish(fixture->table, &fixture->process, 0), 0);
	assert_int_equal(fixture->files.asked, 3);
}

/* ---- runs of chunks ---- */

static void chunks__replaced_run_is_reused_after_two_ticks(void **state)
{
	struct fixture *fixture = *state;
	uint32_t first;

	map(fixture, 0x1000, 0x2000, 0, 1);
	assert_int_equal(context_table_publish(fixture->table, &fixture->process, 0), 0);
	first = context_of(fixture, &fixture->process)->map_set;
	assert_int_equal(context_table_publish(fixture->table, &fixture->process, 0), 0);
	assert_int_not_equal(context_of(fixture, &fixture->process)->map_set, first);
	/* A walk may still read the old one. */
	assert_int_equal(chunks_used(fixture), 2);
	assert_int_equal(fixture->side.chunk[first - 1].start[1], 0x1000);
	context_table_tick(fixture->table);
	assert_int_equal(chunks_used(fixture), 2);
	context_table_tick(fixture->table);
	assert_int_equal(chunks_used(fixture), 1);
}

static void chunks__each_set_has_its_own_version(void **state)
{
	struct fixture *fixture = *state;
	uint32_t first;

	assert_int_equal(context_table_publish(fixture->table, &fixture->process, 0), 0);
	first = context_of(fixture, &fixture->process)->map_version;
	assert_int_equal(context_table_publish(fixture->table, &fixture->process, 0), 0);
	assert_int_not_equal(context_of(fixture, &fixture->process)->map_version, first);
}

static void chunks__publishing_for_ever_needs_no_more_room(void **state)
{
	struct fixture *fixture = *state;

	for (uint64_t i = 0; i < 400; i++)
		map(fixture, 0x10000 + i * 0x2000, 0x11000 + i * 0x2000, 0, 1);
	for (int i = 0; i < 1000; i++) {
		assert_int_equal(context_table_publish(fixture->table, &fixture->process, 0), 0);
		context_table_tick(fixture->table);
	}
	context_table_tick(fixture->table);
	context_table_tick(fixture->table);
	assert_int_equal(chunks_used(fixture), 13); /* 801 ranges */
}

/* Sets of several sizes come and go, through the end of the table and from its start. */
static void chunks__sets_never_overlap(void **state)
{
	enum { PROCESSES = 6 };
	struct fixture *fixture = *state;
	struct process process[PROCESSES] = {0};
	uint32_t number = 1;

	for (uint64_t i = 0; i < 700; i++)
		map(fixture, 0x10000 + i * 0x2000, 0x11000 + i * 0x2000, 0, 1);
	for (uint32_t i = 0; i < PROCESSES; i++) {
		process[i].id.tgid = 100 + i;
		process[i].mapping = fixture->mapping;
	}
	for (unsigned int round = 0; round < 500; round++) {
		struct process *one = &process[round % PROCESSES];
		bool is_taken[CHUNKS] = {false};

		number = number * 1103515245 + 12345;
		one->mapping_count = 1 + (number >> 16) % 500;
		fixture->mapping[one->mapping_count].file = FILE(1);
		assert_int_equal(context_table_publish(fixture->table, one, 0), 0);
		for (uint32_t i = 0; i < PROCESSES; i++) {
			const struct pp_process_context *context = context_of(fixture, &process[i]);

			for (uint32_t k = 0; context && k < context->map_chunks; k++) {
				const uint32_t at = context->map_set - 1 + k;

				assert_true(at < CHUNKS);
				assert_false(is_taken[at]);
				is_taken[at] = true;
			}
		}
		context_table_tick(fixture->table);
		context_table_tick(fixture->table);
	}
	for (uint32_t i = 0; i < PROCESSES; i++)
		context_table_release(fixture->table, &process[i]);
	context_table_tick(fixture->table);
	context_table_tick(fixture->table);
	assert_int_equal(chunks_used(fixture), 0);
	assert_int_equal(context_table_sets_quota(fixture->table)->used, 0);
}

/* As many chunks are free as are needed, but not one behind the other. */
static void chunks__room_in_pieces_is_no_room(void **state)
{
	/* Of chunks: two of 10 remain between holes of 32, 32 and 44. */
	static const uint32_t chunks[] = {32, 10, 32, 10, 44};
	struct fixture *fixture = *state;
	struct process process[5] = {0};
	const struct user_quota *quota = context_table_sets_quota(fixture->table);

	for (uint64_t i = 0; i < 1600; i++)
		map(fixture, 0x10000 + i * 0x2000, 0x11000 + i * 0x2000, 0, 1);
	for (uint32_t i = 0; i < 5; i++) {
		process[i].id.tgid = 100 + i;
		process[i].mapping = fixture->mapping;
		process[i].mapping_count = chunks[i] * PP_MAP_CHUNK_RANGES / 2 - 1;
		assert_int_equal(context_table_publish(fixture->table, &process[i], 0), 0);
		assert_int_equal(context_of(fixture, &process[i])->map_chunks, chunks[i]);
	}
	for (uint32_t i = 0; i < 5; i += 2)
		context_table_release(fixture->table, &process[i]);
	context_table_tick(fixture->table);
	context_table_tick(fixture->table);
	assert_int_equal(quota->used, 20);
	assert_int_equal(context_table_publish(fixture->table, &fixture->process, 0), -ENOSPC);
	assert_true(fixture->process.mappings_changed);
	assert_int_equal(quota->used, 20);
	assert_int_equal(quota->refused, 1);
	/* The largest hole is found. */
	fixture->process.mapping_count = 44 * PP_MAP_CHUNK_RANGES / 2 - 1;
	assert_int_equal(context_table_publish(fixture->table, &fixture->process, 0), 0);
	assert_int_equal(quota->used, 64);
	context_table_release(fixture->table, &process[1]);
	context_table_release(fixture->table, &process[3]);
}

static void chunks__no_room_leaves_the_process_without_a_set(void **state)
{
	struct fixture *fixture = *state;
	struct context_table_stats stats;

	for (uint64_t i = 0; i < 1500; i++)
		map(fixture, 0x10000 + i * 0x2000, 0x11000 + i * 0x2000, 0, 1);
	/* 47 chunks each: two fit into 128, three do not. */
	assert_int_equal(context_table_publish(fixture->table, &fixture->process, 0), 0);
	assert_int_equal(context_table_publish(fixture->table, &fixture->process, 0), 0);
	assert_int_equal(context_table_publish(fixture->table, &fixture->process, 0), -ENOSPC);
	assert_int_equal(context_of(fixture, &fixture->process)->map_set, 0);
	assert_int_equal(context_of(fixture, &fixture->process)->map_chunks, 0);
	/* It is counted once. */
	assert_int_equal(context_table_publish(fixture->table, &fixture->process, 0), -ENOSPC);
	context_table_get_stats(fixture->table, &stats);
	assert_int_equal(stats.sets_refused, 1);
	context_table_tick(fixture->table);
	context_table_tick(fixture->table);
	assert_int_equal(chunks_used(fixture), 0);
	assert_int_equal(context_table_publish(fixture->table, &fixture->process, 0), 0);
	assert_int_equal(file_at(fixture, 0x10000), FILE(1));
}

/* One user takes all that he can get; the next user's programs have all of their mappings, and what
 * the first one gives back can be taken again. */
static void chunks__users_excess_is_that_users_loss(void **state)
{
	struct fixture *fixture = *state;
	struct process greedy[4] = {}, other = {.id = {.tgid = 99, .generation = 1}, .user = 1001};
	struct context_table_stats stats;
	uint32_t uid;
	int refused = 0;

	for (uint64_t i = 0; i < 640; i++)
		map(fixture, 0x10000 + i * 0x2000, 0x11000 + i * 0x2000, 0, 1);
	for (uint32_t i = 0; i < ARRAY_SIZE(greedy); i++) {
		greedy[i] = (struct process){.id = {.tgid = 100 + i}, .user = 1000};
		greedy[i].mapping = fixture->mapping;
		greedy[i].mapping_count = fixture->mapping_count; /* 21 chunks */
		for (int k = 0; k < 3; k++)			  /* each try counts once */
			refused += context_table_publish(fixture->table, &greedy[i], 0) == -EDQUOT;
		context_table_tick(fixture->table);
		context_table_tick(fixture->table);
	}
	assert_in_range(chunks_used(fixture), 1, CHUNKS / 2);
	assert_true(refused > 1);
	context_table_get_stats(fixture->table, &stats);
	assert_in_range(stats.sets_refused, 1, ARRAY_SIZE(greedy));
	assert_true(user_quota_tell(context_table_sets_quota(fixture->table), &uid));
	assert_int_equal(uid, 1000);
	other.mapping = fixture->mapping;
	other.mapping_count = fixture->mapping_count;
	assert_int_equal(context_table_publish(fixture->table, &other, 0), 0);
	assert_int_not_equal(context_of(fixture, &other)->map_set, 0);
	for (uint32_t i = 0; i < ARRAY_SIZE(greedy); i++)
		context_table_release(fixture->table, &greedy[i]);
	context_table_release(fixture->table, &other);
	context_table_tick(fixture->table);
	context_table_tick(fixture->table);
	assert_int_equal(chunks_used(fixture), 0);
	assert_int_equal(context_table_sets_quota(fixture->table)->used, 0);
}

/* ---- lives ---- */

static void fork__child_shares_the_set_until_both_have_gone(void **state)
{
	struct fixture *fixture = *state;
	uint32_t set;

	map(fixture, 0x1000, 0x2000, 0, 1);
	assert_int_equal(
		context_table_publish(fixture->table, &fixture->process, PP_CONTEXT_MATCHES), 0);
	set = context_of(fixture, &fixture->process)->map_set;
	assert_int_equal(context_table_fork(fixture->table, &fixture->process, &fixture->child), 0);
	assert_int_equal(context_of(fixture, &fixture->child)->map_set, set);
	assert_int_equal(context_table_flags(&fixture->child), PP_CONTEXT_MATCHES);
	assert_int_equal(chunks_used(fixture), 1);
	assert_int_equal(fixture->files.file[0].references, 2);

	context_table_release(fixture->table, &fixture->process);
	context_table_tick(fixture->table);
	context_table_tick(fixture->table);
	assert_int_equal(chunks_used(fixture), 1);
	assert_int_equal(context_of(fixture, &fixture->child)->map_set, set);
	assert_null(context_of(fixture, &fixture->process));
	context_table_release(fixture->table, &fixture->child);
	assert_int_equal(fixture->files.file[0].references, 0);
	context_table_tick(fixture->table);
	context_table_tick(fixture->table);
	assert_int_equal(chunks_used(fixture), 0);
}

static void fork__child_that_maps_something_gets_its_own_set(void **state)
{
	struct fixture *fixture = *state;
	uint32_t set;

	map(fixture, 0x1000, 0x2000, 0, 1);
	assert_int_equal(context_table_publish(fixture->table, &fixture->process, 0), 0);
	set = context_of(fixture, &fixture->process)->map_set;
	assert_int_equal(context_table_fork(fixture->table, &fixture->process, &fixture->child), 0);
	assert_int_equal(context_table_publish(fixture->table, &fixture->child, 0), 0);
	assert_int_not_equal(context_of(fixture, &fixture->child)->map_set, set);
	assert_int_equal(context_of(fixture, &fixture->process)->map_set, set);
	context_table_tick(fixture->table);
	context_table_tick(fixture->table);
	assert_int_equal(chunks_used(fixture), 2);
	assert_int_equal(fixture->files.file[0].references, 2);
}

/* The child's mappings are to be published where they are not those that the parent's set has. */
static void fork__child_is_published_where_the_set_is_not_its_own(void **state)
{
	struct fixture *fixture = *state;
	static struct mapping own[1];

	map(fixture, 0x1000, 0x2000, 0, 1);
	assert_int_equal(context_table_publish(fixture->table, &fixture->process, 0), 0);
	fixture->child.mappings_changed = true;
	assert_int_equal(context_table_fork(fixture->table, &fixture->process, &fixture->child), 0);
	assert_false(fixture->child.mappings_changed);
	context_table_release(fixture->table, &fixture->child);
	fixture->process.mappings_changed = true;
	assert_int_equal(context_table_fork(fixture->table, &fixture->process, &fixture->child), 0);
	assert_true(fixture->child.mappings_changed);
	context_table_release(fixture->table, &fixture->child);
	fixture->process.mappings_changed = fixture->child.mappings_changed = false;
	own[0] = fixture->mapping[0];
	fixture->child.mapping = own;
	assert_int_equal(context_table_fork(fixture->table, &fixture->process, &fixture->child), 0);
	assert_true(fixture->child.mappings_changed);
	context_table_release(fixture->table, &fixture->child);
	/* A parent that has ended has no set. */
	fixture->child.mapping = fixture->mapping;
	fixture->child.mappings_changed = false;
	context_table_retire(fixture->table, &fixture->process);
	assert_int_equal(context_table_fork(fixture->table, &fixture->process, &fixture->child), 0);
	assert_true(fixture->child.mappings_changed);
}

static void fork__files_are_opened_by_the_last_process(void **state)
{
	struct fixture *fixture = *state;

	map(fixture, 0x1000, 0x2000, 0, 1);
	map(fixture, 0x3000, 0x4000, 0, 2);
	assert_int_equal(context_table_publish(fixture->table, &fixture->process, 0), 0);
	assert_int_equal(fixture->files.file[1].last_place.tgid, 70);
	assert_int_equal(context_table_fork(fixture->table, &fixture->process, &fixture->child), 0);
	assert_int_equal(fixture->files.file[0].last_place.tgid, 80);
	assert_int_equal(fixture->files.file[1].last_place.tgid, 80);
}

static void flags__are_none_before_the_first_publication(void **state)
{
	struct fixture *fixture = *state;

	assert_int_equal(context_table_flags(&fixture->process), 0);
	assert_int_equal(
		context_table_publish(fixture->table, &fixture->process, PP_CONTEXT_MATCHES), 0);
	assert_int_equal(context_table_flags(&fixture->process), PP_CONTEXT_MATCHES);
}

static void find_files__forgotten_file_is_asked_for_again(void **state)
{
	struct fixture *fixture = *state;

	map(fixture, 0x1000, 0x2000, 0, 1);
	map(fixture, 0x3000, 0x4000, 0x1000, 0);
	assert_int_equal(context_table_find_files(fixture->table, &fixture->process, NULL), 0);
	assert_int_equal(fixture->mapping[0].file, PP_FILE_FIRST);
	assert_int_equal(fixture->mapping[1].file, PP_FILE_ANONYMOUS);
	assert_int_equal(fixture->mapping[1].bias, 0);
	assert_int_equal(fixture->files.asked, 2);
	fixture->files.is_forgotten = true;
	assert_int_equal(context_table_find_files(fixture->table, &fixture->process, NULL), 0);
	assert_int_equal(fixture->files.asked, 3);
	fixture->files.is_forgotten = false;
}

static void fork__of_a_process_that_was_never_published_is_nothing(void **state)
{
	struct fixture *fixture = *state;

	assert_int_equal(context_table_fork(fixture->table, &fixture->process, &fixture->child), 0);
	assert_null(fixture->child.tables);
	assert_null(context_table_python(&fixture->child));
}

static void release__gives_back_image_files_and_tables(void **state)
{
	struct fixture *fixture = *state;

	map(fixture, 0x1000, 0x2000, 0, 1);
	map(fixture, 0x3000, 0x4000, 0x1000, 1);
	assert_int_equal(context_table_publish(fixture->table, &fixture->process, 0), 0);
	assert_int_equal(fixture->files.file[0].references, 2);
	context_table_release(fixture->table, &fixture->process);
	assert_int_equal(fixture->files.file[0].references, 0);
	assert_int_not_equal(fixture->files.file[0].unused_since_ns, 0);
	assert_null(fixture->process.tables);
	assert_null(context_of(fixture, &fixture->process));
	context_table_release(fixture->table, &fixture->process); /* twice is fine */
}

static void retire__dead_process_still_knows_its_interpreter(void **state)
{
	struct fixture *fixture = *state;
	struct process_python *python;

	fixture->files.file[0].python = &fixture->python;
	map(fixture, 0x1000, 0x2000, 0, 1);
	assert_int_equal(context_table_publish(fixture->table, &fixture->process, 0), 0);
	context_table_retire(fixture->table, &fixture->process);
	assert_null(context_of(fixture, &fixture->process));
	assert_int_equal(fixture->files.file[0].references, 0);
	python = context_table_python(&fixture->process);
	assert_non_null(python);
	assert_ptr_equal(python->file, &fixture->files.file[0]);
	context_table_release(fixture->table, &fixture->process);
	assert_null(context_table_python(&fixture->process));
	assert_int_equal(fixture->files.file[0].references, 0);
}

/* The child was late at a file: it is asked about again, and no other is. */
static void ask_again__brings_a_file_that_was_not_examined(void **state)
{
	struct fixture *fixture = *state;
	struct file *late = &fixture->files.file[0];

	map(fixture, 0x1000, 0x2000, 0, 1);
	map(fixture, 0x3000, 0x4000, 0, 2);
	late->unread_ns = 5;
	assert_false(context_table_ask_again(fixture->table, &fixture->process, NULL));
	assert_int_equal(context_table_publish(fixture->table, &fixture->process, 0), 0);
	assert_int_equal(fixture->files.asked, 2);
	/* It has no answer yet, and publishing does not ask. */
	assert_false(context_table_ask_again(fixture->table, &fixture->process, NULL));
	assert_int_equal(fixture->files.asked, 3);
	assert_int_equal(context_table_publish(fixture->table, &fixture->process, 0), 0);
	assert_int_equal(fixture->files.asked, 3);
	/* Now it has: where it lies in memory is known, too. */
	late->unread_ns = 0;
	bias_of_all = 0x700;
	assert_true(context_table_ask_again(fixture->table, &fixture->process, NULL));
	assert_int_equal(context_table_publish(fixture->table, &fixture->process, 0), 0);
	assert_int_equal(fixture->mapping[0].bias, 0x700);
	assert_false(context_table_ask_again(fixture->table, &fixture->process, NULL));
	assert_int_equal(fixture->files.asked, 3);
}

/* Of several files each that has an answer counts. */
static void ask_again__looks_at_all_files(void **state)
{
	struct fixture *fixture = *state;

	for (uint32_t i = 1; i <= 3; i++) {
		map(fixture, i * 0x10000, i * 0x10000 + 0x1000, 0, i);
		fixture->files.file[i - 1].unread_ns = 5;
	}
	assert_int_equal(context_table_publish(fixture->table, &fixture->process, 0), 0);
	assert_false(context_table_ask_again(fixture->table, &fixture->process, NULL));
	fixture->files.file[2].unread_ns = 0;
	assert_true(context_table_ask_again(fixture->table, &fixture->process, NULL));
	bias_of_all = 0x700;
	assert_int_equal(context_table_publish(fixture->table, &fixture->process, 0), 0);
	assert_int_equal(fixture->mapping[2].bias, 0x700);
	assert_false(context_table_ask_again(fixture->table, &fixture->process, NULL));
	fixture->files.file[0].unread_ns = fixture->files.file[1].unread_ns = 0;
	assert_true(context_table_ask_again(fixture->table, &fixture->process, NULL));
}

static void ask_again__is_for_files_that_are_due(void **state)
{
	struct fixture *fixture = *state;

	fixture->files.due_ns = 100;
	assert_false(context_table_is_due(fixture->table, 99));
	assert_true(context_table_is_due(fixture->table, 100));
}

/* A child that was forked meanwhile waits for the same files. */
static void ask_again__child_of_a_fork_has_its_parents_files(void **state)
{
	struct fixture *fixture = *state;

	map(fixture, 0x1000, 0x2000, 0, 1);
	fixture->files.file[0].unread_ns = 5;
	assert_int_equal(context_table_publish(fixture->table, &fixture->process, 0), 0);
	assert_int_equal(context_table_fork(fixture->table, &fixture->process, &fixture->child), 0);
	fixture->files.file[0].unread_ns = 0;
	assert_true(context_table_ask_again(fixture->table, &fixture->child, NULL));
}

/* A file that stays mapped must not look unused in between. */
static void publish__file_in_old_and_new_mappings_is_never_unused(void **state)
{
	struct fixture *fixture = *state;

	map(fixture, 0x1000, 0x2000, 0, 1);
	assert_int_equal(context_table_publish(fixture->table, &fixture->process, 0), 0);
	assert_int_equal(context_table_publish(fixture->table, &fixture->process, 0), 0);
	assert_int_equal(fixture->files.file[0].references, 1);
	assert_int_equal(fixture->files.file[0].unused_since_ns, 0);
}

/* ---- interpreters ---- */

static void python__first_interpreter_gets_a_slot_once(void **state)
{
	struct fixture *fixture = *state;
	const struct pp_process_context *context;

	fixture->files.file[1].python = &fixture->python;
	map(fixture, 0x1000, 0x2000, 0, 1);
	map(fixture, 0x8000, 0x9000, 0x1000, 2);
	assert_int_equal(context_table_publish(fixture->table, &fixture->process, 0), 0);
	context = context_of(fixture, &fixture->process);
	assert_int_equal(context->python, 1);
	assert_ptr_equal(context_table_interpreter(fixture->table, 1), &fixture->files.file[1]);
	assert_null(context_table_interpreter(fixture->table, 0));
	assert_null(context_table_interpreter(fixture->table, 2));
	assert_int_equal(context->python_bias, 0x7000);
	assert_int_equal(context->tls[0].address, 0x7010);
	assert_int_not_equal(context->code_space, 0);
	assert_int_equal(fixture->python.bpf.file, FILE(2));
	assert_int_equal(context_table_publish(fixture->table, &fixture->child, 0), 0);
	assert_int_equal(fixture->side.pythons, 1);
	assert_int_equal(context_of(fixture, &fixture->child)->python, 1);
	/* Not by fork: their code objects are not each other's. */
	assert_int_not_equal(context_of(fixture, &fixture->child)->code_space,
			     context_of(fixture, &fixture->process)->code_space);
}

static void python__number_is_given_back_where_the_kernel_has_no_room(void **state)
{
	struct fixture *fixture = *state;
	const struct user_quota *quota = context_table_python_quota(fixture->table);

	fixture->files.file[0].python = fixture->files.file[1].python = &fixture->python;
	map(fixture, 0x1000, 0x2000, 0, 1);
	for (unsigned int i = 0; i < 2; i++) {
		fixture->side.python_error = i ? 0 : -E2BIG;
		fixture->side.resync_error = i ? -E2BIG : 0;
		assert_int_equal(context_table_publish(fixture->table, &fixture->process, 0), 0);
		assert_int_equal(context_of(fixture, &fixture->process)->python, 0);
		assert_null(context_table_interpreter(fixture->table, 1));
		assert_int_equal(quota->used, 0);
	}
	fixture->side.resync_error = 0;
	/* Another one gets it then. */
	fixture->mapping_count = 0;
	map(fixture, 0x1000, 0x2000, 0, 2);
	assert_int_equal(context_table_publish(fixture->table, &fixture->process, 0), 0);
	assert_ptr_equal(context_table_interpreter(fixture->table, 1), &fixture->files.file[1]);
	assert_ptr_equal(context_table_python_info(fixture->table, 1), &fixture->python);
	assert_null(context_table_python_info(fixture->table, 2));
	assert_int_equal(quota->used, 1);
}

static void python__musl_is_what_any_mapping_is(void **state)
{
	struct fixture *fixture = *state;

	fixture->files.file[0].is_musl = true;
	fixture->files.file[1].python = &fixture->python;
	map(fixture, 0x3000, 0x4000, 0, 2);
	assert_int_equal(context_table_publish(fixture->table, &fixture->process, 0), 0);
	assert_int_equal(context_of(fixture, &fixture->process)->tls[1].offset, false);
	fixture->mapping_count = 0;
	map(fixture, 0x1000, 0x2000, 0, 1);
	map(fixture, 0x3000, 0x4000, 0, 2);
	assert_int_equal(context_table_publish(fixture->table, &fixture->process, 0), 0);
	assert_int_equal(context_of(fixture, &fixture->process)->tls[1].offset, true);
	assert_true(context_table_python(&fixture->process)->is_musl);
}

static void python__last_reason_of_a_file_without_frames_is_told(void **state)
{
	struct fixture *fixture = *state;

	fixture->files.file[0].python_reason = "too old";
	fixture->files.file[2].python_reason = "too new";
	map(fixture, 0x1000, 0x2000, 0, 1);
	map(fixture, 0x3000, 0x4000, 0, 2);
	assert_int_equal(context_table_publish(fixture->table, &fixture->process, 0), 0);
	assert_string_equal(context_table_python(&fixture->process)->reason, "too old");
	/* What is mapped behind an interpreter that can be read does not matter. */
	fixture->files.file[1].python = &fixture->python;
	map(fixture, 0x5000, 0x6000, 0, 3);
	assert_int_equal(context_table_publish(fixture->table, &fixture->process, 0), 0);
	assert_null(context_table_python(&fixture->process)->reason);
}

static void python__interpreter_is_one_process_interpreter_once(void **state)
{
	struct fixture *fixture = *state;

	fixture->files.file[0].python = &fixture->python;
	map(fixture, 0x1000, 0x2000, 0, 1);
	for (unsigned int i = 0; i < 3; i++) {
		assert_int_equal(context_table_publish(fixture->table, &fixture->process, 0), 0);
		assert_int_equal(fixture->files.file[0].interpreted, 1);
		context_table_python(&fixture->process)->failed_tests = 2;
	}
	assert_int_equal(context_table_python(&fixture->process)->failed_tests, 2);
	context_table_release(fixture->table, &fixture->process);
	assert_int_equal(fixture->files.file[0].interpreted, 0);
}

static void python__fork_shares_the_code_space(void **state)
{
	struct fixture *fixture = *state;

	fixture->files.file[0].python = &fixture->python;
	map(fixture, 0x1000, 0x2000, 0, 1);
	assert_int_equal(context_table_publish(fixture->table, &fixture->process, 0), 0);
	assert_int_equal(context_table_fork(fixture->table, &fixture->process, &fixture->child), 0);
	assert_int_equal(context_table_publish(fixture->table, &fixture->child, 0), 0);
	assert_int_equal(context_of(fixture, &fixture->child)->code_space,
			 context_of(fixture, &fixture->process)->code_space);
}

static void python__reason_of_an_unreadable_one_is_kept(void **state)
{
	struct fixture *fixture = *state;

	fixture->files.file[0].python_reason = "too old";
	map(fixture, 0x1000, 0x2000, 0, 1);
	assert_int_equal(context_table_publish(fixture->table, &fixture->process, 0), 0);
	assert_string_equal(context_table_python(&fixture->process)->reason, "too old");
	assert_int_equal(context_of(fixture, &fixture->process)->python, 0);
	/* One that can be read is mapped later. */
	fixture->files.file[1].python = &fixture->python;
	map(fixture, 0x8000, 0x9000, 0, 2);
	assert_int_equal(context_table_publish(fixture->table, &fixture->process, 0), 0);
	assert_null(context_table_python(&fixture->process)->reason);
	assert_int_equal(context_of(fixture, &fixture->process)->python, 1);
}

/* The program and its loader are mapped first, libpython a moment later. */
static void python__interpreter_that_comes_later_is_still_to_be_checked(void **state)
{
	struct fixture *fixture = *state;

	map(fixture, 0x1000, 0x2000, 0, 1);
	assert_int_equal(context_table_publish(fixture->table, &fixture->process, 0), 0);
	context_table_python(&fixture->process)->is_checked = true;
	assert_int_equal(context_table_publish(fixture->table, &fixture->process, 0), 0);
	assert_true(context_table_python(&fixture->process)->is_checked);
	fixture->files.file[1].python = &fixture->python;
	map(fixture, 0x8000, 0x9000, 0, 2);
	assert_int_equal(context_table_publish(fixture->table, &fixture->process, 0), 0);
	assert_false(context_table_python(&fixture->process)->is_checked);
}

static void python__what_the_self_test_said_survives_new_mappings(void **state)
{
	struct fixture *fixture = *state;

	fixture->files.file[0].python = &fixture->python;
	map(fixture, 0x1000, 0x2000, 0, 1);
	assert_int_equal(context_table_publish(fixture->table, &fixture->process, 0), 0);
	context_table_python(&fixture->process)->is_checked = true;
	context_table_python(&fixture->process)->reason = "the self-test failed";
	map(fixture, 0x8000, 0x9000, 0, 2);
	assert_int_equal(context_table_publish(fixture->table, &fixture->process, 0), 0);
	assert_true(context_table_python(&fixture->process)->is_checked);
	assert_string_equal(context_table_python(&fixture->process)->reason,
			    "the self-test failed");
}

static void python__refused_process_has_no_interpreter_any_more(void **state)
{
	struct fixture *fixture = *state;
	struct process_python *python;

	fixture->files.file[0].python = &fixture->python;
	map(fixture, 0x1000, 0x2000, 0, 1);
	assert_int_equal(context_table_publish(fixture->table, &fixture->process, 0), 0);
	python = context_table_python(&fixture->process);
	python->is_checked = true;
	python->is_refused = true;
	python->reason = "the self-test failed";
	for (int i = 0; i < 2; i++) {
		assert_int_equal(context_table_publish(fixture->table, &fixture->process, 0), 0);
		assert_int_equal(context_of(fixture, &fixture->process)->python, 0);
		assert_true(python->is_checked);
		assert_string_equal(python->reason, "the self-test failed");
	}
}

/* A short program maps one interpreter file.  Returns whether it has Python frames. */
static bool run_python(struct fixture *fixture, uint32_t file)
{
	bool has_frames;

	fixture->files.file[file - 1].python = &fixture->python;
	fixture->mapping_count = 0;
	map(fixture, 0x1000, 0x2000, 0, file);
	assert_int_equal(context_table_publish(fixture->table, &fixture->process, 0), 0);
	has_frames = context_of(fixture, &fixture->process)->python != 0;
	context_table_release(fixture->table, &fixture->process);
	context_table_tick(fixture->table);
	return has_frames;
}

static void end_epochs(struct fixture *fixture, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		context_table_end_epoch(fixture->table);
}

static void numbers__of_files_that_are_gone_are_used_again_after_a_rest(void **state)
{
	struct fixture *fixture = *state;
	struct context_table_stats stats;

	for (uint32_t i = 1; i <= PYTHON_SLOTS; i++)
		assert_true(run_python(fixture, i));
	assert_ptr_equal(context_table_interpreter(fixture->table, PYTHON_SLOTS),
			 &fixture->files.file[PYTHON_SLOTS - 1]);
	assert_null(context_table_interpreter(fixture->table, PYTHON_SLOTS + 1));
	assert_false(run_python(fixture, 300));
	context_table_get_stats(fixture->table, &stats);
	assert_int_equal(stats.pythons_refused, 1);
	assert_non_null(fixture->files.file[299].python_reason);
	assert_false(run_python(fixture, 300));
	context_table_get_stats(fixture->table, &stats);
	assert_int_equal(stats.pythons_refused, 1); /* a file, however often it is mapped */
	fixture->side.has_resync[0] = true;
	context_table_tidy(fixture->table, UINT64_MAX);
	/* Records and stacks may still have the numbers. */
	assert_null(context_table_interpreter(fixture->table, 1));
	assert_int_equal(fixture->files.file[0].python_index, 0);
	end_epochs(fixture, FILE_SLOT_REST_EPOCHS - 1);
	assert_false(run_python(fixture, 300));
	end_epochs(fixture, 1);
	/* All of them. */
	assert_int_equal(context_table_python_quota(fixture->table)->used, 0);
	assert_true(run_python(fixture, 300));
	assert_null(fixture->files.file[299].python_reason);
	assert_int_equal(fixture->side.file_of[0], FILE(300));
	assert_false(fixture->side.has_resync[0]); /* that of another interpreter */
	assert_ptr_equal(context_table_interpreter(fixture->table, 1), &fixture->files.file[299]);
}

static void numbers__stay_while_a_process_is_known(void **state)
{
	struct fixture *fixture = *state;

	fixture->files.file[0].python = &fixture->python;
	map(fixture, 0x1000, 0x2000, 0, 1);
	assert_int_equal(context_table_publish(fixture->table, &fixture->process, 0), 0);
	assert_int_equal(context_table_fork(fixture->table, &fixture->process, &fixture->child), 0);
	context_table_tidy(fixture->table, UINT64_MAX);
	assert_int_equal(fixture->files.file[0].python_index, 1);
	context_table_release(fixture->table, &fixture->process);
	context_table_retire(fixture->table, &fixture->child);
	context_table_tidy(fixture->table, UINT64_MAX);
	assert_int_equal(fixture->files.file[0].python_index, 1);
	assert_ptr_equal(context_table_python(&fixture->child)->file, &fixture->files.file[0]);
	context_table_release(fixture->table, &fixture->child);
	assert_int_equal(fixture->files.file[0].interpreted, 0);
	context_table_tidy(fixture->table, fixture->files.file[0].unused_since_ns); /* not before */
	assert_int_equal(fixture->files.file[0].python_index, 1);
	context_table_tidy(fixture->table, UINT64_MAX);
	assert_int_equal(fixture->files.file[0].python_index, 0);
}

static void numbers__user_leaves_some_to_others(void **state)
{
	struct fixture *fixture = *state;
	uint32_t own = 0;

	fake_user = 1000;
	while (run_python(fixture, own + 1))
		own++;
	assert_int_equal(own, PYTHON_SLOTS / 2);
	/* The file that was refused serves another user. */
	fake_user = 1001;
	assert_true(run_python(fixture, own + 1));
	for (uint32_t i = 0; i < 20; i++)
		assert_true(run_python(fixture, 300 + i));
	fake_user = 1000;
	assert_false(run_python(fixture, 350));
}

/* ---- mappings by address ---- */

static void find_mapping__ends_are_exclusive(void **state)
{
	struct fixture *fixture = *state;
	const struct mapping *found = NULL;

	map(fixture, 0x1000, 0x2000, 0, 1);
	map(fixture, 0x2000, 0x3000, 0, 2);
	map(fixture, 0x8000, 0x9000, 0, 3);
	assert_int_equal(process_find_mapping(&fixture->process, 0xfff, &found), -ENOENT);
	assert_int_equal(process_find_mapping(&fixture->process, 0x3000, &found), -ENOENT);
	assert_int_equal(process_find_mapping(&fixture->process, 0x9000, &found), -ENOENT);
	assert_null(found);
	assert_int_equal(process_find_mapping(&fixture->process, 0x1fff, &found), 0);
	assert_int_equal(found->key.inode, 1);
	assert_int_equal(process_find_mapping(&fixture->process, 0x2000, &found), 0);
	assert_int_equal(found->key.inode, 2);
	assert_int_equal(process_find_mapping(&fixture->process, 0x8fff, &found), 0);
	assert_int_equal(found->key.inode, 3);
}

#define test(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		test(find_files__goes_on_where_its_slice_ended),
		test(find_files__without_a_slice_finds_all),
		test(publish__mappings_and_gaps_become_ranges),
		test(publish__neighbours_that_go_on_are_one_range),
		test(publish__equal_neighbours_with_a_gap_stay_apart),
		test(publish__file_without_pages_is_anonymous_code),
		test(publish__process_without_mappings_is_one_gap),
		test(publish__chunks_are_as_many_as_the_ranges_need),
		test(publish__many_mappings_take_several_chunks),
		test(publish__what_is_beyond_the_bound_is_a_gap),
		test(publish__known_files_are_not_asked_again),
		test(chunks__replaced_run_is_reused_after_two_ticks),
		test(chunks__each_set_has_its_own_version),
		test(chunks__publishing_for_ever_needs_no_more_room),
		test(chunks__sets_never_overlap),
		test(chunks__room_in_pieces_is_no_room),
		test(chunks__no_room_leaves_the_process_without_a_set),
		test(chunks__users_excess_is_that_users_loss),
		test(fork__child_shares_the_set_until_both_have_gone),
		test(fork__child_that_maps_something_gets_its_own_set),
		test(fork__child_is_published_where_the_set_is_not_its_own),
		test(fork__files_are_opened_by_the_last_process),
		test(flags__are_none_before_the_first_publication),
		test(find_files__forgotten_file_is_asked_for_again),
		test(fork__of_a_process_that_was_never_published_is_nothing),
		test(release__gives_back_image_files_and_tables),
		test(retire__dead_process_still_knows_its_interpreter),
		test(ask_again__brings_a_file_that_was_not_examined),
		test(ask_again__looks_at_all_files),
		test(ask_again__is_for_files_that_are_due),
		test(ask_again__child_of_a_fork_has_its_parents_files),
		test(publish__file_in_old_and_new_mappings_is_never_unused),
		test(python__first_interpreter_gets_a_slot_once),
		test(python__number_is_given_back_where_the_kernel_has_no_room),
		test(python__musl_is_what_any_mapping_is),
		test(python__last_reason_of_a_file_without_frames_is_told),
		test(python__interpreter_is_one_process_interpreter_once),
		test(python__fork_shares_the_code_space),
		test(python__reason_of_an_unreadable_one_is_kept),
		test(python__interpreter_that_comes_later_is_still_to_be_checked),
		test(python__what_the_self_test_said_survives_new_mappings),
		test(python__refused_process_has_no_interpreter_any_more),
		test(numbers__of_files_that_are_gone_are_used_again_after_a_rest),
		test(numbers__stay_while_a_process_is_known),
		test(numbers__user_leaves_some_to_others),
		test(find_mapping__ends_are_exclusive),
	};

	return cmocka_run_group_tests_name("attach/context_table", tests, NULL, NULL);
}
