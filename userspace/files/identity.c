/* SPDX-License-Identifier: BSD-2-Clause */
#include "files/identity.h"

#include <errno.h>
#include <inttypes.h>
#include <linux/fs.h>
#include <linux/magic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/io.h"
#include "files/protocol.h"

/* Tells code from claims: a file of a few KiB may say that its code spans terabytes.  No state. */

#define TEXT_EXTENTS_MAX 256U /* looked at; what lies behind counts as a hole */
/* Code may span so many times its bytes, and that much more: linkers align segments. */
#define TEXT_SPAN_TIMES 4U
#define TEXT_SPAN_MORE_BYTES (4ULL << 20)

/* Returns how many bytes of [offset, offset + size) are no hole.  *extents: how many more pieces
 * may be looked at. */
static uint64_t count_data(int fd, uint64_t offset, uint64_t size, unsigned int *extents)
{
	const uint64_t end = offset + size;
	uint64_t bytes = 0;

	while (offset < end && *extents) {
		off_t data = lseek(fd, (off_t)offset, SEEK_DATA), hole;

		--*extents;
		if (data < 0 && errno != ENXIO)
			return bytes + (end - offset); /* this file system does not say */
		if ((uint64_t)data >= end)	       /* -1, too: nothing follows */
			break;
		hole = lseek(fd, data, SEEK_HOLE);
		if (hole <= data)
			break;
		offset = (uint64_t)hole < end ? (uint64_t)hole : end;
		bytes += offset - (uint64_t)data;
	}
	return bytes;
}

/* A FUSE file's program may never answer, and says what it likes: the quota bounds it. */
bool file_is_dense(const struct file_identity *identity)
{
	return identity->is_fuse || identity->disk_bytes >= identity->size;
}

int file_text_check(int fd, const struct file_identity *identity,
		    const struct foreign_segment *segment, size_t count)
{
	const bool is_dense = file_is_dense(identity);
	uint64_t low = UINT64_MAX, high = 0, bytes = 0;
	unsigned int extents = TEXT_EXTENTS_MAX;

	for (size_t i = 0; i < count; i++) {
		const uint64_t end = segment[i].vaddr + segment[i].file_size;

		low = segment[i].vaddr < low ? segment[i].vaddr : low;
		high = end > high ? end : high;
		bytes += is_dense ? segment[i].file_size
				  : count_data(fd, segment[i].offset, segment[i].file_size,
					       &extents);
	}
	if (high <= low || high - low <= TEXT_SPAN_MORE_BYTES)
		return 0;
	return (high - low - TEXT_SPAN_MORE_BYTES) / TEXT_SPAN_TIMES > bytes ? -EFBIG : 0;
}

#define COMPARE_CHUNK_BYTES 65536U
#define OWN_MAPS_MAX_BYTES (4U << 20)

#define INODE_LOW_BITS 0xffffffffffffULL

int file_key_from_fd(int fd, struct file_key *ret_key)
{
	struct file_key key = {0};
	struct stat status;
	int generation = 0;

	if (fstat(fd, &status) != 0)
		return -errno;
	key.major = major(status.st_dev);
	key.minor = minor(status.st_dev);
	key.inode = status.st_ino;
	/* The kernel stores an int, although the ioctl's name says long. */
	if (ioctl(fd, FS_IOC_GETVERSION, &generation) == 0)
		key.inode_generation = (uint32_t)generation;
	*ret_key = key;
	return 0;
}

bool file_key_is_of_mapping(const struct file_key *file, const struct file_key *mapping)
{
	if (!mapping->inode)
		return true;
	if (file->major == mapping->major && file->minor == mapping->minor)
		return file->inode == mapping->inode &&
		       (!file->inode_generation || !mapping->inode_generation ||
			file->inode_generation == mapping->inode_generation);
	return !((file->inode ^ mapping->inode) & INODE_LOW_BITS);
}

static uint64_t time_ns(const struct timespec *time)
{
	return (uint64_t)time->tv_sec * NS_PER_SEC + (uint64_t)time->tv_nsec;
}

int file_identity_read(int fd, struct file_identity *ret_identity)
{
	struct file_identity identity = {0};
	struct statfs system;
	struct stat status;
	int err = file_key_from_fd(fd, &identity.key);

	if (err)
		return err;
	if (fstat(fd, &status) || fstatfs(fd, &system))
		return -errno;
	identity.size = (uint64_t)status.st_size;
	identity.changed_ns = time_ns(&status.st_ctim);
	identity.modified_ns = time_ns(&status.st_mtim);
	identity.owner = status.st_uid;
	identity.disk_bytes = (uint64_t)status.st_blocks * 512; /* stat(2) */
	identity.is_fuse = (uint32_t)system.f_type == FUSE_SUPER_MAGIC;
	identity.is_layered = (uint32_t)system.f_type == OVERLAYFS_SUPER_MAGIC;
	identity.is_settled = !(status.st_mode & (S_IWGRP | S_IWOTH)) && !identity.is_fuse;
	*ret_identity = identity;
	return 0;
}

bool file_identity_is_sound(const struct file_identity *identity)
{
	return identity->size <= INT64_MAX && identity->is_settled <= 1 && identity->is_fuse <= 1 &&
	       identity->is_layered <= 1;
}

/* ---- the file of a mapping ---- */

static bool is_btrfs(int fd)
{
	struct statfs system;

	return !fstatfs(fd, &system) && (uint32_t)system.f_type == BTRFS_SUPER_MAGIC;
}

/* Reads device and inode from the line of /proc/self/maps that begins at an address. */
static int own_mapping_key(const void *address, struct file_key *ret_key)
{
	OWNED_MEM char *text = NULL;
	struct file_key key = {0};
	const char *line;
	char start[32];
	int err = read_file("/proc/self/maps", OWN_MAPS_MAX_BYTES, &text, NULL);

	if (err)
		return err;
	snprintf(start, sizeof(start), "\n%" PRIxPTR "-", (uintptr_t)address);
	line = strncmp(text, start + 1, strlen(start + 1)) ? strstr(text, start) : text;
	if (!line || sscanf(line, " %*x-%*x %*s %*x %" SCNx32 ":%" SCNx32 " %" SCNu64, &key.major,
			    &key.minor, &key.inode) != 3)
		return -EBADMSG;
	*ret_key = key;
	return 0;
}

static int mapped_key(int fd, struct file_key *ret_key)
{
	const size_t page = (size_t)sysconf(_SC_PAGESIZE);
	void *memory = mmap(NULL, page, PROT_READ, MAP_PRIVATE, fd, 0);
	int err;

	if (memory == MAP_FAILED)
		return -errno;
	err = own_mapping_key(memory, ret_key);
	munmap(memory, page);
	return err;
}

static bool is_same_number(const struct file_key *a, const struct file_key *b)
{
	return a->major == b->major && a->minor == b->minor && a->inode == b->inode;
}

bool file_identity_is_of(int fd, const struct file_identity *identity,
			 const struct file_key *mapping)
{
	const struct file_key *own = &identity->key;
	struct file_key mapped = {0};

	if (!mapping->inode)
		return false;
	if (is_same_number(own, mapping))
		return !own->inode_generation || !mapping->inode_generation ||
		       own->inode_generation == mapping->inode_generation;
	if (own->inode_generation && mapping->inode_generation &&
	    own->inode_generation != mapping->inode_generation)
		return false;
	/* On btrfs the subvolumes share a device, and each numbers its files by itself. */
	if (is_btrfs(fd) && !(own->inode_generation && mapping->inode_generation))
		return false;
	return !mapped_key(fd, &mapped) && is_same_number(&mapped, mapping);
}

/* ---- files that are the same ---- */

bool file_is_equal(int a, int b, uint64_t size)
{
	OWNED_MEM char *left = malloc(COMPARE_CHUNK_BYTES);
	OWNED_MEM char *right = malloc(COMPARE_CHUNK_BYTES);
	const uint64_t end_ns = mono_ns() + FILE_COMPARE_NS;

	if (!left || !right)
		return false;
	for (uint64_t at = 0; at < size; at += COMPARE_CHUNK_BYTES) {
		const uint64_t rest = size - at;
		const size_t chunk =
			rest < COMPARE_CHUNK_BYTES ? (size_t)rest : COMPARE_CHUNK_BYTES;

		if (mono_ns() > end_ns || pread_full(a, left, chunk, (off_t)at) ||
		    pread_full(b, right, chunk, (off_t)at) || memcmp(left, right, chunk) != 0)
			return false;
	}
	return true;
}

bool file_may_stand_for(const struct file_identity *known, const struct file_identity *other,
			bool *ret_must_compare)
{
	/* A file whose contents a program makes up could block the comparison. */
	if (known->size != other->size || !known->is_settled || !other->is_settled ||
	    (known->owner && known->owner != other->owner))
		return false;
	*ret_must_compare = known->size <= FILE_COMPARE_MAX_BYTES;
	return *ret_must_compare || (!known->owner && !other->owner);
}
