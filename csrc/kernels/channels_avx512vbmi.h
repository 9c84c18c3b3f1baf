/* channels_avx512vbmi.h - small rows by byte permutes of 512-bit vectors
 *
 * 2 to 16 parts of equal width, here 3 of 1 byte: as many vectors as there are parts hold whole rows of all of them, and each vector of a part
 * takes its bytes from these by one table (tables and vectors change places in a join, and nothing else):
 *
 *     whole    abcabcab|cabcabca|bcabcabc       part a   aaaaaaaa   table  0  3  6 |  9 12 15 | 18 21
 *              vector 0  vector 1  vector 2     part b   bbbbbbbb          1  4  7 | 10 13 16 | 19 22
 *
 * Every store is a whole line of memory, wherever a part begins: a vector is rotated, and its end waits for the begin of the next one, as put_vector
 * does it (lines_template.h), but in registers from line to line.
 *
 *     now  ijklmnop   rotated  nopijklm   waiting  UVW.....      line in memory   |UVWijklm|    (nop is carried on)
 */
#include "../dms_channels.h"
#include "../dms_transpose.h"
#include "lines_template.h"

#include <stdlib.h>

enum {
    MOST_PAIRS = DMS_MOST_CHANNELS / 2,
    MOST_WIDE = 8,                      /* parts of 4 bytes or more; transposes, shuffles and moves are faster with more of them */
    MOST_UNROLLED = 8                   /* parts up to which loops over the targets are unrolled: it is slower with 13 than a loop */
};

typedef struct gather_tables {
    unsigned count, shift;              /* of vectors; of the width */
    uint8_t table[DMS_MOST_CHANNELS][DMS_LINE];     /* the source bytes, counted through a pair of vectors, */
    __mmask64 masks[DMS_MOST_CHANNELS][MOST_PAIRS]; /* and those that each pair has */
} gather_tables;

/* width is a power of two. */
static void fill_tables(gather_tables *tables, unsigned count, size_t width, bool split)
{
    const unsigned shift = width == 1 ? 0 : width == 2 ? 1 : width == 4 ? 2 : width == 8 ? 3 : 4;
    tables->count = count;
    tables->shift = shift;
    for (unsigned target = 0; target < count; target++) {
        memset(tables->masks[target], 0, sizeof tables->masks[target]);
        for (unsigned t = 0; t < DMS_LINE; t++) {
            const unsigned in_whole = ((target << 6) + t) >> shift;
            const unsigned from_whole = ((t >> shift) * count + target) << shift;
            const unsigned from_parts = (in_whole % count << 6) + (in_whole / count << shift);
            const unsigned from = (split ? from_whole : from_parts) + (t & ((1u << shift) - 1));
            tables->table[target][t] = (uint8_t)(from % (2 * DMS_LINE));
            tables->masks[target][from / (2 * DMS_LINE)] |= UINT64_C(1) << t;
        }
    }
}

/* A permute takes bytes from two vectors, or from one where no second one is left. */
static DMS_TARGET DMS_ALWAYS_INLINE vector gather(const vector *from, unsigned count, vector table, const __mmask64 *masks)
{
    vector v = _mm512_permutex2var_epi8(from[0], table, from[1]);
    for (unsigned i = 2; i < count; i += 2)
        v = i + 1 == count ? _mm512_mask_permutexvar_epi8(v, masks[i / 2], table, from[i])
                           : _mm512_mask_blend_epi8(masks[i / 2], v, _mm512_permutex2var_epi8(from[i], table, from[i + 1]));
    return v;
}

/* The bytes that are left of `size` for the vector with this index. */
static inline size_t left_over(size_t size, size_t index)
{
    const size_t before = index * DMS_LINE;
    return size <= before ? 0 : size - before < DMS_LINE ? size - before : DMS_LINE;
}

/* Appends a block of rows to the lines, or less: where lines begin before the targets do, and what is there of the last rows. */
static DMS_TARGET void append_block(dms_lines *lines, const gather_tables *tables, const char *const *source, uint64_t rows, bool split)
{
    const size_t size = (size_t)rows << tables->shift, whole = size * tables->count;
    vector from[DMS_MOST_CHANNELS];
    for (unsigned i = 0; i < tables->count; i++)
        from[i] = _mm512_maskz_loadu_epi8(first_bytes(split ? left_over(whole, i) : size), source[i]);
    for (unsigned i = 0; i < tables->count; i++) {
        dms_lines *const w = &lines[split ? i : 0];
        const vector now = gather(from, tables->count, load((const char *)tables->table[i]), tables->masks[i]);
        DMS_NAME(put_vector)(w, now, rotation_by(w->fill), split ? size : left_over(whole, i), false);
    }
}

/* Appends rows to the lines: those of each part, or those of the whole. Less than a whole block of rows only at the end. count and split are constants,
 * as is the regime within the caches. */
static DMS_TARGET DMS_ALWAYS_INLINE void append_rows(dms_lines *lines, const dms_channels *c, const gather_tables *tables, const dms_stores *stores,
                                                     unsigned count, bool split, dms_regime regime)
{
    const uint64_t block = DMS_LINE >> tables->shift;
    const unsigned n = count > MOST_UNROLLED ? tables->count : count, targets = split ? n : 1;
    const size_t source_step = split ? count * DMS_LINE : DMS_LINE;
    vector table[DMS_MOST_CHANNELS], from[DMS_MOST_CHANNELS], waiting[DMS_MOST_CHANNELS], rotation[DMS_MOST_CHANNELS];
    __mmask64 masks[DMS_MOST_CHANNELS][MOST_PAIRS], filled[DMS_MOST_CHANNELS];
    const char *source[DMS_MOST_CHANNELS];
    char *line[DMS_MOST_CHANNELS];
    uint64_t rows = c->rows;
    size_t begin = 0, fill = 0;
    for (unsigned i = 0; i < n; i++) {
        table[i] = load((const char *)tables->table[i]);
        for (unsigned pair = 1; 2 * pair < count; pair++)
            masks[i][pair] = tables->masks[i][pair];
        source[i] = split ? c->whole + i * DMS_LINE : c->parts[i];
    }
    for (unsigned i = 0; i < targets; i++) {
        begin |= lines[i].begin;
        fill |= lines[i].fill;
        rotation[i] = rotation_by(lines[i].fill);
        filled[i] = first_bytes(lines[i].fill);
    }
    if (rows >= block && begin > 0) {
        append_block(lines, tables, source, block, split);
        for (unsigned i = 0; i < n; i++)
            source[i] += source_step;
        rows -= block;
    }
    for (unsigned i = 0; i < targets; i++) {
        line[i] = lines[i].line;
        waiting[i] = load(lines[i].bytes);
    }
    for (; rows >= block; rows -= block) {
        for (unsigned i = 0; i < count; i++) {
            if (split && regime == DMS_STREAMED)    /* several streams keep several pages open as they are */
                DMS_FETCH_PAGE(source[i], stores);
            from[i] = load(source[i]);
            source[i] += source_step;
        }
        for (unsigned i = 0; i < n; i++) {
            const unsigned w = split ? i : 0;
            vector now = gather(from, count, table[i], masks[i]);
            if (fill > 0) {
                const vector rotated = ROTATE(now, rotation[w]);
                now = _mm512_mask_blend_epi8(filled[w], rotated, waiting[w]);
                waiting[w] = rotated;
            }
            if (regime == DMS_CLAIMED)
                DMS_CLAIM(line[w], DMS_CLAIMED_AHEAD);
            if (regime == DMS_STREAMED)
                stream(line[w], now);
            else
                store(line[w], now);
            line[w] += DMS_LINE;
        }
    }
    for (unsigned i = 0; i < targets; i++) {
        lines[i].line = line[i];
        store(lines[i].bytes, waiting[i]);
    }
    if (rows > 0)
        append_block(lines, tables, source, rows, split);
}

typedef void append_function(dms_lines *lines, const dms_channels *c, const gather_tables *tables, const dms_stores *stores);

#define FEW(DO) DO(2) DO(3) DO(4) DO(5)
#define MANY(DO) DO(6) DO(7) DO(8) DO(9) DO(10) DO(11) DO(12) DO(13) DO(14) DO(15) DO(16)
#define APPEND_ROWS(name, count, split, regime)                                                                                 \
    static DMS_TARGET void name(dms_lines *lines, const dms_channels *c, const gather_tables *tables, const dms_stores *stores)  \
    {                                                                                                                           \
        append_rows(lines, c, tables, stores, count, split, regime);                                                            \
    }
#define APPEND_MANY(count)                                          \
    APPEND_ROWS(split_##count, count, true, stores->regime)         \
    APPEND_ROWS(join_##count, count, false, stores->regime)
#define APPEND_FEW(count)                                           \
    APPEND_MANY(count)                                              \
    APPEND_ROWS(split_##count##_plain, count, true, DMS_PLAIN)      \
    APPEND_ROWS(join_##count##_plain, count, false, DMS_PLAIN)
FEW(APPEND_FEW)
MANY(APPEND_MANY)

/* One stretch of rows. */
static DMS_TARGET void copy_equal(const dms_channels *c, const gather_tables *tables, bool split, const dms_stores *stores)
{
#define FUNCTIONS_FEW(count) {{join_##count##_plain, join_##count}, {split_##count##_plain, split_##count}},
#define FUNCTIONS_MANY(count) {{join_##count, join_##count}, {split_##count, split_##count}},
    static append_function *const functions[][2][2] = {FEW(FUNCTIONS_FEW) MANY(FUNCTIONS_MANY)};
    _Alignas(DMS_LINE) char waiting[DMS_MOST_CHANNELS][DMS_LINE];
    dms_lines lines[DMS_MOST_CHANNELS];
    const unsigned targets = split ? tables->count : 1;
    for (unsigned i = 0; i < targets; i++)
        lines[i] = dms_start_lines(split ? c->parts[i] : c->whole, waiting[i]);
    functions[tables->count - 2][split][stores->regime != DMS_PLAIN](lines, c, tables, stores);
    for (unsigned i = 0; i < targets; i++)
        dms_finish_lines(&lines[i]);
}

static unsigned count_of(const dmlsplit_plan *plan)
{
    return (unsigned)(plan->space.operands[0].length / plan->space.operands[1].length);
}

const char *dms_accept_channels_avx512vbmi(const dmlsplit_plan *plan)
{
    const char *refusal = dms_refuse_channels(plan);
    if (refusal != NULL)
        return refusal;
    const size_t width = dms_equal_width(plan);
    if (width == 0 || (width & (width - 1)) != 0 || width > 16 || (width > 2 && count_of(plan) > MOST_WIDE))
        return "there are not 2 to 16 parts of 1 or 2 bytes, or 2 to 8 parts of 4, 8 or 16";
    return NULL;
}

void *dms_prepare_channels_avx512vbmi(const dmlsplit_plan *plan)
{
    gather_tables *tables = malloc(sizeof *tables);
    if (tables != NULL)
        fill_tables(tables, count_of(plan), dms_equal_width(plan), plan->direction == DMLSPLIT_SPLIT);
    return tables;
}

DMS_TARGET void dms_run_channels_avx512vbmi(const dmlsplit_plan *plan, const dms_buffers *buffers, uint64_t first, uint64_t last)
{
    while (first < last) {
        dms_channels channels;
        dms_next_channels(plan, buffers, &first, last, &channels);
        copy_equal(&channels, plan->tables, plan->direction == DMLSPLIT_SPLIT, &plan->copies);
    }
    LEAVE(dms_is_streamed(&plan->copies));
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

/* Pixels to planes is a split, planes to pixels a join. */
DMS_TARGET void dms_run_planes_avx512vbmi(const dms_nest *nest, char *target, const char *source)
{
    const dms_matrix m = dms_find_matrix(nest);
    const bool split = is_few(m.columns->size) && m.rows->source_stride == (int64_t)(m.columns->size * nest->run);
    const unsigned count = (unsigned)(split ? m.columns->size : m.rows->size);
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
        copy_equal(&c, &tables, split, &nest->stores);
    } while (dms_next(m.around, m.count, index, &target, &source));
    LEAVE(false);
}
