"""The known messages: one row each; the first row that matches a line is used.

Each names a public thread with such a message. Its meaning is taken from there, from ONNX Runtime's sources, or from
the observed behaviour of DirectML's builds.
"""

from __future__ import annotations

import enum
import re
from typing import Final, NamedTuple

_ORT: Final = "https://github.com/microsoft/onnxruntime"
_PLACE: Final = r"\.(?:cpp|h|cc)\(\d+\)"


class Asks(enum.Enum):
    """What a model at hand can tell about a message."""

    CREATION = "whether its session is created, and which faults its graphs have"
    PLACEMENT = "where its nodes run"
    CAPTURE = "whether its session can be captured"


class Message(NamedTuple):
    """A message: `pattern` is searched in a line, in time linear in the line's length; the line must contain one of the
    HRESULTs `codes` (if `codes` is empty, it need not contain any). `next` is a command, in which {model} and {version}
    are the user's; "" if no command of dmlsplit helps. `error`: the message means that something fails."""

    id: str
    pattern: str
    codes: tuple[int, ...]
    meaning: str
    source: str
    next: str = ""
    asks: Asks | None = None
    advice: str = ""
    error: bool = True


_CHECK: Final = "dmlsplit check {model} --onnxruntime {version}"
_NOT_THE_MODEL: Final = "another device or driver: the same model may run there"

MESSAGES: Final = (
    Message(
        "graph-description-refused",
        r"GraphDescValidator" + _PLACE,
        (),
        "DirectML refuses a graph that ONNX Runtime fused before compiling it: an edge, an input or an output of the "
        "graph is invalid, for example because nothing reads a node's outputs",
        f"{_ORT}/issues/20575",
        _CHECK,
        Asks.CREATION,
        "set ep.dml.disable_graph_fusion = 1 in the session's configuration, to see whether the graph is at fault",
    ),
    Message(
        "tensor-refused",
        r"TensorValidator" + _PLACE + r"|TensorDescValidator" + _PLACE,
        (),
        "DirectML refuses a tensor of an operator because of its data type, number of dimensions, sizes or strides",
        f"{_ORT}/issues/13330",
        _CHECK,
        Asks.CREATION,
    ),
    Message(
        "output-sizes-differ",
        r"InferAndVerifyOutputSizes",
        (),
        "the sizes of a node's output do not follow from its inputs: the model declares other sizes, or DirectML's "
        "kernel computes other sizes",
        f"{_ORT}/issues/5197",
        _CHECK,
        Asks.CREATION,
        "remove the shapes that the file declares for values inside the model, and infer them again with ONNX",
    ),
    Message(
        "provider-level-missing",
        r"dml_provider_factory" + _PLACE,
        (0x887A0004,),
        "the loaded DirectML.dll is older than this ONNX Runtime requires, or the device does not support it; often "
        "the one in System32 is loaded because the program's folder has none",
        f"{_ORT}/issues/21432",
        "dmlsplit check {model} --onnxruntime {version} --windows 10-22H2",
        None,
        "put the DirectML.dll of the package Microsoft.AI.DirectML into the program's folder; docs/concepts.md says "
        "which Windows has which DirectML",
    ),
    Message(
        "adapter-is-software",
        r"dml_provider_factory" + _PLACE,
        (0x80070057,),
        "the adapter with this number is a software adapter, for example the Microsoft Basic Display Adapter of a "
        "server or virtual machine, which the provider does not accept",
        f"{_ORT}/issues/9708",
        "",
        None,
        "another device_id, or a driver for the GPU",
    ),
    Message(
        "adapter-not-found",
        r"dml_provider_factory" + _PLACE,
        (0x887A0002,),
        "no adapter has this number; device_id counts from 0, in the order of IDXGIFactory::EnumAdapters",
        "https://github.com/w-okada/voice-changer/issues/1379",
        "",
        None,
        "device_id 0, or another one that Direct3D lists",
    ),
    Message(
        "no-adapter",
        r"DirectML device enumeration: found 0 compatible adapters",
        (),
        "no GPU of this machine, with its driver, supports Direct3D 12; old generations do not",
        "https://github.com/microsoft/DirectML/issues/329",
        "",
        None,
        "a newer driver; if there is none, run on the CPU",
    ),
    Message(
        "webnn-context",
        r"'createContext' on 'ML': DirectML: ",
        (),
        "the browser does not create a WebNN context on DirectML: it requires feature level 4_0, that is Windows 11 "
        "21H2, and a device and driver that it has not blocked",
        "https://github.com/webmachinelearning/webnn/issues/701",
        "",
        None,
        "a newer driver, especially of an NPU; docs/concepts.md says which Windows has which level",
    ),
    Message(
        "allocation-failed",
        r"There is not enough GPU video memory available|allocator DmlAllocato|\(DmlAllocator\) ran out of memory|"
        r"DML allocator out of memory",
        (),
        "the device has no more memory for the framework's allocator",
        "https://github.com/microsoft/DirectML/issues/287",
        "",
        None,
        "a smaller batch, smaller inputs, or a separate process for each model",
    ),
    Message(
        "torch-operator-on-the-cpu",
        r"not currently supported on the DML backend and will fall back to run on the CPU",
        (),
        "torch-directml has no kernel for this operator: each call copies its tensors to the CPU and back",
        "https://github.com/microsoft/DirectML/issues/592",
        "",
        None,
        "a newer torch-directml, which may have a kernel",
        error=False,
    ),
    Message(
        "torch-tensor-elsewhere",
        r"unbox expects Dml at::Tensor|weight type \(PrivateUse1\w*\) should be the same",
        (),
        "one tensor of this call is not on DirectML's device, but the others are",
        "https://github.com/microsoft/DirectML/issues/442",
        "",
        None,
        "move the model and its inputs to torch_directml.device()",
    ),
    Message(
        "torch-device-unknown",
        r"(?i)but got: ?privateuse|device type privateuseone|privateuseone is not supported",
        (),
        "this function of PyTorch, or of the program, compares device names, and does not support DirectML's, "
        "'privateuseone'",
        "https://github.com/pytorch/pytorch/issues/95734",
        "",
        None,
        "run this step on the CPU, or use a function that supports all devices",
    ),
    Message(
        "torch-type",
        r"dml_util\.cc:\d+\] Invalid or unsupported data type",
        (),
        "DirectML does not have this element type; it has neither BFloat16 nor complex types",
        "https://github.com/microsoft/DirectML/issues/688",
        "",
        None,
        "load the model as float16 or float32",
    ),
    Message(
        "no-doubles",
        r"GPU device does not support Double \(Float64\)",
        (),
        "the GPU does not support 64-bit floats (DoublePrecisionFloatShaderOps), and a value is one; a Python float "
        "becomes a Float64",
        "https://github.com/microsoft/DirectML/issues/396",
        "",
        None,
        "use float32 for all tensors and scalars",
    ),
    Message(
        "operator-not-created",
        r"CHECK failed:.{0,80}dml_device->CreateOperator|compilation_delegate_dml\.cc\(\d+\)\] Failed creating",
        (),
        "DirectML refuses an operator that a framework creates, because of a type, a number of dimensions or a size",
        "https://github.com/microsoft/DirectML/issues/306",
        "dmlsplit layer install FOLDER",
        None,
        "install the layer, which reports the operator and the rule that it breaks",
    ),
    Message(
        "plugin-not-loaded",
        r"tfdml_plugin\.dll not found",
        (),
        "tensorflow-directml-plugin does not match the installed TensorFlow; it is built for tensorflow-cpu 2.10",
        "https://github.com/microsoft/tensorflow-directml-plugin/issues/331",
        "",
        None,
        "install tensorflow-cpu 2.10",
    ),
    Message(
        "sizes-of-a-buffer",
        r"OrtValue shape verification failed",
        (),
        "the sizes of an output that the program bound differ from those that the node computes; onnxruntime-genai "
        "has this problem without past_present_share_buffer",
        "https://github.com/microsoft/onnxruntime-genai/issues/863",
        "",
        None,
        "set past_present_share_buffer to true for DirectML",
    ),
    Message(
        "symbol-of-two-sizes",
        r"Shape mismatch attempting to re-use buffer",
        (),
        "one symbol stands for two different sizes in the model's shapes, or a declared size differs from the actual "
        "one",
        f"{_ORT}/issues/10148",
        _CHECK,
        Asks.CREATION,
        "declare sizes that are not fixed as dynamic, each with its own symbol",
    ),
    Message(
        "no-model",
        r"Protobuf parsing failed",
        (),
        "the file is not a model in protobuf's binary form; it may be a Git LFS pointer, protobuf's text form, or "
        "truncated",
        f"{_ORT}/issues/10525",
        _CHECK,
        Asks.CREATION,
    ),
    Message(
        "entry-point-missing",
        r"(?i)AppendExecutionProvider_DML['\"\u2019]?.{0,60}(?:not found|entry point|in DLL|in shared library)",
        (),
        "the loaded onnxruntime.dll has no DirectML provider; it is from another package or another build",
        f"{_ORT}/issues/4941",
        "",
        None,
        "install only the package Microsoft.ML.OnnxRuntime.DirectML, with its DLL in the program's folder",
    ),
    Message(
        "run-by-two-threads",
        r"Assertion failed: .{0,200}(?:ReadbackHeap|PooledUploadHeap|BucketizedBufferAllocator)\.cpp",
        (),
        "two threads run one session at the same time, which DirectML's provider does not support",
        f"{_ORT}/issues/17686",
        "",
        None,
        "run a session on one thread at a time, or create one session for each thread",
    ),
    Message(
        "device-unsupported",
        r"",
        (0x887A0004,),
        "the device or its driver does not support the request, as NPUs do with models that are not made for them",
        "https://github.com/microsoft/DirectML/issues/659",
        "",
        None,
        _NOT_THE_MODEL,
    ),
    Message(
        "device-removed",
        r"",
        (0x887A0005,),
        "the device was removed during execution: a dispatch took longer than Windows allows (two seconds), memory "
        "ran out, or the driver failed or was updated; ID3D12Device::GetDeviceRemovedReason says which",
        f"{_ORT}/issues/22700",
        "",
        None,
        _NOT_THE_MODEL,
    ),
    Message(
        "device-hung",
        r"",
        (0x887A0006,),
        "the device did not respond in time and Windows reset it (TDR), even if the text mentions invalid commands: "
        "a dispatch was too long for this device, or the driver has a fault",
        f"{_ORT}/pull/28495",
        "",
        None,
        _NOT_THE_MODEL,
    ),
    Message(
        "device-reset",
        r"",
        (0x887A0007, 0x887A0020),
        "the device was reset because another program hung it, or the driver failed; the session must be created again",
        f"{_ORT}/pull/28495",
        "",
        None,
        _NOT_THE_MODEL,
    ),
    Message(
        "device-call-invalid",
        r"GetDeviceRemovedReason|DmlExecutionProvider|DirectML|dxgi|DXGI|d3d12|D3D12",
        (0x887A0001,),
        "Direct3D considered a call invalid, and the device is lost; a common cause is that memory ran out",
        "https://github.com/microsoft/tensorflow-directml-plugin/issues/359",
        "",
        None,
        _NOT_THE_MODEL,
    ),
    Message(
        "device-lost",
        r"GetDeviceRemovedReason\(\)",
        (),
        "the program asked whether the device was removed, and it was; the code, if there is one, says why",
        "https://github.com/microsoft/tensorflow-directml/pull/30",
        "",
        None,
        _NOT_THE_MODEL,
    ),
    Message(
        "agility-sdk-missing",
        r"D3D12SDKPath|D3D12Core\.dll.{0,80}(?:not found|missing|not be|fail)|"
        r"(?:load|find|locate).{0,80}D3D12Core\.dll",
        (),
        "the Agility SDK's D3D12Core.dll is not in the folder that the program names (D3D12SDKPath)",
        "https://github.com/microsoft/onnxruntime-genai/issues/1054",
        "",
        None,
        "check the installation; the model is not the cause",
    ),
    Message(
        "access-violation",
        r"(?i)directml(?:\.dll)?\b",
        (0xC0000005,),
        "the process crashed in DirectML.dll with an access violation: this ONNX Runtime loaded the wrong "
        "DirectML.dll, the driver has a fault, or DirectML crashes on a descriptor",
        f"{_ORT}/issues/2378",
        _CHECK,
        Asks.CREATION,
    ),
    Message(
        "access-violation-in-dotnet",
        r"System\.AccessViolationException",
        (),
        "native code caused an access violation: with DirectML's provider, usually two threads ran one session, or "
        "an input was freed while Run used it",
        f"{_ORT}/issues/16706",
        "",
        None,
        "create one session for each thread; check which onnxruntime.dll and DirectML.dll the process has loaded",
    ),
    Message(
        "out-of-memory",
        r"",
        (0x8007000E,),
        "the device ran out of memory, or a resource is larger than the device allows",
        "https://github.com/huggingface/diffusers/issues/791",
        "",
        None,
        "smaller inputs, a smaller batch, enable_mem_pattern = false, or sequential execution",
    ),
    Message(
        "kernel-not-created",
        r"AbiCustomRegistry" + _PLACE,
        (0x80070057,),
        "DirectML refuses an operator when ONNX Runtime creates its kernel: at session creation or, if sizes are "
        "dynamic, in the first Run",
        f"{_ORT}/issues/21583",
        _CHECK,
        Asks.CREATION,
        "check which DirectML.dll the process has loaded; one that is older than the package's causes the same message",
    ),
    Message(
        "fused-graph-refused",
        r"(?:FusedGraphKernel|GraphKernelHelper|DmlGraphFusionHelper|DmlGraphFusionTransformer|DmlRuntimeFusedGraphKernel)"
        + _PLACE,
        (0x80070057,),
        "DirectML fails to compile or run a graph that ONNX Runtime fused from several nodes",
        f"{_ORT}/issues/20742",
        _CHECK,
        Asks.CREATION,
        "set ep.dml.disable_graph_fusion = 1 in the session's configuration, to see whether the graph is at fault",
    ),
    Message(
        "kernel-fails-at-run",
        r"(?:MLOperatorAuthorImpl|DmlExecutionProvider\\src\\ExecutionProvider|DmlOperator\w{0,80}+)" + _PLACE,
        (0x80070057,),
        "the kernel of a node on DirectML fails at run time: DirectML refuses the operator with the sizes of this "
        "Run, or an input of the node is not what the kernel expects",
        f"{_ORT}/issues/20464",
        "dmlsplit check {model} --onnxruntime {version} --shape INPUT:SIZES",
        Asks.CREATION,
        "give the sizes of the Run that fails; run one session from one thread at a time",
    ),
    Message(
        "interface-missing",
        r"DmlExecutionProvider|(?i:directml)",
        (0x80004002,),
        "Windows or the loaded DirectML.dll is older than the caller expects; this is harmless if it is only logged, "
        "because DirectML uses DXGI instead of DXCore before Windows 10 2004",
        "https://github.com/microsoft/DirectML/issues/89",
        "",
        None,
        "if the session fails, check which DirectML.dll the process has loaded",
    ),
    Message(
        "unspecified",
        r"DmlExecutionProvider|(?i:directml)",
        (0x80004005,),
        "DirectML, Direct3D or the driver fails without a reason; the debug layers, which are part of Windows' "
        "Graphics Tools, write one to the debugger",
        f"{_ORT}/issues/3345",
        "dmlsplit ask OPERATOR.json --explain",
        None,
    ),
    Message(
        "catastrophic",
        r"DmlExecutionProvider|(?i:directml)|Catastrophic",
        (0x8000FFFF,),
        "Direct3D or the driver is in a state from which this process cannot recover; a new process may work",
        f"{_ORT}/issues/22815",
        "",
        None,
        _NOT_THE_MODEL,
    ),
    Message(
        "capture-refused",
        r"cannot use the graph capture feature",
        (),
        "the session is configured to capture its graph, but not all of its nodes are on the provider",
        f"{_ORT}/issues/24937",
        "dmlsplit check {model} --onnxruntime {version} --require-capture",
        Asks.CAPTURE,
    ),
    Message(
        "capture-with-cpu-nodes",
        r"has shape massaging nodes that will execute on CPU",
        (),
        "nodes on the CPU compute sizes, but a captured graph is replayed with the sizes of its first run",
        "https://github.com/microsoft/onnxruntime-genai/issues/848",
        _CHECK,
        Asks.CAPTURE,
        error=False,
    ),
    Message(
        "cpu-fallback-disabled",
        r"assigned to the default CPU EP, (?:but fallback to CPU EP|which) has been explicitly disabled",
        (),
        "session.disable_cpu_ep_fallback = 1 is set, but some nodes have only a CPU kernel",
        f"{_ORT}/pull/16016",
        "dmlsplit check {model} --onnxruntime {version} --require-dml 100",
        Asks.PLACEMENT,
    ),
    Message(
        "nodes-on-the-cpu",
        r"Some nodes were not assigned to the preferred execution providers",
        (),
        "part of the model runs on the CPU: nodes that compute sizes, which is intended, or operators, types and "
        "opsets for which the provider has no kernel",
        f"{_ORT}/issues/16863",
        _CHECK,
        Asks.PLACEMENT,
        error=False,
    ),
    Message(
        "verbose-output-advised",
        r"Rerunning with verbose output on a non-minimal build will show node assignments",
        (),
        "this line belongs to the warning about unassigned nodes; 'dmlsplit check --onnxruntime' shows the "
        "assignments without a run",
        f"{_ORT}/issues/23027",
        _CHECK,
        Asks.PLACEMENT,
        error=False,
    ),
    Message(
        "nodes-placed",
        r"Node\(s\) placed on \[\w+\]|All nodes placed on \[\w+\]",
        (),
        "the number of nodes on a provider; the following lines name them",
        f"{_ORT}/issues/21013",
        _CHECK,
        Asks.PLACEMENT,
        error=False,
    ),
    Message(
        "copies-added",
        r"\d Memcpy nodes are added to the graph|Add Memcpy(?:From|To)Host (?:after|before) ",
        (),
        "tensors are copied between the device and the CPU, because connected nodes run on different ones",
        f"{_ORT}/pull/18032",
        _CHECK,
        Asks.PLACEMENT,
        error=False,
    ),
    Message(
        "memory-pattern",
        r"(?i)mem(?:ory)? pattern (?:enabled )?(?:is not supported|should be disabled) .{0,200}DML",
        (),
        "DirectML's provider requires enable_mem_pattern = false and sequential execution; ONNX Runtime sets both "
        "itself and continues",
        f"{_ORT}/issues/6970",
        error=False,
    ),
    Message(
        "provider-not-available",
        r"provider 'DmlExecutionProvider' is not in available provider names",
        (),
        "this ONNX Runtime was built without DirectML's provider: the package onnxruntime is installed instead of "
        "onnxruntime-directml, or over it; all nodes run on the CPU",
        "https://github.com/microsoft/Llama-2-Onnx/issues/25",
        "",
        None,
        "uninstall both packages, then install onnxruntime-directml alone",
    ),
    Message(
        "library-not-loaded",
        r"LoadLibrary failed with error 126|DLL load failed while importing|Error loading .{0,200} which is missing",
        (),
        "a DLL, or another DLL that it needs, is not in the folders that Windows searches",
        f"{_ORT}/issues/12269",
        "",
        None,
        "check the installation; the model is not the cause",
    ),
    Message(
        "kernel-not-found",
        r"Failed to find kernel for|Could not find an implementation for",
        (),
        "no provider of this session, not even the CPU's, has a kernel for an operator with this version and these "
        "types",
        f"{_ORT}/issues/11476",
        _CHECK,
        Asks.CREATION,
    ),
    Message(
        "opset-too-new",
        r"guarantees\*? support for models stamped with official released onnx opset versions",
        (),
        "the model's opset is newer than this ONNX Runtime supports",
        f"{_ORT}/issues/5905",
        "dmlsplit legalize {model} --onnxruntime {version} -o FIXED.onnx",
        Asks.CREATION,
    ),
    Message(
        "ir-version-too-new",
        r"Unsupported model IR version",
        (),
        "the file's ir_version is newer than this ONNX Runtime reads; most models are valid with a lower one",
        f"{_ORT}/issues/23602",
        _CHECK,
        Asks.CREATION,
    ),
    Message(
        "operator-unknown",
        r"No Op registered for|is not a registered function/op",
        (),
        "the model has an operator that neither ONNX nor this ONNX Runtime defines: it belongs to a plug-in, to a "
        "domain that is not loaded, or to a newer opset",
        f"{_ORT}/issues/5643",
        _CHECK,
        Asks.CREATION,
    ),
    Message(
        "model-invalid",
        r"This is an invalid model|\bINVALID_GRAPH\b",
        (),
        "the model breaks ONNX's rules, whatever the provider; the rest of the message names the node and the tensor",
        f"{_ORT}/issues/1760",
        _CHECK,
        Asks.CREATION,
    ),
)

PATTERNS: Final = tuple(re.compile(message.pattern) for message in MESSAGES)
