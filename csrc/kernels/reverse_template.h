/* reverse_template.h - elements in reverse order in the source
 *
 *     source   ....hgfedcba            source points to a
 *     target   abcdefgh....
 *
 * Included after vector_<isa>.h. Plain loops with constant steps, which compilers vectorize by shuffles. When streaming, pieces are staged behind the
 * waiting line in the first-level cache, and stored from there as whole cache lines.
 */
#include "lines_template.h"

/* Copies count elements in reverse order, the first one from `from`. size is a constant. */
static DMS_TARGET DMS_ALWAYS_INLINE void reverse_piece(char *to, const char *from, size_t count, size_t size)
{
    from -= (count - 1) * size;         /* the last element */
    for (size_t i = 0; i < count; i++)
        memcpy(to + i * size, from + (count - 1 - i) * size, size);
}

/* True if rows of so many bytes are streamed: they are adjacent in the target, or long. */
static inline bool makes_lines(const dms_nest *nest, uint64_t bytes)
{
    const bool follow = nest->rank < 2 || nest->loops[nest->rank - 2].target_stride == (int64_t)bytes;
    return dms_is_streamed(&nest->stores) && bytes >= (follow ? DMS_REVERSED_STREAMED : DMS_SHORTEST_STREAM);
}

/* Returns the distance to prefetch, as a wrapped number: backwards in a long row, or to one of the next rows. */
static inline uintptr_t reversed_ahead(const dms_nest *nest, uint64_t bytes)
{
    const uintptr_t ahead = dms_lines_ahead(&nest->stores, true);
    return nest->rank < 2 || ahead < bytes ? 0 - ahead : (uintptr_t)nest->loops[nest->rank - 2].source_stride * (uintptr_t)(ahead / bytes);
}

/* Copies all rows. The partial line at the end of a row waits for the next row if that is adjacent. */
static DMS_TARGET DMS_ALWAYS_INLINE void reverse(const dms_nest *nest, char *target, const char *source, size_t size)
{
    const uint64_t bytes = nest->loops[nest->rank - 1].size * size;
    const bool streamed = makes_lines(nest, bytes);
    const uintptr_t ahead = streamed ? reversed_ahead(nest, bytes) : 0;
    _Alignas(DMS_LINE) char staged[DMS_REVERSED_PIECE + 2 * DMS_LINE];
    dms_lines lines = dms_start_lines(target, staged);
    uint64_t index[DMLSPLIT_MAX_RANK];
    dms_first(nest->rank, index);
    do {
        if (streamed && lines.line + lines.fill != target) {
            dms_finish_lines(&lines);
            lines = dms_start_lines(target, staged);
        }
        for (uint64_t done = 0, piece; done < bytes; done += piece) {
            piece = bytes - done < DMS_REVERSED_PIECE ? bytes - done : DMS_REVERSED_PIECE;
            for (uint64_t at = 0; nest->stores.regime == DMS_CLAIMED && at < piece; at += DMS_LINE)
                DMS_CLAIM(target + done, DMS_REVERSED_PIECE + at);
            for (uint64_t at = 0; streamed && at < piece; at += DMS_LINE)
                DMS_PREFETCH_AT(source - done - at, ahead);
            reverse_piece(streamed ? lines.bytes + lines.fill : target + done, source - done, (size_t)piece / size, size);
            if (streamed)
                DMS_NAME(drain_lines)(&lines, (size_t)piece);
        }
    } while (dms_next(nest->loops, nest->rank - 1, index, &target, &source));
    if (streamed)
        dms_finish_lines(&lines);
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
