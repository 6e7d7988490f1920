/* SPDX-License-Identifier: BSD-2-Clause */
#include "attach/file_descriptors.h"

#include <errno.h>
#include <sys/resource.h>
#include <unistd.h>

#include "attach/file_table.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "discover/file_open.h"
#include "discover/mapping_set.h"
#include "files/client.h"

#include <utlist.h>

/* The other half is for the kernel's maps and events, clients and outputs. */
#define SHARE_OF_LIMIT 2U
/* One call of the table uses up to three files. */
#define DESCRIPTORS_MIN 8U
#define TRY_AGAIN_NS NS_PER_SEC

void file_descriptors_init(struct file_descriptors *descriptors, struct foreign *foreign)
{
	struct rlimit limit;

	descriptors->foreign = foreign;
	descriptors->max = DESCRIPTORS_MIN;
	if (!getrlimit(RLIMIT_NOFILE, &limit) && limit.rlim_cur / SHARE_OF_LIMIT > DESCRIPTORS_MIN)
		descriptors->max = limit.rlim_cur / SHARE_OF_LIMIT;
}

void file_descriptors_close(struct file_descriptors *descriptors, struct file *file)
{
	if (file->fd < 0)
		return;
	foreign_close(descriptors->foreign, file->id);
	DL_DELETE2(descriptors->least_used, file, less_used, more_used);
	descriptors->open--;
	close(TAKE_FD(file->fd));
}

void file_descriptors_put(struct file_descriptors *descriptors, struct file *file, int fd)
{
	file_descriptors_close(descriptors, file);
	while (descriptors->open >= descriptors->max)
		file_descriptors_close(descriptors, descriptors->least_used);
	file->fd = fd;
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

static int open_by(const struct file *file, const struct file_place *place, int *ret_fd)
{
	const struct mapping mapping = {
		.start = place->start, .end = place->end, .key = place->key, .path = file->path};
	OWNED_FD int fd = -1;
	struct file_identity identity;
	int err = file_open(place->tgid, &mapping, &fd);

	if (!err)
		err = file_identity_read(fd, &identity);
	if (err)
		return err;
	if (!is_same_file(&identity, &file->identity))
		return -ESTALE;
	*ret_fd = TAKE_FD(fd);
	return 0;
}

/* Each address that has no name asks for the file once more. */
static int open_again(struct file_descriptors *descriptors, struct file *file)
{
	int fd = -1;

	if (file->lost_ns && mono_ns() - file->lost_ns < TRY_AGAIN_NS)
		return -ESTALE;
	if (open_by(file, &file->first_place, &fd) && open_by(file, &file->last_place, &fd)) {
		file->lost_ns = mono_ns();
		descriptors->lost++;
		return -ESTALE;
	}
	file_descriptors_put(descriptors, file, fd);
	return 0;
}

int file_descriptors_get(struct file_descriptors *descriptors, struct file *file, int *ret_fd)
{
	int err = 0;

	if (!file->was_opened)
		return -ENODATA;
	if (file->fd >= 0) {
		DL_DELETE2(descriptors->least_used, file, less_used, more_used);
		DL_APPEND2(descriptors->least_used, file, less_used, more_used);
	} else {
		err = open_again(descriptors, file);
	}
	*ret_fd = file->fd;
	return err;
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
	struct file *next;

	for (struct file *file = descriptors->least_used; file; file = next) {
		const uint32_t slot = file_slot(file->id);

		next = file->more_used;
		if (slots[slot / 64] >> slot % 64 & 1)
			file_descriptors_close(descriptors, file);
	}
}
