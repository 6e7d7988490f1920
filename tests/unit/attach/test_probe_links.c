/* SPDX-License-Identifier: BSD-2-Clause */
/* Probes on functions of this program, by both ways that the kernel has: as root, else skipped. */
#include "attach/probe_links.h"

#include <bpf/bpf.h>
#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"

/* Adds 1 to hits[0]. */
static int hits = -1, program = -1, shared_program = -1, file = -1;

__attribute__((noinline, noclone, noipa)) static int probed(int number)
{
	__asm__ volatile("" ::: "memory");
	return number + 1;
}

/* sys/sdt.h would count here; the file offset is where the kernel looks for it. */
static volatile uint16_t semaphore __attribute__((section(".probes"), used)) = 0;

static int load(enum bpf_attach_type type)
{
	const struct bpf_insn code[] = {
		{.code = BPF_ST | BPF_MEM | BPF_W, .dst_reg = BPF_REG_10, .off = -4},
		{.code = BPF_ALU64 | BPF_MOV | BPF_X, .dst_reg = BPF_REG_2, .src_reg = BPF_REG_10},
		{.code = BPF_ALU64 | BPF_ADD | BPF_K, .dst_reg = BPF_REG_2, .imm = -4},
		{.code = BPF_LD | BPF_IMM | BPF_DW,
		 .dst_reg = BPF_REG_1,
		 .src_reg = BPF_PSEUDO_MAP_FD,
		 .imm = hits},
		{},
		{.code = BPF_JMP | BPF_CALL, .imm = BPF_FUNC_map_lookup_elem},
		{.code = BPF_JMP | BPF_JEQ | BPF_K, .dst_reg = BPF_REG_0, .off = 3},
		{.code = BPF_LDX | BPF_MEM | BPF_DW, .dst_reg = BPF_REG_1, .src_reg = BPF_REG_0},
		{.code = BPF_ALU64 | BPF_ADD | BPF_K, .dst_reg = BPF_REG_1, .imm = 1},
		{.code = BPF_STX | BPF_MEM | BPF_DW, .dst_reg = BPF_REG_0, .src_reg = BPF_REG_1},
		{.code = BPF_ALU64 | BPF_MOV | BPF_K},
		{.code = BPF_JMP | BPF_EXIT},
	};
	LIBBPF_OPTS(bpf_prog_load_opts, options, .expected_attach_type = type);

	return bpf_prog_load(BPF_PROG_TYPE_KPROBE, "pp_test", "GPL", code, ARRAY_SIZE(code),
			     &options);
}

static uint64_t hits_so_far(void)
{
	const uint32_t first = 0;
	uint64_t value = 0;

	assert_int_equal(bpf_map_lookup_elem(hits, &first, &value), 0);
	return value;
}

static int find_own(struct dl_phdr_info *info, size_t size, void *context)
{
	struct {
		uint64_t address, offset;
	} *wanted = context;

	(void)size;
	for (uint16_t i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
		const uint64_t at = wanted->address - info->dlpi_addr - segment->p_vaddr;

		if (segment->p_type == PT_LOAD && at < segment->p_memsz)
			wanted->offset = segment->p_offset + at;
	}
	return 1; /* the first one is the program */
}

static uint64_t file_offset(const volatile void *address)
{
	struct {
		uint64_t address, offset;
	} wanted = {.address = (uintptr_t)address};

	dl_iterate_phdr(find_own, &wanted);
	return wanted.offset;
}

static int setup(void **state)
{
	(void)state;
	if (geteuid())
		return 0;
	hits = bpf_map_create(BPF_MAP_TYPE_ARRAY, "hits", 4, 8, 1, NULL);
	program = load(0);
	shared_program = load((enum bpf_attach_type)PROBE_LINKS_ATTACH_TYPE);
	file = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	return hits < 0 || file < 0;
}

static void need_root(void)
{
	if (geteuid() || program < 0) {
		print_message("skipped: only root loads BPF programs\n");
		skip();
	}
}

static void attach(bool is_shared, bool is_return, uint64_t of_semaphore,
		   struct probe_links *ret_links)
{
	const struct probe_link_site site = {.offset = file_offset((const void *)probed),
					     .semaphore = of_semaphore,
					     .cookie = 5};
	const struct probe_links_options options = {.program = is_shared ? shared_program : program,
						    .site_now = -1,
						    .programs = -1,
						    .file = file,
						    .pid = getpid(),
						    .is_return = is_return,
						    .is_shared = is_shared,
						    .site = &site,
						    .count = 1};

	assert_int_equal(probe_links_attach(&options, ret_links), 0);
}

static void check_hits(bool is_shared, bool is_return)
{
	struct probe_links links;
	uint64_t before;

	attach(is_shared, is_return, 0, &links);
	before = hits_so_far();
	for (int i = 0; i < 10; i++)
		assert_int_equal(probed(i), i + 1);
	assert_int_equal(hits_so_far() - before, 10);
	probe_links_release(&links);
	assert_int_equal(links.count, 0);
	assert_int_equal(probed(1), 2);
	assert_int_equal(hits_so_far() - before, 10);
}

static void probe_links__each_call_is_a_hit_until_the_release(void **state)
{
	(void)state;
	need_root();
	check_hits(false, false);
	check_hits(false, true);
	if (!probe_links_can_share())
		return;
	check_hits(true, false);
	check_hits(true, true);
}

static void check_semaphore(bool is_shared)
{
	struct probe_links links;

	assert_int_equal(semaphore, 0);
	attach(is_shared, false, file_offset(&semaphore), &links);
	assert_int_equal(semaphore, 1);
	probe_links_release(&links);
	assert_int_equal(semaphore, 0);
}

static void probe_links__semaphore_is_raised_meanwhile(void **state)
{
	(void)state;
	need_root();
	check_semaphore(false);
	if (probe_links_can_share())
		check_semaphore(true);
}

static void probe_links__what_cannot_be_attached_leaves_nothing(void **state)
{
	const uint64_t offset = file_offset((const void *)probed);
	/* The second one is beyond the file. */
	const struct probe_link_site site[] = {{.offset = offset}, {.offset = 1ULL << 40}};
	struct probe_links_options options = {.program = program,
					      .site_now = -1,
					      .programs = -1,
					      .file = file,
					      .pid = getpid(),
					      .site = site,
					      .count = ARRAY_SIZE(site)};
	struct probe_links links = {};
	uint64_t before;

	(void)state;
	need_root();
	assert_true(probe_links_attach(&options, &links) < 0);
	assert_null(links.fd);
	before = hits_so_far();
	assert_int_equal(probed(1), 2);
	assert_int_equal(hits_so_far(), before);
}

/* What kernels without cookies have. */
static void probe_stub__notes_its_site_and_jumps_to_the_program(void **state)
{
	OWNED_FD int site_now = bpf_map_create(BPF_MAP_TYPE_PERCPU_ARRAY, "now", 4, 4, 1, NULL);
	OWNED_FD int programs = bpf_map_create(BPF_MAP_TYPE_PROG_ARRAY, "programs", 4, 4, 1, NULL);
	OWNED_FD int stub = -1;
	OWNED_MEM uint64_t *values = calloc(4096, sizeof(*values));
	const uint32_t first = 0;
	struct probe_links links;
	uint64_t before, noted = 0;

	(void)state;
	need_root();
	assert_non_null(values);
	assert_int_equal(probe_stub_load(77, site_now, programs, program, &stub), 0);
	attach(false, false, 0, &links);
	probe_links_release(&links);
	/* Instead of the program: the stub. */
	program = stub;
	attach(false, false, 0, &links);
	before = hits_so_far();
	assert_int_equal(probed(1), 2);
	probe_links_release(&links);
	assert_int_equal(hits_so_far() - before, 1);
	assert_int_equal(bpf_map_lookup_elem(site_now, &first, values), 0);
	for (size_t i = 0; i < 4096; i++)
		noted += values[i] == 77;
	assert_int_equal(noted, 1);
}

static void probe_links_tracepoint__unknown_one_is_enoent(void **state)
{
	const struct bpf_insn code[] = {{.code = BPF_ALU64 | BPF_MOV | BPF_K},
					{.code = BPF_JMP | BPF_EXIT}};
	OWNED_FD int raw = -1;
	int fd = -1;

	(void)state;
	need_root();
	raw = bpf_prog_load(BPF_PROG_TYPE_RAW_TRACEPOINT, "pp_raw", "GPL", code, ARRAY_SIZE(code),
			    NULL);
	assert_true(raw >= 0);
	assert_int_equal(probe_links_tracepoint(raw, "no_such_thing", 0, &fd), -ENOENT);
	assert_int_equal(fd, -1);
	assert_int_equal(probe_links_tracepoint(raw, "sched_switch", 0, &fd), 0);
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(probe_links__each_call_is_a_hit_until_the_release),
		cmocka_unit_test(probe_links__semaphore_is_raised_meanwhile),
		cmocka_unit_test(probe_links__what_cannot_be_attached_leaves_nothing),
		cmocka_unit_test(probe_links_tracepoint__unknown_one_is_enoent),
		/* Leaves `program` closed. */
		cmocka_unit_test(probe_stub__notes_its_site_and_jumps_to_the_program),
	};

	return cmocka_run_group_tests(tests, setup, NULL);
}
