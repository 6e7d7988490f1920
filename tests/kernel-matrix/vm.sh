#!/bin/sh
# SPDX-License-Identifier: BSD-2-Clause
# vm.sh VMLINUZ INITRAMFS LOG   Boots under qemu, with KVM where this machine has one, else under the emulator; VM_ACCEL
# chooses (kvm, tcg); KVM_DEVICE and CPUINFO are other paths, for tests.  The console goes to LOG.  The exit status is that of guest/run.sh, 99 when the guest did not get
# that far.
set -u
accel=${VM_ACCEL:-tcg}
# A /dev/kvm without the CPU's own virtualization boots nothing.
[ -n "${VM_ACCEL:-}" ] || [ ! -w "${KVM_DEVICE:-/dev/kvm}" ] || ! grep -qwE 'vmx|svm' "${CPUINFO:-/proc/cpuinfo}" ||
	accel=kvm
case $accel in
kvm) machine='-cpu host -accel kvm' ;;
*) machine='-cpu max -accel tcg,thread=multi' ;;
esac
# shellcheck disable=SC2086
timeout "${VM_TIMEOUT:-900}" qemu-system-x86_64 -M q35 $machine -nodefaults \
	-no-user-config -display none -no-reboot -smp "${VM_CPUS:-2,maxcpus=240}" -m "${VM_MEMORY_MIB:-768}" \
	-kernel "$1" -initrd "$2" -serial stdio -net none \
	-append "console=ttyS0 quiet loglevel=3 panic=-1 mitigations=off random.trust_cpu=on ${VM_APPEND:-}" \
	< /dev/null 2>&1 | tr -d '\r' > "$3"
rc=$(sed -n 's/^guest: rc=\([0-9]*\) .*/\1/p' "$3" | tail -n 1)
exit "${rc:-99}"
