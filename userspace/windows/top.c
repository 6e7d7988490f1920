/* SPDX-License-Identifier: BSD-2-Clause */
#include "windows/top.h"

#include <errno.h>
#include <string.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/io.h"
#include "base/log.h"
#include "live/record.h"
#include "live/server.h"
#include "pprof/pprof.h"
#include "windows/profiles.h"

#define PART_NS NS_PER_SEC
/* After a window was cut, the next cut waits for so many times as long as the CPU time it took. */
#define PART_FACTOR 9U
#define WHY_KINDS_CHARS (KIND_NAMES_CHARS + CAPTURE_NAMES_CHARS + 128U)
/* Processes for which a client's rights are kept. */
#define ANSWERS 512U

/* Whether a client may see a process.  To find out takes several reads of /proc, and rows of many
 * processes come in any order. */
struct answer {
	struct pp_process_id id; /* tgid 0: none */
	bool may_see;
};

struct watcher {
	uint64_t number; /* of the connection */
	uid_t uid;
	bool is_new; /* has received no window yet */
	struct live_request request;
	struct profiles profiles;      /* owned; open between top_begin() and top_end() only */
	struct answer answer[ANSWERS]; /* of wants(), in this window */
	/* By kind of record: how many processes have rows, and which one had the last. */
	struct {
		unsigned int count;
		struct pp_process_id last;
	} processes[PP_PROFILE_COUNT];
};

struct top {
	const struct options *options;
	struct live_server *server;
	const struct process_table *processes;
	struct watcher watcher[TOP_WATCHERS_MAX];
	size_t count;
	struct intern *strings; /* borrowed; of the window; NULL: none, or nobody watches */
	uint64_t rests_until_ns;
	struct frame *shown_frame; /* owned: a stack as users other than root get it */
	size_t shown_capacity;
};

int top_new(const struct options *options, struct live_server *server,
	    const struct process_table *processes, struct top **ret_top)
{
	struct top *top = calloc(1, sizeof(*top));

	if (!top)
		return -ENOMEM;
	top->options = options;
	top->server = server;
	top->processes = processes;
	*ret_top = top;
	return 0;
}

/* Drops what a client would get of the window. */
static void close_window(struct watcher *watcher)
{
	profiles_close(&watcher->profiles);
}

void top_free(struct top *top)
{
	for (size_t i = 0; top && i < top->count; i++)
		close_window(&top->watcher[i]);
	if (top)
		free(top->shown_frame);
	free(top);
}

static void forget_gone(struct top *top)
{
	size_t kept = 0;

	for (size_t i = 0; i < top->count; i++) {
		if (live_server_waits(top->server, top->watcher[i].number))
			top->watcher[kept++] = top->watcher[i];
		else /* maybe in the middle of a window */
			close_window(&top->watcher[i]);
	}
	top->count = kept;
}

/* Says which kinds there are, and how to record those that were asked for. */
static void explain_kinds(uint32_t recorded, uint32_t asked, char why[WHY_KINDS_CHARS])
{
	char names[KIND_NAMES_CHARS], events[CAPTURE_NAMES_CHARS];
	uint32_t captures = 0;

	for (unsigned int kind = 0; kind < PP_PROFILE_COUNT; kind++)
		if (asked & 1U << kind)
			captures |= kind_get((enum pp_profile)kind)->private_captures;
	kind_names(recorded, ",", ",", names);
	capture_names(captures, ",", events);
	snprintf(why, WHY_KINDS_CHARS,
		 "this pyprofd records other kinds: choose with --kind from %s, or record with "
		 "`pyprofd --events %s`",
		 names, events);
}

/* Returns whether the job asks for what is recorded, and refuses it otherwise. */
static bool is_served(const struct top *top, const struct live_job *job, uint64_t now_ns)
{
	const uint32_t recorded = profiles_kinds(top->options) & KINDS_SERVED;
	/* Records come beside another kind, and not instead of it. */
	const uint32_t own = job->request.kinds & ~PP_RECORDS;
	const uint32_t asked = own ? own : job->request.kinds;
	char why[WHY_KINDS_CHARS];

	if (asked ? asked & recorded : top->options->clock != OPTIONS_CLOCK_CYCLES)
		return true;
	explain_kinds(recorded, asked, why);
	live_server_refuse(top->server, job->number, -ENOTSUP,
			   asked ? why : "this pyprofd counts cycles, not time: clock=cycles",
			   now_ns);
	return false;
}

void top_serve(struct top *top, uint64_t now_ns)
{
	struct live_job job;

	if (!top)
		return;
	forget_gone(top);
	while (top->count < TOP_WATCHERS_MAX &&
	       live_server_next(top->server, (struct live_choice){.verb = LIVE_TOP}, &job)) {
		if (!is_served(top, &job, now_ns))
			continue;
		top->watcher[top->count++] = (struct watcher){.number = job.number,
							      .uid = job.uid,
							      .is_new = true,
							      .request = job.request};
	}
}

uint64_t top_due_ns(const struct top *top, uint64_t window_started_ns)
{
	uint64_t due_ns = window_started_ns + PART_NS;

	if (!top || !top->count)
		return UINT64_MAX;
	/* A new client gets the first window at once. */
	for (size_t i = 0; i < top->count; i++)
		if (top->watcher[i].is_new)
			due_ns = window_started_ns;
	return due_ns > top->rests_until_ns ? due_ns : top->rests_until_ns;
}

/* ---- a window ---- */

static int open_profiles(const struct top *top, struct watcher *watcher, struct intern *strings,
			 uint64_t start_wall_ns)
{
	struct profile_options wall = profiles_options(top->options, PP_PROFILE_WALL);

	if (watcher->request.kinds)
		return profiles_open_some(&watcher->profiles, top->options, watcher->request.kinds,
					  strings, start_wall_ns);
	wall.start_wall_ns = start_wall_ns;
	watcher->profiles.is_open = true;
	return profile_new(&wall, strings, &watcher->profiles.profile[PP_PROFILE_WALL]);
}

void top_begin(struct top *top, struct intern *strings, uint64_t start_wall_ns)
{
	if (!top)
		return;
	forget_gone(top);
	top->strings = top->count ? strings : NULL;
	for (size_t i = 0; i < top->count; i++) {
		memset(top->watcher[i].answer, 0, sizeof(top->watcher[i].answer));
		memset(top->watcher[i].processes, 0, sizeof(top->watcher[i].processes));
		if (open_profiles(top, &top->watcher[i], strings, start_wall_ns))
			close_window(&top->watcher[i]);
	}
}

/* Before an exec, or after an exit, another user's program may have had the same pid. */
static bool is_of_now(const struct top *top, struct pp_process_id id)
{
	const struct process *process = process_table_find(top->processes, id);

	return process && !process->exit_ns &&
	       process_table_find_tgid(top->processes, id.tgid) == process;
}

static bool wants(const struct top *top, struct watcher *watcher, struct pp_process_id id)
{
	struct answer *answer = &watcher->answer[(id.tgid + 31 * id.generation) % ANSWERS];

	if (!live_request_wants(&watcher->request, id.tgid))
		return false;
	if (!watcher->uid)
		return true;
	if (answer->id.tgid != id.tgid || answer->id.generation != id.generation)
		*answer = (struct answer){.id = id,
					  .may_see = is_of_now(top, id) &&
						     live_may_see(watcher->uid, id.tgid)};
	return answer->may_see;
}

static bool is_shown(const char *label)
{
	static const char *const shown[] = {"pid", "comm", "wait", "gil"};

	for (size_t i = 0; i < ARRAY_SIZE(shown); i++)
		if (!strcmp(shown[i], label))
			return true;
	return false;
}

/* Adds the sample to kind wall, with few labels. */
static int add_shown(struct watcher *watcher, const struct pp_count_key *key,
		     const struct pp_count *count, const struct profile_sample *sample)
{
	struct profile_sample shown = {.frame = sample->frame, .frame_count = sample->frame_count};

	for (size_t i = 0; i < sample->label_count; i++)
		if (is_shown(sample->label[i].key))
			shown.label[shown.label_count++] = sample->label[i];
	return profiles_add(&watcher->profiles, key, count, &shown);
}

/* Only root may know where the kernel lies in memory, as in /proc/kallsyms.  *ret_frame is the
 * sample's stack without the kernel's addresses, valid until the next call. */
static int hide_kernel_addresses(struct top *top, const struct profile_sample *sample,
				 const struct frame **ret_frame)
{
	if (ARRAY_EXTEND(top->shown_frame, sample->frame_count, top->shown_capacity))
		return -ENOMEM;
	for (size_t i = 0; i < sample->frame_count; i++) {
		top->shown_frame[i] = sample->frame[i];
		if (sample->frame[i].kind == FRAME_KERNEL)
			top->shown_frame[i].address = 0;
	}
	*ret_frame = top->shown_frame;
	return 0;
}

static int add_for(struct top *top, struct watcher *watcher, const struct pp_count_key *key,
		   const struct pp_count *count, struct profile_sample *sample)
{
	const struct frame *frame = sample->frame;
	int err = watcher->uid ? hide_kernel_addresses(top, sample, &sample->frame) : 0;

	if (!err)
		err = watcher->request.kinds ? profiles_add(&watcher->profiles, key, count, sample)
					     : add_shown(watcher, key, count, sample);
	sample->frame = frame;
	return err;
}

void top_add(struct top *top, const struct pp_count_key *key, const struct pp_count *count,
	     struct profile_sample *sample)
{
	for (size_t i = 0; top && i < top->count; i++) {
		struct watcher *watcher = &top->watcher[i];

		if (!watcher->profiles.is_open || !wants(top, watcher, key->id))
			continue;
		if (add_for(top, watcher, key, count, sample))
			close_window(watcher);
	}
}

bool top_wants(const struct top *top, uint32_t kinds)
{
	for (size_t i = 0; top && i < top->count; i++)
		if (top->watcher[i].request.kinds & kinds)
			return true;
	return false;
}

static int add_record(struct watcher *watcher, struct intern *strings, const struct record *record)
{
	struct record own = *record;
	int err = 0;

	if (record->id.tgid &&
	    memcmp(&record->id, &watcher->processes[record->kind].last, sizeof(record->id)) != 0)
		watcher->processes[record->kind].count++;
	watcher->processes[record->kind].last = record->id;
	if (watcher->processes[record->kind].count > RECORD_PROCESSES_MAX)
		err = record_make_other(&own, strings);
	return err ? err : profiles_add_record(&watcher->profiles, &own);
}

struct intern *top_strings(const struct top *top)
{
	return top ? top->strings : NULL;
}

void top_add_record(struct top *top, const struct record *record)
{
	for (size_t i = 0; top && i < top->count; i++) {
		struct watcher *watcher = &top->watcher[i];

		if (!(watcher->request.kinds & 1U << record->kind) || !watcher->profiles.is_open ||
		    (!record->is_of_device && !wants(top, watcher, record->id)))
			continue;
		if (add_record(watcher, top->strings, record))
			close_window(watcher);
	}
}

/* ---- sending ---- */

/* Writes the head line of a file and the file. */
static int write_file(const struct top *top, const struct profile *profile, uint64_t flags,
		      FILE *out)
{
	struct live_record record = {.kind = LIVE_WINDOW, .number = {0, flags}};
	OWNED_MEM void *bytes = NULL;
	size_t size;
	int err = profile_encode_pprof(profile, &bytes, &size);

	if (err)
		return err;
	if (size > LIVE_WINDOW_BYTES || ftell(out) > (long)(LIVE_WINDOW_BYTES - size))
		return -EFBIG;
	record.number[0] = size;
	if (top->options->events & PP_CAPTURES_OF_WAITS)
		record.number[1] |= LIVE_WINDOW_WAITS;
	live_record_write(out, &record);
	(void)fwrite(bytes, 1, size, out);
	return 0;
}

static int add_modules(struct profile *profile, const struct profile *from)
{
	const struct module *module;
	uint32_t index;
	int err = 0;

	for (uint32_t i = 1; from && !err && (module = profile_module(from, i)); i++)
		err = profile_add_module(profile, module, &index);
	profile_weigh_modules(profile);
	return err;
}

/* Writes all files of a window in one part: a client gets all of them or none. */
static int write_files(const struct top *top, struct watcher *watcher,
		       const struct top_facts *facts, FILE *out)
{
	/* The facts are about all users' processes and the agent itself. */
	const bool is_told = facts->comment && !watcher->uid && !watcher->is_new;
	int err = 0;

	for (unsigned int kind = 0; kind < PP_PROFILE_COUNT && !err; kind++) {
		struct profile *profile = watcher->profiles.profile[kind];
		uint64_t flags = (uint64_t)(kind + 1) << LIVE_WINDOW_KIND_SHIFT;

		if (!profile)
			continue;
		profile_set_duration(profile, facts->duration_ns);
		err = add_modules(profile, facts->modules);
		if (!err && is_told)
			err = profile_add_comment(profile, facts->comment);
		if (!err)
			err = write_file(top, profile, watcher->request.kinds ? flags : 0, out);
	}
	return err;
}

/* *ret_text is heap. */
static int format(const struct top *top, struct watcher *watcher, const struct top_facts *facts,
		  char **ret_text, size_t *ret_size)
{
	OWNED_MEM char *text = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);
	int err = 0;

	if (!out)
		return -ENOMEM;
	if (!err)
		err = write_files(top, watcher, facts, out);
	if (close_memory_file(out, &text) && !err)
		err = -ENOMEM;
	if (err)
		return err;
	*ret_text = TAKE(text);
	*ret_size = size;
	return 0;
}

bool top_wants_comment(const struct top *top)
{
	for (size_t i = 0; top && i < top->count; i++)
		if (!top->watcher[i].uid)
			return true;
	return false;
}

static void send_window(struct top *top, struct watcher *watcher, const struct top_facts *facts)
{
	char *text;
	size_t size;
	int err = format(top, watcher, facts, &text, &size);

	watcher->is_new = false;
	close_window(watcher);
	if (err)
		log_warn_errno(err, "cannot send a window to a client of --live");
	else
		live_server_push(top->server, watcher->number, text, size, mono_ns());
}

bool top_end(struct top *top, const struct top_facts *facts, const struct slice *slice)
{
	const uint64_t begun_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
	bool has_sent = false;

	for (size_t i = 0; top && i < top->count; i++) {
		if (!top->watcher[i].profiles.is_open)
			continue;
		if (has_sent && slice_is_over(slice))
			return true;
		send_window(top, &top->watcher[i], facts);
		has_sent = true;
	}
	if (top && top->count)
		top->rests_until_ns =
			mono_ns() + PART_FACTOR * (facts->spent_ns +
						   clock_ns(CLOCK_THREAD_CPUTIME_ID) - begun_ns);
	return false;
}
