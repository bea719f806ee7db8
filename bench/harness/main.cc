#include "bench/harness/user.h"

int main(int argc, char** argv) { return coconet::bench::Main(argc, argv); }
