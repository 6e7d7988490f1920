/* SPDX-License-Identifier: BSD-2-Clause */
#include "collectors/http_client.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <curl/curl.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"
#include "config/secret.h"
#include "config/url.h"

#define LOW_SPEED_BYTES 1L
#define SHOWN_BYTES (HTTP_CLIENT_FAULT_BYTES / 2) /* of a body, before it is cleaned */

struct http_client {
	CURL *curl;
	struct http_client_options options;
	char *token;				   /* owned; NULL: none, or not read yet */
	const struct http_client_request *request; /* the one that is sent */
	struct http_client_reply *reply;
	char head[SHOWN_BYTES]; /* of the answer's body */
	size_t head_size;
	bool was_left;
	char error[CURL_ERROR_SIZE];
};

/* The text may be a secret. */
static void forget(char **text)
{
	if (*text)
		explicit_bzero(*text, strlen(*text));
	free(TAKE(*text));
}

void http_identity_release(struct http_identity *identity)
{
	char **const text[] = {&identity->token_file, &identity->token, &identity->user,
			       &identity->ca,	      &identity->cert,	&identity->key,
			       &identity->proxy,      &identity->tenant};

	for (size_t i = 0; i < ARRAY_SIZE(text); i++)
		forget(text[i]);
	for (size_t i = 0; i < identity->header_count; i++)
		forget(&identity->header[i]);
	identity->header_count = 0;
}

void http_client_free(struct http_client *client)
{
	if (!client)
		return;
	curl_easy_cleanup(client->curl);
	forget(&client->token);
	free(client);
}

/* ---- what comes back ---- */

static unsigned int status_of(const struct http_client *client)
{
	long status = 0;

	curl_easy_getinfo(client->curl, CURLINFO_RESPONSE_CODE, &status);
	return (unsigned int)status;
}

static size_t take_body(char *bytes, size_t one, size_t size, void *context)
{
	struct http_client *client = context;
	const struct http_client_request *request = client->request;
	const size_t room = sizeof(client->head) - client->head_size;

	(void)one;
	memcpy(client->head + client->head_size, bytes, size < room ? size : room);
	client->head_size += size < room ? size : room;
	if (!request->take(request->context, status_of(client), bytes, size))
		return size;
	client->was_left = true;
	return 0;
}

/* curl calls this at least once a second. */
static int look_for_end(void *context, curl_off_t down_total, curl_off_t down, curl_off_t up_total,
			curl_off_t up)
{
	const struct http_client *client = context;

	(void)down_total;
	(void)down;
	(void)up_total;
	(void)up;
	return client->options.has_to_stop && atomic_load(client->options.has_to_stop);
}

static enum http_client_end end_of(const struct http_client *client, CURLcode code)
{
	curl_off_t sent = 0;

	switch (code) {
	case CURLE_OK:
		return HTTP_CLIENT_ANSWERED;
	case CURLE_PEER_FAILED_VERIFICATION:
	case CURLE_SSL_CERTPROBLEM:
	case CURLE_SSL_CACERT_BADFILE:
	case CURLE_SSL_ISSUER_ERROR:
		return HTTP_CLIENT_BAD_TLS;
	default:
		break;
	}
	if (client->was_left)
		return HTTP_CLIENT_LEFT;
	curl_easy_getinfo(client->curl, CURLINFO_SIZE_UPLOAD_T, &sent);
	return sent > 0 || status_of(client) ? HTTP_CLIENT_CUT_OFF : HTTP_CLIENT_NOT_SENT;
}

/* Makes one clean line of what went wrong. */
static void tell(struct http_client *client, CURLcode code)
{
	struct http_client_reply *reply = client->reply;
	char clean[HTTP_CLIENT_FAULT_BYTES * UTF8_CLEAN_MAX_GROWTH];
	char *location = NULL, shown[CONFIG_URL_SHOWN_BYTES];
	size_t size;

	if (reply->end != HTTP_CLIENT_ANSWERED) {
		snprintf(reply->fault, sizeof(reply->fault), "%s",
			 client->error[0] ? client->error : curl_easy_strerror(code));
		return;
	}
	if (reply->status >= 300 && reply->status < 400)
		curl_easy_getinfo(client->curl, CURLINFO_REDIRECT_URL, &location);
	if (location)
		config_url_hide(location, shown);
	while (client->head_size && isspace((unsigned char)client->head[client->head_size - 1]))
		client->head_size--;
	size = location ? utf8_clean(shown, strnlen(shown, SHOWN_BYTES), clean)
			: utf8_clean(client->head, client->head_size, clean);
	snprintf(reply->fault, sizeof(reply->fault), "status %u%s%.*s", reply->status,
		 location ? ", a redirect, which is not followed, to "
		 : size	  ? ": "
			  : "",
		 (int)size, clean);
}

/* ---- what goes out ---- */

/* Reads the token anew: whoever changes it need not tell us. */
static int read_token(struct http_client *client)
{
	const struct http_identity *as = client->options.as;
	char why[CONFIG_WHY_BYTES] = "";
	char *token = NULL;
	int err = 0;

	if (as->token_file)
		err = config_read_secret(as->token_file, &token, why);
	else if (as->token)
		err = (token = strdup(as->token)) ? 0 : -ENOMEM;
	if (err) {
		snprintf(client->reply->fault, sizeof(client->reply->fault), "%.500s", why);
		return err;
	}
	forget(&client->token);
	client->token = token;
	return 0;
}

bool http_client_has_new_token(struct http_client *client)
{
	char why[CONFIG_WHY_BYTES];
	char *token = NULL;
	bool is_new;

	if (!client->options.as->token_file ||
	    config_read_secret(client->options.as->token_file, &token, why))
		return false;
	is_new = !client->token || strcmp(client->token, token) != 0;
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

/* The header may hold a secret. */
static int add_pair(struct curl_slist **list, const char *name, const char *scheme,
		    const char *value)
{
	OWNED_MEM char *header = NULL;
	int err;

	if (asprintf(&header, "%s: %s%s", name, scheme, value) < 0) {
		header = NULL;
		return -ENOMEM;
	}
	err = add_header(list, header);
	explicit_bzero(header, strlen(header));
	return err;
}

static int make_headers(const struct http_client *client, const struct http_client_request *request,
			struct curl_slist **list)
{
	const struct http_identity *as = client->options.as;
	/* curl would wait for a permission that no server gives. */
	int err = add_header(list, "Expect:");

	for (size_t i = 0; !err && request->header && request->header[i]; i++)
		err = add_header(list, request->header[i]);
	if (!err && as->tenant)
		err = add_pair(list, "X-Scope-OrgID", "", as->tenant);
	if (!err && client->token && !as->user)
		err = add_pair(list, "Authorization", "Bearer ", client->token);
	for (size_t i = 0; !err && i < as->header_count; i++)
		err = add_header(list, as->header[i]);
	return err;
}

static bool is_loopback(const char *host)
{
	struct in_addr address;

	return !strcasecmp(host, "localhost") || !strcmp(host, "[::1]") ||
	       (inet_pton(AF_INET, host, &address) == 1 &&
		ntohl(address.s_addr) >> IN_CLASSA_NSHIFT == IN_LOOPBACKNET);
}

/* Whether the environment's proxy (http_proxy and the like) is not for this URL: without TLS it
 * would read the token, and to this machine itself there is none on the way. */
static bool passes_proxy(const struct http_client *client, const char *url)
{
	const struct http_identity *as = client->options.as;
	CURLU *parts = curl_url();
	char *scheme = NULL, *host = NULL;
	bool passes = true; /* where curl does not know the URL, it does not send the request */

	if (parts && !curl_url_set(parts, CURLUPART_URL, url, 0) &&
	    !curl_url_get(parts, CURLUPART_SCHEME, &scheme, 0) &&
	    !curl_url_get(parts, CURLUPART_HOST, &host, 0))
		passes = is_loopback(host) ||
			 (!strcmp(scheme, "http") &&
			  (client->token || as->user || as->header_count || as->tenant));
	curl_free(scheme);
	curl_free(host);
	curl_url_cleanup(parts);
	return passes;
}

static void set_request(struct http_client *client, const struct http_client_request *request,
			struct curl_slist *headers)
{
	CURL *curl = client->curl;

	client->request = request;
	client->head_size = 0;
	client->was_left = false;
	client->error[0] = '\0';
	curl_easy_setopt(curl, CURLOPT_URL, request->url);
	if (!client->options.as->proxy)
		curl_easy_setopt(curl, CURLOPT_PROXY,
				 passes_proxy(client, request->url) ? "" : NULL);
	curl_easy_setopt(curl, CURLOPT_HTTPHEADER, headers);
	if (request->body) {
		curl_easy_setopt(curl, CURLOPT_POSTFIELDS, request->body);
		curl_easy_setopt(curl, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)request->size);
	} else {
		curl_easy_setopt(curl, CURLOPT_HTTPGET, 1L);
	}
	if (client->options.as->user) {
		curl_easy_setopt(curl, CURLOPT_USERNAME, client->options.as->user);
		curl_easy_setopt(curl, CURLOPT_PASSWORD, client->token ? client->token : "");
		curl_easy_setopt(curl, CURLOPT_HTTPAUTH, CURLAUTH_BASIC);
	}
}

static void free_headers(struct curl_slist **list)
{
	struct curl_slist *item;

	for (item = *list; item; item = item->next)
		explicit_bzero(item->data, strlen(item->data));
	curl_slist_free_all(*list);
}

int http_client_send(struct http_client *client, const struct http_client_request *request,
		     struct http_client_reply *ret_reply)
{
	CLEANUP(free_headers) struct curl_slist *headers = NULL;
	curl_off_t retry_after_s = 0;
	CURLcode code;
	int err;

	*ret_reply = (struct http_client_reply){.end = HTTP_CLIENT_NOT_SENT};
	client->reply = ret_reply;
	err = read_token(client);
	if (!err)
		err = make_headers(client, request, &headers);
	if (err)
		return err;
	set_request(client, request, headers);
	code = curl_easy_perform(client->curl);
	curl_easy_setopt(client->curl, CURLOPT_HTTPHEADER, NULL);
	ret_reply->end = end_of(client, code);
	ret_reply->status = status_of(client);
	curl_easy_getinfo(client->curl, CURLINFO_RETRY_AFTER, &retry_after_s);
	if (retry_after_s > 0)
		ret_reply->retry_after_s =
			retry_after_s < UINT32_MAX ? (uint32_t)retry_after_s : UINT32_MAX;
	tell(client, code);
	return 0;
}

/* ---- the handle ---- */

static int set_peer(CURL *curl, const struct http_identity *as)
{
	if (as->ca && curl_easy_setopt(curl, CURLOPT_CAINFO, as->ca))
		return -ENOMEM;
	if (as->cert && (curl_easy_setopt(curl, CURLOPT_SSLCERT, as->cert) ||
			 curl_easy_setopt(curl, CURLOPT_SSLKEY, as->key)))
		return -ENOMEM;
	if (as->proxy && curl_easy_setopt(curl, CURLOPT_PROXY, as->proxy))
		return -ENOMEM;
	return 0;
}

static int set_options(struct http_client *client)
{
	const struct http_client_options *options = &client->options;
	CURL *curl = client->curl;

	curl_easy_setopt(curl, CURLOPT_USERAGENT, "pyprofd");
	curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
	curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https");
	curl_easy_setopt(curl, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
	curl_easy_setopt(curl, CURLOPT_FOLLOWLOCATION, 0L);
	/* On a connection that was used before, curl sends a request again by itself when that ends
	 * without an answer: it would be there twice, and nobody would count it. */
	curl_easy_setopt(curl, CURLOPT_FORBID_REUSE, options->keeps_connections ? 0L : 1L);
	curl_easy_setopt(curl, CURLOPT_NETRC, (long)CURL_NETRC_IGNORED);
	curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT_MS, HTTP_CLIENT_CONNECT_TIMEOUT_MS);
	curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, (long)options->timeout_ms);
	curl_easy_setopt(curl, CURLOPT_LOW_SPEED_LIMIT, LOW_SPEED_BYTES);
	curl_easy_setopt(curl, CURLOPT_LOW_SPEED_TIME, (long)options->idle_s);
	curl_easy_setopt(curl, CURLOPT_TCP_KEEPALIVE, 1L);
	curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, client->error);
	curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, take_body);
	curl_easy_setopt(curl, CURLOPT_WRITEDATA, client);
	curl_easy_setopt(curl, CURLOPT_NOPROGRESS, 0L);
	curl_easy_setopt(curl, CURLOPT_XFERINFOFUNCTION, look_for_end);
	curl_easy_setopt(curl, CURLOPT_XFERINFODATA, client);
	return set_peer(curl, options->as);
}

int http_client_new(const struct http_client_options *options, struct http_client **ret_client)
{
	OWNED(http_client) struct http_client *client = calloc(1, sizeof(*client));
	int err;

	if (!client)
		return -ENOMEM;
	client->options = *options;
	client->curl = curl_easy_init();
	if (!client->curl)
		return -ENOMEM;
	err = set_options(client);
	if (err)
		return err;
	*ret_client = TAKE(client);
	return 0;
}
