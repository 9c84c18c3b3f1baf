/* capture_graph.c - what tests/test_capture.py reads: a line for each graph below, in this order
 *
 * The same graphs stand in that test. Written as a program with DirectML.h writes it, and built without: as C99 to C++20, and among the
 * headers of Windows.
 */
#ifdef CAPTURE_AFTER_WINDOWS
#include <windows.h>
#endif
#ifdef CAPTURE_AFTER_DMLSPLIT
#include "dmlsplit_directml.h"
#endif
#include "dmlsplit_capture.h"
#ifdef CAPTURE_BEFORE_WINDOWS
#include <windows.h>
#endif

#define COUNT(array) (uint32_t)(sizeof(array) / sizeof(array)[0])
#define FLOAT32 DML_TENSOR_DATA_TYPE_FLOAT32
#define BUFFER DML_TENSOR_TYPE_BUFFER
#define NONE DML_TENSOR_FLAG_NONE

static const UINT whole_sizes[] = {1, 8, 1, 16}, half_sizes[] = {1, 4, 1, 16};
static const DML_BUFFER_TENSOR_DESC whole_desc = {FLOAT32, NONE, 4, whole_sizes, NULL, 512, 0};
static const DML_BUFFER_TENSOR_DESC half_desc = {FLOAT32, NONE, 4, half_sizes, NULL, 256, 0};
static const DML_TENSOR_DESC whole = {BUFFER, &whole_desc}, half = {BUFFER, &half_desc};
static const DML_TENSOR_DESC halves[] = {{BUFFER, &half_desc}, {BUFFER, &half_desc}};

static const DML_SPLIT_OPERATOR_DESC split = {&whole, 2, halves, 1};
static const DML_ACTIVATION_SIGMOID_OPERATOR_DESC sigmoid = {&half, &half};
static const DML_ELEMENT_WISE_MULTIPLY_OPERATOR_DESC multiply = {&half, &half, &half};
static const DML_ACTIVATION_LINEAR_OPERATOR_DESC linear = {&whole, &whole, 0.5f, -2.0f};
static const DML_SCALE_BIAS scale_bias = {2.0f, 1.0f};
static const DML_ELEMENT_WISE_IDENTITY_OPERATOR_DESC identity = {&whole, &whole, &scale_bias};
static const UINT offsets[] = {0, 4, 0, 0};
static const INT strides[] = {1, 1, 1, 1};
static const DML_SLICE1_OPERATOR_DESC slice = {&whole, &half, 4, offsets, half_sizes, strides};

static const DML_OPERATOR_DESC split_operator = {DML_OPERATOR_SPLIT, &split}, sigmoid_operator = {DML_OPERATOR_ACTIVATION_SIGMOID, &sigmoid};
static const DML_OPERATOR_DESC multiply_operator = {DML_OPERATOR_ELEMENT_WISE_MULTIPLY, &multiply};
static const DML_OPERATOR_DESC linear_operator = {DML_OPERATOR_ACTIVATION_LINEAR, &linear};
static const DML_OPERATOR_DESC identity_operator = {DML_OPERATOR_ELEMENT_WISE_IDENTITY, &identity};
static const DML_OPERATOR_DESC slice_operator = {DML_OPERATOR_SLICE1, &slice};
static const DML_OPERATOR_DESC other_operator = {(DML_OPERATOR_TYPE)999, "nothing of it is read"};

static const DML_OPERATOR_GRAPH_NODE_DESC node = {NULL, "node"};
static const DML_GRAPH_NODE_DESC nodes[] = {
    {DML_GRAPH_NODE_TYPE_OPERATOR, &node}, {DML_GRAPH_NODE_TYPE_OPERATOR, &node}, {DML_GRAPH_NODE_TYPE_OPERATOR, &node}};
static const DML_CONSTANT_DATA_GRAPH_NODE_DESC data = {half_sizes, sizeof half_sizes, NULL};
static const DML_GRAPH_NODE_DESC constant = {DML_GRAPH_NODE_TYPE_CONSTANT, &data};

static const DML_INPUT_GRAPH_EDGE_DESC to_first = {0, 0, 0, NULL};
static const DML_GRAPH_EDGE_DESC inputs[] = {{DML_GRAPH_EDGE_TYPE_INPUT, &to_first}};
static const DML_OUTPUT_GRAPH_EDGE_DESC from_third = {2, 0, 0, "product"}, from_first = {0, 0, 0, NULL};
static const DML_GRAPH_EDGE_DESC outputs[] = {{DML_GRAPH_EDGE_TYPE_OUTPUT, &from_third}};
static const DML_GRAPH_EDGE_DESC first_outputs[] = {{DML_GRAPH_EDGE_TYPE_OUTPUT, &from_first}};
static const DML_INTERMEDIATE_GRAPH_EDGE_DESC b = {0, 1, 1, 0, "b"}, a = {0, 0, 2, 0, NULL}, gate = {1, 0, 2, 1, NULL};
static const DML_GRAPH_EDGE_DESC wires[] = {{DML_GRAPH_EDGE_TYPE_INTERMEDIATE, &b},
                                            {DML_GRAPH_EDGE_TYPE_INTERMEDIATE, &a},
                                            {DML_GRAPH_EDGE_TYPE_INTERMEDIATE, &gate}};
static const DML_GRAPH_EDGE_DESC no_edge[] = {{DML_GRAPH_EDGE_TYPE_OUTPUT, &to_first}};

static const DML_GRAPH_DESC glu = {1, 1, 3, nodes, 1, inputs, 1, outputs, 3, wires};
static const DML_GRAPH_DESC one = {1, 1, 1, nodes, 1, inputs, 1, first_outputs, 0, NULL};
static const DML_GRAPH_DESC one_constant = {0, 1, 1, &constant, 0, NULL, 1, first_outputs, 0, NULL};
static const DML_GRAPH_DESC nothing = {0, 0, 0, NULL, 0, NULL, 0, NULL, 0, NULL};
static const DML_GRAPH_DESC garbage = {0xffffffffu, 0, 0xffffffffu, nodes, 0xffffffffu, inputs, 0, NULL, 0, NULL};
static const DML_GRAPH_DESC no_nodes = {1, 1, 3, NULL, 1, inputs, 1, outputs, 0, NULL};
static const DML_GRAPH_DESC no_inputs = {1, 1, 1, nodes, 1, NULL, 1, first_outputs, 0, NULL};
static const DML_GRAPH_DESC no_outputs = {1, 1, 1, nodes, 1, inputs, 1, NULL, 0, NULL};
static const DML_GRAPH_DESC no_wires = {1, 1, 3, nodes, 1, inputs, 1, outputs, 3, NULL};
static const DML_GRAPH_DESC wrong_edge = {1, 1, 1, nodes, 1, no_edge, 1, first_outputs, 0, NULL};

/* What stands for a device that takes the GLU's graph from this level on. */
static HRESULT compile(DML_FEATURE_LEVEL level)
{
    return level >= DML_FEATURE_LEVEL_2_1 ? 0 : -1;
}

static int written(const DML_GRAPH_DESC *graph, const DML_OPERATOR_DESC *first, FILE *unwritable)
{
    const DML_OPERATOR_DESC *descs[3];
    descs[0] = first;
    descs[1] = &sigmoid_operator;
    descs[2] = &multiply_operator;
    return dmlsplit_write_graph_json(stdout, graph, descs) == 0 && dmlsplit_write_graph_json(NULL, graph, descs) == -1 &&
           dmlsplit_write_graph_json(unwritable, graph, descs) == -2;
}

int main(int argc, char **argv)
{
    FILE *unwritable = argc == 2 ? fopen(argv[1], "rb") : NULL;
    if (unwritable == NULL)
        return 2;
    if (!written(&glu, &split_operator, unwritable) || !written(&one, &linear_operator, unwritable))
        return 3;
    if (!written(&one, &identity_operator, unwritable) || !written(&one, &slice_operator, unwritable))
        return 4;
    if (!written(&one, &other_operator, unwritable) || !written(&one, NULL, unwritable))
        return 5;
    if (!written(&one_constant, &sigmoid_operator, unwritable) || !written(&nothing, NULL, unwritable))
        return 6;
    if (!written(&garbage, &split_operator, unwritable) || !written(&wrong_edge, &linear_operator, unwritable))
        return 7;
    if (dmlsplit_write_graph_json(stdout, NULL, NULL) != 0 || dmlsplit_write_graph_json(stdout, &one, NULL) != 0)
        return 8;
    if (!written(&no_nodes, NULL, unwritable) || !written(&no_inputs, &linear_operator, unwritable))
        return 9;
    if (!written(&no_outputs, &linear_operator, unwritable) || !written(&no_wires, &split_operator, unwritable))
        return 10;
    fclose(unwritable);
    return compile(DML_FEATURE_LEVEL_2_0) < 0 && compile(DML_FEATURE_LEVEL_6_4) == 0 ? 0 : 11;
}
