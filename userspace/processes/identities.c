/* SPDX-License-Identifier: BSD-2-Clause */
#include "processes/identities.h"

#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "base/hash.h"
#include "base/io.h"
#include "base/slice.h"
#include "base/who_answers.h"
#include "discover/proc_scan.h"
#include "discover/process_table.h"
#include "files/user_time.h"
#include "identity/cgroup_names.h"
#include "identity/identity.h"
#include "processes/process_list.h"
#include "processes/who.h"

#define ENTRIES_MAX 65536U
#define ANCESTORS_MAX 8U /* that are looked at for one process */
/* A process that did not answer is asked again after a second, and three times in all; a pod's logs
 * may be a minute late. */
#define PROGRAM_AGAIN_NS NS_PER_SEC
#define PROGRAM_TRIES 3U
#define POD_TRIES 12U

struct entry {
	struct pp_process_id id;
	struct identity identity;
	uint64_t seen_ns;
	uint64_t again_ns;		  /* when what is missing is looked for again */
	uint8_t program_tries, pod_tries; /* that are left */
	bool has_place;			  /* user and unit are set */
	uint32_t moves;			  /* of the process, up to then */
	UT_hash_handle hh;
};

struct identities {
	struct process_table *processes;
	struct entry *entry;
	struct process_list wanted;
	size_t wanted_at;
	struct value_table *values;
	struct users users;
	struct user_times times; /* that the programs of users took to read */
	struct pods pods;
	struct identities_stats stats;
};

int identities_new(struct process_table *processes, struct identities **ret_identities)
{
	OWNED_MEM struct identities *identities = calloc(1, sizeof(*identities));
	int err;

	if (!identities)
		return -ENOMEM;
	identities->processes = processes;
	err = value_table_new(&identities->values);
	if (err)
		return err;
	*ret_identities = TAKE(identities);
	return 0;
}

static void entry_free(struct identities *identities, struct entry *entry)
{
	HASH_DEL(identities->entry, entry);
	identity_release(identities->values, &entry->identity);
	free(entry);
}

void identities_free(struct identities *identities)
{
	struct entry *entry, *next;

	if (!identities)
		return;
	HASH_ITER (hh, identities->entry, entry, next)
		entry_free(identities, entry);
	value_table_free(identities->values);
	users_release(&identities->users);
	pods_release(&identities->pods);
	free(identities->wanted.id);
	free(identities);
}

static struct entry *find(const struct identities *identities, struct pp_process_id id)
{
	struct entry *entry;

	HASH_FIND(hh, identities->entry, &id, sizeof(id), entry);
	return entry;
}

/* Returns whether the process has become another user's, or is in another cgroup. */
static bool has_moved(const struct entry *entry, const struct process *process)
{
	return entry->has_place && entry->moves != process->moves;
}

static bool is_due(const struct entry *entry)
{
	return (entry->program_tries || entry->pod_tries) && mono_ns() >= entry->again_ns;
}

/* ---- what the program says ---- */

static struct entry *look(struct identities *identities, struct process *process,
			  unsigned int depth);

static void set(struct identities *identities, struct entry *entry, uint32_t uid,
		enum identity_label label, const char *text)
{
	if (identity_set(identities->values, &entry->identity, uid, label, text))
		identities->stats.refused++;
}

/* Returns who has started a process that multiprocessing runs, or whose program a fork still is. */
static const struct identity *parent_of(struct identities *identities, struct process *parent,
					unsigned int depth)
{
	const struct entry *entry =
		parent && depth < ANCESTORS_MAX ? look(identities, parent, depth + 1) : NULL;

	return entry ? &entry->identity : NULL;
}

static int read_app(struct identities *identities, struct entry *entry,
		    const struct process *process, pid_t tid, uint32_t uid, unsigned int depth)
{
	const struct identity *parent = NULL;
	OWNED_MEM char *line = NULL;
	char app[LABEL_VALUE_BYTES];
	bool is_of_parent;
	size_t size;
	int err =
		process_read_text(tid, PROCESS_COMMAND_LINE, APP_COMMAND_LINE_BYTES, &line, &size);

	if (err)
		return err;
	is_of_parent = app_name(line, size, app) == APP_OF_PARENT;
	explicit_bzero(line, size); /* it may hold secrets */
	if (is_of_parent)
		parent = parent_of(identities,
				   process_table_find_tgid(identities->processes, process->ppid),
				   depth);
	if (parent)
		identity_inherit_app(identities->values, &entry->identity, parent);
	else
		set(identities, entry, uid, IDENTITY_APP, app);
	return 0;
}

static int read_environment(struct identities *identities, struct entry *entry, pid_t tid,
			    uint32_t uid)
{
	struct environment environment;
	char *text = NULL;
	size_t size;
	int err = process_read_text(tid, PROCESS_ENVIRONMENT, ENVIRONMENT_BYTES, &text, &size);

	if (err)
		return err;
	if (!environment_pick(text, size, &environment) || size == ENVIRONMENT_BYTES)
		identities->stats.unread++; /* there may be more of it */
	explicit_bzero(text, size);	    /* it may hold secrets */
	free(text);
	identities->stats.refused +=
		identity_set_environment(identities->values, &entry->identity, uid, &environment);
	return 0;
}

static int read_program(struct identities *identities, struct entry *entry,
			const struct process *process, uint32_t uid, unsigned int depth)
{
	pid_t tid;
	int err = process->exit_ns ? -ESRCH : process_live_task((pid_t)process->id.tgid, &tid);

	if (!err)
		err = read_app(identities, entry, process, tid, uid, depth);
	return err ? err : read_environment(identities, entry, tid, uid);
}

/* Reads a program, unless its user's have taken their share of the loop's time: who executes one
 * after the other, with large environments, would have all others wait. */
static int read_in_turn(struct identities *identities, struct entry *entry,
			const struct process *process, uint32_t uid, unsigned int depth)
{
	const uint64_t start_ns = mono_ns();
	int err;

	if (!user_times_allow(&identities->times, uid, start_ns))
		return -ETIMEDOUT;
	err = read_program(identities, entry, process, uid, depth);
	user_times_add(&identities->times, uid, mono_ns() - start_ns, mono_ns());
	return err;
}

/* Takes the program from the parent of a fork, or reads it. */
static void look_at_program(struct identities *identities, struct entry *entry,
			    struct process *process, uint32_t uid, unsigned int depth)
{
	const struct identity *parent = NULL;
	struct pp_process_id parent_id;
	int err;

	if (process_table_forked_from(process, &parent_id))
		parent = parent_of(identities, process_table_find(identities->processes, parent_id),
				   depth);
	entry->program_tries--;
	if (parent) {
		const struct entry *of = find(identities, parent_id);

		identity_inherit(identities->values, &entry->identity, parent);
		/* Where the parent did not answer yet, it may later. */
		entry->program_tries = of ? of->program_tries : 0;
		return;
	}
	err = read_in_turn(identities, entry, process, uid, depth);
	if (err != -ETIMEDOUT)
		entry->program_tries = 0;
	if (err == -ESRCH)
		identities->stats.ended++;
	else if (err && !entry->program_tries)
		identities->stats.unread++;
}

/* ---- where it runs ---- */

static void look_at_pod(struct identities *identities, struct entry *entry,
			const struct process *process, uint32_t uid)
{
	char pod_uid[POD_UID_BYTES];
	struct pod_names names;

	entry->pod_tries--;
	if (!process->details_read) /* its cgroup is not known yet */
		return;
	cgroup_pod(process->cgroup, pod_uid);
	if (!pod_uid[0])
		entry->pod_tries = 0;
	if (!pod_uid[0] ||
	    pods_find(&identities->pods, pod_uid, process->container_id, mono_ns(), &names))
		return;
	entry->pod_tries = 0;
	set(identities, entry, uid, IDENTITY_NAMESPACE, names.name_space);
	set(identities, entry, uid, IDENTITY_POD, names.pod);
	set(identities, entry, uid, IDENTITY_CONTAINER, names.container);
}

static void look_at_place(struct identities *identities, struct entry *entry,
			  const struct process *process, uint32_t uid)
{
	char text[LABEL_VALUE_BYTES];

	if (!process->details_read) /* it has ended before that, or did not answer */
		return;
	entry->has_place = true;
	entry->moves = process->moves;
	/* Who is root by a set-user-ID program is not root. */
	users_name(&identities->users, process->uid ? who_answers(process->uid) : uid, mono_ns(),
		   text);
	set(identities, entry, uid, IDENTITY_USER, text);
	cgroup_unit(process->cgroup, text);
	set(identities, entry, uid, IDENTITY_UNIT, text);
}

/* Forgets where a process was: it is elsewhere. */
static void leave_place(struct identities *identities, struct entry *entry, uint32_t uid)
{
	static const enum identity_label of_pod[] = {IDENTITY_NAMESPACE, IDENTITY_POD,
						     IDENTITY_CONTAINER};

	for (size_t i = 0; i < ARRAY_SIZE(of_pod); i++)
		set(identities, entry, uid, of_pod[i], "");
	entry->has_place = false;
	entry->pod_tries = POD_TRIES;
}

/* ---- processes ---- */

static struct entry *add(struct identities *identities, struct pp_process_id id)
{
	struct entry *entry;

	if (HASH_COUNT(identities->entry) >= ENTRIES_MAX) {
		identities->stats.refused++;
		return NULL;
	}
	entry = HASH_GET(identities->entry, id, id);
	if (!entry)
		return NULL;
	entry->program_tries = PROGRAM_TRIES;
	entry->pod_tries = POD_TRIES;
	return entry;
}

/* Looks at a process, unless that has been done.  Returns NULL: there is no memory. */
static struct entry *look(struct identities *identities, struct process *process,
			  unsigned int depth)
{
	struct entry *entry = find(identities, process->id);
	uint32_t uid;

	if (!entry)
		entry = add(identities, process->id);
	if (!entry)
		return NULL;
	entry->seen_ns = mono_ns();
	who_read_details(identities->processes, process);
	if (!is_due(entry) && !has_moved(entry, process))
		return entry;
	uid = process_user_kept(process);
	if (has_moved(entry, process))
		leave_place(identities, entry, uid);
	entry->again_ns = entry->seen_ns + PROGRAM_AGAIN_NS;
	if (entry->program_tries)
		look_at_program(identities, entry, process, uid, depth);
	if (!entry->has_place)
		look_at_place(identities, entry, process, uid);
	if (entry->pod_tries)
		look_at_pod(identities, entry, process, uid);
	if (!entry->program_tries && entry->pod_tries)
		entry->again_ns = entry->seen_ns + PODS_AGAIN_NS;
	if (identity_name_service(identities->values, &entry->identity, uid, process->comm))
		identities->stats.refused++;
	return entry;
}

void identities_want(struct identities *identities, struct pp_process_id id)
{
	const struct entry *entry = find(identities, id);

	if (!entry || is_due(entry))
		(void)process_list_add(&identities->wanted, id);
}

bool identities_step(struct identities *identities, const struct slice *slice)
{
	struct process_list *wanted = &identities->wanted;

	while (identities->wanted_at < wanted->count) {
		struct process *process = process_table_find_or_tgid(
			identities->processes, wanted->id[identities->wanted_at++]);

		if (process)
			(void)look(identities, process, 0);
		if (slice_is_over(slice))
			break;
	}
	if (identities->wanted_at < wanted->count)
		return true;
	identities->wanted_at = wanted->count = 0;
	return false;
}

const struct identity *identities_get(struct identities *identities, struct process *process)
{
	const struct entry *entry = look(identities, process, 0);

	return entry ? &entry->identity : NULL;
}

void identities_expire(struct identities *identities, uint64_t before_ns)
{
	struct entry *entry, *next;

	HASH_ITER (hh, identities->entry, entry, next) {
		const struct process *process =
			process_table_find(identities->processes, entry->id);

		if (entry->seen_ns < before_ns && (!process || process->exit_ns))
			entry_free(identities, entry);
	}
}

void identities_get_stats(const struct identities *identities, struct identities_stats *ret_stats)
{
	*ret_stats = identities->stats;
}

struct user_quota *identities_quota(const struct identities *identities)
{
	return value_table_quota(identities->values);
}
