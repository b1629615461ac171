// SPDX-License-Identifier: GPL-2.0-only
/* Copyright (C) 2026 The libsci authors */
/* Dispatch of ioctls: one table, one place where structures are copied. */

#include <linux/file.h>
#include <linux/fs.h>
#include <linux/nospec.h>
#include <linux/uaccess.h>
#include <asm/ioctls.h>

#include "att.h"
#include "cache.h"
#include "core.h"
#include "dma.h"
#include "import.h"
#include "intr.h"
#include "object.h"
#include "probe.h"
#include "segment.h"

static int sci_query(struct sci_object *obj, void *cmd, struct sci_new_file *nf)
{
	struct sci_ioc_query *c = cmd;
	struct sci_adapter *a = obj->adapter;
	struct sci_att_stats st = {};

	if (a->desc.att)
		sci_att_stats(a->desc.att, &st);
	c->out_abi = SCI_ABI_VERSION;
	c->out_caps = a->desc.caps;
	c->out_node = a->desc.node;
	c->out_adapter = a->index;
	strscpy_pad(c->out_type, a->desc.type, sizeof(c->out_type));
	c->out_serial = a->desc.serial;
	c->out_att_page_size = a->desc.att_page_size;
	c->out_att_entries = st.entries;
	c->out_att_free = st.entries - st.used;
	c->out_streams = a->desc.streams;
	c->out_stream_size = a->desc.stream_size;
	c->out_dma_max = a->desc.dma_max;
	c->out_dma_align = a->desc.dma_align;
	c->out_mcast_groups = a->desc.mcast_groups;
	c->out_bdf = a->desc.bdf;
	c->out_domain = a->desc.pci_domain;
	c->out_numa_node = dev_to_node(&a->dev);
	c->out_reserved = 0;
	c->out_link_up_ms = sci_adapter_link_up_ms(a);
	c->out_link_down_ms = sci_adapter_link_down_ms(a);
	c->out_max_segment = a->desc.max_segment;
	return 0;
}

static u64 counter_get(struct sci_adapter *a, enum sci_counter c)
{
	return atomic64_read(&a->counters[c]);
}

static int sci_counters(struct sci_object *obj, void *cmd,
			struct sci_new_file *nf)
{
	struct sci_ioc_counters *c = cmd;
	struct sci_adapter *a = obj->adapter;

	c->out_errors = sci_adapter_errors(a);
	c->out_fatal = sci_adapter_fatal(a);
	c->out_ctrl_sent = counter_get(a, SCI_COUNT_CTRL_SENT);
	c->out_ctrl_received = counter_get(a, SCI_COUNT_CTRL_RECEIVED);
	c->out_ctrl_resent = counter_get(a, SCI_COUNT_CTRL_RESENT);
	c->out_ctrl_bad = counter_get(a, SCI_COUNT_CTRL_BAD);
	c->out_imports = counter_get(a, SCI_COUNT_IMPORTS);
	c->out_revoked = counter_get(a, SCI_COUNT_REVOKED);
	c->out_att_full = counter_get(a, SCI_COUNT_ATT_FULL);
	c->out_triggers_sent = counter_get(a, SCI_COUNT_TRIGGERS_SENT);
	c->out_triggers_received = counter_get(a, SCI_COUNT_TRIGGERS_RECEIVED);
	c->out_dma_bytes = counter_get(a, SCI_COUNT_DMA_BYTES);
	c->out_dma_errors = counter_get(a, SCI_COUNT_DMA_ERRORS);
	c->out_link_downs = counter_get(a, SCI_COUNT_LINK_DOWNS);
	return 0;
}

/* The fields that every structure begins with. */
struct sci_header {
	u32 size;
	u32 flags;
};

union sci_command {
	struct sci_header header;
	struct sci_ioc_query query;
	struct sci_ioc_probe probe;
	struct sci_ioc_counters counters;
	struct sci_ioc_segment_create segment_create;
	struct sci_ioc_segment_attach segment_attach;
	struct sci_ioc_connect connect;
	struct sci_ioc_intr_create intr_create;
	struct sci_ioc_intr_connect intr_connect;
	struct sci_ioc_dma_create dma_create;
	struct sci_ioc_cache cache;
	struct sci_ioc_check check;
	struct sci_ioc_flush flush;
	struct sci_ioc_segment_register segment_register;
	struct sci_ioc_segment_share segment_share;
	struct sci_ioc_segment_export segment_export;
	struct sci_ioc_segment_unexport segment_unexport;
	struct sci_ioc_segment_remove segment_remove;
	struct sci_ioc_segment_info segment_info;
	struct sci_ioc_segment_get_dmabuf segment_get_dmabuf;
	struct sci_ioc_segment_register_dmabuf segment_register_dmabuf;
	struct sci_ioc_remote_info remote_info;
	struct sci_ioc_intr_cancel intr_cancel;
	struct sci_ioc_intr_trigger intr_trigger;
	struct sci_ioc_dma_submit dma_submit;
	struct sci_ioc_dma_abort dma_abort;
};

/**
 * struct sci_ioctl_op - an ioctl
 * @cmd: SCI_IOC_*
 * @kinds: enum sci_object_kind of the objects that have this ioctl
 * @flags: the known flags
 * @min_size: size of the structure's first version
 * @size: size of the structure's present version
 * @answers: the structure has out_ fields.  If it has none, nothing is copied back, so
 *	that the ioctl cannot fail after @fn.
 * @reads: the ioctl changes nothing, so that a read-only descriptor is enough
 * @enters: @fn calls sci_adapter_enter() itself, because it reads the caller's memory or
 *	waits for another driver first.  Without @enters, the caller of @fn does so.
 * @fn: carries the ioctl out.  Its only user pointers are those in the structure.  A file
 *	that it puts into @nf is installed if it returns 0, and dropped otherwise.
 */
struct sci_ioctl_op {
	unsigned int cmd;
	u32 kinds;
	u32 flags;
	u32 min_size;
	u32 size;
	bool answers;
	bool reads;
	bool enters;
	int (*fn)(struct sci_object *obj, void *cmd, struct sci_new_file *nf);
};

#define IOCTL_OP(_cmd, _kinds, _flags, _fn, _struct, _last, _answers, ...) \
	[_IOC_NR(_cmd)] = {						\
		.cmd = _cmd,						\
		.kinds = _kinds,					\
		.flags = _flags,					\
		.min_size = offsetofend(struct _struct, _last),		\
		.size = sizeof(struct _struct),				\
		.answers = _answers,					\
		.fn = _fn,						\
		##__VA_ARGS__						\
	}

#define SEGMENT_FLAGS	(SCI_SEGMENT_AUTO_ID | SCI_SEGMENT_PRIVATE |	\
			 SCI_SEGMENT_EMPTY | SCI_SEGMENT_BROADCAST |	\
			 SCI_SEGMENT_UNICAST)
#define INTR_FLAGS	(SCI_INTR_FIXED_NUMBER | SCI_INTR_SHARE_NUMBER | \
			 SCI_INTR_COUNT | SCI_INTR_WITH_DATA)

static const struct sci_ioctl_op sci_ioctl_ops[] = {
	IOCTL_OP(SCI_IOC_QUERY, SCI_OBJECT_ADAPTER, 0, sci_query,
		 sci_ioc_query, out_max_segment, true, .reads = true),
	IOCTL_OP(SCI_IOC_PROBE, SCI_OBJECT_ADAPTER, 0, sci_probe,
		 sci_ioc_probe, timeout_ms, false),
	IOCTL_OP(SCI_IOC_COUNTERS, SCI_OBJECT_ADAPTER, 0, sci_counters,
		 sci_ioc_counters, out_link_downs, true, .reads = true),
	IOCTL_OP(SCI_IOC_SEGMENT_CREATE, SCI_OBJECT_ADAPTER, SEGMENT_FLAGS,
		 sci_segment_create, sci_ioc_segment_create, out_id, true),
	IOCTL_OP(SCI_IOC_SEGMENT_ATTACH, SCI_OBJECT_ADAPTER, 0,
		 sci_segment_attach, sci_ioc_segment_attach, out_length, true),
	IOCTL_OP(SCI_IOC_CONNECT, SCI_OBJECT_ADAPTER, SCI_CONNECT_ASYNC,
		 sci_import_connect, sci_ioc_connect, out_length, true),
	IOCTL_OP(SCI_IOC_INTR_CREATE, SCI_OBJECT_ADAPTER, INTR_FLAGS,
		 sci_intr_create, sci_ioc_intr_create, mode, true),
	IOCTL_OP(SCI_IOC_INTR_CONNECT, SCI_OBJECT_ADAPTER,
		 SCI_CONNECT_ASYNC | SCI_CONNECT_DATA,
		 sci_intr_connect, sci_ioc_intr_connect, out_fd, true),
	IOCTL_OP(SCI_IOC_DMA_CREATE, SCI_OBJECT_ADAPTER, 0,
		 sci_dma_create, sci_ioc_dma_create, out_fd, true),
	IOCTL_OP(SCI_IOC_CACHE, SCI_OBJECT_ADAPTER, SCI_CACHE_DROP,
		 sci_cache, sci_ioc_cache, length, false, .enters = true),
	IOCTL_OP(SCI_IOC_CHECK, SCI_OBJECT_ADAPTER | SCI_OBJECT_IMPORT, 0,
		 sci_import_check, sci_ioc_check, out_reserved, true,
		 .reads = true),
	IOCTL_OP(SCI_IOC_FLUSH, SCI_OBJECT_ADAPTER | SCI_OBJECT_IMPORT, 0,
		 sci_import_flush, sci_ioc_flush, flags, false, .reads = true),
	IOCTL_OP(SCI_IOC_SEGMENT_REGISTER, SCI_OBJECT_SEGMENT, 0,
		 sci_segment_register, sci_ioc_segment_register, length, false,
		 .enters = true),
	IOCTL_OP(SCI_IOC_SEGMENT_SHARE, SCI_OBJECT_SEGMENT, 0,
		 sci_segment_share, sci_ioc_segment_share, flags, false),
	IOCTL_OP(SCI_IOC_SEGMENT_EXPORT, SCI_OBJECT_SEGMENT, 0,
		 sci_segment_export, sci_ioc_segment_export, flags, false),
	IOCTL_OP(SCI_IOC_SEGMENT_UNEXPORT, SCI_OBJECT_SEGMENT, 0,
		 sci_segment_unexport, sci_ioc_segment_unexport, reserved, false),
	IOCTL_OP(SCI_IOC_SEGMENT_REMOVE, SCI_OBJECT_SEGMENT, 0,
		 sci_segment_remove, sci_ioc_segment_remove, flags, false),
	IOCTL_OP(SCI_IOC_SEGMENT_INFO, SCI_OBJECT_SEGMENT, 0,
		 sci_segment_info, sci_ioc_segment_info, out_length, true,
		 .reads = true),
	IOCTL_OP(SCI_IOC_SEGMENT_GET_DMABUF, SCI_OBJECT_SEGMENT, 0,
		 sci_segment_get_dmabuf, sci_ioc_segment_get_dmabuf,
		 out_reserved, true),
	IOCTL_OP(SCI_IOC_SEGMENT_REGISTER_DMABUF, SCI_OBJECT_SEGMENT, 0,
		 sci_segment_register_dmabuf, sci_ioc_segment_register_dmabuf,
		 offset, false, .enters = true),
	IOCTL_OP(SCI_IOC_REMOTE_INFO, SCI_OBJECT_IMPORT, 0,
		 sci_import_info, sci_ioc_remote_info, out_length, true,
		 .reads = true),
	IOCTL_OP(SCI_IOC_INTR_CANCEL, SCI_OBJECT_INTR, 0,
		 sci_intr_cancel, sci_ioc_intr_cancel, flags, false),
	IOCTL_OP(SCI_IOC_INTR_TRIGGER, SCI_OBJECT_REMOTE_INTR, 0,
		 sci_intr_trigger, sci_ioc_intr_trigger, reserved, false,
		 .enters = true),
	IOCTL_OP(SCI_IOC_DMA_SUBMIT, SCI_OBJECT_DMA,
		 SCI_DMA_PULL | SCI_DMA_WAIT,
		 sci_dma_submit, sci_ioc_dma_submit, cookie, false,
		 .enters = true),
	IOCTL_OP(SCI_IOC_DMA_ABORT, SCI_OBJECT_DMA, 0,
		 sci_dma_abort, sci_ioc_dma_abort, flags, false),
};

/* Give the user the new file, if there is one. After that, no step may fail. */
static int ioctl_finish(struct sci_new_file *nf, void __user *user,
			const void *cmd, size_t len, int ret)
{
	if (!ret && len && copy_to_user(user, cmd, len))
		ret = -EFAULT;
	if (!nf->file)
		return ret;
	if (ret) {
		put_unused_fd(nf->fd);
		fput(nf->file);
	} else {
		fd_install(nf->fd, nf->file);
	}
	return ret;
}

static int ioctl_run(struct sci_object *obj, const struct sci_ioctl_op *op,
		     void *cmd, struct sci_new_file *nf)
{
	int idx, ret;

	if (op->enters)
		return op->fn(obj, cmd, nf);
	ret = sci_adapter_enter(obj->adapter, &idx);
	if (ret)
		return ret;
	ret = op->fn(obj, cmd, nf);
	sci_adapter_exit(obj->adapter, idx);
	return ret;
}

/*
 * Carry an ioctl out. It reads the caller's memory before sci_adapter_enter() and writes it
 * after sci_adapter_exit(): a page fault may take for ever, and removal of the adapter must not
 * wait for it.
 */
static int ioctl_call(struct sci_object *obj, const struct sci_ioctl_op *op,
		      void __user *user)
{
	struct sci_new_file nf = {};
	union sci_command cmd = {};
	u32 size;
	int ret;

	if (get_user(size, (u32 __user *)user))
		return -EFAULT;
	if (size < op->min_size)
		return -EINVAL;
	/* no structure is as long as a page: limit the zeros to check */
	if (size > PAGE_SIZE)
		return -E2BIG;
	ret = copy_struct_from_user(&cmd, op->size, user, size);
	if (ret)
		return ret;
	if (cmd.header.flags & ~op->flags)
		return -EOPNOTSUPP;
	ret = ioctl_run(obj, op, &cmd, &nf);
	cmd.header.size = size;
	return ioctl_finish(&nf, user, &cmd,
			    op->answers ? min(size, op->size) : 0, ret);
}

long sci_ioctl(struct file *file, unsigned int cmd, unsigned long arg)
{
	struct sci_object *obj = file->private_data;
	const struct sci_ioctl_op *op = NULL;
	unsigned int nr = _IOC_NR(cmd);

	if (nr < ARRAY_SIZE(sci_ioctl_ops))
		op = &sci_ioctl_ops[array_index_nospec(nr, ARRAY_SIZE(sci_ioctl_ops))];
	if (cmd == FIONREAD && obj->kind == SCI_OBJECT_INTR)
		return sci_intr_fionread(obj, (int __user *)arg);
	if (!op || !op->fn || op->cmd != cmd || !(op->kinds & obj->kind))
		return -ENOTTY;
	if (!op->reads && !(file->f_mode & FMODE_WRITE))
		return -EBADF;
	if (sci_adapter_is_dead(obj->adapter))
		return -ENODEV;
	return ioctl_call(obj, op, (void __user *)arg);
}
