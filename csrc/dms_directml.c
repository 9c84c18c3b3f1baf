/* dms_directml.c - converts DirectML's operator descriptors to geometries */
#include "dms_checked.h"
#include "dms_internal.h"
#include "dms_memory.h"
#include "dms_operator.h"
#include "dms_verdict_layout.h"

#include <stdlib.h>

typedef struct operator_desc {
    dms_operator op;
    uint32_t flags;
    const DML_BUFFER_TENSOR_DESC *buffer;   /* of the whole; all parts have its members, except for the size along
                                               the axis */
    uint32_t element_size;              /* bytes */
} operator_desc;

/* Returns the buffer description of a tensor, or NULL with a status. */
static dmlsplit_status open_tensor(const DML_TENSOR_DESC *tensor, const DML_BUFFER_TENSOR_DESC **buffer)
{
    if (tensor->Type != DML_TENSOR_TYPE_BUFFER)
        return DMLSPLIT_BAD_TENSOR;
    *buffer = tensor->Desc;
    if (*buffer == NULL || (*buffer)->Sizes == NULL)
        return DMLSPLIT_NULL_POINTER;
    if (dms_element_bits((uint32_t)(*buffer)->DataType) < 8)
        return DMLSPLIT_BAD_DATA_TYPE;
    if ((*buffer)->DimensionCount == 0 || (*buffer)->DimensionCount > DMS_MOST_DIMENSIONS)
        return DMLSPLIT_BAD_RANK;
    return DMLSPLIT_OK;
}

/* Checks a part, or the whole, against desc->buffer and reads its strides, in bytes. */
static dmlsplit_status read_tensor(const DML_TENSOR_DESC *tensor, const operator_desc *desc, uint64_t *length, int64_t *strides, uint32_t *dimension)
{
    const DML_BUFFER_TENSOR_DESC *buffer = NULL;
    uint64_t sizes[DMS_MOST_DIMENSIONS], bytes = desc->element_size;
    int64_t begin, end;
    const dmlsplit_status status = open_tensor(tensor, &buffer);
    if (status != DMLSPLIT_OK)
        return status;
    if (buffer->DataType != desc->buffer->DataType)
        return DMLSPLIT_BAD_DATA_TYPE;
    if (buffer->DimensionCount != desc->buffer->DimensionCount)
        return DMLSPLIT_RANK_MISMATCH;
    for (uint32_t d = buffer->DimensionCount; d-- > 0;) {
        *dimension = d;
        sizes[d] = buffer->Sizes[d];
        if (sizes[d] == 0)
            return DMLSPLIT_ZERO_SIZE;
        if (d != desc->op.axis && sizes[d] != desc->buffer->Sizes[d])
            return DMLSPLIT_SIZE_MISMATCH;
        strides[d] = buffer->Strides != NULL ? (int64_t)buffer->Strides[d] * desc->element_size : (int64_t)bytes;
        if (!dms_mul_u64(bytes, sizes[d], &bytes) || bytes > (uint64_t)INT64_MAX)
            return DMLSPLIT_OVERFLOW;
    }
    if (!dms_byte_range(buffer->DimensionCount, sizes, strides, desc->element_size, &begin, &end, dimension))
        return DMLSPLIT_OVERFLOW;
    *dimension = DMLSPLIT_NO_DIMENSION;
    *length = sizes[desc->op.axis];
    return (uint64_t)end <= buffer->TotalTensorSizeInBytes ? DMLSPLIT_OK : DMLSPLIT_TOTAL_SIZE;
}

static dmlsplit_status plan_parts(const operator_desc *desc, const int64_t *strides, dmlsplit_plan **plan, dmlsplit_fault *fault)
{
    const uint32_t rank = desc->buffer->DimensionCount;
    const size_t each = sizeof(uint64_t) + rank * sizeof(int64_t);
    uint64_t sizes[DMS_MOST_DIMENSIONS];
    for (uint32_t d = 0; d < rank; d++)
        sizes[d] = desc->buffer->Sizes[d];

    uint64_t *const lengths = dms_allocate(desc->op.count, each);
    if (lengths == NULL)
        return DMLSPLIT_OUT_OF_MEMORY;
    int64_t *const part_strides = (int64_t *)(lengths + desc->op.count);
    dmlsplit_status status = DMLSPLIT_OK;
    for (uint32_t i = 0; i < desc->op.count && status == DMLSPLIT_OK; i++) {
        fault->part = i;
        status = read_tensor(&desc->op.parts[i], desc, &lengths[i], part_strides + (size_t)i * rank, &fault->dimension);
    }
    if (status == DMLSPLIT_OK) {
        const dmlsplit_geometry geometry = {
            sizeof geometry, desc->op.split ? DMLSPLIT_SPLIT : DMLSPLIT_JOIN, desc->element_size, rank, desc->op.axis, desc->flags,
            desc->op.count, sizes, strides, lengths, part_strides,
        };
        status = dmlsplit_plan_create(&geometry, plan, fault);
    }
    free(lengths);
    return status;
}

static dmlsplit_status plan_operator(operator_desc *desc, dmlsplit_plan **plan, dmlsplit_fault *fault)
{
    int64_t strides[DMS_MOST_DIMENSIONS];
    uint64_t length = 0;
    if (desc->op.whole == NULL)
        return DMLSPLIT_NULL_POINTER;
    if (desc->op.count == 0)
        return DMLSPLIT_NO_PARTS;
    if (desc->op.parts == NULL)
        return DMLSPLIT_NULL_POINTER;
    dmlsplit_status status = open_tensor(desc->op.whole, &desc->buffer);
    if (status != DMLSPLIT_OK)
        return status;
    if (desc->op.axis >= desc->buffer->DimensionCount)
        return DMLSPLIT_BAD_AXIS;
    desc->element_size = dms_element_bits((uint32_t)desc->buffer->DataType) / 8;
    status = read_tensor(desc->op.whole, desc, &length, strides, &fault->dimension);
    if (status != DMLSPLIT_OK)
        return status;
    if (desc->op.count > length) {
        fault->dimension = desc->op.axis;  /* the count is wrong, since no part is empty */
        return DMLSPLIT_LENGTH_SUM;
    }
    return plan_parts(desc, strides, plan, fault);
}

dmlsplit_status dmlsplit_plan_create_dml(const DML_OPERATOR_DESC *desc, uint32_t flags, dmlsplit_plan **plan, dmlsplit_fault *fault)
{
    dmlsplit_fault unwanted;
    fault = fault != NULL ? fault : &unwanted;
    *fault = (dmlsplit_fault){DMLSPLIT_WHOLE, DMLSPLIT_NO_DIMENSION};
    if (plan == NULL)
        return DMLSPLIT_NULL_POINTER;
    *plan = NULL;
    if (desc == NULL)
        return DMLSPLIT_NULL_POINTER;
    if (desc->Type != DML_OPERATOR_SPLIT && desc->Type != DML_OPERATOR_JOIN)
        return DMLSPLIT_BAD_DIRECTION;
    if (desc->Desc == NULL)
        return DMLSPLIT_NULL_POINTER;
    operator_desc read = {desc->Type == DML_OPERATOR_SPLIT ? dms_read_split(desc->Desc) : dms_read_join(desc->Desc), flags, NULL, 0};
    return plan_operator(&read, plan, fault);
}

dmlsplit_status dmlsplit_plan_create_dml_split(const DML_SPLIT_OPERATOR_DESC *desc, uint32_t flags, dmlsplit_plan **plan, dmlsplit_fault *fault)
{
    const DML_OPERATOR_DESC of_type = {DML_OPERATOR_SPLIT, desc};
    return dmlsplit_plan_create_dml(&of_type, flags, plan, fault);
}

dmlsplit_status dmlsplit_plan_create_dml_join(const DML_JOIN_OPERATOR_DESC *desc, uint32_t flags, dmlsplit_plan **plan, dmlsplit_fault *fault)
{
    const DML_OPERATOR_DESC of_type = {DML_OPERATOR_JOIN, desc};
    return dmlsplit_plan_create_dml(&of_type, flags, plan, fault);
}
