/* SPDX-License-Identifier: BSD-2-Clause */
/* Who a process is: the labels that every sample of it gets besides pid, command and container.
 * docs/design/configuration.md.  No state. */
#ifndef IDENTITY_IDENTITY_H
#define IDENTITY_IDENTITY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/kinds.h"
#include "base/user_quota.h"
#include "identity/cgroup_names.h"

/* Of the file PROCESS_TEXT_MAX_BYTES are read: some five thousand users. */
#define USERS_AGAIN_NS 60000000000ULL /* the file is read again for a user that is not in it */

/* All zero is a table that has not read the file. */
struct users {
	char *text;	  /* owned; NULL: none */
	uint64_t read_ns; /* 0: never */
};
void users_release(struct users *users);

/* Finds a user's name; the number where there is none. */
void users_name(struct users *users, uint32_t uid, uint64_t now_ns,
		char ret_name[LABEL_VALUE_BYTES]);
/* Finds a name in the text of a file as /etc/passwd.  Returns whether it is there. */
bool users_find(const char *text, uint32_t uid, char ret_name[LABEL_VALUE_BYTES]);

/* What is behind these is not looked at. */
#define ENVIRONMENT_BYTES (256U << 10)
#define ENVIRONMENT_ENTRIES_MAX 4096U

/* Label, variable; the first variable of a label that has a value counts.  docs/security.md lists
 * them.  Sources: OpenTelemetry, "General SDK configuration"; Datadog, "Unified service tagging";
 * torchrun(1); Open MPI 5, MPICH (Hydra); srun(1), "OUTPUT ENVIRONMENT VARIABLES". */
#define ENVIRONMENT_VARIABLES(X)                                                                   \
	X(SERVICE, "OTEL_SERVICE_NAME")                                                            \
	X(SERVICE, "DD_SERVICE")                                                                   \
	X(SLURM_JOB, "SLURM_JOB_ID")                                                               \
	X(RANK, "RANK")                                                                            \
	X(RANK, "OMPI_COMM_WORLD_RANK")                                                            \
	X(RANK, "PMI_RANK")                                                                        \
	X(RANK, "SLURM_PROCID")                                                                    \
	X(LOCAL_RANK, "LOCAL_RANK")                                                                \
	X(LOCAL_RANK, "OMPI_COMM_WORLD_LOCAL_RANK")                                                \
	X(LOCAL_RANK, "MPI_LOCALRANKID")                                                           \
	X(LOCAL_RANK, "SLURM_LOCALID")                                                             \
	X(WORLD_SIZE, "WORLD_SIZE")                                                                \
	X(WORLD_SIZE, "OMPI_COMM_WORLD_SIZE")                                                      \
	X(WORLD_SIZE, "PMI_SIZE")                                                                  \
	X(WORLD_SIZE, "SLURM_NTASKS")

enum environment_label {
	ENVIRONMENT_SERVICE,
	ENVIRONMENT_SLURM_JOB, /* this and what follows is a number, else "" */
	ENVIRONMENT_RANK,
	ENVIRONMENT_LOCAL_RANK,
	ENVIRONMENT_WORLD_SIZE,
	ENVIRONMENT_LABELS
};

struct environment {
	char label[ENVIRONMENT_LABELS][LABEL_VALUE_BYTES]; /* "": none of its variables is set */
};

/* text: what /proc/PID/environ says; text[size] is NUL.  Returns whether all of its
 * entries were looked at. */
bool environment_pick(const char *text, size_t size, struct environment *ret_environment);

#define VALUE_TABLE_MAX 16384U /* values */

struct label_value_entry;
struct value_table;
int value_table_new(struct value_table **ret_table);
void value_table_free(struct value_table *table);
DEFINE_OWNED(struct value_table, value_table)

/* Takes a value for a process of a user; "" is none, and costs nothing: *ret_value is NULL.  Who
 * brought it first answers for it as long as it is used.  Returns 0; -EDQUOT, -ENOSPC: there are
 * too many; -ENOMEM. */
int value_table_take(struct value_table *table, uint32_t uid, const char *text,
		     struct label_value_entry **ret_value);
/* Takes it once more; NULL stays NULL. */
struct label_value_entry *value_table_share(struct label_value_entry *value);
void value_table_give(struct value_table *table, struct label_value_entry *value);
/* Returns "" for NULL.  Valid until it is given back. */
const char *value_text(const struct label_value_entry *value);
/* The users' shares, for whoever tells of them. */
struct user_quota *value_table_quota(struct value_table *table);

enum identity_label {
#define IDENTITY_LABEL(id, key) IDENTITY_##id,
	IDENTITY_LABELS(IDENTITY_LABEL)
#undef IDENTITY_LABEL
		IDENTITY_LABEL_COUNT,
	/* What the environment says the service is called: no label, but service_name and the
	 * service_name of children come from it. */
	IDENTITY_SERVICE = IDENTITY_LABEL_COUNT,
	IDENTITY_COUNT
};

struct identity {
	struct label_value_entry *value[IDENTITY_COUNT]; /* owned; NULL: there is none */
};
void identity_release(struct value_table *values, struct identity *identity);

/* Sets a value, for a process of that user.  Returns 0; -EDQUOT, -ENOSPC, -ENOMEM: it stays as it
 * was. */
int identity_set(struct value_table *values, struct identity *identity, uint32_t uid,
		 enum identity_label label, const char *text);
/* Takes what an environment says.  Returns how many values did not fit. */
unsigned int identity_set_environment(struct value_table *values, struct identity *identity,
				      uint32_t uid, const struct environment *environment);
/* Takes what comes from the program that runs (app and environment) from another process. */
void identity_inherit(struct value_table *values, struct identity *identity,
		      const struct identity *parent);
void identity_inherit_app(struct value_table *values, struct identity *identity,
			  const struct identity *parent);
/* Names the service: what the environment says, else the application, else the container, else the
 * command.  Returns as identity_set(). */
int identity_name_service(struct value_table *values, struct identity *identity, uint32_t uid,
			  const char *comm);

/* Names the application that a Python process runs, from its command line.  No other argument of
 * the command line is kept: they may hold secrets.  No state. */

#define ARGUMENTS_MAX 128U /* later ones are not looked at */

/* The arguments of a program, borrowed from its command line. */
struct arguments {
	const char *argument[ARGUMENTS_MAX];
	size_t count;
};

/* A part of an argument. */
struct span {
	const char *at;
	size_t size;
};

#define APP_COMMAND_LINE_BYTES 16384U /* what is behind that is not looked at */

enum app_kind {
	APP_NONE,      /* not Python, an interactive one, or `-c` */
	APP_NAMED,     /* *ret_app is its name */
	APP_OF_PARENT, /* a child that multiprocessing, or what is like it, has started */
};

/* text: what /proc/PID/cmdline says, arguments with a NUL behind each; text[size] is NUL.
 * The name is, of `python [OPTION]... X`:
 * - for a script its file's name (the directory's for __main__.py), for `-m MODULE` the module's;
 * - for gunicorn the value of --name, else the module of its application (gunicorn shop.wsgi:app is
 *   "shop.wsgi"); for uvicorn, hypercorn and granian that module;
 * - for celery the module of its -A, else "celery"; for ray's workers "ray";
 * - for torchrun, torch.distributed.run, accelerate and deepspeed the script that they start.
 * Of a title (setproctitle): what is in the brackets of "gunicorn: worker [NAME]", the -A
 * of "[celeryd: ...] (worker -A ...)", else "celery"; "ray::ACTOR" of "ray::ACTOR.method". */
enum app_kind app_name(const char *text, size_t size, char ret_app[LABEL_VALUE_BYTES]);

#endif
