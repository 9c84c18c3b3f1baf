/* test_directml.c - from DirectML's descriptors to plans */
#include "check.h"
#include "dmlsplit_capture.h"
#include "dmlsplit_directml.h"
#include "dms_members.h"

#include <string.h>

enum { PARTS = 3 };

/* DirectML's documented example: {1, 1, 6, 2} into heights 2, 1, 3. Members are changed by the tests. */
typedef struct example {
    uint32_t sizes[PARTS + 1][4];
    uint32_t strides[4];
    DML_BUFFER_TENSOR_DESC buffers[PARTS + 1];  /* the last one is the whole */
    DML_TENSOR_DESC tensors[PARTS + 1];
    DML_SPLIT_OPERATOR_DESC split;
    DML_JOIN_OPERATOR_DESC join;
} example;

static void make(example *e)
{
    static const uint32_t heights[PARTS + 1] = {2, 1, 3, 6};
    memset(e, 0, sizeof *e);
    for (int i = 0; i <= PARTS; i++) {
        const uint32_t sizes[4] = {1, 1, heights[i], 2};
        memcpy(e->sizes[i], sizes, sizeof sizes);
        e->buffers[i].DataType = DML_TENSOR_DATA_TYPE_FLOAT32;
        e->buffers[i].DimensionCount = 4;
        e->buffers[i].Sizes = e->sizes[i];
        e->buffers[i].TotalTensorSizeInBytes = heights[i] * 2 * 4;
        e->tensors[i].Type = DML_TENSOR_TYPE_BUFFER;
        e->tensors[i].Desc = &e->buffers[i];
    }
    e->split.InputTensor = &e->tensors[PARTS];
    e->split.OutputCount = PARTS;
    e->split.OutputTensors = e->tensors;
    e->split.Axis = 2;
    e->join.InputCount = PARTS;
    e->join.InputTensors = e->tensors;
    e->join.OutputTensor = &e->tensors[PARTS];
    e->join.Axis = 2;
}

static void expect(const char *name, const example *e, dmlsplit_status expected, uint64_t part, uint32_t dimension)
{
    check_case = name;
    for (int join = 0; join < 2; join++) {
        dmlsplit_plan *plan = NULL;
        dmlsplit_fault fault = {7, 7};
        CHECK_EQUAL(join ? dmlsplit_plan_create_dml_join(&e->join, 0, &plan, &fault) : dmlsplit_plan_create_dml_split(&e->split, 0, &plan, &fault),
                    expected);
        CHECK((plan != NULL) == (expected == DMLSPLIT_OK));
        CHECK_EQUAL(fault.part, part);
        CHECK_EQUAL(fault.dimension, dimension);
        dmlsplit_plan_destroy(plan);
    }
}

#define WITH(change, status, ...)                                                                                       \
    do {                                                                                                                \
        example e;                                                                                                      \
        make(&e);                                                                                                       \
        change;                                                                                                         \
        expect(#change, &e, status, __VA_ARGS__);                                                                       \
    } while (0)
#define NOWHERE DMLSPLIT_WHOLE, DMLSPLIT_NO_DIMENSION
#define BOTH(member, value) (e.split.member = value, e.join.member = value)

static void descriptors(void)
{
    WITH((void)0, DMLSPLIT_OK, NOWHERE);
    WITH(e.buffers[3].Flags = DML_TENSOR_FLAG_OWNED_BY_DML, DMLSPLIT_OK, NOWHERE);
    WITH(e.buffers[3].TotalTensorSizeInBytes = 1000, DMLSPLIT_OK, NOWHERE);
    WITH((e.split.InputTensor = NULL, e.join.OutputTensor = NULL), DMLSPLIT_NULL_POINTER, NOWHERE);
    WITH((e.split.OutputTensors = NULL, e.join.InputTensors = NULL), DMLSPLIT_NULL_POINTER, NOWHERE);
    WITH((e.split.OutputCount = 0, e.join.InputCount = 0), DMLSPLIT_NO_PARTS, NOWHERE);
    WITH(BOTH(Axis, 4), DMLSPLIT_BAD_AXIS, NOWHERE);
    WITH(BOTH(Axis, 3), DMLSPLIT_LENGTH_SUM, DMLSPLIT_WHOLE, 3);
    WITH(BOTH(Axis, 0), DMLSPLIT_LENGTH_SUM, DMLSPLIT_WHOLE, 0);
    WITH((e.split.OutputCount = UINT32_MAX, e.join.InputCount = UINT32_MAX), DMLSPLIT_LENGTH_SUM, DMLSPLIT_WHOLE, 2);
    WITH((BOTH(Axis, 3), e.split.OutputCount = 1, e.join.InputCount = 1), DMLSPLIT_SIZE_MISMATCH, 0, 2);
    WITH((e.split.OutputCount = 2, e.join.InputCount = 2), DMLSPLIT_LENGTH_SUM, DMLSPLIT_WHOLE, 2);
    WITH(e.tensors[1].Type = DML_TENSOR_TYPE_INVALID, DMLSPLIT_BAD_TENSOR, 1, DMLSPLIT_NO_DIMENSION);
    WITH(e.tensors[3].Type = DML_TENSOR_TYPE_INVALID, DMLSPLIT_BAD_TENSOR, NOWHERE);
    WITH(e.tensors[1].Desc = NULL, DMLSPLIT_NULL_POINTER, 1, DMLSPLIT_NO_DIMENSION);
    WITH(e.buffers[2].Sizes = NULL, DMLSPLIT_NULL_POINTER, 2, DMLSPLIT_NO_DIMENSION);
    WITH(e.buffers[3].DataType = DML_TENSOR_DATA_TYPE_UNKNOWN, DMLSPLIT_BAD_DATA_TYPE, NOWHERE);
    WITH(e.buffers[3].DataType = DML_TENSOR_DATA_TYPE_UINT4, DMLSPLIT_BAD_DATA_TYPE, NOWHERE);
    WITH(e.buffers[0].DataType = DML_TENSOR_DATA_TYPE_INT4, DMLSPLIT_BAD_DATA_TYPE, 0, DMLSPLIT_NO_DIMENSION);
    WITH(e.buffers[1].DataType = DML_TENSOR_DATA_TYPE_INT32, DMLSPLIT_BAD_DATA_TYPE, 1, DMLSPLIT_NO_DIMENSION);
    WITH(e.buffers[3].DimensionCount = 0, DMLSPLIT_BAD_RANK, NOWHERE);
    WITH(e.buffers[3].DimensionCount = 9, DMLSPLIT_BAD_RANK, NOWHERE);
    WITH(e.buffers[1].DimensionCount = 3, DMLSPLIT_RANK_MISMATCH, 1, DMLSPLIT_NO_DIMENSION);
    WITH(e.sizes[2][3] = 3, DMLSPLIT_SIZE_MISMATCH, 2, 3);
    WITH(e.sizes[2][3] = 0, DMLSPLIT_ZERO_SIZE, 2, 3);
    WITH(e.sizes[3][2] = 0, DMLSPLIT_ZERO_SIZE, DMLSPLIT_WHOLE, 2);
    WITH(e.buffers[3].TotalTensorSizeInBytes--, DMLSPLIT_TOTAL_SIZE, NOWHERE);
    WITH(e.buffers[2].TotalTensorSizeInBytes--, DMLSPLIT_TOTAL_SIZE, 2, DMLSPLIT_NO_DIMENSION);
    WITH((memset(e.sizes[3], 0xff, sizeof e.sizes[3])), DMLSPLIT_OVERFLOW, DMLSPLIT_WHOLE, 2);
}

static void run_examples(void)
{
    static const float numbers[12] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};
    static const float padded[17] = {1, 2, -1, 3, 4, -1, 5, 6, -1, 7, 8, -1, 9, 10, -1, 11, 12};
    float a[4], b[2], c[6], back[12];
    void *parts[] = {a, b, c};
    const void *sources[] = {a, b, c};
    example e;
    dmlsplit_plan *plan = NULL;
    check_case = "documented example";
    make(&e);
    for (int strided = 0; strided < 2; strided++) {
        if (strided) {                  /* 2 elements every 3 */
            e.strides[0] = e.strides[1] = 0;
            e.strides[2] = 3;
            e.strides[3] = 1;
            e.buffers[PARTS].Strides = e.strides;
            e.buffers[PARTS].TotalTensorSizeInBytes = sizeof padded;
        }
        memset(a, 0, sizeof a), memset(b, 0, sizeof b), memset(c, 0, sizeof c);
        const DML_OPERATOR_DESC op = {DML_OPERATOR_SPLIT, &e.split};
        CHECK_EQUAL(dmlsplit_plan_create_dml(&op, 0, &plan, NULL), DMLSPLIT_OK);
        CHECK_EQUAL(dmlsplit_split(plan, strided ? padded : numbers, parts), DMLSPLIT_OK);
        CHECK(memcmp(a, numbers, sizeof a) == 0 && memcmp(b, numbers + 4, sizeof b) == 0 && memcmp(c, numbers + 6, sizeof c) == 0);
        dmlsplit_plan_destroy(plan);
    }
    make(&e);
    const DML_OPERATOR_DESC op = {DML_OPERATOR_JOIN, &e.join};
    CHECK_EQUAL(dmlsplit_plan_create_dml(&op, 0, &plan, NULL), DMLSPLIT_OK);
    CHECK_EQUAL(dmlsplit_join(plan, sources, back), DMLSPLIT_OK);
    CHECK(memcmp(back, numbers, sizeof back) == 0);
    dmlsplit_plan_destroy(plan);
}

/* Outputs with a stride of 0 are refused as elsewhere, and allowed on request. */
static void flags(void)
{
    example e;
    dmlsplit_plan *plan;
    dmlsplit_fault fault;
    check_case = "overlap";
    make(&e);
    e.buffers[2].Strides = e.strides;
    CHECK_EQUAL(dmlsplit_plan_create_dml_split(&e.split, 0, &plan, &fault), DMLSPLIT_OUTPUT_OVERLAP);
    CHECK_EQUAL(fault.part, 2);
    CHECK_EQUAL(dmlsplit_plan_create_dml_join(&e.join, 0, &plan, NULL), DMLSPLIT_OK);
    dmlsplit_plan_destroy(plan);
    CHECK_EQUAL(dmlsplit_plan_create_dml_split(&e.split, DMLSPLIT_OVERLAP_ALLOWED, &plan, NULL), DMLSPLIT_OK);
    dmlsplit_plan_destroy(plan);
    CHECK_EQUAL(dmlsplit_plan_create_dml_split(&e.split, 2, &plan, NULL), DMLSPLIT_BAD_FLAGS);
}

static void nulls(void)
{
    example e;
    dmlsplit_plan *plan;
    DML_OPERATOR_DESC op = {DML_OPERATOR_INVALID, NULL};
    check_case = "NULL";
    make(&e);
    CHECK_EQUAL(dmlsplit_plan_create_dml_split(NULL, 0, &plan, NULL), DMLSPLIT_NULL_POINTER);
    CHECK(plan == NULL);
    CHECK_EQUAL(dmlsplit_plan_create_dml_join(NULL, 0, &plan, NULL), DMLSPLIT_NULL_POINTER);
    CHECK_EQUAL(dmlsplit_plan_create_dml_split(&e.split, 0, NULL, NULL), DMLSPLIT_NULL_POINTER);
    CHECK_EQUAL(dmlsplit_plan_create_dml(NULL, 0, &plan, NULL), DMLSPLIT_NULL_POINTER);
    CHECK_EQUAL(dmlsplit_plan_create_dml(&op, 0, &plan, NULL), DMLSPLIT_BAD_DIRECTION);
    CHECK_EQUAL(dmlsplit_plan_create_dml(&op, 0, NULL, NULL), DMLSPLIT_NULL_POINTER);
    op.Type = DML_OPERATOR_SPLIT;
    CHECK_EQUAL(dmlsplit_plan_create_dml(&op, 0, &plan, NULL), DMLSPLIT_NULL_POINTER);
}

#define UP_TO_ITS_END(desc, last) (offsetof(desc, last) + sizeof ((desc *)0)->last)

/* The bytes of a struct are those that the compiler gives it, up to the end of its last member. */
static void sizes_of_structs(void)
{
    static const struct {
        uint32_t type;
        size_t bytes;
    } structs[] = {
        {DML_OPERATOR_SPLIT, UP_TO_ITS_END(DML_SPLIT_OPERATOR_DESC, Axis)},
        {DML_OPERATOR_JOIN, UP_TO_ITS_END(DML_JOIN_OPERATOR_DESC, Axis)},
        {DML_OPERATOR_GEMM, UP_TO_ITS_END(DML_GEMM_OPERATOR_DESC, FusedActivation)},
        {DML_OPERATOR_UPSAMPLE_2D, UP_TO_ITS_END(DML_UPSAMPLE_2D_OPERATOR_DESC, InterpolationMode)},
        {DML_OPERATOR_FILL_VALUE_CONSTANT, UP_TO_ITS_END(DML_FILL_VALUE_CONSTANT_OPERATOR_DESC, Value)},
    };
    check_case = "sizes of structs";
    for (size_t i = 0; i < sizeof structs / sizeof structs[0]; i++)
        CHECK_EQUAL(dms_struct_bytes(dms_find_operator(structs[i].type)), structs[i].bytes);
}

int main(void)
{
    sizes_of_structs();
    descriptors();
    run_examples();
    flags();
    nulls();
    return check_report();
}
