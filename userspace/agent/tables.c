/* SPDX-License-Identifier: BSD-2-Clause */
/* Each window begins with empty tables, and gets empty ones again when one of them is half full
 * (include/pyprofd/table.h). */
#include "agent/tables.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <time.h>

#include "attach/context_table.h"
#include "attach/file_table.h"
#include "attach/kernel_side.h"
#include "base/cleanup.h"
#include "discover/process_table.h"
#include "drain/dictionary.h"
#include "drain/text_table.h"
#include "drain/thread_slots.h"
#include "options/options.h"
#include "windows/source.h"

void tables_release(struct tables *tables)
{
	counts_release(&tables->counts);
	wakes_release(&tables->wakes);
}

/* The number of the tables that the kernel side writes to now. */
static uint32_t open_number(const struct tables *tables)
{
	return kernel_side_config(tables->kernel)->table[tables->window & 1];
}

void tables_start(const struct tables *tables, uint64_t started_ns)
{
	thread_slots_open(kernel_side_config(tables->kernel), tables->window, started_ns);
}

uint32_t tables_begin_window(struct tables *tables, uint64_t ended_ns)
{
	volatile struct pp_config *config = kernel_side_config(tables->kernel);
	const uint32_t number = open_number(tables);

	tables->window++;
	config->table[tables->window & 1] = number + 1;
	config->window_start_ns[tables->window & 1] = ended_ns;
	/* The kernel side finds both by the window's number, so they are written before it. */
	atomic_thread_fence(memory_order_release);
	config->window = tables->window;
	return number;
}

void tables_settle(void)
{
	const struct timespec settle = {.tv_nsec = PP_SETTLE_NS};

	nanosleep(&settle, NULL);
}

void tables_take(struct tables *tables, struct counts *ret_counts, struct wakes *ret_wakes)
{
	*ret_counts = tables->counts;
	tables->counts = (struct counts){};
	*ret_wakes = tables->wakes;
	tables->wakes = (struct wakes){};
}

void tables_end_slots(const struct tables *tables, uint32_t window)
{
	kernel_side_config(tables->kernel)->slots_read = window;
}

int tables_drain(struct tables *tables, uint32_t number, struct counts *counts, struct wakes *wakes)
{
	static const enum pp_table counted[] = {PP_TABLE_SAMPLES, PP_TABLE_WAITS, PP_TABLE_COARSE};
	const struct kernel_side *kernel = tables->kernel;
	int err = 0;

	for (size_t i = 0; i < ARRAY_SIZE(counted) && !err; i++)
		err = counts_drain(kernel_side_table(kernel, counted[i], number), counts);
	if (!err)
		err = counts_drain_rest(kernel_side_parts(kernel).rest, number, counts);
	if (!err && tables->has_wakers)
		err = wakes_drain(kernel_side_table(kernel, PP_TABLE_WAKES, number), wakes, counts);
	for (unsigned int table = 0; table < PP_TABLE_COUNT && !err; table++) {
		volatile struct pp_fill *fill =
			kernel_side_fill(kernel, (enum pp_table)table, number);

		fill->rows = 0;
		fill->is_told = 0;
	}
	return err;
}

static bool is_half_full(const struct tables *tables, uint32_t number)
{
	for (unsigned int table = 0; table < PP_TABLE_COUNT; table++) {
		const volatile struct pp_fill *fill =
			kernel_side_fill(tables->kernel, (enum pp_table)table, number);

		if (fill->half && fill->rows >= fill->half)
			return true;
	}
	return false;
}

int tables_relieve(struct tables *tables)
{
	const uint32_t number = open_number(tables);

	if (!is_half_full(tables, number))
		return 0;
	kernel_side_config(tables->kernel)->table[tables->window & 1] = number + 1;
	tables->early_swaps++;
	tables_settle();
	return tables_drain(tables, number, &tables->counts, &tables->wakes);
}

/* ---- epochs ---- */

#define DICTIONARY_BYTES (24U << 20)
#define DICTIONARY_BYTES_PER_CPU (4U << 20)
#define DICTIONARY_BYTES_PER_PROCESS (16U << 10)
#define DICTIONARY_BYTES_MAX (256U << 20)

size_t dictionary_limit(uint64_t budget_bytes, uint32_t cpus, size_t processes)
{
	const uint64_t bytes = DICTIONARY_BYTES + (uint64_t)cpus * DICTIONARY_BYTES_PER_CPU +
			       processes * DICTIONARY_BYTES_PER_PROCESS;
	const uint64_t max = budget_bytes ? budget_bytes / 4 : DICTIONARY_BYTES_MAX;

	return bytes < max ? bytes : max;
}

void epochs_start(struct epochs *epochs)
{
	epochs->epoch = kernel_side_config(epochs->services->kernel)->epoch = 1;
	dictionary_set_epoch(epochs->services->dictionary, epochs->epoch);
}

/* Lets new files have the ids of files that are gone, once no stack names them. */
static void reuse_file_slots(const struct services *services)
{
	OWNED_MEM uint64_t *named = NULL;

	if (!file_table_has_resting(services->files))
		return;
	named = calloc(FILE_SLOTS / 64, sizeof(*named));
	if (!named)
		return;
	dictionary_note_files(services->dictionary, named);
	file_table_end_epoch(services->files, named);
}

/* The dictionary was full.  What the window used stays; the kernel side describes all code
 * again. */
static void make_room(const struct services *services)
{
	dictionary_set_max_bytes(services->dictionary,
				 dictionary_limit(services->options->budget_bytes,
						  services->online_cpus,
						  process_table_live_count(services->processes)));
	dictionary_make_room(services->dictionary);
	kernel_side_config(services->kernel)->code_epoch++;
	kernel_side_processes_changed(services->kernel);
}

bool epochs_end_window(struct epochs *epochs)
{
	const struct services *services = epochs->services;
	volatile struct pp_config *config = kernel_side_config(services->kernel);
	struct dictionary_stats stats;

	dictionary_get_stats(services->dictionary, &stats);
	if (stats.refused != epochs->refused) {
		epochs->refused = stats.refused;
		make_room(services);
		epochs->epoch++;
	} else if (++epochs->windows_closed % EPOCH_WINDOWS == 0) {
		epochs->epoch++;
	}
	if (config->epoch == epochs->epoch)
		return false;
	config->epoch = epochs->epoch;
	/* The open tables have rows of stacks that were sent in the last epoch: they are sent
	 * again. */
	config->sent_from_table = config->table[config->window & 1] + 1;
	dictionary_set_epoch(services->dictionary, epochs->epoch);
	text_table_end_epoch(services->texts);
	reuse_file_slots(services);
	context_table_end_epoch(services->contexts);
	return true;
}
