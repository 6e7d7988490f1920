/* SPDX-License-Identifier: BSD-2-Clause */
#include "attach/file_identity.h"

#include <errno.h>
#include <inttypes.h>
#include <linux/magic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/io.h"
#include "discover/file_open.h"

#define COMPARE_CHUNK_BYTES 65536U
#define OWN_MAPS_MAX_BYTES (4U << 20)

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
	identity.changed_ns =
		(uint64_t)status.st_ctim.tv_sec * NS_PER_SEC + (uint64_t)status.st_ctim.tv_nsec;
	identity.owner = status.st_uid;
	identity.disk_bytes = (uint64_t)status.st_blocks * 512; /* stat(2) */
	identity.is_fuse = (uint32_t)system.f_type == FUSE_SUPER_MAGIC;
	identity.is_settled = !(status.st_mode & (S_IWGRP | S_IWOTH)) && !identity.is_fuse;
	*ret_identity = identity;
	return 0;
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

static bool same_bytes(int a, int b, uint64_t size)
{
	OWNED_MEM char *left = malloc(COMPARE_CHUNK_BYTES);
	OWNED_MEM char *right = malloc(COMPARE_CHUNK_BYTES);

	if (!left || !right)
		return false;
	for (uint64_t at = 0; at < size; at += COMPARE_CHUNK_BYTES) {
		const uint64_t rest = size - at;
		const size_t chunk =
			rest < COMPARE_CHUNK_BYTES ? (size_t)rest : COMPARE_CHUNK_BYTES;

		if (pread_full(a, left, chunk, (off_t)at) ||
		    pread_full(b, right, chunk, (off_t)at) || memcmp(left, right, chunk) != 0)
			return false;
	}
	return true;
}

bool file_stands_for(struct open_file known, struct open_file other)
{
	const struct file_identity *a = known.identity, *b = other.identity;

	/* A file whose contents a program makes up could block the comparison. */
	if (known.fd < 0 || other.fd < 0 || a->size != b->size || !a->is_settled ||
	    !b->is_settled || (a->owner && a->owner != b->owner))
		return false;
	if (a->size <= FILE_COMPARE_MAX_BYTES)
		return same_bytes(known.fd, other.fd, a->size);
	return !a->owner && !b->owner;
}
