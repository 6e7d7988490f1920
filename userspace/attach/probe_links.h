/* SPDX-License-Identifier: BSD-2-Clause */
/* Attaches the program of probes to places of code: all of a file by one link where the kernel has
 * uprobe_multi (6.6), else by a perf event each.  Links are descriptors: when their process ends,
 * however it ends, the kernel takes out the breakpoints and lowers the semaphores again.
 * No global state; any thread. */
#ifndef ATTACH_PROBE_LINKS_H
#define ATTACH_PROBE_LINKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Loads the program of one site.  site_now and programs are the maps of these names, `program` is
 * that of all probes; all are descriptors, borrowed.  Returns 0 or -errno. */
int probe_stub_load(uint32_t site, int site_now, int programs, int program, int *ret_stub);

/* Loads a program that does nothing.  is_shared: for links of many sites.
 * Returns a descriptor, which the caller closes, or -errno. */
int probe_trial_load_empty(bool is_shared);

/* enum bpf_attach_type: BPF_TRACE_UPROBE_MULTI (Linux 6.6), which older headers lack. */
#define PROBE_LINKS_ATTACH_TYPE 48
#define PROBE_LINKS_SESSION_TYPE 57 /* BPF_TRACE_UPROBE_SESSION (Linux 6.13) */

/* One place of code. */
struct probe_link_site {
	uint64_t offset;    /* of the instruction, in the file */
	uint64_t semaphore; /* file offset of the 16-bit counter that enables it; 0: none */
	uint64_t cookie;    /* the site's number */
};

struct probe_links_options {
	int program; /* descriptor */
	/* Descriptors of the maps of these names (probe_stub_load()), for kernels without
	 * cookies.  Both -1: there sites are not attached.  Both 0: there the program itself is
	 * attached, and is not told a number. */
	int site_now, programs;
	int file;	/* descriptor */
	int locks;	/* link of mapping_locks_holder(); -1: it is not looked who keeps one */
	pid_t pid;	/* only in the memory of this process; 0: of all that map the file */
	bool is_return; /* hit when the function returns */
	bool is_shared; /* what probe_links_can_share() has said */
	/* The program is a session's: it runs at the beginning of a call and, if it asks for that,
	 * at its end. */
	bool is_session;
	const struct probe_link_site *site;
	size_t count;
};

/* Links that belong together. */
struct probe_links {
	int *fd; /* owned */
	size_t count;
};

/* Returns whether a link tells its program the cookie (5.15). */
bool probe_links_have_cookies(void);
/* Returns whether one link can have many sites. */
bool probe_links_can_share(void);
/* Returns whether such a link's program can decide at the beginning of a call to see its end. */
bool probe_links_have_sessions(void);
/* Attaches all sites.  Returns 0; -errno, and nothing stays attached: -EAGAIN: a process keeps the
 * lock of its mappings, so nobody could fork until it lets go (attach/mapping_locks.h); -EBUSY,
 * -EINVAL: the kernel refuses an instruction or a semaphore; -ESRCH: the process has ended;
 * -EACCES, -EPERM. */
int probe_links_attach(const struct probe_links_options *options, struct probe_links *ret_links);
/* Takes the links off: it may take 100 ms a site where they are not shared.  It does not look who
 * keeps a lock: links that are let go must not stay. */
void probe_links_release(struct probe_links *links);

/* Attaches a program to a raw tracepoint, with a cookie where the kernel has them (6.10).  Returns
 * 0; -ENOENT: there is no such tracepoint; -ENOTSUP: the kernel has no cookies for tracepoints, and
 * cookie is not 0; -errno. */
int probe_links_tracepoint(int program, const char *name, uint64_t cookie, int *ret_fd);

#endif
