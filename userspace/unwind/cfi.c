/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/array.h"
#include "elf/debug_file.h"
#include "unwind/cfi_internal.h"

#include <dwarf.h>
#include <errno.h>

/* The index: FDEs sorted by start, each as two signed 32-bit distances, like .eh_frame_hdr's
 * table. */
struct index_entry {
	int32_t start;	/* distance from start_base */
	int32_t record; /* distance from record_base */
};
_Static_assert(sizeof(struct index_entry) == 8, "laid over .eh_frame_hdr");

#define UNPACKED_MAX_BYTES (8U << 20) /* of a compressed section */
#define FIRST_NOPS_MAX 64U	      /* before the first instruction; compilers write none */

/* Deep stacks and sleeping threads contain the same few addresses. */
#define MEMO_SLOTS 256U
struct rule_memo {
	uint64_t vaddr1; /* address + 1; 0: empty */
	struct pp_rule rule;
};

/* The FDEs of one section. */
struct cfi_table {
	const uint8_t *entries; /* struct index_entry[], not aligned */
	size_t count;
	uint64_t start_base, record_base;
	struct index_entry *built; /* owned; NULL: entries is the file's own table */
	size_t built_capacity;
	uint8_t *unpacked; /* owned; the section, where the file has it compressed */
	struct cfi_records records;
};

/* What tells how to unwind, the best first: code that one of them lacks is looked up in the next.
 * Compilers put some functions into .debug_frame alone (-fno-asynchronous-unwind-tables), and Go
 * all of its own. */
enum { EH_FRAME, DEBUG_FRAME, TABLES, GO = TABLES, PARTS };

/* Where functions of other stacks return to: nothing calls them (cfi_add_root()). */
#define ROOTS_MAX 4U

struct cfi {
	const struct elf_image *image;
	struct cfi_table table[TABLES];
	struct go_table go;	    /* count 0: none */
	struct cfi_program program; /* scratch */
	const uint8_t *trampoline;
	size_t trampoline_size;
	uint64_t outermost; /* start of the function that has no caller; 0: none */
	uint64_t root[ROOTS_MAX];
	size_t root_count;
	struct rule_memo memo[MEMO_SLOTS];
};

static struct index_entry entry_at(const struct cfi_table *table, size_t i)
{
	struct index_entry entry;

	memcpy(&entry, table->entries + i * sizeof(entry), sizeof(entry));
	return entry;
}

static uint64_t start_of(const struct cfi_table *table, size_t i)
{
	return table->start_base + (uint64_t)(int64_t)entry_at(table, i).start;
}

static uint64_t record_of(const struct cfi_table *table, size_t i)
{
	return table->record_base + (uint64_t)(int64_t)entry_at(table, i).record -
	       table->records.section.vaddr;
}

/* Returns the index of the first entry whose start is >= (or, with `after`, >) vaddr. */
static size_t lower_bound(const struct cfi_table *table, uint64_t vaddr, bool after)
{
	if (after)
		return ARRAY_LEADING(table->count, at, start_of(table, at) <= vaddr);
	return ARRAY_LEADING(table->count, at, start_of(table, at) < vaddr);
}

static int add_built(struct cfi_table *table, uint64_t start, uint64_t offset)
{
	int64_t from_base = (int64_t)(start - table->start_base);
	int64_t record = (int64_t)(offset + table->records.section.vaddr - table->record_base);

	if (from_base != (int32_t)from_base || record != (int32_t)record)
		return 0;
	if (ARRAY_RESERVE(table->built, table->count, table->built_capacity))
		return -ENOMEM;
	table->built[table->count++] =
		(struct index_entry){.start = (int32_t)from_base, .record = (int32_t)record};
	return 0;
}

static int compare_entries(const void *left, const void *right)
{
	const struct index_entry *a = left, *b = right;

	return ORDER(a->start, b->start) ?: ORDER(a->record, b->record);
}

/* Walks all records and builds the index.  What follows a damaged record is lost.  Empty FDEs, and
 * those of code that the linker dropped (at 0 or ~0 in .debug_frame), are left out. */
static int build_index(const struct elf_image *image, struct cfi_table *table)
{
	const struct cfi_section *section = &table->records.section;
	struct cfi_record record;
	uint64_t offset = 0;

	table->count = 0;
	table->start_base = image->min_vaddr + 0x80000000;
	table->record_base = section->vaddr + 0x80000000;
	while (offset < section->size) {
		int err = cfi_record_read(section, offset, &record);
		struct cfi_fde fde;

		if (!elf_work_pay(table->records.work, 1, ELF_WORK_PER_FDE_SORTED))
			return -E2BIG;
		if (err == -EBADMSG || (err == -ENOENT && section->ends_at_zero))
			break;
		if (!err && !record.is_cie && !cfi_fde_read(&table->records, offset, &fde) &&
		    fde.low < fde.high && elf_image_code_at(image, fde.low)) {
			err = add_built(table, fde.low, offset);
			if (err)
				return err;
		}
		offset = record.next;
	}
	if (!table->count)
		return -EBADMSG;
	table->entries = (const uint8_t *)table->built;
	qsort(table->built, table->count, sizeof(*table->built), compare_entries);
	return 0;
}

/* Finds .eh_frame by the header's pointer to it, because a stripped file may have no sections. */
static int find_eh_frame(const struct elf_image *image, uint64_t vaddr,
			 struct cfi_section *ret_section)
{
	struct elf_section section;

	if (!elf_image_section(image, ".eh_frame", &section) && section.data &&
	    section.vaddr == vaddr) {
		*ret_section = (struct cfi_section){
			.data = section.data, .size = section.size, .vaddr = section.vaddr};
		return 0;
	}
	for (size_t i = 0; i < image->segment_count; i++) {
		const struct elf_segment *segment = &image->segment[i];
		uint64_t size;
		const uint8_t *data;

		if (vaddr < segment->vaddr || vaddr - segment->vaddr >= segment->file_size)
			continue;
		size = elf_image_readable_bytes(image, vaddr);
		data = elf_image_at(image, vaddr, size);
		if (!data)
			return -EBADMSG;
		*ret_section = (struct cfi_section){
			.data = data, .size = size, .vaddr = vaddr, .ends_at_zero = true};
		return 0;
	}
	return -EBADMSG;
}

/* Returns whether a search can rely on the table: it is sorted, and points only into .eh_frame. */
static bool is_table_sane(const struct cfi_table *table)
{
	uint64_t last = 0;

	if (!elf_work_pay(table->records.work, table->count, 2))
		return false;
	for (size_t i = 0; i < table->count; i++) {
		uint64_t start = start_of(table, i);

		if (start < last || record_of(table, i) >= table->records.section.size)
			return false;
		last = start;
	}
	return table->count > 0;
}

static int open_eh_frame_hdr(const struct elf_image *image, struct cfi_table *table)
{
	enum { TABLE_DATAREL_SDATA4 = 0x3b, COUNT_UDATA4 = 0x03 };
	struct cfi_reader reader;
	struct elf_section header;
	uint8_t version, pointer_encoding, count_encoding, table_encoding;
	uint64_t eh_frame, count = 0;
	int err;

	err = elf_image_eh_frame_hdr(image, &header);
	if (err)
		return err;
	reader = (struct cfi_reader){.at = header.data, .end = header.data + header.size};
	version = cfi_read_u8(&reader);
	pointer_encoding = cfi_read_u8(&reader);
	count_encoding = cfi_read_u8(&reader);
	table_encoding = cfi_read_u8(&reader);
	eh_frame = cfi_read_encoded(&reader, pointer_encoding, header.vaddr + 4, header.vaddr);
	if (reader.is_bad || version != 1)
		return -EBADMSG;
	err = find_eh_frame(image, eh_frame, &table->records.section);
	if (err)
		return err;
	if (count_encoding == COUNT_UDATA4)
		count = cfi_read_u32(&reader);
	table->entries = reader.at;
	table->count = count;
	table->start_base = table->record_base = header.vaddr;
	if (table_encoding == TABLE_DATAREL_SDATA4 && !reader.is_bad &&
	    count <= (uint64_t)(reader.end - reader.at) / sizeof(struct index_entry) &&
	    is_table_sane(table))
		return 0;
	return build_index(image, table);
}

/* Returns 0; -ENOENT: there is no such section; -ENODATA; else as build_index(). */
static int open_section(const struct elf_image *image, struct cfi_table *table, const char *name,
			bool is_debug_frame)
{
	struct elf_section section;
	size_t size;
	int err;

	err = elf_image_section(image, name, &section);
	if (!err && section.flags & SHF_COMPRESSED) {
		err = elf_section_unpack(image, &section, UNPACKED_MAX_BYTES, &table->unpacked,
					 &size);
		section.data = table->unpacked;
		section.size = size;
	}
	if (err)
		return err;
	if (!section.data || !section.size)
		return -ENODATA;
	table->records.section = (struct cfi_section){.data = section.data,
						      .size = section.size,
						      .vaddr = section.vaddr,
						      .is_debug_frame = is_debug_frame};
	memset(table->records.cie, 0, sizeof(table->records.cie));
	return build_index(image, table);
}

/* Opens what the file has.  *ret_is_damaged: some of it cannot be read. */
static int open_parts(struct cfi *cfi, bool *ret_is_damaged)
{
	const struct elf_image *image = cfi->image;
	int err = open_eh_frame_hdr(image, &cfi->table[EH_FRAME]);

	*ret_is_damaged = err == -EBADMSG;
	if (err && err != -ENOMEM) {
		err = open_section(image, &cfi->table[EH_FRAME], ".eh_frame", false);
		*ret_is_damaged |= err == -EBADMSG;
	}
	if (err == -ENOMEM)
		return err;
	if (err)
		cfi->table[EH_FRAME].count = 0;
	/* Go's own table says the same as its .debug_frame, and more. */
	if (!go_table_open(image, &cfi->go))
		return 0;
	err = open_section(image, &cfi->table[DEBUG_FRAME], ".debug_frame", true);
	*ret_is_damaged |= err == -EBADMSG;
	if (err)
		cfi->table[DEBUG_FRAME].count = 0;
	return err == -ENOMEM ? err : 0;
}

int cfi_open(const struct elf_image *image, struct cfi **ret_cfi)
{
	OWNED(cfi) struct cfi *cfi = calloc(1, sizeof(*cfi));
	bool is_damaged;
	int err;

	if (!cfi)
		return -ENOMEM;
	cfi->image = image;
	for (size_t i = 0; i < TABLES; i++) {
		cfi->table[i].records.work = image->work;
		cfi_machine_of(image->machine, &cfi->table[i].records.machine);
	}
	cfi->trampoline_size = cfi_trampoline(image->machine, &cfi->trampoline);
	err = open_parts(cfi, &is_damaged);
	if (err)
		return err;
	if (elf_work_is_over(image->work))
		return -E2BIG;
	if (!cfi_fde_count(cfi))
		return is_damaged ? -EBADMSG : -ENODATA;
	*ret_cfi = TAKE(cfi);
	return 0;
}

void cfi_free(struct cfi *cfi)
{
	if (!cfi)
		return;
	for (size_t i = 0; i < TABLES; i++) {
		free(cfi->table[i].built);
		free(cfi->table[i].unpacked);
	}
	free(cfi);
}

void cfi_set_outermost(struct cfi *cfi, uint64_t vaddr)
{
	cfi->outermost = vaddr;
}

void cfi_add_root(struct cfi *cfi, uint64_t vaddr)
{
	if (cfi->root_count < ROOTS_MAX)
		cfi->root[cfi->root_count++] = vaddr;
}

size_t cfi_fde_count(const struct cfi *cfi)
{
	return cfi->table[EH_FRAME].count + cfi->table[DEBUG_FRAME].count + cfi->go.count;
}

static int read_fde(struct cfi_table *table, size_t i, struct cfi_fde *ret_fde)
{
	struct cfi_fde fde;

	if (cfi_fde_read(&table->records, record_of(table, i), &fde) ||
	    fde.low != start_of(table, i))
		return -EBADMSG;
	*ret_fde = fde;
	return 0;
}

/* Receives rows of [low, high), which are appended to rows, beginning at `first`. */
struct row_sink {
	struct cfi_rows *rows;
	size_t first;
	uint64_t low, high, limit; /* rows at or above limit are dropped */
	uint64_t budget;	   /* instruction bytes: in a sane file no FDE is executed twice */
	size_t bad_fdes;
	bool is_out_of_memory;
};

/* Sets the rule that holds from vaddr on, in place of anything put there before. */
static void put(struct row_sink *sink, uint64_t vaddr, struct pp_rule rule)
{
	struct cfi_rows *rows = sink->rows;

	if (vaddr >= sink->limit)
		return;
	if (vaddr < sink->low)
		vaddr = sink->low;
	while (rows->count > sink->first && rows->row[rows->count - 1].vaddr >= vaddr)
		rows->count--;
	if (rows->count > sink->first &&
	    !memcmp(&rows->row[rows->count - 1].rule, &rule, sizeof(rule)))
		return;
	if (ARRAY_RESERVE(rows->row, rows->count, rows->capacity)) {
		sink->is_out_of_memory = true;
		return;
	}
	rows->row[rows->count++] = (struct cfi_row){.vaddr = vaddr, .rule = rule};
}

static const struct pp_rule no_info = {.kind = PP_RULE_NO_INFO};
static const struct pp_rule outermost = {.kind = PP_RULE_STOP};
static const struct pp_rule signal_frame = {.kind = PP_RULE_SIGNAL};

static void put_fde(struct cfi *cfi, struct cfi_records *records, struct row_sink *sink,
		    const struct cfi_fde *fde)
{
	uint64_t size = (uint64_t)(fde->program.end - fde->program.at);
	uint64_t low;
	int more;

	if (size > sink->budget ||
	    !elf_work_pay(records->work, size, ELF_WORK_PER_INSTRUCTION_BYTE)) {
		sink->bad_fdes++;
		return;
	}
	sink->budget -= size;
	if (fde->low && fde->low == cfi->outermost) {
		put(sink, fde->low, outermost);
		return;
	}
	cfi_program_start(&cfi->program, records, fde);
	while ((more = cfi_program_next(&cfi->program, &low)) > 0)
		put(sink, low, cfi_state_rule(&records->machine, fde->cie, &cfi->program.state));
	if (more < 0) {
		sink->bad_fdes++;
		put(sink, fde->low, no_info);
	}
}

static bool is_trampoline(const struct cfi *cfi, uint64_t vaddr)
{
	const uint8_t *code = elf_image_at(cfi->image, vaddr, cfi->trampoline_size);

	return code && !memcmp(code, cfi->trampoline, cfi->trampoline_size);
}

/* Returns whether the row must begin one byte early.  A handler returns to the trampoline's first
 * byte, and callers are looked up at pc - 1.  glibc and the vDSO start the FDE early for that; for
 * others we include the byte before. */
static bool starts_late(const struct cfi *cfi, const struct cfi_fde *fde, uint64_t previous_end)
{
	return fde->cie->is_signal && fde->low &&
	       (previous_end < fde->low || is_trampoline(cfi, fde->low));
}

/* Puts the FDEs [i, end), which start at one address and of which at most one has code.  Returns
 * the end of the code. */
static uint64_t put_group(struct cfi *cfi, struct cfi_table *table, struct row_sink *sink, size_t i,
			  size_t end, uint64_t previous_end)
{
	uint64_t start = start_of(table, i), covered_end = start;
	struct cfi_fde fde;

	put(sink, start, no_info);
	for (; i < end; i++) {
		if (read_fde(table, i, &fde)) {
			sink->bad_fdes++;
			continue;
		}
		if (fde.low == fde.high)
			continue;
		covered_end = fde.high;
		if (start < sink->high)
			put_fde(cfi, &table->records, sink, &fde);
		if (starts_late(cfi, &fde, previous_end)) {
			put(sink, start - 1, signal_frame);
			put_fde(cfi, &table->records, sink, &fde);
		}
	}
	return covered_end;
}

static void put_go_function(struct cfi *cfi, struct row_sink *sink,
			    const struct go_function *function)
{
	struct pp_rule rule;
	struct cfi_go go;
	uint64_t low;

	put(sink, function->low, no_info);
	if (is_trampoline(cfi, function->low)) { /* as starts_late() */
		put(sink, function->low - 1, signal_frame);
		return;
	}
	if (function->low >= sink->high)
		return;
	cfi_go_start(&go, &cfi->go, &cfi->table[EH_FRAME].records.machine, function);
	while (cfi_go_next(&go, &low, &rule))
		put(sink, low, rule);
}

static void put_go(struct cfi *cfi, struct row_sink *sink)
{
	size_t i = cfi->go.count ? go_table_upto(&cfi->go, sink->low) : 0;
	struct go_function function;

	/* Include what starts at the end: the trampoline. */
	for (i = i ? i - 1 : 0; i < cfi->go.count && !elf_work_is_over(cfi->image->work); i++) {
		if (go_table_function(&cfi->go, i, &function)) {
			sink->bad_fdes++;
			continue;
		}
		if (function.low > sink->high)
			return;
		put_go_function(cfi, sink, &function);
		put(sink, function.high, no_info);
	}
}

static void put_part(struct cfi *cfi, struct row_sink *sink, size_t part);

/* Fills what a part has no rows for from the next one. */
static void put_gap(struct cfi *cfi, struct row_sink *sink, size_t part, uint64_t low,
		    uint64_t high)
{
	const struct row_sink outer = *sink;

	put(sink, low, no_info);
	sink->low = low > outer.low ? low : outer.low;
	sink->high = sink->limit = high < outer.high ? high : outer.high;
	if (part + 1 < PARTS && sink->low < sink->high)
		put_part(cfi, sink, part + 1);
	sink->low = outer.low;
	sink->high = outer.high;
	sink->limit = outer.limit;
}

static void put_table(struct cfi *cfi, struct row_sink *sink, size_t part)
{
	struct cfi_table *table = &cfi->table[part];
	size_t i = lower_bound(table, sink->low, true);
	uint64_t previous_end = 0;

	if (i)
		i = lower_bound(table, start_of(table, i - 1), false);
	put_gap(cfi, sink, part, sink->low, i < table->count ? start_of(table, i) : sink->high);
	/* Include what starts at `high`: see starts_late(). */
	while (i < table->count && start_of(table, i) <= sink->high &&
	       !elf_work_is_over(table->records.work)) {
		uint64_t start = start_of(table, i);
		size_t end = i + 1;
		uint64_t next_start = UINT64_MAX;

		while (end < table->count && start_of(table, end) == start)
			end++;
		if (end < table->count)
			next_start = start_of(table, end);
		sink->limit = sink->high < next_start ? sink->high : next_start;
		previous_end = put_group(cfi, table, sink, i, end, previous_end);
		if (previous_end > next_start)
			previous_end = next_start;
		if (previous_end == start || next_start - previous_end > CFI_MAX_PADDING_BYTES)
			put_gap(cfi, sink, part, previous_end, next_start);
		i = end;
	}
}

/* Puts the rows of [sink->low, sink->high) that a part and those behind it have. */
static void put_part(struct cfi *cfi, struct row_sink *sink, size_t part)
{
	if (part == GO)
		put_go(cfi, sink);
	else
		put_table(cfi, sink, part);
}

static void insert_row(struct row_sink *sink, size_t at, struct cfi_row row)
{
	struct cfi_rows *rows = sink->rows;

	if (ARRAY_RESERVE(rows->row, rows->count, rows->capacity)) {
		sink->is_out_of_memory = true;
		return;
	}
	memmove(&rows->row[at + 1], &rows->row[at], (rows->count - at) * sizeof(row));
	rows->row[at] = row;
	rows->count++;
}

/* Functions of other stacks return to `vaddr`, which nothing calls: callers are looked up one byte
 * before.  The first row is at sink->low. */
static void put_root(struct row_sink *sink, uint64_t vaddr)
{
	struct cfi_row *row = sink->rows->row + sink->first;
	const size_t count = sink->rows->count - sink->first;
	size_t at = ARRAY_LEADING(count, i, row[i].vaddr < vaddr);
	struct pp_rule rule;

	if (vaddr <= sink->low || vaddr > sink->high || !at)
		return;
	rule = row[at - 1].rule;
	if (vaddr < sink->high && (at == count || row[at].vaddr != vaddr))
		insert_row(sink, sink->first + at, (struct cfi_row){vaddr, rule});
	row = sink->rows->row + sink->first;
	if (row[at - 1].vaddr == vaddr - 1)
		row[at - 1].rule = outermost;
	else
		insert_row(sink, sink->first + at, (struct cfi_row){vaddr - 1, outermost});
}

int cfi_compile(struct cfi *cfi, uint64_t low, uint64_t high, struct cfi_rows *rows,
		size_t *ret_bad_fdes)
{
	struct row_sink sink = {
		.rows = rows,
		.first = rows->count,
		.low = low,
		.high = high,
		.limit = high,
		.budget = cfi->table[EH_FRAME].records.section.size +
			  cfi->table[DEBUG_FRAME].records.section.size + 65536,
	};

	put_part(cfi, &sink, EH_FRAME);
	for (size_t i = 0; i < cfi->root_count && !sink.is_out_of_memory; i++)
		put_root(&sink, cfi->root[i]);
	if (sink.is_out_of_memory)
		return -ENOMEM;
	if (elf_work_is_over(cfi->image->work))
		return -E2BIG;
	if (ret_bad_fdes)
		*ret_bad_fdes = sink.bad_fdes;
	return 0;
}

int cfi_rule_at(struct cfi *cfi, uint64_t vaddr, struct pp_rule *ret_rule)
{
	/* One byte of code has one row, so the array never grows. */
	struct cfi_row row = {.vaddr = vaddr};
	struct cfi_rows rows = {.row = &row, .capacity = 1};
	struct rule_memo *memo = &cfi->memo[vaddr % MEMO_SLOTS];

	if (memo->vaddr1 != vaddr + 1) {
		if (vaddr != UINT64_MAX)
			cfi_compile(cfi, vaddr, vaddr + 1, &rows, NULL);
		*memo = (struct rule_memo){.vaddr1 = vaddr + 1, .rule = row.rule};
	}
	*ret_rule = memo->rule;
	return 0;
}

/* Returns whether the first row is already that of a function with a frame: DW_CFA_advance_loc and
 * its longer forms, or DW_CFA_set_loc, end a row; what comes before them changes the first row. */
static bool starts_inside(const struct cfi_fde *fde)
{
	const size_t size = (size_t)(fde->program.end - fde->program.at);

	for (size_t i = 0; i < size && i < FIRST_NOPS_MAX; i++) {
		const uint8_t operation = fde->program.at[i];

		if (operation != DW_CFA_nop)
			return (operation & 0xc0) != DW_CFA_advance_loc &&
			       operation > DW_CFA_advance_loc4;
	}
	return false;
}

int cfi_fde_at(struct cfi *cfi, size_t number, struct cfi_range *ret_range)
{
	struct go_function function;
	struct cfi_fde fde;
	int err;

	for (size_t i = 0; i < TABLES; i++) {
		if (number >= cfi->table[i].count) {
			number -= cfi->table[i].count;
			continue;
		}
		err = read_fde(&cfi->table[i], number, &fde);
		if (!err)
			*ret_range = (struct cfi_range){fde.low, fde.high, starts_inside(&fde)};
		return err;
	}
	err = go_table_function(&cfi->go, number, &function);
	if (!err)
		*ret_range = (struct cfi_range){function.low, function.high, false};
	return err;
}

static int find_in_table(struct cfi_table *table, uint64_t vaddr, struct cfi_range *ret_range)
{
	size_t i = lower_bound(table, vaddr, true);
	struct cfi_fde fde;

	if (!i)
		return -ENOENT;
	for (uint64_t start = start_of(table, i - 1); i && start_of(table, i - 1) == start; i--) {
		if (read_fde(table, i - 1, &fde) || vaddr >= fde.high)
			continue;
		*ret_range = (struct cfi_range){fde.low, fde.high, starts_inside(&fde)};
		return 0;
	}
	return -ENOENT;
}

int cfi_fde_find(struct cfi *cfi, uint64_t vaddr, struct cfi_range *ret_range)
{
	struct go_function function;

	for (size_t i = 0; i < TABLES; i++)
		if (!find_in_table(&cfi->table[i], vaddr, ret_range))
			return 0;
	if (go_table_find(&cfi->go, vaddr, &function))
		return -ENOENT;
	*ret_range = (struct cfi_range){function.low, function.high, false};
	return 0;
}
