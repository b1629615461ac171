/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Copyright (C) 2026 The libsci authors */
/*
 * DOC: a provider for libfabric
 *
 * libsci-fi.so implements FI_EP_RDM endpoints on the endpoints of <sci/msg.h>. libfabric finds this
 * library by FI_PROVIDER_PATH. The provider translates calls of libfabric to calls of the message
 * layer.
 *
 * fabric, domain	containers of the other objects
 * av			numbers for addresses (struct sci_addr)
 * ep			a struct sci_ep, and its peers by number
 * cq, cntr		completions. Reading makes progress on the bound endpoints,
 *		and now and then on all endpoints of the domain
 * op			an operation whose completion will be reported
 * ask, serve		one-sided transfers and atomics, see onesided.h
 *
 * Locks are taken in this order: the lock of a list of endpoints (cq, cntr, domain) or
 * av->changes; an endpoint's lock; the lock of the message layer's endpoint, in which a handler
 * runs; the lock of a domain's regions; the lock of a queue or an av. Under FI_THREAD_DOMAIN there are no locks. Progress runs with the endpoint's lock
 * held, so that fi_cancel() never sees a request whose completion has been taken.
 */
#ifndef LIBSCI_OFI_H
#define LIBSCI_OFI_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <rdma/fabric.h>
#include <rdma/fi_atomic.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_eq.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>
#include <rdma/fi_tagged.h>
#include <rdma/providers/fi_prov.h>

#include <sci/msg.h>

#include "libsci/base/compiler.h"
#include "libsci/base/hash.h"

#define SFI_NAME	"sci"
#define SFI_VERSION	FI_VERSION(0, 1)
#define SFI_API		FI_VERSION(1, 17)

#ifndef FI_PROV_SPECIFIC		/* libfabric 2 */
#define FI_PROV_SPECIFIC	(1u << 31)
#endif

/* FI_MR_BASIC and FI_MR_SCALABLE: libfabric 2 warns about the use of these names. */
#define SFI_MR_BASIC	1
#define SFI_MR_SCALABLE	2

/* A struct sci_addr, in host byte order. */
#define SFI_ADDR_FORMAT	(FI_PROV_SPECIFIC | 0x536349u)
#define SFI_PROTOCOL	(FI_PROV_SPECIFIC | 0x536349u)

/* Contexts of tagged messages. */
#define SFI_TAGGED	0u		/* messages of the program */
/* contexts of one-sided calls: see onesided.h */
#define SFI_REPLY	2u
#define SFI_BYTES	3u

#define SFI_IOV_MAX	16u
#define SFI_RMA_IOV_MAX	4u
#define SFI_INJECT_MAX	4096u
#define SFI_ATOMIC_MAX	2048u		/* in bytes */
#define SFI_HELD_MAX	128u		/* held receives */
#define SFI_BATCH	16u		/* completions per call of sci_completions() */
/* Reads of a queue or a counter between two rounds of progress on all endpoints of the domain. */
#define SFI_OTHERS	16u
/* Limit for outstanding one-sided calls: the memory for their replies is limited. */
#define SFI_ASKING_MAX	512u

#define SFI_MESSAGES	(FI_MSG | FI_TAGGED)
#define SFI_ONE_SIDED	(FI_RMA | FI_ATOMIC)
#define SFI_ASKS	(FI_READ | FI_WRITE)
#define SFI_SERVES	(FI_REMOTE_READ | FI_REMOTE_WRITE)
#define SFI_TX_CAPS	(SFI_MESSAGES | SFI_ONE_SIDED | FI_SEND | SFI_ASKS)
#define SFI_RX_CAPS	(SFI_MESSAGES | SFI_ONE_SIDED | FI_RECV | SFI_SERVES | \
			 FI_DIRECTED_RECV | FI_SOURCE | FI_MULTI_RECV | \
			 FI_RMA_EVENT)
#define SFI_CAPS	(SFI_TX_CAPS | SFI_RX_CAPS | FI_LOCAL_COMM | \
			 FI_REMOTE_COMM)
#define SFI_TX_FLAGS	(FI_COMPLETION | FI_INJECT | FI_INJECT_COMPLETE | \
			 FI_TRANSMIT_COMPLETE | FI_DELIVERY_COMPLETE | \
			 FI_MATCH_COMPLETE | FI_REMOTE_CQ_DATA | FI_MORE)
#define SFI_RX_FLAGS	(FI_COMPLETION | FI_MULTI_RECV | FI_MORE | FI_CLAIM | \
			 FI_PEEK | FI_DISCARD)

/* ---- locks; FI_THREAD_DOMAIN has none ---- */

struct sfi_lock {
	pthread_mutex_t mutex;
	bool used;
};

static inline void sfi_lock_init(struct sfi_lock *l, bool used)
{
	pthread_mutex_init(&l->mutex, NULL);
	l->used = used;
}

static inline void sfi_lock_fini(struct sfi_lock *l)
{
	pthread_mutex_destroy(&l->mutex);
}

static inline void sfi_lock(struct sfi_lock *l)
{
	if (l->used)
		pthread_mutex_lock(&l->mutex);
}

static inline void sfi_unlock(struct sfi_lock *l)
{
	if (l->used)
		pthread_mutex_unlock(&l->mutex);
}

static inline bool sfi_trylock(struct sfi_lock *l)
{
	return !l->used || !pthread_mutex_trylock(&l->mutex);
}

/* ---- objects ---- */


struct sfi_ep;

/* The list of endpoints of a queue, a counter or a domain. */
struct sfi_eps {
	struct sfi_lock lock;
	struct sfi_ep **ep;
	size_t n;
	unsigned int rounds;		/* rounds of progress */
};

/*
 * A wait object: an epoll descriptor for all endpoints of the domain, with an eventfd that reports
 * completions from the progress of other threads.
 */
struct sfi_wait {
	enum fi_wait_obj obj;
	int epoll;
	int signal;
	_Atomic bool armed;		/* the next completion raises the signal */
	_Atomic bool pending;		/* the signal is raised */
	pthread_mutex_t lock;
	unsigned int sleepers;		/* threads from sfi_wait_arm() to their wake-up */
	struct sfi_wait *next;		/* next in domain->waits */
};

/* FI_PROGRESS_AUTO: see auto.c. */
struct sfi_auto {
	bool runs;
	pid_t pid;			/* the process that started the thread */
	pthread_t thread;
	struct sfi_wait wait;
	_Atomic uint64_t calls;		/* calls of the program that make progress */
	_Atomic bool asleep, stop;
};

struct sfi_fabric {
	struct fid_fabric fid;
	_Atomic unsigned int users;
};

struct sfi_domain {
	struct fid_domain fid;
	struct sfi_fabric *fabric;
	_Atomic unsigned int users;
	bool shared;			/* several threads use the domain */
	bool own_keys;			/* FI_MR_PROV_KEY */
	bool by_address;		/* FI_MR_VIRT_ADDR */
	struct sfi_lock exports;	/* protects the following members; taken first */
	uint64_t next_key;
	struct sfi_ep *exporter;	/* exports regions; or NULL */
	struct sfi_lock lock;		/* protects the following members, and atomics */
	struct hash regions;		/* by key */
	struct sfi_eps eps;		/* all enabled endpoints */
	struct sfi_wait *waits;		/* protected by eps.lock */
	struct sfi_auto automatic;
};

struct sfi_av {
	struct fid_av fid;
	struct sfi_domain *domain;
	_Atomic unsigned int users;
	struct sfi_lock changes;	/* protects @eps and changes of numbers */
	struct sfi_ep *eps;		/* linked by next_of_av */
	struct sfi_lock lock;		/* protects the following members */
	struct sfi_av_entry **entries;	/* by number; NULL: free */
	size_t n, room;
	size_t lowest;			/* all lower numbers are in use */
	struct hash by_addr;		/* entries by address */
};

struct sfi_entry {
	struct fi_cq_tagged_entry e;
	fi_addr_t src;
};

struct sfi_error {
	struct sfi_error *next;
	struct fi_cq_err_entry e;
};

struct sfi_cq {
	struct fid_cq fid;
	struct sfi_domain *domain;
	_Atomic unsigned int users;
	enum fi_cq_format format;
	struct sfi_eps eps;
	struct sfi_wait wait;
	struct sfi_lock lock;		/* protects the following members */
	struct sfi_entry *ring;
	size_t room;			/* a power of two */
	size_t head, tail;		/* grow without bound */
	struct sfi_error *errors, **errors_end;
	bool overrun;			/* a completion was lost: there was no memory */
	bool straight;			/* progress may write to @reader */
	struct {
		struct fi_cq_tagged_entry *to;
		size_t n, room;		/* entries: written, and in the buffer */
	} reader;
	_Atomic bool signalled;
};

struct sfi_cntr {
	struct fid_cntr fid;
	struct sfi_domain *domain;
	_Atomic unsigned int users;
	struct sfi_eps eps;
	struct sfi_wait wait;
	_Atomic uint64_t value, errors;
	_Atomic unsigned int changes;	/* of @value and @errors */
	_Atomic unsigned int seen;	/* @changes at the last fi_cntr_read() or fi_cntr_readerr() */
};

/* ---- operations ---- */

struct sfi_op {
	struct sfi_op *next, **prev;	/* posted receives; or the free list */
	struct sfi_ep *ep;
	struct sfi_cq *cq;		/* for errors, and for completions unless @silent */
	struct sfi_cntr *cntr;
	struct sci_req *req;
	void *context;
	void *buf;
	uint64_t flags;			/* flags of the completion */
	bool silent;			/* report only an error */
	/* function to call at the end of the operation; NULL: report a completion */
	void (*done)(struct sfi_op *op, const struct sci_status *st);
	unsigned int parts;		/* one-sided: messages outstanding */
	int error;
	bool many;			/* FI_MULTI_RECV */
	size_t room;			/* size of the buffer */
};

/**
 * struct sfi_send - the arguments of all send calls
 * @flags: flags of libfabric
 */
struct sfi_send {
	const struct iovec *iov;
	size_t n;
	fi_addr_t dest;
	uint64_t tag;
	uint64_t data;
	uint64_t flags;
	void *context;
	bool tagged;
};

struct sfi_recv {
	const struct iovec *iov;
	size_t n;
	fi_addr_t src;
	uint64_t tag;
	uint64_t ignore;
	uint64_t flags;
	void *context;
	bool tagged;
};

/* Held receives in the order in which they match messages: see held.h. */
struct sfi_held {
	unsigned int first, end;	/* positions, mod SFI_HELD_MAX; both 0 if empty */
	struct sci_peer *peer;		/* source; NULL: any */
	bool tagged;
	struct sci_try_recv t[SFI_HELD_MAX];
	uint64_t flags[SFI_HELD_MAX];
	void *context[SFI_HELD_MAX];
};

struct sfi_side {
	struct sfi_cq *cq;
	struct sfi_cntr *cntr;
	uint64_t op_flags;
	bool selective;			/* FI_SELECTIVE_COMPLETION */
};

struct sfi_ep {
	struct fid_ep fid;
	struct sfi_domain *domain;
	struct sfi_av *av;
	struct sci_ep *ep;
	struct sfi_side tx, rx;
	/* counters of one-sided transfers */
	struct sfi_cntr *writes, *reads, *remote_writes, *remote_reads;
	uint64_t caps;
	unsigned int traits;		/* enum sci_traits */
	bool enabled;
	bool directed;			/* FI_DIRECTED_RECV */
	bool has_waiter;		/* a thread may sleep for completions or messages */
	int patience;			/* time limit for connecting, in ms */
	size_t min_multi_recv;
	struct sfi_lock lock;		/* protects the following members */
	struct sci_peer **peers;	/* by number in @av */
	size_t n_peers;
	struct sfi_op *free;
	unsigned int ops;		/* operations outstanding */
	struct sfi_op *receives;
	struct sfi_op_slab *slabs;
	uint64_t next_id;		/* id of the next one-sided request */
	unsigned int asking;		/* outstanding one-sided requests */
	bool starting;			/* members of @serving wait for sfi_serve_transfers() */
	bool refuses;			/* refuses the requests of peers */
	unsigned int rounds;		/* rounds of progress */
	unsigned int empty_polls;	/* latest rounds without a message for a held receive */
	unsigned int polls;		/* polls for held receives since the last message */
	bool late;			/* the last message took at least LATE polls */
	struct sfi_serving *serving;
	struct sfi_ep *next_of_av;
	struct sfi_held held;
};

/* provider.c */
int sfi_getinfo(uint32_t version, const char *node, const char *service,
		uint64_t flags, const struct fi_info *hints,
		struct fi_info **info);
int sfi_address(const char *node, const char *service, struct sci_addr *addr);
extern struct fi_provider sfi_provider;

/* domain.c */
int sfi_fabric_open(struct fi_fabric_attr *attr, struct fid_fabric **fabric,
		    void *context);
int sfi_domain_open(struct fid_fabric *fabric, struct fi_info *info,
		    struct fid_domain **domain, void *context);

/* av.c */
int sfi_av_open(struct fid_domain *domain, struct fi_av_attr *attr,
		struct fid_av **av, void *context);
int sfi_av_address(struct sfi_av *av, fi_addr_t n, struct sci_addr *addr);
fi_addr_t sfi_av_number(struct sfi_av *av, const struct sci_addr *addr);
void sfi_av_attach(struct sfi_av *av, struct sfi_ep *ep);
void sfi_av_detach(struct sfi_av *av, struct sfi_ep *ep);

/* wait.c */
int sfi_wait_init(struct sfi_wait *w, enum fi_wait_obj obj);
void sfi_wait_fini(struct sfi_wait *w);
int sfi_wait_open(struct sfi_wait *w, enum fi_wait_obj obj, struct sfi_domain *d);
void sfi_wait_close(struct sfi_wait *w, struct sfi_domain *d);
int sfi_wait_fd(struct sfi_wait *w, void *arg);
void sfi_wait_signal(struct sfi_wait *w);
void sfi_wait_wake(struct sfi_wait *w);
void sfi_wait_clear(struct sfi_wait *w);
int sfi_wait_arm(struct sfi_wait *w, struct sfi_domain *d);
void sfi_wait_disarm(struct sfi_wait *w);
int sfi_wait_sleep(struct sfi_wait *w, int timeout);
int sfi_wait_poll(struct sfi_wait *w, int timeout);
bool sfi_cq_ready(struct sfi_cq *cq);
int sfi_trywait(struct fid_fabric *fabric, struct fid **fids, int n);
void sfi_eps_init(struct sfi_eps *e, bool shared);
void sfi_eps_fini(struct sfi_eps *e);
int sfi_eps_add(struct sfi_eps *e, const struct sfi_wait *w, struct sfi_ep *ep);
void sfi_eps_remove(struct sfi_eps *e, struct sfi_ep *ep);
void sfi_eps_progress(struct sfi_eps *e, struct sfi_domain *d);
int sfi_domain_join(struct sfi_ep *ep);
void sfi_domain_leave(struct sfi_ep *ep);
void sfi_domain_progress(struct sfi_domain *d);
uint64_t sfi_now_ms(void);

/* cq.c */
int sfi_cq_open(struct fid_domain *domain, struct fi_cq_attr *attr,
		struct fid_cq **cq, void *context);
void sfi_cq_push(struct sfi_cq *cq, const struct fi_cq_tagged_entry *e,
		 fi_addr_t src);
void sfi_cq_queue(struct sfi_cq *cq, struct sfi_ep *ep, uint64_t flags,
		  void *context, void *buf, const struct sci_status *st);
void sfi_cq_fail(struct sfi_cq *cq, const struct fi_cq_err_entry *e);

static inline void sfi_entry_fill(struct fi_cq_tagged_entry *e, uint64_t flags,
				  void *context, void *buf,
				  const struct sci_status *st)
{
	if (st->flags & SCI_STATUS_IMM)
		flags |= FI_REMOTE_CQ_DATA;
	*e = (struct fi_cq_tagged_entry){
		.op_context = context, .flags = flags, .len = st->len,
		.buf = buf, .data = st->imm, .tag = st->tag,
	};
}

/*
 * Report a completion of @ep. If fi_cq_read() has passed its buffer in @cq->reader, write to that
 * buffer, unless earlier completions are queued. A copy from the queue to the buffer would wait
 * until the stores to the queue's entry have reached the cache.
 */
static inline void sfi_cq_tell(struct sfi_cq *cq, struct sfi_ep *ep,
			       uint64_t flags, void *context, void *buf,
			       const struct sci_status *st)
{
	if (cq->reader.n != cq->reader.room && cq->head == cq->tail)
		sfi_entry_fill(&cq->reader.to[cq->reader.n++], flags, context,
			       buf, st);
	else
		sfi_cq_queue(cq, ep, flags, context, buf, st);
}

/* auto.c */
int sfi_auto_start(struct sfi_domain *d);
void sfi_auto_stop(struct sfi_domain *d);
void sfi_auto_called(struct sfi_auto *a);

/* cntr.c */
int sfi_cntr_open(struct fid_domain *domain, struct fi_cntr_attr *attr,
		  struct fid_cntr **cntr, void *context);

/* mr.c */
extern struct fi_ops_mr sfi_mr_ops;

/* poll.c */
int sfi_poll_open(struct fid_domain *domain, struct fi_poll_attr *attr,
		  struct fid_poll **set);

/* eq.c */
int sfi_eq_open(struct fid_fabric *fabric, struct fi_eq_attr *attr,
		struct fid_eq **eq, void *context);

/* ep.c */
int sfi_ep_open(struct fid_domain *domain, struct fi_info *info,
		struct fid_ep **ep, void *context);
int sfi_ep_peer(struct sfi_ep *ep, fi_addr_t n, struct sci_peer **peer);
void sfi_ep_forget(struct sfi_ep *ep, fi_addr_t n, fi_addr_t heir);
void sfi_ep_forget_strangers(struct sfi_ep *ep);
fi_addr_t sfi_ep_source(struct sfi_ep *ep, struct sci_peer *peer);

/* Return the peer of number @n: an inline sfi_ep_peer() for a peer that is open already. */
static inline int sfi_ep_known(struct sfi_ep *ep, fi_addr_t n,
			       struct sci_peer **peer)
{
	if (n >= ep->n_peers || !ep->peers[n])
		return sfi_ep_peer(ep, n, peer);
	*peer = ep->peers[n];
	return 0;
}

/* op.c */
struct sfi_op *sfi_op_new(struct sfi_ep *ep);
void sfi_op_free(struct sfi_op *op);
void sfi_ops_fini(struct sfi_ep *ep);
void sfi_op_pending(struct sfi_op *op);
void sfi_op_describe(struct sfi_op *op, const struct sfi_side *s, uint64_t what,
		     uint64_t flags, void *context);
int sfi_op_not_begun(struct sfi_op *op, int error);
void sfi_op_failed(struct sfi_op *op, const struct sci_status *st);
void sfi_op_told(struct sfi_op *op, const struct sci_status *st, uint64_t more);
void sfi_cntr_count(struct sfi_cntr *c, int error);
/* Report that a value of the counter has changed. */
void sfi_cntr_change(struct sfi_cntr *c);

/*
 * Report the success of an operation without a struct sfi_op. The arguments are those of
 * sfi_op_describe().
 */
static inline void sfi_tell(struct sfi_ep *ep, const struct sfi_side *s,
			    uint64_t what, uint64_t flags, void *context,
			    void *buf, const struct sci_status *st)
{
	if (s->cntr)
		sfi_cntr_count(s->cntr, 0);
	if (s->cq && (!s->selective || flags & FI_COMPLETION))
		sfi_cq_tell(s->cq, ep, what, context, buf, st);
}

void sfi_ep_progress(struct sfi_ep *ep);
void sfi_ep_at_once(struct sfi_ep *ep);
ssize_t sfi_cancel(fid_t fid, void *context);

/* send.c */
bool sfi_is_peers(int error);
ssize_t sfi_send(struct sfi_ep *ep, const struct sfi_send *s);
ssize_t sfi_inject(struct sfi_ep *ep, fi_addr_t dest, bool tagged, uint64_t tag,
		   const uint64_t *imm, const void *buf, size_t len);

/* receive.c */
ssize_t sfi_recv(struct sfi_ep *ep, const struct sfi_recv *r);
ssize_t sfi_look(struct sfi_ep *ep, const struct sfi_recv *r);
void sfi_held_post(struct sfi_ep *ep);
bool sfi_held_cancel(struct sfi_ep *ep, const void *context);

/* msg.c, tagged.c */
extern struct fi_ops_msg sfi_msg_ops;
extern struct fi_ops_tagged sfi_tagged_ops;

/* rma.c, atomic_calls.c */
extern struct fi_ops_rma sfi_rma_ops;
extern struct fi_ops_atomic sfi_atomic_ops;

/* none.c: functions that this provider does not support */
int sfi_no_bind(struct fid *fid, struct fid *bfid, uint64_t flags);
int sfi_no_control(struct fid *fid, int command, void *arg);
int sfi_no_ops_open(struct fid *fid, const char *name, uint64_t flags,
		    void **ops, void *context);
int sfi_no_setname(fid_t fid, void *addr, size_t len);
int sfi_no_getpeer(struct fid_ep *ep, void *addr, size_t *len);
int sfi_no_connect(struct fid_ep *ep, const void *addr, const void *param,
		   size_t len);
int sfi_no_listen(struct fid_pep *pep);
int sfi_no_accept(struct fid_ep *ep, const void *param, size_t len);
int sfi_no_reject(struct fid_pep *pep, fid_t handle, const void *param,
		  size_t len);
int sfi_no_shutdown(struct fid_ep *ep, uint64_t flags);
int sfi_no_join(struct fid_ep *ep, const void *addr, uint64_t flags,
		struct fid_mc **mc, void *context);
int sfi_no_tx_ctx(struct fid_ep *sep, int index, struct fi_tx_attr *attr,
		  struct fid_ep **tx, void *context);
int sfi_no_rx_ctx(struct fid_ep *sep, int index, struct fi_rx_attr *attr,
		  struct fid_ep **rx, void *context);

#endif
