/* SPDX-License-Identifier: BSD-2-Clause */
#include "probes/own_sites.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "attach/calls_side.h"
#include "attach/probe_links.h"
#include "base/cleanup.h"
#include "base/task.h"
#include "probes/exact_sites.h"

/* As sites of <sys/sdt.h>: a NOP, which the kernel need not step. */
#if defined(__aarch64__)
#define ARGUMENT(number) {.kind = PP_ARG_REGISTER, .bytes = 8, .base = (number)}
#else
/* rdi, rsi and rdx by DWARF number */
#define ARGUMENT(number)                                                                           \
	{.kind = PP_ARG_REGISTER, .bytes = 8, .base = (number) == 0 ? 5 : (number) == 1 ? 4 : 1}
#endif
#define SITE(name)                                                                                 \
	".balign 16\n"                                                                             \
	".globl " #name "\n"                                                                       \
	".hidden " #name "\n"                                                                      \
	".type " #name ", %function\n" #name ":\n"                                                 \
	"nop\n"                                                                                    \
	"ret\n"                                                                                    \
	".size " #name ", . - " #name "\n"
__asm__(".pushsection .text, \"ax\"\n" SITE(own_site_entry) SITE(own_site_return)
		SITE(own_site_line) ".popsection\n");

static own_site *const functions[PP_CALL_EVENTS] = {[PP_CALL_ENTRY] = own_site_entry,
						    [PP_CALL_RETURN] = own_site_return,
						    [PP_CALL_LINE] = own_site_line};

static int attach(const struct calls_side *side, int file, enum pp_call_event event,
		  struct probe_links *ret_links)
{
	struct probe_link_site site = {};
	const struct probe_links_options options = {.program = calls_side_program(side, event),
						    .file = file,
						    /* One look goes for all. */
						    .locks = event ? -1 : calls_side_locks(side),
						    .pid = getpid(),
						    .is_shared = probe_links_can_share(),
						    .site = &site,
						    .count = 1};
	const int err = own_code_offset((const void *)functions[event], &site.offset);

	return err ? err : probe_links_attach(&options, ret_links);
}

int own_sites_attach(const struct calls_side *side, unsigned int events,
		     struct exact_links *ret_links)
{
	OWNED_FD int file = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	struct exact_links links = {};
	int err = file < 0 ? -errno : 0;

	for (unsigned int event = 0; !err && event < events; event++)
		err = attach(side, file, (enum pp_call_event)event, &links.event[event]);
	if (err) {
		exact_links_release(&links);
		return err;
	}
	*ret_links = links;
	return 0;
}

int own_sites_use(struct calls_side *side, unsigned int events, bool is_used)
{
	struct pp_call_site site = {.is_used = is_used, .is_ours = 1};
	int err = 0;

	for (unsigned int i = 0; i < PP_CALL_ARGUMENTS; i++)
		site.arg[i] = (struct pp_probe_arg)ARGUMENT(i);
	for (unsigned int event = 0; !err && event < events; event++)
		err = calls_side_set_site(side, 0, (enum pp_call_event)event, &site);
	return err;
}
