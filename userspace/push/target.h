/* SPDX-License-Identifier: BSD-2-Clause */
/* Where a sink sends, and as whom: from its section of the configuration and, where that is silent,
 * from the usual environment.  Texts are owned by the target. */
#ifndef PUSH_TARGET_H
#define PUSH_TARGET_H

#include "base/cleanup.h"
#include "config/config.h"
#include "config/relabel.h"
#include "config/url.h"
#include "push/cursor.h"
#include "push/requests.h"

#define PUSH_TIMEOUT_DEFAULT_MS 30000U
#define PUSH_TIMEOUT_MIN_MS 1000U
#define PUSH_TIMEOUT_MAX_MS 300000U
#define PUSH_HEADERS_MAX 32U

struct push_target {
	char name[PUSH_SINK_NAME_CHARS];
	enum push_protocol protocol;
	uint32_t kind_bits; /* 1 << enum pp_profile */
	char *url;	    /* with the protocol's path; may have a token in its query */
	char shown_url[CONFIG_URL_SHOWN_BYTES]; /* what may be told of it */
	char *token_file, *token; /* one of them, or NULL both */
	char *user; /* with the token as its password; NULL: a bearer token */
	char *ca, *cert, *key, *proxy, *tenant; /* NULL: none */
	char *header[PUSH_HEADERS_MAX];		/* "Name: value" */
	size_t header_count;
	char *label[PUSH_LABELS_MAX];
	size_t label_count;
	struct relabel_rules *rules; /* NULL: none */
	bool packs_otlp;
	uint32_t timeout_ms; /* of one request */
};

/* Looks into an environment, as getenv(). */
typedef const char *push_environment(const char *name);

/* Makes a target.  Returns 0; -EINVAL with one line in `why`; -ENOMEM. */
int push_target_new(const struct config_push *push, push_environment *environment,
		    char why[CONFIG_WHY_BYTES], struct push_target **ret_target);
void push_target_free(struct push_target *target);
DEFINE_OWNED(struct push_target, push_target)

#endif
