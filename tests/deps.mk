# SPDX-License-Identifier: BSD-2-Clause
# What the build and the tests need, by Debian package name; the first of A|B that there is.
DEPS_BUILD := make gcc libc6-dev clang-19|clang bpftool|linux-tools-generic libbpf-dev libelf-dev \
	libdw-dev zlib1g-dev liblzma-dev uthash-dev libxxhash-dev \
	libiberty-dev libinih-dev libmicrohttpd-dev libjansson-dev libgnutls28-dev libcurl4-openssl-dev|libcurl4-gnutls-dev
DEPS_TEST := libcmocka-dev python3 pmccabe groff-base binutils xz-utils \
	libclang-rt-19-dev|libclang-rt-dev|libclang-rt-14-dev|libclang-common-14-dev llvm-19|llvm \
	qemu-system-x86 busybox-static gcc-aarch64-linux-gnu libc6-dev-arm64-cross \
	bpftrace linux-perf|linux-tools-generic python3-venv python3-greenlet graphviz golang-go chromium \
	fonts-dejavu-core npm procps btrfs-progs debootstrap libbz2-dev

# Quoted, as `|` means something to the shell.
quoted = $(foreach word,$(1),'$(word)')

.PHONY: deps deps-check test-deps
deps: ; @tests/deps.sh install $(call quoted,$(DEPS_BUILD))
deps-check: ; @tests/deps.sh check $(call quoted,$(DEPS_BUILD))
test-deps: ; @tests/deps.sh install $(call quoted,$(DEPS_BUILD)) --optional $(call quoted,$(DEPS_TEST))
