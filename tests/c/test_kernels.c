/* test_kernels.c - every line of the kernel table against the scalar kernel
 *
 * Forms that the kernels were made for x row counts around their tiles x misalignments 0 to 63 x both directions x the regimes of stores. The list of
 * kernels under test is the table itself, and one that never ran fails. Buffers lie against unmapped pages, before or after them. All bytes of the inputs
 * differ from each other, over the runs of a case; outputs start with bytes that are none of them, and gaps and surroundings must still hold these.
 */
#define _DEFAULT_SOURCE                 /* mmap's MAP_ANONYMOUS */
#include "check.h"
#include "guarded.h"
#include "paint.h"

#include "dms_costs.h"
#include "dms_internal.h"
#include "dms_lines.h"

#include <limits.h>

#include <string.h>

#ifndef _WIN32
#include <pthread.h>
#endif

enum { PARTS = 80, RANK = 3, ROOM = 3 << 17, MARGIN = 64, DRAWS = 2 };

typedef enum order { ROWS, COLUMNS, BROADCAST_ROWS, BROADCAST_COLUMNS, BACKWARDS, MIRRORED } order;

/* lines x rows x lengths, the axis last. Gaps are bytes after each row and each line. */
typedef struct form {
    const char *name;
    uint32_t element_size;
    uint64_t lines;
    uint64_t lengths[16];               /* up to the first 0 */
    uint64_t repeat;                    /* the lengths, so many times; 0: once */
    order whole, part;                  /* how they lie in memory; broadcasts only where they are read */
    int64_t row_gap, line_gap, part_row_gap, part_line_gap;
} form;

static const form forms[] = {
    {"u8 x 2", 1, 1, {1, 1}, 0, ROWS, ROWS, 0, 0, 0, 0},
    {"u8 x 3", 1, 1, {1, 1, 1}, 0, ROWS, ROWS, 0, 0, 0, 0},
    {"u8 x 3, cropped", 1, 3, {1, 1, 1}, 0, ROWS, ROWS, 0, 7, 0, 0},
    {"u8 x 3, lines apart", 1, 3, {1, 1, 1}, 0, ROWS, ROWS, 0, 7, 0, 5},
    {"u8 x 3, rows apart", 1, 1, {1, 1, 1}, 0, ROWS, ROWS, 1, 0, 2, 0},
    {"u8 x 4", 1, 1, {1, 1, 1, 1}, 0, ROWS, ROWS, 0, 0, 0, 0},
    {"u8 x 5", 1, 1, {1}, 5, ROWS, ROWS, 0, 0, 0, 0},
    {"u8 x 7", 1, 1, {1}, 7, ROWS, ROWS, 0, 0, 0, 0},
    {"u8 x 9", 1, 1, {1}, 9, ROWS, ROWS, 0, 0, 0, 0},
    {"u16 x 11", 2, 1, {1}, 11, ROWS, ROWS, 0, 0, 0, 0},
    {"u8 x 13", 1, 1, {1}, 13, ROWS, ROWS, 0, 0, 0, 0},
    {"u16 x 14", 2, 1, {1}, 14, ROWS, ROWS, 0, 0, 0, 0},
    {"u8 x 15, lines apart", 1, 2, {1}, 15, ROWS, ROWS, 0, 6, 0, 4},
    {"u8 x 10", 1, 1, {1}, 10, ROWS, ROWS, 0, 0, 0, 0},
    {"u16 x 5, lines apart", 2, 2, {1}, 5, ROWS, ROWS, 0, 6, 0, 4},
    {"u64 x 5", 8, 1, {1}, 5, ROWS, ROWS, 0, 0, 0, 0},
    {"u8 x 6", 1, 1, {1}, 6, ROWS, ROWS, 0, 0, 0, 0},
    {"u8 x 8", 1, 2, {1}, 8, ROWS, ROWS, 0, 5, 0, 3},
    {"u8 x 12", 1, 1, {1}, 12, ROWS, ROWS, 0, 0, 0, 0},
    {"u8 x 16", 1, 1, {1}, 16, ROWS, ROWS, 0, 0, 0, 0},
    {"u8 x 80", 1, 1, {1}, 80, ROWS, ROWS, 0, 0, 0, 0},
    /* Rows of no whole lines, vectors or lanes. */
    {"u8 x 17", 1, 2, {1}, 17, ROWS, ROWS, 0, 6, 0, 4},
    {"u8 x 24", 1, 1, {1}, 24, ROWS, ROWS, 3, 0, 1, 0},
    {"u8 x 50", 1, 1, {1}, 50, ROWS, ROWS, 0, 0, 0, 0},
    {"u8 x 63", 1, 1, {1}, 63, ROWS, ROWS, 0, 0, 0, 0},
    {"u16 x 9", 2, 1, {1}, 9, ROWS, ROWS, 0, 0, 0, 0},
    {"u16 x 28", 2, 1, {1}, 28, ROWS, ROWS, 2, 0, 4, 0},
    {"u32 x 14", 4, 1, {1}, 14, ROWS, ROWS, 0, 0, 0, 0},
    {"u32 x 18", 4, 1, {1}, 18, ROWS, ROWS, 0, 0, 0, 0},
    {"u8 3 + 1", 1, 1, {3, 1}, 0, ROWS, ROWS, 0, 0, 0, 0},
    {"u8 1 + 2 + 5 + 7", 1, 1, {1, 2, 5, 7}, 0, ROWS, ROWS, 0, 0, 0, 0},
    {"u8 15 + 17", 1, 2, {15, 17}, 0, ROWS, ROWS, 0, 3, 0, 0},
    {"u8 1 + 63", 1, 1, {1, 63}, 0, ROWS, ROWS, 0, 0, 0, 0},
    {"u16 x 2", 2, 1, {1, 1}, 0, ROWS, ROWS, 0, 0, 0, 0},
    {"u16 x 3", 2, 1, {1, 1, 1}, 0, ROWS, ROWS, 0, 0, 0, 0},
    {"u16 x 4", 2, 2, {1, 1, 1, 1}, 0, ROWS, ROWS, 0, 4, 0, 0},
    {"u16 x 7", 2, 1, {1}, 7, ROWS, ROWS, 0, 0, 0, 0},
    {"u16 x 8", 2, 1, {1}, 8, ROWS, ROWS, 0, 0, 0, 0},
    {"u32 x 2", 4, 1, {1, 1}, 0, ROWS, ROWS, 0, 0, 0, 0},
    {"u32 x 3", 4, 1, {1, 1, 1}, 0, ROWS, ROWS, 0, 0, 0, 0},
    {"u32 x 4", 4, 1, {1, 1, 1, 1}, 0, ROWS, ROWS, 0, 0, 0, 0},
    {"u32 x 4, rows apart", 4, 1, {1, 1, 1, 1}, 0, ROWS, ROWS, 4, 0, 4, 0},
    {"u32 x 13", 4, 1, {1}, 13, ROWS, ROWS, 0, 0, 0, 0},
    {"u32 x 16", 4, 1, {1}, 16, ROWS, ROWS, 0, 0, 0, 0},
    {"u32 x 33", 4, 2, {1}, 33, ROWS, ROWS, 8, 16, 0, 4},
    {"pairs of u32 x 20", 4, 1, {2}, 20, ROWS, ROWS, 0, 0, 0, 0},
    {"u64 x 2", 8, 1, {1, 1}, 0, ROWS, ROWS, 0, 0, 0, 0},
    {"u64 x 3", 8, 1, {1, 1, 1}, 0, ROWS, ROWS, 0, 0, 0, 0},
    {"u64 x 4", 8, 2, {1, 1, 1, 1}, 0, ROWS, ROWS, 0, 8, 0, 8},
#define QWORDS(a, b, c) {"qwords " #a " + " #b " + " #c, 8, 1, {a, b, c}, 0, ROWS, ROWS, 0, 0, 0, 0}
    QWORDS(1, 7, 0), QWORDS(2, 6, 0), QWORDS(3, 5, 0), QWORDS(4, 4, 0), QWORDS(5, 3, 0), QWORDS(6, 2, 0), QWORDS(7, 1, 0),
    QWORDS(1, 1, 6), QWORDS(1, 2, 5), QWORDS(1, 3, 4), QWORDS(1, 4, 3), QWORDS(1, 5, 2), QWORDS(1, 6, 1), QWORDS(2, 1, 5),
    QWORDS(2, 2, 4), QWORDS(2, 3, 3), QWORDS(2, 4, 2), QWORDS(2, 5, 1), QWORDS(3, 1, 4), QWORDS(3, 2, 3), QWORDS(3, 3, 2),
    QWORDS(3, 4, 1), QWORDS(4, 1, 3), QWORDS(4, 2, 2), QWORDS(4, 3, 1), QWORDS(5, 1, 2), QWORDS(5, 2, 1), QWORDS(6, 1, 1),
    {"u32 2 + 14, lines apart", 4, 2, {2, 14}, 0, ROWS, ROWS, 0, 7, 0, 5},
    {"u32 x 6", 4, 1, {1}, 6, ROWS, ROWS, 0, 0, 0, 0},
    {"u32 x 12", 4, 1, {1}, 12, ROWS, ROWS, 0, 0, 0, 0},
    {"u32 3 + 3", 4, 1, {3, 3}, 0, ROWS, ROWS, 0, 0, 0, 0},
    {"u64 x 8", 8, 1, {1}, 8, ROWS, ROWS, 0, 0, 0, 0},
    {"u64 x 14, lines apart", 8, 2, {1}, 14, ROWS, ROWS, 0, 8, 0, 8},
    {"u64 x 16", 8, 1, {1}, 16, ROWS, ROWS, 0, 0, 0, 0},
    {"u64 x 17", 8, 1, {1}, 17, ROWS, ROWS, 0, 0, 0, 0},
    {"16 bytes x 3", 16, 1, {1, 1, 1}, 0, ROWS, ROWS, 0, 0, 0, 0},
    {"16 bytes x 9", 16, 1, {1}, 9, ROWS, ROWS, 0, 0, 0, 0},
    {"16 bytes x 12", 16, 1, {1}, 12, ROWS, ROWS, 0, 0, 0, 0},
    {"u32 4 + 1 + 80", 4, 1, {4, 1, 80}, 0, ROWS, ROWS, 0, 0, 0, 0},
    {"u32 4 + 1 + 80, apart", 4, 2, {4, 1, 80}, 0, ROWS, ROWS, 12, 8, 4, 4},
    {"bytes 30 + 1 + 33 + 64 + 65", 1, 1, {30, 1, 33, 64, 65}, 0, ROWS, ROWS, 0, 0, 0, 0},
    {"bytes 5 x 13", 1, 1, {5}, 13, ROWS, ROWS, 0, 0, 0, 0},
    {"u32 10 + 5 + 7", 4, 2, {10, 5, 7}, 0, ROWS, ROWS, 0, 4, 0, 8},
    {"bytes 200 + 119 + 1", 1, 1, {200, 119, 1}, 0, ROWS, ROWS, 0, 0, 0, 0},
    {"bytes 1025 + 700", 1, 1, {1025, 700}, 0, ROWS, ROWS, 0, 0, 0, 0},
    {"bytes 1025 + 1031, apart", 1, 1, {1025, 1031}, 0, ROWS, ROWS, 3, 0, 9, 0},
    {"bytes 128 + 97 + 1", 1, 2, {128, 97, 1}, 0, ROWS, ROWS, 0, 3, 0, 1},
    {"bytes 8193 + 9001", 1, 1, {8193, 9001}, 0, ROWS, ROWS, 0, 0, 0, 0},
    {"bytes 33 x 17", 1, 1, {33}, 17, ROWS, ROWS, 0, 0, 0, 0},
    {"bytes 20 x 2, backwards", 1, 2, {20, 33}, 0, BACKWARDS, ROWS, 0, 0, 0, 0},
    {"broadcast rows", 4, 1, {40, 30}, 0, BROADCAST_ROWS, ROWS, 0, 0, 0, 0},
    {"u8 broadcast columns", 1, 2, {40, 30}, 0, BROADCAST_COLUMNS, ROWS, 0, 0, 0, 0},
    {"u16 broadcast columns", 2, 2, {40, 30}, 0, BROADCAST_COLUMNS, ROWS, 3, 0, 0, 0},
    {"u32 broadcast columns", 4, 2, {40, 30}, 0, BROADCAST_COLUMNS, ROWS, 0, 0, 8, 0},
    {"u64 broadcast columns", 8, 2, {40, 30}, 0, BROADCAST_COLUMNS, ROWS, 0, 0, 0, 0},
    {"16 bytes broadcast columns", 16, 1, {20, 15}, 0, BROADCAST_COLUMNS, ROWS, 0, 0, 0, 0},
    {"u16 broadcast parts", 2, 2, {40, 30}, 0, ROWS, BROADCAST_COLUMNS, 3, 0, 0, 0},
    {"u64 broadcast rows of parts", 8, 1, {12, 30}, 0, ROWS, BROADCAST_ROWS, 0, 0, 0, 0},
    {"3 bytes broadcast rows", 1, 2, {3, 12}, 0, BROADCAST_ROWS, ROWS, 0, 0, 0, 0},
    {"3 bytes broadcast columns", 3, 2, {4, 3}, 0, BROADCAST_COLUMNS, ROWS, 0, 0, 0, 0},
    {"u8 x 3, rows backwards", 1, 2, {3, 3}, 0, BACKWARDS, ROWS, 0, 0, 0, 0},
    {"u8 mirrored", 1, 2, {40, 71}, 0, MIRRORED, ROWS, 0, 0, 3, 0},
    {"u16 mirrored", 2, 2, {3, 33}, 0, MIRRORED, ROWS, 1, 0, 0, 0},
    {"u32 mirrored", 4, 2, {17, 16}, 0, MIRRORED, ROWS, 0, 4, 0, 0},
    {"u64 mirrored", 8, 1, {17, 1}, 0, MIRRORED, ROWS, 0, 0, 0, 0},
    {"16 bytes mirrored", 16, 1, {5, 6}, 0, MIRRORED, ROWS, 0, 0, 0, 0},
    {"u8 mirrored lines of 40 KB", 1, 1, {40003, 1021}, 0, MIRRORED, ROWS, 0, 0, 3, 0},
    {"u32 mirrored lines of 36 KB", 4, 1, {9001, 512}, 0, MIRRORED, ROWS, 4, 0, 0, 0},
    {"u16 mirrored, rows of 260 and 400 bytes", 2, 1, {130, 200}, 0, MIRRORED, ROWS, 1, 0, 0, 0},
    {"u32 mirrored parts", 4, 1, {17, 16}, 0, ROWS, MIRRORED, 0, 0, 0, 0},
    {"u8 mirrored, to columns", 1, 2, {40, 33}, 0, MIRRORED, COLUMNS, 0, 0, 3, 0},
    {"u16 columns, to mirrored", 2, 1, {33, 40}, 0, COLUMNS, MIRRORED, 1, 0, 0, 0},
    {"u32 mirrored, to columns", 4, 2, {17, 16}, 0, MIRRORED, COLUMNS, 0, 4, 0, 0},
    {"u64 mirrored, to few columns", 8, 2, {2, 3}, 0, MIRRORED, COLUMNS, 8, 0, 0, 0},
    {"u16 to few columns, apart", 2, 2, {3, 5}, 0, ROWS, COLUMNS, 1, 0, 3, 2},
    {"3 bytes to few columns", 3, 1, {3, 5}, 0, ROWS, COLUMNS, 0, 0, 0, 0},
    {"u8 planes to pixels", 1, 2, {3, 3}, 0, COLUMNS, ROWS, 0, 0, 0, 0},
    {"u32 planes to pixels, apart", 4, 2, {4, 2}, 0, COLUMNS, ROWS, 5, 3, 0, 7},
    {"u8 8 planes to pixels", 1, 2, {8, 16}, 0, COLUMNS, ROWS, 3, 0, 0, 0},
    {"u32 pixels of 12 to planes", 4, 2, {12}, 0, ROWS, COLUMNS, 0, 0, 5, 0},
    {"u16 pixels to planes", 2, 2, {3}, 0, ROWS, COLUMNS, 0, 0, 0, 0},
    {"u64 pixels to planes, apart", 8, 2, {2}, 0, ROWS, COLUMNS, 0, 3, 5, 0},
    {"u8 columns", 1, 1, {40, 71}, 0, COLUMNS, ROWS, 0, 0, 0, 0},
    {"u8 columns, apart", 1, 2, {16, 65}, 0, COLUMNS, ROWS, 5, 3, 1, 0},
    {"u16 columns", 2, 2, {33, 8}, 0, COLUMNS, ROWS, 0, 0, 0, 0},
    {"u32 columns", 4, 1, {16, 17, 3}, 0, COLUMNS, ROWS, 0, 0, 0, 0},
    {"u32 columns, apart", 4, 2, {16, 17, 3}, 0, COLUMNS, ROWS, 4, 3, 1, 0},
    {"u32 from rows to columns", 4, 2, {16, 17, 3}, 0, ROWS, COLUMNS, 0, 0, 0, 0},
    {"u32 columns to whole lines", 4, 1, {64, 32}, 0, COLUMNS, ROWS, 0, 0, 0, 0},
    {"u64 columns", 8, 1, {9, 15}, 0, COLUMNS, ROWS, 0, 0, 0, 0},
    {"16 bytes columns", 16, 1, {9, 7}, 0, COLUMNS, ROWS, 0, 0, 0, 0},
    {"3 bytes columns", 3, 1, {9, 7}, 0, COLUMNS, ROWS, 0, 0, 0, 0},
    {"u32 rows of 2 KB to columns", 4, 1, {512}, 0, ROWS, COLUMNS, 0, 0, 0, 0},
    {"u32 columns to rows of 2 KB", 4, 1, {512}, 0, COLUMNS, ROWS, 0, 0, 0, 0},
    {"u8 rows of 2 KB to columns", 1, 1, {2048}, 0, ROWS, COLUMNS, 0, 0, 0, 0},
    {"u16 columns to many rows", 2, 1, {700}, 0, COLUMNS, ROWS, 0, 0, 2, 0},
    /* Rows whose lines share sets of a cache. */
    {"u8 columns to rows a page apart", 1, 1, {600}, 0, COLUMNS, ROWS, 0, 0, 4096 - 600, 0},
    {"u16 rows a page apart to columns", 2, 1, {300}, 0, ROWS, COLUMNS, 4096 - 600, 0, 0, 0},
    {"u32 x 80, rows a page apart", 4, 1, {1}, 80, ROWS, ROWS, 4096 - 320, 0, 0, 0},
};

#ifdef FEW_CASES
static const uint64_t row_counts[] = {9, 129, 583, 4200};
#else
static const uint64_t row_counts[] = {1, 2, 3, 7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 64, 65, 127, 128, 129, 193, 583, 4200};
#endif

#define COUNT(array) (sizeof(array) / sizeof(array)[0])

/* ---- Tensors ---- */

/* A piece of one large guarded mapping that serves all cases. */
typedef struct tensor {
    guarded *memory;
    int64_t strides[RANK];
    int64_t begin, end;
    char *base;
    char *painted;                      /* from here */
    size_t painted_size;                /* the tensor's range with MARGIN bytes around it, as far as mapped */
} tensor;

static guarded mappings[PARTS + 1];

static void lay_out(tensor *t, order o, uint32_t element_size, uint64_t lines, uint64_t rows, uint64_t length, int64_t row_gap, int64_t line_gap)
{
    const int64_t e = element_size, r = (int64_t)rows, l = (int64_t)length;
    int64_t *s = t->strides;
    switch (o) {
    case ROWS: s[2] = e, s[1] = l * e + row_gap, s[0] = r * s[1] + line_gap; break;
    case COLUMNS: s[1] = e, s[2] = r * e + row_gap, s[0] = l * s[2] + line_gap; break;
    case BROADCAST_ROWS: s[2] = e, s[1] = 0, s[0] = l * e + line_gap; break;
    case BROADCAST_COLUMNS: s[2] = 0, s[1] = e + row_gap, s[0] = r * s[1] + line_gap; break;
    case MIRRORED: s[2] = -e, s[1] = l * e + row_gap, s[0] = r * s[1] + line_gap; break;
    case BACKWARDS: s[2] = e, s[1] = -(l * e + row_gap), s[0] = -r * s[1] + line_gap; break;
    }
    const int64_t spans[RANK] = {(int64_t)(lines - 1) * s[0], (r - 1) * s[1], (l - 1) * s[2]};
    t->begin = 0;
    t->end = e;
    for (int d = 0; d < RANK; d++)
        *(spans[d] < 0 ? &t->begin : &t->end) += spans[d];
}

static bool has_room(const tensor *t)
{
    return t->end - t->begin + 2 * MARGIN <= ROOM;
}

/* The range begins shift bytes after the mapping's first byte or ends so many before its last one. */
static void place(tensor *t, guarded *memory, size_t shift, bool at_end)
{
    const size_t size = (size_t)(t->end - t->begin);
    if (size + shift + MARGIN > ROOM)
        abort();
    char *first = at_end ? memory->bytes + ROOM - shift - size : memory->bytes + shift;
    t->memory = memory;
    t->base = first - t->begin;
    t->painted = at_end ? first - MARGIN : memory->bytes;
    t->painted_size = size + shift + MARGIN;
}


/* ---- Cases ---- */

typedef struct kernel_case {
    dmlsplit_geometry geometry;
    uint64_t sizes[RANK], lengths[PARTS];
    int64_t part_strides[PARTS * RANK];
    tensor whole, parts[PARTS];
    char *expected[PARTS + 1];          /* what the scalar kernel leaves in what is written */
    int digits;                         /* that tell the places of all that is read from each other */
} kernel_case;

static bool removed[DMS_KERNEL_COUNT];      /* as it was the best one for some plan */
static char name[200];
static uint64_t ran[DMS_KERNEL_COUNT][2];   /* by direction */
static uint64_t followed[DMS_KERNEL_COUNT][2];  /* bytes that stayed undefined on their way, and those that did not: [1] and [0] */

/* Returns how many places there are. */
static uint64_t paint_read(kernel_case *c, int digit)
{
    const bool split = c->geometry.direction == DMLSPLIT_SPLIT;
    uint64_t places = 0;
    for (uint64_t i = 0; i < (split ? 1 : c->geometry.part_count); i++) {
        const tensor *t = split ? &c->whole : &c->parts[i];
        paint_places(t->painted, t->painted_size, places, digit);
        PAINT_HIDE(t->painted, t->painted_size);
        places += t->painted_size;
    }
    return places;
}

static bool build(kernel_case *c, const form *f, uint64_t rows, uint32_t direction, uint64_t draw)
{
    dmlsplit_geometry *g = &c->geometry;
    const bool split = direction == DMLSPLIT_SPLIT;
    const order written_order = split ? f->part : f->whole;
    uint64_t total = 0;
    if (written_order == BROADCAST_ROWS || written_order == BROADCAST_COLUMNS)
        return false;
    memset(c, 0, sizeof *c);
    for (uint64_t again = 0; again == 0 || again < f->repeat; again++)
        for (size_t i = 0; i < COUNT(f->lengths) && f->lengths[i] > 0; i++)
            total += c->lengths[g->part_count++] = f->lengths[i];
    if (f->element_size * total * rows * f->lines > ROOM / 2)
        return false;
    g->struct_size = sizeof *g;
    g->direction = direction;
    g->element_size = f->element_size;
    g->rank = RANK;
    g->axis = 2;
    g->sizes = c->sizes;
    g->strides = c->whole.strides;
    g->lengths = c->lengths;
    g->part_strides = c->part_strides;
    c->sizes[0] = f->lines;
    c->sizes[1] = rows;
    c->sizes[2] = total;
    lay_out(&c->whole, f->whole, f->element_size, f->lines, rows, total, f->row_gap, f->line_gap);
    if (!has_room(&c->whole))
        return false;
    place(&c->whole, &mappings[PARTS], (size_t)(draw * 37 % 64), draw & 1);
    for (uint64_t i = 0; i < g->part_count; i++) {
        tensor *t = &c->parts[i];
        lay_out(t, f->part, f->element_size, f->lines, rows, c->lengths[i], f->part_row_gap, f->part_line_gap);
        if (!has_room(t))
            return false;
        memcpy(c->part_strides + i * RANK, t->strides, sizeof t->strides);
        /* Every third draw has all parts at one place in a line, as allocators give them; every third at even addresses. */
        const size_t shift = (size_t)((draw * 11 + i * 7) % 64);
        place(t, &mappings[i], draw % 3 == 2 ? (size_t)(draw / 3 % 4 * 16) : draw % 3 == 1 ? shift / 2 * 2 : shift, draw % 3 > 0 ? 0 : (draw >> 1 ^ i) & 1);
    }
    c->digits = paint_digits(paint_read(c, 0));
    return true;
}

static void run_plan(kernel_case *c, const dmlsplit_plan *plan)
{
    const bool split = c->geometry.direction == DMLSPLIT_SPLIT;
    void *targets[PARTS];
    const void *sources[PARTS];
    if (!split)
        paint_unwritten(c->whole.painted, c->whole.painted_size);
    for (uint64_t i = 0; i < c->geometry.part_count; i++) {
        if (split)
            paint_unwritten(c->parts[i].painted, c->parts[i].painted_size);
        sources[i] = targets[i] = c->parts[i].base;
    }
    CHECK_EQUAL(split ? dmlsplit_split(plan, c->whole.base, targets) : dmlsplit_join(plan, sources, c->whole.base), DMLSPLIT_OK);
}

static tensor *written(kernel_case *c, uint64_t i)
{
    return c->geometry.direction == DMLSPLIT_SPLIT ? &c->parts[i] : &c->whole;
}

static uint64_t count_written(const kernel_case *c)
{
    return c->geometry.direction == DMLSPLIT_SPLIT ? c->geometry.part_count : 1;
}

static dmlsplit_plan *create(kernel_case *c, const char *kernel, dmlsplit_status *status)
{
    dmlsplit_plan *plan = NULL;
    *status = dms_plan_create(&c->geometry, kernel, &plan, NULL);
    return plan;
}

static void compare(kernel_case *c, const char *form_name, const char *kernel, uint64_t rows, uint64_t draw, int regime)
{
    for (uint64_t i = 0; i < count_written(c); i++) {
        const tensor *t = written(c, i);
        PAINT_SHOW(t->painted, t->painted_size);
        if (memcmp(t->painted, c->expected[i], t->painted_size) == 0)
            continue;
        size_t at = 0;
        while (t->painted[at] == c->expected[i][at])
            at++;
        snprintf(name, sizeof name, "%s, %s, %s, %llu rows, draw %llu, %s: tensor %llu, byte %lld", form_name, kernel,
                 c->geometry.direction == DMLSPLIT_SPLIT ? "split" : "join", (unsigned long long)rows, (unsigned long long)draw,
                 regime_names[regime], (unsigned long long)i, (long long)(t->painted + at - t->base));
        check_case = name;
        CHECK(!"differs from the scalar kernel");
        return;
    }
}

/* What a kernel costs for a plan, or for its first shape. */
static unsigned cost_of(const dms_kernel *kernel, const dmlsplit_plan *plan)
{
    const bool is_group = kernel->can_group != NULL;
    const dms_nest *nest = &plan->shapes[0].nest;
    if (!dmlsplit_kernel_available((uint32_t)(kernel - dms_kernel_table)) || (is_group ? kernel->can_group(plan) : kernel->can_nest(nest)) != NULL)
        return UINT_MAX;
    const dms_slow slow = is_group ? kernel->slow_group(plan) : kernel->slow_nest(nest);
    return slow.why != NULL ? slow.cost : kernel->cost;
}

static const dms_kernel *chosen_kernel(const dmlsplit_plan *plan)
{
    return plan->group != NULL ? plan->group : plan->shapes[0].kernel;
}

/* Without the row of the chosen kernel a plan has the next best one by cost, and copies the same. */
static void remove_chosen(kernel_case *c, const form *f, uint64_t rows, uint64_t draw, int regime)
{
    dmlsplit_status status;
    dmlsplit_plan *plan = create(c, NULL, &status);
    const dms_kernel *const first = chosen_kernel(plan);
    dms_removed_kernel = (uint32_t)(first - dms_kernel_table);
    dmlsplit_plan_destroy(plan);
    plan = create(c, NULL, &status);
    if (plan != NULL) {
        const dms_kernel *const next = chosen_kernel(plan);
        const unsigned cost = cost_of(next, plan);
        CHECK(next != first && cost < UINT_MAX && (next->can_group == NULL || cost < DMS_PART_BY_PART));
        for (uint32_t k = 0; k < DMS_KERNEL_COUNT; k++) {
            const dms_kernel *other = &dms_kernel_table[k];
            if (other == first || (other->can_group == NULL && next->can_group != NULL))
                continue;               /* copies of all parts come first, */
            CHECK(other->can_group != NULL && next->can_group == NULL ? cost_of(other, plan) >= DMS_PART_BY_PART : cost_of(other, plan) >= cost);
        }
        removed[dms_removed_kernel] = true;
        run_plan(c, plan);
        compare(c, f->name, "the next kernel", rows, draw, regime);
        dmlsplit_plan_destroy(plan);
    } else {
        CHECK(status == DMLSPLIT_KERNEL_REFUSED && dms_removed_kernel == DMS_KERNEL_COUNT - 1);     /* nothing else is for any plan */
    }
    dms_removed_kernel = DMS_KERNEL_COUNT;
}

/* Without the sanitizer that undefined bytes are for, all are. */
static void count_followed(kernel_case *c, uint32_t kernel)
{
#ifdef WITH_MSAN
    for (uint64_t i = 0; i < count_written(c); i++)
        for (size_t at = 0; at < written(c, i)->painted_size; at++)
            if ((unsigned char)c->expected[i][at] < PAINT_BASE)
                followed[kernel][PAINT_FOLLOWED(written(c, i)->painted + at)]++;
#else
    (void)c;
    followed[kernel][true]++;
#endif
}

static void run_case(kernel_case *c, const form *f, uint64_t rows, uint64_t draw)
{
    dmlsplit_status status;
    check_case = f->name;
    dmlsplit_plan *plan = create(c, "scalar", &status);
    if (!CHECK_EQUAL(status, DMLSPLIT_OK))
        return;
    run_plan(c, plan);
    dmlsplit_plan_destroy(plan);
    for (uint64_t i = 0; i < count_written(c); i++) {
        c->expected[i] = malloc(written(c, i)->painted_size);
        if (c->expected[i] == NULL)
            abort();
        PAINT_SHOW(written(c, i)->painted, written(c, i)->painted_size);
        memcpy(c->expected[i], written(c, i)->painted, written(c, i)->painted_size);
    }
    for (int regime = 0; regime < REGIMES; regime++) {
        use_regime(regime);
        for (uint32_t k = 0; k < DMS_KERNEL_COUNT; k++) {
            const char *kernel = dmlsplit_kernel_name(k);
            plan = create(c, kernel, &status);
            if (plan == NULL) {
                CHECK_EQUAL(status, DMLSPLIT_KERNEL_REFUSED);
                continue;
            }
            run_plan(c, plan);
            count_followed(c, k);
            compare(c, f->name, kernel, rows, draw, regime);
            ran[k][c->geometry.direction]++;
            dmlsplit_plan_destroy(plan);
        }
        for (uint32_t mask = 0; mask < 32; mask = 2 * mask + 1) {   /* what each older CPU would choose, from bare to full */
            dms_cpu_mask(mask);
            plan = create(c, NULL, &status);
            run_plan(c, plan);
            compare(c, f->name, "the chosen kernel", rows, draw, regime);
            dmlsplit_plan_destroy(plan);
            if ((draw + (uint64_t)regime + mask) % 3 == 0)
                remove_chosen(c, f, rows, draw, regime);
        }
        dms_cpu_mask(UINT32_MAX);
    }
    for (uint64_t i = 0; i < count_written(c); i++)
        free(c->expected[i]);
}

/* No kernel may pass because it never ran. One that this CPU lacks is named. */
static void every_kernel_ran(void)
{
    for (uint32_t k = 0; k < DMS_KERNEL_COUNT; k++) {
        check_case = dmlsplit_kernel_name(k);
        if (dmlsplit_kernel_available(k))
            CHECK(removed[k]);
        CHECK(followed[k][false] * 100 <= followed[k][true]);
        if (followed[k][false] > 0)
            printf("LOST kernel %s: %llu of %llu bytes were not followed\n", dmlsplit_kernel_name(k), (unsigned long long)followed[k][false],
                   (unsigned long long)(followed[k][false] + followed[k][true]));
        if (dmlsplit_kernel_available(k))
            CHECK(ran[k][DMLSPLIT_SPLIT] > 0 && ran[k][DMLSPLIT_JOIN] > 0);
        else
            printf("SKIPPED kernel %s: this CPU lacks %s\n", dmlsplit_kernel_name(k), dmlsplit_kernel_isa(k));
    }
}

static void run_all(void)
{
    static kernel_case c;
    uint64_t draw = 0;
    for (size_t i = 0; i < COUNT(forms); i++)
        for (size_t r = 0; r < COUNT(row_counts); r++)
            for (uint32_t direction = 0; direction < 2; direction++)
                for (int again = 0; again < DRAWS; again++)
                    if (build(&c, &forms[i], row_counts[r], direction, draw++))
                        for (int digit = 0; digit < c.digits; digit++) {
                            (void)paint_read(&c, digit);
                            run_case(&c, &forms[i], row_counts[r], draw - 1);
                        }
}

/* On a stack that was painted before: no kernel, and no choice of one, takes more than the header says. What watches memory takes a thread's
 * stack for dead once the thread has ended. */
#if defined(_WIN32) || DMS_SANITIZED || defined(WITH_MSAN) || defined(WITH_MEMCHECK)
static void run_painted(void)
{
    run_all();
}
#else
enum { STACK = 1 << 20, MOST_STACK = 48 << 10, PAINT = 0x5a };

static void *run_thread(void *unused)
{
    (void)unused;
    run_all();
    return NULL;
}

static void *run_nothing(void *unused)
{
    return unused;
}

/* Bytes of the stack that a thread writes to. */
static size_t depth_of(void *(*entry)(void *))
{
    unsigned char *const stack = mmap(NULL, STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    size_t untouched = 0;
    pthread_attr_t attributes;
    pthread_t thread;
    if (stack == MAP_FAILED)
        abort();
    memset(stack, PAINT, STACK);
    CHECK(pthread_attr_init(&attributes) == 0 && pthread_attr_setstack(&attributes, stack, STACK) == 0);
    CHECK(pthread_create(&thread, &attributes, entry, NULL) == 0 && pthread_join(thread, NULL) == 0);
    (void)pthread_attr_destroy(&attributes);
    while (untouched < STACK && stack[untouched] == PAINT)
        untouched++;
    (void)munmap(stack, STACK);
    return STACK - untouched;
}

static void run_painted(void)
{
    const size_t depth = depth_of(run_thread), nothing = depth_of(run_nothing);
    check_case = "stack";
    printf("%zu bytes of stack\n", depth - nothing);
    CHECK(depth - nothing < MOST_STACK);
}
#endif

/* What is staged for stores past the caches lies in one page, if a page holds it. */
static void stays_in_pages(void)
{
    static char memory[3 * DMS_PAGE];
    for (size_t begin = 0; begin < DMS_PAGE; begin += DMS_LINE)
        for (size_t size = DMS_LINE; size <= DMS_PAGE + DMS_LINE; size += DMS_LINE) {
            const size_t left_out = dms_left_out(memory + begin, size);
            const uintptr_t first = (uintptr_t)memory + begin + left_out, last = first + size - 1;
            CHECK(left_out < size);
            CHECK(size > DMS_PAGE ? left_out == 0 : first / DMS_PAGE == last / DMS_PAGE);
        }
}

int main(void)
{
    for (size_t i = 0; i < COUNT(mappings); i++)
        mappings[i] = guarded_allocate(ROOM, 0);
    run_painted();
    every_kernel_ran();
    stays_in_pages();
    return check_report();
}
