/* lines_template.h - stores a stream of bytes past the caches as whole cache lines, wherever it begins
 *
 * Included after vector_<isa>.h. Three producers, three ways to add bytes: written behind the waiting ones (drain_lines), in a vector (put_column in
 * transpose_template.h; carry, with the waiting bytes in a register), or in memory (put_bytes in rows_template.h). One way for all would stage bytes that
 * registers hold, which took 1.5 to 3.1 times as long (24 MB by VBMI, Zen 4):
 *
 *     memory   ....|..ppppqq|qqqqqqqq|qqq.....|       p, q: bytes of two calls
 *                   ^ begin  ^ streamed  ^ fill: waits for the next call
 *                   plain store: bytes before begin belong to somebody else
 */
#pragma once

#include "../dms_lines.h"

static DMS_TARGET inline void DMS_NAME(stream_line)(char *to, const char *from)
{
    for (int i = 0; i < DMS_LINE; i += VECTOR)
        stream(to + i, load(from + i));
}

static DMS_TARGET inline void DMS_NAME(copy_line)(char *to, const char *from)
{
    for (int i = 0; i < DMS_LINE; i += VECTOR)
        store(to + i, load(from + i));
}

/* Stores the waiting line, which is full and lies at `from`. */
static DMS_TARGET inline void DMS_NAME(store_first)(dms_lines *w, const char *from)
{
    if (w->begin == 0)
        DMS_NAME(stream_line)(w->line, from);
    else
        dms_copy_short(w->line + w->begin, from + w->begin, DMS_LINE - w->begin);
    w->begin = 0;
}

/* Stores the full lines after the caller has written size bytes to bytes + fill. */
static inline DMS_TARGET void DMS_NAME(drain_lines)(dms_lines *w, size_t size)
{
    const size_t end = w->fill + size, at = end / DMS_LINE * DMS_LINE;
    w->fill = (uint32_t)(end - at);
    if (at == 0)
        return;
    DMS_NAME(store_first)(w, w->bytes);
    for (size_t line = DMS_LINE; line < at; line += DMS_LINE)
        DMS_NAME(stream_line)(w->line + line, w->bytes + line);
    DMS_NAME(copy_line)(w->bytes, w->bytes + at);
    w->line += at;
}

#if VECTOR == DMS_LINE

/* Returns the line that a vector completes: the waiting bytes, then the vector's first bytes. The vector's last
 * bytes, rotated to the beginning of a line, wait next. */
static DMS_TARGET DMS_ALWAYS_INLINE vector carry(vector v, vector rotation, __mmask64 filled, vector *waiting)
{
    const vector rotated = ROTATE(v, rotation), line = _mm512_mask_blend_epi8(filled, rotated, *waiting);
    *waiting = rotated;
    return line;
}

#endif
