/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Copyright (C) 2026 The libsci authors */
/*
 * DOC: the shm fabric
 *
 * Nodes are processes of one host.  A virtual cluster is a name; a node is a
 * number in it. Memory is memfds, interrupts are messages, and every name is a listening Unix
 * socket (SOCK_SEQPACKET) in the abstract namespace:
 *
 *	sci.CLUSTER.n.NODE.UNIQUE	a process of the node (SOCK_DGRAM)
 *	sci.CLUSTER.s.NODE.ID		a segment
 *	sci.CLUSTER.i.NODE.NUMBER	an interrupt
 *	sci.CLUSTER.d.NODE.NUMBER	a data interrupt
 *	sci.CLUSTER.g.ID		members of a broadcast group, for new members
 *	sci.CLUSTER.b.ID		its exported members, for importers
 *
 * The kernel keeps names unique and removes them with their owner.
 * With SCI_RUNDIR names are files in that directory instead, for containers
 * that share the directory.  CLUSTER is default-UID if the environment names none.
 *
 * A segment for one importer (SCI_LSEG_ONCE) gives up its name and the descriptor of its memory
 * when the importer connects: the maps and the connection are all that it still needs. The
 * importer may ring the segment's bell through the connection. Two processes that import such
 * segments of each other can share one connection, see pair.c.
 *
 * Connecting is one message each way; the answer carries the descriptor. Both sides first check
 * the other process's user, see shm_access() and shm_trusts(). The connection stays open: its
 * end without SHM_BYE means that the peer has died.
 *
 * Several owners of one name (a broadcast group, a shared interrupt) hold the same listening
 * socket, which they send to each other. The name exists as long as any of its owners.
 *
 * Threads: one service thread per process accepts connections and reads from peers. The lock of
 * struct sci_service covers all objects of a fabric.
 */
#ifndef LIBSCI_SHM_H
#define LIBSCI_SHM_H

#include <pthread.h>
#include <stdatomic.h>
#include <sys/types.h>

#include "libsci/fabric/core/common.h"
#include "libsci/fabric/core/fabric.h"
#include "libsci/base/hash.h"
#include "libsci/base/host.h"
#include "libsci/base/list.h"
#include "libsci/fabric/core/service.h"

#define SHM_NAME_MAX		100	/* fits sun_path with its leading 0 */
#define SHM_CLUSTER_MAX		32
#define SHM_MAX_FDS		2	/* descriptors in one message */
#define SHM_REJOINS		8	/* attempts in a row to find another owner */
#define SHM_DATA_QUEUE_BYTES	(16u << 20)	/* limit of a data interrupt */
#define SHM_DATA_QUEUE_MSGS	65536u

enum shm_kind {
	SHM_NODE	= 'n',
	SHM_SEGMENT	= 's',
	SHM_INTR	= 'i',
	SHM_DATA_INTR	= 'd',
	SHM_GROUP	= 'g',
	SHM_GROUP_OPEN	= 'b',
};

enum shm_type {
	SHM_CONNECT = 1,	/* importer: connect to a segment or interrupt */
	SHM_ATTACH,		/* process of the same node: attach to the segment */
	SHM_JOIN,		/* process: become another owner of the name */
	SHM_QUERY,		/* process: describe the segment */
	SHM_REPLY,		/* owner: status, and descriptors */
	SHM_NOTIFY,		/* owner: asks the importer to disconnect */
	SHM_CUT,		/* owner: has disconnected the importer */
	SHM_BYE,		/* both: the connection ends in good order */
	SHM_DATA,		/* payload of a data interrupt follows */
	SHM_TRIGGER,		/* importer: triggers a plain interrupt */
	SHM_PAIR,		/* owner: its import's connection may serve both imports */
	SHM_MERGE,		/* importer: the other connection replaces this one */
};

#define SHM_MAGIC	0x53434933u	/* "SCI3": also the protocol's version */

/* A message between two processes of the fabric. */
struct shm_msg {
	uint32_t magic;
	uint16_t type;			/* enum shm_type */
	uint16_t flags;			/* SHM_F_* */
	int32_t status;			/* REPLY: 0 or -errno */
	uint32_t node;			/* the sender's node */
	uint64_t size;			/* bytes of the segment */
	uint32_t importers;
	uint32_t mode;
};

_Static_assert(sizeof(struct shm_msg) == 32, "on the wire");

enum {
	SHM_F_READONLY	= 1 << 0,	/* the descriptor allows reads only */
	SHM_F_HUGE	= 1 << 1,	/* huge pages */
	SHM_F_EXPORTED	= 1 << 2,
	SHM_F_BROADCAST	= 1 << 3,
	SHM_F_SHARED	= 1 << 4,	/* the number may have several owners */
	SHM_F_RINGS	= 1 << 5,	/* triggers are messages */
};

struct shm;

/* The simulated cache of a segment in this process, with SCI_SHM_CHECK (check.c). */
struct shm_copy {
	struct shm *shm;
	char *cache;			/* the memory of maps */
	char *clean;			/* @cache when it was last equal to @memory */
	char *memory;			/* the memory that all processes share */
	size_t length;
	bool imported;			/* @memory becomes private after a SHM_CUT */
	unsigned int users;		/* segments, imports and maps */
};

struct shm_range;
struct shm_line;

struct shm_check {
	pthread_mutex_t lock;
	struct shm_range *ranges;	/* maps, by address */
	size_t n_ranges, max_ranges;
	struct shm_line *lines;		/* write-backs that no fence has ended yet */
	size_t n_lines, max_lines;
};

/* A call to a peer in progress. Another thread may cancel it. */
struct shm_pending {
	struct list link;
	const void *owner;
	uint64_t deadline;		/* UINT64_MAX: none */
	int sock;			/* -1: not yet */
	_Atomic bool cancelled;
};

struct shm {
	struct sci_fabric base;
	struct sci_service svc;
	char cluster[SHM_CLUSTER_MAX + 1];
	unsigned int node;
	unsigned int last_node;		/* highest id of the cluster */
	unsigned int mode;
	size_t huge;			/* bytes of a huge page; 0: none */
	bool wake_barrier;		/* the process may call membarrier(2) */
	struct shm_check check;
	int rundir;			/* -1: abstract names */
	bool told_of_stranger;		/* see shm_name_taken() */
	int presence;
	char presence_name[SHM_NAME_MAX];
	struct sci_link_status link;
	int readyfd;			/* always readable: ends an epoll_wait */
	int sparefd;			/* closed to refuse a peer if no fd is free */
	struct list lsegs;
	struct list rsegs;
	struct list calls;		/* list of struct shm_pending */
	bool no_calls;			/* all calls fail from now on */
	struct hash maps;
	uint32_t next_intno;
	uint32_t auto_asked;		/* first id of the last search */
	uint32_t auto_next;		/* the id after the last search */
};

struct shm_conn;

/* A name that other processes connect to. */
struct shm_port {
	struct shm *shm;
	char name[SHM_NAME_MAX];
	int fd;				/* -1: none */
	bool shared;			/* the name may have several owners */
	struct list conns;
	unsigned int importers;
	/* answers a peer's first message; a return of false frees conn */
	bool (*hello)(struct shm_port *port, struct shm_conn *conn,
		      const struct shm_msg *msg);
	/* handles later messages; NULL: the peer sends only BYE */
	void (*input)(struct shm_port *port, struct shm_conn *conn);
	/* handles the end of an importer */
	void (*gone)(struct shm_port *port, struct shm_conn *conn,
		     bool orderly);
};

enum shm_role { SHM_NEW, SHM_IMPORTER, SHM_ATTACHED };

/* The owner's end of a connection. */
struct shm_conn {
	struct list link;
	struct shm_port *port;
	int fd;				/* -1: merged, see pair.c */
	enum shm_role role;
	struct sci_lintr *bell;		/* the importer's messages trigger it */
	struct sci_lseg *rings;		/* the segment with that bell, if @bell belongs to one */
	struct sci_rseg *pair;		/* this process's import from the importer, or NULL */
	unsigned int node;
	pid_t pid;			/* process of the importer */
};

struct sci_lseg {
	struct list link;
	struct shm *shm;
	uint32_t id;
	unsigned int flags;		/* SCI_LSEG_* */
	uint64_t size;
	size_t length;			/* size in whole pages */
	size_t page;			/* bytes of a page */
	int memfd;			/* -1: EMPTY, no memory yet */
	void *base;			/* map of the whole segment, made on demand */
	struct shm_copy *copy;		/* made on demand; NULL: not checked */
	bool exported;
	bool shared;
	struct sci_lintr *bell;
	unsigned int adapter;
	void *registered;		/* the caller's pages, or NULL */
	unsigned long inode;		/* of @memfd, if pages are registered */
	unsigned long cover;		/* of the copy over the registered pages; 0: none */
	sci_event_fn event;
	void *owner;
	struct shm_port port;		/* the segment's own name */
	struct shm_port group;		/* broadcast: the group's name for members */
	struct shm_port group_open;	/* the group's name for importers, while exported */
	int attach_fd;			/* attached: connection to the creator */
};

struct sci_rseg {
	struct list link;
	struct shm *shm;
	unsigned int node;
	unsigned int adapter;
	uint32_t id;
	uint64_t size;
	size_t length;
	void *base;			/* map of the whole segment, source of other maps */
	struct shm_copy *copy;		/* NULL: not checked */
	bool readonly;
	size_t page;
	int memfd;			/* huge pages only; else -1 */
	dev_t dev;			/* of the memory */
	ino_t inode;			/* of the memory */
	int conn;			/* -1: disconnected, or merged */
	struct shm_conn *pair;		/* the exporter's connection to this process, or NULL */
	bool pair_stays;		/* the pair keeps this import's connection */
	bool pair_asked;		/* SHM_PAIR has arrived */
	bool pair_moved;		/* SHM_MERGE has been sent */
	bool merged;			/* the pair has one connection */
	pid_t pid;			/* process of the exporter; 0: unknown, or a group */
	unsigned int rejoining;		/* attempts to find another member */
	struct sci_rseg_status status;
	sci_event_fn event;
	void *owner;
};

/* shm.c */
static inline bool shm_is_node(unsigned int node)
{
	return node && node <= SCI_NODE_MAX && !(node % SCI_NODE_STEP);
}

bool shm_node_exists(struct shm *shm, unsigned int node);

/* name.c */
void shm_name(struct shm *shm, char *name, enum shm_kind kind,
	      unsigned int node, uint32_t id);
int shm_bind(struct shm *shm, const char *name, int type, int *fd);
void shm_name_taken(struct shm *shm, const char *name);
bool shm_name_settles(struct shm *shm, const char *name, uint64_t begin);
void shm_unbind(struct shm *shm, const char *name, bool shared, int *fd);
int shm_dial(struct shm *shm, const char *name, struct shm_pending *call);
int shm_dial_locked(struct shm *shm, const char *name, int *fd);
int shm_name_list(struct shm *shm, enum shm_kind kind,
		  int (*fn)(void *arg, const char *name), void *arg);

/* wire.c */
int shm_send(int sock, const struct shm_msg *msg, const int *fds, int n_fds);
int shm_recv(struct shm *shm, int sock, struct shm_msg *msg, int *fds,
	     int *n_fds);
int shm_call(struct shm *shm, const char *name, struct shm_msg *msg, int *fds,
	     int *n_fds, uint64_t deadline, const void *owner, int *sock);
void shm_cancel_connect(struct sci_fabric *f, const void *owner);
uint64_t shm_deadline(uint32_t timeout);
void shm_port_init(struct shm_port *port, struct shm *shm);
int shm_port_open(struct shm_port *port, const char *name);
int shm_port_serve(struct shm_port *port);
int shm_port_share(struct shm_port *port, const char *name,
		   const struct shm_msg *mine, struct shm_msg *theirs,
		   int *their_fd);
void shm_port_drain(struct shm_port *port, pid_t pid);
pid_t shm_peer(int sock);
void shm_port_close(struct shm_port *port);
void shm_conn_close(struct shm_conn *conn);
void shm_conn_gone(struct shm_conn *conn, bool orderly);
unsigned int shm_access(struct shm *shm, int sock);
bool shm_trusts(struct shm *shm, int sock);
bool shm_owner_admit(struct shm *shm, int sock);

/* memory.c */
int shm_memory_alloc(struct shm *shm, const char *name, uint64_t size,
		     size_t huge, int *memfd, size_t *length, size_t *page);
int shm_memory_check(int memfd, const struct shm_msg *msg, size_t *length,
		     size_t *page);
bool shm_can_map_copy(size_t page);
int shm_map_copy(void *base, uint64_t off, size_t len, unsigned int flags,
		 void **addr);
int shm_map_add(struct shm *shm, void *addr, size_t len, size_t page,
		struct sci_rseg *r);
void shm_map_revoke(struct shm *shm, struct sci_rseg *r);

/* segment.c, import.c, bell.c, interrupt.c, remote_interrupt.c: struct sci_fabric_ops */
int shm_lseg_create(struct sci_fabric *f, const struct sci_lseg_param *p,
		    struct sci_lseg **out);
int shm_lseg_attach(struct sci_fabric *f, const struct sci_lseg_param *p,
		    struct sci_lseg **out);
int shm_lseg_register(struct sci_lseg *s, void *addr, size_t len);
int shm_lseg_twin(struct sci_lseg *s, struct sci_lseg *of);
int shm_lseg_renew(struct sci_lseg *s, void *addr, size_t len);
int shm_lseg_share(struct sci_lseg *s);
int shm_lseg_export(struct sci_lseg *s, unsigned int adapter);
int shm_lseg_unexport(struct sci_lseg *s, enum sci_unexport how);
unsigned int shm_lseg_importers(struct sci_lseg *s);
void shm_lseg_destroy(struct sci_lseg *s);
uint32_t shm_lseg_id(struct sci_lseg *s);
uint64_t shm_lseg_size(struct sci_lseg *s);
int shm_lseg_map(struct sci_lseg *s, uint64_t off, size_t len,
		 unsigned int flags, void **addr);
void shm_lseg_fork(struct sci_lseg *s);
int shm_lseg_base(struct sci_lseg *s);
void shm_lseg_rang(struct shm_conn *conn);

int shm_rseg_connect(struct sci_fabric *f, const struct sci_rseg_param *p,
		     struct sci_rseg **out);
void shm_rseg_disconnect(struct sci_rseg *r);
uint64_t shm_rseg_size(struct sci_rseg *r);
bool shm_rseg_readonly(struct sci_rseg *r);
struct sci_rseg_status *shm_rseg_status(struct sci_rseg *r);
int shm_rseg_map(struct sci_rseg *r, uint64_t off, size_t len,
		 unsigned int flags, void **addr);
int shm_rseg_ring(struct sci_rseg *r);
void shm_rseg_input(void *obj);
bool shm_rseg_read(struct sci_rseg *r);
void shm_rseg_hang_up(struct sci_rseg *r);
void shm_rseg_ended(struct sci_rseg *r, enum sci_event_type type);
bool shm_rseg_owner_message(struct sci_rseg *r, enum shm_type type);
void shm_unmap(struct sci_fabric *f, void *addr, size_t len);
void shm_rseg_link_event(struct sci_rseg *r, bool down);
int shm_dma_copy(struct sci_lseg *s, struct sci_rseg *r,
		 const struct sci_dma_piece *piece, bool pull);
void shm_store_barrier(struct sci_fabric *f, struct sci_rseg *r);

int shm_bell_listen(struct sci_lintr *i, struct shm_conn *conn);
void shm_bell_leave(struct shm_conn *conn);
int shm_bell_add(struct sci_lintr *i, int fd);
void shm_bell_remove(struct sci_lintr *i, int fd);
void shm_bell_keep(struct shm_conn *conn);
void shm_bell_drain(struct shm_conn *conn);
int shm_trigger_send(struct shm *shm, int sock);
int shm_lintr_create(struct sci_fabric *f, struct sci_lintr_param *p,
		     struct sci_lintr **out);
int shm_lintr_wait(struct sci_lintr *i, void *data, size_t *len,
		   uint32_t timeout);
int shm_lintr_fd(struct sci_lintr *i);
void shm_lintr_cancel(struct sci_lintr *i);
void shm_lintr_destroy(struct sci_lintr *i);
int shm_rintr_connect(struct sci_fabric *f, const struct sci_rintr_param *p,
		      struct sci_rintr **out);
int shm_rintr_trigger(struct sci_rintr *i, const void *data, size_t len);
void shm_rintr_disconnect(struct sci_rintr *i);

/* pair.c */
int shm_pair(struct sci_lseg *s, struct sci_rseg *r);
void shm_pair_asked(struct sci_rseg *r);
bool shm_pair_merged(struct shm_conn *conn);
bool shm_pair_done(struct sci_rseg *r);
void shm_pair_conn_end(struct shm_conn *conn, bool orderly);
void shm_pair_import_end(struct sci_rseg *r, bool orderly);

/* Return the socket of a connection, which may be that of the pair's import. */
static inline int shm_conn_sock(const struct shm_conn *conn)
{
	return conn->fd >= 0 || !conn->pair ? conn->fd : conn->pair->conn;
}

static inline int shm_rseg_sock(const struct sci_rseg *r)
{
	return r->pair && r->pair_moved ? r->pair->fd : r->conn;
}

/* check.c */
int shm_check_init(struct shm *shm);
void shm_check_fini(struct shm *shm);
int shm_copy_new(struct shm *shm, void *base, size_t length, bool imported,
		 struct shm_copy **out);
struct shm_copy *shm_copy_get(struct shm_copy *c);
int shm_copy_map(struct shm_copy *c, uint64_t off, size_t len, unsigned int flags,
		 void **addr);
int shm_copy_cover(struct shm_copy *c, void *addr, size_t len);
void shm_copy_unmap(struct shm *shm, const void *addr);
void shm_copy_put(struct shm_copy *c);

/* host.c */
int shm_peer_read(struct sci_rseg *r, void *dst, uint64_t src, size_t len);

int shm_node_list(struct sci_fabric *f,
		  int (*fn)(void *arg, const struct sci_node_info *n),
		  void *arg);
int shm_segment_list(struct sci_fabric *f,
		     int (*fn)(void *arg, const struct sci_segment_info *s),
		     void *arg);

#endif
