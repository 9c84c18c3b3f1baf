/* platform_windows.c - see platform.h */
#include "platform.h"

#define WIN32_LEAN_AND_MEAN
#include <windows.h>

#include <stdlib.h>
#include <wchar.h>

/* LAYER_REAL in the folder of this library. */
static HMODULE real_library(void)
{
    static const wchar_t name[] = L"" LAYER_REAL;
    static const wchar_t *const of_this = L"";
    HMODULE self = NULL;
    DWORD length = 0, capacity = MAX_PATH;
    wchar_t *path = NULL;
    HMODULE library = NULL;
    if (!GetModuleHandleExW(GET_MODULE_HANDLE_EX_FLAG_FROM_ADDRESS | GET_MODULE_HANDLE_EX_FLAG_UNCHANGED_REFCOUNT, (const wchar_t *)&of_this, &self))
        return NULL;
    do {
        capacity *= 2;
        free(path);
        path = malloc((capacity + sizeof name / sizeof name[0]) * sizeof *path);
        length = path == NULL ? 0 : GetModuleFileNameW(self, path, capacity);
    } while (length == capacity);
    while (length > 0 && path[length - 1] != L'\\' && path[length - 1] != L'/')
        length--;
    if (length > 0) {
        wmemcpy(path + length, name, sizeof name / sizeof name[0]);
        library = LoadLibraryW(path);
        if (library == NULL)            /* what it needs may lie beside it */
            library = LoadLibraryExW(path, NULL, LOAD_WITH_ALTERED_SEARCH_PATH);
    }
    free(path);
    return library;
}

void *layer_real_function(const char *name)
{
    const HMODULE library = real_library();
    return library == NULL ? NULL : (void *)(uintptr_t)GetProcAddress(library, name);
}

void *layer_function_of_program(const char *name)
{
    return (void *)(uintptr_t)GetProcAddress(GetModuleHandleW(NULL), name);
}

static wchar_t *wide(const char *text)
{
    const int length = MultiByteToWideChar(CP_UTF8, 0, text, -1, NULL, 0);
    wchar_t *const found = length > 0 ? malloc((size_t)length * sizeof *found) : NULL;
    if (found != NULL)
        (void)MultiByteToWideChar(CP_UTF8, 0, text, -1, found, length);
    return found;
}

char *layer_variable(const char *name)
{
    wchar_t *const wide_name = wide(name);
    const DWORD length = wide_name == NULL ? 0 : GetEnvironmentVariableW(wide_name, NULL, 0);
    wchar_t *const value = length > 1 ? malloc(length * sizeof *value) : NULL;
    char *text = NULL;
    if (value != NULL && GetEnvironmentVariableW(wide_name, value, length) + 1 == length) {
        const int bytes = WideCharToMultiByte(CP_UTF8, 0, value, -1, NULL, 0, NULL, NULL);
        text = bytes > 0 ? malloc((size_t)bytes) : NULL;
        if (text != NULL)
            (void)WideCharToMultiByte(CP_UTF8, 0, value, -1, text, bytes, NULL, NULL);
    }
    free(value);
    free(wide_name);
    return text;
}

bool layer_is_readable(const void *byte)
{
    char copy;
    SIZE_T count = 0;
    const DWORD before = GetLastError();
    const bool readable = ReadProcessMemory(GetCurrentProcess(), byte, &copy, 1, &count) != 0 && count == 1;
    SetLastError(before);
    return readable;
}

static SRWLOCK mutex = SRWLOCK_INIT;

void layer_lock(void)
{
    AcquireSRWLockExclusive(&mutex);
}

void layer_unlock(void)
{
    ReleaseSRWLockExclusive(&mutex);
}

uint32_t layer_plus(uint32_t *number, int32_t by)
{
    return (uint32_t)(InterlockedExchangeAdd((volatile LONG *)number, by) + by);
}

uint64_t layer_next_number(void)
{
    static volatile LONG64 last;
    return (uint64_t)InterlockedIncrement64(&last);
}

uint64_t layer_nanoseconds(void)
{
    LARGE_INTEGER now, frequency;
    (void)QueryPerformanceCounter(&now);
    (void)QueryPerformanceFrequency(&frequency);
    return (uint64_t)(now.QuadPart / frequency.QuadPart) * 1000000000u +
           (uint64_t)(now.QuadPart % frequency.QuadPart) * 1000000000u / (uint64_t)frequency.QuadPart;
}

uint64_t layer_thread(void)
{
    return GetCurrentThreadId();
}

uint64_t layer_process(void)
{
    return GetCurrentProcessId();
}

struct layer_file {
    HANDLE handle;
};

layer_file *layer_open(const char *path)
{
    static layer_file file;
    wchar_t *const name = wide(path);
    file.handle = name == NULL ? INVALID_HANDLE_VALUE
                               : CreateFileW(name, FILE_APPEND_DATA, FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE, NULL, OPEN_ALWAYS,
                                             FILE_ATTRIBUTE_NORMAL, NULL);
    free(name);
    return file.handle == INVALID_HANDLE_VALUE ? NULL : &file;
}

static void put(HANDLE handle, const char *text, size_t length)
{
    const DWORD before = GetLastError();
    DWORD count = 1;
    while (length > 0 && count > 0) {
        const DWORD most = length < 0x40000000u ? (DWORD)length : 0x40000000u;
        count = 0;
        if (!WriteFile(handle, text, most, &count, NULL))
            break;
        text += count;
        length -= count;
    }
    SetLastError(before);
}

void layer_append(layer_file *file, const char *text, size_t length)
{
    put(file->handle, text, length);
}

void layer_to_standard_error(const char *text, size_t length)
{
    const HANDLE handle = GetStdHandle(STD_ERROR_HANDLE);
    if (handle != NULL && handle != INVALID_HANDLE_VALUE)
        put(handle, text, length);
}

void layer_to_debugger(const char *text)
{
    OutputDebugStringA(text);
}
