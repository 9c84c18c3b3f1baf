/* dms_verdict_layout.h - layouts of tensors whose Sizes are there, and above 0 but for the count */
#pragma once

#include "dms_verdict_target.h"

/* Returns the bits of an element; 0 if the type is unknown. */
uint32_t dms_element_bits(uint32_t data_type);

/* Returns the number of elements; UINT64_MAX if there are more than UINT32_MAX. */
uint64_t dms_element_count(const DML_BUFFER_TENSOR_DESC *t);

/* Returns the elements from the first to the last one addressed, both included. count: the tensor's elements, at most UINT32_MAX. */
uint64_t dms_exact_extent(const DML_BUFFER_TENSOR_DESC *t, uint64_t count);

/* Returns the extent as a build counts it, in elements. exact: what dms_exact_extent returned. */
uint64_t dms_counted_extent(dms_arithmetic arithmetic, const DML_BUFFER_TENSOR_DESC *t, uint64_t exact);

/* Sets *bytes to the bytes of `extent` elements, rounded up to 4. Returns false if they exceed 64 bits. */
bool dms_implied_size(uint64_t extent, uint32_t bits, uint64_t *bytes);

/* Sets *bytes to the implied size of a tensor with this exact extent, as a build computes it. Returns false if it exceeds 64 bits. */
bool dms_counted_size(dms_arithmetic arithmetic, const DML_BUFFER_TENSOR_DESC *t, uint64_t exact, uint64_t *bytes);

/* True if each dimension steps over all that later dimensions reach, as in most layouts: no two elements share a place, and strides differ and are not 0. */
bool dms_is_nested(const DML_BUFFER_TENSOR_DESC *t);

/* Returns true if two elements share a place; false also if the search ends undecided, which is no fault. Strides of sizes above 1 are not 0. */
bool dms_elements_overlap(const DML_BUFFER_TENSOR_DESC *t);
