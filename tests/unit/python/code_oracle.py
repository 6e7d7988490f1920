# -*- coding: utf-8 -*-
# SPDX-License-Identifier: BSD-2-Clause
"""Prints what a reader of this process's memory should find in some code objects, then waits.

    PID <pid>
    V <major>.<minor>
    T <address of the code type>
    C <address> <first line> <flags> <name> <file name> <line table>     bytes in
                                                            hex, names as UTF-8
    END
"""
import binascii
import os
import sys
import time


def text(value):
    if not isinstance(value, bytes):
        value = value.encode("utf-8", "surrogatepass")
        # What has no UTF-8 form is shown as U+FFFD, each half of a pair for itself.
        if sys.version_info >= (3,):
            value = "".join(u"\ufffd" if 0xd800 <= ord(c) < 0xe000 else c
                            for c in value.decode("utf-8", "surrogatepass")).encode("utf-8")
    return binascii.hexlify(value).decode() or "-"


def compiled(source, name):
    code = compile(source, name, "exec", 0, True)
    return [c for c in code.co_consts if hasattr(c, "co_code")] + [code]


def codes():
    yield compiled("def plain():\n  return 1\n", "plain.py")
    yield compiled("def f():\n" + "  x = 1\n" * 60000, "/long/" + "d" * 3000 + ".py")
    yield compiled("def " + "n" * 700 + "():\n" + "  a(\n1)\n" * 3000, "x" * 510)
    if sys.version_info >= (3,):
        yield compiled(u"def d\u00e9j\u00e0_\u03b1():\n\n  pass\n", u"/t/\u00fcber.py")
        yield compiled(u"def \u4e2d\u6587():\n  return [x for x in y]\n",
                       u"/t/\u4e2d/\U0001f40d.py")
        yield compiled(u"class \u00c9cole:\n  def \U00020000(self): pass\n", u"/t/\udcff.py")


def main():
    out = ["PID %d" % os.getpid(), "V %d.%d" % sys.version_info[:2],
           "T %d" % id(type(main.__code__))]
    keep = list(codes()) + [[main.__code__, os.path.join.__code__]]
    for code in [code for some in keep for code in some]:
        if sys.version_info >= (3, 10):
            table = code.co_linetable
        else:
            table = code.co_lnotab
        name = code.co_qualname if sys.version_info >= (3, 11) else code.co_name
        out.append("C %d %d %d %s %s %s" %
                   (id(code), code.co_firstlineno, code.co_flags, text(name), text(
                       code.co_filename), binascii.hexlify(table).decode() or "-"))
    print("\n".join(out + ["END"]))
    sys.stdout.flush()
    time.sleep(120)


main()
