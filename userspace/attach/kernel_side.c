/* SPDX-License-Identifier: BSD-2-Clause */
#include "attach/kernel_side.h"

#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include <pyprofd/config.h>

#include "attach/map_sizes.h"
#include "attach/object_builds.h"
#include "attach/probe_links.h"
#include "attach/tracepoints.h"
#include "base/io.h"
#include "base/log.h"
#include "base/random.h"

/* The skeletons need what crosses the kernel boundary, and name the scratch type.  Of the second
 * only its bytes are used: both objects have the same maps, programs and constants. */
#include "pyprofd.skel.h"

#if LIBBPF_MAJOR_VERSION < 1
#error "pyprofd needs libbpf 1.0 or later (Debian 12, Ubuntu 24.04)"
#endif

#define SCRATCH_LEVELS 2U /* interrupt and NMI: no program can be preempted */
#define SHARD_BYTES ((size_t)PP_ROW_SHARD_ROWS * sizeof(uint32_t))

#define SHARED_MAX 12U

/* A map that is memory of both sides. */
struct shared {
	void *memory;
	size_t bytes;
};

struct kernel_side {
	struct pyprofd *skeleton;
	struct shared shared[SHARED_MAX]; /* owned; the pointers below are into it */
	size_t shared_count;
	uint64_t *other_map_bytes; /* owned; of objects that share maps, beside those */
	uint32_t map_chunk_count;
	uint32_t process_room; /* entries of `processes` and of `contexts` */
	struct pp_user_share *user_share;
	uint16_t *user_share_known;	  /* owned; struct user_shares */
	struct pp_user_range *user_range; /* two halves of PP_USER_RANGES */
	uint32_t cpu_count;		  /* possible CPUs */
	uint32_t place_count;		  /* of CPUs in `scratch` */
	uint32_t thread_count;		  /* a power of two */
	struct pp_config *config;
	struct pp_fill *fill;
	struct pp_count *rest;
	struct pp_thread *thread;     /* NULL without waits */
	volatile uint64_t *cpu_place; /* by CPU: 1 + its place; 0: none */
	struct pp_sample_timer *timers;
	struct pp_map_chunk *map_chunk;
	uint32_t *row;
	struct row_store_memory memory;
};

static void set_table(struct bpf_map *map[2], uint32_t rows)
{
	bpf_map__set_max_entries(map[0], rows);
	bpf_map__set_max_entries(map[1], rows);
}

static void set_tables(const struct pyprofd *skeleton, const struct map_sizes *sizes)
{
	set_table((struct bpf_map *[]){skeleton->maps.counts_0, skeleton->maps.counts_1},
		  sizes->counts);
	set_table((struct bpf_map *[]){skeleton->maps.waits_0, skeleton->maps.waits_1},
		  sizes->waits);
	set_table((struct bpf_map *[]){skeleton->maps.wakes_0, skeleton->maps.wakes_1},
		  sizes->wakes);
	set_table((struct bpf_map *[]){skeleton->maps.coarse_0, skeleton->maps.coarse_1},
		  sizes->coarse);
}

static void set_wakers(struct kernel_side *side, bool is_on)
{
	struct pyprofd *skeleton = side->skeleton;
	struct bpf_map *map[] = {skeleton->maps.wakers, skeleton->maps.wakes_0,
				 skeleton->maps.wakes_1, skeleton->maps.wake_keys};

	skeleton->rodata->wakers_are_on = is_on;
	bpf_program__set_autoload(skeleton->progs.on_waking, is_on);
	for (size_t i = 0; i < ARRAY_SIZE(map) && !is_on; i++)
		bpf_map__set_autocreate(map[i], false);
}

static void set_waits(struct kernel_side *side, const struct btf *kernel, bool is_on)
{
	struct pyprofd *skeleton = side->skeleton;

	skeleton->rodata->switch_tells_state = kernel && sched_switch_tells_state(kernel);
	if (is_on)
		return;
	bpf_program__set_autoload(skeleton->progs.on_switch, false);
	bpf_program__set_autoload(skeleton->progs.on_scan, false);
	bpf_map__set_max_entries(skeleton->maps.ledgers, 1);
	bpf_map__set_max_entries(skeleton->maps.slot_claims, 1);
}

/* Most machines have no GPU: entries take memory when they are made.  Kernels before 6.1 let no
 * program of a perf event have such maps; those whose links can be shared are later ones. */
static void set_gpu(const struct kernel_side *side, bool is_on)
{
	struct bpf_map *const map[] = {side->skeleton->maps.gpu_processes,
				       side->skeleton->maps.gpu_waits};
	const bool is_later = is_on && probe_links_can_share();

	if (!is_on)
		return;
	bpf_map__set_max_entries(map[0], PP_GPU_PROCESSES_MAX);
	bpf_map__set_max_entries(map[1], PP_GPU_WAITS_MAX);
	for (size_t i = 0; i < ARRAY_SIZE(map) && is_later; i++)
		bpf_map__set_map_flags(map[i], BPF_F_NO_PREALLOC);
}

/* A kernel whose tracepoint has other arguments, or none, tells of no victim. */
static void set_victims(const struct kernel_side *side, const struct btf *kernel, bool is_on)
{
	const enum mark_victim victim =
		is_on && kernel ? mark_victim_arguments(kernel) : MARK_VICTIM_NONE;

	side->skeleton->rodata->victim_is_task = victim == MARK_VICTIM_TASK;
	bpf_program__set_autoload(side->skeleton->progs.on_mark_victim, victim != MARK_VICTIM_NONE);
}

/* Kernels without cgroups have no such tracepoint. */
static void set_moves(const struct kernel_side *side, const struct btf *kernel)
{
	bpf_program__set_autoload(side->skeleton->progs.on_move,
				  kernel && cgroup_attach_tells_task(kernel));
}

static void set_timeline(struct kernel_side *side, bool is_on, uint32_t bytes)
{
	struct pyprofd *skeleton = side->skeleton;

	skeleton->rodata->timeline_is_on = is_on;
	if (is_on)
		bpf_map__set_max_entries(skeleton->maps.timeline, bytes);
	bpf_map__set_autocreate(skeleton->maps.timeline, is_on);
	bpf_map__set_autocreate(skeleton->maps.timeline_records, is_on);
}

static uint64_t bytes_beside_rows(const struct kernel_side *side)
{
	struct bpf_map *map;
	uint64_t bytes = 0;

	bpf_object__for_each_map(map, side->skeleton->obj) if (map != side->skeleton->maps.rows)
		bytes += map_bytes(map, side->cpu_count);
	return bytes;
}

/* Fixed maps first; rows of unwind information take what they leave. */
static void set_sizes(struct kernel_side *side, const struct kernel_side_options *options,
		      const struct btf *kernel)
{
	struct pyprofd *skeleton = side->skeleton;
	struct map_sizes sizes;

	map_sizes_compute(&options->sizes, &sizes);
	side->cpu_count = options->sizes.cpu_count;
	side->place_count = sizes.places;
	side->thread_count = sizes.threads;
	side->map_chunk_count = sizes.map_chunks;
	side->process_room = sizes.processes;
	skeleton->rodata->scratch_levels = SCRATCH_LEVELS;
	bpf_map__set_max_entries(skeleton->maps.scratch, sizes.places * SCRATCH_LEVELS);
	bpf_map__set_max_entries(skeleton->maps.cpu_slots, side->cpu_count);
	bpf_map__set_max_entries(skeleton->maps.sample_timers, side->cpu_count);
	bpf_map__set_max_entries(skeleton->maps.map_sets, sizes.map_chunks);
	bpf_map__set_max_entries(skeleton->maps.processes, sizes.processes);
	bpf_map__set_max_entries(skeleton->maps.contexts, sizes.processes);
	bpf_map__set_max_entries(skeleton->maps.threads, sizes.threads);
	bpf_map__set_max_entries(skeleton->maps.sent, sizes.sent);
	bpf_map__set_max_entries(skeleton->maps.codes, sizes.codes);
	bpf_map__set_max_entries(skeleton->maps.stacks, sizes.stacks_bytes);
	set_tables(skeleton, &sizes);
	set_waits(side, kernel, options->sizes.waits);
	set_timeline(side, options->timeline, sizes.timeline_bytes);
	set_wakers(side, options->wakers);
	set_victims(side, kernel, options->victims);
	set_moves(side, kernel);
	set_gpu(side, options->gpu);
	side->memory.page_count = PP_MAX_PAGES;
	side->memory.rule_count = PP_MAX_RULES;
	side->memory.shard_count = map_sizes_row_shards(
		&options->sizes, bytes_beside_rows(side) + options->sizes.later_bytes);
	bpf_map__set_max_entries(skeleton->maps.rows, side->memory.shard_count);
}

/* Prints, with --verbose, which object or program the kernel refused.  The verifier's logs go to
 * object_builds_load(). */
static int print_libbpf(enum libbpf_print_level level, const char *format, va_list args)
{
	char text[1024];
	int size;

	if (level == LIBBPF_DEBUG)
		return 0;
	size = vsnprintf(text, sizeof(text), format, args);
	if (size > 0 && (size_t)size < sizeof(text) && text[size - 1] == '\n')
		text[size - 1] = '\0';
	log_debug("%s", text);
	return 0;
}

/* What the functions of struct object_builds need. */
struct opening {
	struct kernel_side *side;
	const struct kernel_side_options *options;
	const struct btf *kernel; /* NULL: it cannot be read */
};

static struct bpf_object_skeleton *create(void *context)
{
	struct opening *opening = context;
	struct kernel_side *side = opening->side;

	pyprofd__destroy(side->skeleton);
	side->skeleton = calloc(1, sizeof(*side->skeleton));
	if (!side->skeleton || pyprofd__create_skeleton(side->skeleton))
		return NULL;
	return side->skeleton->skeleton;
}

static int prepare(void *context, const struct object_has *has)
{
	const struct opening *opening = context;

	set_sizes(opening->side, opening->options, opening->kernel);
	opening->side->skeleton->rodata->has_cmpxchg = has->cmpxchg;
	opening->side->skeleton->rodata->has_rdonly_cast = has->rdonly_cast;
	return 0;
}

static int load(struct kernel_side *side, const struct kernel_side_options *options, char *why,
		size_t why_size)
{
	struct btf *kernel = btf__load_vmlinux_btf();
	const int cast =
		kernel ? btf__find_by_name_kind(kernel, "bpf_rdonly_cast", BTF_KIND_FUNC) : 0;
	const struct object_builds builds = {.what = "the BPF programs",
					     .elf = pyprofd__elf_bytes,
					     .rdonly_cast = cast > 0 ? (uint32_t)cast : 0,
					     .create = create,
					     .prepare = prepare};
	int err = object_builds_load(&builds, &(struct opening){side, options, kernel}, why,
				     why_size);

	btf__free(kernel);
	return err;
}

static struct bpf_map *table_of(const struct kernel_side *side, enum pp_table table,
				uint32_t number)
{
	struct pyprofd *skeleton = side->skeleton;
	struct bpf_map *const map[PP_TABLE_COUNT][2] = {
		[PP_TABLE_SAMPLES] = {skeleton->maps.counts_0, skeleton->maps.counts_1},
		[PP_TABLE_WAITS] = {skeleton->maps.waits_0, skeleton->maps.waits_1},
		[PP_TABLE_WAKES] = {skeleton->maps.wakes_0, skeleton->maps.wakes_1},
		[PP_TABLE_COARSE] = {skeleton->maps.coarse_0, skeleton->maps.coarse_1},
	};

	return map[table][number & 1];
}

static size_t whole_pages(size_t bytes)
{
	const size_t page = (size_t)sysconf(_SC_PAGESIZE);

	return (bytes + page - 1) / page * page;
}

/* Returns the memory of a map; NULL where there is none, or when *err is set. */
static void *map_memory(struct kernel_side *side, const struct bpf_map *map, size_t bytes, int *err)
{
	void *memory;

	if (*err || !bytes)
		return NULL;
	bytes = whole_pages(bytes);
	memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, bpf_map__fd(map), 0);
	if (memory == MAP_FAILED) {
		*err = -errno;
		return NULL;
	}
	side->shared[side->shared_count++] = (struct shared){memory, bytes};
	return memory;
}

static int map_all(struct kernel_side *side)
{
	const __typeof__(side->skeleton->maps) *maps = &side->skeleton->maps;
	const size_t threads = side->thread_count > 1 ? side->thread_count : 0;
	struct row_store_memory *rows = &side->memory;
	int err = 0;

	side->config = map_memory(side, maps->config, sizeof(*side->config), &err);
	side->fill = map_memory(side, maps->fills, PP_FILL_COUNT * sizeof(*side->fill), &err);
	side->rest = map_memory(side, maps->rest, 2 * PP_REST_ROWS * sizeof(*side->rest), &err);
	side->thread = map_memory(side, maps->threads, threads * sizeof(*side->thread), &err);
	side->cpu_place =
		map_memory(side, maps->cpu_slots, side->cpu_count * sizeof(*side->cpu_place), &err);
	side->timers = map_memory(side, maps->sample_timers,
				  side->cpu_count * sizeof(*side->timers), &err);
	side->map_chunk = map_memory(side, maps->map_sets,
				     side->map_chunk_count * sizeof(*side->map_chunk), &err);
	side->user_share = map_memory(side, maps->user_shares,
				      PP_USER_SHARE_ROWS * sizeof(*side->user_share), &err);
	side->user_range = map_memory(side, maps->user_ranges,
				      2 * PP_USER_RANGES * sizeof(*side->user_range), &err);
	rows->pages = map_memory(side, maps->pages, rows->page_count * sizeof(*rows->pages), &err);
	rows->rules = map_memory(side, maps->rules, rows->rule_count * sizeof(*rows->rules), &err);
	side->row = map_memory(side, maps->rows, rows->shard_count * SHARD_BYTES, &err);
	return err;
}

static void set_config(struct kernel_side *side)
{
	struct pp_config *config = side->config;

	config->thread_mask = side->thread_count - 1;
	config->processes_left = side->process_room;
	config->thread_seed = (uint32_t)random_number();
	config->name_secret = random_number() | 1;
}

static void set_fills(struct kernel_side *side)
{
	for (uint32_t i = 0; i < PP_FILL_COUNT; i++)
		side->fill[i].half =
			bpf_map__max_entries(table_of(side, (enum pp_table)(i / 2), i)) / 2;
}

static struct user_shares shares_of(const struct kernel_side *side)
{
	return (struct user_shares){.row = side->user_share,
				    .known = side->user_share_known,
				    .rows = bpf_map__fd(side->skeleton->maps.share_rows),
				    .free = bpf_map__fd(side->skeleton->maps.share_free)};
}

static int share_memory(struct kernel_side *side)
{
	struct row_store_memory *rows = &side->memory;
	struct user_shares shares;
	int err = map_all(side);

	if (err)
		return err;
	set_config(side);
	set_fills(side);
	rows->shard = calloc(rows->shard_count, sizeof(*rows->shard));
	if (!rows->shard)
		return -ENOMEM;
	for (uint32_t i = 0; i < rows->shard_count; i++)
		rows->shard[i] = side->row + (size_t)i * PP_ROW_SHARD_ROWS;
	shares = shares_of(side);
	return user_shares_begin(&shares);
}

/* Kernels before 5.11 account maps to RLIMIT_MEMLOCK.  Later ones do not, so a refusal is no
 * error. */
static void raise_memlock(void)
{
	struct rlimit unlimited = {RLIM_INFINITY, RLIM_INFINITY};

	(void)setrlimit(RLIMIT_MEMLOCK, &unlimited);
}

int kernel_side_open(const struct kernel_side_options *options, char *why, size_t why_size,
		     struct kernel_side **ret_side)
{
	OWNED(kernel_side) struct kernel_side *side = calloc(1, sizeof(*side));
	int err;

	if (!side)
		return -ENOMEM;
	side->other_map_bytes = calloc(1, sizeof(*side->other_map_bytes));
	side->user_share_known = calloc(PP_USER_SHARES, sizeof(*side->user_share_known));
	if (!side->other_map_bytes || !side->user_share_known)
		return -ENOMEM;
	libbpf_set_print(print_libbpf);
	raise_memlock();
	err = load(side, options, why, why_size);
	if (err)
		return err;
	err = share_memory(side);
	if (err) {
		snprintf(why, why_size, "cannot map the BPF maps: %s", strerror(-err));
		return err;
	}
	/* Nothing is counted before the caller has set the filter. */
	side->config->flags = PP_CONFIG_PAUSED;
	err = pyprofd__attach(side->skeleton);
	if (err) {
		snprintf(why, why_size, "cannot attach to process tracepoints: %s", strerror(-err));
		return err;
	}
	*ret_side = TAKE(side);
	return 0;
}

void kernel_side_free(struct kernel_side *side)
{
	if (!side)
		return;
	for (size_t i = 0; i < side->shared_count; i++)
		munmap(side->shared[i].memory, side->shared[i].bytes);
	free(side->memory.shard);
	free(side->other_map_bytes);
	free(side->user_share_known);
	pyprofd__destroy(side->skeleton);
	free(side);
}

int kernel_side_follow_cpus(struct kernel_side *side, const uint32_t *online, size_t count)
{
	return cpu_places_assign(side->cpu_place, side->cpu_count, side->place_count, online,
				 count);
}

struct kernel_side_parts kernel_side_parts(const struct kernel_side *side)
{
	const struct pyprofd *skeleton = side->skeleton;

	return (struct kernel_side_parts){
		.sample_program = bpf_program__fd(skeleton->progs.on_cpu_sample),
		.stacks = bpf_map__fd(skeleton->maps.stacks),
		.events = bpf_map__fd(skeleton->maps.events),
		.timeline = bpf_map__fd(skeleton->maps.timeline),
		.ledgers = bpf_map__fd(skeleton->maps.ledgers),
		.locks = skeleton->links.on_lock ? bpf_link__fd(skeleton->links.on_lock) : -1,
		.spaces = skeleton->links.on_space ? bpf_link__fd(skeleton->links.on_space) : -1,
		.cpu_count = side->cpu_count,
		.places = side->place_count,
		.scratch_levels = skeleton->rodata->scratch_levels,
		.switch_tells_state = skeleton->rodata->switch_tells_state,
		.process_room = side->process_room,
		.timers = side->timers,
		.user_shares = shares_of(side),
		.rest = side->rest,
	};
}

int kernel_side_table(const struct kernel_side *side, enum pp_table table, uint32_t number)
{
	return bpf_map__fd(table_of(side, table, number));
}

static int find_map(const struct kernel_side *side, const char *name, int *ret_fd)
{
	const struct bpf_map *map = bpf_object__find_map_by_name(side->skeleton->obj, name);

	if (!map)
		return -ENOENT;
	if (bpf_map__fd(map) < 0)
		return -ENODATA;
	*ret_fd = bpf_map__fd(map);
	return 0;
}

struct pp_fill *kernel_side_fill(const struct kernel_side *side, enum pp_table table,
				 uint32_t number)
{
	return &side->fill[pp_fill_index(table, number)];
}

volatile struct pp_config *kernel_side_config(const struct kernel_side *side)
{
	return side->config;
}

const struct row_store_memory *kernel_side_row_memory(const struct kernel_side *side)
{
	return &side->memory;
}

struct pp_map_chunk *kernel_side_map_chunks(const struct kernel_side *side, uint32_t *ret_count)
{
	*ret_count = side->map_chunk_count;
	return side->map_chunk;
}

struct pp_thread *kernel_side_threads(const struct kernel_side *side, uint32_t *ret_count)
{
	*ret_count = side->thread ? side->thread_count : 0;
	return side->thread;
}

int kernel_side_open_scan(struct kernel_side *side, int *ret_fd)
{
	int fd;

	if (!side->skeleton->links.on_scan)
		return -ENOTSUP;
	fd = bpf_iter_create(bpf_link__fd(side->skeleton->links.on_scan));
	if (fd < 0)
		return -errno;
	*ret_fd = fd;
	return 0;
}

void kernel_side_set_user_ranges(struct kernel_side *side, const struct pp_user_range *range,
				 uint32_t count)
{
	const uint32_t begin = side->config->user_ranges ? 0 : PP_USER_RANGES;
	struct pp_user_range *to = side->user_range + begin;

	/* The kernel side looks at the other half meanwhile. */
	memset(to, 0xff, PP_USER_RANGES * sizeof(*to));
	memcpy(to, range, count * sizeof(*range));
	__atomic_store_n(&side->config->user_ranges, begin, __ATOMIC_RELEASE);
	kernel_side_processes_changed(side);
}

void kernel_side_give_slot(struct kernel_side *side, uint32_t user)
{
	const struct user_shares shares = shares_of(side);

	user_shares_give(&shares, user, offsetof(struct pp_user_share, slots));
	if (side->config->slots_taken)
		__atomic_fetch_sub(&side->config->slots_taken, 1, __ATOMIC_RELAXED);
}

void kernel_side_processes_changed(struct kernel_side *side)
{
	__atomic_fetch_add(&side->config->process_changes, 1, __ATOMIC_SEQ_CST);
}

int kernel_side_add_process(struct kernel_side *side, struct pp_process_id id)
{
	int err = bpf_map_update_elem(bpf_map__fd(side->skeleton->maps.processes), &id.tgid,
				      &id.generation, BPF_NOEXIST);

	kernel_side_processes_changed(side);
	return err;
}

int kernel_side_get_generation(struct kernel_side *side, uint32_t tgid, uint32_t *ret_generation)
{
	return bpf_map_lookup_elem(bpf_map__fd(side->skeleton->maps.processes), &tgid,
				   ret_generation);
}

int kernel_side_set_context(struct kernel_side *side, struct pp_process_id id,
			    const struct pp_process_context *context)
{
	int err = bpf_map_update_elem(bpf_map__fd(side->skeleton->maps.contexts), &id, context,
				      BPF_ANY);

	kernel_side_processes_changed(side);
	return err;
}

void kernel_side_delete_context(struct kernel_side *side, struct pp_process_id id)
{
	bpf_map_delete_elem(bpf_map__fd(side->skeleton->maps.contexts), &id);
	kernel_side_processes_changed(side);
}

int kernel_side_set_python(struct kernel_side *side, uint32_t index, const struct pp_python *python)
{
	struct pp_python value = *python;

	return bpf_map_update_elem(bpf_map__fd(side->skeleton->maps.pythons), &index, &value,
				   BPF_ANY);
}

void kernel_side_send_again(struct kernel_side *side, uint64_t hash)
{
	bpf_map_delete_elem(bpf_map__fd(side->skeleton->maps.sent), &hash);
}

int kernel_side_set_resync(struct kernel_side *side, uint32_t index, const struct pp_resync *resync)
{
	struct pp_resync value = *resync;

	return bpf_map_update_elem(bpf_map__fd(side->skeleton->maps.resyncs), &index, &value,
				   BPF_ANY);
}

int kernel_side_set_thread_state(struct kernel_side *side, const struct pp_thread_key *key,
				 uint64_t thread_state)
{
	return bpf_map_update_elem(bpf_map__fd(side->skeleton->maps.thread_states), key,
				   &thread_state, BPF_EXIST);
}

int kernel_side_sum(const struct kernel_side *side, int map, uint32_t key, __u64 *ret_sum,
		    size_t words)
{
	OWNED_MEM __u64 *value = calloc(side->cpu_count, words * sizeof(*value));
	int err = value ? bpf_map_lookup_elem(map, &key, value) : -ENOMEM;

	if (err)
		return err;
	memset(ret_sum, 0, words * sizeof(*ret_sum));
	for (size_t i = 0; i < side->cpu_count * words; i++)
		ret_sum[i % words] += value[i];
	return 0;
}

int kernel_side_get_losses(const struct kernel_side *side, uint64_t ret_losses[PP_LOSS_COUNT])
{
	const int map = bpf_map__fd(side->skeleton->maps.losses);
	int err = 0;

	for (uint32_t loss = 0; loss < PP_LOSS_COUNT && !err; loss++)
		err = kernel_side_sum(side, map, loss, (__u64 *)&ret_losses[loss], 1);
	return err;
}

int kernel_side_get_times(const struct kernel_side *side,
			  struct pp_times ret_times[PP_PROGRAM_COUNT])
{
	const int map = bpf_map__fd(side->skeleton->maps.times);
	int err = 0;

	for (uint32_t program = 0; program < PP_PROGRAM_COUNT && !err; program++)
		err = kernel_side_sum(side, map, program, ret_times[program].count,
				      PP_TIME_BUCKETS);
	return err;
}

static uint64_t map_memlock_bytes(int fd)
{
	char path[64];
	OWNED_MEM char *text = NULL;
	const char *at;

	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", fd);
	if (read_file(path, 4096, &text, NULL))
		return 0;
	at = strstr(text, "memlock:");
	return at ? strtoull(at + strlen("memlock:"), NULL, 10) : 0;
}

uint64_t kernel_side_map_bytes(const struct kernel_side *side)
{
	struct bpf_map *map;
	uint64_t bytes = 0;

	bpf_object__for_each_map(map, side->skeleton->obj) bytes +=
		map_memlock_bytes(bpf_map__fd(map));
	return bytes + __atomic_load_n(side->other_map_bytes, __ATOMIC_RELAXED);
}

static uint32_t map_id(int fd)
{
	struct bpf_map_info info = {};
	uint32_t size = sizeof(info);

	return bpf_obj_get_info_by_fd(fd, &info, &size) ? 0 : info.id;
}

/* A map that is shared has another descriptor in each object. */
static bool is_shared_map(const struct kernel_side *side, const struct bpf_map *map)
{
	int fd;

	return !bpf_map__is_internal(map) && !find_map(side, bpf_map__name(map), &fd) &&
	       map_id(fd) == map_id(bpf_map__fd(map));
}

void kernel_side_add_maps(const struct kernel_side *side, const struct bpf_object *object)
{
	struct bpf_map *map;

	bpf_object__for_each_map(map,
				 object) if (bpf_map__fd(map) >= 0 && !is_shared_map(side, map))
		__atomic_fetch_add(side->other_map_bytes, map_memlock_bytes(bpf_map__fd(map)),
				   __ATOMIC_RELAXED);
}

/* Constants and variables of the object itself are internal: ".rodata" and the like. */
static bool map_is_own(const struct bpf_map *map, bool has_pool)
{
	return bpf_map__is_internal(map) ||
	       (has_pool && (!strcmp(bpf_map__name(map), "scratch") ||
			     !strcmp(bpf_map__name(map), "scratch_claims")));
}

static int use_map(struct bpf_map *map, const struct kernel_side *side)
{
	int fd;
	int err = find_map(side, bpf_map__name(map), &fd);

	if (err == -ENOENT)
		return 0; /* the object's own, whatever the name */
	if (err == -ENODATA)
		return bpf_map__set_autocreate(map, false);
	return err ? err : bpf_map__reuse_fd(map, fd);
}

int kernel_side_share_maps(const struct kernel_side *side, struct bpf_object *object, bool has_pool)
{
	struct bpf_map *map;
	int err = 0;

	bpf_object__for_each_map(map, object) if (!err && !map_is_own(map, has_pool)) err =
		use_map(map, side);
	if (err || !has_pool)
		return err;
	return bpf_map__set_max_entries(bpf_object__find_map_by_name(object, "scratch"),
					side->place_count * PP_WALK_LEVELS);
}
