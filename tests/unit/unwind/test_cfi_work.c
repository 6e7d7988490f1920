/* SPDX-License-Identifier: BSD-2-Clause */
/* Unwind information that claims more than the file stores, or asks for the same work again and
 * again: it costs the file its rows, and no more than the budget. */
#include "cfi_fixture.h"

#include <errno.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/io.h"

#define SPARSE_BYTES (2ULL << 30)
#define MAX_CPU_NS 2000000000ULL
#define FRAME_AT 0x30000U /* behind the built file */

static uint64_t cpu_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* Makes the file `size` bytes long, with a hole, and its segment and its .eh_frame likewise. */
static int sparse_file(struct fixture *fixture, uint64_t size)
{
	Elf64_Phdr *program = (Elf64_Phdr *)(fixture->elf.data + sizeof(Elf64_Ehdr));
	Elf64_Shdr *sections = (Elf64_Shdr *)(fixture->elf.data + BUILT_SECTIONS);
	const int fd = memfd_create("sparse", MFD_CLOEXEC);

	assert_true(fd >= 0);
	program[0].p_filesz = program[0].p_memsz = size;
	sections[2].sh_size = size - BUILT_FRAME;
	assert_int_equal(write_full(fd, fixture->elf.data, BUILT_SIZE), 0);
	assert_int_equal(ftruncate(fd, (off_t)size), 0);
	return fd;
}

static uint64_t stored_bytes(int fd)
{
	struct stat status;

	assert_int_equal(fstat(fd, &status), 0);
	return (uint64_t)status.st_blocks * 512;
}

/* Its length field says 2 GiB; 12 KiB of it are stored.  With a header that points to it. */
static void cfi_open__fde_in_a_hole_of_2_gib_is_not_read(void **state)
{
	static const uint32_t header[] = {0x3b031b01, BUILT_FRAME - BUILT_HDR - 4, 1,
					  BUILT_TEXT - BUILT_HDR, 20};
	OWNED(elf_image) struct elf_image *image = NULL;
	static struct fixture fixture;
	const uint64_t start_ns = cpu_ns();
	struct frame_builder frame = {0};
	struct cfi_rows rows = {0};
	struct pp_rule rule;
	OWNED_FD int fd = -1;
	size_t cie;
	int err;

	(void)state;
	cie = CIE(&frame, X86_CIE);
	FDE(&frame, cie, TEXT, 0x10000, "\0");
	build_elf(&fixture.elf, EM_X86_64, header, sizeof(header), ".eh_frame", frame.data,
		  frame.size);
	*(uint32_t *)(fixture.elf.data + BUILT_FRAME + 20) = SPARSE_BYTES - 0x100000;
	fd = sparse_file(&fixture, SPARSE_BYTES);
	assert_int_equal(elf_image_open(fd, &image), 0);
	err = cfi_open(image, &fixture.cfi);
	if (!err) {
		assert_int_equal(cfi_rule_at(fixture.cfi, TEXT, &rule), 0);
		assert_int_equal(rule.kind, PP_RULE_NO_INFO);
		cfi_compile(fixture.cfi, TEXT, TEXT + 0x10000, &rows, NULL);
		cfi_free(fixture.cfi);
	}
	free(rows.row);
	assert_true(cpu_ns() - start_ns < MAX_CPU_NS);
	assert_true(stored_bytes(fd) <= BUILT_SIZE + ELF_HOLE_CHECK_BYTES);
}

/* A CIE of 512 KiB whose place in the cache another one takes, and FDEs of both in turn. */
static void cfi_compile__cies_executed_again_and_again_are_e2big(void **state)
{
	enum { CIE_BYTES = 512 << 10, FDES = 4000, SIZE = FRAME_AT + 3 * CIE_BYTES + FDES * 32 };
	OWNED(elf_image) struct elf_image *image = NULL;
	OWNED_MEM uint8_t *data = calloc(1, SIZE);
	static struct fixture fixture;
	const uint64_t start_ns = cpu_ns();
	struct frame_builder empty = {0};
	struct cfi_rows rows = {0};
	Elf64_Shdr *sections;
	Elf64_Phdr *program;
	uint8_t *at;

	(void)state;
	assert_non_null(data);
	build_elf(&fixture.elf, EM_X86_64, NULL, 0, ".eh_frame", empty.data, empty.size);
	memcpy(data, fixture.elf.data, BUILT_SIZE);
	program = (Elf64_Phdr *)(data + sizeof(Elf64_Ehdr));
	program[0].p_filesz = program[0].p_memsz = SIZE;
	sections = (Elf64_Shdr *)(data + BUILT_SECTIONS);
	sections[2].sh_addr = sections[2].sh_offset = FRAME_AT;
	sections[2].sh_size = SIZE - FRAME_AT;
	at = data + FRAME_AT;
	for (int i = 0; i < 2; i++, at += CIE_BYTES) {
		*(uint32_t *)at = CIE_BYTES - 4;
		memcpy(at + 8, BYTES(X86_CIE));
	}
	for (uint32_t i = 0; i < FDES; i++, at += 32) {
		const size_t cie = FRAME_AT + (size_t)(i % 2) * CIE_BYTES;
		const uint32_t words[] = {28, (uint32_t)(at + 4 - data - cie),
					  BUILT_TEXT + i * 8 - (uint32_t)(at + 8 - data), 8};

		memcpy(at, words, sizeof(words));
	}
	assert_int_equal(elf_image_from_memory(data, SIZE, &image), 0);
	/* Their places in the cache differ, unless both are at the same one: then all FDEs pay. */
	if (!cfi_open(image, &fixture.cfi)) {
		for (int i = 0; i < 4096; i++)
			if (cfi_compile(fixture.cfi, TEXT, TEXT + 0x10000, &rows, NULL))
				break;
		rows.count = 0;
		assert_int_equal(cfi_compile(fixture.cfi, TEXT, TEXT + 0x10000, &rows, NULL),
				 -E2BIG);
		cfi_free(fixture.cfi);
	}
	free(rows.row);
	assert_true(elf_work_is_over(image->work));
	assert_true(cpu_ns() - start_ns < MAX_CPU_NS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(cfi_open__fde_in_a_hole_of_2_gib_is_not_read),
		cmocka_unit_test(cfi_compile__cies_executed_again_and_again_are_e2big),
	};

	return cmocka_run_group_tests_name("unwind/cfi_work", tests, NULL, NULL);
}
