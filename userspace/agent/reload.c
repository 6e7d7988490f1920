/* SPDX-License-Identifier: BSD-2-Clause */
#include "agent/reload.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "agent/rate.h"
#include "base/background.h"
#include "base/log.h"
#include "options/options.h"
#include "store/output.h"

#define NAMES_BYTES 512U

/* One look at the file.  Belongs to its thread until that has written its address to `done`. */
struct job {
	struct background background;
	const struct options *options; /* borrowed; only what never changes is read */
	int done;		       /* owned */
	struct options fresh;	       /* owned; with err 0 */
	char *why;		       /* owned; with another err */
	int err;
};

struct reload {
	struct options *options;
	struct options latest; /* of the last look; its configuration is in force */
	int done[2];
	bool is_reading, is_wanted;
};

int reload_new(struct options *options, struct reload **ret_reload)
{
	OWNED(reload) struct reload *reload = calloc(1, sizeof(*reload));

	if (!reload)
		return -ENOMEM;
	reload->options = options;
	reload->done[0] = reload->done[1] = -1;
	if (pipe2(reload->done, O_CLOEXEC | O_NONBLOCK))
		return -errno;
	*ret_reload = TAKE(reload);
	return 0;
}

void reload_free(struct reload *reload)
{
	if (!reload)
		return;
	close_owned_fd(&reload->done[0]);
	close_owned_fd(&reload->done[1]);
	options_release(&reload->latest);
	free(reload);
}

int reload_fd(const struct reload *reload)
{
	return reload->done[0];
}

static void *read_file_again(void *context)
{
	struct job *job = context;
	const int done = job->done;

	job->err = options_parse_again(job->options, &job->fresh, &job->why);
	/* A pipe takes so few bytes whole.  Without a reader the agent is at its end. */
	(void)!write(done, &job, sizeof(job));
	close(done);
	return NULL;
}

static int start(struct reload *reload)
{
	OWNED_MEM struct job *job = calloc(1, sizeof(*job));
	int err;

	if (!job)
		return -ENOMEM;
	job->options = reload->options;
	job->done = fcntl(reload->done[1], F_DUPFD_CLOEXEC, 0);
	if (job->done < 0)
		return -errno;
	background_init(&job->background);
	err = background_start(&job->background, read_file_again, job);
	if (err) {
		close(job->done);
		return err;
	}
	(void)TAKE(job);
	return 0;
}

bool reload_begin(struct reload *reload)
{
	int err;

	if (reload->is_reading) {
		reload->is_wanted = true;
		return true;
	}
	err = start(reload);
	if (err)
		log_error_errno(err, "cannot read the configuration again");
	else
		reload->is_reading = true;
	return reload->is_reading;
}

/* ---- what has changed ---- */

static bool is_live(const struct rate *rate, const struct options *fresh, enum config_kind kind,
		    size_t key)
{
	if (kind == CONFIG_STORE)
		return key == CONFIG_STORE_MAX || key == CONFIG_STORE_AGE;
	if (key == CONFIG_CAPTURE_HZ)
		return rate_can_be(rate, fresh->hz);
	return key == CONFIG_CAPTURE_INTERVAL || key == CONFIG_CAPTURE_MAX_CPU ||
	       key == CONFIG_CAPTURE_VERBOSE || key == CONFIG_CAPTURE_QUIET;
}

static bool differs(const struct config *a, const struct config *b, enum config_kind kind,
		    size_t key)
{
	const char *old = config_get(a, kind, key).text, *new = config_get(b, kind, key).text;

	return strcmp(old ?: "", new ?: "");
}

struct changes {
	char applied[NAMES_BYTES], refused[NAMES_BYTES]; /* names of keys, by ", " */
};

static void add_name(char names[NAMES_BYTES], enum config_kind kind, const char *name)
{
	const size_t used = strlen(names);

	snprintf(names + used, NAMES_BYTES - used, "%s%s.%s", used ? ", " : "",
		 config_kind_name(kind), name);
}

/* What needs a restart is compared with the start, the rest with what is in force. */
static void find_changes(const struct reload *reload, const struct rate *rate,
			 const struct options *fresh, struct changes *ret_changes)
{
	const struct config *start = reload->options->config;
	const struct config *now = reload->latest.config ?: start;
	size_t count;

	*ret_changes = (struct changes){};
	for (enum config_kind kind = CONFIG_CAPTURE; kind <= CONFIG_STORE; kind++) {
		const struct config_key *key = config_keys(kind, &count);

		for (size_t i = 0; i < count; i++) {
			if (is_live(rate, fresh, kind, i)) {
				if (differs(now, fresh->config, kind, i))
					add_name(ret_changes->applied, kind, key[i].name);
			} else if (differs(start, fresh->config, kind, i)) {
				add_name(ret_changes->refused, kind, key[i].name);
			}
		}
	}
}

static void apply(const struct reload *reload, const struct reload_targets *targets,
		  const struct options *fresh)
{
	struct options *options = reload->options;

	options->interval_ns = fresh->interval_ns;
	options->verbose = fresh->verbose;
	options->quiet = fresh->quiet;
	log_set_level(options_log_level(options));
	output_set_limits(targets->output, fresh->store_max_bytes, fresh->store_max_age_ns);
	rate_ask(targets->rate,
		 rate_can_be(targets->rate, fresh->hz) ? fresh->hz : targets->rate->asked_hz,
		 fresh->max_cpu_ppm);
}

static void follow_served(const struct reload *reload, const struct reload_targets *targets,
			  const struct options *fresh)
{
	const struct config *now = reload->latest.config ?: reload->options->config;

	if (config_serves_alike(now, fresh->config))
		return;
	if (targets->serve_again)
		targets->serve_again(targets->context, fresh->config);
	else
		log_info("[http] or [push] has changed: pyprofd-serve has to read it, too");
}

static void tell(const struct changes *changes)
{
	if (changes->refused[0])
		log_warn("configuration read again; changed: %s; only a restart changes: %s",
			 changes->applied[0] ? changes->applied : "nothing", changes->refused);
	else
		log_info("configuration read again; changed: %s",
			 changes->applied[0] ? changes->applied : "nothing");
}

static void take(struct reload *reload, const struct reload_targets *targets, struct job *job)
{
	struct changes changes;

	if (job->err) {
		log_error("%s; what was configured before stays in force",
			  job->why ?: strerror(-job->err));
		return;
	}
	find_changes(reload, targets->rate, &job->fresh, &changes);
	apply(reload, targets, &job->fresh);
	follow_served(reload, targets, &job->fresh);
	options_release(&reload->latest);
	reload->latest = job->fresh;
	tell(&changes);
}

bool reload_finish(struct reload *reload, const struct reload_targets *targets)
{
	OWNED_MEM struct job *job = NULL;

	if (read(reload->done[0], &job, sizeof(job)) != sizeof(job)) {
		job = NULL;
		return false;
	}
	pthread_join(job->background.thread, NULL);
	background_destroy(&job->background);
	reload->is_reading = false;
	take(reload, targets, job);
	free(job->why);
	if (reload->is_wanted) {
		reload->is_wanted = false;
		(void)reload_begin(reload);
	}
	return !reload->is_reading;
}
