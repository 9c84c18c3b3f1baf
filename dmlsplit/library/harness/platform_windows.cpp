#include <windows.h>

#include <atomic>
#include <iostream>
#include <new>

#include "platform.h"

namespace harness {

std::size_t pageSize() {
    SYSTEM_INFO info;
    GetSystemInfo(&info);
    return info.dwPageSize;
}

char* reserve(std::size_t bytes) {
    void* start = VirtualAlloc(nullptr, bytes, MEM_RESERVE, PAGE_NOACCESS);
    if (start == nullptr) throw std::bad_alloc();
    return static_cast<char*>(start);
}

void makeReadable(char* start, std::size_t bytes) {
    if (VirtualAlloc(start, bytes, MEM_COMMIT, PAGE_READWRITE) == nullptr) throw std::bad_alloc();
}

void unreserve(char* start, std::size_t) { VirtualFree(start, 0, MEM_RELEASE); }

void* libraryFunction(const std::string& path, const char* name) {
    const HMODULE library = LoadLibraryA(path.c_str());
    void* function = library == nullptr ? nullptr : reinterpret_cast<void*>(GetProcAddress(library, name));
    if (function == nullptr) throw std::runtime_error(path + ", " + name + ": error " + std::to_string(GetLastError()));
    return function;
}

void setEvent(void* event) { SetEvent(event); }

namespace {

std::atomic<ULONGLONG> deadline{~0ULL};

[[noreturn]] void lastAnswer(const std::string& line) {
    std::cout << line << std::endl;
    endProcess(1);
}

LONG WINAPI onCrash(EXCEPTION_POINTERS* exception) {
    lastAnswer("crash " + answerOf(static_cast<HResult>(exception->ExceptionRecord->ExceptionCode)));
}

DWORD WINAPI watch(void*) {
    while (GetTickCount64() < deadline) Sleep(500);
    lastAnswer("timeout");
}

}  // namespace

void answer(const std::vector<std::string>& commands, const Execute& execute) {
    static const HANDLE watcher = CreateThread(nullptr, 0, watch, nullptr, 0, nullptr);
    if (watcher == nullptr) throw std::runtime_error("CreateThread failed");
    const auto before = SetUnhandledExceptionFilter(onCrash);
    for (std::size_t i = 0; i < commands.size(); ++i) {
        deadline = GetTickCount64() + 1000ULL * timeoutSeconds;
        try {
            std::cout << execute(commands[i]) << std::endl;
        } catch (const MalformedLine& error) {
            throw std::runtime_error("command " + std::to_string(i + 1) + ": " + error.what());
        }
    }
    deadline = ~0ULL;
    SetUnhandledExceptionFilter(before);
}

void endProcess(int status) {
    TerminateProcess(GetCurrentProcess(), static_cast<UINT>(status));
    for (;;) Sleep(INFINITE);  // unreachable
}

}  // namespace harness
