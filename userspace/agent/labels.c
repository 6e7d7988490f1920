/* SPDX-License-Identifier: BSD-2-Clause */
#include "agent/labels.h"

#include <stdio.h>

#include "attach/context_table.h"
#include "attach/file_table.h"
#include "base/intern.h"
#include "base/kinds.h"
#include "discover/process_table.h"
#include "drain/text_table.h"
#include "drain/thread_slots.h"
#include "gpu/cuda.h"
#include "processes/thread_names.h"
#include "processes/who.h"
#include "profile/profile.h"
#include "windows/process_record.h"

static int label_string(const struct labels *labels, struct profile_sample *sample, const char *key,
			const char *value)
{
	struct profile_label *label = &sample->label[sample->label_count];

	if (!value || !value[0] || sample->label_count == PROFILE_MAX_LABELS)
		return 0;
	*label = (struct profile_label){.key = key};
	sample->label_count++;
	return intern_string(labels->strings, value, &label->string);
}

static void label_number(struct profile_sample *sample, const char *key, int64_t value)
{
	if (sample->label_count < PROFILE_MAX_LABELS)
		sample->label[sample->label_count++] =
			(struct profile_label){.key = key, .number = value, .is_number = 1};
}

static int label_python(const struct labels *labels, struct profile_sample *sample, uint32_t flags,
			const struct process_python *python)
{
	char version[16];
	int err = 0;

	if (python && python->file) {
		snprintf(version, sizeof(version), "%u.%u", python->file->python->bpf.major,
			 python->file->python->bpf.minor);
		err = label_string(labels, sample, "python_version", version);
	}
	if (!err && flags & PP_COUNT_GIL_HELD)
		err = label_string(labels, sample, "gil", "held");
	if (!err && flags & PP_COUNT_GC)
		err = label_string(labels, sample, "gc", "collecting");
	return err;
}

/* What the GPU had to do for the process when the sample was taken, or when the wait began. */
static int label_gpu(const struct labels *labels, struct profile_sample *sample, uint32_t flags)
{
#define GPU_LABEL(id, label) [PP_GPU_##id] = label,
	static const char *const gpu[PP_GPU_COUNT] = {PP_GPUS(GPU_LABEL)};

	return label_string(labels, sample, "gpu",
			    gpu[(flags & PP_COUNT_GPU_BITS) >> PP_COUNT_GPU_SHIFT]);
}

/* ---- labels of one kind of counter: PP_COUNT_KINDS ---- */

static int label_none(const struct labels *labels, struct profile_sample *sample,
		      const struct pp_count_key *key)
{
	(void)labels, (void)sample, (void)key;
	return 0;
}

static int label_wait(const struct labels *labels, struct profile_sample *sample,
		      const struct pp_count_key *key)
{
	int err = label_string(labels, sample, "wait",
			       wait_label((enum pp_wait)pp_count_wait(key->flags)));

	if (!err && key->flags & PP_COUNT_SWEPT)
		err = label_string(labels, sample, "swept", "yes");
	if (!err && key->flags & PP_COUNT_EARLIER)
		err = label_string(labels, sample, "stack", "earlier");
	return err;
}

static int label_gc(const struct labels *labels, struct profile_sample *sample,
		    const struct pp_count_key *key)
{
	(void)labels;
	label_number(sample, "generation", (int64_t)key->detail);
	return 0;
}

static int label_import(const struct labels *labels, struct profile_sample *sample,
			const struct pp_count_key *key)
{
	const char *module = labels->texts ? text_table_find(labels->texts, key->detail) : NULL;

	return label_string(labels, sample, "module", module ? module : "[unknown]");
}

static int label_memory(const struct labels *labels, struct profile_sample *sample,
			const struct pp_count_key *key)
{
	return key->detail < PP_MEMORY_COUNT
		       ? label_string(labels, sample, "memory",
				      kind_memory((enum pp_memory)key->detail))
		       : 0;
}

static int label_probe(const struct labels *labels, struct profile_sample *sample,
		       const struct pp_count_key *key)
{
	return key->detail < labels->probe_count
		       ? label_string(labels, sample, "probe", labels->probe[key->detail])
		       : 0;
}

static int label_cuda(const struct labels *labels, struct profile_sample *sample,
		      const struct pp_count_key *key)
{
	struct cuda_call call;
	int err;

	if (cuda_find(labels->cuda, key->detail, &call))
		return 0;
	err = label_string(labels, sample, "api", call.api);
	if (!err)
		err = label_string(labels, sample, "kernel", call.kernel);
	if (!err)
		err = label_string(labels, sample, "direction", call.direction);
	if (!err)
		err = label_string(labels, sample, "device", call.device);
	if (!err)
		err = label_string(labels, sample, "stream", call.stream);
	if (!err)
		err = label_string(labels, sample, "graph", call.graph);
	return err ? err : label_string(labels, sample, "communicator", call.communicator);
}

static int label_kind(const struct labels *labels, struct profile_sample *sample,
		      const struct pp_count_key *key)
{
#define LABEL_OF(id, label) [PP_KIND_##id] = label_##label,
	static int (*const label_of[PP_KIND_COUNT])(const struct labels *, struct profile_sample *,
						    const struct pp_count_key *) = {
		PP_COUNT_KINDS(LABEL_OF)};

	return key->kind < PP_KIND_COUNT ? label_of[key->kind](labels, sample, key) : 0;
}

/* ---- all labels ---- */

/* The kernel side knows the GIL's holder by the thread id inside its own pid namespace; here it
 * becomes the host's.  Returns 0 when the thread is unknown. */
static uint32_t sample_tid(const struct labels *labels, const struct pp_count_key *key,
			   const struct process *process)
{
	if (process && key->kind == PP_KIND_BLAME)
		return thread_names_host_tid(labels->thread_names, process, key->tid);
	return key->tid;
}

int labels_add(const struct labels *labels, struct profile_sample *sample,
	       const struct pp_count_key *key, const struct who *who)
{
	struct process *process = who->process;
	const uint32_t tid = sample_tid(labels, key, process);
	int err = label_kind(labels, sample, key);

	if (!err)
		err = label_gpu(labels, sample, key->flags);
	if (err)
		return err;
	label_number(sample, "pid", key->id.tgid);
	if (tid)
		label_number(sample, "tid", tid);
	if (process)
		label_number(sample, "ppid", process->ppid);
	err = label_string(labels, sample, "comm", who->comm);
	if (err || !process)
		return err;
	err = label_string(labels, sample, "thread_name",
			   tid ? thread_names_get(labels->thread_names, process, tid) : "");
	if (!err)
		err = process_labels_add(labels->identities, labels->strings, process, sample);
	if (err)
		return err;
	return label_python(labels, sample, key->flags, context_table_python(process));
}
