/* SPDX-License-Identifier: BSD-2-Clause */
#include "identity/app_name.h"

#include <stdbool.h>
#include <string.h>

#include "base/cleanup.h"
#include "identity/app_launchers.h"

/* ---- the interpreter's own options ---- */

/* What an interpreter executes. */
struct program {
	const char *name; /* of a script's file, or a module */
	bool is_module, is_code;
	size_t next; /* argument behind it */
};

static bool starts_with(const char *text, const char *prefix)
{
	return !strncmp(text, prefix, strlen(prefix));
}

static const char *file_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

static bool is_interpreter(const char *path)
{
	const char *name = file_name(path);

	return starts_with(name, "python") || starts_with(name, "pypy");
}

/* Takes the value of an option: what is behind its letter, or the next argument. */
static const char *option_value(const struct arguments *arguments, const char *rest, size_t *at)
{
	return *rest ? rest : arguments_get(arguments, ++*at);
}

/* Reads one argument of short options, -uBm for example.  Returns whether it names the program. */
static bool take_short_options(const struct arguments *arguments, size_t *at,
			       struct program *program)
{
	for (const char *letter = arguments_get(arguments, *at) + 1; *letter; letter++) {
		switch (*letter) {
		case 'c':
		case 'm':
			program->is_module = *letter == 'm';
			program->is_code = *letter == 'c';
			program->name = option_value(arguments, letter + 1, at);
			program->next = *at + 1;
			return true;
		case 'W':
		case 'X':
			(void)option_value(arguments, letter + 1, at);
			return false;
		default:
			break;
		}
	}
	return false;
}

/* Source: the manual page python(1).  Returns false: it is interactive, or reads standard input. */
static bool find_program(const struct arguments *arguments, struct program *program)
{
	for (size_t at = 1; at < arguments->count; at++) {
		const char *argument = arguments_get(arguments, at);

		if (!strcmp(argument, "-"))
			return false;
		if (!strcmp(argument, "--check-hash-based-pycs"))
			at++;
		else if (argument[0] != '-') {
			*program = (struct program){.name = argument, .next = at + 1};
			return *argument;
		} else if (argument[1] != '-' && take_short_options(arguments, &at, program)) {
			return *program->name;
		}
	}
	return false;
}

/* ---- names ---- */

/* Returns whether code or a module is how a library starts a child for its parent's program. */
static bool is_of_parent(const struct program *program)
{
	static const char *const library[] = {"multiprocessing.", "billiard.",
					      "joblib.externals.loky.", "loky.backend."};
	static const char import[] = "from ";
	const char *name = program->name;

	if (program->is_code) {
		if (!starts_with(name, import))
			return false;
		name += sizeof(import) - 1;
	} else if (!program->is_module) {
		return false;
	}
	for (size_t i = 0; i < ARRAY_SIZE(library); i++)
		if (starts_with(name, library[i]))
			return true;
	return false;
}

/* Returns the part of a script's path that names it. */
static struct span script_name(const char *path)
{
	static const char main_file[] = "__main__.py";
	size_t size = strlen(path), first;

	while (size > 1 && path[size - 1] == '/')
		size--;
	for (first = size; first && path[first - 1] != '/';)
		first--;
	if (first < 2 || size - first != sizeof(main_file) - 1 ||
	    memcmp(path + first, main_file, size - first) != 0)
		return (struct span){path + first, size - first};
	size = first - 1;
	for (first = size; first && path[first - 1] != '/';)
		first--;
	return (struct span){path + first, size - first};
}

static struct span program_name(const struct arguments *arguments, const struct program *program)
{
	struct span name = program->is_module
				   ? (struct span){program->name, strlen(program->name)}
				   : script_name(program->name);
	struct span target;

	if (!program->is_module && strstr(program->name, "ray/_private/workers/default_worker.py"))
		return (struct span){"ray", 3};
	return app_launcher_target(arguments, program->next, name, &target) ? target : name;
}

enum app_kind app_name(const char *text, size_t size, char ret_app[LABEL_VALUE_BYTES])
{
	struct arguments arguments;
	struct program program = {0};
	struct span name;

	ret_app[0] = '\0';
	arguments_split(text, size, &arguments);
	if (!arguments.count)
		return APP_NONE;
	if (app_title_name(arguments_get(&arguments, 0), &name)) {
		label_value(name.at, name.size, ret_app);
		return ret_app[0] ? APP_NAMED : APP_NONE;
	}
	if (!is_interpreter(arguments_get(&arguments, 0)) || !find_program(&arguments, &program))
		return APP_NONE;
	if (is_of_parent(&program))
		return APP_OF_PARENT;
	if (program.is_code)
		return APP_NONE;
	name = program_name(&arguments, &program);
	label_value(name.at, name.size, ret_app);
	return ret_app[0] ? APP_NAMED : APP_NONE;
}
