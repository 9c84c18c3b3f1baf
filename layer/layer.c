/* layer.c - the functions of DirectML: each forwards to the real library, and calls that show what the program computes are logged
 *
 * The program gets the real library's results, and its objects behind wrappers; see objects.h and output.h.
 */
#include "objects.h"
#include "output.h"
#include "platform.h"

#include <stdlib.h>
#include <string.h>

#ifdef _WIN32
#define EXPORTED __declspec(dllexport)
#else
#define EXPORTED __attribute__((visibility("default")))
#endif

static const guid iid_device = {0x6dbd6437, 0x96fd, 0x423f, {0xa9, 0x8c, 0xae, 0x5e, 0x7c, 0x2a, 0x57, 0x3f}};
static const guid iid_device1 = {0xa0884f9a, 0xd2be, 0x4355, {0xaa, 0x5d, 0x59, 0x01, 0x28, 0x1a, 0xd1, 0xd2}};
static const guid iid_child = {0x27e83142, 0x8165, 0x49e3, {0x97, 0x4e, 0x2f, 0xd6, 0x6e, 0x4c, 0xb6, 0x9d}};
static const guid iid_pageable = {0xb1ab0825, 0x4542, 0x4a4b, {0x86, 0x17, 0x6d, 0xde, 0x6e, 0x8f, 0x62, 0x01}};
static const guid iid_operator = {0x26caae7a, 0x3081, 0x4633, {0x95, 0x81, 0x22, 0x6f, 0xbe, 0x57, 0x69, 0x5d}};
static const guid iid_dispatchable = {0xdcb821a8, 0x1039, 0x441e, {0x9f, 0x1c, 0xb1, 0x75, 0x9c, 0x2f, 0x3c, 0xec}};
static const guid iid_compiled_operator = {0x6b15e56a, 0xbf5c, 0x4902, {0x92, 0xd8, 0xda, 0x3a, 0x65, 0x0a, 0xfe, 0xa4}};
static const guid iid_initializer = {0x427c1113, 0x435c, 0x469c, {0x86, 0x76, 0x4d, 0x5d, 0xd0, 0x72, 0xf8, 0x13}};
static const guid iid_table = {0x29c687dc, 0xde74, 0x4e3b, {0xab, 0x00, 0x11, 0x68, 0xf2, 0xfc, 0x3c, 0xfc}};
static const guid iid_recorder = {0xe6857a76, 0x2e3e, 0x4fdd, {0xbf, 0xf4, 0x5d, 0x2b, 0xa1, 0x0f, 0xb4, 0x53}};

/* ---- What a call was given, and what became of it ---- */

/* The number of the call that made an object; 0 where that is not known. */
static uint64_t number_of(void *object)
{
    const layer_object *const ours = layer_object_of(object);
    return ours == NULL ? 0 : ours->number;
}

static layer_object *device_of(layer_object *object)
{
    return object->device != NULL ? object->device : object;
}

static layer_call begin(const char *name, void *self)
{
    return layer_begin(name, device_of(self)->number);
}

/* The release that the environment names, or the highest level of the device. */
static uint32_t target_of(layer_object *device)
{
    static const uint32_t levels[] = {0x1000, 0x2000, 0x2100, 0x3000, 0x3100, 0x4000, 0x4100, 0x5000,
                                      0x5100, 0x5200, 0x6000, 0x6100, 0x6200, 0x6300, 0x6400};
    enum { COUNT = sizeof levels / sizeof levels[0], FEATURE_LEVELS = 1 };
    const levels_query query = {COUNT, levels};
    const uint32_t release = layer_release();
    uint32_t level = 0;
    if (release != 0)
        return release;
    if (device->level == 0) {
        const HRESULT result =
            FUNCTIONS(device, device->real)->CheckFeatureSupport(device->real, FEATURE_LEVELS, sizeof query, &query, sizeof level, &level);
        device->level = result >= 0 ? level : levels[COUNT - 1];
    }
    return device->level;
}

/* Writes the return value; on failure also prints an explanation. */
static void returned(const layer_call *call, HRESULT result, const layer_copy *copy, layer_object *device)
{
    char *sentence = NULL;
    if (result < 0) {
        sentence = layer_sentence(call, " returned ", result, copy, copy == NULL ? 0 : target_of(device));
        if (sentence != NULL)
            layer_say(sentence);
    }
    layer_returned(call, &result, 0, sentence);
    free(sentence);
}

/* Like `returned`, for void functions, which report errors by removing the device. */
static void done(const layer_call *call, layer_object *object)
{
    layer_object *const device = device_of(object);
    const HRESULT reason = device->removed ? 0 : FUNCTIONS(device, device->real)->GetDeviceRemovedReason(device->real);
    char *sentence = NULL;
    if (reason < 0) {
        device->removed = true;
        sentence = layer_sentence(call, " removed the device: ", reason, NULL, 0);
        if (sentence != NULL)
            layer_say(sentence);
    }
    layer_returned(call, NULL, reason, sentence);
    free(sentence);
}

/* Returns the real objects of an array, which the caller frees; NULL if the array is passed on unchanged. */
static void **real_array(void *const *objects, uint32_t count)
{
    void **const real = objects == NULL || count == 0 || count > UINT32_MAX / sizeof *real ? NULL : malloc(count * sizeof *real);
    if (real == NULL)
        return NULL;
    if (!layer_read(objects, real, count * sizeof *real)) {
        free(real);
        return NULL;
    }
    for (uint32_t i = 0; i < count; i++)
        real[i] = layer_real(real[i]);
    return real;
}

/* ---- IDMLDevice ---- */

static HRESULT device_CheckFeatureSupport(void *self, uint32_t feature, uint32_t query_size, const void *query, uint32_t size, void *data)
{
    void *const real = layer_real(self);
    return FUNCTIONS(device, real)->CheckFeatureSupport(real, feature, query_size, query, size, data);
}

static HRESULT device_CreateOperator(void *self, const DML_OPERATOR_DESC *desc, const guid *iid, void **object)
{
    layer_object *const device = self;
    layer_call call = begin("CreateOperator", device);
    layer_copy *copy = NULL;
    if (layer_writes()) {
        layer_text text = {0};
        copy = layer_copy_operator(desc);
        layer_add_operator(&text, copy == NULL ? NULL : &copy->desc);
        if (text.bytes != NULL && text.bytes[0] == '{' && !text.failed) {
            layer_add(&call.line, ", ");
            text.bytes[text.length - 1] = '\0';         /* the object goes on in the line */
            layer_add(&call.line, text.bytes + 1);
        } else {
            layer_key(&call, "Type");
            layer_add(&call.line, "null");
        }
        free(text.bytes);
        if (copy != NULL && !copy->whole) {
            layer_key(&call, "Whole");
            layer_add(&call.line, "false");
        }
    }
    if (layer_release() != 0) {
        copy = copy != NULL ? copy : layer_copy_operator(desc);
        char *const warning = layer_warning(copy, layer_release());
        if (warning != NULL)
            layer_say(warning);
        free(warning);
    }
    layer_submit(&call);
    const HRESULT result = FUNCTIONS(device, device->real)->CreateOperator(device->real, desc, iid, object);
    layer_stop(&call);
    if (result < 0 && copy == NULL)
        copy = layer_copy_operator(desc);
    returned(&call, result, copy, device);
    layer_object *const made = result >= 0 && object != NULL ? layer_wrap(&layer_operators, iid, object, device, call.number) : NULL;
    if (made != NULL && made->number == call.number && layer_writes())
        made->desc = copy;
    else
        layer_free_copy(copy);
    return result;
}

static HRESULT device_CompileOperator(void *self, void *op, uint32_t flags, const guid *iid, void **object)
{
    layer_object *const device = self;
    layer_call call = begin("CompileOperator", device);
    layer_key_number(&call, "Operator", number_of(op));
    layer_key_number(&call, "Flags", flags);
    layer_submit(&call);
    const HRESULT result = FUNCTIONS(device, device->real)->CompileOperator(device->real, layer_real(op), flags, iid, object);
    layer_stop(&call);
    returned(&call, result, NULL, device);
    if (result >= 0 && object != NULL)
        (void)layer_wrap(&layer_compiled_operators, iid, object, device, call.number);
    return result;
}

static void add_numbers(layer_call *call, const char *key, uint32_t count, void *const *objects)
{
    layer_key(call, key);
    layer_add(&call->line, "[");
    for (uint32_t i = 0; i < count; i++) {
        layer_add(&call->line, i == 0 ? "" : ", ");
        layer_add_number(&call->line, number_of(objects[i]));
    }
    layer_add(&call->line, "]");
}

/* The operators of a call, as the numbers of the calls that made them. */
static void add_operators(layer_call *call, uint32_t count, void *const *operators)
{
    const size_t bytes = (size_t)count * sizeof *operators;
    void **const copy = operators == NULL || count == 0 || !layer_writes() ? NULL : malloc(bytes);
    if (copy != NULL && layer_read(operators, copy, bytes))
        add_numbers(call, "Operators", count, copy);
    free(copy);
}

static HRESULT device_CreateOperatorInitializer(void *self, uint32_t count, void *const *operators, const guid *iid, void **object)
{
    layer_object *const device = self;
    layer_call call = begin("CreateOperatorInitializer", device);
    void **const real = real_array(operators, count);
    add_operators(&call, count, operators);
    layer_submit(&call);
    const HRESULT result =
        FUNCTIONS(device, device->real)->CreateOperatorInitializer(device->real, count, real != NULL ? real : operators, iid, object);
    layer_stop(&call);
    free(real);
    returned(&call, result, NULL, device);
    if (result >= 0 && object != NULL)
        (void)layer_wrap(&layer_initializers, iid, object, device, call.number);
    return result;
}

static HRESULT device_CreateCommandRecorder(void *self, const guid *iid, void **object)
{
    layer_object *const device = self;
    const HRESULT result = FUNCTIONS(device, device->real)->CreateCommandRecorder(device->real, iid, object);
    if (result >= 0 && object != NULL)
        (void)layer_wrap(&layer_recorders, iid, object, device, 0);
    return result;
}

/* A binding table's desc with the real dispatchable; `desc` itself where it cannot be read, and NULL. */
static const binding_table_desc *real_table_desc(const binding_table_desc *desc, binding_table_desc *real)
{
    if (desc == NULL || !layer_read(desc, real, sizeof *real))
        return desc;
    real->dispatchable = layer_real(real->dispatchable);
    return real;
}

static void add_table_desc(layer_call *call, const binding_table_desc *desc)
{
    binding_table_desc copy;
    if (desc == NULL || !layer_read(desc, &copy, sizeof copy))
        return;
    layer_key_number(call, "Dispatchable", number_of(copy.dispatchable));
    layer_key_number(call, "SizeInDescriptors", copy.descriptors);
}

static HRESULT device_CreateBindingTable(void *self, const binding_table_desc *desc, const guid *iid, void **object)
{
    layer_object *const device = self;
    binding_table_desc real;
    layer_call call = begin("CreateBindingTable", device);
    add_table_desc(&call, desc);
    layer_submit(&call);
    const HRESULT result = FUNCTIONS(device, device->real)->CreateBindingTable(device->real, real_table_desc(desc, &real), iid, object);
    layer_stop(&call);
    returned(&call, result, NULL, device);
    if (result >= 0 && object != NULL)
        (void)layer_wrap(&layer_tables, iid, object, device, call.number);
    return result;
}

static HRESULT device_Evict(void *self, uint32_t count, void *const *objects)
{
    void *const device = layer_real(self);
    layer_forget();
    void **const real = real_array(objects, count);
    const HRESULT result = FUNCTIONS(device, device)->Evict(device, count, real != NULL ? real : objects);
    free(real);
    return result;
}

static HRESULT device_MakeResident(void *self, uint32_t count, void *const *objects)
{
    void *const device = layer_real(self);
    layer_forget();
    void **const real = real_array(objects, count);
    const HRESULT result = FUNCTIONS(device, device)->MakeResident(device, count, real != NULL ? real : objects);
    free(real);
    return result;
}

static HRESULT device_GetDeviceRemovedReason(void *self)
{
    layer_object *const device = self;
    const HRESULT result = FUNCTIONS(device, device->real)->GetDeviceRemovedReason(device->real);
    if (result < 0 && !device->removed) {
        layer_call call = begin("GetDeviceRemovedReason", device);
        device->removed = true;
        layer_submit(&call);
        returned(&call, result, NULL, device);
    }
    return result;
}

static HRESULT device_GetParentDevice(void *self, const guid *iid, void **device)
{
    void *const real = layer_real(self);
    return FUNCTIONS(device, real)->GetParentDevice(real, iid, device);
}

/* The line of a graph: its operators, and the calls that created them. */
static void add_graph(layer_call *call, const layer_graph *graph)
{
    const uint32_t count = graph->desc.Nodes == NULL ? 0 : graph->desc.NodeCount;
    const DML_OPERATOR_DESC **const descs = calloc((size_t)count + 1, sizeof *descs);
    void **const operators = calloc((size_t)count + 1, sizeof *operators);
    layer_text text = {0};
    for (uint32_t i = 0; descs != NULL && operators != NULL && i < count; i++) {
        const DML_OPERATOR_GRAPH_NODE_DESC *const node = graph->desc.Nodes[i].Desc;
        if (graph->desc.Nodes[i].Type != DML_GRAPH_NODE_TYPE_OPERATOR || node == NULL)
            continue;
        const layer_object *const op = layer_object_of(node->Operator);
        operators[i] = node->Operator;
        descs[i] = op == NULL || op->desc == NULL ? NULL : &op->desc->desc;
    }
    if (descs != NULL && operators != NULL) {
        add_numbers(call, "Operators", count, operators);
        layer_add_graph(&text, &graph->desc, descs);
    }
    if (text.bytes != NULL && !text.failed) {
        layer_add(&call->line, ", ");
        text.bytes[text.length - 1] = '\0';
        layer_add(&call->line, text.bytes + 1);
    }
    free(text.bytes);
    free(operators);
    free((void *)descs);
}

static HRESULT device_CompileGraph(void *self, const DML_GRAPH_DESC *desc, uint32_t flags, const guid *iid, void **object)
{
    layer_object *const device = self;
    layer_call call = begin("CompileGraph", device);
    layer_graph *const graph = layer_copy_graph(desc);
    layer_key_number(&call, "Flags", flags);
    if (graph != NULL && layer_writes())
        add_graph(&call, graph);
    layer_submit(&call);
    for (uint32_t i = 0; graph != NULL && graph->desc.Nodes != NULL && i < graph->desc.NodeCount; i++) {
        DML_OPERATOR_GRAPH_NODE_DESC *const node = (DML_OPERATOR_GRAPH_NODE_DESC *)(uintptr_t)graph->desc.Nodes[i].Desc;
        if (graph->desc.Nodes[i].Type == DML_GRAPH_NODE_TYPE_OPERATOR && node != NULL)
            node->Operator = layer_real(node->Operator);
    }
    const DML_GRAPH_DESC *const given = graph != NULL && graph->whole ? &graph->desc : desc;
    const HRESULT result = FUNCTIONS(device, device->real_device1)->CompileGraph(device->real_device1, given, flags, iid, object);
    layer_stop(&call);
    layer_free_graph(graph);
    returned(&call, result, NULL, device);
    if (result >= 0 && object != NULL)
        (void)layer_wrap(&layer_compiled_operators, iid, object, device, call.number);
    return result;
}

/* ---- Dispatchables ---- */

#ifdef _WIN32
static binding_properties *get_binding_properties(void *self, binding_properties *result)
{
    void *const real = layer_real(self);
    return FUNCTIONS(compiled, real)->GetBindingProperties(real, result);
}
#else
static binding_properties get_binding_properties(void *self)
{
    void *const real = layer_real(self);
    return FUNCTIONS(compiled, real)->GetBindingProperties(real);
}
#endif

static HRESULT initializer_Reset(void *self, uint32_t count, void *const *operators)
{
    layer_object *const initializer = self;
    layer_call call = begin("IDMLOperatorInitializer::Reset", initializer);
    void **const real = real_array(operators, count);
    layer_key_number(&call, "Initializer", initializer->number);
    add_operators(&call, count, operators);
    layer_submit(&call);
    const HRESULT result = FUNCTIONS(initializer, initializer->real)->Reset(initializer->real, count, real != NULL ? real : operators);
    layer_stop(&call);
    free(real);
    returned(&call, result, NULL, device_of(initializer));
    return result;
}

/* ---- IDMLBindingTable ---- */

static void add_buffer(layer_call *call, const buffer_binding *binding)
{
    layer_add(&call->line, "{\"Buffer\": ");
    layer_add_number(&call->line, (uint64_t)(uintptr_t)binding->buffer);
    layer_key_number(call, "Offset", binding->offset);
    layer_key_number(call, "SizeInBytes", binding->bytes);
    layer_add(&call->line, "}");
}

/* {"Type": "BUFFER", "Desc": ...}; of what cannot be read, and of no binding, Desc is null. */
static void add_binding(layer_call *call, const binding_desc *binding)
{
    enum { NONE, BUFFER, BUFFER_ARRAY, MOST_BUFFERS = 4096 };
    buffer_binding buffer;
    buffer_array_binding array;
    layer_add(&call->line, "{\"Type\": ");
    if (binding->type > BUFFER_ARRAY) {
        layer_add_number(&call->line, binding->type);
        layer_add(&call->line, ", \"Desc\": null}");
        return;
    }
    layer_add(&call->line, binding->type == NONE ? "\"NONE\"" : binding->type == BUFFER ? "\"BUFFER\"" : "\"BUFFER_ARRAY\"");
    layer_add(&call->line, ", \"Desc\": ");
    if (binding->type == BUFFER && binding->desc != NULL && layer_read(binding->desc, &buffer, sizeof buffer)) {
        add_buffer(call, &buffer);
    } else if (binding->type == BUFFER_ARRAY && binding->desc != NULL && layer_read(binding->desc, &array, sizeof array)) {
        layer_add(&call->line, "[");
        for (uint32_t i = 0; array.bindings != NULL && array.count <= MOST_BUFFERS && i < array.count; i++) {
            if (!layer_read(&array.bindings[i], &buffer, sizeof buffer))
                break;
            layer_add(&call->line, i == 0 ? "" : ", ");
            add_buffer(call, &buffer);
        }
        layer_add(&call->line, "]");
    } else {
        layer_add(&call->line, "null");
    }
    layer_add(&call->line, "}");
}

static layer_call begin_binding(const char *name, layer_object *table, uint32_t count, const binding_desc *bindings)
{
    enum { MOST_BINDINGS = 65536 };
    layer_call call = begin(name, table);
    if (!layer_writes())
        return call;
    layer_key_number(&call, "Table", table->number);
    layer_key_number(&call, "Count", count);
    layer_key(&call, "Bindings");
    layer_add(&call.line, "[");
    for (uint32_t i = 0; bindings != NULL && count <= MOST_BINDINGS && i < count; i++) {
        binding_desc binding;
        if (!layer_read(&bindings[i], &binding, sizeof binding))
            break;
        layer_add(&call.line, i == 0 ? "" : ", ");
        add_binding(&call, &binding);
    }
    layer_add(&call.line, "]");
    return call;
}

static void table_BindInputs(void *self, uint32_t count, const binding_desc *bindings)
{
    layer_object *const table = self;
    layer_call call = begin_binding("BindInputs", table, count, bindings);
    layer_submit(&call);
    FUNCTIONS(table, table->real)->BindInputs(table->real, count, bindings);
    layer_stop(&call);
    done(&call, table);
}

static void table_BindOutputs(void *self, uint32_t count, const binding_desc *bindings)
{
    layer_object *const table = self;
    layer_call call = begin_binding("BindOutputs", table, count, bindings);
    layer_submit(&call);
    FUNCTIONS(table, table->real)->BindOutputs(table->real, count, bindings);
    layer_stop(&call);
    done(&call, table);
}

static void table_BindTemporaryResource(void *self, const binding_desc *binding)
{
    layer_object *const table = self;
    layer_call call = begin_binding("BindTemporaryResource", table, binding != NULL, binding);
    layer_submit(&call);
    FUNCTIONS(table, table->real)->BindTemporaryResource(table->real, binding);
    layer_stop(&call);
    done(&call, table);
}

static void table_BindPersistentResource(void *self, const binding_desc *binding)
{
    layer_object *const table = self;
    layer_call call = begin_binding("BindPersistentResource", table, binding != NULL, binding);
    layer_submit(&call);
    FUNCTIONS(table, table->real)->BindPersistentResource(table->real, binding);
    layer_stop(&call);
    done(&call, table);
}

static HRESULT table_Reset(void *self, const binding_table_desc *desc)
{
    layer_object *const table = self;
    binding_table_desc real;
    layer_call call = begin("IDMLBindingTable::Reset", table);
    layer_key_number(&call, "Table", table->number);
    add_table_desc(&call, desc);
    layer_submit(&call);
    const HRESULT result = FUNCTIONS(table, table->real)->Reset(table->real, real_table_desc(desc, &real));
    layer_stop(&call);
    returned(&call, result, NULL, device_of(table));
    return result;
}

/* ---- IDMLCommandRecorder ---- */

static void recorder_RecordDispatch(void *self, void *command_list, void *dispatchable, void *table)
{
    layer_object *const recorder = self;
    layer_call call = begin("RecordDispatch", recorder);
    layer_key_number(&call, "Dispatchable", number_of(dispatchable));
    layer_key_number(&call, "Table", number_of(table));
    layer_submit(&call);
    FUNCTIONS(recorder, recorder->real)->RecordDispatch(recorder->real, command_list, layer_real(dispatchable), layer_real(table));
    layer_stop(&call);
    done(&call, recorder);
}

/* ---- The classes ---- */

static const device_functions functions_of_devices = {
    LAYER_OBJECT_FUNCTIONS,       device_CheckFeatureSupport, device_CreateOperator,
    device_CompileOperator,       device_CreateOperatorInitializer, device_CreateCommandRecorder,
    device_CreateBindingTable,    device_Evict, device_MakeResident,
    device_GetDeviceRemovedReason, device_GetParentDevice, device_CompileGraph,
};
static const child_functions functions_of_operators = {LAYER_CHILD_FUNCTIONS};
static const compiled_functions functions_of_compiled_operators = {LAYER_CHILD_FUNCTIONS, get_binding_properties};
static const initializer_functions functions_of_initializers = {LAYER_CHILD_FUNCTIONS, get_binding_properties, initializer_Reset};
static const table_functions functions_of_tables = {
    LAYER_CHILD_FUNCTIONS, table_BindInputs, table_BindOutputs, table_BindTemporaryResource, table_BindPersistentResource, table_Reset,
};
static const recorder_functions functions_of_recorders = {LAYER_CHILD_FUNCTIONS, recorder_RecordDispatch};

const layer_kind layer_devices = {&functions_of_devices, 2, {&iid_device, &iid_device1}};
const layer_kind layer_operators = {&functions_of_operators, 2, {&iid_operator, &iid_child}};
const layer_kind layer_compiled_operators = {
    &functions_of_compiled_operators, 4, {&iid_compiled_operator, &iid_dispatchable, &iid_pageable, &iid_child}};
const layer_kind layer_initializers = {&functions_of_initializers, 4, {&iid_initializer, &iid_dispatchable, &iid_pageable, &iid_child}};
const layer_kind layer_tables = {&functions_of_tables, 2, {&iid_table, &iid_child}};
const layer_kind layer_recorders = {&functions_of_recorders, 2, {&iid_recorder, &iid_child}};

/* ---- What the library exports ---- */

/* `dmlsplit layer` knows the layer's file by this text. */
extern const char layer_mark[];
const char layer_mark[] = "dmlsplit layer over DirectML";

typedef HRESULT (*create_device)(void *, uint32_t, const guid *, void **);
typedef HRESULT (*create_device1)(void *, uint32_t, uint32_t, const guid *, void **);

#define MODULE_NOT_FOUND ((HRESULT)0x8007007Eu)     /* HRESULT_FROM_WIN32(ERROR_MOD_NOT_FOUND) */

/* The real library's function. Where its DMLCreateDevice calls DMLCreateDevice1 by name, that is the layer's: `inside` keeps such a call apart. */
static LAYER_THREAD int inside;

static HRESULT real_create(void *d3d12, uint32_t flags, const uint32_t *level, const guid *iid, void **device)
{
    void *const found = layer_real_function(level == NULL ? "DMLCreateDevice" : "DMLCreateDevice1");
    HRESULT result = MODULE_NOT_FOUND;
    if (found == NULL) {
        layer_text text = {0};
        layer_add(&text, layer_mark);
        layer_add(&text, ": the real library, " LAYER_REAL ", is not beside this one, or is no DirectML");
        if (!text.failed)
            layer_say(text.bytes);
        free(text.bytes);
        return result;
    }
    inside++;
    if (level == NULL) {
        create_device function;
        memcpy(&function, &found, sizeof function);
        result = function(d3d12, flags, iid, device);
    } else {
        create_device1 function;
        memcpy(&function, &found, sizeof function);
        result = function(d3d12, flags, *level, iid, device);
    }
    inside--;
    return result;
}

static HRESULT created_device(const char *name, void *d3d12, uint32_t flags, const uint32_t *level, const guid *iid, void **device)
{
    if (inside > 0)
        return real_create(d3d12, flags, level, iid, device);
    layer_call call = layer_begin(name, 0);
    layer_key_number(&call, "Flags", flags);
    if (level != NULL)
        layer_key_number(&call, "MinimumFeatureLevel", *level);
    layer_submit(&call);
    const HRESULT result = real_create(d3d12, flags, level, iid, device);
    layer_stop(&call);
    returned(&call, result, NULL, NULL);
    layer_object *const ours = result >= 0 && device != NULL ? layer_wrap(&layer_devices, iid, device, NULL, call.number) : NULL;
    if (result >= 0 && device != NULL && *device != NULL && ours == NULL)
        layer_say("a device was asked for by an interface that the layer does not know: its calls are not written");
    if (ours != NULL && ours->real_device1 == NULL) {
        void *device1 = NULL;
        if (FUNCTIONS(unknown, ours->real)->QueryInterface(ours->real, &iid_device1, &device1) >= 0 && device1 != NULL) {
            ours->real_device1 = device1;
            (void)FUNCTIONS(unknown, device1)->Release(device1);
        }
    }
    return result;
}

EXPORTED HRESULT DMLCreateDevice(void *d3d12, uint32_t flags, const guid *iid, void **device);
EXPORTED HRESULT DMLCreateDevice1(void *d3d12, uint32_t flags, uint32_t level, const guid *iid, void **device);

HRESULT DMLCreateDevice(void *d3d12, uint32_t flags, const guid *iid, void **device)
{
    return created_device("DMLCreateDevice", d3d12, flags, NULL, iid, device);
}

HRESULT DMLCreateDevice1(void *d3d12, uint32_t flags, uint32_t level, const guid *iid, void **device)
{
    return created_device("DMLCreateDevice1", d3d12, flags, &level, iid, device);
}
