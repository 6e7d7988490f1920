/* SPDX-License-Identifier: BSD-2-Clause */
/* Unwinds an incomplete stack to its root, from the registers and the copy of the stack in its
 * record, and loads the unwind rows of its code so that the kernel side can unwind it next time.
 * Stacks of blocked threads (scan_walk.c) come here too, with no frame walked yet. */
#ifndef FINISH_USER_UNWIND_H
#define FINISH_USER_UNWIND_H

#include <stdbool.h>
#include <stdint.h>

#include "attach/context_table.h"
#include "attach/file_table.h"
#include "attach/kernel_side.h"
#include "discover/process_table.h"
#include "drain/decode.h"
#include "drain/dictionary.h"

struct unwind_python;

/* What user space completes stacks with: tables of files, process contexts and names, and callbacks
 * to the code that tracks processes.  It owns nothing: every pointer is borrowed. */
struct finisher {
	struct file_table *files;
	struct context_table *contexts;
	struct kernel_side *kernel;
	struct dictionary *dictionary;
	struct process_table *processes;
	struct unwind_python *python;
	uint64_t secret;  /* pp_config.name_secret: seeds the names of stacks */
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

/* Completes one stack of at most STITCH_STACK_FRAMES frames and sets its hash; the caller owns
 * *ret_record.  Without a process (NULL) the stack keeps the kernel side's frames only.  Returns 0;
 * -ENOMEM. */
int user_unwind(const struct finisher *finisher, struct process *process,
		const struct decoded_incomplete *incomplete, struct pp_stack_record **ret_record);
/* Makes a stack of the kernel side's frames alone, which ends with PP_STOP_LEFT_OUT, and sets its
 * hash; the caller owns *ret_record.  Returns 0; -ENOMEM. */
int user_unwind_leave_out(const struct finisher *finisher,
			  const struct decoded_incomplete *incomplete,
			  struct pp_stack_record **ret_record);
/* Adds the stack to the dictionary.  Returns 0; -ENOSPC; -ENOMEM. */
int user_unwind_describe(struct dictionary *dictionary, const struct pp_stack_record *record);

/* The list of frames of one stack that is completed: native ones, and the Python segments between
 * them. */
struct unwind_frames {
	struct pp_stack_record *record;	  /* borrowed; python frames, then native ones */
	const struct pp_python *python;	  /* of the process; NULL: none */
	const struct pp_segment *segment; /* segment_count of them; borrowed */
	uint32_t segment_count, segment_next;
	uint32_t since_segment; /* native frames since the last segment */
	bool foldable;
	bool raw; /* keep the interpreter's own frames */
};

/* Returns the size of a record with room for all frames of one stack. */
size_t unwind_frames_record_bytes(void);
/* Starts the list with the frames the kernel side walked.  `record` has
 * unwind_frames_record_bytes(). */
void unwind_frames_begin(struct unwind_frames *frames, const struct decoded_incomplete *decoded,
			 struct pp_stack_record *record);
/* Adds the native frame that occupies [low, cfa), or the Python segment that it runs.  Returns
 * false when the record is full. */
bool unwind_frames_add(struct unwind_frames *frames, uint32_t file, uint64_t vaddr, uint64_t low,
		       uint64_t cfa);
/* Returns the next Python segment not yet in the list; NULL: none is left. */
const struct pp_segment *unwind_frames_next_segment(const struct unwind_frames *frames);
/* Adds a gap and the next Python segment, when the walk resumes at its anchor.  Returns false when
 * no segment is left or the record is full. */
bool unwind_frames_skip(struct unwind_frames *frames);
/* Returns how many of the last frames the next segment would fold away. */
uint32_t unwind_frames_foldable(const struct unwind_frames *frames);

#endif
