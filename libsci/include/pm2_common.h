/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Copyright (C) 2026 The libsci authors */
/* The header that programs written for Madeleine III include. */
#ifndef PM2_COMMON_H
#define PM2_COMMON_H

#include <tbx.h>
#include <ntbx.h>
#include <madeleine.h>

#endif
