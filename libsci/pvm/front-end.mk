# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
pvm_DIR := sci-pvm
pvm_SONAME := libpvm3.so.3
pvm_MAP := libsci/pvm/libpvm3.map

# The daemon links libsci.a, so that a copy of it runs anywhere.
PVMD_OBJ := $(call obj,libsci/pvm/daemon/*.c) $(B)/libsci/pvm/frame.o
pvm_BINS := pvmd3

define pvm_RULES
$(B)/pvmd3: $(PVMD_OBJ) $(B)/libsci.a
	$$(call say,LINK)
	$(Q)$$(LINK) $$^ $$(LIBS) -lm
endef
