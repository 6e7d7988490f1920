/* SPDX-License-Identifier: BSD-2-Clause */
#include "child/spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"

#define SELF "/proc/self/exe"
/* In a child's environment: see -ELOOP. */
#define CHILD_VARIABLE "PYPROFD_CHILD"
#define LIBRARY_PATH "LD_LIBRARY_PATH"
#define FIRST_SPARE_FD 16 /* above those of all rows */

extern char **environ;

void child_find_program(const char *name, char ret_path[CHILD_PROGRAM_BYTES])
{
	ssize_t size = readlink(SELF, ret_path, CHILD_PROGRAM_BYTES - 1);
	size_t directory;
	char *slash;

	ret_path[size > 0 ? size : 0] = '\0';
	slash = strrchr(ret_path, '/');
	directory = slash ? (size_t)(slash + 1 - ret_path) : 0;
	if (slash && directory + strlen(name) < CHILD_PROGRAM_BYTES) {
		memcpy(slash + 1, name, strlen(name) + 1);
		if (!access(ret_path, X_OK))
			return;
	}
	snprintf(ret_path, CHILD_PROGRAM_BYTES, "%s", name);
}

/* ---- in the child ---- */

/* What a child does before its program.  It may share its memory with the starter, which then
 * waits: it calls what a signal handler may, and changes nothing of the starter's. */
struct birth {
	const struct child_row *row;
	const struct child_start *start;
	const char *program;
	char *const *argv;
	char *const *environment; /* NULL: environ */
	sigset_t signals;	  /* which the starter had blocked */
};

/* No handler of the starter's runs in a child. */
static void reset_handlers(void)
{
	struct sigaction action;

	for (int i = 1; i < NSIG; i++) {
		if (sigaction(i, NULL, &action) || action.sa_handler == SIG_IGN ||
		    action.sa_handler == SIG_DFL)
			continue;
		action.sa_handler = SIG_DFL;
		(void)sigaction(i, &action, NULL);
	}
}

/* Gives the descriptors their numbers.  All move out of the way first: no dup2() closes another
 * one. */
static int place_descriptors(const struct child_row *row, const int *given)
{
	int spare[CHILD_FDS_MAX] = {0};

	for (size_t i = 0; i < row->fd_count; i++) {
		spare[i] = row->fd[i].what ? fcntl(*given++, F_DUPFD_CLOEXEC, FIRST_SPARE_FD)
					   : open("/dev/null", O_RDWR | O_CLOEXEC);
		if (spare[i] >= 0 && spare[i] < FIRST_SPARE_FD)
			spare[i] = fcntl(spare[i], F_DUPFD_CLOEXEC, FIRST_SPARE_FD);
		if (spare[i] < 0)
			return -errno;
	}
	for (size_t i = 0; i < row->fd_count; i++)
		if (dup2(spare[i], row->fd[i].number) < 0)
			return -errno;
	return 0;
}

static int prepare(const struct birth *birth)
{
	const struct child_row *row = birth->row;
	sigset_t none;
	struct rlimit limit;
	int err = place_descriptors(row, birth->start->fd);

	if (err)
		return err;
	if (row->death_signal)
		(void)prctl(PR_SET_PDEATHSIG, row->death_signal);
	if (row->has_own_group)
		(void)setpgid(0, 0);
	if (row->has_hard_memory_limit && !getrlimit(RLIMIT_DATA, &limit)) {
		limit.rlim_cur = limit.rlim_max;
		(void)setrlimit(RLIMIT_DATA, &limit);
	}
	reset_handlers();
	sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, row->has_no_signals_blocked ? &none : &birth->signals, NULL);
	return birth->start->prepare ? birth->start->prepare(birth->start->context) : 0;
}

static _Noreturn void be_born(const struct birth *birth, volatile int *ret_err)
{
	int err = prepare(birth);

	if (!err) {
		/* prepare() may have changed environ. */
		execvpe(birth->program, birth->argv, birth->environment ?: environ);
		err = -errno;
	}
	*ret_err = err;
	if (birth->row->is_forked && birth->start->tell)
		birth->start->tell(birth->start->context, err);
	_exit(err == -ENOENT ? CHILD_EXIT_NOT_FOUND : CHILD_EXIT_NOT_RUN);
}

/* ---- in the starter ---- */

/* Returns the child's environment, whose last variable this is. */
static char **make_environment(bool is_bare, char *libraries, char *variable)
{
	size_t count = 0;
	char **with;

	while (!is_bare && environ && environ[count])
		count++;
	with = calloc(count + 3, sizeof(*with));
	if (!with)
		return NULL;
	if (count)
		memcpy(with, environ, count * sizeof(*with));
	if (libraries)
		with[count++] = libraries;
	with[count] = variable;
	return with;
}

/* The starter waits for exec, unless the row says otherwise: a fork() of a program with much memory
 * copies its page tables. */
static int give_birth(struct birth *birth, pid_t *ret_pid)
{
	volatile int err = 0;
	sigset_t all;
	pid_t pid;

	sigfillset(&all);
	/* A handler would run in the child, in our memory. */
	if (pthread_sigmask(SIG_SETMASK, &all, &birth->signals))
		return -EAGAIN;
	pid = birth->row->is_forked ? fork() : vfork(); /* NOLINT(clang-analyzer-*) */
	if (!pid)
		be_born(birth, &err);
	if (pid < 0)
		err = -errno;
	(void)pthread_sigmask(SIG_SETMASK, &birth->signals, NULL);
	if (err && pid > 0)
		(void)waitpid(pid, NULL, 0);
	if (err)
		return err;
	*ret_pid = pid;
	return 0;
}

int child_spawn(enum child_kind kind, const struct child_start *start, pid_t *ret_pid)
{
	const struct child_row *row = child_row(kind);
	const bool is_ours = row->is_confined && !row->program && !start->argv;
	const char *libraries = getenv(LIBRARY_PATH);
	OWNED_MEM char **environment = NULL;
	OWNED_MEM char *found = NULL, *library_path = NULL;
	char variable[] = CHILD_VARIABLE "=1";
	char *const name[] = {(char *)row->name, NULL};
	struct birth birth = {.row = row,
			      .start = start,
			      .program = start->program ?: SELF,
			      .argv = start->argv ?: name};

	if (is_ours && getenv(CHILD_VARIABLE))
		return -ELOOP;
	if (!start->program && row->program) {
		found = malloc(CHILD_PROGRAM_BYTES);
		if (!found)
			return -ENOMEM;
		child_find_program(row->program, found);
		birth.program = found;
	}
	if (row->has_bare_environment && libraries &&
	    asprintf(&library_path, LIBRARY_PATH "=%s", libraries) < 0) {
		library_path = NULL;
		return -ENOMEM;
	}
	if (is_ours) {
		environment = make_environment(row->has_bare_environment, library_path, variable);
		if (!environment)
			return -ENOMEM;
	}
	birth.environment = environment;
	return give_birth(&birth, ret_pid);
}
