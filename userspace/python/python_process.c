/* SPDX-License-Identifier: BSD-2-Clause */
#include "python/python_process.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "base/array.h"
#include "base/bytes.h"
#include "base/io.h"

#define MAX_THREADS 4096U
#define MAX_INTERPRETERS 64U
/* Of one process: each interpreter that a thread was in has a state for it.  Forged lists end
 * nowhere, and a read takes 10 to 25 us. */
#define STATES_OF_PROCESS 64U
#define STATES_OF_THREAD 4U
#define SELF_TEST_FRAMES 64U
#define SELF_TEST_THREADS 16U
#define SELF_TEST_ATTEMPTS 8U
#define MAX_LINE 10000000U
#define MAX_NAME_CHARACTERS 65536U
#define MAX_LINE_TABLE_BYTES (1U << 26)

/* A TLS offset that the loader wrote: static TLS is within a few MiB below the thread pointer. */
#define MAX_STATIC_TLS_BYTES (1 << 26)
#define MAX_TLS_MODULES 4096U

static int read_u64(pid_t pid, uint64_t address, uint64_t *ret_value)
{
	return process_read(pid, address, ret_value, sizeof(*ret_value));
}

static uint64_t field(const uint8_t *bytes, uint16_t offset)
{
	return load_u64(bytes + offset);
}

/* ---- TLS ---- */

static struct pp_tls resolve_tls(const struct pp_tls *plan, uint64_t bias, bool is_musl)
{
	struct pp_tls tls = *plan;

	switch (tls.mode) {
	case PP_TLS_THREAD_OFFSET:
		/* Only the loader knows the offset: see python_process_tls_read(). */
		if (tls.address)
			return (struct pp_tls){0};
		return tls;
	case PP_TLS_DTV:
		tls.mode = is_musl ? PP_TLS_DTV_MUSL : PP_TLS_DTV;
		break;
	case PP_TLS_PTHREAD_KEY:
		tls.mode = is_musl ? PP_TLS_PTHREAD_KEY_MUSL : PP_TLS_PTHREAD_KEY;
		break;
	case PP_TLS_GLOBAL:
		break;
	default:
		return (struct pp_tls){0};
	}
	tls.address += bias;
	return tls;
}

void python_process_tls(const struct python_info *info, uint64_t bias, bool is_musl,
			struct pp_tls ret_tls[2])
{
	for (int i = 0; i < 2; i++)
		ret_tls[i] = resolve_tls(&info->tls.source[i], bias, is_musl);
}

/* Reads what the loader wrote to the slot of an initial-exec variable or a TLS descriptor: an
 * offset, or (descriptors of dynamic TLS) a pointer to {module id, offset in its block}; glibc and
 * musl alike. */
static int resolve_slot(const struct pp_tls *plan, pid_t pid, uint64_t bias, bool is_musl,
			struct pp_tls *ret_tls)
{
	uint64_t raw, pair[2];
	int64_t offset;
	int err;

	err = read_u64(pid, plan->address + bias, &raw);
	if (err)
		return err;
	if (!raw)
		return -EAGAIN;
	offset = (int64_t)raw;
	if (offset >= -MAX_STATIC_TLS_BYTES && offset <= MAX_STATIC_TLS_BYTES) {
		*ret_tls = (struct pp_tls){.mode = PP_TLS_THREAD_OFFSET,
					   .offset = plan->offset + (int32_t)offset};
		return 0;
	}
	if (process_read(pid, raw, pair, sizeof(pair)) || !pair[0] || pair[0] > MAX_TLS_MODULES ||
	    pair[1] > MAX_STATIC_TLS_BYTES)
		return 0;
	*ret_tls = (struct pp_tls){.mode = is_musl ? PP_TLS_DTV_MUSL : PP_TLS_DTV,
				   .offset = plan->offset + (int32_t)pair[1],
				   .address = raw};
	return 0;
}

int python_process_tls_read(const struct python_info *info, pid_t pid, uint64_t bias, bool is_musl,
			    struct pp_tls ret_tls[2])
{
	struct pp_tls tls[2];
	int err;

	python_process_tls(info, bias, is_musl, tls);
	for (int i = 0; i < 2; i++) {
		const struct pp_tls *plan = &info->tls.source[i];

		if (plan->mode != PP_TLS_THREAD_OFFSET || !plan->address)
			continue;
		err = resolve_slot(plan, pid, bias, is_musl, &tls[i]);
		if (err)
			return err;
	}
	memcpy(ret_tls, tls, sizeof(tls));
	return 0;
}

/* ---- threads ---- */

struct thread_list {
	struct python_thread *thread; /* owned */
	size_t count, capacity, max;
	bool has_stranger; /* a state that does not point back to its interpreter */
};

static void thread_list_release(struct thread_list *list)
{
	free(list->thread);
}

static int thread_list_add(struct thread_list *list, const struct python_thread *thread)
{
	if (ARRAY_RESERVE(list->thread, list->count, list->capacity))
		return -ENOMEM;
	list->thread[list->count++] = *thread;
	return 0;
}

/* Lists the threads of one interpreter.  When a state's `interp` is another interpreter, it was
 * freed just now, or the layout is wrong: the list ends there. */
static int walk_threads(const struct python_info *info, pid_t pid, uint64_t interp,
			struct thread_list *list)
{
	const struct pp_python *bpf = &info->bpf;
	uint8_t head[PP_TSTATE_READ_BYTES];
	struct python_thread thread = {0};
	uint64_t state;
	int err;

	err = read_u64(pid, interp + info->interp_threads_head, &state);
	while (!err && state && list->count < list->max) {
		err = process_read(pid, state, head, sizeof(head));
		if (err)
			return err;
		if (field(head, bpf->ts_interp) != interp) {
			list->has_stranger = true;
			return 0;
		}
		thread.thread_state = state;
		thread.thread_id = field(head, bpf->ts_thread_id);
		if (bpf->ts_native_id != PP_NO_OFFSET)
			thread.native_id = field(head, bpf->ts_native_id);
		err = thread_list_add(list, &thread);
		state = field(head, info->ts_next);
	}
	return err;
}

static uint64_t interpreters_head(const struct python_info *info, uint64_t bias)
{
	if (info->symbols.runtime)
		return info->symbols.runtime + bias + info->runtime_interpreters_head;
	return info->symbols.interp_head ? info->symbols.interp_head + bias : 0;
}

static int list_threads(const struct python_info *info, pid_t pid, uint64_t bias,
			struct thread_list *list)
{
	const uint64_t head = interpreters_head(info, bias);
	uint64_t interp;
	int err;

	if (!head)
		return -ENOTSUP;
	list->max = STATES_OF_PROCESS + (size_t)STATES_OF_THREAD * process_count_threads(pid);
	if (list->max > MAX_THREADS)
		list->max = MAX_THREADS;
	err = read_u64(pid, head, &interp);
	for (unsigned int i = 0; !err && interp && i < MAX_INTERPRETERS; i++) {
		err = walk_threads(info, pid, interp, list);
		if (!err)
			err = read_u64(pid, interp + info->interp_next, &interp);
	}
	if (err)
		return err;
	return list->count ? 0 : -EAGAIN;
}

int python_process_threads(const struct python_info *info, pid_t pid, uint64_t bias,
			   struct python_thread **ret_threads, size_t *ret_count)
{
	CLEANUP(thread_list_release) struct thread_list list = {0};
	int err = list_threads(info, pid, bias, &list);

	if (err)
		return err;
	*ret_threads = TAKE(list.thread);
	*ret_count = list.count;
	return 0;
}

/* ---- self-test ---- */

struct self_test {
	const struct pp_python *bpf;
	pid_t pid;
	uint64_t bias;
	unsigned int good;  /* frames that point to a real code object */
	const char *reason; /* static string; NULL: nothing wrong so far */
};

static bool is_plausible_string(struct self_test *test, uint64_t object)
{
	const struct pp_python *bpf = test->bpf;
	uint64_t length;
	uint32_t state, kind;

	if (read_u64(test->pid, object + bpf->str_length, &length))
		return false;
	if (bpf->flags & PP_PYTHON_BYTES_NAMES)
		return length <= MAX_NAME_CHARACTERS;
	if (process_read(test->pid, object + bpf->str_state, &state, sizeof(state)))
		return false;
	kind = state >> bpf->str_kind_shift & 7;
	return length <= MAX_NAME_CHARACTERS && (kind == 1 || kind == 2 || kind == 4);
}

static const char *check_code(struct self_test *test, uint64_t code)
{
	const struct pp_python *bpf = test->bpf;
	uint8_t head[PP_CODE_READ_BYTES] = {0};
	uint64_t table_bytes;
	uint16_t name = bpf->code_qualname;

	/* The same bytes that the kernel side reads. */
	if (bpf->code_line_table + 8U > sizeof(head) ||
	    process_read(test->pid, code, head, bpf->code_line_table + 8U))
		return "a frame's code object cannot be read";
	if (field(head, bpf->ob_type) != bpf->code_type + test->bias)
		return "a frame's code object has another type than PyCode_Type";
	if ((uint32_t)field(head, bpf->code_first_line) > MAX_LINE)
		return "a code object's first line is absurd";
	if (name == PP_NO_OFFSET)
		name = bpf->code_name;
	if (!is_plausible_string(test, field(head, name)))
		return "a code object's name is not a string";
	if (!is_plausible_string(test, field(head, bpf->code_filename)))
		return "a code object's file name is not a string";
	if (read_u64(test->pid, field(head, bpf->code_line_table) + bpf->bytes_size,
		     &table_bytes) ||
	    table_bytes > MAX_LINE_TABLE_BYTES)
		return "a code object's line table is not a bytes object";
	return NULL;
}

/* As walk_python_begin() of the kernel side. */
static int first_frame(const struct self_test *test, uint64_t state, uint64_t *ret_frame)
{
	const struct pp_python *bpf = test->bpf;
	uint8_t head[PP_TSTATE_READ_BYTES];
	uint64_t frame;
	int err;

	err = process_read(test->pid, state, head, sizeof(head));
	if (err)
		return err;
	frame = field(head, bpf->ts_frame);
	if (frame && (bpf->chain == PP_CHAIN_CFRAME_ENTRY || bpf->chain == PP_CHAIN_CFRAME_SHIM)) {
		err = read_u64(test->pid, frame + bpf->cframe_current, &frame);
		if (err)
			return err;
	}
	*ret_frame = frame;
	return 0;
}

static bool is_shim(const struct pp_python *bpf, const uint8_t *head)
{
	return bpf->chain >= PP_CHAIN_CFRAME_SHIM && head[bpf->frame_owner] >= bpf->shim_owner;
}

static void test_thread(struct self_test *test, uint64_t state)
{
	const struct pp_python *bpf = test->bpf;
	const size_t size =
		bpf->chain <= PP_CHAIN_FRAME_CFRAME ? PP_FRAME_READ_BYTES : PYTHON_FRAME_BYTES;
	uint8_t head[PP_FRAME_READ_BYTES] = {0};
	uint64_t frame;

	if (first_frame(test, state, &frame)) {
		test->reason = "a thread state cannot be read";
		return;
	}
	for (unsigned int i = 0; frame && i < SELF_TEST_FRAMES && !test->reason; i++) {
		if (process_read(test->pid, frame, head, size)) {
			test->reason = "a frame cannot be read";
			return;
		}
		if (!is_shim(bpf, head)) {
			test->reason = check_code(test, field(head, bpf->frame_code) & ~7ULL);
			test->good += !test->reason;
		}
		frame = field(head, bpf->frame_previous);
	}
}

/* Lists the threads or, where there is no list, the current thread alone. */
static int any_threads(const struct python_info *info, pid_t pid, uint64_t bias,
		       struct thread_list *list)
{
	struct python_thread thread = {0};
	int err = list_threads(info, pid, bias, list);

	if (err != -ENOTSUP)
		return err;
	err = read_u64(pid, info->symbols.thread_state_current + bias, &thread.thread_state);
	if (err)
		return err;
	return thread.thread_state ? thread_list_add(list, &thread) : -EAGAIN;
}

int python_process_self_test(const struct python_info *info, pid_t pid, uint64_t bias,
			     const char **ret_reason)
{
	const char *reason = NULL;

	/* The target keeps running: a frame that is popped while it is read looks wrong.  A wrong
	 * layout always looks wrong, so one thread that is right from leaf to root decides. */
	for (unsigned int i = 0; i < SELF_TEST_ATTEMPTS; i++) {
		CLEANUP(thread_list_release) struct thread_list list = {0};
		int err = any_threads(info, pid, bias, &list);

		if (list.has_stranger)
			reason = "a thread state does not belong to its interpreter";
		else if (err)
			return err;
		for (size_t t = 0; t < list.count && t < SELF_TEST_THREADS; t++) {
			struct self_test test = {.bpf = &info->bpf, .pid = pid, .bias = bias};

			test_thread(&test, list.thread[t].thread_state);
			if (test.good && !test.reason)
				return 0;
			if (test.reason)
				reason = test.reason;
		}
	}
	if (!reason)
		return -EAGAIN;
	*ret_reason = reason;
	return -EBADMSG;
}

int python_process_inner_tid(pid_t pid, bool is_musl, uint64_t thread_id, uint64_t native_id,
			     uint32_t *ret_tid)
{
	const uint64_t offset = is_musl ? PP_MUSL_TID_OFFSET : PP_GLIBC_TID_OFFSET;

	if (!native_id)
		return process_read(pid, thread_id + offset, ret_tid, sizeof(*ret_tid));
	*ret_tid = (uint32_t)native_id;
	return 0;
}
