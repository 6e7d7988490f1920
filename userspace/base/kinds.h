/* SPDX-License-Identifier: BSD-2-Clause */
/* The kinds of profile as a table, made from the X-macros of include/pyprofd/kinds.h. */
#ifndef BASE_KINDS_H
#define BASE_KINDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <pyprofd/kinds.h>

struct kind_value {
	const char *type, *unit;
	enum pp_merge merge;
};

struct kind {
	const char *name; /* "cpu"; as in file names, --kind and requests */
	uint32_t needs;	  /* bits of enum pp_capture: kind_is_captured() */
	/* what a pyprofd that the reader starts captures for this kind */
	uint32_t private_captures;
	uint32_t default_value; /* index in value[] */
	/* the entries from the last one on are {NULL, NULL} */
	struct kind_value value[PP_VALUES_MAX + 1];
};

const struct kind *kind_get(enum pp_profile kind);
size_t kind_value_count(enum pp_profile kind);
/* Finds a kind by its name: `size` bytes without a NUL. Returns false when no kind has that
 * name. */
bool kind_find(const char *name, size_t size, enum pp_profile *ret_kind);
bool kind_is(const char *name, enum pp_profile kind);
/* Returns how windows of a kind's sample type, or of one of records, are put together; of a type
 * that is not ours, by sums. */
enum pp_merge kind_value_merge(const char *kind, const char *type);
/* Returns whether it is a kind of records: PP_RECORDS. */
bool kind_is_record(enum pp_profile kind);
/* Returns whether the captures make a profile of that kind possible: bits of enum pp_capture. */
bool kind_is_captured(enum pp_profile kind, uint32_t captures);
/* Returns the label of a kind of memory: "anonymous". */
const char *kind_memory(enum pp_memory memory);
/* Bits 1 << enum pp_profile of the kinds that the live socket serves. */
#define KIND_SERVED_BIT(id, number, name, needs, captures, is_served, value)                       \
	| (uint32_t)(is_served) << (number)
#define KINDS_SERVED (0U PP_PROFILES(KIND_SERVED_BIT, KIND_SERVED_BIT))

/* Writes the names of the kinds (bits 1 << enum pp_profile) in the order of their numbers, with
 * `between` between two names and `last` before the last one: "cpu, offcpu and gil". */
#define KIND_NAME_CHARS(id, number, name, ...) +sizeof(name) + 1
#define KIND_NAMES_CHARS (4U PP_PROFILES(KIND_NAME_CHARS, KIND_NAME_CHARS))
void kind_names(uint32_t kinds, const char *between, const char *last,
		char ret_names[KIND_NAMES_CHARS]);

/* Finds the bit of enum pp_capture by its name in --events. Returns false when there is none. */
bool capture_find(const char *name, size_t size, uint32_t *ret_capture);
/* Writes the names of enum pp_capture bits as --events takes them: "cpu,offcpu". */
#define CAPTURE_NAME_CHARS(id, name, ...) +sizeof(name) + 1
#define CAPTURE_NAMES_CHARS (0U PP_CAPTURES(CAPTURE_NAME_CHARS, CAPTURE_NAME_CHARS))
void capture_names(uint32_t captures, const char *between, char ret_names[CAPTURE_NAMES_CHARS]);

/* X(id, key): the labels that say who a process is.  The agent writes them (identity/), the reader
 * groups by them. */
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
