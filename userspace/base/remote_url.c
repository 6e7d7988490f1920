/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/remote_url.h"

#include <string.h>

#include "base/cleanup.h"

/* Returns what follows http:// or https://; NULL: it is none. */
static const char *host_of(const char *url)
{
	if (!strncmp(url, "http://", 7))
		return url + 7;
	return strncmp(url, "https://", 8) ? NULL : url + 8;
}

bool remote_url_parse(const char *text, enum remote_protocol *ret_protocol, const char **ret_plain)
{
	static const struct {
		const char *prefix;
		enum remote_protocol protocol;
	} prefixes[] = {{"pyprofd+", REMOTE_NODE},
			{"pyroscope+", REMOTE_PYROSCOPE},
			{"parca+", REMOTE_PARCA},
			{"", REMOTE_PROFILE}};
	const char *plain = text, *host, *end;
	size_t i = 0;

	while (strncmp(text, prefixes[i].prefix, strlen(prefixes[i].prefix)))
		i++;
	plain += strlen(prefixes[i].prefix);
	host = host_of(plain);
	if (!host)
		return false;
	end = host + strcspn(host, "/?#");
	*ret_plain = plain;
	*ret_protocol = prefixes[i].protocol;
	if (prefixes[i].protocol == REMOTE_PROFILE && (!*end || !strcmp(end, "/")))
		*ret_protocol = REMOTE_NODE;
	return true;
}
