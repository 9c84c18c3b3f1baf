/* dms_transpose.h - matrices that are transposed tile by tile (kernels/transpose*, kernels/columns.c) */
#pragma once

#include "dms_lines.h"

enum {
    DMS_TILE_ROWS = 512,                /* of a tile */
    DMS_TILE_COLUMNS = 1024,
    DMS_STACK = 4,                      /* squares that are transposed at once */
    DMS_MOST_CARRIED = 256,             /* columns of a tile whose lines are carried on */
    DMS_MOST_GATHERED = 16384           /* bytes of short rows of the target */
};

/* Where transposed squares go, chosen once for a matrix. All but the first two go past the caches. */
typedef enum dms_sink {
    DMS_STORED,
    DMS_STACKED,                        /* a few squares at once, so that each row of the target gets a few lines one after the other */
    DMS_LINES,                          /* whole lines of the target */
    DMS_CARRIED,                        /* lines are made of two squares, the end of one and the begin of the next */
    DMS_COLLECTED,                      /* as DMS_CARRIED, where registers cannot do it: by way of slots in memory that is cached */
    DMS_GATHERED                        /* short rows of the target that make whole lines together, also by way of such memory */
} dms_sink;

/* The contiguous rows of a matrix, or of the transposed one. const is cast away, as in dms_buffers. */
typedef struct dms_side {
    uint64_t count;
    char *begin;                        /* the first row */
    int64_t step;                       /* bytes from one row to the next; 0 where they are listed */
    const dms_stretch *listed;          /* rows begin where the parts of this stretch do; NULL: step bytes apart */
    uint64_t row, part;                 /* of the part that is listed next: its number among the parts that are not empty, and among all */
    uintptr_t apart;                    /* all the bits that distances between rows have, of this matrix and of others like it */
} dms_side;

/* A tile of rows x columns elements. Row i lies at from[i] + from_offset, contiguous; column j goes to to[j] + to_offset, contiguous. */
typedef struct dms_tile {
    void (*turn)(struct dms_tile *tile);
    dms_sink sink;
    bool claimed;                       /* lines are prefetched before they are written */
    bool fetched;                       /* the next tile is, meanwhile */
    size_t element_size;                /* 1, 2, 4, 8 or 16 */
    size_t side;                        /* rows and columns of a square: elements of a cache line */
    size_t head;                        /* rows of the first tile, so that the next ones begin with a line of the target; 0: they do anyway */
    size_t height, width;               /* rows and columns of the others, but of the last ones */
    size_t rows, columns;
    char **from, **to;
    int64_t from_offset, to_offset;
    int64_t next;                       /* bytes from each row to that of the next tile */
    dms_lines *carries;                 /* one for each column that is carried or collected, or for all columns that are gathered */
} dms_tile;

/* What an instruction set turns tiles with. */
typedef struct dms_turner {
    void (*turn)(dms_tile *tile);
    size_t vector;                      /* bytes of its vectors */
} dms_turner;

static inline bool dms_is_element(size_t size)
{
    return size <= 16 && (size & (size - 1)) == 0;
}

static inline size_t dms_smaller(uint64_t a, size_t b)
{
    return a < b ? (size_t)a : b;
}

/* count rows, step bytes apart. */
dms_side dms_space_out(char *begin, int64_t step, uint64_t count);

/* Transposes a matrix, and the matrices that the loops around it lead to. from, to: rows of the source, and of the target. */
void dms_transpose(const dms_turner *turner, size_t element_size, dms_side *from, dms_side *to, const dms_stores *stores, const dms_loop *around,
                   uint32_t around_count);

/* ---- Nests ---- */

/* The loops of a nest that turns a matrix: rows are contiguous in the target, columns in the source. around: the other loops. */
typedef struct dms_matrix {
    const dms_loop *rows, *columns;
    uint32_t count;
    dms_loop around[DMLSPLIT_MAX_RANK];
} dms_matrix;

/* Of a nest that has one. */
dms_matrix dms_find_matrix(const dms_nest *nest);

/* Whether a side of a nest's matrix is too short for squares to pay. */
bool dms_is_narrow(const dms_nest *nest);

void dms_transpose_nest(const dms_nest *nest, char *target, const char *source, const dms_turner *turner);

/* ---- Columns: parts of one element a row ---- */

void dms_transpose_columns(const dmlsplit_plan *plan, const dms_buffers *buffers, uint64_t first, uint64_t last, const dms_turner *turner);
