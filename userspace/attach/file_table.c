/* SPDX-License-Identifier: BSD-2-Clause */
#include "attach/file_table.h"

#include <errno.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

#include "base/array.h"
#include "base/clock.h"
#include "discover/file_open.h"
#include "discover/mapping.h"
#include "python/greenlet.h"
#include "unwind/cfi.h"

/* A slot whose file was forgotten; stacks may still refer to it. */
struct resting_slot {
	uint32_t slot, epochs;
};

struct file_table {
	struct row_store *rows; /* borrowed */
	struct file_names *names; /* owned */
	struct file **file; /* owned; by slot - PP_FILE_FIRST, NULL: forgotten */
	uint16_t *generation; /* owned; of the file that a slot has or had */
	uint32_t file_count, file_capacity;
	struct resting_slot *resting; /* owned */
	uint32_t *free_slot;	      /* owned; a stack of them */
	size_t resting_count, resting_capacity, free_count, free_capacity;
	struct file *vdso;
	struct file_table_stats stats;
};

static void file_close(struct file *file)
{
	cfi_free(TAKE(file->cfi));
	elf_image_free(TAKE(file->image));
}

static void file_free(struct file *file)
{
	if (!file)
		return;
	file_close(file);
	python_info_free(file->python);
	if (file->fd >= 0)
		close(file->fd);
	free(file->path);
	free(file);
}
DEFINE_OWNED(struct file, file)

int file_table_new(struct row_store *rows, struct file_table **ret_table)
{
	OWNED(file_table) struct file_table *table = calloc(1, sizeof(*table));
	int err;

	if (!table)
		return -ENOMEM;
	table->rows = rows;
	err = file_names_new(&table->names);
	if (err)
		return err;
	*ret_table = TAKE(table);
	return 0;
}

void file_table_free(struct file_table *table)
{
	if (!table)
		return;
	file_names_free(table->names);
	for (uint32_t i = 0; i < table->file_count; i++)
		file_free(table->file[i]);
	free(table->file);
	free(table->generation);
	free(table->resting);
	free(table->free_slot);
	free(table);
}

struct file *file_table_in_slot(const struct file_table *table, uint32_t slot)
{
	uint32_t at = slot - PP_FILE_FIRST;

	return slot >= PP_FILE_FIRST && at < table->file_count ? table->file[at] : NULL;
}

struct file *file_table_find(const struct file_table *table, uint32_t id)
{
	struct file *file = file_table_in_slot(table, file_slot(id));

	return file && file->id == id ? file : NULL;
}

/* ---- names ---- */

static struct file_name name_of_mapped(const struct file_key *key, const char *path)
{
	return (struct file_name){.kind = FILE_NAME_MAPPED,
				  .key = *key,
				  .text = path,
				  .text_bytes = strlen(path)};
}

static struct file *find_mapped(const struct file_table *table, const struct file_key *key,
				const char *path)
{
	const struct file_name name = name_of_mapped(key, path);

	return key->inode ? file_names_find(table->names, &name) : NULL;
}

static struct file_name name_of_opened(const struct file_identity *identity, const char *path)
{
	return (struct file_name){.kind = FILE_NAME_OPENED,
				  .key = identity->key,
				  .changed_ns = identity->changed_ns,
				  .text = path,
				  .text_bytes = strlen(path)};
}

/* Adds a mapping's key and path as a name.  The file's own inode number cannot be reused while the
 * file is open; that of a file never opened, or of an equal file, can. */
static int name_mapped(struct file_table *table, struct file *file, const struct file_key *key,
		       bool is_own)
{
	const struct file_name name = name_of_mapped(key, file->path);

	if (!key->inode)
		return 0;
	return is_own ? file_names_set(table->names, &name, file, &file->names)
		      : file_names_lend(table->names, &name, file, &file->names);
}

static int name_opened(struct file_table *table, struct file *file,
		       const struct file_identity *identity)
{
	const struct file_name name = name_of_opened(identity, file->path);

	return file_names_set(table->names, &name, file, &file->names);
}

static struct file_name name_of_inode(const struct file *file)
{
	return (struct file_name){.kind = FILE_NAME_INODE,
				  .key = file->identity.key,
				  .changed_ns = file->identity.changed_ns};
}

static struct file_name name_of_build_id(const struct file *file)
{
	return (struct file_name){.kind = FILE_NAME_BUILD_ID,
				  .text = file->build_id,
				  .text_bytes = file->build_id_size};
}

/* ---- slots ---- */

/* When there is no memory to note the slot, it is lost. */
static void slot_rest(struct file_table *table, uint32_t slot)
{
	table->generation[slot - PP_FILE_FIRST]++;
	table->generation[slot - PP_FILE_FIRST] &= FILE_GENERATIONS - 1;
	if (ARRAY_RESERVE(table->resting, table->resting_count, table->resting_capacity))
		return;
	table->resting[table->resting_count++] = (struct resting_slot){.slot = slot};
}

static bool slot_free(struct file_table *table, uint32_t slot)
{
	if (ARRAY_RESERVE(table->free_slot, table->free_count, table->free_capacity))
		return false;
	table->free_slot[table->free_count++] = slot;
	return true;
}

/* ---- a new file ---- */

static int grow(struct file_table *table)
{
	uint32_t capacity = table->file_capacity ? table->file_capacity * 2 : 64;
	struct file **file = realloc(table->file, capacity * sizeof(*file));
	uint16_t *generation;

	if (!file)
		return -ENOMEM;
	table->file = file;
	generation = realloc(table->generation, capacity * sizeof(*generation));
	if (!generation)
		return -ENOMEM;
	table->generation = generation;
	table->file_capacity = capacity;
	return 0;
}

/* Takes a free slot.  -ENOSPC: as many files are mapped, or were lately, as there are ids. */
static int slot_take(struct file_table *table, uint32_t *ret_at)
{
	int err = 0;

	if (table->free_count) {
		*ret_at = table->free_slot[--table->free_count] - PP_FILE_FIRST;
		return 0;
	}
	if (table->file_count == FILE_SLOTS - PP_FILE_FIRST)
		return -ENOSPC;
	if (table->file_count == table->file_capacity)
		err = grow(table);
	if (err)
		return err;
	table->generation[table->file_count] = 0;
	*ret_at = table->file_count++;
	return 0;
}

static int table_put(struct file_table *table, struct file *file)
{
	uint32_t at;
	int err = slot_take(table, &at);

	if (err)
		return err;
	file->id = (uint32_t)table->generation[at] << FILE_SLOT_BITS | (PP_FILE_FIRST + at);
	table->file[at] = file;
	table->stats.files++;
	table->stats.created++;
	return 0;
}

static void take_segments(struct file *file, const struct elf_image *image)
{
	for (size_t i = 0; i < image->segment_count && file->segment_count < FILE_MAX_SEGMENTS; i++)
		if (image->segment[i].executable)
			file->segment[file->segment_count++] = image->segment[i];
	file->min_vaddr = UINT64_MAX;
	for (size_t i = 0; i < file->segment_count; i++) {
		const struct elf_segment *segment = &file->segment[i];

		if (segment->vaddr < file->min_vaddr)
			file->min_vaddr = segment->vaddr;
		if (segment->vaddr + segment->memory_size > file->max_vaddr)
			file->max_vaddr = segment->vaddr + segment->memory_size;
	}
}

int file_image(struct file *file, struct elf_image **ret_image)
{
	int err;

	if (!file->image) {
		if (file->fd < 0)
			return -ENODATA;
		err = elf_image_open(file->fd, &file->image);
		if (err)
			return err;
	}
	*ret_image = file->image;
	return 0;
}

static int file_cfi(struct file *file, struct cfi **ret_cfi)
{
	struct elf_image *image;
	int err;

	if (!file->cfi) {
		err = file_image(file, &image);
		if (err)
			return err;
		err = cfi_open(image, &file->cfi);
		if (err)
			return err;
		cfi_set_outermost(file->cfi, greenlet_first_function(image));
	}
	*ret_cfi = file->cfi;
	return 0;
}

static void note_python(struct file_table *table, struct file *file)
{
	int err = python_info_read(file->image, &file->python, &file->python_reason);

	if (err && err != -ENOTSUP)
		file->python_reason = NULL;
	if (!err)
		table->stats.interpreters++;
}

/* Compiles rows.  Code without any unwind information still gets pages, with NO_INFO everywhere:
 * there a walk then uses the checked frame pointer instead of asking for rows each time. */
static int compile(struct file_table *table, struct file *file, uint64_t low, uint64_t high)
{
	struct cfi *cfi = NULL;
	int err = file_cfi(file, &cfi);

	if (err && err != -ENODATA && err != -EBADMSG)
		return err;
	err = row_store_load(table->rows, file->page0, cfi, low, high);
	if (err == -ENOSPC)
		table->stats.no_space++;
	if (!err)
		table->stats.compiled_bytes_of_text += high - low;
	return err;
}

static int share_rows(struct file *file)
{
	const struct file *from = file->rows_of;

	file->page0 = from->page0;
	file->has_pages = from->has_pages;
	file->is_giant = from->is_giant;
	file->is_whole = from->is_whole;
	return from->error;
}

static int examine(struct file_table *table, struct file *file)
{
	struct elf_image *image;
	struct cfi *cfi;
	int err = file_image(file, &image);

	if (err)
		return err;
	take_segments(file, image);
	if (!file->segment_count)
		return -ENOEXEC;
	note_python(table, file);
	if (file->rows_of)
		return share_rows(file);
	err = row_store_add_file(table->rows, file->min_vaddr, file->max_vaddr, &file->page0);
	if (err)
		return err;
	file->has_pages = true;
	if (!file_cfi(file, &cfi))
		file->is_giant = cfi_fde_count(cfi) > FILE_GIANT_FDES;
	if (file->is_giant)
		return 0;
	for (size_t i = 0; i < file->segment_count; i++) {
		const struct elf_segment *segment = &file->segment[i];

		err = compile(table, file, segment->vaddr, segment->vaddr + segment->memory_size);
		if (err)
			return err;
	}
	file->is_whole = true;
	return 0;
}

/* Opens our own vDSO, which is the same in all processes.  It ends with its section headers
 * (vdso2c). */
static int vdso_image(struct elf_image **ret_image)
{
	const uint8_t *vdso = (const uint8_t *)getauxval(AT_SYSINFO_EHDR);
	const Elf64_Ehdr *header = (const Elf64_Ehdr *)vdso;

	if (!vdso)
		return -ENODATA;
	return elf_image_from_memory(vdso,
				     header->e_shoff + (size_t)header->e_shnum * header->e_shentsize,
				     ret_image);
}

static int create(struct file_table *table, const char *path, struct file **ret_file)
{
	OWNED(file) struct file *file = calloc(1, sizeof(*file));
	int err;

	if (!file)
		return -ENOMEM;
	file->fd = -1;
	file->error = -ENODATA;
	file->unused_since_ns = mono_ns();
	file->path = strdup(path);
	if (!file->path)
		return -ENOMEM;
	file->is_musl = path_is_musl(path);
	err = table_put(table, file);
	if (err)
		return err;
	*ret_file = TAKE(file);
	return 0;
}

static void take_build_id(struct file *file)
{
	struct elf_image *image;

	if (file_image(file, &image) || !image->build_id ||
	    image->build_id_size > BUILD_ID_MAX_BYTES)
		return;
	memcpy(file->build_id, image->build_id, image->build_id_size);
	file->build_id_size = (uint8_t)image->build_id_size;
}

/* ---- the same file again ---- */

/* A file opened for a mapping. */
struct opened {
	int fd; /* owned */
	struct file_identity identity;
	bool is_of_mapping; /* the mapping's key certainly belongs to this file */
};

static void opened_release(struct opened *opened)
{
	if (opened->fd >= 0)
		close(opened->fd);
}

static int open_mapped(const struct process *process, const struct mapping *mapping,
		       struct opened *opened)
{
	int err = file_open(process->id.tgid, mapping, &opened->fd);

	if (!err)
		err = file_identity_read(opened->fd, &opened->identity);
	if (err)
		return err;
	opened->is_of_mapping =
		file_identity_is_of(opened->fd, &opened->identity, &mapping->key);
	return 0;
}

static struct file *with_build_id(const struct file_table *table, const struct file *file)
{
	const struct file_name name = name_of_build_id(file);

	return file->build_id_size ? file_names_find(table->names, &name) : NULL;
}

static bool is_stood_for(const struct file *known, const struct file *file)
{
	return file_stands_for(
		(struct open_file){.fd = known->fd, .identity = &known->identity},
		(struct open_file){.fd = file->fd, .identity = &file->identity});
}

/* Finds the file whose rows fit this one: the same inode under another path, or an equal file.
 * NULL: none. */
static struct file *find_rows_of(const struct file_table *table, const struct file *file)
{
	const struct file_name inode = name_of_inode(file);
	struct file *known = file_names_find(table->names, &inode);

	if (known)
		return known;
	known = with_build_id(table, file);
	return known && is_stood_for(known, file) ? known : NULL;
}

/* Offers this file's rows to files that are found to be equal to it later.  Root's files go first,
 * so that nobody can take a build-id before them. */
static int offer_rows(struct file_table *table, struct file *file)
{
	const struct file_name inode = name_of_inode(file), build_id = name_of_build_id(file);
	const struct file *known = with_build_id(table, file);
	int err = file_names_set(table->names, &inode, file, &file->names);

	if (err || !file->build_id_size || !file->identity.is_settled ||
	    (known && (!known->identity.owner || file->identity.owner)))
		return err;
	return file_names_set(table->names, &build_id, file, &file->names);
}

/* Reads a file's contents and adds its names. */
static int take_in(struct file_table *table, struct file *file)
{
	int err;

	if (file->rows_of)
		file->rows_of->references++;
	file->error = examine(table, file);
	err = name_opened(table, file, &file->identity);
	if (!err && !file->rows_of)
		err = offer_rows(table, file);
	if (!file->is_giant)
		file_close(file);
	return err;
}

/* Gives a new file its slot, or `unopened` its contents. */
static int get_created(struct file_table *table, const char *path, struct opened *opened,
		       struct file *unopened, struct file **ret_file)
{
	struct file *file = unopened;
	int err = file ? 0 : create(table, path, &file);

	if (err)
		return err;
	file->fd = TAKE_FD(opened->fd);
	file->identity = opened->identity;
	take_build_id(file);
	*ret_file = file;
	return 0;
}

static void drop_new(struct file_table *table, struct file *file)
{
	const uint32_t at = file_slot(file->id) - PP_FILE_FIRST;

	table->file[at] = NULL;
	table->stats.files--;
	slot_rest(table, file_slot(file->id));
	file_free(file);
}

/* Finds the file of an open descriptor: one known under this path, or a new one. */
static int get_opened(struct file_table *table, const char *path, struct opened *opened,
		      struct file *unopened, struct file **ret_file)
{
	const struct file_name name = name_of_opened(&opened->identity, path);
	struct file *file = file_names_find(table->names, &name), *equal;
	int err;

	if (file && file != unopened) {
		*ret_file = file;
		return 0;
	}
	err = get_created(table, path, opened, opened->is_of_mapping ? unopened : NULL, &file);
	if (err)
		return err;
	equal = find_rows_of(table, file);
	/* Containers have copies of a file under the same path. */
	if (equal && file != unopened && !strcmp(equal->path, path)) {
		err = name_opened(table, equal, &opened->identity);
		drop_new(table, file);
		*ret_file = equal;
		return err;
	}
	file->rows_of = equal;
	*ret_file = file;
	return take_in(table, file);
}

static bool is_same_inode(const struct file_identity *a, const struct file_identity *b)
{
	return file_key_equal(&a->key, &b->key);
}

static int get_new(struct file_table *table, const struct process *process,
		   const struct mapping *mapping, struct file *unopened, struct file **ret_file)
{
	CLEANUP(opened_release) struct opened opened = {.fd = -1};
	struct file *file = unopened;
	int err = open_mapped(process, mapping, &opened);

	if (!err) {
		err = get_opened(table, mapping->path, &opened, unopened, &file);
		if (!err && opened.is_of_mapping)
			err = name_mapped(table, file, &mapping->key,
					  is_same_inode(&file->identity, &opened.identity));
	} else if (!file) {
		table->stats.open_failures++;
		err = create(table, mapping->path, &file);
		if (!err)
			err = name_mapped(table, file, &mapping->key, false);
	} else {
		err = 0;
	}
	if (err)
		return err;
	*ret_file = file;
	return 0;
}

static int get_vdso(struct file_table *table, struct file **ret_file)
{
	int err;

	if (!table->vdso) {
		err = create(table, "[vdso]", &table->vdso);
		if (!err)
			err = vdso_image(&table->vdso->image);
		if (err == -ENOMEM)
			return err;
		if (!err)
			table->vdso->error = examine(table, table->vdso);
	}
	*ret_file = table->vdso;
	return 0;
}

int file_table_get(struct file_table *table, const struct process *process,
		   const struct mapping *mapping, struct file **ret_file)
{
	struct file *file;
	int err;

	if (!strcmp(mapping->path, "[vdso]"))
		return get_vdso(table, ret_file);
	if (mapping_is_anonymous(mapping)) {
		*ret_file = NULL;
		return 0;
	}
	file = find_mapped(table, &mapping->key, mapping->path);
	/* It has no descriptor: the process that mapped it first was gone before we could open
	 * it. */
	if (!file || file->fd < 0) {
		err = get_new(table, process, mapping, file, &file);
		if (err == -ENOSPC) {
			table->stats.no_space++;
			file = NULL;
			err = 0;
		}
		if (err)
			return err;
	}
	*ret_file = file;
	return 0;
}

uint64_t file_bias(const struct file *file, const struct mapping *mapping)
{
	const struct elf_segment *found = NULL;
	uint64_t page = mapping->offset & ~4095ULL;

	for (size_t i = 0; i < file->segment_count; i++) {
		const struct elf_segment *segment = &file->segment[i];

		/* mmap rounds a segment's ends to pages.  A page that two segments share is mapped
		 * for each of them; a mapping that starts with that page belongs to the second. */
		if (page + 4096 > segment->offset && page < segment->offset + segment->file_size &&
		    (!found || segment->offset >= page))
			found = segment;
	}
	if (!found)
		return mapping->start - mapping->offset;
	return mapping->start - (found->vaddr + (mapping->offset - found->offset));
}

/* ---- rows on demand ---- */

int file_table_load_at(struct file_table *table, struct file *named, uint64_t vaddr)
{
	/* Shared rows belong to the file that they were compiled from. */
	struct file *file = named->rows_of ? named->rows_of : named;
	uint64_t low = vaddr & ~(FILE_UNIT_BYTES - 1), high = low + FILE_UNIT_BYTES;

	if (!file->has_pages || vaddr < file->min_vaddr || vaddr >= file->max_vaddr)
		return -ENODATA;
	if (low < file->min_vaddr)
		low = file->min_vaddr;
	if (high > file->max_vaddr)
		high = file->max_vaddr;
	return compile(table, file, low, high);
}

int file_rule_at(struct file_table *table, struct file *file, uint64_t vaddr,
		 struct pp_rule *ret_rule)
{
	struct cfi *cfi;
	int err = file_cfi(file, &cfi);

	(void)table;
	if (err == -ENODATA || err == -EBADMSG) {
		*ret_rule = (struct pp_rule){.kind = PP_RULE_NO_INFO};
		return 0;
	}
	return err ? err : cfi_rule_at(cfi, vaddr, ret_rule);
}

/* ---- forgetting ---- */

static void forget_file(struct file_table *table, struct file *file)
{
	const uint32_t slot = file_slot(file->id);

	file_names_drop(table->names, &file->names);
	if (file->rows_of && !--file->rows_of->references)
		file->rows_of->unused_since_ns = mono_ns();
	else if (!file->rows_of && file->has_pages)
		row_store_remove_file(table->rows, file->page0, file->min_vaddr, file->max_vaddr);
	table->file[slot - PP_FILE_FIRST] = NULL;
	table->stats.files--;
	slot_rest(table, slot);
	file_free(file);
}

void file_table_tidy(struct file_table *table, uint64_t before_ns)
{
	file_names_tidy(table->names, before_ns);
	for (uint32_t i = 0; i < table->file_count; i++) {
		struct file *file = table->file[i];

		if (!file)
			continue;
		if (file != table->vdso && file->fd >= 0)
			file_close(file);
		/* An interpreter keeps its slot in pythons[], because code records refer to it. */
		if (!file->references && !file->python_index && file != table->vdso &&
		    file->unused_since_ns < before_ns)
			forget_file(table, file);
	}
}

bool file_table_has_resting(const struct file_table *table)
{
	return table->resting_count > 0;
}

void file_table_end_epoch(struct file_table *table, const uint64_t *named)
{
	size_t kept = 0;

	for (size_t i = 0; i < table->resting_count; i++) {
		struct resting_slot rest = table->resting[i];
		const bool is_named = named[rest.slot / 64] >> (rest.slot % 64) & 1;

		if (++rest.epochs < FILE_SLOT_REST_EPOCHS || is_named || !slot_free(table, rest.slot))
			table->resting[kept++] = rest;
	}
	table->resting_count = kept;
}

void file_table_get_stats(const struct file_table *table, struct file_table_stats *ret_stats)
{
	*ret_stats = table->stats;
}
