/* SPDX-License-Identifier: BSD-2-Clause */
#include "elf/go_table.h"

#include <errno.h>
#include <string.h>

#include "base/array.h"
#include "base/bytes.h"
#include "elf/elf_symbol_table.h"

#define MAGIC_118 0xfffffff0U
#define MAGIC_120 0xfffffff1U
#define HEADER_BYTES 72U
#define HEADER_TEXT 24U	   /* Go 1.18 to 1.25 */
#define MODULE_TEXT 176U   /* in runtime.moduledata, Go 1.26 */
#define FUNCTION_BYTES 44U /* struct _func without what follows it */
#define FUNCTION_STEPS 16U /* its field pcsp */
#define FLAGS_118 37U	   /* its field flag */
#define FLAGS_120 41U	   /* behind startLine */
#define FLAG_TOP_FRAME 1U
#define FLAG_SP_WRITE 2U
#define MAX_FUNCTIONS (1U << 24)
#define MAX_DEPTH (1 << 30)
#define PAY_SEARCH 8U /* units: a binary search, and reading what it found */
#define VARINT_BYTES 5U

/* Returns the address that the program has at vaddr, of which `at` is what the file has there: a
 * loader may have yet to write it.  0: none. */
static uint64_t address_at(const struct elf_image *image, const uint8_t *at, uint64_t vaddr)
{
	uint64_t value = load_u64(at);
	uint32_t type;

	return !value && elf_image_relocation(image, vaddr, &type, &value) ? 0 : value;
}

static uint64_t find_text(const struct elf_image *image, const struct elf_section *table)
{
	const uint64_t text =
		address_at(image, table->data + HEADER_TEXT, table->vaddr + HEADER_TEXT);
	struct elf_section module;

	if (text || elf_image_section(image, ".go.module", &module) || !module.data ||
	    module.size < MODULE_TEXT + sizeof(text))
		return text;
	return address_at(image, module.data + MODULE_TEXT, module.vaddr + MODULE_TEXT);
}

static bool find_section(const struct elf_image *image, struct elf_section *ret_section)
{
	return (!elf_image_section(image, ".gopclntab", ret_section) ||
		!elf_image_section(image, ".data.rel.ro.gopclntab", ret_section)) &&
	       ret_section->data && ret_section->size >= HEADER_BYTES;
}

/* Word `word` of the table of functions: each has its address and where its record is. */
static uint32_t word_at(const struct go_table *table, size_t word)
{
	return load_u32(table->bytes + table->functions + word * sizeof(uint32_t));
}

/* Returns whether a search can rely on the order of the functions. */
static bool ascends(const struct go_table *table)
{
	uint32_t last = 0;

	if (!elf_work_pay(table->image->work, table->count, 2))
		return false;
	for (size_t i = 0; i <= table->count; i++) {
		const uint32_t start = word_at(table, 2 * i);

		if (start < last)
			return false;
		last = start;
	}
	return true;
}

int go_table_open(const struct elf_image *image, struct go_table *ret_table)
{
	struct elf_section section;
	struct go_table table = {.image = image};
	uint32_t magic;

	if (!find_section(image, &section))
		return -ENOENT;
	magic = load_u32(section.data);
	if ((magic != MAGIC_118 && magic != MAGIC_120) || section.data[7] != sizeof(uint64_t))
		return -ENOENT;
	table.bytes = section.data;
	table.size = section.size;
	table.quantum = section.data[6];
	table.flags_at = magic == MAGIC_118 ? FLAGS_118 : FLAGS_120;
	table.count = load_u64(section.data + 8);
	table.names = load_u64(section.data + 32);
	table.steps = load_u64(section.data + 56);
	table.functions = load_u64(section.data + 64);
	table.text = find_text(image, &section);
	if (!table.count || table.count > MAX_FUNCTIONS || table.names >= section.size ||
	    table.steps >= section.size || table.functions >= section.size ||
	    (2 * table.count + 1) * sizeof(uint32_t) > section.size - table.functions)
		return -EBADMSG;
	if (!table.text || !elf_image_code_at(image, table.text) || !ascends(&table))
		return -EBADMSG;
	*ret_table = table;
	return 0;
}

size_t go_table_upto(const struct go_table *table, uint64_t vaddr)
{
	if (!elf_work_pay(table->image->work, 1, PAY_SEARCH))
		return 0;
	return ARRAY_LEADING(table->count, at, table->text + word_at(table, 2 * at) <= vaddr);
}

int go_table_function(const struct go_table *table, size_t index, struct go_function *ret_function)
{
	const uint64_t room = table->size - table->functions;
	struct go_function found = {0};
	const uint8_t *record;
	uint64_t at, name;

	if (index >= table->count || !elf_work_pay(table->image->work, 1, PAY_SEARCH))
		return -EBADMSG;
	at = word_at(table, 2 * index + 1);
	if (at > room || FUNCTION_BYTES > room - at)
		return -EBADMSG;
	record = table->bytes + table->functions + at;
	found.low = table->text + word_at(table, 2 * index);
	found.high = table->text + word_at(table, 2 * index + 2);
	name = table->names + load_u32(record + 4);
	found.steps = table->steps + load_u32(record + FUNCTION_STEPS);
	if (found.high < found.low || name >= table->size || found.steps >= table->size)
		return -EBADMSG;
	found.name = (const char *)table->bytes + name;
	found.name_room = table->size - name;
	found.is_outermost = record[table->flags_at] & FLAG_TOP_FRAME;
	found.sets_stack = record[table->flags_at] & FLAG_SP_WRITE;
	*ret_function = found;
	return 0;
}

int go_table_find(const struct go_table *table, uint64_t vaddr, struct go_function *ret_function)
{
	const size_t upto = table->count ? go_table_upto(table, vaddr) : 0;
	struct go_function found;

	if (!upto || go_table_function(table, upto - 1, &found) || vaddr >= found.high)
		return -ENOENT;
	*ret_function = found;
	return 0;
}

bool go_function_is(const struct go_function *function, const char *name)
{
	const size_t size = strlen(name) + 1;

	return function->name_room >= size && !memcmp(function->name, name, size);
}

int go_table_named(const struct go_table *table, const char *name, struct go_function *ret_function)
{
	struct go_function found;

	for (size_t i = 0; i < table->count && !elf_work_is_over(table->image->work); i++)
		if (!go_table_function(table, i, &found) && go_function_is(&found, name)) {
			*ret_function = found;
			return 0;
		}
	return -ENOENT;
}

void go_steps_begin(const struct go_table *table, const struct go_function *function,
		    struct go_steps *ret_steps)
{
	*ret_steps = (struct go_steps){.table = table,
				       .at = function->steps,
				       .end = table->size,
				       .low = function->low,
				       .high = function->low,
				       .limit = function->high,
				       .depth = -1};
}

static bool read_varint(struct go_steps *steps, uint32_t *ret_value)
{
	uint32_t value = 0;

	for (unsigned int i = 0; i < VARINT_BYTES && steps->at < steps->end; i++) {
		const uint8_t byte = steps->table->bytes[steps->at++];

		value |= (uint32_t)(byte & 0x7f) << 7 * i;
		if (byte & 0x80)
			continue;
		*ret_value = value;
		return true;
	}
	return false;
}

bool go_steps_next(struct go_steps *steps)
{
	const bool is_first = steps->at && steps->depth == -1 && steps->high == steps->low;
	uint32_t up, pc;

	if (steps->high >= steps->limit ||
	    !elf_work_pay(steps->table->image->work, 1, PAY_SEARCH) || !read_varint(steps, &up) ||
	    (!up && !is_first) || !read_varint(steps, &pc))
		return false;
	/* Zigzag: the lowest bit is the sign. */
	steps->depth += up & 1 ? -(int64_t)(up >> 1) - 1 : (int64_t)(up >> 1);
	steps->low = steps->high;
	steps->high += (uint64_t)pc * steps->table->quantum;
	if (steps->high > steps->limit)
		steps->high = steps->limit;
	return steps->depth >= 0 && steps->depth < MAX_DEPTH && steps->high > steps->low;
}
