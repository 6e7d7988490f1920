/* SPDX-License-Identifier: BSD-2-Clause */
#include "attach/file_text.h"

#include <errno.h>
#include <stdint.h>
#include <unistd.h>

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
		if ((uint64_t)data >= end) /* -1, too: nothing follows */
			break;
		hole = lseek(fd, data, SEEK_HOLE);
		if (hole <= data)
			break;
		offset = (uint64_t)hole < end ? (uint64_t)hole : end;
		bytes += offset - (uint64_t)data;
	}
	return bytes;
}

int file_text_check(int fd, const struct file_identity *identity,
		    const struct foreign_segment *segment, size_t count)
{
	/* A FUSE file's program may never answer, and says what it likes: the quota bounds it. */
	const bool is_dense = identity->is_fuse || identity->disk_bytes >= identity->size;
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
