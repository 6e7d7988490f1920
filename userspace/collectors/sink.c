/* SPDX-License-Identifier: BSD-2-Clause */
#include "collectors/push.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/random.h"
#include "collectors/collector.h"
#include "collectors/http_client.h"
#include "collectors/queue.h"

#define LINE_BYTES 1024U
/* The same drops are told so often; /metrics has them all. */
#define TELL_EVERY_NS (600 * NS_PER_SEC)
#define MEMORY_PAUSE_MS 60000U
#define HANGS_AFTER_S 20U	/* a collector that takes nothing for so long */
#define ANSWER_MAX_BYTES 65536U /* of a body; what is behind is not kept */
#define HEADERS_MAX 4U
#define MS_PER_S 1000ULL

struct push_sink {
	struct push_sink_options options;
	struct push_target *target; /* owned */
	struct push_encoding encoding;
	struct push_counters counters;
	pthread_t thread;
	bool has_ended; /* the thread was waited for */
	pthread_mutex_t mutex;
	pthread_cond_t has_to_wake;
	bool has_to_end;	 /* guarded by the mutex */
	atomic_bool has_to_stop; /* even a request that waits for its answer */
	/* The thread's alone. */
	struct http_client *client;	 /* owned */
	const char *header[HEADERS_MAX]; /* of each request, NULL at the end */
	char answer[ANSWER_MAX_BYTES];	 /* NUL-terminated */
	size_t answer_size;
	struct push_cursor cursor;
	struct push_queue queue;
	struct push_job job;
	struct push_known_series known;
	uint64_t listed_ns; /* 0: never */
	uint64_t told_ns[PUSH_DROP_COUNT], told_folded_ns;
	bool has_failed; /* and that was told */
	bool is_held;	 /* until the token changes, or the pause is over */
};

static uint64_t now_ms(void)
{
	return wall_ns() / NS_PER_MS;
}

/* ---- what the user is told ---- */

__attribute__((format(printf, 2, 3))) static void tell(struct push_sink *sink, const char *format,
						       ...)
{
	char line[LINE_BYTES];
	int size = snprintf(line, sizeof(line), "push %s: ", sink->target->name);
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(line + size, sizeof(line) - (size_t)size, format, arguments);
	va_end(arguments);
	sink->options.tell(sink->options.context, line);
}

static bool is_due(uint64_t *told_ns)
{
	uint64_t now = mono_ns();

	if (*told_ns && now - *told_ns < TELL_EVERY_NS)
		return false;
	*told_ns = now;
	return true;
}

/* Counts what is not sent; what: for the reader of the log. */
__attribute__((format(printf, 4, 5))) static void drop(struct push_sink *sink,
						       enum push_drop reason, uint64_t count,
						       const char *format, ...)
{
	char what[LINE_BYTES / 2];
	va_list arguments;

	push_count_drop(&sink->counters, reason, count);
	if (!is_due(&sink->told_ns[reason]))
		return;
	va_start(arguments, format);
	vsnprintf(what, sizeof(what), format, arguments);
	va_end(arguments);
	tell(sink, "not sent (%s): %s", push_drop_name(reason), what);
}

/* ---- the cursor ---- */

static void save_cursor(struct push_sink *sink)
{
	int err = push_cursor_save(sink->options.state_fd, sink->target->name, &sink->cursor);

	if (err)
		tell(sink, "cannot save how far it has come: %s; a restart sends windows again",
		     strerror(-err));
}

static void pass_window(struct push_sink *sink, uint64_t start_ms)
{
	push_cursor_pass(&sink->cursor, sink->job.kind, start_ms);
	push_job_pass_window(&sink->job);
	save_cursor(sink);
}

/* Until a window is sent, the lag is that of the cursor: where a new sink begins, or the start of
 * the last window before a restart.  Without either it begins now. */
static void begin_lag(struct push_sink *sink)
{
	uint64_t newest_ms = 0;

	for (unsigned int i = 0; i < PP_PROFILE_COUNT; i++)
		if (sink->cursor.sent_ms[i] > newest_ms)
			newest_ms = sink->cursor.sent_ms[i];
	PUSH_SET(&sink->counters, sent_end_ms, newest_ms ? newest_ms : now_ms());
}

/* The collector has a window to its end. */
static void note_sent(struct push_sink *sink, const struct window_mark *window)
{
	const uint64_t end_ms = window->start_ms + window->duration_ns / NS_PER_MS;

	if (end_ms > sink->counters.stats.sent_end_ms) /* only this thread writes it */
		PUSH_SET(&sink->counters, sent_end_ms, end_ms);
}

/* Returns 0, or -errno when the store cannot be read now. */
static int load_cursor(struct push_sink *sink)
{
	int err = push_cursor_load(sink->options.state_fd, sink->target->name, &sink->cursor);

	if (!err) {
		if (sink->cursor.open.is_in_flight)
			PUSH_COUNT(&sink->counters, repeated, 1);
		sink->cursor.open.is_in_flight = false;
		return 0;
	}
	if (err != -ENOENT)
		tell(sink, "cannot read how far it had come: %s; beginning with what comes now",
		     strerror(-err));
	err = push_queue_begin(&sink->queue, &sink->cursor);
	if (!err)
		save_cursor(sink);
	return err;
}

/* What is ahead of the clock would hold up all windows until then.  Returns whether it was. */
static bool check_clock(struct push_sink *sink)
{
	const uint64_t now = now_ms();
	bool is_ahead = false;

	for (unsigned int i = 0; i < PP_PROFILE_COUNT; i++) {
		if (sink->cursor.sent_ms[i] <= now + PUSH_AHEAD_MAX_MS)
			continue;
		sink->cursor.sent_ms[i] = now;
		is_ahead = true;
	}
	if (!is_ahead)
		return false;
	PUSH_SET(&sink->counters, sent_end_ms, now);
	save_cursor(sink);
	return true;
}

/* By their names, windows that begin later are windows of the time before, which was sent, or of
 * the time since. */
static void tell_set_back(struct push_sink *sink)
{
	const uint64_t again = push_queue_count(&sink->queue, &sink->cursor);

	PUSH_COUNT(&sink->counters, again, again);
	tell(sink,
	     "the clock was set back: going on with windows that begin now; %" PRIu64
	     " files with later ones are sent, which the collector may have already",
	     again);
}

/* ---- files ---- */

static int list(struct push_sink *sink)
{
	uint64_t gone = 0, late = 0;
	const bool was_set_back = check_clock(sink);
	int err = push_queue_list(&sink->queue, &sink->cursor, &gone, &late);

	sink->listed_ns = mono_ns();
	if (err) {
		if (!sink->has_failed)
			tell(sink, "cannot read the store '%s': %s", sink->options.store,
			     strerror(-err));
		sink->has_failed = true;
		return err;
	}
	if (was_set_back)
		tell_set_back(sink);
	if (gone)
		drop(sink, PUSH_DROP_RETENTION, gone,
		     "the store deleted %" PRIu64 " files before they could be sent", gone);
	if (late)
		drop(sink, PUSH_DROP_CLOCK, late,
		     "the clock was set back: %" PRIu64 " windows "
		     "begin before others that were sent",
		     late);
	return 0;
}

/* Takes the next file.  Returns 0; -EAGAIN: there is none; -errno: not now. */
static int take_file(struct push_sink *sink)
{
	const struct store_entry *entry;
	struct push_content *content;
	char why[PUSH_WHY_BYTES] = "";
	enum pp_profile kind;
	int err;

	entry = push_queue_first(&sink->queue, &sink->cursor, &kind);
	if (!entry) {
		err = list(sink);
		if (err)
			return err;
		entry = push_queue_first(&sink->queue, &sink->cursor, &kind);
	}
	PUSH_SET(&sink->counters, files_left, push_queue_left(&sink->queue));
	if (!entry)
		return -EAGAIN;
	err = push_content_read(entry, &sink->encoding.labels, why, &content);
	if (err == -ENOMEM)
		return err;
	/* It was merged, or deleted: the list tells. */
	if (err == -ENOENT)
		return list(sink);
	if (err)
		drop(sink, PUSH_DROP_UNREADABLE, 1, "'%s': %s", entry->path, why);
	else
		push_job_begin(&sink->job, kind, content);
	push_queue_pass(&sink->queue);
	return 0;
}

/* ---- HTTP ---- */

static int take_answer(void *context, unsigned int status, const void *bytes, size_t size)
{
	struct push_sink *sink = context;
	size_t room = sizeof(sink->answer) - 1 - sink->answer_size;

	(void)status;
	memcpy(sink->answer + sink->answer_size, bytes, size < room ? size : room);
	sink->answer_size += size < room ? size : room;
	return 0;
}

/* What came back; the answer's body is the sink's, until the next request. */
struct reply {
	struct push_answer answer;
	struct http_client_reply http;
};

/* Returns as http_client_send(). */
static int post(struct push_sink *sink, const struct push_request *request, struct reply *ret_reply)
{
	const struct http_client_request asked = {.url = sink->target->url,
						  .header = sink->header,
						  .body = request->body,
						  .size = request->size,
						  .take = take_answer,
						  .context = sink};
	int err;

	sink->answer_size = 0;
	err = http_client_send(sink->client, &asked, &ret_reply->http);
	sink->answer[sink->answer_size] = '\0';
	ret_reply->answer = (struct push_answer){.end = ret_reply->http.end,
						 .status = ret_reply->http.status,
						 .body = sink->answer,
						 .body_size = sink->answer_size};
	return err;
}

static int new_client(struct push_sink *sink)
{
	const struct push_target *target = sink->target;
	const struct http_client_options options = {.as = &target->as,
						    .timeout_ms = target->timeout_ms,
						    .idle_s = HANGS_AFTER_S,
						    .has_to_stop = &sink->has_to_stop};
	const char *const *header = target->collector->header;
	size_t count = 0;

	while (header[count] && count < HEADERS_MAX - 2) {
		sink->header[count] = header[count];
		count++;
	}
	if (target->is_packed)
		sink->header[count] = "Content-Encoding: gzip";
	return http_client_new(&options, &sink->client);
}

/* ---- requests ---- */

static void count_reply(struct push_sink *sink, const struct reply *reply, uint64_t duration_ns)
{
	bool is_answer = reply->answer.end == HTTP_CLIENT_ANSWERED;

	push_count_request(&sink->counters, is_answer ? reply->answer.status : 0, duration_ns);
}

/* Tells the first failure after a success, and the first success after a failure. */
static void note_health(struct push_sink *sink, bool works, const char *fault)
{
	PUSH_SET(&sink->counters, works, works);
	if (works == !sink->has_failed)
		return;
	sink->has_failed = !works;
	if (works)
		tell(sink, "works again");
	else
		tell(sink, "%s: %s; trying again, the store keeps what waits",
		     sink->target->shown_url, fault);
}

/* Returns how long to wait. */
static uint64_t finish_request(struct push_sink *sink, const struct push_request *request,
			       const struct reply *reply)
{
	uint64_t pause_ms = request->raw_bytes * 1000 / PUSH_BYTES_A_SECOND;
	uint64_t rejected = push_rejected_count(sink->target->collector, &reply->answer);

	if (rejected)
		drop(sink, PUSH_DROP_REJECTED, rejected,
		     "the collector left out %" PRIu64 " profiles: %s", rejected,
		     reply->http.fault);
	note_health(sink, true, "");
	PUSH_COUNT(&sink->counters, bytes, request->size);
	push_job_pass_request(&sink->job);
	push_job_note(&sink->job, false, &sink->cursor);
	if (push_job_request(&sink->job))
		save_cursor(sink);
	return pause_ms;
}

static uint64_t refuse_request(struct push_sink *sink, enum push_drop reason,
			       const struct reply *reply)
{
	drop(sink, reason, 1, "%s: %s; the profiles of this request stay in the store",
	     sink->target->shown_url, reply->http.fault);
	PUSH_SET(&sink->counters, works, false);
	push_job_pass_request(&sink->job);
	push_job_note(&sink->job, false, &sink->cursor);
	save_cursor(sink);
	return 0;
}

static uint64_t retry_request(struct push_sink *sink, const struct push_decision *decision,
			      const struct reply *reply)
{
	note_health(sink, false, reply->http.fault);
	if (decision->is_ambiguous)
		PUSH_COUNT(&sink->counters, repeated, 1);
	push_job_note(&sink->job, false, &sink->cursor);
	save_cursor(sink);
	sink->is_held = decision->verdict == PUSH_HOLD;
	return push_pause_ms(decision->verdict, sink->job.tries, (uint32_t)random_number(),
			     reply->http.retry_after_s * MS_PER_S);
}

static uint64_t send_request(struct push_sink *sink, const struct push_request *request)
{
	struct push_decision decision = {PUSH_HOLD, false};
	struct reply reply;
	uint64_t begin_ns;
	int err;

	push_job_note(&sink->job, true, &sink->cursor);
	save_cursor(sink);
	sink->job.tries++;
	begin_ns = mono_ns();
	err = post(sink, request, &reply);
	if (!err) {
		count_reply(sink, &reply, mono_ns() - begin_ns);
		decision = push_decide(sink->target->collector, &reply.answer, sink->job.tries);
	}
	/* We ended it ourselves: whether the collector has it shows at the next start. */
	if (atomic_load(&sink->has_to_stop))
		return 0;
	switch (decision.verdict) {
	case PUSH_DONE:
		return finish_request(sink, request, &reply);
	case PUSH_POISON:
		return refuse_request(sink, PUSH_DROP_POISON, &reply);
	case PUSH_REFUSED:
		return refuse_request(sink, PUSH_DROP_REFUSED, &reply);
	default:
		return retry_request(sink, &decision, &reply);
	}
}

/* ---- windows ---- */

static int encode_window(struct push_sink *sink, char why[PUSH_WHY_BYTES])
{
	struct push_job_counts counts;
	int err = push_job_encode(&sink->job, &sink->encoding, &sink->cursor, &sink->known, why,
				  &counts);

	if (err)
		return err;
	PUSH_COUNT(&sink->counters, repeated, counts.repeated);
	PUSH_COUNT(&sink->counters, folded, counts.folded);
	if (counts.folded && is_due(&sink->told_folded_ns))
		tell(sink,
		     "%" PRIu64 " series are in '%s' for now: there are %u in an hour, and "
		     "half of them for one user; fewer labels= make fewer series",
		     counts.folded, PUSH_SERIES_OTHER, PUSH_SERIES_MAX);
	return 0;
}

/* Goes on with a window.  Returns how long to wait. */
static uint64_t work_at_window(struct push_sink *sink, const struct window_mark *window)
{
	const struct push_request *request;
	char why[PUSH_WHY_BYTES] = "";
	uint64_t pause_ms;
	int err = 0;

	if (window->start_ms <= sink->cursor.sent_ms[sink->job.kind]) {
		push_job_pass_window(&sink->job);
		return 0;
	}
	if (push_is_too_old(sink->target->collector,
			    window->start_ms + window->duration_ns / NS_PER_MS, now_ms())) {
		drop(sink, PUSH_DROP_TOO_OLD, 1, "a window is older than 50 minutes");
		pass_window(sink, window->start_ms);
		return 0;
	}
	if (!sink->job.is_encoded)
		err = encode_window(sink, why);
	if (err == -ENOMEM)
		return MEMORY_PAUSE_MS;
	if (err) {
		drop(sink, PUSH_DROP_UNREADABLE, 1, "a window: %s", why);
		pass_window(sink, window->start_ms);
		return 0;
	}
	request = push_job_request(&sink->job);
	pause_ms = request ? send_request(sink, request) : 0;
	if (!push_job_request(&sink->job)) {
		PUSH_COUNT(&sink->counters, windows, 1);
		if (sink->counters.stats.works)
			note_sent(sink, window);
		pass_window(sink, window->start_ms);
	}
	return pause_ms;
}

static uint64_t work(struct push_sink *sink)
{
	const struct window_mark *window;
	int err;

	/* While one waits, others may be deleted. */
	if (sink->listed_ns && mono_ns() - sink->listed_ns > PUSH_LIST_EVERY_MS * NS_PER_MS)
		(void)list(sink);
	window = push_job_window(&sink->job);
	if (window)
		return work_at_window(sink, window);
	err = take_file(sink);
	if (err == -EAGAIN)
		return sink->options.poll_ms;
	return err ? MEMORY_PAUSE_MS : 0;
}

/* ---- the thread ---- */

/* Sleeps; a sink that is held looks for another token meanwhile.  Returns false at the end. */
static bool wait_for(struct push_sink *sink, uint64_t pause_ms)
{
	uint64_t until_ns = mono_ns() + pause_ms * NS_PER_MS;
	bool has_to_end;

	pthread_mutex_lock(&sink->mutex);
	while (!sink->has_to_end && mono_ns() < until_ns) {
		uint64_t wake_ns = until_ns;
		struct timespec at;

		if (sink->is_held && wake_ns > mono_ns() + sink->options.poll_ms * NS_PER_MS)
			wake_ns = mono_ns() + sink->options.poll_ms * NS_PER_MS;
		at = (struct timespec){.tv_sec = (time_t)(wake_ns / NS_PER_SEC),
				       .tv_nsec = (long)(wake_ns % NS_PER_SEC)};
		pthread_cond_timedwait(&sink->has_to_wake, &sink->mutex, &at);
		if (sink->is_held && http_client_has_new_token(sink->client))
			break;
	}
	sink->is_held = false;
	has_to_end = sink->has_to_end;
	pthread_mutex_unlock(&sink->mutex);
	return !has_to_end;
}

static void *run(void *context)
{
	struct push_sink *sink = context;

	while (load_cursor(sink))
		if (!wait_for(sink, sink->options.poll_ms))
			return NULL;
	begin_lag(sink);
	/* Nodes that begin together, as after a rollout, do not look, and so push, together. */
	if (!wait_for(sink, random_number() % sink->options.poll_ms))
		return NULL;
	while (wait_for(sink, work(sink)))
		;
	return NULL;
}

static int start_thread(struct push_sink *sink)
{
	sigset_t all, before;
	int err;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	err = pthread_create(&sink->thread, NULL, run, sink);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return -err;
}

static void init_lock(struct push_sink *sink)
{
	pthread_condattr_t attributes;

	pthread_mutex_init(&sink->mutex, NULL);
	pthread_condattr_init(&attributes);
	pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
	pthread_cond_init(&sink->has_to_wake, &attributes);
	pthread_condattr_destroy(&attributes);
}

static void release(struct push_sink *sink)
{
	push_job_release(&sink->job);
	push_queue_release(&sink->queue);
	http_client_free(sink->client);
	pthread_cond_destroy(&sink->has_to_wake);
	pthread_mutex_destroy(&sink->mutex);
	push_counters_destroy(&sink->counters);
	free(sink);
}

int push_sink_new(const struct push_sink_options *options, struct push_target *target,
		  struct push_sink **ret_sink)
{
	struct push_sink *sink = calloc(1, sizeof(*sink));
	int err;

	if (!sink)
		return -ENOMEM;
	sink->options = *options;
	if (!sink->options.poll_ms)
		sink->options.poll_ms = PUSH_POLL_MS;
	sink->target = target;
	sink->queue.directory = options->store;
	sink->queue.kind_bits = target->kind_bits;
	sink->encoding = (struct push_encoding){.collector = target->collector,
						.is_packed = target->is_packed,
						.host = options->host,
						.labels.count = target->label_count,
						.labels.rules = target->rules};
	for (size_t i = 0; i < target->label_count; i++)
		sink->encoding.labels.key[i] = target->label[i];
	push_counters_init(&sink->counters, target->name);
	sink->counters.stats.sent_end_ms = now_ms();
	init_lock(sink);
	err = new_client(sink);
	if (!err)
		err = start_thread(sink);
	if (err) {
		release(sink);
		return err;
	}
	*ret_sink = sink;
	return 0;
}

void push_sink_end(struct push_sink *sink)
{
	pthread_mutex_lock(&sink->mutex);
	sink->has_to_end = true;
	pthread_cond_signal(&sink->has_to_wake);
	pthread_mutex_unlock(&sink->mutex);
}

void push_sink_join(struct push_sink *sink)
{
	struct timespec until;

	if (sink->has_ended)
		return;
	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec += PUSH_END_MS / 1000;
	if (pthread_clockjoin_np(sink->thread, NULL, CLOCK_MONOTONIC, &until)) {
		atomic_store(&sink->has_to_stop, true);
		pthread_join(sink->thread, NULL);
	}
	sink->has_ended = true;
}

void push_sink_free(struct push_sink *sink)
{
	if (!sink)
		return;
	push_sink_end(sink);
	push_sink_join(sink);
	push_target_free(sink->target);
	release(sink);
}

void push_sink_get_stats(struct push_sink *sink, struct push_stats *ret_stats)
{
	push_counters_get(&sink->counters, ret_stats);
}
