/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Copyright (C) 2026 The libsci authors */
/*
 * Calls that can be traced. Each is defined as plain_NAME. trace_calls.c defines pvm_NAME, which
 * records an event and calls plain_NAME. Calls inside the library use plain_NAME, so that they are
 * not recorded.
 */
#ifndef LIBSCI_PVM_TRACED_H
#define LIBSCI_PVM_TRACED_H

#define pvm_addhosts plain_addhosts
#define pvm_addmhf plain_addmhf
#define pvm_archcode plain_archcode
#define pvm_bufinfo plain_bufinfo
#define pvm_config plain_config
#define pvm_delhosts plain_delhosts
#define pvm_delinfo plain_delinfo
#define pvm_delmhf plain_delmhf
#define pvm_exit plain_exit
#define pvm_freebuf plain_freebuf
#define pvm_freecontext plain_freecontext
#define pvm_getcontext plain_getcontext
#define pvm_getfds plain_getfds
#define pvm_getmboxinfo plain_getmboxinfo
#define pvm_getminfo plain_getminfo
#define pvm_getopt plain_getopt
#define pvm_getrbuf plain_getrbuf
#define pvm_getsbuf plain_getsbuf
#define pvm_halt plain_halt
#define pvm_initsend plain_initsend
#define pvm_kill plain_kill
#define pvm_mcast plain_mcast
#define pvm_mkbuf plain_mkbuf
#define pvm_mstat plain_mstat
#define pvm_mytid plain_mytid
#define pvm_newcontext plain_newcontext
#define pvm_notify plain_notify
#define pvm_nrecv plain_nrecv
#define pvm_parent plain_parent
#define pvm_pkbyte plain_pkbyte
#define pvm_pkcplx plain_pkcplx
#define pvm_pkdcplx plain_pkdcplx
#define pvm_pkdouble plain_pkdouble
#define pvm_pkfloat plain_pkfloat
#define pvm_pkint plain_pkint
#define pvm_pklong plain_pklong
#define pvm_pkshort plain_pkshort
#define pvm_pkstr plain_pkstr
#define pvm_pkuint plain_pkuint
#define pvm_pkulong plain_pkulong
#define pvm_pkushort plain_pkushort
#define pvm_precv plain_precv
#define pvm_probe plain_probe
#define pvm_psend plain_psend
#define pvm_pstat plain_pstat
#define pvm_putinfo plain_putinfo
#define pvm_recv plain_recv
#define pvm_recvf plain_recvf
#define pvm_recvinfo plain_recvinfo
#define pvm_reg_hoster plain_reg_hoster
#define pvm_reg_rm plain_reg_rm
#define pvm_reg_tasker plain_reg_tasker
#define pvm_reg_tracer plain_reg_tracer
#define pvm_send plain_send
#define pvm_sendsig plain_sendsig
#define pvm_setcontext plain_setcontext
#define pvm_setminfo plain_setminfo
#define pvm_setopt plain_setopt
#define pvm_setrbuf plain_setrbuf
#define pvm_setsbuf plain_setsbuf
#define pvm_siblings plain_siblings
#define pvm_spawn plain_spawn
#define pvm_tasks plain_tasks
#define pvm_trecv plain_trecv
#define pvm_upkbyte plain_upkbyte
#define pvm_upkcplx plain_upkcplx
#define pvm_upkdcplx plain_upkdcplx
#define pvm_upkdouble plain_upkdouble
#define pvm_upkfloat plain_upkfloat
#define pvm_upkint plain_upkint
#define pvm_upklong plain_upklong
#define pvm_upkshort plain_upkshort
#define pvm_upkstr plain_upkstr
#define pvm_upkuint plain_upkuint
#define pvm_upkulong plain_upkulong
#define pvm_upkushort plain_upkushort

#endif
