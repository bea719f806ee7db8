// Starts a shared object: host_mutation_launcher OBJECT [ARGUMENT]... calls its RunHostMutation.

#include <dlfcn.h>

#include <cstdio>

int main(int argc, char** argv) {
  void* const object = argc < 2 ? nullptr : dlopen(argv[1], RTLD_NOW | RTLD_GLOBAL);
  void* const run = object == nullptr ? nullptr : dlsym(object, "RunHostMutation");
  if (run == nullptr) {
    std::printf("error\nhost_mutation_launcher: %s\n",
                argc < 2 ? "want a shared object" : dlerror());
    return 2;
  }
  return reinterpret_cast<int (*)(int, char**)>(run)(argc - 1, argv + 1);
}
