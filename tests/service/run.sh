#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# run.sh [SERIES...]   Boots a Debian with systemd, sudo and the installed pyprofd under qemu's emulator, on the kernels that
# tests/kernel-matrix fetched (default: 6.1), starts the unit and looks at what it does.  Needs debootstrap, root, the
# network of Debian's packages, and some minutes: it is not part of `make check`.
set -u
here=$(dirname "$(realpath "$0")")
cd "$here/../.." || exit 1
build=${BUILD:-build}
kernels=$(realpath -m "${KERNEL_CACHE:-$build/kernels}")
work=$(realpath -m "$build/service")
suite=${SUITE:-$(. /etc/os-release && echo "$VERSION_CODENAME")}
packages=systemd,systemd-sysv,sudo,python3-minimal,libpython3-stdlib,libbpf1,libelf1,zlib1g,liblzma5,libinih1,libmicrohttpd12,libcurl4,libjansson4
root=$work/$suite

for tool in debootstrap qemu-system-x86_64 busybox; do
	command -v $tool > /dev/null || {
		echo "no $tool: apt-get install debootstrap qemu-system-x86 busybox" >&2
		exit 1
	}
done
mkdir -p "$work" "$kernels"
if [ "$(cat "$root/.complete" 2> /dev/null)" != "$packages" ]; then
	echo "# a Debian $suite with systemd"
	rm -rf "$root"
	site=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 2> /dev/null | grep -v security | head -n 1)
	debootstrap --variant=minbase --include=$packages "$suite" "$root" "${site%/}" > "$work/debootstrap.log" 2>&1 || {
		tail -n 5 "$work/debootstrap.log"
		exit 1
	}
	chroot "$root" useradd -m -s /bin/bash joe
	echo 'joe ALL=(ALL) NOPASSWD: ALL' > "$root/etc/sudoers.d/joe"
	rm -rf "$root"/var/cache/apt/archives/*.deb "$root"/var/lib/apt/lists/* "$root"/usr/share/{doc,locale,man,zoneinfo}
	ln -s /sbin/init "$root/init"
	echo 'guest' > "$root/etc/hostname"
	echo '127.0.0.1 localhost guest' > "$root/etc/hosts"
	echo "$packages" > "$root/.complete"
fi
make --no-print-directory BUILD="$build" install DESTDIR="$root" > "$work/install.log" 2>&1 || exit 1
cp "$here/guest.sh" "$root/root/check.sh"
cp "$here/work.py" "$here/get.py" "$root/home/joe/"
cp "$here/calls.py" "$here/times.py" "$root/root/"
cat > "$root/etc/systemd/system/check.service" << 'UNIT'
[Unit]
After=multi-user.target
[Service]
ExecStart=/root/check.sh
UNIT
mkdir -p "$root/etc/systemd/system/multi-user.target.wants"
ln -sf ../check.service "$root/etc/systemd/system/multi-user.target.wants/check.service"
(cd "$root" && find . -xdev | busybox cpio -o -H newc 2> /dev/null | gzip -1) > "$work/initramfs.gz"

passed=0 failed=0
for series in ${*:-6.1}; do
	[ -s "$kernels/vmlinuz-$series" ] || tests/kernel-matrix/fetch_kernels.sh "$kernels" "$series" || exit 1
	echo "# Linux $(cat "$kernels/vmlinuz-$series.release")"
	log=$work/$series.log
	VM_TIMEOUT=1200 VM_MEMORY_MIB=2500 tests/kernel-matrix/vm.sh "$kernels/vmlinuz-$series" "$work/initramfs.gz" "$log" || {
		echo "not ok $series the guest did not finish; its console ends with:"
		tail -n 8 "$log" | sed 's/^/    /'
		failed=$((failed + 1))
	}
	sed -n '/^guest: rc=/d; s/^guest: //p' "$log"
	passed=$((passed + $(grep -c '^guest: ok ' "$log")))
	failed=$((failed + $(grep -c '^guest: not ok ' "$log")))
done
echo "$passed passed, $failed failed, 0 skipped"
[ "$failed" = 0 ]
