/* dmlsplit_directml.h - plans from DirectML's operator descriptors
 *
 * Include Microsoft's DirectML.h before this header, or not at all: without it the few types that a Split or Join is described with are
 * declared here, with the same names, values and layout, so that programs can be built where there is no Windows SDK. (Including it
 * afterwards is an error: the types would be declared twice. Define DMLSPLIT_HAVE_DIRECTML_H if your DirectML.h has a guard other than
 * DIRECTML_H.) Linking needs nothing of DirectML's.
 *
 * These functions are not a validator. They check what reading the descriptor and copying within the described buffers needs, and
 * nothing else: no feature level, no flag, no alignment.
 */
#ifndef DMLSPLIT_DIRECTML_H
#define DMLSPLIT_DIRECTML_H

#include "dmlsplit.h"

/* DirectML.h has had the guard DIRECTML_H since its first release, and declares its types only for desktop, app and games partitions, where
 * it also defines DML_DECLARE_INTERFACE. */
#if !defined(DMLSPLIT_HAVE_DIRECTML_H) && !(defined(DIRECTML_H) && defined(DML_DECLARE_INTERFACE))

typedef enum DML_TENSOR_DATA_TYPE {
    DML_TENSOR_DATA_TYPE_UNKNOWN = 0,
    DML_TENSOR_DATA_TYPE_FLOAT32 = 1,
    DML_TENSOR_DATA_TYPE_FLOAT16 = 2,
    DML_TENSOR_DATA_TYPE_UINT32 = 3,
    DML_TENSOR_DATA_TYPE_UINT16 = 4,
    DML_TENSOR_DATA_TYPE_UINT8 = 5,
    DML_TENSOR_DATA_TYPE_INT32 = 6,
    DML_TENSOR_DATA_TYPE_INT16 = 7,
    DML_TENSOR_DATA_TYPE_INT8 = 8,
    DML_TENSOR_DATA_TYPE_FLOAT64 = 9,
    DML_TENSOR_DATA_TYPE_UINT64 = 10,
    DML_TENSOR_DATA_TYPE_INT64 = 11,
    DML_TENSOR_DATA_TYPE_UINT4 = 12,
    DML_TENSOR_DATA_TYPE_INT4 = 13
} DML_TENSOR_DATA_TYPE;

typedef enum DML_TENSOR_TYPE {
    DML_TENSOR_TYPE_INVALID = 0,
    DML_TENSOR_TYPE_BUFFER = 1
} DML_TENSOR_TYPE;

typedef enum DML_TENSOR_FLAGS {
    DML_TENSOR_FLAG_NONE = 0,
    DML_TENSOR_FLAG_OWNED_BY_DML = 1
} DML_TENSOR_FLAGS;

typedef struct DML_BUFFER_TENSOR_DESC {
    DML_TENSOR_DATA_TYPE DataType;
    DML_TENSOR_FLAGS Flags;
    uint32_t DimensionCount;
    const uint32_t *Sizes;
    const uint32_t *Strides;                /* elements; NULL: packed */
    uint64_t TotalTensorSizeInBytes;
    uint32_t GuaranteedBaseOffsetAlignment;
} DML_BUFFER_TENSOR_DESC;

typedef struct DML_TENSOR_DESC {
    DML_TENSOR_TYPE Type;
    const void *Desc;
} DML_TENSOR_DESC;

/* Of DirectML's operator types only those that this library deals with. */
typedef enum DML_OPERATOR_TYPE {
    DML_OPERATOR_INVALID = 0,
    DML_OPERATOR_SPLIT = 62,
    DML_OPERATOR_JOIN = 63
} DML_OPERATOR_TYPE;

typedef struct DML_OPERATOR_DESC {
    DML_OPERATOR_TYPE Type;
    const void *Desc;
} DML_OPERATOR_DESC;

typedef struct DML_SPLIT_OPERATOR_DESC {
    const DML_TENSOR_DESC *InputTensor;
    uint32_t OutputCount;
    const DML_TENSOR_DESC *OutputTensors;   /* an array of OutputCount */
    uint32_t Axis;
} DML_SPLIT_OPERATOR_DESC;

typedef struct DML_JOIN_OPERATOR_DESC {
    uint32_t InputCount;
    const DML_TENSOR_DESC *InputTensors;    /* an array of InputCount */
    const DML_TENSOR_DESC *OutputTensor;
    uint32_t Axis;
} DML_JOIN_OPERATOR_DESC;

#endif

/* The layouts of DirectML's x64 ABI. C99 has no static assertion. */
#if defined(__cplusplus)
#define DMLSPLIT_X64_LAYOUT(condition) static_assert(sizeof(void *) != 8 || (condition), #condition)
#elif defined(__STDC_VERSION__) && __STDC_VERSION__ >= 201112L
#define DMLSPLIT_X64_LAYOUT(condition) _Static_assert(sizeof(void *) != 8 || (condition), #condition)
#endif
#ifdef DMLSPLIT_X64_LAYOUT
DMLSPLIT_X64_LAYOUT(sizeof(DML_TENSOR_DESC) == 16);
DMLSPLIT_X64_LAYOUT(offsetof(DML_TENSOR_DESC, Desc) == 8);
DMLSPLIT_X64_LAYOUT(sizeof(DML_BUFFER_TENSOR_DESC) == 48);
DMLSPLIT_X64_LAYOUT(offsetof(DML_BUFFER_TENSOR_DESC, Flags) == 4);
DMLSPLIT_X64_LAYOUT(offsetof(DML_BUFFER_TENSOR_DESC, DimensionCount) == 8);
DMLSPLIT_X64_LAYOUT(offsetof(DML_BUFFER_TENSOR_DESC, Sizes) == 16);
DMLSPLIT_X64_LAYOUT(offsetof(DML_BUFFER_TENSOR_DESC, Strides) == 24);
DMLSPLIT_X64_LAYOUT(offsetof(DML_BUFFER_TENSOR_DESC, TotalTensorSizeInBytes) == 32);
DMLSPLIT_X64_LAYOUT(offsetof(DML_BUFFER_TENSOR_DESC, GuaranteedBaseOffsetAlignment) == 40);
DMLSPLIT_X64_LAYOUT(sizeof(DML_OPERATOR_DESC) == 16);
DMLSPLIT_X64_LAYOUT(offsetof(DML_OPERATOR_DESC, Desc) == 8);
DMLSPLIT_X64_LAYOUT(sizeof(DML_SPLIT_OPERATOR_DESC) == 32);
DMLSPLIT_X64_LAYOUT(offsetof(DML_SPLIT_OPERATOR_DESC, OutputCount) == 8);
DMLSPLIT_X64_LAYOUT(offsetof(DML_SPLIT_OPERATOR_DESC, OutputTensors) == 16);
DMLSPLIT_X64_LAYOUT(offsetof(DML_SPLIT_OPERATOR_DESC, Axis) == 24);
DMLSPLIT_X64_LAYOUT(sizeof(DML_JOIN_OPERATOR_DESC) == 32);
DMLSPLIT_X64_LAYOUT(offsetof(DML_JOIN_OPERATOR_DESC, InputTensors) == 8);
DMLSPLIT_X64_LAYOUT(offsetof(DML_JOIN_OPERATOR_DESC, OutputTensor) == 16);
DMLSPLIT_X64_LAYOUT(offsetof(DML_JOIN_OPERATOR_DESC, Axis) == 24);
#undef DMLSPLIT_X64_LAYOUT
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* Plan a DirectML operator: what dmlsplit_plan_create promises holds here too. flags are those of dmlsplit_geometry. Strides in elements become
 * bytes; every tensor must lie within its TotalTensorSizeInBytes, so buffers of that size are large enough for the plan. In *fault the whole is
 * the Split's input or the Join's output, a part the tensor at that index of the array. The descriptor is not needed afterwards.
 * Statuses of their own: DMLSPLIT_BAD_TENSOR, DMLSPLIT_BAD_DATA_TYPE (4-bit types too: their elements are not bytes),
 * DMLSPLIT_RANK_MISMATCH, DMLSPLIT_SIZE_MISMATCH, DMLSPLIT_ZERO_SIZE, DMLSPLIT_TOTAL_SIZE. NULL where DirectML wants a pointer gets
 * DMLSPLIT_NULL_POINTER. */
DMLSPLIT_API dmlsplit_status dmlsplit_plan_create_dml_split(const DML_SPLIT_OPERATOR_DESC *desc, uint32_t flags, dmlsplit_plan **plan,
                                                            dmlsplit_fault *fault);
DMLSPLIT_API dmlsplit_status dmlsplit_plan_create_dml_join(const DML_JOIN_OPERATOR_DESC *desc, uint32_t flags, dmlsplit_plan **plan,
                                                           dmlsplit_fault *fault);

/* The same for a DML_OPERATOR_DESC of type Split or Join; any other type gets DMLSPLIT_BAD_DIRECTION. */
DMLSPLIT_API dmlsplit_status dmlsplit_plan_create_dml(const DML_OPERATOR_DESC *desc, uint32_t flags, dmlsplit_plan **plan, dmlsplit_fault *fault);

#ifdef __cplusplus
}
#endif

#endif
