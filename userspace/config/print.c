/* SPDX-License-Identifier: BSD-2-Clause */
/* The configuration that counts, for --doctor. */
#include <errno.h>
#include <string.h>

#include "config/config.h"
#include "config/section.h"
#include "config/url.h"

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
