/* SPDX-License-Identifier: BSD-2-Clause */
#include "reader/kept_about.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "base/utf8.h"
#include "store/kept.h"

/* Copies the beginning of a value, cleaned: each of its bytes may become several. */
static void take_text(const char *value, size_t size, char text[KEPT_TEXT_BYTES])
{
	const size_t most = (KEPT_TEXT_BYTES - 1) / UTF8_CLEAN_MAX_GROWTH;

	text[utf8_clean(value, size < most ? size : most, text)] = '\0';
}

static void take_line(const char *line, size_t size, struct kept_about *about)
{
	const struct {
		const char *key;
		char *text;
	} known[] = {{"reason=", about->reason}, {"pid=", about->pid},	 {"comm=", about->comm},
		     {"time=", about->time},	 {"from=", about->from}, {"to=", about->to}};

	for (size_t i = 0; i < ARRAY_SIZE(known); i++) {
		const size_t key_size = strlen(known[i].key);

		if (size >= key_size && !memcmp(line, known[i].key, key_size))
			take_text(line + key_size, size - key_size, known[i].text);
	}
}

void kept_about_parse(const char *text, size_t size, struct kept_about *ret_about)
{
	const char *end = text + size;

	*ret_about = (struct kept_about){0};
	while (text < end) {
		const char *newline = memchr(text, '\n', (size_t)(end - text));
		const char *line_end = newline ? newline : end;

		take_line(text, (size_t)(line_end - text), ret_about);
		text = newline ? newline + 1 : end;
	}
}

static char *path_of(const char *store, const char *name, const char *file)
{
	char *path;

	return asprintf(&path, "%s/" KEPT_DIRECTORY "/%s/%s", store, name, file) < 0 ? NULL : path;
}

void kept_about_read(const char *store, const char *name, struct kept_about *ret_about)
{
	OWNED_MEM char *path = path_of(store, name, KEPT_ABOUT);
	OWNED_MEM char *text = NULL;
	size_t size;

	*ret_about = (struct kept_about){0};
	if (path && !read_file(path, KEPT_ABOUT_MAX_BYTES, &text, &size))
		kept_about_parse(text, size, ret_about);
}

char *kept_profile(const char *store, const char *name, const char *kind)
{
	OWNED_MEM char *path = NULL;
	char file[64];

	snprintf(file, sizeof(file), "%s" KEPT_FILE_SUFFIX, kind);
	path = path_of(store, name, file);
	return path && !access(path, F_OK) ? TAKE(path) : NULL;
}
