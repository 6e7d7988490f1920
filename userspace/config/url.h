/* SPDX-License-Identifier: BSD-2-Clause */
/* URLs of collectors and proxies: which are taken, and what of them may be told.  They may come
 * with a password or a token, which has to stay out of logs and terminals. */
#ifndef CONFIG_URL_H
#define CONFIG_URL_H

#include <stdbool.h>
#include <stddef.h>

#define CONFIG_HIDDEN "***"	    /* stands for what is not told */
#define CONFIG_URL_SHOWN_BYTES 512U /* longer ones are cut */

/* Writes scheme, host, port and path; "***" stands for a user with a password, and for a query.
 * Where it cannot be told which of them an '@' ends, the scheme alone is left. */
void config_url_hide(const char *url, char ret_text[CONFIG_URL_SHOWN_BYTES]);
/* Returns whether config_url_hide() leaves something out. */
bool config_url_has_secret(const char *url);
/* Returns what is wrong with a collector's URL, "is ..." or "has ...", which does not repeat it;
 * NULL: nothing, so it is http:// or https:// with a host and without a user. */
const char *config_url_fault(const char *url);
/* Returns what is wrong with a proxy's URL, likewise; it may have a user and a password. */
const char *config_url_proxy_fault(const char *url);
/* Decodes %XX, and where `has_plus` a '+' as a blank, of `size` bytes into `to`, which has room for
 * one more and may be the text itself.  Returns false: there are control codes. */
bool config_url_decode(const char *text, size_t size, bool has_plus, char *to);
/* Returns the path of a protocol that a collector's URL ends in, which pushing appends itself;
 * NULL: none. */
const char *config_url_own_path(const char *url);

#endif
