/* SPDX-License-Identifier: BSD-2-Clause */
#include "agent/samples.h"

#include <stdio.h>

#include "agent/naming.h"
#include "agent/progress.h"
#include "agent/tables.h"
#include "agent/waits.h"
#include "drain/dictionary.h"
#include "gpu/cuda.h"
#include "processes/who.h"
#include "symbolize/symbolizer.h"
#include "windows/profile_shares.h"
#include "windows/profiles.h"
#include "windows/source.h"
#include "windows/top.h"

#define REASON_BYTES 128U

static void summarize(struct summary *summary, struct process *process,
		      const struct counted *counted)
{
	uint32_t stop = counted->key.flags >> PP_COUNT_STOP_SHIFT & 0xff;
	uint32_t py_stop = counted->key.flags >> PP_COUNT_PY_STOP_SHIFT & 0xff;

	if (counted->key.user_stack == PP_STACK_OTHERS && counted->key.kind == PP_KIND_CPU)
		summary->coarse_cpu_ns += counted->count.weight;
	if (counted->key.user_stack == PP_STACK_OTHERS && counted->key.kind == PP_KIND_WAIT)
		summary->coarse_wait_ns += counted->count.weight;
	if (counted->key.kind == PP_KIND_WAIT)
		summary->wait_ns += counted->count.weight;
	if (counted->key.kind != PP_KIND_CPU)
		return;
	summary->samples += counted->count.samples;
	summary->cpu_ns += counted->count.weight;
	if (process)
		process->is_at_rest = false;
	if (process && !process->is_sampled) {
		process->is_sampled = true;
		summary->processes++;
	}
	if (stop < PP_STOP_COUNT)
		summary->stop[stop] += counted->count.samples;
	if (py_stop < PP_PY_STOP_COUNT && counted->key.flags & PP_COUNT_PYTHON)
		summary->py_stop[py_stop] += counted->count.samples;
}

/* A sample without any frame: its stack did not reach the dictionary, or nothing could be walked.
 * Fills one frame that names the reason. */
static void explain(const struct samples *samples, const struct dict_stack *user,
		    const struct pp_count_key *key, struct frame *ret_frame)
{
#define STOP_TEXT(id, name, text) text,
	static const char *const reason[] = {PP_STOPS(STOP_TEXT)};
	uint32_t stop = key->flags >> PP_COUNT_STOP_SHIFT & 0xff;
	char text[REASON_BYTES] = "[stack lost: the ring was full]";

	if (dictionary_was_refused(samples->services->dictionary,
				   key->user_stack ? key->user_stack : key->kernel_stack))
		snprintf(text, sizeof(text), "[stack left out: its process has too many]");
	if (key->kind == PP_KIND_BLAME && !key->user_stack)
		snprintf(text, sizeof(text), "[holder of the GIL not seen]");
	else if (key->user_stack == PP_STACK_OTHERS)
		snprintf(text, sizeof(text), "[other stacks]");
	else if ((user || !key->user_stack) && stop < PP_STOP_COUNT)
		snprintf(text, sizeof(text), "[%s]", reason[stop]);
	*ret_frame = (struct frame){.kind = FRAME_MARKER};
	(void)intern_string(samples->strings, text, &ret_frame->name);
}

/* The leaf says what the thread was busy with. */
static enum ledger_part leaf_part(const struct profile_sample *sample)
{
	switch ((enum frame_kind)sample->frame[0].kind) {
	case FRAME_KERNEL:
		return LEDGER_KERNEL;
	case FRAME_PYTHON:
		return LEDGER_PYTHON;
	default:
		return LEDGER_NATIVE;
	}
}

/* Adds a value without its stack: to its process or, where that is one of too many, to a row for
 * all of them. */
static int leave_out(const struct samples *samples, const struct pp_count_key *key,
		     const struct who *who, const struct pp_count *count)
{
	const struct pp_count_key process = {.id = key->id, .kind = key->kind, .flags = key->flags};
	struct frame reason = {.kind = FRAME_MARKER};
	struct profile_sample sample = {.frame = &reason, .frame_count = 1};
	int err = intern_string(samples->strings, "[stack left out: its user has too many]",
				&reason.name);

	if (!err && profile_shares_has_row(samples->shares, who->process))
		err = labels_add(samples, &sample, &process, who);
	return err ? err : profiles_add(samples->profiles, key, count, &sample);
}

int samples_put(const struct samples *samples, const struct pp_count_key *key,
		const struct who *who, const struct pp_count *count, struct profile_sample *sample)
{
	int err = profile_shares_take(samples->shares, samples->strings, who->process, sample);

	if (err == -EDQUOT)
		return leave_out(samples, key, who, count);
	return err ? err : profiles_add(samples->profiles, key, count, sample);
}

static bool is_of_python_probe(const struct samples *samples, const struct pp_count_key *key)
{
	if (key->kind == PP_KIND_GC || key->kind == PP_KIND_IMPORT)
		return true;
	return key->kind == PP_KIND_PROBE && key->detail < samples->probes.count &&
	       probe_row_is_of_python(&samples->probes.row[key->detail]);
}

static int add_sample(const struct samples *samples, struct symbolizer *symbolizer,
		      const struct counted *counted)
{
	const struct services *services = samples->services;
	const struct pp_count_key *key = &counted->key;
	const struct dict_stack *user = dictionary_use_stack(services->dictionary, key->user_stack);
	const struct dict_kernel *kernel =
		dictionary_use_kernel(services->dictionary, key->kernel_stack);
	struct profile_sample sample = {};
	struct who who;
	struct frame reason;
	int err;

	who_find(services->processes, key->id, key->tid, &who);
	who_follow(&who, key);
	err = symbolizer_stack(symbolizer, key->id, user, kernel, &sample.frame,
			       &sample.frame_count);
	if (err)
		return err;
	if (!sample.frame_count) {
		explain(samples, user, key, &reason);
		sample.frame = &reason;
		sample.frame_count = 1;
	}
	if (key->kind == PP_KIND_WAIT)
		switch_frames_drop(samples->strings, &sample);
	else if (is_of_python_probe(samples, key))
		switch_frames_drop_interpreter(&sample);
	else if (key->kind != PP_KIND_CPU)
		switch_frames_drop_tracepoint(samples->strings, &sample);
	if (CUDA_KINDS & 1U << key->kind)
		err = cuda_add_kernel(services->sources->state[PP_SOURCE_CUDA], key->detail,
				      samples->strings, samples->modules, &sample);
	if (!err)
		err = labels_add(samples, &sample, key, &who);
	if (!err && key->kind == PP_KIND_CPU)
		err = waits_add_sample(services->sources->state[PP_SOURCE_WAITS], key->id,
				       leaf_part(&sample), counted->count.weight);
	if (err)
		return err;
	top_add(services->top, key, &counted->count, &sample);
	if (key->kind == PP_KIND_CUDA_SEEN)
		return 0;
	summarize(services->summary, who.process, counted);
	return samples_put(samples, key, &who, &counted->count, &sample);
}

void samples_adding_release(struct samples_adding *adding)
{
	symbolizer_free(adding->symbolizer);
	*adding = (struct samples_adding){};
}

/* All stacks are noted before any is named: a file's symbols are read once. */
static int note_stacks(const struct counts *counts, struct samples_adding *adding,
		       const struct slice *slice)
{
	while (adding->noted < counts->count) {
		const uint64_t stack = counts->entry[adding->noted].key.user_stack;
		int err = symbolizer_note_hash(adding->symbolizer, stack);

		if (err)
			return err;
		if (++adding->noted < counts->count && slice_is_over(slice))
			return 1;
	}
	return 0;
}

static int add_samples(const struct samples *samples, const struct counts *counts,
		       struct samples_adding *adding, const struct slice *slice)
{
	while (adding->added < counts->count) {
		int err = add_sample(samples, adding->symbolizer, &counts->entry[adding->added]);

		if (!err && adding->added % NAMED_AT_ONCE == 0)
			err = tables_relieve(samples->tables);
		if (err)
			return err;
		if (++adding->added < counts->count && slice_is_over(slice))
			return 1;
	}
	return 0;
}

int samples_add(const struct samples *samples, const struct counts *counts,
		struct samples_adding *adding, const struct slice *slice)
{
	const struct naming_options options = {.strings = samples->strings,
					       .modules = samples->modules};
	int more = 0;

	if (!adding->symbolizer)
		more = naming_begin(samples->services->naming, &options, &adding->symbolizer);
	if (!more)
		more = note_stacks(counts, adding, slice);
	if (!more && !adding->is_resolved) {
		more = symbolizer_resolve_slice(adding->symbolizer, slice);
		adding->is_resolved = !more;
	}
	return more ? more : add_samples(samples, counts, adding, slice);
}
