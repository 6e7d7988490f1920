/* SPDX-License-Identifier: BSD-2-Clause */
#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/kinds.h"
#include "config/config.h"
#include "config/secret.h"

static char why[CONFIG_WHY_BYTES];

static struct config *made(void)
{
	struct config *config = NULL;

	assert_int_equal(config_new(&config), 0);
	why[0] = '\0';
	return config;
}

/* Notes what an option gave. */
static int note(struct config *config, size_t key, const char *text)
{
	const struct config_value given = {.text = text, .source = CONFIG_FROM_OPTION};

	return config_note(config, CONFIG_CAPTURE, key, &given, why);
}

static int read_into(struct config *config, const char *text)
{
	return config_read_text(config, "a.conf", text, strlen(text), why);
}

/* Reads a file that is right. */
static struct config *parsed(const char *text)
{
	struct config *config = made();

	assert_int_equal(read_into(config, text), 0);
	assert_string_equal(why, "");
	return config;
}

/* A file that is wrong, and the line about it. */
static void expect_error(const char *text, int err, const char *line)
{
	OWNED(config) struct config *config = made();

	assert_int_equal(read_into(config, text), err);
	assert_string_equal(why, line);
}

#define assert_text(value, wanted)                                                                 \
	do {                                                                                       \
		assert_non_null((value).text);                                                     \
		assert_string_equal((value).text, wanted);                                         \
	} while (0)

static void file__keys_of_all_sections_are_kept_with_their_lines(void **state)
{
	OWNED(config) struct config *config = parsed("; a comment\n[capture]\nhz = 49\n"
						     "events=cpu,gil ; why\n\n[store]\npath=/x\n");
	struct config_value value = config_get(config, CONFIG_CAPTURE, CONFIG_CAPTURE_HZ);

	(void)state;
	assert_text(value, "49");
	assert_int_equal(value.source, CONFIG_FROM_FILE);
	assert_int_equal(value.line, 3);
	assert_string_equal(value.file, "a.conf");
	value = config_get(config, CONFIG_CAPTURE, CONFIG_CAPTURE_EVENTS);
	assert_text(value, "cpu,gil");
	value = config_get(config, CONFIG_STORE, CONFIG_STORE_PATH);
	assert_text(value, "/x");
	value = config_get(config, CONFIG_STORE, CONFIG_STORE_MAX);
	assert_text(value, "200M");
	assert_int_equal(value.source, CONFIG_FROM_DEFAULT);
	assert_null(config_get(config, CONFIG_CAPTURE, CONFIG_CAPTURE_PID).text);
}

static void file__mark_crlf_and_missing_last_newline_are_fine(void **state)
{
	OWNED(config) struct config *config =
		parsed("\xef\xbb\xbf[capture]\r\nhz = 49\r\nleaks=yes");

	(void)state;
	assert_text(config_get(config, CONFIG_CAPTURE, CONFIG_CAPTURE_HZ), "49");
	assert_text(config_get(config, CONFIG_CAPTURE, CONFIG_CAPTURE_LEAKS), "yes");
}

static void file__unknown_key_names_line_and_nearest(void **state)
{
	(void)state;
	expect_error("[capture]\n\nintervall = 5\n", -EINVAL,
		     "a.conf:3: [capture] has no key 'intervall'; did you mean 'interval'?");
	expect_error("[push a]\ntype=otlp\ntokenfile=/x\n", -EINVAL,
		     "a.conf:3: [push] has no key 'tokenfile'; did you mean 'token-file'?");
	expect_error("[capture]\nzzzzzzzzz = 5\n", -EINVAL,
		     "a.conf:2: [capture] has no key 'zzzzzzzzz'");
}

static void file__key_of_another_section_is_told(void **state)
{
	(void)state;
	expect_error("[store]\nhz = 5\n", -EINVAL,
		     "a.conf:2: [store] has no key 'hz'; it is 'hz' of [capture]");
	expect_error("[capture]\noutput = /x\n", -EINVAL,
		     "a.conf:2: [capture] has no key 'output'; it is 'path' of [store]");
	expect_error("[http]\nurl = /x\n", -EINVAL,
		     "a.conf:2: [http] has no key 'url'; it is 'url' of [push NAME]");
}

static void file__unknown_section_names_the_nearest(void **state)
{
	(void)state;
	expect_error("[htpp]\n", -EINVAL,
		     "a.conf:1: no section is called [htpp]; did you mean [http]?");
	expect_error("\n[pushing x]\n", -EINVAL,
		     "a.conf:2: no section is called [pushing]; there are [capture], [store], "
		     "[http] and [push NAME]");
	expect_error("[psh x]\n", -EINVAL,
		     "a.conf:1: no section is called [psh]; did you mean [push NAME]?");
}

static void file__section_names_are_checked(void **state)
{
	(void)state;
	expect_error("[push]\n", -EINVAL,
		     "a.conf:1: [push NAME] needs a name of letters, digits, '_', '-' and '.', 32 "
		     "at most");
	expect_error("[push ../x]\n", -EINVAL,
		     "a.conf:1: [push NAME] needs a name of letters, digits, '_', '-' and '.', 32 "
		     "at most");
	expect_error("[push aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa]\n", -EINVAL,
		     "a.conf:1: [push NAME] needs a name of letters, digits, '_', '-' and '.', 32 "
		     "at most");
	expect_error("[http x]\n", -EINVAL,
		     "a.conf:1: [http] has no name of its own: write [http]");
	expect_error("[http\n", -EINVAL, "a.conf:1: the section has no ']'");
	expect_error("[http] hz=1\n", -EINVAL,
		     "a.conf:1: something stands behind the section's ']'");
}

static void file__lines_that_are_neither_are_told_first(void **state)
{
	(void)state;
	expect_error("[capture]\nhz 49\nfoo=1\n", -EINVAL,
		     "a.conf:2: this is neither '[section]' nor 'key = value'");
	expect_error("[capture]\nfoo=1\nhz 49\n", -EINVAL, "a.conf:2: [capture] has no key 'foo'");
	expect_error("hz=1\n", -EINVAL, "a.conf:1: a key stands before the first [section]");
	expect_error("[capture]\nhz=\n", -EINVAL,
		     "a.conf:2: 'hz' is empty: give a value, or leave it out");
	expect_error("[capture]\ncomm=a\x1b[1m\n", -EINVAL,
		     "a.conf:2: 'comm' has control codes, or is not UTF-8");
}

static void file__nul_byte_is_refused(void **state)
{
	static const char text[] = "[capture]\0\nhz=1\n";
	OWNED(config) struct config *config = made();

	(void)state;
	assert_int_equal(config_read_text(config, "a.conf", text, sizeof(text) - 1, why), -EINVAL);
	assert_string_equal(why, "a.conf:0: it is not a text: it has a NUL byte");
}

static void file__key_twice_is_refused_but_lists_are_joined(void **state)
{
	OWNED(config) struct config *config =
		parsed("[capture]\npid=1\npid=2\n  3\n"
		       "[push a]\nheader = A: 1\nheader = B: 2\n\tC: 3\n");
	struct config_push push;

	(void)state;
	assert_text(config_get(config, CONFIG_CAPTURE, CONFIG_CAPTURE_PID), "1,2,3");
	assert_int_equal(config_set(config, "push.a.type=otlp", why), 0);
	assert_int_equal(config_set(config, "push.a.url=http://h", why), 0);
	assert_int_equal(config_push(config, 0, &push, why), 0);
	assert_text(push.header, "A: 1\nB: 2\nC: 3");
	expect_error("[capture]\nhz=1\nleaks=yes\nhz=2\n", -EINVAL,
		     "a.conf:4: 'hz' stands in line 2 already");
}

static void file__indented_key_is_told_to_continue(void **state)
{
	(void)state;
	expect_error("[capture]\n hz=1\n leaks=yes\n", -EINVAL,
		     "a.conf:3: the line is indented, so it goes on with 'hz' of line 2, which has "
		     "one value");
}

static void file__sections_may_stand_twice(void **state)
{
	OWNED(config) struct config *config =
		parsed("[capture]\nhz=1\n[store]\n[capture]\nleaks=yes\n");

	(void)state;
	assert_text(config_get(config, CONFIG_CAPTURE, CONFIG_CAPTURE_HZ), "1");
	assert_text(config_get(config, CONFIG_CAPTURE, CONFIG_CAPTURE_LEAKS), "yes");
}

static void file__long_line_is_refused_with_its_number(void **state)
{
	char text[600] = "[capture]\ncomm=";
	size_t used = strlen(text);

	(void)state;
	memset(text + used, 'x', 400);
	expect_error(text, -EFBIG,
		     "a.conf:2: the line has more than 198 bytes: go on in the next line, "
		     "indented");
}

static void file__long_value_of_many_lines_is_refused(void **state)
{
	OWNED_MEM char *text = NULL;
	size_t size;
	FILE *file = open_memstream(&text, &size);

	(void)state;
	fputs("[capture]\n", file);
	for (int i = 0; i < 50; i++)
		fprintf(file, "uid=%0100d\n", i);
	fclose(file);
	/* 40 items of 101 bytes fit. */
	expect_error(text, -EFBIG, "a.conf:42: 'uid' is longer than 4096 bytes");
}

static void file__too_many_sections_are_refused(void **state)
{
	OWNED_MEM char *text = NULL;
	size_t size;
	FILE *file = open_memstream(&text, &size);

	(void)state;
	for (int i = 0; i < 50; i++)
		fprintf(file, "[push p%d]\n", i);
	fclose(file);
	expect_error(text, -EFBIG, "a.conf:41: there are more than 40 sections");
}

static void set__goes_before_the_file_and_options_before_both(void **state)
{
	OWNED(config) struct config *config = parsed("[capture]\nhz=1\npid=1,2\n");
	struct config_value value;

	(void)state;
	assert_int_equal(config_set(config, "capture.hz=2", why), 0);
	assert_int_equal(config_set(config, "capture.hz=3", why), 0);
	value = config_get(config, CONFIG_CAPTURE, CONFIG_CAPTURE_HZ);
	assert_text(value, "3");
	assert_int_equal(value.source, CONFIG_FROM_SET);
	assert_int_equal(note(config, CONFIG_CAPTURE_HZ, "4"), 0);
	assert_text(config_get(config, CONFIG_CAPTURE, CONFIG_CAPTURE_HZ), "4");
	assert_int_equal(note(config, CONFIG_CAPTURE_PID, "7"), 0);
	assert_int_equal(note(config, CONFIG_CAPTURE_PID, "8"), 0);
	assert_text(config_get(config, CONFIG_CAPTURE, CONFIG_CAPTURE_PID), "7,8");
}

static void set__before_the_file_counts_all_the_same(void **state)
{
	OWNED(config) struct config *config = made();
	struct config_push push;

	(void)state;
	assert_int_equal(config_set(config, "capture.hz=2", why), 0);
	assert_int_equal(config_set(config, "push.a.url=http://s", why), 0);
	assert_int_equal(read_into(config, "[capture]\nhz=1\n[push a]\ntype=otlp\nurl=http://f\n"),
			 0);
	assert_text(config_get(config, CONFIG_CAPTURE, CONFIG_CAPTURE_HZ), "2");
	assert_int_equal(config_push(config, 0, &push, why), 0);
	assert_text(push.url, "http://s");
	assert_int_equal(push.line, 3);
}

static void set__names_are_checked_as_in_a_file(void **state)
{
	OWNED(config) struct config *config = made();

	(void)state;
	assert_int_equal(config_set(config, "capture.hzz=2", why), -EINVAL);
	assert_string_equal(why,
			    "--set capture.hzz: [capture] has no key 'hzz'; did you mean 'hz'?");
	assert_int_equal(config_set(config, "hz=2", why), -EINVAL);
	assert_string_equal(why, "--set hz: give SECTION.KEY=VALUE, as in capture.hz=49 or "
				 "push.NAME.url=...");
	assert_int_equal(config_set(config, "capture.hz", why), -EINVAL);
	assert_int_equal(config_set(config, "push.url=http://h", why), -EINVAL);
	assert_int_equal(config_set(config, "push.a.b.header=secret", why), 0);
	assert_int_equal(config_set(config, "push.a.hedder=secret", why), -EINVAL);
	assert_null(strstr(why, "secret"));
}

struct taken {
	char text[256];
};

static int take(void *context, const struct config_value *value)
{
	struct taken *taken = context;

	strcat(taken->text, value->key->option);
	strcat(taken->text, " ");
	return 0;
}

static void each__gives_what_is_given_for_options(void **state)
{
	OWNED(config) struct config *config = parsed("[store]\nmax=2M\n[capture]\nhz=1\n[http]\n");
	struct taken taken = {""};

	(void)state;
	assert_int_equal(config_each(config, take, &taken), 0);
	assert_string_equal(taken.text, "hz store-max ");
}

static void http__none_without_a_section(void **state)
{
	OWNED(config) struct config *config = parsed("[capture]\n");
	struct config_http http;

	(void)state;
	assert_int_equal(config_http(config, &http, why), -ENOENT);
}

static void http__empty_section_listens_at_loopback(void **state)
{
	OWNED(config) struct config *config = parsed("[http]\n");
	struct config_http http;

	(void)state;
	assert_int_equal(config_http(config, &http, why), 0);
	assert_string_equal(http.address.host, "127.0.0.1");
	assert_int_equal(http.address.port, 4041);
	assert_true(http.address.is_loopback);
	assert_null(http.token_file.text);
}

static void http__addresses_are_parsed(void **state)
{
	static const struct {
		const char *text, *host;
		uint16_t port;
		bool is_loopback;
	} cases[] = {
		{"127.9.9.9:1", "127.9.9.9", 1, true},	 {"[::1]:65535", "::1", 65535, true},
		{"localhost:80", "127.0.0.1", 80, true}, {"unix:/run/s", "/run/s", 0, true},
		{"10.0.0.1:80", "10.0.0.1", 80, false},	 {":80", "::", 80, false},
		{"[fe80::1]:80", "fe80::1", 80, false},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		OWNED(config) struct config *config =
			parsed("[http]\ntoken-file=/t\nlisten=::1:1\n");
		OWNED_MEM char *listen = NULL;
		struct config_http http;

		assert_true(asprintf(&listen, "http.listen=%s", cases[i].text) > 0);
		assert_int_equal(config_set(config, listen, why), 0);
		assert_int_equal(config_http(config, &http, why), 0);
		assert_string_equal(http.address.host, cases[i].host);
		assert_int_equal(http.address.port, cases[i].port);
		assert_int_equal(http.address.is_loopback, cases[i].is_loopback);
	}
}

static void expect_http_error(const char *text, const char *line)
{
	OWNED(config) struct config *config = parsed(text);
	struct config_http http;

	assert_int_equal(config_http(config, &http, why), -EINVAL);
	assert_string_equal(why, line);
}

static void http__wrong_addresses_name_the_line(void **state)
{
	static const char *const wrong[] = {"4041",	  "h:0",       "127.0.0.1:65536",
					    "127.0.0.1:", "127.0.0.1", "h.x:80",
					    "unix:x",	  "[::1:80",   "1:2x"};
	char text[128], line[256];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
		snprintf(text, sizeof(text), "[http]\nlisten = %s\n", wrong[i]);
		snprintf(line, sizeof(line),
			 "a.conf:2: listen '%s' is no address to listen at: give ADDRESS:PORT, "
			 "[ADDRESS]:PORT, :PORT or unix:/PATH",
			 wrong[i]);
		expect_http_error(text, line);
	}
}

static void http__open_address_needs_a_token_or_mtls(void **state)
{
	OWNED(config) struct config *config =
		parsed("[http]\nlisten=:80\ncert=/c\nkey=/k\nclient-ca=/a\n");
	struct config_http http;

	(void)state;
	assert_int_equal(config_http(config, &http, why), 0);
	expect_http_error("[http]\nlisten=0.0.0.0:80\ncert=/c\nkey=/k\n",
			  "a.conf:2: listen '0.0.0.0:80' is open to other machines: give "
			  "token-file=, or client-ca= with cert= and key=");
	expect_http_error("[http]\ncert=/c\n",
			  "a.conf:2: cert '/c' needs its private key: give key=");
	expect_http_error("[http]\nkey=/c\n",
			  "a.conf:2: key '/c' needs its certificate: give cert=");
	expect_http_error("[http]\nclient-ca=/c\n",
			  "a.conf:2: client-ca '/c' asks for certificates of clients, which needs "
			  "TLS: give cert= and key=");
}

static void http__hosts_are_names(void **state)
{
	OWNED(config) struct config *config =
		parsed("[http]\nhost = node7.example, NODE7\nhost = profiles_1.example\n");
	struct config_http http;

	(void)state;
	assert_int_equal(config_http(config, &http, why), 0);
	assert_string_equal(http.host.text, "node7.example, NODE7,profiles_1.example");
	expect_http_error("[http]\nhost=a,http://b/\n",
			  "a.conf:2: host 'a,http://b/' has 'http://b/', which is no name of a "
			  "host: leave scheme, port and path out");
	expect_http_error("[http]\nhost=a,,b\n",
			  "a.conf:2: host 'a,,b' has '', which is no name of a host: leave scheme, "
			  "port and path out");
	expect_http_error("[http]\nhost=a,b,c,d,e,f,g,h,i,j,k,l,m,n,o,p,q\n",
			  "a.conf:2: host 'a,b,c,d,e,f,g,h,i,j,k,l,m,n,o,p,q' has more than 16 "
			  "names");
}

static void push__sections_are_typed_in_the_order_of_the_file(void **state)
{
	OWNED(config) struct config *config =
		parsed("[push b]\ntype=parca\nurl=https://h:1/x\n[http]\n[push a]\ntype=otlp\n"
		       "url=http://h\nkinds=gil, cpu\n");
	struct config_push push;

	(void)state;
	assert_int_equal(config_push(config, 0, &push, why), 0);
	assert_string_equal(push.section, "b");
	assert_int_equal(push.collector, COLLECTOR_PARCA);
	assert_int_equal(push.kind_bits, 1 << PP_PROFILE_CPU | 1 << PP_PROFILE_OFFCPU);
	assert_int_equal(push.line, 1);
	assert_int_equal(config_push(config, 1, &push, why), 0);
	assert_string_equal(push.section, "a");
	assert_int_equal(push.collector, COLLECTOR_OTLP);
	assert_int_equal(push.kind_bits, 1 << PP_PROFILE_CPU | 1 << PP_PROFILE_GIL);
	assert_int_equal(config_push(config, 2, &push, why), -ENOENT);
}

static void expect_push_error(const char *keys, const char *line)
{
	struct config_push push;
	char text[512];

	snprintf(text, sizeof(text), "[push a]\n%s", keys);
	OWNED(config) struct config *config = parsed(text);

	assert_int_equal(config_push(config, 0, &push, why), -EINVAL);
	assert_string_equal(why, line);
}

static void push__wrong_values_name_the_line(void **state)
{
	(void)state;
	expect_push_error("url=http://h\n", "a.conf:1: [push a] needs type=");
	expect_push_error("type=parca\n", "a.conf:1: [push a] needs url=");
	expect_push_error("type=oltp\nurl=http://h\n",
			  "a.conf:2: type 'oltp' is not known: there are otlp, pyroscope, parca");
	expect_push_error("type=otlp\nurl=h:4318\n", "a.conf:3: url 'h:4318' is no URL: give "
						     "http://HOST or https://HOST");
	expect_push_error("type=otlp\nurl=http:///x\n", "a.conf:3: url 'http:///x' names no host");
	expect_push_error("type=otlp\nurl=http://h x\n",
			  "a.conf:3: url 'http://h x' has blanks or quotes");
	expect_push_error("type=otlp\nurl=http://u:geheim@h\n",
			  "a.conf:3: url 'http://***@h' has a user in it: give user= and, for the "
			  "password, token-file=");
	expect_push_error("type=otlp\nurl=http://h\nkinds=cpu,wrong\n",
			  "a.conf:4: kinds 'cpu,wrong' has a kind that is not known: 'wrong'");
	expect_push_error("type=otlp\nurl=http://h\nrelabel=target_label=a\nrelabel=x\n",
			  "a.conf:5: relabel rule 2: expected NAME=VALUE: 'x'");
	expect_push_error("type=otlp\nurl=http://h\nuser=u\n",
			  "a.conf:4: user 'u' needs a password: give token-file=");
	expect_push_error("type=otlp\nurl=http://h\nuser=u:p\ntoken-file=/t\n",
			  "a.conf:4: user 'u:p' has a ':': give the name alone; the password is "
			  "the text of token-file=");
	expect_push_error("type=otlp\nurl=http://h\nheader=secret\n",
			  "a.conf:4: header is not 'NAME: VALUE'");
	expect_push_error("type=otlp\nurl=http://h\ncert=/c\n",
			  "a.conf:4: cert '/c' needs its private key: give key=");
}

static void push__missing_key_of_a_set_section_names_set(void **state)
{
	OWNED(config) struct config *config = made();
	struct config_push push;

	(void)state;
	assert_int_equal(config_set(config, "push.a.type=parca", why), 0);
	assert_int_equal(config_push(config, 0, &push, why), -EINVAL);
	assert_string_equal(why, "--set: [push a] needs url=");
}

static void served__is_compared_by_its_values(void **state)
{
	static const char *const base = "[http]\n[push a]\ntype=parca\nurl=http://h\n";
	OWNED(config) struct config *config = parsed(base);
	OWNED(config) struct config *same =
		parsed("[capture]\nhz=1\n[push a]\nurl=http://h\ntype=parca\n[http]\n");
	OWNED(config) struct config *other = parsed("[http]\n[push a]\ntype=parca\nurl=http://i\n");
	OWNED(config) struct config *fewer = parsed("[http]\n");
	OWNED(config) struct config *renamed =
		parsed("[http]\n[push b]\ntype=parca\nurl=http://h\n");

	(void)state;
	assert_true(config_serves_alike(config, same));
	assert_false(config_serves_alike(config, other));
	assert_false(config_serves_alike(config, fewer));
	assert_false(config_serves_alike(fewer, config));
	assert_false(config_serves_alike(config, renamed));
}

static void handing_over__keeps_all_that_is_served(void **state)
{
	OWNED(config) struct config *config =
		parsed("[capture]\nhz=49\n[http]\n[push a.b]\ntype=parca\nurl=http://h\nkinds=cpu\n"
		       "header=A: b ;c\n  D: e\n");
	OWNED(config) struct config *taken = NULL, *none = parsed("[capture]\nhz=49\n");
	OWNED_FILE FILE *file = tmpfile();

	(void)state;
	assert_true(config_serves(config));
	assert_false(config_serves(none));
	assert_int_equal(config_set(config, "push.a.b.tenant=x ;y", why), 0);
	assert_int_equal(config_hand_over(config, file), 0);
	rewind(file);
	assert_int_equal(config_new(&taken), 0);
	assert_int_equal(config_take_over(taken, file, why), 0);
	assert_true(config_serves_alike(config, taken));
	assert_null(config_path(taken));
}

static void taking_over__ends_at_what_is_wrong(void **state)
{
	char text[2 * CONFIG_VALUE_MAX_BYTES];
	OWNED(config) struct config *config = parsed("");
	OWNED_FILE FILE *wrong = fmemopen((char *)"http.port=1\n", 12, "r"), *is_long = NULL;

	(void)state;
	assert_int_equal(config_take_over(config, wrong, why), -EINVAL);
	memset(text, 'x', sizeof(text));
	is_long = fmemopen(text, sizeof(text), "r");
	assert_int_equal(config_take_over(config, is_long, why), -EFBIG);
}

static void print__shows_origins_and_hides_secrets(void **state)
{
	OWNED(config) struct config *config =
		parsed("[push a]\ntype=otlp\nurl=http://h/p?t=geheim\n"
		       "header=X-Key: geheim\n  Y: geheim2\n"
		       "proxy=http://u:geheim@p:1\n");
	OWNED_MEM char *text = NULL;
	size_t size;
	FILE *file = open_memstream(&text, &size);

	(void)state;
	assert_int_equal(config_set(config, "capture.leaks=yes", why), 0);
	assert_int_equal(note(config, CONFIG_CAPTURE_HZ, "7"), 0);
	assert_int_equal(config_print(config, file), 0);
	fclose(file);
	assert_null(strstr(text, "geheim"));
	assert_non_null(strstr(text, "hz           = 7 ; command line\n"));
	assert_non_null(strstr(text, "leaks        = yes ; --set\n"));
	assert_non_null(strstr(text, "interval     = 10s ; default\n"));
	assert_non_null(strstr(text, ";pid         =\n"));
	assert_non_null(strstr(text, "url          = http://h/p?*** ; a.conf:3\n"));
	assert_non_null(strstr(text, "header       = X-Key: ***\n    Y: *** ; a.conf:5\n"));
	assert_non_null(strstr(text, "proxy        = http://***@p:1 ; a.conf:6\n"));
	assert_null(strstr(text, "[http]"));
}

/* ---- files ---- */

static void write_file(const char *path, const char *text, mode_t mode)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
	fchmod(fd, mode);
	close(fd);
}

static void expect_read(const char *path, int err, const char *line)
{
	OWNED(config) struct config *config = made();

	assert_int_equal(config_read(config, path, why), err);
	assert_string_equal(why, line);
}

static void read__modes_and_kinds_of_files_are_checked(void **state)
{
	static const char *const secret = "[push a]\nheader=A: b\n";

	(void)state;
	write_file("c.conf", "[capture]\nhz=1\n", 0644);
	expect_read("c.conf", 0, "");
	write_file("c.conf", "[capture]\nhz=1\n", 0646);
	expect_read("c.conf", -EPERM, "c.conf: every user may write to it: chmod o-w 'c.conf'");
	write_file("c.conf", secret, 0640);
	expect_read("c.conf", 0, "");
	write_file("c.conf", secret, 0644);
	expect_read("c.conf", -EPERM,
		    "c.conf: it has secrets (header=, url=, proxy=) and every user may read it: "
		    "chmod o= 'c.conf'");
	write_file("c.conf", "[push a]\nurl=http://h/?token=t\n", 0644);
	expect_read("c.conf", -EPERM,
		    "c.conf: it has secrets (header=, url=, proxy=) and every user may read it: "
		    "chmod o= 'c.conf'");
	write_file("c.conf", "[push a]\nurl=http://h/p\n", 0664);
	expect_read("c.conf", -EPERM, "c.conf: its group may write to it: chmod g-w 'c.conf'");
	write_file("c.conf", "[push a]\nurl=http://h/p\n", 0644);
	expect_read("c.conf", 0, "");
	expect_read(".", -EINVAL, ".: not a regular file");
	expect_read("none.conf", -ENOENT, "none.conf: No such file or directory");
	write_file("c.conf", "", 0600);
	assert_int_equal(truncate("c.conf", 65537), 0);
	expect_read("c.conf", -EFBIG, "c.conf: longer than 64 KiB");
	unlink("c.conf");
}

static void secret__first_line_is_read(void **state)
{
	char *text = NULL;

	(void)state;
	write_file("token", "  abc def \r\nmore\n", 0640);
	assert_int_equal(config_check_secret("token", geteuid(), why), 0);
	assert_int_equal(config_read_secret("token", &text, why), 0);
	assert_string_equal(text, "abc def");
	free(text);
	unlink("token");
}

static void expect_secret_error(int err, const char *line)
{
	char *text = NULL;

	assert_int_equal(config_read_secret("token", &text, why), err);
	assert_string_equal(why, line);
}

static void secret__file_of_everybody_is_refused(void **state)
{
	(void)state;
	write_file("token", "abc\n", 0644);
	expect_secret_error(-EPERM, "'token' holds a secret that other users may read or change: "
				    "chmod o= 'token'");
	assert_int_equal(config_check_secret("token", geteuid(), why), -EPERM);
	write_file("token", "abc\n", 0660);
	expect_secret_error(-EPERM, "'token' holds a secret that its group may change: "
				    "chmod g-w 'token'");
	assert_int_equal(config_check_secret("token", geteuid(), why), -EPERM);
	write_file("token", " \n", 0600);
	expect_secret_error(-ENODATA, "'token' is empty: it should hold a token");
	write_file("token", "a\x01z\n", 0600);
	expect_secret_error(-EINVAL, "'token' has control codes, or is not UTF-8");
	assert_int_equal(truncate("token", 20000), 0);
	expect_secret_error(-EFBIG, "'token' is longer than 16384 bytes");
	unlink("token");
	expect_secret_error(-ENOENT, "cannot read 'token': No such file or directory");
	assert_int_equal(config_check_secret("token", geteuid(), why), -ENOENT);
	assert_int_equal(config_check_secret(".", geteuid(), why), -EINVAL);
}

/* Of root, of who runs this, or of who called root by sudo. */
static void file__of_another_user_is_refused(void **state)
{
	const uid_t other = 54321;

	(void)state;
	if (geteuid())
		skip(); /* only root gives files away */
	write_file("token", "abc\n", 0600);
	assert_int_equal(chown("token", other, (gid_t)-1), 0);
	expect_secret_error(-EPERM, "'token' holds a secret and belongs to uid 54321, who may "
				    "change it: chown root 'token'");
	assert_int_equal(config_check_secret("token", 0, why), -EPERM);
	/* The server's own user, for whom root looks. */
	assert_int_equal(config_check_secret("token", other, why), 0);
	write_file("c.conf", "[http]\n", 0644);
	assert_int_equal(chown("c.conf", other, (gid_t)-1), 0);
	expect_read("c.conf", -EPERM,
		    "c.conf: it belongs to uid 54321, neither root nor who runs "
		    "this: chown root 'c.conf'");
	setenv("SUDO_UID", "54321", 1);
	setenv("SUDO_GID", "54321", 1);
	expect_read("c.conf", 0, "");
	assert_int_equal(config_check_secret("token", 0, why), 0);
	unsetenv("SUDO_UID");
	unsetenv("SUDO_GID");
	unlink("token");
	unlink("c.conf");
}

static void token__can_stand_in_a_cookie(void **state)
{
	static const char *const bad[] = {"",
					  "short",
					  "0123456789abcde",
					  "0123456789abcdef;x",
					  "0123456789abcdef x",
					  "0123456789abcdef\"",
					  "0123456789abcdef\r\nSet-Cookie: a"};
	char longest[CONFIG_TOKEN_MAX_BYTES + 1];

	(void)state;
	assert_true(config_token_is_valid("0123456789abcdef"));
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		assert_false(config_token_is_valid(bad[i]));
	memset(longest, 'a', sizeof(longest));
	longest[CONFIG_TOKEN_MAX_BYTES] = '\0';
	assert_false(config_token_is_valid(longest));
	longest[CONFIG_TOKEN_MAX_BYTES - 1] = '\0';
	assert_true(config_token_is_valid(longest));
}

static void item__blanks_are_left_out(void **state)
{
	const char *text = " a ,b,, c", *item;
	char all[32] = "";
	size_t size;

	(void)state;
	while (config_next_item(&text, ',', &item, &size)) {
		strncat(all, item, size);
		strcat(all, "|");
	}
	assert_string_equal(all, "a|b||c|");
}

static void config_note__options_may_have_any_bytes_and_length(void **state)
{
	OWNED(config) struct config *config = made();
	char text[CONFIG_VALUE_MAX_BYTES + 8];

	(void)state;
	assert_int_equal(note(config, CONFIG_CAPTURE_COMM, "a\x1b[2J"), 0);
	assert_text(config_get(config, CONFIG_CAPTURE, CONFIG_CAPTURE_COMM), "a\\x1b[2J");
	memset(text, '1', sizeof(text));
	text[sizeof(text) - 1] = '\0';
	assert_int_equal(note(config, CONFIG_CAPTURE_PID, text), 0);
	assert_string_equal(why, "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(config_note__options_may_have_any_bytes_and_length),
		cmocka_unit_test(file__keys_of_all_sections_are_kept_with_their_lines),
		cmocka_unit_test(file__mark_crlf_and_missing_last_newline_are_fine),
		cmocka_unit_test(file__unknown_key_names_line_and_nearest),
		cmocka_unit_test(file__key_of_another_section_is_told),
		cmocka_unit_test(file__unknown_section_names_the_nearest),
		cmocka_unit_test(file__section_names_are_checked),
		cmocka_unit_test(file__lines_that_are_neither_are_told_first),
		cmocka_unit_test(file__nul_byte_is_refused),
		cmocka_unit_test(file__key_twice_is_refused_but_lists_are_joined),
		cmocka_unit_test(file__indented_key_is_told_to_continue),
		cmocka_unit_test(file__sections_may_stand_twice),
		cmocka_unit_test(file__long_line_is_refused_with_its_number),
		cmocka_unit_test(file__long_value_of_many_lines_is_refused),
		cmocka_unit_test(file__too_many_sections_are_refused),
		cmocka_unit_test(set__goes_before_the_file_and_options_before_both),
		cmocka_unit_test(set__before_the_file_counts_all_the_same),
		cmocka_unit_test(set__names_are_checked_as_in_a_file),
		cmocka_unit_test(each__gives_what_is_given_for_options),
		cmocka_unit_test(http__none_without_a_section),
		cmocka_unit_test(http__empty_section_listens_at_loopback),
		cmocka_unit_test(http__addresses_are_parsed),
		cmocka_unit_test(http__wrong_addresses_name_the_line),
		cmocka_unit_test(http__open_address_needs_a_token_or_mtls),
		cmocka_unit_test(http__hosts_are_names),
		cmocka_unit_test(push__sections_are_typed_in_the_order_of_the_file),
		cmocka_unit_test(push__wrong_values_name_the_line),
		cmocka_unit_test(push__missing_key_of_a_set_section_names_set),
		cmocka_unit_test(served__is_compared_by_its_values),
		cmocka_unit_test(handing_over__keeps_all_that_is_served),
		cmocka_unit_test(taking_over__ends_at_what_is_wrong),
		cmocka_unit_test(print__shows_origins_and_hides_secrets),
		cmocka_unit_test(read__modes_and_kinds_of_files_are_checked),
		cmocka_unit_test(secret__first_line_is_read),
		cmocka_unit_test(secret__file_of_everybody_is_refused),
		cmocka_unit_test(file__of_another_user_is_refused),
		cmocka_unit_test(token__can_stand_in_a_cookie),
		cmocka_unit_test(item__blanks_are_left_out),
	};
	char directory[] = "/tmp/test_config.XXXXXX";
	int failed;

	if (!mkdtemp(directory) || chdir(directory))
		return 1;
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	(void)!chdir("/");
	rmdir(directory);
	return failed;
}
