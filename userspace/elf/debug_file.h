/* SPDX-License-Identifier: BSD-2-Clause */
/* Separate symbols of a stripped file: an installed debug file, or .gnu_debugdata inside it. */
#ifndef ELF_DEBUG_FILE_H
#define ELF_DEBUG_FILE_H

#include "elf/elf_image.h"

/* Looks where gdb does: ROOT/usr/lib/debug/.build-id/xx/yyyy.debug, then .gnu_debuglink's name beside
 * the file, in .debug/ there, and in ROOT/usr/lib/debug/DIR.  Accepted when the build-id is the
 * same or, lacking one, the CRC that .gnu_debuglink states; and when it is root's and readable for all, or
 * its owner is the image's.
 * Returns 0; -ENOENT; -ENOMEM. */
int debug_file_open(const struct elf_image *image, const char *root, const char *path,
		    struct elf_image **ret_debug);

/* Decompresses .gnu_debugdata (xz) into at most max_bytes.  The image lies in ret_bytes, which the
 * caller frees after it.  Returns 0; -ENOENT; -EBADMSG; -EFBIG; -ENOMEM. */
int debugdata_open(const struct elf_image *image, size_t max_bytes, struct elf_image **ret_debug,
		   void **ret_bytes);

#endif
