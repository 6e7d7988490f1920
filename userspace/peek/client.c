/* SPDX-License-Identifier: BSD-2-Clause */
#include "peek/client.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/who_answers.h"
#include "child/worker.h"
#include "peek/child.h"

struct peek {
	struct worker *worker; /* owned */
	struct late_table late;
	uint64_t files_after_ns; /* files of the host are not read before that */
	unsigned int files_late; /* so many of them in a row */
	struct peek_stats stats;
};

static const struct worker_kind kind = {.kind = CHILD_MEMORY, .memory_bytes = PEEK_MEMORY_BYTES};

int peek_new(const char *program, struct peek **ret_peek)
{
	OWNED(peek) struct peek *peek = calloc(1, sizeof(*peek));
	int err;

	if (!peek)
		return -ENOMEM;
	err = worker_new(&kind, program, -1, &peek->worker);
	if (err)
		return err;
	*ret_peek = TAKE(peek);
	return 0;
}

void peek_free(struct peek *peek)
{
	if (!peek)
		return;
	worker_free(peek->worker);
	free(peek);
}

void peek_await(struct peek *peek)
{
	(void)worker_await(peek->worker);
}

/* Returns who answers for a process (/proc/PID itself shows its user also where it is not
 * dumpable). */
static uid_t owner_of(pid_t tid)
{
	char path[32];
	struct stat status;

	snprintf(path, sizeof(path), "/proc/%d", tid);
	return stat(path, &status) ? 0 : who_answers(status.st_uid);
}

static bool is_suspect(const struct peek *peek, pid_t tid)
{
	const uint64_t now_ns = mono_ns();

	return now_ns < peek->late.suspects_until_ns &&
	       late_table_suspects(&peek->late, owner_of(tid), now_ns);
}

/* Returns what the child says; -ETIME when it was late; -ETIMEDOUT when there is none. */
static int exchange(struct peek *peek, struct peek_request *message, struct worker_answer *answer)
{
	const struct worker_request request = {.blame.what = (uint64_t)message->tid,
					       .message = message,
					       .bytes = peek_request_bytes(message->count),
					       .limit_ms = is_suspect(peek, message->tid)
								   ? PEEK_SUSPECT_MS
								   : PEEK_DEADLINE_NS / NS_PER_MS};
	int err = worker_ask(peek->worker, &request, answer);

	if (err == -EPIPE)
		return -ETIMEDOUT;
	return err ? err : answer->reply.error;
}

/* ---- who was late ---- */

static bool is_left_alone(const struct peek *peek, pid_t tid)
{
	const uint64_t now_ns = mono_ns();

	return late_table_has_task(&peek->late, tid, now_ns) ||
	       (now_ns < peek->late.users_until_ns &&
		late_table_has_user(&peek->late, owner_of(tid), now_ns));
}

/* Counts a read, whose task is noted if it was late.  Returns what its caller is told. */
static int note_read(struct peek *peek, pid_t tid, int err)
{
	peek->stats.reads++;
	if (err == -ETIME) {
		peek->stats.late++;
		late_table_add(&peek->late, tid, owner_of(tid), mono_ns());
	} else if (err == -ETIMEDOUT) {
		peek->stats.left_alone++;
	}
	return err == -ETIME ? -ETIMEDOUT : err;
}

/* ---- memory ---- */

/* Where a read goes on: piece `at`, after `done` of its bytes. */
struct progress {
	const struct process_piece *piece;
	size_t count, at, done;
};

/* Adds pieces, or a part of one, until the shared memory is full. */
static void fill_request(struct peek_request *request, struct progress *progress)
{
	uint32_t room = PEEK_MEMORY_BYTES;

	request->count = 0;
	while (progress->at < progress->count && room && request->count < PROCESS_PIECES_MAX) {
		const struct process_piece *piece = &progress->piece[progress->at];
		const size_t left = piece->size - progress->done;
		const uint32_t size = left < room ? (uint32_t)left : room;

		request->piece[request->count++] = (struct peek_piece){
			.address = piece->address + progress->done, .size = size};
		room -= size;
		progress->done += size;
		if (progress->done < piece->size)
			return;
		progress->at++;
		progress->done = 0;
	}
}

static void copy_out(const struct peek *peek, const struct peek_request *request,
		     const struct progress *before)
{
	const uint8_t *from = worker_memory(peek->worker);
	size_t at = before->at, done = before->done;

	for (uint32_t i = 0; i < request->count; i++, at++, done = 0) {
		memcpy((uint8_t *)before->piece[at].buffer + done, from, request->piece[i].size);
		from += request->piece[i].size;
	}
}

static int read_all(struct peek *peek, pid_t tid, const struct process_piece *piece, size_t count)
{
	struct progress progress = {.piece = piece, .count = count};
	struct peek_request request = {.tid = tid, .kind = PEEK_READ};
	int err = 0;

	while (!err && progress.at < count) {
		CLEANUP(worker_answer_release) struct worker_answer answer = {.fd = -1};
		const struct progress before = progress;

		fill_request(&request, &progress);
		err = exchange(peek, &request, &answer);
		if (!err)
			copy_out(peek, &request, &before);
	}
	return err;
}

int peek_read(void *context, pid_t tid, const struct process_piece *piece, size_t count)
{
	struct peek *peek = context;

	return note_read(peek, tid,
			 is_left_alone(peek, tid) ? -ETIMEDOUT : read_all(peek, tid, piece, count));
}

/* ---- mappings ---- */

/* Adds what the child has read to the text. */
static int add_text(const struct peek *peek, uint32_t bytes, size_t max_bytes, char **text,
		    size_t *size)
{
	char *grown;

	if (*size + bytes > max_bytes)
		return -EFBIG;
	grown = realloc(*text, *size + bytes + 1);
	if (!grown)
		return -ENOMEM;
	*text = grown;
	memcpy(grown + *size, worker_memory(peek->worker), bytes);
	*size += bytes;
	grown[*size] = '\0';
	return 0;
}

static int read_all_maps(struct peek *peek, pid_t tid, size_t max_bytes, char **text, size_t *size)
{
	struct peek_request request = {.tid = tid, .kind = PEEK_MAPS, .count = 1};
	uint32_t bytes = PEEK_MEMORY_BYTES;
	int err = 0;

	while (!err && bytes == PEEK_MEMORY_BYTES) {
		CLEANUP(worker_answer_release) struct worker_answer answer = {.fd = -1};

		request.piece[0] = (struct peek_piece){.address = *size, .size = PEEK_MEMORY_BYTES};
		err = exchange(peek, &request, &answer);
		bytes = answer.reply.size;
		if (!err)
			err = add_text(peek, bytes, max_bytes, text, size);
	}
	return err;
}

int peek_read_maps(void *context, pid_t tid, size_t max_bytes, char **ret_text, size_t *ret_size)
{
	struct peek *peek = context;
	OWNED_MEM char *text = NULL;
	size_t size = 0;
	int err = is_left_alone(peek, tid) ? -ETIMEDOUT
					   : read_all_maps(peek, tid, max_bytes, &text, &size);

	err = note_read(peek, tid, err);
	if (err)
		return err;
	*ret_text = TAKE(text);
	*ret_size = size;
	return 0;
}

/* ---- texts and directories ---- */

/* Sends a request of one answer, and copies that out: it may hold secrets, which do not stay. */
static int ask_for_bytes(struct peek *peek, struct peek_request *request, char **ret_bytes,
			 size_t *ret_size)
{
	CLEANUP(worker_answer_release) struct worker_answer answer = {.fd = -1};
	OWNED_MEM char *bytes = NULL;
	size_t size = 0;
	int err = is_left_alone(peek, request->tid) ? -ETIMEDOUT : exchange(peek, request, &answer);

	err = note_read(peek, request->tid, err);
	if (!err)
		err = add_text(peek, answer.reply.size, PEEK_MEMORY_BYTES, &bytes, &size);
	worker_wipe(peek->worker, answer.reply.size);
	if (err)
		return err;
	*ret_bytes = TAKE(bytes);
	*ret_size = size;
	return 0;
}

/* A file of the host that was late leaves a child that may be stuck for ever, and only
 * WORKER_STUCK_MAX of them may be, or no process is read any more. */
static void note_late_file(struct peek *peek)
{
	peek->files_late++;
	peek->files_after_ns =
		peek->files_late < PEEK_HOST_LATE_MAX ? mono_ns() + PEEK_HOST_AGAIN_NS : UINT64_MAX;
}

/* Asks for what lies in the host's file systems, and not in a process. */
static int ask_for_file(struct peek *peek, struct peek_request *request, char **ret_bytes,
			size_t *ret_size)
{
	const uint64_t late = peek->stats.late;
	int err;

	if (mono_ns() < peek->files_after_ns)
		return -ETIMEDOUT;
	err = ask_for_bytes(peek, request, ret_bytes, ret_size);
	if (peek->stats.late != late)
		note_late_file(peek);
	else if (!err)
		peek->files_late = 0;
	return err;
}

int peek_read_text(void *peek, pid_t tid, enum process_text which, size_t max_bytes,
		   char **ret_text, size_t *ret_size)
{
	struct peek_request request = {.tid = tid,
				       .kind = PEEK_TEXT,
				       .count = 1,
				       .piece = {{.address = which, .size = (uint32_t)max_bytes}}};

	return which == PROCESS_USERS || which == PROCESS_SUBORDINATES
		       ? ask_for_file(peek, &request, ret_text, ret_size)
		       : ask_for_bytes(peek, &request, ret_text, ret_size);
}

int peek_list_logs(void *context, enum process_log_directory which, char **ret_entries,
		   size_t *ret_size)
{
	struct peek_request request = {
		.tid = getpid(),
		.kind = PEEK_LOGS,
		.count = 1,
		.piece = {{.address = which, .size = PROCESS_LOGS_MAX_BYTES}}};

	return ask_for_file(context, &request, ret_entries, ret_size);
}

const struct process_access peek_access = {.read = peek_read,
					   .read_maps = peek_read_maps,
					   .read_text = peek_read_text,
					   .list_logs = peek_list_logs};

void peek_get_stats(const struct peek *peek, struct peek_stats *ret_stats)
{
	struct worker_stats worker;

	if (!peek)
		return;
	worker_get_stats(peek->worker, &worker);
	*ret_stats = peek->stats;
	ret_stats->starts = worker.starts;
	ret_stats->cpu_ns = worker.cpu_ns;
	ret_stats->stuck = worker.stuck;
}
