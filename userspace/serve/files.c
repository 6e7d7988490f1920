/* SPDX-License-Identifier: BSD-2-Clause */
#include "serve/answers.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "serve/answer.h"
#include "serve_page.h"
#include "store/store_query.h"

/* ---- pages ---- */

/* Of the history's page: files of its own origin alone.  The flame graph's page, which it frames,
 * has a policy and an origin of its own. */
static const char history_policy[] =
	"default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
	"frame-src 'self'; img-src 'self' data:; frame-ancestors 'none'; base-uri 'none'; "
	"form-action 'none'";

/* What the index lists; a kind that is served has its row. */
#define ROW_1(link, text) {link, text},
#define ROW_0(link, text)
#define KIND_ROW(id, number, name, needs, captures, is_served, ...)                                \
	ROW_##is_served("/debug/pprof/" name "?seconds=10", "kind " name ", of the next 10 s")
static const char *const index_rows[][2] = {
	{"/debug/pprof/profile?seconds=10", "CPU time, of the next 10 s"},
	PP_PROFILES(KIND_ROW, KIND_ROW) /* */
	{"/api/v1/profile?from=10m&amp;kind=cpu&amp;format=pprof",
	 "the last 10 minutes of the store; format: pprof, json, folded, html"},
	{"/api/v1/profile?from=10m&amp;kind=cpu&amp;format=html", "the same as a flame graph"},
	{"/debug/pprof/profile?seconds=10&amp;format=html", "the next 10 s as a flame graph"},
	{"/api/v1/strip?from=1h&amp;kind=cpu&amp;points=60",
	 "what was used over time, an hour by the minute, as JSON"},
	{"/api/v1/labels?from=1h&amp;kind=cpu",
	 "which labels and processes the store has, and how much each one is, as JSON"},
	{"/api/v1/waits?from=1h", "where the time of each process went, from the ledgers, as JSON"},
	{"/api/v1/self", "who asks, what that one sees and what there is, as JSON"},
	{"/api/v1/files?from=10m&amp;kind=cpu",
	 "the names of the store's files; each is at /api/v1/files/NAME"},
	{"/metrics", "for Prometheus"},
	{"/healthz", "this program answers"},
	{"/readyz", "and so does pyprofd"},
};

static int write_index(FILE *out, void *context)
{
	(void)context;
	fputs("<!doctype html>\n<html lang=\"en\"><meta charset=\"utf-8\">"
	      "<title>pyprofd</title>\n"
	      "<style>body{font:15px sans-serif;margin:2em}"
	      "td{padding:.2em 1.5em .2em 0}</style>\n"
	      "<h1>pyprofd</h1>\n"
	      "<p><a href=\"/\">The page of the history</a></p>\n"
	      "<p>Profiles in pprof's format: <code>go tool pprof URL</code>, "
	      "<code>pyprof report FILE</code>. "
	      "<code>pid=1234</code> selects a process, <code>seconds</code> is 30 or up to "
	      "3600.</p>\n<table>\n",
	      out);
	for (size_t i = 0; i < ARRAY_SIZE(index_rows); i++)
		fprintf(out, "<tr><td><a href=\"%s\">%s</a></td><td>%s</td></tr>\n",
			index_rows[i][0], index_rows[i][0], index_rows[i][1]);
	fputs("</table>\n</html>\n", out);
	return 0;
}

void pages_get(enum request_endpoint endpoint, struct answer *answer)
{
	static const struct {
		const char *text, *type;
	} pages[] = {[REQUEST_PAGE] = {serve_page_html, "text/html; charset=utf-8"},
		     [REQUEST_STYLE] = {serve_page_css, "text/css; charset=utf-8"},
		     [REQUEST_SCRIPT] = {serve_page_js, "text/javascript; charset=utf-8"}};

	if (endpoint == REQUEST_INDEX) {
		*answer = (struct answer){.status = 200, .type = pages[REQUEST_PAGE].type};
		if (answer_write(answer, write_index, NULL))
			answer_say(answer, 503, "no memory\n");
		return;
	}
	answer_say(answer, 200, "%s", pages[endpoint].text);
	answer->type = pages[endpoint].type;
	answer->policy = history_policy;
}

/* ---- names ---- */

static int write_names(FILE *out, void *context)
{
	const struct store_listing *listing = context;

	for (size_t i = 0; i < listing->count; i++) {
		char name[STORE_FILE_CHARS];

		store_file_name(&listing->entry[i].file, name);
		fprintf(out, "%s\n", name);
	}
	return 0;
}

static void complain(int err, struct answer *answer)
{
	if (err == -EFBIG)
		answer_say(answer, 503, "more than %u MiB: choose less\n", ANSWER_MAX_BYTES >> 20);
	else
		answer_say_clean(answer, err == -ENOMEM ? 503 : 404, strerror(-err));
}

void files_list(const char *store, const struct request *request, struct answer *ret_answer)
{
	const struct store_range range = {.since_ms = request->from_ms,
					  .until_ms = request->until_ms ? request->until_ms
									: UINT64_MAX,
					  .kind = request->stored[0] ? request->stored : NULL};
	CLEANUP(store_listing_release) struct store_listing listing = {0};
	int err = store_list(store, &range, &listing);

	*ret_answer = (struct answer){0};
	if (!err)
		err = answer_write(ret_answer, write_names, &listing);
	if (err)
		complain(err, ret_answer);
	else
		answer_head_set(request, ret_answer);
}

/* ---- a file ---- */

/* Opens a file of the store's layout, or else of a directory that holds the files themselves.  A
 * FIFO or a link of that name is none of the store's.  Returns -1 with errno. */
static int open_file(const char *store, const struct store_file *file)
{
	static const int flags = O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK | O_NOFOLLOW;
	char day[STORE_DAY_CHARS], hour[STORE_HOUR_CHARS], name[STORE_FILE_CHARS], path[PATH_MAX];
	int fd;

	store_day_name(file->start_ms, day);
	store_hour_name(file->start_ms, hour);
	store_file_name(file, name);
	snprintf(path, sizeof(path), "%s/%s/%s/%s", store, day, hour, name);
	fd = open(path, flags);
	if (fd >= 0 || errno != ENOENT)
		return fd;
	snprintf(path, sizeof(path), "%s/%s", store, name);
	return open(path, flags);
}

static int read_whole(int fd, const struct request *request, struct answer *answer)
{
	OWNED_MEM char *body = NULL;
	struct stat status;
	size_t size;
	int err;

	if (fstat(fd, &status))
		return -errno;
	if (!S_ISREG(status.st_mode))
		return -ENOENT;
	if (status.st_size < 0 || (uint64_t)status.st_size > ANSWER_MAX_BYTES)
		return -EFBIG;
	size = (size_t)status.st_size;
	body = malloc(size + 1);
	if (!body)
		return -ENOMEM;
	err = pread_full(fd, body, size, 0);
	if (err)
		return err;
	answer->body = TAKE(body);
	answer->size = size;
	answer_head_set(request, answer);
	return 0;
}

void files_get(const char *store, const struct request *request, struct answer *ret_answer)
{
	OWNED_FD int fd = open_file(store, &request->file);
	int err = fd < 0 ? -errno : 0;

	*ret_answer = (struct answer){0};
	if (!err)
		err = read_whole(fd, request, ret_answer);
	if (err)
		complain(err, ret_answer);
}
