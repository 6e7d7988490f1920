/* SPDX-License-Identifier: BSD-2-Clause */
#include "doctor/findings.h"

#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

#include "base/cleanup.h"
#include "config/secret.h"

#define LOOK_UP_S 5
#define CONNECT_MS 3000
#define ADDRESSES_MAX 4U /* of one name */
#define CERTIFICATE_MAX_BYTES (1U << 20)
#define PEM_BEGIN "-----BEGIN CERTIFICATE-----"
#define NAME_BYTES 64U

/* Of a URL. */
struct endpoint {
	char host[CONFIG_HOST_BYTES];
	char port[8];
};

/* The URL is one that config_push() has checked, or a proxy's, which may have a user and other
 * schemes.  Returns false when it names no host or no port that can be told. */
static bool find_endpoint(const char *url, struct endpoint *ret_endpoint)
{
	const char *scheme_end = strstr(url, "://"), *host, *end, *at, *colon;
	const bool is_tls = !strncmp(url, "https:", 6);
	size_t size;

	host = scheme_end ? scheme_end + 3 : url;
	end = host + strcspn(host, "/?#");
	at = memrchr(host, '@', (size_t)(end - host));
	if (at)
		host = at + 1;
	colon = memrchr(host, ':', (size_t)(end - host));
	if (colon && memchr(colon, ']', (size_t)(end - colon)))
		colon = NULL; /* inside of an IPv6 address */
	size = (size_t)((colon ?: end) - host);
	if (size >= 2 && host[0] == '[' && host[size - 1] == ']') {
		host++;
		size -= 2;
	}
	if (!size || size >= sizeof(ret_endpoint->host) ||
	    (colon && (size_t)(end - colon - 1) >= sizeof(ret_endpoint->port)))
		return false;
	snprintf(ret_endpoint->host, sizeof(ret_endpoint->host), "%.*s", (int)size, host);
	if (colon)
		snprintf(ret_endpoint->port, sizeof(ret_endpoint->port), "%.*s",
			 (int)(end - colon - 1), colon + 1);
	else
		snprintf(ret_endpoint->port, sizeof(ret_endpoint->port), is_tls ? "443" : "80");
	return true;
}

/* A question to the resolver, whose thread may use it for longer than we wait. */
struct look_up {
	struct gaicb request;
	struct addrinfo hints;
	struct endpoint endpoint;
};

/* Looks a name up, within LOOK_UP_S.  Returns 0, an EAI_ error, or EAI_INPROGRESS: no answer. */
static int look_up(const struct endpoint *endpoint, struct addrinfo **ret_addresses)
{
	const struct timespec limit = {.tv_sec = LOOK_UP_S};
	struct look_up *question = calloc(1, sizeof(*question));
	const struct gaicb *wait[1];
	struct gaicb *list[1];
	int err;

	if (!question)
		return EAI_MEMORY;
	question->endpoint = *endpoint;
	question->hints = (struct addrinfo){.ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV};
	question->request = (struct gaicb){.ar_name = question->endpoint.host,
					   .ar_service = question->endpoint.port,
					   .ar_request = &question->hints};
	wait[0] = list[0] = &question->request;
	err = getaddrinfo_a(GAI_NOWAIT, list, 1, NULL);
	if (!err) {
		(void)gai_suspend(wait, 1, &limit);
		err = gai_error(&question->request);
	}
	if (err == EAI_INPROGRESS && gai_cancel(&question->request) == EAI_NOTCANCELED)
		return err; /* the program ends before long, and the thread with it */
	if (!err)
		*ret_addresses = question->request.ar_result;
	free(question);
	return err;
}

/* Connects, and sends nothing.  Returns 0 or -errno. */
static int try_address(const struct addrinfo *address)
{
	OWNED_FD int fd =
		socket(address->ai_family, address->ai_socktype | SOCK_CLOEXEC | SOCK_NONBLOCK,
		       address->ai_protocol);
	struct pollfd ready = {.fd = fd, .events = POLLOUT};
	socklen_t size = sizeof(int);
	int err = 0;

	if (fd < 0)
		return -errno;
	if (!connect(fd, address->ai_addr, address->ai_addrlen))
		return 0;
	if (errno != EINPROGRESS)
		return -errno;
	if (poll(&ready, 1, CONNECT_MS) <= 0)
		return -ETIMEDOUT;
	if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &err, &size))
		return -errno;
	return -err;
}

/* Tries the first addresses of a name until one answers. */
static int try_addresses(const struct addrinfo *addresses)
{
	int err = -EADDRNOTAVAIL;

	for (unsigned int i = 0; addresses && err && i < ADDRESSES_MAX; i++) {
		err = try_address(addresses);
		addresses = addresses->ai_next;
	}
	return err;
}

static void check_endpoint(struct findings *findings, const char *name, const char *url,
			   const char *what)
{
	struct addrinfo *addresses = NULL;
	struct endpoint endpoint;
	int err;

	if (!find_endpoint(url, &endpoint)) {
		findings_add(findings, FINDING_FAIL, name, "the %s's URL names no host", what);
		return;
	}
	err = look_up(&endpoint, &addresses);
	if (err) {
		findings_add(findings, FINDING_FAIL, name, "the %s '%s' is not found: %s", what,
			     endpoint.host,
			     err == EAI_INPROGRESS ? "the name server does not answer"
						   : gai_strerror(err));
		return;
	}
	err = try_addresses(addresses);
	freeaddrinfo(addresses);
	if (err)
		findings_add(findings, FINDING_FAIL, name, "the %s %s port %s: %s", what,
			     endpoint.host, endpoint.port, strerror(-err));
	else
		findings_add(findings, FINDING_OK, name, "the %s %s answers at port %s", what,
			     endpoint.host, endpoint.port);
}

/* A token itself is looked at, as the server does, and forgotten. */
static void check_secret(struct findings *findings, const char *name,
			 const struct config_value *file, bool is_token)
{
	char why[CONFIG_WHY_BYTES] = "no memory";
	char *token = NULL;
	int err;

	if (!file->text)
		return;
	err = is_token ? config_read_token(file->text, config_server_user(), &token, why)
		       : config_check_secret(file->text, config_server_user(), why);
	if (token)
		explicit_bzero(token, strlen(token));
	free(token);
	if (err)
		findings_add(findings, FINDING_FAIL, name, "%s: %s", file->key->name, why);
	else
		findings_add(findings, FINDING_OK, name, "%s '%s' is kept from other users",
			     file->key->name, file->text);
}

static void check_certificate(struct findings *findings, const char *name,
			      const struct config_value *given)
{
	struct plain_file file = {0};
	int err;

	if (!given->text)
		return;
	err = plain_file_read(given->text, CERTIFICATE_MAX_BYTES, &file);
	if (err)
		findings_add(findings, FINDING_FAIL, name, "%s '%s': %s", given->key->name,
			     given->text, strerror(-err));
	else if (!strstr(file.text, PEM_BEGIN))
		findings_add(findings, FINDING_FAIL, name, "%s '%s' has no certificate in PEM",
			     given->key->name, given->text);
	else
		findings_add(findings, FINDING_OK, name, "%s '%s' has a certificate",
			     given->key->name, given->text);
	free(file.text);
}

static void check_http(struct findings *findings, const struct config *config)
{
	char why[CONFIG_WHY_BYTES];
	struct config_http http;

	if (config_http(config, &http, why))
		return; /* options_parse() has checked it: there is none */
	check_secret(findings, "http", &http.token_file, true);
	check_secret(findings, "http", &http.key, false);
	check_certificate(findings, "http", &http.cert);
	check_certificate(findings, "http", &http.client_ca);
}

static void check_push(struct findings *findings, const struct config_push *push)
{
	char name[NAME_BYTES];

	snprintf(name, sizeof(name), "push %s", push->section);
	check_secret(findings, name, &push->token_file, false);
	check_secret(findings, name, &push->key, false);
	check_certificate(findings, name, &push->cert);
	check_certificate(findings, name, &push->ca);
	if (!push->url.text)
		findings_add(findings, FINDING_WARN, name,
			     "no url=: pyprofd-serve takes OTEL_EXPORTER_OTLP_ENDPOINT, if it has "
			     "it");
	else if (push->proxy.text)
		check_endpoint(findings, name, push->proxy.text, "proxy");
	else
		check_endpoint(findings, name, push->url.text, "collector");
}

void doctor_sinks(struct findings *findings, const struct config *config)
{
	char why[CONFIG_WHY_BYTES];
	struct config_push push;

	check_http(findings, config);
	for (size_t i = 0; !config_push(config, i, &push, why); i++)
		check_push(findings, &push);
}
