/* dms_transpose.h - matrices that are transposed tile by tile (kernels/transpose*, kernels/columns.c) */
#pragma once

#include "dms_lines.h"

enum {
    DMS_TILE_ROWS = 512,                /* of a tile */
    DMS_TILE_COLUMNS = 1024,
    DMS_STACK = 4,                      /* squares that are transposed at once */
    DMS_MOST_CARRIED = 256,             /* columns of a tile whose lines are carried on */
    DMS_MOST_COALESCED = 16384          /* bytes of short rows of the target */
};

/* How transposed squares are stored, chosen once for a matrix: the first two through the caches, the others past them. */
typedef enum dms_sink {
    DMS_STORED,
    DMS_STACKED,                        /* several squares at once: each row of the target gets several cache lines in a row */
    DMS_LINES,                          /* squares are whole cache lines of the target */
    DMS_CARRIED,                        /* a line is the end of one square and the beginning of the next; the last
                                           line of a square waits until it is full */
    DMS_COLLECTED,                      /* as DMS_CARRIED, but lines are staged in cached memory where registers cannot hold them */
    DMS_COALESCED                       /* short rows of the target that fill lines together; staged as well */
} dms_sink;

/* The contiguous rows of a matrix, or of the transposed matrix. const is cast away, as in dms_buffers. */
typedef struct dms_side {
    uint64_t count;
    char *begin;                        /* the first row */
    int64_t stride;                     /* bytes from one row to the next; 0 if the rows are listed */
    const dms_stretch *listed;          /* each row begins at a part of this stretch; NULL: stride bytes apart */
    uint64_t row, part;                 /* the part that is listed next: its index among the parts that are not
                                           empty, and among all parts */
    uintptr_t distance_bits;            /* OR of all distances between rows, in this matrix and in all others that
                                           the surrounding loops reach */
} dms_side;

/* A tile of rows x columns elements. Row i lies at from[i] + from_offset, contiguous; column j goes to to[j] + to_offset, contiguous. */
typedef struct dms_tile {
    void (*transpose)(struct dms_tile *tile);
    dms_sink sink;
    bool claimed;                       /* prefetchw claims lines before they are written */
    bool begun;                         /* if carried: every column has a line before this tile */
    bool fetched;                       /* the next tile is prefetched meanwhile, */
    size_t every;                       /* of so many rows one, if the others lie in the same lines, */
    bool near;                          /* into the first-level cache; otherwise into the second, */
    bool behind;                        /* and after squares rather than before them: both tiles do not fit that cache */
    bool gathered;                      /* if sink is DMS_LINES: lines of several squares are staged, so that each row of the target gets several in a row */
    bool staged;                        /* if sink is DMS_STORED: the tile is copied first, */
    bool crowded;                       /* and lines that a square writes share sets of the first-level cache, so that each had better be written at once */
    size_t below;                       /* rows of the tile by which whole squares prefetch ahead, and then begin the next tile; 0: they do not */
    size_t element_size;                /* 1, 2, 4, 8 or 16 */
    size_t side;                        /* rows and columns of a square: elements of a cache line */
    size_t head;                        /* rows of the first tile, after which tiles begin at cache lines of the
                                           target; 0: all tiles do */
    size_t height, width;               /* rows and columns of the other tiles; the last ones may have fewer */
    size_t rows, columns;
    char **from, **to;
    int64_t from_offset, to_offset;
    int64_t next;                       /* bytes from each row to that of the next tile */
    dms_lines *carries;                 /* one for each column if carried or collected, contiguous in memory; one for
                                           all columns if coalesced */
} dms_tile;

/* How an instruction set transposes tiles. */
typedef struct dms_transposer {
    void (*transpose)(dms_tile *tile);
    size_t vector;                      /* bytes of its vectors */
} dms_transposer;

/* True if elements of `size` bytes can be transposed: 1, 2, 4, 8 or 16. size is above 0. */
static inline bool dms_is_element(size_t size)
{
    return size <= 16 && (size & (size - 1)) == 0;
}

/* Returns the smaller of two numbers. */
static inline size_t dms_smaller(uint64_t a, size_t b)
{
    return a < b ? (size_t)a : b;
}

/* Returns a side of `count` rows that are one stride apart. */
dms_side dms_space_out(char *begin, int64_t stride, uint64_t count);

/* Transposes a matrix, once for each combination of indices of the loops around it. from, to: the rows of the source and of the target; both are changed
 * while rows that are listed are walked. */
void dms_transpose(const dms_transposer *transposer, size_t element_size, dms_side *from, dms_side *to, const dms_stores *stores, const dms_loop *around,
                   uint32_t around_count);

/* ---- Nests ---- */

/* The loops of a nest that transposes a matrix: its rows are contiguous in the target, its columns in the source. around: the other loops. */
typedef struct dms_matrix {
    const dms_loop *rows, *columns;
    uint32_t count;
    dms_loop around[DMLSPLIT_MAX_RANK];
} dms_matrix;

/* Returns the matrix of a nest whose columns are set. */
dms_matrix dms_find_matrix(const dms_nest *nest);

/* True if a side of the nest's matrix is too short for squares to be worth it. */
bool dms_is_narrow(const dms_nest *nest);

/* Copies a nest that has a matrix. */
void dms_transpose_nest(const dms_nest *nest, char *target, const char *source, const dms_transposer *transposer);

/* ---- Columns: parts of one element a row ---- */

/* Copies rows [first, last) of a plan whose parts have one element in each row. */
void dms_transpose_columns(const dmlsplit_plan *plan, const dms_buffers *buffers, uint64_t first, uint64_t last, const dms_transposer *transposer);
