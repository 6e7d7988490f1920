/* SPDX-License-Identifier: BSD-2-Clause */
/* sources: base/kinds.c live/request.c live/record.c */
/* Both directions of the live socket: a line is a request and a record. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "live/record.h"
#include "live/request.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void try_request(const char *line, size_t size)
{
	struct live_request request, again;
	char text[LIVE_REQUEST_BYTES];
	size_t written;

	if (live_request_parse(line, size, &request))
		return;
	assert(request.pid_count <= LIVE_PIDS_MAX);
	for (size_t i = 1; i < request.pid_count; i++)
		assert(request.pid[i - 1] < request.pid[i]);
	assert(!live_request_format(&request, text, &written));
	assert(!live_request_parse(text, written - 1, &again));
	assert(request.verb == again.verb && request.pid_count == again.pid_count);
	assert(request.kinds == again.kinds && !(request.kinds & ~KINDS_SERVED));
	assert(!request.kinds || request.verb == LIVE_TOP);
	assert(!memcmp(request.pid, again.pid, request.pid_count * sizeof(request.pid[0])));
}

/* What was read is read again from what is written of it, the texts cut. */
static void try_record(char *line, size_t size)
{
	struct live_record record, again;
	char *text = NULL;
	size_t written;
	FILE *out;

	if (live_record_parse(line, size, &record))
		return;
	out = open_memstream(&text, &written);
	assert(out);
	live_record_write(out, &record);
	assert(!fclose(out) && written < LIVE_LINE_BYTES);
	assert(!live_record_parse(text, written - 1, &again));
	assert(again.kind == record.kind && again.number[0] == record.number[0]);
	for (size_t i = 0; i < LIVE_TEXTS_MAX && record.text[i]; i++)
		assert(!strncmp(record.text[i], again.text[i], strlen(again.text[i])));
	free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	/* Its own allocation, so that a read behind its end is seen. */
	char *line = malloc(size + 1);

	assert(line);
	memcpy(line, data, size);
	try_request(line, size);
	try_record(line, size);
	free(line);
	return 0;
}
