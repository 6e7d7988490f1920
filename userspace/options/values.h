/* SPDX-License-Identifier: BSD-2-Clause */
/* The words of a command line as numbers, times, sizes and users.  The locale has no say. */
#ifndef OPTIONS_VALUES_H
#define OPTIONS_VALUES_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define OPTIONS_TIME_MAX_NS 31622400000000000ULL /* 366 days */
#define OPTIONS_SIZE_MAX_BYTES (1ULL << 50)

enum options_timeline {
	OPTIONS_TIMELINE_PERFETTO, /* .pftrace, .perfetto-trace, .pb */
	OPTIONS_TIMELINE_CHROME,   /* .json */
	OPTIONS_TIMELINE_CHROME_GZ, /* .json.gz */
};

/* "5", "0.5", "500ms", "10s", "2m", "1h" -> ns, rounded to the nearest.  0; -EINVAL: not a time;
 * -ERANGE: above OPTIONS_TIME_MAX_NS. */
int options_parse_duration(const char *text, uint64_t *ret_ns);
/* "4096", "64K", "200M", "200MB", "1.5GiB": powers of 1024.  0; -EINVAL: not a size; -ERANGE: above
 * OPTIONS_SIZE_MAX_BYTES. */
int options_parse_size(const char *text, uint64_t *ret_bytes);

/* "1", "0.5", "20%" -> parts per million of a whole, rounded to the nearest.  0; -EINVAL: no percentage;
 * -ERANGE: above 100. */
int option_percent(const char *text, uint32_t *ret_ppm);

/* A decimal number without sign or blanks.  0, -EINVAL, -ERANGE. */
int option_number(const char *text, size_t size, uint64_t *ret_number);
/* A user's number, by number or name.  0; -ENOENT: no such user. */
int option_uid(const char *item, size_t size, uid_t *ret_uid);
/* The format that the ending of a file's name means.  0; -EINVAL. */
int option_timeline(const char *path, enum options_timeline *ret_kind);
/* The next item of a list with commas: its size, and where it starts.  *text moves behind it. */
size_t option_list_item(const char **text, const char **ret_item);

#endif
