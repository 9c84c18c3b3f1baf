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
