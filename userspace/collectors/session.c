/* SPDX-License-Identifier: BSD-2-Clause */
#include "collectors/session.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <jansson.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/io.h"
#include "base/kinds.h"

/* ---- where the files go ---- */

struct place {
	pthread_mutex_t mutex; /* of what is in the directory */
	bool is_removed;
	char *path; /* owned */
	int directory_fd;
	int fd;		/* the file that was begun; -1: none */
	char *name;	/* its name, owned */
	uint64_t bytes; /* of all files */
};

int place_new(struct place **ret_place)
{
	OWNED(place) struct place *place = calloc(1, sizeof(*place));
	const char *temporary = getenv("TMPDIR");

	if (!place)
		return -ENOMEM;
	pthread_mutex_init(&place->mutex, NULL);
	place->fd = place->directory_fd = -1;
	place->is_removed = true;
	if (asprintf(&place->path, "%s/pyprof-XXXXXX",
		     temporary && temporary[0] ? temporary : "/tmp") < 0) {
		place->path = NULL;
		return -ENOMEM;
	}
	if (!mkdtemp(place->path))
		return -errno;
	place->is_removed = false;
	place->directory_fd = open(place->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	if (place->directory_fd < 0)
		return -errno;
	*ret_place = TAKE(place);
	return 0;
}

/* Deletes the files: there are no directories. */
static void empty(const struct place *place)
{
	OWNED_DIR DIR *dir = opendir(place->path);
	const struct dirent *item;

	while (dir && (item = readdir(dir)))
		if (strcmp(item->d_name, ".") && strcmp(item->d_name, ".."))
			(void)unlinkat(dirfd(dir), item->d_name, 0);
}

void place_remove(struct place *place)
{
	pthread_mutex_lock(&place->mutex);
	if (!place->is_removed) {
		empty(place);
		(void)rmdir(place->path);
		place->is_removed = true;
	}
	pthread_mutex_unlock(&place->mutex);
}

void place_free(struct place *place)
{
	if (!place)
		return;
	place_remove(place);
	close_owned_fd(&place->fd);
	close_owned_fd(&place->directory_fd);
	pthread_mutex_destroy(&place->mutex);
	free(place->name);
	free(place->path);
	free(place);
}

const char *place_path(const struct place *place)
{
	return place->path;
}

int place_begin(struct place *place, const char *name)
{
	int err = 0;

	place_abandon(place);
	place->name = strdup(name);
	if (!place->name)
		return -ENOMEM;
	pthread_mutex_lock(&place->mutex);
	if (place->is_removed)
		err = -ECANCELED;
	else
		place->fd = openat(place->directory_fd, name,
				   O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (!err && place->fd < 0)
		err = -errno;
	pthread_mutex_unlock(&place->mutex);
	return err;
}

int place_write(struct place *place, const void *bytes, size_t size)
{
	if (size > FETCH_MAX_BYTES - place->bytes)
		return -EFBIG;
	place->bytes += size;
	return write_full(place->fd, bytes, size);
}

int place_end(struct place *place)
{
	const int err = close(TAKE_FD(place->fd)) ? -errno : 0;

	free(TAKE(place->name));
	return err;
}

void place_abandon(struct place *place)
{
	if (place->fd >= 0) {
		close(TAKE_FD(place->fd));
		place_delete(place, place->name);
	}
	free(TAKE(place->name));
}

bool place_has(const struct place *place, const char *name)
{
	struct stat status;

	return !fstatat(place->directory_fd, name, &status, AT_SYMLINK_NOFOLLOW);
}

void place_delete(struct place *place, const char *name)
{
	struct stat status;

	if (!fstatat(place->directory_fd, name, &status, AT_SYMLINK_NOFOLLOW) && status.st_size > 0)
		place->bytes -= (uint64_t)status.st_size < place->bytes ? (uint64_t)status.st_size
									: place->bytes;
	(void)unlinkat(place->directory_fd, name, 0);
}

int place_first_byte(const struct place *place, const char *name)
{
	OWNED_FD int fd = openat(place->directory_fd, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	unsigned char byte;
	int err = fd < 0 ? -errno : pread_full(fd, &byte, 1, 0);

	return err ? err : byte;
}

#define HOUR_MS (3600 * UINT64_C(1000))

int session_complain(struct session *session, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	vsnprintf(session->why, sizeof(session->why), format, args);
	va_end(args);
	return -EINVAL;
}

void session_progress(const struct session *session, uint64_t done, uint64_t wanted)
{
	fprintf(session->lines, "progress %" PRIu64 " %" PRIu64 "\n", done, wanted);
	fflush(session->lines);
}

void session_note(const struct session *session, const char *line)
{
	fprintf(session->lines, "note %s\n", line);
	fflush(session->lines);
}

/* ---- requests ---- */

/* What is done with an answer's body. */
struct intake {
	struct place *place; /* NULL: it is kept here */
	FILE *out;	     /* borrowed */
	size_t size;
	int err;
};

static int keep(struct intake *intake, const void *bytes, size_t size)
{
	if (size > FETCH_TEXT_MAX_BYTES - intake->size)
		return -EFBIG;
	intake->size += size;
	return fwrite(bytes, 1, size, intake->out) == size ? 0 : -ENOMEM;
}

static int take(void *context, unsigned int status, const void *bytes, size_t size)
{
	struct intake *intake = context;

	/* Of an error the client keeps the line. */
	if (status != 200)
		return 0;
	intake->err =
		intake->place ? place_write(intake->place, bytes, size) : keep(intake, bytes, size);
	return intake->err;
}

static int complain_intake(struct session *session, int err)
{
	if (err == -ENOMEM)
		return err;
	if (err == -EFBIG)
		return session_complain(session, "its answer is too long: choose less with "
						 "--since and --until");
	return session_complain(session, "cannot write below '%.200s': %s",
				place_path(session->place), strerror(-err));
}

static int complain_status(struct session *session, const struct http_client_reply *reply)
{
	if (reply->status == 404)
		return -ENOENT;
	if (reply->status == 401 || reply->status == 403)
		return session_complain(session, "%s: give --from-set token-file=FILE%s",
					reply->fault,
					session->settings->as.token_file ? " of a token that is "
									   "right"
									 : "");
	return session_complain(session, "%s", reply->fault);
}

static int ask(struct session *session, const struct session_ask *asked, struct intake *intake)
{
	const struct http_client_request request = {.url = asked->url,
						    .header = asked->header,
						    .body = asked->body,
						    .size = asked->size,
						    .take = take,
						    .context = intake};
	struct http_client_reply reply;
	int err = http_client_send(session->client, &request, &reply);

	if (err == -ENOMEM)
		return err;
	if (intake->err)
		return complain_intake(session, intake->err);
	snprintf(session->why, sizeof(session->why), "%s", reply.fault);
	if (err || reply.end != HTTP_CLIENT_ANSWERED)
		return -EINVAL;
	return reply.status == 200 ? 0 : complain_status(session, &reply);
}

int session_get_file(struct session *session, const struct session_ask *asked, const char *name)
{
	struct intake intake = {.place = session->place};
	int err = place_begin(session->place, name);

	if (err)
		return complain_intake(session, err);
	err = ask(session, asked, &intake);
	if (err) {
		place_abandon(session->place);
		return err;
	}
	err = place_end(session->place);
	return err ? complain_intake(session, err) : 0;
}

int session_get_text(struct session *session, const struct session_ask *asked, char **ret_text,
		     size_t *ret_size)
{
	OWNED_MEM char *text = NULL;
	struct intake intake = {.out = open_memstream(&text, ret_size)};
	int err = intake.out ? ask(session, asked, &intake) : -ENOMEM;

	if (intake.out && close_memory_file(intake.out, &text) && !err)
		err = -ENOMEM;
	if (!err)
		*ret_text = TAKE(text);
	return err;
}

int session_get_member(struct session *session, const struct session_ask *asked, const char *name,
		       char **ret_text, size_t *ret_size)
{
	OWNED_MEM char *answer = NULL, *text = NULL;
	const json_t *member;
	json_t *object;
	size_t size;
	int err = session_get_text(session, asked, &answer, &size);

	if (err)
		return err;
	object = json_loadb(answer, size, 0, NULL);
	if (!json_is_object(object)) {
		json_decref(object);
		return session_complain(session, "its answer is not JSON: is it a %s?",
					collector_name(session->address->collector));
	}
	member = json_object_get(object, name);
	size = json_string_length(member);
	text = strndup(size ? json_string_value(member) : "", size);
	json_decref(object);
	if (!text)
		return -ENOMEM;
	*ret_text = TAKE(text);
	*ret_size = size;
	return 0;
}

/* ---- what is asked for ---- */

const char *session_kind(const struct session *session)
{
	return session->settings->kind[0] ? session->settings->kind
					  : kind_get(PP_PROFILE_DEFAULT)->name;
}

void session_range(struct session *session, uint64_t *ret_since_ms, uint64_t *ret_until_ms)
{
	const struct fetch_settings *settings = session->settings;

	*ret_until_ms = settings->until_ms ? settings->until_ms : wall_ns() / NS_PER_MS;
	*ret_since_ms = settings->since_ms;
	if (settings->since_ms)
		return;
	*ret_since_ms = *ret_until_ms > HOUR_MS ? *ret_until_ms - HOUR_MS : 0;
	session->is_default_range = true;
}

/* Finds the values of a kind by name; NULL: the default ones. */
static const struct kind_value *find_value(const struct kind *kind, const char *type)
{
	if (!type[0])
		return &kind->value[kind->default_value];
	for (size_t i = 0; kind->value[i].type; i++)
		if (!strcmp(kind->value[i].type, type))
			return &kind->value[i];
	return NULL;
}

/* Writes "cpu:nanoseconds:cpu:nanoseconds" of the kind, as collectors name what pushing sent:
 * type and unit of the values, and of the period. */
static int value_names(struct session *session, char ret_names[FETCH_TYPE_BYTES * 4])
{
	const char *name = session_kind(session);
	const struct kind *kind;
	const struct kind_value *value, *period;
	enum pp_profile found;

	if (!kind_find(name, strlen(name), &found))
		return session_complain(session,
					"a collector has no kind '%s' of ours: name it by "
					"profile_type= in the URL",
					name);
	kind = kind_get(found);
	value = find_value(kind, session->settings->sample_type);
	if (!value)
		return session_complain(session, "kind %s has no sample type '%s'", name,
					session->settings->sample_type);
	/* As collectors/requests.c has it: what is counted by time has its time as the period. */
	period = found == PP_PROFILE_CPU ? &kind->value[kind->default_value] : &kind->value[0];
	snprintf(ret_names, FETCH_TYPE_BYTES * 4, "%s:%s:%s:%s", value->type, value->unit,
		 period->type, period->unit);
	return 0;
}

/* ---- what collectors that merge a range have in common ---- */

void session_tell_limits(const struct session *session)
{
	session_note(session,
		     "a collector gives one profile of the whole range: no windows for +-, no "
		     "ledger, no labels of samples; its series are chosen in the URL");
	if (session->is_default_range)
		session_note(session, "without --since it is the last hour");
}

int session_find_type(struct session *session, const char *name, const char *behind,
		      char ret_type[SESSION_TYPE_BYTES])
{
	char names[FETCH_TYPE_BYTES * 4];
	int err;

	if (session->address->type) {
		snprintf(ret_type, SESSION_TYPE_BYTES, "%s", session->address->type);
		return 0;
	}
	err = value_names(session, names);
	if (!err)
		snprintf(ret_type, SESSION_TYPE_BYTES, "%s:%s%s", name, names, behind);
	return err;
}

int session_complain_missing(struct session *session, const char *type, const char *selector)
{
	session->is_missing = true;
	return session_complain(session, "has no profile of %s%.400s in this range", type,
				selector);
}
