/* SPDX-License-Identifier: BSD-2-Clause */
/* Headers, notes and sections written by hand: what lies at each bound, on both sides. */
#include "elf/elf_image.h"

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/io.h"
#include "made_elf.h"

#define NOTES 0x4000U

static struct made_elf elf;

/* ---- build-ids ---- */

/* Returns the offset behind it. */
static size_t put_note(size_t at, uint32_t align, const char *name, uint32_t name_size,
		       uint32_t type, uint32_t size)
{
	const uint32_t head[3] = {name_size, size, type};
	size_t id = at + 12 + name_size;

	memcpy(elf.data + at, head, sizeof(head));
	memcpy(elf.data + at + 12, name, name_size);
	while (id % align)
		id++;
	memset(elf.data + id, 0xab, size);
	for (id += size; id % align; id++)
		;
	return id;
}

static void note_segment(size_t size, uint64_t align)
{
	elf.program[2] = (Elf64_Phdr){
		.p_type = PT_NOTE, .p_offset = NOTES, .p_filesz = size, .p_align = align};
}

/* Its size; 0: none. */
static size_t build_id_size(void)
{
	OWNED(elf_image) struct elf_image *image = made_open(&elf);

	assert_int_equal(image->build_id != NULL, image->build_id_size != 0);
	for (size_t i = 0; i < image->build_id_size; i++)
		assert_int_equal(image->build_id[i], 0xab);
	return image->build_id_size;
}

static void elf_image__build_ids_have_1_to_64_bytes(void **state)
{
	static const uint32_t sizes[] = {1, 2, 16, 20, 64};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		made_begin(&elf, EM_X86_64);
		put_note(NOTES, 4, "GNU", 4, NT_GNU_BUILD_ID, sizes[i]);
		note_segment(16 + sizes[i], 4); /* no padding behind it */
		assert_int_equal(build_id_size(), sizes[i]);
		note_segment(15 + sizes[i], 4);
		assert_int_equal(build_id_size(), 0);
	}
	made_begin(&elf, EM_X86_64);
	note_segment(put_note(NOTES, 4, "GNU", 4, NT_GNU_BUILD_ID, 65) - NOTES, 4);
	assert_int_equal(build_id_size(), 0);
	note_segment(put_note(NOTES, 4, "GNV", 4, NT_GNU_BUILD_ID, 20) - NOTES, 4);
	assert_int_equal(build_id_size(), 0);
	note_segment(put_note(NOTES, 4, "GNU", 4, NT_GNU_ABI_TAG, 20) - NOTES, 4);
	assert_int_equal(build_id_size(), 0);
	note_segment(put_note(NOTES, 4, "GNU\0", 5, NT_GNU_BUILD_ID, 20) - NOTES, 4);
	assert_int_equal(build_id_size(), 0);
}

/* Names and descriptions of odd sizes are padded, to 8 where the segment says so. */
static void elf_image__build_id_may_be_a_later_note(void **state)
{
	static const uint64_t aligns[] = {0, 1, 4, 8, 16};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(aligns); i++)
		for (uint32_t size = 0; size < 10; size++) {
			const uint32_t align = aligns[i] == 8 ? 8 : 4;
			size_t end;

			made_begin(&elf, EM_X86_64);
			end = put_note(NOTES, align, "abcdefghi", size + 1, 7, size);
			end = put_note(end, align, "GNU", 4, NT_GNU_BUILD_ID, 20);
			note_segment(end - NOTES, aligns[i]);
			assert_int_equal(build_id_size(), 20);
		}
}

static void elf_image__first_build_id_counts(void **state)
{
	OWNED(elf_image) struct elf_image *image = NULL;
	size_t end;

	(void)state;
	made_begin(&elf, EM_X86_64);
	note_segment(put_note(NOTES, 4, "GNU", 4, NT_GNU_BUILD_ID, 20) - NOTES, 4);
	end = put_note(NOTES + 0x100, 4, "GNU", 4, NT_GNU_BUILD_ID, 16);
	elf.program[1] = elf.program[2]; /* two segments, two ids */
	elf.program[2].p_offset = NOTES + 0x100;
	elf.program[2].p_filesz = end - NOTES - 0x100;
	assert_int_equal(build_id_size(), 20);
	/* The section counts when no segment has one. */
	elf.section[2].sh_name = made_string(&elf, ".note.gnu.build-id");
	elf.section[2].sh_type = SHT_NOTE;
	elf.section[2].sh_offset = NOTES + 0x100;
	elf.section[2].sh_size = end - NOTES - 0x100;
	assert_int_equal(build_id_size(), 20);
	elf.program[1].p_type = elf.program[2].p_type = PT_NULL;
	assert_int_equal(build_id_size(), 16);
	elf.section[2].sh_type = SHT_NOBITS;
	assert_int_equal(build_id_size(), 0);
}

/* ---- segments ---- */

static void elf_image__segments_are_as_the_headers_say(void **state)
{
	OWNED(elf_image) struct elf_image *image = NULL;

	(void)state;
	made_begin(&elf, EM_AARCH64);
	elf.header.e_entry = 0x1234;
	elf.program[1] = (Elf64_Phdr){.p_type = PT_LOAD,
				      .p_vaddr = 0x1000,
				      .p_offset = 0x2000,
				      .p_filesz = 0x300,
				      .p_memsz = 0x400,
				      .p_align = 0x40};
	elf.program[2] = (Elf64_Phdr){.p_type = PT_TLS, .p_memsz = 40, .p_align = 16};
	image = made_open(&elf);
	assert_int_equal(image->machine, EM_AARCH64);
	assert_int_equal(image->type, ET_DYN);
	assert_int_equal(image->entry, 0x1234);
	assert_int_equal(image->owner, UINT32_MAX);
	assert_int_equal(image->segment_count, 2);
	assert_int_equal(image->segment[0].vaddr, 0x1000); /* by address */
	assert_int_equal(image->segment[0].offset, 0x2000);
	assert_int_equal(image->segment[0].file_size, 0x300);
	assert_int_equal(image->segment[0].memory_size, 0x400);
	assert_int_equal(image->segment[0].align, 0x40);
	assert_false(image->segment[0].executable);
	assert_int_equal(image->segment[1].vaddr, MADE_BASE);
	assert_true(image->segment[1].executable);
	assert_int_equal(image->min_vaddr, 0x1000);
	assert_int_equal(image->max_vaddr, MADE_END);
	assert_int_equal(image->tls_memory_size, 40);
	assert_int_equal(image->tls_align, 16);
}

static void elf_image__sizes_of_segments_are_checked(void **state)
{
	struct elf_image *image = NULL;

	(void)state;
	made_begin(&elf, EM_X86_64);
	elf.program[0].p_memsz--; /* less than the file has of it */
	assert_int_equal(elf_image_from_memory(elf.data, MADE_BYTES, &image), -EBADMSG);
	assert_null(image);
	made_begin(&elf, EM_X86_64);
	elf.program[0].p_offset = MADE_BYTES + 1; /* as in a debug file */
	image = made_open(&elf);
	assert_int_equal(image->segment[0].file_size, 0);
	assert_null(elf_image_at(image, MADE_BASE, 1));
	elf_image_free(image);
	elf.program[0].p_offset = MADE_BYTES - 8;
	image = made_open(&elf);
	assert_int_equal(image->segment[0].file_size, 8);
	elf_image_free(image);
}

static void elf_image__at_most_64_segments(void **state)
{
	struct elf_image *image = NULL;
	Elf64_Phdr *program;

	(void)state;
	made_begin(&elf, EM_X86_64);
	elf.header.e_phoff = 0x8000;
	program = (Elf64_Phdr *)(elf.data + 0x8000);
	for (uint64_t i = 0; i < 65; i++)
		program[i] = (Elf64_Phdr){.p_type = PT_LOAD, .p_vaddr = i * 16, .p_memsz = 8};
	elf.header.e_phnum = 65;
	assert_int_equal(elf_image_from_memory(elf.data, MADE_BYTES, &image), -EBADMSG);
	elf.header.e_phnum = 64;
	image = made_open(&elf);
	assert_int_equal(image->segment_count, 64);
	elf_image_free(image);
}

/* ---- sections ---- */

static void elf_image_section__is_as_its_header_says(void **state)
{
	OWNED(elf_image) struct elf_image *image = NULL;
	struct elf_section section;

	(void)state;
	made_begin(&elf, EM_X86_64);
	elf.section[2] = (Elf64_Shdr){.sh_name = made_string(&elf, ".some"),
				      .sh_type = SHT_PROGBITS,
				      .sh_flags = SHF_ALLOC,
				      .sh_addr = 0x1111,
				      .sh_offset = 0x3000,
				      .sh_size = 0x55,
				      .sh_link = 7,
				      .sh_entsize = 9};
	image = made_open(&elf);
	assert_int_equal(elf_image_section(image, ".some", &section), 0);
	assert_ptr_equal(section.data, elf.data + 0x3000);
	assert_int_equal(section.size, 0x55);
	assert_int_equal(section.vaddr, 0x1111);
	assert_int_equal(section.type, SHT_PROGBITS);
	assert_int_equal(section.entry_size, 9);
	assert_int_equal(section.link, 7);
	assert_int_equal(section.flags, SHF_ALLOC);
	/* the name's NUL is the table's last byte, or beyond */
	elf.section[1].sh_size = elf.section[2].sh_name + 6;
	assert_int_equal(elf_image_section(image, ".some", &section), 0);
	elf.section[1].sh_size--;
	assert_int_equal(elf_image_section(image, ".some", &section), -ENOENT);
	elf.section[1].sh_size = elf.section[2].sh_name;
	assert_int_equal(elf_image_section(image, ".some", &section), -ENOENT);
	elf.section[1].sh_size = 0x1000;
	elf.section[1].sh_type = SHT_NOBITS;
	assert_int_equal(elf_image_section(image, ".some", &section), -ENOENT);
	elf.section[1].sh_type = SHT_STRTAB;
	elf.section[2].sh_type = SHT_NOBITS;
	elf.section[2].sh_offset = MADE_BYTES;
	assert_int_equal(elf_image_section(image, ".some", &section), 0);
	assert_null(section.data);
	assert_int_equal(elf_image_section_by_index(image, 2, &section), 0);
	assert_int_equal(elf_image_section_by_index(image, 3, &section), -ENOENT);
}

static void elf_image_eh_frame_hdr__is_a_segment_inside_the_file(void **state)
{
	struct elf_section section;

	(void)state;
	made_begin(&elf, EM_X86_64);
	for (uint64_t i = 0; i < 3; i++) {
		OWNED(elf_image) struct elf_image *image = NULL;

		elf.program[2] = (Elf64_Phdr){.p_type = PT_GNU_EH_FRAME,
					      .p_offset = MADE_BYTES - 0x20 + i,
					      .p_vaddr = 0x777,
					      .p_filesz = i < 2 ? 0x20 : 0};
		image = made_open(&elf);
		assert_int_equal(elf_image_eh_frame_hdr(image, &section), i == 0   ? 0
									  : i == 1 ? -EBADMSG
										   : -ENOENT);
		if (i)
			continue;
		assert_ptr_equal(section.data, elf.data + MADE_BYTES - 0x20);
		assert_int_equal(section.size, 0x20);
		assert_int_equal(section.vaddr, 0x777);
		assert_int_equal(section.type, SHT_PROGBITS);
	}
}

/* ---- mapped files ---- */

static bool is_present(const uint8_t *address)
{
	OWNED_FD int fd = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
	uint64_t entry = 0;

	assert_int_equal(pread(fd, &entry, 8, (off_t)((uintptr_t)address / 4096 * 8)), 8);
	return entry >> 63;
}

static void open_memfd(struct elf_image **ret_image, int *ret_fd)
{
	*ret_fd = memfd_create("made", MFD_CLOEXEC);
	made_begin(&elf, EM_X86_64);
	assert_int_equal(write_full(*ret_fd, elf.data, MADE_BYTES), 0);
	assert_int_equal(elf_image_open(*ret_fd, ret_image), 0);
	assert_int_equal((*ret_image)->owner, getuid());
}

static void elf_image_release__releases_whole_pages_inside(void **state)
{
	static const struct {
		size_t start, size, first, end; /* pages */
	} cases[] = {{0, 8192, 0, 2},	{1, 8192, 1, 2},    {4095, 8193, 1, 3},
		     {100, 4000, 0, 0}, {4096, 4095, 0, 0}, {4096, 4096, 1, 2}};

	(void)state;
	if (sysconf(_SC_PAGESIZE) != 4096)
		skip();
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		OWNED(elf_image) struct elf_image *image = NULL;
		OWNED_FD int fd = -1;
		volatile unsigned int sum = 0;

		open_memfd(&image, &fd);
		for (size_t page = 0; page < 4; page++)
			sum += image->data[page * 4096];
		elf_image_release(image, image->data + cases[i].start, cases[i].size);
		for (size_t page = 0; page < 4; page++)
			assert_int_equal(is_present(image->data + page * 4096),
					 page < cases[i].first || page >= cases[i].end);
	}
}

/* Memory that is not mapped by us stays. */
static void elf_image_release__leaves_the_caller_s_memory(void **state)
{
	OWNED(elf_image) struct elf_image *image = NULL;

	(void)state;
	made_begin(&elf, EM_X86_64);
	image = made_open(&elf);
	elf_image_release(image, elf.data, MADE_BYTES);
	assert_int_equal(elf.data[1], 'E');
	assert_int_equal(elf.header.e_phnum, 3);
	assert_int_equal(((const Elf64_Shdr *)(elf.data + 0x200))[1].sh_type, SHT_STRTAB);
	assert_int_equal(elf.dynamic[0].d_tag, DT_RELA);
}

static void elf_guard__any_byte_of_a_lost_page_reads_as_0(void **state)
{
	OWNED(elf_image) struct elf_image *image = NULL;
	OWNED_FD int fd = -1;

	(void)state;
	open_memfd(&image, &fd);
	assert_int_equal(elf_guard_install(), 0);
	assert_int_equal(ftruncate(fd, 0), 0);
	errno = 123;
	assert_int_equal(((const volatile uint8_t *)image->data)[4096 + 4095], 0);
	assert_int_equal(((const volatile uint8_t *)image->data)[1], 0);
	assert_int_equal(errno, 123);
	assert_int_equal(((const volatile uint8_t *)image->data)[3 * 4096 + 7], 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(elf_image__build_ids_have_1_to_64_bytes),
		cmocka_unit_test(elf_image__build_id_may_be_a_later_note),
		cmocka_unit_test(elf_image__first_build_id_counts),
		cmocka_unit_test(elf_image__segments_are_as_the_headers_say),
		cmocka_unit_test(elf_image__sizes_of_segments_are_checked),
		cmocka_unit_test(elf_image__at_most_64_segments),
		cmocka_unit_test(elf_image_section__is_as_its_header_says),
		cmocka_unit_test(elf_image_eh_frame_hdr__is_a_segment_inside_the_file),
		cmocka_unit_test(elf_image_release__releases_whole_pages_inside),
		cmocka_unit_test(elf_image_release__leaves_the_caller_s_memory),
		cmocka_unit_test(elf_guard__any_byte_of_a_lost_page_reads_as_0),
	};

	return cmocka_run_group_tests_name("elf/elf_image_made", tests, NULL, NULL);
}
