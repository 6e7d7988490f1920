# -*- coding: utf-8 -*-
# SPDX-License-Identifier: BSD-2-Clause
"""The main interpreter and another one, each busy in its own thread."""
import os
import sys
import threading

import common

CODE = """
import sys
sys.path.insert(0, {directory!r})
import subinterpreter_work
subinterpreter_work.in_sub({directory!r})
"""


def api():
    """(create, run) of whatever this version calls it."""
    try:
        import _interpreters as module
        return (lambda: module.create("isolated")), module.exec
    except ImportError:
        import _xxsubinterpreters as module
        keywords = {"isolated": True} if sys.version_info >= (3, 9) else {}
        return (lambda: module.create(**keywords)), module.run_string


def in_main():
    total = 0
    while not common.stopped():
        for number in range(100000):
            total += number * number


def main():
    create, run = api()
    directory = os.path.dirname(os.path.abspath(__file__))
    other = create()
    code = CODE.format(directory=directory)
    thread = threading.Thread(target=run, args=(other, code), name="sub")
    thread.start()
    common.ready()
    in_main()
    thread.join()


if __name__ == "__main__":
    sys.exit(main())
