/* capture.c - what tests/test_capture.py reads: a line for each descriptor below, good and faulty, in this order
 *
 * The same descriptors stand in that test. Built as C99 and as C++11. No array is longer than its count says, so that a sanitizer sees
 * any entry read beyond it. The argument is a file that exists.
 */
#ifdef CAPTURE_AFTER_DMLSPLIT
#include "dmlsplit_directml.h"
#endif
#include "dmlsplit_capture.h"

#define MOST_DIMENSIONS 64u             /* limits of the header */
#define MOST_TENSORS 1048576u

#define COUNT(array) (sizeof(array) / sizeof(array)[0])
#define HUGE_UINT 0xffffffffu
#define HUGE_UINT64 0xffffffffffffffffull
#define FLOAT32 DML_TENSOR_DATA_TYPE_FLOAT32
#define BUFFER DML_TENSOR_TYPE_BUFFER
#define NONE DML_TENSOR_FLAG_NONE

static const uint32_t whole_sizes[] = {1, 1, 6, 2}, whole_strides[] = {12, 12, 2, 1};
static const uint32_t sizes_2[] = {1, 1, 2, 2}, sizes_1[] = {1, 1, 1, 2}, sizes_3[] = {1, 1, 3, 2};
static const uint32_t padded[] = {HUGE_UINT, 0, 16, 1};

static const DML_BUFFER_TENSOR_DESC whole = {FLOAT32, DML_TENSOR_FLAG_OWNED_BY_DML, 4, whole_sizes, whole_strides, 48, 256};
static const DML_BUFFER_TENSOR_DESC plain = {FLOAT32, NONE, 4, whole_sizes, NULL, 48, 0};
static const DML_BUFFER_TENSOR_DESC part_2 = {FLOAT32, NONE, 4, sizes_2, padded, 72, 16};
static const DML_BUFFER_TENSOR_DESC part_1 = {FLOAT32, NONE, 4, sizes_1, NULL, 8, 0};
static const DML_BUFFER_TENSOR_DESC part_3 = {FLOAT32, NONE, 4, sizes_3, NULL, 24, 0};
static const DML_TENSOR_DESC whole_tensor = {BUFFER, &whole}, plain_tensor = {BUFFER, &plain}, no_desc = {BUFFER, NULL};
static const DML_TENSOR_DESC parts[] = {{BUFFER, &part_2}, {BUFFER, &part_1}, {BUFFER, &part_3}};
static const DML_TENSOR_DESC parts_without_desc[] = {{BUFFER, &part_2}, {BUFFER, NULL}, {BUFFER, &part_3}};

/* One size for each dimension up to the limit, and every other member as large as its type allows. */
static const uint32_t most_sizes[MOST_DIMENSIONS] = {HUGE_UINT, 0, 0x80000000u};
static const DML_BUFFER_TENSOR_DESC extreme = {
    (DML_TENSOR_DATA_TYPE)HUGE_UINT, (DML_TENSOR_FLAGS)HUGE_UINT, MOST_DIMENSIONS, most_sizes, most_sizes,
    HUGE_UINT64, HUGE_UINT};
static const DML_TENSOR_DESC extreme_tensor = {(DML_TENSOR_TYPE)HUGE_UINT, &extreme};

static const DML_BUFFER_TENSOR_DESC no_sizes = {FLOAT32, NONE, 4, NULL, NULL, 48, 0};
static const DML_BUFFER_TENSOR_DESC no_dimensions = {FLOAT32, NONE, 0, whole_sizes, whole_strides, 48, 0};
static const DML_BUFFER_TENSOR_DESC many_dimensions = {FLOAT32, NONE, MOST_DIMENSIONS + 1, whole_sizes, NULL, 48, 0};
static const DML_BUFFER_TENSOR_DESC garbage_dimensions = {FLOAT32, NONE, HUGE_UINT, whole_sizes, whole_strides, 48, 0};
static const DML_BUFFER_TENSOR_DESC beyond_64_bits = {DML_TENSOR_DATA_TYPE_INT64, NONE, 3, most_sizes, most_sizes, 9007199254740993ull, 0};
static const DML_TENSOR_DESC no_sizes_tensor = {BUFFER, &no_sizes}, no_dimensions_tensor = {BUFFER, &no_dimensions};
static const DML_TENSOR_DESC many_dimensions_tensor = {BUFFER, &many_dimensions}, garbage_tensor = {BUFFER, &garbage_dimensions};
static const DML_TENSOR_DESC invalid_tensor = {DML_TENSOR_TYPE_INVALID, &beyond_64_bits};

static const DML_SPLIT_OPERATOR_DESC good = {&whole_tensor, 3, parts, 2};
static const DML_SPLIT_OPERATOR_DESC extreme_split = {&extreme_tensor, 1, &extreme_tensor, HUGE_UINT};
static const DML_SPLIT_OPERATOR_DESC no_input = {NULL, 3, parts, 2};
static const DML_SPLIT_OPERATOR_DESC no_input_desc = {&no_desc, 3, parts, 2};
static const DML_SPLIT_OPERATOR_DESC no_outputs = {&plain_tensor, 3, NULL, 2};
static const DML_SPLIT_OPERATOR_DESC no_output_desc = {&plain_tensor, 3, parts_without_desc, 2};
static const DML_SPLIT_OPERATOR_DESC input_without_sizes = {&no_sizes_tensor, 3, parts, 2};
static const DML_SPLIT_OPERATOR_DESC input_without_dimensions = {&no_dimensions_tensor, 3, parts, 2};
static const DML_SPLIT_OPERATOR_DESC input_of_many_dimensions = {&many_dimensions_tensor, 3, parts, 2};
static const DML_SPLIT_OPERATOR_DESC input_of_garbage = {&garbage_tensor, 3, parts, 2};
static const DML_SPLIT_OPERATOR_DESC invalid_input = {&invalid_tensor, 3, parts, 2};
static const DML_SPLIT_OPERATOR_DESC count_0 = {&plain_tensor, 0, parts, 2};
static const DML_SPLIT_OPERATOR_DESC count_above_limit = {&plain_tensor, MOST_TENSORS + 1, parts, 2};
static const DML_SPLIT_OPERATOR_DESC count_garbage = {&plain_tensor, HUGE_UINT, parts, 2};
static const DML_SPLIT_OPERATOR_DESC zeroed = {NULL, 0, NULL, 0};

static const DML_JOIN_OPERATOR_DESC good_join = {3, parts, &plain_tensor, 2};
static const DML_JOIN_OPERATOR_DESC join_of_nulls = {2, NULL, NULL, 0};
static const DML_JOIN_OPERATOR_DESC join_without_descs = {3, parts_without_desc, &no_desc, 2};
static const DML_JOIN_OPERATOR_DESC join_count_garbage = {HUGE_UINT, parts, &plain_tensor, 2};

static const DML_OPERATOR_DESC operators[] = {
    {DML_OPERATOR_SPLIT, &good},
    {DML_OPERATOR_SPLIT, &extreme_split},
    {DML_OPERATOR_SPLIT, &no_input},
    {DML_OPERATOR_SPLIT, &no_input_desc},
    {DML_OPERATOR_SPLIT, &no_outputs},
    {DML_OPERATOR_SPLIT, &no_output_desc},
    {DML_OPERATOR_SPLIT, &input_without_sizes},
    {DML_OPERATOR_SPLIT, &input_without_dimensions},
    {DML_OPERATOR_SPLIT, &input_of_many_dimensions},
    {DML_OPERATOR_SPLIT, &input_of_garbage},
    {DML_OPERATOR_SPLIT, &invalid_input},
    {DML_OPERATOR_SPLIT, &count_0},
    {DML_OPERATOR_SPLIT, &count_above_limit},
    {DML_OPERATOR_SPLIT, &count_garbage},
    {DML_OPERATOR_SPLIT, &zeroed},
    {DML_OPERATOR_JOIN, &good_join},
    {DML_OPERATOR_JOIN, &join_of_nulls},
    {DML_OPERATOR_JOIN, &join_without_descs},
    {DML_OPERATOR_JOIN, &join_count_garbage},
    /* No operator: nothing behind Desc is read. */
    {(DML_OPERATOR_TYPE)999, "x"},
    {(DML_OPERATOR_TYPE)HUGE_UINT, NULL},
    /* Malformed: no descriptor at all. */
    {DML_OPERATOR_SPLIT, NULL},
    {DML_OPERATOR_JOIN, NULL},
};

/* At most so many characters. */
static size_t at_most(const char *text, size_t length, void *to)
{
    size_t *left = (size_t *)to;
    const size_t taken = length < *left ? length : *left;
    (void)text;
    *left -= taken;
    return taken;
}

static int through_a_sink(const DML_OPERATOR_DESC *desc)
{
    size_t enough = (size_t)1 << 30, few = 3;
    return dmlsplit_capture_operator(desc, at_most, &enough) == 0 && enough < (size_t)1 << 30 && dmlsplit_capture_operator(desc, NULL, NULL) == -1 &&
           dmlsplit_capture_operator(desc, at_most, &few) == -2 && few == 0;
}

/* Each count of a graph up to the limit is taken; of a larger one nothing is read. */
static int counts_of_a_graph(void)
{
    static const char above[] = "{\"Type\": \"DML_GRAPH\", \"Desc\": null}";
    DML_GRAPH_DESC graph = {0, 0, 0, NULL, 0, NULL, 0, NULL, 0, NULL};
    uint32_t *counts[6];
    size_t i;
    counts[0] = &graph.InputCount;
    counts[1] = &graph.OutputCount;
    counts[2] = &graph.NodeCount;
    counts[3] = &graph.InputEdgeCount;
    counts[4] = &graph.OutputEdgeCount;
    counts[5] = &graph.IntermediateEdgeCount;
    for (i = 0; i < COUNT(counts); i++) {
        size_t most = (size_t)1 << 30, more = (size_t)1 << 30;
        *counts[i] = MOST_TENSORS;
        if (dmlsplit_capture_graph(&graph, NULL, at_most, &most) != 0)
            return 0;
        *counts[i] = MOST_TENSORS + 1;
        if (dmlsplit_capture_graph(&graph, NULL, at_most, &more) != 0)
            return 0;
        *counts[i] = 0;
        if (((size_t)1 << 30) - most < 2 * sizeof above || ((size_t)1 << 30) - more != sizeof above - 1)
            return 0;
    }
    return dmlsplit_capture_graph(&graph, NULL, NULL, NULL) == -1;
}

int main(int argc, char **argv)
{
    size_t i;
    FILE *unwritable = argc == 2 ? fopen(argv[1], "rb") : NULL;
    if (unwritable == NULL)
        return 2;
    for (i = 0; i < COUNT(operators); i++) {
        if (dmlsplit_write_json(stdout, &operators[i]) != 0)
            return 3;
        if (dmlsplit_write_json(NULL, &operators[i]) != -1)
            return 4;
        if (dmlsplit_write_json(unwritable, &operators[i]) != -2)
            return 5;
        if (!through_a_sink(&operators[i]))
            return 7;
    }
    if (dmlsplit_write_json(stdout, NULL) != 0 || dmlsplit_write_json(unwritable, NULL) != -2)
        return 6;
    fclose(unwritable);
    if (!counts_of_a_graph())
        return 8;
    return 0;
}
