/* SPDX-License-Identifier: BSD-2-Clause */
#include "elf/elf_guard.h"

#include <errno.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/auxv.h>
#include <sys/mman.h>

static void on_sigbus(int signal_number, siginfo_t *info, void *context)
{
	const uintptr_t page = getauxval(AT_PAGESZ);
	const uintptr_t address = (uintptr_t)info->si_addr & ~(page - 1);
	const int saved_errno = errno;

	(void)context;
	/* The access is repeated on return, and then the default action kills. */
	if (info->si_code != BUS_ADRERR ||
	    mmap((void *)address, page, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1,
		 0) == MAP_FAILED)
		signal(signal_number, SIG_DFL);
	errno = saved_errno;
}

int elf_guard_install(void)
{
	struct sigaction action = {.sa_sigaction = on_sigbus, .sa_flags = SA_SIGINFO};

	sigemptyset(&action.sa_mask);
	return sigaction(SIGBUS, &action, NULL) ? -errno : 0;
}
