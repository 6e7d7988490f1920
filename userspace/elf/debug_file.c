/* SPDX-License-Identifier: BSD-2-Clause */
#include "elf/debug_file.h"

#include <errno.h>
#include <limits.h>
#include <lzma.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <zlib.h>

#include "base/bytes.h"
#include "base/cleanup.h"
#include "base/safe_file.h"
#include "elf/elf_symbols.h"

/* Finds and opens the files that may have the symbols of a stripped one, and looks into none of
 * them: that is debug_file.h, in a process without rights. */

#define DEBUG_ROOT "/usr/lib/debug"

void debug_files_release(struct debug_files *files)
{
	for (size_t i = 0; i < DEBUG_FILES_MAX; i++)
		close_owned_fd(&files->fd[i]);
}

/* Returns whether a debug file may be used.  Its path came from the file or from the process that
 * maps it, so it may name anything: we accept a file that belongs to root and that all may read,
 * because its names are no secret, or one that belongs to the image's owner. */
static bool may_name(uint32_t owner, int fd)
{
	struct stat status;

	if (fstat(fd, &status) || status.st_mode & S_IWOTH)
		return false;
	return status.st_uid == owner || (!status.st_uid && status.st_mode & S_IROTH);
}

static void try_path(const char *root, const char *path, uint32_t owner, int *ret_fd)
{
	OWNED_FD int fd = -1;

	if (!root_file_open(root, path, &fd) && may_name(owner, fd))
		*ret_fd = TAKE_FD(fd);
}

static void try_build_id(const struct debug_names *names, const char *root, uint32_t owner,
			 int *ret_fd)
{
	char path[sizeof(DEBUG_ROOT) + 256];
	int used;

	if (names->build_id_bytes < 2)
		return;
	used = snprintf(path, sizeof(path), DEBUG_ROOT "/.build-id/%02x/", names->build_id[0]);
	for (size_t i = 1; i < names->build_id_bytes; i++)
		used += snprintf(path + used, sizeof(path) - (size_t)used, "%02x",
				 names->build_id[i]);
	snprintf(path + used, sizeof(path) - (size_t)used, ".debug");
	try_path(root, path, owner, ret_fd);
}

void debug_files_open(const struct debug_names *names, const char *root, const char *path,
		      uint32_t owner, struct debug_files *ret_files)
{
	static const char *const shapes[] = {"%.*s/%s", "%.*s/.debug/%s", DEBUG_ROOT "%.*s/%s"};
	const char *slash = strrchr(path, '/');
	char candidate[PATH_MAX];

	*ret_files = DEBUG_FILES_NONE;
	try_build_id(names, root, owner, &ret_files->fd[0]);
	if (!slash || path[0] != '/' || !names->link[0])
		return;
	for (size_t i = 0; i < ARRAY_SIZE(shapes); i++) {
		int size;

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
		size = snprintf(candidate, sizeof(candidate), shapes[i], (int)(slash - path), path,
				names->link);
#pragma GCC diagnostic pop
		if (size > 0 && (size_t)size < sizeof(candidate))
			try_path(root, candidate, owner, &ret_files->fd[1 + i]);
	}
}

#define FIRST_OUTPUT_BYTES (1U << 20)

/* Returns 0 with the name, which ends in its room, and the CRC of .gnu_debuglink; -ENOENT. */
static int read_debuglink(const struct elf_image *image, char ret_name[NAME_MAX + 1],
			  uint32_t *ret_crc)
{
	struct elf_section section;
	size_t crc_at, name_size;

	if (elf_image_section(image, ".gnu_debuglink", &section) || !section.data)
		return -ENOENT;
	memset(ret_name, 0, NAME_MAX + 1);
	memcpy(ret_name, section.data, section.size < NAME_MAX ? section.size : NAME_MAX);
	name_size = strlen(ret_name);
	crc_at = (name_size + 1 + 3) & ~(size_t)3;
	if (name_size && !strchr(ret_name, '/') && crc_at + sizeof(*ret_crc) <= section.size) {
		*ret_crc = load_u32(section.data + crc_at);
		return 0;
	}
	ret_name[0] = '\0';
	return -ENOENT;
}

static uint32_t file_crc(const struct elf_image *debug)
{
	uint32_t crc = (uint32_t)crc32(0, NULL, 0);

	/* size fits: at most DEBUG_CRC_MAX_BYTES */
	return (uint32_t)crc32(crc, debug->data, (uInt)debug->size);
}

/* crc: NULL when the path was found by the build-id. */
static bool belongs_to(const struct elf_image *debug, const struct elf_image *image,
		       const uint32_t *crc)
{
	if (debug->machine != image->machine)
		return false;
	if (debug->build_id && image->build_id)
		return debug->build_id_size == image->build_id_size &&
		       !memcmp(debug->build_id, image->build_id, image->build_id_size);
	return crc && debug->size <= DEBUG_CRC_MAX_BYTES && elf_image_is_whole(debug) &&
	       elf_work_pay(debug->work, debug->size, 1) && file_crc(debug) == *crc;
}

void debug_names_read(const struct elf_image *image, struct debug_names *ret_names)
{
	uint32_t crc;

	*ret_names = (struct debug_names){.link = ""};
	if (image->build_id && image->build_id_size <= sizeof(ret_names->build_id)) {
		memcpy(ret_names->build_id, image->build_id, image->build_id_size);
		ret_names->build_id_bytes = image->build_id_size;
	}
	(void)read_debuglink(image, ret_names->link, &crc);
}

static int try_file(const struct elf_image *image, int fd, const uint32_t *crc,
		    struct elf_image **ret_debug)
{
	OWNED(elf_image) struct elf_image *debug = NULL;
	int err = fd < 0 ? -ENOENT : elf_image_open(fd, &debug);

	if (err)
		return err == -ENOMEM ? err : -ENOENT;
	if (!belongs_to(debug, image, crc))
		return -ENOENT;
	*ret_debug = TAKE(debug);
	return 0;
}

int debug_file_open(const struct elf_image *image, const struct debug_files *files,
		    struct elf_image **ret_debug)
{
	char name[NAME_MAX + 1];
	uint32_t crc;
	bool has_link;
	int err = -ENOENT;

	if (!files)
		return err;
	err = try_file(image, files->fd[0], NULL, ret_debug);
	has_link = !read_debuglink(image, name, &crc);
	for (size_t i = 1; has_link && err == -ENOENT && i < DEBUG_FILES_MAX; i++)
		err = try_file(image, files->fd[i], &crc, ret_debug);
	return err;
}

/* What is unpacked from one image. */
struct unpacking {
	lzma_stream stream;
	size_t max_bytes;
	struct elf_work *work;
};

/* Doubles the output buffer, up to max_bytes, and pays for filling it. */
static int grow_output(struct unpacking *unpacking, uint8_t **bytes, size_t *room)
{
	lzma_stream *stream = &unpacking->stream;
	const size_t used = *room;
	size_t grown_room = used ? used * 2 : FIRST_OUTPUT_BYTES;
	uint8_t *grown;

	if (grown_room > unpacking->max_bytes)
		grown_room = unpacking->max_bytes;
	if (grown_room == used)
		return -EFBIG;
	if (!elf_work_pay(unpacking->work, grown_room - used, ELF_WORK_PER_UNPACKED_BYTE))
		return -E2BIG;
	grown = realloc(*bytes, grown_room);
	if (!grown)
		return -ENOMEM;
	*bytes = grown;
	*room = grown_room;
	stream->next_out = grown + used;
	stream->avail_out = grown_room - used;
	return 0;
}

static int decode_stream(struct unpacking *unpacking, uint8_t **bytes, size_t *ret_size)
{
	lzma_stream *stream = &unpacking->stream;
	size_t room = 0;

	for (;;) {
		lzma_ret result;

		if (!stream->avail_out) {
			int err = grow_output(unpacking, bytes, &room);

			if (err)
				return err;
		}
		result = lzma_code(stream, LZMA_FINISH);
		if (result == LZMA_STREAM_END)
			break;
		if (result == LZMA_MEM_ERROR)
			return -ENOMEM;
		if (result != LZMA_OK)
			return -EBADMSG;
	}
	*ret_size = stream->total_out;
	return 0;
}

int debugdata_open(const struct elf_image *image, size_t max_bytes, struct elf_image **ret_debug,
		   void **ret_bytes)
{
	struct unpacking unpacking = {
		.stream = LZMA_STREAM_INIT, .max_bytes = max_bytes, .work = image->work};
	OWNED_MEM uint8_t *bytes = NULL;
	struct elf_section section;
	size_t size;
	int err;

	if (elf_image_section(image, ".gnu_debugdata", &section) || !section.data)
		return -ENOENT;
	if (!elf_work_pay(image->work, section.size, 1))
		return -E2BIG;
	if (lzma_stream_decoder(&unpacking.stream, DEBUGDATA_DECODER_MAX_BYTES, 0) != LZMA_OK)
		return -ENOMEM;
	unpacking.stream.next_in = section.data;
	unpacking.stream.avail_in = section.size;
	err = decode_stream(&unpacking, &bytes, &size);
	lzma_end(&unpacking.stream);
	if (err)
		return err;
	err = elf_image_from_memory(bytes, size, ret_debug);
	if (err)
		return err == -ENOEXEC ? -EBADMSG : err;
	elf_image_share_work(*ret_debug, image);
	*ret_bytes = TAKE(bytes);
	return 0;
}

int elf_section_unpack(const struct elf_image *image, const struct elf_section *section,
		       size_t max_bytes, uint8_t **ret_bytes, size_t *ret_size)
{
	OWNED_MEM uint8_t *bytes = NULL;
	Elf64_Chdr header;
	uLongf size;

	if (!section->data || section->size < sizeof(header))
		return -EBADMSG;
	memcpy(&header, section->data, sizeof(header));
	if (header.ch_type != ELFCOMPRESS_ZLIB)
		return -ENOTSUP;
	if (header.ch_size > max_bytes)
		return -EFBIG;
	if (!elf_work_pay(image->work, section->size, 1) ||
	    !elf_work_pay(image->work, header.ch_size, ELF_WORK_PER_UNPACKED_BYTE))
		return -E2BIG;
	size = header.ch_size;
	bytes = malloc(size + 1);
	if (!bytes)
		return -ENOMEM;
	if (uncompress(bytes, &size, section->data + sizeof(header),
		       section->size - sizeof(header)) != Z_OK ||
	    size != header.ch_size)
		return -EBADMSG;
	*ret_bytes = TAKE(bytes);
	*ret_size = size;
	return 0;
}
