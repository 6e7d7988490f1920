/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads and writes files and reads other processes' memory. All descriptors are O_CLOEXEC. No
 * global state. */
#ifndef BASE_IO_H
#define BASE_IO_H

#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

/* Closes the stream, whose text the caller owns as before.  Returns 0; -ENOMEM: the text is not
 * whole, or NULL: fclose() tells neither of a write that failed before nor of its own last
 * realloc() (glibc: libio/memstream.c, _IO_mem_finish). */
static inline int close_memory_file(FILE *stream, char *const *text)
{
	const int had_error = ferror(stream);

	return fclose(stream) || had_error || !*text ? -ENOMEM : 0;
}

/* Reads a whole (pseudo) file of at most max_bytes into a NUL-terminated heap buffer.
 * Returns 0; -EFBIG when it is longer; -errno. */
int read_file_at(int dir_fd, const char *path, size_t max_bytes, char **ret_text, size_t *ret_size);
int read_file(const char *path, size_t max_bytes, char **ret_text, size_t *ret_size);

/* Calls pread() until `size` bytes are read. Returns 0; -ENODATA at end of file; -errno. */
int pread_full(int fd, void *buffer, size_t size, off_t offset);
/* Calls pread() from the start of a file until `size` bytes are read or the file ends.
 * Returns 0 or -errno. */
int pread_up_to(int fd, void *buffer, size_t size, size_t *ret_size);
/* Calls getdents64() until no more records fit or the directory ends.  Returns 0 or -errno. */
int list_up_to(int fd, void *buffer, size_t size, size_t *ret_size);
/* Calls write() until all bytes are written. Returns 0 or -errno. */
int write_full(int fd, const void *buffer, size_t size);
/* Creates a file of this mode, whatever the umask is, writes it and syncs it.  One of that name,
 * left from a crash, is replaced.  Returns 0; -errno, and there is no file. */
int write_file_at(int dir_fd, const char *name, mode_t mode, const void *bytes, size_t size);

/* Opens the directory that a path's last name is in.  flags: besides O_RDONLY, as O_NOFOLLOW.
 * *ret_name points into path.  Returns 0; -EISDIR: the last name is "", "." or ".."; -errno. */
int open_directory_of(const char *path, int flags, const char **ret_name, int *ret_fd);

/* Finds a task that still has the memory and the files of process `pid`, so that /proc/TID shows
 * them: the main thread or, when the main thread has ended before the others, another thread.
 * Returns 0; -ESRCH when the process has ended. */
int process_live_task(pid_t pid, pid_t *ret_tid);

/* Counts the threads of a process, by the links of the directory that has one for each; 0: it is
 * gone.  What a forged list may cost is bounded by that. */
uint32_t process_count_threads(pid_t pid);

/* This many small reads in one call cost about a third of what single calls cost. */
#define PROCESS_PIECES_MAX 64U
struct process_piece {
	uint64_t address;
	void *buffer; /* borrowed */
	size_t size;
};

/* Texts about a process that come from its own memory, and the users that it knows. */
enum process_text {
	PROCESS_COMMAND_LINE, /* /proc/TID/cmdline */
	PROCESS_ENVIRONMENT,  /* /proc/TID/environ */
	PROCESS_USERS,	      /* /proc/TID/root/etc/passwd */
	PROCESS_SUBORDINATES, /* /proc/TID/root/etc/subuid */
	PROCESS_TEXTS
};
#define PROCESS_TEXT_MAX_BYTES (256U << 10)

/* Directories whose entries name the pods of a Kubernetes node and their containers. */
enum process_log_directory {
	PROCESS_LOGS_CONTAINERS, /* /var/log/containers */
	PROCESS_LOGS_PODS,	 /* /var/log/pods */
	PROCESS_LOG_DIRECTORIES
};
#define PROCESS_LOGS_MAX_BYTES (256U << 10) /* a node has some hundred entries of 150 bytes */

/* Reads pieces of a task's memory, all or none: 0 or -errno as process_read(). */
typedef int process_reader(void *context, pid_t tid, const struct process_piece *piece,
			   size_t count);
/* How to look at other processes. */
struct process_access {
	process_reader *read;
	/* As process_read_maps(). */
	int (*read_maps)(void *context, pid_t tid, size_t max_bytes, char **ret_text,
			 size_t *ret_size);
	/* As process_read_text() and process_list_logs(). */
	int (*read_text)(void *context, pid_t tid, enum process_text which, size_t max_bytes,
			 char **ret_text, size_t *ret_size);
	int (*list_logs)(void *context, enum process_log_directory which, char **ret_entries,
			 size_t *ret_size);
};
/* Makes this process look at others by these functions from now on; NULL: by system calls of its
 * own. A page of another process may never come (of a FUSE file, of userfaultfd), and who waits for
 * it can hold the locks of that process' mappings meanwhile; no caller of process_read() may be
 * forgotten: so this is the process', like the handler of a signal, and not handed down to each of
 * them. Call it while no other thread reads. */
void process_access_by(const struct process_access *access, void *context);

/* Reads another process's memory, even when its main thread has ended. Uses process_vm_readv and
 * falls back to /proc/PID/mem on EPERM. Reads all of it or nothing.
 * Returns 0; -EFAULT when part of the range is not mapped; -ESRCH; -ETIMEDOUT when the functions of
 * process_access_by() gave the process up; -errno. */
int process_read(pid_t pid, uint64_t address, void *buffer, size_t size);

/* Reads at most PROCESS_PIECES_MAX pieces as process_read() does. After an error the contents of
 * the buffers are undefined. */
int process_read_pieces(pid_t pid, const struct process_piece *piece, size_t count);

/* Reads /proc/TID/maps, as read_file() does; also returns -ETIMEDOUT. */
int process_read_maps(pid_t tid, size_t max_bytes, char **ret_text, size_t *ret_size);
/* Reads at most max_bytes, PROCESS_TEXT_MAX_BYTES at most, of a text into a heap buffer with a NUL
 * behind it; what is behind that is left out.  Returns 0; -ESRCH; -ETIMEDOUT; -errno. */
int process_read_text(pid_t tid, enum process_text which, size_t max_bytes, char **ret_text,
		      size_t *ret_size);
/* Lists a directory, PROCESS_LOGS_MAX_BYTES of it at most, as records of getdents64(2).
 * Returns 0; -ENOENT; -ETIMEDOUT; -errno. */
int process_list_logs(enum process_log_directory which, char **ret_entries, size_t *ret_size);
/* Return the name below /proc/TID of a text, and the path of a directory. */
const char *process_text_name(enum process_text which);
const char *process_log_path(enum process_log_directory which);

#endif
