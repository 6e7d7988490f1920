/* SPDX-License-Identifier: BSD-2-Clause */
/* pyprof dump: the stacks of all threads at this moment, from the running pyprofd. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "live/model.h"
#include "reader/live_options.h"
#include "reader/text.h"
#include "reader/verb.h"
#include "render/format.h"

#define THREADS_SHOWN 12U /* of a group, by their names */

enum option_key { KEY_ALL = 256, KEY_NO_NATIVE, KEY_NO_KERNEL };

struct dump {
	struct live_options live;
	bool all;
	bool color;
	bool is_short_of_memory;
	uint32_t processes;
};

static const struct argp_option options[] = {
	{"all", KEY_ALL, NULL, 0, "Every process that you may see", 1},
	{"no-native", KEY_NO_NATIVE, NULL, 0, "Leave native frames out of Python stacks", 2},
	{"no-kernel", KEY_NO_KERNEL, NULL, 0, "Leave kernel frames out", 2},
	{0},
};

static const char doc[] =
	"Shows the stacks that all threads have now, equal ones as one, with what each thread waits "
	"for and who holds the GIL.  No process is stopped.  It asks the running pyprofd; root "
	"needs none.  Other users see their own processes."
	"\vExamples:\n"
	"  sudo pyprof dump --pid 1234\n"
	"  sudo pyprof dump --all --no-native --no-kernel\n";

static error_t parse(int key, char *text, struct argp_state *state)
{
	struct dump *dump = state->input;

	(void)text;
	switch (key) {
	case ARGP_KEY_INIT:
		state->child_inputs[0] = &dump->live;
		return 0;
	case KEY_ALL:
		dump->all = true;
		return 0;
	case KEY_NO_NATIVE:
		dump->live.request.no_native = true;
		return 0;
	case KEY_NO_KERNEL:
		dump->live.request.no_kernel = true;
		return 0;
	case ARGP_KEY_END:
		if (dump->all == !!dump->live.request.pid_count)
			argp_error(state, "give --pid PID or --all");
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

/* ---- printing ---- */

static const char *bold(const struct dump *dump)
{
	return text_color(dump->color, TEXT_BOLD);
}
static const char *dim(const struct dump *dump)
{
	return text_color(dump->color, TEXT_DIM);
}
static const char *plain(const struct dump *dump)
{
	return text_color(dump->color, TEXT_PLAIN);
}

static void print_frame(const struct dump *dump, const struct live_process *process,
			const struct live_model_frame *frame)
{
	const char *name = live_process_string(process, frame->name);
	const char *file = live_process_string(process, frame->file);
	const char *module = live_process_string(process, frame->module);
	const char *slash = strrchr(module, '/');

	printf("      %s", name[0] ? name : "[unknown]");
	if (frame->kind == LIVE_KERNEL)
		printf("  %s[kernel]%s", dim(dump), plain(dump));
	else if (file[0])
		printf("  %s%s:%" PRIu32 "%s", dim(dump), file, frame->line, plain(dump));
	else if (module[0])
		printf("  %s%s%s", dim(dump), slash ? slash + 1 : module, plain(dump));
	printf("\n");
}

static void print_stack(const struct dump *dump, const struct live_process *process,
			const struct live_thread *thread)
{
	struct live_model_frame frame;

	for (size_t i = 0; live_process_frame(process, thread->stack, i, &frame); i++)
		print_frame(dump, process, &frame);
	if (!thread->stack)
		printf("      %s[no stack]%s\n", dim(dump), plain(dump));
}

static void print_thread(const struct live_process *process, const struct live_thread *thread)
{
	const char *name = live_process_string(process, thread->name);
	char text[FORMAT_BYTES];

	printf("%" PRIu32, thread->tid);
	if (name[0])
		printf(" \"%s\"", name);
	if (thread->waited_ns && thread->waited_ns <= INT64_MAX)
		printf(" %s", format_value((int64_t)thread->waited_ns, "nanoseconds", text));
}

/* Prints what all threads of a group share. */
static void print_state(const struct live_process *process, const struct live_thread *thread)
{
	if (thread->flags & LIVE_RUNS)
		printf(", running");
	else
		printf(", waits: %s", live_process_string(process, thread->wait));
	if (thread->flags & LIVE_GIL_HELD)
		printf(", holds the GIL");
	if (thread->flags & LIVE_GC)
		printf(", garbage collection");
	if (thread->flags & LIVE_TORN)
		printf(", moved while it was read");
	if (thread->flags & LIVE_CUT)
		printf(", stack cut short");
	printf("\n");
}

static void print_group(const struct dump *dump, const struct live_process *process,
			const struct live_thread *thread, size_t count)
{
	printf("  %s", bold(dump));
	if (count > 1)
		printf("%zu threads ", count);
	else
		printf("thread ");
	for (size_t i = 0; i < count && i < THREADS_SHOWN; i++) {
		printf("%s", i ? ", " : "");
		print_thread(process, &thread[i]);
	}
	if (count > THREADS_SHOWN)
		printf(", ...");
	printf("%s", plain(dump));
	print_state(process, thread);
	print_stack(dump, process, thread);
}

/* ---- grouping ---- */

static int compare_states(const struct live_thread *left, const struct live_thread *right)
{
	if (left->stack != right->stack)
		return left->stack < right->stack ? -1 : 1;
	if (left->wait != right->wait)
		return left->wait < right->wait ? -1 : 1;
	return left->flags < right->flags ? -1 : left->flags > right->flags;
}

static int compare_threads(const void *a, const void *b)
{
	const struct live_thread *left = a, *right = b;
	int order = compare_states(left, right);

	if (order)
		return order;
	return left->tid < right->tid ? -1 : left->tid > right->tid;
}

struct thread_group {
	size_t start, count;
	uint32_t tid; /* of its first thread */
};

static int compare_groups(const void *a, const void *b)
{
	const struct thread_group *left = a, *right = b;

	return left->tid < right->tid ? -1 : left->tid > right->tid;
}

static void on_process(void *context, const struct live_process *process)
{
	struct dump *dump = context;
	OWNED_MEM struct thread_group *group = calloc(process->thread_count + 1, sizeof(*group));
	struct live_thread *thread = process->thread;
	size_t groups = 0;

	if (!group) {
		dump->is_short_of_memory = true;
		return;
	}
	printf("%s%sprocess %" PRIu64 " %s%s, uid %" PRIu64 ": %zu thread%s\n",
	       dump->processes ? "\n" : "", bold(dump), process->pid,
	       live_process_string(process, process->name), plain(dump), process->uid,
	       process->thread_count, process->thread_count == 1 ? "" : "s");
	dump->processes++;
	if (process->thread_count)
		qsort(thread, process->thread_count, sizeof(*thread), compare_threads);
	for (size_t i = 0; i < process->thread_count; i++) {
		if (!i || compare_states(&thread[i - 1], &thread[i]))
			group[groups++] = (struct thread_group){.start = i, .tid = thread[i].tid};
		group[groups - 1].count++;
	}
	qsort(group, groups, sizeof(*group), compare_groups);
	for (size_t i = 0; i < groups; i++)
		print_group(dump, process, thread + group[i].start, group[i].count);
}

/* ---- the whole ---- */

static int tell(const struct dump *dump, const struct live_end *end)
{
	if (dump->is_short_of_memory) {
		fprintf(stderr, "pyprof: %s\n", strerror(ENOMEM));
		return READER_BAD_INPUT;
	}
	if (end->left_out)
		fprintf(stderr, "pyprof: %" PRIu64 " threads or stacks are not shown: too many\n",
			end->left_out);
	if (dump->processes)
		return READER_OK;
	fprintf(stderr, dump->live.request.pid_count ?
				"pyprof: no such process, or not yours, or pyprofd leaves it out\n" :
				"pyprof: no process that you may see\n");
	return READER_BAD_INPUT;
}

static int run(struct dump *dump)
{
	CLEANUP(live_client_free_owned) struct live_client *client = NULL;
	OWNED_FILE FILE *stream = NULL;
	OWNED_MEM char *why = NULL;
	struct live_end end;
	int err;

	if (live_client_open(dump->live.socket, &dump->live.request, stderr, &client))
		return READER_BAD_INPUT;
	stream = fdopen(dup(live_client_fd(client)), "r");
	err = stream ? live_model_read(stream, on_process, dump, &end, &why) : -ENOMEM;
	return err ? live_explain(client, err, why) : tell(dump, &end);
}

int verb_dump(int argc, char **argv)
{
	struct dump dump = {};

	if (live_options_parse(options, parse, doc, argc, argv, &dump))
		return READER_BAD_INPUT;
	dump.color = text_wants_color(dump.live.no_color);
	return run(&dump);
}
