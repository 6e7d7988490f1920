/* SPDX-License-Identifier: BSD-2-Clause */
#include "attach/file_table.h"

#include <errno.h>
#include <string.h>
#include <sys/auxv.h>

#include <uthash.h>

#include "base/clock.h"
#include "discover/file_open.h"
#include "discover/mapping.h"
#include "python/greenlet.h"
#include "unwind/cfi.h"

/* A file under its names: by build-id, and by device and inode as /proc/PID/maps shows them. */
struct alias_key {
	uint8_t build_id[BUILD_ID_MAX_BYTES];
	uint32_t build_id_size;
	uint32_t major, minor;
	uint64_t inode;
};

struct alias {
	struct alias_key key;
	struct file *file;
	UT_hash_handle hh;
};

struct file_table {
	struct row_store *rows; /* borrowed */
	struct alias *alias;
	struct file **file; /* owned; by id - PP_FILE_FIRST, NULL: forgotten */
	uint32_t file_count, file_capacity;
	struct file *vdso;
	struct file_table_stats stats;
	void (*forget)(void *context, uint32_t file);
	void *forget_context;
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
	struct file_table *table = calloc(1, sizeof(*table));

	if (!table)
		return -ENOMEM;
	table->rows = rows;
	*ret_table = table;
	return 0;
}

void file_table_free(struct file_table *table)
{
	struct alias *alias, *next;

	if (!table)
		return;
	HASH_ITER (hh, table->alias, alias, next) {
		HASH_DEL(table->alias, alias);
		free(alias);
	}
	for (uint32_t i = 0; i < table->file_count; i++)
		file_free(table->file[i]);
	free(table->file);
	free(table);
}

void file_table_on_forget(struct file_table *table, void (*forget)(void *context, uint32_t file),
			  void *context)
{
	table->forget = forget;
	table->forget_context = context;
}

struct file *file_table_find(const struct file_table *table, uint32_t id)
{
	uint32_t at = id - PP_FILE_FIRST;

	return id >= PP_FILE_FIRST && at < table->file_count ? table->file[at] : NULL;
}

/* ---- names ---- */

static bool key_by_build_id(const uint8_t *build_id, size_t size, struct alias_key *key)
{
	if (!size || size > BUILD_ID_MAX_BYTES)
		return false;
	*key = (struct alias_key){.build_id_size = (uint32_t)size};
	memcpy(key->build_id, build_id, size);
	return true;
}

static bool key_by_inode(const struct file_key *file, struct alias_key *key)
{
	if (!file->inode)
		return false;
	*key = (struct alias_key){
		.major = file->major, .minor = file->minor, .inode = file->inode};
	return true;
}

static struct file *alias_find(const struct file_table *table, const struct alias_key *key)
{
	struct alias *alias;

	HASH_FIND(hh, table->alias, key, sizeof(*key), alias);
	return alias ? alias->file : NULL;
}

static int alias_add(struct file_table *table, const struct alias_key *key, struct file *file)
{
	struct alias *alias;

	if (alias_find(table, key))
		return 0;
	alias = calloc(1, sizeof(*alias));
	if (!alias)
		return -ENOMEM;
	alias->key = *key;
	alias->file = file;
	HASH_ADD(hh, table->alias, key, sizeof(alias->key), alias);
	return 0;
}

static struct file *find_by_key(const struct file_table *table, const struct file_key *key)
{
	struct alias_key alias;
	struct file *file = NULL;

	if (key_by_build_id(key->build_id, key->build_id_size, &alias))
		file = alias_find(table, &alias);
	if (!file && key_by_inode(key, &alias))
		file = alias_find(table, &alias);
	return file;
}

/* ---- a new file ---- */

static int table_append(struct file_table *table, struct file *file)
{
	if (table->file_count == table->file_capacity) {
		uint32_t capacity = table->file_capacity ? table->file_capacity * 2 : 64;
		struct file **grown = realloc(table->file, capacity * sizeof(*grown));

		if (!grown)
			return -ENOMEM;
		table->file = grown;
		table->file_capacity = capacity;
	}
	file->id = PP_FILE_FIRST + table->file_count;
	table->file[table->file_count++] = file;
	table->stats.files++;
	table->stats.created = table->file_count;
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

/* Code without any unwind information still gets pages: all NO_INFO, so that a walk takes the
 * checked frame pointer there instead of asking for rows again and again. */
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

/* All processes map the same vDSO: ours.  It ends with its section headers (vdso2c). */
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

static int create(struct file_table *table, const struct process *process,
		  const struct mapping *mapping, struct file **ret_file)
{
	OWNED(file) struct file *file = calloc(1, sizeof(*file));
	int err;

	if (!file)
		return -ENOMEM;
	file->fd = -1;
	file->key = mapping->key;
	file->unused_since_ns = mono_ns();
	file->path = strdup(mapping->path);
	if (!file->path)
		return -ENOMEM;
	if (!strcmp(mapping->path, "[vdso]")) {
		err = vdso_image(&file->image);
	} else {
		err = file_open(process->id.tgid, mapping, &file->fd);
		file->is_musl = path_is_musl(mapping->path);
	}
	if (err)
		table->stats.open_failures++;
	err = table_append(table, file);
	if (err)
		return err;
	*ret_file = TAKE(file);
	return 0;
}

static int name_file(struct file_table *table, struct file *file)
{
	struct alias_key alias;
	int err = 0;

	if (file->image && file->image->build_id && !file->key.build_id_size &&
	    file->image->build_id_size <= BUILD_ID_MAX_BYTES) {
		memcpy(file->key.build_id, file->image->build_id, file->image->build_id_size);
		file->key.build_id_size = (uint8_t)file->image->build_id_size;
	}
	if (key_by_build_id(file->key.build_id, file->key.build_id_size, &alias))
		err = alias_add(table, &alias, file);
	if (!err && key_by_inode(&file->key, &alias))
		err = alias_add(table, &alias, file);
	return err;
}

/* The file that has this one's build-id already; then this one was opened in vain. */
static struct file *find_twin(const struct file_table *table, const struct file *file)
{
	struct elf_image *image;
	struct alias_key alias;

	if (file_image((struct file *)file, &image) || !image->build_id ||
	    !key_by_build_id(image->build_id, image->build_id_size, &alias))
		return NULL;
	return alias_find(table, &alias);
}

static void drop_last(struct file_table *table)
{
	file_free(table->file[--table->file_count]);
	table->stats.files--;
}

/* Reads what is in a file and gives it its names. */
static int take_in(struct file_table *table, struct file *file)
{
	int err;

	file->error = examine(table, file);
	err = name_file(table, file);
	if (!file->is_giant && file->fd >= 0)
		file_close(file);
	return err;
}

static int get_new(struct file_table *table, const struct process *process,
		   const struct mapping *mapping, struct file **ret_file)
{
	struct alias_key alias;
	struct file *file, *twin;
	int err = create(table, process, mapping, &file);

	if (err)
		return err;
	twin = find_twin(table, file);
	if (twin) {
		drop_last(table);
		err = key_by_inode(&mapping->key, &alias) ? alias_add(table, &alias, twin) : 0;
	} else {
		err = take_in(table, file);
	}
	*ret_file = twin ? twin : file;
	return err;
}

int file_table_get(struct file_table *table, const struct process *process,
		   const struct mapping *mapping, struct file **ret_file)
{
	bool is_vdso = !strcmp(mapping->path, "[vdso]");
	struct file *file = is_vdso ? table->vdso : find_by_key(table, &mapping->key);
	int err = 0;

	if (!is_vdso && mapping_is_anonymous(mapping)) {
		*ret_file = NULL;
		return 0;
	}
	if (!file)
		err = get_new(table, process, mapping, &file);
	else if (file->fd < 0 && !is_vdso && !file_open(process->id.tgid, mapping, &file->fd))
		/* Whoever mapped it first was gone before it could be opened. */
		err = take_in(table, file);
	if (err)
		return err;
	if (is_vdso)
		table->vdso = file;
	*ret_file = file;
	return 0;
}

uint64_t file_bias(const struct file *file, const struct mapping *mapping)
{
	const struct elf_segment *found = NULL;
	uint64_t page = mapping->offset & ~4095ULL;

	for (size_t i = 0; i < file->segment_count; i++) {
		const struct elf_segment *segment = &file->segment[i];

		/* mmap rounds a segment's ends to pages.  A page that two segments share is mapped for
		 * each of them: a mapping that starts with it is that of the second. */
		if (page + 4096 > segment->offset && page < segment->offset + segment->file_size &&
		    (!found || segment->offset >= page))
			found = segment;
	}
	if (!found)
		return mapping->start - mapping->offset;
	return mapping->start - (found->vaddr + (mapping->offset - found->offset));
}

/* ---- rows on demand ---- */

int file_table_load_at(struct file_table *table, struct file *file, uint64_t vaddr)
{
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

static void forget_file(struct file_table *table, uint32_t at)
{
	struct file *file = table->file[at];
	struct alias *alias, *next;

	HASH_ITER (hh, table->alias, alias, next) {
		if (alias->file != file)
			continue;
		HASH_DEL(table->alias, alias);
		free(alias);
	}
	if (file->has_pages)
		row_store_remove_file(table->rows, file->page0, file->min_vaddr, file->max_vaddr);
	if (table->forget)
		table->forget(table->forget_context, file->id);
	table->file[at] = NULL;
	table->stats.files--;
	file_free(file);
}

void file_table_tidy(struct file_table *table, uint64_t before_ns)
{
	for (uint32_t i = 0; i < table->file_count; i++) {
		struct file *file = table->file[i];

		if (!file)
			continue;
		if (file != table->vdso && file->fd >= 0)
			file_close(file);
		/* An interpreter keeps its slot in pythons[]: code records name it. */
		if (!file->references && !file->python_index && file != table->vdso &&
		    file->unused_since_ns < before_ns)
			forget_file(table, i);
	}
}

void file_table_get_stats(const struct file_table *table, struct file_table_stats *ret_stats)
{
	*ret_stats = table->stats;
}
