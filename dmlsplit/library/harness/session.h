// A DirectML program in words, executed on a device of its own: for the calls that follow CreateOperator.
#pragma once

#include <string>

#include "library.h"
#include "wire.h"

namespace harness {

// Executes the steps and answers each with one word. What a step makes gets the next number, from 0; a step that uses
// an object which the library did not make is answered "skipped".
//
//     session   := step { ";" step }
//     step      := "levels" count level ...           CheckFeatureSupport(FEATURE_LEVELS): HRESULT,level
//                | "type" type                        CheckFeatureSupport(TENSOR_DATA_TYPE_SUPPORT): HRESULT,supported
//                | "buffer" bytes                     makes an ID3D12Resource
//                | "operator" operator                CreateOperator, makes an operator: HRESULT
//                | "compile" operator flags           CompileOperator, makes a dispatchable: HRESULT
//                | "graph" graph flags                CompileGraph (graph.h), makes a dispatchable: HRESULT
//                | "initializer" count compiled ...   CreateOperatorInitializer, makes a dispatchable: HRESULT
//                | "properties" dispatchable          descriptors,temporary,persistent
//                | "table" dispatchable descriptors   CreateBindingTable, makes a table: HRESULT
//                | "reset" table dispatchable descriptors                   HRESULT
//                | "inputs" table count binding ...   the rest: GetDeviceRemovedReason afterwards
//                | "outputs" table count binding ...
//                | "temporary" table binding
//                | "persistent" table binding
//                | "dispatch" dispatchable table
//                | "run" dispatchable count end ... count end ... scratch
//                                                     binds inputs, outputs and, if wanted, a temporary and a persistent
//                                                     resource to a table of its own, and records a dispatch
//                | "recorded"                         what the dispatch of the last "run" was recorded as: recording.h
//                | "dispatches"                       of how many dispatches and copies that consists
//     binding   := type ( "-" | "buffer" range | "array" count range ... )
//     end       := "none" | range
//     range     := ( "-" | buffer ) offset size
//
// `type` of a binding is DML_BINDING_TYPE, whatever its Desc points to; "-" is a null pointer.
std::string executeSession(Words& words, DmlDevice& device, Unknown* d3d12Device, GuardedMemory& memory);

}  // namespace harness
