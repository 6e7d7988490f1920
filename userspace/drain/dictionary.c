/* SPDX-License-Identifier: BSD-2-Clause */
#include "drain/dictionary.h"

#include <errno.h>
#include <string.h>

#define FIRST_SLOTS 1024U

/* Open addressing over entries that begin with their 64-bit hash: one pointer an entry. */
struct hash_set {
	void **slot;
	size_t mask, count;
};

struct dictionary {
	struct hash_set stacks, kernels, codes; /* codes: struct code_entry */
	struct code_entry **code;		/* by index; [0] is NULL */
	uint32_t code_count, code_capacity;
	uint32_t epoch;
	size_t max_bytes;
	struct dictionary_stats stats;
	dictionary_read_raw read_raw;
	void *read_context;
};

struct code_entry {
	uint64_t hash; /* the code's id */
	uint32_t index;
	struct python_code *code;
};

static uint64_t entry_hash(const void *entry)
{
	return *(const uint64_t *)entry;
}

static int set_init(struct hash_set *set)
{
	set->slot = calloc(FIRST_SLOTS, sizeof(*set->slot));
	set->mask = FIRST_SLOTS - 1;
	set->count = 0;
	return set->slot ? 0 : -ENOMEM;
}

static void *set_find(const struct hash_set *set, uint64_t hash)
{
	for (size_t at = hash & set->mask; set->slot[at]; at = (at + 1) & set->mask)
		if (entry_hash(set->slot[at]) == hash)
			return set->slot[at];
	return NULL;
}

static void set_place(struct hash_set *set, void *entry)
{
	size_t at = entry_hash(entry) & set->mask;

	while (set->slot[at])
		at = (at + 1) & set->mask;
	set->slot[at] = entry;
}

static int set_grow(struct hash_set *set)
{
	struct hash_set grown = {.mask = set->mask * 2 + 1, .count = set->count};

	grown.slot = calloc(grown.mask + 1, sizeof(*grown.slot));
	if (!grown.slot)
		return -ENOMEM;
	for (size_t i = 0; i <= set->mask; i++)
		if (set->slot[i])
			set_place(&grown, set->slot[i]);
	free(set->slot);
	*set = grown;
	return 0;
}

static int set_add(struct hash_set *set, void *entry)
{
	if ((set->count + 1) * 2 > set->mask && set_grow(set))
		return -ENOMEM;
	set_place(set, entry);
	set->count++;
	return 0;
}

static void set_clear(struct hash_set *set)
{
	for (size_t i = 0; i <= set->mask; i++) {
		free(set->slot[i]);
		set->slot[i] = NULL;
	}
	set->count = 0;
}

/* Keeps what `keep` says; everything else is freed. */
static void set_filter(struct hash_set *set, bool (*keep)(const void *entry, uint32_t epoch),
		       uint32_t epoch)
{
	void **old = set->slot;
	size_t mask = set->mask;
	void **fresh = calloc(mask + 1, sizeof(*fresh));

	if (!fresh)
		return; /* it stays larger for an epoch */
	set->slot = fresh;
	set->count = 0;
	for (size_t i = 0; i <= mask; i++) {
		if (!old[i])
			continue;
		if (keep(old[i], epoch)) {
			set_place(set, old[i]);
			set->count++;
		} else {
			free(old[i]);
		}
	}
	free(old);
}

packed_frame packed_native(enum pp_frame_kind kind, uint32_t file, uint64_t address)
{
	return (uint64_t)kind << 61 | (uint64_t)(file & 0x1fffff) << 40 |
	       (address & 0xffffffffffULL);
}

packed_frame packed_python(uint32_t code, uint32_t what)
{
	return (uint64_t)PP_FRAME_PYTHON << 61 | (uint64_t)(code & 0x1fffffff) << 32 | what;
}

int dictionary_new(size_t max_bytes, struct dictionary **ret_dictionary)
{
	OWNED(dictionary) struct dictionary *dictionary = calloc(1, sizeof(*dictionary));

	if (!dictionary)
		return -ENOMEM;
	dictionary->max_bytes = max_bytes;
	if (set_init(&dictionary->stacks) || set_init(&dictionary->kernels) ||
	    set_init(&dictionary->codes))
		return -ENOMEM;
	dictionary->code_count = 1;
	*ret_dictionary = TAKE(dictionary);
	return 0;
}

void dictionary_clear(struct dictionary *dictionary)
{
	for (uint32_t i = 1; i < dictionary->code_count && dictionary->code; i++)
		python_code_free(dictionary->code[i]->code);
	dictionary->code_count = 1;
	set_clear(&dictionary->codes);
	set_clear(&dictionary->stacks);
	set_clear(&dictionary->kernels);
	dictionary->stats.bytes = 0;
}

static void set_release(struct hash_set *set)
{
	for (size_t i = 0; set->slot && i <= set->mask; i++)
		free(set->slot[i]);
	free(set->slot);
}

void dictionary_free(struct dictionary *dictionary)
{
	if (!dictionary)
		return;
	for (uint32_t i = 1; i < dictionary->code_count && dictionary->code; i++)
		python_code_free(dictionary->code[i]->code);
	set_release(&dictionary->codes);
	set_release(&dictionary->stacks);
	set_release(&dictionary->kernels);
	free(dictionary->code);
	free(dictionary);
}

void dictionary_set_reader(struct dictionary *dictionary, dictionary_read_raw read_raw, void *context)
{
	dictionary->read_raw = read_raw;
	dictionary->read_context = context;
}

static int reserve(struct dictionary *dictionary, size_t bytes)
{
	if (dictionary->stats.bytes + bytes > dictionary->max_bytes) {
		dictionary->stats.refused++;
		return -ENOSPC;
	}
	return 0;
}

/* ---- code objects ---- */

static size_t code_bytes(const struct python_code *code)
{
	return sizeof(*code) + sizeof(struct code_entry) + strlen(code->name) +
	       strlen(code->filename) + code->line_table_bytes + 64;
}

static int code_append(struct dictionary *dictionary, struct code_entry *entry)
{
	if (dictionary->code_count >= dictionary->code_capacity) {
		uint32_t capacity = dictionary->code_capacity ? dictionary->code_capacity * 2 : 1024;
		struct code_entry **grown =
			realloc(dictionary->code, capacity * sizeof(*dictionary->code));

		if (!grown)
			return -ENOMEM;
		dictionary->code = grown;
		dictionary->code_capacity = capacity;
		dictionary->code[0] = NULL;
	}
	if (set_add(&dictionary->codes, entry))
		return -ENOMEM;
	entry->index = dictionary->code_count;
	dictionary->code[dictionary->code_count++] = entry;
	return 0;
}

int dictionary_add_code(struct dictionary *dictionary, struct python_code *given,
			uint32_t *ret_index)
{
	OWNED(python_code) struct python_code *code = given;
	struct code_entry *known = set_find(&dictionary->codes, code->id);
	OWNED_MEM struct code_entry *entry = NULL;
	int err;

	if (known) {
		*ret_index = known->index;
		return 0;
	}
	err = reserve(dictionary, code_bytes(code));
	if (err)
		return err;
	entry = malloc(sizeof(*entry));
	if (!entry)
		return -ENOMEM;
	*entry = (struct code_entry){.hash = code->id, .code = code};
	err = code_append(dictionary, entry);
	if (err)
		return err;
	dictionary->stats.bytes += code_bytes(code);
	*ret_index = entry->index;
	TAKE(code);
	TAKE(entry);
	return 0;
}

bool dictionary_knows_code(const struct dictionary *dictionary, uint64_t id)
{
	return set_find(&dictionary->codes, id) != NULL;
}

const struct python_code *dictionary_code(const struct dictionary *dictionary, uint32_t index)
{
	return index && index < dictionary->code_count ? dictionary->code[index]->code : NULL;
}

/* ---- stacks ---- */

static uint32_t raw_code(struct dictionary *dictionary, const struct pp_stack_record *record,
			 uint64_t address)
{
	struct python_code *code;
	uint32_t index;

	if (!dictionary->read_raw ||
	    dictionary->read_raw(dictionary->read_context, record->id, record->python, address,
				 &code) ||
	    dictionary_add_code(dictionary, code, &index))
		return 0;
	return index;
}

static packed_frame pack(struct dictionary *dictionary, const struct pp_stack_record *record,
			 const struct pp_frame *frame)
{
	const struct code_entry *code;
	uint32_t index;

	switch (frame->kind) {
	case PP_FRAME_PYTHON:
		code = set_find(&dictionary->codes, frame->where);
		index = code ? code->index : 0;
		break;
	case PP_FRAME_PYTHON_RAW:
		index = raw_code(dictionary, record, frame->where);
		break;
	case PP_FRAME_PYTHON_RUN:
		return (uint64_t)PP_FRAME_PYTHON_RUN << 61 | (uint32_t)frame->where;
	case PP_FRAME_ANONYMOUS:
		/* 47 bits of address: the file's bits are free here. */
		return (uint64_t)PP_FRAME_ANONYMOUS << 61 | (frame->where & ((1ULL << 61) - 1));
	default:
		return packed_native(frame->kind, frame->what, frame->where);
	}
	if (!index)
		dictionary->stats.unknown_code++;
	return packed_python(index, frame->what);
}

int dictionary_add_stack(struct dictionary *dictionary, const struct decoded_stack *decoded)
{
	const struct pp_stack_record *record = decoded->record;
	struct dict_stack *known = set_find(&dictionary->stacks, record->hash);
	size_t frames = (size_t)record->python_stored + record->native_stored;
	size_t bytes = sizeof(*known) + frames * sizeof(packed_frame);
	OWNED_MEM struct dict_stack *stack = NULL;
	int err;

	if (known) {
		known->epoch = dictionary->epoch;
		return 0;
	}
	err = reserve(dictionary, bytes);
	if (err)
		return err;
	stack = malloc(bytes);
	if (!stack)
		return -ENOMEM;
	*stack = (struct dict_stack){
		.hash = record->hash,
		.id = record->id,
		.epoch = dictionary->epoch,
		.python_count = record->python_count,
		.native_count = record->native_count,
		.python_stored = record->python_stored,
		.native_stored = record->native_stored,
		.stop = record->stop,
		.py_stop = record->py_stop,
		.python = record->python,
	};
	for (size_t i = 0; i < record->python_stored; i++)
		stack->frame[i] = pack(dictionary, record, &decoded->python[i]);
	for (size_t i = 0; i < record->native_stored; i++)
		stack->frame[record->python_stored + i] =
			pack(dictionary, record, &decoded->native[i]);
	err = set_add(&dictionary->stacks, stack);
	if (err)
		return err;
	dictionary->stats.bytes += bytes;
	TAKE(stack);
	return 0;
}

int dictionary_add_kernel(struct dictionary *dictionary, const struct decoded_kernel *decoded)
{
	struct dict_kernel *known = set_find(&dictionary->kernels, decoded->record->hash);
	size_t bytes = sizeof(*known) + decoded->count * sizeof(uint64_t);
	OWNED_MEM struct dict_kernel *kernel = NULL;
	int err;

	if (known) {
		known->epoch = dictionary->epoch;
		return 0;
	}
	err = reserve(dictionary, bytes);
	if (err)
		return err;
	kernel = malloc(bytes);
	if (!kernel)
		return -ENOMEM;
	kernel->hash = decoded->record->hash;
	kernel->epoch = dictionary->epoch;
	kernel->count = (uint32_t)decoded->count;
	memcpy(kernel->address, decoded->record->address, decoded->count * sizeof(uint64_t));
	err = set_add(&dictionary->kernels, kernel);
	if (err)
		return err;
	dictionary->stats.bytes += bytes;
	TAKE(kernel);
	return 0;
}

const struct dict_stack *dictionary_find_stack(const struct dictionary *dictionary, uint64_t hash)
{
	return set_find(&dictionary->stacks, hash);
}

const struct dict_kernel *dictionary_find_kernel(const struct dictionary *dictionary, uint64_t hash)
{
	return set_find(&dictionary->kernels, hash);
}

const struct dict_stack *dictionary_use_stack(struct dictionary *dictionary, uint64_t hash)
{
	struct dict_stack *stack = set_find(&dictionary->stacks, hash);

	if (stack)
		stack->epoch = dictionary->epoch;
	return stack;
}

const struct dict_kernel *dictionary_use_kernel(struct dictionary *dictionary, uint64_t hash)
{
	struct dict_kernel *kernel = set_find(&dictionary->kernels, hash);

	if (kernel)
		kernel->epoch = dictionary->epoch;
	return kernel;
}

/* ---- epochs ---- */

static bool stack_is_recent(const void *entry, uint32_t epoch)
{
	return epoch - ((const struct dict_stack *)entry)->epoch <= 1;
}

static bool kernel_is_recent(const void *entry, uint32_t epoch)
{
	return epoch - ((const struct dict_kernel *)entry)->epoch <= 1;
}

static void count_bytes(struct dictionary *dictionary)
{
	size_t bytes = 0;

	for (size_t i = 0; i <= dictionary->stacks.mask; i++) {
		const struct dict_stack *stack = dictionary->stacks.slot[i];

		if (stack)
			bytes += sizeof(*stack) + ((size_t)stack->python_stored +
						   stack->native_stored) * sizeof(packed_frame);
	}
	for (size_t i = 0; i <= dictionary->kernels.mask; i++) {
		const struct dict_kernel *kernel = dictionary->kernels.slot[i];

		if (kernel)
			bytes += sizeof(*kernel) + kernel->count * sizeof(uint64_t);
	}
	for (uint32_t i = 1; i < dictionary->code_count; i++)
		bytes += code_bytes(dictionary->code[i]->code);
	dictionary->stats.bytes = bytes;
}

void dictionary_set_epoch(struct dictionary *dictionary, uint32_t epoch)
{
	dictionary->epoch = epoch;
	set_filter(&dictionary->stacks, stack_is_recent, epoch);
	set_filter(&dictionary->kernels, kernel_is_recent, epoch);
	count_bytes(dictionary);
}

void dictionary_get_stats(const struct dictionary *dictionary, struct dictionary_stats *ret_stats)
{
	*ret_stats = dictionary->stats;
	ret_stats->stacks = dictionary->stacks.count;
	ret_stats->kernel_stacks = dictionary->kernels.count;
	ret_stats->codes = dictionary->code_count - 1;
}
