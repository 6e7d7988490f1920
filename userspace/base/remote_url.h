/* SPDX-License-Identifier: BSD-2-Clause */
/* URLs that profiles are read from, pyprof's --from (docs/design/serve.md):
 *   http://HOST[:PORT]           a node: its pyprofd-serve
 *   pyprofd+http://HOST/PREFIX   the same, where a proxy has it below a path
 *   pyroscope+http://HOST/PREFIX?service_name=X&LABEL=VALUE
 *   parca+http://HOST/PREFIX?node=X&LABEL=VALUE
 *   http://HOST/PATH             whatever answers there with one profile
 * and https likewise. */
#ifndef BASE_REMOTE_URL_H
#define BASE_REMOTE_URL_H

#include <stdbool.h>

enum remote_protocol { REMOTE_NODE, REMOTE_PYROSCOPE, REMOTE_PARCA, REMOTE_PROFILE };

/* Returns whether a text is such a URL, as far as its scheme tells.  Fills in the protocol and
 * where "http" begins. */
bool remote_url_parse(const char *text, enum remote_protocol *ret_protocol, const char **ret_plain);

#endif
