/* SPDX-License-Identifier: BSD-2-Clause */
/* For LD_PRELOAD: the first call of the kind FAULT_CALL from the place FAULT_PLACE fails.  A place
 * is a hash of the addresses below the call.  The places of all calls go to the file FAULT_PLACES,
 * eight bytes each; with FAULT_PLACE, only that of the call that fails. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <execinfo.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

#define DEPTH 6

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *old, size_t size);

static const char *chosen;
static uint64_t wanted; /* 0: none fails */
static int places = -1;
static atomic_bool has_failed;
/* backtrace() allocates and opens */
static _Thread_local bool is_inside __attribute__((tls_model("initial-exec")));

__attribute__((constructor)) static void begin(void)
{
	const char *path = getenv("FAULT_PLACES");
	void *warm[1];

	backtrace(warm, 1);
	wanted = getenv("FAULT_PLACE") ? strtoull(getenv("FAULT_PLACE"), NULL, 10) : 0;
	if (path)
		places = (int)syscall(SYS_openat, AT_FDCWD, path,
				      O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
	chosen = getenv("FAULT_CALL");
	unsetenv("LD_PRELOAD");
}

/* Addresses are random, their last bits are not: pages do not move by less. */
static uint64_t place(void)
{
	void *at[DEPTH + 2];
	int depth = backtrace(at, DEPTH + 2);
	uint64_t hash = 14695981039346656037ULL;

	for (int i = 2; i < depth; i++)
		hash = (hash ^ ((uintptr_t)at[i] & 0xfff)) * 1099511628211ULL;
	return hash;
}

static bool fails(const char *call, int err)
{
	bool failing;
	uint64_t hash;

	if (!chosen || strcmp(chosen, call) != 0 || is_inside || has_failed)
		return false;
	is_inside = true;
	hash = place();
	is_inside = false;
	failing = wanted && hash == wanted && !atomic_exchange(&has_failed, true);
	if (places >= 0 && (failing || !wanted))
		syscall(SYS_write, places, &hash, sizeof(hash));
	if (failing)
		errno = err;
	return failing;
}

#define NEXT(function) ((__typeof__(&(function)))dlsym(RTLD_NEXT, #function))

void *malloc(size_t size)
{
	return fails("malloc", ENOMEM) ? NULL : __libc_malloc(size);
}
void *calloc(size_t number, size_t size)
{
	return fails("malloc", ENOMEM) ? NULL : __libc_calloc(number, size);
}
void *realloc(void *old, size_t size)
{
	return fails("malloc", ENOMEM) ? NULL : __libc_realloc(old, size);
}
void *mmap(void *address, size_t size, int protection, int flags, int fd, off_t offset)
{
	if (fails("mmap", ENOMEM))
		return MAP_FAILED;
	return (void *)syscall(SYS_mmap, address, size, protection, flags, fd, offset);
}
ssize_t read(int fd, void *data, size_t size)
{
	return fails("read", EIO) ? -1 : syscall(SYS_read, fd, data, size);
}
ssize_t pread(int fd, void *data, size_t size, off_t offset)
{
	return fails("read", EIO) ? -1 : syscall(SYS_pread64, fd, data, size, offset);
}
ssize_t write(int fd, const void *data, size_t size)
{
	return fails("write", ENOSPC) ? -1 : syscall(SYS_write, fd, data, size);
}
int fsync(int fd)
{
	return fails("fsync", EIO) ? -1 : (int)syscall(SYS_fsync, fd);
}

static int open_at(int folder, const char *path, int flags, mode_t mode)
{
	return fails("open", EMFILE) ? -1 : (int)syscall(SYS_openat, folder, path, flags, mode);
}
#define MODE(flags)                                                                                \
	({                                                                                         \
		mode_t mode = 0;                                                                   \
		va_list rest;                                                                      \
		va_start(rest, flags);                                                             \
		if ((flags) & (O_CREAT | __O_TMPFILE))                                             \
			mode = va_arg(rest, mode_t);                                               \
		va_end(rest);                                                                      \
		mode;                                                                              \
	})
int open(const char *path, int flags, ...)
{
	return open_at(AT_FDCWD, path, flags, MODE(flags));
}
int open64(const char *path, int flags, ...)
{
	return open_at(AT_FDCWD, path, flags, MODE(flags));
}
int openat(int folder, const char *path, int flags, ...)
{
	return open_at(folder, path, flags, MODE(flags));
}

/* libbpf and attach/ have no wrappers for these. */
long syscall(long number, ...)
{
	static long (*next)(long, ...);
	long word[6];
	va_list rest;

	va_start(rest, number);
	for (int i = 0; i < 6; i++)
		word[i] = va_arg(rest, long);
	va_end(rest);
	if (!next)
		next = NEXT(syscall);
	if ((number == SYS_bpf && fails("bpf", EPERM)) ||
	    (number == SYS_perf_event_open && fails("perf_event_open", EMFILE)))
		return -1;
	return next(number, word[0], word[1], word[2], word[3], word[4], word[5]);
}
