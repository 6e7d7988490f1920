/* SPDX-License-Identifier: BSD-2-Clause */
#include "elf/usdt_args.h"

#include <ctype.h>
#include <elf.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

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
