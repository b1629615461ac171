// SPDX-License-Identifier: GPL-2.0-only
/* Copyright (C) 2026 The libsci authors */
#define CREATE_TRACE_POINTS
#include "trace.h"
