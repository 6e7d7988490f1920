/* SPDX-License-Identifier: BSD-2-Clause */
#include "push/http.h"

#include <curl/curl.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "config/secret.h"

#define RETRY_AFTER "retry-after:"
#define RETRY_AFTER_BYTES 64U
/* A collector that takes less than this for so long hangs. */
#define LOW_SPEED_BYTES 1L
#define LOW_SPEED_SECONDS 20L

struct push_http {
	CURL *curl;
	const struct push_target *target;
	const atomic_bool *has_to_stop;
	char *token; /* owned; NULL: none, or not read yet */
	char body[PUSH_ANSWER_MAX_BYTES];
	size_t body_size;
	char retry_after[RETRY_AFTER_BYTES];
	char error[CURL_ERROR_SIZE];
};

static void forget(char **token)
{
	if (*token)
		explicit_bzero(*token, strlen(*token));
	free(*token);
	*token = NULL;
}

void push_http_free(struct push_http *http)
{
	if (!http)
		return;
	curl_easy_cleanup(http->curl);
	forget(&http->token);
	free(http);
}

/* ---- what comes back ---- */

static size_t take_body(char *bytes, size_t one, size_t size, void *context)
{
	struct push_http *http = context;
	size_t room = sizeof(http->body) - 1 - http->body_size;

	(void)one;
	memcpy(http->body + http->body_size, bytes, size < room ? size : room);
	http->body_size += size < room ? size : room;
	return size;
}

static size_t take_header(char *bytes, size_t one, size_t size, void *context)
{
	struct push_http *http = context;
	size_t value;

	(void)one;
	if (size <= strlen(RETRY_AFTER) || strncasecmp(bytes, RETRY_AFTER, strlen(RETRY_AFTER)))
		return size;
	value = size - strlen(RETRY_AFTER);
	if (value >= sizeof(http->retry_after))
		return size;
	memcpy(http->retry_after, bytes + strlen(RETRY_AFTER), value);
	http->retry_after[value] = '\0';
	http->retry_after[strcspn(http->retry_after, "\r\n")] = '\0';
	return size;
}

/* curl calls this at least once a second. */
static int look_for_end(void *context, curl_off_t down_total, curl_off_t down, curl_off_t up_total,
			curl_off_t up)
{
	const struct push_http *http = context;

	(void)down_total;
	(void)down;
	(void)up_total;
	(void)up;
	return atomic_load(http->has_to_stop);
}

static enum push_failure failure_of(CURL *curl, CURLcode code)
{
	curl_off_t sent = 0;

	switch (code) {
	case CURLE_OK:
		return PUSH_ANSWERED;
	case CURLE_PEER_FAILED_VERIFICATION:
	case CURLE_SSL_CERTPROBLEM:
	case CURLE_SSL_CACERT_BADFILE:
	case CURLE_SSL_ISSUER_ERROR:
		return PUSH_BAD_TLS;
	default:
		curl_easy_getinfo(curl, CURLINFO_SIZE_UPLOAD_T, &sent);
		return sent > 0 ? PUSH_CUT_OFF : PUSH_NOT_SENT;
	}
}

/* Makes one clean line of what went wrong. */
static void tell(struct push_http *http, const struct push_answer *answer, CURLcode code,
		 char fault[PUSH_FAULT_BYTES])
{
	char clean[PUSH_FAULT_BYTES / 2 * UTF8_CLEAN_MAX_GROWTH];
	size_t size = answer->body_size < PUSH_FAULT_BYTES / 2 ? answer->body_size
							       : PUSH_FAULT_BYTES / 2;
	char *location = NULL, shown[CONFIG_URL_SHOWN_BYTES];

	if (answer->failure != PUSH_ANSWERED) {
		snprintf(fault, PUSH_FAULT_BYTES, "%s",
			 http->error[0] ? http->error : curl_easy_strerror(code));
		return;
	}
	if (answer->status >= 300 && answer->status < 400)
		curl_easy_getinfo(http->curl, CURLINFO_REDIRECT_URL, &location);
	if (location)
		config_url_hide(location, shown);
	size = utf8_clean(location ? shown : answer->body,
			  location ? strnlen(shown, PUSH_FAULT_BYTES / 2) : size, clean);
	snprintf(fault, PUSH_FAULT_BYTES, "status %u%s%.*s", answer->status,
		 location ? ", a redirect, which is not followed, to " : size ? ": " : "",
		 (int)size, clean);
}

/* ---- what goes out ---- */

/* Reads the token anew: whoever changes it need not tell us. */
static int read_token(struct push_http *http, char fault[PUSH_FAULT_BYTES])
{
	const struct push_target *target = http->target;
	char why[CONFIG_WHY_BYTES] = "";
	char *token = NULL;
	int err = 0;

	if (target->token_file)
		err = config_read_secret(target->token_file, &token, why);
	else if (target->token)
		err = (token = strdup(target->token)) ? 0 : -ENOMEM;
	if (err) {
		snprintf(fault, PUSH_FAULT_BYTES, "%.500s", why);
		return err;
	}
	forget(&http->token);
	http->token = token;
	return 0;
}

bool push_http_has_new_token(struct push_http *http)
{
	char why[CONFIG_WHY_BYTES];
	char *token = NULL;
	bool is_new;

	if (!http->target->token_file ||
	    config_read_secret(http->target->token_file, &token, why))
		return false;
	is_new = !http->token || strcmp(http->token, token) != 0;
	forget(&token);
	return is_new;
}

static int add_header(struct curl_slist **list, const char *header)
{
	struct curl_slist *longer = curl_slist_append(*list, header);

	if (!longer)
		return -ENOMEM;
	*list = longer;
	return 0;
}

static int add_pair(struct curl_slist **list, const char *name, const char *value)
{
	OWNED_MEM char *header = NULL;

	if (asprintf(&header, "%s: %s", name, value) < 0) {
		header = NULL;
		return -ENOMEM;
	}
	return add_header(list, header);
}

static int make_headers(const struct push_http *http, struct curl_slist **list)
{
	const struct push_target *target = http->target;
	int err = add_pair(list, "Content-Type", push_content_type(target->protocol));

	/* curl would wait for a permission that no collector gives. */
	if (!err)
		err = add_header(list, "Expect:");
	if (!err && target->protocol == PUSH_OTLP && target->packs_otlp)
		err = add_pair(list, "Content-Encoding", "gzip");
	if (!err && target->protocol == PUSH_PYROSCOPE)
		err = add_pair(list, "Connect-Protocol-Version", "1");
	if (!err && target->tenant)
		err = add_pair(list, "X-Scope-OrgID", target->tenant);
	if (!err && http->token && !target->user) {
		OWNED_MEM char *bearer = NULL;

		if (asprintf(&bearer, "Bearer %s", http->token) < 0) {
			bearer = NULL;
			return -ENOMEM;
		}
		err = add_pair(list, "Authorization", bearer);
		explicit_bzero(bearer, strlen(bearer));
	}
	for (size_t i = 0; !err && i < target->header_count; i++)
		err = add_header(list, target->header[i]);
	return err;
}

static void set_request(struct push_http *http, const struct push_request *request,
			struct curl_slist *headers)
{
	CURL *curl = http->curl;

	curl_easy_setopt(curl, CURLOPT_HTTPHEADER, headers);
	curl_easy_setopt(curl, CURLOPT_POSTFIELDS, request->body);
	curl_easy_setopt(curl, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)request->size);
	if (http->target->user) {
		curl_easy_setopt(curl, CURLOPT_USERNAME, http->target->user);
		curl_easy_setopt(curl, CURLOPT_PASSWORD, http->token ? http->token : "");
		curl_easy_setopt(curl, CURLOPT_HTTPAUTH, CURLAUTH_BASIC);
	}
	http->body_size = 0;
	http->retry_after[0] = '\0';
	http->error[0] = '\0';
}

static void free_headers(struct curl_slist **list)
{
	struct curl_slist *item;

	for (item = *list; item; item = item->next)
		explicit_bzero(item->data, strlen(item->data));
	curl_slist_free_all(*list);
}

int push_http_post(struct push_http *http, const struct push_request *request,
		   struct push_reply *ret_reply)
{
	CLEANUP(free_headers) struct curl_slist *headers = NULL;
	struct push_reply *reply = ret_reply;
	long status = 0;
	CURLcode code;
	int err;

	*reply = (struct push_reply){.answer = {.failure = PUSH_NOT_SENT, .body = ""}};
	err = read_token(http, reply->fault);
	if (!err)
		err = make_headers(http, &headers);
	if (err)
		return err;
	set_request(http, request, headers);
	code = curl_easy_perform(http->curl);
	curl_easy_setopt(http->curl, CURLOPT_HTTPHEADER, NULL);
	http->body[http->body_size] = '\0';
	curl_easy_getinfo(http->curl, CURLINFO_RESPONSE_CODE, &status);
	reply->answer = (struct push_answer){.failure = failure_of(http->curl, code),
					     .status = (unsigned int)status,
					     .body = http->body,
					     .body_size = http->body_size};
	reply->retry_after_ms = push_retry_after_ms(http->retry_after, (int64_t)time(NULL));
	tell(http, &reply->answer, code, reply->fault);
	return 0;
}

/* ---- the handle ---- */

static int set_options(struct push_http *http)
{
	const struct push_target *target = http->target;
	CURL *curl = http->curl;

	curl_easy_setopt(curl, CURLOPT_URL, target->url);
	curl_easy_setopt(curl, CURLOPT_USERAGENT, "pyprofd");
	curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
	curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https");
	curl_easy_setopt(curl, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
	curl_easy_setopt(curl, CURLOPT_FOLLOWLOCATION, 0L);
	/* On a connection that was used before, curl sends a request again by itself when that ends
	 * without an answer: it would be there twice, and nobody would count it. */
	curl_easy_setopt(curl, CURLOPT_FORBID_REUSE, 1L);
	curl_easy_setopt(curl, CURLOPT_NETRC, (long)CURL_NETRC_IGNORED);
	curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT_MS, PUSH_CONNECT_TIMEOUT_MS);
	curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, (long)target->timeout_ms);
	curl_easy_setopt(curl, CURLOPT_LOW_SPEED_LIMIT, LOW_SPEED_BYTES);
	curl_easy_setopt(curl, CURLOPT_LOW_SPEED_TIME, LOW_SPEED_SECONDS);
	curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, http->error);
	curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, take_body);
	curl_easy_setopt(curl, CURLOPT_WRITEDATA, http);
	curl_easy_setopt(curl, CURLOPT_HEADERFUNCTION, take_header);
	curl_easy_setopt(curl, CURLOPT_HEADERDATA, http);
	curl_easy_setopt(curl, CURLOPT_NOPROGRESS, 0L);
	curl_easy_setopt(curl, CURLOPT_XFERINFOFUNCTION, look_for_end);
	curl_easy_setopt(curl, CURLOPT_XFERINFODATA, http);
	if (target->ca && curl_easy_setopt(curl, CURLOPT_CAINFO, target->ca))
		return -ENOMEM;
	if (target->cert && (curl_easy_setopt(curl, CURLOPT_SSLCERT, target->cert) ||
			     curl_easy_setopt(curl, CURLOPT_SSLKEY, target->key)))
		return -ENOMEM;
	if (target->proxy && curl_easy_setopt(curl, CURLOPT_PROXY, target->proxy))
		return -ENOMEM;
	return 0;
}

int push_http_new(const struct push_target *target, const atomic_bool *has_to_stop,
		  struct push_http **ret_http)
{
	OWNED(push_http) struct push_http *http = calloc(1, sizeof(*http));
	int err;

	if (!http)
		return -ENOMEM;
	http->target = target;
	http->has_to_stop = has_to_stop;
	http->curl = curl_easy_init();
	if (!http->curl)
		return -ENOMEM;
	err = set_options(http);
	if (err)
		return err;
	*ret_http = TAKE(http);
	return 0;
}
