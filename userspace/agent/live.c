/* SPDX-License-Identifier: BSD-2-Clause */
#include "agent/live.h"

#include <errno.h>
#include <string.h>

#include "agent/dump.h"
#include "agent/progress.h"
#include "base/clock.h"
#include "base/log.h"
#include "live/server.h"
#include "options/options.h"
#include "options/values.h"
#include "windows/source.h"
#include "windows/top.h"

#define STEP_NS (10 * NS_PER_MS)
#define PAUSE_NS (10 * NS_PER_MS)
/* After a job of a user other than root, such users wait for so many times as long as the job
 * took. */
#define USERS_FACTOR 9U

struct live {
	const struct services *services;
	struct live_server *server;
	struct top *top; /* clients that watch */
	struct live_job job;
	struct dump *dump; /* the job; NULL: there is none */
	uint64_t next_step_ns;
	uint64_t spent_ns;	       /* on the job */
	uint64_t users_next_ns;	       /* when the next job of another user than root may begin */
	struct live_server_facts told; /* in the log */
};

/* A unit names a user that a machine without pyprofd-serve need not have.  Returns 0 for nobody but
 * root. */
static uid_t trusted_uid(const char *name)
{
	uid_t uid = 0;

	if (name && option_uid(name, strlen(name), &uid))
		log_warn("live-user '%s' is not a user of this machine: on the live socket root "
			 "alone sees everything",
			 name);
	return uid;
}

int live_open(const struct services *services, struct live **ret_live)
{
	const struct options *options = services->options;
	OWNED(live) struct live *live = NULL;
	int err;

	if (!options->live)
		return 0;
	live = calloc(1, sizeof(*live));
	if (!live)
		return -ENOMEM;
	live->services = services;
	err = live_server_open(options->live, &live->server);
	if (err && options->live_is_default) {
		log_debug("no live socket at %s: %s", options->live, strerror(-err));
		return 0;
	}
	if (err)
		return log_error_errno(err, "cannot serve --live %s", options->live);
	live_server_trust(live->server, trusted_uid(options->live_user));
	err = top_new(options, live->server, services->processes, &live->top);
	if (err)
		return err;
	*ret_live = TAKE(live);
	return 0;
}

void live_free(struct live *live)
{
	if (!live)
		return;
	top_free(live->top);
	dump_free(live->dump);
	live_server_close(live->server);
	free(live);
}

struct top *live_top(const struct live *live)
{
	return live ? live->top : NULL;
}

int live_fd(const struct live *live)
{
	return live_server_fd(live->server);
}

/* Tells once a run what clients do to each other. */
static void tell_refused(struct live *live)
{
	struct live_server_facts facts;

	live_server_facts(live->server, &facts);
	if (facts.turned_away && !live->told.turned_away)
		log_warn("live socket: uid %u has as many clients as one user may have, or all "
			 "places are taken: it is told to try again",
			 facts.turned_uid);
	if (facts.replaced && !live->told.replaced)
		log_warn("live socket: all places of users are taken: who has most clients loses "
			 "one to a user who has fewer");
	if (facts.rests && !live->told.rests)
		log_warn("live socket: more than %u connections a second: further ones wait, "
			 "root's do not",
			 LIVE_CONNECTS_PER_S);
	live->told = facts;
}

/* Answers requests for metrics, which are at hand; at most as many as there are clients. */
static void tell_stats(struct live *live, uint64_t now_ns)
{
	static const struct live_choice stats = {.verb = LIVE_STATS, .root_only = true};
	struct live_job job;

	for (unsigned int i = 0; i < LIVE_CLIENTS_MAX; i++) {
		char *text = NULL;
		size_t size;
		int err;

		if (!live_server_next(live->server, stats, &job))
			return;
		err = metrics_tell(live->services, &text, &size);
		if (err)
			live_server_refuse(live->server, job.number, err, "no memory", now_ns);
		else
			live_server_reply(live->server, job.number, text, size, now_ns);
	}
}

void live_serve(struct live *live)
{
	uint64_t now_ns = mono_ns();

	if (!live)
		return;
	live_server_serve(live->server, now_ns);
	tell_refused(live);
	top_serve(live->top, now_ns);
	tell_stats(live, now_ns);
}

static void end(struct live *live)
{
	log_debug("a dump for uid %u cost %.1f ms", live->job.uid,
		  (double)live->spent_ns / NS_PER_MS);
	if (live->job.uid)
		live->users_next_ns = mono_ns() + USERS_FACTOR * live->spent_ns;
	dump_free(TAKE(live->dump));
}

static const char *why_not(int err)
{
	return err == -ENOTSUP ? "this pyprofd does not look at waits: it needs --events offcpu"
			       : "the dump failed";
}

/* Begins the next job.  Returns false when there is nothing to do now. */
static bool begin(struct live *live, uint64_t now_ns)
{
	const struct live_choice dump = {.verb = LIVE_DUMP,
					 .root_only = now_ns < live->users_next_ns};
	int err;

	if (!live_server_next(live->server, dump, &live->job))
		return false;
	live->spent_ns = 0;
	err = dump_new(live->services, live->job.uid, &live->job.request, &live->dump);
	if (!err)
		return true;
	live_server_refuse(live->server, live->job.number, err, why_not(err), now_ns);
	return false;
}

static void finish(struct live *live, int err)
{
	char *text = NULL;
	size_t size;

	if (!err)
		err = dump_take(live->dump, &text, &size);
	if (err)
		live_server_refuse(live->server, live->job.number, err, why_not(err), mono_ns());
	else
		live_server_reply(live->server, live->job.number, text, size, mono_ns());
	end(live);
}

void live_step(struct live *live)
{
	uint64_t now_ns = mono_ns();
	int more;

	if (!live || now_ns < live->next_step_ns || (!live->dump && !begin(live, now_ns)))
		return;
	/* The client has gone. */
	if (!live_server_waits(live->server, live->job.number)) {
		end(live);
		return;
	}
	more = dump_step(live->dump, STEP_NS);
	live->spent_ns += mono_ns() - now_ns;
	live->next_step_ns = mono_ns() + PAUSE_NS;
	if (more <= 0)
		finish(live, more);
}

int live_timeout_ms(const struct live *live, int longest_ms)
{
	return live && live->dump ? ms_until(live->next_step_ns, longest_ms) : longest_ms;
}

void live_refresh(struct live *live)
{
	if (live && live->dump)
		dump_refresh(live->dump);
}
