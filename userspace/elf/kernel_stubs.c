/* SPDX-License-Identifier: BSD-2-Clause */
#include "elf/kernel_stubs.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "elf/call_constants.h"
#include "elf/elf_image.h"
#include "elf/elf_symbol_table.h"

/* What words of an ELF file's data are once the file is loaded: addresses, which relocations put
 * there.  elf_image -> [elf_slots].  No state. */

/* What slots are resolved with. */
struct resolving {
	const struct elf_image *image;
	struct elf_work *work;
	struct elf_symbol_table symbols; /* .dynsym; count 0: there is none */
	struct elf_slot *slot;
	size_t count;
};

static void read_contents(const struct resolving *resolving)
{
	for (size_t i = 0; i < resolving->count; i++) {
		struct elf_slot *slot = &resolving->slot[i];
		const uint8_t *at = elf_image_at(resolving->image, slot->vaddr, 8);

		slot->value = 0;
		if (at && elf_work_pay(resolving->work, 1, ELF_WORK_PER_HEADER))
			memcpy(&slot->value, at, sizeof(slot->value));
	}
}

/* Returns the first slot at or behind an address. */
static struct elf_slot *slot_at(const struct resolving *resolving, uint64_t vaddr)
{
	return resolving->slot +
	       ARRAY_LEADING(resolving->count, at, resolving->slot[at].vaddr < vaddr);
}

/* Returns the address that a relocation stores; 0: none of this file. */
static uint64_t value_of(const struct resolving *resolving, const Elf64_Rela *rela)
{
	const uint32_t type = ELF64_R_TYPE(rela->r_info), index = ELF64_R_SYM(rela->r_info);
	const bool is_arm = resolving->image->machine == EM_AARCH64;
	Elf64_Sym symbol;

	if (type == (is_arm ? R_AARCH64_RELATIVE : R_X86_64_RELATIVE))
		return (uint64_t)rela->r_addend;
	if (type != (is_arm ? R_AARCH64_GLOB_DAT : R_X86_64_GLOB_DAT) &&
	    type != (is_arm ? R_AARCH64_ABS64 : R_X86_64_64))
		return 0;
	if (index >= resolving->symbols.count)
		return 0;
	symbol = elf_symbol_table_entry(&resolving->symbols, index);
	if (symbol.st_shndx == SHN_UNDEF || ELF64_ST_TYPE(symbol.st_info) == STT_GNU_IFUNC)
		return 0;
	return symbol.st_value + (uint64_t)rela->r_addend;
}

static void apply(const struct resolving *resolving, const uint8_t *data, size_t count)
{
	const uint64_t first = resolving->slot[0].vaddr;
	const uint64_t last = resolving->slot[resolving->count - 1].vaddr;

	for (size_t i = 0; i < count; i++) {
		Elf64_Rela rela;
		struct elf_slot *slot;

		memcpy(&rela, data + i * sizeof(rela), sizeof(rela));
		if (rela.r_offset < first || rela.r_offset > last)
			continue;
		/* Several slots may be one. */
		for (slot = slot_at(resolving, rela.r_offset);
		     slot < resolving->slot + resolving->count && slot->vaddr == rela.r_offset;
		     slot++)
			slot->value = value_of(resolving, &rela);
	}
}

static void forget_all(const struct resolving *resolving)
{
	for (size_t i = 0; i < resolving->count; i++)
		resolving->slot[i].value = 0;
}

/* Finds the values of slots, ascending by vaddr.  Without a relocation a slot is what the file has
 * there (as DT_RELR wants it).  work: pays, in units of elf/elf_image.h; where it is over, slots
 * have no value. */
static void elf_slots_resolve(const struct elf_image *image, struct elf_work *work,
			      struct elf_slot *slot, size_t count)
{
	struct resolving resolving = {.image = image, .work = work, .slot = slot, .count = count};
	struct elf_section section;

	if (!count)
		return;
	read_contents(&resolving);
	if (elf_image_symbol_table(image, SHT_DYNSYM, &resolving.symbols))
		resolving.symbols.count = 0;
	if (!elf_image_section(image, ".rela.dyn", &section) && section.data &&
	    elf_work_pay(work, section.size / sizeof(Elf64_Rela), ELF_WORK_PER_HEADER))
		apply(&resolving, section.data, section.size / sizeof(Elf64_Rela));
	/* A slot without its relocation would be taken for another one. */
	if (elf_work_is_over(work))
		forget_all(&resolving);
}

/* Arguments of __cudaRegisterFunction. */
enum { HANDLE, STUB, DEVICE_FUNCTION, DEVICE_NAME, THREAD_LIMIT };

struct kernel_stubs {
	struct kernel_stub *stub; /* owned; sorted by vaddr */
	size_t count, capacity;
};

/* A stub whose address is what a slot has. */
struct stub_in_slot {
	uint64_t slot;
	struct kernel_stub stub;
};

struct reading {
	const struct elf_image *image;
	const struct function_bounds *bounds;
	struct kernel_stubs *stubs;
	struct elf_work work;
	struct stub_in_slot *in_slot; /* owned */
	size_t in_slot_count, in_slot_capacity;
	/* Functions to be read, by their first instruction; the constructors, and then what these
	 * refer to. */
	uint64_t *function; /* owned */
	size_t function_count, function_capacity;
	bool may_follow; /* what is read is a constructor */
	int err;
};

static void reading_release(struct reading *reading)
{
	free(reading->in_slot);
	free(reading->function);
}

static bool is_code(const struct elf_image *image, uint64_t vaddr)
{
	const struct elf_segment *segment = elf_image_code_at(image, vaddr);

	return segment && vaddr - segment->vaddr < segment->file_size;
}

/* ---- one call ---- */

static bool is_of_name(uint8_t byte)
{
	return (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') ||
	       (byte >= '0' && byte <= '9') || byte == '_' || byte == '$' || byte == '.';
}

/* Finds the name at an address.  Returns its size; 0: there is none. */
static uint32_t find_name(struct reading *reading, uint64_t vaddr, const char **ret_name)
{
	const uint64_t readable = elf_image_readable_bytes(reading->image, vaddr);
	const uint8_t *at = readable ? elf_image_at(reading->image, vaddr, 1) : NULL;
	uint32_t size = 0;

	if (!at)
		return 0;
	while (size < readable && size <= KERNEL_STUB_NAME_MAX_BYTES && is_of_name(at[size]))
		size++;
	if (!elf_work_pay(&reading->work, size, 1) || size == readable ||
	    size > KERNEL_STUB_NAME_MAX_BYTES || at[size])
		return 0;
	*ret_name = (const char *)at;
	return size;
}

static void add_stub(struct reading *reading, const struct kernel_stub *stub)
{
	struct kernel_stubs *stubs = reading->stubs;

	if (!is_code(reading->image, stub->vaddr))
		return;
	if (stubs->count == KERNEL_STUBS_MAX)
		return;
	reading->err = ARRAY_RESERVE(stubs->stub, stubs->count, stubs->capacity);
	if (!reading->err)
		stubs->stub[stubs->count++] = *stub;
}

static void add_stub_in_slot(struct reading *reading, const struct kernel_stub *stub)
{
	if (reading->in_slot_count == KERNEL_STUBS_MAX)
		return;
	reading->err =
		ARRAY_RESERVE(reading->in_slot, reading->in_slot_count, reading->in_slot_capacity);
	if (!reading->err)
		reading->in_slot[reading->in_slot_count++] =
			(struct stub_in_slot){.slot = stub->vaddr, .stub = *stub};
}

static void on_call(void *context, const struct call_value argument[CALL_ARGUMENTS])
{
	const struct call_value *name = &argument[DEVICE_NAME], *stub_at = &argument[STUB];
	struct reading *reading = context;
	struct kernel_stub stub = {.vaddr = stub_at->value};

	if (reading->err || stub_at->kind == CALL_UNKNOWN || name->kind != CALL_VALUE ||
	    argument[DEVICE_FUNCTION].kind != CALL_VALUE ||
	    argument[DEVICE_FUNCTION].value != name->value ||
	    argument[THREAD_LIMIT].kind != CALL_VALUE ||
	    (uint32_t)argument[THREAD_LIMIT].value != UINT32_MAX)
		return;
	stub.name_size = find_name(reading, name->value, &stub.name);
	if (!stub.name_size)
		return;
	if (stub_at->kind == CALL_VALUE)
		add_stub(reading, &stub);
	else
		add_stub_in_slot(reading, &stub);
}

/* ---- functions ---- */

static void add_function(struct reading *reading, uint64_t vaddr)
{
	if (reading->function_count == KERNEL_STUB_FUNCTIONS_MAX)
		return;
	reading->err = ARRAY_RESERVE(reading->function, reading->function_count,
				     reading->function_capacity);
	if (!reading->err)
		reading->function[reading->function_count++] = vaddr;
}

static void on_address(void *context, uint64_t vaddr)
{
	struct reading *reading = context;

	if (reading->may_follow && !reading->err && is_code(reading->image, vaddr))
		add_function(reading, vaddr);
}

/* Sorts functions from `from` on, and keeps each once. */
static void sort_functions(struct reading *reading, size_t from)
{
	const size_t count = reading->function_count - from;
	uint64_t *function;
	size_t kept = 0;

	if (!count)
		return;
	function = reading->function + from;
	qsort(function, count, sizeof(*function), order_u64);
	for (size_t i = 0; i < count; i++)
		if (!kept || function[i] != function[kept - 1])
			function[kept++] = function[i];
	reading->function_count = from + kept;
}

static void read_function(struct reading *reading, uint64_t vaddr)
{
	const struct call_handlers handlers = {
		.on_call = on_call, .on_address = on_address, .context = reading};
	uint64_t low, high, size;
	const uint8_t *code;

	/* Inside of a function are its own jumps. */
	if (!reading->bounds->find(reading->bounds->context, vaddr, &low, &high) || low != vaddr)
		return;
	size = high - low;
	if (size > KERNEL_STUB_CODE_MAX_BYTES)
		size = KERNEL_STUB_CODE_MAX_BYTES;
	code = elf_image_at(reading->image, low, size);
	if (!code)
		return;
	if (elf_work_pay(&reading->work, size, KERNEL_STUB_UNITS_PER_BYTE))
		call_constants_read(reading->image->machine, code, size, low, &handlers);
}

static void read_functions(struct reading *reading, size_t from, size_t to)
{
	for (size_t i = from;
	     i < to && !reading->err && elf_work_pay(&reading->work, 1, ELF_WORK_PER_FDE); i++)
		read_function(reading, reading->function[i]);
}

/* ---- constructors ---- */

/* Returns the addresses that a section of them has; NULL with *ret_err 0: none. */
static struct elf_slot *read_constructors(struct reading *reading, size_t *ret_count)
{
	struct elf_section section;
	struct elf_slot *slot;
	size_t count;

	*ret_count = 0;
	if (elf_image_section(reading->image, ".init_array", &section))
		return NULL;
	count = section.size / sizeof(uint64_t);
	if (count > KERNEL_STUB_FUNCTIONS_MAX)
		count = KERNEL_STUB_FUNCTIONS_MAX;
	if (!count)
		return NULL;
	slot = calloc(count, sizeof(*slot));
	if (!slot) {
		reading->err = -ENOMEM;
		return NULL;
	}
	for (size_t i = 0; i < count; i++)
		slot[i].vaddr = section.vaddr + i * sizeof(uint64_t);
	elf_slots_resolve(reading->image, &reading->work, slot, count);
	*ret_count = count;
	return slot;
}

/* Constructors, and then what they call or pass on: both may have the calls. */
static void read_all(struct reading *reading)
{
	size_t count, constructors;
	OWNED_MEM struct elf_slot *slot = read_constructors(reading, &count);

	for (size_t i = 0; i < count && !reading->err; i++)
		if (slot[i].value)
			add_function(reading, slot[i].value);
	sort_functions(reading, 0);
	constructors = reading->function_count;
	reading->may_follow = true;
	read_functions(reading, 0, constructors);
	reading->may_follow = false;
	if (reading->err)
		return;
	sort_functions(reading, constructors);
	read_functions(reading, constructors, reading->function_count);
}

/* ---- stubs whose addresses are in slots ---- */

static int compare_in_slots(const void *a, const void *b)
{
	return ORDER(((const struct stub_in_slot *)a)->slot,
		     ((const struct stub_in_slot *)b)->slot);
}

static void add_from_slots(struct reading *reading)
{
	const size_t count = reading->in_slot_count;
	OWNED_MEM struct elf_slot *slot = NULL;

	if (!count || reading->err)
		return;
	slot = calloc(count, sizeof(*slot));
	if (!slot) {
		reading->err = -ENOMEM;
		return;
	}
	qsort(reading->in_slot, count, sizeof(*reading->in_slot), compare_in_slots);
	for (size_t i = 0; i < count; i++)
		slot[i].vaddr = reading->in_slot[i].slot;
	elf_slots_resolve(reading->image, &reading->work, slot, count);
	for (size_t i = 0; i < count && !reading->err; i++) {
		struct kernel_stub stub = reading->in_slot[i].stub;

		stub.vaddr = slot[i].value;
		add_stub(reading, &stub);
	}
}

/* ---- the table ---- */

static int compare_stubs(const void *a, const void *b)
{
	return ORDER(((const struct kernel_stub *)a)->vaddr,
		     ((const struct kernel_stub *)b)->vaddr);
}

static bool have_one_name(const struct kernel_stub *a, const struct kernel_stub *b)
{
	return a->name_size == b->name_size && !memcmp(a->name, b->name, a->name_size);
}

/* Sorts stubs.  Of one that is registered again one row stays, of one with two names none. */
static void tidy(struct kernel_stubs *stubs)
{
	size_t kept = 0;

	if (!stubs->count)
		return;
	qsort(stubs->stub, stubs->count, sizeof(*stubs->stub), compare_stubs);
	for (size_t from = 0, to; from < stubs->count; from = to) {
		bool is_one = true;

		for (to = from + 1;
		     to < stubs->count && stubs->stub[to].vaddr == stubs->stub[from].vaddr; to++)
			is_one &= have_one_name(&stubs->stub[from], &stubs->stub[to]);
		if (is_one)
			stubs->stub[kept++] = stubs->stub[from];
	}
	stubs->count = kept;
}

int kernel_stubs_read(const struct elf_image *image, const struct function_bounds *bounds,
		      struct kernel_stubs **ret_stubs)
{
	OWNED(kernel_stubs) struct kernel_stubs *stubs = calloc(1, sizeof(*stubs));
	CLEANUP(reading_release) struct reading reading = {
		.image = image,
		.bounds = bounds,
		.stubs = stubs,
		.work = {.limit = KERNEL_STUBS_MAX_UNITS},
	};
	struct elf_section section;

	if (!stubs)
		return -ENOMEM;
	if (!elf_image_section(image, ".nvFatBinSegment", &section)) {
		read_all(&reading);
		add_from_slots(&reading);
		tidy(stubs);
	}
	if (reading.err)
		return reading.err;
	*ret_stubs = TAKE(stubs);
	return 0;
}

void kernel_stubs_free(struct kernel_stubs *stubs)
{
	if (!stubs)
		return;
	free(stubs->stub);
	free(stubs);
}

const struct kernel_stub *kernel_stubs_find(const struct kernel_stubs *stubs, uint64_t vaddr)
{
	const struct kernel_stub key = {.vaddr = vaddr};

	return stubs->count ? bsearch(&key, stubs->stub, stubs->count, sizeof(key), compare_stubs)
			    : NULL;
}

bool kernel_stub_of_symbol(const char *symbol, size_t size, const char **ret_name, size_t *ret_size)
{
	static const char prefix[] = "__device_stub_";
	const size_t prefix_size = sizeof(prefix) - 1;
	size_t at = 0, end = size, bytes = 0;

	/* _Z, L where it is static, the number of bytes, the identifier: Itanium C++ ABI, 5.1.2 */
	if (size > 2 && symbol[0] == '_' && symbol[1] == 'Z') {
		at = symbol[2] == 'L' ? 3 : 2;
		while (at < size && symbol[at] >= '0' && symbol[at] <= '9' && bytes < size)
			bytes = 10 * bytes + (size_t)(symbol[at++] - '0');
		if (bytes > size - at)
			return false;
		end = at + bytes;
	}
	if (end - at <= prefix_size || memcmp(symbol + at, prefix, prefix_size) != 0)
		return false;
	*ret_name = symbol + at + prefix_size;
	*ret_size = end - at - prefix_size;
	return true;
}
