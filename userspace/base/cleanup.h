/* SPDX-License-Identifier: BSD-2-Clause */
/* Variables that free what they own when they leave scope: OWNED(x), OWNED_FD, OWNED_MEM. TAKE()
 * moves ownership out of such a variable. */
#ifndef BASE_CLEANUP_H
#define BASE_CLEANUP_H

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define CLEANUP(function) __attribute__((cleanup(function)))

/* Defines the cleanup function that OWNED(name) calls. Use: DEFINE_OWNED(struct foo, foo), after
 * foo_free(). */
#define DEFINE_OWNED(type, name)                                                                   \
	static inline __attribute__((unused)) void name##_free_owned(type **owned)                 \
	{                                                                                          \
		name##_free(*owned);                                                               \
	}
#define OWNED(name) CLEANUP(name##_free_owned)

/* Moves ownership to the caller: returns the pointer and sets the variable to NULL. */
#define TAKE(pointer)                                                                              \
	({                                                                                         \
		__typeof__(pointer) taken_ = (pointer);                                            \
		(pointer) = NULL;                                                                  \
		taken_;                                                                            \
	})
#define TAKE_FD(fd)                                                                                \
	({                                                                                         \
		int taken_ = (fd);                                                                 \
		(fd) = -1;                                                                         \
		taken_;                                                                            \
	})

static inline void free_owned_memory(void *owned)
{
	free(*(void **)owned);
}
static inline void close_owned_fd(int *fd)
{
	if (*fd >= 0)
		close(*fd);
}
static inline void close_owned_file(FILE **file)
{
	if (*file)
		fclose(*file);
}
static inline void close_owned_dir(DIR **dir)
{
	if (*dir)
		closedir(*dir);
}
#define OWNED_MEM CLEANUP(free_owned_memory)
#define OWNED_FD CLEANUP(close_owned_fd)
#define OWNED_FILE CLEANUP(close_owned_file)
#define OWNED_DIR CLEANUP(close_owned_dir)

#define ARRAY_SIZE(array) (sizeof(array) / sizeof((array)[0]))

#endif
