/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/task.h"

#include <errno.h>
#include <inttypes.h>
#include <link.h>
#include <linux/capability.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/io.h"

/* ---- capabilities ---- */

#define WORD_BITS 32U

struct capability_sets {
	struct __user_cap_header_struct header;
	struct __user_cap_data_struct word[_LINUX_CAPABILITY_U32S_3];
};

static int read_sets(struct capability_sets *sets)
{
	*sets = (struct capability_sets){.header.version = _LINUX_CAPABILITY_VERSION_3};
	return syscall(SYS_capget, &sets->header, sets->word) ? -errno : 0;
}

bool capabilities_are_held(uint64_t mask)
{
	struct capability_sets sets;
	uint64_t held = 0;

	if (read_sets(&sets))
		return false;
	for (size_t i = 0; i < ARRAY_SIZE(sets.word); i++)
		held |= (uint64_t)sets.word[i].effective << i * WORD_BITS;
	return (held & mask) == mask;
}

int capabilities_keep(uint64_t kept, uint64_t inherited)
{
	struct capability_sets sets, before;
	int err = read_sets(&sets);

	if (err)
		return err;
	before = sets;
	for (size_t i = 0; i < ARRAY_SIZE(sets.word); i++) {
		struct __user_cap_data_struct *word = &sets.word[i];

		word->permitted &= (uint32_t)(kept >> i * WORD_BITS);
		word->effective &= word->permitted;
		/* capset(2) takes from the ambient set what is not permitted and inheritable. */
		word->inheritable &= (uint32_t)(inherited >> i * WORD_BITS);
	}
	/* The filter of a service that has none may refuse the call: it is in systemd's
	 * @privileged. */
	if (!memcmp(before.word, sets.word, sizeof(sets.word)))
		return 0;
	return syscall(SYS_capset, &sets.header, sets.word) ? -errno : 0;
}

int capabilities_raise(void)
{
	struct capability_sets sets;
	int err = read_sets(&sets);

	if (err)
		return err;
	for (size_t i = 0; i < ARRAY_SIZE(sets.word); i++)
		sets.word[i].effective = sets.word[i].permitted;
	return syscall(SYS_capset, &sets.header, sets.word) ? -errno : 0;
}

/* ---- costs ---- */

/* Where code of this program lies in the program's file. */

struct search {
	uintptr_t address;
	uint64_t offset; /* the answer */
	bool is_found;
};

static int find(struct dl_phdr_info *info, size_t size, void *context)
{
	struct search *search = context;

	(void)size;
	for (unsigned int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
		const uintptr_t start = info->dlpi_addr + segment->p_vaddr;

		if (segment->p_type != PT_LOAD || search->address < start ||
		    search->address - start >= segment->p_filesz)
			continue;
		search->offset = search->address - start + segment->p_offset;
		search->is_found = true;
	}
	return 1; /* the first one is the program itself: dl_iterate_phdr(3) */
}

int own_code_offset(const void *address, uint64_t *ret_offset)
{
	struct search search = {.address = (uintptr_t)address};

	(void)dl_iterate_phdr(find, &search);
	if (!search.is_found)
		return -ENOENT;
	*ret_offset = search.offset;
	return 0;
}

#define STATM_BYTES 256U /* seven numbers */

uint64_t own_cost_cpu_ns(void)
{
	struct rusage usage = {0};

	(void)getrusage(RUSAGE_SELF, &usage);
	return (uint64_t)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * NS_PER_SEC +
	       (uint64_t)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * NS_PER_US;
}

uint64_t own_cost_rss_bytes(void)
{
	OWNED_MEM char *text = NULL;
	const char *resident;

	if (read_file("/proc/self/statm", STATM_BYTES, &text, NULL))
		return 0;
	resident = strchr(text, ' '); /* behind the size */
	return resident ? strtoull(resident, NULL, 10) * (uint64_t)sysconf(_SC_PAGESIZE) : 0;
}

uint64_t process_cpu_ns(pid_t pid)
{
	clockid_t clock;

	return clock_getcpuclockid(pid, &clock) ? 0 : clock_ns(clock);
}

uint64_t process_delay_ns(pid_t pid)
{
	OWNED_MEM char *text = NULL;
	uint64_t delay_ns;
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/schedstat", pid);
	if (read_file(path, 128, &text, NULL) || sscanf(text, "%*u %" SCNu64, &delay_ns) != 1)
		return 0;
	return delay_ns;
}

#define STAT_MAX_BYTES 4096U

bool task_is_running(pid_t tid)
{
	OWNED_MEM char *text = NULL;
	const char *end;
	char path[32];

	snprintf(path, sizeof(path), "/proc/%d/stat", tid);
	if (read_file(path, STAT_MAX_BYTES, &text, NULL))
		return false;
	end = strrchr(text, ')');
	return end && !strncmp(end, ") R", 3);
}
