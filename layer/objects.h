/* objects.h - wrappers around the objects of the real library
 *
 * A layer object wraps a real object. The pair shares one lifetime, reference count and name. The real object holds the wrapper as private data, so
 * the wrapper is found through it and released with it. Requests for unknown interfaces return the real object.
 */
#pragma once

#include "copy.h"
#include "directml.h"

typedef struct layer_kind layer_kind;
typedef struct layer_object layer_object;

/* The IDMLDebugDevice of a device. */
typedef struct layer_debug {
    const void *functions;
    layer_object *of;
    void *real;
} layer_debug;

struct layer_object {
    const void *functions;              /* COM: first */
    const layer_kind *kind;
    void *real;
    void *real_device1;                 /* of a device: the interface that has CompileGraph, or NULL */
    layer_object *device;               /* that made it; NULL of a device */
    uint64_t number;                    /* of the call that made it */
    layer_copy *desc;                   /* of an operator: what it was created with; NULL where nothing is written */
    uint32_t level;                     /* of a device: its feature level, or 0 before that was needed */
    bool removed;                       /* of a device: whether that was written */
    layer_debug debug;                  /* of a device */
    struct {
        const void *functions;
        layer_object *of;
        uint32_t references;
    } life;                             /* the private data */
};

/* A class of objects: its functions, and the interfaces that they are; the real object is called by the first one. */
struct layer_kind {
    const void *functions;
    uint32_t count;
    const guid *interfaces[5];
};

extern const layer_kind layer_devices, layer_operators, layer_compiled_operators, layer_initializers, layer_tables, layer_recorders;

/* The layer's object, or NULL. */
layer_object *layer_object_of(void *object);

/* The real object behind an object, which may be real itself, or NULL. */
void *layer_real(void *object);

/* Puts an object of the layer before the real one at *object, which was asked for by this interface. Returns it; NULL, and leaves *object, where the
 * interface is not known. */
layer_object *layer_wrap(const layer_kind *kind, const guid *iid, void **object, layer_object *device, uint64_t number);

/* The functions that objects of all kinds share. */
HRESULT layer_QueryInterface(void *self, const guid *iid, void **object);
uint32_t layer_AddRef(void *self);
uint32_t layer_Release(void *self);
HRESULT layer_GetPrivateData(void *self, const guid *id, uint32_t *size, void *data);
HRESULT layer_SetPrivateData(void *self, const guid *id, uint32_t size, const void *data);
HRESULT layer_SetPrivateDataInterface(void *self, const guid *id, void *data);
HRESULT layer_SetName(void *self, const void *name);
HRESULT layer_GetDevice(void *self, const guid *iid, void **device);

#define LAYER_OBJECT_FUNCTIONS                                                                                                             \
    layer_QueryInterface, layer_AddRef, layer_Release, layer_GetPrivateData, layer_SetPrivateData, layer_SetPrivateDataInterface, layer_SetName
#define LAYER_CHILD_FUNCTIONS LAYER_OBJECT_FUNCTIONS, layer_GetDevice
