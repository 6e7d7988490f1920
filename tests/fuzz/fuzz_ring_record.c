/* SPDX-License-Identifier: BSD-2-Clause */
/* sources: drain/decode.c drain/dictionary.c drain/hash_set.c base/index_table.c drain/raw_codes.c drain/text_table.c base/utf8.c symbolize/stitch.c python/python_code.c python/python_text.c python/python_objects.c base/io.c base/user_quota.c */
/* Records of both rings, one after the other; those that decode go to the dictionary and are
 * stitched. Each record begins with two bytes: which ring, and its size in units of 8 bytes.
 * runs: 5000 at most in `make check`. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "drain/decode.h"
#include "drain/dictionary.h"
#include "drain/text_table.h"
#include "symbolize/stitch.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define ROOM (64U << 10) /* small, so that refusals are met */

static volatile uint8_t sink;

/* Where the records go. */
struct taken {
	struct dictionary *dictionary;
	struct text_table *texts;
};

static void touch(const void *bytes, size_t size)
{
	const uint8_t *byte = bytes;

	for (size_t i = 0; i < size; i++)
		sink ^= byte[i];
}

static void on_stack(void *context, const struct decoded_stack *stack)
{
	static packed_frame frame[STITCH_MAX_FRAMES];
	struct dictionary *dictionary = ((struct taken *)context)->dictionary;
	const struct dict_stack *kept;

	touch(stack->python, stack->record->python_stored * sizeof(*stack->python));
	touch(stack->native, stack->record->native_stored * sizeof(*stack->native));
	if (dictionary_add_stack(dictionary, stack))
		return;
	kept = dictionary_find_stack(dictionary, stack->record->hash);
	assert(kept);
	assert(stitch(kept, stack->record->python & 1, frame) <= STITCH_MAX_FRAMES);
}

static void on_kernel(void *context, const struct decoded_kernel *kernel)
{
	struct dictionary *dictionary = ((struct taken *)context)->dictionary;

	touch(kernel->record->address, kernel->count * sizeof(uint64_t));
	if (!dictionary_add_kernel(dictionary, kernel))
		assert(dictionary_find_kernel(dictionary, kernel->record->hash));
}

static void on_code(void *context, const struct pp_code_record *record)
{
	struct dictionary *dictionary = ((struct taken *)context)->dictionary;
	struct python_code *code = NULL;
	struct pp_python layout = {.major = 3, .minor = (uint8_t)(record->python & 15)};
	uint32_t index = 0;

	if (python_code_from_record(record, &layout, 0, &code) ||
	    dictionary_add_code(dictionary, (struct pp_process_id){}, code, &index))
		return;
	assert(index && dictionary_code(dictionary, index));
	if (dictionary_code(dictionary, index)->raw) {
		struct python_code_text text;

		assert(!python_code_text_decode(dictionary_code(dictionary, index)->raw, &text));
		(void)dictionary_decode_code(dictionary, index, &text);
	}
	python_code_line(dictionary_code(dictionary, index), record->first_line);
}

static void on_incomplete(void *context, const struct decoded_incomplete *incomplete)
{
	(void)context;
	touch(incomplete->python, incomplete->record->python_stored * sizeof(*incomplete->python));
	touch(incomplete->native, incomplete->record->native_stored * sizeof(*incomplete->native));
	touch(incomplete->segment,
	      incomplete->record->segment_count * sizeof(*incomplete->segment));
	touch(incomplete->stack, incomplete->record->stack_bytes);
}

static void on_text(void *context, const struct pp_text_record *record, size_t bytes)
{
	struct text_table *texts = ((struct taken *)context)->texts;

	touch(record->bytes, bytes);
	if (!text_table_add(texts, record->id, record->process.tgid, (const char *)record->bytes,
			    bytes))
		assert(text_table_find(texts, record->id));
}

static void on_event(void *context, const struct pp_event *event)
{
	(void)context;
	assert(event->comm[PP_COMM_BYTES - 1] == '\0');
}

static void feed(struct taken *taken, uint8_t ring, const uint8_t *bytes, size_t size)
{
	const struct drain_handlers handlers = {.context = taken,
						.stack = on_stack,
						.kernel = on_kernel,
						.code = on_code,
						.incomplete = on_incomplete,
						.text = on_text,
						.event = on_event};
	/* Its own allocation, so that a read behind its end is seen. */
	uint8_t *copy = malloc(size + 1);

	assert(copy);
	memcpy(copy, bytes, size);
	if (ring & 1)
		decode_event(copy, size, &handlers);
	else
		decode_record(copy, size, &handlers);
	free(copy);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	OWNED(dictionary) struct dictionary *dictionary = NULL;
	OWNED(text_table) struct text_table *texts = NULL;
	struct taken taken;
	uint32_t epoch = 0;

	if (dictionary_new(ROOM, &dictionary) || text_table_new(&texts))
		return 0;
	taken = (struct taken){.dictionary = dictionary, .texts = texts};
	while (size >= 2) {
		uint8_t ring = data[0];
		size_t bytes = (size_t)data[1] * 8;

		data += 2;
		size -= 2;
		if (bytes > size)
			bytes = size;
		feed(&taken, ring, data, bytes);
		if (ring & 2) {
			dictionary_set_epoch(dictionary, ++epoch);
			text_table_end_epoch(texts);
		}
		data += bytes;
		size -= bytes;
	}
	return 0;
}
