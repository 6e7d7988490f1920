/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Captures of streams, and graphs.  What is put into a stream while it is captured is recorded in a
 * graph, not run; other streams join by waiting for an event of it.  Of a graph it is counted how
 * many kernels and bytes it has, which go to its instances, whose launches run them.
 *
 * A capture has a number of our own, never given again: a stream or event that names one which has
 * ended is in none.  None of this is looked up for a process without captures and graphs; what it
 * has changed lately each of its threads finds out by struct cuda_machine: changes. */
#ifndef BPF_LIB_CUDA_GRAPHS_H
#define BPF_LIB_CUDA_GRAPHS_H

#include "lib/cuda_walks.bpf.h"
#include "lib/frames.bpf.h"
#include "lib/user_probe.bpf.h"

/* cuda.h: results with which cuStreamEndCapture() ends one that has gone wrong: invalidated, not
 * joined. */
#define CAPTURE_INVALIDATED 901U
#define CAPTURE_UNJOINED 904U
/* CU_EVENT_RECORD_EXTERNAL: a node records the event, which takes its capture nowhere. */
#define EVENT_RECORD_EXTERNAL 1U
/* Its number is the time of its beginning, and below that the CPU. */
#define CAPTURE_CPU_BITS 8

/* ---- objects ---- */

static __always_inline void object_key(struct cuda_object_key *key, __u32 generation, __u64 handle,
				       __u32 kind)
{
	*key = (struct cuda_object_key){.handle = handle, .kind = kind};
	key->id.tgid = bpf_get_current_pid_tgid() >> 32;
	key->id.generation = generation;
}

static __always_inline struct cuda_object *object_get(__u32 generation, __u64 handle, __u32 kind)
{
	struct cuda_object_key key;

	object_key(&key, generation, handle, kind);
	return bpf_map_lookup_elem(&cuda_objects, &key);
}

static __always_inline int object_set(__u32 generation, __u64 handle, __u32 kind,
				      const struct cuda_object *object)
{
	struct cuda_object_key key;

	object_key(&key, generation, handle, kind);
	if (!bpf_map_lookup_elem(&cuda_objects, &key) && cuda_news_take(user_of_current()))
		return 1;
	return bpf_map_update_elem(&cuda_objects, &key, object, BPF_ANY) ? 1 : 0;
}

__noinline int cuda_forget(__u32 generation, __u64 handle, __u32 kind)
{
	struct cuda_object_key key;

	object_key(&key, generation, handle, kind);
	return bpf_map_delete_elem(&cuda_objects, &key) ? 1 : 0;
}

/* ---- what a thread knows of its process ---- */

/* What a process has changed its threads are to look up. */
static __always_inline void tell_threads(void)
{
	struct cuda_machine *machine = cuda_machine_get();

	if (machine)
		__sync_fetch_and_add(&machine->changes, 1);
}

__noinline int cuda_thread_look(__u64 id)
{
	struct cuda_thread *thread = bpf_map_lookup_elem(&cuda_threads, &id);
	const struct cuda_machine *machine = cuda_machine_get();
	const struct cuda_process *process;
	__u32 tgid = id >> 32;

	if (!thread || !machine)
		return 1;
	/* Read this first, as cuda_thread_note() does. */
	thread->seen = *(volatile const __u32 *)&machine->changes;
	process = bpf_map_lookup_elem(&cuda_processes, &tgid);
	thread->captures = thread->life = 0;
	if (process && process->generation == thread->generation) {
		thread->captures = process->captures;
		thread->life = process->life;
	}
	return 0;
}

/* Kernels of a module, or of a context, have no names any more, and their handles may be given out
 * again.  module 0: of any module. */
__noinline int cuda_unload(__u32 generation, __u64 module)
{
	struct cuda_process *process =
		cuda_process_of(bpf_get_current_pid_tgid() >> 32, generation);
	struct cuda_object object = {};

	if (!process)
		return 1;
	object.life = process->life + 1;
	object_set(generation, module, PP_CUDA_OBJECT_MODULE, &object);
	__sync_fetch_and_add(&process->life, 1);
	tell_threads();
	return 0;
}

/* ---- captures ---- */

/* The legacy stream cannot be captured, and a thread's own is told by the thread. */
static __always_inline __u64 stream_of_thread(__u64 stream, __u64 thread)
{
	return stream == PP_CUDA_STREAM_PER_THREAD ? thread << 32 | stream : stream;
}

/* Returns the capture that a stream or an event is part of; NULL: of none. */
static __always_inline struct cuda_object *capture_of(__u32 generation, __u64 handle, __u32 kind,
						      __u64 *ret_number)
{
	const struct cuda_object *part = object_get(generation, handle, kind);

	if (!part)
		return NULL;
	*ret_number = part->capture;
	return object_get(generation, *ret_number, PP_CUDA_OBJECT_CAPTURE);
}

static __always_inline void capture_drop(struct cuda_process *process, __u32 generation,
					 __u64 number, __u64 stream)
{
	cuda_forget(generation, number, PP_CUDA_OBJECT_CAPTURE);
	cuda_forget(generation, stream, PP_CUDA_OBJECT_STREAM);
	if (process->captures)
		__sync_fetch_and_add(&process->captures, -1);
	else /* the process was forgotten meanwhile, and what was recorded since counts as run */
		count_loss(PP_LOSS_CUDA_CAPTURES_UNSEEN);
}

static __always_inline bool is_gate_open(__u32 kind)
{
	const struct pp_gate *gate = bpf_map_lookup_elem(&cuda_gates, &kind);

	return gate && !gate->until_ns;
}

/* Returns whether each launch is a hit: not where they are probed for a part of the time, in which
 * some of a capture are missing.  No loop: its counter of 32 bits would be put on the stack, where
 * verifiers before Linux 5.16 do not follow it. */
static __always_inline bool are_launches_whole(void)
{
	_Static_assert(PP_CUDA_LAUNCHES == 2, "each kind of launches is looked at");
	return is_gate_open(PP_CUDA_HIT_LAUNCH) && is_gate_open(PP_CUDA_HIT_LAUNCH_DEAR);
}

/* A capture has begun.  graph: to which it adds; 0: it makes one. */
__noinline int cuda_capture_begin(__u64 id, __u64 handle, __u64 graph)
{
	struct cuda_thread *thread = bpf_map_lookup_elem(&cuda_threads, &id);
	const __u64 stream = stream_of_thread(handle, id);
	struct cuda_object capture = {
		.capture = stream, .is_partial = !are_launches_whole(), .adds = !!graph};
	struct cuda_object part = {};
	const struct cuda_object *before;
	struct cuda_process *process;
	__u64 number = 0;

	process = thread ? cuda_process_of(id >> 32, thread->generation) : NULL;
	if (!process)
		return 1;
	/* One whose end was not seen. */
	before = capture_of(thread->generation, stream, PP_CUDA_OBJECT_STREAM, &number);
	if (before && before->capture == stream)
		capture_drop(process, thread->generation, number, stream);
	part.capture = number =
		bpf_ktime_get_ns() << CAPTURE_CPU_BITS | (bpf_get_smp_processor_id() & 0xff);
	if (object_set(thread->generation, number, PP_CUDA_OBJECT_CAPTURE, &capture) ||
	    object_set(thread->generation, stream, PP_CUDA_OBJECT_STREAM, &part))
		return 1;
	__sync_fetch_and_add(&process->captures, 1);
	tell_threads();
	return 0;
}

/* Adds what one graph has to another one.  from NULL: nobody knows. */
static __always_inline void graph_merge(struct cuda_object *into, const struct cuda_object *from)
{
	if (!from || from->is_partial)
		into->is_partial = 1;
	if (!from)
		return;
	__sync_fetch_and_add(&into->kernels, from->kernels);
	__sync_fetch_and_add(&into->bytes, from->bytes);
}

/* A graph has been captured.  What is known of its handle is of one that was destroyed unseen, as
 * by a reset of the device, unless the capture added to it.  capture NULL: it was not seen to
 * begin. */
static __always_inline void graph_captured(__u32 generation, __u64 graph,
					   const struct cuda_object *capture)
{
	struct cuda_object *known = object_get(generation, graph, PP_CUDA_OBJECT_GRAPH), made = {};

	if (known && capture && capture->adds) {
		graph_merge(known, capture);
		return;
	}
	graph_merge(&made, capture);
	made.is_partial |= capture && capture->adds;
	object_set(generation, graph, PP_CUDA_OBJECT_GRAPH, &made);
}

/* cuStreamEndCapture() has returned.  graph 0: it gave none. */
__noinline int cuda_capture_end(__u64 id, __u64 handle, __u64 graph, __u32 result)
{
	struct cuda_thread *thread = bpf_map_lookup_elem(&cuda_threads, &id);
	const __u64 stream = stream_of_thread(handle, id);
	struct cuda_object *capture;
	struct cuda_process *process;
	__u64 number = 0;

	process = thread ? cuda_process_of(id >> 32, thread->generation) : NULL;
	if (!process)
		return 1;
	capture = capture_of(thread->generation, stream, PP_CUDA_OBJECT_STREAM, &number);
	if (!capture && !result)
		count_loss(PP_LOSS_CUDA_CAPTURES_UNSEEN);
	if (capture && !are_launches_whole())
		capture->is_partial = 1;
	if (graph && !result)
		graph_captured(thread->generation, graph, capture);
	if (!capture || (result && result != CAPTURE_INVALIDATED && result != CAPTURE_UNJOINED))
		return 0;
	capture_drop(process, thread->generation, number, stream);
	tell_threads();
	return 0;
}

/* Returns the number of the capture that records what the thread puts into a stream; 0: it runs. */
__noinline __u64 cuda_captured(__u64 id, __u32 generation, __u64 handle)
{
	const __u64 stream = stream_of_thread(handle, id);
	__u64 number = 0;

	if (handle <= PP_CUDA_STREAM_DEFAULT)
		return 0;
	if (capture_of(generation, stream, PP_CUDA_OBJECT_STREAM, &number))
		return number;
	/* It joined one that has ended. */
	if (number)
		cuda_forget(generation, stream, PP_CUDA_OBJECT_STREAM);
	return 0;
}

/* An event of a captured stream is part of the capture; of another one no longer. */
__noinline int cuda_event_recorded(__u64 id, __u32 generation, __u64 handle, __u64 event)
{
	const __u64 stream = stream_of_thread(handle, id);
	struct cuda_object part = {};

	if (capture_of(generation, stream, PP_CUDA_OBJECT_STREAM, &part.capture))
		return object_set(generation, event, PP_CUDA_OBJECT_EVENT, &part);
	return cuda_forget(generation, event, PP_CUDA_OBJECT_EVENT);
}

/* A stream that waits for such an event joins. */
__noinline int cuda_event_awaited(__u64 id, __u32 generation, __u64 handle, __u64 event)
{
	const __u64 stream = stream_of_thread(handle, id);
	struct cuda_object part = {};
	__u64 number;

	if (!capture_of(generation, event, PP_CUDA_OBJECT_EVENT, &part.capture) ||
	    capture_of(generation, stream, PP_CUDA_OBJECT_STREAM, &number))
		return 0;
	return object_set(generation, stream, PP_CUDA_OBJECT_STREAM, &part);
}

/* A stream ends, and with it a capture of it. */
__noinline int cuda_stream_ended(__u32 generation, __u64 stream)
{
	struct cuda_process *process =
		cuda_process_of(bpf_get_current_pid_tgid() >> 32, generation);
	const struct cuda_object *capture;
	__u64 number = 0;

	capture = capture_of(generation, stream, PP_CUDA_OBJECT_STREAM, &number);
	if (!process || !capture || capture->capture != stream)
		return cuda_forget(generation, stream, PP_CUDA_OBJECT_STREAM);
	capture_drop(process, generation, number, stream);
	tell_threads();
	return 0;
}

/* ---- graphs ---- */

/* Adds a node to a graph or a capture.  kinds: enum pp_cuda_object << 8 | enum pp_cuda_node; what:
 * its bytes, or the instance or graph that it is. */
__noinline int cuda_node_add(__u32 generation, __u64 handle, __u32 kinds, __u64 what)
{
	struct cuda_object *into = object_get(generation, handle, kinds >> 8);
	const __u32 node = kinds & 0xff;
	const struct cuda_object unseen = {.is_partial = 1}, *all;

	/* A capture has ended meanwhile; a graph was made before pyprofd began. */
	if (!into)
		return kinds >> 8 == PP_CUDA_OBJECT_CAPTURE
			       ? 0
			       : object_set(generation, handle, kinds >> 8, &unseen);
	switch (node) {
	case PP_CUDA_NODE_KERNEL:
		__sync_fetch_and_add(&into->kernels, 1);
		return 0;
	case PP_CUDA_NODE_COPY:
		__sync_fetch_and_add(&into->bytes, what);
		return 0;
	case PP_CUDA_NODE_OTHER:
		return 0;
	case PP_CUDA_NODE_INSTANCE:
	case PP_CUDA_NODE_GRAPH:
		all = object_get(generation, what,
				 node == PP_CUDA_NODE_GRAPH ? PP_CUDA_OBJECT_GRAPH
							    : PP_CUDA_OBJECT_INSTANCE);
		graph_merge(into, all);
		return 0;
	}
	into->is_partial = 1;
	return 0;
}

/* A graph is there that is empty. */
__noinline int cuda_graph_made(__u32 generation, __u64 graph)
{
	const struct cuda_object made = {};

	return object_set(generation, graph, PP_CUDA_OBJECT_GRAPH, &made);
}

/* An object of that kind does from now on what a graph does. */
__noinline int cuda_graph_copied(__u32 generation, __u64 handle, __u32 kind, __u64 graph)
{
	const struct cuda_object *from = object_get(generation, graph, PP_CUDA_OBJECT_GRAPH);
	struct cuda_object made = {.is_partial = !from};

	if (from) {
		made.kernels = from->kernels;
		made.bytes = from->bytes;
		made.is_partial = from->is_partial;
	}
	return object_set(generation, handle, kind, &made);
}

/* An instance is launched: adds what it runs to the row, and returns its bytes. */
__noinline __u64 cuda_graph_run(__u64 row, __u32 generation, __u64 instance, __u64 scale)
{
	const struct cuda_object *known = object_get(generation, instance, PP_CUDA_OBJECT_INSTANCE);
	struct pp_cuda_totals *totals = bpf_map_lookup_elem(&cuda_totals, &row);

	if (!totals)
		return 0;
	if (!known || known->is_partial) {
		__sync_fetch_and_add(&totals->unknown, scaled(1, scale));
		count_loss(PP_LOSS_CUDA_GRAPHS_UNKNOWN);
	}
	if (!known)
		return 0;
	__sync_fetch_and_add(&totals->nodes, scaled(known->kernels, scale));
	return scaled(known->bytes, scale);
}

#endif
