/* SPDX-License-Identifier: BSD-2-Clause */
#include "live/request.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

/* Also the kernel's PID_MAX_LIMIT. */
#define PID_MAX (4U << 20)

static const char *const verbs[] = {
	[LIVE_DUMP] = "dump", [LIVE_TOP] = "top", [LIVE_STATS] = "stats"};

/* Parses digits without leading zeros, of `most` at most. */
static bool parse_number(const char *word, uint32_t most, uint32_t *ret_number)
{
	const size_t digits = strspn(word, "0123456789");
	unsigned long number;

	if (!digits || word[digits] || (*word == '0' && digits > 1))
		return false;
	number = strtoul(word, NULL, 10);
	*ret_number = (uint32_t)number;
	return number <= most;
}

static int compare_pids(const void *a, const void *b)
{
	const uint32_t left = *(const uint32_t *)a, right = *(const uint32_t *)b;

	return left < right ? -1 : left > right;
}

/* Sorts the pids, of which there is one at least, and keeps each once. */
static void sort_pids(struct live_request *request)
{
	size_t kept = 1;

	qsort(request->pid, request->pid_count, sizeof(request->pid[0]), compare_pids);
	for (size_t i = 1; i < request->pid_count; i++)
		if (request->pid[kept - 1] != request->pid[i])
			request->pid[kept++] = request->pid[i];
	request->pid_count = kept;
}

static int parse_pids(char *list, struct live_request *request)
{
	uint32_t pid;

	if (!strcmp(list, "all"))
		return 0;
	for (char *word; (word = strsep(&list, ","));) {
		if (!parse_number(word, PID_MAX, &pid) || !pid)
			return -EINVAL;
		if (request->pid_count == LIVE_PIDS_MAX)
			return -E2BIG;
		request->pid[request->pid_count++] = pid;
	}
	sort_pids(request);
	return 0;
}

/* ---- kinds of profile ---- */

bool live_kind_find(const char *name, size_t size, enum pp_profile *ret_kind)
{
	enum pp_profile kind;

	if (!kind_find(name, size, &kind) || !(KINDS_SERVED & 1U << kind))
		return false;
	*ret_kind = kind;
	return true;
}

static int parse_kinds(char *list, struct live_request *request)
{
	enum pp_profile kind;

	if (request->verb != LIVE_TOP)
		return -EINVAL;
	for (char *word; (word = strsep(&list, ","));) {
		if (!live_kind_find(word, strlen(word), &kind))
			return -EINVAL;
		request->kinds |= 1U << kind;
	}
	return 0;
}

/* ---- the line ---- */

/* -1 is no user. */
static int parse_uid(const char *word, struct live_request *request)
{
	if (request->has_uid || !parse_number(word, UINT32_MAX - 1, &request->uid))
		return -EINVAL;
	request->has_uid = true;
	return 0;
}

/* Returns what is behind the name of a switch; NULL: it is another one. */
static char *value_of(char *word, const char *name)
{
	return strncmp(word, name, strlen(name)) ? NULL : word + strlen(name);
}

static int parse_switch(char *word, struct live_request *request)
{
	char *value;

	if (!strcmp(word, "no-native"))
		request->no_native = true;
	else if (!strcmp(word, "no-kernel"))
		request->no_kernel = true;
	else if ((value = value_of(word, "uid=")))
		return parse_uid(value, request);
	else if ((value = value_of(word, "kinds=")))
		return parse_kinds(value, request);
	else
		return -EINVAL;
	return 0;
}

static int parse_verb(const char *word, enum live_verb *ret_verb)
{
	for (size_t i = 0; i < ARRAY_SIZE(verbs); i++) {
		if (!strcmp(word, verbs[i])) {
			*ret_verb = (enum live_verb)i;
			return 0;
		}
	}
	return -EINVAL;
}

/* Words are separated by one blank; behind the last one there may be one. */
int live_request_parse(const char *line, size_t size, struct live_request *ret_request)
{
	char text[LIVE_REQUEST_BYTES], *rest = text;
	struct live_request request = {};
	int err;

	if (size >= LIVE_REQUEST_BYTES)
		return -E2BIG;
	memcpy(text, line, size);
	text[size] = '\0';
	if (strcmp(strsep(&rest, " "), "pyprofd") || !rest || strcmp(strsep(&rest, " "), "1"))
		return -EPROTO;
	err = rest && !memchr(line, '\0', size) ? parse_verb(strsep(&rest, " "), &request.verb)
						: -EINVAL;
	if (!err)
		err = rest ? parse_pids(strsep(&rest, " "), &request) : -EINVAL;
	while (!err && rest && *rest)
		err = parse_switch(strsep(&rest, " "), &request);
	if (err)
		return err;
	*ret_request = request;
	return 0;
}

/* Eleven characters for a pid and its comma; all words together are shorter than 100. */
_Static_assert(LIVE_PIDS_MAX * 11 + KIND_NAMES_CHARS + 100 < LIVE_REQUEST_BYTES, "a request fits");

int live_request_format(const struct live_request *request, char ret_text[LIVE_REQUEST_BYTES],
			size_t *ret_size)
{
	char kinds[KIND_NAMES_CHARS], uid[24] = "";
	FILE *out = fmemopen(ret_text, LIVE_REQUEST_BYTES, "w");
	long size;

	if (!out)
		return -ENOMEM;
	fprintf(out, "pyprofd %u %s ", LIVE_VERSION, verbs[request->verb]);
	for (size_t i = 0; i < request->pid_count; i++)
		fprintf(out, "%s%u", i ? "," : "", request->pid[i]);
	kind_names(request->kinds & KINDS_SERVED, ",", ",", kinds);
	if (request->has_uid)
		snprintf(uid, sizeof(uid), " uid=%u", request->uid);
	fprintf(out, "%s%s%s%s%s%s\n", request->pid_count ? "" : "all",
		request->no_native ? " no-native" : "", request->no_kernel ? " no-kernel" : "", uid,
		kinds[0] ? " kinds=" : "", kinds);
	size = ftell(out);
	if (fclose(out)) /* ends the text with NUL */
		return -errno;
	*ret_size = (size_t)size;
	return 0;
}

bool live_request_wants(const struct live_request *request, uint32_t pid)
{
	return !request->pid_count || bsearch(&pid, request->pid, request->pid_count,
					      sizeof(request->pid[0]), compare_pids);
}
