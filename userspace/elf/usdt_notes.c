/* SPDX-License-Identifier: BSD-2-Clause */
#include "elf/usdt_notes.h"

#include <errno.h>
#include <string.h>

#define NOTE_TYPE 3U /* version 3 of <sys/sdt.h>'s notes */
#define NOTE_ALIGN 4U
#define WORDS_BYTES (3 * sizeof(uint64_t)) /* pc, base, semaphore */

static const char owner[] = "stapsdt";

struct reading {
	const struct elf_image *image;
	usdt_note_handler *found;
	void *context;
	bool has_base;
	uint64_t base_vaddr; /* of .stapsdt.base, as the file is now */
	struct usdt_refused refused;
	bool is_over;
};

/* Bytes of a note that are not read yet. */
struct text {
	const uint8_t *at;
	uint64_t left;
};

enum text_result { TEXT_TAKEN, TEXT_LONG, TEXT_OPEN };

/* Copies a text, cut to its room, and steps behind its NUL. */
static enum text_result take_text(struct text *from, char *to, size_t room)
{
	const uint8_t *end = memchr(from->at, 0, from->left);
	size_t size, copied;

	if (!end)
		return TEXT_OPEN;
	size = (size_t)(end - from->at);
	copied = size < room ? size : room - 1;
	memcpy(to, from->at, copied);
	/* The file may be written to meanwhile: the copy has its own NUL. */
	to[copied] = '\0';
	from->at += size + 1;
	from->left -= size + 1;
	return size < room ? TEXT_TAKEN : TEXT_LONG;
}

static void read_note(struct reading *reading, const uint8_t *description, uint64_t size)
{
	enum text_result provider, name, args;
	struct usdt_note note;
	struct text text;
	uint64_t word[3];

	if (size < WORDS_BYTES) {
		reading->refused.cut++;
		return;
	}
	memcpy(word, description, sizeof(word));
	text = (struct text){.at = description + sizeof(word), .left = size - sizeof(word)};
	provider = take_text(&text, note.provider, sizeof(note.provider));
	name = take_text(&text, note.name, sizeof(note.name));
	args = take_text(&text, note.args, sizeof(note.args));
	if (provider == TEXT_OPEN || name == TEXT_OPEN || args == TEXT_OPEN) {
		reading->refused.cut++;
		return;
	}
	if (provider == TEXT_LONG || name == TEXT_LONG) {
		reading->refused.long_names++;
		return;
	}
	if (args == TEXT_LONG)
		note.args[0] = '\0';
	/* Prelinking moves the section, but does not know what the note says. */
	if (reading->has_base) {
		word[0] += reading->base_vaddr - word[1];
		word[2] += word[2] ? reading->base_vaddr - word[1] : 0;
	}
	note.vaddr = word[0];
	note.semaphore = word[2];
	reading->is_over = !reading->found(reading->context, &note);
}

static bool is_probe(const uint8_t *name, uint64_t name_size, uint32_t type)
{
	return type == NOTE_TYPE && name_size == sizeof(owner) &&
	       !memcmp(name, owner, sizeof(owner));
}

static uint64_t aligned(uint64_t size)
{
	return (size + NOTE_ALIGN - 1) & ~(uint64_t)(NOTE_ALIGN - 1);
}

/* Reads one section; all sizes are sums of 32-bit numbers. */
static void read_section(struct reading *reading, const struct elf_section *section)
{
	uint64_t left = section->size;
	const uint8_t *at = section->data;

	while (!reading->is_over && left >= sizeof(Elf64_Nhdr) &&
	       elf_work_pay(reading->image->work, 1, ELF_WORK_PER_HEADER)) {
		const uint8_t *name = at + sizeof(Elf64_Nhdr);
		uint64_t description_at, next;
		Elf64_Nhdr note;

		memcpy(&note, at, sizeof(note));
		description_at = sizeof(note) + aligned(note.n_namesz);
		if (description_at > left || note.n_descsz > left - description_at) {
			reading->refused.cut++;
			return;
		}
		if (!elf_work_pay(reading->image->work,
				  note.n_descsz / ELF_WORK_NAME_BYTES_PER_UNIT, 1))
			return;
		if (is_probe(name, note.n_namesz, note.n_type))
			read_note(reading, at + description_at, note.n_descsz);
		next = description_at + aligned(note.n_descsz);
		if (next >= left)
			return;
		at += next;
		left -= next;
	}
}

/* Where section headers are stripped, a note may still be in a segment. */
static void read_segments(struct reading *reading)
{
	const struct elf_image *image = reading->image;
	struct elf_section section;

	for (uint32_t i = 0; i < image->program_count && !reading->is_over &&
			     elf_work_pay(image->work, 1, ELF_WORK_PER_HEADER);
	     i++)
		if (!elf_image_note_segment(image, i, &section))
			read_section(reading, &section);
}

static void read_sections(struct reading *reading)
{
	const struct elf_image *image = reading->image;
	struct elf_section section;

	for (uint32_t i = 1; i < image->section_count && !reading->is_over &&
			     elf_work_pay(image->work, 1, ELF_WORK_PER_HEADER);
	     i++)
		if (!elf_image_section_by_index(image, i, &section) && section.type == SHT_NOTE)
			read_section(reading, &section);
}

int usdt_notes_read(const struct elf_image *image, usdt_note_handler *found, void *context,
		    struct usdt_refused *ret_refused)
{
	struct reading reading = {.image = image, .found = found, .context = context};
	struct elf_section base;

	if (!elf_image_section(image, ".stapsdt.base", &base)) {
		reading.has_base = true;
		reading.base_vaddr = base.vaddr;
	}
	if (image->section_count)
		read_sections(&reading);
	else
		read_segments(&reading);
	if (elf_work_is_over(image->work))
		return -E2BIG;
	*ret_refused = reading.refused;
	return 0;
}
