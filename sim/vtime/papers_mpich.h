/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Copyright (C) 2026 The libsci authors */
/* Declarations that SCI-MPICH's protocols and its equations for them share. */
#ifndef SIM_VTIME_PAPERS_MPICH_H
#define SIM_VTIME_PAPERS_MPICH_H

#define MPICH_BLOCK	8192u		/* S_block */
#define MPICH_BUFFER	(512u << 10)	/* S_buf */

#endif
