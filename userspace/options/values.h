/* SPDX-License-Identifier: BSD-2-Clause */
/* Parses words of the command line: numbers, times, sizes, users, probes and lines, independent of
 * the locale. */
#ifndef OPTIONS_VALUES_H
#define OPTIONS_VALUES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <pyprofd/calls.h>

#define LINE_SPEC_WHY_BYTES 160U

/* Of FUNC the last part counts, as the interpreter names a function: "step" of "Model.step".
 * Returns 0; -EINVAL: `why` goes on from "--lines 'TEXT' ". */
int line_spec_parse(const char *text, struct pp_line_target *ret_target,
		    char why[LINE_SPEC_WHY_BYTES]);

#define OPTIONS_TIME_MAX_NS 31622400000000000ULL /* 366 days */
#define OPTIONS_SIZE_MAX_BYTES (1ULL << 50)

enum options_timeline {
	OPTIONS_TIMELINE_PERFETTO,  /* .pftrace, .perfetto-trace, .pb */
	OPTIONS_TIMELINE_CHROME,    /* .json */
	OPTIONS_TIMELINE_CHROME_GZ, /* .json.gz */
};

/* Parses "5", "0.5", "500ms", "10s", "2m", "1h", "7d" into ns, rounded to the nearest.  Returns 0;
 * -EINVAL: not a time; -ERANGE: above OPTIONS_TIME_MAX_NS. */
int options_parse_duration(const char *text, uint64_t *ret_ns);
/* Parses "4096", "64K", "200M", "200MB", "1.5GiB", in powers of 1024.  Returns 0; -EINVAL: not a
 * size; -ERANGE: above OPTIONS_SIZE_MAX_BYTES. */
int options_parse_size(const char *text, uint64_t *ret_bytes);

/* Parses "1", "0.5", "20%" into parts per million, rounded to the nearest.  Returns 0; -EINVAL: not
 * a percentage; -ERANGE: above OPTIONS_PERCENT_MAX. */
#define OPTIONS_PERCENT_MAX 4000U /* 40 cores; 32 bits hold its ppm */
int option_percent(const char *text, uint32_t *ret_ppm);

/* Parses how much longer something may take into parts per million: "10%" or "10" into 100,000,
 * "5x" into 4,000,000.  Returns 0; -EINVAL: neither, or less than 0.1 %; -ERANGE. */
int option_slowdown(const char *text, uint32_t *ret_ppm);

/* Parses a user: a number or a name.  Returns 0; -ENOENT: no such user. */
int option_uid(const char *item, size_t size, uid_t *ret_uid);
/* Finds the format of a timeline by the file name's ending.  Returns 0; -EINVAL. */
int option_timeline(const char *path, enum options_timeline *ret_kind);
/* Returns the size of the next item of a comma-separated list, and its start; *text moves past
 * it. */
size_t option_list_item(const char **text, const char **ret_item);

#define PROBE_SPEC_NAME_BYTES 128U /* of a provider, name, symbol or group, with its NUL */
#define PROBE_SPEC_WHY_BYTES 256U

enum probe_spec_kind { PROBE_SPEC_USDT, PROBE_SPEC_UPROBE, PROBE_SPEC_TRACEPOINT };

struct probe_spec {
	enum probe_spec_kind kind;
	char *text;   /* owned; as it was given */
	char *binary; /* owned; a path, or the last part of one; NULL: a tracepoint */
	char group[PROBE_SPEC_NAME_BYTES]; /* provider, or the group of a tracepoint; "" */
	char name[PROBE_SPEC_NAME_BYTES];  /* of the probe, symbol or tracepoint */
	bool is_return;			   /* +ret: from the call to the return */
};

/* Parses what --probe names: usdt:BINARY:PROVIDER:NAME, uprobe:BINARY:SYMBOL[+ret] or
 * tracepoint:GROUP:NAME.  Returns 0; -EINVAL with what is wrong and the fix in `why`; -ENOMEM. */
int probe_spec_parse(const char *text, struct probe_spec *ret_spec, char why[PROBE_SPEC_WHY_BYTES]);
void probe_spec_release(struct probe_spec *spec);

#endif
