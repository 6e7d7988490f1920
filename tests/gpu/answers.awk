# SPDX-License-Identifier: BSD-2-Clause
# What the scripts of all tiers share: awk -f answers.awk -f SCRIPT FILE...
BEGIN {
	FS = OFS = "\t"
	answer_max = 160 # characters
}
function list(text, name) { return text (text ? ", " : "") name }
function clip(text) { return length(text) > answer_max ? substr(text, 1, answer_max - 3) "..." : text }
function answer(id, verdict, text, how, why) { print id, verdict, clip(text), how, why }
