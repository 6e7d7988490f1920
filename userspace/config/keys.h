/* SPDX-License-Identifier: BSD-2-Clause */
/* All sections and keys of the configuration file, once.  Parsing, hints at the nearest name,
 * --doctor and the check of the man page (tests/lint/check_man.sh) take them from here. */
#ifndef CONFIG_KEYS_H
#define CONFIG_KEYS_H

#include <stdbool.h>
#include <stddef.h>

/* X(id, name, whether a section has a name of its own: [push NAME]) */
#define CONFIG_SECTIONS(X)                                                                         \
	X(CAPTURE, "capture", 0)                                                                   \
	X(STORE, "store", 0)                                                                       \
	X(HTTP, "http", 0)                                                                         \
	X(PUSH, "push", 1)

/* How several lines of one key make one value. */
enum config_lines {
	CONFIG_LINES_ONE,  /* only one is allowed */
	CONFIG_LINES_LIST, /* they are joined by a comma */
	CONFIG_LINES_EACH, /* each is an item of its own; they are joined by a line feed */
};

/* How much of a value --doctor shows. */
enum config_shown {
	CONFIG_SHOWN,
	CONFIG_SHOWN_NAME, /* "Name: value" of a header: the name alone */
	CONFIG_SHOWN_URL,  /* what config_url_hide() leaves */
};

/* Keys of [capture] and [store]: X(id, name, name in options/table.c, whether it is yes or no,
 * default for --doctor or "" when it depends on other options, lines).  options/settings.c reads
 * the value, also that of a command line's option of the same name. */
#define CONFIG_CAPTURE_KEYS(X)                                                                     \
	X(HZ, "hz", "hz", 0, "99", ONE)                                                            \
	X(CLOCK, "clock", "clock", 0, "cpu", ONE)                                                  \
	X(EVENTS, "events", "events", 0, "", LIST)                                                 \
	X(OFFCPU_MIN, "offcpu-min", "offcpu-min", 0, "", ONE)                                      \
	X(FRAMES, "frames", "frames", 0, "python,native,kernel", LIST)                             \
	X(PROBES, "probes", "probes", 0, "yes", ONE)                                               \
	X(MAX_SLOWDOWN, "max-slowdown", "max-slowdown", 0, "", ONE)                                \
	X(LEAKS, "leaks", "leaks", 1, "no", ONE)                                                   \
	X(PID, "pid", "pid", 0, "", LIST)                                                          \
	X(COMM, "comm", "comm", 0, "", ONE)                                                        \
	X(CGROUP, "cgroup", "cgroup", 0, "", ONE)                                                  \
	X(UID, "uid", "uid", 0, "", LIST)                                                          \
	X(AS_ROOT, "as-root", "as-root", 1, "no", ONE)                                             \
	X(DURATION, "duration", "duration", 0, "", ONE)                                            \
	X(DELAY, "delay", "delay", 0, "0", ONE)                                                    \
	X(INTERVAL, "interval", "interval", 0, "10s", ONE)                                         \
	X(TIMELINE, "timeline", "timeline", 0, "", ONE)                                            \
	X(TIMELINE_MAX, "timeline-max", "timeline-max", 0, "", ONE)                                \
	X(LIVE, "live", "live", 0, "", ONE)                                                        \
	X(LIVE_USER, "live-user", "live-user", 0, "", ONE)                                         \
	X(SERVE, "serve", "serve", 0, "yes", ONE)                                                  \
	X(MAX_CPU, "max-cpu", "max-cpu", 0, "", ONE)                                               \
	X(MAX_MEMORY, "max-memory", "max-memory", 0, "0", ONE)                                     \
	X(VERBOSE, "verbose", "verbose", 1, "no", ONE)                                             \
	X(QUIET, "quiet", "quiet", 1, "no", ONE)
#define CONFIG_STORE_KEYS(X)                                                                       \
	X(PATH, "path", "output", 0, "/var/lib/pyprofd", ONE)                                      \
	X(MAX, "max", "store-max", 0, "200M", ONE)                                                 \
	X(AGE, "age", "store-age", 0, "", ONE)

/* Keys of [http] and [push NAME]: X(id, name, field of struct config_http or config_push, default
 * or "", lines, shown). */
#define CONFIG_HTTP_KEYS(X)                                                                        \
	X(LISTEN, "listen", listen, "127.0.0.1:4041", ONE, SHOWN)                                  \
	X(HOST, "host", host, "", LIST, SHOWN)                                                     \
	X(TOKEN_FILE, "token-file", token_file, "", ONE, SHOWN)                                    \
	X(CERT, "cert", cert, "", ONE, SHOWN)                                                      \
	X(KEY, "key", key, "", ONE, SHOWN)                                                         \
	X(CLIENT_CA, "client-ca", client_ca, "", ONE, SHOWN)
#define CONFIG_PUSH_KEYS(X)                                                                        \
	X(TYPE, "type", type, "", ONE, SHOWN)                                                      \
	X(URL, "url", url, "", ONE, SHOWN_URL)                                                     \
	X(TOKEN_FILE, "token-file", token_file, "", ONE, SHOWN)                                    \
	X(USER, "user", user, "", ONE, SHOWN)                                                      \
	X(CA, "ca", ca, "", ONE, SHOWN)                                                            \
	X(CERT, "cert", cert, "", ONE, SHOWN)                                                      \
	X(KEY, "key", key, "", ONE, SHOWN)                                                         \
	X(PROXY, "proxy", proxy, "", ONE, SHOWN_URL)                                               \
	X(HEADER, "header", header, "", EACH, SHOWN_NAME)                                          \
	X(TENANT, "tenant", tenant, "", ONE, SHOWN)                                                \
	X(KINDS, "kinds", kinds, "cpu,offcpu", LIST, SHOWN)                                        \
	X(LABELS, "labels", labels, "", LIST, SHOWN)                                               \
	X(RELABEL, "relabel", relabel, "", EACH, SHOWN)

/* The numbers of a section's keys: CONFIG_PUSH_URL. */
#define CONFIG_ENUM_SECTION(id, ...) CONFIG_##id,
enum config_kind { CONFIG_SECTIONS(CONFIG_ENUM_SECTION) CONFIG_KIND_COUNT };
#define CONFIG_ENUM_CAPTURE(id, ...) CONFIG_CAPTURE_##id,
enum config_capture_key { CONFIG_CAPTURE_KEYS(CONFIG_ENUM_CAPTURE) CONFIG_CAPTURE_KEY_COUNT };
#define CONFIG_ENUM_STORE(id, ...) CONFIG_STORE_##id,
enum config_store_key { CONFIG_STORE_KEYS(CONFIG_ENUM_STORE) CONFIG_STORE_KEY_COUNT };
#define CONFIG_ENUM_HTTP(id, ...) CONFIG_HTTP_##id,
enum config_http_key { CONFIG_HTTP_KEYS(CONFIG_ENUM_HTTP) CONFIG_HTTP_KEY_COUNT };
#define CONFIG_ENUM_PUSH(id, ...) CONFIG_PUSH_##id,
enum config_push_key { CONFIG_PUSH_KEYS(CONFIG_ENUM_PUSH) CONFIG_PUSH_KEY_COUNT };
#define CONFIG_KEYS_MAX 32U /* of one section */

struct config_key {
	const char *name;
	const char *option;   /* name in options/table.c; NULL: pyprofd-serve's alone */
	bool takes_no_value;  /* the option: "yes" gives it, "no" does not */
	const char *fallback; /* the default; "": none, or one that other options decide */
	enum config_lines lines;
	enum config_shown shown;
};

/* Returns a section's keys. */
const struct config_key *config_keys(enum config_kind kind, size_t *ret_count);
/* Returns "capture". */
const char *config_kind_name(enum config_kind kind);
/* Finds the key of [capture] or [store] that stands for an option.  Returns false: none does. */
bool config_key_of_option(const char *option, enum config_kind *ret_kind, size_t *ret_key);

#endif
