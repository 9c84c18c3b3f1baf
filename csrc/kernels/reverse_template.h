/* reverse_template.h - elements that lie backwards in the source
 *
 *     source   ....hgfedcba            a is read first
 *     target   abcdefgh....
 *
 * Included after vector_<isa>.h. Plain loops whose steps are constants: compilers make vectors of them that are reversed in registers. Past the caches by
 * way of whole lines: 33 MB in one line took 0.72 to 0.81 times memcpy's time in place of 0.91 to 1.04 (Zen 5).
 */
#include "lines_template.h"

/* Bytes of a line that are reversed together; and of one that is streamed, which has to go on backwards for so long: lines of 2 KB with gaps between
 * them took 2.2 times memcpy's time in place of 1.8. */
enum { PIECE = 2048, SHORTEST_LINE = 32768 };

static DMS_TARGET DMS_ALWAYS_INLINE void reverse_piece(char *to, const char *from, size_t count, size_t size)
{
    from -= (count - 1) * size;         /* the last element */
    for (size_t i = 0; i < count; i++)
        memcpy(to + i * size, from + (count - 1 - i) * size, size);
}

/* size is a constant. w: what the lines of the target are collected in; NULL: they are stored as they come. */
static DMS_TARGET DMS_ALWAYS_INLINE void reverse_line(char *to, const char *from, uint64_t count, size_t size, const dms_stores *stores, dms_lines *w)
{
    for (size_t bytes; count > 0; count -= bytes / size, to += bytes, from -= bytes) {
        bytes = count < PIECE / size ? (size_t)count * size : PIECE;
        for (size_t at = 0; w != NULL && at < bytes; at += DMS_LINE)
            DMS_FETCH_BACKWARDS(from - at, stores);
        for (size_t at = 0; stores->regime == DMS_CLAIMED && at < bytes; at += DMS_LINE)
            DMS_CLAIM(to, bytes + at);
        reverse_piece(w != NULL ? w->bytes + w->fill : to, from, bytes / size, size);
        if (w != NULL)
            DMS_NAME(drain_lines)(w, bytes);
    }
}

static DMS_TARGET DMS_ALWAYS_INLINE void reverse(const dms_nest *nest, char *target, const char *source, size_t size)
{
    const dms_loop *last = &nest->loops[nest->rank - 1];
    uint64_t index[DMLSPLIT_MAX_RANK];
    _Alignas(DMS_LINE) char staged[PIECE + 2 * DMS_LINE];
    const bool streamed = dms_is_streamed(&nest->stores) && last->size >= SHORTEST_LINE / size;
    dms_lines lines, *const w = streamed ? &lines : NULL;
    dms_first(nest->rank, index);
    do {
        lines = dms_start_lines(target, staged);
        reverse_line(target, source, last->size, size, &nest->stores, w);
        if (w != NULL)
            dms_finish_lines(w);
    } while (dms_next(nest->loops, nest->rank - 1, index, &target, &source));
}

const char *DMS_NAME(dms_accept_reverse)(const dms_nest *nest)
{
    enum { SHORTEST = 16 };             /* steps: fewer are taken in blocks of another loop, five times as fast */
    if (nest->run > 16 || (nest->run & (nest->run - 1)) != 0)
        return "elements are not of 1, 2, 4, 8 or 16 bytes";
    if (nest->rank == 0)
        return "it is one run";
    const dms_loop *last = &nest->loops[nest->rank - 1];
    if (last->target_stride != (int64_t)nest->run || last->source_stride != -(int64_t)nest->run)
        return "no loop goes backwards";
    return last->size >= SHORTEST ? NULL : "the loop that goes backwards has less than 16 steps";
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
