/* SPDX-License-Identifier: BSD-2-Clause */
#include "finish/scan.h"

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

/* The kernel fills 32 KiB at a time (kernel/bpf/bpf_iter.c: PAGE_SIZE << 3). */
#define BUFFER_RECORDS 32U
/* -EAGAIN: the kernel passed a million tasks, all left out. */
#define READS_WITHOUT_RECORDS_MAX 1000U

struct scan_reader {
	int fd;
	size_t at, end; /* bytes in record[] */
	struct pp_scan_record record[BUFFER_RECORDS];
};

int scan_reader_new(int fd, struct scan_reader **ret_reader)
{
	struct scan_reader *reader = malloc(sizeof(*reader));

	if (!reader) {
		close(fd);
		return -ENOMEM;
	}
	reader->fd = fd;
	reader->at = reader->end = 0;
	*ret_reader = reader;
	return 0;
}

void scan_reader_free(struct scan_reader *reader)
{
	if (!reader)
		return;
	close(reader->fd);
	free(reader);
}

/* Moves the unread bytes to the front and reads more.  Returns 1; 0 at the end; -errno. */
static int fill(struct scan_reader *reader)
{
	uint8_t *bytes = (uint8_t *)reader->record;
	ssize_t got = -1;

	memmove(bytes, bytes + reader->at, reader->end - reader->at);
	reader->end -= reader->at;
	reader->at = 0;
	for (unsigned int i = 0; i < READS_WITHOUT_RECORDS_MAX; i++) {
		got = read(reader->fd, bytes + reader->end, sizeof(reader->record) - reader->end);
		if (got >= 0 || (errno != EINTR && errno != EAGAIN))
			break;
	}
	if (got < 0)
		return -errno;
	reader->end += (size_t)got;
	return got > 0;
}

/* Makes so many bytes of the next record be there.  Returns 1; 0: there are no more records;
 * -EBADMSG: there is a part of one; -errno. */
static int want(struct scan_reader *reader, size_t bytes)
{
	while (reader->end - reader->at < bytes) {
		int more = fill(reader);

		if (more < 0)
			return more;
		if (!more)
			return reader->end > reader->at ? -EBADMSG : 0;
	}
	return 1;
}

static const struct pp_scan_record *record_at(const struct scan_reader *reader)
{
	return (const struct pp_scan_record *)((const uint8_t *)reader->record + reader->at);
}

/* Its head is there, up to returns[]. */
static bool is_sound(const struct pp_scan_record *record)
{
	return record->return_count <= PP_MAX_RETURNS &&
	       record->size == (record->return_count ? sizeof(*record) : PP_SCAN_RECORD_SHORT) &&
	       record->tid && record->tgid && record->state && record->wait > PP_WAIT_NONE &&
	       record->wait < PP_WAIT_COUNT && record->kernel_count <= PP_MAX_KERNEL_FRAMES;
}

int scan_reader_next(struct scan_reader *reader, const struct pp_scan_record **ret_record)
{
	const struct pp_scan_record *record;
	size_t size;
	int err;

	err = want(reader, PP_SCAN_RECORD_SHORT);
	if (err <= 0)
		return err;
	record = record_at(reader);
	if (!is_sound(record))
		return -EBADMSG;
	size = record->size;
	err = want(reader, size);
	if (err <= 0)
		return err;
	record = record_at(reader);
	reader->at += size;
	*ret_record = record;
	return 1;
}
