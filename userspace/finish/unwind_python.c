/* SPDX-License-Identifier: BSD-2-Clause */
#include "finish/unwind_python.h"

#include <errno.h>
#include <string.h>

#include <pyprofd/config.h>

#include "attach/context_table.h"
#include "base/io.h"
#include "discover/proc_scan.h"
#include "drain/dictionary.h"

/* A cache of code objects by address.  Another object may take over an address, so an entry also
 * keeps two of the object's pointers (its line table and the field before), as in
 * bpf/lib/code.bpf.h. */
#define MEMO_SLOTS 256U
struct code_memo {
	struct pp_process_id process;
	uint64_t address; /* 0: none */
	uint64_t guard[2];
	uint64_t id;
	uint64_t stack; /* serial of the stack for which the guard was last checked */
};

struct unwind_python {
	struct dictionary *dictionary;
	uint64_t secret;
	uint64_t stack; /* serial number of the current one */
	struct code_memo memo[MEMO_SLOTS];
	struct python_frames frames;
};

int unwind_python_new(struct dictionary *dictionary, uint64_t secret,
		      struct unwind_python **ret_python)
{
	struct unwind_python *python = calloc(1, sizeof(*python));

	if (!python)
		return -ENOMEM;
	python->dictionary = dictionary;
	python->secret = secret;
	*ret_python = python;
	return 0;
}

void unwind_python_free(struct unwind_python *python)
{
	free(python);
}

/* ---- frames ---- */

static void take_walked(struct python_frames *frames, const struct decoded_incomplete *incomplete)
{
	const struct pp_incomplete_record *record = incomplete->record;

	frames->stored = record->python_stored;
	frames->count = record->python_count;
	frames->segment_count = record->segment_count;
	memcpy(frames->frame, incomplete->python, frames->stored * sizeof(frames->frame[0]));
	memcpy(frames->segment, incomplete->segment,
	       frames->segment_count * sizeof(frames->segment[0]));
}

const struct python_frames *unwind_python_resume(struct unwind_python *python,
						 struct process *process,
						 const struct decoded_incomplete *incomplete,
						 struct pp_stack_record *record)
{
	const struct pp_incomplete_record *from = incomplete->record;
	const struct process_python *known = context_table_python(process);
	struct python_frames *frames = &python->frames;
	const struct python_resume resume = {.frame = from->python_frame,
					     .cframe = from->cframe,
					     .segment_frames = from->segment_frames,
					     .head = from->frame_head};
	struct python_where where = {.pid = (pid_t)process->id.tgid};

	if (!known || !known->file || known->is_refused || process->exit_ns ||
	    from->python_stored > PP_MAX_PYTHON_FRAMES)
		return NULL;
	where.layout = &known->file->python->bpf;
	where.bias = known->bias;
	take_walked(frames, incomplete);
	if (python_frames_resume(&where, &resume, frames)) {
		record->py_stop = PP_PY_STOP_TORN;
		return NULL;
	}
	record->python_stored = (uint16_t)frames->stored;
	record->python_count = frames->count;
	record->py_stop = (uint8_t)frames->stop;
	memcpy(record->frame, frames->frame, frames->stored * sizeof(record->frame[0]));
	return frames;
}

/* ---- ids ---- */

static struct code_memo *memo_of(struct unwind_python *python, uint64_t address)
{
	return &python->memo[address * 0x9e3779b97f4a7c15ULL >> 56];
}

static bool read_guard(struct pp_process_id process, const struct pp_python *layout,
		       uint64_t address, uint64_t guard[2])
{
	return !process_read((pid_t)process.tgid, address + layout->code_line_table - 8, guard,
			     2 * sizeof(guard[0]));
}

static bool memo_holds(struct unwind_python *python, const struct code_memo *memo,
		       const struct process *process, const struct pp_python *layout,
		       uint64_t address)
{
	uint64_t guard[2];

	return memo->address == address && memo->process.tgid == process->id.tgid &&
	       memo->process.generation == process->id.generation &&
	       (memo->stack == python->stack ||
		(read_guard(process->id, layout, address, guard) &&
		 !memcmp(guard, memo->guard, sizeof(guard)) &&
		 dictionary_knows_code(python->dictionary, memo->id)));
}

/* Reads a code object and adds it to the dictionary.  Returns its id; 0: it cannot be read. */
static uint64_t describe_code(struct unwind_python *python, struct process *process,
			      const struct process_python *known, uint64_t address,
			      struct code_memo *memo)
{
	const struct pp_python *layout = &known->file->python->bpf;
	struct python_code *code;
	uint32_t index;
	uint64_t id;

	memo->address = 0;
	if (!read_guard(process->id, layout, address, memo->guard) ||
	    python_code_read((pid_t)process->id.tgid, layout, known->bias, address,
			     pp_user_key(process_user_kept(process), python->secret), &code))
		return 0;
	id = code->id;
	if (dictionary_add_code(python->dictionary, process->id, code, &index))
		return 0;
	memo->process = process->id;
	memo->address = address;
	memo->id = id;
	return id;
}

void unwind_python_name(struct unwind_python *python, struct process *process,
			struct pp_stack_record *record)
{
	const struct process_python *known = context_table_python(process);

	if (!known || !known->file || known->is_refused || process->exit_ns)
		return;
	python->stack++;
	for (uint32_t i = 0; i < record->python_stored; i++) {
		struct pp_frame *frame = &record->frame[i];
		struct code_memo *memo = memo_of(python, frame->where);
		uint64_t id;

		if (frame->kind != PP_FRAME_PYTHON_RAW)
			continue;
		id = memo_holds(python, memo, process, &known->file->python->bpf, frame->where)
			     ? memo->id
			     : describe_code(python, process, known, frame->where, memo);
		if (!id)
			continue;
		memo->stack = python->stack;
		frame->where = id;
		frame->kind = PP_FRAME_PYTHON;
	}
}
