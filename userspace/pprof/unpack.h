/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads a file, gzip'd or not, into one buffer that is reused for the next file. */
#ifndef PPROF_UNPACK_H
#define PPROF_UNPACK_H

#include <stddef.h>
#include <stdint.h>

/* A zeroed buffer is empty. */
struct unpacked {
	uint8_t *byte;
	size_t size, capacity;
	uint64_t packed_size;
	const char *error; /* in words; a literal */
};

/* Reads a file from its beginning to its end, with all gzip members in it.
 * Returns 0; -ENODATA: empty; -EFBIG: more than max_bytes, packed or unpacked, or more than 64 MiB
 * that unpack to more than 256 times their size; -EBADMSG: the gzip
 * data is truncated or corrupt, or another compression; -ENOMEM; -errno of reading. */
int unpack_file(struct unpacked *unpacked, int fd, size_t max_bytes);
void unpack_release(struct unpacked *unpacked);

#endif
