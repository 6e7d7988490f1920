/* SPDX-License-Identifier: BSD-2-Clause */
#include "timeline/lanes.h"

#include <cmocka.h>
#include <errno.h>
#include <string.h>

#include "base/io.h"
#include "timeline/trace_format.h"

#define MIB (1U << 20)

static const struct trace_thread thread = {.id = {.tgid = 5, .generation = 1}, .tid = 7};

struct bench {
	char path[64];
	struct intern *strings;
	struct trace_file *file;
	struct trace_sink sink;
	char *text; /* of the closed file */
	size_t size;
};

static void open_bench(struct bench *bench,
		       int (*sink_new)(struct trace_file *, const struct intern *,
				       const struct trace_start *, struct trace_sink *))
{
	const struct trace_start start = {
		.monotonic_ns = 1000, .boottime_ns = 2000, .wall_ns = 3000};
	struct trace_file_options options = {.max_bytes = MIB, .uid = (uid_t)-1, .gid = (gid_t)-1};
	int fd;

	strcpy(bench->path, "/tmp/pyprofd-sink.XXXXXX");
	fd = mkstemp(bench->path);
	assert_true(fd >= 0);
	close(fd);
	options.path = bench->path;
	assert_int_equal(intern_new(&bench->strings), 0);
	assert_int_equal(trace_file_open(&options, &bench->file), 0);
	assert_int_equal(sink_new(bench->file, bench->strings, &start, &bench->sink), 0);
}

static void close_bench(struct bench *bench)
{
	assert_int_equal(bench->sink.end(bench->sink.context), 0);
	assert_int_equal(trace_file_close(bench->file), 0);
	assert_int_equal(read_file(bench->path, MIB, &bench->text, &bench->size), 0);
	unlink(bench->path);
	bench->sink.free(bench->sink.context);
	trace_file_free(bench->file);
	intern_free(bench->strings);
}

static struct trace_slice slice(struct bench *bench, enum trace_lane lane, uint64_t start_ns,
				uint64_t end_ns, const char *name)
{
	struct trace_slice made = {.thread = &thread,
				   .lane = lane,
				   .start_ns = start_ns,
				   .end_ns = end_ns,
				   .cpu = TRACE_NO_CPU};

	assert_int_equal(intern_string(bench->strings, name, &made.name), 0);
	return made;
}

static void add_all(struct bench *bench)
{
	struct trace_slice run = slice(bench, TRACE_CPU, 2000, 3500, "on CPU");
	struct trace_slice wait = slice(bench, TRACE_GIL, 3500, 9501, "Waiting for GIL");
	struct trace_slice sample = slice(bench, TRACE_FUNCTION, 2500, 2500, "say \"\xff\\");

	run.cpu = 3;
	wait.holder_tid = 8;
	assert_int_equal(intern_string(bench->strings, "f (a.py:1) < g", &sample.stack), 0);
	assert_int_equal(bench->sink.thread(bench->sink.context, &thread, "python3", "w"), 0);
	assert_int_equal(bench->sink.instant(bench->sink.context, &sample), 0);
	assert_int_equal(bench->sink.slice(bench->sink.context, &run), 0);
	assert_int_equal(bench->sink.slice(bench->sink.context, &wait), 0);
	assert_int_equal(bench->sink.slice(bench->sink.context, &wait), 0);
}

static void chrome__lanes_are_threads_and_times_microseconds(void **state)
{
	struct bench bench;

	(void)state;
	open_bench(&bench, chrome_sink_new);
	add_all(&bench);
	close_bench(&bench);
	assert_non_null(strstr(bench.text,
			       "{\"ph\":\"X\",\"name\":\"on CPU\",\"pid\":5,\"tid\":10000007,"
			       "\"cat\":\"cpu\",\"ts\":1.000,\"dur\":1.500,\"args\":{\"cpu\":3}}"));
	assert_non_null(strstr(bench.text,
			       "\"name\":\"Waiting for GIL\",\"pid\":5,\"tid\":20000007,"
			       "\"cat\":\"gil\",\"ts\":2.500,\"dur\":6.001,"
			       "\"args\":{\"holder\":8}}"));
	assert_non_null(strstr(bench.text, "\"name\":\"thread_name\",\"pid\":5,\"tid\":20000007,"
					   "\"args\":{\"name\":\"w: GIL\"}"));
	/* A broken byte and the characters that need it are escaped. */
	assert_non_null(strstr(bench.text,
			       "\"name\":\"say \\\"\xef\xbf\xbd\\\\\",\"pid\":5,\"tid\":7,"
			       "\"cat\":\"sample\",\"ts\":1.500,\"s\":\"t\","
			       "\"args\":{\"stack\":\"f (a.py:1) \\u003c g\"}}"));
	assert_int_equal(memcmp(bench.text, "[\n{", 3), 0);
	assert_int_equal(memcmp(bench.text + bench.size - 4, "}\n]\n", 4), 0);
	free(bench.text);
}

/* ---- Perfetto: a path of field numbers leads to a value ---- */

static struct wire trace_of(const struct bench *bench)
{
	return (struct wire){(const uint8_t *)bench->text,
			     (const uint8_t *)bench->text + bench->size};
}

/* Finds the index-th field with this number. */
static bool find_field(struct wire message, uint32_t number, unsigned int index,
		       struct wire_field *ret_field)
{
	int more;

	while ((more = wire_next(&message, ret_field)) > 0)
		if (ret_field->number == number && !index--)
			return true;
	assert_int_equal(more, 0);
	return false;
}

/* Follows a path, 0 at its end, below the packet. */
static bool find(struct wire trace, unsigned int packet, const uint32_t *path,
		 struct wire_field *ret_field)
{
	if (!find_field(trace, 1, packet, ret_field))
		return false;
	for (; *path; path++)
		if (!find_field(ret_field->bytes, *path, 0, ret_field))
			return false;
	return true;
}

static uint64_t number(struct wire trace, unsigned int packet, const uint32_t *path)
{
	struct wire_field field;

	return find(trace, packet, path, &field) && !field.is_bytes ? field.value : 0;
}
#define NUMBER(trace, packet, ...) number(trace, packet, (const uint32_t[]){__VA_ARGS__, 0})

static bool is_text(struct wire bytes, const char *text)
{
	return (size_t)(bytes.end - bytes.at) == strlen(text) &&
	       !memcmp(bytes.at, text, strlen(text));
}
static bool has_text(struct wire trace, unsigned int packet, const uint32_t *path, const char *text)
{
	struct wire_field field;

	return find(trace, packet, path, &field) && field.is_bytes && is_text(field.bytes, text);
}
#define HAS_TEXT(trace, packet, text, ...)                                                         \
	has_text(trace, packet, (const uint32_t[]){__VA_ARGS__, 0}, text)

static unsigned int count_packets(struct wire trace)
{
	struct wire_field field;
	unsigned int count = 0;

	while (find_field(trace, 1, count, &field))
		count++;
	return count;
}

/* Returns the packet that describes a track. */
static unsigned int find_track(struct wire trace, uint64_t uuid)
{
	for (unsigned int i = 0; i < count_packets(trace); i++)
		if (NUMBER(trace, i, PACKET_TRACK_DESCRIPTOR, 1) == uuid)
			return i;
	fail();
	return 0;
}

/* Returns how often a name is interned; all are the text. */
static unsigned int count_names(struct wire trace, uint64_t id, const char *text)
{
	unsigned int times = 0;

	for (unsigned int i = 2; i < count_packets(trace); i++) {
		if (NUMBER(trace, i, PACKET_INTERNED_DATA, INTERNED_EVENT_NAMES, 1) != id)
			continue;
		assert_true(
			HAS_TEXT(trace, i, text, PACKET_INTERNED_DATA, INTERNED_EVENT_NAMES, 2));
		times++;
	}
	return times;
}

static void perfetto__slices_begin_and_end_on_their_tracks(void **state)
{
	const unsigned int begin = 9, end = 10;
	struct bench bench;
	unsigned int track;
	struct wire trace;
	uint64_t uuid;

	(void)state;
	open_bench(&bench, perfetto_sink_new);
	add_all(&bench);
	close_bench(&bench);
	trace = trace_of(&bench);
	/* Clocks, first, process, thread, two lanes, instant, three slices. */
	assert_int_equal(count_packets(trace), 2 + 4 + 1 + 6);
	assert_int_equal(NUMBER(trace, 1, PACKET_SEQUENCE_FLAGS), PERFETTO_CLEARED);
	assert_int_equal(NUMBER(trace, 1, PACKET_DEFAULTS, 58), 3);
	assert_int_equal(NUMBER(trace, begin, PACKET_TIMESTAMP), 3500);
	assert_int_equal(NUMBER(trace, begin, PACKET_TRACK_EVENT, 9), 1);
	assert_int_equal(NUMBER(trace, end, PACKET_TIMESTAMP), 9501);
	assert_int_equal(NUMBER(trace, end, PACKET_TRACK_EVENT, 9), 2);
	uuid = NUMBER(trace, begin, PACKET_TRACK_EVENT, 11);
	assert_int_equal(NUMBER(trace, end, PACKET_TRACK_EVENT, 11), uuid);
	/* The second slice of this name does not say it again. */
	assert_int_equal(count_names(trace, NUMBER(trace, begin, PACKET_TRACK_EVENT, 10),
				     "Waiting for GIL"),
			 1);
	assert_int_equal(NUMBER(trace, begin, PACKET_TRACK_EVENT, 4, 3), 8);
	track = find_track(trace, uuid);
	assert_true(HAS_TEXT(trace, track, "GIL", PACKET_TRACK_DESCRIPTOR, 2));
	track = find_track(trace, NUMBER(trace, track, PACKET_TRACK_DESCRIPTOR, 5));
	assert_int_equal(NUMBER(trace, track, PACKET_TRACK_DESCRIPTOR, 4, 2), 7);
	assert_true(HAS_TEXT(trace, track, "w", PACKET_TRACK_DESCRIPTOR, 4, 5));
	free(bench.text);
}

static void perfetto__full_file_has_whole_slices_only(void **state)
{
	struct bench bench;
	struct trace_slice made;
	struct wire_field packet, event;
	struct wire trace;
	size_t begins = 0, ends = 0;
	int err = 0;

	(void)state;
	open_bench(&bench, perfetto_sink_new);
	assert_int_equal(bench.sink.thread(bench.sink.context, &thread, "python3", "w"), 0);
	for (uint64_t at = 0; !err; at += 2) {
		made = slice(&bench, TRACE_CPU, at, at + 1, "on CPU");
		err = bench.sink.slice(bench.sink.context, &made);
	}
	assert_int_equal(err, -EFBIG);
	close_bench(&bench);
	assert_true(bench.size < MIB);
	trace = trace_of(&bench);
	while ((err = wire_next(&trace, &packet)) > 0) {
		if (!find_field(packet.bytes, PACKET_TRACK_EVENT, 0, &event))
			continue;
		assert_true(find_field(event.bytes, 9, 0, &event));
		begins += event.value == 1;
		ends += event.value == 2;
	}
	assert_int_equal(err, 0);
	assert_true(begins > 1000);
	assert_int_equal(begins, ends);
	free(bench.text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(chrome__lanes_are_threads_and_times_microseconds),
		cmocka_unit_test(perfetto__slices_begin_and_end_on_their_tracks),
		cmocka_unit_test(perfetto__full_file_has_whole_slices_only),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
