/* SPDX-License-Identifier: BSD-2-Clause */
#include "agent/reload.h"

#include <cmocka.h>
#include <poll.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "agent/rate.h"
#include "options/options.h"
#include "store/output.h"

static struct {
	uint64_t max_bytes, max_age_ns;
} store;

void output_set_limits(struct output *output, uint64_t max_bytes, uint64_t max_age_ns)
{
	(void)output;
	store.max_bytes = max_bytes;
	store.max_age_ns = max_age_ns;
}

/* As for a directory. */
bool rate_can_be(const struct rate *rate, uint32_t hz)
{
	return hz <= rate->start_hz * RATE_GROWTH_MAX;
}

void rate_ask(struct rate *rate, uint32_t hz, uint32_t max_cpu_ppm)
{
	rate->asked_hz = hz;
	rate->cap_ppm = max_cpu_ppm;
}

struct run {
	struct options options;
	struct reload *reload;
	struct rate rate;
	unsigned int served; /* how often pyprofd-serve was to begin again */
};

static void run_release(struct run *run)
{
	reload_free(run->reload);
	options_release(&run->options);
}
#define RUN CLEANUP(run_release) struct run

static void write_config(const char *text)
{
	FILE *file = fopen("c.conf", "w");

	assert_non_null(file);
	fputs(text, file);
	fclose(file);
	chmod("c.conf", 0600);
}

static void begin(struct run *run, const char *text)
{
	static char *words[] = {(char *)"pyprofd", (char *)"--config", (char *)"c.conf", NULL};

	write_config(text);
	assert_int_equal(options_parse(3, words, &run->options), 0);
	assert_int_equal(reload_new(&run->options, &run->reload), 0);
	run->rate = (struct rate){
		.options = &run->options, .start_hz = run->options.hz, .asked_hz = run->options.hz};
	store.max_bytes = 0;
}

static void serve_again(void *context, const struct config *config)
{
	struct run *run = context;

	assert_non_null(config);
	run->served++;
}

static bool finish(struct run *run)
{
	const struct reload_targets targets = {
		.rate = &run->rate, .serve_again = serve_again, .context = run};
	struct pollfd ready = {.fd = reload_fd(run->reload), .events = POLLIN};

	assert_int_equal(poll(&ready, 1, 30000), 1);
	return reload_finish(run->reload, &targets);
}

static void reload_to(struct run *run, const char *text)
{
	write_config(text);
	reload_begin(run->reload);
	assert_true(finish(run));
}

static void reload__takes_over_what_can_change(void **state)
{
	RUN run = {};

	(void)state;
	begin(&run, "[capture]\nhz=49\n");
	reload_to(&run, "[capture]\nhz=99\ninterval=1m\nquiet=yes\nevents=cpu\nmax-cpu=2\n"
			"[store]\nmax=3M\nage=1h\n");
	assert_int_equal(run.rate.asked_hz, 99);
	assert_int_equal(run.rate.cap_ppm, 20000);
	assert_int_equal(run.options.interval_ns, 60000000000ULL);
	assert_true(run.options.quiet);
	assert_int_equal(store.max_bytes, 3 << 20);
	assert_int_equal(store.max_age_ns, 3600000000000ULL);
	/* Only a restart changes these. */
	assert_int_equal(run.options.events, PP_CAPTURES_DEFAULT);
	/* What is left out goes back to its default. */
	reload_to(&run, "");
	assert_int_equal(run.options.interval_ns, OPTIONS_INTERVAL_DEFAULT_NS);
	assert_int_equal(store.max_bytes, OPTIONS_STORE_DEFAULT_BYTES);
	assert_int_equal(run.rate.asked_hz, OPTIONS_HZ_DEFAULT);
}

static void reload__broken_file_changes_nothing(void **state)
{
	RUN run = {};

	(void)state;
	begin(&run, "[capture]\nhz=49\n");
	reload_to(&run, "[capture]\nhz=99\ninterval=1m\nintervall=5\n");
	assert_int_equal(run.rate.asked_hz, 49);
	assert_int_equal(run.options.interval_ns, OPTIONS_INTERVAL_DEFAULT_NS);
	assert_int_equal(store.max_bytes, 0);
	unlink("c.conf");
	reload_begin(run.reload);
	assert_true(finish(&run));
	assert_int_equal(run.rate.asked_hz, 49);
}

static void reload__rate_beyond_the_tables_waits_for_a_restart(void **state)
{
	RUN run = {};

	(void)state;
	begin(&run, "[capture]\nhz=49\n");
	reload_to(&run, "[capture]\nhz=1000\n");
	assert_int_equal(run.rate.asked_hz, 49);
}

static void reload__change_of_what_is_served_is_handed_on(void **state)
{
	RUN run = {};

	(void)state;
	begin(&run, "[http]\n");
	reload_to(&run, "[http]\n[capture]\nhz=50\n");
	assert_int_equal(run.served, 0);
	reload_to(&run, "[http]\nlisten=127.0.0.1:1\n");
	assert_int_equal(run.served, 1);
	reload_to(&run, "[http]\nlisten=127.0.0.1:1\n");
	assert_int_equal(run.served, 1);
	reload_to(&run, "[http]\nlisten=x\n");
	assert_int_equal(run.served, 1);
}

static void reload__signal_while_reading_is_remembered(void **state)
{
	RUN run = {};

	(void)state;
	begin(&run, "[capture]\nhz=49\n");
	reload_begin(run.reload);
	reload_begin(run.reload);
	reload_begin(run.reload);
	assert_false(finish(&run));
	assert_true(finish(&run));
}

static void reload__nothing_read_is_no_end(void **state)
{
	const struct reload_targets targets = {};
	RUN run = {};

	(void)state;
	begin(&run, "");
	assert_false(reload_finish(run.reload, &targets));
}

/* Whoever waits for the end of a reload must be told that there is none. */
static void reload__that_cannot_begin_says_so(void **state)
{
	struct rlimit limit, none;
	RUN run = {};

	(void)state;
	begin(&run, "[capture]\nhz=49\n");
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
	none = (struct rlimit){.rlim_cur = 0, .rlim_max = limit.rlim_max};
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	assert_false(reload_begin(run.reload));
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
	assert_true(reload_begin(run.reload));
	assert_true(finish(&run));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reload__that_cannot_begin_says_so),
		cmocka_unit_test(reload__takes_over_what_can_change),
		cmocka_unit_test(reload__broken_file_changes_nothing),
		cmocka_unit_test(reload__rate_beyond_the_tables_waits_for_a_restart),
		cmocka_unit_test(reload__change_of_what_is_served_is_handed_on),
		cmocka_unit_test(reload__signal_while_reading_is_remembered),
		cmocka_unit_test(reload__nothing_read_is_no_end),
	};
	char directory[] = "/tmp/test_reload.XXXXXX";
	int failed;

	if (!mkdtemp(directory) || chdir(directory))
		return 1;
	failed = cmocka_run_group_tests_name("agent/reload", tests, NULL, NULL);
	unlink("c.conf");
	(void)!chdir("/");
	rmdir(directory);
	return failed;
}
