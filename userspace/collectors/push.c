/* SPDX-License-Identifier: BSD-2-Clause */
#include "collectors/push.h"

#include <curl/curl.h>
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <string.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "config/secret.h"
#include "store/file_output.h"

#define LOCK_NAME ".push.lock"
#define STATE_DEFAULT "/var/lib/pyprofd-serve"
#define STATE_MODE 0750
#define HOST_BYTES 256U

struct push {
	char *store; /* owned */
	char host[HOST_BYTES];
	int state_fd, lock_fd;
	bool has_curl;
	struct push_sink *sink[CONFIG_SECTIONS_MAX]; /* owned */
	size_t count;
};

void push_end(struct push *push)
{
	/* All at once, then one after another. */
	for (size_t i = 0; i < push->count; i++)
		push_sink_end(push->sink[i]);
	for (size_t i = 0; i < push->count; i++)
		push_sink_join(push->sink[i]);
}

void push_free(struct push *push)
{
	if (!push)
		return;
	push_end(push);
	for (size_t i = 0; i < push->count; i++)
		push_sink_free(push->sink[i]);
	if (push->lock_fd >= 0)
		lock_file_remove(push->state_fd, LOCK_NAME, push->lock_fd);
	if (push->state_fd >= 0)
		close(push->state_fd);
	if (push->has_curl)
		curl_global_cleanup();
	free(push->store);
	free(push);
}

static const char *look_around(const char *name)
{
	return getenv(name);
}

/* Makes and locks the directory of cursors. */
static int open_state(struct push *push, const char *path, char why[CONFIG_WHY_BYTES])
{
	int err = 0;

	if (mkdir(path, STATE_MODE) && errno != EEXIST)
		err = -errno;
	if (!err) {
		push->state_fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		if (push->state_fd < 0)
			err = -errno;
	}
	if (!err)
		err = lock_file_take(push->state_fd, LOCK_NAME, &push->lock_fd);
	if (err == -EBUSY)
		snprintf(why, CONFIG_WHY_BYTES, "'%s': another process pushes from here: end it",
			 path);
	else if (err)
		snprintf(why, CONFIG_WHY_BYTES,
			 "cannot write to '%s', where pushing keeps how far "
			 "it has come: %s",
			 path, strerror(-err));
	return err;
}

static int add_sink(struct push *push, const struct push_options *options,
		    const struct config_push *section, char why[CONFIG_WHY_BYTES])
{
	const struct push_sink_options sink = {.store = push->store,
					       .state_fd = push->state_fd,
					       .host = push->host,
					       .tell = options->tell,
					       .context = options->context,
					       .poll_ms = options->poll_ms};
	OWNED(push_target) struct push_target *target = NULL;
	int err = push_target_new(section, collector_get(section->collector),
				  options->environment ? options->environment : look_around, why,
				  &target);

	if (err)
		return err;
	err = push_sink_new(&sink, target, &push->sink[push->count]);
	if (err)
		return err;
	(void)TAKE(target);
	push->count++;
	return 0;
}

static int begin(struct push *push, const struct push_options *options, char why[CONFIG_WHY_BYTES])
{
	push->store = strdup(options->store);
	if (!push->store)
		return -ENOMEM;
	if (options->host)
		snprintf(push->host, sizeof(push->host), "%s", options->host);
	else if (gethostname(push->host, sizeof(push->host) - 1))
		snprintf(push->host, sizeof(push->host), "localhost");
	push->has_curl = !curl_global_init(CURL_GLOBAL_DEFAULT);
	if (!push->has_curl)
		return -ENOMEM;
	return open_state(push, options->state, why);
}

int push_new(const struct push_options *options, const struct config *config,
	     char why[CONFIG_WHY_BYTES], struct push **ret_push)
{
	OWNED(push) struct push *push = calloc(1, sizeof(*push));
	struct config_push section;
	int err = 0;

	why[0] = '\0';
	if (!push)
		return -ENOMEM;
	push->state_fd = push->lock_fd = -1;
	for (size_t i = 0; !err && i < CONFIG_SECTIONS_MAX; i++) {
		err = config_push(config, i, &section, why);
		if (err == -ENOENT)
			break;
		if (!err && !i)
			err = begin(push, options, why);
		if (!err)
			err = add_sink(push, options, &section, why);
	}
	if (err && err != -ENOENT)
		return err;
	*ret_push = TAKE(push);
	return 0;
}

/* ---- what sinks need of the file system ---- */

void push_folders_release(struct push_folders *folders)
{
	for (size_t i = 0; i < folders->count; i++)
		free(folders->token[i]);
	*folders = (struct push_folders){0};
}

const char *push_state(const char *given)
{
	const char *systemd = getenv("STATE_DIRECTORY");

	if (given)
		return given;
	return systemd && systemd[0] == '/' ? systemd : STATE_DEFAULT;
}

static int add_files(struct sandbox_paths *paths, const char *const *path, size_t count)
{
	int err = 0;

	for (size_t i = 0; !err && i < count; i++)
		err = sandbox_add(paths, path[i], false);
	return err;
}

/* The folder, as a token is replaced by renaming another file over it. */
static int add_token(const char *path, struct sandbox_paths *paths, struct push_folders *folders)
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

static int add_of_sink(const struct config_push *push, struct sandbox_paths *paths,
		       struct push_folders *folders, char why[CONFIG_WHY_BYTES])
{
	const char *const files[] = {push->ca.text, push->cert.text, push->key.text};
	int err = check_key(push, why);

	if (!err)
		err = add_files(paths, files, ARRAY_SIZE(files));
	return err ? err : add_token(push->token_file.text, paths, folders);
}

static int add_of_all(const char *state, struct sandbox_paths *paths, char why[CONFIG_WHY_BYTES])
{
	/* The environment's, of OTLP. */
	const char *const files[] = {getenv("OTEL_EXPORTER_OTLP_CERTIFICATE"),
				     getenv("OTEL_EXPORTER_OTLP_PROFILES_CERTIFICATE")};
	int err;

	if (mkdir(state, STATE_MODE) && errno != EEXIST) {
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
	return err ? err : add_files(paths, files, ARRAY_SIZE(files));
}

int push_paths(const struct config *config, const char *state, struct sandbox_paths *paths,
	       struct push_folders *folders, char why[CONFIG_WHY_BYTES])
{
	struct config_push push;

	for (size_t i = 0; i < CONFIG_SECTIONS_MAX; i++) {
		int err = config_push(config, i, &push, why);

		if (err == -ENOENT)
			break;
		if (!err && !i)
			err = add_of_all(state, paths, why);
		if (!err)
			err = add_of_sink(&push, paths, folders, why);
		if (err)
			return err;
	}
	return 0;
}

void push_write_metrics(struct push *push, FILE *out)
{
	struct push_stats stats[CONFIG_SECTIONS_MAX];

	for (size_t i = 0; i < push->count; i++)
		push_sink_get_stats(push->sink[i], &stats[i]);
	push_metrics_write(stats, push->count, wall_ns() / NS_PER_MS, out);
}
