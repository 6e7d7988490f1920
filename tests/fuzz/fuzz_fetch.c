/* SPDX-License-Identifier: BSD-2-Clause */
/* sources: collectors/settings.c collectors/http_client.c base/collectors.c config/url.c config/secret.c config/config.c store/store_query.c base/utf8.c base/io.c base/task.c base/safe_file.c */
/* What pyprof hands over to pyprof-fetch, and a URL in it. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "collectors/settings.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	CLEANUP(fetch_settings_release) struct fetch_settings settings = {0};
	CLEANUP(fetch_address_release) struct fetch_address address = {0};
	OWNED_FILE FILE *file = size ? fmemopen((void *)data, size, "r") : NULL;
	OWNED_MEM char *selector = NULL;
	char why[CONFIG_WHY_BYTES] = "";

	if (!file || fetch_settings_read(file, &settings, why))
		return 0;
	why[0] = '\0';
	if (fetch_address_parse(settings.url, &address, why)) {
		assert(why[0]);
		return 0;
	}
	assert(!strncmp(address.base, "http", 4));
	assert(!fetch_address_selector(&address, &selector));
	/* Nothing leaves the quotes, and no line ends. */
	assert(selector[0] == '{' && selector[strlen(selector) - 1] == '}');
	assert(!strchr(selector, '\n'));
	return 0;
}
