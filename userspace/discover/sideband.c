/* SPDX-License-Identifier: BSD-2-Clause */
#include "discover/sideband.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/array.h"
#include "child/perf_opener.h"
#include "discover/cpus.h"
#include "discover/mapping_set.h"
#include "discover/process.h"

/* Parses one record of the perf side-band.
 * Source: include/uapi/linux/perf_event.h, enum perf_event_type. The events' sample_type is
 * PERF_EVENT_MAPPINGS_SAMPLE_TYPE, which decides what each record ends with. */

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
	struct lost_record lost;

	ret_record->kind = SIDEBAND_OTHER;
	if (!take(bytes, size, 0, &header, sizeof(header)) || header.size != size ||
	    size < sizeof(header) + sizeof(struct trailer))
		return -EBADMSG;
	ret_record->time_ns = sideband_record_time(bytes, size);
	switch (header.type) {
	case PERF_RECORD_MMAP2:
		return parse_mapping(bytes, size, ret_record);
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

/* Bounds what was collected but not delivered. */
#define MAX_PENDING_BYTES (64U << 20)

struct ring {
	uint32_t cpu;
	int fd;
	struct perf_event_mmap_page *page; /* then the data */
	size_t bytes;			   /* of data */
};

/* A collected record; its bytes lie at `at` in pending_bytes. */
struct pending {
	uint64_t time_ns;
	uint32_t at, size;
	uint32_t cpu;
	uint32_t sequence; /* keeps the order of equal times */
};

struct sideband {
	struct perf_opener *opener;
	int epoll_fd;
	size_t ring_bytes, page_bytes;
	struct ring *ring;
	size_t ring_count;
	uint8_t *pending_bytes;
	size_t pending_used, pending_capacity;
	struct pending *pending;
	size_t pending_first, pending_count, pending_slots; /* first: the next to deliver */
	struct sideband_stats stats;
};

static void ring_release(const struct sideband *sideband, struct ring *ring)
{
	if (ring->page)
		munmap(ring->page, sideband->page_bytes + ring->bytes);
	if (ring->fd >= 0)
		close(ring->fd);
}

void sideband_free(struct sideband *sideband)
{
	if (!sideband)
		return;
	for (size_t i = 0; i < sideband->ring_count; i++)
		ring_release(sideband, &sideband->ring[i]);
	if (sideband->epoll_fd >= 0)
		close(sideband->epoll_fd);
	free(sideband->ring);
	free(sideband->pending_bytes);
	free(sideband->pending);
	free(sideband);
}

static int ring_open(struct sideband *sideband, uint32_t cpu, struct ring *ring)
{
	const struct perf_event_request request = {.kind = PERF_EVENT_MAPPINGS, .cpu = cpu};
	int err = perf_opener_open(sideband->opener, &request, &ring->fd);
	void *memory;

	if (err)
		return err;
	ring->cpu = cpu;
	ring->bytes = sideband->ring_bytes;
	memory = mmap(NULL, sideband->page_bytes + ring->bytes, PROT_READ | PROT_WRITE, MAP_SHARED,
		      ring->fd, 0);
	if (memory == MAP_FAILED)
		return -errno;
	ring->page = memory;
	return 0;
}

static struct ring *ring_find(const struct sideband *sideband, uint32_t cpu)
{
	for (size_t i = 0; i < sideband->ring_count; i++)
		if (sideband->ring[i].cpu == cpu)
			return &sideband->ring[i];
	return NULL;
}

int sideband_add_cpu(struct sideband *sideband, uint32_t cpu)
{
	struct epoll_event wanted = {.events = EPOLLIN, .data.u32 = cpu};
	struct ring ring = {.fd = -1};
	struct ring *grown;
	int err;

	if (ring_find(sideband, cpu))
		return -EEXIST;
	grown = realloc(sideband->ring, (sideband->ring_count + 1) * sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	sideband->ring = grown;
	err = ring_open(sideband, cpu, &ring);
	if (!err && epoll_ctl(sideband->epoll_fd, EPOLL_CTL_ADD, ring.fd, &wanted) != 0)
		err = -errno;
	if (err) {
		ring_release(sideband, &ring);
		return err;
	}
	sideband->ring[sideband->ring_count++] = ring;
	return 0;
}

static int add_online_cpus(struct sideband *sideband)
{
	struct cpu_list online = {0};
	int err;

	err = cpus_online(&online);
	for (size_t i = 0; i < online.count && !err; i++) {
		err = sideband_add_cpu(sideband, online.cpu[i]);
		if (err == -ENODEV) /* the CPU went offline since the list was read */
			err = 0;
	}
	cpu_list_release(&online);
	return err;
}

int sideband_open(const struct sideband_options *options, struct sideband **ret_sideband)
{
	OWNED(sideband) struct sideband *sideband = calloc(1, sizeof(*sideband));
	int err;

	if (!sideband)
		return -ENOMEM;
	sideband->opener = options ? options->opener : NULL;
	sideband->page_bytes = (size_t)sysconf(_SC_PAGESIZE);
	sideband->ring_bytes =
		options && options->ring_bytes ? options->ring_bytes : SIDEBAND_RING_BYTES;
	sideband->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (sideband->epoll_fd < 0)
		return -errno;
	err = add_online_cpus(sideband);
	if (err)
		return err;
	if (!sideband->ring_count)
		return -ENODEV;
	*ret_sideband = TAKE(sideband);
	return 0;
}

int sideband_fd(const struct sideband *sideband)
{
	return sideband->epoll_fd;
}

/* Makes room for one more record of `size` bytes. */
static int reserve(struct sideband *sideband, size_t size)
{
	if (sideband->pending_used + size > sideband->pending_capacity) {
		size_t capacity = sideband->pending_capacity ? sideband->pending_capacity : 65536;
		uint8_t *grown;

		while (capacity < sideband->pending_used + size)
			capacity *= 2;
		if (capacity > MAX_PENDING_BYTES)
			return -ENOMEM;
		grown = realloc(sideband->pending_bytes, capacity);
		if (!grown)
			return -ENOMEM;
		sideband->pending_bytes = grown;
		sideband->pending_capacity = capacity;
	}
	return ARRAY_RESERVE(sideband->pending, sideband->pending_count, sideband->pending_slots);
}

/* Copies a record, which may wrap around the end of the ring. */
static void copy_out(const struct sideband *sideband, const struct ring *ring, uint64_t from,
		     void *to, size_t size)
{
	const uint8_t *data = (const uint8_t *)ring->page + sideband->page_bytes;
	const size_t at = from & (ring->bytes - 1);
	const size_t first = size < ring->bytes - at ? size : ring->bytes - at;

	memcpy(to, data + at, first);
	memcpy((uint8_t *)to + first, data, size - first);
}

static int collect_ring(struct sideband *sideband, const struct ring *ring)
{
	uint64_t tail = ring->page->data_tail;
	const uint64_t head = __atomic_load_n(&ring->page->data_head, __ATOMIC_ACQUIRE);
	int err = 0;

	while (tail != head) {
		struct perf_event_header header = {0};
		uint8_t *bytes;

		if (head - tail >= sizeof(header) && head - tail <= ring->bytes)
			copy_out(sideband, ring, tail, &header, sizeof(header));
		if (header.size < sizeof(header) || header.size > head - tail) {
			sideband->stats.bad++;
			tail = head;
			break;
		}
		err = reserve(sideband, header.size);
		if (err)
			break;
		bytes = sideband->pending_bytes + sideband->pending_used;
		copy_out(sideband, ring, tail, bytes, header.size);
		sideband->pending[sideband->pending_count] = (struct pending){
			.time_ns = sideband_record_time(bytes, header.size),
			.at = (uint32_t)sideband->pending_used,
			.size = header.size,
			.cpu = ring->cpu,
			.sequence = (uint32_t)sideband->pending_count,
		};
		sideband->pending_count++;
		sideband->pending_used += header.size;
		tail += header.size;
	}
	/* From now on the kernel may overwrite the records. */
	__atomic_store_n(&ring->page->data_tail, tail, __ATOMIC_RELEASE);
	return err;
}

static int compare_pending(const void *left, const void *right)
{
	const struct pending *a = left, *b = right;

	return ORDER(a->time_ns, b->time_ns) ?: ORDER(a->sequence, b->sequence);
}

static void sort_pending(struct sideband *sideband)
{
	const size_t first = sideband->pending_first;

	if (sideband->pending_count > first)
		qsort(sideband->pending + first, sideband->pending_count - first,
		      sizeof(*sideband->pending), compare_pending);
}

/* Frees the memory of delivered records.  When that fails, a later call does it. */
static void compact(struct sideband *sideband)
{
	const size_t first = sideband->pending_first, count = sideband->pending_count - first;
	size_t used = 0;
	uint8_t *bytes;

	if (!first)
		return;
	for (size_t i = 0; i < count; i++)
		used += sideband->pending[first + i].size;
	bytes = malloc(used);
	if (!bytes)
		return;
	memmove(sideband->pending, sideband->pending + first, count * sizeof(*sideband->pending));
	sideband->pending_capacity = used;
	used = 0;
	for (size_t i = 0; i < count; i++) {
		struct pending *pending = &sideband->pending[i];

		memcpy(bytes + used, sideband->pending_bytes + pending->at, pending->size);
		pending->at = (uint32_t)used;
		pending->sequence = (uint32_t)i;
		used += pending->size;
	}
	free(sideband->pending_bytes);
	sideband->pending_bytes = bytes;
	sideband->pending_used = used;
	sideband->pending_first = 0;
	sideband->pending_count = count;
}

int sideband_collect(struct sideband *sideband)
{
	int err = 0;

	compact(sideband);
	for (size_t i = 0; i < sideband->ring_count && !err; i++)
		err = collect_ring(sideband, &sideband->ring[i]);
	sort_pending(sideband);
	return err;
}

static void deliver_one(struct sideband *sideband, const struct pending *pending,
			const struct sideband_handlers *handlers, struct sideband_record *record)
{
	sideband->stats.records++;
	if (sideband_record_parse(sideband->pending_bytes + pending->at, pending->size, record)) {
		sideband->stats.bad++;
		return;
	}
	switch (record->kind) {
	case SIDEBAND_MAPPING:
		handlers->mapping(handlers->context, record->tgid, &record->mapping);
		break;
	case SIDEBAND_LOST:
		sideband->stats.lost += record->lost_count;
		handlers->lost(handlers->context, pending->cpu, record->lost_count);
		break;
	case SIDEBAND_OTHER:
		break;
	}
}

void sideband_deliver(struct sideband *sideband, uint64_t until_ns,
		      const struct sideband_handlers *handlers)
{
	struct sideband_record record;

	while (sideband->pending_first < sideband->pending_count &&
	       sideband->pending[sideband->pending_first].time_ns <= until_ns)
		deliver_one(sideband, &sideband->pending[sideband->pending_first++], handlers,
			    &record);
	if (sideband->pending_first == sideband->pending_count) {
		sideband->pending_first = 0;
		sideband->pending_count = 0;
		sideband->pending_used = 0;
	}
}

int sideband_remove_cpu(struct sideband *sideband, uint32_t cpu)
{
	struct ring *ring = ring_find(sideband, cpu);
	int err;

	if (!ring)
		return -ENOENT;
	err = collect_ring(sideband, ring);
	sort_pending(sideband);
	/* Closing the last descriptor of an event removes it from the epoll set. */
	ring_release(sideband, ring);
	*ring = sideband->ring[--sideband->ring_count];
	return err;
}

void sideband_get_stats(const struct sideband *sideband, struct sideband_stats *ret_stats)
{
	*ret_stats = sideband->stats;
	ret_stats->cpus = (uint32_t)sideband->ring_count;
}
