/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/collectors.h"

#include <string.h>

static const struct {
	const char *name, *push_path;
	bool has_environment;
} rows[COLLECTOR_COUNT] = {
#define COLLECTOR_ROW(id, name, push_path, has_environment) {#name, push_path, has_environment},
	COLLECTORS(COLLECTOR_ROW)};

const char *collector_name(enum collector_id id)
{
	return rows[id].name;
}

const char *collector_push_path(enum collector_id id)
{
	return rows[id].push_path;
}

bool collector_has_environment(enum collector_id id)
{
	return rows[id].has_environment;
}

bool collector_find_push(const char *name, enum collector_id *ret_id)
{
	for (unsigned int i = 0; i < COLLECTOR_COUNT; i++)
		if (rows[i].push_path && !strcmp(rows[i].name, name)) {
			*ret_id = (enum collector_id)i;
			return true;
		}
	return false;
}

/* Returns what follows http:// or https://; NULL: it is none. */
static const char *host_of(const char *url)
{
	if (!strncmp(url, "http://", 7))
		return url + 7;
	return strncmp(url, "https://", 8) ? NULL : url + 8;
}

bool remote_url_parse(const char *text, enum collector_id *ret_id, const char **ret_plain)
{
	const char *plain = text, *host, *end;
	enum collector_id id = COLLECTOR_URL;

	for (unsigned int i = 0; i < COLLECTOR_URL; i++) {
		const size_t size = strlen(rows[i].name);

		if (strncmp(text, rows[i].name, size) || text[size] != '+')
			continue;
		id = (enum collector_id)i;
		plain = text + size + 1;
	}
	host = host_of(plain);
	if (!host)
		return false;
	end = host + strcspn(host, "/?#");
	*ret_plain = plain;
	*ret_id = id == COLLECTOR_URL && (!*end || !strcmp(end, "/")) ? COLLECTOR_NODE : id;
	return true;
}
