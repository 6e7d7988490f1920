/* SPDX-License-Identifier: BSD-2-Clause */
/* service_caps PROGRAM...   Runs it as root with the capabilities that pyprofd asks for and no
 * others, and with a service's LimitMEMLOCK=infinity. */
#include <linux/capability.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	static const unsigned int kept[] = {
		CAP_BPF,    CAP_PERFMON,	 CAP_SYS_PTRACE,
		CAP_SYSLOG, CAP_DAC_READ_SEARCH, CAP_CHECKPOINT_RESTORE};
	const struct rlimit unlimited = {RLIM_INFINITY, RLIM_INFINITY};
	unsigned long long mask = 0;

	for (unsigned int i = 0; i < sizeof(kept) / sizeof(kept[0]); i++)
		mask |= 1ULL << kept[i];
	if (argc < 2 || setrlimit(RLIMIT_MEMLOCK, &unlimited)) {
		perror("service_caps");
		return 2;
	}
	/* EINVAL: the kernel knows no more of them. */
	for (unsigned int i = 0; i < 64 && prctl(PR_CAPBSET_READ, i, 0, 0, 0) >= 0; i++)
		if (!(mask >> i & 1) && prctl(PR_CAPBSET_DROP, i, 0, 0, 0)) {
			perror("PR_CAPBSET_DROP");
			return 2;
		}
	execv(argv[1], argv + 1);
	perror(argv[1]);
	return 127;
}
