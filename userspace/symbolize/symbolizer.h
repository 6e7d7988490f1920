/* SPDX-License-Identifier: BSD-2-Clause */
/* Turns a counted stack into named frames.  One object per window; what many stacks share is named
 * once. One thread. */
#ifndef SYMBOLIZE_SYMBOLIZER_H
#define SYMBOLIZE_SYMBOLIZER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/intern.h"
#include "base/slice.h"
#include "drain/dictionary.h"
#include "symbolize/frame.h"

/* Returns whether a function of the interpreter's file, by its name, is call machinery. */
bool interpreter_frame_is_machinery(const char *name);

/* A native function's name, owned by the source and valid until the next call of the source. */
struct symbol {
	const char *name;	 /* demangled; never NULL: "[libfoo.so]" when there is none */
	const char *system_name; /* mangled, where that differs from name; else "" */
};

/* Where names come from; all functions are called with `context`. */
struct symbolizer_sources {
	void *context;
	/* Names n addresses of one file, sorted.  file, here and below: as packed_file() gives
	 * it. */
	void (*native)(void *context, uint32_t file, const uint64_t *address, size_t n,
		       struct symbol *ret_symbols);
	/* Names a kernel address; module "" for the kernel itself. */
	void (*kernel)(void *context, uint64_t address, const char **ret_name,
		       const char **ret_module);
	/* Names an address in a process's anonymous memory; false: no name is known. */
	bool (*anonymous)(void *context, struct pp_process_id id, uint64_t address,
			  const char **ret_name);
	/* Decodes Python's code objects that are new in the dictionary until the slice is over.
	 * Returns whether there are more. */
	bool (*codes)(void *context, const struct slice *slice);
	/* Returns the index of a file's module in the window (profile_add_module); 0: none.
	 * PP_FILE_ANONYMOUS: the module for memory without a file; PP_FILE_NONE: that for the
	 * kernel. */
	uint32_t (*module)(void *context, uint32_t file);
	bool (*is_interpreter)(void *context, uint32_t file);
	/* Returns whether a segment has just one Python frame (<= 3.9); `python` is the stack's. */
	bool (*has_one_frame_segments)(void *context, uint8_t python);
};

struct symbolizer_options {
	bool raw;	/* keep the interpreter's own frames */
	bool no_native; /* for stacks with Python frames, name only those and the kernel's */
};

struct symbolizer;
/* Creates a symbolizer.  strings and dictionary are borrowed and must outlive it; sources and
 * options are copied. */
int symbolizer_new(struct intern *strings, const struct dictionary *dictionary,
		   const struct symbolizer_sources *sources,
		   const struct symbolizer_options *options, struct symbolizer **ret_symbolizer);
void symbolizer_free(struct symbolizer *symbolizer);
DEFINE_OWNED(struct symbolizer, symbolizer)

/* Notes the native frames of a stack, so that all addresses of a file can be named at once; it has
 * code objects decoded, too. */
int symbolizer_note(struct symbolizer *symbolizer, const struct dict_stack *stack);
/* Notes a stack by its hash in the dictionary; does nothing when the dictionary does not have
 * it. */
int symbolizer_note_hash(struct symbolizer *symbolizer, uint64_t hash);
/* Names what was noted until the slice is over (NULL: all), one file, or some code objects, at
 * least.  Returns 0: all are named; 1: the next call goes on, and nothing may be noted before;
 * -ENOMEM. */
int symbolizer_resolve_slice(struct symbolizer *symbolizer, const struct slice *slice);

/* Returns the frames of one sample, leaf first; user and kernel may be NULL.  id: of the counted
 * process.  The array belongs to the symbolizer until the next call.  Returns 0 or -ENOMEM. */
int symbolizer_stack(struct symbolizer *symbolizer, struct pp_process_id id,
		     const struct dict_stack *user, const struct dict_kernel *kernel,
		     const struct frame **ret_frames, size_t *ret_count);

/* ---- Python's code objects ---- */

struct foreign;

/* Has the child decode those that are new in the dictionary, a user's in one request, users in
 * turn. */
struct code_decoder {
	struct dictionary *dictionary; /* borrowed */
	struct foreign *foreign;       /* borrowed; NULL: none is decoded */
	bool is_counted;	       /* in without_names, since code_decoder_begin() */
	/* Code objects at which the child was late or ended, or for whose names the dictionary had
	 * no room. */
	uint64_t given_up;
	/* Those that were not decoded when all had been asked about that could be, once for each
	 * code_decoder_begin(). */
	uint64_t without_names;
};
/* Something is to be named: users who were put off are asked about again. */
void code_decoder_begin(struct code_decoder *decoder);
/* Decodes code objects until the slice is over, one request at least; slice may be NULL.  Those for
 * which there is no child now, or no time of the child for their user, stay as they are until the
 * next code_decoder_begin().  Returns whether there are others that it has not come to. */
bool code_decoder_run(struct code_decoder *decoder, const struct slice *slice);

#endif
