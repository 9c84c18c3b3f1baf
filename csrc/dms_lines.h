/* dms_lines.h - the cache line that a stream of bytes has begun but not filled yet (kernels/lines_template.h) */
#pragma once

#include "dms_kernel.h"

typedef struct dms_lines {
    char *line;                         /* where bytes[0] goes: a multiple of 64 */
    char *bytes;                        /* 64-byte aligned; holds one line, plus the most that is written at once */
    uint32_t begin, fill;               /* bytes [begin, fill) wait to be stored; bytes before begin belong to
                                           another owner */
} dms_lines;

enum { DMS_PAGE = 4096 };

/* Returns the bytes after `at` that are left out so that size bytes, which are a page at most, lie in one page; memory for them needs size - 1 bytes more. A
 * store that two pages have to take waits for all stores past the caches before it: if one in 2 KB of staged rows did, 17 and 134 MB of [1,2,5] of 8 bytes
 * took 1.6 times as long. Where the stack lies decides it, so that every fourth process or so was slow (SSSE3, Zen 4). */
static inline size_t dms_left_out(const char *at, size_t size)
{
    const size_t left = DMS_PAGE - (uintptr_t)at % DMS_PAGE;
    return left < size && size <= DMS_PAGE ? left : 0;
}

/* Returns the line that contains address `to`, where a stream begins, with no bytes in it yet. bytes: the memory to
 * collect them in. */
static inline dms_lines dms_start_lines(char *to, char *bytes)
{
    dms_lines w;
    w.begin = w.fill = (uint32_t)((uintptr_t)to % DMS_LINE);
    w.line = to - w.begin;
    w.bytes = bytes;
    return w;
}

/* Stores the waiting bytes. */
static inline void dms_finish_lines(const dms_lines *w)
{
    if (w->fill > w->begin)
        dms_copy_short(w->line + w->begin, w->bytes + w->begin, w->fill - w->begin);
}
