/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "files/check.h"

/* Hands the answers on, with texts that end. */
static void tell_names(const struct foreign_names *names, const char *text,
		       foreign_function_handler *found, void *context)
{
	char name[FOREIGN_NAME_MAX_BYTES + 1], system_name[FOREIGN_NAME_MAX_BYTES + 1];

	for (uint32_t i = 0; i < names->count; i++) {
		const struct foreign_name *at = &names->name[i];
		const struct foreign_function function = {.name = at->name_bytes ? name : NULL,
							  .system_name = system_name,
							  .start = at->start,
							  .low = at->low,
							  .high = at->high};

		memcpy(name, text + at->name_at, at->name_bytes);
		name[at->name_bytes] = '\0';
		memcpy(system_name, text + at->system_at, at->system_bytes);
		system_name[at->system_bytes] = '\0';
		found(context, &function);
	}
}

/* Takes the answer to a question about `count` addresses.  Returns how many were answered;
 * -errno. */
static int take_names(struct foreign *foreign, const struct foreign_file *file, uint32_t size,
		      const uint64_t *vaddr, uint32_t count, foreign_function_handler *found,
		      void *context)
{
	OWNED_MEM struct foreign_names *names = foreign_copy_reply(foreign, size, sizeof(*names));

	if (!names)
		return -ENOMEM;
	if (!foreign_names_are_sound(names, size, vaddr, count))
		return foreign_call_nonsense(foreign, file);
	tell_names(names, (const char *)names + foreign_text_at(count), found, context);
	return (int)names->count;
}

/* Asks about ascending addresses, some at a time. */
static int ask_all(struct foreign *foreign, const struct foreign_file *file, enum foreign_kind kind,
		   uint64_t low, const uint64_t *vaddr, size_t count,
		   foreign_function_handler *found, void *context)
{
	const size_t max = kind == FOREIGN_NAMES ? FOREIGN_MAX_NAMES : FOREIGN_MAX_KERNELS;
	OWNED_MEM struct foreign_request *message = calloc(1, FOREIGN_REQUEST_MAX_BYTES);
	int answered = 0;

	if (!message)
		return -ENOMEM;
	message->kind = kind;
	message->low = low;
	while (count && vaddr[count - 1] == UINT64_MAX)
		count--; /* no function is there, and no question: foreign_request_is_sound() */
	for (size_t done = 0; done < count; done += (size_t)answered) {
		const size_t left = count - done;
		uint32_t size;
		int err;

		message->vaddr_count = (uint32_t)(left < max ? left : max);
		memcpy(message->vaddr, vaddr + done,
		       message->vaddr_count * sizeof(*message->vaddr));
		err = foreign_ask(foreign, file, message, &size);
		answered = err ? err
			       : take_names(foreign, file, size, message->vaddr,
					    message->vaddr_count, found, context);
		if (answered < 0)
			return answered;
	}
	return 0;
}

int foreign_names(struct foreign *foreign, const struct foreign_file *file, const uint64_t *vaddr,
		  size_t count, foreign_function_handler *found, void *context)
{
	return ask_all(foreign, file, FOREIGN_NAMES, 0, vaddr, count, found, context);
}

int foreign_kernels(struct foreign *foreign, const struct foreign_file *file, const uint64_t *vaddr,
		    size_t count, bool are_functions, foreign_function_handler *found,
		    void *context)
{
	return ask_all(foreign, file, FOREIGN_KERNELS, are_functions, vaddr, count, found, context);
}

/* ---- texts ---- */

/* Puts as many texts into a request as it takes. */
static void put_texts(struct foreign_request *message, const char *const *text, size_t count)
{
	const size_t room = FOREIGN_MAX_NAMES * sizeof(*message->vaddr);
	char *to = (char *)message->vaddr;
	size_t used = 0;

	while (message->low < count && message->low < FOREIGN_MAX_KERNELS) {
		const size_t size = strlen(text[message->low]) + 1;

		if (size > room - used)
			break;
		memcpy(to + used, text[message->low], size);
		used += size;
		message->low++;
	}
	message->vaddr_count =
		(uint32_t)((used + sizeof(*message->vaddr) - 1) / sizeof(*message->vaddr));
}

int foreign_texts(struct foreign *foreign, const struct foreign_file *whose,
		  const char *const *text, size_t count, foreign_function_handler *found,
		  void *context)
{
	OWNED_MEM struct foreign_request *message = calloc(1, FOREIGN_REQUEST_MAX_BYTES);
	uint64_t number[FOREIGN_MAX_KERNELS];
	uint32_t size;
	int err;

	if (!message)
		return -ENOMEM;
	for (uint32_t i = 0; i < FOREIGN_MAX_KERNELS; i++)
		number[i] = i;
	message->kind = FOREIGN_TEXTS;
	put_texts(message, text, count);
	err = foreign_ask_once(foreign, whose, message, true, &size);
	if (err)
		return err;
	err = take_names(foreign, whose, size, number, (uint32_t)message->low, found, context);
	if (err >= 0 && (uint64_t)err != message->low)
		return foreign_call_nonsense(foreign, whose);
	return err;
}
