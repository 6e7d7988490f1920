/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads and writes files and reads other processes' memory. All descriptors are O_CLOEXEC. No
 * global state. */
#ifndef BASE_IO_H
#define BASE_IO_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Reads a whole (pseudo) file of at most max_bytes into a NUL-terminated heap buffer.
 * Returns 0; -EFBIG when it is longer; -errno. */
int read_file_at(int dir_fd, const char *path, size_t max_bytes, char **ret_text, size_t *ret_size);
int read_file(const char *path, size_t max_bytes, char **ret_text, size_t *ret_size);

/* Calls pread() until `size` bytes are read. Returns 0; -ENODATA at end of file; -errno. */
int pread_full(int fd, void *buffer, size_t size, off_t offset);
/* Calls write() until all bytes are written. Returns 0 or -errno. */
int write_full(int fd, const void *buffer, size_t size);

/* Finds a task that still has the memory and the files of process `pid`, so that /proc/TID shows
 * them: the main thread or, when the main thread has ended before the others, another thread.
 * Returns 0; -ESRCH when the process has ended. */
int process_live_task(pid_t pid, pid_t *ret_tid);

/* Reads another process's memory, even when its main thread has ended. Uses process_vm_readv and
 * falls back to /proc/PID/mem on EPERM. Reads all of it or nothing.
 * Returns 0; -EFAULT when part of the range is not mapped; -ESRCH; -errno. */
int process_read(pid_t pid, uint64_t address, void *buffer, size_t size);

/* This many small reads in one call cost about a third of what single calls cost. */
#define PROCESS_PIECES_MAX 64U
struct process_piece {
	uint64_t address;
	void *buffer; /* borrowed */
	size_t size;
};
/* Reads at most PROCESS_PIECES_MAX pieces as process_read() does. After an error the contents of
 * the buffers are undefined. */
int process_read_pieces(pid_t pid, const struct process_piece *piece, size_t count);

#endif
