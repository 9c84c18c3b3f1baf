#include <dlfcn.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstring>
#include <iostream>
#include <new>

#include "platform.h"

namespace harness {

std::size_t pageSize() { return static_cast<std::size_t>(sysconf(_SC_PAGESIZE)); }

char* reserve(std::size_t bytes) {
    void* start = mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (start == MAP_FAILED) throw std::bad_alloc();
    return static_cast<char*>(start);
}

void makeReadable(char* start, std::size_t bytes) {
    if (mprotect(start, bytes, PROT_READ | PROT_WRITE) != 0) throw std::bad_alloc();
}

void unreserve(char* start, std::size_t bytes) { munmap(start, bytes); }

void* libraryFunction(const std::string& path, const char* name) {
    void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) throw std::runtime_error(dlerror());
    void* function = dlsym(library, name);
    if (function == nullptr) throw std::runtime_error(dlerror());
    return function;
}

void setEvent(void*) {}

namespace {

// What the workers have found out, in memory that the end of one leaves behind.
struct Answer {
    char text[1 << 18];  // a page of it is memory once it is written
};
struct Progress {
    std::size_t* done;
    Answer* answers;
};

[[noreturn]] void work(const std::vector<std::string>& commands, const Execute& execute, const Progress& progress) {
    int status = 0;
    try {
        while (*progress.done < commands.size()) {
            alarm(timeoutSeconds);
            const std::string answer = execute(commands[*progress.done]);
            if (answer.size() >= sizeof(Answer)) throw MalformedLine("its answer is too long");
            std::memcpy(progress.answers[*progress.done].text, answer.c_str(), answer.size() + 1);
            ++*progress.done;
        }
    } catch (const MalformedLine& error) {
        std::cerr << "command " << *progress.done + 1 << ": " << error.what() << std::endl;
        status = 2;
    }
    endProcess(status);
}

}  // namespace

void answer(const std::vector<std::string>& commands, const Execute& execute) {
    const rlimit noCoreFiles = {0, 0};
    setrlimit(RLIMIT_CORE, &noCoreFiles);
    const std::size_t bytes = sizeof(std::size_t) + commands.size() * sizeof(Answer);
    void* shared = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (shared == MAP_FAILED) throw std::bad_alloc();
    const Progress progress = {static_cast<std::size_t*>(shared),
                               reinterpret_cast<Answer*>(static_cast<std::size_t*>(shared) + 1)};
    std::vector<std::string> answers;
    while (*progress.done < commands.size()) {
        const pid_t worker = fork();
        if (worker < 0) throw std::runtime_error("fork failed");
        if (worker == 0) work(commands, execute, progress);
        int status = 0;
        waitpid(worker, &status, 0);
        for (std::size_t i = answers.size(); i < *progress.done; ++i) answers.push_back(progress.answers[i].text);
        if (WIFSIGNALED(status)) {
            const int signal = WTERMSIG(status);
            answers.push_back(signal == SIGALRM ? "timeout" : "crash " + std::to_string(signal));
            ++*progress.done;
        } else if (WEXITSTATUS(status) != 0) {
            throw std::runtime_error("stopped");
        }
    }
    munmap(shared, bytes);
    for (const std::string& line : answers) std::cout << line << '\n';
    std::cout.flush();
}

void endProcess(int status) { _exit(status); }

}  // namespace harness
