/* SPDX-License-Identifier: BSD-2-Clause */
#include "pprof/pprof_strings.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"

int pprof_strings_init(struct pprof_strings *strings, const struct intern *source)
{
	*strings = (struct pprof_strings){.source = source, .known_count = intern_count(source)};
	strings->known = calloc(strings->known_count, sizeof(*strings->known));
	if (!strings->known)
		return -ENOMEM;
	return intern_new(&strings->table);
}

void pprof_strings_release(struct pprof_strings *strings)
{
	intern_free(strings->table);
	free(strings->known);
	*strings = (struct pprof_strings){0};
}

static int add_bytes(struct pprof_strings *strings, const char *bytes, size_t size,
		     uint32_t *ret_index)
{
	OWNED_MEM char *clean = NULL;

	if (utf8_is_clean(bytes, size))
		return intern_bytes(strings->table, bytes, size, ret_index);
	clean = reallocarray(NULL, size, UTF8_CLEAN_MAX_GROWTH);
	if (!clean)
		return -ENOMEM;
	return intern_bytes(strings->table, clean, utf8_clean(bytes, size, clean), ret_index);
}

int pprof_strings_add(struct pprof_strings *strings, uint32_t source_id, uint32_t *ret_index)
{
	const char *bytes;
	uint32_t index;
	size_t size;
	int err;

	if (source_id >= strings->known_count)
		return -EINVAL;
	if (strings->known[source_id]) {
		*ret_index = strings->known[source_id] - 1;
		return 0;
	}
	bytes = intern_get(strings->source, source_id, &size);
	err = add_bytes(strings, bytes, size, &index);
	if (err)
		return err;
	strings->known[source_id] = index + 1;
	*ret_index = index;
	return 0;
}

int pprof_strings_add_text(struct pprof_strings *strings, const char *text, uint32_t *ret_index)
{
	return add_bytes(strings, text, strlen(text), ret_index);
}
