/* channels_template.h - 2, 3 or 4 parts of equal width, which is 1, 2, 4 or 8 bytes, by shuffles within 16 bytes
 *
 * Included after vector_<isa>.h. A block of rows is one vector of 16 bytes in every part, and as many as there are parts in the whole; wider vectors
 * hold a block in each of their lanes. Everything is done in registers, and each byte is loaded and stored once.
 *
 * 2 and 4 parts: a byte shuffle sorts each vector of the whole by parts, and the units that it makes are transposed by interleaving:
 *
 *     abcdabcd abcdabcd ...  ->  aabbccdd aabbccdd ...  ->  aa aa aa aa, bb bb bb bb, ...
 *
 * 3 parts: a place holds another part in each of the three vectors, so that two selections collect a part, and a byte shuffle sorts it:
 *
 *     abcabcab, cabcabca, bcabcabc  ->  a  from vector 0, at places 0 3 6
 *                                       .a from vector 1, at places 1 4 7   ->  aaaaaaaa
 *                                       ..a from vector 2, at places 2 5
 *
 * A join goes the same way back.
 */
#include "stretch_template.h"

#include <stdlib.h>

enum {
    BLOCK = 16,                         /* bytes of a block in a part */
    PART_BYTES = 256                    /* of a part: with more, or with prefetches in between, reading and writing took turns */
};

typedef struct equal_tables {
    unsigned count;                     /* parts */
    size_t width;
    unsigned place[3];                  /* 3 parts: of the vectors in a block of the whole; others: as they come */
    uint8_t order[3][BLOCK];            /* 2 and 4 parts: the first one only */
    uint8_t second[BLOCK], third[BLOCK];/* ones at places 1 and 2, 4 and 5, ... */
} equal_tables;

/* Takes pieces of the whole's vector in the order of the parts, or back. */
static void fill_sorted(equal_tables *t, bool split)
{
    const size_t unit = BLOCK / t->count;
    for (size_t i = 0; i < BLOCK; i++) {
        const size_t in_whole = (i % unit / t->width * t->count + i / unit) * t->width + i % t->width;
        t->order[0][split ? i : in_whole] = (uint8_t)(split ? in_whole : i);
    }
}

static void fill_thirds(equal_tables *t, bool split)
{
    const size_t pieces = BLOCK / t->width;
    for (size_t i = 0; i < 3 * pieces; i++)
        for (size_t byte = 0; byte < t->width; byte++) {
            const size_t in_whole = i % pieces * t->width + byte, in_part = i / 3 * t->width + byte;
            t->order[i % 3][split ? in_part : in_whole] = (uint8_t)(split ? in_whole : in_part);
        }
    for (size_t i = 0; i < BLOCK; i++) {
        t->second[i] = i / t->width % 3 == 1 ? 0xff : 0;
        t->third[i] = i / t->width % 3 == 2 ? 0xff : 0;
    }
    t->place[1] = pieces % 3 == 2 ? 2 : 1;  /* parts move back from vector to vector, not forth */
    t->place[2] = 3 - t->place[1];
}

/* The elements of one part, or of one vector of the whole: the first third of the places from a, the next from b, then c. */
static DMS_TARGET DMS_ALWAYS_INLINE vector DMS_NAME(collect)(vector a, vector b, vector c, vector second, vector third)
{
    return choose(choose(a, b, second), c, third);
}

/* v: the block's vectors of what is read, then of what is written. count and split are constants, as is wide: 4 parts of 8 bytes. */
static DMS_TARGET DMS_ALWAYS_INLINE void DMS_NAME(turn_block)(vector *v, const vector *order, vector second, vector third, unsigned count,
                                                              bool wide, bool split)
{
    vector a = v[0], b = v[1], c = v[count > 2 ? 2 : 0], d = v[count > 3 ? 3 : 0];
    if (count == 3) {
        if (!split) {
            a = shuffle_bytes(a, order[0], 0);
            b = shuffle_bytes(b, order[1], 0);
            c = shuffle_bytes(c, order[2], 0);
        }
        v[0] = DMS_NAME(collect)(a, split ? c : b, split ? b : c, second, third);
        v[1] = DMS_NAME(collect)(b, split ? a : c, split ? c : a, second, third);
        v[2] = DMS_NAME(collect)(c, split ? b : a, split ? a : b, second, third);
        for (unsigned i = 0; split && i < 3; i++)
            v[i] = shuffle_bytes(v[i], order[i], 0);
        return;
    }
    if (split && !wide) {
        a = shuffle_bytes(a, order[0], 0);
        b = shuffle_bytes(b, order[0], 0);
        c = shuffle_bytes(c, order[0], 0);
        d = shuffle_bytes(d, order[0], 0);
    }
    if (count == 2) {
        v[0] = UNPACK(lo, 64, a, b);
        v[1] = UNPACK(hi, 64, a, b);
    } else if (wide) {
        v[0] = split ? UNPACK(lo, 64, a, c) : UNPACK(lo, 64, a, b);
        v[1] = split ? UNPACK(hi, 64, a, c) : UNPACK(lo, 64, c, d);
        v[2] = split ? UNPACK(lo, 64, b, d) : UNPACK(hi, 64, a, b);
        v[3] = split ? UNPACK(hi, 64, b, d) : UNPACK(hi, 64, c, d);
    } else {
        const vector ac = UNPACK(lo, 32, a, c), ac2 = UNPACK(hi, 32, a, c), bd = UNPACK(lo, 32, b, d), bd2 = UNPACK(hi, 32, b, d);
        v[0] = UNPACK(lo, 32, ac, bd);
        v[1] = UNPACK(hi, 32, ac, bd);
        v[2] = UNPACK(lo, 32, ac2, bd2);
        v[3] = UNPACK(hi, 32, ac2, bd2);
    }
    for (unsigned i = 0; !split && !wide && i < count; i++)
        v[i] = shuffle_bytes(v[i], order[0], 0);
}

/* All rows: whole vectors of blocks, then what is left. */
static DMS_TARGET DMS_ALWAYS_INLINE void DMS_NAME(copy_equal)(const dms_channels *c, const equal_tables *t, unsigned count, bool wide, bool split)
{
    const size_t rows = BLOCK / t->width;
    const size_t step = count * BLOCK;
    size_t place[4];                    /* registers: those of the tables might change with every store */
    const vector second = load_table(t->second), third = load_table(t->third);
    vector order[3], v[4];
    char *whole = c->whole, *parts[4];
    uint64_t row = 0;
    for (unsigned i = 0; i < 3; i++)
        order[i] = load_table(t->order[i]);
    for (unsigned i = 0; i < count; i++) {
        parts[i] = c->parts[i];
        place[i] = (count == 3 ? t->place[i] : i) * BLOCK;
    }
    for (; c->rows - row >= LANES * rows; row += LANES * rows) {
        for (unsigned i = 0; i < count; i++)
            v[i] = split ? load_lanes(whole + place[i], step) : load(parts[i]);
        DMS_NAME(turn_block)(v, order, second, third, count, wide, split);
        for (unsigned i = 0; i < count; i++) {
            if (split)
                store(parts[i], v[i]);
            else
                store_lanes(whole + place[i], step, v[i]);
            parts[i] += VECTOR;
        }
        whole += LANES * step;
    }
    dms_move_channels(c, split, row);
}

static DMS_TARGET void DMS_NAME(copy_stretch)(const dms_channels *c, const void *tables, bool split)
{
    const equal_tables *t = tables;
#define COPY(count, wide) (split ? DMS_NAME(copy_equal)(c, t, count, wide, true) : DMS_NAME(copy_equal)(c, t, count, wide, false))
    if (t->count == 2)
        COPY(2, false);
    else if (t->count == 3)
        COPY(3, false);
    else if (t->width < 8)
        COPY(4, false);
    else
        COPY(4, true);
#undef COPY
}

/* ---- The kernels ---- */

static void DMS_NAME(fill_equal)(equal_tables *t, unsigned count, size_t width, bool split)
{
    memset(t, 0, sizeof *t);
    t->width = width;
    t->count = count;
    if (count == 3)
        fill_thirds(t, split);
    else if (count * width <= BLOCK)
        fill_sorted(t, split);
}

void *DMS_NAME(dms_prepare_channels)(const dmlsplit_plan *plan)
{
    equal_tables *t = malloc(sizeof *t);
    if (t != NULL)
        DMS_NAME(fill_equal)(t, (unsigned)(plan->space.operands[0].length / plan->space.operands[1].length), dms_equal_width(plan),
                             plan->direction == DMLSPLIT_SPLIT);
    return t;
}

DMS_TARGET void DMS_NAME(dms_copy_channels)(const dms_channels *c, const void *tables, bool split, const dms_stores *stores)
{
    DMS_NAME(copy_groups)(c, tables, split, PART_BYTES / c->widths[0], stores, DMS_NAME(copy_stretch));
}

const char *DMS_NAME(dms_accept_planes)(const dms_nest *nest)
{
    enum { WIDEST = LANES == 1 ? 4 : 8 };
    const dms_pixels p = dms_find_pixels(nest);
    if (p.count == 0)
        return dms_no_pixels;
    return p.count > 4 || nest->run > WIDEST ? "pixels have more than 4 elements, or these more than 8 bytes, of 16-byte vectors 4" : NULL;
}

DMS_TARGET void DMS_NAME(dms_run_planes)(const dms_nest *nest, char *target, const char *source)
{
    const dms_pixels p = dms_find_pixels(nest);
    equal_tables tables;
    DMS_NAME(fill_equal)(&tables, p.count, nest->run, p.split);
    dms_copy_planes(nest, target, source, DMS_NAME(dms_copy_channels), &tables);
}
