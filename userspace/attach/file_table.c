/* SPDX-License-Identifier: BSD-2-Clause */
#include "attach/file_table.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "attach/btrfs_devices.h"
#include "attach/file_names.h"
#include "attach/file_rows.h"
#include "base/clock.h"
#include "discover/mapping_set.h"
#include "discover/proc_scan.h"
#include "files/client.h"
#include "files/opening.h"

#define NOTED_WORDS 4U /* all of Linux' errno */
#define REOPEN_NS 20000000ULL

struct file_table {
	struct foreign *foreign;  /* borrowed */
	struct file_names *names; /* owned */
	struct file_slots slots;  /* owns the files */
	struct file *vdso;
	int vdso_fd; /* owned; a copy of our own, which is the same in all processes */
	struct file_descriptors descriptors;
	struct btrfs_devices btrfs;
	struct file_rows rows;
	struct file_table_stats stats;
	uint64_t unread_due_ns;		    /* when files are asked about again; 0: there is none */
	uint64_t noted_errors[NOTED_WORDS]; /* by errno, those of opening files */
	struct file_unopened unopened;	    /* error 0: none to be told */
};

/* Its descriptor is closed already, or it has none. */
static void file_free(struct file *file)
{
	if (!file)
		return;
	python_info_free(file->python);
	free(file->debug);
	free(file->path);
	free(file);
}
DEFINE_OWNED(struct file, file)

int file_table_new(struct row_store *rows, struct foreign *foreign, struct file_table **ret_table)
{
	OWNED(file_table) struct file_table *table = calloc(1, sizeof(*table));
	int err;

	if (!table)
		return -ENOMEM;
	table->foreign = foreign;
	file_rows_init(&table->rows, rows, foreign, &table->stats);
	table->vdso_fd = -1;
	err = file_names_new(&table->names);
	if (err)
		return err;
	file_descriptors_init(&table->descriptors, foreign);
	*ret_table = TAKE(table);
	return 0;
}

void file_table_free(struct file_table *table)
{
	if (!table)
		return;
	file_names_free(table->names);
	for (uint32_t i = 0; i < table->slots.count; i++)
		if (table->slots.file[i]) {
			file_descriptors_close(&table->descriptors, table->slots.file[i]);
			file_free(table->slots.file[i]);
		}
	file_slots_release(&table->slots);
	file_rows_release(&table->rows);
	close_owned_fd(&table->vdso_fd);
	free(table);
}

struct file *file_table_in_slot(const struct file_table *table, uint32_t slot)
{
	return file_slots_get(&table->slots, slot);
}

struct file *file_table_find(const struct file_table *table, uint32_t id)
{
	struct file *file = file_table_in_slot(table, file_slot(id));

	return file && file->id == id ? file : NULL;
}

/* ---- names ---- */

static struct file_name name_of_mapped(const struct file_key *key, const char *path)
{
	return (struct file_name){
		.kind = FILE_NAME_MAPPED, .key = *key, .text = path, .text_bytes = strlen(path)};
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

/* ---- a new file ---- */

static int table_put(struct file_table *table, struct file *file)
{
	int err = file_slots_put(&table->slots, file, &file->id);

	if (err)
		return err;
	table->stats.files++;
	table->stats.created++;
	return 0;
}

/* Takes a file out of the table, and frees it. */
static void table_drop(struct file_table *table, struct file *file)
{
	file_slots_drop(&table->slots, file_slot(file->id));
	table->stats.files--;
	file_descriptors_close(&table->descriptors, file);
	file_free(file);
}

static struct opener *opener_of(const struct file_table *table)
{
	return foreign_opener(table->foreign);
}

int file_table_descriptor(struct file_table *table, struct file *file, int *ret_fd)
{
	const pid_t tid = (pid_t)file->last_place.tgid;
	int err = file_descriptors_get(&table->descriptors, file);

	return err ? err : opener_give(opener_of(table), &file->opened, tid ? tid : 1, ret_fd);
}

/* ---- what the child says of it ---- */

static int find_source(void *context, struct foreign_source *ret_source)
{
	struct file *file = context;
	struct file_table *table = file->table;
	int err;

	if (file == table->vdso && table->vdso_fd >= 0) {
		ret_source->fd = table->vdso_fd;
		return 0;
	}
	err = file_descriptors_get(&table->descriptors, file);
	ret_source->opened = file->opened;
	return err;
}

static struct foreign_file ask_about(struct file *file)
{
	/* What root has made is parsed for whoever comes first, and for all. */
	return (struct foreign_file){.number = file->id,
				     .user = file->uid,
				     .payer = file->identity.owner ? file->uid : 0,
				     .place = file->opened.place,
				     .find = find_source,
				     .context = file};
}

static void ask_facts(struct file_table *table, struct file *file)
{
	const struct foreign_file asked = ask_about(file);
	const bool was_refused = file->error == -ETIMEDOUT;

	file_facts_ask(table->foreign, &asked, file);
	table->stats.refused += file->error == -ETIMEDOUT && !was_refused;
	if (file->unread_ns)
		table->unread_due_ns = file->unread_ns + FILE_RETRY_NS;
}

static int load_rows(struct file_table *table, struct file *file)
{
	const struct foreign_file asked = ask_about(file);

	return file_rows_load(&table->rows, file, &asked);
}

static int examine(struct file_table *table, struct file *file)
{
	if (file->error)
		return file->error;
	if (!file->segment_count)
		return -ENOEXEC;
	table->stats.interpreters += file->python != NULL;
	return file->rows_of ? file_rows_share(file) : load_rows(table, file);
}

/* The child keeps those that more will be asked about. */
static void let_go(const struct file_table *table, const struct file *file)
{
	if (!file->is_giant)
		foreign_done(table->foreign, file->id);
}

/* A process maps a file that got no pages because the share of who mapped it first was used up:
 * it is tried again, for another user at once. */
static void retry_rows(struct file_table *table, const struct process *process, struct file *named)
{
	struct file *file = named->rows_of ? named->rows_of : named;
	const uint32_t uid = process_user(process);

	if (file->refused_ns &&
	    (uid != file->uid || mono_ns() - file->refused_ns >= FILE_RETRY_NS)) {
		file->uid = uid;
		file->error = load_rows(table, file);
		let_go(table, file);
	}
	if (named != file)
		named->error = file_rows_share(named);
}

static int create(struct file_table *table, const char *path, struct file **ret_file)
{
	OWNED(file) struct file *file = calloc(1, sizeof(*file));
	int err;

	if (!file)
		return -ENOMEM;
	file->table = table;
	file->opened.fd = -1;
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

/* ---- the same file again ---- */

/* A file opened for a mapping. */
struct opened {
	struct opener *opener;
	struct opener_file file; /* owned */
	struct file_identity identity;
	bool is_of_mapping; /* the mapping's key certainly belongs to this file */
};

static void opened_release(struct opened *opened)
{
	if (opened->file.fd >= 0)
		opener_close(opened->opener, &opened->file);
}

/* Notes an error, of each kind but those of what is gone the first one: why a file's code has no
 * names. */
static void note_unopened(struct file_table *table, const struct process *process,
			  const struct mapping *mapping, int err)
{
	struct file_unopened *unopened = &table->unopened;
	struct opener_stats asked;
	uint64_t *const noted = &table->noted_errors[-err / 64 % NOTED_WORDS];

	if (err == -ENOENT || err == -ESRCH || err == -ESTALE || err == -EINVAL ||
	    unopened->error || *noted >> -err % 64 & 1)
		return;
	/* One that only begins answers nobody. */
	opener_get_stats(opener_of(table), &asked);
	if (err == -ETIMEDOUT && !asked.late)
		return;
	*noted |= 1ULL << -err % 64;
	unopened->error = err;
	unopened->tgid = process->id.tgid;
	snprintf(unopened->path, sizeof(unopened->path), "%s", mapping->path);
}

bool file_table_tell_unopened(struct file_table *table, struct file_unopened *ret_unopened)
{
	if (!table->unopened.error)
		return false;
	*ret_unopened = table->unopened;
	table->unopened.error = 0;
	return true;
}

static int open_mapped(struct file_table *table, const struct process *process,
		       const struct mapping *mapping, struct opened *opened)
{
	const uint32_t user = process_user(process);
	struct opened_file found;
	int err = opener_open_mapped(opener_of(table), process->id.tgid, user, mapping, &found);

	if (err) {
		note_unopened(table, process, mapping, err);
		return err;
	}
	opened->opener = opener_of(table);
	opened->file = (struct opener_file){.child = opener_child(opened->opener),
					    .fd = found.fd,
					    .user = user,
					    .place = opener_place(&mapping->key)};
	opened->identity = found.identity;
	opened->is_of_mapping = found.is_of_mapping;
	return 0;
}

static struct file *with_build_id(const struct file_table *table, const struct file *file)
{
	const struct file_name name = name_of_build_id(file);

	return file->build_id_size ? file_names_find(table->names, &name) : NULL;
}

static bool is_stood_for(struct file_table *table, struct file *known, const struct file *file)
{
	bool must_compare;

	if (!file_may_stand_for(&known->identity, &file->identity, &must_compare))
		return false;
	return !must_compare || (!file_descriptors_get(&table->descriptors, known) &&
				 opener_is_equal(opener_of(table), &known->opened, &file->opened,
						 file->identity.size));
}

/* Finds the file whose rows fit this one: the same inode under another path, or an equal file.
 * NULL: none. */
static struct file *find_rows_of(struct file_table *table, const struct file *file)
{
	const struct file_name inode = name_of_inode(file);
	struct file *known = file_names_find(table->names, &inode);

	if (known)
		return known;
	known = with_build_id(table, file);
	return known && is_stood_for(table, known, file) ? known : NULL;
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
		file->rows_of->sharers++;
	file->error = examine(table, file);
	table->stats.refused += file->is_refused;
	err = name_opened(table, file, &file->identity);
	if (!err && !file->rows_of)
		err = offer_rows(table, file);
	let_go(table, file);
	return err;
}

static void put_opened(struct file_table *table, struct file *file, struct opened *opened)
{
	const struct opener_file taken = opened->file;

	opened->file.fd = -1;
	file_descriptors_put(&table->descriptors, file, &taken);
}

/* Gives a new file its slot, or `unopened` its contents. */
static int get_created(struct file_table *table, const struct process *process, const char *path,
		       struct opened *opened, struct file *unopened, struct file **ret_file)
{
	struct file *file = unopened;
	int err = file ? 0 : create(table, path, &file);

	if (err)
		return err;
	put_opened(table, file, opened);
	file->identity = opened->identity;
	file->uid = process_user(process);
	ask_facts(table, file);
	*ret_file = file;
	return 0;
}

static bool is_same_inode(const struct file_identity *a, const struct file_identity *b)
{
	return file_key_equal(&a->key, &b->key);
}

/* Finds the file of an open descriptor: one known under this path, or a new one. */
static int get_opened(struct file_table *table, const struct process *process, const char *path,
		      struct opened *opened, struct file *unopened, struct file **ret_file)
{
	const struct file_name name = name_of_opened(&opened->identity, path);
	struct file *file = file_names_find(table->names, &name), *equal;
	int err;

	if (file && file != unopened) {
		if (!file_is_open(file) && is_same_inode(&file->identity, &opened->identity))
			put_opened(table, file, opened);
		*ret_file = file;
		return 0;
	}
	err = get_created(table, process, path, opened, unopened, &file);
	if (err)
		return err;
	equal = find_rows_of(table, file);
	if (equal && equal->refused_ns)
		retry_rows(table, process, equal);
	/* Containers have copies of a file under the same path. */
	if (equal && file != unopened && !strcmp(equal->path, path)) {
		err = name_opened(table, equal, &opened->identity);
		table_drop(table, file);
		*ret_file = equal;
		return err;
	}
	file->rows_of = equal;
	*ret_file = file;
	return take_in(table, file);
}

/* ---- the file of a mapping ---- */

/* The file that was found by a mapping's numbers. */
struct numbered {
	struct file *file;   /* NULL: none */
	bool may_be_another; /* other files may have the same numbers */
};

static struct numbered find_numbered(struct file_table *table, const struct mapping *mapping)
{
	const struct file_key *key = &mapping->key;

	return (struct numbered){.file = find_mapped(table, key, mapping->path),
				 .may_be_another =
					 btrfs_devices_have(&table->btrfs, key->major, key->minor)};
}

/* Returns whether the numbers may name the file without a look at the mapping.  Where another file
 * may have them, the known one must be root's or the process' own user's: nobody else can then put
 * his names into this process' stacks. */
static bool is_believed(const struct numbered *known, const struct file_identity *identity,
			const struct process *process)
{
	return !known->may_be_another || !identity->owner || identity->owner == process->uid;
}

static bool has_ended(const struct process *process)
{
	char path[32];

	snprintf(path, sizeof(path), "/proc/%u", process->id.tgid);
	return access(path, F_OK) != 0;
}

/* Returns the file that gets the contents of the opened one, because it could not be opened when it
 * was mapped first; NULL: none.  Where the first mapping may have been another file, root's alone
 * will do. */
static struct file *unopened_for(const struct numbered *known, const struct opened *opened)
{
	if (!known->file || known->file->was_opened || !opened->is_of_mapping ||
	    (known->may_be_another && opened->identity.owner))
		return NULL;
	return known->file;
}

/* Returns whether the numbers of a known file cannot be those of another one by now: with a
 * generation, while it is open, or when it is still there.  Of a file that was never opened nobody
 * knows. */
static bool keeps_number(struct file_table *table, struct file *file, const struct file_key *key)
{
	return key->inode_generation || file_is_open(file) || !file->was_opened ||
	       !file_descriptors_get(&table->descriptors, file);
}

/* The process has ended, or its file is gone: only the numbers are left. */
static int get_by_number(struct file_table *table, const struct process *process,
			 const struct mapping *mapping, const struct numbered *known,
			 struct file **ret_file)
{
	int err;

	if (known->file && is_believed(known, &known->file->identity, process) &&
	    keeps_number(table, known->file, &mapping->key)) {
		*ret_file = known->file;
		return 0;
	}
	table->stats.open_failures++;
	err = create(table, mapping->path, ret_file);
	return err || known->file ? err : name_mapped(table, *ret_file, &mapping->key, false);
}

static int get_new(struct file_table *table, const struct process *process,
		   const struct mapping *mapping, const struct numbered *known,
		   struct file **ret_file)
{
	CLEANUP(opened_release) struct opened opened = {.file.fd = -1};
	struct file *file = NULL;
	int err;

	/* An ended process' file is looked for by path and number below our own root. */
	if (open_mapped(table, process, mapping, &opened) ||
	    (!is_believed(known, &opened.identity, process) && has_ended(process)))
		return get_by_number(table, process, mapping, known, ret_file);
	err = get_opened(table, process, mapping->path, &opened, unopened_for(known, &opened),
			 &file);
	if (!err && opened.is_of_mapping)
		err = name_mapped(table, file, &mapping->key,
				  is_same_inode(&file->identity, &opened.identity));
	if (!err)
		*ret_file = file;
	return err;
}

static int get_vdso(struct file_table *table, struct file **ret_file)
{
	int err;

	if (!table->vdso) {
		err = create(table, "[vdso]", &table->vdso);
		if (!err)
			err = file_facts_vdso(&table->vdso_fd);
		if (err == -ENOMEM)
			return err;
		if (!err) {
			ask_facts(table, table->vdso);
			table->vdso->error = examine(table, table->vdso);
		}
	}
	*ret_file = table->vdso;
	return 0;
}

/* A file that the child did not examine is asked about once more, for another user at
 * once: who mapped it first may have used up a share of the child's time. */
static void look_again(struct file_table *table, const struct process *process, struct file *file)
{
	const uint32_t uid = file->unread_ns ? process_user(process) : 0;

	if (!file->unread_ns)
		return;
	if (uid == file->uid && mono_ns() - file->unread_ns < FILE_RETRY_NS)
		return;
	file->uid = uid;
	ask_facts(table, file);
	if (file->unread_ns)
		return;
	file->error = examine(table, file);
	table->stats.refused += file->is_refused;
	if (file->was_opened && !file->rows_of)
		(void)offer_rows(table, file);
	let_go(table, file);
}

int file_table_get(struct file_table *table, const struct process *process,
		   const struct mapping *mapping, struct file **ret_file)
{
	struct numbered known;
	struct file *file;
	int err;

	if (!strcmp(mapping->path, "[vdso]")) {
		err = get_vdso(table, ret_file);
		if (!err)
			look_again(table, process, *ret_file);
		return err;
	}
	if (mapping_is_anonymous(mapping)) {
		*ret_file = NULL;
		return 0;
	}
	file_descriptors_update(&table->descriptors);
	known = find_numbered(table, mapping);
	file = known.file;
	/* A file without a descriptor was closed, or the process that mapped it first was gone
	 * before we could open it. */
	if (!file || !file_is_open(file) || known.may_be_another) {
		err = get_new(table, process, mapping, &known, &file);
		if (err == -ENOSPC) {
			table->stats.no_space++;
			file = NULL;
			err = 0;
		}
		if (err)
			return err;
	}
	if (file)
		look_again(table, process, file);
	if (file && file->refused_ns)
		retry_rows(table, process, file);
	if (file && file->was_opened)
		file_descriptors_note(file, process, mapping);
	*ret_file = file;
	return 0;
}

static bool has_unread(const struct file_table *table)
{
	for (uint32_t i = 0; i < table->slots.count; i++)
		if (table->slots.file[i] && table->slots.file[i]->unread_ns)
			return true;
	return false;
}

bool file_table_is_due(struct file_table *table, uint64_t now_ns)
{
	file_descriptors_reopen(&table->descriptors, now_ns + REOPEN_NS);
	if (!table->unread_due_ns || now_ns < table->unread_due_ns)
		return false;
	table->unread_due_ns = has_unread(table) ? now_ns + FILE_RETRY_NS : 0;
	return table->unread_due_ns;
}

/* ---- rows on demand ---- */

int file_table_load_at(struct file_table *table, struct file *named, uint64_t vaddr)
{
	/* Shared rows belong to the file that they were compiled from. */
	struct file *file = named->rows_of ? named->rows_of : named;
	const struct foreign_file asked = ask_about(file);

	return file_rows_load_at(&table->rows, file, &asked, vaddr);
}

int file_rule_at(struct file_table *table, struct file *named, uint64_t vaddr,
		 struct pp_rule *ret_rule)
{
	struct file *file = named->rows_of ? named->rows_of : named;
	const struct foreign_file asked = ask_about(file);

	return file_rows_rule_at(&table->rows, file, &asked, vaddr, ret_rule);
}

/* ---- names ---- */

/* What are asked for. */
enum names { NAMES_OF_FUNCTIONS, NAMES_OF_KERNELS, NAMES_OF_KERNELS_AROUND };

static int ask_names(struct file *file, enum names which, const uint64_t *vaddr, size_t count,
		     foreign_function_handler *found, void *context)
{
	const struct opener_debug debug = {
		.names = file->debug, .path = file->path, .owner = file->identity.owner};
	struct foreign *foreign = file->table->foreign;
	struct foreign_file asked = ask_about(file);
	int err;

	if (file->is_refused)
		return -E2BIG;
	asked.debug = file->debug ? &debug : NULL;
	if (which == NAMES_OF_FUNCTIONS)
		err = foreign_names(foreign, &asked, vaddr, count, found, context);
	else
		err = foreign_kernels(foreign, &asked, vaddr, count, which == NAMES_OF_KERNELS,
				      found, context);
	return file_facts_soften(file, err);
}

int file_table_functions(struct file_table *table, struct file *file, const uint64_t *vaddr,
			 size_t count, foreign_function_handler *found, void *context)
{
	(void)table;
	return ask_names(file, NAMES_OF_FUNCTIONS, vaddr, count, found, context);
}

int file_table_kernels(struct file_table *table, struct file *file, const uint64_t *vaddr,
		       size_t count, bool are_functions, foreign_function_handler *found,
		       void *context)
{
	(void)table;
	return ask_names(file, are_functions ? NAMES_OF_KERNELS : NAMES_OF_KERNELS_AROUND, vaddr,
			 count, found, context);
}

int file_table_probes(struct file_table *table, struct file *file,
		      const struct probe_wanted *wanted, size_t count,
		      struct probe_sites *ret_sites)
{
	const struct foreign_file asked = ask_about(file);

	if (file->is_refused)
		return -E2BIG;
	return file_facts_soften(file,
				 foreign_probes(table->foreign, &asked, wanted, count, ret_sites));
}

/* ---- forgetting ---- */

static void forget_file(struct file_table *table, struct file *file)
{
	file_names_drop(table->names, &file->names);
	if (file->rows_of && !--file->rows_of->sharers)
		file->rows_of->unused_since_ns = mono_ns();
	else if (!file->rows_of && file->has_pages)
		file_rows_drop(&table->rows, file);
	table_drop(table, file);
}

void file_table_tidy(struct file_table *table, uint64_t before_ns)
{
	btrfs_devices_forget(&table->btrfs);
	file_names_tidy(table->names, before_ns);
	foreign_close_all(table->foreign);
	for (uint32_t i = 0; i < table->slots.count; i++) {
		struct file *file = table->slots.file[i];

		if (!file)
			continue;
		/* context_table_tidy() takes an interpreter's number from it before. */
		if (!file->references && !file->sharers && !file->python_index &&
		    file != table->vdso && file->unused_since_ns < before_ns)
			forget_file(table, file);
	}
}

bool file_table_find_unused(const struct file_table *table, uint64_t before_ns, uint64_t *ret_slots)
{
	return file_descriptors_find_unused(&table->descriptors, before_ns, ret_slots);
}

void file_table_close(struct file_table *table, const uint64_t *slots)
{
	file_descriptors_close_all(&table->descriptors, slots);
}

bool file_table_has_resting(const struct file_table *table)
{
	return table->slots.resting_count > 0;
}

void file_table_end_epoch(struct file_table *table, const uint64_t *named)
{
	file_slots_end_epoch(&table->slots, named);
}

void file_table_get_stats(const struct file_table *table, struct file_table_stats *ret_stats)
{
	*ret_stats = table->stats;
	ret_stats->lost = table->descriptors.lost;
}
