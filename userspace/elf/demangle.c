/* SPDX-License-Identifier: BSD-2-Clause */
#include "elf/demangle.h"

#include <ctype.h>
#include <libiberty/demangle.h>
#include <setjmp.h>
#include <stdint.h>
#include <string.h>

/* Bounds the time for names that demangle to little text in very many steps: any call that is not
 * empty adds at least a byte. */
#define EMPTY_MAX_COUNT 4096U

struct output {
	jmp_buf full;
	char *text;
	size_t size;
	uint32_t empty; /* number of calls without text */
	bool is_rust, is_full;
};

/* A short name can demangle to terabytes, and libiberty's callbacks cannot stop it: hence
 * longjmp(). Its C++ demangler keeps everything on the stack.  The Rust one owns memory while it
 * passes a punycode identifier, which has at least two bytes: so longjmp() leaves it only at
 * shorter pieces. */
static void append(const char *bytes, size_t size, void *context)
{
	struct output *output = context;
	const size_t room = DEMANGLE_MAX_BYTES - 1 - output->size;
	const size_t taken = size < room ? size : room;

	if (taken) /* an empty identifier is passed as NULL */
		memcpy(output->text + output->size, bytes, taken);
	output->size += taken;
	if (taken < size || (!size && ++output->empty > EMPTY_MAX_COUNT))
		output->is_full = true;
	if (output->is_full && (!output->is_rust || size < 2))
		longjmp(output->full, 1);
}

/* Rust's `for<'a, 'b>` is F or D, G and a number in base 62 ("G0_" is two lifetimes).  libiberty
 * counts up to that number even where it prints nothing, so no callback can stop it.  No compiler
 * writes more than 63 lifetimes; an identifier that happens to contain such text stays mangled. */
static bool has_huge_binder(const char *name)
{
	for (const char *c = name; (c = strchr(c, 'G')); c++) {
		size_t digits = 0;

		while (isalnum((unsigned char)c[1 + digits]))
			digits++;
		if (c > name && (c[-1] == 'F' || c[-1] == 'D') && digits > 1 &&
		    c[1 + digits] == '_')
			return true;
	}
	return false;
}

/* Ends a text that was cut with dots, not inside a UTF-8 sequence. */
static void end_with_dots(struct output *output)
{
	size_t end = output->size < 3 ? 0 : output->size - 3;

	while (end && ((unsigned char)output->text[end] & 0xc0) == 0x80)
		end--;
	memcpy(output->text + end, "...", 3);
	output->size = end + 3;
}

/* Returns whether the name is of the language; a text that was cut counts. */
static bool run_libiberty(const char *name, struct output *output)
{
	/* libiberty's limit on recursion refuses all C++ names above 1 KiB, but long templates have
	 * such names. Within DEMANGLE_MAX_INPUT_BYTES its use of stack is bounded (see the header),
	 * so the limit is off. */
	const int options = DMGL_NO_OPTS | (output->is_rust ? 0 : DMGL_NO_RECURSE_LIMIT);
	bool is_good;

	if (setjmp(output->full))
		is_good = true;
	else if (output->is_rust)
		is_good = rust_demangle_callback(name, options, append, output);
	else
		is_good = cplus_demangle_v3_callback(name, options, append, output);
	if (output->is_full)
		end_with_dots(output);
	output->text[output->size] = '\0';
	return is_good && output->size;
}

bool demangle(const char *name, size_t size, char ret_text[DEMANGLE_MAX_BYTES])
{
	char terminated[DEMANGLE_MAX_INPUT_BYTES + 1];
	struct output output = {.text = ret_text, .is_rust = true};

	if (size < 3 || size > DEMANGLE_MAX_INPUT_BYTES || name[0] != '_' ||
	    memchr(name, '\0', size))
		return false;
	if (name[1] == '_')
		return demangle_cython(name, size, ret_text);
	if (name[1] != 'Z' && name[1] != 'R')
		return false;
	memcpy(terminated, name, size);
	terminated[size] = '\0';
	if (name[1] == 'R' && has_huge_binder(terminated))
		return false;
	if (run_libiberty(terminated, &output))
		return true;
	output = (struct output){.text = ret_text};
	return name[1] == 'Z' && run_libiberty(terminated, &output);
}
