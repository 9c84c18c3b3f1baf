/* dms_transpose.h - matrices that are turned tile by tile (kernels/transpose*, kernels/columns.c) */
#pragma once

#include "dms_lines.h"

enum {
    DMS_TILE_MOST = 1024,               /* rows or columns of a tile */
    DMS_STACK = 4,                      /* squares that are turned at once */
    DMS_MOST_CARRIED = 512,             /* columns of a tile whose lines are carried on */
    DMS_MOST_TURNED = 2 * DMS_LINE * DMS_MOST_CARRIED   /* bytes of these, and as many as are gathered */
};

/* Where turned squares go, chosen once for a matrix. */
typedef enum dms_sink {
    DMS_STORED,
    DMS_STACKED,                        /* a few squares at once, so that each row of the target gets a few lines one after the other */
    DMS_LINES,                          /* past the caches, as they are whole lines of the target */
    DMS_CARRIED,                        /* past the caches: lines are made of two squares, the end of one and the begin of the next */
    DMS_COLLECTED                       /* the same where registers cannot do it: by way of memory that is cached */
} dms_sink;

/* A tile of rows x columns elements. Row i lies at from[i] + from_offset, contiguous; column j goes to to[j] + to_offset, contiguous. */
typedef struct dms_tile {
    void (*turn)(struct dms_tile *tile);    /* turns a tile, and moves to_offset behind it */
    dms_sink sink;
    bool claimed;                       /* lines are asked for before they are written */
    bool fetched;                       /* the next tile is, meanwhile */
    size_t element_size;                /* 1, 2, 4, 8 or 16 */
    size_t head;                        /* rows of the first tile, so that the next ones begin with a line of the target; 0: they do anyway */
    size_t height, width;               /* rows and columns of the others, but of the last ones */
    size_t rows, columns;
    const char *from[DMS_TILE_MOST];
    int64_t from_offset;
    char *to[DMS_TILE_MOST];            /* in turned, where collected */
    int64_t to_offset;
    int64_t next;                       /* bytes from each row to that of the next tile */
    dms_lines carries[DMS_MOST_CARRIED];    /* of the columns: what no whole line of memory holds yet waits in turned */
    _Alignas(DMS_LINE) char turned[DMS_MOST_TURNED];
} dms_tile;

static inline bool dms_is_carried(const dms_tile *tile)
{
    return tile->sink >= DMS_CARRIED;
}

/* The functions of a kernel, and its width. */
typedef struct dms_turner {
    void (*turn)(dms_tile *tile);
    void (*drain)(dms_lines *lines, size_t size);   /* drain_lines of its instruction set */
    size_t vector;                      /* bytes of its vectors, which have non-temporal stores; 0: it has none */
} dms_turner;

extern const dms_turner dms_plain_turner;   /* without vectors */

/* How the rows of the target lie: the address of one of them, and all the bits that the distances between them have; and how far those of the source
 * are apart, 0: by no rule. */
typedef struct dms_sides {
    uintptr_t first, apart, from_apart;
} dms_sides;

static inline bool dms_is_element(size_t size)
{
    return size <= 16 && (size & (size - 1)) == 0;
}

static inline size_t dms_smaller(uint64_t a, size_t b)
{
    return a < b ? (size_t)a : b;
}

/* Chooses the sink and the shape of tiles, for a matrix with so many rows. */
void dms_start_tiles(dms_tile *tile, const dms_turner *turner, size_t element_size, uint64_t rows, const dms_sides *s, const dms_stores *stores);

/* How many of the rows that are left the next tile takes. */
size_t dms_next_rows(const dms_tile *tile, uint64_t left, bool first);

/* Where rows of the source begin. */
void dms_start_rows(dms_tile *tile, uint64_t rows, int64_t step, const char *source);

/* The first tile of these columns: to and to_offset say where they go; and what is left of them after the last one. */
void dms_start_columns(dms_tile *tile);
void dms_finish_columns(const dms_tile *tile);

/* The columns that tile->to names, from one on, down all rows. */
void dms_turn_down(dms_tile *tile, uint64_t rows, int64_t step, uint64_t column);

/* ---- Nests ---- */

/* The loops of a nest that turns a matrix: rows are contiguous in the target, columns in the source. around: the other loops. */
typedef struct dms_matrix {
    const dms_loop *rows, *columns;
    uint32_t count;
    dms_loop around[DMLSPLIT_MAX_RANK];
} dms_matrix;

dms_matrix dms_find_matrix(const dms_nest *nest);

/* NULL, or why not. A nest that turns a matrix, the loops around it apart. */
const char *dms_refuse_transpose(const dms_nest *nest);     /* the kernels accept it where it is not narrow: dms_accept_transpose */
void dms_transpose(const dms_nest *nest, char *target, const char *source, const dms_turner *turner);

/* ---- Columns: parts of one element a row ---- */

const char *dms_refuse_columns(const dmlsplit_plan *plan);
void dms_transpose_columns(const dmlsplit_plan *plan, const dms_buffers *buffers, uint64_t first, uint64_t last, const dms_turner *turner);
