/* SPDX-License-Identifier: BSD-2-Clause */
/* sources: timeline/chrome.c timeline/perfetto.c timeline/trace_file.c timeline/trace_writer.c base/background.c base/utf8.c base/io.c base/safe_file.c base/sudo_user.c base/intern.c gen/perfetto.pb-c.c base/running.c */
#include "timeline/trace_sink.h"

#include <cmocka.h>
#include <errno.h>
#include <string.h>

#include "base/io.h"
#include "perfetto.pb-c.h"

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
	assert_non_null(strstr(
		bench.text, "{\"ph\":\"X\",\"cat\":\"cpu\",\"pid\":5,\"tid\":10000007,\"ts\":1.000,"
			    "\"name\":\"on CPU\",\"dur\":1.500,\"args\":{\"cpu\":3}}"));
	assert_non_null(strstr(bench.text,
			       "\"ts\":2.500,\"name\":\"Waiting for GIL\",\"dur\":6.001,"
			       "\"args\":{\"holder\":8}}"));
	assert_non_null(
		strstr(bench.text,
		       "\"tid\":20000007,\"name\":\"thread_name\",\"args\":{\"name\":\"w: GIL\"}"));
	/* A broken byte and both characters that need it are escaped. */
	assert_non_null(strstr(bench.text,
			       "\"ts\":1.500,\"name\":\"say \\\"\xef\xbf\xbd\\\\\",\"s\":\"t\","
			       "\"args\":{\"stack\":\"f (a.py:1) < g\"}}"));
	assert_int_equal(memcmp(bench.text, "[\n{", 3), 0);
	assert_int_equal(memcmp(bench.text + bench.size - 4, "}\n]\n", 4), 0);
	free(bench.text);
}

static const Perfetto__TrackDescriptor *find_track(const Perfetto__Trace *trace, uint64_t uuid)
{
	for (size_t i = 0; i < trace->n_packet; i++)
		if (trace->packet[i]->track_descriptor &&
		    trace->packet[i]->track_descriptor->uuid == uuid)
			return trace->packet[i]->track_descriptor;
	return NULL;
}

static const char *find_name(const Perfetto__Trace *trace, uint64_t iid, unsigned int *ret_times)
{
	const char *name = NULL;

	*ret_times = 0;
	for (size_t i = 0; i < trace->n_packet; i++) {
		const Perfetto__InternedData *data = trace->packet[i]->interned_data;

		for (size_t j = 0; data && j < data->n_event_names; j++)
			if (data->event_names[j]->iid == iid) {
				name = data->event_names[j]->text;
				++*ret_times;
			}
	}
	return name;
}

static void perfetto__slices_begin_and_end_on_their_tracks(void **state)
{
	const Perfetto__TrackDescriptor *track;
	const Perfetto__TracePacket *begin, *end;
	Perfetto__Trace *trace;
	struct bench bench;
	unsigned int times;

	(void)state;
	open_bench(&bench, perfetto_sink_new);
	add_all(&bench);
	close_bench(&bench);
	trace = perfetto__trace__unpack(NULL, bench.size, (const uint8_t *)bench.text);
	assert_non_null(trace);
	/* Clocks, first, process, thread, two lanes, instant, three slices. */
	assert_int_equal(trace->n_packet, 2 + 4 + 1 + 6);
	assert_int_equal(trace->packet[1]->sequence_flags, 1);
	assert_int_equal(trace->packet[1]->trace_packet_defaults->timestamp_clock_id, 3);
	begin = trace->packet[9];
	end = trace->packet[10];
	assert_int_equal(begin->timestamp, 3500);
	assert_int_equal(begin->track_event->type, 1);
	assert_int_equal(end->timestamp, 9501);
	assert_int_equal(end->track_event->type, 2);
	assert_int_equal(end->track_event->track_uuid, begin->track_event->track_uuid);
	assert_string_equal(find_name(trace, begin->track_event->name_iid, &times),
			    "Waiting for GIL");
	assert_int_equal(times, 1); /* the second slice of this name does not say it again */
	assert_int_equal(begin->track_event->debug_annotations[0]->uint_value, 8);
	track = find_track(trace, begin->track_event->track_uuid);
	assert_string_equal(track->name, "GIL");
	track = find_track(trace, track->parent_uuid);
	assert_int_equal(track->thread->tid, 7);
	assert_string_equal(track->thread->thread_name, "w");
	perfetto__trace__free_unpacked(trace, NULL);
	free(bench.text);
}

static void perfetto__full_file_has_whole_slices_only(void **state)
{
	Perfetto__Trace *trace;
	struct bench bench;
	struct trace_slice made;
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
	trace = perfetto__trace__unpack(NULL, bench.size, (const uint8_t *)bench.text);
	assert_non_null(trace);
	for (size_t i = 0; i < trace->n_packet; i++) {
		begins += trace->packet[i]->track_event && trace->packet[i]->track_event->type == 1;
		ends += trace->packet[i]->track_event && trace->packet[i]->track_event->type == 2;
	}
	assert_true(begins > 1000);
	assert_int_equal(begins, ends);
	perfetto__trace__free_unpacked(trace, NULL);
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
