"""Splits a tensor as a DirectML program in C++ does, call by call; a comment above each step has the C++ call.

DirectX objects that only carry the calls (command queues, command lists, descriptor heaps, barriers, fences) have no
counterpart: recording a dispatch executes it.
"""

import numpy as np

import dmlsplit as dml


def check(device: dml.Device) -> None:
    """THROW_IF_FAILED(dmlDevice->GetDeviceRemovedReason()): only this reports a wrong binding."""
    if device.removed_reason is not None:
        raise SystemExit(str(device.removed_reason))


# DMLCreateDevice1(d3d12Device, DML_CREATE_DEVICE_FLAG_NONE, DML_FEATURE_LEVEL_3_0, IID_PPV_ARGS(&dmlDevice));
device = dml.Device(directml="1.15.4", minimum_feature_level="3_0")

# dmlDevice->CheckFeatureSupport(DML_FEATURE_TENSOR_DATA_TYPE_SUPPORT, sizeof query, &query, sizeof data, &data);
assert device.check_feature_support_tensor_data_type(dml.TensorDataType.FLOAT32)

# DML_BUFFER_TENSOR_DESC inputDesc = {DML_TENSOR_DATA_TYPE_FLOAT32, DML_TENSOR_FLAG_NONE, 4, sizes, nullptr, 48, 0};
whole = dml.BufferTensorDesc(dml.TensorDataType.FLOAT32, (1, 1, 6, 2), total_tensor_size_in_bytes=48)
top = dml.BufferTensorDesc(dml.TensorDataType.FLOAT32, (1, 1, 2, 2), total_tensor_size_in_bytes=16)
bottom = dml.BufferTensorDesc(dml.TensorDataType.FLOAT32, (1, 1, 4, 2), total_tensor_size_in_bytes=32)

# DML_SPLIT_OPERATOR_DESC splitDesc = {&inputTensor, 2, outputTensors, 2};
desc = dml.SplitOperatorDesc(whole, [top, bottom], axis=2)

# dmlDevice->CreateOperator(&operatorDesc, IID_PPV_ARGS(&dmlOperator));
operator = device.create_operator(desc)

# dmlDevice->CompileOperator(dmlOperator, DML_EXECUTION_FLAG_NONE, IID_PPV_ARGS(&compiledOperator));
compiled = device.compile_operator(operator, dml.ExecutionFlags.NONE)

# dmlDevice->CreateOperatorInitializer(1, operators, IID_PPV_ARGS(&initializer));
initializer = device.create_operator_initializer([compiled])

# auto properties = initializer->GetBindingProperties();  dmlDevice->CreateBindingTable(&tableDesc, ...);
table = device.create_binding_table(initializer, initializer.binding_properties.required_descriptor_count)

# commandRecorder->RecordDispatch(commandList, initializer, bindingTable);  // nothing is owned: nothing is bound
device.record_dispatch(initializer, table)

# auto properties = compiledOperator->GetBindingProperties();  bindingTable->Reset(&tableDesc);
table.reset(compiled, compiled.binding_properties.required_descriptor_count)

# d3d12Device->CreateCommittedResource(...); upload the input
input_buffer, output_buffer = dml.Buffer(48), dml.Buffer(256 + 32)
input_buffer.array.view(np.float32)[:] = np.arange(12)

# DML_BUFFER_BINDING inputBinding = {inputBuffer, 0, 48};  bindingTable->BindInputs(1, &inputBindingDesc);
table.bind_inputs([dml.BufferBinding(input_buffer, 0, 48)])

# bindingTable->BindOutputs(2, outputBindingDescs);
table.bind_outputs([dml.BufferBinding(output_buffer, 0, 16), dml.BufferBinding(output_buffer, 256, 32)])
check(device)

# commandRecorder->RecordDispatch(commandList, compiledOperator, bindingTable);
device.record_dispatch(compiled, table)
check(device)

# read the outputs back
print("top:   ", *output_buffer.array[:16].view(np.float32))
print("bottom:", *output_buffer.array[256:].view(np.float32))
