/* SPDX-License-Identifier: BSD-2-Clause */
#include "reader/source.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/io.h"

/* A decorator may have several lines. */
#define MAX_DECORATOR_LINES 50U

void source_release(struct source *source)
{
	free(source->text);
	free(source->line);
	*source = (struct source){0};
}

/* Removes characters that could move the cursor or change the terminal's state. */
static void drop_control_codes(char *text, size_t size)
{
	for (size_t i = 0; i < size; i++) {
		unsigned char byte = (unsigned char)text[i];

		if ((byte < ' ' && byte != '\n' && byte != '\t') || byte == 0x7f)
			text[i] = ' ';
	}
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

int source_read(const char *path, struct source *ret_source)
{
	struct source source = {0};
	struct stat status;
	size_t size;
	int err;

	*ret_source = source;
	if (stat(path, &status)) {
		ret_source->error = errno == ENOENT ? "is not here" : "cannot be read";
		return 0;
	}
	if (!S_ISREG(status.st_mode)) {
		ret_source->error = "is no plain file";
		return 0;
	}
	err = read_file(path, SOURCE_MAX_BYTES, &source.text, &size);
	if (err == -ENOMEM)
		return err;
	if (err) {
		ret_source->error = err == -EFBIG ? "is too big" : "cannot be read";
		return 0;
	}
	drop_control_codes(source.text, size);
	source.modified_s = status.st_mtim.tv_sec;
	err = split(&source, size);
	if (err) {
		source_release(&source);
		return err;
	}
	*ret_source = source;
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
