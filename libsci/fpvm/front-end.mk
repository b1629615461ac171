# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
fpvm_DIR := sci-pvm
fpvm_SONAME := libfpvm3.so.3
fpvm_DEPS := gpvm pvm
fpvm_MAP := libsci/fpvm/libfpvm3.map
