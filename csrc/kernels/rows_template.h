/* rows_template.h - contiguous pieces: the kernel rows for plans that cut rows into pieces, the kernel runs for nests
 *
 * Included after vector_<isa>.h, which defines DMS_NAME, DMS_TARGET, VECTOR, vector, load, store and stream.
 *
 * rows walks the whole once and in order, and all parts advance together:
 *
 *     whole   |aaaa b cccccccccc|aaaa b cccccccccc|...        a  aaaa aaaa ...
 *                                                        ->   b  b b ...
 *                                                             c  cccccccccc cccccccccc ...
 *
 * Copies that fit the caches use moves that may overlap. Larger ones use non-temporal stores, which pay for whole cache lines only: these are collected
 * across pieces that are adjacent in memory.
 */
#include "../dms_transpose.h"
#include "lines_template.h"

/* The most parts that advance together: the partial lines of more parts would fit neither the first-level cache nor a small stack. */
#define MOST_WRITERS 128

/* True if ascending loads would wait for recent stores: CPUs compare the low 12 bits of addresses to find a store to the same bytes (4K aliasing). */
static DMS_ALWAYS_INLINE bool follows_stores(const char *to, const char *from)
{
    return (((uintptr_t)to - (uintptr_t)from) & 4095) < 2048;
}

/* Copies a long piece from its end to its begin with aligned stores between two unaligned ones that overlap them. */
static DMS_TARGET void DMS_NAME(copy_descending)(char *to, const char *from, size_t size)
{
    enum { STEP = 2 * VECTOR < DMS_LINE ? DMS_LINE : 2 * VECTOR };
    const vector head = load(from);
    char *end = to + size;
    from += size;
    const size_t tail = (uintptr_t)end % VECTOR;
    store(end - VECTOR, load(from - VECTOR));
    end -= tail;
    from -= tail;
    for (; end - to >= STEP; end -= STEP, from -= STEP) {
        vector v[STEP / VECTOR];
        for (int i = 1; i <= STEP / VECTOR; i++)
            v[i - 1] = load(from - i * VECTOR);
        for (int i = 1; i <= STEP / VECTOR; i++)
            store(end - i * VECTOR, v[i - 1]);
    }
    DMS_ROLLED
    for (; end - to >= VECTOR; end -= VECTOR, from -= VECTOR)
        store(end - VECTOR, load(from - VECTOR));
    store(to, head);
}

/* Copies a piece with plain stores, a large one with aligned stores between two unaligned ones that overlap them. claimed: prefetchw distance in bytes, or
 * 0. */
static DMS_TARGET DMS_ALWAYS_INLINE void DMS_NAME(copy_piece)(char *to, const char *from, size_t size, uintptr_t claimed, uint64_t call)
{
    if (size < VECTOR) {
        dms_copy_short(to, from, size);
        return;
    }
    enum { STEP = 2 * VECTOR < DMS_LINE ? DMS_LINE : 2 * VECTOR };
    char *const last = to + size - VECTOR;
    const bool is_long = size >= 8 * VECTOR;
    if (!is_long && claimed == 0 && 2 * VECTOR >= DMS_LINE) {   /* 0.93 to 0.98 of the time; with 16-byte vectors pieces of 120 and 80 bytes took 1.66 */
        const vector end = load(from + size - VECTOR);
        /* Pairs of 64 bytes: 0.93 to 1 of the time of 320 bytes; of 32 bytes up to 1.04 (Zen 4). */
        for (; VECTOR == DMS_LINE && last - to > VECTOR; to += 2 * VECTOR, from += 2 * VECTOR) {
            const vector a = load(from), b = load(from + VECTOR);
            store(to, a);
            store(to + VECTOR, b);
        }
        DMS_ROLLED
        for (; to < last; to += VECTOR, from += VECTOR)
            store(to, load(from));
        store(last, end);
        return;
    }
    if (claimed == 0 && size >= call) {                /* memcpy may use rep movsb */
        dms_copy_long(to, from, size);
        return;
    }
    if (claimed == 0 && size >= DMS_LEAST_DESCENDING && follows_stores(to, from)) {
        DMS_NAME(copy_descending)(to, from, size);
        return;
    }
    const vector tail = load(from + size - VECTOR);
    if (is_long && (uintptr_t)to % VECTOR != 0) {
        const size_t head = VECTOR - (uintptr_t)to % VECTOR;
        store(to, load(from));
        to += head;
        from += head;
    }
    for (; last - to > STEP - VECTOR; to += STEP, from += STEP) {
        vector v[STEP / VECTOR];
        for (int line = 0; claimed > 0 && line < STEP; line += DMS_LINE)
            DMS_CLAIM(to + line, claimed);
        for (int i = 0; i < STEP / VECTOR; i++)
            v[i] = load(from + i * VECTOR);
        for (int i = 0; i < STEP / VECTOR; i++)
            store(to + i * VECTOR, v[i]);
    }
    DMS_ROLLED
    for (; to < last; to += VECTOR, from += VECTOR)
        store(to, load(from));
    store(last, tail);
}

/* ---- Past the caches ---- */

/* The pieces of one part in a stretch: the next one, and the steps to those after it. */
typedef struct piece {
    char *to;
    const char *from;
    int64_t to_stride, from_stride;
    size_t size;
} piece;

/* Bytes for a partial line, and for a line before and after it, which copies of whole lines may touch. */
enum { ROOM = 3 * DMS_LINE, MOST_ROOMS = MOST_WRITERS + MOST_WRITERS * ROOM / DMS_PAGE + 2 };    /* at the end of each page less than one is left out */

/* Adds a piece to the stream, or begins a new stream if the piece is not adjacent to it, and advances the piece to its next row. The ends of a piece are
 * copied as whole lines: exact sizes would mispredict a branch each time. The partial line is stored last, because a load of bytes that several stores have
 * just written stalls. */
static DMS_TARGET DMS_ALWAYS_INLINE void DMS_NAME(put_bytes)(dms_lines *w, piece *p, const dms_stores *stores)
{
    /* With vectors of 16 bytes, 4096 ahead took 0.85 to 1 of the time of 1536 (Zen 4). */
    const uintptr_t page = stores->page_mask, least = VECTOR == 16 && page == 0 ? DMS_NEAR_AHEAD : 0, far = stores->ahead > least ? stores->ahead : least;
    const uintptr_t nearby = stores->ahead > 0 ? DMS_NEAR_AHEAD : 0, ahead = stores->ahead > 0 && (p->size >= DMS_LONG_PIECE_FETCHED || page > 0) ? far : nearby;
    const char *from = p->from;
    size_t size = p->size;
    if ((uintptr_t)w->line + w->fill != (uintptr_t)p->to) { /* at first there is no partial line, and line points to bytes */
        dms_finish_lines(w);
        *w = dms_start_lines(p->to, w->bytes);
    }
    if (w->fill >= DMS_LINE)            /* filled by the previous piece */
        DMS_NAME(drain_lines)(w, 0);
    p->to += p->to_stride;
    p->from += p->from_stride;
    if (size < DMS_LINE) {
        DMS_PREFETCH_AT(from, nearby);
        dms_copy_short(w->bytes + w->fill, from, size);
        w->fill += (uint32_t)size;
    } else {
        const size_t head = (DMS_LINE - w->fill) % DMS_LINE;
        char *line = w->line;
        if (head > 0) {
            DMS_NAME(copy_line)(w->bytes + w->fill, from);
            line += DMS_LINE;
            from += head;
            size -= head;
        }
        for (; size >= DMS_LINE; size -= DMS_LINE, line += DMS_LINE, from += DMS_LINE) {
            DMS_FETCH(from, page, ahead);
            DMS_NAME(stream_line)(line, from);
        }
        if (head > 0)
            DMS_NAME(store_first)(w, w->bytes);
        if (size > 0)
            DMS_NAME(copy_line)(w->bytes + size - DMS_LINE, from + size - DMS_LINE);
        w->line = line;
        w->fill = (uint32_t)size;
    }
}

static DMS_TARGET DMS_ALWAYS_INLINE void DMS_NAME(copy_pieces)(piece *pieces, size_t count, uint64_t rows, uintptr_t claimed, uint64_t call)
{
    for (; rows > 0; rows--)
        for (size_t i = 0; i < count; i++) {
            piece *p = &pieces[i];
            char *const to = p->to;
            const char *const from = p->from;
            p->to += p->to_stride;
            p->from += p->from_stride;
            DMS_NAME(copy_piece)(to, from, p->size, claimed, call);
        }
}

/* Copies `rows` rows of pieces. A split has a writer for each part; a join and a run have one, which stays in registers. */
static DMS_TARGET void DMS_NAME(put_pieces)(piece *pieces, size_t count, uint64_t rows, dms_lines *writers, bool split, const dms_stores *stores)
{
    if (stores->regime == DMS_PLAIN) {
        DMS_NAME(copy_pieces)(pieces, count, rows, 0, stores->call);
    } else if (!dms_is_streamed(stores)) {
        DMS_NAME(copy_pieces)(pieces, count, rows, stores->ahead, stores->call);
    } else if (split) {
        for (; rows > 0; rows--)
            for (size_t i = 0; i < count; i++)
                DMS_NAME(put_bytes)(&writers[i], &pieces[i], stores);
    } else {
        dms_lines w = writers[0];
        for (; rows > 0; rows--)
            for (size_t i = 0; i < count; i++)
                DMS_NAME(put_bytes)(&w, &pieces[i], stores);
        writers[0] = w;
    }
}

/* ---- Rows ---- */

/* True if the plan streams and the pieces that it writes are adjacent, or long enough to be streamed one by one. */
static bool is_streamable(const dmlsplit_plan *plan)
{
    const dms_space *space = &plan->space;
    const bool split = plan->direction == DMLSPLIT_SPLIT;
    if (!dms_is_streamed(&plan->stores[DMS_MOVE]))
        return false;
    for (uint64_t i = split ? 1 : 0; i < (split ? space->operand_count : 1); i++) {
        const uint64_t size = space->operands[i].length * space->element_size;
        if (size < DMS_SHORTEST_STREAM && space->operands[i].strides[space->axis - 1] != (int64_t)size)
            return false;
    }
    return true;
}

/* Fills pieces with the parts from *part on, as many as fit, and returns their number. *part becomes the next part. */
static size_t find_pieces(const dms_stretch *s, uint64_t *part, piece *pieces)
{
    const bool split = s->plan->direction == DMLSPLIT_SPLIT;
    dms_stretch_part found;
    size_t count = 0;
    while (count < MOST_WRITERS && dms_next_part(s, part, &found)) {
        char *const in_whole = s->whole + found.row_begin;
        const piece in_part = {found.base, in_whole, found.stride, s->stride, found.size};
        const piece joined = {in_whole, found.base, s->stride, found.stride, found.size};
        pieces[count++] = split ? in_part : joined;
    }
    return count;
}

/* Copies rows [first, last) of as many parts as fit, from *part on. *part becomes the next part. */
static DMS_TARGET void DMS_NAME(copy_rows)(const dmlsplit_plan *plan, const dms_buffers *buffers, uint64_t first, uint64_t last, uint64_t *part)
{
    const uint64_t begin = *part;
    const bool streamed = is_streamable(plan);
    dms_stores stores = plan->stores[DMS_MOVE];
    if (!streamed && dms_is_streamed(&stores)) {
        stores.regime = DMS_PLAIN;
        stores.ahead = 0;
    }
    dms_stretch stretch;
    piece pieces[MOST_WRITERS];
    _Alignas(DMS_LINE) char rooms[MOST_ROOMS * ROOM];
    dms_lines writers[MOST_WRITERS];
    char *room = rooms;
    for (size_t i = 0; streamed && i < MOST_WRITERS; i++, room += ROOM) {
        room += dms_left_out(room, ROOM);
        DMS_ASSERT(dms_left_out(room, ROOM) == 0 && room + ROOM <= rooms + sizeof rooms);
        writers[i] = dms_start_lines(room + DMS_LINE, room + DMS_LINE);
    }
    while (dms_next_stretch(&stretch, plan, buffers, &first, last)) {
        *part = begin;
        const size_t count = find_pieces(&stretch, part, pieces);
        DMS_NAME(put_pieces)(pieces, count, stretch.rows, writers, plan->direction == DMLSPLIT_SPLIT, &stores);
    }
    for (size_t i = 0; streamed && i < MOST_WRITERS; i++)
        dms_finish_lines(&writers[i]);
}

DMS_TARGET void DMS_NAME(dms_run_rows)(const dmlsplit_plan *plan, const dms_buffers *buffers, uint64_t first, uint64_t last)
{
    for (uint64_t part = 0; part < plan->part_count;)
        DMS_NAME(copy_rows)(plan, buffers, first, last, &part);
}

/* ---- Runs ---- */

/* Fills size bytes, rounded up to a whole word, with copies of a run. */
static DMS_TARGET void DMS_NAME(repeat)(char *pattern, const char *source, size_t run, size_t size)
{
    uint64_t word = 0;
    if (sizeof word % run == 0) {
        for (size_t i = 0; i < sizeof word; i++)        /* little-endian: big-endian machines have no kernel with vectors */
            word |= (uint64_t)(uint8_t)source[i & (run - 1)] << 8 * i;
        for (size_t at = 0; at < size; at += sizeof word)
            memcpy(pattern + at, &word, sizeof word);
        return;
    }
    dms_copy_short(pattern, source, run);
    for (size_t done = run; done < size; done *= 2)     /* doubles each time */
        dms_copy_short(pattern + done, pattern, done < size - done ? done : size - done);
}

/* Fills size bytes with copies of their first `done` bytes, using memcpy, which reads the bytes that it has just written from the second-level cache. */
static void DMS_NAME(double_run)(char *to, size_t done, uint64_t size)
{
    for (uint64_t left = size - done; left > 0;) {
        const size_t now = left < done ? (size_t)left : done;
        memcpy(to + (size - left), to, now);
        left -= now;
        done = 2 * done <= DMS_FILL_DOUBLED ? 2 * done : done;
    }
}

/* Fills size bytes, at least a vector, with copies of a run that divides a vector. pattern: two vectors of copies. */
static DMS_TARGET void DMS_NAME(fill_by_vector)(char *to, const char *pattern, uint64_t size, uintptr_t claimed)
{
    char *const last = to + size - VECTOR;
    const size_t head = (VECTOR - (uintptr_t)to % VECTOR) % VECTOR;
    const vector aligned = load(pattern + head), end = load(pattern + size % VECTOR);
    store(to, load(pattern));
    for (to += head; to < last && (uintptr_t)to % DMS_LINE != 0; to += VECTOR)
        store(to, aligned);
    for (; last - to > DMS_LINE - VECTOR; to += DMS_LINE) {
        if (claimed > 0)
            DMS_CLAIM(to, claimed);
        for (int i = 0; i < DMS_LINE; i += VECTOR)
            store(to + i, aligned);
    }
    for (; to < last; to += VECTOR)
        store(to, aligned);
    store(last, end);
}

/* A fill copies its run from the first-level cache; short runs are first repeated to a pattern. Fills larger than the second-level cache use memcpy, which may
 * have instructions that write a line without reading it (rep movsb): 16.8 MB in rows of 2 KB took 0.24 to 0.38 times memcpy's time for a copy, 0.50 to 0.60
 * when streamed (Zen 5). */
static DMS_TARGET DMS_NEVER_INLINE void DMS_NAME(run_loops)(const dms_nest *nest, char *target, const char *source)
{
    static const dms_loop once = {1, 0, 0};
    const dms_loop *last = nest->rank > 0 ? &nest->loops[nest->rank - 1] : &once;
    const uint32_t outer = nest->rank > 0 ? nest->rank - 1 : 0;
    const bool fill = nest->kind == DMS_FILL, by_vector = fill && !dms_is_streamed(&nest->stores) && VECTOR % nest->run == 0 && last->size * nest->run >= VECTOR, by_call = fill && nest->stores.regime == DMS_CLAIMED && last->size * nest->run >= DMS_FILL_BY_CALL;
    const uint64_t most = fill ? DMS_FILL_PATTERN / nest->run : 1;
    uint64_t count = most < last->size ? most : last->size;
    while (by_call && (count & (count - 1)) != 0)       /* powers of two make whole cache lines of most runs */
        count &= count - 1;
    count = count > 0 ? count : 1;
    const size_t size = (size_t)count * nest->run;
    uint64_t index[DMLSPLIT_MAX_RANK];
    _Alignas(DMS_LINE) char rooms[2 * ROOM], pattern[DMS_FILL_PATTERN + sizeof(uint64_t)];
    dms_stores stores = nest->stores;
    char *const line = rooms + dms_left_out(rooms, ROOM) + DMS_LINE;
    dms_lines lines = dms_start_lines(line, line);
    if (count > 1 && dms_is_streamed(&stores))
        stores.ahead = stores.page_mask = 0;            /* what lies behind the pattern may be unmapped: prefetches of it took up to 6 times as long (Zen 5) */
    dms_first(outer, index);
    do {
        piece p = {target, source, last->target_stride * (int64_t)count, last->source_stride * (int64_t)count, size};
        if (by_vector && !by_call) {
            DMS_NAME(repeat)(pattern, source, nest->run, 2 * VECTOR);
            DMS_NAME(fill_by_vector)(target, pattern, last->size * nest->run, nest->stores.ahead);
            continue;
        }
        if (count > 1) {
            DMS_NAME(repeat)(pattern, source, nest->run, size);
            p.from = pattern;
        }
        if (by_call) {
            memcpy(target, p.from, size);
            DMS_NAME(double_run)(target, size, last->size * nest->run);
            continue;
        }
        DMS_NAME(put_pieces)(&p, 1, last->size / count, &lines, false, &stores);
        p.size = (size_t)(last->size % count) * nest->run;
        if (p.size > 0)
            DMS_NAME(put_pieces)(&p, 1, 1, &lines, false, &stores);
    } while (dms_next(nest->loops, outer, index, &target, &source));
    dms_finish_lines(&lines);
}

/* A single piece does not need the stack frame of loops: setting it up takes as long as copying 256 bytes, and a plan may have many such parts. */
DMS_TARGET void DMS_NAME(dms_run_runs)(const dms_nest *nest, char *target, const char *source)
{
    if (nest->rank == 0 && !dms_is_streamed(&nest->stores))
        DMS_NAME(copy_piece)(target, source, nest->run, nest->stores.ahead, nest->stores.call);
    else
        DMS_NAME(run_loops)(nest, target, source);
}
