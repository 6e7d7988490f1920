/* SPDX-License-Identifier: BSD-2-Clause */
/* The agent's side of the child that parses files, to which the one that opens them hands them.  A
 * file at which the child is late, or ends twice, costs one deadline, and is bad from then on;
 * after some of them its user's files are left alone for a time.  One thread. */
#ifndef FILES_CLIENT_H
#define FILES_CLIENT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/cleanup.h"
#include "elf/probe_sites.h"
#include "files/opener.h"
#include "files/questions.h"
#include "python/python_code.h"
#include "python/python_info.h"
#include "unwind/cfi.h"

/* More than a file's work may take (elf/elf_image.h), and the longest stall of the agent's loop. */
#define FOREIGN_DEADLINE_MS 250U
/* For files of a user, other than root, of whom one was late. */
#define FOREIGN_SUSPECT_MS 50U
/* Code objects in a request have no more bytes together, unless it is one.  The child takes 2 to 3
 * ms for as many. */
#define FOREIGN_CODES_BYTES (256U << 10)

struct foreign_stats {
	/* By enum foreign_kind and enum foreign_cost.  A question that is put to a second child
	 * counts once. */
	uint64_t count[FOREIGN_COUNTERS];
	uint64_t late;	  /* files that were not answered for before the deadline */
	uint64_t ended;	  /* files at which two children ended, or said what cannot be */
	uint64_t none;	  /* requests for which there was no child */
	uint64_t put_off; /* requests not made: the user had used up a share of the time */
	uint64_t starts;  /* of children */
	uint64_t stuck;	  /* children that did not end when they were killed */
	struct opener_stats opener;
};

struct foreign;
/* program: what children are, "/proc/self/exe" for the agent's own.  Starts the first ones, if that
 * can be done.  Returns 0; -ENOMEM; -errno. */
int foreign_new(const char *program, struct foreign **ret_foreign);
/* Waits until the first children are ready.  Returns whether they are: if not, no file is parsed
 * until they can be started. */
bool foreign_await(struct foreign *foreign);
/* Ends the children. */
void foreign_free(struct foreign *foreign);
DEFINE_OWNED(struct foreign, foreign)
/* Returns what opens the files; borrowed. */
struct opener *foreign_opener(const struct foreign *foreign);

/* Where a file is open. */
struct foreign_source {
	int fd; /* of the agent's own files; borrowed until the next call; -1: by the child */
	struct opener_file opened;
};

/* A file that is asked about. */
struct foreign_file {
	uint32_t number; /* not 0; no other file has it, nor will soon */
	uid_t user;	 /* who is suspected when the child is late */
	uid_t payer;	 /* whose share of the child's time it takes; 0: nobody's */
	uint64_t place;	 /* opener_place(); 0: unknown, or it is the agent's own */
	/* Finds where it is open.  Returns 0 or -errno, which is what the question about the file
	 * then gives. */
	int (*find)(void *context, struct foreign_source *ret_source); /* foreign_texts(): NULL */
	void *context;
	const struct opener_debug *debug; /* for foreign_names(); NULL: none */
};

struct foreign_facts;
/* All questions return 0; -ETIME: the file is bad, it is not to be asked about again soon;
 * -ETIMEDOUT: there is no child, or the user is left alone; -EAGAIN: its payer has used up a share
 * of the child's time (files/user_time.h); -E2BIG: it takes more work or memory than its budget;
 * else what parsing it gave: */

/* Finds out what a file is.  *ret_python is the caller's, NULL: it is no interpreter, or one that
 * cannot be read; then *ret_reason says why, and lives as long as `foreign`; NULL: it is none.
 * -ENOEXEC, -EBADMSG: it is no ELF file that we support; -ENOTSUP: it lies in huge pages;
 * -ENOMEM. */
int foreign_examine(struct foreign *foreign, const struct foreign_file *file,
		    struct foreign_facts *ret_facts, struct python_info **ret_python,
		    const char **ret_reason);
/* As cfi_compile().  -ENODATA, -EBADMSG: it has no unwind information; -ENOMEM. */
int foreign_rows(struct foreign *foreign, const struct foreign_file *file, uint64_t low,
		 uint64_t high, struct cfi_rows *rows);
/* The function at an address.  Texts are valid during the call; the child has made them readable,
 * but any byte may be in them. */
struct foreign_function {
	const char *name;	 /* NULL: there is none */
	const char *system_name; /* the linker's where it differs, else "" */
	uint64_t start;
	/* Every address in [low, high) has this answer, also when the answer is "none". */
	uint64_t low, high;
};
typedef void foreign_function_handler(void *context, const struct foreign_function *function);
/* Finds the functions of ascending addresses, and calls found() for each address in turn; after an
 * error some may be left out.  -EBADMSG: functions overlap as in no honest file. */
int foreign_names(struct foreign *foreign, const struct foreign_file *file, const uint64_t *vaddr,
		  size_t count, foreign_function_handler *found, void *context);
/* Finds the kernels of NVIDIA's GPUs that functions stand for, as foreign_names(): a name is a
 * kernel's.  are_functions: the addresses are those at which functions begin that a program has
 * launched, else they lie inside of functions that may be such stubs, or others
 * (files/kernel_names.h). */
int foreign_kernels(struct foreign *foreign, const struct foreign_file *file, const uint64_t *vaddr,
		    size_t count, bool are_functions, foreign_function_handler *found,
		    void *context);
/* Demangles the first of some texts, as many as go into one request; each has 1 to 4,095 bytes.
 * whose: who is suspected, and pays; it has no descriptor, and what is bad when the child is late
 * or ends is its number.  Calls found() for each text in turn: a name, or none where the text is
 * not mangled.  Returns how many, one at least; -ENOMEM; -errno. */
int foreign_texts(struct foreign *foreign, const struct foreign_file *whose,
		  const char *const *text, size_t count, foreign_function_handler *found,
		  void *context);
/* As probe_sites_find(); nearest names have printable ASCII characters only.  -EINVAL: not 1 to
 * PROBE_WANTED_MAX sound ones are wanted.  *ret_sites is released by probe_sites_release(). */
int foreign_probes(struct foreign *foreign, const struct foreign_file *file,
		   const struct probe_wanted *wanted, size_t count, struct probe_sites *ret_sites);
struct foreign_lines;
/* Reads the complete lines in [low, high) of a JIT's perf map, as many as fit into an answer.  The
 * file is handed over each time.  *ret_lines is the caller's, checked; no lines, and next ==
 * low: there are none yet.  -errno: it cannot be read; -ENOMEM. */
int foreign_lines(struct foreign *foreign, const struct foreign_file *file, uint64_t low,
		  uint64_t high, struct foreign_lines **ret_lines);
/* The texts of a code object are the handler's. */
typedef void foreign_code_handler(void *context, size_t index, struct python_code_text *text);
/* Decodes the first of some sound code objects, as many as go into one request, and calls decoded()
 * for each in turn.  file says whose they are; it has no descriptor, and what is bad when the child
 * is late or ends is its number.  Lates of files and of code objects count apart: a user whose
 * files are left alone still has code objects decoded.  Returns how many, one at least; -ENOMEM;
 * -errno. */
int foreign_codes(struct foreign *foreign, const struct foreign_file *file,
		  const struct python_code_raw *const *raw, size_t count,
		  foreign_code_handler *decoded, void *context);
/* Says that a file will hardly be asked about soon: the child keeps the others first. */
void foreign_done(struct foreign *foreign, uint32_t number);
/* Lets the child forget a file, which its mapping would keep from being unmounted; all of them. */
void foreign_close(struct foreign *foreign, uint32_t number);
void foreign_close_all(struct foreign *foreign);
/* foreign NULL: there is none, *ret_stats is untouched. */
void foreign_get_stats(const struct foreign *foreign, struct foreign_stats *ret_stats);

#endif
