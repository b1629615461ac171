# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# OpenSHMEM 1.5 on teams.  The compiler wrappers in $(B) use the headers of the tree;
# `make install` writes them for the folders of the installation.
shmem_SONAME := libsci-shmem.so.0
shmem_MAP := libsci/shmem/libsci-shmem.map
shmem_BINS := sci-shmemcc sci-shmemc++

define shmem_RULES
$(B)/libsci/shmem/%.o: libsci/shmem/%.c Makefile scripts/pshmem-names | $(O)/.setup-build
	@mkdir -p $$(@D)
	$$(call say,CC)
	$(Q)$$(COMPILE)
	$(Q)scripts/pshmem-names $$@ "$$(CC)"

$(B)/sci-shmemcc $(B)/sci-shmemc++: scripts/sci-shmemcc.in Makefile
	$$(call say,GEN)
	@mkdir -p $$(@D)
	$(Q)sed -e 's|@INCLUDEDIR@|$(abspath libsci/include)|' \
		-e 's|@LIBDIR@|$(abspath $(B))|' $$< >$$@ && chmod 755 $$@
endef
