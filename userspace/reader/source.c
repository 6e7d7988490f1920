/* SPDX-License-Identifier: BSD-2-Clause */
#include "reader/source.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "base/utf8.h"

/* A decorator may have several lines. */
#define MAX_DECORATOR_LINES 50U

void source_release(struct source *source)
{
	free(source->text);
	free(source->line);
	*source = (struct source){0};
}

/* Takes out what could move the cursor, change the terminal's state or show the text in another
 * order.  Lines and tabs stay; the carriage returns at the ends of other systems' lines go. */
static int clean_text(struct source *source, size_t *size)
{
	char *clean = reallocarray(NULL, *size + 1, UTF8_CLEAN_MAX_GROWTH), *put = clean;
	size_t begin = 0;

	if (!clean)
		return -ENOMEM;
	for (size_t at = 0; at <= *size; at++) {
		size_t end = at;

		if (at < *size && source->text[at] != '\t' && source->text[at] != '\n')
			continue;
		if (at < *size && source->text[at] == '\n' && at > begin &&
		    source->text[at - 1] == '\r')
			end--;
		put += utf8_clean(source->text + begin, end - begin, put);
		*put++ = source->text[at]; /* its NUL at the end */
		begin = at + 1;
	}
	*size = (size_t)(put - clean) - 1;
	free(source->text);
	source->text = clean;
	return 0;
}

static int split(struct source *source, size_t size)
{
	uint32_t count = 1, at = 0;

	for (size_t i = 0; i < size; i++)
		count += source->text[i] == '\n';
	source->line = calloc((size_t)count + 1, sizeof(char *));
	if (!source->line)
		return -ENOMEM;
	source->line[at++] = source->text;
	for (size_t i = 0; i < size; i++) {
		if (source->text[i] != '\n')
			continue;
		source->text[i] = '\0';
		if (i + 1 < size)
			source->line[at++] = source->text + i + 1;
	}
	source->count = at;
	return 0;
}

/* Reads the whole file.  Returns as source_open(). */
static int read_text(struct source *source, int fd, size_t size)
{
	int err;

	if (size > SOURCE_MAX_BYTES) {
		source->error = "is too big";
		return 1;
	}
	source->text = malloc(size + 1);
	if (!source->text)
		return -ENOMEM;
	err = pread_full(fd, source->text, size, 0);
	if (err) {
		source->error = "cannot be read";
		return 1;
	}
	source->text[size] = '\0';
	return 0;
}

static int fill(struct source *source, const char *path, enum source_named named)
{
	OWNED_FD int fd = -1;
	struct stat status;
	size_t size;
	int err = source_open(path, named, &fd, &status, &source->error);

	if (err)
		return err;
	size = (size_t)status.st_size;
	source->modified_s = status.st_mtim.tv_sec;
	err = read_text(source, fd, size);
	if (!err)
		err = clean_text(source, &size);
	return err ? err : split(source, size);
}

int source_read(const char *path, enum source_named named, struct source *ret_source)
{
	CLEANUP(source_release) struct source source = {0};
	int err = fill(&source, path, named);

	*ret_source = (struct source){.error = source.error};
	if (err)
		return err < 0 ? err : 0;
	*ret_source = source;
	source = (struct source){0};
	return 0;
}

const char *source_line(const struct source *source, uint32_t line)
{
	return line && line <= source->count ? source->line[line - 1] : NULL;
}

static const char *skip_blanks(const char *text)
{
	return text + strspn(text, " \t");
}

bool source_defines(const struct source *source, uint32_t line, const char *name)
{
	const char *dot = strrchr(name, '.'), *base = dot ? dot + 1 : name;

	for (uint32_t i = line; i < line + MAX_DECORATOR_LINES; i++) {
		const char *text = source_line(source, i);

		if (!text)
			return false;
		/* <module>, <lambda>, <listcomp> have no name to look for. */
		if (base[0] == '<')
			return true;
		if (strstr(text, base) && (strstr(text, "def ") || strstr(text, "class ")))
			return true;
		text = skip_blanks(text);
		if (i == line && text[0] != '@')
			return false;
	}
	return false;
}

static size_t indent_of(const char *text)
{
	return (size_t)(skip_blanks(text) - text);
}

uint32_t source_block_end(const struct source *source, uint32_t line)
{
	const char *text = source_line(source, line);
	uint32_t end = line;
	size_t indent;
	bool in_head = true;

	if (!text)
		return line;
	indent = indent_of(text);
	for (uint32_t i = line; (text = source_line(source, i)); i++) {
		const char *first = skip_blanks(text);

		if (!*first)
			continue;
		/* Skips decorators and the head of the definition, which may end in a line ")". */
		if (!in_head && indent_of(text) <= indent && *first != '#')
			break;
		end = i;
		if (in_head && text[strlen(text) - 1] == ':')
			in_head = false;
	}
	return end;
}
