/* SPDX-License-Identifier: BSD-2-Clause */
#include "drain/dictionary.h"

#include <errno.h>
#include <string.h>

#include "base/user_quota.h"
#include "drain/hash_set.h"
#include "drain/raw_codes.h"

#define REFUSED_BITS (1U << 20)
/* Who has more than this part of the budget makes room first. */
#define GREEDY_PART 4U

struct dictionary {
	struct hash_set stacks, kernels, codes, aliases; /* codes: struct code_entry */
	struct code_entry **code;			 /* by index; [0] is NULL */
	uint32_t code_count, code_capacity;
	uint32_t *free_code; /* indices below code_count that are free; as large as code */
	uint32_t free_code_count;
	struct raw_codes raw; /* code objects that are not decoded */
	uint32_t epoch;
	struct user_quota processes, users; /* bytes; both hold all of them */
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
	struct raw_code_link link; /* its index, and the user whose share it is part of */
	bool is_used;		   /* by some stack: dictionary_make_room() */
	struct python_code *code;
};

struct alias {
	uint64_t hash;
	uint64_t stack; /* its hash */
	uint32_t epoch;
	uint32_t tries; /* unwinds that were torn */
};

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
	dictionary_set_max_bytes(dictionary, max_bytes);
	hash_set_init(&dictionary->stacks);
	hash_set_init(&dictionary->kernels);
	hash_set_init(&dictionary->codes);
	hash_set_init(&dictionary->aliases);
	dictionary->code_count = 1;
	*ret_dictionary = TAKE(dictionary);
	return 0;
}

void dictionary_set_max_bytes(struct dictionary *dictionary, size_t max_bytes)
{
	dictionary->processes.total = dictionary->users.total = max_bytes;
}

void dictionary_free(struct dictionary *dictionary)
{
	if (!dictionary)
		return;
	for (uint32_t i = 1; i < dictionary->code_count && dictionary->code; i++)
		if (dictionary->code[i])
			python_code_free(dictionary->code[i]->code);
	hash_set_release(&dictionary->codes);
	hash_set_release(&dictionary->stacks);
	hash_set_release(&dictionary->kernels);
	hash_set_release(&dictionary->aliases);
	raw_codes_release(&dictionary->raw);
	user_quota_release(&dictionary->processes);
	user_quota_release(&dictionary->users);
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

/* Who holds something; NULL: nobody, so that the budget as a whole bounds it. */
struct holder {
	struct pp_process_id id;
	uint32_t user; /* who answers for the process; 0: root */
};

static struct holder holder_of(const struct dictionary *dictionary, struct pp_process_id id)
{
	struct holder holder = {.id = id};

	if (dictionary->user_of)
		holder.user = dictionary->user_of(dictionary->user_context, id);
	return holder;
}

/* Returns the number of a process in its quota, which is not 0. */
static uint64_t number_of(struct pp_process_id id)
{
	return ((uint64_t)id.generation << 32 | id.tgid) + 1;
}

/* Takes room from the budget. */
static int reserve(struct dictionary *dictionary, const struct holder *holder, size_t bytes)
{
	const uint64_t process = holder ? number_of(holder->id) : 0;
	int err = user_quota_take(&dictionary->processes, process, bytes);

	if (!err) {
		err = user_quota_take(&dictionary->users, holder ? holder->user : 0, bytes);
		if (!err)
			return 0;
		user_quota_give(&dictionary->processes, process, bytes);
		dictionary->stats.users_refused += err == -EDQUOT;
	}
	dictionary->stats.refused++;
	return -ENOSPC;
}

/* Takes room for a new entry of a set, and adds it: all zeros but for its hash. */
static int add_entry(struct dictionary *dictionary, struct hash_set *set,
		     const struct holder *holder, uint64_t hash, size_t bytes, void **ret_entry)
{
	void *entry;

	if (reserve(dictionary, holder, bytes))
		return -ENOSPC;
	entry = hash_set_get(set, hash, bytes);
	if (!entry)
		return -ENOMEM;
	*ret_entry = entry;
	return 0;
}

/* Counts what stays, whatever the shares are.  Without memory it is left out until the next epoch
 * begins. */
static void recount(struct dictionary *dictionary, const struct holder *holder, size_t bytes)
{
	const uint64_t process = holder ? number_of(holder->id) : 0;

	if (!user_quota_note(&dictionary->processes, process, bytes))
		(void)user_quota_note(&dictionary->users, holder ? holder->user : 0, bytes);
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
	const struct alias *alias = hash_set_find(&dictionary->aliases, hash);

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
	struct code_entry **grown = realloc(dictionary->code, capacity * sizeof(*dictionary->code));
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
	if (!err && entry->code->raw)
		err = raw_codes_add(&dictionary->raw, &entry->link);
	if (err)
		return err;
	err = hash_set_add(&dictionary->codes, entry);
	if (err) {
		raw_codes_remove(&dictionary->raw, &entry->link);
		return err;
	}
	entry->link.index = dictionary->free_code_count
				    ? dictionary->free_code[--dictionary->free_code_count]
				    : dictionary->code_count++;
	dictionary->code[entry->link.index] = entry;
	return 0;
}

int dictionary_add_code(struct dictionary *dictionary, struct pp_process_id id,
			struct python_code *given, uint32_t *ret_index)
{
	OWNED(python_code) struct python_code *code = given;
	struct code_entry *known = hash_set_find(&dictionary->codes, code->id);
	OWNED_MEM struct code_entry *entry = NULL;
	struct holder holder;
	int err;

	if (known) {
		*ret_index = known->link.index;
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
		.hash = code->id, .id = id, .link.user = holder.user, .code = code};
	err = code_append(dictionary, entry);
	if (err)
		return err;
	*ret_index = entry->link.index;
	TAKE(code);
	TAKE(entry);
	return 0;
}

bool dictionary_knows_code(const struct dictionary *dictionary, uint64_t id)
{
	return hash_set_find(&dictionary->codes, id) != NULL;
}

const struct python_code *dictionary_code(const struct dictionary *dictionary, uint32_t index)
{
	return index && index < dictionary->code_count && dictionary->code[index]
		       ? dictionary->code[index]->code
		       : NULL;
}

struct raw_codes *dictionary_raw_codes(struct dictionary *dictionary)
{
	return &dictionary->raw;
}

bool dictionary_has_raw(const struct dictionary *dictionary, const struct dict_stack *stack)
{
	for (size_t i = 0; i < stack->python_stored; i++) {
		const struct python_code *code = NULL;

		if (packed_kind(stack->frame[i]) == PP_FRAME_PYTHON)
			code = dictionary_code(dictionary, packed_code(stack->frame[i]));
		if (code && code->raw)
			return true;
	}
	return false;
}

/* Takes the room that a code object needs beyond *held bytes. */
static int hold(struct dictionary *dictionary, const struct code_entry *entry, uint64_t *held,
		uint64_t bytes)
{
	const struct holder holder = {.id = entry->id, .user = entry->link.user};
	int err = 0;

	if (bytes > *held) {
		err = reserve(dictionary, &holder, bytes - *held);
		*held = err ? *held : bytes;
	}
	return err;
}

static void drop_rows(struct python_code *code)
{
	free(code->row);
	code->row = NULL;
	code->row_count = 0;
}

static void drop_names(struct python_code *code)
{
	free(code->name);
	free(code->filename);
	code->name = code->filename = NULL;
}

int dictionary_decode_code(struct dictionary *dictionary, uint32_t index,
			   struct python_code_text *text)
{
	struct code_entry *entry = dictionary->code[index];
	struct python_code *code = entry->code;
	const uint64_t rows = text->row_count * sizeof(*text->row);
	/* What it takes less is given back at the next count_bytes(). */
	uint64_t held = python_code_bytes(code);

	raw_codes_remove(&dictionary->raw, &entry->link);
	python_code_set_text(code, text);
	if (hold(dictionary, entry, &held, python_code_bytes(code) - rows)) {
		drop_rows(code);
		drop_names(code);
		return -ENOSPC;
	}
	if (hold(dictionary, entry, &held, python_code_bytes(code)))
		drop_rows(code);
	return 0;
}

void dictionary_give_up_code(struct dictionary *dictionary, uint32_t index)
{
	struct code_entry *entry = dictionary->code[index];

	raw_codes_remove(&dictionary->raw, &entry->link);
	free(entry->code->raw);
	entry->code->raw = NULL;
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
		code = hash_set_find(&dictionary->codes, frame->where);
		index = code ? code->link.index : 0;
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
	struct dict_stack *known = hash_set_find(&dictionary->stacks, record->hash), *stack;
	size_t frames = (size_t)record->python_stored + record->native_stored;
	struct holder holder;
	void *added;
	int err;

	if (known) {
		known->epoch = dictionary->epoch;
		if (known->lacks_code && known->python_stored == record->python_stored &&
		    known->native_stored == record->native_stored)
			pack_all(dictionary, decoded, known);
		return 0;
	}
	holder = holder_of(dictionary, record->id);
	err = add_entry(dictionary, &dictionary->stacks, &holder, record->hash,
			sizeof(*stack) + frames * sizeof(packed_frame), &added);
	if (err == -ENOSPC)
		note_refused(dictionary, record->hash);
	if (err)
		return err;
	stack = added;
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
	return 0;
}

/* A stack that was left out is worth another try just as well. */
static bool is_torn(const struct dictionary *dictionary, uint64_t hash)
{
	const struct dict_stack *stack = hash_set_find(&dictionary->stacks, hash);

	return stack && (stack->stop == PP_STOP_TORN || stack->stop == PP_STOP_LEFT_OUT ||
			 stack->py_stop == PP_PY_STOP_TORN);
}

int dictionary_add_alias(struct dictionary *dictionary, uint64_t hash, uint64_t stack,
			 bool *ret_again)
{
	void *entry = hash_set_find(&dictionary->aliases, hash);
	const bool found_torn = is_torn(dictionary, stack);
	struct alias *alias;
	int err = entry ? 0
			: add_entry(dictionary, &dictionary->aliases, NULL, hash, sizeof(*alias),
				    &entry);

	*ret_again = false;
	if (err)
		return err;
	alias = entry;
	alias->epoch = dictionary->epoch;
	if (!alias->stack || !found_torn || is_torn(dictionary, alias->stack))
		alias->stack = stack;
	if (is_torn(dictionary, alias->stack))
		*ret_again = ++alias->tries < DICTIONARY_ALIAS_TRIES;
	return 0;
}

int dictionary_add_kernel(struct dictionary *dictionary, const struct decoded_kernel *decoded)
{
	const uint64_t hash = decoded->record->hash;
	const size_t bytes = decoded->count * sizeof(uint64_t);
	void *entry = hash_set_find(&dictionary->kernels, hash);
	const bool is_known = entry;
	struct dict_kernel *kernel;
	int err = entry ? 0
			: add_entry(dictionary, &dictionary->kernels, NULL, hash,
				    sizeof(*kernel) + bytes, &entry);

	if (err == -ENOSPC)
		note_refused(dictionary, hash);
	if (err)
		return err;
	kernel = entry;
	kernel->epoch = dictionary->epoch;
	if (is_known)
		return 0;
	kernel->count = (uint32_t)decoded->count;
	memcpy(kernel->address, decoded->record->address, bytes);
	return 0;
}

const struct dict_stack *dictionary_find_stack(const struct dictionary *dictionary, uint64_t hash)
{
	return hash_set_find(&dictionary->stacks, resolve_alias(dictionary, hash));
}

const struct dict_kernel *dictionary_find_kernel(const struct dictionary *dictionary, uint64_t hash)
{
	return hash_set_find(&dictionary->kernels, hash);
}

const struct dict_stack *dictionary_use_stack(struct dictionary *dictionary, uint64_t hash)
{
	struct alias *alias = hash_set_find(&dictionary->aliases, hash);
	struct dict_stack *stack = hash_set_find(&dictionary->stacks, alias ? alias->stack : hash);

	if (alias)
		alias->epoch = dictionary->epoch;
	if (stack)
		stack->epoch = dictionary->epoch;
	return stack;
}

const struct dict_kernel *dictionary_use_kernel(struct dictionary *dictionary, uint64_t hash)
{
	struct dict_kernel *kernel = hash_set_find(&dictionary->kernels, hash);

	if (kernel)
		kernel->epoch = dictionary->epoch;
	return kernel;
}

static void each_file_frame(const struct dictionary *dictionary,
			    void (*found)(void *context, packed_frame frame), void *context)
{
	for (size_t i = 0; i < dictionary->stacks.count; i++) {
		const struct dict_stack *stack = dictionary->stacks.entry[i];
		const size_t end = (size_t)stack->python_stored + stack->native_stored;

		for (size_t at = stack->python_stored; at < end; at++) {
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

static bool stack_is_recent(const void *context, const void *entry)
{
	const struct dictionary *dictionary = context;

	return dictionary->epoch - ((const struct dict_stack *)entry)->epoch <= 1;
}

static bool alias_is_recent(const void *context, const void *entry)
{
	const struct dictionary *dictionary = context;

	return dictionary->epoch - ((const struct alias *)entry)->epoch <= 1;
}

static bool kernel_is_recent(const void *context, const void *entry)
{
	const struct dictionary *dictionary = context;

	return dictionary->epoch - ((const struct dict_kernel *)entry)->epoch <= 1;
}

static void count_bytes(struct dictionary *dictionary)
{
	const uint64_t total = dictionary->users.total;
	size_t common = dictionary->aliases.count * sizeof(struct alias);

	user_quota_release(&dictionary->processes);
	user_quota_release(&dictionary->users);
	dictionary_set_max_bytes(dictionary, total);
	for (size_t i = 0; i < dictionary->stacks.count; i++) {
		const struct dict_stack *stack = dictionary->stacks.entry[i];
		const struct holder holder = {.id = stack->id, .user = stack->user};

		recount(dictionary, &holder,
			sizeof(*stack) + ((size_t)stack->python_stored + stack->native_stored) *
						 sizeof(packed_frame));
	}
	for (size_t i = 0; i < dictionary->kernels.count; i++) {
		const struct dict_kernel *kernel = dictionary->kernels.entry[i];

		common += sizeof(*kernel) + kernel->count * sizeof(uint64_t);
	}
	for (uint32_t i = 1; i < dictionary->code_count; i++) {
		const struct code_entry *code = dictionary->code[i];
		struct holder holder;

		if (!code)
			continue;
		holder = (struct holder){.id = code->id, .user = code->link.user};
		recount(dictionary, &holder, code_bytes(code->code));
	}
	recount(dictionary, NULL, common);
}

void dictionary_set_epoch(struct dictionary *dictionary, uint32_t epoch)
{
	dictionary->epoch = epoch;
	hash_set_filter(&dictionary->stacks, stack_is_recent, dictionary);
	hash_set_filter(&dictionary->kernels, kernel_is_recent, dictionary);
	hash_set_filter(&dictionary->aliases, alias_is_recent, dictionary);
	count_bytes(dictionary);
	/* The kernel side sends refused stacks once more. */
	free(dictionary->refused);
	dictionary->refused = NULL;
}

/* ---- no room ---- */

static bool stack_may_stay(const void *context, const void *entry)
{
	const struct dictionary *dictionary = context;
	const struct dict_stack *stack = entry;

	return stack->epoch == dictionary->epoch &&
	       user_quota_held(&dictionary->processes, number_of(stack->id)) <=
		       dictionary->processes.total / GREEDY_PART;
}

static bool kernel_may_stay(const void *context, const void *entry)
{
	const struct dictionary *dictionary = context;

	return ((const struct dict_kernel *)entry)->epoch == dictionary->epoch;
}

static bool alias_may_stay(const void *context, const void *entry)
{
	const struct dictionary *dictionary = context;

	return hash_set_find(&dictionary->stacks, ((const struct alias *)entry)->stack) != NULL;
}

static bool code_is_used(const void *context, const void *entry)
{
	(void)context;
	return ((const struct code_entry *)entry)->is_used;
}

static void mark_codes(struct dictionary *dictionary)
{
	for (uint32_t i = 1; i < dictionary->code_count; i++)
		if (dictionary->code[i])
			dictionary->code[i]->is_used = false;
	for (size_t i = 0; i < dictionary->stacks.count; i++) {
		const struct dict_stack *stack = dictionary->stacks.entry[i];

		for (size_t k = 0; k < stack->python_stored; k++) {
			uint32_t code = packed_code(stack->frame[k]);

			if (packed_kind(stack->frame[k]) == PP_FRAME_PYTHON && code &&
			    dictionary->code[code])
				dictionary->code[code]->is_used = true;
		}
	}
}

static void drop_unused_codes(struct dictionary *dictionary)
{
	mark_codes(dictionary);
	for (uint32_t i = 1; i < dictionary->code_count; i++) {
		struct code_entry *entry = dictionary->code[i];

		if (!entry || entry->is_used)
			continue;
		raw_codes_remove(&dictionary->raw, &entry->link);
		python_code_free(entry->code);
		entry->code = NULL; /* the entry itself is freed with the set's */
		dictionary->code[i] = NULL;
		dictionary->free_code[dictionary->free_code_count++] = i;
	}
	hash_set_filter(&dictionary->codes, code_is_used, dictionary);
}

void dictionary_make_room(struct dictionary *dictionary)
{
	hash_set_filter(&dictionary->stacks, stack_may_stay, dictionary);
	hash_set_filter(&dictionary->aliases, alias_may_stay, dictionary);
	hash_set_filter(&dictionary->kernels, kernel_may_stay, dictionary);
	drop_unused_codes(dictionary);
	count_bytes(dictionary);
}

void dictionary_get_stats(const struct dictionary *dictionary, struct dictionary_stats *ret_stats)
{
	*ret_stats = dictionary->stats;
	ret_stats->bytes = dictionary->users.used;
	ret_stats->stacks = dictionary->stacks.count;
	ret_stats->kernel_stacks = dictionary->kernels.count;
	ret_stats->codes = dictionary->codes.count;
}
