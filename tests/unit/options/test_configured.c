/* SPDX-License-Identifier: BSD-2-Clause */
/* Options out of a configuration file, --set and the command line. */
#include <cmocka.h>
#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "options/options.h"

#define MAX_WORDS 64

struct run {
	struct options options;
	char *argv[MAX_WORDS + 1];
	char words[1024];
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

static void write_config(const char *text, mode_t mode)
{
	FILE *file = fopen("c.conf", "w");

	assert_non_null(file);
	fputs(text, file);
	fclose(file);
	chmod("c.conf", mode);
}

/* Parses "pyprofd " and the words of `line`. */
static void run_line(struct run *run, const char *line)
{
	size_t out_size, err_size;
	struct options_streams streams = {
		.out = open_memstream(&run->out, &out_size),
		.err = open_memstream(&run->err, &err_size),
	};
	char *rest = run->words, *word;
	int argc = 0;

	snprintf(run->words, sizeof(run->words), "pyprofd %s", line);
	while ((word = strsep(&rest, " ")) && argc < MAX_WORDS)
		run->argv[argc++] = word;
	run->argv[argc] = NULL;
	run->result = options_parse_to(&streams, argc, run->argv, &run->options);
	fclose(streams.out);
	fclose(streams.err);
}

static void expect_error(const char *config, const char *line, const char *said)
{
	RUN run = {0};

	write_config(config, 0600);
	run_line(&run, line);
	assert_int_equal(run.result, -EINVAL);
	assert_string_equal(run.err, said);
}

static void file__every_key_lands_in_its_field(void **state)
{
	RUN run = {0};

	(void)state;
	write_config("[capture]\nhz=7\nclock=cpu\nevents=wakers\noffcpu-min=5\nas-root=no\n"
		     "pid=1,2\npid=3\ncomm=^py\ncgroup=/a\nuid=0\nduration=9\ndelay=2\n"
		     "interval=1m\ntimeline=/t.json\ntimeline-max=2M\nlive=no\nlive-user=7\n"
		     "serve=no\nframes=python\nframes=interpreter\nmax-memory=64M\n"
		     "max-cpu=2\nmax-slowdown=3x\nverbose=yes\nquiet=no\n"
		     "[store]\npath=/s/\nmax=3M\nage=2m\n",
		     0600);
	run_line(&run, "--config c.conf");
	assert_string_equal(run.err, "");
	assert_int_equal(run.result, 0);
	assert_int_equal(run.options.hz, 7);
	assert_int_equal(run.options.events, PP_CAPTURE_OFFCPU | PP_CAPTURE_WAKERS);
	assert_int_equal(run.options.offcpu_min_ns, 5000);
	assert_true(run.options.no_kernel && run.options.no_native && run.options.raw &&
		    run.options.verbose && !run.options.quiet);
	assert_int_equal(run.options.pid_count, 3);
	assert_string_equal(run.options.comm, "^py");
	assert_string_equal(run.options.cgroup, "/a");
	assert_int_equal(run.options.uid_count, 1);
	assert_int_equal(run.options.duration_ns, 9000000000ULL);
	assert_int_equal(run.options.delay_ns, 2000000000ULL);
	assert_int_equal(run.options.interval_ns, 60000000000ULL);
	assert_string_equal(run.options.timeline, "/t.json");
	assert_int_equal(run.options.timeline_max_bytes, 2 << 20);
	assert_null(run.options.live);
	assert_string_equal(run.options.live_user, "7");
	assert_true(run.options.no_serve);
	assert_int_equal(run.options.budget_bytes, 64 << 20);
	assert_int_equal(run.options.max_cpu_ppm, 20000);
	assert_int_equal(run.options.slowdown_ppm, 2000000);
	assert_string_equal(run.options.output, "/s/");
	assert_int_equal(run.options.store_max_bytes, 3 << 20);
	assert_int_equal(run.options.store_max_age_ns, 120000000000ULL);
}

static void command_line__goes_before_set_and_file(void **state)
{
	RUN run = {0};

	(void)state;
	write_config("[capture]\nhz=7\ninterval=1m\npid=1,2\nuid=0\n[store]\nmax=3M\n", 0600);
	run_line(&run, "-F 8 --set capture.interval=2m --pid 5 -p 6 --set capture.hz=9 --config "
		       "c.conf");
	assert_int_equal(run.result, 0);
	assert_int_equal(run.options.hz, 8);
	assert_int_equal(run.options.interval_ns, 120000000000ULL);
	assert_int_equal(run.options.pid_count, 2);
	assert_int_equal(run.options.pid[0], 5);
	assert_int_equal(run.options.pid[1], 6);
	assert_int_equal(run.options.uid_count, 1);
	assert_int_equal(run.options.store_max_bytes, 3 << 20);
}

static void path__of_the_store_is_a_directory(void **state)
{
	RUN run = {0};
	RUN line = {0};

	(void)state;
	write_config("[store]\npath=fresh\n", 0600);
	run_line(&run, "--config c.conf");
	assert_int_equal(run.options.output_kind, OPTIONS_OUTPUT_DIRECTORY);
	run_line(&line, "--config c.conf -o fresh");
	assert_int_equal(line.options.output_kind, OPTIONS_OUTPUT_PPROF);
}

static void command__words_are_not_ours(void **state)
{
	RUN run = {0};

	(void)state;
	run_line(&run, "-o x.pb.gz -- prog --config /nowhere --set x --doctor");
	assert_int_equal(run.result, 0);
	assert_string_equal(run.options.command[1], "--config");
}

static void errors__name_file_and_line(void **state)
{
	(void)state;
	expect_error("[capture]\n\nhz=0\n", "--config c.conf",
		     "pyprofd: c.conf:3: hz '0' is out of range: give a whole number from 1 to "
		     "10000\n");
	expect_error("[store]\nmax=5\n", "--config c.conf",
		     "pyprofd: c.conf:2: max '5' is out of range: give 1M or more, up to 1024T\n");
	expect_error("[capture]\nleaks=maybe\n", "--config c.conf",
		     "pyprofd: c.conf:2: leaks 'maybe' is not known: give yes or no\n");
	expect_error("[capture]\nhzz=1\n", "--config c.conf --hz 5",
		     "pyprofd: c.conf:2: [capture] has no key 'hzz'; did you mean 'hz'?\n");
	expect_error("[http]\nlisten=x\n", "--config c.conf",
		     "pyprofd: c.conf:2: listen 'x' is no address to listen at: give ADDRESS:PORT, "
		     "[ADDRESS]:PORT, :PORT or unix:/PATH\n");
	expect_error("[push a]\ntype=parca\n", "--config c.conf",
		     "pyprofd: c.conf:1: [push a] needs url=\n");
}

static void errors__between_options_name_the_line_of_the_first(void **state)
{
	(void)state;
	expect_error("[capture]\ntimeline-max=5M\n", "--config c.conf",
		     "pyprofd: c.conf:2: timeline-max needs a timeline: give --timeline FILE\n");
	expect_error("[capture]\nhz=5\n", "--config c.conf --probes no --events gc",
		     "pyprofd: --probes no and --events gc exclude each other: leave one out\n");
	expect_error("", "--max-cpu 0",
		     "pyprofd: --max-cpu '0' is out of range: give percent of one core, 0.1 to "
		     "4000\n");
}

static void errors__of_set_name_the_setting(void **state)
{
	(void)state;
	expect_error("", "--set capture.interval=1ms",
		     "pyprofd: --set capture.interval '1ms' is out of range: give 100ms to 10m\n");
	expect_error("", "--set capture.intervall=1ms",
		     "pyprofd: --set capture.intervall: [capture] has no key 'intervall'; did you "
		     "mean 'interval'?\n");
}

static void missing__file_is_an_error_but_for_the_services(void **state)
{
	RUN run = {0};

	(void)state;
	expect_error("", "--config none.conf", "pyprofd: none.conf: No such file or directory\n");
	if (!access(OPTIONS_CONFIG_DEFAULT, F_OK))
		skip();
	run_line(&run, "--config " OPTIONS_CONFIG_DEFAULT);
	assert_int_equal(run.result, 0);
	assert_true(run.options.config_is_missing);
}

static void help__does_not_care_for_the_file(void **state)
{
	RUN run = {0};

	(void)state;
	run_line(&run, "--config none.conf --hz 5 --version");
	assert_int_equal(run.result, 1);
	assert_string_equal(run.err, "");
}

static void config_print__shows_all_with_origins(void **state)
{
	RUN run = {0};
	OWNED_MEM char *text = NULL;
	size_t size;
	FILE *file = open_memstream(&text, &size);

	(void)state;
	write_config("[capture]\nhz=7\n", 0600);
	run_line(&run, "--config c.conf --doctor -o x/ --events gil,cpu --pid 3 -p 4");
	assert_int_equal(run.result, 0);
	assert_string_equal(run.err, "");
	assert_int_equal(config_print(run.options.config, file), 0);
	fclose(file);
	assert_non_null(strstr(text, "hz           = 7 ; c.conf:2\n"));
	assert_non_null(strstr(text, "events       = gil,cpu ; command line\n"));
	assert_non_null(strstr(text, "pid          = 3,4 ; command line\n"));
	assert_non_null(strstr(text, "path         = x/ ; command line\n"));
	assert_non_null(strstr(text, "live         = /run/pyprofd/live.sock ; default\n"));
}

/* What a default says in the table is what the options begin with. */
static void config_print__defaults_are_the_options_own(void **state)
{
	RUN given = {0};
	RUN none = {0};
	char line[512] = "";
	size_t count;

	(void)state;
	for (enum config_kind kind = CONFIG_CAPTURE; kind <= CONFIG_STORE; kind++) {
		const struct config_key *key = config_keys(kind, &count);

		for (size_t i = 0; i < count; i++) {
			if (!key[i].fallback[0])
				continue;
			snprintf(strchr(line, '\0'), sizeof(line) - strlen(line),
				 "%s--set %s.%s=%s", line[0] ? " " : "", config_kind_name(kind),
				 key[i].name, key[i].fallback);
		}
	}
	run_line(&none, "-o /var/lib/pyprofd/");
	snprintf(strchr(line, '\0'), sizeof(line) - strlen(line), " -o /var/lib/pyprofd/");
	run_line(&given, line);
	assert_string_equal(given.err, "");
	assert_int_equal(given.options.hz, none.options.hz);
	assert_int_equal(given.options.clock, none.options.clock);
	assert_int_equal(given.options.interval_ns, none.options.interval_ns);
	assert_int_equal(given.options.delay_ns, none.options.delay_ns);
	assert_int_equal(given.options.budget_bytes, none.options.budget_bytes);
	assert_int_equal(given.options.store_max_bytes, none.options.store_max_bytes);
	assert_int_equal(given.options.store_max_age_ns, none.options.store_max_age_ns);
	assert_false(given.options.leaks || given.options.raw || given.options.no_kernel ||
		     given.options.no_native || given.options.verbose || given.options.quiet);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(file__every_key_lands_in_its_field),
		cmocka_unit_test(command_line__goes_before_set_and_file),
		cmocka_unit_test(path__of_the_store_is_a_directory),
		cmocka_unit_test(command__words_are_not_ours),
		cmocka_unit_test(errors__name_file_and_line),
		cmocka_unit_test(errors__between_options_name_the_line_of_the_first),
		cmocka_unit_test(errors__of_set_name_the_setting),
		cmocka_unit_test(missing__file_is_an_error_but_for_the_services),
		cmocka_unit_test(help__does_not_care_for_the_file),
		cmocka_unit_test(config_print__shows_all_with_origins),
		cmocka_unit_test(config_print__defaults_are_the_options_own),
	};
	char directory[] = "/tmp/test_configured.XXXXXX";
	int failed;

	if (!mkdtemp(directory) || chdir(directory))
		return 1;
	failed = cmocka_run_group_tests(tests, NULL, NULL);
	unlink("c.conf");
	(void)!chdir("/");
	rmdir(directory);
	return failed;
}
