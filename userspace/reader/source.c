/* SPDX-License-Identifier: BSD-2-Clause */
#include "reader/source.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/magic.h>
#include <pwd.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/io.h"
#include "base/safe_file.h"
#include "base/utf8.h"

#define PATH_BYTES 4096U /* PATH_MAX; a longer name is no file's */
#define GROUPS_MAX 256	 /* that we had ourselves */

/* ---- which files ---- */

/* Python and what extensions and native code are written in.  A program without an ending
 * (/usr/bin/tool) is read with --source. */
static bool ends_as_source(const char *path)
{
	static const char *const ending[] = {
		"py",  "pyw", "pyx",  "pxd", "pxi",   "pyi", "c",     "h",   "cc",  "cpp",
		"cxx", "c++", "hh",   "hpp", "hxx",   "inc", "inl",   "ipp", "tcc", "cu",
		"cuh", "s",   "S",    "asm", "go",    "rs",  "zig",   "d",   "nim", "f",
		"f90", "for", "java", "kt",  "scala", "js",  "mjs",   "ts",  "lua", "rb",
		"pl",  "pm",  "php",  "jl",  "ml",    "hs",  "swift", "m",
	};
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
	const char *dot = strrchr(name, '.');

	for (size_t i = 0; dot && dot > name && i < sizeof(ending) / sizeof(ending[0]); i++)
		if (!strcmp(dot + 1, ending[i]))
			return true;
	return false;
}

/* Returns whether the file's bytes are made by the kernel when they are read: what is asked there
 * may wait, or change something. */
static bool is_made_by_kernel(int path_fd)
{
	static const unsigned long magic[] = {
		PROC_SUPER_MAGIC, SYSFS_MAGIC,	      DEBUGFS_MAGIC,	   TRACEFS_MAGIC,
		SECURITYFS_MAGIC, CGROUP_SUPER_MAGIC, CGROUP2_SUPER_MAGIC, BPF_FS_MAGIC,
		PSTOREFS_MAGIC,	  EFIVARFS_MAGIC,     DEVPTS_SUPER_MAGIC,
	};
	struct statfs status;

	if (fstatfs(path_fd, &status))
		return true;
	for (size_t i = 0; i < sizeof(magic) / sizeof(magic[0]); i++)
		if ((unsigned long)status.f_type == magic[i])
			return true;
	return false;
}

/* Returns whether the file that was found, behind all links, is named as a source file. */
static bool is_source_itself(int path_fd)
{
	char self[32], path[PATH_BYTES];
	ssize_t size;

	snprintf(self, sizeof(self), "/proc/self/fd/%d", path_fd);
	size = readlink(self, path, sizeof(path) - 1);
	if (size <= 0)
		return false;
	path[size] = '\0';
	return ends_as_source(path);
}

/* ---- whose rights ---- */

/* The rights that we had before those of another user. */
struct rights {
	bool are_lent;
	int group_count;
	gid_t group[GROUPS_MAX];
};

/* Sets the groups that the user has at login; at least `gid`. */
static int set_groups_of(uid_t uid, gid_t gid)
{
	const struct passwd *user = getpwuid(uid);
	OWNED_MEM gid_t *group = NULL;
	size_t count;
	int err = user_groups(user ? user->pw_name : NULL, gid, &group, &count);

	if (err)
		return err;
	return setgroups(count, group) ? -errno : 0;
}

static void return_rights(struct rights *rights)
{
	/* Each fails only when we have less than we should: then files cannot be read. */
	if (rights->are_lent && !seteuid(0) && !setegid(0))
		(void)!setgroups((size_t)rights->group_count, rights->group);
	rights->are_lent = false;
}

/* Takes the rights of the user who called sudo.  Returns 0, also when nobody did, or -errno. */
static int lend_rights(struct rights *ret_rights)
{
	uid_t uid = 0;
	gid_t gid = 0;
	int err = geteuid() ? 0 : sudo_user_ids(&uid, &gid);

	ret_rights->are_lent = false;
	if (err && err != -ENOENT)
		return err; /* who called sudo cannot be told */
	if (!uid)
		return 0;
	ret_rights->group_count = getgroups(GROUPS_MAX, ret_rights->group);
	if (ret_rights->group_count < 0)
		return -errno;
	ret_rights->are_lent = true;
	err = set_groups_of(uid, gid);
	if (!err && (setegid(gid) || seteuid(uid)))
		err = -errno;
	if (err)
		return_rights(ret_rights);
	return err;
}

/* ---- opening ---- */

static int refuse(const char *why, const char **ret_why)
{
	*ret_why = why;
	return 1;
}

static int explain(int err, bool with_lent_rights, const char **ret_why)
{
	if (err == -ENOMEM)
		return err;
	return refuse(err == -ENOENT || err == -ENOTDIR ? "is not here"
		      : err == -EINVAL			? "is not a regular file"
		      : err == -EACCES && with_lent_rights
			      ? "may not be read by the user who called sudo"
			      : "cannot be read",
		      ret_why);
}

static int open_named_by_user(const char *path, int *ret_fd, const char **ret_why)
{
	/* Does not wait for a FIFO's writer. */
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);

	if (fd < 0)
		return explain(-errno, false, ret_why);
	*ret_fd = fd;
	return 0;
}

static int look(const char *path, int *ret_fd, const char **ret_why)
{
	char whole[2 * PATH_BYTES], here[PATH_BYTES];
	OWNED_FD int path_fd = -1;
	int err;

	if (strlen(path) >= PATH_BYTES)
		return refuse("is not here", ret_why);
	/* root_file_look() looks below the root. */
	if (path[0] != '/' && !getcwd(here, sizeof(here)))
		return explain(-errno, false, ret_why);
	snprintf(whole, sizeof(whole), "%s%s%s", path[0] == '/' ? "" : here,
		 path[0] == '/' ? "" : "/", path);
	err = root_file_look("/", whole, ROOT_FILE_LINKS, &path_fd);
	if (err)
		return err;
	if (is_made_by_kernel(path_fd))
		return refuse("is not on a disk", ret_why);
	if (!is_source_itself(path_fd))
		return refuse("is a link to a file that is no source", ret_why);
	return root_file_open_seen(path_fd, ret_fd);
}

static int open_named_by_profile(const char *path, int *ret_fd, const char **ret_why)
{
	struct rights rights;
	bool are_lent;
	int err;

	if (!ends_as_source(path))
		return refuse("has not the ending of a source file", ret_why);
	err = lend_rights(&rights);
	if (err)
		return refuse("cannot be read", ret_why);
	are_lent = rights.are_lent;
	err = look(path, ret_fd, ret_why);
	return_rights(&rights);
	return err < 0 ? explain(err, are_lent, ret_why) : err;
}

/* Returns 0; 1: the file is not for us to show, and *ret_why tells why, as "is not here" (a
 * literal); -ENOMEM.  *ret_fd belongs to the caller. */
static int source_open(const char *path, enum source_named named, int *ret_fd,
		       struct stat *ret_status, const char **ret_why)
{
	OWNED_FD int fd = -1;
	int err = named == SOURCE_NAMED_BY_USER ? open_named_by_user(path, &fd, ret_why)
						: open_named_by_profile(path, &fd, ret_why);

	if (err)
		return err;
	if (fstat(fd, ret_status))
		return explain(-errno, false, ret_why);
	if (!S_ISREG(ret_status->st_mode))
		return explain(-EINVAL, false, ret_why);
	*ret_fd = TAKE_FD(fd);
	return 0;
}

/* ---- the text ---- */

#define MAX_DECORATOR_LINES 50U /* a decorator may have several lines */

void source_release(struct source *source)
{
	free(source->text);
	free(source->line);
	*source = (struct source){0};
}

/* Takes out what could move the cursor, change the terminal's state or show the text in another
 * order.  Lines and tabs stay; the carriage returns at the ends of other systems' lines go. */
static int clean_text(struct source *source, size_t *size)
{
	char *clean = reallocarray(NULL, *size + 1, UTF8_CLEAN_MAX_GROWTH), *put = clean;
	size_t begin = 0;

	if (!clean)
		return -ENOMEM;
	for (size_t at = 0; at <= *size; at++) {
		size_t end = at;

		if (at < *size && source->text[at] != '\t' && source->text[at] != '\n')
			continue;
		if (at < *size && source->text[at] == '\n' && at > begin &&
		    source->text[at - 1] == '\r')
			end--;
		put += utf8_clean(source->text + begin, end - begin, put);
		*put++ = source->text[at]; /* its NUL at the end */
		begin = at + 1;
	}
	*size = (size_t)(put - clean) - 1;
	free(source->text);
	source->text = clean;
	return 0;
}

static int split(struct source *source, size_t size)
{
	uint32_t count = 1, at = 0;

	for (size_t i = 0; i < size; i++)
		count += source->text[i] == '\n';
	source->line = calloc((size_t)count + 1, sizeof(char *));
	if (!source->line)
		return -ENOMEM;
	source->line[at++] = source->text;
	for (size_t i = 0; i < size; i++) {
		if (source->text[i] != '\n')
			continue;
		source->text[i] = '\0';
		if (i + 1 < size)
			source->line[at++] = source->text + i + 1;
	}
	source->count = at;
	return 0;
}

/* Reads the whole file.  Returns as source_open(). */
static int read_text(struct source *source, int fd, size_t size)
{
	int err;

	if (size > SOURCE_MAX_BYTES) {
		source->error = "is too big";
		return 1;
	}
	source->text = malloc(size + 1);
	if (!source->text)
		return -ENOMEM;
	err = pread_full(fd, source->text, size, 0);
	if (err) {
		source->error = "cannot be read";
		return 1;
	}
	source->text[size] = '\0';
	return 0;
}

static int fill(struct source *source, const char *path, enum source_named named)
{
	OWNED_FD int fd = -1;
	struct stat status;
	size_t size;
	int err = source_open(path, named, &fd, &status, &source->error);

	if (err)
		return err;
	size = (size_t)status.st_size;
	source->modified_s = status.st_mtim.tv_sec;
	err = read_text(source, fd, size);
	if (!err)
		err = clean_text(source, &size);
	return err ? err : split(source, size);
}

int source_read(const char *path, enum source_named named, struct source *ret_source)
{
	CLEANUP(source_release) struct source source = {0};
	int err = fill(&source, path, named);

	*ret_source = (struct source){.error = source.error};
	if (err)
		return err < 0 ? err : 0;
	*ret_source = source;
	source = (struct source){0};
	return 0;
}

const char *source_line(const struct source *source, uint32_t line)
{
	return line && line <= source->count ? source->line[line - 1] : NULL;
}

static const char *skip_blanks(const char *text)
{
	return text + strspn(text, " \t");
}

bool source_defines(const struct source *source, uint32_t line, const char *name)
{
	const char *dot = strrchr(name, '.'), *base = dot ? dot + 1 : name;

	for (uint32_t i = line; i < line + MAX_DECORATOR_LINES; i++) {
		const char *text = source_line(source, i);

		if (!text)
			return false;
		/* <module>, <lambda>, <listcomp> have no name to look for. */
		if (base[0] == '<')
			return true;
		if (strstr(text, base) && (strstr(text, "def ") || strstr(text, "class ")))
			return true;
		text = skip_blanks(text);
		if (i == line && text[0] != '@')
			return false;
	}
	return false;
}

static size_t indent_of(const char *text)
{
	return (size_t)(skip_blanks(text) - text);
}

uint32_t source_block_end(const struct source *source, uint32_t line)
{
	const char *text = source_line(source, line);
	uint32_t end = line;
	size_t indent;
	bool in_head = true;

	if (!text)
		return line;
	indent = indent_of(text);
	for (uint32_t i = line; (text = source_line(source, i)); i++) {
		const char *first = skip_blanks(text);

		if (!*first)
			continue;
		/* Skips decorators and the head of the definition, which may end in a line ")". */
		if (!in_head && indent_of(text) <= indent && *first != '#')
			break;
		end = i;
		if (in_head && text[strlen(text) - 1] == ':')
			in_head = false;
	}
	return end;
}
