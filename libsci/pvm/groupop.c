// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/* Requests about groups, for libgpvm3. */

#include "libsci/pvm/groupop.h"

#include <stdlib.h>
#include <string.h>

#include "libsci/pvm/lib.h"

PVM_API int pvmgroupop(enum group_op op, const char *group, int x, int **tids)
{
	struct frame f = { 0 };
	struct answer a;
	const void *v;
	int ret = pv_task_ready(), n;

	if (ret < 0)
		return ret;
	if (!group || !*group)
		return PvmNullGroup;
	frame_begin(&f, OP_GROUP, TO_MASTER);
	frame_i32(&f, op);
	frame_str(&f, group);
	frame_i32(&f, x);
	ret = pv_request(&f, &a);
	if (ret >= 0 && tids) {
		n = body_ints(&a.body, &v);
		*tids = calloc((size_t)n + 1, sizeof(int));
		ret = *tids ? n : PvmNoMem;
		if (*tids && n)
			memcpy(*tids, v, (size_t)n * sizeof(int));
	}
	pv_answer_free(&a);
	return ret;
}
