/* SPDX-License-Identifier: BSD-2-Clause */
#include "files/decode.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/io.h"

/* An answer that is being written. */
struct writing {
	uint8_t *memory;
	size_t size, room; /* bytes, with the head */
	uint32_t count;
};

/* ---- perf maps: "START SIZE name" in hexadecimal ---- */

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

/* ---- Python's code objects ---- */

static uint8_t *put(uint8_t *to, const void *from, size_t size)
{
	if (size)
		memcpy(to, from, size);
	return to + size;
}

/* Returns false when there is no room. */
static bool put_code(struct writing *writing, const struct python_code_text *text)
{
	const struct foreign_code code = {.row_count = text->row_count,
					  .name_bytes = (uint32_t)strlen(text->name),
					  .filename_bytes = (uint32_t)strlen(text->filename)};
	const size_t size = foreign_code_bytes(&code);
	uint8_t *to = writing->memory + writing->size;

	if (size > writing->room - writing->size)
		return false;
	to = put(to, &code, sizeof(code));
	to = put(to, text->row, code.row_count * sizeof(*text->row));
	to = put(to, text->name, code.name_bytes);
	to = put(to, text->filename, code.filename_bytes);
	memset(to, 0, (size_t)(writing->memory + writing->size + size - to));
	writing->size += size;
	writing->count++;
	return true;
}

/* What is asked about. */
struct question {
	uint8_t *bytes; /* owned */
	size_t size;
};

static void question_release(struct question *question)
{
	free(question->bytes);
}

/* Reads [from, to) of the file.  Returns 0; -EBADMSG: it is too much, or the file ends before;
 * -ENOMEM; -errno. */
static int question_read(int fd, uint64_t from, uint64_t to, struct question *question)
{
	int err;

	question->size = to - from;
	if (question->size > CODE_OBJECTS_MAX_BYTES)
		return -EBADMSG;
	question->bytes = malloc(question->size);
	if (!question->bytes)
		return -ENOMEM;
	err = pread_full(fd, question->bytes, question->size, (off_t)from);
	return err == -ENODATA ? -EBADMSG : err;
}

/* Copies the code object at an offset to where it is aligned. */
static int take_raw(const struct question *question, size_t at, struct python_code_raw **ret_raw)
{
	const size_t left = question->size - at;
	OWNED_MEM struct python_code_raw *raw = NULL;
	struct python_code_raw head;

	if (left < sizeof(head))
		return -EBADMSG;
	memcpy(&head, question->bytes + at, sizeof(head));
	if (!python_code_raw_is_sound(&head) || head.size > left)
		return -EBADMSG;
	raw = malloc(head.size);
	if (!raw)
		return -ENOMEM;
	memcpy(raw, question->bytes + at, head.size);
	*ret_raw = TAKE(raw);
	return 0;
}

/* Returns 0; 1: there is no room for the next one; -errno. */
static int decode_next(const struct question *question, struct writing *writing, size_t *at)
{
	CLEANUP(python_code_text_release) struct python_code_text text = {0};
	OWNED_MEM struct python_code_raw *raw = NULL;
	int err = take_raw(question, *at, &raw);

	if (!err)
		err = python_code_text_decode(raw, &text);
	if (err)
		return err;
	if (!put_code(writing, &text))
		return 1;
	*at += raw->size;
	return 0;
}

int code_objects_decode(int fd, uint64_t from, uint64_t to, uint8_t *memory, size_t room,
			uint32_t *ret_size)
{
	CLEANUP(question_release) struct question question = {.bytes = NULL};
	struct writing writing = {
		.memory = memory, .size = sizeof(struct foreign_codes), .room = room};
	struct foreign_codes head = {0};
	size_t at = 0;
	int err = question_read(fd, from, to, &question);

	while (!err && at < question.size)
		err = decode_next(&question, &writing, &at);
	if (err < 0)
		return err;
	if (!writing.count)
		return -E2BIG;
	head.next = from + at;
	head.count = writing.count;
	head.bytes = (uint32_t)(writing.size - sizeof(head));
	memcpy(memory, &head, sizeof(head));
	*ret_size = (uint32_t)writing.size;
	return 0;
}
