/* SPDX-License-Identifier: BSD-2-Clause */
/* What each child of ours is: the program, what it is handed, what it may do, and when it
 * is started again.  docs/children.md shows this table: tests/unit/child/test_children.c compares
 * them. */
#ifndef CHILD_CHILDREN_H
#define CHILD_CHILDREN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/resource.h>

/* Descriptors as the children have them. */
#define CHILD_SOCKET_FD 3 /* of those that answer requests: child/worker.h */
#define CHILD_MEMORY_FD 4
#define CHILD_PEER_FD 5 /* a socket between the two that handle files */
#define CHILD_GAUGES_FD 3
#define CHILD_STORE_FD 3
#define CHILD_STORE_SOCKET_FD 4
#define CHILD_SETTINGS_FD 3
#define CHILD_CAPTURE_FD 3

/* How the child that reads other processes may open what lies below /proc. */
#define CHILD_OPEN_TEXT (O_RDONLY | O_CLOEXEC)

enum child_kind {
	CHILD_MEMORY,	 /* reads other processes' memory */
	CHILD_OPENER,	 /* opens other people's files */
	CHILD_FILES,	 /* parses them */
	CHILD_EVENTS,	 /* opens perf events */
	CHILD_STORE,	 /* merges a store's files */
	CHILD_GAUGES,	 /* loads NVML */
	CHILD_SERVER,	 /* pyprofd-serve */
	CHILD_SOCKET,	 /* removes pyprofd-serve's socket */
	CHILD_COMMAND,	 /* pyprofd -- COMMAND */
	CHILD_CAPTURE,	 /* pyprof's pyprofd, for one answer */
	CHILD_RECORDING, /* pyprof's pyprofd, for exact counts */
	CHILD_FETCH,	 /* pyprof-fetch */
	CHILD_KINDS
};

struct child_fd {
	int number;
	const char *what; /* NULL: it is /dev/null */
};

struct child_limit {
	int resource;
	rlim_t most;
};

/* One condition of a system call; CALL_ANY is none. */
enum call_test { CALL_ANY, CALL_EQUALS, CALL_LACKS, CALL_HAS };
struct call_check {
	enum call_test test;
	unsigned int argument;
	uint32_t value; /* of its lower 32 bits */
};
#define CALL_CHECKS_MAX 3U
#define CALL_NONE UINT32_MAX /* this architecture has no such call */
/* Rules are tried in their order; the first one whose conditions all hold decides. */
struct call_rule {
	const char *name;
	uint32_t number;
	struct call_check check[CALL_CHECKS_MAX];
	const char *when; /* the checks in words; NULL: there are none */
	bool kills;	  /* instead of allowing the call */
};

enum child_path_kind {
	CHILD_PATH,	      /* a file or a directory, and what is below it */
	CHILD_PATH_DEVICES,   /* a pattern; only character devices that match it */
	CHILD_PATH_TEMPORARY, /* TMPDIR, or /tmp */
};
struct child_path {
	const char *path;
	uint64_t rights; /* LANDLOCK_ACCESS_FS_* */
	enum child_path_kind kind;
};

enum child_user {
	CHILD_USER_SAME,
	CHILD_USER_OWNER,  /* of its working directory, where it is started by root */
	CHILD_USER_NOBODY, /* where it is started by root; the group is that of the GPUs' devices */
};

#define CHILD_FDS_MAX 4U
struct child_row {
	const char *name; /* argv[0] and the process's name, of 15 bytes at most */
	/* What runs: another program of ours, beside this one or in PATH; NULL: this one, under the
	 * name above, or what the user has asked for. */
	const char *program;
	const char *why; /* there is such a child */
	struct child_fd fd[CHILD_FDS_MAX];
	size_t fd_count;

	/* How it is started. */
	bool is_forked;		     /* the starter does not wait until the program is found */
	bool has_bare_environment;   /* nothing but LD_LIBRARY_PATH: there may be secrets */
	bool has_no_signals_blocked; /* ... by the starter */
	bool has_own_group;	     /* Ctrl-C does not reach it */
	bool has_hard_memory_limit;  /* in place of the starter's own bound */
	/* One that ran for steady_ns (0: none does) rests for first_ns before it is started again,
	 * others for twice as long each time, up to most_ns.  All 0: it is not started again. */
	struct {
		uint64_t steady_ns, first_ns, most_ns;
	} restart;

	/* What it gives up: sandbox_enter(). */
	bool is_confined;
	bool ignores_signals; /* of a terminal or a service: it ends with its starter */
	int death_signal;     /* which it gets when its starter ends; 0: none */
	bool steps_back;      /* the lowest priority, for the CPU and the disk */
	enum child_user user;
	uint64_t capabilities; /* kept where it has them */
	uint64_t files_denied; /* LANDLOCK_ACCESS_FS_*, but for the paths; 0: no Landlock */
	const struct child_path *path;
	size_t path_count;
	const struct child_limit *limit;
	size_t limit_count;
	const struct call_rule *call; /* NULL: no filter */
	size_t call_count;
	bool is_killed_by_others; /* by any other call; else such a call fails with ENOSYS */
};

const struct child_row *child_row(enum child_kind kind);
/* Returns which child of this program argv[0] names; CHILD_KINDS: none. */
enum child_kind child_named(const char *argv0);

#endif
