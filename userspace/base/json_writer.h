/* SPDX-License-Identifier: BSD-2-Clause */
/* JSON as a stream: a profile's is larger than what should be in memory twice.  Commas and quotes
 * are put here; what is open has to be closed by the caller. */
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
/* UTF-8; '<' is escaped, so that the text can stand in a script element. */
void json_string(struct json_writer *json, const char *text);
void json_int(struct json_writer *json, int64_t number);
/* Not a number and infinite become null. */
void json_double(struct json_writer *json, double number);
void json_newline(struct json_writer *json); /* where a comma may stand */

/* "key": value */
void json_put_string(struct json_writer *json, const char *key, const char *text);
void json_put_int(struct json_writer *json, const char *key, int64_t number);
void json_put_double(struct json_writer *json, const char *key, double number);

/* 0 or -EIO. */
int json_finish(struct json_writer *json);

#endif
