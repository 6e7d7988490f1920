/* SPDX-License-Identifier: BSD-2-Clause */
/* One process's interpreter: TLS resolved, self-test, its threads.  Reads live memory. */
#ifndef PYTHON_PYTHON_PROCESS_H
#define PYTHON_PYTHON_PROCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "python/python_info.h"

/* Fills image.tls for one process from the file's plan, its load bias and (musl or glibc) its libc.
 * Works before the interpreter is initialised: values that only exist later are left to the kernel
 * side, which reads them through the addresses given here.  is_musl: the process maps ld-musl. */
void python_process_tls(const struct python_info *info, uint64_t bias, bool is_musl,
			struct pp_tls ret_tls[2]);
/* The same, and sources whose offset only the loader knows (initial-exec variables, TLS descriptors;
 * python_process_tls() gives PP_TLS_NONE for them) are read from the process.
 * Returns 0; -EAGAIN: not relocated yet; -EFAULT; -ESRCH. */
int python_process_tls_read(const struct python_info *info, pid_t pid, uint64_t bias, bool is_musl,
			    struct pp_tls ret_tls[2]);

/* One thread of the interpreter, as its own structures tell. */
struct python_thread {
	uint64_t thread_state; /* address */
	uint64_t thread_id;    /* pthread_self() */
	uint64_t native_id;    /* tid as the thread sees it; 0 <= 3.10 */
};
/* Walks all interpreters' thread lists (bounded; 4,096 threads at most).  Returns 0 with a heap
 * array; -EAGAIN: not initialised yet; -EFAULT, -ENOMEM; -ENOTSUP: the list's head has no symbol. */
int python_process_threads(const struct python_info *info, pid_t pid, uint64_t bias,
			   struct python_thread **ret_threads, size_t *ret_count);

/* The number that a thread has in its own pid namespace, from its pthread_self(); native_id: as the
 * interpreter has it, 0: it does not.  0; -EFAULT. */
int python_process_inner_tid(pid_t pid, bool is_musl, uint64_t thread_id, uint64_t native_id,
			     uint32_t *ret_tid);

/* Walks one thread's frames and checks Py_TYPE(code) == PyCode_Type.  Returns 0; -EAGAIN: no frame
 * to look at yet; -EBADMSG: the layout is wrong, *ret_reason says what (static string). */
int python_process_self_test(const struct python_info *info, pid_t pid, uint64_t bias,
			     const char **ret_reason);

/* Names given to threads by `threading`, read from threading._active: thread_id -> name.
 * Bounded: 4,096 threads, names of 256 bytes. */
struct python_thread_name {
	uint64_t thread_id;
	uint32_t native_id; /* 0: unknown */
	char name[64];	    /* UTF-8, cut at a character */
};
/* What looks at one process learn for the next one: where `_active` is, or that `threading` is not
 * imported as long as sys.modules stays as it is.  All 0 at first.  Checked at each look, so that it
 * never misleads, not even when it was of another process. */
struct python_names_hint {
	bool keeps_names; /* the caller's: names of threads that were read are not read again */
	struct python_names_known *known; /* owned */
};
void python_names_hint_release(struct python_names_hint *hint);
/* hint: NULL for a single look.  The first look costs about 100 reads, most of them in batches; later
 * ones 4 to find the threads, and about 15 a thread.
 * Returns 0 with a heap array (possibly empty); -EALREADY: hint->keeps_names, and all is
 * where it was at the last look that gave all names (a thread that took the place of one that ended
 * may go unseen); -EAGAIN: threading is not imported; -EFAULT; -ENOTSUP;
 * -ENOMEM. */
int python_process_thread_names(const struct python_info *info, pid_t pid, uint64_t bias,
				struct python_names_hint *hint,
				struct python_thread_name **ret_names, size_t *ret_count);

#endif
