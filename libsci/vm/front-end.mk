# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# The SCI Virtual Memory: pages of all members of a team at the same addresses.  The
# tests are in selftests/scivm: selftests/vm has lists for virtual machines.
vm_SONAME := libsci-vm.so.0
vm_MAP := libsci/vm/libsci-vm.map
vm_TESTS := scivm
