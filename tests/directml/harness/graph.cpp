#include "graph.h"

namespace harness {
namespace {

struct OperatorNodeDesc {  // DML_OPERATOR_GRAPH_NODE_DESC
    Unknown* op;
    const char* name;
};

struct EdgeDesc {  // DML_INPUT_, DML_OUTPUT_ and DML_INTERMEDIATE_GRAPH_EDGE_DESC
    std::uint32_t numbers[4];
    const char* name;
};

enum EdgeType : std::uint32_t { inputEdge = 1, outputEdge = 2, intermediateEdge = 3 };  // DML_GRAPH_EDGE_TYPE

const GraphEdgeDesc* edges(Words& words, GuardedMemory& memory, EdgeType type, std::uint32_t& count) {
    count = words.uint();
    auto* all = memory.array<GraphEdgeDesc>(count);
    for (std::uint32_t i = 0; i < count; ++i) {
        auto* desc = memory.array<EdgeDesc>(1);
        *desc = {};
        const int members = type == intermediateEdge ? 4 : 3;
        for (int k = 0; k < members; ++k) desc->numbers[k] = words.uint();
        all[i] = {type, desc};
    }
    return all;
}

}  // namespace

// Three numbers and a pointer have the layout of four numbers and a pointer: the fourth is padding.
static_assert(sizeof(EdgeDesc) == 24);

const GraphDesc* readGraph(Words& words, GuardedMemory& memory,
                           const std::function<Unknown*(std::uint32_t)>& operatorAt) {
    constexpr std::uint32_t operatorNode = 1;  // DML_GRAPH_NODE_TYPE_OPERATOR
    auto* graph = memory.array<GraphDesc>(1);
    graph->inputCount = words.uint();
    graph->outputCount = words.uint();
    graph->nodeCount = words.uint();
    auto* nodes = memory.array<GraphNodeDesc>(graph->nodeCount);
    for (std::uint32_t i = 0; i < graph->nodeCount; ++i) {
        auto* desc = memory.array<OperatorNodeDesc>(1);
        *desc = {operatorAt(words.uint()), nullptr};
        nodes[i] = {operatorNode, desc};
    }
    graph->nodes = nodes;
    graph->inputEdges = edges(words, memory, inputEdge, graph->inputEdgeCount);
    graph->outputEdges = edges(words, memory, outputEdge, graph->outputEdgeCount);
    graph->intermediateEdges = edges(words, memory, intermediateEdge, graph->intermediateEdgeCount);
    return graph;
}

}  // namespace harness
