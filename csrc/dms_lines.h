/* dms_lines.h - the cache line that a stream of bytes has begun but not filled yet (kernels/lines_template.h) */
#pragma once

#include "dms_kernel.h"

typedef struct dms_lines {
    char *line;                         /* where bytes[0] goes: a multiple of 64 */
    char *bytes;                        /* 64-byte aligned; holds one line, plus the most that is written at once */
    uint32_t begin, fill;               /* bytes [begin, fill) wait to be stored; bytes before begin belong to
                                           another owner */
} dms_lines;

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
