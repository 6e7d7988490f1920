/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "agent/naming.h"
#include "agent/samples.h"
#include "agent/tables.h"
#include "discover/proc_scan.h"
#include "discover/process_table.h"
#include "drain/dictionary.h"
#include "processes/who.h"
#include "profile/profile.h"
#include "symbolize/stitch.h"
#include "symbolize/symbolizer.h"
#include "windows/label.h"
#include "windows/source.h"

#define SEPARATOR "--waker--"
#define INTERRUPT "[interrupt]"
/* How many frames of the tracepoint a waker's stack may begin with. */
#define WAKE_FRAMES_MAX 12U
#define CHAIN_FRAMES_MAX (2 * (STITCH_MAX_FRAMES + PP_MAX_KERNEL_FRAMES) + 2)

struct chain {
	const struct samples *samples;
	struct symbolizer *symbolizer; /* owned */
	struct frame *frame;	       /* owned; CHAIN_FRAMES_MAX */
	size_t count;
	struct frame separator, interrupt;
};

struct wakers_adding {
	struct chain chain;
	size_t noted, added; /* waits */
	bool is_resolved;
};

static int get_stack(struct chain *chain, struct pp_process_id id, uint64_t user, uint64_t kernel,
		     struct profile_sample *sample)
{
	struct dictionary *dictionary = chain->samples->services->dictionary;

	return symbolizer_stack(chain->symbolizer, id, dictionary_use_stack(dictionary, user),
				dictionary_use_kernel(dictionary, kernel), &sample->frame,
				&sample->frame_count);
}

/* Leaves out the frames above try_to_wake_up(). */
static void drop_wake_frames(struct chain *chain, struct profile_sample *sample)
{
	for (size_t i = 0; i < sample->frame_count && i < WAKE_FRAMES_MAX; i++) {
		const struct frame *frame = &sample->frame[i];

		if (frame->kind != FRAME_KERNEL)
			return;
		if (strcmp(intern_get(chain->samples->strings, frame->name, NULL),
			   "try_to_wake_up"))
			continue;
		sample->frame += i;
		sample->frame_count -= i;
		return;
	}
}

/* What an interrupt came upon has nothing to do with the wake-up.  Keeps the frames down to its
 * entry point: asm_* on x86-64, el*_irq on aarch64. */
static void keep_interrupt(struct chain *chain, struct profile_sample *sample)
{
	for (size_t i = 0; i < sample->frame_count; i++) {
		const char *name = intern_get(chain->samples->strings, sample->frame[i].name, NULL);

		if (strncmp(name, "asm_", 4) && strcmp(name, "el0t_64_irq") &&
		    strcmp(name, "el1h_64_irq"))
			continue;
		sample->frame_count = i + 1;
		return;
	}
}

/* Builds the chain leaf first, as profiles have it: the waker's root, ..., its leaf, the separator,
 * the waiter's leaf, ... */
static int link_stacks(struct chain *chain, const struct pp_wake_key *key)
{
	struct profile_sample part = {};
	int err = get_stack(chain, key->waker.id, key->waker.user_stack, key->waker.kernel_stack,
			    &part);

	if (err)
		return err;
	chain->count = 0;
	drop_wake_frames(chain, &part);
	if (key->waker.flags & PP_WAKE_INTERRUPT) {
		keep_interrupt(chain, &part);
		chain->frame[chain->count++] = chain->interrupt;
	}
	for (size_t i = part.frame_count; i; i--)
		chain->frame[chain->count++] = part.frame[i - 1];
	chain->frame[chain->count++] = chain->separator;
	err = get_stack(chain, key->id, key->user_stack, key->kernel_stack, &part);
	if (err)
		return err;
	switch_frames_drop(chain->samples->strings, &part);
	memcpy(chain->frame + chain->count, part.frame, part.frame_count * sizeof(*part.frame));
	chain->count += part.frame_count;
	return 0;
}

static int label_waker(struct chain *chain, const struct pp_waker *waker,
		       struct profile_sample *sample)
{
	const struct process *process =
		process_table_find_or_tgid(chain->samples->services->processes, waker->id);
	struct intern *strings = chain->samples->strings;
	char comm[PP_COMM_BYTES] = "";

	if (waker->flags & PP_WAKE_INTERRUPT)
		return label_string(strings, sample, "waker_comm", INTERRUPT);
	label_number(sample, "waker_pid", waker->id.tgid);
	label_number(sample, "waker_tid", waker->tid);
	if (!process)
		(void)thread_comm_read(waker->id.tgid, waker->tid, comm);
	return label_string(strings, sample, "waker_comm", process ? process->comm : comm);
}

static int add_wake(struct chain *chain, const struct woken *woken)
{
	const struct samples *samples = chain->samples;
	const struct pp_wake_key *key = &woken->key;
	const struct pp_count_key waiter = {
		.id = key->id, .tid = key->tid, .flags = key->flags, .kind = PP_KIND_WAKE};
	struct profile_sample sample = {};
	struct who who;
	int err = link_stacks(chain, key);

	who_find(samples->services->processes, key->id, key->tid, &who);
	if (!err)
		err = labels_add(samples, &sample, &waiter, &who);
	if (!err)
		err = label_waker(chain, &key->waker, &sample);
	if (err)
		return err;
	sample.frame = chain->frame;
	sample.frame_count = chain->count;
	return samples_put(samples, &waiter, &who, &woken->count, &sample);
}

static int note_stacks(const struct wakes *wakes, struct wakers_adding *adding,
		       const struct slice *slice)
{
	while (adding->noted < wakes->count) {
		const struct pp_wake_key *key = &wakes->entry[adding->noted].key;
		int err = symbolizer_note_hash(adding->chain.symbolizer, key->user_stack);

		if (!err)
			err = symbolizer_note_hash(adding->chain.symbolizer, key->waker.user_stack);
		if (err)
			return err;
		if (++adding->noted < wakes->count && slice_is_over(slice))
			return 1;
	}
	return 0;
}

static int add_wakes(const struct wakes *wakes, struct wakers_adding *adding,
		     const struct slice *slice)
{
	struct chain *chain = &adding->chain;

	while (adding->added < wakes->count) {
		int err = add_wake(chain, &wakes->entry[adding->added]);

		if (!err && adding->added % NAMED_AT_ONCE == 0)
			err = tables_relieve(chain->samples->tables);
		if (err)
			return err;
		if (++adding->added < wakes->count && slice_is_over(slice))
			return 1;
	}
	return 0;
}

void wakers_adding_free(struct wakers_adding *adding)
{
	if (!adding)
		return;
	symbolizer_free(adding->chain.symbolizer);
	free(adding->chain.frame);
	free(adding);
}

static int begin(const struct samples *samples, struct wakers_adding **ret_adding)
{
	OWNED(wakers_adding) struct wakers_adding *adding = calloc(1, sizeof(*adding));
	const struct naming_options options = {.strings = samples->strings,
					       .modules = samples->modules};
	struct chain *chain;
	int err;

	if (!adding)
		return -ENOMEM;
	chain = &adding->chain;
	chain->samples = samples;
	chain->separator.kind = chain->interrupt.kind = FRAME_MARKER;
	chain->frame = calloc(CHAIN_FRAMES_MAX, sizeof(*chain->frame));
	if (!chain->frame)
		return -ENOMEM;
	err = naming_begin(samples->services->naming, &options, &chain->symbolizer);
	if (!err)
		err = intern_string(samples->strings, SEPARATOR, &chain->separator.name);
	if (!err)
		err = intern_string(samples->strings, INTERRUPT, &chain->interrupt.name);
	if (!err)
		*ret_adding = TAKE(adding);
	return err;
}

int wakers_add(const struct samples *samples, const struct wakes *wakes,
	       struct wakers_adding **adding, const struct slice *slice)
{
	int more = 0;

	if (!wakes->count)
		return 0;
	if (!*adding)
		more = begin(samples, adding);
	if (!more)
		more = note_stacks(wakes, *adding, slice);
	if (!more && !(*adding)->is_resolved) {
		more = symbolizer_resolve_slice((*adding)->chain.symbolizer, slice);
		(*adding)->is_resolved = !more;
	}
	return more ? more : add_wakes(wakes, *adding, slice);
}
