/* SPDX-License-Identifier: BSD-2-Clause */
/* NAME.cursor:
 *     pyprofd push cursor 1
 *     sent cpu 1795200000000
 *     open offcpu 1795200000000 2 00f3a1b2c4d5e6f7 flying|resting
 *     end                        without which the file is cut off
 */
#include "push/cursor.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "base/kinds.h"

#define FIRST_LINE "pyprofd push cursor 1"
#define LAST_LINE "end"
#define LINES_MAX 32U
#define WORDS_MAX 6U
#define HEX 16
#define FILE_MODE 0640

bool push_sink_name_is_valid(const char *name)
{
	static const char characters[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-.";
	size_t size = strspn(name, characters);

	return size && size < PUSH_SINK_NAME_CHARS && !name[size] && name[0] != '.';
}

void push_cursor_pass(struct push_cursor *cursor, enum pp_profile kind, uint64_t start_ms)
{
	if (cursor->sent_ms[kind] < start_ms)
		cursor->sent_ms[kind] = start_ms;
	memset(&cursor->open, 0, sizeof(cursor->open));
}

void push_cursor_format(const struct push_cursor *cursor, char ret_text[PUSH_CURSOR_BYTES])
{
	size_t at = (size_t)snprintf(ret_text, PUSH_CURSOR_BYTES, FIRST_LINE "\n");

	for (unsigned int i = 0; i < PP_PROFILE_COUNT; i++)
		if (cursor->sent_ms[i])
			at += (size_t)snprintf(ret_text + at, PUSH_CURSOR_BYTES - at,
					       "sent %s %" PRIu64 "\n",
					       kind_get((enum pp_profile)i)->name,
					       cursor->sent_ms[i]);
	if (cursor->open.is_open)
		at += (size_t)snprintf(ret_text + at, PUSH_CURSOR_BYTES - at,
				       "open %s %" PRIu64 " %" PRIu32 " %016" PRIx64 " %s\n",
				       kind_get(cursor->open.kind)->name, cursor->open.start_ms,
				       cursor->open.requests, cursor->open.hash,
				       cursor->open.is_in_flight ? "flying" : "resting");
	snprintf(ret_text + at, PUSH_CURSOR_BYTES - at, LAST_LINE "\n");
}

/* Parses a number that takes the whole word. */
static bool parse_number(const char *word, int base, uint64_t max, uint64_t *ret_number)
{
	uint64_t number;
	char *end;

	if (!strchr("0123456789abcdef", word[0]) || !word[0])
		return false;
	errno = 0;
	number = strtoull(word, &end, base);
	if (errno || *end || number > max)
		return false;
	*ret_number = number;
	return true;
}

static int parse_sent(char *const *word, struct push_cursor *cursor)
{
	enum pp_profile kind;
	uint64_t start_ms;

	if (!parse_number(word[2], 10, INT64_MAX, &start_ms))
		return -EBADMSG;
	if (kind_find(word[1], strlen(word[1]), &kind))
		cursor->sent_ms[kind] = start_ms;
	return 0;
}

static int parse_open(char *const *word, struct push_cursor *cursor)
{
	uint64_t start_ms, requests, hash;
	bool is_in_flight = !strcmp(word[5], "flying");
	enum pp_profile kind;

	if (!parse_number(word[2], 10, INT64_MAX, &start_ms) ||
	    !parse_number(word[3], 10, UINT32_MAX, &requests) ||
	    !parse_number(word[4], HEX, UINT64_MAX, &hash))
		return -EBADMSG;
	if (!is_in_flight && strcmp(word[5], "resting") != 0)
		return -EBADMSG;
	if (!kind_find(word[1], strlen(word[1]), &kind))
		return 0;
	cursor->open.is_open = true;
	cursor->open.kind = kind;
	cursor->open.start_ms = start_ms;
	cursor->open.requests = (uint32_t)requests;
	cursor->open.hash = hash;
	cursor->open.is_in_flight = is_in_flight;
	return 0;
}

static int parse_line(char *line, struct push_cursor *cursor)
{
	char *word[WORDS_MAX], *save, *next = strtok_r(line, " ", &save);
	size_t count = 0;

	for (; next && count < WORDS_MAX; next = strtok_r(NULL, " ", &save))
		word[count++] = next;
	if (next || !count)
		return -EBADMSG;
	if (count == 3 && !strcmp(word[0], "sent"))
		return parse_sent(word, cursor);
	if (count == WORDS_MAX && !strcmp(word[0], "open"))
		return parse_open(word, cursor);
	return -EBADMSG;
}

int push_cursor_parse(const char *text, size_t size, struct push_cursor *ret_cursor)
{
	struct push_cursor cursor = {0};
	char copy[PUSH_CURSOR_BYTES];
	char *line, *rest = copy;
	unsigned int lines = 0;

	if (size >= sizeof(copy) || memchr(text, '\0', size))
		return -EBADMSG;
	if (size)
		memcpy(copy, text, size);
	copy[size] = '\0';
	line = strsep(&rest, "\n");
	if (!rest || strcmp(line, FIRST_LINE) != 0)
		return -EBADMSG;
	while ((line = strsep(&rest, "\n")) && rest && lines++ < LINES_MAX) {
		if (!strcmp(line, LAST_LINE)) {
			if (*rest)
				return -EBADMSG;
			*ret_cursor = cursor;
			return 0;
		}
		if (parse_line(line, &cursor))
			return -EBADMSG;
	}
	return -EBADMSG;
}

struct file_names {
	char file[PUSH_SINK_NAME_CHARS + sizeof(".cursor")];
	char temporary[PUSH_SINK_NAME_CHARS + sizeof("..cursor.tmp")];
};

static struct file_names names_of(const char *name)
{
	struct file_names names;

	snprintf(names.file, sizeof(names.file), "%.32s.cursor", name);
	snprintf(names.temporary, sizeof(names.temporary), ".%.32s.cursor.tmp", name);
	return names;
}

int push_cursor_load(int dir_fd, const char *name, struct push_cursor *ret_cursor)
{
	struct file_names names = names_of(name);
	OWNED_MEM char *text = NULL;
	size_t size;
	int err = read_file_at(dir_fd, names.file, PUSH_CURSOR_BYTES, &text, &size);

	if (err)
		return err == -EFBIG ? -EBADMSG : err;
	return push_cursor_parse(text, size, ret_cursor);
}

int push_cursor_save(int dir_fd, const char *name, const struct push_cursor *cursor)
{
	struct file_names names = names_of(name);
	char text[PUSH_CURSOR_BYTES];
	int err;

	push_cursor_format(cursor, text);
	err = write_file_at(dir_fd, names.temporary, FILE_MODE, text, strlen(text));
	if (!err && renameat(dir_fd, names.temporary, dir_fd, names.file))
		err = -errno;
	if (err) {
		unlinkat(dir_fd, names.temporary, 0);
		return err;
	}
	return fsync(dir_fd) ? -errno : 0;
}
