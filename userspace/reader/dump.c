/* SPDX-License-Identifier: BSD-2-Clause */
/* pyprof dump: the stacks of all threads at this moment, from the running pyprofd. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "live/reply.h"
#include "reader/select_options.h"
#include "reader/text.h"
#include "reader/verb.h"
#include "render/format.h"
#include "render/short_paths.h"

#define THREADS_SHOWN 12U /* of a group, by their names */
#define THREAD_TEXT_BYTES 512U
#define FRAME_INDENT 6U
#define HEAD_INDENT 4U

struct dump {
	struct live_options live;
	bool all;
	bool color, full_paths;
	bool is_short_of_memory;
	struct short_paths paths; /* of the process that is printed */
	uint32_t processes;
};

static const struct verb_option options[] = {
	{"all", 0, NULL, "Show every process that you may see", 1, OPTION_FLAG,
	 .at = offsetof(struct dump, all)},
	{"python", 0, NULL,
	 "Leave native and kernel frames out of Python stacks, and kernel frames out of others", 2,
	 OPTION_FLAG, .at = offsetof(struct dump, live.request.no_native)},
	{"full-paths", 0, NULL,
	 "Show whole paths of source files, not only the part that tells them apart", 2,
	 OPTION_FLAG, .at = offsetof(struct dump, full_paths)},
	{}};

static const char doc[] =
	"Shows the stacks that all threads have now, equal ones as one, with what each thread "
	"waits "
	"for and who holds the GIL.  No process is stopped.  It asks the running pyprofd; root "
	"needs none.  Other users see their own processes."
	"\vExamples:\n"
	"  sudo pyprof dump --pid 1234\n"
	"  sudo pyprof dump --all --python\n";

static void check(struct argp_state *argp, void *verb)
{
	struct dump *dump = verb;

	dump->live.request.no_kernel = dump->live.request.no_native;
	if (dump->all == !!dump->live.request.pid_count)
		argp_error(argp, "give --pid PID or --all");
}

/* ---- printing ---- */

static const char *paint(const struct dump *dump, enum text_color color)
{
	return text_color(dump->color, color);
}

static const char *place_of(const struct dump *dump, const struct live_process *process,
			    const struct live_model_frame *frame, char buffer[TEXT_PLACE_BYTES])
{
	const char *file = live_process_string(process, frame->file);
	const char *module = live_process_string(process, frame->module);
	const char *slash = strrchr(module, '/');

	if (frame->kind == LIVE_KERNEL)
		return "[kernel]";
	if (!file[0])
		return slash ? slash + 1 : module;
	snprintf(buffer, TEXT_PLACE_BYTES, "%s:%" PRIu32,
		 short_paths_get(&dump->paths, frame->file, file), frame->line);
	return buffer;
}

static void print_frame(const struct dump *dump, const struct live_process *process,
			const struct live_model_frame *frame)
{
	char buffer[TEXT_PLACE_BYTES];
	const char *name = live_process_string(process, frame->name);
	const char *place = place_of(dump, process, frame, buffer);
	struct text_cut cut;

	if (!name[0])
		name = "[unknown]";
	text_fit(text_room(FRAME_INDENT), &name, &place, &cut);
	printf("%*s%s", (int)FRAME_INDENT, "", name);
	if (place[0])
		printf("  %s%s%s", paint(dump, TEXT_DIM), place, paint(dump, TEXT_PLAIN));
	printf("\n");
}

static void print_stack(const struct dump *dump, const struct live_process *process,
			const struct live_thread *thread)
{
	struct live_model_frame frame;

	for (size_t i = 0; live_process_frame(process, thread->stack, i, &frame); i++)
		print_frame(dump, process, &frame);
	if (!thread->stack)
		printf("      %s[no stack]%s\n", paint(dump, TEXT_DIM), paint(dump, TEXT_PLAIN));
}

/* A head is longer than a line where many threads share a stack: it goes on in the next line, but
 * no name is broken. */
struct head {
	unsigned int columns, room; /* room 0: not a terminal */
};

static void print_part(struct head *head, const char *text)
{
	unsigned int columns = (unsigned int)text_columns_of(text);

	if (head->room && head->columns > HEAD_INDENT && head->columns + columns > head->room) {
		size_t separator = strspn(text, ", ");

		printf("%s\n%*s", *text == ',' ? "," : "", (int)HEAD_INDENT, "");
		head->columns = HEAD_INDENT;
		columns -= (unsigned int)separator;
		text += separator;
	}
	printf("%s", text);
	head->columns += columns;
}

static void print_thread(struct head *head, const struct live_process *process,
			 const struct live_thread *thread, bool is_last)
{
	const char *name = live_process_string(process, thread->name);
	char text[THREAD_TEXT_BYTES], waited[FORMAT_BYTES] = "";

	if (thread->waited_ns && thread->waited_ns <= INT64_MAX)
		format_value((int64_t)thread->waited_ns, "nanoseconds", waited);
	snprintf(text, sizeof(text), " %" PRIu32 "%s%.*s%s%s%s%s", thread->tid,
		 name[0] ? " \"" : "", (int)sizeof(text) / 2, name, name[0] ? "\"" : "",
		 waited[0] ? " " : "", waited, is_last ? "" : ",");
	print_part(head, text);
}

/* Prints what all threads of a group share. */
static void print_state(struct head *head, const struct live_process *process,
			const struct live_thread *thread)
{
	char text[THREAD_TEXT_BYTES];

	if (thread->flags & LIVE_RUNS)
		snprintf(text, sizeof(text), ", running");
	else
		snprintf(text, sizeof(text), ", waits: %s",
			 live_process_string(process, thread->wait));
	print_part(head, text);
	if (thread->flags & LIVE_GIL_HELD)
		print_part(head, ", holds the GIL");
	if (thread->flags & LIVE_GC)
		print_part(head, ", garbage collection");
	if (thread->flags & LIVE_TORN)
		print_part(head, ", moved while it was read");
	if (thread->flags & LIVE_CUT)
		print_part(head, ", stack cut short");
	printf("\n");
}

static void print_group(const struct dump *dump, const struct live_process *process,
			const struct live_thread *thread, size_t count)
{
	struct head head = {.room = text_columns()};
	size_t shown = count < THREADS_SHOWN ? count : THREADS_SHOWN;
	char text[FORMAT_BYTES] = "  thread";

	printf("%s", paint(dump, TEXT_BOLD));
	if (count > 1)
		snprintf(text, sizeof(text), "  %zu threads", count);
	print_part(&head, text);
	for (size_t i = 0; i < shown; i++)
		print_thread(&head, process, &thread[i], i + 1 == count);
	if (count > shown)
		print_part(&head, " ...");
	printf("%s", paint(dump, TEXT_PLAIN));
	print_state(&head, process, thread);
	print_stack(dump, process, thread);
}

/* ---- short paths ---- */

/* Adds a stack's files.  Its outermost Python code tells the program's own directory, as
 * short_paths_of_profile() has it. */
static int add_paths(struct dump *dump, const struct live_process *process, uint32_t stack,
		     uint8_t *seen)
{
	struct live_model_frame frame;
	const char *script = NULL;
	int err = 0;

	for (size_t i = 0; !err && live_process_frame(process, stack, i, &frame); i++) {
		const char *file = live_process_string(process, frame.file);

		if (frame.kind == LIVE_PYTHON && !strstr(file, "runpy"))
			script = strcmp(live_process_string(process, frame.name), "<module>")
					 ? NULL
					 : file;
		if (!file[0] || seen[frame.file])
			continue;
		seen[frame.file] = 1;
		err = short_paths_add(&dump->paths, frame.file, file);
	}
	if (!err && script)
		err = short_paths_add_script(&dump->paths, script);
	return err;
}

/* By threads that are sorted by stack. */
static int find_paths(struct dump *dump, const struct live_process *process)
{
	OWNED_MEM uint8_t *seen = calloc((size_t)intern_count(process->strings) + 1, 1);
	int err = seen ? 0 : -ENOMEM;

	short_paths_release(&dump->paths);
	for (size_t i = 0; !err && !dump->full_paths && i < process->thread_count; i++)
		if (!i || process->thread[i].stack != process->thread[i - 1].stack)
			err = add_paths(dump, process, process->thread[i].stack, seen);
	return err ? err : short_paths_resolve(&dump->paths);
}

/* ---- grouping ---- */

static int compare_states(const struct live_thread *left, const struct live_thread *right)
{
	return ORDER(left->stack, right->stack)
		       ?: ORDER(left->wait, right->wait) ?: ORDER(left->flags, right->flags);
}

static int compare_threads(const void *a, const void *b)
{
	const struct live_thread *left = a, *right = b;

	return compare_states(left, right) ?: ORDER(left->tid, right->tid);
}

struct thread_group {
	size_t start, count;
	uint32_t tid; /* of its first thread */
};

static int compare_groups(const void *a, const void *b)
{
	const struct thread_group *left = a, *right = b;

	return ORDER(left->tid, right->tid);
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
	       dump->processes ? "\n" : "", paint(dump, TEXT_BOLD), process->pid,
	       live_process_string(process, process->name), paint(dump, TEXT_PLAIN), process->uid,
	       process->thread_count, process->thread_count == 1 ? "" : "s");
	dump->processes++;
	if (process->thread_count)
		qsort(thread, process->thread_count, sizeof(*thread), compare_threads);
	if (find_paths(dump, process)) {
		dump->is_short_of_memory = true;
		return;
	}
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
	if (dump->is_short_of_memory)
		return complain("%s", strerror(ENOMEM));
	if (end->left_out)
		complain("too many: %" PRIu64 " threads or stacks are not shown", end->left_out);
	if (dump->processes)
		return READER_OK;
	return complain(dump->live.request.pid_count
				? "there is no such process, or it is not yours, or pyprofd does "
				  "not profile it"
				: "there is no process that you may see");
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
	static const struct verb_args args = {options, NULL, .doc = doc, .check = check};
	struct dump dump = {};
	int status = live_options_parse(&args, argc, argv, &dump.live);

	dump.color = text_wants_color();
	if (!status)
		status = run(&dump);
	short_paths_release(&dump.paths);
	return status;
}
