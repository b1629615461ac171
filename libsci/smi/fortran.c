// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/*
 * Fortran names are in lower case, with smi_ in front and _ behind. All arguments are references.
 * The last argument returns the error code. A pointer is an integer of the same size.
 */
#include "libsci/smi/internal.h"

/*
 * FORTRAN() - define the Fortran name of a C call
 * @call: the C call; the parameters follow, except for the error code
 */
#define FORTRAN(name, call, ...)						\
	void smi_##name##_(__VA_ARGS__ __VA_OPT__(,) int *error);		\
	SMI_API void smi_##name##_(__VA_ARGS__ __VA_OPT__(,) int *error)	\
	{									\
		*error = call;							\
	}

FORTRAN(init, SMI_Init(NULL, NULL))
FORTRAN(finalize, SMI_Finalize())
FORTRAN(proc_rank, SMI_Proc_rank(rank), int *rank)
FORTRAN(proc_size, SMI_Proc_size(size), int *size)
FORTRAN(node_rank, SMI_Node_rank(rank), int *rank)
FORTRAN(node_size, SMI_Node_size(size), int *size)
FORTRAN(proc_to_node, SMI_Proc_to_node(*proc, node), int *proc, int *node)
FORTRAN(page_size, SMI_Page_size(size), int *size)
FORTRAN(create_shreg, SMI_Create_shreg(*type, info, id, address), int *type,
	smi_region_info_t *info, int *id, void **address)
FORTRAN(free_shreg, SMI_Free_shreg(*id), int *id)
FORTRAN(adr_to_region, SMI_Adr_to_region(*adr, id), void **adr, int *id)
FORTRAN(init_shregmmu, SMI_Init_shregMMU(*id), int *id)
FORTRAN(imalloc, SMI_Imalloc((size_t)*size, *id, adr), int *size, int *id, void **adr)
FORTRAN(cmalloc, SMI_Cmalloc((size_t)*size, *id, adr), int *size, int *id, void **adr)
FORTRAN(ifree, SMI_Ifree(*adr), void **adr)
FORTRAN(cfree, SMI_Cfree(*adr), void **adr)
FORTRAN(switch_to_replication, SMI_Switch_to_replication(*id, *mode, *p1, *p2, *p3), int
	*id, int *mode, int *p1, int *p2, int *p3)
FORTRAN(switch_to_sharing, SMI_Switch_to_sharing(*id, *mode, *p1, *p2), int *id, int
	*mode, int *p1, int *p2)
FORTRAN(ensure_consistency, SMI_Ensure_consistency(*id, *mode, *p1, *p2), int *id, int
	*mode, int *p1, int *p2)
FORTRAN(mutex_init, SMI_Mutex_init(id), int *id)
FORTRAN(mutex_init_with_locality, SMI_Mutex_init_with_locality(id, *rank), int *id, int
	*rank)
FORTRAN(mutex_lock, SMI_Mutex_lock(*id), int *id)
FORTRAN(mutex_unlock, SMI_Mutex_unlock(*id), int *id)
FORTRAN(mutex_destroy, SMI_Mutex_destroy(*id), int *id)
FORTRAN(barrier, SMI_Barrier())
FORTRAN(get_timer, SMI_Get_timer(s, us), int *s, int *us)
FORTRAN(get_timespan, SMI_Get_timespan(s, us), int *s, int *us)
FORTRAN(get_iterations, SMI_Get_iterations(*id, status, low, high), int *id, int
	*status, int *low, int *high)
FORTRAN(loop_init, SMI_Loop_init(id, *low, *high, *mode), int *id, int *low, int *high,
	int *mode)
FORTRAN(loop_free, SMI_Loop_free(*id), int *id)
FORTRAN(loop_k_adaption_mode, SMI_Loop_k_adaption_mode(*id, *mode, *dist), int *id, int
	*mode, int *dist)
FORTRAN(evaluate_speed, SMI_Evaluate_speed(speeds), double *speeds)
FORTRAN(use_evaluated_speed, SMI_Use_evaluated_speed(*id), int *id)
FORTRAN(set_loop_param, SMI_Set_loop_param(*id, *k, *min_local, *min_remote, *max_local,
	*max_remote), int *id, double *k, int *min_local, int *min_remote, int *max_local, int
	*max_remote)
FORTRAN(set_loop_help_param, SMI_Set_loop_help_param(*id, *dist), int *id, int *dist)
FORTRAN(redirect_io, SMI_Redirect_IO(*err, errname, *out, outname, *in, inname), int
	*err, void *errname, int *out, void *outname, int *in, void *inname)
