/* SPDX-License-Identifier: BSD-2-Clause */
/* Whether a text is JSON, for fuzz targets.  Source: RFC 8259. */
#ifndef TEST_FUZZ_JSON_CHECK_H
#define TEST_FUZZ_JSON_CHECK_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#define JSON_MAX_DEPTH 64U

struct json_check {
	const char *at, *end;
};

static inline char json_peek(struct json_check *json)
{
	while (json->at < json->end && strchr(" \t\r\n", *json->at) && *json->at)
		json->at++;
	return json->at < json->end ? *json->at : '\0';
}

static inline bool json_take(struct json_check *json, char wanted)
{
	if (json_peek(json) != wanted)
		return false;
	json->at++;
	return true;
}

static inline bool json_take_string(struct json_check *json)
{
	if (!json_take(json, '"'))
		return false;
	for (; json->at < json->end && *json->at != '"'; json->at++) {
		if ((unsigned char)*json->at < 0x20)
			return false;
		if (*json->at != '\\')
			continue;
		if (++json->at == json->end || !*json->at || !strchr("\"\\/bfnrtu", *json->at))
			return false;
		if (*json->at == 'u' && (json->end - json->at < 5 ||
					 strspn(json->at + 1, "0123456789abcdefABCDEF") < 4))
			return false;
	}
	return json->at++ < json->end;
}

static inline bool json_take_word(struct json_check *json)
{
	static const char *const words[] = {"true", "false", "null"};
	const size_t number = strspn(json->at, "-+.0123456789eE");

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (!strncmp(json->at, words[i], strlen(words[i]))) {
			json->at += strlen(words[i]);
			return true;
		}
	json->at += number;
	return number && number < 32;
}

static inline bool json_take_value(struct json_check *json, unsigned int depth)
{
	const char open = json_peek(json), close = open == '{' ? '}' : ']';

	if (open == '"')
		return json_take_string(json);
	if (open != '{' && open != '[')
		return open && json_take_word(json);
	json->at++;
	if (depth == JSON_MAX_DEPTH)
		return false;
	if (json_take(json, close))
		return true;
	do {
		if (open == '{' && !(json_take_string(json) && json_take(json, ':')))
			return false;
		if (!json_take_value(json, depth + 1))
			return false;
	} while (json_take(json, ','));
	return json_take(json, close);
}

/* The text is NUL-terminated. */
static inline bool is_json(const char *text, size_t size)
{
	struct json_check json = {.at = text, .end = text + size};

	return json_take_value(&json, 0) && !json_peek(&json) && json.at == json.end;
}

#endif
