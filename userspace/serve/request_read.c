/* SPDX-License-Identifier: BSD-2-Clause */
#include "serve/request_read.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/io.h"

static int add_labels(const struct request *request, struct select *select,
		      char why[SELECT_WHY_BYTES])
{
	int err = 0;

	for (unsigned int i = 0; !err && i < request->label_count; i++)
		err = select_add_label(select, request->label[i], why);
	return err;
}

/* Fills in what to read, to be released either way.  Returns 0; -errno, and in why one line. */
static int make_select(const struct answer_sources *sources, const struct request *request,
		       const struct answer_view *view, struct select *select,
		       char why[SELECT_WHY_BYTES])
{
	*select = (struct select){.since_ms = request->from_ms,
				  .until_ms = request->until_ms,
				  .kind = request_kind(request),
				  .pid = {request->pid},
				  .pid_count = request->pid != 0};
	if (request->endpoint == REQUEST_LIVE) {
		select->live = true;
		select->live_seconds = request->seconds;
		select->socket = sources->live;
		select->as_user = view->is_of_user;
		select->uid = view->uid;
		return add_labels(request, select, why);
	}
	select->path = calloc(1, sizeof(*select->path));
	if (!select->path) {
		snprintf(why, SELECT_WHY_BYTES, "no memory");
		return -ENOMEM;
	}
	select->path[select->path_count++] = (char *)sources->store;
	return add_labels(request, select, why);
}

/* Says why there is no profile: pyprofd does not give it, or the store does not have it. */
static void explain(const struct request *request, int err, const char *why, const char *words,
		    struct answer *answer)
{
	static const char prefix[] = "pyprof: ";
	const char *text = why[0] ? why : words;
	const bool is_ours = request->endpoint == REQUEST_LIVE || err == -ENOMEM || err == -EFBIG;
	OWNED_MEM char *line = NULL;
	size_t size;

	if (!strncmp(text, prefix, strlen(prefix)))
		text += strlen(prefix);
	size = strlen(text);
	while (size && text[size - 1] == '\n')
		size--;
	line = strndup(text, size);
	/* A message of several lines. */
	for (char *at = line; at && *at; at++)
		*at = *at == '\n' ? ' ' : *at;
	answer_say_clean(answer, is_ours ? 503 : 404, line && *line ? line : strerror(-err));
}

int request_read(const struct answer_sources *sources, const struct request *request,
		 const struct answer_view *view, const struct input_options *wanted,
		 struct input **ret_input, struct answer *ret_answer)
{
	struct input_options options = *wanted;
	struct watcher watcher = {.stop_fd = view->stop_fd};
	CLEANUP(select_release) struct select select = {0};
	OWNED_MEM char *words = NULL;
	const bool is_live = request->endpoint == REQUEST_LIVE;
	char why[WHY_BYTES] = "";
	size_t size;
	int err;

	watcher.words = open_memstream(&words, &size);
	if (!watcher.words) {
		answer_say_clean(ret_answer, 503, "no memory");
		return -ENOMEM;
	}
	options.select = &select;
	options.watcher = &watcher;
	options.memory_max = is_live ? ANSWER_LIVE_MAX_BYTES : ANSWER_STORED_MAX_BYTES;
	options.live_max = ANSWER_LIVE_FILE_MAX_BYTES;
	err = make_select(sources, request, view, &select, why);
	if (!err)
		err = input_read(&options, why, ret_input);
	if (close_memory_file(watcher.words, &words) && !err) {
		input_free(*ret_input);
		*ret_input = NULL;
		err = -ENOMEM;
	}
	if (err)
		explain(request, err, why, words ? words : "", ret_answer);
	return err;
}
