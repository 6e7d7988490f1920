/* SPDX-License-Identifier: BSD-2-Clause */
/* What `pyprof why` says of each rule (query/gpu_findings.h), whatever the figures. */
#ifndef READER_WHY_TEXTS_H
#define READER_WHY_TEXTS_H

#include "query/gpu_findings.h"

struct why_text {
	const char *rests_on, *cannot_know;
	const char *next; /* what to try */
};

/* By id. */
extern const struct why_text why_texts[GPU_FINDING_COUNT];
/* Returns what a doubt means. */
const char *why_doubt_text(enum gpu_doubt doubt);

#endif
