/* platform_linux.c - see platform.h */
#define _GNU_SOURCE
#include "platform.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

/* The real library is one that this one needs: the system has loaded it, and what this one does not export is found there. */
void *layer_real_function(const char *name)
{
    void *const library = dlopen(LAYER_REAL, RTLD_NOW | RTLD_NOLOAD);
    return library == NULL ? NULL : dlsym(library, name);
}

void *layer_function_of_program(const char *name)
{
    return dlsym(RTLD_DEFAULT, name);
}

char *layer_variable(const char *name)
{
    const char *const value = getenv(name);
    return value == NULL || *value == '\0' ? NULL : strdup(value);
}

bool layer_read(const void *from, void *to, size_t bytes)
{
    const struct iovec here = {to, bytes}, there = {(void *)(uintptr_t)from, bytes};
    const ssize_t count = process_vm_readv(getpid(), &here, 1, &there, 1, 0);
    if (count < 0 && (errno == ENOSYS || errno == EPERM)) {
        memcpy(to, from, bytes);        /* a sandbox forbids the call */
        return true;
    }
    return count >= 0 && (size_t)count == bytes;
}

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

void layer_lock(void)
{
    (void)pthread_mutex_lock(&mutex);
}

void layer_unlock(void)
{
    (void)pthread_mutex_unlock(&mutex);
}

uint32_t layer_plus(uint32_t *number, int32_t by)
{
    return __atomic_add_fetch(number, (uint32_t)by, __ATOMIC_ACQ_REL);
}

uint64_t layer_next_number(void)
{
    static uint64_t last;
    return __atomic_add_fetch(&last, 1, __ATOMIC_RELAXED);
}

uint64_t layer_nanoseconds(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

uint64_t layer_thread(void)
{
    return (uint64_t)syscall(SYS_gettid);
}

uint64_t layer_process(void)
{
    return (uint64_t)getpid();
}

struct layer_file {
    int descriptor;
};

layer_file *layer_open(const char *path)
{
    static layer_file file;
    file.descriptor = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666);
    return file.descriptor < 0 ? NULL : &file;
}

static void put(int descriptor, const char *text, size_t length)
{
    const int before = errno;
    while (length > 0) {
        const ssize_t count = write(descriptor, text, length);
        if (count < 0 && errno == EINTR)
            continue;
        if (count <= 0)
            break;
        text += count;
        length -= (size_t)count;
    }
    errno = before;
}

void layer_append(layer_file *file, const char *text, size_t length)
{
    put(file->descriptor, text, length);
}

void layer_to_standard_error(const char *text, size_t length)
{
    put(STDERR_FILENO, text, length);
}

void layer_to_debugger(const char *text)
{
    (void)text;
}
