/* SPDX-License-Identifier: BSD-2-Clause */
#include "discover/proc_maps.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "base/text.h"
#include "discover/mapping_set.h"

#define TOO_LONG "//toolong"

/* Copies a path and decodes newlines, the only byte that the kernel escapes here. */
static void copy_path(const char *text, size_t size, char path[MAPPING_PATH_MAX_BYTES])
{
	size_t used = 0;

	for (size_t i = 0; i < size; i++) {
		char c = text[i];

		if (used + 1 >= MAPPING_PATH_MAX_BYTES) {
			memcpy(path, TOO_LONG, sizeof(TOO_LONG));
			return;
		}
		if (c == '\\' && size - i >= 4 && !memcmp(text + i, "\\012", 4)) {
			c = '\n';
			i += 3;
		}
		path[used++] = c;
	}
	path[used] = '\0';
}

/* 7f1c-7f1d r-xp */
static bool take_range(struct cursor *cursor, struct mapping *mapping, bool *ret_exec)
{
	if (!cursor_number(cursor, 16, &mapping->start) || !cursor_char(cursor, '-') ||
	    !cursor_number(cursor, 16, &mapping->end) || !cursor_char(cursor, ' '))
		return false;
	if (cursor->end - cursor->at < 4 || memchr(cursor->at, ' ', 4))
		return false;
	*ret_exec = cursor->at[2] == 'x';
	cursor->at += 4;
	return mapping->start < mapping->end;
}

/* " 00001000 08:02 131074" */
static bool take_file(struct cursor *cursor, struct mapping *mapping)
{
	uint64_t major, minor;

	if (!cursor_char(cursor, ' ') || !cursor_number(cursor, 16, &mapping->offset) ||
	    !cursor_char(cursor, ' ') || !cursor_number(cursor, 16, &major) ||
	    !cursor_char(cursor, ':') || !cursor_number(cursor, 16, &minor) ||
	    !cursor_char(cursor, ' ') || !cursor_number(cursor, 10, &mapping->key.inode))
		return false;
	mapping->key.major = (uint32_t)major;
	mapping->key.minor = (uint32_t)minor;
	return major <= UINT32_MAX && minor <= UINT32_MAX;
}

/* address   perms offset   dev   inode      pathname
 * 7f1c-7f1d r-xp  00001000 08:02 131074     /usr/lib/libc.so.6 */
static bool parse_line(struct cursor cursor, struct mapping *mapping, bool *ret_exec,
		       char path[MAPPING_PATH_MAX_BYTES])
{
	*mapping = (struct mapping){0};
	if (!take_range(&cursor, mapping, ret_exec) || !take_file(&cursor, mapping))
		return false;
	if (cursor.at < cursor.end && *cursor.at != ' ')
		return false;
	while (cursor_char(&cursor, ' '))
		;
	copy_path(cursor.at, (size_t)(cursor.end - cursor.at), path);
	mapping_set_name(mapping, path);
	return true;
}

int proc_maps_parse(const char *text, size_t size,
		    int (*callback)(void *context, const struct mapping *mapping), void *context,
		    struct proc_maps_summary *ret_summary)
{
	struct cursor rest = {text, text + size}, line;
	struct proc_maps_summary summary = {0};
	char path[MAPPING_PATH_MAX_BYTES];

	while (cursor_line(&rest, &line)) {
		struct mapping mapping;
		bool is_exec;
		int err;

		summary.line_count++;
		if (!parse_line(line, &mapping, &is_exec, path)) {
			summary.bad_line_count++;
			continue;
		}
		if (path_is_musl(path))
			summary.has_musl = true;
		/* [vsyscall] is in the kernel's half. */
		if (!is_exec || mapping.end > INT64_MAX)
			continue;
		err = callback(context, &mapping);
		if (err)
			return err;
	}
	*ret_summary = summary;
	return 0;
}

/* Reads the maps of one task.  -ESRCH: this task has no memory, and so no text. */
static int read_task_maps(pid_t tid, char **ret_text, size_t *ret_size)
{
	OWNED_MEM char *text = NULL;
	int err = process_read_maps(tid, PROC_MAPS_MAX_BYTES, &text, ret_size);

	if (err)
		return err == -ENOENT ? -ESRCH : err;
	if (!*ret_size)
		return -ESRCH;
	*ret_text = TAKE(text);
	return 0;
}

int proc_maps_read(uint32_t tgid, int (*callback)(void *context, const struct mapping *mapping),
		   void *context, struct proc_maps_summary *ret_summary)
{
	struct proc_maps_summary summary;
	OWNED_MEM char *text = NULL;
	size_t size;
	pid_t tid;
	int err = read_task_maps((pid_t)tgid, &text, &size);

	if (err == -ESRCH && !process_live_task((pid_t)tgid, &tid))
		err = read_task_maps(tid, &text, &size);
	if (err)
		return err;
	err = proc_maps_parse(text, size, callback, context, &summary);
	if (err)
		return err;
	if (ret_summary)
		*ret_summary = summary;
	return 0;
}
