/* SPDX-License-Identifier: BSD-2-Clause */
/* sources: files/client.c files/client_names.c files/user_time.c files/check.c child/late.c python/python_debug_offsets.c python/python_info.c python/python_offsets.c python/python_accessor.c python/python_tls.c elf/elf_image.c elf/elf_symbol_table.c unwind/cfi.c unwind/cfi_program.c unwind/cfi_go.c unwind/cfi_rule.c python/python_text.c python/python_code.c python/python_objects.c base/io.c elf/x86_decode.c elf/go_table.c elf/debug_file.c base/safe_file.c */
/* What the agent does with what a child says that is no longer ours: the input is its reply and the
 * shared memory.  What is taken from it must keep the bounds that the kernel side relies on. */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "child/worker.h"
#include "files/check.h"
#include "files/client.h"

#define LOW 0x1000U
#define HIGH 0x2000U
#define SHARED_BYTES FOREIGN_MEMORY_BYTES

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A child that says what the input says. */
struct worker {
	struct child_reply reply;
	int result;
	uint8_t *memory;
};
static struct worker child;

int worker_new(const struct worker_kind *kind, const char *program, int peer,
	       struct worker **ret_worker)
{
	(void)kind, (void)program, (void)peer;
	*ret_worker = &child;
	return 0;
}

bool worker_await(struct worker *worker)
{
	return worker != NULL;
}

void worker_free(struct worker *worker)
{
	(void)worker;
}

void worker_answer_release(struct worker_answer *answer)
{
	(void)answer;
}

int worker_ask(struct worker *worker, const struct worker_request *request,
	       struct worker_answer *ret_answer)
{
	const struct foreign_request *message = request->message;

	assert(foreign_request_is_sound(message, request->bytes));
	*ret_answer = (struct worker_answer){.reply = worker->reply, .fd = -1};
	/* One answer is for one request; what follows is refused. */
	if ((message->kind == FOREIGN_NAMES || message->kind == FOREIGN_KERNELS) &&
	    message->vaddr_count != 4)
		return -ETIMEDOUT;
	if (message->kind == FOREIGN_ROWS && message->low != LOW)
		return -ETIMEDOUT;
	return worker->result;
}

const uint8_t *worker_memory(const struct worker *worker)
{
	return worker->memory;
}

void worker_get_stats(struct worker *worker, struct worker_stats *ret_stats)
{
	(void)worker;
	*ret_stats = (struct worker_stats){0};
}

uint64_t worker_child(const struct worker *worker)
{
	(void)worker;
	return 2;
}

/* No file is opened. */
int opener_new(const char *program, struct opener **ret_opener)
{
	(void)program;
	*ret_opener = NULL;
	return 0;
}

bool opener_await(struct opener *opener)
{
	return !opener;
}

void opener_free(struct opener *opener)
{
	(void)opener;
}

int opener_peer(const struct opener *opener)
{
	(void)opener;
	return -1;
}

void opener_get_stats(const struct opener *opener, struct opener_stats *ret_stats)
{
	(void)opener;
	*ret_stats = (struct opener_stats){0};
}

bool opener_is_local(struct opener *opener, uint64_t place)
{
	(void)opener;
	return !place;
}

bool worker_is_held_up(struct worker *worker, const struct worker_blame *blame)
{
	(void)worker, (void)blame;
	return false;
}

int opener_hand(struct opener *opener, const struct opener_file *file,
		const struct opener_debug *debug, uint32_t *ret_number, uint32_t *ret_files)
{
	(void)opener, (void)file, (void)debug;
	*ret_number = 1;
	*ret_files = FOREIGN_FILE_BIT;
	return 0;
}

static int find_nothing(void *context, struct foreign_source *ret_source)
{
	(void)context;
	ret_source->fd = 0;
	return 0;
}

static void check_python(const struct python_info *info)
{
	const struct pp_python *bpf = &info->bpf;

	assert(bpf->chain > PP_CHAIN_NONE && bpf->chain <= PP_CHAIN_SHIM);
	assert(bpf->ts_frame <= PP_TSTATE_READ_BYTES - 8);
	assert(bpf->ts_interp <= PP_TSTATE_READ_BYTES - 8);
	assert(bpf->ts_thread_id <= PP_TSTATE_READ_BYTES - 8);
	assert(bpf->frame_code <= PP_FRAME_READ_BYTES - 8);
	assert(bpf->frame_previous <= PP_FRAME_READ_BYTES - 8);
	assert(bpf->frame_instr <= PP_FRAME_READ_BYTES - 8);
	assert(bpf->code_line_table <= PP_CODE_READ_BYTES - 8);
	assert(bpf->code_first_line <= bpf->code_line_table);
	assert(bpf->code_flags <= bpf->code_line_table);
	assert(bpf->code_filename <= bpf->code_line_table);
	assert(bpf->code_name <= bpf->code_line_table);
	assert(bpf->eval_range_count <= PP_MAX_EVAL_RANGES);
	assert(bpf->code_type && (bpf->runtime || info->symbols.thread_state_current));
	for (unsigned int i = 0; i < bpf->eval_range_count; i++)
		assert(bpf->eval[i].low < bpf->eval[i].high);
	assert(bpf->gil_wait_low + bpf->gil_wait_bytes >= bpf->gil_wait_low);
	if (bpf->gil_mode == PP_GIL_TSTATE_BIT || bpf->gil_mode == PP_GIL_TSTATE_INT)
		assert(bpf->gil_offset <= PP_TSTATE_READ_BYTES - 8);
	for (int i = 0; i < 2; i++)
		assert(info->tls.source[i].mode <= PP_TLS_GLOBAL);
}

static void check_facts(struct foreign *foreign, const struct foreign_file *file)
{
	struct python_info *python = NULL;
	const char *reason = NULL;
	struct foreign_facts facts;

	if (foreign_examine(foreign, file, &facts, &python, &reason))
		return;
	assert(facts.segment_count <= FOREIGN_MAX_SEGMENTS);
	assert(facts.debug.build_id_bytes <= sizeof(facts.debug.build_id));
	assert(!strchr(facts.debug.link, '/') && strlen(facts.debug.link) <= NAME_MAX);
	assert(!python == !!facts.python_error);
	if (python)
		check_python(python);
	if (reason)
		assert(strlen(reason) < FOREIGN_REASON_BYTES);
	python_info_free(python);
}

static void check_rows(struct foreign *foreign, const struct foreign_file *file)
{
	struct cfi_rows rows = {0};
	uint64_t last = 0;

	(void)foreign_rows(foreign, file, LOW, HIGH, &rows);
	for (size_t i = 0; i < rows.count; i++) {
		assert(rows.row[i].vaddr >= LOW && rows.row[i].vaddr < HIGH);
		assert(rows.row[i].vaddr > last);
		assert(rows.row[i].rule.kind <= PP_RULE_SIGNAL);
		last = rows.row[i].vaddr;
	}
	free(rows.row);
}

static void on_function(void *context, const struct foreign_function *function)
{
	uint32_t *count = context;

	assert(!function->name || strlen(function->name) <= FOREIGN_NAME_MAX_BYTES);
	assert(strlen(function->system_name) <= FOREIGN_NAME_MAX_BYTES);
	assert(function->low <= LOW + 2 && function->high > LOW);
	++*count;
}

static void check_names(struct foreign *foreign, const struct foreign_file *file)
{
	static const uint64_t vaddr[] = {LOW, LOW, LOW + 1, LOW + 2};
	uint32_t count = 0;

	(void)foreign_names(foreign, file, vaddr, ARRAY_SIZE(vaddr), on_function, &count);
	assert(count <= ARRAY_SIZE(vaddr));
	count = 0;
	(void)foreign_kernels(foreign, file, vaddr, ARRAY_SIZE(vaddr), true, on_function, &count);
	assert(count <= ARRAY_SIZE(vaddr));
}

static void on_text(void *context, const struct foreign_function *function)
{
	uint32_t *count = context;

	assert(!function->name || strlen(function->name) <= FOREIGN_NAME_MAX_BYTES);
	++*count;
}

static void check_texts(struct foreign *foreign)
{
	static const char *const text[] = {"_Z4axpyfPf", "gemm", "_Z1a"};
	const struct foreign_file whose = {.number = 2};
	uint32_t count = 0;
	int answered = foreign_texts(foreign, &whose, text, 3, on_text, &count);

	assert(answered < 0 ? answered != -EINVAL : answered == 3 && count == 3);
}

static void check_lines(struct foreign *foreign, const struct foreign_file *file)
{
	OWNED_MEM struct foreign_lines *lines = NULL;
	const uint8_t *at;

	if (foreign_lines(foreign, file, LOW, HIGH, &lines))
		return;
	assert(lines->next >= LOW && lines->next <= HIGH);
	at = lines->line;
	for (uint32_t i = 0; i < lines->count; i++) {
		struct foreign_line line;

		memcpy(&line, at, sizeof(line));
		assert(line.code_bytes && line.start + line.code_bytes >= line.start);
		assert(line.name_bytes && line.name_bytes <= FOREIGN_LINE_NAME_BYTES);
		at += sizeof(line) + line.name_bytes;
	}
	assert(at == lines->line + lines->bytes);
}

static void on_code(void *context, size_t index, struct python_code_text *text)
{
	const struct python_code_raw *const *raw = context;

	assert(strlen(text->name) <= 3U * raw[index]->name_bytes);
	assert(strlen(text->filename) <= 3U * raw[index]->filename_bytes);
	assert(text->row_count && text->row_count <= python_code_rows_max(raw[index]));
	assert(!text->row[0].start);
	for (uint32_t i = 0; i < text->row_count; i++) {
		assert(text->row[i].line <= INT32_MAX);
		assert(!i || text->row[i].start > text->row[i - 1].start);
	}
	python_code_text_release(text);
}

/* Two code objects were asked about, with names of 4 and 0 bytes and tables of 8. */
static void check_codes(struct foreign *foreign, const struct foreign_file *file)
{
	static const struct python_code_raw head[] = {
		{.size = sizeof(head[0]) + 16,
		 .line_table_bytes = 8,
		 .name_bytes = 4,
		 .filename_bytes = 4,
		 .name_kind = 1,
		 .filename_kind = 1},
		{.size = sizeof(head[0]) + 8, .line_table_bytes = 8},
	};
	OWNED_MEM uint8_t *first = calloc(1, head[0].size), *second = calloc(1, head[1].size);
	const struct python_code_raw *raw[] = {(const void *)first, (const void *)second};

	assert(first && second);
	memcpy(first, &head[0], sizeof(head[0]));
	memcpy(second, &head[1], sizeof(head[1]));
	assert(foreign_codes(foreign, file, raw, 2, on_code, raw) <= 2);
}

/* A static probe and a function were asked about. */
static void check_probes(struct foreign *foreign, const struct foreign_file *file)
{
	static const struct probe_wanted wanted[] = {
		{.kind = PROBE_WANTED_USDT, .provider = "p", .name = "n"},
		{.kind = PROBE_WANTED_ANY_OF, .name = "f g"}};
	CLEANUP(probe_sites_release) struct probe_sites sites = {0};

	if (foreign_probes(foreign, file, wanted, ARRAY_SIZE(wanted), &sites))
		return;
	assert(sites.site_count <= PROBE_SITES_PER_FILE && sites.wanted_count == 2);
	for (uint32_t i = 0; i < sites.site_count; i++) {
		const struct probe_site *site = &sites.site[i];

		assert(site->wanted < 2 && site->arg_count <= PP_PROBE_ARGS);
		assert(!(site->semaphore_offset & 1) && site->cost < PROBE_COSTS);
		for (size_t j = 0; j < PP_PROBE_ARGS; j++)
			assert(site->arg[j].kind == PP_ARG_NONE ||
			       (site->arg[j].base < 32 && site->arg[j].scale <= 3));
	}
	for (size_t i = 0; i < 2 * PROBE_NEAREST_MAX; i++) {
		const struct probe_found *found = &sites.found[i / PROBE_NEAREST_MAX];
		const char *name = found->nearest[i % PROBE_NEAREST_MAX];

		assert(strlen(name) < PROBE_NEAREST_BYTES);
		for (; *name; name++)
			assert(*name >= ' ' && *name <= '~');
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct foreign_file file = {.number = 1, .find = find_nothing};
	OWNED(foreign) struct foreign *foreign = NULL;

	if (size < sizeof(child.reply) + 1 || size > SHARED_BYTES)
		return 0;
	if (!child.memory)
		child.memory = malloc(SHARED_BYTES);
	assert(child.memory && !foreign_new("", &foreign));
	memcpy(&child.reply, data + 1, sizeof(child.reply));
	memset(child.memory, 0, SHARED_BYTES);
	size -= sizeof(child.reply) + 1;
	memcpy(child.memory, data + sizeof(child.reply) + 1, size);
	child.result = child_reply_is_sound(&child.reply, sizeof(child.reply), child.reply.serial,
					    FOREIGN_MEMORY_BYTES)
			       ? 0
			       : -EPIPE;
	switch (data[0] % 7) {
	case 0:
		check_facts(foreign, &file);
		break;
	case 1:
		check_rows(foreign, &file);
		break;
	case 2:
		check_names(foreign, &file);
		break;
	case 3:
		check_lines(foreign, &file);
		break;
	case 5:
		check_probes(foreign, &file);
		break;
	case 6:
		check_texts(foreign);
		break;
	default:
		check_codes(foreign, &file);
	}
	return 0;
}
