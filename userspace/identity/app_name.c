/* SPDX-License-Identifier: BSD-2-Clause */
#include "identity/identity.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "base/cleanup.h"

/* What servers and launchers (gunicorn, uvicorn, celery, torchrun, ...) run, from their arguments
 * or from the titles that they give their processes.  No state. */

/* text[size] is NUL, and so is the byte behind each argument. */
static void arguments_split(const char *text, size_t size, struct arguments *ret_arguments)
{
	ret_arguments->count = 0;
	for (size_t at = 0; at < size && ret_arguments->count < ARGUMENTS_MAX;) {
		ret_arguments->argument[ret_arguments->count++] = text + at;
		at += strlen(text + at) + 1;
	}
}

/* Returns "" where there is none. */
static const char *arguments_get(const struct arguments *arguments, size_t index)
{
	return index < arguments->count ? arguments->argument[index] : "";
}

static struct span span_of(const char *text)
{
	return (struct span){text, strlen(text)};
}

static bool span_is(struct span span, const char *text)
{
	return span.size == strlen(text) && !memcmp(span.at, text, span.size);
}

static bool starts_with(const char *text, const char *prefix)
{
	return !strncmp(text, prefix, strlen(prefix));
}

/* ---- modules and options ---- */

static bool is_identifier_start(char byte)
{
	return (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') || byte == '_' ||
	       (unsigned char)byte >= 0x80;
}

/* Returns how many bytes of a text are a name of Python, with dots in between. */
static size_t dotted_size(const char *text)
{
	size_t at = 0;

	if (!is_identifier_start(text[0]))
		return 0;
	while (is_identifier_start(text[at]) || (text[at] >= '0' && text[at] <= '9') ||
	       (text[at] == '.' && is_identifier_start(text[at + 1])))
		at++;
	return at;
}

/* MODULE:ATTRIBUTE; an address (0.0.0.0:80, localhost:80, unix:/run/x) is none. */
static bool module_of_spec(const char *argument, struct span *ret_module)
{
	const size_t size = dotted_size(argument);

	if (!size || argument[size] != ':' || !is_identifier_start(argument[size + 1]))
		return false;
	*ret_module = (struct span){argument, size};
	return true;
}

/* Returns the value of an option: "--name X", "--name=X", "-n X", "-nX"; NULL: it is not given. */
static const char *value_of(const struct arguments *arguments, size_t first, const char *name,
			    const char *letter)
{
	const size_t size = strlen(name);

	for (size_t at = first; at < arguments->count; at++) {
		const char *argument = arguments_get(arguments, at);

		if (!strcmp(argument, name) || !strcmp(argument, letter))
			return arguments_get(arguments, at + 1);
		if (!strncmp(argument, name, size) && argument[size] == '=')
			return argument + size + 1;
		if (starts_with(argument, letter) && argument[1] != '-')
			return argument + strlen(letter);
	}
	return NULL;
}

/* ---- launchers ---- */

static bool asgi_target(const struct arguments *arguments, size_t first, struct span *ret_target)
{
	for (size_t at = first; at < arguments->count; at++)
		if (module_of_spec(arguments_get(arguments, at), ret_target))
			return true;
	return false;
}

/* Options of gunicorn without a value.  Source: gunicorn/config.py of 27.0, action store_true and
 * store_const. */
static bool is_gunicorn_flag(const char *option)
{
	static const char flags[] =
		" --reload --preload --daemon -D --check-config --print-config --spew --reuse-port "
		"--no-sendfile --capture-output --log-syslog --disable-redirect-access-to-syslog "
		"--enable-stdio-inheritance -R --initgroups --do-handshake-on-connect "
		"--suppress-ragged-eofs --enable-backlog-metric --permit-obsolete-folding "
		"--strip-header-spaces --permit-unconventional-http-method "
		"--permit-unconventional-http-version --casefold-http-method --no-control-socket ";
	const size_t size = strlen(option);

	for (const char *at = flags; (at = strstr(at, option)); at += size)
		if (at[-1] == ' ' && at[size] == ' ')
			return true;
	return false;
}

static bool gunicorn_target(const struct arguments *arguments, size_t first,
			    struct span *ret_target)
{
	const char *name = value_of(arguments, first, "--name", "-n");

	if (name && *name) {
		*ret_target = span_of(name);
		return true;
	}
	if (asgi_target(arguments, first, ret_target))
		return true;
	/* MODULE alone, which is no option's value. */
	for (size_t at = first; at < arguments->count; at++) {
		const char *argument = arguments_get(arguments, at);
		const size_t size = dotted_size(argument);

		if (size && !argument[size]) {
			*ret_target = span_of(argument);
			return true;
		}
		if (starts_with(argument, "-") && !strchr(argument, '=') &&
		    (argument[1] == '-' || strlen(argument) <= 2) && !is_gunicorn_flag(argument))
			at++;
	}
	return false;
}

static bool celery_target(const struct arguments *arguments, size_t first, struct span *ret_target)
{
	const char *app = value_of(arguments, first, "--app", "-A");

	if (!app || !*app)
		return false;
	*ret_target = (struct span){app, strcspn(app, ":")};
	return true;
}

/* The first script, or the module of -m. */
static bool torchrun_target(const struct arguments *arguments, size_t first,
			    struct span *ret_target)
{
	static const char suffix[] = ".py";

	for (size_t at = first; at < arguments->count; at++) {
		const char *argument = arguments_get(arguments, at);
		const size_t size = strlen(argument);

		if ((!strcmp(argument, "-m") || !strcmp(argument, "--module")) &&
		    *arguments_get(arguments, at + 1)) {
			*ret_target = span_of(arguments_get(arguments, at + 1));
			return true;
		}
		if (argument[0] != '-' && size >= sizeof(suffix) &&
		    !strcmp(argument + size - (sizeof(suffix) - 1), suffix)) {
			*ret_target = span_of(basename(argument));
			return true;
		}
	}
	return false;
}

/* program: the name of a script or a module, whose own arguments begin with `first`.  Returns
 * whether it is a launcher, with what it runs. */
static bool app_launcher_target(const struct arguments *arguments, size_t first,
				struct span program, struct span *ret_target)
{
	/* By the name of the script, or of the module. */
	static const struct launcher {
		const char *name;
		bool (*target)(const struct arguments *arguments, size_t first,
			       struct span *ret_target);
	} launcher[] = {
		{"gunicorn", gunicorn_target},
		{"gunicorn.app.wsgiapp", gunicorn_target},
		{"uvicorn", asgi_target},
		{"hypercorn", asgi_target},
		{"granian", asgi_target},
		{"celery", celery_target},
		{"torchrun", torchrun_target},
		{"torch.distributed.run", torchrun_target},
		{"torch.distributed.launch", torchrun_target},
		{"accelerate", torchrun_target},
		{"accelerate.commands.launch", torchrun_target},
		{"deepspeed", torchrun_target},
	};

	for (size_t i = 0; i < ARRAY_SIZE(launcher); i++)
		if (span_is(program, launcher[i].name))
			return launcher[i].target(arguments, first, ret_target);
	return false;
}

/* ---- titles ---- */

/* "gunicorn: master [shop.wsgi:app]" */
static bool gunicorn_title(const char *title, struct span *ret_name)
{
	const char *open = strchr(title, '['), *close = strrchr(title, ']');

	*ret_name = (struct span){"gunicorn", 8};
	if (!open || !close || close <= open + 1)
		return true;
	*ret_name = (struct span){open + 1, (size_t)(close - open - 1)};
	(void)module_of_spec(open + 1, ret_name);
	return true;
}

/* "[celeryd: w1@host:MainProcess] -active- (-A shop.tasks worker -l info)" */
static bool celery_title(const char *title, struct span *ret_name)
{
	static const char *const option[] = {"(-A ", " -A ", "(--app=", " --app="};
	const char *arguments = strchr(title, '(');

	*ret_name = (struct span){"celery", 6};
	for (size_t i = 0; arguments && i < ARRAY_SIZE(option); i++) {
		const char *app = strstr(arguments, option[i]);

		if (!app || !dotted_size(app + strlen(option[i])))
			continue;
		app += strlen(option[i]);
		*ret_name = (struct span){app, dotted_size(app)};
		return true;
	}
	return true;
}

/* "ray::Counter.increment()": the worker's actor; "ray::IDLE" has none. */
static bool ray_title(const char *title, struct span *ret_name)
{
	static const char prefix[] = "ray::", idle[] = "ray::IDLE";
	const size_t start = sizeof(prefix) - 1;

	*ret_name = (struct span){title, start + strcspn(title + start, ".( ")};
	if (ret_name->size == start || starts_with(title, idle))
		*ret_name = (struct span){"ray", 3};
	return true;
}

/* Returns whether the first argument is a title that a server has given its process, with the name
 * of its application. */
static bool app_title_name(const char *title, struct span *ret_name)
{
	if (starts_with(title, "gunicorn: "))
		return gunicorn_title(title, ret_name);
	if (starts_with(title, "[celeryd: ") || starts_with(title, "[celery beat"))
		return celery_title(title, ret_name);
	return starts_with(title, "ray::") && ray_title(title, ret_name);
}

/* ---- the interpreter's own options ---- */

/* What an interpreter executes. */
struct program {
	const char *name; /* of a script's file, or a module */
	bool is_module, is_code;
	size_t next; /* argument behind it */
};

static bool is_interpreter(const char *path)
{
	const char *name = basename(path);

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
	struct span name = program->is_module ? (struct span){program->name, strlen(program->name)}
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
