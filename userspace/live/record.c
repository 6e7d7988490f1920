/* SPDX-License-Identifier: BSD-2-Clause */
#include "live/record.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <string.h>

/* Three texts of this size, with each byte escaped, and the numbers fit into a line. */
#define TEXT_BYTES 5000U
_Static_assert(LIVE_TEXTS_MAX * 4 * TEXT_BYTES + 200 < LIVE_LINE_BYTES, "a record fits");

struct shape {
	const char *name;
	unsigned int numbers, texts;
};

#define SHAPE(id, name, numbers, texts) [LIVE_##id] = {name, numbers, texts},
static const struct shape shapes[LIVE_KIND_COUNT] = {LIVE_RECORDS(SHAPE)};

/* ---- writing ---- */

static void write_text(FILE *out, const char *text)
{
	const unsigned char *at = (const unsigned char *)text;

	for (size_t i = 0; at && at[i] && i < TEXT_BYTES; i++) {
		if (at[i] < ' ' || at[i] == '\\' || at[i] == 0x7f)
			fprintf(out, "\\x%02x", at[i]);
		else
			putc(at[i], out);
	}
}

void live_record_write(FILE *out, const struct live_record *record)
{
	const struct shape *shape = &shapes[record->kind];

	fputs(shape->name, out);
	for (unsigned int i = 0; i < shape->numbers; i++)
		fprintf(out, "\t%" PRIu64, record->number[i]);
	for (unsigned int i = 0; i < shape->texts; i++) {
		putc('\t', out);
		write_text(out, record->text[i]);
	}
	putc('\n', out);
}

/* ---- reading ---- */

static int hex_digit(char character)
{
	if (character >= '0' && character <= '9')
		return character - '0';
	if (character >= 'a' && character <= 'f')
		return character - 'a' + 10;
	return -EBADMSG;
}

/* Unescapes a text in place.  A NUL is refused: it would hide what follows. */
static int unescape(char *text)
{
	char *to = text;

	for (const char *at = text; *at; at++) {
		int high, low;

		if (*at != '\\') {
			*to++ = *at;
			continue;
		}
		high = at[1] == 'x' ? hex_digit(at[2]) : -EBADMSG;
		low = high < 0 ? high : hex_digit(at[3]);
		if (low < 0 || !(high | low))
			return -EBADMSG;
		*to++ = (char)(high << 4 | low);
		at += 3;
	}
	*to = '\0';
	return 0;
}

static int parse_number(const char *text, uint64_t *ret_number)
{
	uint64_t number = 0;

	if (!*text)
		return -EBADMSG;
	for (; *text; text++) {
		unsigned int digit = (unsigned int)(*text - '0');

		if (digit > 9 || __builtin_mul_overflow(number, 10, &number) ||
		    __builtin_add_overflow(number, digit, &number))
			return -EBADMSG;
	}
	*ret_number = number;
	return 0;
}

/* Returns the field at *at, ended by NUL; NULL: there is none. */
static char *next_field(char **at)
{
	char *field = *at, *tab = field ? strchr(field, '\t') : NULL;

	if (tab)
		*tab = '\0';
	*at = tab ? tab + 1 : NULL;
	return field;
}

static bool find_kind(const char *name, enum live_kind *ret_kind)
{
	for (unsigned int kind = 0; kind < LIVE_KIND_COUNT; kind++) {
		if (strcmp(shapes[kind].name, name))
			continue;
		*ret_kind = (enum live_kind)kind;
		return true;
	}
	return false;
}

int live_record_parse(char *line, size_t size, struct live_record *ret_record)
{
	struct live_record record = {};
	const struct shape *shape;
	char *at = line, *field;

	if (size >= LIVE_LINE_BYTES || memchr(line, '\0', size))
		return -EBADMSG;
	line[size] = '\0';
	if (!find_kind(next_field(&at), &record.kind))
		return -ENOENT;
	shape = &shapes[record.kind];
	for (unsigned int i = 0; i < shape->numbers; i++) {
		field = next_field(&at);
		if (!field || parse_number(field, &record.number[i]))
			return -EBADMSG;
	}
	for (unsigned int i = 0; i < shape->texts; i++) {
		field = next_field(&at);
		if (!field || unescape(field))
			return -EBADMSG;
		record.text[i] = field;
	}
	*ret_record = record;
	return 0;
}
