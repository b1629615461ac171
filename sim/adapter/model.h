/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Copyright (C) 2026 The libsci authors */
/*
 * DOC: inside the model
 *
 * The path of a store:
 *
 *	window -> struct stream -> waiters -> struct transaction -> host->send()
 *		  (gathers)	   (FIFO)     (slot, until answered)
 *
 * Every entry point changes state and then calls adapter_settle(). That function makes
 * transactions of waiters, answers requests to the own node and continues DMA. Then it updates
 * status words, interrupt and timer, once each. So there is no recursion: code that ends a
 * transaction never begins one.
 *
 * A line is named by its SCI address: node << 48, export id << 32, offset.
 */
#ifndef SIM_ADAPTER_MODEL_H
#define SIM_ADAPTER_MODEL_H

#include <assert.h>
#include <string.h>

#include "sim/adapter/adapter.h"

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
	      "packets and tables are little-endian and not converted");

#define NO_LINE		UINT64_MAX
#define STREAMS_MAX	16u
#define SLOTS_MAX	64u
#define BUCKETS		128u
#define KEPT_LINES	8u	/* prefetched */
#define TLB_ENTRIES	64u
#define NODES_FAN	128u	/* children of a table; two levels hold 16384 node ids */
#define ATT_BLOCK	256u	/* entries */
#define UNIT		16u	/* bytes of the smallest store packet */
#define RUN_BUDGET	512u	/* steps of one call; the timer continues */

/* ---- lists ---- */

struct link {
	struct link *prev, *next;
};

static inline void link_init(struct link *l)
{
	l->prev = l->next = l;
}

static inline bool link_empty(const struct link *l)
{
	return l->next == l;
}

/* Insert @l before @at. If @at is the head of a list, @l becomes the last entry. */
static inline void link_add(struct link *l, struct link *at)
{
	l->next = at;
	l->prev = at->prev;
	at->prev->next = l;
	at->prev = l;
}

static inline void link_del(struct link *l)
{
	l->prev->next = l->next;
	l->next->prev = l->prev;
	link_init(l);
}

#define LINK_OF(l, type, member) \
	((type *)(void *)((char *)(l) - offsetof(type, member)))

/* ---- stores and loads in flight ---- */

/* A store that is not complete. The list sim_adapter.order has all such stores, by time. */
struct order {
	struct link link;
	uint32_t ticket;	/* ticket of the first barrier after the store */
};

/* A stream buffer or a load whose packets have no transaction yet. */
struct waiter {
	struct link link;
	uint64_t line;		/* or NO_LINE */
	bool read;		/* in a struct read, else in a struct stream */
};

/**
 * struct stream - a stream buffer
 * @address: address of its line; INTERRUPT: address of the node
 * @filled: a bit for each byte that was stored
 * @todo: leaving: a bit for each 16 bytes without a transaction
 * @begun: leaving: all outstanding packets of its line are from this buffer
 * @age: number of the buffer in the order in which buffers are taken
 * @page: ATT entry
 */
struct stream {
	struct waiter wait;
	struct order order;
	uint64_t address;
	uint64_t filled[2];
	uint64_t deadline;
	uint64_t age;
	uint32_t page;
	uint32_t value;		/* INTERRUPT */
	uint16_t attr;
	uint8_t todo;
	bool begun;
	uint8_t initiator;
	uint8_t data[PACKET_DATA_MAX];
};

enum read_state { READ_NONE, READ_WAITS, READ_SENT, READ_DONE };

/**
 * struct read - a load that holds the bus
 * @offset: offset in the window
 * @address: SCI address
 * @keep: prefetch: the line in the answer may be kept
 * @exact: no prefetch, or the target has refused the whole line
 */
struct read {
	struct waiter wait;
	struct transaction *sent;
	uint64_t offset;
	uint64_t address;
	uint16_t attr;
	uint8_t len;
	uint8_t state;
	bool keep;
	bool exact;
	uint8_t data[8];
};

/**
 * struct initiator - a source of stores and loads
 * @stream: buffer of its last store, while this buffer gathers
 * @next: offset in the window at which its last store ended
 * @stalled: its store waits for a free buffer
 */
struct initiator {
	struct stream *stream;
	uint64_t next;
	bool stalled;
	struct read read;
};

/* A prefetched line. */
struct kept {
	uint64_t address;	/* NO_LINE: unused */
	uint64_t until;
	uint32_t len;
	uint8_t data[PACKET_DATA_MAX];
};

/* ---- transactions ---- */

enum owner { OWNER_STORE, OWNER_READ, OWNER_DMA, OWNER_MAILBOX, OWNER_COMMAND };

/**
 * struct transaction - a request that has been sent, and its slot
 * @deadline: latest time of the response; SIM_NEVER for a request to the own node
 * @node_link: entry in the list of requests to the same node, in order of their numbers
 * @queue: entry in the list of requests to the own node
 * @initiator: the initiator that waits for a read; SIM_INITIATORS: it has stopped waiting
 * @dma_run: the run of the ring to which a DMA transfer belongs
 * @dma_offset: offset of a DMA transfer in the bytes of the descriptor
 */
struct transaction {
	struct sim_packet packet;
	struct order order;
	struct node *node;
	struct link node_link;
	struct link queue;
	struct transaction *line_next;
	struct transaction *number_next;
	uint64_t line;
	uint64_t deadline;
	uint32_t dma_run;
	uint32_t dma_offset;
	uint8_t owner;
	uint8_t tries;
	uint8_t initiator;
};

/* The slots of the data sheet, then the slots of the mailbox, then the slot of the command. */
#define SLOTS_ALL	(SLOTS_MAX + SCI_PCI_MBOX_SLOTS + 1)

/**
 * struct node - another node, or this one
 * @next: number of the next request to it
 * @gave_up: the highest number of a request that was given up
 * @held: new requests wait until the floor is above @gave_up
 * @known: a request of the node has arrived: @floor, @epoch and @executed are valid
 * @executed: status + 1 of the requests from @floor on; 4 bits each, 0: not executed
 * @values: answers of locks; allocated with the first lock
 */
struct node {
	uint16_t node;
	bool held;
	bool known;
	uint32_t next;
	uint32_t gave_up;
	struct link outstanding;
	uint32_t floor;
	uint64_t epoch;
	uint32_t *values;
	uint8_t executed[PACKET_WINDOW / 2];
};

struct nodes {
	struct node *node[NODES_FAN];
};

/* ---- parts ---- */

struct ring {
	uint64_t base;
	uint32_t base_low;	/* low half, which waits for the high half to be written */
	uint32_t entries;
	uint32_t head;
	uint32_t tail;
	bool stopped;
};

/* A cached entry of the export table, with one of its pages. */
struct tlb {
	uint64_t page;		/* bus address */
	uint64_t length;
	uint32_t number;	/* of the page */
	uint16_t id;
	uint16_t flags;		/* 0: unused */
};

/**
 * struct dma - the DMA engine
 * @run: number of the present ring; late answers have the number of an earlier ring
 * @busy: the engine has a descriptor, which the members from @local on describe
 * @issued: bytes of the descriptor for which requests have been sent
 * @good: bytes of the descriptor before the first failed request
 * @chain: the previous descriptor has failed, and its flag CHAIN aborts the next one
 * @abort: descriptors before @abort_tail are aborted
 */
struct dma {
	struct ring ring;
	uint32_t run;
	bool busy;
	bool chain;
	bool abort;
	uint32_t abort_tail;

	uint64_t local;
	uint64_t remote;
	uint32_t length;
	uint16_t node;
	uint16_t flags;
	uint32_t issued;
	uint32_t good;
	uint32_t outstanding;
	enum sci_pci_error error;
};

struct command {
	uint32_t node;
	uint32_t arg;
	uint32_t kind;		/* while busy */
	uint32_t busy_node;
	uint32_t busy_arg;
	uint32_t status;
	uint32_t result;
	bool stopped;
	uint8_t mailbox[SCI_PCI_MBOX_SIZE];
};

struct status {
	uint64_t base;
	uint32_t base_low;
	uint32_t errors;
	uint32_t fatal;
	uint32_t ticket;	/* ticket that the next barrier gets */
	uint32_t code;
	uint32_t node;
	uint64_t address;
	bool stopped;
	bool writes;		/* the base is valid */
	uint32_t written[4];	/* copy of the words in main memory */
};

struct sim_adapter {
	struct sim_config config;
	const struct sim_host *host;
	void *ctx;
	uint64_t epoch;

	/* registers */
	bool enabled;
	bool link_up;
	uint32_t int_status;
	uint32_t int_mask;
	uint32_t int_told;
	uint32_t int_raised;
	uint32_t timeout_us;
	uint32_t retries;
	uint32_t gather_ns;
	uint32_t latch_offset;	/* high half of the counter that was read last */
	uint32_t latch;

	/* stores */
	struct stream stream[STREAMS_MAX];
	uint32_t streams_free;	/* a bit for each free buffer */
	uint32_t streams_gather;
	uint64_t stream_age;
	uint64_t window_size;
	unsigned int page_shift;
	uint32_t line_mask;
	struct initiator initiator[SIM_INITIATORS];
	unsigned int reads;	/* number of reads that are not READ_NONE */
	struct kept kept[KEPT_LINES];
	unsigned int kept_next;
	bool kept_any;
	struct link order;

	/* transactions */
	struct transaction *slot;
	uint64_t slots_free;
	uint64_t special_free;	/* slots for mailbox and command */
	uint64_t special_wait;	/* slots taken that have not begun */
	unsigned int stores;	/* outstanding */
	struct transaction *by_line[BUCKETS];
	struct transaction *by_number[BUCKETS];
	struct link waiters;
	struct link own;	/* requests to the own node */
	struct nodes *nodes[NODES_FAN];

	/* the timer and pending work */
	uint64_t deadline;
	uint64_t deadline_told;
	unsigned int budget;
	bool retry;		/* a waiter may have become ready */

	struct ring rx;
	uint32_t rx_turn;
	struct ring exports;
	struct tlb tlb[TLB_ENTRIES];
	struct dma dma;
	struct command command;
	struct status status;
	uint64_t counter[SCI_PCI_COUNTERS_COUNT];

	uint32_t (*att)[4];
	uint8_t *att_used;	/* 1: the block of the table was written */
};

static inline void counter_add(struct sim_adapter *a, enum sci_pci_counter c)
{
	a->counter[c]++;
}

static inline uint64_t address_of(uint16_t node, uint16_t export_id,
				  uint32_t offset)
{
	return (uint64_t)node << 48 | (uint64_t)export_id << 32 | offset;
}

#define ADDRESS_BITS	((UINT64_C(1) << 48) - 1)	/* of one node */

static inline bool node_valid(uint32_t node)
{
	return node && node <= 0xfffc && !(node & 3);
}

/* adapter.c */
void adapter_settle(struct sim_adapter *a);
void adapter_enable(struct sim_adapter *a, bool enable);
bool adapter_reaches(const struct sim_adapter *a, uint16_t node);
void adapter_until(struct sim_adapter *a, uint64_t when);

/* att.c */
struct att {
	uint64_t address;	/* address of the first byte asked for */
	uint32_t value;		/* INTERRUPT */
	uint32_t page;
	uint16_t node;
	uint16_t attr;
};

bool att_lookup(struct sim_adapter *a, uint64_t offset, bool store,
		struct att *e);
void att_reset(struct sim_adapter *a);

/* stream.c */
void stream_issue(struct sim_adapter *a, struct stream *s);
void stream_flush(struct sim_adapter *a);
void stream_flush_page(struct sim_adapter *a, uint32_t page);
void stream_flush_line(struct sim_adapter *a, uint64_t line,
		       enum sci_pci_counter counter);
void stream_expire(struct sim_adapter *a, uint64_t now);
uint64_t stream_deadline(const struct sim_adapter *a);
void stream_reset(struct sim_adapter *a);

/* read.c */
void read_issue(struct sim_adapter *a, struct read *r);
void read_end(struct sim_adapter *a, const struct transaction *t,
	      enum sci_pci_error error, const struct sim_packet *response);
void read_overtaken(struct sim_adapter *a, uint64_t line);
void read_forget(struct sim_adapter *a);
void read_reset(struct sim_adapter *a);

/* transaction.c */
enum sci_pci_error transaction_reach(struct sim_adapter *a, uint16_t node);
bool transaction_ready(struct sim_adapter *a, uint16_t node, uint64_t line);
struct transaction *transaction_new(struct sim_adapter *a, enum owner owner,
				    uint16_t node, enum packet_kind kind);
void transaction_begin(struct sim_adapter *a, struct transaction *t,
		       uint64_t line);
struct transaction *transaction_special(struct sim_adapter *a,
					enum owner owner, uint16_t node,
					enum packet_kind kind);
void transaction_cancel(struct sim_adapter *a, struct transaction *t);
bool transaction_run(struct sim_adapter *a);
void transaction_response(struct sim_adapter *a, const struct sim_packet *r);
void transaction_no_node(struct sim_adapter *a, const struct sim_packet *p);
void transaction_fail(struct sim_adapter *a, bool own);
void transaction_expire(struct sim_adapter *a, uint64_t now);
unsigned int transaction_stores(const struct sim_adapter *a);
bool transaction_any(const struct sim_adapter *a);
uint64_t transaction_deadline(const struct sim_adapter *a);
void transaction_reset(struct sim_adapter *a);

/* own.c */
bool own_run(struct sim_adapter *a);

/* node.c */
struct node *node_get(struct sim_adapter *a, uint16_t node);
bool node_ready(struct node *p);
uint32_t node_floor(const struct node *p);
void node_restart(struct sim_adapter *a);
void node_free(struct sim_adapter *a);

/* responder.c, export.c */
bool responder_answer(struct sim_adapter *a, const struct sim_packet *p,
		      struct sim_packet *r);
bool export_find(struct sim_adapter *a, uint64_t address, uint32_t len,
		 uint16_t rights, uint64_t *bus);
void export_forget(struct sim_adapter *a);

/* ring.c */
void ring_set_base(struct sim_adapter *a, struct ring *r, uint32_t high);
bool ring_set_entries(struct sim_adapter *a, struct ring *r, uint32_t entries,
		      uint32_t min, uint32_t max);
void rx_begin(struct sim_adapter *a, uint32_t entries);
void rx_consume(struct sim_adapter *a, uint32_t head);
enum sci_pci_error rx_put(struct sim_adapter *a, const struct sim_packet *p);
void rx_return(struct sim_adapter *a, const struct sim_packet *p);

/* command.c */
void command_start(struct sim_adapter *a, uint32_t kind);
void command_end(struct sim_adapter *a, enum sci_pci_error error,
		 uint32_t result);
void mailbox_send(struct sim_adapter *a, uint32_t node);
uint32_t mailbox_free(const struct sim_adapter *a);

/* dma.c */
void dma_begin(struct sim_adapter *a, uint32_t entries);
void dma_doorbell(struct sim_adapter *a, uint32_t tail);
void dma_abort(struct sim_adapter *a);
bool dma_run(struct sim_adapter *a);
void dma_end(struct sim_adapter *a, const struct transaction *t,
	     enum sci_pci_error error, const struct sim_packet *response);

/* status.c */
void status_error(struct sim_adapter *a, enum sci_pci_error code,
		  uint16_t node, uint64_t address);
void status_stop(struct sim_adapter *a, bool *stopped);
void status_set_base(struct sim_adapter *a, uint32_t high);
uint32_t status_done(const struct sim_adapter *a);
uint32_t status_barrier(struct sim_adapter *a);
void status_settle(struct sim_adapter *a);

/* interrupt.c */
void interrupt_raise(struct sim_adapter *a, uint32_t bits);
void interrupt_clear(struct sim_adapter *a, uint32_t bits);
void interrupt_mask(struct sim_adapter *a, uint32_t mask);
void interrupt_settle(struct sim_adapter *a);

/* Read a register that other nodes may read. Return false for any other register. */
bool csr_public(const struct sim_adapter *a, uint32_t offset, uint32_t *value);

#endif
