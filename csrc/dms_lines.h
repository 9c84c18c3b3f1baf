/* dms_lines.h - what a stream of bytes has of a line of memory that is not full yet (kernels/lines_template.h) */
#pragma once

#include "dms_kernel.h"

typedef struct dms_lines {
    char *line;                         /* where bytes[0] goes: a multiple of 64 */
    char *bytes;                        /* a multiple of 64; room for a line, or for one more than is written there at once */
    uint32_t begin, fill;               /* bytes [begin, fill) wait; those before begin are not ours */
} dms_lines;

static inline dms_lines dms_start_lines(char *to, char *bytes)
{
    dms_lines w;
    w.begin = w.fill = (uint32_t)((uintptr_t)to % DMS_LINE);
    w.line = to - w.begin;
    w.bytes = bytes;
    return w;
}

/* Stores what waits. */
static inline void dms_finish_lines(const dms_lines *w)
{
    if (w->fill > w->begin)
        dms_copy_short(w->line + w->begin, w->bytes + w->begin, w->fill - w->begin);
}
