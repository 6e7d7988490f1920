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

static const char kinds_word[] = "kinds=", uid_word[] = "uid=";

struct word {
	const char *text;
	size_t size;
};

/* Returns the next word of the line; words are separated by one blank. */
static struct word next_word(const char **at, const char *end)
{
	const char *blank = memchr(*at, ' ', (size_t)(end - *at));
	struct word word = {.text = *at, .size = (size_t)((blank ? blank : end) - *at)};

	*at = blank ? blank + 1 : end;
	return word;
}

static bool is_word(struct word word, const char *text)
{
	return word.size == strlen(text) && !memcmp(word.text, text, word.size);
}

/* Reads digits up to another character, without leading zeros.  0: not a pid. */
static uint32_t read_pid(const char **at, const char *end)
{
	uint32_t pid = 0;

	while (*at < end && **at >= '0' && **at <= '9') {
		pid = pid * 10 + (uint32_t)(*(*at)++ - '0');
		if (!pid || pid > PID_MAX)
			return 0;
	}
	return pid;
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

static int parse_pids(struct word word, struct live_request *request)
{
	const char *at = word.text, *end = word.text + word.size;

	if (is_word(word, "all"))
		return 0;
	for (;;) {
		uint32_t pid = read_pid(&at, end);

		if (!pid || (at < end && *at != ','))
			return -EINVAL;
		if (request->pid_count == LIVE_PIDS_MAX)
			return -E2BIG;
		request->pid[request->pid_count++] = pid;
		if (at == end)
			break;
		at++;
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

static bool begins_with(struct word word, const char *text)
{
	return word.size >= strlen(text) && !memcmp(word.text, text, strlen(text));
}

static int parse_kinds(struct word word, struct live_request *request)
{
	const char *at = word.text + strlen(kinds_word), *end = word.text + word.size;

	if (request->verb != LIVE_TOP)
		return -EINVAL;
	for (;;) {
		const char *comma = memchr(at, ',', (size_t)(end - at));
		enum pp_profile kind;

		if (!live_kind_find(at, (size_t)((comma ? comma : end) - at), &kind))
			return -EINVAL;
		request->kinds |= 1U << kind;
		if (!comma)
			return 0;
		at = comma + 1;
	}
}

/* ---- the line ---- */

/* Parses "uid=1000": digits without leading zeros.  -1 is no user. */
static int parse_uid(struct word word, struct live_request *request)
{
	const char *at = word.text + strlen(uid_word), *end = word.text + word.size;
	uint64_t uid = 0;

	if (at == end || (*at == '0' && end - at > 1) || request->has_uid)
		return -EINVAL;
	for (; at < end; at++) {
		if (*at < '0' || *at > '9')
			return -EINVAL;
		uid = uid * 10 + (uint64_t)(*at - '0');
		if (uid >= UINT32_MAX)
			return -EINVAL;
	}
	request->has_uid = true;
	request->uid = (uint32_t)uid;
	return 0;
}

static int parse_word(struct word word, struct live_request *request)
{
	if (begins_with(word, uid_word))
		return parse_uid(word, request);
	return begins_with(word, kinds_word) ? parse_kinds(word, request) : -EINVAL;
}

static int parse_switches(const char *at, const char *end, struct live_request *request)
{
	while (at < end) {
		struct word word = next_word(&at, end);

		if (is_word(word, "no-native"))
			request->no_native = true;
		else if (is_word(word, "no-kernel"))
			request->no_kernel = true;
		else if (parse_word(word, request))
			return -EINVAL;
	}
	return 0;
}

static int parse_verb(struct word word, enum live_verb *ret_verb)
{
	for (size_t i = 0; i < ARRAY_SIZE(verbs); i++) {
		if (is_word(word, verbs[i])) {
			*ret_verb = (enum live_verb)i;
			return 0;
		}
	}
	return -EINVAL;
}

int live_request_parse(const char *line, size_t size, struct live_request *ret_request)
{
	const char *at = line, *end = line + size;
	struct live_request request = {};
	int err;

	if (size >= LIVE_REQUEST_BYTES)
		return -E2BIG;
	if (!is_word(next_word(&at, end), "pyprofd") || !is_word(next_word(&at, end), "1"))
		return -EPROTO;
	err = parse_verb(next_word(&at, end), &request.verb);
	if (!err)
		err = parse_pids(next_word(&at, end), &request);
	if (!err)
		err = parse_switches(at, end, &request);
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
		snprintf(uid, sizeof(uid), " %s%u", uid_word, request->uid);
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
