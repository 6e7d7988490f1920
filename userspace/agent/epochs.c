/* SPDX-License-Identifier: BSD-2-Clause */
#include "agent/epochs.h"

#include <stdlib.h>

#include "attach/context_table.h"
#include "attach/file_table.h"
#include "attach/kernel_side.h"
#include "base/cleanup.h"
#include "discover/process_table.h"
#include "drain/dictionary.h"
#include "drain/text_table.h"

#define DICTIONARY_BYTES (24U << 20)
#define DICTIONARY_BYTES_PER_CPU (4U << 20)
#define DICTIONARY_BYTES_PER_PROCESS (16U << 10)
#define DICTIONARY_BYTES_MAX (256U << 20)

size_t dictionary_limit(const struct dictionary_limits *limits, size_t processes)
{
	uint64_t bytes = DICTIONARY_BYTES + (uint64_t)limits->cpus * DICTIONARY_BYTES_PER_CPU +
			 processes * DICTIONARY_BYTES_PER_PROCESS;
	uint64_t max = limits->budget_bytes ? limits->budget_bytes / 4 : DICTIONARY_BYTES_MAX;

	return bytes < max ? bytes : max;
}

void epochs_start(struct epochs *epochs)
{
	epochs->epoch = kernel_side_config(epochs->kernel)->epoch = 1;
	dictionary_set_epoch(epochs->dictionary, epochs->epoch);
}

/* Lets new files have the ids of files that are gone, once no stack names them. */
static void reuse_file_slots(struct epochs *epochs)
{
	OWNED_MEM uint64_t *named = NULL;

	if (!file_table_has_resting(epochs->files))
		return;
	named = calloc(FILE_SLOTS / 64, sizeof(*named));
	if (!named)
		return;
	dictionary_note_files(epochs->dictionary, named);
	file_table_end_epoch(epochs->files, named);
}

/* The dictionary was full.  What the window used stays; the kernel side describes all code
 * again. */
static void make_room(struct epochs *epochs)
{
	dictionary_set_max_bytes(epochs->dictionary,
				 dictionary_limit(&epochs->limits,
						  process_table_live_count(epochs->processes)));
	dictionary_make_room(epochs->dictionary);
	kernel_side_config(epochs->kernel)->code_epoch++;
	kernel_side_processes_changed(epochs->kernel);
}

bool epochs_end_window(struct epochs *epochs)
{
	volatile struct pp_config *config = kernel_side_config(epochs->kernel);
	struct dictionary_stats stats;

	dictionary_get_stats(epochs->dictionary, &stats);
	if (stats.refused != epochs->refused) {
		epochs->refused = stats.refused;
		make_room(epochs);
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
	dictionary_set_epoch(epochs->dictionary, epochs->epoch);
	text_table_end_epoch(epochs->texts);
	reuse_file_slots(epochs);
	context_table_end_epoch(epochs->contexts);
	return true;
}
