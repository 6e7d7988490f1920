/* SPDX-License-Identifier: BSD-2-Clause */
#include "query/input.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/collectors.h"
#include "base/io.h"
#include "base/utf8.h"
#include "profile/comments.h"
#include "query/folder.h"
#include "query/live_windows.h"
#include "query/remote.h"
#include "query/select.h"
#include "version.h"

#define MAX_KEPT_LABELS 28U
#define MAX_TITLE_BYTES 256U
#define COPY_BYTES 65536U
/* A FIFO under the name of a profile keeps nobody waiting. */
#define FOLDER_OPEN_FLAGS (O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK)

struct input {
	const struct input_options *options; /* borrowed while it is read, as are select and why */
	const struct select *select;
	char *why; /* WHY_BYTES */
	struct profile_reader *reader;
	struct folder folder; /* the directory that is read now */
	bool reads_folder;
	uint64_t since_ms, until_ms; /* of the path that is read now; 0: open */
	struct remote *remote;	 /* owned; where the path that is read now comes from; NULL: here */
	const char *remote_name; /* its URL, cleaned; borrowed from path[] */
	struct live_windows *live; /* owned; NULL: from files, or live_from's */
	const char *kept[MAX_KEPT_LABELS];
	char kind[STORE_KIND_CHARS]; /* of the windows read from directories; "": any */
	struct match match;
	uint64_t done, wanted; /* files */
	/* Broken or foreign files of directories, and what the first one has. */
	uint64_t passed_over;
	char first_why[WHY_BYTES];
	char **path; /* select's, cleaned for a terminal; owned */
	int path_count;
	bool full_paths;
	char title[MAX_TITLE_BYTES];
	struct coverage coverage; /* of what was read */
	struct short_paths short_paths;
};

void input_free(struct input *input)
{
	if (!input)
		return;
	profile_reader_free(input->reader);
	folder_release(&input->folder);
	remote_free(input->remote);
	live_windows_free(input->live);
	short_paths_release(&input->short_paths);
	match_release(&input->match);
	for (int i = 0; input->path && i < input->path_count; i++)
		free(input->path[i]);
	free(input->path);
	free(input);
}

const struct short_paths *input_short_paths(const struct input *input)
{
	return input->full_paths ? NULL : &input->short_paths;
}

struct profile *input_profile(const struct input *input)
{
	return profile_reader_profile(input->reader);
}

const struct profile_reader *input_reader(const struct input *input)
{
	return input->reader;
}

struct profile_read_totals input_totals(const struct input *input)
{
	struct profile_read_totals totals;

	profile_reader_totals(input->reader, &totals);
	return totals;
}

const struct profile_value_type *input_value_type(const struct input *input)
{
	return &input_profile(input)->options.value_type[profile_reader_value_index(input->reader)];
}

const char *input_title(const struct input *input)
{
	return input->title;
}

const char *input_coverage(const struct input *input, char buffer[COVERAGE_BYTES])
{
	return coverage_text(&input->coverage, profile_kind(input_profile(input)), buffer);
}

const char *input_path(const struct input *input, int index)
{
	return input->path[index];
}

/* ---- the reader ---- */

static bool wants_labels(void *context, const struct intern *strings,
			 const struct profile_label *label, size_t label_count)
{
	return match_labels(&((struct input *)context)->match, strings, label, label_count);
}

static bool wants_none(void *context, const struct intern *strings,
		       const struct profile_label *label, size_t label_count)
{
	(void)context, (void)strings, (void)label, (void)label_count;
	return false;
}

static bool wants_stack(void *context, const struct profile *profile, uint32_t stack)
{
	return match_stack(&((struct input *)context)->match, profile, stack);
}

static bool wants_window(void *context, const struct window_mark *mark)
{
	struct input *input = context;

	return !input->reads_folder || folder_wants(&input->folder, mark);
}

static int window_done(void *context, struct profile *profile, const struct profile_window *window)
{
	const struct input_options *options = ((const struct input *)context)->options;

	return options->window_done(options->context, profile, window);
}

static void comment(void *context, const char *text)
{
	struct input *input = context;
	const struct input_options *options = input->options;

	coverage_add(&input->coverage, text);
	if (options->comment)
		options->comment(options->context, text);
}

static void keep_labels(struct input *input, struct profile_read_options *options)
{
	const char *grouped[GROUPS_MAX_KEYS];
	size_t count = 0;

	if (!input->options->keep_labels)
		return;
	for (; input->options->keep_labels[count] && count < MAX_KEPT_LABELS - GROUPS_MAX_KEYS;
	     count++)
		input->kept[count] = input->options->keep_labels[count];
	groups_label_keys(&input->select->group_by, grouped);
	for (size_t i = 0; grouped[i]; i++)
		input->kept[count++] = grouped[i];
	options->keep_labels = input->kept;
}

static int open_reader(struct input *input)
{
	const struct select *select = input->select;
	struct profile_read_options options = {
		.drop_addresses = input->options->drop_addresses,
		.drop_lines = input->options->drop_lines,
		.python_only = input->options->python_only || select->python_only,
		.drop_stacks = input->options->drop_stacks,
		.sample_type = input->options->kind ? NULL : select->sample_type,
		.memory_max = input->options->memory_max,
		.context = input};

	if (match_asks_labels(select))
		options.wants_labels = wants_labels;
	if (input->options->comments_only)
		options.wants_labels = wants_none;
	if (match_asks_stacks(select) && !input->options->drop_stacks)
		options.wants_stack = wants_stack;
	if (input->options->window_done)
		options.window_done = window_done;
	options.comment = comment;
	options.wants_window = wants_window;
	keep_labels(input, &options);
	return profile_reader_new(&options, &input->reader);
}

/* ---- progress ---- */

static void tell_progress(const struct input *input)
{
	const struct watcher *watcher = input->options->watcher;
	const struct watcher_progress progress = {.done = input->done, .wanted = input->wanted};

	if (watcher->progress)
		watcher->progress(watcher->context, &progress);
}

/* ---- files ---- */

static const char *wanted_kind(const struct input *input)
{
	return input->options->kind ? input->options->kind : input->select->kind;
}

/* What lies in a temporary directory is known by its URL. */
static int refuse(const struct input *input, const char *path, const char *text)
{
	const char *from = input->remote ? remote_path(input->remote) : NULL;

	if (from && !strncmp(path, from, strlen(from)))
		return say_why(input->why, "%s%s: %s", input->remote_name, path + strlen(from),
			       text);
	return say_why(input->why, "%s: %s", path, text);
}

/* Refuses files of a later major version than this program's. */
static int check_writer(struct input *input, const char *path)
{
	const struct profile *profile = input_profile(input);
	unsigned long own = strtoul(PYPROFD_VERSION, NULL, 10), other;
	struct fact writer;
	char why[96], *end;

	for (uint32_t i = 0; i < profile->comment_count; i++) {
		const char *text = intern_get(profile->strings, profile->comment[i], NULL);

		if (!facts_find(text, FACT_WRITER, &writer))
			continue;
		other = strtoul(writer.text, &end, 10);
		if (*end != '.' || other <= own)
			continue;
		snprintf(why, sizeof(why),
			 "written by pyprofd %lu, which is newer than this pyprof (%s)", other,
			 PYPROFD_VERSION);
		return refuse(input, path, why);
	}
	return 0;
}

/* Returns the kind of records that is wanted, or NULL. */
static const char *wanted_records(const struct input *input)
{
	const char *name = wanted_kind(input);
	enum pp_profile kind;

	return name && kind_find(name, strlen(name), &kind) && kind_is_record(kind) ? name : NULL;
}

static int read_fd(struct input *input, int fd, const char *path, const char *kind)
{
	int err = profile_reader_add(input->reader, fd, kind);

	input->done++;
	tell_progress(input);
	if (err == -EPROTO && wanted_records(input) && input->options->may_be_none)
		return 0;
	if (err)
		return refuse(input, path, profile_reader_error(input->reader));
	return check_writer(input, path);
}

/* A file has one kind, and the user may ask for another one. */
static int check_kind(struct input *input, const char *path)
{
	const char *wanted = input->options->kind ? NULL : input->select->kind;
	const char *kind = profile_kind(input_profile(input));
	char why[192];

	if (!wanted || !strcmp(wanted, kind))
		return 0;
	snprintf(why, sizeof(why), "a profile of kind %.60s, and --kind asks for %.60s", kind,
		 wanted);
	return refuse(input, path, why);
}

/* Puts a copy in the place of standard input where that can be read only once: records are read
 * after samples. */
static int keep_stdin(void)
{
	OWNED_FD int copy = memfd_create("stdin", MFD_CLOEXEC);
	char piece[COPY_BYTES];
	ssize_t size = 1;
	int err = copy < 0 ? -errno : 0;

	for (size_t kept = 0; !err && size > 0 && kept <= PROFILE_READ_MAX_BYTES; kept += size) {
		size = read(STDIN_FILENO, piece, sizeof(piece));
		err = size < 0 ? -errno : write_full(copy, piece, (size_t)size);
	}
	if (!err && (lseek(copy, 0, SEEK_SET) || dup2(copy, STDIN_FILENO) < 0))
		err = -errno;
	return err;
}

static int open_input(const char *path, int *ret_fd)
{
	const bool is_stdin = !strcmp(path, "-");
	int err = is_stdin && lseek(STDIN_FILENO, 0, SEEK_SET) < 0 ? keep_stdin() : 0;

	if (!err)
		*ret_fd =
			is_stdin ? dup(STDIN_FILENO) : open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	return !err && *ret_fd < 0 ? -errno : err;
}

static int read_one(struct input *input, const char *path)
{
	OWNED_FD int fd = -1;
	int err = open_input(path, &fd);

	if (err)
		return refuse(input, path, strerror(-err));
	/* A file of any kind may have records. */
	err = read_fd(input, fd, path, wanted_records(input));
	return err || !input_profile(input) ? err : check_kind(input, path);
}

/* ---- directories ---- */

/* Notes a file that cannot be read.  Returns 0, or -EINVAL where that is an error. */
static int pass_over(struct input *input, const char *path, const char *text)
{
	if (input->select->strict)
		return refuse(input, path, text);
	if (!input->passed_over++)
		say_why(input->first_why, "%s: %s", path, text);
	return 0;
}

static void tell_passed_over(const struct input *input)
{
	const struct watcher *watcher = input->options->watcher;
	char line[WHY_BYTES];

	say_why(line, "%" PRIu64 " file%s passed over: first %.8000s", input->passed_over,
		input->passed_over == 1 ? "" : "s", input->first_why);
	if (watcher->note)
		watcher->note(watcher->context, line);
}

static int not_opened(struct input *input, const char *path)
{
	return errno == ENOENT ? -ENOENT : pass_over(input, path, strerror(errno));
}

/* Takes the result of a file that was read. */
static int was_read(struct input *input, const char *path, int err)
{
	input->done++;
	tell_progress(input);
	if (!err)
		return check_writer(input, path);
	/* Without memory no other file can be read, and the sample type is what the user asks. */
	if (err == -ENOMEM || err == -ENOENT)
		return refuse(input, path, profile_reader_error(input->reader));
	/* Nobody might hear that the rest is missing. */
	if (input->options->memory_max && profile_reader_is_full(input->reader)) {
		(void)refuse(input, path, profile_reader_error(input->reader));
		return -EFBIG;
	}
	return pass_over(input, path, profile_reader_error(input->reader));
}

static int read_of_folder(void *context, const char *path, const char *kind)
{
	struct input *input = context;
	OWNED_FD int fd = open(path, FOLDER_OPEN_FLAGS);

	return fd < 0 ? not_opened(input, path)
		      : was_read(input, path, profile_reader_add(input->reader, fd, kind));
}

static int read_wall_of_folder(void *context, const char *cpu_path, const char *offcpu_path)
{
	struct input *input = context;
	OWNED_FD int cpu_fd = open(cpu_path, FOLDER_OPEN_FLAGS);
	OWNED_FD int offcpu_fd = -1;

	if (cpu_fd < 0)
		return not_opened(input, cpu_path);
	if (offcpu_path)
		offcpu_fd = open(offcpu_path, FOLDER_OPEN_FLAGS);
	if (offcpu_path && offcpu_fd < 0)
		return not_opened(input, offcpu_path);
	return was_read(input, cpu_path, profile_reader_add_wall(input->reader, cpu_fd, offcpu_fd));
}

static int add_empty(void *context, const struct window_mark *mark)
{
	return profile_reader_add_empty(((struct input *)context)->reader, mark);
}

static bool has_files(const struct store_listing *listing, const char *kind)
{
	for (size_t i = 0; i < listing->count; i++)
		if (!strcmp(listing->entry[i].file.kind, kind))
			return true;
	return false;
}

/* Wall is made of cpu and offcpu, and need not have files. */
static bool has_kind(const struct store_listing *listing, const char *kind)
{
	return has_files(listing, kind) || (kind_is(kind, PP_PROFILE_WALL) &&
					    has_files(listing, kind_get(PP_PROFILE_CPU)->name) &&
					    has_files(listing, kind_get(PP_PROFILE_OFFCPU)->name));
}

/* Chooses the default kind, or the only one in the directory. */
static int choose_kind(struct input *input, const char *path)
{
	const struct store_listing *listing = &input->folder.listing;
	const char *kind = listing->entry[0].file.kind;
	char why[160];

	if (input->kind[0])
		return 0;
	if (wanted_kind(input)) {
		kind = wanted_kind(input);
	} else if (has_kind(listing, kind_get(PP_PROFILE_DEFAULT)->name)) {
		kind = kind_get(PP_PROFILE_DEFAULT)->name;
	} else {
		for (size_t i = 1; i < listing->count; i++) {
			if (!strcmp(listing->entry[i].file.kind, kind))
				continue;
			snprintf(why, sizeof(why),
				 "has profiles of kinds %s, %s, ...: choose one with --kind", kind,
				 listing->entry[i].file.kind);
			return refuse(input, path, why);
		}
	}
	snprintf(input->kind, sizeof(input->kind), "%s", kind);
	return 0;
}

static int say_nothing_found(struct input *input, const char *path)
{
	const struct store_range all = {.until_ms = UINT64_MAX};
	const struct store_listing *listing = &input->folder.listing;
	const char *kind = wanted_kind(input);
	char why[160];

	if (folder_list(&input->folder, path, &all) || !listing->count)
		return refuse(input, path,
			      "a directory without profiles (<start_ms>-<ms>-<kind>.pb.gz)");
	if (kind && !has_kind(listing, kind))
		snprintf(why, sizeof(why), "no profiles of kind %s; there are some of kind %s",
			 kind, listing->entry[0].file.kind);
	else
		snprintf(why, sizeof(why),
			 "no profiles between --since and --until; there are %zu, the last began "
			 "at @%" PRIu64,
			 listing->count, listing->entry[listing->count - 1].file.start_ms / 1000);
	return refuse(input, path, why);
}

/* Returns whether a directory has a kind at all: where it has, a range without it has windows that
 * had nothing of it. */
static bool is_kind_of_other_times(const char *path, const char *kind)
{
	const struct store_range all = {.until_ms = UINT64_MAX};
	CLEANUP(store_listing_release) struct store_listing listing = {0};

	return !store_list(path, &all, &listing) && has_kind(&listing, kind);
}

static int read_windows(struct input *input, const char *path)
{
	const struct folder_calls calls = {.read = read_of_folder,
					   .read_wall = read_wall_of_folder,
					   .add_empty = add_empty,
					   .context = input};
	const struct store_listing *listing = &input->folder.listing;
	int err;

	for (size_t i = 0; i < listing->count; i++)
		input->wanted += !strcmp(listing->entry[i].file.kind, input->kind);
	input->reads_folder = true;
	err = folder_read(&input->folder, path, input->kind, &calls);
	input->reads_folder = false;
	/* What windows of an unknown kind would have is not known: there are none. */
	if (!err && profile_reader_end(input->reader, input->kind) == -ENOMEM)
		err = -ENOMEM;
	if (err == -ENOMEM)
		return refuse(input, path, strerror(ENOMEM));
	return err;
}

static int read_directory(struct input *input, const char *path)
{
	const struct store_range range = {.since_ms = input->since_ms,
					  .until_ms =
						  input->until_ms ? input->until_ms : UINT64_MAX};
	const char *kind = wanted_kind(input);
	int err;

	folder_release(&input->folder);
	err = folder_list(&input->folder, path, &range);
	if (err)
		return refuse(input, path, strerror(-err));
	if (!input->folder.listing.count || (kind && !has_kind(&input->folder.listing, kind) &&
					     !is_kind_of_other_times(path, kind)))
		return input->options->may_be_none ? 0 : say_nothing_found(input, path);
	err = choose_kind(input, path);
	return err ? err : read_windows(input, path);
}

/* ---- live ---- */

/* Chooses the kind for --live: the default kind, as for a directory. */
static int find_live_kind(struct input *input, enum pp_profile *ret_kind)
{
	const char *kind =
		wanted_kind(input) ? wanted_kind(input) : kind_get(PP_PROFILE_DEFAULT)->name;
	char names[KIND_NAMES_CHARS], why[KIND_NAMES_CHARS + 32];

	if (live_kind_find(kind, strlen(kind), ret_kind))
		return 0;
	kind_names(KINDS_SERVED, ", ", " and ", names);
	snprintf(why, sizeof(why), "--live has kinds %s only", names);
	return refuse(input, kind, why);
}

static int take_live(struct input *input, enum pp_profile kind)
{
	const struct select *select = input->select;
	struct live_windows_options options = {.socket = select->socket,
					       .pid = select->pid,
					       .pid_count = select->pid_count,
					       .as_user = select->as_user,
					       .uid = select->uid,
					       .kind = kind,
					       .seconds = select->live_seconds,
					       .watcher = input->options->watcher,
					       .max_bytes = input->options->live_max};

	/* The kind's own windows are to come first. */
	options.more = input->options->live_more & KINDS_SERVED & (UINT32_MAX << kind << 1);
	return live_windows_take(&options, input->why, &input->live);
}

static int read_live(struct input *input)
{
	const struct input *from = input->options->live_from ? input->options->live_from : input;
	enum pp_profile kind;
	int err = find_live_kind(input, &kind);

	if (!err && from == input)
		err = take_live(input, kind);
	if (err)
		return err;
	input->wanted = live_windows_count(from->live);
	for (size_t i = 0; !err && i < live_windows_count(from->live); i++) {
		OWNED_FD int fd = -1;

		if (live_windows_kind(from->live, i) != kind)
			continue;
		err = live_windows_open(from->live, i, &fd);
		err = err ? refuse(input, "a window", strerror(-err))
			  : read_fd(input, fd, "a window", kind_get(kind)->name);
	}
	return err;
}

/* ---- all input ---- */

static int read_local(struct input *input, const char *path)
{
	struct stat status;

	if (strcmp(path, "-") && stat(path, &status))
		return refuse(input, path, strerror(errno));
	if (strcmp(path, "-") && S_ISDIR(status.st_mode))
		return read_directory(input, path);
	input->wanted++;
	return read_one(input, path);
}

static int read_remote(struct input *input, int index, const char *url)
{
	const struct select *select = input->select;
	const struct remote_ask ask = {.url = url,
				       .set = select->from_set,
				       .set_count = select->from_set_count,
				       .kind = wanted_kind(input),
				       .sample_type =
					       input->options->kind ? NULL : select->sample_type,
				       .since_ms = input->since_ms,
				       .until_ms = input->until_ms,
				       .watcher = input->options->watcher};
	char why[WHY_BYTES] = "";
	int err;

	remote_free(TAKE(input->remote));
	err = remote_fetch(&ask, why, &input->remote);
	if (err == -ENOENT && input->options->may_be_none)
		return 0;
	if (err && wanted_records(input) && input->options->may_be_none) {
		/* Many who have profiles have no records. */
		if (input->options->watcher->note)
			input->options->watcher->note(input->options->watcher->context, why);
		return 0;
	}
	if (err)
		return refuse(input, input->path[index], why);
	input->remote_name = input->path[index];
	return read_local(input, remote_path(input->remote));
}

static int read_path(struct input *input, int index)
{
	const struct select *select = input->select;
	const struct select_range *range = select->range ? &select->range[index] : NULL;
	const char *path = select->path[index];
	enum collector_id ignored;
	const char *plain;

	input->since_ms = range && range->text ? range->since_ms : select->since_ms;
	input->until_ms = range && range->text ? range->until_ms : select->until_ms;
	return input->select->may_fetch && remote_url_parse(path, &ignored, &plain)
		       ? read_remote(input, index, path)
		       : read_local(input, path);
}

/* A file in a shared directory may have any name. */
static int clean_path(const struct select *select, int index, char **ret_clean)
{
	const char *path = select->path[index], *plain;
	const char *range = select->range ? select->range[index].text : NULL;
	OWNED_MEM char *text = NULL;
	enum collector_id ignored;
	char name[REMOTE_NAME_BYTES];
	int size;

	if (select->may_fetch && remote_url_parse(path, &ignored, &plain)) {
		remote_name(path, name);
		path = name;
	}
	size = asprintf(&text, "%s%s%s", path, range ? " " : "", range ? range : "");
	if (size < 0) {
		text = NULL;
		return -ENOMEM;
	}
	*ret_clean = calloc((size_t)size + 1, UTF8_CLEAN_MAX_GROWTH);
	if (!*ret_clean)
		return -ENOMEM;
	(*ret_clean)[utf8_clean(text, (size_t)size, *ret_clean)] = '\0';
	return 0;
}

static int clean_paths(struct input *input)
{
	const struct select *select = input->select;
	int err = 0;

	input->path = calloc((size_t)select->path_count + 1, sizeof(char *));
	if (!input->path)
		return -ENOMEM;
	for (int i = 0; !err && i < select->path_count; i++)
		err = clean_path(select, i, &input->path[i]);
	return err;
}

static void make_title(struct input *input)
{
	const struct select *select = input->select;
	const struct profile_read_totals totals = input_totals(input);
	const char *plural = totals.windows == 1 ? "" : "s";

	if (select->live)
		snprintf(input->title, sizeof(input->title), "what runs now (%" PRIu64 " window%s)",
			 totals.windows, plural);
	else if (totals.windows == 1 && select->path_count == 1)
		snprintf(input->title, sizeof(input->title), "%s", input->path[0]);
	else if (select->path_count == 1)
		snprintf(input->title, sizeof(input->title), "%s (%" PRIu64 " window%s)",
			 input->path[0], totals.windows, plural);
	else
		snprintf(input->title, sizeof(input->title),
			 "%s and %d more (%" PRIu64 " window%s)", input->path[0],
			 select->path_count - 1, totals.windows, plural);
}

static bool has_windows(const struct input *input)
{
	return input_totals(input).windows;
}

static int say_no_windows(const struct input *input)
{
	const struct select *select = input->select;

	if (input->passed_over)
		return say_why(input->why, "%s: nothing else is there to be read", select->path[0]);
	return refuse(input, select->live ? "--live" : select->path[0],
		      select->live ? "no window has come"
				   : "its profiles went away while it was read");
}

static int read_all(struct input *input)
{
	const struct select *select = input->select;
	int err = open_reader(input);

	if (err)
		return refuse(input, "cannot begin", strerror(-err));
	if (select->live)
		err = read_live(input);
	for (int i = 0; !err && i < select->path_count; i++) {
		if (input->options->path_begin)
			input->options->path_begin(input->options->context, i);
		err = read_path(input, i);
	}
	if (!err && input->passed_over)
		tell_passed_over(input);
	if (!err && !has_windows(input) && !input->options->may_be_none)
		err = say_no_windows(input);
	return err;
}

int input_read(const struct input_options *options, char why[WHY_BYTES], struct input **ret_input)
{
	OWNED(input) struct input *input = NULL;
	int err;

	if (!options->select->path_count && !options->select->live)
		return say_why(why,
			       "the profile is missing: give a file (cpu.pb.gz), a directory of "
			       "profiles (/var/lib/pyprofd) or --live");
	input = calloc(1, sizeof(*input));
	if (!input)
		return say_why(why, "%s", strerror(ENOMEM));
	input->options = options;
	input->select = options->select;
	input->match.select = options->select;
	input->why = why;
	input->path_count = options->select->path_count;
	input->full_paths = options->select->full_paths;
	if (clean_paths(input))
		return say_why(why, "%s", strerror(ENOMEM));
	err = read_all(input);
	if (err)
		return err;
	if (!has_windows(input)) {
		*ret_input = NULL;
		return 0;
	}
	if (short_paths_of_profile(input_profile(input), &input->short_paths))
		return refuse(input, "its files", strerror(ENOMEM));
	make_title(input);
	*ret_input = TAKE(input);
	return 0;
}
