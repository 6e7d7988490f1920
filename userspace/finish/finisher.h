/* SPDX-License-Identifier: BSD-2-Clause */
/* What stacks are completed with in user space: the tables that tell what lies where in a process, and what is
 * asked of who follows the processes. */
#ifndef FINISH_FINISHER_H
#define FINISH_FINISHER_H

#include <stdbool.h>

#include "attach/file_table.h"
#include "attach/image_table.h"
#include "attach/kernel_side.h"
#include "discover/process_table.h"
#include "drain/dictionary.h"

struct miss_python;

/* All is borrowed. */
struct finisher {
	struct file_table *files;
	struct image_table *images;
	struct kernel_side *kernel;
	struct dictionary *dictionary;
	struct process_table *processes;
	struct miss_python *python;
	bool raw;	  /* the interpreter's own frames stay */
	bool no_kernel;	  /* no kernel stacks */
	bool is_filtered; /* of processes with PP_IMAGE_WANTED only */

	void *context; /* of the functions */
	/* The process, made known if only a sample or a thread has shown it; NULL: it is gone. */
	struct process *(*find_process)(void *context, struct pp_process_id id);
	/* Takes in what processes did until now: new mappings, above all.  0 or -errno. */
	int (*follow_processes)(void *context);
	/* A Python stack of this process was found: its threads' names will be asked for. */
	void (*want_names)(void *context, struct pp_process_id id);
};

#endif
