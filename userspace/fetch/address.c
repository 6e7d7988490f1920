/* SPDX-License-Identifier: BSD-2-Clause */
#include "fetch/address.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/io.h"
#include "config/url.h"

#define TYPE_PARAMETER "profile_type"
#define SHOWN_CHARS 40
#define HEX 16
#define LETTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_"
#define NAME_CHARS LETTERS "0123456789.:"

void fetch_address_release(struct fetch_address *address)
{
	free(address->base);
	free(address->type);
	for (size_t i = 0; i < address->matcher_count; i++) {
		free(address->matcher[i].name);
		free(address->matcher[i].value);
	}
	*address = (struct fetch_address){0};
}

/* ---- parameters ---- */

static int digit_of(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c |= 0x20;
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -ENOENT;
}

/* Decodes a part of a query, on the heap.  Returns 0; -EINVAL: it has control codes; -ENOMEM. */
static int decode(const char *text, size_t size, char **ret_text)
{
	OWNED_MEM char *decoded = malloc(size + 1);
	char *to = decoded;

	if (!decoded)
		return -ENOMEM;
	for (size_t i = 0; i < size; i++) {
		int c = text[i] == '+' ? ' ' : (unsigned char)text[i];

		if (c == '%' && i + 2 < size && digit_of(text[i + 1]) >= 0 &&
		    digit_of(text[i + 2]) >= 0) {
			c = digit_of(text[i + 1]) * HEX + digit_of(text[i + 2]);
			i += 2;
		}
		if (c < ' ' || c == 0x7f)
			return -EINVAL;
		*to++ = (char)c;
	}
	*to = '\0';
	*ret_text = TAKE(decoded);
	return 0;
}

static bool is_label_name(const char *name)
{
	return *name && strchr(LETTERS, *name) && !name[strspn(name, NAME_CHARS)];
}

static int add_matcher(struct fetch_address *address, const char *item, size_t size,
		       char why[CONFIG_WHY_BYTES])
{
	const char *equals = memchr(item, '=', size);
	const size_t name_size = equals ? (size_t)(equals - item) : 0;
	struct fetch_matcher *matcher = &address->matcher[address->matcher_count];
	int err;

	if (!name_size || address->matcher_count == FETCH_MATCHERS_MAX) {
		snprintf(why, CONFIG_WHY_BYTES, "%.*s: not LABEL=VALUE, or more than %u of them",
			 (int)(size < SHOWN_CHARS ? size : SHOWN_CHARS), item, FETCH_MATCHERS_MAX);
		return -EINVAL;
	}
	address->matcher_count++;
	err = decode(item, name_size, &matcher->name);
	if (!err)
		err = decode(equals + 1, size - name_size - 1, &matcher->value);
	if (!err && !strcmp(matcher->name, TYPE_PARAMETER)) {
		free(address->type);
		address->type = TAKE(matcher->value);
		free(TAKE(matcher->name));
		address->matcher_count--;
		return 0;
	}
	if (err == -EINVAL || (!err && !is_label_name(matcher->name))) {
		snprintf(why, CONFIG_WHY_BYTES, "%.*s: no label's name, or has control codes",
			 (int)(name_size < SHOWN_CHARS ? name_size : SHOWN_CHARS), item);
		return -EINVAL;
	}
	return err;
}

static int add_matchers(struct fetch_address *address, const char *query,
			char why[CONFIG_WHY_BYTES])
{
	int err = 0;

	while (!err && *query) {
		const size_t size = strcspn(query, "&");

		if (size)
			err = add_matcher(address, query, size, why);
		query += size + (query[size] == '&');
	}
	return err;
}

/* ---- the URL ---- */

static int set_base(struct fetch_address *address, const char *url, char why[CONFIG_WHY_BYTES])
{
	size_t size = strcspn(url, "?#");
	const bool has_query = url[size] == '?';
	const char *query = has_query ? url + size + 1 : "";

	if (url[size] == '#' || strchr(query, '#')) {
		snprintf(why, CONFIG_WHY_BYTES, "has a '#', which is not sent: write %%23");
		return -EINVAL;
	}
	if (address->protocol == REMOTE_NODE && has_query) {
		snprintf(why, CONFIG_WHY_BYTES,
			 "names a node, which takes no '?': choose with --pid, --label and "
			 "others");
		return -EINVAL;
	}
	if (address->protocol == REMOTE_PROFILE)
		size = strlen(url);
	else
		while (size && url[size - 1] == '/')
			size--;
	address->base = strndup(url, size);
	if (!address->base)
		return -ENOMEM;
	return address->protocol == REMOTE_PROFILE ? 0 : add_matchers(address, query, why);
}

int fetch_address_parse(const char *url, struct fetch_address *ret_address,
			char why[CONFIG_WHY_BYTES])
{
	CLEANUP(fetch_address_release) struct fetch_address address = {0};
	const char *plain = url;
	const bool is_ours = remote_url_parse(url, &address.protocol, &plain);
	const char *fault = config_url_fault(plain);
	int err;

	if (!is_ours || fault) {
		snprintf(why, CONFIG_WHY_BYTES, "%s",
			 !fault ? "is no URL: give http://HOST or https://HOST"
			 : strchr(fault, '=') ? "has a user in it: give --from-set user=NAME and, "
						"for the password, --from-set token-file=FILE"
					      : fault);
		return -EINVAL;
	}
	err = set_base(&address, plain, why);
	if (err)
		return err;
	*ret_address = address;
	address = (struct fetch_address){0};
	return 0;
}

/* ---- the selector ---- */

static void put_value(const char *value, FILE *out)
{
	putc('"', out);
	for (; *value; value++) {
		if (*value == '"' || *value == '\\')
			putc('\\', out);
		putc(*value, out);
	}
	putc('"', out);
}

int fetch_address_selector(const struct fetch_address *address, char **ret_text)
{
	OWNED_MEM char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	if (!out)
		return -ENOMEM;
	putc('{', out);
	for (size_t i = 0; i < address->matcher_count; i++) {
		fprintf(out, "%s%s=", i ? "," : "", address->matcher[i].name);
		put_value(address->matcher[i].value, out);
	}
	putc('}', out);
	if (close_memory_file(out, &text))
		return -ENOMEM;
	*ret_text = TAKE(text);
	return 0;
}
