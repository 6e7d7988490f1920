/* SPDX-License-Identifier: BSD-2-Clause */
#include "drain/dictionary.h"

#include <errno.h>
#include <string.h>

#include "drain/shares.h"

#define FIRST_SLOTS 1024U
#define REFUSED_BITS (1U << 20)

/* A hash set with open addressing: entries begin with their 64-bit hash, and each costs one
 * pointer. */
struct hash_set {
	void **slot;
	size_t mask, count;
};

struct dictionary {
	struct hash_set stacks, kernels, codes, aliases; /* codes: struct code_entry */
	struct code_entry **code;		/* by index; [0] is NULL */
	uint32_t code_count, code_capacity;
	uint32_t *free_code; /* indices below code_count that are free; as large as code */
	uint32_t free_code_count;
	uint32_t raw_count; /* of code objects that are not decoded */
	uint32_t epoch;
	struct shares shares;
	/* bitmap of REFUSED_BITS, by hash; NULL: nothing refused in this epoch */
	uint64_t *refused;
	struct dictionary_stats stats;
	dictionary_read_raw read_raw;
	void *read_context;
	dictionary_user_of user_of; /* NULL: all are root's */
	void *user_context;
};

struct code_entry {
	uint64_t hash; /* the code's id */
	struct pp_process_id id;
	uint32_t user; /* whose share it is part of */
	uint32_t index;
	bool is_used; /* by some stack: dictionary_make_room() */
	struct python_code *code;
};

struct alias {
	uint64_t hash;
	uint64_t stack; /* its hash */
	uint32_t epoch;
	uint32_t tries; /* unwinds that were torn */
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

typedef bool (*set_keep)(const struct dictionary *dictionary, const void *entry);

/* Keeps the entries that `keep` accepts and frees the others.  fresh: all NULL, as large as the
 * set; the set takes it over. */
static void set_filter_into(struct hash_set *set, void **fresh, set_keep keep,
			    const struct dictionary *dictionary)
{
	void **old = set->slot;

	set->slot = fresh;
	set->count = 0;
	for (size_t i = 0; i <= set->mask; i++) {
		if (!old[i])
			continue;
		if (keep(dictionary, old[i])) {
			set_place(set, old[i]);
			set->count++;
		} else {
			free(old[i]);
		}
	}
	free(old);
}

static void set_filter(struct hash_set *set, set_keep keep, const struct dictionary *dictionary)
{
	void **fresh = calloc(set->mask + 1, sizeof(*fresh));

	if (fresh) /* else the set stays too large for an epoch */
		set_filter_into(set, fresh, keep, dictionary);
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
	dictionary->shares.max_bytes = max_bytes;
	if (set_init(&dictionary->stacks) || set_init(&dictionary->kernels) ||
	    set_init(&dictionary->codes) || set_init(&dictionary->aliases))
		return -ENOMEM;
	dictionary->code_count = 1;
	*ret_dictionary = TAKE(dictionary);
	return 0;
}

void dictionary_set_max_bytes(struct dictionary *dictionary, size_t max_bytes)
{
	dictionary->shares.max_bytes = max_bytes;
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
		if (dictionary->code[i])
			python_code_free(dictionary->code[i]->code);
	set_release(&dictionary->codes);
	set_release(&dictionary->stacks);
	set_release(&dictionary->kernels);
	set_release(&dictionary->aliases);
	shares_release(&dictionary->shares);
	free(dictionary->refused);
	free(dictionary->free_code);
	free(dictionary->code);
	free(dictionary);
}

void dictionary_set_reader(struct dictionary *dictionary, dictionary_read_raw read_raw,
			   void *context)
{
	dictionary->read_raw = read_raw;
	dictionary->read_context = context;
}

void dictionary_set_users(struct dictionary *dictionary, dictionary_user_of user_of, void *context)
{
	dictionary->user_of = user_of;
	dictionary->user_context = context;
}

static struct share_holder holder_of(const struct dictionary *dictionary, struct pp_process_id id)
{
	struct share_holder holder = {.id = id};

	if (dictionary->user_of)
		holder.user = dictionary->user_of(dictionary->user_context, id);
	return holder;
}

/* Takes room from the budget. */
static int reserve(struct dictionary *dictionary, const struct share_holder *holder, size_t bytes)
{
	const int err = shares_take(&dictionary->shares, holder, bytes);

	if (!err)
		return 0;
	dictionary->stats.refused++;
	dictionary->stats.users_refused += err == -EDQUOT;
	return -ENOSPC;
}

/* The same for what belongs to no process. */
static int reserve_common(struct dictionary *dictionary, size_t bytes)
{
	if (shares_take_common(&dictionary->shares, bytes))
		return 0;
	dictionary->stats.refused++;
	return -ENOSPC;
}

/* Notes that a stack was refused, to say later why it is missing: 128 KiB, once needed. */
static void note_refused(struct dictionary *dictionary, uint64_t hash)
{
	uint64_t bit = hash % REFUSED_BITS;

	if (!dictionary->refused)
		dictionary->refused = calloc(REFUSED_BITS / 64, sizeof(*dictionary->refused));
	if (dictionary->refused)
		dictionary->refused[bit / 64] |= 1ULL << bit % 64;
}

static uint64_t resolve_alias(const struct dictionary *dictionary, uint64_t hash)
{
	const struct alias *alias = set_find(&dictionary->aliases, hash);

	return alias ? alias->stack : hash;
}

bool dictionary_was_refused(const struct dictionary *dictionary, uint64_t hash)
{
	uint64_t bit = resolve_alias(dictionary, hash) % REFUSED_BITS;

	return dictionary->refused && dictionary->refused[bit / 64] >> bit % 64 & 1;
}

/* ---- code objects ---- */

static size_t code_bytes(const struct python_code *code)
{
	return python_code_bytes(code) + sizeof(struct code_entry) + 64;
}

static int codes_grow(struct dictionary *dictionary)
{
	uint32_t capacity = dictionary->code_capacity ? dictionary->code_capacity * 2 : 1024;
	struct code_entry **grown =
		realloc(dictionary->code, capacity * sizeof(*dictionary->code));
	uint32_t *free_code;

	if (!grown)
		return -ENOMEM;
	dictionary->code = grown;
	dictionary->code[0] = NULL;
	free_code = realloc(dictionary->free_code, capacity * sizeof(*free_code));
	if (!free_code)
		return -ENOMEM;
	dictionary->free_code = free_code;
	dictionary->code_capacity = capacity;
	return 0;
}

static int code_append(struct dictionary *dictionary, struct code_entry *entry)
{
	int err = 0;

	if (!dictionary->free_code_count && dictionary->code_count >= dictionary->code_capacity)
		err = codes_grow(dictionary);
	if (!err)
		err = set_add(&dictionary->codes, entry);
	if (err)
		return err;
	entry->index = dictionary->free_code_count ?
			       dictionary->free_code[--dictionary->free_code_count] :
			       dictionary->code_count++;
	dictionary->code[entry->index] = entry;
	return 0;
}

int dictionary_add_code(struct dictionary *dictionary, struct pp_process_id id,
			struct python_code *given, uint32_t *ret_index)
{
	OWNED(python_code) struct python_code *code = given;
	struct code_entry *known = set_find(&dictionary->codes, code->id);
	OWNED_MEM struct code_entry *entry = NULL;
	struct share_holder holder;
	int err;

	if (known) {
		*ret_index = known->index;
		return 0;
	}
	holder = holder_of(dictionary, id);
	err = reserve(dictionary, &holder, code_bytes(code));
	if (err)
		return err;
	entry = malloc(sizeof(*entry));
	if (!entry)
		return -ENOMEM;
	*entry = (struct code_entry){
		.hash = code->id, .id = id, .user = holder.user, .code = code};
	err = code_append(dictionary, entry);
	if (err)
		return err;
	*ret_index = entry->index;
	dictionary->raw_count += code->raw != NULL;
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
	return index && index < dictionary->code_count && dictionary->code[index] ?
		       dictionary->code[index]->code :
		       NULL;
}

uint32_t dictionary_next_raw(const struct dictionary *dictionary, uint32_t from,
			     uint32_t *ret_user)
{
	for (uint32_t i = from; dictionary->raw_count && i < dictionary->code_count; i++) {
		const struct code_entry *entry = dictionary->code[i];

		if (entry && entry->code->raw) {
			*ret_user = entry->user;
			return i;
		}
	}
	return 0;
}

void dictionary_decode_code(struct dictionary *dictionary, uint32_t index,
			    struct python_code_text *text)
{
	const struct code_entry *entry = dictionary->code[index];
	const struct share_holder holder = {.id = entry->id, .user = entry->user};
	struct python_code *code = entry->code;
	const uint64_t before = python_code_bytes(code);

	dictionary->raw_count--;
	python_code_set_text(code, text);
	/* What they take less is given back at the next count_bytes(). */
	if (python_code_bytes(code) > before &&
	    reserve(dictionary, &holder, python_code_bytes(code) - before)) {
		free(code->row);
		code->row = NULL;
		code->row_count = 0;
	}
}

void dictionary_give_up_code(struct dictionary *dictionary, uint32_t index)
{
	struct python_code *code = dictionary->code[index]->code;

	dictionary->raw_count--;
	free(code->raw);
	code->raw = NULL;
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
	    dictionary_add_code(dictionary, record->id, code, &index))
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
	case PP_FRAME_SEGMENT:
		return (uint64_t)PP_FRAME_SEGMENT << 61 | (uint32_t)frame->where;
	case PP_FRAME_ANONYMOUS:
		/* 47 bits of address: it has no file, whose bits are free. */
		return (uint64_t)PP_FRAME_ANONYMOUS << 61 | (frame->where & ((1ULL << 61) - 1));
	default:
		return packed_native(frame->kind, frame->what, frame->where);
	}
	if (!index)
		dictionary->stats.unknown_code++;
	return packed_python(index, frame->what);
}

static void pack_all(struct dictionary *dictionary, const struct decoded_stack *decoded,
		     struct dict_stack *stack)
{
	const struct pp_stack_record *record = decoded->record;
	uint64_t unknown = dictionary->stats.unknown_code;

	for (size_t i = 0; i < record->python_stored; i++)
		stack->frame[i] = pack(dictionary, record, &decoded->python[i]);
	for (size_t i = 0; i < record->native_stored; i++)
		stack->frame[record->python_stored + i] =
			pack(dictionary, record, &decoded->native[i]);
	stack->lacks_code = dictionary->stats.unknown_code != unknown;
}

int dictionary_add_stack(struct dictionary *dictionary, const struct decoded_stack *decoded)
{
	const struct pp_stack_record *record = decoded->record;
	struct dict_stack *known = set_find(&dictionary->stacks, record->hash);
	size_t frames = (size_t)record->python_stored + record->native_stored;
	size_t bytes = sizeof(*known) + frames * sizeof(packed_frame);
	OWNED_MEM struct dict_stack *stack = NULL;
	struct share_holder holder;
	int err;

	if (known) {
		known->epoch = dictionary->epoch;
		if (known->lacks_code && known->python_stored == record->python_stored &&
		    known->native_stored == record->native_stored)
			pack_all(dictionary, decoded, known);
		return 0;
	}
	holder = holder_of(dictionary, record->id);
	err = reserve(dictionary, &holder, bytes);
	if (err) {
		note_refused(dictionary, record->hash);
		return err;
	}
	stack = malloc(bytes);
	if (!stack)
		return -ENOMEM;
	*stack = (struct dict_stack){
		.hash = record->hash,
		.id = record->id,
		.user = holder.user,
		.epoch = dictionary->epoch,
		.python_count = record->python_count,
		.native_count = record->native_count,
		.python_stored = record->python_stored,
		.native_stored = record->native_stored,
		.stop = record->stop,
		.py_stop = record->py_stop,
		.python = record->python,
	};
	pack_all(dictionary, decoded, stack);
	err = set_add(&dictionary->stacks, stack);
	if (err)
		return err;
	TAKE(stack);
	return 0;
}

/* A stack that was left out is worth another try just as well. */
static bool is_torn(const struct dictionary *dictionary, uint64_t hash)
{
	const struct dict_stack *stack = set_find(&dictionary->stacks, hash);

	return stack && (stack->stop == PP_STOP_TORN || stack->stop == PP_STOP_LEFT_OUT ||
			 stack->py_stop == PP_PY_STOP_TORN);
}

static int new_alias(struct dictionary *dictionary, uint64_t hash, struct alias **ret_alias)
{
	OWNED_MEM struct alias *alias = NULL;
	int err = reserve_common(dictionary, sizeof(*alias));

	if (err)
		return err;
	alias = calloc(1, sizeof(*alias));
	if (!alias)
		return -ENOMEM;
	alias->hash = hash;
	err = set_add(&dictionary->aliases, alias);
	if (err)
		return err;
	*ret_alias = TAKE(alias);
	return 0;
}

int dictionary_add_alias(struct dictionary *dictionary, uint64_t hash, uint64_t stack,
			 bool *ret_again)
{
	struct alias *alias = set_find(&dictionary->aliases, hash);
	const bool found_torn = is_torn(dictionary, stack);
	int err = alias ? 0 : new_alias(dictionary, hash, &alias);

	*ret_again = false;
	if (err)
		return err;
	alias->epoch = dictionary->epoch;
	if (!alias->stack || !found_torn || is_torn(dictionary, alias->stack))
		alias->stack = stack;
	if (is_torn(dictionary, alias->stack))
		*ret_again = ++alias->tries < DICTIONARY_ALIAS_TRIES;
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
	err = reserve_common(dictionary, bytes);
	if (err) {
		note_refused(dictionary, decoded->record->hash);
		return err;
	}
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
	TAKE(kernel);
	return 0;
}

const struct dict_stack *dictionary_find_stack(const struct dictionary *dictionary, uint64_t hash)
{
	return set_find(&dictionary->stacks, resolve_alias(dictionary, hash));
}

const struct dict_kernel *dictionary_find_kernel(const struct dictionary *dictionary, uint64_t hash)
{
	return set_find(&dictionary->kernels, hash);
}

const struct dict_stack *dictionary_use_stack(struct dictionary *dictionary, uint64_t hash)
{
	struct alias *alias = set_find(&dictionary->aliases, hash);
	struct dict_stack *stack = set_find(&dictionary->stacks, alias ? alias->stack : hash);

	if (alias)
		alias->epoch = dictionary->epoch;
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

static void each_file_frame(const struct dictionary *dictionary,
			    void (*found)(void *context, packed_frame frame), void *context)
{
	for (size_t i = 0; i <= dictionary->stacks.mask; i++) {
		const struct dict_stack *stack = dictionary->stacks.slot[i];
		const size_t end = stack ? (size_t)stack->python_stored + stack->native_stored : 0;

		for (size_t at = stack ? stack->python_stored : 0; at < end; at++) {
			const uint32_t kind = packed_kind(stack->frame[at]);

			if (kind == PP_FRAME_NATIVE || kind == PP_FRAME_EVAL)
				found(context, stack->frame[at]);
		}
	}
}

static void note_file(void *context, packed_frame frame)
{
	uint64_t *named = context;
	const uint32_t file = packed_file(frame);

	named[file / 64] |= 1ULL << file % 64;
}

void dictionary_note_files(const struct dictionary *dictionary, uint64_t *ret_named)
{
	each_file_frame(dictionary, note_file, ret_named);
}

/* Passes on the frames of some files. */
struct chosen_files {
	const uint64_t *files;
	void (*found)(void *context, packed_frame frame);
	void *context;
};

static void pass_chosen(void *context, packed_frame frame)
{
	const struct chosen_files *chosen = context;
	const uint32_t file = packed_file(frame);

	if (chosen->files[file / 64] >> file % 64 & 1)
		chosen->found(chosen->context, frame);
}

void dictionary_find_frames(const struct dictionary *dictionary, const uint64_t *files,
			    void (*found)(void *context, packed_frame frame), void *context)
{
	struct chosen_files chosen = {.files = files, .found = found, .context = context};

	each_file_frame(dictionary, pass_chosen, &chosen);
}

/* ---- epochs ---- */

static bool stack_is_recent(const struct dictionary *dictionary, const void *entry)
{
	return dictionary->epoch - ((const struct dict_stack *)entry)->epoch <= 1;
}

static bool alias_is_recent(const struct dictionary *dictionary, const void *entry)
{
	return dictionary->epoch - ((const struct alias *)entry)->epoch <= 1;
}

static bool kernel_is_recent(const struct dictionary *dictionary, const void *entry)
{
	return dictionary->epoch - ((const struct dict_kernel *)entry)->epoch <= 1;
}

static void count_bytes(struct dictionary *dictionary)
{
	struct shares *shares = &dictionary->shares;

	shares_reset(shares);
	for (size_t i = 0; i <= dictionary->stacks.mask; i++) {
		const struct dict_stack *stack = dictionary->stacks.slot[i];
		struct share_holder holder;

		if (!stack)
			continue;
		holder = (struct share_holder){.id = stack->id, .user = stack->user};
		shares_recount(shares, &holder,
			       sizeof(*stack) +
				       ((size_t)stack->python_stored + stack->native_stored) *
					       sizeof(packed_frame));
	}
	for (size_t i = 0; i <= dictionary->kernels.mask; i++) {
		const struct dict_kernel *kernel = dictionary->kernels.slot[i];

		if (kernel)
			shares->used_bytes += sizeof(*kernel) + kernel->count * sizeof(uint64_t);
	}
	for (uint32_t i = 1; i < dictionary->code_count; i++) {
		const struct code_entry *code = dictionary->code[i];
		struct share_holder holder;

		if (!code)
			continue;
		holder = (struct share_holder){.id = code->id, .user = code->user};
		shares_recount(shares, &holder, code_bytes(code->code));
	}
	shares->used_bytes += dictionary->aliases.count * sizeof(struct alias);
}

void dictionary_set_epoch(struct dictionary *dictionary, uint32_t epoch)
{
	dictionary->epoch = epoch;
	set_filter(&dictionary->stacks, stack_is_recent, dictionary);
	set_filter(&dictionary->kernels, kernel_is_recent, dictionary);
	set_filter(&dictionary->aliases, alias_is_recent, dictionary);
	count_bytes(dictionary);
	/* The kernel side sends refused stacks once more. */
	free(dictionary->refused);
	dictionary->refused = NULL;
}

/* ---- no room ---- */

static bool stack_may_stay(const struct dictionary *dictionary, const void *entry)
{
	const struct dict_stack *stack = entry;

	return stack->epoch == dictionary->epoch &&
	       !shares_is_greedy(&dictionary->shares, stack->id);
}

static bool kernel_may_stay(const struct dictionary *dictionary, const void *entry)
{
	return ((const struct dict_kernel *)entry)->epoch == dictionary->epoch;
}

static bool alias_may_stay(const struct dictionary *dictionary, const void *entry)
{
	return set_find(&dictionary->stacks, ((const struct alias *)entry)->stack) != NULL;
}

static bool code_is_used(const struct dictionary *dictionary, const void *entry)
{
	(void)dictionary;
	return ((const struct code_entry *)entry)->is_used;
}

static void mark_codes(struct dictionary *dictionary)
{
	for (uint32_t i = 1; i < dictionary->code_count; i++)
		if (dictionary->code[i])
			dictionary->code[i]->is_used = false;
	for (size_t i = 0; i <= dictionary->stacks.mask; i++) {
		const struct dict_stack *stack = dictionary->stacks.slot[i];

		for (size_t k = 0; stack && k < stack->python_stored; k++) {
			uint32_t code = packed_code(stack->frame[k]);

			if (packed_kind(stack->frame[k]) == PP_FRAME_PYTHON && code &&
			    dictionary->code[code])
				dictionary->code[code]->is_used = true;
		}
	}
}

static void drop_unused_codes(struct dictionary *dictionary)
{
	void **fresh = calloc(dictionary->codes.mask + 1, sizeof(*fresh));

	if (!fresh)
		return;
	mark_codes(dictionary);
	for (uint32_t i = 1; i < dictionary->code_count; i++) {
		struct code_entry *entry = dictionary->code[i];

		if (!entry || entry->is_used)
			continue;
		dictionary->raw_count -= entry->code->raw != NULL;
		python_code_free(entry->code);
		entry->code = NULL; /* the entry itself is freed with the set's */
		dictionary->code[i] = NULL;
		dictionary->free_code[dictionary->free_code_count++] = i;
	}
	set_filter_into(&dictionary->codes, fresh, code_is_used, dictionary);
}

void dictionary_make_room(struct dictionary *dictionary)
{
	set_filter(&dictionary->stacks, stack_may_stay, dictionary);
	set_filter(&dictionary->aliases, alias_may_stay, dictionary);
	set_filter(&dictionary->kernels, kernel_may_stay, dictionary);
	drop_unused_codes(dictionary);
	count_bytes(dictionary);
}

void dictionary_get_stats(const struct dictionary *dictionary, struct dictionary_stats *ret_stats)
{
	*ret_stats = dictionary->stats;
	ret_stats->bytes = dictionary->shares.used_bytes;
	ret_stats->stacks = dictionary->stacks.count;
	ret_stats->kernel_stacks = dictionary->kernels.count;
	ret_stats->codes = dictionary->codes.count;
}
