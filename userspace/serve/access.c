/* SPDX-License-Identifier: BSD-2-Clause */
#include "serve/access.h"

#include <arpa/inet.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "config/secret.h"

#define HOST_BYTES 256U

bool access_token_is(const char *given, const char *token)
{
	const size_t given_size = strnlen(given, CONFIG_TOKEN_MAX_BYTES);
	const size_t size = strnlen(token, CONFIG_TOKEN_MAX_BYTES);
	unsigned char padded[2][CONFIG_TOKEN_MAX_BYTES] = {{0}};
	volatile unsigned char differs = given_size != size;

	if (given[given_size])
		return false; /* longer than any token may be */
	memcpy(padded[0], given, given_size);
	memcpy(padded[1], token, size);
	for (size_t i = 0; i < CONFIG_TOKEN_MAX_BYTES; i++)
		differs |= (unsigned char)(padded[0][i] ^ padded[1][i]);
	return !differs;
}

enum access_view access_decide(const struct access_client *client, const char *token)
{
	if (client->token)
		return token && access_token_is(client->token, token) ? ACCESS_ALL : ACCESS_NOTHING;
	if (client->has_certificate)
		return ACCESS_ALL;
	if (!client->has_uid)
		return ACCESS_NOTHING;
	return client->uid ? ACCESS_OWN : ACCESS_ALL;
}

/* ---- Host ---- */

/* Takes the port off.  Returns false: it is no port, or the name is too long. */
static bool split_port(const char *host, char ret_name[HOST_BYTES])
{
	const char *port = strrchr(host, ':');
	size_t size = strlen(host);

	if (host[0] == '[' && host[size - 1] == ']')
		port = NULL;
	if (port && (port[1] == '\0' || port[1 + strspn(port + 1, "0123456789")]))
		return false;
	if (port)
		size = (size_t)(port - host);
	if (!size || size >= HOST_BYTES)
		return false;
	memcpy(ret_name, host, size);
	ret_name[size] = '\0';
	return true;
}

static bool is_address(char *name)
{
	const size_t size = strlen(name);
	unsigned char address[sizeof(struct in6_addr)];

	if (name[0] != '[')
		return inet_pton(AF_INET, name, address) == 1;
	if (name[size - 1] != ']')
		return false;
	name[size - 1] = '\0';
	return inet_pton(AF_INET6, name + 1, address) == 1;
}

bool access_host_is_ours(const char *host, const char *const *name, size_t name_count)
{
	char bare[HOST_BYTES];

	if (!host || !host[0] || !split_port(host, bare))
		return false;
	if (!strcasecmp(bare, "localhost"))
		return true;
	for (size_t i = 0; i < name_count; i++)
		if (!strcasecmp(bare, name[i]))
			return true;
	return is_address(bare);
}
