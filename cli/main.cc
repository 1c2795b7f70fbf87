// fcp-core, which does what the launcher (launcher.cc) does not answer by itself. Nothing else is
// here, so that all else compiles together with the verbs.
#include "cli/program.h"

int main(int argc, char** argv) { return fcp::cli::run_program(argc, argv); }
