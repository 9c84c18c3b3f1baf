/* dmlsplit_directml.h - plans from DirectML's operator descriptors, and verdicts on them
 *
 * Include Microsoft's DirectML.h before this header, or not at all: without it the few types that a Split or Join is described with are
 * declared here, with the same names, values and layout, so that programs can be built where there is no Windows SDK. (Including it
 * afterwards is an error: the types would be declared twice. Define DMLSPLIT_HAVE_DIRECTML_H if your DirectML.h has a guard other than
 * DIRECTML_H.) Linking needs nothing of DirectML's.
 *
 * dmlsplit_plan_create_... check what reading the descriptor and copying within the described buffers needs, and nothing else: no feature
 * level, no flag, no alignment. dmlsplit_validate_... say what DirectML would.
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

/* A verdict: whether a descriptor is right, what CreateOperator says, and the first fault in the order of the structs' members. */
typedef struct dmlsplit_verdict {
    uint32_t struct_size;               /* sizeof(dmlsplit_verdict), set before the call, so that the struct can grow */
    int32_t ok;                         /* 1: taken, and not unsafe */
    int32_t crashes;                    /* 1: this release reads through a null pointer, and CreateOperator does not return */
    uint32_t hresult;                   /* CreateOperator's: 0 (S_OK) or E_INVALIDARG; 0 too where it crashes. S_OK but not ok: taken, and unsafe */
    const char *rule;                   /* id of the rule that is broken first, "split/axis-sizes-sum"; NULL: none is. Static */
    const char *tensor;                 /* the operator's member that the fault lies in, "OutputTensors"; "": in none of the tensors */
    const char *member;                 /* what is at fault, "Sizes", or the operator's "Axis"; "": the tensor itself */
    uint64_t part;                      /* index into that array, or DMLSPLIT_WHOLE */
    uint32_t index;                     /* index into the member, or DMLSPLIT_NO_DIMENSION */
} dmlsplit_verdict;

/* target: a feature level as DML_FEATURE_LEVEL has it (0x3000 is 3_0): the documentation's tables and rules, and what every observed build
 * refuses. Or what dmlsplit_find_release found: what that build answers. DMLSPLIT_UNKNOWN_TARGET for other numbers. desc is read as DirectML
 * reads it: arrays hold as many entries as their counts say, null pointers are faults like any other. Nothing is allocated.
 * The rules are those of the Python package (docs/rules.md), which reports all faults, with values and reasons; what no C struct can say (an
 * array shorter than its count) is left out, and what is merely noteworthy. */
#define DMLSPLIT_RELEASE 0x80000000u
DMLSPLIT_API dmlsplit_status dmlsplit_validate_split(const DML_SPLIT_OPERATOR_DESC *desc, uint32_t target, dmlsplit_verdict *verdict);
DMLSPLIT_API dmlsplit_status dmlsplit_validate_join(const DML_JOIN_OPERATOR_DESC *desc, uint32_t target, dmlsplit_verdict *verdict);

/* A release by its DirectML version, "1.15.4", or the package that ships it, "torch-directml-0.2.5.dev240914"; 0: none is known by that name. */
DMLSPLIT_API uint32_t dmlsplit_find_release(const char *name);

/* OutputTensors[1].Sizes[2]: the place of a verdict's fault, "" where there is none. Same conventions as dmlsplit_plan_describe. */
DMLSPLIT_API size_t dmlsplit_verdict_path(const dmlsplit_verdict *verdict, char *buffer, size_t capacity);

#ifdef __cplusplus
}
#endif

#endif
