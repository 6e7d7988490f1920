/* SPDX-License-Identifier: BSD-2-Clause */
/* The temporary directory that what was fetched lies in, until pyprof has read it.  A second thread
 * may remove it at any time; then nothing more is written. */
#ifndef COLLECTORS_PLACE_H
#define COLLECTORS_PLACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"

#define FETCH_MAX_BYTES (2ULL << 30) /* of all files */

struct place;

/* Makes a directory below $TMPDIR, or /tmp.  Returns 0; -ENOMEM; -errno. */
int place_new(struct place **ret_place);
/* Removes the directory with all that is in it.  Thread-safe; may be called again. */
void place_remove(struct place *place);
/* Removes it, and frees. */
void place_free(struct place *place);
DEFINE_OWNED(struct place, place)

/* Returns the directory's path. */
const char *place_path(const struct place *place);

/* One file is written at a time: begin, write, end.  `name` has no '/'.
 * Return 0; -EFBIG: FETCH_MAX_BYTES are reached; -ECANCELED: the directory has been removed;
 * -errno. */
int place_begin(struct place *place, const char *name);
int place_write(struct place *place, const void *bytes, size_t size);
int place_end(struct place *place);
/* Gives up the file that was begun, if there is one. */
void place_abandon(struct place *place);
/* Returns whether there is a file of that name; deletes it. */
bool place_has(const struct place *place, const char *name);
void place_delete(struct place *place, const char *name);
/* Returns the first byte of a file; -ENODATA: it has none; -errno. */
int place_first_byte(const struct place *place, const char *name);

#endif
