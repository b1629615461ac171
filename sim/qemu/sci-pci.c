// SPDX-License-Identifier: GPL-2.0-or-later
/* Copyright (C) 2026 The libsci authors */
/*
 * The PCI side of the device: registers, window, interrupts, DMA, time.
 *
 * Time is the host's (QEMU_CLOCK_REALTIME), not the guest's: a card has a crystal
 * and a power supply of its own. While the guest is paused the card continues to work: it
 * answers requests of its peers, which do not time out, and it receives answers to its requests.
 * If the clock stopped with the guest, the card would not repeat lost packets, and a
 * debugger's access to the window of a paused guest could wait for ever. After a stop of QEMU
 * itself (SIGSTOP) all timers are late: the card reads the packets that have arrived before it
 * runs any timer.
 */
#include "qemu/osdep.h"
#include "qapi/error.h"
#include "qapi/visitor.h"
#include "hw/core/cpu.h"
#include "hw/pci/msix.h"
#include "hw/pci/pci.h"
#include "hw/pci/pcie.h"
#include "hw/pci/pcie_aer.h"
#include "hw/qdev-properties.h"
#include "migration/blocker.h"
#include "qemu/bswap.h"
#include "qemu/error-report.h"
#include "qemu/module.h"

#include "sci-pci.h"

#define LINE		64u
#define PUMP_STEP	(100 * SCALE_MS)
/*
 * The longest time that an access to the window may stop the machine: timeouts of TIMEOUT_US and
 * RETRIES can last days. After this time the card disconnects the link.
 */
#define PUMP_LIMIT	(60 * (int64_t)NANOSECONDS_PER_SECOND)

DECLARE_INSTANCE_CHECKER(struct sci_card, SCI_CARD, TYPE_SCI_PCI)

static QTAILQ_HEAD(, sci_card) cards = QTAILQ_HEAD_INITIALIZER(cards);
static bool in_model;	/* a card of this process is inside its model */
static bool in_pump;

static uint64_t clock_now(void)
{
	return qemu_clock_get_ns(QEMU_CLOCK_REALTIME);
}

bool card_begin(struct sci_card *card)
{
	if (in_model || !card->adapter)
		return false;
	in_model = true;
	return true;
}

/*
 * Send the messages of the vectors that the model has raised. The guest chooses the addresses: a
 * message may even unplug the card.
 */
static void card_notify(struct sci_card *card)
{
	static const uint32_t causes[SCI_PCI_VECTORS] = {
		[SCI_PCI_VEC_RX] = SCI_PCI_INT_RX,
		[SCI_PCI_VEC_DMA] = SCI_PCI_INT_DMA,
		[SCI_PCI_VEC_ERROR] = SCI_PCI_INT_ERROR | SCI_PCI_INT_LINK,
		[SCI_PCI_VEC_COMMAND] = SCI_PCI_INT_COMMAND,
	};
	uint32_t raised = card->raised;
	unsigned int i;

	card->raised = 0;
	for (i = 0; i < SCI_PCI_VECTORS && card->adapter; i++)
		if (raised & causes[i])
			msix_notify(&card->pci, i);
}

void card_end(struct sci_card *card)
{
	uint64_t deadline;

	if (card->deadline_changed) {
		card->deadline_changed = false;
		deadline = sim_adapter_deadline(card->adapter);
		if (deadline > INT64_MAX)
			timer_del(card->timer);
		else
			timer_mod_ns(card->timer, deadline);
	}
	card_notify(card);	/* from here on, the card may have no model */
	in_model = false;
	link_tell(card);
}

/*
 * Begin a bus access. Refuse an access from inside a model, or while another access waits: it is
 * not from a CPU, but an interrupt message to which the guest has given the address of a card.
 */
static bool bus_begin(struct sci_card *card)
{
	return !in_pump && card_begin(card);
}

/* ---- operations that the model calls ---- */

static uint64_t host_now(void *ctx)
{
	return clock_now();
}

/* Restrict DMA to main memory: an access to a device might cause an access to this card. */
static const MemTxAttrs to_memory = { .memory = true };

static bool host_dma_read(void *ctx, uint64_t addr, void *buf, size_t len)
{
	struct sci_card *card = ctx;

	return pci_dma_rw(&card->pci, addr, buf, len, DMA_DIRECTION_TO_DEVICE,
			  to_memory) == MEMTX_OK;
}

static bool host_dma_write(void *ctx, uint64_t addr, const void *buf, size_t len)
{
	struct sci_card *card = ctx;

	return pci_dma_rw(&card->pci, addr, (void *)buf, len,
			  DMA_DIRECTION_FROM_DEVICE, to_memory) == MEMTX_OK;
}

static void intx_set(struct sci_card *card)
{
	pci_set_irq(&card->pci, card->pending && !msix_enabled(&card->pci));
}

static void host_interrupt(void *ctx, uint32_t pending, uint32_t raised)
{
	struct sci_card *card = ctx;

	card->pending = pending;
	if (msix_enabled(&card->pci))
		card->raised |= raised;
	else
		intx_set(card);
}

static void host_send(void *ctx, const struct sim_packet *p)
{
	link_send_packet(ctx, p);
}

static void host_connect(void *ctx, bool enable)
{
	link_enable(ctx, enable);
}

static void host_att_changed(void *ctx, uint32_t entry)
{
	window_att_changed(ctx, entry);
}

static void host_invalidate(void *ctx, uint16_t export_id)
{
	window_invalidate(ctx, export_id);
}

static void host_deadline(void *ctx)
{
	struct sci_card *card = ctx;

	card->deadline_changed = true;
}

#define HOST					\
	.now = host_now,			\
	.dma_read = host_dma_read,		\
	.dma_write = host_dma_write,		\
	.interrupt = host_interrupt,		\
	.send = host_send,			\
	.connect = host_connect,		\
	.deadline = host_deadline

static const struct sim_host host = { HOST };
static const struct sim_host host_direct = {
	HOST,
	.att_changed = host_att_changed,
	.invalidate = host_invalidate,
};

/*
 * Return the nanoseconds since the host's boot: an epoch that also rises with a restart of QEMU.
 * All nodes of a fabric run on one host, and this clock cannot be set back.
 */
static uint64_t epoch_make(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_BOOTTIME, &ts);
	return ts.tv_sec * NANOSECONDS_PER_SECOND + ts.tv_nsec;
}

/* ---- registers ---- */

static bool register_access_is_valid(hwaddr addr, unsigned int size)
{
	return size == 4 && !(addr & 3);
}

/*
 * Names of faults of the card, for tests of drivers. A fault lasts until the property
 * `fault` gets another value.
 */
static const char *const fault_names[FAULTS] = {
	[FAULT_NONE] = "none",
	[FAULT_BARRIER] = "barrier",
	[FAULT_COMMAND] = "command",
	[FAULT_DMA] = "dma",
	[FAULT_DMA_BUSY] = "dma-busy",
	[FAULT_ONES] = "ones",
	[FAULT_MAILBOX] = "mailbox",
};

/* Return the value that the CPU reads on a broken card in place of @value. */
static uint32_t fault_read(struct sci_card *card, hwaddr addr, uint32_t value)
{
	switch (card->fault) {
	case FAULT_BARRIER:
		/* return a ticket that DONE does not reach */
		return addr == SCI_PCI_USER_BARRIER ? value + (1u << 30) : value;
	case FAULT_COMMAND:
		return addr == SCI_PCI_CMD_STATUS ? SCI_PCI_CMD_BUSY : value;
	case FAULT_DMA_BUSY:
		return addr == SCI_PCI_DMA_HEAD ? ++card->fault_reads : value;
	case FAULT_MAILBOX:
		return addr == SCI_PCI_MBOX_FREE ? 0x7fffffff : value;
	case FAULT_ONES:
		return UINT32_MAX;
	default:
		return value;
	}
}

static bool fault_drops(struct sci_card *card, hwaddr addr)
{
	switch (card->fault) {
	case FAULT_DMA:
	case FAULT_DMA_BUSY:
		return addr == SCI_PCI_DMA_TAIL || addr == SCI_PCI_DMA_CONTROL;
	case FAULT_ONES:
		return true;
	default:
		return false;
	}
}

static uint64_t csr_read(void *opaque, hwaddr addr, unsigned int size)
{
	struct sci_card *card = opaque;
	uint32_t value;

	if (!register_access_is_valid(addr, size) || !bus_begin(card))
		return UINT64_MAX;
	if (card->config.direct &&
	    (addr == SCI_PCI_USER_BARRIER || addr == SCI_PCI_USER_CHECK))
		window_check(card);
	value = sim_csr_read(card->adapter, addr);
	card_end(card);
	return fault_read(card, addr, value);
}

static void csr_write(void *opaque, hwaddr addr, uint64_t value, unsigned int size)
{
	struct sci_card *card = opaque;

	if (!register_access_is_valid(addr, size) || fault_drops(card, addr) ||
	    !bus_begin(card))
		return;
	sim_csr_write(card->adapter, addr, value);
	if (card->config.direct)
		window_exports(card);
	card_end(card);
}

static uint64_t att_read(void *opaque, hwaddr addr, unsigned int size)
{
	struct sci_card *card = opaque;
	uint32_t value;

	if (!register_access_is_valid(addr, size) || !bus_begin(card))
		return UINT64_MAX;
	value = sim_att_read(card->adapter, addr);
	card_end(card);
	return value;
}

static void att_write(void *opaque, hwaddr addr, uint64_t value, unsigned int size)
{
	struct sci_card *card = opaque;

	if (!register_access_is_valid(addr, size) || !bus_begin(card))
		return;
	sim_att_write(card->adapter, addr, value);
	card_end(card);
}

/*
 * QEMU splits an access of 8 bytes into two, low half first. register_access_is_valid() checks
 * the size.
 */
#define REGISTERS						\
	.endianness = DEVICE_LITTLE_ENDIAN,			\
	.valid = { .min_access_size = 1, .max_access_size = 8,	\
		   .unaligned = true },				\
	.impl = { .min_access_size = 1, .max_access_size = 4,	\
		  .unaligned = true }

static const MemoryRegionOps csr_ops = {
	.read = csr_read,
	.write = csr_write,
	REGISTERS,
};

static const MemoryRegionOps att_ops = {
	.read = att_read,
	.write = att_write,
	REGISTERS,
};

/* ---- time ---- */

static void card_run_timer(struct sci_card *card)
{
	if (!card->adapter || sim_adapter_deadline(card->adapter) > clock_now() ||
	    !card_begin(card))
		return;
	sim_adapter_timer(card->adapter);
	card->deadline_changed = true;
	card_end(card);
}

static void card_timer(void *opaque)
{
	struct sci_card *card = opaque;

	link_receive(card);
	card_run_timer(card);
}

/* ---- the window: packets ---- */

/*
 * Wait for an event that may end a bus access, for PUMP_STEP at most, and run all cards of this
 * machine, because the access may need an answer of any card. Only bus accesses call this
 * function. The call is not recursive: DMA of a model reaches only main memory, and bus_begin()
 * refuses other accesses.
 */
static void cards_pump(void)
{
	static GArray *fds;
	uint64_t wake = clock_now() + PUMP_STEP;
	struct sci_card *c;
	unsigned int i = 0;

	if (!fds)
		fds = g_array_new(false, false, sizeof(GPollFD));
	g_array_set_size(fds, 0);
	QTAILQ_FOREACH(c, &cards, next) {
		GPollFD fd = {
			.fd = c->link.fd,	/* poll() ignores -1 */
			.events = G_IO_IN | (c->link.queued ? G_IO_OUT : 0),
		};

		g_array_append_val(fds, fd);
		wake = MIN(wake, sim_adapter_deadline(c->adapter));
	}
	qemu_poll_ns((GPollFD *)(void *)fds->data, fds->len,
		     MAX((int64_t)(wake - clock_now()), 0));
	QTAILQ_FOREACH(c, &cards, next) {
		short events = g_array_index(fds, GPollFD, i++).revents;

		if (events & G_IO_OUT)
			link_flush(c);
		if (events & ~G_IO_OUT)
			link_receive(c);
		card_run_timer(c);
	}
}

struct access {
	bool write;
	hwaddr offset;
	uint8_t *data;
	unsigned int len;
	unsigned int initiator;
};

static bool access_try(struct sci_card *card, const struct access *a)
{
	enum sim_bus bus;

	if (!card_begin(card))
		return true;
	if (a->write)
		bus = sim_window_write(card->adapter, a->initiator, a->offset,
				       a->data, a->len);
	else
		bus = sim_window_read(card->adapter, a->initiator, a->offset,
				      a->data, a->len);
	card_end(card);
	return bus == SIM_BUS_DONE;
}

static void window_access(struct sci_card *card, const struct access *a)
{
	uint64_t limit = clock_now() + PUMP_LIMIT;
	bool pulled = false;

	if (in_pump)
		return;
	in_pump = true;
	while (!access_try(card, a)) {
		if (clock_now() > limit) {
			if (pulled)
				break;
			warn_report("sci-pci: node %u: the window has not answered: unplugged",
				    card->config.node);
			link_drop(card);
			link_tell(card);
			pulled = true;
			limit = clock_now() + PUMP_STEP;
			continue;
		}
		cards_pump();
	}
	in_pump = false;
}

/* Split an access at the ends of lines. */
static void window_split(struct sci_card *card, struct access *a, unsigned int len)
{
	a->initiator = current_cpu ? current_cpu->cpu_index % SIM_INITIATORS : 0;
	while (len) {
		a->len = MIN(len, LINE - a->offset % LINE);
		window_access(card, a);
		a->offset += a->len;
		a->data += a->len;
		len -= a->len;
	}
}

static uint64_t window_read(void *opaque, hwaddr addr, unsigned int size)
{
	uint8_t data[8];
	struct access a = { .offset = addr, .data = data };

	memset(data, 0xff, sizeof(data));
	window_split(opaque, &a, size);
	return ldn_le_p(data, size);
}

static void window_write(void *opaque, hwaddr addr, uint64_t value,
			 unsigned int size)
{
	uint8_t data[8];
	struct access a = { .write = true, .offset = addr, .data = data };

	stn_le_p(data, size, value);
	window_split(opaque, &a, size);
}

static const MemoryRegionOps window_ops = {
	.read = window_read,
	.write = window_write,
	.endianness = DEVICE_LITTLE_ENDIAN,
	.valid = { .min_access_size = 1, .max_access_size = 8,
		   .unaligned = true },
	.impl = { .min_access_size = 1, .max_access_size = 8,
		  .unaligned = true },
};

/* ---- the device ---- */

static void sci_reset(DeviceState *dev)
{
	struct sci_card *card = SCI_CARD(dev);

	if (card->pci.exp.exp_cap)
		pcie_cap_deverr_reset(&card->pci);
	if (!card_begin(card))
		return;
	sim_adapter_reset(card->adapter, epoch_make());
	card->deadline_changed = true;
	if (card->config.direct)
		window_exports(card);
	card_end(card);
}

static void sci_config_write(PCIDevice *pci, uint32_t addr, uint32_t value, int len)
{
	struct sci_card *card = SCI_CARD(pci);

	pci_default_write_config(pci, addr, value, len);
	if (pci->exp.exp_cap) {
		pcie_cap_flr_write_config(pci, addr, value, len);
		pcie_aer_write_config(pci, addr, value, len);
	}
	/* MSI-X may have been switched on or off */
	intx_set(card);
}

static bool interrupts_init(struct sci_card *card, Error **errp)
{
	PCIDevice *pci = &card->pci;
	unsigned int i;

	pci_config_set_interrupt_pin(pci->config, 1);
	if (!card->msix)
		return true;
	if (msix_init_exclusive_bar(pci, SCI_PCI_VECTORS, SCI_PCI_BAR_MSIX, errp))
		return false;
	for (i = 0; i < SCI_PCI_VECTORS; i++)
		msix_vector_use(pci, i);
	return true;
}

static bool config_init(struct sci_card *card, Error **errp)
{
	const char *path = card->data_path ?: "packet";

	card->config.direct = !strcmp(path, "direct");
	if (!card->config.direct && strcmp(path, "packet")) {
		error_setg(errp, "sci-pci: data-path is packet or direct");
		return false;
	}
	if (!card->config.node || card->config.node % 4) {
		error_setg(errp, "sci-pci: node=N, a multiple of 4, 4 to 65532");
		return false;
	}
	return true;
}

static void sci_exit(PCIDevice *pci)
{
	struct sci_card *card = SCI_CARD(pci);

	link_exit(card);
	if (card->config.direct)
		window_exit(card);
	if (card->adapter) {
		QTAILQ_REMOVE(&cards, card, next);
		/* a CPU that waits for the lock may still access a register */
		sim_adapter_free(g_steal_pointer(&card->adapter));
	}
	timer_free(g_steal_pointer(&card->timer));
	if (msix_present(pci))
		msix_uninit_exclusive_bar(pci);
	if (pci->exp.aer_cap)
		pcie_aer_exit(pci);
	if (pci->exp.exp_cap)
		pcie_cap_exit(pci);
	if (card->blocked)
		migrate_del_blocker(card->blocker);
	card->blocked = false;
	error_free(g_steal_pointer(&card->blocker));
}

static bool card_init(struct sci_card *card, Error **errp)
{
	PCIDevice *pci = &card->pci;
	uint64_t size = (uint64_t)card->config.att_entries *
		card->config.att_page_size;

	if (!card->config.serial)
		card->config.serial = card->config.node;
	error_setg(&card->blocker,
		   "sci-pci: node %u: other machines hold its memory and transactions: it can't be moved",
		   card->config.node);
	if (migrate_add_blocker(card->blocker, errp) < 0)
		return false;
	card->blocked = true;
	if (pci_bus_is_express(pci_get_bus(pci))) {
		if (pcie_endpoint_cap_init(pci, 0x80) < 0) {
			error_setg(errp, "sci-pci: no room for the PCIe capability");
			return false;
		}
		pcie_cap_flr_init(pci);
		pcie_cap_deverr_init(pci);
		if (pcie_aer_init(pci, PCI_ERR_VER, PCI_CONFIG_SPACE_SIZE,
				  PCI_ERR_SIZEOF, errp) < 0)
			return false;
	}
	if (!interrupts_init(card, errp))
		return false;

	card->timer = timer_new_ns(QEMU_CLOCK_REALTIME, card_timer, card);
	link_init(card);
	if (card->config.direct && !window_init(card, errp))
		return false;
	in_model = true;
	card->adapter = sim_adapter_new(&card->config,
					card->config.direct ? &host_direct : &host,
					card, epoch_make());
	if (!card->adapter) {
		in_model = false;
		error_setg(errp, "sci-pci: sizes that no card has: see DATASHEET.md");
		return false;
	}
	card->deadline_changed = true;
	card_end(card);
	QTAILQ_INSERT_TAIL(&cards, card, next);

	if (card->config.direct) {
		memory_region_init_ram_device_ptr(&card->bar2, OBJECT(card),
						  "sci-pci window", size,
						  card->window.base);
	} else {
		memory_region_init_io(&card->bar2, OBJECT(card), &window_ops,
				      card, "sci-pci window", size);
	}
	memory_region_init_io(&card->csr, OBJECT(card), &csr_ops, card,
			      "sci-pci CSR", SCI_PCI_CSR_SIZE);
	memory_region_init_io(&card->att, OBJECT(card), &att_ops, card,
			      "sci-pci ATT",
			      card->config.att_entries * SCI_PCI_ATT_ENTRY_SIZE);
	pci_register_bar(pci, SCI_PCI_BAR_CSR, PCI_BASE_ADDRESS_SPACE_MEMORY,
			 &card->csr);
	pci_register_bar(pci, SCI_PCI_BAR_ATT, PCI_BASE_ADDRESS_SPACE_MEMORY,
			 &card->att);
	pci_register_bar(pci, SCI_PCI_BAR_WINDOW,
			 PCI_BASE_ADDRESS_SPACE_MEMORY |
			 PCI_BASE_ADDRESS_MEM_TYPE_64 |
			 PCI_BASE_ADDRESS_MEM_PREFETCH, &card->bar2);
	return true;
}

static void sci_realize(PCIDevice *pci, Error **errp)
{
	struct sci_card *card = SCI_CARD(pci);

	if (config_init(card, errp) && !card_init(card, errp))
		sci_exit(pci);
}

/* ---- for qom-get and qom-set ---- */

static bool link_get(Object *obj, Error **errp)
{
	return SCI_CARD(obj)->link.told;
}

static char *counters_get(Object *obj, Error **errp)
{
	static const char *const names[] = { SCI_PCI_COUNTER_NAMES };
	struct sci_card *card = SCI_CARD(obj);
	GString *text = g_string_new(NULL);
	unsigned int i;

	QEMU_BUILD_BUG_ON(ARRAY_SIZE(names) != SCI_PCI_COUNTERS_COUNT);
	for (i = 0; card->adapter && i < ARRAY_SIZE(names); i++)
		g_string_append_printf(text, "%s%s=%" PRIu64, i ? " " : "",
				       names[i], sim_counter(card->adapter, i));
	return g_string_free(text, false);
}

static char *fault_get(Object *obj, Error **errp)
{
	return g_strdup(fault_names[SCI_CARD(obj)->fault]);
}

static void fault_set(Object *obj, const char *name, Error **errp)
{
	unsigned int i;

	for (i = 0; i < FAULTS; i++) {
		if (!strcmp(fault_names[i], name)) {
			SCI_CARD(obj)->fault = i;
			return;
		}
	}
	error_setg(errp, "sci-pci: a card has no fault %s", name);
}

static void sci_instance_init(Object *obj)
{
	struct sci_card *card = SCI_CARD(obj);

	card->link.fd = -1;
	/*
	 * set the flag on a conventional bus, too: it only sets the size of the configuration space
	 */
	card->pci.cap_present |= QEMU_PCI_CAP_EXPRESS;
}

static void sci_instance_finalize(Object *obj)
{
	window_free(SCI_CARD(obj));
}

static Property sci_properties[] = {
	DEFINE_PROP_UINT16("node", struct sci_card, config.node, 0),
	DEFINE_PROP_UINT64("serial", struct sci_card, config.serial, 0),
	DEFINE_PROP_STRING("socket", struct sci_card, socket),
	DEFINE_PROP_STRING("data-path", struct sci_card, data_path),
	DEFINE_PROP_UINT32("att-entries", struct sci_card, config.att_entries, 8192),
	DEFINE_PROP_SIZE32("att-page-size", struct sci_card, config.att_page_size,
			   65536),
	DEFINE_PROP_UINT32("streams", struct sci_card, config.streams, 16),
	DEFINE_PROP_UINT32("stream-size", struct sci_card, config.stream_size, 128),
	DEFINE_PROP_UINT32("outstanding", struct sci_card, config.outstanding, 64),
	DEFINE_PROP_UINT32("exports", struct sci_card, config.exports, 1024),
	DEFINE_PROP_SIZE32("dma-max", struct sci_card, config.dma_max, 1 << 20),
	DEFINE_PROP_BOOL("msix", struct sci_card, msix, true),
	DEFINE_PROP_END_OF_LIST(),
};

static void sci_class_init(ObjectClass *class, void *data)
{
	DeviceClass *dc = DEVICE_CLASS(class);
	PCIDeviceClass *pc = PCI_DEVICE_CLASS(class);

	pc->realize = sci_realize;
	pc->exit = sci_exit;
	pc->config_write = sci_config_write;
	pc->vendor_id = SCI_PCI_VENDOR;
	pc->device_id = SCI_PCI_DEVICE;
	pc->revision = SCI_PCI_REVISION;
	pc->class_id = SCI_PCI_CLASS;
	dc->reset = sci_reset;
	dc->desc = "PCI-SCI adapter";
	device_class_set_props(dc, sci_properties);
	set_bit(DEVICE_CATEGORY_NETWORK, dc->categories);
	object_class_property_add_bool(class, "link", link_get, NULL);
	object_class_property_add_str(class, "counters", counters_get, NULL);
	object_class_property_add_str(class, "fault", fault_get, fault_set);
}

static const TypeInfo sci_type = {
	.name = TYPE_SCI_PCI,
	.parent = TYPE_PCI_DEVICE,
	.instance_size = sizeof(struct sci_card),
	.instance_init = sci_instance_init,
	.instance_finalize = sci_instance_finalize,
	.class_init = sci_class_init,
	.interfaces = (InterfaceInfo[]) {
		{ INTERFACE_PCIE_DEVICE },
		{ INTERFACE_CONVENTIONAL_PCI_DEVICE },
		{ },
	},
};

static void sci_register(void)
{
	type_register_static(&sci_type);
}

type_init(sci_register)
