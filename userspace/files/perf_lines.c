/* SPDX-License-Identifier: BSD-2-Clause */
#include "files/perf_lines.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"

/* An answer that is being written. */
struct writing {
	uint8_t *memory;
	size_t size, room; /* bytes, with the head */
	uint32_t count;
};

static int hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c |= 0x20;
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Reads a number and the spaces after it.  Returns false when there is none, or it exceeds 64
 * bits. */
static bool take_hex(const char **at, const char *end, uint64_t *ret_value)
{
	uint64_t value = 0;
	size_t digits = 0;

	if (end - *at > 2 && (*at)[0] == '0' && ((*at)[1] | 0x20) == 'x')
		*at += 2;
	for (; *at < end && hex_digit(**at) >= 0; ++*at, digits++) {
		if (value >> 60)
			return false;
		value = value << 4 | (uint64_t)hex_digit(**at);
	}
	if (!digits || *at == end || **at != ' ')
		return false;
	while (*at < end && **at == ' ')
		++*at;
	*ret_value = value;
	return true;
}

/* Returns false when there is no room. */
static bool put_line(struct writing *writing, const struct foreign_line *line, const char *name)
{
	uint8_t *to = writing->memory + writing->size;

	if (writing->room - writing->size < sizeof(*line) + line->name_bytes)
		return false;
	memcpy(to, line, sizeof(*line));
	for (uint32_t i = 0; i < line->name_bytes; i++)
		to[sizeof(*line) + i] = (uint8_t)((unsigned char)name[i] < ' ' ? '?' : name[i]);
	writing->size += sizeof(*line) + line->name_bytes;
	writing->count++;
	return true;
}

/* A line that does not parse is skipped.  Returns false when there is no room. */
static bool take_line(struct writing *writing, const char *text, size_t size)
{
	const char *at = text, *end = text + size;
	uint64_t start, code_bytes;
	struct foreign_line line;
	size_t name_size;

	if (!take_hex(&at, end, &start) || !take_hex(&at, end, &code_bytes) || at == end)
		return true;
	if (!code_bytes || code_bytes > UINT32_MAX || start + code_bytes < start)
		return true;
	name_size = (size_t)(end - at);
	if (at[name_size - 1] == '\r')
		name_size--;
	if (!name_size || (name_size >= 4 && !memcmp(at, "py::", 4)))
		return true;
	if (name_size > FOREIGN_LINE_NAME_BYTES)
		name_size = FOREIGN_LINE_NAME_BYTES;
	line = (struct foreign_line){.start = start,
				     .code_bytes = (uint32_t)code_bytes,
				     .name_bytes = (uint32_t)name_size};
	return put_line(writing, &line, at);
}

/* Takes the complete lines.  Returns how many bytes they have; *ret_is_full: there is no room for
 * the next one. */
static size_t take_lines(struct writing *writing, const char *text, size_t size, bool *ret_is_full)
{
	size_t used = 0;

	for (;;) {
		const char *line = text + used;
		const char *newline = memchr(line, '\n', size - used);

		if (!newline)
			break;
		*ret_is_full = !take_line(writing, line, (size_t)(newline - line));
		if (*ret_is_full)
			break;
		used += (size_t)(newline - line) + 1;
	}
	return used;
}

int perf_lines_read(int fd, uint64_t from, uint64_t to, uint8_t *memory, size_t room,
		    uint32_t *ret_size)
{
	struct writing writing = {
		.memory = memory, .size = sizeof(struct foreign_lines), .room = room};
	OWNED_MEM char *chunk = malloc(FOREIGN_LINE_MAX_BYTES);
	struct foreign_lines head = {.next = from};
	bool is_full = false;

	if (!chunk)
		return -ENOMEM;
	while (!is_full && head.next < to) {
		const size_t left = to - head.next;
		const size_t wanted = left < FOREIGN_LINE_MAX_BYTES ? left : FOREIGN_LINE_MAX_BYTES;
		const ssize_t got = pread(fd, chunk, wanted, (off_t)head.next);
		size_t used;

		if (got < 0)
			return -errno;
		used = take_lines(&writing, chunk, (size_t)got, &is_full);
		/* A line that is longer is passed over in pieces. */
		if (!used && !is_full && got == (ssize_t)FOREIGN_LINE_MAX_BYTES)
			used = (size_t)got;
		if (!used)
			break;
		head.next += used;
	}
	head.count = writing.count;
	head.bytes = (uint32_t)(writing.size - sizeof(head));
	memcpy(memory, &head, sizeof(head));
	*ret_size = (uint32_t)writing.size;
	return 0;
}
