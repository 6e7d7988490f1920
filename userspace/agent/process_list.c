/* SPDX-License-Identifier: BSD-2-Clause */
#include "agent/process_list.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define LIST_MAX 65536U

int process_list_add(struct process_list *list, struct pp_process_id id)
{
	for (size_t i = list->count; i-- > 0 && list->count - i <= 8;)
		if (!memcmp(&list->id[i], &id, sizeof(id)))
			return 0;
	if (list->count == list->capacity) {
		size_t capacity = list->capacity ? list->capacity * 2 : 64;
		struct pp_process_id *grown;

		if (capacity > LIST_MAX)
			return -ENOSPC;
		grown = realloc(list->id, capacity * sizeof(*grown));
		if (!grown)
			return -ENOMEM;
		list->id = grown;
		list->capacity = capacity;
	}
	list->id[list->count++] = id;
	return 0;
}
