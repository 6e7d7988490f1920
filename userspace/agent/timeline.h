/* SPDX-License-Identifier: BSD-2-Clause */
/* --timeline: writes the records of the ring `timeline` into a trace file (timeline/). */
#ifndef AGENT_TIMELINE_H
#define AGENT_TIMELINE_H

#include <stdbool.h>
#include <stdint.h>

#include <pyprofd/process.h>

struct dictionary;
struct intern;
struct naming;
struct process_watch;
struct services;
struct stack_intake;
struct stack_texts;
struct timeline;

/* All is borrowed. */
struct timeline_sources {
	const struct services *services;
	struct process_watch *watch;
	const struct stack_intake *stacks; /* brings the stacks that records name */
};
/* *ret_timeline stays NULL when the options ask for no timeline.  Returns 0; -errno, and a line was
 * logged. */
int timeline_open(const struct timeline_sources *sources, struct timeline **ret_timeline);
void timeline_free(struct timeline *timeline);
int timeline_fd(const struct timeline *timeline); /* readable when its ring fills */
/* Writes what the ring holds into the file. */
void timeline_tick(struct timeline *timeline);
/* Writes what threads are doing at the end, and closes the file.  The kernel side has stopped.
 * Accepts NULL. */
int timeline_close(struct timeline *timeline);

/* ---- stack_texts.c: stacks as the texts that it shows, each named once ---- */

struct stack_text {
	/* Ids of strings, 0: not known. */
	uint32_t function; /* the innermost Python function, or what there is */
	uint32_t text;	   /* from the leaf on */
	bool is_python;
};
/* All is borrowed. */
struct stack_texts_sources {
	const struct dictionary *dictionary;
	struct naming *naming;
	struct intern *strings;	 /* of the texts */
	unsigned int max_frames; /* of one text */
};
int stack_texts_new(const struct stack_texts_sources *sources, struct stack_texts **ret_texts);
void stack_texts_free(struct stack_texts *texts);
/* Notes a stack that will be asked for; stack_texts_resolve() then names all of them.  Both return
 * 0 or -ENOMEM. */
int stack_texts_note(struct stack_texts *texts, struct pp_process_id id, uint64_t user,
		     uint64_t kernel);
int stack_texts_resolve(struct stack_texts *texts);
/* Forgets all stacks when there are many.  Call it before stacks are noted. */
void stack_texts_tidy(struct stack_texts *texts);
/* Returns all zeros for an unknown stack. */
struct stack_text stack_texts_find(const struct stack_texts *texts, uint64_t user, uint64_t kernel);

#endif
