/* SPDX-License-Identifier: BSD-2-Clause */
/* Where a sink sends, and as whom: from its section of the configuration and, where that is silent,
 * from the usual environment.  Texts are owned by the target. */
#ifndef COLLECTORS_TARGET_H
#define COLLECTORS_TARGET_H

#include "base/cleanup.h"
#include "collectors/queue.h"
#include "collectors/requests.h"
#include "config/config.h"
#include "config/relabel.h"
#include "config/url.h"

#define PUSH_TIMEOUT_DEFAULT_MS 30000U
#define PUSH_TIMEOUT_MIN_MS 1000U
#define PUSH_TIMEOUT_MAX_MS 300000U
#define PUSH_HEADERS_MAX 32U

struct push_target {
	char name[PUSH_SINK_NAME_CHARS];
	const struct collector *collector;
	uint32_t kind_bits; /* 1 << enum pp_profile */
	char *url;	    /* with the protocol's path; may have a token in its query */
	char shown_url[CONFIG_URL_SHOWN_BYTES]; /* what may be told of it */
	char *token_file, *token;		/* one of them, or NULL both */
	char *user; /* with the token as its password; NULL: a bearer token */
	char *ca, *cert, *key, *proxy, *tenant; /* NULL: none */
	char *header[PUSH_HEADERS_MAX];		/* "Name: value" */
	size_t header_count;
	char *label[PUSH_LABELS_MAX];
	size_t label_count;
	struct relabel_rules *rules; /* NULL: none */
	bool is_packed;		     /* bodies are gzip'd */
	uint32_t timeout_ms;	     /* of one request */
};

/* Makes a target.  collector: its own.  Returns 0; -EINVAL with one line in `why`; -ENOMEM. */
int push_target_new(const struct config_push *push, const struct collector *collector,
		    push_environment *environment, char why[CONFIG_WHY_BYTES],
		    struct push_target **ret_target);
void push_target_free(struct push_target *target);
DEFINE_OWNED(struct push_target, push_target)

/* For the collectors, which complete a target from the environment (collector.h).
 * Writes "[push NAME] what"; returns -EINVAL. */
int push_target_complain(const struct push_target *target, char *why, const char *what);
/* Adds a header of `size` bytes.  Returns 0; -EINVAL: there are too many; -ENOMEM. */
int push_target_add_header(struct push_target *target, const char *item, size_t size, char *why);
/* Sets the URL: `base` with the protocol's path behind it, unless it is whole.  Returns 0,
 * -ENOMEM. */
int push_target_set_url(struct push_target *target, const char *base, bool is_whole);

#endif
