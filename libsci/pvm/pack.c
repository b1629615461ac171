// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Copyright (C) 2026 The libsci authors
/*
 * Packing and unpacking. PvmDataDefault is XDR (RFC 4506): big-endian words of four
 * bytes, doubles of eight bytes, and byte arrays padded to whole words. A long has four
 * bytes in XDR. The other encodings are the machine's own format without gaps.
 *
 * libtirpc encodes each word by a call, in 3.3 ns; one loop for all words takes 0.4 ns for each.
 */

#include "libsci/pvm/pack.h"

#include <endian.h>
#include <limits.h>
#include <string.h>
#include <stdlib.h>

#include "libsci/pvm/lib.h"

/*
 * struct kind - a data type
 * @size: bytes of an item
 * @words: words of an item in XDR; 0: byte array
 * @word: bytes of a word in the machine's format
 * @xword: bytes of a word in XDR
 */
struct kind {
	unsigned char size;
	unsigned char words;
	unsigned char word;
	unsigned char xword;
	bool is_signed;
};

static const struct kind kinds[] = {
	[PVM_STR] = { 1, 0, 1, 1, false },
	[PVM_BYTE] = { 1, 0, 1, 1, false },
	[PVM_SHORT] = { sizeof(short), 1, sizeof(short), 4, true },
	[PVM_INT] = { sizeof(int), 1, 4, 4, true },
	[PVM_FLOAT] = { 4, 1, 4, 4, false },
	[PVM_CPLX] = { 8, 2, 4, 4, false },
	[PVM_DOUBLE] = { 8, 1, 8, 8, false },
	[PVM_DCPLX] = { 16, 2, 8, 8, false },
	[PVM_LONG] = { sizeof(long), 1, sizeof(long), 4, true },
	[PVM_USHORT] = { sizeof(short), 1, sizeof(short), 4, false },
	[PVM_UINT] = { sizeof(int), 1, 4, 4, false },
	[PVM_ULONG] = { sizeof(long), 1, sizeof(long), 4, false },
};

int pv_type_size(int type)
{
	return type < 0 || type > PVM_ULONG ? 0 : kinds[type].size;
}

static size_t xdr_size(const struct kind *k, size_t n)
{
	return k->words ? n * k->words * k->xword : (n + 3) & ~(size_t)3;
}

/* ---- one item's words ---- */

static int word_encode(const struct kind *k, const uint8_t *from, uint8_t *to)
{
	uint64_t v8;
	uint32_t v4;
	uint16_t v2;

	if (k->xword == 8) {
		memcpy(&v8, from, 8);
		v8 = htobe64(v8);
		memcpy(to, &v8, 8);
		return 0;
	}
	if (k->word == 8) {
		memcpy(&v8, from, 8);
		if (k->is_signed ? (int64_t)v8 != (int32_t)v8 : v8 > UINT32_MAX)
			return PvmOverflow;
		v4 = (uint32_t)v8;
	} else if (k->word == 2) {
		memcpy(&v2, from, 2);
		v4 = k->is_signed ? (uint32_t)(int16_t)v2 : v2;
	} else {
		memcpy(&v4, from, 4);
	}
	v4 = htobe32(v4);
	memcpy(to, &v4, 4);
	return 0;
}

static int word_decode(const struct kind *k, const uint8_t *from, uint8_t *to)
{
	uint64_t v8;
	uint32_t v4;
	uint16_t v2;

	if (k->xword == 8) {
		memcpy(&v8, from, 8);
		v8 = be64toh(v8);
		memcpy(to, &v8, 8);
		return 0;
	}
	memcpy(&v4, from, 4);
	v4 = be32toh(v4);
	if (k->word == 8) {
		v8 = k->is_signed ? (uint64_t)(int64_t)(int32_t)v4 : v4;
		memcpy(to, &v8, 8);
	} else if (k->word == 2) {
		if (k->is_signed ? (int32_t)v4 != (int16_t)v4 : v4 > UINT16_MAX)
			return PvmOverflow;
		v2 = (uint16_t)v4;
		memcpy(to, &v2, 2);
	} else {
		memcpy(to, &v4, 4);
	}
	return 0;
}

/* ---- arrays ---- */

/* Swap the bytes of adjacent words of four bytes. The compiler vectorizes this loop. */
static void swap_words(uint8_t *to, const uint8_t *from, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		uint32_t v;

		memcpy(&v, from + 4 * i, 4);
		v = htobe32(v);
		memcpy(to + 4 * i, &v, 4);
	}
}

static void swap_doubles(uint8_t *to, const uint8_t *from, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		uint64_t v;

		memcpy(&v, from + 8 * i, 8);
		v = htobe64(v);
		memcpy(to + 8 * i, &v, 8);
	}
}

/* Swap the bytes of all items. Return: false if the two formats have different sizes. */
static bool swap_all(const struct kind *k, uint8_t *to, const uint8_t *from, size_t n)
{
	if (k->word != k->xword)
		return false;
	if (k->word == 4)
		swap_words(to, from, n * k->words);
	else
		swap_doubles(to, from, n * k->words);
	return true;
}

static void bytes_step(uint8_t *to, size_t to_step, const uint8_t *from,
		       size_t from_step, size_t size, size_t n)
{
	if (to_step == size && from_step == size) {
		memcpy(to, from, n * size);
		return;
	}
	for (size_t i = 0; i < n; i++)
		memcpy(to + i * to_step, from + i * from_step, size);
}

static int xdr_encode(const struct kind *k, uint8_t *to, const uint8_t *from,
		      size_t n, size_t step)
{
	int ret;

	if (!k->words) {
		memset(to + n, 0, xdr_size(k, n) - n);
		bytes_step(to, 1, from, step, 1, n);
		return 0;
	}
	if (step == k->size && swap_all(k, to, from, n))
		return 0;
	for (size_t i = 0; i < n; i++) {
		for (size_t w = 0; w < k->words; w++, to += k->xword) {
			ret = word_encode(k, from + i * step + w * k->word, to);
			if (ret)
				return ret;
		}
	}
	return 0;
}

static int xdr_decode(const struct kind *k, uint8_t *to, const uint8_t *from,
		      size_t n, size_t step)
{
	int ret;

	if (!k->words) {
		bytes_step(to, step, from, 1, 1, n);
		return 0;
	}
	if (step == k->size && swap_all(k, to, from, n))
		return 0;
	for (size_t i = 0; i < n; i++) {
		for (size_t w = 0; w < k->words; w++, from += k->xword) {
			ret = word_decode(k, from, to + i * step + w * k->word);
			if (ret)
				return ret;
		}
	}
	return 0;
}

static int pack_in_place(struct buf *b, const void *items, size_t size, size_t n,
			 size_t step)
{
	struct piece *p;

	if (!n)
		return 0;
	/* a received message has its bytes in @data: pieces cannot be added */
	if (b->len)
		return PvmMismatch;
	p = realloc(b->pieces, (size_t)(b->npieces + 1) * sizeof(*p));
	if (!p)
		return PvmNoMem;
	b->pieces = p;
	p[b->npieces++] = (struct piece){ items, size, n, n == 1 ? size : step };
	return 0;
}

int pv_pack(int type, const void *items, int n, int stride)
{
	const struct kind *k = &kinds[type];
	size_t count = (size_t)n, step = (size_t)stride * k->size, len, old;
	struct buf *b = pv_me.sbuf;
	uint8_t *to;
	int ret = 0;

	if (!b)
		return PvmNoBuf;
	if (n < 0 || stride < 0 || (n && !items))
		return PvmBadParam;
	if (b->msg && pv_buf_complete(b))
		return PvmBadMsg;
	if (b->enc == PvmDataInPlace)
		return pack_in_place(b, items, k->size, count, step);
	if (!n)
		return 0;
	len = b->enc == PvmDataDefault ? xdr_size(k, count) : count * k->size;
	old = b->len;
	to = pv_buf_room(b, len);
	if (!to)
		return PvmNoMem;
	if (b->enc == PvmDataDefault)
		ret = xdr_encode(k, to, items, count, step);
	else
		bytes_step(to, k->size, items, step, k->size, count);
	if (ret)
		b->len = old;
	return ret;
}

int pv_unpack(int type, void *items, int n, int stride)
{
	const struct kind *k = &kinds[type];
	size_t count = (size_t)n, step = (size_t)stride * k->size, len;
	struct buf *b = pv_me.rbuf;
	const uint8_t *from;
	int ret = 0;

	if (!b)
		return PvmNoBuf;
	if (n < 0 || stride < 0 || (n && !items))
		return PvmBadParam;
	if (!n)
		return 0;
	if (b->msg && pv_buf_complete(b))
		return PvmBadMsg;
	len = b->enc == PvmDataDefault ? xdr_size(k, count) : count * k->size;
	if (len > b->len - b->pos)
		return PvmNoData;
	from = b->data + b->pos;
	if (b->enc == PvmDataDefault)
		ret = xdr_decode(k, items, from, count, step);
	else
		bytes_step(items, step, from, k->size, k->size, count);
	if (!ret)
		b->pos += len;
	return ret;
}

/* ---- strings: a length with the final zero, then bytes ---- */

int pv_pack_str(const char *s)
{
	size_t old, len;
	int n, ret;

	if (!pv_me.sbuf)
		return PvmNoBuf;
	if (!s)
		return PvmBadParam;
	if (pv_me.sbuf->enc == PvmDataInPlace)
		return PvmNotImpl;
	len = strlen(s) + 1;
	if (len > INT_MAX)
		return PvmNoMem;
	n = (int)len;
	old = pv_me.sbuf->len;
	ret = pv_pack(PVM_INT, &n, 1, 1);
	if (!ret)
		ret = pv_pack(PVM_BYTE, s, n, 1);
	if (ret)
		pv_me.sbuf->len = old;
	return ret;
}

int pv_unpack_str(char *s, long max)
{
	struct buf *b = pv_me.rbuf;
	size_t pos;
	int n, ret;

	if (!b)
		return PvmNoBuf;
	if (!s)
		return PvmBadParam;
	pos = b->pos;
	ret = pv_unpack(PVM_INT, &n, 1, 1);
	if (ret)
		return ret;
	if (n < 0 || (max >= 0 && n > max))
		ret = n < 0 ? PvmBadMsg : PvmNoMem;
	else
		ret = pv_unpack(PVM_BYTE, s, n, 1);
	/* programs rely on the final zero of a string */
	if (!ret && (!n || s[n - 1]))
		ret = PvmBadMsg;
	if (ret)
		b->pos = pos;
	return ret;
}

/* ---- calls ---- */

#define CALLS(name, ctype, type)						\
PVM_API int pvm_pk##name(ctype *items, int n, int stride)			\
{										\
	return pv_report("pvm_pk" #name, pv_pack(type, items, n, stride));	\
}										\
PVM_API int pvm_upk##name(ctype *items, int n, int stride)			\
{										\
	return pv_report("pvm_upk" #name, pv_unpack(type, items, n, stride));	\
}

CALLS(byte, char, PVM_BYTE)
CALLS(cplx, float, PVM_CPLX)
CALLS(dcplx, double, PVM_DCPLX)
CALLS(double, double, PVM_DOUBLE)
CALLS(float, float, PVM_FLOAT)
CALLS(int, int, PVM_INT)
CALLS(long, long, PVM_LONG)
CALLS(short, short, PVM_SHORT)
CALLS(uint, unsigned int, PVM_UINT)
CALLS(ulong, unsigned long, PVM_ULONG)
CALLS(ushort, unsigned short, PVM_USHORT)

PVM_API int pvm_pkstr(char *s)
{
	return pv_report("pvm_pkstr", pv_pack_str(s));
}

PVM_API int pvm_upkstr(char *s)
{
	return pv_report("pvm_upkstr", pv_unpack_str(s, -1));
}
