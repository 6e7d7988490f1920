/* SPDX-License-Identifier: BSD-2-Clause */
/* Files that claim far more than they store: each is given up within its budget, and none of their
 * holes is filled. */
#include "elf/elf_image.h"

#include <cmocka.h>
#include <errno.h>
#include <lzma.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

#include "base/io.h"
#include "elf/debug_file.h"
#include "elf/elf_symbols.h"
#include "made_elf.h"

#define SPARSE_BYTES (2ULL << 30)
/* Ten times what the largest budget takes here: sanitizers and a busy machine. */
#define MAX_CPU_NS 2000000000ULL
#define HUGE_PAGE_BYTES (2UL << 20)

static struct made_elf elf;

static uint64_t cpu_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static uint64_t stored_bytes(int fd)
{
	struct stat status;

	assert_int_equal(fstat(fd, &status), 0);
	return (uint64_t)status.st_blocks * 512;
}

/* The made file, followed by a hole of 2 GiB. */
static int sparse_file(void)
{
	const int fd = memfd_create("sparse", MFD_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(write_full(fd, elf.data, MADE_BYTES), 0);
	assert_int_equal(ftruncate(fd, SPARSE_BYTES), 0);
	return fd;
}

static void elf_image_open__budget_is_by_what_is_stored(void **state)
{
	OWNED(elf_image) struct elf_image *image = NULL, *whole = NULL;
	OWNED_FD int fd = -1;

	(void)state;
	made_begin(&elf, EM_X86_64);
	fd = sparse_file();
	assert_int_equal(elf_image_open(fd, &image), 0);
	assert_int_equal(image->size, SPARSE_BYTES);
	assert_int_equal(image->work->limit, elf_work_limit(MADE_BYTES));
	assert_int_equal(elf_work_limit(0), ELF_WORK_BASE_UNITS);
	assert_int_equal(elf_work_limit(SPARSE_BYTES), ELF_WORK_MAX_UNITS);
	assert_false(elf_image_is_whole(image));
	assert_int_equal(ftruncate(fd, MADE_BYTES), 0);
	assert_int_equal(elf_image_open(fd, &whole), 0);
	assert_true(elf_image_is_whole(whole));
}

static void elf_image_open__tables_with_holes_are_as_outside_of_the_file(void **state)
{
	OWNED(elf_image) struct elf_image *image = NULL;
	struct elf_section section;
	OWNED_FD int fd = -1;

	(void)state;
	made_begin(&elf, EM_X86_64);
	elf.section[2].sh_size = SPARSE_BYTES - MADE_SYMBOLS;
	elf.program[0].p_filesz = elf.program[0].p_memsz = SPARSE_BYTES;
	fd = sparse_file();
	assert_int_equal(elf_image_open(fd, &image), 0);
	assert_int_equal(elf_image_section_by_index(image, 2, &section), -EBADMSG);
	assert_int_equal(elf_image_section_by_index(image, 1, &section), 0);
	assert_null(elf_image_at(image, MADE_BASE, SPARSE_BYTES));
	assert_non_null(elf_image_at(image, MADE_BASE, MADE_BYTES));
	/* Little enough to be read from a hole. */
	assert_non_null(elf_image_at(image, MADE_BASE + MADE_BYTES, ELF_HOLE_CHECK_BYTES - 1));
	assert_null(elf_image_at(image, MADE_BASE + MADE_BYTES, ELF_HOLE_CHECK_BYTES));
	assert_int_equal(elf_image_readable_bytes(image, MADE_BASE + 16), MADE_BYTES - 16);
	assert_int_equal(elf_image_readable_bytes(image, MADE_BASE + MADE_BYTES), 0);
	assert_int_equal(elf_image_readable_bytes(image, MADE_BASE - 1), 0);
	assert_int_equal(stored_bytes(fd), MADE_BYTES);
}

/* Holes of 4 KiB and data of 4 KiB in turn. */
static void elf_image_open__data_behind_too_many_holes_is_a_hole(void **state)
{
	OWNED(elf_image) struct elf_image *image = NULL;
	OWNED_FD int fd = -1;

	(void)state;
	made_begin(&elf, EM_X86_64);
	elf.program[0].p_filesz = elf.program[0].p_memsz = SPARSE_BYTES;
	fd = sparse_file();
	for (off_t i = 0; i < ELF_MAX_EXTENTS + 10; i++)
		assert_int_equal(pwrite(fd, "x", 1, MADE_BYTES + (2 * i + 1) * 4096), 1);
	assert_int_equal(elf_image_open(fd, &image), 0);
	assert_int_equal(elf_image_readable_bytes(image, MADE_BASE + MADE_BYTES + 4096), 4096);
	assert_int_equal(elf_image_readable_bytes(image, MADE_BASE + MADE_BYTES +
								 (2 * ELF_MAX_EXTENTS + 1) * 4096),
			 0);
}

static void elf_image_open__notes_that_take_too_much_work_are_e2big(void **state)
{
	struct elf_image *image = NULL;
	const uint64_t start_ns = cpu_ns();

	(void)state;
	/* 64 notes segments of one MiB of empty notes each, in one file. */
	const size_t size = 1 << 20;
	OWNED_MEM uint8_t *data = calloc(1, size);
	Elf64_Phdr *program = (Elf64_Phdr *)(data + sizeof(Elf64_Ehdr));
	Elf64_Ehdr *header = (Elf64_Ehdr *)data;

	assert_non_null(data);
	made_begin(&elf, EM_X86_64);
	memcpy(data, elf.data, sizeof(*header));
	header->e_shoff = 0;
	header->e_phnum = 512;
	for (size_t i = 0; i < header->e_phnum; i++)
		program[i] = (Elf64_Phdr){
			.p_type = PT_NOTE, .p_offset = 0x8000, .p_filesz = size - 0x8000};
	assert_int_equal(elf_image_from_memory(data, size, &image), -E2BIG);
	assert_true(cpu_ns() - start_ns < MAX_CPU_NS);
}

static void ignore(void *context, size_t index, const struct elf_function *function)
{
	(void)context, (void)index, (void)function;
}

/* All symbols share an address, so the better one of two long names is chosen each time. */
/* An empty note after the other. */
static uint64_t work_of_notes(size_t count)
{
	OWNED(elf_image) struct elf_image *image = NULL;

	made_begin(&elf, EM_X86_64);
	elf.program[1] = (Elf64_Phdr){
		.p_type = PT_NOTE, .p_offset = MADE_FREE, .p_filesz = count * sizeof(Elf64_Nhdr)};
	assert_int_equal(elf_image_from_memory(elf.data, MADE_BYTES, &image), 0);
	return image->work->spent;
}

static void elf_image_open__each_note_is_paid_for(void **state)
{
	(void)state;
	assert_int_equal(work_of_notes(600) - work_of_notes(500), 100 * ELF_WORK_PER_HEADER);
}

/* So many functions of 0x8000 bytes, all at one place, are asked about 0x4000 addresses in them. */
static int find_in_overlapping(size_t functions)
{
	enum { ADDRESSES = 0x4000 };
	static uint64_t vaddr[ADDRESSES];
	const size_t size = MADE_BYTES + functions * sizeof(Elf64_Sym);
	OWNED_MEM uint8_t *data = calloc(1, size);
	OWNED(elf_image) struct elf_image *image = NULL;

	assert_non_null(data);
	made_begin(&elf, EM_X86_64);
	elf.section[2].sh_offset = MADE_BYTES;
	elf.section[2].sh_size = functions * sizeof(Elf64_Sym);
	memcpy(elf.data + MADE_STRINGS + 1, "f", 2);
	memcpy(data, elf.data, MADE_BYTES);
	for (size_t i = 1; i < functions; i++)
		((Elf64_Sym *)(data + MADE_BYTES))[i] =
			(Elf64_Sym){.st_name = 1,
				    .st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC),
				    .st_shndx = 1,
				    .st_value = MADE_BASE + 0x4000,
				    .st_size = 0x8000};
	for (size_t i = 0; i < ADDRESSES; i++)
		vaddr[i] = MADE_BASE + 0x4000 + i;
	assert_int_equal(elf_image_from_memory(data, size, &image), 0);
	return elf_symbols_find_many(image, NULL, vaddr, ADDRESSES, ignore, NULL);
}

/* 4,194,304 steps and 64 an address are 320 functions over all of them. */
static void elf_symbols_find_many__functions_that_overlap_too_much_are_ebadmsg(void **state)
{
	(void)state;
	assert_int_equal(find_in_overlapping(300), 0);
	assert_int_equal(find_in_overlapping(340), -EBADMSG);
}

static void elf_symbols__names_that_take_too_much_work_are_e2big(void **state)
{
	enum { SYMBOLS = 200000, NAME_BYTES = 16000 };
	const uint64_t vaddr = MADE_BASE + 0x100, start_ns = cpu_ns();
	const size_t names_at = MADE_BYTES + SYMBOLS * sizeof(Elf64_Sym), size = names_at + 0x8000;
	OWNED(elf_image) struct elf_image *image = NULL;
	OWNED_MEM uint8_t *data = calloc(1, size);
	Elf64_Sym *symbol;

	(void)state;
	assert_non_null(data);
	made_begin(&elf, EM_X86_64);
	elf.section[1].sh_offset = names_at;
	elf.section[1].sh_size = 0x8000;
	elf.section[2].sh_offset = MADE_BYTES;
	elf.section[2].sh_size = SYMBOLS * sizeof(*symbol);
	memcpy(data, elf.data, MADE_BYTES);
	memset(data + names_at + 1, 'a', NAME_BYTES);
	symbol = (Elf64_Sym *)(data + MADE_BYTES);
	for (size_t i = 1; i < SYMBOLS; i++)
		symbol[i] = (Elf64_Sym){.st_name = 1 + i % 2,
					.st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC),
					.st_shndx = 1,
					.st_value = MADE_BASE,
					.st_size = 0x1000};
	assert_int_equal(elf_image_from_memory(data, size, &image), 0);
	assert_int_equal(elf_symbols_find_many(image, NULL, &vaddr, 1, ignore, NULL), -E2BIG);
	assert_true(cpu_ns() - start_ns < MAX_CPU_NS);
}

/* 64 MiB of zeros take 10 KiB. */
static void debugdata_open__is_bounded_by_the_file_s_budget(void **state)
{
	const size_t bytes = 64 << 20;
	OWNED(elf_image) struct elf_image *image = NULL, *debug = NULL;
	OWNED_MEM uint8_t *plain = calloc(1, bytes);
	OWNED_MEM void *unpacked = NULL;
	struct rusage before, after;
	size_t used = 0;

	(void)state;
	assert_non_null(plain);
	made_begin(&elf, EM_X86_64);
	elf.section[2].sh_name = made_string(&elf, ".gnu_debugdata");
	elf.section[2].sh_type = SHT_PROGBITS;
	elf.section[2].sh_offset = MADE_FREE;
	assert_int_equal(lzma_easy_buffer_encode(6, LZMA_CHECK_CRC32, NULL, plain, bytes,
						 elf.data + MADE_FREE, &used,
						 MADE_BYTES - MADE_FREE),
			 LZMA_OK);
	elf.section[2].sh_size = used;
	image = made_open(&elf);
	getrusage(RUSAGE_SELF, &before);
	assert_int_equal(debugdata_open(image, DEBUGDATA_MAX_BYTES, &debug, &unpacked), -E2BIG);
	getrusage(RUSAGE_SELF, &after);
	assert_true(after.ru_maxrss - before.ru_maxrss < 16 << 10); /* KiB */
}

static void debugdata_open__decoder_that_wants_much_memory_is_ebadmsg(void **state)
{
	OWNED(elf_image) struct elf_image *image = NULL, *debug = NULL;
	OWNED_MEM void *unpacked = NULL;
	uint8_t plain[MADE_FREE];
	size_t used = 0;

	(void)state;
	made_begin(&elf, EM_X86_64);
	memcpy(plain, elf.data, sizeof(plain));
	elf.section[2].sh_name = made_string(&elf, ".gnu_debugdata");
	elf.section[2].sh_type = SHT_PROGBITS;
	elf.section[2].sh_offset = MADE_FREE;
	assert_int_equal(lzma_easy_buffer_encode(9, LZMA_CHECK_CRC32, NULL, plain, sizeof(plain),
						 elf.data + MADE_FREE, &used,
						 MADE_BYTES - MADE_FREE),
			 LZMA_OK); /* a dictionary of 64 MiB */
	elf.section[2].sh_size = used;
	image = made_open(&elf);
	assert_int_equal(debugdata_open(image, DEBUGDATA_MAX_BYTES, &debug, &unpacked), -EBADMSG);
}

static void elf_image_open__file_in_huge_pages_is_enotsup(void **state)
{
	OWNED_FD int fd = memfd_create("huge", MFD_CLOEXEC | MFD_HUGETLB);
	struct elf_image *image = NULL;
	struct statfs system;

	(void)state;
	/* Huge pages need not be there: the file is not read. */
	if (fd < 0 || fstatfs(fd, &system) || ftruncate(fd, HUGE_PAGE_BYTES))
		skip();
	assert_int_equal(elf_image_open(fd, &image), -ENOTSUP);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(elf_image_open__budget_is_by_what_is_stored),
		cmocka_unit_test(elf_image_open__tables_with_holes_are_as_outside_of_the_file),
		cmocka_unit_test(elf_image_open__data_behind_too_many_holes_is_a_hole),
		cmocka_unit_test(elf_image_open__notes_that_take_too_much_work_are_e2big),
		cmocka_unit_test(elf_symbols__names_that_take_too_much_work_are_e2big),
		cmocka_unit_test(elf_image_open__each_note_is_paid_for),
		cmocka_unit_test(
			elf_symbols_find_many__functions_that_overlap_too_much_are_ebadmsg),
		cmocka_unit_test(debugdata_open__is_bounded_by_the_file_s_budget),
		cmocka_unit_test(debugdata_open__decoder_that_wants_much_memory_is_ebadmsg),
		cmocka_unit_test(elf_image_open__file_in_huge_pages_is_enotsup),
	};

	return cmocka_run_group_tests_name("elf/elf_work", tests, NULL, NULL);
}
