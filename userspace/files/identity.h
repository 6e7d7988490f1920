/* SPDX-License-Identifier: BSD-2-Clause */
/* Identifies open files by what the kernel vouches for, and decides by their contents whether two
 * files are the same.  A build-id is only the file's own claim: it says where to look.
 * docs/design/files.md.  Any of this may wait for a file system for ever: the child that opens
 * files does it (files/opening.h).  No state. */
#ifndef FILES_IDENTITY_H
#define FILES_IDENTITY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "discover/process.h"
#include "files/protocol.h"

/* Files up to this size are compared byte by byte before they share anything. */
#define FILE_COMPARE_MAX_BYTES (16U << 20)
#define FILE_COMPARE_NS 50000000ULL /* from a disk that is slower they are read by nobody */

struct file_identity {
	struct file_key key; /* as fstat() shows it */
	uint64_t size;
	uint64_t disk_bytes; /* what it takes there; less than size: it has holes, or is packed */
	uint64_t changed_ns; /* ctime: only root can set it */
	uint64_t modified_ns;
	uint32_t owner;
	/* 0 or 1, as it comes from a child.  Only root and the owner can change its contents: it is
	 * not writable by others, and not in a file system whose contents a program makes up
	 * (FUSE). */
	uint8_t is_settled;
	uint8_t is_fuse;
	uint8_t is_layered; /* on overlayfs, where several inodes may be one that lies below */
};
/* Returns whether an identity that came from a child can be one. */
bool file_identity_is_sound(const struct file_identity *identity);
/* Reads the identity of an open file.  Returns 0 or -errno. */
int file_identity_read(int fd, struct file_identity *ret_identity);

/* Reads device, inode and, where the file system has one, the generation of an open file. The
 * device may differ from the one that mappings show (overlayfs, btrfs). Returns 0 or -errno. */
int file_key_from_fd(int fd, struct file_key *ret_key);
/* Returns whether an open file can be the one that a mapping's key names. overlayfs and btrfs show
 * mappings under another device; across devices we compare the low 48 bits of the inode, because
 * overlayfs puts the number of the layer above these. */
bool file_key_is_of_mapping(const struct file_key *file, const struct file_key *mapping);

/* Returns whether the open file is certainly the one that a mapping's key names, also for later
 * mappings with that key.  Where fstat() shows another device than mappings do (overlayfs), we map
 * the file ourselves and compare what the kernel shows; on btrfs only the numbers together with the
 * generation are unique. */
bool file_identity_is_of(int fd, const struct file_identity *identity,
			 const struct file_key *mapping);

/* Returns whether what we know of one file may be used for another, if they have the same contents:
 * the known file belongs to root or to the same owner, and both are settled.  Sets
 * *ret_must_compare: larger files need not be read where both belong to root, and the caller knows
 * that their build-ids are equal. */
bool file_may_stand_for(const struct file_identity *known, const struct file_identity *other,
			bool *ret_must_compare);
/* Returns whether two open files of `size` bytes are equal; gives up after FILE_COMPARE_NS. */
bool file_is_equal(int a, int b, uint64_t size);

/* Returns whether a file has no holes, or nobody knows. */
bool file_is_dense(const struct file_identity *identity);
/* Checks that a file's executable segments have bytes behind what they span; holes do not count, of
 * which a dense file, whose fd may be -1, has none.  Segments lie far apart only in forged files.
 * Returns 0; -EFBIG. */
int file_text_check(int fd, const struct file_identity *identity,
		    const struct foreign_segment *segment, size_t count);

#endif
