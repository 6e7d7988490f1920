/* SPDX-License-Identifier: BSD-2-Clause */
/* attach OBJECT   Attaches the first BPF program of an object at the first line that it reads,
 * detaches it at the next one, and so on; answers each with a line when that is done. */
#include <bpf/libbpf.h>
#include <stdio.h>

int main(int argc, char **argv)
{
	struct bpf_object *object = argc == 2 ? bpf_object__open(argv[1]) : NULL;
	struct bpf_link *link = NULL;
	char line[16];

	if (!object || bpf_object__load(object))
		return 1;
	while (fgets(line, sizeof(line), stdin)) {
		if (link) {
			bpf_link__destroy(link);
			link = NULL;
		} else {
			link = bpf_program__attach(bpf_object__next_program(object, NULL));
			if (!link)
				return 1;
		}
		puts(link ? "on" : "off");
		fflush(stdout);
	}
	return 0;
}
