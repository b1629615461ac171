/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Copyright (C) 2026 The libsci authors */
/* Code that several fabrics share: settings of the environment, and mapping a range. */
#ifndef LIBSCI_FABRIC_COMMON_H
#define LIBSCI_FABRIC_COMMON_H

#include <stddef.h>
#include <stdint.h>

struct sci_fabric_place;

/*
 * Set *@node to the node of @at, or else of SCI_NODE. If neither is set, *@node does not change.
 * Return: 0; -EINVAL, after a message: the value is no node ID.
 */
int sci_place_node(const struct sci_fabric_place *at, unsigned int *node);

/* Return the variable or attribute that has the fabric, or the node, of @at: for messages. */
const char *sci_place_spec_from(const struct sci_fabric_place *at);
const char *sci_place_node_from(const struct sci_fabric_place *at);

/* Print that the fabric of @at is wrong, and what it should be. Return: -EINVAL. */
int sci_place_bad(const struct sci_fabric_place *at, const char *want);

extern const char sci_want_node[];	/* what a variable with a node should be */

/*
 * Set *@mode to the mode of SCI_MODE. If SCI_MODE is not set, *@mode does not change. Return: 0;
 * -EINVAL, after a message.
 */
int sci_env_mode(unsigned int *mode);

/**
 * sci_map_fd() - map a range at any offset
 * @page: page size of @fd
 * @flags: SCI_MAP_*
 * @addr: in, with SCI_MAP_FIXED: the address wanted; out: the address of byte @off
 */
int sci_map_fd(int fd, uint64_t off, size_t len, size_t page,
	       unsigned int flags, void **addr);

#endif
