/* SPDX-License-Identifier: BSD-2-Clause */
#include "files/code_objects.h"

#include <errno.h>
#include <string.h>

#include "base/io.h"

/* Answers that are being written. */
struct writing {
	uint8_t *memory;
	size_t size, room;
	uint32_t count;
};

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
