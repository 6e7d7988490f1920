/* SPDX-License-Identifier: BSD-2-Clause */
#include "agent/samples.h"

#include <stdio.h>

#include "attach/context_table.h"
#include "attach/file_table.h"
#include "processes/identities.h"
#include "processes/thread_names.h"
#include "processes/who.h"
#include "profile/profile.h"
#include "windows/label.h"
#include "windows/process_record.h"
#include "windows/source.h"

static int label_python(const struct samples *samples, struct profile_sample *sample,
			uint32_t flags, const struct process_python *python)
{
	char version[16];
	int err = 0;

	if (python && python->file) {
		snprintf(version, sizeof(version), "%u.%u", python->file->python->bpf.major,
			 python->file->python->bpf.minor);
		err = label_string(samples->strings, sample, "python_version", version);
	}
	if (!err && flags & PP_COUNT_GIL_HELD)
		err = label_string(samples->strings, sample, "gil", "held");
	if (!err && flags & PP_COUNT_GC)
		err = label_string(samples->strings, sample, "gc", "collecting");
	return err;
}

/* What the GPU had to do for the process when the sample was taken, or when the wait began. */
static int label_gpu(const struct samples *samples, struct profile_sample *sample, uint32_t flags)
{
#define GPU_LABEL(id, label) [PP_GPU_##id] = label,
	static const char *const gpu[PP_GPU_COUNT] = {PP_GPUS(GPU_LABEL)};

	return label_string(samples->strings, sample, "gpu",
			    gpu[(flags & PP_COUNT_GPU_BITS) >> PP_COUNT_GPU_SHIFT]);
}

/* ---- all labels ---- */

/* The kernel side knows the GIL's holder by the thread id inside its own pid namespace; here it
 * becomes the host's.  Returns 0 when the thread is unknown. */
static uint32_t sample_tid(const struct samples *samples, const struct pp_count_key *key,
			   const struct process *process)
{
	if (process && key->kind == PP_KIND_BLAME)
		return thread_names_host_tid(samples->services->thread_names, process, key->tid);
	return key->tid;
}

int labels_add(const struct samples *samples, struct profile_sample *sample,
	       const struct pp_count_key *key, const struct who *who)
{
	struct process *process = who->process;
	const uint32_t tid = sample_tid(samples, key, process);
	int err = sources_label(samples->services->sources, key, samples->strings, sample);

	if (!err)
		err = label_gpu(samples, sample, key->flags);
	if (err)
		return err;
	label_number(sample, "pid", key->id.tgid);
	if (tid)
		label_number(sample, "tid", tid);
	if (process)
		label_number(sample, "ppid", process->ppid);
	err = label_string(samples->strings, sample, "comm", who->comm);
	if (err || !process)
		return err;
	err = label_string(samples->strings, sample, "thread_name",
			   tid ? thread_names_get(samples->services->thread_names, process, tid,
						  key->comm)
			       : "");
	if (!err)
		err = process_labels_add(samples->services->identities, samples->strings, process,
					 sample);
	if (err)
		return err;
	return label_python(samples, sample, key->flags, context_table_python(process));
}
