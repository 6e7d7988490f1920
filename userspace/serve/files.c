/* SPDX-License-Identifier: BSD-2-Clause */
#include "serve/files.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "base/kinds.h"
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

#define SERVED_ROW(id, number, name, needs, captures, is_served, ...)                              \
	ROW_##is_served("/debug/pprof/" name "?seconds=10", "kind " name ", of the next 10 s")
#define ROW(link, text) "<tr><td><a href=\"" link "\">" link "</a></td><td>" text "</td></tr>\n"
#define ROW_1(link, text) ROW(link, text)
#define ROW_0(link, text)

void pages_index(struct answer *answer)
{
	static const char page[] =
		"<!doctype html>\n<html lang=\"en\"><meta charset=\"utf-8\">"
		"<title>pyprofd</title>\n"
		"<style>body{font:15px sans-serif;margin:2em}"
		"td{padding:.2em 1.5em .2em 0}</style>\n"
		"<h1>pyprofd</h1>\n"
		"<p><a href=\"/\">The page of the history</a></p>\n"
		"<p>Profiles in pprof's format: <code>go tool pprof URL</code>, "
		"<code>pyprof report FILE</code>. "
		"<code>pid=1234</code> selects a process, <code>seconds</code> is 30 or up to "
		"3600.</p>\n<table>\n" ROW("/debug/pprof/profile?seconds=10",
					   "CPU time, of the next 10 s")
			PP_PROFILES(SERVED_ROW, SERVED_ROW) ROW(
				"/api/v1/profile?from=10m&amp;kind=cpu&amp;format=pprof",
				"the last 10 minutes of the store; format: pprof, json, folded, "
				"html") ROW("/api/v1/profile?from=10m&amp;kind=cpu&amp;format=html",
					    "the same as a flame graph")
				ROW("/debug/pprof/profile?seconds=10&amp;format=html",
				    "the next 10 s as a flame graph")
					ROW("/api/v1/strip?from=1h&amp;kind=cpu&amp;points=60",
					    "what was used over time, an hour by the minute, as "
					    "JSON") ROW("/api/v1/labels?from=1h&amp;kind=cpu",
							"which labels and processes the store has, "
							"and how much each one is, as JSON")
						ROW("/api/v1/waits?from=1h",
						    "where the time of each process went, from the "
						    "ledgers, as JSON") ROW("/api/v1/self",
									    "who asks, what that "
									    "one sees and what "
									    "there is, as JSON")
							ROW("/api/v1/files?from=10m&amp;kind=cpu",
							    "the names of the store's files; each "
							    "is at /api/v1/files/NAME")
								ROW("/metrics", "for Prometheus")
									ROW("/healthz",
									    "this program answers")
										ROW("/readyz",
										    "and so does "
										    "pyprofd") "</"
											       "tab"
											       "le>"
											       "\n<"
											       "/ht"
											       "ml>"
											       "\n";

	answer_say(answer, 200, "%s", page);
	answer->type = "text/html; charset=utf-8";
}

static void give(struct answer *answer, const char *text, const char *type)
{
	answer_say(answer, 200, "%s", text);
	answer->type = type;
	answer->policy = history_policy;
}

void pages_history(struct answer *answer)
{
	give(answer, serve_page_html, "text/html; charset=utf-8");
}

void pages_history_style(struct answer *answer)
{
	give(answer, serve_page_css, "text/css; charset=utf-8");
}

void pages_history_script(struct answer *answer)
{
	give(answer, serve_page_js, "text/javascript; charset=utf-8");
}

/* ---- names ---- */

static int write_names(const struct store_listing *listing, FILE *out)
{
	for (size_t i = 0; i < listing->count; i++) {
		char name[STORE_FILE_CHARS];

		store_file_name(&listing->entry[i].file, name);
		fprintf(out, "%s\n", name);
	}
	return ferror(out) ? -ENOMEM : 0;
}

static int encode_names(const struct store_listing *listing, const struct request *request,
			struct answer *answer)
{
	OWNED_MEM char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);
	int err;

	if (!out)
		return -ENOMEM;
	err = write_names(listing, out);
	if (close_memory_file(out, &text) || err)
		return -ENOMEM;
	if (size > ANSWER_MAX_BYTES)
		return -EFBIG;
	answer->body = TAKE(text);
	answer->size = size;
	answer_head_set(request, answer);
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
		err = encode_names(&listing, request, ret_answer);
	if (err)
		complain(err, ret_answer);
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
