/* dms_verdict_layout.h - layouts of tensors whose Sizes are present and above 0 (the element count may be too large) */
#pragma once

#include "dms_verdict_target.h"

/* Returns the bits of an element; 0 if the type is unknown. */
uint32_t dms_element_bits(uint32_t data_type);

/* Returns the number of elements; UINT64_MAX if there are more than UINT32_MAX. */
uint64_t dms_element_count(const DML_BUFFER_TENSOR_DESC *t);

/* Returns the distance in elements from the first element in memory to the last, both included. count: the tensor's
 * elements, at most UINT32_MAX. */
uint64_t dms_exact_extent(const DML_BUFFER_TENSOR_DESC *t, uint64_t count);

/* Returns the extent in elements as a build computes it. exact: the result of dms_exact_extent. */
uint64_t dms_counted_extent(dms_arithmetic arithmetic, const DML_BUFFER_TENSOR_DESC *t, uint64_t exact);

/* Sets *bytes to the size of `extent` elements, rounded up to a multiple of 4. Returns false if it exceeds 64 bits. */
bool dms_implied_size(uint64_t extent, uint32_t bits, uint64_t *bytes);

/* Sets *bytes to the implied size of a tensor with this exact extent, as a build computes it. Returns false if it exceeds 64 bits. */
bool dms_counted_size(dms_arithmetic arithmetic, const DML_BUFFER_TENSOR_DESC *t, uint64_t exact, uint64_t *bytes);

/* True if each dimension's stride exceeds the reach of all later dimensions, as in most layouts: then no two
 * elements share a place, and strides differ and are not 0. */
bool dms_is_nested(const DML_BUFFER_TENSOR_DESC *t);

/* Returns true if two elements share a place; false also if the search ends undecided, which is not reported as a
 * fault. Strides of sizes above 1 are not 0. */
bool dms_elements_overlap(const DML_BUFFER_TENSOR_DESC *t);
