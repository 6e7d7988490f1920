/* SPDX-License-Identifier: BSD-2-Clause */
/* The labels that say who a process is: the agent writes them (identity/), the reader groups by
 * them. */
#ifndef BASE_LABEL_KEYS_H
#define BASE_LABEL_KEYS_H

/* X(id, key) */
#define IDENTITY_LABELS(X)                                                                         \
	X(SERVICE_NAME, "service_name")                                                            \
	X(APP, "app")                                                                              \
	X(UNIT, "unit")                                                                            \
	X(USER, "user")                                                                            \
	X(NAMESPACE, "namespace")                                                                  \
	X(POD, "pod")                                                                              \
	X(CONTAINER, "container")                                                                  \
	X(SLURM_JOB, "slurm_job")                                                                  \
	X(RANK, "rank")                                                                            \
	X(LOCAL_RANK, "local_rank")                                                                \
	X(WORLD_SIZE, "world_size")

#endif
