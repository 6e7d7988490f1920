/* SPDX-License-Identifier: BSD-2-Clause */
/* The collectors that profiles are sent to and read from.  A row here and a file in collectors/
 * make one: the configuration's type=, the URLs of pyprof's --from and the table of
 * collectors/collector.h come from these rows. */
#ifndef BASE_COLLECTORS_H
#define BASE_COLLECTORS_H

#include <stdbool.h>

/* X(id, name, path of pushes behind the configured address or NULL: nothing is sent there, whether
 * the environment may have the address) */
#define COLLECTORS(X)                                                                              \
	X(OTLP, otlp, "/v1development/profiles", true)                                             \
	X(PYROSCOPE, pyroscope, "/push.v1.PusherService/Push", false)                              \
	X(PARCA, parca, "/api/profiles/writeraw", false)                                           \
	X(NODE, pyprofd, NULL, false) /* another node's pyprofd-serve */                           \
	X(URL, url, NULL, false)      /* whatever answers with one profile */

#define COLLECTOR_ID(id, ...) COLLECTOR_##id,
enum collector_id { COLLECTORS(COLLECTOR_ID) COLLECTOR_COUNT };

/* Return a collector's row. */
const char *collector_name(enum collector_id id);
const char *collector_push_path(enum collector_id id);
bool collector_has_environment(enum collector_id id);

/* Finds one that profiles can be pushed to by its name. */
bool collector_find_push(const char *name, enum collector_id *ret_id);

/* Returns whether a text is a URL that profiles are read from, pyprof's --from, as far as its
 * scheme tells; fills in the collector and where "http" begins (docs/design/serve.md):
 *   http://HOST[:PORT]           a node: its pyprofd-serve
 *   pyprofd+http://HOST/PREFIX   the same, where a proxy has it below a path
 *   pyroscope+http://HOST/PREFIX?service_name=X&LABEL=VALUE, and other collectors' names likewise
 *   http://HOST/PATH             whatever answers there with one profile
 * and https likewise. */
bool remote_url_parse(const char *text, enum collector_id *ret_id, const char **ret_plain);

#endif
