/* rows_template.h - contiguous pieces: a kernel for rows that are cut into them, and one for nests of runs
 *
 * Included after vector_<isa>.h, which defines DMS_NAME, DMS_TARGET, VECTOR, vector, load, store and stream.
 *
 * rows reads the whole once and in order, and all parts advance together (in a join the whole is written so):
 *
 *     whole   |aaaa b cccccccccc|aaaa b cccccccccc|...        a  aaaa aaaa ...
 *                                                        ->   b  b b ...
 *                                                             c  cccccccccc cccccccccc ...
 *
 * What fits the caches is copied by moves that may overlap. What does not is stored past them, which pays for whole lines only: a writer
 * collects the bytes of its current line until the line is full, across the pieces that follow each other in memory.
 *
 *     memory   ....|..ppppqq|qqqqqqqq|qqq.....|       p, q: pieces
 *                   ^ begin  ^ streamed  ^ fill: carried on to the next piece
 *                   ordinary stores
 */
#include "../dms_kernel.h"

typedef struct writer {
    char *line;                         /* address of the line that is being filled: a multiple of 64 */
    size_t begin, fill;                 /* its bytes [begin, fill) are in carry: those before begin are not ours */
    _Alignas(DMS_LINE) char carry[DMS_LINE];
} writer;

/* Pieces from this size on may be streamed with ragged ends: below, gaps between the pieces of a part make ordinary stores the better ones. */
#define SHORTEST_STREAM 1024

/* Runs from this size on are left to memcpy, unless they are streamed. */
#define LONGEST_INLINE 4096

/* More writers than this would not fit the first-level cache, nor a small stack. */
#define MOST_WRITERS 128

static DMS_TARGET inline void DMS_NAME(stream_line)(char *to, const char *from)
{
    for (int i = 0; i < DMS_LINE; i += VECTOR)
        stream(to + i, load(from + i));
}

/* Copies without streaming. Large pieces: aligned stores between two that overlap them. */
static DMS_TARGET inline void DMS_NAME(copy_piece)(char *to, const char *from, size_t size)
{
    if (size < VECTOR) {
        dms_copy_short(to, from, size);
        return;
    }
    char *const last = to + size - VECTOR;
    const vector tail = load(from + size - VECTOR);
    if (size >= 8 * VECTOR) {
        const size_t head = VECTOR - ((uintptr_t)to & (VECTOR - 1));
        store(to, load(from));
        to += head;
        from += head;
        for (; last - to >= 4 * VECTOR; to += 4 * VECTOR, from += 4 * VECTOR) {
            const vector a = load(from), b = load(from + VECTOR), c = load(from + 2 * VECTOR), d = load(from + 3 * VECTOR);
            store(to, a);
            store(to + VECTOR, b);
            store(to + 2 * VECTOR, c);
            store(to + 3 * VECTOR, d);
        }
    }
    for (; to < last; to += VECTOR, from += VECTOR)
        store(to, load(from));
    store(last, tail);
}

/* Adds less than a line to the carry, which has room for it. */
static DMS_TARGET inline void DMS_NAME(carry)(writer *w, const char *from, size_t size)
{
#if VECTOR == DMS_LINE                  /* the whole line as one value: no load has to wait for several smaller stores */
    const __mmask64 mine = ((UINT64_C(1) << size) - 1) << w->fill;
    const vector bytes = _mm512_mask_loadu_epi8(load(w->carry), mine, (const void *)((uintptr_t)from - w->fill));
    store(w->carry, bytes);
#else
    dms_copy_short(w->carry + w->fill, from, size);
#endif
    w->fill += size;
}

static DMS_TARGET inline void DMS_NAME(flush)(writer *w)
{
    if (w->begin == 0 && w->fill == DMS_LINE)
        DMS_NAME(stream_line)(w->line, w->carry);
    else
        dms_copy_short(w->line + w->begin, w->carry + w->begin, w->fill - w->begin);
    w->line += w->fill;
    w->begin = w->fill = 0;
}

static DMS_TARGET void DMS_NAME(move_writer)(writer *w, char *to)
{
    DMS_NAME(flush)(w);
    w->fill = w->begin = (uintptr_t)to & (DMS_LINE - 1);
    w->line = to - w->begin;
}

static DMS_TARGET inline void DMS_NAME(put)(writer *w, char *to, const char *from, size_t size)
{
    if (w->line + w->fill != to)
        DMS_NAME(move_writer)(w, to);
    DMS_PREFETCH(from);
    if (w->fill + size < DMS_LINE) {
        DMS_NAME(carry)(w, from, size);
        return;
    }
    if (w->fill > 0) {
        const size_t head = DMS_LINE - w->fill;
        DMS_NAME(carry)(w, from, head);
        DMS_NAME(flush)(w);
        from += head;
        size -= head;
    }
    char *line = w->line;
    for (; size >= DMS_LINE; size -= DMS_LINE, line += DMS_LINE, from += DMS_LINE) {
        DMS_PREFETCH(from);
        DMS_NAME(stream_line)(line, from);
    }
    w->line = line;
    if (size > 0)
        DMS_NAME(carry)(w, from, size);
}

/* ---- Rows ---- */

const char *DMS_NAME(dms_accept_rows)(const dmlsplit_plan *plan)
{
    return dms_refuse_rows(plan);
}

/* Whether the pieces of what is written follow each other, or are long enough to be streamed one by one. */
static bool is_streamable(const dmlsplit_plan *plan)
{
    const dms_space *space = &plan->space;
    const bool split = plan->direction == DMLSPLIT_SPLIT;
    if (!plan->stream || (split && plan->part_count > MOST_WRITERS))
        return false;
    for (uint64_t i = split ? 1 : 0; i < (split ? space->operand_count : 1); i++) {
        const uint64_t piece = space->operands[i].length * space->element_size;
        if (piece < SHORTEST_STREAM && space->operands[i].strides[space->axis - 1] != (int64_t)piece)
            return false;
    }
    return true;
}

static DMS_TARGET void DMS_NAME(copy_rows)(const dmlsplit_plan *plan, const dms_buffers *buffers, uint64_t first, uint64_t last, writer *writers)
{
    const dms_space *space = &plan->space;
    const bool split = plan->direction == DMLSPLIT_SPLIT;
    uint64_t index[DMLSPLIT_MAX_RANK];
    dms_row_index(space, first, index);
    for (uint64_t row = first; row < last; row++) {
        char *whole_row = (char *)buffers->whole + dms_row_offset(space, &space->operands[0], index);
        const dms_shape *shape = NULL;
        int64_t offset = 0;
        size_t size = 0;
        for (uint64_t i = 0; i < plan->part_count; i++) {
            const dms_part *part = &plan->parts[i];
            if (part->shape == NULL)
                continue;
            if (part->shape != shape) {
                shape = part->shape;
                offset = shape->operand->offset + dms_row_offset(space, shape->operand, index);
                size = (size_t)(shape->operand->length * space->element_size);
            }
            char *in_part = dms_part_base(buffers, i) + offset;
            char *in_whole = whole_row + part->place;
            if (writers == NULL)
                DMS_NAME(copy_piece)(split ? in_part : in_whole, split ? in_whole : in_part, size);
            else if (split)
                DMS_NAME(put)(&writers[i], in_part, in_whole, size);
            else
                DMS_NAME(put)(&writers[0], in_whole, in_part, size);
        }
        dms_next_row(space, index);
    }
}

DMS_TARGET void DMS_NAME(dms_run_rows)(const dmlsplit_plan *plan, const dms_buffers *buffers, uint64_t first, uint64_t last)
{
    writer writers[MOST_WRITERS];
    if (!is_streamable(plan)) {
        DMS_NAME(copy_rows)(plan, buffers, first, last, NULL);
        return;
    }
    const uint64_t count = plan->direction == DMLSPLIT_SPLIT ? plan->part_count : 1;
    for (uint64_t i = 0; i < count; i++) {
        writers[i].line = NULL;
        writers[i].begin = writers[i].fill = 0;
    }
    DMS_NAME(copy_rows)(plan, buffers, first, last, writers);
    for (uint64_t i = 0; i < count; i++)
        DMS_NAME(flush)(&writers[i]);
    _mm_sfence();
}

/* ---- Runs ---- */

const char *DMS_NAME(dms_accept_runs)(const dms_nest *nest)
{
    if (nest->run <= 16)
        return "contiguous runs are not longer than 16 bytes";
    return nest->stream || nest->run < LONGEST_INLINE ? NULL : "runs of 4096 bytes and more that fit the caches: memcpy is as fast";
}

static DMS_TARGET void DMS_NAME(stream_runs)(const dms_nest *nest, char *target, const char *source)
{
    uint64_t index[DMLSPLIT_MAX_RANK] = {0};
    writer w;
    w.line = NULL;
    w.begin = w.fill = 0;
    do
        DMS_NAME(put)(&w, target, source, nest->run);
    while (dms_next(nest->loops, nest->rank, index, &target, &source));
    DMS_NAME(flush)(&w);
    _mm_sfence();
}

DMS_TARGET void DMS_NAME(dms_run_runs)(const dms_nest *nest, char *target, const char *source)
{
    const bool packed = nest->rank == 0 || nest->loops[nest->rank - 1].target_stride == (int64_t)nest->run;
    if (nest->stream && (packed || nest->run >= SHORTEST_STREAM)) {
        DMS_NAME(stream_runs)(nest, target, source);
        return;
    }
    uint64_t index[DMLSPLIT_MAX_RANK] = {0};
    do
        DMS_NAME(copy_piece)(target, source, nest->run);
    while (dms_next(nest->loops, nest->rank, index, &target, &source));
}
