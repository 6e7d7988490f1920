/* SPDX-License-Identifier: BSD-2-Clause */
#include "attach/file_descriptors.h"

#include <errno.h>
#include <sys/resource.h>
#include <unistd.h>

#include "attach/file_table.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "discover/mapping_set.h"
#include "files/client.h"
#include "files/opener.h"
#include "files/opening.h"

#include <utlist.h>

/* The other half is for the kernel's maps and events, clients and outputs. */
#define SHARE_OF_LIMIT 2U
/* One call of the table uses up to three files. */
#define DESCRIPTORS_MIN 8U
#define TRY_AGAIN_NS NS_PER_SEC
#define CLOSED_AT_ONCE 64U

void file_descriptors_init(struct file_descriptors *descriptors, struct foreign *foreign)
{
	struct rlimit limit;

	descriptors->foreign = foreign;
	descriptors->max = DESCRIPTORS_MIN;
	if (!getrlimit(RLIMIT_NOFILE, &limit) && limit.rlim_cur / SHARE_OF_LIMIT > DESCRIPTORS_MIN)
		descriptors->max = limit.rlim_cur / SHARE_OF_LIMIT;
}

static struct opener *opener_of(const struct file_descriptors *descriptors)
{
	return foreign_opener(descriptors->foreign);
}

static void take_off(struct file_descriptors *descriptors, struct file *file)
{
	DL_DELETE2(descriptors->least_used, file, less_used, more_used);
	descriptors->open--;
}

void file_descriptors_update(struct file_descriptors *descriptors)
{
	const uint64_t child = opener_child(opener_of(descriptors));

	if (child == descriptors->child)
		return;
	descriptors->child = child;
	while (descriptors->least_used) {
		struct file *file = descriptors->least_used;

		take_off(descriptors, file);
		file->opened.fd = -1;
		file->is_torn = true;
		DL_APPEND2(descriptors->torn, file, less_used, more_used);
	}
}

static void mend(struct file_descriptors *descriptors, struct file *file)
{
	if (!file->is_torn)
		return;
	file->is_torn = false;
	DL_DELETE2(descriptors->torn, file, less_used, more_used);
}

void file_descriptors_close(struct file_descriptors *descriptors, struct file *file)
{
	file_descriptors_update(descriptors);
	mend(descriptors, file);
	if (!file_is_open(file))
		return;
	foreign_close(descriptors->foreign, file->id);
	take_off(descriptors, file);
	opener_close(opener_of(descriptors), &file->opened);
}

void file_descriptors_put(struct file_descriptors *descriptors, struct file *file,
			  const struct opener_file *opened)
{
	file_descriptors_close(descriptors, file);
	while (descriptors->open >= descriptors->max)
		file_descriptors_close(descriptors, descriptors->least_used);
	file->opened = *opened;
	file->opened.number = file->id;
	file->was_opened = true;
	file->lost_ns = 0;
	DL_APPEND2(descriptors->least_used, file, less_used, more_used);
	descriptors->open++;
}

/* ---- opening again ---- */

/* Compares the change time only where the file system has no generation: it also changes when the
 * file's last name is removed. */
static bool is_same_file(const struct file_identity *a, const struct file_identity *b)
{
	return file_key_equal(&a->key, &b->key) &&
	       (a->key.inode_generation || a->changed_ns == b->changed_ns);
}

static int open_by(struct file_descriptors *descriptors, struct file *file,
		   const struct file_place *place)
{
	const struct mapping mapping = {
		.start = place->start, .end = place->end, .key = place->key, .path = file->path};
	struct opener_file opened = {
		.number = file->id, .user = file->uid, .place = opener_place(&place->key)};
	struct opened_file found;
	int err = opener_open_mapped(opener_of(descriptors), place->tgid, file->uid, &mapping,
				     &found);

	if (err)
		return err;
	opened.child = opener_child(opener_of(descriptors));
	opened.fd = found.fd;
	if (!is_same_file(&found.identity, &file->identity)) {
		opener_close(opener_of(descriptors), &opened);
		return -ESTALE;
	}
	file_descriptors_put(descriptors, file, &opened);
	return 0;
}

/* Each address that has no name asks for the file once more. */
static int open_again(struct file_descriptors *descriptors, struct file *file)
{
	if (file->lost_ns && mono_ns() - file->lost_ns < TRY_AGAIN_NS)
		return -ESTALE;
	if (open_by(descriptors, file, &file->first_place) &&
	    open_by(descriptors, file, &file->last_place)) {
		file->lost_ns = mono_ns();
		descriptors->lost++;
		return -ESTALE;
	}
	return 0;
}

int file_descriptors_get(struct file_descriptors *descriptors, struct file *file)
{
	file_descriptors_update(descriptors);
	if (!file->was_opened)
		return -ENODATA;
	if (!file_is_open(file))
		return open_again(descriptors, file);
	DL_DELETE2(descriptors->least_used, file, less_used, more_used);
	DL_APPEND2(descriptors->least_used, file, less_used, more_used);
	return 0;
}

void file_descriptors_reopen(struct file_descriptors *descriptors, uint64_t until_ns)
{
	file_descriptors_update(descriptors);
	while (descriptors->torn && mono_ns() < until_ns) {
		struct file *last = descriptors->torn->less_used; /* the head's is the last one */

		mend(descriptors, last);
		if (last->references)
			(void)open_again(descriptors, last);
	}
}

void file_descriptors_note(struct file *file, const struct process *process,
			   const struct mapping *mapping)
{
	const struct file_place place = {.tgid = process->id.tgid,
					 .key = mapping->key,
					 .start = mapping->start,
					 .end = mapping->end};

	if (!file->first_place.tgid)
		file->first_place = place;
	/* The mappings of an equal file have other numbers. */
	if (place.key.inode == file->first_place.key.inode &&
	    place.key.major == file->first_place.key.major &&
	    place.key.minor == file->first_place.key.minor)
		file->last_place = place;
}

/* ---- files of ended programs ---- */

bool file_descriptors_find_unused(const struct file_descriptors *descriptors, uint64_t before_ns,
				  uint64_t *ret_slots)
{
	bool found = false;

	for (const struct file *file = descriptors->least_used; file; file = file->more_used) {
		const uint32_t slot = file_slot(file->id);

		if (file->references || file->unused_since_ns >= before_ns)
			continue;
		ret_slots[slot / 64] |= 1ULL << slot % 64;
		found = true;
	}
	return found;
}

void file_descriptors_close_all(struct file_descriptors *descriptors, const uint64_t *slots)
{
	struct opener_file *closed[CLOSED_AT_ONCE];
	struct file *next;
	size_t count = 0;

	file_descriptors_update(descriptors);
	for (struct file *file = descriptors->least_used; file; file = next) {
		const uint32_t slot = file_slot(file->id);

		next = file->more_used;
		if (!(slots[slot / 64] >> slot % 64 & 1))
			continue;
		foreign_close(descriptors->foreign, file->id);
		take_off(descriptors, file);
		closed[count++] = &file->opened;
		if (count < CLOSED_AT_ONCE)
			continue;
		opener_close_many(opener_of(descriptors), closed, count);
		count = 0;
	}
	opener_close_many(opener_of(descriptors), closed, count);
}
