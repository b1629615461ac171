# SPDX-License-Identifier: GPL-2.0-or-later
#
# For softmmu/physmem.c of QEMU 7.2.  Under TCG, when the memory map changes, for
# example because a card comes or goes, the table of its sections is exchanged
# under CPUs that run, whose TLBs still hold numbers of the old one: an access to
# one device ends at another.  Have each CPU change over by itself, and keep the
# old table until then, as later versions do.
s/^    struct AddressSpaceDispatch \*memory_dispatch;$/&\n    FlatView *view; \/* keeps memory_dispatch *\//
/^static void tcg_commit(MemoryListener \*listener)$/i\
static void tcg_commit_cpu(CPUState *cpu, run_on_cpu_data data)\
{\
    CPUAddressSpace *cpuas = data.host_ptr;\
    FlatView *old = cpuas->view;\
\
    cpuas->view = address_space_get_flatview(cpuas->as);\
    qatomic_rcu_set(&cpuas->memory_dispatch,\
                    flatview_to_dispatch(cpuas->view));\
    tlb_flush(cpu);\
    if (old) {\
        flatview_unref(old);\
    }\
}\

/^static void tcg_commit(MemoryListener \*listener)$/,/^}$/{
	s/^    AddressSpaceDispatch \*d;$/    CPUState *cpu;/
	/^    cpu_reloading_memory_map();$/,/^    tlb_flush(cpuas->cpu);$/c\
    cpu = cpuas->cpu;\
    if (cpu->created && !qemu_cpu_is_self(cpu)) {\
        async_run_on_cpu(cpu, tcg_commit_cpu, RUN_ON_CPU_HOST_PTR(cpuas));\
    } else {\
        cpu_reloading_memory_map();\
        tcg_commit_cpu(cpu, RUN_ON_CPU_HOST_PTR(cpuas));\
    }
}
