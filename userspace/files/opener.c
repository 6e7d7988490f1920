/* SPDX-License-Identifier: BSD-2-Clause */
#include "files/opener.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "base/io.h"
#include "base/who_answers.h"
#include "child/worker.h"
#include "discover/process.h"
#include "files/opening.h"
#include "files/vouch.h"

#define SUSPECTS_NS NS_PER_SEC /* after a late one */
#define PATH_NUMBER UINT32_MAX /* of a file that is open for a moment */

struct opener {
	struct worker *worker; /* owned */
	int peer[2];	       /* owned: the child's end, and that of the one that parses */
	uint32_t handed;
	struct late_table late_processes, late_files;
	char *mounts; /* owned; /proc/self/mountinfo; NULL: not read */
	uint64_t mounts_ns;
	uint64_t suspects_until_ns; /* everybody is suspected until then */
	struct opener_stats stats;
	struct opening_request request; /* scratch */
};

static const struct worker_kind kind = {.kind = CHILD_OPENER, .memory_bytes = OPENING_MEMORY_BYTES};

int opener_new(const char *program, struct opener **ret_opener)
{
	OWNED(opener) struct opener *opener = calloc(1, sizeof(*opener));
	int err;

	if (!opener)
		return -ENOMEM;
	opener->peer[0] = opener->peer[1] = -1;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, opener->peer))
		return -errno;
	err = worker_new(&kind, program, opener->peer[0], &opener->worker);
	if (err)
		return err;
	*ret_opener = TAKE(opener);
	return 0;
}

bool opener_await(struct opener *opener)
{
	return worker_await(opener->worker);
}

void opener_free(struct opener *opener)
{
	if (!opener)
		return;
	worker_free(opener->worker);
	close_owned_fd(&opener->peer[0]);
	close_owned_fd(&opener->peer[1]);
	free(opener->mounts);
	free(opener);
}

int opener_peer(const struct opener *opener)
{
	return opener->peer[1];
}

uint64_t opener_child(const struct opener *opener)
{
	return worker_child(opener->worker);
}

void opener_get_stats(const struct opener *opener, struct opener_stats *ret_stats)
{
	struct worker_stats worker;

	worker_get_stats(opener->worker, &worker);
	*ret_stats = opener->stats;
	ret_stats->starts = worker.starts;
	ret_stats->cpu_ns = worker.cpu_ns;
	ret_stats->stuck = worker.stuck;
}

/* Devices have 12 and 20 bits (<linux/kdev_t.h>). */
#define MINOR_BITS 20U
#define PLACE_BIT (1ULL << 63)

uint64_t opener_place(const struct file_key *key)
{
	return key->inode ? PLACE_BIT | (uint64_t)key->major << MINOR_BITS | key->minor : 0;
}

static uint32_t place_major(uint64_t place)
{
	return (uint32_t)(place >> MINOR_BITS & 0xfff);
}

static uint32_t place_minor(uint64_t place)
{
	return (uint32_t)(place & ((1U << MINOR_BITS) - 1));
}

/* ---- one request ---- */

/* What is left alone when the child is late at a request. */
struct whom {
	struct late_table *late; /* NULL: nobody is */
	uint32_t id;		 /* in that table */
	uid_t user;
	struct worker_blame blame;
};

static struct whom whom_of_file(struct opener *opener, const struct opener_file *file)
{
	return (struct whom){.late = &opener->late_files,
			     .id = file->number,
			     .user = file->user,
			     .blame = {.what = 1ULL << 32 | file->number,
				       .place = file->place,
				       .user = file->user}};
}

static struct whom whom_of_process(struct opener *opener, uint32_t tgid, uid_t user, uint64_t place)
{
	return (struct whom){.late = &opener->late_processes,
			     .id = tgid,
			     .user = user,
			     .blame = {.what = tgid, .place = place, .user = user}};
}

/* ---- what goes on while others do not answer ---- */

#define MOUNTS_MAX_BYTES (4U << 20) /* some 30,000 mounts */
#define MOUNTS_NS NS_PER_SEC	    /* for so long they are as they were read */

bool opener_is_local(struct opener *opener, uint64_t place)
{
	char type[16];

	if (!place)
		return false;
	if (!opener->mounts || mono_ns() - opener->mounts_ns > MOUNTS_NS) {
		free(opener->mounts);
		opener->mounts = NULL;
		if (read_file("/proc/self/mountinfo", MOUNTS_MAX_BYTES, &opener->mounts, NULL))
			return false;
		opener->mounts_ns = mono_ns();
	}
	return mountinfo_type(opener->mounts, place_major(place), place_minor(place), type,
			      sizeof(type)) &&
	       file_system_name_is_local(type);
}

static unsigned int limit_ms(struct opener *opener, const struct whom *whom)
{
	const uint64_t now_ns = mono_ns();
	/* Several users may come together. */
	const bool is_suspect = now_ns < opener->suspects_until_ns ||
				late_table_suspects(&opener->late_processes, whom->user, now_ns) ||
				late_table_suspects(&opener->late_files, whom->user, now_ns);

	/* A disk is slow for whoever asks. */
	return is_suspect && !opener_is_local(opener, whom->blame.place) ? OPENER_SUSPECT_MS
									 : OPENER_DEADLINE_MS;
}

/* Returns what is to blame for a request, and whether it may be made; in a file system that answers
 * it is nobody, without any path. */
static bool may_ask(struct opener *opener, const struct whom *whom, struct worker_blame *ret_blame)
{
	*ret_blame = whom->blame;
	if (!worker_is_held_up(opener->worker, &whom->blame) &&
	    (!whom->late || !late_table_forbids(whom->late, whom->id, whom->user, mono_ns())))
		return true;
	*ret_blame = (struct worker_blame){0};
	opener->request.walks_no_path = 1;
	return opener_is_local(opener, whom->blame.place);
}

/* Asks for opener->request.  Returns what the child says. */
static int ask(struct opener *opener, const struct whom *whom, struct worker_answer *ret_answer)
{
	struct opening_request *message = &opener->request;
	struct worker_request request = {.message = message,
					 .bytes = opening_request_bytes(message),
					 .limit_ms = limit_ms(opener, whom)};
	int err = -ETIMEDOUT;

	opener->stats.asked++;
	if (may_ask(opener, whom, &request.blame))
		err = worker_ask(opener->worker, &request, ret_answer);
	if (err == -ETIMEDOUT)
		opener->stats.left_alone++;
	if (err == -ETIME) {
		opener->stats.late++;
		opener->suspects_until_ns = mono_ns() + SUSPECTS_NS;
		if (whom->late)
			late_table_add(whom->late, (pid_t)whom->id, whom->user, mono_ns());
	}
	if (err)
		return -ETIMEDOUT;
	/* It is ours to say. */
	return ret_answer->reply.error == -ETIMEDOUT ? -EIO : ret_answer->reply.error;
}

static struct opening_request *begin(struct opener *opener, enum opening_kind what)
{
	memset(&opener->request, 0, offsetof(struct opening_request, path) + 1);
	opener->request.kind = what;
	return &opener->request;
}

/* Returns whether there is room for the path. */
static bool put_path(struct opening_request *request, const char *path)
{
	const size_t size = strlen(path);

	if (size >= sizeof(request->path))
		return false;
	memcpy(request->path, path, size + 1);
	return true;
}

/* ---- opening ---- */

static bool is_opened_sound(const struct opened_file *opened)
{
	return (opened->fd == -1 || opened->fd > CHILD_PEER_FD) &&
	       opened->refusal < OPENING_REFUSALS && opened->is_of_mapping <= 1 &&
	       opened->is_executable <= 1 && file_identity_is_sound(&opened->identity) &&
	       memchr(opened->path, 0, sizeof(opened->path));
}

static int ask_to_open(struct opener *opener, const struct whom *whom,
		       struct opened_file *ret_opened)
{
	CLEANUP(worker_answer_release) struct worker_answer answer = {.fd = -1};
	int err = ask(opener, whom, &answer);

	if (err)
		return err;
	if (answer.reply.size != sizeof(*ret_opened))
		return -EBADMSG;
	memcpy(ret_opened, worker_memory(opener->worker), sizeof(*ret_opened));
	return is_opened_sound(ret_opened) ? 0 : -EBADMSG;
}

int opener_open_mapped(struct opener *opener, uint32_t tgid, uid_t user,
		       const struct mapping *mapping, struct opened_file *ret_opened)
{
	const struct whom whom = whom_of_process(opener, tgid, user, opener_place(&mapping->key));
	struct opening_request *request = begin(opener, OPENING_MAPPED);
	pid_t tid = (pid_t)tgid;
	char path[32];
	int err;

	if (mapping->path[0] != '/' || !put_path(request, mapping->path))
		return -ENOENT;
	(void)process_live_task((pid_t)tgid, &tid);
	request->tid = tid;
	request->start = mapping->start;
	request->end = mapping->end;
	request->key = mapping->key;
	err = ask_to_open(opener, &whom, ret_opened);
	if (err != -ENOENT)
		return err;
	snprintf(path, sizeof(path), "/proc/%u", tgid);
	return access(path, F_OK) == 0 ? -ENOENT : -ESRCH;
}

int opener_open_perf_map(struct opener *opener, const struct opener_perf_map *map,
			 const struct opening_seen *seen, struct opened_file *ret_opened)
{
	const struct whom whom =
		whom_of_process(opener, (uint32_t)map->tid, who_answers(map->user), 0);
	struct opening_request *request = begin(opener, OPENING_PERF_MAP);

	request->tid = map->tid;
	request->inner_pid = map->inner_pid;
	request->uid = map->user;
	request->started_s = map->started_s;
	request->seen = *seen;
	return ask_to_open(opener, &whom, ret_opened);
}

int opener_open_path(struct opener *opener, const char *path, struct opened_file *ret_opened,
		     struct opener_file *ret_file)
{
	const struct whom whom = {.late = NULL};
	int err = -ENAMETOOLONG;

	if (put_path(begin(opener, OPENING_PATH), path))
		err = ask_to_open(opener, &whom, ret_opened);
	if (!err)
		*ret_file = (struct opener_file){.child = opener_child(opener),
						 .fd = ret_opened->fd,
						 .number = PATH_NUMBER,
						 .place = opener_place(&ret_opened->identity.key)};
	return err;
}

/* ---- open files ---- */

static bool is_open(const struct opener *opener, const struct opener_file *file)
{
	return file->fd >= 0 && file->child == opener_child(opener);
}

static int ask_about(struct opener *opener, const struct opener_file *file,
		     struct worker_answer *ret_answer)
{
	const struct whom whom = whom_of_file(opener, file);

	if (!is_open(opener, file))
		return -ESTALE;
	opener->request.fd[opener->request.fd_count++] = file->fd;
	return ask(opener, &whom, ret_answer);
}

int opener_hand(struct opener *opener, const struct opener_file *file,
		const struct opener_debug *debug, uint32_t *ret_number, uint32_t *ret_files)
{
	CLEANUP(worker_answer_release) struct worker_answer answer = {.fd = -1};
	struct opening_request *request = begin(opener, OPENING_HAND);
	const struct whom whom = whom_of_file(opener, file);
	int err;

	/* Never 0. */
	opener->handed = opener->handed % UINT32_MAX + 1;
	request->start = opener->handed;
	if (debug && put_path(request, debug->path)) {
		request->has_debug = 1;
		request->debug = *debug->names;
		request->uid = debug->owner;
	}
	err = file->fd < 0 ? ask(opener, &whom, &answer) : ask_about(opener, file, &answer);
	if (err)
		return err;
	*ret_number = opener->handed;
	*ret_files = answer.reply.size & FOREIGN_FILES_MASK;
	return 0;
}

int opener_give(struct opener *opener, const struct opener_file *file, pid_t tid, int *ret_fd)
{
	CLEANUP(worker_answer_release) struct worker_answer answer = {.fd = -1};
	int err;

	begin(opener, OPENING_GIVE)->tid = tid;
	err = ask_about(opener, file, &answer);
	if (!err && answer.fd < 0)
		err = -EBADMSG;
	if (!err)
		*ret_fd = TAKE_FD(answer.fd);
	return err;
}

bool opener_is_equal(struct opener *opener, const struct opener_file *a,
		     const struct opener_file *b, uint64_t bytes)
{
	CLEANUP(worker_answer_release) struct worker_answer answer = {.fd = -1};
	struct opening_request *request = begin(opener, OPENING_COMPARE);

	if (!is_open(opener, a))
		return false;
	request->start = bytes;
	request->fd[request->fd_count++] = a->fd;
	return !ask_about(opener, b, &answer) && answer.reply.size == 1;
}

int opener_check_text(struct opener *opener, const struct opener_file *file,
		      const struct file_identity *identity, const struct foreign_segment *segment,
		      size_t count)
{
	CLEANUP(worker_answer_release) struct worker_answer answer = {.fd = -1};
	struct opening_request *request = begin(opener, OPENING_TEXT);

	if (file_is_dense(identity))
		return file_text_check(-1, identity, segment, count);
	request->identity = *identity;
	request->segment_count = (uint32_t)count;
	memcpy(request->segment, segment, count * sizeof(*segment));
	return ask_about(opener, file, &answer) == -EFBIG ? -EFBIG : 0;
}

/* It is asked also where no more of the user's files are opened. */
void opener_close(struct opener *opener, struct opener_file *file)
{
	CLEANUP(worker_answer_release) struct worker_answer answer = {.fd = -1};
	struct whom whom = whom_of_file(opener, file);
	struct opening_request *request = begin(opener, OPENING_CLOSE);

	whom.blame.user = 0;
	if (is_open(opener, file)) {
		request->fd[request->fd_count++] = file->fd;
		(void)ask(opener, &whom, &answer);
	}
	file->fd = -1;
}

/* As many as go into a request; who is late at one of them is nobody's fault. */
static void close_some(struct opener *opener, struct opener_file *const *file, size_t count)
{
	CLEANUP(worker_answer_release) struct worker_answer answer = {.fd = -1};
	const struct whom whom = {.late = NULL};
	struct opening_request *request = begin(opener, OPENING_CLOSE);

	for (size_t i = 0; i < count; i++) {
		if (is_open(opener, file[i]))
			request->fd[request->fd_count++] = file[i]->fd;
		file[i]->fd = -1;
	}
	if (request->fd_count)
		(void)ask(opener, &whom, &answer);
}

void opener_close_many(struct opener *opener, struct opener_file *const *file, size_t count)
{
	for (size_t done = 0; done < count; done += OPENING_FDS_MAX)
		close_some(opener, file + done,
			   count - done < OPENING_FDS_MAX ? count - done : OPENING_FDS_MAX);
}
