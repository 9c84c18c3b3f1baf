/* channels_avx512vbmi.h - small rows by byte permutes of 512-bit vectors
 *
 * 2 to 16 parts of equal width, here 3 of 1 byte. As many vectors as there are parts hold whole rows, and each vector of a part gathers its bytes from
 * them by one table. A join does the same with other tables:
 *
 *     whole    abcabcab|cabcabca|bcabcabc       part a   aaaaaaaa   table  0  3  6 |  9 12 15 | 18 21
 *              vector 0  vector 1  vector 2     part b   bbbbbbbb          1  4  7 | 10 13 16 | 19 22
 *
 * An even number of 6 parts or more is gathered in two steps: bundles of 2 or 4 parts, then the parts of each bundle (a join: parts first), because two
 * gathers of few vectors are less work than one of many: 16 parts take 6 instructions a vector instead of 15.
 *
 *     whole    abcdefabcdef....    bundles  ababab..  cdcdcd..  efefef..    parts   aaa..  bbb..  ccc..  ddd..  eee..  fff..
 *
 * Every store is a whole cache line (carried_avx512.h).
 */
#include "../dms_memory.h"
#include "../dms_transpose.h"
#include "carried_avx512.h"

enum {
    MOST_PAIRS = DMS_MOST_CHANNELS / 2,
    MOST_AT_ONCE = 10,                  /* parts that are written one line each. Lines of more parts often share a set of the first-level cache, because */
    MOST_BATCH = 8                      /* parts begin at one offset in a page: they are written bundle by bundle, up to 8 lines of each part at once */
};

typedef struct gather_tables {
    char table[DMS_MOST_CHANNELS][DMS_LINE];        /* source byte of each target byte, within a pair of vectors */
    __mmask64 masks[DMS_MOST_CHANNELS][MOST_PAIRS]; /* the target bytes that each pair has */
} gather_tables;

typedef struct step_tables {
    unsigned count, shift;              /* vectors; log2 of the width */
    gather_tables first, second;
} step_tables;

/* Returns the number of parts in a bundle: a power of two, as widths of gathers must be; 1 if there is only one
 * step. */
static DMS_ALWAYS_INLINE unsigned members_of(unsigned count)
{
    return count > 8 && count % 4 == 0 ? 4 : count > 4 && count % 2 == 0 ? 2 : 1;
}

/* Returns the number of vectors that a gather of the first step reads, and makes; 1 if there is only one step. */
static DMS_ALWAYS_INLINE unsigned first_of(unsigned count, bool split)
{
    const unsigned members = members_of(count);
    return members == 1 ? 1 : split ? count / members : members;
}

static void fill_gather(gather_tables *tables, unsigned count, unsigned shift, bool split)
{
    const unsigned last = (1u << shift) - 1;    /* mask of a byte within an element */
    unsigned part = 0, row = 0;         /* of the next element of the whole, for a join */
    for (unsigned target = 0; target < count; target++) {
        memset(tables->masks[target], 0, sizeof tables->masks[target]);
        for (unsigned t = 0; t < DMS_LINE; t++) {
            const unsigned begin = split ? ((t >> shift) * count + target) << shift : (part << 6) + (row << shift), from = begin + (t & last);
            tables->table[target][t] = (char)(from % (2 * DMS_LINE));
            tables->masks[target][from / (2 * DMS_LINE)] |= UINT64_C(1) << t;
            if ((t & last) == last && ++part == count) {
                part = 0;
                row++;
            }
        }
    }
}

/* Fills the tables. width is a power of two. */
static void fill_tables(step_tables *tables, unsigned count, size_t width, bool split)
{
    const unsigned members = members_of(count), first = first_of(count, split);
    unsigned shift = 0;
    while ((size_t)1 << shift < width)
        shift++;
    const unsigned bundle_shift = shift + members / 2;
    tables->count = count;
    tables->shift = shift;
    if (first > 1)
        fill_gather(&tables->first, first, split ? bundle_shift : shift, split);
    fill_gather(&tables->second, count / first, split || members == 1 ? shift : bundle_shift, split);
}

/* Returns a vector gathered from `count` vectors. A permute takes bytes of two vectors; the last one may be
 * unpaired. */
static DMS_TARGET DMS_ALWAYS_INLINE vector gather_bytes(const vector *from, unsigned count, vector table, const __mmask64 *masks)
{
    vector v = _mm512_permutex2var_epi8(from[0], table, from[1]);
    for (unsigned i = 2; i < count; i += 2)
        v = i + 1 == count ? _mm512_mask_permutexvar_epi8(v, masks[i / 2], table, from[i])
                           : _mm512_mask_blend_epi8(masks[i / 2], v, _mm512_permutex2var_epi8(from[i], table, from[i + 1]));
    return v;
}

/* The first of two steps: gathers to[i * second + j] from the `first` vectors at from[j * first], by table i. The second step gathers vectors i * second to
 * i * second + second - 1 from these same vectors of `to`. */
static DMS_TARGET DMS_ALWAYS_INLINE void gather_bundles(vector *to, const vector *from, unsigned first, unsigned second, const gather_tables *tables)
{
    for (unsigned i = 0; i < first; i++)
        for (unsigned j = 0; j < second; j++)
            to[i * second + j] = gather_bytes(from + j * first, first, load(tables->table[i]), tables->masks[i]);
}

/* Returns how many of the `size` bytes fall into the vector with this index. */
static inline size_t left_over(size_t size, size_t index)
{
    const size_t before = index * DMS_LINE;
    return size <= before ? 0 : size - before < DMS_LINE ? size - before : DMS_LINE;
}

/* Copies a block of rows, or fewer rows, by masks. */
static DMS_TARGET void copy_few(const dms_channels *c, const void *given, bool split, const dms_stores *stores)
{
    const step_tables *const tables = given;
    const size_t size = (size_t)c->rows << tables->shift, whole = size * tables->count;
    const unsigned first = first_of(tables->count, split), second = tables->count / first;
    vector from[DMS_MOST_CHANNELS], bundled[DMS_MOST_CHANNELS];
    (void)stores;
    for (unsigned i = 0; i < tables->count; i++)
        from[i] = _mm512_maskz_loadu_epi8(first_bytes(split ? left_over(whole, i) : size), split ? c->whole + i * DMS_LINE : c->parts[i]);
    if (first > 1)
        gather_bundles(bundled, from, first, second, &tables->first);
    for (unsigned i = 0; i < tables->count; i++) {
        const unsigned m = i % second;
        const vector now = gather_bytes((first > 1 ? bundled : from) + i - m, second, load(tables->second.table[m]), tables->second.masks[m]);
        char *const to = split ? c->parts[i] : c->whole + i * DMS_LINE;
        _mm512_mask_storeu_epi8((void *)to, first_bytes(split ? size : left_over(whole, i)), now);
    }
}

/* Copies whole blocks. count and split are constants; so is the regime if plain. */
static DMS_TARGET DMS_ALWAYS_INLINE void copy_channel_blocks(const dms_channels *c, const step_tables *tables, const dms_stores *stores, carried *to,
                                                     bool ragged, unsigned count, bool split, dms_regime regime)
{
    const uint64_t block = DMS_LINE >> tables->shift;
    const unsigned first = first_of(count, split), second = count / first, targets = split ? count : 1;
    const unsigned together = second > 8 ? 1 : second;      /* stores in a row: as many as registers can hold */
    const unsigned most = split && first > 1 && count > MOST_AT_ONCE ? MOST_BATCH : 1;
    const size_t source_stride = split ? count * DMS_LINE : DMS_LINE;
    vector table[DMS_MOST_CHANNELS], from[DMS_MOST_CHANNELS], bundled[MOST_BATCH][DMS_MOST_CHANNELS], waiting[DMS_MOST_CHANNELS], rotation[DMS_MOST_CHANNELS];
    __mmask64 masks[DMS_MOST_CHANNELS][MOST_PAIRS], filled[DMS_MOST_CHANNELS];
    const char *source[DMS_MOST_CHANNELS];
    char *line[DMS_MOST_CHANNELS];
    uint64_t rows = c->rows;
    for (unsigned i = 0; i < second; i++) {
        table[i] = load(tables->second.table[i]);
        for (unsigned pair = 1; 2 * pair < second; pair++)
            masks[i][pair] = tables->second.masks[i][pair];
    }
    for (unsigned i = 0; i < count; i++)
        source[i] = split ? c->whole + i * DMS_LINE : c->parts[i];
    for (unsigned i = 0; i < targets; i++) {
        line[i] = to[i].line;
        waiting[i] = to[i].waiting;
        rotation[i] = to[i].rotation;
        filled[i] = to[i].filled;
    }
    while (rows > 0) {
        const unsigned batch = most == 1 || rows / block > most ? most : (unsigned)(rows / block);
        rows -= batch * block;
        for (unsigned b = 0; b < batch; b++) {
            DMS_UNROLLED
            for (unsigned i = 0; i < count; i++) {
                if (split && regime == DMS_STREAMED)    /* several streams keep enough pages open */
                    DMS_FETCH_PAGE(source[i], stores);
                from[i] = load(source[i]);
                source[i] += source_stride;
            }
            if (first > 1)
                gather_bundles(bundled[b], from, first, second, &tables->first);
        }
        DMS_UNROLLED
        for (unsigned j = 0; j < count; j += together)
            for (unsigned b = 0; b < batch; b++) {
                vector now[DMS_MOST_CHANNELS];
                for (unsigned i = j; i < j + together; i++) {
                    const unsigned w = split ? i : 0, m = i % second;
                    const vector v = gather_bytes((first > 1 ? bundled[b] : from) + i - m, second, table[m], masks[m]);
                    now[i - j] = ragged ? carry(v, rotation[w], filled[w], &waiting[w]) : v;
                }
                for (unsigned i = j; i < j + together; i++) {   /* inline, unlike put_line in qwords: in a function gcc's code took 1.07 times as long when streamed */
                    const unsigned w = split ? i : 0;
                    if (regime == DMS_CLAIMED)
                        DMS_CLAIM(line[w], DMS_CLAIMED_AHEAD / targets);
                    if (regime == DMS_STREAMED)
                        stream(line[w], now[i - j]);
                    else
                        store(line[w], now[i - j]);
                    line[w] += DMS_LINE;
                }
            }
    }
    for (unsigned i = 0; i < targets; i++) {
        to[i].line = line[i];
        to[i].waiting = waiting[i];
    }
}

#define FEW(DO) DO(2) DO(3) DO(4) DO(5)
#define MANY(DO) DO(6) DO(7) DO(8) DO(9) DO(10) DO(11) DO(12) DO(13) DO(14) DO(15) DO(16)
#define COPY_BLOCKS(name, count, split, regime)                                                                                                 \
    static DMS_TARGET void name(const dms_channels *c, const void *tables, bool both, const dms_stores *stores, carried *to, bool ragged)       \
    {                                                                                                                                           \
        (void)both;                                                                                                                             \
        copy_channel_blocks(c, tables, stores, to, ragged, count, split, regime);                                                                       \
    }
#define COPY_MANY(count)                                            \
    COPY_BLOCKS(split_##count, count, true, stores->regime)         \
    COPY_BLOCKS(join_##count, count, false, stores->regime)
#define COPY_FEW(count)                                             \
    COPY_MANY(count)                                                \
    COPY_BLOCKS(split_##count##_plain, count, true, DMS_PLAIN)      \
    COPY_BLOCKS(join_##count##_plain, count, false, DMS_PLAIN)
FEW(COPY_FEW)
MANY(COPY_MANY)

DMS_TARGET void dms_copy_channels_avx512vbmi(const dms_channels *c, const void *given, bool split, const dms_stores *stores)
{
    const step_tables *const tables = given;
#define FUNCTIONS_FEW(count) {{join_##count##_plain, join_##count}, {split_##count##_plain, split_##count}},
#define FUNCTIONS_MANY(count) {{join_##count, join_##count}, {split_##count, split_##count}},
    DMS_ASSERT(tables->count >= 2);
    static carry_function *const functions[][2][2] = {FEW(FUNCTIONS_FEW) MANY(FUNCTIONS_MANY)};
    carry_function *const function = functions[tables->count - 2][split][stores->regime != DMS_PLAIN];
    copy_carried(c, tables, split, DMS_LINE >> tables->shift, stores, true, copy_few, function);
}

static const char *can_gather(unsigned count, size_t width)
{
    const bool fits = count >= 2 && count <= DMS_MOST_CHANNELS && width > 0 && (width & (width - 1)) == 0 && width <= 16;
    return fits ? NULL : "there are not 2 to 16 parts of 1, 2, 4, 8 or 16 bytes";
}

const char *dms_can_channels_avx512vbmi(const dmlsplit_plan *plan)
{
    const char *refusal = dms_can_packed_rows(plan);
    return refusal != NULL ? refusal : can_gather((unsigned)dms_full_parts(plan), dms_equal_width(plan));
}

void *dms_prepare_channels_avx512vbmi(const dmlsplit_plan *plan)
{
    step_tables *tables = dms_allocate(1, sizeof *tables);
    if (tables != NULL)
        fill_tables(tables, (unsigned)dms_full_parts(plan), dms_equal_width(plan), plan->direction == DMLSPLIT_SPLIT);
    return tables;
}

/* ---- Planes ---- */

const char *dms_can_planes_avx512vbmi(const dms_nest *nest)
{
    return nest->pixels.count > 0 ? can_gather(nest->pixels.count, nest->run) : dms_no_pixels;
}

DMS_TARGET void dms_run_planes_avx512vbmi(const dms_nest *nest, char *target, const char *source)
{
    step_tables tables;
    fill_tables(&tables, nest->pixels.count, nest->run, nest->pixels.split);
    dms_copy_planes(nest, target, source, dms_copy_channels_avx512vbmi, &tables);
}
