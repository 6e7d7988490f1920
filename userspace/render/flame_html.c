/* SPDX-License-Identifier: BSD-2-Clause */
#include "render/flame_html.h"

#include <errno.h>
#include <string.h>
#include <sys/types.h>

#include "base/cleanup.h"
#include "flame_page.h"
#include "render/markup.h"

/* The page's parts: up to the title, up to the data, and the rest. */
_Static_assert(ARRAY_SIZE(flame_page) == 3,
	       "page.html has one @TITLE@ and one @DATA@, in this order");

#define DATA_BUFFER_BYTES (64U << 10)

static int put(FILE *out, const char *bytes, size_t size)
{
	if (size && fwrite(bytes, 1, size, out) != size)
		return errno ? -errno : -EIO;
	return 0;
}

/* The write function for fopencookie(): 0 means an error. */
static ssize_t write_without_tags(void *cookie, const char *bytes, size_t size)
{
	FILE *out = cookie;
	size_t done = 0;

	while (done < size) {
		const char *tag = memchr(bytes + done, '<', size - done);
		size_t plain = tag ? (size_t)(tag - bytes) - done : size - done;

		if (put(out, bytes + done, plain) || (tag && put(out, "\\u003c", 6)))
			return 0;
		done += plain + (tag ? 1 : 0);
	}
	return (ssize_t)size;
}

static int write_json(FILE *out, int (*write_data)(FILE *data, void *arg), void *arg)
{
	const cookie_io_functions_t functions = {.write = write_without_tags};
	OWNED_FILE FILE *data = fopencookie(out, "w", functions);
	int err;

	if (!data)
		return -ENOMEM;
	setvbuf(data, NULL, _IOFBF, DATA_BUFFER_BYTES);
	errno = 0;
	err = write_data(data, arg);
	if (err)
		return err;
	if (fflush(data) || ferror(data) || ferror(out))
		return errno ? -errno : -EIO;
	return 0;
}

int flame_html_write(FILE *out, const char *title, int (*write_data)(FILE *data, void *arg),
		     void *arg)
{
	int err;

	errno = 0;
	err = put(out, flame_page[0], strlen(flame_page[0]));
	if (err)
		return err;
	err = markup_write(out, title, strlen(title));
	if (err)
		return err;
	err = put(out, flame_page[1], strlen(flame_page[1]));
	if (err)
		return err;
	err = write_json(out, write_data, arg);
	if (err)
		return err;
	return put(out, flame_page[2], strlen(flame_page[2]));
}
