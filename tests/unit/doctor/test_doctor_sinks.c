/* SPDX-License-Identifier: BSD-2-Clause */
#include "doctor/findings.h"

#include <arpa/inet.h>
#include <cmocka.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"

/* Listens at a port of loopback that is free. */
static int listener(int family, uint16_t *ret_port)
{
	struct sockaddr_in6 six = {.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT};
	struct sockaddr_in four = {.sin_family = AF_INET,
				   .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	struct sockaddr *address =
		family == AF_INET ? (struct sockaddr *)&four : (struct sockaddr *)&six;
	socklen_t size = family == AF_INET ? sizeof(four) : sizeof(six);
	int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0 || bind(fd, address, size) || listen(fd, 1) || getsockname(fd, address, &size))
		return -1;
	*ret_port = ntohs(family == AF_INET ? four.sin_port : six.sin6_port);
	return fd;
}

/* Looks at what a configuration names, and compares what is said. */
static void expect_said_of(const char *file, const char *wanted)
{
	OWNED(config) struct config *config = NULL;
	struct findings findings = {0};
	char why[CONFIG_WHY_BYTES] = "";
	OWNED_MEM char *said = NULL;
	size_t size;

	assert_int_equal(config_new(&config), 0);
	(void)config_read_text(config, "f", file, strlen(file), why);
	assert_string_equal(why, "");
	findings.out = open_memstream(&said, &size);
	doctor_sinks(&findings, config);
	fclose(findings.out);
	assert_string_equal(said, wanted);
}

/* The same of [push a] with these keys. */
static void expect_said(const char *keys, const char *wanted)
{
	char text[1024];

	snprintf(text, sizeof(text), "[push a]\ntype=otlp\n%s", keys);
	expect_said_of(text, wanted);
}

static void expect_answer(int family, const char *url_format, const char *said_format)
{
	char keys[256], wanted[256];
	uint16_t port;
	OWNED_FD int fd = listener(family, &port);

	if (fd < 0)
		skip(); /* no such family here */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
	snprintf(keys, sizeof(keys), url_format, port);
	snprintf(wanted, sizeof(wanted), said_format, port);
#pragma GCC diagnostic pop
	expect_said(keys, wanted);
}

static void collector__that_listens_answers(void **state)
{
	(void)state;
	expect_answer(AF_INET, "url=http://127.0.0.1:%u/x?y\n",
		      "ok    push a           the collector 127.0.0.1 answers at port %u\n");
}

static void collector__may_have_an_address_in_brackets(void **state)
{
	(void)state;
	expect_answer(AF_INET6, "url=https://[::1]:%u\n",
		      "ok    push a           the collector ::1 answers at port %u\n");
}

static void collector__proxy_is_asked_in_its_place(void **state)
{
	(void)state;
	expect_answer(AF_INET, "url=http://h.invalid\nproxy=http://u:p@127.0.0.1:%u\n",
		      "ok    push a           the proxy 127.0.0.1 answers at port %u\n");
}

static void collector__closed_port_fails(void **state)
{
	uint16_t port;
	char keys[128], wanted[256];

	(void)state;
	close(listener(AF_INET, &port));
	snprintf(keys, sizeof(keys), "url=http://127.0.0.1:%u\n", port);
	snprintf(wanted, sizeof(wanted),
		 "fail  push a           the collector 127.0.0.1 port %u: Connection refused\n",
		 port);
	expect_said(keys, wanted);
}

static void collector__without_a_url_is_a_warning(void **state)
{
	(void)state;
	expect_said("", "warn  push a           no url=: pyprofd-serve takes "
			"OTEL_EXPORTER_OTLP_ENDPOINT, if it has it\n");
}

static void write_file(const char *path, const char *text, mode_t mode)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);

	assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
	fchmod(fd, mode);
	close(fd);
}

/* As the server does, which would not start. */
static void token__of_http_is_read(void **state)
{
	(void)state;
	write_file("t", "0123456789abcdef-._~\n", 0640);
	expect_said_of("[http]\ntoken-file=t\n",
		       "ok    http             token-file 't' is kept from other users\n");
	write_file("t", "0123456789 abcdef\n", 0640);
	expect_said_of("[http]\ntoken-file=t\n",
		       "fail  http             token-file: the token in 't' is not of 16 to 255 "
		       "letters, digits, - . _ ~: openssl rand -hex 24 makes one\n");
	write_file("t", "\n", 0640);
	expect_said_of("[http]\ntoken-file=t\n", "fail  http             token-file: 't' is "
						 "empty: it should hold a token\n");
	unlink("t");
}

static void files__are_looked_at_before_the_collector(void **state)
{
	(void)state;
	write_file("t", "geheim\n", 0644);
	write_file("c", "-----BEGIN CERTIFICATE-----\n", 0644);
	write_file("e", "nothing\n", 0644);
	expect_answer(AF_INET, "url=http://127.0.0.1:%u\ntoken-file=t\nca=c\n",
		      "fail  push a           token-file: 't' holds a secret that other users may "
		      "read or change: chmod o= 't'\n"
		      "ok    push a           ca 'c' has a certificate\n"
		      "ok    push a           the collector 127.0.0.1 answers at port %u\n");
	chmod("t", 0640);
	expect_answer(AF_INET, "url=http://127.0.0.1:%u\ntoken-file=t\nca=e\n",
		      "ok    push a           token-file 't' is kept from other users\n"
		      "fail  push a           ca 'e' has no certificate in PEM\n"
		      "ok    push a           the collector 127.0.0.1 answers at port %u\n");
	unlink("t");
	unlink("c");
	unlink("e");
}

static void findings__are_counted_and_coloured(void **state)
{
	struct findings findings = {.has_colours = true};
	OWNED_MEM char *said = NULL;
	size_t size;

	(void)state;
	findings.out = open_memstream(&said, &size);
	findings_add(&findings, FINDING_OK, "kernel", "%s", "");
	findings_add(&findings, FINDING_WARN, "clock", "off by %d", 3);
	fclose(findings.out);
	assert_string_equal(said, "\x1b[32mok  \x1b[0m  kernel\n"
				  "\x1b[33mwarn\x1b[0m  clock            off by 3\n");
	assert_int_equal(findings.count[FINDING_OK], 1);
	assert_int_equal(findings.count[FINDING_WARN], 1);
	assert_int_equal(findings.count[FINDING_FAIL], 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(collector__that_listens_answers),
		cmocka_unit_test(collector__may_have_an_address_in_brackets),
		cmocka_unit_test(collector__proxy_is_asked_in_its_place),
		cmocka_unit_test(collector__closed_port_fails),
		cmocka_unit_test(collector__without_a_url_is_a_warning),
		cmocka_unit_test(token__of_http_is_read),
		cmocka_unit_test(files__are_looked_at_before_the_collector),
		cmocka_unit_test(findings__are_counted_and_coloured),
	};
	char directory[] = "/tmp/test_doctor.XXXXXX";
	int failed;

	if (!mkdtemp(directory) || chdir(directory))
		return 1;
	failed = cmocka_run_group_tests_name("agent/doctor_sinks", tests, NULL, NULL);
	(void)!chdir("/");
	rmdir(directory);
	return failed;
}
