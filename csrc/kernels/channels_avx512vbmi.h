/* channels_avx512vbmi.h - small rows by byte permutes of 512-bit vectors
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

#include <stdlib.h>

#include "lines_avx512vbmi.h"

/* Source bytes of the target's byte t, counted through the vectors 0 to count - 1. width is a power of two. */
static void fill_table(uint8_t *table, unsigned target, unsigned count, unsigned shift, bool split)
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
    uint8_t table[4][DMS_LINE];
} gather_tables;

static void fill_tables(gather_tables *tables, unsigned count, size_t width, bool split)
{
    tables->shift = width == 1 ? 0 : width == 2 ? 1 : width == 4 ? 2 : width == 8 ? 3 : 4;
    for (unsigned i = 0; i < count; i++)
        fill_table(tables->table[i], i, count, tables->shift, split);
}

/* A permute looks at the low bits of the table only: 7 of them choose from two vectors, 6 from one. upper: where it is at 128 or above. */
static DMS_TARGET_AVX512VBMI DMS_ALWAYS_INLINE __m512i gather(const __m512i *from, unsigned count, __m512i table, __mmask64 upper)
{
    const __m512i low = _mm512_permutex2var_epi8(from[0], table, from[1]);
    if (count == 2)
        return low;
    if (count == 3)
        return _mm512_mask_permutexvar_epi8(low, upper, table, from[2]);
    return _mm512_mask_blend_epi8(upper, low, _mm512_permutex2var_epi8(from[2], table, from[3]));
}

/* Appends rows to the writers: one of each part, or that of the whole. Less than a whole block of rows only at the end. count, split and
 * streamed are constants. */
static DMS_TARGET_AVX512VBMI DMS_ALWAYS_INLINE void append_rows(line_writer *writers, const dms_channels *c, const gather_tables *tables,
                                                                 unsigned count, bool split, bool streamed)
{
    const unsigned shift = tables->shift;
    const uint64_t block = DMS_LINE >> shift;
    const unsigned targets = split ? count : 1;
    const size_t source_step = split ? count * DMS_LINE : DMS_LINE;
    __m512i table[4], from[4], previous[4], rotation[4];
    __mmask64 upper[4];
    const char *source[4];
    char *line[4];
    uint64_t rows = c->rows;
    size_t begin = 0, shifts = 0;
    for (unsigned i = 0; i < count; i++) {
        table[i] = _mm512_loadu_si512(tables->table[i]);
        upper[i] = _mm512_movepi8_mask(table[i]);
        source[i] = split ? c->whole + i * DMS_LINE : c->parts[i];
    }
    for (unsigned i = 0; i < targets; i++) {
        begin |= writers[i].begin;
        shifts |= writers[i].shift;
    }
    if (rows >= block && begin > 0) {   /* the first lines, which begin before the targets do */
        for (unsigned i = 0; i < count; i++) {
            from[i] = _mm512_loadu_si512(source[i]);
            source[i] += source_step;
        }
        for (unsigned i = 0; i < count; i++)
            put_bytes(&writers[split ? i : 0], gather(from, count, table[i], upper[i]), DMS_LINE);
        rows -= block;
    }
    for (unsigned i = 0; i < targets; i++) {
        line[i] = writers[i].line;
        previous[i] = writers[i].previous;
        rotation[i] = writers[i].rotation;
    }
    for (; rows >= block; rows -= block) {
        for (unsigned i = 0; i < count; i++) {
            from[i] = _mm512_loadu_si512(source[i]);
            source[i] += source_step;
        }
        for (unsigned i = 0; i < count; i++) {
            const unsigned w = split ? i : 0;
            const __m512i now = gather(from, count, table[i], upper[i]);
            store_line(line[w], shifts == 0 ? now : _mm512_permutex2var_epi8(previous[w], rotation[w], now), streamed);
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
}

#define APPEND_ROWS(name, count, split, streamed)                                                                             \
    static DMS_TARGET_AVX512VBMI void name(line_writer *writers, const dms_channels *c, const gather_tables *tables)          \
    {                                                                                                                         \
        append_rows(writers, c, tables, count, split, streamed);                                                              \
    }
#define APPEND_ROWS_ALL(count)                                                                                                \
    APPEND_ROWS(split_##count, count, true, false)                                                                            \
    APPEND_ROWS(split_##count##_streamed, count, true, true)                                                                  \
    APPEND_ROWS(join_##count, count, false, false)                                                                            \
    APPEND_ROWS(join_##count##_streamed, count, false, true)

APPEND_ROWS_ALL(2)
APPEND_ROWS_ALL(3)
APPEND_ROWS_ALL(4)

typedef void append_function(line_writer *writers, const dms_channels *c, const gather_tables *tables);

static append_function *find_append(unsigned count, bool split, bool streamed)
{
    static append_function *const functions[3][2][2] = {
        {{join_2, join_2_streamed}, {split_2, split_2_streamed}},
        {{join_3, join_3_streamed}, {split_3, split_3_streamed}},
        {{join_4, join_4_streamed}, {split_4, split_4_streamed}},
    };
    return functions[count - 2][split][streamed];
}

/* One stretch of rows. */
static DMS_TARGET_AVX512VBMI void copy_equal(const dms_channels *c, const gather_tables *tables, unsigned count, bool split, bool streamed)
{
    line_writer writers[4];
    const unsigned targets = split ? count : 1;
    for (unsigned i = 0; i < targets; i++)
        writers[i] = start_lines(split ? c->parts[i] : c->whole);
    find_append(count, split, streamed)(writers, c, tables);
    for (unsigned i = 0; i < targets; i++)
        finish_lines(&writers[i]);
}

/* ---- Twice: 6, 8, 12 or 16 parts as 3 or 4 groups of 2 or 4, by way of a few lines in the first-level cache
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

static DMS_TARGET_AVX512VBMI void copy_cascade(const dms_channels *c, const cascade *k, bool split, bool streamed)
{
    _Alignas(DMS_LINE) char staged[4][STAGED_BYTES];
    const unsigned targets = split ? k->groups * k->members : 1;
    const size_t width = (size_t)1 << k->inner.shift;
    const uint64_t block = STAGED_BYTES / (width * k->members);
    line_writer writers[16];
    dms_channels outer;
    for (unsigned i = 0; i < targets; i++)
        writers[i] = start_lines(split ? c->parts[i] : c->whole);
    for (uint64_t row = 0; row < c->rows; row += outer.rows) {
        outer.rows = c->rows - row < block ? c->rows - row : block;
        outer.whole = c->whole + row * c->row;
        for (unsigned g = 0; g < k->groups; g++)
            outer.parts[g] = staged[g];
        if (split)
            copy_equal(&outer, &k->outer, k->groups, true, false);
        for (unsigned g = 0; g < k->groups; g++) {
            dms_channels inner = members_of(c, g, k->members, (size_t)row * width, outer.rows);
            inner.whole = staged[g];
            if (split)
                find_append(k->members, true, streamed)(writers + g * k->members, &inner, &k->inner);
            else
                copy_equal(&inner, &k->inner, k->members, false, false);
        }
        if (!split)
            find_append(k->groups, false, streamed)(writers, &outer, &k->outer);
    }
    for (unsigned i = 0; i < targets; i++)
        finish_lines(&writers[i]);
}

/* The members of a group, 1 where the parts need no groups; 0: there is no way. */
static unsigned members_for(uint64_t count)
{
    switch (count) {
    case 2: case 3: case 4: return 1;
    case 6: case 8: return 2;
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
        return "there are not 2 to 4 parts of 1, 2, 4, 8 or 16 bytes, or 6, 8, 12 or 16 parts in groups of 16 bytes at most";
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

DMS_TARGET_AVX512VBMI void dms_run_channels_avx512vbmi(const dmlsplit_plan *plan, const dms_buffers *buffers, uint64_t first, uint64_t last)
{
    const bool split = plan->direction == DMLSPLIT_SPLIT;
    const cascade *k = plan->tables;
    while (first < last) {
        dms_channels channels;
        dms_next_channels(plan, buffers, &first, last, &channels);
        if (k->members > 1)
            copy_cascade(&channels, k, split, plan->stream);
        else
            copy_equal(&channels, &k->outer, k->groups, split, plan->stream);
    }
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

/* Pixels to planes is a split, planes to pixels a join. */
DMS_TARGET_AVX512VBMI void dms_run_planes_avx512vbmi(const dms_nest *nest, char *target, const char *source)
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
        copy_equal(&c, &tables, count, split, nest->stream);
    } while (dms_next(m.around, m.count, index, &target, &source));
    DMS_LEAVE_AVX(nest->stream);
}
