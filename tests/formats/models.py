"""Parts of DxDispatch models, and running one."""

from dmlsplit.formats.dxdispatch import run


def printed(model):
    lines = []
    result = run(model, lines.append)
    return "".join(lines), result


def values(count, start=0, data_type="FLOAT32"):
    return {
        "initialValuesDataType": data_type,
        "initialValues": {"valueCount": count, "valueStart": start, "valueDelta": 1},
    }


def tensor(size, **members):
    return {"DataType": "FLOAT32", "Sizes": [size], **members}


def split(*sizes, **members):
    return {
        "type": "SPLIT",
        "desc": {
            "InputTensor": tensor(sum(sizes), **members),
            "OutputCount": len(sizes),
            "OutputTensors": [tensor(size) for size in sizes],
            "Axis": 0,
        },
    }


def dispatch(name="s", inputs="X", outputs=("Y", "Z")):
    return {"type": "dispatch", "dispatchable": name, "bindings": {"InputTensor": inputs, "OutputTensors": outputs}}


def chain(**changed):
    """A DxDispatch model of a graph of two Relus."""
    tensor = {"DataType": "FLOAT32", "Sizes": [4]}
    relu = {"type": "DML_OPERATOR_ACTIVATION_RELU", "desc": {"InputTensor": tensor, "OutputTensor": tensor}}
    wires = {
        "InputEdges": [{"GraphInputIndex": 0, "ToNodeIndex": 0, "ToNodeInputIndex": 0}],
        "OutputEdges": [{"FromNodeIndex": 1, "FromNodeOutputIndex": 0, "GraphOutputIndex": 0}],
        "IntermediateEdges": [{"FromNodeIndex": 0, "FromNodeOutputIndex": 0, "ToNodeIndex": 1, "ToNodeInputIndex": 0}],
    }
    nodes = [{"type": "DML_GRAPH_NODE_TYPE_OPERATOR", "Operator": "relu"}] * 2
    desc = {"InputCount": 1, "OutputCount": 1, "Nodes": nodes, **wires, **changed}
    return {"dispatchables": {"relu": relu, "graph": {"type": "DML_GRAPH_DESC", "desc": desc}}, "commands": []}
