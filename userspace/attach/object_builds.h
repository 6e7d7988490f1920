/* SPDX-License-Identifier: BSD-2-Clause */
/* Loads a BPF object in two builds: for what the running kernel should have, and, where that is
 * refused, for Linux 5.10.  Both are made of the one ELF file, by replacing instructions that older
 * verifiers refuse even in code that never runs; constants of the object switch that code off. */
#ifndef ATTACH_OBJECT_BUILDS_H
#define ATTACH_OBJECT_BUILDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct bpf_object_skeleton;

/* What an object may use. */
struct object_has {
	bool cmpxchg;	      /* and xchg, and the results of atomic additions: Linux 5.12 */
	uint32_t rdonly_cast; /* BTF id of bpf_rdonly_cast(), 6.2; 0: the kernel has none */
};

/* The generated code of a skeleton has types of its own for each object: these functions know
 * them.  context: what object_builds_load() was given. */
struct object_builds {
	const char *what; /* "the programs of probes", for messages */
	const void *(*elf)(size_t *ret_size);
	uint32_t rdonly_cast; /* of struct object_has */
	/* Makes a skeleton that is not open, and frees the one of an earlier call.  Returns NULL
	 * without memory.  The context owns it. */
	struct bpf_object_skeleton *(*create)(void *context);
	/* Sets all that must be known before the load, has_cmpxchg and has_rdonly_cast too.
	 * Returns 0 or -errno. */
	int (*prepare)(void *context, const struct object_has *has);
};

/* Defines create() of a context whose first member is the skeleton: struct NAME *skeleton. */
#define DEFINE_SKELETON_CREATE(context_type, name)                                                 \
	static struct bpf_object_skeleton *create(void *context)                                   \
	{                                                                                          \
		struct context_type *of = context;                                                 \
                                                                                                   \
		name##__destroy(of->skeleton);                                                     \
		of->skeleton = calloc(1, sizeof(*of->skeleton));                                   \
		if (!of->skeleton || name##__create_skeleton(of->skeleton))                        \
			return NULL;                                                               \
		return of->skeleton->skeleton;                                                     \
	}

/* Opens and loads one build or, where that fails, the older one.  Returns 0 or -errno with one line
 * in `why` about the last build tried: the verifier's reason, when it refused. */
int object_builds_load(const struct object_builds *builds, void *context, char *why,
		       size_t why_size);

/* Replaces instructions in the code of an ELF file of ours, of this machine, in place: each call of
 * PP_CALL_RDONLY_CAST by one of bpf_rdonly_cast(), and without cmpxchg each atomic instruction but
 * a plain addition by a move, which the verifier takes and nothing reaches.  Returns 0; -EBADMSG:
 * it is no such file. */
int object_builds_adapt(void *elf, size_t size, const struct object_has *has);

/* Writes one line about an object that could not be loaded or attached.  log: the verifier's, "" if
 * it said nothing; it is changed. */
void object_builds_explain(const char *what, int err, char *log, char *why, size_t why_size);

struct bpf_program;

/* What verifier_log_set() needs. */
#define VERIFIER_LOG_BYTES (1U << 20)

/* Has the verifier write into `log`, of VERIFIER_LOG_BYTES and borrowed until the program is
 * loaded.  Programs of one object may share it: the verifier ends at the one that it refuses. */
void verifier_log_set(struct bpf_program *program, char *log);
/* Returns the reason why a program was refused: the last line of its log that is no statistic
 * (kernel/bpf/verifier.c: print_verification_stats()); NULL: there is none.  Ends the log's lines
 * where they end; the reason is a part of it. */
const char *verifier_log_reason(char *log);

#endif
