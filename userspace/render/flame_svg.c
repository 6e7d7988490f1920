/* SPDX-License-Identifier: BSD-2-Clause */
#include "render/flame_html.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/saturating.h"
#include "render/format.h"

#define WIDTH_PX 1200U
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
	uint32_t row;
};

struct drawing {
	const struct flame_tree *tree;
	const char *unit;
	FILE *out;
	struct box *box; /* by node */
	uint32_t rows;	 /* to draw */
};

static double weight_of(const struct drawing *drawing, uint32_t node)
{
	return (double)flame_tree_weight(drawing->tree, node);
}

/* Narrower boxes cannot be seen. */
static bool is_seen(const struct drawing *drawing, uint32_t node)
{
	return weight_of(drawing, node) >= weight_of(drawing, 0) * LEAST_BOX_PX / WIDTH_PX;
}

/* Sets each box's place, and counts the rows with a box that is wide enough.  A parent comes before
 * its children. */
static int place_boxes(struct drawing *drawing)
{
	const struct flame_tree *tree = drawing->tree;
	CLEANUP(grouped_release) struct grouped children = {0};
	struct box *box = drawing->box;
	int err = flame_tree_children(tree, &children);

	for (uint32_t i = 0; !err && i < tree->node_count; i++) {
		double x = box[i].x;

		for (uint32_t c = children.first[i]; c < children.first[i + 1]; c++) {
			const uint32_t child = children.item[c];

			box[child] = (struct box){.x = x, .row = box[i].row + 1};
			x += weight_of(drawing, child);
		}
		if (box[i].row >= drawing->rows && is_seen(drawing, i))
			drawing->rows = box[i].row + 1;
	}
	return err;
}

/* Returns the lightness of a box by its module; hue and saturation come from the style by kind. */
static unsigned int shade_of(const char *text)
{
	uint32_t hash = 2166136261U;

	for (; *text; text++)
		hash = (hash ^ (unsigned char)*text) * 16777619U;
	return (hash ^ hash >> 15) % 4;
}

static void write_text(const struct drawing *drawing, const char *text)
{
	markup_write(drawing->out, text, strlen(text));
}

/* Writes as much of the name as fits. */
static void write_name(const struct drawing *drawing, const char *name, double width, double x,
		       double y)
{
	size_t length = text_columns_of(name);
	size_t room =
		width > 2 * TEXT_INSET_PX ? (size_t)((width - 2 * TEXT_INSET_PX) / LETTER_PX) : 0;

	if (room < LEAST_LETTERS && room < length)
		return;
	fprintf(drawing->out, "<text x=\"%.1f\" y=\"%.1f\">", x + TEXT_INSET_PX, y + ROW_PX - 5.0);
	if (length <= room) {
		write_text(drawing, name);
	} else {
		markup_write(drawing->out, name,
			     (size_t)(text_skip_columns(name, room - 1) - name));
		fputs("…", drawing->out);
	}
	fputs("</text>", drawing->out);
}

/* Writes a value of either sign. */
static void write_value(const struct drawing *drawing, int64_t value)
{
	char text[HUMAN_BYTES];

	human_value((uint64_t)magnitude_of(value), drawing->unit, text);
	fprintf(drawing->out, "%s%s", value < 0 ? "-" : "", text);
}

static void write_share(const struct drawing *drawing, const char *name, int64_t value)
{
	fputs(name, drawing->out);
	write_value(drawing, value);
	fprintf(drawing->out, " (%.2f%%)",
		100 * (double)value / (double)flame_tree_whole(drawing->tree));
}

/* code: NULL for the root. */
static void write_tooltip(const struct drawing *drawing, uint32_t number, const char *name,
			  const struct code *code)
{
	const struct code_table *table = &drawing->tree->code;
	const struct flame_node *node = &drawing->tree->node[number];
	FILE *out = drawing->out;

	fputs("<title>", out);
	write_text(drawing, name);
	if (code && code_place(table, code)[0]) {
		fputs("\n", out);
		write_text(drawing, code_place(table, code));
		if (code->file && code_line(code))
			fprintf(out, ":%" PRIu32, code_line(code));
	}
	write_share(drawing, "\ntotal ", node->total);
	write_share(drawing, ", self ", node->self);
	fputs("</title>", out);
}

static void write_box(const struct drawing *drawing, uint32_t number)
{
	static const char classes[] = {[FRAME_CLASS_PYTHON] = 'p',
				       [FRAME_CLASS_NATIVE] = 'n',
				       [FRAME_CLASS_KERNEL] = 'k',
				       [FRAME_CLASS_GPU] = 'g',
				       [FRAME_CLASS_OTHER] = 'o'};
	const struct code_table *table = &drawing->tree->code;
	const struct code *code = number ? &table->code[drawing->tree->node[number].frame] : NULL;
	const char *name = code ? code_text(table, code->name) : "all";
	const char *module = code ? code_text(table, code->module ? code->module : code->file) : "";
	const struct box *box = &drawing->box[number];
	const double scale = WIDTH_PX / weight_of(drawing, 0);
	/* Sums that overflow are not those of their parts. */
	const double x = SIDE_PX + fmin(box->x * scale, WIDTH_PX);
	const double width = fmin(weight_of(drawing, number) * scale, WIDTH_PX);
	const double y = HEAD_PX + (drawing->rows - 1 - box->row) * (double)ROW_PX;

	name = name[0] ? name : "[unknown]";
	fputs("<g>", drawing->out);
	write_tooltip(drawing, number, name, code);
	fprintf(drawing->out,
		"<rect class=\"%c%u\" x=\"%.2f\" y=\"%.0f\" width=\"%.2f\" height=\"%u\"/>",
		classes[code ? code->class : FRAME_CLASS_OTHER], shade_of(module), x, y,
		width > 1.5 ? width - 0.5 : width, ROW_PX - 1);
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

static void write_head(const struct drawing *drawing, const char *title, bool is_cut)
{
	const uint32_t width = WIDTH_PX + 2 * SIDE_PX;
	const uint32_t height = HEAD_PX + drawing->rows * ROW_PX + FOOT_PX;
	FILE *out = drawing->out;

	fprintf(out,
		"<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<svg "
		"xmlns=\"http://www.w3.org/2000/svg\" "
		"width=\"%u\" height=\"%u\" viewBox=\"0 0 %u %u\" role=\"img\" "
		"aria-labelledby=\"title\">\n"
		"<title id=\"title\">",
		width, height, width, height);
	write_text(drawing, title);
	fputs("</title>\n", out);
	write_style(out);
	fprintf(out, "<text class=\"h\" x=\"%u\" y=\"20\">", SIDE_PX);
	write_text(drawing, title);
	fprintf(out, "</text><text class=\"s\" x=\"%u\" y=\"37\">", SIDE_PX);
	write_value(drawing, drawing->tree->node[0].total);
	fprintf(out, "%s%s</text>\n",
		drawing->tree->profile->signs.has_negative ? "; widths are of both signs" : "",
		is_cut ? "; the deepest frames are left out" : "");
}

int flame_svg_write(FILE *out, const struct flame_tree *tree, const char *title)
{
	OWNED_MEM struct box *box = calloc(tree->node_count, sizeof(*box));
	struct drawing drawing = {
		.tree = tree,
		.unit = tree->profile->options.value_type[tree->options.value_index].unit,
		.out = out,
		.box = box,
		.rows = 1};
	int err = box ? place_boxes(&drawing) : -ENOMEM;
	bool is_cut;

	if (err)
		return err;
	is_cut = drawing.rows > FLAME_SVG_MAX_ROWS;
	if (is_cut)
		drawing.rows = FLAME_SVG_MAX_ROWS;
	errno = 0;
	write_head(&drawing, title, is_cut);
	for (uint32_t i = 0; weight_of(&drawing, 0) > 0 && i < tree->node_count; i++)
		if (is_seen(&drawing, i) && box[i].row < drawing.rows)
			write_box(&drawing, i);
	fputs("</svg>\n", out);
	return ferror(out) ? errno ? -errno : -EIO : 0;
}
