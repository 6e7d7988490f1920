/* SPDX-License-Identifier: BSD-2-Clause */
/* Picks the few variables of a process's environment that labels are made from.  Nothing else of it
 * is kept: an environment holds secrets.  No state. */
#ifndef IDENTITY_ENVIRONMENT_H
#define IDENTITY_ENVIRONMENT_H

#include <stdbool.h>
#include <stddef.h>

#include "identity/label_value.h"

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

#endif
