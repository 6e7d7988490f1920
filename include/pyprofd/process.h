/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Processes as both sides identify them, and the lifecycle events of the kernel side. */
#ifndef PYPROFD_PROCESS_H
#define PYPROFD_PROCESS_H

#include <linux/types.h>
#include <pyprofd/limits.h>
#include <pyprofd/python.h>

/* A process between fork or exec and exit or exec.  The generation is bpf_ktime_get_ns() >> 10 at
 * that moment (unit: 1,024 ns; wraps after 73 minutes), so it is unique for one tgid. */
struct pp_process_id {
	__u32 tgid; /* as the host sees it */
	__u32 generation;
};

enum pp_context_flag {
	PP_CONTEXT_MATCHES = 1, /* matches the filter; inherited by children */
	PP_CONTEXT_NO_FOLD = 4, /* --frames interpreter */
};

/* contexts[pp_process_id]: the process context, which a walk needs.  The agent writes it; the
 * kernel side copies it from parent to child at fork, and creates a fresh one (flags inherited, no
 * set) at exec. */
struct pp_process_context {
	__u32 map_set;	   /* 1 + index of the first chunk in map_sets[]; 0: none yet */
	__u16 map_chunks;  /* number of the set's chunks */
	__u16 flags;	   /* enum pp_context_flag */
	__u32 python;	   /* 1 + index in pythons[]; 0: no interpreter */
	__u32 code_space;  /* equal for processes that share code objects since a fork */
	__u32 map_version; /* of the set's contents, never 0: results of lookups in it stay valid */
	__u32 pad;
	__u64 python_bias;    /* load bias of the interpreter's file */
	struct pp_tls tls[2]; /* first the attached thread state, then the GILState slot */
};

/* Ring `events`: lifecycle and requests.  time_ns is CLOCK_MONOTONIC, as in the perf side-band. */
enum pp_event_type {
	PP_EVENT_FORK = 1,     /* a new process; parent is set */
	PP_EVENT_EXEC,	       /* id is the new generation, parent the old */
	PP_EVENT_EXIT,	       /* the last thread has exited */
	PP_EVENT_UNKNOWN,      /* a sample hit a tgid without an entry; generation is new */
	PP_EVENT_THREAD_STATE, /* a thread whose PyThreadState was not found; tid is set */
	/* an open table of counters is half full: only the type and the time are set */
	PP_EVENT_TABLE,
	/* the kernel ends this process for want of memory: id and tid are set */
	PP_EVENT_OOM,
	/* execve has replaced the address space, and maps the program next: tid and tgid are set */
	PP_EVENT_NEW_SPACE,
	/* the process is in another cgroup: tgid is set */
	PP_EVENT_MOVED,
	PP_EVENT_END
};

struct pp_event {
	__u32 type; /* enum pp_event_type */
	__u32 tid;
	__u64 time_ns;
	struct pp_process_id id;
	struct pp_process_id parent;
	char comm[PP_COMM_BYTES];
	__u32 user; /* FORK, EXEC: who answers for the process (bpf/lib/user_share.bpf.h) */
	__u32 pad;
};

/* thread_states[pp_thread_key]: the agent fills it where no TLS slot points to the state. */
struct pp_thread_key {
	struct pp_process_id id;
	__u32 tid;
	__u32 pad;
};

#endif
