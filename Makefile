# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# Copyright (C) 2026 The libsci authors
#
# `make help` lists targets (the text after ##) and variables.  $(O) gets everything that is built.

VERSION := 0.1.0
SOVERSION := 0

O ?= build
PREFIX ?= /usr/local
LIBDIR ?= $(PREFIX)/lib
INCLUDEDIR ?= $(PREFIX)/include
BINDIR ?= $(PREFIX)/bin
MANDIR ?= $(PREFIX)/share/man

FLAVOUR ?= stock
# Kernels of these flavours are built from source.
FLAVOUR_SETUP := $(if $(filter debug kcsan,$(FLAVOUR)),-debug)
CFLAGS ?= -O2 -g
ifeq ($(origin CC),default)
CC := $(CROSS_COMPILE)gcc
endif
ifeq ($(origin AR),default)
AR := $(CROSS_COMPILE)ar
endif

# Sanitizers build beside the normal objects.
comma := ,
B := $(O)$(if $(SAN),/$(subst $(comma),-,$(SAN)))
SANFLAGS := $(if $(SAN),-fsanitize=$(SAN) -fno-sanitize-recover=all \
	-fno-omit-frame-pointer)

# NUMA is "y" if libnuma is installed.  The first recipe that needs it tests it, after set-up.
NUMA = $(eval NUMA := $(shell echo 'int main(void){return numa_available();}' |\
	$(CC) -include numa.h -x c - -o /dev/null -lnuma 2>/dev/null && echo y))$(NUMA)
LIBS = $(if $(NUMA),-lnuma )-pthread
# libsci/team loads libpmix when a PMIx server has started the program; `sci run --pmix`
# loads it to be a PMIx server.
PMIX_CFLAGS = $(patsubst -I%,-isystem %,$(shell pkg-config --cflags-only-I pmix 2>/dev/null))

WARN := -Wall -Wextra -Wshadow -Wundef -Wvla -Wwrite-strings -Wpointer-arith \
	-Wstrict-prototypes -Wmissing-prototypes -Wold-style-definition \
	-Wformat=2 $(if $(WERROR),-Werror)
# Lines and segments are accessed as several types, as in the kernel.  A vector load of
# fields that were just stored one by one stalls until the stores are in the cache.
COMPILE = $(CC) -std=gnu11 -fno-strict-aliasing -fno-tree-slp-vectorize \
	-D_GNU_SOURCE= -I. -Ilibsci/include \
	-Iinclude/uapi -fPIC -fvisibility=hidden \
	-pthread $(if $(NUMA),-DSCI_HAVE_NUMA) $(WARN) $(CPPFLAGS) $(CFLAGS) \
	$(SANFLAGS) -MMD -MP -c -o $@ $<
LINK = $(CC) -pthread $(CFLAGS) $(SANFLAGS) $(LDFLAGS) -o $@

obj = $(patsubst %.c,$(B)/%.o,$(wildcard $(1)))
LIB_OBJ := $(call obj,libsci/base/*.c libsci/fabric/*/*.c libsci/msg/*/*.c libsci/sisci/*.c \
	libsci/pio/*.c libsci/team/*.c)
SCI_OBJ := $(call obj,libsci/tools/*.c)
OFI_OBJ := $(call obj,libsci/ofi/*.c)
OFI_TESTS := $(call obj,selftests/ofi/*.c)
OFI_TESTS := $(OFI_TESTS:.o=)
OSHMEM_OBJ := $(call obj,libsci/oshmem/*.c)
OSHMEM_COMPONENTS := $(patsubst %,$(B)/openmpi/mca_%_sci.so,spml sshmem atomic)
OSHMEM_TESTS := $(patsubst %,$(B)/openmpi/tests/%,rma atomics collectives)
OSHCC ?= oshcc
MPI_TESTS := $(call obj,selftests/mpi/*.c)
MPI_TESTS := $(MPI_TESTS:.o=)
MPICC ?= mpicc.openmpi
SELF_OBJ := $(call obj,selftests/*.c)
TEST_OBJ := $(call obj,selftests/unit/*.c selftests/fabric/*.c selftests/msg/*.c selftests/net/*.c \
	selftests/team/*.c)
BENCH_OBJ := $(call obj,selftests/bench/*.c)
# The model of an adapter, and the daemon that replaces cables.
SIM_OBJ := $(call obj,sim/adapter/*.c)
SWITCH_OBJ := $(call obj,sim/switch/*.c)
# The library's protocols over the same model, in virtual time.  sim/vtime/sockets.c replaces the
# functions in VTIME_WRAP.
VTIME_OBJ := $(call obj,sim/vtime/*.c)
VTIME_WRAP := $(patsubst %,-Wl$(comma)--wrap=%,bind listen connect accept4 sendmsg recvmsg close \
	clock_gettime pthread_create pthread_setname_np pthread_join pthread_cond_wait \
	pthread_cond_timedwait)
# The protocol of a pool: the kernel module has the same source files.
POOL_OBJ := $(call obj,$(addprefix kmod/pool/,format.c slots.c chunks.c mail.c))
PROFILES := $(wildcard sim/profiles/*.profile)
SIMTEST_OBJ := $(call obj,selftests/sim/*.c)
SIMTESTS := $(SIMTEST_OBJ:.o=)
VTIME_TESTS := $(filter $(B)/selftests/sim/vtime_%,$(SIMTESTS))
TESTS := $(TEST_OBJ:.o=)
BENCHES := $(BENCH_OBJ:.o=)
SOAKS := $(call obj,selftests/soak/*.c)
SOAKS := $(SOAKS:.o=)
# Programs for the nodes of a cluster of VMs: the agent, and tests.
CLUSTERS := $(call obj,selftests/cluster/*.c)
CLUSTERS := $(CLUSTERS:.o=)
# Tests of the kernel's interface do not use the library.  They share the sources that
# have a header.
KERNEL_OBJ := $(call obj,selftests/kernel/*.c)
KSFT_OBJ := $(filter $(patsubst %.h,$(B)/%.o,selftests/kernel/peer.h \
	$(wildcard selftests/kernel/*.h)),$(KERNEL_OBJ))
# These tests are not built with sanitizers: the debug kernel has its own.
KERNEL_TESTS := $(if $(SAN),,$(patsubst %.o,%,$(filter-out $(KSFT_OBJ),$(KERNEL_OBJ))))
MAP := $(wildcard libsci/libsci.map)
HEADERS := $(patsubst libsci/include/%,%,$(wildcard $(addprefix \
	libsci/include/,*.h */*.h */*/*.h)))
MANPAGES := $(notdir $(wildcard libsci/man/*.[1-9]))
# scripts/man-pages writes the pages of functions from the headers.
MAN3 := $(B)/man/.written

SOLIB := libsci.so.$(VERSION)
SOLINKS := libsci.so.$(SOVERSION) libsci.so libsisci.so
LIBRARIES := $(addprefix $(B)/,$(SOLIB) $(SOLINKS) libsci.a libsisci.a)

# Front-ends: each is a library that uses libsci.so.  libsci/NAME/front-end.mk sets
# NAME_SONAME (libdeck.so.0), and may set NAME_LIBS (more libraries to link), NAME_MAP (its
# version script), NAME_DEPS (other front-ends), NAME_DIR (the folder below LIBDIR for a
# library whose name is also another package's), NAME_BINS (its programs, in $(B)),
# NAME_RULES (rules for its programs) and NAME_TESTS (its folder in selftests; NAME).
FRONTENDS := $(patsubst libsci/%/front-end.mk,%,$(wildcard libsci/*/front-end.mk))
-include $(wildcard libsci/*/front-end.mk)
frontend_libs = $(foreach f,$(1),$(B)/$($(f)_SONAME) $(B)/$(basename $($(f)_SONAME)) \
	$(B)/$(basename $(basename $($(f)_SONAME))).a)
FRONTEND_LIBS := $(call frontend_libs,$(FRONTENDS))
FRONTEND_BINS := $(foreach f,$(FRONTENDS),$($(f)_BINS:%=$(B)/%))
frontend_tests = $(call obj,selftests/$(or $($(1)_TESTS),$(1))/*.c)
FRONTEND_TESTS := $(foreach f,$(FRONTENDS),$(call frontend_tests,$(f)))
FRONTEND_TESTS := $(FRONTEND_TESTS:.o=)

Q := $(if $(V),,@)
say = @$(if $(V),:,printf '  %-7s %s\n' $(1) $(@:$(B)/%=%))

all: libs tests bins			## Build: library, sci command, tests (default)
libs: $(LIBRARIES) $(FRONTEND_LIBS)	## Build: the libraries alone
ofi: $(O)/.setup-ofi $(B)/libsci-fi.so $(OFI_TESTS)	## Build: the provider for libfabric, and its tests
oshmem: $(OSHMEM_COMPONENTS) $(OSHMEM_TESTS)	## Build: components for Open MPI's SHMEM, and its programs
mpi-demo: $(O)/.setup-mpi		## See it run: Open MPI on one node, on two, and over two clusters
	+@$(MAKE) --no-print-directory bins ofi
	scripts/mpi-demo $(O)

mpi-check: $(O)/.setup-mpi bins ofi mpi-tests	## Check: MPI programs over the provider
	scripts/tap-summary --limit 1800 "scripts/check-mpi $(O)"

mpi-tests: $(O)/.setup-mpi $(MPI_TESTS)
bins: $(FRONTEND_BINS) $(if $(SCI_OBJ),$(B)/sci) $(if $(SWITCH_OBJ),$(B)/sci-switch) \
	$(if $(VTIME_OBJ),$(B)/sci-model)
tests: $(FRONTEND_BINS) $(TESTS) $(FRONTEND_TESTS) $(SIMTESTS) $(KERNEL_TESTS) $(BENCHES) $(SOAKS) $(CLUSTERS)	## Build: tests and benchmarks

demo-deck: all examples			## See it run: a DECK pipeline on four nodes
	scripts/demo-deck $(O)

demo-smi: all				## See it run: an SMI sort and a Poisson solver on four nodes
	for p in sort poisson; do \
		$(B)/smirun -np 8 -nodes node4,node8,node12,node16 $(B)/selftests/smi/$$p || exit; \
	done

demo-threads: $(O)/.setup-demo-threads	## See it run: a ray tracer's threads on two nodes
	+@$(MAKE) --no-print-directory libs bins
	scripts/demo-threads $(O)

demo: $(O)/.setup-demo			## See it run: nodes, numbers, a picture
	+@$(MAKE) --no-print-directory all
	scripts/demo $(O)

check: $(O)/.setup-check		## Check: what every commit must pass; 15 to 20 minutes on two cores
	scripts/check $(O)

check-all: $(O)/.setup-check-all	## Check: all checks; hours
	scripts/check --all $(O)

bench: $(O)/.setup-bench			## Measure: SISCI: latency and bandwidth, as a picture
	+@$(MAKE) --no-print-directory all
	scripts/bench $(O)

bench-peers: $(O)/.setup-peers		## Measure: messages beside MPI, UCX, libfabric
	+@$(MAKE) --no-print-directory all
	scripts/bench-peers $(O)

bench-net: $(O)/.setup-peers		## Measure: messages over TCP beside libfabric and Open MPI
	+@$(MAKE) --no-print-directory all
	scripts/bench-net $(O)

bench-pvm: $(O)/.setup-check		## Measure: NPpvm beside Debian's PVM
	+@$(MAKE) --no-print-directory all
	scripts/bench-pvm $(O)

bench-mpi: $(O)/.setup-peers		## Measure: MPI over the provider beside other MPIs
	+@$(MAKE) --no-print-directory all ofi
	scripts/bench-mpi $(O)

bench-coll: $(O)/.setup-peers		## Measure: collective calls beside those of MPIs
	+@$(MAKE) --no-print-directory all
	scripts/bench-coll $(O)

bench-deck: all				## Measure: DECK's post and retrieve beside messages
	scripts/bench-front-end deck $(O)

bench-smi: all				## Measure: SMI's barrier and regions beside team and memory
	scripts/bench-front-end smi $(O)

bench-mad: $(O)/.setup-bench			## Measure: Madeleine through a gateway, by block size
	+@$(MAKE) --no-print-directory all
	scripts/bench-mad $(O)

bench-threads: all			## Measure: threads on one node and on two, and page faults
	scripts/bench-threads $(O)

bench-shmem: $(O)/.setup-peers		## Measure: OpenSHMEM beside that of Open MPI
	+@$(MAKE) --no-print-directory all ofi
	scripts/bench-shmem $(O)

shmem-check: $(O)/.setup-mpi libs bins oshmem	## Check: OpenSHMEM programs on libsci and on Open MPI
	scripts/tap-summary --limit 1200 "scripts/check-shmem $(O)"

model: $(O)/.setup-demo			## See it run: the papers' tables in virtual time
	+@$(MAKE) --no-print-directory bins
	scripts/model $(O)

bench-vm: $(O)/.setup-vm all		## Measure: messages over sci_loop, in a VM
	scripts/bench-vm $(O)

modules: $(O)/.setup-modules		## Build: kernel modules, for KDIR; in $(O)/modules/host
	@scripts/modules "$(or $(KDIR),$$(scripts/kernel-build))" $(O)/modules/host
	@ls $(O)/modules/host/kmod/*.ko

modules-check: $(O)/.setup-modules-check	## Check: modules compile without a warning, old and new kernels
	scripts/tap-summary --limit 600 "scripts/check-modules $(O)"

vm: $(O)/.setup-vm$(FLAVOUR_SETUP) all	## See it run: a shell in a VM with modules and tests
	@scripts/vm shell $(FLAVOUR) --build $(O)

vm-check: $(O)/.setup-vm all ofi oshmem mpi-tests	## Check: tests with the modules, in a VM
	scripts/tap-summary --limit 2400 "scripts/check-vm stock $(O)" \
		"scripts/check-vm front-ends $(O)" "scripts/check-vm slow $(O)"

vm-check-debug: $(O)/.setup-vm-debug all	## Check: tests with lockdep, KASAN, kmemleak and KCSAN
	scripts/tap-summary --limit 7200 "scripts/check-vm debug $(O)" \
		"scripts/check-vm kcsan $(O)"

vm-soak: $(O)/.setup-vm-debug all	## Check: a million calls, a thousand kills, in the debug kernel
	scripts/tap-summary --limit 21000 "scripts/check-vm soak $(O)"

cluster: $(O)/.setup-cluster$(FLAVOUR_SETUP) all	## See it run: NODES (3) VMs with adapters, and a shell on each
	@scripts/cluster shell $(or $(NODES),3) --build $(O) --flavour $(FLAVOUR) \
		$(if $(filter ivshmem% dax,$(ADAPTER)),--$(ADAPTER))

# Two nodes run all cases; three nodes run only the list that needs them.
cluster-check: $(O)/.setup-cluster all examples ofi mpi-tests	## Check: tests of clusters of VMs, with faults
	scripts/tap-summary --limit 4500 \
		"scripts/cluster-check $(O)" \
		"scripts/cluster-check --data-path direct $(O)" \
		"scripts/cluster-check --kind ivshmem $(O)" \
		"scripts/cluster-check --nodes 3 --adapter att-entries=2048,streams=8,stream-size=64 --list selftests/vm/cluster3.list $(O)"

cluster-check-debug: $(O)/.setup-cluster-debug all examples ofi mpi-tests	## Check: clusters with lockdep, KASAN and kmemleak
	scripts/tap-summary --limit 14400 \
		"scripts/cluster-check --flavour debug --slow 5 --seconds 20 --only !(mpi_*|team_*|pvm_*|threads_*) --list selftests/vm/cluster-debug.list $(O)"

soak: tests				## Check: random messages for SECONDS (600)
	$(B)/selftests/soak/traffic

headers-check: $(O)/.setup-check	## Check: public headers compile alone
	scripts/check-headers

lint: $(O)/.setup-lint			## Check: cppcheck and clang-tidy
	scripts/check-lint

cross: $(O)/.setup-cross		## Build: library and tests for aarch64
	+$(MAKE) O=$(O)/aarch64 CC=aarch64-linux-gnu-gcc AR=aarch64-linux-gnu-ar \
		SETUP=no libs tests

cross-check: $(O)/.setup-cross		## Check: library and tests for aarch64, run by qemu-user
	scripts/tap-summary --limit 1800 "scripts/check-aarch64 $(O)"

# Installs the packages that a target needs, once per build folder.
$(O)/.setup-%: scripts/setup-deps
	@mkdir -p $(@D)
	@$(if $(filter no,$(SETUP)),:,scripts/setup-deps $*)
	@touch $@

$(B)/libsci/team/boot_pmix.o $(B)/libsci/tools/launch_pmix.o: override CPPFLAGS += $(PMIX_CFLAGS)
# This test compares instructions if the flags are those of its table.
$(B)/selftests/msg/instructions.o: override CPPFLAGS += \
	-DTEST_FLAGS='"$(strip $(filter-out -g%,$(CFLAGS) $(SANFLAGS)))"'
$(B)/%.o: %.c Makefile | $(O)/.setup-build
	@mkdir -p $(@D)
	$(call say,CC)
	$(Q)$(COMPILE)

$(B)/$(SOLIB): $(LIB_OBJ) $(MAP)
	$(call say,LINK)
	$(Q)$(LINK) -shared -Wl,-soname,libsci.so.$(SOVERSION) -Wl,-z,defs \
		$(MAP:%=-Wl,--version-script=%) $(LIB_OBJ) $(LIBS)

# The provider exports one name, and contains its own copy of the library.  -z nodelete:
# libfabric unloads it at the program's end, while threads of endpoints may still run.
$(B)/libsci-fi.so: $(OFI_OBJ) $(B)/libsci.a
	$(call say,LINK)
	$(Q)$(LINK) -shared $(if $(SAN),,-Wl,-z,defs) -Wl,-z,nodelete \
		-Wl,--exclude-libs,ALL $^ \
		-lfabric $(LIBS)

$(OFI_OBJ) $(OFI_TESTS:=.o): | $(O)/.setup-ofi

$(OFI_TESTS): %: %.o $(B)/selftests/common.a $(B)/libsci.a
	$(call say,LINK)
	$(Q)$(LINK) $^ -lfabric $(LIBS) -lm

# The headers of Open MPI's internals include other headers by paths of its source tree.
OSHMEM_INCLUDE = $(shell $(OSHCC) --showme:incdirs)
$(B)/openmpi/include: | $(O)/.setup-mpi
	@mkdir -p $@/oshmem $@/ompi
	@ln -sfn $(firstword $(OSHMEM_INCLUDE)) $@/oshmem/include
	@ln -sfn $(firstword $(OSHMEM_INCLUDE)) $@/ompi/include

$(OSHMEM_OBJ): override CPPFLAGS += $(addprefix -isystem ,$(B)/openmpi/include $(OSHMEM_INCLUDE) \
	$(firstword $(OSHMEM_INCLUDE))/openshmem)
$(OSHMEM_OBJ): | $(B)/openmpi/include

# Open MPI unloads the component while threads of endpoints may still run.
$(B)/openmpi/mca_spml_sci.so: $(OSHMEM_OBJ) $(B)/libsci.a
	$(call say,LINK)
	$(Q)$(LINK) -shared $(if $(SAN),,-Wl,-z,defs) -Wl,-z,nodelete -Wl,--exclude-libs,ALL $^ \
		$(addprefix -L,$(shell $(OSHCC) --showme:libdirs)) -loshmem -lmpi -lopen-pal $(LIBS)

$(filter-out %/mca_spml_sci.so,$(OSHMEM_COMPONENTS)): $(B)/openmpi/mca_spml_sci.so
	@ln -sf $(<F) $@

# Tests of SHMEM as plain programs of Open MPI's SHMEM.
$(OSHMEM_TESTS): $(B)/openmpi/tests/%: selftests/shmem/%.c selftests/shmem/check.h | $(O)/.setup-mpi
	@mkdir -p $(@D)
	$(call say,OSHCC)
	$(Q)$(OSHCC) -std=gnu11 -w -DSHMEM_PLAIN -I. $(CPPFLAGS) $(CFLAGS) -o $@ $< -lm

# MPI tests do not use the library.
$(MPI_TESTS): $(B)/%: %.c selftests/mpi/check.h | $(O)/.setup-mpi
	@mkdir -p $(@D)
	$(call say,MPICC)
	$(Q)$(MPICC) -std=gnu11 -D_GNU_SOURCE= -I. -pthread $(WARN) $(CPPFLAGS) $(CFLAGS) \
		-o $@ $< -lm

$(addprefix $(B)/,$(SOLINKS)): $(B)/$(SOLIB)
	@ln -sf $(<F) $@

define frontend_rules
$(B)/$($(1)_SONAME): $(call obj,libsci/$(1)/*.c) $(addprefix $(B)/,$(SOLIB) $(SOLINKS)) \
		$(foreach d,$($(1)_DEPS),$(B)/$($(d)_SONAME)) $($(1)_MAP)
	$$(call say,LINK)
	$(Q)$$(LINK) -shared -Wl,-soname,$($(1)_SONAME) -Wl,-z,defs \
		$($(1)_MAP:%=-Wl,--version-script=%) $$(filter %.o,$$^) \
		$(foreach d,$($(1)_DEPS),$(B)/$($(d)_SONAME)) \
		-L$(B) -lsci $($(1)_LIBS) -pthread
$(B)/$(basename $($(1)_SONAME)): $(B)/$($(1)_SONAME)
	@ln -sf $$(<F) $$@
$(B)/$(basename $(basename $($(1)_SONAME))).a: $(call obj,libsci/$(1)/*.c)
$(patsubst %.o,%,$(call frontend_tests,$(1))): %: %.o $(B)/selftests/common.a \
		$(foreach f,$(1) $($(1)_DEPS),$(B)/$(basename $(basename $($(f)_SONAME))).a) \
		$(B)/libsci.a
	$$(call say,LINK)
	$(Q)$$(LINK) $$^ $(foreach f,$(1) $($(1)_DEPS),$($(f)_LIBS)) $$(LIBS) -lm
endef
$(foreach f,$(FRONTENDS),$(eval $(call frontend_rules,$(f)))$(eval $($(f)_RULES)))

$(B)/libsci.a: $(LIB_OBJ)
$(B)/selftests/common.a: $(SELF_OBJ)
$(B)/selftests/kernel/common.a: $(KSFT_OBJ)
$(B)/sim/adapter.a: $(SIM_OBJ)
$(B)/kmod/pool.a: $(POOL_OBJ)
$(B)/%.a: Makefile | $(O)/.setup-build
	$(call say,AR)
	@mkdir -p $(@D)
	@rm -f $@
	$(Q)$(AR) rcs $@ $(filter %.o,$^)

$(B)/libsisci.a: $(B)/libsci.a
	@ln -sf $(<F) $@

$(B)/sci: $(SCI_OBJ) $(B)/kmod/pool.a $(B)/libsci.a
	$(call say,LINK)
	$(Q)$(LINK) $^ -lpci -lnettle $(LIBS) -lm

$(TESTS) $(BENCHES) $(SOAKS) $(CLUSTERS): %: %.o $(B)/selftests/common.a $(B)/libsci.a
	$(call say,LINK)
	$(Q)$(LINK) $(filter %.o,$^) $(filter-out %/libsci.a,$(filter %.a,$^)) $(B)/libsci.a $(LIBS) -lm

$(B)/selftests/bench/deck: $(B)/libdeck.a
$(B)/selftests/bench/smi: $(B)/libsmi.a
$(B)/selftests/bench/madeleine: $(B)/libmadeleine.a
$(B)/selftests/bench/scivm: $(B)/libsci-vm.a
$(addprefix $(B)/selftests/unit/,pool pool_format pool_incoherent pool_schedules): $(B)/kmod/pool.a

# Example programs, libsci/examples/FRONTEND_NAME.c, built as a user builds them.
EXAMPLES := $(foreach f,$(FRONTENDS),$(patsubst %.c,$(B)/%,$(wildcard libsci/examples/$(f)_*.c)))
examples: libs $(EXAMPLES)		## Build: the programs in libsci/examples/
$(EXAMPLES): $(B)/%: %.c $(FRONTEND_LIBS)
	@mkdir -p $(@D)
	$(call say,CC)
	$(Q)$(CC) -pthread $(WARN) $(CPPFLAGS) $(CFLAGS) $(SANFLAGS) $(LDFLAGS) -Ilibsci/include \
		-o $@ $< -L$(B) -Wl,--disable-new-dtags,-rpath,$(abspath $(B)) \
		-l$(firstword $(subst _, ,$(*F))) -lsci

$(B)/sci-switch: $(SWITCH_OBJ) $(B)/sim/adapter.a
	$(call say,LINK)
	$(Q)$(LINK) $^

# The objects that replace parts of the library come before it.
$(B)/sci-model: $(VTIME_OBJ) $(B)/sim/adapter.a $(B)/libsci.a
	$(call say,LINK)
	$(Q)$(LINK) $(VTIME_WRAP) $^ $(LIBS) -lm

$(filter-out $(VTIME_TESTS),$(SIMTESTS)): %: %.o $(B)/selftests/common.a $(B)/sim/adapter.a $(B)/libsci.a
	$(call say,LINK)
	$(Q)$(LINK) $(filter %.o,$^) $(filter %.a,$^) $(LIBS) -lm

# This test links the daemon's objects, and lets its allocations fail.
$(B)/selftests/sim/switch_memory: $(filter-out %/main.o,$(SWITCH_OBJ))
$(B)/selftests/sim/switch_memory: override LDFLAGS += -Wl,--wrap=calloc,--wrap=realloc

$(VTIME_TESTS): %: %.o $(filter-out %/main.o,$(VTIME_OBJ)) \
		$(B)/selftests/common.a $(B)/sim/adapter.a $(B)/libsci.a
	$(call say,LINK)
	$(Q)$(LINK) $(VTIME_WRAP) $(filter %.o,$^) $(filter %.a,$^) $(LIBS) -lm

# These tests link the front-ends' objects, except start-up and threads, which they define.
$(B)/selftests/sim/vtime_deck: $(addprefix $(B)/libsci/deck/,mbox.o message.o pack.o buffer.o)
$(addprefix $(B)/selftests/sim/,vtime_madeleine vtime_gateway): $(filter-out %/world.o,$(call obj,libsci/madeleine/*.c))

$(KERNEL_TESTS): %: %.o $(B)/selftests/kernel/common.a
	$(call say,LINK)
	$(Q)$(LINK) $^

version:
	@echo $(VERSION)

deb: $(O)/.setup-deb			## Install: Debian packages, in $(O)/deb
	scripts/deb $(O) $(VERSION)

$(MAN3): scripts/man-pages $(HEADERS:%=libsci/include/%) $(wildcard libsci/man/examples/*.c)
	$(call say,MAN)
	@rm -rf $(@D) && mkdir -p $(@D)
	$(Q)scripts/man-pages $(@D)
	@touch $@

install: libs bins $(MAN3) $(wildcard $(B)/libsci-fi.so $(OSHMEM_COMPONENTS))	## Install: to DESTDIR, PREFIX (/usr/local)
	install -d $(addprefix $(DESTDIR),$(LIBDIR)/pkgconfig $(BINDIR) \
		$(sort $(addprefix $(INCLUDEDIR)/,$(dir $(HEADERS)))) \
		$(sort $(addprefix $(MANDIR)/man,$(subst .,,$(suffix $(MANPAGES))))))
	$(foreach h,$(HEADERS),install -m 644 libsci/include/$(h) \
		$(DESTDIR)$(INCLUDEDIR)/$(h)$(nl))
	$(foreach m,$(MANPAGES),install -m 644 libsci/man/$(m) \
		$(DESTDIR)$(MANDIR)/man$(subst .,,$(suffix $(m)))/$(nl))
	install -m 644 $(B)/man/*.3 $(DESTDIR)$(MANDIR)/man3/
	install -m 644 $(B)/libsci.a $(DESTDIR)$(LIBDIR)/
	install -m 755 $(B)/$(SOLIB) $(DESTDIR)$(LIBDIR)/
	$(foreach f,$(FRONTENDS),install -d $(DESTDIR)$(LIBDIR)/$($(f)_DIR)$(nl)\
		install -m 755 $(B)/$($(f)_SONAME) $(DESTDIR)$(LIBDIR)/$($(f)_DIR)$(nl)\
		install -m 644 $(B)/$(basename $(basename $($(f)_SONAME))).a $(DESTDIR)$(LIBDIR)/$($(f)_DIR)$(nl)\
		ln -sf $($(f)_SONAME) $(DESTDIR)$(LIBDIR)/$($(f)_DIR)/$(basename $($(f)_SONAME))$(nl))
	$(foreach l,$(SOLINKS),ln -sf $(SOLIB) $(DESTDIR)$(LIBDIR)/$(l)$(nl))
	ln -sf libsci.a $(DESTDIR)$(LIBDIR)/libsisci.a
	set -e; umask 022; $(foreach p,libsci sisci,sed $(PCSUBST) scripts/$(p).pc.in \
		>$(DESTDIR)$(LIBDIR)/pkgconfig/$(p).pc;)
	$(if $(SCI_OBJ),install -m 755 $(B)/sci $(DESTDIR)$(BINDIR)/)
	$(if $(SWITCH_OBJ),install -m 755 $(B)/sci-switch $(DESTDIR)$(BINDIR)/)
	$(foreach p,$(FRONTEND_BINS),install -m 755 $(p) $(DESTDIR)$(BINDIR)/$(nl))
	$(foreach p,$(shmem_BINS),sed -e 's|@INCLUDEDIR@|$(INCLUDEDIR)|' -e 's|@LIBDIR@|$(LIBDIR)|' \
		scripts/sci-shmemcc.in >$(DESTDIR)$(BINDIR)/$(p)$(nl))
	sed 's|^libdir=.*|libdir=$(LIBDIR) includedir=$(INCLUDEDIR)|' libsci/smi/smicc \
		>$(DESTDIR)$(BINDIR)/smicc
	install -d $(DESTDIR)$(LIBDIR)/libsci/shmem
	$(foreach p,cc c++,ln -srf $(DESTDIR)$(BINDIR)/sci-shmem$(p) \
		$(DESTDIR)$(LIBDIR)/libsci/shmem/osh$(p)$(nl))
	install -m 755 scripts/sci-pvm scripts/sci-vm-picture $(DESTDIR)$(BINDIR)/
	$(if $(VTIME_OBJ),install -m 755 $(B)/sci-model $(DESTDIR)$(BINDIR)/)
	$(if $(wildcard $(B)/libsci-fi.so),install -D -m 755 $(B)/libsci-fi.so \
		$(DESTDIR)$(LIBDIR)/libfabric/libsci-fi.so)
	$(if $(wildcard $(OSHMEM_COMPONENTS)),install -d $(DESTDIR)$(LIBDIR)/libsci/openmpi && \
		install -m 755 $(firstword $(OSHMEM_COMPONENTS)) $(DESTDIR)$(LIBDIR)/libsci/openmpi/ && \
		for f in $(notdir $(wordlist 2,9,$(OSHMEM_COMPONENTS))); do \
			ln -sf $(notdir $(firstword $(OSHMEM_COMPONENTS))) \
				$(DESTDIR)$(LIBDIR)/libsci/openmpi/$$f || exit; done)
	install -d $(DESTDIR)$(PREFIX)/share/libsci/profiles
	install -m 644 $(PROFILES) $(DESTDIR)$(PREFIX)/share/libsci/profiles/
	install -D -m 644 include/uapi/linux/sci.h \
		$(DESTDIR)$(INCLUDEDIR)/linux/sci.h
	$(if $(LIB64),[ -e $(LIB64) ] || ln -s lib $(LIB64))
	DESTDIR=$(DESTDIR) scripts/install-kmod install $(O) $(VERSION) \
		$(PREFIX) $(KDIR)
	$(if $(DESTDIR),,[ "$$(id -u)" != 0 ] || ldconfig)

uninstall: $(MAN3)			## Install: remove what install has installed
	rm -f $(addprefix $(DESTDIR),$(addprefix $(LIBDIR)/,$(SOLIB) \
		$(SOLINKS) libsci.a libsisci.a pkgconfig/libsci.pc \
		pkgconfig/sisci.pc) $(BINDIR)/sci $(BINDIR)/sci-switch \
		$(BINDIR)/sci-model $(addprefix $(BINDIR)/,sci-pvm sci-vm-picture $(notdir $(FRONTEND_BINS))) \
		$(addprefix $(INCLUDEDIR)/,$(HEADERS)) \
		$(foreach m,$(MANPAGES),$(MANDIR)/man$(subst .,,$(suffix $(m)))/$(m)))
	$(foreach f,$(FRONTENDS),rm -f $(addprefix $(DESTDIR)$(LIBDIR)/$($(f)_DIR)/,$(notdir \
		$(call frontend_libs,$(f))))$(nl)\
		[ -z "$($(f)_DIR)" ] || rmdir $(DESTDIR)$(LIBDIR)/$($(f)_DIR) 2>/dev/null || :$(nl))
	cd $(B)/man && for m in *.3; do rm -f $(abspath $(DESTDIR)$(MANDIR))/man3/$$m; done
	rm -f $(DESTDIR)$(INCLUDEDIR)/linux/sci.h \
		$(DESTDIR)$(LIBDIR)/libfabric/libsci-fi.so
	[ ! -d $(DESTDIR)$(LIBDIR)/libfabric ] || \
		rmdir --ignore-fail-on-non-empty $(DESTDIR)$(LIBDIR)/libfabric
	rm -f $(addprefix $(DESTDIR)$(LIBDIR)/libsci/openmpi/,$(notdir $(OSHMEM_COMPONENTS)))
	rm -f $(addprefix $(DESTDIR)$(LIBDIR)/libsci/shmem/,oshcc oshc++)
	cd $(DESTDIR)$(LIBDIR) 2>/dev/null && rmdir -p libsci/shmem libsci/openmpi 2>/dev/null || :
	rm -f $(addprefix $(DESTDIR)$(PREFIX)/share/libsci/profiles/,$(notdir $(PROFILES)))
	cd $(DESTDIR)$(PREFIX)/share 2>/dev/null && rmdir -p libsci/profiles 2>/dev/null || :
	DESTDIR=$(DESTDIR) scripts/install-kmod uninstall $(O) $(VERSION) \
		$(PREFIX) $(KDIR)
	$(if $(LIB64),[ ! -L $(LIB64) ] || rm $(LIB64))

# Programs that are written for /opt/DIS look in lib64.
LIB64 := $(if $(filter /opt/%,$(PREFIX)),$(DESTDIR)$(PREFIX)/lib64)
PCSUBST = -e 's|@PREFIX@|$(PREFIX)|' -e 's|@VERSION@|$(VERSION)|' \
	-e 's|@LIBS@|$(LIBS)|' -e 's|@LIBDIR@|$(LIBDIR:$(PREFIX)/%=$${prefix}/%)|' \
	-e 's|@INCLUDEDIR@|$(INCLUDEDIR:$(PREFIX)/%=$${prefix}/%)|'
define nl


endef

clean:					## Build: remove $(O)
	@[ ! -e $(O)/Makefile ] || { echo "O=$(O) is a source folder"; exit 1; }
	rm -rf --one-file-system $(O)

help:					## Build: this list
	@for g in Build 'See it run' Check Measure Install; do \
		echo "$$g:"; \
		sed -n "s/^\([a-z-]*\):.*## $$g: \(.*\)/  \1\t\2/p" Makefile | expand -t 22; \
	done
	@echo 'Variables:'
	@echo '  O=DIR           where to build (build)'
	@echo '  SAN=LIST        address,undefined or thread: built in O/LIST'
	@echo '  WERROR=1 V=1    warnings are errors; show commands'
	@echo '  KDIR=DIR        kernel to build modules for (the running one)'
	@echo '  FLAVOUR=NAME    kernel of make vm, make cluster: stock, debug, kcsan'
	@echo '  ADAPTER=NAME    of make cluster: pci, ivshmem (memory that the VMs share),'
	@echo '                  ivshmem-doorbell (with interrupts), dax (an NVDIMM that they share)'
	@echo '  SETUP=no        do not install missing packages'
	@echo '  CC CROSS_COMPILE CPPFLAGS CFLAGS LDFLAGS    as usual'
	@echo '  DESTDIR PREFIX LIBDIR INCLUDEDIR BINDIR MANDIR  for install'

.PHONY: all libs examples demo-deck demo-smi demo-threads ofi oshmem mpi-demo mpi-check mpi-tests bins tests demo check check-all bench bench-peers bench-net bench-pvm bench-mpi bench-coll bench-shmem bench-deck bench-smi bench-mad bench-threads shmem-check bench-vm \
	headers-check \
	lint cross cross-check modules modules-check vm vm-check vm-check-debug vm-soak cluster cluster-check \
	cluster-check-debug install soak \
	uninstall clean deb version help
.DELETE_ON_ERROR:
.SECONDARY:

-include $(patsubst %.o,%.d,$(LIB_OBJ) $(OFI_OBJ) $(OSHMEM_OBJ) $(OFI_TESTS:=.o) $(SCI_OBJ) $(SELF_OBJ) $(TEST_OBJ) \
	$(BENCH_OBJ) $(CLUSTERS:=.o) $(SOAKS:=.o) $(THREADS_PROGRAMS:=.o) $(KERNEL_OBJ) $(SIM_OBJ) \
	$(SWITCH_OBJ) $(VTIME_OBJ) $(POOL_OBJ) $(SIMTEST_OBJ) $(FRONTEND_TESTS:=.o) \
	$(foreach f,$(FRONTENDS),$(call obj,libsci/$(f)/*.c libsci/$(f)/*/*.c)))
