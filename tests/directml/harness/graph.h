// DML_GRAPH_DESC in words.
#pragma once

#include <cstdint>
#include <functional>

#include "com.h"
#include "guarded.h"
#include "wire.h"

namespace harness {

struct GraphNodeDesc {  // DML_GRAPH_NODE_DESC
    std::uint32_t type;
    const void* desc;
};

struct GraphEdgeDesc {  // DML_GRAPH_EDGE_DESC
    std::uint32_t type;
    const void* desc;
};

struct GraphDesc {  // DML_GRAPH_DESC
    std::uint32_t inputCount;
    std::uint32_t outputCount;
    std::uint32_t nodeCount;
    const GraphNodeDesc* nodes;
    std::uint32_t inputEdgeCount;
    const GraphEdgeDesc* inputEdges;
    std::uint32_t outputEdgeCount;
    const GraphEdgeDesc* outputEdges;
    std::uint32_t intermediateEdgeCount;
    const GraphEdgeDesc* intermediateEdges;
};

// Builds the graph that the words describe in `memory`; `operatorAt` finds an operator by its number.
//
//     graph := inputs outputs nodes edges edges edges      counts of graph inputs and outputs; the edges: input edges,
//     nodes := count operator ...                          output edges, intermediate edges
//     edges := count edge ...
//     edge  := number ...                                  the members, in the order of DirectML.h: 3, 3, 4
const GraphDesc* readGraph(Words& words, GuardedMemory& memory,
                           const std::function<Unknown*(std::uint32_t)>& operatorAt);

}  // namespace harness
