/* SPDX-License-Identifier: BSD-2-Clause */
#include "serve/pushing.h"

#include <errno.h>
#include <libgen.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "config/secret.h"

void pushing_folders_release(struct pushing_folders *folders)
{
	for (size_t i = 0; i < folders->count; i++)
		free(folders->token[i]);
	*folders = (struct pushing_folders){0};
}

const char *pushing_state(const char *given)
{
	const char *systemd = getenv("STATE_DIRECTORY");

	if (given)
		return given;
	return systemd && systemd[0] == '/' ? systemd : PUSHING_STATE_DEFAULT;
}

/* The folder, as a token is replaced by renaming another file over it. */
static int add_token(const char *path, struct sandbox_paths *paths,
		     struct pushing_folders *folders)
{
	char *copy = path ? strdup(path) : NULL;

	if (!path)
		return 0;
	if (!copy)
		return -ENOMEM;
	folders->token[folders->count++] = copy;
	return sandbox_add(paths, dirname(copy), false);
}

/* A key that is not there, or cannot be read, is told when it is needed. */
static int check_key(const struct config_push *push, char why[CONFIG_WHY_BYTES])
{
	char line[CONFIG_WHY_BYTES];

	if (!push->key.text || config_check_secret(push->key.text, geteuid(), line) != -EPERM)
		return 0;
	config_complain(&push->key, why, "cannot be used: %s", line);
	return -EPERM;
}

static int add_sink(const struct config_push *push, struct sandbox_paths *paths,
		    struct pushing_folders *folders, char why[CONFIG_WHY_BYTES])
{
	int err = check_key(push, why);

	if (!err)
		err = sandbox_add(paths, push->ca.text, false);

	if (!err)
		err = sandbox_add(paths, push->cert.text, false);
	if (!err)
		err = sandbox_add(paths, push->key.text, false);
	return err ? err : add_token(push->token_file.text, paths, folders);
}

static int add_always(const char *state, struct sandbox_paths *paths, char why[CONFIG_WHY_BYTES])
{
	int err = 0;

	if (mkdir(state, 0750) && errno != EEXIST) {
		err = -errno;
		snprintf(why, CONFIG_WHY_BYTES,
			 "cannot make '%.200s', where pushing keeps how far it has come: %s: give "
			 "--state",
			 state, strerror(-err));
		return err;
	}
	err = sandbox_add(paths, state, true);
	if (!err)
		err = sandbox_add_network(paths);
	/* The environment's, of OTLP. */
	if (!err)
		err = sandbox_add(paths, getenv("OTEL_EXPORTER_OTLP_CERTIFICATE"), false);
	if (!err)
		err = sandbox_add(paths, getenv("OTEL_EXPORTER_OTLP_PROFILES_CERTIFICATE"), false);
	return err;
}

int pushing_paths(const struct config *config, const char *state, struct sandbox_paths *paths,
		  struct pushing_folders *folders, char why[CONFIG_WHY_BYTES])
{
	struct config_push push;
	int err = 0;

	for (size_t i = 0; i < CONFIG_SECTIONS_MAX; i++) {
		err = config_push(config, i, &push, why);
		if (err == -ENOENT)
			break;
		if (!err && !i)
			err = add_always(state, paths, why);
		if (!err)
			err = add_sink(&push, paths, folders, why);
		if (err)
			return err;
	}
	return 0;
}
