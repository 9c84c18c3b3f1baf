/* directml.h - DirectML's COM interfaces, as C sees them: a table of functions behind the first pointer of an object
 *
 * The functions stand in the order of the public headers. The types of Direct3D 12 are passed on unread.
 */
#pragma once

#include "dmlsplit_directml.h"

#include <stdbool.h>

typedef struct guid {
    uint32_t a;
    uint16_t b, c;
    uint8_t d[8];
} guid;

/* Every interface begins with these three, and every one of DirectML's but the debug device's with these seven. */
#define UNKNOWN_FUNCTIONS                                           \
    HRESULT (*QueryInterface)(void *, const guid *, void **);       \
    uint32_t (*AddRef)(void *);                                     \
    uint32_t (*Release)(void *);
#define OBJECT_FUNCTIONS                                                    \
    UNKNOWN_FUNCTIONS                                                       \
    HRESULT (*GetPrivateData)(void *, const guid *, uint32_t *, void *);    \
    HRESULT (*SetPrivateData)(void *, const guid *, uint32_t, const void *); \
    HRESULT (*SetPrivateDataInterface)(void *, const guid *, void *);       \
    HRESULT (*SetName)(void *, const void *);
#define CHILD_FUNCTIONS \
    OBJECT_FUNCTIONS    \
    HRESULT (*GetDevice)(void *, const guid *, void **);

typedef struct binding_properties {     /* DML_BINDING_PROPERTIES */
    uint32_t descriptors;
    uint64_t temporary_bytes, persistent_bytes;
} binding_properties;

/* A C++ method that returns a struct gets a pointer to it: behind `this` on Windows, and where a C function has it elsewhere. */
#ifdef _WIN32
#define PROPERTIES_FUNCTION binding_properties *(*GetBindingProperties)(void *, binding_properties *);
#else
#define PROPERTIES_FUNCTION binding_properties (*GetBindingProperties)(void *);
#endif

typedef struct binding_table_desc {     /* DML_BINDING_TABLE_DESC */
    void *dispatchable;
    uint64_t cpu_descriptor, gpu_descriptor;
    uint32_t descriptors;
} binding_table_desc;

typedef struct binding_desc {           /* DML_BINDING_DESC */
    uint32_t type;
    const void *desc;
} binding_desc;

typedef struct buffer_binding {         /* DML_BUFFER_BINDING */
    const void *buffer;
    uint64_t offset, bytes;
} buffer_binding;

typedef struct buffer_array_binding {   /* DML_BUFFER_ARRAY_BINDING */
    uint32_t count;
    const buffer_binding *bindings;
} buffer_array_binding;

typedef struct levels_query {           /* DML_FEATURE_QUERY_FEATURE_LEVELS */
    uint32_t count;
    const uint32_t *levels;
} levels_query;

typedef struct unknown_functions {
    UNKNOWN_FUNCTIONS
} unknown_functions;

typedef struct object_functions {
    OBJECT_FUNCTIONS
} object_functions;

typedef struct device_functions {
    OBJECT_FUNCTIONS
    HRESULT (*CheckFeatureSupport)(void *, uint32_t, uint32_t, const void *, uint32_t, void *);
    HRESULT (*CreateOperator)(void *, const DML_OPERATOR_DESC *, const guid *, void **);
    HRESULT (*CompileOperator)(void *, void *, uint32_t, const guid *, void **);
    HRESULT (*CreateOperatorInitializer)(void *, uint32_t, void *const *, const guid *, void **);
    HRESULT (*CreateCommandRecorder)(void *, const guid *, void **);
    HRESULT (*CreateBindingTable)(void *, const binding_table_desc *, const guid *, void **);
    HRESULT (*Evict)(void *, uint32_t, void *const *);
    HRESULT (*MakeResident)(void *, uint32_t, void *const *);
    HRESULT (*GetDeviceRemovedReason)(void *);
    HRESULT (*GetParentDevice)(void *, const guid *, void **);
    HRESULT (*CompileGraph)(void *, const DML_GRAPH_DESC *, uint32_t, const guid *, void **);   /* of IDMLDevice1 */
} device_functions;

typedef struct child_functions {
    CHILD_FUNCTIONS
} child_functions;

typedef struct compiled_functions {
    CHILD_FUNCTIONS
    PROPERTIES_FUNCTION
} compiled_functions;

typedef struct initializer_functions {
    CHILD_FUNCTIONS
    PROPERTIES_FUNCTION
    HRESULT (*Reset)(void *, uint32_t, void *const *);
} initializer_functions;

typedef struct table_functions {
    CHILD_FUNCTIONS
    void (*BindInputs)(void *, uint32_t, const binding_desc *);
    void (*BindOutputs)(void *, uint32_t, const binding_desc *);
    void (*BindTemporaryResource)(void *, const binding_desc *);
    void (*BindPersistentResource)(void *, const binding_desc *);
    HRESULT (*Reset)(void *, const binding_table_desc *);
} table_functions;

typedef struct recorder_functions {
    CHILD_FUNCTIONS
    void (*RecordDispatch)(void *, void *, void *, void *);
} recorder_functions;

typedef struct debug_functions {
    UNKNOWN_FUNCTIONS
    void (*SetMuteDebugOutput)(void *, int32_t);
} debug_functions;

/* The functions of an object by the name of its interface: FUNCTIONS(device, op)->CreateOperator(op, ...). */
#define FUNCTIONS(interface, object) (*(const interface##_functions *const *)(object))
