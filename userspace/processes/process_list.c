/* SPDX-License-Identifier: BSD-2-Clause */
#include "processes/process_list.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"

#define LIST_MAX 65536U

int process_list_add(struct process_list *list, struct pp_process_id id)
{
	for (size_t i = list->count; i-- > 0 && list->count - i <= 8;)
		if (!memcmp(&list->id[i], &id, sizeof(id)))
			return 0;
	if (list->count == LIST_MAX)
		return -ENOSPC;
	if (ARRAY_RESERVE(list->id, list->count, list->capacity))
		return -ENOMEM;
	list->id[list->count++] = id;
	return 0;
}
