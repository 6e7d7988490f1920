/* SPDX-License-Identifier: BSD-2-Clause */
#include "render/flame_svg.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/cleanup.h"
#include "render/format.h"
#include "render/markup.h"

#define ROW_PX 17U
#define HEAD_PX 46U
#define FOOT_PX 12U
#define SIDE_PX 10U
#define FONT_PX 11U
#define LETTER_PX (FONT_PX * 0.62) /* a monospace letter is 0.6 em wide; some fonts a little more */
#define TEXT_INSET_PX 3.0
#define LEAST_BOX_PX 0.15 /* narrower ones cannot be seen */
#define LEAST_LETTERS 3U

/* One node as a box. */
struct box {
	double x; /* in units of value, from the left */
	uint64_t self, total;
	uint32_t parent, row;
	uint32_t first_child, next; /* 0: none */
};

struct drawing {
	const struct flame_svg *svg;
	FILE *out;
	struct box *box;
	uint32_t width, rows; /* px; rows to draw */
	bool cut;	      /* some rows were left out */
};

static int read_nodes(struct drawing *drawing)
{
	const struct flame_svg *svg = drawing->svg;

	drawing->box = calloc(svg->node_count ? svg->node_count : 1, sizeof(*drawing->box));
	if (!drawing->box)
		return -ENOMEM;
	for (uint32_t i = 0; i < svg->node_count; i++) {
		struct box *box = &drawing->box[i];
		struct flame_svg_node node = {0};

		svg->node(svg->arg, i, &node);
		if (i && node.parent >= i)
			return -EINVAL;
		*box = (struct box){.self = node.self, .total = node.total, .parent = node.parent};
		box->row = i ? drawing->box[node.parent].row + 1 : 0;
	}
	return 0;
}

/* Sorts by parent, the largest first: the list is read backwards, and each box is put in front of
 * its siblings. */
static int compare_boxes(const void *left, const void *right, void *arg)
{
	const struct box *box = arg;
	uint32_t a = *(const uint32_t *)left, b = *(const uint32_t *)right;

	if (box[a].parent != box[b].parent)
		return box[a].parent < box[b].parent ? -1 : 1;
	if (box[a].total != box[b].total)
		return box[a].total > box[b].total ? -1 : 1;
	return a < b ? -1 : 1;
}

/* Sets each box's x, and counts the rows with a box that is wide enough. */
static int place_boxes(struct drawing *drawing)
{
	uint32_t count = drawing->svg->node_count;
	OWNED_MEM uint32_t *order = NULL;
	struct box *box = drawing->box;
	double least;

	if (count < 2)
		return 0;
	order = calloc(count, sizeof(*order));
	if (!order)
		return -ENOMEM;
	for (uint32_t i = 0; i < count; i++)
		order[i] = i;
	qsort_r(order + 1, count - 1, sizeof(*order), compare_boxes, box);
	for (uint32_t i = count - 1; i >= 1; i--) {
		box[order[i]].next = box[box[order[i]].parent].first_child;
		box[box[order[i]].parent].first_child = order[i];
	}
	least = (double)box[0].total * LEAST_BOX_PX / drawing->width;
	/* A parent comes before its children, so its x is known. */
	for (uint32_t i = 0; i < count; i++) {
		double x = box[i].x;

		for (uint32_t child = box[i].first_child; child; child = box[child].next) {
			box[child].x = x;
			x += (double)box[child].total;
		}
		if ((double)box[i].total >= least && box[i].row >= drawing->rows)
			drawing->rows = box[i].row + 1;
	}
	return 0;
}

/* Returns the lightness of a box by its module; hue and saturation come from the style by kind. */
static unsigned int shade_of(const struct flame_svg_node *node)
{
	const char *text = node->module && node->module[0] ? node->module : node->file;
	uint32_t hash = 2166136261U;

	for (; text && *text; text++)
		hash = (hash ^ (unsigned char)*text) * 16777619U;
	return (hash ^ hash >> 15) % 4;
}

static void write_text(struct drawing *drawing, const char *text)
{
	if (text)
		markup_write(drawing->out, text, strlen(text));
}

/* Writes as much of the name as fits. */
static void write_name(struct drawing *drawing, const char *name, double width, double x, double y)
{
	size_t size = strlen(name), length = markup_length(name, size);
	size_t room =
		width > 2 * TEXT_INSET_PX ? (size_t)((width - 2 * TEXT_INSET_PX) / LETTER_PX) : 0;

	if (room < LEAST_LETTERS && room < length)
		return;
	fprintf(drawing->out, "<text x=\"%.1f\" y=\"%.1f\">", x + TEXT_INSET_PX, y + ROW_PX - 5.0);
	if (length <= room) {
		markup_write(drawing->out, name, size);
	} else {
		markup_write(drawing->out, name, markup_prefix(name, size, room - 1));
		fputs("…", drawing->out);
	}
	fputs("</text>", drawing->out);
}

static void write_tooltip(struct drawing *drawing, const struct flame_svg_node *node,
			  const char *name)
{
	double whole = (double)drawing->box[0].total;
	char total[HUMAN_BYTES], self[HUMAN_BYTES];
	FILE *out = drawing->out;

	human_value(node->total, drawing->svg->unit, total);
	human_value(node->self, drawing->svg->unit, self);
	fputs("<title>", out);
	write_text(drawing, name);
	if (node->file && node->file[0]) {
		fputs("\n", out);
		write_text(drawing, node->file);
		if (node->line)
			fprintf(out, ":%" PRIu32, node->line);
	} else if (node->module && node->module[0]) {
		fputs("\n", out);
		write_text(drawing, node->module);
	}
	fprintf(out, "\ntotal %s (%.2f%%), self %s (%.2f%%)</title>", total,
		100 * (double)node->total / whole, self, 100 * (double)node->self / whole);
}

static void write_box(struct drawing *drawing, uint32_t number)
{
	static const char *const classes[] = {"p", "n", "k", "g", "o"};
	const struct box *box = &drawing->box[number];
	const struct flame_svg *svg = drawing->svg;
	double scale = drawing->width / (double)drawing->box[0].total;
	double x = SIDE_PX + fmin(box->x * scale, drawing->width);
	/* Beside boxes of negative values, others are wider than all together. */
	double width = fmin((double)box->total * scale, drawing->width);
	uint32_t line = drawing->rows - 1 - box->row;
	double y = HEAD_PX + line * (double)ROW_PX;
	struct flame_svg_node node = {0};
	const char *name;

	svg->node(svg->arg, number, &node);
	name = node.name && node.name[0] ? node.name : number ? "[unknown]" : "all";
	fputs("<g>", drawing->out);
	write_tooltip(drawing, &node, name);
	fprintf(drawing->out,
		"<rect class=\"%s%u\" x=\"%.2f\" y=\"%.0f\" width=\"%.2f\" height=\"%u\"/>",
		number && (size_t)node.kind < ARRAY_SIZE(classes) ? classes[node.kind] : "o",
		shade_of(&node), x, y, width > 1.5 ? width - 0.5 : width, ROW_PX - 1);
	write_name(drawing, name, width, x, y);
	fputs("</g>\n", drawing->out);
}

/* Writes the style: light boxes with dark text, dark ones with light text, contrast at least 4.5 in
 * both. */
static void write_style(FILE *out)
{
	static const struct {
		char class;
		unsigned int hue, saturation, dark_saturation;
	} kinds[] = {{'p', 212, 72, 44},
		     {'n', 36, 82, 48},
		     {'k', 352, 70, 38},
		     {'g', 142, 48, 40},
		     {'o', 220, 10, 8}};

	fprintf(out,
		"<style>text{font:%upx ui-monospace,Menlo,Consolas,\"DejaVu Sans Mono\",monospace;"
		"fill:#16181c}svg{background:#fff}.h{font:600 15px system-ui,sans-serif}"
		".s{font:12px system-ui,sans-serif}rect:hover{stroke:#16181c}",
		FONT_PX);
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
		for (unsigned int shade = 0; shade < 4; shade++)
			fprintf(out, ".%c%u{fill:hsl(%u %u%% %u%%)}", kinds[i].class, shade,
				kinds[i].hue, kinds[i].saturation, 72 + 4 * shade);
	}
	fputs("@media (prefers-color-scheme:dark){svg{background:#15171b}text{fill:#f2f4f8}"
	      "rect:hover{stroke:#fff}",
	      out);
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
		for (unsigned int shade = 0; shade < 4; shade++)
			fprintf(out, ".%c%u{fill:hsl(%u %u%% %u%%)}", kinds[i].class, shade,
				kinds[i].hue, kinds[i].dark_saturation, 26 + 3 * shade);
	}
	fputs("}</style>\n", out);
}

static void write_head(struct drawing *drawing)
{
	uint32_t width = drawing->width + 2 * SIDE_PX;
	uint32_t height = HEAD_PX + drawing->rows * ROW_PX + FOOT_PX;
	const struct flame_svg *svg = drawing->svg;
	char total[HUMAN_BYTES];
	FILE *out = drawing->out;

	human_value(drawing->box[0].total, svg->unit, total);
	fprintf(out,
		"<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<svg "
		"xmlns=\"http://www.w3.org/2000/svg\" "
		"width=\"%u\" height=\"%u\" viewBox=\"0 0 %u %u\" role=\"img\" "
		"aria-labelledby=\"title\">\n"
		"<title id=\"title\">",
		width, height, width, height);
	write_text(drawing, svg->title);
	fputs("</title>\n", out);
	write_style(out);
	fprintf(out, "<text class=\"h\" x=\"%u\" y=\"20\">", SIDE_PX);
	write_text(drawing, svg->title);
	fprintf(out, "</text><text class=\"s\" x=\"%u\" y=\"37\">%s%s</text>\n", SIDE_PX, total,
		drawing->cut ? "; the deepest frames are left out" : "");
}

int flame_svg_write(FILE *out, const struct flame_svg *svg)
{
	struct drawing drawing = {.svg = svg, .out = out, .rows = 1};
	OWNED_MEM struct box *boxes = NULL;
	double least;
	int err;

	drawing.width = svg->width_px ? svg->width_px : FLAME_SVG_WIDTH_PX;
	err = read_nodes(&drawing);
	boxes = drawing.box;
	if (!err)
		err = place_boxes(&drawing);
	if (err)
		return err;
	drawing.cut = drawing.rows > FLAME_SVG_MAX_ROWS;
	if (drawing.cut)
		drawing.rows = FLAME_SVG_MAX_ROWS;
	errno = 0;
	write_head(&drawing);
	least = (double)boxes[0].total * LEAST_BOX_PX / drawing.width;
	for (uint32_t i = 0; boxes[0].total && i < svg->node_count; i++) {
		if ((double)boxes[i].total >= least && boxes[i].row < drawing.rows)
			write_box(&drawing, i);
	}
	fputs("</svg>\n", out);
	return ferror(out) ? errno ? -errno : -EIO : 0;
}
