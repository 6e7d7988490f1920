/* SPDX-License-Identifier: BSD-2-Clause */
/* The static probes of an ELF file (USDT), as the notes of <sys/sdt.h> list them: systemtap's
 * "UserSpaceProbeImplementation", note type 3. */
#ifndef ELF_USDT_NOTES_H
#define ELF_USDT_NOTES_H

#include <stddef.h>
#include <stdint.h>

#include <pyprofd/probe.h>

#include "elf/elf_image.h"

/* Parses the first PP_PROBE_ARGS arguments of a text; machine: EM_….  One that we cannot read has
 * kind PP_ARG_NONE.  Returns how many arguments were parsed. */
size_t usdt_args_parse(uint16_t machine, const char *text,
		       struct pp_probe_arg ret_arg[PP_PROBE_ARGS]);

#define USDT_NAME_MAX_BYTES 128U  /* of a provider or a name, with its NUL */
#define USDT_ARGS_MAX_BYTES 1024U /* with its NUL; a longer text counts as none */

struct usdt_note {
	uint64_t vaddr;	    /* of the instruction */
	uint64_t semaphore; /* vaddr of the counter that enables the probe; 0: none */
	char provider[USDT_NAME_MAX_BYTES];
	char name[USDT_NAME_MAX_BYTES];
	char args[USDT_ARGS_MAX_BYTES]; /* see usdt_args_parse() */
};

/* Notes that name no probe. */
struct usdt_refused {
	uint64_t cut; /* the section ends inside of it, or a text has no end */
	uint64_t long_names;
};

/* Returns false to end the reading. */
typedef bool usdt_note_handler(void *context, const struct usdt_note *note);

/* Calls found() for each probe of the file.  Addresses are those of the file, where prelinking has
 * moved it, too, and are not checked otherwise.  Returns 0, also when there are none; -E2BIG: the
 * file takes more work than its budget. */
int usdt_notes_read(const struct elf_image *image, usdt_note_handler *found, void *context,
		    struct usdt_refused *ret_refused);

#endif
