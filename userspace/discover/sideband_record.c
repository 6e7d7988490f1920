/* SPDX-License-Identifier: BSD-2-Clause */
#include "discover/sideband_record.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

/* The end of each record: sample_id_all with PERF_EVENT_MAPPINGS_SAMPLE_TYPE. */
struct trailer {
	uint32_t pid, tid;
	uint64_t time_ns;
};

struct mmap2_record {
	struct perf_event_header header;
	uint32_t pid, tid;
	uint64_t address, length, page_offset; /* in bytes, all three */
	uint32_t major, minor;
	uint64_t inode, inode_generation;
	uint32_t protection, flags;
	/* followed by the name, padded with NULs to a multiple of 8, and the trailer */
};
_Static_assert(sizeof(struct mmap2_record) == 72, "as in the kernel's perf_event.h");

struct comm_record {
	struct perf_event_header header;
	uint32_t pid, tid;
	/* followed by the name and the trailer */
};

struct lost_record {
	struct perf_event_header header;
	uint64_t id, lost;
	/* followed by the trailer */
};

static bool take(const void *bytes, size_t size, size_t at, void *part, size_t part_size)
{
	if (size < part_size || at > size - part_size)
		return false;
	memcpy(part, (const char *)bytes + at, part_size);
	return true;
}

uint64_t sideband_record_time(const void *bytes, size_t size)
{
	struct trailer trailer;

	if (size < sizeof(struct perf_event_header) + sizeof(trailer) ||
	    !take(bytes, size, size - sizeof(trailer), &trailer, sizeof(trailer)))
		return 0;
	return trailer.time_ns;
}

static void copy_name(const char *name, size_t size, char path[MAPPING_PATH_MAX_BYTES])
{
	size_t used = strnlen(name, size);

	/* Longer than the kernel writes it. */
	if (used >= MAPPING_PATH_MAX_BYTES) {
		name = "//toolong";
		used = strlen(name);
	}
	memcpy(path, name, used);
	path[used] = '\0';
}

static int parse_mapping(const void *bytes, size_t size, struct sideband_record *record)
{
	const size_t frame = sizeof(struct mmap2_record) + sizeof(struct trailer);
	struct mapping *mapping = &record->mapping;
	struct mmap2_record raw;

	if (size < frame || !take(bytes, size, 0, &raw, sizeof(raw)))
		return -EBADMSG;
	if (!raw.length || raw.address + raw.length < raw.address)
		return -EBADMSG;
	if (!(raw.protection & PROT_EXEC))
		return 0;
	*mapping = (struct mapping){
		.start = raw.address,
		.end = raw.address + raw.length,
		.offset = raw.page_offset,
		.time_ns = record->time_ns,
	};
	/* PERF_RECORD_MISC_MMAP_BUILD_ID is ignored.  We did not ask for build-ids, but once an
	 * event that did has got its record, the kernel leaves the bit set for all others
	 * (perf_event_mmap_output()). */
	mapping->key.major = raw.major;
	mapping->key.minor = raw.minor;
	mapping->key.inode = raw.inode;
	mapping->key.inode_generation = raw.inode_generation;
	copy_name((const char *)bytes + sizeof(raw), size - frame, record->path);
	mapping_set_name(mapping, record->path);
	record->tgid = raw.pid;
	record->kind = SIDEBAND_MAPPING;
	return 0;
}

int sideband_record_parse(const void *bytes, size_t size, struct sideband_record *ret_record)
{
	struct perf_event_header header;
	struct comm_record comm;
	struct lost_record lost;

	ret_record->kind = SIDEBAND_OTHER;
	if (!take(bytes, size, 0, &header, sizeof(header)) || header.size != size ||
	    size < sizeof(header) + sizeof(struct trailer))
		return -EBADMSG;
	ret_record->time_ns = sideband_record_time(bytes, size);
	switch (header.type) {
	case PERF_RECORD_MMAP2:
		return parse_mapping(bytes, size, ret_record);
	case PERF_RECORD_COMM:
		if (size < sizeof(comm) + sizeof(struct trailer) ||
		    !take(bytes, size, 0, &comm, sizeof(comm)))
			return -EBADMSG;
		if (header.misc & PERF_RECORD_MISC_COMM_EXEC)
			ret_record->kind = SIDEBAND_NEW_CONTEXT;
		ret_record->tgid = comm.pid;
		return 0;
	case PERF_RECORD_LOST:
		if (size < sizeof(lost) + sizeof(struct trailer) ||
		    !take(bytes, size, 0, &lost, sizeof(lost)))
			return -EBADMSG;
		ret_record->kind = SIDEBAND_LOST;
		ret_record->lost_count = lost.lost;
		return 0;
	default:
		return 0;
	}
}
