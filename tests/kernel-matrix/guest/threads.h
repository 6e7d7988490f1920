/* SPDX-License-Identifier: BSD-2-Clause */
/* ALL(X) is X(00) X(01) ... X(77), in octal: for 64 threads, each in a function of its own name, so
 * that a stack tells whose it is. */
#ifndef PYPROFD_GUEST_THREADS_H
#define PYPROFD_GUEST_THREADS_H

/* A function that is called, and does not end in a jump to what it calls last. */
#define APART __attribute__((noinline, noclone, noipa))
#define AFTER_IT() __asm__ volatile("" ::: "memory")

#define EIGHT(X, n) X(n##0) X(n##1) X(n##2) X(n##3) X(n##4) X(n##5) X(n##6) X(n##7)
#define ALL(X)                                                                                     \
	EIGHT(X, 0) EIGHT(X, 1) EIGHT(X, 2) EIGHT(X, 3) EIGHT(X, 4) EIGHT(X, 5) EIGHT(X, 6)        \
	EIGHT(X, 7)

#endif
