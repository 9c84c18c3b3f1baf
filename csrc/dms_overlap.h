/* dms_overlap.h - whether two elements of a strided tensor overlap */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* A dimension of more than one element. dms_dimensions_overlap computes reach and divisor. */
typedef struct dms_dimension {
    uint64_t stride;                    /* distance to the next element; not 0 */
    uint64_t last;                      /* index of its last element */
    uint64_t reach;                     /* sum of stride * last over the dimensions of smaller strides */
    uint64_t divisor;                   /* greatest common divisor of their strides; 0: there are none */
} dms_dimension;

/* Inserts a dimension into dims, which is sorted by stride and has room for it; *count grows by 1. */
void dms_add_dimension(dms_dimension *dims, uint32_t *count, uint64_t stride, uint64_t last);

/* Returns true if two elements, each `width` wide, share a place; false if none do, or, with *budget below 0, if the
 * search ended undecided. Each step of the search takes one from *budget. The sum of all stride * last, plus width,
 * fits 64 bits. */
bool dms_dimensions_overlap(dms_dimension *dims, uint32_t count, uint64_t width, int32_t *budget);
