/* SPDX-License-Identifier: BSD-2-Clause */
/* sources: finish/user_unwind.c finish/stack_finish.c base/page_cache.c drain/decode.c */
/* An incomplete stack, completed in a process whose code has any rules and whose memory repeats
 * endlessly, so that any pointer is valid.
 * An input: 16 rules, the record's fixed part, its frames and segments, the copy of the stack,
 * which is the process' memory too. */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/io.h"
#include "finish/unwind_python.h"
#include "finish/user_unwind.h"
#include "symbolize/stitch.h"

#define RULES 16U
#define FRAMES_MAX 32U
#define SEGMENTS_MAX 16U
#define RETURNS_MAX 8U
#define COPY_MAX_BYTES 4096U
#define LIBRARY_FILE 16U
#define INTERPRETER_FILE 17U

/* A search's walks visit 4,096 frames in all (stack_finish.c), and looks at 384 words besides; each
 * walk that follows takes PP_MAX_STEPS, and there is one more for each segment. */
#define MAX_LOOK_UPS (2U * (4096U + 2U * 384U + PP_MAX_STEPS))

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct pp_rule rules[RULES];
static const uint8_t *memory_bytes;
static size_t memory_size;
static uint32_t look_ups;

static struct file library = {.id = LIBRARY_FILE, .has_pages = true};
static struct python_info python_info;
static struct file interpreter = {.id = INTERPRETER_FILE, .has_pages = true, .python_index = 1};
static struct process_python process_python = {.file = &interpreter};

/* ---- instead of base/io.c ---- */

int process_read(pid_t pid, uint64_t address, void *buffer, size_t size)
{
	uint8_t *to = buffer;

	(void)pid;
	/* The lowest page is never mapped. */
	if (!memory_size || address < 4096)
		return -EFAULT;
	for (size_t done = 0; done < size;) {
		const size_t at = (address + done) % memory_size;
		const size_t part = size - done < memory_size - at ? size - done : memory_size - at;

		memcpy(to + done, memory_bytes + at, part);
		done += part;
	}
	return 0;
}

int process_read_pieces(pid_t pid, const struct process_piece *piece, size_t count)
{
	assert(count <= PROCESS_PIECES_MAX);
	for (size_t i = 0; i < count; i++)
		if (process_read(pid, piece[i].address, piece[i].buffer, piece[i].size))
			return -EFAULT;
	return 0;
}

/* ---- instead of attach/, discover/ and python/ ---- */

int process_find_mapping(const struct process *process, uint64_t address,
			 const struct mapping **ret_mapping)
{
	static const struct mapping mapping[] = {{.file = LIBRARY_FILE},
						 {.file = INTERPRETER_FILE},
						 {.file = INTERPRETER_FILE, .bias = 64},
						 {.file = PP_FILE_ANONYMOUS}};

	(void)process;
	look_ups++;
	if (!(address >> 12))
		return -ENOENT;
	*ret_mapping = &mapping[address >> 10 & 3];
	return 0;
}

struct file *file_table_find(const struct file_table *table, uint32_t id)
{
	(void)table;
	return id == LIBRARY_FILE ? &library : id == INTERPRETER_FILE ? &interpreter : NULL;
}

int file_table_load_at(struct file_table *table, struct file *file, uint64_t vaddr)
{
	(void)table;
	(void)file;
	(void)vaddr;
	return 0;
}

int file_rule_at(struct file_table *table, struct file *file, uint64_t vaddr,
		 struct pp_rule *ret_rule)
{
	(void)table;
	(void)file;
	*ret_rule = rules[vaddr >> 4 & (RULES - 1)];
	return 0;
}

int kernel_side_set_resync(struct kernel_side *side, uint32_t index, const struct pp_resync *resync)
{
	(void)side;
	(void)index;
	assert(resync->agreed <= PP_RESYNC_AGREED);
	return 0;
}

int context_table_find_files(struct context_table *table, struct process *process,
			     const struct slice *slice)
{
	(void)table;
	(void)process;
	(void)slice;
	return 0;
}

struct process_python *context_table_python(struct process *process)
{
	(void)process;
	return &process_python;
}

const struct python_frames *unwind_python_resume(struct unwind_python *python,
						 struct process *process,
						 const struct decoded_incomplete *incomplete,
						 struct pp_stack_record *record)
{
	(void)python;
	(void)process;
	(void)incomplete;
	(void)record;
	return NULL;
}

void unwind_python_name(struct unwind_python *python, struct process *process,
			struct pp_stack_record *record)
{
	(void)python;
	(void)process;
	(void)record;
}

int dictionary_add_stack(struct dictionary *dictionary, const struct decoded_stack *stack)
{
	(void)dictionary;
	(void)stack;
	return 0;
}

/* ---- one record ---- */

static void on_incomplete(void *context, const struct decoded_incomplete *incomplete)
{
	const struct finisher finisher = {.raw = incomplete->record->key.tid & 1};
	struct process process = {.exit_ns = incomplete->record->key.tid & 2};
	struct pp_stack_record *record = NULL;
	uint32_t frames, walks = 1 + incomplete->record->segment_count;

	(void)context;
	look_ups = 0;
	assert(!user_unwind(&finisher, &process, incomplete, &record));
	frames = (uint32_t)record->python_stored + record->native_stored;
	assert(frames <= STITCH_STACK_FRAMES && record->hash & 1);
	assert(record->native_stored <= record->native_count);
	assert(record->stop < PP_STOP_COUNT && record->py_stop < PP_PY_STOP_COUNT);
	for (uint32_t i = record->python_stored; i < frames; i++)
		assert(record->frame[i].kind <= PP_FRAME_EVAL);
	assert(look_ups <= walks * MAX_LOOK_UPS);
	free(record);
	assert(!user_unwind(&finisher, NULL, incomplete, &record));
	free(record);
}

/* Makes counts and kinds such as decode_record() lets through, mostly: fuzz_ring_record.c has
 * others. */
static void tame(struct pp_incomplete_record *record, size_t stack_bytes)
{
	struct pp_frame *frame = (struct pp_frame *)record->bytes;
	uint32_t frames;

	record->python_stored %= FRAMES_MAX / 2;
	record->native_stored %= FRAMES_MAX / 2;
	record->python_count = record->python_stored + record->python_count % 4;
	record->native_count = record->native_stored + record->native_count % 4;
	record->segment_count %= SEGMENTS_MAX;
	record->return_count %= RETURNS_MAX;
	record->stack_bytes = (uint32_t)stack_bytes;
	record->stop %= PP_STOP_COUNT;
	record->py_stop %= PP_PY_STOP_COUNT;
	record->foldable &= 1;
	record->since_segment %= record->native_count + 1;
	frames = (uint32_t)record->python_stored + record->native_stored;
	for (uint32_t i = 0; i < frames; i++)
		frame[i].kind = i < record->python_stored ? PP_FRAME_PYTHON
				: frame[i].kind & 1	  ? PP_FRAME_SEGMENT
							  : PP_FRAME_NATIVE;
	record->record.type = PP_RECORD_INCOMPLETE;
	record->record.size =
		(uint32_t)(sizeof(*record) + frames * sizeof(struct pp_frame) +
			   record->segment_count * sizeof(struct pp_segment) +
			   record->return_count * sizeof(struct pp_return) + stack_bytes);
}

static void take(void *to, size_t wanted, const uint8_t **data, size_t *size)
{
	const size_t part = wanted < *size ? wanted : *size;

	memcpy(to, *data, part);
	*data += part;
	*size -= part;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct drain_handlers handlers = {.incomplete = on_incomplete};
	const size_t room = sizeof(struct pp_incomplete_record) +
			    FRAMES_MAX * sizeof(struct pp_frame) +
			    SEGMENTS_MAX * sizeof(struct pp_segment) +
			    RETURNS_MAX * sizeof(struct pp_return) + COPY_MAX_BYTES;
	struct pp_incomplete_record *record = calloc(1, room);
	size_t fixed, tables, copied;

	assert(record);
	memset(rules, 0, sizeof(rules));
	take(rules, sizeof(rules), &data, &size);
	fixed = sizeof(*record);
	take(record, fixed, &data, &size);
	python_info.bpf = (struct pp_python){
		.file = INTERPRETER_FILE,
		.chain = record->key.tid >> 2 & 1 ? PP_CHAIN_FRAME_OBJECT : PP_CHAIN_CFRAME_SHIM,
		.eval = {{.low = 0x80, .high = 0x100}},
		.eval_range_count = 1};
	interpreter.python = &python_info;
	interpreter.resync = (struct pp_resync){0};
	take(record->bytes, FRAMES_MAX * sizeof(struct pp_frame), &data, &size);
	tame(record, 0);
	tables = record->record.size - fixed;
	take((uint8_t *)record->bytes + tables - record->segment_count * sizeof(struct pp_segment) -
		     record->return_count * sizeof(struct pp_return),
	     record->segment_count * sizeof(struct pp_segment) +
		     record->return_count * sizeof(struct pp_return),
	     &data, &size);
	copied = size < COPY_MAX_BYTES ? size : COPY_MAX_BYTES;
	memory_bytes = data;
	memory_size = size;
	memcpy((uint8_t *)record->bytes + tables, data, copied);
	record->stack_bytes = (uint32_t)copied;
	record->record.size += (uint32_t)copied;
	assert(!decode_record(record, record->record.size, &handlers));
	free(record);
	return 0;
}
