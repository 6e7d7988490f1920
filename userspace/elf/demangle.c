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

/* ---- Cython ---- */

/* Cython's C names are a prefix for the kind of function, then the scopes, each as its length and
 * its name, then the function.  In __pyx_pw_4spam_3Egg_5boil the last part has no length: the 5
 * only tells it from others in its scope (Cython/Compiler: Naming.py, Symtab.py next_id). */
struct text {
	const char *at;
	size_t size;
};

struct joined {
	char *text;
	size_t size;
};

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static bool starts_with(struct text text, const char *prefix)
{
	const size_t size = strlen(prefix);

	return text.size >= size && !memcmp(text.at, prefix, size);
}

static struct text skip(struct text text, size_t size)
{
	return (struct text){.at = text.at + size, .size = text.size - size};
}

static void add_part(struct joined *result, struct text part)
{
	const size_t room = DEMANGLE_MAX_BYTES - 2 - result->size;
	const size_t taken = part.size < room ? part.size : room;

	if (!room)
		return;
	if (result->size)
		result->text[result->size++] = '.';
	memcpy(result->text + result->size, part.at, taken);
	result->size += taken;
}

static size_t count_digits(struct text text)
{
	size_t digits = 0;

	while (digits < text.size && is_digit(text.at[digits]))
		digits++;
	return digits;
}

/* Splits "3Egg_…": *ret_scope is "Egg", *ret_rest what follows the underscore. */
static bool take_scope(struct text text, struct text *ret_scope, struct text *ret_rest)
{
	const size_t digits = count_digits(text);
	size_t length = 0;

	if (!digits || digits > 4 || text.at[0] == '0')
		return false;
	for (size_t i = 0; i < digits; i++)
		length = length * 10 + (size_t)(text.at[i] - '0');
	text = skip(text, digits);
	if (length + 1 >= text.size || text.at[length] != '_' || is_digit(text.at[0]))
		return false;
	*ret_scope = (struct text){.at = text.at, .size = length};
	*ret_rest = skip(text, length + 1);
	return true;
}

/* Returns whether a part is a scope: "3get_item" is the third function "get_item", not "item" in a
 * scope "get".  A scope is followed by another length or number, or is a class and looks like
 * one. */
static bool is_scope(struct text scope, struct text rest, bool is_first, bool has_numbers)
{
	if (is_first || !has_numbers || is_digit(rest.at[0]) || starts_with(rest, "__"))
		return true;
	return scope.at[0] >= 'A' && scope.at[0] <= 'Z';
}

/* Removes GCC's ".isra.0", ".constprop.1", ".cold". */
static struct text without_clone(struct text text)
{
	const char *dot = memchr(text.at, '.', text.size);

	if (dot)
		text.size = (size_t)(dot - text.at);
	return text;
}

static struct text without_number(struct text text)
{
	const size_t digits = count_digits(text);

	return digits < text.size ? skip(text, digits) : text;
}

/* Removes "__pyx_fuse_0_1" of "__pyx_fuse_0_1boil", a specialization of a fused function. */
static struct text without_fuse(struct text text)
{
	static const char prefix[] = "__pyx_fuse_";
	size_t at = sizeof(prefix) - 1;

	if (!starts_with(text, prefix))
		return text;
	while (at < text.size &&
	       (is_digit(text.at[at]) ||
		(text.at[at] == '_' && at + 1 < text.size && is_digit(text.at[at + 1]))))
		at++;
	return at < text.size ? skip(text, at) : text;
}

static bool take_function(struct text text, bool has_numbers, struct joined *result)
{
	struct text scope, rest;
	bool is_first = true;

	text = without_clone(text);
	while (take_scope(text, &scope, &rest) && is_scope(scope, rest, is_first, has_numbers)) {
		add_part(result, scope);
		text = rest;
		is_first = false;
	}
	if (is_first)
		return false;
	add_part(result, without_fuse(has_numbers ? without_number(text) : text));
	result->text[result->size] = '\0';
	return true;
}

static bool demangle_cython(const char *name, size_t size, char ret_text[DEMANGLE_MAX_BYTES])
{
	/* Python wrapper, its body, a generator's body: these have numbers, cdef functions do
	 * not. */
	static const char *const numbered[] = {"__pyx_pw_", "__pyx_pf_", "__pyx_gb_"};
	static const char module_prefix[] = "__pyx_pymod_exec_";
	struct joined result = {.text = ret_text};
	struct text text = {.at = name, .size = size};

	for (size_t i = 0; i < ARRAY_SIZE(numbered); i++)
		if (starts_with(text, numbered[i]))
			return take_function(skip(text, strlen(numbered[i])), true, &result);
	if (starts_with(text, "__pyx_fuse_"))
		text = without_fuse(text);
	if (starts_with(text, "__pyx_f_"))
		return take_function(skip(text, strlen("__pyx_f_")), false, &result);
	if (!starts_with(text, module_prefix) || text.size == sizeof(module_prefix) - 1)
		return false;
	add_part(&result, without_clone(skip(text, sizeof(module_prefix) - 1)));
	add_part(&result, (struct text){.at = "<module>", .size = 8});
	result.text[result.size] = '\0';
	return true;
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
