/* SPDX-License-Identifier: BSD-2-Clause */
/* A file, gzip'd or not, into one buffer that is used again for the next file. */
#ifndef PPROF_UNPACK_H
#define PPROF_UNPACK_H

#include <stddef.h>
#include <stdint.h>

/* All zero is an empty one. */
struct unpacked {
	uint8_t *byte;
	size_t size, capacity;
	uint64_t packed_size;
	const char *error; /* in words; a literal */
};

/* From the file's beginning to its end; gzip members follow each other.
 * Returns 0; -ENODATA: nothing in it; -EFBIG: more than max_bytes, packed or unpacked; -EBADMSG:
 * the gzip data is cut off or broken, or another compression; -ENOMEM; -errno of reading. */
int unpack_file(struct unpacked *unpacked, int fd, size_t max_bytes);
void unpack_release(struct unpacked *unpacked);

#endif
