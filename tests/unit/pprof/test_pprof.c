/* SPDX-License-Identifier: BSD-2-Clause */
#include "../profile/fixture.h"

#include <stdio.h>

static void profile_encode_pprof__empty_window_keeps_types_and_times(void **state)
{
	CLEANUP(fixture_release) struct fixture f = {0};
	pprof *p;

	(void)state;
	fixture_init(&f);
	profile_set_duration(f.profile, 2500000000ULL);
	assert_int_equal(profile_add_comment(f.profile, "pyprofd test"), 0);
	p = encode_and_decode(f.profile);
	assert_int_equal(p->n_sample, 0);
	assert_int_equal(p->n_sample_type, 2);
	assert_string_equal(text(p, p->sample_type[0].type), "samples");
	assert_string_equal(text(p, p->sample_type[1].unit), "nanoseconds");
	assert_string_equal(text(p, p->period_type.type), "cpu");
	assert_int_equal(p->period, 10101010);
	/* One string table: the index itself is compared by viewers. */
	assert_int_equal(p->default_sample_type, p->sample_type[1].type);
	assert_int_equal(p->time_nanos, FIXTURE_START_NS);
	assert_int_equal(p->duration_nanos, 2500000000ULL);
	assert_int_equal(p->n_comment, 1);
	assert_string_equal(text(p, p->comment[0]), "pyprofd test");
	pprof_free(p);
}

static void profile_encode_pprof__python_frame_has_no_system_name(void **state)
{
	CLEANUP(fixture_release) struct fixture f = {0};
	const struct m_function *function;
	struct frame frame[2];
	pprof *p;

	(void)state;
	fixture_init(&f);
	frame[0] = python_frame(&f, "Linear.forward", "/app/nn.py", 117, 114);
	frame[1] = python_frame(&f, "<module>", "/app/train.py", 9, 1);
	frame[1].system_name = frame[1].name;
	add_sample(&f, frame, 2, 3, 41, "MainThread");
	p = encode_and_decode(f.profile);
	assert_int_equal(p->n_mapping, 1);
	assert_string_equal(text(p, p->mapping[0].filename), "[python]");
	assert_int_equal(p->n_sample, 1);
	assert_int_equal(p->sample[0].n_location_id, 2);
	function = function_of(p, p->sample[0].location_id[0]);
	assert_string_equal(text(p, function->name), "Linear.forward");
	assert_string_equal(text(p, function->filename), "/app/nn.py");
	assert_int_equal(function->start_line, 114);
	assert_int_equal(location(p, p->sample[0].location_id[0])->line, 117);
	function = function_of(p, p->sample[0].location_id[1]);
	assert_string_equal(text(p, function->name), "<module>");
	assert_int_equal(function->system_name, 0);
	pprof_free(p);
}

static void profile_encode_pprof__lines_of_one_function_share_it(void **state)
{
	CLEANUP(fixture_release) struct fixture f = {0};
	struct frame frame;
	pprof *p;

	(void)state;
	fixture_init(&f);
	for (uint32_t line = 10; line < 13; line++) {
		frame = python_frame(&f, "loop", "/app/a.py", line, 9);
		add_sample(&f, &frame, 1, 1, 0, NULL);
	}
	p = encode_and_decode(f.profile);
	assert_int_equal(p->n_location, 3);
	assert_int_equal(p->n_function, 1);
	pprof_free(p);
}

static void profile_encode_pprof__program_is_first_and_kernel_last_mapping(void **state)
{
	CLEANUP(fixture_release) struct fixture f = {0};
	uint32_t kernel, libz, tool, python, unused;
	struct frame frame[3];
	pprof *p;

	(void)state;
	fixture_init(&f);
	kernel = add_module(&f, "[kernel.kallsyms]", "", 0, 0, 0);
	libz = add_module(&f, "/usr/lib/libz.so.1.2.13", "00ff", 0x3000, 0x16000, 0x3000);
	tool = add_module(&f, "/usr/bin/gzip", "", 0x1000, 0x2000, 0x1000);
	python = add_module(&f, "/usr/bin/python3.11", "abcd", 0x41f000, 0x6c0000, 0x1f000);
	unused = add_module(&f, "/usr/lib/libm.so.6", "", 0, 0, 0);
	assert_int_equal(add_module(&f, "/usr/lib/libz.so.1.2.13", "00ff", 0x3000, 0x16000, 0x3000),
			 libz);
	assert_int_equal(unused, 5);
	frame[0] = code_frame(&f, FRAME_KERNEL, "vfs_write", kernel, 0xffffffff81234567);
	frame[1] = code_frame(&f, FRAME_NATIVE, "inflate", libz, 0x4321);
	frame[2] = code_frame(&f, FRAME_NATIVE, "main", python, 0x420000);
	add_sample(&f, frame, 3, 5, 1, NULL);
	frame[2] = code_frame(&f, FRAME_NATIVE, "zip", tool, 0x1100);
	add_sample(&f, frame, 3, 4, 1, NULL);
	p = encode_and_decode(f.profile);
	assert_int_equal(p->n_mapping, 4);
	assert_string_equal(text(p, p->mapping[0].filename), "/usr/bin/python3.11");
	assert_string_equal(text(p, p->mapping[0].build_id), "abcd");
	assert_int_equal(p->mapping[0].memory_start, 0x41f000);
	assert_int_equal(p->mapping[0].memory_limit, 0x6c0000);
	assert_int_equal(p->mapping[0].file_offset, 0x1f000);
	assert_true(p->mapping[0].has_functions && p->mapping[0].has_filenames &&
		    p->mapping[0].has_line_numbers && p->mapping[0].has_inline_frames);
	assert_string_equal(text(p, p->mapping[3].filename), "[kernel.kallsyms]");
	assert_int_equal(location(p, p->sample[0].location_id[0])->mapping_id, 4);
	assert_int_equal(location(p, p->sample[0].location_id[0])->address, 0xffffffff81234567);
	assert_int_equal(location(p, p->sample[0].location_id[1])->address, 0x4321);
	assert_string_equal(text(p, function_of(p, p->sample[0].location_id[1])->filename),
			    "/usr/lib/libz.so.1.2.13");
	assert_int_equal(location(p, p->sample[0].location_id[2])->mapping_id, 1);
	pprof_free(p);
}

/* Readers drop locations without a function; Pyroscope symbolizes those without a mapping. */
static void profile_encode_pprof__every_location_has_a_function_and_a_mapping(void **state)
{
	static const char *const function[] = {
		"[libfoo.so]", "[unwind gap]", "do_idle", "[unknown]", "f", "[unknown]"};
	static const char *const mapping[] = {"/opt/libfoo.so", "[pyprofd]", "[kernel.kallsyms]",
					      "[anon]",		"[python]",  "[unknown]"};
	CLEANUP(fixture_release) struct fixture f = {0};
	struct frame frame[6];
	uint32_t library;
	pprof *p;

	(void)state;
	fixture_init(&f);
	library = add_module(&f, "/opt/libfoo.so", "", 0, 0, 0);
	frame[0] = code_frame(&f, FRAME_NATIVE, "", library, 0x10);
	frame[1] = code_frame(&f, FRAME_MARKER, "[unwind gap]", 0, 0);
	frame[2] = code_frame(&f, FRAME_KERNEL, "do_idle", 0, 0xffffffff81000000);
	frame[3] = code_frame(&f, FRAME_JIT, "", 0, 0x7f0000000000);
	frame[4] = python_frame(&f, "f", "/a.py", 1, 1);
	frame[5] = code_frame(&f, FRAME_NATIVE, "", 0, 0x20);
	add_sample(&f, frame, 6, 1, 0, NULL);
	p = encode_and_decode(f.profile);
	assert_int_equal(p->n_mapping, 6);
	assert_string_equal(text(p, p->mapping[0].filename), "/opt/libfoo.so");
	assert_string_equal(text(p, p->mapping[5].filename), "[kernel.kallsyms]");
	for (size_t i = 0; i < ARRAY_SIZE(frame); i++) {
		uint64_t mapping_id = location(p, i + 1)->mapping_id;

		assert_string_equal(text(p, function_of(p, i + 1)->name), function[i]);
		assert_in_range(mapping_id, 1, 6);
		assert_int_equal(p->mapping[mapping_id - 1].id, mapping_id);
		assert_true(p->mapping[mapping_id - 1].has_functions);
		assert_string_equal(text(p, p->mapping[mapping_id - 1].filename), mapping[i]);
	}
	pprof_free(p);
}

/* A kernel frame without a module is the kernel's that has one. */
static void profile_encode_pprof__kernel_has_one_mapping(void **state)
{
	CLEANUP(fixture_release) struct fixture f = {0};
	struct frame frame[2];
	pprof *p;

	(void)state;
	fixture_init(&f);
	frame[0] = code_frame(&f, FRAME_KERNEL, "a", 0, 0xffffffff81000000);
	frame[1] = code_frame(&f, FRAME_KERNEL, "b", 1, 0xffffffff81000010);
	assert_int_equal(add_module(&f, "[kernel.kallsyms]", "", 0, 0, 0), 1);
	add_sample(&f, frame, 2, 1, 0, NULL);
	p = encode_and_decode(f.profile);
	assert_int_equal(p->n_mapping, 1);
	assert_int_equal(location(p, 1)->mapping_id, 1);
	assert_int_equal(location(p, 2)->mapping_id, 1);
	pprof_free(p);
}

static void profile_encode_pprof__mangled_name_is_kept_only_where_it_differs(void **state)
{
	CLEANUP(fixture_release) struct fixture f = {0};
	struct frame frame[2];
	uint32_t library;
	pprof *p;

	(void)state;
	fixture_init(&f);
	library = add_module(&f, "/opt/libfoo.so", "", 0, 0, 0);
	frame[0] = code_frame(&f, FRAME_NATIVE, "ns::f(int)", library, 0x10);
	frame[0].system_name = id(&f, "_ZN2ns1fEi");
	frame[1] = code_frame(&f, FRAME_NATIVE, "plain", library, 0x20);
	frame[1].system_name = frame[1].name;
	add_sample(&f, frame, 2, 1, 0, NULL);
	p = encode_and_decode(f.profile);
	assert_string_equal(text(p, function_of(p, 1)->system_name), "_ZN2ns1fEi");
	assert_int_equal(function_of(p, 2)->system_name, 0);
	pprof_free(p);
}

static void profile_encode_pprof__labels_are_numbers_or_texts(void **state)
{
	CLEANUP(fixture_release) struct fixture f = {0};
	struct frame frame;
	struct profile_sample sample = {.frame = &frame, .frame_count = 1, .value = {1, 1}};
	const struct m_sample *s;
	pprof *p;

	(void)state;
	fixture_init(&f);
	frame = python_frame(&f, "f", "/a.py", 1, 1);
	sample.label[0] = (struct profile_label){.key = "pid", .number = -7, .is_number = 1};
	sample.label[1] = (struct profile_label){.key = "comm", .string = id(&f, "python3")};
	sample.label[2] = (struct profile_label){.key = "container", .string = 0};
	sample.label_count = 3;
	assert_int_equal(profile_add(f.profile, &sample), 0);
	p = encode_and_decode(f.profile);
	s = &p->sample[0];
	assert_int_equal(s->n_label, 2);
	assert_string_equal(text(p, s->label[0].key), "pid");
	assert_int_equal((int64_t)s->label[0].num, -7);
	assert_int_equal(s->label[0].str, 0);
	assert_int_equal(s->label[0].num_unit, 0);
	assert_string_equal(text(p, s->label[1].key), "comm");
	assert_string_equal(text(p, s->label[1].str), "python3");
	pprof_free(p);
}

static void profile_encode_pprof__foreign_bytes_become_clean_text_stored_once(void **state)
{
	CLEANUP(fixture_release) struct fixture f = {0};
	struct frame frame[2];
	pprof *p;

	(void)state;
	fixture_init(&f);
	frame[0] = python_frame(&f, "na\xff", "/a.py", 1, 1);
	frame[1] = python_frame(&f, "na\xfe", "/a.py", 1, 1);
	add_sample(&f, frame, 2, 1, 1, "\x1b[2Jred");
	p = encode_and_decode(f.profile);
	assert_string_equal(text(p, function_of(p, 1)->name), "na\xef\xbf\xbd");
	assert_int_equal(function_of(p, 1)->name, function_of(p, 2)->name);
	assert_string_equal(text(p, p->sample[0].label[1].str), "\\x1b[2Jred");
	for (size_t i = 0; i < p->n_string_table; i++)
		for (size_t j = 0; j < i; j++)
			assert_string_not_equal(p->string_table[i], p->string_table[j]);
	pprof_free(p);
}

/* A linear congruential generator: the same samples on every run. */
static uint32_t next_random(uint32_t *seed)
{
	*seed = *seed * 1664525U + 1013904223U;
	return *seed >> 8;
}

static void fill_random(struct fixture *f, uint32_t samples, uint32_t max_depth, int64_t *ret_total)
{
	struct frame *frame = calloc(max_depth, sizeof(*frame));
	uint32_t seed = 7, library = add_module(f, "/usr/bin/python3", "ab", 0x1000, 0x900000, 0);
	char name[32];

	assert_non_null(frame);
	*ret_total = 0;
	for (uint32_t i = 0; i < samples; i++) {
		uint32_t depth = 1 + next_random(&seed) % max_depth;
		int64_t value = 1 + next_random(&seed) % 9;

		for (uint32_t j = 0; j < depth; j++) {
			uint32_t pick = next_random(&seed) % 6000;

			snprintf(name, sizeof(name), "function_%u", pick);
			frame[j] = pick % 2 ? python_frame(f, name, "/app/m.py", pick, pick)
					    : code_frame(f, FRAME_NATIVE, name, library, pick);
		}
		add_sample(f, frame, depth, value, 1 + next_random(&seed) % 20, "worker");
		*ret_total += value;
	}
	free(frame);
}

static void profile_encode_pprof__totals_are_those_that_were_added(void **state)
{
	CLEANUP(fixture_release) struct fixture f = {0};
	int64_t total, samples = 0, ns = 0;
	pprof *p;

	(void)state;
	fixture_init(&f);
	fill_random(&f, 1000, 40, &total);
	p = encode_and_decode(f.profile);
	assert_int_equal(p->n_sample, profile_sample_count(f.profile));
	for (size_t i = 0; i < p->n_sample; i++) {
		assert_int_equal(p->sample[i].n_value, 2);
		samples += (int64_t)p->sample[i].value[0];
		ns += (int64_t)p->sample[i].value[1];
		for (size_t j = 0; j < p->sample[i].n_location_id; j++)
			function_of(p, p->sample[i].location_id[j]);
	}
	assert_int_equal(samples, total);
	assert_int_equal(ns, total * 10101010);
	pprof_free(p);
}

static void profile_encode_pprof__deepest_stack_survives(void **state)
{
	CLEANUP(fixture_release) struct fixture f = {0};
	static struct frame frame[2048 + 127];
	pprof *p;

	(void)state;
	fixture_init(&f);
	for (uint32_t i = 0; i < ARRAY_SIZE(frame); i++)
		frame[i] = python_frame(&f, "deep", "/a.py", i + 1, 1);
	add_sample(&f, frame, ARRAY_SIZE(frame), 1, 1, NULL);
	p = encode_and_decode(f.profile);
	assert_int_equal(p->sample[0].n_location_id, 2048 + 127);
	for (uint32_t i = 0; i < ARRAY_SIZE(frame); i++)
		assert_int_equal(location(p, p->sample[0].location_id[i])->line, i + 1);
	pprof_free(p);
}

static void skip_without(const char *command, const char *reason)
{
	char line[256];

	snprintf(line, sizeof(line), "%s >/dev/null 2>&1", command);
	if (system(line)) {
		print_message("skipped: %s\n", reason);
		skip();
	}
}

/* What `COMMAND FILE` says about the profile: all that it printed. */
static char *reader_says(const struct profile *profile, const char *command)
{
	char path[] = "/tmp/test_pprof_XXXXXX", line[256], *output = NULL;
	OWNED_MEM void *bytes = NULL;
	size_t size, output_size = 0;
	FILE *pipe;
	int fd;

	assert_int_equal(profile_encode_pprof(profile, &bytes, &size), 0);
	fd = mkstemp(path);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, bytes, size), (ssize_t)size);
	close(fd);
	snprintf(line, sizeof(line), "PPROF_TMPDIR=/tmp LC_ALL=C.UTF-8 %s %s 2>&1", command, path);
	pipe = popen(line, "r");
	assert_non_null(pipe);
	assert_true(getdelim(&output, &output_size, 0, pipe) > 0);
	assert_int_equal(pclose(pipe), 0);
	unlink(path);
	return output;
}

/* Kernel, native and two Python frames, 6 times; the outermost alone, twice. */
static void add_two_stacks(struct fixture *f)
{
	uint32_t kernel = add_module(f, "[kernel.kallsyms]", "", 0, 0, 0);
	uint32_t python = add_module(f, "/usr/bin/python3.11", "abcd", 0x41f000, 0x6c0000, 0x1f000);
	const struct frame frame[] = {
		code_frame(f, FRAME_KERNEL, "vfs_write", kernel, 0xffffffff81234567),
		code_frame(f, FRAME_NATIVE, "os_write", python, 0x420000),
		python_frame(f, "outer.<locals>.inner", "/app/a.py", 7, 5),
		python_frame(f, "<module>", "/app/a.py", 30, 1),
	};

	add_sample(f, frame, 4, 6, 4242, "MainThread");
	add_sample(f, frame + 3, 1, 2, 4242, "MainThread");
}

static void profile_encode_pprof__go_pprof_reads_it_without_a_warning(void **state)
{
	CLEANUP(fixture_release) struct fixture f = {0};
	OWNED_MEM char *raw = NULL;
	OWNED_MEM char *top = NULL;
	OWNED_MEM char *tags = NULL;

	(void)state;
	skip_without("go tool -n pprof", "there is no `go tool pprof` on this machine");
	fixture_init(&f);
	add_two_stacks(&f);

	raw = reader_says(f.profile, "go tool pprof -raw");
	assert_non_null(strstr(raw, "samples/count cpu/nanoseconds[dflt]"));
	assert_non_null(strstr(raw, "PeriodType: cpu nanoseconds"));
	assert_non_null(strstr(raw, "Period: 10101010"));
	assert_non_null(strstr(raw, "outer.<locals>.inner /app/a.py:7:0 s=5"));
	assert_non_null(strstr(raw, "1: 0x41f000/0x6c0000/0x1f000 /usr/bin/python3.11 abcd "
				    "[FN][FL][LN][IN]"));
	assert_non_null(strstr(raw, "          6   60606060: 1 2 3 4"));
	assert_non_null(strstr(raw, "thread_name:[MainThread]"));
	assert_non_null(strstr(raw, "pid:[4242]"));

	top = reader_says(f.profile, "go tool pprof -top -sample_index=samples");
	assert_non_null(strstr(top, "File: python3.11"));
	assert_non_null(strstr(top, "Duration: 10s"));
	assert_non_null(strstr(top, "<module>"));
	assert_null(strstr(top, "ymboliz")); /* "Local symbolization failed ..." */
	assert_null(strstr(top, "PPROF_BINARY_PATH"));

	tags = reader_says(f.profile, "go tool pprof -tags -sample_index=samples");
	assert_non_null(strstr(tags, "pid: Total 8"));
	assert_non_null(strstr(tags, "thread_name: Total 8"));
}

static void profile_encode_pprof__go_pprof_reads_an_empty_window(void **state)
{
	CLEANUP(fixture_release) struct fixture f = {0};
	OWNED_MEM char *raw = NULL;

	(void)state;
	skip_without("go tool -n pprof", "there is no `go tool pprof` on this machine");
	fixture_init(&f);
	raw = reader_says(f.profile, "go tool pprof -raw");
	assert_non_null(strstr(raw, "Duration: 10"));
}

/* The end-to-end tests' reader is another program's view of the same bytes. */
static void profile_encode_pprof__test_reader_gives_back_what_was_added(void **state)
{
	CLEANUP(fixture_release) struct fixture f = {0};
	OWNED_MEM char *text = NULL;

	(void)state;
	skip_without("python3 -c 'import gzip' && test -f tests/e2e/pprof.py",
		     "there is no python3, or this is not the top of the sources");
	fixture_init(&f);
	add_two_stacks(&f);
	assert_int_equal(profile_add_comment(f.profile, "pyprofd gr\xc3\xb6\xc3\x9f"
							"e"),
			 0);
	text = reader_says(f.profile, "python3 -B tests/e2e/pprof.py");
	assert_string_equal(text, "types: samples/count cpu/nanoseconds\n"
				  "default: cpu\n"
				  "period: 10101010 cpu/nanoseconds\n"
				  "time: 1767225600123456789\n"
				  "duration: 10000000000\n"
				  "comment: pyprofd gr\xc3\xb6\xc3\x9f"
				  "e\n"
				  "mapping 1: 0x41f000 0x6c0000 0x1f000 /usr/bin/python3.11 abcd\n"
				  "mapping 2: 0x0 0x0 0x0 [python] -\n"
				  "mapping 3: 0x0 0x0 0x0 [kernel.kallsyms] -\n"
				  "sample 6 60606060: pid=4242 thread_name=MainThread\n"
				  "  kernel vfs_write ([kernel.kallsyms])\n"
				  "  native os_write (/usr/bin/python3.11)\n"
				  "  python outer.<locals>.inner (/app/a.py:7)\n"
				  "  python <module> (/app/a.py:30)\n"
				  "sample 2 20202020: pid=4242 thread_name=MainThread\n"
				  "  python <module> (/app/a.py:30)\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(profile_encode_pprof__empty_window_keeps_types_and_times),
		cmocka_unit_test(profile_encode_pprof__python_frame_has_no_system_name),
		cmocka_unit_test(profile_encode_pprof__lines_of_one_function_share_it),
		cmocka_unit_test(profile_encode_pprof__program_is_first_and_kernel_last_mapping),
		cmocka_unit_test(profile_encode_pprof__every_location_has_a_function_and_a_mapping),
		cmocka_unit_test(profile_encode_pprof__kernel_has_one_mapping),
		cmocka_unit_test(profile_encode_pprof__mangled_name_is_kept_only_where_it_differs),
		cmocka_unit_test(profile_encode_pprof__labels_are_numbers_or_texts),
		cmocka_unit_test(profile_encode_pprof__foreign_bytes_become_clean_text_stored_once),
		cmocka_unit_test(profile_encode_pprof__totals_are_those_that_were_added),
		cmocka_unit_test(profile_encode_pprof__deepest_stack_survives),
		cmocka_unit_test(profile_encode_pprof__go_pprof_reads_it_without_a_warning),
		cmocka_unit_test(profile_encode_pprof__go_pprof_reads_an_empty_window),
		cmocka_unit_test(profile_encode_pprof__test_reader_gives_back_what_was_added),
	};

	return cmocka_run_group_tests_name("profile/pprof", tests, NULL, NULL);
}
