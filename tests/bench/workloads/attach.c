/* SPDX-License-Identifier: BSD-2-Clause */
/* attach OBJECT   Attaches the BPF programs of an object at the first line that it reads, detaches
 * them at the next one, and so on; answers each with a line when that is done. */
#include <bpf/libbpf.h>
#include <stdio.h>

#define LINKS_MAX 8

static int attach(struct bpf_object *object, struct bpf_link *link[LINKS_MAX])
{
	struct bpf_program *program;
	int count = 0;

	bpf_object__for_each_program(program, object)
	{
		if (count == LINKS_MAX)
			return -1;
		link[count] = bpf_program__attach(program);
		if (!link[count++])
			return -1;
	}
	return count;
}

int main(int argc, char **argv)
{
	struct bpf_object *object = argc == 2 ? bpf_object__open(argv[1]) : NULL;
	struct bpf_link *link[LINKS_MAX];
	int count = 0;
	char line[16];

	if (!object || bpf_object__load(object))
		return 1;
	while (fgets(line, sizeof(line), stdin)) {
		if (count) {
			while (count)
				bpf_link__destroy(link[--count]);
		} else {
			count = attach(object, link);
			if (count < 0)
				return 1;
		}
		puts(count ? "on" : "off");
		fflush(stdout);
	}
	return 0;
}
