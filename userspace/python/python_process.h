/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads the interpreter of one live process: resolves its TLS, tests the layout, lists its
 * threads. */
#ifndef PYTHON_PYTHON_PROCESS_H
#define PYTHON_PYTHON_PROCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/slice.h"
#include "python/python_info.h"

/* Fills pp_process_context.tls for one process from the file's plan, its load bias and its libc
 * (musl or glibc). Works before the interpreter is initialised: the kernel side reads values that
 * exist only later, through the addresses given here.  is_musl: the process maps ld-musl. */
void python_process_tls(const struct python_info *info, uint64_t bias, bool is_musl,
			struct pp_tls ret_tls[2]);
/* Fills the same as python_process_tls(), and also reads from the process the sources whose offset
 * only the loader knows (initial-exec variables, TLS descriptors), for which that function gives
 * PP_TLS_NONE.
 * Returns 0; -EAGAIN: not relocated yet; -EFAULT; -ESRCH. */
int python_process_tls_read(const struct python_info *info, pid_t pid, uint64_t bias, bool is_musl,
			    struct pp_tls ret_tls[2]);

/* One thread of the interpreter, as its own structures describe it. */
struct python_thread {
	uint64_t thread_state; /* address */
	uint64_t thread_id;    /* pthread_self() */
	uint64_t native_id;    /* tid as the thread sees it; 0 <= 3.10 */
};
/* Walks the thread lists of all interpreters, up to 4,096 threads.  Returns 0 with a heap array;
 * -EAGAIN: not initialised yet; -EFAULT, -ENOMEM; -ENOTSUP: the list's head has no symbol. */
int python_process_threads(const struct python_info *info, pid_t pid, uint64_t bias,
			   struct python_thread **ret_threads, size_t *ret_count);

/* The number that a thread has in its own pid namespace, from its pthread_self(); native_id: as the
 * interpreter has it, 0: it does not.  0; -EFAULT. */
int python_process_inner_tid(pid_t pid, bool is_musl, uint64_t thread_id, uint64_t native_id,
			     uint32_t *ret_tid);

/* Walks one thread's frames and checks Py_TYPE(code) == PyCode_Type.  Returns 0; -EAGAIN: no frame
 * to check yet; -EBADMSG: the layout is wrong, *ret_reason says how (static string). */
int python_process_self_test(const struct python_info *info, pid_t pid, uint64_t bias,
			     const char **ret_reason);

/* The name that `threading` gave to a thread, read from threading._active: thread_id -> name.
 * Bounded: 4,096 threads, names of 256 bytes. */
struct python_thread_name {
	uint64_t thread_id;
	uint32_t native_id; /* 0: unknown */
	char name[64];	    /* UTF-8, cut after a whole character */
};
/* What one look at a process remembers for the next: where `_active` is, or that `threading` is not
 * imported, which holds while sys.modules does not change.  All 0 at first.  Each look checks the
 * hint first, so that a hint never misleads, not even one from another process. */
struct python_names_hint {
	bool keeps_names; /* set by the caller: names that were read already are not read again */
	/* Set by the caller: a look ends with it, after one thread at least.  NULL: never. */
	const struct slice *slice;
	struct python_names_known *known; /* owned */
};
void python_names_hint_release(struct python_names_hint *hint);
/* Reads the names of all threads.  hint: NULL for a single look.  The first look costs about 100
 * reads, most of them in batches; a later one takes 4 to find the threads, and about 15 a thread.
 * Returns 0 with a heap array (possibly empty); 1 with one as well: the slice was over, and the
 * next look gives the names of the other threads; -EALREADY: hint->keeps_names, and nothing has
 * changed since the last look that gave all names (a thread that replaced one that ended may be
 * missed); -EAGAIN: threading is not imported; -EFAULT; -ENOTSUP; -ENOMEM. */
int python_process_thread_names(const struct python_info *info, pid_t pid, uint64_t bias,
				struct python_names_hint *hint,
				struct python_thread_name **ret_names, size_t *ret_count);

#endif
