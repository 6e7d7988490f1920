/* SPDX-License-Identifier: BSD-2-Clause */
/* What the sources of mappings (proc_maps, sideband) share: names of memory, identity of files. */
#ifndef DISCOVER_MAPPING_H
#define DISCOVER_MAPPING_H

#include "discover/process.h"

#define MAPPING_PATH_MAX_BYTES 4352U /* PATH_MAX, " (deleted)" and a margin; NUL included */

/* Whether two keys name one file: by device and inode, and by the inode's generation where both know it.
 * Two keys without a file are equal. */
bool file_key_equal(const struct file_key *a, const struct file_key *b);

static inline bool mapping_is_anonymous(const struct mapping *mapping)
{
	return mapping->path[0] == '\0';
}

/* Brings the kernel's name of a mapping into the form that struct mapping holds, in place, and
 * clears key and offset of what is no file.  `path` is a NUL-terminated buffer; mapping->path is set
 * to it.  An inode says that there is a file; " (deleted)" is taken off its name.
 * Anonymous: no file ([heap], [anon:…], //anon), but "[vdso]" stays; shared anonymous memory, which
 * the kernel shows as files that were never there (/dev/zero, /SYSV…, /anon_hugepage).
 * memfd files keep their names (/memfd:…): they may well be ELF files. */
void mapping_set_name(struct mapping *mapping, char *path);

/* Whether this is musl's dynamic loader, which is its libc too: ld-musl-ARCH.so.1, or the file that
 * this is a link to in musl's own installation, libc.so. */
bool path_is_musl(const char *path);

#endif
