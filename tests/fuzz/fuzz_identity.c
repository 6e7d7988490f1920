/* SPDX-License-Identifier: BSD-2-Clause */
/* sources: identity/app_name.c identity/identity.c identity/cgroup_names.c discover/proc_scan.c base/utf8.c base/io.c base/user_quota.c */
/* A command line, an environment and a cgroup's path: any user writes the first two; what the child
 * that reads tells of a directory; /etc/passwd. */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "identity/cgroup_names.h"
#include "identity/identity.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const char *value)
{
	assert(strnlen(value, LABEL_VALUE_BYTES) <= LABEL_VALUE_MAX_BYTES);
	assert(utf8_is_clean(value, strlen(value)));
}

/* The bytes are the records of both directories, and a log's name. */
static void check_pods(char *text, size_t size)
{
	struct pods pods = {.entries = {{text, size}, {text, size}}, .read_ns = 1};
	struct pod_names names;

	if (!pods_find(&pods, "", "x", 1, &names) || pods_container_log(text, "x", &names)) {
		check(names.pod);
		check(names.container);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char user[LABEL_VALUE_BYTES] = "";
	char *text = malloc(size + 1); /* of the very size, so that sanitizers see what is beyond */
	char app[LABEL_VALUE_BYTES], unit[LABEL_VALUE_BYTES], pod[POD_UID_BYTES];
	struct environment environment;

	assert(text);
	memcpy(text, data, size);
	text[size] = '\0';
	assert((app_name(text, size, app) == APP_NAMED) == (app[0] != '\0'));
	check(app);
	environment_pick(text, size, &environment);
	for (size_t label = 0; label < ENVIRONMENT_LABELS; label++) {
		check(environment.label[label]);
		assert(label == ENVIRONMENT_SERVICE ||
		       strspn(environment.label[label], "0123456789") ==
			       strlen(environment.label[label]));
	}
	cgroup_unit(text, unit);
	check(unit);
	cgroup_pod(text, pod);
	assert(strspn(pod, "0123456789abcdef-") == strlen(pod));
	assert(strlen(pod) == 0 || strlen(pod) == 32 || strlen(pod) == 36);
	check_pods(text, size);
	(void)users_find(text, 0, user);
	check(user);
	free(text);
	return 0;
}
