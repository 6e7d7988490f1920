/* SPDX-License-Identifier: BSD-2-Clause */
/* sources: store/store_query.c */
/* The name of a file in the store, as anyone who may write there chose it: one that parses is
 * printed as the same name, and any time has names of their fixed sizes. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "store/store_query.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_file(const char *name)
{
	char printed[STORE_FILE_CHARS], directory[STORE_DAY_CHARS];
	struct store_file file, again;

	if (!store_file_parse(name, &file))
		return;
	assert(!strchr(name, '/') && store_kind_is_valid(file.kind));
	store_file_name(&file, printed);
	assert(!strcmp(name, printed));
	/* It lies in a directory that is one of the store's. */
	store_day_name(file.start_ms, directory);
	assert(store_day_parse(directory));
	store_hour_name(file.start_ms, directory);
	assert(store_hour_parse(directory));
	/* While it is written it has another name, which is not that of a whole file. */
	file.is_temporary = !file.is_temporary;
	store_file_name(&file, printed);
	assert(store_file_parse(printed, &again) && again.is_temporary == file.is_temporary);
	assert(again.start_ms == file.start_ms && again.duration_ms == file.duration_ms);
	assert(again.is_merged == file.is_merged && again.is_merging == file.is_merging);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *name = malloc(size + 1);

	assert(name);
	if (size)
		memcpy(name, data, size);
	name[size] = '\0';
	check_file(name);
	if (store_day_parse(name) || store_hour_parse(name))
		assert(!strchr(name, '/') && !strchr(name, '.'));
	free(name);
	return 0;
}
