/* SPDX-License-Identifier: BSD-2-Clause */
#include "agent/dump.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "agent/naming.h"
#include "attach/file_table.h"
#include "base/hash.h"
#include "base/intern.h"
#include "base/io.h"
#include "drain/dictionary.h"
#include "drain/thread_slots.h"
#include "finish/user_unwind.h"
#include "live/record.h"
#include "processes/thread_names.h"
#include "symbolize/symbolizer.h"
#include "windows/source.h"

_Static_assert(LIVE_PYTHON == (int)FRAME_PYTHON && LIVE_NATIVE == (int)FRAME_NATIVE &&
		       LIVE_KERNEL == (int)FRAME_KERNEL && LIVE_JIT == (int)FRAME_JIT &&
		       LIVE_MARKER == (int)FRAME_MARKER,
	       "frames are sent as they are");

/* A stack that was written for the current process. */
struct sent_stack {
	struct stack_pair {
		uint64_t user, kernel;
	} key;
	uint64_t number;
	UT_hash_handle hh;
};

/* The process that is being written, over several slices. */
struct adding {
	struct symbolizer *symbolizer; /* owned; NULL: not begun */
	size_t count, noted, written;  /* threads */
	bool is_begun, is_resolved;
};

struct dump_text {
	const struct services *services;
	bool no_native;
	struct intern *strings;
	struct sent_stack *sent;
	struct adding adding;
	uint64_t last_number;
	uint64_t threads, torn, bare, left_out;
	FILE *out;  /* writes to text */
	char *text; /* owned */
	size_t size;
};

int dump_text_new(const struct services *services, bool no_native, struct dump_text **ret_text)
{
	OWNED(dump_text) struct dump_text *text = calloc(1, sizeof(*text));
	int err;

	if (!text)
		return -ENOMEM;
	text->services = services;
	text->no_native = no_native;
	err = intern_new(&text->strings);
	if (err)
		return err;
	text->out = open_memstream(&text->text, &text->size);
	if (!text->out)
		return -ENOMEM;
	*ret_text = TAKE(text);
	return 0;
}

void dump_text_free(struct dump_text *text)
{
	if (!text)
		return;
	dump_text_end_process(text);
	if (text->out)
		fclose(text->out);
	free(text->text);
	intern_free(text->strings);
	free(text);
}

void dump_text_count(struct dump_text *text, uint64_t left_out)
{
	text->left_out += left_out;
}

static bool is_full(const struct dump_text *text)
{
	return ftello(text->out) > (off_t)DUMP_TEXT_MAX_BYTES;
}

/* ---- stacks ---- */

/* naming.h: without numbered modules, a frame's module is the slot of its file. */
static const char *module_path(const struct dump_text *text, const struct frame *frame)
{
	const struct file *file;

	if (frame->kind != FRAME_NATIVE)
		return "";
	file = file_table_in_slot(text->services->finisher->files, frame->module);
	return file ? file->path : "";
}

static const char *string(const struct dump_text *text, uint32_t id)
{
	return intern_get(text->strings, id, NULL);
}

static void write_frames(const struct dump_text *text, uint64_t number, const struct frame *frame,
			 size_t count)
{
	live_record_write(text->out,
			  &(struct live_record){.kind = LIVE_STACK, .number = {number, count}});
	for (size_t i = 0; i < count; i++)
		live_record_write(text->out,
				  &(struct live_record){.kind = LIVE_FRAME,
							.number = {frame[i].kind, frame[i].line},
							.text = {string(text, frame[i].name),
								 string(text, frame[i].file),
								 module_path(text, &frame[i])}});
}

/* Writes the thread's stack unless another thread had the same one.  *ret_number is 0 when there is
 * no stack. */
static int write_stack(struct dump_text *text, struct symbolizer *symbolizer,
		       struct pp_process_id id, const struct dump_thread *thread,
		       uint64_t *ret_number)
{
	const struct dictionary *dictionary = text->services->finisher->dictionary;
	const struct stack_pair key = {thread->user_stack, thread->kernel_stack};
	struct sent_stack *sent;
	const struct frame *frame;
	size_t count;
	int err;

	*ret_number = 0;
	HASH_FIND(hh, text->sent, &key, sizeof(key), sent);
	if (sent) {
		*ret_number = sent->number;
		return 0;
	}
	err = symbolizer_stack(symbolizer, id, dictionary_find_stack(dictionary, key.user),
			       dictionary_find_kernel(dictionary, key.kernel), &frame, &count);
	if (err || !count)
		return err;
	sent = HASH_GET(text->sent, key, key);
	if (!sent)
		return -ENOMEM;
	sent->number = *ret_number = ++text->last_number;
	write_frames(text, *ret_number, frame, count);
	return 0;
}

/* ---- threads ---- */

static uint64_t flags_of(const struct dump_thread *thread, uint64_t stack)
{
	enum pp_stop stop = thread->flags >> PP_COUNT_STOP_SHIFT & 0xff;
	uint64_t flags = 0;

	if (thread->flags & PP_COUNT_GIL_HELD)
		flags |= LIVE_GIL_HELD;
	if (thread->flags & PP_COUNT_GC)
		flags |= LIVE_GC;
	if (thread->runs)
		flags |= LIVE_RUNS;
	if (thread->is_torn)
		flags |= LIVE_TORN;
	if (!thread->runs && stack && stop != PP_STOP_ROOT && stop != PP_STOP_FINISHED)
		flags |= LIVE_CUT;
	return flags;
}

static int write_thread(struct dump_text *text, struct symbolizer *symbolizer,
			const struct process *process, const struct dump_thread *thread)
{
	uint64_t stack;
	int err;

	if (is_full(text)) {
		text->left_out++;
		return 0;
	}
	err = write_stack(text, symbolizer, process->id, thread, &stack);
	if (err)
		return err;
	text->threads++;
	text->torn += thread->is_torn;
	text->bare += !stack;
	live_record_write(
		text->out,
		&(struct live_record){.kind = LIVE_THREAD,
				      .number = {thread->tid, stack, flags_of(thread, stack),
						 thread->waited_ns},
				      .text = {thread_names_get(text->services->thread_names,
								process, thread->tid, ""),
					       thread->runs ? "" : wait_label(thread->wait)}});
	return 0;
}

/* All stacks are noted before any is named: a file's symbols are read once. */
static int name_stacks(struct dump_text *text, const struct dump_thread *thread, size_t count,
		       const struct slice *slice)
{
	const struct naming_options how = {.strings = text->strings, .no_native = text->no_native};
	struct adding *adding = &text->adding;
	int more = 0;

	if (!adding->symbolizer)
		more = naming_begin(text->services->naming, &how, &adding->symbolizer);
	while (!more && adding->noted < count) {
		more = symbolizer_note_hash(adding->symbolizer, thread[adding->noted].user_stack);
		adding->noted++;
		if (!more && slice_is_over(slice))
			return 1;
	}
	if (!more && !adding->is_resolved)
		more = symbolizer_resolve_slice(adding->symbolizer, slice);
	adding->is_resolved = !more;
	return more;
}

static void write_process(struct dump_text *text, const struct process *process)
{
	live_record_write(text->out,
			  &(struct live_record){.kind = LIVE_PROCESS,
						.number = {process->id.tgid, process->uid},
						.text = {process->comm}});
}

int dump_text_add(struct dump_text *text, const struct process *process,
		  const struct dump_thread *thread, size_t count, const struct slice *slice)
{
	struct adding *adding = &text->adding;
	int more;

	if (!adding->is_begun && is_full(text)) {
		text->left_out += count;
		return 0;
	}
	more = name_stacks(text, thread, count, slice);
	if (more)
		return more;
	if (!adding->is_begun)
		write_process(text, process);
	adding->is_begun = true;
	adding->count = count;
	while (adding->written < count) {
		more = write_thread(text, adding->symbolizer, process, &thread[adding->written++]);
		if (more)
			return more;
		if (adding->written < count && slice_is_over(slice))
			return 1;
	}
	return 0;
}

void dump_text_end_process(struct dump_text *text)
{
	text->left_out += text->adding.count - text->adding.written;
	symbolizer_free(text->adding.symbolizer);
	text->adding = (struct adding){};
	HASH_DROP_ALL(text->sent);
}

void dump_text_refresh(struct dump_text *text)
{
	struct adding *adding = &text->adding;

	symbolizer_free(TAKE(adding->symbolizer));
	adding->noted = adding->written;
	adding->is_resolved = false;
}

int dump_text_take(struct dump_text *text, char **ret_text, size_t *ret_size)
{
	live_record_write(text->out, &(struct live_record){.kind = LIVE_END,
							   .number = {text->threads, text->torn,
								      text->bare, text->left_out}});
	if (close_memory_file(TAKE(text->out), &text->text))
		return -ENOMEM;
	*ret_text = TAKE(text->text);
	*ret_size = text->size;
	return 0;
}
