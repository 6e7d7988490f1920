/* SPDX-License-Identifier: BSD-2-Clause */
/* A client's request to the running agent: one line.  docs/design/live.md. */
#ifndef LIVE_REQUEST_H
#define LIVE_REQUEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/kinds.h"

#define LIVE_SOCKET_DEFAULT "/run/pyprofd/live.sock"
#define LIVE_ROOT_SUFFIX ".root" /* after a socket's path: the one for root alone */
#define LIVE_PATH_BYTES 108U	 /* of a socket, its NUL included: unix(7) */
#define LIVE_VERSION 1U
#define LIVE_REQUEST_BYTES 4096U /* with its newline */
#define LIVE_PIDS_MAX 256U

enum live_verb {
	LIVE_DUMP, /* the stacks at this moment */
	LIVE_TOP,  /* what is counted from now on, window by window, until the client disconnects */
	LIVE_STATS, /* the agent's metrics, for who may see everything */
};

struct live_request {
	enum live_verb verb;
	uint32_t pid[LIVE_PIDS_MAX]; /* as the agent sees them; ascending, each once */
	size_t pid_count;	     /* 0: all processes */
	bool no_native;		     /* of stacks with Python frames: those and the kernel's only */
	bool no_kernel;
	/* Who sees everything may ask for what another user sees. */
	bool has_uid;
	uint32_t uid;
	/* For LIVE_TOP, a subset of KINDS_SERVED: windows of those of these kinds that are
	 * recorded, with all labels.  0: windows of kind wall with the few labels that pyprof top
	 * needs. */
	uint32_t kinds;
};

/* Parses a line without its newline; the bytes need not end in NUL.
 * Returns 0; -EPROTO: another version, or not a request of ours at all; -EINVAL: the request is not
 * understood; -E2BIG: longer than LIVE_REQUEST_BYTES, or more than LIVE_PIDS_MAX processes. */
int live_request_parse(const char *line, size_t size, struct live_request *ret_request);
/* Formats a request, with its newline.  Returns 0; -ENOMEM. */
int live_request_format(const struct live_request *request, char ret_text[LIVE_REQUEST_BYTES],
			size_t *ret_size);
/* Finds a kind by its name, "cpu".  Returns false when there is none that can be requested. */
bool live_kind_find(const char *name, size_t size, enum pp_profile *ret_kind);
bool live_request_wants(const struct live_request *request, uint32_t pid);

#endif
