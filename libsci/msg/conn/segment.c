// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/* The ids of an endpoint's segments. */

#include "libsci/msg/conn/conn.h"

#include <errno.h>

/**
 * segment_create() - create a segment with an id that the endpoint has not used
 * @param: all parameters except the id
 *
 * A peer keeps its imports, so it must not take a new buffer's segment for an old one. Therefore
 * ids only grow; they repeat after 2^24 segments. If another endpoint of the node has the requested
 * id, the fabric chooses a higher id, and the next segment gets a higher id than that.
 *
 * Return: 0, -EEXIST if no id is free, or -errno of the fabric.
 */
int segment_create(struct sci_ep *ep, struct sci_fabric *fabric,
		   struct sci_lseg_param *param, struct sci_lseg **out)
{
	uint32_t id;
	int ret;

	param->flags |= SCI_LSEG_AUTO_ID;
	for (unsigned int i = 0; i < 2; i++) {
		param->id = MSG_NUMBERS + (ep->next_segment & MSG_NUMBERS_MASK);
		ret = fabric->ops->lseg.create(fabric, param, out);
		if (ret)
			return ret;
		id = fabric->ops->lseg.id(*out);
		ep->next_segment = id + 1 - MSG_NUMBERS;
		if (msg_number_is_valid(id))
			return 0;
		/* peers refuse to import an id beyond the range of this layer */
		fabric->ops->lseg.destroy(*out);
		ep->next_segment = 0;
	}
	return -EEXIST;
}
