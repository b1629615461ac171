# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# OpenSHMEM 1.5 on teams.
shmem_SONAME := libsci-shmem.so.0
shmem_MAP := libsci/shmem/libsci-shmem.map
