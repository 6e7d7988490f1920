/* SPDX-License-Identifier: BSD-2-Clause */
/* sources: store/kept.c store/store_query.c */
/* The name of a directory in kept/, as anyone who may write there chose it: a name that parses is
 * printed as the same name. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "store/kept.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_name(const char *name)
{
	char printed[KEPT_NAME_CHARS], comm[KEPT_COMM_CHARS];
	struct kept_name kept;

	kept_comm(name, comm);
	assert(comm[0] && strlen(comm) < sizeof(comm) && !strchr(comm, '/'));
	if (!kept_name_parse(name, &kept))
		return;
	assert(!strchr(name, '/') && !strchr(name, '\n'));
	kept_name_format(&kept, printed);
	assert(!strcmp(name, printed));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = malloc(size + 1);

	assert(text);
	if (size)
		memcpy(text, data, size);
	text[size] = '\0';
	check_name(text);
	free(text);
	return 0;
}
