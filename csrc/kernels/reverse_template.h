/* reverse_template.h - elements in reverse order in the source
 *
 *     source   ....hgfedcba            source points to a
 *     target   abcdefgh....
 *
 * Included after vector_<isa>.h. Plain loops with constant steps, which compilers vectorize by shuffles. When streaming, each vector is
 * reversed by a shuffle and stored as part of a whole cache line; the ends of a row wait in the first-level cache until their lines are full. 2048 x 2048
 * elements of 4 bytes took 0.6 of the time of staging all bytes there (Zen 5).
 */
#include "lines_template.h"

/* Copies count elements in reverse order, the first one from `from`. size is a constant. */
static DMS_TARGET DMS_ALWAYS_INLINE void reverse_piece(char *to, const char *from, size_t count, size_t size)
{
    from -= (count - 1) * size;         /* the last element */
    for (size_t i = 0; i < count; i++)
        memcpy(to + i * size, from + (count - 1 - i) * size, size);
}

/* Returns the table that reverses the order of the elements in a lane. */
static DMS_TARGET DMS_ALWAYS_INLINE vector backwards(size_t size)
{
    uint8_t table[16];
    for (size_t t = 0; t < 16; t++)
        table[t] = (uint8_t)(16 - size - t / size * size + t % size);
    return load_table(table);
}

/* True if rows of `bytes` bytes are streamed: they are adjacent in the target, or long. */
static inline bool makes_lines(const dms_nest *nest, uint64_t bytes)
{
    const bool follow = nest->rank < 2 || nest->loops[nest->rank - 2].target_stride == (int64_t)bytes;
    return dms_is_streamed(&nest->stores) && bytes >= (follow ? DMS_REVERSED_STREAMED : DMS_SHORTEST_STREAM);
}

/* Returns the distance to prefetch, as a wrapped number: backwards in a long row, or to one of the next rows. It is
 * not the profile's distance, which is for ascending streams, which hardware also prefetches. */
static inline uintptr_t reversed_ahead(const dms_nest *nest, uint64_t bytes)
{
    const uintptr_t ahead = nest->stores.page_mask > 0 ? DMS_NEAR_AHEAD : DMS_LINES_AHEAD;
    return nest->rank < 2 || ahead < bytes ? 0 - ahead : (uintptr_t)nest->loops[nest->rank - 2].source_stride * (uintptr_t)(ahead / bytes);
}

/* Appends part of a row: at most what a staged piece holds. */
static DMS_TARGET DMS_ALWAYS_INLINE void put_end(dms_lines *w, const char *from, size_t bytes, size_t size)
{
    if (bytes == 0)
        return;
    reverse_piece(w->bytes + w->fill, from, bytes / size, size);
    DMS_NAME(drain_lines)(w, bytes);
}

/* Appends a row whose cache lines begin with an element. */
static DMS_TARGET DMS_ALWAYS_INLINE void put_reversed(dms_lines *w, const char *from, uint64_t bytes, size_t size, vector order, uintptr_t ahead)
{
    const size_t to_line = (DMS_LINE - w->fill) % DMS_LINE, head = bytes < to_line ? (size_t)bytes : to_line;
    put_end(w, from, head, size);
    from -= head;
    for (bytes -= head; bytes >= DMS_LINE; bytes -= DMS_LINE, from -= DMS_LINE, w->line += DMS_LINE) {
        const char *const last = from + size - 16;      /* the sixteen bytes that are read first */
        DMS_PREFETCH_FAR((uintptr_t)from + ahead);
        for (int i = 0; i < DMS_LINE; i += VECTOR)
            stream(w->line + i, shuffle_bytes(load_lanes(last - i, -16), order, UINT64_MAX));
    }
    put_end(w, from, (size_t)bytes, size);
}

/* Appends a row whose cache lines begin within an element. */
static DMS_TARGET DMS_ALWAYS_INLINE void put_cut(dms_lines *w, const char *from, uint64_t bytes, size_t size, uintptr_t ahead)
{
    for (uint64_t done = 0, piece; done < bytes; done += piece) {
        piece = bytes - done < DMS_REVERSED_PIECE ? bytes - done : DMS_REVERSED_PIECE;
        for (uint64_t at = 0; at < piece; at += DMS_LINE)
            DMS_PREFETCH_FAR((uintptr_t)(from - done - at) + ahead);
        put_end(w, from - done, (size_t)piece, size);
    }
}

/* Streams all rows. The partial line at the end of a row waits for the next row if the two are adjacent. */
static DMS_TARGET DMS_ALWAYS_INLINE void stream_rows(const dms_nest *nest, char *target, const char *source, size_t size)
{
    const uint64_t bytes = nest->loops[nest->rank - 1].size * size;
    const uintptr_t ahead = reversed_ahead(nest, bytes);
    const vector order = backwards(size);
    enum { SIZE = DMS_REVERSED_PIECE + 2 * DMS_LINE };
    _Alignas(DMS_LINE) char memory[2 * SIZE];
    char *const staged = memory + dms_left_out(memory, SIZE);
    dms_lines lines = dms_start_lines(target, staged);
    uint64_t index[DMLSPLIT_MAX_RANK];
    dms_first(nest->rank, index);
    do {
        if (lines.line + lines.fill != target) {
            dms_finish_lines(&lines);
            lines = dms_start_lines(target, staged);
        }
        if (lines.fill % size == 0)
            put_reversed(&lines, source, bytes, size, order, ahead);
        else
            put_cut(&lines, source, bytes, size, ahead);
    } while (dms_next(nest->loops, nest->rank - 1, index, &target, &source));
    dms_finish_lines(&lines);
}

/* Stores all rows, a piece at a time. */
static DMS_TARGET DMS_ALWAYS_INLINE void store_rows(const dms_nest *nest, char *target, const char *source, size_t size)
{
    const uint64_t bytes = nest->loops[nest->rank - 1].size * size;
    uint64_t index[DMLSPLIT_MAX_RANK];
    dms_first(nest->rank, index);
    do
        for (uint64_t done = 0, piece; done < bytes; done += piece) {
            piece = bytes - done < DMS_REVERSED_PIECE ? bytes - done : DMS_REVERSED_PIECE;
            for (uint64_t at = 0; nest->stores.regime == DMS_CLAIMED && at < piece; at += DMS_LINE)
                DMS_CLAIM(target + done, DMS_REVERSED_PIECE + at);
            reverse_piece(target + done, source - done, (size_t)piece / size, size);
        }
    while (dms_next(nest->loops, nest->rank - 1, index, &target, &source));
}

static DMS_TARGET DMS_ALWAYS_INLINE void reverse(const dms_nest *nest, char *target, const char *source, size_t size)
{
    if (makes_lines(nest, nest->loops[nest->rank - 1].size * size))
        stream_rows(nest, target, source, size);
    else
        store_rows(nest, target, source, size);
}

DMS_TARGET void DMS_NAME(dms_run_reverse)(const dms_nest *nest, char *target, const char *source)
{
    switch (nest->run) {
    case 1: reverse(nest, target, source, 1); break;
    case 2: reverse(nest, target, source, 2); break;
    case 4: reverse(nest, target, source, 4); break;
    case 8: reverse(nest, target, source, 8); break;
    default: reverse(nest, target, source, 16); break;
    }
}
