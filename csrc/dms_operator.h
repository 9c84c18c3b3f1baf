/* dms_operator.h - a common view of the descriptors of Split and Join */
#pragma once

#include "dms_c_only.h"
#include "dmlsplit_directml.h"

#include <stdbool.h>

#define DMS_MOST_DIMENSIONS 8           /* DML_TENSOR_DIMENSION_COUNT_MAX1 */

/* A Split or a Join: a whole and an array of parts. */
typedef struct dms_operator {
    bool split;
    const DML_TENSOR_DESC *whole, *parts;
    uint32_t count, axis;
} dms_operator;

/* Returns a view of the descriptor: pointers into it; nothing is read through them. */
static inline dms_operator dms_read_split(const DML_SPLIT_OPERATOR_DESC *desc)
{
    const dms_operator read = {true, desc->InputTensor, desc->OutputTensors, desc->OutputCount, desc->Axis};
    return read;
}

static inline dms_operator dms_read_join(const DML_JOIN_OPERATOR_DESC *desc)
{
    const dms_operator read = {false, desc->OutputTensor, desc->InputTensors, desc->InputCount, desc->Axis};
    return read;
}
