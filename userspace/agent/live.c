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
/* After a dump of another than root, who answers for it waits for so many times as long as it
 * took. */
#define REST_FACTOR 9U
#define TURNS_MAX 5U /* one is root's */

/* Who has a dump made, or rests from one.  Each has one at a time. */
struct turn {
	struct live_job job;
	struct dump *dump; /* NULL: it is done */
	uint64_t spent_ns; /* on the dump */
	uint64_t rests_until_ns;
};

struct live {
	const struct services *services;
	struct live_server *server;
	struct top *top; /* clients that watch */
	struct turn turn[TURNS_MAX]; /* the first one is root's */
	uint64_t next_step_ns;
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
	for (size_t i = 0; i < TURNS_MAX; i++)
		dump_free(live->turn[i].dump);
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

/* ---- dumps: docs/design/live.md ---- */

static void end(struct turn *turn, uint64_t now_ns)
{
	log_debug("a dump for uid %u cost %.1f ms", turn->job.uid,
		  (double)turn->spent_ns / NS_PER_MS);
	if (turn->job.who)
		turn->rests_until_ns = now_ns + REST_FACTOR * turn->spent_ns;
	turn->spent_ns = 0;
	dump_free(TAKE(turn->dump));
}

static const char *why_not(int err)
{
	return err == -ENOTSUP ? "this pyprofd does not look at waits: it needs --events offcpu"
			       : "the dump failed";
}

static bool is_taken(const struct turn *turn, uint64_t now_ns)
{
	return turn->dump || now_ns < turn->rests_until_ns;
}

/* Returns a turn that somebody can have now; NULL: he has one already, or all are taken. */
static struct turn *find_turn(struct live *live, uid_t who)
{
	const uint64_t now_ns = mono_ns();
	struct turn *free = NULL;

	if (!who)
		return is_taken(&live->turn[0], now_ns) ? NULL : &live->turn[0];
	for (size_t i = 1; i < TURNS_MAX; i++) {
		struct turn *turn = &live->turn[i];

		if (!is_taken(turn, now_ns))
			free = turn;
		else if (turn->job.who == who)
			return NULL;
	}
	return free;
}

static bool may_take(void *context, uid_t who)
{
	return find_turn(context, who);
}

/* Begins the dumps whose turns have come. */
static void begin(struct live *live, uint64_t now_ns)
{
	const struct live_choice dump = {.verb = LIVE_DUMP, .may_take = may_take, .context = live};
	struct live_job job;

	for (unsigned int i = 0; i < LIVE_CLIENTS_MAX && live_server_next(live->server, dump, &job);
	     i++) {
		struct turn *turn = find_turn(live, job.who);
		int err = turn ? 0 : -EAGAIN;

		if (!err)
			err = dump_new(live->services, job.uid, &job.request, &turn->dump);
		if (err)
			live_server_refuse(live->server, job.number, err, why_not(err), now_ns);
		else
			turn->job = job;
	}
}

/* Returns whose step is next: root's, or that of the dump that has cost least.  NULL: there is
 * none.  *ret_users: how many have a turn beside root. */
static struct turn *choose(struct live *live, uint64_t now_ns, unsigned int *ret_users)
{
	struct turn *chosen = NULL;

	*ret_users = 0;
	for (size_t i = 0; i < TURNS_MAX; i++) {
		struct turn *turn = &live->turn[i];

		*ret_users += i && is_taken(turn, now_ns);
		if (turn->dump &&
		    (!chosen || (chosen != &live->turn[0] && turn->spent_ns < chosen->spent_ns)))
			chosen = turn;
	}
	return chosen;
}

static void finish(struct live *live, struct turn *turn, int err)
{
	const uint64_t now_ns = mono_ns();
	char *text = NULL;
	size_t size;

	if (!err)
		err = dump_take(turn->dump, &text, &size);
	if (err)
		live_server_refuse(live->server, turn->job.number, err, why_not(err), now_ns);
	else
		live_server_reply(live->server, turn->job.number, text, size, now_ns);
	end(turn, now_ns);
}

void live_step(struct live *live)
{
	uint64_t now_ns = mono_ns();
	unsigned int users;
	struct turn *turn;
	int more;

	if (!live || now_ns < live->next_step_ns)
		return;
	begin(live, now_ns);
	turn = choose(live, now_ns, &users);
	if (!turn)
		return;
	/* The client has gone. */
	if (!live_server_waits(live->server, turn->job.number)) {
		end(turn, now_ns);
		return;
	}
	more = dump_step(turn->dump, STEP_NS);
	turn->spent_ns += mono_ns() - now_ns;
	/* Many users take no more of a CPU than one. */
	live->next_step_ns = mono_ns() + PAUSE_NS * (turn->job.who ? users : 1);
	if (more <= 0)
		finish(live, turn, more);
}

static bool has_dumps(const struct live *live)
{
	for (size_t i = 0; live && i < TURNS_MAX; i++)
		if (live->turn[i].dump)
			return true;
	return false;
}

int live_timeout_ms(const struct live *live, int longest_ms)
{
	return has_dumps(live) ? ms_until(live->next_step_ns, longest_ms) : longest_ms;
}

void live_refresh(struct live *live)
{
	for (size_t i = 0; live && i < TURNS_MAX; i++)
		if (live->turn[i].dump)
			dump_refresh(live->turn[i].dump);
}
