/* SPDX-License-Identifier: BSD-2-Clause */
/* For LD_PRELOAD: the clock on the wall is off by the seconds that the file CLOCK_OFF holds, which
 * its owner may change at any time. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static const volatile int64_t *off_s;

__attribute__((constructor)) static void begin(void)
{
	const char *path = getenv("CLOCK_OFF");
	int fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
	void *page = fd < 0 ? MAP_FAILED : mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0);

	if (page != MAP_FAILED)
		off_s = page;
	if (fd >= 0)
		close(fd);
	unsetenv("LD_PRELOAD");
}

int clock_gettime(clockid_t clock, struct timespec *ret_now)
{
	int err = (int)syscall(SYS_clock_gettime, clock, ret_now);

	if (!err && clock == CLOCK_REALTIME && off_s)
		ret_now->tv_sec += *off_s;
	return err;
}

time_t time(time_t *ret_now)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	if (ret_now)
		*ret_now = now.tv_sec;
	return now.tv_sec;
}
