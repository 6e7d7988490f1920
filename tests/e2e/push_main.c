/* SPDX-License-Identifier: BSD-2-Clause */
/* push_main CONFIGURATION STORE STATE METRICS   Pushes as pyprofd-serve does, without the rest of
 * it: looks for new files ten times a second, writes the metrics anew at SIGUSR1 and at the end,
 * and ends at SIGTERM. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "collectors/push.h"

#define POLL_MS 100U

static void tell(void *context, const char *line)
{
	(void)context;
	fprintf(stderr, "%s\n", line);
}

/* Whole or not at all. */
static int write_metrics(struct push *push, const char *path)
{
	OWNED_MEM char *temporary = NULL;
	FILE *file;

	if (asprintf(&temporary, "%s.tmp", path) < 0)
		return -ENOMEM;
	file = fopen(temporary, "we");
	if (!file)
		return -errno;
	push_write_metrics(push, file);
	if (fclose(file) || rename(temporary, path))
		return -errno;
	return 0;
}

int main(int argc, char **argv)
{
	OWNED(config) struct config *config = NULL;
	OWNED(push) struct push *push = NULL;
	char why[CONFIG_WHY_BYTES] = "";
	struct push_options options = {
		.host = "node1", .tell = tell, .poll_ms = POLL_MS};
	int err, number;
	sigset_t wanted;

	if (argc != 5)
		return 2;
	options.store = argv[2];
	options.state = argv[3];
	sigemptyset(&wanted);
	sigaddset(&wanted, SIGUSR1);
	sigaddset(&wanted, SIGTERM);
	sigprocmask(SIG_BLOCK, &wanted, NULL);
	err = config_new(&config);
	if (!err)
		err = config_read(config, argv[1], why);
	if (!err)
		err = push_new(&options, config, why, &push);
	if (err) {
		fprintf(stderr, "push_main: %s\n", why[0] ? why : strerror(-err));
		return 2;
	}
	do {
		number = sigwaitinfo(&wanted, NULL);
		if (number == SIGTERM)
			push_end(push);
		err = write_metrics(push, argv[4]);
	} while (!err && number != SIGTERM);
	return err ? 1 : 0;
}
