/* SPDX-License-Identifier: BSD-2-Clause */
/* What a profile says of how it was taken: its comments, and the summary at the end. */
#ifndef AGENT_WINDOW_FACTS_H
#define AGENT_WINDOW_FACTS_H

struct agent;
struct summary;

void window_facts_start(struct agent *agent);  /* with the first window */
void window_facts_update(struct agent *agent); /* agent.summary: what is not counted as it comes */
/* A comment on how the profiles since the last call were taken.  0 or -ENOMEM. */
int window_facts_add(struct agent *agent);
/* The same since *told, which becomes the summary; *ret_text is heap. */
int window_facts_tell(struct agent *agent, struct summary *told, char **ret_text);

#endif
