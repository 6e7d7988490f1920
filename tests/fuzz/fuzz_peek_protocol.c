/* SPDX-License-Identifier: BSD-2-Clause */
/* sources: peek/child.c child/worker.c child/spawn.c base/task.c child/sandbox.c base/io.c child/children.c */
/* Both sides of the socket of the child that reads memory.  The first byte chooses: a request as
 * the child gets it, carried out on this process, or a reply as the agent gets it. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "peek/child.h"

#define OURS_BYTES 10000U
#define SERIAL 7U

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_request(const uint8_t *data, size_t size)
{
	OWNED_MEM uint8_t *memory = malloc(PEEK_MEMORY_BYTES); /* exactly: a sanitizer sees more */
	static uint8_t ours[OURS_BYTES];
	struct peek_request request;
	struct child_reply reply;

	assert(memory);
	memset(&request, 0, sizeof(request));
	memcpy(&request, data, size < sizeof(request) ? size : sizeof(request));
	if (!peek_request_is_sound(&request, size))
		return;
	request.tid = getpid();
	if (request.kind == PEEK_READ)
		for (uint32_t i = 0; i < request.count; i++)
			request.piece[i].address =
				(uintptr_t)ours + request.piece[i].address % OURS_BYTES;
	peek_child_do(&request, memory, &reply);
	assert(reply.serial == request.serial);
	assert(child_reply_is_sound(&reply, sizeof(reply), request.serial, PEEK_MEMORY_BYTES));
	assert(!reply.size || (request.kind != PEEK_READ && reply.size <= request.piece[0].size));
}

static void check_reply(const uint8_t *data, size_t size)
{
	struct child_reply reply = {0};

	memcpy(&reply, data, size < sizeof(reply) ? size : sizeof(reply));
	if (!child_reply_is_sound(&reply, size, SERIAL, PEEK_MEMORY_BYTES))
		return;
	assert(reply.serial == SERIAL && reply.error <= 0 && reply.error >= -4095);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (!size)
		return 0;
	if (data[0] & 1)
		check_reply(data + 1, size - 1);
	else
		check_request(data + 1, size - 1);
	return 0;
}
