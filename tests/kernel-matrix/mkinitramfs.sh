#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# mkinitramfs.sh OUT PYPROFD PYTHON_TREE   Packs busybox, pyprofd with the shared libraries it needs,
# a small Python 3.11 (below /py, to chroot into) and guest/ (below /t) into a gzip'd cpio archive.
set -eu
here=$(dirname "$(realpath "$0")")
out=$1
pyprofd=$2
python=$(realpath "$3")
fakes=$(dirname "$pyprofd")/tests/fakes
d=$(mktemp -d)
trap 'rm -rf "$d"' EXIT
trap 'exit 130' INT TERM

# A program with its loader and libraries, each at its own path.
with_libraries() { # FILE [ROOT]: ROOT is the tree that FILE and its libraries lie in
	if [ -n "${2:-}" ]; then
		chroot "$2" /lib64/ld-linux-x86-64.so.2 --list "$1" || true # static: it says so and fails
	else
		ldd "$1" 2> /dev/null || true
	fi | grep -oE '/[^ ]+' | sort -u
}
copy() { # ROOT FILE DESTINATION
	mkdir -p "$3$(dirname "$2")"
	cp -L "$1$2" "$3$2"
}

mkdir -p "$d/bin" "$d/proc" "$d/sys" "$d/dev" "$d/tmp" "$d/t" "$d/opt" "$d/root"
busybox=$(command -v busybox)
cp "$busybox" "$d/bin/busybox"
ln -s busybox "$d/bin/sh"
cp "$pyprofd" "$d/opt/pyprofd"
strip --strip-debug "$d/opt/pyprofd" 2> /dev/null || true
for file in $(with_libraries "$busybox") $(with_libraries "$pyprofd"); do
	copy "" "$file" "$d"
done

mkdir -p "$d/py/tmp" "$d/py/dev" "$d/py/t"
copy "$python" /usr/bin/python3.11 "$d/py"
for file in $(with_libraries /usr/bin/python3.11 "$python"); do
	copy "$python" "$file" "$d/py"
done
# Modules that the target, the check and the start of the interpreter import, with their packages.
lib=/usr/lib/python3.11
mkdir -p "$d/py$lib"
for name in collections encodings importlib re; do
	cp -r "$python$lib/$name" "$d/py$lib/"
done
cp "$python$lib"/*.py "$d/py$lib/"
rm -rf "$d/py$lib"/pydoc* "$d/py$lib"/_pydecimal.py "$d/py$lib"/turtle.py
cp "$here"/guest/*.py "$here/../e2e/pprof.py" "$d/py/t/"
cp "$here"/guest/*.sh "$d/t/"
# shellcheck disable=SC2086 # CC may be `ccache gcc`
${CC:-cc} -static -O1 -Wall -o "$d/t/service_caps" "$here/guest/service_caps.c"
# shellcheck disable=SC2086
${CC:-cc} -static -O1 -Wall -o "$d/t/programs" "$here/guest/programs.c"
# shellcheck disable=SC2086
${CC:-cc} -static -O1 -Wall -o "$d/t/ready" "$here/guest/ready.c"
# shellcheck disable=SC2086
${CC:-cc} -static -O2 -Wall -o "$d/t/probed" "$here/guest/probed.c" -lpthread
# shellcheck disable=SC2086
${CC:-cc} -O2 -Wall -I"$here/../fakes" -Wl,-rpath,/t -o "$d/t/cuda" "$here/guest/cuda.c" "$fakes/libcuda.so.1" -lpthread
cp "$fakes/libcuda.so.1" "$d/t/"
cp "$here/guest/init" "$d/init"
chmod 755 "$d/init"
(cd "$d" && find . | "$busybox" cpio -o -H newc 2> /dev/null | gzip -1) > "$out.new"
mv "$out.new" "$out"
