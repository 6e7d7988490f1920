/* SPDX-License-Identifier: BSD-2-Clause */
#include "parser/client.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "child/late.h"
#include "child/worker.h"
#include "parser/protocol.h"

struct parser {
	struct worker *worker; /* owned */
	struct late_table late;
	uint64_t files_after_ns; /* files of the host are not read before that */
	unsigned int files_late; /* so many of them in a row */
	struct parser_stats stats;
};

static const struct worker_kind kind = {.kind = CHILD_MEMORY, .memory_bytes = PARSER_MEMORY_BYTES};

int parser_new(const char *program, struct parser **ret_parser)
{
	OWNED(parser) struct parser *parser = calloc(1, sizeof(*parser));
	int err;

	if (!parser)
		return -ENOMEM;
	err = worker_new(&kind, program, &parser->worker);
	if (err)
		return err;
	*ret_parser = TAKE(parser);
	return 0;
}

void parser_free(struct parser *parser)
{
	if (!parser)
		return;
	worker_free(parser->worker);
	free(parser);
}

void parser_await(struct parser *parser)
{
	(void)worker_await(parser->worker);
}

/* Returns whose process it is (/proc/PID itself shows that also of one that is not dumpable). */
static uid_t owner_of(pid_t tid)
{
	char path[32];
	struct stat status;

	snprintf(path, sizeof(path), "/proc/%d", tid);
	return stat(path, &status) ? 0 : status.st_uid;
}

static bool is_suspect(const struct parser *parser, pid_t tid)
{
	const uint64_t now_ns = mono_ns();

	return now_ns < parser->late.suspects_until_ns &&
	       late_table_suspects(&parser->late, owner_of(tid), now_ns);
}

/* Returns what the child says; -ETIME when it was late; -ETIMEDOUT when there is none. */
static int exchange(struct parser *parser, struct parser_request *message,
		    struct worker_answer *answer)
{
	const struct worker_request request = {
		.message = message,
		.bytes = parser_request_bytes(message->count),
		.limit_ms = is_suspect(parser, message->tid) ? PARSER_SUSPECT_MS
							     : PARSER_DEADLINE_NS / NS_PER_MS};
	int err = worker_ask(parser->worker, &request, answer);

	if (err == -EPIPE)
		return -ETIMEDOUT;
	return err ? err : answer->reply.error;
}

/* ---- who was late ---- */

static bool is_left_alone(const struct parser *parser, pid_t tid)
{
	const uint64_t now_ns = mono_ns();

	return late_table_has_task(&parser->late, tid, now_ns) ||
	       (now_ns < parser->late.users_until_ns &&
		late_table_has_user(&parser->late, owner_of(tid), now_ns));
}

/* Counts a read, whose task is noted if it was late.  Returns what its caller is told. */
static int note_read(struct parser *parser, pid_t tid, int err)
{
	parser->stats.reads++;
	if (err == -ETIME) {
		parser->stats.late++;
		late_table_add(&parser->late, tid, owner_of(tid), mono_ns());
	} else if (err == -ETIMEDOUT) {
		parser->stats.left_alone++;
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
static void fill_request(struct parser_request *request, struct progress *progress)
{
	uint32_t room = PARSER_MEMORY_BYTES;

	request->count = 0;
	while (progress->at < progress->count && room && request->count < PROCESS_PIECES_MAX) {
		const struct process_piece *piece = &progress->piece[progress->at];
		const size_t left = piece->size - progress->done;
		const uint32_t size = left < room ? (uint32_t)left : room;

		request->piece[request->count++] = (struct parser_piece){
			.address = piece->address + progress->done, .size = size};
		room -= size;
		progress->done += size;
		if (progress->done < piece->size)
			return;
		progress->at++;
		progress->done = 0;
	}
}

static void copy_out(const struct parser *parser, const struct parser_request *request,
		     const struct progress *before)
{
	const uint8_t *from = worker_memory(parser->worker);
	size_t at = before->at, done = before->done;

	for (uint32_t i = 0; i < request->count; i++, at++, done = 0) {
		memcpy((uint8_t *)before->piece[at].buffer + done, from, request->piece[i].size);
		from += request->piece[i].size;
	}
}

static int read_all(struct parser *parser, pid_t tid, const struct process_piece *piece,
		    size_t count)
{
	struct progress progress = {.piece = piece, .count = count};
	struct parser_request request = {.tid = tid, .kind = PARSER_READ};
	int err = 0;

	while (!err && progress.at < count) {
		CLEANUP(worker_answer_release) struct worker_answer answer = {.fd = -1};
		const struct progress before = progress;

		fill_request(&request, &progress);
		err = exchange(parser, &request, &answer);
		if (!err)
			copy_out(parser, &request, &before);
	}
	return err;
}

int parser_read(void *context, pid_t tid, const struct process_piece *piece, size_t count)
{
	struct parser *parser = context;

	return note_read(parser, tid,
			 is_left_alone(parser, tid) ? -ETIMEDOUT
						    : read_all(parser, tid, piece, count));
}

/* ---- mappings ---- */

/* Adds what the child has read to the text. */
static int add_text(const struct parser *parser, uint32_t bytes, size_t max_bytes, char **text,
		    size_t *size)
{
	char *grown;

	if (*size + bytes > max_bytes)
		return -EFBIG;
	grown = realloc(*text, *size + bytes + 1);
	if (!grown)
		return -ENOMEM;
	*text = grown;
	memcpy(grown + *size, worker_memory(parser->worker), bytes);
	*size += bytes;
	grown[*size] = '\0';
	return 0;
}

static int read_all_maps(struct parser *parser, pid_t tid, size_t max_bytes, char **text,
			 size_t *size)
{
	struct parser_request request = {.tid = tid, .kind = PARSER_MAPS, .count = 1};
	uint32_t bytes = PARSER_MEMORY_BYTES;
	int err = 0;

	while (!err && bytes == PARSER_MEMORY_BYTES) {
		CLEANUP(worker_answer_release) struct worker_answer answer = {.fd = -1};

		request.piece[0] =
			(struct parser_piece){.address = *size, .size = PARSER_MEMORY_BYTES};
		err = exchange(parser, &request, &answer);
		bytes = answer.reply.size;
		if (!err)
			err = add_text(parser, bytes, max_bytes, text, size);
	}
	return err;
}

int parser_read_maps(void *context, pid_t tid, size_t max_bytes, char **ret_text, size_t *ret_size)
{
	struct parser *parser = context;
	OWNED_MEM char *text = NULL;
	size_t size = 0;
	int err = is_left_alone(parser, tid) ? -ETIMEDOUT
					     : read_all_maps(parser, tid, max_bytes, &text, &size);

	err = note_read(parser, tid, err);
	if (err)
		return err;
	*ret_text = TAKE(text);
	*ret_size = size;
	return 0;
}

int parser_open_mapped(void *context, pid_t tid, uint64_t start, uint64_t end, int *ret_path_fd)
{
	CLEANUP(worker_answer_release) struct worker_answer answer = {.fd = -1};
	struct parser *parser = context;
	struct parser_request request = {.tid = tid,
					 .kind = PARSER_MAPPED_FILE,
					 .count = 2,
					 .piece = {{.address = start}, {.address = end}}};
	int err = is_left_alone(parser, tid) ? -ETIMEDOUT : exchange(parser, &request, &answer);

	err = note_read(parser, tid, err);
	if (!err && answer.fd < 0)
		err = -EBADMSG;
	if (!err)
		*ret_path_fd = TAKE_FD(answer.fd);
	return err;
}

/* ---- texts and directories ---- */

/* Sends a request of one answer, and copies that out: it may hold secrets, which do not stay. */
static int ask_for_bytes(struct parser *parser, struct parser_request *request, char **ret_bytes,
			 size_t *ret_size)
{
	CLEANUP(worker_answer_release) struct worker_answer answer = {.fd = -1};
	OWNED_MEM char *bytes = NULL;
	size_t size = 0;
	int err = is_left_alone(parser, request->tid) ? -ETIMEDOUT
						      : exchange(parser, request, &answer);

	err = note_read(parser, request->tid, err);
	if (!err)
		err = add_text(parser, answer.reply.size, PARSER_MEMORY_BYTES, &bytes, &size);
	worker_wipe(parser->worker, answer.reply.size);
	if (err)
		return err;
	*ret_bytes = TAKE(bytes);
	*ret_size = size;
	return 0;
}

/* A file of the host that was late leaves a child that may be stuck for ever, and only
 * WORKER_STUCK_MAX of them may be, or no process is read any more. */
static void note_late_file(struct parser *parser)
{
	parser->files_late++;
	parser->files_after_ns = parser->files_late < PARSER_HOST_LATE_MAX
					 ? mono_ns() + PARSER_HOST_AGAIN_NS
					 : UINT64_MAX;
}

/* Asks for what lies in the host's file systems, and not in a process. */
static int ask_for_file(struct parser *parser, struct parser_request *request, char **ret_bytes,
			size_t *ret_size)
{
	const uint64_t late = parser->stats.late;
	int err;

	if (mono_ns() < parser->files_after_ns)
		return -ETIMEDOUT;
	err = ask_for_bytes(parser, request, ret_bytes, ret_size);
	if (parser->stats.late != late)
		note_late_file(parser);
	else if (!err)
		parser->files_late = 0;
	return err;
}

int parser_read_text(void *parser, pid_t tid, enum process_text which, size_t max_bytes,
		     char **ret_text, size_t *ret_size)
{
	struct parser_request request = {
		.tid = tid,
		.kind = PARSER_TEXT,
		.count = 1,
		.piece = {{.address = which, .size = (uint32_t)max_bytes}}};

	return which == PROCESS_USERS ? ask_for_file(parser, &request, ret_text, ret_size)
				      : ask_for_bytes(parser, &request, ret_text, ret_size);
}

int parser_list_logs(void *context, enum process_log_directory which, char **ret_entries,
		     size_t *ret_size)
{
	struct parser_request request = {
		.tid = getpid(),
		.kind = PARSER_LOGS,
		.count = 1,
		.piece = {{.address = which, .size = PROCESS_LOGS_MAX_BYTES}}};

	return ask_for_file(context, &request, ret_entries, ret_size);
}

const struct process_access parser_access = {.read = parser_read,
					     .read_maps = parser_read_maps,
					     .open_mapped = parser_open_mapped,
					     .read_text = parser_read_text,
					     .list_logs = parser_list_logs};

void parser_get_stats(const struct parser *parser, struct parser_stats *ret_stats)
{
	struct worker_stats worker;

	if (!parser)
		return;
	worker_get_stats(parser->worker, &worker);
	*ret_stats = parser->stats;
	ret_stats->starts = worker.starts;
	ret_stats->cpu_ns = worker.cpu_ns;
}
