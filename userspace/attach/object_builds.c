/* SPDX-License-Identifier: BSD-2-Clause */
#include "attach/object_builds.h"

#include <bpf/libbpf.h>
#include <elf.h>
#include <errno.h>
#include <linux/bpf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <pyprofd/limits.h>

#include "base/cleanup.h"
#include "base/log.h"

/* Reads what the kernel's BPF verifier says of a program. */

/* The reason and statistics (include/linux/bpf_verifier.h: BPF_LOG_STATS).  libbpf's own second try
 * asks for each instruction as well, for which no buffer has room: before Linux 6.4 the error is
 * then ENOSPC, and the log ends before the reason. */
#define LEVEL_STATISTICS 4U

void verifier_log_set(struct bpf_program *program, char *log)
{
	(void)bpf_program__set_log_buf(program, log, VERIFIER_LOG_BYTES);
	(void)bpf_program__set_log_level(program, LEVEL_STATISTICS);
}

static bool is_statistic(const char *line)
{
	static const char *const beginning[] = {"processed ", "verification time", "stack depth"};

	for (size_t i = 0; i < ARRAY_SIZE(beginning); i++)
		if (!strncmp(line, beginning[i], strlen(beginning[i])))
			return true;
	return false;
}

const char *verifier_log_reason(char *log)
{
	const char *reason = NULL;
	char *line = log;

	while (line && *line) {
		char *end = strchr(line, '\n');

		if (end)
			*end = '\0';
		if (*line && !is_statistic(line))
			reason = line;
		line = end ? end + 1 : NULL;
	}
	return reason;
}

void object_builds_explain(const char *what, int err, char *log, char *why, size_t why_size)
{
	const char *said = verifier_log_reason(log);

	if (said)
		snprintf(why, why_size, "the kernel refused %s: %s (%s)", what, strerror(-err),
			 said);
	else
		snprintf(why, why_size, "cannot load %s: %s", what, strerror(-err));
}

static void set_log(struct bpf_object *object, char *log)
{
	struct bpf_program *program;

	bpf_object__for_each_program(program, object) verifier_log_set(program, log);
}

static void adapt_instruction(struct bpf_insn *instruction, const struct object_has *has)
{
	const uint8_t kind = BPF_CLASS(instruction->code);

	if (instruction->code == (BPF_JMP | BPF_CALL) && !instruction->src_reg &&
	    instruction->imm == PP_CALL_RDONLY_CAST && has->rdonly_cast) {
		instruction->src_reg = BPF_PSEUDO_KFUNC_CALL;
		instruction->imm = (int32_t)has->rdonly_cast;
	}
	if (kind == BPF_STX && BPF_MODE(instruction->code) == BPF_ATOMIC &&
	    instruction->imm != BPF_ADD && !has->cmpxchg)
		*instruction = (struct bpf_insn){.code = BPF_ALU64 | BPF_MOV | BPF_K};
}

static void adapt_code(uint8_t *code, size_t size, const struct object_has *has)
{
	struct bpf_insn instruction;

	for (size_t at = 0; at + sizeof(instruction) <= size; at += sizeof(instruction)) {
		memcpy(&instruction, code + at, sizeof(instruction));
		if (instruction.code == (BPF_LD | BPF_IMM | BPF_DW)) {
			at += sizeof(instruction); /* the second half is a number */
			continue;
		}
		adapt_instruction(&instruction, has);
		memcpy(code + at, &instruction, sizeof(instruction));
	}
}

int object_builds_adapt(void *elf, size_t size, const struct object_has *has)
{
	Elf64_Ehdr header;
	Elf64_Shdr section;

	if (size < sizeof(header))
		return -EBADMSG;
	memcpy(&header, elf, sizeof(header));
	if (header.e_shentsize != sizeof(section) || header.e_shoff > size ||
	    (size - header.e_shoff) / sizeof(section) < header.e_shnum)
		return -EBADMSG;
	for (size_t i = 0; i < header.e_shnum; i++) {
		memcpy(&section, (uint8_t *)elf + header.e_shoff + i * sizeof(section),
		       sizeof(section));
		if (section.sh_type != SHT_PROGBITS || !(section.sh_flags & SHF_EXECINSTR))
			continue;
		if (section.sh_offset > size || section.sh_size > size - section.sh_offset)
			return -EBADMSG;
		adapt_code((uint8_t *)elf + section.sh_offset, section.sh_size, has);
	}
	return 0;
}

/* Opens what libbpf copies. */
static int open_adapted(const struct object_builds *builds, struct bpf_object_skeleton *skeleton,
			const struct object_has *has)
{
	OWNED_MEM void *elf = NULL;
	size_t size;
	const void *made = builds->elf(&size);
	int err;

	elf = malloc(size);
	if (!elf)
		return -ENOMEM;
	memcpy(elf, made, size);
	err = object_builds_adapt(elf, size, has);
	if (err)
		return err;
	skeleton->data = elf;
	skeleton->data_sz = size;
	err = bpf_object__open_skeleton(skeleton, NULL);
	skeleton->data = NULL;
	return err;
}

/* `log` is empty at first. */
static int load(const struct object_builds *builds, void *context, const struct object_has *has,
		char *log)
{
	struct bpf_object_skeleton *skeleton = builds->create(context);
	int err;

	if (!skeleton)
		return -ENOMEM;
	err = open_adapted(builds, skeleton, has);
	if (!err)
		err = builds->prepare(context, has);
	if (err)
		return err;
	set_log(*skeleton->obj, log);
	return bpf_object__load_skeleton(skeleton);
}

int object_builds_load(const struct object_builds *builds, void *context, char *why,
		       size_t why_size)
{
	const struct object_has tried[] = {{.cmpxchg = true, .rdonly_cast = builds->rdonly_cast},
					   {0}};
	OWNED_MEM char *log = malloc(VERIFIER_LOG_BYTES);
	int err = -ENOMEM;

	if (!log)
		object_builds_explain(builds->what, err, (char[]){""}, why, why_size);
	for (size_t i = 0; log && err && i < ARRAY_SIZE(tried); i++) {
		if (i)
			log_debug("%s: trying what Linux 5.10 has", why);
		log[0] = '\0';
		err = load(builds, context, &tried[i], log);
		if (err)
			object_builds_explain(builds->what, err, log, why, why_size);
	}
	return err;
}
