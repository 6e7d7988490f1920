/* SPDX-License-Identifier: BSD-2-Clause */
/* Shared by both sources of mappings (proc_maps, sideband): the names of mappings, the identity of
 * files. */
#ifndef DISCOVER_MAPPING_H
#define DISCOVER_MAPPING_H

#include "discover/process.h"

#define MAPPING_PATH_MAX_BYTES 4352U /* PATH_MAX, " (deleted)" and a margin; NUL included */

/* Returns whether two keys name the same file: same device and inode, and same generation where
 * both know it. Two keys without a file are equal. */
bool file_key_equal(const struct file_key *a, const struct file_key *b);

static inline bool mapping_is_anonymous(const struct mapping *mapping)
{
	return mapping->path[0] == '\0';
}

/* Converts the kernel's name of a mapping, in place, to the form that struct mapping holds. `path`
 * is a NUL-terminated buffer, and mapping->path is set to it.
 * A mapping with an inode has a file; " (deleted)" is removed from its name.
 * A mapping without a file ([heap], [anon:…], //anon) becomes anonymous: key and offset are
 * cleared; "[vdso]" keeps its name. Shared anonymous memory, which the kernel shows as files that
 * never existed (/dev/zero, /SYSV…, /anon_hugepage), becomes anonymous too.
 * memfd files keep their names (/memfd:…), because they may be ELF files. */
void mapping_set_name(struct mapping *mapping, char *path);

/* Returns whether the path is musl's dynamic loader, which is also its libc: ld-musl-ARCH.so.1, or
 * libc.so, the file that this name links to in musl's own installation. */
bool path_is_musl(const char *path);

#endif
