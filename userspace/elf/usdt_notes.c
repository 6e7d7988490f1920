/* SPDX-License-Identifier: BSD-2-Clause */
#include "elf/usdt_notes.h"

#include <ctype.h>
#include <elf.h>
#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <pyprofd/probe.h>

#include "base/cleanup.h"

/* The text in a probe's note that says where its arguments lie: "8@%rdi -4@112(%rsp)", operands as
 * the assembler of the file's machine writes them.  No state. */

#define OPERAND_MAX_BYTES 64U /* longer ones have symbols, which we cannot read anyway */
#define ADDRESS_BYTES 8U
#define X86_RSP 7U
#define ARM_SP 31U

struct register_name {
	uint8_t number; /* DWARF */
	uint8_t bytes;
};

/* ---- numbers ---- */

/* Parses a whole text as a number; 64 bits, with a sign or without. */
static bool parse_number(const char *text, __s64 *ret_value)
{
	const bool is_negative = *text == '-';
	unsigned long long value;
	char *end;

	text += is_negative;
	if (!isdigit((unsigned char)*text))
		return false;
	errno = 0;
	value = strtoull(text, &end, 0);
	if (errno || *end)
		return false;
	*ret_value = (__s64)(is_negative ? -value : value);
	return true;
}

/* ---- x86-64 ---- */

/* psABI x86-64 figure 3.36; rows by DWARF number. */
static const char x86_names[][4][5] = {
	{"rax", "eax", "ax", "al"},	 {"rdx", "edx", "dx", "dl"},
	{"rcx", "ecx", "cx", "cl"},	 {"rbx", "ebx", "bx", "bl"},
	{"rsi", "esi", "si", "sil"},	 {"rdi", "edi", "di", "dil"},
	{"rbp", "ebp", "bp", "bpl"},	 {"rsp", "esp", "sp", "spl"},
	{"r8", "r8d", "r8w", "r8b"},	 {"r9", "r9d", "r9w", "r9b"},
	{"r10", "r10d", "r10w", "r10b"}, {"r11", "r11d", "r11w", "r11b"},
	{"r12", "r12d", "r12w", "r12b"}, {"r13", "r13d", "r13w", "r13b"},
	{"r14", "r14d", "r14w", "r14b"}, {"r15", "r15d", "r15w", "r15b"},
};

/* %ah and its like have no row: their byte is not the lowest one. */
static bool x86_register(const char *text, struct register_name *ret_register)
{
	if (*text != '%')
		return false;
	for (size_t i = 0; i < ARRAY_SIZE(x86_names); i++)
		for (size_t j = 0; j < ARRAY_SIZE(x86_names[0]); j++)
			if (!strcmp(text + 1, x86_names[i][j])) {
				*ret_register = (struct register_name){.number = (uint8_t)i,
								       .bytes = (uint8_t)(8U >> j)};
				return true;
			}
	return false;
}

static bool parse_scale(const char *text, uint8_t *ret_scale)
{
	const char *const scales = "1248", *at = strchr(scales, *text);

	if (!*text || text[1] || !at)
		return false;
	*ret_scale = *at == '8' ? 3 : (uint8_t)(at - scales);
	return true;
}

/* "base", "base,index", "base,index,scale"; the text is cut at its commas. */
static bool x86_address(char *text, struct pp_probe_arg *arg)
{
	const char *base = strsep(&text, ","), *index = strsep(&text, ","), *scale = text;
	struct register_name found;

	if (!x86_register(base, &found) || found.bytes != ADDRESS_BYTES)
		return false;
	arg->base = found.number;
	if (!index)
		return true;
	if (!x86_register(index, &found) || found.bytes != ADDRESS_BYTES || found.number == X86_RSP)
		return false;
	arg->index = found.number;
	return !scale || parse_scale(scale, &arg->scale);
}

static bool x86_operand(char *text, struct pp_probe_arg *arg)
{
	struct register_name found;
	char *open, *close;

	if (*text == '$') {
		arg->kind = PP_ARG_CONSTANT;
		return parse_number(text + 1, &arg->value);
	}
	if (x86_register(text, &found)) {
		arg->kind = PP_ARG_REGISTER;
		arg->base = found.number;
		return true;
	}
	open = strchr(text, '(');
	close = open ? strchr(open, ')') : NULL;
	if (!close || close[1])
		return false;
	*open = *close = '\0';
	if (open != text && !parse_number(text, &arg->value))
		return false;
	arg->kind = PP_ARG_MEMORY;
	return x86_address(open + 1, arg);
}

/* ---- aarch64 ---- */

static bool arm_register(const char *text, struct register_name *ret_register)
{
	const uint8_t bytes = *text == 'w' ? 4 : 8;
	__s64 number;

	if (!strcmp(text, "sp") || !strcmp(text, "wsp")) {
		*ret_register = (struct register_name){.number = ARM_SP, .bytes = bytes};
		return true;
	}
	if ((*text != 'x' && *text != 'w') || !parse_number(text + 1, &number) || number < 0 ||
	    number >= ARM_SP)
		return false;
	*ret_register = (struct register_name){.number = (uint8_t)number, .bytes = bytes};
	return true;
}

/* An offset, with its "#" or without. */
static bool arm_number(const char *text, __s64 *ret_value)
{
	return parse_number(text + (*text == '#'), ret_value);
}

static char *skip_spaces(char *text)
{
	return text ? text + strspn(text, " ") : NULL;
}

/* "base", "base, offset", "base, index", "base, index, lsl 3"; the text is cut at its commas. */
static bool arm_address(char *text, struct pp_probe_arg *arg)
{
	const char *base = strsep(&text, ","), *second = skip_spaces(strsep(&text, ","));
	const char *shift = skip_spaces(text);
	struct register_name found;
	__s64 scale = 0;

	if (!arm_register(base, &found) || found.bytes != ADDRESS_BYTES)
		return false;
	arg->base = found.number;
	if (!second || (!shift && arm_number(second, &arg->value)))
		return true;
	if (!arm_register(second, &found) || found.bytes != ADDRESS_BYTES || found.number == ARM_SP)
		return false;
	arg->index = found.number;
	if (shift &&
	    (strncmp(shift, "lsl ", 4) || !arm_number(shift + 4, &scale) || scale < 0 || scale > 3))
		return false;
	arg->scale = (uint8_t)scale;
	return true;
}

static bool arm_operand(char *text, struct pp_probe_arg *arg)
{
	struct register_name found;
	char *close;

	if (arm_number(text, &arg->value) || !strcmp(text, "xzr") || !strcmp(text, "wzr")) {
		arg->kind = PP_ARG_CONSTANT;
		return true;
	}
	if (arm_register(text, &found)) {
		arg->kind = PP_ARG_REGISTER;
		arg->base = found.number;
		return true;
	}
	close = *text == '[' ? strchr(text, ']') : NULL;
	if (!close || close[1])
		return false;
	*close = '\0';
	arg->kind = PP_ARG_MEMORY;
	return arm_address(text + 1, arg);
}

/* ---- one argument ---- */

/* Returns the size of the first argument: up to a space, but those inside of "[sp, 16]" belong to
 * it. */
static size_t token_size(const char *text)
{
	bool is_inside = false;
	size_t size = 0;

	for (; text[size] && (is_inside || text[size] != ' '); size++) {
		is_inside |= text[size] == '[';
		is_inside &= text[size] != ']';
	}
	return size;
}

/* "-4@": the size, negative for a signed value.  Returns where the operand begins; NULL: it has no
 * size, or one that is not known ("4f@": a floating-point value). */
static char *parse_size(char *text, struct pp_probe_arg *arg)
{
	arg->is_signed = *text == '-';
	text += arg->is_signed;
	if (!*text || !strchr("1248", *text) || text[1] != '@')
		return NULL;
	arg->bytes = (uint8_t)(*text - '0');
	return text + 2;
}

static struct pp_probe_arg parse_one(uint16_t machine, const char *text, size_t size)
{
	struct pp_probe_arg arg = {.index = PP_ARG_NO_INDEX};
	char copy[OPERAND_MAX_BYTES], *operand;
	bool is_known;

	if (size >= sizeof(copy))
		return (struct pp_probe_arg){.index = PP_ARG_NO_INDEX};
	memcpy(copy, text, size);
	copy[size] = '\0';
	operand = parse_size(copy, &arg);
	is_known = operand &&
		   (machine == EM_X86_64 ? x86_operand(operand, &arg) : arm_operand(operand, &arg));
	return is_known ? arg : (struct pp_probe_arg){.index = PP_ARG_NO_INDEX};
}

size_t usdt_args_parse(uint16_t machine, const char *text,
		       struct pp_probe_arg ret_arg[PP_PROBE_ARGS])
{
	size_t count = 0;

	for (text += strspn(text, " "); *text && count < PP_PROBE_ARGS; text += strspn(text, " ")) {
		const size_t size = token_size(text);

		ret_arg[count++] = parse_one(machine, text, size);
		text += size;
	}
	for (size_t i = count; i < PP_PROBE_ARGS; i++)
		ret_arg[i] = (struct pp_probe_arg){.index = PP_ARG_NO_INDEX};
	return count;
}

#define NOTE_TYPE 3U /* version 3 of <sys/sdt.h>'s notes */
#define NOTE_ALIGN 4U
#define WORDS_BYTES (3 * sizeof(uint64_t)) /* pc, base, semaphore */

static const char owner[] = "stapsdt";

struct reading {
	const struct elf_image *image;
	usdt_note_handler *found;
	void *context;
	bool has_base;
	uint64_t base_vaddr; /* of .stapsdt.base, as the file is now */
	struct usdt_refused refused;
	bool is_over;
};

/* Bytes of a note that are not read yet. */
struct text {
	const uint8_t *at;
	uint64_t left;
};

enum text_result { TEXT_TAKEN, TEXT_LONG, TEXT_OPEN };

/* Copies a text, cut to its room, and steps behind its NUL. */
static enum text_result take_text(struct text *from, char *to, size_t room)
{
	const uint8_t *end = memchr(from->at, 0, from->left);
	size_t size, copied;

	if (!end)
		return TEXT_OPEN;
	size = (size_t)(end - from->at);
	copied = size < room ? size : room - 1;
	memcpy(to, from->at, copied);
	/* The file may be written to meanwhile: the copy has its own NUL. */
	to[copied] = '\0';
	from->at += size + 1;
	from->left -= size + 1;
	return size < room ? TEXT_TAKEN : TEXT_LONG;
}

static void read_note(struct reading *reading, const uint8_t *description, uint64_t size)
{
	enum text_result provider, name, args;
	struct usdt_note note;
	struct text text;
	uint64_t word[3];

	if (size < WORDS_BYTES) {
		reading->refused.cut++;
		return;
	}
	memcpy(word, description, sizeof(word));
	text = (struct text){.at = description + sizeof(word), .left = size - sizeof(word)};
	provider = take_text(&text, note.provider, sizeof(note.provider));
	name = take_text(&text, note.name, sizeof(note.name));
	args = take_text(&text, note.args, sizeof(note.args));
	if (provider == TEXT_OPEN || name == TEXT_OPEN || args == TEXT_OPEN) {
		reading->refused.cut++;
		return;
	}
	if (provider == TEXT_LONG || name == TEXT_LONG) {
		reading->refused.long_names++;
		return;
	}
	if (args == TEXT_LONG)
		note.args[0] = '\0';
	/* Prelinking moves the section, but does not know what the note says. */
	if (reading->has_base) {
		word[0] += reading->base_vaddr - word[1];
		word[2] += word[2] ? reading->base_vaddr - word[1] : 0;
	}
	note.vaddr = word[0];
	note.semaphore = word[2];
	reading->is_over = !reading->found(reading->context, &note);
}

static bool is_probe(const uint8_t *name, uint64_t name_size, uint32_t type)
{
	return type == NOTE_TYPE && name_size == sizeof(owner) &&
	       !memcmp(name, owner, sizeof(owner));
}

static uint64_t aligned(uint64_t size)
{
	return (size + NOTE_ALIGN - 1) & ~(uint64_t)(NOTE_ALIGN - 1);
}

/* Reads one section; all sizes are sums of 32-bit numbers. */
static void read_section(struct reading *reading, const struct elf_section *section)
{
	uint64_t left = section->size;
	const uint8_t *at = section->data;

	while (!reading->is_over && left >= sizeof(Elf64_Nhdr) &&
	       elf_work_pay(reading->image->work, 1, ELF_WORK_PER_HEADER)) {
		const uint8_t *name = at + sizeof(Elf64_Nhdr);
		uint64_t description_at, next;
		Elf64_Nhdr note;

		memcpy(&note, at, sizeof(note));
		description_at = sizeof(note) + aligned(note.n_namesz);
		if (description_at > left || note.n_descsz > left - description_at) {
			reading->refused.cut++;
			return;
		}
		if (!elf_work_pay(reading->image->work,
				  note.n_descsz / ELF_WORK_NAME_BYTES_PER_UNIT, 1))
			return;
		if (is_probe(name, note.n_namesz, note.n_type))
			read_note(reading, at + description_at, note.n_descsz);
		next = description_at + aligned(note.n_descsz);
		if (next >= left)
			return;
		at += next;
		left -= next;
	}
}

/* Where section headers are stripped, a note may still be in a segment. */
static void read_all(struct reading *reading)
{
	const struct elf_image *image = reading->image;
	const bool has_sections = image->section_count;
	const uint32_t count = has_sections ? image->section_count : image->program_count;
	struct elf_section section;

	for (uint32_t i = has_sections;
	     i < count && !reading->is_over && elf_work_pay(image->work, 1, ELF_WORK_PER_HEADER);
	     i++)
		if (!(has_sections ? elf_image_section_by_index(image, i, &section)
				   : elf_image_note_segment(image, i, &section)) &&
		    section.type == SHT_NOTE)
			read_section(reading, &section);
}

int usdt_notes_read(const struct elf_image *image, usdt_note_handler *found, void *context,
		    struct usdt_refused *ret_refused)
{
	struct reading reading = {.image = image, .found = found, .context = context};
	struct elf_section base;

	if (!elf_image_section(image, ".stapsdt.base", &base)) {
		reading.has_base = true;
		reading.base_vaddr = base.vaddr;
	}
	read_all(&reading);
	if (elf_work_is_over(image->work))
		return -E2BIG;
	*ret_refused = reading.refused;
	return 0;
}
