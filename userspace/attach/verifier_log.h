/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads what the kernel's BPF verifier says of a program. */
#ifndef ATTACH_VERIFIER_LOG_H
#define ATTACH_VERIFIER_LOG_H

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
