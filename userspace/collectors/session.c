/* SPDX-License-Identifier: BSD-2-Clause */
#include "collectors/session.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/kinds.h"

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
	char *text;	     /* owned */
	size_t size, room;
	int err;
};

static int keep(struct intake *intake, const void *bytes, size_t size)
{
	if (size > FETCH_TEXT_MAX_BYTES - intake->size)
		return -EFBIG;
	if (intake->size + size >= intake->room) {
		const size_t room = 2 * (intake->size + size) + 1;
		char *grown = realloc(intake->text, room);

		if (!grown)
			return -ENOMEM;
		intake->text = grown;
		intake->room = room;
	}
	memcpy(intake->text + intake->size, bytes, size);
	intake->size += size;
	intake->text[intake->size] = '\0';
	return 0;
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
					session->settings->token_file ? " of a token that is "
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
	struct intake intake = {.text = calloc(1, 1), .room = 1};
	int err = intake.text ? ask(session, asked, &intake) : -ENOMEM;

	if (err) {
		free(intake.text);
		return err;
	}
	*ret_text = intake.text;
	*ret_size = intake.size;
	return 0;
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
