/* SPDX-License-Identifier: BSD-2-Clause */
/* Files and other processes' memory.  All descriptors are O_CLOEXEC.  No global state. */
#ifndef BASE_IO_H
#define BASE_IO_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Reads a whole (pseudo) file of at most max_bytes into a NUL-terminated heap buffer.
 * Returns 0; -EFBIG when it is longer; -errno. */
int read_file_at(int dir_fd, const char *path, size_t max_bytes, char **ret_text, size_t *ret_size);
int read_file(const char *path, size_t max_bytes, char **ret_text, size_t *ret_size);

/* pread() until `size` bytes are there.  Returns 0; -ENODATA at end of file; -errno. */
int pread_full(int fd, void *buffer, size_t size, off_t offset);
/* write() until all is out.  Returns 0 or -errno. */
int write_full(int fd, const void *buffer, size_t size);

/* A task that still has the memory and the files of process `pid`: its main thread, or where that has
 * ended before the others, one of these.  /proc/TID answers for it.  -ESRCH: the process has ended. */
int process_live_task(pid_t pid, pid_t *ret_tid);

/* Reads another process's memory (process_vm_readv; falls back to /proc/PID/mem on EPERM), also when
 * its main thread has ended.
 * All or nothing.  Returns 0; -EFAULT when part of it is not there; -ESRCH; -errno. */
int process_read(pid_t pid, uint64_t address, void *buffer, size_t size);

/* So many small reads in one call cost about a third of as many calls. */
#define PROCESS_PIECES_MAX 64U
struct process_piece {
	uint64_t address;
	void *buffer; /* borrowed */
	size_t size;
};
/* The same for at most PROCESS_PIECES_MAX pieces: all of them or an error, after which the buffers'
 * contents are undefined. */
int process_read_pieces(pid_t pid, const struct process_piece *piece, size_t count);

#endif
