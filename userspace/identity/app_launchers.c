/* SPDX-License-Identifier: BSD-2-Clause */
#include "identity/app_launchers.h"

#include <string.h>

#include "base/cleanup.h"

void arguments_split(const char *text, size_t size, struct arguments *ret_arguments)
{
	ret_arguments->count = 0;
	for (size_t at = 0; at < size && ret_arguments->count < ARGUMENTS_MAX;) {
		ret_arguments->argument[ret_arguments->count++] = text + at;
		at += strlen(text + at) + 1;
	}
}

const char *arguments_get(const struct arguments *arguments, size_t index)
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
	static const char *const flag[] = {
		"--reload", "--preload", "--daemon", "-D", "--check-config", "--print-config",
		"--spew", "--reuse-port", "--no-sendfile", "--capture-output", "--log-syslog",
		"--disable-redirect-access-to-syslog", "--enable-stdio-inheritance", "-R",
		"--initgroups", "--do-handshake-on-connect", "--suppress-ragged-eofs",
		"--enable-backlog-metric", "--permit-obsolete-folding", "--strip-header-spaces",
		"--permit-unconventional-http-method", "--permit-unconventional-http-version",
		"--casefold-http-method", "--no-control-socket"};

	for (size_t i = 0; i < ARRAY_SIZE(flag); i++)
		if (!strcmp(option, flag[i]))
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
		const char *slash = strrchr(argument, '/');
		const size_t size = strlen(argument);

		if ((!strcmp(argument, "-m") || !strcmp(argument, "--module")) &&
		    *arguments_get(arguments, at + 1)) {
			*ret_target = span_of(arguments_get(arguments, at + 1));
			return true;
		}
		if (argument[0] != '-' && size >= sizeof(suffix) &&
		    !strcmp(argument + size - (sizeof(suffix) - 1), suffix)) {
			*ret_target = span_of(slash ? slash + 1 : argument);
			return true;
		}
	}
	return false;
}

bool app_launcher_target(const struct arguments *arguments, size_t first, struct span program,
			 struct span *ret_target)
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

bool app_title_name(const char *title, struct span *ret_name)
{
	if (starts_with(title, "gunicorn: "))
		return gunicorn_title(title, ret_name);
	if (starts_with(title, "[celeryd: ") || starts_with(title, "[celery beat"))
		return celery_title(title, ret_name);
	return starts_with(title, "ray::") && ray_title(title, ret_name);
}
