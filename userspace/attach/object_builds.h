/* SPDX-License-Identifier: BSD-2-Clause */
/* Loads a BPF object of which there are two builds, with the same maps, programs and constants: one
 * for Linux 6.2 and later, and one that does without what older kernels lack.  Which of them the
 * kernel and the version of libbpf take is tried. */
#ifndef ATTACH_OBJECT_BUILDS_H
#define ATTACH_OBJECT_BUILDS_H

#include <stddef.h>

struct bpf_object_skeleton;

/* The generated code of a skeleton has types of its own for each object: these functions know
 * them.  context: what object_builds_load() was given. */
struct object_builds {
	const char *what; /* "the programs of probes", for messages */
	const void *(*elf)(size_t *ret_size);
	const void *(*older_elf)(size_t *ret_size);
	/* Makes a skeleton that is not open, and frees the one of an earlier call.  Returns NULL
	 * without memory.  The context owns it. */
	struct bpf_object_skeleton *(*create)(void *context);
	/* Sets all that must be known before the load.  Returns 0 or -errno. */
	int (*prepare)(void *context);
};

/* Opens and loads one build or, where that fails, the older one.  Returns 0 or -errno with one line
 * in `why` about the last build tried: the verifier's reason, when it refused. */
int object_builds_load(const struct object_builds *builds, void *context, char *why,
		       size_t why_size);

/* Writes one line about an object that could not be loaded or attached.  log: the verifier's, "" if
 * it said nothing; it is changed. */
void object_builds_explain(const char *what, int err, char *log, char *why, size_t why_size);

#endif
