/* SPDX-License-Identifier: BSD-2-Clause */
#include "collectors/settings.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/io.h"
#include "base/utf8.h"
#include "config/secret.h"
#include "config/url.h"

/* ---- settings ---- */

#define SHOWN_CHARS 40

void fetch_settings_release(struct fetch_settings *settings)
{
	http_identity_release(&settings->as);
	free(settings->url);
	*settings = (struct fetch_settings){0};
}

__attribute__((format(printf, 2, 3))) static int complain(char why[CONFIG_WHY_BYTES],
							  const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(why, CONFIG_WHY_BYTES, format, args);
	va_end(args);
	return -EINVAL;
}

static int keep(char **text, const char *value)
{
	char *copy = strdup(value);

	if (!copy)
		return -ENOMEM;
	free(*text);
	*text = copy;
	return 0;
}

/* ---- --from-set ---- */

static int add_header(struct http_identity *as, const char *value, char why[CONFIG_WHY_BYTES])
{
	const char *colon = strchr(value, ':');

	if (!colon || colon == value)
		return complain(why, "--from-set header: is not \"Name: value\"");
	if (as->header_count == HTTP_CLIENT_HEADERS_MAX)
		return complain(why, "--from-set header: more than %u", HTTP_CLIENT_HEADERS_MAX);
	return keep(&as->header[as->header_count++], value);
}

/* The value may be a secret: it is not repeated. */
static int take_set(struct http_identity *as, const char *assignment, char why[CONFIG_WHY_BYTES])
{
	const struct {
		const char *key;
		char **text;
	} keys[] = {{"token-file", &as->token_file},
		    {"user", &as->user},
		    {"ca", &as->ca},
		    {"cert", &as->cert},
		    {"key", &as->key},
		    {"proxy", &as->proxy},
		    {"tenant", &as->tenant}};
	const char *equals = strchr(assignment, '=');
	const size_t size = equals ? (size_t)(equals - assignment) : 0;

	if (!size || !equals[1])
		return complain(why, "--from-set %.*s: is not KEY=VALUE", SHOWN_CHARS, assignment);
	if (size == strlen("header") && !strncmp(assignment, "header", size))
		return add_header(as, equals + 1, why);
	for (size_t i = 0; i < ARRAY_SIZE(keys); i++)
		if (size == strlen(keys[i].key) && !strncmp(assignment, keys[i].key, size))
			return keep(keys[i].text, equals + 1);
	return complain(why,
			"--from-set %.*s: there is no such key: there are token-file, user, ca, "
			"cert, key, proxy, header and tenant",
			(int)(size < SHOWN_CHARS ? size : SHOWN_CHARS), assignment);
}

/* ---- lines ---- */

static int take_number(const char *text, uint64_t *number)
{
	char *end;

	errno = 0;
	*number = strtoull(text, &end, 10);
	return *end || end == text || errno ? -EINVAL : 0;
}

static int take_line(struct fetch_settings *settings, const char *line, char why[CONFIG_WHY_BYTES])
{
	const char *equals = strchr(line, '=');
	const size_t size = equals ? (size_t)(equals - line) : 0;
	const char *value = equals ? equals + 1 : "";

	if (!strncmp(line, "url=", 4))
		return keep(&settings->url, value);
	if (!strncmp(line, "set=", 4))
		return take_set(&settings->as, value, why);
	if (!strncmp(line, "since-ms=", 9))
		return take_number(value, &settings->since_ms);
	if (!strncmp(line, "until-ms=", 9))
		return take_number(value, &settings->until_ms);
	if (!strncmp(line, "sample-type=", 12) && strlen(value) < FETCH_TYPE_BYTES) {
		snprintf(settings->sample_type, sizeof(settings->sample_type), "%s", value);
		return 0;
	}
	if (!strncmp(line, "kind=", 5) && store_kind_is_valid(value)) {
		snprintf(settings->kind, sizeof(settings->kind), "%s", value);
		return 0;
	}
	return complain(why, "%.*s: a setting that is not known, or too long",
			(int)(size < SHOWN_CHARS ? size : SHOWN_CHARS), line);
}

/* Checks what the settings say together. */
static int check(const struct fetch_settings *settings, char why[CONFIG_WHY_BYTES])
{
	const struct http_identity *as = &settings->as;
	const char *fault = as->proxy ? config_url_proxy_fault(as->proxy) : NULL;

	if (!settings->url)
		return complain(why, "the URL is missing");
	if (fault)
		return complain(why, "--from-set proxy: %s", fault);
	if (!as->cert != !as->key)
		return complain(why, "--from-set %s: needs --from-set %s, too",
				as->cert ? "cert" : "key", as->cert ? "key" : "cert");
	if (as->user && !as->token_file)
		return complain(why, "--from-set user: needs its password: --from-set "
				     "token-file=FILE");
	return as->key ? config_check_secret(as->key, geteuid(), why) : 0;
}

int fetch_settings_read(FILE *file, struct fetch_settings *settings, char why[CONFIG_WHY_BYTES])
{
	OWNED_MEM char *line = NULL;
	size_t room = 0;
	ssize_t size;
	int err = 0;

	why[0] = '\0';
	while (!err && (size = getline(&line, &room, file)) > 0) {
		if (line[size - 1] == '\n')
			line[--size] = '\0';
		if (strlen(line) != (size_t)size || !utf8_is_clean(line, (size_t)size))
			return complain(why, "a setting has control codes, or is not UTF-8");
		err = take_line(settings, line, why);
	}
	if (!err)
		err = check(settings, why);
	if (err == -EINVAL && !why[0])
		return complain(why, "a setting is not a number");
	return err;
}

/* ---- the address ---- */

#define TYPE_PARAMETER "profile_type"
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

/* Decodes a part of a query, on the heap.  Returns 0; -EINVAL: it has control codes; -ENOMEM. */
static int decode(const char *text, size_t size, char **ret_text)
{
	OWNED_MEM char *decoded = malloc(size + 1);

	if (!decoded)
		return -ENOMEM;
	if (!config_url_decode(text, size, true, decoded))
		return -EINVAL;
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

	if (!name_size || address->matcher_count == FETCH_MATCHERS_MAX)
		return complain(why, "%.*s: not LABEL=VALUE, or more than %u of them",
				(int)(size < SHOWN_CHARS ? size : SHOWN_CHARS), item,
				FETCH_MATCHERS_MAX);
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
	if (err == -EINVAL || (!err && !is_label_name(matcher->name)))
		return complain(why, "%.*s: no label's name, or has control codes",
				(int)(name_size < SHOWN_CHARS ? name_size : SHOWN_CHARS), item);
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

	if (url[size] == '#' || strchr(query, '#'))
		return complain(why, "has a '#', which is not sent: write %%23");
	if (address->collector == COLLECTOR_NODE && has_query)
		return complain(why, "names a node, which takes no '?': choose with --pid, "
				     "--label and others");
	if (address->collector == COLLECTOR_URL)
		size = strlen(url);
	else
		while (size && url[size - 1] == '/')
			size--;
	address->base = strndup(url, size);
	if (!address->base)
		return -ENOMEM;
	return address->collector == COLLECTOR_URL ? 0 : add_matchers(address, query, why);
}

int fetch_address_parse(const char *url, struct fetch_address *ret_address,
			char why[CONFIG_WHY_BYTES])
{
	CLEANUP(fetch_address_release) struct fetch_address address = {0};
	const char *plain = url;
	const bool is_ours = remote_url_parse(url, &address.collector, &plain);
	const char *fault = config_url_fault(plain);
	int err;

	if (!is_ours || fault)
		return complain(why, "%s",
				!fault ? "is no URL: give http://HOST or https://HOST"
				: strchr(fault, '=')
					? "has a user in it: give --from-set user=NAME and, "
					  "for the password, --from-set token-file=FILE"
					: fault);
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
