# SPDX-License-Identifier: BSD-2-Clause
"""line_oracle.py [MODULES]   Prints what this interpreter itself says of the line of every
instruction.

For 2.7 and 3.6 on.  Compiles MODULES files of the standard library (evenly chosen; default: all)
and some code made to be awkward, and prints
    V <sys.hexversion>
    C <first line> <line table in hex, - when empty>
    L <start> <end> <line>      instructions in [start, end), bytes; line 0: none
The lines come from PyCode_Addr2Line, and dis or co_lines()/co_positions() must say the same."""
import binascii
import dis
import os
import sys
import types

CODE = type((lambda: 0).__code__)
UNIT = 2 if sys.version_info >= (3, 6) else 1


def awkward():
    yield "x = 1" + "\n" * 300 + "y = 2\n"
    yield "\n" * 70000 + "def f():\n" + "\n" * 40000 + "    return 1\n"
    yield "x = [" + ",\n".join("a%d" % i for i in range(600)) + "]\n"
    yield "f(" + ",\n\n\n".join("g(%d,\n h(i))" % i for i in range(150)) + ")\n"
    yield "x = (" + " +\n".join("a * b" for i in range(400)) + ")\n"
    yield "def f(a):\n" + "".join("  if a == %d: return a;  a += %d\n" % (i, i) for i in range(400))
    yield "class A(object):\n  def m(self):\n    try:\n      return [y for y in self\n   if y]\n" \
          "    except (ValueError,\n  KeyError):\n      raise\n    finally:\n      self.x()\n"
    yield "def g():\n  with a as b, \\\n   c as d:\n    for i in b:\n      while d:\n" \
          "        if i: break\n        yield i\n      else: continue\n"
    yield "def d(a=(\n1,\n2)):\n  return lambda: (\n  a,\n  b\n)\n@x\n\n@y(\n1)\ndef e(): pass\n"
    yield "a = 1; " * 2000 + "\n" + "b = (\n\n\n\n1)\n"
    yield ("x = '" + "y" * 900 + "', f(1), g(2)\n" + "z = " + " " * 700 + "f(1,\n"
           + " " * 600 + "2)\n")
    if sys.version_info >= (3, 6):
        yield "async def f():\n  async with a as b:\n    async for c in b:\n      await c(\n  1)\n"
    if sys.version_info >= (3, 10):
        yield "def f(a):\n  match a:\n    case [1,\n 2]: return 1\n    case {'a': b} if b > 1:\n" \
              "      return b\n    case _:\n      pass\n"
    if sys.version_info >= (3, 11):
        yield "def f():\n  try:\n    pass\n  except* ValueError as e:\n    print(e)\n"


def sources(modules):
    for text in awkward():
        yield text
    directory = os.path.dirname(os.__file__)
    names = []
    for top in ("", "asyncio", "email", "json", "unittest", "multiprocessing", "xml/dom", "ctypes",
                "encodings", "importlib", "concurrent/futures", "logging", "sqlite3", "idlelib"):
        path = os.path.join(directory, top)
        if os.path.isdir(path):
            names += [os.path.join(path, n) for n in sorted(os.listdir(path)) if n.endswith(".py")]
    step = max(1, len(names) // modules) if modules else 1
    for name in names[::step]:
        with open(name, "rb") as file:
            yield file.read()


def addr2line():
    """The C function, or None where there is no ctypes."""
    try:
        import ctypes
    except ImportError:
        return None
    function = ctypes.pythonapi.PyCode_Addr2Line
    function.argtypes = [ctypes.py_object, ctypes.c_int]
    function.restype = ctypes.c_int
    return function


def lines_of(code):
    """The line of each code unit, from Python: None for none."""
    count = len(code.co_code) // UNIT
    if sys.version_info >= (3, 11):
        lines = [position[0] for position in code.co_positions()]
        assert len(lines) == count
        return lines
    lines = [None] * count
    if sys.version_info >= (3, 10):
        for start, end, line in code.co_lines():
            for at in range(start // UNIT, end // UNIT):
                lines[at] = line
        return lines
    starts = list(dis.findlinestarts(code))
    for number, (start, line) in enumerate(starts):
        end = starts[number + 1][0] if number + 1 < len(starts) else count * UNIT
        for at in range(start // UNIT, min(end // UNIT, count)):
            lines[at] = line
    return lines


def report(code, function, out):
    lines = [line or 0 for line in lines_of(code)]
    if function:
        native = [max(function(code, at * UNIT), 0) for at in range(len(lines))]
        assert native == lines, (code, native, lines)
    if sys.version_info >= (3, 10):
        table = code.co_linetable
    else:
        table = code.co_lnotab
    out.append("C %d %s" % (code.co_firstlineno, binascii.hexlify(table).decode() or "-"))
    start = 0
    for at in range(1, len(lines) + 1):
        if at == len(lines) or lines[at] != lines[start]:
            out.append("L %d %d %d" % (start * UNIT, at * UNIT, lines[start]))
            start = at
    for constant in code.co_consts:
        if isinstance(constant, CODE):
            report(constant, function, out)


def main():
    function = addr2line()
    print("V %d" % sys.hexversion)
    print("# %s" % ("PyCode_Addr2Line" if function else "no ctypes"))
    for source in sources(int(sys.argv[1]) if len(sys.argv) > 1 else 0):
        try:
            code = compile(source, "x.py", "exec", 0, True)
        except (SyntaxError, ValueError):
            continue
        out = []
        report(code, function, out)
        print("\n".join(out))


if __name__ == "__main__":
    import warnings
    warnings.simplefilter("ignore")
    main()
