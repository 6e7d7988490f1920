/* SPDX-License-Identifier: BSD-2-Clause */
/* The file, line by line: libinih splits lines into keys and values, but tells neither the line of
 * a key nor a section without keys, and cuts what is too long.  The reader that it asks for lines
 * sees all of that. */
#include <errno.h>
#include <ini.h>
#include <string.h>

#include "config/config.h"
#include "config/secret.h"
#include "config/section.h"
#include "config/url.h"

struct lines {
	struct config *config;
	struct config_section *section; /* NULL: before the first one */
	const char *at, *end;		/* what is left of the text */
	unsigned int number;		/* of the line that libinih has */
	bool is_indented;		/* that line */
	bool has_key;			/* a key of this section stands above it */
	int err;			/* the first one, and its line in `why` */
	char *why;
};

static int fail(struct lines *lines, int err, const char *text)
{
	lines->err = err;
	snprintf(lines->why, CONFIG_WHY_BYTES, "%s", text);
	return err;
}

/* Opens the section of a line that begins with '['. */
static int open_section(struct lines *lines, const char *line, size_t size)
{
	const char *close = memchr(line, ']', size);
	const char *rest = close ? close + 1 : NULL;

	if (!close)
		return fail(lines, -EINVAL, "the section has no ']'");
	while (rest < line + size && strchr(" \t\r\n", *rest))
		rest++;
	if (rest < line + size && !strchr(";#", *rest))
		return fail(lines, -EINVAL, "something stands behind the section's ']'");
	lines->has_key = false;
	lines->err = config_open_section(lines->config, line + 1, (size_t)(close - line - 1),
					 lines->number, &lines->section, lines->why);
	return lines->err;
}

/* As fgets(): libinih gets the next line.  Ends at the first error. */
static char *next_line(char *buffer, int buffer_bytes, void *stream)
{
	struct lines *lines = stream;
	const char *line = lines->at, *end;
	size_t size, blanks = 0;
	char text[CONFIG_WHY_BYTES];

	if (lines->err || line == lines->end)
		return NULL;
	end = memchr(line, '\n', (size_t)(lines->end - line));
	size = (size_t)((end ? end + 1 : lines->end) - line);
	lines->number++;
	if (size >= (size_t)buffer_bytes) {
		snprintf(text, sizeof(text),
			 "the line has more than %d bytes: go on in the next line, indented",
			 buffer_bytes - 2);
		fail(lines, -EFBIG, text);
		return NULL;
	}
	while (blanks < size && (line[blanks] == ' ' || line[blanks] == '\t'))
		blanks++;
	lines->is_indented = blanks;
	if (blanks < size && line[blanks] == '[' && !(lines->is_indented && lines->has_key) &&
	    open_section(lines, line + blanks, size - blanks))
		return NULL;
	memcpy(buffer, line, size);
	buffer[size] = '\0';
	lines->at = line + size;
	return buffer;
}

/* Called by libinih for each key.  Returns 0 after an error. */
static int take_key(void *user, const char *section, const char *name, const char *value)
{
	struct lines *lines = user;
	const struct config_origin origin = {.source = CONFIG_FROM_FILE,
					     .line = lines->number,
					     .continues = lines->is_indented && lines->has_key};

	(void)section;
	if (lines->err)
		return 0;
	if (!lines->section) {
		fail(lines, -EINVAL, "a key stands before the first [section]");
		return 0;
	}
	lines->has_key = true;
	lines->err = config_store(lines->config, lines->section, name, value ? value : "", &origin,
				  lines->why);
	return !lines->err;
}

static int read_lines(struct lines *lines)
{
	int wrong;

	if (memchr(lines->at, '\0', (size_t)(lines->end - lines->at)))
		return fail(lines, -EINVAL, "it is not a text: it has a NUL byte");
	/* libinih steps over the mark, too, but looks for it behind our reader. */
	if (lines->end - lines->at >= 3 && !memcmp(lines->at, "\xef\xbb\xbf", 3))
		lines->at += 3;
	wrong = ini_parse_stream(next_line, lines, take_key, lines);
	/* It goes on after a line that it does not understand, which may come before our error. */
	if (wrong > 0 && (!lines->err || (unsigned int)wrong < lines->number)) {
		lines->number = (unsigned int)wrong;
		return fail(lines, -EINVAL, "this is neither '[section]' nor 'key = value'");
	}
	if (wrong < 0 && !lines->err)
		return -ENOMEM;
	return lines->err;
}

int config_read_text(struct config *config, const char *path, const char *text, size_t size,
		     char why[CONFIG_WHY_BYTES])
{
	char line[CONFIG_WHY_BYTES] = "";
	struct lines lines = {.config = config, .at = text, .end = text + size, .why = line};
	int err, said;

	config->path = strdup(path);
	if (!config->path)
		return -ENOMEM;
	err = read_lines(&lines);
	if (!err || err == -ENOMEM)
		return err;
	said = snprintf(why, CONFIG_WHY_BYTES, "%s:%u: %s", path, lines.number, line);
	if (said >= (int)CONFIG_WHY_BYTES)
		memcpy(why + CONFIG_WHY_BYTES - sizeof("..."), "...", sizeof("..."));
	return err;
}

/* Whether a value of the file is itself a secret: a header's, or in a URL. */
static bool has_secret(const struct config *config)
{
	for (size_t i = 0; i < config->section_count; i++) {
		const struct config_section *section = config->section[i];
		const char *url, *proxy;

		if (section->kind != CONFIG_PUSH)
			continue;
		url = section->value[CONFIG_PUSH_URL].text;
		proxy = section->value[CONFIG_PUSH_PROXY].text;
		if (section->value[CONFIG_PUSH_HEADER].text ||
		    (url && config_url_has_secret(url)) || (proxy && config_url_has_secret(proxy)))
			return true;
	}
	return false;
}

/* Who may change it may as well be who runs us. */
static int check_file(const struct config *config, const char *path, const struct plain_file *file,
		      char why[CONFIG_WHY_BYTES])
{
	if (file->mode & S_IWOTH)
		return config_refuse(why, -EPERM, "%s: every user may write to it: chmod o-w '%s'",
				     path, path);
	if (file->mode & S_IWGRP)
		return config_refuse(why, -EPERM, "%s: its group may write to it: chmod g-w '%s'",
				     path, path);
	if (!plain_file_is_trusted(file->uid))
		return config_refuse(why, -EPERM,
				     "%s: it belongs to uid %u, neither root nor who runs this: "
				     "chown root '%s'",
				     path, file->uid, path);
	if (file->mode & S_IROTH && has_secret(config))
		return config_refuse(why, -EPERM,
				     "%s: it has secrets (header=, url=, proxy=) and every user "
				     "may read it: chmod o= '%s'",
				     path, path);
	return 0;
}

int config_read(struct config *config, const char *path, char why[CONFIG_WHY_BYTES])
{
	struct plain_file file = {0};
	int err = plain_file_read(path, CONFIG_FILE_MAX_BYTES, &file);

	if (err == -ENOMEM)
		return err;
	if (err == -EINVAL)
		return config_refuse(why, err, "%s: not a regular file", path);
	if (err == -EFBIG)
		return config_refuse(why, err, "%s: longer than %u KiB", path,
				     CONFIG_FILE_MAX_BYTES >> 10);
	if (err)
		return config_refuse(why, err, "%s: %s", path, strerror(-err));
	err = config_read_text(config, path, file.text, file.size, why);
	if (!err)
		err = check_file(config, path, &file, why);
	explicit_bzero(file.text, file.size);
	free(file.text);
	return err;
}

/* ---- printing, for --doctor ---- */

#define KEY_COLUMNS 12

/* A header's name is no secret, its value may be one. */
static void print_name(FILE *file, const char *item, size_t size)
{
	const char *colon = memchr(item, ':', size);

	fprintf(file, "%.*s: " CONFIG_HIDDEN, (int)(colon ? colon - item : 0), item);
}

static void print_url(FILE *file, const char *url)
{
	char shown[CONFIG_URL_SHOWN_BYTES];

	config_url_hide(url, shown);
	fputs(shown, file);
}

static void print_value(FILE *file, const struct config_value *value)
{
	const char *text = value->text, *item;
	bool is_first = true;
	size_t size;

	while (config_next_item(&text, '\n', &item, &size)) {
		if (!is_first)
			fputs("\n    ", file);
		is_first = false;
		switch (value->key->shown) {
		case CONFIG_SHOWN:
			fprintf(file, "%.*s", (int)size, item);
			break;
		case CONFIG_SHOWN_NAME:
			print_name(file, item, size);
			break;
		case CONFIG_SHOWN_URL:
			print_url(file, item);
			break;
		}
	}
}

static void print_origin(FILE *file, const struct config_value *value)
{
	switch (value->source) {
	case CONFIG_FROM_DEFAULT:
		fputs(" ; default\n", file);
		break;
	case CONFIG_FROM_FILE:
		fprintf(file, " ; %s:%u\n", value->file, value->line);
		break;
	case CONFIG_FROM_SET:
		fputs(" ; --set\n", file);
		break;
	case CONFIG_FROM_OPTION:
		fputs(" ; command line\n", file);
		break;
	}
}

static void print_line(FILE *file, const struct config_value *value)
{
	if (!value->text) {
		fprintf(file, ";%-*s =\n", KEY_COLUMNS - 1, value->key->name);
		return;
	}
	fprintf(file, "%-*s = ", KEY_COLUMNS, value->key->name);
	print_value(file, value);
	print_origin(file, value);
}

/* name: "" or that of a [push NAME]. */
static void print_section(const struct config *config, enum config_kind kind, const char *name,
			  FILE *file)
{
	const struct config_section *section = config_find(config, kind, name);
	struct config_value value;
	size_t count;

	(void)config_keys(kind, &count);
	fprintf(file, "[%s%s%s]\n", config_kind_name(kind), name[0] ? " " : "", name);
	for (size_t i = 0; i < count; i++) {
		value = section ? section->value[i] : config_get(config, kind, i);
		print_line(file, &value);
	}
}

int config_print(const struct config *config, FILE *file)
{
	print_section(config, CONFIG_CAPTURE, "", file);
	fputc('\n', file);
	print_section(config, CONFIG_STORE, "", file);
	for (enum config_kind kind = CONFIG_HTTP; kind < CONFIG_KIND_COUNT; kind++) {
		for (size_t i = 0; i < config->section_count; i++) {
			if (config->section[i]->kind != kind)
				continue;
			fputc('\n', file);
			print_section(config, kind, config->section[i]->name, file);
		}
	}
	return fflush(file) || ferror(file) ? -EIO : 0;
}
