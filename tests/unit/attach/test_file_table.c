/* SPDX-License-Identifier: BSD-2-Clause */
/* Files are written to a temporary directory and looked up as mappings of this process.  A fake
 * decides whether a file is an interpreter. */
#include "attach/file_table.h"

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "../files/here.h"
#include "../unwind/build_elf.h"
#include "attach/btrfs_devices.h"
#include "attach/file_rows.h"
#include "base/clock.h"
#include "discover/proc_scan.h"
#include "files/client.h"
#include "files/stack_starts.h"
#include "files/user_time.h"

/* version 1, "zR", code 1, data -8, RA 16, pcrel sdata4; CFA rsp+8, RA at CFA-8 */
#define X86_CIE "\x01zR\0\x01\x78\x10\x01\x1b\x0c\x07\x08\x90\x01"
#define NOTE (BUILT_NAMES + 0x100)
#define PAGES 64U
#define SHARDS 1U
#define RULES 64U

static const char *fake_python_reason;
static int fake_python_answer = -ENOENT;

int python_info_read(const struct elf_image *image, struct python_info **ret_info,
		     const char **ret_reason)
{
	(void)image;
	if (!fake_python_answer)
		*ret_info = calloc(1, sizeof(**ret_info));
	else if (fake_python_answer == -ENOTSUP)
		*ret_reason = fake_python_reason;
	return fake_python_answer;
}

uint64_t greenlet_first_function(const struct elf_image *image)
{
	(void)image;
	return 0;
}

int python_told_check(const struct python_info *told, struct python_info **ret_info)
{
	(void)told;
	*ret_info = calloc(1, sizeof(**ret_info));
	return 0;
}

void python_info_free(struct python_info *info)
{
	free(info);
}

static bool fake_is_btrfs;

bool btrfs_devices_have(struct btrfs_devices *devices, uint32_t major, uint32_t minor)
{
	(void)devices, (void)major, (void)minor;
	return fake_is_btrfs;
}

void btrfs_devices_forget(struct btrfs_devices *devices)
{
	(void)devices;
}

static uint32_t fake_user;

uint32_t process_user(const struct process *process)
{
	(void)process;
	return fake_user;
}

struct fixture {
	char directory[64];
	struct row_store_memory memory;
	struct row_store *store;
	struct foreign *foreign;
	struct file_table *table;
	struct process process;
	struct built_elf elf;
	struct mapping mapping; /* of get_library() */
	char path[PATH_MAX];	/* its own */
};

static int setup(void **state)
{
	struct fixture *fixture = calloc(1, sizeof(*fixture));
	struct row_store_memory *memory;

	assert_non_null(fixture);
	snprintf(fixture->directory, sizeof(fixture->directory), "/tmp/test_file_table.XXXXXX");
	assert_non_null(mkdtemp(fixture->directory));
	memory = &fixture->memory;
	*memory = (struct row_store_memory){
		.page_count = PAGES, .shard_count = SHARDS, .rule_count = RULES};
	memory->pages = calloc(PAGES, sizeof(uint64_t));
	memory->shard = calloc(SHARDS, sizeof(*memory->shard));
	memory->shard[0] = calloc(PP_ROW_SHARD_ROWS, sizeof(uint32_t));
	memory->rules = calloc(RULES, sizeof(*memory->rules));
	assert_int_equal(row_store_new(memory, &fixture->store), 0);
	assert_int_equal(foreign_new("", &fixture->foreign), 0);
	assert_int_equal(file_table_new(fixture->store, fixture->foreign, &fixture->table), 0);
	fixture->process.id.tgid = (uint32_t)getpid();
	fake_python_answer = -ENOENT;
	fake_is_btrfs = false;
	fake_user = 0;
	*state = fixture;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *fixture = *state;
	char path[96];

	file_table_free(fixture->table);
	foreign_free(fixture->foreign);
	row_store_free(fixture->store);
	free(fixture->memory.shard[0]);
	free(fixture->memory.shard);
	free(fixture->memory.pages);
	free(fixture->memory.rules);
	for (char name = 'a'; name <= 'e'; name++) {
		snprintf(path, sizeof(path), "%s/%c", fixture->directory, name);
		unlink(path);
	}
	assert_int_equal(rmdir(fixture->directory), 0);
	free(fixture);
	return 0;
}

/* A library whose whole text is one function: CFA = rsp + 24.  build_id: 8 bytes, NULL: none. */
static void build_library(struct fixture *fixture, const char *build_id)
{
	static const char empty_fde[] = "\x0e\x18";
	struct frame_builder frame = {0};
	size_t cie = CIE(&frame, X86_CIE);
	Elf64_Ehdr *header = (Elf64_Ehdr *)fixture->elf.data;
	Elf64_Phdr *program = (Elf64_Phdr *)(fixture->elf.data + sizeof(*header));
	struct {
		Elf64_Nhdr header;
		char name[4], bytes[8];
	} note = {.header = {.n_namesz = 4, .n_descsz = 8, .n_type = NT_GNU_BUILD_ID},
		  .name = "GNU"};

	put_fde(&frame, cie, BUILT_TEXT, 0x10000, empty_fde, sizeof(empty_fde) - 1);
	build_elf(&fixture->elf, EM_X86_64, NULL, 0, ".eh_frame", frame.data, frame.size);
	if (!build_id)
		return;
	memcpy(note.bytes, build_id, sizeof(note.bytes));
	memcpy(fixture->elf.data + NOTE, &note, sizeof(note));
	program[1] = (Elf64_Phdr){.p_type = PT_NOTE,
				  .p_flags = PF_R,
				  .p_offset = NOTE,
				  .p_vaddr = NOTE,
				  .p_filesz = sizeof(note),
				  .p_memsz = sizeof(note),
				  .p_align = 4};
	header->e_phnum = 2;
}

/* Writes the bytes to file `name` and describes a mapping of it as the kernel would. */
static struct mapping mapping_of(struct fixture *fixture, char name, const void *bytes, size_t size,
				 char path[PATH_MAX])
{
	struct mapping mapping = {.start = 0x7f0000000000, .end = 0x7f0000030000};
	struct stat stat;
	int fd;

	snprintf(path, PATH_MAX, "%s/%c", fixture->directory, name);
	fd = open(path, O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, bytes, size), (ssize_t)size);
	assert_int_equal(fstat(fd, &stat), 0);
	close(fd);
	mapping.path = path;
	mapping.key.major = major(stat.st_dev);
	mapping.key.minor = minor(stat.st_dev);
	mapping.key.inode = stat.st_ino;
	return mapping;
}

static struct file *get(struct fixture *fixture, const struct mapping *mapping)
{
	struct file *file = NULL;

	assert_int_equal(file_table_get(fixture->table, &fixture->process, mapping, &file), 0);
	return file;
}

/* A file with code and rows, mapped for the first time: fixture->path and fixture->mapping. */
static struct file *get_library(struct fixture *fixture)
{
	build_library(fixture, NULL);
	fixture->mapping = mapping_of(fixture, 'a', fixture->elf.data, BUILT_SIZE, fixture->path);
	return get(fixture, &fixture->mapping);
}

static struct file_table_stats stats_of(const struct fixture *fixture)
{
	struct file_table_stats stats;

	file_table_get_stats(fixture->table, &stats);
	return stats;
}

/* ---- identity ---- */

static void file_table_get__new_file_is_compiled_whole(void **state)
{
	struct fixture *fixture = *state;
	struct pp_rule rule;
	struct file *file;

	file = get_library(fixture);
	assert_non_null(file);
	assert_int_equal(file->error, 0);
	assert_true(file->id >= PP_FILE_FIRST);
	assert_true(file->has_pages);
	assert_true(file->is_whole);
	assert_false(file->is_giant);
	assert_string_equal(file->path, fixture->path);
	assert_int_equal(file->segment_count, 1);
	assert_int_equal(file->max_vaddr, BUILT_SIZE);
	for (uint64_t page = 0; page < BUILT_SIZE >> PP_PAGE_SHIFT; page++)
		assert_true(PP_PAGE_FLAGS(fixture->memory.pages[(uint32_t)(file->page0 + page)]) &
			    PP_PAGE_LOADED);
	assert_int_equal(file_rule_at(fixture->table, file, BUILT_TEXT + 5, &rule), 0);
	assert_int_equal(rule.kind, PP_RULE_CFA_SP);
	assert_int_equal(rule.cfa_offset, 24);
	assert_ptr_equal(file_table_find(fixture->table, file->id), file);
	assert_null(file_table_find(fixture->table, file->id + 1));
	assert_null(file_table_find(fixture->table, PP_FILE_ANONYMOUS));
	assert_int_equal(stats_of(fixture).files, 1);
}

/* 2,000 program headers of notes, each of 5,000 empty ones. */
static void file_table_get__file_that_takes_too_much_work_is_refused_for_good(void **state)
{
	struct fixture *fixture = *state;
	Elf64_Ehdr *header = (Elf64_Ehdr *)fixture->elf.data;
	Elf64_Phdr *program = (Elf64_Phdr *)(fixture->elf.data + BUILT_TEXT);
	char path[PATH_MAX];
	struct mapping mapping;
	struct pp_rule rule;
	struct file *file;

	build_elf(&fixture->elf, EM_X86_64, NULL, 0, ".eh_frame", NULL, 0);
	program[0] = *(Elf64_Phdr *)(fixture->elf.data + sizeof(*header));
	header->e_phoff = BUILT_TEXT;
	header->e_phnum = 2000;
	for (size_t i = 1; i < header->e_phnum; i++)
		program[i] = (Elf64_Phdr){.p_type = PT_NOTE,
					  .p_offset = BUILT_FRAME,
					  .p_filesz = BUILT_TEXT - BUILT_FRAME};
	mapping = mapping_of(fixture, 'a', fixture->elf.data, BUILT_SIZE, path);
	file = get(fixture, &mapping);
	assert_true(file->is_refused);
	assert_int_equal(stats_of(fixture).refused, 1);
	/* It is not parsed again, and asking for its rows is harmless. */
	assert_int_equal(file_rule_at(fixture->table, file, BUILT_TEXT, &rule), 0);
	assert_int_equal(rule.kind, PP_RULE_NO_INFO);
	assert_ptr_equal(get(fixture, &mapping), file);
	assert_int_equal(stats_of(fixture).refused, 1);
}

static void file_table_get__same_inode_is_one_file(void **state)
{
	struct fixture *fixture = *state;
	struct file *file;

	file = get_library(fixture);
	fixture->mapping.start += 0x100000;
	assert_ptr_equal(get(fixture, &fixture->mapping), file);
	assert_int_equal(stats_of(fixture).created, 1);
}

/* Another inode with the same bytes takes the file's place. */
static struct mapping replaced(struct fixture *fixture, char name, char path[PATH_MAX])
{
	struct mapping mapping = mapping_of(fixture, 'e', fixture->elf.data, BUILT_SIZE, path);
	char wanted[PATH_MAX];

	snprintf(wanted, sizeof(wanted), "%s/%c", fixture->directory, name);
	assert_int_equal(rename(path, wanted), 0);
	strcpy(path, wanted);
	return mapping;
}

/* Containers of one image have such files. */
static void file_table_get__equal_files_under_one_path_are_one(void **state)
{
	struct fixture *fixture = *state;
	char path[PATH_MAX];
	struct mapping a, b;
	struct file *file;

	build_library(fixture, "\1\2\3\4\5\6\7\10");
	a = mapping_of(fixture, 'a', fixture->elf.data, BUILT_SIZE, path);
	file = get(fixture, &a);
	assert_int_equal(file->build_id_size, 8);
	b = replaced(fixture, 'a', path);
	assert_int_not_equal(a.key.inode, b.key.inode);
	assert_ptr_equal(get(fixture, &b), file);
	/* From now on by its number alone. */
	assert_int_equal(unlink(path), 0);
	assert_ptr_equal(get(fixture, &b), file);
	assert_int_equal(stats_of(fixture).open_failures, 0);
	assert_int_equal(stats_of(fixture).files, 1);
	/* ... which may be another's after a time. */
	file->references = 1;
	file_table_tidy(fixture->table, UINT64_MAX);
	assert_ptr_equal(get(fixture, &a), file);
	assert_ptr_not_equal(get(fixture, &b), file);
}

static void file_table_get__equal_files_under_other_paths_share_rows_alone(void **state)
{
	struct fixture *fixture = *state;
	char path_a[PATH_MAX], path_b[PATH_MAX];
	struct mapping a, b;
	struct file *first, *second;
	uint32_t id;

	build_library(fixture, "\1\2\3\4\5\6\7\10");
	a = mapping_of(fixture, 'a', fixture->elf.data, BUILT_SIZE, path_a);
	b = mapping_of(fixture, 'b', fixture->elf.data, BUILT_SIZE, path_b);
	first = get(fixture, &a);
	second = get(fixture, &b);
	assert_ptr_not_equal(first, second);
	assert_string_equal(second->path, path_b);
	assert_int_equal(second->page0, first->page0);
	assert_true(second->has_pages && second->is_whole);
	/* The rows stay as long as anybody uses them. */
	id = first->id;
	second->references = 1;
	file_table_tidy(fixture->table, UINT64_MAX);
	assert_ptr_equal(file_table_find(fixture->table, id), first);
	assert_int_equal(file_table_load_at(fixture->table, second, BUILT_TEXT), 0);
	second->references = 0;
	file_table_tidy(fixture->table, UINT64_MAX);
	file_table_tidy(fixture->table, UINT64_MAX);
	assert_int_equal(stats_of(fixture).files, 0);
}

/* It would keep the build-id from a file of which rows can be shared. */
static void file_table_get__file_that_all_may_write_stands_for_none(void **state)
{
	struct fixture *fixture = *state;
	char path[3][PATH_MAX];
	struct file *file[3];

	build_library(fixture, "\1\2\3\4\5\6\7\10");
	for (int i = 0; i < 3; i++) {
		struct mapping mapping = mapping_of(fixture, (char)('a' + i), fixture->elf.data,
						    BUILT_SIZE, path[i]);

		assert_int_equal(chmod(path[i], i ? 0600 : 0666), 0);
		file[i] = get(fixture, &mapping);
	}
	assert_int_not_equal(file[1]->page0, file[0]->page0);
	assert_int_equal(file[2]->page0, file[1]->page0);
}

static void file_table_get__one_inode_under_two_paths_shares_rows_alone(void **state)
{
	struct fixture *fixture = *state;
	char path_a[PATH_MAX], path_b[PATH_MAX];
	struct mapping a, b;
	struct file *first, *second;

	build_library(fixture, NULL);
	a = mapping_of(fixture, 'a', fixture->elf.data, BUILT_SIZE, path_a);
	snprintf(path_b, sizeof(path_b), "%s/b", fixture->directory);
	assert_int_equal(link(path_a, path_b), 0);
	b = a;
	b.path = path_b;
	first = get(fixture, &a);
	second = get(fixture, &b);
	assert_ptr_not_equal(first, second);
	assert_string_equal(second->path, path_b);
	assert_int_equal(second->page0, first->page0);
	assert_ptr_equal(get(fixture, &a), first);
	assert_ptr_equal(get(fixture, &b), second);
}

/* What a file says of itself proves nothing. */
static void file_table_get__forged_build_id_is_another_file(void **state)
{
	struct fixture *fixture = *state;
	char path[PATH_MAX];
	struct mapping forged, real;
	struct file *first, *second;

	build_library(fixture, "\1\2\3\4\5\6\7\10");
	fixture->elf.data[BUILT_TEXT + 64] ^= 1;
	forged = mapping_of(fixture, 'a', fixture->elf.data, BUILT_SIZE, path);
	first = get(fixture, &forged);
	fixture->elf.data[BUILT_TEXT + 64] ^= 1;
	real = replaced(fixture, 'a', path);
	second = get(fixture, &real);
	assert_ptr_not_equal(first, second);
	assert_int_not_equal(first->page0, second->page0);
	assert_null(second->rows_of);
	/* An inode that shows another one's number is not taken for it either. */
	real.key.inode = forged.key.inode;
	assert_ptr_equal(get(fixture, &real), first);
}

/* Whoever owns a file may change it later. */
static void file_table_get__equal_file_of_another_user_stands_for_none(void **state)
{
	struct fixture *fixture = *state;
	char path_a[PATH_MAX], path_b[PATH_MAX], path_c[PATH_MAX];
	struct mapping a, b, c;
	struct file *nobodys, *roots, *copy;

	if (getuid()) {
		print_message("skipped: only root can give files away\n");
		skip();
	}
	build_library(fixture, "\1\2\3\4\5\6\7\10");
	a = mapping_of(fixture, 'a', fixture->elf.data, BUILT_SIZE, path_a);
	assert_int_equal(chown(path_a, 65534, 65534), 0);
	nobodys = get(fixture, &a);
	b = mapping_of(fixture, 'b', fixture->elf.data, BUILT_SIZE, path_b);
	roots = get(fixture, &b);
	assert_null(roots->rows_of);
	assert_int_not_equal(roots->page0, nobodys->page0);
	/* Root's stands for the others, whoever came first. */
	c = mapping_of(fixture, 'c', fixture->elf.data, BUILT_SIZE, path_c);
	assert_int_equal(chown(path_c, 65533, 65533), 0);
	copy = get(fixture, &c);
	assert_ptr_equal(copy->rows_of, roots);
	/* Everybody's stands for none. */
	c = mapping_of(fixture, 'd', fixture->elf.data, BUILT_SIZE, path_c);
	assert_int_equal(chmod(path_c, 0666), 0);
	assert_null(get(fixture, &c)->rows_of);
}

static void file_table_get__other_build_ids_are_other_files(void **state)
{
	struct fixture *fixture = *state;
	char path_a[PATH_MAX], path_b[PATH_MAX];
	struct mapping a, b;

	build_library(fixture, "\1\2\3\4\5\6\7\10");
	a = mapping_of(fixture, 'a', fixture->elf.data, BUILT_SIZE, path_a);
	build_library(fixture, "\1\2\3\4\5\6\7\11");
	b = mapping_of(fixture, 'b', fixture->elf.data, BUILT_SIZE, path_b);
	assert_ptr_not_equal(get(fixture, &a), get(fixture, &b));
	assert_int_equal(stats_of(fixture).files, 2);
	assert_int_not_equal(get(fixture, &a)->page0, get(fixture, &b)->page0);
}

static void file_table_get__anonymous_memory_has_no_file(void **state)
{
	struct fixture *fixture = *state;
	const struct mapping mapping = {.start = 0x1000, .end = 0x2000, .path = ""};
	struct file *file = (struct file *)fixture;

	assert_int_equal(file_table_get(fixture->table, &fixture->process, &mapping, &file), 0);
	assert_null(file);
}

static void file_table_get__vdso_is_one_file_with_rows(void **state)
{
	struct fixture *fixture = *state;
	const struct mapping mapping = {
		.start = 0x7fff00001000, .end = 0x7fff00003000, .path = "[vdso]"};
	struct file *file = get(fixture, &mapping);

	assert_non_null(file);
	assert_ptr_equal(get(fixture, &mapping), file);
	assert_int_equal(file->error, 0);
	assert_true(file->has_pages);
	/* It is never forgotten: nothing could be opened again. */
	file_table_tidy(fixture->table, UINT64_MAX);
	assert_ptr_equal(file_table_find(fixture->table, file->id), file);
}

/* ---- what users share ---- */

/* Maps different files until one gets no pages. */
static struct file *map_until_refused(struct fixture *fixture, struct mapping *ret_mapping,
				      char path[PATH_MAX])
{
	for (uint8_t i = 0; i < PAGES; i++) {
		struct file *file;

		fixture->elf.data[BUILT_TEXT + 64] = i;
		fixture->elf.data[NOTE + 16] = i; /* its build-id */
		*ret_mapping = replaced(fixture, 'a', path);
		file = get(fixture, ret_mapping);
		file->references = 1;
		if (!file->has_pages)
			return file;
	}
	fail_msg("no file was refused");
	return NULL;
}

static void file_table_get__users_excess_is_that_users_loss(void **state)
{
	struct fixture *fixture = *state;
	char path[PATH_MAX];
	struct mapping mapping;
	struct file *file;

	build_library(fixture, NULL);
	fake_user = 1000;
	file = map_until_refused(fixture, &mapping, path);
	assert_int_equal(file->error, -EDQUOT);
	/* Half of 63 pages, 3 a file. */
	assert_int_equal(stats_of(fixture).files, 11);
	assert_int_equal(stats_of(fixture).text_refused, 1);
	assert_false(get(fixture, &mapping)->has_pages);
	/* The same file, mapped by somebody else. */
	fake_user = 1001;
	assert_ptr_equal(get(fixture, &mapping), file);
	assert_true(file->has_pages && file->is_whole);
	assert_int_equal(file->error, 0);
	fake_user = 1000;
	assert_true(get(fixture, &mapping)->has_pages);
}

static void file_table_get__copy_of_a_refused_file_is_not_lost_for_others(void **state)
{
	struct fixture *fixture = *state;
	char path[PATH_MAX];
	struct mapping mapping;
	struct file *file, *copy;

	build_library(fixture, "\1\2\3\4\5\6\7\10");
	fake_user = 1000;
	file = map_until_refused(fixture, &mapping, path);
	fake_user = 1001;
	mapping = mapping_of(fixture, 'b', fixture->elf.data, BUILT_SIZE, path);
	copy = get(fixture, &mapping);
	assert_ptr_equal(copy->rows_of, file);
	assert_true(copy->has_pages && file->has_pages);
	assert_int_equal(copy->page0, file->page0);
}

/* A file says that its code spans terabytes. */
static void file_table_get__code_that_is_a_hole_gets_no_pages(void **state)
{
	struct fixture *fixture = *state;
	Elf64_Phdr *program = (Elf64_Phdr *)(fixture->elf.data + sizeof(Elf64_Ehdr));
	char path[PATH_MAX];
	struct mapping mapping;
	struct file *file;

	build_library(fixture, NULL);
	program->p_memsz = 1ULL << 40;
	mapping = mapping_of(fixture, 'a', fixture->elf.data, BUILT_SIZE, path);
	file = get(fixture, &mapping);
	assert_int_equal(file->error, 0);
	assert_int_equal(file->max_vaddr, BUILT_SIZE);
	program->p_filesz = 1 << 30;
	mapping = mapping_of(fixture, 'c', fixture->elf.data, BUILT_SIZE, path);
	assert_int_equal(truncate(path, 1 << 30), 0);
	file = get(fixture, &mapping);
	assert_int_equal(file->error, -EFBIG);
	assert_false(file->has_pages);
	assert_int_equal(stats_of(fixture).text_refused, 1);
	/* It is the file's fault: nobody has it tried again. */
	fake_user = 1001;
	assert_false(get(fixture, &mapping)->has_pages);
	assert_int_equal(stats_of(fixture).text_refused, 1);
}

/* ---- files that cannot be used ---- */

static void file_table_get__file_that_is_gone_is_a_file_without_rows(void **state)
{
	struct fixture *fixture = *state;
	const struct mapping mapping = {.start = 0x1000,
					.end = 0x2000,
					.path = "/nowhere/lib.so",
					.key = {.major = 8, .minor = 1, .inode = 123}};
	struct file *file = get(fixture, &mapping);
	struct pp_rule rule;

	assert_non_null(file);
	assert_int_equal(file->opened.fd, -1);
	assert_false(file->has_pages);
	assert_int_not_equal(file->error, 0);
	assert_int_equal(stats_of(fixture).open_failures, 1);
	assert_int_equal(file_table_load_at(fixture->table, file, 0x1000), -ENODATA);
	assert_int_equal(file_rule_at(fixture->table, file, 0x1000, &rule), 0);
	assert_int_equal(rule.kind, PP_RULE_NO_INFO);
	/* Not tried again for each mapping. */
	assert_ptr_equal(get(fixture, &mapping), file);
	assert_int_equal(stats_of(fixture).open_failures, 1);
}

static void file_table_get__file_that_can_be_opened_later_is_examined_then(void **state)
{
	struct fixture *fixture = *state;
	char path[PATH_MAX], away[PATH_MAX];
	struct mapping mapping;
	struct file *file;

	build_library(fixture, NULL);
	mapping = mapping_of(fixture, 'a', fixture->elf.data, BUILT_SIZE, path);
	/* Seen first in a process that is gone. */
	snprintf(away, sizeof(away), "%s/b", fixture->directory);
	assert_int_equal(rename(path, away), 0);
	file = get(fixture, &mapping);
	assert_false(file->has_pages);
	assert_int_equal(rename(away, path), 0);
	assert_ptr_equal(get(fixture, &mapping), file);
	assert_int_equal(file->error, 0);
	assert_true(file->is_whole);
}

/* ---- numbers that several files may have (btrfs) ---- */

/* Two files under one path and, as the kernel shows it, under one number: `a` is known, and the
 * path leads to the second now. */
static struct file *know_first_of_two(struct fixture *fixture, char path[PATH_MAX],
				      struct mapping *mapping)
{
	char away[PATH_MAX];
	struct file *first;

	build_library(fixture, NULL);
	*mapping = mapping_of(fixture, 'a', fixture->elf.data, BUILT_SIZE, path);
	first = get(fixture, mapping);
	assert_true(first->opened.fd >= 0);
	snprintf(away, sizeof(away), "%s/b", fixture->directory);
	assert_int_equal(rename(path, away), 0);
	return first;
}

static void file_table_get__numbers_are_believed_without_a_look(void **state)
{
	struct fixture *fixture = *state;
	char path[PATH_MAX];
	struct mapping mapping;
	struct file *first = know_first_of_two(fixture, path, &mapping);

	mapping_of(fixture, 'a', "another file", 12, path);
	assert_ptr_equal(get(fixture, &mapping), first);
}

static void file_table_get__live_programs_numbers_on_btrfs_are_looked_at(void **state)
{
	struct fixture *fixture = *state;
	char path[PATH_MAX];
	struct mapping mapping;
	struct file *first;

	fake_is_btrfs = true;
	build_library(fixture, NULL);
	mapping = mapping_of(fixture, 'a', fixture->elf.data, BUILT_SIZE, path);
	first = get(fixture, &mapping);
	/* By the numbers alone another user's file would be refused. */
	first->identity.owner = 1000;
	fixture->process.uid = 1001;
	assert_ptr_equal(get(fixture, &mapping), first);
	assert_int_equal(stats_of(fixture).open_failures, 0);
}

static void file_table_get__ended_programs_btrfs_numbers_name_its_users_and_roots_files(
	void **state)
{
	static const struct {
		uint32_t owner, user;
		bool is_named;
	} cases[] = {{0, 1000, true}, {1000, 1000, true}, {1000, 1001, false}, {1000, 0, false}};
	struct fixture *fixture = *state;
	char path[PATH_MAX];
	struct mapping mapping;
	struct file *first = know_first_of_two(fixture, path, &mapping), *found;

	fake_is_btrfs = true;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		first->identity.owner = cases[i].owner;
		fixture->process.uid = cases[i].user;
		found = get(fixture, &mapping);
		assert_int_equal(found == first, cases[i].is_named);
		assert_string_equal(found->path, path);
		assert_int_equal(found->has_pages, cases[i].is_named);
	}
	assert_int_equal(stats_of(fixture).open_failures, 2);
}

static void file_table_get__file_opened_later_on_btrfs_is_not_that_of_an_ended_program(void **state)
{
	struct fixture *fixture = *state;
	char path[PATH_MAX], away[PATH_MAX];
	struct mapping mapping;
	struct file *ended, *later;

	fake_is_btrfs = true;
	build_library(fixture, NULL);
	mapping = mapping_of(fixture, 'a', fixture->elf.data, BUILT_SIZE, path);
	snprintf(away, sizeof(away), "%s/b", fixture->directory);
	assert_int_equal(rename(path, away), 0);
	ended = get(fixture, &mapping);
	assert_int_equal(rename(away, path), 0);
	assert_int_equal(chown(path, 1000, 1000), 0);
	later = get(fixture, &mapping);
	assert_ptr_not_equal(later, ended);
	assert_int_equal(ended->opened.fd, -1);
	assert_true(later->is_whole);
	assert_ptr_equal(get(fixture, &mapping), later);
}

/* ---- closed files ---- */

static void close_unused(struct fixture *fixture)
{
	OWNED_MEM uint64_t *slots = calloc(FILE_SLOTS / 64, sizeof(*slots));

	assert_non_null(slots);
	if (file_table_find_unused(fixture->table, UINT64_MAX, slots))
		file_table_close(fixture->table, slots);
}

static void file_table_close__file_is_the_same_when_it_is_mapped_again(void **state)
{
	struct fixture *fixture = *state;
	struct file *file;
	OWNED_FD int fd = -1;

	file = get_library(fixture);
	file->references = 1;
	close_unused(fixture);
	assert_true(file->opened.fd >= 0);
	file->references = 0;
	close_unused(fixture);
	assert_int_equal(file->opened.fd, -1);
	/* For names, and for a process. */
	assert_int_equal(file_table_descriptor(fixture->table, file, &fd), 0);
	assert_true(file->opened.fd >= 0);
	close_unused(fixture);
	assert_int_equal(file->opened.fd, -1);
	assert_ptr_equal(get(fixture, &fixture->mapping), file);
	assert_true(file->opened.fd >= 0);
	assert_int_equal(stats_of(fixture).lost, 0);
	assert_int_equal(stats_of(fixture).created, 1);
}

static void file_table_close__file_that_was_replaced_is_another_one(void **state)
{
	struct fixture *fixture = *state;
	struct file *file;
	OWNED_FD int fd = -1;

	file = get_library(fixture);
	close_unused(fixture);
	assert_int_equal(unlink(fixture->path), 0);
	assert_int_equal(file_table_descriptor(fixture->table, file, &fd), -ESTALE);
	assert_int_equal(stats_of(fixture).lost, 1);
	build_library(fixture, "\1\2\3\4\5\6\7\10");
	fixture->mapping = mapping_of(fixture, 'a', fixture->elf.data, BUILT_SIZE, fixture->path);
	assert_ptr_not_equal(get(fixture, &fixture->mapping), file);
}

/* Its program has ended, and its file cannot be found from here. */
static void file_table_close__numbers_with_a_generation_are_believed(void **state)
{
	struct fixture *fixture = *state;
	char path[PATH_MAX];
	struct mapping mapping, bare;
	struct file *file;

	build_library(fixture, NULL);
	bare = mapping_of(fixture, 'a', fixture->elf.data, BUILT_SIZE, path);
	mapping = bare;
	file = get(fixture, &bare);
	mapping.key.inode_generation = file->identity.key.inode_generation;
	if (!mapping.key.inode_generation) {
		print_message("skipped: this file system has no generations\n");
		skip();
	}
	assert_ptr_equal(get(fixture, &mapping), file);
	close_unused(fixture);
	assert_int_equal(unlink(path), 0);
	assert_ptr_equal(get(fixture, &mapping), file);
	assert_ptr_not_equal(get(fixture, &bare), file);
}

static void file_table_get__what_is_no_elf_file_has_no_rows(void **state)
{
	struct fixture *fixture = *state;
	char path[PATH_MAX];
	struct mapping mapping = mapping_of(fixture, 'a', "#!/bin/sh\n", 10, path);
	struct file *file = get(fixture, &mapping);

	assert_non_null(file);
	assert_false(file->has_pages);
	assert_int_equal(file->error, -ENOEXEC);
	assert_ptr_equal(get(fixture, &mapping), file);
}

static void file_table_get__code_without_unwind_information_is_no_info(void **state)
{
	struct fixture *fixture = *state;
	char path[PATH_MAX];
	struct mapping mapping;
	struct pp_rule rule;
	struct file *file;

	build_library(fixture, NULL);
	((Elf64_Ehdr *)fixture->elf.data)->e_shnum = 0;
	((Elf64_Ehdr *)fixture->elf.data)->e_shoff = 0;
	mapping = mapping_of(fixture, 'a', fixture->elf.data, BUILT_SIZE, path);
	file = get(fixture, &mapping);
	assert_int_equal(file->error, 0);
	assert_true(file->has_pages);
	assert_true(PP_PAGE_FLAGS(fixture->memory.pages[file->page0]) & PP_PAGE_LOADED);
	assert_int_equal(file_rule_at(fixture->table, file, BUILT_TEXT, &rule), 0);
	assert_int_equal(rule.kind, PP_RULE_NO_INFO);
}

static void file_table_get__file_beyond_the_pages_is_kept_without_them(void **state)
{
	struct fixture *fixture = *state;
	char path[PATH_MAX];
	struct mapping mapping;
	const size_t size = (PAGES + 1ULL) << PP_PAGE_SHIFT;
	OWNED_MEM uint8_t *large = calloc(1, size);
	Elf64_Phdr *program;
	struct file *file;

	build_library(fixture, NULL);
	program = (Elf64_Phdr *)(fixture->elf.data + sizeof(Elf64_Ehdr));
	program[0].p_filesz = program[0].p_memsz = size;
	memcpy(large, fixture->elf.data, BUILT_SIZE);
	mapping = mapping_of(fixture, 'a', large, size, path);
	file = get(fixture, &mapping);
	assert_non_null(file);
	assert_false(file->has_pages);
	assert_int_equal(file->error, -ENOSPC);
}

/* ---- interpreters ---- */

static void file_table_get__interpreter_with_a_number_is_not_forgotten(void **state)
{
	struct fixture *fixture = *state;
	struct file *file;

	fake_python_answer = 0;
	file = get_library(fixture);
	assert_non_null(file->python);
	assert_int_equal(stats_of(fixture).interpreters, 1);
	file->python_index = 1; /* a slot of pythons[], which records name */
	file_table_tidy(fixture->table, UINT64_MAX);
	assert_ptr_equal(get(fixture, &fixture->mapping), file);
}

static void file_table_get__unreadable_interpreter_has_its_reason(void **state)
{
	struct fixture *fixture = *state;
	struct file *file;

	fake_python_answer = -ENOTSUP;
	fake_python_reason = "Python 3.5 is not supported";
	file = get_library(fixture);
	assert_null(file->python);
	assert_string_equal(file->python_reason, "Python 3.5 is not supported");
	assert_int_equal(stats_of(fixture).interpreters, 0);
}

/* ---- load bias ---- */

static void file_bias__follows_the_segment_of_the_offset(void **state)
{
	struct file file = {
		.segment_count = 2,
		.segment = {{.vaddr = 0x401000, .offset = 0x1000, .file_size = 0x5000},
			    /* address and offset differ by 0x1000, as lld lays files out */
			    {.vaddr = 0x408600, .offset = 0x7600, .file_size = 0x2000}},
	};
	struct mapping mapping = {.start = 0x401000, .offset = 0x1000};

	(void)state;
	assert_int_equal(file_bias(&file, &mapping), 0); /* ET_EXEC */
	mapping = (struct mapping){.start = 0x7f0000001000, .offset = 0x1000};
	assert_int_equal(file_bias(&file, &mapping), 0x7f0000001000 - 0x401000);
	/* The kernel maps whole pages: offset 0x7000 holds the segment at 0x7600. */
	mapping = (struct mapping){.start = 0x7f0000008000, .offset = 0x7000};
	assert_int_equal(file_bias(&file, &mapping), 0x7f0000008000 - 0x408000);
	/* A part of a segment that was split by mprotect. */
	mapping = (struct mapping){.start = 0x7f0000003000, .offset = 0x3000};
	assert_int_equal(file_bias(&file, &mapping), 0x7f0000003000 - 0x403000);
	/* In no segment: as if addresses were offsets. */
	mapping = (struct mapping){.start = 0x7f0000100000, .offset = 0x90000};
	assert_int_equal(file_bias(&file, &mapping), 0x7f0000100000 - 0x90000);
}

/* One page of the file holds the end of a segment and the beginning of the next. */
static void file_bias__shared_page_belongs_to_the_segment_that_begins_there(void **state)
{
	const struct file file = {
		.segment_count = 2,
		.segment = {{.vaddr = 0x1000, .offset = 0x1000, .file_size = 0x1800},
			    {.vaddr = 0x4800, .offset = 0x2800, .file_size = 0x1000}},
	};
	const struct mapping first = {.start = 0x7f0000001000, .offset = 0x1000};
	const struct mapping second = {.start = 0x7f0000004000, .offset = 0x2000};

	(void)state;
	assert_int_equal(file_bias(&file, &first), 0x7f0000000000);
	assert_int_equal(file_bias(&file, &second), 0x7f0000000000);
}

/* ---- rows on demand, forgetting ---- */

static void load_at__address_outside_of_the_file_is_no_data(void **state)
{
	struct fixture *fixture = *state;
	struct file *file;

	file = get_library(fixture);
	assert_int_equal(file_table_load_at(fixture->table, file, BUILT_SIZE), -ENODATA);
	assert_int_equal(file_table_load_at(fixture->table, file, UINT64_MAX), -ENODATA);
	assert_int_equal(file_table_load_at(fixture->table, file, BUILT_TEXT), 0);
}

static void load_at__evicted_page_comes_back(void **state)
{
	struct fixture *fixture = *state;
	uint64_t *page;
	struct file *file;

	file = get_library(fixture);
	page = &fixture->memory.pages[file->page0 + (BUILT_TEXT >> PP_PAGE_SHIFT)];
	*page = 0;
	assert_int_equal(file_table_load_at(fixture->table, file, BUILT_TEXT + 100), 0);
	assert_true(PP_PAGE_FLAGS(*page) & PP_PAGE_LOADED);
}

static uint64_t asked(const struct fixture *fixture, enum foreign_kind kind)
{
	struct foreign_stats stats;

	foreign_get_stats(fixture->foreign, &stats);
	return stats.count[kind];
}

static void file_table_get__small_program_is_asked_about_once(void **state)
{
	struct fixture *fixture = *state;
	struct file *file;

	file = get_library(fixture);
	assert_true(file->is_whole);
	assert_int_equal(asked(fixture, FOREIGN_EXAMINE), 1);
	assert_int_equal(asked(fixture, FOREIGN_ROWS), 0);
	/* The next process brings no question. */
	assert_ptr_equal(get(fixture, &fixture->mapping), file);
	assert_int_equal(asked(fixture, FOREIGN_EXAMINE), 1);
}

/* One user's files take the child all of his share of its time; another user's are read meanwhile,
 * and so is the first one's where another user maps it. */
static void file_table_get__users_files_put_off_his_own_alone(void **state)
{
	struct fixture *fixture = *state;
	struct foreign_stats stats;
	char path[5][PATH_MAX];
	struct mapping mapping[5];
	struct file *file;

	build_library(fixture, NULL);
	for (int i = 0; i < 5; i++) {
		mapping[i] = mapping_of(fixture, (char)('a' + i), fixture->elf.data, BUILT_SIZE,
					path[i]);
		/* Root's files are parsed for all. */
		if (!getuid())
			assert_int_equal(chown(path[i], 12345, 12345), 0);
	}
	fake_user = 1000;
	here_question_ns = USER_TIME_BURST_NS / 4 * 3;
	for (int i = 0; i < 2; i++)
		assert_int_equal(get(fixture, &mapping[i])->error, 0);
	file = get(fixture, &mapping[2]);
	assert_int_equal(file->error, -EAGAIN);
	assert_true(file->unread_ns);
	assert_int_equal(get(fixture, &mapping[3])->error, -EAGAIN);
	assert_int_equal(stats_of(fixture).refused, 0); /* nobody has given them up */
	foreign_get_stats(fixture->foreign, &stats);
	assert_int_equal(stats.put_off, 2);
	assert_int_equal(stats.none, 0);
	fake_user = 1001;
	assert_int_equal(get(fixture, &mapping[4])->error, 0);
	assert_ptr_equal(get(fixture, &mapping[2]), file);
	assert_int_equal(file->error, 0);
	assert_true(file->is_whole || file->rows_of);
	here_question_ns = 0;
}

/* A machine that stood still for a moment must not cost a library its rows for good. */
static void file_table_get__file_at_which_the_child_was_late_is_asked_about_again(void **state)
{
	struct fixture *fixture = *state;
	char path[PATH_MAX];
	struct mapping mapping;
	struct file *file;

	build_library(fixture, NULL);
	mapping = mapping_of(fixture, 'a', fixture->elf.data, BUILT_SIZE, path);
	here_lates = 1;
	file = get(fixture, &mapping);
	assert_int_equal(file->error, -ETIMEDOUT);
	assert_false(file->is_refused);
	assert_true(file->unread_ns);
	assert_int_equal(stats_of(fixture).refused, 1);
	assert_false(file_table_is_due(fixture->table, file->unread_ns + NS_PER_SEC - 1));
	assert_true(file_table_is_due(fixture->table, file->unread_ns + NS_PER_SEC));
	assert_false(file_table_is_due(fixture->table, file->unread_ns + NS_PER_SEC)); /* told */
	/* The child is not asked about it for a while; then it is. */
	file->unread_ns -= NS_PER_SEC;
	assert_ptr_equal(get(fixture, &mapping), file);
	assert_int_equal(asked(fixture, FOREIGN_EXAMINE), 1);
	assert_true(file_table_is_due(fixture->table, file->unread_ns + NS_PER_SEC));
	assert_int_equal(stats_of(fixture).refused, 1);
}

static void file_facts_soften__is_so_for_the_first_times(void **state)
{
	struct file file = {};

	(void)state;
	assert_int_equal(file_facts_soften(&file, 0), 0);
	assert_int_equal(file_facts_soften(&file, -E2BIG), -E2BIG);
	for (unsigned int i = 0; i < FILE_LATES_MAX; i++)
		assert_int_equal(file_facts_soften(&file, -ETIME), -ETIMEDOUT);
	assert_int_equal(file_facts_soften(&file, -ETIME), -ETIME);
	assert_true(file_facts_are_refused(-ETIME));
}

/* Rows for *step bytes each. */
static int many_rows(void *step, uint64_t low, uint64_t high, struct cfi_rows *rows)
{
	const uint64_t bytes = *(const uint64_t *)step;
	const size_t count = (high - low) / bytes;

	rows->row = realloc(rows->row, count * sizeof(*rows->row));
	assert_non_null(rows->row);
	rows->count = rows->capacity = count;
	for (size_t i = 0; i < count; i++)
		rows->row[i] = (struct cfi_row){.vaddr = low + bytes * i,
						.rule = {.kind = PP_RULE_CFA_SP,
							 .cfa_offset = 8 * (int)(i % 2)}};
	return 0;
}

/* Fills the row space with pages of 32,768, then of 1,024 rows, then of a granule. */
static void fill_rows(struct fixture *fixture)
{
	static const uint64_t step[] = {2, 64, 1024};
	const uint64_t pages = PAGES - 4;
	uint32_t page0;

	assert_int_equal(row_store_add_file(fixture->store, 0, 0, pages << PP_PAGE_SHIFT, &page0),
			 0);
	for (size_t i = 0; i < ARRAY_SIZE(step); i++) {
		const struct row_source source = {.rows = many_rows, .context = (void *)&step[i]};
		uint64_t page = 0;

		while (page < pages &&
		       !row_store_load(fixture->store, page0, &source, page << PP_PAGE_SHIFT,
				       (page << PP_PAGE_SHIFT) + 1))
			page++;
		assert_true(page < pages);
	}
}

/* As while the frames of deep stacks are looked up. */
static void rule_at__code_without_room_is_asked_about_once(void **state)
{
	struct fixture *fixture = *state;
	struct pp_rule rule;
	struct file *file;

	file = get_library(fixture);
	fixture->memory.pages[file->page0 + (BUILT_TEXT >> PP_PAGE_SHIFT)] = 0;
	fill_rows(fixture);
	for (int i = 0; i < 100; i++) {
		const uint64_t vaddr = BUILT_TEXT + (uint64_t)i;

		assert_int_equal(file_table_load_at(fixture->table, file, vaddr), -ENOSPC);
		assert_int_equal(file_rule_at(fixture->table, file, vaddr, &rule), 0);
		assert_int_equal(rule.cfa_offset, 24);
	}
	assert_int_equal(asked(fixture, FOREIGN_ROWS), 2);
}

static void tidy__forgets_what_is_unused_for_long(void **state)
{
	struct fixture *fixture = *state;
	char path_a[PATH_MAX], path_b[PATH_MAX];
	struct mapping a, b;
	struct file *used, *unused;
	uint32_t id, page0;

	build_library(fixture, "\1\2\3\4\5\6\7\10");
	a = mapping_of(fixture, 'a', fixture->elf.data, BUILT_SIZE, path_a);
	build_library(fixture, "\1\2\3\4\5\6\7\11");
	b = mapping_of(fixture, 'b', fixture->elf.data, BUILT_SIZE, path_b);
	used = get(fixture, &a);
	unused = get(fixture, &b);
	used->references = 1;
	unused->unused_since_ns = 1000;
	id = unused->id;
	page0 = unused->page0;
	file_table_tidy(fixture->table, 1000);
	assert_ptr_equal(file_table_find(fixture->table, id), unused);
	file_table_tidy(fixture->table, 1001);
	assert_null(file_table_find(fixture->table, id));
	assert_int_equal(fixture->memory.pages[page0], 0);
	assert_int_equal(stats_of(fixture).files, 1);
	assert_ptr_equal(get(fixture, &a), used);
	/* Mapped again: a new file, with an id of its own. */
	assert_int_not_equal(get(fixture, &b)->id, id);
	assert_true(get(fixture, &b)->has_pages);
}

static void tidy__deleted_file_can_still_be_read(void **state)
{
	struct fixture *fixture = *state;
	struct file *file;
	OWNED_FD int fd = -1;

	file = get_library(fixture);
	file->references = 1;
	assert_int_equal(unlink(fixture->path), 0);
	file_table_tidy(fixture->table, UINT64_MAX);
	assert_int_equal(file_table_descriptor(fixture->table, file, &fd), 0);
	assert_int_equal(lseek(fd, 0, SEEK_END), BUILT_SIZE);
}

/* The files that the child had are closed with it, and opened again while a process maps them. */
static void file_table_is_due__files_of_an_ended_opener_are_opened_again(void **state)
{
	struct fixture *fixture = *state;
	struct mapping other;
	struct file *file, *unused;
	char path[PATH_MAX];

	file = get_library(fixture);
	file->references = 1;
	build_library(fixture, "\1\2\3\4\5\6\7\10");
	other = mapping_of(fixture, 'b', fixture->elf.data, BUILT_SIZE, path);
	unused = get(fixture, &other);
	here_openers++;
	assert_false(file_table_is_due(fixture->table, mono_ns()));
	assert_true(file_is_open(file));
	assert_int_equal(file->opened.child, opener_child(foreign_opener(fixture->foreign)));
	assert_false(file_is_open(unused));
	assert_int_equal(stats_of(fixture).lost, 0);
	assert_ptr_equal(get(fixture, &other), unused);
	assert_true(file_is_open(unused));
}

#define test(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		test(file_table_get__new_file_is_compiled_whole),
		test(file_table_get__file_that_takes_too_much_work_is_refused_for_good),
		test(file_table_get__file_at_which_the_child_was_late_is_asked_about_again),
		cmocka_unit_test(file_facts_soften__is_so_for_the_first_times),
		test(file_table_get__same_inode_is_one_file),
		test(file_table_get__equal_files_under_one_path_are_one),
		test(file_table_get__equal_files_under_other_paths_share_rows_alone),
		test(file_table_get__file_that_all_may_write_stands_for_none),
		test(file_table_get__one_inode_under_two_paths_shares_rows_alone),
		test(file_table_get__forged_build_id_is_another_file),
		test(file_table_get__equal_file_of_another_user_stands_for_none),
		test(file_table_get__other_build_ids_are_other_files),
		test(file_table_get__anonymous_memory_has_no_file),
		test(file_table_get__vdso_is_one_file_with_rows),
		test(file_table_get__users_excess_is_that_users_loss),
		test(file_table_get__copy_of_a_refused_file_is_not_lost_for_others),
		test(file_table_get__code_that_is_a_hole_gets_no_pages),
		test(file_table_get__file_that_is_gone_is_a_file_without_rows),
		test(file_table_get__numbers_are_believed_without_a_look),
		test(file_table_get__live_programs_numbers_on_btrfs_are_looked_at),
		test(file_table_get__ended_programs_btrfs_numbers_name_its_users_and_roots_files),
		test(file_table_get__file_opened_later_on_btrfs_is_not_that_of_an_ended_program),
		test(file_table_get__file_that_can_be_opened_later_is_examined_then),
		test(file_table_close__file_is_the_same_when_it_is_mapped_again),
		test(file_table_close__file_that_was_replaced_is_another_one),
		test(file_table_close__numbers_with_a_generation_are_believed),
		test(file_table_get__what_is_no_elf_file_has_no_rows),
		test(file_table_get__code_without_unwind_information_is_no_info),
		test(file_table_get__file_beyond_the_pages_is_kept_without_them),
		test(file_table_get__interpreter_with_a_number_is_not_forgotten),
		test(file_table_get__unreadable_interpreter_has_its_reason),
		cmocka_unit_test(file_bias__follows_the_segment_of_the_offset),
		cmocka_unit_test(file_bias__shared_page_belongs_to_the_segment_that_begins_there),
		test(load_at__address_outside_of_the_file_is_no_data),
		test(load_at__evicted_page_comes_back),
		test(file_table_get__small_program_is_asked_about_once),
		test(file_table_get__users_files_put_off_his_own_alone),
		test(rule_at__code_without_room_is_asked_about_once),
		test(tidy__forgets_what_is_unused_for_long),
		test(tidy__deleted_file_can_still_be_read),
		test(file_table_is_due__files_of_an_ended_opener_are_opened_again),
	};

	return cmocka_run_group_tests_name("attach/file_table", tests, NULL, NULL);
}
