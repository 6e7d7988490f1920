/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/json_writer.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>

static void separate(struct json_writer *json)
{
	if (json->needs_comma)
		putc(',', json->out);
	json->needs_comma = true;
}

void json_open(struct json_writer *json, char bracket)
{
	separate(json);
	putc(bracket, json->out);
	json->needs_comma = false;
}

void json_close(struct json_writer *json, char bracket)
{
	putc(bracket, json->out);
	json->needs_comma = true;
}

static void put_quoted(FILE *out, const char *text)
{
	putc('"', out);
	for (; *text; text++) {
		unsigned char byte = (unsigned char)*text;

		if (byte == '"' || byte == '\\')
			fprintf(out, "\\%c", byte);
		else if (byte < ' ' || byte == '<' || byte == 0x7f)
			fprintf(out, "\\u%04x", byte);
		else
			putc(byte, out);
	}
	putc('"', out);
}

void json_key(struct json_writer *json, const char *key)
{
	separate(json);
	put_quoted(json->out, key);
	putc(':', json->out);
	json->needs_comma = false;
}

void json_string(struct json_writer *json, const char *text)
{
	separate(json);
	put_quoted(json->out, text);
}

void json_int(struct json_writer *json, int64_t number)
{
	separate(json);
	fprintf(json->out, "%" PRId64, number);
}

void json_double(struct json_writer *json, double number)
{
	separate(json);
	if (isfinite(number))
		fprintf(json->out, "%.9g", number);
	else
		fputs("null", json->out);
}

void json_bool(struct json_writer *json, bool is_true)
{
	separate(json);
	fputs(is_true ? "true" : "false", json->out);
}

void json_newline(struct json_writer *json)
{
	if (json->needs_comma)
		putc(',', json->out);
	json->needs_comma = false;
	putc('\n', json->out);
}

void json_put_string(struct json_writer *json, const char *key, const char *text)
{
	json_key(json, key);
	json_string(json, text);
}

void json_put_int(struct json_writer *json, const char *key, int64_t number)
{
	json_key(json, key);
	json_int(json, number);
}

void json_put_double(struct json_writer *json, const char *key, double number)
{
	json_key(json, key);
	json_double(json, number);
}

void json_put_open(struct json_writer *json, const char *key, char bracket)
{
	json_key(json, key);
	json_open(json, bracket);
}

int json_finish(struct json_writer *json)
{
	return ferror(json->out) ? -EIO : 0;
}
