/* SPDX-License-Identifier: BSD-2-Clause */
#include "symbolize/symbolizer.h"

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/index_table.h"
#include "drain/raw_codes.h"
#include "files/client.h"
#include "symbolize/stitch.h"

/* Names CPython's own call machinery: functions that only say "Python calls Python".  They are
 * hidden unless the user asks for them.  Functions that do work (list_sort, dict_subscript,
 * gc_collect_main) stay. */

/* Prefixes, so that compilers' suffixes (.constprop.0, .cold) match too.
 * Sources: CPython 2.7-3.15 Python/ceval.c, Objects/call.c, Objects/descrobject.c,
 * Objects/methodobject.c, Objects/typeobject.c (slot_*), Modules/main.c, Python/pythonrun.c. */
static const char *const machinery[] = {
	"_PyEval_",
	"PyEval_EvalCode",
	"PyEval_EvalFrame",
	"_PyFunction_Vectorcall",
	"_PyFunction_FastCall",
	"function_code_fastcall",
	"call_function",
	"fast_function",
	"do_call_core",
	"PyObject_Call",
	"_PyObject_Call",
	"_PyObject_Vectorcall",
	"PyObject_Vectorcall",
	"_PyObject_MakeTpCall",
	"_PyObject_FastCall",
	"PyVectorcall_Call",
	"_PyVectorcall_Call",
	"object_vacall",
	"_PyStack_",
	"method_vectorcall",
	"method_call",
	"cfunction_vectorcall",
	"cfunction_call",
	"_PyCFunction_FastCall",
	"_PyMethodDef_RawFastCall",
	"PyCFunction_Call",
	"_PyCFunction_FastCallDict",
	"slot_tp_call",
	"slot_tp_init",
	"slot_tp_new",
	"type_call",
	"instancemethod_call",
	"function_call",
	"instance_call",
	"vectorcall_method",
	"vectorcall_maybe",
	"vectorcall_unbound",
	"call_method",
	"lookup_maybe_method",
	"call_unbound",
	"_TAIL_CALL_",
	"_PyObject_FunctionStr",
	"gen_send_ex",
	"gen_iternext",
	"gen_send",
	"_PyGen_Send",
	"PyGen_Send",
	"async_gen_asend",
	"Py_RunMain",
	"Py_BytesMain",
	"Py_Main",
	"pymain_",
	"_Py_UnixMain",
	"_PyRun_",
	"PyRun_",
	"pyrun_",
	"run_mod",
	"run_eval_code_obj",
	"run_pyc_file",
	"run_file",
	"builtin_exec",
	"builtin_eval",
	"py_trampoline_evaluator",
	"_Py_HandlePending",
	"bytecode_",
};

bool interpreter_frame_is_machinery(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(machinery); i++)
		if (!strncmp(name, machinery[i], strlen(machinery[i])))
			return true;
	return false;
}

#define BATCH_MAX 512U
/* Numbers of code objects, which the child is not asked about again for a while when it was late at
 * them. */
#define FIRST_NUMBER 0xc0000000U
#define FIRST_BATCH_NUMBER 0xe0000000U
#define MAX_FRAMES (STITCH_MAX_FRAMES + PP_MAX_KERNEL_FRAMES + 1) /* mark_left_out() */

/* A packed frame with its name. */
struct named {
	packed_frame key;
	struct frame frame;
	bool is_hidden; /* interpreter machinery */
};

struct symbolizer {
	struct intern *strings;
	const struct dictionary *dictionary;
	struct symbolizer_sources sources;
	struct symbolizer_options options;
	struct named *named; /* owned; of each frame that was asked for */
	uint32_t count, capacity;
	struct index_table index; /* by frame */
	uint64_t factor;	  /* hash_place() */
	packed_frame *noted;	  /* native frames not named yet */
	size_t noted_count, noted_capacity;
	size_t resolved; /* of noted, which is sorted as soon as some are */
	struct frame frame[MAX_FRAMES];
	packed_frame stitched[STITCH_MAX_FRAMES];
};

int symbolizer_new(struct intern *strings, const struct dictionary *dictionary,
		   const struct symbolizer_sources *sources,
		   const struct symbolizer_options *options, struct symbolizer **ret_symbolizer)
{
	OWNED(symbolizer) struct symbolizer *symbolizer = calloc(1, sizeof(*symbolizer));

	if (!symbolizer)
		return -ENOMEM;
	symbolizer->strings = strings;
	symbolizer->dictionary = dictionary;
	symbolizer->sources = *sources;
	symbolizer->options = *options;
	symbolizer->factor = hash_factor();
	*ret_symbolizer = TAKE(symbolizer);
	return 0;
}

void symbolizer_free(struct symbolizer *symbolizer)
{
	if (!symbolizer)
		return;
	index_table_release(&symbolizer->index);
	free(symbolizer->named);
	free(symbolizer->noted);
	free(symbolizer);
}

/* ---- the memo ---- */

static bool has_key(const void *context, uint32_t index, const void *key)
{
	return ((const struct symbolizer *)context)->named[index].key == *(const packed_frame *)key;
}

static uint32_t hash_of(const struct symbolizer *symbolizer, packed_frame key)
{
	return (uint32_t)hash_place(key, symbolizer->factor, UINT32_MAX);
}

static int memo_add(struct symbolizer *symbolizer, const struct named *named)
{
	int err = INDEX_RESERVE(&symbolizer->index, hash_of(symbolizer, named->key),
				symbolizer->named, symbolizer->count, symbolizer->capacity);

	if (!err)
		symbolizer->named[symbolizer->count++] = *named;
	return err;
}

static struct named *memo_find(const struct symbolizer *symbolizer, packed_frame key)
{
	uint32_t index;

	return index_table_find(&symbolizer->index, hash_of(symbolizer, key), has_key, symbolizer,
				&key, &index)
		       ? &symbolizer->named[index]
		       : NULL;
}

/* ---- native frames, a file at a time ---- */

static bool is_native(packed_frame frame)
{
	return packed_kind(frame) == PP_FRAME_NATIVE || packed_kind(frame) == PP_FRAME_EVAL;
}

/* --frames without native applies to stacks with Python frames; others would have no frame left. */
static bool hides_native(const struct symbolizer *symbolizer, const struct dict_stack *stack)
{
	return symbolizer->options.no_native && stack->python_count;
}

int symbolizer_note(struct symbolizer *symbolizer, const struct dict_stack *stack)
{
	size_t frames = (size_t)stack->python_stored + stack->native_stored;

	if (hides_native(symbolizer, stack))
		return 0;
	for (size_t i = stack->python_stored; i < frames; i++) {
		packed_frame frame = stack->frame[i];
		struct named placeholder = {.key = frame};

		if (!is_native(frame) || memo_find(symbolizer, frame))
			continue;
		if (ARRAY_RESERVE(symbolizer->noted, symbolizer->noted_count,
				  symbolizer->noted_capacity))
			return -ENOMEM;
		if (memo_add(symbolizer, &placeholder))
			return -ENOMEM;
		symbolizer->noted[symbolizer->noted_count++] = frame;
	}
	return 0;
}

int symbolizer_note_hash(struct symbolizer *symbolizer, uint64_t hash)
{
	const struct dict_stack *stack = dictionary_find_stack(symbolizer->dictionary, hash);

	return stack ? symbolizer_note(symbolizer, stack) : 0;
}

static int compare_frames(const void *a, const void *b)
{
	/* Sorts by file, then address, whatever the kind. */
	return ORDER(*(const packed_frame *)a & ~(7ULL << 61),
		     *(const packed_frame *)b & ~(7ULL << 61));
}

static int name_native(struct symbolizer *symbolizer, packed_frame key, const struct symbol *symbol)
{
	const struct symbolizer_sources *sources = &symbolizer->sources;
	struct named *named = memo_find(symbolizer, key); /* it was noted */
	uint32_t file = packed_file(key);

	named->frame.kind = FRAME_NATIVE;
	named->frame.module = sources->module(sources->context, file);
	named->frame.address = packed_address(key);
	named->is_hidden = !symbolizer->options.raw &&
			   sources->is_interpreter(sources->context, file) &&
			   interpreter_frame_is_machinery(symbol->name);
	if (intern_string(symbolizer->strings, symbol->name, &named->frame.name))
		return -ENOMEM;
	return intern_string(symbolizer->strings, symbol->system_name, &named->frame.system_name);
}

static int resolve_file(struct symbolizer *symbolizer, const packed_frame *frame, size_t n)
{
	OWNED_MEM uint64_t *address = calloc(n, sizeof(*address));
	OWNED_MEM struct symbol *symbol = calloc(n, sizeof(*symbol));

	if (!address || !symbol)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++)
		address[i] = packed_address(frame[i]);
	symbolizer->sources.native(symbolizer->sources.context, packed_file(frame[0]), address, n,
				   symbol);
	for (size_t i = 0; i < n; i++) {
		int err = name_native(symbolizer, frame[i], &symbol[i]);

		if (err)
			return err;
	}
	return 0;
}

int symbolizer_resolve_slice(struct symbolizer *symbolizer, const struct slice *slice)
{
	packed_frame *noted = symbolizer->noted;
	const size_t count = symbolizer->noted_count;

	if (symbolizer->sources.codes(symbolizer->sources.context, slice))
		return 1;
	if (count && !symbolizer->resolved)
		qsort(noted, count, sizeof(*noted), compare_frames);
	while (symbolizer->resolved < count) {
		const size_t from = symbolizer->resolved;
		size_t to = from + 1;
		int err;

		while (to < count && packed_file(noted[to]) == packed_file(noted[from]))
			to++;
		err = resolve_file(symbolizer, noted + from, to - from);
		if (err)
			return err;
		symbolizer->resolved = to;
		if (to < count && slice_is_over(slice))
			return 1;
	}
	symbolizer->noted_count = symbolizer->resolved = 0;
	return 0;
}

/* ---- frames ---- */

static int name_python(struct symbolizer *symbolizer, packed_frame key, struct frame *frame)
{
	const struct python_code *code = dictionary_code(symbolizer->dictionary, packed_code(key));

	*frame = (struct frame){.kind = FRAME_PYTHON};
	/* The record of its code object was lost; a counter says how often. */
	if (!code || !code->name) {
		frame->kind = FRAME_MARKER;
		return intern_string(symbolizer->strings,
				     code ? "[python frame, name not decoded]"
					  : "[python frame, name lost]",
				     &frame->name);
	}
	frame->line = python_code_line(code, packed_what(key));
	frame->start_line = code->first_line;
	if (intern_string(symbolizer->strings, code->name, &frame->name))
		return -ENOMEM;
	return intern_string(symbolizer->strings, code->filename, &frame->file);
}

static int name_marker(struct symbolizer *symbolizer, packed_frame key, struct frame *frame)
{
	char text[64] = "[unwind gap]";

	if (packed_what(key))
		snprintf(text, sizeof(text), "[%u frames omitted]", packed_what(key));
	*frame = (struct frame){.kind = FRAME_MARKER};
	return intern_string(symbolizer->strings, text, &frame->name);
}

static int name_anonymous(struct symbolizer *symbolizer, struct pp_process_id id, packed_frame key,
			  struct frame *frame)
{
	const struct symbolizer_sources *sources = &symbolizer->sources;
	uint64_t address = key & ((1ULL << 61) - 1);
	const char *name = "[anon]";

	(void)sources->anonymous(sources->context, id, address, &name);
	*frame = (struct frame){.kind = FRAME_JIT, .address = address};
	frame->module = sources->module(sources->context, PP_FILE_ANONYMOUS);
	return intern_string(symbolizer->strings, name, &frame->name);
}

/* Names a native frame of a stack that was not noted. */
static int name_late(struct symbolizer *symbolizer, const struct named *placeholder,
		     struct named *ret_named)
{
	int err = memo_add(symbolizer, placeholder);

	if (!err)
		err = resolve_file(symbolizer, &placeholder->key, 1);
	if (!err)
		*ret_named = *memo_find(symbolizer, placeholder->key);
	return err;
}

/* Names a frame; those that do not depend on the process are memoized. */
static int name_frame(struct symbolizer *symbolizer, struct pp_process_id id, packed_frame key,
		      struct named *ret_named)
{
	const struct named *known = memo_find(symbolizer, key);
	struct named named = {.key = key};
	int err;

	if (known) {
		*ret_named = *known;
		return 0;
	}
	switch (packed_kind(key)) {
	case PP_FRAME_PYTHON:
		err = name_python(symbolizer, key, &named.frame);
		break;
	case PP_FRAME_ANONYMOUS:
		*ret_named = named;
		return name_anonymous(symbolizer, id, key, &ret_named->frame);
	case PP_FRAME_NATIVE:
	case PP_FRAME_EVAL:
		return name_late(symbolizer, &named, ret_named);
	default:
		err = name_marker(symbolizer, key, &named.frame);
	}
	*ret_named = named;
	return err ? err : memo_add(symbolizer, &named);
}

static int name_kernel(struct symbolizer *symbolizer, uint64_t address, struct frame *frame)
{
	const struct symbolizer_sources *sources = &symbolizer->sources;
	const char *name = "[kernel]", *module = "";

	sources->kernel(sources->context, address, &name, &module);
	*frame = (struct frame){.kind = FRAME_KERNEL, .address = address};
	frame->module = sources->module(sources->context, PP_FILE_NONE);
	return intern_string(symbolizer->strings, name, &frame->name);
}

/* Two unnamed frames in a row of the same file say no more than one. */
static bool repeats_unnamed(const struct symbolizer *symbolizer, const struct frame *last,
			    const struct frame *frame)
{
	return last->kind == FRAME_NATIVE && frame->kind == FRAME_NATIVE &&
	       last->name == frame->name && last->module == frame->module &&
	       intern_get(symbolizer->strings, frame->name, NULL)[0] == '[' &&
	       !symbolizer->options.raw;
}

/* Returns whether --frames leaves a frame out: native frames and the gaps between them, but not
 * markers of omitted frames, some of which may be Python's. */
static bool is_beside_python(packed_frame frame)
{
	if (packed_kind(frame) == PP_FRAME_GAP)
		return !packed_what(frame);
	return packed_kind(frame) != PP_FRAME_PYTHON;
}

/* Returns whether Python frames ran here of which none was read. */
static bool lacks_python(const struct dict_stack *stack)
{
	return !stack->python_count && !pp_py_stop_is_whole(stack->py_stop);
}

/* The interpreter's frames are left out where Python's stand for them; where these are not known
 * the stack would look as if nothing was missing. */
static int mark_unread(struct symbolizer *symbolizer, size_t *count)
{
	struct frame *frame = &symbolizer->frame[*count];
	uint32_t name;
	int err = intern_string(symbolizer->strings, "[Python frames not read]", &name);

	if (err || (*count && frame[-1].kind == FRAME_MARKER && frame[-1].name == name))
		return err;
	*frame = (struct frame){.kind = FRAME_MARKER, .name = name};
	++*count;
	return 0;
}

/* Nobody has looked for the callers of these frames.  A stack without a frame is told by its
 * reason. */
static int mark_left_out(struct symbolizer *symbolizer, size_t *count)
{
	struct frame *frame = &symbolizer->frame[*count];

	*frame = (struct frame){.kind = FRAME_MARKER};
	++*count;
	return intern_string(symbolizer->strings,
			     "[callers left out: its user has too many incomplete stacks]",
			     &frame->name);
}

static int add_user_frame(struct symbolizer *symbolizer, struct pp_process_id id,
			  const struct dict_stack *user, packed_frame key, size_t *count)
{
	struct named named;
	int err;

	if (hides_native(symbolizer, user) && is_beside_python(key))
		return 0;
	err = name_frame(symbolizer, id, key, &named);
	if (err)
		return err;
	if (named.is_hidden)
		return lacks_python(user) ? mark_unread(symbolizer, count) : 0;
	if (!*count || !repeats_unnamed(symbolizer, &symbolizer->frame[*count - 1], &named.frame))
		symbolizer->frame[(*count)++] = named.frame;
	return 0;
}

int symbolizer_stack(struct symbolizer *symbolizer, struct pp_process_id id,
		     const struct dict_stack *user, const struct dict_kernel *kernel,
		     const struct frame **ret_frames, size_t *ret_count)
{
	const struct symbolizer_sources *sources = &symbolizer->sources;
	size_t count = 0, stitched = 0;
	int err;

	for (uint32_t i = 0; kernel && i < kernel->count && i < PP_MAX_KERNEL_FRAMES; i++) {
		err = name_kernel(symbolizer, kernel->address[i], &symbolizer->frame[count++]);
		if (err)
			return err;
	}
	if (user)
		stitched = stitch(user,
				  sources->has_one_frame_segments(sources->context, user->python),
				  symbolizer->stitched);
	for (size_t i = 0; i < stitched; i++) {
		err = add_user_frame(symbolizer, id, user, symbolizer->stitched[i], &count);
		if (err)
			return err;
	}
	if (user && user->stop == PP_STOP_LEFT_OUT && count) {
		err = mark_left_out(symbolizer, &count);
		if (err)
			return err;
	}
	*ret_frames = symbolizer->frame;
	*ret_count = count;
	return 0;
}

/* ---- Python's code objects ---- */

/* The code objects of a user that came first. */
struct batch {
	struct code_decoder *decoder;
	uint32_t user, count;
	uint32_t index[BATCH_MAX];
	const struct python_code_raw *raw[BATCH_MAX];
};

/* Collects as many as go into a request. */
static void collect(const struct raw_user *user, struct batch *batch)
{
	const uint32_t max = user->singles ? 1 : BATCH_MAX;
	size_t bytes = 0;

	batch->user = user->user;
	batch->count = 0;
	for (const struct raw_code_link *at = user->first; at; at = at->next) {
		const struct python_code_raw *raw =
			dictionary_code(batch->decoder->dictionary, at->index)->raw;

		bytes += raw->size;
		if (batch->count == max || (batch->count && bytes > FOREIGN_CODES_BYTES))
			break;
		batch->index[batch->count] = at->index;
		batch->raw[batch->count++] = raw;
	}
}

static void on_decoded(void *context, size_t index, struct python_code_text *text)
{
	struct batch *batch = context;
	struct code_decoder *decoder = batch->decoder;

	if (dictionary_decode_code(decoder->dictionary, batch->index[index], text))
		decoder->given_up++;
}

/* Asks about code objects of a user, who is gone when these were the last ones. */
static void decode(struct code_decoder *decoder, struct raw_codes *codes, struct raw_user *user)
{
	struct batch batch = {.decoder = decoder};
	const uint32_t singles = user->singles;
	struct foreign_file file;
	int err;

	collect(user, &batch);
	file = (struct foreign_file){
		.number = (batch.count > 1 ? FIRST_BATCH_NUMBER : FIRST_NUMBER) | batch.index[0],
		.user = batch.user,
		.payer = batch.user};
	user->singles -= singles > 0;
	err = foreign_codes(decoder->foreign, &file, batch.raw, batch.count, on_decoded, &batch);
	if (err >= 0)
		return;
	if (err != -ETIME) {
		user->singles = singles;
		raw_codes_put_off(codes, user);
	} else if (batch.count > 1) {
		user->singles = batch.count;
	} else {
		dictionary_give_up_code(decoder->dictionary, batch.index[0]);
		decoder->given_up++;
	}
}

void code_decoder_begin(struct code_decoder *decoder)
{
	raw_codes_recall(dictionary_raw_codes(decoder->dictionary));
	decoder->is_counted = false;
}

bool code_decoder_run(struct code_decoder *decoder, const struct slice *slice)
{
	struct raw_codes *codes = dictionary_raw_codes(decoder->dictionary);
	struct raw_user *user;

	while (decoder->foreign && (user = raw_codes_take_turn(codes))) {
		decode(decoder, codes, user);
		if (slice_is_over(slice) && codes->waiting)
			return true;
	}
	if (!decoder->is_counted)
		decoder->without_names += codes->count;
	decoder->is_counted = true;
	return false;
}
