/* SPDX-License-Identifier: BSD-2-Clause */
#include "serve/http.h"

#include <errno.h>
#include <gnutls/gnutls.h>
#include <microhttpd.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "base/user_quota.h"
#include "base/who_answers.h"
#include "live/client.h"
#include "query/folder.h"
#include "serve/answers.h"
#include "serve/labels.h"
#include "serve/metrics.h"
#include "serve/places.h"
#include "serve/strip.h"

#define IDLE_SECONDS 30U /* of a connection, beside the bounds of http.h */
#define RETRY_AFTER "5"	 /* seconds */
#define HEADER_BYTES 256U

/* Whether pyprofd answers, as of the last time that it was asked. */
struct ready {
	pthread_mutex_t lock;
	uint64_t asked_ns; /* 0: never */
	bool is_ready;
};

struct http {
	const struct http_settings *settings;
	struct exchange_rules rules;
	struct sessions sessions; /* the daemon's thread's */
	struct MHD_Daemon *daemon;
	struct workers *watches, *merges;
	struct places *places;
	struct file_totals *totals; /* of the strip */
	struct counts counts;
	struct ready ready;
	struct user_quota answers; /* bytes of bodies that are being sent; the daemon's thread's */
	atomic_bool ends;
};

/* A request, from its headers to the end of its answer. */
struct exchange {
	struct work work; /* first: a worker gets it */
	struct http *http;
	struct MHD_Connection *connection;
	struct place *place;
	enum exchange_step step;
	bool is_answered;		 /* there is nothing to be done but to send the answer */
	char session[SESSIONS_ID_BYTES]; /* that has begun; "": none */
	struct request request;
	struct answer_view view;
	struct answer answer;
	size_t held_bytes; /* of the answer, in http->answers */
	int gone_fd;	   /* readable: the client has gone; -1: not asked */
};

/* Who answers for what an exchange takes; who sees everything is as root. */
static uid_t holder_of(const struct exchange *exchange)
{
	return exchange->view.is_of_user ? who_answers(exchange->view.uid) : 0;
}

static void exchange_free(struct exchange *exchange)
{
	if (!exchange)
		return;
	user_quota_give(&exchange->http->answers, holder_of(exchange), exchange->held_bytes);
	answer_release(&exchange->answer);
	close_owned_fd(&exchange->gone_fd);
	free(exchange);
}

/* ---- work ---- */

static bool is_answered_by(const char *live)
{
	static const struct live_request request = {.verb = LIVE_STATS};
	CLEANUP(live_client_free_owned) struct live_client *client = NULL;
	OWNED_FILE FILE *words = fopen("/dev/null", "we");

	return words && !live_client_open(live, &request, words, &client);
}

/* Anybody may ask, from other machines too, and each answer takes a place of root's at pyprofd: one
 * a second is for all. */
static void answer_ready(struct exchange *exchange)
{
	struct ready *ready = &exchange->http->ready;
	bool is_ready;

	pthread_mutex_lock(&ready->lock);
	if (!ready->asked_ns || mono_ns() - ready->asked_ns >= NS_PER_SEC) {
		ready->is_ready = is_answered_by(exchange->http->settings->sources.live);
		ready->asked_ns = mono_ns();
	}
	is_ready = ready->is_ready;
	pthread_mutex_unlock(&ready->lock);
	if (is_ready)
		answer_say(&exchange->answer, 200, "ok\n");
	else
		answer_say(&exchange->answer, 503, "pyprofd does not answer\n");
}

static void answer_metrics(struct exchange *exchange)
{
	struct http *http = exchange->http;
	const struct answer_sources *from = &http->settings->sources;
	struct extent extent = {0};
	const struct metrics_sources sources = {.live = from->live,
						.counts = &http->counts,
						.push = http->settings->push,
						.store = &extent,
						.work = workers_count(http->watches) +
							workers_count(http->merges),
						.now_ms = wall_ns() / NS_PER_MS};
	char *text;
	size_t size;

	(void)extent_read(from->store, true, &extent); /* no store: no files */
	if (metrics_text(&sources, &text, &size)) {
		answer_say(&exchange->answer, 503, "no memory\n");
		return;
	}
	exchange->answer = (struct answer){.status = 200,
					   .type = "text/plain; version=0.0.4; charset=utf-8",
					   .body = text,
					   .size = size};
}

static void answer_work(struct exchange *exchange)
{
	const struct answer_sources *sources = &exchange->http->settings->sources;
	const struct request *request = &exchange->request;
	const struct answer_view *view = &exchange->view;
	const uint64_t now_ms = wall_ns() / NS_PER_MS;

	switch (request->endpoint) {
	case REQUEST_STRIP:
		strip_answer(exchange->http->totals, sources->store, request, now_ms,
			     &exchange->answer);
		break;
	case REQUEST_LABELS:
		labels_answer(sources, request, view, now_ms, &exchange->answer);
		break;
	case REQUEST_WAITS:
		waits_answer(sources, request, view, now_ms, &exchange->answer);
		break;
	case REQUEST_FILES:
		files_list(sources->store, request, &exchange->answer);
		break;
	case REQUEST_FILE:
		files_get(sources->store, request, &exchange->answer);
		break;
	case REQUEST_METRICS:
		answer_metrics(exchange);
		break;
	case REQUEST_READY:
		answer_ready(exchange);
		break;
	case REQUEST_SELF:
		self_answer(sources->store, view, now_ms, &exchange->answer);
		break;
	default:
		profile_answer(sources, request, view, &exchange->answer);
		break;
	}
}

/* In a worker's thread.  The connection is suspended: nobody else touches the exchange. */
static void run_work(struct work *work)
{
	struct exchange *exchange = (struct exchange *)work;

	if (atomic_load(&exchange->http->ends))
		answer_say(&exchange->answer, 503, "pyprofd-serve ends\n");
	else
		answer_work(exchange);
	MHD_resume_connection(exchange->connection);
}

/* ---- answers ---- */

static void count_code(struct counts *counts, unsigned int status)
{
#define CODE(id, label) id,
	static const unsigned int codes[] = {COUNTS_CODES(CODE)};

	for (size_t i = 0; i < ARRAY_SIZE(codes); i++)
		if (codes[i] == status)
			atomic_fetch_add(&counts->code[i], 1);
}

/* Takes the body's bytes from the budget, or makes the answer a refusal. */
static void hold_bytes(struct http *http, struct exchange *exchange)
{
	struct answer *answer = &exchange->answer;
	const int err = answer->size
				? user_quota_take(&http->answers, holder_of(exchange), answer->size)
				: 0;

	if (!err) {
		exchange->held_bytes = answer->size;
		return;
	}
	atomic_fetch_add(
		&http->counts.refused[err == -EDQUOT ? COUNTS_REFUSED_SHARE : COUNTS_REFUSED_BUSY],
		1);
	answer_say(answer, 503, "too many answers are being sent: try again\n");
}

static void add_headers(const struct http *http, const struct exchange *exchange,
			struct MHD_Response *response)
{
	const struct answer *answer = &exchange->answer;
	char text[HEADER_BYTES];

	/* One request a connection: where its end can be read in two ways (two lengths, a folded
	 * header), the rest is no second one. */
	MHD_add_response_header(response, MHD_HTTP_HEADER_CONNECTION, "close");
	MHD_add_response_header(response, "Cache-Control", "no-store");
	MHD_add_response_header(response, "X-Content-Type-Options", "nosniff");
	MHD_add_response_header(response, "Content-Security-Policy",
				answer->policy ? answer->policy : PAGES_POLICY);
	MHD_add_response_header(response, "Referrer-Policy", "no-referrer");
	if (answer->type)
		MHD_add_response_header(response, "Content-Type", answer->type);
	if (answer->file_name[0]) {
		snprintf(text, sizeof(text), "attachment; filename=\"%s\"", answer->file_name);
		MHD_add_response_header(response, "Content-Disposition", text);
	}
	if (answer->status == 401)
		MHD_add_response_header(response, "WWW-Authenticate", "Bearer");
	if (answer->status == 405)
		MHD_add_response_header(response, "Allow", "GET, HEAD");
	if (answer->status == 503)
		MHD_add_response_header(response, "Retry-After", RETRY_AFTER);
	if (exchange->step != EXCHANGE_REDIRECT)
		return;
	snprintf(text, sizeof(text),
		 EXCHANGE_COOKIE "=%s; Path=/; Max-Age=%u; HttpOnly; SameSite=Strict%s",
		 exchange->session, SESSIONS_LAST_S, http->settings->cert ? "; Secure" : "");
	MHD_add_response_header(response, "Set-Cookie", text);
	MHD_add_response_header(response, "Location",
				exchange->request.endpoint == REQUEST_PAGE ? "/" : "/debug/pprof/");
}

static ssize_t give_nothing(void *context, uint64_t at, char *bytes, size_t size)
{
	(void)context, (void)at, (void)bytes, (void)size;
	return MHD_CONTENT_READER_END_OF_STREAM;
}

static enum MHD_Result send_answer(struct exchange *exchange)
{
	struct http *http = exchange->http;
	struct answer *answer = &exchange->answer;
	struct MHD_Response *response;
	enum MHD_Result result;

	hold_bytes(http, exchange);
	/* The exchange has the body until the answer is sent. */
	if (answer->is_head)
		response = MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, 1, give_nothing,
							     NULL, NULL);
	else
		response = MHD_create_response_from_buffer(answer->size, answer->body,
							   MHD_RESPMEM_PERSISTENT);
	if (!response)
		return MHD_NO;
	add_headers(http, exchange, response);
	count_code(&http->counts, answer->status);
	atomic_fetch_add(&http->counts.sent_bytes, answer->size);
	places_set(http->places, exchange->place, PLACE_READS, mono_ns());
	result = MHD_queue_response(exchange->connection, answer->status, response);
	MHD_destroy_response(response);
	return result;
}

/* ---- requests ---- */

static enum MHD_Result take_parameter(void *context, enum MHD_ValueKind kind, const char *name,
				      const char *value)
{
	struct exchange_ask *ask = context;

	(void)kind;
	if (ask->parameter_count++ < EXCHANGE_PARAMETERS_MAX)
		ask->parameter[ask->parameter_count - 1] = (struct exchange_parameter){name, value};
	return ask->parameter_count > EXCHANGE_PARAMETERS_MAX ? MHD_NO : MHD_YES;
}

static int socket_of(struct MHD_Connection *connection)
{
	const union MHD_ConnectionInfo *info =
		MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);

	return info ? info->connect_fd : -1;
}

/* Returns whether the client has shown a certificate of the configured authority. */
static bool has_certificate(const struct http *http, struct MHD_Connection *connection)
{
	const union MHD_ConnectionInfo *info;
	unsigned int status = UINT32_MAX, count = 0;

	if (!http->settings->client_ca)
		return false;
	info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_GNUTLS_SESSION);
	return info && gnutls_certificate_get_peers(info->tls_session, &count) && count &&
	       !gnutls_certificate_verify_peers2(info->tls_session, &status) && !status;
}

static void find_client(const struct http *http, struct MHD_Connection *connection,
			struct access_client *ret_client)
{
	struct access_client client = {.has_certificate = has_certificate(http, connection)};

	client.has_uid = !peer_uid(socket_of(connection), http->settings->peers, &client.uid);
	*ret_client = client;
}

/* Returns whether bytes follow the headers. */
static bool has_body(struct MHD_Connection *connection)
{
	const char *length =
		MHD_lookup_connection_value(connection, MHD_HEADER_KIND, "Content-Length");

	return (length && strcmp(length, "0") != 0) ||
	       MHD_lookup_connection_value(connection, MHD_HEADER_KIND, "Transfer-Encoding");
}

static void ask_from(const struct http *http, struct MHD_Connection *connection, const char *method,
		     const char *path, struct exchange_ask *ask)
{
	*ask = (struct exchange_ask){
		.method = method,
		.path = path,
		.host = MHD_lookup_connection_value(connection, MHD_HEADER_KIND, "Host"),
		.authorization =
			MHD_lookup_connection_value(connection, MHD_HEADER_KIND, "Authorization"),
		.cookie = MHD_lookup_connection_value(connection, MHD_COOKIE_KIND, EXCHANGE_COOKIE),
		.has_body = has_body(connection)};
	MHD_get_connection_values(connection, MHD_GET_ARGUMENT_KIND, take_parameter, ask);
	if (exchange_needs_client(path))
		find_client(http, connection, &ask->client);
}

/* Hands the exchange to a worker, whose connection rests meanwhile. */
static enum MHD_Result begin_work(struct exchange *exchange)
{
	struct http *http = exchange->http;
	const bool is_long = request_needs_work(&exchange->request);
	const bool is_merge = is_long && exchange->request.endpoint != REQUEST_LIVE &&
			      exchange->request.endpoint != REQUEST_SELF;

	exchange->work = (struct work){.run = run_work,
				       .is_of_user = exchange->view.is_of_user,
				       .uid = who_answers(exchange->view.uid)};
	if (is_long)
		exchange->gone_fd = dup(socket_of(exchange->connection));
	exchange->view.stop_fd = exchange->gone_fd;
	exchange->is_answered = true; /* when it goes on */
	places_set(http->places, exchange->place, PLACE_WAITS, mono_ns());
	MHD_suspend_connection(exchange->connection);
	if (!workers_add(is_merge ? http->merges : http->watches, &exchange->work))
		return MHD_YES;
	atomic_fetch_add(&http->counts.refused[COUNTS_REFUSED_BUSY], 1);
	answer_say(&exchange->answer, 503, "too much work at once: try again\n");
	MHD_resume_connection(exchange->connection);
	return MHD_YES;
}

static struct exchange *exchange_new(struct http *http, struct MHD_Connection *connection)
{
	const union MHD_ConnectionInfo *info =
		MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
	struct exchange *exchange = calloc(1, sizeof(*exchange));

	if (!exchange)
		return NULL;
	exchange->http = http;
	exchange->connection = connection;
	exchange->place = info ? info->socket_context : NULL;
	exchange->gone_fd = -1;
	if (exchange->place)
		return exchange;
	exchange_free(exchange);
	return NULL;
}

/* The token itself stays out of the cookie. */
static void begin_session(struct exchange *exchange, const struct access_client *client)
{
	if (!sessions_begin(&exchange->http->sessions, client, wall_ns() / NS_PER_MS,
			    exchange->session)) {
		answer_say(&exchange->answer, 303, "see without the token\n");
		return;
	}
	exchange->step = EXCHANGE_ANSWER;
	answer_say(&exchange->answer, 503, "no random bytes: try again\n");
}

static enum MHD_Result on_request(void *context, struct MHD_Connection *connection,
				  const char *path, const char *method, const char *version,
				  const char *body, size_t *body_bytes, void **held)
{
	struct http *http = context;
	struct exchange *exchange = *held;
	struct exchange_ask ask;

	(void)version, (void)body, (void)body_bytes;
	/* An answer at the first call closes the connection behind it, and a body is not read. */
	if (exchange)
		return exchange->is_answered ? send_answer(exchange) : begin_work(exchange);
	exchange = exchange_new(http, connection);
	if (!exchange)
		return MHD_NO;
	*held = exchange; /* freed by on_completed() */
	ask_from(http, connection, method, path, &ask);
	exchange->step = exchange_begin(&ask, &http->rules, wall_ns() / NS_PER_MS, &http->counts,
					&exchange->request, &exchange->view, &exchange->answer);
	if (!exchange->view.is_of_user)
		places_trust(http->places, exchange->place);
	if (exchange->step == EXCHANGE_REDIRECT)
		begin_session(exchange, &ask.client);
	exchange->is_answered =
		exchange->step == EXCHANGE_ANSWER || exchange->step == EXCHANGE_REDIRECT;
	return ask.has_body ? send_answer(exchange) : MHD_YES;
}

static void on_completed(void *context, struct MHD_Connection *connection, void **held,
			 enum MHD_RequestTerminationCode code)
{
	struct http *http = context;
	struct exchange *exchange = *held;

	(void)connection, (void)code;
	if (!exchange)
		return;
	places_set(http->places, exchange->place, PLACE_ASKS, mono_ns());
	exchange_free(exchange);
	*held = NULL;
}

/* Takes a place for a client, or ends the connection.  All sockets are read only to find a client
 * that has asked for something (peer.h): until then it is nobody's. */
static struct place *take_place(const struct http *http, int fd)
{
	uid_t uid = PLACES_NOBODY;
	struct place *place;

	if (http->settings->peers == PEER_SOCK_DIAG)
		(void)peer_uid(fd, PEER_SOCK_DIAG, &uid);
	place = places_take(http->places, fd, who_answers(uid), mono_ns());
	if (!place)
		(void)shutdown(fd, SHUT_RDWR);
	return place;
}

static void on_connection(void *context, struct MHD_Connection *connection, void **place,
			  enum MHD_ConnectionNotificationCode code)
{
	struct http *http = context;

	if (code == MHD_CONNECTION_NOTIFY_STARTED)
		*place = take_place(http, socket_of(connection));
	else if (*place)
		places_leave(http->places, *place);
}

/* ---- the server ---- */

/* Refuses clients that come while the server ends. */
static enum MHD_Result on_client(void *context, const struct sockaddr *address, socklen_t size)
{
	(void)address, (void)size;
	return atomic_load(&((struct http *)context)->ends) ? MHD_NO : MHD_YES;
}

static void on_log(void *context, const char *format, va_list args)
{
	(void)context, (void)format, (void)args; /* what a client did wrong is counted */
}

/* listen_fd: the daemon closes it at its end. */
static struct MHD_Daemon *start(struct http *http, int listen_fd)
{
	const struct http_settings *settings = http->settings;
	struct MHD_OptionItem tls[] = {{MHD_OPTION_HTTPS_MEM_CERT, 0, (void *)settings->cert},
				       {MHD_OPTION_HTTPS_MEM_KEY, 0, (void *)settings->key},
				       {settings->client_ca ? MHD_OPTION_HTTPS_MEM_TRUST
							    : MHD_OPTION_END,
					0, (void *)settings->client_ca},
				       {MHD_OPTION_END, 0, NULL}};
	const unsigned int flags = MHD_USE_EPOLL_INTERNAL_THREAD | MHD_ALLOW_SUSPEND_RESUME |
				   MHD_USE_ERROR_LOG | (settings->cert ? MHD_USE_TLS : 0);

	return MHD_start_daemon(flags, 0, on_client, http, on_request, http,
				/* The logger goes first: it hears of the options behind it. */
				MHD_OPTION_EXTERNAL_LOGGER, on_log, NULL,		       /* */
				MHD_OPTION_LISTEN_SOCKET, listen_fd,			       /* */
				MHD_OPTION_CONNECTION_LIMIT, PLACES_ALL(HTTP_CONNECTIONS_MAX), /* */
				MHD_OPTION_CONNECTION_MEMORY_LIMIT,
				(size_t)HTTP_CONNECTION_BYTES,			   /* */
				MHD_OPTION_CONNECTION_TIMEOUT, IDLE_SECONDS,	   /* */
				MHD_OPTION_STRICT_FOR_CLIENT, 1,		   /* */
				MHD_OPTION_NOTIFY_COMPLETED, on_completed, http,   /* */
				MHD_OPTION_NOTIFY_CONNECTION, on_connection, http, /* */
				MHD_OPTION_ARRAY,
				settings->cert ? tls : tls + ARRAY_SIZE(tls) - 1, /* */
				MHD_OPTION_END);
}

int http_open(const struct http_settings *settings, struct http **ret_http)
{
	OWNED(http) struct http *http = calloc(1, sizeof(*http));
	int listen_fd, err;

	if (!http)
		return -ENOMEM;
	http->settings = settings;
	http->answers.total = HTTP_ANSWERS_MAX_BYTES;
	pthread_mutex_init(&http->ready.lock, NULL);
	http->rules = settings->rules;
	http->rules.sessions = &http->sessions;
	err = places_new(HTTP_CONNECTIONS_MAX, &http->counts, &http->places);
	if (!err)
		err = file_totals_new(FILE_TOTALS_WINDOWS_MAX, &http->totals);
	if (!err)
		err = workers_new(HTTP_WATCHES_MAX, 0, &http->watches);
	if (!err)
		err = workers_new(HTTP_MERGES_MAX, HTTP_MERGES_WAITING, &http->merges);
	if (err)
		return err;
	listen_fd = dup(settings->listen_fd);
	if (listen_fd < 0)
		return -errno;
	http->daemon = start(http, listen_fd);
	if (!http->daemon) {
		close(listen_fd);
		return settings->cert ? -EINVAL : -EIO;
	}
	*ret_http = TAKE(http);
	return 0;
}

void http_close(struct http *http)
{
	if (!http)
		return;
	atomic_store(&http->ends, true);
	/* Closed sockets end the wait for windows; a worker resumes its connection, as it must be
	 * before the daemon stops. */
	if (http->places)
		places_close(http->places);
	if (http->watches)
		workers_end(http->watches);
	if (http->merges)
		workers_end(http->merges);
	if (http->daemon)
		MHD_stop_daemon(http->daemon);
	workers_free(http->watches);
	workers_free(http->merges);
	places_free(http->places);
	user_quota_release(&http->answers);
	file_totals_free(http->totals);
	free(http);
}

void http_sweep(struct http *http, uint64_t now_ns)
{
	places_sweep(http->places, now_ns);
}
