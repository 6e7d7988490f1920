/* SPDX-License-Identifier: BSD-2-Clause */
/* Turns stacks into the texts that a timeline shows; each stack is named once. */
#ifndef AGENT_STACK_TEXTS_H
#define AGENT_STACK_TEXTS_H

#include <stdbool.h>
#include <stdint.h>

#include <pyprofd/process.h>

struct dictionary;
struct intern;
struct naming;
struct stack_texts;

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
