/* SPDX-License-Identifier: BSD-2-Clause */
#include "agent/finishing.h"

#include "agent/agent.h"
#include "agent/process_watch.h"
#include "agent/thread_names.h"

static struct process *find_process(void *context, struct pp_process_id id)
{
	return process_watch_find(context, id);
}

static int follow_processes(void *context)
{
	return process_watch_follow(context);
}

static void want_names(void *context, struct pp_process_id id)
{
	struct agent *agent = context;

	thread_names_want(agent->thread_names, id);
}

void finishing_prepare(struct agent *agent)
{
	agent->finisher = (struct finisher){
		.files = agent->files,
		.images = agent->images,
		.kernel = agent->kernel,
		.dictionary = agent->dictionary,
		.processes = agent->processes,
		.python = agent->miss_python,
		.raw = agent->options->raw,
		.no_kernel = agent->options->no_kernel,
		.is_filtered = agent->is_filtered,
		.context = agent,
		.find_process = find_process,
		.follow_processes = follow_processes,
		.want_names = want_names,
	};
}
