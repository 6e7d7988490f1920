/* SPDX-License-Identifier: BSD-2-Clause */
/* Finds the separate symbols of a stripped file: an installed debug file, or .gnu_debugdata inside
 * the file. */
#ifndef ELF_DEBUG_FILE_H
#define ELF_DEBUG_FILE_H

#include "elf/debug_paths.h"
#include "elf/elf_image.h"

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

#endif
