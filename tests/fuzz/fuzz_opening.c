/* SPDX-License-Identifier: BSD-2-Clause */
/* sources: files/opening.c files/identity.c files/vouch.c elf/debug_file.c elf/elf_image.c elf/elf_symbol_table.c discover/mapping_set.c base/user_quota.c base/safe_file.c base/io.c base/task.c */
/* The child that opens files: requests as it gets them, about a file in memory and without walks of
 * paths, and texts like /proc/PID/mountinfo.
 * runs: 6000 at most in `make check`: each writes a file. */
#include <assert.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "files/opening.h"
#include "files/vouch.h"

#define PATH_BYTES 32U

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_mounts(const uint8_t *data, size_t size)
{
	OWNED_MEM char *text = calloc(1, size + 1);
	char path[PATH_BYTES];
	const char *options;
	size_t bytes, at = 0;

	assert(text);
	memcpy(text, data, size);
	if (mountinfo_type(text, 0, 1, path, sizeof(path))) {
		assert(strlen(path) < sizeof(path) && !strchr(path, ' '));
		(void)file_system_name_is_local(path);
	}
	options = mountinfo_options(text, 1, &bytes);
	if (!options)
		return;
	assert(options >= text && options + bytes <= text + size);
	while (mount_options_next_layer(options, bytes, &at, path, sizeof(path)))
		assert(at && at <= bytes + 1 && strlen(path) < sizeof(path));
}

/* Files are those of the request, and none of this program's. */
static bool make_harmless(struct opening_request *request, int fd)
{
	for (uint32_t i = 0; i < request->fd_count; i++)
		request->fd[i] = fd;
	if (request->kind == OPENING_CLOSE || request->kind == OPENING_PATH)
		return false;
	request->walks_no_path = 1;
	request->tid = request->tid ? getpid() : 0;
	request->start %= 1U << 20;
	request->inner_pid = 0;
	return true;
}

static void check_request(const uint8_t *data, size_t size)
{
	CLEANUP(opening_outcome_release) struct opening_outcome outcome = {
		.debug = DEBUG_FILES_NONE};
	OWNED_MEM struct opening_request *request = calloc(1, sizeof(*request));
	OWNED_MEM uint8_t *memory = malloc(OPENING_MEMORY_BYTES);
	int fd = memfd_create("fuzz", MFD_CLOEXEC);

	assert(request && memory && fd >= 0 && !write_full(fd, data, size));
	memcpy(request, data, size < sizeof(*request) ? size : sizeof(*request));
	request->kind %= OPENING_KINDS;
	request->identity.is_settled &= 1;
	request->identity.is_fuse &= 1;
	request->identity.is_layered &= 1;
	request->segment_count %= FOREIGN_MAX_SEGMENTS + 1;
	request->fd_count %= 4;
	for (uint32_t i = 0; i < request->fd_count; i++)
		request->fd[i] = INT32_MAX;
	request->path[sizeof(request->path) - 1] = '\0';
	(void)opening_request_is_sound(request, size);
	if (opening_request_is_sound(request, opening_request_bytes(request)) &&
	    make_harmless(request, fd)) {
		opening_serve(request, memory, &outcome);
		assert(child_reply_is_sound(&outcome.reply, sizeof(outcome.reply), request->serial,
					    OPENING_MEMORY_BYTES));
		assert(outcome.give_fd < 0 || request->kind == OPENING_GIVE);
		assert(!outcome.handed.files || request->kind == OPENING_HAND);
	}
	close(fd);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (!size)
		return 0;
	if (data[0] & 1)
		check_mounts(data + 1, size - 1);
	else
		check_request(data + 1, size - 1);
	return 0;
}
