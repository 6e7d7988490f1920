/* SPDX-License-Identifier: BSD-2-Clause */
#include "agent/live.h"

#include <errno.h>
#include <string.h>

#include "agent/agent.h"
#include "agent/dump.h"
#include "agent/top.h"
#include "base/clock.h"
#include "base/log.h"
#include "live/server.h"

#define STEP_NS (10 * NS_PER_MS)
#define PAUSE_NS (10 * NS_PER_MS)
/* What jobs of users other than root cost is paid for by a pause of so many times as long. */
#define USERS_FACTOR 9U

struct live {
	struct agent *agent;
	struct live_server *server;
	struct live_job job;
	struct dump *dump; /* of the job; NULL: there is none */
	uint64_t next_step_ns;
	uint64_t spent_ns;	/* on the job */
	uint64_t users_next_ns; /* when the next job of another user than root may begin */
};

int live_open(struct agent *agent, struct live **ret_live)
{
	const struct options *options = agent->options;
	OWNED(live) struct live *live = NULL;
	int err;

	if (!options->live)
		return 0;
	live = calloc(1, sizeof(*live));
	if (!live)
		return -ENOMEM;
	live->agent = agent;
	err = live_server_open(options->live, &live->server);
	if (err && options->live_is_default) {
		log_debug("no live socket at %s: %s", options->live, strerror(-err));
		return 0;
	}
	if (err)
		return log_error_errno(err, "cannot serve --live %s", options->live);
	err = top_new(options, live->server, agent->processes, &agent->top);
	if (err)
		return err;
	*ret_live = TAKE(live);
	return 0;
}

void live_free(struct live *live)
{
	if (!live)
		return;
	dump_free(live->dump);
	live_server_close(live->server);
	free(live);
}

int live_fd(const struct live *live)
{
	return live_server_fd(live->server);
}

void live_serve(struct live *live)
{
	uint64_t now_ns = mono_ns();

	if (!live)
		return;
	live_server_serve(live->server, now_ns);
	top_serve(live->agent->top, now_ns);
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

/* False: there is nothing to do now. */
static bool begin(struct live *live, uint64_t now_ns)
{
	const struct live_choice dump = {.verb = LIVE_DUMP,
					 .root_only = now_ns < live->users_next_ns};
	int err;

	if (!live_server_next(live->server, dump, &live->job))
		return false;
	live->spent_ns = 0;
	err = dump_new(live->agent, live->job.uid, &live->job.request, &live->dump);
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
	/* Nobody wants to know any more. */
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
	uint64_t now_ns = mono_ns();
	int ms = 0;

	if (!live || !live->dump)
		return longest_ms;
	if (now_ns < live->next_step_ns)
		ms = (int)((live->next_step_ns - now_ns) / NS_PER_MS) + 1;
	return ms < longest_ms ? ms : longest_ms;
}

void live_refresh(struct live *live)
{
	if (live && live->dump)
		dump_refresh(live->dump);
}
