/* SPDX-License-Identifier: BSD-2-Clause */
/* Files that do not exist: what is opened, what the child says of it and where its rows go are
 * fakes in this file. */
#include "attach/file_table.h"

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "attach/btrfs_devices.h"
#include "base/clock.h"
#include "discover/proc_scan.h"
#include "files/client.h"
#include "files/opener.h"
#include "files/opening.h"

#define FILES 8U
#define FDS 256
#define UNIT FILE_UNIT_BYTES

static uint64_t now_ns;

int clock_gettime(clockid_t clock, struct timespec *time)
{
	(void)clock;
	*time = (struct timespec){.tv_sec = (time_t)(now_ns / NS_PER_SEC),
				  .tv_nsec = (long)(now_ns % NS_PER_SEC)};
	return 0;
}

/* ---- the disk: a mapping's offset is the number of its file ---- */

static struct {
	struct file_identity identity;
	bool is_gone, is_not_of_mapping, is_python;
	struct foreign_facts facts;
	int examine_error;
} disk[FILES];
static int file_of_fd[FDS]; /* 1 + number; 0: it is not open */
static unsigned int opened;
static bool stands_for, is_btrfs, has_ended;
static int text_result;
static uint32_t user;
static unsigned int btrfs_forgotten;

struct opener *foreign_opener(const struct foreign *foreign)
{
	(void)foreign;
	return NULL;
}

int opener_open_mapped(struct opener *opener, uint32_t tgid, uid_t owner,
		       const struct mapping *mapping, struct opened_file *ret_opened)
{
	static int last;

	(void)opener, (void)tgid;
	assert_int_equal(owner, user);
	if (disk[mapping->offset].is_gone)
		return -ENOENT;
	memset(ret_opened, 0, sizeof(*ret_opened));
	ret_opened->fd = 100 + last++ % (FDS - 100);
	assert_int_equal(file_of_fd[ret_opened->fd], 0);
	file_of_fd[ret_opened->fd] = 1 + (int)mapping->offset;
	ret_opened->identity = disk[mapping->offset].identity;
	ret_opened->is_of_mapping = !disk[mapping->offset].is_not_of_mapping;
	opened++;
	return 0;
}

static unsigned int number_of(int fd)
{
	assert_in_range(fd, 0, FDS - 1);
	assert_true(file_of_fd[fd] > 0);
	return (unsigned int)file_of_fd[fd] - 1;
}

uint64_t opener_child(const struct opener *opener)
{
	(void)opener;
	return 2;
}

uint64_t opener_place(const struct file_key *key)
{
	return key->inode;
}

int opener_give(struct opener *opener, const struct opener_file *file, pid_t tid, int *ret_fd)
{
	(void)opener, (void)tid;
	*ret_fd = file->fd;
	return 0;
}

bool opener_is_equal(struct opener *opener, const struct opener_file *a,
		     const struct opener_file *b, uint64_t bytes)
{
	(void)opener, (void)bytes;
	assert_int_not_equal(number_of(a->fd), number_of(b->fd));
	return stands_for;
}

int opener_check_text(struct opener *opener, const struct opener_file *file,
		      const struct file_identity *identity, const struct foreign_segment *segment,
		      size_t count)
{
	(void)opener;
	assert_int_equal(identity->key.inode, disk[number_of(file->fd)].identity.key.inode);
	assert_non_null(segment);
	assert_true(count);
	return text_result;
}

void opener_close(struct opener *opener, struct opener_file *file)
{
	(void)opener;
	file_of_fd[file->fd] = 0;
	file->fd = -1;
}

void opener_close_many(struct opener *opener, struct opener_file *const *file, size_t count)
{
	for (size_t i = 0; i < count; i++)
		opener_close(opener, file[i]);
}

bool file_may_stand_for(const struct file_identity *known, const struct file_identity *other,
			bool *ret_must_compare)
{
	(void)known, (void)other;
	*ret_must_compare = true;
	return true;
}

bool btrfs_devices_have(struct btrfs_devices *devices, uint32_t major, uint32_t minor)
{
	(void)devices, (void)major, (void)minor;
	return is_btrfs;
}

void btrfs_devices_forget(struct btrfs_devices *devices)
{
	(void)devices;
	btrfs_forgotten++;
}

uint32_t process_user(const struct process *process)
{
	(void)process;
	return user;
}

int access(const char *path, int mode)
{
	assert_int_equal(mode, F_OK);
	assert_string_equal(path, "/proc/7");
	return has_ended ? -1 : 0;
}

/* ---- the child ---- */

static struct {
	unsigned int examined, done, closed, closed_all, rows, named;
	uint32_t last_done, last_closed;
	uid_t user, payer;
	int rows_error, names_error;
	bool has_debug;
	char own[4]; /* the first bytes of a file of the agent's own */
} child;

static unsigned int asked_about(const struct foreign_file *asked)
{
	struct foreign_source source = {.fd = -1};

	assert_int_equal(asked->find(asked->context, &source), 0);
	child.user = asked->user;
	child.payer = asked->payer;
	if (source.fd < 0)
		return number_of(source.opened.fd);
	assert_int_equal(pread(source.fd, child.own, sizeof(child.own), 0), sizeof(child.own));
	return FILES;
}

int foreign_examine(struct foreign *foreign, const struct foreign_file *asked,
		    struct foreign_facts *ret_facts, struct python_info **ret_python,
		    const char **ret_reason)
{
	const unsigned int at = asked_about(asked);

	(void)foreign, (void)ret_reason;
	child.examined++;
	if (at == FILES) { /* the vDSO */
		memset(ret_facts, 0, sizeof(*ret_facts));
		return 0;
	}
	if (disk[at].examine_error)
		return disk[at].examine_error;
	*ret_facts = disk[at].facts;
	if (disk[at].is_python)
		*ret_python = calloc(1, sizeof(**ret_python));
	return 0;
}

int foreign_rows(struct foreign *foreign, const struct foreign_file *asked, uint64_t low,
		 uint64_t high, struct cfi_rows *rows)
{
	(void)foreign, (void)high;
	asked_about(asked);
	child.rows++;
	if (child.rows_error)
		return child.rows_error;
	if (!rows)
		return 0;
	rows->row = realloc(rows->row, sizeof(*rows->row));
	assert_non_null(rows->row);
	rows->row[0] = (struct cfi_row){.vaddr = low, .rule = {.kind = PP_RULE_CFA_FP}};
	rows->count = rows->capacity = 1;
	return 0;
}

int foreign_names(struct foreign *foreign, const struct foreign_file *asked, const uint64_t *vaddr,
		  size_t count, foreign_function_handler *found, void *context)
{
	(void)foreign, (void)found;
	asked_about(asked);
	child.has_debug = asked->debug != NULL;
	if (asked->debug) {
		assert_string_equal(asked->debug->names->link, "a.debug");
		assert_string_equal(asked->debug->path, "/lib/a");
		assert_int_equal(asked->debug->owner, 1001);
	}
	assert_int_equal(vaddr[0], 0x1234);
	assert_int_equal(count, 1);
	assert_ptr_equal(context, &child);
	child.named++;
	return child.names_error;
}

int foreign_kernels(struct foreign *foreign, const struct foreign_file *asked,
		    const uint64_t *vaddr, size_t count, bool are_functions,
		    foreign_function_handler *found, void *context)
{
	(void)foreign, (void)found, (void)context;
	asked_about(asked);
	assert_int_equal(*vaddr, 0x1234);
	assert_int_equal(count, 1);
	assert_true(are_functions);
	child.named++;
	return child.names_error;
}

int foreign_probes(struct foreign *foreign, const struct foreign_file *asked,
		   const struct probe_wanted *wanted, size_t count, struct probe_sites *ret_sites)
{
	(void)foreign;
	asked_about(asked);
	assert_string_equal(wanted->name, "malloc");
	assert_int_equal(count, 1);
	ret_sites->site_count = 77;
	child.named++;
	return child.names_error;
}

void foreign_done(struct foreign *foreign, uint32_t number)
{
	(void)foreign;
	child.done++;
	child.last_done = number;
}

void foreign_close(struct foreign *foreign, uint32_t number)
{
	(void)foreign;
	child.closed++;
	child.last_closed = number;
}

void foreign_close_all(struct foreign *foreign)
{
	(void)foreign;
	child.closed_all++;
}

void python_info_free(struct python_info *info)
{
	free(info);
}

/* ---- rows ---- */

static struct {
	unsigned int added, loads, loads_without_source, removed;
	uint32_t uid, page0;
	uint64_t low, high; /* of the last load */
	uint64_t min, max;  /* of the last file added, or removed */
	int add_error, load_error;
	bool has_rules;
} store;
#define STORE ((struct row_store *)&store)

int row_store_add_file(struct row_store *rows, uint32_t uid, uint64_t min_vaddr, uint64_t max_vaddr,
		       uint32_t *ret_page0)
{
	assert_ptr_equal(rows, STORE);
	store.uid = uid;
	store.min = min_vaddr;
	store.max = max_vaddr;
	if (store.add_error)
		return store.add_error;
	*ret_page0 = 1000 * ++store.added;
	return 0;
}

void row_store_remove_file(struct row_store *rows, uint32_t page0, uint64_t min_vaddr,
			   uint64_t max_vaddr)
{
	assert_ptr_equal(rows, STORE);
	store.removed++;
	store.page0 = page0;
	store.min = min_vaddr;
	store.max = max_vaddr;
}

int row_store_load(struct row_store *rows, uint32_t page0, const struct row_source *source,
		   uint64_t low, uint64_t high)
{
	assert_ptr_equal(rows, STORE);
	store.page0 = page0;
	store.low = low;
	store.high = high;
	store.loads++;
	store.loads_without_source += !source;
	if (store.load_error)
		return store.load_error;
	return source ? source->rows(source->context, low, high, NULL) : 0;
}

int row_store_rule_at(const struct row_store *rows, uint32_t page0, uint64_t vaddr,
		      struct pp_rule *ret_rule)
{
	assert_ptr_equal(rows, STORE);
	(void)page0, (void)vaddr;
	if (!store.has_rules)
		return -ENOENT;
	ret_rule->kind = PP_RULE_CFA_SP;
	return 0;
}

/* ---- fixture ---- */

static struct file_table *table;
static const struct process process = {.id = {.tgid = 7}, .uid = 1000};

static int setup(void **state)
{
	(void)state;
	now_ns = 1000 * NS_PER_SEC;
	memset(disk, 0, sizeof(disk));
	memset(file_of_fd, 0, sizeof(file_of_fd));
	memset(&child, 0, sizeof(child));
	memset(&store, 0, sizeof(store));
	for (unsigned int i = 0; i < FILES; i++) {
		disk[i].identity = (struct file_identity){
			.key = {.major = 8, .minor = 1, .inode = 100 + i}, .is_settled = true};
		disk[i].facts.has_symbols = 1;
		disk[i].facts.segment_count = 1;
		disk[i].facts.segment[0] =
			(struct foreign_segment){.vaddr = UNIT + 0x80000, .file_size = 3 * UNIT};
		disk[i].facts.debug.build_id_bytes = 8;
	}
	opened = btrfs_forgotten = 0;
	stands_for = is_btrfs = has_ended = false;
	text_result = 0;
	user = 1000;
	return file_table_new(STORE, (struct foreign *)&child, &table);
}

/* Nothing that was opened stays open. */
static int teardown(void **state)
{
	(void)state;
	file_table_free(table);
	for (int fd = 0; fd < FDS; fd++)
		assert_int_equal(file_of_fd[fd], 0);
	return 0;
}

static struct mapping mapping_of(unsigned int number, const char *path)
{
	return (struct mapping){.start = 0x1000,
				.end = 0x2000,
				.offset = number,
				.path = path,
				.key = disk[number].identity.key};
}

static struct file *get_mapping(const struct mapping *mapping)
{
	struct file *file = (struct file *)&store;

	assert_int_equal(file_table_get(table, &process, mapping, &file), 0);
	return file;
}

static struct file *get(unsigned int number, const char *path)
{
	const struct mapping mapping = mapping_of(number, path);

	return get_mapping(&mapping);
}

static struct file_table_stats stats(void)
{
	struct file_table_stats found;

	file_table_get_stats(table, &found);
	return found;
}

static struct file *get_giant(void)
{
	struct file *file;

	disk[0].facts.fde_count = FILE_GIANT_FDES + 1;
	file = get(0, "/lib/a");
	assert_true(file->is_giant);
	assert_true(file->has_pages);
	assert_int_equal(store.loads, 0);
	return file;
}

/* ---- new files ---- */

static void get__rows_of_each_segment_are_loaded(void **state)
{
	struct file *file;

	(void)state;
	disk[0].facts.segment_count = 2;
	disk[0].facts.segment[1] = (struct foreign_segment){.vaddr = 8 * UNIT, .file_size = 0x100};
	disk[0].is_python = true;
	file = get(0, "/lib/a");
	assert_int_equal(file->error, 0);
	assert_true(file->is_whole);
	assert_int_equal(file->page0, 1000);
	assert_int_equal(file->unused_since_ns, now_ns);
	assert_int_equal(store.loads, 2);
	assert_int_equal(store.loads_without_source, 0);
	assert_int_equal(store.low, 8 * UNIT);
	assert_int_equal(store.high, 8 * UNIT + 0x100);
	assert_int_equal(store.min, UNIT + 0x80000);
	assert_int_equal(store.max, 8 * UNIT + 0x100);
	assert_int_equal(store.uid, 1000);
	assert_int_equal(stats().compiled_bytes_of_text, 3 * UNIT + 0x100);
	assert_int_equal(stats().files, 1);
	assert_int_equal(stats().created, 1);
	assert_int_equal(stats().interpreters, 1);
	assert_int_equal(stats().refused, 0);
	/* The child may forget it. */
	assert_int_equal(child.done, 1);
	assert_int_equal(child.last_done, file->id);
	/* Root's file is parsed for all. */
	assert_int_equal(child.user, 1000);
	assert_int_equal(child.payer, 0);
	disk[1].identity.owner = 1001;
	get(1, "/lib/b");
	assert_int_equal(child.payer, 1000);
}

static void get__giants_wait_until_they_are_walked(void **state)
{
	const struct file *file = get_giant();

	(void)state;
	assert_false(file->is_whole);
	assert_int_equal(child.done, 0);
	assert_int_equal(stats().compiled_bytes_of_text, 0);
}

static void get__file_is_found_by_its_numbers(void **state)
{
	struct file *file = get(0, "/lib/a");
	struct mapping mapping = mapping_of(0, "/lib/a");

	(void)state;
	assert_ptr_equal(get(0, "/lib/a"), file);
	assert_int_equal(opened, 1);
	/* By those of the file itself, where a mapping has others: it is not opened twice. */
	mapping.key.inode = 500;
	assert_ptr_equal(get_mapping(&mapping), file);
	assert_int_equal(opened, 2);
	assert_ptr_equal(get_mapping(&mapping), file);
	assert_int_equal(opened, 2);
	assert_int_equal(child.examined, 1);
	/* Where nobody knows that they are the file's, each mapping is looked at. */
	disk[1].is_not_of_mapping = true;
	file = get(1, "/lib/b");
	assert_int_equal(opened, 3);
	assert_ptr_equal(get(1, "/lib/b"), file);
	assert_int_equal(opened, 4);
	/* So is one that has no numbers. */
	mapping = mapping_of(2, "/lib/c");
	mapping.key.inode = 0;
	file = get_mapping(&mapping);
	assert_ptr_equal(get_mapping(&mapping), file);
	assert_int_equal(opened, 6);
}

static void get__file_that_is_gone_is_known_by_numbers_that_keep(void **state)
{
	OWNED_MEM uint64_t *slots = malloc(FILE_SLOTS / 8);
	struct file *file, *other;

	(void)state;
	assert_non_null(slots);
	memset(slots, 0xff, FILE_SLOTS / 8);
	disk[0].identity.key.inode_generation = 5;
	file = get(0, "/lib/a");
	other = get(1, "/lib/b");
	file_table_close(table, slots);
	assert_int_equal(child.closed, 2);
	disk[0].is_gone = disk[1].is_gone = true;
	assert_ptr_equal(get(0, "/lib/a"), file);
	assert_int_equal(stats().open_failures, 0);
	/* Without a generation the number may be another file's by now. */
	assert_ptr_not_equal(get(1, "/lib/b"), other);
	assert_int_equal(stats().open_failures, 1);
}

static void get__file_that_was_closed_is_taken_up_again(void **state)
{
	OWNED_MEM uint64_t *slots = malloc(FILE_SLOTS / 8);
	struct file *file = get(0, "/lib/a");
	int fd = -1;

	(void)state;
	assert_non_null(slots);
	memset(slots, 0xff, FILE_SLOTS / 8);
	file_table_close(table, slots);
	assert_int_equal(file->opened.fd, -1);
	assert_ptr_equal(get(0, "/lib/a"), file);
	assert_int_equal(opened, 2);
	assert_true(file->opened.fd >= 0);
	assert_int_equal(file_table_descriptor(table, file, &fd), 0);
	assert_int_equal(fd, file->opened.fd);
	assert_int_equal(child.examined, 1);
}

/* A file that was gone when it was mapped first gets its contents when it is there. */
static void get__file_that_can_be_opened_later_is_the_same(void **state)
{
	struct file *file, *other;

	(void)state;
	disk[0].is_gone = true;
	disk[0].identity.owner = 1001;
	file = get(0, "/lib/a");
	assert_int_equal(file->error, -ENODATA);
	assert_false(file->was_opened);
	assert_int_equal(stats().open_failures, 1);
	disk[0].is_gone = false;
	assert_ptr_equal(get(0, "/lib/a"), file);
	assert_true(file->was_opened);
	assert_true(file->is_whole);
	/* Where the numbers may be another file's, only root's is. */
	is_btrfs = true;
	for (unsigned int i = 1; i < 3; i++) {
		disk[i].is_gone = true;
		disk[i].identity.owner = i == 1 ? 1001 : 0;
		other = get(i, "/lib/b");
		disk[i].is_gone = false;
		assert_int_equal(get(i, "/lib/b") == other, i == 2);
	}
	/* One that the mapping's numbers are not of is another one. */
	is_btrfs = false;
	disk[3].is_gone = disk[3].is_not_of_mapping = true;
	other = get(3, "/lib/c");
	disk[3].is_gone = false;
	assert_ptr_not_equal(get(3, "/lib/c"), other);
}

/* ---- equal files ---- */

static void get__equal_file_shares_rows(void **state)
{
	struct file *file = get(0, "/lib/a"), *equal, *third;

	(void)state;
	stands_for = true;
	equal = get(1, "/lib/b");
	assert_ptr_not_equal(equal, file);
	assert_ptr_equal(equal->rows_of, file);
	assert_int_equal(file->sharers, 1);
	assert_int_equal(equal->page0, file->page0);
	assert_true(equal->has_pages);
	assert_true(equal->is_whole);
	assert_int_equal(store.added, 1);
	assert_int_equal(store.loads, 1);
	/* The next one shares those of the first. */
	third = get(2, "/lib/c");
	assert_ptr_equal(third->rows_of, file);
	assert_ptr_equal(get(1, "/lib/d")->rows_of, file);
	/* Asked for by the one, they are loaded for the other. */
	assert_int_equal(file_table_load_at(table, equal, 2 * UNIT), 0);
	assert_int_equal(store.page0, file->page0);
	/* Under one path it is the same file. */
	assert_ptr_equal(get(3, "/lib/a"), file);
	assert_int_equal(stats().files, 4);
}

static void get__other_bytes_are_another_file(void **state)
{
	struct file *file = get(0, "/lib/a"), *other = get(1, "/lib/b");

	(void)state;
	assert_null(other->rows_of);
	assert_int_equal(store.added, 2);
	assert_null(file->rows_of);
	/* Without a build-id nobody looks. */
	stands_for = true;
	disk[5].facts.debug.build_id_bytes = 0;
	assert_null(get(5, "/lib/f")->rows_of);
}

static void get__file_that_is_gone_stands_for_none(void **state)
{
	OWNED_MEM uint64_t *slots = malloc(FILE_SLOTS / 8);

	(void)state;
	assert_non_null(slots);
	memset(slots, 0xff, FILE_SLOTS / 8);
	stands_for = true;
	get(0, "/lib/a");
	file_table_close(table, slots);
	disk[0].is_gone = true;
	assert_null(get(1, "/lib/b")->rows_of);
	assert_int_equal(store.added, 2);
}

static void tidy__rows_go_with_the_last_that_has_them(void **state)
{
	struct file *file = get(0, "/lib/a"), *equal;

	(void)state;
	assert_false(file_table_has_resting(table));
	stands_for = true;
	equal = get(1, "/lib/b");
	assert_ptr_equal(equal->rows_of, file);
	now_ns += NS_PER_SEC;
	file_table_tidy(table, now_ns);
	assert_int_equal(btrfs_forgotten, 1);
	assert_int_equal(child.closed_all, 1);
	/* The one that shared them has gone, and the other one is unused from now on. */
	assert_int_equal(stats().files, 1);
	assert_int_equal(store.removed, 0);
	assert_int_equal(file->sharers, 0);
	assert_int_equal(file->unused_since_ns, now_ns);
	file_table_tidy(table, now_ns);
	assert_int_equal(stats().files, 1);
	file_table_tidy(table, now_ns + 1);
	assert_int_equal(stats().files, 0);
	assert_int_equal(store.removed, 1);
	assert_int_equal(store.page0, 1000);
	assert_int_equal(store.min, UNIT + 0x80000);
	assert_int_equal(store.max, 4 * UNIT + 0x80000);
	assert_true(file_table_has_resting(table));
}

static void tidy__file_without_pages_has_none_to_give_back(void **state)
{
	(void)state;
	store.add_error = -EDQUOT;
	get(0, "/lib/a");
	file_table_tidy(table, UINT64_MAX);
	assert_int_equal(stats().files, 0);
	assert_int_equal(store.removed, 0);
}

/* ---- rows on demand ---- */

static void load_at__unit_is_cut_at_the_files_ends(void **state)
{
	struct file *file = get_giant();
	static const struct {
		uint64_t vaddr, low, high;
	} cases[] = {{UNIT + 0x80000, UNIT + 0x80000, 2 * UNIT},
		     {2 * UNIT - 1, UNIT + 0x80000, 2 * UNIT},
		     {2 * UNIT, 2 * UNIT, 3 * UNIT},
		     {2 * UNIT + 0x12345, 2 * UNIT, 3 * UNIT},
		     {4 * UNIT + 0x7ffff, 4 * UNIT, 4 * UNIT + 0x80000}};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		assert_int_equal(file_table_load_at(table, file, cases[i].vaddr), 0);
		assert_int_equal(store.low, cases[i].low);
		assert_int_equal(store.high, cases[i].high);
	}
	assert_int_equal(store.loads, 5);
	assert_int_equal(stats().compiled_bytes_of_text, 2 * 0x80000 + 2 * UNIT + 0x80000);
	assert_int_equal(file_table_load_at(table, file, UNIT + 0x7ffff), -ENODATA);
	assert_int_equal(file_table_load_at(table, file, 4 * UNIT + 0x80000), -ENODATA);
	assert_int_equal(store.loads, 5);
}

static void load_at__no_room_is_asked_for_again_after_a_second(void **state)
{
	struct file *file = get_giant();

	(void)state;
	store.load_error = -ENOSPC;
	assert_int_equal(file_table_load_at(table, file, 2 * UNIT), -ENOSPC);
	assert_int_equal(stats().no_space, 1);
	now_ns += NS_PER_SEC - 1;
	assert_int_equal(file_table_load_at(table, file, 2 * UNIT), -ENOSPC);
	assert_int_equal(store.loads, 1);
	assert_int_equal(stats().no_space, 1);
	now_ns++;
	store.load_error = 0;
	assert_int_equal(file_table_load_at(table, file, 2 * UNIT), 0);
	/* From then on at once. */
	assert_int_equal(file_table_load_at(table, file, 3 * UNIT), 0);
	assert_int_equal(store.loads, 3);
	assert_int_equal(stats().no_space, 1);
	assert_int_equal(stats().compiled_bytes_of_text, 2 * UNIT);
	store.load_error = -ENOMEM;
	assert_int_equal(file_table_load_at(table, file, 2 * UNIT), -ENOMEM);
	assert_int_equal(stats().no_space, 1);
	assert_int_equal(stats().compiled_bytes_of_text, 2 * UNIT);
}

static void load_at__giant_that_takes_too_much_work_is_refused(void **state)
{
	struct file *file = get_giant();

	(void)state;
	child.rows_error = -E2BIG;
	/* It gets pages that say so. */
	assert_int_equal(file_table_load_at(table, file, 2 * UNIT), 0);
	assert_true(file->is_refused);
	assert_int_equal(store.loads, 2);
	assert_int_equal(store.loads_without_source, 1);
	assert_int_equal(store.low, 2 * UNIT);
	assert_int_equal(stats().refused, 1);
	assert_int_equal(file_table_load_at(table, file, 3 * UNIT), 0);
	assert_int_equal(store.loads_without_source, 2);
	assert_int_equal(stats().refused, 1);
	assert_int_equal(child.rows, 1);
}

static void load_at__bad_rows_are_none(void **state)
{
	struct file *file = get_giant();

	(void)state;
	child.rows_error = -EBADMSG;
	assert_int_equal(file_table_load_at(table, file, 2 * UNIT), 0);
	assert_false(file->is_refused);
	assert_int_equal(store.loads_without_source, 1);
	assert_int_equal(stats().refused, 0);
	child.rows_error = -ETIMEDOUT;
	assert_int_equal(file_table_load_at(table, file, 2 * UNIT), -ETIMEDOUT);
	assert_int_equal(store.loads_without_source, 1);
	assert_int_equal(file->no_room_ns, 0);
}

static void load_at__late_child_is_asked_again_some_times(void **state)
{
	struct file *file = get_giant();

	(void)state;
	child.rows_error = -ETIME;
	for (unsigned int i = 0; i < FILE_LATES_MAX; i++) {
		assert_int_equal(file_table_load_at(table, file, 2 * UNIT), -ETIMEDOUT);
		assert_int_equal(stats().refused, 1);
		assert_false(file->is_refused);
	}
	assert_int_equal(store.loads_without_source, 0);
	assert_int_equal(file_table_load_at(table, file, 2 * UNIT), 0);
	assert_true(file->is_refused);
	assert_int_equal(store.loads_without_source, 1);
}

static void get__file_whose_rows_take_too_much_work_is_counted_once(void **state)
{
	struct file *file;

	(void)state;
	child.rows_error = -E2BIG;
	file = get(0, "/lib/a");
	assert_true(file->is_refused);
	assert_true(file->is_whole);
	assert_int_equal(stats().refused, 1);
	disk[1].examine_error = -E2BIG;
	file = get(1, "/lib/b");
	assert_true(file->is_refused);
	assert_int_equal(file->error, -E2BIG);
	assert_int_equal(stats().refused, 2);
	/* It has no code. */
	disk[2].facts.segment_count = 0;
	assert_int_equal(get(2, "/lib/c")->error, -ENOEXEC);
	assert_int_equal(stats().refused, 2);
}

static void rule_at__is_asked_for_where_there_was_no_room(void **state)
{
	struct file *file = get_giant();
	struct pp_rule rule;

	(void)state;
	store.has_rules = true;
	assert_int_equal(file_rule_at(table, file, 2 * UNIT, &rule), 0);
	assert_int_equal(rule.kind, PP_RULE_CFA_SP);
	assert_int_equal(child.rows, 0);
	store.has_rules = false;
	assert_int_equal(file_rule_at(table, file, 2 * UNIT, &rule), 0);
	assert_int_equal(rule.kind, PP_RULE_CFA_FP);
	assert_int_equal(child.rows, 1);
	/* Outside there are none, and a refused file is not asked about. */
	assert_int_equal(file_rule_at(table, file, UNIT + 0x7ffff, &rule), 0);
	assert_int_equal(rule.kind, PP_RULE_NO_INFO);
	assert_int_equal(file_rule_at(table, file, 4 * UNIT + 0x80000, &rule), 0);
	assert_int_equal(rule.kind, PP_RULE_NO_INFO);
	file->is_refused = true;
	assert_int_equal(file_rule_at(table, file, 3 * UNIT, &rule), 0);
	assert_int_equal(rule.kind, PP_RULE_NO_INFO);
	file->is_refused = file->has_rows = false;
	assert_int_equal(file_rule_at(table, file, 3 * UNIT, &rule), 0);
	assert_int_equal(rule.kind, PP_RULE_NO_INFO);
	assert_int_equal(child.rows, 1);
}

/* ---- shares ---- */

static void get__users_share_that_is_used_up_is_tried_for_others(void **state)
{
	struct file *file;

	(void)state;
	store.add_error = -EDQUOT;
	file = get(0, "/lib/a");
	assert_false(file->has_pages);
	assert_int_equal(file->error, -EDQUOT);
	assert_int_equal(file->refused_ns, now_ns);
	assert_int_equal(stats().text_refused, 1);
	assert_int_equal(child.done, 1);
	store.add_error = 0;
	now_ns += NS_PER_SEC - 1;
	assert_ptr_equal(get(0, "/lib/a"), file);
	assert_false(file->has_pages);
	user = 1001;
	assert_ptr_equal(get(0, "/lib/a"), file);
	assert_true(file->has_pages);
	assert_int_equal(file->error, 0);
	assert_int_equal(file->uid, 1001);
	assert_int_equal(store.uid, 1001);
	assert_int_equal(file->refused_ns, 0);
	assert_int_equal(child.done, 2);
	/* It is not tried any more. */
	user = 1002;
	get(0, "/lib/a");
	assert_int_equal(store.added, 1);
}

static void get__users_share_is_tried_again_after_a_second(void **state)
{
	struct file *file, *equal;

	(void)state;
	store.add_error = -ENOSPC;
	stands_for = true;
	file = get(0, "/lib/a");
	equal = get(1, "/lib/b");
	assert_ptr_equal(equal->rows_of, file);
	assert_false(equal->has_pages);
	assert_int_equal(equal->error, -ENOSPC);
	store.add_error = 0;
	now_ns += NS_PER_SEC;
	/* By the one that shares its rows. */
	assert_ptr_equal(get(1, "/lib/b"), equal);
	assert_true(file->has_pages);
	assert_true(equal->has_pages);
	assert_int_equal(equal->error, 0);
	assert_int_equal(equal->page0, file->page0);
	assert_int_equal(stats().text_refused, 1);
	/* A hole is no share: it stays without. */
	text_result = -EFBIG;
	file = get(2, "/lib/c");
	assert_int_equal(file->error, 0); /* it shares those of the first */
	disk[3].facts.debug.build_id_bytes = 0;
	file = get(3, "/lib/d");
	assert_int_equal(file->error, -EFBIG);
	assert_int_equal(file->refused_ns, 0);
	assert_int_equal(stats().text_refused, 2);
}

/* ---- files that the child did not examine ---- */

static void get__file_that_was_not_examined_is_asked_about_again(void **state)
{
	struct file *file;

	(void)state;
	assert_false(file_table_is_due(table, UINT64_MAX));
	disk[0].examine_error = -ETIMEDOUT;
	file = get(0, "/lib/a");
	assert_int_equal(file->unread_ns, now_ns);
	assert_int_equal(stats().refused, 1);
	assert_false(file_table_is_due(table, now_ns + NS_PER_SEC - 1));
	assert_true(file_table_is_due(table, now_ns + NS_PER_SEC));
	assert_false(file_table_is_due(table, now_ns + 2 * NS_PER_SEC - 1));
	now_ns += NS_PER_SEC - 1;
	get(0, "/lib/a");
	assert_int_equal(child.examined, 1);
	user = 1001;
	get(0, "/lib/a");
	assert_int_equal(child.examined, 2);
	assert_int_equal(stats().refused, 1);
	now_ns += NS_PER_SEC;
	disk[0].examine_error = 0;
	get(0, "/lib/a");
	assert_int_equal(child.examined, 3);
	assert_int_equal(file->unread_ns, 0);
	assert_true(file->is_whole);
	assert_int_equal(child.last_done, file->id);
	/* From then on it stands for others. */
	stands_for = true;
	assert_ptr_equal(get(1, "/lib/b")->rows_of, file);
	now_ns += 5 * NS_PER_SEC;
	get(0, "/lib/a");
	assert_int_equal(child.examined, 4);
}

/* ---- names ---- */

static int functions(struct file *file)
{
	const uint64_t vaddr = 0x1234;

	return file_table_functions(table, file, &vaddr, 1, NULL, &child);
}

static void functions__debug_files_are_looked_for_where_symbols_are_missing(void **state)
{
	struct file *file;

	(void)state;
	strcpy(disk[0].facts.debug.link, "a.debug");
	disk[0].identity.owner = 1001;
	file = get(0, "/lib/a");
	assert_int_equal(functions(file), 0);
	assert_false(child.has_debug);
	disk[1] = disk[0];
	disk[1].identity.key.inode = 101;
	disk[1].facts.has_symbols = 0;
	file_table_tidy(table, UINT64_MAX);
	file = get(1, "/lib/a");
	assert_int_equal(functions(file), 0);
	assert_true(child.has_debug);
	assert_int_equal(child.named, 2);
	/* A child that is late at it may be asked again. */
	child.names_error = -ETIME;
	assert_int_equal(functions(file), -ETIMEDOUT);
	assert_int_equal(file->lates, 1);
	file->is_refused = true;
	assert_int_equal(functions(file), -E2BIG);
	assert_int_equal(child.named, 3);
}

static int probes(struct file *file)
{
	static const struct probe_wanted wanted = {.kind = PROBE_WANTED_FUNCTION, .name = "malloc"};
	struct probe_sites sites = {0};
	int err = file_table_probes(table, file, &wanted, 1, &sites);

	assert_int_equal(sites.site_count, file->is_refused ? 0 : 77);
	return err;
}

static void probes__late_child_may_be_asked_again_refused_file_not(void **state)
{
	struct file *file = get(0, "/lib/a");

	(void)state;
	assert_int_equal(probes(file), 0);
	child.names_error = -ETIME;
	assert_int_equal(probes(file), -ETIMEDOUT);
	assert_int_equal(file->lates, 1);
	file->is_refused = true;
	assert_int_equal(probes(file), -E2BIG);
	assert_int_equal(child.named, 2);
}

static void kernels__late_child_may_be_asked_again_refused_file_not(void **state)
{
	const uint64_t vaddr = 0x1234;
	struct file *file = get(0, "/lib/a");

	(void)state;
	assert_int_equal(file_table_kernels(table, file, &vaddr, 1, true, NULL, NULL), 0);
	child.names_error = -ETIME;
	assert_int_equal(file_table_kernels(table, file, &vaddr, 1, true, NULL, NULL), -ETIMEDOUT);
	assert_int_equal(file->lates, 1);
	file->is_refused = true;
	assert_int_equal(file_table_kernels(table, file, &vaddr, 1, true, NULL, NULL), -E2BIG);
	assert_int_equal(child.named, 2);
}

static void descriptor__of_the_vdso_is_a_copy_of_ours(void **state)
{
	const struct mapping mapping = {.start = 0x1000, .end = 0x2000, .path = "[vdso]"};
	struct file *vdso = get_mapping(&mapping), *file = get(0, "/lib/a");
	int fd = -1;

	(void)state;
	assert_non_null(vdso);
	assert_ptr_equal(get_mapping(&mapping), vdso);
	assert_int_equal(file_table_descriptor(table, vdso, &fd), -ENODATA);
	assert_memory_equal(child.own,
			    "\x7f"
			    "ELF",
			    4);
	assert_int_equal(file_table_descriptor(table, file, &fd), 0);
	assert_int_equal(number_of(fd), 0);
	/* It is not forgotten. */
	file_table_tidy(table, UINT64_MAX);
	assert_ptr_equal(get_mapping(&mapping), vdso);
	assert_int_equal(stats().files, 1);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(get__rows_of_each_segment_are_loaded),
		TEST(get__giants_wait_until_they_are_walked),
		TEST(get__file_is_found_by_its_numbers),
		TEST(get__file_that_is_gone_is_known_by_numbers_that_keep),
		TEST(get__file_that_was_closed_is_taken_up_again),
		TEST(get__file_that_can_be_opened_later_is_the_same),
		TEST(get__equal_file_shares_rows),
		TEST(get__other_bytes_are_another_file),
		TEST(get__file_that_is_gone_stands_for_none),
		TEST(tidy__rows_go_with_the_last_that_has_them),
		TEST(tidy__file_without_pages_has_none_to_give_back),
		TEST(load_at__unit_is_cut_at_the_files_ends),
		TEST(load_at__no_room_is_asked_for_again_after_a_second),
		TEST(load_at__giant_that_takes_too_much_work_is_refused),
		TEST(load_at__bad_rows_are_none),
		TEST(load_at__late_child_is_asked_again_some_times),
		TEST(get__file_whose_rows_take_too_much_work_is_counted_once),
		TEST(rule_at__is_asked_for_where_there_was_no_room),
		TEST(get__users_share_that_is_used_up_is_tried_for_others),
		TEST(get__users_share_is_tried_again_after_a_second),
		TEST(get__file_that_was_not_examined_is_asked_about_again),
		TEST(functions__debug_files_are_looked_for_where_symbols_are_missing),
		TEST(probes__late_child_may_be_asked_again_refused_file_not),
		TEST(kernels__late_child_may_be_asked_again_refused_file_not),
		TEST(descriptor__of_the_vdso_is_a_copy_of_ours),
	};

	return cmocka_run_group_tests_name("attach/file_rows", tests, NULL, NULL);
}
