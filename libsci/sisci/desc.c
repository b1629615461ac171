// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/* Virtual devices: SCIOpen, SCIClose. */

#include "libsci/sisci/object.h"

static sci_error_t desc_open(sci_desc_t *sd)
{
	struct sci_desc_obj *d;
	sci_error_t err;

	if (!sd)
		return SCI_ERR_ILLEGAL_PARAMETER;
	err = sci_new(SCI_TYPE_DESC, sizeof(*d), NULL, &d);
	if (err)
		return err;
	*sd = sci_handle(d);
	sci_publish(d);
	return SCI_ERR_OK;
}

void SCIOpen(sci_desc_t *sd, unsigned int flags, sci_error_t *error)
{
	SCI_CALL(error, flags, SCI_FLAG_THREAD_SAFE, desc_open(sd));
}
SISCI_EXPORT(SCIOpen);

void sci_desc_destroy(void *obj)
{
	sci_close_obj(obj, true);
	sci_retire(obj);
	sci_drain(obj);
	sci_release(obj);
}

static sci_error_t desc_close(sci_desc_t sd)
{
	struct sci_desc_obj *d = sci_get(sd, SCI_TYPE_DESC);
	sci_error_t err;

	if (!d)
		return SCI_ERR_ILLEGAL_PARAMETER;
	err = sci_close_obj(d, false);
	if (err == SCI_ERR_BUSY) {
		sci_for_each(SCI_TYPE_RSEG, sci_rseg_bury, d);
		err = sci_close_obj(d, false);
	}
	if (!err)
		sci_desc_destroy(d);
	sci_put(d);
	return err;
}

void SCIClose(sci_desc_t sd, unsigned int flags, sci_error_t *error)
{
	SCI_CALL(error, flags, 0, desc_close(sd));
}
SISCI_EXPORT(SCIClose);
