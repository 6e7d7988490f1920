/* SPDX-License-Identifier: BSD-2-Clause */
/* What servers and launchers (gunicorn, uvicorn, celery, torchrun, ...) run, from their arguments
 * or from the titles that they give their processes.  No state. */
#ifndef IDENTITY_APP_LAUNCHERS_H
#define IDENTITY_APP_LAUNCHERS_H

#include <stdbool.h>
#include <stddef.h>

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

/* text[size] is NUL, and so is the byte behind each argument. */
void arguments_split(const char *text, size_t size, struct arguments *ret_arguments);
/* Returns "" where there is none. */
const char *arguments_get(const struct arguments *arguments, size_t index);

/* program: the name of a script or a module, whose own arguments begin with `first`.  Returns
 * whether it is a launcher, with what it runs. */
bool app_launcher_target(const struct arguments *arguments, size_t first, struct span program,
			 struct span *ret_target);
/* Returns whether the first argument is a title that a server has given its process, with the name
 * of its application. */
bool app_title_name(const char *title, struct span *ret_name);

#endif
