/* SPDX-License-Identifier: BSD-2-Clause */
/* Chrome's Trace Event Format: a JSON array, whose closing bracket readers do not need when a run
 * was cut. The format has one lane per thread: other lanes become threads of their own, whose tids
 * are LANE_TIDS higher. */
#include "timeline/trace_sink.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/utf8.h"

#define LANE_TIDS 10000000U /* above every tid (2^22) */
#define NS_PER_US 1000U

struct chrome {
	struct trace_file *file;
	const struct intern *strings;
	uint64_t start_ns;
	FILE *out; /* writes to text */
	char *text;
	size_t size;
	char *clean;
	size_t clean_capacity;
};

static void chrome_free(void *context)
{
	struct chrome *chrome = context;

	if (!chrome)
		return;
	if (chrome->out)
		fclose(chrome->out);
	free(chrome->text);
	free(chrome->clean);
	free(chrome);
}
static void chrome_free_owned(struct chrome **chrome)
{
	chrome_free(*chrome);
}

/* Writes what was printed since the last call to the file, as one piece. */
static int put(struct chrome *chrome)
{
	int err;

	if (fflush(chrome->out) || ferror(chrome->out))
		return -ENOMEM;
	err = trace_file_put(chrome->file, chrome->text, chrome->size);
	rewind(chrome->out);
	return err;
}

/* Prints a JSON string with its quotes.  In clean UTF-8 only two characters need escaping. */
static void print_string(struct chrome *chrome, const char *text, size_t size)
{
	size_t room = size * UTF8_CLEAN_MAX_GROWTH + 1, clean_size;

	if (room > chrome->clean_capacity) {
		char *grown = realloc(chrome->clean, room);

		if (!grown) {
			fputs("\"\"", chrome->out);
			return;
		}
		chrome->clean = grown;
		chrome->clean_capacity = room;
	}
	clean_size = utf8_clean(text, size, chrome->clean);
	fputc('"', chrome->out);
	for (size_t i = 0; i < clean_size; i++) {
		if (chrome->clean[i] == '"' || chrome->clean[i] == '\\')
			fputc('\\', chrome->out);
		fputc(chrome->clean[i], chrome->out);
	}
	fputc('"', chrome->out);
}

static void print_id(struct chrome *chrome, uint32_t id)
{
	size_t size;
	const char *text = intern_get(chrome->strings, id, &size);

	print_string(chrome, text, size);
}

static void print_us(struct chrome *chrome, const char *key, uint64_t ns)
{
	fprintf(chrome->out, ",\"%s\":%" PRIu64 ".%03u", key, ns / NS_PER_US,
		(unsigned int)(ns % NS_PER_US));
}

static uint32_t lane_tid(uint32_t tid, enum trace_lane lane)
{
	return tid + (uint32_t)lane * LANE_TIDS;
}

static void print_metadata(struct chrome *chrome, const struct trace_thread *thread, uint32_t tid,
			   const char *what, const char *value)
{
	fprintf(chrome->out,
		",\n{\"ph\":\"M\",\"pid\":%" PRIu32 ",\"tid\":%" PRIu32
		",\"name\":\"%s\",\"args\":{\"name\":",
		thread->id.tgid, tid, what);
	print_string(chrome, value, strlen(value));
	fputs("}}", chrome->out);
}

static int chrome_thread(void *context, const struct trace_thread *thread, const char *process_name,
			 const char *thread_name)
{
	static const char *const suffix[TRACE_LANES] = {"", ": CPU", ": GIL"};
	struct chrome *chrome = context;

	print_metadata(chrome, thread, thread->tid, "process_name", process_name);
	for (unsigned int lane = 0; lane < TRACE_LANES; lane++) {
		uint32_t tid = lane_tid(thread->tid, (enum trace_lane)lane);
		char name[256];

		snprintf(name, sizeof(name), "%s%s", thread_name, suffix[lane]);
		print_metadata(chrome, thread, tid, "thread_name", name);
		fprintf(chrome->out,
			",\n{\"ph\":\"M\",\"pid\":%" PRIu32 ",\"tid\":%" PRIu32
			",\"name\":\"thread_sort_index\",\"args\":{\"sort_index\":%" PRIu32 "}}",
			thread->id.tgid, tid, thread->number * TRACE_LANES + lane);
	}
	return put(chrome);
}

/* Prints the beginning of both kinds of events. */
static void print_head(struct chrome *chrome, const struct trace_slice *slice, const char *phase,
		       const char *category)
{
	uint64_t since_ns =
		slice->start_ns > chrome->start_ns ? slice->start_ns - chrome->start_ns : 0;

	fprintf(chrome->out,
		",\n{\"ph\":\"%s\",\"cat\":\"%s\",\"pid\":%" PRIu32 ",\"tid\":%" PRIu32, phase,
		category, slice->thread->id.tgid, lane_tid(slice->thread->tid, slice->lane));
	print_us(chrome, "ts", since_ns);
	fputs(",\"name\":", chrome->out);
	print_id(chrome, slice->name);
}

static void print_arguments(struct chrome *chrome, const struct trace_slice *slice)
{
	const char *comma = "";

	fputs(",\"args\":{", chrome->out);
	if (slice->cpu != TRACE_NO_CPU) {
		fprintf(chrome->out, "\"cpu\":%" PRIu32, slice->cpu);
		comma = ",";
	}
	if (slice->holder_tid) {
		fprintf(chrome->out, "%s\"holder\":%" PRIu32, comma, slice->holder_tid);
		comma = ",";
	}
	if (slice->stack) {
		fprintf(chrome->out, "%s\"stack\":", comma);
		print_id(chrome, slice->stack);
	}
	fputs("}}", chrome->out);
}

static int chrome_slice(void *context, const struct trace_slice *slice)
{
	static const char *const category[TRACE_LANES] = {"function", "cpu", "gil"};
	struct chrome *chrome = context;

	print_head(chrome, slice, "X", category[slice->lane]);
	print_us(chrome, "dur", slice->end_ns - slice->start_ns);
	print_arguments(chrome, slice);
	return put(chrome);
}

static int chrome_instant(void *context, const struct trace_slice *slice)
{
	struct chrome *chrome = context;

	print_head(chrome, slice, "i", "sample");
	fputs(",\"s\":\"t\"", chrome->out);
	print_arguments(chrome, slice);
	return put(chrome);
}

static int chrome_end(void *context)
{
	struct chrome *chrome = context;

	return trace_file_put_last(chrome->file, "\n]\n", 3);
}

int chrome_sink_new(struct trace_file *file, const struct intern *strings,
		    const struct trace_start *start, struct trace_sink *ret_sink)
{
	CLEANUP(chrome_free_owned) struct chrome *chrome = calloc(1, sizeof(*chrome));
	int err;

	if (!chrome)
		return -ENOMEM;
	chrome->file = file;
	chrome->strings = strings;
	chrome->start_ns = start->monotonic_ns;
	chrome->out = open_memstream(&chrome->text, &chrome->size);
	if (!chrome->out)
		return -ENOMEM;
	/* A first event, so that all others can begin with a comma. */
	fprintf(chrome->out,
		"[\n{\"ph\":\"M\",\"pid\":0,\"name\":\"pyprofd\",\"args\":{\"start_monotonic_ns\":"
		"%" PRIu64 ",\"start_wall_ns\":%" PRIu64 "}}",
		start->monotonic_ns, start->wall_ns);
	err = put(chrome);
	if (err)
		return err;
	*ret_sink = (struct trace_sink){.context = TAKE(chrome),
					.thread = chrome_thread,
					.slice = chrome_slice,
					.instant = chrome_instant,
					.end = chrome_end,
					.free = chrome_free};
	return 0;
}
