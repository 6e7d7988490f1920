/* SPDX-License-Identifier: BSD-2-Clause */
/* The sections of pyprofd-serve: [http] and [push NAME], as typed structs. */
#include <arpa/inet.h>
#include <errno.h>
#include <string.h>

#include "base/kinds.h"
#include "base/text.h"
#include "config/config.h"
#include "config/relabel.h"
#include "config/section.h"
#include "config/url.h"

#define UNIX_PREFIX "unix:"
/* A value, and "push.NAME.KEY=" in front of it. */
#define CONFIG_HANDED_LINE_BYTES (CONFIG_VALUE_MAX_BYTES + 128U)
#define UNIX_PATH_BYTES 108U /* of a socket, its NUL included: unix(7) */

/* Returns whether it is a numeric address. */
static bool is_address(const char *host, bool *ret_is_loopback)
{
	struct in6_addr six;
	struct in_addr four;

	if (inet_pton(AF_INET, host, &four) == 1)
		*ret_is_loopback = (ntohl(four.s_addr) >> 24) == 127;
	else if (inet_pton(AF_INET6, host, &six) == 1)
		*ret_is_loopback = IN6_IS_ADDR_LOOPBACK(&six);
	else
		return false;
	return true;
}

/* Parses "HOST:PORT", "[IPV6]:PORT", ":PORT" (every address) or "unix:PATH". */
static bool parse_address(const char *text, struct config_address *ret_address)
{
	struct config_address address = {0};
	const char *host = text, *colon = strrchr(text, ':');
	uint64_t port;
	size_t size;

	if (!strncmp(text, UNIX_PREFIX, strlen(UNIX_PREFIX))) {
		host = text + strlen(UNIX_PREFIX);
		if (host[0] != '/' || strlen(host) >= UNIX_PATH_BYTES)
			return false;
		address.is_unix = address.is_loopback = true;
		snprintf(address.host, sizeof(address.host), "%s", host);
		*ret_address = address;
		return true;
	}
	if (!colon || decimal_parse(colon + 1, strlen(colon + 1), &port) || !port ||
	    port > UINT16_MAX)
		return false;
	address.port = (uint16_t)port;
	size = (size_t)(colon - host);
	if (size >= 2 && host[0] == '[' && host[size - 1] == ']') {
		host++;
		size -= 2;
	}
	if (size >= sizeof(address.host))
		return false;
	snprintf(address.host, sizeof(address.host), "%.*s", (int)size, host);
	if (!size)
		snprintf(address.host, sizeof(address.host), "::");
	if (!strcmp(address.host, "localhost"))
		snprintf(address.host, sizeof(address.host), "127.0.0.1");
	if (!is_address(address.host, &address.is_loopback))
		return false;
	*ret_address = address;
	return true;
}

/* A certificate without its key, or the other way round. */
static int check_pair(const struct config_value *cert, const struct config_value *key,
		      char why[CONFIG_WHY_BYTES])
{
	if (cert->text && !key->text)
		return config_complain(cert, why, "needs its private key: give key=");
	if (key->text && !cert->text)
		return config_complain(key, why, "needs its certificate: give cert=");
	return 0;
}

/* Names that Host may say; the port there is not looked at. */
static int check_hosts(const struct config_value *host, char why[CONFIG_WHY_BYTES])
{
	static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				      "0123456789.-_";
	const char *text = host->text, *item;
	unsigned int count = 0;
	size_t size;

	while (config_next_item(&text, ',', &item, &size)) {
		if (!size || size >= CONFIG_HOST_BYTES || strspn(item, letters) < size)
			return config_complain(host, why,
					       "has '%.*s', which is no name of a host: leave "
					       "scheme, port and path out",
					       (int)(size < CONFIG_HOST_BYTES ? size : 0), item);
		if (++count > CONFIG_HOSTS_MAX)
			return config_complain(host, why, "has more than %u names",
					       CONFIG_HOSTS_MAX);
	}
	return 0;
}

#define TAKE_HTTP(id, name, field, ...) .field = section->value[CONFIG_HTTP_##id],
#define TAKE_PUSH(id, name, field, ...) .field = section->value[CONFIG_PUSH_##id],

int config_http(const struct config *config, struct config_http *ret_http,
		char why[CONFIG_WHY_BYTES])
{
	const struct config_section *section = config_find(config, CONFIG_HTTP, "");
	struct config_http http;
	int err;

	if (!section)
		return -ENOENT;
	http = (struct config_http){CONFIG_HTTP_KEYS(TAKE_HTTP)};
	if (!parse_address(http.listen.text, &http.address))
		return config_complain(&http.listen, why,
				       "is no address to listen at: give ADDRESS:PORT, "
				       "[ADDRESS]:PORT, :PORT or unix:/PATH");
	err = check_hosts(&http.host, why);
	if (!err)
		err = check_pair(&http.cert, &http.key, why);
	if (err)
		return err;
	if (http.client_ca.text && !http.cert.text)
		return config_complain(&http.client_ca, why,
				       "asks for certificates of clients, which needs TLS: give "
				       "cert= and key=");
	if (!http.address.is_loopback && !http.token_file.text && !http.client_ca.text)
		return config_complain(&http.listen, why,
				       "is open to other machines: give token-file=, or client-ca= "
				       "with cert= and key=");
	*ret_http = http;
	return 0;
}

static int parse_type(struct config_push *push, char why[CONFIG_WHY_BYTES])
{
	char names[CONFIG_WHY_BYTES / 2] = "";
	size_t size = 0;

	if (collector_find_push(push->type.text, &push->collector))
		return 0;
	for (unsigned int i = 0; i < COLLECTOR_COUNT && size < sizeof(names); i++)
		if (collector_push_path((enum collector_id)i))
			size += (size_t)snprintf(names + size, sizeof(names) - size, "%s%s",
						 size ? ", " : "",
						 collector_name((enum collector_id)i));
	return config_complain(&push->type, why, "is not known: there are %s", names);
}

static int check_url(const struct config_value *url, char why[CONFIG_WHY_BYTES])
{
	const char *fault = url->text ? config_url_fault(url->text) : NULL;
	const char *path = url->text ? config_url_own_path(url->text) : NULL;

	if (fault)
		return config_complain(url, why, "%s", fault);
	if (path)
		return config_complain(url, why,
				       "ends in the protocol's own path, which is appended: leave "
				       "'%s' out",
				       path);
	return 0;
}

static int check_proxy(const struct config_value *proxy, char why[CONFIG_WHY_BYTES])
{
	const char *fault = proxy->text ? config_url_proxy_fault(proxy->text) : NULL;

	return fault ? config_complain(proxy, why, "%s", fault) : 0;
}

static int parse_kinds(struct config_push *push, char why[CONFIG_WHY_BYTES])
{
	const char *text = push->kinds.text, *item;
	enum pp_profile kind;
	size_t size;

	while (config_next_item(&text, ',', &item, &size)) {
		if (!kind_find(item, size, &kind))
			return config_complain(&push->kinds, why,
					       "has a kind that is not known: '%.*s'", (int)size,
					       item);
		push->kind_bits |= 1U << kind;
	}
	return 0;
}

static int check_relabel(const struct config_push *push, char why[CONFIG_WHY_BYTES])
{
	OWNED(relabel_rules) struct relabel_rules *rules = NULL;
	char fault[RELABEL_WHY_BYTES] = "";
	struct config_value place = push->relabel;
	int err = place.text ? relabel_rules_parse(place.text, &rules, fault) : 0;

	place.text = NULL; /* all rules; the fault names one */
	return err == -EINVAL ? config_complain(&place, why, "%s", fault) : err;
}

/* The characters of a header's name: RFC 9110, section 5.6.2. */
static bool is_token(const char *text, size_t size)
{
	static const char others[] = "!#$%&'*+-.^_`|~";

	for (size_t i = 0; i < size; i++) {
		const char c = text[i];

		if (!(c >= 'a' && c <= 'z') && !(c >= 'A' && c <= 'Z') && !(c >= '0' && c <= '9') &&
		    !strchr(others, c))
			return false;
	}
	return size;
}

static int check_headers(const struct config_push *push, char why[CONFIG_WHY_BYTES])
{
	const char *text = push->header.text, *item;
	size_t size;

	while (config_next_item(&text, '\n', &item, &size)) {
		const char *colon = memchr(item, ':', size);

		if (!colon || !is_token(item, (size_t)(colon - item)))
			return config_complain(&push->header, why, "is not 'NAME: VALUE'");
	}
	return 0;
}

static int check_push(struct config_push *push, char why[CONFIG_WHY_BYTES])
{
	int err = parse_type(push, why);

	if (!err)
		err = check_url(&push->url, why);
	if (!err)
		err = check_proxy(&push->proxy, why);
	if (!err)
		err = check_pair(&push->cert, &push->key, why);
	if (!err && push->user.text && strchr(push->user.text, ':'))
		err = config_complain(&push->user, why,
				      "has a ':': give the name alone; the password is the text of "
				      "token-file=");
	if (!err && push->user.text && !push->token_file.text)
		err = config_complain(&push->user, why, "needs a password: give token-file=");
	if (!err)
		err = check_headers(push, why);
	if (!err)
		err = check_relabel(push, why);
	return err ? err : parse_kinds(push, why);
}

static bool may_lack_url(const char *type)
{
	enum collector_id id;

	return collector_find_push(type, &id) && collector_has_environment(id);
}

static const struct config_section *find_push(const struct config *config, size_t index)
{
	for (size_t i = 0; i < config->section_count; i++) {
		if (config->section[i]->kind == CONFIG_PUSH && !index--)
			return config->section[i];
	}
	return NULL;
}

int config_push(const struct config *config, size_t index, struct config_push *ret_push,
		char why[CONFIG_WHY_BYTES])
{
	const struct config_section *section = find_push(config, index);
	struct config_push push;
	int err;

	if (!section)
		return -ENOENT;
	push = (struct config_push){
		.section = section->name, .line = section->line, CONFIG_PUSH_KEYS(TAKE_PUSH)};
	if (!push.type.text || (!push.url.text && !may_lack_url(push.type.text))) {
		const char *missing = push.type.text ? "url=" : "type=";

		if (!section->line)
			return config_refuse(why, -EINVAL, "--set: [push %s] needs %s",
					     section->name, missing);
		return config_refuse(why, -EINVAL, "%s:%u: [push %s] needs %s", config->path,
				     section->line, section->name, missing);
	}
	err = check_push(&push, why);
	if (err)
		return err;
	*ret_push = push;
	return 0;
}

static bool is_served(const struct config_section *section)
{
	return section->kind == CONFIG_HTTP || section->kind == CONFIG_PUSH;
}

/* Whether each section of pyprofd-serve in `a` has the same values in `b`. */
static bool has_all(const struct config *a, const struct config *b)
{
	for (size_t i = 0; i < a->section_count; i++) {
		const struct config_section *section = a->section[i], *other;
		size_t count;

		if (!is_served(section))
			continue;
		other = config_find(b, section->kind, section->name);
		if (!other)
			return false;
		(void)config_keys(section->kind, &count);
		for (size_t key = 0; key < count; key++) {
			const char *text = section->value[key].text ?: "";

			if (strcmp(text, other->value[key].text ?: ""))
				return false;
		}
	}
	return true;
}

bool config_serves_alike(const struct config *a, const struct config *b)
{
	return has_all(a, b) && has_all(b, a);
}

/* ---- to pyprofd-serve as a child ---- */

bool config_serves(const struct config *config)
{
	for (size_t i = 0; i < config->section_count; i++)
		if (is_served(config->section[i]))
			return true;
	return false;
}

static void hand_over_value(const struct config_value *value, FILE *file)
{
	const char *text = value->text, *item;
	size_t size;

	while (config_next_item(&text, '\n', &item, &size))
		fprintf(file, "%s.%s=%.*s\n", value->section, value->key->name, (int)size, item);
}

int config_hand_over(const struct config *config, FILE *file)
{
	for (size_t i = 0; i < config->section_count; i++) {
		const struct config_section *section = config->section[i];
		size_t count;

		(void)config_keys(section->kind, &count);
		for (size_t key = 0; is_served(section) && key < count; key++)
			hand_over_value(&section->value[key], file);
	}
	return fflush(file) || ferror(file) ? -EIO : 0;
}

int config_take_over(struct config *config, FILE *file, char why[CONFIG_WHY_BYTES])
{
	char line[CONFIG_HANDED_LINE_BYTES];
	int err = 0;

	while (!err && fgets(line, sizeof(line), file)) {
		char *end = strchr(line, '\n');

		if (end)
			*end = '\0';
		err = end ? config_set(config, line, why)
			  : config_refuse(why, -EFBIG, "a line that was handed over is too long");
	}
	explicit_bzero(line, sizeof(line));
	return err;
}
