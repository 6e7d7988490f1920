/* SPDX-License-Identifier: BSD-2-Clause */
#include "store/store_names.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define MS_PER_SEC 1000U
/* 9999-12-31T23:59:59.999Z: later times have no ten-character day. */
#define MAX_START_MS 253402300799999ULL
#define SUFFIX ".pb.gz"
#define TEMPORARY_SUFFIX ".tmp"
#define MERGED ".merged"
#define MERGING ".merging"

bool store_kind_is_valid(const char *kind)
{
	size_t size = strspn(kind, "abcdefghijklmnopqrstuvwxyz0123456789_");

	return size && size < STORE_KIND_CHARS && !kind[size];
}

static struct tm utc(uint64_t start_ms)
{
	time_t seconds = (time_t)((start_ms > MAX_START_MS ? MAX_START_MS : start_ms) / MS_PER_SEC);
	struct tm parts;

	gmtime_r(&seconds, &parts);
	return parts;
}

void store_day_name(uint64_t start_ms, char name[STORE_DAY_CHARS])
{
	struct tm parts = utc(start_ms);

	strftime(name, STORE_DAY_CHARS, "%Y-%m-%d", &parts);
}

void store_hour_name(uint64_t start_ms, char name[STORE_HOUR_CHARS])
{
	struct tm parts = utc(start_ms);

	strftime(name, STORE_HOUR_CHARS, "%H", &parts);
}

void store_file_name(const struct store_file *file, char name[STORE_FILE_CHARS])
{
	const char *merged = file->is_merging ? MERGING : file->is_merged ? MERGED : "";

	snprintf(name, STORE_FILE_CHARS, "%s%" PRIu64 "-%" PRIu64 "-%.32s%s" SUFFIX "%s",
		 file->is_temporary ? "." : "", file->start_ms, file->duration_ms, file->kind,
		 merged, file->is_temporary ? TEMPORARY_SUFFIX : "");
}

static bool digits(const char *text, unsigned int count)
{
	for (unsigned int i = 0; i < count; i++)
		if (text[i] < '0' || text[i] > '9')
			return false;
	return true;
}

bool store_day_parse(const char *name)
{
	return strlen(name) == 10 && digits(name, 4) && name[4] == '-' && digits(name + 5, 2) &&
	       name[7] == '-' && digits(name + 8, 2);
}

bool store_hour_parse(const char *name)
{
	return strlen(name) == 2 && digits(name, 2) &&
	       (name[0] < '2' || (name[0] == '2' && name[1] < '4'));
}

static bool parse_number(const char **at, uint64_t *ret_number)
{
	char *end;

	if (!digits(*at, 1))
		return false;
	*ret_number = strtoull(*at, &end, 10);
	if (*end != '-')
		return false;
	*at = end + 1;
	return true;
}

bool store_file_parse(const char *name, struct store_file *ret_file)
{
	struct store_file file = {.is_temporary = name[0] == '.'};
	const char *at = name + file.is_temporary;
	char printed[STORE_FILE_CHARS];
	size_t kind_size;

	if (!parse_number(&at, &file.start_ms) || !parse_number(&at, &file.duration_ms))
		return false;
	kind_size = strcspn(at, ".");
	if (kind_size >= STORE_KIND_CHARS)
		return false;
	memcpy(file.kind, at, kind_size);
	if (!store_kind_is_valid(file.kind))
		return false;
	file.is_merging = !strncmp(at + kind_size, MERGING ".", strlen(MERGING "."));
	file.is_merged = file.is_merging ||
			 !strncmp(at + kind_size, MERGED ".", strlen(MERGED "."));
	store_file_name(&file, printed);
	if (strcmp(printed, name))
		return false;
	*ret_file = file;
	return true;
}
