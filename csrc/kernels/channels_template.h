/* channels_template.h - deinterleaves and interleaves 2, 3 or 4 parts of 1, 2, 4 or 8 bytes each by shuffles within 16 bytes
 *
 * Included after vector_<isa>.h. A block of rows is one vector of 16 bytes in each part, and one for each part in the whole; wider vectors hold a block in
 * each lane. All work is done in registers: each byte is loaded and stored once.
 *
 * 3 parts: each vector written is the union of three byte shuffles, one of each vector read. Here a split with vectors of 8 bytes:
 *
 *     abcabcab, cabcabca, bcabcabc  ->  a  from vector 0, bytes 0 3 6
 *                                          from vector 1, bytes 1 4 7   ->  aaaaaaaa
 *                                          from vector 2, bytes 2 5
 *
 * 2 and 4 parts: one byte shuffle sorts each vector of the whole by parts into elements, and the matrix of elements is transposed. A join does the reverse:
 *
 *     abcdabcd abcdabcd ...  ->  aabbccdd aabbccdd ...  ->  aa aa aa aa, bb bb bb bb, ...
 */
#include "../dms_memory.h"
#include "../dms_shuffle.h"
#include "stretch_template.h"
#include "transpose_template.h"

enum {
    BLOCK = 16                          /* bytes of a block in a part */
};

typedef struct equal_tables {
    unsigned count;                     /* parts */
    size_t width, element;              /* bytes of a piece; of an element of the transposed matrix */
    uint8_t order[3][3][BLOCK];         /* 3 parts: table of each vector written, for each vector read; else only the first one */
} equal_tables;

static void fill_equal(equal_tables *t, unsigned count, size_t width, bool split)
{
    t->count = count;
    t->width = width;
    t->element = count * width <= BLOCK ? BLOCK / count : width;
    memset(t->order, DMS_NOT_PICKED, sizeof t->order);
    for (size_t i = 0; i < BLOCK && count != 3; i++) {          /* bytes of a sorted vector */
        const size_t in_whole = (i % t->element / width * count + i / t->element) * width + i % width;
        t->order[0][0][split ? i : in_whole] = (uint8_t)(split ? in_whole : i);
    }
    for (size_t i = 0; i < 3 * BLOCK && count == 3; i++) {      /* bytes of the whole */
        const size_t part = i / width % 3, in_part = i / width / 3 * width + i % width;
        if (split)
            t->order[part][i / BLOCK][in_part] = (uint8_t)(i % BLOCK);
        else
            t->order[i / BLOCK][part][i % BLOCK] = (uint8_t)in_part;
    }
}

/* Replaces a block's vectors read by those to write. count, element and split are constants. */
static DMS_TARGET DMS_ALWAYS_INLINE void DMS_NAME(permute_block)(vector *v, vector (*order)[3], unsigned count, size_t element, bool split)
{
    const bool sorted = count * element == BLOCK;   /* otherwise an element is a piece, already in place */
    if (count == 3) {
        const vector a = v[0], b = v[1], c = v[2];
        for (unsigned i = 0; i < 3; i++)
            v[i] = shuffle_into(shuffle_into(shuffle_bytes(a, order[i][0], 0), b, order[i][1], 0), c, order[i][2], 0);
        return;
    }
    for (unsigned i = 0; i < count && sorted && split; i++)
        v[i] = shuffle_bytes(v[i], order[0][0], 0);
    for (unsigned i = 0; i < count; i += BLOCK / (unsigned)element)
        transpose_panel(v + i, element);
    for (unsigned i = 0; i < count && sorted && !split; i++)
        v[i] = shuffle_bytes(v[i], order[0][0], 0);
}

/* Returns vector i of the whole, whose 16 bytes b are in vector block_of[b] of a lane. block_of swaps pairs, if any. */
static DMS_TARGET DMS_ALWAYS_INLINE vector DMS_NAME(in_whole)(const vector *v, const size_t *block_of, unsigned count, unsigned i)
{
#if LANES == 1
    (void)count;
    return v[block_of[i]];
#else
    const unsigned a = 2 * i, b = 2 * i + 1;
    return join_lanes(v[block_of[a % count]], a / count, v[block_of[b % count]], b / count);
#endif
}

/* Copies all rows: whole vectors of blocks, then the rest by moves. regime is a constant. Claimed lines are claimed one by one, as the kernel comes to them: 2 to 4
 * channels of 4 to 8 MB took 0.7 to 0.98 of the time of batches whose lines are claimed at once, by AVX2 and SSSE3 (Intel). Streamed rows are a multiple of DMS_GATHERED_PART bytes of a part. A split stores that much of one part before it stores another one: if lines of all parts took turns, 3 parts took 1.3 to 1.4 times as long,
 * and 1.2 to 1.9 times if halves of lines did (AVX2, Zen 3). Its parts may begin between cache lines if the bytes before them in that line are theirs as well,
 * and are stored already; each part's last bytes then wait for the next ones. 9 to 60 MB took 0.52 to 0.85 of the time of staged lines, by AVX2 and SSSE3
 * (Zen 5). A join has one target, which begins at a line and is stored from registers: its 12 to 128 MB took 0.6 to 0.83 of the time of staged lines (Zen 3). */
static DMS_TARGET DMS_ALWAYS_INLINE void DMS_NAME(copy_equal)(const dms_channels *c, const equal_tables *t, unsigned count, size_t element, bool split,
                                                              dms_regime regime, const dms_stores *stores)
{
    enum { MOST = DMS_LINE / VECTOR, GATHERED = DMS_GATHERED_PART / VECTOR, ROOM = DMS_GATHERED_PART + DMS_LINE };
    _Alignas(DMS_LINE) char rooms[2 * 4 * ROOM];
    char *pieces = rooms;
    size_t fill[4];                     /* bytes of each part that wait until their line is full */
    const uintptr_t ahead = dms_lines_ahead(stores, split);
    const bool streamed = regime == DMS_STREAMED, claimed = regime == DMS_CLAIMED;
    const unsigned together = streamed && split ? GATHERED : regime != DMS_PLAIN ? MOST : 1;    /* vectors of each part */
    const size_t block = LANES * BLOCK / t->width, stride = count * BLOCK;
    const uint64_t rows = c->rows / (together * block) * (together * block);
    const bool wide = count * element > BLOCK;      /* 4 parts of 8 bytes: vectors 0 and 2 of the whole have two, 1 and 3 the other two */
    const size_t block_of[] = {0, wide ? 2 : 1, wide ? 1 : 2, 3};
    vector order[3][3], v[4];
    char *whole = c->whole, *parts[4];
    for (unsigned i = 0; i < 9; i++)
        order[i / 3][i % 3] = load_table(t->order[i / 3][i % 3]);
    pieces += dms_left_out(pieces, 4 * ROOM);
    for (unsigned i = 0; i < count; i++) {
        fill[i] = streamed && split ? (uintptr_t)c->parts[i] % DMS_LINE : 0;
        parts[i] = c->parts[i] - fill[i];
        if (streamed && split)
            memcpy(pieces + i * ROOM, parts[i], fill[i]);
    }
    for (uint64_t row = 0; row < rows; row += together * block) {
        for (unsigned i = 0; i < count && claimed; i++)
            DMS_CLAIM(split ? parts[i] : whole + i * DMS_LINE, split ? DMS_CLAIMED_AHEAD / count : DMS_CLAIMED_AHEAD);
        for (unsigned j = 0; j < together; j++, whole += LANES * stride) {
            for (unsigned i = 0; i < count && streamed && !split && j == 0; i++)
                DMS_PREFETCH_AT(parts[i], ahead);
            for (unsigned i = 0; i < count && streamed && split; i += MOST) {
                DMS_PREFETCH_AT(whole + i * VECTOR, ahead);
                DMS_FETCH_PAGE(whole + i * VECTOR, stores);
            }
            for (unsigned i = 0; i < count; i++)
                v[i] = split ? load_lanes(whole + block_of[i] * BLOCK, (ptrdiff_t)stride) : load(parts[i] + j * VECTOR);
            DMS_NAME(permute_block)(v, order, count, element, split);
            for (unsigned i = 0; i < count; i++)
                if (streamed && split)
                    store(pieces + i * ROOM + fill[i] + j * VECTOR, v[i]);
                else if (streamed)
                    stream(whole + i * VECTOR, DMS_NAME(in_whole)(v, block_of, count, i));
                else if (split)
                    store(parts[i] + j * VECTOR, v[i]);
                else
                    store_lanes(whole + block_of[i] * BLOCK, stride, v[i]);
        }
        for (unsigned i = 0; i < count; i++) {
            for (unsigned j = 0; j < together && streamed && split; j++)
                stream(parts[i] + j * VECTOR, load(pieces + i * ROOM + j * VECTOR));
            if (fill[i] > 0)
                DMS_NAME(copy_line)(pieces + i * ROOM, pieces + i * ROOM + together * VECTOR);
            parts[i] += together * VECTOR;
        }
    }
    for (unsigned i = 0; i < count && streamed && split; i++)
        dms_copy_short(parts[i], pieces + i * ROOM, fill[i]);
    dms_move_channels(c, split, rows);
}

#define COPY(split, regime)                                                                              \
    (t->count == 2     ? DMS_NAME(copy_equal)(c, t, 2, 8, split, regime, stores)                        \
     : t->count == 3   ? DMS_NAME(copy_equal)(c, t, 3, 1, split, regime, stores)                        \
     : t->element == 4 ? DMS_NAME(copy_equal)(c, t, 4, 4, split, regime, stores)                        \
                       : DMS_NAME(copy_equal)(c, t, 4, 8, split, regime, stores))

static DMS_TARGET void DMS_NAME(copy_stretch)(const dms_channels *c, const void *tables, bool split, const dms_stores *stores)
{
    const equal_tables *t = tables;
    if (split)
        COPY(true, DMS_PLAIN);
    else
        COPY(false, DMS_PLAIN);
}

static DMS_TARGET void DMS_NAME(claim_stretch)(const dms_channels *c, const void *tables, bool split, const dms_stores *stores)
{
    const equal_tables *t = tables;
    if (split)
        COPY(true, DMS_CLAIMED);
    else
        COPY(false, DMS_CLAIMED);
}

static DMS_TARGET void DMS_NAME(stream_stretch)(const dms_channels *c, const void *tables, bool split, const dms_stores *stores)
{
    const equal_tables *t = tables;
    if (split)
        COPY(true, DMS_STREAMED);
    else
        COPY(false, DMS_STREAMED);
}
#undef COPY

/* Returns the rows before targets are stored directly past the caches: up to their first cache line or, in a split whose parts begin at different places in
 * a line, a whole line of each part; c->rows if there are too few. */
static uint64_t rows_to_lines(const dms_channels *c, bool split)
{
    if (!split) {
        uint64_t before = 0;
        while (before < DMS_LINE && ((uintptr_t)c->whole + before * c->row) % DMS_LINE != 0)
            before++;
        return before < DMS_LINE && before < c->rows ? before : c->rows;
    }
    const size_t left = (0 - (uintptr_t)c->parts[0]) % DMS_LINE, rows = left / c->widths[0];
    bool alike = left % c->widths[0] == 0 && rows < c->rows;
    for (size_t i = 1; i < c->count; i++)
        alike = alike && ((uintptr_t)c->parts[i] - (uintptr_t)c->parts[0]) % DMS_LINE == 0;
    if (alike)
        return rows;
    return c->rows > 2 * DMS_GATHERED_PART / c->widths[0] ? DMS_LINE / c->widths[0] : c->rows;
}

/* ---- The kernels ---- */

void *DMS_NAME(dms_prepare_channels)(const dmlsplit_plan *plan)
{
    equal_tables *t = dms_allocate(1, sizeof *t);
    if (t != NULL)
        fill_equal(t, (unsigned)dms_full_parts(plan), dms_equal_width(plan), plan->direction == DMLSPLIT_SPLIT);
    return t;
}

DMS_TARGET void DMS_NAME(dms_copy_channels)(const dms_channels *c, const void *tables, bool split, const dms_stores *stores)
{
    const uint64_t together = DMS_GATHERED_PART / c->widths[0], head = dms_is_streamed(stores) ? rows_to_lines(c, split) : 0;
    if (!dms_is_streamed(stores)) {
        if (stores->regime == DMS_CLAIMED)
            DMS_NAME(claim_stretch)(c, tables, split, stores);
        else
            DMS_NAME(copy_stretch)(c, tables, split, stores);
        return;
    }
    if (head == c->rows) {
        DMS_NAME(copy_batches)(c, tables, split, DMS_STAGED_PART / c->widths[0], c->row, stores, DMS_NAME(copy_stretch));
        return;
    }
    dms_channels rows = *c;
    rows.rows = head;
    dms_move_channels(&rows, split, 0);
    dms_skip_rows(&rows, head);
    rows.rows = (c->rows - head) / together * together;
    DMS_NAME(stream_stretch)(&rows, tables, split, stores);
    dms_skip_rows(&rows, rows.rows);
    rows.rows = (c->rows - head) % together;
    DMS_NAME(copy_stretch)(&rows, tables, split, stores);
}

const char *DMS_NAME(dms_can_planes)(const dms_nest *nest)
{
    enum { WIDEST = LANES == 1 ? 4 : 8 };
    const dms_pixels p = nest->pixels;
    if (p.count == 0)
        return dms_no_pixels;
    return p.count > 4 || nest->run > WIDEST ? "pixels have more than 4 elements, or these more than 8 bytes, of 16-byte vectors 4" : NULL;
}

DMS_TARGET void DMS_NAME(dms_run_planes)(const dms_nest *nest, char *target, const char *source)
{
    equal_tables tables;
    fill_equal(&tables, nest->pixels.count, nest->run, nest->pixels.split);
    dms_copy_planes(nest, target, source, DMS_NAME(dms_copy_channels), &tables);
}
