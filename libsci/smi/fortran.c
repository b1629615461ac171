// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/*
 * Fortran names are in lower case, with smi_ in front and _ behind. All arguments are references.
 * The last argument returns the error code. A pointer is an integer of the same size.
 */
#include "libsci/smi/internal.h"

/*
 * FORTRAN() - define the Fortran name of a C call
 * @call: the C call; the parameters follow
 */
#define FORTRAN(name, call, ...)						\
	void smi_##name##_(__VA_ARGS__);					\
	SMI_API void smi_##name##_(__VA_ARGS__)					\
	{									\
		*error = call;							\
	}

FORTRAN(init, SMI_Init(NULL, NULL), int *error)
FORTRAN(finalize, SMI_Finalize(), int *error)
FORTRAN(proc_rank, SMI_Proc_rank(rank), int *rank, int *error)
FORTRAN(proc_size, SMI_Proc_size(size), int *size, int *error)
FORTRAN(node_rank, SMI_Node_rank(rank), int *rank, int *error)
FORTRAN(node_size, SMI_Node_size(size), int *size, int *error)
FORTRAN(proc_to_node, SMI_Proc_to_node(*proc, node), int *proc, int *node, int *error)
FORTRAN(page_size, SMI_Page_size(size), int *size, int *error)
FORTRAN(create_shreg, SMI_Create_shreg(*type, info, id, address), int *type,
	smi_region_info_t *info, int *id, void **address, int *error)
FORTRAN(free_shreg, SMI_Free_shreg(*id), int *id, int *error)
FORTRAN(adr_to_region, SMI_Adr_to_region(*adr, id), void **adr, int *id, int *error)
FORTRAN(init_shregmmu, SMI_Init_shregMMU(*id), int *id, int *error)
FORTRAN(imalloc, SMI_Imalloc((size_t)*size, *id, adr), int *size, int *id, void
	**adr, int *error)
FORTRAN(cmalloc, SMI_Cmalloc((size_t)*size, *id, adr), int *size, int *id, void
	**adr, int *error)
FORTRAN(ifree, SMI_Ifree(*adr), void **adr, int *error)
FORTRAN(cfree, SMI_Cfree(*adr), void **adr, int *error)
FORTRAN(switch_to_replication, SMI_Switch_to_replication(*id, *mode, *p1, *p2, *p3),
	int *id, int *mode, int *p1, int *p2, int *p3, int *error)
FORTRAN(switch_to_sharing, SMI_Switch_to_sharing(*id, *mode, *p1, *p2), int *id, int
	*mode, int *p1, int *p2, int *error)
FORTRAN(ensure_consistency, SMI_Ensure_consistency(*id, *mode, *p1, *p2), int *id,
	int *mode, int *p1, int *p2, int *error)
FORTRAN(mutex_init, SMI_Mutex_init(id), int *id, int *error)
FORTRAN(mutex_init_with_locality, SMI_Mutex_init_with_locality(id, *rank), int *id,
	int *rank, int *error)
FORTRAN(mutex_lock, SMI_Mutex_lock(*id), int *id, int *error)
FORTRAN(mutex_unlock, SMI_Mutex_unlock(*id), int *id, int *error)
FORTRAN(mutex_destroy, SMI_Mutex_destroy(*id), int *id, int *error)
FORTRAN(barrier, SMI_Barrier(), int *error)
FORTRAN(get_timer, SMI_Get_timer(s, us), int *s, int *us, int *error)
FORTRAN(get_timespan, SMI_Get_timespan(s, us), int *s, int *us, int *error)
FORTRAN(get_iterations, SMI_Get_iterations(*id, status, low, high), int *id, int
	*status, int *low, int *high, int *error)
FORTRAN(loop_init, SMI_Loop_init(id, *low, *high, *mode), int *id, int *low, int
	*high, int *mode, int *error)
FORTRAN(loop_free, SMI_Loop_free(*id), int *id, int *error)
FORTRAN(loop_k_adaption_mode, SMI_Loop_k_adaption_mode(*id, *mode, *dist), int *id,
	int *mode, int *dist, int *error)
FORTRAN(evaluate_speed, SMI_Evaluate_speed(speeds), double *speeds, int *error)
FORTRAN(use_evaluated_speed, SMI_Use_evaluated_speed(*id), int *id, int *error)
FORTRAN(set_loop_param, SMI_Set_loop_param(*id, *k, *min_local, *min_remote,
	*max_local, *max_remote), int *id, double *k, int *min_local, int *min_remote, int
	*max_local, int *max_remote, int *error)
FORTRAN(set_loop_help_param, SMI_Set_loop_help_param(*id, *dist), int *id, int *dist,
	int *error)
FORTRAN(redirect_io, SMI_Redirect_IO(*err, errname, *out, outname, *in, inname), int
	*err, void *errname, int *out, void *outname, int *in, void *inname, int *error)
