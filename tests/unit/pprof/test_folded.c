/* SPDX-License-Identifier: BSD-2-Clause */
#include "../profile/fixture.h"
#include "pprof/pprof.h"

static void add_thread_sample(struct fixture *f, const struct frame *frame, size_t count,
			      int64_t value, int64_t pid, const char *comm, int64_t tid,
			      const char *thread)
{
	const struct profile_sample sample = {
		.frame = frame,
		.frame_count = count,
		.value = {value, 7},
		.label = {{.key = "pid", .number = pid, .is_number = 1},
			  {.key = "comm", .string = id(f, comm)},
			  {.key = "tid", .number = tid, .is_number = 1},
			  {.key = "thread_name", .string = id(f, thread)}},
		.label_count = 4,
	};

	assert_int_equal(profile_add(f->profile, &sample), 0);
}

static void assert_folded(struct fixture *f, const char *expected)
{
	OWNED_MEM char *text = NULL;
	size_t size;

	assert_int_equal(profile_encode_folded(f->profile, &text, &size), 0);
	assert_string_equal(text, expected);
	assert_int_equal(size, strlen(expected));
}

static void profile_encode_folded__empty_window_is_empty_text(void **state)
{
	CLEANUP(fixture_release) struct fixture f = {0};

	(void)state;
	fixture_init(&f);
	assert_folded(&f, "");
}

static void profile_encode_folded__each_kind_of_frame_has_its_form(void **state)
{
	CLEANUP(fixture_release) struct fixture f = {0};
	uint32_t libz, map;
	struct frame frame[7];

	(void)state;
	fixture_init(&f);
	libz = add_module(&f, "/usr/lib/libz.so.1", "", 0, 0, 0);
	map = add_module(&f, "/tmp/perf-9.map", "", 0, 0, 0);
	frame[0] = code_frame(&f, FRAME_KERNEL, "do_syscall_64", 0, 1);
	frame[1] = code_frame(&f, FRAME_NATIVE, "inflate", libz, 2);
	frame[2] = code_frame(&f, FRAME_JIT, "jitted", map, 3);
	frame[3] = code_frame(&f, FRAME_MARKER, "[unwind gap]", 0, 0);
	frame[4] = python_frame(&f, "<lambda>", "/app/my file.py", 12, 12);
	frame[5] = python_frame(&f, "main", "<string>", 0, 1);
	frame[6] = code_frame(&f, FRAME_NATIVE, "", libz, 4);
	add_thread_sample(&f, frame, 7, 3, 12, "python3", 14, "worker-1");
	assert_folded(&f, "process 12: python3;thread 14: worker-1;[unknown] (libz.so.1);"
			  "main (<string>);<lambda> (/app/my file.py:12);[unwind gap];"
			  "jitted (perf-9.map);inflate (libz.so.1);do_syscall_64_[k] 3\n");
}

static void profile_encode_folded__separators_in_names_are_replaced(void **state)
{
	CLEANUP(fixture_release) struct fixture f = {0};
	struct frame frame;

	(void)state;
	fixture_init(&f);
	frame = python_frame(&f, "a;b\nc\xff", "/x;y.py", 1, 1);
	add_thread_sample(&f, &frame, 1, 1, 1, "c;d", 2, "e\nf");
	assert_folded(&f, "process 1: c:d;thread 2: e\\nf;a:b\\nc\xef\xbf\xbd (/x:y.py:1) 1\n");
}

static void profile_encode_folded__equal_lines_are_summed(void **state)
{
	CLEANUP(fixture_release) struct fixture f = {0};
	struct frame frame;
	uint32_t libz;

	(void)state;
	fixture_init(&f);
	libz = add_module(&f, "/usr/lib/libz.so.1", "", 0, 0, 0);
	for (uint64_t address = 0; address < 5; address++) {
		frame = code_frame(&f, FRAME_NATIVE, "inflate", libz, address);
		add_sample(&f, &frame, 1, 2, 9, NULL);
	}
	assert_int_equal(profile_sample_count(f.profile), 5);
	assert_folded(&f, "process 9;inflate (libz.so.1) 10\n");
}

/* Of these bytes '!' sorts below ';' and ' ' below both. */
static void profile_encode_folded__lines_are_in_byte_order_of_their_stacks(void **state)
{
	CLEANUP(fixture_release) struct fixture f = {0};
	static const char *const names[] = {"b", "b!", "b c", "b~"};
	struct frame frame[2];

	(void)state;
	fixture_init(&f);
	frame[0] = code_frame(&f, FRAME_NATIVE, "z", 0, 0);
	for (size_t i = ARRAY_SIZE(names); i-- > 0;) {
		frame[1] = code_frame(&f, FRAME_NATIVE, names[i], 0, 0);
		add_sample(&f, frame, 2, 1, 0, NULL);
		add_sample(&f, frame + 1, 1, 1, 0, NULL);
	}
	assert_folded(&f, "b 1\nb c 1\nb c;z 1\nb! 1\nb!;z 1\nb;z 1\nb~ 1\nb~;z 1\n");
}

static void profile_encode_folded__stacks_without_value_are_left_out(void **state)
{
	CLEANUP(fixture_release) struct fixture f = {0};
	struct frame frame;

	(void)state;
	fixture_init(&f);
	frame = code_frame(&f, FRAME_NATIVE, "f", 0, 0);
	add_sample(&f, &frame, 1, 0, 1, NULL);
	assert_folded(&f, "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(profile_encode_folded__empty_window_is_empty_text),
		cmocka_unit_test(profile_encode_folded__each_kind_of_frame_has_its_form),
		cmocka_unit_test(profile_encode_folded__separators_in_names_are_replaced),
		cmocka_unit_test(profile_encode_folded__equal_lines_are_summed),
		cmocka_unit_test(profile_encode_folded__lines_are_in_byte_order_of_their_stacks),
		cmocka_unit_test(profile_encode_folded__stacks_without_value_are_left_out),
	};

	return cmocka_run_group_tests_name("profile/folded", tests, NULL, NULL);
}
