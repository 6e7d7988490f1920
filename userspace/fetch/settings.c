/* SPDX-License-Identifier: BSD-2-Clause */
#include "fetch/settings.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/utf8.h"
#include "config/secret.h"
#include "config/url.h"

#define SHOWN_CHARS 40

void fetch_settings_release(struct fetch_settings *settings)
{
	char *const text[] = {settings->url,  settings->token_file, settings->user,
			      settings->ca,   settings->cert,	    settings->key,
			      settings->proxy, settings->tenant};

	for (size_t i = 0; i < ARRAY_SIZE(text); i++)
		free(text[i]);
	for (size_t i = 0; i < settings->header_count; i++)
		free(settings->header[i]);
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

static int add_header(struct fetch_settings *settings, const char *value,
		      char why[CONFIG_WHY_BYTES])
{
	const char *colon = strchr(value, ':');

	if (!colon || colon == value)
		return complain(why, "--from-set header: is not \"Name: value\"");
	if (settings->header_count == FETCH_HEADERS_MAX)
		return complain(why, "--from-set header: more than %u", FETCH_HEADERS_MAX);
	return keep(&settings->header[settings->header_count++], value);
}

/* The value may be a secret: it is not repeated. */
static int take_set(struct fetch_settings *settings, const char *assignment,
		    char why[CONFIG_WHY_BYTES])
{
	const struct {
		const char *key;
		char **text;
	} keys[] = {{"token-file", &settings->token_file}, {"user", &settings->user},
		    {"ca", &settings->ca},		   {"cert", &settings->cert},
		    {"key", &settings->key},		   {"proxy", &settings->proxy},
		    {"tenant", &settings->tenant}};
	const char *equals = strchr(assignment, '=');
	const size_t size = equals ? (size_t)(equals - assignment) : 0;

	if (!size || !equals[1])
		return complain(why, "--from-set %.*s: is not KEY=VALUE", SHOWN_CHARS, assignment);
	if (size == strlen("header") && !strncmp(assignment, "header", size))
		return add_header(settings, equals + 1, why);
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
		return take_set(settings, value, why);
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
	const char *fault = settings->proxy ? config_url_proxy_fault(settings->proxy) : NULL;

	if (!settings->url)
		return complain(why, "the URL is missing");
	if (fault)
		return complain(why, "--from-set proxy: %s", fault);
	if (!settings->cert != !settings->key)
		return complain(why, "--from-set %s: needs --from-set %s, too",
				settings->cert ? "cert" : "key", settings->cert ? "key" : "cert");
	if (settings->user && !settings->token_file)
		return complain(why, "--from-set user: needs its password: --from-set "
				     "token-file=FILE");
	return settings->key ? config_check_secret(settings->key, geteuid(), why) : 0;
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
