/* SPDX-License-Identifier: BSD-2-Clause */
#include "unwind/cfi_internal.h"

#include <dwarf.h>
#include <errno.h>

/* DW_EH_PE_…: LSB Core, DWARF extensions. */
enum {
	PE_ABSPTR = 0x00,
	PE_ULEB128 = 0x01,
	PE_UDATA2 = 0x02,
	PE_UDATA4 = 0x03,
	PE_UDATA8 = 0x04,
	PE_SLEB128 = 0x09,
	PE_SDATA2 = 0x0a,
	PE_SDATA4 = 0x0b,
	PE_SDATA8 = 0x0c,
	PE_FORMAT = 0x0f,
	PE_PCREL = 0x10,
	PE_DATAREL = 0x30,
	PE_BASE = 0x70,
	PE_INDIRECT = 0x80,
	PE_OMIT = 0xff,
};

/* Missing in some <dwarf.h>. */
enum {
	CFA_MIPS_ADVANCE_LOC8 = 0x1d,
	CFA_AARCH64_NEGATE_RA_STATE_WITH_PC = 0x2c,
};

uint64_t cfi_read_encoded(struct cfi_reader *reader, uint8_t encoding, uint64_t vaddr,
			  uint64_t data_base)
{
	uint64_t value = 0;

	switch (encoding & PE_FORMAT) {
	case PE_ABSPTR:
	case PE_UDATA8:
	case PE_SDATA8:
		value = cfi_read_u64(reader);
		break;
	case PE_UDATA4:
		value = cfi_read_u32(reader);
		break;
	case PE_SDATA4:
		value = (uint64_t)(int32_t)cfi_read_u32(reader);
		break;
	case PE_UDATA2:
		value = cfi_read_u16(reader);
		break;
	case PE_SDATA2:
		value = (uint64_t)(int16_t)cfi_read_u16(reader);
		break;
	case PE_ULEB128:
		value = cfi_read_uleb(reader);
		break;
	case PE_SLEB128:
		value = (uint64_t)cfi_read_sleb(reader);
		break;
	default:
		reader->is_bad = true;
	}
	switch (encoding & (PE_BASE | PE_INDIRECT)) {
	case PE_ABSPTR:
		return value;
	case PE_PCREL:
		return value + vaddr;
	case PE_DATAREL:
		if (data_base)
			return value + data_base;
		break;
	}
	reader->is_bad = true;
	return 0;
}

int cfi_record_read(const struct cfi_section *section, uint64_t offset,
		    struct cfi_record *ret_record)
{
	struct cfi_record record = {.offset = offset};
	struct cfi_reader reader = {.end = section->data + section->size};
	uint64_t length, id, id_offset;
	bool is_64_bit;

	if (offset >= section->size)
		return -EBADMSG;
	reader.at = section->data + offset;
	length = cfi_read_u32(&reader);
	is_64_bit = length == 0xffffffff;
	if (is_64_bit)
		length = cfi_read_u64(&reader);
	if (reader.is_bad || length > (uint64_t)(reader.end - reader.at))
		return -EBADMSG;
	record.next = (uint64_t)(reader.at - section->data) + length;
	if (!length) {
		*ret_record = record;
		return -ENOENT;
	}
	reader.end = reader.at + length;
	id_offset = (uint64_t)(reader.at - section->data);
	if (!section->is_debug_frame) {
		/* LSB: 4 bytes even after an extended length; the offset counts back from the field
		 * itself. */
		id = cfi_read_u32(&reader);
		record.is_cie = id == 0;
		record.cie_offset = id_offset - id;
	} else {
		id = is_64_bit ? cfi_read_u64(&reader) : cfi_read_u32(&reader);
		record.is_cie = id == (is_64_bit ? UINT64_MAX : UINT32_MAX);
		record.cie_offset = id;
	}
	record.body = reader;
	if (reader.is_bad)
		return -EBADMSG;
	*ret_record = record;
	return 0;
}

static bool read_augmentation(struct cfi_reader *reader, const char *augmentation,
			      struct cfi_cie *cie)
{
	struct cfi_reader data = *reader;
	uint64_t size;

	if (!*augmentation)
		return true;
	if (*augmentation != 'z')
		return false;
	size = cfi_read_uleb(&data);
	*reader = data;
	cfi_skip(reader, size);
	if (reader->is_bad)
		return false;
	data.end = reader->at;
	cie->has_augmentation = true;
	for (const char *letter = augmentation + 1; *letter; letter++) {
		uint8_t encoding;

		switch (*letter) {
		case 'R':
			cie->encoding = cfi_read_u8(&data);
			break;
		case 'P': /* the personality routine: only its size matters */
			encoding = cfi_read_u8(&data);
			cfi_read_encoded(&data, encoding & PE_FORMAT, 0, 0);
			break;
		case 'L':
			cfi_read_u8(&data);
			break;
		case 'S':
			cie->is_signal = true;
			break;
		case 'B': /* aarch64: return addresses signed with the B key */
		case 'G': /* aarch64: tagged stack */
			break;
		default: /* the size says where the instructions begin */
			return !data.is_bad;
		}
	}
	return !data.is_bad;
}

static bool read_cie_head(const struct cfi_section *section, struct cfi_reader *reader,
			  struct cfi_cie *cie)
{
	uint8_t version = cfi_read_u8(reader);
	const char *augmentation = (const char *)reader->at;
	const uint8_t *end = memchr(reader->at, 0, (size_t)(reader->end - reader->at));

	if (!end || (version != 1 && version != 3 && version != 4))
		return false;
	reader->at = end + 1;
	if (version == 4) {
		uint8_t address_size = cfi_read_u8(reader);
		uint8_t segment_size = cfi_read_u8(reader);

		if (!section->is_debug_frame || address_size != 8 || segment_size)
			return false;
	}
	cie->code_align = cfi_read_uleb(reader);
	cie->data_align = cfi_read_sleb(reader);
	cie->ra_register = version == 1 ? cfi_read_u8(reader) : cfi_read_uleb(reader);
	return !reader->is_bad && cie->code_align && cie->code_align <= CFI_MAX_CODE_ALIGN &&
	       read_augmentation(reader, augmentation, cie);
}

static bool execute(struct cfi_program *program, uint8_t op);

/* Runs the initial instructions, in which no row may begin. */
static bool run_initial(const struct cfi_records *records, struct cfi_reader instructions,
			struct cfi_cie *cie)
{
	struct cfi_program program;

	program.reader = instructions;
	program.cie = cie;
	program.machine = &records->machine;
	program.section = &records->section;
	program.state = (struct cfi_state){.cfa.kind = CFI_UNSUPPORTED};
	program.remembered_count = 0;
	while (program.reader.at < program.reader.end) {
		if (!execute(&program, *program.reader.at++) || program.reader.is_bad)
			return false;
	}
	cie->state = program.state;
	return true;
}

/* Pays for reading a record, and for executing it when it is a CIE; FDEs are executed later. */
static bool pay_record(const struct cfi_records *records, const struct cfi_record *record)
{
	const uint64_t size = record->next - record->offset;

	return size <= CFI_MAX_RECORD_BYTES && elf_work_pay(records->work, 1, ELF_WORK_PER_FDE) &&
	       (!record->is_cie ||
		elf_work_pay(records->work, size, ELF_WORK_PER_INSTRUCTION_BYTE));
}

static const struct cfi_cie *find_cie(struct cfi_records *records, uint64_t offset)
{
	struct cfi_cie *cie = &records->cie[(offset ^ offset >> 6) / 4 % CFI_CIE_CACHE_SLOTS];
	struct cfi_record record;

	if (!cie->is_cached || cie->offset != offset) {
		*cie = (struct cfi_cie){.offset = offset, .is_cached = true};
		cie->is_bad = cfi_record_read(&records->section, offset, &record) ||
			      !record.is_cie || !pay_record(records, &record) ||
			      !read_cie_head(&records->section, &record.body, cie) ||
			      !run_initial(records, record.body, cie);
	}
	return cie->is_bad ? NULL : cie;
}

int cfi_fde_read(struct cfi_records *records, uint64_t offset, struct cfi_fde *ret_fde)
{
	const struct cfi_section *section = &records->section;
	struct cfi_record record;
	struct cfi_fde fde;
	uint64_t size;

	if (cfi_record_read(section, offset, &record) || record.is_cie ||
	    !pay_record(records, &record))
		return -EBADMSG;
	fde.cie = find_cie(records, record.cie_offset);
	if (!fde.cie)
		return -EBADMSG;
	fde.low = cfi_read_encoded(&record.body, fde.cie->encoding,
				   section->vaddr + (uint64_t)(record.body.at - section->data), 0);
	size = cfi_read_encoded(&record.body, fde.cie->encoding & PE_FORMAT, 0, 0);
	if (fde.cie->has_augmentation)
		cfi_skip(&record.body, cfi_read_uleb(&record.body));
	if (record.body.is_bad || __builtin_add_overflow(fde.low, size, &fde.high))
		return -EBADMSG;
	fde.program = record.body;
	*ret_fde = fde;
	return 0;
}

static void set_place(struct cfi_program *program, uint64_t reg, struct cfi_place place)
{
	if (reg == program->machine->fp)
		program->state.fp = place;
	else if (reg == program->cie->ra_register)
		program->state.ra = place;
}

static void set_saved(struct cfi_program *program, uint64_t reg, int64_t factored)
{
	struct cfi_place place = {.kind = CFI_AT_CFA};
	int64_t offset;

	if (__builtin_mul_overflow(factored, program->cie->data_align, &offset) ||
	    offset != (int32_t)offset)
		place.kind = CFI_UNSUPPORTED;
	else
		place.offset = (int32_t)offset;
	set_place(program, reg, place);
}

static struct cfi_place place_in_register(uint64_t reg)
{
	if (reg > UINT8_MAX)
		return (struct cfi_place){.kind = CFI_UNSUPPORTED};
	return (struct cfi_place){.kind = CFI_IN_REGISTER, .reg = (uint8_t)reg};
}

static void restore_initial(struct cfi_program *program, uint64_t reg)
{
	if (reg == program->machine->fp)
		program->state.fp = program->cie->state.fp;
	else if (reg == program->cie->ra_register)
		program->state.ra = program->cie->state.ra;
}

static bool set_cfa(struct cfi_program *program, uint64_t reg, int64_t offset)
{
	struct cfi_place *cfa = &program->state.cfa;

	if (reg > UINT8_MAX || offset != (int32_t)offset)
		return false;
	*cfa = (struct cfi_place){
		.kind = CFI_CFA_REGISTER, .reg = (uint8_t)reg, .offset = (int32_t)offset};
	return true;
}

static int64_t read_factored(struct cfi_program *program)
{
	int64_t value = cfi_read_sleb(&program->reader), result;

	/* Above every bound, so that set_cfa() refuses it. */
	return __builtin_mul_overflow(value, program->cie->data_align, &result) ? INT64_MAX
										: result;
}

static struct cfi_reader read_block(struct cfi_reader *reader)
{
	uint64_t size = cfi_read_uleb(reader);
	struct cfi_reader block = {.at = reader->at};

	cfi_skip(reader, size);
	if (reader->is_bad)
		block.at = reader->at;
	block.end = reader->at;
	return block;
}

static bool execute_cfa(struct cfi_program *program, uint8_t op)
{
	const struct cfi_place cfa = program->state.cfa;
	struct cfi_reader *reader = &program->reader;
	uint64_t reg;

	switch (op) {
	case DW_CFA_def_cfa:
		reg = cfi_read_uleb(reader);
		return set_cfa(program, reg, (int64_t)cfi_read_uleb(reader));
	case DW_CFA_def_cfa_sf:
		reg = cfi_read_uleb(reader);
		return set_cfa(program, reg, read_factored(program));
	case DW_CFA_def_cfa_register:
		return cfa.kind == CFI_CFA_REGISTER &&
		       set_cfa(program, cfi_read_uleb(reader), cfa.offset);
	case DW_CFA_def_cfa_offset:
		return cfa.kind == CFI_CFA_REGISTER &&
		       set_cfa(program, cfa.reg, (int64_t)cfi_read_uleb(reader));
	case DW_CFA_def_cfa_offset_sf:
		return cfa.kind == CFI_CFA_REGISTER &&
		       set_cfa(program, cfa.reg, read_factored(program));
	case DW_CFA_def_cfa_expression:
		program->state.cfa = cfi_expression_cfa(program->machine, read_block(reader));
		return true;
	default:
		return false;
	}
}

static bool execute_state(struct cfi_program *program, uint8_t op)
{
	switch (op) {
	case DW_CFA_remember_state:
		if (program->remembered_count == CFI_MAX_REMEMBERED)
			return false;
		program->remembered[program->remembered_count++] = program->state;
		return true;
	case DW_CFA_restore_state:
		if (!program->remembered_count)
			return false;
		program->state = program->remembered[--program->remembered_count];
		return true;
	case DW_CFA_GNU_args_size:
		cfi_read_uleb(&program->reader);
		return true;
	case DW_CFA_nop:
	case DW_CFA_GNU_window_save: /* aarch64: negate_ra_state; the walk strips signatures */
	case CFA_AARCH64_NEGATE_RA_STATE_WITH_PC:
		return true;
	default:
		return execute_cfa(program, op);
	}
}

/* Executes an instruction that does not move the location.  Returns false when the program is
 * damaged. */
static bool execute(struct cfi_program *program, uint8_t op)
{
	struct cfi_reader *reader = &program->reader;
	struct cfi_place place = {.kind = CFI_UNSUPPORTED};
	uint64_t reg;

	if ((op & 0xc0) == DW_CFA_offset) {
		set_saved(program, op & 0x3f, (int64_t)cfi_read_uleb(reader));
		return true;
	}
	if ((op & 0xc0) == DW_CFA_restore) {
		restore_initial(program, op & 0x3f);
		return true;
	}
	switch (op) {
	case DW_CFA_offset_extended:
		reg = cfi_read_uleb(reader);
		set_saved(program, reg, (int64_t)cfi_read_uleb(reader));
		return true;
	case DW_CFA_offset_extended_sf:
		reg = cfi_read_uleb(reader);
		set_saved(program, reg, cfi_read_sleb(reader));
		return true;
	case DW_CFA_GNU_negative_offset_extended:
		reg = cfi_read_uleb(reader);
		set_saved(program, reg, (int64_t)(0 - cfi_read_uleb(reader)));
		return true;
	case DW_CFA_restore_extended:
		restore_initial(program, cfi_read_uleb(reader));
		return true;
	case DW_CFA_undefined:
		place.kind = CFI_UNDEFINED;
		set_place(program, cfi_read_uleb(reader), place);
		return true;
	case DW_CFA_same_value:
		place.kind = CFI_SAME;
		set_place(program, cfi_read_uleb(reader), place);
		return true;
	case DW_CFA_register:
		reg = cfi_read_uleb(reader);
		set_place(program, reg, place_in_register(cfi_read_uleb(reader)));
		return true;
	case DW_CFA_expression:
		reg = cfi_read_uleb(reader);
		set_place(program, reg, cfi_expression_saved(read_block(reader)));
		return true;
	case DW_CFA_val_expression:
		set_place(program, cfi_read_uleb(reader), place);
		read_block(reader);
		return true;
	case DW_CFA_val_offset:
	case DW_CFA_val_offset_sf:
		set_place(program, cfi_read_uleb(reader), place);
		cfi_read_uleb(reader);
		return true;
	default:
		return execute_state(program, op);
	}
}

/* Moves the location: returns 1 and *ret_location when op does that, else 0. */
static int advance(struct cfi_program *program, uint8_t op, uint64_t *ret_location)
{
	struct cfi_reader *reader = &program->reader;
	uint64_t delta;

	if ((op & 0xc0) == DW_CFA_advance_loc) {
		delta = op & 0x3f;
	} else if (op == DW_CFA_advance_loc1) {
		delta = cfi_read_u8(reader);
	} else if (op == DW_CFA_advance_loc2) {
		delta = cfi_read_u16(reader);
	} else if (op == DW_CFA_advance_loc4) {
		delta = cfi_read_u32(reader);
	} else if (op == CFA_MIPS_ADVANCE_LOC8) {
		delta = cfi_read_u64(reader);
		if (delta > UINT32_MAX)
			reader->is_bad = true;
	} else if (op == DW_CFA_set_loc) {
		const struct cfi_section *section = program->section;

		*ret_location =
			cfi_read_encoded(reader, program->cie->encoding,
					 section->vaddr + (uint64_t)(reader->at - section->data),
					 0);
		if (*ret_location < program->location)
			reader->is_bad = true;
		return 1;
	} else {
		return 0;
	}
	if (__builtin_add_overflow(program->location, delta * program->cie->code_align,
				   ret_location))
		reader->is_bad = true;
	return 1;
}

void cfi_program_start(struct cfi_program *program, const struct cfi_records *records,
		       const struct cfi_fde *fde)
{
	/* remembered[] is not cleared: remembered_count says how much of it is valid. */
	program->reader = fde->program;
	program->cie = fde->cie;
	program->machine = &records->machine;
	program->section = &records->section;
	program->location = fde->low;
	program->high = fde->high;
	program->state = fde->cie->state;
	program->remembered_count = 0;
	program->is_done = fde->low >= fde->high;
}

int cfi_program_next(struct cfi_program *program, uint64_t *ret_low)
{
	struct cfi_reader *reader = &program->reader;
	uint64_t location = program->location;

	if (program->is_done)
		return 0;
	while (reader->at < reader->end) {
		uint8_t op = *reader->at++;
		uint64_t next;

		if (advance(program, op, &next)) {
			if (reader->is_bad)
				return -EBADMSG;
			if (next == location)
				continue;
			program->location = next;
			program->is_done = next >= program->high;
			*ret_low = location;
			return 1;
		}
		if (!execute(program, op) || reader->is_bad)
			return -EBADMSG;
	}
	program->is_done = true;
	*ret_low = location;
	return 1;
}
