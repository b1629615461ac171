/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Copyright (C) 2026 The libsci authors */
/*
 * The protocol of a pool, as layout.h describes it.
 *
 * The files format.c, slots.c, chunks.c and mail.c have no lock, no clock and no
 * memory of their own: they run in the kernel, in `sci pool`, and in tests.  The
 * caller serializes the calls for one struct pool, except pool_mail_send() for different
 * receivers and pool_mail_receive().  It passes the time in ns of a clock that continues
 * while the machine hangs.  Calls that return int return 0 or -errno, unless noted.
 */
#ifndef SCI_POOL_POOL_H
#define SCI_POOL_POOL_H

#include "layout.h"

/**
 * struct pool_form - the layout of a pool
 * @size: bytes
 * @id: the random number that the formatter stored
 * @chunk_size: bytes of a chunk
 * @chunks: number of chunks
 * @slots: number of nodes
 * @incoherent: the caches of machines are not coherent
 * @share: number of chunks of which a node allocates
 * @lease: silence after which a node is expelled, ns
 * @quarantine: time for which memory of an expelled node is not used, in ns
 * @slot_at, @bell_at, @expelled_at, @chunk_at, @map_at, @mail_at, @data_at: offsets
 */
struct pool_form {
	u64 size;
	u64 id;
	u32 chunk_size;
	u32 chunks;
	u32 slots;
	bool incoherent;
	u32 share;
	u64 lease;
	u64 quarantine;
	u64 slot_at;
	u64 bell_at;
	u64 expelled_at;
	u64 chunk_at;
	u64 map_at;
	u64 mail_at;
	u64 data_at;
};

/**
 * struct pool_seen - this node's view of a slot
 * @word: word of the slot at the last check
 * @beat: heartbeat count at the last check
 * @alive: time of the last change of @beat
 * @settled: end of the quarantine of earlier generations
 */
struct pool_seen {
	u64 word;
	u64 beat;
	u64 alive;
	u64 settled;
};

/**
 * struct pool_mapped - an allocation that this node has mapped
 * @count: number of maps
 * @before: earlier value of this node's map word; the quarantine of the node that it
 *	names may not be over
 */
struct pool_mapped {
	u32 count;
	u32 before;
};

/**
 * struct pool - this node's view of a pool
 * @mem: the pool
 * @form: checked once, when the pool was opened
 * @slot: slot of this node
 * @generation: generation of this node; 0: it has no slot
 * @token: a random number, which the caller sets before pool_join(), for a pool that is not
 *	coherent
 * @looked: time of the last check of the other slots
 * @seen: results of the last check, by slot
 * @own: one byte per chunk; not 0: the chunk belongs to this node, whatever other nodes store
 *	into the pool
 * @mapped: one element per chunk: the maps of this node that begin at the chunk
 * @corrupt: number of impossible values found in the pool
 */
struct pool {
	void *mem;
	struct pool_form form;
	u32 slot;
	u32 generation;
	u64 token;
	u64 looked;
	struct pool_seen seen[POOL_SLOTS_MAX];
	u8 *own;
	struct pool_mapped *mapped;
	u64 corrupt;
};

/* ---- format.c ---- */

u32 pool_crc(const void *p, size_t n);

/**
 * pool_format() - make a pool
 * @mem: @size bytes
 * @size: a multiple of 4096
 * @chunk_size: a power of two
 * @slots: number of nodes
 * @lease_ms: see struct pool_header
 * @quarantine_ms: see struct pool_header
 * @id: a random number
 * @flags: POOL_FLAGS
 *
 * The former contents are lost. If the formatter dies, pool_open() finds no pool.
 * Return: 0; -EINVAL: an argument is out of range, or the pool is too small.
 */
int pool_format(void *mem, u64 size, u32 chunk_size, u32 slots, u32 lease_ms,
		u32 quarantine_ms, u64 id, u32 flags);

/**
 * pool_open() - open a pool
 * @p: zeroed by the caller
 * @mem: @size bytes
 *
 * Return: 0; -ENODATA: there is no pool; -EPROTONOSUPPORT: the pool has another version;
 * -EBADMSG: the header is damaged, or has an impossible value.
 */
int pool_open(struct pool *p, void *mem, u64 size);

/* Return whether the pool has not been formatted again since it was opened. */
bool pool_is_current(const struct pool *p);

/* ---- slots.c ---- */

static inline u32 pool_slot_node(u32 slot)
{
	return POOL_NODE_STEP * (slot + 1);
}

/**
 * pool_join() - take a slot
 * @p: opened; the caller has set .own and .mapped, zeroed, form.chunks elements each, and .token
 * @node: the node id; 0: any that is free
 * @doorbell: see struct pool_slot
 * @name: name of this host
 *
 * Return: 0; -EEXIST: another node has the slot, and its lease may run out; -EINVAL: no such
 * slot; -ENOSPC: no slot is free; -ESTALE: the pool has been formatted again: open it again.
 */
int pool_join(struct pool *p, u32 node, u32 doorbell, const char *name, u64 now);

/**
 * pool_beat() - store this node's heartbeat, and expel nodes that are silent
 *
 * Call this function several times in each lease.
 *
 * Return: 0; -ESTALE: this node has been expelled, or the pool has been formatted again: release
 * everything, then call pool_leave() and pool_join().
 */
int pool_beat(struct pool *p, u64 now);

/* Leave the pool. Afterwards this node must not use the pool any more. */
void pool_leave(struct pool *p);

/* Return the word of a slot, without POOL_SLOT_ACTIVE if the node has been expelled. */
u64 pool_slot_word(const struct pool *p, u32 slot);

/* Return whether no other node has expelled this node. */
bool pool_has_slot(const struct pool *p);

bool pool_node_is_active(struct pool *p, u32 node);

/* Return the number of the node's doorbell, or -1. */
int pool_node_doorbell(struct pool *p, u32 node);

/*
 * Return whether a word with this generation of a slot may be ignored, because the node
 * has ended and cannot store any more.
 */
bool pool_generation_is_over(struct pool *p, u32 slot, u32 generation, u64 now);

/*
 * ---- chunks.c ----
 *
 * When the pool has been formatted again, the tables may be elsewhere: these calls store nothing
 * then. pool_alloc() and pool_map() fail.
 */

/**
 * pool_alloc() - take memory
 * @bytes: > 0
 * @first: first chunk of the allocation
 *
 * Return: the number of chunks; -ENOSPC.
 */
int pool_alloc(struct pool *p, u64 bytes, u32 *first, u64 now);

/*
 * Free an allocation. Other nodes may still have it mapped: its chunks become free when
 * pool_scrub() finds that no node maps them.
 */
void pool_free(struct pool *p, u32 first, u32 chunks, u64 now);

/* Let other nodes map an allocation. @serial: a random number. Return its name for pool_map(). */
u64 pool_expose(struct pool *p, u32 first, u32 chunks, u32 serial);
void pool_hide(struct pool *p, u32 first, u32 chunks);

/**
 * pool_map() - map the memory that @node exposes as @base
 * @first: first chunk of the allocation
 * @chunks: number of chunks
 *
 * Return: 0; -ENOENT: @node exposes no memory as @base.
 */
int pool_map(struct pool *p, u32 node, u64 base, u32 *first, u32 *chunks);
void pool_unmap(struct pool *p, u32 first);

/* Free the chunks that no node owns or maps.  Return the number of chunks freed. */
u32 pool_scrub(struct pool *p, u64 now);

static inline u64 pool_chunk_offset(const struct pool *p, u32 chunk)
{
	return p->form.data_at + (u64)chunk * p->form.chunk_size;
}

/* ---- mail.c ---- */

/**
 * pool_mail_send() - put a packet of POOL_PACKET bytes into @node's mailbox
 *
 * Return: 0; -EHOSTUNREACH: the pool has no slot for @node, or this node has lost its slot;
 * -EAGAIN: the ring is full.
 */
int pool_mail_send(struct pool *p, u32 node, const void *packet);

/**
 * pool_mail_receive() - take the next packet from @node
 * @packet: receives POOL_PACKET bytes
 *
 * Return: false if there is none, or this node has lost its slot.
 */
bool pool_mail_receive(struct pool *p, u32 node, void *packet);

/* Return the number of times that the bell of this node has been rung. */
u32 pool_bell(struct pool *p);

/* ---- addresses in the pool ---- */

static inline struct pool_slot *pool_slot(const struct pool *p, u32 slot)
{
	return (struct pool_slot *)((u8 *)p->mem + p->form.slot_at) + slot;
}

static inline struct pool_chunk *pool_chunk(const struct pool *p, u32 chunk)
{
	return (struct pool_chunk *)((u8 *)p->mem + p->form.chunk_at) + chunk;
}

static inline __le32 *pool_map_word(const struct pool *p, u32 slot, u32 chunk)
{
	return (__le32 *)((u8 *)p->mem + p->form.map_at) +
	       (u64)slot * p->form.chunks + chunk;
}

static inline struct pool_bell *pool_bell_line(const struct pool *p, u32 slot)
{
	return (struct pool_bell *)((u8 *)p->mem + p->form.bell_at) + slot;
}

/* Return the word that has the heartbeat count of a slot. */
static inline __le64 *pool_beat_word(const struct pool *p, u32 slot)
{
	return p->form.incoherent ? &pool_bell_line(p, slot)->beat :
				    &pool_slot(p, slot)->beat;
}

/* Return the word in which the node of slot @by stores the generation of @slot that it expels. */
static inline __le32 *pool_expelled(const struct pool *p, u32 by, u32 slot)
{
	return (__le32 *)((u8 *)p->mem + p->form.expelled_at) + by * POOL_SLOTS_MAX + slot;
}

/* Return the first chunk of this node's share. */
static inline u32 pool_share_first(const struct pool *p)
{
	return p->form.incoherent ? p->slot * p->form.share : 0;
}

static inline struct pool_ring *pool_ring(const struct pool *p, u32 from, u32 to)
{
	return (struct pool_ring *)((u8 *)p->mem + p->form.mail_at) +
	       to * p->form.slots + from;
}

#endif
