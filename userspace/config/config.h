/* SPDX-License-Identifier: BSD-2-Clause */
/* The configuration of pyprofd and pyprofd-serve: one file in the manner of INI, --set, and what
 * the command line gives besides.  Both programs read the same file and check all names; each
 * takes its own sections.  No global state; one thread an object.
 *
 * A value is kept as it was written, with the place that it comes from, so that whoever reads it
 * later can say where it stands.  Lines are those of libinih: "key = value", comments from ';' or
 * '#' at the start of a line and from " ;" on behind a value; an indented line goes on with the key
 * above it. */
#ifndef CONFIG_CONFIG_H
#define CONFIG_CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/cleanup.h"
#include "base/collectors.h"

/* ---- all sections and keys, once ----
 *
 * Parsing, hints at the nearest name, --doctor and the check of the man page
 * (tests/lint/check_man.sh) take them from here. */

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

/* Keys of [capture] and [store]: X(id, name, name in options/settings.c, whether it is yes or no,
 * default for --doctor or "" when it depends on other options, lines). */
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
	const char *option;   /* name in options/settings.c; NULL: pyprofd-serve's alone */
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

/* ---- values ---- */

#define CONFIG_FILE_MAX_BYTES (64U << 10)
#define CONFIG_SECTIONS_MAX 40U
#define CONFIG_NAME_MAX_BYTES 32U    /* of a [push NAME] */
#define CONFIG_VALUE_MAX_BYTES 4096U /* of all lines of one key together */
#define CONFIG_HOST_BYTES 256U
#define CONFIG_WHY_BYTES 512U

/* Who gave a value; each goes before those in front of it. */
enum config_source { CONFIG_FROM_DEFAULT, CONFIG_FROM_FILE, CONFIG_FROM_SET, CONFIG_FROM_OPTION };

struct config;
struct config_value {
	const char *text; /* NULL: not given, and no default; never "" */
	const struct config_key *key;
	const char *section; /* "http", "push.NAME" */
	enum config_source source;
	const char *file;  /* with CONFIG_FROM_FILE, as its line */
	unsigned int line; /* the last one of several */
};

/* Makes a configuration without any value.  Returns 0 or -ENOMEM. */
int config_new(struct config **ret_config);
void config_free(struct config *config);
DEFINE_OWNED(struct config, config)

/* Reads the file, once an object.  Returns 0, or with one line in `why` that names the file, the
 * line and for a wrong name the nearest right one:
 * -EINVAL  a section, a key or a line is wrong; a key stands twice
 * -EFBIG   the file, a line or a value is too long, or there are too many sections
 * -EPERM   others than its owner may write to it, it is somebody else's (secret.h), or it has
 *          secrets and everybody may read it
 * -errno   it cannot be opened or read
 * -ENOMEM  without a line */
int config_read(struct config *config, const char *path, char why[CONFIG_WHY_BYTES]);
/* Reads text as if it stood in the file `path`; config_read() without the file's own checks. */
int config_read_text(struct config *config, const char *path, const char *text, size_t size,
		     char why[CONFIG_WHY_BYTES]);
/* Takes "SECTION.KEY=VALUE" or "push.NAME.KEY=VALUE".  Returns as config_read(); the line names
 * --set. */
int config_set(struct config *config, const char *assignment, char why[CONFIG_WHY_BYTES]);
/* Notes what the command line gives for a key (given->source is CONFIG_FROM_OPTION; several values
 * of a list are joined), or a default that other options have decided (CONFIG_FROM_DEFAULT).  What
 * pyprofd's options take is noted to be shown: it may have any bytes, and any length.  Returns as
 * config_set(). */
int config_note(struct config *config, enum config_kind kind, size_t key,
		const struct config_value *given, char why[CONFIG_WHY_BYTES]);

/* Returns the path of the file that was read, as it was given; NULL: none was. */
const char *config_path(const struct config *config);

/* Returns the value that counts for a key of a section without a name of its own. */
struct config_value config_get(const struct config *config, enum config_kind kind, size_t key);
/* Calls `take` for each given value of [capture] and [store], from the file first and then from
 * --set, until one returns other than 0.  Returns that. */
int config_each(const struct config *config,
		int (*take)(void *context, const struct config_value *value), void *context);

/* Where pyprofd-serve listens. */
struct config_address {
	bool is_unix;
	bool is_loopback;	      /* also of a unix socket: nobody from outside */
	char host[CONFIG_HOST_BYTES]; /* a numeric address without brackets, or a socket's path */
	uint16_t port;
};

/* Strings are the configuration's; a field's text is NULL when it was not given. */
#define CONFIG_FIELD(id, name, field, ...) struct config_value field;
#define CONFIG_HOSTS_MAX 16U
struct config_http {
	struct config_address address; /* `listen`, parsed */
	CONFIG_HTTP_KEYS(CONFIG_FIELD)
};

struct config_push {
	const char *section;	     /* NAME of [push NAME] */
	unsigned int line;	     /* where the section begins; 0: by --set */
	enum collector_id collector; /* `type`, parsed */
	uint32_t kind_bits;	     /* `kinds`, parsed: 1 << enum pp_profile */
	CONFIG_PUSH_KEYS(CONFIG_FIELD)
};

/* Takes [http], checked as far as possible without opening anything: the address; that one outside
 * of loopback asks for a token or a client's certificate; that cert and key come together; that
 * `host` is CONFIG_HOSTS_MAX names at most.  Returns 0; -ENOENT: there is no [http]; -EINVAL with
 * one line in `why`. */
int config_http(const struct config *config, struct config_http *ret_http,
		char why[CONFIG_WHY_BYTES]);
/* Takes the [push NAME] with this index, in the order of the file, checked likewise: type and url
 * are there (OTLP may do without url: OTEL_EXPORTER_OTLP_ENDPOINT), url is http:// or https://
 * without a user, kinds are known, headers are "Name: value".
 * `url`, `proxy` and all others are free of blanks and control codes.  Returns 0; -ENOENT: there
 * are no more; -EINVAL with one line in `why`. */
int config_push(const struct config *config, size_t index, struct config_push *ret_push,
		char why[CONFIG_WHY_BYTES]);

/* Returns whether pyprofd-serve would find the same in both: [http] and each [push NAME]. */
bool config_serves_alike(const struct config *a, const struct config *b);
/* Returns whether there is an [http] or a [push NAME]. */
bool config_serves(const struct config *config);
/* Writes all values of [http] and each [push NAME], for pyprofd-serve as a child: secrets included,
 * one "SECTION.KEY=VALUE" a line.  Returns 0 or -EIO. */
int config_hand_over(const struct config *config, FILE *file);
/* Takes what config_hand_over() has written, as if each line were --set's.  Returns 0; -EINVAL,
 * -EFBIG with one line in `why`; -ENOMEM. */
int config_take_over(struct config *config, FILE *file, char why[CONFIG_WHY_BYTES]);

/* Writes where a value stands: "FILE:LINE: KEY", "--set SECTION.KEY" or "--OPTION". */
void config_place(const struct config_value *value, char ret_place[CONFIG_WHY_BYTES]);
/* Writes one line into `why`, and returns err. */
__attribute__((format(printf, 3, 4))) int config_refuse(char why[CONFIG_WHY_BYTES], int err,
							const char *format, ...);
/* Writes one line about a value into `why`: "FILE:LINE: KEY 'VALUE' TEXT", or "--set SECTION.KEY
 * 'VALUE' TEXT".  A value that may be a secret is left out.  Always returns -EINVAL. */
__attribute__((format(printf, 3, 4))) int config_complain(const struct config_value *value,
							  char why[CONFIG_WHY_BYTES],
							  const char *format, ...);

/* Takes the next item of a list; *text, at first the value's, moves past it.  between: ',', or '\n'
 * for CONFIG_LINES_EACH.  Blanks around an item are not part of it.  Returns false at the end. */
bool config_next_item(const char **text, char between, const char **ret_item, size_t *ret_size);

/* Prints all sections as a file that says the same, with a comment that tells where each value
 * comes from, and secrets hidden.  Returns 0 or -EIO. */
int config_print(const struct config *config, FILE *file);

#endif
