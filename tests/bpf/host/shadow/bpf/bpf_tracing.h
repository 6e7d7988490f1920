/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A tracepoint's program takes its context first, then its arguments, as an ordinary function. */
#ifndef HOST_BPF_TRACING_H
#define HOST_BPF_TRACING_H

#define BPF_PROG(name, ...) name(void *ctx, __VA_ARGS__)

#endif
