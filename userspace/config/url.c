/* SPDX-License-Identifier: BSD-2-Clause */
#include "config/url.h"

#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/collectors.h"
#include "base/text.h"

#define SCHEME_LETTERS "abcdefghijklmnopqrstuvwxyz0123456789"
#define SCHEME_END "://"
#define PATH_BEGINS "/?#"
#define QUERY_BEGINS "?#"
#define HEX 16
#define HEX_DIGITS 2U

void config_url_hide(const char *url, char ret_text[CONFIG_URL_SHOWN_BYTES])
{
	const char *at = strrchr(url, '@'), *query = strpbrk(url, QUERY_BEGINS);
	const char *rest = url + strspn(url, SCHEME_LETTERS);
	int scheme_size, rest_size;

	rest = strncmp(rest, SCHEME_END, strlen(SCHEME_END)) ? url : rest + strlen(SCHEME_END);
	scheme_size = (int)(rest - url);
	/* A password with a '?', or a query with an '@'. */
	if (at && query && query < at) {
		snprintf(ret_text, CONFIG_URL_SHOWN_BYTES, "%.*s" CONFIG_HIDDEN, scheme_size, url);
		return;
	}
	if (at)
		rest = at;
	rest_size = (int)(query ? query + 1 - rest : (ptrdiff_t)strlen(rest));
	snprintf(ret_text, CONFIG_URL_SHOWN_BYTES, "%.*s%s%.*s%s", scheme_size, url,
		 at ? CONFIG_HIDDEN : "", rest_size, rest, query ? CONFIG_HIDDEN : "");
}

bool config_url_has_secret(const char *url)
{
	return strpbrk(url, "@" QUERY_BEGINS) != NULL;
}

/* Returns whether the port behind a host, if there is one, is from 1 to 65535. */
static bool port_is_fine(const char *host)
{
	const char *end = host + strcspn(host, PATH_BEGINS);
	const char *bracket = *host == '[' ? memchr(host, ']', (size_t)(end - host)) : NULL;
	const char *colon =
		memchr(bracket ? bracket : host, ':', (size_t)(end - (bracket ? bracket : host)));
	uint64_t port;

	return !colon || (!decimal_parse(colon + 1, (size_t)(end - colon - 1), &port) && port &&
			  port <= UINT16_MAX);
}

const char *config_url_fault(const char *url)
{
	const char *host;

	if (strncmp(url, "http://", 7) && strncmp(url, "https://", 8))
		return "is no URL: give http://HOST or https://HOST";
	host = strstr(url, SCHEME_END) + strlen(SCHEME_END);
	if (strpbrk(url, " \t\""))
		return "has blanks or quotes";
	if (!*host || strchr(PATH_BEGINS, *host))
		return "names no host";
	if (memchr(host, '@', strcspn(host, PATH_BEGINS)))
		return "has a user in it: give user= and, for the password, token-file=";
	if (!port_is_fine(host))
		return "has a port that is not from 1 to 65535";
	return NULL;
}

const char *config_url_proxy_fault(const char *url)
{
	static const char *const schemes[] = {"http://",    "https://",	 "socks4://",
					      "socks4a://", "socks5://", "socks5h://"};
	const char *host = NULL, *user;

	for (size_t i = 0; i < ARRAY_SIZE(schemes); i++)
		if (!strncmp(url, schemes[i], strlen(schemes[i])))
			host = url + strlen(schemes[i]);
	if (!host)
		return "is no proxy: give http://HOST:PORT, or https:// or socks5h://";
	if (strpbrk(url, " \t\""))
		return "has blanks or quotes";
	user = memrchr(host, '@', strcspn(host, PATH_BEGINS));
	if (user)
		host = user + 1;
	if (!*host || *host == ':' || strchr(PATH_BEGINS, *host))
		return "names no host";
	return port_is_fine(host) ? NULL : "has a port that is not from 1 to 65535";
}

static int hex_value(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c |= 0x20;
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -ENOENT;
}

bool config_url_decode(const char *text, size_t size, bool has_plus, char *to)
{
	for (size_t i = 0; i < size; i++) {
		int c = text[i] == '+' && has_plus ? ' ' : (unsigned char)text[i];

		if (c == '%' && i + HEX_DIGITS < size && hex_value(text[i + 1]) >= 0 &&
		    hex_value(text[i + 2]) >= 0) {
			c = hex_value(text[i + 1]) * HEX + hex_value(text[i + 2]);
			i += HEX_DIGITS;
		}
		if (c < ' ' || c == 0x7f)
			return false;
		*to++ = (char)c;
	}
	*to = '\0';
	return true;
}

const char *config_url_own_path(const char *url)
{
	size_t size = strcspn(url, QUERY_BEGINS);

	while (size && url[size - 1] == '/')
		size--;
	for (unsigned int i = 0; i < COLLECTOR_COUNT; i++) {
		const char *path = collector_push_path((enum collector_id)i);
		const size_t path_size = path ? strlen(path) : SIZE_MAX;

		if (size >= path_size && !memcmp(url + size - path_size, path, path_size))
			return path;
	}
	return NULL;
}
