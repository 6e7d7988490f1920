/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "python/python_objects.h"
#include "python/python_process.h"

#define MAX_INTERPRETERS 64U
#define MAX_THREADS 4096U
#define MAX_NAME_BYTES 256U /* as it lies in memory, before it is cut to UTF-8 of 63 bytes */
/* Ordinary processes need 1 read a module and about 10 a thread; 200,000 take about 0.1 s. */
#define MAX_READS 200000U
/* hash(int) is the int itself below 2^61 - 1 (2.7: always), so idents are read off the table. */
#define MAX_HASHED_INT ((1ULL << 61) - 1)

/* What one look at a process learns as it goes: types, and where interned names lie. */
struct thread_names {
	struct python_memory memory;
	uint64_t dict_type, str_type; /* taken from sys.modules and from its key "threading" */
	struct python_key threading, active, name, native_id;
	bool has_native_id;
	struct python_thread_name *entry; /* owned */
	size_t count, capacity;
};

/* The list's head: in _PyRuntime, or (2.7, 3.6) a static variable that strip removes.  Without it
 * the thread that runs at this moment leads to its interpreter. */
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

/* A dictionary found where one should be: of the type that sys.modules has. */
static int read_checked_dict(struct thread_names *names, uint64_t address,
			     struct python_dict *ret_dict)
{
	uint64_t type;
	int err = python_read_u64(&names->memory, address + names->memory.layout->ob_type, &type);

	if (err)
		return err;
	if (!names->dict_type)
		names->dict_type = type;
	return type == names->dict_type ? python_dict_read(&names->memory, address, ret_dict)
					: -EBADMSG;
}

static int append(struct thread_names *names, const struct python_thread_name *entry)
{
	if (names->count == names->capacity) {
		size_t capacity = names->capacity ? names->capacity * 2 : 16;
		struct python_thread_name *grown = realloc(names->entry, capacity * sizeof(*grown));

		if (!grown)
			return -ENOMEM;
		names->entry = grown;
		names->capacity = capacity;
	}
	names->entry[names->count++] = *entry;
	return 0;
}

/* Only str objects are names: anything else is a Thread half made, or memory that moved on. */
static int read_name(const struct thread_names *names, uint64_t address,
		     char ret_name[sizeof(((struct python_thread_name *)0)->name)])
{
	OWNED_MEM char *text = NULL;
	uint64_t type;
	size_t size;
	int err = python_read_u64(&names->memory, address + names->memory.layout->ob_type, &type);

	if (err)
		return err;
	if (type != names->str_type)
		return -ENODATA;
	err = python_string_read(&names->memory, address, MAX_NAME_BYTES, &text);
	if (err)
		return err;
	size = python_text_cut(text, sizeof(((struct python_thread_name *)0)->name) - 1);
	memcpy(ret_name, text, size);
	ret_name[size] = '\0';
	return 0;
}

static int add_thread(struct thread_names *names, uint64_t ident, uint64_t object)
{
	OWNED_PYTHON_DICT struct python_dict attributes = {0};
	struct python_thread_name thread = {.thread_id = ident};
	const struct python_dict_entry *found;
	uint64_t native_id;
	int err = python_attributes_read(&names->memory, object, &attributes);

	if (err)
		return err;
	found = python_dict_find(&names->memory, &attributes, &names->name);
	if (!found)
		return -ENODATA;
	err = read_name(names, found->value, thread.name);
	if (err)
		return err;
	found = names->has_native_id
			? python_dict_find(&names->memory, &attributes, &names->native_id)
			: NULL;
	if (found && !python_int_read(&names->memory, found->value, &native_id) &&
	    native_id <= INT32_MAX)
		thread.native_id = (uint32_t)native_id;
	return append(names, &thread);
}

/* A thread whose object cannot be read now is left out: the next look will have it. */
static int add_active(struct thread_names *names, const struct python_dict *active)
{
	for (size_t at = 0; at < active->count && names->count < MAX_THREADS; at++) {
		const struct python_dict_entry *entry = &active->entry[at];
		int err = entry->hash && entry->hash < MAX_HASHED_INT
				  ? add_thread(names, entry->hash, entry->value)
				  : 0;

		if (err == -ENOMEM || err == -ESRCH)
			return err;
		if (err == -ETIME)
			break;
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

/* A thread that ended meanwhile may have left another's memory under its name: only those that are
 * still listed with the same object stay. */
static int keep_active(struct thread_names *names, size_t first, uint64_t active_address,
		       const struct python_dict *before)
{
	OWNED_PYTHON_DICT struct python_dict now = {0};
	size_t kept = first;
	int err = read_checked_dict(names, active_address, &now);

	if (err)
		return err == -ETIME ? 0 : err;
	for (size_t at = first; at < names->count; at++) {
		uint64_t ident = names->entry[at].thread_id;
		uint64_t object = find_thread(&now, ident);

		if (object && object == find_thread(before, ident))
			names->entry[kept++] = names->entry[at];
	}
	names->count = kept;
	return 0;
}

static int add_interpreter(struct thread_names *names, uint64_t modules_address)
{
	OWNED_PYTHON_DICT struct python_dict modules = {0}, module = {0}, active = {0};
	const struct python_memory *memory = &names->memory;
	const struct python_dict_entry *found;
	size_t first = names->count;
	uint64_t module_dict;
	int err = read_checked_dict(names, modules_address, &modules);

	if (err)
		return err;
	found = python_dict_find(memory, &modules, &names->threading);
	if (!found)
		return -EAGAIN;
	err = python_read_u64(memory, found->key + memory->layout->ob_type, &names->str_type);
	/* PyModuleObject.md_dict is the first field in every version. */
	if (!err)
		err = python_read_u64(memory, found->value + python_header_bytes(memory->layout),
				      &module_dict);
	if (!err)
		err = read_checked_dict(names, module_dict, &module);
	if (err)
		return err;
	found = python_dict_find(memory, &module, &names->active);
	if (!found)
		return -EAGAIN;
	err = read_checked_dict(names, found->value, &active);
	if (!err)
		err = add_active(names, &active);
	if (!err)
		err = keep_active(names, first, found->value, &active);
	if (err)
		names->count = first;
	return err;
}

/* Sub-interpreters have a `threading` of their own.  Returns 0 when one of them has names. */
static int add_interpreters(struct thread_names *names, const struct python_info *info,
			    uint64_t interpreter)
{
	int result = -EAGAIN;

	for (size_t seen = 0; interpreter && seen < MAX_INTERPRETERS; seen++) {
		uint64_t modules;
		int err = python_read_u64(&names->memory, interpreter + info->interp_modules,
					  &modules);

		if (!err)
			err = modules ? add_interpreter(names, modules) : -EAGAIN;
		if (err == -ENOMEM || err == -ESRCH)
			return err;
		if (result)
			result = err;
		err = python_read_u64(&names->memory, interpreter + info->interp_next,
				      &interpreter);
		if (err)
			break;
	}
	return result;
}

int python_process_thread_names(const struct python_info *info, pid_t pid, uint64_t bias,
				struct python_thread_name **ret_names, size_t *ret_count)
{
	uint32_t reads_left = MAX_READS;
	struct thread_names names = {
		.memory = {.pid = pid, .layout = &info->bpf, .reads_left = &reads_left},
		.threading.name = "threading",
		.active.name = "_active",
		.name.name = info->bpf.major == 2 ? "_Thread__name" : "_name",
		.native_id.name = "_native_id",
		.has_native_id = info->bpf.major == 3 && info->bpf.minor >= 8,
	};
	uint64_t interpreter;
	int err;

	if (!info->interp_modules)
		return -ENOTSUP;
	err = find_first_interpreter(info, &names.memory, bias, &interpreter);
	if (!err)
		err = add_interpreters(&names, info, interpreter);
	if (err) {
		free(names.entry);
		return err;
	}
	*ret_names = names.entry;
	*ret_count = names.count;
	return 0;
}
