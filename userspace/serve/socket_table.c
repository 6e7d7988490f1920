/* SPDX-License-Identifier: BSD-2-Clause */
#include "serve/socket_table.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"

#define READ_BYTES 65536U
#define WORD_DIGITS 8U /* of a part of an address: "%08X" */
#define PORT_DIGITS 4U
#define STATE_DIGITS 2U
#define FIELDS_BEFORE_UID 3U /* tx_queue:rx_queue, tr:tm->when, retrnsmt */

struct text {
	const char *at, *end;
};

static void skip_blanks(struct text *text)
{
	while (text->at < text->end && *text->at == ' ')
		text->at++;
}

static void skip_field(struct text *text)
{
	skip_blanks(text);
	while (text->at < text->end && *text->at != ' ')
		text->at++;
}

static bool take_char(struct text *text, char wanted)
{
	if (text->at == text->end || *text->at != wanted)
		return false;
	text->at++;
	return true;
}

/* Takes exactly so many digits of base 16. */
static bool take_hex(struct text *text, unsigned int digits, uint32_t *ret_number)
{
	static const char all[] = "0123456789ABCDEF";
	uint32_t number = 0;

	if ((size_t)(text->end - text->at) < digits)
		return false;
	for (unsigned int i = 0; i < digits; i++) {
		const char *digit = memchr(all, text->at[i], sizeof(all) - 1);

		if (!digit)
			return false;
		number = number << 4 | (uint32_t)(digit - all);
	}
	text->at += digits;
	*ret_number = number;
	return true;
}

static bool take_decimal(struct text *text, uint64_t most, uint64_t *ret_number)
{
	const char *begin;
	uint64_t number = 0;

	skip_blanks(text);
	begin = text->at;
	for (; text->at < text->end && *text->at >= '0' && *text->at <= '9'; text->at++) {
		const uint64_t digit = (uint64_t)(*text->at - '0');

		if (number > (most - digit) / 10)
			return false;
		number = number * 10 + digit;
	}
	*ret_number = number;
	return text->at > begin && (text->at == text->end || *text->at == ' ');
}

/* Takes "0100007F:1F90", or four such words for IPv6.  Each word is printed as a number of the
 * host's, so that its bytes in memory are the address. */
static bool take_end(struct text *text, struct socket_end *ret_end)
{
	struct socket_end end = {.port = 0};
	uint32_t port;

	skip_blanks(text);
	if (!take_hex(text, WORD_DIGITS, &end.address[0]))
		return false;
	if (text->at < text->end && *text->at != ':')
		for (unsigned int i = 1; i < 4; i++)
			if (!take_hex(text, WORD_DIGITS, &end.address[i]))
				return false;
	if (!take_char(text, ':') || !take_hex(text, PORT_DIGITS, &port))
		return false;
	end.port = (uint16_t)port;
	*ret_end = end;
	return true;
}

int socket_table_parse(const char *line, size_t size, struct socket_row *ret_row)
{
	struct text text = {.at = line, .end = memchr(line, '\n', size) ?: line + size};
	struct socket_row row;
	uint64_t number, uid;

	skip_field(&text); /* its number in this reading */
	if (!take_end(&text, &row.own) || !take_end(&text, &row.peer))
		return -EBADMSG;
	skip_blanks(&text);
	if (!take_hex(&text, STATE_DIGITS, &row.state))
		return -EBADMSG;
	for (unsigned int i = 0; i < FIELDS_BEFORE_UID; i++)
		skip_field(&text);
	if (!take_decimal(&text, UINT32_MAX, &uid) || !take_decimal(&text, UINT64_MAX, &number) ||
	    !take_decimal(&text, UINT64_MAX, &row.inode))
		return -EBADMSG;
	row.uid = (uid_t)uid;
	*ret_row = row;
	return 0;
}

static bool is_end(const struct socket_end *a, const struct socket_end *b)
{
	return a->port == b->port && !memcmp(a->address, b->address, sizeof(a->address));
}

struct search {
	const struct socket_end *own, *peer;
	struct socket_row row;
	bool found;
};

/* Looks at all whole lines.  Returns how many bytes these are. */
static size_t look(struct search *search, const char *text, size_t size)
{
	size_t used = 0;

	while (!search->found) {
		const char *end = memchr(text + used, '\n', size - used);

		if (!end)
			break;
		search->found = !socket_table_parse(text + used, (size_t)(end - text) - used,
						    &search->row) &&
				is_end(&search->row.own, search->own) &&
				is_end(&search->row.peer, search->peer);
		used = (size_t)(end - text) + 1;
	}
	return used;
}

int socket_table_find(const char *path, const struct socket_end *own,
		      const struct socket_end *peer, struct socket_row *ret_row)
{
	struct search search = {.own = own, .peer = peer};
	char text[READ_BYTES + SOCKET_TABLE_LINE_BYTES];
	OWNED_FD int fd = open(path, O_RDONLY | O_CLOEXEC);
	size_t kept = 0, all = 0;

	if (fd < 0)
		return -errno;
	while (!search.found && all < SOCKET_TABLE_MAX_BYTES) {
		const ssize_t got = read(fd, text + kept, READ_BYTES);
		size_t used;

		if (got < 0)
			return -errno;
		if (!got)
			return -ENOENT;
		all += (size_t)got;
		used = look(&search, text, kept + (size_t)got);
		kept += (size_t)got - used;
		if (!search.found && kept > SOCKET_TABLE_LINE_BYTES)
			return -EBADMSG; /* that is no such table */
		if (!search.found)
			memmove(text, text + used, kept);
	}
	if (!search.found)
		return -EFBIG;
	*ret_row = search.row;
	return 0;
}
