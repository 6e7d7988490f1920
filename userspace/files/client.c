/* SPDX-License-Identifier: BSD-2-Clause */
#include "files/client.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include "base/clock.h"
#include "child/worker.h"
#include "files/check.h"
#include "files/protocol.h"
#include "files/user_time.h"

#define REASONS_MAX 16U /* different ones; our own texts, of which there are fewer */

/* What the child has mapped. */
struct held {
	uint32_t number; /* 0: nothing */
	uint64_t used_at;
};

/* The rows that came with the facts of a file. */
struct first_rows {
	uint32_t number; /* 0: none */
	uint64_t low, high;
	struct cfi_rows rows;
};

struct foreign {
	struct opener *opener; /* owned */
	struct worker *worker; /* owned */
	struct held held[FOREIGN_SLOTS];
	uint64_t child; /* when `held` was true */
	uint64_t asked;
	struct first_rows first;
	int codes_fd; /* owned; a memory file with code objects for the child; -1: not made */
	struct late_table late, late_codes; /* files; code objects */
	struct user_times times;
	char *reason[REASONS_MAX]; /* owned */
	struct foreign_stats stats;
};

static const struct worker_kind kind = {
	.kind = CHILD_FILES, .memory_bytes = FOREIGN_MEMORY_BYTES, .is_computing = true};

int foreign_new(const char *program, struct foreign **ret_foreign)
{
	OWNED(foreign) struct foreign *foreign = calloc(1, sizeof(*foreign));
	int err;

	if (!foreign)
		return -ENOMEM;
	foreign->codes_fd = -1;
	err = opener_new(program, &foreign->opener);
	if (!err)
		err = worker_new(&kind, program, opener_peer(foreign->opener), &foreign->worker);
	if (err)
		return err;
	*ret_foreign = TAKE(foreign);
	return 0;
}

bool foreign_await(struct foreign *foreign)
{
	const bool has_opener = opener_await(foreign->opener);

	return worker_await(foreign->worker) && has_opener;
}

struct opener *foreign_opener(const struct foreign *foreign)
{
	return foreign->opener;
}

void foreign_free(struct foreign *foreign)
{
	if (!foreign)
		return;
	worker_free(foreign->worker);
	opener_free(foreign->opener);
	for (size_t i = 0; i < REASONS_MAX; i++)
		free(foreign->reason[i]);
	free(foreign->first.rows.row);
	close_owned_fd(&foreign->codes_fd);
	free(foreign);
}

/* ---- what the child has mapped ---- */

static void forget_old_child(struct foreign *foreign)
{
	if (worker_child(foreign->worker) != foreign->child)
		memset(foreign->held, 0, sizeof(foreign->held));
	foreign->child = worker_child(foreign->worker);
}

/* Returns the slot of a file; of one that is not held, that which was not used for longest. */
static struct held *slot_of(struct foreign *foreign, uint32_t number)
{
	struct held *oldest = &foreign->held[0];

	for (struct held *held = foreign->held; held < foreign->held + FOREIGN_SLOTS; held++) {
		if (held->number == number)
			return held;
		if (held->used_at < oldest->used_at)
			oldest = held;
	}
	return oldest;
}

/* ---- one request ---- */

static int find_codes(void *context, struct foreign_source *ret_source)
{
	const struct foreign *foreign = context;

	*ret_source = (struct foreign_source){.fd = foreign->codes_fd};
	return 0;
}

/* A user's code objects and texts are not left alone for that user's files, nor the other way
 * round. */
static struct late_table *late_of(struct foreign *foreign, const struct foreign_file *file)
{
	const bool is_file = file->find && file->find != find_codes;

	return is_file ? &foreign->late : &foreign->late_codes;
}

/* Returns 0; -ETIMEDOUT, -EAGAIN: as the questions. */
static int may_ask(struct foreign *foreign, const struct foreign_file *file)
{
	const uint64_t now_ns = mono_ns();

	if (late_table_forbids(late_of(foreign, file), file->number, file->user, now_ns)) {
		foreign->stats.none++;
		return -ETIMEDOUT;
	}
	if (!user_times_allow(&foreign->times, file->payer, now_ns)) {
		foreign->stats.put_off++;
		return -EAGAIN;
	}
	return 0;
}

static unsigned int limit_ms(const struct foreign *foreign, const struct foreign_file *file)
{
	const uint64_t now_ns = mono_ns();
	const bool is_suspect = late_table_suspects(&foreign->late, file->user, now_ns) ||
				late_table_suspects(&foreign->late_codes, file->user, now_ns);

	return is_suspect ? FOREIGN_SUSPECT_MS : FOREIGN_DEADLINE_MS;
}

/* The file is bad: the child was late, ended, or said what cannot be. */
static int blame(struct foreign *foreign, const struct foreign_file *file, uint64_t *counter)
{
	++*counter;
	late_table_add(late_of(foreign, file), (pid_t)file->number, file->user, mono_ns());
	return -ETIME;
}

static size_t request_bytes(const struct foreign_request *message)
{
	return sizeof(*message) + message->vaddr_count * sizeof(*message->vaddr);
}

/* Asks the child, and notes for whom it computed. */
static int ask_worker(struct foreign *foreign, const struct foreign_file *file,
		      const struct worker_request *request, struct worker_answer *ret_answer)
{
	struct worker_stats before, after;
	int err;

	worker_get_stats(foreign->worker, &before);
	err = worker_ask(foreign->worker, request, ret_answer);
	worker_get_stats(foreign->worker, &after);
	user_times_add(&foreign->times, file->payer, after.cpu_ns - before.cpu_ns, mono_ns());
	return err;
}

/* Has what the request needs handed over by the child that opens files, or adds a file of the
 * agent's own to it. */
static int bring_files(struct foreign *foreign, const struct foreign_file *file, bool has_file,
		       struct foreign_request *message, struct worker_request *request, int *ret_fd)
{
	struct foreign_source source = {.fd = -1, .opened = {.fd = -1, .number = file->number}};
	int err = has_file ? 0 : file->find(file->context, &source);

	message->files = message->handed = 0;
	if (err)
		return err;
	if (source.fd >= 0) {
		*ret_fd = source.fd;
		message->files = FOREIGN_FILE_BIT;
		request->fd_count = 1;
	} else if (!has_file || file->debug) {
		source.opened.user = file->user;
		return opener_hand(foreign->opener, &source.opened, file->debug, &message->handed,
				   &message->files);
	}
	return 0;
}

/* What is the agent's own holds nobody up, nor does what lies on a disk. */
static struct worker_blame blame_for(struct foreign *foreign, const struct foreign_file *file)
{
	const struct worker_blame nobody = {0}, blame = {.what = file->number,
							 .place = file->place,
							 .user = file->user};

	if (late_of(foreign, file) != &foreign->late ||
	    (worker_is_held_up(foreign->worker, &blame) &&
	     opener_is_local(foreign->opener, file->place)))
		return nobody;
	return blame;
}

/* Sends a request, with the file if the child is not known to have it.  Returns what the child
 * says, or as worker_ask(). */
static int send_once(struct foreign *foreign, const struct foreign_file *file,
		     struct foreign_request *message, bool has_file, uint32_t *ret_size)
{
	CLEANUP(worker_answer_release) struct worker_answer answer = {.fd = -1};
	int fd = -1;
	struct worker_request request = {.blame = blame_for(foreign, file),
					 .message = message,
					 .bytes = request_bytes(message),
					 .fd = &fd,
					 .limit_ms = limit_ms(foreign, file)};
	int err = bring_files(foreign, file, has_file, message, &request, &fd);

	if (err)
		return err;
	foreign->stats.count[message->kind]++;
	err = ask_worker(foreign, file, &request, &answer);
	if (err == -ETIME)
		return blame(foreign, file, &foreign->stats.late);
	if (err == -EPIPE)
		return blame(foreign, file, &foreign->stats.ended);
	foreign->stats.none += err == -ETIMEDOUT;
	if (err)
		return err;
	foreign->stats.count[FOREIGN_COST_FILES] +=
		(unsigned int)__builtin_popcount(message->files);
	foreign->stats.count[FOREIGN_COST_BYTES] += answer.reply.size;
	*ret_size = answer.reply.size;
	err = answer.reply.error;
	if (err == -ETIME || err == -ETIMEDOUT || err == -EAGAIN)
		return -EBADMSG; /* these are ours to say */
	return err == -ENOMEM ? -E2BIG : err;
}

int foreign_ask_once(struct foreign *foreign, const struct foreign_file *file,
		     struct foreign_request *message, bool is_alone, uint32_t *ret_size)
{
	int err = may_ask(foreign, file);

	if (err)
		return err;
	message->number = file->number;
	return send_once(foreign, file, message, is_alone, ret_size);
}

int foreign_ask(struct foreign *foreign, const struct foreign_file *file,
		struct foreign_request *message, uint32_t *ret_size)
{
	struct held *held;
	bool has_file;
	int err = may_ask(foreign, file);

	if (err)
		return err;
	forget_old_child(foreign);
	held = slot_of(foreign, file->number);
	has_file = held->number == file->number;
	message->number = file->number;
	message->slot = (uint32_t)(held - foreign->held);
	err = send_once(foreign, file, message, has_file, ret_size);
	if (err == -ESTALE && has_file) /* it is a new child */
		err = send_once(foreign, file, message, false, ret_size);
	forget_old_child(foreign);
	*held = (struct held){.number = err ? 0 : file->number, .used_at = ++foreign->asked};
	return err;
}

/* Copies from the shared memory.  Returns false when the child did not put so much there. */
static bool copy(const struct foreign *foreign, uint32_t size, size_t offset, void *to,
		 size_t bytes)
{
	if (offset > size || bytes > size - offset)
		return false;
	memcpy(to, worker_memory(foreign->worker) + offset, bytes);
	return true;
}

void *foreign_copy_reply(const struct foreign *foreign, uint32_t size, size_t head_bytes)
{
	void *reply = malloc(size + head_bytes);

	if (reply)
		memcpy(reply, worker_memory(foreign->worker), size);
	return reply;
}

int foreign_call_nonsense(struct foreign *foreign, const struct foreign_file *file)
{
	return blame(foreign, file, &foreign->stats.ended);
}

/* ---- the questions ---- */

/* Returns our copy of a reason, which has to stay: others keep the pointer. */
static const char *keep_reason(struct foreign *foreign, const char *reason)
{
	for (size_t i = 0; i < REASONS_MAX; i++) {
		if (!foreign->reason[i])
			foreign->reason[i] = strdup(reason);
		if (foreign->reason[i] && !strcmp(foreign->reason[i], reason))
			return foreign->reason[i];
	}
	return "it cannot be read";
}

static int reserve_rows(struct cfi_rows *rows, size_t count)
{
	struct cfi_row *grown;

	if (rows->count + count <= rows->capacity)
		return 0;
	grown = realloc(rows->row, (rows->count + count) * sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	rows->row = grown;
	rows->capacity = rows->count + count;
	return 0;
}

/* What a reply of `size` bytes has rows of, from byte `at` on. */
struct rows_reply {
	uint32_t size;
	size_t at;
	uint64_t low, high;
};

/* Appends the rows that a reply brought.  Returns 0; -EBADMSG; -ENOMEM. */
static int take_rows(const struct foreign *foreign, const struct rows_reply *reply,
		     struct cfi_rows *rows, uint64_t *ret_high)
{
	struct foreign_rows head;

	if (!copy(foreign, reply->size, reply->at, &head, sizeof(head)) ||
	    head.high > reply->high || !head.count || head.count > FOREIGN_MAX_ROWS)
		return -EBADMSG;
	if (reserve_rows(rows, head.count))
		return -ENOMEM;
	if (!copy(foreign, reply->size, reply->at + sizeof(head), rows->row + rows->count,
		  head.count * sizeof(*rows->row)) ||
	    !foreign_rows_are_sound(rows->row + rows->count, head.count, reply->low, head.high))
		return -EBADMSG;
	rows->count += head.count;
	*ret_high = head.high;
	return 0;
}

/* Keeps the rows that came with a file's facts until they are asked for. */
static int take_first_rows(struct foreign *foreign, uint32_t number, uint32_t size,
			   const struct foreign_facts *facts)
{
	struct rows_reply reply = {.size = size, .at = FOREIGN_FIRST_ROWS_AT};
	struct first_rows *first = &foreign->first;
	int err;

	first->number = 0;
	first->rows.count = 0;
	if (size <= FOREIGN_FIRST_ROWS_AT ||
	    !foreign_has_first_rows(facts, &reply.low, &reply.high))
		return 0;
	first->low = reply.low;
	err = take_rows(foreign, &reply, &first->rows, &first->high);
	if (!err)
		first->number = number;
	return err;
}

/* Hands over the rows that came with the facts of a file, once.  Returns whether there are some. */
static bool give_first_rows(struct foreign *foreign, uint32_t number, uint64_t low, uint64_t high,
			    struct cfi_rows *rows)
{
	struct first_rows *first = &foreign->first;

	if (first->number != number || first->low != low || first->high != high ||
	    reserve_rows(rows, first->rows.count))
		return false;
	memcpy(rows->row + rows->count, first->rows.row, first->rows.count * sizeof(*rows->row));
	rows->count += first->rows.count;
	first->number = 0;
	return true;
}

int foreign_examine(struct foreign *foreign, const struct foreign_file *file,
		    struct foreign_facts *ret_facts, struct python_info **ret_python,
		    const char **ret_reason)
{
	struct foreign_request message = {.kind = FOREIGN_EXAMINE};
	struct python_info *python = NULL;
	struct foreign_facts facts;
	uint32_t size;
	int err = foreign_ask(foreign, file, &message, &size);

	if (err)
		return err;
	if (!copy(foreign, size, 0, &facts, sizeof(facts)) || !foreign_facts_are_sound(&facts))
		return foreign_call_nonsense(foreign, file);
	err = take_first_rows(foreign, file->number, size, &facts);
	if (!err && !facts.python_error)
		err = python_told_check(&facts.python, &python);
	if (err)
		return err == -ENOMEM ? err : foreign_call_nonsense(foreign, file);
	*ret_python = python;
	*ret_reason = facts.python_error == -ENOTSUP ? keep_reason(foreign, facts.reason) : NULL;
	*ret_facts = facts;
	return 0;
}

int foreign_rows(struct foreign *foreign, const struct foreign_file *file, uint64_t low,
		 uint64_t high, struct cfi_rows *rows)
{
	struct foreign_request message = {.kind = FOREIGN_ROWS, .low = low, .high = high};
	struct rows_reply reply = {.high = high};
	int err = 0;

	if (give_first_rows(foreign, file->number, low, high, rows))
		return 0;
	while (!err && message.low < high) {
		reply.low = message.low;
		err = foreign_ask(foreign, file, &message, &reply.size);
		if (!err)
			err = take_rows(foreign, &reply, rows, &message.low);
		else if (err == -EBADMSG)
			return err;
	}
	return err == -EBADMSG ? foreign_call_nonsense(foreign, file) : err;
}

/* ---- probes ---- */

/* Makes a text fit to be shown. */
static void clean(char *text)
{
	for (; *text; text++)
		if (*text < ' ' || *text > '~')
			*text = '?';
}

/* Fills *ret_sites from a sound answer. */
static int take_sites(const struct foreign_probes *probes, struct probe_sites *ret_sites)
{
	const uint8_t *from = (const uint8_t *)probes;
	struct probe_sites sites = {.site_count = probes->site_count,
				    .wanted_count = probes->wanted_count,
				    .unread_args = probes->unread_args};

	sites.site = calloc(probes->site_count + 1U, sizeof(*sites.site));
	if (!sites.site)
		return -ENOMEM;
	memcpy(sites.refused, probes->refused, sizeof(sites.refused));
	memcpy(sites.found, from + sizeof(*probes), sites.wanted_count * sizeof(*sites.found));
	memcpy(sites.site, from + foreign_sites_at(sites.wanted_count),
	       sites.site_count * sizeof(*sites.site));
	for (uint32_t i = 0; i < sites.wanted_count; i++)
		for (size_t j = 0; j < PROBE_NEAREST_MAX; j++)
			clean(sites.found[i].nearest[j]);
	*ret_sites = sites;
	return 0;
}

static bool are_wanted_sound(const struct probe_wanted *wanted, size_t count)
{
	for (size_t i = 0; i < count && i < PROBE_WANTED_MAX; i++)
		if (!probe_wanted_is_sound(&wanted[i]))
			return false;
	return count && count <= PROBE_WANTED_MAX;
}

int foreign_probes(struct foreign *foreign, const struct foreign_file *file,
		   const struct probe_wanted *wanted, size_t count, struct probe_sites *ret_sites)
{
	OWNED_MEM struct foreign_request *message = calloc(1, FOREIGN_REQUEST_MAX_BYTES);
	OWNED_MEM struct foreign_probes *probes = NULL;
	uint32_t size;
	int err;

	if (!message)
		return -ENOMEM;
	if (!are_wanted_sound(wanted, count))
		return -EINVAL;
	message->kind = FOREIGN_PROBES;
	message->vaddr_count = (uint32_t)(count * FOREIGN_WANTED_WORDS);
	memcpy(message->vaddr, wanted, count * sizeof(*wanted));
	err = foreign_ask(foreign, file, message, &size);
	if (err)
		return err;
	probes = foreign_copy_reply(foreign, size, sizeof(*probes));
	if (!probes)
		return -ENOMEM;
	if (!foreign_probes_are_sound(probes, size, wanted, (uint32_t)count))
		return foreign_call_nonsense(foreign, file);
	return take_sites(probes, ret_sites);
}

/* ---- perf maps ---- */

int foreign_lines(struct foreign *foreign, const struct foreign_file *file, uint64_t low,
		  uint64_t high, struct foreign_lines **ret_lines)
{
	struct foreign_request message = {.kind = FOREIGN_LINES, .low = low, .high = high};
	OWNED_MEM struct foreign_lines *lines = NULL;
	uint32_t size;
	int err = foreign_ask_once(foreign, file, &message, false, &size);

	if (err)
		return err;
	lines = foreign_copy_reply(foreign, size, sizeof(*lines));
	if (!lines)
		return -ENOMEM;
	if (!foreign_lines_are_sound(lines, size, low, high))
		return foreign_call_nonsense(foreign, file);
	*ret_lines = TAKE(lines);
	return 0;
}

/* ---- code objects ---- */

/* Returns how many of the code objects go into a request; they have *ret_bytes. */
static size_t count_codes(const struct python_code_raw *const *raw, size_t count, size_t *ret_bytes)
{
	size_t bytes = 0, i = 0;

	while (i < count && (!i || bytes + raw[i]->size <= FOREIGN_CODES_BYTES))
		bytes += raw[i++]->size;
	*ret_bytes = bytes;
	return i;
}

/* Puts code objects where the child reads them. */
static int put_codes(struct foreign *foreign, const struct python_code_raw *const *raw,
		     size_t count, size_t bytes)
{
	OWNED_MEM uint8_t *all = malloc(bytes);
	size_t at = 0;

	if (!all)
		return -ENOMEM;
	if (foreign->codes_fd < 0)
		foreign->codes_fd = memfd_create("pyprofd-codes", MFD_CLOEXEC);
	if (foreign->codes_fd < 0)
		return -errno;
	for (size_t i = 0; i < count; at += raw[i++]->size)
		memcpy(all + at, raw[i], raw[i]->size);
	for (size_t done = 0; done < bytes;) {
		const ssize_t put =
			pwrite(foreign->codes_fd, all + done, bytes - done, (off_t)done);

		if (put <= 0)
			return put ? -errno : -EIO;
		done += (size_t)put;
	}
	return 0;
}

/* Takes our own copy of the texts of a code object, which begin at `at`. */
static int take_text(const struct foreign_code *code, const uint8_t *at,
		     struct python_code_text *ret_text)
{
	CLEANUP(python_code_text_release) struct python_code_text text = {0};
	const size_t rows_bytes = code->row_count * sizeof(*text.row);
	const char *name = (const char *)at + rows_bytes;

	text.row = malloc(rows_bytes);
	text.name = strndup(name, code->name_bytes);
	text.filename = strndup(name + code->name_bytes, code->filename_bytes);
	if (!text.row || !text.name || !text.filename)
		return -ENOMEM;
	memcpy(text.row, at, rows_bytes);
	text.row_count = code->row_count;
	*ret_text = text;
	text = (struct python_code_text){0};
	return 0;
}

static int tell_codes(const struct foreign_codes *codes, foreign_code_handler *decoded,
		      void *context)
{
	const uint8_t *at = codes->code;

	for (uint32_t i = 0; i < codes->count; i++) {
		struct python_code_text text;
		struct foreign_code code;
		int err;

		memcpy(&code, at, sizeof(code));
		err = take_text(&code, at + sizeof(code), &text);
		if (err)
			return err;
		decoded(context, i, &text);
		at += foreign_code_bytes(&code);
	}
	return (int)codes->count;
}

int foreign_codes(struct foreign *foreign, const struct foreign_file *file,
		  const struct python_code_raw *const *raw, size_t count,
		  foreign_code_handler *decoded, void *context)
{
	struct foreign_file codes_file = *file;
	struct foreign_request message = {.kind = FOREIGN_CODES};
	OWNED_MEM struct foreign_codes *codes = NULL;
	uint32_t size;
	size_t bytes;
	int err;

	count = count_codes(raw, count, &bytes);
	err = put_codes(foreign, raw, count, bytes);
	if (err)
		return err;
	codes_file.find = find_codes;
	codes_file.context = foreign;
	message.high = bytes;
	err = foreign_ask_once(foreign, &codes_file, &message, false, &size);
	if (err == -EBADMSG) /* they are sound: it is no longer our child */
		return foreign_call_nonsense(foreign, &codes_file);
	if (err)
		return err;
	codes = foreign_copy_reply(foreign, size, sizeof(*codes));
	if (!codes)
		return -ENOMEM;
	if (!foreign_codes_are_sound(codes, size, raw, count))
		return foreign_call_nonsense(foreign, &codes_file);
	return tell_codes(codes, decoded, context);
}

/* ---- closing ---- */

static void close_held(struct foreign *foreign, struct held *held)
{
	struct foreign_request message = {.kind = FOREIGN_CLOSE,
					  .slot = (uint32_t)(held - foreign->held),
					  .number = held->number};
	const struct worker_request request = {
		.message = &message, .bytes = sizeof(message), .limit_ms = FOREIGN_DEADLINE_MS};
	struct worker_answer answer = {.fd = -1};

	*held = (struct held){.number = 0};
	foreign->stats.count[FOREIGN_CLOSE]++;
	if (!worker_ask(foreign->worker, &request, &answer))
		worker_answer_release(&answer);
}

void foreign_done(struct foreign *foreign, uint32_t number)
{
	struct held *held = slot_of(foreign, number);

	if (held->number == number)
		held->used_at = 0;
}

void foreign_close(struct foreign *foreign, uint32_t number)
{
	struct held *held = slot_of(foreign, number);

	forget_old_child(foreign);
	if (held->number == number)
		close_held(foreign, held);
}

void foreign_close_all(struct foreign *foreign)
{
	forget_old_child(foreign);
	for (size_t i = 0; i < FOREIGN_SLOTS; i++)
		if (foreign->held[i].number)
			close_held(foreign, &foreign->held[i]);
}

void foreign_get_stats(const struct foreign *foreign, struct foreign_stats *ret_stats)
{
	struct worker_stats worker;

	if (!foreign)
		return;
	worker_get_stats(foreign->worker, &worker);
	*ret_stats = foreign->stats;
	ret_stats->starts = worker.starts;
	ret_stats->stuck = worker.stuck;
	opener_get_stats(foreign->opener, &ret_stats->opener);
	ret_stats->count[FOREIGN_COST_CPU_NS] = worker.cpu_ns;
}
