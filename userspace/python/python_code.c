/* SPDX-License-Identifier: BSD-2-Clause */
#include "python/python_code.h"

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/bytes.h"
#include "base/io.h"
#include "python/python_objects.h"

/* Decodes the names and the line table of a code object.  The child does this; the agent keeps what
 * it says. */

void python_code_text_release(struct python_code_text *text)
{
	free(text->name);
	free(text->filename);
	free(text->row);
}

uint32_t python_code_rows_max(const struct python_code_raw *raw)
{
	/* An entry takes a byte at least, and the table begins and ends with a row. */
	const uint32_t rows = raw->line_table_bytes + 2;

	return rows < PYTHON_MAX_LINE_ROWS ? rows : PYTHON_MAX_LINE_ROWS;
}

static int decode_lines(const struct python_code_raw *raw, struct python_code_text *text)
{
	const uint8_t *table = raw->part + raw->name_bytes + raw->filename_bytes;
	const uint32_t max = python_code_rows_max(raw);
	struct line_row *smaller;

	text->row = malloc(max * sizeof(*text->row));
	if (!text->row)
		return -ENOMEM;
	text->row_count =
		(uint32_t)line_table_rows((enum line_table_format)raw->format, table,
					  raw->line_table_bytes, raw->first_line, text->row, max);
	smaller = realloc(text->row, text->row_count * sizeof(*smaller));
	if (smaller)
		text->row = smaller;
	return 0;
}

int python_code_text_decode(const struct python_code_raw *raw, struct python_code_text *ret_text)
{
	CLEANUP(python_code_text_release) struct python_code_text text = {0};
	int err = python_text_decode(raw->part, raw->name_bytes, raw->name_kind, raw->is_bytes,
				     &text.name);

	if (!err)
		err = python_text_decode(raw->part + raw->name_bytes, raw->filename_bytes,
					 raw->filename_kind, raw->is_bytes, &text.filename);
	if (!err)
		err = decode_lines(raw, &text);
	if (err)
		return err;
	*ret_text = text;
	text = (struct python_code_text){0};
	return 0;
}

void python_code_set_text(struct python_code *code, struct python_code_text *text)
{
	free(code->raw);
	code->raw = NULL;
	code->name = text->name;
	code->filename = text->filename;
	code->row = text->row;
	code->row_count = text->row_count;
	*text = (struct python_code_text){0};
}

/* Turns the line table of a code object into rows that are looked up.  Any bytes are a table.
 * Sources: CPython Objects/lnotab_notes.txt (<= 3.9, 3.10), Objects/locations.md (3.11+). */

#define LNOTAB_ENTRY_BYTES 2U
#define NO_LINE_310 (-128) /* the delta that means "this range has no line" */
#define CODE_UNIT_BYTES 2U /* 3.11+: lengths count code units */
/* six bits a byte; CPython does not write more bytes than an int needs */
#define MAX_VARINT_SHIFT 30U

/* Kinds of an entry of a location table (Objects/locations.md); those below are "short forms". */
enum location_kind {
	LOCATION_ONE_LINE = 10, /* 10, 11, 12: adds 0, 1, 2 to the line */
	LOCATION_NO_COLUMNS = 13,
	LOCATION_LONG = 14,
	LOCATION_NONE = 15,
};

/* Tables may be hostile: sums wrap as unsigned, and a line that CPython cannot have becomes 0. */
static uint32_t checked_line(uint32_t line)
{
	return line <= INT_MAX ? line : 0;
}

enum line_table_format line_table_format(unsigned int major, unsigned int minor)
{
	if (major < 3)
		return LINE_TABLE_LNOTAB_2;
	if (minor < 10)
		return LINE_TABLE_LNOTAB_3;
	return minor == 10 ? LINE_TABLE_310 : LINE_TABLE_311;
}

struct rows {
	struct line_row *row;
	size_t count, max;
};

/* Adds the line of what begins at `start`, which never goes back.  Returns false when there is no
 * room, or no instruction can be there. */
static bool put(struct rows *rows, uint64_t start, uint32_t line)
{
	struct line_row *last = rows->count ? &rows->row[rows->count - 1] : NULL;

	line = checked_line(line);
	if (start > UINT32_MAX)
		return false;
	if (last && last->start == start) {
		last->line = line;
		return true;
	}
	if (last && last->line == line)
		return true;
	if (rows->count == rows->max)
		return false;
	rows->row[rows->count++] = (struct line_row){.start = (uint32_t)start, .line = line};
	return true;
}

static void rows_of_lnotab(const uint8_t *table, size_t size, uint32_t line, bool only_grows,
			   struct rows *rows)
{
	uint64_t start = 0;
	bool goes_on = put(rows, 0, line);

	for (size_t at = 0; goes_on && at + LNOTAB_ENTRY_BYTES <= size; at += LNOTAB_ENTRY_BYTES) {
		start += table[at];
		/* Deltas are unsigned until 3.5, signed from 3.6 on. */
		line += only_grows ? table[at + 1] : (uint32_t)(int8_t)table[at + 1];
		goes_on = put(rows, start, line);
	}
}

static void rows_of_310(const uint8_t *table, size_t size, uint32_t line, struct rows *rows)
{
	uint64_t end = 0;
	bool goes_on = true;

	for (size_t at = 0; goes_on && at + LNOTAB_ENTRY_BYTES <= size; at += LNOTAB_ENTRY_BYTES) {
		const int8_t delta = (int8_t)table[at + 1];

		if (delta != NO_LINE_310)
			line += (uint32_t)delta;
		goes_on = put(rows, end, delta == NO_LINE_310 ? 0 : line);
		end += table[at];
	}
	if (goes_on)
		(void)put(rows, end, line);
}

/* A cursor over a location table; a read past the end sets is_cut and gives 0. */
struct location_cursor {
	const uint8_t *at, *end;
	int is_cut;
};

static uint8_t read_byte(struct location_cursor *cursor)
{
	if (cursor->at >= cursor->end) {
		cursor->is_cut = 1;
		return 0;
	}
	return *cursor->at++;
}

/* Six bits a byte, least significant first; bit 6: more follows. */
static uint32_t read_varint(struct location_cursor *cursor)
{
	uint32_t value = 0;

	for (uint32_t shift = 0;; shift += 6) {
		uint8_t byte = read_byte(cursor);

		if (shift <= MAX_VARINT_SHIFT)
			value |= (uint32_t)(byte & 63) << shift;
		if (!(byte & 64))
			return value;
	}
}

static uint32_t read_signed_varint(struct location_cursor *cursor)
{
	uint32_t value = read_varint(cursor);

	return value & 1 ? 0U - (value >> 1) : value >> 1;
}

/* Reads what follows an entry's first byte; returns what is added to the line. */
static uint32_t read_line_delta(struct location_cursor *cursor, unsigned int kind)
{
	uint32_t delta;

	switch (kind) {
	case LOCATION_NONE:
		return 0;
	case LOCATION_LONG:
		delta = read_signed_varint(cursor);
		read_varint(cursor); /* end line */
		read_varint(cursor); /* column */
		read_varint(cursor); /* end column */
		return delta;
	case LOCATION_NO_COLUMNS:
		return read_signed_varint(cursor);
	default:
		read_byte(cursor);
		if (kind < LOCATION_ONE_LINE)
			return 0;
		read_byte(cursor);
		return kind - LOCATION_ONE_LINE;
	}
}

static void rows_of_311(const uint8_t *table, size_t size, uint32_t line, struct rows *rows)
{
	struct location_cursor cursor = {.at = table, .end = table + size};
	uint64_t end = 0;
	bool goes_on = true;

	while (goes_on && cursor.at < cursor.end) {
		const uint8_t head = read_byte(&cursor);
		const unsigned int kind = (head >> 3) & 15;
		const uint32_t delta = read_line_delta(&cursor, kind);

		/* An entry that is cut says nothing. */
		if (cursor.is_cut)
			break;
		line += delta;
		goes_on = put(rows, end, kind == LOCATION_NONE ? 0 : line);
		end += ((head & 7) + 1) * CODE_UNIT_BYTES;
	}
	if (goes_on)
		(void)put(rows, end, line);
}

size_t line_table_rows(enum line_table_format format, const uint8_t *table, size_t size,
		       uint32_t first_line, struct line_row *ret_rows, size_t max)
{
	struct rows rows = {.row = ret_rows, .max = max};

	if (format == LINE_TABLE_311)
		rows_of_311(table, size, first_line, &rows);
	else if (format == LINE_TABLE_310)
		rows_of_310(table, size, first_line, &rows);
	else
		rows_of_lnotab(table, size, first_line, format == LINE_TABLE_LNOTAB_2, &rows);
	return rows.count;
}

uint32_t line_rows_find(const struct line_row *rows, size_t count, uint32_t offset)
{
	const size_t begun = ARRAY_LEADING(count, at, rows[at].start <= offset);

	return begun ? rows[begun - 1].line : 0;
}

#define CODE_UNIT_BYTES 2U /* of bytecode, 3.6+ */

/* A name or a line table in its original encoding; borrowed from a record or from a code_copy. */
struct code_part {
	const uint8_t *bytes;
	size_t size;
	unsigned int kind; /* bytes a character */
};

/* The parts of a code object, from whatever source. */
struct code_parts {
	struct code_part name, filename, line_table;
	uint32_t first_line, flags;
	bool is_truncated;
};

/* A code object read from a live process: owns the bytes. */
struct code_copy {
	struct code_parts parts;
	uint8_t *name, *filename, *line_table;
};

static void code_copy_release(struct code_copy *copy)
{
	free(copy->name);
	free(copy->filename);
	free(copy->line_table);
}

void python_code_free(struct python_code *code)
{
	if (!code)
		return;
	free(code->raw);
	free(code->name);
	free(code->filename);
	free(code->row);
	free(code);
}

uint64_t python_code_bytes(const struct python_code *code)
{
	uint64_t bytes = sizeof(*code) + code->row_count * sizeof(*code->row);

	if (code->raw)
		bytes += code->raw->size;
	if (code->name)
		bytes += strlen(code->name) + 1;
	if (code->filename)
		bytes += strlen(code->filename) + 1;
	return bytes;
}

static bool is_kind(unsigned int kind, size_t size)
{
	return !size || kind == 1 || kind == 2 || kind == 4;
}

bool python_code_raw_is_sound(const struct python_code_raw *raw)
{
	return raw->name_bytes <= PYTHON_MAX_NAME_BYTES &&
	       raw->filename_bytes <= PYTHON_MAX_NAME_BYTES &&
	       raw->line_table_bytes <= PYTHON_MAX_LINE_TABLE_BYTES &&
	       raw->size == sizeof(*raw) + raw->name_bytes + raw->filename_bytes +
				    raw->line_table_bytes &&
	       is_kind(raw->name_kind, raw->name_bytes) &&
	       is_kind(raw->filename_kind, raw->filename_bytes) && raw->format < LINE_TABLE_FORMATS;
}

static uint8_t *put_part(uint8_t *to, const struct code_part *part)
{
	if (part->size)
		memcpy(to, part->bytes, part->size);
	return to + part->size;
}

/* Copies the parts, as they are, behind each other. */
static int raw_from_parts(const struct code_parts *parts, const struct pp_python *layout,
			  struct python_code_raw **ret_raw)
{
	const size_t size = sizeof(**ret_raw) + parts->name.size + parts->filename.size +
			    parts->line_table.size;
	OWNED_MEM struct python_code_raw *raw = malloc(size);
	uint8_t *to;

	if (!raw)
		return -ENOMEM;
	*raw = (struct python_code_raw){
		.size = (uint32_t)size,
		.first_line = parts->first_line,
		.line_table_bytes = (uint32_t)parts->line_table.size,
		.name_bytes = (uint16_t)parts->name.size,
		.filename_bytes = (uint16_t)parts->filename.size,
		.name_kind = (uint8_t)parts->name.kind,
		.filename_kind = (uint8_t)parts->filename.kind,
		.is_bytes = layout->flags & PP_PYTHON_BYTES_NAMES ? 1 : 0,
		.format = (uint8_t)line_table_format(layout->major, layout->minor),
	};
	to = put_part(raw->part, &parts->name);
	to = put_part(to, &parts->filename);
	put_part(to, &parts->line_table);
	if (!python_code_raw_is_sound(raw))
		return -EBADMSG;
	*ret_raw = TAKE(raw);
	return 0;
}

static int code_from_parts(const struct code_parts *parts, const struct pp_python *layout,
			   uint64_t id, struct python_code **ret_code)
{
	OWNED(python_code) struct python_code *code = calloc(1, sizeof(*code));
	int err;

	if (!code)
		return -ENOMEM;
	code->id = id;
	code->first_line = parts->first_line;
	code->flags = parts->flags;
	code->major = layout->major;
	code->minor = layout->minor;
	code->is_truncated = parts->is_truncated;
	code->code_adaptive = layout->code_adaptive == PP_NO_OFFSET ? 0 : layout->code_adaptive;
	err = raw_from_parts(parts, layout, &code->raw);
	if (err)
		return err;
	*ret_code = TAKE(code);
	return 0;
}

/* Copies at most max_bytes (a multiple of 4) of a part; when it is longer, the code object is
 * truncated. */
static int copy_part(const struct python_memory *memory, const struct python_string *string,
		     size_t max_bytes, uint8_t **owner, struct code_part *part, bool *is_truncated)
{
	size_t size = max_bytes;

	if (string->length <= max_bytes / string->kind)
		size = string->length * string->kind;
	else
		*is_truncated = true;
	*owner = malloc(size + 1);
	if (!*owner)
		return -ENOMEM;
	*part = (struct code_part){.bytes = *owner, .size = size, .kind = string->kind};
	return size ? process_read(memory->pid, string->data, *owner, size) : 0;
}

static int copy_name(const struct python_memory *memory, uint64_t address, uint8_t **owner,
		     struct code_part *part, bool *is_truncated)
{
	struct python_string string;
	int err = python_string_find(memory, address, &string);

	return err ? err
		   : copy_part(memory, &string, PYTHON_MAX_NAME_BYTES, owner, part, is_truncated);
}

static int copy_line_table(const struct python_memory *memory, uint64_t address,
			   struct code_copy *copy)
{
	const struct pp_python *layout = memory->layout;
	struct python_string bytes = {.data = address + layout->bytes_data, .kind = 1};
	int err = python_read_u64(memory, address + layout->bytes_size, &bytes.length);

	return err ? err
		   : copy_part(memory, &bytes, PYTHON_MAX_LINE_TABLE_BYTES, &copy->line_table,
			       &copy->parts.line_table, &copy->parts.is_truncated);
}

/* Returns how many bytes of a code object hold all fields used here: 2.7's is shorter than what the
 * kernel side reads.  0: the layout has an impossible offset. */
static size_t code_head_bytes(const struct pp_python *layout)
{
	const uint16_t offset[] = {
		layout->ob_type,
		layout->code_flags,
		layout->code_first_line,
		layout->code_filename,
		layout->code_name,
		layout->code_line_table,
		layout->code_qualname == PP_NO_OFFSET ? layout->code_name : layout->code_qualname,
	};
	size_t size = 0;

	for (size_t i = 0; i < ARRAY_SIZE(offset); i++) {
		if (offset[i] + sizeof(uint64_t) > size)
			size = offset[i] + sizeof(uint64_t);
	}
	return size <= PP_CODE_READ_BYTES ? size : 0;
}

/* code_type: address of PyCode_Type in the process; 0: unknown, so not checked. */
static int copy_code(const struct python_memory *memory, uint64_t code_type, uint64_t address,
		     struct code_copy *copy)
{
	const struct pp_python *layout = memory->layout;
	uint8_t head[PP_CODE_READ_BYTES];
	size_t size = code_head_bytes(layout);
	uint16_t name = layout->code_name;
	int err = size ? process_read(memory->pid, address, head, size) : -EBADMSG;

	if (err)
		return err;
	if (code_type && load_u64(head + layout->ob_type) != code_type)
		return -EBADMSG;
	if (layout->code_qualname != PP_NO_OFFSET && load_u64(head + layout->code_qualname))
		name = layout->code_qualname;
	copy->parts.first_line = load_u32(head + layout->code_first_line);
	copy->parts.flags = load_u32(head + layout->code_flags);
	err = copy_name(memory, load_u64(head + name), &copy->name, &copy->parts.name,
			&copy->parts.is_truncated);
	if (!err)
		err = copy_name(memory, load_u64(head + layout->code_filename), &copy->filename,
				&copy->parts.filename, &copy->parts.is_truncated);
	if (!err)
		err = copy_line_table(memory, load_u64(head + layout->code_line_table), copy);
	return err;
}

/* Returns whether the memory still has what the record has: the process may have freed it since. */
static bool starts_with(const struct code_part *now, const struct code_part *then)
{
	return !then->size || (now->kind == then->kind && now->size >= then->size &&
			       !memcmp(now->bytes, then->bytes, then->size));
}

static bool is_same_code(const struct code_parts *now, const struct code_parts *then)
{
	return now->first_line == then->first_line && now->flags == then->flags &&
	       starts_with(&now->name, &then->name) &&
	       starts_with(&now->filename, &then->filename) &&
	       starts_with(&now->line_table, &then->line_table);
}

/* Returns whether parts are missing: a part that the kernel side could not read (its page was not
 * resident) is empty.  Code objects have file names, and from 3.10 on line tables. */
static bool is_incomplete(const struct pp_code_record *record, const struct pp_python *layout)
{
	return record->flags & PP_CODE_TRUNCATED || !record->filename_bytes ||
	       (!record->line_table_bytes && layout->major == 3 && layout->minor >= 10);
}

static int parts_of_record(const struct pp_code_record *record, const struct pp_python *layout,
			   struct code_parts *ret_parts)
{
	const uint8_t *filename = record->bytes + record->name_bytes;
	uint64_t size = sizeof(*record) + (uint64_t)record->name_bytes + record->filename_bytes +
			record->line_table_bytes;

	if (record->record.size != size || record->line_table_bytes > PYTHON_MAX_LINE_TABLE_BYTES)
		return -EBADMSG;
	*ret_parts = (struct code_parts){
		.name = {record->bytes, record->name_bytes, record->name_kind},
		.filename = {filename, record->filename_bytes, record->filename_kind},
		.line_table = {filename + record->filename_bytes, record->line_table_bytes, 1},
		.first_line = record->first_line,
		.flags = record->code_flags,
		.is_truncated = is_incomplete(record, layout),
	};
	return 0;
}

int python_code_from_record(const struct pp_code_record *record, const struct pp_python *layout,
			    pid_t pid, struct python_code **ret_code)
{
	struct python_memory memory = {.pid = pid, .layout = layout};
	CLEANUP(code_copy_release) struct code_copy copy = {0};
	struct code_parts parts;
	int err;

	if (record->record.size < sizeof(*record))
		return -EBADMSG;
	err = parts_of_record(record, layout, &parts);
	if (err)
		return err;
	if (parts.is_truncated && pid) {
		err = copy_code(&memory, 0, record->address, &copy);
		if (err == -ENOMEM)
			return err;
		if (!err && is_same_code(&copy.parts, &parts))
			parts = copy.parts;
	}
	return code_from_parts(&parts, layout, record->id, ret_code);
}

/* As hash_mix() in bpf/lib/frames.bpf.h. */
static uint64_t hash_mix(uint64_t hash, uint64_t word)
{
	hash ^= word;
	hash *= 0x9e3779b97f4a7c15ULL;
	return hash ^ hash >> 29;
}

static size_t append_part(uint8_t *body, size_t at, const struct code_part *part, size_t max_bytes)
{
	size_t bytes = part->size < max_bytes ? part->size : max_bytes;

	if (bytes)
		memcpy(body + at, part->bytes, bytes);
	return at + bytes;
}

/* As walk_code_hash() in bpf/lib/code.bpf.h, over the bytes that it reads. */
static uint64_t content_id(const struct code_parts *parts, uint64_t user_key)
{
	uint8_t body[2 * PP_MAX_NAME_BYTES + PP_MAX_LINE_TABLE_BYTES + sizeof(uint64_t)];
	uint64_t hash = hash_mix(parts->first_line, parts->flags);
	size_t bytes = append_part(body, 0, &parts->name, PP_MAX_NAME_BYTES);

	bytes = append_part(body, bytes, &parts->filename, PP_MAX_NAME_BYTES);
	bytes = append_part(body, bytes, &parts->line_table, PP_MAX_LINE_TABLE_BYTES);
	memset(body + bytes, 0, sizeof(hash));
	for (size_t at = 0; at < bytes; at += sizeof(hash))
		hash = hash_mix(hash, load_u64(body + at));
	return hash_mix(hash_mix(hash, bytes), user_key) | 1;
}

int python_code_read(pid_t pid, const struct pp_python *layout, uint64_t bias, uint64_t address,
		     uint64_t user_key, struct python_code **ret_code)
{
	struct python_memory memory = {.pid = pid, .layout = layout};
	CLEANUP(code_copy_release) struct code_copy copy = {0};
	int err = copy_code(&memory, layout->code_type ? layout->code_type + bias : 0, address,
			    &copy);

	if (err)
		return err;
	return code_from_parts(&copy.parts, layout, content_id(&copy.parts, user_key), ret_code);
}

uint32_t python_code_line(const struct python_code *code, uint32_t what)
{
	bool is_location_table = code->major == 3 && code->minor >= 11;
	bool is_310 = code->major == 3 && code->minor == 10;
	uint32_t line, offset = what;

	if (is_310)
		offset = what * CODE_UNIT_BYTES;
	else if (is_location_table)
		offset = what - code->code_adaptive;
	/* -1, or before the first instruction: the frame has not started. */
	if ((int32_t)what < 0 || (int32_t)offset < 0)
		return code->first_line;
	line = line_rows_find(code->row, code->row_count, offset);
	return line ? line : code->first_line;
}
