/* SPDX-License-Identifier: BSD-2-Clause */
/* Survives a truncated file, against which no bounds check helps: when another process truncates a
 * file that elf_image_open() has mapped, the next read of the missing part raises SIGBUS.
 * Copying files instead would cost hundreds of MiB (libtorch_cuda: 1.5 GiB). So images stay mapped
 * and the signal is made harmless: the missing page becomes a page of zeros, which the parsers
 * distrust like any other bytes. */
#ifndef ELF_ELF_GUARD_H
#define ELF_ELF_GUARD_H

/* Installs the process's SIGBUS handler, once, before the first image is opened. The handler keeps
 * no state: for BUS_ADRERR it maps a zero page over the address, any other SIGBUS kills as before.
 * Returns 0 or -errno. */
int elf_guard_install(void);

#endif
