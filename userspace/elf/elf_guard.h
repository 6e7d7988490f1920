/* SPDX-License-Identifier: BSD-2-Clause */
/* Against the one thing that no bounds check stops: another process truncates a file that
 * elf_image_open() has mapped, and the next read of it raises SIGBUS.
 *
 * Copying files instead would cost hundreds of MiB (libtorch_cuda: 1.5 GiB), so images stay mapped
 * and the signal is made harmless: a page that went away becomes a page of zeros, which the parsers
 * distrust like any other bytes. */
#ifndef ELF_ELF_GUARD_H
#define ELF_ELF_GUARD_H

/* Installs the process's SIGBUS handler, once, before the first image is opened.  It keeps no state:
 * BUS_ADRERR maps a zero page over the address, any other SIGBUS kills as before.
 * Returns 0 or -errno. */
int elf_guard_install(void);

#endif
