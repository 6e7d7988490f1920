# SPDX-License-Identifier: BSD-2-Clause
"""Small changes to C code: operators, bounds, conditions, deleted statements.  Only lines of
function bodies are changed, formatted as clang-format leaves them; what is in comments, strings and
log messages is not."""
import collections
import re

Mutant = collections.namedtuple(
    "Mutant", "path line before after kind")  # before, after: the whole line, line: from 1

SWAPS = {
    "<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "==", "+": "-", "-": "+",
    "*": "+", "/": "*", "%": "/", "&&": "||", "||": "&&", "<<": ">>", ">>": "<<", "&": "|",
    "|": "&", "+=": "-=", "-=": "+=", "|=": "&=", "&=": "|="
}
BINARY = re.compile(
    r"(?<= )(%s)(?= )" % "|".join(re.escape(o) for o in sorted(SWAPS, key=len, reverse=True)))
STEP = re.compile(r"\+\+|--")
# Not the exponent of a tolerance, 1e-14.
NUMBER = re.compile(r"(?<![\w.])(?<!\de-)(\d+)(?=(?:[uU]?[lL]{0,2})(?![\w.]))")
ERROR = re.compile(r"-E[A-Z0-9]+\b")
TRUTH = re.compile(r"\breturn (true|false);")
CONDITION = re.compile(r"^\t+(?:\} else )?(?:if|while) \((.*)\)(?: \{)?$")
DECLARATION = re.compile(
    r"^\t+(const|static|struct|union|enum|unsigned|signed|int|char|long|short|bool|void|double|"
    r"float|size_t|ssize_t|pid_t|FILE|OWNED\w*|\w+_t|__[us]\d+|Elf\w*|GElf\w*|Dwarf\w*)\b.*")
NO_STATEMENT = re.compile(
    r"^\t+(return|break|continue|case|default|else|for|if|while|do|switch|\(void\))\b")
# No unit test runs out of memory, and what is asserted is for who changes the code.
UNTESTED = re.compile(r"-ENOMEM\b|\basprintf\(.*\) < 0|\bassert\(")
# So neither does uthash for its table: from here to the end of the block.
NO_TABLE = re.compile(r"^(\t+)if \(!\w+->hh\.tbl\) \{")
CAST = r"(?:\(\w+\))?"
# `x > MOST ? MOST : x`, `x < y ? x : y` and `x > y ? x - y : 0` are the same with >= or <=.
ATOM = r"(?:->|[^\s(<>?:=]|\([^()]*\))+"
OPERAND = "(" + ATOM + "(?: [-+*/] " + ATOM + ")*?)"
BOUNDED = re.compile(OPERAND + r" (?:<|>)=? " + OPERAND + r" \? (?:" + CAST + r"\2 : " + CAST +
                     r"\1|" + CAST + r"\1 : " + CAST + r"\2|\1 - \2 : 0|\2 - \1 : 0)(?!\w)")
# So is `if (x > MOST)` before `x = MOST;`.
CLAMP = re.compile(r"if \((\S+) ([<>]) (-?)" + CAST + r"(\w[\w.>-]*)\)\n(\S+) = (-?)" + CAST +
                   r"(\w[\w.>-]*);$")
# So is `if (x > y)` before `sum += x - y;`.
ADDS = re.compile(r"if \((.+) > (.+)\)\n\S+ \+= (.+) - (.+);$")
# Who sorts looks at the sign alone.
SIGN = re.compile(r"^\t+return .*\? -?1 : (-?1;|0;|.* \? |[\w.>-]+ > [\w.>-]+;)")
# No call gives descriptor 0 while standard input is open, and each negative number is as good as
# -1.
DESCRIPTOR = re.compile(r"fd(?:\[\w+\])? (<|>=) 0\b|fd(?:\[\w+\])? = -1\b")
# More than is needed is well, too.
ALLOCATES = re.compile(r"\b(calloc|malloc|realloc|reallocarray)\(")
# A binary search may look anywhere between its ends; that is slower.
BISECTS = re.compile(r"\(high - low\) / 2\b")
# How fast an array grows does not matter either.
GROWS = re.compile(r"\bcapacity \* 2 : \d+")
# What is hashed may be shifted by one more: its parts stay apart.  But where the kernel side must
# come to the same hash, it matters.
AGREES = re.compile(r"\bpython/python_code\.c$")
HASHES = re.compile(r"\b(?:hash|seed) [*+^]?= |\breturn hash\b|\b(?:hash_)?mix\(")
SHIFT = re.compile(r"(?:<<|>>) \d+")
# On which side of a bound the very nanosecond falls nobody promises.
NANOSECOND = re.compile(r"_ns\)? (?:<|>)=? \(?[A-Z][A-Z0-9_]{2,}\b")
# `if (x < least)` before `least = x;` is the same with <=.
EXTREME = re.compile(r"if \((.+) ([<>]) ([\w.>-]+)\)\n(\S+) = (.+);$")
# What is masked behind a barrier is below the bound already: the verifier must see it.
BARRED = re.compile(r"BARRIER\((\w+)\);\n\1 &= .*;$")
# A compiler barrier keeps what the verifier needs; in user space it says nothing.
LOGS = re.compile(r"\b(BARRIER|log_\w+|bpf_printk|print_message|_?[Ss]tatic_assert|BUILD_BUG\w*)\b")


def masked(text):
    """The same length, with comments, strings and characters blanked out."""
    def blank(match):
        return re.sub(r"[^\n]", " ", match.group())

    return re.sub(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])+\'', blank, text,
                  flags=re.S)


def body_lines(lines):
    """Indexes of the lines inside function bodies: from a `{` to a `}` that stand alone at the
    line's begin."""
    inside, found = False, []
    for index, line in enumerate(lines):
        if line == "{":
            inside = True
        elif line.startswith("}"):
            inside = False
        elif inside and not line.startswith("#"):
            found.append(index)
    return found


def replaced(line, begin, end, new):
    return line[:begin] + new + line[end:]


def changes(line, clean, previous, following, agrees):
    """(kind, new line) for each change of one line.  The lines before and after it are without
    indentation.  agrees: its hashes are computed somewhere else, too."""
    declares = DECLARATION.match(clean)
    spans = [match.span() for match in DESCRIPTOR.finditer(clean)]
    if " ? " in clean:
        spans += [(match.end(1), match.start(2)) for match in BOUNDED.finditer(clean)]

    clamp = CLAMP.match(clean.strip() + "\n" + following)
    if clamp and clamp.group(1, 3, 4) == clamp.group(5, 6, 7):
        indentation = len(clean) - len(clean.lstrip())
        spans.append((indentation + clamp.start(2), indentation + clamp.end(2)))

    adds = ADDS.match(clean.strip() + "\n" + following)
    if adds and adds.group(1, 2) == adds.group(3, 4):
        spans.append((clean.index(" > ") + 1, clean.index(" > ") + 2))

    # `if (a != b)` before `return a < b ? -1 : 1`: they are not equal there.
    unequal = re.match(r"if \((\S+) != (\S+)\)$", previous)
    ordered = re.match(r"\t+return (\S+) ([<>]) (\S+) \? ", clean)
    if unequal and ordered and unequal.groups() == ordered.group(1, 3):
        spans.append(ordered.span(2))

    extreme = EXTREME.match(clean.strip() + "\n" + following)
    if extreme and extreme.group(1, 3) == extreme.group(5, 4):
        indentation = len(clean) - len(clean.lstrip())
        spans.append((indentation + extreme.start(2), indentation + extreme.end(2)))

    shifts = SHIFT.finditer(clean) if HASHES.search(clean) and not agrees else ()
    spans += [(match.start() + 2, match.end()) for match in shifts]
    spans += [(match.start() + 3, match.end()) for match in NANOSECOND.finditer(clean)]
    for pattern in (BISECTS, GROWS):
        spans += [match.span() for match in pattern.finditer(clean)]

    def is_same(match):
        return any(begin <= match.start() < end for begin, end in spans)
    for match in BINARY.finditer(clean):
        # Which of two allocations has failed does not matter: none does.
        if is_same(match) or (match.group() == "||" and following == "return -ENOMEM;"):
            continue
        yield "operator", replaced(line, *match.span(), SWAPS[match.group()])
    for match in STEP.finditer(clean):
        yield "operator", replaced(line, *match.span(), "--" if match.group() == "++" else "++")
    for match in NUMBER.finditer(clean):
        if ALLOCATES.search(clean) or is_same(match) or (match.group() == "1"
                                                         and SIGN.search(clean)):
            continue
        # Callers look at whether an exit status is 0.
        if not (declares and "[" in clean and "=" not in clean) and not re.match(
                r"\t+return [1-9]\d*;", clean):
            yield "bound", replaced(line, *match.span(), str(int(match.group()) + 1))
    for match in ERROR.finditer(clean):
        yield "condition", replaced(line, *match.span(), "0")
    for match in TRUTH.finditer(clean):
        yield "condition", replaced(line, *match.span(1), {"true": "false",
                                                           "false": "true"}[match.group(1)])
    match = CONDITION.match(clean)
    if match and clean.count("(") == clean.count(")"):
        yield "condition", replaced(line, *match.span(1),
                                    "!(%s)" % line[match.start(1):match.end(1)])
    whole = (clean.rstrip().endswith(";") and clean.count("(") == clean.count(")")
             and (not previous or previous[-1] in ";{}:)" or previous.endswith("else")))
    if whole and not declares and not NO_STATEMENT.match(clean):
        yield "deleted statement", re.match(r"\t*", line).group() + ";"


def mutants(path, text):
    """All of one file."""
    lines, clean = text.split("\n"), masked(text).split("\n")
    found, block, is_logging = [], None, False
    for index in body_lines(lines):
        begins = NO_TABLE.match(clean[index])
        block = begins.group(1) + "}" if begins else block
        if block:
            block = None if clean[index].startswith(block) else block
            continue
        # To the end of the statement.
        is_logging = is_logging or bool(LOGS.search(clean[index]))
        if is_logging:
            is_logging = not clean[index].endswith(";")
            continue
        if UNTESTED.search(clean[index]) or not clean[index].strip():
            continue
        previous = next((clean[i].strip() for i in range(index - 1, -1, -1) if clean[i].strip()),
                        "")
        following = clean[index + 1].strip() if index + 1 < len(clean) else ""
        if BARRED.match(previous + "\n" + clean[index].strip()):
            continue
        for kind, new in changes(lines[index], clean[index], previous, following,
                                 AGREES.search(path)):
            found.append(Mutant(path, index + 1, lines[index], new, kind))
    return found
