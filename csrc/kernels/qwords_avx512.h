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
#include "stretch_template.h"

enum { GROUP_ROWS = 32, ROWS = 8 };                    /* that are whole vectors in every part */

/* Loops would not be unrolled, and rows not stay in registers. */
#define LATER(DO) DO(1) DO(2) DO(3) DO(4) DO(5) DO(6) DO(7)
#define EACH(DO) DO(0) LATER(DO)

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
static DMS_TARGET DMS_ALWAYS_INLINE void split_blocks(const dms_channels *channels, uint64_t blocks, size_t a, size_t b, size_t c)
{
    const char *from = channels->whole;
    char *to_a = channels->parts[0], *to_b = channels->parts[1], *to_c = c > 0 ? channels->parts[2] : NULL;
    for (; blocks > 0; blocks--) {
        __m512i row[ROWS];
#define LOAD_ROW(i) row[i] = _mm512_loadu_si512((const void *)(from + (i) * DMS_LINE));
#define STORE_A(i) if ((i) < a) _mm512_storeu_si512((void *)(to_a + (i) * DMS_LINE), gather(row, a, 0, i));
#define STORE_B(i) if ((i) < b) _mm512_storeu_si512((void *)(to_b + (i) * DMS_LINE), gather(row, b, a, i));
#define STORE_C(i) if ((i) < c) _mm512_storeu_si512((void *)(to_c + (i) * DMS_LINE), gather(row, c, a + b, i));
        EACH(LOAD_ROW)
        EACH(STORE_A)
        EACH(STORE_B)
        EACH(STORE_C)
        from += ROWS * DMS_LINE;
        to_a += a * DMS_LINE;
        to_b += b * DMS_LINE;
        if (c > 0)
            to_c += c * DMS_LINE;
    }
}

/* All ways to cut eight qwords into 2 or 3 parts. */
#define CUTS(DO) \
    DO(1, 7, 0) DO(2, 6, 0) DO(3, 5, 0) DO(4, 4, 0) DO(5, 3, 0) DO(6, 2, 0) DO(7, 1, 0) \
    DO(1, 1, 6) DO(1, 2, 5) DO(1, 3, 4) DO(1, 4, 3) DO(1, 5, 2) DO(1, 6, 1) DO(2, 1, 5) \
    DO(2, 2, 4) DO(2, 3, 3) DO(2, 4, 2) DO(2, 5, 1) DO(3, 1, 4) DO(3, 2, 3) DO(3, 3, 2) \
    DO(3, 4, 1) DO(4, 1, 3) DO(4, 2, 2) DO(4, 3, 1) DO(5, 1, 2) DO(5, 2, 1) DO(6, 1, 1)

static DMS_TARGET void split_rows(const dms_channels *channels)
{
    const uint64_t blocks = channels->rows / ROWS;
    switch (channels->widths[0] + channels->widths[1] / 8) {
#define SPLIT_CUT(a, b, c) case (a) * 8 + (b): split_blocks(channels, blocks, a, b, c); break;
        CUTS(SPLIT_CUT)
    default: break;
    }
    dms_copy_channels(channels, true, blocks * ROWS);
}

/* Pieces are loaded from before they begin, where masks keep these bytes from being read. */
static DMS_TARGET void join_rows(const dms_channels *channels)
{
    uintptr_t from[3];
    __mmask8 mask[3];
    char *to = channels->whole;
    size_t steps[3];
    for (size_t i = 0; i < 3; i++) {    /* nothing is loaded for a third part that is not there, but quickly only where memory is: from the first one */
        const size_t part = i < channels->count ? i : 0;
        from[i] = (uintptr_t)channels->parts[part] - channels->places[part];
        mask[i] = (__mmask8)(i == part ? ((1u << channels->widths[i] / 8) - 1) << channels->places[i] / 8 : 0);
        steps[i] = channels->widths[part];
    }
    for (uint64_t left = channels->rows; left > 0; left--) {
        __m512i v = _mm512_maskz_loadu_epi64(mask[0], (const void *)from[0]);
        v = _mm512_mask_loadu_epi64(v, mask[1], (const void *)from[1]);
        v = _mm512_mask_loadu_epi64(v, mask[2], (const void *)from[2]);
        _mm512_storeu_si512((void *)to, v);
        for (size_t i = 0; i < 3; i++)
            from[i] += steps[i];
        to += DMS_LINE;
    }
}

static DMS_TARGET void copy_qwords(const dms_channels *c, const void *tables, bool split)
{
    (void)tables;
    if (split)
        split_rows(c);
    else
        join_rows(c);
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

void dms_run_qwords_avx512(const dmlsplit_plan *plan, const dms_buffers *buffers, uint64_t first, uint64_t last)
{
    dms_channels channels;
    while (first < last) {
        dms_next_channels(plan, buffers, &first, last, &channels);
        DMS_NAME(copy_groups)(&channels, NULL, plan->direction == DMLSPLIT_SPLIT, GROUP_ROWS, &plan->copies, copy_qwords);
    }
    LEAVE(dms_is_streamed(&plan->copies));
}
