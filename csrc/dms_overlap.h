/* dms_overlap.h - whether two elements of a strided tensor overlap */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* A dimension of more than one element. dms_dimensions_overlap sets reach and divisor. */
typedef struct dms_dimension {
    uint64_t stride;                    /* distance to the next element; not 0 */
    uint64_t steps;                     /* elements after the first one */
    uint64_t reach;                     /* sum of stride * steps over the dimensions of smaller strides */
    uint64_t divisor;                   /* greatest common divisor of their strides; 0: there are none */
} dms_dimension;

/* Inserts a dimension into an array that is sorted by stride. */
void dms_add_dimension(dms_dimension *dims, uint32_t *count, uint64_t stride, uint64_t steps);

/* Whether two elements, each `width` wide, share a place. The sum of all stride * steps, plus width, fits 64 bits. Each step of the search takes one from
 * *budget; *budget is below 0 after false where the search ended before it could tell. */
bool dms_dimensions_overlap(dms_dimension *dims, uint32_t count, uint64_t width, int32_t *budget);
