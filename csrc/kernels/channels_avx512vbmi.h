/* channels_avx512vbmi.h - small rows by byte permutes of 512-bit vectors
 *
 * 2 to 5 parts of equal width, here 3 of 1 byte: as many vectors as there are parts hold whole rows of all of them, and each vector of a part
 * takes its bytes from these by one table (tables and vectors change places in a join, and nothing else):
 *
 *     whole    abcabcab|cabcabca|bcabcabc       part a   aaaaaaaa   table  0  3  6 |  9 12 15 | 18 21
 *              vector 0  vector 1  vector 2     part b   bbbbbbbb          1  4  7 | 10 13 16 | 19 22
 *
 * Every store is a whole line of memory, wherever a part begins: a vector is rotated, and its end waits for the begin of the next one.
 *
 *     now  ijklmnop   rotated  nopijklm   waiting  UVW.....      line in memory   |UVWijklm|    (nop is carried on)
 */
#include "../dms_channels.h"
#include "../dms_transpose.h"
#include "lines_template.h"

#include <stdlib.h>

enum { MOST = 5 };                      /* vectors of a gather */

typedef struct gather_tables {
    unsigned shift;                     /* of the width */
    uint8_t table[MOST][DMS_LINE];      /* low bits of the source bytes, counted through the vectors, */
    uint64_t fifth[MOST];               /* and where they are in the last of five */
} gather_tables;

/* width is a power of two. */
static void fill_tables(gather_tables *tables, unsigned count, size_t width, bool split)
{
    const unsigned shift = width == 1 ? 0 : width == 2 ? 1 : width == 4 ? 2 : width == 8 ? 3 : 4;
    tables->shift = shift;
    for (unsigned target = 0; target < count; target++) {
        tables->fifth[target] = 0;
        for (unsigned t = 0; t < DMS_LINE; t++) {
            const unsigned in_whole = ((target << 6) + t) >> shift;
            const unsigned from_whole = ((t >> shift) * count + target) << shift;
            const unsigned from_parts = (in_whole % count << 6) + (in_whole / count << shift);
            const unsigned from = (split ? from_whole : from_parts) + (t & ((1u << shift) - 1));
            tables->table[target][t] = (uint8_t)from;
            tables->fifth[target] |= (uint64_t)(from >= 4 * DMS_LINE) << t;
        }
    }
}

/* A permute looks at the low bits of the table only: 7 of them choose from two vectors, 6 from one. upper: where bit 7 is set. */
static DMS_TARGET DMS_ALWAYS_INLINE vector gather(const vector *from, unsigned count, vector table, __mmask64 upper, __mmask64 fifth)
{
    const vector low = _mm512_permutex2var_epi8(from[0], table, from[1]);
    if (count == 2)
        return low;
    if (count == 3)
        return _mm512_mask_permutexvar_epi8(low, upper, table, from[2]);
    const vector four = _mm512_mask_blend_epi8(upper, low, _mm512_permutex2var_epi8(from[2], table, from[3]));
    return count == 4 ? four : _mm512_mask_permutexvar_epi8(four, fifth, table, from[4]);
}

/* The bytes that are left of `size` for the vector with this index. */
static inline size_t left_over(size_t size, size_t index)
{
    const size_t before = index * DMS_LINE;
    return size <= before ? 0 : size - before < DMS_LINE ? size - before : DMS_LINE;
}

/* Appends rows to the lines: those of each part, or those of the whole. Less than a whole block of rows only at the end. count and split are constants,
 * as is the regime of the stores. */
static DMS_TARGET DMS_ALWAYS_INLINE void append_rows(dms_lines *lines, const dms_channels *c, const gather_tables *tables, const dms_stores *stores,
                                                     unsigned count, bool split, dms_regime regime)
{
    const unsigned shift = tables->shift;
    const uint64_t block = DMS_LINE >> shift;
    const unsigned targets = split ? count : 1;
    const size_t source_step = split ? count * DMS_LINE : DMS_LINE;
    vector table[MOST], from[MOST], waiting[MOST], rotation[MOST];
    __mmask64 upper[MOST], fifth[MOST], filled[MOST];
    const char *source[MOST];
    char *line[MOST];
    uint64_t rows = c->rows;
    size_t begin = 0, fill = 0;
    for (unsigned i = 0; i < count; i++) {
        table[i] = load((const char *)tables->table[i]);
        upper[i] = _mm512_movepi8_mask(table[i]);
        fifth[i] = tables->fifth[i];
        source[i] = split ? c->whole + i * DMS_LINE : c->parts[i];
    }
    for (unsigned i = 0; i < targets; i++) {
        begin |= lines[i].begin;
        fill |= lines[i].fill;
        rotation[i] = rotation_by(lines[i].fill);
        filled[i] = first_bytes(lines[i].fill);
    }
    if (rows >= block && begin > 0) {   /* the first lines, which begin before the targets do */
        for (unsigned i = 0; i < count; i++) {
            from[i] = load(source[i]);
            source[i] += source_step;
        }
        for (unsigned i = 0; i < count; i++) {
            const unsigned w = split ? i : 0;
            DMS_NAME(put_vector)(&lines[w], gather(from, count, table[i], upper[i], fifth[i]), rotation[w], DMS_LINE, false);
        }
        rows -= block;
    }
    for (unsigned i = 0; i < targets; i++) {
        line[i] = lines[i].line;
        waiting[i] = load(lines[i].bytes);
    }
    for (; rows >= block; rows -= block) {
        for (unsigned i = 0; i < count; i++) {
            if (regime == DMS_STREAMED)
                DMS_FETCH_PAGE(source[i], stores);
            from[i] = load(source[i]);
            source[i] += source_step;
        }
        for (unsigned i = 0; i < count; i++) {
            const unsigned w = split ? i : 0;
            vector now = gather(from, count, table[i], upper[i], fifth[i]);
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
    if (rows > 0) {                     /* less than a block: load and store what is there of it */
        const size_t rest = (size_t)rows << shift;
        for (unsigned i = 0; i < count; i++)
            from[i] = _mm512_maskz_loadu_epi8(first_bytes(split ? left_over(rest * count, i) : rest), source[i]);
        for (unsigned i = 0; i < count; i++) {
            const unsigned w = split ? i : 0;
            DMS_NAME(put_vector)(&lines[w], gather(from, count, table[i], upper[i], fifth[i]), rotation[w], split ? rest : left_over(rest * count, i), false);
        }
    }
}

typedef void append_function(dms_lines *lines, const dms_channels *c, const gather_tables *tables, const dms_stores *stores);

#define APPEND_ROWS(name, count, split, regime)                                                                                               \
    static DMS_TARGET void name(dms_lines *lines, const dms_channels *c, const gather_tables *tables, const dms_stores *stores)                \
    {                                                                                                                                         \
        append_rows(lines, c, tables, stores, count, split, regime);                                                                          \
    }
#define APPEND_ROWS_ALL(count)                                                                                                                \
    APPEND_ROWS(split_##count, count, true, DMS_PLAIN)                                                                                        \
    APPEND_ROWS(split_##count##_claimed, count, true, DMS_CLAIMED)                                                                            \
    APPEND_ROWS(split_##count##_streamed, count, true, DMS_STREAMED)                                                                          \
    APPEND_ROWS(join_##count, count, false, DMS_PLAIN)                                                                                        \
    APPEND_ROWS(join_##count##_claimed, count, false, DMS_CLAIMED)                                                                            \
    APPEND_ROWS(join_##count##_streamed, count, false, DMS_STREAMED)

APPEND_ROWS_ALL(2)
APPEND_ROWS_ALL(3)
APPEND_ROWS_ALL(4)
APPEND_ROWS_ALL(5)

static const dms_stores plain_stores = {DMS_PLAIN, 0, 0};

static DMS_TARGET void append(dms_lines *lines, const dms_channels *c, const gather_tables *tables, const dms_stores *stores, unsigned count, bool split)
{
#define REGIMES(name) {name, name##_claimed, name##_streamed}
    static append_function *const functions[MOST - 1][2][3] = {
        {REGIMES(join_2), REGIMES(split_2)}, {REGIMES(join_3), REGIMES(split_3)}, {REGIMES(join_4), REGIMES(split_4)}, {REGIMES(join_5), REGIMES(split_5)},
    };
    functions[count - 2][split][stores->regime](lines, c, tables, stores);
}

/* One stretch of rows. */
static DMS_TARGET void copy_equal(const dms_channels *c, const gather_tables *tables, unsigned count, bool split, const dms_stores *stores)
{
    _Alignas(DMS_LINE) char waiting[MOST][DMS_LINE];
    dms_lines lines[MOST];
    const unsigned targets = split ? count : 1;
    for (unsigned i = 0; i < targets; i++)
        lines[i] = dms_start_lines(split ? c->parts[i] : c->whole, waiting[i]);
    append(lines, c, tables, stores, count, split);
    for (unsigned i = 0; i < targets; i++)
        dms_finish_lines(&lines[i]);
}

/* ---- Twice: 6, 8, 10, 12 or 16 parts as 3 to 5 groups of 2 or 4, by way of a few lines in the first-level cache
 *
 *     whole abcdefabcdef...  ->  staged  abab.. cdcd.. efef..  ->  parts  aa.. bb.. cc.. dd.. ee.. ff..
 */

enum { STAGED_BYTES = 2048 };           /* of each group */

typedef struct cascade {
    unsigned groups, members;
    gather_tables outer, inner;         /* between the whole and the groups, between a group and its members */
} cascade;

/* The members of a group on some rows, without its staged side. */
static dms_channels members_of(const dms_channels *c, unsigned group, unsigned members, size_t place, uint64_t rows)
{
    dms_channels m;
    m.rows = rows;
    m.whole = NULL;
    for (unsigned i = 0; i < members; i++)
        m.parts[i] = c->parts[group * members + i] + place;
    return m;
}

static DMS_TARGET void copy_cascade(const dms_channels *c, const cascade *k, bool split, const dms_stores *stores)
{
    _Alignas(DMS_LINE) char staged[MOST][STAGED_BYTES], waiting[16][DMS_LINE];
    const unsigned targets = split ? k->groups * k->members : 1;
    const size_t width = (size_t)1 << k->inner.shift;
    const uint64_t block = STAGED_BYTES / (width * k->members);
    dms_lines lines[16];
    dms_channels outer;
    for (unsigned i = 0; i < targets; i++)
        lines[i] = dms_start_lines(split ? c->parts[i] : c->whole, waiting[i]);
    for (uint64_t row = 0; row < c->rows; row += outer.rows) {
        outer.rows = c->rows - row < block ? c->rows - row : block;
        outer.whole = c->whole + row * c->row;
        for (unsigned g = 0; g < k->groups; g++)
            outer.parts[g] = staged[g];
        if (split)
            copy_equal(&outer, &k->outer, k->groups, true, &plain_stores);
        for (unsigned g = 0; g < k->groups; g++) {
            dms_channels inner = members_of(c, g, k->members, (size_t)row * width, outer.rows);
            inner.whole = staged[g];
            if (split)
                append(lines + g * k->members, &inner, &k->inner, stores, k->members, true);
            else
                copy_equal(&inner, &k->inner, k->members, false, &plain_stores);
        }
        if (!split)
            append(lines, &outer, &k->outer, stores, k->groups, false);
    }
    for (unsigned i = 0; i < targets; i++)
        dms_finish_lines(&lines[i]);
}

/* The members of a group, 1 where the parts need no groups; 0: there is no way. */
static unsigned members_for(uint64_t count)
{
    switch (count) {
    case 2: case 3: case 4: case 5: return 1;
    case 6: case 8: case 10: return 2;
    case 12: case 16: return 4;
    default: return 0;
    }
}

static uint64_t count_of(const dmlsplit_plan *plan)
{
    return plan->space.operands[0].length / plan->space.operands[1].length;
}

const char *dms_accept_channels_avx512vbmi(const dmlsplit_plan *plan)
{
    const char *refusal = dms_refuse_channels(plan);
    if (refusal != NULL)
        return refusal;
    const size_t width = dms_equal_width(plan);
    const unsigned members = members_for(count_of(plan));
    if (members == 4 && width == 4)
        return "columns are as many as a transpose likes";
    if (width == 0 || (width & (width - 1)) != 0 || members == 0 || width * members > 16)
        return "there are not 2 to 5 parts of 1, 2, 4, 8 or 16 bytes, or 6, 8, 10, 12 or 16 parts in groups of 16 bytes at most";
    return NULL;
}

void *dms_prepare_channels_avx512vbmi(const dmlsplit_plan *plan)
{
    const bool split = plan->direction == DMLSPLIT_SPLIT;
    const size_t width = dms_equal_width(plan);
    cascade *k = malloc(sizeof *k);
    if (k == NULL)
        return NULL;
    k->members = members_for(count_of(plan));
    k->groups = (unsigned)count_of(plan) / k->members;
    fill_tables(&k->outer, k->groups, width * k->members, split);
    if (k->members > 1)
        fill_tables(&k->inner, k->members, width, split);
    return k;
}

DMS_TARGET void dms_run_channels_avx512vbmi(const dmlsplit_plan *plan, const dms_buffers *buffers, uint64_t first, uint64_t last)
{
    const bool split = plan->direction == DMLSPLIT_SPLIT;
    const cascade *k = plan->tables;
    while (first < last) {
        dms_channels channels;
        dms_next_channels(plan, buffers, &first, last, &channels);
        if (k->members > 1)
            copy_cascade(&channels, k, split, &plan->copies);
        else
            copy_equal(&channels, &k->outer, k->groups, split, &plan->copies);
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
        copy_equal(&c, &tables, count, split, &nest->stores);
    } while (dms_next(m.around, m.count, index, &target, &source));
    LEAVE(false);
}
