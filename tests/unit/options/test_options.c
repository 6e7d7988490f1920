/* SPDX-License-Identifier: BSD-2-Clause */
#include "options/options.h"

#include <cmocka.h>
#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#define CAPTURE_FIRST(id, name, ...) name
#define CAPTURE_NEXT(id, name, ...) ", " name
#define CAPTURES_TEXT PP_CAPTURES(CAPTURE_FIRST, CAPTURE_NEXT) "\n"
#define A_PROBE " --probe tracepoint:sched:sched_switch"
#define MAX_WORDS 40

struct run {
	struct options options;
	char *argv[MAX_WORDS + 1]; /* argp may reorder it, options point into it */
	char words[2048];
	int result;
	char *out, *err; /* heap: what was printed */
};

static void run_release(struct run *run)
{
	if (!run->result)
		options_release(&run->options);
	free(run->out);
	free(run->err);
}
#define RUN CLEANUP(run_release) struct run

/* Parses "pyprofd " and the words of `line`, which are separated by single blanks; '' is empty. */
static void run_line(struct run *run, const char *line)
{
	size_t out_size, err_size;
	struct options_streams streams = {
		.out = open_memstream(&run->out, &out_size),
		.err = open_memstream(&run->err, &err_size),
	};
	char *rest = run->words, *word;
	int argc = 0;

	snprintf(run->words, sizeof(run->words), "pyprofd%s%s", *line ? " " : "", line);
	while ((word = strsep(&rest, " ")) && argc < MAX_WORDS)
		run->argv[argc++] = strcmp(word, "''") ? word : strchr(word, '\0');
	run->argv[argc] = NULL;
	run->result = options_parse_to(&streams, argc, run->argv, &run->options);
	fclose(streams.out);
	fclose(streams.err);
}

static void options_parse__nothing_given_is_the_whole_machine_at_99(void **state)
{
	RUN run = {0};

	(void)state;
	run_line(&run, "");
	assert_int_equal(run.result, 0);
	assert_int_equal(run.options.hz, 99);
	assert_int_equal(run.options.clock, OPTIONS_CLOCK_CPU);
	assert_int_equal(run.options.events, PP_CAPTURES_DEFAULT);
	assert_int_equal(run.options.offcpu_min_ns, 0);
	assert_int_equal(run.options.interval_ns, 10000000000ULL);
	assert_int_equal(run.options.duration_ns, 0);
	assert_int_equal(run.options.delay_ns, 0);
	assert_string_equal(run.options.output, "/var/lib/pyprofd");
	assert_int_equal(run.options.output_kind, OPTIONS_OUTPUT_DIRECTORY);
	assert_int_equal(run.options.store_max_bytes, 200ULL * 1024 * 1024);
	assert_int_equal(run.options.store_max_age_ns, 0);
	assert_int_equal(run.options.budget_bytes, 0);
	assert_int_equal(run.options.max_cpu_ppm, 0);
	assert_int_equal(run.options.slowdown_ppm, 0);
	assert_int_equal(run.options.pid_count, 0);
	assert_int_equal(run.options.uid_count, 0);
	assert_null(run.options.comm);
	assert_null(run.options.cgroup);
	assert_null(run.options.command);
	assert_false(run.options.no_kernel || run.options.no_native || run.options.raw ||
		     run.options.verbose || run.options.quiet);
	assert_string_equal(run.err, "");
}

static void options_parse__every_long_option_lands_in_its_field(void **state)
{
	RUN run = {0};

	(void)state;
	run_line(&run, "--hz 1999 --set capture.clock=cycles --pid 12,34 --comm ^py --cgroup /a/b "
		       "--uid 0,1000 --duration 2m --delay 500ms --interval=30s --events cpu "
		       "--output x.pb.gz --store-max 2G --set store.age=7d --frames "
		       "python,interpreter --max-memory 64M --max-cpu 2.5 --max-slowdown 0.4% "
		       "--verbose");
	assert_int_equal(run.result, 0);
	assert_int_equal(run.options.hz, 1999);
	assert_int_equal(run.options.clock, OPTIONS_CLOCK_CYCLES);
	assert_int_equal(run.options.events, PP_CAPTURE_CPU);
	assert_int_equal(run.options.pid_count, 2);
	assert_int_equal(run.options.pid[0], 12);
	assert_int_equal(run.options.pid[1], 34);
	assert_string_equal(run.options.comm, "^py");
	assert_int_equal(regexec(&run.options.comm_regex, "python3", 0, NULL, 0), 0);
	assert_int_equal(regexec(&run.options.comm_regex, "happy", 0, NULL, 0), REG_NOMATCH);
	assert_string_equal(run.options.cgroup, "/a/b");
	assert_int_equal(run.options.uid_count, 2);
	assert_int_equal(run.options.uid[0], 0);
	assert_int_equal(run.options.uid[1], 1000);
	assert_int_equal(run.options.duration_ns, 120000000000ULL);
	assert_int_equal(run.options.delay_ns, 500000000ULL);
	assert_int_equal(run.options.interval_ns, 30000000000ULL);
	assert_string_equal(run.options.output, "x.pb.gz");
	assert_int_equal(run.options.output_kind, OPTIONS_OUTPUT_PPROF);
	assert_int_equal(run.options.store_max_bytes, 2147483648ULL);
	assert_int_equal(run.options.store_max_age_ns, 604800000000000ULL);
	assert_int_equal(run.options.budget_bytes, 67108864ULL);
	assert_int_equal(run.options.max_cpu_ppm, 25000);
	assert_int_equal(run.options.slowdown_ppm, 4000);
	assert_true(run.options.no_kernel && run.options.no_native && run.options.raw);
	assert_true(run.options.verbose && !run.options.quiet);
}

static void options_parse__letters_and_repetition(void **state)
{
	RUN run = {0};

	(void)state;
	run_line(&run, "-vqF 49 -p 7 -p8,9 -d.5 -o -");
	assert_int_equal(run.result, 0);
	assert_int_equal(run.options.hz, 49);
	assert_int_equal(run.options.pid_count, 3);
	assert_int_equal(run.options.pid[0], 7);
	assert_int_equal(run.options.pid[1], 8);
	assert_int_equal(run.options.pid[2], 9);
	assert_int_equal(run.options.duration_ns, 500000000ULL);
	assert_string_equal(run.options.output, "-");
	assert_int_equal(run.options.output_kind, OPTIONS_OUTPUT_PPROF);
	/* The later one wins. */
	assert_true(run.options.quiet && !run.options.verbose);
}

static void options_parse__a_command_keeps_its_own_options(void **state)
{
	RUN run = {0};

	(void)state;
	run_line(&run, "-F 49 -- python3 -V --hz 5 -- x");
	assert_int_equal(run.result, 0);
	assert_int_equal(run.options.hz, 49);
	assert_false(run.options.as_root);
	assert_non_null(run.options.command);
	assert_string_equal(run.options.command[0], "python3");
	assert_string_equal(run.options.command[1], "-V");
	assert_string_equal(run.options.command[2], "--hz");
	assert_string_equal(run.options.command[3], "5");
	assert_string_equal(run.options.command[4], "--");
	assert_string_equal(run.options.command[5], "x");
	assert_null(run.options.command[6]);
}

static void options_parse__a_command_is_roots_where_asked_for(void **state)
{
	RUN run = {0};

	(void)state;
	run_line(&run, "--set capture.as-root=yes -- true --as-root");
	assert_int_equal(run.result, 0);
	assert_true(run.options.as_root);
	assert_string_equal(run.options.command[1], "--as-root");
}

static void options_parse__output_kind_follows_the_name(void **state)
{
	static const struct {
		const char *line;
		enum options_output_kind kind;
	} cases[] = {
		{"-o /", OPTIONS_OUTPUT_DIRECTORY},
		{"-o no", OPTIONS_OUTPUT_NONE},
		{"-o /tmp", OPTIONS_OUTPUT_DIRECTORY},
		{"-o /no/such/directory/", OPTIONS_OUTPUT_DIRECTORY},
		{"-o a.folded", OPTIONS_OUTPUT_FOLDED},
		{"-o a.txt", OPTIONS_OUTPUT_FOLDED},
		{"-o a.txt.gz", OPTIONS_OUTPUT_PPROF},
		{"-o folded", OPTIONS_OUTPUT_PPROF},
		{"-o cpu.pb.gz", OPTIONS_OUTPUT_PPROF},
		{"-o /no/such/directory", OPTIONS_OUTPUT_PPROF},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		RUN run = {0};

		run_line(&run, cases[i].line);
		assert_int_equal(run.result, 0);
		assert_int_equal(run.options.output_kind, cases[i].kind);
	}
}

static void options_parse__a_directory_called_txt_is_a_directory(void **state)
{
	char directory[] = "/tmp/pyprofd-test-XXXXXX", path[64], line[96];
	RUN run = {0};

	(void)state;
	assert_non_null(mkdtemp(directory));
	snprintf(path, sizeof(path), "%s/a.txt", directory);
	assert_int_equal(mkdir(path, 0700), 0);
	snprintf(line, sizeof(line), "-o %s", path);
	run_line(&run, line);
	assert_int_equal(rmdir(path), 0);
	assert_int_equal(rmdir(directory), 0);
	assert_int_equal(run.result, 0);
	assert_int_equal(run.options.output_kind, OPTIONS_OUTPUT_DIRECTORY);
}

static void options_parse__events_follow_the_list_or_else_the_output(void **state)
{
	static const struct {
		const char *line;
		uint32_t events;
	} cases[] = {
		/* A directory holds all kinds, a file one. */
		{"-o /tmp", PP_CAPTURES_DEFAULT},
		{"-o no", PP_CAPTURES_DEFAULT},
		{"-o /no/such/directory/", PP_CAPTURES_DEFAULT},
		{"-d 5", PP_CAPTURES_DEFAULT},
		{"-o cpu.pb.gz", PP_CAPTURE_CPU},
		{"-o a.folded", PP_CAPTURE_CPU},
		{"-o -", PP_CAPTURE_CPU},
		/* Without breakpoints there are no gc, import and cuda. */
		{"--probes no",
		 PP_CAPTURE_CPU | PP_CAPTURE_OFFCPU | PP_CAPTURE_GIL | PP_CAPTURE_MEM},
		/* Waits have no cycles. */
		{"--set capture.clock=cycles", PP_CAPTURE_CPU},
		{"--set capture.clock=cycles -o a.pb.gz", PP_CAPTURE_CPU},
		/* A list wins. */
		{"--events cpu", PP_CAPTURE_CPU},
		{"--events cpu --set capture.clock=cycles -o /tmp", PP_CAPTURE_CPU},
		{"--events offcpu -p 1 -d 5 -o a.pb.gz", PP_CAPTURE_OFFCPU},
		{"--events gil -p 1 -d 5 -o a.pb.gz", PP_CAPTURE_GIL},
		{"--events gil -o -", PP_CAPTURE_GIL},
		{"--events offcpu -o a.folded", PP_CAPTURE_OFFCPU},
		{"--events gil,cpu", PP_CAPTURE_CPU | PP_CAPTURE_GIL},
		{"--events cpu,offcpu,gil -o profiles/",
		 PP_CAPTURE_CPU | PP_CAPTURE_OFFCPU | PP_CAPTURE_GIL},
		/* Wherever it stands; the later one wins, as with other options. */
		{"-o profiles/ --events gil,offcpu", PP_CAPTURE_OFFCPU | PP_CAPTURE_GIL},
		{"--events cpu,gil --events offcpu -o a.pb.gz", PP_CAPTURE_OFFCPU},
		/* Twice is once. */
		{"--events offcpu,offcpu -o a.pb.gz", PP_CAPTURE_OFFCPU},
		{"--events cpu,gil,cpu", PP_CAPTURE_CPU | PP_CAPTURE_GIL},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		RUN run = {0};

		run_line(&run, cases[i].line);
		if (run.result || run.options.events != cases[i].events)
			fail_msg("'%s': %d, events %u: %s", cases[i].line, run.result,
				 run.options.events, run.err);
	}
}

static void options_parse__wakers_come_with_waits(void **state)
{
	static const struct {
		const char *line;
		uint32_t events;
	} cases[] = {
		{"--events wakers", PP_CAPTURE_OFFCPU | PP_CAPTURE_WAKERS},
		{"--events cpu,wakers", PP_CAPTURE_CPU | PP_CAPTURE_OFFCPU | PP_CAPTURE_WAKERS},
		{"--events wakers -o a.pb.gz", PP_CAPTURE_OFFCPU | PP_CAPTURE_WAKERS},
		{"--events wakers,offcpu -o a.folded", PP_CAPTURE_OFFCPU | PP_CAPTURE_WAKERS},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		RUN run = {0};

		run_line(&run, cases[i].line);
		assert_int_equal(run.result, 0);
		assert_int_equal(run.options.events, cases[i].events);
	}
}

static void options_parse__ending_of_a_timeline_is_its_format(void **state)
{
	static const struct {
		const char *line;
		enum options_timeline kind;
		uint64_t max_bytes;
	} cases[] = {
		{"--timeline a.pftrace", OPTIONS_TIMELINE_PERFETTO, 256ULL << 20},
		{"--timeline a.json/b.perfetto-trace", OPTIONS_TIMELINE_PERFETTO, 256ULL << 20},
		{"--timeline=a.pb --set capture.timeline-max=1M", OPTIONS_TIMELINE_PERFETTO,
		 1ULL << 20},
		{"--timeline a.json --set capture.timeline-max=2G", OPTIONS_TIMELINE_CHROME,
		 2ULL << 30},
		{"--timeline a.pb.json.gz", OPTIONS_TIMELINE_CHROME_GZ, 256ULL << 20},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		RUN run = {0};

		run_line(&run, cases[i].line);
		assert_int_equal(run.result, 0);
		assert_non_null(run.options.timeline);
		assert_int_equal(run.options.timeline_kind, cases[i].kind);
		assert_int_equal(run.options.timeline_max_bytes, cases[i].max_bytes);
	}
}

static void options_parse__offcpu_min_is_in_microseconds(void **state)
{
	static const struct {
		const char *line;
		uint64_t ns;
	} cases[] = {
		{"--set capture.offcpu-min=0", 0},
		{"--set capture.offcpu-min=1", 1000},
		{"--set capture.offcpu-min=1000000", 1000000000},
		{"--set capture.offcpu-min=50 --events offcpu -o a.pb.gz", 50000},
		{"--events gil --set capture.offcpu-min=50 -o a.pb.gz", 50000},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		RUN run = {0};

		run_line(&run, cases[i].line);
		assert_int_equal(run.result, 0);
		assert_int_equal(run.options.offcpu_min_ns, cases[i].ns);
	}
}

static void events__each_is_taken_by_its_name_and_named_by_help(void **state)
{
#define EVENT_ROW(id, text, ...) {PP_CAPTURE_##id, text},
	static const struct {
		uint32_t bit;
		const char *name;
	} row[] = {PP_CAPTURES(EVENT_ROW, EVENT_ROW)};
	char line[CAPTURE_NAMES_CHARS + 100], all[CAPTURE_NAMES_CHARS];
	RUN help = {0}, every = {0};

	(void)state;
	run_line(&help, "--help");
	for (size_t i = 0; i < ARRAY_SIZE(row); i++) {
		RUN run = {0};

		/* What those that slow programs down need, and what is probed. */
		snprintf(line, sizeof(line), "--events %s -p 1 -d 1%s", row[i].name,
			 row[i].bit == PP_CAPTURE_PROBE	  ? A_PROBE
			 : row[i].bit == PP_CAPTURE_LINES ? " --lines a.py"
							  : "");
		run_line(&run, line);
		assert_int_equal(run.result, 0);
		assert_int_equal(run.options.events,
				 row[i].bit |
					 (row[i].bit == PP_CAPTURE_WAKERS ? PP_CAPTURE_OFFCPU : 0));
		assert_non_null(strstr(help.out, row[i].name));
	}
	/* Calls and lines exclude each other. */
	capture_names(PP_CAPTURES_ALL & ~PP_CAPTURE_LINES, ",", all);
	snprintf(line, sizeof(line), "--events %s -o x/ -p 1 -d 1" A_PROBE, all);
	run_line(&every, line);
	assert_int_equal(every.result, 0);
	assert_int_equal(every.options.events, PP_CAPTURES_ALL & ~PP_CAPTURE_LINES);
}

static void options_parse__errors_are_one_line_that_names_thing_and_fix(void **state)
{
	static const struct {
		const char *line, *message;
	} cases[] = {
		{"--hz 0", "--hz '0' is out of range: give a whole number from 1 to 10000"},
		{"-F 10001", "--hz '10001' is out of range: give a whole number from 1 to 10000"},
		{"--hz=-5", "--hz '-5' is out of range: give a whole number from 1 to 10000"},
		{"--hz 9x", "--hz '9x' is out of range: give a whole number from 1 to 10000"},
		{"--hz 99999999999999999999", "--hz '99999999999999999999' is out of range: give a "
					      "whole number from 1 to 10000"},
		{"--hz ''", "--hz '' is out of range: give a whole number from 1 to 10000"},
		{"--set capture.clock=wall",
		 "--set capture.clock 'wall' is not known: give cpu or cycles"},
		{"--events cpu,wall",
		 "--events 'wall' is not known: the known events are: " CAPTURES_TEXT},
		{"--events off",
		 "--events 'off' is not known: the known events are: " CAPTURES_TEXT},
		{"--events offcpus",
		 "--events 'offcpus' is not known: the known events are: " CAPTURES_TEXT},
		{"--events CPU",
		 "--events 'CPU' is not known: the known events are: " CAPTURES_TEXT},
		{"--events cpu,", "--events '' is not known: the known events are: " CAPTURES_TEXT},
		{"--events ''", "--events '' is not known: the known events are: " CAPTURES_TEXT},
		{"--events cpu,offcpu -o a.pb.gz", "--events cpu,offcpu makes several profiles: "
						   "give a directory with --output, as in -o "
						   "profiles/\n"},
		{"-o - --events gil,offcpu,cpu", "--events cpu,offcpu,gil makes several profiles: "
						 "give a directory with --output, as in "
						 "-o profiles/\n"},
		{"-o a.folded --events gil,offcpu", "--events offcpu,gil makes several profiles: "
						    "give a directory with --output, as in -o "
						    "profiles/\n"},
		{"--set capture.clock=cycles --events offcpu -o a.pb.gz",
		 "--set capture.clock cycles and --events offcpu exclude each other: waits are "
		 "measured in "
		 "time\n"},
		{"--events cpu,gil --set capture.clock=cycles",
		 "--set capture.clock cycles and --events gil exclude each "
		 "other: waits are measured in time\n"},
		{"--events cpu,offcpu,gil --set capture.clock=cycles",
		 "--set capture.clock cycles and --events offcpu,gil exclude each other: waits are "
		 "measured in "
		 "time\n"},
		{"--set capture.clock=cycles --timeline a.json -o a.pb.gz",
		 "--set capture.clock cycles and --timeline exclude each other: a cycle counter's "
		 "interrupt in "
		 "a "
		 "context switch could lock the CPU up\n"},
		{"--timeline a.pftrace --set capture.clock=cycles --events cpu -o no",
		 "--set capture.clock cycles and --timeline exclude each other: a cycle counter's "
		 "interrupt in "
		 "a "
		 "context switch could lock the CPU up\n"},
		{"--set capture.offcpu-min=1000001",
		 "--set capture.offcpu-min '1000001' is out of range: give whole microseconds, 0 "
		 "to 1000000\n"},
		{"--set capture.offcpu-min=1ms", "--set capture.offcpu-min '1ms' is out of range: "
						 "give whole microseconds, 0 to 1000000\n"},
		{"--set capture.offcpu-min=-1", "--set capture.offcpu-min '-1' is out of range: "
						"give whole microseconds, 0 to 1000000\n"},
		{"--set capture.offcpu-min=0.5", "--set capture.offcpu-min '0.5' is out of range: "
						 "give whole microseconds, 0 to 1000000\n"},
		{"--timeline run.txt",
		 "--timeline 'run.txt': the ending tells the format: .pftrace, "
		 ".perfetto-trace, .pb, .json or .json.gz\n"},
		{"--timeline .json", "--timeline '.json': the ending tells the format: .pftrace, "
				     ".perfetto-trace, .pb, .json or .json.gz\n"},
		{"--timeline a.json --set capture.timeline-max=1K",
		 "--set capture.timeline-max '1K' is out of range: give 1M or more, up to 1024T\n"},
		{"--set capture.timeline-max=64M",
		 "--set capture.timeline-max needs a timeline: give --timeline FILE\n"},
		{"--set capture.offcpu-min=10 -o a.pb.gz",
		 "--set capture.offcpu-min needs waits to leave out: give --events offcpu or "
		 "--events gil\n"},
		{"--set capture.offcpu-min=0 --events cpu",
		 "--set capture.offcpu-min needs waits to leave out: give --events offcpu or "
		 "--events gil\n"},
		{"--set capture.offcpu-min=10 --set capture.clock=cycles",
		 "--set capture.offcpu-min needs waits to leave out: give --events offcpu or "
		 "--events gil\n"},
		{"-p 0", "--pid '0' is not a process id: give numbers, as in --pid 12,34"},
		{"-p 1,,2", "--pid '' is not a process id: give numbers, as in --pid 12,34"},
		{"-p 4294967297",
		 "--pid '4294967297' is not a process id: give numbers, as in --pid 12,34"},
		{"--comm [", "--comm '[' is not a regular expression: "},
		{"--comm ''", "--comm is empty: give an extended regular expression"},
		{"--uid no-such-user-here", "--uid 'no-such-user-here' is not a user of this "
					    "machine: give a number or a name"},
		{"-d 0", "--duration '0' is out of range: give more than 0, up to 366 days"},
		{"-d 10w", "--duration '10w' is not a time: give seconds, or 500ms, 10s, 2m, 1h"},
		{"-d -1", "--duration '-1' is not a time: give seconds, or 500ms, 10s, 2m, 1h"},
		{"-d nan", "--duration 'nan' is not a time: give seconds, or 500ms, 10s, 2m, 1h"},
		{"-d 9999999h",
		 "--duration '9999999h' is out of range: give more than 0, up to 366 "
		 "days"},
		{"--interval 10ms", "--interval '10ms' is out of range: give 100ms to 10m"},
		{"--store-max 5", "--store-max '5' is out of range: give 1M or more, up to 1024T"},
		{"--store-max lots",
		 "--store-max 'lots' is not a size: give bytes, or 64K, 200M, 2G"},
		{"--set store.age=59s",
		 "--set store.age '59s' is out of range: give 1m up to 366 days"},
		{"--set store.age=367d",
		 "--set store.age '367d' is out of range: give 1m up to 366 days"},
		{"--set store.age=old",
		 "--set store.age 'old' is not a time: give seconds, or 500ms, 10s, 2m, 1h"},
		{"--max-memory 1M",
		 "--max-memory '1M' is out of range: give 16M or more, up to 1024T"},
		{"--max-cpu 0.09",
		 "--max-cpu '0.09' is out of range: give percent of one core, 0.1 to 4000"},
		{"--max-cpu 4001",
		 "--max-cpu '4001' is out of range: give percent of one core, 0.1 to 4000"},
		{"--max-cpu 1x",
		 "--max-cpu '1x' is out of range: give percent of one core, 0.1 to 4000"},
		{"--max-slowdown 0.01%",
		 "--max-slowdown '0.01%' is out of range: give percent of "},
		{"--max-slowdown 0.5x", "--max-slowdown '0.5x' is out of range: give percent of "},
		{"--frames python,nativ", "--frames 'nativ' is not known: give python, native, "
					  "kernel or interpreter\n"},
		{"--frames ''", "--frames '' is not known: give python, native, kernel or "
				"interpreter\n"},
		{"--clock cpu", "'--clock' is no option: it is a setting of the configuration, for "
				"--set too\n"},
		{"--set capture.as-root=yes -p 1",
		 "--set capture.as-root needs a command to run: give -- COMMAND"},
		{"-o ''", "--output is empty: give a file, a directory or -"},
		{"--cgroup ''", "--cgroup is empty: give a path"},
		{"--nosuch", "unknown option '--nosuch'; pyprofd --help lists all"},
		{"-v --nosuch=3 -q", "unknown option '--nosuch'; pyprofd --help lists all"},
		{"-z", "unknown option '-z'; pyprofd --help lists all"},
		{"-v -qz1 -q", "unknown option '-z'; pyprofd --help lists all"},
		{"-q -zq", "unknown option '-z'; pyprofd --help lists all"},
		{"--c", "'--c' may mean --comm or --cgroup"},
		{"--hz", "--hz needs a value: --hz N"},
		{"-v -qd", "-d needs a value: -d TIME"},
		{"--doctor=1", "--doctor takes no value"},
		{"python3 x.py", "'python3' is not an option; to profile a command write: "
				 "pyprofd [OPTION...] -- python3"},
		{"-v --", "no command after --: write pyprofd [OPTION...] -- COMMAND [ARG...]"},
		{"-- ''", "the command after -- is empty"},
		{"-p 1 -- true", "--pid and -- COMMAND exclude each other: leave one out"},
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		RUN run = {.options.hz = 12345};
		size_t size = strlen(cases[i].message);

		run_line(&run, cases[i].line);
		assert_int_equal(run.result, -EINVAL);
		assert_memory_equal(run.err, "pyprofd: ", 9);
		if (strncmp(run.err + 9, cases[i].message, size))
			fail_msg("'%s' printed '%s'", cases[i].line, run.err);
		/* One line, whole. */
		assert_ptr_equal(strchr(run.err, '\n'), strrchr(run.err, '\n'));
		assert_int_equal(run.err[strlen(run.err) - 1], '\n');
		assert_string_equal(run.out, "");
		/* Untouched on failure. */
		assert_int_equal(run.options.hz, 12345);
	}
}

static void options_parse__too_many_pids_are_refused(void **state)
{
	static char list[16384];
	char *argv[] = {(char *)"pyprofd", (char *)"-p", list, NULL};
	struct options options = {0};
	char *text = NULL;
	size_t size, used = 0;
	struct options_streams streams = {.out = stdout, .err = open_memstream(&text, &size)};

	(void)state;
	for (int i = 1; i <= 1025; i++)
		used += (size_t)snprintf(list + used, sizeof(list) - used, "%s%d", i > 1 ? "," : "",
					 i);
	assert_int_equal(options_parse_to(&streams, 3, argv, &options), -EINVAL);
	fclose(streams.err);
	assert_string_equal(text,
			    "pyprofd: --pid names more than 1024 processes: select by --comm, "
			    "--cgroup or --uid\n");
	free(text);
}

static void options_parse__help_names_every_option(void **state)
{
	static const char *const names[] = {
		"-F, --hz=N",
		"-p, --pid=PID[,PID...]",
		"--comm=REGEX",
		"--cgroup=PATH",
		"--uid=USER[,USER...]",
		"-d, --duration=TIME",
		"--delay=TIME",
		"--interval=TIME",
		"--events=LIST",
		"--timeline=FILE",
		"--events offcpu",
		"--events gil",
		"-o, --output=FILE|DIR|-",
		"--store-max=SIZE",
		"--frames=LIST",
		"--max-memory=SIZE",
		"--max-cpu=PCT",
		"--max-slowdown=PCT|Nx",
		"-v, --verbose",
		"-q, --quiet",
		"-V, --version",
		"--help",
		"-- COMMAND",
		"Examples:",
	};
	RUN run = {0};

	(void)state;
	run_line(&run, "--help --hz 0");
	assert_int_equal(run.result, 1);
	assert_string_equal(run.err, "");
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		if (!strstr(run.out, names[i]))
			fail_msg("--help does not name %s:\n%s", names[i], run.out);
	}
}

static void options_parse__version_is_one_line(void **state)
{
	RUN run = {0};

	(void)state;
	run_line(&run, "-V");
	assert_int_equal(run.result, 1);
	assert_memory_equal(run.out, "pyprofd ", 8);
	assert_ptr_equal(strchr(run.out, '\n'), run.out + strlen(run.out) - 1);
}

static void options_parse_duration__units_and_rounding(void **state)
{
	static const struct {
		const char *text;
		int result;
		uint64_t ns;
	} cases[] = {
		{"5", 0, 5000000000ULL},
		{"0.5", 0, 500000000ULL},
		{".25s", 0, 250000000ULL},
		{"500ms", 0, 500000000ULL},
		{"10us", 0, 10000ULL},
		{"2m", 0, 120000000000ULL},
		{"1.5h", 0, 5400000000000ULL},
		{"0", 0, 0},
		{"0.1", 0, 100000000ULL},
		{"8784h", 0, 31622400000000000ULL},
		{"8785h", -ERANGE, 0},
		{"1e3", -EINVAL, 0},
		{"", -EINVAL, 0},
		{".", -EINVAL, 0},
		{"s", -EINVAL, 0},
		{"1.2.3", -EINVAL, 0},
		{" 5", -EINVAL, 0},
		{"5 s", -EINVAL, 0},
		{"5sec", -EINVAL, 0},
		{"+5", -EINVAL, 0},
		{"inf", -EINVAL, 0},
	};
	uint64_t ns;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		ns = 0;
		if (options_parse_duration(cases[i].text, &ns) != cases[i].result)
			fail_msg("'%s'", cases[i].text);
		assert_int_equal(ns, cases[i].ns);
	}
}

static void options_parse_duration__endless_digits_end(void **state)
{
	char digits[2048];
	uint64_t ns = 7;

	(void)state;
	memset(digits, '9', sizeof(digits));
	digits[sizeof(digits) - 1] = '\0';
	assert_int_equal(options_parse_duration(digits, &ns), -EINVAL);
	digits[0] = '.';
	assert_int_equal(options_parse_duration(digits, &ns), -EINVAL);
	assert_int_equal(ns, 7);
}

static void options_parse_size__suffixes_are_powers_of_1024(void **state)
{
	static const struct {
		const char *text;
		int result;
		uint64_t bytes;
	} cases[] = {
		{"0", 0, 0},
		{"4096", 0, 4096},
		{"4096B", 0, 4096},
		{"64K", 0, 65536},
		{"64k", 0, 65536},
		{"200M", 0, 209715200},
		{"200MB", 0, 209715200},
		{"1.5GiB", 0, 1610612736},
		{"1T", 0, 1099511627776ULL},
		{"1024T", 0, 1125899906842624ULL},
		{"1025T", -ERANGE, 0},
		{"", -EINVAL, 0},
		{"M", -EINVAL, 0},
		{"5X", -EINVAL, 0},
		{"5MM", -EINVAL, 0},
		{"5 M", -EINVAL, 0},
		{"-5M", -EINVAL, 0},
	};
	uint64_t bytes;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		bytes = 0;
		if (options_parse_size(cases[i].text, &bytes) != cases[i].result)
			fail_msg("'%s'", cases[i].text);
		assert_int_equal(bytes, cases[i].bytes);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(options_parse__nothing_given_is_the_whole_machine_at_99),
		cmocka_unit_test(options_parse__every_long_option_lands_in_its_field),
		cmocka_unit_test(options_parse__letters_and_repetition),
		cmocka_unit_test(options_parse__a_command_keeps_its_own_options),
		cmocka_unit_test(options_parse__a_command_is_roots_where_asked_for),
		cmocka_unit_test(options_parse__output_kind_follows_the_name),
		cmocka_unit_test(options_parse__a_directory_called_txt_is_a_directory),
		cmocka_unit_test(options_parse__events_follow_the_list_or_else_the_output),
		cmocka_unit_test(options_parse__offcpu_min_is_in_microseconds),
		cmocka_unit_test(options_parse__ending_of_a_timeline_is_its_format),
		cmocka_unit_test(options_parse__wakers_come_with_waits),
		cmocka_unit_test(events__each_is_taken_by_its_name_and_named_by_help),
		cmocka_unit_test(options_parse__errors_are_one_line_that_names_thing_and_fix),
		cmocka_unit_test(options_parse__too_many_pids_are_refused),
		cmocka_unit_test(options_parse__help_names_every_option),
		cmocka_unit_test(options_parse__version_is_one_line),
		cmocka_unit_test(options_parse_duration__units_and_rounding),
		cmocka_unit_test(options_parse_duration__endless_digits_end),
		cmocka_unit_test(options_parse_size__suffixes_are_powers_of_1024),
	};

	return cmocka_run_group_tests_name("agent/options", tests, NULL, NULL);
}
