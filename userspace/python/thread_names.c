/* SPDX-License-Identifier: BSD-2-Clause */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/array.h"
#include "python/python_objects.h"
#include "python/python_process.h"

/* Finds where the interpreters of a process keep `threading._active`, and remembers the words of
 * memory that led there.  CPython (2.7 to 3.15) binds the name once and clears the dictionary in
 * place after a fork.  But modules may be reloaded, and the memory may be another program's: so a
 * remembered location is used only while all of these words are unchanged, when a new search would
 * end there too. */

#define THREAD_PLACE_WORDS 8U

/* What is remembered of one interpreter. */
struct thread_place {
	uint64_t interpreter; /* address; 0: not searched yet */
	uint64_t next;	      /* the next interpreter; 0: this is the last, or not known */
	uint64_t active;      /* the dictionary; 0: `threading` is not imported, or not known */
	uint64_t dict_type, str_type; /* of sys.modules and of its key "threading"; 0: not known */
	size_t word_count;	      /* 0: not known */
	struct python_word word[THREAD_PLACE_WORDS];
	struct python_key name, native_id; /* of attributes of its threads */
};

static void add_word(struct thread_place *place, struct python_word word)
{
	assert(place->word_count < THREAD_PLACE_WORDS);
	place->word[place->word_count++] = word;
}

/* Reads a word that the location depends on. */
static int follow(const struct python_memory *memory, struct thread_place *place, uint64_t address,
		  uint64_t *ret_value)
{
	struct python_word word = {.address = address};
	int err = python_read_u64(memory, address, &word.value);

	if (err)
		return err;
	add_word(place, word);
	*ret_value = word.value;
	return 0;
}

/* Returns whether the words are unchanged.  Costs one read. */
static bool thread_place_holds(const struct python_memory *memory, const struct thread_place *place)
{
	struct process_piece piece[THREAD_PLACE_WORDS];
	uint64_t value[THREAD_PLACE_WORDS];

	if (!place->word_count)
		return false;
	for (size_t at = 0; at < place->word_count; at++)
		piece[at] = (struct process_piece){.address = place->word[at].address,
						   .buffer = &value[at],
						   .size = sizeof(value[at])};
	if (python_read_pieces(memory, piece, place->word_count))
		return false;
	for (size_t at = 0; at < place->word_count; at++)
		if (value[at] != place->word[at].value)
			return false;
	return true;
}

/* Reads a dictionary that must have the type of sys.modules.  Returns as python_dict_read(). */
static int thread_place_read_dict(const struct python_memory *memory,
				  const struct thread_place *place, uint64_t address,
				  struct python_dict_head *ret_head, struct python_dict *ret_dict)
{
	int err = python_dict_head_read(memory, address, ret_head);

	if (err)
		return err;
	return ret_head->type == place->dict_type
		       ? python_dict_read_table(memory, ret_head, ret_dict)
		       : -EBADMSG;
}

/* Finds the module's own dictionary, by its entry in sys.modules. */
static int find_module(const struct python_memory *memory, uint64_t modules,
		       struct thread_place *place, uint64_t *ret_module_dict)
{
	OWNED_PYTHON_DICT struct python_dict dict = {0};
	struct python_key threading = {.name = "threading"};
	const struct python_dict_entry *found;
	struct python_dict_head head;
	int err = python_dict_head_read(memory, modules, &head);

	if (!err)
		err = python_dict_read_table(memory, &head, &dict);
	if (err)
		return err;
	place->dict_type = head.type;
	found = python_dict_find(memory, &dict, &threading);
	if (!found) {
		place->word_count +=
			python_dict_stamp(memory, &head, &dict, &place->word[place->word_count]);
		return -EAGAIN;
	}
	err = python_read_u64(memory, found->key + memory->layout->ob_type, &place->str_type);
	if (err)
		return err;
	add_word(place, python_dict_table_word(memory, &head));
	add_word(place, (struct python_word){found->value_address, found->value});
	/* PyModuleObject.md_dict is the first field in every version. */
	return follow(memory, place, found->value + python_header_bytes(memory->layout),
		      ret_module_dict);
}

/* Finds `_active` in the module's dictionary.  -ENODATA: `threading` is being imported. */
static int find_active(const struct python_memory *memory, uint64_t module_dict,
		       struct thread_place *place)
{
	OWNED_PYTHON_DICT struct python_dict dict = {0};
	struct python_key active = {.name = "_active"};
	const struct python_dict_entry *found;
	struct python_dict_head head;
	uint64_t type;
	int err = thread_place_read_dict(memory, place, module_dict, &head, &dict);

	if (err)
		return err;
	found = python_dict_find(memory, &dict, &active);
	if (!found)
		return -ENODATA;
	add_word(place, python_dict_table_word(memory, &head));
	add_word(place, (struct python_word){found->value_address, found->value});
	err = follow(memory, place, found->value + memory->layout->ob_type, &type);
	if (err)
		return err;
	if (type != place->dict_type)
		return -EBADMSG;
	place->active = found->value;
	return 0;
}

/* Searches for `_active`, with about one read per module and one per global of `threading`, most of
 * them in batches.  Fills place even on failure: then thread_place_holds() is false, but `next` may
 * be known.
 * Returns 0; -EAGAIN: `threading` is not imported (and thread_place_holds() may be true); -EFAULT;
 * -EBADMSG; -ENOMEM; -ETIME; -errno. */
static int thread_place_find(const struct python_memory *memory, const struct python_info *info,
			     uint64_t interpreter, struct thread_place *place)
{
	uint64_t modules, module_dict;
	int err;

	_Static_assert(2 + PYTHON_DICT_STAMP_WORDS <= THREAD_PLACE_WORDS, "next, modules, stamp");
	*place = (struct thread_place){
		.interpreter = interpreter,
		.name.name = info->bpf.major == 2 ? "_Thread__name" : "_name",
		.native_id.name = "_native_id",
	};
	err = follow(memory, place, interpreter + info->interp_next, &place->next);
	if (!err)
		err = follow(memory, place, interpreter + info->interp_modules, &modules);
	if (!err && !modules)
		err = -ENODATA;
	if (!err)
		err = find_module(memory, modules, place, &module_dict);
	if (!err)
		err = find_active(memory, module_dict, place);
	if (err && err != -EAGAIN)
		place->word_count = 0;
	return err == -ENODATA ? -EAGAIN : err;
}

#define MAX_INTERPRETERS 64U
#define MAX_THREADS 4096U
#define MAX_NAME_BYTES 256U /* as in memory, before the name is cut to 63 bytes of UTF-8 */
/* Ordinary processes need 1 read a module and about 11 a thread.  A read takes 10 to 25 us, by the
 * child that reads memory, and forged dictionaries and lists have no end. */
#define READS_OF_PROCESS 8192U
#define READS_OF_THREAD 32U
#define READS_MAX 200000U
/* hash(int) is the int itself below 2^61 - 1 (2.7: always), so the table's hashes are the
 * idents. */
#define MAX_HASHED_INT ((1ULL << 61) - 1)

/* Where a look begins, and goes on after its slice was over. */
struct look_part {
	size_t active, entry; /* indexes of the first dictionary and its first entry */
	size_t given;	      /* names, in earlier parts */
	uint32_t reads_left;  /* for this part and those after it */
	uint64_t fingerprint; /* of all entries; 0: the parts before are not whole */
};

struct python_names_known {
	const struct python_info *info; /* of the last look; only compared */
	struct thread_place *place;	/* owned; in the order of the interpreters */
	size_t place_count;
	uint64_t fingerprint; /* of all entries, when all their names were read; 0: not known */
	bool is_cut;	      /* the last look was, and the next one begins at: */
	struct look_part next;
};

/* One interpreter's `threading._active`. */
struct active_dict {
	size_t place; /* index */
	struct python_dict_head head;
	struct python_dict dict;
};

/* One look at a process. */
struct thread_names {
	struct python_memory memory;
	const struct python_info *info;
	struct python_names_known *known; /* what earlier looks and this one found */
	bool has_native_id;
	struct active_dict active[MAX_INTERPRETERS];
	size_t active_count, active_entries;
	bool is_partial; /* the name of some thread could not be read */
	const struct slice *slice;
	struct look_part part;
	bool is_cut;			  /* the slice was over: known->next has the rest */
	struct python_thread_name *entry; /* owned */
	size_t count, capacity;
};

/* Finds the head of the list: in _PyRuntime, or (2.7, 3.6) in a static variable, whose symbol strip
 * removes.  Without that, the thread that runs at this moment leads to its interpreter. */
static int find_first_interpreter(const struct python_info *info,
				  const struct python_memory *memory, uint64_t bias,
				  uint64_t *ret_interpreter)
{
	uint64_t current, interpreter;
	int err;

	if (info->symbols.runtime) {
		err = python_read_u64(
			memory, bias + info->symbols.runtime + info->runtime_interpreters_head,
			&interpreter);
	} else if (info->symbols.interp_head) {
		err = python_read_u64(memory, bias + info->symbols.interp_head, &interpreter);
	} else if (info->symbols.thread_state_current) {
		err = python_read_u64(memory, bias + info->symbols.thread_state_current, &current);
		if (!err && !current)
			return -EAGAIN;
		if (!err)
			err = python_read_u64(memory, current + info->bpf.ts_interp, &interpreter);
	} else {
		return -ENOTSUP;
	}
	if (err)
		return err;
	if (!interpreter)
		return -EAGAIN;
	*ret_interpreter = interpreter;
	return 0;
}

static int append(struct thread_names *names, const struct python_thread_name *entry)
{
	if (ARRAY_RESERVE(names->entry, names->count, names->capacity))
		return -ENOMEM;
	names->entry[names->count++] = *entry;
	return 0;
}

/* Only str objects are names: anything else is an unfinished Thread, or memory that was reused. */
static int read_name(const struct thread_names *names, uint64_t str_type, uint64_t address,
		     char ret_name[sizeof(((struct python_thread_name *)0)->name)])
{
	OWNED_MEM char *text = NULL;
	uint64_t type;
	size_t size;
	int err = python_read_u64(&names->memory, address + names->memory.layout->ob_type, &type);

	if (err)
		return err;
	if (type != str_type)
		return -ENODATA;
	err = python_string_read(&names->memory, address, MAX_NAME_BYTES, &text);
	if (err)
		return err;
	size = python_text_cut(text, sizeof(((struct python_thread_name *)0)->name) - 1);
	memcpy(ret_name, text, size);
	ret_name[size] = '\0';
	return 0;
}

static int add_thread(struct thread_names *names, struct thread_place *known, uint64_t ident,
		      uint64_t object)
{
	OWNED_PYTHON_DICT struct python_dict attributes = {0};
	struct python_thread_name thread = {.thread_id = ident};
	const struct python_dict_entry *found;
	uint64_t native_id;
	int err = python_attributes_read(&names->memory, object, &attributes);

	if (err)
		return err;
	found = python_dict_find(&names->memory, &attributes, &known->name);
	if (!found)
		return -ENODATA;
	err = read_name(names, known->str_type, found->value, thread.name);
	if (err)
		return err;
	found = names->has_native_id
			? python_dict_find(&names->memory, &attributes, &known->native_id)
			: NULL;
	if (found && !python_int_read(&names->memory, found->value, &native_id) &&
	    native_id <= INT32_MAX)
		thread.native_id = (uint32_t)native_id;
	return append(names, &thread);
}

static bool is_ident(uint64_t hash)
{
	return hash && hash < MAX_HASHED_INT;
}

static void cut(struct thread_names *names, size_t active, size_t entry)
{
	names->is_cut = true;
	names->known->next = (struct look_part){
		.active = active, .entry = entry, .fingerprint = names->part.fingerprint};
}

/* Adds the threads of one dictionary, until the slice is over.  A thread whose object cannot be
 * read now is left to the next look. */
static int add_active(struct thread_names *names, size_t index)
{
	const struct active_dict *active = &names->active[index];
	struct thread_place *known = &names->known->place[active->place];
	const size_t most = MAX_THREADS - names->part.given;
	size_t at = index == names->part.active ? names->part.entry : 0;

	for (; at < active->dict.count && names->count < most; at++) {
		const struct python_dict_entry *entry = &active->dict.entry[at];
		int err = is_ident(entry->hash)
				  ? add_thread(names, known, entry->hash, entry->value)
				  : 0;

		if (err == -ENOMEM || err == -ESRCH)
			return err;
		if (err)
			names->is_partial = true;
		if (err == -ETIME)
			break;
		if (slice_is_over(names->slice)) {
			cut(names, index, at + 1);
			break;
		}
	}
	return 0;
}

static uint64_t find_thread(const struct python_dict *active, uint64_t ident)
{
	for (size_t at = 0; at < active->count; at++) {
		if (active->entry[at].hash == ident)
			return active->entry[at].value;
	}
	return 0;
}

/* Keeps threads that are still listed with the same object.  When a thread has ended meanwhile,
 * another's memory may have been read under its name. */
static int keep_active(struct thread_names *names, size_t first, const struct active_dict *active)
{
	OWNED_PYTHON_DICT struct python_dict now = {0};
	const struct thread_place *place = &names->known->place[active->place];
	struct python_dict_head head;
	size_t kept = first;
	int err = thread_place_read_dict(&names->memory, place, place->active, &head, &now);

	if (err) {
		names->is_partial = true;
		return err == -ETIME ? 0 : err;
	}
	for (size_t at = first; at < names->count; at++) {
		uint64_t ident = names->entry[at].thread_id;
		uint64_t object = find_thread(&now, ident);

		if (object && object == find_thread(&active->dict, ident))
			names->entry[kept++] = names->entry[at];
		else
			names->is_partial = true;
	}
	names->count = kept;
	return 0;
}

static int read_names(struct thread_names *names, size_t index)
{
	size_t first = names->count;
	int err = add_active(names, index);

	if (!err)
		err = keep_active(names, first, &names->active[index]);
	if (err)
		names->count = first;
	return err;
}

/* Succeeds when one interpreter does.  Returns as add_interpreters(). */
static int read_all_names(struct thread_names *names)
{
	int result = -EAGAIN;

	for (size_t at = names->part.active; at < names->active_count && !names->is_cut; at++) {
		int err = read_names(names, at);

		if (err == -ENOMEM || err == -ESRCH)
			return err;
		if (result)
			result = err;
	}
	return result;
}

/* ---- locations ---- */

void python_names_hint_release(struct python_names_hint *hint)
{
	if (hint->known)
		free(hint->known->place);
	free(hint->known);
	hint->known = NULL;
}

/* Moves the interpreter's entry to this index, after those of the interpreters before it: new
 * interpreters are at the start of the list. */
static int get_place(struct python_names_known *known, size_t index, uint64_t interpreter,
		     struct thread_place **ret_place)
{
	struct thread_place here, *grown;
	size_t at = index;

	while (at < known->place_count && known->place[at].interpreter != interpreter)
		at++;
	if (at == known->place_count) {
		grown = realloc(known->place, (at + 1) * sizeof(*known->place));
		if (!grown)
			return -ENOMEM;
		grown[at] = (struct thread_place){0};
		known->place = grown;
		known->place_count++;
	}
	here = known->place[index];
	known->place[index] = known->place[at];
	known->place[at] = here;
	*ret_place = &known->place[index];
	return 0;
}

static int find_place(const struct thread_names *names, uint64_t interpreter,
		      struct thread_place *known)
{
	if (known->interpreter == interpreter && thread_place_holds(&names->memory, known))
		return known->active ? 0 : -EAGAIN;
	return thread_place_find(&names->memory, names->info, interpreter, known);
}

/* Reads one interpreter's dictionary.  All dictionaries are held until the last is read, with as
 * many entries in all as a single one may have. */
static int add_interpreter(struct thread_names *names, uint64_t interpreter, size_t index,
			   struct thread_place *known)
{
	struct active_dict *active = &names->active[names->active_count];
	int err = find_place(names, interpreter, known);

	if (!err)
		err = thread_place_read_dict(&names->memory, known, known->active, &active->head,
					     &active->dict);
	if (err)
		return err;
	if (names->active_entries + active->dict.count > PYTHON_MAX_DICT_ENTRIES) {
		python_dict_release(&active->dict);
		return -E2BIG;
	}
	active->place = index;
	names->active_entries += active->dict.count;
	names->active_count++;
	return 0;
}

/* Adds the dictionaries of all interpreters: sub-interpreters have a `threading` of their own.
 * Returns 0 when one of them has it. */
static int add_interpreters(struct thread_names *names, uint64_t interpreter)
{
	int result = -EAGAIN;
	size_t index = 0;

	for (; interpreter && index < MAX_INTERPRETERS; index++) {
		struct thread_place *known;
		int err = get_place(names->known, index, interpreter, &known);

		if (!err)
			err = add_interpreter(names, interpreter, index, known);
		if (err == -ENOMEM || err == -ESRCH) {
			result = err;
			break;
		}
		if (err && err != -EAGAIN)
			names->is_partial = true;
		if (result)
			result = err;
		interpreter = known->next;
	}
	names->known->place_count = index; /* the others no longer exist */
	return result;
}

/* Computes a hash of all entries, never 0.  A thread may have taken the ident and the memory of one
 * that ended: only the dictionary's own counters show that, if it has any (a version up to 3.12,
 * slots used since 3.6). */
static uint64_t fingerprint(const struct thread_names *names)
{
	uint64_t hash = names->active_count;

	for (size_t at = 0; at < names->active_count; at++) {
		const struct python_dict *dict = &names->active[at].dict;

		hash = XXH3_64bits_withSeed(&names->active[at].head, sizeof(names->active[at].head),
					    hash);
		hash = XXH3_64bits_withSeed(&dict->slots, sizeof(dict->slots), hash);
		hash = XXH3_64bits_withSeed(dict->entry, dict->count * sizeof(*dict->entry), hash);
	}
	return hash ? hash : 1;
}

static int look(struct thread_names *names, uint64_t bias, bool keeps_names)
{
	struct python_names_known *known = names->known;
	uint64_t interpreter, now;
	int err = find_first_interpreter(names->info, &names->memory, bias, &interpreter);

	if (err)
		return err;
	if (known->info != names->info)
		known->place_count = 0;
	known->info = names->info;
	err = add_interpreters(names, interpreter);
	if (err)
		return err;
	now = fingerprint(names);
	if (keeps_names && !known->is_cut && !names->is_partial && known->fingerprint == now)
		return -EALREADY;
	if (known->is_cut)
		names->part = known->next;
	else
		names->part.fingerprint = now;
	err = read_all_names(names);
	if (err || names->is_partial || names->part.fingerprint != now)
		now = 0;
	known->is_cut = names->is_cut && !err;
	known->fingerprint = known->is_cut ? 0 : now;
	known->next.fingerprint = now;
	known->next.given = names->part.given + names->count;
	return known->is_cut ? 1 : err;
}

static void thread_names_release(struct thread_names *names)
{
	for (size_t at = 0; at < names->active_count; at++)
		python_dict_release(&names->active[at].dict);
	free(names->entry);
}

static uint32_t reads_for(pid_t pid)
{
	const uint32_t most = (READS_MAX - READS_OF_PROCESS) / READS_OF_THREAD;
	const uint32_t threads = process_count_threads(pid);

	return READS_OF_PROCESS + READS_OF_THREAD * (threads < most ? threads : most);
}

static int look_with(const struct python_info *info, pid_t pid, uint64_t bias,
		     struct python_names_hint *hint, struct python_thread_name **ret_names,
		     size_t *ret_count)
{
	/* All parts of a look have as many as one that is not cut. */
	uint32_t reads_left = hint->known->is_cut ? hint->known->next.reads_left : reads_for(pid);
	struct thread_names names = {
		.memory = {.pid = pid, .layout = &info->bpf, .reads_left = &reads_left},
		.info = info,
		.known = hint->known,
		.slice = hint->slice,
		.has_native_id = info->bpf.major == 3 && info->bpf.minor >= 8,
	};
	int err = look(&names, bias, hint->keeps_names);

	hint->known->next.reads_left = reads_left;
	if (err < 0) {
		hint->known->is_cut = false;
	} else {
		*ret_names = TAKE(names.entry);
		*ret_count = names.count;
	}
	thread_names_release(&names);
	return err;
}

int python_process_thread_names(const struct python_info *info, pid_t pid, uint64_t bias,
				struct python_names_hint *hint,
				struct python_thread_name **ret_names, size_t *ret_count)
{
	struct python_names_hint once = {.known = NULL};
	int err;

	if (!info->interp_modules)
		return -ENOTSUP;
	if (!hint)
		hint = &once;
	if (!hint->known)
		hint->known = calloc(1, sizeof(*hint->known));
	err = hint->known ? look_with(info, pid, bias, hint, ret_names, ret_count) : -ENOMEM;
	python_names_hint_release(&once);
	return err;
}
