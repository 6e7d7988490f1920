/* SPDX-License-Identifier: BSD-2-Clause */
#include "fetch/session.h"

#include <errno.h>
#include <inttypes.h>
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
	intake->err = intake->place ? place_write(intake->place, bytes, size)
				    : keep(intake, bytes, size);
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

int session_value_names(struct session *session, char ret_names[FETCH_TYPE_BYTES * 4])
{
	const char *name = session_kind(session);
	const struct kind *kind;
	const struct kind_value *value, *period;
	enum pp_profile found;

	if (!kind_find(name, strlen(name), &found))
		return session_complain(session, "a collector has no kind '%s' of ours: name it by "
						 "profile_type= in the URL", name);
	kind = kind_get(found);
	value = find_value(kind, session->settings->sample_type);
	if (!value)
		return session_complain(session, "kind %s has no sample type '%s'", name,
					session->settings->sample_type);
	/* As push/part.c has it: what is counted by time has its time as the period. */
	period = found == PP_PROFILE_CPU ? &kind->value[kind->default_value] : &kind->value[0];
	snprintf(ret_names, FETCH_TYPE_BYTES * 4, "%s:%s:%s:%s", value->type, value->unit,
		 period->type, period->unit);
	return 0;
}
