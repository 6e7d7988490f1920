/* SPDX-License-Identifier: BSD-2-Clause */
#include "python/thread_place.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

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

bool thread_place_holds(const struct python_memory *memory, const struct thread_place *place)
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

int thread_place_read_dict(const struct python_memory *memory, const struct thread_place *place,
			   uint64_t address, struct python_dict_head *ret_head,
			   struct python_dict *ret_dict)
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

int thread_place_find(const struct python_memory *memory, const struct python_info *info,
		      uint64_t interpreter, struct thread_place *place)
{
	uint64_t modules, module_dict;
	int err;

	_Static_assert(2 + PYTHON_DICT_STAMP_WORDS <= THREAD_PLACE_WORDS, "next, modules, stamp");
	*place = (struct thread_place){.interpreter = interpreter};
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
