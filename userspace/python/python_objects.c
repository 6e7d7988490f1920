/* SPDX-License-Identifier: BSD-2-Clause */
#include "python/python_objects.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"

#define STRING_HEAD_BYTES 64U /* covers length and state of every build */
#define INT_DIGIT_BITS 30U    /* the default of every 64-bit build */
#define KEY_NAME_MAX_BYTES 32U
#define KEY_BATCH 32U		/* keys read at once; most searches need 50 to 100 */
#define DICT_HEAD_MAX_BYTES 64U /* object header and fields */
#define READ_COST_BYTES 1024U	/* copying that many bytes costs about as much as the call */

/* Free-threaded builds change only the object header here, 32 bytes instead of 16, so all other
 * offsets count from its end.  Source: the headers of 2.7.18, 3.6.15, 3.7.16, 3.8.18, 3.9.18,
 * 3.10.13, 3.11.7, 3.12.1, 3.13.0, 3.14.10, 3.15.2, compiled; 3.13-3.15 also with
 * Py_GIL_DISABLED. */
enum header_relative_offset {
	INT_SIZE = 0, /* ob_size (<= 3.11), lv_tag (3.12+) */
	TYPE_BASICSIZE = 16,
	TYPE_ITEMSIZE = 24,
	TYPE_FLAGS = 152,
	TYPE_DICTOFFSET = 272,
	HEAP_TYPE_CACHED_KEYS_311 = 856,
	HEAP_TYPE_CACHED_KEYS_312 = 864, /* up to 3.14 */
	HEAP_TYPE_CACHED_KEYS_315 = 872,
};

/* Indices in python_dict_head.field. */
enum dict_field {
	DICT_KEYS = 2,	 /* ma_keys */
	DICT_VALUES = 3, /* ma_values */
	DICT_MASK_27 = 2,
	DICT_TABLE_27 = 3,
};

/* Source: Include/object.h, Include/internal/pycore_object.h. */
#define TYPE_FLAG_INLINE_VALUES (1U << 2) /* 3.13+ */
#define TYPE_FLAG_MANAGED_DICT (1U << 4)  /* 3.11+ */
#define MANAGED_DICT_BYTES 24U		  /* before the object */
#define MANAGED_DICT_FREE_THREADED_BYTES 8U
#define MANAGED_VALUES_311_BYTES 32U

/* struct _dictkeysobject: Objects/dict-common.h (3.6-3.10), Include/internal/pycore_dict.h. */
#define KEYS_HEAD_310_BYTES 40U /* refcnt, size, lookup, usable, nentries */
#define KEYS_SLOTS_310 32U	/* offset of nentries */
#define KEYS_HEAD_311_BYTES 32U /* refcnt, log2 size, log2 bytes of indices, kind, ... */
#define KEYS_SLOTS_311 24U	/* offset of dk_nentries */
#define KEYS_MAX_LOG2_INDEX_BYTES 40U
#define VALUES_HEAD_313_BYTES 8U /* capacity, size, embedded, valid */

uint64_t python_header_bytes(const struct pp_python *layout)
{
	return (uint64_t)layout->ob_type + sizeof(uint64_t);
}

static bool is_at_least(const struct python_memory *memory, unsigned int minor)
{
	return memory->layout->major == 3 && memory->layout->minor >= minor;
}

static int pay(const struct python_memory *memory, size_t cost)
{
	if (!memory->reads_left)
		return 0;
	if (*memory->reads_left < cost) {
		*memory->reads_left = 0;
		return -ETIME;
	}
	*memory->reads_left -= (uint32_t)cost;
	return 0;
}

static int read_memory(const struct python_memory *memory, uint64_t address, void *buffer,
		       size_t size)
{
	int err = pay(memory, 1 + size / READ_COST_BYTES);

	return err ? err : process_read(memory->pid, address, buffer, size);
}

int python_read_pieces(const struct python_memory *memory, const struct process_piece *piece,
		       size_t count)
{
	size_t cost = 0;
	int err;

	for (size_t i = 0; i < count; i++)
		cost += 1 + piece[i].size / READ_COST_BYTES;
	err = pay(memory, cost);
	return err ? err : process_read_pieces(memory->pid, piece, count);
}

int python_read_u64(const struct python_memory *memory, uint64_t address, uint64_t *ret_value)
{
	uint64_t value;
	int err = read_memory(memory, address, &value, sizeof(value));

	if (err)
		return err;
	*ret_value = value;
	return 0;
}

/* Reads a field of an object, by its offset from the end of the object's header. */
static int read_field(const struct python_memory *memory, uint64_t object, uint64_t offset,
		      uint64_t *ret_value)
{
	return python_read_u64(memory, object + python_header_bytes(memory->layout) + offset,
			       ret_value);
}

static int bytes_find(const struct python_memory *memory, uint64_t address,
		      struct python_string *ret_string)
{
	const struct pp_python *layout = memory->layout;
	uint64_t length;
	int err = python_read_u64(memory, address + layout->bytes_size, &length);

	if (err)
		return err;
	*ret_string = (struct python_string){
		.data = address + layout->bytes_data, .length = length, .kind = 1};
	return 0;
}

int python_string_find(const struct python_memory *memory, uint64_t address,
		       struct python_string *ret_string)
{
	const struct pp_python *layout = memory->layout;
	size_t size = layout->str_state + sizeof(uint32_t);
	uint8_t head[STRING_HEAD_BYTES];
	bool is_ascii;
	uint64_t length;
	uint32_t state;
	unsigned int kind;
	int err;

	if (layout->flags & PP_PYTHON_BYTES_NAMES)
		return bytes_find(memory, address, ret_string);
	if (size > sizeof(head) || layout->str_length + sizeof(length) > size)
		return -EBADMSG;
	err = read_memory(memory, address, head, size);
	if (err)
		return err;
	length = load_u64(head + layout->str_length);
	state = load_u32(head + layout->str_state);
	kind = state >> layout->str_kind_shift & 7;
	is_ascii = state >> layout->str_ascii_shift & 1;
	if ((kind != 1 && kind != 2 && kind != 4) || (is_ascii && kind != 1))
		return -EBADMSG;
	*ret_string = (struct python_string){
		.data = address + (is_ascii ? layout->str_ascii_data : layout->str_compact_data),
		.length = length,
		.kind = kind,
	};
	return 0;
}

int python_string_read(const struct python_memory *memory, uint64_t address, size_t max_bytes,
		       char **ret_text)
{
	OWNED_MEM uint8_t *bytes = NULL;
	struct python_string string;
	size_t size;
	int err = python_string_find(memory, address, &string);

	if (err)
		return err;
	size = string.length < max_bytes / string.kind ? string.length * string.kind
						       : max_bytes / string.kind * string.kind;
	bytes = malloc(size + 1);
	if (!bytes)
		return -ENOMEM;
	err = size ? read_memory(memory, string.data, bytes, size) : 0;
	if (err)
		return err;
	return python_text_decode(bytes, size, string.kind,
				  memory->layout->flags & PP_PYTHON_BYTES_NAMES, ret_text);
}

int python_int_read(const struct python_memory *memory, uint64_t address, uint64_t *ret_value)
{
	struct {
		uint64_t size;
		uint32_t digit[2];
	} value;
	uint64_t count;
	int err = read_memory(memory, address + python_header_bytes(memory->layout) + INT_SIZE,
			      &value, sizeof(value));

	if (err)
		return err;
	count = value.size;
	if (is_at_least(memory, 12)) {
		/* lv_tag: sign in bits 0 and 1 (2: negative), one flag, then the digits' count. */
		if ((value.size & 3) == 2)
			return -ERANGE;
		count = value.size >> 3;
	}
	if (count > ARRAY_SIZE(value.digit))
		return -ERANGE; /* negative ob_size too */
	*ret_value = (count > 0 ? value.digit[0] : 0) |
		     (count > 1 ? (uint64_t)value.digit[1] << INT_DIGIT_BITS : 0);
	return 0;
}

void python_dict_release(struct python_dict *dict)
{
	free(dict->entry);
	*dict = (struct python_dict){0};
}

/* An array of slots in the other process: its address, its length, and the words of a slot. */
struct dict_slots {
	uint64_t address;
	uint64_t values; /* split tables: address of an array of value pointers; 0: in the slots */
	uint64_t count;
	bool has_hash;		 /* a slot is {hash, key, value} instead of {key, value} */
	struct python_word used; /* `slots` of struct python_dict */
};

static int read_words(const struct python_memory *memory, uint64_t address, size_t count,
		      uint64_t **ret_words)
{
	OWNED_MEM uint64_t *words = calloc(count ? count : 1, sizeof(*words));
	int err;

	if (!words)
		return -ENOMEM;
	err = count ? read_memory(memory, address, words, count * sizeof(*words)) : 0;
	if (err)
		return err;
	*ret_words = TAKE(words);
	return 0;
}

static int read_slots(const struct python_memory *memory, const struct dict_slots *slots,
		      struct python_dict *ret_dict)
{
	size_t stride = slots->has_hash ? 3 : 2;
	size_t count =
		slots->count < PYTHON_MAX_DICT_ENTRIES ? slots->count : PYTHON_MAX_DICT_ENTRIES;
	OWNED_MEM uint64_t *words = NULL, *values = NULL;
	OWNED_PYTHON_DICT struct python_dict dict = {0};
	int err = read_words(memory, slots->address, count * stride, &words);

	if (!err && slots->values)
		err = read_words(memory, slots->values, count, &values);
	if (err)
		return err;
	dict.entry = calloc(count ? count : 1, sizeof(*dict.entry));
	if (!dict.entry)
		return -ENOMEM;
	for (size_t at = 0; at < count; at++) {
		const uint64_t *word = words + at * stride;
		uint64_t key = word[stride - 2];
		uint64_t value = values ? values[at] : word[stride - 1];

		if (!key || !value)
			continue;
		dict.entry[dict.count++] = (struct python_dict_entry){
			.hash = slots->has_hash ? word[0] : 0,
			.key = key,
			.value = value,
			.value_address =
				values ? slots->values + at * sizeof(*values)
				       : slots->address + ((at + 1) * stride - 1) * sizeof(*words),
		};
	}
	dict.slots = slots->used;
	*ret_dict = dict;
	dict.entry = NULL;
	return 0;
}

/* 3.6-3.10: indices of 1, 2, 4 or 8 bytes by the table's size, then {hash, key, value}. */
static int slots_of_keys_310(const struct python_memory *memory, uint64_t keys,
			     struct dict_slots *ret_slots)
{
	uint64_t head[KEYS_HEAD_310_BYTES / sizeof(uint64_t)], size, index_bytes;
	int err = read_memory(memory, keys, head, sizeof(head));

	if (err)
		return err;
	size = head[1];
	if (!size || size & (size - 1) || size > 1ULL << KEYS_MAX_LOG2_INDEX_BYTES ||
	    head[4] > size)
		return -EBADMSG;
	index_bytes = size <= 0xff ? 1 : size <= 0xffff ? 2 : size <= 0xffffffff ? 4 : 8;
	*ret_slots = (struct dict_slots){
		.address = keys + KEYS_HEAD_310_BYTES + size * index_bytes,
		.count = head[4],
		.used = {keys + KEYS_SLOTS_310, head[4]},
		.has_hash = true,
	};
	return 0;
}

/* 3.11+: only tables of the general kind (0) keep the keys' hashes. */
static int slots_of_keys_311(const struct python_memory *memory, uint64_t keys,
			     struct dict_slots *ret_slots)
{
	uint8_t head[KEYS_HEAD_311_BYTES];
	uint64_t count;
	int err = read_memory(memory, keys, head, sizeof(head));

	if (err)
		return err;
	count = load_u64(head + KEYS_SLOTS_311);
	if (head[8] > KEYS_MAX_LOG2_INDEX_BYTES || head[9] > KEYS_MAX_LOG2_INDEX_BYTES ||
	    count > 1ULL << head[8])
		return -EBADMSG;
	*ret_slots = (struct dict_slots){
		.address = keys + KEYS_HEAD_311_BYTES + (1ULL << head[9]),
		.count = count,
		.used = {keys + KEYS_SLOTS_311, count},
		.has_hash = !head[10],
	};
	return 0;
}

/* values: the pointer in ma_values or in the object itself; 0: the table has its own values. */
static int read_table(const struct python_memory *memory, uint64_t keys, uint64_t values,
		      struct python_dict *ret_dict)
{
	struct dict_slots slots;
	uint8_t values_head[VALUES_HEAD_313_BYTES];
	int err = is_at_least(memory, 11) ? slots_of_keys_311(memory, keys, &slots)
					  : slots_of_keys_310(memory, keys, &slots);

	if (err)
		return err;
	slots.values = values;
	if (values && is_at_least(memory, 13)) {
		err = read_memory(memory, values, values_head, sizeof(values_head));
		if (err)
			return err;
		slots.values += sizeof(values_head);
		if (slots.count > values_head[0])
			slots.count = values_head[0];
	}
	return read_slots(memory, &slots, ret_dict);
}

int python_dict_head_read(const struct python_memory *memory, uint64_t address,
			  struct python_dict_head *ret_head)
{
	struct python_dict_head head = {.address = address};
	uint8_t bytes[DICT_HEAD_MAX_BYTES];
	size_t header_bytes = python_header_bytes(memory->layout);
	int err;

	if (header_bytes + sizeof(head.field) > sizeof(bytes))
		return -EBADMSG;
	err = read_memory(memory, address, bytes, header_bytes + sizeof(head.field));
	if (err)
		return err;
	memcpy(&head.type, bytes + memory->layout->ob_type, sizeof(head.type));
	memcpy(head.field, bytes + header_bytes, sizeof(head.field));
	*ret_head = head;
	return 0;
}

int python_dict_read_table(const struct python_memory *memory, const struct python_dict_head *head,
			   struct python_dict *ret_dict)
{
	if (memory->layout->major == 2) {
		uint64_t mask = head->field[DICT_MASK_27];
		struct dict_slots slots = {
			.address = head->field[DICT_TABLE_27], .count = mask + 1, .has_hash = true};

		return mask >= 1ULL << KEYS_MAX_LOG2_INDEX_BYTES
			       ? -EBADMSG
			       : read_slots(memory, &slots, ret_dict);
	}
	return read_table(memory, head->field[DICT_KEYS], head->field[DICT_VALUES], ret_dict);
}

int python_dict_read(const struct python_memory *memory, uint64_t address,
		     struct python_dict *ret_dict)
{
	struct python_dict_head head;
	int err = python_dict_head_read(memory, address, &head);

	return err ? err : python_dict_read_table(memory, &head, ret_dict);
}

static struct python_word dict_word(const struct python_memory *memory,
				    const struct python_dict_head *head, size_t field)
{
	return (struct python_word){
		.address = head->address + python_header_bytes(memory->layout) +
			   field * sizeof(head->field[0]),
		.value = head->field[field],
	};
}

struct python_word python_dict_table_word(const struct python_memory *memory,
					  const struct python_dict_head *head)
{
	return dict_word(memory, head, memory->layout->major == 2 ? DICT_TABLE_27 : DICT_KEYS);
}

size_t python_dict_stamp(const struct python_memory *memory, const struct python_dict_head *head,
			 const struct python_dict *dict,
			 struct python_word ret_stamp[PYTHON_DICT_STAMP_WORDS])
{
	size_t count = 0;

	for (; count < PYTHON_DICT_FIELDS; count++)
		ret_stamp[count] = dict_word(memory, head, count);
	if (dict->slots.address)
		ret_stamp[count++] = dict->slots;
	return count;
}

static uint64_t cached_keys_offset(const struct python_memory *memory)
{
	return is_at_least(memory, 15)	 ? HEAP_TYPE_CACHED_KEYS_315
	       : is_at_least(memory, 12) ? HEAP_TYPE_CACHED_KEYS_312
					 : HEAP_TYPE_CACHED_KEYS_311;
}

static int read_split(const struct python_memory *memory, uint64_t type, uint64_t values,
		      struct python_dict *ret_dict)
{
	uint64_t keys;
	int err = read_field(memory, type, cached_keys_offset(memory), &keys);

	return err ? err : read_table(memory, keys, values, ret_dict);
}

/* 3.13+: reads the values of an object without a dictionary.  They follow the object, if they are
 * still in use there. */
static int read_inline_values(const struct python_memory *memory, uint64_t object, uint64_t type,
			      struct python_dict *ret_dict)
{
	uint8_t head[VALUES_HEAD_313_BYTES];
	uint64_t basic_size;
	int err = read_field(memory, type, TYPE_BASICSIZE, &basic_size);

	if (err)
		return err;
	err = read_memory(memory, object + basic_size, head, sizeof(head));
	if (err)
		return err;
	return head[3] ? read_split(memory, type, object + basic_size, ret_dict) : -ENODATA;
}

/* 3.11+: the pointers of the dictionary or of the values are before the object. */
static int read_managed(const struct python_memory *memory, uint64_t object, uint64_t type,
			uint64_t flags, struct python_dict *ret_dict)
{
	bool is_free_threaded = memory->layout->flags & PP_PYTHON_FREE_THREADED;
	uint64_t before = is_free_threaded ? MANAGED_DICT_FREE_THREADED_BYTES : MANAGED_DICT_BYTES;
	uint64_t dict = 0, values = 0;
	int err = python_read_u64(memory, object - before, &dict);

	if (!err && !is_at_least(memory, 12))
		err = python_read_u64(memory, object - MANAGED_VALUES_311_BYTES, &values);
	if (err)
		return err;
	/* 3.12: one word for both; a pointer to values is one too low, which makes it odd. */
	if (!is_at_least(memory, 13) && dict & 1)
		values = dict + 1;
	if (values)
		return read_split(memory, type, values, ret_dict);
	if (dict)
		return python_dict_read(memory, dict, ret_dict);
	if (flags & TYPE_FLAG_INLINE_VALUES && is_at_least(memory, 13))
		return read_inline_values(memory, object, type, ret_dict);
	return -ENODATA;
}

/* A negative tp_dictoffset counts from the end of an object of variable size. */
static int variable_dict_offset(const struct python_memory *memory, uint64_t object, uint64_t type,
				uint64_t *offset)
{
	uint64_t basic, item, size, bytes;
	int err = read_field(memory, type, TYPE_BASICSIZE, &basic);

	if (!err)
		err = read_field(memory, type, TYPE_ITEMSIZE, &item);
	if (!err)
		err = read_field(memory, object, INT_SIZE, &size);
	if (err)
		return err;
	if ((int64_t)size < 0)
		size = 0 - size;
	bytes = (basic + size * item + 7) & ~7ULL;
	*offset += bytes;
	return 0;
}

int python_attributes_read(const struct python_memory *memory, uint64_t object,
			   struct python_dict *ret_dict)
{
	uint64_t type, flags, dict, offset;
	int err = python_read_u64(memory, object + memory->layout->ob_type, &type);

	if (err)
		return err;
	err = read_field(memory, type, TYPE_FLAGS, &flags);
	if (err)
		return err;
	if (is_at_least(memory, 11) && flags & TYPE_FLAG_MANAGED_DICT)
		return read_managed(memory, object, type, flags, ret_dict);
	err = read_field(memory, type, TYPE_DICTOFFSET, &offset);
	if (err)
		return err;
	if ((int64_t)offset < 0)
		err = variable_dict_offset(memory, object, type, &offset);
	if (!err)
		err = offset ? python_read_u64(memory, object + offset, &dict) : -ENODATA;
	if (err)
		return err;
	return dict ? python_dict_read(memory, dict, ret_dict) : -ENODATA;
}

static bool is_string(const struct python_memory *memory, uint64_t address, const char *text)
{
	char bytes[KEY_NAME_MAX_BYTES];
	struct python_string string;
	size_t length = strlen(text);

	return length <= sizeof(bytes) && !python_string_find(memory, address, &string) &&
	       string.kind == 1 && string.length == length &&
	       !read_memory(memory, string.data, bytes, length) && !memcmp(bytes, text, length);
}

/* Returns the bytes of an ASCII str up to its end: its characters follow its head.  0: more than
 * there is room for. */
static size_t ascii_bytes(const struct pp_python *layout, size_t length)
{
	size_t data = layout->str_ascii_data;

	if (length > KEY_NAME_MAX_BYTES)
		return 0;
	if (layout->flags & PP_PYTHON_BYTES_NAMES)
		return layout->bytes_data + length;
	return data <= STRING_HEAD_BYTES && layout->str_length + sizeof(uint64_t) <= data &&
			       layout->str_state + sizeof(uint32_t) <= data
		       ? data + length
		       : 0;
}

static bool is_ascii_string(const struct pp_python *layout, const uint8_t *bytes, const char *text,
			    size_t length)
{
	uint32_t state;

	if (layout->flags & PP_PYTHON_BYTES_NAMES)
		return load_u64(bytes + layout->bytes_size) == length &&
		       !memcmp(bytes + layout->bytes_data, text, length);
	state = load_u32(bytes + layout->str_state);
	return load_u64(bytes + layout->str_length) == length &&
	       (state >> layout->str_kind_shift & 7) == 1 && state >> layout->str_ascii_shift & 1 &&
	       !memcmp(bytes + layout->str_ascii_data, text, length);
}

/* Returns the first of at most KEY_BATCH entries with this key, else `count`.  A str at the end of
 * a mapping may be shorter than the name, so that it cannot be read with the others: then each is
 * read by itself. */
static size_t find_in_batch(const struct python_memory *memory,
			    const struct python_dict_entry *entry, size_t count, const char *text)
{
	uint8_t bytes[KEY_BATCH][STRING_HEAD_BYTES + KEY_NAME_MAX_BYTES];
	struct process_piece piece[KEY_BATCH];
	const size_t length = strlen(text);
	const size_t size = ascii_bytes(memory->layout, length);
	bool is_read;
	size_t at;

	for (at = 0; at < count; at++)
		piece[at] = (struct process_piece){
			.address = entry[at].key, .buffer = bytes[at], .size = size};
	is_read = size && !python_read_pieces(memory, piece, count);
	for (at = 0; at < count; at++) {
		if (is_read ? is_ascii_string(memory->layout, bytes[at], text, length)
			    : is_string(memory, entry[at].key, text))
			break;
	}
	return at;
}

const struct python_dict_entry *python_dict_find(const struct python_memory *memory,
						 const struct python_dict *dict,
						 struct python_key *key)
{
	for (size_t at = 0; key->address && at < dict->count; at++) {
		if (dict->entry[at].key == key->address)
			return &dict->entry[at];
	}
	for (size_t at = 0; at < dict->count; at += KEY_BATCH) {
		size_t count = dict->count - at < KEY_BATCH ? dict->count - at : KEY_BATCH;
		size_t found = find_in_batch(memory, &dict->entry[at], count, key->name);

		if (found < count) {
			key->address = dict->entry[at + found].key;
			return &dict->entry[at + found];
		}
	}
	return NULL;
}
