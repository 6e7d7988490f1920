/* SPDX-License-Identifier: BSD-2-Clause */
#include "processes/thread_names.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "attach/context_table.h"
#include "attach/file_table.h"
#include "base/clock.h"
#include "base/hash.h"
#include "base/slice.h"
#include "discover/proc_scan.h"
#include "discover/process_table.h"
#include "processes/process_list.h"
#include "processes/who.h"
#include "python/python_process.h"

#define WANTED_MAX 256U
/* Reading Python's names of one process costs about 0.1 ms, and 30 us a thread.  They are read
 * again after a second, then half as often each time, until a thread without a name shows up.  In
 * between, names are kept while the threads are the same: threads are named when they start.  A
 * thread that is renamed in Python alone is found within 64 s; what it told the kernel comes with
 * each sample. */
#define REREAD_FIRST_NS NS_PER_SEC
#define REREAD_SETTLED_NS (2 * NS_PER_SEC)
#define REREAD_LAST_NS (64 * NS_PER_SEC)
#define READ_KEEP_NS (2 * REREAD_LAST_NS)
#define NAMES_MAX 65536U
#define NAMES_NS (40 * NS_PER_MS) /* of one tick; a process with many threads takes several */
#define TASKS_MAX 1024U /* of one process in a pid namespace; later ones keep the kernel's name */

struct thread_name {
	struct pp_thread_key key; /* pad is 0 */
	uint64_t seen_ns;
	uint32_t look; /* number of the look that gave the name (struct names_read) */
	/* In its own pid namespace; tid 0: unknown, or the same as the host's. */
	struct pp_thread_key inner_key;
	UT_hash_handle hh, hh_inner;
	bool is_python;
	char name[64];		  /* Python's where is_python, else as `comm` */
	char comm[PP_COMM_BYTES]; /* the kernel's, last */
};

/* When the names of a process were read last, and what the next look may start from. */
struct names_read {
	struct pp_process_id id;
	uint64_t read_ns, wait_ns;
	/* Number of the last look that read names; later ones found the same threads. */
	uint32_t look;
	bool is_cut; /* the last look was: the next one goes on */
	struct python_names_hint hint;
	UT_hash_handle hh;
};

struct thread_names {
	struct process_table *processes;
	struct thread_name *name, *by_inner;
	struct names_read *read;
	uint32_t looks; /* at all processes */
	struct process_list wanted;
};

int thread_names_new(struct process_table *processes, struct thread_names **ret_names)
{
	struct thread_names *names = calloc(1, sizeof(*names));

	if (!names)
		return -ENOMEM;
	names->processes = processes;
	*ret_names = names;
	return 0;
}

static void read_free(struct thread_names *names, struct names_read *read)
{
	HASH_DEL(names->read, read);
	python_names_hint_release(&read->hint);
	free(read);
}

static struct names_read *read_find(const struct thread_names *names, struct pp_process_id id)
{
	struct names_read *read;

	HASH_FIND(hh, names->read, &id, sizeof(id), read);
	return read;
}

/* Whether the last look at its process found the thread: then its name is kept as long as that look
 * counts. */
static bool is_listed(const struct thread_names *names, const struct thread_name *name)
{
	const struct names_read *read = name->is_python ? read_find(names, name->key.id) : NULL;

	return read && read->look == name->look;
}

static void name_free(struct thread_names *names, struct thread_name *name)
{
	HASH_DEL(names->name, name);
	if (name->inner_key.tid)
		HASH_DELETE(hh_inner, names->by_inner, name);
	free(name);
}

static void expire_reads(struct thread_names *names, uint64_t before_ns)
{
	struct names_read *read, *next;

	HASH_ITER (hh, names->read, read, next) {
		struct process *process = process_table_find(names->processes, read->id);
		bool is_alive = process && !process->exit_ns;

		if (read->read_ns + (is_alive ? READ_KEEP_NS : 0) < before_ns)
			read_free(names, read);
	}
}

void thread_names_expire(struct thread_names *names, uint64_t before_ns)
{
	struct thread_name *name, *next;

	expire_reads(names, before_ns);
	HASH_ITER (hh, names->name, name, next) {
		if (name->seen_ns >= before_ns || is_listed(names, name))
			continue;
		name_free(names, name);
	}
}

void thread_names_free(struct thread_names *names)
{
	struct thread_name *name, *next;
	struct names_read *read, *next_read;

	if (!names)
		return;
	HASH_ITER (hh, names->name, name, next)
		name_free(names, name);
	HASH_ITER (hh, names->read, read, next_read)
		read_free(names, read);
	free(names->wanted.id);
	free(names);
}

void thread_names_want(struct thread_names *names, struct pp_process_id id)
{
	const struct names_read *read = read_find(names, id);

	if (read && mono_ns() - read->read_ns < read->wait_ns)
		return;
	if (names->wanted.count < WANTED_MAX)
		(void)process_list_add(&names->wanted, id);
}

static struct thread_name *name_get(struct thread_names *names, struct pp_process_id id,
				    uint32_t tid)
{
	struct pp_thread_key key = {.id = id, .tid = tid};
	struct thread_name *name;

	HASH_FIND(hh, names->name, &key, sizeof(key), name);
	if (name || HASH_COUNT(names->name) >= NAMES_MAX)
		return name;
	return HASH_GET(names->name, key, key);
}

/* The ids of a process's threads inside and outside of its pid namespace. */
struct tid_map {
	uint32_t inner[TASKS_MAX], host[TASKS_MAX];
	size_t count;
};

static void tid_map_read(const struct process *process, struct tid_map *map)
{
	char path[64];
	struct proc_status status;

	map->count = 0;
	if (!process->inner_pid || process->inner_pid == process->id.tgid)
		return;
	snprintf(path, sizeof(path), "/proc/%u/task", process->id.tgid);
	OWNED_DIR DIR *dir = opendir(path);

	for (struct dirent *entry; dir && map->count < TASKS_MAX && (entry = readdir(dir));) {
		uint32_t tid = (uint32_t)strtoul(entry->d_name, NULL, 10);

		if (!tid || proc_status_read(tid, &status))
			continue;
		map->inner[map->count] = status.inner_pid;
		map->host[map->count++] = tid;
	}
}

static uint32_t host_tid(const struct process *process, const struct tid_map *map, uint32_t inner)
{
	if (!process->inner_pid || process->inner_pid == process->id.tgid)
		return inner;
	for (size_t i = 0; i < map->count; i++)
		if (map->inner[i] == inner)
			return map->host[i];
	return 0;
}

/* Lets a thread in a pid namespace be found by the id that it has there. */
static void set_inner_tid(struct thread_names *names, struct thread_name *name, uint32_t inner)
{
	struct thread_name *other;

	if (inner == name->key.tid || inner == name->inner_key.tid)
		return;
	if (name->inner_key.tid)
		HASH_DELETE(hh_inner, names->by_inner, name);
	name->inner_key = (struct pp_thread_key){.id = name->key.id, .tid = inner};
	HASH_FIND(hh_inner, names->by_inner, &name->inner_key, sizeof(name->inner_key), other);
	if (other) { /* the other thread has ended: its id is used again */
		HASH_DELETE(hh_inner, names->by_inner, other);
		other->inner_key.tid = 0;
	}
	HASH_ADD(hh_inner, names->by_inner, inner_key, sizeof(name->inner_key), name);
}

/* Returns whether the slice was over before all names were read. */
static bool read_process(struct thread_names *names, struct process *process,
			 struct names_read *read)
{
	struct process_python *python = context_table_python(process);
	OWNED_MEM struct python_thread_name *name = NULL;
	OWNED_MEM struct tid_map *map = malloc(sizeof(*map));
	size_t count = 0;
	int more;

	if (!map || !python || !python->file)
		return false;
	more = python_process_thread_names(python->file->python, (pid_t)process->id.tgid,
					   python->bias, &read->hint, &name, &count);
	if (more < 0)
		return false;
	if (!read->is_cut)
		read->look = ++names->looks;
	tid_map_read(process, map);
	for (size_t i = 0; i < count; i++) {
		struct thread_name *entry;
		uint32_t inner, tid;

		if (python_process_inner_tid((pid_t)process->id.tgid, python->is_musl,
					     name[i].thread_id, name[i].native_id, &inner))
			continue;
		tid = inner ? host_tid(process, map, inner) : 0;
		entry = tid ? name_get(names, process->id, tid) : NULL;
		if (!entry)
			continue;
		snprintf(entry->name, sizeof(entry->name), "%s", name[i].name);
		entry->is_python = true;
		entry->look = read->look;
		entry->seen_ns = mono_ns();
		set_inner_tid(names, entry, inner);
	}
	return more;
}

static void begin_look(struct names_read *read)
{
	read->read_ns = mono_ns();
	read->wait_ns = read->wait_ns ? read->wait_ns * 2 : REREAD_FIRST_NS;
	if (read->wait_ns > REREAD_LAST_NS)
		read->wait_ns = REREAD_LAST_NS;
	read->hint.keeps_names =
		read->wait_ns > REREAD_SETTLED_NS && read->wait_ns < REREAD_LAST_NS;
}

/* Returns whether names are left for the next tick. */
static bool look_at(struct thread_names *names, struct pp_process_id id, const struct slice *slice)
{
	struct process *process = process_table_find(names->processes, id);
	struct names_read *read;

	if (!process || process->exit_ns)
		return false;
	/* The details say whether the process is in a pid namespace of its own. */
	who_read_details(names->processes, process);
	read = HASH_GET(names->read, id, id);
	if (!read)
		return false;
	if (!read->is_cut)
		begin_look(read);
	read->hint.slice = slice;
	read->is_cut = read_process(names, process, read);
	read->hint.slice = NULL;
	return read->is_cut;
}

/* Reads until the slice is over; the others are read with the next tick, and the rest of a process
 * after them. */
void thread_names_tick(struct thread_names *names)
{
	const struct slice slice = slice_begin(NAMES_NS);
	struct pp_process_id rest = {};
	size_t done = 0;

	for (; done < names->wanted.count && (!done || !slice_is_over(&slice)); done++) {
		if (!look_at(names, names->wanted.id[done], &slice))
			continue;
		rest = names->wanted.id[done++];
		break;
	}
	if (!done)
		return;
	names->wanted.count -= done;
	memmove(names->wanted.id, names->wanted.id + done,
		names->wanted.count * sizeof(*names->wanted.id));
	if (rest.tgid)
		(void)process_list_add(&names->wanted, rest);
}

/* A thread showed up that did not exist when the names were read. */
static void read_again(struct thread_names *names, struct pp_process_id id)
{
	struct names_read *read = read_find(names, id);

	if (read)
		read->wait_ns = 0;
}

/* Returns whether the program has told the kernel a name of the thread's own: threads begin with
 * that of their creator, and Python 3.14 tells the first bytes of its name. */
static bool is_told(const struct process *process, const struct thread_name *name)
{
	static const char interpreter[] = "python";

	return strncmp(name->comm, name->name, strlen(name->comm)) != 0 &&
	       strncmp(name->comm, process->comm, PP_COMM_BYTES) != 0 &&
	       strncmp(name->comm, interpreter, sizeof(interpreter) - 1) != 0;
}

const char *thread_names_get(struct thread_names *names, const struct process *process,
			     uint32_t tid, const char *comm)
{
	struct thread_name *name = name_get(names, process->id, tid);
	char read[PP_COMM_BYTES] = "";

	if (!name)
		return "";
	if (!name->name[0]) {
		read_again(names, process->id);
		if (!comm[0] && !process->exit_ns && !thread_comm_read(process->id.tgid, tid, read))
			comm = read;
		else if (!comm[0])
			comm = process->comm;
	}
	if (comm[0])
		snprintf(name->comm, sizeof(name->comm), "%.*s", PP_COMM_BYTES - 1, comm);
	if (!name->is_python)
		memcpy(name->name, name->comm, sizeof(name->comm));
	name->seen_ns = mono_ns();
	return comm[0] && is_told(process, name) ? name->comm : name->name;
}

uint32_t thread_names_host_tid(const struct thread_names *names, const struct process *process,
			       uint32_t inner)
{
	struct pp_thread_key key = {.id = process->id, .tid = inner};
	struct thread_name *name;

	if (!process->inner_pid || process->inner_pid == process->id.tgid)
		return inner;
	HASH_FIND(hh_inner, names->by_inner, &key, sizeof(key), name);
	return name ? name->key.tid : 0;
}
