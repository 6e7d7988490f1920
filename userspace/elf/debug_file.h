/* SPDX-License-Identifier: BSD-2-Clause */
/* Finds the separate symbols of a stripped file: an installed debug file, or .gnu_debugdata inside
 * the file. */
#ifndef ELF_DEBUG_FILE_H
#define ELF_DEBUG_FILE_H

#include "elf/elf_image.h"

/* Looks where gdb does: ROOT/usr/lib/debug/.build-id/xx/yyyy.debug, then the name in .gnu_debuglink
 * beside the file, in .debug/ there, and in ROOT/usr/lib/debug/DIR. A file is accepted when it has
 * the same build-id (or, without one, the CRC in .gnu_debuglink), and when it belongs to root and
 * all may read it, or belongs to the owner of the image.
 * Returns 0; -ENOENT; -ENOMEM. */
int debug_file_open(const struct elf_image *image, const char *root, const char *path,
		    struct elf_image **ret_debug);

/* Decompresses .gnu_debugdata (xz) into at most max_bytes. The image uses the memory in ret_bytes,
 * which the caller frees after the image. Returns 0; -ENOENT; -EBADMSG; -EFBIG; -E2BIG when that
 * takes more work than the image's budget; -ENOMEM. */
int debugdata_open(const struct elf_image *image, size_t max_bytes, struct elf_image **ret_debug,
		   void **ret_bytes);

#endif
