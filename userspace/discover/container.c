/* SPDX-License-Identifier: BSD-2-Clause */
#include "discover/container.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#define ID_DIGITS (CONTAINER_ID_BYTES - 1U)
#define SCOPE ".scope"
#define LOWER_CASE "abcdefghijklmnopqrstuvwxyz"
#define LOWER_HEX "0123456789abcdef"

static bool is_all(const char *text, size_t size, const char *accept)
{
	for (size_t i = 0; i < size; i++)
		if (!text[i] || !strchr(accept, text[i]))
			return false;
	return true;
}

static bool is_runtime_prefix(const char *text, size_t size)
{
	static const char monitor[] = "conmon-";
	const size_t monitor_size = sizeof(monitor) - 1;

	if (!size || text[size - 1] == ':')
		return true;
	if (text[size - 1] != '-' || !is_all(text, size, LOWER_CASE "-"))
		return false;
	return size < monitor_size ||
	       memcmp(text + size - monitor_size, monitor, monitor_size) != 0;
}

static bool component_id(const char *text, size_t size, char ret_id[CONTAINER_ID_BYTES])
{
	const size_t scope = sizeof(SCOPE) - 1;
	const char *id;

	if (size > scope && !memcmp(text + size - scope, SCOPE, scope))
		size -= scope;
	if (size < ID_DIGITS)
		return false;
	id = text + size - ID_DIGITS;
	if (!is_all(id, ID_DIGITS, LOWER_HEX) || !is_runtime_prefix(text, size - ID_DIGITS))
		return false;
	memcpy(ret_id, id, ID_DIGITS);
	ret_id[ID_DIGITS] = '\0';
	return true;
}

int container_id_find(const char *cgroup, char ret_id[CONTAINER_ID_BYTES])
{
	const char *end = cgroup + strlen(cgroup);

	while (end > cgroup) {
		const char *slash = memrchr(cgroup, '/', (size_t)(end - cgroup));
		const char *first = slash ? slash + 1 : cgroup;

		if (component_id(first, (size_t)(end - first), ret_id))
			return 0;
		end = slash ? slash : cgroup;
	}
	return -ENOENT;
}

enum line_rank { RANK_NONE, RANK_ROOT, RANK_OTHER, RANK_PIDS, RANK_SYSTEMD, RANK_V2, RANK_ID = 16 };

static bool has_controller(const char *list, size_t size, const char *name)
{
	const size_t name_size = strlen(name);

	while (size) {
		const char *comma = memchr(list, ',', size);
		size_t one = comma ? (size_t)(comma - list) : size;

		if (one == name_size && !memcmp(list, name, one))
			return true;
		list += one + (comma ? 1 : 0);
		size -= one + (comma ? 1 : 0);
	}
	return false;
}

/* hierarchy-ID:controller-list:cgroup-path */
static int rank_line(const char *line, size_t size, struct container *ret_container)
{
	const char *list = memchr(line, ':', size);
	const char *path = list ? memchr(list + 1, ':', (size_t)(line + size - list - 1)) : NULL;
	size_t list_size, path_size;
	int rank;

	if (!path)
		return RANK_NONE;
	list_size = (size_t)(path - ++list);
	path_size = (size_t)(line + size - ++path);
	if (!path_size || *path != '/' || path_size >= CGROUP_PATH_MAX_BYTES ||
	    memchr(path, '\0', path_size))
		return RANK_NONE;
	memcpy(ret_container->cgroup, path, path_size);
	ret_container->cgroup[path_size] = '\0';
	ret_container->id[0] = '\0';
	if (!list_size)
		rank = RANK_V2;
	else if (has_controller(list, list_size, "name=systemd"))
		rank = RANK_SYSTEMD;
	else
		rank = has_controller(list, list_size, "pids") ? RANK_PIDS : RANK_OTHER;
	if (!container_id_find(ret_container->cgroup, ret_container->id))
		return rank + RANK_ID;
	return path_size == 1 ? RANK_ROOT : rank;
}

void container_parse(const char *text, size_t size, struct container *ret_container)
{
	struct container best = {0}, container;
	const char *end = text + size;
	int best_rank = RANK_NONE;

	for (const char *line = text, *next; line < end; line = next) {
		const char *newline = memchr(line, '\n', (size_t)(end - line));
		const char *line_end = newline ? newline : end;
		int rank = rank_line(line, (size_t)(line_end - line), &container);

		next = newline ? newline + 1 : end;
		if (rank > best_rank) {
			best_rank = rank;
			best = container;
		}
	}
	*ret_container = best;
}
