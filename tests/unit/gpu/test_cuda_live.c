/* SPDX-License-Identifier: BSD-2-Clause */
/* The kernel side's tables, processes and the dictionary are stand-ins. */
#include <cmocka.h>
#include <errno.h>
#include <string.h>

#include "attach/cuda_side.h"
#include "base/slice.h"
#include "discover/process_table.h"
#include "drain/counts.h"
#include "drain/dictionary.h"
#include "drain/table.h"
#include "gpu/cuda.h"
#include "probes/probes.h"
#include "windows/source.h"
#include "windows/top.h"

#define BLOCKS_FD 21
#define ENDED_FD 22
#define WINDOW_ENDED_NS 1000U
#define CONTEXT 0x5000U

extern const struct source cuda_live_source;

struct cuda_ended {
	struct pp_cuda_handle context;
	uint64_t ns;
};

static struct kernel {
	struct pp_cuda_block_key key[8];
	struct pp_cuda_block block[8];
	bool is_removed[8];
	size_t count;
	struct cuda_ended ended[4];
	size_t ended_count, forgotten;
	int err;
} kernel;
static struct process process; /* 70 */
static uint64_t used_stack, held_row;
static bool is_loaded = true, is_watched;

static const struct cuda_side side = {.blocks = BLOCKS_FD, .ended = ENDED_FD};

const struct cuda_side *probes_cuda(struct probes *probes)
{
	(void)probes;
	return is_loaded ? &side : NULL;
}

void cuda_side_remove_block(const struct cuda_side *of, const struct pp_cuda_block_key *key,
			    const struct pp_cuda_block *block)
{
	assert_ptr_equal(of, &side);
	for (size_t i = 0; i < kernel.count; i++)
		if (!memcmp(key, &kernel.key[i], sizeof(*key))) {
			assert_int_equal(block->since_ns, kernel.block[i].since_ns);
			kernel.is_removed[i] = true;
		}
}

/* A block a batch. */
int map_batches_read(struct map_batches *batches, map_batches_on_entry *on_entry, void *context)
{
	assert_int_equal(batches->map_fd, BLOCKS_FD);
	assert_int_equal(batches->value_bytes, sizeof(struct pp_cuda_block));
	if (kernel.err)
		return kernel.err;
	if (batches->cursor < kernel.count)
		on_entry(context, &kernel.key[batches->cursor], &kernel.block[batches->cursor]);
	return ++batches->cursor < kernel.count;
}

int table_read(int map_fd, size_t key_bytes, size_t value_bytes, table_on_entry *on_entry,
	       void *context)
{
	int err = 0;

	assert_int_equal(map_fd, ENDED_FD);
	assert_int_equal(key_bytes + value_bytes, sizeof(struct cuda_ended));
	for (size_t i = 0; i < kernel.ended_count && !err; i++)
		err = on_entry(context, &kernel.ended[i].context, &kernel.ended[i].ns);
	return err;
}

int table_drain(int map_fd, size_t key_bytes, table_on_entry *on_row, void *context)
{
	(void)map_fd, (void)key_bytes, (void)on_row, (void)context;
	fail_msg("no table of counters is emptied here");
	return 0;
}

static struct cuda_ended *find_ended(const void *key)
{
	for (size_t i = 0; i < kernel.ended_count; i++)
		if (!memcmp(key, &kernel.ended[i].context, sizeof(struct pp_cuda_handle)))
			return &kernel.ended[i];
	return NULL;
}

int table_get(int map_fd, const void *key, void *ret_value)
{
	const struct cuda_ended *ended = find_ended(key);

	assert_int_equal(map_fd, ENDED_FD);
	if (!ended)
		return -ENOENT;
	memcpy(ret_value, &ended->ns, sizeof(ended->ns));
	return 0;
}

int table_remove(int map_fd, const void *key)
{
	assert_int_equal(map_fd, ENDED_FD);
	kernel.forgotten += find_ended(key) != NULL;
	return 0;
}

struct process *process_table_find(const struct process_table *table, struct pp_process_id id)
{
	(void)table;
	return id.tgid == 70 && id.generation == 1 ? &process : NULL;
}

const struct dict_stack *dictionary_use_stack(struct dictionary *dictionary, uint64_t hash)
{
	(void)dictionary;
	used_stack = hash;
	return NULL;
}

void cuda_hold(struct cuda *cuda, uint64_t detail)
{
	(void)cuda;
	held_row = detail;
}

bool top_wants(const struct top *top, uint32_t kinds)
{
	assert_int_equal(kinds, 1U << PP_PROFILE_CUDA);
	(void)top;
	return is_watched;
}

/* ---- */

static struct counts counts;

static int begin(void **state)
{
	(void)state;
	kernel = (struct kernel){};
	process = (struct process){};
	used_stack = held_row = 0;
	is_loaded = true;
	is_watched = false;
	return 0;
}

static int end(void **state)
{
	(void)state;
	counts_release(&counts);
	return 0;
}

static struct pp_cuda_block *add_block(uint64_t address, uint64_t bytes)
{
	kernel.key[kernel.count] = (struct pp_cuda_block_key){
		.address = address, .tgid = 70, .object = PP_CUDA_OBJECT_MEMORY};
	kernel.block[kernel.count] = (struct pp_cuda_block){.user_stack = 11,
							    .row = 77,
							    .bytes = bytes,
							    .since_ns = 500,
							    .context = CONTEXT,
							    .generation = 1,
							    .tid = 71,
							    .device = 1};
	return &kernel.block[kernel.count++];
}

static void add_ended(uint64_t context, uint64_t ns)
{
	kernel.ended[kernel.ended_count++] = (struct cuda_ended){
		.context = {.id = {.tgid = 70, .generation = 1}, .handle = context}, .ns = ns};
}

static int collect(bool is_written)
{
	const struct sources sources = {.state = {[PP_SOURCE_CUDA] = &kernel}};
	const struct services services = {.sources = &sources};
	const struct source_window window = {
		.slots.end_ns = WINDOW_ENDED_NS, .is_written = is_written, .counts = &counts};
	void *live = NULL;
	int err = source_new(&cuda_live_source, &services, &live);

	assert_int_equal(err, 0);
	assert_int_equal(cuda_live_source.collect(live, &window), 0);
	err = cuda_live_source.add(live, &window, NULL);
	assert_true(source_free(&cuda_live_source, live));
	return err;
}

static struct pp_count sum(void)
{
	struct pp_count sum = {};

	for (size_t i = 0; i < counts.count; i++) {
		assert_int_equal(counts.entry[i].key.kind, PP_KIND_CUDA_HELD);
		assert_int_equal(counts.entry[i].key.detail, 77);
		assert_int_equal(counts.entry[i].key.tid, 71);
		sum.samples += counts.entry[i].count.samples;
		sum.weight += counts.entry[i].count.weight;
	}
	return sum;
}

static void live__is_counted_by_stack(void **state)
{
	(void)state;
	add_block(1, 100);
	add_block(2, 50);
	add_block(3, 7)->user_stack = PP_STACK_OTHERS;
	assert_int_equal(collect(true), 0);
	assert_int_equal(counts.count, 2);
	assert_int_equal(sum().samples, 3);
	assert_int_equal(sum().weight, 157);
	assert_int_equal(held_row, 77);
	assert_false(kernel.is_removed[0]);
}

/* What was allocated since the window's end is the next one's. */
static void live__is_what_was_there_at_the_windows_end(void **state)
{
	(void)state;
	add_block(1, 100);
	add_block(2, 50)->since_ns = WINDOW_ENDED_NS + 1;
	assert_int_equal(collect(true), 0);
	assert_int_equal(sum().weight, 100);
}

/* Profiles that go on get it at their end; the stacks are kept until then. */
static void live__is_counted_where_a_profile_is_written(void **state)
{
	(void)state;
	add_block(1, 100);
	assert_int_equal(collect(false), 0);
	assert_int_equal(counts.count, 0);
	assert_int_equal(used_stack, 11);
	assert_int_equal(held_row, 77);
	assert_false(kernel.is_removed[0]);
}

/* Clients see it meanwhile; what has ended is in the profile, too. */
static void live__is_for_clients_where_the_profile_goes_on(void **state)
{
	(void)state;
	is_watched = true;
	add_block(1, 100);
	add_block(2, 50)->generation = 2;
	assert_int_equal(collect(false), 0);
	assert_int_equal(counts.count, 2);
	assert_int_equal(counts.entry[0].key.kind, PP_KIND_CUDA_SEEN);
	assert_int_equal(counts.entry[0].count.weight, 100);
	assert_int_equal(counts.entry[1].key.kind, PP_KIND_CUDA_HELD);
	counts_release(&counts);
	assert_int_equal(collect(true), 0);
	assert_int_equal(counts.entry[0].key.kind, PP_KIND_CUDA_HELD);
}

static void ended__processes_are_counted_once(void **state)
{
	(void)state;
	add_block(1, 100);
	add_block(2, 50)->generation = 2; /* is forgotten already */
	process.exit_ns = 900;
	assert_int_equal(collect(false), 0);
	assert_int_equal(sum().weight, 150);
	assert_true(kernel.is_removed[0] && kernel.is_removed[1]);
}

static void ended__contexts_give_their_memory_back(void **state)
{
	(void)state;
	add_block(1, 100);
	add_block(2, 50)->context = CONTEXT + 1;
	add_block(3, 20)->since_ns = 700; /* another context at the same address */
	add_ended(CONTEXT, 600);
	assert_int_equal(collect(true), 0);
	assert_int_equal(sum().weight, 70);
	assert_true(kernel.is_removed[0]);
	assert_false(kernel.is_removed[1] || kernel.is_removed[2]);
	assert_int_equal(kernel.forgotten, 1);
}

static void ended__contexts_after_the_window_were_live(void **state)
{
	(void)state;
	add_block(1, 100);
	add_ended(CONTEXT, WINDOW_ENDED_NS + 5);
	assert_int_equal(collect(true), 0);
	assert_int_equal(sum().weight, 100);
	assert_int_equal(kernel.forgotten, 0);
}

static void ended__devices_give_all_back(void **state)
{
	(void)state;
	add_block(1, 100);
	add_block(2, 50)->device = 2;
	add_block(3, 20)->context = 0;
	add_ended(PP_CUDA_ALL_OF_DEVICE | 1, 600);
	assert_int_equal(collect(true), 0);
	assert_int_equal(sum().weight, 50);
}

/* That of another process at the same address is another one. */
static void ended__contexts_are_of_their_process(void **state)
{
	(void)state;
	add_block(1, 100);
	add_ended(CONTEXT, 600);
	kernel.ended[0].context.id.tgid = 80;
	add_ended(CONTEXT, 600);
	kernel.ended[1].context.id.generation = 2;
	add_ended(0, 600);
	add_block(2, 1)->context = 0; /* is not known */
	assert_int_equal(collect(true), 0);
	assert_int_equal(sum().weight, 101);
}

static void collect__without_cuda_is_nothing(void **state)
{
	(void)state;
	add_block(1, 100);
	is_loaded = false;
	assert_int_equal(collect(true), 0);
	assert_int_equal(counts.count, 0);
}

static void collect__passes_errors_on(void **state)
{
	(void)state;
	kernel.err = -EPERM;
	assert_int_equal(collect(true), -EPERM);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(live__is_counted_by_stack),
		TEST(live__is_what_was_there_at_the_windows_end),
		TEST(live__is_counted_where_a_profile_is_written),
		TEST(live__is_for_clients_where_the_profile_goes_on),
		TEST(ended__processes_are_counted_once),
		TEST(ended__contexts_give_their_memory_back),
		TEST(ended__contexts_after_the_window_were_live),
		TEST(ended__devices_give_all_back),
		TEST(ended__contexts_are_of_their_process),
		TEST(collect__without_cuda_is_nothing),
		TEST(collect__passes_errors_on),
	};

	return cmocka_run_group_tests_name("agent/cuda_live", tests, NULL, NULL);
}
