/* SPDX-License-Identifier: BSD-2-Clause */
/* The kernel side, the dictionary and the table of files are stand-ins. */
#include "agent/tables.h"

#include <cmocka.h>
#include <string.h>

#include "attach/context_table.h"
#include "attach/file_table.h"
#include "attach/kernel_side.h"
#include "discover/process_table.h"
#include "drain/dictionary.h"
#include "drain/text_table.h"
#include "options/options.h"
#include "windows/source.h"

#define MIB (1ULL << 20)

static struct pp_config config;
static struct dictionary_stats stats;
static uint32_t dictionary_epoch;
static size_t max_bytes;
static unsigned int made_room, processes_changed, reused, rested;
static bool has_resting;

volatile struct pp_config *kernel_side_config(const struct kernel_side *side)
{
	(void)side;
	return &config;
}

void kernel_side_processes_changed(struct kernel_side *side)
{
	(void)side;
	assert_int_equal(config.code_epoch, made_room); /* it was changed before it is told */
	processes_changed++;
}

void dictionary_get_stats(const struct dictionary *dictionary, struct dictionary_stats *ret_stats)
{
	(void)dictionary;
	*ret_stats = stats;
}

void dictionary_set_epoch(struct dictionary *dictionary, uint32_t epoch)
{
	(void)dictionary;
	dictionary_epoch = epoch;
}

void dictionary_set_max_bytes(struct dictionary *dictionary, size_t bytes)
{
	(void)dictionary;
	max_bytes = bytes;
}

void dictionary_make_room(struct dictionary *dictionary)
{
	(void)dictionary;
	made_room++;
}

void dictionary_note_files(const struct dictionary *dictionary, uint64_t *named)
{
	(void)dictionary;
	for (size_t i = 0; i < FILE_SLOTS / 64; i++)
		assert_int_equal(named[i], 0);
	named[0] = 5;
}

bool file_table_has_resting(const struct file_table *table)
{
	(void)table;
	return has_resting;
}

void file_table_end_epoch(struct file_table *table, const uint64_t *named)
{
	(void)table;
	assert_int_equal(named[0], 5);
	reused++;
}

void context_table_end_epoch(struct context_table *table)
{
	(void)table;
	rested++;
}

size_t process_table_live_count(const struct process_table *table)
{
	(void)table;
	return 64;
}

static const struct options options;
static struct services services = {.options = &options, .online_cpus = 2};
static struct epochs epochs;

static int setup(void **state)
{
	(void)state;
	memset(&config, 0, sizeof(config));
	stats = (struct dictionary_stats){};
	dictionary_epoch = made_room = processes_changed = reused = rested = 0;
	max_bytes = 0;
	has_resting = false;
	epochs = (struct epochs){.services = &services};
	assert_int_equal(text_table_new(&services.texts), 0);
	epochs_start(&epochs);
	return 0;
}

static void limit__grows_with_cpus_and_processes(void **state)
{
	(void)state;
	assert_int_equal(dictionary_limit(0, 0, 0), 24 * MIB);
	assert_int_equal(dictionary_limit(0, 8, 0), 56 * MIB);
	assert_int_equal(dictionary_limit(0, 8, 64), 57 * MIB); /* 64 times 16 KiB */
	assert_int_equal(dictionary_limit(0, 64, 0), 256 * MIB);
	assert_int_equal(dictionary_limit(0, 0, 14848), 256 * MIB); /* 232 MiB for processes */
	assert_int_equal(dictionary_limit(0, 0, 14784), 255 * MIB);
}

static void limit__is_at_most_a_quarter_of_the_budget(void **state)
{
	(void)state;
	assert_int_equal(dictionary_limit(64 * MIB, 8, 64), 16 * MIB);
	assert_int_equal(dictionary_limit(4096 * MIB, 200, 0), 824 * MIB);
}

static void start__is_the_first_epoch(void **state)
{
	(void)state;
	assert_int_equal(config.epoch, 1);
	assert_int_equal(dictionary_epoch, 1);
}

static void epoch__lasts_six_windows(void **state)
{
	(void)state;
	config.window = 3;
	config.table[0] = 40;
	config.table[1] = 50;
	for (unsigned int i = 1; i <= 5; i++)
		assert_false(epochs_end_window(&epochs));
	assert_int_equal(config.epoch, 1);
	assert_true(epochs_end_window(&epochs));
	assert_int_equal(config.epoch, 2);
	assert_int_equal(dictionary_epoch, 2);
	/* Rows of the open tables do not tell that their stacks were sent in this epoch. */
	assert_int_equal(config.sent_from_table, 51);
	for (unsigned int i = 7; i <= 11; i++)
		assert_false(epochs_end_window(&epochs));
	config.window = 8;
	assert_true(epochs_end_window(&epochs));
	assert_int_equal(config.epoch, 3);
	assert_int_equal(config.sent_from_table, 41);
	assert_int_equal(made_room, 0);
	assert_int_equal(config.code_epoch, 0);
}

static void refusal__makes_room_and_begins_an_epoch(void **state)
{
	(void)state;
	assert_false(epochs_end_window(&epochs));
	stats.refused = 10;
	assert_true(epochs_end_window(&epochs));
	assert_int_equal(made_room, 1);
	assert_int_equal(max_bytes, 33 * MIB); /* 24, twice 4, and 1 for 64 processes */
	assert_int_equal(config.code_epoch, 1);
	assert_int_equal(processes_changed, 1);
	assert_int_equal(config.epoch, 2);
	/* What was refused before is not refused again. */
	assert_false(epochs_end_window(&epochs));
	assert_int_equal(made_room, 1);
	stats.refused = 11;
	assert_true(epochs_end_window(&epochs));
	assert_int_equal(config.epoch, 3);
	assert_int_equal(made_room, 2);
}

static void epoch__frees_the_slots_of_files_that_are_gone(void **state)
{
	(void)state;
	stats.refused = 1;
	assert_true(epochs_end_window(&epochs));
	assert_int_equal(reused, 0);
	has_resting = true;
	assert_false(epochs_end_window(&epochs));
	assert_int_equal(rested, 1); /* numbers of interpreter files */
	assert_int_equal(reused, 0); /* within an epoch stacks may still name them */
	stats.refused = 2;
	assert_true(epochs_end_window(&epochs));
	assert_int_equal(reused, 1);
}

static int teardown(void **state)
{
	(void)state;
	text_table_free(services.texts);
	return 0;
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(limit__grows_with_cpus_and_processes),
		TEST(limit__is_at_most_a_quarter_of_the_budget),
		TEST(start__is_the_first_epoch),
		TEST(epoch__lasts_six_windows),
		TEST(refusal__makes_room_and_begins_an_epoch),
		TEST(epoch__frees_the_slots_of_files_that_are_gone),
	};

	return cmocka_run_group_tests_name("agent/epochs", tests, NULL, NULL);
}
