/* SPDX-License-Identifier: BSD-2-Clause */
/* Writes JSON as a stream, because a profile's JSON is too large to be in memory twice. The writer
 * puts commas and quotes; the caller closes each bracket that it opens. */
#ifndef BASE_JSON_WRITER_H
#define BASE_JSON_WRITER_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct json_writer {
	FILE *out;
	bool needs_comma;
};

static inline struct json_writer json_writer_to(FILE *out)
{
	return (struct json_writer){.out = out};
}

void json_open(struct json_writer *json, char bracket);	 /* '{' or '[' */
void json_close(struct json_writer *json, char bracket); /* '}' or ']' */
void json_key(struct json_writer *json, const char *key);
/* Writes a UTF-8 string. '<' is escaped, so that the text can stand in a script element. */
void json_string(struct json_writer *json, const char *text);
void json_int(struct json_writer *json, int64_t number);
/* Writes a number; NaN and infinity become null. */
void json_double(struct json_writer *json, double number);
void json_bool(struct json_writer *json, bool is_true);
void json_newline(struct json_writer *json); /* a line break, where a comma may stand */

/* These write "key": value. */
void json_put_string(struct json_writer *json, const char *key, const char *text);
void json_put_int(struct json_writer *json, const char *key, int64_t number);
void json_put_double(struct json_writer *json, const char *key, double number);
/* Opens the value of a key. */
void json_put_open(struct json_writer *json, const char *key, char bracket);

/* Returns 0, or -EIO when something could not be written. */
int json_finish(struct json_writer *json);

#endif
