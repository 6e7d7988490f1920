/* SPDX-License-Identifier: BSD-2-Clause */
/* Another node's pyprofd-serve: its store's own files, so that windows, ledgers and labels are
 * as they would be there; and any URL that answers with one profile. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/kinds.h"
#include "collectors/collector.h"
#include "collectors/session.h"
#include "store/store_query.h"

/* A year of merged windows of four kinds is half of it. */
#define FILES_MAX (1U << 20)
/* How often the names are asked for again because files were merged meanwhile. */
#define ROUNDS_MAX 8U
#define URL_BYTES 8192U

/* Finds a name; they are sorted by strcmp(). */
static int compare(const void *a, const void *b)
{
	return strcmp(a, b);
}

static bool has(const struct name_list *names, const char *name)
{
	return names->count &&
	       bsearch(name, names->name, names->count, sizeof(*names->name), compare);
}

/* ---- which files ---- */

/* Wall is made of cpu and offcpu, and cpu tells which windows there are. */
static bool is_wanted(const char *kind, const char *wanted)
{
	return !wanted || !strcmp(kind, wanted) || kind_is(kind, PP_PROFILE_CPU) ||
	       (kind_is(wanted, PP_PROFILE_WALL) && kind_is(kind, PP_PROFILE_OFFCPU));
}

/* Takes a line of the list.  Only names of the store's own form are taken: they become names of
 * files here. */
static int add_name(struct session *session, const char *line, size_t size, struct name_list *names)
{
	char name[STORE_FILE_CHARS];
	struct store_file file;

	snprintf(name, sizeof(name), "%.*s", (int)size, line);
	if (size >= sizeof(name) || !store_file_parse(name, &file) || file.is_temporary)
		return session_complain(session, "is no node: its list of files has something "
						 "else");
	if (names->count == FILES_MAX)
		return session_complain(session,
					"has more than %u files: choose less with "
					"--since and --until",
					FILES_MAX);
	return name_list_add(names, name);
}

/* Lists what the node has in the range; everything: of all times. */
static int list(struct session *session, bool everything, struct name_list *names)
{
	const struct fetch_settings *settings = session->settings;
	char url[URL_BYTES], until[32] = "";
	OWNED_MEM char *text = NULL;
	size_t size;
	int err = 0;

	if (settings->until_ms && !everything)
		snprintf(until, sizeof(until), "&until=%" PRIu64, settings->until_ms / 1000 + 1);
	if ((size_t)snprintf(
		    url, sizeof(url), "%s/api/v1/files?from=%" PRIu64 "%s", session->address->base,
		    settings->since_ms / 1000 && !everything ? settings->since_ms / 1000 : 1,
		    until) >= sizeof(url))
		return session_complain(session, "is too long");
	err = session_get_text(session, &(struct session_ask){.url = url}, &text, &size);
	if (err == -ENOENT)
		return session_complain(session, "has no /api/v1/files: is it a pyprofd-serve?");
	for (const char *at = text; !err && *at;) {
		const size_t line = strcspn(at, "\n");

		err = add_name(session, at, line, names);
		at += line + (at[line] == '\n');
	}
	return err;
}

static bool has_kind(const struct name_list *names, const char *kind)
{
	struct store_file file;

	for (size_t i = 0; i < names->count; i++)
		if (store_file_parse(names->name[i], &file) && !strcmp(file.kind, kind))
			return true;
	return false;
}

/* Returns the kind to be fetched: the one that is asked for, else the default where there is one;
 * NULL: all. */
static const char *choose_kind(const struct session *session, const struct name_list *names)
{
	const char *kind = session_kind(session);

	return session->settings->kind[0] || has_kind(names, kind) ? kind : NULL;
}

static void keep_wanted(const struct session *session, struct name_list *names)
{
	const char *wanted = choose_kind(session, names);
	struct store_file file;
	size_t kept = 0;

	for (size_t i = 0; i < names->count; i++)
		if (store_file_parse(names->name[i], &file) && is_wanted(file.kind, wanted))
			memmove(names->name[kept++], names->name[i], sizeof(*names->name));
	names->count = kept;
	if (kept)
		qsort(names->name, kept, sizeof(*names->name), compare);
}

static int say_none(struct session *session)
{
	CLEANUP(name_list_release) struct name_list all = {0};
	int err = list(session, true, &all);

	if (err)
		return err;
	session->is_missing = true;
	if (!all.count)
		return session_complain(session, "has no profiles yet");
	return session_complain(session,
				"has no profiles between --since and --until; there are "
				"%zu files",
				all.count);
}

/* ---- the files themselves ---- */

static int get(struct session *session, const char *name, bool *is_gone)
{
	char url[URL_BYTES];
	int err;

	if ((size_t)snprintf(url, sizeof(url), "%s/api/v1/files/%s", session->address->base,
			     name) >= sizeof(url))
		return session_complain(session, "is too long");
	err = session_get_file(session, &(struct session_ask){.url = url}, name);
	*is_gone |= err == -ENOENT;
	return err == -ENOENT ? 0 : err;
}

/* Gets what is not here yet.  *ret_is_gone: some of it is not there any more. */
static int get_all(struct session *session, const struct name_list *names, bool *ret_is_gone)
{
	int err = 0;

	*ret_is_gone = false;
	for (size_t i = 0; !err && i < names->count; i++) {
		if (!place_has(session->place, names->name[i]))
			err = get(session, names->name[i], ret_is_gone);
		session_progress(session, i + 1, names->count);
	}
	return err;
}

/* Deletes what only an earlier list had: windows of files that were merged since would count
 * twice. */
static void drop_others(struct session *session, const struct name_list *before,
			const struct name_list *names)
{
	for (size_t i = 0; i < before->count; i++)
		if (!has(names, before->name[i]))
			place_delete(session->place, before->name[i]);
}

/* What lies in the place at the end is what one list names, so one state of the store. */
static int fetch_node(struct session *session)
{
	CLEANUP(name_list_release) struct name_list before = {0};
	bool is_gone = true;
	int err = 0;

	for (unsigned int round = 0; !err && is_gone; round++) {
		CLEANUP(name_list_release) struct name_list names = {0};

		if (round == ROUNDS_MAX)
			return session_complain(session, "its files go away while they are read");
		err = list(session, false, &names);
		if (!err && !names.count)
			return say_none(session);
		keep_wanted(session, &names);
		drop_others(session, &before, &names);
		if (!err)
			err = get_all(session, &names, &is_gone);
		name_list_release(&before);
		before = names;
		names = (struct name_list){0};
	}
	return err;
}

const struct collector collector_pyprofd = {
	.id = COLLECTOR_NODE, .fetch = fetch_node, .gives_files = true};

/* ---- any URL ---- */

static int fetch_profile(struct session *session)
{
	const struct session_ask ask = {.url = session->address->base};
	int err;

	if (session->settings->since_ms || session->settings->until_ms)
		return session_complain(session, "is one profile: --since and --until need a node "
						 "(http://HOST:4041), pyroscope+ or parca+");
	err = session_get_file(session, &ask, FETCH_PROFILE_NAME);
	return err == -ENOENT ? session_complain(session, "status 404: there is no such path")
			      : err;
}

const struct collector collector_url = {
	.id = COLLECTOR_URL, .fetch = fetch_profile, .is_slow = true};
