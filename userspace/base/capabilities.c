/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/capabilities.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"

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
