/* test_verdict.c - the verdict's interface; that it is the registry's is tested in Python, descriptor by descriptor */
#include "check.h"
#include "dmlsplit_directml.h"

#include <string.h>

static const uint32_t sizes[] = {1, 1, 6, 2}, top[] = {1, 1, 2, 2}, rest[] = {1, 1, 4, 2};
static const uint32_t far[] = {UINT32_MAX, UINT32_MAX, UINT32_MAX, 3};
static DML_BUFFER_TENSOR_DESC x = {DML_TENSOR_DATA_TYPE_FLOAT32, DML_TENSOR_FLAG_NONE, 4, sizes, NULL, 48, 0};
static DML_BUFFER_TENSOR_DESC a = {DML_TENSOR_DATA_TYPE_FLOAT32, DML_TENSOR_FLAG_NONE, 4, top, NULL, 16, 0};
static DML_BUFFER_TENSOR_DESC b = {DML_TENSOR_DATA_TYPE_FLOAT32, DML_TENSOR_FLAG_NONE, 4, rest, NULL, 32, 0};

static void verdicts(void)
{
    const DML_TENSOR_DESC whole = {DML_TENSOR_TYPE_BUFFER, &x};
    const DML_TENSOR_DESC parts[] = {{DML_TENSOR_TYPE_BUFFER, &a}, {DML_TENSOR_TYPE_BUFFER, &b}};
    DML_SPLIT_OPERATOR_DESC split = {&whole, 2, parts, 2};
    const DML_JOIN_OPERATOR_DESC join = {2, parts, &whole, 2};
    const uint32_t newest = dmlsplit_find_release("1.15.4");
    dmlsplit_verdict v = {0};
    char path[64];

    check_case = "statuses";
    CHECK_EQUAL(dmlsplit_validate_split(&split, 0x3000, &v), DMLSPLIT_BAD_STRUCT_SIZE);
    v.struct_size = sizeof v;
    CHECK_EQUAL(dmlsplit_validate_split(NULL, 0x3000, &v), DMLSPLIT_NULL_POINTER);
    CHECK_EQUAL(dmlsplit_validate_join(&join, 0x3000, NULL), DMLSPLIT_NULL_POINTER);
    CHECK_EQUAL(dmlsplit_validate_split(&split, 0x3001, &v), DMLSPLIT_UNKNOWN_TARGET);
    CHECK_EQUAL(dmlsplit_validate_split(&split, DMLSPLIT_RELEASE, &v), DMLSPLIT_UNKNOWN_TARGET);       /* the first are levels */
    CHECK_EQUAL(dmlsplit_validate_split(&split, UINT32_MAX, &v), DMLSPLIT_UNKNOWN_TARGET);
    CHECK_EQUAL(dmlsplit_find_release("none such"), 0);
    CHECK_EQUAL(dmlsplit_find_release(NULL), 0);

    check_case = "right";
    CHECK_EQUAL(dmlsplit_validate_split(&split, 0x1000, &v), DMLSPLIT_OK);
    CHECK(v.ok && v.rule == NULL && v.hresult == 0 && !v.crashes);
    CHECK_EQUAL(dmlsplit_verdict_path(&v, path, sizeof path), 0);
    CHECK_EQUAL(dmlsplit_validate_join(&join, newest, &v), DMLSPLIT_OK);
    CHECK(v.ok);

    check_case = "no verdict";
    const dmlsplit_verdict none = {0};
    for (int is_null = 0; is_null < 2; is_null++) {
        path[0] = 'x';
        CHECK_EQUAL(dmlsplit_verdict_path(is_null ? NULL : &none, path, sizeof path), 0);
        CHECK_EQUAL(path[0], 0);
    }

    check_case = "wrong";
    b.TotalTensorSizeInBytes = 31;
    CHECK_EQUAL(dmlsplit_validate_split(&split, newest, &v), DMLSPLIT_OK);
    CHECK(!v.ok && v.hresult == 0x80070057u && strcmp(v.rule, "tensor/total-size-too-small") == 0 && v.part == 1);
    CHECK_EQUAL(dmlsplit_verdict_path(&v, path, sizeof path), strlen("OutputTensors[1].TotalTensorSizeInBytes"));
    CHECK(strcmp(path, "OutputTensors[1].TotalTensorSizeInBytes") == 0);
    v.struct_size = sizeof v.struct_size;       /* the other members may not be there */
    CHECK_EQUAL(dmlsplit_verdict_path(&v, path, sizeof path), 0);
    CHECK_EQUAL(path[0], 0);
    v.struct_size = sizeof v;
    b.TotalTensorSizeInBytes = 32;
    split.Axis = 4;
    CHECK_EQUAL(dmlsplit_validate_split(&split, 0x6400, &v), DMLSPLIT_OK);
    dmlsplit_verdict_path(&v, path, sizeof path);
    CHECK(strcmp(v.rule, "split/axis-out-of-range") == 0 && strcmp(path, "Axis") == 0);

    check_case = "counts beyond all arrays";
    split.OutputCount = UINT32_MAX;
    split.OutputTensors = NULL;
    split.Axis = 2;
    CHECK_EQUAL(dmlsplit_validate_split(&split, 0x6400, &v), DMLSPLIT_OK);
    CHECK(strcmp(v.rule, "split/outputs-null") == 0 && v.hresult == 0x80070057u);
    CHECK_EQUAL(dmlsplit_validate_split(&split, dmlsplit_find_release("1.0.200610"), &v), DMLSPLIT_OK);
    CHECK(!v.ok && v.crashes && strcmp(v.rule, "split/crash") == 0);    /* it reads sizes before it asks */

    check_case = "strides of any kind";
    b.Strides = far;                    /* elements lie where 32 bits cannot count */
    CHECK_EQUAL(dmlsplit_validate_join(&join, 0x6400, &v), DMLSPLIT_OK);
    dmlsplit_verdict_path(&v, path, sizeof path);
    CHECK(strcmp(v.rule, "tensor/total-size-too-small") == 0 && strcmp(path, "InputTensors[1].TotalTensorSizeInBytes") == 0);
    b.Strides = NULL;

    check_case = "crash";
    split.InputTensor = NULL;
    CHECK_EQUAL(dmlsplit_validate_split(&split, newest, &v), DMLSPLIT_OK);
    dmlsplit_verdict_path(&v, path, sizeof path);
    CHECK(v.crashes && strcmp(v.rule, "split/crash") == 0 && strcmp(path, "InputTensor") == 0);

    check_case = "summaries";
    CHECK(strcmp(dmlsplit_rule_summary("join/inputs-null"), "InputTensors is a null pointer.") == 0);
    CHECK(dmlsplit_rule_summary(v.rule) != NULL && dmlsplit_rule_summary(NULL) == NULL && dmlsplit_rule_summary("join/inputs") == NULL);

    check_case = "a tensor as a whole, and a member of the operator";
    CHECK_EQUAL(dmlsplit_validate_split(&split, 0x6400, &v), DMLSPLIT_OK);
    CHECK(strcmp(v.rule, "tensor/null") == 0 && strcmp(v.tensor, "InputTensor") == 0 && v.member[0] == 0 && v.part == DMLSPLIT_WHOLE);
    split.InputTensor = &whole;
    CHECK_EQUAL(dmlsplit_validate_split(&split, 0x6400, &v), DMLSPLIT_OK);
    CHECK(strcmp(v.rule, "split/outputs-null") == 0 && v.tensor[0] == 0 && strcmp(v.member, "OutputTensors") == 0);
    const DML_JOIN_OPERATOR_DESC into_nothing = {2, parts, NULL, 2};
    CHECK_EQUAL(dmlsplit_validate_join(&into_nothing, 0x6400, &v), DMLSPLIT_OK);
    CHECK(strcmp(v.rule, "tensor/null") == 0 && strcmp(v.tensor, "OutputTensor") == 0 && v.member[0] == 0);
}

/* The difference of two of its places takes more than 64 bits. */
static void far_places(void)
{
    static const uint32_t places[] = {1, 1, 1u << 30, 3}, apart[] = {0, 0, 4294967294u, 2147483647u};
    const DML_BUFFER_TENSOR_DESC in = {DML_TENSOR_DATA_TYPE_UINT8, DML_TENSOR_FLAG_NONE, 4, places, NULL, 3221225472u, 0};
    DML_BUFFER_TENSOR_DESC out = in;
    out.Strides = apart;
    const DML_TENSOR_DESC input = {DML_TENSOR_TYPE_BUFFER, &in}, output = {DML_TENSOR_TYPE_BUFFER, &out};
    const DML_SPLIT_OPERATOR_DESC split = {&input, 1, &output, 3};
    dmlsplit_verdict v = {0};
    char path[64];
    check_case = "far places";
    v.struct_size = sizeof v;
    CHECK_EQUAL(dmlsplit_validate_split(&split, dmlsplit_find_release("1.15.4"), &v), DMLSPLIT_OK);
    dmlsplit_verdict_path(&v, path, sizeof path);
    CHECK(!v.ok && strcmp(v.rule, "tensor/output-elements-overlap") == 0 && strcmp(path, "OutputTensors[0].Strides") == 0);
}

static void sizes_of_structs(void)
{
    const DML_TENSOR_DESC whole = {DML_TENSOR_TYPE_BUFFER, &x}, part = {DML_TENSOR_TYPE_BUFFER, &x};
    const DML_SPLIT_OPERATOR_DESC split = {&whole, 1, &part, 2};
    struct {
        dmlsplit_verdict known;
        uint64_t unknown;
    } later;
    check_case = "sizes of structs";
    memset(&later, 0xff, sizeof later);
    later.known.struct_size = sizeof later;
    CHECK_EQUAL(dmlsplit_validate_split(&split, 0x3000, &later.known), DMLSPLIT_OK);
    CHECK(later.known.ok == 1 && later.known.struct_size == sizeof later && later.unknown == UINT64_MAX);
    later.known.struct_size = offsetof(dmlsplit_verdict, index);
    CHECK_EQUAL(dmlsplit_validate_split(&split, 0x3000, &later.known), DMLSPLIT_BAD_STRUCT_SIZE);
}

int main(void)
{
    far_places();
    sizes_of_structs();
    verdicts();
    return check_report();
}
