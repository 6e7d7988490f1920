# SPDX-License-Identifier: BSD-2-Clause
"""get.py URL [FILE]   What an HTTP server answers: its status, and the body (into FILE)."""
import sys
import urllib.error
import urllib.request

try:
    answer = urllib.request.urlopen(sys.argv[1], timeout=60)
except urllib.error.HTTPError as error:
    answer = error
body = answer.read()
print("status %d" % answer.status)
if len(sys.argv) > 2:
    with open(sys.argv[2], "wb") as file:
        file.write(body)
else:
    print(body.decode("utf-8", "replace"))
