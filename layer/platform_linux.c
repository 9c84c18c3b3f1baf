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

bool layer_is_readable(const void *byte)
{
    char copy;
    const struct iovec here = {&copy, 1}, there = {(void *)(uintptr_t)byte, 1};
    const int before = errno;
    const ssize_t count = process_vm_readv((pid_t)layer_process(), &here, 1, &there, 1, 0);
    const bool readable = count == 1 || (count < 0 && (errno == ENOSYS || errno == EPERM));     /* a sandbox may forbid the call */
    errno = before;
    return readable;
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

/* The numbers are asked for once, and again after a fork. */
static uint64_t process;

static void forget_process(void)
{
    __atomic_store_n(&process, 0, __ATOMIC_RELAXED);
}

static void watch_forks(void)
{
    (void)pthread_atfork(NULL, NULL, forget_process);
}

uint64_t layer_process(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    uint64_t found = __atomic_load_n(&process, __ATOMIC_RELAXED);
    if (found == 0) {
        found = (uint64_t)getpid();
        (void)pthread_once(&once, watch_forks);
        __atomic_store_n(&process, found, __ATOMIC_RELAXED);
    }
    return found;
}

uint64_t layer_thread(void)
{
    static LAYER_THREAD uint64_t thread, of_process;
    if (of_process != layer_process()) {
        of_process = layer_process();
        thread = (uint64_t)syscall(SYS_gettid);
    }
    return thread;
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
