/* SPDX-License-Identifier: BSD-2-Clause */
#include "collectors/collector.h"

#include <cmocka.h>
#include <errno.h>
#include <string.h>

static const char *const *variables; /* "NAME=value", NULL at the end */

static const char *look(const char *name)
{
	for (const char *const *at = variables; at && *at; at++)
		if (!strncmp(*at, name, strlen(name)) && (*at)[strlen(name)] == '=')
			return *at + strlen(name) + 1;
	return NULL;
}
#define ENVIRONMENT(...) ((const char *const[]){__VA_ARGS__, NULL})

/* Makes a target of the lines of [push a]; NULL with the fault in `why`. */
static struct push_target *target_of(const char *lines, const char *const *environment,
				     char why[CONFIG_WHY_BYTES])
{
	OWNED(config) struct config *config = NULL;
	struct push_target *target = NULL;
	struct config_push push;
	char text[CONFIG_VALUE_MAX_BYTES];
	int size = snprintf(text, sizeof(text), "[push a]\n%s", lines);

	variables = environment;
	why[0] = '\0';
	assert_int_equal(config_new(&config), 0);
	assert_int_equal(config_read_text(config, "a.conf", text, (size_t)size, why), 0);
	assert_int_equal(config_push(config, 0, &push, why), 0);
	if (push_target_new(&push, collector_get(push.collector), look, why, &target))
		assert_null(target);
	return target;
}

static void push_target_new__adds_the_protocols_path(void **state)
{
	static const struct {
		const char *lines, *url;
	} cases[] = {
		{"type=pyroscope\nurl=http://h:4040\n", "http://h:4040/push.v1.PusherService/Push"},
		{"type=parca\nurl=https://h/below//\n", "https://h/below/api/profiles/writeraw"},
		{"type=otlp\nurl=http://h:4318/\n", "http://h:4318/v1development/profiles"},
		{"type=otlp\nurl=http://h/a/?k=v/\n", "http://h/a/v1development/profiles?k=v/"},
	};
	char why[CONFIG_WHY_BYTES];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		OWNED(push_target) struct push_target *target =
			target_of(cases[i].lines, NULL, why);

		assert_non_null(target);
		assert_string_equal(target->url, cases[i].url);
		assert_string_equal(target->name, "a");
		assert_int_equal(target->kind_bits, 1U << PP_PROFILE_CPU | 1U << PP_PROFILE_OFFCPU);
		assert_int_equal(target->timeout_ms, PUSH_TIMEOUT_DEFAULT_MS);
		assert_int_equal(target->is_packed, !strncmp(cases[i].lines, "type=otlp", 9));
	}
}

static void push_target_new__takes_the_whole_section(void **state)
{
	char why[CONFIG_WHY_BYTES];
	OWNED(push_target) struct push_target *target = target_of(
		"type=pyroscope\nurl=http://h\nkinds=wall\nlabels=pod, team\nlabels=rank\n"
		"header=X-A: b c\nheader=X-D: e\ntenant=t\nuser=u\ntoken-file=/t\nca=/ca\ncert=/c\n"
		"key=/k\nproxy=http://p:3128\nrelabel=source_labels=app regex=tmp action=drop\n",
		ENVIRONMENT("OTEL_EXPORTER_OTLP_HEADERS=X=1", "PARCA_BEARER_TOKEN=z"), why);

	(void)state;
	assert_non_null(target);
	assert_int_equal(target->kind_bits, 1U << PP_PROFILE_WALL);
	assert_int_equal(target->label_count, 3);
	assert_string_equal(target->label[1], "team");
	assert_string_equal(target->label[2], "rank");
	assert_int_equal(target->as.header_count, 2);
	assert_string_equal(target->as.header[0], "X-A: b c");
	assert_string_equal(target->as.header[1], "X-D: e");
	assert_string_equal(target->as.tenant, "t");
	assert_string_equal(target->as.user, "u");
	assert_string_equal(target->as.token_file, "/t");
	assert_null(target->as.token);
	assert_string_equal(target->as.ca, "/ca");
	assert_string_equal(target->as.cert, "/c");
	assert_string_equal(target->as.key, "/k");
	assert_string_equal(target->as.proxy, "http://p:3128");
	assert_non_null(target->rules);
}

static void push_target_new__the_environment_is_behind_the_configuration(void **state)
{
	const char *const *const environment = ENVIRONMENT(
		"OTEL_EXPORTER_OTLP_ENDPOINT=http://all:1/", "OTEL_EXPORTER_OTLP_CERTIFICATE=/all",
		"OTEL_EXPORTER_OTLP_HEADERS=a=b%20c,d=%65", "OTEL_EXPORTER_OTLP_COMPRESSION=none",
		"OTEL_EXPORTER_OTLP_TIMEOUT=2500", "PARCA_BEARER_TOKEN=z");
	char why[CONFIG_WHY_BYTES];
	struct push_target *target = target_of("type=otlp\n", environment, why);

	(void)state;
	assert_non_null(target);
	assert_string_equal(target->url, "http://all:1/v1development/profiles");
	assert_string_equal(target->as.ca, "/all");
	assert_int_equal(target->as.header_count, 2);
	assert_string_equal(target->as.header[0], "a: b c");
	assert_string_equal(target->as.header[1], "d: e");
	assert_false(target->is_packed);
	assert_int_equal(target->timeout_ms, 2500);
	assert_null(target->as.token);
	push_target_free(target);

	target = target_of("type=otlp\nurl=http://own\nca=/own\nheader=X: 1\n", environment, why);
	assert_string_equal(target->url, "http://own/v1development/profiles");
	assert_string_equal(target->as.ca, "/own");
	assert_int_equal(target->as.header_count, 1);
	push_target_free(target);

	target = target_of("type=parca\nurl=http://own\n", environment, why);
	assert_string_equal(target->as.token, "z");
	assert_null(target->as.ca);
	assert_int_equal(target->as.header_count, 0);
	push_target_free(target);
	target = target_of("type=parca\nurl=http://own\ntoken-file=/t\n", environment, why);
	assert_null(target->as.token);
	push_target_free(target);
}

/* As OpenTelemetry has it: the endpoint of one signal is the whole URL. */
static void push_target_new__what_is_for_profiles_alone_counts_first(void **state)
{
	char why[CONFIG_WHY_BYTES];
	OWNED(push_target) struct push_target *target =
		target_of("type=otlp\n",
			  ENVIRONMENT("OTEL_EXPORTER_OTLP_ENDPOINT=http://all",
				      "OTEL_EXPORTER_OTLP_PROFILES_ENDPOINT=https://own/x",
				      "OTEL_EXPORTER_OTLP_TIMEOUT=1",
				      "OTEL_EXPORTER_OTLP_PROFILES_TIMEOUT=99999999"),
			  why);

	(void)state;
	assert_string_equal(target->url, "https://own/x");
	assert_int_equal(target->timeout_ms, PUSH_TIMEOUT_MAX_MS);
}

static void push_target_new__a_token_in_its_url_is_not_told(void **state)
{
	char why[CONFIG_WHY_BYTES];
	OWNED(push_target) struct push_target *target =
		target_of("type=otlp\n",
			  ENVIRONMENT("OTEL_EXPORTER_OTLP_PROFILES_ENDPOINT=https://h/x?t=geheim"),
			  why);

	(void)state;
	assert_string_equal(target->url, "https://h/x?t=geheim");
	assert_string_equal(target->shown_url, "https://h/x?***");
	assert_null(target_of("type=otlp\n",
			      ENVIRONMENT("OTEL_EXPORTER_OTLP_ENDPOINT=https://u:geheim@h"), why));
	assert_string_equal(why, "[push a] OTEL_EXPORTER_OTLP_ENDPOINT has a user in it: give "
				 "user= and, for the password, token-file=");
}

static void push_target_new__what_is_wrong_is_told_in_one_line(void **state)
{
	static const struct {
		const char *lines, *variable, *part;
	} cases[] = {
		{"type=otlp\n", "X=1", "needs url=, or OTEL_EXPORTER_OTLP_ENDPOINT"},
		{"type=otlp\n", "OTEL_EXPORTER_OTLP_ENDPOINT=", "needs url="},
		{"type=otlp\n", "OTEL_EXPORTER_OTLP_ENDPOINT=ftp://h", "is no URL"},
		{"type=otlp\nurl=http://h\n", "OTEL_EXPORTER_OTLP_HEADERS=a", "NAME=VALUE"},
		{"type=otlp\nurl=http://h\n", "OTEL_EXPORTER_OTLP_HEADERS==a", "NAME=VALUE"},
		{"type=otlp\nurl=http://h\n", "OTEL_EXPORTER_OTLP_HEADERS=a=b%0d%0aX:1",
		 "control codes"},
		{"type=otlp\nurl=http://h\n", "OTEL_EXPORTER_OTLP_COMPRESSION=zstd",
		 "gzip or none"},
		{"type=otlp\nurl=http://h\n", "OTEL_EXPORTER_OTLP_TIMEOUT=10s", "milliseconds"},
		{"type=parca\nurl=http://h\n", "PARCA_BEARER_TOKEN=a b", "has blanks"},
		{"type=parca\nurl=http://h\n"
		 "labels=a,b,c,d,e,f,g,h,i,j,k,l,m,n,o,p,q,r,s,t,u,v,w,x,y\n",
		 "X=1", "more than 24 labels"},
	};
	char why[CONFIG_WHY_BYTES];

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		assert_null(target_of(cases[i].lines, ENVIRONMENT(cases[i].variable), why));
		if (!strstr(why, cases[i].part) || !strstr(why, "[push a]"))
			fail_msg("%zu: '%s'", i, why);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(push_target_new__adds_the_protocols_path),
		cmocka_unit_test(push_target_new__takes_the_whole_section),
		cmocka_unit_test(push_target_new__the_environment_is_behind_the_configuration),
		cmocka_unit_test(push_target_new__what_is_for_profiles_alone_counts_first),
		cmocka_unit_test(push_target_new__a_token_in_its_url_is_not_told),
		cmocka_unit_test(push_target_new__what_is_wrong_is_told_in_one_line),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
