/* SPDX-License-Identifier: BSD-2-Clause */
/* sources: config/relabel.c base/utf8.c base/regex_copies.c */
/* Rules, and behind a NUL the values of three labels, with a NUL behind each. */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "config/relabel.h"

#define TEXT_MAX 2048U

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const name[] = {"app", "user", "rank"};
	OWNED(relabel_rules) struct relabel_rules *rules = NULL;
	char text[TEXT_MAX + 1] = "", why[RELABEL_WHY_BYTES] = "";
	struct relabel_labels labels = {0};
	bool keep;

	memcpy(text, data, size < TEXT_MAX ? size : TEXT_MAX);
	if (relabel_rules_parse(text, &rules, why)) {
		assert(why[0]);
		return 0;
	}
	for (size_t i = 0, at = 0; i < ARRAY_SIZE(name); i++) {
		char clean[TEXT_MAX * UTF8_CLEAN_MAX_GROWTH + 1];

		at += strlen(text + at);
		at += at < TEXT_MAX;
		clean[utf8_clean(text + at, strlen(text + at), clean)] = '\0';
		assert(!relabel_labels_set(&labels, name[i], clean));
	}
	assert(!relabel_rules_apply(rules, &labels, &keep));
	for (size_t i = 0; i < labels.count; i++)
		assert(utf8_is_clean(labels.label[i].value, strlen(labels.label[i].value)) &&
		       labels.label[i].value[0]);
	relabel_labels_release(&labels);
	return 0;
}
