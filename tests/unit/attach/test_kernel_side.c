/* SPDX-License-Identifier: BSD-2-Clause */
/* libbpf opens the real object; the kernel that loads it is a stand-in.  A map is a file in memory
 * of its name, and calls on one are written down. */
#include "attach/kernel_side.h"

#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <cmocka.h>
#include <elf.h>
#include <errno.h>
#include <linux/bpf.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <pyprofd/config.h>
#include <pyprofd/limits.h>

#include "attach/map_sizes.h"
#include "attach/object_builds.h"
#include "attach/probe_links.h"
#include "base/clock.h"
#include "base/io.h"
#include "base/log.h"

#include "pyprofd.skel.h"

#define MAPS_MAX 64U
#define MAP_FILE_BYTES (1L << 30) /* sparse */
#define LINK_FD 77
#define ITERATOR_FD 78
#define CPUS 3U
#define POSSIBLE_CPUS 8U

static struct {
	struct pyprofd *skeleton;
	unsigned int loads, attaches;
	int load_error[2], attach_error;
	const char *verifier_says;
	bool has_cmpxchg[2]; /* the objects that were tried */
	int scan_error;
	struct {
		char name[64];
		int fd;
	} map[MAPS_MAX];
	unsigned int map_count;
	/* The last call on a map. */
	char call[64];
	uint8_t key[64], value[4096];
	uint64_t flags;
	int answer;
	const char *lacks; /* the map that has no memory */
	libbpf_print_fn_t print;
	struct rlimit locked;
} kernel;
static bool can_share; /* links of probes: Linux 6.6 and later */
static char told[2048];
static unsigned int lines_told;

bool probe_links_can_share(void)
{
	return can_share;
}

/* ---- what is told ---- */

void log_line(enum log_level level, const char *format, ...)
{
	va_list args;

	assert_int_equal(level, LOG_LEVEL_DEBUG);
	va_start(args, format);
	vsnprintf(told, sizeof(told), format, args);
	va_end(args);
	lines_told++;
}

libbpf_print_fn_t libbpf_set_print(libbpf_print_fn_t print)
{
	kernel.print = print;
	return NULL;
}

/* What libbpf does. */
static void say(enum libbpf_print_level level, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	assert_int_equal(kernel.print(level, format, args), 0);
	va_end(args);
}

/* ---- the kernel ---- */

int setrlimit(__rlimit_resource_t resource, const struct rlimit *limit)
{
	/* A sanitizer sets that of core files before the tests begin. */
	if (resource != RLIMIT_MEMLOCK)
		return (int)syscall(SYS_prlimit64, 0, resource, limit, NULL);
	kernel.locked = *limit;
	return 0;
}

int bpf_object__load_skeleton(struct bpf_object_skeleton *skeleton)
{
	struct pyprofd *of = (void *)((uint8_t *)skeleton->obj - offsetof(struct pyprofd, obj));
	int err = kernel.load_error[kernel.loads];
	size_t size;

	kernel.skeleton = of;
	kernel.has_cmpxchg[kernel.loads++] = of->rodata->has_cmpxchg;
	if (err && kernel.verifier_says) {
		char *log = (char *)bpf_program__log_buf(of->progs.on_waking, &size);

		assert_string_equal(log, "");
		assert_ptr_equal(log, bpf_program__log_buf(of->progs.on_cpu_sample, &size));
		assert_ptr_equal(log, bpf_program__log_buf(of->progs.on_switch, &size));
		assert_ptr_equal(log, bpf_program__log_buf(of->progs.on_scan, &size));
		/* Level 1 is the one of each instruction, for which there is never room. */
		assert_int_equal(bpf_program__log_level(of->progs.on_switch), 4);
		snprintf(log, size, "%s", kernel.verifier_says);
	}
	return err;
}

int bpf_object__attach_skeleton(struct bpf_object_skeleton *skeleton)
{
	(void)skeleton;
	kernel.attaches++;
	return kernel.attach_error;
}

int bpf_map__fd(const struct bpf_map *map)
{
	const char *name = bpf_map__name(map);
	unsigned int i;

	if (kernel.lacks && !strcmp(kernel.lacks, name))
		return -1;

	for (i = 0; i < kernel.map_count; i++)
		if (!strcmp(kernel.map[i].name, name))
			return kernel.map[i].fd;
	assert_true(i < MAPS_MAX);
	snprintf(kernel.map[i].name, sizeof(kernel.map[i].name), "%s", name);
	kernel.map[i].fd = memfd_create(name, MFD_CLOEXEC);
	assert_true(kernel.map[i].fd >= 0);
	assert_int_equal(ftruncate(kernel.map[i].fd, MAP_FILE_BYTES), 0);
	kernel.map_count++;
	return kernel.map[i].fd;
}

static struct bpf_map *map_named(const char *name)
{
	struct bpf_map *map = bpf_object__find_map_by_name(kernel.skeleton->obj, name);

	assert_non_null(map);
	return map;
}

static int fd_named(const char *name)
{
	return bpf_map__fd(map_named(name));
}

static struct bpf_map *called(const char *what, int fd)
{
	for (unsigned int i = 0; i < kernel.map_count; i++)
		if (kernel.map[i].fd == fd) {
			snprintf(kernel.call, sizeof(kernel.call), "%s %.40s", what,
				 kernel.map[i].name);
			return map_named(kernel.map[i].name);
		}
	fail_msg("%s: no map has descriptor %d", what, fd);
	return NULL;
}

int bpf_map_update_elem(int fd, const void *key, const void *value, __u64 flags)
{
	const struct bpf_map *map = called("set", fd);

	if (key) /* a queue has none */
		memcpy(kernel.key, key, bpf_map__key_size(map));
	assert_true(bpf_map__value_size(map) <= sizeof(kernel.value));
	memcpy(kernel.value, value, bpf_map__value_size(map));
	kernel.flags = flags;
	return kernel.answer;
}

int bpf_map_delete_elem(int fd, const void *key)
{
	memcpy(kernel.key, key, bpf_map__key_size(called("delete", fd)));
	return kernel.answer;
}

/* Of entry i: for each CPU 100 * i + CPU + 1 in each number. */
int bpf_map_lookup_elem(int fd, const void *key, void *value)
{
	const struct bpf_map *map = called("get", fd);
	uint64_t *number = value;
	uint32_t at;

	memcpy(kernel.key, key, bpf_map__key_size(map));
	memcpy(&at, key, sizeof(at));
	if (kernel.answer)
		return kernel.answer;
	if (bpf_map__type(map) != BPF_MAP_TYPE_PERCPU_ARRAY) {
		memcpy(value, kernel.value, bpf_map__value_size(map));
		return 0;
	}
	for (uint32_t cpu = 0; cpu < POSSIBLE_CPUS; cpu++)
		for (size_t i = 0; i < bpf_map__value_size(map) / sizeof(*number); i++)
			*number++ = 100ULL * at + cpu + 1;
	return 0;
}

struct btf *btf__load_vmlinux_btf(void)
{
	return NULL;
}

int bpf_link__fd(const struct bpf_link *link)
{
	return link ? LINK_FD : -1;
}

int bpf_iter_create(int fd)
{
	assert_int_equal(fd, LINK_FD);
	errno = kernel.scan_error;
	return kernel.scan_error ? -kernel.scan_error : ITERATOR_FD;
}

/* ---- a kernel side ---- */

static char why[256];

static int teardown(void **state)
{
	(void)state;
	for (unsigned int i = 0; i < kernel.map_count; i++)
		close(kernel.map[i].fd);
	return 0;
}

static int setup(void **state)
{
	(void)state;
	memset(&kernel, 0, sizeof(kernel));
	lines_told = 0;
	told[0] = '\0';
	why[0] = '\0';
	return 0;
}

static struct kernel_side_options machine(bool all)
{
	return (struct kernel_side_options){.sizes = {.cpu_count = POSSIBLE_CPUS,
						      .online_count = CPUS,
						      .hz = 1999,
						      .interval_ns = 10 * NS_PER_SEC,
						      .waits = all},
					    .timeline = all,
					    .wakers = all};
}

static struct kernel_side *open_side(const struct kernel_side_options *options)
{
	struct kernel_side *side = NULL;

	assert_int_equal(kernel_side_open(options, why, sizeof(why), &side), 0);
	assert_non_null(side);
	assert_int_equal(kernel.attaches, 1);
	return side;
}

static void assert_entries(const char *name, uint64_t entries)
{
	if (bpf_map__max_entries(map_named(name)) != entries)
		fail_msg("%s has %u entries, not %llu", name, bpf_map__max_entries(map_named(name)),
			 (unsigned long long)entries);
}

/* Both are the same memory. */
static void assert_is_memory_of(const char *name, const volatile void *memory)
{
	volatile uint8_t *byte = (volatile uint8_t *)memory;
	uint8_t before = *byte, now;

	*byte = (uint8_t)(before + 1);
	assert_int_equal(pread(fd_named(name), &now, 1, 0), 1);
	assert_int_equal(now, (uint8_t)(before + 1));
	*byte = before;
}

/* ---- sizes ---- */

static void check_sizes(const struct kernel_side_options *options)
{
	static const char *const pair[][2] = {{"counts_0", "counts_1"},
					      {"waits_0", "waits_1"},
					      {"wakes_0", "wakes_1"},
					      {"coarse_0", "coarse_1"}};
	OWNED(kernel_side) struct kernel_side *side = open_side(options);
	uint64_t beside_rows = 0;
	struct map_sizes sizes;
	struct bpf_map *map;

	map_sizes_compute(&options->sizes, &sizes);
	for (int i = 0; i < 2; i++) {
		assert_entries(pair[0][i], sizes.counts);
		assert_entries(pair[1][i], sizes.waits);
		assert_entries(pair[2][i], sizes.wakes);
		assert_entries(pair[3][i], sizes.coarse);
	}
	assert_entries("scratch", sizes.places * 2); /* a walk may be interrupted by an NMI's */
	assert_entries("cpu_slots", options->sizes.cpu_count);
	assert_entries("map_sets", sizes.map_chunks);
	assert_entries("processes", sizes.processes);
	assert_entries("contexts", sizes.processes);
	assert_entries("threads", sizes.threads);
	assert_entries("sent", sizes.sent);
	assert_entries("codes", sizes.codes);
	assert_entries("stacks", sizes.stacks_bytes);
	assert_entries("timeline", sizes.timeline_bytes);
	bpf_object__for_each_map(map,
				 kernel.skeleton->obj) if (strcmp(bpf_map__name(map), "rows") != 0)
		beside_rows += map_bytes(map, options->sizes.cpu_count);
	assert_entries("rows", map_sizes_row_shards(&options->sizes, beside_rows));
	assert_int_equal(kernel.skeleton->rodata->scratch_levels, 2);
}

/* The object's own sizes are those of one machine at most. */
static void open__maps_have_the_sizes_of_the_machine(void **state)
{
	static const uint32_t cpus[][2] = {{3, 8}, {24, 40}};

	for (size_t i = 0; i < ARRAY_SIZE(cpus); i++) {
		struct kernel_side_options options = machine(true);

		options.sizes.online_count = cpus[i][0];
		options.sizes.cpu_count = cpus[i][1];
		setup(state);
		check_sizes(&options);
		teardown(state);
		kernel.map_count = 0;
	}
}

static void open__what_is_not_asked_for_is_left_out(void **state)
{
	static const char *const absent[] = {"timeline", "timeline_records", "wakers",
					     "wakes_0",	 "wakes_1",	     "wake_keys"};

	for (int all = 0; all < 2; all++) {
		const struct kernel_side_options options = machine(all);
		OWNED(kernel_side) struct kernel_side *side = NULL;
		uint32_t threads = 0;

		setup(state);
		side = open_side(&options);
		for (size_t i = 0; i < ARRAY_SIZE(absent); i++)
			assert_int_equal(bpf_map__autocreate(map_named(absent[i])), all);
		assert_int_equal(bpf_program__autoload(kernel.skeleton->progs.on_switch), all);
		assert_int_equal(bpf_program__autoload(kernel.skeleton->progs.on_scan), all);
		assert_int_equal(bpf_program__autoload(kernel.skeleton->progs.on_waking), all);
		assert_true(bpf_program__autoload(kernel.skeleton->progs.on_cpu_sample));
		assert_int_equal(kernel.skeleton->rodata->timeline_is_on, all);
		assert_int_equal(kernel.skeleton->rodata->wakers_are_on, all);
		assert_int_equal(bpf_map__max_entries(map_named("ledgers")) > 1, all);
		assert_int_equal(bpf_map__max_entries(map_named("slot_claims")) > 1, all);
		assert_int_equal(kernel_side_threads(side, &threads) != NULL, all);
		assert_int_equal(threads > 1, all);
		teardown(state);
		kernel.map_count = 0;
	}
}

static void open__states_of_cuda_take_memory_when_it_is_used(void **state)
{
	static const struct {
		bool gpu, can_share, takes;
	} cases[] = {{false, true, false}, {true, true, false}, {true, false, true}};
	static const char *const names[] = {"gpu_processes", "gpu_waits"};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		struct kernel_side_options options = machine(false);
		OWNED(kernel_side) struct kernel_side *side = NULL;

		options.gpu = cases[i].gpu;
		can_share = cases[i].can_share;
		setup(state);
		side = open_side(&options);
		for (size_t at = 0; at < ARRAY_SIZE(names); at++) {
			const struct bpf_map *map = map_named(names[at]);

			assert_int_equal(bpf_map__max_entries(map) > 1, cases[i].gpu);
			assert_int_equal(map_bytes(map, CPUS) > (64U << 10), cases[i].takes);
		}
		teardown(state);
		kernel.map_count = 0;
	}
	can_share = false;
}

/* ---- loading ---- */

static void open__older_programs_are_tried_when_the_newer_are_refused(void **state)
{
	const struct kernel_side_options options = machine(true);

	(void)state;
	kernel.load_error[0] = -EINVAL;
	kernel.verifier_says = "unknown func";
	kernel_side_free(open_side(&options));
	assert_int_equal(kernel.loads, 2);
	assert_true(kernel.has_cmpxchg[0]);
	assert_false(kernel.has_cmpxchg[1]);
}

/* One section of code behind the file's header. */
struct made_elf {
	Elf64_Ehdr header;
	Elf64_Shdr section;
	struct bpf_insn code[8];
};

static struct made_elf make_elf(void)
{
	return (struct made_elf){
		.header = {.e_shoff = offsetof(struct made_elf, section),
			   .e_shentsize = sizeof(Elf64_Shdr),
			   .e_shnum = 1},
		.section = {.sh_type = SHT_PROGBITS,
			    .sh_flags = SHF_EXECINSTR,
			    .sh_offset = offsetof(struct made_elf, code),
			    .sh_size = 8 * sizeof(struct bpf_insn)},
		.code = {{.code = BPF_JMP | BPF_CALL, .imm = PP_CALL_RDONLY_CAST},
			 {.code = BPF_JMP | BPF_CALL, .imm = BPF_FUNC_ktime_get_ns},
			 {.code = BPF_STX | BPF_ATOMIC | BPF_DW, .imm = BPF_ADD},
			 {.code = BPF_STX | BPF_ATOMIC | BPF_DW, .imm = BPF_CMPXCHG},
			 {.code = BPF_STX | BPF_ATOMIC | BPF_W, .imm = BPF_XCHG},
			 /* A number of 64 bits, whose second half looks like an atomic. */
			 {.code = BPF_LD | BPF_IMM | BPF_DW},
			 {.code = BPF_STX | BPF_ATOMIC | BPF_DW, .imm = BPF_CMPXCHG},
			 {.code = BPF_STX | BPF_MEM | BPF_DW, .off = 8}}};
}

static void adapt__replaces_what_the_kernel_lacks(void **state)
{
	const struct object_has all = {.cmpxchg = true, .rdonly_cast = 4711}, none = {0};
	struct made_elf elf = make_elf(), made = elf;

	(void)state;
	assert_int_equal(object_builds_adapt(&elf, sizeof(elf), &all), 0);
	assert_int_equal(elf.code[0].src_reg, BPF_PSEUDO_KFUNC_CALL);
	assert_int_equal(elf.code[0].imm, 4711);
	assert_memory_equal(elf.code + 1, made.code + 1, 7 * sizeof(struct bpf_insn));
	elf = made;
	assert_int_equal(object_builds_adapt(&elf, sizeof(elf), &none), 0);
	for (size_t i = 0; i < 8; i++) {
		if (i == 3 || i == 4)
			assert_int_equal(elf.code[i].code, BPF_ALU64 | BPF_MOV | BPF_K);
		else
			assert_memory_equal(elf.code + i, made.code + i, sizeof(struct bpf_insn));
	}
}

static void adapt__keeps_to_the_file(void **state)
{
	const struct object_has none = {0};
	struct made_elf elf = make_elf();

	(void)state;
	assert_int_equal(object_builds_adapt(&elf, sizeof(elf.header) - 1, &none), -EBADMSG);
	assert_int_equal(object_builds_adapt(&elf, sizeof(elf) - 1, &none), -EBADMSG);
	elf.header.e_shnum = 100;
	assert_int_equal(object_builds_adapt(&elf, sizeof(elf), &none), -EBADMSG);
	elf = make_elf();
	elf.header.e_shoff = UINT64_MAX;
	assert_int_equal(object_builds_adapt(&elf, sizeof(elf), &none), -EBADMSG);
	elf = make_elf();
	elf.section.sh_offset = UINT64_MAX;
	assert_int_equal(object_builds_adapt(&elf, sizeof(elf), &none), -EBADMSG);
}

static void open__newer_programs_are_taken_where_they_load(void **state)
{
	const struct kernel_side_options options = machine(true);
	OWNED(kernel_side) struct kernel_side *side = open_side(&options);

	(void)state;
	assert_int_equal(kernel.loads, 1);
	/* Nothing is counted before the caller says so. */
	assert_int_equal(kernel_side_config(side)->flags, PP_CONFIG_PAUSED);
}

static void open__refusal_says_why(void **state)
{
	const struct kernel_side_options options = machine(true);
	struct kernel_side *side = NULL;

	(void)state;
	kernel.load_error[0] = kernel.load_error[1] = -EACCES;
	kernel.verifier_says = "R1 is bad\nprocessed 5 insns\n";
	assert_int_equal(kernel_side_open(&options, why, sizeof(why), &side), -EACCES);
	assert_string_equal(why,
			    "the kernel refused the BPF programs: Permission denied (R1 is bad)");
	kernel.loads = 0;
	kernel.verifier_says = NULL;
	kernel.load_error[0] = kernel.load_error[1] = -EPERM;
	assert_int_equal(kernel_side_open(&options, why, sizeof(why), &side), -EPERM);
	assert_string_equal(why, "cannot load the BPF programs: Operation not permitted");
	assert_int_equal(kernel.attaches, 0);
	kernel.loads = 0;
	kernel.load_error[0] = 0;
	kernel.attach_error = -ENOENT;
	assert_int_equal(kernel_side_open(&options, why, sizeof(why), &side), -ENOENT);
	assert_string_equal(why, "cannot attach to process tracepoints: No such file or directory");
	assert_null(side);
}

static void open__map_that_has_no_memory_is_told(void **state)
{
	static const char *const maps[] = {"config", "fills", "rest", "threads", "pages", "rules"};
	const struct kernel_side_options options = machine(true);
	struct kernel_side *side = NULL;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(maps); i++) {
		teardown(NULL);
		setup(NULL);
		kernel.lacks = maps[i];
		assert_int_equal(kernel_side_open(&options, why, sizeof(why), &side), -EBADF);
		assert_string_equal(why, "cannot map the BPF maps: Bad file descriptor");
		assert_int_equal(kernel.attaches, 0);
		assert_null(side);
	}
}

static void open__memory_of_maps_may_be_locked(void **state)
{
	const struct kernel_side_options options = machine(true);
	OWNED(kernel_side) struct kernel_side *side = open_side(&options);

	(void)state;
	assert_int_equal(kernel.locked.rlim_cur, RLIM_INFINITY);
	assert_int_equal(kernel.locked.rlim_max, RLIM_INFINITY);
	assert_int_equal(lines_told, 0);
}

static void open__what_libbpf_says_is_told_with_verbose(void **state)
{
	const struct kernel_side_options options = machine(true);
	OWNED(kernel_side) struct kernel_side *side = open_side(&options);
	static char text[3000];

	(void)state;
	say(LIBBPF_DEBUG, "nothing\n");
	assert_int_equal(lines_told, 0);
	say(LIBBPF_INFO, "map %d\n", 5);
	assert_string_equal(told, "map 5");
	say(LIBBPF_WARN, "no newline");
	assert_string_equal(told, "no newline");
	say(LIBBPF_WARN, "%s", "");
	assert_string_equal(told, "");
	assert_int_equal(lines_told, 3);
	/* What is longer is cut. */
	for (size_t size = 1022; size < 1027; size++) {
		memset(text, 'n', sizeof(text));
		text[size - 1] = '\n';
		text[size] = '\0';
		say(LIBBPF_WARN, "%s", text);
		assert_int_equal(strlen(told), size - 1 < 1023 ? size - 1 : 1023);
	}
}

/* ---- memory ---- */

static void memory__is_that_of_the_maps(void **state)
{
	const struct kernel_side_options options = machine(true);
	OWNED(kernel_side) struct kernel_side *side = open_side(&options);
	const struct row_store_memory *rows = kernel_side_row_memory(side);
	struct map_sizes sizes;
	uint32_t chunks, threads;

	(void)state;
	map_sizes_compute(&options.sizes, &sizes);
	assert_is_memory_of("config", kernel_side_config(side));
	assert_is_memory_of("fills", kernel_side_fill(side, PP_TABLE_SAMPLES, 0));
	assert_is_memory_of("rest", kernel_side_parts(side).rest);
	assert_is_memory_of("threads", kernel_side_threads(side, &threads));
	assert_int_equal(threads, sizes.threads);
	assert_is_memory_of("map_sets", kernel_side_map_chunks(side, &chunks));
	assert_int_equal(chunks, sizes.map_chunks);
	assert_is_memory_of("user_shares", kernel_side_parts(side).user_shares.row);
	assert_is_memory_of("pages", rows->pages);
	assert_is_memory_of("rules", rows->rules);
	assert_is_memory_of("rows", rows->shard[0]);
	assert_int_equal(rows->page_count, PP_MAX_PAGES);
	assert_int_equal(rows->rule_count, PP_MAX_RULES);
	assert_entries("rows", rows->shard_count);
	for (uint32_t i = 1; i < rows->shard_count; i++)
		assert_ptr_equal(rows->shard[i], rows->shard[i - 1] + PP_ROW_SHARD_ROWS);
	assert_int_equal(kernel_side_config(side)->thread_mask, sizes.threads - 1);
	assert_int_equal(kernel_side_config(side)->processes_left, sizes.processes);
	assert_int_equal(kernel_side_parts(side).process_room, sizes.processes);
}

/* Which the kernel side has counted: what it does not see end is given back here. */
static void slot__of_a_thread_that_is_gone_is_its_users_again(void **state)
{
	const struct kernel_side_options options = machine(true);
	struct kernel_side *side = open_side(&options);
	volatile struct pp_config *config = kernel_side_config(side);
	struct pp_user_share share = {.who = 1000, .slots = 5};
	const uint32_t index = 3;
	const off_t at = index * sizeof(share);

	(void)state;
	config->slots_taken = 7;
	memcpy(kernel.value, &index, sizeof(index)); /* of share_rows */
	assert_int_equal(pwrite(fd_named("user_shares"), &share, sizeof(share), at), sizeof(share));
	kernel_side_give_slot(side, 1000);
	kernel_side_give_slot(side, 0); /* root has no share */
	assert_int_equal(config->slots_taken, 5);
	assert_int_equal(pread(fd_named("user_shares"), &share, sizeof(share), at), sizeof(share));
	assert_int_equal(share.slots, 4);
	share = kernel_side_parts(side).user_shares.row[PP_USER_SHARE_COMMON];
	assert_int_equal(share.slots, 0);
	kernel_side_free(side);
}

/* The half that the kernel side looks at stays as it is. */
static void user_ranges__are_written_beside_those_in_use(void **state)
{
	const struct kernel_side_options options = machine(true);
	const struct pp_user_range range[] = {{100, 199, 7}, {200, 299, 8}};
	struct kernel_side *side = open_side(&options);
	struct pp_user_range found[PP_USER_RANGES + 2];

	(void)state;
	kernel_side_set_user_ranges(side, range, 2);
	assert_int_equal(kernel_side_config(side)->user_ranges, PP_USER_RANGES);
	kernel_side_set_user_ranges(side, range + 1, 1);
	assert_int_equal(kernel_side_config(side)->user_ranges, 0);
	assert_int_equal(pread(fd_named("user_ranges"), found, sizeof(found), 0), sizeof(found));
	assert_memory_equal(found, range + 1, sizeof(range[0]));
	assert_int_equal(found[1].first, UINT32_MAX);
	assert_memory_equal(found + PP_USER_RANGES, range, sizeof(range));
	assert_true(kernel_side_config(side)->process_changes >= 2);
	kernel_side_free(side);
}

/* Returns how many bytes of a map are mapped. */
static uint64_t mapped_bytes(const char *name)
{
	OWNED_MEM char *maps = NULL;
	uint64_t bytes = 0, start, end;
	char wanted[96];

	snprintf(wanted, sizeof(wanted), "/memfd:%s (", name);
	assert_int_equal(read_file("/proc/self/maps", 4 << 20, &maps, NULL), 0);
	for (char *line = strtok(maps, "\n"); line; line = strtok(NULL, "\n"))
		if (strstr(line, wanted) && sscanf(line, "%lx-%lx ", &start, &end) == 2)
			bytes += end - start;
	return bytes;
}

static uint64_t pages_of(uint64_t bytes)
{
	const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);

	return (bytes + page - 1) / page * page;
}

/* Whole pages of each, and nothing stays mapped. */
static void memory__has_the_size_of_the_maps_and_is_given_back(void **state)
{
	const struct kernel_side_options options = machine(true);
	struct kernel_side *side = open_side(&options);
	const struct {
		const char *name;
		uint64_t bytes;
	} row[] = {
		{"config", sizeof(struct pp_config)},
		{"fills", PP_FILL_COUNT * sizeof(struct pp_fill)},
		{"rest", 2 * PP_REST_ROWS * sizeof(struct pp_count)},
		{"threads", bpf_map__max_entries(map_named("threads")) * sizeof(struct pp_thread)},
		{"cpu_slots", POSSIBLE_CPUS * sizeof(uint64_t)},
		{"map_sets",
		 bpf_map__max_entries(map_named("map_sets")) * sizeof(struct pp_map_chunk)},
		{"user_shares", PP_USER_SHARE_ROWS * sizeof(struct pp_user_share)},
		{"user_ranges", 2 * PP_USER_RANGES * sizeof(struct pp_user_range)},
		{"pages", PP_MAX_PAGES * sizeof(uint64_t)},
		{"rules", PP_MAX_RULES * sizeof(struct pp_rule)},
		{"rows",
		 bpf_map__max_entries(map_named("rows")) * PP_ROW_SHARD_ROWS * sizeof(uint32_t)},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(row); i++)
		if (mapped_bytes(row[i].name) != pages_of(row[i].bytes))
			fail_msg("%s: %lu bytes are mapped, not %lu", row[i].name,
				 mapped_bytes(row[i].name), pages_of(row[i].bytes));
	kernel_side_free(side);
	for (size_t i = 0; i < ARRAY_SIZE(row); i++)
		assert_int_equal(mapped_bytes(row[i].name), 0);
	kernel_side_free(NULL);
}

static void tables__are_pairs_that_tell_when_half_full(void **state)
{
	static const char *const name[PP_TABLE_COUNT][2] = {
		[PP_TABLE_SAMPLES] = {"counts_0", "counts_1"},
		[PP_TABLE_WAITS] = {"waits_0", "waits_1"},
		[PP_TABLE_WAKES] = {"wakes_0", "wakes_1"},
		[PP_TABLE_COARSE] = {"coarse_0", "coarse_1"}};
	const struct kernel_side_options options = machine(true);
	OWNED(kernel_side) struct kernel_side *side = open_side(&options);

	(void)state;
	for (int table = 0; table < PP_TABLE_COUNT; table++)
		for (uint32_t number = 6; number < 8; number++) {
			const char *of = name[table][number & 1];

			assert_int_equal(kernel_side_table(side, (enum pp_table)table, number),
					 fd_named(of));
			assert_int_equal(kernel_side_fill(side, (enum pp_table)table, number)->half,
					 bpf_map__max_entries(map_named(of)) / 2);
		}
	assert_int_equal(kernel_side_parts(side).stacks, fd_named("stacks"));
	assert_int_equal(kernel_side_parts(side).events, fd_named("events"));
	assert_int_equal(kernel_side_parts(side).timeline, fd_named("timeline"));
	assert_int_equal(kernel_side_parts(side).ledgers, fd_named("ledgers"));
}

static void cpus__get_places_in_the_map(void **state)
{
	const struct kernel_side_options options = machine(true);
	OWNED(kernel_side) struct kernel_side *side = open_side(&options);
	static const uint32_t online[] = {1, 7};
	uint64_t place[POSSIBLE_CPUS] = {0};

	(void)state;
	assert_int_equal(kernel_side_follow_cpus(side, online, 2), 0);
	assert_int_equal(pread(fd_named("cpu_slots"), place, sizeof(place), 0), sizeof(place));
	assert_int_equal(place[0], 0);
	assert_true(place[1] && place[7] && place[1] != place[7]);
}

/* ---- entries ---- */

/* What was changed, and how often the kernel side was told that processes changed. */
static void assert_changed(const struct kernel_side *side, const char *call, uint32_t changes)
{
	assert_string_equal(kernel.call, call);
	assert_int_equal(kernel_side_config(side)->process_changes, changes);
}

static void processes__kernel_side_looks_again_after_each_change(void **state)
{
	const struct kernel_side_options options = machine(true);
	OWNED(kernel_side) struct kernel_side *side = open_side(&options);
	const struct pp_process_id id = {.tgid = 1234, .generation = 5};
	const struct pp_process_context context = {.map_set = 17, .flags = PP_CONTEXT_MATCHES};
	uint32_t generation = 0;

	(void)state;
	kernel.answer = -EEXIST;
	assert_int_equal(kernel_side_add_process(side, id), -EEXIST);
	assert_changed(side, "set processes", 1);
	assert_memory_equal(kernel.key, &id.tgid, sizeof(id.tgid));
	assert_memory_equal(kernel.value, &id.generation, sizeof(id.generation));
	assert_int_equal(kernel.flags, BPF_NOEXIST);
	kernel.answer = 0;
	assert_int_equal(kernel_side_get_generation(side, 1234, &generation), 0);
	assert_changed(side, "get processes", 1);
	assert_int_equal(generation, 5);
	assert_int_equal(kernel_side_set_context(side, id, &context), 0);
	assert_changed(side, "set contexts", 2);
	assert_memory_equal(kernel.key, &id, sizeof(id));
	assert_memory_equal(kernel.value, &context, sizeof(context));
	assert_int_equal(kernel.flags, BPF_ANY);
	memset(kernel.key, 0, sizeof(kernel.key));
	kernel_side_delete_context(side, id);
	assert_changed(side, "delete contexts", 3);
	assert_memory_equal(kernel.key, &id, sizeof(id));
}

static void entries__are_written_as_they_are_given(void **state)
{
	const struct kernel_side_options options = machine(true);
	OWNED(kernel_side) struct kernel_side *side = open_side(&options);
	const struct pp_thread_key key = {.id = {7, 1}, .tid = 8};
	const uint64_t hash = 0x123456789abcdefULL, thread_state = 0x7f0000001000ULL;
	struct pp_python python;
	struct pp_resync resync;
	uint32_t index = 3;

	(void)state;
	memset(&python, 0x21, sizeof(python));
	memset(&resync, 0x42, sizeof(resync));
	assert_int_equal(kernel_side_set_python(side, index, &python), 0);
	assert_string_equal(kernel.call, "set pythons");
	assert_memory_equal(kernel.key, &index, sizeof(index));
	assert_memory_equal(kernel.value, &python, sizeof(python));
	assert_int_equal(kernel_side_set_resync(side, ++index, &resync), 0);
	assert_string_equal(kernel.call, "set resyncs");
	assert_memory_equal(kernel.key, &index, sizeof(index));
	assert_memory_equal(kernel.value, &resync, sizeof(resync));
	/* Only what the kernel side has asked for. */
	assert_int_equal(kernel_side_set_thread_state(side, &key, thread_state), 0);
	assert_string_equal(kernel.call, "set thread_states");
	assert_memory_equal(kernel.key, &key, sizeof(key));
	assert_memory_equal(kernel.value, &thread_state, sizeof(thread_state));
	assert_int_equal(kernel.flags, BPF_EXIST);
	kernel_side_send_again(side, hash);
	assert_string_equal(kernel.call, "delete sent");
	assert_memory_equal(kernel.key, &hash, sizeof(hash));
}

static void counters__are_sums_over_all_cpus(void **state)
{
	const struct kernel_side_options options = machine(true);
	OWNED(kernel_side) struct kernel_side *side = open_side(&options);
	static struct pp_times times[PP_PROGRAM_COUNT];
	uint64_t losses[PP_LOSS_COUNT];

	(void)state;
	memset(losses, 0xff, sizeof(losses));
	memset(times, 0xff, sizeof(times));
	assert_int_equal(kernel_side_get_losses(side, losses), 0);
	assert_string_equal(kernel.call, "get losses");
	for (uint32_t i = 0; i < PP_LOSS_COUNT; i++)
		assert_int_equal(losses[i], POSSIBLE_CPUS * 100 * i + 36);
	assert_int_equal(kernel_side_get_times(side, times), 0);
	assert_string_equal(kernel.call, "get times");
	for (uint32_t i = 0; i < PP_PROGRAM_COUNT; i++)
		for (uint32_t bucket = 0; bucket < PP_TIME_BUCKETS; bucket++)
			assert_int_equal(times[i].count[bucket], POSSIBLE_CPUS * 100 * i + 36);
	kernel.answer = -EIO;
	assert_int_equal(kernel_side_get_losses(side, losses), -EIO);
	assert_int_equal(kernel_side_get_times(side, times), -EIO);
}

static void scan__is_there_with_waits_alone(void **state)
{
	const struct kernel_side_options options = machine(true);
	OWNED(kernel_side) struct kernel_side *side = open_side(&options);
	int fd = -1;

	(void)state;
	assert_int_equal(kernel_side_open_scan(side, &fd), -ENOTSUP);
	kernel.skeleton->links.on_scan = (struct bpf_link *)&kernel;
	assert_int_equal(kernel_side_open_scan(side, &fd), 0);
	assert_int_equal(fd, ITERATOR_FD);
	kernel.scan_error = EMFILE;
	assert_int_equal(kernel_side_open_scan(side, &fd), -EMFILE);
	assert_int_equal(fd, ITERATOR_FD);
	kernel.skeleton->links.on_scan = NULL;
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(open__maps_have_the_sizes_of_the_machine),
		TEST(open__what_is_not_asked_for_is_left_out),
		TEST(open__states_of_cuda_take_memory_when_it_is_used),
		TEST(open__older_programs_are_tried_when_the_newer_are_refused),
		TEST(adapt__replaces_what_the_kernel_lacks),
		TEST(adapt__keeps_to_the_file),
		TEST(open__newer_programs_are_taken_where_they_load),
		TEST(open__refusal_says_why),
		TEST(open__map_that_has_no_memory_is_told),
		TEST(open__memory_of_maps_may_be_locked),
		TEST(open__what_libbpf_says_is_told_with_verbose),
		TEST(memory__is_that_of_the_maps),
		TEST(slot__of_a_thread_that_is_gone_is_its_users_again),
		TEST(user_ranges__are_written_beside_those_in_use),
		TEST(memory__has_the_size_of_the_maps_and_is_given_back),
		TEST(tables__are_pairs_that_tell_when_half_full),
		TEST(cpus__get_places_in_the_map),
		TEST(processes__kernel_side_looks_again_after_each_change),
		TEST(entries__are_written_as_they_are_given),
		TEST(counters__are_sums_over_all_cpus),
		TEST(scan__is_there_with_waits_alone),
	};

	return cmocka_run_group_tests_name("attach/kernel_side", tests, NULL, NULL);
}
