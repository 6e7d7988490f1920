/* SPDX-License-Identifier: BSD-2-Clause */
/* Finds the separate symbols of a stripped file: an installed debug file, or .gnu_debugdata inside
 * the file. */
#ifndef ELF_DEBUG_FILE_H
#define ELF_DEBUG_FILE_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "elf/elf_image.h"

#define DEBUG_BUILD_ID_MAX_BYTES 64U
#define DEBUG_FILES_MAX 4U

/* What a file says about where its symbols are. */
struct debug_names {
	uint8_t build_id[DEBUG_BUILD_ID_MAX_BYTES];
	size_t build_id_bytes;	 /* 0: none */
	char link[NAME_MAX + 1]; /* "": none; has no '/' */
};

/* Open files, -1: none.  [0] by the build-id, the others by the name in .gnu_debuglink. */
struct debug_files {
	int fd[DEBUG_FILES_MAX]; /* owned */
};
#define DEBUG_FILES_NONE ((struct debug_files){.fd = {-1, -1, -1, -1}})
void debug_files_release(struct debug_files *files);

/* Looks where gdb does: ROOT/usr/lib/debug/.build-id/xx/yyyy.debug, then the name in .gnu_debuglink
 * beside the file, in .debug/ there, and in ROOT/usr/lib/debug/DIR.  root: where the process sees
 * its files ("/" or "/proc/PID/root"); path: the file's below it.  owner: of the file; a debug file
 * must belong to root and all may read it, or to that owner. */
void debug_files_open(const struct debug_names *names, const char *root, const char *path,
		      uint32_t owner, struct debug_files *ret_files);

/* Reads where an image's symbols may be. */
void debug_names_read(const struct elf_image *image, struct debug_names *ret_names);
/* Opens the first of these files that belongs to the image: it has the same build-id or, without
 * one, the CRC in .gnu_debuglink.  files NULL: there are none.  Returns 0; -ENOENT; -ENOMEM. */
int debug_file_open(const struct elf_image *image, const struct debug_files *files,
		    struct elf_image **ret_debug);

/* Decompresses .gnu_debugdata (xz) into at most max_bytes. The image uses the memory in ret_bytes,
 * which the caller frees after the image. Returns 0; -ENOENT; -EBADMSG; -EFBIG; -E2BIG when that
 * takes more work than the image's budget; -ENOMEM. */
int debugdata_open(const struct elf_image *image, size_t max_bytes, struct elf_image **ret_debug,
		   void **ret_bytes);
/* Decompresses a section with SHF_COMPRESSED (zlib) of at most max_bytes into *ret_bytes, which the
 * caller frees.  Returns 0; -ENOTSUP: another method; -EBADMSG; -EFBIG; -E2BIG, -ENOMEM as
 * before. */
int elf_section_unpack(const struct elf_image *image, const struct elf_section *section,
		       size_t max_bytes, uint8_t **ret_bytes, size_t *ret_size);

#endif
