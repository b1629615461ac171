# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
gpvm_DIR := sci-pvm
gpvm_SONAME := libgpvm3.so.3
gpvm_DEPS := pvm
gpvm_MAP := libsci/gpvm/libgpvm3.map
