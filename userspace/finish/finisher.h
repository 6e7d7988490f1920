/* SPDX-License-Identifier: BSD-2-Clause */
/* What user space completes stacks with: tables of files, process contexts and names, and callbacks
 * to the code that tracks processes. */
#ifndef FINISH_FINISHER_H
#define FINISH_FINISHER_H

#include <stdbool.h>

#include "attach/context_table.h"
#include "attach/file_table.h"
#include "attach/kernel_side.h"
#include "discover/process_table.h"
#include "drain/dictionary.h"

struct unwind_python;

/* The finisher owns nothing: every pointer is borrowed. */
struct finisher {
	struct file_table *files;
	struct context_table *contexts;
	struct kernel_side *kernel;
	struct dictionary *dictionary;
	struct process_table *processes;
	struct unwind_python *python;
	uint64_t secret; /* pp_config.name_secret: seeds the names of stacks */
	bool raw;	  /* keep the interpreter's own frames */
	bool no_kernel;	  /* leave kernel stacks out */
	bool is_filtered; /* only processes with PP_CONTEXT_MATCHES */

	void *context; /* passed to the callbacks */
	/* Returns the process, and adds it to the table when no fork or exec announced it; one that
	 * waits to be published need not wait longer.  NULL: the process is gone. */
	struct process *(*find_process)(void *context, struct pp_process_id id);
	/* Reads all pending process events, mainly new mappings, but publishes none.  Returns 0 or
	 * -errno. */
	int (*follow_processes)(void *context);
	/* Called for each Python stack found, so that the process's thread names are read later. */
	void (*want_names)(void *context, struct pp_process_id id);
	/* Called for a torn stack by the kernel side's hash: its next walk is to be sent, too. */
	void (*send_again)(void *context, uint64_t hash);
};

#endif
