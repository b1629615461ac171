# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# The SCI Virtual Memory: a team's shared pages, at the same addresses in all members.  The
# tests are in selftests/scivm, as selftests/vm has the lists for virtual machines.
vm_SONAME := libsci-vm.so.0
vm_MAP := libsci/vm/libsci-vm.map
vm_TESTS := scivm
