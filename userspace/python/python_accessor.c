/* SPDX-License-Identifier: BSD-2-Clause */
/* Encodings: Intel 64 SDM volume 2, chapters 2.1 and 2.2; TLS sequences: "ELF Handling For
 * Thread-Local Storage", section 4.4, and the TLSDESC paper. */
#include "python/python_tls.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "elf/elf_symbol_table.h"
#include "elf/x86_decode.h"

#define MAX_STEPS 64

struct machine {
	const struct elf_image *image;
	uint64_t pc;
	struct accessor_value reg[16];
	struct accessor *out;
	/* The other branch of the first conditional jump. */
	struct accessor_value other_reg[16];
	uint64_t other_pc; /* 0: there is none, or it was followed already */
	bool is_done;
};

static const struct accessor_value unknown = {.kind = ACCESSOR_UNKNOWN};

static int64_t add_wrapping(int64_t a, int64_t b)
{
	return (int64_t)((uint64_t)a + (uint64_t)b);
}

static bool relocation_is(const struct elf_image *image, uint64_t slot, uint32_t type)
{
	uint64_t value;
	uint32_t found;

	return !elf_image_relocation(image, slot, &found, &value) && found == type;
}

/* ---- values ---- */

static void touch(struct machine *m, const struct accessor_value *value)
{
	if ((value->kind == ACCESSOR_CONSTANT || value->kind == ACCESSOR_LOADED) &&
	    m->out->touched_count < ACCESSOR_MAX_TOUCHED)
		m->out->touched[m->out->touched_count++] = *value;
}

static struct accessor_value constant(int64_t number)
{
	return (struct accessor_value){.kind = ACCESSOR_CONSTANT, .offset = number};
}

/* Adds two values, where one is a number, or a TLS offset that is added to the thread pointer. */
static struct accessor_value sum(struct accessor_value a, struct accessor_value b)
{
	if (a.kind == ACCESSOR_CONSTANT || b.kind == ACCESSOR_THREAD) {
		const struct accessor_value swap = a;

		a = b;
		b = swap;
	}
	if (b.kind == ACCESSOR_CONSTANT &&
	    (a.kind == ACCESSOR_CONSTANT || a.kind == ACCESSOR_LOADED ||
	     a.kind == ACCESSOR_THREAD || a.kind == ACCESSOR_BLOCK ||
	     a.kind == ACCESSOR_SLOT_OFFSET)) {
		a.offset = add_wrapping(a.offset, b.offset);
		return a;
	}
	if (a.kind == ACCESSOR_THREAD && !a.address &&
	    (b.kind == ACCESSOR_LOADED || b.kind == ACCESSOR_SLOT_OFFSET)) {
		a.address = b.address;
		a.offset = add_wrapping(a.offset, b.offset);
		return a;
	}
	return unknown;
}

/* Returns the address of a memory operand.  `end`: address of the next instruction. */
static struct accessor_value operand_address(struct machine *m, const struct x86_instruction *in,
					     uint64_t end)
{
	struct accessor_value address = constant(in->displacement);

	if (in->index >= 0 && in->is_scaled)
		return unknown;
	if (in->base == X86_RIP)
		address.offset = add_wrapping(address.offset, (int64_t)end);
	else if (in->base >= 0)
		address = sum(m->reg[in->base], address);
	if (in->index >= 0)
		address = sum(address, m->reg[in->index]);
	if (in->segment == X86_FS) {
		const struct accessor_value thread = {.kind = ACCESSOR_THREAD};

		address = sum(thread, address);
	} else {
		touch(m, &address);
	}
	return address;
}

static struct accessor_value load(const struct accessor_value *address)
{
	struct accessor_value value = *address;

	switch (address->kind) {
	case ACCESSOR_CONSTANT:
		return (struct accessor_value){.kind = ACCESSOR_LOADED,
					       .address = (uint64_t)address->offset};
	case ACCESSOR_LOADED:
		value.kind = ACCESSOR_FIELD;
		return value;
	case ACCESSOR_THREAD:
		/* The thread control block starts with its own address. */
		if (!address->address && !address->offset)
			return value;
		value.kind = ACCESSOR_THREAD_VALUE;
		return value;
	case ACCESSOR_BLOCK:
		value.kind = ACCESSOR_BLOCK_VALUE;
		return value;
	default:
		return unknown;
	}
}

/* ---- instructions ---- */

static void after_call(struct machine *m, const struct x86_instruction *in)
{
	static const uint8_t clobbered[] = {RAX, RCX, RDX, RSI, RDI, 8, 9, 10, 11};
	const struct accessor_value argument = m->reg[RDI], descriptor = m->reg[RAX];

	m->out->argument = argument;
	/* `call *(%rax)` with rax at a TLS descriptor changes rax alone. */
	if (in->opcode == 0xff && in->base == RAX && descriptor.kind == ACCESSOR_CONSTANT &&
	    relocation_is(m->image, (uint64_t)descriptor.offset, R_X86_64_TLSDESC)) {
		m->reg[RAX] = (struct accessor_value){.kind = ACCESSOR_SLOT_OFFSET,
						      .address = (uint64_t)descriptor.offset + 8};
		return;
	}
	for (size_t i = 0; i < ARRAY_SIZE(clobbered); i++)
		m->reg[clobbered[i]] = unknown;
	if (argument.kind == ACCESSOR_CONSTANT &&
	    relocation_is(m->image, (uint64_t)argument.offset, R_X86_64_DTPMOD64))
		m->reg[RAX] = (struct accessor_value){.kind = ACCESSOR_BLOCK,
						      .address = (uint64_t)argument.offset};
}

static void finish_path(struct machine *m)
{
	const struct accessor_value *rax = &m->reg[RAX];

	m->out->result = *rax;
	m->out->argument = m->reg[RDI].kind ? m->reg[RDI] : m->out->argument;
	/* `return NULL` is the short branch of most accessors. */
	if (m->other_pc && (rax->kind == ACCESSOR_UNKNOWN || rax->kind == ACCESSOR_CONSTANT)) {
		memcpy(m->reg, m->other_reg, sizeof(m->reg));
		m->pc = m->other_pc;
		m->other_pc = 0;
		return;
	}
	m->is_done = true;
}

static void conditional_jump(struct machine *m, uint64_t target)
{
	if (m->other_pc || !target)
		return;
	m->other_pc = target;
	memcpy(m->other_reg, m->reg, sizeof(m->reg));
}

static uint64_t next_pc(const struct machine *m, const struct x86_instruction *in)
{
	return m->pc + in->size;
}

/* jmp, call, and jumps under a condition. */
static void step_jump(struct machine *m, const struct x86_instruction *in)
{
	const uint64_t target = next_pc(m, in) + (uint64_t)in->immediate;

	if (in->map == X86_TWO_BYTES || (in->opcode & 0xf0) == 0x70)
		conditional_jump(m, target);
	else if (in->opcode == 0xe8)
		after_call(m, in);
	else
		m->pc = target;
}

/* Opcodes without ModRM.  Returns false for another opcode; so does step_modrm(). */
static bool step_plain(struct machine *m, const struct x86_instruction *in)
{
	const uint8_t reg = x86_opcode_register(in);

	switch (in->opcode) {
	case 0x05: /* add $number, %rax */
		m->reg[RAX] = sum(m->reg[RAX], constant(in->immediate));
		return true;
	case 0x50 ... 0x57: /* push */
	case 0x90:	    /* nop, leave */
	case 0xc9:
		return true;
	case 0x58 ... 0x5f: /* pop */
		m->reg[reg] = unknown;
		return true;
	case 0xb8 ... 0xbf: /* mov $number, reg */
		m->reg[reg] =
			constant(in->rex & 8 ? in->immediate : (int64_t)(uint32_t)in->immediate);
		touch(m, &m->reg[reg]);
		return true;
	case 0xc3:
		finish_path(m);
		return true;
	case 0x70 ... 0x7f:
	case 0xe8:
	case 0xe9:
	case 0xeb:
		step_jump(m, in);
		return true;
	default:
		return false;
	}
}

/* add, sub, cmp and their like with an immediate operand. */
static void step_immediate(struct machine *m, const struct x86_instruction *in)
{
	const uint8_t operation = in->reg & 7;

	if (in->is_memory || operation == 7)
		return;
	if (operation == 0)
		m->reg[in->rm] = sum(m->reg[in->rm], constant(in->immediate));
	else if (operation == 5)
		m->reg[in->rm] =
			sum(m->reg[in->rm], constant((int64_t)(0 - (uint64_t)in->immediate)));
	else
		m->reg[in->rm] = unknown;
}

static bool step_modrm(struct machine *m, const struct x86_instruction *in)
{
	const struct accessor_value address =
		in->is_memory ? operand_address(m, in, next_pc(m, in)) : unknown;
	const struct accessor_value value = in->is_memory ? load(&address) : m->reg[in->rm];

	switch (in->opcode) {
	case 0x8b: /* mov r, r/m */
	case 0x63:
		m->reg[in->reg] = value;
		return true;
	case 0x8d: /* lea */
		m->reg[in->reg] = address;
		return true;
	case 0x89: /* mov r/m, r */
		if (!in->is_memory)
			m->reg[in->rm] = m->reg[in->reg];
		return true;
	case 0x03: /* add r, r/m */
		m->reg[in->reg] = sum(m->reg[in->reg], value);
		return true;
	case 0x01:
		if (!in->is_memory)
			m->reg[in->rm] = sum(m->reg[in->rm], m->reg[in->reg]);
		return true;
	case 0x31: /* xor */
	case 0x33:
		if (!in->is_memory)
			m->reg[in->rm] = in->reg == in->rm ? constant(0) : unknown;
		return true;
	case 0x80:
	case 0x81:
	case 0x83:
		step_immediate(m, in);
		return true;
	case 0xc7: /* mov r/m, imm32 */
		if (!in->is_memory)
			m->reg[in->rm] = constant(in->immediate);
		return true;
	case 0xff:
		if ((in->reg & 7) == 4) { /* jmp: another function's result */
			m->reg[RAX] = unknown;
			finish_path(m);
		} else if ((in->reg & 7) == 2) { /* call */
			after_call(m, in);
		}
		return true;
	case 0x38: /* cmp, test */
	case 0x39:
	case 0x3a:
	case 0x3b:
	case 0x84:
	case 0x85:
	case 0xf6:
	case 0xf7:
		return true;
	default:
		return false;
	}
}

static bool step_two_bytes(struct machine *m, const struct x86_instruction *in)
{
	if ((in->opcode & 0xf0) == 0x80)
		step_jump(m, in);
	else
		return in->opcode == 0x1e || in->opcode == 0x1f; /* endbr64, nop */
	return true;
}

static bool execute(struct machine *m, const struct x86_instruction *in)
{
	if (in->has_67 || in->segment == X86_GS || in->map == X86_OTHER)
		return false;
	if (in->map == X86_TWO_BYTES)
		return step_two_bytes(m, in);
	return step_plain(m, in) || step_modrm(m, in);
}

static void step(struct machine *m)
{
	const uint64_t start = m->pc;
	size_t left = X86_INSTRUCTION_MAX_BYTES;
	struct x86_instruction in;
	const uint8_t *code = NULL;

	/* Fewer bytes may follow the last instructions of a segment. */
	while (left && !(code = elf_image_at(m->image, start, left)))
		left--;
	if (!left || !x86_decode(code, left, &in) || !execute(m, &in)) {
		m->reg[RAX] = unknown;
		m->pc = start;
		finish_path(m);
		return;
	}
	if (m->pc == start)
		m->pc = next_pc(m, &in);
}

int python_accessor_read(const struct elf_image *image, const char *name,
			 struct accessor *ret_accessor)
{
	struct accessor accessor = {0};
	struct machine m = {.image = image, .out = &accessor};
	struct elf_symbol symbol;

	if (elf_image_symbol(image, name, &symbol))
		return -ENOENT;
	if (image->machine != EM_X86_64)
		return -ENOTSUP;
	m.pc = symbol.value;
	for (int i = 0; i < MAX_STEPS && !m.is_done; i++)
		step(&m);
	*ret_accessor = accessor;
	return 0;
}
