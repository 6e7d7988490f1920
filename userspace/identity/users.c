/* SPDX-License-Identifier: BSD-2-Clause */
#include "identity/users.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/io.h"

void users_release(struct users *users)
{
	free(users->text);
	*users = (struct users){0};
}

/* NAME:PASSWORD:UID:...  Source: passwd(5). */
bool users_find(const char *text, uint32_t uid, char ret_name[LABEL_VALUE_BYTES])
{
	char number[12];
	const size_t size = (size_t)snprintf(number, sizeof(number), "%" PRIu32 ":", uid);

	for (const char *line = text; *line;) {
		const size_t line_size = strcspn(line, "\n");
		const size_t name = strcspn(line, ":\n");
		const char *id = line + name;

		if (*id == ':')
			id += 1 + strcspn(id + 1, ":\n");
		if (name && *id == ':' && !strncmp(id + 1, number, size)) {
			label_value(line, name, ret_name);
			return true;
		}
		line += line_size + (line[line_size] == '\n');
	}
	return false;
}

static bool is_due(const struct users *users, uint64_t now_ns)
{
	return !users->read_ns || now_ns - users->read_ns >= USERS_AGAIN_NS;
}

void users_name(struct users *users, uint32_t uid, uint64_t now_ns,
		char ret_name[LABEL_VALUE_BYTES])
{
	if (users->text && users_find(users->text, uid, ret_name))
		return;
	if (is_due(users, now_ns)) {
		char *text;
		size_t size;

		users->read_ns = now_ns;
		if (!process_read_text(getpid(), PROCESS_USERS, PROCESS_TEXT_MAX_BYTES, &text,
				       &size)) {
			free(users->text);
			users->text = text;
		}
		if (users->text && users_find(users->text, uid, ret_name))
			return;
	}
	snprintf(ret_name, LABEL_VALUE_BYTES, "%" PRIu32, uid);
}
