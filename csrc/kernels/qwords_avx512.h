/* qwords_avx512.h - rows of one line of memory, cut into 2 or 3 parts of whole qwords, such as 1 + 2 + 5
 *
 * A split takes eight rows at once, which are eight vectors of the parts as well; each of these is permuted from the rows that it has qwords of.
 * Here parts of 1 and 7 qwords:
 *
 *     row 0  a0 b0 b1 b2 b3 b4 b5 b6        part a  a0 a8 ...             from all rows
 *     row 1  a8 b8 b9 ...                   part b  b0 b1 b2 b3 b4 b5 b6 b8    from rows 0 and 1
 *                                                   b9 ...                     from rows 1 and 2
 *
 * A join loads the pieces of a row to where they belong, by masks.
 */
#include "carried_avx512.h"

enum { ROWS = 8 };                      /* that are whole vectors in every part */

/* Loops would not be unrolled, and rows not stay in registers. */
#define LATER(DO) DO(1) DO(2) DO(3) DO(4) DO(5) DO(6) DO(7)
#define EACH(DO) DO(0) LATER(DO)

static DMS_TARGET DMS_ALWAYS_INLINE vector carry(carried *to, vector v)
{
    const vector rotated = ROTATE(v, to->rotation), line = _mm512_mask_blend_epi8(to->filled, rotated, to->waiting);
    to->waiting = rotated;
    return line;
}

/* regime is a constant. */
static DMS_TARGET DMS_ALWAYS_INLINE void put_line(carried *to, vector v, dms_regime regime)
{
    if (regime == DMS_CLAIMED)
        DMS_CLAIM(to->line, DMS_CLAIMED_AHEAD);
    if (regime == DMS_STREAMED)
        stream(to->line, v);
    else
        store(to->line, v);
    to->line += DMS_LINE;
}

/* A vector of a part that begins at qword place of each row. width (qwords), place and index are constants, as all that follows from them. */
static DMS_TARGET DMS_ALWAYS_INLINE __m512i gather(const __m512i *row, size_t width, size_t place, size_t index)
{
    const size_t begin = ROWS * index;  /* of the vector in the part, in qwords */
#define COLUMN(t) (long long)(place + (begin + (t)) % width)
    const __m512i columns = _mm512_setr_epi64(COLUMN(0), COLUMN(1), COLUMN(2), COLUMN(3), COLUMN(4), COLUMN(5), COLUMN(6), COLUMN(7));
    __m512i v = _mm512_permutexvar_epi64(columns, row[begin / width]);
#define ADD_ROW(r)                                                                                                  \
    if ((r) > begin / width && (r) * width < begin + ROWS)                                                          \
        v = _mm512_mask_permutexvar_epi64(v, (__mmask8)(0xff << ((r) * width - begin)), columns, row[r]);
    LATER(ADD_ROW)
    return v;
}

/* Blocks of eight rows; the widths are constants, c is 0 where there are two parts. */
static DMS_TARGET DMS_ALWAYS_INLINE void split_blocks(const dms_channels *channels, const dms_stores *stores, carried *to, bool ragged, size_t a,
                                                      size_t b, size_t c)
{
    const char *from = channels->whole;
    const dms_regime regime = stores->regime;
    const uintptr_t ahead = dms_lines_ahead(stores, true);
    carried to_a = to[0], to_b = to[1], to_c = to[c > 0 ? 2 : 1];
    for (uint64_t left = channels->rows; left > 0; left -= ROWS, from += ROWS * DMS_LINE) {
        vector row[ROWS], v[ROWS];
#define FETCH_LINE(i) DMS_PREFETCH_AT(from + (i) * DMS_LINE, ahead);
#define FETCH_PAGE(i) DMS_FETCH_PAGE(from + (i) * DMS_LINE, stores);
#define LOAD_ROW(i) row[i] = load(from + (i) * DMS_LINE);
#define GATHER(i) v[i] = (i) < a ? gather(row, a, 0, i) : (i) < a + b ? gather(row, b, a, (i) - a) : gather(row, c, a + b, (i) - a - b);
#define TARGET(i) ((i) < a ? &to_a : (i) < a + b ? &to_b : &to_c)
#define CARRY(i) v[i] = carry(TARGET(i), v[i]);
#define PUT(i) put_line(TARGET(i), v[i], DMS_PLAIN);
#define PUT_CLAIMED(i) put_line(TARGET(i), v[i], DMS_CLAIMED);
#define PUT_STREAMED(i) put_line(TARGET(i), v[i], DMS_STREAMED);
        if (regime == DMS_STREAMED) {
            EACH(FETCH_LINE)
            EACH(FETCH_PAGE)
        }
        EACH(LOAD_ROW)
        EACH(GATHER)
        if (ragged) {
            EACH(CARRY)
        }
        if (regime == DMS_STREAMED) {
            EACH(PUT_STREAMED)
        } else if (regime == DMS_CLAIMED) {
            EACH(PUT_CLAIMED)
        } else {
            EACH(PUT)
        }
    }
    to[0] = to_a;
    to[1] = to_b;
    if (c > 0)
        to[2] = to_c;
}

/* All ways to cut eight qwords into 2 or 3 parts. */
#define CUTS(DO) \
    DO(1, 7, 0) DO(2, 6, 0) DO(3, 5, 0) DO(4, 4, 0) DO(5, 3, 0) DO(6, 2, 0) DO(7, 1, 0) \
    DO(1, 1, 6) DO(1, 2, 5) DO(1, 3, 4) DO(1, 4, 3) DO(1, 5, 2) DO(1, 6, 1) DO(2, 1, 5) \
    DO(2, 2, 4) DO(2, 3, 3) DO(2, 4, 2) DO(2, 5, 1) DO(3, 1, 4) DO(3, 2, 3) DO(3, 3, 2) \
    DO(3, 4, 1) DO(4, 1, 3) DO(4, 2, 2) DO(4, 3, 1) DO(5, 1, 2) DO(5, 2, 1) DO(6, 1, 1)

static DMS_TARGET void split_rows(const dms_channels *channels, const dms_stores *stores, carried *to, bool ragged)
{
    switch (channels->widths[0] + channels->widths[1] / 8) {
#define SPLIT_CUT(a, b, c) case (a) * 8 + (b): split_blocks(channels, stores, to, ragged, a, b, c); break;
        CUTS(SPLIT_CUT)
    default: break;
    }
}

/* Pieces are loaded from before they begin, where masks keep these bytes from being read. regime is a constant. */
static DMS_TARGET DMS_ALWAYS_INLINE void join_blocks(const dms_channels *p, carried *given, bool ragged, dms_regime regime)
{
    const size_t third = p->count - 1;  /* the second one again, where there is none, of which nothing is loaded then */
    const size_t step_a = p->widths[0], step_b = p->widths[1], step_c = p->widths[third];
    const __mmask8 not_a = (__mmask8)(0xff << step_a / 8), not_b = (__mmask8)(0xff << (step_a + step_b) / 8);
    uintptr_t a = (uintptr_t)p->parts[0], b = (uintptr_t)p->parts[1] - p->places[1], c = (uintptr_t)p->parts[third] - p->places[third];
    carried to = *given;
    for (uint64_t left = p->rows; left > 0; left -= ROWS) {
#define FETCH_PIECES(from, step)                                                                                \
    for (size_t line = 0; regime == DMS_STREAMED && line < ROWS * (step); line += DMS_LINE)                     \
        DMS_PREFETCH_AT((from) + line, DMS_FETCHED_NEAR);
        FETCH_PIECES(a, step_a)
        FETCH_PIECES(b, step_b)
        FETCH_PIECES(c, step_c)
        for (int row = 0; row < ROWS; row++, a += step_a, b += step_b, c += step_c) {
            vector v = _mm512_maskz_loadu_epi64((__mmask8)~not_a, (const void *)a);
            v = _mm512_mask_loadu_epi64(v, (__mmask8)(not_a & ~not_b), (const void *)b);
            v = _mm512_mask_loadu_epi64(v, not_b, (const void *)c);
            put_line(&to, ragged ? carry(&to, v) : v, regime);
        }
    }
    *given = to;
}

#define JOIN_ROWS(name, ragged, regime)                                                     \
    static DMS_TARGET void name(const dms_channels *channels, carried *to, bool carries)    \
    {                                                                                       \
        (void)carries;                                                                      \
        join_blocks(channels, to, ragged, regime);                                          \
    }
JOIN_ROWS(join_plain, false, DMS_PLAIN)
JOIN_ROWS(join_claimed, carries, DMS_CLAIMED)
JOIN_ROWS(join_streamed, carries, DMS_STREAMED)

static DMS_TARGET void copy_blocks(const dms_channels *c, const void *tables, bool split, const dms_stores *stores, carried *to, bool ragged)
{
    static void (*const joins[])(const dms_channels *, carried *, bool) = {join_plain, join_claimed, join_streamed};
    (void)tables;
    if (split)
        split_rows(c, stores, to, ragged);
    else
        joins[stores->regime](c, to, ragged);
}

static void copy_few(const dms_channels *c, const void *tables, bool split)
{
    (void)tables;
    dms_move_channels(c, split, 0);
}

const char *dms_accept_qwords_avx512(const dmlsplit_plan *plan)
{
    const char *refusal = dms_refuse_channels(plan);
    const dms_space *space = &plan->space;
    uint64_t bits = 0;
    if (refusal != NULL)
        return refusal;
    for (uint64_t i = 0; i < plan->part_count; i++)
        bits |= plan->parts[i].shape != NULL ? plan->parts[i].shape->operand->length * space->element_size : 0;
    if (space->operands[0].length * space->element_size != DMS_LINE || bits % 8 != 0 || dms_full_parts(plan) > 3)
        return "rows are not 64 bytes in 2 or 3 pieces of whole qwords";
    return NULL;
}

void dms_copy_qwords_avx512(const dms_channels *c, const void *tables, bool split, const dms_stores *stores)
{
    copy_carried(c, tables, split, ROWS, stores, stores->regime != DMS_PLAIN, copy_few, copy_blocks);
}
