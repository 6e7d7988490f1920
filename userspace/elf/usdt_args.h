/* SPDX-License-Identifier: BSD-2-Clause */
/* The text in a probe's note that says where its arguments lie: "8@%rdi -4@112(%rsp)", operands as
 * the assembler of the file's machine writes them.  No state. */
#ifndef ELF_USDT_ARGS_H
#define ELF_USDT_ARGS_H

#include <stddef.h>
#include <stdint.h>

#include <pyprofd/probe.h>

/* Parses the first PP_PROBE_ARGS arguments of a text; machine: EM_….  One that we cannot read has
 * kind PP_ARG_NONE.  Returns how many arguments were parsed. */
size_t usdt_args_parse(uint16_t machine, const char *text,
		       struct pp_probe_arg ret_arg[PP_PROBE_ARGS]);

#endif
