/* SPDX-License-Identifier: BSD-2-Clause */
#include "gpu/cuda_devices.h"

#include <cmocka.h>
#include <errno.h>

#define TRAINS ((struct pp_process_id){.tgid = 70, .generation = 1})

static int answer;
static unsigned int asked;
static bool alive;

static int ask(void *context, struct pp_process_id id)
{
	(void)context;
	assert_int_equal(id.tgid, 70);
	asked++;
	return answer;
}

static bool is_alive(void *context, struct pp_process_id id)
{
	(void)context;
	(void)id;
	return alive;
}

/* Returns what is known of the process after a window at whose end NVML says so. */
static int after(struct cuda_devices *devices, int says)
{
	answer = says;
	cuda_devices_begin(devices, is_alive, NULL);
	assert_int_equal(cuda_devices_note(devices, TRAINS, ask, NULL), 0);
	return cuda_devices_find(devices, TRAINS);
}

static struct cuda_devices *make(void)
{
	struct cuda_devices *devices;

	alive = true;
	asked = 0;
	assert_int_equal(cuda_devices_new(&devices), 0);
	return devices;
}

static void note__asks_once_a_window(void **state)
{
	OWNED(cuda_devices) struct cuda_devices *devices = make();

	(void)state;
	assert_int_equal(cuda_devices_find(devices, TRAINS), -ENOENT);
	assert_int_equal(after(devices, 0), 0);
	answer = 5;
	assert_int_equal(cuda_devices_note(devices, TRAINS, ask, NULL), 0);
	assert_int_equal(cuda_devices_find(devices, TRAINS), 0);
	assert_int_equal(asked, 1);
	assert_int_equal(after(devices, 0), 0);
	assert_int_equal(asked, 2);
}

static void find__what_was_known_stays_while_nothing_is_told(void **state)
{
	OWNED(cuda_devices) struct cuda_devices *devices = make();

	(void)state;
	assert_int_equal(after(devices, -ENOENT), -ENOENT);
	assert_int_equal(after(devices, 3), 3);
	assert_int_equal(after(devices, -ENOENT), 3);
	/* Another process has its number. */
	assert_int_equal(cuda_devices_find(devices, (struct pp_process_id){70, 2}), -ENOENT);
}

static void find__nothing_of_who_was_on_several(void **state)
{
	OWNED(cuda_devices) struct cuda_devices *at_once = make(), *in_turn = make();

	(void)state;
	assert_int_equal(after(at_once, 3), 3);
	assert_int_equal(after(at_once, -EMFILE), -ENOENT);
	assert_int_equal(after(at_once, 3), -ENOENT);
	assert_int_equal(after(in_turn, 3), 3);
	assert_int_equal(after(in_turn, 2), -ENOENT);
	assert_int_equal(after(in_turn, 2), -ENOENT);
}

static void begin__forgets_who_has_ended_after_its_last_calls(void **state)
{
	OWNED(cuda_devices) struct cuda_devices *devices = make();

	(void)state;
	assert_int_equal(after(devices, 3), 3);
	alive = false;
	assert_int_equal(after(devices, -ENOENT), 3);
	cuda_devices_begin(devices, is_alive, NULL);
	assert_int_equal(cuda_devices_find(devices, TRAINS), 3);
	cuda_devices_begin(devices, is_alive, NULL);
	assert_int_equal(cuda_devices_find(devices, TRAINS), -ENOENT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(note__asks_once_a_window),
		cmocka_unit_test(find__what_was_known_stays_while_nothing_is_told),
		cmocka_unit_test(find__nothing_of_who_was_on_several),
		cmocka_unit_test(begin__forgets_who_has_ended_after_its_last_calls),
	};

	return cmocka_run_group_tests_name("agent/cuda_devices", tests, NULL, NULL);
}
