/* directml_first.cpp - dmlsplit_capture.h and dmlsplit_directml.h after a DirectML.h
 *
 * What stands here for Microsoft's header is as that is: C++ only, no typedefs, UINT and UINT64 from windows.h, its include guard and the macro
 * that it defines along with its types. Built and linked with the core, whose own declarations must then match these.
 */
#include <stdint.h>

typedef unsigned int UINT;
typedef unsigned long long UINT64;

#define DIRECTML_H
#define DML_DECLARE_INTERFACE(iid)

enum DML_TENSOR_DATA_TYPE { DML_TENSOR_DATA_TYPE_UNKNOWN, DML_TENSOR_DATA_TYPE_FLOAT32 };
enum DML_TENSOR_TYPE { DML_TENSOR_TYPE_INVALID, DML_TENSOR_TYPE_BUFFER };
enum DML_TENSOR_FLAGS { DML_TENSOR_FLAG_NONE = 0x0, DML_TENSOR_FLAG_OWNED_BY_DML = 0x1 };
enum DML_OPERATOR_TYPE { DML_OPERATOR_INVALID, DML_OPERATOR_SPLIT = 62, DML_OPERATOR_JOIN };

struct DML_BUFFER_TENSOR_DESC {
    DML_TENSOR_DATA_TYPE DataType;
    DML_TENSOR_FLAGS Flags;
    UINT DimensionCount;
    const UINT *Sizes;
    const UINT *Strides;
    UINT64 TotalTensorSizeInBytes;
    UINT GuaranteedBaseOffsetAlignment;
};

struct DML_TENSOR_DESC {
    DML_TENSOR_TYPE Type;
    const void *Desc;
};

struct DML_OPERATOR_DESC {
    DML_OPERATOR_TYPE Type;
    const void *Desc;
};

struct DML_SPLIT_OPERATOR_DESC {
    const DML_TENSOR_DESC *InputTensor;
    UINT OutputCount;
    const DML_TENSOR_DESC *OutputTensors;
    UINT Axis;
};

struct DML_JOIN_OPERATOR_DESC {
    UINT InputCount;
    const DML_TENSOR_DESC *InputTensors;
    const DML_TENSOR_DESC *OutputTensor;
    UINT Axis;
};

#if !defined(DML_TARGET_VERSION) || DML_TARGET_VERSION >= 0x2100
enum DML_GRAPH_EDGE_TYPE {
    DML_GRAPH_EDGE_TYPE_INVALID = 0,
    DML_GRAPH_EDGE_TYPE_INPUT = 1,
    DML_GRAPH_EDGE_TYPE_OUTPUT = 2,
    DML_GRAPH_EDGE_TYPE_INTERMEDIATE = 3
};

struct DML_GRAPH_EDGE_DESC {
    DML_GRAPH_EDGE_TYPE Type;
    const void *Desc;
};

struct DML_INPUT_GRAPH_EDGE_DESC {
    UINT GraphInputIndex;
    UINT ToNodeIndex;
    UINT ToNodeInputIndex;
    const char *Name;
};

struct DML_OUTPUT_GRAPH_EDGE_DESC {
    UINT FromNodeIndex;
    UINT FromNodeOutputIndex;
    UINT GraphOutputIndex;
    const char *Name;
};

struct DML_INTERMEDIATE_GRAPH_EDGE_DESC {
    UINT FromNodeIndex;
    UINT FromNodeOutputIndex;
    UINT ToNodeIndex;
    UINT ToNodeInputIndex;
    const char *Name;
};

enum DML_GRAPH_NODE_TYPE {
    DML_GRAPH_NODE_TYPE_INVALID = 0,
    DML_GRAPH_NODE_TYPE_OPERATOR = 1,
    DML_GRAPH_NODE_TYPE_CONSTANT = 2
};

struct DML_GRAPH_NODE_DESC {
    DML_GRAPH_NODE_TYPE Type;
    const void *Desc;
};

struct DML_GRAPH_DESC {
    UINT InputCount;
    UINT OutputCount;
    UINT NodeCount;
    const DML_GRAPH_NODE_DESC *Nodes;
    UINT InputEdgeCount;
    const DML_GRAPH_EDGE_DESC *InputEdges;
    UINT OutputEdgeCount;
    const DML_GRAPH_EDGE_DESC *OutputEdges;
    UINT IntermediateEdgeCount;
    const DML_GRAPH_EDGE_DESC *IntermediateEdges;
};
#endif

#include "dmlsplit_capture.h"
#include "dmlsplit_directml.h"

int main()
{
    const UINT sizes[] = {3}, part_sizes[] = {1}, rest_sizes[] = {2};
    const DML_BUFFER_TENSOR_DESC whole = {DML_TENSOR_DATA_TYPE_FLOAT32, DML_TENSOR_FLAG_NONE, 1, sizes, nullptr, 12, 0};
    const DML_BUFFER_TENSOR_DESC part = {DML_TENSOR_DATA_TYPE_FLOAT32, DML_TENSOR_FLAG_NONE, 1, part_sizes, nullptr, 4, 0};
    const DML_BUFFER_TENSOR_DESC rest = {DML_TENSOR_DATA_TYPE_FLOAT32, DML_TENSOR_FLAG_NONE, 1, rest_sizes, nullptr, 8, 0};
    const DML_TENSOR_DESC input = {DML_TENSOR_TYPE_BUFFER, &whole};
    const DML_TENSOR_DESC outputs[] = {{DML_TENSOR_TYPE_BUFFER, &part}, {DML_TENSOR_TYPE_BUFFER, &rest}};
    const DML_SPLIT_OPERATOR_DESC desc = {&input, 2, outputs, 0};
    const float numbers[] = {1, 2, 3};
    float first[1], second[2];
    void *parts[] = {first, second};
    dmlsplit_plan *plan = nullptr;
    if (dmlsplit_plan_create_dml_split(&desc, 0, &plan, nullptr) != DMLSPLIT_OK)
        return 1;
    const bool copied = dmlsplit_split(plan, numbers, parts) == DMLSPLIT_OK && first[0] == 1 && second[0] == 2 && second[1] == 3;
    dmlsplit_plan_destroy(plan);

    const DML_SPLIT_OPERATOR_DESC faulty = {&input, 0, nullptr, 0};
    const DML_OPERATOR_DESC op = {DML_OPERATOR_SPLIT, &faulty};
    return copied && dmlsplit_write_json(stdout, &op) == 0 ? 0 : 1;
}
