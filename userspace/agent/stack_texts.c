/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "agent/naming.h"
#include "agent/samples.h"
#include "agent/timeline.h"
#include "base/hash.h"
#include "base/io.h"
#include "drain/dictionary.h"
#include "symbolize/symbolizer.h"

#define STACKS_MAX 32768U	   /* beyond it all are forgotten and named again */
#define TEXT_BYTES_MAX (16U << 20) /* of all texts; later stacks have their function only */

struct stack_key {
	uint64_t user, kernel;
};

struct stack_entry {
	struct stack_key key;
	UT_hash_handle hh;
	struct stack_entry *next; /* in the list of stacks to be named */
	struct pp_process_id id;
	bool is_named; /* or noted; else it is lost, or a function in it has no name yet */
	struct stack_text text;
};

struct stack_texts {
	struct stack_texts_sources sources;
	struct stack_entry *entry, *noted;
};

int stack_texts_new(const struct stack_texts_sources *sources, struct stack_texts **ret_texts)
{
	struct stack_texts *texts = calloc(1, sizeof(*texts));

	if (!texts)
		return -ENOMEM;
	texts->sources = *sources;
	*ret_texts = texts;
	return 0;
}

static void forget(struct stack_texts *texts)
{
	HASH_DROP_ALL(texts->entry);
	texts->noted = NULL;
}

void stack_texts_free(struct stack_texts *texts)
{
	if (!texts)
		return;
	forget(texts);
	free(texts);
}

static struct stack_entry *find(const struct stack_texts *texts, uint64_t user, uint64_t kernel)
{
	const struct stack_key key = {user, kernel};
	struct stack_entry *entry;

	HASH_FIND(hh, texts->entry, &key, sizeof(key), entry);
	return entry;
}

int stack_texts_note(struct stack_texts *texts, struct pp_process_id id, uint64_t user,
		     uint64_t kernel)
{
	const struct stack_key key = {user, kernel};
	struct stack_entry *entry;

	if (!(user | kernel))
		return 0;
	entry = HASH_GET(texts->entry, key, key);
	if (!entry)
		return -ENOMEM;
	if (entry->is_named)
		return 0;
	entry->is_named = true;
	if (!entry->id.tgid)
		entry->id = id;
	entry->next = texts->noted;
	texts->noted = entry;
	return 0;
}

struct stack_text stack_texts_find(const struct stack_texts *texts, uint64_t user, uint64_t kernel)
{
	const struct stack_entry *entry = find(texts, user, kernel);

	return entry ? entry->text : (struct stack_text){};
}

/* ---- text ---- */

static const char *text_of(const struct stack_texts *texts, uint32_t id)
{
	return intern_get(texts->sources.strings, id, NULL);
}

static void print_frame(FILE *out, const struct stack_texts *texts, const struct frame *frame)
{
	const char *file = text_of(texts, frame->file), *slash = strrchr(file, '/');

	fputs(text_of(texts, frame->name), out);
	if (frame->kind == FRAME_KERNEL)
		fputs("_[k]", out);
	else if (frame->kind == FRAME_PYTHON)
		fprintf(out, " (%s:%u)", slash ? slash + 1 : file, frame->line);
}

static int print_stack(struct stack_texts *texts, const struct frame *frame, size_t count,
		       uint32_t *ret_text)
{
	OWNED_MEM char *text = NULL;
	size_t size = 0,
	       shown = count < texts->sources.max_frames ? count : texts->sources.max_frames;
	FILE *out = open_memstream(&text, &size);

	if (!out)
		return -ENOMEM;
	for (size_t i = 0; i < shown; i++) {
		fputs(i ? " < " : "", out);
		print_frame(out, texts, &frame[i]);
	}
	if (shown < count)
		fprintf(out, " < ... %zu more", count - shown);
	if (close_memory_file(out, &text))
		return -ENOMEM;
	return intern_bytes(texts->sources.strings, text, size, ret_text);
}

/* The kernel's frames at a switch say no more than the reason of the wait.  Returns how many to
 * leave out. */
static size_t skip_switch(const struct stack_texts *texts, const struct frame *frame, size_t count)
{
	size_t i = 0;

	if (!switch_frames_find(texts->sources.strings, frame, count, &i))
		return 0;
	while (i < count && frame[i].kind == FRAME_KERNEL)
		i++;
	return i < count ? i : 0;
}

/* Returns the innermost Python frame; else the innermost one of the program; else the kernel's. */
static const struct frame *innermost(const struct frame *frame, size_t count)
{
	const struct frame *user = NULL;

	for (size_t i = 0; i < count; i++) {
		if (frame[i].kind == FRAME_PYTHON)
			return &frame[i];
		if (!user && frame[i].kind != FRAME_KERNEL)
			user = &frame[i];
	}
	return user ? user : frame;
}

static int name_stack(struct stack_texts *texts, struct symbolizer *symbolizer,
		      struct stack_entry *entry)
{
	const struct dictionary *dictionary = texts->sources.dictionary;
	const struct dict_stack *user = dictionary_find_stack(dictionary, entry->key.user);
	const struct frame *frame;
	size_t count, skipped;
	int err = symbolizer_stack(symbolizer, entry->id, user,
				   dictionary_find_kernel(dictionary, entry->key.kernel), &frame,
				   &count);

	/* Another wait may bring a lost stack again, or find its functions named. */
	entry->is_named = user ? !dictionary_has_raw(dictionary, user) : !entry->key.user;
	if (err || !count || (entry->key.user && !user))
		return err;
	entry->text.function = innermost(frame, count)->name;
	entry->text.is_python = innermost(frame, count)->kind == FRAME_PYTHON;
	skipped = skip_switch(texts, frame, count);
	if (skipped == count || intern_bytes_used(texts->sources.strings) > TEXT_BYTES_MAX)
		return 0;
	return print_stack(texts, frame + skipped, count - skipped, &entry->text.text);
}

/* ---- names ---- */

static int name_noted(struct stack_texts *texts)
{
	OWNED(symbolizer) struct symbolizer *symbolizer = NULL;
	const struct naming_options options = {.strings = texts->sources.strings};
	int err = naming_begin(texts->sources.naming, &options, &symbolizer);

	for (struct stack_entry *entry = texts->noted; entry && !err; entry = entry->next)
		err = symbolizer_note_hash(symbolizer, entry->key.user);
	if (!err)
		err = symbolizer_resolve_slice(symbolizer, NULL);
	for (struct stack_entry *entry = texts->noted; entry && !err; entry = entry->next)
		err = name_stack(texts, symbolizer, entry);
	return err;
}

int stack_texts_resolve(struct stack_texts *texts)
{
	int err = texts->noted ? name_noted(texts) : 0;

	texts->noted = NULL;
	return err;
}

void stack_texts_tidy(struct stack_texts *texts)
{
	if (HASH_COUNT(texts->entry) > STACKS_MAX)
		forget(texts);
}
