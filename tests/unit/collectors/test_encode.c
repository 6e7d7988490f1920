/* SPDX-License-Identifier: BSD-2-Clause */
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "collectors/requests.h"
#include "pprof/gzip.h"
#include "pprof/profile_read.h"
#include "push_fixture.h"

static struct push_requests encode_window(struct fixture *f, const struct push_encoding *encoding,
					  const struct push_window *window)
{
	struct push_known_series known = {0};
	struct push_division division = {0};
	struct push_requests requests = {0};

	assert_int_equal(push_divide(f->profile, &encoding->labels, START_MS, &known, &division),
			 0);
	assert_int_equal(push_encode(encoding, f->profile, &division, window, &requests), 0);
	push_division_release(&division);
	return requests;
}

static struct push_requests encode(struct fixture *f, const struct push_encoding *encoding)
{
	return encode_window(f, encoding, &(struct push_window){"offcpu", START_NS, DURATION_NS});
}

static int file_of(struct wire bytes)
{
	int fd = memfd_create("profile", MFD_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, bytes.at, (size_t)(bytes.end - bytes.at)), bytes.end - bytes.at);
	assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
	return fd;
}

static struct profile_reader *read_profile(struct wire bytes)
{
	const struct profile_read_options options = {0};
	struct profile_reader *reader;
	int fd = file_of(bytes);

	assert_int_equal(profile_reader_new(&options, &reader), 0);
	assert_int_equal(profile_reader_add(reader, fd, NULL), 0);
	close(fd);
	return reader;
}

/* What is in the profile of one series: nothing but stacks and values that collectors know. */
static void check_profile(struct wire bytes, uint32_t rows, int64_t first_value)
{
	struct profile_reader *reader = read_profile(bytes);
	const struct profile *profile = profile_reader_profile(reader);

	assert_int_equal(profile->row_count, rows);
	assert_int_equal(profile->options.value_count, 2);
	assert_string_equal(profile->options.value_type[1].type, "events");
	assert_string_equal(profile->options.period_type.type, "off_cpu");
	assert_int_equal(profile->options.period, 1);
	assert_int_equal(profile->options.start_wall_ns, START_NS);
	assert_int_equal(profile->options.duration_ns, DURATION_NS);
	assert_int_equal(profile->comment_count, 0);
	assert_int_equal(profile->key_count, 0);
	if (rows)
		assert_int_equal(profile_row_values(profile, 0)[0], first_value);
	profile_reader_free(reader);
}

static void two_services(struct fixture *f)
{
	fixture_init(f);
	add(f, "a", 10, LABELS("app=shop", "pod=p1", "thread_name=secret-thread", "tid#1"));
	add(f, "b", 20, LABELS("app=shop", "pod=p1", "thread_name=secret-thread", "tid#1"));
	add(f, "a", 5, LABELS("app=train", "pod=p2", "comm=secret-comm"));
}

static void check_label(struct wire series, unsigned int index, const char *name, const char *value)
{
	struct wire label = bytes_of(series, 1, index);
	char text[2048];

	assert_string_equal(text_of(bytes_of(label, 1, 0), text), name);
	assert_string_equal(text_of(bytes_of(label, 2, 0), text), value);
}

static void push_encode__pyroscope_has_one_series_a_service(void **state)
{
	const struct push_encoding encoding = {.collector = &collector_pyroscope,
					       .host = "node1",
					       .labels = {.key = {"pod"}, .count = 1}};
	struct push_requests requests, again;
	struct wire request, series, sample;
	struct fixture f;
	char text[2048];

	(void)state;
	two_services(&f);
	requests = encode(&f, &encoding);
	assert_int_equal(requests.count, 1);
	request = message_of(requests.request[0].body, requests.request[0].size);
	assert_int_equal(count_fields(request, 1), 2);
	series = bytes_of(request, 1, 0);
	assert_int_equal(count_fields(series, 1), 4);
	check_label(series, 0, "__name__", "off_cpu");
	check_label(series, 1, "hostname", "node1");
	check_label(series, 2, "pod", "p1");
	check_label(series, 3, "service_name", "shop");
	sample = bytes_of(series, 2, 0);
	check_profile(bytes_of(sample, 1, 0), 2, 10);
	assert_int_equal(strlen(text_of(bytes_of(sample, 2, 0), text)), 36);
	check_profile(bytes_of(bytes_of(bytes_of(request, 1, 1), 2, 0), 1, 0), 1, 5);
	/* The cursor's hash of what was sent holds at the next try. */
	again = encode(&f, &encoding);
	assert_int_equal(again.request[0].size, requests.request[0].size);
	assert_memory_equal(again.request[0].body, requests.request[0].body,
			    requests.request[0].size);
	push_requests_release(&again);
	push_requests_release(&requests);
	fixture_release(&f);
}

/* Two services that did the same: their profiles are equal, and both count. */
static void push_encode__pyroscope_ids_are_of_one_series(void **state)
{
	const struct push_encoding encoding = {.collector = &collector_pyroscope, .host = "node1"};
	struct push_requests requests;
	struct wire request, sample[2];
	struct fixture f;
	char text[2][2048];

	(void)state;
	fixture_init(&f);
	add(&f, "a", 10, LABELS("app=shop"));
	add(&f, "a", 10, LABELS("app=train"));
	requests = encode(&f, &encoding);
	request = message_of(requests.request[0].body, requests.request[0].size);
	for (unsigned int i = 0; i < 2; i++) {
		sample[i] = bytes_of(bytes_of(request, 1, i), 2, 0);
		text_of(bytes_of(sample[i], 2, 0), text[i]);
		assert_int_equal(strlen(text[i]), 36);
	}
	assert_memory_equal(bytes_of(sample[0], 1, 0).at, bytes_of(sample[1], 1, 0).at,
			    (size_t)(bytes_of(sample[0], 1, 0).end - bytes_of(sample[0], 1, 0).at));
	assert_string_not_equal(text[0], text[1]);
	push_requests_release(&requests);
	fixture_release(&f);
}

static void push_encode__pyroscope_knows_kinds_by_the_fields_names(void **state)
{
	static const char *const names[][2] = {
		{"cpu", "process_cpu"}, {"offcpu", "off_cpu"}, {"wall", "wall"}};
	const struct push_encoding encoding = {.collector = &collector_pyroscope, .host = "node1"};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		const struct push_window window = {names[i][0], START_NS, DURATION_NS};
		struct push_requests requests;
		struct fixture f;

		two_services(&f);
		requests = encode_window(&f, &encoding, &window);
		check_label(bytes_of(message_of(requests.request[0].body, requests.request[0].size),
				     1, 0),
			    0, "__name__", names[i][1]);
		push_requests_release(&requests);
		fixture_release(&f);
	}
}

static struct wire decode_base64(const char *text, uint8_t *bytes)
{
	static const char digits[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	size_t size = 0;
	uint32_t bits = 0, count = 0;

	for (; *text != '"' && *text != '='; text++) {
		bits = bits << 6 | (uint32_t)(strchr(digits, *text) - digits);
		count += 6;
		if (count >= 8) {
			count -= 8;
			bytes[size++] = (uint8_t)(bits >> count);
		}
	}
	return message_of(bytes, size);
}

static void push_encode__parca_has_labels_at_the_series(void **state)
{
	const struct push_encoding encoding = {.collector = &collector_parca,
					       .host = "node\"1",
					       .labels = {.key = {"pod"}, .count = 1}};
	struct push_requests requests;
	struct fixture f;
	uint8_t bytes[65536];
	char *text;

	(void)state;
	two_services(&f);
	requests = encode(&f, &encoding);
	assert_int_equal(requests.count, 1);
	text = strndup(requests.request[0].body, requests.request[0].size);
	assert_ptr_equal(strstr(text, "{\"series\":[{\"labels\":{\"labels\":["
				      "{\"name\":\"__name__\",\"value\":\"pyprofd\"},"
				      "{\"name\":\"node\",\"value\":\"node\\\"1\"},"
				      "{\"name\":\"pod\",\"value\":\"p1\"},"
				      "{\"name\":\"service_name\",\"value\":\"shop\"}]},"
				      "\"samples\":[{\"rawProfile\":\"H4sI"),
			 text);
	assert_non_null(strstr(text, "\"normalized\":false}"));
	assert_null(strstr(text, "secret"));
	check_profile(decode_base64(strstr(text, "rawProfile") + 13, bytes), 2, 10);
	free(text);
	push_requests_release(&requests);
	fixture_release(&f);
}

/* Fields of the request: 1 resource_profiles, 2 dictionary; of the dictionary: 1 mapping, 2
 * location, 3 function, 4 link, 5 string, 6 attribute, 7 stack. */
static void check_dictionary(struct wire dictionary)
{
	for (uint32_t field = 1; field <= 7; field++) {
		struct wire first = bytes_of(dictionary, field, 0);

		if (first.at != first.end)
			fail_msg("table %u begins with an entry that is not zero", field);
	}
}

static void check_resource(struct wire resource_profiles, const char *service, uint32_t samples)
{
	struct wire resource = bytes_of(resource_profiles, 1, 0);
	struct wire scopes = bytes_of(resource_profiles, 2, 0);
	struct wire profile;
	char text[2048];

	assert_string_equal(text_of(bytes_of(bytes_of(resource, 1, 0), 1, 0), text),
			    "service.name");
	assert_string_equal(text_of(bytes_of(bytes_of(bytes_of(resource, 1, 0), 2, 0), 1, 0), text),
			    service);
	assert_string_equal(text_of(bytes_of(bytes_of(resource, 1, 1), 1, 0), text), "host.name");
	assert_string_equal(text_of(bytes_of(bytes_of(bytes_of(resource, 1, 1), 2, 0), 1, 0), text),
			    "node1");
	bytes_of(scopes, 1, 0);
	assert_int_equal(count_fields(scopes, 2), 2);
	for (unsigned int i = 0; i < 2; i++) {
		profile = bytes_of(scopes, 2, i);
		assert_int_equal(count_fields(profile, 2), samples);
		bytes_of(profile, 5, 0); /* period type */
		assert_int_equal(count_fields(bytes_of(profile, 2, 0), 2), 1);
	}
}

static void push_encode__otlp_has_one_resource_a_service(void **state)
{
	const struct push_encoding encoding = {.collector = &collector_otlp,
					       .host = "node1",
					       .labels = {.key = {"pod"}, .count = 1}};
	struct push_requests requests;
	struct wire request;
	struct fixture f;

	(void)state;
	two_services(&f);
	requests = encode(&f, &encoding);
	assert_int_equal(requests.count, 1);
	request = message_of(requests.request[0].body, requests.request[0].size);
	assert_int_equal(count_fields(request, 1), 2);
	check_resource(bytes_of(request, 1, 0), "shop", 2);
	check_resource(bytes_of(request, 1, 1), "train", 1);
	check_dictionary(bytes_of(request, 2, 0));
	assert_null(memmem(requests.request[0].body, requests.request[0].size, "secret", 6));
	assert_non_null(
		memmem(requests.request[0].body, requests.request[0].size, "k8s.pod.name", 12));
	push_requests_release(&requests);
	fixture_release(&f);
}

static void push_encode__packed_otlp_is_the_same(void **state)
{
	struct push_encoding encoding = {.collector = &collector_otlp, .host = "node1"};
	struct push_requests plain, packed;
	struct unpacked unpacked = {0};
	struct fixture f;
	int fd;

	(void)state;
	two_services(&f);
	plain = encode(&f, &encoding);
	encoding.is_packed = true;
	packed = encode(&f, &encoding);
	assert_true(packed.request[0].size < plain.request[0].size);
	assert_int_equal(packed.request[0].raw_bytes, plain.request[0].size);
	fd = file_of(message_of(packed.request[0].body, packed.request[0].size));
	assert_int_equal(unpack_file(&unpacked, fd, 1 << 20), 0);
	assert_int_equal(unpacked.size, plain.request[0].size);
	assert_memory_equal(unpacked.byte, plain.request[0].body, unpacked.size);
	close(fd);
	unpack_release(&unpacked);
	push_requests_release(&plain);
	push_requests_release(&packed);
	fixture_release(&f);
}

/* More rows than one profile may have, and more bytes than a request: long names are most of it. */
static void many_rows(struct fixture *f, unsigned int count, unsigned int name_size)
{
	char name[1024], number[32];

	fixture_init(f);
	memset(name, 'n', sizeof(name));
	for (unsigned int i = 0; i < count; i++) {
		int size = snprintf(number, sizeof(number), "%u.", i);

		memcpy(name, number, (size_t)size);
		name[name_size] = '\0';
		add(f, name, 1, LABELS("app=shop"));
	}
}

static uint32_t rows_of_pyroscope(const struct push_request *request)
{
	struct wire message = message_of(request->body, request->size);
	unsigned int count = count_fields(message, 1);
	uint32_t rows = 0;
	uint64_t raw_bytes = 0;

	for (unsigned int i = 0; i < count; i++) {
		struct profile_reader *reader =
			read_profile(bytes_of(bytes_of(bytes_of(message, 1, i), 2, 0), 1, 0));
		struct profile_read_totals totals;

		profile_reader_totals(reader, &totals);
		raw_bytes += totals.raw_bytes;
		assert_in_range(profile_reader_profile(reader)->row_count, 1, PUSH_PART_ROWS_MAX);
		rows += profile_reader_profile(reader)->row_count;
		profile_reader_free(reader);
	}
	assert_int_equal(raw_bytes, request->raw_bytes);
	assert_in_range(raw_bytes, 1, PUSH_PART_RAW_MAX_BYTES);
	return rows;
}

static void check_split(unsigned int count, unsigned int name_size, uint32_t least)
{
	struct push_encoding encoding = {.collector = &collector_pyroscope, .host = "node1"};
	struct push_requests requests;
	struct fixture f;
	uint32_t rows = 0;

	many_rows(&f, count, name_size);
	requests = encode(&f, &encoding);
	assert_in_range(requests.count, least, 100);
	for (uint32_t i = 0; i < requests.count; i++)
		rows += rows_of_pyroscope(&requests.request[i]);
	assert_int_equal(rows, count);
	push_requests_release(&requests);

	encoding.collector = &collector_otlp;
	requests = encode(&f, &encoding);
	rows = 0;
	for (uint32_t i = 0; i < requests.count; i++) {
		struct wire message =
			message_of(requests.request[i].body, requests.request[i].size);

		assert_in_range(requests.request[i].size, 1, PUSH_PART_RAW_MAX_BYTES);
		rows += count_fields(bytes_of(bytes_of(bytes_of(message, 1, 0), 2, 0), 2, 0), 2);
	}
	assert_int_equal(rows, count);
	push_requests_release(&requests);
	fixture_release(&f);
}

static void push_encode__parts_are_below_the_limits_and_whole_together(void **state)
{
	(void)state;
	check_split(PUSH_PART_ROWS_MAX + 2, 8, 1);
	check_split(6000, 1000, 4);
}

static void push_encode__no_row_makes_no_request(void **state)
{
	struct push_encoding encoding = {.host = "node1"};
	struct push_requests requests;
	struct fixture f;

	(void)state;
	fixture_init(&f);
	for (unsigned int i = 0; i < COLLECTOR_COUNT; i++) {
		encoding.collector = collector_get((enum collector_id)i);
		if (!encoding.collector->encode)
			continue;
		requests = encode(&f, &encoding);
		assert_int_equal(requests.count, 0);
		push_requests_release(&requests);
	}
	fixture_release(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(push_encode__pyroscope_has_one_series_a_service),
		cmocka_unit_test(push_encode__pyroscope_ids_are_of_one_series),
		cmocka_unit_test(push_encode__pyroscope_knows_kinds_by_the_fields_names),
		cmocka_unit_test(push_encode__parca_has_labels_at_the_series),
		cmocka_unit_test(push_encode__otlp_has_one_resource_a_service),
		cmocka_unit_test(push_encode__packed_otlp_is_the_same),
		cmocka_unit_test(push_encode__parts_are_below_the_limits_and_whole_together),
		cmocka_unit_test(push_encode__no_row_makes_no_request),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
