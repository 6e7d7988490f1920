/* SPDX-License-Identifier: BSD-2-Clause */
/* Parses what --probe names: usdt:BINARY:PROVIDER:NAME, uprobe:BINARY:SYMBOL[+ret] or
 * tracepoint:GROUP:NAME. */
#ifndef OPTIONS_PROBE_SPEC_H
#define OPTIONS_PROBE_SPEC_H

#include <stdbool.h>

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

/* Returns 0; -EINVAL with what is wrong and the fix in `why`; -ENOMEM. */
int probe_spec_parse(const char *text, struct probe_spec *ret_spec, char why[PROBE_SPEC_WHY_BYTES]);
void probe_spec_release(struct probe_spec *spec);

#endif
