/* SPDX-License-Identifier: GPL-2.0-only */
/* Copyright (C) 2026 The libsci authors */
/*
 * The kernel's dma-bufs: memory that drivers share.
 *
 * A dma-buf of a segment refers to the segment's memory only, as maps do: it outlives the segment
 * and the adapter. A segment of a dma-buf uses the pages of the dma-buf, and holds a reference to
 * it.
 */
#ifndef SCI_DMABUF_H
#define SCI_DMABUF_H

#include <linux/err.h>
#include <linux/types.h>

struct file;
struct sci_pages;

#ifdef CONFIG_DMA_SHARED_BUFFER

/**
 * sci_dmabuf_create() - create a dma-buf of a segment's memory
 * @p: the memory
 *
 * Return: the file of the dma-buf, or an ERR_PTR: -EOPNOTSUPP: the memory belongs to an adapter or
 * to another dma-buf; -ENOMEM.
 */
struct file *sci_dmabuf_create(struct sci_pages *p);

/**
 * sci_dmabuf_pages() - take the pages of a dma-buf, and charge them to the caller's user
 * @fd: descriptor of the dma-buf
 * @offset: first byte, page aligned
 * @length: bytes, whole pages, > 0
 *
 * Return: the memory, or an ERR_PTR: -EBADF: no descriptor; -EINVAL: no dma-buf, or beyond its end;
 * -EACCES: @fd does not permit to read and write; -EOPNOTSUPP: the dma-buf is not made of pages of
 * the machine's memory; -ENOMEM; or an error of the exporter.
 */
struct sci_pages *sci_dmabuf_pages(int fd, u64 offset, u64 length);

#else

static inline struct file *sci_dmabuf_create(struct sci_pages *p)
{
	return ERR_PTR(-EOPNOTSUPP);
}

static inline struct sci_pages *sci_dmabuf_pages(int fd, u64 offset, u64 length)
{
	return ERR_PTR(-EOPNOTSUPP);
}

#endif

#endif
