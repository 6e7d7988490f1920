/* SPDX-License-Identifier: BSD-2-Clause */
/* Names the application that a Python process runs, from its command line.  No other argument of
 * the command line is kept: they may hold secrets.  No state. */
#ifndef IDENTITY_APP_NAME_H
#define IDENTITY_APP_NAME_H

#include <stdbool.h>
#include <stddef.h>

#include "identity/label_value.h"

#define ARGUMENTS_MAX 128U /* later ones are not looked at */

/* The arguments of a program, borrowed from its command line. */
struct arguments {
	const char *argument[ARGUMENTS_MAX];
	size_t count;
};

/* A part of an argument. */
struct span {
	const char *at;
	size_t size;
};

#define APP_COMMAND_LINE_BYTES 16384U /* what is behind that is not looked at */

enum app_kind {
	APP_NONE,      /* not Python, an interactive one, or `-c` */
	APP_NAMED,     /* *ret_app is its name */
	APP_OF_PARENT, /* a child that multiprocessing, or what is like it, has started */
};

/* text: what /proc/PID/cmdline says, arguments with a NUL behind each; text[size] is NUL.
 * The name is, of `python [OPTION]... X`:
 * - for a script its file's name (the directory's for __main__.py), for `-m MODULE` the module's;
 * - for gunicorn the value of --name, else the module of its application (gunicorn shop.wsgi:app is
 *   "shop.wsgi"); for uvicorn, hypercorn and granian that module;
 * - for celery the module of its -A, else "celery"; for ray's workers "ray";
 * - for torchrun, torch.distributed.run, accelerate and deepspeed the script that they start.
 * Of a title (setproctitle): what is in the brackets of "gunicorn: worker [NAME]", the -A
 * of "[celeryd: ...] (worker -A ...)", else "celery"; "ray::ACTOR" of "ray::ACTOR.method". */
enum app_kind app_name(const char *text, size_t size, char ret_app[LABEL_VALUE_BYTES]);

#endif
