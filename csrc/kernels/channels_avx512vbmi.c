/* channels_avx512vbmi.c - small rows by byte permutes of 512-bit vectors
 *
 * 2, 3 or 4 parts of equal width, here 3 of 1 byte: as many vectors as there are parts hold whole rows of all of them, and each vector of a part
 * takes its bytes from these by one table (tables and vectors change places in a join, and nothing else):
 *
 *     whole    abcabcab|cabcabca|bcabcabc       part a   aaaaaaaa   table  0  3  6 |  9 12 15 | 18 21
 *              vector 0  vector 1  vector 2     part b   bbbbbbbb          1  4  7 | 10 13 16 | 19 22
 *
 * Every store is a whole line of memory, wherever a part begins: the end of the vector before is kept and rotated in front.
 *
 *     previous  PQRSTUVW   now  ijklmnop        line in memory   |UVWijklm|    (shift 3; nop is carried on)
 */
#include "../dms_channels.h"
#include "../dms_transpose.h"

#if DMS_X86
#include <immintrin.h>

#include "lines_avx512vbmi.h"

/* Source bytes of the target's byte t, counted through the vectors 0 to count - 1. width is a power of two. */
static DMS_ALWAYS_INLINE void fill_table(uint8_t *table, unsigned target, unsigned count, unsigned shift, bool split)
{
    for (unsigned t = 0; t < DMS_LINE; t++) {
        const unsigned unit = t >> shift, within = t & ((1u << shift) - 1);
        const unsigned in_whole = ((target << 6) + t) >> shift;
        const unsigned from_whole = (unit * count + target) << shift;
        const unsigned from_parts = (in_whole % count << 6) + (in_whole / count << shift);
        table[t] = (uint8_t)((split ? from_whole : from_parts) + within);
    }
}

typedef struct gather_tables {
    unsigned shift;                     /* of the width */
    __m512i table[4];
    __mmask64 upper[4];                 /* where the table is at 128 or above */
} gather_tables;

static DMS_TARGET_AVX512VBMI DMS_ALWAYS_INLINE void fill_tables(gather_tables *tables, unsigned count, size_t width, bool split)
{
    tables->shift = width == 1 ? 0 : width == 2 ? 1 : width == 4 ? 2 : width == 8 ? 3 : 4;
    for (unsigned i = 0; i < count; i++) {
        uint8_t bytes[DMS_LINE];
        fill_table(bytes, i, count, tables->shift, split);
        tables->table[i] = _mm512_loadu_si512(bytes);
        tables->upper[i] = _mm512_movepi8_mask(tables->table[i]);
    }
}

/* A permute looks at the low bits of the table only: 7 of them choose from two vectors, 6 from one. */
static DMS_TARGET_AVX512VBMI DMS_ALWAYS_INLINE __m512i gather(const __m512i *from, unsigned count, __m512i table, __mmask64 upper)
{
    const __m512i low = _mm512_permutex2var_epi8(from[0], table, from[1]);
    if (count == 2)
        return low;
    if (count == 3)
        return _mm512_mask_permutexvar_epi8(low, upper, table, from[2]);
    return _mm512_mask_blend_epi8(upper, low, _mm512_permutex2var_epi8(from[2], table, from[3]));
}

/* One stretch of rows. count, split and streamed are constants. */
static DMS_TARGET_AVX512VBMI DMS_ALWAYS_INLINE void copy_equal(const dms_channels *c, const gather_tables *tables, unsigned count, bool split,
                                                                bool streamed)
{
    const unsigned shift = tables->shift;
    const uint64_t block = DMS_LINE >> shift;
    const unsigned targets = split ? count : 1;
    __m512i table[4], from[4];
    __mmask64 upper[4];
    line_writer writers[4];
    const char *source[4];
    size_t source_step = split ? count * DMS_LINE : DMS_LINE;
    for (unsigned i = 0; i < count; i++) {
        table[i] = tables->table[i];
        upper[i] = tables->upper[i];
        source[i] = split ? c->whole + i * DMS_LINE : c->parts[i];
    }
    for (unsigned i = 0; i < targets; i++)
        writers[i] = start_lines(split ? c->parts[i] : c->whole);

    uint64_t rows = c->rows;
    if (rows >= block) {                /* the first lines, which begin before the targets do */
        for (unsigned i = 0; i < count; i++) {
            from[i] = _mm512_loadu_si512(source[i]);
            source[i] += source_step;
        }
        for (unsigned i = 0; i < count; i++)
            put_bytes(&writers[split ? i : 0], gather(from, count, table[i], upper[i]), DMS_LINE);
        rows -= block;
    }

    char *line[4];
    __m512i previous[4], rotation[4];
    for (unsigned i = 0; i < targets; i++) {
        line[i] = writers[i].line;
        previous[i] = writers[i].previous;
        rotation[i] = writers[i].rotation;
    }
    for (; rows >= block; rows -= block) {
        for (unsigned i = 0; i < count; i++) {
            from[i] = _mm512_loadu_si512(source[i]);
            if (streamed)
                DMS_PREFETCH(source[i]);
            source[i] += source_step;
        }
        for (unsigned i = 0; i < count; i++) {
            const unsigned w = split ? i : 0;
            const __m512i now = gather(from, count, table[i], upper[i]);
            store_line(line[w], _mm512_permutex2var_epi8(previous[w], rotation[w], now), streamed);
            previous[w] = now;
            line[w] += DMS_LINE;
        }
    }
    for (unsigned i = 0; i < targets; i++) {
        writers[i].line = line[i];
        writers[i].previous = previous[i];
    }

    if (rows > 0) {                     /* less than a block: load and store what is there of it */
        const size_t rest = (size_t)rows << shift;
        for (unsigned i = 0; i < count; i++)
            from[i] = _mm512_maskz_loadu_epi8(first_bytes(split ? left_over(rest * count, i) : rest), source[i]);
        for (unsigned i = 0; i < count; i++)
            put_bytes(&writers[split ? i : 0], gather(from, count, table[i], upper[i]), split ? rest : left_over(rest * count, i));
    }
    for (unsigned i = 0; i < targets; i++)
        finish_lines(&writers[i]);
}

/* All stretches. count and split are constants. */
static DMS_TARGET_AVX512VBMI DMS_ALWAYS_INLINE void copy_all(const dmlsplit_plan *plan, const dms_buffers *buffers, uint64_t first,
                                                             uint64_t last, unsigned count, bool split)
{
    dms_channels channels;
    gather_tables tables;
    fill_tables(&tables, count, dms_equal_width(plan), split);
    while (first < last) {
        dms_next_channels(plan, buffers, &first, last, &channels);
        if (plan->stream)
            copy_equal(&channels, &tables, count, split, true);
        else
            copy_equal(&channels, &tables, count, split, false);
    }
}

#define COPY_ALL(name, count, split)                                                                                                 \
    static DMS_TARGET_AVX512VBMI void name(const dmlsplit_plan *plan, const dms_buffers *buffers, uint64_t first, uint64_t last)        \
    {                                                                                                                                \
        copy_all(plan, buffers, first, last, count, split);                                                                          \
    }

COPY_ALL(split_2, 2, true)
COPY_ALL(split_3, 3, true)
COPY_ALL(split_4, 4, true)
COPY_ALL(join_2, 2, false)
COPY_ALL(join_3, 3, false)
COPY_ALL(join_4, 4, false)

const char *dms_accept_channels_avx512vbmi(const dmlsplit_plan *plan)
{
    const char *refusal = dms_refuse_channels(plan);
    if (refusal != NULL)
        return refusal;
    const size_t width = dms_equal_width(plan);
    if (width == 0 || width > 16 || (width & (width - 1)) != 0 || plan->space.operands[0].length > 4 * plan->space.operands[1].length)
        return "there are not 2 to 4 parts of 1, 2, 4, 8 or 16 bytes";
    return NULL;
}

DMS_TARGET_AVX512VBMI void dms_run_channels_avx512vbmi(const dmlsplit_plan *plan, const dms_buffers *buffers, uint64_t first, uint64_t last)
{
    void (*const run[2][3])(const dmlsplit_plan *, const dms_buffers *, uint64_t, uint64_t) = {{split_2, split_3, split_4},
                                                                                               {join_2, join_3, join_4}};
    const uint64_t count = plan->space.operands[0].length / plan->space.operands[1].length;
    run[plan->direction][count - 2](plan, buffers, first, last);
    DMS_LEAVE_AVX(plan->stream);
}

/* ---- Planes: one part between pixels and planes, a matrix with 2 to 4 rows or columns ---- */

static bool is_few(uint64_t count)
{
    return count >= 2 && count <= 4;
}

const char *dms_accept_planes_avx512vbmi(const dms_nest *nest)
{
    const char *refusal = dms_refuse_transpose(nest);
    if (refusal != NULL)
        return refusal;
    const dms_matrix m = dms_find_matrix(nest);
    const bool to_planes = is_few(m.columns->size) && m.rows->source_stride == (int64_t)(m.columns->size * nest->run);
    const bool to_pixels = is_few(m.rows->size) && m.columns->target_stride == (int64_t)(m.rows->size * nest->run);
    return to_planes || to_pixels ? NULL : "it does not turn pixels of 2 to 4 elements to planes or back";
}

/* Pixels to planes is a split, planes to pixels a join. count and split are constants. */
static DMS_TARGET_AVX512VBMI DMS_ALWAYS_INLINE void turn_planes(const dms_nest *nest, char *target, const char *source, unsigned count, bool split)
{
    const dms_matrix m = dms_find_matrix(nest);
    uint64_t index[DMLSPLIT_MAX_RANK];
    dms_channels c;
    gather_tables tables;
    fill_tables(&tables, count, nest->run, split);
    c.rows = split ? m.rows->size : m.columns->size;
    dms_first(m.count, index);
    do {
        c.whole = split ? (char *)(uintptr_t)source : target;       /* const is dropped as in dms_buffers */
        for (unsigned i = 0; i < count; i++)
            c.parts[i] = split ? target + (int64_t)i * m.columns->target_stride : (char *)(uintptr_t)source + (int64_t)i * m.rows->source_stride;
        if (nest->stream)
            copy_equal(&c, &tables, count, split, true);
        else
            copy_equal(&c, &tables, count, split, false);
    } while (dms_next(m.around, m.count, index, &target, &source));
}

#define TURN_PLANES(name, count, split)                                                                  \
    static DMS_TARGET_AVX512VBMI void name(const dms_nest *nest, char *target, const char *source)       \
    {                                                                                                    \
        turn_planes(nest, target, source, count, split);                                                 \
    }

TURN_PLANES(to_planes_2, 2, true)
TURN_PLANES(to_planes_3, 3, true)
TURN_PLANES(to_planes_4, 4, true)
TURN_PLANES(to_pixels_2, 2, false)
TURN_PLANES(to_pixels_3, 3, false)
TURN_PLANES(to_pixels_4, 4, false)

DMS_TARGET_AVX512VBMI void dms_run_planes_avx512vbmi(const dms_nest *nest, char *target, const char *source)
{
    void (*const to_planes[3])(const dms_nest *, char *, const char *) = {to_planes_2, to_planes_3, to_planes_4};
    void (*const to_pixels[3])(const dms_nest *, char *, const char *) = {to_pixels_2, to_pixels_3, to_pixels_4};
    const dms_matrix m = dms_find_matrix(nest);
    if (is_few(m.columns->size) && m.rows->source_stride == (int64_t)(m.columns->size * nest->run))
        to_planes[m.columns->size - 2](nest, target, source);
    else
        to_pixels[m.rows->size - 2](nest, target, source);
    DMS_LEAVE_AVX(nest->stream);
}
#endif
