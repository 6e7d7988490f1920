/* SPDX-License-Identifier: BSD-2-Clause */
/* Ends a stream of open_memstream(). */
#ifndef BASE_MEMORY_FILE_H
#define BASE_MEMORY_FILE_H

#include <errno.h>
#include <stdio.h>

/* Closes the stream, whose text the caller owns as before.  Returns 0; -ENOMEM: the text is not
 * whole, or NULL: fclose() tells neither of a write that failed before nor of its own last
 * realloc() (glibc: libio/memstream.c, _IO_mem_finish). */
static inline int close_memory_file(FILE *stream, char *const *text)
{
	const int had_error = ferror(stream);

	return fclose(stream) || had_error || !*text ? -ENOMEM : 0;
}

#endif
