/* SPDX-License-Identifier: BSD-2-Clause */
/* Lanes in Chrome's format: a JSON array, whose closing bracket readers do not need when a run was
 * cut.  The format has one lane per thread: other lanes become threads of their own, whose tids are
 * LANE_TIDS higher. */
#include "timeline/lanes.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "timeline/trace_format.h"

#define LANE_TIDS 10000000U /* above every tid (2^22) */

struct chrome {
	struct trace_file *file;
	const struct intern *strings;
	uint64_t start_ns;
	FILE *out; /* writes to text */
	char *text;
	size_t size;
	struct json_writer json;
	struct trace_text clean;
};

static void chrome_free(void *context)
{
	struct chrome *chrome = context;

	if (!chrome)
		return;
	if (chrome->out)
		fclose(chrome->out);
	free(chrome->text);
	trace_text_release(&chrome->clean);
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

static const char *clean(struct chrome *chrome, const char *text, size_t size)
{
	return trace_text_clean(&chrome->clean, text, size) ? "" : chrome->clean.text;
}

static const char *string(struct chrome *chrome, uint32_t id)
{
	size_t size;
	const char *text = intern_get(chrome->strings, id, &size);

	return clean(chrome, text, size);
}

static struct chrome_track track_of(const struct trace_thread *thread, enum trace_lane lane)
{
	return (struct chrome_track){.pid = thread->id.tgid,
				     .tid = thread->tid + (uint32_t)lane * LANE_TIDS};
}

static int chrome_thread(void *context, const struct trace_thread *thread, const char *process_name,
			 const char *thread_name)
{
	static const char *const suffix[TRACE_LANES] = {"", ": CPU", ": GIL"};
	struct chrome *chrome = context;
	struct json_writer *json = &chrome->json;
	struct chrome_track track = track_of(thread, TRACE_FUNCTION);

	chrome_put_name(json, "process_name", &track,
			clean(chrome, process_name, strlen(process_name)));
	for (unsigned int lane = 0; lane < TRACE_LANES; lane++) {
		char name[256];

		track = track_of(thread, (enum trace_lane)lane);
		snprintf(name, sizeof(name), "%s%s", thread_name, suffix[lane]);
		chrome_put_name(json, "thread_name", &track, clean(chrome, name, strlen(name)));
		chrome_open_event(json, "M", "thread_sort_index", &track);
		json_put_open(json, "args", '{');
		json_put_int(json, "sort_index", thread->number * TRACE_LANES + lane);
		json_close(json, '}');
		json_close(json, '}');
	}
	return put(chrome);
}

/* Opens an event of either kind. */
static void open_event(struct chrome *chrome, const struct trace_slice *slice, const char *phase,
		       const char *category)
{
	const struct chrome_track track = track_of(slice->thread, slice->lane);
	const uint64_t since_ns =
		slice->start_ns > chrome->start_ns ? slice->start_ns - chrome->start_ns : 0;

	chrome_open_event(&chrome->json, phase, string(chrome, slice->name), &track);
	json_put_string(&chrome->json, "cat", category);
	chrome_put_us(&chrome->json, "ts", since_ns);
}

static int close_event(struct chrome *chrome, const struct trace_slice *slice)
{
	struct json_writer *json = &chrome->json;

	json_put_open(json, "args", '{');
	if (slice->cpu != TRACE_NO_CPU)
		json_put_int(json, "cpu", slice->cpu);
	if (slice->holder_tid)
		json_put_int(json, "holder", slice->holder_tid);
	if (slice->stack)
		json_put_string(json, "stack", string(chrome, slice->stack));
	json_close(json, '}');
	json_close(json, '}');
	return put(chrome);
}

static int chrome_slice(void *context, const struct trace_slice *slice)
{
	static const char *const category[TRACE_LANES] = {"function", "cpu", "gil"};
	struct chrome *chrome = context;

	open_event(chrome, slice, "X", category[slice->lane]);
	chrome_put_us(&chrome->json, "dur", slice->end_ns - slice->start_ns);
	return close_event(chrome, slice);
}

static int chrome_instant(void *context, const struct trace_slice *slice)
{
	struct chrome *chrome = context;

	open_event(chrome, slice, "i", "sample");
	json_put_string(&chrome->json, "s", "t"); /* as high as a thread's lane */
	return close_event(chrome, slice);
}

static int chrome_end(void *context)
{
	struct chrome *chrome = context;

	return trace_file_put_last(chrome->file, "\n]\n", 3);
}

int chrome_sink_new(struct trace_file *file, const struct intern *strings,
		    const struct trace_start *start, struct trace_sink *ret_sink)
{
	static const struct chrome_track none;
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
	chrome->json = json_writer_to(chrome->out);
	json_open(&chrome->json, '[');
	chrome_open_event(&chrome->json, "M", "pyprofd", &none);
	json_put_open(&chrome->json, "args", '{');
	json_put_int(&chrome->json, "start_monotonic_ns", (int64_t)start->monotonic_ns);
	json_put_int(&chrome->json, "start_wall_ns", (int64_t)start->wall_ns);
	json_close(&chrome->json, '}');
	json_close(&chrome->json, '}');
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
