/* SPDX-License-Identifier: BSD-2-Clause */
#include "collectors/place.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/io.h"

struct place {
	pthread_mutex_t mutex; /* of what is in the directory */
	bool is_removed;
	char *path; /* owned */
	int directory_fd;
	int fd;		/* the file that was begun; -1: none */
	char *name;	/* its name, owned */
	uint64_t bytes; /* of all files */
};

int place_new(struct place **ret_place)
{
	OWNED(place) struct place *place = calloc(1, sizeof(*place));
	const char *temporary = getenv("TMPDIR");

	if (!place)
		return -ENOMEM;
	pthread_mutex_init(&place->mutex, NULL);
	place->fd = place->directory_fd = -1;
	place->is_removed = true;
	if (asprintf(&place->path, "%s/pyprof-XXXXXX",
		     temporary && temporary[0] ? temporary : "/tmp") < 0) {
		place->path = NULL;
		return -ENOMEM;
	}
	if (!mkdtemp(place->path))
		return -errno;
	place->is_removed = false;
	place->directory_fd = open(place->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	if (place->directory_fd < 0)
		return -errno;
	*ret_place = TAKE(place);
	return 0;
}

/* Deletes the files: there are no directories. */
static void empty(const struct place *place)
{
	OWNED_DIR DIR *dir = opendir(place->path);
	const struct dirent *item;

	while (dir && (item = readdir(dir)))
		if (strcmp(item->d_name, ".") && strcmp(item->d_name, ".."))
			(void)unlinkat(dirfd(dir), item->d_name, 0);
}

void place_remove(struct place *place)
{
	pthread_mutex_lock(&place->mutex);
	if (!place->is_removed) {
		empty(place);
		(void)rmdir(place->path);
		place->is_removed = true;
	}
	pthread_mutex_unlock(&place->mutex);
}

void place_free(struct place *place)
{
	if (!place)
		return;
	place_remove(place);
	close_owned_fd(&place->fd);
	close_owned_fd(&place->directory_fd);
	pthread_mutex_destroy(&place->mutex);
	free(place->name);
	free(place->path);
	free(place);
}

const char *place_path(const struct place *place)
{
	return place->path;
}

int place_begin(struct place *place, const char *name)
{
	int err = 0;

	place_abandon(place);
	place->name = strdup(name);
	if (!place->name)
		return -ENOMEM;
	pthread_mutex_lock(&place->mutex);
	if (place->is_removed)
		err = -ECANCELED;
	else
		place->fd = openat(place->directory_fd, name,
				   O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (!err && place->fd < 0)
		err = -errno;
	pthread_mutex_unlock(&place->mutex);
	return err;
}

int place_write(struct place *place, const void *bytes, size_t size)
{
	if (size > FETCH_MAX_BYTES - place->bytes)
		return -EFBIG;
	place->bytes += size;
	return write_full(place->fd, bytes, size);
}

int place_end(struct place *place)
{
	const int err = close(TAKE_FD(place->fd)) ? -errno : 0;

	free(TAKE(place->name));
	return err;
}

void place_abandon(struct place *place)
{
	if (place->fd >= 0) {
		close(TAKE_FD(place->fd));
		place_delete(place, place->name);
	}
	free(TAKE(place->name));
}

bool place_has(const struct place *place, const char *name)
{
	struct stat status;

	return !fstatat(place->directory_fd, name, &status, AT_SYMLINK_NOFOLLOW);
}

void place_delete(struct place *place, const char *name)
{
	struct stat status;

	if (!fstatat(place->directory_fd, name, &status, AT_SYMLINK_NOFOLLOW) && status.st_size > 0)
		place->bytes -= (uint64_t)status.st_size < place->bytes ? (uint64_t)status.st_size
									: place->bytes;
	(void)unlinkat(place->directory_fd, name, 0);
}

int place_first_byte(const struct place *place, const char *name)
{
	OWNED_FD int fd = openat(place->directory_fd, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	unsigned char byte;
	int err = fd < 0 ? -errno : pread_full(fd, &byte, 1, 0);

	return err ? err : byte;
}
