/* SPDX-License-Identifier: BSD-2-Clause */
#include "read_fixture.h"

#include <errno.h>

#include "base/kinds.h"

/* ---- a file of another tool: ids of no row, no mapping, inlined lines, its own units ---- */

static const char *const other_strings[] = {"",	     "alloc_objects", "count",	 "alloc_space",
					    "bytes", "main.work",     "main.go", "main.in",
					    "bytes", "weird\033[1m",  "python3", "comm"};

struct other {
	struct m_function function[2];
	uint64_t location_id[2], default_sample_type;
	size_t n_value;
};

static void other_init(struct other *o)
{
	*o = (struct other){.location_id = {700, 9}, .n_value = 2};
	for (int i = 0; i < 2; i++)
		o->function[i] = (struct m_function){
			.id = i ? 12 : 5000000000, .name = i ? 7 : 5, .filename = 6};
}

static void put_numbers(struct proto_writer *proto, uint32_t field, const uint64_t *number,
			uint32_t count)
{
	proto_open(proto, field);
	for (uint32_t i = 0; i < count; i++)
		proto_uint(proto, 1 + i, number[i]);
	proto_close(proto);
}

static void put_other_sample(struct proto_writer *proto, const struct other *o)
{
	static const uint64_t value[2] = {3, 4096};
	static const uint64_t label[2][4] = {{8, 0, 512, 4}, {11, 10}};

	proto_open(proto, PPROF_PROFILE_SAMPLE);
	proto_open(proto, PPROF_SAMPLE_LOCATION_ID);
	for (int i = 0; i < 2; i++)
		proto_packed(proto, o->location_id[i]);
	proto_close(proto);
	proto_open(proto, PPROF_SAMPLE_VALUE);
	for (size_t i = 0; i < o->n_value; i++)
		proto_packed(proto, value[i]);
	proto_close(proto);
	for (int i = 0; i < 2; i++)
		put_numbers(proto, PPROF_SAMPLE_LABEL, label[i], 4);
	proto_close(proto);
}

static int read_other(struct profile_reader *reader, const struct other *o)
{
	static const uint64_t type[2][2] = {{1, 2}, {3, 4}},
			      line[2][2] = {{12, 10}, {5000000000, 11}};
	static const uint64_t location[3] = {9, 0, 0x1234};
	CLEANUP(proto_release) struct proto_writer proto = {0};

	for (int i = 0; i < 2; i++)
		put_numbers(&proto, PPROF_PROFILE_SAMPLE_TYPE, type[i], 2);
	put_other_sample(&proto, o);
	put_numbers(&proto, PPROF_PROFILE_LOCATION, location, 3);
	proto_open(&proto, PPROF_PROFILE_LOCATION);
	proto_uint(&proto, PPROF_LOCATION_ID, 700);
	for (int i = 0; i < 2; i++)
		put_numbers(&proto, PPROF_LOCATION_LINE, line[i], 2);
	proto_close(&proto);
	for (int i = 0; i < 2; i++)
		put_numbers(&proto, PPROF_PROFILE_FUNCTION, &o->function[i].id, 5);
	for (size_t i = 0; i < ARRAY_SIZE(other_strings); i++)
		proto_text(&proto, PPROF_PROFILE_STRING_TABLE, other_strings[i]);
	proto_uint(&proto, PPROF_PROFILE_DEFAULT_SAMPLE_TYPE, o->default_sample_type);
	return read_bytes(reader, proto.byte, proto.size);
}

static void profile_read__inlined_lines_become_frames(void **state)
{
	OWNED(profile_reader) struct profile_reader *reader = new_reader(NULL);
	const struct profile *p;
	struct other o;

	(void)state;
	other_init(&o);
	assert_int_equal(read_other(reader, &o), 0);
	p = profile_reader_profile(reader);
	assert_int_equal(p->row_count, 1);
	assert_int_equal(p->stacks.stack[0].count, 3);
	assert_string_equal(name_of(p, 0, 0), "main.in");
	assert_int_equal(row_frame(p, 0, 0)->line, 10);
	assert_string_equal(name_of(p, 0, 1), "main.work");
	assert_int_equal(row_frame(p, 0, 1)->line, 11);
	/* No function and no mapping: its address. */
	assert_string_equal(name_of(p, 0, 2), "0x1234");
	/* The last type is shown where none is said to be the default. */
	assert_int_equal(profile_reader_value_index(reader), 1);
	assert_int_equal(profile_reader_count_index(reader), -1);
	assert_int_equal(profile_row_values(p, 0)[1], 4096);
	assert_string_equal(p->options.kind, "alloc");
}

static void profile_read__labels_keep_their_units(void **state)
{
	OWNED(profile_reader) struct profile_reader *reader = new_reader(NULL);
	const struct stored_label *label;
	const struct profile *p;
	struct other o;

	(void)state;
	other_init(&o);
	assert_int_equal(read_other(reader, &o), 0);
	p = profile_reader_profile(reader);
	label = profile_find_label(p, p->row[0].label_set, "bytes");
	assert_non_null(label);
	assert_int_equal(label->value, 512);
	assert_string_equal(p->key[label->key].unit, "bytes");
	label = profile_find_label(p, p->row[0].label_set, "comm");
	assert_string_equal(intern_get(p->strings, (uint32_t)label->value, NULL), "python3");
}

static void profile_read__control_codes_become_escapes(void **state)
{
	OWNED(profile_reader) struct profile_reader *reader = new_reader(NULL);
	struct other o;

	(void)state;
	other_init(&o);
	o.function[1].name = 9;
	assert_int_equal(read_other(reader, &o), 0);
	assert_string_equal(name_of(profile_reader_profile(reader), 0, 0), "weird\\x1b[1m");
}

static void profile_read__default_sample_type_is_shown(void **state)
{
	OWNED(profile_reader) struct profile_reader *reader = new_reader(NULL);
	struct other o;

	(void)state;
	other_init(&o);
	o.default_sample_type = 1;
	assert_int_equal(read_other(reader, &o), 0);
	assert_int_equal(profile_reader_value_index(reader), 0);
}

static void profile_read__unpacked_lists_are_read(void **state)
{
	/* type {1,2}; sample: location 1 and value 7 unpacked; location 1 with line of function 1;
	 * function 1 name 3; strings "", "cpu", "nanoseconds", "f". */
	static const uint8_t bytes[] = {0x0a, 4,   0x08, 1,    0x10, 2,	  0x12, 4,   0x08, 1,
					0x10, 7,   0x22, 6,    0x08, 1,	  0x22, 2,   0x08, 1,
					0x2a, 4,   0x08, 1,    0x10, 3,	  0x32, 0,   0x32, 3,
					'c',  'p', 'u',	 0x32, 11,   'n', 'a',	'n', 'o',  's',
					'e',  'c', 'o',	 'n',  'd',  's', 0x32, 1,   'f'};
	OWNED(profile_reader) struct profile_reader *reader = new_reader(NULL);
	const struct profile *p;

	(void)state;
	assert_int_equal(read_bytes(reader, bytes, sizeof(bytes)), 0);
	p = profile_reader_profile(reader);
	assert_string_equal(name_of(p, 0, 0), "f");
	assert_int_equal(profile_row_values(p, 0)[0], 7);
	assert_string_equal(p->options.kind, "cpu");
}

/* ---- broken files ---- */

static void profile_read__missing_location_is_ebadmsg(void **state)
{
	OWNED(profile_reader) struct profile_reader *reader = new_reader(NULL);
	struct other o;

	(void)state;
	other_init(&o);
	o.location_id[1] = 10;
	assert_int_equal(read_other(reader, &o), -EBADMSG);
	assert_string_equal(profile_reader_error(reader),
			    "cut off or broken: a location is missing");
}

static void profile_read__value_too_few_is_ebadmsg(void **state)
{
	OWNED(profile_reader) struct profile_reader *reader = new_reader(NULL);
	struct other o;

	(void)state;
	other_init(&o);
	o.n_value = 1;
	assert_int_equal(read_other(reader, &o), -EBADMSG);
}

static void profile_read__empty_file_is_enodata(void **state)
{
	OWNED(profile_reader) struct profile_reader *reader = new_reader(NULL);

	(void)state;
	assert_int_equal(read_bytes(reader, "", 0), -ENODATA);
}

static void profile_read__text_is_no_pprof_file(void **state)
{
	OWNED(profile_reader) struct profile_reader *reader = new_reader(NULL);

	(void)state;
	assert_int_equal(read_bytes(reader, "{\"a\": 1}", 8), -EBADMSG);
	assert_string_equal(profile_reader_error(reader), "JSON, not a pprof file");
	assert_int_equal(read_bytes(reader, "hello, world\n", 13), -EBADMSG);
}

static void encode(struct fixture *f, void **ret_bytes, size_t *ret_size)
{
	assert_int_equal(profile_encode_pprof(f->profile, ret_bytes, ret_size), 0);
}

/* Writes the fixture's profile and reads it. */
static void read_written(struct profile_reader *reader, struct fixture *f)
{
	OWNED_MEM void *bytes = NULL;
	size_t size;

	encode(f, &bytes, &size);
	assert_int_equal(read_bytes(reader, bytes, size), 0);
}

static void profile_read__cut_off_at_every_byte_is_an_error(void **state)
{
	CLEANUP(fixture_release) struct fixture f = {0};
	OWNED_MEM void *bytes = NULL;
	OWNED_MEM uint8_t *raw = NULL;
	struct frame frame;
	size_t size, raw_size;

	(void)state;
	fixture_init(&f);
	frame = python_frame(&f, "work", "/app/w.py", 12, 10);
	add_sample(&f, &frame, 1, 5, 41, "MainThread");
	encode(&f, &bytes, &size);
	for (size_t i = 0; i < size; i++) {
		OWNED(profile_reader) struct profile_reader *reader = new_reader(NULL);

		assert_true(read_bytes(reader, bytes, i) < 0);
		assert_true(profile_reader_error(reader)[0]);
	}
	/* Without gzip a cut between two fields can only be seen by what is missing. */
	raw = inflate_all(bytes, size, &raw_size);
	for (size_t i = 0; i < raw_size; i++) {
		OWNED(profile_reader) struct profile_reader *reader = new_reader(NULL);

		assert_true(read_bytes(reader, raw, i) < 0);
	}
}

/* ---- our own files ---- */

/* By the value types alone, as when a file is given without a directory.  Of kinds with the same
 * ones it is the first. */
static void profile_read__each_kind_is_known_by_its_values(void **state)
{
	(void)state;
	for (unsigned int i = 0; i < PP_PROFILE_COUNT; i++) {
		const struct kind *kind = kind_get((enum pp_profile)i);
		const char *expected = i == PP_PROFILE_WAKER ? "offcpu" : kind->name;
		struct profile_options options = {
			.kind = kind->name, .value_count = kind_value_count((enum pp_profile)i)};
		OWNED(profile_reader) struct profile_reader *reader = new_reader(NULL);
		CLEANUP(fixture_release) struct fixture f = {0};
		OWNED_MEM void *bytes = NULL;
		struct frame frame;
		size_t size;

		for (size_t at = 0; at < options.value_count; at++)
			options.value_type[at] = (struct profile_value_type){kind->value[at].type,
									     kind->value[at].unit};
		options.default_value_type = options.value_type[kind->default_value].type;
		options.period_type = options.value_type[kind->default_value];
		assert_int_equal(intern_new(&f.strings), 0);
		assert_int_equal(profile_new(&options, f.strings, &f.profile), 0);
		frame = python_frame(&f, "work", "/app/w.py", 12, 1);
		add_sample(&f, &frame, 1, 5, 41, "MainThread");
		encode(&f, &bytes, &size);
		assert_int_equal(read_bytes(reader, bytes, size), 0);
		assert_string_equal(profile_reader_profile(reader)->options.kind, expected);
		assert_int_equal(profile_reader_value_index(reader), kind->default_value);
	}
}

static void profile_read__written_profile_comes_back(void **state)
{
	CLEANUP(fixture_release) struct fixture f = {0};
	OWNED(profile_reader) struct profile_reader *reader = new_reader(NULL);
	OWNED_MEM void *bytes = NULL, *again = NULL;
	struct frame frame[3];
	size_t size, again_size;
	struct profile *p;

	(void)state;
	fixture_init(&f);
	frame[0] = code_frame(&f, FRAME_KERNEL, "do_syscall_64",
			      add_module(&f, "[kernel.kallsyms]", "", 0, 0, 0), 0xffffffff81000010);
	frame[1] = code_frame(&f, FRAME_NATIVE, "deflate",
			      add_module(&f, "/usr/lib/libz.so.1", "abcd", 0x1000, 0x9000, 0x1000),
			      0x1234);
	frame[2] = python_frame(&f, "<module>", "/app/w.py", 12, 1);
	add_sample(&f, frame, 3, 5, 41, "MainThread");
	profile_set_duration(f.profile, FIXTURE_DURATION_NS);
	encode(&f, &bytes, &size);
	assert_int_equal(read_bytes(reader, bytes, size), 0);
	p = profile_reader_profile(reader);
	assert_string_equal(p->options.kind, "cpu");
	assert_int_equal(p->options.start_wall_ns, FIXTURE_START_NS);
	assert_int_equal(p->options.duration_ns, FIXTURE_DURATION_NS);
	assert_int_equal(profile_reader_value_index(reader), 1);
	assert_int_equal(profile_reader_count_index(reader), 0);
	assert_int_equal(row_frame(p, 0, 0)->kind, FRAME_KERNEL);
	assert_int_equal(row_frame(p, 0, 1)->kind, FRAME_NATIVE);
	assert_int_equal(row_frame(p, 0, 1)->file, 0);
	assert_int_equal(row_frame(p, 0, 2)->kind, FRAME_PYTHON);
	/* Written again it is the same file. */
	profile_weigh_modules(p);
	assert_int_equal(profile_encode_pprof(p, &again, &again_size), 0);
	assert_int_equal(again_size, size);
	assert_memory_equal(again, bytes, size);
}

static void profile_read__two_files_add_up(void **state)
{
	CLEANUP(fixture_release) struct fixture f = {0};
	OWNED(profile_reader) struct profile_reader *reader = new_reader(NULL);
	OWNED_MEM void *bytes = NULL;
	struct profile_read_totals totals;
	const struct profile *p;
	struct frame frame;
	size_t size;

	(void)state;
	fixture_init(&f);
	frame = python_frame(&f, "work", "/app/w.py", 12, 10);
	add_sample(&f, &frame, 1, 5, 41, NULL);
	encode(&f, &bytes, &size);
	assert_int_equal(read_bytes(reader, bytes, size), 0);
	assert_int_equal(read_bytes(reader, bytes, size), 0);
	p = profile_reader_profile(reader);
	assert_int_equal(p->row_count, 1);
	assert_int_equal(profile_row_values(p, 0)[0], 10);
	profile_reader_totals(reader, &totals);
	assert_int_equal(totals.files, 2);
	assert_int_equal(totals.bytes, 2 * size);
}

static void profile_read__other_kind_is_eproto(void **state)
{
	CLEANUP(fixture_release) struct fixture f = {0};
	OWNED(profile_reader) struct profile_reader *reader = new_reader(NULL);
	struct other o;

	(void)state;
	fixture_init(&f);
	read_written(reader, &f);
	other_init(&o);
	assert_int_equal(read_other(reader, &o), -EPROTO);
}

static void profile_read__unknown_sample_type_is_enoent(void **state)
{
	struct profile_read_options options = {.sample_type = "wall"};
	OWNED(profile_reader) struct profile_reader *reader = new_reader(&options);
	struct other o;

	(void)state;
	other_init(&o);
	assert_int_equal(read_other(reader, &o), -ENOENT);
}

/* ---- options ---- */

static void profile_read__rows_merge_without_their_labels(void **state)
{
	static const char *const kept[] = {"thread_name", NULL};
	struct profile_read_options options = {.keep_labels = kept};
	CLEANUP(fixture_release) struct fixture f = {0};
	OWNED(profile_reader) struct profile_reader *reader = new_reader(&options);
	struct frame frame;

	(void)state;
	fixture_init(&f);
	frame = python_frame(&f, "work", "/app/w.py", 12, 10);
	add_sample(&f, &frame, 1, 5, 41, "a");
	add_sample(&f, &frame, 1, 6, 42, "a");
	add_sample(&f, &frame, 1, 7, 42, "b");
	read_written(reader, &f);
	assert_int_equal(profile_reader_profile(reader)->row_count, 2);
	assert_int_equal(profile_row_values(profile_reader_profile(reader), 0)[0], 11);
}

static bool wants_pid_42(void *context, const struct intern *strings,
			 const struct profile_label *label, size_t count)
{
	(void)context;
	(void)strings;
	for (size_t i = 0; i < count; i++)
		if (!strcmp(label[i].key, "pid"))
			return label[i].number == 42;
	return false;
}

static void profile_read__unwanted_labels_are_left_out(void **state)
{
	struct profile_read_options options = {.wants_labels = wants_pid_42};
	CLEANUP(fixture_release) struct fixture f = {0};
	OWNED(profile_reader) struct profile_reader *reader = new_reader(&options);
	struct profile_read_totals totals;
	struct frame frame;

	(void)state;
	fixture_init(&f);
	frame = python_frame(&f, "work", "/app/w.py", 12, 10);
	add_sample(&f, &frame, 1, 5, 41, "a");
	add_sample(&f, &frame, 1, 6, 42, "a");
	read_written(reader, &f);
	assert_int_equal(profile_reader_profile(reader)->row_count, 1);
	assert_int_equal(profile_row_values(profile_reader_profile(reader), 0)[0], 6);
	profile_reader_totals(reader, &totals);
	assert_int_equal(totals.samples_dropped, 1);
}

static void profile_read__python_only_gives_native_time_to_its_caller(void **state)
{
	struct profile_read_options options = {.python_only = true};
	CLEANUP(fixture_release) struct fixture f = {0};
	OWNED(profile_reader) struct profile_reader *reader = new_reader(&options);
	const struct profile *p;
	struct frame frame[2];

	(void)state;
	fixture_init(&f);
	frame[0] = code_frame(&f, FRAME_NATIVE, "deflate",
			      add_module(&f, "/usr/lib/libz.so.1", "", 0, 0x9000, 0), 0x1234);
	frame[1] = python_frame(&f, "work", "/app/w.py", 12, 10);
	add_sample(&f, frame, 2, 5, 41, NULL);
	add_sample(&f, &frame[1], 1, 2, 41, NULL);
	add_sample(&f, frame, 1, 3, 41, NULL);
	read_written(reader, &f);
	p = profile_reader_profile(reader);
	assert_int_equal(p->row_count, 2);
	assert_string_equal(name_of(p, 0, 0), "work");
	assert_int_equal(profile_row_values(p, 0)[0], 7);
	assert_string_equal(name_of(p, 1, 0), "[no Python]");
}

/* ---- several windows in a file ---- */

/* What the callbacks were told. */
struct told {
	char text[1024]; /* "comment;" and "start+duration:row=value,row=value;" */
	uint64_t wanted_from_ms;
};

static void told_comment(void *context, const char *text)
{
	struct told *told = context;

	strcat(strcat(told->text, text), ";");
}

static bool told_wants(void *context, const struct window_mark *mark)
{
	return mark->start_ms >= ((const struct told *)context)->wanted_from_ms;
}

static int told_window(void *context, struct profile *profile, const struct profile_window *window)
{
	struct told *told = context;
	char *at = told->text + strlen(told->text);

	(void)profile;
	at += sprintf(at, "%lu+%lu/%ld=%ld:", window->start_wall_ns, window->duration_ns,
		      (long)window->period, (long)window->total);
	for (size_t i = 0; i < window->delta_count; i++)
		at += sprintf(at, "%u=%ld,", window->delta[i].row, (long)window->delta[i].count);
	strcat(at, ";");
	return 0;
}

static void add_mark(struct fixture *f, uint64_t offset_ms, uint64_t start_ns)
{
	const struct window_mark mark = {.offset_ms = offset_ms,
					 .start_ms = 5000 + offset_ms,
					 .duration_ms = 10,
					 .start_wall_ns = start_ns,
					 .duration_ns = 10,
					 .period = 3};
	char text[WINDOW_MARK_CHARS];

	window_mark_format(&mark, text);
	assert_int_equal(profile_add_comment(f->profile, text), 0);
}

/* Three windows, whose samples are mixed; the one in the middle has none. */
static void fill_merged(struct fixture *f)
{
	static const int64_t window[] = {20, 0, 20};
	struct frame frame = python_frame(f, "work", "/app/w.py", 12, 10);

	for (int i = 0; i < 3; i++) {
		struct profile_sample sample = {
			.frame = &frame,
			.frame_count = 1,
			.value = {i + 1, (i + 1) * 10},
			.label = {{.key = "pid", .number = i == 2 ? 42 : 41, .is_number = 1},
				  {.key = WINDOW_LABEL,
				   .unit = WINDOW_LABEL_UNIT,
				   .number = window[i],
				   .is_number = 1}},
			.label_count = 2};

		assert_int_equal(profile_add(f->profile, &sample), 0);
	}
	assert_int_equal(profile_add_comment(f->profile, "all"), 0);
	assert_int_equal(profile_add_comment(f->profile, "window=20 a=2"), 0);
	assert_int_equal(profile_add_comment(f->profile, "window=0 a=1"), 0);
	add_mark(f, 20, 7020);
	add_mark(f, 0, 7000);
	add_mark(f, 10, 7010);
}

static void read_merged(struct told *told, struct profile_reader **ret_reader)
{
	const struct profile_read_options options = {.comment = told_comment,
						     .wants_window = told_wants,
						     .window_done = told_window,
						     .context = told};
	CLEANUP(fixture_release) struct fixture f = {0};

	fixture_init(&f);
	fill_merged(&f);
	*ret_reader = new_reader(&options);
	read_written(*ret_reader, &f);
}

static void profile_read__windows_of_a_merged_file_come_one_by_one(void **state)
{
	OWNED(profile_reader) struct profile_reader *reader = NULL;
	struct profile_read_totals totals;
	struct told told = {0};

	(void)state;
	read_merged(&told, &reader);
	assert_string_equal(told.text, "all;all;all;a=2;a=1;"
				       "7000+10/3=20:0=2,;7010+10/3=0:;7020+10/3=40:0=1,1=3,;");
	/* The label is gone: the rows are those of files of one window each. */
	assert_int_equal(profile_reader_profile(reader)->row_count, 2);
	assert_null(profile_find_label(profile_reader_profile(reader), 0, WINDOW_LABEL));
	assert_int_equal(profile_reader_profile(reader)->comment_count, 1);
	profile_reader_totals(reader, &totals);
	assert_int_equal(totals.files, 1);
	assert_int_equal(totals.windows, 3);
	assert_int_equal(totals.start_wall_ns, 7000);
	assert_int_equal(totals.end_wall_ns, 7030);
	assert_int_equal(totals.duration_ns, 30);
}

static void profile_read__unwanted_windows_leave_nothing(void **state)
{
	OWNED(profile_reader) struct profile_reader *reader = NULL;
	struct told told = {.wanted_from_ms = 5020};
	struct profile_read_totals totals;

	(void)state;
	read_merged(&told, &reader);
	assert_string_equal(told.text, "all;a=2;7020+10/3=40:0=1,1=3,;");
	/* One window: what holds for it alone is kept. */
	assert_int_equal(profile_reader_profile(reader)->comment_count, 2);
	profile_reader_totals(reader, &totals);
	assert_int_equal(totals.windows, 1);
	assert_int_equal(totals.duration_ns, 10);
	assert_int_equal(totals.samples_kept, 2);
}

/* ---- wall ---- */

/* A window of one of our kinds with one value of its own and a shared stack. */
static int wall_part(const char *kind, int64_t ns, uint64_t start_ns)
{
	const bool is_cpu = !strcmp(kind, "cpu");
	const struct profile_options options = {
		.kind = kind,
		.value_type = {{is_cpu ? "samples" : "off_cpu", is_cpu ? "count" : "nanoseconds"},
			       {is_cpu ? "cpu" : "events", is_cpu ? "nanoseconds" : "count"}},
		.value_count = 2,
		.period = 7,
		.start_wall_ns = start_ns,
		.duration_ns = 10};
	struct fixture f = {0};
	OWNED_MEM void *bytes = NULL;
	struct frame frame;
	size_t size;
	int fd;

	assert_int_equal(intern_new(&f.strings), 0);
	assert_int_equal(profile_new(&options, f.strings, &f.profile), 0);
	frame = python_frame(&f, "work", "/app/w.py", 12, 10);
	{
		struct profile_sample sample = {.frame = &frame,
						.frame_count = 1,
						.value = {is_cpu ? 1 : ns, is_cpu ? ns : 1}};

		assert_int_equal(profile_add(f.profile, &sample), 0);
	}
	assert_int_equal(profile_add_comment(f.profile, is_cpu ? "a=1" : "b=2"), 0);
	encode(&f, &bytes, &size);
	fd = fd_of(bytes, size);
	fixture_release(&f);
	return fd;
}

static void profile_reader_add_wall__is_one_window_of_both(void **state)
{
	struct told told = {0};
	const struct profile_read_options options = {
		.comment = told_comment, .window_done = told_window, .context = &told};
	OWNED(profile_reader) struct profile_reader *reader = new_reader(&options);
	OWNED_FD int cpu_fd = wall_part("cpu", 30, 5000), offcpu_fd = wall_part("offcpu", 12, 5000);
	OWNED_FD int alone_fd = wall_part("cpu", 5, 6000);
	struct profile_read_totals totals;

	(void)state;
	assert_int_equal(profile_reader_add_wall(reader, cpu_fd, offcpu_fd), 0);
	assert_int_equal(profile_reader_add_wall(reader, alone_fd, -1), 0);
	/* The comments of one of them; no type counts events. */
	assert_string_equal(told.text, "a=1;5000+10/1=42:0=0,0=0,;"
				       "a=1;6000+10/1=5:0=0,;");
	assert_string_equal(profile_kind(profile_reader_profile(reader)), "wall");
	assert_int_equal(profile_reader_profile(reader)->row_count, 1);
	assert_int_equal(profile_row_values(profile_reader_profile(reader), 0)[0], 47);
	profile_reader_totals(reader, &totals);
	assert_int_equal(totals.windows, 2);
}

static void profile_reader_add_wall__broken_part_leaves_nothing(void **state)
{
	struct told told = {0};
	const struct profile_read_options options = {
		.comment = told_comment, .window_done = told_window, .context = &told};
	OWNED(profile_reader) struct profile_reader *reader = new_reader(&options);
	OWNED_FD int offcpu_fd = wall_part("offcpu", 12, 5000), broken_fd = fd_of("broken", 6);
	struct profile_read_totals totals;

	(void)state;
	assert_int_not_equal(profile_reader_add_wall(reader, broken_fd, offcpu_fd), 0);
	assert_string_equal(told.text, "");
	assert_int_equal(profile_row_values(profile_reader_profile(reader), 0)[0], 0);
	profile_reader_totals(reader, &totals);
	assert_int_equal(totals.windows, 0);
}

/* ---- windows without samples, files that are not what they say ---- */

static void profile_reader_add_empty__waits_for_the_first_file(void **state)
{
	const struct window_mark mark = {.start_wall_ns = 100, .duration_ns = 10, .period = 1};
	struct told told = {0};
	const struct profile_read_options options = {.window_done = told_window, .context = &told};
	OWNED(profile_reader) struct profile_reader *reader = new_reader(&options);
	OWNED(profile_reader) struct profile_reader *alone = new_reader(&options);
	OWNED_FD int fd = wall_part("offcpu", 12, 5000);

	(void)state;
	assert_int_equal(profile_reader_add_empty(reader, &mark), 0);
	assert_string_equal(told.text, "");
	assert_int_equal(profile_reader_add(reader, fd, "offcpu"), 0);
	assert_int_equal(profile_reader_add_empty(reader, &mark), 0);
	assert_string_equal(told.text, "100+10/1=0:;5000+10/7=1:0=1,;100+10/1=0:;");
	/* No file came. */
	told.text[0] = '\0';
	assert_int_equal(profile_reader_add_empty(alone, &mark), 0);
	assert_int_equal(profile_reader_end(alone, "gil"), 0);
	assert_string_equal(told.text, "100+10/1=0:;");
	assert_string_equal(profile_kind(profile_reader_profile(alone)), "gil");
	assert_int_equal(profile_reader_profile(alone)->options.value_count, 3);
}

static void profile_reader_add__file_of_another_kind_than_its_name_is_eproto(void **state)
{
	OWNED(profile_reader) struct profile_reader *reader = new_reader(NULL);
	OWNED_FD int wrong_fd = wall_part("offcpu", 12, 5000), fd = wall_part("cpu", 12, 5000);

	(void)state;
	assert_int_equal(profile_reader_add(reader, wrong_fd, "cpu"), -EPROTO);
	assert_int_equal(profile_reader_add(reader, fd, "cpu"), 0);
}

static void profile_read__no_window_wanted_is_no_window(void **state)
{
	OWNED(profile_reader) struct profile_reader *reader = NULL;
	struct told told = {.wanted_from_ms = 5021};
	struct profile_read_totals totals;

	(void)state;
	read_merged(&told, &reader);
	assert_string_equal(told.text, "");
	profile_reader_totals(reader, &totals);
	assert_int_equal(totals.files, 1);
	assert_int_equal(totals.windows, 0);
	assert_int_equal(profile_reader_profile(reader)->row_count, 0);
}

static void profile_read__sample_of_no_window_is_ebadmsg(void **state)
{
	OWNED(profile_reader) struct profile_reader *reader = new_reader(NULL);
	CLEANUP(fixture_release) struct fixture f = {0};
	OWNED_MEM void *bytes = NULL;
	struct frame frame;
	size_t size;

	(void)state;
	fixture_init(&f);
	frame = python_frame(&f, "work", "/app/w.py", 12, 10);
	add_sample(&f, &frame, 1, 5, 41, "a");
	add_mark(&f, 0, 7000);
	encode(&f, &bytes, &size);
	assert_int_equal(read_bytes(reader, bytes, size), -EBADMSG);
}

static void profile_read__window_that_is_listed_twice_is_ebadmsg(void **state)
{
	OWNED(profile_reader) struct profile_reader *reader = new_reader(NULL);
	CLEANUP(fixture_release) struct fixture f = {0};
	OWNED_MEM void *bytes = NULL;
	size_t size;

	(void)state;
	fixture_init(&f);
	fill_merged(&f);
	add_mark(&f, 20, 7021);
	encode(&f, &bytes, &size);
	assert_int_equal(read_bytes(reader, bytes, size), -EBADMSG);
}

static void profile_reader_set_window__labels_each_sample_and_takes_no_merged_file(void **state)
{
	OWNED(profile_reader) struct profile_reader *reader = new_reader(NULL);
	CLEANUP(fixture_release) struct fixture f = {0}, merged = {0};
	OWNED_MEM void *bytes = NULL;
	const struct profile *p;
	const struct stored_label *label;
	struct frame frame;
	size_t size;

	(void)state;
	fixture_init(&f);
	frame = python_frame(&f, "work", "/app/w.py", 12, 10);
	add_sample(&f, &frame, 1, 5, 41, "a");
	for (uint64_t i = 0; i < 2; i++) {
		profile_reader_set_window(reader, i * 10000);
		read_written(reader, &f);
	}
	p = profile_reader_profile(reader);
	assert_int_equal(p->row_count, 2);
	label = profile_find_label(p, p->row[1].label_set, WINDOW_LABEL);
	assert_non_null(label);
	assert_int_equal(label->value, 10000);
	assert_string_equal(p->key[label->key].unit, WINDOW_LABEL_UNIT);
	fixture_init(&merged);
	fill_merged(&merged);
	encode(&merged, &bytes, &size);
	assert_int_equal(read_bytes(reader, bytes, size), -EBADMSG);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(profile_read__inlined_lines_become_frames),
		cmocka_unit_test(profile_read__labels_keep_their_units),
		cmocka_unit_test(profile_read__control_codes_become_escapes),
		cmocka_unit_test(profile_read__default_sample_type_is_shown),
		cmocka_unit_test(profile_read__unpacked_lists_are_read),
		cmocka_unit_test(profile_read__missing_location_is_ebadmsg),
		cmocka_unit_test(profile_read__value_too_few_is_ebadmsg),
		cmocka_unit_test(profile_read__empty_file_is_enodata),
		cmocka_unit_test(profile_read__text_is_no_pprof_file),
		cmocka_unit_test(profile_read__cut_off_at_every_byte_is_an_error),
		cmocka_unit_test(profile_read__each_kind_is_known_by_its_values),
		cmocka_unit_test(profile_read__written_profile_comes_back),
		cmocka_unit_test(profile_read__two_files_add_up),
		cmocka_unit_test(profile_read__other_kind_is_eproto),
		cmocka_unit_test(profile_read__unknown_sample_type_is_enoent),
		cmocka_unit_test(profile_read__rows_merge_without_their_labels),
		cmocka_unit_test(profile_read__unwanted_labels_are_left_out),
		cmocka_unit_test(profile_read__python_only_gives_native_time_to_its_caller),
		cmocka_unit_test(profile_read__windows_of_a_merged_file_come_one_by_one),
		cmocka_unit_test(profile_read__unwanted_windows_leave_nothing),
		cmocka_unit_test(profile_read__no_window_wanted_is_no_window),
		cmocka_unit_test(profile_reader_add_wall__is_one_window_of_both),
		cmocka_unit_test(profile_reader_add_wall__broken_part_leaves_nothing),
		cmocka_unit_test(profile_reader_add_empty__waits_for_the_first_file),
		cmocka_unit_test(profile_reader_add__file_of_another_kind_than_its_name_is_eproto),
		cmocka_unit_test(profile_read__sample_of_no_window_is_ebadmsg),
		cmocka_unit_test(profile_read__window_that_is_listed_twice_is_ebadmsg),
		cmocka_unit_test(
			profile_reader_set_window__labels_each_sample_and_takes_no_merged_file),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
