/* SPDX-License-Identifier: BSD-2-Clause */
/* Which file an open descriptor is, by what the kernel vouches for; and whether two files are the same, by
 * what is in them.  A build-id is what a file says of itself: it only says where to look.
 * docs/design/0016-files-are-their-inodes.md.  No state. */
#ifndef ATTACH_FILE_IDENTITY_H
#define ATTACH_FILE_IDENTITY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "discover/process.h"

/* Files up to this size are compared byte by byte before they share anything. */
#define FILE_COMPARE_MAX_BYTES (16U << 20)

struct file_identity {
	struct file_key key; /* as fstat() shows it */
	uint64_t size;
	uint64_t changed_ns; /* ctime: nobody but root can set it */
	uint32_t owner;
	/* Nobody but root and its owner can change what it holds: not writable for others, and in no
	 * file system that a program makes up as it is read (FUSE). */
	bool is_settled;
};
/* 0 or -errno. */
int file_identity_read(int fd, struct file_identity *ret_identity);

/* Whether the open file is the one of a mapping's key, so that whatever is mapped under that key later is this
 * file as well.  Where fstat() shows another device than mappings do (overlayfs), the file is mapped here to
 * see what the kernel shows of it; btrfs has no number that is one file's alone but with its generation. */
bool file_identity_is_of(int fd, const struct file_identity *identity, const struct file_key *mapping);

/* What one descriptor is of. */
struct open_file {
	int fd;
	const struct file_identity *identity;
};
/* Whether a file may stand for another one (what is found in `known` is believed of `other`): it is root's or
 * of the same owner, both are settled and equal byte by byte; larger files: both are root's, and the caller knows
 * that their build-ids are equal. */
bool file_stands_for(struct open_file known, struct open_file other);

#endif
