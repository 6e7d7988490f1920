# SPDX-License-Identifier: BSD-2-Clause
"""victim.py NAME   Works for a sixth of the time in NAME_outer -> NAME_middle -> NAME_inner, from a
line on its standard input until that ends; then prints the CPU time that it took for that, by its
own clock."""
import os
import select
import sys
import time

SOURCE = """
def {0}_inner():
    end = time.thread_time() + 0.02
    while time.thread_time() < end:
        sum(range(2000))
    return not select.select([sys.stdin], [], [], 0.1)[0]

def {0}_middle():
    return {0}_inner()

def {0}_outer():
    while {0}_middle():
        pass
"""

exec(compile(SOURCE.format(sys.argv[1]), __file__, "exec"))
print("ready", flush=True)
sys.stdin.readline()
began = time.process_time()
globals()[sys.argv[1] + "_outer"]()
print(time.process_time() - began, flush=True)
os._exit(0)
