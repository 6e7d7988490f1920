/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* bpf/lib/thread_state.bpf.h: from a thread to its PyThreadState. */
#include "host.h"
#include "python.h"

static bool finds_state(void)
{
	host->walk.py_stop = 0;
	host->walk.thread_state = 0;
	return !walk_python_begin(0) && host->walk.thread_state == state_address;
}

static void thread_state__by_thread_offset(void **state)
{
	(void)state;
	python_begin(PP_CHAIN_SHIM, 13);
	host->walk.thread_pointer = HEAP + 0x8000;
	put_word(state_address + TS_THREAD_ID, HEAP + 0x8000);
	put_word(HEAP + 0x8000 - 0x40, state_address);
	host->walk.image.tls[0] = (struct pp_tls){.mode = PP_TLS_THREAD_OFFSET, .offset = -0x40};
	assert_true(finds_state());
}

static void thread_state__by_glibc_key_in_both_places(void **state)
{
	uint64_t key = HEAP + 0x9004, block = HEAP + 0xa000;

	(void)state;
	python_begin(PP_CHAIN_SHIM, 13);
	host->walk.thread_pointer = HEAP + 0x8000;
	put_word(state_address + TS_THREAD_ID, HEAP + 0x8000);
	host->walk.image.tls[0] = (struct pp_tls){.mode = PP_TLS_PTHREAD_KEY, .address = key};
	put_u32(key - 4, 1);
	put_u32(key, 3);
	put_word(HEAP + 0x8000 + 0x310 + 16 * 3 + 8, state_address);
	assert_true(finds_state());
	put_u32(key, 32 + 5);
	assert_false(finds_state()); /* no second block yet */
	put_word(HEAP + 0x8000 + 0x510 + 8, block);
	put_word(block + 16 * 5 + 8, state_address);
	assert_true(finds_state());
	put_u32(key, 4000); /* more than glibc has */
	assert_false(finds_state());
}

static void thread_state__by_musl_key(void **state)
{
	uint64_t key = HEAP + 0x9004, values = HEAP + 0xa000;

	(void)state;
	python_begin(PP_CHAIN_SHIM, 13);
	host->walk.thread_pointer = HEAP + 0x8000;
	put_word(state_address + TS_THREAD_ID, HEAP + 0x8000);
	host->walk.image.tls[0] = (struct pp_tls){.mode = PP_TLS_PTHREAD_KEY_MUSL, .address = key};
	put_u32(key, 6);
	put_word(HEAP + 0x8000 + 0x80, values);
	put_word(values + 8 * 6, state_address);
	assert_true(finds_state());
}

static void thread_state__by_dtv_of_both_libcs(void **state)
{
	uint64_t module = HEAP + 0x9000, dtv = HEAP + 0xa000, block = HEAP + 0xb000;

	(void)state;
	python_begin(PP_CHAIN_SHIM, 13);
	host->walk.thread_pointer = HEAP + 0x8000;
	put_word(state_address + TS_THREAD_ID, HEAP + 0x8000);
	put_word(module, 5);
	put_word(HEAP + 0x8000 + 8, dtv);
	put_word(block + 0x28, state_address);
	put_word(dtv + 16 * 5, block);
	host->walk.image.tls[0] =
		(struct pp_tls){.mode = PP_TLS_DTV, .offset = 0x28, .address = module};
	assert_true(finds_state());
	put_word(dtv + 16 * 5, ~0ULL); /* not allocated yet */
	assert_false(finds_state());
	put_word(dtv + 8 * 5, block);
	host->walk.image.tls[0].mode = PP_TLS_DTV_MUSL;
	assert_true(finds_state());
}

static void thread_state__second_slot_serves_a_detached_thread(void **state)
{
	(void)state;
	python_begin(PP_CHAIN_SHIM, 13);
	put_word(host->walk.image.tls[0].address, 0);
	host->walk.image.tls[1] =
		(struct pp_tls){.mode = PP_TLS_GLOBAL, .address = heap_take(16)};
	put_word(host->walk.image.tls[1].address, state_address);
	assert_true(finds_state());
}

static void thread_state__global_one_of_another_thread_is_refused(void **state)
{
	(void)state;
	python_begin(PP_CHAIN_FRAME_OBJECT, 6);
	put_word(state_address + TS_THREAD_ID, THREAD_POINTER + 0x1000);
	assert_false(finds_state());
	assert_int_equal(host->walk.py_stop, PP_PY_STOP_NO_THREAD_STATE);
}

static void thread_state__is_asked_for_once_and_used_when_answered(void **state)
{
	const struct pp_thread_key key = {.id = {.tgid = 70, .generation = 3}, .tid = 71};
	const struct pp_event *event;

	(void)state;
	python_begin(PP_CHAIN_FRAME_OBJECT, 6);
	put_word(host->walk.image.tls[0].address, 0);
	assert_false(finds_state());
	assert_int_equal(host->record_count, 1);
	event = host->record[0].data;
	assert_ptr_equal(host->record[0].ring, &events);
	assert_int_equal(event->type, PP_EVENT_THREAD_STATE);
	assert_int_equal(event->tid, 71);
	assert_int_equal(event->id.tgid, 70);
	assert_false(finds_state());
	assert_int_equal(host->record_count, 1);
	bpf_map_update_elem(&thread_states, &key, &state_address, BPF_EXIST);
	assert_true(finds_state());
	/* The agent's answer is checked like any other. */
	put_word(state_address + TS_THREAD_ID, 0x1234);
	assert_false(finds_state());
}

/* In an NMI that may have hit an update of the map. */
static void thread_state__is_looked_up_and_no_more_where_a_lock_may_be_held(void **state)
{
	const struct pp_thread_key key = {.id = {.tgid = 70, .generation = 3}, .tid = 71};

	(void)state;
	python_begin(PP_CHAIN_FRAME_OBJECT, 6);
	put_word(host->walk.image.tls[0].address, 0);
	host->walk.may_hold_lock = 1;
	assert_false(finds_state());
	assert_int_equal(host->record_count, 0);
	assert_null(bpf_map_lookup_elem(&thread_states, &key));
	bpf_map_update_elem(&thread_states, &key, &state_address, BPF_ANY);
	assert_true(finds_state());
	put_word(state_address + TS_THREAD_ID, 0x1234);
	assert_false(finds_state());
	assert_non_null(bpf_map_lookup_elem(&thread_states, &key));
	host->walk.may_hold_lock = 0;
	assert_false(finds_state());
	assert_null(bpf_map_lookup_elem(&thread_states, &key));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		host_test(thread_state__by_thread_offset),
		host_test(thread_state__by_glibc_key_in_both_places),
		host_test(thread_state__by_musl_key),
		host_test(thread_state__by_dtv_of_both_libcs),
		host_test(thread_state__second_slot_serves_a_detached_thread),
		host_test(thread_state__global_one_of_another_thread_is_refused),
		host_test(thread_state__is_asked_for_once_and_used_when_answered),
		host_test(thread_state__is_looked_up_and_no_more_where_a_lock_may_be_held),
	};

	return cmocka_run_group_tests_name("bpf/thread_state", tests, NULL, NULL);
}
