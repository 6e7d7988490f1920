/* SPDX-License-Identifier: BSD-2-Clause */
/* Stacks as a timeline shows them, as text; each is named once. */
#ifndef AGENT_STACK_TEXTS_H
#define AGENT_STACK_TEXTS_H

#include <stdbool.h>
#include <stdint.h>

#include <pyprofd/process.h>

struct agent;
struct intern;
struct stack_texts;

struct stack_text {
	uint32_t function; /* innermost Python function, or what there is; ids of strings, 0: not known */
	uint32_t text;	   /* from the leaf on */
	bool is_python;
};
/* strings: borrowed.  max_frames: of one text. */
int stack_texts_new(struct agent *agent, struct intern *strings, unsigned int max_frames,
		    struct stack_texts **ret_texts);
void stack_texts_free(struct stack_texts *texts);
/* Notes a stack that will be asked for; stack_texts_resolve() then names all.  0 or -ENOMEM. */
int stack_texts_note(struct stack_texts *texts, struct pp_process_id id, uint64_t user,
		     uint64_t kernel);
int stack_texts_resolve(struct stack_texts *texts);
void stack_texts_tidy(struct stack_texts *texts); /* before stacks are noted: forgets when there are many */
/* All 0 for a stack that is not known. */
struct stack_text stack_texts_find(const struct stack_texts *texts, uint64_t user, uint64_t kernel);

#endif
