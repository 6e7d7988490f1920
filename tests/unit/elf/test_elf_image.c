/* SPDX-License-Identifier: BSD-2-Clause */
#include "elf/elf_image.h"

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#include "base/io.h"
#include "elf/elf_symbol_table.h"

#define MAX_FILE_BYTES (64U << 20)

/* A file of 8 KiB: the header, then room for program headers, the rest zeros. */
struct small_file {
	Elf64_Ehdr header;
	Elf64_Phdr program[4];
	uint8_t rest[8192 - sizeof(Elf64_Ehdr) - 4 * sizeof(Elf64_Phdr)];
};

static struct small_file small_file(void)
{
	struct small_file file = {
		.header =
			{
				.e_ident = {0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB,
					    EV_CURRENT},
				.e_type = ET_DYN,
				.e_machine = EM_X86_64,
				.e_phoff = sizeof(Elf64_Ehdr),
				.e_phentsize = sizeof(Elf64_Phdr),
			},
	};

	return file;
}

static void add_program(struct small_file *file, Elf64_Phdr header)
{
	file->program[file->header.e_phnum++] = header;
}

static int open_small(const struct small_file *file, struct elf_image **ret_image)
{
	return elf_image_from_memory(file, sizeof(*file), ret_image);
}

static const char *libc_path(void)
{
	static const char *const paths[] = {"/usr/lib/x86_64-linux-gnu/libc.so.6",
					    "/usr/lib/aarch64-linux-gnu/libc.so.6",
					    "/lib64/libc.so.6"};

	for (size_t i = 0; i < ARRAY_SIZE(paths); i++)
		if (!access(paths[i], R_OK))
			return paths[i];
	print_message("skipped: no libc.so.6 where expected\n");
	skip();
	return NULL;
}

/* The first line of a command's output. */
static void first_line(const char *command, char *ret_line, size_t size)
{
	FILE *pipe = popen(command, "r");

	assert_non_null(pipe);
	if (!fgets(ret_line, (int)size, pipe))
		ret_line[0] = '\0';
	pclose(pipe);
	ret_line[strcspn(ret_line, "\n")] = '\0';
}

/* ---- hostile headers ---- */

static void elf_image__what_is_no_file_of_ours_is_enoexec(void **state)
{
	struct small_file file = small_file();
	struct elf_image *image = NULL;

	(void)state;
	assert_int_equal(elf_image_from_memory(&file, sizeof(Elf64_Ehdr) - 1, &image), -ENOEXEC);
	assert_int_equal(elf_image_from_memory("#!/bin/sh\n", 10, &image), -ENOEXEC);
	file.header.e_ident[EI_CLASS] = ELFCLASS32;
	assert_int_equal(open_small(&file, &image), -ENOEXEC);
	file = small_file();
	file.header.e_ident[EI_DATA] = ELFDATA2MSB;
	assert_int_equal(open_small(&file, &image), -ENOEXEC);
	file = small_file();
	file.header.e_machine = EM_386;
	assert_int_equal(open_small(&file, &image), -ENOEXEC);
	file = small_file();
	file.header.e_type = ET_CORE;
	assert_int_equal(open_small(&file, &image), -ENOEXEC);
	assert_null(image);
}

static void elf_image__program_headers_outside_are_ebadmsg(void **state)
{
	struct small_file file = small_file();
	struct elf_image *image = NULL;

	(void)state;
	file.header.e_phnum = 2;
	file.header.e_phoff = sizeof(file) - sizeof(Elf64_Phdr);
	assert_int_equal(open_small(&file, &image), -EBADMSG);
	file.header.e_phoff = UINT64_MAX - 8;
	assert_int_equal(open_small(&file, &image), -EBADMSG);
	file = small_file();
	file.header.e_phnum = 1;
	file.header.e_phentsize = 32;
	assert_int_equal(open_small(&file, &image), -EBADMSG);
}

static void elf_image__segment_that_wraps_is_ebadmsg(void **state)
{
	struct small_file file = small_file();
	struct elf_image *image = NULL;

	(void)state;
	add_program(&file, (Elf64_Phdr){.p_type = PT_LOAD,
					.p_vaddr = UINT64_MAX - 0xff,
					.p_memsz = 0x1000});
	assert_int_equal(open_small(&file, &image), -EBADMSG);
}

static void elf_image__sections_outside_count_as_stripped(void **state)
{
	struct small_file file = small_file();
	OWNED(elf_image) struct elf_image *image = NULL;
	struct elf_section section;

	(void)state;
	file.header.e_shoff = sizeof(file) - 8;
	file.header.e_shnum = 4;
	file.header.e_shentsize = sizeof(Elf64_Shdr);
	file.header.e_shstrndx = 3;
	assert_int_equal(open_small(&file, &image), 0);
	assert_int_equal(image->section_count, 0);
	assert_int_equal(elf_image_section(image, ".text", &section), -ENOENT);
	assert_int_equal(elf_image_section_by_index(image, 0, &section), -ENOENT);
}

static void elf_image__section_outside_is_ebadmsg(void **state)
{
	struct small_file file = small_file();
	OWNED(elf_image) struct elf_image *image = NULL;
	struct elf_section section;
	Elf64_Shdr headers[2] = {
		{.sh_type = SHT_STRTAB, .sh_name = 1, .sh_offset = 4096, .sh_size = 16},
		{.sh_type = SHT_PROGBITS, .sh_name = 1, .sh_offset = 8000, .sh_size = 193},
	};
	uint8_t *bytes = (uint8_t *)&file;

	(void)state;
	memcpy(bytes + 2048, headers, sizeof(headers));
	memcpy(bytes + 4096, "\0.text", 7);
	file.header.e_shoff = 2048;
	file.header.e_shnum = 2;
	file.header.e_shentsize = sizeof(Elf64_Shdr);
	assert_int_equal(open_small(&file, &image), 0);
	assert_int_equal(elf_image_section(image, ".text", &section), -EBADMSG);
	assert_int_equal(elf_image_section(image, ".tex", &section), -ENOENT);
}

static void elf_image_at__only_whole_reads_inside_a_segment(void **state)
{
	struct small_file file = small_file();
	OWNED(elf_image) struct elf_image *image = NULL;

	(void)state;
	add_program(&file, (Elf64_Phdr){.p_type = PT_LOAD,
					.p_vaddr = 0x10000,
					.p_offset = 0x1000,
					.p_filesz = 0x2000, /* 0x1000 of them in the file */
					.p_memsz = 0x3000});
	assert_int_equal(open_small(&file, &image), 0);
	assert_int_equal(image->min_vaddr, 0x10000);
	assert_int_equal(image->max_vaddr, 0x13000);
	assert_ptr_equal(elf_image_at(image, 0x10000, 0x1000), (uint8_t *)&file + 0x1000);
	assert_ptr_equal(elf_image_at(image, 0x10ff8, 8), (uint8_t *)&file + 0x1ff8);
	assert_null(elf_image_at(image, 0x10ff8, 9));
	assert_null(elf_image_at(image, 0xffff, 1));
	assert_null(elf_image_at(image, 0x11000, 1));
	assert_null(elf_image_at(image, 0x10008, SIZE_MAX));
}

/* lld gives the code segment an offset inside the page where the data before it ends. */
static void elf_image__notes_that_lie_about_sizes_give_no_build_id(void **state)
{
	static const uint32_t notes[][5] = {
		{4, 0xfffffff0U, NT_GNU_BUILD_ID, 0x00554e47},
		{0xfffffff0U, 20, NT_GNU_BUILD_ID, 0x00554e47},
		{4, 0, NT_GNU_BUILD_ID, 0x00554e47},
		{4, 64, NT_GNU_BUILD_ID, 0x00554e47}, /* longer than the segment */
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(notes); i++) {
		struct small_file file = small_file();
		OWNED(elf_image) struct elf_image *image = NULL;

		memcpy((uint8_t *)&file + 4096, notes[i], sizeof(notes[i]));
		add_program(&file,
			    (Elf64_Phdr){.p_type = PT_NOTE, .p_offset = 4096, .p_filesz = 40});
		assert_int_equal(open_small(&file, &image), 0);
		assert_null(image->build_id);
	}
}

/* ---- a real file ---- */

static void open_libc(struct elf_image **ret_image)
{
	OWNED_FD int fd = open(libc_path(), O_RDONLY | O_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(elf_image_open(fd, ret_image), 0);
}

static void elf_image__libc_build_id_is_what_readelf_says(void **state)
{
	OWNED(elf_image) struct elf_image *image = NULL;
	char command[256], want[128], have[2 * 64 + 1] = "";

	(void)state;
	open_libc(&image);
	snprintf(command, sizeof(command), "readelf -nW %s | sed -n 's/.*Build ID: //p'",
		 libc_path());
	first_line(command, want, sizeof(want));
	if (!want[0]) {
		print_message("skipped: no readelf\n");
		skip();
	}
	for (size_t i = 0; i < image->build_id_size; i++)
		snprintf(have + 2 * i, 3, "%02x", image->build_id[i]);
	assert_string_equal(have, want);
}

static void assert_symbol_is(const struct elf_image *image, const char *name)
{
	struct elf_symbol symbol;
	char command[256], want[128], have[128];

	snprintf(command, sizeof(command),
		 "readelf --dyn-syms -W %s | awk '$8 ~ /^%s@@/ {print $2, $3, $4}'", libc_path(),
		 name);
	first_line(command, want, sizeof(want));
	assert_int_equal(elf_image_symbol(image, name, &symbol), 0);
	snprintf(have, sizeof(have), "%016" PRIx64 " %" PRIu64 " %s", symbol.value, symbol.size,
		 symbol.type == STT_FUNC     ? "FUNC"
		 : symbol.type == STT_OBJECT ? "OBJECT"
		 : symbol.type == STT_TLS    ? "TLS"
					     : "?");
	assert_string_equal(have, want);
}

static void elf_image_symbol__agrees_with_readelf_on_libc(void **state)
{
	OWNED(elf_image) struct elf_image *image = NULL;
	struct elf_symbol symbol;

	(void)state;
	if (system("readelf --version >/dev/null 2>&1")) {
		print_message("skipped: no readelf\n");
		skip();
	}
	open_libc(&image);
	assert_symbol_is(image, "malloc");
	assert_symbol_is(image, "stdout");
	assert_symbol_is(image, "errno");
	assert_int_equal(elf_image_symbol(image, "mallo", &symbol), -ENOENT);
	assert_int_equal(elf_image_symbol(image, "", &symbol), -ENOENT);
}

/* Without section headers everything is found by program headers and PT_DYNAMIC. */
static void elf_image__libc_without_sections_answers_alike(void **state)
{
	OWNED(elf_image) struct elf_image *whole = NULL;
	OWNED(elf_image) struct elf_image *bare = NULL;
	OWNED_MEM char *bytes = NULL;
	struct elf_symbol_table with = {0}, without = {0};
	struct elf_symbol a, b;
	struct elf_section hdr;
	Elf64_Ehdr header;
	size_t size;

	(void)state;
	open_libc(&whole);
	assert_int_equal(read_file(libc_path(), MAX_FILE_BYTES, &bytes, &size), 0);
	memcpy(&header, bytes, sizeof(header));
	header.e_shoff = header.e_shnum = header.e_shstrndx = 0;
	memcpy(bytes, &header, sizeof(header));
	assert_int_equal(elf_image_from_memory(bytes, size, &bare), 0);
	assert_int_equal(bare->section_count, 0);
	assert_int_equal(elf_image_symbol_table(whole, SHT_DYNSYM, &with), 0);
	assert_int_equal(elf_image_symbol_table(bare, SHT_DYNSYM, &without), 0);
	assert_int_equal(with.count, without.count);
	assert_int_equal(elf_image_symbol(whole, "qsort_r", &a), 0);
	assert_int_equal(elf_image_symbol(bare, "qsort_r", &b), 0);
	assert_int_equal(a.value, b.value);
	assert_int_equal(elf_image_eh_frame_hdr(bare, &hdr), 0);
	assert_int_equal(hdr.data[0], 1); /* version */
	assert_int_equal(bare->build_id_size, whole->build_id_size);
}

static void elf_image_open__other_than_a_regular_file_is_enoexec(void **state)
{
	OWNED_FD int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	struct elf_image *image = NULL;

	(void)state;
	assert_int_equal(elf_image_open(fd, &image), -ENOEXEC);
}

static void elf_guard__file_that_shrinks_while_mapped_reads_as_zeros(void **state)
{
	OWNED(elf_image) struct elf_image *image = NULL;
	OWNED_FD int fd = memfd_create("shrinks", MFD_CLOEXEC);
	struct small_file file = small_file();
	unsigned int sum = 0;

	(void)state;
	memset(file.rest, 0xff, sizeof(file.rest));
	assert_int_equal(write_full(fd, &file, sizeof(file)), 0);
	assert_int_equal(elf_image_open(fd, &image), 0);
	assert_int_equal(elf_guard_install(), 0);
	assert_int_equal(ftruncate(fd, 0), 0);
	for (size_t i = 0; i < image->size; i++)
		sum += image->data[i];
	assert_int_equal(sum, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(elf_image__what_is_no_file_of_ours_is_enoexec),
		cmocka_unit_test(elf_image__program_headers_outside_are_ebadmsg),
		cmocka_unit_test(elf_image__segment_that_wraps_is_ebadmsg),
		cmocka_unit_test(elf_image__sections_outside_count_as_stripped),
		cmocka_unit_test(elf_image__section_outside_is_ebadmsg),
		cmocka_unit_test(elf_image_at__only_whole_reads_inside_a_segment),
		cmocka_unit_test(elf_image__notes_that_lie_about_sizes_give_no_build_id),
		cmocka_unit_test(elf_image__libc_build_id_is_what_readelf_says),
		cmocka_unit_test(elf_image_symbol__agrees_with_readelf_on_libc),
		cmocka_unit_test(elf_image__libc_without_sections_answers_alike),
		cmocka_unit_test(elf_image_open__other_than_a_regular_file_is_enoexec),
		cmocka_unit_test(elf_guard__file_that_shrinks_while_mapped_reads_as_zeros),
	};

	return cmocka_run_group_tests_name("elf/elf_image", tests, NULL, NULL);
}
