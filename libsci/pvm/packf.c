// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/*
 * Packing by a format: %[count][.stride][h|l|u]...letter with the letters c, d, f, x, s, and %+ for
 * pvm_initsend(). Count and stride are numbers or '*'. Without count and stride, packing takes a
 * value, else an address. Unpacking always takes an address.
 */

#include "libsci/pvm/lib.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "libsci/pvm/pack.h"

/* Some ABIs define va_list as an array: a pointer to it needs a struct. */
struct args {
	va_list ap;
};

struct spec {
	char letter;
	bool is_short, is_long, is_unsigned;
	bool array;
	int count;
	int stride;
};

/* Read a number or '*'. Return: false: the format has neither at this place. */
static bool spec_number(const char **fmt, struct args *args, int *value)
{
	if (**fmt == '*') {
		(*fmt)++;
		*value = va_arg(args->ap, int);
		return true;
	}
	if (!isdigit((unsigned char)**fmt))
		return false;
	for (*value = 0; isdigit((unsigned char)**fmt); (*fmt)++)
		*value = *value > 99999999 ? 999999999 : *value * 10 + (**fmt - '0');
	return true;
}

/* Read the specification after '%'. Return: 0 or PvmBadParam. */
static int spec_read(const char **fmt, struct args *args, struct spec *s)
{
	*s = (struct spec){ .count = 1, .stride = 1 };
	s->array = spec_number(fmt, args, &s->count);
	if (**fmt == '.') {
		(*fmt)++;
		s->array = true;
		if (!spec_number(fmt, args, &s->stride))
			return PvmBadParam;
	}
	for (;; (*fmt)++) {
		if (**fmt == 'h')
			s->is_short = true;
		else if (**fmt == 'l')
			s->is_long = true;
		else if (**fmt == 'u')
			s->is_unsigned = true;
		else
			break;
	}
	s->letter = **fmt;
	if (s->letter)
		(*fmt)++;
	return strchr("+cdfxs", s->letter) && s->letter ? 0 : PvmBadParam;
}

static int spec_type(const struct spec *s)
{
	switch (s->letter) {
	case 'c':
		return PVM_BYTE;
	case 'f':
		return s->is_long ? PVM_DOUBLE : PVM_FLOAT;
	case 'x':
		return s->is_long ? PVM_DCPLX : PVM_CPLX;
	default:
		if (s->is_long)
			return s->is_unsigned ? PVM_ULONG : PVM_LONG;
		if (s->is_short)
			return s->is_unsigned ? PVM_USHORT : PVM_SHORT;
		return s->is_unsigned ? PVM_UINT : PVM_INT;
	}
}

static int pack_value(const struct spec *s, struct args *args)
{
	int type = spec_type(s);
	union {
		char c;
		short h;
		int i;
		long l;
		float f;
		double d;
	} v;

	switch (type) {
	case PVM_BYTE:
		v.c = (char)va_arg(args->ap, int);
		break;
	case PVM_SHORT:
	case PVM_USHORT:
		v.h = (short)va_arg(args->ap, int);
		break;
	case PVM_LONG:
	case PVM_ULONG:
		v.l = va_arg(args->ap, long);
		break;
	case PVM_FLOAT:
		v.f = (float)va_arg(args->ap, double);
		break;
	case PVM_DOUBLE:
		v.d = va_arg(args->ap, double);
		break;
	case PVM_CPLX:
	case PVM_DCPLX:
		/* complex arguments are passed by address */
		return pv_pack(type, va_arg(args->ap, void *), 1, 1);
	default:
		v.i = va_arg(args->ap, int);
		break;
	}
	/* in-place data would outlive @v */
	if (pv_me.sbuf && pv_me.sbuf->enc == PvmDataInPlace)
		return PvmNotImpl;
	return pv_pack(type, &v, 1, 1);
}

static int pack_spec(const struct spec *s, struct args *args)
{
	int ret;

	if (s->letter == '+') {
		ret = pvm_initsend(va_arg(args->ap, int));
		return ret < 0 ? ret : 0;
	}
	if (s->letter == 's')
		return pv_pack_str(va_arg(args->ap, char *));
	if (!s->array)
		return pack_value(s, args);
	return pv_pack(spec_type(s), va_arg(args->ap, void *), s->count, s->stride);
}

/* Unpack one item of a format. The count of a string is the size of its buffer. */
static int unpack_spec(const struct spec *s, struct args *args)
{
	if (s->letter == '+' || s->count < 0)
		return PvmBadParam;
	if (s->letter == 's')
		return pv_unpack_str(va_arg(args->ap, char *), s->array ? s->count : -1);
	return pv_unpack(spec_type(s), va_arg(args->ap, void *), s->count, s->stride);
}

static int format_run(const char *fmt, va_list ap,
		      int (*run)(const struct spec *, struct args *))
{
	struct args args;
	struct spec s;
	int ret = fmt ? 0 : PvmBadParam;

	va_copy(args.ap, ap);
	while (!ret && *fmt) {
		if (*fmt++ != '%')
			continue;
		ret = spec_read(&fmt, &args, &s);
		if (!ret)
			ret = run(&s, &args);
	}
	va_end(args.ap);
	return ret;
}

PVM_API int pvm_vpackf(const char *fmt, va_list ap);
PVM_API int pvm_vunpackf(const char *fmt, va_list ap);

PVM_API int pvm_vpackf(const char *fmt, va_list ap)
{
	return pv_report("pvm_packf", format_run(fmt, ap, pack_spec));
}

PVM_API int pvm_vunpackf(const char *fmt, va_list ap)
{
	return pv_report("pvm_unpackf", format_run(fmt, ap, unpack_spec));
}

/* ---- messages inside messages ---- */

static int pack_message(int mid, bool whole)
{
	struct buf *b = pv_buf_find(mid), *plain;
	int head[5], ret;

	if (mid <= 0)
		return PvmBadParam;
	if (!b)
		return PvmNoSuchBuf;
	if (!pv_me.sbuf)
		return PvmNoBuf;
	if (b == pv_me.sbuf)
		return PvmBadParam;
	/* the program may free @b before it sends the in-place data */
	if (pv_me.sbuf->enc == PvmDataInPlace)
		return PvmNotImpl;
	if (b->msg && pv_buf_complete(b))
		return PvmBadMsg;
	plain = b->npieces ? pv_buf_copy(b) : b;
	if (!plain)
		return PvmNoMem;
	head[0] = (int)plain->len;
	head[1] = b->enc;
	head[2] = b->info.ctx;
	head[3] = b->info.tag;
	head[4] = b->info.src;
	ret = whole ? pv_pack(PVM_INT, head, 5, 1) : 0;
	ret = ret ? ret : pv_pack(PVM_BYTE, plain->data, (int)plain->len, 1);
	if (plain != b)
		pv_buf_free(plain);
	return ret;
}

PVM_API int pvm_pkmesg(int mid)
{
	return pv_report("pvm_pkmesg", pack_message(mid, true));
}

PVM_API int pvm_pkmesgbody(int mid)
{
	return pv_report("pvm_pkmesgbody", pack_message(mid, false));
}

PVM_API int pvm_upkmesg(void)
{
	int head[5], mid, ret = pv_unpack(PVM_INT, head, 5, 1);
	struct buf *b;
	uint8_t *room;

	if (ret)
		return lpvmerr("pvm_upkmesg", ret);
	if (head[0] < 0 || (size_t)head[0] > pv_me.rbuf->len || head[1] < 0 || head[1] > 2)
		return lpvmerr("pvm_upkmesg", PvmBadMsg);
	b = pv_buf_new(head[1]);
	room = b ? pv_buf_room(b, (size_t)head[0]) : NULL;
	ret = b && (room || !head[0]) ? pv_unpack(PVM_BYTE, room, head[0], 1) : PvmNoMem;
	mid = ret ? ret : pv_buf_name(b);
	if (mid < 0) {
		pv_buf_free(b);
		return lpvmerr("pvm_upkmesg", mid);
	}
	b->info.ctx = head[2];
	b->info.tag = head[3];
	b->info.src = head[4];
	return mid;
}
