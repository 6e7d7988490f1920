/* SPDX-License-Identifier: BSD-2-Clause */
/* A comment of a profile with the resident memory of one process at one moment.  Such comments are
 * written and read here only. */
#ifndef PROFILE_MEMORY_LINE_H
#define PROFILE_MEMORY_LINE_H

#include <stdbool.h>
#include <stdint.h>

#define MEMORY_LINE_PREFIX "memory "
#define MEMORY_LINE_CHARS 256U
#define MEMORY_LINE_COMM_BYTES 64U
/* The most processes with a line of their own in one profile's comments.  One more line sums up the
 * others. */
#define MEMORY_LINES_MAX 256U

struct memory_line {
	uint64_t pid;			   /* 0: the line sums up several processes */
	char comm[MEMORY_LINE_COMM_BYTES]; /* without blanks and control characters; "": none */
	uint64_t at_ms;			   /* when it was read, since 1970 */
	uint64_t anonymous_bytes, file_bytes, shared_bytes;
	uint64_t peak_bytes; /* the most that the process has ever had resident */
	/* Of a line that sums up several processes: how many they are, and how many more there are
	 * whose memory was not read. */
	uint64_t others, unread;
};

/* Copies a process's name: a blank would end a word of the line, and control characters move the
 * cursor of whoever prints it. */
void memory_line_set_comm(struct memory_line *line, const char *comm);
/* Returns what is resident in all, UINT64_MAX at most. */
uint64_t memory_line_bytes(const struct memory_line *line);
/* Adds a process's line to one that sums up others. */
void memory_line_add(struct memory_line *sum, const struct memory_line *line);
/* Writes "memory pid=12 comm=python3 at=1795273360123 anon=4096 file=0 shmem=0 peak=8192" or
 * "memory others=44 at=... anon=... file=... shmem=... unread=2". */
void memory_line_format(const struct memory_line *line, char text[MEMORY_LINE_CHARS]);
/* Returns false for any other comment. */
bool memory_line_parse(const char *comment, struct memory_line *ret_line);

#endif
