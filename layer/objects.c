/* objects.c - see objects.h */
#include "objects.h"

#include "platform.h"

#include <stdlib.h>
#include <string.h>

static const guid iid_unknown = {0x00000000, 0x0000, 0x0000, {0xC0, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x46}};
static const guid iid_object = {0xc8263aac, 0x9e0c, 0x4a2d, {0x9b, 0x8e, 0x00, 0x75, 0x21, 0xa3, 0x31, 0x7c}};
static const guid iid_debug_device = {0x7d6f3ac9, 0x394a, 0x4ac3, {0x92, 0xa7, 0x39, 0x0c, 0xc5, 0x7a, 0x82, 0x17}};

/* The private data of a real object that holds the layer's. */
static const guid id_of_layer = {0x4c1e8f5a, 0x2b0d, 0x4f39, {0x9a, 0x61, 0xd3, 0x7e, 0x58, 0x0c, 0xb4, 0x92}};

static bool is_guid(const guid *a, const guid *b)
{
    return memcmp(a, b, sizeof *a) == 0;
}

static bool is_known(const layer_kind *kind, const guid *iid)
{
    bool known = is_guid(iid, &iid_unknown) || is_guid(iid, &iid_object);
    for (uint32_t i = 0; i < kind->count; i++)
        known = known || is_guid(iid, kind->interfaces[i]);
    return known;
}

layer_object *layer_object_of(void *object)
{
    static const layer_kind *const kinds[] = {&layer_devices,      &layer_operators, &layer_compiled_operators,
                                              &layer_initializers, &layer_tables,    &layer_recorders};
    for (size_t i = 0; object != NULL && i < sizeof kinds / sizeof kinds[0]; i++)
        if (*(const void *const *)object == kinds[i]->functions)
            return object;
    return NULL;
}

void *layer_real(void *object)
{
    const layer_object *const ours = layer_object_of(object);
    return ours != NULL ? ours->real : object;
}

/* ---- The end of an object ---- */

static layer_object *of_life(void *life)
{
    return (layer_object *)((char *)life - offsetof(layer_object, life));
}

static uint32_t life_AddRef(void *self)
{
    return layer_plus(&of_life(self)->life.references, 1);
}

static uint32_t life_Release(void *self)
{
    layer_object *const object = of_life(self);
    const uint32_t references = layer_plus(&object->life.references, -1);
    if (references == 0) {
        layer_free_copy(object->desc);
        free(object);
    }
    return references;
}

static HRESULT life_QueryInterface(void *self, const guid *iid, void **object)
{
    *object = is_guid(iid, &iid_unknown) ? self : NULL;
    if (*object == NULL)
        return (HRESULT)0x80004002u;
    (void)life_AddRef(self);
    return 0;
}

static const unknown_functions life_functions = {life_QueryInterface, life_AddRef, life_Release};

/* ---- An object of the layer ---- */

/* That of a real one, which has it as private data; NULL where there is none. */
static layer_object *found(void *real)
{
    void *life = NULL;
    uint32_t size = sizeof life;
    if (FUNCTIONS(object, real)->GetPrivateData(real, &id_of_layer, &size, &life) < 0 || life == NULL)
        return NULL;
    layer_object *const object = of_life(life);
    (void)life_Release(life);           /* the real object has a reference of its own */
    return object;
}

static const debug_functions *debug_device(void);

static layer_object *made(const layer_kind *kind, void *real, layer_object *device, uint64_t number)
{
    layer_object *const object = calloc(1, sizeof *object);
    if (object == NULL)
        return NULL;
    object->functions = kind->functions;
    object->kind = kind;
    object->real = real;
    object->device = device;
    object->number = number;
    object->debug.functions = debug_device();
    object->debug.of = object;
    object->life.functions = &life_functions;
    object->life.references = 1;
    const HRESULT result = FUNCTIONS(object, real)->SetPrivateDataInterface(real, &id_of_layer, &object->life);
    const bool held = result >= 0 && object->life.references > 1;
    (void)life_Release(&object->life);
    return held ? object : NULL;
}

layer_object *layer_wrap(const layer_kind *kind, const guid *iid, void **object, layer_object *device, uint64_t number)
{
    void *const real = *object;
    void *whole = NULL;
    if (real == NULL || !is_known(kind, iid))
        return NULL;
    layer_object *ours = layer_object_of(real);
    if (ours != NULL)
        return ours;
    if (FUNCTIONS(unknown, real)->QueryInterface(real, kind->interfaces[0], &whole) < 0 || whole == NULL)
        return NULL;
    layer_lock();                       /* a real object that is given to two threads has one of ours */
    ours = found(whole);
    if (ours == NULL)
        ours = made(kind, whole, device, number);
    layer_unlock();
    (void)FUNCTIONS(unknown, whole)->Release(whole);
    if (ours != NULL)
        *object = ours;
    return ours;
}

/* ---- Functions of all kinds ---- */

static void *real_of(void *self)
{
    return ((const layer_object *)self)->real;
}

HRESULT layer_QueryInterface(void *self, const guid *iid, void **object)
{
    layer_object *const ours = self;
    const HRESULT result = FUNCTIONS(unknown, ours->real)->QueryInterface(ours->real, iid, object);
    if (result < 0 || object == NULL || *object == NULL)
        return result;
    if (is_known(ours->kind, iid)) {
        *object = ours;                 /* of which the real one has counted a reference */
    } else if (ours->kind == &layer_devices && is_guid(iid, &iid_debug_device)) {
        ours->debug.real = *object;
        *object = &ours->debug;
    }
    return result;
}

uint32_t layer_AddRef(void *self)
{
    return FUNCTIONS(unknown, real_of(self))->AddRef(real_of(self));
}

uint32_t layer_Release(void *self)
{
    return FUNCTIONS(unknown, real_of(self))->Release(real_of(self));   /* with the last one self is gone */
}

HRESULT layer_GetPrivateData(void *self, const guid *id, uint32_t *size, void *data)
{
    return FUNCTIONS(object, real_of(self))->GetPrivateData(real_of(self), id, size, data);
}

HRESULT layer_SetPrivateData(void *self, const guid *id, uint32_t size, const void *data)
{
    return FUNCTIONS(object, real_of(self))->SetPrivateData(real_of(self), id, size, data);
}

HRESULT layer_SetPrivateDataInterface(void *self, const guid *id, void *data)
{
    return FUNCTIONS(object, real_of(self))->SetPrivateDataInterface(real_of(self), id, data);
}

HRESULT layer_SetName(void *self, const void *name)
{
    return FUNCTIONS(object, real_of(self))->SetName(real_of(self), name);
}

HRESULT layer_GetDevice(void *self, const guid *iid, void **device)
{
    const HRESULT result = FUNCTIONS(child, real_of(self))->GetDevice(real_of(self), iid, device);
    if (result >= 0 && device != NULL)
        (void)layer_wrap(&layer_devices, iid, device, NULL, 0);
    return result;
}

/* ---- IDMLDebugDevice ---- */

static HRESULT debug_QueryInterface(void *self, const guid *iid, void **object)
{
    return layer_QueryInterface(((layer_debug *)self)->of, iid, object);
}

static uint32_t debug_AddRef(void *self)
{
    layer_debug *const debug = self;
    return FUNCTIONS(unknown, debug->real)->AddRef(debug->real);
}

static uint32_t debug_Release(void *self)
{
    layer_debug *const debug = self;
    return FUNCTIONS(unknown, debug->real)->Release(debug->real);
}

static void debug_SetMuteDebugOutput(void *self, int32_t mute)
{
    layer_debug *const debug = self;
    FUNCTIONS(debug, debug->real)->SetMuteDebugOutput(debug->real, mute);
}

static const debug_functions *debug_device(void)
{
    static const debug_functions functions = {debug_QueryInterface, debug_AddRef, debug_Release, debug_SetMuteDebugOutput};
    return &functions;
}
