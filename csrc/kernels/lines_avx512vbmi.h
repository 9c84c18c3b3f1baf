/* lines_avx512vbmi.h - vectors of a stream of bytes, stored as whole lines of memory wherever the stream begins */
#ifndef LINES_AVX512VBMI_H
#define LINES_AVX512VBMI_H

#include "mask_avx512.h"

typedef struct line_writer {
    char *line;                         /* the next one to be stored: a multiple of 64 */
    size_t shift;                       /* where the stream's vectors begin within a line */
    size_t begin;                       /* bytes of this line that are not ours: shift at first, then 0 */
    size_t pending;                     /* bytes of previous that no line has yet */
    __m512i previous, rotation;
} line_writer;

/* What is left of size bytes for the vector with this index. */
static inline size_t left_over(size_t size, size_t index)
{
    const size_t before = index * DMS_LINE;
    return size <= before ? 0 : size - before < DMS_LINE ? size - before : DMS_LINE;
}

static DMS_TARGET_AVX512VBMI inline line_writer start_lines(char *to)
{
    static const uint8_t iota[DMS_LINE] = {0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21,
                                           22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 32, 33, 34, 35, 36, 37, 38, 39, 40, 41, 42, 43,
                                           44, 45, 46, 47, 48, 49, 50, 51, 52, 53, 54, 55, 56, 57, 58, 59, 60, 61, 62, 63};
    line_writer w;
    w.shift = w.begin = w.pending = (uintptr_t)to & (DMS_LINE - 1);
    w.line = to - w.shift;
    w.previous = _mm512_setzero_si512();
    w.rotation = _mm512_add_epi8(_mm512_loadu_si512(iota), _mm512_set1_epi8((char)(DMS_LINE - w.shift)));
    return w;
}

static DMS_TARGET_AVX512VBMI DMS_ALWAYS_INLINE void store_line(char *line, __m512i bytes, bool streamed)
{
    if (streamed)
        _mm512_stream_si512((void *)line, bytes);
    else
        _mm512_store_si512((void *)line, bytes);
}

/* Stores the first end bytes of a line but those that are not ours. */
static DMS_TARGET_AVX512VBMI inline void store_some(line_writer *w, __m512i bytes, size_t end)
{
    _mm512_mask_storeu_epi8((void *)w->line, first_bytes(end) & ~first_bytes(w->begin), bytes);
}

/* Appends size bytes; less than 64 only at the end of the stream. */
static DMS_TARGET_AVX512VBMI inline void put_bytes(line_writer *w, __m512i bytes, size_t size)
{
    if (size == 0)
        return;
    const size_t end = w->pending + size;
    if (end < DMS_LINE) {               /* the whole of what is left: pending bytes of previous, then these */
        w->previous = _mm512_permutex2var_epi8(w->previous, w->rotation, bytes);
        store_some(w, w->previous, end);
        w->begin = w->pending = 0;
        return;
    }
    store_some(w, _mm512_permutex2var_epi8(w->previous, w->rotation, bytes), DMS_LINE);
    w->line += DMS_LINE;
    w->begin = 0;
    w->previous = bytes;
    w->pending = end - DMS_LINE;
}

static DMS_TARGET_AVX512VBMI inline void finish_lines(line_writer *w)
{
    if (w->pending > w->begin)
        store_some(w, _mm512_permutex2var_epi8(w->previous, w->rotation, w->previous), w->pending);
}
#endif
