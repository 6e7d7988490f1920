/* SPDX-License-Identifier: BSD-2-Clause */
/* Identifies open files by what the kernel vouches for, and decides by their contents whether two
 * files are the same.  A build-id is only the file's own claim: it says where to look.
 * docs/design/files.md.  No state. */
#ifndef ATTACH_FILE_IDENTITY_H
#define ATTACH_FILE_IDENTITY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "discover/process.h"
#include "files/protocol.h"

/* Files up to this size are compared byte by byte before they share anything. */
#define FILE_COMPARE_MAX_BYTES (16U << 20)

struct file_identity {
	struct file_key key; /* as fstat() shows it */
	uint64_t size;
	uint64_t disk_bytes; /* what it takes there; less than size: it has holes, or is packed */
	uint64_t changed_ns; /* ctime: only root can set it */
	uint32_t owner;
	/* Only root and the owner can change its contents: it is not writable by others, and not in
	 * a file system whose contents a program makes up (FUSE). */
	bool is_settled;
	bool is_fuse;
};
/* Reads the identity of an open file.  Returns 0 or -errno. */
int file_identity_read(int fd, struct file_identity *ret_identity);

/* Returns whether the open file is certainly the one that a mapping's key names, also for later
 * mappings with that key.  Where fstat() shows another device than mappings do (overlayfs), we map
 * the file ourselves and compare what the kernel shows; on btrfs only the numbers together with the
 * generation are unique. */
bool file_identity_is_of(int fd, const struct file_identity *identity,
			 const struct file_key *mapping);

/* An open descriptor and its file's identity. */
struct open_file {
	int fd;
	const struct file_identity *identity;
};
/* Returns whether what we know of one file may be used for another: the known file belongs to root
 * or to the same owner, both are settled, and they are equal byte by byte.  For larger files: both
 * belong to root, and the caller knows that their build-ids are equal. */
bool file_stands_for(struct open_file known, struct open_file other);

/* Checks that a file's executable segments have bytes behind what they span; holes do not count.
 * Segments lie far apart only in forged files.  Returns 0; -EFBIG. */
int file_text_check(int fd, const struct file_identity *identity,
		    const struct foreign_segment *segment, size_t count);

#endif
