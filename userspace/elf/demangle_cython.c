/* SPDX-License-Identifier: BSD-2-Clause */
/* Cython's C names are a prefix for the kind of function, then the scopes, each as its length and
 * its name, then the function.  In __pyx_pw_4spam_3Egg_5boil the last part has no length: the 5
 * only tells it from others in its scope (Cython/Compiler: Naming.py, Symtab.py next_id). */
#include "elf/demangle.h"

#include <string.h>

struct text {
	const char *at;
	size_t size;
};

struct result {
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

static void append(struct result *result, struct text part)
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

static bool take_function(struct text text, bool has_numbers, struct result *result)
{
	struct text scope, rest;
	bool is_first = true;

	text = without_clone(text);
	while (take_scope(text, &scope, &rest) && is_scope(scope, rest, is_first, has_numbers)) {
		append(result, scope);
		text = rest;
		is_first = false;
	}
	if (is_first)
		return false;
	append(result, without_fuse(has_numbers ? without_number(text) : text));
	result->text[result->size] = '\0';
	return true;
}

bool demangle_cython(const char *name, size_t size, char ret_text[DEMANGLE_MAX_BYTES])
{
	/* Python wrapper, its body, a generator's body: these have numbers, cdef functions do
	 * not. */
	static const char *const numbered[] = {"__pyx_pw_", "__pyx_pf_", "__pyx_gb_"};
	static const char module_prefix[] = "__pyx_pymod_exec_";
	struct result result = {.text = ret_text};
	struct text text = {.at = name, .size = size};

	for (size_t i = 0; i < sizeof(numbered) / sizeof(numbered[0]); i++)
		if (starts_with(text, numbered[i]))
			return take_function(skip(text, strlen(numbered[i])), true, &result);
	if (starts_with(text, "__pyx_fuse_"))
		text = without_fuse(text);
	if (starts_with(text, "__pyx_f_"))
		return take_function(skip(text, strlen("__pyx_f_")), false, &result);
	if (!starts_with(text, module_prefix) || text.size == sizeof(module_prefix) - 1)
		return false;
	append(&result, without_clone(skip(text, sizeof(module_prefix) - 1)));
	append(&result, (struct text){.at = "<module>", .size = 8});
	result.text[result.size] = '\0';
	return true;
}
