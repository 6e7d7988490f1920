/* SPDX-License-Identifier: BSD-2-Clause */
/* sources: config/config.c base/nearest.c config/lines.c config/served.c config/url.c config/relabel.c config/secret.c base/safe_file.c base/kinds.c base/utf8.c base/io.c base/regex_copies.c base/collectors.c */
/* The text of a configuration file: what is right is typed and printed, an error has a line. */
#include <assert.h>
#include <errno.h>
#include <string.h>

#include "config/config.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	OWNED(config) struct config *config = NULL;
	OWNED_FILE FILE *file = NULL;
	char why[CONFIG_WHY_BYTES] = "";
	struct config_http http;
	struct config_push push;
	int err;

	if (size > CONFIG_FILE_MAX_BYTES || config_new(&config))
		return 0;
	err = config_read_text(config, "f", (const char *)data, size, why);
	assert(!err == !why[0]);
	assert(!err || !strncmp(why, "f:", 2));
	if (err)
		return 0;
	err = config_http(config, &http, why);
	assert(err == 0 || err == -ENOENT || (err == -EINVAL && why[0]));
	for (size_t i = 0; (err = config_push(config, i, &push, why)) != -ENOENT; i++) {
		assert(i < CONFIG_SECTIONS_MAX);
		assert(!err == (push.kind_bits != 0 && !err));
	}
	file = fopen("/dev/null", "w");
	assert(file && !config_print(config, file));
	return 0;
}
